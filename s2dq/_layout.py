"""Vocabulary: layouts, channel orders, and the shapes and sizes that follow from them.

A layout names the axes of a tensor in memory order. Axes are called ``n`` (batch), ``d h w`` (space; ``s1 s2 ...``
where there are more) and ``c`` (channels); a packed layout splits ``c`` into words: ``cb`` (which word) and ``v`` (lane
in the word).
Nothing here knows arrays, only names and Python integers.
"""

from collections.abc import Iterator
from itertools import product
from math import prod
from typing import NamedTuple


class Layout(NamedTuple):
    """The axes of a tensor in memory order."""

    name: str
    axes: tuple[str, ...]

    @property
    def spatial(self) -> tuple[str, ...]:
        """Names of the spatial axes, outermost first."""
        return tuple(axis for axis in self.axes if axis not in ("n", "c", "cb", "v"))

    @property
    def packed(self) -> bool:
        """True where channels are split into words."""
        return "v" in self.axes


LAYOUTS = {
    layout.name: layout
    for layout in (
        Layout("NWC", ("n", "w", "c")),
        Layout("NHWC", ("n", "h", "w", "c")),
        Layout("NDHWC", ("n", "d", "h", "w", "c")),
        Layout("NCW", ("n", "c", "w")),
        Layout("NCHW", ("n", "c", "h", "w")),
        Layout("NCDHW", ("n", "c", "d", "h", "w")),
        Layout("NCHW_VECT_C", ("n", "cb", "h", "w", "v")),
    )
}

MODES = ("DCR", "CRD", "focus")

_SPATIAL_WORDS = {"d": "depth", "h": "height", "w": "width"}


def spatial_word(axis: str) -> str:
    """What a spatial axis is called in a message."""
    return _SPATIAL_WORDS.get(axis, f"spatial extent {axis[1:]}")


def channels_first(spatial: int) -> Layout:
    """Channels before as many spatial axes; beyond the three that have names, one without a name of its own."""
    if 1 <= spatial <= 3:
        return LAYOUTS[("NCW", "NCHW", "NCDHW")[spatial - 1]]
    return Layout(f"NC and {spatial} spatial axes", ("n", "c", *(f"s{i + 1}" for i in range(spatial))))


def deep_digits(mode: str, spatial: tuple[str, ...]) -> tuple[str, ...]:
    """Digits of the deep channel index, most significant first.

    A spatial name stands for the offset inside the block along that axis, ``"c"`` for the shallow channel.
    """
    if mode == "DCR":
        return (*spatial, "c")
    if mode == "CRD":
        return ("c", *spatial)
    return (*reversed(spatial), "c")  # focus: the first spatial axis runs fastest


def words(count: int, lanes: int) -> int:
    """Number of words of `lanes` lanes that hold `count` channels."""
    return -(-count // lanes)


def tensor_shape(layout: Layout, batch: int, extents: dict[str, int], channels: int, lanes: int) -> tuple[int, ...]:
    """Shape of a tensor of `layout`; `lanes` counts only when the layout is packed."""
    sizes = {"n": batch, "c": channels, "cb": words(channels, lanes) if lanes else 0, "v": lanes, **extents}
    return tuple(sizes[axis] for axis in layout.axes)


def parts(shape: tuple[int, ...], most: int) -> Iterator[tuple[int | slice, ...]]:
    """Indices of parts of at most so many elements that make an array of this shape: between them, signals count."""
    if 0 in shape:
        return
    inner, axis = 1, len(shape)
    while axis and inner * shape[axis - 1] <= most:
        axis -= 1
        inner *= shape[axis]
    if not axis:
        yield ()
        return
    count = max(most // inner, 1)
    for outer in product(*map(range, shape[: axis - 1])):
        for start in range(0, shape[axis - 1], count):
            yield *outer, slice(start, start + count)


Loops = tuple[tuple[int, int], ...]  # extents and steps, outermost first


def loops_of(shape: tuple[int, ...], steps: tuple[int, ...]) -> Loops:
    """Extents and steps of an array with elements, outermost first; axes that continue each other are one."""
    loops: list[tuple[int, int]] = []
    for extent, step in zip(shape, steps):
        if extent == 1:
            continue
        if loops and loops[-1][1] == extent * step:
            loops[-1] = loops[-1][0] * extent, step
        else:
            loops.append((extent, step))
    return tuple(loops)


def contiguous_steps(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Byte steps of a C-contiguous array."""
    return tuple(itemsize * prod(shape[i + 1:]) for i in range(len(shape)))


class DepthProblem(NamedTuple):
    """One space-to-depth or depth-to-space call, canonical: all that a plan depends on.

    `steps` are the byte steps of the source; `batch`, `blocks` (extents on the block side) and `channels` (logical
    count on the space side) give the sizes; `lo` and `space` are the start and the extent of the window that the
    space tensor leaves of the padded or uncropped axes. `tables` tells how many lookup tables the bytes go through
    (none, one for all channels, or one a channel) and `lookup` how ("", or "table", "flip" or "line": see
    `_lookup.Lookup`), `pads` how many pad values there are (1 or one a channel); `reverse` reads the channels of the
    source backwards. `staged` is the element width of a source that is converted first, or 0.
    """

    to_depth: bool
    source: Layout
    target: Layout
    mode: str
    steps: tuple[int, ...]
    itemsize: int
    batch: int
    blocks: tuple[int, ...]
    block: tuple[int, ...]
    lo: tuple[int, ...]
    space: tuple[int, ...]
    channels: int
    src_lanes: int
    dst_lanes: int
    dst_shape: tuple[int, ...]
    tables: int = 0
    pads: int = 1
    reverse: bool = False
    lookup: str = ""
    staged: int = 0


class BatchProblem(NamedTuple):
    """One space-to-batch or batch-to-space call, canonical. Fields as in `DepthProblem`; `rest` rides along.

    `pads` are byte steps in the pad values, one for each axis of the source; none where there is one value for all.
    """

    to_batch: bool
    steps: tuple[int, ...]
    itemsize: int
    batch: int
    blocks: tuple[int, ...]
    block: tuple[int, ...]
    lo: tuple[int, ...]
    space: tuple[int, ...]
    rest: tuple[int, ...]
    dst_shape: tuple[int, ...]
    pads: tuple[int, ...] = ()

"""A case as the reshape - transpose - reshape that a user of any array library would write.

The peers run these recipes, and the budget counts streams in them. They are written from the index equations, on
their own: nothing here comes from the plans that s2dq makes. Preprocessing is a lookup in tables between padding and
moving; the tables are those of `s2dq.reference`.

A *token* is one axis of the finest split that both sides need: (h, w) with a block of 2 is the tokens hb by wb bx.
Each array axis is a group of tokens, the source and the result list the same tokens in different orders.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, TypeAlias

import numpy as np

from s2dq import reference

from .cases import Case

Shape: TypeAlias = tuple[int, ...]
Margins: TypeAlias = Sequence[Sequence[int]]  # (start, end) of every axis
Groups: TypeAlias = list[list[str]]  # the tokens of every axis

DIMS = {1: "w", 2: "hw", 3: "dhw"}
FLIPPED = bytes(level ^ 128 for level in range(256))
RANK = {"NWC": 1, "NCW": 1, "NHWC": 2, "NCHW": 2, "NCHW_VECT_C": 2, "NDHWC": 3, "NCDHW": 3}


@dataclass(frozen=True)
class Pad:
    margins: Margins
    value: Any


@dataclass(frozen=True)
class Crop:
    margins: Margins


@dataclass(frozen=True)
class Move:
    """Reshape to `split`, transpose by `order`, reshape to `shape`."""

    split: Shape
    order: Shape
    shape: Shape

    @property
    def transposed(self) -> Shape:
        """The shape between transposing and the second reshape."""
        return tuple(self.split[axis] for axis in self.order)

    @property
    def must_copy(self) -> bool:
        """Whether axes change places, so that no library can answer with a view of its input."""
        return self.order != tuple(range(len(self.order)))


@dataclass(frozen=True)
class Reverse:
    """Read one axis backwards."""

    axis: int

    @property
    def index(self) -> tuple[slice, ...]:
        return (*(slice(None) for _ in range(self.axis)), slice(None, None, -1))


@dataclass(frozen=True, eq=False)
class Lookup:
    """Look every byte up: in one table, or in that of its place along `axis`."""

    tables: np.ndarray  # (1, 256) or (channels, 256)
    axis: int

    @property
    def is_flip(self) -> bool:
        """Whether nothing but the top bit changes: no table is needed then."""
        return self.tables.view(np.uint8).tobytes() == FLIPPED

    def offsets(self, rank: int, dtype: Any) -> np.ndarray:
        """The start of each channel's table in all of them, to be added to an array of this rank."""
        starts = 256 * np.arange(len(self.tables), dtype=dtype)
        return starts.reshape(-1, *(1 for _ in range(rank - self.axis - 1)))


Steps: TypeAlias = Sequence[Any]  # of the classes above


def recipe(case: Case) -> Steps:
    """Return the steps that turn the input of `case` into its result."""
    if case.operator == "preprocess":
        return preprocess_recipe(case)
    if case.operator in ("space_to_batch_nd", "batch_to_space_nd"):
        return batch_recipe(case)
    return depth_recipe(case)


def batch_recipe(case: Case) -> Steps:
    block = case.arguments["block_shape"]
    dims = len(block)
    to_batch = case.operator == "space_to_batch_nd"
    margins = tuple(map(tuple, case.arguments["paddings" if to_batch else "crops"]))
    batch, rest = case.shape[0], case.shape[1 + dims :]
    extents: Sequence[int] = case.shape[1 : 1 + dims]
    if to_batch:
        extents = [(extent + sum(pair)) // b for extent, pair, b in zip(extents, margins, block)]
    else:
        batch //= prod(block)

    sizes = {"n": batch} | {f"r{i}": extent for i, extent in enumerate(rest)}
    sizes |= {f"d{i}": extent for i, extent in enumerate(extents)} | {f"b{i}": b for i, b in enumerate(block)}
    kept = [[f"r{i}"] for i in range(len(rest))]
    space = [["n"], *([f"d{i}", f"b{i}"] for i in range(dims)), *kept]
    blocks = [[*(f"b{i}" for i in range(dims)), "n"], *([f"d{i}"] for i in range(dims)), *kept]
    margins = ((0, 0), *margins, *((0, 0) for _ in rest))
    if to_batch:
        return (*pad(margins, case.arguments.get("pad_value", 0)), move(space, blocks, sizes))
    return (move(blocks, space, sizes), *crop(margins))


def depth_recipe(case: Case) -> Steps:
    """space_to_depth, depth_to_space and, as those with a block of 1, packing and unpacking."""
    source, target, vect = formats(case)
    to_depth = case.operator != "depth_to_space"
    rank = RANK[source]
    block = case.arguments.get("block_size", 1)
    block = block if isinstance(block, tuple) else (block,) * rank
    margins = case.arguments.get("paddings" if to_depth else "crops", [[0, 0]] * rank)

    steps: list[Any] = []
    shape = case.shape
    if to_depth:
        steps += pad(on_layout(source, margins), case.arguments.get("pad_value", 0))
        shape = tuple(extent + start + end for extent, (start, end) in zip(shape, on_layout(source, margins)))
    held = channels_of(source, shape)
    count = case.arguments.get("channels", held)
    sizes = {"n": shape[0], "c": count if to_depth else count // prod(block)}
    for axis, extent, b in zip(DIMS[rank], spatial_of(source, shape), block):
        sizes |= {axis: extent // b if to_depth else extent, f"b{axis}": b}
    deep = deep_tokens(mode=case.arguments.get("mode", "DCR"), rank=rank)
    source_tokens, target_tokens = (["c"], deep) if to_depth else (deep, ["c"])

    # Words go straight from and to the other layout where their lanes are a part of c. Where they are not, a
    # step before or after takes them apart or makes them.
    source_low = lanes_of_c(source, source_tokens, sizes, shape[-1])
    if source_low is None or count != held:
        steps += unpacked(shape, count)
        source, source_low = "NHWC", 1
    target_low = lanes_of_c(target, target_tokens, sizes, vect)
    chained = target_low is None or (source == target == "NCHW_VECT_C" and source_low != target_low)
    if chained or target_low is None:
        target, target_low = "NHWC", 1
    sizes["c0"] = max(source_low, target_low)
    sizes["c1"] = sizes["c"] // sizes["c0"]
    step = move(groups_of(source, source_tokens, rank, blocked=not to_depth),
                groups_of(target, target_tokens, rank, blocked=to_depth), sizes)
    steps.append(step)
    shape = step.shape
    if not to_depth:
        steps += crop(on_layout(target, margins))
        shape = tuple(extent - start - end for extent, (start, end) in zip(shape, on_layout(target, margins)))
    if chained:
        steps += packed(shape, vect, case.arguments.get("pad_value", 0) if case.operator == "pack_vect_c" else 0)
    return tuple(steps)


def preprocess_recipe(case: Case) -> Steps:
    """Channels reversed, canvas filled, bytes looked up, then whatever moves."""
    source, target, block = frame_formats(case)
    axis = 3 if is_channels_last(source) else 1
    moves = depth_recipe(as_space_to_depth(case))
    padding, moves = (moves[:1], moves[1:]) if isinstance(moves[0], Pad) else ((), moves)
    if source == target and block == 1:
        moves = ()
    reverse = (Reverse(axis),) if case.arguments.get("reverse_channels") else ()
    return (*reverse, *padding, Lookup(tables_of(case, axis), axis), *moves)


def frame_formats(case: Case) -> tuple[str, str, Any]:
    """Source layout, target layout and block of a `preprocess` case."""
    arguments = case.arguments
    return arguments.get("input_format", "NHWC"), arguments.get("data_format", "NHWC"), arguments.get("block_size", 1)


def as_space_to_depth(case: Case) -> Case:
    """The case without its tables: space_to_depth of grey levels."""
    source, target, block = frame_formats(case)
    rearranging = {"block_size": block, "data_format": source, "out_format": target, "paddings": letterbox(case),
                   "pad_value": case.arguments.get("pad_value", 114)}
    rearranging |= {name: case.arguments[name] for name in ("mode", "vect") if name in case.arguments}
    return replace(case, operator="space_to_depth", arguments=rearranging)


def letterbox(case: Case) -> list[list[int]]:
    """Margins of the spatial axes: centred, the odd pixel at the end."""
    extents = spatial_of(frame_formats(case)[0], case.shape)
    size = case.arguments.get("size") or extents
    spare = [outer - inner for outer, inner in zip(size if isinstance(size, tuple) else (size, size), extents)]
    return [[count // 2, count - count // 2] for count in spare]


def tables_of(case: Case, axis: int) -> np.ndarray:
    """The result for every grey level, one row or one for each channel: (1, 256) or (channels, 256)."""
    levels = np.repeat(np.arange(256, dtype=np.uint8), case.shape[axis]).reshape(256, 1, -1)
    arithmetic = ("scale", "zero_point", "dtype", "mean", "std", "rescale")
    chosen = {name: case.arguments[name] for name in arithmetic if name in case.arguments}
    tables = np.ascontiguousarray(reference.preprocess(levels, **chosen)[0, :, 0].T)
    return tables[:1] if (tables == tables[0]).all() else tables


def lanes_of_c(layout: str, tokens: list[str], sizes: dict[str, int], lanes: int) -> int | None:
    """How many lanes of a packed layout are a part of c; 1 for other layouts, None if words end within a block."""
    if layout != "NCHW_VECT_C":
        return 1
    inner = prod(sizes[token] for token in tokens[tokens.index("c") + 1 :])
    low, rest = divmod(lanes, inner)
    return low if rest == 0 and low and sizes["c"] % low == 0 else None


def formats(case: Case) -> tuple[str, str, int]:
    """Return source layout, target layout and the lanes of a packed target."""
    arguments = case.arguments
    if case.operator == "pack_vect_c":
        return arguments["data_format"], "NCHW_VECT_C", arguments.get("vect", 4)
    if case.operator == "unpack_vect_c":
        return "NCHW_VECT_C", arguments["data_format"], 1
    source = arguments["data_format"]
    target = arguments.get("out_format", source)
    vect = arguments.get("vect", 4)
    if source == "NCHW_VECT_C" and "out_format" not in arguments and vect == 4:
        vect = case.shape[-1]
    return source, target, vect


def is_channels_last(layout: str) -> bool:
    return layout in ("NWC", "NHWC", "NDHWC")


def channels_of(layout: str, shape: Shape) -> int:
    if layout == "NCHW_VECT_C":
        return shape[1] * shape[-1]
    return shape[-1] if is_channels_last(layout) else shape[1]


def spatial_of(layout: str, shape: Shape) -> Shape:
    return shape[1:-1] if is_channels_last(layout) else shape[2 : 2 + RANK[layout]]


def on_layout(layout: str, margins: Margins) -> Margins:
    """Margins of the spatial axes as margins of all axes."""
    if layout == "NCHW_VECT_C":
        return ((0, 0), (0, 0), *margins, (0, 0))
    return ((0, 0), *margins, (0, 0)) if is_channels_last(layout) else ((0, 0), (0, 0), *margins)


def deep_tokens(mode: str, rank: int) -> list[str]:
    offsets = [f"b{axis}" for axis in DIMS[rank]]
    return {"DCR": [*offsets, "c"], "CRD": ["c", *offsets], "focus": [*offsets[::-1], "c"]}[mode]


def groups_of(layout: str, channel: list[str], rank: int, blocked: bool) -> Groups:
    """The groups of tokens of every array axis; on the blocked side the offsets are among the channel's tokens."""
    spatial = [[axis] if blocked else [axis, f"b{axis}"] for axis in DIMS[rank]]
    cut = channel.index("c")
    high, low = [*channel[:cut], "c1"], ["c0", *channel[cut + 1 :]]
    if layout == "NCHW_VECT_C":
        return [["n"], high, *spatial, low]
    return [["n"], *spatial, high + low] if is_channels_last(layout) else [["n"], high + low, *spatial]


def move(source: Groups, target: Groups, sizes: dict[str, int]) -> Move:
    """The transpose from one grouping of the tokens to the other, in as few axes as will do."""
    shape = tuple(prod(sizes[token] for token in group) for group in target)
    given, wanted = ([token for group in side for token in group if sizes[token] > 1] for side in (source, target))
    runs: list[list[str]] = []  # tokens that are neighbours on both sides
    for token in given:
        follows = runs and runs[-1][-1] in wanted[:-1] and wanted[wanted.index(runs[-1][-1]) + 1] == token
        if follows:
            runs[-1].append(token)
        else:
            runs.append([token])
    order = sorted(range(len(runs)), key=lambda run: wanted.index(runs[run][0]))
    return Move(tuple(prod(sizes[token] for token in run) for run in runs), tuple(order), shape)


def pad(margins: Margins, value: Any) -> list[Pad]:
    return [Pad(margins, value)] if any(map(any, margins)) else []


def crop(margins: Margins) -> list[Crop]:
    return [Crop(margins)] if any(map(any, margins)) else []


def unpacked(shape: Shape, count: int) -> list[Any]:
    """NCHW_VECT_C -> NHWC with `count` channels."""
    batch, words, height, width, lanes = shape
    step = Move(shape, (0, 2, 3, 1, 4), (batch, height, width, words * lanes))
    return [step, *crop(((0, 0), (0, 0), (0, 0), (0, words * lanes - count)))]


def packed(shape: Shape, vect: int, value: Any) -> list[Any]:
    """NHWC -> NCHW_VECT_C, the last word filled up."""
    batch, height, width, count = shape
    words = -(-count // vect)
    step = Move((batch, height, width, words, vect), (0, 3, 1, 2, 4), (batch, words, height, width, vect))
    return [*pad(((0, 0), (0, 0), (0, 0), (0, words * vect - count)), value), step]


def window(step: Any, shape: Shape) -> tuple[slice, ...]:
    """The index of what lies within the margins of `step`."""
    return tuple(slice(start, extent - end) for (start, end), extent in zip(step.margins, shape))


def result_shape(steps: Steps, shape: Shape) -> Shape:
    for step in steps:
        if isinstance(step, Pad):
            shape = padded_shape(step, shape)
        elif isinstance(step, Move):
            shape = step.shape
        elif isinstance(step, Crop):
            shape = cropped_shape(step, shape)
    return shape


def result_dtype(steps: Steps, dtype: np.dtype[Any]) -> np.dtype[Any]:
    return next((step.tables.dtype for step in steps if isinstance(step, Lookup)), dtype)


def is_one_transpose(steps: Steps) -> bool:
    return len(steps) == 1 and isinstance(steps[0], Move) and steps[0].must_copy


def cropped_shape(step: Any, shape: Shape) -> Shape:
    return tuple(extent - start - end for (start, end), extent in zip(step.margins, shape))


def padded_shape(step: Any, shape: Shape) -> Shape:
    return tuple(start + extent + end for (start, end), extent in zip(step.margins, shape))


def offsets(step: Any, longest: int = 16, most: int = 64) -> list[Any]:
    """Indices that take the transpose apart by its short axes: the offsets within a block, the lanes of a word."""
    ranges: list[Sequence[Any]] = []
    count = 1
    for axis, place in enumerate(step.order):
        extent = step.split[place]
        is_run = axis == place == len(step.split) - 1  # what stays together
        if extent <= longest and not is_run and count * extent <= most:
            ranges.append(range(extent))
            count *= extent
        else:
            ranges.append((slice(None),))
    return list(itertools.product(*ranges)) if count > 1 else []


def slices_to_join(case: Case) -> tuple[list[Any], int] | None:
    """Strided slices of the input that, joined along an axis, are the result: ([slices], axis); None if there are none.

    How YOLOv5 writes its Focus layer: space_to_depth where the channel is the low part of the deep channel.
    """
    if case.operator != "space_to_depth" or case.arguments.get("mode", "DCR") == "CRD":
        return None
    source, target, _ = formats(case)
    block, rank = case.arguments["block_size"], RANK[source]
    if source != target or source == "NCHW_VECT_C" or isinstance(block, tuple) or not 1 < block**rank <= 16:
        return None
    if any(map(any, case.arguments.get("paddings", ()))):
        return None
    order = list(itertools.product(range(block), repeat=rank))
    if case.arguments.get("mode") == "focus":
        order = [starts[::-1] for starts in order]
    channel = len(case.shape) - 1 if is_channels_last(source) else 1
    first = 1 if is_channels_last(source) else 2
    ahead, behind = (slice(None),) * first, (slice(None),) * (len(case.shape) - first - rank)
    return [(*ahead, *(slice(start, None, block) for start in starts), *behind) for starts in order], channel

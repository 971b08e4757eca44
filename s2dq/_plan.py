"""From an operator's canonical arguments to a plan: which bytes go where, in integers only.

Every operator here relates a *space* tensor (n, h, w, c) and a *block* tensor (n, hb, by, wb, bx, c) by

    x = xb * block + offset - pad,        0 <= x < extent

per spatial axis, and differs only in where the offsets ``by bx`` are written and which of the two is the source.

Words used throughout:

atom      one index of the relation (n, hb, by, c, ...), with its extent and its byte step on either side
window    the legal range of a number whose mixed-radix digits are atoms; outside it an element is filled or skipped
move      atoms and windows: one rectangular rearrangement from one buffer to another
box       what is left of a move when its windows are cut away: plain nested loops over *axes* around a *granule*,
          a run of bytes that is contiguous on both sides
segment   rows (the unit of parallel work) and the boxes to run for each of them
plan      segments; at most two moves are chained, through a scratch row, when packing words straddle channel groups

A plan knows no dtype, only widths. It is immutable, hashable, prints on one line and is encoded once into a table of
int64 for the kernels.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise, product
from math import prod
from typing import NamedTuple

from s2dq._layout import BatchProblem, DepthProblem, contiguous_steps, deep_digits, words
from s2dq._tiles import (
    LINE,
    PAGE,
    REGISTER,
    TABLE,
    TILE,
    WAYS,
    Axis,
    Entry,
    Loop,
    Network,
    Pattern,
    Tile,
    tile_of,
    tile_past,
)

# Buffers a box reads or writes. X is the source and Y the result; T is a scratch row of the running thread;
# F holds fill values: the lane element first, then one pad element or one per channel.
X, Y, T, F = range(4)
_BUFFER_NAMES = "XYTF"

# How bytes are looked up on their way: not at all, in their tables, or in tiles by turning some bits of them or by
# arithmetic that comes to the same; or elements of another width, converted on their way to scratch.
LOOKUPS = ("", "table", "flip", "line", "stage")

SEQUENCE = -1  # all loops of a box write one run, turn after turn

_SCRATCH_BYTES = 1 << 16  # a scratch row stays in the nearest caches
_STAGED_BYTES = 12 << 10  # of rows on their way through tables
_JOINED_BYTES = 1 << 14  # shorter rows share one, for each run of a box costs something
_GRANULE_BYTES = 1 << 16  # longer runs stay an axis, so that threads can share them
_INNER_BYTES = 1 << 15  # a strip of rows does at least this much before the row loops turn
_FEW_ROWS = 16  # fewer rows than this cannot be shared out evenly
_SHARED_BYTES = 1 << 16  # ... and rows of up to this size need no better sharing
# Results of at least so much would not stay in the caches; what goes past them are runs of at least so much, for the
# lines at either end cost more.
_STREAM_BYTES = ((10 << 20, 3 << 10), (24 << 20, 1 << 11))
# Where the processor follows streams, runs of whole tiles may be shorter in such results: each goes on where one ended.
_SHORTER_BYTES, _SHORTER_RUN = (14 << 20, 24 << 20), 512
_SHORT_STREAMS = {2: (1, 2, 4, 8), 8: (1, 2)}  # so many of such elements, in rows of less than a vector
_WIDE_BYTES = 192  # granules of at least this are copied as they are
_FRAMED_BYTES = (1 << 19, 1 << 22)  # results within frames up to these, of any granules and of whole registers
_LONG_BYTES = 1 << 10  # and of at least this also where the result goes past the caches
_FAR_BYTES = 1 << 21  # a result beyond the caches of a core, where whole lines are so from _RUN_BYTES on
_SHORT_BYTES = 512  # runs that would not fill a few lines
_ORDERED_BYTES = 1 << 22  # and so much of them is written as it lies, however short the loops
_RUN_BYTES, _NEAR_BYTES = 128, 1 << 14  # runs of at least this are worth an order, lines within this are still near
_MANY_BOXES, _SCRAP_BYTES = 64, 1 << 12  # the search for a tile costs more than it saves on many small boxes
_TILED_ROW_BYTES = 1 << 15  # rows of tiles are cut down to this
_THIN_BYTES, _LINE_BYTES = 32, 1 << 12  # of a block and of a line whose edges would be thin
_SWEPT_WINDOWS, _SWEPT_STEP = 4, 512  # of a vector, that a loop holds in registers; and what it steps, to be long
_PATTERN_BYTES = TILE  # lines up to this are one pattern
_SHARED_ROW_BYTES, _MOST_ROW_BYTES = 1 << 15, 1 << 18  # what all boxes write before any goes on, and no more than that
_ROW_BYTES = 1 << 23  # more than this is too long a row between two looks at Ctrl-C
_LINE_PARTS = 256  # ... but a line is cut into no more parts than this
_MAPPED = (1, 2, 3, 4, 6, 8, 12, 16)  # channels whose lines repeat after few vectors, and streams that are split
_MAPPED_RUN = 16  # bytes of such a stream in a line, at least
_PATTERN = 96  # bytes of three vectors, in which patterns repeat
_PLANE_RUN = 256  # pixels of rows, from which planes are converted one by one
_BOX_BYTES = 1 << 22  # about what a box of so long a row moves, for there it is looked at between boxes


class Atom(NamedTuple):
    """One index of the relation: extent, byte steps, and steps in the pad values and in the lookup tables."""

    extent: int
    src: int
    dst: int
    pad: int = 0
    tab: int = 0


class Window(NamedTuple):
    """``lo <= number < hi`` where the digits of the number are atoms, most significant first.

    Windows of one move share no atoms. Numbers from `end` on, where it is given, have no place in the result.
    """

    digits: tuple[str, ...]
    lo: int
    hi: int
    outside: str  # "skip", or what to write there: "lane" or "pad"
    end: int | None = None


Ranges = dict[str, tuple[int, int]]  # of the atoms of a move


class Move(NamedTuple):
    source: int
    target: int
    width: int
    atoms: dict[str, Atom]
    windows: tuple[Window, ...]
    src_offset: int = 0
    dst_offset: int = 0
    lookup: str = ""


def show_axis(axis: Axis) -> str:
    """``extent:source step>destination step``, then the step in the tables and how far the last turn goes back."""
    text = f"{axis.extent}:{axis.src}>{axis.dst}" + (f"~{axis.tab}" if axis.tab else "")
    return text + (f"<{axis.src_back},{axis.dst_back}" if axis.dst_back else "")


class Frame(NamedTuple):
    """Bytes of the pad element before the first row of a picture, between two rows and behind the last one."""

    element: int  # of so many bytes
    lead: int
    gap: int
    tail: int

    def __str__(self) -> str:
        return f"{self.lead}+{self.gap}+{self.tail}"


class Box(NamedTuple):
    source: int
    target: int
    src_offset: int
    dst_offset: int
    width: int
    axes: tuple[Axis, ...]
    lookup: str = ""
    tab_offset: int = 0
    lanes: int = 0  # bytes behind each run of the result that get the lane element, so many at a time:
    lane: int = 0
    tile: Tile | Network | None = None
    stream: int = 0  # where the result goes past the caches: indices in a turn of the innermost loop, or SEQUENCE
    pattern: Pattern = ((0, 0, 0, 0),)
    frame: Frame | None = None  # around the rows and granules of the last two axes

    def __str__(self) -> str:
        loops = " ".join(map(show_axis, self.axes))
        arrow = "=>" if self.lookup else "->"
        source = f"{_BUFFER_NAMES[self.source]}{self.src_offset:+d}"
        target = f"{_BUFFER_NAMES[self.target]}{self.dst_offset:+d}"
        what = f"{self.width}B" + (f"+{self.lanes}" if self.lanes else "")
        if self.frame:
            what += f"[{self.frame}]"
        if self.tile:
            what = f"({self.tile}{'!' if self.stream else ''})"
        return f"{source}{arrow}{target} {what}" + (f" {loops}" if loops else "")


class Segment(NamedTuple):
    rows: tuple[Axis, ...]
    boxes: tuple[Box, ...]

    def __str__(self) -> str:
        rows = " ".join(map(show_axis, self.rows))
        return f"[{rows}] {{{' ; '.join(map(str, self.boxes))}}}"


class Plan(NamedTuple):
    """Everything the kernels need to know about a call, but for the addresses."""

    segments: tuple[Segment, ...]
    scratch: int  # bytes per thread

    def __str__(self) -> str:
        return " | ".join(map(str, self.segments)) or "nothing"

    def encode(self) -> list[int]:
        """The plan as a flat list of integers, in the order `_kernels.Program` reads it."""
        table = [len(self.segments), self.scratch]
        for segment in self.segments:
            table += [len(segment.rows), len(segment.boxes)]
            for axis in segment.rows:
                table += axis
            for box in segment.boxes:
                table += [box.source, box.target, box.src_offset, box.dst_offset, box.width]
                table += [LOOKUPS.index(box.lookup), box.tab_offset, box.lanes, box.lane, len(box.axes)]
                for axis in box.axes:
                    table += axis
                table.append(3 if box.frame else 0 if box.tile is None else 2 if isinstance(box.tile, Network) else 1)
                if box.frame:
                    table += box.frame
                elif box.tile:
                    table.append(box.stream)
                    table += box.tile.encode()
        return table


# ------------------------------------------------------------------------------------------------ windows


def split_range(extents: tuple[int, ...], lo: int, hi: int) -> Iterator[tuple[tuple[int, int], ...]]:
    """Cut the numbers ``lo <= i < hi`` of a mixed-radix counter into boxes of digit ranges.

    A counter with k digits needs at most ``2*k - 1`` boxes.
    """
    if lo >= hi:
        return
    rest = extents[1:]
    size = prod(rest)
    whole = tuple((0, extent) for extent in rest)
    first, last = -(-lo // size), hi // size
    if first > last:  # both ends inside the same leading digit
        for box in split_range(rest, lo - last * size, hi - last * size):
            yield ((last, last + 1), *box)
        return
    for box in split_range(rest, lo - (first - 1) * size, size):
        yield ((first - 1, first), *box)
    if first < last:
        yield ((first, last), *whole)
    for box in split_range(rest, 0, hi - last * size):
        yield ((last, last + 1), *box)


def cut_windows(move: Move, *, lanes_last: bool) -> Iterator[tuple[str, dict[str, tuple[int, int]]]]:
    """Yield ``(what, ranges)``: parts of a move in which every element is treated alike.

    `what` is "copy", "pad" or "lane"; `ranges` narrows some atoms. Where windows disagree skip wins over lane, and
    lane over pad: a skipped element has no place to go, and spare lanes hold the lane value even in the padding. With
    `lanes_last` spare lanes are cut as the words are that they belong to, some of padding and some of elements.
    """
    order = ("skip", "pad", "lane") if lanes_last else ("skip", "lane", "pad")
    windows = sorted(move.windows, key=lambda window: order.index(window.outside))

    def cut(ranges: Ranges, remaining: list[Window]) -> Iterator[tuple[str, Ranges]]:
        if not remaining:
            yield "copy", ranges
            return
        window, *later = remaining
        extents = tuple(move.atoms[digit].extent for digit in window.digits)
        total = prod(extents)
        for box in split_range(extents, window.lo, window.hi):
            yield from cut({**ranges, **dict(zip(window.digits, box))}, later)
        if window.outside != "skip":
            end = total if window.end is None else window.end
            for lo, hi in ((0, min(window.lo, end)), (window.hi, end)):
                for box in split_range(extents, lo, hi):
                    outside = {**ranges, **dict(zip(window.digits, box))}
                    inner = [other for other in later if other.outside == "lane"]
                    for what, part in cut(outside, inner):
                        yield (window.outside if what == "copy" else what), part

    yield from cut({}, windows)


# ------------------------------------------------------------------------------------- from moves to boxes


def canonical(axes: list[Axis], width: int, *, grow: bool = True) -> tuple[int, tuple[Axis, ...]]:
    """Normalise the loops of a box: destination order, neighbours merged, the granule as wide as possible."""
    axes = sorted((axis for axis in axes if axis.extent != 1), key=lambda axis: -abs(axis.dst))
    merged: list[Axis] = []
    for axis in axes:
        outer = merged[-1] if merged else None
        if outer and all(far == near * axis.extent for far, near in zip(outer[1:], axis[1:])):
            merged[-1] = axis._replace(extent=outer.extent * axis.extent)
        else:
            merged.append(axis)
    if grow and merged:
        last = merged[-1]
        if (last.src, last.dst, last.tab) == (width, width, 0) and width * last.extent <= _GRANULE_BYTES:
            width *= last.extent
            merged.pop()
    return width, tuple(merged)


def boxes_of(move: Move) -> Iterator[Box]:
    """The boxes a move comes to once its windows are cut away; spare lanes go with what they follow."""
    parts = list(parts_of(move))
    lanes = lane_parts(move, parts)
    joined = {part for part, _ in lanes.values()}
    for k, (what, ranges) in enumerate(parts):
        if k in lanes:
            yield box_of(move, what, ranges)._replace(lanes=lanes[k][1], lane=move.width)
        elif k not in joined:
            yield box_of(move, what, ranges)


def lane_parts(move: Move, parts: list[tuple[str, Ranges]]) -> dict[int, tuple[int, int]]:
    """Copied parts with spare lanes right behind their bytes: ``{position: (that of the lanes, bytes of them)}``."""
    found: dict[int, tuple[int, int]] = {}
    copies = [(k, ranges) for k, (what, ranges) in enumerate(parts) if what == "copy"]
    for k, (what, ranges) in enumerate(parts):
        if what != "lane" or move.lookup:
            continue
        for other, copied in copies:
            differ = [name for name in ranges if ranges[name] != copied[name]]
            if len(differ) == 1 and move.atoms[differ[0]].dst == move.width:
                start, stop = ranges[differ[0]]  # the copied ones end where these begin
                found[other] = k, (stop - start) * move.width
    return found


def parts_of(move: Move, *, lanes_last: bool = False) -> Iterator[tuple[str, Ranges]]:
    """`cut_windows` with a range for every atom."""
    for what, ranges in cut_windows(move, lanes_last=lanes_last):
        yield what, {name: ranges.get(name, (0, atom.extent)) for name, atom in move.atoms.items()}


def box_of(move: Move, what: str, ranges: Ranges, *, grow: bool = True) -> Box:
    """The box of one part of a move; `grow` as for `canonical`."""
    if what == "copy":
        source, src_offset = move.source, move.src_offset
    else:
        source, src_offset = F, (move.width if what == "pad" else 0)
    dst_offset, tab_offset = move.dst_offset, 0
    axes = []
    for name, (start, stop) in ranges.items():
        atom = move.atoms[name]
        src = atom.src if what == "copy" else atom.pad if what == "pad" else 0
        tab = atom.tab if what == "copy" else 0
        src_offset += start * src
        dst_offset += start * atom.dst
        tab_offset += start * tab
        axes.append(Axis(stop - start, src, atom.dst, tab))
    lookup = move.lookup if what == "copy" else ""
    width, loops = canonical(axes, move.width, grow=grow and lookup != "table")
    return Box(source, move.target, src_offset, dst_offset, width, loops, lookup, tab_offset)


def pattern_box(move: Move, digits: tuple[str, ...], parts: list[tuple[str, Ranges]]) -> Box:
    """One box for the lanes of a ragged word: those that hold values or padding, and those that are filled."""
    entries: list[Entry] = []
    for what, ranges in parts:
        for values in product(*(range(*ranges[name]) for name in digits)):
            steps = [(value, move.atoms[name]) for value, name in zip(values, digits)]
            src = sum(value * atom.src for value, atom in steps) if what == "copy" else None
            fill = move.width + sum(value * atom.pad for value, atom in steps) if what == "pad" else 0
            table = sum(value * atom.tab for value, atom in steps) // TABLE if what == "copy" else 0
            entries.append((src, sum(value * atom.dst for value, atom in steps), fill, table))
    what, ranges = parts[0]
    around = {name: (0, 1) if name in digits else span for name, span in ranges.items()}
    return pattern_of(box_of(move, what, around, grow=False)._replace(pattern=tuple(entries)))


def tile_boxes(move: Move) -> Iterator[Box]:
    """The boxes of a move as tiles want them: a ragged word and its spare lanes are one pattern."""
    window = next((window for window in move.windows if window.outside == "lane"), None)
    if window is None:
        yield from boxes_of(move)
        return
    digits = window.digits
    groups: dict[tuple[tuple[str, tuple[int, int]], ...], list[tuple[str, Ranges]]] = {}
    for what, ranges in parts_of(move, lanes_last=True):
        around = tuple((name, span) for name, span in ranges.items() if name not in digits)
        groups.setdefault(around, []).append((what, ranges))
    alone = []
    for group in groups.values():
        *whole, ragged = [part for part in group if part[0] != "lane"]
        word = [ragged, *(part for part in group if part[0] == "lane")]
        places = [prod(stop - start for start, stop in (part[name] for name in digits)) for _, part in word]
        box = pattern_box(move, digits, word) if sum(places) * move.width <= TILE else None
        if box is None or not fits_tiles(box):
            alone += group
            continue
        yield box
        alone += whole
    for what, ranges in alone:
        yield box_of(move, what, ranges)


def segment_of(box: Box) -> Segment:
    """Share the loops of a box out between rows and the work of one row.

    Loops that step less than a line on either side belong to the row: whoever has a line in the cache uses it up.
    """
    gaps = leaves_gaps(box)
    if gaps:
        box = box._replace(axes=source_order(box.axes))
    total = box.width * prod(axis.extent for axis in box.axes)
    rows = [axis for axis in box.axes if not is_near(axis)]
    inner = [axis for axis in box.axes if is_near(axis)]
    while inner:
        size = box.width * prod(axis.extent for axis in inner)
        few = prod(axis.extent for axis in rows) < _FEW_ROWS
        if size <= (_SHARED_BYTES if few else _ROW_BYTES):
            break
        longest = max(inner, key=lambda axis: axis.extent)
        inner.remove(longest)
        rows.append(longest)
    # The driver joins rows along the innermost row axis, so a row alone may be small.
    size = box.width * prod(axis.extent for axis in inner)
    while rows and size * rows[-1].extent < _INNER_BYTES:
        inner.insert(0, rows.pop())
        size *= inner[0].extent
    if not gaps and (box.width < _RUN_BYTES or total < _ORDERED_BYTES):
        inner = list(loop_order(tuple(inner)))
    read_pages(rows, inner, 1, box.width, box.width)
    return Segment(tuple(rows), (box._replace(axes=tuple(inner)),))


def read_pages(rows: list[Axis], inner: list[Axis], streams: int, run: int, written: int) -> None:
    """Where the innermost loops read runs that lie pages apart, take those that follow each other from the rows.

    Lines pages apart share a set of the caches, so what is fetched behind each run would be gone before it is read.
    `streams` runs of `run` bytes are read and runs of `written` bytes written by what is in the loops.
    """
    total = streams * run * prod(axis.extent for axis in (*rows, *inner))
    k = len(inner)
    while k and inner[k - 1].src == run and not inner[k - 1].src_back:
        k -= 1
        run *= inner[k].extent
        written *= inner[k].extent if inner[k].dst == written else 1
    leaps = [axis for axis in inner[:k] if axis.src and axis.src % PAGE == 0]
    if 2 * total < _FAR_BYTES or run < _RUN_BYTES or streams * prod(axis.extent for axis in leaps) <= WAYS:
        return
    for at, axis in enumerate(rows):
        part = largest_part(axis.extent, min(PAGE // run, axis.extent // _FEW_ROWS))
        keeps = written >= _SHORT_BYTES or axis.dst % PAGE != 0
        if axis.src == run and not axis.tab and part > 1 and keeps:
            rows[at] = Axis(axis.extent // part, part * axis.src, part * axis.dst)
            inner.insert(k, axis._replace(extent=part))
            return


def leaves_gaps(box: Box) -> bool:
    """Whether runs of whole lines, in the order of the result, leave gaps in the source that are come back to when
    their lines are gone. In the order of the source, the result is a few streams that go on."""
    if box.lanes or box.width < _RUN_BYTES:
        return False
    inner = box.width
    for axis in reversed(box.axes):
        if abs(axis.src) < abs(box.axes[-1].src):
            return inner > _NEAR_BYTES
        inner *= axis.extent
    return False


def source_order(axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
    """From the order of the result to that of the source, but for loops within a page of it: their gaps stay near."""
    near = [axis for axis in axes if axis.extent * abs(axis.src) <= PAGE]
    far = [axis for axis in axes if axis.extent * abs(axis.src) > PAGE]
    return (*sorted(far, key=lambda axis: -abs(axis.src)), *near)


def is_near(axis: Axis) -> bool:
    """Whether neighbours along this axis share a line of the cache, on either side."""
    return 0 < min(abs(axis.src), abs(axis.dst)) < LINE


def loop_order(axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
    """Loops of one row: the longest innermost when the natural innermost one is too short to pay for its restart."""
    if len(axes) < 2 or axes[-1].extent >= 16:
        return axes
    longest = max(axes, key=lambda axis: axis.extent)
    if longest.extent < 2 * axes[-1].extent:
        return axes
    return (*(axis for axis in axes if axis is not longest), longest)


class Means(NamedTuple):
    """What kernels can do with tiles: run networks, store past the caches; do without for short rows; look bytes up.

    And what the processor does: whether it follows streams by itself.
    """

    networks: bool
    streams: bool
    short_rows: bool
    lines: bool
    moves: bool  # whether tiles are for plain moves too
    maps: bool  # whether streams of bytes are looked up without tiles
    tables: bool  # whether registers are for one lookup table each, where they can
    follows: bool  # whether nothing is fetched by software for networks
    bends: bool  # networks whose places are uneven on one side
    sweep: int = 0  # bytes of the shortest run worth storing past the caches
    shorter: int = 0  # bytes that runs of whole tiles may lack of it

    def for_lookup(self, lookup: str) -> "Means | None":
        return self if lookup or self.moves else None

    def for_result(self, nbytes: int) -> "Means":
        """The same for a result of this size: only large ones go past the caches."""
        sweep = next((run for size, run in reversed(_STREAM_BYTES) if nbytes >= size), 0)
        low, high = _SHORTER_BYTES
        shorter = _SHORTER_RUN if self.follows and low <= nbytes < high else 0
        return self._replace(streams=self.streams and sweep > 0, sweep=sweep, shorter=shorter)


def fits_tiles(box: Box) -> bool:
    return tile_of(box.axes, box.width, box.pattern, mapped=box.lookup == "line") is not None


Found = tuple[Tile | Network, tuple[Loop, ...]]  # a tile and its loops


def tile_for(box: Box, means: Means) -> Found | None:
    mapped = box.lookup == "line"
    return tile_of(
        box.axes, box.width, box.pattern, means.networks, mapped, means.tables, means.follows, means.bends
    )


def past_for(box: Box, means: Means) -> Found | None:
    """For the box of a whole move: a tile whose result can go past the caches, where that is to be."""
    if not means.streams or box.width >= _LONG_BYTES:
        return None
    if means.follows and leaves_gaps(box):  # copied in the order of the source, which the processor follows
        return None
    found = tile_for(box, means)
    assert found, "granules alone always fit"
    if next(tiled(box, means, found)).boxes[0].stream:
        return found
    return tile_past(box.axes, box.width, means.sweep)


def tiled(box: Box, means: Means, found: Found | None = None) -> Iterator[Segment]:
    """The segments of a box that moves as tiles, `found` or the cheapest; all but the first are what row axes leave."""
    if box.lookup:  # what looks bytes up is neither a network nor a stream
        means = means._replace(networks=False, streams=means.streams and box.lookup == "flip")
    found = found or tile_for(box, means)
    assert found, "asked of boxes that fit tiles alone"
    tile, loops = found[0], list(found[1])
    innermost = loops[-1] if loops else None
    size = box.width * len(box.pattern) * prod(axis.extent for axis in box.axes)
    rows: list[Axis] = []
    rest = []
    extents = [*(axis.extent for axis in box.axes), box.width]
    for of in dict.fromkeys(loop.of for loop in loops):  # an axis run in blocks may leave indices over
        covered = max(loop.axis.extent * loop.count for loop in loops if loop.of == of)
        if covered < extents[of]:
            rest.append((of, covered))
    while loops and size > _TILED_ROW_BYTES:
        axis, of, count = loops.pop(0)
        if axis.dst_back:  # rows are run by different threads: none may write what another writes
            axis = axis._replace(extent=axis.extent - 1, src_back=0, dst_back=0)
            rest.append((of, axis.extent * count))
        rows.append(axis)
        size //= axis.extent
    inner = [loop.axis for loop in loops]
    stream = 0
    if means.streams and tile.is_sequence([*rows[-1:], *inner]):
        stream = SEQUENCE
    elif means.streams and innermost and tile.fills_lines(innermost.axis):
        run = innermost.axis.dst * innermost.axis.extent
        if not (means.follows or box.lookup or innermost.axis.dst_back):  # a loop around it may go on where it ends
            run *= prod(axis.extent for axis in (*rows[-1:], *inner[:-1]) if axis.dst == run and not axis.dst_back)
        if run >= means.sweep - (0 if innermost.axis.dst_back else means.shorter):
            stream = innermost.count
    if not stream:
        streams, pieces = tile.src.runs()
        read_pages(rows, inner, streams, pieces * tile.src.width, tile.dst.runs()[1] * tile.dst.width)
    tiles = box._replace(axes=tuple(inner), width=tile.nbytes, tile=tile, stream=stream)
    yield Segment(tuple(axis for axis in rows if axis.extent > 1), (tiles,))
    for of, start in rest:
        yield from tiled(cut_axis(box, of, start), means)
        box = cut_axis(box, of, 0, start)


def cut_axis(box: Box, of: int, start: int, stop: int | None = None) -> Box:
    """A box with the indices from `start` to `stop` of one axis; the granule's bytes are the last axis."""
    if of == len(box.axes):
        width = (box.width if stop is None else stop) - start
        return box._replace(width=width, src_offset=box.src_offset + start, dst_offset=box.dst_offset + start)
    axis = box.axes[of]
    axes = list(box.axes)
    axes[of] = axis._replace(extent=(axis.extent if stop is None else stop) - start)
    return box._replace(
        axes=tuple(axes),
        src_offset=box.src_offset + start * axis.src,
        dst_offset=box.dst_offset + start * axis.dst,
        tab_offset=box.tab_offset + start * axis.tab,
    )


def largest_part(extent: int, most: int) -> int:
    """The largest divisor of `extent` up to `most`, at least 1."""
    return next(part for part in range(max(1, min(extent, most)), 0, -1) if extent % part == 0)


def even_parts(extent: int, most: int) -> Iterator[tuple[int, int, int]]:
    """Cut an axis into parts of at most `most` indices: ``(start, count, size)`` of those that are of one size.

    They all are where a divisor is more than half of what fits. Else, as for twice a prime, the last part is smaller.
    """
    most = max(1, min(extent, most))
    size = largest_part(extent, most)
    if 2 * size <= most:
        size = -(-extent // -(-extent // most))
    count, left = divmod(extent, size)
    yield 0, count, size
    if left:
        yield count * size, 1, left


def widened(box: Box) -> Box:
    """The box with a granule of pages where runs are too long for one granule: no tile copies those as fast."""
    if not box.axes or len(box.pattern) > 1:
        return box
    last = box.axes[-1]
    if (last.src, last.dst, last.tab) != (box.width, box.width, 0):
        return box
    part = largest_part(last.extent, _GRANULE_BYTES // box.width)
    if part <= PAGE // box.width:
        return box
    width = part * box.width
    axes = (*box.axes[:-1], Axis(last.extent // part, width, width))
    return box._replace(width=width, axes=axes)


def in_short_rows(box: Box) -> bool:
    """Whether a box of granules merges or splits streams in rows of 17 to 31 bytes, each row behind the one before.

    Kernels for streams take such a row in one step that runs past its end; tiles would need masks.
    """
    width = box.width
    for streams, widths in _SHORT_STREAMS.items():
        for far, near in ((1, 2), (2, 1)):  # src and dst of an axis
            run = next((axis for axis in box.axes if (axis[far], axis[near]) == (streams * width, width)), None)
            if run and width in widths and 16 < run.extent * width < 32:
                woven = any(axis[far] == width and axis.extent == streams for axis in box.axes)
                return woven and any(axis.dst == run.dst * run.extent for axis in box.axes)
    return False


def in_parts(boxes: list[Box]) -> list[Box]:
    """The boxes of a row, cut where they are large so that none takes long."""
    return [part for box in boxes for part in cut_loops(box)]


def cut_loops(box: Box) -> Iterator[Box]:
    """A box in parts of about `_BOX_BYTES` of its source, along its longest loops. Any loop will do: a box that looks
    bytes up or converts them counts its constants along, and of tiles, only a loop's last turn goes back."""
    extents = [axis.extent for axis in box.axes]
    size = box.width * prod(extents)
    if size <= 2 * _BOX_BYTES or max(extents, default=1) == 1:
        yield box
        return
    k = extents.index(max(extents))
    most = max(1, _BOX_BYTES * extents[k] // size)
    for start in range(0, extents[k], most):
        part = cut_axis(box, k, start, min(start + most, extents[k]))
        if start + most < extents[k]:  # only the last turn goes back
            axes = list(part.axes)
            axes[k] = axes[k]._replace(src_back=0, dst_back=0)
            part = part._replace(axes=tuple(axes))
        yield from cut_loops(part)


def by_table(box: Box) -> Iterator[Box]:
    """A box for each lookup table where tables are counted along planes: a tile goes through the same ones always. And
    one for each fill value, for which kernels have a loop of their own."""
    for k, axis in enumerate(box.axes):
        if (axis.tab and min(abs(axis.src), abs(axis.dst)) >= LINE) or (box.source == F and axis.src):
            rest = box.axes[:k] + box.axes[k + 1:]
            for i in range(axis.extent):
                moved = box._replace(
                    axes=rest,
                    src_offset=box.src_offset + i * axis.src,
                    dst_offset=box.dst_offset + i * axis.dst,
                    tab_offset=box.tab_offset + i * axis.tab,
                )
                yield from by_table(moved)
            return
    yield box


def is_far_run(box: Box, means: Means) -> bool:
    """Whether granules are better copied as they are where the result is beyond the caches of a core: those that leave
    gaps, and whole lines where tiles write no more than a granule in one run."""
    if leaves_gaps(box):
        return True
    if box.width < _RUN_BYTES or box.width % LINE:
        return False
    found = tile_for(box, means)
    assert found, "granules alone always fit"
    return found[0].dst.runs()[0] != 1 or found[0].nbytes <= box.width


def is_run(box: Box) -> bool:
    """Whether bytes that lie one after the other go through one table, where `by_table` has told tables apart."""
    return bool(box.lookup) and box.width >= LINE


def direct(move: Move, tiles: Means | None, nbytes: int) -> Plan:
    """A plan of one move that writes `nbytes`."""
    if not tiles or move.lookup == "table":
        move = move._replace(lookup=move.lookup and "table")
        return Plan(tuple(segment_of(box) for box in boxes_of(move)), 0)
    window = thin_window(move)
    if window:
        counted = counted_plan(move, window, tiles, nbytes)
        if counted:
            return counted
    boxes = list(tile_boxes(move))
    boxes = [part for box in boxes for part in (by_table(box) if box.lookup else (box,))]
    if any(not fits_tiles(box) for box in boxes if box.lookup):
        return direct(move._replace(lookup="table"), tiles, nbytes)
    return Plan(tuple(moved(boxes, tiles, nbytes)), 0)


def moved(boxes: list[Box], tiles: Means, nbytes: int) -> Iterator[Segment]:
    """The segments of boxes that write `nbytes` in all."""
    tiles = tiles.for_result(nbytes)
    for box in boxes:
        box = box if tiles.streams else widened(box)
        size = box.width * prod(axis.extent for axis in box.axes)
        plain = not box.lookup and len(box.pattern) == 1
        scrap = len(boxes) > _MANY_BOXES and size < _SCRAP_BYTES
        short = tiles.short_rows and in_short_rows(box)
        far = nbytes >= _FAR_BYTES
        past = past_for(box, tiles) if plain and len(boxes) == 1 else None
        if past:
            yield from tiled(box, tiles, past)
        elif plain and (box.width >= _WIDE_BYTES or scrap or short or (far and is_far_run(box, tiles))):
            yield segment_of(box)
        elif tiles.maps and is_run(box):
            run = Axis(box.width, 1, 1)
            yield segment_of(box._replace(width=1, axes=(*box.axes, run)))
        else:
            yield from tiled(box, tiles)


def without_rows(segments: Iterable[Segment]) -> Iterator[Box]:
    """The boxes of segments, for a row that runs several: loops over rows are loops of each box."""
    for rows, boxes in segments:
        for box in boxes:
            yield box._replace(axes=(*rows, *box.axes))


# ------------------------------------------------------------------------------------------- cut blocks
#
# Where elements of a line of space are neighbours in the block tensor too, a window that cuts blocks leaves edges of
# an element or two of each line, in boxes of their own: as much work as whole tiles, in lines of the cache that went
# by before. Blocks are then counted from the first element inside on, or a short line is one pattern; and all boxes of
# a few planes are run before those of the next.


def run_of(move: Move, digits: tuple[str, ...]) -> int:
    """Bytes that are neighbours on both sides within one place of a window."""
    run = move.width
    while True:
        inner = [atom for name, atom in move.atoms.items() if name not in digits and atom.extent > 1]
        inner = [atom for atom in inner if (atom.src, atom.dst) == (run, run)]
        if not inner:
            return run
        run *= inner[0].extent


def thin_window(move: Move) -> Window | None:
    """The window that cuts blocks of a line whose elements are neighbours on both sides, if there is one."""
    kinds = {window.outside for window in move.windows}
    if move.lookup or kinds not in ({"skip"}, {"pad"}) or any(atom.pad for atom in move.atoms.values()):
        return None
    for window in move.windows:
        if len(window.digits) != 2:
            continue
        outer, inner = (move.atoms[digit] for digit in window.digits)
        block, run = inner.extent, run_of(move, window.digits)
        # Of the space tensor, the steps of a block and of an element; of the block tensor, that of a block.
        sides = ((outer.src, inner.src, outer.dst), (outer.dst, inner.dst, outer.src))
        is_line = any(near == run == other and far == block * near for far, near, other in sides)
        cuts = window.lo % block or window.hi % block or window.outside == "pad"
        # With one block, padding has whole planes of its own; and where it is most of a line, long runs.
        mixed = window.outside != "pad" or (outer.extent > 1 and 2 * (window.hi - window.lo) >= outer.extent * block)
        if is_line and cuts and (has_thin_blocks(move, window) or (mixed and is_short(move, window))):
            return window
    return None


def has_thin_blocks(move: Move, window: Window) -> bool:
    """Whether edges of lines would be boxes of a few bytes each, in lines too short to make up for them."""
    block, run = move.atoms[window.digits[1]].extent, run_of(move, window.digits)
    return block * run <= _THIN_BYTES and (window.hi - window.lo) * run <= _LINE_BYTES


def span_of(move: Move, window: Window) -> tuple[int, int]:
    """What of a line is written, padding with it."""
    total = prod(move.atoms[digit].extent for digit in window.digits)
    return (0, total) if window.outside == "pad" else (window.lo, window.hi)


def is_short(move: Move, window: Window) -> bool:
    """Whether a line may be one pattern."""
    start, stop = span_of(move, window)
    return (stop - start) * run_of(move, window.digits) <= _PATTERN_BYTES


def counted_boxes(move: Move, window: Window) -> Iterator[Box]:
    """The boxes of a move, those inside `window` with its blocks counted from its own start."""
    outer, inner = (move.atoms[digit] for digit in window.digits)
    block, total = inner.extent, outer.extent * inner.extent
    pads = window.outside == "pad"

    def part(ranges: Ranges, what: str, lo: int, hi: int) -> Iterator[Box]:
        for digits in split_range((outer.extent, block), lo, hi):
            yield box_of(move, what, {**ranges, **dict(zip(window.digits, digits))})

    def pattern(ranges: Ranges, lo: int, hi: int, turns: int = 1) -> Box:
        around = {**ranges, window.digits[0]: (0, 1), window.digits[1]: (0, 1)}
        box = box_of(move, "copy", around)
        width = box.width if window.lo <= lo and hi <= window.hi else move.width  # fill values have one element each
        entries: list[Entry] = []
        for number in range(lo, hi):
            i, j = divmod(number, block)
            src, dst = (i * outer[k] + j * inner[k] for k in (1, 2))
            seen = window.lo <= number < window.hi
            for at in range(0, box.width, width):
                entries.append((src + at, dst + at, 0, 0) if seen else (None, dst + at, move.width, 0))
        width, loops = canonical([*box.axes, Axis(turns, outer.src, outer.dst)], width, grow=False)
        return pattern_of(box._replace(width=width, axes=loops, pattern=tuple(entries)))

    for what, ranges in parts_of(move._replace(windows=tuple(other for other in move.windows if other is not window))):
        if what != "copy":
            yield box_of(move, what, ranges)
            continue
        if is_short(move, window):
            line = pattern(ranges, *span_of(move, window))
            if fits_tiles(line):
                yield line
                continue
        if pads:
            yield from part(ranges, "pad", 0, window.lo)
            yield from part(ranges, "pad", window.hi, total)
        turns = (window.hi - window.lo) // block
        if window.lo % block == 0 or turns == 0:
            yield from part(ranges, "copy", window.lo, window.hi)
        else:
            yield pattern(ranges, window.lo, window.lo + block, turns)
            yield from part(ranges, "copy", window.lo + turns * block, window.hi)


def shared_rows(move: Move, nbytes: int) -> Iterator[tuple[tuple[Axis, ...], Move, int]]:
    """Rows of a few planes, the move of one of them, and how many bytes that writes; then what planes are left over."""
    digits = {digit for window in move.windows for digit in window.digits}
    free = [name for name, atom in move.atoms.items() if name not in digits and atom.extent > 1]
    planes = [name for name in free if min(abs(move.atoms[name].src), abs(move.atoms[name].dst)) >= LINE]
    rows: list[Axis] = []
    atoms = dict(move.atoms)
    parts = []
    for name in sorted(planes, key=lambda name: -abs(atoms[name].dst)):
        atom = atoms[name]
        nbytes //= atom.extent
        (_, count, high), *rest = even_parts(atom.extent, _SHARED_ROW_BYTES // max(1, nbytes))
        for start, _, left in rest:
            few = move._replace(
                atoms=atoms | {name: atom._replace(extent=left)},
                src_offset=move.src_offset + start * atom.src, dst_offset=move.dst_offset + start * atom.dst,
            )  # fmt: skip
            parts.append((list(rows), few, left * nbytes))
        rows.append(Axis(count, high * atom.src, high * atom.dst))
        atoms[name] = atom._replace(extent=high)
        nbytes *= high
        if high > 1:
            break
    for outers, inner, size in ((rows, move._replace(atoms=atoms), nbytes), *parts):
        yield tuple(axis for axis in outers if axis.extent > 1), inner, size


def counted_plan(move: Move, window: Window, tiles: Means, nbytes: int) -> Plan | None:
    """A plan with the blocks of `window` counted from its own start, or None where that is too much for tiles."""
    boxes = list(counted_boxes(move, window))
    if any(len(box.pattern) > 1 and not fits_tiles(box) for box in boxes):
        return None
    # Blocks that are not thin are counted for the sake of whole lines alone.
    if not has_thin_blocks(move, window) and any(box.source != F and len(box.pattern) == 1 for box in boxes):
        return None
    (rows, _, size), *_ = parts = list(shared_rows(move, nbytes))
    if len(boxes) == 1 or not rows or size > _MOST_ROW_BYTES:
        return Plan(tuple(moved(boxes, tiles, nbytes)), 0)
    segments = []
    for rows, inner, _ in parts:
        few = moved(list(counted_boxes(inner, window)), tiles, 0)
        segments.append(Segment(rows, tuple(without_rows(few))))
    return Plan(tuple(segments), 0)


# ------------------------------------------------------------------------------------------------ channels


def cut_deep(digits: list[tuple[str, int]], lanes: int) -> dict[str, int] | None:
    """Where a word of `lanes` ends inside the digits of the deep channel.

    Returns ``{digit: cut}`` with the digit to split and the size of its low part, empty when the boundary falls
    between two digits, or None when words straddle groups of channels so that no single move can pack them.
    """
    low = 1  # product of the digits below, which divides lanes
    for position in range(len(digits) - 1, -1, -1):
        name, extent = digits[position]
        if low == lanes:
            return {}
        top = all(above == 1 for _, above in digits[:position])
        if top and name == "c":  # only the topmost digit may leave its last word ragged
            return {name: lanes // low}
        if lanes % (low * extent) == 0:
            low *= extent
            continue
        if extent % (lanes // low) == 0:
            return {name: lanes // low}
        return None
    return {} if low == lanes else None


def digit_atoms(extent: int, cuts: list[int]) -> list[tuple[int, int]] | None:
    """Split a digit at `cuts`: ``[(weight, extent)]``, most significant first; the top part rounds up."""
    atoms = []
    low = 1
    for cut in sorted({cut for cut in cuts if cut > 1}):
        if cut % low:
            return None
        atoms.append((low, cut // low))
        low = cut
    atoms.append((low, words(extent, low)))
    return atoms[::-1]


def channel_step(steps: dict[str, int], weight: int, lanes: int) -> int:
    """Byte step for `weight` channels in a plain (lanes = 0) or packed tensor."""
    if not lanes:
        return weight * steps["c"]
    return weight // lanes * steps["cb"] if weight >= lanes else weight * steps["v"]


# --------------------------------------------------------------------------------------- the depth operators


def plan_depth(problem: DepthProblem, *, tiles: Means | None = None) -> Plan:
    """Plan a space-to-depth or depth-to-space call; `tiles` says what the kernels can do with tiles, if anything."""
    if 0 in problem.dst_shape:
        return Plan((), 0)
    known, tiles = tiles, tiles and tiles.for_lookup(problem.lookup)
    if problem.lookup == "line" and not (tiles and tiles.lines):
        problem = problem._replace(lookup="table")
    if problem.staged:
        return _depth_converted(problem, tiles)
    if tiles and tiles.maps and (_splits_planes(problem) or _keeps_order(problem) or _turns_rows(problem)):
        return _depth_mapped(problem)
    move = _depth_move(problem)
    # A move has a box for each turn of the block's offsets, the spare lanes of the turn with it: bytes apart in a word.
    apart = move and prod(problem.block) > 1 and any(window.outside == "lane" for window in move.windows)
    if known and (apart or not move) and (pattern := _depth_pattern(problem, known)):
        return pattern
    return direct(move, tiles, prod(problem.dst_shape) * problem.itemsize) if move else _depth_chain(problem, tiles)


def _deep_digits(p: DepthProblem) -> tuple[list[tuple[str, int]], dict[str, int]]:
    """Digits of the deep channel with their extents, most significant first, and what one step of each weighs."""
    block = dict(zip(p.source.spatial, p.block))
    digits = [(name, block.get(name, p.channels)) for name in deep_digits(p.mode, p.source.spatial)]
    weights = {name: prod(extent for _, extent in digits[i + 1:]) for i, (name, _) in enumerate(digits)}
    return digits, weights


def _shallow_steps(p: DepthProblem, space: dict[str, int], weight: int, lanes: int) -> tuple[int, int, int]:
    """Byte steps for `weight` shallow channels: in the space tensor, in the pad values, in the lookup tables."""
    step = channel_step(space, weight, lanes)
    return (
        -step if p.reverse else step,
        weight * p.itemsize if p.pads > 1 else 0,
        256 * weight if p.tables > 1 else 0,
    )


def _first_channel(p: DepthProblem, space: dict[str, int]) -> int:
    """Byte offset of the channel that is read first."""
    return (p.channels - 1) * space["c"] if p.reverse else 0


def _depth_move(p: DepthProblem) -> Move | None:
    """The whole operator as one move, or None where packing words straddle groups of channels."""
    spatial = p.source.spatial
    src = dict(zip(p.source.axes, p.steps))
    dst = dict(zip(p.target.axes, contiguous_steps(p.dst_shape, p.itemsize)))
    space, deep = (src, dst) if p.to_depth else (dst, src)
    space_lanes, deep_lanes = (p.src_lanes, p.dst_lanes) if p.to_depth else (p.dst_lanes, p.src_lanes)

    digits, weights = _deep_digits(p)
    cuts = cut_deep(digits, deep_lanes) if deep_lanes else {}
    if cuts is None:
        return None
    c_atoms = digit_atoms(p.channels, [space_lanes, cuts.get("c", 1)])
    if c_atoms is None:
        return None

    def atom(extent: int, space_step: int, deep_step: int, pad: int = 0, tab: int = 0) -> Atom:
        ends = (space_step, deep_step) if p.to_depth else (deep_step, space_step)
        return Atom(extent, *ends, pad, tab)

    atoms = {"n": atom(p.batch, space["n"], deep["n"])}
    windows = []
    space_offset = 0
    for i, name in enumerate(spatial):
        b = p.block[i]
        atoms[name] = atom(p.blocks[i], b * space[name], deep[name])
        names = [name]
        offset_atoms = digit_atoms(b, [cuts.get(name, 1)])
        assert offset_atoms is not None, "one cut is never in the way of another"
        for weight, extent in offset_atoms:
            names.append(f"{name}%{weight}")
            deep_step = channel_step(deep, weight * weights[name], deep_lanes)
            atoms[names[-1]] = atom(extent, weight * space[name], deep_step)
        space_offset -= p.lo[i] * space[name]
        if p.space[i] != b * p.blocks[i]:
            windows.append(Window(tuple(names), p.lo[i], p.lo[i] + p.space[i], "pad" if p.to_depth else "skip"))

    for weight, extent in c_atoms:
        deep_step = channel_step(deep, weight * weights["c"], deep_lanes)
        step, pad, tab = _shallow_steps(p, space, weight, space_lanes)
        atoms[f"c%{weight}"] = atom(extent, step, deep_step, pad, tab)
    channels = tuple(f"c%{weight}" for weight, _ in c_atoms)
    space_offset += _first_channel(p, space)

    slots = p.channels  # how many values of the channel atoms have a place in the result
    unit = weights["c"] if p.to_depth else 1  # lanes of the result that one channel fills
    topmost = not p.to_depth or unit == prod(p.block)
    if p.dst_lanes and topmost:
        slots = words(p.channels * unit, p.dst_lanes) * p.dst_lanes // unit
    reach = prod(extent for _, extent in c_atoms)
    if slots > p.channels:
        windows.append(Window(channels, 0, p.channels, "lane", slots))
    elif reach > slots:
        windows.append(Window(channels, 0, slots, "skip"))

    offsets = (space_offset, 0) if p.to_depth else (0, space_offset)
    return Move(X, Y, p.itemsize, atoms, tuple(windows), *offsets, lookup=p.lookup)


class _Region(NamedTuple):
    """Blocks of one axis whose offsets are cut alike by the window: ``start <= xb < stop``, ``lo <= offset < hi``."""

    start: int
    stop: int
    lo: int
    hi: int


def _regions(blocks: int, block: int, lo: int, extent: int) -> list[_Region]:
    hi = lo + extent
    edges = sorted({0, blocks, lo // block, -(-lo // block), hi // block, -(-hi // block)})
    regions = []
    for start, stop in pairwise(edges):
        first, last = max(0, lo - start * block), min(block, hi - start * block)
        regions.append(_Region(start, stop, first, last) if first < last else _Region(start, stop, 0, 0))
    return regions


def _depth_pattern(p: DepthProblem, tiles: Means) -> Plan | None:
    """The operator as tiles whose pattern is a whole block with all its channels, or None where that is too much."""
    spatial = p.source.spatial
    src = dict(zip(p.source.axes, p.steps))
    dst = dict(zip(p.target.axes, contiguous_steps(p.dst_shape, p.itemsize)))
    space, deep = (src, dst) if p.to_depth else (dst, src)
    space_lanes, deep_lanes = (p.src_lanes, p.dst_lanes) if p.to_depth else (p.dst_lanes, p.src_lanes)
    count = p.channels * prod(p.block)
    slots = words(count, p.dst_lanes) * p.dst_lanes if p.to_depth else count
    if p.lookup == "table" or slots * p.itemsize > TILE or (1 + p.pads) * p.itemsize > 127:
        return None
    digits, weights = _deep_digits(p)
    extents = dict(digits)
    spare = words(p.channels, p.dst_lanes) * p.dst_lanes if p.dst_lanes and not p.to_depth else p.channels

    segments: list[Segment] = []
    for regions in product(*(_regions(*axis) for axis in zip(p.blocks, p.block, p.lo, p.space))):
        entries: list[Entry] = []
        rows: list[int] = []  # of the block, that the entries come from
        for slot in range(slots):
            index = {name: slot // weights[name] % extents[name] for name, _ in digits}
            inside = slot < count
            deep_offset = lane_offset(deep, slot, deep_lanes)
            space_offset = lane_offset(space, index["c"], space_lanes)
            space_offset = -space_offset if p.reverse else space_offset
            seen = True
            for name, region in zip(spatial, regions):
                space_offset += index[name] * space[name]
                seen = seen and region.lo <= index[name] < region.hi
            fill = 0 if not inside else p.itemsize * (1 + (index["c"] if p.pads > 1 else 0))
            table = index["c"] if p.tables > 1 else 0
            if p.to_depth:
                entries.append((space_offset if inside and seen else None, deep_offset, fill, table))
                rows.append(index["h"])
            elif seen:
                entries.append((deep_offset, space_offset, 0, table))
        for c in range(p.channels, spare):  # spare lanes of the space tensor
            for offsets in product(*(range(region.lo, region.hi) for region in regions)):
                place = sum(offset * space[name] for name, offset in zip(spatial, offsets))
                entries.append((None, place + lane_offset(space, c, space_lanes), 0, 0))
        if not entries:
            continue
        space_offset, deep_offset = _first_channel(p, space), 0
        axes = [Axis(p.batch, src["n"], dst["n"])]
        for name, b, lo, region in zip(spatial, p.block, p.lo, regions):
            steps = (b * space[name], deep[name])
            axes.append(Axis(region.stop - region.start, *(steps if p.to_depth else steps[::-1])))
            space_offset += (region.start * b - lo) * space[name]
            deep_offset += region.start * deep[name]
        offsets = (space_offset, deep_offset) if p.to_depth else (deep_offset, space_offset)
        _, loops = canonical(axes, p.itemsize, grow=False)
        read = p.to_depth and any(entry[0] is not None for entry in entries)
        parts = by_words(entries, rows, p.dst_lanes) if read else [entries]
        boxes = [pattern_of(Box(X, Y, *offsets, p.itemsize, loops, p.lookup, pattern=tuple(part))) for part in parts]
        if not all(map(fits_tiles, boxes)):
            return None
        for box in boxes:
            made = list(tiled(box, tiles.for_result(prod(p.dst_shape) * p.itemsize)))
            if not p.lookup and not tiles.moves and not all(map(is_swept, made)):
                return None
            segments += made
    return Plan(tuple(segments), 0)


def is_swept(segment: Segment) -> bool:
    """Whether tiles that are for lookups are quicker than two moves at words that straddle groups of channels."""
    return all(
        isinstance(box.tile, Tile)
        and 0 < box.tile.windows() <= _SWEPT_WINDOWS
        and all(abs(inner.src) < _SWEPT_STEP for inner in box.axes[-1:])
        for box in segment.boxes
    )


def by_words(entries: list[Entry], rows: list[int], lanes: int) -> list[list[Entry]]:
    """The entries of a block, apart where whole words come from one row of it: rows are far from each other."""
    words_of = [entries[k:k + lanes] for k in range(0, len(entries), lanes)]
    rows_of = [set(rows[k:k + lanes]) for k in range(0, len(entries), lanes)]
    if max(map(len, rows_of)) > 1:
        return [entries]
    parts: dict[int, list[Entry]] = {}
    for word, (row,) in zip(words_of, rows_of):
        parts.setdefault(row, []).extend(word)
    return list(parts.values())


def pattern_of(box: Box) -> Box:
    """A box of a pattern; where nothing of it is read, its fill values are the source."""
    if any(entry[0] is not None for entry in box.pattern):
        return box
    loops = tuple(axis._replace(src=0) for axis in box.axes)
    pattern = tuple((fill, target, 0, 0) for _, target, fill, _ in box.pattern)
    return box._replace(source=F, src_offset=0, lookup="", axes=loops, pattern=pattern)


def lane_offset(steps: dict[str, int], channel: int, lanes: int) -> int:
    """Byte offset of a channel in a plain (lanes = 0) or packed tensor."""
    if not lanes:
        return channel * steps["c"]
    return channel // lanes * steps["cb"] + channel % lanes * steps["v"]


def _depth_chain(p: DepthProblem, tiles: Means | None) -> Plan:
    """The operator as two moves through a scratch row that holds the deep channels unpacked.

    A row is one n, some hb, and as many wb as fit in the scratch; space -> scratch -> packed block tensor, or back.
    Only words come here, whose layout has two spatial axes.
    """
    src = dict(zip(p.source.axes, p.steps))
    dst = dict(zip(p.target.axes, contiguous_steps(p.dst_shape, p.itemsize)))
    deep = p.channels * prod(p.block)
    most = max(1, _SCRATCH_BYTES // (deep * p.itemsize))
    # Byte steps of one block, on the source and on the destination.
    src_h, src_w = (src[name] * (b if p.to_depth else 1) for name, b in zip("hw", p.block))
    dst_h, dst_w = (dst[name] * (1 if p.to_depth else b) for name, b in zip("hw", p.block))
    segments = []
    sizes = []
    for regions in product(*(_regions(*axis) for axis in zip(p.blocks, p.block, p.lo, p.space))):
        empty = any(region.lo >= region.hi for region in regions)
        if empty and not p.to_depth:
            continue
        tall, wide = regions
        whole, rest = divmod(wide.stop - wide.start, most)
        for start, count, size in ((wide.start, whole, most), (wide.start + whole * most, 1, rest)):
            if not size or not count:
                continue
            joined = _JOINED_BYTES // (deep * size * p.itemsize)
            for above, times, high in even_parts(tall.stop - tall.start, joined):
                rows = (
                    Axis(p.batch, src["n"], dst["n"]),
                    Axis(times, src_h * high, dst_h * high),
                    Axis(count, size * src_w, size * dst_w),
                )
                src_offset = (tall.start + above) * src_h + start * src_w
                dst_offset = (tall.start + above) * dst_h + start * dst_w
                gather, scatter = _chained_moves(p, regions, high, size, src, dst, src_offset, dst_offset)
                boxes = tuple(in_parts([*_chained_boxes(gather, tiles), *_chained_boxes(scatter, tiles)]))
                segments.append(Segment(tuple(axis for axis in rows if axis.extent != 1), boxes))
                sizes.append(deep * high * size * p.itemsize)
    return Plan(tuple(segments), max(sizes))


def _chained_boxes(move: Move, tiles: Means | None) -> Iterator[Box]:
    """The boxes of a move to or from scratch, where no box has rows of its own."""
    tiles = tiles and tiles.for_lookup(move.lookup)
    if not tiles or move.lookup:
        for box in boxes_of(move):
            yield box._replace(axes=loop_order(box.axes))
        return
    yield from without_rows(direct(move, tiles, 0).segments)


def _splits_planes(p: DepthProblem) -> bool:
    """Whether frames of interleaved channels, or planes whose lines are split, become planes of deep channels."""
    if not p.to_depth or p.lookup not in ("flip", "line") or p.target.axes != ("n", "c", "h", "w"):
        return False
    if p.source.axes == ("n", "h", "w", "c"):
        return p.channels * p.block[1] > 1
    split = p.block[1] in _MAPPED[1:] and p.blocks[1] >= _MAPPED_RUN
    return p.source.axes == p.target.axes and split and p.steps[3] == 1


def _keeps_order(p: DepthProblem) -> bool:
    """Whether pixels with interleaved channels stay as they are, and kernels map as many of these side by side."""
    ordered = p.source.axes == p.target.axes == ("n", "h", "w", "c") and prod(p.block) == 1 and not p.reverse
    few = p.tables == 1 or p.channels in _MAPPED
    return ordered and p.steps[2:] == (p.channels, 1) and few and p.lookup in ("flip", "line")


def _turns_rows(p: DepthProblem) -> bool:
    """Whether interleaved channels of two rows become those of one, or back, and nothing but bits are turned: kernels
    have a pattern for that, where so many bytes are repeats of it."""
    interleaved = p.source.axes == p.target.axes == ("n", "h", "w", "c") and p.block[0] == 2 and not p.reverse
    deep, width = p.channels * prod(p.block), p.blocks[1] * p.block[1]
    most = _PATTERN // 4 if p.mode == "CRD" else _PATTERN // 2  # where all bytes change places, no vector has so many
    repeats = deep <= most and _PATTERN % deep == 0 and p.blocks[1] * deep >= 2 * _PATTERN
    close = p.steps[2:] == (p.channels if p.to_depth else deep, 1)
    return interleaved and close and repeats and (p.lo[1], p.space[1]) == (0, width) and p.lookup == "flip"


def _depth_mapped(p: DepthProblem) -> Plan:
    """Frames to planes, for kernels that see streams in single bytes, of which tiles would have too little of each; or
    frames as they are and their blocks, of which tiles would write a part of a line and come back for the others."""
    segments = []
    move = _depth_move(p._replace(lookup="table"))
    assert move, "without words there is always one"
    for box in boxes_of(move):
        # Padding: fill values channel by channel, for there each is one byte, repeated.
        segments += [segment_of(part) for part in by_table(box._replace(lookup=box.lookup and p.lookup))]
    return Plan(tuple(segments), 0)


def _depth_converted(p: DepthProblem, tiles: Means | None) -> Plan:
    """Frames of another element width: some rows are converted to scratch, and go from there to their places."""
    blocks = _line_blocks(p)
    plans = []
    for start in range(0, p.blocks[1], blocks):
        count = min(blocks, p.blocks[1] - start)
        first = min(max(start * p.block[1] - p.lo[1], 0), p.space[1])
        end = min(max((start + count) * p.block[1] - p.lo[1], 0), p.space[1])
        part = p._replace(
            blocks=(p.blocks[0], count), lo=(p.lo[0], max(p.lo[1] - start * p.block[1], 0)),
            space=(p.space[0], end - first),
        )  # fmt: skip
        plans.append(_converted_lines(part, tiles, first, start))
    return Plan(tuple(segment for plan in plans for segment in plan.segments), max(plan.scratch for plan in plans))


def _line_blocks(p: DepthProblem) -> int:
    """How many blocks of a line are converted before Ctrl-C is looked at; all but of the longest lines."""
    block = p.channels * prod(p.block) * p.itemsize
    line = block * p.blocks[1]
    most = max(_ROW_BYTES, line // _LINE_PARTS)
    return p.blocks[1] if line <= most else max(1, most // block)


def _converted_lines(p: DepthProblem, tiles: Means | None, column: int, block: int) -> Plan:
    """... those of a part of the lines, which begins so far in the source, and so far in the result."""
    src = dict(zip(p.source.axes, p.steps))
    dst = dict(zip(p.target.axes, contiguous_steps(p.dst_shape, p.itemsize)))
    plain = p._replace(tables=0, lookup="", reverse=False, staged=0)
    segments: list[Segment] = []
    sizes = []
    for region in _regions(p.blocks[0], p.block[0], p.lo[0], p.space[0]):
        height = region.hi - region.lo  # rows of a block that there are
        wide = p.channels * p.space[1] * p.itemsize
        start = region.start
        while start < region.stop:
            left = region.stop - start
            high = 1 if height < p.block[0] else max(1, min(left, _STAGED_BYTES // max(1, height * wide)))
            count = left // high
            rows = high * height
            steps = _scratch_steps(p, rows)
            inner = plain._replace(
                steps=tuple(steps[axis] for axis in p.source.axes), batch=1, blocks=(high, p.blocks[1]),
                lo=(region.lo, p.lo[1]), space=(rows, p.space[1]),
            )  # fmt: skip
            first = (start * p.block[0] + region.lo - p.lo[0]) * src["h"] + column * src["w"] + _first_channel(p, src)
            boxes = [_conversion(p, src, steps, rows, first)] if rows * wide else []
            moves, size = _scratch_moves(inner, tiles, rows * wide, start * dst["h"] + block * dst["w"])
            boxes, moves = in_parts(boxes), in_parts(moves)
            row_axes = [
                Axis(p.batch, src["n"], dst["n"]),
                Axis(count, high * p.block[0] * src["h"], high * dst["h"]),
            ]
            row_axes = [axis for axis in row_axes if axis.extent != 1]
            if any(box.target == T for box in (*boxes, *moves)):
                segments.append(Segment(tuple(row_axes), (*boxes, *moves)))
            else:  # padding alone, and nothing chained
                still = tuple(axis._replace(src=0) for axis in row_axes)
                segments += [Segment(still, (box,)) for box in moves]
            sizes.append(size)
            start += count * high
    return Plan(tuple(segments), max(sizes))


def _scratch_steps(p: DepthProblem, rows: int) -> dict[str, int]:
    """Steps of rows in scratch: channels one behind the other, or in planes where the frames have long runs of them."""
    planes = p.source.axes[1] == "c" and rows * p.space[1] >= _PLANE_RUN
    order = "chw" if planes else "hwc"
    extents = {"c": p.channels, "h": rows, "w": p.space[1]}
    return {"n": 0, **dict(zip(order, contiguous_steps(tuple(extents[axis] for axis in order), p.itemsize)))}


def _conversion(p: DepthProblem, src: dict[str, int], to: dict[str, int], rows: int, first: int) -> Box:
    """The box that converts rows of frames."""
    step, _, table = _shallow_steps(p, src, 1, 0)
    loops = (
        Axis(rows, src["h"], to["h"]), Axis(p.space[1], src["w"], to["w"]), Axis(p.channels, step, to["c"], table),
    )  # fmt: skip
    return Box(X, T, first, 0, p.staged, loops, "stage")


def _scratch_moves(inner: DepthProblem, tiles: Means | None, base: int, dst_offset: int) -> tuple[list[Box], int]:
    """Boxes from `base` bytes of scratch to the result, and how much scratch they need in all."""
    plan = plan_depth(inner, tiles=tiles and tiles._replace(streams=False))
    moves = []
    for segment in plan.segments:
        rows, boxes = segment
        if len(boxes) == 1:  # nothing waits for another box: its rows are loops of its own
            rows, boxes = (), (boxes[0]._replace(axes=(*rows, *boxes[0].axes)),)
        for turn in product(*(range(axis.extent) for axis in rows)):
            src = sum(i * axis.src for i, axis in zip(turn, rows))
            dst = sum(i * axis.dst for i, axis in zip(turn, rows))
            for box in boxes:  # fill values are the same in every row
                src_offset = box.src_offset + (src if box.source == X else base if box.source == T else 0)
                moves.append(box._replace(
                    source=T if box.source == X else box.source, src_offset=src_offset,
                    dst_offset=box.dst_offset + (dst + dst_offset if box.target == Y else base),
                ))  # fmt: skip
    return moves, base + plan.scratch


def _chained_moves(
    p: DepthProblem, regions: tuple[_Region, ...], high: int, size: int, src: dict[str, int], dst: dict[str, int],
    src_offset: int, dst_offset: int,
) -> tuple[Move, Move]:  # fmt: skip
    """Source to scratch and scratch to destination for `size` blocks of each of `high` rows."""
    spatial = p.source.spatial
    deep = p.channels * prod(p.block)
    # The scratch is [hb][wb][channel], or [channel][hb][wb] where the plain side keeps channels in planes.
    plain = p.source if p.to_depth else p.target
    step_c, step_w = (high * size, 1) if plain.axes[1] == "c" else (1, deep)
    step_c, step_w = step_c * p.itemsize, step_w * p.itemsize
    step_h = step_w * size

    _, weights = _deep_digits(p)
    space, space_lanes = (src, p.src_lanes) if p.to_depth else (dst, p.dst_lanes)
    packed, packed_lanes = (dst, p.dst_lanes) if p.to_depth else (src, p.src_lanes)

    # Atoms between an outer tensor and the scratch: (extent, step outside, step in the scratch, pad step, table step).
    # Space side: offsets inside the block and shallow channels.
    space_side: dict[str, tuple[int, ...]] = {
        "h": (high, p.block[0] * space["h"], step_h),
        "w": (size, p.block[1] * space["w"], step_w),
    }
    space_windows = []
    space_offset = 0
    for i, name in enumerate(spatial):
        offset = f"{name}%"
        space_side[offset] = (p.block[i], space[name], weights[name] * step_c)
        space_offset -= p.lo[i] * space[name]
        if (regions[i].lo, regions[i].hi) != (0, p.block[i]):
            window = Window((offset,), regions[i].lo, regions[i].hi, "pad" if p.to_depth else "skip")
            space_windows.append(window)
    c_atoms = digit_atoms(p.channels, [space_lanes])
    assert c_atoms is not None, "one cut is never in the way of another"
    for weight, extent in c_atoms:
        outside, pad, tab = _shallow_steps(p, space, weight, space_lanes)
        space_side[f"c%{weight}"] = (extent, outside, weight * weights["c"] * step_c, pad, tab)
    space_offset += _first_channel(p, space)
    if prod(extent for _, extent in c_atoms) > p.channels:
        names = tuple(f"c%{weight}" for weight, _ in c_atoms)
        space_windows.append(Window(names, 0, p.channels, "skip" if p.to_depth else "lane"))

    # Packed side: words and lanes of the deep channel.
    packed_side = {
        "h": (high, packed["h"], step_h),
        "w": (size, packed["w"], step_w),
        "cb": (words(deep, packed_lanes), packed["cb"], packed_lanes * step_c),
        "v": (packed_lanes, packed["v"], step_c),
    }
    packed_windows = []
    if deep % packed_lanes:
        packed_windows.append(Window(("cb", "v"), 0, deep, "lane" if p.to_depth else "skip"))

    def move(
        side: Mapping[str, tuple[int, ...]], windows: list[Window], into_scratch: bool, offset: int,
        lookup: str = "",
    ) -> Move:  # fmt: skip
        atoms = {
            name: Atom(extent, *((outside, inside) if into_scratch else (inside, outside)), *others)
            for name, (extent, outside, inside, *others) in side.items()
        }
        if into_scratch:
            return Move(X, T, p.itemsize, atoms, tuple(windows), src_offset=offset, lookup=lookup)
        return Move(T, Y, p.itemsize, atoms, tuple(windows), dst_offset=offset, lookup=lookup)

    if p.to_depth:
        return (
            move(space_side, space_windows, True, src_offset + space_offset, p.lookup and "table"),
            move(packed_side, packed_windows, False, dst_offset),
        )
    return (
        move(packed_side, packed_windows, True, src_offset),
        move(space_side, space_windows, False, dst_offset + space_offset, p.lookup and "table"),
    )


# --------------------------------------------------------------------------------------- the batch operators


def plan_batch(p: BatchProblem, *, tiles: Means | None = None) -> Plan:
    """Plan a space-to-batch or batch-to-space call; `tiles` says what the kernels can do with tiles, if anything."""
    if 0 in p.dst_shape:
        return Plan((), 0)
    tiles = tiles and tiles.for_lookup("")
    nbytes = prod(p.dst_shape) * p.itemsize
    framed = _framed(p, tiles, nbytes) if tiles and tiles.follows else None
    if framed:
        return framed
    dst = contiguous_steps(p.dst_shape, p.itemsize)
    space, blocked = (p.steps, dst) if p.to_batch else (dst, p.steps)
    dims = len(p.block)

    def atom(extent: int, space_step: int, blocked_step: int, pad: int) -> Atom:
        return Atom(extent, *((space_step, blocked_step) if p.to_batch else (blocked_step, space_step)), pad)

    pads = p.pads or (0,) * len(p.steps)
    atoms = {"n": atom(p.batch, space[0], blocked[0], pads[0])}
    windows = []
    space_offset = 0
    for i in range(dims):
        outer, offset, pad = f"b{i}", f"o{i}", pads[1 + i]
        atoms[outer] = atom(p.blocks[i], p.block[i] * space[1 + i], blocked[1 + i], p.block[i] * pad)
        weight = p.batch * prod(p.block[i + 1:])  # of this offset in the output batch
        atoms[offset] = atom(p.block[i], space[1 + i], weight * blocked[0], pad)
        space_offset -= p.lo[i] * space[1 + i]
        if p.space[i] != p.block[i] * p.blocks[i]:
            windows.append(Window((outer, offset), p.lo[i], p.lo[i] + p.space[i], "pad" if p.to_batch else "skip"))
    for i, extent in enumerate(p.rest):
        atoms[f"r{i}"] = atom(extent, space[1 + dims + i], blocked[1 + dims + i], pads[1 + dims + i])
    offsets = (space_offset, 0) if p.to_batch else (0, space_offset)
    return direct(Move(X, Y, p.itemsize, atoms, tuple(windows), *offsets), tiles, nbytes)


def _framed(p: BatchProblem, tiles: Means, nbytes: int) -> Plan | None:
    """Space to batch whose images are pictures within frames of padding, or None where that is not the quickest way.

    A picture has the last two block dimensions, of granules that are long enough to be copied as they are; larger
    results are quicker in the order of the source.
    """
    steps = contiguous_steps(p.dst_shape, p.itemsize)
    dims = len(p.block)
    granule = prod(p.rest) * p.itemsize
    padded = [space != block * blocks for space, block, blocks in zip(p.space, p.block, p.blocks)]
    own = zip(p.rest, p.steps[1 + dims:], steps[1 + dims:])
    together = all(extent == 1 or src == dst for extent, src, dst in own)
    if not p.to_batch or p.pads or dims < 2 or any(padded[:-2]) or not any(padded) or not together:
        return None
    if granule < REGISTER or REGISTER % p.itemsize or nbytes > _FRAMED_BYTES[granule % REGISTER == 0]:
        return None
    image = prod(p.blocks[-2:]) * granule
    segments: list[Segment] = []
    for phases in product(*(_phases(*axis) for axis in zip(p.block, p.lo, p.space))):
        loops = [Axis(p.batch, p.steps[0], steps[0])]
        src_offset = dst_offset = lead = 0
        for k, phase in enumerate(phases):
            offset = p.batch * prod(p.block[k + 1:]) * steps[0]
            loops.append(Axis(phase.stop - phase.start, p.steps[1 + k], offset))
            loops.append(Axis(phase.hi - phase.lo, p.block[k] * p.steps[1 + k], steps[1 + k]))
            src_offset += (phase.start + phase.lo * p.block[k] - p.lo[k]) * p.steps[1 + k]
            dst_offset += phase.start * offset
            lead += phase.lo * steps[1 + k]
        high, wide = loops.pop(-3), loops.pop()
        rows = sorted((axis for axis in loops if axis.extent != 1), key=lambda axis: -axis.dst)
        if not high.extent or not wide.extent:  # padding alone
            still = [*(axis._replace(src=0) for axis in rows), Axis(image // p.itemsize, 0, p.itemsize)]
            segments += moved([Box(F, Y, p.itemsize, dst_offset, *canonical(still, p.itemsize))], tiles, nbytes)
            continue
        inner = [high, wide]
        size = image
        while rows and size * rows[-1].extent <= _SHARED_BYTES:
            inner.insert(0, rows.pop())
            size *= inner[0].extent
        gap = high.dst - wide.extent * granule
        tail = image - lead - high.extent * high.dst + gap
        frame = Frame(p.itemsize, lead, gap, tail)
        segments.append(Segment(tuple(rows), (Box(X, Y, src_offset, dst_offset, granule, tuple(inner), frame=frame),)))
    return Plan(tuple(segments), 0)


def _phases(block: int, lo: int, extent: int) -> list[_Region]:
    """Offsets ``start <= offset < stop`` within a block, that are inside in the same blocks ``lo <= xb < hi``."""
    hi = lo + extent
    edges = sorted({0, lo % block, hi % block, block})
    return [
        _Region(start, stop, lo // block + (start < lo % block), hi // block + (start < hi % block))
        for start, stop in pairwise(edges)
    ]

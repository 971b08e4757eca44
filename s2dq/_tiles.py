"""From a box to a tile program: which small rearrangement of bytes to repeat, and in what order.

A *tile* is a few consecutive indices of every axis of a box, at most 256 bytes of source and destination. A kernel
loads it into at most four registers of 64 bytes, shuffles bytes by table, and stores it (`_micro/tile.h`).

run       bytes of a tile that are neighbours in memory on one side
piece     what one load or store moves: 64, 32 or 16 bytes of a run, the last one masked
loop      an axis counted in tiles; where the extent is no multiple, the last tile goes back and overlaps

What a tile costs is fitted to timed programs: loads and stores by their width, a little for every run, and for lines
that leave the nearest cache before their neighbours are used. Shuffles cost nothing measurable beside them.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import combinations, pairwise, permutations, product
from math import prod
from typing import NamedTuple

REGISTER = 64
REGISTERS = 4
MAPPED_REGISTERS = 3  # of the result, where bytes are computed on their way: each needs six more for constants
TILE = REGISTER * REGISTERS  # bytes
NETWORK = 16 * REGISTER
TABLE = 256  # bytes of a lookup table
LINE = 64
PAGE = 4096
WAYS = 8  # lines that a set of the nearest cache keeps, at least

# Cycles on Zen 5, by the width of a piece.
_LOAD = {64: 1.4, 32: 0.71, 16: 0.67}
_STORE = {64: 1.84, 32: 1.18, 16: 0.85}
_TILE, _SRC_RUN, _DST_RUN, _RESTART = 0.54, 0.25, 0.35, 1.55

# A masked store to a line that is not in the cache waits for the line; by the size of the whole.
_MASKED = ((1 << 15, 1.1), (640 << 10, 1.5))

# The shuffles of a network, unlike those of a tile, show.
_SHUFFLE = 0.1

# A processor that follows streams by itself waits where these begin, and what networks cost there is how many runs they
# read and write: those of the result so many times as much, and a part of one for each line in a set of the nearest
# cache with more of them than stay. Chose best of the networks for 160 boxes, timed on Zen 4; how these load and store
# explained no more.
_FOLLOWED_RESULT, _FOLLOWED_CROWD = 3, 0.5

# How much an inner sweep may touch before lines used in part drop to the next cache, and what a line costs from there.
_CACHES = ((24 << 10, 2.0), (640 << 10, 8.0))
# The same for lines of which the neighbour was not used, for they are fetched in pairs.
_NEIGHBOURS = ((24 << 10, 4.0), (640 << 10, 14.0))
# Lines at a distance of whole pages share a set of the nearest cache; more of them than it keeps push each other out,
# which costs the source less than the destination.
_CONFLICT = {1: 9.0, 2: 40.0}
# What a leap costs a line of the source, and one of the result, by the size of the whole: loads wait together, stores
# one after the other. So many streams are foreseen, and then cost a part of it. The prices beyond 640 KiB chose
# best among a dozen orders of each of 870 calls, timed on Sapphire Rapids.
_LEAPS = {
    1: ((24 << 10, 1.0), (640 << 10, 6.0)),
    2: ((24 << 10, 2.0), (640 << 10, 12.0), (12 << 20, 40.0)),
}
_STREAMS = {1: ((0, 64), (640 << 10, 32)), 2: ((0, 64), (640 << 10, 16))}
_FORESEEN = 0.25

# Behind the end of a run lines are fetched that are read much later, where the run goes on: what that costs a run, by
# what is touched meanwhile.
_WASTED = ((640 << 10, 60.0),)

# A register of bytes that go through lines: one that is read alone, as it comes; one made of so many, afterwards.
_EARLY, _LATE = 2.5, {1: 2.5, 2: 4.5, 3: 5.5, 4: 5.5}

# So many bytes go on from each other at most where places are uneven on the other side, along so many axes.
_BENT_BYTES, _DIGITS = 1 << 14, 4
# They are worth it where they cost so many times as much as what else there is; where streams are not followed, only up
# to so many bytes: beyond, they took up to 1.4 times as long on Emerald Rapids.
_BENT, _BENT_NEAR, _BENT_MOST = 0.65, 0.72, 1 << 20
_BENT_REACH = 1 << 28  # and so far there: their places are numbers of 32 bits

# Part of a line's price where a network writes it in two halves, as results seldom begin at a line.
_SPLIT = 0.5

# Results of so many bytes wait for their lines: a store across two of them waits for both.
_ACROSS = (1 << 20, 12 << 20)

# Smaller ones that the nearest cache does not hold lose so many cycles with each such store; a run that grows, to that
# many bytes at least, does not.
_GROWN, _GROWN_COST, _GROWN_RUN = (1 << 15, 1 << 20), 4.0, 1536

# A tile that stores past the caches may cost so many times as much as the cheapest, for the result costs more than that
# to fetch; what it reads again for the next part of a line has to be near still.
_PAST, _NEAR_SWEEP = 1.6, 1 << 17

# What is left over when an axis is run in blocks is a pass of its own, and touches lines again.
_LEFT = 8.0

# Extents worth trying for an axis that a tile takes a part of.
_PARTS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 21, 24, 32, 40, 42, 48, 64, 80, 85, 96, 128, 160, 192, 256)


class Axis(NamedTuple):
    """One loop: how often, how far to step (bytes), and how far the last turn goes back."""

    extent: int
    src: int
    dst: int
    tab: int = 0
    src_back: int = 0
    dst_back: int = 0


class Side(NamedTuple):
    """Pieces of a tile on one side: `width` bytes each, at ``offsets``, with the bytes of ``masks``."""

    width: int
    offsets: tuple[int, ...]
    masks: tuple[int, ...]

    @property
    def registers(self) -> int:
        return -(-len(self.offsets) * self.width // REGISTER)

    def is_whole(self) -> bool:
        """Whether every piece is a register, and full."""
        return all(mask == (1 << REGISTER) - 1 for mask in self.masks)

    def runs(self) -> tuple[int, int]:
        """``(runs, pieces in each)``, or zeros where runs differ."""
        starts = [
            k for k, offset in enumerate(self.offsets) if k == 0 or offset != self.offsets[k - 1] + self.width
        ]
        lengths = {stop - start for start, stop in pairwise([*starts, len(self.offsets)])}
        return (len(starts), lengths.pop()) if len(lengths) == 1 else (0, 0)


class Output(NamedTuple):
    """Where the bytes of one output register come from; see `_micro/tile.h`."""

    low: bytes
    high: bytes
    upper: int
    fill: tuple[int, ...]
    tab: bytes = bytes(REGISTER)


class Tile(NamedTuple):
    src: Side
    dst: Side
    outputs: tuple[Output, ...]

    @property
    def nbytes(self) -> int:
        """Bytes written."""
        return sum(mask.bit_count() for mask in self.dst.masks)

    def encode(self) -> list[int]:
        """A flat list of integers, in the order `_kernels.Program` reads it."""
        table = []
        for side in (self.src, self.dst):
            pieces = REGISTERS * REGISTER // 16
            table += [side.registers, REGISTER // side.width]
            table += side.offsets + side.offsets[:1] * (pieces - len(side.offsets))
            table += [_signed(mask) for mask in side.masks] + [0] * (pieces - len(side.masks))
        table += self.dst.runs()
        for output in self.outputs:
            table.append(_signed(output.upper))
            for part in (output.low, output.high, bytes(k & 255 for k in output.fill), output.tab):
                table += [int.from_bytes(part[k:k + 8], "little", signed=True) for k in range(0, REGISTER, 8)]
        return table

    def fills_lines(self, loop: Axis) -> bool:
        """Whether tiles along `loop` write whole lines once the first one is aligned."""
        side = self.dst
        runs, pieces = side.runs()
        return (
            runs > 0
            and side.is_whole()
            and all((offset - side.offsets[0]) % LINE == 0 for offset in side.offsets)
            and loop.dst == pieces * REGISTER
        )

    def is_sequence(self, loops: list[Axis]) -> bool:
        """Whether every turn of the loops writes whole registers right behind the turn before."""
        size = self.nbytes
        whole = self.dst.width == REGISTER and self.dst.runs()[0] == 1 and size == self.dst.registers * REGISTER
        for loop in reversed(loops):
            whole = whole and loop.dst == size and not loop.dst_back
            size *= loop.extent
        return whole

    def goes_apart(self) -> bool:
        """Whether every output register is stored in full and its bytes go through one lookup table."""
        whole = (1 << self.dst.width) - 1
        full = all(mask == whole for mask in self.dst.masks)
        return full and all(len(set(output.tab)) == 1 and max(output.fill) < 0 for output in self.outputs)

    def keeps_order(self) -> bool:
        """Whether the outputs are the inputs."""
        return self.src == self.dst and all(
            self._source_of(output, i) == self.src.offsets[k] + i
            for k, output in enumerate(self.outputs) for i in range(REGISTER)
        )

    def windows(self) -> int:
        """So many runs of 16 bytes of the source make 16 of the result, at most; 0 where these are not all stored."""
        whole = (1 << self.dst.width) - 1
        if any(mask != whole for mask in self.dst.masks) or len(self.dst.masks) * self.dst.width % 32:
            return 0
        most = 1
        for lane in range(0, len(self.dst.masks) * self.dst.width, 16):
            output, first = self.outputs[lane // REGISTER], lane % REGISTER
            count = end = 0
            for byte in sorted(self._source_of(output, i) for i in range(first, first + 16) if output.fill[i] < 0):
                if not count or byte >= end:
                    count, end = count + 1, byte + 16
            most = max(most, count)
        return most

    def _source_of(self, output: Output, i: int) -> int:
        """Where byte `i` of an output register comes from."""
        place = output.high[i] + 2 * REGISTER if output.upper >> i & 1 else output.low[i]
        return self.src.offsets[place // self.src.width] + place % self.src.width

    def __str__(self) -> str:
        return f"{len(self.src.offsets)}x{self.src.width}B>{len(self.dst.offsets)}x{self.dst.width}B"


class Bend(NamedTuple):
    """Places that follow each other on one side of a network and not evenly on the other; see `_micro/tile.h`."""

    side: int  # on which they are uneven
    digits: tuple[tuple[int, int], ...]  # extent and step there, fastest first
    indices: int  # of a network
    unit: int  # bytes from one to the next on the even side
    inside: int  # loops that turn at every place
    pieces: tuple[int, ...]  # the index of each, on the uneven side

    @property
    def total(self) -> int:
        return prod(extent for extent, _ in self.digits)

    def encode(self) -> list[int]:
        digits = [*self.digits, *((1, 0),) * (_DIGITS - len(self.digits))]
        pieces = [*self.pieces, *(0,) * (NETWORK // 16 - len(self.pieces))]
        flat = [number for digit in digits for number in digit]
        return [self.side, self.total, self.indices, self.unit, self.inside, *flat, *pieces]

    def __str__(self) -> str:
        digits = " ".join(f"{extent}:{step}" for extent, step in self.digits)
        return f"{'XY'[self.side - 1]}[{digits}] by {self.indices}, {self.inside} inside"


class Network(NamedTuple):
    """A tile of 1024 bytes in sixteen registers, for transposes of many streams; see `_micro/tile.h`."""

    src: Side
    dst: Side
    tables: tuple[tuple[bytes, bytes], ...]
    run: int  # bytes of a run of the result
    unit: int  # of an index in it, where they are of one axis; else 0
    step: int  # between those in the source
    bend: Bend | None = None

    @property
    def nbytes(self) -> int:
        """Bytes written."""
        return NETWORK if self.bend is None else NETWORK * self.bend.total // self.bend.indices

    def encode(self) -> list[int]:
        """A flat list of integers, in the order `_kernels.Program` reads it."""
        table = [len(self.tables), self.run, self.unit, self.step]
        for side in (self.src, self.dst):
            pieces = NETWORK // 16
            table += [REGISTER // side.width, *side.offsets, *(0,) * (pieces - len(side.offsets))]
        for pair in self.tables:
            for part in pair:
                table += [int.from_bytes(part[k:k + 8], "little", signed=True) for k in range(0, REGISTER, 8)]
        return table + (self.bend.encode() if self.bend else [0])

    def fills_lines(self, loop: Axis) -> bool:
        """Never: its runs are short."""
        return False

    def is_sequence(self, loops: list[Axis]) -> bool:
        return False  # no kernel streams networks

    def __str__(self) -> str:
        return f"{len(self.src.offsets)}x{self.src.width}B>{len(self.dst.offsets)}x{self.dst.width}B net" + (
            f" {self.bend}" if self.bend else ""
        )


def _signed(bits: int) -> int:
    return bits - (1 << 64) if bits >> 63 else bits


# ---------------------------------------------------------------------------------------------------- one tile


def pieces_of(offsets: Iterable[int], width: int) -> Side:
    """Cover byte offsets with pieces from the lowest on."""
    starts: list[int] = []
    masks: list[int] = []
    for offset in sorted(offsets):
        if not starts or offset >= starts[-1] + width:
            starts.append(offset)
            masks.append(0)
        masks[-1] |= 1 << offset - starts[-1]
    return Side(width, tuple(starts), tuple(masks))


def positions(side: Side) -> dict[int, int]:
    """Where each byte of the pieces lies in the registers."""
    return {
        start + bit: k * side.width + bit
        for k, (start, mask) in enumerate(zip(side.offsets, side.masks))
        for bit in range(side.width)
        if mask >> bit & 1
    }


# ``(source or None, destination, fill, lookup table)`` of a byte or a granule
Entry = tuple[int | None, int, int, int]


def build(pairs: list[Entry], load: int, store: int, apart: bool = False) -> Tile | None:
    """The tile that moves byte ``src`` to byte ``dst`` for every ``(src, dst, fill, table)``.

    Where `src` is None the byte at offset `fill` of the fill values is written. None where registers do not suffice.
    """
    src = pieces_of({pair[0] for pair in pairs if pair[0] is not None}, load)
    dst = pieces_of((pair[1] for pair in pairs), store)
    if apart:
        dst = by_tables(dst, {pair[1]: pair[3] for pair in pairs})
    if max(src.registers, dst.registers) > REGISTERS:
        return None
    src = in_pairs(src, dst, pairs)
    where = positions(src)
    sources = {
        target: (0 if source is None else where.get(source, 0), source is None, fill, table)
        for source, target, fill, table in pairs
    }
    outputs = [
        (bytearray(REGISTER), bytearray(REGISTER), [-1] * REGISTER, bytearray(REGISTER)) for _ in range(dst.registers)
    ]
    upper = [0] * dst.registers
    for dst_byte, at in positions(dst).items():
        register, lane = divmod(at, REGISTER)
        source, filled, fill, table = sources[dst_byte]
        low, high, fills, tables = outputs[register]
        tables[lane] = table
        if source >= 2 * REGISTER:
            high[lane] = source - 2 * REGISTER
            upper[register] |= 1 << lane
        else:
            low[lane] = source
        if filled:
            fills[lane] = fill
    made = tuple(
        Output(bytes(low), bytes(high), bits, tuple(fills), bytes(tables))
        for (low, high, fills, tables), bits in zip(outputs, upper)
    )
    return Tile(src, dst, made)


def by_tables(dst: Side, tables: dict[int, int]) -> Side:
    """The pieces in an order that gives each register one lookup table, where there is one."""
    groups: dict[int, list[int]] = {}
    for k, (start, mask) in enumerate(zip(dst.offsets, dst.masks)):
        own = {tables[start + bit] for bit in range(dst.width) if mask >> bit & 1}
        if len(own) > 1:
            return dst
        groups.setdefault(own.pop(), []).append(k)
    if any(len(group) % (REGISTER // dst.width) for group in groups.values()):
        return dst
    order = [k for group in groups.values() for k in group]
    return Side(dst.width, tuple(dst.offsets[k] for k in order), tuple(dst.masks[k] for k in order))


# For so many inputs and outputs, in which register the pair begins that an output comes from alone: `s2dq_pair_of`.
_PAIRS = {(3, 2): ((0, 1),), (3, 3): ((0, 1, 2),), (3, 4): ((0, 0, 1, 1),), (4, 2): ((0, 2),), (4, 3): ((0, 1, 2),),
          (4, 4): ((0, 0, 2, 2), (0, 2, 0, 2))}


def in_pairs(src: Side, dst: Side, pairs: list[Entry]) -> Side:
    """The source registers in an order that lets every output come from two neighbours, where there is one.

    Such an output takes one shuffle, any other one two.
    """
    ways = _PAIRS.get((src.registers, dst.registers), ())
    came, goes = positions(src), positions(dst)
    needed: list[set[int]] = [set() for _ in range(dst.registers)]
    for source, target, *_ in pairs:
        if source is not None:
            needed[goes[target] // REGISTER].add(came[source] // REGISTER)
    if not ways or max(map(len, needed)) > 2:
        return src
    count = src.registers
    for order in permutations(range(count)):
        for firsts in ways:
            if all(need <= {order[k], order[(k + 1) % count]} for need, k in zip(needed, firsts)):
                return reordered(src, order)
    return src


def reordered(side: Side, order: tuple[int, ...]) -> Side:
    """Other registers first. One that has fewer pieces than the others is filled up with empty ones."""
    pieces = REGISTER // side.width
    offsets: list[int] = []
    masks: list[int] = []
    for register in order:
        own = slice(register * pieces, (register + 1) * pieces)
        missing = pieces - len(side.offsets[own])
        offsets += side.offsets[own] + side.offsets[own][:1] * missing
        masks += side.masks[own] + (0,) * missing
    return Side(side.width, tuple(offsets), tuple(masks))


# ------------------------------------------------------------------------------------------------ the best tile


class Shape(NamedTuple):
    """A candidate: how many indices of each axis, and the widths of loads and stores."""

    counts: tuple[int, ...]
    load: int
    store: int
    cost: float


def run_of(axes: list[Axis], counts: tuple[int, ...], order: list[int], side: int) -> tuple[int, int]:
    """``(runs, bytes from the first to the last of a run)`` of a tile; `order` sorts the axes by step."""
    span, runs = 1, 1
    for k in order:
        count, step = counts[k], abs(axes[k][side])
        if count == 1 or step == 0:
            continue
        gap = 8 if side == 2 or step < 32 else 0  # that pieces may reach across
        if runs == 1 and step <= span + gap:
            span += step * (count - 1)
        else:
            runs *= count
    return runs, span


def candidates(axes: list[Axis], orders: tuple[list[int], ...]) -> Iterator[tuple[int, ...]]:
    """Counts worth trying: the innermost axes of either side whole, parts of the next ones."""
    seen = set()
    for i in range(len(axes) + 1):
        for j in range(len(axes) + 1):
            whole = {*orders[0][:i], *orders[1][:j]}
            counts = [axes[k].extent if k in whole else 1 for k in range(len(axes))]
            room = TILE // max(1, prod(counts))
            if room < 1:
                break
            following = {order[at] for order, at in ((orders[0], i), (orders[1], j)) if at < len(axes)} - whole
            for chosen in parts(axes, sorted(following), room):
                full = tuple(chosen.get(k, count) for k, count in enumerate(counts))
                if full not in seen:
                    seen.add(full)
                    yield full


def parts(axes: list[Axis], following: list[int], room: int) -> Iterator[dict[int, int]]:
    """Ways to take a part of each of at most two axes, within `room` indices."""
    yield {}
    for k in following:
        for count in part_extents(axes[k].extent, room):
            yield {k: count}
    if len(following) == 2:
        first, second = following
        for count in (2, 4, 8, 16, 32, 64):
            if count <= room and count <= axes[first].extent:
                for other in (2, 4, 8, 16, 32, 64):
                    if count * other <= room and other <= axes[second].extent:
                        yield {first: count, second: other}


@lru_cache(4096)
def part_extents(extent: int, room: int) -> tuple[int, ...]:
    """Counts from 2 to `room` that a tile may take of an axis."""
    most = min(extent, room)
    if most < 2:
        return ()
    even = {-(-extent // tiles) for tiles in range(-(-extent // most), -(-extent // most) + 4)}
    return tuple(sorted({*(part for part in _PARTS if part <= most), *(part for part in even if 2 <= part <= most)}))


def orders_of(axes: list[Axis]) -> tuple[list[int], ...]:
    """The axes by their steps in the source, and in the destination; those without a step come last."""
    return tuple(
        sorted(range(len(axes)), key=lambda k: (axes[k][side] == 0, abs(axes[k][side]))) for side in (1, 2)
    )


def best_shape(axes: list[Axis], most: int = TILE, inputs: int = REGISTERS) -> Shape | None:
    """The cheapest tile by the model, of `most` bytes of the result, from so many registers."""
    orders = orders_of(axes)
    best = None
    masked = price(_MASKED, prod(axis.extent for axis in axes)) or 1.0
    for counts in candidates(axes, orders):
        if any(axis.tab and count != axis.extent for axis, count in zip(axes, counts)):
            continue  # a tile's bytes go through the same tables at every turn
        src_runs, src_span = run_of(axes, counts, orders[0], 1)
        dst_runs, dst_span = run_of(axes, counts, orders[1], 2)
        turns = [-(-axis.extent // count) for axis, count in zip(axes, counts)]
        tiles = prod(turns)
        inner = max(turns, default=1)
        fixed = _TILE + _SRC_RUN * src_runs + _DST_RUN * dst_runs + _RESTART / inner + collisions(axes, counts)
        if best and tiles * fixed >= best.cost:
            continue
        load, load_cost = cheapest(_LOAD, cover_runs(src_runs, src_span), 1.0, inputs * REGISTER)
        store, store_cost = cheapest(_STORE, cover_runs(dst_runs, dst_span), masked, most)
        cost = tiles * (fixed + load_cost + store_cost)
        if load and store and (best is None or cost < best.cost):
            best = Shape(counts, load, store, cost)
    return best


def cheapest(
    costs: dict[int, float], cover: Callable[[int], tuple[int, bool]], masked: float, most: int = TILE
) -> tuple[int, float]:
    """The cheapest width of pieces of at most `most` bytes, or 0. Pieces with masks cost `masked` times as much.

    `cover` says for a width how many pieces there are, and whether all are full.
    """
    best = (0, float("inf"))
    for width, cost in costs.items():
        pieces, full = cover(width)
        total = pieces * cost * (1.0 if full else masked)
        if pieces * width <= most and total < best[1]:
            best = (width, total)
    return best


def cover_runs(runs: int, span: int) -> Callable[[int], tuple[int, bool]]:
    """For `cheapest`: so many runs of so many bytes."""
    return lambda width: (runs * -(-span // width), span % width == 0)


def cover_bytes(offsets: list[int]) -> Callable[[int], tuple[int, bool]]:
    """For `cheapest`: the bytes at these offsets."""

    def cover(width: int) -> tuple[int, bool]:
        side = pieces_of(offsets, width)
        return len(side.offsets), all(mask == (1 << width) - 1 for mask in side.masks)

    return cover


def collisions(axes: list[Axis], counts: tuple[int, ...], sides: Iterable[int] = (1, 2)) -> float:
    """Penalty for more runs at a pitch of whole pages than a cache set keeps."""
    penalty = 0.0
    for side in sides:
        streams = prod(
            count for axis, count in zip(axes, counts) if count > 1 and axis[side] and axis[side] % PAGE == 0
        )
        if streams > WAYS:
            penalty += _CONFLICT[side] * streams
    return penalty


# ------------------------------------------------------------------------------------------------------- loops


class Loop(NamedTuple):
    """An axis counted in tiles, and which axis of the box it is."""

    axis: Axis
    of: int
    count: int  # type: ignore[assignment]  # indices of that axis in a tile


def loops_of(axes: list[Axis], counts: tuple[int, ...]) -> list[Loop]:
    """The loops over tiles, in the order of the axes."""
    loops = []
    for k, (axis, count) in enumerate(zip(axes, counts)):
        turns = -(-axis.extent // count)
        if turns > 1:
            back = turns * count - axis.extent
            loop = Axis(turns, axis.src * count, axis.dst * count, 0, axis.src * back, axis.dst * back)
            loops.append(Loop(loop, k, count))
    return loops


def order_loops(loops: list[Loop], tile: Tile | Network) -> list[Loop]:
    """The order with the least restarts and misses; far-out loops stay in destination order.

    Where lines that tiles use in part would be lost, an axis may be run in blocks of whole lines: two loops, the
    second of them further in.
    """
    best, cost = cheapest_order(loops, tile)
    work = prod(loop.axis.extent for loop in loops)
    if cost < work:
        return best
    for k, loop in enumerate(loops):
        steps = {abs(step) for step in (loop.axis.src, loop.axis.dst) if 0 < abs(step) <= LINE}
        for block in sorted({lines * LINE // step for step in steps for lines in (1, 4, 16)}):
            whole = (loop.axis.extent - bool(loop.axis.dst_back)) // block
            if whole < 2 or block < 2:
                continue
            src, dst = loop.axis.src, loop.axis.dst
            outer = Loop(Axis(whole, src * block, dst * block), loop.of, loop.count * block)
            inner = Loop(Axis(block, src, dst), loop.of, loop.count)
            order, blocked = cheapest_order([*loops[:k], outer, inner, *loops[k + 1:]], tile)
            blocked += _LEFT * cost * (1 - whole * block / loop.axis.extent)
            if blocked < 0.8 * cost:
                best, cost = order, blocked
    return best


def cheapest_order(
    loops: list[Loop], tile: Tile | Network, innermost: int | None = None
) -> tuple[list[Loop], float]:
    """The best order of the four innermost loops, that of one axis the very last, and what all loops cost then."""
    loops = sorted(loops, key=lambda loop: (loop.of == innermost, -abs(loop.axis.dst)))
    outer, inner = loops[:-4], loops[-4:]
    best, least = loops, float("inf")
    for order in permutations(inner):
        if innermost is not None and order[-1].of != innermost:
            continue
        # Blocks of an axis stay inside of that axis.
        if any(a.of == b.of and a.count < b.count for a, b in combinations(order, 2)):
            continue
        ordered = [*outer, *order]
        cost = restarts(ordered) + misses(ordered, tile)
        if cost < least:
            best, least = ordered, cost
    return best, least


def restarts(loops: list[Loop]) -> float:
    return _RESTART * prod(loop.axis.extent for loop in loops[:-1])


def misses(loops: list[Loop], tile: Tile | Network) -> float:
    """Cycles spent waiting for memory.

    Four things wait: lines that leave the cache before their rest, or their neighbours, are used; lines that push each
    other out of a set of the cache; leaps that no prefetch foresees; and lines that one foresaw too early. A few
    streams that each go on where they stopped are foreseen.
    """
    cost = 0.0
    total = prod(loop.axis.extent for loop in loops)
    size = total * tile.nbytes
    leap = {side: price(_LEAPS[side], size) for side in (1, 2)}
    foreseen = {side: price(_STREAMS[side], size) for side in (1, 2)}
    sides = {1: tile.src, 2: tile.dst}
    lines = {number: line_count(side) for number, side in sides.items()}
    footprint: dict[int, float] = {number: count * LINE for number, count in lines.items()}
    span = {number: first_run(side) for number, side in sides.items()}
    ways = {number: ways_of(side) for number, side in sides.items()}  # lines in the fullest set of the cache
    if isinstance(tile, Network) and makes_lines(len(tile.src.offsets), tile.run):
        ways[2] = 0  # none is come back to
    sweep = dict(span)  # bytes passed over in one go
    streams = {1: 1, 2: 1}
    runs = {number: run_count(side) for number, side in sides.items()}
    leaps = {1: 0.0, 2: 0.0}
    ends = {1: 0, 2: 0}  # of runs, where a leap follows
    turns = total
    for loop, _, _ in reversed(loops):
        inside = footprint[1] + footprint[2]
        for side in (1, 2):
            step = abs(loop[side])
            if not step:
                continue
            if step < LINE:
                cost += price(_CACHES, inside) * total * lines[side] * (1 - step / LINE)
            if step < 2 * LINE:
                cost += price(_NEIGHBOURS, inside) * total * lines[side] * (1 - max(step, LINE) / (2 * LINE))
            if step == LINE and side == 2 and isinstance(tile, Network):
                cost += price(_CACHES, inside) * total * lines[side] * _SPLIT
            footprint[side] *= max(1.0, loop.extent * min(1.0, step / LINE))
            if step <= sweep[side] + LINE:
                if streams[side] * runs[side] <= foreseen[side]:
                    leaps[side] *= _FORESEEN
                sweep[side] = step * (loop.extent - 1) + sweep[side]
                cost += price(_WASTED, inside) * ends[side]
            else:
                leaps[side] += turns * lines[side]
                ends[side] = ends[side] or turns * runs[side]
                streams[side] *= loop.extent
            if step % PAGE == 0:
                ways[side] *= loop.extent
                if ways[side] > WAYS:
                    cost += _CONFLICT[side] * turns * lines[side]
        turns //= loop.extent
    return cost + leap[1] * leaps[1] + leap[2] * leaps[2]


def price(levels: tuple[tuple[int, float], ...], size: float) -> float:
    """The price of the last level that `size` exceeds."""
    found = 0.0
    for least, cycles in levels:
        if size > least:
            found = cycles
    return found


def first_run(side: Side) -> int:
    """Bytes from the first byte of a side to the end of the pieces that follow each other."""
    pieces = sorted(zip(side.offsets, side.masks))
    start = end = pieces[0][0]
    for offset, mask in pieces:
        if offset > end + LINE:
            break
        end = offset + mask.bit_length()
    return end - start


def ways_of(side: Side) -> int:
    """Lines of a tile that fall into one set of the nearest cache."""
    sets: dict[int, set[int]] = {}
    for offset in side.offsets:
        sets.setdefault(offset // LINE % (PAGE // LINE), set()).add(offset // LINE)
    return max(map(len, sets.values()))


def run_count(side: Side) -> int:
    """Runs of a tile on one side."""
    pieces = sorted(zip(side.offsets, side.masks))
    return 1 + sum(after[0] > before[0] + before[1].bit_length() + LINE for before, after in pairwise(pieces))


def line_count(side: Side) -> int:
    """Lines that a tile touches when its runs lie as well as they can."""
    return len({offset // LINE for offset in side.offsets})


Pattern = tuple[Entry, ...]


@lru_cache(64)
def tile_of(
    axes: tuple[Axis, ...],
    width: int,
    pattern: Pattern = ((0, 0, 0, 0),),
    networks: bool = False,
    mapped: bool = False,
    apart: bool = False,
    follows: bool = False,
    bends: bool = False,
) -> tuple[Tile | Network, tuple[Loop, ...]] | None:
    """The tile program of a box: the tile, and its loops from the outermost on.

    At every position of the axes the box moves the granules of the pattern. The bytes of a granule count as one more
    axis, the last, where the pattern is a single granule. None where a pattern does not fit in the registers, or the
    axes that lookup tables are counted along. `mapped` where bytes are computed on their way, `apart` where
    registers are better for one lookup table each, and one that is read alone can be computed as it comes; `follows`
    where the processor does without fetching by software; `bends` where places of networks may be uneven.
    """
    every = [*axes, Axis(width, 1, 1)]
    most = MAPPED_REGISTERS * REGISTER if mapped else TILE
    shape = cheapest_shape(every, pattern, most)
    if shape is None:
        return None
    if networks and len(pattern) == 1:
        transposed = best_network(every, follows)
        near = follows or prod(axis.extent for axis in every) <= _BENT_MOST
        bent = best_bend(every, follows) if bends and near else None
        if bent and is_worth_bending(bent, transposed, shape, _BENT if follows else _BENT_NEAR):
            return build_bend(every, bent)
        if transposed and transposed.cost < shape.cost:
            network = build_network(every, transposed)
            return network, tuple(order_loops(loops_of(every, transposed.counts), network))
    pairs = bytes_of(every, shape.counts, pattern)
    tile = build(pairs, shape.load, shape.store, mapped and apart)
    assert tile, "a shape is one that registers suffice for"
    if mapped and apart:
        shape, tile = one_input(every, pattern, shape, tile)
    loops = order_loops(loops_of(every, shape.counts), tile)
    if len(pattern) == 1 and not mapped and stores_across(tile, loops, _GROWN):
        if grown := growing_tile(every, shape, tile):
            return grown
    if len(pattern) == 1 and not mapped and stores_across(tile, loops, _ACROSS):
        tile = build(pairs, shape.load, 16) or tile
        loops = order_loops(loops_of(every, shape.counts), tile)
    return tile, tuple(loops)


def one_input(axes: list[Axis], pattern: Pattern, shape: Shape, tile: Tile) -> tuple[Shape, Tile]:
    """The shape and its tile; or those of a single input register, whose bytes go through their lines before anything
    is made of them, where that is cheaper. Nothing is gained where lines are the only work, or tables do theirs."""
    if tile.keeps_order() or tile.goes_apart():
        return shape, tile
    single = cheapest_shape(axes, pattern, MAPPED_REGISTERS * REGISTER, 1)
    if single is None:
        return shape, tile
    late = shape.cost + tiles_of(axes, shape.counts) * tile.dst.registers * _LATE[tile.src.registers]
    if single.cost + tiles_of(axes, single.counts) * _EARLY >= late:
        return shape, tile
    found = build(bytes_of(axes, single.counts, pattern), single.load, single.store)
    assert found, "a shape is one that registers suffice for"
    return single, found


def tile_past(axes: tuple[Axis, ...], width: int, sweep: int) -> tuple[Tile, tuple[Loop, ...]] | None:
    """As `tile_of`, for granules whose result goes past the caches: whole registers, in runs that the innermost loop
    makes longer, to at least `sweep` bytes. None where no tile does, or none that is cheap enough."""
    every = [*axes, Axis(width, 1, 1)]
    shapes = ((shape, k) for shape, k in growing_shapes(every) if every[k].dst * every[k].extent >= sweep)
    best = min(shapes, key=lambda found: found[0].cost, default=None)
    usual = best_shape(every)
    if best is None or usual is None or best[0].cost > _PAST * usual.cost:
        return None
    shape, grows = best
    tile = build(bytes_of(every, shape.counts, ((0, 0, 0, 0),)), shape.load, shape.store)
    assert tile, "a shape is one that registers suffice for"
    loops = sorted(loops_of(every, shape.counts), key=lambda loop: -abs(loop.axis.dst))
    innermost = next(loop for loop in loops if loop.of == grows)
    near = [loop for loop in loops if loop is not innermost and 0 < abs(loop.axis.src) < LINE]
    read = innermost.axis.extent * max(abs(innermost.axis.src), LINE * run_count(tile.src))
    if near and read > _NEAR_SWEEP:
        return None
    far = [loop for loop in loops if loop is not innermost and loop not in near]
    return tile, (*far, *near, innermost)


def growing_tile(axes: list[Axis], usual: Shape, tile: Tile) -> tuple[Tile, tuple[Loop, ...]] | None:
    """As `tile_of`: a tile of one run that the innermost loop makes longer, unless the usual one is so much cheaper
    that its stores across lines do not matter."""
    def cost_of(shape: Shape) -> float:
        return shape.cost + tiles_of(axes, shape.counts) * collisions(axes, shape.counts)

    def fits(shape: Shape, k: int) -> bool:
        return axes[k].dst * shape.counts[k] == TILE and axes[k].dst * axes[k].extent >= _GROWN_RUN

    found = [(shape, k) for shape, k in growing_shapes(axes) if fits(shape, k)]
    best = min(found, key=lambda one: cost_of(one[0]), default=None)
    if best is None:
        return None
    shape, grows = best
    grown = build(bytes_of(axes, shape.counts, ((0, 0, 0, 0),)), shape.load, shape.store)
    assert grown, "a shape is one that registers suffice for"
    loops, waits = cheapest_order(loops_of(axes, shape.counts), grown, grows)
    _, usually = cheapest_order(loops_of(axes, usual.counts), tile)
    stores = tiles_of(axes, usual.counts) * len(tile.dst.offsets)
    return (grown, tuple(loops)) if cost_of(shape) + waits <= usual.cost + usually + _GROWN_COST * stores else None


def tiles_of(axes: list[Axis], counts: tuple[int, ...]) -> int:
    return prod(-(-axis.extent // count) for axis, count in zip(axes, counts))


def growing_shapes(axes: list[Axis]) -> Iterator[tuple[Shape, int]]:
    """Tiles of whole registers in runs that an axis makes longer, and that axis; without what collisions cost."""
    orders = orders_of(axes)
    for counts in candidates(axes, orders):
        grows = growing_axis(axes, counts)
        if grows is None:
            continue
        runs, span = run_of(axes, counts, orders[0], 1)
        load, load_cost = cheapest(_LOAD, cover_runs(runs, span), 1.0)
        stores = prod(counts) // REGISTER * _STORE[REGISTER]
        cost = tiles_of(axes, counts) * (_TILE + _SRC_RUN * runs + load_cost + stores)
        if load:
            yield Shape(counts, load, REGISTER, cost), grows


def growing_axis(axes: list[Axis], counts: tuple[int, ...]) -> int | None:
    """The axis along which the runs of whole registers that a tile writes go on, all at one distance from a line."""
    run = 1
    grows = None
    for k in sorted(range(len(axes)), key=lambda k: abs(axes[k].dst)):
        axis, count = axes[k], counts[k]
        if axis.dst == run:
            run *= count
            grows = k if count < axis.extent else None
        elif count > 1 and axis.dst % LINE:
            return None
    return grows if run % REGISTER == 0 else None


def stores_across(tile: Tile, loops: list[Loop], size: tuple[int, int]) -> bool:
    """Whether whole registers are stored across lines wherever a result of that size does not begin at one: nothing
    stores whole lines of runs that the innermost loop does not make longer. Pieces of 16 bytes are seldom across."""
    runs, pieces = tile.dst.runs()
    grows = runs > 0 and loops and loops[-1].axis.dst == pieces * tile.dst.width
    least, most = size
    return tile.dst.is_whole() and not grows and least <= tile.nbytes * prod(loop.axis.extent for loop in loops) < most


# ---------------------------------------------------------------------------------------------------- networks


Bit = tuple[int, int]  # of an index: which axis, and its weight there


class Transpose(NamedTuple):
    """A network's place: which axes run on from the granule in the source, and which in the destination."""

    counts: tuple[int, ...]
    columns: tuple[int, ...]
    rows: tuple[int, ...]
    cost: float
    followed: float = 0.0  # what it costs a processor that follows streams


def chain_of(axes: list[Axis], side: int, count: int) -> dict[int, int] | None:
    """How many indices of which axes make `count` neighbouring granules on one side; counts are powers of two."""
    taken: dict[int, int] = {}
    step = axes[-1].extent
    while count > 1:
        found = next((k for k, axis in enumerate(axes[:-1]) if axis[side] == step and k not in taken), None)
        if found is None:
            return None
        extent = axes[found].extent
        if extent < count:
            if extent & extent - 1 or extent == 1:
                return None
            taken[found] = extent
        else:
            taken[found] = count
        step *= taken[found]
        count //= taken[found]
    return taken


def makes_lines(streams: int, run: int) -> bool:
    """Whether a network makes lines of a byte from each of so many streams: as no line is come back to, they may share
    a set of the cache. Measured on Zen 4, where networks of wider granules were slower so."""
    return streams == run == LINE


def best_network(axes: list[Axis], follows: bool = False) -> Transpose | None:
    """The cheapest network for a box, or None where it is no transpose of many streams."""
    width = axes[-1].extent
    if width not in (1, 2, 4, 8, 16):
        return None
    found = []
    for run in (16, 32, 64):  # bytes of a source run
        columns, rows = chain_of(axes, 1, run // width), chain_of(axes, 2, NETWORK // run)
        if not columns or not rows or columns.keys() & rows.keys():
            continue
        streams, into = NETWORK // run, run // width
        load, store = run, min(REGISTER, streams * width)
        taken = columns | rows
        counts = (*(taken.get(k, 1) for k in range(len(axes) - 1)), width)
        tiles = prod(-(-axis.extent // count) for axis, count in zip(axes, counts))
        shuffles = NETWORK // REGISTER * 4 + NETWORK // load + NETWORK // store
        cost = _TILE + _SRC_RUN * streams + _DST_RUN * into + _SHUFFLE * shuffles
        cost += collisions(axes, counts, (1,) if makes_lines(streams, streams * width) else (1, 2))
        cost += NETWORK // load * _LOAD[load] + NETWORK // store * _STORE[store]
        transpose = Transpose(counts, tuple(columns), tuple(rows), tiles * cost)
        followed = tiles * followed_cost(axes, transpose) if follows else transpose.cost
        found.append(transpose._replace(followed=followed))
    if not found:
        return None
    least = min(transpose.cost for transpose in found)
    return min(found, key=lambda transpose: transpose.followed)._replace(cost=least)


def followed_cost(axes: list[Axis], shape: Transpose) -> float:
    """What a turn of a network costs a processor that follows streams: how often they begin, and whether they stay."""
    cost = 0.0
    for side, price in ((1, 1), (2, _FOLLOWED_RESULT)):
        pieces = ordered_pieces(axes, shape, side)
        runs = 1 + sum(after != before + pieces.width for before, after in pairwise(pieces.offsets))
        crowd = max(0, ways_of(pieces) - (WAYS - 1))
        cost += price * (runs + _FOLLOWED_CROWD * crowd * line_count(pieces))
    return cost


def ordered_pieces(axes: list[Axis], shape: Transpose, side: int) -> Side:
    """What a network reads or writes, in the order of memory."""
    across = shape.rows if side == 1 else shape.columns
    starts = sorted(
        sum(index * axes[k][side] for k, index in zip(across, indices))
        for indices in product(*(range(shape.counts[k]) for k in across))
    )
    run = NETWORK // len(starts)
    width = min(REGISTER, run)
    offsets = tuple(start + at for start in starts for at in range(0, run, width))
    return Side(width, offsets, ((1 << width) - 1,) * len(offsets))


def build_network(axes: list[Axis], shape: Transpose) -> Network:
    """The tables of a network.

    Places in the tile are numbers whose bits belong to axes. Ten bits say where a byte is: six in a register, four
    for which register. Loads put rows into register numbers, stores want columns there, and each level exchanges one
    for the other. All levels but the last, as long as there are columns within 16 bytes, exchange as the processor's
    instructions for interleaving do: the column of bit 3 leaves, the row comes in right above the granule. Rows leave
    in such an order, and those of pieces side by side in a register are such ones, that all rows within 8 bytes are in
    their places then: what is left to exchange is words of 8 bytes, which Intel's processors look up three times as
    fast as bytes.
    """
    def bits_of(k: int) -> list[Bit]:
        return [(k, 1 << bit) for bit in range(shape.counts[k].bit_length() - 1)]

    granule = bits_of(len(axes) - 1)
    columns = [bit for k in shape.columns for bit in bits_of(k)]
    rows = [bit for k in shape.rows for bit in bits_of(k)]
    load = min(REGISTER, 1 << len(granule) + len(columns))
    store = min(REGISTER, 1 << len(granule) + len(rows))
    stored = granule + rows + columns[::-1]
    into = stored[:6]
    start, lanes = len(granule), [bit for bit in into[4:] if bit in rows]
    beside = lanes[len(lanes) - max(0, 6 - start - len(columns)):]
    loaded = granule + columns + beside + [bit for bit in rows if bit not in beside]
    inside = loaded[:6]
    kept = [bit for bit in loaded[6:] if bit in stored[6:]]
    leaving = [bit for bit in loaded[6:] if bit not in kept]
    interleaved = min(len(leaving) - 1, max(0, 4 - start))
    leaving[:interleaved] = leaving[:interleaved][::-1]
    waiting = [bit for bit in stored[6:] if bit not in kept]
    coming: list[Bit] = []
    tables = []
    now = list(inside)
    for out in leaving:
        if out == leaving[-1]:
            new, then = waiting[0], into
        elif len(coming) < interleaved:
            new, then = now[3], [*now[:start], out, *now[start:3], *now[4:]]
        else:
            new = waiting[0]
            then = [out if bit == new else bit for bit in now]
        waiting.remove(new)
        coming.append(new)
        pair = []
        for value in (0, 1):
            table = bytearray(REGISTER)
            for place in range(REGISTER):
                bits = {bit: place >> k & 1 for k, bit in enumerate(then)}
                bits[new] = value
                table[place] = REGISTER * bits[out] + sum(bits[bit] << k for k, bit in enumerate(now))
            pair.append(bytes(table))
        tables.append((pair[0], pair[1]))
        now = list(then)

    def side(width: int, low: list[Bit], high: list[Bit], number: int) -> Side:
        """Where each piece lies in memory: pieces of a register first, then registers."""
        bits = low[width.bit_length() - 1:] + high
        offsets = tuple(
            sum(axes[k][number] * weight for at, (k, weight) in enumerate(bits) if piece >> at & 1)
            for piece in range(1 << len(bits))
        )
        return Side(width, offsets, ((1 << width) - 1,) * len(offsets))

    dst = side(store, into, coming + kept, 2)
    width, run = axes[-1].extent, prod(shape.counts[k] for k in (*shape.rows, len(axes) - 1))
    alike = all(offset % min(run, LINE) == 0 for offset in dst.offsets)
    unit, step = (width, axes[shape.rows[0]].src) if alike and len(shape.rows) == 1 else (0, 0)
    return Network(side(load, inside, leaving + kept, 1), dst, tuple(tables), run, unit, step)


class BentShape(NamedTuple):
    """A network whose places are uneven on one side: those axes, fastest first; and the network of one axis instead."""

    side: int  # the uneven one
    digits: tuple[int, ...]
    axes: tuple[Axis, ...]
    shape: Transpose


def best_bend(axes: list[Axis], follows: bool) -> BentShape | None:
    """The cheapest network along axes that go on from each other on one side alone."""
    found = []
    for side in (1, 2):
        even = 3 - side
        chain: list[int] = []
        step = unit = axes[-1].extent
        while len(chain) < _DIGITS:
            k = next((k for k, axis in enumerate(axes[:-1]) if axis[even] == step and k not in chain), None)
            if k is None or step * axes[k].extent > _BENT_BYTES or axes[k].extent * abs(axes[k][side]) > _BENT_REACH:
                break
            chain.append(k)
            step *= axes[k].extent
        if len(chain) < 2:
            continue
        one = axes[chain[0]]._replace(extent=step // unit)
        fused = [*(axis for k, axis in enumerate(axes[:-1]) if k not in chain), one, axes[-1]]
        shape = best_network(fused, follows)
        if shape and (shape.columns if even == 1 else shape.rows) == (len(fused) - 2,):
            found.append(BentShape(side, tuple(chain), tuple(fused), shape))
    return min(found, key=lambda bent: bent.shape.followed, default=None)


def is_worth_bending(bent: BentShape, transposed: Transpose | None, shape: Shape, most: float) -> bool:
    """Whether uneven places cost at most so many times as much as that network or, without one, tiles of this shape."""
    if transposed and transposed.cost < shape.cost:
        return bent.side == 1 and bent.shape.followed <= most * transposed.followed
    return bent.shape.cost <= most * shape.cost


def build_bend(axes: list[Axis], bent: BentShape) -> tuple[Network, tuple[Loop, ...]]:
    """The network, and the loops around it: those that share lines of the uneven side are inside of its places."""
    fused, place = list(bent.axes), len(bent.axes) - 2
    unit, indices = fused[-1].extent, bent.shape.counts[place]

    def with_steps(step: int, others: int) -> list[Axis]:
        """The axes, with this step of the places on the uneven side and so many times that of all others."""
        return [
            Axis(axis.extent, *(
                value if side != bent.side else step if k == place else value * others
                for side, value in ((1, axis.src), (2, axis.dst))
            ))
            for k, axis in enumerate(fused)
        ]

    network = build_network(with_steps(0, 1), bent.shape)
    numbers = build_network(with_steps(1, 0), bent.shape)
    index = (numbers.src if bent.side == 1 else numbers.dst).offsets
    loops = [loop for loop in loops_of(fused, bent.shape.counts) if loop.of != place]
    loops.sort(key=lambda loop: -abs(loop.axis[bent.side]))
    inside = sum(abs(loop.axis[bent.side]) < LINE for loop in loops[-3:])
    digits = tuple((axes[k].extent, axes[k][bent.side]) for k in bent.digits)
    bend = Bend(bent.side, digits, indices, unit, inside, index)
    others = [k for k in range(len(axes)) if k not in bent.digits]
    ordered = tuple(loop._replace(of=(others[:-1] + [-1] + others[-1:])[loop.of]) for loop in loops)
    return network._replace(unit=0, step=0, bend=bend), ordered


def bytes_of(axes: list[Axis], counts: tuple[int, ...], pattern: Pattern) -> list[Entry]:
    """Every byte of a tile."""
    offsets = [(0, 0, 0)]
    for axis, count in zip(axes[:-1], counts[:-1]):
        offsets = [(s + i * axis.src, d + i * axis.dst, t + i * axis.tab) for s, d, t in offsets for i in range(count)]
    return [
        (None if source is None else s + source + byte, d + target + byte, fill + byte, t // TABLE + table)
        for s, d, t in offsets
        for source, target, fill, table in pattern
        for byte in range(counts[-1])
    ]


def cheapest_shape(axes: list[Axis], pattern: Pattern, most: int, inputs: int = REGISTERS) -> Shape | None:
    """The cheapest tile of a granule or a pattern, with limits as `best_shape`."""
    if len(pattern) == 1:
        return best_shape(axes, most, inputs)
    return best_pattern_shape(axes, pattern, most, inputs)


def best_pattern_shape(axes: list[Axis], pattern: Pattern, most: int, inputs: int) -> Shape | None:
    """The cheapest tile of a whole pattern and a part of one axis, with limits as `best_shape`."""
    best = None
    ones = (1,) * (len(axes) - 1) + (axes[-1].extent,)
    size = len(pattern) * axes[-1].extent
    masked = price(_MASKED, size * prod(axis.extent for axis in axes[:-1])) or 1.0
    outer = range(len(axes) - 1)
    near = {min(outer, key=lambda k: abs(axes[k][side])) for side in (1, 2)} if outer else set()
    shapes = [ones]
    for k in near:
        shapes += [(*ones[:k], count, *ones[k + 1:]) for count in part_extents(axes[k].extent, TILE // max(1, size))]
    for counts in shapes:
        pairs = bytes_of(axes, counts, pattern)
        sources = sorted({pair[0] for pair in pairs if pair[0] is not None})
        targets = sorted(pair[1] for pair in pairs)
        load, load_cost = cheapest(_LOAD, cover_bytes(sources), 1.0, inputs * REGISTER)
        store, store_cost = cheapest(_STORE, cover_bytes(targets), masked, most)
        tiles = prod(-(-axis.extent // count) for axis, count in zip(axes, counts))
        cost = tiles * (_TILE + load_cost + store_cost)
        if load and store and (best is None or cost < best.cost):
            best = Shape(counts, load, store, cost)
    return best

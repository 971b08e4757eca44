"""The tile compiler alone: tiles and loops run by hand, byte by byte, against the boxes they were made of.

The same plans go through the kernels where these run tiles. Nothing here asks what a tile costs, only what it moves.
"""

from itertools import cycle, islice, product
from math import prod

import numpy as np
import pytest

import s2dq
from s2dq import _kernels, _plan, _tiles, _validate, reference
from s2dq._plan import SEQUENCE, Box, F, Means, Plan, Segment, X, Y, canonical, cut_axis
from s2dq._tiles import (
    LINE,
    PAGE,
    REGISTER,
    REGISTERS,
    Axis,
    Loop,
    Network,
    Output,
    Shape,
    Side,
    Tile,
    Transpose,
    best_network,
    best_shape,
    build,
    build_network,
    loops_of,
    misses,
    order_loops,
    pieces_of,
    positions,
    tile_of,
    tile_past,
)
from s2dq.operators import SLACK
from tiles_by_hand import FILL, distinct, map_of_granules, map_of_segments, moved, run_of_tile, turns_of

SINGLE = ((0, 0, 0, 0),)
WIDTHS = (1, 1, 1, 2, 3, 4, 6, 8, 12, 16)
ALL_MEANS = Means(
    networks=True, streams=True, short_rows=True, lines=True, moves=True, maps=False, tables=False, follows=False,
    bends=True,
)  # fmt: skip
KERNEL_MEANS = _kernels.tile_means() and Means(*_kernels.tile_means())
needs_tiles = pytest.mark.skipif(not KERNEL_MEANS, reason="this instruction set runs no tile programs")


def equal(found, expected, what):
    """`what` is a text, or a function that gives one."""
    if found.dtype != expected.dtype or not np.array_equal(found, expected):  # which is quicker than NumPy's assertion
        what = what() if callable(what) else what
        np.testing.assert_array_equal(found, expected, strict=True, err_msg=what)


# ------------------------------------------------------------------------------------------------ random boxes


def chained_steps(rng, extents, first):
    """Steps, in any order of the axes, that keep positions apart: some with gaps."""
    steps, step = [0] * len(extents), first
    for k in rng.permutation(len(extents)):
        steps[k] = step
        step = step * extents[k] + int(rng.choice((0, 0, 1, 5, 8)))
    return steps


def random_axes(rng, most, width, count=None):
    """1 to 5 axes of together at most `most` bytes; sources run backwards, stand still, overlap, or take odd steps."""
    extents, size = [], width
    for _ in range(count or rng.integers(1, 6)):
        extents.append(int(min(rng.integers(1, 71 if rng.random() < 0.5 else 9), max(1, most // size))))
        size *= extents[-1]
    rng.shuffle(extents)
    src = [
        0 if kind < 0.08 else int(rng.integers(-300, 300)) if kind < 0.2 else -step if kind < 0.35 else step
        for step, kind in zip(chained_steps(rng, extents, width), rng.random(len(extents)))
    ]
    dst = chained_steps(rng, extents, width + int(rng.choice((0, 0, 0, 1, 3))))
    return [Axis(*axis) for axis in zip(extents, src, dst)]


def random_width(rng):
    return int(rng.integers(1, 71) if rng.random() < 0.4 else rng.choice(WIDTHS))


def random_box(rng, most):
    width = random_width(rng)
    width, axes = canonical(random_axes(rng, most, width), width, grow=bool(rng.integers(2)))
    return Box(X, Y, 0, 0, width, axes)


def permuted_steps(rng, extents, width):
    """The steps of axes that follow each other without gaps, in any order."""
    steps, step = [0] * len(extents), width
    for k in rng.permutation(len(extents)):
        steps[k] = step
        step *= extents[k]
    return steps


def random_transpose_box(rng):
    """Many streams across many others, and an axis around them: what networks are for."""
    width = int(rng.choice((1, 1, 2, 4, 8, 16)))
    if rng.random() < 0.5:  # axes of powers of two, and one of any extent, in two orders
        extents = [*map(int, 2 ** rng.integers(1, 5, 3)), int(rng.integers(2, 40))]
        axes = [Axis(*axis) for axis in zip(extents, *(permuted_steps(rng, extents, width) for _ in range(2)))]
        return Box(X, Y, 0, 0, *canonical(axes, width, grow=False))
    inner, outer, around = (int(rng.integers(least, most)) for least, most in ((2, 80), (16, 140), (2, 4)))
    gaps = rng.choice((0, 0, 1, 17), 2)
    source, target = width * inner + int(gaps[0]), width * outer + int(gaps[1])
    sign = int(rng.choice((1, 1, 1, -1)))
    axes = [
        Axis(inner, width, target),
        Axis(outer, sign * source, width),
        Axis(around, outer * source, inner * target),
    ]
    rng.shuffle(axes)
    width, axes = canonical([Axis(*map(int, axis)) for axis in axes], width, grow=False)
    return Box(X, Y, 0, 0, width, axes)


def random_bent_box(rng):
    """Narrow lines of pixels to planes, or back: channels, lines, and others around them."""
    width = int(rng.choice((1, 1, 1, 2, 4)))
    channels, across = int(rng.choice((16, 32, 64, 20))), int(rng.integers(5, 45))
    down, blocks = int(rng.integers(2, 24)), int(rng.integers(1, 4))
    pixel = width * channels * blocks + int(rng.choice((0, 0, 8)))
    line, plane = pixel * across * int(rng.integers(1, 3)) + int(rng.choice((0, 16))), width * across * down
    steps = [(width, plane), (width * channels, plane * channels), (pixel, width), (line, width * across)]
    turned = int(rng.choice((1, -1)))
    if rng.random() < 0.3:  # which no network of even places suits
        width, channels, across, turned = 1, 64, int(rng.integers(9, 16)), -1
        pixel, line, plane = channels * blocks, channels * blocks * across, across * down
        steps = [(1, plane), (channels, plane * channels), (pixel, 1), (line, across)]
    axes = [
        Axis(extent, *(step[::turned])) for extent, step in zip((channels, blocks, across, down), steps)
    ]
    return Box(X, Y, 0, 0, *canonical(axes, width, grow=False))


def bends_in(segments):
    tiles = [box.tile for segment in segments for box in segment.boxes]
    return [tile.bend.side for tile in tiles if isinstance(tile, Network) and tile.bend]


def networks_in(segments):
    return sum(isinstance(box.tile, Network) for segment in segments for box in segment.boxes)


def random_pattern_box(rng, most):
    """Granules from anywhere, and some that are filled, in the places of one word."""
    width = int(rng.choice((1, 1, 2, 4)))
    slots = int(rng.integers(2, 1 + min(40, 256 // width)))
    places = rng.permutation(slots + int(rng.integers(0, 4)))[:slots] * width
    pattern = tuple(
        (None if filled else int(source) * width, int(place), int(fill) * width, 0)
        for filled, source, place, fill in zip(
            rng.random(slots) < 0.3, rng.integers(-40, 40, slots), places, rng.integers(0, 4, slots)
        )
    )
    if all(source is None for source, *_ in pattern):
        pattern = ((0, *pattern[0][1:]), *pattern[1:])
    axes = random_axes(rng, max(1, most // 256), 1, count=int(rng.integers(1, 4)))
    around = int(places.max()) + width
    axes = [axis._replace(dst=axis.dst * around, src=axis.src * width) for axis in axes]
    _, axes = canonical(axes, width, grow=False)
    return Box(X, Y, 0, 0, width, axes, pattern=pattern)


# Boxes whose loops run in blocks and leave a remainder; the last in steps of 48 bytes, where a block is one index.
BLOCKED = [
    (1, [Axis(100, 4096, 1), Axis(4001, 1, 128)]),
    (1, [Axis(64, 3140, 1), Axis(785, 4, 64), Axis(4, 1, 64 * 785)]),
    (1, [Axis(90, 4103, 1), Axis(4103, 1, 90)]),
    (1, [Axis(24, 1, 2 * 1152), Axis(2, 24, 48 * 14 * 12), Axis(5, 112, 63), Axis(63, 2565, 1)]),
]


def fits(box):
    return tile_of(box.axes, box.width, box.pattern) is not None


def tiled(box, large=False, means=ALL_MEANS):
    return tuple(_plan.tiled(box, means._replace(streams=means.streams and large)))


def tiled_for_kernels(box, large=False):
    return tiled(box, large, KERNEL_MEANS)


def bent_boxes(rng, means):
    """Boxes and their segments, until at least 20 networks have uneven places, on either side."""
    sides = []
    for _ in range(3000):
        box = random_bent_box(rng)
        segments = tiled(box, means=means)
        sides += bends_in(segments)
        yield box, segments
        if len(sides) >= 20 and set(sides) == {1, 2}:
            return
    raise AssertionError(f"too few with uneven places: {sides}")


# -------------------------------------------------------------------------------------------------- one tile


@pytest.mark.parametrize(
    ("offsets", "width", "starts", "masks"),
    [
        ([], 16, (), ()),
        ([0], 16, (0,), (1,)),
        (range(64), 64, (0,), (2**64 - 1,)),
        (range(65), 64, (0, 64), (2**64 - 1, 1)),
        ([-3, 12, 13], 16, (-3, 13), (0x8001, 1)),
        ([100, 0, 31, 32], 32, (0, 32, 100), (0x80000001, 1, 1)),
    ],
)
def test_pieces_of_table(offsets, width, starts, masks):
    assert pieces_of(offsets, width) == Side(width, starts, masks)


@pytest.mark.parametrize(("pieces", "width", "registers"), [(1, 64, 1), (3, 32, 2), (4, 16, 1), (5, 16, 2), (4, 64, 4)])
def test_registers_of_a_side(pieces, width, registers):
    assert Side(width, (0,) * pieces, (1,) * pieces).registers == registers


def test_pieces_hold_exactly_the_bytes_asked_for(rng):
    for _ in range(300):
        offsets = rng.choice(400, rng.integers(1, 120), replace=False) - 200
        width = int(rng.choice((16, 32, 64)))
        side = pieces_of(offsets.tolist(), width)
        held = positions(side)
        assert sorted(held) == sorted(offsets.tolist()) and len(set(held.values())) == len(held)
        assert all(mask & 1 for mask in side.masks), f"a piece that starts before its first byte: {side}"
        gaps = np.diff(side.offsets)
        assert (gaps >= width).all(), f"pieces overlap: {side}"


def random_pairs(rng, count):
    """Bytes from anywhere to different places, some of them filled."""
    targets = rng.choice(300, count, replace=False) - 100
    sources = rng.integers(-100, 120, count)
    filled = rng.random(count) < rng.choice((0, 0.2, 1))
    return [
        (None if fill else int(src), int(dst), int(rng.integers(0, 128)) if fill else 0, int(rng.integers(0, 9)))
        for src, dst, fill in zip(sources, targets, filled)
    ]


def test_build_moves_each_byte_where_it_is_told(rng):
    built = 0
    for _ in range(400):
        pairs = random_pairs(rng, int(rng.integers(1, 150)))
        load, store = (int(rng.choice((16, 32, 64))) for _ in range(2))
        tile = build(pairs, load, store)
        sides = (
            pieces_of({src for src, *_ in pairs if src is not None}, load),
            pieces_of([dst for _, dst, *_ in pairs], store),
        )
        if max(side.registers for side in sides) > REGISTERS:
            assert tile is None
            continue
        built += 1
        expected = [(dst, FILL - fill if src is None else src) for src, dst, fill, _ in pairs]
        equal(distinct(run_of_tile(tile)), distinct(np.array(expected)), f"{pairs} {load} {store}")
        src, dst = sides
        assert tile.nbytes == len(pairs) and tile.dst == dst
        pieces = [piece for piece in zip(tile.src.offsets, tile.src.masks) if piece[1]]
        assert tile.src.width == src.width
        assert sorted(pieces) == list(zip(src.offsets, src.masks))  # registers may change places
        tables = {dst: table for _, dst, _, table in pairs}
        assert all(tile.outputs[at // 64].tab[at % 64] == tables[dst] for dst, at in positions(tile.dst).items())
    assert 100 < built < 400


# Which register the pair begins with that an output comes from, for so many inputs; the last is followed by the first.
PAIRS = {
    3: [(0, 1), (0, 1, 2), (0, 0, 1, 1)],
    4: [(0, 2), (0, 1, 2), (0, 0, 2, 2), (0, 2, 0, 2)],
}


def registers_of(tile):
    """From which registers of the source the bytes of each output come."""
    lanes = set(positions(tile.dst).values())
    return [
        {
            (128 * (output.upper >> lane & 1) + (output.high if output.upper >> lane & 1 else output.low)[lane]) // 64
            for lane in range(64)
            if 64 * k + lane in lanes
        }
        for k, output in enumerate(tile.outputs)
    ]


@pytest.mark.parametrize("load", [16, 32, 64])
@pytest.mark.parametrize(("inputs", "firsts"), [(inputs, firsts) for inputs, ways in PAIRS.items() for firsts in ways])
def test_build_puts_registers_beside_each_other_that_an_output_comes_from(rng, inputs, firsts, load):
    built = 0
    for _ in range(20):
        names = rng.permutation(inputs)  # what the sorted registers are called
        pieces = inputs * 64 // load - int(rng.integers(0, 64 // load))  # the last register may have fewer
        starts = np.sort(rng.choice(99, pieces, replace=False)) * 80
        bytes_in = [[int(start) + i for start in starts[k * 64 // load:(k + 1) * 64 // load] for i in range(load)]
                    for k in range(inputs)]
        pairs = []
        for output, first in enumerate(firsts):
            pool = bytes_in[names[first]] + bytes_in[names[(first + 1) % inputs]]
            pairs += [(int(source), 64 * output + lane, 0, 0) for lane, source in enumerate(rng.choice(pool, 64))]
        wanted = {source for source, *_ in pairs}
        if pieces_of(wanted, load).registers < inputs:
            continue
        built += 1
        tile = build(pairs, load, 64)
        equal(distinct(run_of_tile(tile)), distinct(np.array([(dst, src) for src, dst, *_ in pairs])), str(pairs))
        found = registers_of(tile)
        neighbours = [
            all(came <= {k, (k + 1) % inputs} for came, k in zip(found, way, strict=True))
            for way in PAIRS[inputs]
            if len(way) == len(firsts)
        ]
        assert any(neighbours), f"{found} {tile}"
    assert built > 10


def test_windows_of_a_tile(rng):
    """Runs of 16 bytes that hold all sources of 16 bytes of the result, at most: what a processor without shuffles
    across lanes reads. Sources may lie before the first pixel."""
    found = set()
    for _ in range(300):
        count, load, store = int(rng.choice((32, 64, 96, 128))), *(int(rng.choice((16, 32, 64))) for _ in range(2))
        spread = int(rng.choice((20, 60, 250)))
        sources = rng.integers(-spread, spread, count).tolist()
        filled = (rng.random(count) < rng.choice((0, 0.4, 1))).tolist()
        tile = build([(None if fill else src, dst, 0, 0) for dst, (src, fill) in enumerate(zip(sources, filled))],
                     load, store)  # fmt: skip
        if tile is None:
            continue
        most = 1
        for first in range(0, count, 16):
            left = {src for src, fill in zip(sources[first:first + 16], filled[first:first + 16]) if not fill}
            runs = 0
            while left:
                left -= set(range(min(left), min(left) + 16))
                runs += 1
            most = max(most, runs)
        whole = count % store == 0
        assert tile.windows() == (most if whole else 0), f"{sources} {filled} {load} {store}"
        found.add((most, whole))
    assert len({most for most, whole in found if whole}) > 8 and any(not whole for _, whole in found)


@pytest.mark.parametrize("count", [16, 48])
def test_results_in_half_vectors_have_no_windows(count):
    assert build([(k, k, 0, 0) for k in range(count)], 16, 16).windows() == 0


@pytest.mark.parametrize("windows, axes, swept", [
    (4, (Axis(9, 511, 128),), True), (4, (Axis(9, -511, 128),), True), (4, (Axis(9, 512, 128),), False),
    (4, (Axis(9, -512, 128),), False), (4, (), True), (4, (Axis(9, 4096, 2048), Axis(9, 32, 128)), True),
    (4, (Axis(9, 32, 2048), Axis(9, 4096, 128)), False), (5, (Axis(9, 32, 128),), False),
])  # fmt: skip
def test_which_tiles_are_swept(windows, axes, swept):
    """Those with as many windows as a loop holds, whose innermost loop takes short steps."""
    sources = [k % windows * 20 + k // windows % 4 for k in range(128)]
    tile = build([(src, dst, 0, 0) for dst, src in enumerate(sources)], 16, 32)
    assert tile.windows() == windows
    assert _plan.is_swept(Segment((), (Box(X, Y, 0, 0, 128, axes, tile=tile),))) is swept


@pytest.mark.parametrize("tile", [None, build([(k, k, 0, 0) for k in range(48)], 16, 16)], ids=["none", "half"])
def test_what_has_no_windows_is_not_swept(tile):
    box = Box(X, Y, 0, 0, 48, (), tile=tile)
    assert not _plan.is_swept(Segment((), (box,)))


def planes_of_pixels(tables, store):
    """Pixels of one byte for each of `tables`, each byte to a plane of its own, `store` bytes of each."""
    return [
        (pixel * len(tables) + channel, 1000 * channel + pixel, 0, table)
        for channel, table in enumerate(tables)
        for pixel in range(store)
    ]


@pytest.mark.parametrize(
    ("tables", "store", "own"),
    [
        ((0, 1, 2), 64, [0, 1, 2]),
        ((0, 1, 2) * 4, 16, [0, 1, 2]),
        ((0, 1) * 2, 32, [0, 1]),
        ((0,) * 8, 16, [0, 0]),
        ((0, 1, 2), 32, None),  # a register holds two planes, and of each table there is one
        ((0, 1, 1, 1), 32, None),
    ],
)
def test_build_gives_registers_one_table_each_where_they_can_have_one(tables, store, own):
    pairs = planes_of_pixels(tables, store)
    tile, plain = build(pairs, 64, store, apart=True), build(pairs, 64, store)
    expected = distinct(np.array([(dst, src) for src, dst, *_ in pairs]))
    equal(distinct(run_of_tile(tile)), expected, str(tile))
    by_byte = {dst: table for _, dst, _, table in pairs}
    at = positions(tile.dst)
    assert all(tile.outputs[place // 64].tab[place % 64] == by_byte[dst] for dst, place in at.items())
    through = [{by_byte[dst] for dst, place in at.items() if place // 64 == k} for k in range(len(tile.outputs))]
    if own is None:
        assert tile == plain
    else:
        assert through == [{table} for table in own]


def test_build_leaves_pieces_that_go_through_two_tables():
    pairs = [(k, k, 0, k % 3) for k in range(192)]
    assert build(pairs, 64, 64, apart=True) == build(pairs, 64, 64)


def test_build_refuses_what_registers_cannot_hold():
    far_apart = [(1000 * k, k, 0, 0) for k in range(17)]
    assert build(far_apart, 16, 64) is None
    assert build(far_apart[:16], 16, 64) is not None
    assert build([(dst, src, 0, 0) for src, dst, *_ in far_apart], 64, 16) is None


@needs_tiles
def test_tile_table_is_as_long_as_the_kernels_expect(rng):
    """Program reads the table to its last entry, or refuses it."""
    box = random_box(rng, 5000)
    table = Plan(tiled_for_kernels(box), 0).encode()
    assert _kernels.Program(np.array(table, np.int64)).nbytes >= box.width * prod(axis.extent for axis in box.axes)
    with pytest.raises(ValueError, match="plan table"):
        _kernels.Program(np.array([*table, 0], np.int64))


@pytest.mark.parametrize(
    ("width", "axes", "short"),
    [
        (1, [(7168, 28, 112), (2, 401408, 56), (2, 200704, 1), (28, 1, 2)], True),  # 28 x 28 maps to 56 x 56
        (1, [(7168, 112, 28), (2, 56, 401408), (2, 1, 200704), (28, 2, 1)], True),  # and back
        (2, [(100, 20, 40), (2, 4000, 2), (10, 2, 4)], True),
        (1, [(7168, 16, 64), (2, 401408, 32), (2, 200704, 1), (16, 1, 2)], False),  # no part of a row is left over
        (1, [(7168, 32, 128), (2, 401408, 64), (2, 200704, 1), (32, 1, 2)], False),
        (1, [(100, 28, 84), (3, 2800, 1), (28, 1, 3)], False),  # three streams
        (1, [(100, 28, 60), (2, 2800, 1), (28, 1, 2)], False),  # rows with gaps between them
        (1, [(100, 28, 56), (28, 1, 2)], False),  # one stream
        (1, [(2, 64, 20), (20, 2, 1)], False),  # every other byte of two rows
        (3, [(100, 24, 48), (2, 2400, 3), (8, 3, 6)], False),  # no register holds a whole number of elements
    ],
)
def test_short_rows_of_two_streams_do_without_tiles(width, axes, short):
    box = Box(X, Y, 0, 0, width, tuple(Axis(*axis) for axis in axes))
    assert _plan.in_short_rows(box) == short


@pytest.mark.parametrize("block", [2, 4])
def test_plans_leave_short_rows_to_the_kernels_that_know_them(block):
    """Maps of 56 x 56: blocks of two make two streams, blocks of four do not."""
    plan = plan_of("space_to_depth", (1, 8, 56, 56), np.int8, {"block_size": block, "data_format": "NCHW"})
    assert all((box.tile is None) == (block == 2) for segment in plan.segments for box in segment.boxes)


# -------------------------------------------------------------------------------------------- the shape of a tile


def test_best_shape_fits_in_the_registers(rng):
    for _ in range(300):
        box = random_box(rng, 1 << 16)
        every = [*box.axes, Axis(box.width, 1, 1)]
        shape = best_shape(every)
        assert isinstance(shape, Shape) and shape.cost > 0 and {shape.load, shape.store} <= {16, 32, 64}
        assert len(shape.counts) == len(every)
        assert all(1 <= count <= axis.extent for count, axis in zip(shape.counts, every, strict=True)), f"{shape} {box}"
        assert prod(shape.counts) <= 256
        assert build(_tiles.bytes_of(every, shape.counts, SINGLE), shape.load, shape.store), f"{shape} {box}"


def test_loops_cover_an_axis_and_end_where_it_ends(rng):
    for _ in range(300):
        extent = int(rng.integers(1, 100))
        count = int(rng.integers(1, extent + 1))
        axis = Axis(extent, *(int(step) for step in rng.integers(-9, 9, 2)))
        loops = loops_of([axis], (count,))
        back = -(-extent // count) * count - extent
        starts, _ = turns_of([loop.axis._replace(src=count, src_back=back) for loop in loops])
        covered = {int(start) + k for start in starts for k in range(count)}
        assert covered == set(range(extent)), f"{axis} in {count}s: {loops}"
        src, dst = turns_of([loop.axis for loop in loops])
        equal(src, starts * axis.src, f"{axis} in {count}s")
        equal(dst, starts * axis.dst, f"{axis} in {count}s")


def test_order_of_loops_loses_and_repeats_nothing(rng):
    """Every index once; an axis run in blocks leaves less than a block over, and that at its end."""
    blocked = 0
    boxes = [Box(X, Y, 0, 0, *canonical(axes, width)) for width, axes in BLOCKED]
    for box in boxes + [random_box(rng, 1 << 20) for _ in range(150)]:
        every = [*box.axes, Axis(box.width, 1, 1)]
        shape = best_shape(every)
        tile = build(_tiles.bytes_of(every, shape.counts, SINGLE), shape.load, shape.store)
        loops = loops_of(every, shape.counts)
        ordered = order_loops(loops, tile)
        assert {loop.of for loop in ordered} == {loop.of for loop in loops}
        for loop in loops:
            same = [other for other in ordered if other.of == loop.of]
            if same == [loop]:
                continue
            blocked += 1
            outer, inner = sorted(same, key=lambda part: -part.count)
            assert outer.count == inner.count * inner.axis.extent, f"{same}"
            assert inner.axis.extent > 1 and outer.axis.extent > 1, f"a loop of one turn: {same}"
            assert not any(other.axis.src_back or other.axis.dst_back for other in same)
            indices, _ = turns_of([other.axis._replace(src=other.count) for other in same])
            equal(np.sort(indices), np.arange(len(indices)) * loop.count, f"{same}")
            assert loop.axis.extent - outer.axis.extent * inner.axis.extent in range(inner.axis.extent + 1)
    assert blocked >= len(BLOCKED)


GROWING = (Axis(96, 1312, 32), Axis(41, 32, 3072))  # of granules of 32 bytes, in rows of the result of 3 KiB


def test_tiles_with_lookups_do_not_grow_beyond_their_registers():
    grown, loops = tile_of(GROWING, 32)
    assert grown.dst.runs() == (1, 4) and loops[-1].axis.dst == 256
    mapped, _ = tile_of(GROWING, 32, mapped=True)
    assert mapped.dst.is_whole() and mapped.dst.registers == _tiles.MAPPED_REGISTERS


def test_patterns_do_not_grow_into_single_granules():
    pattern = ((0, 0, 0, 0), (1 << 22, 1 << 22, 0, 0))
    segments = tiled(Box(X, Y, 0, 0, 32, GROWING, pattern=pattern))
    equal(map_of_segments(segments), distinct(map_of_granules(GROWING, pattern, 32)), f"{Plan(segments, 0)}")


@pytest.mark.parametrize("innermost", range(6))
def test_a_loop_that_has_to_be_the_last_is_the_last(innermost):
    """Also the one with the longest steps, of more loops than are tried in any order."""
    steps = [64 * 3**k for k in range(6)]
    tile = build([(k, k, 0, 0) for k in range(64)], 64, 64)
    loops = [_tiles.Loop(Axis(3, steps[-1 - k], steps[k]), k, 1) for k in range(6)]
    ordered, cost = _tiles.cheapest_order(loops, tile, innermost)
    assert ordered[-1].of == innermost and sorted(ordered) == sorted(loops) and cost < float("inf")


# -------------------------------------------------------------------------------------------- boxes, run by hand


@pytest.mark.parametrize(("boxes", "most"), [(500, 1 << 12), (60, 1 << 16), (25, 400_000)])
@pytest.mark.parametrize("large", [False, True], ids=["in the caches", "past the caches"])
def test_tiles_of_random_boxes(rng, boxes, most, large):
    for _ in range(boxes):
        box = random_box(rng, most)
        segments = tiled(box, large)
        what = f"{box}\n{Plan(segments, 0)}"
        equal(map_of_segments(segments), distinct(map_of_granules(box.axes, box.pattern, box.width)), what)


@pytest.mark.parametrize("follows", [False, True])
def test_networks_of_random_transposes(rng, follows):
    networks = 0
    for _ in range(150):
        box = random_transpose_box(rng)
        segments = tiled(box, means=ALL_MEANS._replace(follows=follows))
        networks += networks_in(segments) > 0
        expected = map_of_granules(box.axes, box.pattern, box.width)
        equal(map_of_segments(segments), distinct(expected), f"{box}\n{Plan(segments, 0)}")
    assert networks > 15


@pytest.mark.parametrize("follows", [False, True])
def test_networks_of_narrow_lines(rng, follows):
    """Places that are uneven on either side; and none where kernels have none."""
    means = ALL_MEANS._replace(follows=follows)
    for box, segments in bent_boxes(rng, means):
        expected = map_of_granules(box.axes, box.pattern, box.width)
        equal(map_of_segments(segments), distinct(expected), f"{box}\n{Plan(segments, 0)}")
        assert not bends_in(tiled(box, means=means._replace(bends=False)))


@pytest.mark.parametrize(("follows", "network"), [
    (False, "32x32B>32x32B net X[28:128 28:7168] by 32, 1 inside"),
    (True, "64x16B>16x64B net X[28:128 28:7168] by 64, 1 inside"),  # fewer runs of the result
])  # fmt: skip
def test_what_narrow_lines_become(follows, network):
    """28x28 pixels of 64 channels in blocks to planes: some pixels from some channels at a time."""
    axes = tuple(Axis(*axis) for axis in [(64, 1, 784), (28, 7168, 28), (28, 128, 1)])
    segments = tiled(Box(X, Y, 0, 0, 1, axes), means=ALL_MEANS._replace(follows=follows))
    ((_, (box,)),) = segments
    assert str(box.tile) == network
    assert box.tile.bend.total == 784 and box.tile.nbytes == (16 if follows else 32) * 784


@pytest.mark.parametrize(("follows", "images", "bent"), [(False, 20, True), (False, 21, False), (True, 21, True)])
def test_how_large_a_result_may_be_for_uneven_places(follows, images, bent):
    axes = (Axis(images, 28 * 7168, 64 * 784), Axis(64, 1, 784), Axis(28, 7168, 28), Axis(28, 128, 1))
    segments = tiled(Box(X, Y, 0, 0, 1, axes), means=ALL_MEANS._replace(follows=follows))
    assert bool(bends_in(segments)) == bent


def test_boxes_in_parts_move_what_they_moved(rng, monkeypatch):
    """Tiles whose last turn goes back, networks, and boxes without either; and how large the parts are."""
    back = cut = 0
    for k in range(60):
        box = random_transpose_box(rng) if k % 3 == 0 else random_box(rng, 3000)
        for whole in (box, *(part for segment in tiled(box) for part in segment.boxes)):
            monkeypatch.setattr(_plan, "_BOX_BYTES", most := int(rng.choice((1, 100, 1000))))
            parts = list(_plan.cut_loops(whole))
            equal(*(map_of_segments((Segment((), tuple(boxes)),)) for boxes in ((whole,), parts)), f"{whole}")
            sizes = [part.width * prod(axis.extent for axis in part.axes) for part in parts]
            assert all(size <= 2 * most or size == whole.width for size in sizes)
            assert len(parts) <= 1 + 4 * sum(sizes) // max(most, whole.width)
            cut += len(parts) > 1
            back += len(parts) > 1 and any(axis.src_back or axis.dst_back for axis in whole.axes)
    assert cut > 60 and back > 6


@pytest.mark.parametrize("width, extents, parts", [
    (1, (8, 25), [(8, 25)]), (1, (3, 67), [(3, 33), (3, 33), (3, 1)]), (1, (67, 3), [(33, 3), (33, 3), (1, 3)]),
    (201, (), [()]), (201, (1, 1), [(1, 1)]), (101, (2,), [(1,), (1,)]), (100, (2,), [(2,)]), (200, (2,), [(1,), (1,)]),
    (25, (9, 1), [(4, 1), (4, 1), (1, 1)]), (10, (2, 400), 80 * [(2, 5)]),
])  # fmt: skip
def test_in_which_parts_a_box_is_cut(monkeypatch, width, extents, parts):
    """Up to 200 bytes are one part, longer boxes are cut to 100 along the longest loop, granules never."""
    monkeypatch.setattr(_plan, "_BOX_BYTES", 100)
    box = Box(X, Y, 0, 0, width, tuple(Axis(extent, width, width) for extent in extents))
    assert [tuple(axis.extent for axis in part.axes) for part in _plan.cut_loops(box)] == parts


def test_only_the_last_turn_of_a_cut_loop_goes_back(monkeypatch):
    """... and tables, which are counted along, begin where a part does."""
    monkeypatch.setattr(_plan, "_BOX_BYTES", 100)
    box = Box(X, Y, 7, 9, 10, (Axis(25, 30, 40, 256, 3, 4), Axis(2, 1, 10, 0, 5, 6)), "table", 512)
    parts = [Box(X, Y, 7 + 30 * k, 9 + 40 * k, 10, (Axis(5, 30, 40, 256), box.axes[1]), "table", 512 + 256 * k)
             for k in (0, 5, 10, 15)]
    last = Box(X, Y, 7 + 600, 9 + 800, 10, (Axis(5, 30, 40, 256, 3, 4), box.axes[1]), "table", 512 + 20 * 256)
    assert list(_plan.cut_loops(box)) == [*parts, last]


@pytest.mark.parametrize("beyond", [0, 5])
@pytest.mark.parametrize(("height", "width"), [(8, 8), (7, 64), (17, 24), (16, 40), (9, 16), (20, 32), (11, 64)])
@pytest.mark.parametrize("itemsize", [1, 2, 4, 8])
def test_transposes_begin_anywhere(rng, itemsize, height, width, beyond):
    """At every distance from a cache line, and nothing is written before or behind them. Rows of a crop go on behind
    each other in the result alone."""
    frame = rng.integers(0, 256, (2, height, width + beyond, 64 * itemsize), np.uint8)
    x = frame.view(f"u{itemsize}")[:, :, :width]
    expected = np.ascontiguousarray(x.transpose(0, 3, 1, 2))
    memory = np.empty(expected.nbytes + 192, np.uint8)
    for start in range(64, 128, itemsize):
        memory.fill(77)
        out = memory[start : start + expected.nbytes].view(x.dtype).reshape(expected.shape)
        s2dq.space_to_depth(x, 1, "NHWC", out_format="NCHW", out=out)
        np.testing.assert_array_equal(out, expected)
        assert (memory[:start] == 77).all() and (memory[start + expected.nbytes :] == 77).all()


@pytest.mark.parametrize(
    ("width", "run"), [(width, run) for width in (1, 2, 4, 8, 16) for run in (16, 32, 64) if width < run]
)
def test_network_of_every_shape(rng, width, run):
    columns, rows = run // width, 1024 // run
    every = [Axis(columns, width, 1088), Axis(rows, 3000, width), Axis(width, 1, 1)]
    shape = Transpose((columns, rows, width), (0,), (1,), 0.0)
    network = build_network(every, shape)
    assert (network.run, network.unit, network.step) == (rows * width, width, 3000)
    apart = build_network([Axis(columns, width, 1096), *every[1:]], shape)  # runs that begin at no common distance
    assert (apart.unit, apart.step) == (0, 0)
    assert all(len(pair[0]) == len(pair[1]) == 64 for pair in network.tables) and 1 <= len(network.tables) <= 4
    expected = map_of_granules(every[:2], SINGLE, width)
    equal(distinct(run_of_tile(network)), distinct(expected), f"{network}")
    assert network.nbytes == 1024 == len(expected)
    # All levels but the last interleave granules of the low halves of 16 bytes, and of the high ones.
    interleaving = max(0, min(len(network.tables) - 1, 5 - width.bit_length()))
    for pair in network.tables[:interleaving]:
        for high, table in enumerate(pair):
            lanes = [(lane, half, part) for lane in range(0, 64, 16) for part in range(0, 8, width) for half in (0, 64)]
            interleaved = [half + lane + 8 * high + part + byte for lane, half, part in lanes for byte in range(width)]
            assert list(table) == interleaved
    for table in (table for pair in network.tables[interleaving:] for table in pair):  # and those move whole words
        assert all(table[k] % 8 == 0 and list(table[k:k + 8]) == list(range(table[k], table[k] + 8))
                   for k in range(0, 64, 8))  # fmt: skip
    if KERNEL_MEANS and KERNEL_MEANS.networks:
        alone = Segment((), (Box(X, Y, 0, 0, 1024, (), tile=network),))
        run_by_kernels(rng, Box(X, Y, 0, 0, width, tuple(every[:2])), (alone,))


@pytest.mark.parametrize("side, come_back_to", [(1, True), (2, False)], ids=["read in parts", "written whole"])
def test_only_lines_that_a_network_comes_back_to_must_not_share_a_set(side, come_back_to):
    """Sixteen channels of 64 pixels to planes: 64 lines are read 16 bytes at a time, and sixteen written."""
    axes = [Axis(64, 64, 1), Axis(16, 1, PAGE), Axis(1, 1, 1)]
    network = build_network(axes, best_network(axes))
    assert str(network) == "64x16B>16x64B net"

    def cost(step):
        steps = {1: 1 << 22, 2: 1 << 22} | {side: step}
        return misses([Loop(Axis(32, steps[1], steps[2]), 3, 1)], network)

    assert (cost(64 * PAGE) > cost(64 * PAGE + 2 * LINE)) == come_back_to


@pytest.mark.parametrize(
    "pixels, pitch, channels, width, helped, followed",
    [
        (3136, None, 64, 1, "32x32B>32x32B net", "64x16B>16x64B net"),  # whole pixels are one run of the result
        (3136, None, 64, 4, "16x64B>16x64B net", "32x32B>16x64B net"),  # pixels of 16 channels, in runs of 64 bytes
        (3136, 3136 + 256, 32, 1, "32x32B>32x32B net", "32x32B>32x32B net"),  # as good as one run already
        (1024, None, 64, 1, "32x32B>32x32B net", "32x32B>32x32B net"),  # 64 rows would share four sets of the cache
    ],
)
def test_networks_where_streams_are_followed(pixels, pitch, channels, width, helped, followed):
    """Planes to pixels: with software that fetches, the widest pieces; without, the fewest runs."""
    box = [Axis(pixels, width, width * channels), Axis(channels, width * (pitch or pixels), width)]
    for follows, network in ((False, helped), (True, followed)):
        tile, _ = tile_of(tuple(box), width, networks=True, follows=follows)
        assert str(tile) == network


@pytest.mark.parametrize(("boxes", "most"), [(300, 1 << 12), (25, 1 << 17)])
def test_tiles_of_random_patterns(rng, boxes, most):
    made = 0
    for _ in range(boxes):
        box = random_pattern_box(rng, most)
        if fits(box):
            made += 1
            segments = tiled(box)
            expected = map_of_granules(box.axes, box.pattern, box.width)
            equal(map_of_segments(segments), distinct(expected), f"{box} {box.pattern}\n{Plan(segments, 0)}")
    assert made > boxes // 3


@pytest.mark.parametrize(("width", "axes"), BLOCKED)
def test_axes_run_in_blocks_with_a_remainder(width, axes):
    width, axes = canonical(axes, width)
    box = Box(X, Y, 0, 0, width, axes)
    segments = tiled(box)
    equal(map_of_segments(segments), distinct(map_of_granules(axes, SINGLE, width)), f"{box}\n{Plan(segments, 0)}")


@pytest.mark.parametrize(("extent", "width", "granule"), [
    (588, 256, 50176), (65536, 1, 65536), (65537, 1, 1), (100_000, 1, 50_000), (2**20, 4, 65536), (2 * 32771, 8, 8),
])  # fmt: skip
def test_long_runs_get_the_largest_granule_of_pages(extent, width, granule):
    """Parts of a run, as large as they may be, of at least a page; or the run as it was, for tiles."""
    box = Box(X, Y, 5, 7, width, (Axis(3, 2 * extent * width, extent * width), Axis(extent, width, width)))
    wide = _plan.widened(box)
    assert wide.width == granule and (granule == width) == (wide == box)
    expected = map_of_granules(box.axes, SINGLE, width)
    equal(distinct(map_of_granules(wide.axes, SINGLE, wide.width)), distinct(expected), f"{wide}")


@pytest.mark.thread_unsafe(reason="threads would share its draws")
def test_some_random_boxes_leave_a_remainder(rng):
    assert any(len(tiled(random_box(rng, 400_000))) > 1 for _ in range(60))


def test_cut_axis_cuts_a_box_in_two(rng):
    for _ in range(100):
        box = random_box(rng, 4000)
        of = int(rng.integers(0, len(box.axes) + 1))
        extent = box.width if of == len(box.axes) else box.axes[of].extent
        start = int(rng.integers(0, extent + 1))
        parts = [
            map_of_granules(part.axes, part.pattern, part.width, part.src_offset, part.dst_offset)
            for part in (cut_axis(box, of, 0, start), cut_axis(box, of, start))
        ]
        expected = map_of_granules(box.axes, SINGLE, box.width)
        equal(distinct(np.concatenate(parts)), distinct(expected), f"{box} {of} {start}")


# ---------------------------------------------------------------------------------------- boxes, run by kernels


def run_by_kernels(rng, box, segments, num_threads=1, expected=None):
    """Numbers of the source bytes, found in the bytes of the result: a digit, an alignment and a poison each.

    Where `expected` is given, tiles may leave bytes of their pieces unused, which they read all the same.
    """
    around = 4 * REGISTERS * REGISTER
    if expected is None:
        expected = distinct(map_of_granules(box.axes, box.pattern, box.width))
        around = 0
    sources = expected[:, 1][expected[:, 1] > FILL]
    first, length = int(sources.min()), int(np.ptp(sources)) + 1
    segments = tuple(
        segment._replace(boxes=tuple(part._replace(src_offset=part.src_offset - first) for part in segment.boxes))
        for segment in segments
    )
    program = _kernels.Program(np.array(Plan(segments, 0).encode(), np.int64))
    fill = np.arange(200, 256, dtype=np.uint8)
    at, source = expected.T
    size, is_moved = int(at.max()) + 1, source > FILL
    sources, filled = source[is_moved] - first, fill[np.clip(FILL - source[~is_moved], 0, 55)]
    written, values = np.zeros(size, bool), np.empty(len(at), np.uint8)
    written[at] = True
    starts = 64, int(rng.integers(65, 128))
    for shift in (0, 8, 16):
        x = (np.arange(-around, length + around) >> shift).astype(np.uint8)[around : around + length]
        values[is_moved], values[~is_moved] = x[sources], filled
        result = np.zeros(size, np.uint8)
        result[at] = values
        for poison, start in product((0xA5, 0x5A), starts):
            wanted = np.full(size + 192, poison, np.uint8)
            np.copyto(wanted[start : start + size], result, where=written)
            memory = np.full(wanted.size, poison, np.uint8)
            _kernels.run(program, x, memory[start:], fill.tobytes() + SLACK, None, num_threads)
            equal(memory, wanted, lambda start=start: f"{box} at {start}\n{Plan(segments, 0)}")


@needs_tiles
@pytest.mark.parametrize(("boxes", "most", "num_threads"), [(250, 1 << 12, 1), (30, 1 << 16, 1), (10, 1 << 20, 2)])
@pytest.mark.parametrize("large", [False, True], ids=["in the caches", "past the caches"])
def test_kernels_run_random_boxes(rng, boxes, most, num_threads, large):
    for _ in range(boxes):
        box = random_box(rng, most)
        run_by_kernels(rng, box, tiled_for_kernels(box, large), num_threads)


# Boxes of whole lines, which large results send past the caches.
STREAMED = [
    (64, [Axis(70, 128, 64), Axis(50, 70 * 128, 70 * 64), Axis(2, 64, 70 * 50 * 64)]),
    (6, [Axis(320, 6, 12), Axis(2, 1920, 6), Axis(9, 3840, 3841)]),
    (1, [Axis(4, 3001, 1), Axis(1203, 1, 4), Axis(2, 12004, 4812)]),
    (8, [Axis(301, 8, 16), Axis(2, 5000, 8)]),
    (16, [Axis(333, 16, 48), Axis(3, 6000, 16), Axis(3, 20000, 333 * 48)]),
    (12, [Axis(299, 12, 24), Axis(2, 4000, 12), Axis(5, 8000, 299 * 24 + 12)]),
]


# Boxes whose tiles write right behind each other, through all loops.
SEQUENCES = [
    (64, [Axis(70, 64, 128), Axis(50, 70 * 64, 70 * 128), Axis(2, 70 * 50 * 64, 64)]),
    (4, [Axis(48, 4, 8), Axis(2, 9216, 4), Axis(2, 18432, 384), Axis(48, 192, 768), Axis(9, 36864, 36864)]),
    (1, [Axis(128, 1, 3), Axis(3, 20000, 1), Axis(100, 150, 384)]),
    (2, [Axis(96, 2, 4), Axis(2, 20000, 2), Axis(101, 192, 384)]),
]


@needs_tiles
@pytest.mark.parametrize("num_threads", [1, 2])
@pytest.mark.parametrize(("width", "axes"), STREAMED + SEQUENCES)
def test_kernels_stream_whole_lines(rng, width, axes, num_threads):
    is_sequence = (width, axes) in SEQUENCES
    width, axes = canonical(axes, width)
    box = Box(X, Y, 0, 0, width, axes)
    segments = tiled_for_kernels(box, True)
    streamed = {part.stream for segment in segments for part in segment.boxes} - {0}
    assert bool(streamed) == KERNEL_MEANS.streams, f"{box}\n{Plan(segments, 0)}"
    assert (SEQUENCE in streamed) == (is_sequence and KERNEL_MEANS.streams)
    equal(map_of_segments(segments), distinct(map_of_granules(axes, SINGLE, width)), f"{box}\n{Plan(segments, 0)}")
    for _ in range(8):  # the result lies elsewhere every time
        run_by_kernels(rng, box, segments, num_threads)


# Boxes whose runs a loop around the innermost one makes longer, in blocks of 1 MiB; with one more around them, or not.
GROWN = [
    (1, [Axis(640, 2, 1), Axis(2, 1, 640 * 900), Axis(900, 2560, 640), Axis(2, 1280, 2 * 640 * 900)]),
    (2, [Axis(96, 4, 2), Axis(2, 2, 192 * 301), Axis(301, 400, 192)]),
    (2, [Axis(128, 4, 2), Axis(2, 2, 256 * 60), Axis(60, 1024, 256), Axis(2, 512, 512 * 60), Axis(3, 99999, 1 << 16)]),
    (8, [Axis(64, 16, 8), Axis(2, 8, 512 * 77), Axis(77, 1024, 512)]),
]


@needs_tiles
@pytest.mark.usefixtures("habits")
@pytest.mark.parametrize("num_threads", [1, 2])
@pytest.mark.parametrize(("width", "axes"), GROWN)
def test_kernels_stream_runs_that_grow(rng, width, axes, num_threads):
    width, axes = canonical(axes, width)
    box = Box(X, Y, 0, 0, width, axes)
    segments = tiled_for_kernels(box, True)
    assert any(part.stream > 0 for part in segments[0].boxes) == KERNEL_MEANS.streams, f"{box}\n{Plan(segments, 0)}"
    for _ in range(4):  # the result lies elsewhere every time
        run_by_kernels(rng, box, segments, num_threads)


# Boxes whose cheapest tiles cannot go past the caches: blocks of 8 x 8 in "focus"; runs into a batch, of which the
# second are copied as they are; two streams into rows that begin at different distances from a line.
ELSEWHERE = [
    (16, [Axis(8, 8000, 16), Axis(8, 16, 128), Axis(62, 128, 1024), Axis(3, 64000, 70000)]),
    (128, [Axis(1500, 768, 128), Axis(6, 128, 192000)]),
    (256, [Axis(40, 2048, 256), Axis(8, 256, 10240)]),
    (1, [Axis(4004, 2, 1), Axis(2, 1, 4004), Axis(5, 8008, 8008)]),
]


@needs_tiles
@pytest.mark.parametrize(("width", "axes"), ELSEWHERE)
def test_a_large_result_of_one_box_goes_past_the_caches(rng, monkeypatch, width, axes):
    width, axes = canonical(axes, width)
    box = Box(X, Y, 0, 0, width, axes)

    def streams(means, nbytes, boxes):
        """Whether any of it is stored past the caches, where a move writes `nbytes` and has so many such boxes."""
        return any(part.stream for segment in _plan.moved([box] * boxes, means, nbytes) for part in segment.boxes)

    assert streams(ALL_MEANS, 24 << 20, boxes=1)
    assert not streams(ALL_MEANS, 9 << 20, boxes=1), "it would stay in the caches"
    two = list(_plan.moved([box, box], ALL_MEANS, 24 << 20))
    with monkeypatch.context() as patch:
        patch.setattr(_plan, "past_for", lambda box, means: None)
        assert two == list(_plan.moved([box, box], ALL_MEANS, 24 << 20)), "the other would fetch what is left of lines"
    segments = tuple(_plan.moved([box], KERNEL_MEANS, 24 << 20))
    equal(map_of_segments(segments), distinct(map_of_granules(axes, SINGLE, width)), f"{box}\n{Plan(segments, 0)}")
    for num_threads in (1, 2, 1, 2):  # the result lies elsewhere every time
        run_by_kernels(rng, box, segments, num_threads)


def axes_with_a_long_one(rng, width):
    """2 to 4 axes in any order on either side, with gaps now and then; one of them has a hundred indices and more."""
    extents = [int(rng.integers(100, 1000)), *rng.integers(2, 8, rng.integers(1, 4)).tolist()]
    while np.prod(extents) * width > 1 << 18:
        extents[np.argmax(extents)] //= 2
    return list(map(Axis, extents, chained_steps(rng, extents, width), chained_steps(rng, extents, width)))


@needs_tiles
def test_random_boxes_past_the_caches(rng):
    found = 0
    for _ in range(150):
        width = int(rng.choice((1, 2, 4, 8, 16, 32, 64, 128)))
        width, axes = canonical(axes_with_a_long_one(rng, width), width)
        box = Box(X, Y, 0, 0, width, axes)
        means = ALL_MEANS.for_result(24 << 20)._replace(sweep=int(rng.choice((64, 512, 2048))))
        past = _plan.past_for(box, means)
        if past and past != _plan.tile_for(box, means):
            found += 1
            segments = tuple(_plan.tiled(box, KERNEL_MEANS._replace(sweep=means.sweep), past))
            what = f"{box}\n{Plan(segments, 0)}"
            equal(map_of_segments(segments), distinct(map_of_granules(axes, SINGLE, width)), what)
            run_by_kernels(rng, box, segments, int(rng.integers(1, 3)))
    assert found >= 5


@pytest.mark.parametrize(
    ("axes", "width", "sweep"),
    [
        ([Axis(100, 768, 128), Axis(6, 128, 12800)], 128, 12801),  # no run is as long
        ([Axis(100, 8, 104), Axis(13, 16000, 8)], 8, 2048),  # no run of a tile is whole lines
        ([Axis(90000, 12, 1), Axis(12, 1, 90001)], 1, 2048),  # twelve times through a source that is gone by then
    ],
)
def test_no_tile_goes_past_the_caches(axes, width, sweep):
    assert tile_past(tuple(axes), width, sweep) is None


@pytest.mark.parametrize(
    ("axes", "width", "sweep"),
    [
        ([Axis(100, 768, 128), Axis(6, 128, 12800)], 128, 12800),
        ([Axis(100, 8, 96), Axis(12, 16000, 8)], 8, 2048),
        ([Axis(4000, 2, 1), Axis(2, 1, 4032)], 1, 2048),
        ([Axis(4000, 2, 1), Axis(2, 1, 4004)], 1, 2048),
    ],
)
def test_some_tile_goes_past_the_caches(axes, width, sweep):
    found = tile_past(tuple(axes), width, sweep)
    assert found and found[0].dst.is_whole()
    segment = next(_plan.tiled(Box(X, Y, 0, 0, width, tuple(axes)), ALL_MEANS._replace(sweep=sweep), found))
    assert segment.boxes[0].stream


# How the outputs of a tile may be looked up: the first of the two registers that output k comes from, if of two alone.
NEIGHBOURS = {
    "any": lambda k, inputs, outputs: None,
    "two": lambda k, inputs, outputs: {(4, 4): k // 2 * 2, (4, 2): 2 * k}.get((inputs, outputs), k % inputs),
    "two in turn": lambda k, inputs, outputs: k % 2 * 2 % inputs,
}
# Loops around tiles that step `src` and `dst`: one run over all rows, the last turn twice; rows apart; an odd number of
# turns; turns apart, by lines and otherwise; few turns, and one.
TURNS = [
    lambda src, dst: [Axis(3, 7 * src, 7 * dst), Axis(7, src, dst)],
    lambda src, dst: [Axis(2, 8 * src, 9 * dst + 5), Axis(8, src, dst, 0, src, dst)],
    lambda src, dst: [Axis(2, 9 * src, 9 * dst), Axis(2, 20 * src, 20 * dst + 64), Axis(9, src, dst)],
    lambda src, dst: [Axis(11, src, dst)],
    lambda src, dst: [Axis(2, 9 * src, 7 * (dst + 64)), Axis(6, src, dst + 64)],
    lambda src, dst: [Axis(7, src, dst + 24)],
    lambda src, dst: [Axis(3, src, dst)],
    lambda src, dst: [],
]


def random_tile(rng, inputs, loads, outputs, stores, pieces, neighbours, fills):
    """A tile of full pieces, in runs of so many that lie whole lines apart; and how far a turn goes on."""
    width, reach = REGISTER // loads, 4 * inputs * REGISTER
    src = np.sort(rng.choice(reach // width, inputs * loads, replace=False)) * width + rng.integers(0, width // 2)
    stored = REGISTER // stores
    runs = outputs * stores // pieces
    dst = [run * 160 * 64 + piece * stored for run in rng.permutation(runs).tolist() for piece in range(pieces)]
    made = []
    for k in range(outputs):
        first = NEIGHBOURS[neighbours](k, inputs, outputs)
        registers = rng.integers(0, inputs, REGISTER)
        if first is not None:
            registers = (first + registers % 2) % inputs
        index = registers % 2 * REGISTER + rng.integers(0, REGISTER, REGISTER)
        filled = np.where(rng.random(REGISTER) < 0.2, rng.integers(0, 8, REGISTER), -1) if fills else [-1] * REGISTER
        upper = sum(1 << lane for lane in range(REGISTER) if registers[lane] >= 2)
        made.append(Output(bytes(index.tolist()), bytes(index.tolist()), upper, tuple(map(int, filled))))
    full = [(1 << piece) - 1 for piece in (width, stored)]
    sides = Side(width, tuple(map(int, src)), (full[0],) * len(src)), Side(stored, tuple(dst), (full[1],) * len(dst))
    return Tile(*sides, tuple(made)), reach, pieces * stored


@pytest.fixture(params=[0, 1, 2], ids=["whole lines", "registers across lines", "across lines"])
def habits(request):
    """Programs as for a processor that stores across two lines at no cost and fetches by itself, or not; or that stores
    whole registers so."""
    _kernels.pretend_habits(follows_streams=request.param > 0, stores_across=request.param)
    yield
    _kernels.pretend_habits()


@needs_tiles
@pytest.mark.usefixtures("habits")
@pytest.mark.parametrize("fills", [False, True], ids=["moved", "and filled"])
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("inputs", [1, 2, 3, 4])
def test_kernels_run_every_shape_of_tile(rng, inputs, neighbours, fills):
    """Wherever the result begins; each shape in two of the ways in which runs go on, for tests/tiles.c draws many."""
    ways = cycle([TURNS[k] for k in rng.permutation(len(TURNS))])
    for loads, outputs, stores in product((1, 2, 4), (1, 2, 3, 4), (1, 2, 4)):
        if outputs > inputs and not fills:
            continue  # no byte goes to two places
        for pieces in (part for part in (1, 2, 3, 4) if outputs * stores % part == 0):
            tile, src, dst = random_tile(rng, inputs, loads, outputs, stores, pieces, neighbours, fills)
            for turns in islice(ways, 2):
                box = Box(X, Y, 0, 0, tile.nbytes, tuple(turns(src, dst)), tile=tile)
                segments = (Segment((), (box,)),)
                run_by_kernels(rng, box, segments, expected=map_of_segments(segments))


@pytest.mark.parametrize("start", [0, 16, 33])
def test_cropped_words_in_sequence_stay_inside_of_the_result(start):
    """Tiles that begin behind their own position: what goes past the caches must begin there, too."""
    x = np.arange(170_000 * 96, dtype=np.uint32).astype(np.int8).reshape(170_000, 3, 1, 1, 32)
    arguments = {"data_format": "NCHW_VECT_C", "out_format": "NHWC", "channels": 80, "crops": [[0, 0], [1, 0]]}
    expected = reference.depth_to_space(x, (1, 5), **arguments)
    guarded = np.full(expected.nbytes + 256, 77, np.uint8)
    out = guarded[64 + start : 64 + start + expected.nbytes].view(np.int8).reshape(expected.shape)
    s2dq.depth_to_space(x, (1, 5), **arguments, out=out)
    np.testing.assert_array_equal(out, expected)
    assert (guarded[: 64 + start] == 77).all() and (guarded[64 + start + expected.nbytes :] == 77).all()


@pytest.mark.usefixtures("habits")
@pytest.mark.parametrize("lines", range(1, 10))
def test_kernels_copy_runs_wherever_the_result_begins(rng, lines):
    for extents in ([5], [3, 4], [2, 3, 2], [70]):
        for width, gap in product((64 * lines, 64 * lines - 8), (0, 0, 64, 8)):
            src, dst = (permuted_steps(rng, extents, size) for size in (width, width + gap))
            box = Box(X, Y, 0, 0, width, tuple(map(Axis, extents, src, dst)))
            run_by_kernels(rng, box, (Segment((), (box,)),))


@needs_tiles
def test_kernels_run_networks(rng):
    boxes = [random_transpose_box(rng) for _ in range(80)]
    networks = sum(networks_in(tiled_for_kernels(box)) > 0 for box in boxes)
    assert networks > 5 if KERNEL_MEANS.networks else networks == 0
    for box in boxes:
        run_by_kernels(rng, box, tiled_for_kernels(box))


@pytest.mark.skipif(_kernels.isa() != "avx512vbmi", reason="no other kernels have uneven places")
@pytest.mark.parametrize("follows", [False, True])
def test_kernels_run_networks_of_narrow_lines(rng, follows):
    for box, segments in bent_boxes(rng, KERNEL_MEANS._replace(follows=follows)):
        run_by_kernels(rng, box, segments)


@needs_tiles
def test_kernels_run_random_patterns(rng):
    boxes = [box for box in (random_pattern_box(rng, 1 << 13) for _ in range(300)) if fits(box)]
    assert len(boxes) > 100
    for box in boxes:
        run_by_kernels(rng, box, tiled_for_kernels(box))


@needs_tiles
@pytest.mark.parametrize(("width", "axes"), BLOCKED)
def test_kernels_run_blocks_with_a_remainder(rng, width, axes):
    width, axes = canonical(axes, width)
    box = Box(X, Y, 0, 0, width, axes)
    run_by_kernels(rng, box, tiled_for_kernels(box), 2)


# ------------------------------------------------------------------------------- whole plans of real operators


def numbered(shape, dtype):
    """An array whose elements are their flat numbers, to send through `reference`; and the dtype they stand for."""
    return np.arange(prod(shape), dtype=np.int64).reshape(shape), np.dtype(dtype)


def expected_map(name, shape, dtype, kwargs):
    """What `reference` says: every byte of the result and the byte of the C-contiguous source it comes from."""
    numbers, dtype = numbered(shape, dtype)
    if name != "unpack_vect_c":
        kwargs = {key: value for key, value in kwargs.items() if key != "pad_value"}
    # Numbers from 1, so that the zeros of lanes and padding are fill.
    moved_numbers = getattr(reference, name)(numbers + 1, **kwargs).reshape(-1) - 1
    within = np.arange(dtype.itemsize)
    source = np.where(moved_numbers < 0, FILL, moved_numbers * dtype.itemsize)[:, None] + within
    at = np.arange(source.size)
    return np.stack([at, np.where(np.repeat(moved_numbers < 0, dtype.itemsize), FILL, source.reshape(-1))], axis=1)


def plan_of(name, shape, dtype, kwargs):
    """The tile plan of a call."""
    x = np.zeros(shape, dtype)
    defaults = {"data_format": "NHWC", "mode": "DCR", "out_format": None, "vect": 4, "channels": None}
    k = {**defaults, "paddings": None, "crops": None, "pad_value": None, **kwargs}
    if name in ("space_to_depth", "depth_to_space"):
        to_depth = name == "space_to_depth"
        pairs = k["paddings"] if to_depth else k["crops"]
        call = _validate.depth_call(name, to_depth, x, k["block_size"], k["data_format"], k["mode"], k["out_format"],
                                    k["vect"], k["channels"], pairs, k["pad_value"], None, None)
    elif name in ("space_to_batch_nd", "batch_to_space_nd"):
        to_batch = name == "space_to_batch_nd"
        pairs = k["paddings"] if to_batch else k["crops"]
        call = _validate.batch_call(name, to_batch, x, k["block_shape"], pairs, k["pad_value"], None, None)
        return _plan.plan_batch(call.problem, tiles=ALL_MEANS)
    elif name == "pack_vect_c":
        call = _validate.pack_call(name, x, k["data_format"], k["vect"], 0, None, None)
    else:
        call = _validate.unpack_call(name, x, k["data_format"], k["channels"], None, None)
    return _plan.plan_depth(call.problem, tiles=ALL_MEANS)


def random_call(rng):
    """A call of any operator with a result of up to some hundred KB."""
    def pick(*values):
        return values[int(rng.integers(len(values)))]

    name = pick("space_to_depth", "depth_to_space", "space_to_batch_nd", "batch_to_space_nd", "pack_vect_c",
                "unpack_vect_c", "words")
    dtype = pick("u1", "u1", "i2", "f4", "f8", "V3")
    n, h, w = pick(1, 1, 2), int(rng.integers(1, 30)), int(rng.integers(1, 30))
    c, b = int(rng.integers(1, 71)), pick(1, 2, 2, 3, 4)
    layout = pick("NHWC", "NCHW")

    def shaped(n, h, w, c):
        return (n, h, w, c) if layout == "NHWC" else (n, c, h, w)

    if name == "space_to_depth":
        kwargs = {"block_size": b, "data_format": layout, "mode": pick("DCR", "CRD", "focus"), "vect": pick(4, 8, 32),
                  "out_format": pick(None, "NHWC", "NCHW", "NCHW_VECT_C")}
        c = pick(1, 3, 4, 12, c)
        if rng.random() < 0.4:
            kwargs["paddings"] = [[1, -(h + 1) % b], [b, -w % b]]
        else:
            h, w = max(1, h // b) * b, max(1, w // b) * b
        return name, shaped(n, h, w, c), dtype, kwargs
    if name == "depth_to_space":
        kwargs = {"block_size": b, "data_format": layout, "mode": pick("DCR", "CRD", "focus"), "vect": pick(4, 8, 32),
                  "out_format": pick(None, "NHWC", "NCHW", "NCHW_VECT_C")}
        if rng.random() < 0.4:
            kwargs["crops"] = [[0, b - 1], [b // 2, 0]]
        return name, shaped(n, h, w, pick(1, 3, 4, 12, 16) * b * b), dtype, kwargs
    if name == "words":  # words in; out as they are, or unpacked
        name = pick("space_to_depth", "depth_to_space")
        lanes = pick(2, 3, 4, 5, 8)
        kwargs = {"block_size": b, "data_format": "NCHW_VECT_C", "mode": pick("DCR", "CRD", "focus"),
                  "out_format": pick("NHWC", "NCHW", "NCHW_VECT_C"), "vect": pick(4, 8)}
        count = pick(1, 3, 4, 7) * (b * b if name == "depth_to_space" else 1)
        kwargs["channels"] = count
        count = -(-count // lanes)
        if kwargs["out_format"] == "NCHW_VECT_C":
            dtype = "u1"
            count = count if name == "space_to_depth" else -(-count // b**2) * b**2
            kwargs["channels"] = count * lanes
        return name, (n, count, max(1, h // b) * b, max(1, w // b) * b, lanes), dtype, kwargs
    if name == "space_to_batch_nd":
        paddings = [[1, -(h + 1) % b], [2, w % 2]]
        return name, (n, h, w, pick(1, 3, c)), dtype, {"block_shape": [b, 2], "paddings": paddings}
    if name == "batch_to_space_nd":
        return name, (n * b * 2, h, w, pick(1, 3, c)), dtype, {"block_shape": [b, 2], "crops": [[0, b - 1], [1, 0]]}
    if name == "pack_vect_c":
        return name, shaped(n, h, w, c), dtype, {"data_format": layout, "vect": pick(4, 8, 32)}
    lanes = pick(4, 8, 32)
    return name, (n, -(-c // lanes), h, w, lanes), dtype, {"data_format": layout, "channels": c}


def check_plan(call):
    name, shape, dtype, kwargs = call
    plan = plan_of(*call)
    what = f"{name}{shape} {dtype} {kwargs}\n{plan}"
    if plan.scratch:
        return False
    expected = expected_map(*call)
    found = map_of_segments(plan.segments)
    # Which of the fill values is no matter of places: lanes and padding are told apart by values, in other tests.
    found[:, 1] = np.maximum(found[:, 1], FILL)
    equal(found, expected, what)
    return True


def test_plans_of_random_calls(rng):
    tiles = sum(check_plan(random_call(rng)) for _ in range(250))
    assert tiles > 150


def view_of(rng, shape, dtype):
    """An array of zeros, some axes of which are read backwards or with gaps."""
    steps = rng.choice([1, 1, 1, 2, -1, -2], len(shape))
    memory = np.zeros([extent * abs(step) for extent, step in zip(shape, steps)], dtype)
    return memory[tuple(slice(None, None, step) for step in steps)]


@pytest.mark.parametrize("calls", [20, 20, 40, 60])
def test_prepared_calls_tell_the_first_and_the_last_byte_that_they_read(rng, calls):
    for _ in range(calls):
        name, shape, dtype, kwargs = random_call(rng)
        x = view_of(rng, shape, dtype)
        prepared = s2dq.kernels.prepare(getattr(s2dq, name), x, **kwargs)
        numbers = np.arange(1, x.size + 1).reshape(shape)  # zeros of lanes and padding are read nowhere
        moved = getattr(reference, name)(numbers, **{key: k for key, k in kwargs.items() if key != "pad_value"})
        read = np.unique(moved[moved > 0]) - 1
        places = sum(index * step for index, step in zip(np.unravel_index(read, shape), x.strides))
        expected = (places.min(), places.max() + x.itemsize) if read.size else (0, 0)
        assert (prepared.x_low, prepared.x_high) == expected, (name, x.shape, x.strides, dtype, kwargs)


# Results so large that loops are cut into rows and blocks; pitches of whole pages; and those that once were wrong.
LARGE = {
    "28x28x48 to words": ("space_to_depth", (1, 28, 28, 48), "u1", {"block_size": 2, "out_format": "NCHW_VECT_C"}),
    "28x28x33 CRD to planes": ("space_to_depth", (1, 28, 28, 33), "u1",
                               {"block_size": 4, "mode": "CRD", "out_format": "NCHW"}),
    "planes of odd rows": ("space_to_depth", (1, 3, 258, 514), "u1", {"block_size": 2, "data_format": "NCHW"}),
    "7x7 maps": ("depth_to_space", (2, 512, 7, 7), "u1", {"block_size": 2, "data_format": "NCHW"}),
    "transpose": ("pack_vect_c", (1, 64, 66, 67), "u1", {"data_format": "NCHW", "vect": 32}),
    "pages apart": ("space_to_depth", (1, 64, 64, 64), "u1",
                    {"block_size": 1, "data_format": "NCHW", "out_format": "NHWC"}),
    "pages apart, b = 4": ("depth_to_space", (1, 64, 64, 48), "u1", {"block_size": 4, "out_format": "NCHW"}),
    "pages apart, read a page at a time": ("depth_to_space", (1, 256, 128, 128), "u1",
                                           {"block_size": 8, "data_format": "NCHW"}),
    "batch, pages apart": ("space_to_batch_nd", (1, 16896, 16), "f8", {"block_shape": [512], "paddings": [[512, 0]]}),
    "batch, pages apart on both sides": ("space_to_batch_nd", (1, 16384, 16), "f8",
                                         {"block_shape": [512], "paddings": [[0, 0]]}),
    "RGB to words, padded": ("space_to_depth", (2, 127, 130, 3), "u1",
                             {"block_size": 2, "out_format": "NCHW_VECT_C", "paddings": [[1, 0], [2, 4]]}),
    "words of three to words of four": (
        "depth_to_space", (1, 4, 5, 6, 3), "u1",
        {"block_size": 2, "data_format": "NCHW_VECT_C", "mode": "CRD", "out_format": "NCHW_VECT_C", "channels": 12},
    ),
    "wide elements": ("space_to_depth", (1, 62, 66, 5), "f8", {"block_size": 2, "mode": "CRD"}),
    "batch": ("space_to_batch_nd", (2, 61, 63, 24), "u1", {"block_shape": [3, 2], "paddings": [[1, 1], [0, 1]]}),
}


@pytest.mark.parametrize("call", LARGE.values(), ids=LARGE)
def test_plans_of_larger_calls(call):
    assert check_plan(call)


def test_no_work_is_done_twice():
    """Overlapping last tiles are all that plans write more than once."""
    for call in LARGE.values():
        plan = plan_of(*call)
        written = sum(
            prod(axis.extent for axis in (*segment.rows, *box.axes)) * box.width
            for segment in plan.segments for box in segment.boxes
        )
        size = len(expected_map(*call))
        assert written <= 2 * size, f"{call}: {written} bytes for {size}\n{plan}"


def test_fill_values_are_read_from_the_fill_buffer():
    """All of a padded region: source F, no steps, and the pad value behind the lane value."""
    plan = plan_of("space_to_depth", (1, 2, 2, 1), "u1", {"block_size": 2, "paddings": [[2, 0], [0, 0]]})
    sources = {box.source for segment in plan.segments for box in segment.boxes}
    assert sources == {X, F}
    filled = map_of_segments(plan.segments)[:4]
    equal(filled, np.array([[k, FILL - 1] for k in range(4)]), str(plan))


def test_moved_numbers_fill_only_once():
    """The tests' own arithmetic: fill stays fill wherever the tile is."""
    entries = np.array([[0, 5], [1, FILL - 3]])
    expected = np.array([[0, 5], [1, FILL - 3], [2, 15], [3, FILL - 3]])
    equal(moved(entries, np.array([0, 10]), np.array([0, 2])), expected, "fill moved")

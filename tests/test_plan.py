"""The planner alone: tables of given -> expected, and plans broken on purpose that the checker must notice."""

import sys
from itertools import combinations, product

import numpy as np
import pytest

import s2dq
from checker import check
from guarded import SANITIZED, run_child
from recorded_plans import MEANS, problem_of
from s2dq import _kernels, _plan, _tiles, operators, reference
from s2dq._layout import LAYOUTS, DepthProblem, contiguous_steps, deep_digits, loops_of, parts
from s2dq._plan import Axis, Plan, canonical, cut_deep, digit_atoms, loop_order, split_range
from s2dq._tiles import positions

VBMI = _plan.Means(*MEANS["avx512vbmi"])

# ---------------------------------------------------------------------------------------------------- windows


@pytest.mark.parametrize(
    ("extents", "lo", "hi", "boxes"),
    [
        ((5,), 1, 4, [((1, 4),)]),
        ((5,), 3, 3, []),
        ((3, 2), 0, 6, [((0, 3), (0, 2))]),
        ((3, 2), 1, 5, [((0, 1), (1, 2)), ((1, 2), (0, 2)), ((2, 3), (0, 1))]),
        ((3, 2), 2, 4, [((1, 2), (0, 2))]),
        ((4, 4), 5, 7, [((1, 2), (1, 3))]),
        ((2, 8, 4), 0, 38, [((0, 1), (0, 8), (0, 4)), ((1, 2), (0, 1), (0, 4)), ((1, 2), (1, 2), (0, 2))]),
    ],
)
def test_split_range_table(extents, lo, hi, boxes):
    assert list(split_range(extents, lo, hi)) == boxes


@pytest.mark.parametrize("extents", [(7,), (3, 4), (1, 5), (2, 3, 2), (3, 1, 4)])
def test_split_range_covers_each_number_once(extents):
    total = int(np.prod(extents))
    for lo, hi in product(range(total + 1), repeat=2):
        hits = np.zeros(extents, int)
        for box in split_range(extents, lo, hi):
            assert all(start < stop for start, stop in box)
            hits[tuple(slice(*digits) for digits in box)] += 1
        numbers = np.arange(total).reshape(extents)
        np.testing.assert_array_equal(hits, (numbers >= lo) & (numbers < hi), err_msg=f"{extents} {lo} {hi}")


# ------------------------------------------------------------------------------------------------- normaliser


@pytest.mark.parametrize(
    ("given", "width", "expected"),
    [
        # Axes of one vanish, and a run contiguous on both sides becomes the granule.
        ([Axis(1, 99, 99), Axis(4, 1, 1)], 1, (4, ())),
        # Destination order.
        ([Axis(3, 1, 2), Axis(2, 4, 6)], 1, (1, (Axis(2, 4, 6), Axis(3, 1, 2)))),
        # Neighbours whose steps chain on both sides merge; whose steps chain on one side do not.
        ([Axis(2, 24, 12), Axis(3, 8, 4)], 2, (2, (Axis(6, 8, 4),))),
        ([Axis(2, 25, 12), Axis(3, 8, 4)], 2, (2, (Axis(2, 25, 12), Axis(3, 8, 4)))),
        # RGB, b = 2: (bx c) is one granule of 6 bytes.
        (
            [Axis(320, 6, 12), Axis(2, 1920, 6), Axis(2, 3, 3), Axis(3, 1, 1)],
            1,
            (6, (Axis(320, 6, 12), Axis(2, 1920, 6))),
        ),
        # A broadcast source and a lookup table have steps of their own.
        ([Axis(2, 0, 3), Axis(3, 0, 1)], 1, (1, (Axis(6, 0, 1),))),
        ([Axis(2, 3, 3), Axis(3, 1, 1, 256)], 1, (1, (Axis(2, 3, 3), Axis(3, 1, 1, 256)))),
        # A negative source never joins the granule.
        ([Axis(4, -1, 1)], 1, (1, (Axis(4, -1, 1),))),
        # Very long runs stay an axis, so that threads can share them.
        ([Axis(1 << 20, 1, 1)], 1, (1, (Axis(1 << 20, 1, 1),))),
        ([], 8, (8, ())),
    ],
)
def test_canonical_table(given, width, expected):
    assert canonical(given, width) == expected


@pytest.mark.parametrize(
    ("axes", "order"),
    [
        ((Axis(64, 4, 1), Axis(2, 1, 64)), (1, 0)),
        ((Axis(64, 4, 1), Axis(16, 1, 64)), (0, 1)),
        ((Axis(3, 4, 1), Axis(2, 1, 64)), (0, 1)),
        ((Axis(2, 7, 9), Axis(64, 4, 1), Axis(2, 1, 64)), (0, 2, 1)),
    ],
)
def test_loop_order_table(axes, order):
    assert loop_order(axes) == tuple(axes[i] for i in order)


# Rows, loops, and (streams, bytes of a run that is read, bytes of one that is written); then both as they become, or
# None where they stay.
PAGES = {
    "rows of a page": ([Axis(512, 128, 8192)], [Axis(8, 65536, 1024), Axis(4, 32, 256)], (8, 32, 256),
                       ([Axis(16, 4096, 262144)], [Axis(8, 65536, 1024), Axis(32, 128, 8192), Axis(4, 32, 256)])),
    "runs without a loop": ([Axis(512, 128, 4224)], [Axis(31, 65536, 128)], (1, 128, 128),
                            ([Axis(16, 4096, 135168)], [Axis(31, 65536, 128), Axis(32, 128, 4224)])),
    "rows that are shared out": ([Axis(64, 128, 8192)], [Axis(32, 65536, 1024), Axis(4, 32, 256)], (8, 32, 256),
                                 ([Axis(16, 512, 32768)],
                                  [Axis(32, 65536, 1024), Axis(4, 128, 8192), Axis(4, 32, 256)])),
    "a mebibyte": ([Axis(512, 128, 4224)], [Axis(16, 65536, 128)], (1, 128, 128),
                   ([Axis(16, 4096, 135168)], [Axis(16, 65536, 128), Axis(32, 128, 4224)])),
    "less": ([Axis(496, 128, 4224)], [Axis(16, 65536, 128)], (1, 128, 128), None),
    "short runs": ([Axis(1024, 64, 4160)], [Axis(64, 65536, 64)], (1, 64, 64), None),
    "nine streams": ([Axis(1024, 128, 4224)], [Axis(9, 65536, 128)], (1, 128, 128),
                     ([Axis(32, 4096, 135168)], [Axis(9, 65536, 128), Axis(32, 128, 4224)])),
    "eight streams": ([Axis(1024, 128, 4224)], [Axis(8, 65536, 128)], (1, 128, 128), None),
    "half a page apart": ([Axis(512, 128, 4224)], [Axis(31, 67584, 128)], (1, 128, 128), None),
    "fill values": ([Axis(512, 128, 4224)], [Axis(31, 0, 128)], (1, 128, 128), None),
    "long runs": ([Axis(512, 4096, 65536)], [Axis(31, 2097152, 4096)], (1, 4096, 4096), None),
    "written in short runs, pages apart": ([Axis(512, 128, 8192)], [Axis(31, 65536, 128)], (1, 128, 128), None),
    "written in runs that do not go on": ([Axis(512, 128, 8192)], [Axis(31, 65536, 256), Axis(4, 32, 8192)],
                                          (1, 32, 256), None),
    "written in runs that go on": ([Axis(512, 128, 8192)], [Axis(31, 65536, 256), Axis(4, 32, 128)], (1, 32, 128),
                                   ([Axis(16, 4096, 262144)],
                                    [Axis(31, 65536, 256), Axis(32, 128, 8192), Axis(4, 32, 128)])),
    "written in long runs that do not go on": ([Axis(512, 128, 8192)], [Axis(31, 65536, 512), Axis(4, 32, 1 << 20)],
                                               (1, 32, 512),
                                               ([Axis(16, 4096, 262144)],
                                                [Axis(31, 65536, 512), Axis(32, 128, 8192), Axis(4, 32, 1 << 20)])),
    "a last turn that goes back": ([Axis(512, 128, 4224)], [Axis(31, 65536, 128), Axis(4, 32, 32, 0, 8, 8)],
                                   (1, 32, 32), None),
    "a table for each": ([Axis(512, 128, 4224, 256)], [Axis(31, 65536, 128)], (1, 128, 128), None),
    "two rows at a time": ([Axis(34, 128, 4224)], [Axis(256, 65536, 128)], (1, 128, 128),
                           ([Axis(17, 256, 8448)], [Axis(256, 65536, 128), Axis(2, 128, 4224)])),
    "a prime number of rows": ([Axis(509, 128, 4224)], [Axis(31, 65536, 128)], (1, 128, 128), None),
    "rows that do not go on": ([Axis(512, 256, 4224)], [Axis(31, 65536, 128)], (1, 128, 128), None),
    "the second of the rows": ([Axis(2, 8388608, 4194304), Axis(512, 128, 4224)], [Axis(31, 65536, 128)], (1, 128, 128),
                               ([Axis(2, 8388608, 4194304), Axis(16, 4096, 135168)],
                                [Axis(31, 65536, 128), Axis(32, 128, 4224)])),
}


@pytest.mark.parametrize(("rows", "inner", "given", "becomes"), PAGES.values(), ids=PAGES)
def test_pages_of_a_source_are_read_in_one_go(rows, inner, given, becomes):
    becomes = becomes or (rows, inner)
    rows, inner = rows.copy(), inner.copy()
    _plan.read_pages(rows, inner, *given)
    assert (rows, inner) == becomes


@pytest.mark.parametrize(("count", "pages"), [(8, ()), (9, (Axis(32, 128, 4224),))])
def test_copies_of_runs_read_pages(count, pages):
    axes = (Axis(2048, 128, 4224), Axis(count, 262144, 128))
    assert _plan.segment_of(_plan.Box(_plan.X, _plan.Y, 0, 0, 128, axes)).boxes[0].axes == (axes[1], *pages)


# --------------------------------------------------------------------------------------------------- channels


@pytest.mark.parametrize(
    ("digits", "lanes", "cut"),
    [
        ([("h", 2), ("w", 2), ("c", 64)], 4, {"c": 4}),
        ([("h", 2), ("w", 2), ("c", 4)], 4, {}),
        ([("h", 2), ("w", 2), ("c", 3)], 4, None),  # RGB in words of 4: words straddle pixels
        ([("h", 2), ("w", 2), ("c", 3)], 3, {}),
        ([("h", 2), ("w", 2), ("c", 3)], 6, {}),
        ([("h", 2), ("w", 2), ("c", 1)], 2, {}),
        ([("h", 2), ("w", 2), ("c", 1)], 8, None),  # a last word half full, and no channel on top
        ([("h", 1), ("w", 1), ("c", 3)], 4, {"c": 4}),  # ragged, but on top
        ([("c", 16), ("h", 2), ("w", 2)], 8, {"c": 2}),
        ([("c", 3), ("h", 2), ("w", 2)], 8, {"c": 2}),
        ([("c", 3), ("h", 3), ("w", 3)], 4, None),
        ([("c", 3), ("h", 2), ("w", 4)], 2, {"w": 2}),
        ([("c", 5), ("h", 2), ("w", 2)], 1, {}),
    ],
)
def test_cut_deep_table(digits, lanes, cut):
    assert cut_deep(digits, lanes) == cut


@pytest.mark.parametrize(
    ("extent", "cuts", "atoms"),
    [
        (6, [], [(1, 6)]),
        (6, [1, 0], [(1, 6)]),
        (64, [4], [(4, 16), (1, 4)]),
        (70, [32, 4], [(32, 3), (4, 8), (1, 4)]),
        (12, [4, 6], None),
        (3, [4], [(4, 1), (1, 4)]),
    ],
)
def test_digit_atoms_table(extent, cuts, atoms):
    assert digit_atoms(extent, cuts) == atoms


@pytest.mark.parametrize(("mode", "digits"), [("DCR", "hwc"), ("CRD", "chw"), ("focus", "whc")])
def test_deep_digits_table(mode, digits):
    assert deep_digits(mode, ("h", "w")) == tuple(digits)


# ------------------------------------------------------------------------------------------------------ plans


def depth_problem(shape, block, source, target, mode="DCR", itemsize=1, lanes=0, margins=((0, 0), (0, 0))):
    """A space-to-depth problem on a C-contiguous tensor whose layouts have two spatial axes."""
    sizes = dict(zip(LAYOUTS[source].axes, shape))
    space = (sizes["h"], sizes["w"])
    blocks = tuple((extent + sum(m)) // b for extent, b, m in zip(space, block, margins))
    deep = sizes["c"] * block[0] * block[1]
    dst = {"n": sizes["n"], "h": blocks[0], "w": blocks[1], "c": deep, "v": lanes}
    dst["cb"] = -(-deep // lanes) if lanes else 0
    return DepthProblem(
        to_depth=True, source=LAYOUTS[source], target=LAYOUTS[target], mode=mode,
        steps=contiguous_steps(shape, itemsize), itemsize=itemsize, batch=sizes["n"], blocks=blocks, block=block,
        lo=tuple(m[0] for m in margins), space=space, channels=sizes["c"], src_lanes=0, dst_lanes=lanes,
        dst_shape=tuple(dst[axis] for axis in LAYOUTS[target].axes),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (depth_problem((1, 4, 4, 3), (2, 2), "NHWC", "NHWC"), "[] {X+0->Y+0 6B 2:24>24 2:6>12 2:12>6}"),
        (depth_problem((1, 4, 4, 3), (1, 1), "NHWC", "NHWC"), "[] {X+0->Y+0 48B}"),
        (depth_problem((1, 2, 2, 2), (2, 2), "NHWC", "NHWC", "CRD"), "[] {X+0->Y+0 1B 2:1>4 4:2>1}"),
        (
            # Words of 4 from RGB blocks: both rows of 12 channels into one scratch row, then words.
            depth_problem((1, 4, 4, 3), (2, 2), "NHWC", "NCHW_VECT_C", lanes=4),
            "[] {X+0->T+0 6B 2:24>24 2:6>12 2:12>6 ; T+0->Y+0 4B 3:4>16 4:12>4}",
        ),
        (
            # One row of padding above: the rest of its block is copied, the row itself filled.
            depth_problem((1, 3, 2, 1), (2, 2), "NHWC", "NHWC", margins=((1, 0), (0, 0))),
            "[] {X+0->Y+2 2B} | [] {X+2->Y+4 4B} | [] {F+1->Y+0 1B 2:0>1}",
        ),
        (depth_problem((0, 4, 4, 3), (2, 2), "NHWC", "NHWC"), "nothing"),
    ],
)
def test_plan_on_one_line(problem, text):
    assert str(_plan.plan_depth(problem)) == text


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (
            # Three elements to the left of a line of five: nine in a line are one pattern.
            depth_problem((1, 2, 1, 5), (1, 3), "NCHW", "NCHW", margins=((0, 0), (3, 1))),
            "[] {X-3->Y+0 (1x16B>1x32B)}",
        ),
        (
            # So are lines of 132 with their padding.
            depth_problem((3, 8, 64, 130), (1, 4), "NCHW", "NCHW", margins=((0, 0), (1, 1))),
            "[3:66560>67584 512:130>33] {X-1->Y+0 (5x32B>4x64B)}",
        ),
        (
            # Lines of 258 elements: padding at both ends, blocks counted from the first element on, and what is left
            # over at the end of a line.
            depth_problem((3, 8, 64, 258), (1, 4), "NCHW", "NCHW", margins=((0, 0), (1, 1))),
            "[3:132096>133120 8:16512>4160] {F+1->Y+0 (1x16B>16x16B) 4:0>1040 ; F+1->Y+99904 (1x16B>16x16B) 4:0>1040 ; "
            "X-1->Y+0 (4x64B>4x64B) 64:258>65 ; X+256->Y+33344 (8x16B>16x16B) 8:2064>520}",
        ),
    ],
)  # fmt: skip
def test_cut_lines_are_counted_from_their_first_element(problem, text):
    plan = _plan.plan_depth(problem, tiles=VBMI)
    assert str(plan) == text


def test_planes_of_a_quarter_of_a_mebibyte_are_rows_with_their_padding():
    """Larger ones are moved all at once."""
    for blocks, rows in ((64, "[2:257796>65536] {F+1->Y+262144 "), (65, "[] {F+1->Y+266240 ")):
        # Padding on both axes: no plane is smaller than those of the channels.
        problem = depth_problem((1, 2, 2 * blocks - 2, 2046), (2, 2), "NCHW", "NCHW", margins=((1, 1), (1, 1)))
        assert str(_plan.plan_depth(problem, tiles=VBMI)).startswith(rows)


def test_even_parts_are_all_of_an_axis_in_more_than_half_of_what_fits():
    for extent, most in product(range(1, 120), range(40)):
        parts = list(_plan.even_parts(extent, most))
        fits = max(1, min(extent, most))
        covered = [range(start, start + count * size) for start, count, size in parts]
        assert [index for part in covered for index in part] == [*range(extent)]
        assert fits / 2 < parts[0][2] <= fits
        if len(parts) > 1:
            [_, (_, count, size)] = parts
            assert count == 1 and size < parts[0][2]
            assert not any(extent % part == 0 for part in range(fits // 2 + 1, fits + 1))


@pytest.mark.parametrize(("high", "starts"), [(113, ["[18:768>3072] {", "[] {X+13824->"]), (112, ["[28:512>2048] {"])])
def test_scratch_rows_of_a_prime_number_of_blocks_are_joined(high, starts):
    """Six of four blocks of 612 channels are what fits: 18 times and what is left over; or 28 times four."""
    x = np.empty((1, 20, high, 4, 32), np.uint8)
    problem = problem_of("depth_to_space", x, {"block_size": 2, "data_format": "NCHW_VECT_C", "channels": 612})
    segments = [str(segment) for segment in _plan.plan_depth(problem, tiles=VBMI).segments]
    assert len(segments) == len(starts) and all(map(str.startswith, segments, starts))


@pytest.mark.parametrize("nbytes", [1, 97, 500, 20000])
@pytest.mark.parametrize("planes", [1, 2, 3, 66, 67, 71, 349, 698, 997])
def test_rows_of_planes_are_of_one_size_but_for_the_last(planes, nbytes):
    """Whatever number of planes there is, every plane is in one row; rows are as large as fits, or nearly so."""
    atoms = {"n": (planes, 1000, 2000), "x": (5, 2, 2), "o": (2, 1, 1000)}
    atoms = {name: _plan.Atom(*atom) for name, atom in atoms.items()}
    move = _plan.Move(_plan.X, _plan.Y, 1, atoms, (_plan.Window(("x", "o"), 1, 9, "pad"),), -1, 7)
    found = []
    parts = list(_plan.shared_rows(move, planes * nbytes))
    for rows, inner, size in parts:
        [count] = [axis.extent for axis in rows] or [1]
        few = inner.atoms["n"].extent
        assert size == few * nbytes <= max(nbytes, 1 << 15)
        for k in range(count * few):
            row, plane = divmod(k, few)
            place = [row * axis.dst for axis in rows]
            found.append(inner.dst_offset + sum(place) + 2000 * plane)
            assert found[-1] - 7 == 2 * (inner.src_offset + 1 + sum(row * axis.src for axis in rows) + 1000 * plane)
    assert found == [7 + 2000 * plane for plane in range(planes)]
    assert len(parts) <= 2
    most = max(1, min(planes, (1 << 15) // nbytes))
    assert parts[0][1].atoms["n"].extent > most // 2
    if len(parts) == 2:
        assert parts[1][1].atoms["n"].extent < parts[0][1].atoms["n"].extent


@pytest.mark.parametrize("block", [16, 17, 24, 32])
def test_cut_blocks_of_more_elements_than_a_tile_has_pieces(block):
    """A line of more than 16 is not counted from its start: the move comes before what is padded."""
    x = np.arange(4 * (40 * block - 3)).astype(np.uint8).reshape(1, 4, -1)
    arguments = {"block_shape": [1, block], "paddings": [[0, 0], [1, 2]]}
    assert np.array_equal(s2dq.space_to_batch_nd(x, **arguments), reference.space_to_batch_nd(x, **arguments))
    problem = problem_of("space_to_batch_nd", x, arguments)
    plan = str(_plan.plan_batch(problem, tiles=VBMI))
    assert plan.startswith("[] {F+1" if block == 16 else "[] {X+0")


@pytest.mark.parametrize(
    ("shape", "block", "margins", "start"),
    [
        ((1, 1, 254, 1), 2, [1, 1], "[] {X-1->Y+0 (4x64B>4x64B)}"),  # 256 bytes with their padding, one pattern
        ((1, 1, 255, 1), 2, [1, 2], "[] {F+1->Y+0 "),  # 258: counted from the first element on
        ((1, 1, 5, 20), 2, [1, 2], "[] {X-20->Y+0 (2x64B>3x64B)}"),  # of pixels, and of blocks of more than 32 bytes
        ((1, 1, 1, 20), 2, [1, 0], "[] {X+0->Y+20 "),  # but for a single block,
        ((1, 1, 4, 20), 2, [2, 2], "[] {X-40->Y+0 "),
        ((1, 1, 4, 20), 2, [2, 4], "[] {X+0->Y+20 "),  # and where padding is more than half
        ((1, 3, 4096, 1), 2, [1, 1], "[] {F+1->Y+0 "),
        ((1, 3, 4097, 1), 2, [1, 2], "[] {X+"),  # cut where the padding ends
        ((1, 3, 142, 2), 16, [1, 1], "[] {F+1->Y+0 "),  # a block of 32 bytes
        ((1, 3, 86, 3), 11, [1, 1], "[] {X+"),
        ((1, 4, 94, 1), 24, [0, 2], "[] {F+1->Y+355 "),  # whole blocks, more streams than a tile has pieces
    ],
)
def test_lines_are_one_pattern_up_to_256_bytes_and_counted_up_to_4096(shape, block, margins, start):
    arguments = {"block_shape": [1, block], "paddings": [[0, 0], margins]}
    problem = problem_of("space_to_batch_nd", np.zeros(shape, np.uint8), arguments)
    assert str(_plan.plan_batch(problem, tiles=VBMI)).startswith(start)


@pytest.mark.parametrize(
    ("shape", "crops", "segments"),
    [
        ((2, 2, 132, 1), [5, 3], "[] {X+0->Y-5 (4x64B>4x64B) 2:132>256}"),  # 256 of 264 bytes
        ((2, 2, 132, 1), [5, 2], "[] {X+0->Y-5 (4x64B>4x64B) 2:132>257} | [] {X+394->Y+256 (2x16B>2x16B)}"),
        ((2, 1, 8, 20), [9, 1], "[] {X+0->Y-180 (2x64B>2x64B)}"),  # however little is left
        ((2, 1, 8, 20), [1, 2], "[] {X+160->Y+0 (1x32B>1x32B)} | [] {X+20->Y+20 (4x64B>4x64B)}"),
    ],
)
def test_what_is_left_of_a_line_is_one_pattern_up_to_256_bytes(shape, crops, segments):
    arguments = {"block_shape": [1, 2], "crops": [[0, 0], crops]}
    problem = problem_of("batch_to_space_nd", np.zeros(shape, np.uint8), arguments)
    assert str(_plan.plan_batch(problem, tiles=VBMI)) == segments


@pytest.mark.parametrize("mode", ["CRD", "DCR", "focus"])
@pytest.mark.parametrize("isa", ["avx2", "avx512vbmi"])
@pytest.mark.parametrize("lanes", [16, 32])
def test_words_with_spare_lanes_are_written_whole(mode, isa, lanes):
    """Every tile writes the words of some blocks, spare lanes and all, whatever the order of the channels."""
    arguments = {"data_format": "NCHW_VECT_C", "vect": lanes, "block_size": 2, "mode": mode, "scale": 0.02, "std": 0.5}
    problem = problem_of("preprocess", np.empty((1, 640, 640, 3), np.uint8), arguments)
    [(_, [box])] = _plan.plan_depth(problem, tiles=_plan.Means(*MEANS[isa])).segments
    dst = box.tile.dst
    assert set(dst.masks) == {(1 << dst.width) - 1} and box.width % lanes == 0


def test_what_goes_past_the_caches_reads_no_pages():
    """Rows stay as they are, though the planes that are read lie whole pages apart."""
    x = np.empty((1, 192, 256, 256), np.uint8)
    problem = problem_of("depth_to_space", x, {"block_size": 4, "data_format": "NCHW"})
    plan = _plan.plan_depth(problem, tiles=VBMI)
    assert str(plan) == "[3072:256>4096] {X+0->Y+0 (4x64B>4x64B!) 4:3145728>1024 4:64>256}"


def test_two_lines_are_copied_as_they_are_from_results_of_two_mebibytes_on():
    box = _plan.Box(_plan.X, _plan.Y, 0, 0, 128, (Axis(64, 128, 256),))
    for nbytes, tiled in (((2 << 20) - 1, True), (2 << 20, False)):
        [(_, [part])] = _plan.moved([box], VBMI, nbytes)
        assert bool(part.tile) == tiled


def test_small_boxes_of_more_than_64_are_not_searched_for_tiles():
    for count, extent, width, tiled in ((64, 455, 9, True), (65, 455, 9, False), (65, 512, 8, True)):
        box = _plan.Box(_plan.X, _plan.Y, 0, 0, width, (Axis(extent, 100, width),))
        segments = list(_plan.moved([box] * count, VBMI, 0))
        assert len(segments) >= count
        assert all(bool(part.tile) == tiled for segment in segments for part in segment.boxes)
    pairs = _plan.Box(_plan.X, _plan.Y, 0, 0, 1, (Axis(8, 2, 2),), pattern=((1, 0, 0, 0), (0, 1, 0, 0)))
    assert all(part.tile for segment in _plan.moved([pairs] * 65, VBMI, 0) for part in segment.boxes)


def bytes_moved(box):
    """``{place in the result: place in the source}``, or in the fill values as a pair with their name."""
    moved = {}
    for turn in product(*(range(axis.extent) for axis in box.axes)):
        for src, dst, fill, _ in box.pattern:
            source = box.src_offset + sum(i * axis.src for i, axis in zip(turn, box.axes))
            target = box.dst_offset + sum(i * axis.dst for i, axis in zip(turn, box.axes)) + dst
            for byte in range(box.width):
                filled = box.source == _plan.F or src is None
                start = fill if src is None else source + src
                assert target + byte not in moved
                moved[target + byte] = ("fill", start + byte) if filled else start + byte
    return moved


@pytest.mark.parametrize("outside", ["skip", "pad"])
@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("most", [0, 256])
def test_counted_boxes_move_each_element_once(monkeypatch, most, channels, outside):
    """Every window of lines of two blocks and more, of two bytes a place, as one pattern and in blocks."""
    monkeypatch.setattr(_plan, "_PATTERN_BYTES", most)
    width = 2 // channels
    for block, blocks in product((1, 2, 3, 4), (1, 2, 5)):
        total = block * blocks
        for lo, hi in combinations(range(total + 1), 2):
            window = _plan.Window(("x", "o"), lo, hi, outside)
            atoms = {"n": (2, 100, 200), "x": (blocks, 2 * block, 2), "o": (block, 2, 40)}
            atoms |= {"c": (channels, width, width)}
            atoms = {name: _plan.Atom(*atom) for name, atom in atoms.items()}
            move = _plan.Move(_plan.X, _plan.Y, width, atoms, (window,), src_offset=-2 * lo)
            expected = {}
            for n, number, byte in product(range(2), range(total), range(2)):
                place = 200 * n + 40 * (number % block) + 2 * (number // block) + byte
                if lo <= number < hi:
                    expected[place] = 100 * n + 2 * (number - lo) + byte
                elif outside == "pad":
                    expected[place] = ("fill", width + byte % width)
            moved = {}
            boxes = list(_plan.counted_boxes(move, window))
            assert all(axis.extent > 1 for box in boxes for axis in box.axes)
            for box in boxes:
                part = bytes_moved(box)
                assert not moved.keys() & part.keys(), (block, blocks, lo, hi)
                moved |= part
            assert moved == expected, (block, blocks, lo, hi)
            if not most and lo % block and hi - lo >= block:
                assert [box for box in boxes if len(box.pattern) == block], (block, blocks, lo, hi)


@pytest.mark.parametrize("target", ["NHWC", "NCHW"])
@pytest.mark.parametrize("shape", [(1, 4096, 4096, 64), (64, 4096, 4096, 1), (1, 1, 1 << 31, 1)])
def test_no_row_is_too_long_for_an_answer_to_ctrl_c(shape, target):
    plan = _plan.plan_depth(depth_problem(shape, (1, 1), "NHWC", target))
    for segment in plan.segments:
        for box in segment.boxes:
            assert box.width * int(np.prod([axis.extent for axis in box.axes])) <= 1 << 23, str(plan)


def test_plan_is_immutable_and_hashable():
    problem = depth_problem((1, 4, 4, 3), (2, 2), "NHWC", "NCHW_VECT_C", lanes=4)
    plan = _plan.plan_depth(problem)
    assert hash(plan) == hash(_plan.plan_depth(problem))
    assert all(isinstance(number, int) for number in plan.encode())
    with pytest.raises(AttributeError):
        plan.scratch = 0


@pytest.mark.thread_unsafe(reason="clears what the operators remember, and counts")
def test_plans_are_cached_in_one_bounded_place():
    """A call like one before asks nobody; a call like one that was forgotten finds its program again."""
    x = np.zeros((1, 4, 4, 3), np.uint8)
    forget_calls()
    for _ in range(3):
        s2dq.space_to_depth(x, 2)
    info = operators.program_of.cache_info()
    assert (info.misses, info.hits, info.maxsize) == (1, 0, 1024)
    memo_of(s2dq.space_to_depth).clear()
    for _ in range(3):
        s2dq.space_to_depth(x, 2)
    info = operators.program_of.cache_info()
    assert (info.misses, info.hits) == (1, 1)
    assert [len(known) for known in memo_of(s2dq.space_to_depth).calls.values()] == [1]


# --------------------------------------------------------------------------------------------------- sabotage

# Operator, shape, arguments, and whether the plan is one of tiles.
SABOTAGED = {
    "plain": ("space_to_depth", (1, 4, 4, 4), {"block_size": 2}, False),
    "padded": ("space_to_depth", (1, 3, 3, 4), {"block_size": 2, "paddings": [[1, 0], [0, 1]], "pad_value": 9}, False),
    "chained": ("space_to_depth", (1, 4, 4, 3), {"block_size": 2, "out_format": "NCHW_VECT_C"}, False),
    # Seven boxes of one tile each, the last of which fills the first row.
    "padded tiles": (
        "space_to_depth", (1, 3, 3, 4), {"block_size": 2, "paddings": [[1, 0], [0, 1]], "pad_value": 9}, True,
    ),
    # Three registers in and three out, a loop inside another one that goes back, and room behind both.
    "tiles that go back": (
        "space_to_depth", (1, 5, 139, 1), {"block_size": 2, "paddings": [[0, 1], [0, 1]], "pad_value": 9}, True,
    ),
    # A pattern of a block with its channels, the lanes behind them and the padding in them.
    "pattern": (
        "space_to_depth",
        (1, 5, 9, 3),
        {"block_size": 2, "out_format": "NCHW_VECT_C", "vect": 8, "paddings": [[1, 0], [0, 1]], "pad_value": 9},
        True,
    ),
    "network": ("pack_vect_c", (1, 32, 8, 9), {"vect": 32}, True),
    "cropped tiles": (
        "depth_to_space", (1, 8, 5, 70), {"block_size": 2, "data_format": "NCHW", "crops": [[0, 2], [0, 20]]}, True,
    ),
}  # fmt: skip


def rebuilt(plan, change):
    """The plan with `change` applied to every box, None dropping it."""
    segments = []
    for segment in plan.segments:
        boxes = tuple(box for box in map(change, segment.boxes) if box is not None)
        if boxes:
            segments.append(segment._replace(boxes=boxes))
    return Plan(tuple(segments), plan.scratch)


def swapped_steps(plan):
    """Two loops of equal length step through the source in each other's place."""
    def change(box):
        for i, j in product(range(len(box.axes)), repeat=2):
            a, b = box.axes[i], box.axes[j]
            if i < j and a.extent == b.extent and a.src != b.src:
                axes = list(box.axes)
                axes[i], axes[j] = a._replace(src=b.src), b._replace(src=a.src)
                return box._replace(axes=tuple(axes))
        return box
    return rebuilt(plan, change)


def short_loop(plan):
    """The last round of a loop is never run: bytes stay unwritten."""
    def change(box):
        if not box.axes or box.target != _plan.Y:
            return box
        first = box.axes[0]
        return box._replace(axes=(first._replace(extent=first.extent - 1), *box.axes[1:]))
    return rebuilt(plan, change)


def narrow_granule(plan):
    """The last byte of every granule is forgotten."""
    return rebuilt(plan, lambda box: box._replace(width=box.width - 1) if box.width > 1 else box)


def shifted_source(plan):
    """The source is read one byte early wherever that stays inside."""
    return rebuilt(plan, lambda box: box._replace(src_offset=box.src_offset - 1) if box.src_offset else box)


def lost_box(plan):
    """The last box is lost."""
    *rest, last = plan.segments
    segments = (*rest, last._replace(boxes=last.boxes[:-1])) if len(last.boxes) > 1 else tuple(rest)
    return Plan(segments, plan.scratch)


def no_sabotage(plan):
    return rebuilt(plan, lambda box: box)


# ... and of tiles


def first_tile(plan, change):
    """The plan with `change` applied to the tile of one box, the first that `change` finds something to break in."""
    done = []

    def change_box(box):
        tile = None if done or not box.tile else change(box.tile)
        if tile is None:
            return box
        done.append(tile)
        return box._replace(tile=tile)

    return rebuilt(plan, change_box)


def lanes_of(tile):
    """``(register, lane)`` of the output bytes that are looked up and stored."""
    for place in positions(tile.dst).values():
        register, lane = divmod(place, 64)
        if tile.outputs[register].fill[lane] < 0:
            yield register, lane


def with_output(tile, register, **changes):
    outputs = list(tile.outputs)
    outputs[register] = outputs[register]._replace(**changes)
    return tile._replace(outputs=tuple(outputs))


def wrong_index(plan):
    """One byte of an output is looked up next to where it is."""
    def change(tile):
        for register, lane in lanes_of(tile):
            table = bytearray(tile.outputs[register].low)
            table[lane] ^= 1
            return with_output(tile, register, low=bytes(table))
    return first_tile(plan, change)


def wrong_upper(plan):
    """One byte comes from the other pair of registers."""
    def change(tile):
        if tile.src.registers > 2:
            register, lane = list(lanes_of(tile))[-1]
            return with_output(tile, register, upper=tile.outputs[register].upper ^ 1 << lane)
    return first_tile(plan, change)


def with_mask(side, at, mask):
    masks = list(side.masks)
    masks[at] = mask
    return side._replace(masks=tuple(masks))


def wrong_table(plan):
    """One word of a network's last level is looked up next to where it is."""
    def change(network):
        *rest, (clear, other) = network.tables
        return network._replace(tables=(*rest, (clear, bytes(byte ^ 8 for byte in other[:8]) + other[8:])))
    return first_tile(plan, change)


def unstored_byte(plan):
    """One bit of a store mask is missing."""
    return first_tile(plan, lambda tile: tile._replace(dst=with_mask(tile.dst, 0, tile.dst.masks[0] & ~1)))


def unread_byte(plan):
    """The highest bit of every tile's load masks is missing: at the ends of the source nothing else is read."""
    def change(box):
        last = len(box.tile.src.masks) - 1
        mask = box.tile.src.masks[last]
        src = with_mask(box.tile.src, last, mask ^ 1 << mask.bit_length() - 1)
        return box._replace(tile=box.tile._replace(src=src))
    return rebuilt(plan, change)


def stored_too_much(plan):
    """The last tile, which fills the first row of the result, writes one byte of the second."""
    *rest, last = plan.segments
    box = last.boxes[-1]
    if not box.tile:
        return plan
    at = len(box.tile.dst.masks) - 1
    mask = box.tile.dst.masks[at]
    tile = box.tile._replace(dst=with_mask(box.tile.dst, at, mask | 1 << mask.bit_length()))
    return Plan((*rest, last._replace(boxes=(*last.boxes[:-1], box._replace(tile=tile)))), plan.scratch)


def moved_piece(plan):
    """One piece of the source lies one byte further."""
    def change(tile):
        offsets = tile.src.offsets
        return tile._replace(src=tile.src._replace(offsets=(offsets[0] + 1, *offsets[1:])))
    return first_tile(plan, change)


def wrong_fill(plan):
    """Padding holds what spare lanes hold."""
    def change(tile):
        for register, output in enumerate(tile.outputs):
            if 1 in output.fill:
                return with_output(tile, register, fill=tuple(0 if at == 1 else at for at in output.fill))
    return first_tile(plan, change)


def lost_fill(plan):
    """A spare byte is looked up like the others."""
    def change(tile):
        for register, output in enumerate(tile.outputs):
            if 1 in output.fill:
                return with_output(tile, register, fill=tuple(-1 if at == 1 else at for at in output.fill))
    return first_tile(plan, change)


def backs_forgotten(plan, *names):
    def change(box):
        return box._replace(axes=tuple(axis._replace(**dict.fromkeys(names, 0)) for axis in box.axes))
    return rebuilt(plan, change)


def forgotten_src_back(plan):
    """The last turn of a loop writes where it should, and reads on."""
    return backs_forgotten(plan, "src_back")


def forgotten_dst_back(plan):
    """The last turn of a loop reads what it should, and writes on."""
    return backs_forgotten(plan, "dst_back")


def memo_of(operator):
    """What an operator remembers."""
    return getattr(operators, f"_{operator.__name__}")


def forget_calls():
    for name in operators.__all__:
        memo_of(getattr(s2dq, name)).clear()
    operators.program_of.cache_clear()


def run_checker(monkeypatch, rng, sabotage, case):
    name, shape, arguments, tiles = SABOTAGED[case]
    means = _kernels.tile_means()
    if tiles and not means:
        pytest.skip("this instruction set runs no tile programs")
    if case == "network" and not means[0]:
        pytest.skip("this instruction set runs no networks")
    changed = []

    def broken(problem, **_):
        plan = _plan.plan_depth(problem, tiles=_plan.Means(*means)._replace(moves=True) if tiles else None)
        assert any(box.tile for segment in plan.segments for box in segment.boxes) == tiles
        changed.append(sabotage(plan) != plan)
        return sabotage(plan)

    monkeypatch.setattr(operators, "plan_depth", broken)
    forget_calls()
    try:
        check(getattr(s2dq, name), shape, np.int8, arguments, getattr(reference, name), rng=rng)
    finally:
        forget_calls()
        assert changed, "the planner was never asked"
    return any(changed)


@pytest.mark.parametrize("case", SABOTAGED)
def test_checker_accepts_the_real_plan(monkeypatch, rng, case):
    assert not run_checker(monkeypatch, rng, no_sabotage, case)


@pytest.mark.skipif(SANITIZED, reason="broken plans touch memory that they may not")
@pytest.mark.parametrize(
    ("sabotage", "case"),
    [
        (swapped_steps, "plain"),
        (short_loop, "plain"),
        (narrow_granule, "plain"),
        (narrow_granule, "padded"),
        (shifted_source, "padded"),
        (lost_box, "padded"),
        (lost_box, "chained"),
        (short_loop, "chained"),
        (wrong_index, "padded tiles"),
        (wrong_index, "tiles that go back"),
        (wrong_index, "pattern"),
        (wrong_index, "cropped tiles"),
        (wrong_upper, "tiles that go back"),
        (wrong_upper, "cropped tiles"),
        (unstored_byte, "padded tiles"),
        (unstored_byte, "pattern"),
        (unstored_byte, "cropped tiles"),
        (wrong_table, "network"),
        (moved_piece, "network"),
        (short_loop, "network"),
        (forgotten_src_back, "network"),
        (unread_byte, "padded tiles"),
        (unread_byte, "pattern"),
        (stored_too_much, "padded tiles"),
        (moved_piece, "pattern"),
        (moved_piece, "cropped tiles"),
        (short_loop, "tiles that go back"),
        (short_loop, "pattern"),
        (short_loop, "cropped tiles"),
        (forgotten_src_back, "tiles that go back"),
        (forgotten_dst_back, "tiles that go back"),
        (wrong_fill, "pattern"),
        (lost_fill, "pattern"),
        (shifted_source, "padded tiles"),
        (lost_box, "padded tiles"),
        (lost_box, "pattern"),
    ],
)
def test_checker_notices_sabotage(monkeypatch, rng, sabotage, case):
    if sabotage is unread_byte and not (_kernels.tile_means() and _plan.Means(*_kernels.tile_means()).moves):
        pytest.skip("the tiles of this instruction set read windows, whatever the masks of their pieces")
    with pytest.raises(AssertionError, match=f"\n{SABOTAGED[case][0]}: shape"):
        run_checker(monkeypatch, rng, sabotage, case)


def test_checker_notices_a_lost_pattern_entry(monkeypatch, rng):
    """A tile made of all but the last byte of its pattern."""
    real = _plan.tile_of

    def shorter(axes, width, pattern, *rest, **others):
        return real(axes, width, pattern[:-1] or pattern, *rest, **others)

    monkeypatch.setattr(_plan, "tile_of", shorter)
    with pytest.raises(AssertionError, match=r"\nspace_to_depth: shape"):
        run_checker(monkeypatch, rng, no_sabotage, "pattern")


# ------------------------------------------------------------------------------- tables that no plan comes to


@pytest.mark.parametrize("table", [[], [0], [-1, 0], [3, 0]], ids=str)
def test_a_table_that_starts_like_no_plan_is_refused(table):
    with pytest.raises(ValueError, match="plan table: no plan starts like this"):
        _kernels.Program(np.array(table, np.int64))


VBMI_MEANS = _plan.Means(*MEANS["avx512vbmi"])


@pytest.mark.parametrize(("axes", "copied"), [
    ([Axis(3, 512, 1920), Axis(97, 1 << 17, 1 << 16)], True),  # a tile is one run
    ([Axis(64, 512, 128), Axis(97, 1 << 17, 1 << 16)], False),  # a tile joins two
])  # fmt: skip
def test_far_runs_that_no_tile_makes_longer_are_copied(axes, copied):
    box = _plan.Box(_plan.X, _plan.Y, 0, 0, 128, tuple(axes))
    assert _plan.is_far_run(box, VBMI_MEANS) == copied


@pytest.mark.parametrize(("nbytes", "sweep"), [
    (0, 0), ((10 << 20) - 1, 0), (10 << 20, 3072), ((24 << 20) - 1, 3072), (24 << 20, 2048), (1 << 40, 2048),
])  # fmt: skip
def test_from_which_size_on_results_go_past_the_caches(nbytes, sweep):
    assert VBMI_MEANS.for_result(nbytes) == VBMI_MEANS._replace(streams=sweep > 0, sweep=sweep)
    assert not VBMI_MEANS._replace(streams=False).for_result(nbytes).streams


@pytest.mark.parametrize(("nbytes", "shorter"), [
    ((14 << 20) - 1, 0), (14 << 20, 512), ((24 << 20) - 1, 512), (24 << 20, 0),
])  # fmt: skip
def test_where_runs_of_whole_tiles_may_be_shorter(nbytes, shorter):
    followed = _plan.Means(*MEANS["avx512vbmi, followed"])
    assert followed.for_result(nbytes).shorter == shorter
    assert VBMI_MEANS.for_result(nbytes).shorter == 0


@pytest.mark.parametrize(("width", "shorter", "past"), [
    (1408, 0, False), (1408, 512, True),  # 22 times two lines in a row of a stream
    (1280, 512, True), (1216, 512, False),  # 20 times, and 19
    (1440, 512, False), (1456, 512, False),  # 22.5 times, and 22.75
    (1536, 0, True), (1552, 0, True),  # 24 times, and a bit
], ids=str)  # fmt: skip
def test_runs_that_are_long_enough_to_go_past_the_caches(width, shorter, past):
    """Rows of int16 in two streams, by tiles that write two lines of each; with a gap behind each row."""
    axes = Axis(2, 2, 16 << 20), Axis(3000, 4 * width, 2 * width + 128), Axis(width, 4, 2)
    box = _plan.Box(_plan.X, _plan.Y, 0, 0, 2, axes)
    means = VBMI_MEANS._replace(sweep=3072, shorter=shorter)
    segment = next(_plan.tiled(box, means))
    assert (segment.boxes[0].stream > 0) == past, str(segment)


@pytest.mark.parametrize(("width", "gap", "lookup", "followed", "past"), [
    (320, 0, "", False, True),
    (320, 64, "", False, False), (320, 0, "", True, False),
    (328, 0, "", False, False),  # the last tile of a row goes back
    (320, 0, "flip", False, False),
], ids=str)  # fmt: skip
@pytest.mark.parametrize("rows", [2, 1000])
def test_short_runs_that_rows_make_longer_go_past_the_caches(width, gap, lookup, followed, past, rows):
    """Rows of bytes in two streams, and two rows to other planes: the next turn of a loop goes on where a run ended."""
    axes = Axis(2, 1, 32 << 20), Axis(2, 2 * width, 16 << 20), Axis(rows, 4 * width, width + gap), Axis(width, 2, 1)
    box = _plan.Box(_plan.X, _plan.Y, 0, 0, 1, axes, lookup=lookup)
    means = _plan.Means(*MEANS["avx512vbmi, followed" if followed else "avx512vbmi"])._replace(sweep=3072)
    segment = next(_plan.tiled(box, means))
    assert (segment.boxes[0].stream > 0) == (past and rows * width >= 3072), str(segment)


@pytest.mark.parametrize(("width", "past"), [(512, True), (1024, False), (2048, False)])
def test_long_granules_need_no_tile_to_go_past_the_caches(width, past):
    box = _plan.Box(_plan.X, _plan.Y, 0, 0, width, (Axis(1 << 16, 2 * width, width),))
    assert (_plan.past_for(box, VBMI_MEANS.for_result(width << 16)) is not None) == past


@pytest.mark.parametrize(("width", "followed", "past"), [
    (128, True, False), (192, True, False), (96, True, True), (128, False, True), (192, False, True),
])  # fmt: skip
def test_whole_lines_that_leave_gaps_are_copied_where_streams_are_followed(width, followed, past):
    """Two offsets in rows of 200 blocks: half of each row in either, to results of their own."""
    axes = Axis(2, width, 1 << 24), Axis(300, 400 * width, 200 * width), Axis(200, 2 * width, width)
    box = _plan.Box(_plan.X, _plan.Y, 0, 0, width, axes)
    means = _plan.Means(*MEANS["avx512vbmi, followed"])._replace(follows=followed).for_result(24 << 20)
    assert (_plan.past_for(box, means) is not None) == past
    near = box._replace(axes=(axes[0], axes[1]))  # no loop that steps further than these offsets are apart
    assert (_plan.past_for(near, means) is None) == (_plan.past_for(near, means._replace(follows=False)) is None)


@pytest.mark.parametrize(("width", "rows", "order"), [
    (192, 170, (1, 0)), (192, 171, (0, 1)), (96, 400, (1, 0)),
])  # fmt: skip
def test_long_runs_are_written_as_they_lie_from_4_mib_on(width, rows, order):
    """Four images into rows of 32 granules each: the short loop is the inner one only where the result is large."""
    lines, *inner = (Axis(rows, 1 << 20, 128 * width), Axis(32, width, 4 * width), Axis(4, 32 * width, width))
    segment = _plan.segment_of(_plan.Box(_plan.X, _plan.Y, 0, 0, width, (lines, *inner)))
    assert segment.rows == (lines,)
    assert segment.boxes[0].axes == tuple(inner[k] for k in order)


def test_runs_with_spare_lanes_stay_in_the_order_of_the_result():
    """Their kernel writes lanes behind a run; other runs are read in the order of the source, so that none is left."""
    box = _plan.Box(_plan.X, _plan.Y, 0, 0, 128, (Axis(100, 128, 1 << 20), Axis(200, 12800, 192)))
    assert _plan.leaves_gaps(box)
    assert not _plan.leaves_gaps(box._replace(lanes=64, lane=1))


def test_the_order_of_the_source_leaves_loops_within_a_page_as_they_are():
    """What a run leaves of a page is still in the nearest cache when it is come back to."""
    odd, run, rows = Axis(2, 256, 1 << 20), Axis(8, 512, 256), Axis(100, -8192, 4096)
    assert _plan.source_order((odd, run, rows)) == (rows, odd, run)
    longer = run._replace(extent=9)  # a page and a run
    assert _plan.source_order((odd, longer, rows)) == (rows, longer, odd)
    assert _plan.source_order((longer._replace(src=-512), rows, odd)) == (rows, longer._replace(src=-512), odd)


@pytest.mark.skipif(not (_kernels.tile_means() or [False])[0], reason="no networks on this instruction set")
def test_a_network_that_has_no_kernel_is_refused():
    """One level, and 64 bytes of a register side by side on either side: nothing to exchange."""
    pieces = _tiles.NETWORK // 16
    box = [0, 1, 0, 0, _tiles.NETWORK, 0, 0, 0, 0, 0]
    network = [1, 0, 0, 0, 1, *range(pieces), 1, *range(pieces), *[0] * (2 * _tiles.REGISTER // 8), 0]
    table = [1, 0, 0, 1, *box, 2, 0, *network]
    with pytest.raises(ValueError, match="plan table: no kernel for a network of this shape"):
        _kernels.Program(np.array(table, np.int64))


@pytest.mark.skipif(not (_kernels.tile_means() or [False])[0], reason="no networks on this instruction set")
@pytest.mark.parametrize(("step", "refused"), [(1 << 20, "no kernel"), (1 << 31, "a network reaches too far")])
def test_uneven_places_are_numbers_of_32_bits(step, refused):
    pieces = _tiles.NETWORK // 16
    box = [0, 1, 0, 0, _tiles.NETWORK, 0, 0, 0, 0, 0]
    network = [1, 0, 0, 0, 1, *range(pieces), 1, *range(pieces), *[0] * (2 * _tiles.REGISTER // 8)]
    bend = _tiles.Bend(1, ((2, step), (8, 64)), 16, 1, 0, tuple(range(16))).encode()
    with pytest.raises(ValueError, match=f"plan table: {refused}"):
        _kernels.Program(np.array([1, 0, 0, 1, *box, 2, 0, *network, *bend], np.int64))


def ask_for_large_programs():
    """Print what a program, and lookups, that need some hundred MB come to in 64 MiB of them."""
    import resource

    import numpy as np

    from guarded import address_space
    from s2dq import _kernels

    def refusal(function, *arguments):
        resource.setrlimit(resource.RLIMIT_AS, (address_space() + (64 << 20), resource.RLIM_INFINITY))
        try:
            function(*arguments)
        except MemoryError as error:
            print(error)
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    many = np.zeros(1 << 22, np.int64)
    many[0] = many.size // 2  # segments, it says
    refusal(_kernels.Program, many)
    count = 1 << 17
    box = [0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]  # a byte from X to Y
    program = _kernels.Program(np.array([1, 0, 0, count, *box * count], np.int64))
    tables = bytes(256)
    refusal(_kernels.Lookups, program, bytes(1), "table", tables, None, 0, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space")
@pytest.mark.skipif(SANITIZED, reason="limits the address space")
def test_no_memory_for_a_program_is_a_memory_error():
    assert run_child(ask_for_large_programs).splitlines() == [
        "plan table: no memory for the program", "no memory for the lookups"]


@pytest.mark.parametrize(("shape", "most", "count"), [
    ((2, 3, 4), 24, 1), ((2, 3, 4), 23, 2), ((2, 3, 4), 12, 2), ((2, 3, 4), 11, 4), ((2, 3, 4), 8, 4),
    ((2, 3, 4), 7, 6), ((2, 3, 4), 4, 6), ((2, 3, 4), 3, 12), ((2, 3, 4), 1, 24), ((100,), 7, 15),
    ((5, 1, 6), 6, 5), ((6, 5, 1), 15, 2), ((), 1, 1), ((4, 0, 2), 3, 0),
])  # fmt: skip
def test_parts_of_an_array_between_which_signals_count(shape, most, count):
    """As few as there can be of whole trailing axes and a range of the one before: every element is in one of them."""
    times = np.zeros(shape, int)
    indices = list(parts(shape, most))
    for index in indices:
        assert times[index].size <= most
        times[index] += 1
    assert (times == 1).all() and len(indices) == count


@pytest.mark.parametrize(("shape", "steps", "loops"), [
    ((2, 3, 4), (12, 4, 1), ((24, 1),)), ((2, 3, 4), (24, 4, 1), ((2, 24), (12, 1))),
    ((2, 3), (1, 2), ((2, 1), (3, 2))), ((2, 3, 4), (-12, -4, -1), ((24, -1),)), ((2, 1, 4), (4, 99, 1), ((8, 1),)),
    ((3, 4), (0, 0), ((12, 0),)), ((1, 1), (7, 8), ()), ((), (), ()),
])  # fmt: skip
def test_axes_that_continue_each_other_are_one_loop(shape, steps, loops):
    assert loops_of(shape, steps) == loops


@pytest.mark.parametrize(("batch", "grows"), [(1, True), (2, True), (8, True), (16, False)])
def test_results_between_the_caches_are_stored_in_whole_lines(batch, grows):
    """One run of four registers that the innermost loop makes longer, rather than four of one register each."""
    x = np.empty((batch, 24, 32, 12), np.int64)  # of 72 KiB each
    plan = _plan.plan_depth(problem_of("space_to_depth", x, {"block_size": 4, "mode": "CRD"}), tiles=VBMI)
    ((box,),) = (segment.boxes for segment in plan.segments)
    assert (box.tile.dst.runs() == (1, 4)) == (box.axes[-1].dst == 256) == grows

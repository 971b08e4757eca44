"""Space to batch whose images are pictures within frames of padding, planned for a processor that follows streams."""

from math import prod

import numpy as np
import pytest

import s2dq
from recorded_plans import MEANS
from s2dq import _kernels, _plan, operators, reference
from s2dq._layout import BatchProblem, contiguous_steps
from test_plan import forget_calls

FOLLOWED = _plan.Means(*MEANS["avx512vbmi, followed"])
needs_vbmi = pytest.mark.skipif(_kernels.isa() != "avx512vbmi", reason="has no such kernel")
BESIDE = 128


def batch_problem(shape, block, margins, itemsize=1, **others):
    """Space to batch of a tensor of this shape, with so much padding in front and behind."""
    spatial = shape[1 : 1 + len(block)]
    blocks = tuple((extent + sum(m)) // b for extent, m, b in zip(spatial, margins, block))
    rest = shape[1 + len(block) :]
    problem = BatchProblem(
        to_batch=True, steps=contiguous_steps(shape, itemsize), itemsize=itemsize, batch=shape[0], blocks=blocks,
        block=block, lo=tuple(m[0] for m in margins), space=spatial, rest=rest,
        dst_shape=(shape[0] * prod(block), *blocks, *rest),
    )  # fmt: skip
    return problem._replace(**others)


DILATED = ((1, 5, 4, 64), (2, 2), ((1, 2), (2, 0)))  # images of four rows of three granules


def has_frames(problem, means=FOLLOWED):
    plan = _plan.plan_batch(problem, tiles=means)
    return any(box.frame for segment in plan.segments for box in segment.boxes)


def test_offsets_that_see_as_much_are_one_segment():
    """Of four rows two are inside or three, of three columns the last two."""
    assert str(_plan.plan_batch(batch_problem(*DILATED), tiles=FOLLOWED)) == (
        "[] {X+256->Y+0 64B[256+64+192] 2:64>768 2:512>192 2:128>64} | "
        "[] {X+0->Y+1536 64B[64+64+192] 2:64>768 3:512>192 2:128>64}"
    )


def test_images_of_padding_alone_are_filled():
    plan = _plan.plan_batch(batch_problem((1, 1, 4, 64), (2, 2), ((0, 1), (2, 0))), tiles=FOLLOWED)
    framed, filled = plan.segments
    assert framed.boxes[0].frame == (1, 64, 64, 0)
    assert [box.source for box in filled.boxes] == [_plan.F]


def test_images_without_a_column_are_filled():
    """Of two columns in blocks of two the first offset has none."""
    plan = _plan.plan_batch(batch_problem((1, 4, 1, 64), (2, 2), ((0, 0), (1, 2))), tiles=FOLLOWED)
    filled, framed = plan.segments
    assert [box.source for box in filled.boxes] == [_plan.F]
    assert framed.boxes[0].frame == (1, 0, 64, 64)


@pytest.mark.parametrize(("batch", "rows", "together"), [(4, 0, 3), (5, 1, 2), (40, 3, 0)])
def test_pictures_are_run_together_up_to_64_kib(batch, rows, together):
    """2 KiB each: those of a batch, of two offsets in a row, and of four rows."""
    plan = _plan.plan_batch(batch_problem((batch, 24, 16, 64), (8, 2), ((4, 4), (0, 0))), tiles=FOLLOWED)
    for segment in plan.segments:
        loops = (*segment.rows, *segment.boxes[0].axes)
        assert [axis.extent for axis in loops[:3]] == [4, 2, batch]
        assert (len(segment.rows), len(segment.boxes[0].axes)) == (rows, 2 + together)


def test_steps_of_a_single_index_do_not_matter():
    problem = batch_problem((1, 5, 4, 1, 64), (2, 2), ((1, 2), (2, 0)))
    assert has_frames(problem._replace(steps=(*problem.steps[:3], 7, 1)))


@pytest.mark.parametrize(("lo", "extent"), [(0, 1), (0, 7), (1, 5), (3, 3), (4, 2), (2, 9), (3, 0), (6, 6)])
@pytest.mark.parametrize("block", [1, 2, 3, 4])
def test_phases_see_what_is_inside(block, lo, extent):
    inside = range(lo, lo + extent)
    phases = _plan._phases(block, lo, extent)
    assert [phase.start for phase in phases] == [0, *(phase.stop for phase in phases[:-1])]
    assert phases[-1].stop == block
    for phase in phases:
        for offset in range(phase.start, phase.stop):
            assert [k for k in range(20) if k * block + offset in inside] == list(range(phase.lo, phase.hi))


@pytest.mark.parametrize(("others", "framed"), [
    ({}, True),
    ({"pads": (0, 0, 0, 1)}, False),  # values of their own for each channel
    ({"steps": (1280, 256, 64, 2)}, False),  # channels apart
    ({"itemsize": 3, "steps": (3840, 768, 192, 3)}, False),  # elements that make no register
], ids=str)  # fmt: skip
def test_granules_and_pads_that_the_kernel_knows(others, framed):
    assert has_frames(batch_problem(*DILATED)._replace(**others)) == framed


@pytest.mark.parametrize(("shape", "block", "margins", "framed"), [
    ((1, 5, 4, 63), (2, 2), ((1, 2), (2, 0)), False),  # less than a register
    ((1, 5, 4, 65), (2, 2), ((1, 2), (2, 0)), True),
    ((1, 5, 64), (2,), ((1, 2),), False),  # no rows
    ((1, 5, 5, 4, 64), (1, 2, 2), ((0, 0), (1, 2), (2, 0)), True),
    ((1, 5, 5, 4, 64), (2, 2, 2), ((1, 0), (1, 2), (2, 0)), False),  # pictures of padding, too
    ((1, 4, 4, 64), (2, 2), ((0, 0), (0, 0)), False),
    ((1, 127, 128, 256), (2, 2), ((1, 0), (0, 0)), True),  # 4 MiB
    ((1, 127, 130, 256), (2, 2), ((1, 0), (0, 0)), False),
    ((1, 63, 64, 96), (2, 2), ((1, 0), (0, 0)), True),
    ((1, 63, 92, 96), (2, 2), ((1, 0), (0, 0)), False),  # more than 512 KiB of granules across lines
], ids=str)  # fmt: skip
def test_pictures_that_have_frames(shape, block, margins, framed):
    problem = batch_problem(shape, block, margins)
    assert has_frames(problem) == framed
    assert not has_frames(problem._replace(to_batch=False))
    assert not has_frames(problem, FOLLOWED._replace(follows=False))


@pytest.fixture
def followed(monkeypatch):
    """Operators that plan as for a processor that follows streams."""
    _kernels.pretend_habits(follows_streams=True)
    monkeypatch.setattr(operators, "_TILES", _plan.Means(*_kernels.tile_means()))
    forget_calls()
    yield
    _kernels.pretend_habits()
    forget_calls()


def drawn_call(rng):
    """Two or three block dimensions, of which the last two are padded, and channels of 1 to 16 bytes."""
    dims = int(rng.integers(2, 4))
    block = [int(rng.integers(1, 7)) for _ in range(dims)]
    blocks = [int(rng.integers(1, 5)) for _ in range(dims)]
    pads, spatial = [], []
    for k, (b, count) in enumerate(zip(block, blocks)):
        extent = int(rng.integers(1, b * count + 1)) if k >= dims - 2 else b * count
        before = int(rng.integers(0, b * count - extent + 1))
        pads.append([before, b * count - extent - before])
        spatial.append(extent)
    dtype = np.dtype(str(rng.choice(["i1", "u2", "f4", "f8", "c16"])))
    rest = (int(rng.choice([64, 65, 100, 128, 192, 257])),) if rng.random() < 0.8 else (3, int(rng.choice([33, 64])))
    x = rng.integers(0, 250, (int(rng.integers(1, 4)), *spatial, *rest)).astype(dtype)
    return x[:, ::-1] if rng.random() < 0.2 else x, block, pads


@needs_vbmi
@pytest.mark.usefixtures("followed")
@pytest.mark.thread_unsafe(reason="changes how operators plan")
def test_operator_makes_pictures_within_frames(rng):
    framed = 0
    for _ in range(400):
        x, block, pads = drawn_call(rng)
        value = int(rng.choice([0, 1, 7, 100]))
        expected = reference.space_to_batch_nd(x, block, pads, pad_value=value)
        plan = _plan.plan_batch(batch_problem(x.shape, tuple(block), pads, x.itemsize, steps=x.strides), tiles=FOLLOWED)
        boxes = [box for segment in plan.segments for box in segment.boxes]
        framed += any(box.frame for box in boxes)
        if all(box.frame for box in boxes):
            assert _kernels.Program(np.array(plan.encode(), np.int64)).nbytes == expected.nbytes, str(plan)
        memory = np.full(expected.nbytes + 2 * BESIDE + 64, 0xA5, np.uint8)
        start = BESIDE + int(rng.integers(0, 4)) * 16
        out = memory[start : start + expected.nbytes].view(x.dtype).reshape(expected.shape)
        s2dq.space_to_batch_nd(x, block, pads, pad_value=value, out=out, num_threads=int(rng.integers(1, 3)))
        np.testing.assert_array_equal(out, expected, err_msg=f"{x.shape} {x.dtype} {block} {pads}\n{plan}")
        assert (memory[:start] == 0xA5).all()
        assert (memory[start + expected.nbytes :] == 0xA5).all()
    assert framed > 200

"""Plans told in other words: the driver runs any program, not only those that the planner makes.

Axes of boxes become axes of rows, and the other way round; axes are cut in two, turn round, change places, or are
joined by some of a single turn; boxes of a row get segments of their own. None of it changes what goes where.
"""

import numpy as np
import pytest

import recorded_plans
import s2dq
from recorded import Call, all_calls, digest, recorded
from recorded import run as result_of
from s2dq import _kernels, _plan, operators, reference
from s2dq._plan import F, X, Y
from s2dq._tiles import Axis

CALLS = [call for call in all_calls() if "quantize" not in call.function]
PARTS = 8
BESIDE = 1 << 16  # marked bytes before and behind a result


def has_back(axis):
    return bool(axis.src_back or axis.dst_back)


def parts_of(axis, draw):
    """The axis, or two that turn as often."""
    sizes = [size for size in range(2, min(axis.extent, 70)) if axis.extent % size == 0]
    if not sizes or has_back(axis) or draw.random() < 0.5:
        return [axis]
    size = int(draw.choice(sizes))
    outer = Axis(axis.extent // size, axis.src * size, axis.dst * size, axis.tab * size)
    return [outer, axis._replace(extent=size)]


def single_turn(draw, src_back=0, dst_back=0):
    """An axis whose steps are never made; its last turn is its first, and goes back."""
    src, dst = (int(step) for step in draw.integers(-999, 999, 2))
    return Axis(1, src, dst, 256, src_back, dst_back)


def once_more(axis, draw):
    """The axis, or one whose last turn does again what the one before did."""
    if has_back(axis) or draw.random() < 0.7:
        return axis
    return axis._replace(extent=axis.extent + 1, src_back=axis.src, dst_back=axis.dst)


def retold_axes(axes, draw):
    axes = [part for axis in axes for part in parts_of(axis, draw)]
    for _ in range(draw.integers(0, 3)):
        axes.insert(int(draw.integers(0, len(axes) + 1)), single_turn(draw))
    return axes


def kept_axes(box):
    """How many axes mean more than turns, and stay the last."""
    return 2 if box.frame else 1 if box.stream or box.lanes else 0


def retold_box(box, draw):
    if box.lookup == "stage":
        return box
    last = kept_axes(box)
    outer, inner = box.axes[:len(box.axes) - last], box.axes[len(box.axes) - last:]
    axes = retold_axes(outer, draw)
    if box.tile:
        axes = [once_more(axis, draw) for axis in axes]
    if box.tile and draw.random() < 0.3:
        back = [int(draw.integers(1, 99)) for _ in range(2)]
        axes.insert(int(draw.integers(0, len(axes) + 1)), single_turn(draw, *back))
        box = box._replace(src_offset=box.src_offset + back[0], dst_offset=box.dst_offset + back[1])
    return box._replace(axes=(*axes, *inner))


def moved_to_rows(rows, box, draw):
    """Some of the outer axes of a box, as axes of rows; or the other way round."""
    if box.lookup == "stage":
        return rows, box
    most = max(0, len(box.axes) - kept_axes(box))
    most = next((k for k in range(most) if has_back(box.axes[k])), most)
    if draw.random() < 0.5:
        count = int(draw.integers(0, most + 1))
        return (*rows, *box.axes[:count]), box._replace(axes=box.axes[count:])
    count = int(draw.integers(0, len(rows) + 1))
    return rows[:len(rows) - count], box._replace(axes=(*rows[len(rows) - count:], *box.axes))


def turned(rows, boxes, k):
    """The rows of an axis, from the last to the first."""
    axis = rows[k]
    src, dst, tab = ((axis.extent - 1) * step for step in (axis.src, axis.dst, axis.tab))
    boxes = [
        box._replace(
            src_offset=box.src_offset + (src if box.source == X or len(boxes) == 1 else 0),
            dst_offset=box.dst_offset + (dst if box.target == Y else 0),
            tab_offset=box.tab_offset + tab,
        )
        for box in boxes
    ]
    rows[k] = Axis(axis.extent, -axis.src, -axis.dst, -axis.tab)
    return rows, boxes


def retold_segment(segment, draw):
    rows, boxes = segment.rows, segment.boxes
    if len(boxes) > 1 and all((box.source, box.target) in ((X, Y), (F, Y)) for box in boxes) and draw.random() < 0.5:
        for box in boxes:  # fill values have no rows
            own = [axis._replace(src=0 if box.source == F else axis.src, tab=0) for axis in rows]
            yield from retold_segment(_plan.Segment(tuple(own), (box,)), draw)
        return
    if len(boxes) == 1 and boxes[0].stream and not boxes[0].axes:
        # A stream without loops of its own goes along the last axis of the rows, which has to stay the last.
        rows, boxes = rows[:-1], [boxes[0]._replace(axes=rows[-1:])]
    boxes = [retold_box(box, draw) for box in boxes]
    if len(boxes) == 1:
        rows, box = moved_to_rows(rows, boxes[0], draw)
        boxes = [box]
    rows = retold_axes(rows, draw)
    if len(boxes) > 1:
        rows = [axis._replace(tab=0) for axis in rows]
    draw.shuffle(rows)
    rows = [Axis(*map(int, axis)) for axis in rows]
    for k in range(len(rows) - 1):  # the last one is a loop of kernels, which write forwards
        if draw.random() < 0.3:
            rows, boxes = turned(rows, boxes, k)
    yield _plan.Segment(tuple(rows), tuple(boxes))


def retold(plan, draw):
    segments = [part for segment in plan.segments for part in retold_segment(segment, draw)]
    return plan._replace(segments=tuple(segments[k] for k in draw.permutation(len(segments))))


def ends_of(plan):
    """Where the source begins and ends, as far as the driver knows: beyond that kernels read nothing."""
    program = _kernels.Program(np.array(plan.encode(), np.int64))
    return program.low, program.high


class Retelling:
    """What becomes of plans: they stay as they are without a `draw`."""

    def __init__(self, draw):
        self.draw = draw
        self.retold = retold
        self.last = ()
        self.kinds = {}

    def result_of(self, call, draw, num_threads=1):
        """A call, planned anew; from its second time on, no byte beside its result may be written."""
        self.draw = draw
        forget()
        kind = call.name, call.x.shape, call.arguments.get("data_format")
        if kind not in self.kinds:
            found = result_of(call, num_threads)
            self.kinds[kind] = found.shape, found.dtype
            return found
        shape, dtype = self.kinds[kind]
        size = int(np.prod(shape)) * dtype.itemsize
        memory = np.full(size + 2 * BESIDE, 0xA5, np.uint8)
        out = memory[BESIDE : BESIDE + size].view(dtype).reshape(shape)
        result_of(call, num_threads, out=out)
        beside = np.concatenate([memory[:BESIDE], memory[BESIDE + size :]])
        assert (beside == 0xA5).all(), f"{call.name}: bytes beside the result\n{self}"
        return out

    def planner(self, make):
        def planned(problem, *, tiles):
            plan = make(problem, tiles=tiles)
            self.last = plan, plan if self.draw is None else self.retold(plan, self.draw)
            assert ends_of(self.last[0]) == ends_of(self.last[1]), f"what is read of the source\n{self}"
            return self.last[1]

        return planned

    def __str__(self):
        return "\n".join(map(str, self.last))


def forget():
    for name in operators.__all__:
        getattr(operators, f"_{name}").clear()
    operators.program_of.cache_clear()


@pytest.fixture
def retelling(monkeypatch):
    retelling = Retelling(None)
    monkeypatch.setattr(operators, "plan_depth", retelling.planner(_plan.plan_depth))
    monkeypatch.setattr(operators, "plan_batch", retelling.planner(_plan.plan_batch))
    yield retelling
    forget()


def in_memory(x, draw):
    """The same values, some axes backwards."""
    back = tuple(slice(None, None, -1 if draw.random() < 0.3 else 1) for _ in x.shape)
    return np.ascontiguousarray(x[back])[back]


@pytest.mark.thread_unsafe(reason="changes how plans are made")
@pytest.mark.parametrize("streams", [False, True], ids=["in the caches", "past the caches"])
@pytest.mark.parametrize("part", range(PARTS))
def test_recorded_calls_told_in_other_words(monkeypatch, retelling, rng, streams, part):
    if streams:  # as if results were large
        monkeypatch.setattr(_plan, "_STREAM_BYTES", ((0, 256),))
    right = recorded()
    for call in CALLS[part::PARTS]:
        for num_threads in (1, 2):
            x = in_memory(call.x, rng)
            found = digest(retelling.result_of(call._replace(x=x), rng, num_threads))
            assert found == right[call.name], f"{call.name}, {x.strides}\n{retelling}"


@pytest.mark.thread_unsafe(reason="changes how plans are made")
@pytest.mark.parametrize("part", range(PARTS))
def test_drawn_calls_told_in_other_words(retelling, rng, part):
    calls = [Call(*call) for call in recorded_plans.named_calls() if call[0].startswith("drawn")]
    for call in (call for call in calls[part::PARTS] if call.x.nbytes < 1 << 18):
        if call.x.dtype.kind == "f":
            call.x[...] = rng.integers(-999, 999, call.x.shape) / 8
        else:
            call.x[...] = rng.integers(0, 256, (*call.x.shape, call.x.itemsize), np.uint8).view(call.x.dtype)[..., 0]
        plain = retelling.result_of(call, None)
        assert retelling.last[0] == retelling.last[1]
        found = retelling.result_of(call, rng)
        np.testing.assert_array_equal(found.view(np.uint8), plain.view(np.uint8), f"{call.name}\n{retelling}")


@pytest.mark.thread_unsafe(reason="changes how plans are made")
@pytest.mark.parametrize("num_threads", [1, 2])
@pytest.mark.parametrize("planes", [False, True])
def test_tables_by_channel_told_in_other_words(retelling, rng, planes, num_threads):
    """Tasks begin at any row, and so at any table: their number does not divide what is written."""
    call = next(call for call in CALLS if call.name == "preprocess table, large")
    call = call._replace(x=call.x[:, :514, :510])
    if planes:
        call = call._replace(arguments={**call.arguments, "data_format": "NCHW"})
    plain = retelling.result_of(call, None)
    for _ in range(40):
        np.testing.assert_array_equal(retelling.result_of(call, rng, num_threads), plain, str(retelling))


@pytest.mark.thread_unsafe(reason="changes how plans are made")
def test_recorded_calls_told_forty_times_over(retelling, rng):
    """There is room for as many parts as a table has."""
    retelling.retold = lambda plan, draw: plan._replace(segments=plan.segments * 40)
    right = recorded()
    for call in CALLS:
        if call.x.nbytes < 1 << 16:
            assert digest(retelling.result_of(call, rng)) == right[call.name], f"{call.name}\n{retelling}"


def placed(shape, dtype, offset):
    """Poisoned memory so many bytes behind the start of a line."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.full(size + 128, 0xA5, np.uint8)
    start = -memory.ctypes.data % 64 + offset
    return memory[start : start + size].view(dtype).reshape(shape)


@pytest.mark.skipif(not (_kernels.tile_means() or [0, False])[1], reason="no streams on this instruction set")
@pytest.mark.thread_unsafe(reason="changes how plans are made")
@pytest.mark.parametrize("to_depth", [True, False])
def test_streams_told_in_other_words(monkeypatch, retelling, rng, to_depth):
    """Every tenth has a whole line for each index; into results that begin at a line, and into others."""
    monkeypatch.setattr(_plan, "_STREAM_BYTES", ((0, 256),))
    name = "space_to_depth" if to_depth else "depth_to_space"
    seen = set()
    for k in range(160):
        dtype = rng.choice(["i1", "i2", "i4", "f8"])
        source, target = ("NHWC", "NCHW")[k % 2], ("NHWC", "NCHW", "NCHW_VECT_C")[k % 3]
        channels, block = 4 * int(rng.choice([1, 2, 3, 8, 16])), int(rng.choice([1, 2]))
        size = int(rng.choice([16, 32, 33, 48]))
        if k % 10 == 3:
            source, target, block = "NCHW", "NCHW", 2
            dtype, channels, size = ("f8", 8, 16) if to_depth else ("i1", 32, 32)
        shape = (1, size, 2 * size, channels) if source == "NHWC" else (1, channels, size, 2 * size)
        if to_depth and size % block:
            continue
        x = rng.integers(-99, 99, shape).astype(dtype)
        arguments = {"block_size": block, "data_format": source, "out_format": target,
                     "vect": int(rng.choice([4, 32]))}  # fmt: skip
        right = getattr(reference, name)(x, **arguments)
        retelling.draw = rng if k % 5 else None
        forget()
        out = placed(right.shape, x.dtype, 0 if k % 4 else 8 * int(rng.integers(1, 8)))
        getattr(s2dq, name)(x, **arguments, out=out, num_threads=1)
        np.testing.assert_array_equal(out, right, f"{name}, {x.shape}, {arguments}\n{retelling}")
        seen |= {box.stream for segment in retelling.last[1].segments for box in segment.boxes}
    assert {_plan.SEQUENCE, 1} <= seen and len(seen) > 5


@pytest.mark.thread_unsafe(reason="changes how plans are made")
def test_other_words_are_other_programs(retelling, rng):
    told = []
    for call in CALLS[::9]:
        retelling.result_of(call, rng)
        told.append(retelling.last[0] != retelling.last[1])
    assert sum(told) > len(told) // 2

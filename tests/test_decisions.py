"""What the driver decides between the plan and the kernels: none of it changes a byte, so no other test sees it.

What it finds out about a program is recorded in `decisions.json`, for each instruction set and both habits of
processors; `python tests/test_decisions.py` records those of this machine anew. What depends on sizes alone is written
down here.
"""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import s2dq
from drawn_problems import drawn_problem
from guarded import run_child
from recorded_plans import MEANS, plan_of, problem_of
from s2dq import _kernels
from s2dq._plan import Box, Plan, Segment, X, Y
from s2dq._tiles import Axis
from s2dq.operators import SLACK

FILE = Path(__file__).with_name("decisions.json")
INDICES = (
    *range(200),
    # Of 1 to 4 MiB, read from one end to the other, which processors follow differently.
    351, 381, 1205, 1318, 1466, 1544, 1780, 1930, 1955, 2216, 2223, 2319, 2334, 2345, 2514, 2727, 2919, 3070, 3082,
    3197, 3228, 3322, 3432, 3729, 4005, 4309, 4418, 4456, 4670, 4720, 4961, 5722, 6054, 6164, 6220, 6716, 6807, 6846,
    6950, 7092,
)  # fmt: skip
ROW_SIZES = [  # 1 KiB of the result for each of `rows`
    ("space_to_depth", "nhwc", {"block_size": 2}),
    ("space_to_depth", "nhwc", {"block_size": (1, 2), "mode": "CRD"}),
    ("pack_vect_c", "nhwc", {"data_format": "NHWC", "vect": 4}),
    ("depth_to_space", "deep", {"block_size": 2}),
    ("depth_to_space", "deep", {"block_size": 2, "out_format": "NCHW"}),
    ("depth_to_space", "deep", {"block_size": (1, 2), "mode": "CRD"}),
    ("space_to_depth", "nchw", {"block_size": (1, 2), "data_format": "NCHW"}),
]
SHAPES = {"nhwc": (1, -1, 256, 4), "deep": (1, -1, 64, 16), "nchw": (1, 1, -1, 1024)}
FAR_ROWS = [(1, 64, 8192, 4), (1, 64, 8196, 4)]  # a tile reads two of them, 32 KiB apart and a little more
TOGETHER = 10  # problems of a digest
TEAMS = (1, 2, 3, 8)
KIB, MIB = 1 << 10, 1 << 20
pytestmark = pytest.mark.thread_unsafe(reason="changes what the kernels know of the processor")


def decided(program):
    """Of a program: what was chosen, and tasks for some teams."""
    return program.chosen(), [program.tasks(team) for team in TEAMS]


def program_of(plan):
    return _kernels.Program(np.array(plan.encode(), np.int64))


def problems():
    for index in INDICES:
        yield drawn_problem(index)[0]
    for operator, layout, arguments in ROW_SIZES:
        for rows in (KIB - 2, KIB, 8 * KIB - 2, 8 * KIB):  # the limits, and one block less
            shape = [rows if extent < 0 else extent for extent in SHAPES[layout]]
            yield problem_of(operator, np.empty(shape, np.uint8), arguments)
    for shape in FAR_ROWS:
        for x in (np.empty(shape, np.uint8), np.empty(shape, np.uint8)[:, ::-1]):
            yield problem_of("space_to_depth", x, {"block_size": 2})
    for rows in (127, 128):  # networks, of nearly and of just a MiB
        yield problem_of("pack_vect_c", np.empty((1, 64, rows, 128), np.uint8), {"vect": 32})


def digests():
    """Of the problems as the kernels at hand would have them planned, ten at a time."""
    found = []
    plans = [plan_of(problem, MEANS[_kernels.isa()]) for problem in problems()]
    try:
        for start in range(0, len(plans), TOGETHER):
            digest = hashlib.sha256()
            for plan in plans[start:start + TOGETHER]:
                for follows in (False, True):
                    for across in range(3):
                        _kernels.pretend_habits(follows, across)
                        digest.update(repr(decided(program_of(plan))).encode())
            found.append(digest.hexdigest()[:12])
    finally:
        _kernels.pretend_habits()
    return found


def test_decisions_are_the_recorded_ones():
    known = json.loads(FILE.read_text()).get(_kernels.isa())
    found = digests()
    assert len(set(found)) == len(found)
    if known is None:
        pytest.skip(f"nothing is recorded for {_kernels.isa()}")
    others = [k * TOGETHER for k, (then, now) in enumerate(zip(known, found, strict=True)) if then != now]
    assert not others, f"decided in another way than recorded: of the {TOGETHER} problems from each of {others} on"


@pytest.mark.parametrize("operator, shape, arguments", [
    ("pack_vect_c", (1, 64, 16, 64), {"vect": 32}),  # a network, where there are some
    ("space_to_depth", (1, 64, 64, 3), {"block_size": 2, "out_format": "NCHW"}),
    ("space_to_depth", (1, 2, 300, 600), {"block_size": (1, 2), "data_format": "NCHW"}),
])  # fmt: skip
def test_a_program_has_room_for_all_of_its_parts(operator, shape, arguments):
    problem = problem_of(operator, np.zeros(shape, np.int8), arguments)
    plan = plan_of(problem, MEANS[_kernels.isa()])
    count, scratch, *segments = plan.encode()
    alone = program_of(plan)
    many = _kernels.Program(np.array([500 * count, scratch, *500 * segments], np.int64))
    (*reach, boxes), (*all_reach, all_boxes) = alone.chosen(), many.chosen()
    assert many.nbytes == 500 * alone.nbytes and all_reach == reach
    assert all_boxes == 500 * all_boxes[:len(boxes)]
    (rows, total), (all_rows, all_total) = alone.tasks(1), many.tasks(1)
    assert len(all_rows) == 500 * len(rows) and all_total >= total


# ------------------------------------------------------------------------------------------------- cutting work


def rows_of(count, row_bytes):
    """A program that copies so many rows with so many bytes each."""
    head = [1, 0, 1, 1, count, 2 * row_bytes, row_bytes, 0, 0, 0]
    return _kernels.Program(np.array([*head, 0, 1, 0, 0, row_bytes, 0, 0, 0, 0, 0, 0], np.int64))


@pytest.mark.parametrize("nbytes, team, size", [
    (64 * KIB, 1, 64 * KIB), (32 * MIB, 1, 8 * MIB),  # from the least to the most a task should write
    (4 * MIB, 1, 4 * MIB), (4 * MIB, 2, 512 * KIB), (4 * MIB, 8, 128 * KIB),  # four tasks for each thread
    (256 * KIB, 2, 64 * KIB), (1 << 30, 2, 8 * MIB),
])  # fmt: skip
def test_tasks_are_so_large(nbytes, team, size):
    ((rows, first),), count = rows_of(nbytes // KIB, KIB).tasks(team)
    assert (rows * KIB, first, count) == (size, 0, -(-nbytes // size))
    if nbytes >= 4 * MIB:  # rows that do not fit evenly
        ((rows, first),), count = rows_of(nbytes // KIB, KIB + 1).tasks(team)
        whole = nbytes // KIB * (KIB + 1)
        assert rows == min(max(whole // (4 * team if team > 1 else 1), 64 * KIB), 8 * MIB) // (KIB + 1)
        assert count == -(-(nbytes // KIB) // rows)


def rows_of_boxes(rows, *widths):
    """A program that moves the bytes of each box to those of the next one, from the last on; of one array."""
    starts = [sum(widths[:k]) for k in range(len(widths) + 1)]
    boxes = [Box(X, Y, start, start + width, width, ()) for start, width in zip(starts, widths)]
    step = starts[-1] + widths[-1]
    return program_of(Plan((Segment((Axis(rows, step, step),), tuple(boxes[::-1])),), 0))


@pytest.mark.parametrize("widths, boxes, team", [
    ((4 * MIB, 4 * MIB), 1, 2), ((4 * MIB, 4 * MIB + 1), 2, 1), ((8 * MIB + 1,), 1, 2), ((64, 6 * MIB, 6 * MIB), 3, 1),
])  # fmt: skip
def test_rows_of_more_than_8_mib_are_run_box_by_box(widths, boxes, team):
    """... by one thread, each of them once; a row of one box is a task like others."""
    rows = 3
    program = rows_of_boxes(rows, *widths)
    assert [program.tasks(size)[1] for size in TEAMS] == [rows * boxes] * len(TEAMS)
    starts = np.cumsum([0, *widths, widths[-1]])
    out = np.zeros((rows, starts[-1]), np.uint8)
    for k, start in enumerate(starts[:-1]):
        out[:, start:] = k + 1
    expected = out.copy()
    for start, end, width in zip(starts[:-2], starts[1:-1], widths):
        expected[:, end:end + width] = out[:, start:start + width]
    _kernels.run(program, out, out, bytes(8) + SLACK, None, 2)
    assert _kernels.last_team_size() == min(team, _kernels.team_of(rows * sum(widths), 2))
    assert np.array_equal(out, expected)


@pytest.mark.parametrize("done, tasks, nbytes, glance, looks", [
    (0, 1, MIB, 1, False), (0, 4, 4 * MIB, 1, True),  # a look at the clock for every MiB of the result
    (3, 64, 4 * MIB, 16, True), (0, 16, MIB, 16, False), (0, 17, 17 * 64 * KIB, 16, True),
    (0, 1, 100 * MIB, 1, False), (2, 10, 100 * MIB, 1, True), (0, 10, 3, MIB, False),
])  # fmt: skip
def test_the_clock_is_looked_at_so_often(done, tasks, nbytes, glance, looks):
    found, left, stop = _kernels.shift_of(done, tasks, nbytes, 2)
    assert (found, stop) == (glance, tasks)
    assert 0 < left <= 30_000_000 if looks else left == 0


@pytest.mark.parametrize("size, milliseconds, most", [(64 * KIB, 1, 32), (MIB, 10, 3), (10 * MIB, 10, 3)])
def test_tasks_of_any_size_wait_for_signals(size, milliseconds, most):
    """Tasks that are run before the clock is looked at are too many by less than a MiB."""
    assert 1 <= _kernels.tasks_of_shift(1000, 1000 * size, milliseconds * 1_000_000) <= most


@pytest.mark.parametrize("nbytes, width, team, part", [
    (64 * KIB, 1, 1, 64 * KIB), (MIB, 4, 1, 64 * KIB), (MIB, 4, 2, 32 * KIB), (1 << 30, 4, 2, 512 * KIB),
    (MIB, 1, 3, 87360), (4 * MIB, 2, 8, 64 * KIB),
])  # fmt: skip
def test_parts_of_a_conversion_are_whole_lines(nbytes, width, team, part):
    assert _kernels.conversion_part(nbytes, width, team) == part and part % 64 == 0


@pytest.mark.parametrize("mode, trios", [
    ("DCR", 2),  # the first word is of the first row, the last one of the second, the other one half and half
    ("focus", 0),  # all of them are of both rows
])  # fmt: skip
def test_words_of_two_rows_are_made_together(mode, trios):
    x = np.zeros((1, 32, 64, 3), np.uint8)
    arguments = {"block_size": 2, "data_format": "NHWC", "mode": mode, "out_format": "NCHW_VECT_C"}
    program = program_of(plan_of(problem_of("space_to_depth", x, arguments), MEANS[_kernels.isa()]))
    found = {box[-1] for box in program.chosen()[3] if len(box) > 7}  # of tiles
    if _kernels.isa() == "avx2":
        assert found == {trios}
    else:
        assert found <= {-1}, "steps are of this instruction set alone"


@pytest.mark.parametrize("operator, shape, arguments", [
    ("space_to_depth", (4, 1200, 1600, 3), {"block_size": 2}),
    ("space_to_depth", (1, 1, 4096, 8192), {"block_size": (1, 2), "data_format": "NCHW"}),
    ("pack_vect_c", (1, 64, 512, 512), {"vect": 4}),
    ("space_to_depth", (1, 2, 300, 600), {"block_size": (1, 2), "data_format": "NCHW"}),  # too little for it
])  # fmt: skip
def test_each_task_waits_for_what_went_past_the_caches(operator, shape, arguments):
    x = np.zeros(shape, np.int8)
    out = getattr(s2dq, operator)(x, **arguments)
    program = program_of(plan_of(problem_of(operator, x, arguments), MEANS[_kernels.isa()]))
    past = program.chosen()[2]
    assert past == (_kernels.isa() == "avx512vbmi" and out.nbytes > 10 * MIB)
    for threads in (1, 2):
        fences = _kernels.fences_of(program, x, out, bytes(8) + SLACK, threads)
        assert fences == (program.tasks(_kernels.last_team_size())[1] if past else 0)


# --------------------------------------------------------------------------------------------------- who works

def tell_when_a_call_gets_a_team():
    import time

    import numpy as np

    import s2dq
    from s2dq import _kernels

    kib, mib = 1 << 10, 1 << 20
    _kernels.pretend_processors(4)
    _kernels.set_quota(0)

    def teams(threads, *sizes):
        return [_kernels.team_of(size, threads) for size in sizes]

    asked = teams(3, 256 * kib - 1, 256 * kib, mib)
    assert asked == [1, 3, 3], asked
    time.sleep(0.05)  # asleep: those so large that they do not mind, and nobody else
    asleep = teams(0, 256 * kib, mib - 1, mib, 256 * mib - 1, 256 * mib, 257 * mib)
    assert asleep == [1, 1, 1, 1, 4, 4], asleep
    x = np.zeros((1, 1024, 1024, 1), np.uint8)
    out = s2dq.space_to_depth(x, 2)
    for _ in range(20):  # a call of 1 MiB wakes it for a millisecond
        s2dq.space_to_depth(x, 2, out=out)
        awake = teams(0, 256 * kib, mib - 1, mib, 256 * mib - 1, 256 * mib)
        if awake == [1, 1, 4, 4, 4]:
            break
    else:
        raise AssertionError(awake)
    small = np.zeros((1, 1008, 1024, 1), np.uint8)
    time.sleep(0.05)
    out = s2dq.space_to_depth(small, 2)
    s2dq.space_to_depth(small, 2, out=out)  # one of less does not
    assert teams(0, mib) == [1]
    s2dq.set_num_threads(2)
    time.sleep(0.05)
    asked = teams(0, 256 * kib - 1, 256 * kib, mib)  # by the setter, as for this call
    assert asked == [1, 2, 2], asked
    print("decided")


@pytest.mark.skipif(not _kernels.build_info()[1], reason="no OpenMP, no teams")
def test_when_a_call_gets_a_team():
    assert run_child(tell_when_a_call_gets_a_team, env={"OMP_NUM_THREADS": "4"}) == "decided\n"


def tell_the_size_of_a_team_that_openmp_makes():
    import numpy as np

    import s2dq
    from s2dq import _kernels

    _kernels.pretend_processors(64)
    _kernels.set_quota(0)
    x = np.arange(1 << 22, dtype=np.uint8).reshape(1, 2048, 2048, 1)
    assert np.array_equal(s2dq.space_to_depth(x, 2, num_threads=64), s2dq.space_to_depth(x, 2, num_threads=1))
    s2dq.space_to_depth(x, 2, num_threads=64)
    print(_kernels.last_team_size())


@pytest.mark.skipif(not _kernels.build_info()[1], reason="no OpenMP, no teams")
@pytest.mark.skipif((os.cpu_count() or 64) >= 64, reason="OpenMP makes as many threads as are asked for")
def test_teams_are_as_large_as_openmp_makes_them():
    settings = {"OMP_NUM_THREADS": "64", "OMP_DYNAMIC": "true"}
    assert 1 <= int(run_child(tell_the_size_of_a_team_that_openmp_makes, env=settings)) <= os.cpu_count()


def test_recent_calls_have_places_of_their_own():
    shapes = [(3,), (1, 224, 224, 3), (1, 3, 224, 224), (1, 640, 640, 3), (8, 56, 56, 64), (1, 2, 3, 4, 5, 6), ()]
    assert [_kernels.recent_place(np.empty(shape, np.uint8)) for shape in shapes] == [34, 60, 15, 7, 25, 11, 0]
    many = [(n, size, size, c) for n in (1, 8, 32) for size in (7, 14, 28, 56, 112, 224) for c in (3, 16, 64, 256)]
    assert len({_kernels.recent_place(np.broadcast_to(np.uint8(0), shape)) for shape in many}) >= 40  # of 64


@pytest.mark.parametrize("nbytes, handler", [
    (256 * KIB - 64, "default_allocator"), (256 * KIB, "s2dq lines"),
    (32 * MIB - 64, "s2dq lines"), (32 * MIB, "s2dq"),
])  # fmt: skip
def test_where_results_get_their_memory(nbytes, handler):
    x = np.zeros((1, 2, nbytes // 2, 1), np.uint8)
    s2dq.space_to_depth(x, 2)
    result = s2dq.space_to_depth(x, 2)
    assert result.nbytes == nbytes and np._core.multiarray.get_handler_name(result) == handler


if __name__ == "__main__":
    found = json.loads(FILE.read_text()) if FILE.exists() else {}
    if "S2DQ_ISA" in os.environ:
        print(json.dumps(digests()))
    else:
        for isa in _kernels.available_isas():
            done = subprocess.run([sys.executable, __file__], env=os.environ | {"S2DQ_ISA": isa}, check=True,
                                  capture_output=True, text=True)  # fmt: skip
            found[isa] = json.loads(done.stdout)
        FILE.write_text(json.dumps(found, indent=1) + "\n")

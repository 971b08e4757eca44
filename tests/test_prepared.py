"""Prepared calls, run through the pointer that their plan shows: what Cython code runs, without a compiler.

`test_cython_users.py` has what needs one: other modules, their GIL and threads, signals, guard pages.
"""

import ctypes
import gc
import sys

import numpy as np
import pytest

import recorded_plans
import s2dq
from guarded import SANITIZED, run_child
from prepared import Plan, prepared_of
from recorded import all_calls, digest, recorded
from s2dq import _kernels, _lookup, _threads
from s2dq._plan import Means, plan_depth
from s2dq.kernels import prepare

# They hold the GIL, and raise what the call has set.
RUN = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)
pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi))
CALLS = [call for call in all_calls() if "quantize" not in call.function]


def run(prepared, x, num_threads):
    """The result, from poisoned memory with more of it at both ends."""
    capsule = prepared.__s2dq_plan__
    place = pointer_of(capsule, b"s2dq.plan")
    plan = Plan.from_address(place)
    assert (plan.version, plan.oldest) == (1, 1)
    assert (plan.x_low, plan.x_high, plan.out_bytes) == (prepared.x_low, prepared.x_high, prepared.nbytes)
    memory = np.full(prepared.nbytes + 128, 0xA5, np.uint8)
    assert RUN(plan.run)(place, x.ctypes.data, memory[61:].ctypes.data, num_threads) == 0
    assert (memory[:61] == 0xA5).all() and (memory[61 + prepared.nbytes :] == 0xA5).all()
    return np.ndarray(prepared.shape, prepared.dtype, memory, 61)


@pytest.fixture
def most():
    """The largest team of two: OpenMP may have fewer threads, or there is none."""
    _kernels.pretend_processors(8)
    _kernels.set_quota(0)
    s2dq.set_num_threads(2)
    yield s2dq.get_num_threads()
    s2dq.set_num_threads(None)
    _kernels.pretend_processors(0)
    _kernels.set_quota(_threads._quota)


@pytest.mark.parametrize("part", range(12))
def test_recorded_calls_give_what_is_recorded(part):
    right = recorded()
    for call in CALLS[part::12]:
        prepared = prepared_of(call)
        assert (prepared.x_shape, prepared.x_strides) == (call.x.shape, call.x.strides)
        assert prepared.x_dtype == call.x.dtype
        assert digest(run(prepared, call.x, 1)) == right[call.name], call.name
        assert _kernels.last_team_size() == 1, call.name


@pytest.mark.thread_unsafe(reason="sets the number of threads")
def test_a_team_runs_what_is_recorded(most):
    right, teams = recorded(), set()
    for call in CALLS:
        if call.x.nbytes >= 1 << 19:
            assert digest(run(prepared_of(call), call.x, 2)) == right[call.name], call.name
            teams.add(_kernels.last_team_size())
    assert teams == {most}


@pytest.mark.thread_unsafe(reason="sets the number of threads")
@pytest.mark.parametrize(("given", "wanted", "team"), [
    (None, 0, 2), (None, 1, 1), (None, 2, 2), (2, 0, 2), (2, 1, 1), (1, 0, 1), (1, 2, 2)])  # fmt: skip
def test_number_of_threads(most, rng, given, wanted, team):
    """Of the run, else of the call, else of the setter."""
    x = rng.integers(-128, 128, (1, 1024, 1024, 4), np.int8)
    prepared = prepare(s2dq.space_to_depth, x, 2, num_threads=given)
    assert prepared.num_threads == (given or 0)
    np.testing.assert_array_equal(run(prepared, x, wanted), s2dq.space_to_depth(x, 2))
    s2dq.space_to_depth(x, 2, num_threads=3 - team)
    run(prepared, x, wanted)
    assert _kernels.last_team_size() == min(team, most)


@pytest.mark.thread_unsafe(reason="sets the number of threads")
def test_small_calls_have_no_team(most):
    large, small = np.zeros((1, 1024, 1024, 4), np.int8), np.zeros((1, 4, 4, 3), np.int8)
    prepared = prepare(s2dq.space_to_depth, small, 2)
    for call in (lambda: run(prepared, small, 2), lambda: s2dq.space_to_depth(small, 2, num_threads=2),
                 lambda: s2dq.quantize(np.zeros(3, np.float32), 1.0, 0, num_threads=2)):  # fmt: skip
        s2dq.space_to_depth(large, 2, num_threads=2)
        assert _kernels.last_team_size() == most
        call()
        assert _kernels.last_team_size() == 1


@pytest.mark.parametrize(("shape", "arguments"), [
    ((1, 0, 2, 1), {"paddings": [[2, 0], [0, 2]], "pad_value": 7}),  # nothing but fill
    ((0, 4, 4, 1), {}), ((1, 4, 4, 0), {})])  # fmt: skip
def test_nothing_to_read(shape, arguments):
    x = np.empty(shape, np.int8)
    prepared = prepare(s2dq.space_to_depth, x, 2, **arguments)
    assert (prepared.x_low, prepared.x_high) == (0, 0)
    np.testing.assert_array_equal(run(prepared, x, 1), s2dq.space_to_depth(x, 2, **arguments), strict=True)


def test_capsules_keep_their_call(rng):
    x = rng.integers(-128, 128, (1, 4, 4, 3), np.int8)
    prepared = prepare(s2dq.space_to_depth, x, 2)
    before = sys.getrefcount(prepared)
    capsules = [prepared.__s2dq_plan__ for _ in range(5)]
    assert sys.getrefcount(prepared) == before + 5
    del capsules
    assert sys.getrefcount(prepared) == before


def print_growth(maker, times, arguments):
    """Bytes by which the address space is larger behind so many turns more."""
    import gc

    import test_prepared
    from guarded import address_space

    work = getattr(test_prepared, maker)(*arguments)
    for _ in range(times // 4):
        work()
    gc.collect()
    before = address_space()
    for _ in range(times):
        work()
    print(address_space() - before)


def growth(maker, times, *arguments):
    """In a process of its own: what others have freed would hide what is lost."""
    return int(run_child(print_growth, maker.__name__, times, arguments))


def call_with_scratch():
    x = np.arange(64 * 512 * 9, dtype=np.int8).reshape(1, 64, 512, 9)
    prepared = prepare(s2dq.space_to_depth, x, 2, out_format="NCHW_VECT_C")
    return lambda: run(prepared, x, 1)


def long_program(is_prepared, segments, scratch, fill=bytes(64)):
    copy = [0, 1, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]  # one byte, from the start of X to that of Y
    program = _kernels.Program(np.array([segments, scratch, *copy * segments], np.int64))
    x, out = np.zeros(1, np.int8), np.zeros(1, np.int8)
    if is_prepared:
        prepared = _kernels.PreparedCall(x, out, program, fill, None, 1)
        return lambda: run(prepared, x, 1)
    return lambda: _kernels.run(program, x, out, fill, None, 1)


@pytest.mark.parametrize("is_prepared", [False, True])
def test_fill_values_have_room_behind_them(is_prepared):
    """Kernels read them in whole registers."""
    long_program(is_prepared, 1, 0, bytes(64))()
    with pytest.raises(ValueError, match="^fill: 63 bytes have no room for 64 behind the values"):
        long_program(is_prepared, 1, 0, bytes(63))()


AXIS = [2, 1, 1, 0, 0, 0]


def table_of(kind, count=8000):
    """A table of `count` parts, none of which moves anything that counts."""
    box = [0, 1, 0, 0, 1, 0, 0, 0, 0, 0]
    if kind == "segments":
        return [count, 0, *[0, 0] * count]
    if kind == "boxes":
        return [1, 0, 0, count, *[*box, 0] * count]
    return [1, 0, 0, 1, *box[:9], count, *AXIS * count, 0]


def new_programs(kind):
    table = np.array(table_of(kind), np.int64)
    return lambda: _kernels.Program(table)


def new_lookups():
    program = _kernels.Program(np.array(table_of("boxes"), np.int64))
    lookup = _lookup.lookup_of(np.arange(256, dtype=np.uint8)[np.newaxis])
    return lambda: _kernels.Lookups(program, bytes(64), *lookup)


def new_tiles():
    """Of a preprocessor: every instruction set but the portable one has some for it."""
    means = _kernels.tile_means()
    settings = {"scale": 0.5, "pad_value": (1, 2, 3), "size": 8, "block_size": 2}
    problem = recorded_plans.problem_of("preprocess", np.zeros((1, 8, 8, 3), np.uint8), settings)
    plan = plan_depth(problem, tiles=None if means is None else Means(*means))
    table = np.array(plan.encode(), np.int64)
    return lambda: _kernels.Program(table)


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.skipif(SANITIZED, reason="a sanitizer holds back memory that was freed")
@pytest.mark.parametrize(("maker", "times", "arguments"), [
    (call_with_scratch, 200, ()),
    (long_program, 100, (False, 20_000, 1)),
    (long_program, 100, (False, 1, 1 << 20)),
    (long_program, 100, (True, 20_000, 1)),
    (long_program, 100, (True, 1, 1 << 20)),
    *((new_programs, 100, (kind,)) for kind in ("segments", "boxes", "axes")),
    (new_lookups, 100, ()),
    (new_tiles, 20_000, ()),
])  # fmt: skip
def test_memory_is_given_back(maker, times, arguments):
    """Of programs, which have room for all that a table can hold, and of their runs."""
    assert growth(maker, times, *arguments) < 1 << 20


@pytest.mark.thread_unsafe(reason="empties a cache")
def test_tables_are_kept_as_long_as_the_call():
    """Whoever made them is gone, and what they lay in would be somebody else's."""
    right = recorded()
    calls = [call for call in CALLS if call.function == "preprocess"]
    for call in calls:
        prepared = prepared_of(call)
        planes = prepare(s2dq.Preprocessor(**{**call.arguments, "data_format": "NCHW"}), call.x)
        in_planes = digest(run(planes, call.x, 1))
        _lookup._best.cache_clear()
        gc.collect()
        others = [np.full(size, 0x77, np.uint8) for size in range(32, 1057, 32) for _ in range(40)]
        assert digest(run(prepared, call.x, 1)) == right[call.name], call.name
        assert digest(run(planes, call.x, 1)) == in_planes, call.name
        del others
    assert len(calls) > 8

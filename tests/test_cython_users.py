"""Cython code of others: compiled against what is installed, it runs prepared calls and gets the operators' bytes."""

import ctypes
import gc
import importlib.util
import os
import pickle
import re
import shutil
import subprocess
import sys
import sysconfig
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import s2dq
from guarded import GIL, PATIENCE, run_child, usual_delay
from prepared import Plan
from s2dq import _kernels
from s2dq.kernels import PreparedCall, prepare

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "cython_user"
PAGE = ROOT / "docs" / "cython.md"
COMPILER = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cl").split()[0]
ON_LINUX = sys.platform == "linux"
LIMIT = 0.3  # seconds from a signal to its exception
# With OpenMP where it is sure to be there; elsewhere the loop of `move_each` runs on one thread.
SETUP = """\
from setuptools import Extension, setup

openmp = {openmp}
setup(ext_modules=[Extension("cython_user", ["cython_user.pyx"], extra_compile_args=openmp, extra_link_args=openmp)])
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the example and `cython_user.pyx` are, compiled in processes of their own."""
    pytest.importorskip("Cython")
    pytest.importorskip("setuptools")
    if not shutil.which(COMPILER) or not Path(sysconfig.get_path("include"), "Python.h").exists():
        pytest.skip("no C compiler, or no headers of Python")
    folder = tmp_path_factory.mktemp("cython_user")
    for path in [*EXAMPLE.glob("*.p*"), EXAMPLE / "setup.py", ROOT / "tests" / "cython_user.pyx"]:
        shutil.copy(path, folder)
    openmp = ["-fopenmp"] if ON_LINUX and "gcc" in COMPILER else []
    (folder / "setup_tests.py").write_text(SETUP.format(openmp=openmp))
    # The path is for an editable installation, which Cython does not find by itself.
    environment = {**os.environ, "PYTHONPATH": str(Path(s2dq.__file__).parents[1]), "CFLAGS": "-O1 -g0"}
    for script in ("setup.py", "setup_tests.py"):
        done = subprocess.run([sys.executable, "-P", script, "-q", "build_ext", "--inplace"], cwd=folder,
                              env=environment, capture_output=True, text=True, timeout=300 * PATIENCE)  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
    return folder


def module_in(folder, name):
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}{sysconfig.get_config_var('EXT_SUFFIX')}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def user(folder):
    return module_in(folder, "cython_user")


@pytest.fixture(scope="module")
def frame_ring(folder):
    return module_in(folder, "frame_ring")


def moved(user, prepared, x, num_threads=0, offset=0):
    """The result of a run on `x`, into poisoned memory with more of it at both ends."""
    memory = np.full(prepared.nbytes + 192, 0xA5, np.uint8)
    start = 64 + offset
    user.move(prepared, x.ctypes.data, memory[start:].ctypes.data, num_threads)
    assert (memory[:start] == 0xA5).all() and (memory[start + prepared.nbytes :] == 0xA5).all()
    return np.ndarray(prepared.shape, prepared.dtype, memory, start).copy()


RUN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)


class Foreign:
    """Shows what it is given as a plan."""

    def __init__(self, shown):
        self.__s2dq_plan__ = shown


def foreign(plan, name=b"s2dq.plan"):
    """Shows a plan that is not of s2dq, which has to be kept, and so has the name."""
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return Foreign(new(ctypes.addressof(plan), name, None))


def refused(kind, text, *arguments, **keywords):
    with pytest.raises(kind, match=re.escape(text)):
        prepare(*arguments, **keywords)


# ------------------------------------------------------------------------------------------------- right bytes


def print_wrong(folder, counts):
    """What differs from the record, of all recorded calls that move; in memory that ends where the plan says."""
    import ctypes
    import sys

    import numpy as np

    from guarded import Arena
    from prepared import prepared_of
    from recorded import all_calls, digest, recorded
    from s2dq import _kernels

    sys.path.insert(0, folder)
    import cython_user

    right, done, teams = recorded(), 0, set()
    sources, results = Arena(2**23), Arena(2**23)
    _kernels.pretend_processors(8)
    _kernels.set_quota(0)
    for call in all_calls():
        if "quantize" in call.function:
            continue
        prepared = prepared_of(call)
        size = prepared.x_high - prepared.x_low
        for end, count in (("low", counts[0]), ("high", counts[-1])):
            x, out = sources.place(size, "u1", end), results.place(prepared.nbytes, "u1", end)
            x[...] = np.frombuffer(ctypes.string_at(call.x.ctypes.data + prepared.x_low, size), "u1")
            cython_user.move(prepared, x.ctypes.data - prepared.x_low, out.ctypes.data, count)
            teams.add(_kernels.last_team_size())
            if digest(out.view(prepared.dtype).reshape(prepared.shape)) != right[call.name]:
                print("wrong", count, call.name)
            if not results.untouched_outside(out):
                print("touched", count, call.name)
        done += 1
    print(_kernels.isa(), done, *sorted(teams))


@pytest.mark.skipif(not ON_LINUX, reason="protects pages")
@pytest.mark.parametrize("isa", _kernels.available_isas())
def test_recorded_calls_give_what_is_recorded(folder, isa):
    """Between inaccessible pages: not a byte below `x_low` or from `x_high` on is read, none outside of `out` written.

    An x that ends anywhere lies at any address, and so does its result.
    """
    env = {"S2DQ_ISA": isa, "OMP_NUM_THREADS": "8", "OMP_DYNAMIC": "false"}
    output = run_child(print_wrong, str(folder), [1, 3], env=env, timeout=120)
    teams = "1 3" if _kernels.build_info()[1] else "1"
    found = re.fullmatch(rf"{re.escape(isa)} (\d+) {teams}\n", output)
    assert found and int(found[1]) > 100, output


DTYPES = ["bool", "int8", "<u2", ">i4", "float16", ">f8", "longdouble", "complex128", "datetime64[us]", "U3", "S5",
          "V3", "i2,f8,S3"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_plain_element_type(user, rng, dtype):
    """Of every stride, and at odd addresses."""
    dtype = np.dtype(dtype)
    raw = rng.integers(0, 2, 4 * 8 * 6 * 3 * dtype.itemsize + 1, np.uint8)
    x = np.ndarray((4, 8, 6, 3), dtype, raw, 1)
    for view in (x, x[::-1, :, ::-1], x[::2, :, 1:5], x[:, ::-2], np.broadcast_to(x[:1, :, :, 1:2], (2, 8, 6, 5))):
        for operator, arguments in ((s2dq.space_to_depth, (2, "NHWC")), (s2dq.space_to_batch_nd, ([2], [[1, 1]])),
                                    (s2dq.pack_vect_c, ("NHWC",))):
            if operator is s2dq.space_to_batch_nd and view.shape[1] % 2:
                continue
            prepared = prepare(operator, view, *arguments)
            assert (prepared.x_shape, prepared.x_strides, prepared.x_dtype) == (view.shape, view.strides, dtype)
            result = moved(user, prepared, view, offset=1)
            right = operator(view, *arguments)
            assert (result.shape, result.dtype, result.tobytes()) == (right.shape, right.dtype, right.tobytes())


@pytest.mark.parametrize(("operator", "x", "arguments", "keywords"), [
    (s2dq.depth_to_space, np.arange(2 * 3 * 5 * 24, dtype=np.int16).reshape(2, 3, 5, 24), ((2, 3),),
     {"mode": "CRD", "crops": [[1, 0], [0, 2]], "out_format": "NCHW"}),
    (s2dq.space_to_depth, np.arange(1 * 5 * 6 * 3, dtype=np.uint8).reshape(1, 5, 6, 3), (2,),
     {"paddings": [[0, 1], [2, 0]], "pad_value": 9, "out_format": "NCHW_VECT_C"}),
    (s2dq.space_to_batch, np.arange(30.0).reshape(2, 3, 5), ([1, 3], [[0, 0], [1, 0]]), {"pad_value": -1.5}),
    (s2dq.batch_to_space, np.arange(48).reshape(4, 3, 4), ([2, 2], [[1, 0], [0, 1]]), {}),
    (s2dq.unpack_vect_c, np.arange(48, dtype=np.int8).reshape(1, 2, 2, 3, 4), (), {"channels": 7}),
    (s2dq.Preprocessor(scale=0.5, pad_value=(1, 2, 3), size=8, block_size=2),
     np.arange(90, dtype=np.uint8).reshape(5, 6, 3), (), {}),
    (s2dq.Postprocessor(scale=1 / 255, size=4), np.arange(48, dtype=np.int8).reshape(1, 4, 4, 3), (),
     {"frame": (3, 2)}),
])
def test_arguments_of_every_operator(user, operator, x, arguments, keywords):
    right = operator(x, *arguments, **keywords)
    prepared = prepare(operator, x, *arguments, **keywords)
    assert type(prepared) is PreparedCall
    np.testing.assert_array_equal(moved(user, prepared, x), right, strict=True)
    assert user.fields(prepared) == (prepared.x_low, prepared.x_high, right.nbytes)
    assert repr(prepared) == f"<PreparedCall {x.shape} {x.dtype} -> {right.shape} {right.dtype}>"
    low, high = np.lib.array_utils.byte_bounds(x)
    assert low <= x.ctypes.data + prepared.x_low <= x.ctypes.data + prepared.x_high <= high


@pytest.mark.parametrize("shape, dtype", [((0, 4, 4, 1), "int8"), ((1, 4, 4, 0), "f8"), ((1, 4, 4, 3), "V0")])
def test_nothing_to_move(user, shape, dtype):
    prepared = prepare(s2dq.space_to_depth, np.empty(shape, dtype), 2)
    user.move(prepared, 0, 0, 0)  # null pointers, neither of which is followed
    assert (prepared.nbytes, prepared.x_high - prepared.x_low) == (0, 0)


def test_nothing_but_fill(user):
    """Paddings round no pixel at all."""
    x = np.empty((1, 0, 2, 1), np.int8)
    prepared = prepare(s2dq.space_to_depth, x, 2, paddings=[[2, 0], [0, 0]], pad_value=7)
    assert moved(user, prepared, x).tolist() == [[[[7] * 4]]]


def test_a_tensor_of_another_library_describes_the_layout(user):
    x = np.arange(32, dtype=np.int8).reshape(1, 4, 4, 2)
    for like in (memoryview(x), type("Shown", (), {"__array_interface__": x.__array_interface__})()):
        np.testing.assert_array_equal(moved(user, prepare(s2dq.space_to_depth, like, 2), x), s2dq.space_to_depth(x, 2))


# ------------------------------------------------------------------------------------------ threads and the GIL


def large(rng):
    return rng.integers(-128, 128, (1, 512, 1024, 4), np.int8)  # 2 MiB


def test_team_sizes(user, rng):
    """Of the run, else of `prepare`, else of the setter."""
    x = large(rng)
    right, most = s2dq.space_to_depth(x, 2), min(2, s2dq.get_num_threads())
    for given, wanted, expected in ((1, 0, 1), (1, 2, most), (2, 0, most), (2, 1, 1), (2, -3, most), (None, 1, 1),
                                    (None, 2, most)):
        prepared = prepare(s2dq.space_to_depth, x, 2, num_threads=given)
        assert prepared.num_threads == (given or 0)
        assert (moved(user, prepared, x, wanted) == right).all()
        assert _kernels.last_team_size() == expected, (given, wanted)
    prepared = prepare(s2dq.space_to_depth, x, 2)
    try:
        for count in (1, 2):
            s2dq.set_num_threads(count)
            moved(user, prepared, x)
            assert _kernels.last_team_size() == min(count, most)
    finally:
        s2dq.set_num_threads(None)


@pytest.mark.parametrize("num_threads", [1, 2])
def test_many_python_threads_run_one_plan(user, rng, num_threads):
    xs = rng.integers(-128, 128, (8, 1, 256, 512, 9), np.int8)
    prepared = prepare(s2dq.space_to_depth, xs[0], 2, out_format="NCHW_VECT_C")  # with scratch rows
    rights = [s2dq.space_to_depth(x, 2, out_format="NCHW_VECT_C") for x in xs]

    def work(k):
        return all((moved(user, prepared, xs[k], num_threads) == rights[k]).all() for _ in range(10))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_parallel_loop_of_the_users_own(user, rng, threads):
    """Frames `step` bytes apart, small and large ones."""
    words = {"out_format": "NCHW_VECT_C", "vect": 32}
    for shape, block, arguments in (((8, 8, 3), 2, {}), ((128, 256, 4), 2, {}), ((60, 90, 9), 2, words),
                                    ((60, 90, 48), 5, words)):  # fmt: skip
        frames = rng.integers(0, 256, (33, *shape), np.uint8)[::2]
        prepared = prepare(s2dq.space_to_depth, frames[:1], block, **arguments)
        tensors = np.full((len(frames), *prepared.shape[1:]), 0xA5, np.uint8)
        user.move_each(prepared, frames.ctypes.data, frames.strides[0], tensors.ctypes.data, len(frames), threads)
        np.testing.assert_array_equal(tensors, s2dq.space_to_depth(frames, block, **arguments), strict=True)


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX threads")
@pytest.mark.parametrize("num_threads", [1, 2])
def test_threads_that_python_does_not_know(user, rng, num_threads):
    """They cannot have the GIL, which a team needs: they run alone."""
    for arguments in ({}, {"out_format": "NCHW_VECT_C"}):
        x = large(rng)
        right = s2dq.space_to_depth(x, 2, **arguments)
        prepared, out = prepare(s2dq.space_to_depth, x, 2, **arguments), np.full_like(right, 0x25)
        assert user.status_in_new_thread(prepared, x.ctypes.data, out.ctypes.data, num_threads) == 0
        np.testing.assert_array_equal(out, right)


def goes_on_without_the_gil(user, prepared, x, num_threads, turns):
    """Whether a thread does 50 more runs while this one keeps the GIL."""
    out, progress = np.empty(4 * x.size, np.uint8), user.Progress()
    thread = threading.Thread(target=progress.work, args=(prepared, x.ctypes.data, out.ctypes.data, num_threads))
    thread.start()
    end = time.monotonic() + 60
    while progress.seen() == 0 and time.monotonic() < end:
        time.sleep(0.001)
    went_on = progress.hold_the_gil(progress.seen() + 50, turns)
    progress.stop()
    thread.join()
    return went_on


@pytest.mark.thread_unsafe(reason="keeps the GIL from all other threads")
@pytest.mark.parametrize("shape, num_threads", [((1, 8, 8, 4), 1), ((1, 8, 8, 4), 2), ((1, 512, 1024, 4), 1)])
def test_runs_go_on_while_another_thread_has_the_gil(user, shape, num_threads):
    """But for those on a team."""
    x = np.zeros(shape, np.int8)
    assert goes_on_without_the_gil(user, prepare(s2dq.space_to_depth, x, 2), x, num_threads, 2 * 10**9)


@pytest.mark.skipif(not GIL, reason="there is no GIL to wait for")
def test_a_run_that_takes_the_gil_would_be_seen(user):
    run = RUN(lambda *arguments: 0)
    plan = Plan(1, 1, ctypes.cast(run, ctypes.c_void_p), 0, 0, 0)
    assert not goes_on_without_the_gil(user, foreign(plan), np.zeros(1, np.int8), 1, 10**8)


def test_with_the_gil(user, rng):
    """On one thread a run does not let go of it, and needs not; with a team it takes it back."""
    x = large(rng)
    prepared = prepare(s2dq.depth_to_space, x, 2)
    out = np.empty(prepared.shape, prepared.dtype)
    for num_threads in (1, 2):
        out[...] = 0
        user.move_with_gil(prepared, x.ctypes.data, out.ctypes.data, num_threads)
        np.testing.assert_array_equal(out, s2dq.depth_to_space(x, 2))


def print_forks(folder):
    """Runs on a team of two, in a process and in its child, and in the process once more."""
    import os
    import sys

    import numpy as np

    import s2dq

    sys.path.insert(0, folder)
    import cython_user

    x = np.arange(2**20, dtype=np.uint32).view(np.int8).reshape(1, 1024, 1024, 4)
    prepared = s2dq.kernels.prepare(s2dq.space_to_depth, x, 2)
    right = s2dq.space_to_depth(x, 2, num_threads=1)

    def is_right():
        out = np.zeros(prepared.shape, prepared.dtype)
        cython_user.move(prepared, x.ctypes.data, out.ctypes.data, 2)
        return bool((out == right).all())

    before = is_right()
    child = os.fork()
    if not child:
        os._exit(0 if is_right() else 1)
    print(before, os.waitpid(child, 0)[1], is_right())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_both_sides_of_a_fork(folder):
    assert run_child(print_forks, str(folder)) == "True 0 True\n"


# -------------------------------------------------------------------------------------------------- what ends a run


def print_interrupts(folder, num_threads):
    """Seconds from a signal to its exception, of runs of 4 GiB with and without the GIL; whether the next are right."""
    import signal
    import sys
    import time

    import numpy as np

    import s2dq
    from guarded import Ring

    sys.path.insert(0, folder)
    import cython_user

    def interrupt(number, frame):
        raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, interrupt)
    noise, ring = Ring(2**24, 2**8), Ring(2**24, 2**8)
    noise.ring[...] = noise.tail[...] = np.random.default_rng(20250301).integers(-128, 128, 2**24, np.int8)
    x = noise.all.reshape(1024, 1024, 1024, 4)
    small = np.ascontiguousarray(x[:1, :64])
    prepared, few = (s2dq.kernels.prepare(s2dq.space_to_depth, one, 2) for one in (x, small))
    right, out = s2dq.space_to_depth(small, 2), np.empty(few.shape, few.dtype)
    for run in (cython_user.move, cython_user.move_with_gil):
        begin = time.monotonic()
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        try:
            while True:
                run(prepared, x.ctypes.data, ring.all.ctypes.data, num_threads)
        except KeyboardInterrupt:
            took = time.monotonic() - begin - 0.05
        run(few, small.ctypes.data, out.ctypes.data, num_threads)
        print(took, bool((out == right).all()))


@pytest.mark.skipif(not ON_LINUX or sys.maxsize < 2**32, reason="needs memfd_create and a 64-bit address space")
@pytest.mark.parametrize("num_threads", [1, 2])
def test_interrupt_is_answered(folder, num_threads):
    def interrupt():
        lines = [line.split() for line in run_child(print_interrupts, str(folder), num_threads).splitlines()]
        assert [right for _, right in lines] == ["True", "True"]
        assert all(float(took) >= 0 for took, _ in lines)
        return max(float(took) for took, _ in lines)

    assert usual_delay(interrupt, LIMIT * PATIENCE) < LIMIT * PATIENCE


def exit_while_threads_run(folder, num_threads):
    import sys
    import threading

    import s2dq
    from guarded import Ring

    sys.path.insert(0, folder)
    import cython_user

    x, out = Ring(2**24, 2**8).all.reshape(1024, 1024, 1024, 4), Ring(2**24, 2**8).all
    prepared = s2dq.kernels.prepare(s2dq.space_to_depth, x, 2)
    started = threading.Barrier(5)

    def work():
        started.wait()
        while True:
            cython_user.move(prepared, x.ctypes.data, out.ctypes.data, num_threads)

    for _ in range(4):
        threading.Thread(target=work, daemon=True).start()
    started.wait()
    print("ended", flush=True)


@pytest.mark.skipif(not ON_LINUX or sys.maxsize < 2**32, reason="needs memfd_create and a 64-bit address space")
@pytest.mark.parametrize("num_threads", [1, 2])
def test_daemon_threads_at_the_end_of_the_interpreter(folder, num_threads):
    """A run that looks at signals then finds no Python. `run_child` fails where the exit code is not 0."""
    for _ in range(3):
        assert run_child(exit_while_threads_run, str(folder), num_threads) == "ended\n"


def print_no_memory(folder):
    """What becomes of calls whose scratch row has a GiB, where there is half of one left."""
    import resource
    import sys

    import numpy as np

    import s2dq
    from guarded import address_space

    sys.path.insert(0, folder)
    import cython_user

    x = np.broadcast_to(np.int8(0), (1, 2, 2, 2**28 + 1))
    prepared = s2dq.kernels.prepare(s2dq.space_to_depth, x, 2, out_format="NCHW_VECT_C")
    resource.setrlimit(resource.RLIMIT_AS, (address_space() + 2**29, resource.RLIM_INFINITY))
    for run, more in ((cython_user.move, (1,)), (cython_user.move_with_gil, (2,))):
        try:
            run(prepared, 0, 0, *more)  # before a byte is read or written, or this would be the end
        except MemoryError as error:
            print(error)
    try:
        cython_user.move_each(prepared, 0, 0, 0, 8, 2)
    except MemoryError as error:
        print(error)


@pytest.mark.skipif(not ON_LINUX, reason="limits the address space")
def test_no_memory_for_scratch_rows(folder):
    """An exception, also out of a parallel loop of the user's own."""
    assert run_child(print_no_memory, str(folder)) == "no memory for scratch rows\n" * 3


# ------------------------------------------------------------------------------------------------- plans and their ends


NO_PLAN = Plan(1, 1, None, 0, 0, 0)
OTHER_NAME = b"s2dq.other"


@pytest.mark.parametrize("wrong", [None, 3, "plan", np.zeros(1), PreparedCall, s2dq.space_to_depth, Foreign(None),
                                   Foreign("capsule"), foreign(NO_PLAN, OTHER_NAME)], ids=type)
def test_what_is_no_prepared_call_is_refused(user, wrong):
    """The last one shows a capsule of another name."""
    with pytest.raises(TypeError, match="expected what s2dq.kernels.prepare returns, not "):
        user.fields(wrong)


def test_an_attribute_that_raises(user):
    class Broken:
        @property
        def __s2dq_plan__(self):
            raise ZeroDivisionError("of the user's own")

    with pytest.raises(ZeroDivisionError, match="of the user's own"):
        user.fields(Broken())


@pytest.mark.parametrize("versions", [(0, 0), (-1, -1), (2, 2), (9, 3)])
def test_a_plan_of_another_version_is_refused(user, versions):
    """One that is too old for this module, and one of an s2dq that has left this module behind."""
    version, oldest = versions
    says = rf"compiled for version 1 of .* has versions {oldest} to {version}: compile it again, or install another"
    plan = Plan(version, oldest, None, 0, 0, 0)
    with pytest.raises(RuntimeError, match=says):
        user.fields(foreign(plan))


@pytest.mark.parametrize("versions", [(1, 1), (2, 1), (7, 0)])
def test_a_plan_that_has_more_fields_is_run(user, versions):
    """Of a newer s2dq, which says that modules of this version still understand the first ones."""
    ran = []
    run = RUN(lambda plan, *arguments: ran.append(arguments) or 0)
    plan = Plan(*versions, ctypes.cast(run, ctypes.c_void_p), -3, 5, 7)
    assert user.fields(foreign(plan)) == (-3, 5, 7)
    user.move(foreign(plan), 16, 32, 4)
    assert ran == [(16, 32, 4)]


def test_the_version_is_that_of_the_declarations(user):
    prepared = prepare(s2dq.space_to_depth, np.zeros((1, 2, 2, 1), np.int8), 2)
    plan = Plan.from_address(user.address_of(prepared))
    assert (plan.version, plan.oldest, user.VERSION) == (1, 1, 1)
    assert (plan.x_low, plan.x_high, plan.out_bytes) == (0, 4, 4)


def test_a_capsule_keeps_its_call(user, rng):
    x = rng.integers(-128, 128, (1, 4, 4, 3), np.int8)
    prepared = prepare(s2dq.Preprocessor(dtype="float32"), x.view(np.uint8))
    right, kept, before = moved(user, prepared, x), Foreign(prepared.__s2dq_plan__), sys.getrefcount(prepared)
    more = [prepared.__s2dq_plan__ for _ in range(10)]
    assert sys.getrefcount(prepared) == before + 10
    del more
    assert sys.getrefcount(prepared) == before
    out = np.empty_like(right)
    del prepared
    s2dq.operators.program_of.cache_clear()
    gc.collect()
    user.move(kept, x.ctypes.data, out.ctypes.data, 1)
    np.testing.assert_array_equal(out, right)


def test_a_prepared_call_never_changes():
    prepared = prepare(s2dq.space_to_depth, np.zeros((1, 2, 2, 1), np.int8), 2)
    for name in ("shape", "nbytes", "x_low", "num_threads", "__s2dq_plan__", "another"):
        with pytest.raises(AttributeError):
            setattr(prepared, name, 0)
    with pytest.raises(TypeError):
        pickle.dumps(prepared)
    with pytest.raises(TypeError):
        type("Derived", (PreparedCall,), {})


# ------------------------------------------------------------------------------------------------ what is refused


def test_wrong_operators_are_refused():
    x = np.zeros((1, 2, 2, 1), np.int8)
    for wrong in (None, "space_to_depth", print, s2dq.quantize, s2dq.reference.space_to_depth, s2dq.Preprocessor,
                  s2dq.compat.openvino.space_to_depth):
        refused(TypeError, "prepare: operator must be an operator of s2dq, a Preprocessor or a Postprocessor, not",
                wrong, x, 2)


@pytest.mark.parametrize("dtype", ["O", "T", "i4,O"])
def test_references_are_refused(dtype):
    x = np.zeros((1, 2, 2, 4), dtype)
    for operator, arguments in ((s2dq.space_to_depth, (2,)), (s2dq.batch_to_space_nd, ([1], [[0, 0]])),
                                (s2dq.unpack_vect_c, ())):
        x = x if operator is not s2dq.unpack_vect_c else x[np.newaxis]
        with pytest.raises(TypeError, match=f"{operator.__name__}: elements of dtype .* hold references"):
            prepare(operator, x, *arguments)


def test_what_the_operator_refuses_is_refused_in_its_words():
    x = np.zeros((1, 3, 2, 1), np.int8)
    refused(ValueError, "space_to_depth: height 3 is not divisible by block_size 2", s2dq.space_to_depth, x, 2)
    refused(TypeError, "Preprocessor: frames must be uint8 or float32", s2dq.Preprocessor(scale=1.0), x)
    refused(TypeError, "unexpected keyword argument 'pad'", s2dq.space_to_depth, x, 1, pad=3)
    refused(TypeError, "num_threads must be an integer", s2dq.space_to_depth, x, 1, num_threads="2")


def test_out_is_refused():
    """It is not written to, and neither is x read."""
    x, out = np.zeros((1, 2, 2, 1), np.uint8), np.full((1, 1, 1, 4), 7, np.uint8)
    for given in (out, None):
        refused(TypeError, "prepare: out is for each run to give", s2dq.space_to_depth, x, 2, out=given)
    refused(TypeError, "multiple values for argument 'out'", s2dq.Preprocessor(scale=1.0, block_size=2), x, out)
    assert (out == 7).all()


def test_a_quantized_tensor_is_refused():
    q = s2dq.QuantizedTensor(np.zeros((1, 2, 2, 1), np.int8), 0.5, 3)
    refused(TypeError, "x must be an array", s2dq.space_to_depth, q, 2)


def test_results_need_no_memory_to_be_prepared():
    x = np.broadcast_to(np.int8(0), (2**20, 2**10, 2**10, 2**10))
    assert prepare(s2dq.space_to_depth, x, 2).nbytes == 2**50


# ----------------------------------------------------------------------------------------------------- the example


def test_example_rearranges_a_ring_of_frames(frame_ring, rng):
    """By several Python threads at once; frames are parts of wider ones."""
    frames = rng.integers(0, 256, (24, 62, 128, 3), np.uint8)[:, 2:, 8:72]
    for operator, arguments in ((s2dq.space_to_depth, {"block_size": 2, "out_format": "NCHW_VECT_C"}),
                                (s2dq.Preprocessor(scale=1 / 255, zero_point=-128, size=64, block_size=2), {})):
        prepared = prepare(operator, frames[:1], **arguments)
        tensors = np.full((24, *prepared.shape[1:]), 0x5A, prepared.dtype)
        ring = frame_ring.Ring(prepared, frames, tensors)
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(ring.rearrange, range(0, 24, 6), range(6, 25, 6)))
        np.testing.assert_array_equal(tensors, operator(frames, **arguments), strict=True)


def test_example_checks_what_a_run_does_not(frame_ring):
    frames = np.zeros((4, 8, 8, 3), np.uint8)
    prepared = prepare(s2dq.space_to_depth, frames[:1], 2)
    tensors = np.full((4, *prepared.shape[1:]), 7, np.uint8)
    for wrong in (frames[:, ::-1], frames[:, :6], frames.view(np.int8), frames[::2]):
        with pytest.raises(ValueError, match="not prepared for|no place"):
            frame_ring.Ring(prepared, wrong, tensors)
    with pytest.raises(ValueError, match="no place for 4 tensors"):
        frame_ring.Ring(prepared, frames, tensors[1:])
    with pytest.raises(TypeError, match="contiguous"):
        frame_ring.Ring(prepared, frames, np.zeros((*tensors.shape[:-1], 24), np.uint8)[..., ::2])
    with pytest.raises(TypeError, match=r"s2dq\.kernels\.prepare"):
        frame_ring.Ring(s2dq.space_to_depth, frames, tensors)
    ring = frame_ring.Ring(prepared, frames, tensors)
    for first, last in ((-1, 2), (3, 2), (0, 5)):
        with pytest.raises(IndexError):
            ring.rearrange(first, last)
    assert (tensors == 7).all()


def test_the_page_shows_the_example():
    page = PAGE.read_text(encoding="utf-8")
    quoted = re.findall(r"^```(?:cython|py|toml)\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    sources = "".join((EXAMPLE / name).read_text(encoding="utf-8") for name in
                      ("frame_ring.pyx", "setup.py", "pyproject.toml"))  # fmt: skip
    assert len(quoted) == 3
    for block in quoted:
        assert block in sources, block

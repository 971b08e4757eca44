"""Threads and processes: the same bytes on any number of threads, no hang on either side of a fork.

Every scenario runs in a child process that is killed at a deadline: a hang is a failure, not the end of the suite.
"""

import functools
import os
import re
import shutil
import subprocess
import sys

import pytest

from guarded import CPUS, OWN_OPENMP, SANITIZED, run_child
from s2dq import _kernels

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs POSIX processes")
DEADLINE = 120


# -------------------------------------------------------------------- functions that travel into the children


def checked_call(size=2**24, num_threads=None):
    """Rearrange `size` bytes, check them, and return the size of the team that did it."""
    import numpy as np

    import s2dq
    from s2dq import _kernels

    x = np.arange(size // 4, dtype=np.uint32).view(np.uint8).reshape(1, 256, -1, 16)
    result = np.empty((1, 128, size // 8192, 64), np.uint8)
    team = 0
    for _ in range(5):  # by default only calls in quick succession get a team, and a sanitizer's malloc takes its time
        s2dq.space_to_depth(x, 2, out=result, num_threads=num_threads)
        team = max(team, _kernels.last_team_size())
    rows = x.reshape(128, 2, -1, 2, 16)
    for p in (0, 1):
        for q in (0, 1):
            part = result[0, :, :, 16 * (2 * p + q) : 16 * (2 * p + q + 1)]
            if not np.array_equal(part, rows[:, p, :, q]):
                raise AssertionError(f"wrong bytes at block position {p, q}")
    return team


def in_fork(function, *arguments):
    """Run a function in a forked child; what it returns, as the child's exit code, comes back."""
    import os
    import sys
    import traceback

    sys.stdout.flush()
    pid = os.fork()
    if not pid:
        code = 99
        try:
            code = function(*arguments)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if not 0 < code < 99:
        raise AssertionError(f"the forked child ended with {code}")
    return code


HELPERS = (checked_call, in_fork)


def print_team():
    import s2dq

    print(s2dq.get_num_threads(), checked_call(), checked_call(2**20, num_threads=2))


@functools.cache
def full_team():
    """The team of a large call in an environment that says nothing about threads."""
    return int(run_child(print_team, helpers=HELPERS).split()[0])


# ------------------------------------------------------------------------------------------------- parallel


def test_large_calls_are_parallel():
    """All CPUs this process may use, by default; otherwise the scenarios below would prove little."""
    limit, default, asked = map(int, run_child(print_team, helpers=HELPERS).split())
    assert default == limit
    assert asked == min(2, limit)
    config = run_child(print_config)
    if "openmp: none" in config:
        assert limit == 1
    elif "control group: no limit" in config:
        assert limit == CPUS
    else:
        assert 1 <= limit <= CPUS


def print_sizes():
    """Team and digest of every call for 1, 2, 3, 4 and 1000 threads."""
    import hashlib

    import numpy as np

    import s2dq
    from s2dq import _kernels

    rng = np.random.default_rng(20250301)
    data = rng.integers(0, 256, 2**21 + 2**20, np.uint8)
    calls = {
        "s2d": lambda n: s2dq.space_to_depth(data.reshape(1, 512, 2048, 3), 2, num_threads=n),
        "s2d chained": lambda n: s2dq.space_to_depth(
            data.reshape(1, 512, 2048, 3), 2, out_format="NCHW_VECT_C", paddings=[[1, 1], [3, 1]], num_threads=n),
        "s2d planes": lambda n: s2dq.space_to_depth(
            data.reshape(1, 3, 2048, 512)[:, :, 1:-1, 1:-1], 2, "NCHW", mode="CRD", num_threads=n),
        "d2s": lambda n: s2dq.depth_to_space(
            data.reshape(1, 512, 512, 12), 2, out_format="NCHW", crops=[[1, 0], [0, 3]], num_threads=n),
        "d2s from words": lambda n: s2dq.depth_to_space(
            data.reshape(1, 3, 512, 512, 4), 2, "NCHW_VECT_C", out_format="NHWC", num_threads=n),
        "s2b": lambda n: s2dq.space_to_batch_nd(
            data.reshape(3, 1024, 1024), [2, 3], [[1, 1], [1, 1]], num_threads=n),
        "b2s": lambda n: s2dq.batch_to_space_nd(
            data.reshape(12, 512, 512), [2, 3], [[1, 0], [5, 6]], num_threads=n),
        "pack": lambda n: s2dq.pack_vect_c(data.reshape(1, 3, 1024, 1024), num_threads=n),
        "unpack": lambda n: s2dq.unpack_vect_c(data.reshape(1, 3, 512, 512, 4), channels=11, num_threads=n),
        "one row": lambda n: s2dq.space_to_depth(data.reshape(1, 1, -1, 1), (1, 2), num_threads=n),
    }
    for name, call in calls.items():
        for count in (1, 2, 3, 4, 1000):
            digest = hashlib.sha256(call(count).tobytes()).hexdigest()
            print(name, count, _kernels.last_team_size(), digest, sep=": ")


def test_same_bytes_for_every_number_of_threads():
    lines = [line.split(": ") for line in run_child(print_sizes).splitlines()]
    for name in dict.fromkeys(line[0] for line in lines):
        digests = {digest for call, _, _, digest in lines if call == name}
        assert len(digests) == 1, f"{name} depends on the number of threads"
        teams = {int(count): int(team) for call, count, team, _ in lines if call == name}
        assert teams == {count: min(count, full_team()) for count in teams}, name


def use_many_threads(count):
    """Parallel calls from many Python threads at once; print OS threads before and after, and the digests."""
    import os
    import threading
    import time

    def os_threads():
        return len(os.listdir("/proc/self/task"))

    checked_call(2**20, num_threads=2)
    before = os_threads()
    barrier, teams = threading.Barrier(count), []

    def work():
        barrier.wait()
        for _ in range(3):
            teams.append(checked_call(2**20, num_threads=2))

    workers = [threading.Thread(target=work) for _ in range(count)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    deadline = time.monotonic() + 60
    while os_threads() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    print(len(teams), max(teams), os_threads() - before)


@pytest.mark.skipif(sys.platform != "linux", reason="counts threads in /proc")
@pytest.mark.parametrize("count", [16, 64])
def test_many_python_threads(count):
    """Every one gets the right bytes, and the OS threads they needed go away with them."""
    calls, team, left = map(int, run_child(use_many_threads, count, helpers=HELPERS).split())
    assert calls == 3 * count, "a thread failed"
    assert team == min(2, full_team())
    assert left == 0, f"{left} OS threads were left behind"


# ------------------------------------------------------------------------------------------------------ fork


def fork_after_a_parallel_call():
    first = checked_call()
    children = [in_fork(checked_call) for _ in range(3)]
    print(first, *children, checked_call())


def fork_before_any_call():
    import s2dq  # noqa: F401 - its handlers are there

    print(1, in_fork(checked_call), checked_call())


def fork_within_a_fork():
    """A prefork server: master, worker, and what the worker forks, each after a parallel call."""
    def worker(depth):
        team = checked_call()
        if depth:
            in_fork(worker, depth - 1)
        return min(team, checked_call())

    print(checked_call(), in_fork(worker, 3), checked_call())


def fork_from_a_used_thread():
    """The forking thread is the child's only one, and not the one that started Python."""
    import threading

    teams = []

    def work():
        teams.append(checked_call())
        teams.append(in_fork(checked_call))
        teams.append(checked_call())

    checked_call()
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    print(*teams)


def fork_from_a_fresh_thread():
    import threading

    teams = [checked_call()]
    thread = threading.Thread(target=lambda: teams.append(in_fork(checked_call)))
    thread.start()
    thread.join()
    print(*teams, checked_call())


def fork_while_another_thread_computes():
    import threading

    stop, teams = threading.Event(), []

    def work():
        while not stop.is_set():
            teams.append(checked_call(2**20, num_threads=2))

    checked_call()
    thread = threading.Thread(target=work)
    thread.start()
    try:
        children = [in_fork(checked_call, 2**20, 2) for _ in range(12)]
    finally:
        stop.set()
        thread.join()
    print(max(teams), min(children), checked_call())


@pytest.mark.parametrize("scenario", [
    fork_after_a_parallel_call, fork_before_any_call, fork_within_a_fork, fork_from_a_used_thread,
    fork_from_a_fresh_thread, fork_while_another_thread_computes,
], ids=lambda scenario: scenario.__name__)
def test_fork(scenario):
    first, *others = map(int, run_child(scenario, helpers=HELPERS, timeout=DEADLINE).split())
    assert others, "nothing was called after the fork"
    # The parent's team is whole again after the fork. A child would stay on one thread where OpenMP cannot be paused.
    assert others[-1] == full_team()
    assert first in (1, min(2, full_team()), full_team())
    assert all(1 <= team <= full_team() for team in others)
    if _kernels.build_info()[0].startswith("gcc"):
        teams = {min(2, full_team())} if scenario is fork_while_another_thread_computes else {full_team()}
        assert set(others[:-1]) <= teams, "a child forked from a gcc build has lost its team"


def fork_in_a_handler():
    """Children of a handler of signals, in the midst of a call; they end it, and make others."""
    import os
    import signal
    import time

    import numpy as np

    import s2dq

    x = np.arange(2**22, dtype=np.uint32).view(np.uint8).reshape(1, 1024, 1024, 16)
    right = s2dq.space_to_depth(x, 2, num_threads=1)
    large, out = np.broadcast_to(x, (30, *x.shape[1:])), np.empty((30, *right.shape[1:]), np.uint8)
    children, parent = [], os.getpid()

    def fork(*_):
        child = os.fork()
        if child:
            children.append(child)

    signal.signal(signal.SIGALRM, fork)
    for _ in range(3):
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        for images in (large, large):
            s2dq.space_to_depth(images, 2, out=out, num_threads=2)
            if not all(np.array_equal(result, right[0]) for result in out):
                raise AssertionError("wrong bytes")
        if os.getpid() != parent:
            os._exit(0)
    deadline = time.monotonic() + 60
    while children and time.monotonic() < deadline:
        ended, status = os.waitpid(children[-1], os.WNOHANG)
        if ended:
            children.pop()
            print("child", status)
        time.sleep(0.01)
    for child in children:
        print("hangs")
        os.kill(child, signal.SIGKILL)


@pytest.mark.skipif(SANITIZED or sys.platform != "linux", reason="preloads a library")
@pytest.mark.parametrize("pause", ["possible", "impossible"])
def test_fork_in_a_handler(pause, tmp_path):
    """Where OpenMP cannot be paused, as with two copies of it, a child has one thread, from the midst of a call on."""
    environment = {}
    if pause == "impossible":
        (tmp_path / "pause.c").write_text("int omp_pause_resource_all(int kind) { return -1; }\n")
        command = ["gcc", "-shared", "-fPIC", "-o", tmp_path / "pause.so", tmp_path / "pause.c"]
        if shutil.which("gcc") is None or subprocess.run(command).returncode:
            pytest.skip("gcc builds no library")
        environment["LD_PRELOAD"] = str(tmp_path / "pause.so")
    output = run_child(fork_in_a_handler, timeout=DEADLINE, env=environment)
    assert output.splitlines() == ["child 0"] * 3


def use_process_pool(method):
    """Workers of multiprocessing that call the operator in parallel, after the parent did."""
    import functools
    import multiprocessing

    import numpy as np

    import s2dq
    from s2dq import _kernels

    team = checked_call()
    frames = [np.full((1, 512, 512, 3), number, np.uint8) for number in range(6)]
    with multiprocessing.get_context(method).Pool(2) as pool:
        call = functools.partial(s2dq.space_to_depth, block_size=2, num_threads=2)
        results = pool.map(call, frames, chunksize=1)
        teams = {pool.apply(_kernels.last_team_size) for _ in range(20)} - {0}  # 0: a worker that came too late
    for frame, result in zip(frames, results):
        np.testing.assert_array_equal(result, frame.reshape(1, 256, 256, 12))
    print(team, checked_call(), *teams)


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_multiprocessing(method):
    output = run_child(use_process_pool, method, helpers=HELPERS, timeout=DEADLINE)
    before, after, *workers = map(int, output.split())
    assert before == after == full_team()
    if method != "fork" or _kernels.build_info()[0].startswith("gcc"):
        assert workers == [min(2, full_team())], "a worker has no team of its own"
    assert workers and max(workers) <= 2


def use_data_loader(first, worker_threads, apart):
    """A PyTorch DataLoader whose forked workers call the operator, as the parent does before and after.

    Torch gives its workers one thread; `worker_threads` takes it at its word that they may have more. Where its OpenMP
    runtime is another than ours (`apart`) nothing but ours is asked for threads in a worker: there torch alone hangs.
    """
    import importlib

    for name in ("torch", "s2dq") if first == "torch" else ("s2dq", "torch"):
        importlib.import_module(name)
    import numpy as np
    import torch

    import s2dq

    class Frames(torch.utils.data.Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, index):
            frame = np.full((1, 512, 512, 3), index, np.uint8)
            result = s2dq.space_to_depth(frame, 2, num_threads=2)[0]
            return result, max(checked_call(), checked_call(2**20, num_threads=2))

    def start(worker):
        if worker_threads:
            torch.set_num_threads(worker_threads)

    def stack(batch):
        return tuple(np.stack(parts) for parts in zip(*batch, strict=True))

    team = checked_call()
    torch.ones(2**20).sum()  # torch's own pool is running too
    seen, teams = 0, []
    for results, sizes in torch.utils.data.DataLoader(
        Frames(), batch_size=2, num_workers=2, worker_init_fn=start, collate_fn=stack if apart else None
    ):
        assert results.shape == (2, 256, 256, 12)
        teams += sizes.tolist()
        for frame in results:
            assert (frame == seen).all(), seen
            seen += 1
    print(seen, team, checked_call(), min(teams), max(teams))


@pytest.mark.parametrize("first", ["torch", "s2dq"])
@pytest.mark.parametrize("worker_threads", [None, 2])
def test_torch_data_loader(first, worker_threads):
    """In either order of imports: the one that comes first decides whose OpenMP runtime both use.

    But for a wheel with a libgomp of its own, which torch does not take for its own: there each has one, and what torch
    sets is not for ours.
    """
    pytest.importorskip("torch")
    apart = first == "s2dq" and OWN_OPENMP
    output = run_child(use_data_loader, first, worker_threads, apart, helpers=HELPERS, timeout=2 * DEADLINE)
    seen, before, after, smallest, largest = map(int, output.split())
    assert seen == 8
    assert before == after == full_team()
    assert 1 <= smallest <= largest <= (full_team() if apart else min(worker_threads or 1, full_team()))


# ------------------------------------------------------------------------------------------------ how many


@pytest.mark.parametrize("value, expected", [
    ("1", 1), ("2", 2), ("2,2", 2), ("100000", 100000), ("0", 100000), ("-1", 100000), ("abc", 100000),
])
def test_omp_num_threads(value, expected):
    """OpenMP ignores what makes no sense; what makes too much of it is capped."""
    limit, default, asked = map(int, run_child(print_team, helpers=HELPERS, env={"OMP_NUM_THREADS": value}).split())
    assert limit == default == min(expected, full_team())
    assert asked == min(2, expected, full_team())


def print_teams(rows):
    """For rows of (num_threads=, set_num_threads()): `get_num_threads` and the team of a large call."""
    import s2dq

    for argument, setter in rows:
        s2dq.set_num_threads(setter)
        print(s2dq.get_num_threads(), checked_call(num_threads=argument))


@pytest.mark.parametrize("environment, openmp", [
    (None, None), ("1", None), ("2", None), ("100000", None), (None, "1"), ("2", "1"), ("1", "2"),
])
def test_precedence(environment, openmp):
    """The argument, else the setter, else S2DQ_NUM_THREADS, else OpenMP's maximum, which caps all of them."""
    rows = [(None, None), (None, 1), (None, 2), (1, None), (2, None), (2, 1), (1, 2), (100000, 1), (None, 100000),
            (None, None)]
    env = {"S2DQ_NUM_THREADS": environment, "OMP_NUM_THREADS": openmp}
    output = run_child(print_teams, rows, helpers=HELPERS, env={name: value for name, value in env.items() if value})
    limit = min(full_team(), int(openmp or 100000))
    for (argument, setter), line in zip(rows, output.splitlines(), strict=True):
        get, team = map(int, line.split())
        default = min(limit, setter or int(environment or 100000))
        assert get == default, f"get_num_threads() with setter {setter}"
        assert team == (min(limit, argument) if argument else default), f"num_threads={argument}, setter {setter}"


def print_warnings():
    import warnings

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        import s2dq

        for _ in range(3):
            s2dq.get_num_threads()
            checked_call(2**20, num_threads=2)
        s2dq.set_num_threads(1)
        s2dq.set_num_threads(None)
    print(s2dq.get_num_threads(), checked_call())
    for warning in caught:
        print(warning.message)


@pytest.mark.parametrize("value", ["0", "-1", "abc", "2.0", "0x2", "1 2", "2,2", "\u0662", "1_0", "00"])
def test_malformed_environment_variable_is_ignored_with_one_warning(value):
    output = run_child(print_warnings, helpers=HELPERS, env={"S2DQ_NUM_THREADS": value})
    teams, *warnings = output.splitlines()
    assert teams.split() == [str(full_team())] * 2
    assert len(warnings) == 1, warnings
    assert "S2DQ_NUM_THREADS" in warnings[0] and value[:20] in warnings[0]
    assert len(warnings[0]) < 300


@pytest.mark.parametrize("value, expected", [("1", 1), (" 2 ", 2), ("", 100000), ("999999999999", 100000)])
def test_environment_variable_without_a_warning(value, expected):
    output = run_child(print_warnings, helpers=HELPERS, env={"S2DQ_NUM_THREADS": value})
    assert output.split() == [str(min(expected, full_team()))] * 2


def print_limited():
    import threading

    import threadpoolctl

    import s2dq

    def pools():
        return sorted((pool["internal_api"], pool["num_threads"]) for pool in threadpoolctl.threadpool_info())

    checked_call()
    before = pools()
    with threadpoolctl.threadpool_limits(1, user_api="openmp"):
        s2dq.set_num_threads(2)
        print(s2dq.get_num_threads(), checked_call(), checked_call(num_threads=2))
        s2dq.set_num_threads(None)
    with threadpoolctl.threadpool_limits(1):
        print(s2dq.get_num_threads(), checked_call(), checked_call(num_threads=2))
    print(s2dq.get_num_threads(), checked_call(), checked_call(num_threads=2))
    others = []
    thread = threading.Thread(target=lambda: others.append(checked_call()))
    thread.start()
    thread.join()
    print(*others)
    print(pools() == before)


def test_threadpool_limits_hold():
    """Also against an explicit count; and a call leaves OpenMP's settings as they were."""
    pytest.importorskip("threadpoolctl")
    output = run_child(print_limited, helpers=HELPERS).splitlines()
    everything = [str(full_team()), str(full_team()), str(min(2, full_team()))]
    assert [line.split() for line in output] == [["1"] * 3, ["1"] * 3, everything, [str(full_team())], ["True"]]


def print_affine(when):
    """Give this process one CPU, before or after the import."""
    import os

    one = {min(os.sched_getaffinity(0))}
    if when == "before":
        os.sched_setaffinity(0, one)
    import s2dq

    os.sched_setaffinity(0, one)
    print(s2dq.get_num_threads(), checked_call(), checked_call(num_threads=2))


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs sched_setaffinity")
@pytest.mark.parametrize("when", ["before", "after"])
def test_affinity_is_a_limit(when):
    assert run_child(print_affine, when, helpers=HELPERS, env={"OMP_NUM_THREADS": "2"}).split() == ["1"] * 3


# -------------------------------------------------------------------------------------------- process state


def print_state_changes():
    """What the import and calls changed in the process, a line each; then what has to be True."""
    import ctypes
    import faulthandler
    import gc
    import locale
    import os
    import random
    import resource
    import signal
    import sys
    import threading
    import warnings

    import numpy as np

    libm = ctypes.CDLL("libm.so.6")
    upward = {"x86_64": 0x800, "aarch64": 0x400000}.get(os.uname().machine)
    try:
        openmp = ctypes.CDLL("libgomp.so.1")
    except OSError:
        openmp = None

    def settings_of_openmp():
        names = ("max_threads", "dynamic", "max_active_levels", "thread_limit", "cancellation", "proc_bind", "nested")
        kind, chunk = ctypes.c_int(), ctypes.c_int()
        openmp.omp_get_schedule(ctypes.byref(kind), ctypes.byref(chunk))
        return [kind.value, chunk.value, *(getattr(openmp, f"omp_get_{name}")() for name in names)]

    def umask():
        os.umask(now := os.umask(0o77))
        return now

    def state():
        with open("/proc/self/status") as status:
            lines = dict(line.split(":", 1) for line in status)
        tiny = np.full(64, 1e-45, np.float32)  # subnormal
        return {
            "rounding mode": libm.fegetround(),
            "subnormals": [float((tiny * np.float32(1)).sum()) > 0, float((tiny + tiny)[0]) > 0, 5e-324 * 1.0 > 0],
            "signal masks": [lines[name] for name in ("SigBlk", "SigIgn", "SigCgt")],
            "signal handlers": [signal.getsignal(number) for number in signal.valid_signals()],
            "OS threads": lines["Threads"],
            "environment": dict(os.environ),
            "warning filters": list(warnings.filters),
            "locale": locale.setlocale(locale.LC_ALL),
            "NumPy error handling": np.geterr(),
            "affinity": os.sched_getaffinity(0),
            "module path": list(sys.path),
            "flags": [sys.flags, sys.getrecursionlimit(), sys.getswitchinterval(), sys.gettrace(), sys.getprofile()],
            "hooks": [sys.excepthook, sys.displayhook, sys.unraisablehook, threading.excepthook, sys.meta_path[:]],
            "fault handler": faulthandler.is_enabled(),
            "garbage collector": [gc.isenabled(), gc.get_threshold(), gc.get_debug()],
            "random state": [random.getstate(), str(np.random.get_state())],
            "limits": [resource.getrlimit(getattr(resource, name)) for name in dir(resource) if name[:7] == "RLIMIT_"],
            "umask": umask(),
            "stack of new threads": threading.stack_size(),
            "working directory": os.getcwd(),
            "OpenMP": openmp and settings_of_openmp(),
        }

    def every_kind_of_call(num_threads):
        x = np.linspace(-9, 9, 2**20, dtype=np.float32).reshape(1, 512, 512, 4)
        q = s2dq.quantize(x, 0.1, 3, num_threads=num_threads)
        s2dq.requantize(q, 0.2, 0, num_threads=num_threads).dequantize(num_threads=num_threads)
        pre = s2dq.Preprocessor(scale=0.1, std=0.3, block_size=2, num_threads=num_threads)
        pre(x)
        pre.inverse()(pre(np.ones((512, 512, 3), np.uint8)))
        s2dq.unpack_vect_c(s2dq.pack_vect_c(x, num_threads=num_threads), num_threads=num_threads)

    def compare(what, *, but=()):
        after = state()
        for name in before:
            if name not in but and before[name] != after[name]:
                print(f"{what} changed {name}: {before[name]} became {after[name]}")

    before = state()
    import s2dq

    compare("import")
    print("threadpoolctl" not in sys.modules)  # imported when it is used
    checked_call(2**18, num_threads=1)
    every_kind_of_call(1)
    compare("a serial call")
    checked_call()
    every_kind_of_call(2)
    compare("a parallel call", but=["OS threads"])
    if upward is not None:
        assert libm.fesetround(upward) == 0
        before = state()
        checked_call(num_threads=2)
        s2dq.space_to_depth(np.ones((1, 1024, 1024, 4), np.float32), 2, num_threads=2)
        every_kind_of_call(2)
        compare("a call with another rounding mode", but=["OS threads"])
    print(libm.fegetround() in (0, upward))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_process_state_is_left_alone():
    assert run_child(print_state_changes, helpers=HELPERS).split("\n") == ["True", "True", ""]


def print_config():
    import s2dq

    assert s2dq.show_config() is None


def test_show_config():
    """One ``name: value`` a line, for bug reports."""
    import numpy as np

    import s2dq

    lines = run_child(print_config).splitlines()
    config = dict(line.split(": ", 1) for line in lines)
    assert config["s2dq"] == s2dq.__version__
    assert config["python"].startswith(".".join(map(str, sys.version_info[:3])))
    assert config["numpy"] == np.__version__
    assert re.match(r"(gcc|clang|msvc) \S", config["compiler"]), config["compiler"]
    assert re.match(r"(\d{6}|none)", config["openmp"]), config["openmp"]
    assert config["instruction set"]
    assert int(config["threads"]) == full_team()
    assert config["cpus allowed by affinity"] == str(CPUS)
    assert all(value.strip() for value in config.values())


def test_show_config_shows_settings():
    config = run_child(print_config, env={"OMP_NUM_THREADS": "1"})
    assert "\nthreads: 1\n" in config


@pytest.mark.parametrize("setting", [{"OMP_THREAD_LIMIT": "1"}, {"OMP_MAX_ACTIVE_LEVELS": "0"}])
def test_get_num_threads_knows_openmps_other_limits(setting):
    teams, *warnings = run_child(print_warnings, helpers=HELPERS, env=setting).splitlines()
    assert teams.split() == ["1", "1"] and not warnings


@pytest.mark.parametrize("value", ["9" * 5000, "2147483648", "0064"])
def test_environment_variable_larger_than_possible_is_capped(value):
    teams, *warnings = run_child(print_warnings, helpers=HELPERS, env={"S2DQ_NUM_THREADS": value}).splitlines()
    assert teams.split() == [str(full_team())] * 2 and not warnings

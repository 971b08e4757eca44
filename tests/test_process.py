"""Around us: absurd settings of OpenMP, threads that the system refuses, regions of others, sub-interpreters.

Every scenario runs in a child process, which must end with 0 before its deadline.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from guarded import OWN_OPENMP, SANITIZED, run_child
from s2dq import _kernels, _threads
from test_fork_threads import DEADLINE, HELPERS, checked_call, full_team, in_fork

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs POSIX processes")
HAS_OPENMP = _kernels.build_info()[1] > 0

# ---------------------------------------------------------------------------------------------- OpenMP's settings


def print_digests():
    """The teams of three calls, and which of the recorded calls differ from the record."""
    from recorded import all_calls, digest, recorded, run

    right = recorded()
    wrong = [call.name for call in all_calls()[::5] if digest(run(call, 2)) != right[call.name]]
    print(checked_call(), checked_call(2**20, num_threads=2), checked_call(2**20, num_threads=1), wrong, sep=": ")


NARROW = [{"OMP_STACKSIZE": "16k"}, {"OMP_STACKSIZE": "32K", "OMP_NUM_THREADS": "0"}, {"GOMP_STACKSIZE": " 20 k "}]
HARMLESS = [
    {"OMP_STACKSIZE": "0", "OMP_WAIT_POLICY": "active"},
    {"OMP_STACKSIZE": "abc", "OMP_WAIT_POLICY": "passive", "OMP_NUM_THREADS": "-1"},
    {"OMP_STACKSIZE": "9" * 20, "OMP_SCHEDULE": "dynamic,-1", "OMP_NESTED": "true", "OMP_NUM_THREADS": "100000"},
    {"OMP_WAIT_POLICY": "abc", "OMP_CANCELLATION": "abc", "GOMP_SPINCOUNT": "infinite", "OMP_NUM_THREADS": "abc"},
    {"KMP_AFFINITY": "abc", "KMP_BLOCKTIME": "-1", "KMP_STACKSIZE": "16k", "KMP_DUPLICATE_LIB_OK": "FALSE"},
]
OTHERS = [
    {"OMP_STACKSIZE": "1000G"},  # more than most systems have addresses for
    {"OMP_STACKSIZE": "99999999G"},
    {"OMP_THREAD_LIMIT": "0", "OMP_DYNAMIC": "true", "OMP_NUM_THREADS": "2,2"},
    {"OMP_THREAD_LIMIT": "abc", "OMP_PROC_BIND": "true", "OMP_PLACES": "cores"},
    {"OMP_THREAD_LIMIT": "2", "OMP_PROC_BIND": "spread,close", "OMP_PLACES": "{0}"},
    {"OMP_THREAD_LIMIT": "-1", "OMP_PROC_BIND": "abc", "OMP_PLACES": "{99999}", "OMP_DYNAMIC": "abc"},
    {"OMP_THREAD_LIMIT": "9" * 20, "GOMP_CPU_AFFINITY": "0", "OMP_MAX_ACTIVE_LEVELS": "-1"},
    {"OMP_PROC_BIND": "master", "GOMP_CPU_AFFINITY": "99999", "OMP_MAX_ACTIVE_LEVELS": "99999999999"},
    {"OMP_NUM_THREADS": "0", "OMP_THREAD_LIMIT": "0", "OMP_STACKSIZE": "16k", "OMP_DYNAMIC": "true"},
]


def named(settings):
    return " ".join(f"{name}={value}" for name, value in settings.items())


@pytest.mark.parametrize("settings", [*NARROW, *HARMLESS, *OTHERS], ids=named)
def test_settings_of_openmp(settings):
    """Whatever OpenMP makes of them, the bytes are right. Absurd stacks would end the process or be overrun."""
    default, two, one, wrong = run_child(print_digests, helpers=[checked_call], env=settings).strip().split(": ")
    assert wrong == "[]"
    assert 1 <= int(default) <= full_team() and 1 <= int(two) <= min(2, full_team()) and one == "1"
    if settings in NARROW:
        assert default == two == "1"
    if settings in HARMLESS:
        assert (int(default), int(two)) == (full_team(), min(2, full_team()))


def print_num_threads(values):
    import numpy as np

    import s2dq

    x = np.ones((1, 512, 512, 4), np.float32)
    for value in values:
        for call in (
            lambda n: checked_call(2**20, num_threads=n),
            lambda n: s2dq.quantize(x, 0.5, 0, num_threads=n),
            lambda n: s2dq.set_num_threads(n) or checked_call(),
            lambda n: s2dq.Preprocessor(scale=0.5, num_threads=n)(x),
        ):
            try:
                call(value)
            except ValueError:
                print("ValueError")
            else:
                print("right")
        s2dq.set_num_threads(None)


def test_any_number_of_threads_is_right_or_refused():
    """OpenMP's runtimes end the process where a number below 1 reaches them, and may where a huge one does."""
    right = [1, 2, 3, 1000, 2**31 - 1, 2**31, 2**32 + 1, 2**63 - 1, 2**63, 2**64 + 1, 10**30]
    refused = [0, -1, -(2**31), -(2**31) - 1, -(2**63), -(2**64) + 1, -(10**30)]
    output = run_child(print_num_threads, right + refused, helpers=[checked_call]).split()
    assert output == ["right"] * 4 * len(right) + ["ValueError"] * 4 * len(refused)


# ------------------------------------------------------------------------------------------- CPUs that are granted


@pytest.mark.parametrize(("files", "groups", "granted"), [
    ({}, None, 0),  # no /proc
    ({}, "", 0),
    ({}, "0::/", 0),
    ({"cpu.max": "max 100000"}, "0::/", 0),
    ({"cpu.max": "150000 100000"}, "0::/", 2),  # rounded up
    ({"cpu.max": "1000 100000"}, "0::/", 1),
    ({"a/b/cpu.max": "400000 100000"}, "0::/a/b", 4),
    ({"a/b/cpu.max": "400000 100000", "a/cpu.max": "200000 100000"}, "0::/a/b", 2),  # that of an ancestor holds, too
    ({"cpu.max": "300000 100000"}, "0::/of/the/host", 3),  # in a container the tree starts at its own group
    ({"cpu.max": "300000 100000", "a/cpu.max": "max 100000"}, "0::/a", 3),
    ({"cpu/a/cpu.cfs_quota_us": "250000", "cpu/a/cpu.cfs_period_us": "100000"}, "4:cpuacct,cpu:/a\n3:memory:/b", 3),
    ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, "4:cpu:/", 0),
    ({"cpu/cpu.cfs_quota_us": "250000"}, "4:cpu:/", 0),  # half of it
    ({"memory/cpu.max": "100000 100000", "cpu.max": "500000 100000"}, "3:memory:/\nnonsense\n0::/", 5),
    ({"cpu.max": "many 100000"}, "0::/", 0),
    ({"cpu.max": "100000"}, "0::/", 0),
    ({"cpu.max": "100000 0"}, "0::/", 0),
    ({"cpu.max": "100000 100000"}, "0::/../../elsewhere", 1),
])  # fmt: skip
def test_control_groups_grant_cpus(tmp_path, files, groups, granted):
    """Files of a control group, and what /proc/self/cgroup says of the groups of a process."""
    root, process = tmp_path / "cgroup", tmp_path / "self"
    root.mkdir()
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text + "\n")
    if groups is not None:
        process.write_text(groups + "\n")
    assert _threads._cgroup_quota(root, process) == granted


def test_control_groups_have_any_names(tmp_path):
    process = tmp_path / "self"
    process.write_bytes(b"0::/caf\xe9\n")
    assert _threads._cgroup_quota(tmp_path, process) == 0


def print_limits():
    import s2dq
    from s2dq import _kernels

    for quota in (0, 1, 2, 3, 0):
        _kernels.set_quota(quota)
        print(s2dq.get_num_threads())


def test_teams_are_no_larger_than_the_cpus_that_are_granted():
    most, *granted, again = map(int, run_child(print_limits).split())
    assert granted == [min(most, quota) for quota in (1, 2, 3)] and again == most


# ------------------------------------------------------------------------------------------------ refused threads


def refuse_threads(how):
    """Teams: without threads to be had, with them, without them again, and a larger one."""
    import os
    import resource

    from recorded import all_calls, digest, recorded, run
    from s2dq import _kernels

    _kernels.pretend_processors(3)
    _kernels.set_quota(0)
    right = recorded()
    calls = [call for call in all_calls() if call.name.endswith(", large")]
    checked_call(2**20, num_threads=1)
    if how == "processes" and os.geteuid() == 0:  # the limit does not hold for root
        os.setuid(65534)
    kind = {"processes": resource.RLIMIT_NPROC, "memory": resource.RLIMIT_AS}[how]
    soft, hard = resource.getrlimit(kind)

    def limit():
        with open("/proc/self/statm") as statm:
            used = int(statm.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(kind, (0 if how == "processes" else used + 2**22, hard))

    def teams(count):
        seen, call = set(), calls[0]
        for call in calls if how == "processes" else calls[:1] * 3:  # results come out of the same memory
            if digest(run(call, count)) != right[call.name]:
                raise AssertionError(f"wrong bytes of {call.name}")
            seen.add(_kernels.last_team_size())
        print(*sorted(seen), sep=",")

    teams(1)
    limit()
    teams(2)
    resource.setrlimit(kind, (soft, hard))
    teams(2)
    limit()
    teams(2)
    teams(3)
    resource.setrlimit(kind, (soft, hard))
    teams(3)


@pytest.mark.skipif(sys.platform != "linux" or not HAS_OPENMP, reason="needs RLIMIT_NPROC, RLIMIT_AS and OpenMP")
@pytest.mark.parametrize("how", ["processes", pytest.param("memory", marks=pytest.mark.skipif(
    SANITIZED, reason="limits the address space"))])  # fmt: skip
def test_threads_that_the_system_refuses(how):
    """One thread does it. libgomp would end the interpreter."""
    output = run_child(refuse_threads, how, helpers=HELPERS, env={"OMP_NUM_THREADS": "3"})
    assert output.split() == ["1", "1", "2", "2", "1", "3"]


def refuse_threads_to_a_call_that_is_interrupted():
    """No threads are to be had any more when a smaller team has run in the handler of a signal."""
    import os
    import resource
    import signal

    import numpy as np

    import s2dq
    from s2dq import _kernels

    _kernels.pretend_processors(3)
    _kernels.set_quota(0)
    x = np.arange(2**18 * 3, dtype=np.uint32).view(np.uint8).reshape(1, 1024, 1024, 3)
    right = s2dq.space_to_depth(x, 2, num_threads=1)
    if os.geteuid() == 0:  # the limit does not hold for root
        os.setuid(65534)
    teams = []

    def smaller_team(*_):
        same = np.array_equal(s2dq.space_to_depth(x, 2, num_threads=2), right)
        teams.append(_kernels.last_team_size() if same else "wrong bytes")
        resource.setrlimit(resource.RLIMIT_NPROC, (0, resource.getrlimit(resource.RLIMIT_NPROC)[1]))

    signal.signal(signal.SIGALRM, smaller_team)
    large = np.broadcast_to(x, (600, *x.shape[1:]))
    out = np.empty((600, 512, 512, 12), np.uint8)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    s2dq.space_to_depth(large, 2, out=out, num_threads=3)
    print(*teams, _kernels.last_team_size(), all(np.array_equal(result, right[0]) for result in out))


@pytest.mark.skipif(sys.platform != "linux" or not HAS_OPENMP, reason="needs RLIMIT_NPROC and OpenMP")
def test_threads_that_the_system_refuses_to_a_call_that_is_interrupted():
    """It asks again behind the handler, and goes on by itself."""
    output = run_child(refuse_threads_to_a_call_that_is_interrupted, env={"OMP_NUM_THREADS": "3"}).split()
    assert output == ["2", "1", "True"]


# ---------------------------------------------------------------------------------------------- regions of others


@pytest.fixture
def region(tmp_path):
    """A library with a parallel region that calls back."""
    library = tmp_path / "region.so"
    source = Path(__file__).with_name("openmp_region.c")
    command = ["gcc", "-fopenmp", "-shared", "-fPIC", "-o", library, source]
    built = subprocess.run(command, capture_output=True, text=True)
    if built.returncode:
        pytest.skip(f"gcc builds no OpenMP program: {built.stderr[:200]}")
    return library


def call_in_region(library, first):
    import ctypes
    import threading

    if first == "ours":
        import s2dq
        checked_call()
    region = ctypes.CDLL(library).run_in_region
    import s2dq

    lock, teams, limits, errors = threading.Lock(), [], [], []

    def callback(number):
        try:
            team, limit = checked_call(2**20, num_threads=2), s2dq.get_num_threads()
            with lock:
                teams.append(team)
                limits.append(limit)
        except BaseException as error:
            errors.append(error)

    kind = ctypes.CFUNCTYPE(None, ctypes.c_int)
    for _ in range(3):
        if region(2, kind(callback)) != 2:
            raise AssertionError("no region of two threads")
    if errors:
        raise errors[0]
    print(len(teams), max(teams), max(limits), checked_call())


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
@pytest.mark.skipif(not _kernels.build_info()[0].startswith("gcc"), reason="another OpenMP than gcc's")
@pytest.mark.parametrize("first", ["ours", "theirs"])
def test_call_in_a_parallel_region_of_others(region, first):
    """One thread, and a whole team again after the region.

    But for a wheel with a libgomp of its own, which does not see the regions of another one.
    """
    env = {"OMP_NUM_THREADS": "2", "OMP_DYNAMIC": "false"}
    output = run_child(call_in_region, str(region), first, helpers=[checked_call], env=env).split()
    team = str(min(2, full_team()))
    inside = team if OWN_OPENMP else "1"
    assert output == ["6", inside, inside, team]


def call_in_a_region_of_one(library):
    """Threads are refused there behind a first call."""
    import ctypes
    import os
    import resource

    import s2dq

    region = ctypes.CDLL(library).run_in_region
    teams = [checked_call(2**20, num_threads=2)]
    if os.geteuid() == 0:
        os.setuid(65534)

    def callback(number):
        for _ in range(2):
            teams.append(checked_call(2**20, num_threads=2))
            resource.setrlimit(resource.RLIMIT_NPROC, (0, resource.getrlimit(resource.RLIMIT_NPROC)[1]))

    region(1, ctypes.CFUNCTYPE(None, ctypes.c_int)(callback))
    print(*teams, s2dq.get_num_threads())


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
@pytest.mark.skipif(sys.platform != "linux", reason="needs RLIMIT_NPROC")
@pytest.mark.skipif(OWN_OPENMP or not _kernels.build_info()[0].startswith("gcc"), reason="another OpenMP than gcc's")
def test_call_in_a_region_of_one_thread_of_others(region):
    """It is one: OpenMP makes a team in it anew every time, and ends the interpreter where it cannot."""
    output = run_child(call_in_a_region_of_one, str(region), helpers=[checked_call], env={"OMP_NUM_THREADS": "2"})
    team = str(min(2, full_team()))
    assert output.split() == [team, "1", "1", team]


def scratch_in_region(library):
    """Calls that go through scratch rows, on all threads of a region, which number themselves from 0 to 5."""
    import ctypes
    import threading

    import numpy as np

    import s2dq
    from s2dq import _kernels, operators

    x = np.random.default_rng(20250301).integers(-128, 128, (4, 60, 90, 48), np.int8)
    arguments = {"out_format": "NCHW_VECT_C", "vect": 32}
    right = s2dq.space_to_depth(x, 5, **arguments)
    programs = []
    made = _kernels.Program
    _kernels.Program = lambda table: programs.append(made(table)) or programs[-1]
    operators.program_of.cache_clear()
    s2dq.space_to_depth(x[:, ::-1], 5, **arguments)
    lock, seen = threading.Lock(), []

    def callback(number):
        wrong = sum(not np.array_equal(s2dq.space_to_depth(x, 5, **arguments), right) for _ in range(20))
        with lock:
            seen.append((number, wrong))

    ctypes.CDLL(library).run_in_region(6, ctypes.CFUNCTYPE(None, ctypes.c_int)(callback))
    print(programs[0].scratch > 4096, sorted(seen) == [(number, 0) for number in range(6)])


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
@pytest.mark.skipif(not _kernels.build_info()[0].startswith("gcc"), reason="another OpenMP than gcc's")
def test_scratch_rows_in_a_parallel_region_of_others(region):
    """One row is enough for one thread, whatever its number is: rows of others were beyond the end."""
    assert run_child(scratch_in_region, str(region), env={"OMP_NUM_THREADS": "2"}).split() == ["True", "True"]


def fit_beside_us(first):
    """Teams around fits of scikit-learn, which brings its own OpenMP: of the parent and of forked children."""
    import importlib

    for name in ("sklearn.cluster", "s2dq") if first == "sklearn" else ("s2dq", "sklearn.cluster"):
        importlib.import_module(name)
    import numpy as np
    import threadpoolctl
    from sklearn.cluster import KMeans
    from sklearn.ensemble import HistGradientBoostingRegressor

    points = np.random.default_rng(20250301).standard_normal((4000, 8))

    def fit():
        KMeans(8, n_init=1, random_state=0).fit(points)
        return HistGradientBoostingRegressor(max_iter=3).fit(points, points[:, 0]).n_iter_

    teams = [checked_call()]
    for _ in range(2):
        if fit() != 3:
            raise AssertionError("the fit is not what it was")
        teams += [checked_call(), in_fork(checked_call), in_fork(checked_call, 2**20, 2), checked_call()]
    pools = [pool for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "openmp"]
    print(max(pool["num_threads"] for pool in pools), *teams)


@pytest.mark.parametrize("first", ["sklearn", "s2dq"])
def test_fork_beside_scikit_learn(first):
    """In either order of imports; the children make our calls only, for its own hang there."""
    pytest.importorskip("sklearn")
    pool, *teams = map(int, run_child(fit_beside_us, first, helpers=HELPERS, timeout=2 * DEADLINE).split())
    assert len(teams) == 9
    assert pool == full_team()
    parent, children = teams[0:2] + teams[4:6] + teams[8:], teams[2:4] + teams[6:8]
    assert set(parent) == {full_team()}
    assert all(1 <= team <= full_team() for team in children)


# ---------------------------------------------------------------------------------------------- sub-interpreters


def import_in_sub_interpreters(main_first):
    import warnings

    warnings.simplefilter("ignore")
    try:
        import _interpreters as interpreters
    except ImportError:
        import _xxsubinterpreters as interpreters

    def run():
        numpy_is_here = False
        try:
            import numpy  # noqa: F401 - whether it can be
            numpy_is_here = True
            checked_call(2**20, num_threads=2)
        except ImportError as error:
            print("s2dq" if numpy_is_here else "NumPy", "refuses", *str(error).split(), flush=True)
        else:
            print("right", flush=True)

    code = """if True:
        import warnings
        warnings.simplefilter("ignore")
        numpy_is_here = False
        try:
            import numpy as np
            numpy_is_here = True
            import s2dq
        except ImportError as error:
            print("s2dq" if numpy_is_here else "NumPy", "refuses", *str(error).split(), flush=True)
        else:
            x = np.arange(2**20, dtype=np.int8).reshape(1, 1024, 1024, 1)
            deep = s2dq.space_to_depth(x, 2, num_threads=2)
            assert (deep[0, :, :, 1] == x[0, ::2, 1::2, 0]).all()
            print("right", flush=True)
        """
    if main_first:
        run()
    for _ in range(3):
        new = interpreters.create()
        failure = interpreters.run_string(new, code)
        if failure is not None:
            raise AssertionError(failure)
        interpreters.destroy(new)
    run()


@pytest.mark.skipif(
    not any(map(importlib.util.find_spec, ("_interpreters", "_xxsubinterpreters"))), reason="no sub-interpreters here"
)
@pytest.mark.parametrize("main_first", [True, False])
def test_sub_interpreters(main_first):
    """Right bytes or ImportError, in the main interpreter too: NumPy loads into one of them.

    Which one is NumPy's to say: newer ones load into none but the main one. There it must be right.
    """
    output = run_child(import_in_sub_interpreters, main_first, helpers=[checked_call]).splitlines()
    assert len(output) == (5 if main_first else 4)
    assert all(line == "right" or line.startswith(("NumPy refuses", "s2dq refuses")) for line in output), output
    loaded = [line for line in output if not line.startswith("NumPy")]
    assert loaded[0] == "right"
    if main_first:
        assert loaded[0] == output[0] and loaded[-1] == output[-1] == "right"

"""Every instruction set that this machine runs does what the operators promise, not only the best one.

The suites of the operators run once more in child processes for each of the others, `S2DQ_ISA` set; the child's
conftest refuses to run with any other kernels than those. `S2DQ_TEST_LONG=1` adds those that take minutes.
"""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

import s2dq
from guarded import run_child
from s2dq import _kernels

OTHERS = [name for name in _kernels.available_isas() if name != _kernels.isa()]
KNOWN = ("portable", "neon", "avx2", "avx512vbmi")
SUITES = {
    "short": ("properties", "dtypes", "arrays", "out", "worked_cases", "lookup", "cases", "guard_pages"),
    "long": ("operators", "preprocess", "postprocess", "quantized"),
}
LEAST = {"short": 1100, "long": 2900}  # tests; all of the suites but the largest cases
LONG = os.environ.get("S2DQ_TEST_LONG") == "1"


def run_suites(suites, largest):
    """Run test files and print how many tests passed; of the named cases, those of sources up to `largest` bytes."""
    import sys
    from math import prod
    from pathlib import Path

    import numpy as np
    import pytest

    import guarded
    from s2dq import _kernels

    class Session:
        passed = 0

        def pytest_collection_modifyitems(self, items):
            items[:] = [item for item in items if self.is_wanted(item)]

        def is_wanted(self, item):
            values = item.callspec.params if hasattr(item, "callspec") else {}
            if item.path.stem != "test_cases":
                return "isa" not in values  # what starts children for every instruction set
            case = values.get("case")
            wanted = "gives_what_the_reference_gives" in item.name and hasattr(case, "shape")
            return wanted and prod(case.shape) * np.dtype(case.dtype).itemsize <= largest

        def pytest_runtest_logreport(self, report):
            self.passed += report.when == "call" and report.passed

    tests = Path(guarded.__file__).parent
    files = [str(tests / f"test_{suite}.py") for suite in suites]
    session = Session()
    options = ["-q", "-x", "-p", "no:cacheprovider", "--hypothesis-profile=few", f"--rootdir={tests.parent}"]
    code = pytest.main([*options, *files], plugins=[session])
    print(f"\n{int(code)} {session.passed} {_kernels.isa()}")
    sys.exit(int(code))


@pytest.fixture(scope="module")
def sessions(request):
    """All of the children at once: they share the cores."""
    items = [item for item in request.session.items if item.name.startswith("test_operator_suites_on[")]
    tests = [item.callspec.params for item in items]
    chosen = [(test["name"], test["length"]) for test in tests if LONG or test["length"] == "short"]
    with ThreadPoolExecutor(max(1, len(OTHERS))) as pool:
        yield {
            (name, length): pool.submit(
                run_child, run_suites, SUITES[length], 1 << 21, timeout=900, env={"S2DQ_ISA": name})
            for name, length in chosen
        }  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize(
    "length", ["short", pytest.param("long", marks=pytest.mark.skipif(not LONG, reason="needs S2DQ_TEST_LONG=1"))]
)
def test_operator_suites_on(name, length, sessions):
    output = sessions[name, length].result()
    code, passed, used = output.splitlines()[-1].split()
    assert (code, used) == ("0", name), output
    assert int(passed) > LEAST[length], output


def show_isa():
    import s2dq
    from s2dq import _kernels

    s2dq.show_config()
    print(_kernels.isa())


@pytest.mark.parametrize("name", _kernels.available_isas())
def test_forced_instruction_set_is_used_and_shown(name):
    *config, last = run_child(show_isa, env={"S2DQ_ISA": name}).splitlines()
    assert last == name
    available = ", ".join(_kernels.available_isas())
    assert f"instruction set: {name} (of {available})" in config


@pytest.mark.parametrize("blank", ["", "  "])
def test_best_instruction_set_is_the_default(blank):
    *_, last = run_child(show_isa, env={"S2DQ_ISA": blank}).splitlines()
    assert last == _kernels.available_isas()[-1]


def test_this_session_runs_what_it_was_told(capsys):
    wanted = os.environ.get("S2DQ_ISA", "").strip()
    assert _kernels.isa() == (wanted or _kernels.available_isas()[-1])
    s2dq.show_config()
    assert f"instruction set: {_kernels.isa()} (of " in capsys.readouterr().out


def test_portable_comes_first_and_names_are_known():
    available = _kernels.available_isas()
    assert available[0] == "portable"
    assert available == [name for name in KNOWN if name in available]


def import_fails():
    try:
        import s2dq
    except ImportError as error:
        print(error)
    else:
        print("imported", s2dq)


IMPOSSIBLE = [name for name in KNOWN if name not in _kernels.available_isas()]


@pytest.mark.parametrize("name", [*IMPOSSIBLE, "sse9", "AVX2", "avx512", "portable,avx2", "0", "портативный"])
def test_impossible_instruction_set_is_an_import_error(name):
    message = run_child(import_fails, env={"S2DQ_ISA": name})
    assert message.startswith(f"S2DQ_ISA={name!r} "), message
    assert ", ".join(_kernels.available_isas()) in message


def run_one_test(name):
    import sys
    from pathlib import Path

    import pytest

    import guarded

    file = Path(guarded.__file__).with_name("test_isas.py")
    sys.exit(int(pytest.main(["-q", "-p", "no:cacheprovider", f"{file}::{name}"])))


def test_session_with_other_kernels_than_told_is_refused():
    """The check in conftest.py can fail: the variable is set after the kernels were chosen."""

    with pytest.raises(AssertionError, match=r"S2DQ_ISA='neon9', but the kernels in use are"):
        run_child(set_too_late, helpers=(run_one_test,))


def set_too_late():
    import os

    import s2dq._kernels  # noqa: F401

    os.environ["S2DQ_ISA"] = "neon9"
    run_one_test("test_portable_comes_first_and_names_are_known")

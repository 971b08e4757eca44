"""What .ci/gate.py finds, and what it does not: by figures that are made up, and by a package that was slowed down.

`python .ci/gate.py --prove 5` is the long form, with two builds of which one has a slower driver.
"""

import importlib.util
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from guarded import LIBRARIES, PACKAGE, SANITIZED

SCRIPT = Path(__file__).parents[1] / ".ci" / "gate.py"
pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the gate is for Linux"),
    pytest.mark.thread_unsafe(reason="changes the script's module, and looks at the clock"),
]


@pytest.fixture
def gate():
    spec = importlib.util.spec_from_file_location("gate", SCRIPT)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_every_benchmark_in_copies_is_compared():
    """Those that a class has from another, too, and those of several parameters."""
    code = ("import runpy, sys; from pathlib import Path; "
            "print(*runpy.run_path(sys.argv[1])['load'](Path(sys.argv[2])), sep='\\n')")
    command = [sys.executable, "-P", "-c", code, str(SCRIPT), str(PACKAGE.parent)]
    names = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    assert {name.split("(")[0] for name in names} == {
        "operators.Throughput.track_ratio_to_copy", "operators.Offsets.track_ratio_to_copy",
        "operators.SmallCall.track_ratio_to_copy", "operators.SmallCall.track_fresh_ratio_to_copy",
        "preprocess.Preprocess.track_ratio_to_copy", "preprocess.PreprocessFloats.track_ratio_to_copy",
        "preprocess.Postprocess.track_ratio_to_copy"}
    assert "operators.Offsets.track_ratio_to_copy(camera_640_to_int8x32, 16)" in names


def made_up(gate, monkeypatch, truth, noise, rng):
    """`slower` on ratios from nowhere: the truth for HEAD by name, 1 for the base, times what each process has wrong
    for each name, times what each ratio has wrong. "new" and "lost" are what only one of them runs."""

    class Measurer:
        def __init__(self, python, package):
            self.names = list(truth)
            self._is_head = package == "head"
            self._off = {name: rng.lognormvariate(0, noise) for name in truth}

        def ratio(self, name):
            value = truth[name]
            if value in ("new", "lost"):
                return 1.0 if self._is_head == (value == "new") else None
            wrong = self._off[name] * rng.lognormvariate(0, noise / 2)
            if rng.random() < 0.02:  # something else ran meanwhile
                wrong *= rng.uniform(1.3, 3)
            return wrong * (value if self._is_head else 1.0)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

    monkeypatch.setattr(gate, "Measurer", Measurer)
    return gate.slower("python", ("base", "head"), "", gate.FACTOR)


@pytest.mark.parametrize("seed", range(20))
def test_noise_is_no_regression_and_a_slowdown_is_one(gate, monkeypatch, seed):
    rng = random.Random(seed)
    same = {f"case{number}": 1.0 for number in range(200)}
    seen, bad = made_up(gate, monkeypatch, same, 0.04, rng)
    assert len(seen) == 200 and not bad
    one = {**same, "case77": 1.3}
    seen, bad = made_up(gate, monkeypatch, one, 0.04, rng)
    assert set(bad) == {"case77"}
    seen, bad = made_up(gate, monkeypatch, dict.fromkeys(same, 1.3), 0.04, rng)
    assert len(bad) > gate.MOST_SUSPECTS // 2


def test_faster_is_no_regression_and_what_is_new_is_left_out(gate, monkeypatch):
    seen, bad = made_up(gate, monkeypatch, {"faster": 0.5, "more": "new", "same": 1.0}, 0.01, random.Random(1))
    assert set(seen) == {"faster", "same"} and not bad


def test_what_no_longer_runs_is_no_pass(gate, monkeypatch):
    with pytest.raises(gate.Failure, match="HEAD does not: gone$"):
        made_up(gate, monkeypatch, {"gone": "lost", "same": 1.0}, 0.01, random.Random(1))
    with pytest.raises(gate.Failure, match="HEAD does not: a, b$"):
        gate.check_kept({"a": 1, "b": 2, "c": 3}, {"c": 3, "d": 4})


def test_the_report_says_which(gate, capsys):
    seen = {"a": ([1.0, 1.1], [1.0, 1.1]), "b": ([2.0], [3.0])}
    gate.report(seen, {"b": seen["b"]}, 1.15, "copies")
    assert capsys.readouterr().out == (
        "b: 2 -> 3 copies, 1.50 times as many\n"
        "2 benchmarks, 1 SLOWER by more than 1.15; the middle one takes 1.250 times as many\n"
    )
    with pytest.raises(gate.Failure, match="no benchmark"):
        gate.report({}, {}, 1.15, "copies")


def test_what_prove_changes_is_there(gate, tmp_path):
    driver = Path(__file__).parents[1] / gate.DRIVER
    (tmp_path / gate.DRIVER).parent.mkdir()
    (tmp_path / gate.DRIVER).write_text(driver.read_text())
    gate.plant(tmp_path)
    assert (tmp_path / gate.DRIVER).read_text().count("run_slower(shift, task)") == 2
    (tmp_path / gate.DRIVER).write_text("nothing of it")
    with pytest.raises(gate.Failure, match="no longer"):
        gate.plant(tmp_path)


# ------------------------------------------------------------------------------------------------- real processes

CASES = r"tiny_s2d_nhwc\)|tiny_pack_v4\)"
SLOWER = """

def _twice(function):
    def call(*args, **kwargs):
        function(*args, **kwargs)
        function(*args, **kwargs)
        return function(*args, **kwargs)
    return call

space_to_depth = _twice(space_to_depth)
"""


@pytest.fixture
def packages(tmp_path):
    """The package that is installed, and one whose space_to_depth runs three times."""
    for name in ("base", "head"):
        for folder in PACKAGE, *LIBRARIES:
            # With its bytecode: valgrind takes half a minute to run Python's compiler on it.
            shutil.copytree(folder, tmp_path / name / folder.name)
    with (tmp_path / "head" / "s2dq" / "__init__.py").open("a") as file:
        file.write(SLOWER)
    return tmp_path / "base", tmp_path / "head"


def test_a_slower_package_is_found(gate, packages):
    """A factor that no noise reaches, even on a machine that does other things."""
    base, head = packages
    assert not gate.slower(sys.executable, (base, base), CASES, 1.8)[1]
    seen, bad = gate.slower(sys.executable, (base, head), CASES, 1.8)
    assert {name.partition("(")[2] for name in seen} == {"tiny_s2d_nhwc)", "tiny_pack_v4)"}
    assert bad and {name.partition("(")[2] for name in bad} == {"tiny_s2d_nhwc)"}


@pytest.mark.skipif(SANITIZED, reason="valgrind does not run what a sanitizer has changed")
def test_more_instructions_are_found(gate, packages, tmp_path):
    if not shutil.which("valgrind"):
        pytest.skip("no valgrind")
    base, head = packages
    seen, bad = gate.more_instructions(sys.executable, (base, head), CASES, gate.COUNT_FACTOR, tmp_path)
    assert len(seen) == 2 and [name.partition("(")[2] for name in bad] == ["tiny_s2d_nhwc)"]
    (base_count,), (again,) = seen[next(name for name in seen if "pack" in name)]
    assert base_count == pytest.approx(again, rel=0.005) and again > 1000  # the same within half a hundredth


def test_no_history_is_said(tmp_path):
    """A checkout without git: nothing to compare with is not a pass."""
    shutil.copytree(SCRIPT.parent, tmp_path / ".ci")
    done = subprocess.run(
        [sys.executable, tmp_path / ".ci" / "gate.py", "previous"], capture_output=True, text=True, timeout=180,
        env={"PATH": "/nowhere"},
    )  # fmt: skip
    assert done.returncode == 77 and done.stdout.startswith("NOT RUN: no earlier commit")

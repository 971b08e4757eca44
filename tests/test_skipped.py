"""The check that ends CI: no test is skipped in every one of its runs."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / ".ci" / "skipped.py"
pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="needs the checkout")


def module():
    spec = importlib.util.spec_from_file_location("ci_skipped", SCRIPT)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def verdict(folder, *runs):
    """Exit code and lines of the check, for the reports of some runs over two files of tests."""
    tests, reports = folder / "tests", folder / "reports"
    for path in (tests / "test_a.py", tests / "peers" / "test_b.py"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    reports.mkdir()
    for number, run in enumerate(runs):
        (reports / f"{number}.json").write_text(json.dumps(run))
    done = subprocess.run([sys.executable, SCRIPT, reports, tests], capture_output=True, text=True, timeout=180)
    return done.returncode, (done.stdout + done.stderr).splitlines()


A, B = "tests/test_a.py", "tests/peers/test_b.py"


def test_a_test_that_ran_once_is_enough(tmp_path):
    code, lines = verdict(tmp_path, {f"{A}::one": "", f"{A}::two": "no peer", B: "no peer"},
                          {f"{A}::two": "", f"{B}::three": ""})
    assert code == 0, lines


def test_a_test_that_every_run_skips_is_an_error(tmp_path):
    code, lines = verdict(tmp_path, {f"{A}::one": "", f"{A}::two": "no peer", f"{B}::three": ""},
                          {f"{A}::two": "no processor"})
    assert code == 1 and lines[0] == f"{A}::two: skipped in every run (no processor)"


def test_a_file_that_every_run_skips_is_an_error(tmp_path):
    code, lines = verdict(tmp_path, {f"{A}::one": "", B: "no peer"}, {B: "no peer"})
    assert code == 1 and lines[0] == f"{B}: skipped in every run (no peer)"


def test_a_file_that_no_run_names_is_an_error(tmp_path):
    code, lines = verdict(tmp_path, {f"{A}::one": ""})
    assert code == 1 and lines[0] == f"{B}: reached by no run"


def test_no_report_at_all_is_an_error(tmp_path):
    assert verdict(tmp_path)[0] == 1


def test_what_runs_elsewhere_is_there():
    """The list of exceptions names tests and scripts that exist."""
    root = SCRIPT.parents[1]
    for name, where in module().ELSEWHERE.items():
        path, _, test = name.partition("::")
        assert f"def {test}(" in (root / path).read_text(), name
        assert (root / where.split()[0]).exists(), where

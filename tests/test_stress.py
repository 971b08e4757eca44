"""The long tests of `tests/stress` in a short form, and proof that their checks can fail."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

from guarded import SANITIZED, run_child

STRESS = Path(__file__).parent / "stress"
linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
plain_memory = pytest.mark.skipif(SANITIZED, reason="a sanitizer holds back memory that was freed")


# ------------------------------------------------------------------------------------------------------ soak


def soak_some_steps(stress, steps, plant):
    """Print what the soak makes of `steps` steps, some of which leak what `plant` says."""
    import json
    import sys
    import threading

    sys.path.insert(0, stress)
    import numpy as np
    import soak

    kept = []

    def leak_memory(source):
        kept.append(np.ones(1 << 21, np.int8))  # the interpreter's own comes and goes by 10 MiB without the GIL
        return 0

    def leak_a_thread(source):
        kept.append(threading.Thread(target=threading.Event().wait, daemon=True))
        kept[-1].start()
        return 0

    def change_a_byte(source):
        x = np.zeros((1, 4, 4, 1), np.int8)
        result = soak.s2dq.space_to_depth(x, 2)
        result[0, 0, 0, 0] = 1
        assert not soak.calls.differs(result, soak.s2dq.reference.space_to_depth(x, 2)), "other bytes"

    more = {"": (), "memory": (leak_memory,) * 4, "thread": (leak_a_thread,) * 4, "byte": (change_a_byte,)}[plant]
    samples, made, kinds = soak.soak(1, steps=steps, more=more, distinct=40)
    print(json.dumps({"verdict": soak.verdict(samples), "calls": made, "kinds": kinds}))


def soaked(steps, plant=""):
    return json.loads(run_child(soak_some_steps, str(STRESS), steps, plant, timeout=120))


@linux
@plain_memory
def test_soak_stays_flat():
    found = soaked(100)
    assert found["verdict"] == ""
    assert found["calls"] > 500 and all(found["kinds"].values()), found


@linux
@plain_memory
@pytest.mark.parametrize("plant, told", [("memory", "memory grew by"), ("thread", "OS threads grew by")])
def test_soak_finds_a_leak(plant, told):
    assert told in soaked(60, plant)["verdict"]


@linux
def test_soak_finds_a_wrong_byte():
    with pytest.raises(AssertionError, match="other bytes"):
        soaked(200, "byte")


# -------------------------------------------------------------------------------------------------- coverage


@pytest.fixture(scope="module")
def covered():
    spec = importlib.util.spec_from_file_location("covered", STRESS / "covered.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


NO_STATEMENT = 9999  # a line that gcov knows and the C does not name


def reports(folder, missing, counts):
    """What coverage and gcov write of a file of 4 lines, and of a .pyx and a header with these ``{line: count}``; C."""
    python = {"files": {"s2dq/a.py": {"summary": {"num_statements": 4}, "missing_lines": missing}}}
    lines = [{"line_number": number, "count": count} for number, count in counts.items()]
    names = ("s2dq/_kernels.pyx", "build/temp/s2dq/_micro/a.h", "/usr/include/b.h", "s2dq/_kernels.c")
    gcov = {"files": [{"file": name, "lines": lines} for name in names]}
    code = "".join(f'  /* "s2dq/_kernels.pyx":{number}\n * y = x\n */\n' for number in counts if number != NO_STATEMENT)
    paths = folder / "python.json", folder / "gcov.json", folder / "kernels.c"
    for path, text in zip(paths, (json.dumps(python), json.dumps(gcov), code), strict=True):
        path.write_text(text)
    return [str(path) for path in paths]


def test_coverage_shows_what_was_not_run(covered, tmp_path, capsys):
    counts = {3: 0, 4: 0, 7: 0, 9: 5, NO_STATEMENT: 0}
    assert covered.main(reports(tmp_path, [2], counts)) == 0  # floors are for the whole suite
    _, *rows, last = capsys.readouterr().out.splitlines()
    assert [row.split(maxsplit=4) for row in rows] == [
        ["s2dq/a.py", "4", "1", "75.0", "2"],
        ["s2dq/_micro/a.h", "5", "4", "20.0", "3-4, 7, 9999"],
        ["s2dq/_kernels.pyx", "4", "3", "25.0", "3-4, 7"],
    ]
    assert last == "lines run: C 20.00 %, Cython 25.00 %, Python 75.00 %"


def test_coverage_counts_a_header_for_all_instruction_sets(covered):
    """It is in the report once for each function that is made of a line of it, and was run if one of them was."""
    lines = [{"line_number": 1, "count": 0}, {"line_number": 1, "count": 2}, {"line_number": 2, "count": 0}]
    (file,) = covered.of_gcov({"files": [{"file": "s2dq/_micro/a.h", "lines": lines}]}, "")
    assert file == ("C", "s2dq/_micro/a.h", 2, [2])


@pytest.mark.parametrize("missing, counts, told", [
    ([], {1: 1}, []),
    ([1, 2], {1: 1}, ["Python: 50.00 % of the lines were run"]),
    ([], {1: 1, 2: 0}, ["Cython: 50.00 % of the lines were run"]),
    ([1], {1: 0}, ["Python: 75.00 %", "Cython: 0.00 %"]),
])  # fmt: skip
def test_coverage_fails_below_a_floor(covered, tmp_path, capsys, missing, counts, told):
    assert covered.main([*reports(tmp_path, missing, counts), "--floors"]) == bool(told)
    said = capsys.readouterr().out.partition("lines run:")[2].splitlines()[1:]
    assert len(said) == len(told) and all(line.startswith(start) for line, start in zip(said, told)), said


def test_coverage_of_nothing_is_below_its_floor(covered, tmp_path, capsys):
    python, gcov, code = reports(tmp_path, [], {1: 1})
    Path(gcov).write_text('{"files": []}')
    assert covered.main([python, gcov, code, "--floors"]) == 1
    assert "Cython: nothing was measured" in capsys.readouterr().out

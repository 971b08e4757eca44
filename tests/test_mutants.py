"""What tests/stress/mutants.py makes of Python text, and mutants that the tests must notice."""

import ast
import importlib
import importlib.util
import shutil
import subprocess
from pathlib import Path

import pytest

from guarded import SANITIZED

SCRIPT = Path(__file__).parent / "stress" / "mutants.py"
pytestmark = pytest.mark.thread_unsafe(reason="runs pytest")


def module():
    spec = importlib.util.spec_from_file_location("mutants", SCRIPT)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def changed_lines(text):
    """{(before, after)} of the lines that mutants of a text of one line each change."""
    return {mutant.applied(text) for mutant in module().mutants_of("some.py", text)}


def test_every_kind_of_change():
    assert changed_lines("y = a < b") == {"y = (a <= b)"}
    assert changed_lines("y = a <= b < c") == {"y = (a < b < c)", "y = (a <= b <= c)"}
    assert changed_lines("y = 'é' + f(a, b)") == {"y = 'é' + f(b, a)"}  # text is not added to
    assert changed_lines("y = max(a, b)") == set()
    assert changed_lines("y = a and b") == {"y = (a or b)", "y = a", "y = b"}
    assert changed_lines("y = 1") == {"y = 2", "y = 0"}
    assert changed_lines("y = -x // n") == {"y = x // n", "y = (-x * n)"}
    assert changed_lines("y = a if t else b") == {"y = a", "y = b"}
    assert changed_lines("y += a") == {"y -= a", "pass"}
    assert changed_lines("raise E") == {"pass"}
    assert changed_lines("def f(x: T[1]) -> T[2]:\n    '''words'''\n    return x") == {
        "def f(x: T[1]) -> T[2]:\n    '''words'''\n    return None"}
    assert changed_lines("if a:\n    f()") == {"if True:\n    f()", "if False:\n    f()", "if a:\n    pass"}


def test_mutants_have_names_of_their_own():
    names = [m.name for m in module().mutants_of("some.py", "y = 1 + 1\nz = 1 or 2\nif a:\n    z = 1 or 2\n")]
    assert len(names) == len(set(names)) == 19
    assert "some.py: 1 -> 2 in y = 1 + 1 (2)" in names and "some.py: 1 + 1 -> (1 - 1)" in names


def test_every_mutant_is_in_one_part():
    mutants = module()
    found = mutants.mutants_of("s2dq/_layout.py", mutants.text_of("s2dq/_layout.py"))
    parts = [[m.name for m in found if m in mutants.Part(f"{k}/5")] for k in range(1, 6)]
    assert all(parts) and sorted(sum(parts, [])) == sorted(m.name for m in found)
    assert all(m in mutants.EVERYTHING for m in found)
    for text in ("0/5", "6/5", "1", "a/b"):
        with pytest.raises(ValueError):
            mutants.Part(text)


@pytest.mark.parametrize("file", module().TESTS)
def test_mutants_of_the_package_are_python(file):
    mutants = module()
    text = mutants.text_of(file)
    found = mutants.mutants_of(file, text)
    assert len(found) > 40
    for mutant in found[::41]:
        ast.parse(mutant.applied(text))
        assert mutant.before == text[mutant.start : mutant.start + len(mutant.before)]


def test_text_at_a_commit(tmp_path, monkeypatch):
    if not shutil.which("git"):
        pytest.skip("no git")
    mutants = module()
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    path = tmp_path / "s2dq" / "code.py"
    path.parent.mkdir()
    path.write_text("a = b + 1\n")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=x", "-c", "user.email=x@localhost"]
    for command in (["init", "-q"], ["add", "--all"], ["commit", "-q", "-m", "old"]):
        subprocess.run([*git, *command], check=True)
    path.write_text("c = d - 2\na = b + 1\n")
    old = mutants.text_at("HEAD", "s2dq/code.py").decode()
    assert old == "a = b + 1\n"
    assert mutants.text_at("HEAD", "s2dq/nowhere.py") == b""
    with pytest.raises(subprocess.CalledProcessError):
        mutants.text_at("no-such-commit", "s2dq/code.py")
    names = {m.name for m in mutants.mutants_of("s2dq/code.py", old)}
    new = [m for m in mutants.mutants_of("s2dq/code.py", path.read_text()) if m.name not in names]
    assert {m.line for m in new} == {1} and {m.before for m in new} == {"d - 2", "2"}


def test_equivalent_mutants_exist():
    """What is listed as meaning the same is still one of the mutants."""
    mutants = module()
    names = {m.name for file in mutants.TESTS for m in mutants.mutants_of(file, mutants.text_of(file))}
    assert mutants.equivalent() <= names


PLANTED = [  # file, what is there once, what it becomes, who notices
    ("s2dq/_layout.py", "return -(-count // lanes)", "return count // lanes", ["worked_cases"]),
    ("s2dq/_plan.py", "(first - 1) * size, size)", "(first + 1) * size, size)", ["worked_cases"]),
    ("s2dq/_lookup.py", "if (flips == flips[0, 0]).all():", "if (flips != flips[0, 0]).all():", ["lookup"]),
    ("s2dq/operators.py", "if pads is None else pads", "if pads is not None else pads", ["worked_cases"]),
]


@pytest.mark.skipif(SANITIZED, reason="limits the address space")
def test_planted_mutants_are_noticed(tmp_path, request):
    mutants = module()
    bench = mutants.Bench(tmp_path)
    request.addfinalizer(bench.close)
    assert not bench.fails(None, {"worked_cases": 120, "lookup": 120}), bench.said
    for file, before, after, tests in PLANTED:
        text = mutants.text_of(file)
        assert text.count(before) == 1, f"{file}: not once: {before}"
        planted = mutants.Mutant(file, 0, text.index(before), before, after)
        assert bench.fails(planted, dict.fromkeys(tests, 120)) == "failed", f"{planted.name}\n{bench.said}"


@pytest.mark.skipif(SANITIZED, reason="limits the address space")
def test_tests_are_chosen_by_the_lines_that_they_run(tmp_path, request):
    pytest.importorskip("coverage")
    mutants = module()
    bench = mutants.Bench(tmp_path / "0")
    request.addfinalizer(bench.close)
    file, before, after, (test,) = PLANTED[0]
    text = mutants.text_of(file)
    start = text.index(before)
    planted = mutants.Mutant(file, text.count("\n", 0, start) + 1, start, before, after)
    found = bench.learn(test, [file])
    here, elsewhere = found[file, planted.line], set().union(*found.values()) - found[file, planted.line] - {""}
    assert here and elsewhere and "" not in here, bench.said
    like = mutants.Bench(tmp_path / "1", bench)
    request.addfinalizer(like.close)
    assert like.fails(planted, {test: 120}, {test: sorted(here)}) == "failed", like.said
    assert not like.fails(planted, {test: 120}, {test: sorted(elsewhere)}), like.said


def test_lines_of_statements():
    """A mutant on a line that Python does not report is tried by the tests of its statement."""
    text = "a = [\n 1,\n 2]\nif (a and\n    b):\n    c = (\n      3)\nelse: d = 4\n"
    found = module().statements(text)
    ends = [(found[line][0], found[line][-1]) for line in range(1, 9)]
    assert ends == [(1, 3)] * 3 + [(4, 5)] * 2 + [(6, 7)] * 2 + [(8, 8)]


def test_a_first_look_is_by_the_narrowest_tests_and_some_others():
    sizes = {f"test_{k}": 100 - k for k in range(20)}
    chosen = module().first_look(set(sizes), sizes, 6)
    assert {"test_19", "test_18", "test_17"} < set(chosen) and 4 < len(chosen) == len(set(chosen)) <= 6
    assert sorted(module().first_look(set(sizes), sizes, 30)) == sorted(sizes)


# ------------------------------------------------------------------------------------------------ of the kernels


@pytest.fixture
def kernel_mutants(monkeypatch):
    monkeypatch.syspath_prepend(SCRIPT.parent)
    return importlib.import_module("kernel_mutants")


def test_equivalent_mutants_of_the_kernels_exist(kernel_mutants, tmp_path):
    """What is listed, single or as a line or a function, is still there."""
    pytest.importorskip("tree_sitter_c")
    listed = kernel_mutants.equivalent(kernel_mutants.EQUIVALENT)
    kernels = kernel_mutants.Kernels(tmp_path, sorted({entry.split(":")[0].removeprefix("s2dq/") for entry in listed}))
    assert listed <= set().union(*(kernels.entries(k) for k in range(len(kernels.mutants))))


def woven(kernel_mutants, raw, spots, is_c):
    """A text with all its mutants in it, numbered as they come."""
    numbers = {}
    return kernel_mutants.woven(raw, spots, lambda *spot: numbers.setdefault(spot, len(numbers)), is_c)


def test_cython_with_all_mutants(kernel_mutants):
    text = "cdef int f(int a):\n    cdef int b = <int>a + 1\n    if a < b and b:\n        b = a\n    return b\n"
    found = woven(kernel_mutants, text.encode(), kernel_mutants.CythonText(text).spots, False)
    lines = found.splitlines()
    assert len(lines) == 5  # a compiler's complaint about a line is about that line here
    assert lines[1].startswith("    cdef int b = ") and "<int>a - 1" in lines[1]
    assert "a <= b" in lines[2] and "a < b or b" in lines[2] and "(True)" in lines[2]
    assert lines[3].startswith("        if not S2DQ_M(") and lines[3].endswith(": b = a")


def test_c_with_all_mutants(kernel_mutants, tmp_path):
    """The text is C still, and each number changes what it computes."""
    pytest.importorskip("tree_sitter_c")
    compiler = shutil.which("cc")
    if not compiler:
        pytest.skip("no C compiler")
    text = """\
#define TWICE(x) do { (x) = (x) * 2; \\
    } while (0)
static int table[3] = {1, 2, 3};
static int f(int a)
{
    int b = 0;
    for (int k = 0; k < 3; k++) b += table[k];
    if (a > 3) TWICE(b);
    else b = -b;
    return b + a;
}
"""
    spots = kernel_mutants.CText(text.encode()).spots
    body = woven(kernel_mutants, text.encode(), spots, True)
    count = body.count("S2DQ_M(")
    assert count > 15 and body.count("\n") == text.count("\n")
    program = tmp_path / "program.c"
    program.write_text(f"""\
#include <stdio.h>
#include <stdlib.h>
static int mutant;
static int S2DQ_M(int k) {{ return k == mutant; }}
{body}
int main(int count, char **words)
{{
    mutant = count > 1 ? atoi(words[1]) : -1;
    printf("%d %d %d", f(3), f(4), f(-5));
    return 0;
}}
""")
    subprocess.run([compiler, "-w", "-o", tmp_path / "program", program], check=True)

    def said(k):
        try:
            return subprocess.run([tmp_path / "program", str(k)], capture_output=True, text=True, timeout=1).stdout
        except subprocess.TimeoutExpired:  # a loop without an end
            return "late"

    assert said(-1) == "-3 16 -11"
    numbers = sorted({int(part.split(")")[0]) for part in body.split("S2DQ_M(")[1:]})
    assert sum(said(k) == "-3 16 -11" for k in numbers) <= 2  # one reads beyond the table, one is the same


def test_kernels_have_mutants(kernel_mutants, tmp_path):
    pytest.importorskip("tree_sitter_c")
    files = ["_kernels.pyx", "_micro/tile.h", "_micro/avx512.h"]
    kernels = kernel_mutants.Kernels(tmp_path, files)
    for file in files:
        of = [mutant for mutant in kernels.mutants if mutant.file == f"s2dq/{file}"]
        assert len(of) > 300
        text = (SCRIPT.parents[2] / "s2dq" / file).read_text()
        assert all(text[m.start :].startswith(m.before) and text[: m.start].count("\n") == m.line - 1 for m in of)

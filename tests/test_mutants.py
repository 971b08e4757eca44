"""What tests/stress/mutants.py makes of Python text, and mutants that the tests must notice."""

import ast
import importlib.util
from pathlib import Path

import pytest

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
    assert changed_lines("y = a and b") == {"y = (a or b)", "y = a", "y = b"}
    assert changed_lines("y = 1") == {"y = 2", "y = 0"}
    assert changed_lines("y = -x // n") == {"y = x // n", "y = (-x * n)"}
    assert changed_lines("y = a if t else b") == {"y = a", "y = b"}
    assert changed_lines("y += a") == {"y -= a", "pass"}
    assert changed_lines("raise E") == {"pass"}
    assert changed_lines("def f(x: T[1]) -> T[2]:\n    '''words'''\n    return x") == {
        "def f(x: T[1]) -> T[2]:\n    '''words'''\n    return None"}
    assert changed_lines("if a:\n    f()") == {"if True:\n    f()", "if False:\n    f()", "if a:\n    pass"}


@pytest.mark.parametrize("file", module().TESTS)
def test_mutants_of_the_package_are_python(file):
    mutants = module()
    text = mutants.text_of(file)
    found = mutants.mutants_of(file, text)
    assert len(found) > 40
    for mutant in found[::41]:
        ast.parse(mutant.applied(text))
        assert mutant.before == text[mutant.start : mutant.start + len(mutant.before)]


def test_equivalent_mutants_exist():
    """What is listed as meaning the same is still one of the mutants."""
    mutants = module()
    names = {m.name for file in mutants.TESTS for m in mutants.mutants_of(file, mutants.text_of(file))}
    assert mutants.equivalent() <= names


PLANTED = [  # file, what is there once, what it becomes, who notices
    ("s2dq/_layout.py", "return -(-count // lanes)", "return count // lanes", ["worked_cases"]),
    ("s2dq/_plan.py", "+ channel % lanes *", "- channel % lanes *", ["worked_cases"]),
    ("s2dq/_lookup.py", "if len(flips) == 1:", "if len(flips) != 1:", ["lookup"]),
    ("s2dq/operators.py", "if pads is None else pads", "if pads is not None else pads", ["worked_cases"]),
]


def test_planted_mutants_are_noticed(tmp_path, request):
    mutants = module()
    bench = mutants.Bench(tmp_path)
    request.addfinalizer(bench.close)
    assert not bench.fails(None, ["worked_cases", "lookup"], 120), bench.said
    for file, before, after, tests in PLANTED:
        text = mutants.text_of(file)
        assert text.count(before) == 1, f"{file}: not once: {before}"
        planted = mutants.Mutant(file, 0, text.index(before), before, after)
        assert bench.fails(planted, tests, 120) == "failed", f"{planted.name}\n{bench.said}"

"""The examples in docstrings, in the README and on the pages of docs/ do what they say."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import s2dq

README = Path(__file__).parent.parent / "README.md"
# `__main__` runs the command when it is imported.
MODULES = ["s2dq", *(module.name for module in pkgutil.walk_packages(s2dq.__path__, "s2dq.")
                     if not module.name.endswith(".__main__"))]
WITH_EXAMPLES = ("s2dq.operators", "s2dq.quantized", "s2dq.reference", "s2dq._threads", "s2dq._kernels",
                 "s2dq.kernels", "s2dq.compat.nnapi", "s2dq.compat.onnx", "s2dq.compat.openvino",
                 "s2dq.compat.tensorflow.v1", "s2dq.compat.torch", "s2dq.dask")
# Pages without a session. Ray is nowhere installed: what its page shows is examples/ray_batches.py, which is tested as
# the other examples are. The calls of systems.md are run by test_pages.py.
WITHOUT_SESSION = {"docs/api.md", "docs/changelog.md", "docs/command.md", "docs/compat/index.md",
                   "docs/contributing.md", "docs/index.md", "docs/policy.md", "docs/ray.md", "docs/speed.md",
                   "docs/systems.md"}
BUILT = ("docs/_build/", "docs/_generated/")  # by Sphinx
ALL_PAGES = ("README.md", *sorted(page for path in (README.parent / "docs").glob("**/*.md")
                                  if not (page := path.relative_to(README.parent).as_posix()).startswith(BUILT)))
PAGES = tuple(page for page in ALL_PAGES if page not in WITHOUT_SESSION)
# Packages that modules and pages need beyond those of s2dq itself.
NEEDED = {"s2dq.compat.torch": "torch", "docs/compat/onnx.md": "onnx", "docs/compat/pytorch.md": "torch",
          "s2dq.dask": "dask.array", "docs/dask.md": "dask.array", "docs/tutorial.md": "PIL"}


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    """Examples may write files, and may read those of the repository's examples/."""
    (tmp_path / "examples").symlink_to(README.parent / "examples", target_is_directory=True)
    monkeypatch.chdir(tmp_path)


def skip_without_its_package(name):
    if name in NEEDED:
        pytest.importorskip(NEEDED[name])


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name, capsys):
    skip_without_its_package(name)
    results = doctest.testmod(importlib.import_module(name))
    assert results.failed == 0, capsys.readouterr().out
    if name in WITH_EXAMPLES:
        assert results.attempted > 0, f"no examples in {name}"


def test_modules_were_found():
    assert {*WITH_EXAMPLES, "s2dq._kernels", "s2dq._plan", "s2dq.bench.cases"} <= set(MODULES), MODULES


@pytest.mark.parametrize("page", sorted(WITHOUT_SESSION))
def test_pages_without_a_session_have_none(page):
    assert page in ALL_PAGES
    assert ">>>" not in (README.parent / page).read_text(encoding="utf-8")


def python_blocks(text):
    """The fenced ``python`` blocks of a Markdown text, and the line each starts on."""
    for block in re.finditer(r"^```python[ \t]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        yield text.count("\n", 0, block.start()) + 1, block[1]


@pytest.mark.parametrize("page", PAGES)
def test_session_of_a_page(page, capsys):
    """All blocks, in order, as one session."""
    skip_without_its_package(page)
    runner, parser, names = doctest.DocTestRunner(), doctest.DocTestParser(), {}
    blocks = list(python_blocks((README.parent / page).read_text(encoding="utf-8")))
    for line, block in blocks:
        session = parser.get_doctest(block, names, f"{page}, line {line}", page, line)
        assert session.examples, f"{page}, line {line}: a python block without a >>> prompt is not tested"
        runner.run(session, clear_globs=False)
        names = session.globs
    assert runner.failures == 0, capsys.readouterr().out
    assert runner.tries > 0, f"{page} has no session"

"""Who may import whom: the contracts of pyproject.toml hold, and an import that breaks one is seen."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import s2dq

SOURCE = Path(s2dq.__file__).parent
ROOT = Path(__file__).parents[1]
# A module, the line that is added to it, and the contract that it breaks.
PLANTED = [
    ("_layout.py", "import s2dq.operators", "Imports run one way"),
    ("_plan.py", "from s2dq._validate import Door", "Imports run one way"),
    ("_tiles.py", "from s2dq._plan import Plan", "Imports run one way"),
    ("operators.py", "from s2dq.quantized import QuantizedTensor", "Imports run one way"),
    ("operators.py", "def later():\n    from s2dq import interop\n    return interop", "Imports run one way"),
    ("preprocess.py", "from s2dq import models", "Imports run one way"),
    ("dask.py", "from s2dq.compat import onnx", "Imports run one way"),
    ("reference.py", "from s2dq._layout import LAYOUTS", "Imports run one way"),
    ("_lookup.py", "from s2dq import _layout", "Imports run one way"),
    ("new_module.py", "import s2dq.operators", "Imports run one way"),  # on no floor
    ("quantized.py", "from s2dq import reference", "The NumPy twins are an oracle"),
    ("_validate.py", "import torch", "need NumPy alone"),
    ("interop.py", "import onnx", "need NumPy alone"),
    ("kernels.py", "from s2dq import interop", "Imports run one way"),
    ("models.py", "import dask", "Dask is for s2dq.dask"),
]


def lint(folder):
    """What import-linter says of the package in `folder`, in one line for each contract."""
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"]
    done = subprocess.run([*command, "--no-cache", "--no-logo"], cwd=folder, capture_output=True, text=True,
                          env={"PYTHONPATH": str(folder), "PATH": "", "COLUMNS": "200"})  # fmt: skip
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def tree(tmp_path):
    """A copy of the sources and of the contracts."""
    pytest.importorskip("importlinter")
    shutil.copytree(SOURCE, tmp_path / "s2dq", ignore=lambda folder, names: [
        name for name in names if not (name.endswith(".py") or Path(folder, name).is_dir())])  # fmt: skip
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_contracts_hold(tree):
    code, said = lint(tree)
    assert code == 0 and re.search(r"[1-9] kept, 0 broken", said), said


@pytest.mark.parametrize(("module", "line", "contract"), PLANTED, ids=lambda value: re.sub(r"\W+", " ", value)[:40])
def test_an_import_that_breaks_a_contract_is_seen(tree, module, line, contract):
    path = tree / "s2dq" / module
    path.write_text((path.read_text() if path.exists() else "") + f"\n{line}\n")
    code, said = lint(tree)
    broken = [text for text in said.splitlines() if "BROKEN" in text]
    assert code == 1 and any(contract in text for text in broken), said


def test_kernels_know_nothing_of_ours():
    """The compiled module, which the linter does not see: no import of ours, no operator and no layout name."""
    text = (ROOT / "s2dq" / "_kernels.pyx").read_text()
    imports = re.findall(r"^(?:from +(\S+) +c?import|c?import +(\S+))", text, re.MULTILINE)
    modules = {(start or name).partition(".")[0] for start, name in imports}
    assert modules == {"cpython", "cython", "libc", "numpy", "os", "s2dq", "types"}
    # Of ours, the declarations that it shares with the Cython code of others: nothing is imported for them.
    assert re.findall(r"^.*\bs2dq[. ].*import.*$", text, re.MULTILINE) == [
        "from s2dq.kernels cimport Plan, S2DQ_PLAN_VERSION"]
    shared = (ROOT / "s2dq" / "kernels.pxd").read_text()
    assert re.findall(r"^(?:from|c?import) .*$", shared, re.MULTILINE) == ["from libc.stdint cimport int64_t"]
    names = {*s2dq.operators.__all__, *s2dq._layout.LAYOUTS}
    assert len(names) > 12 and not [name for name in names if re.search(rf"\b{name}\b", text)]

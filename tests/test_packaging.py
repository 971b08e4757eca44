"""What was installed: metadata, files and the command."""

import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import s2dq

CHECKOUT = Path(__file__).parents[1]
PACKAGE = Path(s2dq.__file__).parent


def test_metadata_has_the_version_of_the_package():
    assert metadata.version("s2dq") == s2dq.__version__
    assert re.fullmatch(r"\d+\.\d+\.\d+([.a-z]+\d+)?", s2dq.__version__)


def test_run_time_dependencies_are_numpy_and_threadpoolctl():
    requirements = metadata.requires("s2dq")
    assert sorted(r for r in requirements if "extra ==" not in r) == ["numpy>=2.0", "threadpoolctl>=3.1"]
    extras = {extra for r in requirements for extra in re.findall(r'extra == "([\w-]+)"', r)}
    assert {"cli", "test"} <= extras


def test_python_floor_is_stated():
    assert metadata.metadata("s2dq")["Requires-Python"] == ">=3.11"


def test_licence_is_stated():
    ours, *others = metadata.metadata("s2dq")["License-Expression"].split(" AND ")
    bundled = {path.name for path in PACKAGE.parent.glob("s2dq.libs/*")}
    assert ours == "BSD-3-Clause"
    assert others == ["GPL-3.0-or-later WITH GCC-exception-3.1"] * len(bundled)
    assert all(name.startswith("libgomp-") for name in bundled)
    files = [path for path in metadata.files("s2dq") if path.parent.name == "licenses"]
    assert sorted(path.name for path in files) == ["LICENSE", *(["libgomp.txt"] if bundled else [])]
    assert all("GCC RUNTIME LIBRARY EXCEPTION" in path.read_text() for path in files if path.name == "libgomp.txt")


def test_command_is_an_entry_point():
    (script,) = metadata.entry_points(group="console_scripts", name="s2dq")
    assert script.value == "s2dq.cli:main"
    assert callable(script.load())


def test_package_is_marked_as_typed():
    assert PACKAGE.joinpath("py.typed").is_file()


def test_declarations_for_cython_are_there():
    assert "cdef extern from" in PACKAGE.joinpath("kernels.pxd").read_text()


def test_installed_files_hold_no_generated_c_and_no_tests():
    files = [str(path) for path in metadata.files("s2dq")]
    assert any(name.endswith("py.typed") or "__editable__" in name for name in files)
    assert [name for name in files if name.endswith((".c", ".cpp", ".html"))] == []
    assert [name for name in files if name.split("/")[0] in ("tests", "asv_bench", "examples", "docs")] == []
    assert list(PACKAGE.rglob("*.c")) == []


def test_extension_is_the_only_compiled_module():
    compiled = {path.name.split(".")[0] for suffix in (".so", ".pyd") for path in PACKAGE.rglob(f"*{suffix}")}
    assert compiled == {"_kernels"}


def test_import_needs_no_optional_package():
    program = (
        "import sys\n"
        "blocked = ('PIL', 'tqdm', 'pytest', 'hypothesis', 'ml_dtypes', 'torch', 'threadpoolctl', 'dask')\n"
        "sys.modules.update(dict.fromkeys(blocked))\n"  # None: importing one of them is an ImportError
        "import numpy as np, s2dq\n"
        "print(s2dq.space_to_depth(np.arange(4, dtype=np.int8).reshape(1, 2, 2, 1), 2).tolist())\n"
    )
    # -P: the installed package, not the source tree of the current directory.
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[[[[0, 1, 2, 3]]]]\n"


@pytest.mark.skipif(not CHECKOUT.joinpath(".ci").exists(), reason="needs the checkout")
def test_stages_that_the_workflows_run_exist():
    run = CHECKOUT.joinpath(".ci", "run").read_text()
    limits = " ".join(re.findall(r'^stages\+?="(.*)"$', run, re.MULTILINE))
    stages = set(re.findall(r"([a-z0-9-]+):\d+", limits))
    functions = CHECKOUT.joinpath(".ci", "stages.sh").read_text()
    assert stages == set(re.findall(r"^stage_([a-z0-9-]+)\(\)", functions, re.MULTILINE))
    named = set()
    for path in CHECKOUT.joinpath(".github", "workflows").glob("*.yml"):
        text = path.read_text()
        lists = re.findall(r"\bstages?: ([a-z][a-z0-9 -]*)|\.ci/run ([a-z][a-z0-9 -]*)", text)
        lists += re.findall(r"^ {10}- ([a-z][a-z0-9 -]*)()$", text, re.MULTILINE)
        named.update(*("".join(words).split() for words in lists))
    assert named <= stages, named - stages
    # These compare with the commit before, on one quiet machine; and wheels have a workflow of their own.
    assert stages - named == {"counts", "gate", "wheels"}

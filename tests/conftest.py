"""Seeds, Hypothesis profiles, and the instruction set under test.

`S2DQ_TEST_SEED` replays a failure: the report of a failed test that draws numbers names the seed. With `CI`
set Hypothesis tries the same examples in every run. With `S2DQ_ISA` set no test runs on other kernels.
"""

import json
import os
import sys
import sysconfig
import time
import zlib
from pathlib import Path

import hypothesis
import numpy as np
import pytest

from s2dq import _kernels

SEED = int(os.environ.get("S2DQ_TEST_SEED", "20250301"))
PROFILE = "ci" if os.environ.get("CI") else "dev"

STARTED_WITH_GIL = os.environ.get("PYTHON_GIL") == "1"

# No deadline: a test machine shared with other work is slow at random.
hypothesis.settings.register_profile("ci", derandomize=True, deadline=None, max_examples=150, print_blob=True)
hypothesis.settings.register_profile("dev", deadline=None, max_examples=150, print_blob=True)
hypothesis.settings.register_profile("few", parent=hypothesis.settings.get_profile(PROFILE), max_examples=25)
hypothesis.settings.load_profile(PROFILE)


def pytest_report_header():
    return f"s2dq: S2DQ_TEST_SEED={SEED}, hypothesis profile {PROFILE!r}, instruction set {_kernels.isa()}"


def pytest_sessionstart():
    wanted = os.environ.get("S2DQ_ISA", "").strip()
    if wanted and wanted != _kernels.isa():
        pytest.exit(f"S2DQ_ISA={wanted!r}, but the kernels in use are {_kernels.isa()!r}", returncode=4)


# With `S2DQ_TEST_REPORT` every run leaves a file there that says which tests ran; .ci/skipped.py reads them all.
REPORT = os.environ.get("S2DQ_TEST_REPORT")
outcomes = {}


def pytest_runtest_logreport(report):
    if report.when == "call" or report.skipped:
        outcomes[report.nodeid] = report.longrepr[2] if report.skipped and isinstance(report.longrepr, tuple) else ""


def pytest_collectreport(report):
    if report.skipped:  # a whole file
        outcomes[report.nodeid] = report.longrepr[2]


def pytest_unconfigure():
    if REPORT and outcomes:
        Path(REPORT, f"{os.getpid()}-{time.time_ns()}.json").write_text(json.dumps(outcomes, indent=0))


def pytest_sessionfinish(session):
    """A Python that can do without its GIL and started without it must have gone on so, or its tests tell nothing."""
    if sysconfig.get_config_var("Py_GIL_DISABLED") and not STARTED_WITH_GIL and sys._is_gil_enabled():
        print("\nthe GIL was turned on during this run")
        session.exitstatus = 1


def settings():
    """What the environment says to this package, to OpenMP and to Python."""
    return {name: value for name, value in os.environ.items() if name.startswith(("S2DQ_", "OMP_", "GOMP_", "PYTHON"))}


@pytest.fixture(scope="module", autouse=True)
def settings_are_left():
    """Children of later tests would have them, too."""
    before = settings()
    yield
    assert settings() == before


@pytest.fixture
def rng(request):
    """A random generator of this test's own: the same numbers whichever tests run beside it."""
    entropy = [SEED, zlib.crc32(request.node.name.encode())]
    note = f"S2DQ_TEST_SEED={SEED} (this test's generator: np.random.default_rng({entropy}))"
    request.node.add_report_section("setup", "seed", note)
    return np.random.default_rng(entropy)

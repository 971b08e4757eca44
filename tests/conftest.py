"""Seeds, Hypothesis profiles, and the instruction set under test.

`S2DQ_TEST_SEED` replays a failure: the report of a failed test that draws numbers names the seed. With `CI`
set Hypothesis tries the same examples in every run. With `S2DQ_ISA` set no test runs on other kernels.
"""

import os
import zlib

import hypothesis
import numpy as np
import pytest

from s2dq import _kernels

SEED = int(os.environ.get("S2DQ_TEST_SEED", "20250301"))
PROFILE = "ci" if os.environ.get("CI") else "dev"

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


@pytest.fixture
def rng(request):
    """A random generator of this test's own: the same numbers whichever tests run beside it."""
    entropy = [SEED, zlib.crc32(request.node.name.encode())]
    note = f"S2DQ_TEST_SEED={SEED} (this test's generator: np.random.default_rng({entropy}))"
    request.node.add_report_section("setup", "seed", note)
    return np.random.default_rng(entropy)

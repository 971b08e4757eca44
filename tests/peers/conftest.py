"""The real systems as judges. A peer that is not installed is skipped, or, with ``S2DQ_PEERS=all``, a failure."""

import importlib
import os
from collections import Counter

import pytest

LEAST = 100
FEW = ("ONNX node tests", "TensorFlow, refusals")  # there are no more

comparisons = Counter()
disagreements = []


@pytest.fixture
def peer():
    """Import a package of a peer."""

    def load(name):
        try:
            return importlib.import_module(name)
        except ImportError:
            if os.environ.get("S2DQ_PEERS") == "all":
                pytest.fail(f"S2DQ_PEERS=all, but {name} cannot be imported")
            pytest.skip(f"needs {name}")

    return load


@pytest.fixture
def counted():
    """Count comparisons that were made with a peer."""

    def count(name, number=1):
        comparisons[name] += number

    return count


@pytest.fixture
def disagreed():
    """Note where a peer is wrong by its own definition; told at the end of the run."""
    return disagreements.append


def pytest_sessionfinish(session, exitstatus):
    """With all peers there, a run that passed has asked each of them a hundred times."""
    selected = session.config.option.keyword or session.config.option.markexpr
    if os.environ.get("S2DQ_PEERS") != "all" or exitstatus or selected:
        return
    for name, number in comparisons.items():
        if number < LEAST and name not in FEW:
            print(f"\n{name}: {number} comparisons, fewer than {LEAST}")
            session.exitstatus = 1


def pytest_terminal_summary(terminalreporter):
    if comparisons:
        terminalreporter.section("comparisons with other systems")
        for name, number in sorted(comparisons.items()):
            terminalreporter.line(f"{name}: {number}")
        for text in disagreements:
            terminalreporter.line(f"disagreement: {text}")

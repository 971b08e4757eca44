"""One process that times one peer: `python -m s2dq.bench.worker`, started by the runner.

Reads a job as JSON from stdin and writes a line of JSON for the set-up and for the beginning and the end of every
case, so that the runner knows where a library has brought the process down.
"""

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

import s2dq

from . import cases, peers
from .cases import Case
from .timing import Call, fastest, measure

SEED = 20250301  # of the inputs


def main() -> None:
    job = json.load(sys.stdin)
    report = own_stdout()
    peer = peers.load(job["peer"])
    start = time.perf_counter()
    peer.set_up(job["threads"])
    report({"ready": time.perf_counter() - start})
    for name in job["cases"]:
        report({"begin": name})
        report(run_case(cases.find(name), peer, job["seconds"]))


def own_stdout() -> Callable[[dict[str, Any]], None]:
    """Keep stdout for the reports: libraries that print go to stderr."""
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def report(line: dict[str, Any]) -> None:
        print(json.dumps(line), file=channel, flush=True)

    return report


def run_case(case: Case, peer: ModuleType, seconds: float) -> dict[str, Any]:
    """Check and time the calls of a peer for one case."""
    x = cases.make_input(case, np.random.default_rng(SEED))
    expected = case.call(s2dq.reference, x)
    if peer.__name__ != "s2dq.bench.peers.s2dq":
        x = np.ascontiguousarray(x)
    report = {"case": case.name, "nbytes": expected.nbytes}
    try:
        calls = peer.calls(case, x)
    except Exception as error:  # whatever a library raises for what it cannot do
        return report | {"cannot": describe(error)}
    right, problems = [], {}
    for call in calls:
        problem = what_is_wrong(call, expected, x)
        if problem:
            problems[call.label] = problem
        else:
            right.append(call)
    if problems:
        report["problems"] = problems
    best = [fastest(group) for fresh in (False, True) if (group := [call for call in right if call.fresh == fresh])]
    if not best:
        return report
    copy, timings = measure(best, expected.nbytes, seconds)
    report["copy"] = copy.__dict__
    for call, timing in zip(best, timings, strict=True):
        report["fresh" if call.fresh else "out"] = {"how": call.label, **timing.__dict__}
    return report


def what_is_wrong(call: Call, expected: np.ndarray, x: np.ndarray) -> str | None:
    """Run once; returns what is wrong with the result, None if nothing is.

    A result that only describes `x` in another way, or in another order in memory, is none.
    """
    with contextlib.suppress(KeyError, AttributeError, TypeError, ValueError):
        call.names[0]["out"].view(np.uint8).fill(0xA5)
    try:
        result = np.asarray(call.result())
    except Exception as error:  # see above
        return describe(error)
    if not result.flags.c_contiguous or np.may_share_memory(result, x):
        return "a view"
    if result.shape != expected.shape:
        return f"wrong shape {result.shape} for {expected.shape}"
    if result.tobytes() != expected.tobytes():
        return "wrong values"
    return None


def describe(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:200]}"


if __name__ == "__main__":
    main()

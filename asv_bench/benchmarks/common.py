"""What the benchmarks share: the list of cases and NumPy's way of doing them, from this checkout, and ratios."""

import ctypes
import importlib
import os
import sys
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from types import ModuleType

import numpy as np

SECONDS_PER_RATIO = float(os.environ.get("S2DQ_ASV_SECONDS", "0.25"))  # less where it is enough that all of them run
SECONDS_PER_SAMPLE = 5e-5  # a sample this long is large beside the clock's own 50 ns
MOST_SAMPLES = 400
WARMING_CALLS, WARMING_SECONDS = 8, 4e-3  # a last-level cache takes some six calls to hold the arrays of the next


def map_arrays():
    """Have glibc give every array a map of its own, at one offset in its pages.

    On a heap that offset hangs on whatever was allocated before, down to the length of a path, and one and the same
    call of a megabyte takes up to 1.4 times as long where source and result lie unluckily.
    """
    try:
        ctypes.CDLL(None).mallopt(-3, 1 << 16)  # M_MMAP_THRESHOLD, which a call also keeps from growing
    except (AttributeError, OSError, TypeError):
        pass  # another C library


map_arrays()


def load(name):
    """Load a module of `s2dq.bench` by its path: the installed package may be of a commit older than that."""
    if "s2dq_bench" not in sys.modules:
        package = sys.modules["s2dq_bench"] = ModuleType("s2dq_bench")
        package.__path__ = [str(Path(__file__).parents[2] / "s2dq" / "bench")]
    return importlib.import_module(f"s2dq_bench.{name}")


cases = load("cases")


def numpy_call(case, x):
    """A function that does what the case says with NumPy, in the fastest of several ways."""
    try:
        peer, timing = load("peers.numpy"), load("timing")
    except ImportError:
        raise NotImplementedError from None  # a commit without the definitions that these use: asv skips it
    fastest = timing.fastest(peer.calls(case, x))
    return partial(eval, compile(fastest.statement, fastest.label, "eval"), dict(fastest.names[0]))


def ratio_to_copy(call, nbytes):
    """Return the median time of `call()` over that of `np.copyto` of as many bytes, both timed in turn."""
    source, target = np.ones(nbytes, np.uint8), np.zeros(nbytes, np.uint8)
    return ratio_to(call, lambda: np.copyto(target, source))


class _InCopies:
    """Of `self.call()`, which writes `self.out`: the time, and the same in copies of as many bytes."""

    def time_call(self, *parameters):
        self.call()

    def track_ratio_to_copy(self, *parameters):
        return ratio_to_copy(self.call, self.out.nbytes)

    track_ratio_to_copy.unit = "copies"


def ratio_to(call, other):
    """Return the median time of `call()` over that of `other()`, timed in turn."""
    call_count, other_count = calls_per_sample(call), calls_per_sample(other)
    call_times, other_times = [], []
    deadline = perf_counter() + SECONDS_PER_RATIO
    while len(call_times) < MOST_SAMPLES and (len(call_times) < 5 or perf_counter() < deadline):
        for timed, count, times in ((call, call_count, call_times), (other, other_count, other_times)):
            warm(timed)
            times.append(seconds(timed, count))
    return (median(call_times) / call_count) / (median(other_times) / other_count)


def warm(call):
    """Make the caches those of `call`."""
    deadline = perf_counter() + WARMING_SECONDS
    for _ in range(WARMING_CALLS):
        call()
        if perf_counter() > deadline:
            return


def calls_per_sample(call):
    """Return how many calls make a sample long enough to be timed."""
    count = 1
    while seconds(call, count) < SECONDS_PER_SAMPLE:
        count *= 2
    return count


def seconds(call, count):
    start = perf_counter()
    for _ in range(count):
        call()
    return perf_counter() - start

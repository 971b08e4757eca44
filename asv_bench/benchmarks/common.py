"""What the benchmarks share: the list of cases, from this checkout, and the ratio to a copy."""

import ctypes
import importlib.util
import sys
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np

SECONDS_PER_RATIO = 0.25
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


def load_cases():
    """Load the list of cases by its path: the installed package may be of a commit older than the list."""
    path = Path(__file__).parents[2] / "s2dq" / "bench" / "cases.py"
    spec = importlib.util.spec_from_file_location("s2dq_cases", path)
    module = sys.modules["s2dq_cases"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


cases = load_cases()


def ratio_to_copy(call, nbytes):
    """Return the median time of `call()` over that of `np.copyto` of as many bytes, both timed in turn."""
    source, target = np.ones(nbytes, np.uint8), np.zeros(nbytes, np.uint8)
    return ratio_to(call, lambda: np.copyto(target, source))


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

"""Timing calls in turn with a copy.

A statement is timed as its user would write it, without a function around it: `timeit` compiles it into a loop, the
copy's like everybody's. Each sample is a loop long enough for the clock, after calls that are not timed and make the
caches the statement's own: a last-level cache takes some six calls until it holds the arrays of the next statement.
Samples of all statements are taken in turn, so that what else the machine does hits all of them, and medians are
compared.

How fast a copy of some megabytes is depends by a fifth on where its arrays happen to lie. So the copy has several
pairs of arrays, and a statement may have several sets of names. One set after the other is timed, for changing sets
at every sample would leave nothing in the caches; the medians of the sets have a median.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil, log2
from statistics import median, quantiles
from time import perf_counter
from timeit import Timer
from typing import Any

import numpy as np

SECONDS_PER_SAMPLE = 1e-4
LEAST_CALLS, SLOW_CALL = 4, 20e-3
WARMING_CALLS, WARMING_SECONDS = 8, 4e-3  # before each sample: so many calls, unless they take longer
LEAST_ROUNDS, MOST_ROUNDS = 3, 25
PLACEMENTS = ((8 << 20, 4), (32 << 20, 2), (None, 1))  # up to so many bytes, so many pairs of arrays


@dataclass
class Call:
    """A statement that gives a result: as its value (`fresh`), or written into `out` of its names."""

    label: str
    statement: str
    names: list[dict[str, Any]]  # one per placement
    fresh: bool
    to_numpy: Callable[[Any], np.ndarray] = field(default=np.asarray)  # turns the value, or `out`, into an array

    def result(self) -> np.ndarray:
        """Run once and return the result as an array."""
        value = eval(self.statement, dict(self.names[0]))
        return self.to_numpy(value if self.fresh else self.names[0]["out"])


@dataclass
class Timing:
    """Seconds of one call, the same in copies, and the quartiles of the samples as fractions of their median."""

    seconds: float
    copies: float
    spread: tuple[float, float]
    samples: int


def copy_call(nbytes: int) -> Call:
    """`np.copyto` between C-contiguous arrays of so many bytes."""
    names = []
    for _ in range(placements(nbytes)):
        pair = {"target": np.zeros(nbytes, np.uint8), "source": np.ones(nbytes, np.uint8)}
        names.append({"copyto": np.copyto, **pair})
    return Call("copy", "copyto(target, source)", names, fresh=False)


def placements(nbytes: int) -> int:
    return next(count for most, count in PLACEMENTS if most is None or nbytes <= most)


def measure(calls: list[Call], nbytes: int, seconds: float) -> tuple[Timing, list[Timing]]:
    """Time `calls` in turn with a copy of `nbytes` for about so many seconds; returns the copy's and their timings."""
    copy, *timings = time_in_turn([copy_call(nbytes), *calls], seconds)
    timed = [Timing(mid, mid / copy[0], spread, samples) for mid, spread, samples in timings]
    return Timing(copy[0], 1.0, *copy[1:]), timed


def fastest(calls: list[Call]) -> Call:
    """The call that wins a short race."""
    if len(calls) == 1:
        return calls[0]
    times = [mid for mid, *_ in time_in_turn(calls, seconds=0)]
    return calls[times.index(min(times))]


def time_in_turn(calls: list[Call], seconds: float) -> list[tuple[float, tuple[float, float], int]]:
    """Median seconds, quartiles over the median and number of samples of each call."""
    sets = max(len(call.names) for call in calls)
    taken = [sample_in_turn([timer_of(call, number) for call in calls], seconds / sets) for number in range(sets)]
    figures = []
    for own in zip(*taken, strict=True):
        pooled = [time for times in own for time in times]
        mid = median(median(times) for times in own)
        low, _, high = quantiles(pooled, n=4)
        figures.append((mid, (low / mid, high / mid), len(pooled)))
    return figures


def timer_of(call: Call, number: int) -> Timer:
    return Timer(call.statement, globals=dict(call.names[number % len(call.names)]))


def sample_in_turn(timers: list[Timer], seconds: float) -> list[list[float]]:
    """Seconds per call of each timer in several samples, the timers one after the other in each round."""
    counts = [calls_per_sample(timer) for timer in timers]
    samples: list[list[float]] = [[] for _ in timers]
    start = perf_counter()
    while len(samples[0]) < LEAST_ROUNDS or (len(samples[0]) < MOST_ROUNDS and perf_counter() - start < seconds):
        for timer, (warming, count), times in zip(timers, counts, samples, strict=True):
            timer.timeit(warming)
            times.append(timer.timeit(count) / count)
    return samples


def calls_per_sample(timer: Timer) -> tuple[int, int]:
    """How many calls warm the caches, and how many make a sample long enough for the clock.

    Slow calls fill the caches anyway: none, and one.
    """
    timer.timeit(1)
    seconds = max(timer.timeit(1), 1e-7)
    if seconds >= SLOW_CALL:
        return 0, 1
    warming = min(WARMING_CALLS, max(2, int(WARMING_SECONDS / seconds)))
    return warming, max(LEAST_CALLS, 2 ** ceil(log2(SECONDS_PER_SAMPLE / seconds)))

"""A soak: random calls for minutes in one process, whose memory and OS threads have to stay where they are.

    python tests/stress/soak.py [--minutes 10] [--seed 20250301]

Operators, quantization and frames from `calls.py`, compared with `s2dq.reference`; larger tensors that are moved by
teams of several sizes, and compared with one thread; refused calls; forks whose children compute; Python threads that
call at once. Every step is one of these, at random.

The rule: after a warm-up of a fifth of the time the steps are cut into ten windows. The median of the resident memory
in the last three may lie at most `MEMORY` above that of the first three, and the median of the OS threads at most
`THREADS`. Exits with 1 where either is broken, or any result is wrong.
"""

import argparse
import ctypes
import gc
import os
import sys
import time
from statistics import median
from typing import NamedTuple

import calls
import numpy as np

import s2dq

MEMORY = 8 << 20  # bytes; memory that a call keeps, be it 100 bytes of it, is more after an hour, or in a loop
THREADS = 0
WARM_UP = 0.2
WINDOWS = 10
LIBC = ctypes.CDLL(None)
M_MMAP_THRESHOLD, M_ARENA_MAX = -3, -8  # of <malloc.h>


class Sample(NamedTuple):
    """What the process held after a step."""

    memory: int
    threads: int


def sample():
    """Memory is what is left when malloc has given back what it holds for the next call."""
    if hasattr(LIBC, "malloc_trim"):
        LIBC.malloc_trim(0)
    with open("/proc/self/status") as status:
        lines = dict(line.split(":", 1) for line in status)
    return Sample(int(lines["VmRSS"].split()[0]) << 10, int(lines["Threads"]))


def growth(samples):
    """By how much the medians of the last three windows lie above those of the first three, after the warm-up."""
    kept = samples[int(len(samples) * WARM_UP):]
    size = max(1, len(kept) // WINDOWS)
    first, last = kept[: 3 * size], kept[-3 * size:]
    return Sample(*(int(median(late) - median(early)) for early, late in zip(zip(*first), zip(*last))))


def verdict(samples):
    """What is wrong with these samples; empty if nothing is."""
    memory, threads = growth(samples)
    wrong = []
    if memory > MEMORY:
        wrong.append(f"memory grew by {memory} bytes, the limit is {MEMORY}")
    if threads > THREADS:
        wrong.append(f"OS threads grew by {threads}, the limit is {THREADS}")
    return "; ".join(wrong)


# ----------------------------------------------------------------------------------------------------- steps


class Draws(calls.RandomSource):
    """`distinct`: among how many small calls are chosen, so that caches are full when the warm-up is over."""

    def __init__(self, seed, distinct):
        super().__init__(np.random.default_rng(seed))
        self.distinct = distinct


def small_calls(source, count=20):
    """Legal calls against the reference, into a fresh result and into `out`."""
    for _ in range(count):
        request = calls.draw(calls.RandomSource(np.random.default_rng(source.integer(0, source.distinct))))
        wanted = request.expected()
        given = {}
        if source.integer(0, 1):
            given["out"] = calls.poisoned(wanted.shape, wanted.dtype)
        if "cessor" not in request.name and source.integer(0, 1):
            given["num_threads"] = source.integer(1, 3)
        difference = calls.differs(calls.values_of(request.function(**request.arguments, **given)), wanted)
        assert not difference, f"{request.name}: {difference}: {request.arguments} {list(given)}"
    return count


def large_call(source):
    """A tensor that is worth a team: the same bytes from teams of any size."""
    side = 2 * source.integer(200, 500)
    rng = np.random.default_rng(source.integer(0, 255))
    kind = source.integer(0, 5)
    if kind < 2:
        x = rng.integers(0, 256, (1, side, side, source.pick((3, 4, 16))), np.uint8)
        function, arguments = s2dq.space_to_depth, {"x": x, "block_size": 2, "out_format": source.pick((None, "NCHW"))}
    elif kind == 2:
        function = s2dq.batch_to_space_nd
        x = rng.integers(0, 256, (4, side // 2, side, 3), np.uint8)
        arguments = {"x": x, "block_shape": [2, 2], "crops": [[1, 0], [0, 3]]}
    elif kind == 3:
        x = rng.standard_normal((side, side)).astype(np.float32)
        function, arguments = s2dq.quantize, {"x": x, "scale": 0.01, "zero_point": 3}
    elif kind == 4:
        values = rng.integers(-128, 128, (side, side), np.int8)
        function, arguments = s2dq.dequantize, {"q": s2dq.QuantizedTensor(values, 0.5, 3)}
    else:
        frames = rng.integers(0, 256, (1, side, side, 3), np.uint8)
        team = source.integer(1, 3)
        results = [s2dq.Preprocessor(scale=0.01, block_size=2, num_threads=count)(frames) for count in (1, team)]
        assert np.array_equal(*results), f"Preprocessor: another result with {team} threads"
        return 2
    one = calls.values_of(function(**arguments, num_threads=1))
    for count in (2, source.integer(1, 8), None):
        again = calls.values_of(function(**arguments, num_threads=count))
        assert one.tobytes() == again.tobytes(), f"{function.__name__}: other bytes with num_threads={count}"
    return 4


def refused_calls(source, count=20):
    """Errors, with what they hold on to: results that have been begun, tracebacks, arguments."""
    x = np.zeros((1, 4, 6, 3), np.int8)
    big = np.broadcast_to(np.int8(1), (2**20, 2**20, 4, 1))
    bad = [
        (s2dq.space_to_depth, (x, 0), ValueError), (s2dq.space_to_depth, (x, 5), ValueError),
        (s2dq.space_to_depth, (x, "2"), TypeError), (s2dq.depth_to_space, (x, 2), ValueError),
        (s2dq.space_to_batch_nd, (x, [2, 2], [[0, 0], [0, -1]]), ValueError),
        (s2dq.pack_vect_c, (big, "NHWC"), MemoryError), (s2dq.quantize, (x, 0.5, 0), TypeError),
        (s2dq.quantize, (x.astype("f4"), 0.0, 0), ValueError), (s2dq.dequantize, (x,), TypeError),
        (s2dq.Preprocessor(scale=0.5, block_size=4), (np.zeros((6, 6, 3), np.uint8),), ValueError),
    ]  # fmt: skip
    for _ in range(count):
        function, arguments, error = source.pick(bad)
        try:
            function(*arguments)
        except error:
            continue
        raise AssertionError(f"{function} accepted {arguments}")
    return count


def forked_call(source):
    """A child that computes with a team, and exits."""
    pid = os.fork()
    if not pid:
        code = 1
        try:
            large_call(source)
            code = 0
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert code == 0, f"a forked child ended with {code}"
    return 4


def threaded_calls(source, count=4):
    """Python threads that call at once, each with draws of its own, and end."""
    made = []

    def work(seed):
        own = Draws(seed, source.distinct)
        made.append(small_calls(own, 5) + large_call(own))

    calls.in_threads(work, [source.integer(0, 2**31) for _ in range(count)])
    return sum(made)


def thread_settings(source):
    """The default size of teams changes."""
    s2dq.set_num_threads(source.pick((None, 1, 2, 3, 100)))
    return 1


STEPS = (small_calls,) * 6 + (large_call,) * 3 + (refused_calls, forked_call, threaded_calls, thread_settings)


def soak(seed, minutes=None, steps=None, more=(), distinct=2**31):
    """Run for as many minutes or steps; `(samples, calls, steps of each kind)`. `more` are steps of a test's own."""
    if hasattr(LIBC, "mallopt"):
        # One heap for all threads, and arrays outside of it: gaps between what lives are no leak, but look like one.
        LIBC.mallopt(M_ARENA_MAX, 1)
        LIBC.mallopt(M_MMAP_THRESHOLD, 1 << 16)
    source = Draws(seed, distinct)
    kinds = (*STEPS, *more)
    samples, made, times = [], 0, dict.fromkeys(kinds, 0)
    end = time.monotonic() + 60 * (minutes or 0)
    try:
        while len(samples) < steps if steps else time.monotonic() < end:
            step = source.pick(kinds)
            made += step(source)
            times[step] += 1
            if len(samples) % 50 == 0:
                gc.collect()  # what refused calls hold in cycles is not ours to count
            samples.append(sample())
    finally:
        s2dq.set_num_threads(None)
    return samples, made, {step.__name__: count for step, count in times.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=10, help="at least 1 (default 10)")
    parser.add_argument("--seed", type=int, default=20250301)
    options = parser.parse_args()
    if options.minutes < 1:  # plans are still being found then, and remembered: that is memory too
        parser.error("--minutes must be at least 1")
    samples, made, kinds = soak(options.seed, minutes=options.minutes)
    grown = growth(samples)
    print(f"{options.minutes:g} minutes, seed {options.seed}: {made} calls in {len(samples)} steps {kinds}")
    window = max(1, len(samples) // WINDOWS)
    for start in range(0, len(samples) - window + 1, window):
        memory, threads = map(median, zip(*samples[start : start + window]))
        print(f"    memory {memory / 2**20:7.1f} MiB   OS threads {threads:g}")
    print(f"after the warm-up memory grew by {grown.memory / 2**20:.2f} MiB, OS threads by {grown.threads}")
    wrong = verdict(samples)
    print(wrong or "flat")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()

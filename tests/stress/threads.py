"""What the thread sanitizer watches: teams of every size, and Python threads on the same caches at once.

    python tests/stress/threads.py [--seconds 60] [--race python|team LIBRARY]

`--race` does something wrong on purpose: two Python threads that write to the same `out`, or a team without a
reduction in a library of the caller's own. `tests/stress/threads_sanitizer` runs all three.
"""

import argparse
import ctypes
import sys
import time

import calls
import numpy as np

import s2dq
from s2dq import _kernels, operators

TEAMS = (2, 3, 4)


def large(rng):
    """Calls that are worth a team: every way of execution there is, quantization and frames too."""
    x = rng.integers(0, 256, (1, 512, 512, 4), np.uint8)
    planes = rng.integers(0, 256, (1, 4, 512, 512), np.uint8)
    numbers = rng.standard_normal((512, 1024)).astype(np.float32)
    q = s2dq.QuantizedTensor(rng.integers(-128, 128, (512, 1024), np.int8), 0.5, 3)
    channels = s2dq.QuantizedTensor(x, rng.random(4).astype(np.float32) + 0.1, np.arange(4), axis=3)
    yield s2dq.space_to_depth, (x, 2), {}
    yield s2dq.space_to_depth, (x, 2), {"out_format": "NCHW"}
    yield s2dq.space_to_depth, (x, 2), {"out_format": "NCHW_VECT_C", "mode": "CRD"}
    yield s2dq.space_to_depth, (x, 4), {"paddings": [[4, 0], [1, 3]], "pad_value": 5}
    yield s2dq.space_to_depth, (planes, 2, "NCHW"), {"mode": "focus"}
    yield s2dq.space_to_depth, (channels, 2), {"paddings": [[2, 0], [0, 2]]}
    yield s2dq.depth_to_space, (x, 2), {"crops": [[1, 0], [0, 3]]}
    yield s2dq.depth_to_space, (planes.astype(np.float32), 2, "NCHW"), {}
    yield s2dq.space_to_batch_nd, (x, [2, 3], [[0, 2], [1, 0]]), {}
    yield s2dq.batch_to_space_nd, (np.concatenate([x] * 4), [2, 2], [[1, 1], [0, 0]]), {}
    yield s2dq.pack_vect_c, (planes,), {"vect": 32}
    yield s2dq.unpack_vect_c, (x.reshape(1, 1, 512, 512, 4),), {"channels": 3}
    yield s2dq.quantize, (numbers, 0.01, 3), {}
    yield s2dq.quantize, (numbers, rng.random(512) + 0.1, 0, "uint8"), {"axis": 0}
    yield s2dq.dequantize, (q,), {}
    yield s2dq.requantize, (q, 0.25, 1, "uint8"), {}
    for keywords in ({"scale": 0.01}, {"scale": 0.01, "data_format": "NCHW_VECT_C"}, {"dtype": "float16"}):
        for team in TEAMS:
            pre = s2dq.Preprocessor(**keywords, block_size=2, mean=[0.1] * 4, num_threads=team)
            yield pre, (x,), None
            yield pre, (x.astype(np.float32),), None
    yield s2dq.Postprocessor(scale=0.01, block_size=2, num_threads=2), (x.view(np.int8),), None


def run_teams():
    """Each with teams of several sizes; how many calls had a team."""
    made = 0
    for function, arguments, keywords in large(np.random.default_rng(20250301)):
        first = None
        for team in (1, *TEAMS) if keywords is not None else (None,):
            threads = {} if keywords is None else {**keywords, "num_threads": team}
            result = calls.values_of(function(*arguments, **threads))
            made += _kernels.last_team_size() > 1
            first = result if first is None else first
            assert result.tobytes() == first.tobytes(), f"{function}: other bytes with {team} threads"
    return made


def run_python_threads(seconds):
    """Python threads that fill, empty and read the caches, change the settings, and open teams."""
    end, made = time.monotonic() + seconds, []
    shared = list(large(np.random.default_rng(1)))
    preprocessor = s2dq.Preprocessor(scale=0.01, block_size=2, size=(64, 64))
    memos = [getattr(operators, f"_{name}") for name in ("space_to_depth", "depth_to_space", "pack_vect_c")]

    def work(number):
        source = calls.RandomSource(np.random.default_rng(number))
        while time.monotonic() < end:
            # The same small calls in all threads: each is the first to make a plan, or finds another's.
            request = calls.draw(calls.RandomSource(np.random.default_rng(source.integer(0, 60))))
            difference = calls.differs(calls.values_of(request.function(**request.arguments)), request.expected())
            assert not difference, f"{request.name}: {difference}"
            function, arguments, keywords = source.pick(shared)
            function(*arguments, **({**keywords, "num_threads": source.pick(TEAMS)} if keywords else {}))
            preprocessor(np.zeros((source.integer(1, 64), 64, 3), np.uint8))
            if source.integer(0, 5) == 0:
                s2dq.set_num_threads(source.pick((None, 1, 2, 4)))
            if source.integer(0, 9) == 0:
                source.pick(memos).clear()
                operators.program_of.cache_clear()
            made.append(s2dq.get_num_threads())

    calls.in_threads(work, range(8))
    return len(made)


def race_in_python():
    """Two threads, one `out`: the caller's own mistake, made in our code."""
    x = np.zeros((1, 2048, 2048, 4), np.uint8)
    out = np.empty((1, 1024, 1024, 16), np.uint8)
    calls.in_threads(lambda _: [s2dq.space_to_depth(x, 2, out=out, num_threads=1) for _ in range(20)], range(2))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--race", choices=("python", "team"))
    parser.add_argument("library", nargs="?")
    options = parser.parse_args()
    sys.setswitchinterval(1e-4)
    if options.race == "python":
        race_in_python()
    elif options.race == "team":
        run_teams()
        print(ctypes.CDLL(options.library).race(4))
    else:
        print(f"{run_teams()} calls by teams, {run_python_threads(options.seconds)} rounds of 8 Python threads")


if __name__ == "__main__":
    main()

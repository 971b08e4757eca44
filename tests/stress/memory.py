"""What valgrind watches: operators, quantization and frames of odd sizes, in memory that is exactly as large.

    python tests/stress/memory.py [--calls 300] [--plant]

Results are compared, so that a byte of them that was never written is a branch on it. `--plant` lets a kernel read
past the end of its source on purpose: the view that it is given is longer than its memory.
"""

import argparse

import calls
import numpy as np

import s2dq


def read_past_the_end():
    """A caller's lie about memory: what is there ends 16 bytes before what the array says."""
    from numpy.lib.stride_tricks import as_strided

    memory = np.ones(64 * 64 - 16, np.int8)
    s2dq.space_to_depth(as_strided(memory, (1, 64, 64, 1), (64 * 64, 64, 1, 1)), 2)


def odd_sizes():
    """Every innermost extent from 1 to 40, which ends rows in every place of a word."""
    for count in range(1, 41):
        x = np.full((1, 2, 4, count), 3, np.int8)
        planes = np.full((1, 3, 2, 2 * count), 3, np.int16)
        numbers = np.full((3, count), 0.75, np.float32)
        q = s2dq.QuantizedTensor(np.full((3, count), 7, np.int8), 0.5, 1)
        results = [
            s2dq.space_to_depth(x, 2), s2dq.space_to_depth(x, 2, out_format="NCHW_VECT_C"),
            s2dq.space_to_depth(planes, 2, "NCHW"), s2dq.depth_to_space(x.repeat(4, axis=3), 2, mode="CRD"),
            s2dq.space_to_batch_nd(x, [2, 3], [[1, 1], [1, 1]], pad_value=3), s2dq.pack_vect_c(x, "NHWC", pad_value=3),
            s2dq.batch_to_space_nd(x.repeat(4, axis=0), [2, 2], [[1, 0], [0, 1]]),
        ]  # fmt: skip
        assert all((result == 3).all() for result in results), count
        assert (s2dq.quantize(numbers, 0.5, 0).values == 2).all() and (s2dq.dequantize(q) == 3).all()
        assert (s2dq.requantize(q, 1.0, 0).values == 3).all()
        pre = s2dq.Preprocessor(scale=1 / 255, zero_point=-128, size=(2, 2 * count), pad_value=3, block_size=2)
        assert (pre(np.full((1, count, 3), 3, np.uint8)) == -125).all()
    return 40 * 11


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--calls", type=int, default=300, help="random ones, beside the odd sizes")
    parser.add_argument("--plant", action="store_true")
    options = parser.parse_args()
    if options.plant:
        read_past_the_end()
        return
    made = odd_sizes()
    for seed in range(options.calls):
        request = calls.draw(calls.RandomSource(np.random.default_rng(seed)))
        difference = calls.differs(calls.values_of(request.function(**request.arguments)), request.expected())
        assert not difference, f"{request.name}: {difference}, seed {seed}"
    big = np.arange(2**20, dtype=np.int32).reshape(1, 512, 512, 4)
    assert np.array_equal(s2dq.depth_to_space(s2dq.space_to_depth(big, 2, num_threads=2), 2, num_threads=2), big)
    print(f"{made + options.calls + 2} calls")


if __name__ == "__main__":
    main()

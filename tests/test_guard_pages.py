"""Not a byte outside the arrays: every operator between inaccessible pages, innermost sizes 1 to 70.

A kernel that reads or writes one byte too many kills the child; one that writes too little or too much inside the
same page is found by the poison around the result, and by comparison with the reference.
"""


import sys

import pytest

from guarded import run_child
from s2dq import _kernels

INNERMOST = 70
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs mprotect")


def run_between_guards(first, last):
    """Print how many calls were made with innermost sizes `first` to `last` - 1."""
    import numpy as np

    import s2dq
    from guarded import Arena
    from s2dq import _kernels, reference

    rng = np.random.default_rng(20250301)
    source, target = Arena(1 << 17), Arena(1 << 17)
    planes, words = {"data_format": "NCHW"}, {"data_format": "NCHW_VECT_C"}
    to_words = {"out_format": "NCHW_VECT_C"}

    def cases(k):
        """(operator, shape of x, args, kwargs): k is the innermost extent on one side at least."""
        for mode in ("DCR", "CRD", "focus"):
            yield "space_to_depth", (1, 2, 4, k), (2,), {"mode": mode}
            yield "space_to_depth", (1, 2, 4, 2 * k), (2,), {"mode": mode, **planes}
            yield "depth_to_space", (1, 2, 3, 4 * k), (2,), {"mode": mode}
            yield "depth_to_space", (1, 8, 2, k), (2,), {"mode": mode, **planes}
            yield "space_to_depth", (1, 2, 4, k), (2,), {"mode": mode, **to_words}
            yield "depth_to_space", (1, k, 2, 3, 4), ((1, 2),), {"mode": mode, "out_format": "NHWC", **words,
                                                                "channels": 4 * k - 2}
        yield "space_to_depth", (1, 3, 6, 3 * k), (3,), planes
        yield "depth_to_space", (1, 18, 2, k), (3,), planes
        yield "space_to_depth", (1, 4, 4 * k, 3), (4,), {}
        yield "space_to_depth", (1, 2, 2 * k, 3), (2,), to_words
        yield "space_to_depth", (2, 4, k), (2,), {"data_format": "NWC"}
        yield "space_to_depth", (1, 3, 2, 2 * k), (2,), {"out_format": "NHWC", **planes}
        yield "depth_to_space", (1, 2, k, 12), (2,), {"out_format": "NCHW"}
        yield "space_to_depth", (1, 2, 4, k), ((2, 1),), {"paddings": [[1, 1], [0, 1]], "pad_value": 3}
        yield "space_to_depth", (1, 2, 3, k), ((1, 2),), {"paddings": [[0, 0], [1, 1 + k % 2]], **planes}
        yield "depth_to_space", (1, 4, 2, k), (2,), {"crops": [[1, 0], [1, 2 * k - 1]], **planes}
        yield "space_to_depth", (1, 2, 2, 2 * k, 4), (2,), words
        yield "depth_to_space", (1, 4, 2, k, 4), (2,), words
        yield "space_to_batch_nd", (2, 4, 2, k), ([2, 2], [[0, 0], [0, 0]]), {}
        yield "space_to_batch_nd", (2, 3, k), ([3, 2], [[1, 2], [1, 1 + k % 2]]), {}
        yield "batch_to_space_nd", (4, 2, 2, k), ([2, 2], [[0, 0], [0, 0]]), {}
        yield "batch_to_space_nd", (6, 2, k), ([3, 2], [[1, 2], [1, k - 1]]), {}
        yield "pack_vect_c", (1, k, 2, 3), (), {}
        yield "pack_vect_c", (2, 5, 2, k), (), {"vect": 8, "pad_value": 3}
        yield "pack_vect_c", (1, 3, 2, k), ("NHWC",), {"vect": 32}
        yield "pack_vect_c", (1, 6, 1, 3), (), {"vect": k}
        yield "unpack_vect_c", (1, 2, 2, k, 4), (), {"channels": 7}
        yield "unpack_vect_c", (1, 2, 2, 3, k), ("NHWC",), {}

    calls = 0
    for k in range(first, last):
        for number, (name, shape, args, kwargs) in enumerate(cases(k)):
            # The same shapes with wider elements are other plans; odd widths are records and strings.
            wide = ("i2", "i4", "f8", "c16", "V3")[(k + number) % 5]
            for dtype in ("i1",) if kwargs.get("data_format") == "NCHW_VECT_C" else ("i1", wide):
                options = {key: value for key, value in kwargs.items() if key != "pad_value" or dtype != "V3"}
                data = rng.integers(0, 256, int(np.prod(shape)) * np.dtype(dtype).itemsize, np.uint8)
                data = data.view(dtype).reshape(shape)
                expected = getattr(reference, name)(data, *args, **options)
                for end in ("low", "high"):
                    x = source.place(shape, dtype, end)
                    x[...] = data
                    out = target.place(expected.shape, dtype, end)
                    getattr(s2dq, name)(x, *args, **options, out=out)
                    calls += 1
                    case = f"{name}{shape} {dtype} {args} {options} at the {end} end"
                    assert out.tobytes() == expected.tobytes(), case
                    assert x.tobytes() == data.tobytes(), f"{case}: the source was changed"
                    assert source.untouched_outside(x) and target.untouched_outside(out), f"{case}: bytes outside"
    print(calls, _kernels.isa())


def run_larger_between_guards(first, last):
    """The same with several KB: whole tiles fit, and only those at the ends must not read on."""
    import numpy as np

    import s2dq
    from guarded import Arena
    from s2dq import _kernels, reference

    rng = np.random.default_rng(20250301)
    planes, to_words = {"data_format": "NCHW"}, {"out_format": "NCHW_VECT_C"}

    def cases(k):
        """(operator, shape of x, args, kwargs)"""
        yield "space_to_depth", (1, 70, 28, k), (2,), {}
        yield "space_to_depth", (1, k, 40, 40), (2,), planes
        yield "depth_to_space", (1, 16, 20, k), (2,), planes
        yield "depth_to_space", (1, 64, 7, k), (4,), {**planes, "mode": "CRD"}
        yield "depth_to_space", (2, 6, 20, 4 * k), (2,), {"mode": ("DCR", "CRD", "focus")[k % 3]}
        yield "space_to_depth", (1, 9, 12, k), (3,), {"mode": "CRD"}
        yield "space_to_depth", (1, 4, 12, 3 * k), (3,), {**planes, "mode": "CRD"}
        yield "space_to_depth", (1, 17, 20, k), (1,), {"out_format": "NCHW"}
        yield "space_to_depth", (1, k, 17, 20), (1,), {**planes, "out_format": "NHWC"}
        yield "space_to_depth", (2, 8, 12, k), (2,), to_words
        yield "space_to_depth", (1, 20, 2 * k, 3), (2,), {**to_words, "vect": (4, 16)[k % 2]}
        yield "space_to_depth", (1, 9, 4 * k + 1, 3), (2,), {"paddings": [[1, 2], [3, 0]], "pad_value": 7}
        yield "space_to_depth", (2, 3, 19, k), (2,), {**planes, "paddings": [[0, 1], [1, 2 - (k + 1) % 2]]}
        yield "depth_to_space", (1, 12, 21, k), (2,), {**planes, "crops": [[1, 2], [0, k]]}
        yield "pack_vect_c", (1, k, 12, 13), (), {"vect": 32}
        yield "pack_vect_c", (2, 12, 13, k), ("NHWC",), {"vect": 32, "pad_value": 5}
        yield "unpack_vect_c", (1, -(-k // 32), 12, 13, 32), (), {"channels": k}
        yield "unpack_vect_c", (2, -(-k // 4), 12, 13, 4), ("NHWC",), {"channels": k}
        yield "space_to_batch_nd", (2, 17, 10, k), ([3, 2], [[1, 0], [1, 3]]), {}
        yield "batch_to_space_nd", (6, 9, 11, k), ([3, 2], [[1, 4], [0, 3]]), {}

    def chained(extents, first):
        steps = [first]
        for extent in extents[:0:-1]:
            steps.append(steps[-1] * extent)
        return steps[::-1]

    def arrangements(shape, itemsize):
        """Byte steps: as usual, backward, mirrored, a crop of a larger frame, every second element, axes rolled."""
        plain = chained(shape, itemsize)
        yield plain
        yield [-step for step in plain]
        yield [*plain[:-2], -plain[-2], plain[-1]]
        yield [*plain[:-1], -plain[-1]]
        yield chained([extent + 5 for extent in shape], itemsize)
        yield chained(shape, 2 * itemsize)
        yield [*chained((*shape[1:], shape[0]), itemsize)[-1:], *chained((*shape[1:], shape[0]), itemsize)[:-1]]

    calls = 0
    for k in range(first, last):
        for number, (name, shape, args, kwargs) in enumerate(cases(k)):
            dtype = ("i1", "i1", "i1", "i2", "f4")[(k + number) % 5]
            data = rng.integers(0, 64, int(np.prod(shape)) * np.dtype(dtype).itemsize, np.uint8)
            data = data.view(dtype).reshape(shape)
            expected = getattr(reference, name)(data, *args, **kwargs)
            steps = list(arrangements(shape, data.itemsize))
            target = Arena(expected.nbytes)
            for choice in (0, 1 + (k + number) % (len(steps) - 1)):
                source = Arena(2 * data.nbytes + sum((extent + 5) * step for extent, step in zip(shape, steps[4])))
                for end in ("low", "high"):
                    x = source.place_steps(shape, dtype, steps[choice], end)
                    x[...] = data
                    before = source.memory.copy()
                    out = target.place(expected.shape, dtype, end)
                    getattr(s2dq, name)(x, *args, **kwargs, out=out)
                    calls += 1
                    case = f"{name}{shape} {dtype} {args} {kwargs} steps {steps[choice]} at the {end} end"
                    assert out.tobytes() == expected.tobytes(), case
                    assert np.array_equal(source.memory, before), f"{case}: the source was changed"
                    assert target.untouched_outside(out), f"{case}: bytes outside"
    print(calls, _kernels.isa())


def run_large_between_guards():
    """Results of more than 16 MiB, which go past the caches in whole lines; neither end of a row is aligned."""
    import numpy as np

    import s2dq
    from guarded import Arena
    from s2dq import _kernels, reference

    rng = np.random.default_rng(20250301)
    cases = [
        ("space_to_depth", (1, 2370, 2370, 3), (2,), {}),
        ("space_to_depth", (1, 3, 2402, 2402), (2,), {"data_format": "NCHW"}),
        ("depth_to_space", (1, 66, 514, 514), (1,), {"data_format": "NCHW"}),
        ("depth_to_space", (1, 515, 513, 64), (4,), {"crops": [[1, 0], [3, 5]]}),
        ("space_to_batch_nd", (1, 1027, 1031, 17), ([2, 2], [[1, 0], [0, 1]]), {}),
    ]
    for name, shape, args, kwargs in cases:
        data = rng.integers(0, 256, shape, np.uint8)
        expected = getattr(reference, name)(data, *args, **kwargs)
        assert expected.nbytes >= 1 << 24
        source, target = Arena(data.nbytes), Arena(expected.nbytes + 64)
        for end, threads in (("low", 1), ("high", 2)):
            x = source.place(shape, "u1", end)
            x[...] = data
            out = target.place(expected.shape, "u1", end)
            getattr(s2dq, name)(x, *args, **kwargs, out=out, num_threads=threads)
            assert np.array_equal(out, expected), f"{name}{shape} {args} {kwargs} at the {end} end"
            assert source.untouched_outside(x) and target.untouched_outside(out), f"{name}{shape} {args}: bytes outside"
    print(len(cases), _kernels.isa())


def run_frames_between_guards(first, last):
    """Preprocessors: bytes through tables in tiles or rows, floats through scratch rows."""
    from itertools import product

    import numpy as np

    import s2dq
    from guarded import Arena
    from s2dq import _kernels, reference

    rng = np.random.default_rng(20250301)
    source, target = Arena(1 << 18), Arena(1 << 18)
    tables = (
        {"scale": 1 / 255, "zero_point": -128},
        {"scale": 0.02, "mean": (0.5, 0.4, 0.3), "std": (0.2, 0.3, 0.25)},
        {"scale": 1 / 128, "mean": 0.5, "std": 0.5},
        {"dtype": "float32", "mean": (0.5, 0.4, 0.3)},
    )
    calls = 0
    for k in range(first, last):
        for number, (data_format, block) in enumerate(product(("NHWC", "NCHW", "NCHW_VECT_C"), (1, 2, 4))):
            settings = {"data_format": data_format, "block_size": block, "vect": (4, 32)[k % 2],
                        "reverse_channels": k % 3 == 0, **tables[(k + number) % 4]}
            if k % 5 == 0:
                settings["size"] = (12, (k + 3) * block)
            shape = (2, 8, k * block, 3) if k % 4 else (2, 3, 8, k * block)
            settings["input_format"] = "NHWC" if k % 4 else "NCHW"
            for dtype in (np.uint8, np.float32):
                frames = rng.integers(0, 256, shape).astype(dtype)
                expected = reference.preprocess(frames, **settings)
                pre = s2dq.Preprocessor(**settings)
                for end in ("low", "high"):
                    x = source.place(shape, dtype, end)
                    x[...] = frames
                    out = target.place(expected.shape, expected.dtype, end)
                    pre(x, out)
                    calls += 1
                    case = f"{settings} {shape} {dtype} at the {end} end"
                    assert out.tobytes() == expected.tobytes(), case
                    assert x.tobytes() == frames.tobytes(), f"{case}: the frames were changed"
                    assert source.untouched_outside(x) and target.untouched_outside(out), f"{case}: bytes outside"
    print(calls, _kernels.isa())


def run_turned_frames_between_guards(seed, count):
    """Frames that run backwards along some axes, padded: what lies behind the first pixel may be nobody's."""
    import numpy as np

    import s2dq
    from guarded import Arena
    from s2dq import _kernels, reference

    rng = np.random.default_rng(seed)
    source = Arena(1 << 15)
    for call in range(count):
        batch, height, width, channels = (int(rng.integers(1, most + 1)) for most in (2, 40, 40, 4))
        block, data_format = int(rng.integers(1, 5)), ("NHWC", "NCHW", "NCHW_VECT_C")[call % 3]
        size = tuple(-(-(extent + int(rng.integers(0, 10))) // block) * block for extent in (height, width))
        extents = (batch, height, width, channels)
        turned = [bool(turn) for turn in rng.integers(0, 2, 4)]
        steps = [height * width * channels, width * channels, channels, 1]
        steps = [-step if turn else step for step, turn in zip(steps, turned)]
        frames = rng.integers(0, 256, extents, np.uint8)
        settings = {"scale": (1 / 255, 0.01)[call % 2], "block_size": block, "size": size, "data_format": data_format}
        pre = s2dq.Preprocessor(**settings)
        margins = [[(wide - extent) // 2, wide - extent - (wide - extent) // 2]
                   for wide, extent in zip(size, extents[1:3])]
        told = f"{extents}, turned {turned}, {settings}"
        prepared = reference.preprocess(frames, **settings).tobytes()
        moved = reference.space_to_depth(frames, block, "NHWC", out_format=data_format, paddings=margins).tobytes()
        for end in ("low", "high"):
            x = source.place_steps(extents, np.uint8, steps, end)
            x[...] = frames
            assert pre(x).tobytes() == prepared, told
            result = s2dq.space_to_depth(x, block, "NHWC", out_format=data_format, paddings=margins)
            assert result.tobytes() == moved, told
    print(2 * 2 * count, _kernels.isa())


def read_past_the_end():
    import ctypes

    import numpy as np

    from guarded import Arena

    array = Arena(4096).place((4,), np.uint8, "high")
    ctypes.string_at(array.ctypes.data, 5)


def test_guard_pages_are_there():
    """One byte past the end is fatal; otherwise the tests below would prove nothing."""
    with pytest.raises(AssertionError, match=r"ended with -(7|10|11)\b"):
        run_child(read_past_the_end)


def calls_of(output):
    """How many calls a child made, on the instruction set that this session is about."""
    calls, isa = output.split()
    assert isa == _kernels.isa()
    return int(calls)


@pytest.mark.parametrize("first", range(1, INNERMOST + 1, 35))
def test_operators_between_guard_pages(first):
    last = min(first + 35, INNERMOST + 1)
    assert calls_of(run_child(run_between_guards, first, last)) >= 35 * 110


@pytest.mark.parametrize("first", range(1, INNERMOST + 1, 35))
def test_larger_tensors_between_guard_pages(first):
    last = min(first + 35, INNERMOST + 1)
    assert calls_of(run_child(run_larger_between_guards, first, last)) == 35 * 20 * 4


def test_large_results_between_guard_pages():
    assert calls_of(run_child(run_large_between_guards)) == 5


@pytest.mark.parametrize("first", range(1, INNERMOST + 1, 35))
def test_frames_between_guard_pages(first):
    last = min(first + 35, INNERMOST + 1)
    assert calls_of(run_child(run_frames_between_guards, first, last)) == 35 * 9 * 2 * 2


@pytest.mark.parametrize("seed", [1, 2])
def test_turned_frames_between_guard_pages(seed):
    assert calls_of(run_child(run_turned_frames_between_guards, seed, 400)) == 1600

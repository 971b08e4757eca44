"""Quantized tensors: the arithmetic bit by bit, and values and parameters that move together."""

import copy
import ctypes
import pickle
import sys
import threading
from fractions import Fraction
from itertools import product
from math import prod
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import s2dq
from guarded import FLUSHES, rounding_directions, run_child, subnormals_are_zero
from s2dq import QuantizedTensor, _kernels, _validate, quantized, reference

DTYPES = ("int8", "uint8", "int16", "uint16", "int32")
FLOATS = ("float16", "float32", "float64")
OPERATORS = ("space_to_depth", "depth_to_space", "space_to_batch_nd", "batch_to_space_nd", "space_to_batch",
             "batch_to_space", "pack_vect_c", "unpack_vect_c")  # fmt: skip
PACKED = "NCHW_VECT_C"


def same(array, expected):
    """Equal in type, shape, dtype and every bit; all NaN are one."""
    np.testing.assert_array_equal(array, expected, strict=True)
    np.testing.assert_array_equal(np.signbit(array), np.signbit(expected))


def rounded(number):
    """Nearest integer of an exact fraction, half to even."""
    return round(number)  # Fraction.__round__ is exact


def exactly(x, scale, zero_point, dtype, divide):
    """Quantize one number with exact integers; `divide` gives the ratio in the precision that the rule says."""
    info = np.iinfo(dtype)
    if np.isnan(x):
        return zero_point
    ratio = divide(x, np.float32(scale))
    if np.isinf(ratio):
        return int(info.max if ratio > 0 else info.min)
    return max(int(info.min), min(int(info.max), rounded(Fraction(float(ratio))) + zero_point))


def divide_single(x, scale):
    with np.errstate(all="ignore"):
        return np.float32(x) / scale


def divide_double(x, scale):
    with np.errstate(all="ignore"):
        return np.float64(x) / np.float64(scale)


# ------------------------------------------------------------------------------------------------ quantize

SCALES = (1.0, 0.5, 2.0, 0.1, 1 / 255, 0.0186, 3.0, 2.0**-126, 1e-40, 1e30)
SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, 1e-45, -1e-45, 1e-40, 6e-8, 65504.0, 3.4e38, -3.4e38, 1e300)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("x_dtype", FLOATS)
@pytest.mark.parametrize("scale", SCALES)
def test_quantize_follows_the_rule_number_by_number(rng, scale, x_dtype, dtype):
    info = np.iinfo(dtype)
    edges = [info.min, info.max, info.min - 1, info.max + 1, 0, 1, -1]
    zero_points = sorted({0, int(info.min), int(info.max), 3 if info.min == 0 else -3})
    for zero_point in zero_points:
        around = [edge - zero_point + part for edge in edges for part in (-0.5, -0.25, 0.0, 0.5, 0.75)]
        numbers = [*SPECIAL, *(scale * step for step in around), *(rng.standard_normal(50) * scale * 100)]
        with np.errstate(all="ignore"):
            x = np.array(numbers, np.float64).astype(x_dtype)
        divide = divide_double if x_dtype == "float64" else divide_single
        expected = np.array([exactly(number, scale, zero_point, dtype, divide) for number in x], dtype)
        np.testing.assert_array_equal(s2dq.quantize(x, scale, zero_point, dtype).values, expected, strict=True)
        np.testing.assert_array_equal(reference.quantize(x, scale, zero_point, dtype), expected, strict=True)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
@pytest.mark.parametrize("x_dtype", ["float32", "float64"])
@pytest.mark.parametrize("scale", [1.0, 0.5, 2.0**-10, 2.0**20])
def test_every_half_goes_to_the_even_neighbour(scale, x_dtype, dtype):
    info = np.iinfo(dtype)
    below = np.arange(int(info.min) - 2, int(info.max) + 2)
    even = below + below % 2
    for zero_point in (0, 1):
        expected = np.clip(even + zero_point, info.min, info.max)
        q = s2dq.quantize(((below + 0.5) * scale).astype(x_dtype), scale, zero_point, dtype)
        np.testing.assert_array_equal(q.values, expected.astype(dtype), strict=True)


def test_ties_that_a_reciprocal_would_miss(rng):
    """Numbers whose quotient is a tie, for scales whose reciprocal is not exact."""
    for scale in (np.float32(s) for s in (0.1, 3.0, 1 / 255, 0.7, 1e-3)):
        steps = np.arange(-130, 130, dtype=np.float32) + np.float32(0.5)
        x = steps * scale
        ties = x[x / scale == steps]
        assert len(ties) > 50, "no ties to look at"
        expected = [max(-128, min(127, rounded(Fraction(float(step))))) for step in ties / scale]
        np.testing.assert_array_equal(s2dq.quantize(ties, scale, 0).values, expected)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_every_zero_point(dtype):
    info = np.iinfo(dtype)
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, *(np.arange(-300, 300) / 2)], np.float32)
    levels = np.arange(info.min, info.max + 1).astype(dtype)
    for zero_point in range(info.min, info.max + 1):
        q = s2dq.quantize(x, 0.5, zero_point, dtype)
        assert q.values[:5].tolist() == [zero_point, info.max, info.min, zero_point, zero_point]
        expected = np.clip(np.arange(-300, 300) + zero_point, info.min, info.max)
        np.testing.assert_array_equal(q.values[5:], expected)
        numbers = QuantizedTensor(levels, 0.5, zero_point).dequantize()
        same(numbers, (np.arange(info.min, info.max + 1) - zero_point).astype(np.float32) * np.float32(0.5))


@pytest.mark.parametrize("length", [0, 1, 2, 3, 7, 15, 16, 17, 31, 33, 63, 65, 127, 2047, 2048, 2049, 5000])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_length(rng, dtype, length):
    x = (rng.standard_normal(length) * 300).astype(np.float32)
    scale = rng.uniform(0.1, 9, length)
    zero_point = rng.integers(0, 100, length)
    for parameters in ((0.3, 7, None), (scale, zero_point, 0)):
        *pair, axis = parameters
        q = s2dq.quantize(x, *pair, dtype, axis=axis)
        np.testing.assert_array_equal(q.values, reference.quantize(x, *pair, dtype, axis=axis), strict=True)
        same(q.dequantize(), reference.dequantize(q.values, *pair, axis=axis))


@pytest.mark.parametrize("shape, axis, expected", [
    ((5, 64), 0, (5, 64, 1)),  # a run is long enough to go through one pair
    ((5, 7), 0, (1, 35, 35, 7)),  # each element with its own
    ((600, 3), 1, (1, 1800, 513, 1, 171)),
    ((70000, 2), 0, (70000, 2, 1)),  # too many of those
    ((70000,), 0, (1, 70000, 70000)),
])  # fmt: skip
def test_how_parameters_are_taken_along(shape, axis, expected):
    assert quantized._along(shape, SimpleNamespace(axis=axis)) == quantized._Along(*expected)


SHAPES = [(3,), (4, 5), (2, 3, 4), (2, 7, 3, 5), (1, 200, 3, 3), (3, 2, 100), (2, 5, 2, 3, 4), (2, 1, 3, 3, 32),
          (0, 3), (3, 0), (1, 1, 1), (600, 3), (5, 1030), (2, 70000, 2)]  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_parameters_along_every_axis(rng, dtype, shape):
    info = np.iinfo(dtype)
    x = (rng.standard_normal(shape) * 100).astype(np.float32)
    places = [(axis, shape[axis]) for axis in range(-len(shape), len(shape))]
    if len(shape) == 5:
        places += [(1, shape[1] * shape[4]), (-4, shape[1] * shape[4])]
    for axis, count in places:
        scale, zero_point = rng.uniform(0.01, 5, count), rng.integers(info.min, info.max, count, dtype, True)
        form = [1] * len(shape)
        form[axis] = shape[axis]
        if count != shape[axis]:
            form[4] = shape[4]
        full = [np.broadcast_to(entries.reshape(form), shape).ravel() for entries in (scale, zero_point)]
        q = s2dq.quantize(x, scale, zero_point, dtype, axis=axis)
        assert q.axis == axis % len(shape)
        # Element by element, every one with a scale of its own: quite another way through the loops.
        each = s2dq.quantize(x.ravel(), *full, dtype, axis=0)
        np.testing.assert_array_equal(q.values.ravel(), each.values)
        same(q.dequantize().ravel(), each.dequantize())
        expected = reference.quantize(x, scale, zero_point, dtype, axis=axis)
        np.testing.assert_array_equal(q.values, expected, strict=True)


def test_zero_dimensions():
    q = s2dq.quantize(np.array(2.75, np.float32), 0.5, 1)
    assert q.values.shape == () and q.values[()] == 7 and q.dequantize()[()] == 3.0
    assert s2dq.requantize(q, 1.0, 0).values[()] == 3
    assert s2dq.quantize(np.float64(1.0), 0.5, 0).values[()] == 2


@pytest.mark.parametrize("num_threads", [None, 1, 2, 1000])
@pytest.mark.parametrize("per_channel", [False, True])
def test_large_tensors_and_threads(rng, num_threads, per_channel):
    shape = (3, 1100, 331)
    x = (rng.standard_normal(shape) * 40).astype(np.float32)
    scale, zero_point, axis = (0.3, 5, None)
    if per_channel:
        scale, zero_point, axis = rng.uniform(0.1, 1, 331), rng.integers(-9, 9, 331), 2
    for dtype in ("int8", "int32"):
        q = s2dq.quantize(x, scale, zero_point, dtype, axis=axis, num_threads=num_threads)
        team = _kernels.last_team_size()
        assert num_threads is None or team == min(num_threads, s2dq.get_num_threads())
        np.testing.assert_array_equal(q.values, reference.quantize(x, scale, zero_point, dtype, axis=axis), strict=True)
        same(q.dequantize(num_threads=num_threads), reference.dequantize(q.values, scale, zero_point, axis=axis))


# ------------------------------------------------------------------------------------- memory of any kind

def awkward(x):
    """The same numbers in other memory."""
    yield np.asfortranarray(x)
    yield np.repeat(x, 3, axis=-1)[..., ::3]
    yield x[..., ::-1].copy()[..., ::-1]
    yield x[::-1].copy()[::-1]
    yield x.astype(x.dtype.newbyteorder())
    yield np.asfortranarray(x.astype(x.dtype.newbyteorder()))[...]
    shifted = np.empty(x.nbytes + 1, np.uint8)[1:].view(x.dtype).reshape(x.shape)
    shifted[...] = x
    yield shifted
    locked = x.copy()
    locked.flags.writeable = False
    yield locked


@pytest.mark.parametrize("x_dtype", FLOATS)
def test_any_memory_of_real_numbers(rng, x_dtype):
    x = (rng.standard_normal((3, 40, 7)) * 50).astype(x_dtype)
    for axis in (None, 0, 1, 2):
        pair = (0.7, 3) if axis is None else (rng.uniform(0.1, 2, x.shape[axis]), rng.integers(-5, 5, x.shape[axis]))
        expected = s2dq.quantize(x, *pair, "int16", axis=axis)
        for other in awkward(x):
            assert s2dq.quantize(other, *pair, "int16", axis=axis) == expected


@pytest.mark.parametrize("dtype", DTYPES)
def test_any_memory_of_values(rng, dtype):
    info = np.iinfo(dtype)
    values = rng.integers(info.min, info.max, (6, 40, 7), dtype, True)
    for axis in (None, 0, 1, 2):
        pair = (0.7, 3) if axis is None else (rng.uniform(0.1, 2, values.shape[axis]), 3)
        plain = QuantizedTensor(values, *pair, axis=axis)
        for other in awkward(values):
            q = QuantizedTensor(other, *pair, axis=axis)
            assert q.dtype == other.dtype
            same(q.dequantize(), plain.dequantize())
            for target in ("int8", "uint8", "int32"):
                assert s2dq.requantize(q, 0.5, 9, target) == s2dq.requantize(plain, 0.5, 9, target)
            kept = s2dq.requantize(q, 0.5, 9)
            assert kept.dtype == other.dtype
            np.testing.assert_array_equal(kept.values, s2dq.requantize(plain, 0.5, 9).values)


@pytest.mark.parametrize("size", [2, 3000], ids=["small", "large"])
def test_short_axes_in_any_order_and_direction(rng, size):
    """Some follow one another in memory, some have one index, some have two."""
    for _ in range(120):
        shape = tuple(int(extent) for extent in rng.integers(1, 4, rng.integers(2, 6)))
        shape = (*shape, size)[:: rng.choice([-1, 1])]
        order = rng.permutation(len(shape))
        memory = (rng.standard_normal([shape[k] for k in order]) * 50).astype(rng.choice(FLOATS))
        turn = tuple(slice(None, None, int(rng.choice([-1, 1, 1]))) for _ in shape)
        x = memory.transpose(np.argsort(order))[turn]
        assert x.shape == shape
        if rng.random() < 0.3:  # an axis of one index, seen many times
            k = int(rng.integers(0, len(shape)))
            x = np.broadcast_to(x.take([0], k), shape)
        q = s2dq.quantize(x, 0.7, 3, "int16")
        assert q == s2dq.quantize(x.copy(), 0.7, 3, "int16"), (shape, x.strides)
        values = q.values.transpose(order).copy().transpose(np.argsort(order))
        same(QuantizedTensor(values, 0.7, 3).dequantize(), q.dequantize())


@pytest.mark.parametrize("x_dtype", FLOATS)
@pytest.mark.parametrize("beyond", [-1, 0, 1])
def test_lengths_next_to_whole_parts(rng, x_dtype, beyond):
    """Parts have 64 KiB at least."""
    for parts in (1, 2, 3):
        count = (parts << 16) // np.dtype(x_dtype).itemsize + beyond
        x = (rng.standard_normal(count) * 40).astype(x_dtype)
        q = s2dq.quantize(x, 0.3, 5)
        np.testing.assert_array_equal(q.values, reference.quantize(x, 0.3, 5))
        same(q.dequantize(), reference.dequantize(q.values, 0.3, 5))


@pytest.mark.parametrize("out_dtype", [">f2", "<f2", ">f4", "<f4", ">f8", "<f8"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_dequantize_into_every_float(rng, dtype, out_dtype):
    info = np.iinfo(dtype)
    values = rng.integers(info.min, info.max, 3000, dtype, True)
    values[:2] = info.min, info.max
    zero_points = {0, 5, int(info.min), int(info.max)}
    for scale, zero_point in product((0.5, 0.1, 1e-7, 1e-40, 1e30, 3.4e38, 100.0), zero_points):
        q = QuantizedTensor(values, scale, zero_point)
        out = np.empty(values.shape, out_dtype)
        assert s2dq.dequantize(q, out=out) is out
        with np.errstate(all="ignore"):
            single = (values.astype(np.int64) - zero_point).astype(np.float32) * np.float32(scale)
            expected = single.astype(out_dtype)
        assert out.tobytes() == expected.tobytes()


def test_every_float16_is_rounded_to_once():
    """All float32 around all float16 and half way between them."""
    half = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float32)
    middle = (half[:-1] + half[1:]) / 2
    numbers = np.concatenate([half, middle, np.nextafter(middle, 0), np.nextafter(middle, np.float32(1e9)),
                              np.float32([65519.996, 65520.0, 65520.004, 1e9])]).astype(np.float32)  # fmt: skip
    # A scale per element turns the stored 1 into any number above 0.
    numbers = numbers[numbers > 0]
    out = np.empty(numbers.shape, np.float16)
    s2dq.QuantizedTensor(np.ones(numbers.shape, np.int8), numbers, 0, axis=0).dequantize(out=out)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(out.view(np.uint16), numbers.astype(np.float16).view(np.uint16))


def test_every_float16_is_read():
    x = np.arange(0x10000, dtype=np.uint32).astype(np.uint16).view(np.float16)
    for scale in (1.0, 2.0**-24, 0.1):
        expected = s2dq.quantize(x.astype(np.float32), scale, -5, "int32")
        np.testing.assert_array_equal(s2dq.quantize(x, scale, -5, "int32").values, expected.values)


# ------------------------------------------------------------------------------ the environment of the thread

def numbers_of_all_kinds():
    """Arrays of every float type, and scales for each element."""
    import numpy as np

    rng = np.random.default_rng(7)
    numbers = np.concatenate([rng.standard_normal(70000) * 40, rng.standard_normal(3000) * 1e-39,
                              np.arange(-400, 400) / 8, [np.nan, np.inf, -np.inf, -0.0, 1e-45]])  # fmt: skip
    with np.errstate(all="ignore"):
        arrays = [numbers.astype(dtype) for dtype in ("float16", "float32", "float64")]
    return arrays, np.linspace(0.05, 2, len(numbers))


def digest_of_all(arrays=None, scales=None):
    """Print a digest of conversions of every kind."""
    import hashlib

    import numpy as np

    import s2dq

    if arrays is None:
        arrays, scales = numbers_of_all_kinds()
    seen = hashlib.sha256()
    for x in arrays:
        for dtype in ("int8", "uint8", "int16", "uint16", "int32"):
            for scale, zero_point, axis in ((0.1, 3, None), (1e-40, 0, None), (scales, 9, 0)):
                for num_threads in (1, 2):
                    q = s2dq.quantize(x, scale, zero_point, dtype, axis=axis, num_threads=num_threads)
                    seen.update(q.values.tobytes() + q.scale.tobytes())
                    for out_dtype in ("float16", "float32", "float64"):
                        out = np.empty(x.shape, out_dtype)
                        seen.update(q.dequantize(out=out, num_threads=num_threads).tobytes())
                    seen.update(s2dq.requantize(q, 0.3, 1, num_threads=num_threads).values.tobytes())
                    seen.update(s2dq.requantize(q, 0.3, 1, "int8", num_threads=num_threads).values.tobytes())
    print(s2dq._kernels.isa(), seen.hexdigest())


def digest_in_environment(name):
    """The same with the thread's floating-point environment changed; it must be found as it was left."""
    import ctypes
    import mmap

    import s2dq  # noqa: F401

    arrays, scales = numbers_of_all_kinds()
    code = {"get": b"\x0f\xae\x1f\xc3", "set": b"\x0f\xae\x17\xc3"}  # stmxcsr (rdi); ldmxcsr (rdi)
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code["get"].ljust(16, b"\xcc") + code["set"])
    base = ctypes.addressof(ctypes.c_char.from_buffer(page))
    get, put = (ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_uint32))(base + at) for at in (0, 16))
    changed = ctypes.c_uint32(0x1F80 | {"down": 0x2000, "up": 0x4000, "zero": 0x6000, "flushed": 0x8040}[name])
    after = ctypes.c_uint32()
    put(changed)
    digest_of_all(arrays, scales)
    get(after)
    assert after.value & ~0x3F == changed.value, hex(after.value)


@pytest.fixture(scope="module")
def digest():
    return run_child(digest_of_all, helpers=(numbers_of_all_kinds,)).split()[1]


@pytest.mark.parametrize("isa", _kernels.available_isas())
def test_every_instruction_set_gives_the_same_bits(isa, digest):
    assert run_child(digest_of_all, helpers=(numbers_of_all_kinds,), env={"S2DQ_ISA": isa}).split() == [isa, digest]


def test_ends_of_int32_with_parameters_for_each(rng):
    """What saturates and what is no number, where every element has a zero point of its own."""
    ends = np.iinfo(np.int32)
    x = np.tile(np.array([np.nan, 1e10, -1e10, np.inf, -np.inf, 0.75, -2.0**31, 2.0**31, 12345.0], np.float32), 40)
    zero_point = rng.choice([ends.min, ends.min + 1, -1000, -1, 0, 1, 1000, ends.max - 1, ends.max], x.size)
    scale = rng.choice([0.5, 1.0, 3.0], x.size)
    for x_dtype, divide in (("float32", divide_single), ("float64", divide_double)):
        expected = [exactly(*entry, np.int32, divide) for entry in zip(x, scale, zero_point)]
        q = s2dq.quantize(x.astype(x_dtype), scale, zero_point, "int32", axis=0)
        assert q.values.tolist() == expected


@pytest.mark.parametrize("groups, run, period", [(1, 7, 3), (3, 5, 1), (3, 12, 4), (4, 10, 4), (2, 4100, 64),
                                                 (5, 3, 3), (7, 2, 5), (2, 2048, 2048)])  # fmt: skip
def test_parameters_lie_where_the_kernel_says(rng, groups, run, period):
    """Groups of runs, each of periods: also what no axis makes of it, as parts of periods at the end of a run."""
    places = np.arange(2 * groups * run + run // 2 + 1)
    index = places // run % groups * period + places % run % period
    scale = rng.uniform(0.1, 3, groups * period).astype(np.float32)
    zero_point = rng.integers(-90, 90, groups * period, np.int32)
    x = (rng.standard_normal(places.size) * 100).astype(np.float32)
    values = np.empty(x.shape, np.int8)
    _kernels.convert(x, values, None, (scale, zero_point), (groups, run, period), 1)
    each = s2dq.quantize(x, scale[index], zero_point[index], axis=0)
    np.testing.assert_array_equal(values, each.values)
    numbers = np.empty(x.shape, np.float32)
    _kernels.convert(values, numbers, (scale, zero_point), None, (groups, run, period), 1)
    same(numbers, each.dequantize())


X86 = pytest.mark.skipif(
    not {"avx2", "avx512vbmi"} & set(_kernels.available_isas()), reason="the environment of an x86 thread"
)


@pytest.mark.parametrize("direction", ["down", "up", "zero"])
def test_rounding_mode_of_the_caller_does_not_matter(direction, rng):
    if direction not in rounding_directions():
        pytest.skip("fesetround's numbers are not known here")
    libm = ctypes.CDLL("libm.so.6")
    x = np.concatenate([np.arange(-600, 600) / 4, rng.standard_normal(40000) * 50]).astype(np.float32)
    scales = (0.5, 0.1, 1 / 255, 1e-40, 1e-46 * 9)

    def tenths():
        """Of the arithmetic of vectors, which has a rounding mode of its own on x86."""
        return (np.array([1.0, -1.0]) / 10).tobytes()

    def all_results():
        pre = s2dq.Preprocessor(scale=0.3, mean=(0.5, 0.4, 0.3), std=(0.2, 0.3, 0.25), pad_value=(1, 2, 3), size=8)
        yield pre(np.arange(108, dtype=np.uint8).reshape(1, 6, 6, 3)).tobytes()
        for scale, dtype in product(scales, DTYPES):
            q = s2dq.quantize(x, scale, 1, dtype)
            out = q.dequantize(out=np.empty(x.shape, np.float16))
            yield q.values.tobytes(), q.scale.tobytes(), q.dequantize().tobytes(), out.tobytes()
            yield s2dq.requantize(q, 0.3, 2, "int8").values.tobytes()

    expected, nearest = list(all_results()), tenths()
    number = rounding_directions()[direction]
    assert libm.fesetround(number) == 0
    try:
        before = tenths()
        results = list(all_results())
        assert libm.fegetround() == number and tenths() == before, "the caller's rounding mode was changed"
    finally:
        libm.fesetround(0)
    assert results == expected and before != nearest == tenths()


@X86
@pytest.mark.parametrize("name", ["down", "up", "zero", "flushed"])
def test_environment_of_the_thread_does_not_matter(name, digest):
    assert run_child(digest_in_environment, name, helpers=(numbers_of_all_kinds, digest_of_all)).split()[1] == digest


@pytest.mark.skipif(not FLUSHES, reason="the environment of an x86 thread")
def test_small_scales_in_lists_are_not_0_to_a_thread_that_flushes():
    small = [np.float32(1e-40), np.float32(3e-42)]
    with subnormals_are_zero():
        q = QuantizedTensor(np.zeros((2, 1), np.int8), small, 0, axis=0)
    assert q.scale.tobytes() == np.array(small).tobytes()


def test_float32_are_widened_without_the_processor(rng):
    bits = np.concatenate([rng.integers(0, 2**32, 20000), rng.integers(0, 1 << 24, 5000), [0, 1 << 31, 0x7F800000,
                           0xFF800000, 1, 0x80000001, 0x7FFFFF, 0x800000]]).astype(np.uint32)  # fmt: skip
    numbers = bits.view(np.float32)
    with np.errstate(all="ignore"):
        expected = numbers.astype(np.float64)
    same(_validate.to_float64(numbers), expected)


def test_scale_is_rounded_half_to_even_without_the_processor(rng):
    bits = rng.integers(0, 0x7FF0000000000000, 20000)
    numbers = np.concatenate([bits.view(np.float64), np.exp(rng.uniform(-110, 95, 20000))])
    singles = rng.integers(1, 0x7F7FFFFE, 5000).astype(np.int32).view(np.float32).astype(np.float64)
    above = np.nextafter(singles.astype(np.float32), np.float32(np.inf)).astype(np.float64)
    middle = (singles + above) / 2
    numbers = np.concatenate([numbers, singles, middle, np.nextafter(middle, 0), np.nextafter(middle, np.inf),
                              [0.0, 5e-324, 2.0**-150, 2.0**-149, 2.0**-126, 3.4028235677973366e38, 1e39, np.inf]])
    numbers = np.concatenate([numbers, -numbers])
    with np.errstate(all="ignore"):
        expected = numbers.astype(np.float32)
    np.testing.assert_array_equal(_validate.to_float32(numbers).view(np.uint32), expected.view(np.uint32))
    assert np.isnan(_validate.to_float32(np.array([np.nan]))).all()


def halves(rng):
    """Integers that float64 cannot hold, beside the middle of two float32 and on it."""
    lower = rng.integers(2**23, 2**24 - 1, 500)
    middle = lower * 2 + 1 << 38  # of 62 or 63 bits
    least = lower * 2 + 1 << 29  # of 53 or 54
    return np.concatenate([middle - 1, middle, middle + 1, middle + rng.integers(-(2**30), 2**30, 500),
                           least - 1, least, least + 1])  # fmt: skip


@pytest.mark.parametrize("kind", [np.int64, np.uint64, np.longdouble])
def test_scale_is_rounded_once(rng, kind):
    """Not to float64 before."""
    exact = [int(number) for number in halves(rng)]
    if kind is np.longdouble and np.finfo(np.longdouble).nmant < 63:
        exact = [number & -(2**11) for number in exact]
    numbers = np.array(exact, kind)
    if kind is np.longdouble:
        numbers = np.array([kind(number >> 32) * 2**32 + kind(number & (2**32 - 1)) for number in exact], kind)
        assert [int(number) for number in numbers] == exact
    expected = np.array([nearest_float32(number) for number in exact], np.float32)
    assert (_validate.to_float32(numbers) == expected).all()
    if kind is np.longdouble:  # smaller ones, which float64 cannot hold either
        assert (_validate.to_float32(numbers / 2**62) == expected / 2**62).all()
    values = np.zeros(len(exact), np.int8)
    assert (s2dq.QuantizedTensor(values, numbers, 0, axis=0).scale == expected).all()
    assert (s2dq.QuantizedTensor(values, list(numbers), 0, axis=0).scale == expected).all()
    assert [s2dq.QuantizedTensor(values, number, 0).scale for number in numbers[::50]] == expected[::50].tolist()
    for number, right in zip(numbers[::50], expected[::50]):
        assert np.float32(s2dq.Preprocessor(scale=number, rescale=float(number)).scale) == right


def test_numbers_that_float64_cannot_hold_are_rounded_to_nearest_or_odd(rng):
    """Odd is the neighbour that is, of the two around the number, whatever is nearer; what is exact stays."""
    for number in (*halves(rng)[::20].tolist(), *rng.integers(2**53, 2**60, 200).tolist(), 2**53 + 1, 2**53 + 3):
        for value in (np.int64(number), np.int64(-number)):
            nearest, odd = _validate._to_float(value), _validate._to_float(value, odd=True)
            assert nearest == float(int(value))
            digits = np.float64(odd).view(np.int64) & 1
            exact = int(nearest) == int(value)
            assert odd == nearest if exact else digits and abs(int(odd) - int(value)) < np.spacing(abs(nearest))


@pytest.mark.parametrize("text", ["nan", "inf", "-inf"])
def test_wide_numbers_that_are_none_are_refused_or_held(text):
    value = np.longdouble(text)
    with pytest.raises(ValueError, match="scale must be above 0 and finite"):
        s2dq.quantize(np.ones(1), value, 0)
    with pytest.raises(ValueError, match="^Preprocessor: rescale must be finite"):
        s2dq.Preprocessor(scale=1, rescale=value)
    for dtype in ("float32", "float64"):
        padded = s2dq.space_to_batch_nd(np.ones((1, 1), dtype), [1], [[0, 1]], pad_value=value)
        np.testing.assert_array_equal(padded[0, 1], float(text))


@pytest.mark.skipif(np.finfo(np.longdouble).max == np.finfo(np.float64).max, reason="no wider float here")
def test_numbers_beyond_float64_are_infinite_in_float32():
    huge = np.longdouble("1e4000")
    assert _validate.to_float32(np.array([-huge, huge])).tolist() == [-np.inf, np.inf]


def nearest_float32(number):
    """Half to even, of an integer of more than 24 bits."""
    drop = number.bit_length() - 24
    kept, rest = number >> drop, number & ((1 << drop) - 1)
    half = 1 << (drop - 1)
    return np.float32((kept + (rest > half or (rest == half and kept & 1))) << drop)


def test_a_registered_dtype_is_none_of_numpys_own_whatever_its_code():
    """None has the code of an int8 today."""
    dtype = SimpleNamespace(str="|i1", isbuiltin=2)
    with pytest.raises(_validate.Refusal, match=r"TypeError.*quantize: x must have dtype int8 or uint8, not "):
        _validate._among(_validate.Door("quantize"), "x must have dtype", dtype, ("int8", "uint8"))


@pytest.mark.parametrize("direction", ["down", "up", "zero"])
def test_scales_of_integers_are_rounded_half_to_even_whatever_the_thread_does(direction):
    """Both lie in the middle between two float32."""
    if direction not in rounding_directions():
        pytest.skip("fesetround's numbers are not known here")
    scales = np.array([2**24 + 1, 2**24 + 3], np.int32)
    libm = ctypes.CDLL("libm.so.6")
    assert libm.fesetround(rounding_directions()[direction]) == 0
    try:
        tensor = QuantizedTensor(np.zeros((2, 1), np.int8), scales, 0, axis=0)
    finally:
        libm.fesetround(0)
    assert tensor.scale.tolist() == [2**24, 2**24 + 4]


# ------------------------------------------------------------------------------------------------ requantize

@pytest.mark.parametrize(("source", "target"), list(product(DTYPES, DTYPES)))
def test_requantize_is_both_steps(rng, source, target):
    a, b = np.iinfo(source), np.iinfo(target)
    for shape, axis in (((3, 5), None), ((40, 50), None), ((2, 3, 400), 1), ((300, 3), 1), ((2, 3, 4, 5), 0),
                        ((2, 2, 30, 30, 4), "words"), ((2, 3, 2, 2, 4), "words"), ((0, 4), 1)):  # fmt: skip
        count = None if axis is None else shape[1] * shape[4] if axis == "words" else shape[axis]
        axis = 1 if axis == "words" else axis
        values = rng.integers(a.min, a.max, shape, source, True)
        q = QuantizedTensor(values, rng.uniform(0.01, 2, count), rng.integers(a.min, a.max, count, source, True),
                            axis=axis)  # fmt: skip
        numbers = q.dequantize()
        for length in {None, count}:
            pair = rng.uniform(0.01, 2, length), rng.integers(b.min, b.max, length, target, True)
            expected = s2dq.quantize(numbers, *pair, target, axis=axis if length is not None else None)
            for num_threads in (None, 2):
                assert s2dq.requantize(q, *pair, target, num_threads=num_threads) == expected
            out = np.full(shape, 77, target)
            result = s2dq.requantize(q, *pair, target, out=out)
            assert result.values is out and result == expected and out.flags.writeable
            if source == target:
                assert s2dq.requantize(q, *pair) == expected, "the type is kept"


@pytest.mark.parametrize(("source", "target"), list(product(["int8", "uint8"], repeat=2)))
def test_bytes_are_looked_up_right_for_every_pair_of_zero_points(source, target):
    a, b = np.iinfo(source), np.iinfo(target)
    levels = np.arange(a.min, a.max + 1).astype(source)
    for zero_point in range(a.min, a.max + 1, 15):
        for new_zero_point in range(b.min, b.max + 1, 15):
            q = QuantizedTensor(levels, 0.5, zero_point)
            expected = reference.requantize(levels, 0.5, zero_point, 0.75, new_zero_point, target)
            result = s2dq.requantize(q, 0.75, new_zero_point, target)
            np.testing.assert_array_equal(result.values, expected, strict=True)


def draw_view(rng):
    """Bytes that lie in memory anyhow: turned, in steps, backwards, again and again."""
    shape = rng.integers(1, 9, rng.integers(1, 7))
    whole = rng.integers(-128, 128, tuple(shape * 2 + 1), np.int8)
    x = whole[tuple(slice(1, int(n) + 1) if rng.integers(2) else slice(0, int(2 * n), 2) for n in shape)]
    x = x[tuple(slice(None, None, -1) if rng.integers(3) == 0 else slice(None) for _ in shape)]
    x = x.transpose(rng.permutation(x.ndim))
    return np.broadcast_to(x, (int(rng.integers(2, 300)), *x.shape)) if rng.integers(3) == 0 else x


def test_requantize_of_views(rng):
    """As of a copy and in two steps, whether one table is looked up, one for each plane, or none."""
    for _ in range(60):
        x = draw_view(rng)
        for axis in (None, int(rng.integers(x.ndim))):
            count = () if axis is None else (x.shape[axis],)
            pair = rng.uniform(0.1, 2, count).astype(np.float32), rng.integers(-5, 5, count)
            of_view, of_copy = (QuantizedTensor(array, *pair, axis=axis) for array in (x, x.copy()))
            result = s2dq.requantize(of_view, 0.3, 1, "uint8", num_threads=2)
            expected = s2dq.quantize(of_copy.dequantize(), 0.3, 1, "uint8")
            assert result == expected == s2dq.requantize(of_copy, 0.3, 1, "uint8"), (x.shape, x.strides, axis)


# ------------------------------------------------------------------------------------------------ the object

def tensor(shape=(1, 4, 4, 2), dtype="int8", scale=0.5, zero_point=-3, axis=None):
    values = (np.arange(prod(shape)) % 100).astype(dtype).reshape(shape)
    return QuantizedTensor(values, scale, zero_point, axis=axis)


def test_parts_and_their_types():
    values = np.arange(6, dtype=np.int8).reshape(2, 3)
    q = QuantizedTensor(values, 0.1, 5)
    assert (q.shape, q.dtype, q.ndim, q.axis) == ((2, 3), np.dtype("int8"), 2, None)
    assert type(q.values) is np.ndarray and np.shares_memory(q.values, values)
    assert q.scale.shape == () and q.scale.dtype == np.float32 and q.scale == np.float32(0.1)
    assert q.zero_point.shape == () and q.zero_point.dtype == np.int32 and q.zero_point == 5
    assert values.flags.writeable, "the caller's own array stays as it was"
    q = QuantizedTensor(values, np.array([1, 2, 3]), np.int64(7), axis=-1)
    assert q.axis == 1 and q.scale.tolist() == [1, 2, 3] and q.zero_point.tolist() == [7, 7, 7]
    q = QuantizedTensor(values, 0.5, range(2), axis=np.int8(0))
    assert q.axis == 0 and q.scale.tolist() == [0.5, 0.5] and q.zero_point.tolist() == [0, 1]
    given = np.array([1.0, 2.0], np.float32)
    q = QuantizedTensor(values, given, 0, axis=0)
    given[0] = 9
    assert q.scale.tolist() == [1.0, 2.0], "parameters are the tensor's own"


@pytest.mark.parametrize(
    "scale", [1, Fraction(1, 4), np.float64(0.25), np.float16(0.5), np.array(3), np.float32(1e-42)]
)
def test_scale_may_be_any_real_number(scale):
    assert QuantizedTensor(np.int8([1]), scale, 0).scale == np.float32(float(scale))


def test_it_never_changes():
    q = tensor(axis=3, scale=[0.5, 0.25])
    for name in ("values", "scale", "zero_point", "axis", "shape", "other"):
        with pytest.raises(AttributeError, match="never changes"):
            setattr(q, name, 1)
        with pytest.raises(AttributeError, match="never changes"):
            delattr(q, name)
    for array in (q.values, q.scale, q.zero_point):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    before = q.scale.copy()
    q.__init__(q.values, 9.0, 0)
    np.testing.assert_array_equal(q.scale, before)
    fresh = s2dq.quantize(np.ones(3), 0.5, 0)
    assert not fresh.values.flags.writeable
    for source in (q, QuantizedTensor(q.values, 0.5, 0)):
        moved = s2dq.space_to_depth(source, 2)
        assert not any(array.flags.writeable for array in (moved.values, moved.scale, moved.zero_point))
    assert not s2dq.requantize(q, 0.5, 0).values.flags.writeable


CHANGES = {
    "values.shape": lambda q: setattr(q.values, "shape", (4, q.values.size // 4)),
    "values.dtype": lambda q: setattr(q.values, "dtype", np.int16),
    "values of floats": lambda q: setattr(q.values, "dtype", np.float16),
    "scale.shape": lambda q: setattr(q.scale, "shape", (q.scale.size, 1)),
    "scale.dtype": lambda q: setattr(q.scale, "dtype", np.int32),
    "scale.strides": lambda q: setattr(q.scale, "strides", (0,)),
    "zero_point.strides": lambda q: setattr(q.zero_point, "strides", (0,)),
    "zero_point.shape": lambda q: setattr(q.zero_point, "shape", (1, q.zero_point.size)),
    "both shapes": lambda q: [setattr(array, "shape", (q.scale.size, 1)) for array in (q.zero_point, q.scale)],
    "zero_point.dtype": lambda q: setattr(q.zero_point, "dtype", np.uint32),
    "zero_point out of range": lambda q: setattr(q.values, "dtype", np.uint8),
}
# With one scale for all, values of another shape or integer type are a tensor like others.
CHANGES_OF_NUMBERS = set(CHANGES) - {"values.shape", "values.dtype", "scale.strides", "zero_point.strides"}
CALLS_OF_TENSORS = {
    "space_to_depth": (lambda q: s2dq.space_to_depth(q, 2), "x"),
    "space_to_batch_nd": (lambda q: s2dq.space_to_batch_nd(q, [2, 2], [[1, 1], [1, 1]]), "x"),
    "pack_vect_c": (lambda q: s2dq.pack_vect_c(q, "NHWC"), "x"),
    "dequantize": (s2dq.dequantize, "q"),
    "requantize": (lambda q: s2dq.requantize(q, 0.25, 0), "q"),
    "to_litert": (lambda q: s2dq.interop.to_litert(q, (0.5, -1)), "q"),
    "Postprocessor": (s2dq.Postprocessor(scale=0.5, zero_point=-1), "tensor"),
}


@pytest.mark.filterwarnings("ignore:Setting the:DeprecationWarning")
@pytest.mark.parametrize("call", CALLS_OF_TENSORS)
@pytest.mark.parametrize(("change", "axis"), [*product(CHANGES, [3]), *product(sorted(CHANGES_OF_NUMBERS), [None])])
def test_tensors_whose_arrays_were_changed_in_place_are_refused(change, axis, call):
    """Whoever holds a tensor's arrays can set their shape, strides and type."""
    parameters = (0.5, -1) if axis is None else ([0.5, 0.25], [-1, -2])
    q = QuantizedTensor(np.arange(32, dtype=np.int8).reshape(1, 4, 4, 2), *parameters, axis=axis)
    CHANGES[change](q)
    run, argument = CALLS_OF_TENSORS[call]
    with pytest.raises(ValueError, match=rf"^{call}: {argument} is no quantized tensor any more") as raised:
        run(q)
    assert str(raised.value).count(f", axis {axis} (") == (axis is not None)


# Values, scale, zero point and axis, and the attribute of an array of which they fit no more once it is another.
MISFITS = [
    *((np.zeros((1, 2, 2, 2), np.uint8), *parameters, "values.dtype", np.int8)  # 200 is above the range
      for parameters in ((0.5, 200, None), ([0.5, 0.25], [3, 200], 3))),
    *((np.zeros((1, 2), np.int8), *parameters, "zero_point.dtype", dtype)  # 3 is within the range
      for parameters in ((0.5, 3, None), ([0.5, 0.5], 3, 1)) for dtype in (np.float32, np.uint32)),
    *((np.zeros((1, 4, 4, 2), np.int8), [0.5, 0.25], 0, 3, "values.shape", shape)  # the axis is gone
      for shape in ((4, 4, 2), (16, 2), (32,))),
    (np.zeros((1, 1, 1, 1), np.int8), [1], 0, 3, "values.shape", ()),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:Setting the:DeprecationWarning")
@pytest.mark.parametrize(("values", "scale", "zero_point", "axis", "name", "other"), MISFITS)
def test_tensors_that_fit_no_more_are_refused(values, scale, zero_point, axis, name, other):
    q = QuantizedTensor(values.copy(), scale, zero_point, axis=axis)
    assert (s2dq.dequantize(q) < 0).any() == bool(np.any(zero_point))
    array, attribute = name.split(".")
    setattr(getattr(q, array), attribute, other)
    with pytest.raises(ValueError, match="is no quantized tensor any more") as raised:
        s2dq.dequantize(q)
    assert str(raised.value).count(f", axis {axis} (") == (axis is not None)


@pytest.mark.parametrize(("dtype", "least", "greatest"), [("int8", -128, 127), ("uint8", 0, 255)])
@pytest.mark.parametrize("axis", [None, 1])
def test_zero_points_at_the_ends_of_the_range_are_taken(dtype, least, greatest, axis):
    for zero_point in (least, greatest):
        values, scale = np.full((1, 2), greatest, dtype), 0.5 if axis is None else [0.5, 0.5]
        q = QuantizedTensor(values, scale, zero_point, axis=axis)
        assert (s2dq.dequantize(q) == (greatest - zero_point) / 2).all()


@pytest.mark.filterwarnings("ignore:Setting the:DeprecationWarning")
@pytest.mark.parametrize(("shape", "axis", "fits"), [
    ((1, 2, 6, 1, 4), 1, True), ((1, 2, 6, 1, 4), 2, False), ((1, 3, 4, 4), 1, False), ((1, 3, 2, 2, 4), 1, False),
])  # fmt: skip
def test_lanes_have_parameters_along_the_words_of_packed_tensors(shape, axis, fits):
    """... one for each; a tensor whose shape was changed in place has none of these that do not fit it."""
    values = np.arange(prod(shape), dtype=np.int8)
    q = QuantizedTensor(values.reshape((1, 8, -1) if axis == 1 else (1, -1, 8)), np.linspace(1, 2, 8), 0, axis=axis)
    q.values.shape = shape
    if fits:
        assert s2dq.dequantize(q).shape == shape
        return
    with pytest.raises(ValueError, match=f"is no quantized tensor any more.*, axis {axis} "):
        s2dq.dequantize(q)


def test_a_tensor_that_nobody_made_is_refused():
    for call, (run, argument) in CALLS_OF_TENSORS.items():
        with pytest.raises(TypeError, match=f"^{call}: {argument} was not made by QuantizedTensor"):
            run(object.__new__(QuantizedTensor))


@pytest.mark.filterwarnings("ignore:Setting the:DeprecationWarning")
def test_scales_are_their_tensors_own():
    values = np.zeros((1, 2), np.int8)
    first = QuantizedTensor(values, 0.8125, 0)
    first.scale.shape = (1, 1)
    first.scale.flags.writeable = True
    first.scale[...] = 3
    again = QuantizedTensor(values, 0.8125, 0)
    assert again.scale.shape == () and again.scale == np.float32(0.8125) and not again.scale.flags.writeable
    moved = s2dq.pack_vect_c(QuantizedTensor(values.reshape(1, 2, 1, 1), 0.5, 3))
    moved.scale.shape = moved.zero_point.shape = (1, 1)
    for array in (moved.scale, moved.zero_point):
        array.flags.writeable = True
        array[...] = 9
    again = QuantizedTensor(values, 0.5, 3)
    assert (again.scale, again.zero_point) == (0.5, 3)


@pytest.mark.filterwarnings("ignore:Setting the:DeprecationWarning")
def test_result_has_parameters_of_its_own():
    q = tensor((1, 4, 4, 2), scale=0.5, zero_point=3)
    moved = s2dq.space_to_depth(q, 2)
    moved.scale.shape = (1, 1)
    moved.zero_point.flags.writeable = True
    moved.zero_point[...] = 9
    assert s2dq.space_to_depth(q, 2) == s2dq.space_to_depth(tensor((1, 4, 4, 2), scale=0.5, zero_point=3), 2)
    assert moved != q and moved == moved and not moved == copy.copy(q)


class Changing:
    """An argument whose value is 2, and which changes an array when it is asked for it."""

    def __init__(self, change, value=2):
        self.change, self.value = change, value

    def __index__(self):
        self.change()
        return self.value


@pytest.mark.filterwarnings("ignore:Setting the:DeprecationWarning")
@pytest.mark.parametrize("axis", [None, 0, 3])
@pytest.mark.parametrize("change", CHANGES)
def test_tensors_that_change_during_the_call(change, axis):
    """A call goes on with what it has seen: no other result, and no other error."""
    def fresh():
        parameters = (0.5, -1) if axis is None else ([0.5, 0.25], [-1, -2])
        return QuantizedTensor(np.arange(64, dtype=np.int8).reshape(2, 4, 4, 2), *parameters, axis=axis)

    calls = [
        lambda q, two: s2dq.space_to_depth(q, two),
        lambda q, two: s2dq.space_to_batch_nd(q, [1, 1], [[0, two], [0, 0]]),
        lambda q, two: s2dq.pack_vect_c(q, "NHWC", num_threads=two),
        lambda q, two: s2dq.dequantize(q, num_threads=two),
        lambda q, two: s2dq.requantize(q, 0.25, two),
    ]
    if axis is None:
        change = change.replace("strides", "dtype")  # a number has no strides
    for call in calls:
        q = fresh()
        result, expected = call(q, Changing(lambda q=q: CHANGES[change](q))), call(fresh(), 2)
        if isinstance(expected, QuantizedTensor):
            assert result == expected
        else:
            same(result, expected)


@pytest.mark.parametrize("q", [tensor(), tensor(axis=3, scale=[0.5, 0.25]), tensor((0, 3)), tensor((), zero_point=7),
                               tensor((1, 2, 3, 3, 4), scale=np.arange(1, 9), axis=1)])  # fmt: skip
def test_copies_are_equal(q):
    copies = [copy.copy(q), copy.deepcopy(q)]
    copies += [pickle.loads(pickle.dumps(q, protocol)) for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1)]
    for other in copies:
        assert type(other) is QuantizedTensor and other == q and other.axis == q.axis
        assert not other.values.flags.writeable and not other.scale.flags.writeable
    assert not np.shares_memory(copies[1].values, q.values) or not q.values.size


def test_equality_compares_everything():
    q = tensor(axis=3, scale=[0.5, 0.25])
    assert (q == tensor(axis=3, scale=[0.5, 0.25])) is True and (q != tensor(axis=3, scale=[0.5, 0.25])) is False
    values = q.values.copy()
    values[0, 0, 0, 0] += 1
    others = [
        QuantizedTensor(values, q.scale, q.zero_point, axis=3),
        QuantizedTensor(q.values, [0.5, np.nextafter(np.float32(0.25), 1)], q.zero_point, axis=3),
        QuantizedTensor(q.values, q.scale, [-3, -2], axis=3),
        QuantizedTensor(q.values, 0.5, -3),
        QuantizedTensor(q.values.astype(np.int16), q.scale, q.zero_point, axis=3),
        QuantizedTensor(q.values.reshape(1, 2, 8, 2), q.scale, q.zero_point, axis=3),
        q.values, None, 1, "q", object(),
    ]  # fmt: skip
    for other in others:
        assert (q == other) is False and (q != other) is True and (other == q) is False
    square = np.zeros((2, 2), np.int8)
    assert QuantizedTensor(square, [1, 2], 0, axis=0) != QuantizedTensor(square, [1, 2], 0, axis=1)
    tiny = np.array([1, 2], np.int32).view(np.float32)  # subnormal: equal only to a thread that flushes them
    assert QuantizedTensor(square[0], tiny[0], 0) != QuantizedTensor(square[0], tiny[1], 0)


@pytest.mark.filterwarnings("ignore:Setting the:DeprecationWarning")
@pytest.mark.parametrize("change", CHANGES)
def test_comparison_looks_at_each_tensor_once(change, monkeypatch):
    """Another thread may set the shape of an array in between."""
    def changed_afterwards(q):
        taken = _validate.snapshot(q)
        if q is one:
            CHANGES[change](q)
        return taken

    def fresh():
        return QuantizedTensor(np.arange(64, dtype=np.int8).reshape(2, 4, 4, 2), [0.5, 0.25], [-1, -2], axis=3)

    one = fresh()
    monkeypatch.setattr(quantized, "snapshot", changed_afterwards)
    assert one == fresh()


def test_it_has_no_hash_and_no_subclasses():
    with pytest.raises(TypeError, match="unhashable"):
        hash(tensor())
    with pytest.raises(TypeError, match="cannot be subclassed"):
        type("Sub", (QuantizedTensor,), {})


def test_repr_tells_all():
    q = QuantizedTensor(np.array([[1, 2], [3, 4]], np.uint8), 0.5, 3)
    assert repr(q) == ("QuantizedTensor([[1, 2],\n"
                       "                 [3, 4]], dtype=uint8, scale=0.5, zero_point=3)")  # fmt: skip
    q = QuantizedTensor(np.array([[1, 2]], np.int16), [0.5, 2], [3, 4], axis=1)
    assert repr(q) == "QuantizedTensor([[1, 2]], dtype=int16, scale=[0.5, 2. ], zero_point=[3, 4], axis=1)"
    large = repr(tensor((1, 100, 100, 64), axis=3, scale=np.arange(1, 65), zero_point=0))
    assert "shape=(1, 100, 100, 64)" in large and "..." in large and len(large) < 3000
    assert repr(tensor((0, 3))) == "QuantizedTensor([], dtype=int8, shape=(0, 3), scale=0.5, zero_point=-3)"


def test_numpy_does_not_take_it_for_an_array():
    q, array = tensor(), np.ones((1, 4, 4, 2))
    for attempt in (
        lambda: np.asarray(q), lambda: np.array(q), lambda: np.array([q, q], np.float32), lambda: np.stack([q, q]),
        lambda: q + array, lambda: array + q, lambda: array * q, lambda: np.add(array, q), lambda: np.exp(q),
        lambda: np.sum(q), lambda: q + 1, lambda: 1 - q, lambda: np.copyto(array, q), lambda: float(q), lambda: q[0],
        lambda: iter(q), lambda: len(q), lambda: memoryview(q),
    ):  # fmt: skip
        with pytest.raises(TypeError):
            attempt()
    with pytest.raises(TypeError, match=r"no array: take its \.values, or \.dequantize\(\) it"):
        np.asarray(q)


I8 = np.zeros(3, np.int8)
WORDS = np.zeros((1, 2, 3, 3, 4), np.int8)


@pytest.mark.parametrize(
    ("arguments", "keywords", "error", "message"),
    [
        ((np.zeros(3), 1.0, 0), {}, TypeError, "values must have dtype int8, uint8, .* not float64"),
        ((np.zeros(3, np.int64), 1.0, 0), {}, TypeError, "not int64"),
        ((np.zeros(3, bool), 1.0, 0), {}, TypeError, "not bool"),
        (([1, 2], 1.0, 0), {}, TypeError, "not int64"),
        ((np.datetime64(72340172838076673, "ns"), 1.0, 0), {}, TypeError, "not datetime64"),
        ((I8, np.timedelta64(5, "s"), 0), {}, TypeError, "scale must be a real number or one per index"),
        ((I8, 1.0, np.timedelta64(5, "s")), {}, TypeError, "zero_point must be an integer or one per index"),
        (("ab", 1.0, 0), {}, TypeError, "values must be an array that NumPy can view in place"),
        ((np.ma.array([1], dtype=np.int8), 1.0, 0), {}, TypeError, "values must not be a masked array"),
        ((I8, 0.0, 0), {}, ValueError, "scale must be above 0 and finite as a float32, not 0.0"),
        ((I8, -1.0, 0), {}, ValueError, "scale must be above 0 and finite as a float32, not -1.0"),
        ((I8, 5e-324, 0), {}, ValueError, "scale must be above 0 and .* not 5e-324"),
        ((I8, 1e39, 0), {}, ValueError, r"scale must be above 0 and finite as a float32, not 1e\+39"),
        ((I8, np.float32(0), 0), {}, ValueError, "scale must be above 0"),
        ((I8, 10**400, 0), {}, ValueError, "scale must be finite"),
        ((I8, float("nan"), 0), {}, ValueError, "scale must be finite, not nan"),
        ((I8, np.float32("inf"), 0), {}, ValueError, "scale must be above 0 and finite"),
        ((I8, True, 0), {}, TypeError, "scale must be a real number or one per index, not True"),
        ((I8, 1j, 0), {}, TypeError, "scale must be a real number"),
        ((I8, "1", 0), {}, TypeError, "scale must be a real number or one per index, not '1'"),
        ((I8, None, 0), {}, TypeError, "scale must be a real number or one per index, not None"),
        ((I8, np.array([True]), 0), {"axis": 0}, TypeError, "not of bool"),
        ((I8, np.ones((1, 3)), 0), {"axis": 0}, ValueError, r"not of shape \(1, 3\)"),
        ((I8, [1, 0, 1], 0), {"axis": 0}, ValueError, "above 0 and finite as a float32, every entry"),
        ((I8, [1, "a", 1], 0), {"axis": 0}, TypeError, r"scale\[1\] must be a real number, not 'a'"),
        ((I8, 1.0, 128), {}, ValueError, "zero_point 128 cannot be held by dtype int8"),
        ((I8, 1.0, -129), {}, ValueError, "zero_point must be at least -128, not -129"),
        ((np.zeros(3, np.uint8), 1.0, -1), {}, ValueError, "zero_point must be at least 0, not -1"),
        ((np.zeros(3, np.int32), 1.0, 2**31), {}, ValueError, "zero_point 2147483648 cannot be held by dtype int32"),
        ((I8, 1.0, 10**400), {}, ValueError, "cannot be held by dtype int8"),
        ((I8, 1.0, 0.0), {}, TypeError, "zero_point must be an integer or one per index"),
        ((I8, 1.0, True), {}, TypeError, "zero_point must be an integer, not True"),
        ((I8, 1.0, None), {}, TypeError, "zero_point must be an integer or one per index, not None"),
        ((I8, 1.0, [0, 1, 500]), {"axis": 0}, ValueError, r"zero_point\[2\] 500 cannot be held"),
        ((I8, 1.0, np.array([0, -500, 0])), {"axis": 0}, ValueError, r"zero_point\[1\] -500 cannot"),
        ((I8, 1.0, [0, 1.0, 5]), {"axis": 0}, TypeError, r"zero_point\[1\] must be an integer, not 1.0"),
        ((I8, [1, 2, 3], 0), {}, ValueError, r"scale has shape \(3,\): axis must say"),
        ((I8, 1.0, [0]), {}, ValueError, r"zero_point has shape \(1,\): axis must say"),
        ((I8, 1.0, 0), {"axis": 0}, ValueError, "axis is for one scale or zero_point per index"),
        ((I8, [1, 2], 0), {"axis": 0}, ValueError, "scale has 2 entries, axis 0 of values 3"),
        ((I8, [1, 2, 3], [1, 2]), {"axis": 0}, ValueError, "zero_point has 2 entries, axis 0 of values"),
        ((WORDS, [1] * 3, 0), {"axis": 1}, ValueError, "values 2 or, if packed, 8"),
        ((WORDS, [1] * 2, [0] * 8), {"axis": 1}, ValueError, "2 entries, but zero_point has 8"),
        ((WORDS, [1] * 8, 0), {"axis": 4}, ValueError, "axis 4 of values 4"),
        ((I8, [1, 2, 3], 0), {"axis": 1}, ValueError, "axis 1 is not one of the 1 dimensions of values"),
        ((I8, [1, 2, 3], 0), {"axis": -2}, ValueError, "axis -2 is not one of the 1 dimensions"),
        ((np.zeros((), np.int8), [1], 0), {"axis": 0}, ValueError, "axis 0 is not one of the 0 dimensions of values"),
        ((I8, [1, 2, 3], 0), {"axis": 0.0}, TypeError, "axis must be an integer, not 0.0"),
        ((I8, [1, 2, 3], 0), {"axis": False}, TypeError, "axis must be an integer, not False"),
        ((I8, [1, 2, 3], 0), {"axis": 10**30}, ValueError, "axis 10{30} is not"),
    ],
)
def test_refused_parts(arguments, keywords, error, message):
    with pytest.raises(error, match=message) as caught:
        QuantizedTensor(*arguments, **keywords)
    assert str(caught.value).startswith("QuantizedTensor: ")
    values = arguments[0]
    if type(values) is np.ndarray and values.dtype.name in DTYPES:  # it is a parameter that is refused
        with pytest.raises(error, match=message.replace("values", "x")):
            s2dq.quantize(np.zeros(values.shape), *arguments[1:], values.dtype, **keywords)


def test_parameters_of_small_floats_are_refused():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    for name in ("float8_e5m2", "bfloat16", "int4"):  # the first is of NumPy's kind of floats, the others of none
        small = np.ones(3, getattr(ml_dtypes, name))
        with pytest.raises(TypeError, match=f"scale must be a real number or one per index, not of {name}"):
            QuantizedTensor(I8, small, 0, axis=0)
        with pytest.raises(TypeError, match=f"zero_point must be an integer or one per index, not of {name}"):
            QuantizedTensor(I8, 1.0, small, axis=0)


FLOAT = np.zeros((2, 3), np.float32)
Q = tensor((2, 3))
LOCKED = np.zeros((2, 3), np.int8)
LOCKED.flags.writeable = False


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: s2dq.quantize(np.zeros(3, np.int32), 1.0, 0), TypeError, "x must hold float16, .* not int32"),
        (lambda: s2dq.quantize(np.zeros(3, np.longdouble), 1.0, 0), TypeError, "x must hold float16"),
        (lambda: s2dq.quantize(np.zeros(3, complex), 1.0, 0), TypeError, "not complex128"),
        (lambda: s2dq.quantize(Q, 1.0, 0), TypeError, "x must be an array that NumPy can view in place"),
        (lambda: s2dq.quantize(FLOAT, 1.0, 0, "int64"), TypeError, "dtype must be int8, uint8, .* not int64"),
        (lambda: s2dq.quantize(FLOAT, 1.0, 0, "float32"), TypeError, "dtype must be int8"),
        (lambda: s2dq.quantize(FLOAT, 1.0, 0, None), TypeError, "dtype must be int8, .* not None"),
        (lambda: s2dq.quantize(FLOAT, 1.0, 0, "junk"), TypeError, "dtype must be int8, .* not 'junk'"),
        (lambda: s2dq.quantize(FLOAT, 1.0, 0, num_threads=0), ValueError, "num_threads must be at least 1, not 0"),
        (lambda: s2dq.quantize(FLOAT, 1.0, 0, num_threads=True), TypeError, "num_threads must be an integer"),
        (lambda: s2dq.quantize(FLOAT, 1.0, 0, out=[1]), TypeError, "out must be an ndarray, not list"),
        (lambda: s2dq.quantize(FLOAT, 1.0, 0, out=Q), TypeError, "out must be an ndarray, not QuantizedTensor"),
        (lambda: s2dq.quantize(FLOAT, 1.0, 0, out=np.empty((2, 3), "u1")), TypeError, "have dtype int8, not uint8"),
        (lambda: s2dq.quantize(FLOAT, 1.0, 0, out=np.empty((3, 2), "i1")), ValueError, r"out must have shape \(2, 3\)"),
        (lambda: s2dq.quantize(FLOAT, 1.0, 0, out=np.empty((3, 2), "i1").T), ValueError, "out must be C-contiguous"),
        (lambda: s2dq.quantize(FLOAT, 1.0, 0, out=LOCKED), ValueError, "out must be writeable"),
        (lambda: s2dq.quantize(FLOAT, 1.0, 0, out=FLOAT.view("i1")[:, :3]), ValueError, "out must be C-contiguous"),
        (lambda: s2dq.quantize(FLOAT, 1.0, 0, out=FLOAT.ravel().view("i1")[:6].reshape(2, 3)), ValueError,
         "out must not overlap x"),
        (lambda: s2dq.dequantize(FLOAT), TypeError, "q must be a QuantizedTensor, not ndarray"),
        (lambda: s2dq.dequantize(None), TypeError, "q must be a QuantizedTensor, not NoneType"),
        (lambda: s2dq.dequantize(Q, out=np.empty((2, 3), "i4")), TypeError, "out must have dtype float16, float32 or"),
        (lambda: s2dq.dequantize(Q, out=np.empty((2, 4), "f4")), ValueError, "out must have shape"),
        (lambda: s2dq.dequantize(Q, out=7), TypeError, "out must be an ndarray, not int"),
        (lambda: s2dq.dequantize(Q, num_threads=-1), ValueError, "num_threads must be at least 1"),
        (lambda: s2dq.requantize(FLOAT, 1.0, 0), TypeError, "q must be a QuantizedTensor, not ndarray"),
        (lambda: s2dq.requantize(Q, [1, 2, 3], 0), ValueError, "but q has a single scale and no axis"),
        (lambda: s2dq.requantize(Q, 1.0, [0]), ValueError, "but q has a single scale and no axis"),
        (lambda: s2dq.requantize(tensor((2, 3), axis=1, scale=[1, 2, 3]), [1, 2], 0), ValueError, "axis 1 of q 3"),
        (lambda: s2dq.requantize(Q, 1.0, 200), ValueError, "zero_point 200 cannot be held by dtype int8"),
        (lambda: s2dq.requantize(Q, 1.0, 0, "float32"), TypeError, "dtype must be int8"),
        (lambda: s2dq.requantize(Q, 1.0, 0, out=np.empty((2, 3), "i2")), TypeError, "must have dtype int8, not int16"),
    ],
)
def test_refused_conversions(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_overlap_is_refused_before_anything_is_written():
    memory = np.arange(24, dtype=np.int8)
    q = QuantizedTensor(memory[:12].reshape(3, 4), 0.5, 0)
    kept = memory.copy()
    for call in (
        lambda: s2dq.requantize(q, 0.25, 0, out=memory[:12].reshape(3, 4)),
        lambda: s2dq.requantize(q, 0.25, 0, out=memory[6:18].reshape(3, 4)),
        lambda: s2dq.dequantize(q, out=memory[8:20].view(np.float32)[:3].repeat(4).reshape(3, 4)[:2]),
        lambda: s2dq.space_to_batch_nd(q, [1], [[0, 0]], out=memory[11:23].reshape(3, 4)),
    ):
        with pytest.raises(ValueError, match="out must"):
            call()
    np.testing.assert_array_equal(memory, kept)
    assert s2dq.requantize(q, 0.25, 0, out=memory[12:].reshape(3, 4)).values.tolist()[0] == [0, 2, 4, 6]


class Hostile:
    def __index__(self):
        raise KeyError("mine")

    __float__ = __array__ = __len__ = __iter__ = __index__


JUNK = [None, True, 0, -1, 2.5, 1j, float("nan"), 10**400, "x", b"ab", [], [1, 2], [[1]], {}, {1}, range(2), int, ...,
        object(), Hostile(), [Hostile()], np.zeros(2), np.zeros((2, 2), np.int8), np.array(1), np.array(["a"]),
        np.zeros(2, "i4,f4"), np.ma.array([1], mask=[1]), np.array([None]), np.datetime64("NaT", "s"), Q,
        Fraction(1, 3), np.zeros(2, np.float32), np.zeros((2, 3), np.int8)]  # fmt: skip


@pytest.mark.parametrize("junk", JUNK, ids=lambda junk: type(junk).__name__)
def test_anything_whatsoever(junk):
    calls = [
        lambda: QuantizedTensor(junk, 0.5, 0), lambda: QuantizedTensor(LOCKED, junk, 0),
        lambda: QuantizedTensor(LOCKED, 0.5, junk), lambda: QuantizedTensor(LOCKED, [1, 2], 0, axis=junk),
        lambda: QuantizedTensor(LOCKED, junk, junk, axis=junk), lambda: s2dq.quantize(junk, 0.5, 0),
        lambda: s2dq.quantize(FLOAT, junk, 0, axis=0), lambda: s2dq.quantize(FLOAT, 0.5, junk, axis=1),
        lambda: s2dq.quantize(FLOAT, 0.5, 0, junk), lambda: s2dq.quantize(FLOAT, 0.5, 0, axis=junk),
        lambda: s2dq.quantize(FLOAT, 0.5, 0, out=junk), lambda: s2dq.quantize(FLOAT, 0.5, 0, num_threads=junk),
        lambda: s2dq.dequantize(junk), lambda: s2dq.dequantize(Q, out=junk), lambda: s2dq.requantize(junk, 0.5, 0),
        lambda: s2dq.requantize(Q, junk, 0), lambda: s2dq.requantize(Q, 0.5, junk),
        lambda: s2dq.requantize(Q, 0.5, 0, junk), lambda: s2dq.requantize(Q, 0.5, 0, out=junk),
        lambda: s2dq.space_to_batch_nd(Q, junk, [[0, 0]]), lambda: s2dq.space_to_batch_nd(Q, [1], [[0, 0]], out=junk),
        lambda: s2dq.space_to_batch_nd(Q, [1], [[0, 0]], pad_value=junk),
    ]  # fmt: skip
    for number, call in enumerate(calls):
        try:
            result = call()
        except (TypeError, ValueError):
            continue
        assert isinstance(result, (QuantizedTensor, np.ndarray)), number
    assert not LOCKED.any()


def test_many_threads_at_once(rng):
    x = (rng.standard_normal((50, 997)) * 40).astype(np.float32)
    expected = s2dq.quantize(x, 0.3, 1).values.tobytes()
    failures = []

    def work():
        for _ in range(20):
            if s2dq.quantize(x, 0.3, 1, num_threads=2).values.tobytes() != expected:
                failures.append(1)

    workers = [threading.Thread(target=work) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures


def quantize_after_fork():
    import os

    import numpy as np

    import s2dq

    x = np.linspace(-40, 40, 1 << 20, dtype=np.float32)
    expected = s2dq.quantize(x, 0.3, 1, num_threads=2).values.tobytes()
    child = os.fork()
    if child == 0:
        os._exit(0 if s2dq.quantize(x, 0.3, 1, num_threads=2).values.tobytes() == expected else 1)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="no fork")
def test_child_of_a_fork_converts_too():
    assert run_child(quantize_after_fork).split() == ["0"]


def convert_between_guards():
    import itertools

    import numpy as np

    import s2dq
    from guarded import Arena

    def place(arena, length, dtype, end, apart):
        """An array so many bytes away from the inaccessible page."""
        nbytes = length * np.dtype(dtype).itemsize
        whole = arena.place((nbytes + apart,), np.uint8, end)
        return (whole[apart:] if end == "low" else whole[:nbytes]).view(dtype)

    source, target = Arena(1 << 16), Arena(1 << 16)
    for length in [*range(1, 71), 255, 2047, 2048, 2049, 4100]:
        for x_dtype in ("float16", "float32", "float64"):
            for dtype in ("int8", "uint16", "int32"):
                for end in ("low", "high"):
                    x = source.place((length,), x_dtype, end)
                    x[...] = np.arange(length) % 90
                    out = target.place((length,), dtype, end)
                    for scale, axis in ((1.0, None), (np.ones(length), 0)):
                        q = s2dq.quantize(x, scale, 0, dtype, axis=axis, out=out)
                        assert (out == np.arange(length) % 90).all() and target.untouched_outside(out)
                    back = source.place((length,), x_dtype, end)
                    q.dequantize(out=back)
                    assert (back == np.arange(length) % 90).all() and source.untouched_outside(back)
        pairs = itertools.product(("int8", "uint8", ">i2", "uint16", "int32"), repeat=2)
        for x_dtype, dtype in itertools.islice(pairs, length % 3, None, 3):  # each pair at every third length
            for end, apart in (("low", 0), ("high", 0), ("low", 1), ("high", 1)):
                x = place(source, length, x_dtype, end, apart)
                out = place(target, length, np.dtype(dtype).newbyteorder("="), end, apart)
                x[...] = np.arange(length) % 90
                before = x.tobytes()
                for scale, axis in ((1.0, None), (np.ones(length), 0)):
                    s2dq.requantize(s2dq.QuantizedTensor(x, scale, 0, axis=axis), scale, 3, out.dtype, out=out)
                    assert (out == np.arange(length) % 90 + 3).all() and target.untouched_outside(out)
                assert x.tobytes() == before and source.untouched_outside(x)
    print("done")


@pytest.mark.skipif(sys.platform != "linux", reason="needs mprotect")
def test_nothing_is_touched_outside_of_the_arrays():
    assert run_child(convert_between_guards, timeout=120).split() == ["done"]


# ------------------------------------------------------------------------------------- operators on quantized tensors

def all_parameters(q):
    """Scale and zero point of every element: two arrays of the shape of `q`."""
    if q.axis is None:
        return np.full(q.shape, q.scale), np.full(q.shape, q.zero_point)
    index = np.indices(q.shape)
    words = len(q.shape) == 5 and q.axis == 1 and q.scale.size != q.shape[1]
    channel = index[1] * q.shape[4] + index[4] if words else index[q.axis]
    return q.scale[channel], q.zero_point[channel]


def moved(name, q, **arguments):
    """Run an operator on a tensor and compare with `reference`, element by element.

    Every element of the result that comes from one of `q` has its value, scale and zero point. Padding holds
    `pad_value` or the zero point that the result has there. Spare lanes hold raw 0, of scale 1 and zero point 0 where
    parameters lie along the channels.
    """
    result = getattr(s2dq, name)(q, **arguments)
    twin = getattr(reference, name)
    given = arguments.get("pad_value")
    plain = {key: value for key, value in arguments.items() if key != "pad_value"}
    padding = {"pad_value": 2} if name.startswith("space") else {}
    what = twin(np.ones(q.shape, np.int64), **plain, **padding)  # 1: an element; 2: padding; 0: a spare lane
    assert type(result) is QuantizedTensor and (result.shape, result.dtype) == (what.shape, q.dtype)
    scale, zero_point = all_parameters(q)
    new_scale, new_zero_point = all_parameters(result)
    here = what == 1
    np.testing.assert_array_equal(result.values[here], twin(np.array(q.values), **plain)[here])
    np.testing.assert_array_equal(new_scale[here], twin(scale, **plain)[here])
    np.testing.assert_array_equal(new_zero_point[here], twin(zero_point, **plain)[here])
    expected = new_zero_point if given is None or name == "pack_vect_c" else np.full(what.shape, given)
    np.testing.assert_array_equal(result.values[what == 2], expected[what == 2])
    spare = what == 0
    assert (result.values[spare] == (given or 0 if name == "pack_vect_c" else 0)).all()
    if result.axis == 1 and result.scale.size != result.shape[1]:
        assert (new_scale[spare] == 1).all() and (new_zero_point[spare] == 0).all()
    out = np.full(result.shape, 0x5A, result.dtype)
    again = getattr(s2dq, name)(q, **arguments, out=out, num_threads=2)
    assert again.values is out and again == result and out.flags.writeable
    return result


def channels_of(layout):
    return 1 if layout == PACKED or not layout.endswith("C") else len(layout) - 1


def random_tensor(rng, shape, dtype, axis, count, groups=3):
    """Values of all kinds; parameters out of a few, so that some are equal by chance."""
    info = np.iinfo(dtype)
    values = rng.integers(info.min, info.max, shape, dtype, True)
    length = None if axis is None else count
    zero_points = rng.integers(max(info.min, -90), min(info.max, 90), groups)
    scale = np.float32([0.5, 0.25, 0.125])[rng.integers(0, groups, length)]
    return QuantizedTensor(values, scale, zero_points[rng.integers(0, groups, length)], axis=axis)


@pytest.mark.parametrize("mode", ["DCR", "CRD", "focus"])
@pytest.mark.parametrize("source", ["NHWC", "NCHW", PACKED])
@pytest.mark.parametrize("target", [None, "NHWC", "NCHW", PACKED])
def test_depth_operators_take_their_channels_along(rng, source, target, mode):
    vects = (4, 32) if PACKED in (source, target) else (32,)
    for channels, block, lanes, paddings in product((1, 3, 8, 33), (1, 2, (2, 3)), vects, (None, [[1, 2], [2, 1]])):
        b = np.broadcast_to(block, 2)
        extents = [int(2 * size) for size in b]
        if paddings:
            extents = [int(size * 3 - sum(pair)) for size, pair in zip(b, paddings)]
            if min(extents) < 1:
                extents = [int(extent + 3 * size) for extent, size in zip(extents, b)]
        words = -(-channels // lanes)
        shape = {"NHWC": (2, *extents, channels), "NCHW": (2, channels, *extents),
                 PACKED: (2, words, *extents, lanes)}[source]  # fmt: skip
        count = words * lanes if source == PACKED else channels
        q = random_tensor(rng, shape, "int8", channels_of(source), count)
        arguments = {"block_size": block, "data_format": source, "mode": mode, "out_format": target, "vect": lanes,
                     "channels": channels if source == PACKED else None}  # fmt: skip
        deep = moved("space_to_depth", q, paddings=paddings, **arguments)
        moved("space_to_depth", q, paddings=paddings, pad_value=7, **arguments)
        if PACKED in (source, target) and source == (target or source):
            continue
        back = {**arguments, "data_format": target or source, "out_format": source, "crops": paddings,
                "channels": channels * int(np.prod(b)) if target == PACKED else None}  # fmt: skip
        shallow = moved("depth_to_space", deep, **back)
        if source != PACKED or channels == count:
            assert shallow == q


@pytest.mark.parametrize("dtype", DTYPES)
def test_wide_values_with_paddings(rng, dtype):
    for source, target, channels in product(("NHWC", "NCHW"), ("NHWC", "NCHW", PACKED), (3, 20, 70)):
        shape = (2, 5, 7, channels) if source == "NHWC" else (2, channels, 5, 7)
        q = random_tensor(rng, shape, dtype, channels_of(source), channels)
        moved("space_to_depth", q, block_size=2, data_format=source, out_format=target, paddings=[[0, 1], [2, 1]])
        per_tensor = random_tensor(rng, shape, dtype, None, 0)
        result = moved("space_to_depth", per_tensor, block_size=2, data_format=source, out_format=target,
                       paddings=[[0, 1], [2, 1]])  # fmt: skip
        assert result.axis is None


@pytest.mark.parametrize("vect", [1, 3, 4, 32])
@pytest.mark.parametrize("data_format", ["NCHW", "NHWC"])
def test_packing_takes_channels_along_and_back(rng, data_format, vect):
    for channels in (1, 3, 4, 12, 33):
        shape = (2, channels, 3, 5) if data_format == "NCHW" else (2, 3, 5, channels)
        q = random_tensor(rng, shape, "uint8", channels_of(data_format), channels)
        packed = moved("pack_vect_c", q, data_format=data_format, vect=vect)
        assert packed.axis == 1 and packed.scale.size == packed.shape[1] * vect
        assert moved("unpack_vect_c", packed, data_format=data_format, channels=channels) == q
        moved("pack_vect_c", q, data_format=data_format, vect=vect, pad_value=9)
        per_tensor = random_tensor(rng, shape, "uint8", None, 0)
        assert moved("pack_vect_c", per_tensor, data_format=data_format, vect=vect).axis is None


def test_words_and_lanes_may_have_parameters_of_their_own(rng):
    shape = (2, 3, 4, 4, 4)
    for axis in (1, 4):
        q = random_tensor(rng, shape, "int8", axis, shape[axis])
        moved("unpack_vect_c", q)
        moved("space_to_depth", q, block_size=2, data_format=PACKED, paddings=[[0, 2], [0, 0]])
    with pytest.raises(ValueError, match="space_to_depth: x has parameters for every lane of packed words"):
        q = random_tensor(rng, shape, "int8", 1, 12)
        s2dq.space_to_depth(q, 2, "NCDHW")


def test_parameters_along_the_batch_stay_with_it(rng):
    for source, target in product(("NHWC", "NCHW", PACKED), ("NHWC", "NCHW", PACKED)):
        shape = {"NHWC": (3, 4, 6, 5), "NCHW": (3, 5, 4, 6), PACKED: (3, 2, 4, 6, 3)}[source]
        q = random_tensor(rng, shape, "int8", 0, 3)
        for paddings in (None, [[0, 2], [1, 1]]):
            result = moved("space_to_depth", q, block_size=2, data_format=source, out_format=target, paddings=paddings)
            assert result.axis == 0
        moved("space_to_depth", q, block_size=2, data_format=source, out_format=target, paddings=[[0, 2], [1, 1]],
              pad_value=-1)  # fmt: skip


def test_parameters_along_a_spatial_axis(rng):
    values = np.arange(2 * 4 * 6 * 3, dtype=np.uint8).reshape(2, 4, 6, 3)
    q = QuantizedTensor(values, [1, 2, 1, 2], 5, axis=1)
    with pytest.raises(ValueError, match=r"space_to_depth: axis 1 \(height\) is cut: its parameters must all have the "
                                         r"same scale and zero point, not \(1.0, 5\) and \(2.0, 5\)"):  # fmt: skip
        s2dq.space_to_depth(q, 2)
    # Where nothing is cut or padded along it, it stays; and where all are equal, one pair is enough.
    for arguments in ({"block_size": (1, 2)}, {"block_size": (1, 2), "paddings": [[0, 0], [1, 1]]},
                      {"block_size": 1, "out_format": "NCHW"}):  # fmt: skip
        result = moved("space_to_depth", QuantizedTensor(values, [1, 2, 1, 2], [1, 2, 3, 4], axis=1), **arguments)
        assert result.axis == (2 if arguments.get("out_format") else 1)
    with pytest.raises(ValueError, match="is cut"):
        s2dq.space_to_depth(q, (1, 2), paddings=[[0, 1], [0, 0]])
    same_all = QuantizedTensor(values, [2, 2, 2, 2], 5, axis=1)
    result = moved("space_to_depth", same_all, block_size=2, paddings=[[1, 1], [0, 0]])
    assert result.axis is None and result.scale == 2 and result.zero_point == 5
    deep = QuantizedTensor(values.reshape(2, 4, 3, 6), [1, 2, 3, 4], 0, axis=1)
    result = moved("depth_to_space", deep, block_size=(1, 3), crops=[[1, 1], [0, 2]])
    assert result.scale.tolist() == [2, 3]
    packed = moved("pack_vect_c", QuantizedTensor(values, [1, 2, 3, 4], 0, axis=1), data_format="NHWC")
    assert packed.axis == 2


@pytest.mark.parametrize("mode", ["DCR", "CRD", "focus"])
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_channels_that_differ_do_not_merge(layout, mode):
    channels = 12
    shape = (1, 2, 2, channels) if layout == "NHWC" else (1, channels, 2, 2)
    values = np.zeros(shape, np.int8)
    axis = channels_of(layout)
    for deep in range(channels):
        shallow = deep // 4 if mode == "CRD" else deep % 3
        scale, zero_point = np.ones(channels, np.float32), np.zeros(channels, int)
        scale[deep] = 2
        for q in (QuantizedTensor(values, scale, 0, axis=axis),
                  QuantizedTensor(values, 1.0, np.where(scale == 2, 3, zero_point), axis=axis)):  # fmt: skip
            out = np.full((1, 4, 4, 3) if layout == "NHWC" else (1, 3, 4, 4), 77, np.int8)
            with pytest.raises(ValueError, match=f"the channels of x that channel {shallow} of the result is made of "
                                                 "must all have the same scale and zero point"):  # fmt: skip
                s2dq.depth_to_space(q, 2, layout, mode=mode, out=out)
            assert (out == 77).all(), "refused before the first write"
        even = QuantizedTensor(values, np.full(12, 2), 1, axis=axis)
        assert s2dq.depth_to_space(even, 2, layout, mode=mode).axis == axis


@pytest.mark.parametrize("lanes", [4, 32])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_batch_operators_on_packed_tensors(rng, dtype, lanes):
    """Words are axis 1: a block of one leaves them alone."""
    plain = random_tensor(rng, (2, 2 * lanes - 1, 5, 6), dtype, 1, 2 * lanes - 1)
    packed = s2dq.pack_vect_c(plain, vect=lanes)
    pairs = [[1, 2], [0, 2]]
    blocks = moved("space_to_batch_nd", packed, block_shape=[1, 2, 4], paddings=[[0, 0], *pairs])
    assert blocks.axis == 1 and blocks.scale.size == 2 * lanes
    assert moved("batch_to_space_nd", blocks, block_shape=[1, 2, 4], crops=[[0, 0], *pairs]) == packed
    # As on the plain tensor, whose channels ride behind the blocks: N(C)HW by way of NHWC.
    last = s2dq.space_to_depth(plain, 1, "NCHW", out_format="NHWC")
    expected = s2dq.space_to_batch_nd(last, [2, 4], pairs)
    assert s2dq.unpack_vect_c(blocks, "NHWC", channels=2 * lanes - 1) == expected
    first_word = moved("batch_to_space_nd", packed, block_shape=[1], crops=[[0, 1]])
    assert first_word.shape[1] == 1 and first_word.scale.size == lanes
    per_tensor = random_tensor(rng, (2, 3, 4, 4, lanes), dtype, None, 0)
    assert moved("space_to_batch_nd", per_tensor, block_shape=[1, 2, 2], paddings=[[0, 0], [1, 1], [0, 0]]).axis is None


@pytest.mark.parametrize("dtype", DTYPES)
def test_batch_operators_keep_what_rides_along(rng, dtype):
    for name in ("space_to_batch_nd", "space_to_batch"):
        for channels in (1, 3, 8, 70):
            q = random_tensor(rng, (2, 4, 5, channels), dtype, 3, channels)
            result = moved(name, q, block_shape=[2, 3], paddings=[[1, 1], [0, 1]])
            assert result.axis == 3
            moved(name, q, block_shape=[2, 3], paddings=[[1, 1], [0, 1]], pad_value=5)
            back = moved(name.replace("space_to_batch", "batch_to_space"), result, block_shape=[2, 3],
                         crops=[[1, 1], [0, 1]])  # fmt: skip
            assert back == q


def test_batch_operators_refuse_parameters_that_are_cut(rng):
    values = np.arange(2 * 4 * 6, dtype=np.int8).reshape(2, 4, 6)
    for axis, what in ((0, r"axis 0 \(batch\) is regrouped"), (1, "axis 1 is cut")):
        pair = np.arange(1, values.shape[axis] + 1), 3
        for call in (lambda q: s2dq.space_to_batch_nd(q, [2], [[0, 0]]),
                     lambda q: s2dq.batch_to_space_nd(q, [2], [[0, 0]])):  # fmt: skip
            with pytest.raises(ValueError, match=f"{what}: its parameters must all have the same scale and zero point"):
                call(QuantizedTensor(values, *pair, axis=axis))
            result = call(QuantizedTensor(values, np.full(values.shape[axis], 2.0), 3, axis=axis))
            assert result.axis is None and result.scale == 2 and result.zero_point == 3
    q = QuantizedTensor(values, [1, 2], 0, axis=0)
    assert moved("space_to_batch_nd", q, block_shape=[1], paddings=[[1, 0]]).axis == 0
    assert moved("space_to_batch_nd", q, block_shape=[], paddings=np.zeros((0, 2), int)) == q
    with pytest.raises(ValueError, match="axis 1 is cut"):
        s2dq.space_to_batch_nd(QuantizedTensor(values, [1, 2, 3, 4], 0, axis=1), [1], [[1, 0]])
    result = s2dq.space_to_batch_nd(QuantizedTensor(values, np.full(4, 2), 7, axis=1), [1], [[1, 0]])
    assert result.axis is None and (result.values[:, 0] == 7).all()


def test_tensors_of_no_elements(rng):
    q = QuantizedTensor(np.zeros((0, 4, 4, 3), np.int8), [1, 2, 3], [4, 5, 6], axis=3)
    assert s2dq.space_to_depth(q, 2).scale.tolist() == [1, 2, 3] * 4
    q = QuantizedTensor(np.zeros((1, 4, 4, 0), np.int8), [], [], axis=3)
    assert s2dq.space_to_depth(q, 2).scale.shape == (0,)
    assert s2dq.depth_to_space(q, 2).scale.shape == (0,)
    assert s2dq.pack_vect_c(q, "NHWC").shape == (1, 0, 4, 4, 4)
    q = QuantizedTensor(np.zeros((2, 0, 3), np.int8), [], [], axis=1)
    result = s2dq.space_to_batch_nd(q, [2], [[1, 1]])
    assert result.axis is None and (result.scale, result.zero_point) == (1, 0) and not result.values.any()
    assert s2dq.dequantize(q).shape == (2, 0, 3) and s2dq.requantize(q, 1.0, 0).shape == (2, 0, 3)
    words = QuantizedTensor(np.zeros((1, 2, 3, 3, 0), np.int8), [], [], axis=1)
    assert s2dq.unpack_vect_c(words).shape == (1, 0, 3, 3)


@pytest.mark.parametrize("name", OPERATORS)
def test_errors_are_those_of_the_values(name):
    """A tensor is refused as its values are, with the same message."""
    arguments = (3, ) if "depth" in name else ("XYZ",) if "vect" in name else ([3], [[0, 0]])
    for q in (tensor(), tensor(axis=3, scale=[0.5, 0.25])):
        with pytest.raises(ValueError) as plain:
            getattr(s2dq, name)(q.values, *arguments)
        with pytest.raises(ValueError) as quantized:
            getattr(s2dq, name)(q, *arguments)
        assert str(quantized.value) == str(plain.value)


def test_pad_value_is_a_stored_value():
    q = tensor((1, 2, 2, 1))
    with pytest.raises(ValueError, match="pad_value 200 cannot be held by dtype int8"):
        s2dq.space_to_depth(q, 2, paddings=[[0, 2], [0, 0]], pad_value=200)
    with pytest.raises(TypeError, match="pad_value must be a value of dtype int8"):
        s2dq.space_to_batch_nd(q, [1], [[0, 2]], pad_value="a")
    with pytest.raises(ValueError, match="pad_value 200 cannot be held"):
        s2dq.space_to_depth(tensor(axis=3, scale=[1, 2]), 2, pad_value=200)


def test_out_is_checked():
    q = tensor((1, 2, 2, 1))
    with pytest.raises(TypeError, match="out must have dtype int8, not uint8"):
        s2dq.space_to_depth(q, 2, out=np.empty((1, 1, 1, 4), np.uint8))
    memory = np.zeros(8, np.int8)
    q = QuantizedTensor(memory[:4].reshape(1, 2, 2, 1), 1.0, 0)
    with pytest.raises(ValueError, match="out must not overlap x"):
        s2dq.space_to_depth(q, 2, out=memory[3:7].reshape(1, 1, 1, 4))


def test_another_type_may_move_itself():
    """The protocol: a method of the type, never of the instance, and never of a type of types."""
    class Moving:
        def __s2dq_move__(self, operation, out, num_threads, arguments):
            return operation.name, out, num_threads, arguments[0]

    assert s2dq.space_to_depth(Moving(), 2, num_threads=3) == ("space_to_depth", None, 3, 2)

    class Meta(type):
        def __getattr__(cls, name):
            raise RuntimeError(name)

    class Plain(metaclass=Meta):
        pass

    still = Plain()
    still.__s2dq_move__ = Moving().__s2dq_move__
    with pytest.raises(TypeError):
        s2dq.space_to_depth(still, 2)


# ------------------------------------------------------------------------------------------------ properties

@st.composite
def depth_tensors(draw):
    """(operator, tensor, arguments) of a legal call."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    dims = draw(st.integers(1, 3))
    layouts = {1: ("NWC", "NCW"), 2: ("NHWC", "NCHW", PACKED), 3: ("NDHWC", "NCDHW")}[dims]
    source, target = draw(st.sampled_from(layouts)), draw(st.sampled_from(layouts))
    block = [draw(st.integers(1, 3)) for _ in range(dims)]
    cells = [draw(st.integers(1, 3)) for _ in range(dims)]
    pairs = [[draw(st.integers(0, b)), draw(st.integers(0, b))] for b in block]
    channels, lanes, batch = draw(st.integers(1, 9)), draw(st.integers(1, 6)), draw(st.integers(1, 3))
    arguments = {"block_size": block, "data_format": source, "out_format": target, "vect": draw(st.integers(1, 6)),
                 "mode": draw(st.sampled_from(("DCR", "CRD", "focus")))}  # fmt: skip
    extents = [b * (cell + 2) - sum(pair) for b, cell, pair in zip(block, cells, pairs)]
    words = -(-channels // lanes)
    shape = {True: (batch, *extents, channels), False: (batch, channels, *extents)}[source.endswith("C")]
    count = channels
    if source == PACKED:
        shape, count, arguments["channels"] = (batch, words, *extents, lanes), words * lanes, channels
    dtype = draw(st.sampled_from(DTYPES)) if not source == target == PACKED else draw(st.sampled_from(DTYPES[:2]))
    axis = draw(st.sampled_from((None, 0, channels_of(source))))
    q = random_tensor(rng, shape, dtype, axis, {None: 0, 0: batch}.get(axis, count))
    pad_value = draw(st.sampled_from((None, None, 3)))
    return q, arguments | {"paddings": pairs, "pad_value": pad_value}


@given(depth_tensors())
def test_space_to_depth_moves_parameters(call):
    q, arguments = call
    deep = moved("space_to_depth", q, **arguments)
    if deep.axis is not None and PACKED not in (arguments["data_format"], arguments["out_format"]):
        back = {"block_size": arguments["block_size"], "mode": arguments["mode"], "crops": arguments["paddings"],
                "data_format": arguments["out_format"], "out_format": arguments["data_format"]}  # fmt: skip
        assert moved("depth_to_space", deep, **back) == q


@given(st.data(), st.lists(st.integers(1, 3), max_size=4), st.lists(st.integers(1, 4), max_size=2))
def test_batch_operators_move_parameters(data, block, rest):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    pairs = np.array([[data.draw(st.integers(0, b)), data.draw(st.integers(0, b))] for b in block], int).reshape(-1, 2)
    shape = (data.draw(st.integers(1, 3)), *(3 * b - int(sum(pair)) for b, pair in zip(block, pairs)), *rest)
    axis = data.draw(st.sampled_from((None, *range(len(shape)))))
    count = 0 if axis is None else shape[axis]
    if len(shape) == 5 and axis == 1 and data.draw(st.booleans()):
        count *= shape[4]
    q = random_tensor(rng, shape, data.draw(st.sampled_from(DTYPES)), axis, count, groups=data.draw(st.integers(1, 3)))
    pad_value = data.draw(st.sampled_from((None, None, 3)))
    equal = len(set(zip(q.scale.ravel().tolist(), q.zero_point.ravel().tolist()))) == 1
    along = {axis} if axis != 1 or count == shape[1] else {1, 4}
    cut = {k for k in range(1, len(block) + 1) if block[k - 1] > 1 or pairs[k - 1].any()}
    cut |= {0} if prod(block) > 1 else set()
    if axis is not None and along & cut and not equal:
        with pytest.raises(ValueError, match="must all have the same scale and zero point"):
            s2dq.space_to_batch_nd(q, block, pairs)
        return
    batches = moved("space_to_batch_nd", q, block_shape=block, paddings=pairs, pad_value=pad_value)
    assert batches.axis == (None if axis is not None and along & cut else axis)
    back = moved("batch_to_space_nd", batches, block_shape=block, crops=pairs)
    np.testing.assert_array_equal(back.values, q.values)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize(("block", "lanes"), [(2, 4), (4, 4), (2, 32), (4, 32)])
@pytest.mark.parametrize("mode", ["DCR", "CRD", "focus"])
def test_packing_fused_after_space_to_depth_of_frames(rng, dtype, block, lanes, mode):
    values = rng.integers(0, 256, (2, 16, 24, 3), np.uint8).view(dtype)
    frames = QuantizedTensor(values, [0.5, 0.25, 0.125], [3, 5, 7], axis=3)
    fused = s2dq.space_to_depth(frames, block, mode=mode, out_format=PACKED, vect=lanes)
    deep = s2dq.space_to_depth(frames, block, mode=mode)
    assert fused == s2dq.pack_vect_c(deep, "NHWC", vect=lanes)
    spare = -(-3 * block**2 // lanes) * lanes - 3 * block**2
    assert fused.scale.size == 3 * block**2 + spare and (fused.scale[3 * block**2:] == 1).all()
    back = s2dq.depth_to_space(fused, block, PACKED, mode=mode, out_format="NHWC", channels=3 * block**2)
    assert back == frames


@pytest.mark.parametrize("dtype", ["<i2", ">i2", "<i4", ">i4", ">u2"])
@pytest.mark.parametrize("zero_points", [300, [300, 300], [300, 301]])
def test_padding_holds_zero_points_in_the_byte_order_of_the_values(dtype, zero_points):
    values = np.full((1, 1, 1, 2), 7, dtype)
    axis = None if zero_points == 300 else 3
    q = QuantizedTensor(values, 1.0 if axis is None else [1.0, 2.0], zero_points, axis=axis)
    padded = np.full((1, 2, 2, 2), zero_points, dtype)
    padded[0, 1, 1] = 7
    pads = [[1, 0], [1, 0]]
    deep = s2dq.space_to_depth(q, 2, paddings=pads).values
    np.testing.assert_array_equal(deep, reference.space_to_depth(padded, 2), strict=True)
    batch = s2dq.space_to_batch_nd(q, [2, 2], pads).values
    np.testing.assert_array_equal(batch, reference.space_to_batch_nd(padded, [2, 2], [[0, 0]] * 2), strict=True)


# -------------------------------------------------------------------------------- what the kernels are handed

BYTES, SINGLES, ONE = np.zeros(6, np.int8), np.zeros(6, np.float32), (1, 6, 1)


def parameters_of(count):
    return np.ones(count, np.float32), np.zeros(count, np.int32)


@pytest.mark.parametrize(
    ("x", "out", "source", "target", "along", "told"),
    [
        (BYTES, BYTES.copy(), None, None, ONE, "not from or to int8 here"),  # integers without a scale
        (SINGLES, SINGLES.copy(), None, None, ONE, "the result does not go with its source"),
        (SINGLES, SINGLES.copy(), parameters_of(1), None, ONE, "not from or to float32 here"),
        (BYTES, SINGLES.astype(np.complex64), parameters_of(1), None, ONE, "not from or to complex64 here"),
        (SINGLES.astype(np.int64), SINGLES.copy(), parameters_of(1), None, ONE, "not from or to int64 here"),
        (SINGLES, SINGLES.astype(np.int64), None, parameters_of(1), ONE, "not from or to int64 here"),
        (BYTES, SINGLES[:5].copy(), parameters_of(1), None, ONE, "the result does not go with its source"),
        (BYTES, np.zeros(12, np.float32)[::2], parameters_of(1), None, ONE, "the result does not go with its source"),
        (BYTES, SINGLES.copy(), parameters_of(1), None, (0, 6, 1), "no parameters lie like this"),
        (BYTES, SINGLES.copy(), parameters_of(1), None, (1, 0, 1), "no parameters lie like this"),
        (BYTES, SINGLES.copy(), parameters_of(1), None, (1, 6, -1), "no parameters lie like this"),
        (BYTES, SINGLES.copy(), parameters_of(1), None, (1, 6, 0), "no parameters lie like this"),
        (BYTES, SINGLES.copy(), parameters_of(2), None, ONE, "too many or too few parameters of the source"),
        (BYTES, SINGLES.copy(), parameters_of(2), None, (3, 2, 1), "too many or too few parameters of the source"),
        (SINGLES, BYTES.copy(), None, parameters_of(2), ONE, "too many or too few parameters of the result"),
        (BYTES, BYTES.copy(), parameters_of(3), parameters_of(2), (3, 2, 1),
         "too many or too few parameters of the result"),
    ],
)  # fmt: skip
def test_a_conversion_that_does_not_fit_is_refused(x, out, source, target, along, told):
    """Behind the door, too, nothing is read or written beyond what there is."""
    before = out.tobytes()
    with pytest.raises(ValueError, match=f"conversion: {told}"):
        _kernels.convert(x, out, source, target, along, 1)
    assert out.tobytes() == before


@pytest.mark.parametrize(
    ("function", "name", "dtype"),
    [
        (lambda x: s2dq.quantize(x, 0.5, 0), "x", "float32"),
        (lambda x: s2dq.dequantize(s2dq.QuantizedTensor(x.astype(np.int8), 0.5, 0)), "q", "int8"),
        (lambda x: s2dq.requantize(s2dq.QuantizedTensor(x.astype(np.int8), 0.5, 0), 2, 0, "int16"), "q", "int8"),
    ],
    ids=["quantize", "dequantize", "requantize"],
)
def test_a_conversion_without_memory_names_its_argument(function, name, dtype, monkeypatch, request):
    def refuse(*_):
        raise MemoryError

    monkeypatch.setattr(_kernels, "convert", refuse)
    with pytest.raises(MemoryError) as caught:
        function(SINGLES)
    assert str(caught.value) == (
        f"{request.node.callspec.id}: no memory to work with, besides {name} and the result "
        f"({name}.shape=(6,), {name}.dtype={dtype})"
    )


@pytest.mark.parametrize("words, vect", [(2, 4), (3, 1), (2, 0), (0, 4), (1, 32)])
def test_requantize_between_parameters_of_words_and_of_lanes(rng, words, vect):
    values = rng.integers(-128, 128, (2, words, 5, 3, vect)).astype(np.int8)
    of_words = rng.uniform(0.01, 1, words).astype(np.float32)
    of_lanes = rng.uniform(0.01, 1, words * vect).astype(np.float32)
    for first, second in ((of_words, of_lanes), (of_lanes, of_words)):
        q = s2dq.QuantizedTensor(values, first, 0, axis=1)
        result = s2dq.requantize(q, second, [5] * second.size)
        assert (result.scale == second).all() and (result.zero_point == 5).all()
        repeated = [scale if scale.size == words * vect else np.repeat(scale, vect) for scale in (first, second)]
        in_lanes = s2dq.requantize(s2dq.QuantizedTensor(values, repeated[0], 0, axis=1), repeated[1], 5)
        np.testing.assert_array_equal(result.values, in_lanes.values)

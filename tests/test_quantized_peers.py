"""quantize, dequantize and requantize against ONNX Runtime's QuantizeLinear and DequantizeLinear, bit for bit.

NaN, float64 and int32 results are left to `reference`: ONNX Runtime has no rule for the first and no operator for the
others. Random numbers rarely hit a tie, so ties are among them on purpose.
"""

import functools
from itertools import product

import numpy as np
import pytest

import s2dq

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

QUANTIZED = ("int8", "uint8", "int16", "uint16")
SCALES = (1.0, 0.5, 0.1, 1 / 255, 0.0186, 3.0, 2.0**-20, 1e-30, 1e6)


@functools.cache
def session_of(operator, x_dtype, scale_dtype, zero_dtype, result_dtype, axis, ranks):
    """One operator as a model of opset 21, which has the types of 16 bits."""
    type_of = onnx.helper.np_dtype_to_tensor_dtype
    x_rank, scale_rank = ranks
    names = [("x", x_dtype, x_rank), ("scale", scale_dtype, scale_rank), ("zero_point", zero_dtype, scale_rank)]
    inputs = [
        onnx.helper.make_tensor_value_info(name, type_of(np.dtype(dtype)), [None] * rank)
        for name, dtype, rank in names
    ]
    output = onnx.helper.make_tensor_value_info("y", type_of(np.dtype(result_dtype)), [None] * x_rank)
    node = onnx.helper.make_node(operator, ["x", "scale", "zero_point"], ["y"], axis=1 if axis is None else axis)
    graph = onnx.helper.make_graph([node], "one", inputs, [output])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 21)], ir_version=10)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def run(operator, x, scale, zero_point, axis, result_dtype):
    ranks = x.ndim, scale.ndim
    session = session_of(operator, x.dtype.name, scale.dtype.name, zero_point.dtype.name, result_dtype, axis, ranks)
    return session.run(None, {"x": x, "scale": scale, "zero_point": zero_point})[0]


def quantized_by_onnx(x, scale, zero_point, dtype, axis=None):
    parameters = np.asarray(scale, np.float32), np.asarray(zero_point, dtype)
    return run("QuantizeLinear", x, *parameters, axis, dtype)


def dequantized_by_onnx(values, scale, zero_point, axis=None):
    parameters = np.asarray(scale, np.float32), np.asarray(zero_point, values.dtype)
    return run("DequantizeLinear", values, *parameters, axis, "float32")


def numbers_for(rng, scale, dtype):
    """Ties, both ends, infinities, subnormal and random numbers."""
    info = np.iinfo(dtype)
    ends = [end + part for end in (info.min, info.max) for part in np.arange(-3, 3.5, 0.5)]
    steps = np.concatenate([np.arange(-300, 300) / 2, ends, rng.standard_normal(2000) * 100])
    with np.errstate(all="ignore"):
        numbers = (steps * np.float32(scale)).astype(np.float32)
    special = [np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-45, 1e-40, 3.4e38, -3.4e38]
    return np.concatenate([numbers, np.float32(special)])


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("dtype", QUANTIZED)
def test_quantize_equals_quantize_linear(rng, dtype, scale):
    info = np.iinfo(dtype)
    x = numbers_for(rng, scale, dtype)
    for zero_point in {0, 1, int(info.min), int(info.max), *rng.integers(info.min, info.max, 4).tolist()}:
        q = s2dq.quantize(x, scale, zero_point, dtype)
        np.testing.assert_array_equal(q.values, quantized_by_onnx(x, scale, zero_point, dtype), strict=True)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_every_zero_point(rng, dtype):
    info = np.iinfo(dtype)
    x = numbers_for(rng, 0.1, dtype)
    levels = np.arange(info.min, info.max + 1).astype(dtype)
    for zero_point in range(info.min, info.max + 1):
        q = s2dq.quantize(x, 0.1, zero_point, dtype)
        np.testing.assert_array_equal(q.values, quantized_by_onnx(x, 0.1, zero_point, dtype), strict=True)
        numbers = s2dq.QuantizedTensor(levels, 0.1, zero_point).dequantize()
        np.testing.assert_array_equal(numbers, dequantized_by_onnx(levels, 0.1, zero_point), strict=True)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("dtype", [*QUANTIZED, "int32"])
def test_dequantize_equals_dequantize_linear(rng, dtype, scale):
    info = np.iinfo(dtype)
    values = rng.integers(info.min, info.max, 3000, dtype, True)
    # ONNX Runtime knows no zero point of int32 but 0.
    for zero_point in {0} if dtype == "int32" else {0, int(info.min), int(info.max), 5}:
        numbers = s2dq.QuantizedTensor(values, scale, zero_point).dequantize()
        expected = dequantized_by_onnx(values, scale, zero_point)
        assert numbers.dtype == expected.dtype and numbers.tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", QUANTIZED)
@pytest.mark.parametrize("axis", [0, 1, 2, 3])
def test_parameters_along_an_axis(rng, axis, dtype):
    info = np.iinfo(dtype)
    for shape in ((3, 4, 5, 6), (2, 33, 7, 7), (5, 1, 9, 64)):
        count = shape[axis]
        scale = rng.uniform(0.01, 3, count).astype(np.float32)
        zero_point = rng.integers(info.min, info.max, count, dtype, True)
        x = (rng.integers(-600, 600, shape) / 4).astype(np.float32)
        q = s2dq.quantize(x, scale, zero_point, dtype, axis=axis)
        expected = quantized_by_onnx(x, scale, zero_point, dtype, axis)
        np.testing.assert_array_equal(q.values, expected, strict=True)
        numbers = dequantized_by_onnx(expected, scale, zero_point, axis)
        np.testing.assert_array_equal(q.dequantize(), numbers, strict=True)
        np.testing.assert_array_equal(
            s2dq.requantize(q, scale * 2, zero_point).values,
            quantized_by_onnx(numbers, scale * 2, zero_point, dtype, axis), strict=True,
        )  # fmt: skip


@pytest.mark.parametrize(("source", "target"), list(product(QUANTIZED, QUANTIZED)))
def test_requantize_equals_the_two_operators(rng, source, target):
    a, b = np.iinfo(source), np.iinfo(target)
    values = rng.integers(a.min, a.max, 3000, source, True)
    for scale, new_scale in product((0.1, 0.5), (0.05, 0.75, 2.0)):
        zero_point, new_zero_point = int(rng.integers(a.min, a.max)), int(rng.integers(b.min, b.max))
        numbers = dequantized_by_onnx(values, scale, zero_point)
        q = s2dq.requantize(s2dq.QuantizedTensor(values, scale, zero_point), new_scale, new_zero_point, target)
        expected = quantized_by_onnx(numbers, new_scale, new_zero_point, target)
        np.testing.assert_array_equal(q.values, expected, strict=True)

"""Other systems' parameters become a QuantizedTensor or one clear error, here without any of those systems.

What real interpreters, graphs and tensors give is in test_interop_peers.py.
"""

import collections
import subprocess
import sys
import warnings

import numpy as np
import pytest

import s2dq
from guarded import FLUSHES, subnormals_are_zero
from s2dq import QuantizedTensor
from s2dq.interop import from_litert, from_onnx, from_torch, to_litert

VALUES = np.arange(-12, 12, dtype=np.int8).reshape(2, 3, 4)
THREE = np.array([0.5, 0.25, 2], np.float32)


def refuses(error, says, function, *arguments, **keywords):
    with pytest.raises(error, match=says) as caught:
        function(*arguments, **keywords)
    assert type(caught.value) is error
    assert "\n" not in str(caught.value)


def test_values_are_not_copied():
    for q in (from_litert(VALUES, (0.5, 0)), from_onnx(VALUES, 0.5), from_torch(VALUES, 0.5)):
        assert np.shares_memory(q.values, VALUES)
        assert not q.values.flags.writeable and VALUES.flags.writeable


class Scale(float):
    """A scale that runs `change` the `at`-th time it is read."""

    def __new__(cls, value, change, at):
        self = super().__new__(cls, value)
        self.change, self.left = change, at
        return self

    def __float__(self):
        self.left -= 1
        if self.left == 0:
            self.change()
        return 1.0


@pytest.mark.parametrize("at", [1, 2, 3, 4])
@pytest.mark.parametrize("read", [
    lambda x, scale: from_litert(x, (scale, 0)),
    lambda x, scale: from_litert(x, {"scales": [scale], "zero_points": [0]}),
    from_onnx,
    from_torch,
], ids=["pair", "scales", "onnx", "torch"])  # fmt: skip
def test_values_that_are_resized_while_the_scale_is_read(read, at):
    """However often it is read: the result has the shape that is there afterwards, and no memory that is gone."""
    x = np.zeros((64, 1024), np.int8)
    q = read(x, Scale(1.0, lambda: x.resize((1,), refcheck=False), at))
    assert q.shape == x.shape
    assert not q.dequantize().any()


def test_only_numpy_is_imported():
    program = (
        "import sys, numpy as np\n"
        "sys.modules.update(dict.fromkeys(('torch', 'onnx', 'ai_edge_litert', 'tensorflow', 'ml_dtypes')))\n"
        "from s2dq import interop\n"
        "x = np.zeros(3, np.int8)\n"
        "interop.from_torch(x, 0.5), interop.from_litert(x, (0.5, 0)), interop.from_onnx(x, 0.5)\n"
    )
    subprocess.run([sys.executable, "-P", "-c", program], check=True, timeout=180)


# ---- LiteRT


def detail(scales, zero_points, axis=0, **entries):
    """A detail as LiteRT gives it."""
    pair = (scales[0], zero_points[0]) if len(scales) == 1 else (0.0, 0)
    parameters = {"scales": np.array(scales, np.float32), "zero_points": np.array(zero_points, np.int32),
                  "quantized_dimension": axis, "block_size": 0}  # fmt: skip
    return {"name": "x", "index": 0, "dtype": np.int8, "quantization": pair, "quantization_parameters": parameters,
            "sparsity_parameters": {}} | entries  # fmt: skip


@pytest.mark.parametrize("described", [
    detail([0.5], [-3]),
    detail([0.5], [-3])["quantization_parameters"],
    detail([0.5], [-3])["quantization"],
    {"quantization": (0.5, -3)},
    {"scales": [0.5], "zero_points": [-3], "quantized_dimension": 0},
    [np.float32(0.5), np.int64(-3)],
])  # fmt: skip
def test_litert_one_pair(described):
    assert from_litert(VALUES, described) == QuantizedTensor(VALUES, 0.5, -3)


def test_litert_pairs_per_channel():
    expected = QuantizedTensor(VALUES, THREE, [1, 2, 3], axis=1)
    assert from_litert(VALUES, detail(THREE, [1, 2, 3], 1)) == expected
    assert from_litert(VALUES, detail(THREE, [1, 2, 3], 1)["quantization_parameters"]) == expected
    # One zero point for all scales, or none.
    assert from_litert(VALUES, detail(THREE, [7], 1)) == QuantizedTensor(VALUES, THREE, 7, axis=1)
    assert from_litert(VALUES, detail(THREE, [], 1)) == QuantizedTensor(VALUES, THREE, 0, axis=1)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32"])
def test_litert_types(dtype):
    values = VALUES.astype(dtype)
    assert from_litert(values, detail([0.5], [0], dtype=np.dtype(dtype).type)).dtype == dtype


@pytest.mark.parametrize("described, error, says", [
    (detail([], []), ValueError, "not quantized: it has no scales"),
    (detail([], [], dtype=np.float32), ValueError, "not quantized"),
    ((0.0, 0), ValueError, "scale of 0"),
    ({"quantization": (0.0, 0)}, ValueError, "scale of 0"),
    (detail([0.5], [0], dtype=np.uint8), TypeError, "uint8, not int8"),
    (detail([0.5], [0], sparsity_parameters={"traversal_order": [0]}), ValueError, "sparse"),
    ({"scales": [0.5], "zero_points": [0], "block_size": 32}, ValueError, "each block.*32"),
    ({"name": "x"}, ValueError, "must have quantization_parameters, quantization or scales"),
    (detail([0.5, 0.5], [0, 0], 1), ValueError, "2 entries"),
    (detail(THREE, [0, 0, 0], 3), ValueError, "axis 3"),
    (detail([0.5], [128]), ValueError, "128"),
    ((-0.5, 0), ValueError, "scale"),
    ((0.5, 0.5), TypeError, "zero_point"),
    ((0.5, 0, 1), TypeError, "detail must be"),
    ("x", TypeError, "detail must be"),
    (None, TypeError, "detail must be"),
    (0.5, TypeError, "detail must be"),
    (collections.UserDict(scales=3), TypeError, "scales of detail must be an array of one dimension, not 3"),
    ({"scales": None}, TypeError, "scales of detail must be an array"),
    ({"scales": [0.5], "zero_points": None}, TypeError, "zero_points of detail must be an array"),
    ({"dtype": "foo", "quantization": (0.5, 0)}, TypeError, "detail\\['dtype'\\] must be a dtype, not 'foo'"),
])  # fmt: skip
def test_litert_details_that_are_refused(described, error, says):
    refuses(error, says, from_litert, VALUES, described)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "bool"])
def test_litert_values_that_are_refused(dtype):
    refuses(TypeError, "dtype", from_litert, VALUES.astype(dtype), (0.5, 0))
    refuses(TypeError, f"int8, not {dtype}", from_litert, VALUES.astype(dtype), detail([0.5], [0]))


def test_litert_floats_for_a_quantized_tensor_get_advice():
    refuses(TypeError, "quantize them first", from_litert, VALUES.astype(np.float32), detail([0.5], [0]))


def test_to_litert_gives_the_values_where_the_parameters_agree():
    q = QuantizedTensor(VALUES, 0.1, -3)
    assert to_litert(q, detail([0.1], [-3])) is q.values
    q = QuantizedTensor(VALUES, THREE, 0, axis=1)
    assert to_litert(q, detail(THREE, [0, 0, 0], 1)) is q.values


@pytest.mark.parametrize("q, described, error, says", [
    (QuantizedTensor(VALUES, 0.5, 0), detail([0.25], [0]), ValueError, "scale=0.5.*scale=0.25"),
    (QuantizedTensor(VALUES, 0.5, 0), detail([0.5], [1]), ValueError, "zero_point=0.*zero_point=1"),
    (QuantizedTensor(VALUES, 0.5, 0), detail([0.5] * 3, [0] * 3, 1), ValueError, "axis=1"),
    (QuantizedTensor(VALUES[:, :2, :2], [1, 2], 0, axis=1), detail([1, 2], [0] * 2, 2), ValueError, "axis=1.*axis=2"),
    (QuantizedTensor(VALUES.view(np.uint8), 0.5, 0), detail([0.5], [0]), TypeError, "int8, not uint8"),
    (QuantizedTensor(VALUES, 0.5, 0), detail([], []), ValueError, "not quantized"),
    (VALUES, detail([0.5], [0]), TypeError, "QuantizedTensor, not ndarray"),
])  # fmt: skip
def test_to_litert_refuses_other_parameters(q, described, error, says):
    refuses(error, "^to_litert: .*" + says, to_litert, q, described)


# ---- ONNX


@pytest.mark.parametrize("scale, zero_point", [
    (0.5, 3), (np.float32(0.5), np.int8(3)), (np.array(0.5, "f4"), np.array(3, "i1")),
    (np.array([0.5], "f4"), np.array([3], "i1")), ([0.5], [3]), (np.float16(0.5), 3),
])  # fmt: skip
def test_onnx_one_pair(scale, zero_point):
    assert from_onnx(VALUES, scale, zero_point) == QuantizedTensor(VALUES, 0.5, 3)


def test_onnx_axis_is_1_or_counted_from_the_end():
    zero_points = np.array([1, 2, 3], np.int8)
    expected = QuantizedTensor(VALUES, THREE, [1, 2, 3], axis=1)
    assert from_onnx(VALUES, THREE, zero_points) == expected
    assert from_onnx(VALUES, THREE, zero_points, axis=-2) == expected
    four = np.arange(1, 5, dtype=np.float32)
    assert from_onnx(VALUES, four, axis=-1) == QuantizedTensor(VALUES, four, 0, axis=2)


def test_onnx_zero_points_in_lists_and_numbers():
    for zero_point in ([1, 2, 3], (1, 2, 3), range(1, 4)):
        assert from_onnx(VALUES, THREE, zero_point) == QuantizedTensor(VALUES, THREE, [1, 2, 3], axis=1)
    assert from_onnx(VALUES, THREE, 7) == QuantizedTensor(VALUES, THREE, 7, axis=1)


def test_onnx_missing_zero_point_is_0():
    for dtype in ("int8", "uint8", "int16", "uint16", "int32"):
        q = from_onnx(VALUES.astype(dtype), 0.5)
        assert (q.dtype, q.zero_point) == (dtype, 0)


def test_onnx_axis_of_a_scalar_does_not_matter():
    for values in (np.int8([1, 2]), np.array(3, np.int8)):
        assert from_onnx(values, 0.5, axis=1).axis is None


def test_onnx_small_floats_are_exact_scales():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    for dtype in (np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e8m0fnu):
        scale = np.array([0.0123, 0.25, 3e4], np.float32).astype(dtype)
        q = from_onnx(VALUES, scale)
        np.testing.assert_array_equal(q.scale.astype(np.float64), scale.astype(np.float64))
        assert from_onnx(VALUES, scale[1]).scale == 0.25, "a scalar, whose buffer says nothing of its type"


@pytest.mark.parametrize("name", ["complex32", "bcomplex32"])
def test_onnx_complex_scales_are_refused(name):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    if not hasattr(ml_dtypes, name):
        pytest.skip(f"ml_dtypes {ml_dtypes.__version__} has no {name}")
    make = getattr(ml_dtypes, name)
    for scale in (make(1 + 2j), np.array(1 + 2j, make), np.array([1, 2, 3j], make)):
        with pytest.raises(TypeError, match="scale must be a real number"):
            from_onnx(VALUES, scale)


@pytest.mark.parametrize("arguments, error, says", [
    ((THREE[:2],), ValueError, "2 entries"),
    ((np.ones((2, 3, 2), "f4"),), ValueError, r"each block.*\(2, 3, 2\)"),
    ((0.5, 0, 1, 2), ValueError, "each block.*block_size is 2"),
    ((0.5, 0, 1, -2), ValueError, "block_size"),
    ((0.5, np.uint8(0)), TypeError, "type of the values, int8, not uint8"),
    ((0.5, np.int64(0)), TypeError, "int8, not int64"),
    ((0.5, 128), ValueError, "128"),
    ((THREE, np.zeros(2, "i1")), ValueError, "shape of scale"),
    ((0.5, np.zeros(3, "i1")), ValueError, "shape of scale"),
    ((0.5, [1, 2, 3]), ValueError, r"shape of scale, \(\), not \(3,\)"),
    (([0.5], range(3)), ValueError, r"shape of scale, \(1,\), not \(3,\)"),
    ((THREE, (1, 2)), ValueError, r"shape of scale, \(3,\), not \(2,\)"),
    ((THREE, [1]), ValueError, r"shape of scale, \(3,\), not \(1,\)"),
    ((0.5, []), ValueError, r"shape of scale, \(\), not \(0,\)"),
    ((THREE, None, 3), ValueError, "axis 3"),
    ((THREE, None, -4), ValueError, "axis"),
    ((THREE, None, 1.0), TypeError, "axis"),
    ((np.array([0.1, 0.5, 1.0]),), ValueError, "float64"),
    ((0.0,), ValueError, "scale"),
    ((None,), TypeError, "scale"),
    (("0.5",), TypeError, "scale"),
])  # fmt: skip
def test_onnx_parameters_that_are_refused(arguments, error, says):
    names = ("scale", "zero_point", "axis", "block_size")
    refuses(error, says, from_onnx, VALUES, **dict(zip(names, arguments)))


def test_onnx_int32_has_no_zero_point():
    values = VALUES.astype(np.int32)
    assert from_onnx(values, 0.5, np.int32(0)).zero_point == 0
    refuses(ValueError, "zero_point must be 0 for values of int32", from_onnx, values, 0.5, 1)


@pytest.mark.parametrize("name", ["int4", "uint4", "float8_e4m3fn", "bfloat16"])
def test_onnx_values_that_are_refused(name):
    dtype = getattr(pytest.importorskip("ml_dtypes"), name)
    refuses(TypeError, name, from_onnx, np.zeros(3, dtype), 0.5)


# ---- PyTorch's parameters, in arrays


@pytest.mark.parametrize("scale, zero_point", [
    (0.5, 3), (np.array(0.5), np.array(3)), (np.array([0.5]), np.array([3])), (np.array([[[0.5]]]), 3),
    (np.array([[[0.5]]], np.float32), np.array([[[3]]])),
])  # fmt: skip
def test_torch_one_pair(scale, zero_point):
    assert from_torch(VALUES, scale, zero_point) == QuantizedTensor(VALUES, 0.5, 3)


def test_torch_parameters_that_keep_their_axes():
    expected = QuantizedTensor(VALUES, THREE, [1, 2, 3], axis=1)
    zero_points = np.array([1, 2, 3])
    for axis in (1, -2, None):
        assert from_torch(VALUES, THREE.reshape(1, 3, 1), zero_points.reshape(1, 3, 1), axis) == expected
    assert from_torch(VALUES, THREE, zero_points, axis=1) == expected
    assert from_torch(VALUES, THREE.reshape(1, 3, 1), 7) == QuantizedTensor(VALUES, THREE, 7, axis=1)


def test_torch_zero_points_in_lists_beside_a_scale_that_keeps_its_axes():
    expected = QuantizedTensor(VALUES, THREE, [1, 2, 3], axis=1)
    for scale in (THREE.reshape(1, 3, 1), THREE.reshape(1, 3, 1).tolist()):
        for zero_point in ([[[1], [2], [3]]], (((1,), (np.int8(2),), (3,)),), [[range(i, i + 1) for i in (1, 2, 3)]]):
            assert from_torch(VALUES, scale, zero_point) == expected


@pytest.mark.parametrize("zero_point", [np.array([[[7]]]), np.array([7], np.int8), [7], [[[7]]], np.array(7)])
def test_torch_one_zero_point_counts_for_every_scale(zero_point):
    expected = QuantizedTensor(VALUES, THREE, 7, axis=1)
    for axis in (1, None):
        assert from_torch(VALUES, THREE.reshape(1, 3, 1), zero_point, axis) == expected


@pytest.mark.parametrize("shape", [(2, 1), (1, 2), (2,), (1, 1, 2), (2, 1, 1), (0,)])
def test_torch_zero_points_lie_along_the_axis_of_the_scale(shape):
    """As many as there are scales is not enough: those of a row belong to other values than those of a column."""
    values, scale, zero_point = VALUES[:, 0, :2], np.array([[0.5], [0.25]]), np.resize([1, 2], shape)
    for given in (zero_point, zero_point.tolist()):
        if shape == scale.shape:
            np.testing.assert_array_equal(from_torch(values, scale, given).dequantize(), (values - zero_point) * scale)
        else:
            refuses(ValueError, r"zero_point must have the shape of scale, \(2, 1\)", from_torch, values, scale, given)


def test_torch_axis_of_extent_1():
    values = VALUES[:, :1]
    assert from_torch(values, np.array([0.5]), 0, axis=1) == QuantizedTensor(values, [0.5], 0, axis=1)


def test_a_number_is_rounded_to_float32_and_an_array_has_to_be_exact():
    for read in (from_torch, from_onnx):
        assert read(VALUES, 0.1).scale == np.float32(0.1)
        assert read(VALUES, np.array(np.float64(np.float32(0.1)))).scale == np.float32(0.1)
        refuses(ValueError, "round them to float32", read, VALUES, np.array(0.1))


@pytest.mark.parametrize("arguments, error, says", [
    ((), ValueError, "scale must be given"),
    ((THREE,), ValueError, "axis"),
    ((THREE, 0, 0), ValueError, "3 entries"),
    ((np.ones((2, 3, 1)),), ValueError, "each block"),
    ((np.ones((3, 1)),), ValueError, "each block"),
    ((THREE.reshape(1, 3, 1), 0, 2), ValueError, "lies along axis 1, not 2"),
    ((THREE.reshape(1, 3, 1), np.zeros((2, 1, 1), int)), ValueError, "shape of scale"),
    ((THREE.reshape(1, 3, 1), [[[1], [2.5], [3]]]), TypeError, r"zero_point\[1\] must be an integer, not 2.5"),
    ((THREE.reshape(1, 3, 1), [[[1], [2], [2**70]]]), ValueError, r"zero_point\[2\] .* cannot be held by dtype int8"),
    ((THREE.reshape(1, 3, 1), [[[2**70]]]), ValueError, "zero_point .* cannot be held by dtype int8"),
    ((THREE.reshape(1, 3, 1), [[[True]]]), TypeError, "zero_point must be an integer, not True"),
    ((THREE.reshape(1, 3, 1), [[[1], [2]], [3]]), TypeError, "zero_point must be a number or a regular list"),
    ((THREE.reshape(1, 3, 1), np.array([[[0.5]]])), TypeError, "zero_point must be an integer"),
    ((0.5, 0.5), TypeError, "zero_point"),
    ((0.5, np.array(0.5)), TypeError, "zero_point"),
    ((0.5, 200), ValueError, "200"),
    ((0.5, 0, "1"), TypeError, "axis"),
    ((np.nan,), ValueError, "finite"),
    ((1e-60,), ValueError, "scale"),
])  # fmt: skip
def test_torch_parameters_that_are_refused(arguments, error, says):
    refuses(error, says, from_torch, VALUES, *arguments)


# ---- scales whatever the thread does with floats

SMALL = np.array([1e-40, 2e-40, 3e-42], np.float32)


def at_default(values, scale):
    return from_litert(values, {"scales": scale, "quantized_dimension": 1})


@pytest.mark.skipif(not FLUSHES, reason="the environment of an x86 thread")
@pytest.mark.parametrize("read", [at_default, from_onnx, lambda x, scale: from_torch(x, scale, axis=1)])
def test_subnormal_scales_are_not_0_to_a_thread_that_flushes(read):
    given = [SMALL, SMALL.astype(np.float64), SMALL.astype(np.longdouble), list(SMALL), SMALL.astype(">f4")]
    given += [SMALL.astype(np.float64).tolist()]
    inexact = SMALL.astype(np.float64) * (1 + 2**-40)
    with subnormals_are_zero():
        bits = [read(VALUES, scale).scale.view(np.int32).tolist() for scale in given]
        one = [read(VALUES[:, :1], scale[:1]).scale.view(np.int32).reshape(()) for scale in given]
        for wrong in (inexact, np.full(3, 5e-324)):
            refuses(ValueError, "float32 cannot hold", read, VALUES, wrong)
    assert bits == [SMALL.view(np.int32).tolist()] * len(given)
    assert one == [SMALL.view(np.int32)[0]] * len(given)


@pytest.mark.skipif(not FLUSHES, reason="the environment of an x86 thread")
def test_small_floats_are_exact_scales_to_a_thread_that_flushes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    given = [np.array(2.0**-130, ml_dtypes.bfloat16), np.array(2.0**-127, ml_dtypes.float8_e8m0fnu)]
    with subnormals_are_zero():
        bits = [from_onnx(VALUES, scale).scale.view(np.int32) for scale in given]
    assert bits == [1 << 19, 1 << 22]


@pytest.mark.skipif(not FLUSHES, reason="the environment of an x86 thread")
def test_torch_parameters_in_nested_lists_are_read_one_by_one():
    with subnormals_are_zero():
        q = from_torch(VALUES[:, :2, :1], [[[SMALL[0]], [1.0]]])
    assert q.scale.view(np.int32).tolist() == [SMALL.view(np.int32)[0], np.float32(1).view(np.int32)]


@pytest.mark.skipif(not FLUSHES, reason="the environment of an x86 thread")
def test_to_litert_tells_small_scales_apart_on_a_thread_that_flushes():
    a, b, _ = SMALL
    number = float(b)
    one, three = QuantizedTensor(VALUES, SMALL[0], -3), QuantizedTensor(VALUES, SMALL, 0, axis=1)
    with subnormals_are_zero():
        for pair in ((number, -3), (b, -3), detail([b], [-3])):
            refuses(ValueError, r"q has scale=9.9999\d*e-41.*model's tensor scale=2.0000\d*e-40", to_litert, one, pair)
        refuses(ValueError, "q has scale=", to_litert, three, detail(SMALL[[1, 0, 2]], [0, 0, 0], 1))
        assert to_litert(one, (a, -3)) is one.values
        assert to_litert(three, detail(SMALL, [0, 0, 0], 1)) is three.values


@pytest.mark.parametrize("read", [at_default, from_onnx, lambda x, scale: from_torch(x, scale, axis=1),
                                  lambda x, scale: from_torch(x, [[[entry] for entry in scale]])])  # fmt: skip
@pytest.mark.parametrize("first", [np.longdouble("1e400"), np.uint32(0x7F800001).view(np.float32), np.float64(1e300)])
def test_what_numpy_is_told_to_raise_does_not_matter(read, first):
    for scale in (np.array([first, 1, 1], first.dtype), [first, 1.0, 1.0]):
        with np.errstate(all="raise"), warnings.catch_warnings():
            warnings.simplefilter("error")
            refuses(ValueError, "scale.*(must be|float32 cannot hold)", read, VALUES, scale)


@pytest.mark.parametrize("read", [from_torch, from_onnx])
def test_what_is_read_goes_through_the_operators(read):
    q = read(np.zeros((1, 3, 4, 4), np.int8), THREE, axis=1) if read is from_torch else read(
        np.zeros((1, 3, 4, 4), np.int8), THREE)  # fmt: skip
    np.testing.assert_array_equal(s2dq.space_to_depth(q, 2, "NCHW", mode="CRD").scale, THREE.repeat(4))

"""Quantized tensors of real interpreters, graphs and tensors mean in s2dq what they mean where they come from."""

import warnings

import numpy as np
import pytest

import s2dq
from model_files import write_litert, write_onnx
from s2dq import interop

DTYPES = ("int8", "uint8", "int16", "uint16", "int32")


def labels(shape, dtype):
    """Values over the whole range of the dtype, the ends among them."""
    info = np.iinfo(dtype)
    return np.linspace(info.min, info.max, int(np.prod(shape))).round().astype(dtype).reshape(shape)


# ---- LiteRT


@pytest.fixture
def interpreter(tmp_path):
    litert = pytest.importorskip("ai_edge_litert.interpreter")

    def make(*tensors):
        made = litert.Interpreter(model_path=str(write_litert(tmp_path / "model.tflite", *tensors)))
        made.allocate_tensors()
        return made

    return make


def test_litert_tensor_of_one_pair(interpreter):
    made = interpreter({"name": "x", "shape": (2, 3), "type": "INT8", "scale": [0.1], "zero_point": [-7]})
    (detail,) = made.get_input_details()
    values = labels((2, 3), np.int8)
    q = s2dq.QuantizedTensor(values, 0.1, -7)
    made.set_tensor(detail["index"], interop.to_litert(q, detail))
    for described in (detail, detail["quantization_parameters"], detail["quantization"]):
        assert interop.from_litert(made.get_tensor(detail["index"]), described) == q


def test_litert_tensor_of_pairs_per_channel(interpreter):
    made = interpreter({"name": "x", "shape": (2, 3), "type": "INT8", "scale": [0.1, 0.2, 0.3], "axis": 1})
    (detail,) = made.get_input_details()
    q = interop.from_litert(labels((2, 3), np.int8), detail)
    assert q == s2dq.QuantizedTensor(labels((2, 3), np.int8), [0.1, 0.2, 0.3], 0, axis=1)
    assert interop.to_litert(q, detail) is q.values
    with pytest.raises(ValueError, match="per channel"):
        interop.from_litert(q.values, detail["quantization"])


def test_litert_tensors_that_are_not_quantized(interpreter):
    for kind, dtype in (("FLOAT32", np.float32), ("INT8", np.int8), ("BOOL", np.bool_)):
        (detail,) = interpreter({"name": "x", "shape": (2, 3), "type": kind}).get_input_details()
        with pytest.raises(ValueError, match="not quantized"):
            interop.from_litert(np.zeros((2, 3), dtype), detail)


def test_litert_unpacks_4_bits(interpreter):
    made = interpreter(
        {"name": "x", "shape": (1, 4), "type": "INT8", "scale": [1.0]},
        {"name": "w", "shape": (1, 4), "type": "INT4", "scale": [0.5], "data": b"\x21\xf8"},
    )
    detail = next(detail for detail in made.get_tensor_details() if detail["name"] == "w")
    q = interop.from_litert(made.get_tensor(detail["index"]), detail)
    assert q == s2dq.QuantizedTensor(np.array([[1, 2, -8, -1]], np.int8), 0.5, 0)


# ---- ONNX


@pytest.fixture
def dequantize(tmp_path):
    """ONNX Runtime's DequantizeLinear of an input `x`."""
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")

    def run(x, scale, zero_point=None, **attributes):
        constants = {"scale": scale} | ({} if zero_point is None else {"zero": zero_point})
        node = ("DequantizeLinear", ["x", *constants], "y", attributes)
        path = write_onnx(tmp_path / "model.onnx", x.dtype, list(x.shape), node, **constants)
        return runtime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]

    return run


@pytest.mark.parametrize("dtype", DTYPES)
def test_onnx_pairs_mean_what_onnx_runtime_makes_of_them(dequantize, dtype):
    x = labels((2, 3, 4), dtype)
    three = np.array([0.1, 0.0123, 7], np.float32)
    zero_points = None if dtype == "int32" else np.array([0, 5, 100], dtype)
    cases = [(np.float32(0.1), None if zero_points is None else zero_points[1], {}),
             (np.array([0.1], np.float32), None if zero_points is None else zero_points[1:2], {}),
             (three, zero_points, {}), (three, zero_points, {"axis": -2}), (three[:2], None, {"axis": 0}),
             (np.float32(3), None, {"axis": 2})]  # fmt: skip
    for scale, zero_point, attributes in cases:
        q = interop.from_onnx(x, scale, zero_point, **attributes)
        np.testing.assert_array_equal(q.dequantize(), dequantize(x, scale, zero_point, **attributes), strict=True)


def test_onnx_initialisers():
    onnx = pytest.importorskip("onnx")
    as_proto = onnx.numpy_helper.from_array
    values, scale, zero_point = np.array([[1, 2]], np.uint8), np.array([0.5, 2], np.float32), np.array([3, 4], np.uint8)
    expected = s2dq.QuantizedTensor(values, scale, [3, 4], axis=1)
    assert interop.from_onnx(as_proto(values), as_proto(scale), as_proto(zero_point)) == expected
    assert interop.from_onnx(values, as_proto(scale), zero_point) == expected
    with pytest.raises(TypeError, match="type of the values"):
        interop.from_onnx(as_proto(values), as_proto(scale), as_proto(zero_point.astype(np.int8)))


def test_onnx_initialiser_with_too_few_bytes_is_damaged():
    onnx = pytest.importorskip("onnx")
    scale = onnx.numpy_helper.from_array(np.array([0.5, 2], np.float32))
    scale.raw_data = scale.raw_data[:5]
    with pytest.raises(ValueError, match="^from_onnx: scale is a damaged TensorProto: "):
        interop.from_onnx(np.array([[1, 2]], np.uint8), scale)


@pytest.mark.parametrize("entries", [
    {"data_type": 1, "data_location": 1},
    {"data_type": 1, "data_location": 1, "location": "no_such_file"},
    {"data_type": 1, "data_location": 1, "location": "../outside"},
    {"data_type": 99, "raw_data": b"1234"},
    {"raw_data": b"1234"},
])  # fmt: skip
def test_onnx_initialisers_that_nobody_can_read_are_damaged(entries):
    """Whatever onnx raises."""
    onnx = pytest.importorskip("onnx")
    fields = {key: value for key, value in entries.items() if key != "location"}
    tensor = onnx.TensorProto(dims=[1], **fields)
    if "location" in entries:
        tensor.external_data.add(key="location", value=entries["location"])
    values = np.array([[1, 2]], np.uint8)
    for argument in ("values", "scale", "zero_point"):
        given = {"values": values, "scale": 0.5, argument: tensor}
        with pytest.raises(ValueError, match=f"^from_onnx: {argument} is a damaged TensorProto: ") as caught:
            interop.from_onnx(**given)
        assert type(caught.value) is ValueError and "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["INT4", "UINT4", "FLOAT8E4M3FN", "FLOAT8E5M2"])
def test_onnx_initialisers_of_other_types_are_refused(name):
    onnx = pytest.importorskip("onnx")
    tensor = onnx.helper.make_tensor("w", getattr(onnx.TensorProto, name), [4], [0, 1, 2, 1])
    with pytest.raises(TypeError, match="values must have dtype int8"):
        interop.from_onnx(tensor, 0.5)


def test_onnx_attributes_of_a_blocked_node_are_refused():
    onnx = pytest.importorskip("onnx")
    node = onnx.helper.make_node("DequantizeLinear", ["x", "scale"], ["y"], axis=1, block_size=2)
    attributes = {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}
    with pytest.raises(ValueError, match="each block"):
        interop.from_onnx(np.zeros((2, 4), np.int8), np.ones((2, 2), np.float32), **attributes)


# ---- PyTorch


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@pytest.fixture
def quantized(torch):
    """torch.quantize_per_tensor or quantize_per_channel; PyTorch warns that these types will go."""

    def make(*arguments):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            per_channel = len(arguments) == 5
            return (torch.quantize_per_channel if per_channel else torch.quantize_per_tensor)(*arguments)

    return make


def numbers(torch, *shape):
    return torch.linspace(-40, 40, int(np.prod(shape))).reshape(shape)


@pytest.mark.parametrize("dtype", DTYPES)
def test_torch_integers_and_a_scale(torch, dtype):
    tensor = torch.from_numpy(labels((2, 3, 4), dtype))
    q = interop.from_torch(tensor, 0.1, 7)
    assert q == s2dq.QuantizedTensor(tensor.numpy(), 0.1, 7)
    assert q.values.__array_interface__["data"][0] == tensor.data_ptr()
    view = tensor.permute(2, 0, 1)[::2]  # strides are kept, too
    assert interop.from_torch(view, 0.1) == s2dq.QuantizedTensor(view.numpy(), 0.1, 0)
    assert interop.from_torch(view, 0.1).values.strides == view.numpy().strides


def test_torch_parameters_may_be_tensors(torch):
    tensor = torch.arange(6, dtype=torch.int8).reshape(2, 3)
    scale, zero_point = torch.tensor([0.5, 0.25]), torch.tensor([1, 2])
    expected = s2dq.QuantizedTensor(tensor.numpy(), [0.5, 0.25], [1, 2], axis=0)
    assert interop.from_torch(tensor, scale, zero_point, 0) == expected
    assert interop.from_torch(tensor, scale.reshape(2, 1), zero_point.reshape(2, 1)) == expected
    assert interop.from_torch(tensor, torch.nn.Parameter(scale), zero_point, 0) == expected
    assert interop.from_torch(tensor, scale.to(torch.bfloat16), zero_point, 0) == expected
    assert interop.from_torch(tensor, scale.double(), zero_point.to(torch.int32), 0) == expected
    one = interop.from_torch(tensor, torch.tensor([0.5]), torch.tensor([3]))  # as an observer has them
    assert one == s2dq.QuantizedTensor(tensor.numpy(), 0.5, 3)


def test_torch_parameters_that_keep_their_axes_mean_what_pytorch_makes_of_them(torch):
    tensor, scale = torch.tensor([[10, 20], [30, 40]], dtype=torch.int8), torch.tensor([[0.5], [0.25]])
    for zero_point in (torch.tensor([[1], [2]]), torch.tensor([[3]]), torch.tensor([3]), torch.tensor(3)):
        theirs = (tensor.float() - zero_point) * scale
        np.testing.assert_array_equal(interop.from_torch(tensor, scale, zero_point).dequantize(), theirs.numpy())
    for zero_point in (torch.tensor([[1, 2]]), torch.tensor([1, 2])):  # by PyTorch's rules they lie along axis 1
        with pytest.raises(ValueError, match=r"^from_torch: zero_point must have the shape of scale, \(2, 1\)"):
            interop.from_torch(tensor, scale, zero_point)


def test_torch_decomposed_operators_agree(torch):
    pytest.importorskip("torch.ao.quantization.fx._decomposed")
    operators = torch.ops.quantized_decomposed
    tensor = torch.from_numpy(labels((2, 3, 40), np.int8))
    theirs = operators.dequantize_per_tensor(tensor, 0.0123456789, 5, -128, 127, torch.int8)
    ours = interop.from_torch(tensor, 0.0123456789, 5).dequantize()
    np.testing.assert_array_equal(ours, theirs.numpy(), strict=True)
    scales, zeros = torch.tensor([0.1, 0.0123, 7]), torch.tensor([0, 5, -100])
    theirs = operators.dequantize_per_channel(tensor, scales, zeros, 1, -128, 127, torch.int8)
    ours = interop.from_torch(tensor, scales, zeros, axis=1).dequantize()
    np.testing.assert_array_equal(ours, theirs.numpy(), strict=True)


@pytest.mark.parametrize("dtype", ["qint8", "quint8", "qint32"])
def test_torch_quantized_types_with_one_pair(torch, quantized, dtype):
    zero_point = 3
    theirs = quantized(numbers(torch, 2, 3, 40), 0.1234567890123, zero_point, getattr(torch, dtype))
    ours = interop.from_torch(theirs)
    assert (ours.scale, ours.zero_point, ours.axis) == (np.float32(0.1234567890123), zero_point, None)
    np.testing.assert_array_equal(ours.dequantize(), theirs.dequantize().numpy(), strict=True)


@pytest.mark.parametrize("dtype", ["qint8", "quint8"])
def test_torch_quantized_types_with_pairs_per_channel(torch, quantized, dtype):
    scales, zeros = torch.tensor([0.1, 0.3, 0.7]), torch.tensor([4, 5, 60])
    theirs = quantized(numbers(torch, 2, 3, 40), scales, zeros, 1, getattr(torch, dtype))
    ours = interop.from_torch(theirs)
    assert (ours.scale.tolist(), ours.zero_point.tolist(), ours.axis) == (scales.tolist(), zeros.tolist(), 1)
    np.testing.assert_array_equal(ours.dequantize(), theirs.dequantize().numpy(), strict=True)


def test_torch_scales_that_torch_uses_in_float64_have_to_be_float32(torch, quantized):
    scales = torch.tensor([0.1, 0.3, 0.7], dtype=torch.float64)
    theirs = quantized(numbers(torch, 2, 3, 40), scales, torch.tensor([4, 5, 60]), 1, torch.qint8)
    with pytest.raises(ValueError, match="round them to float32"):
        interop.from_torch(theirs)
    # The reason: the float32 next to them gives other bits.
    rounded = interop.from_torch(theirs.int_repr(), scales.float(), torch.tensor([4, 5, 60]), axis=1)
    assert (rounded.dequantize() != theirs.dequantize().numpy()).any()


def test_torch_tensors_that_are_not_representable(torch, quantized):
    four = quantized(numbers(torch, 2, 4), torch.ones(2), torch.zeros(2), 0, torch.quint4x2)
    with pytest.raises(TypeError, match="quint4x2"):
        interop.from_torch(four)
    floats = quantized(numbers(torch, 2, 4), torch.ones(2), torch.zeros(2), 0, torch.quint8)
    with pytest.raises(ValueError, match="per_channel_affine_float_qparams"):
        interop.from_torch(floats)
    for dtype in (torch.int64, torch.float32, torch.bool):
        with pytest.raises(TypeError, match="values must have dtype int8"):
            interop.from_torch(torch.zeros(3, dtype=dtype), 0.5)
    with pytest.raises(TypeError):
        interop.from_torch(torch.zeros(3, dtype=torch.bfloat16), 0.5)
    integers = torch.zeros((2, 64), dtype=torch.int8)
    with pytest.raises(ValueError, match=r"each block.*\(2, 2\)"):
        interop.from_torch(integers, torch.ones(2, 2))
    with pytest.raises(TypeError, match="zero_point"):
        interop.from_torch(integers, 0.5, torch.tensor(0.5))
    with pytest.raises(TypeError, match="device"):
        interop.from_torch(integers.to("meta"), 0.5)


def test_torch_quantized_types_bring_their_parameters(torch, quantized):
    theirs = quantized(numbers(torch, 2, 3), 0.5, 3, torch.qint8)
    for given in ({"scale": 0.5}, {"zero_point": 3}, {"axis": 0}):
        with pytest.raises(ValueError, match=f"have a {next(iter(given))} of their own"):
            interop.from_torch(theirs, **given)

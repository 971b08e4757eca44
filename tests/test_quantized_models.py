"""Quantized models of LiteRT and ONNX Runtime, run by their own interpreters, beside s2dq.

Two promises are checked. A quantized SPACE_TO_BATCH_ND gives the bytes that s2dq gives, padding included. And a
quantized model that starts with a space-to-depth stem, fed by a Preprocessor, gives what the framework's own float
path gives, within one quantization step of its output.
"""

import warnings

import numpy as np
import pytest

import s2dq
from model_files import write_litert
from s2dq import interop
from s2dq.models import read_input

SIZE = 16
FILTERS = 8


@pytest.fixture
def run_litert():
    """Run a .tflite file on the values of its one input -> (value, detail) of its one output."""
    litert = pytest.importorskip("ai_edge_litert.interpreter")

    def run(path, values):
        interpreter = litert.Interpreter(model_path=str(path))
        interpreter.allocate_tensors()
        (into,), (out_of,) = interpreter.get_input_details(), interpreter.get_output_details()
        if isinstance(values, s2dq.QuantizedTensor):
            values = interop.to_litert(values, into)
        interpreter.set_tensor(into["index"], values)
        interpreter.invoke()
        return interpreter.get_tensor(out_of["index"]), out_of

    return run


@pytest.fixture(scope="module")
def tensorflow():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("tensorflow")


def convert(tensorflow, path, function, shape, samples, dtype):
    """Write a fully quantized .tflite of `function`, calibrated with `samples`; `dtype` is that of its ends."""
    tf = tensorflow
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = tf.function(function, input_signature=[tf.TensorSpec(shape, tf.float32)])
        concrete = compiled.get_concrete_function()
        converter = tf.lite.TFLiteConverter.from_concrete_functions([concrete], compiled)
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda: ([sample] for sample in samples)
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = converter.inference_output_type = getattr(tf, dtype)
        path.write_bytes(converter.convert())
    return path


# ---- SPACE_TO_BATCH_ND

PADDED = [((1, 4, 6, 3), [2, 2], [[0, 0], [0, 0]]), ((2, 5, 6, 3), [2, 3], [[1, 2], [0, 0]]),
          ((1, 3, 4, 1), [2, 2], [[3, 2], [2, 0]]), ((1, 7, 7, 5), [4, 4], [[0, 1], [0, 1]])]  # fmt: skip


@pytest.mark.parametrize("zero_point", [-128, -1, 0, 5, 127])
@pytest.mark.parametrize("shape, block, paddings", PADDED)
def test_space_to_batch_nd_equals_litert(tmp_path, run_litert, shape, block, paddings, zero_point):
    values = np.arange(np.prod(shape)).astype(np.int8).reshape(shape)
    q = s2dq.QuantizedTensor(values, 0.1, zero_point)
    expected = s2dq.space_to_batch_nd(q, block, paddings)
    quantized = {"type": "INT8", "scale": [0.1], "zero_point": [zero_point]}
    path = write_litert(
        tmp_path / "model.tflite",
        {"name": "x", "shape": shape} | quantized,
        {"name": "block", "shape": (2,), "type": "INT32", "data": np.array(block, "<i4").tobytes()},
        {"name": "paddings", "shape": (2, 2), "type": "INT32", "data": np.array(paddings, "<i4").tobytes()},
        {"name": "y", "shape": expected.shape} | quantized,
        operator="SPACE_TO_BATCH_ND", reads=[0, 1, 2], writes=[3],
    )  # fmt: skip
    theirs, detail = run_litert(path, q)
    np.testing.assert_array_equal(theirs, expected.values, strict=True)
    assert interop.from_litert(theirs, detail) == expected
    padding = np.prod(expected.shape) - np.prod(shape)
    assert (theirs == zero_point).sum() >= padding


@pytest.mark.parametrize("low, high", [(-1.0, 1.0), (0.0, 1.0), (-0.3, 2.0)])
def test_space_to_batch_nd_equals_litert_from_the_converter(tmp_path, tensorflow, run_litert, low, high):
    shape, block, paddings = (1, 5, 6, 3), [2, 3], [[1, 2], [2, 1]]
    samples = np.random.default_rng(4).uniform(low, high, (8, *shape)).astype(np.float32)
    samples[0, 0, 0, 0, :2] = low, high  # the ends of the range, so that the zero point is known
    path = convert(tensorflow, tmp_path / "model.tflite",
                   lambda x: tensorflow.space_to_batch_nd(x, block, paddings), shape, samples, "int8")  # fmt: skip
    read = read_input(path)
    assert read.zero_point == np.rint(-128 - low / read.scale)
    values = np.random.default_rng(5).integers(-128, 128, shape).astype(np.int8)
    q = s2dq.QuantizedTensor(values, read.scale, read.zero_point)
    theirs, detail = run_litert(path, q)
    assert interop.from_litert(theirs, detail) == s2dq.space_to_batch_nd(q, block, paddings)


# ---- models with a space-to-depth stem


def picture():
    """A uint8 RGB frame of many grey levels, black and white among them."""
    frame = np.random.default_rng(1).integers(0, 256, (SIZE, SIZE, 3)).astype(np.uint8)
    frame[0, 0] = 0, 255, 128
    return frame


def filters(shape, largest):
    """Integers from -largest to largest, as weights; the largest is in every filter, which lie along the last axis."""
    weights = np.random.default_rng(2).integers(-largest, largest + 1, shape)
    weights[0, 0, 0] = largest
    return weights


@pytest.fixture(scope="module")
def litert_stem(tensorflow, tmp_path_factory):
    """A model of space_to_depth, convolution and pooling, and files of it by type and by whether they have the stem."""
    tf, folder, made = tensorflow, tmp_path_factory.mktemp("stem"), {}
    # int8 holds them exactly: each filter is a whole multiple of its largest entry / 127.
    weights = (filters((3, 3, 12, FILTERS), 127) * 2.0**-11).astype(np.float32)

    def body(x):
        return tf.nn.max_pool2d(tf.nn.relu(tf.nn.conv2d(x, weights, 1, "SAME")), 2, 2, "VALID")

    def whole(x):
        return body(tf.nn.space_to_depth(x, 2))

    def file(normalised, dtype, stem=True):
        """`normalised` maps 0..1 to what the model takes; the calibration sees black and white."""
        key = (normalised, dtype, stem)
        if key not in made:
            samples = np.random.default_rng(3).uniform(0, 1, (8, 1, SIZE, SIZE, 3)).astype(np.float32)
            samples[:, 0, 0, 0], samples[:, 0, 0, 1] = 0, 1
            samples = normalised(samples).astype(np.float32)
            shape = (1, SIZE, SIZE, 3)
            if not stem:
                samples = [s2dq.space_to_depth(sample, 2) for sample in samples]
                shape = samples[0].shape
            path = folder / f"{len(made)}.tflite"
            made[key] = convert(tf, path, whole if stem else body, shape, samples, dtype)
        return made[key]

    return whole, file


def as_they_are(x):
    return x


MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def imagenet(x):
    return (x - np.float32(MEAN)) / np.float32(STD)


def steps_apart(quantized, numbers):
    """How far a quantized result is from real numbers, in quantization steps; saturated ones count to the end."""
    info = np.iinfo(quantized.dtype)
    exact = numbers.astype(np.float64) / quantized.scale + quantized.zero_point
    return np.abs(quantized.values - np.clip(exact, info.min, info.max)).max()


@pytest.mark.parametrize("stem", [True, False])
def test_litert_stem_gives_what_the_float_model_gives(litert_stem, run_litert, stem):
    model, file = litert_stem
    path = file(as_they_are, "int8", stem)
    pre = s2dq.Preprocessor(**read_input(path).keywords(block_size=1 if stem else 2))
    assert pre.size == (SIZE, SIZE)
    y, detail = run_litert(path, pre(picture()))
    # The weights and the grey levels are exact in int8, so all that is left is the rounding of the result.
    floats = model((picture() / 255).astype(np.float32)[np.newaxis]).numpy()
    result = interop.from_litert(y, detail)
    assert np.ptp(result.values.astype(int)) > 100
    assert steps_apart(result, floats) <= 1
    wrong = pre(np.roll(picture(), 1, axis=1))  # the measure sees a shift by one pixel
    assert steps_apart(interop.from_litert(*run_litert(path, wrong)), floats) > 10


@pytest.mark.parametrize("stem", [True, False])
def test_litert_stem_behind_mean_and_std_gives_what_the_float_interface_gives(litert_stem, run_litert, stem):
    _, file = litert_stem
    path = file(imagenet, "int8", stem)
    keywords = read_input(path).keywords(block_size=1 if stem else 2)
    pre = s2dq.Preprocessor(**keywords, mean=MEAN, std=STD)
    y, detail = run_litert(path, pre(picture()))
    result = interop.from_litert(y, detail)
    # The same model with floats at both ends: LiteRT quantizes and dequantizes.
    floats = imagenet((picture() / 255).astype(np.float32))[np.newaxis]
    theirs, _ = run_litert(file(imagenet, "float32", True), floats)
    assert np.ptp(result.values.astype(int)) > 100
    assert steps_apart(result, theirs) <= 1


# ---- ONNX


@pytest.fixture
def onnx_stem(tmp_path):
    """A QDQ model of SpaceToDepth, convolution and ReLU in ONNX, and its float twin."""
    onnx = pytest.importorskip("onnx")
    helper = onnx.helper
    # 7 bits: on x86 without VNNI, ONNX Runtime adds products of uint8 and int8 in pairs, in 16 bits that saturate.
    w_q = filters((3, 3, 12, FILTERS), 64).transpose(3, 2, 0, 1).astype(np.int8)
    weights = (w_q * 2.0**-10).astype(np.float32)
    pairs = {"x": (1 / 255, np.uint8(0)), "w": (2.0**-10, np.int8(0)), "y": (1 / 256, np.uint8(0))}
    stored = {f"{name}_scale": np.float32(scale) for name, (scale, _) in pairs.items()}
    stored |= {f"{name}_zero": np.asarray(zero) for name, (_, zero) in pairs.items()}

    def both(name, quantized):
        parameters = [f"{name}_scale", f"{name}_zero"]
        return [helper.make_node("QuantizeLinear", [name, *parameters], [quantized]),
                helper.make_node("DequantizeLinear", [quantized, *parameters], [name + "_again"])]  # fmt: skip

    def save(name, nodes, constants):
        graph = helper.make_graph(
            nodes, name,
            [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 3, SIZE, SIZE])],
            [helper.make_tensor_value_info(nodes[-1].output[0], onnx.TensorProto.FLOAT,
                                           [1, FILTERS, SIZE // 2, SIZE // 2])],
            [onnx.numpy_helper.from_array(value, key) for key, value in constants.items()],
        )  # fmt: skip
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
        onnx.checker.check_model(model, full_check=True)
        onnx.save(model, tmp_path / name)
        return tmp_path / name

    def body(x, w):
        return [helper.make_node("Conv", [x, w], ["conv"], pads=[1, 1, 1, 1]),
                helper.make_node("Relu", ["conv"], ["y"])]  # fmt: skip

    stem = helper.make_node("SpaceToDepth", ["x_again"], ["deep"], blocksize=2)
    inner = both("deep", "deep_q")  # as the quantizers of ONNX Runtime leave it: a pair on every edge
    stored |= {"deep_scale": stored["x_scale"], "deep_zero": stored["x_zero"]}
    weight = helper.make_node("DequantizeLinear", ["w_q", "w_scale", "w_zero"], ["w"])
    quantized = [*both("x", "x_q"), stem, *inner, weight, *body("deep_again", "w"), *both("y", "y_q")]
    qdq = save("qdq.onnx", quantized, stored | {"w_q": w_q})
    plain = [helper.make_node("SpaceToDepth", ["x"], ["deep"], blocksize=2), *body("deep", "w")]
    return qdq, save("float.onnx", plain, {"w": weights}), stored


@pytest.fixture
def run_onnx():
    runtime = pytest.importorskip("onnxruntime")

    def run(path, **inputs):
        session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
        return session.run(None, inputs)[0]

    return run


@pytest.mark.parametrize("stem", [True, False])
def test_onnx_stem_gives_what_the_float_model_gives(tmp_path, onnx_stem, run_onnx, stem):
    import onnx

    qdq, plain, stored = onnx_stem
    start = read_input(qdq)
    assert (start.tensor, start.input_dtype) == ("x_q", "float32")
    cut = tmp_path / "integers.onnx"  # the part that takes integers, from the stem or from behind it
    onnx.utils.extract_model(str(qdq), str(cut), ["x_q" if stem else "deep_q"], ["y_q"])
    read = read_input(cut)
    assert (read.scale, read.zero_point, read.dtype) == (start.scale, start.zero_point, "uint8")
    pre = s2dq.Preprocessor(**read.keywords(block_size=1 if stem else 2))
    assert (pre.data_format, pre.size) == ("NCHW", (SIZE, SIZE))
    y_q = run_onnx(cut, **{read.name: pre(picture())})
    result = interop.from_onnx(y_q, stored["y_scale"], stored["y_zero"])
    floats = (picture() / 255).astype(np.float32).transpose(2, 0, 1)[np.newaxis]
    assert np.ptp(result.values.astype(int)) > 100
    assert steps_apart(result, run_onnx(plain, x=floats)) <= 1
    assert steps_apart(result, run_onnx(qdq, x=floats)) <= 1  # with the quantization of ONNX Runtime
    wrong = run_onnx(cut, **{read.name: pre(np.roll(picture(), 1, axis=1))})
    assert steps_apart(interop.from_onnx(wrong, stored["y_scale"], stored["y_zero"]), run_onnx(plain, x=floats)) > 10

"""What is read of a model's own input, and `s2dq preprocess --model` with it.

The files are made here. Without `ai_edge_litert` or `onnx` the tests of the one or the other are skipped.
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import s2dq
from model_files import write_litert, write_onnx
from s2dq.models import ModelInput, read_input


@pytest.fixture
def litert(tmp_path):
    pytest.importorskip("ai_edge_litert.interpreter")
    return lambda *tensors: write_litert(tmp_path / "model.tflite", *tensors)


@pytest.fixture
def onnx_file(tmp_path):
    pytest.importorskip("onnx")
    return lambda *arguments, **keywords: write_onnx(tmp_path / "model.onnx", *arguments, **keywords)


FRAME = {"name": "x", "shape": (1, 8, 6, 3), "type": "INT8", "scale": [0.5], "zero_point": [-3]}
SCALE = {"scale": np.float32(0.5), "zero": np.int8(-3)}
QUANTIZE = ("QuantizeLinear", ["x", "scale", "zero"], "q", {})
DEQUANTIZE = ("DequantizeLinear", ["x", "scale", "zero"], "y", {})


# ---- LiteRT


def test_litert_input(litert):
    found = read_input(litert(FRAME))
    assert found == ModelInput("x", (1, 8, 6, 3), "int8", 0.5, -3, "NHWC", "x", "int8")
    assert found.keywords() == {"scale": 0.5, "zero_point": -3, "dtype": "int8", "data_format": "NHWC",
                                "block_size": (1, 1), "size": (8, 6)}  # fmt: skip
    assert s2dq.Preprocessor(**found.keywords())(np.zeros((8, 6, 3), np.uint8)).shape == (1, 8, 6, 3)


@pytest.mark.parametrize("kind, dtype", [("FLOAT32", "float32"), ("UINT8", "uint8"), ("INT16", "int16")])
def test_litert_input_that_is_not_quantized(litert, kind, dtype):
    found = read_input(litert({"name": "x", "shape": (1, 8, 6, 3), "type": kind}))
    assert (found.dtype, found.scale, found.zero_point, found.input_dtype) == (dtype, None, 0, dtype)


def test_litert_open_extents_are_none(litert):
    found = read_input(litert(FRAME | {"signature": (-1, -1, 6, 3)}))
    assert found.shape == (None, None, 6, 3)
    assert "size" not in found.keywords()


def test_litert_parameters_per_channel(litert):
    path = litert(FRAME | {"scale": [0.5, 0.25, 0.5], "zero_point": [0, 0, 0], "axis": 3})
    with pytest.raises(ValueError, match="per channel"):
        read_input(path)
    same = litert(FRAME | {"scale": [0.5] * 3, "zero_point": [7] * 3, "axis": 3})
    assert read_input(same)[3:5] == (0.5, 7)


def test_several_inputs_are_listed(litert):
    path = litert(FRAME, FRAME | {"name": "previous", "scale": [0.25]})
    for name in (None, "y"):
        with pytest.raises(ValueError, match="x, previous"):
            read_input(path, name)
    assert read_input(path, "previous").scale == 0.25


# ---- ONNX


def test_onnx_input_behind_a_dequantize(onnx_file):
    found = read_input(onnx_file("int8", [1, 3, 8, 6], DEQUANTIZE, **SCALE))
    assert found == ModelInput("x", (1, 3, 8, 6), "int8", 0.5, -3, "NCHW", "x", "int8")
    assert found.unquantized() == found
    assert found.keywords()["size"] == (8, 6)


def test_onnx_float_input_that_is_quantized_by_the_model(onnx_file):
    found = read_input(onnx_file("float32", [1, 3, 8, 6], QUANTIZE, **SCALE))
    assert found == ModelInput("x", (1, 3, 8, 6), "int8", 0.5, -3, "NCHW", "q", "float32")
    assert found.unquantized() == ModelInput("x", (1, 3, 8, 6), "float32", None, 0, "NCHW", "x", "float32")


def test_onnx_zero_point_that_is_missing(onnx_file):
    found = read_input(onnx_file("float32", [1, 3, 8, 6], ("QuantizeLinear", ["x", "scale"], "q", {}), **SCALE))
    assert (found.dtype, found.zero_point) == ("uint8", 0)  # ONNX: the default is uint8
    node = ("QuantizeLinear", ["x", "scale", ""], "q", {"output_dtype": 3})  # TensorProto.INT8
    assert read_input(onnx_file("float32", [1, 3, 8, 6], node, **SCALE)).dtype == "int8"
    node = ("DequantizeLinear", ["x", "scale"], "y", {})
    assert read_input(onnx_file("int8", [1, 3, 8, 6], node, **SCALE)).zero_point == 0


def test_onnx_constants_may_be_nodes(onnx_file):
    from onnx import numpy_helper

    constant = ("Constant", [], "step", {"value": numpy_helper.from_array(np.array([0.125], np.float32))})
    quantize = ("QuantizeLinear", ["x", "step", "zero"], "q", {})
    assert read_input(onnx_file("float32", [1, 3, 8, 6], constant, quantize, zero=np.array([4], np.uint8)))[2:5] == (
        "uint8", 0.125, 4)  # fmt: skip


def test_onnx_scale_of_half_precision_is_exact(onnx_file):
    for dtype in ("float16", "bfloat16"):
        if dtype == "bfloat16":
            dtype = pytest.importorskip("ml_dtypes").bfloat16
        scale = np.asarray(0.0123, dtype)
        found = read_input(onnx_file("float16", [1, 3, 8, 6], QUANTIZE, scale=scale, zero=np.int8(0)))
        assert (found.scale, found.input_dtype) == (float(scale), "float16")


def test_onnx_input_that_is_not_quantized(onnx_file):
    for dtype in ("float32", "float16", "uint8"):
        assert read_input(onnx_file(dtype, [1, 3, 8, 6]))[2:5] == (dtype, None, 0)
    # Something else that happens to read x, and a QuantizeLinear that reads something else.
    other = ("Relu", ["x"], "r", {}), ("QuantizeLinear", ["r", "scale", "zero"], "q", {})
    assert read_input(onnx_file("float32", [1, 3, 8, 6], *other, **SCALE)).scale is None


def test_onnx_open_extents_are_none(onnx_file):
    found = read_input(onnx_file("uint8", ["batch", 3, "height", None]))
    assert found.shape == (None, 3, None, None)


def test_onnx_weights_that_are_listed_as_inputs_are_none(onnx_file, tmp_path):
    import onnx

    model = onnx.load(onnx_file("int8", [1, 3, 8, 6], DEQUANTIZE, **SCALE))
    for tensor in model.graph.initializer:
        model.graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, []))
    onnx.save(model, tmp_path / "old.onnx")
    assert read_input(tmp_path / "old.onnx").name == "x"


def test_onnx_constants_may_lie_in_another_file(onnx_file, tmp_path):
    import onnx

    model = onnx.load(onnx_file("int8", [1, 3, 8, 6], DEQUANTIZE, scale=np.float32([0.5]), zero=np.int8([9])))
    onnx.save(model, tmp_path / "split.onnx", save_as_external_data=True, location="weights", size_threshold=0)
    assert read_input(tmp_path / "split.onnx")[3:5] == (0.5, 9)
    (tmp_path / "weights").unlink()
    with pytest.raises((ValueError, OSError), match="weights"):
        read_input(tmp_path / "split.onnx")


@pytest.mark.parametrize("nodes, constants, says", [
    ([QUANTIZE], {"scale": np.float32([1, 2, 3]), "zero": np.int8([0, 0, 0])}, "per channel"),
    ([("QuantizeLinear", ["x", "scale"], "q", {"block_size": 2})], {"scale": np.ones((1, 3, 4, 6), "f4")}, "blocks"),
    ([("Abs", ["other"], "scale", {}), QUANTIZE], {"other": np.float32(1), "zero": np.int8(0)}, "computed"),
    ([QUANTIZE, ("QuantizeLinear", ["x", "half", "zero"], "r", {})], SCALE | {"half": np.float32(0.25)}, "several"),
    ([("QuantizeLinear", ["x"], "q", {})], {}, "has no scale"),
])  # fmt: skip
def test_onnx_quantization_that_a_preprocessor_cannot_express(onnx_file, nodes, constants, says):
    with pytest.raises(ValueError, match=says):
        read_input(onnx_file("float32", [1, 3, 8, 6], *nodes, **constants))


@pytest.mark.parametrize(("constants", "says"), [
    ({"scale": np.zeros(0, np.float32)}, "has no scale"),
    ({"zero": np.float32(3)}, "has zero points of float32"),
])  # fmt: skip
def test_onnx_parameters_that_are_none(onnx_file, constants, says):
    with pytest.raises(ValueError, match=says):
        read_input(onnx_file("float32", [1, 8, 6, 3], QUANTIZE, **SCALE | constants))


def test_onnx_parameters_with_too_few_bytes_are_damaged(onnx_file):
    import onnx

    path = onnx_file("float32", [1, 8, 6, 3], QUANTIZE, **SCALE)
    model = onnx.load(path)
    model.graph.initializer[0].raw_data = model.graph.initializer[0].raw_data[:3]
    onnx.save(model, path)
    with pytest.raises(ValueError, match="the parameters of .* are damaged: "):
        read_input(path)


def test_onnx_input_that_is_no_tensor(onnx_file):
    import onnx

    path = onnx_file("float32", [1, 8, 6, 3])
    model = onnx.load(path)
    tensor = model.graph.input[0].type
    model.graph.input[0].CopyFrom(onnx.helper.make_value_info("x", onnx.helper.make_sequence_type_proto(tensor)))
    onnx.save(model, path)
    with pytest.raises(ValueError, match="input 'x' of .* is not a tensor"):
        read_input(path)


def test_two_equal_quantizers_are_one(onnx_file):
    nodes = QUANTIZE, ("QuantizeLinear", ["x", "scale", "zero"], "again", {})
    assert read_input(onnx_file("float32", [1, 3, 8, 6], *nodes, **SCALE)).tensor == "q"


def test_arguments_of_another_kind():
    for arguments in ((None,), (3,), ("model.onnx", 3), ("model.onnx", b"x")):
        with pytest.raises(TypeError):
            read_input(*arguments)


def test_files_that_are_no_models(tmp_path):
    with pytest.raises(ValueError, match="ends in .tflite or .onnx"):
        read_input(tmp_path / "model.pt")
    for name, reader in (("model.tflite", "ai_edge_litert.interpreter"), ("model.onnx", "onnx")):
        path = tmp_path / name
        with pytest.raises(FileNotFoundError):
            read_input(path)
        pytest.importorskip(reader)
        for content in (b"", b"no model at all", b"\xff" * 100):
            path.write_bytes(content)
            with pytest.raises(ValueError, match="read_input: "):
                read_input(path)


def test_damaged_onnx_files_are_refused_or_read(onnx_file):
    """Bytes changed at random never end in anything but a ModelInput or a ValueError."""
    path = onnx_file("float32", [1, 3, 8, 6], QUANTIZE, **SCALE)
    content, random = path.read_bytes(), np.random.default_rng(6)
    refused = 0
    for _ in range(300):
        damaged = bytearray(content)
        for position in random.integers(0, len(content), random.integers(1, 4)):
            damaged[position] = random.integers(256)
        path.write_bytes(damaged)
        try:
            read_input(path)
        except ValueError as error:
            assert str(error).startswith("read_input: ")
            refused += 1
    assert 0 < refused < 300


# ---- what lies about itself


def fails(*_):
    raise RuntimeError("asked")


class Text(str):
    """A str that says nothing of itself."""

    __str__ = __repr__ = __len__ = __getitem__ = __contains__ = __eq__ = encode = lower = rfind = fails
    __hash__ = str.__hash__


class Shorter(str):
    """A str that looks as if it had no NUL."""

    def encode(self, *_):
        return b"a.onnx"


class Bytes(bytes):
    """Bytes that look like another name."""

    def decode(self, *_):
        return "a.onnx"

    __contains__ = __getitem__ = rfind = __buffer__ = fails


class File:
    def __init__(self, name):
        self.name = name

    def __fspath__(self):
        return self.name


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("path, error, says", [
    (Text("missing.onnx"), FileNotFoundError, "'missing.onnx'"),
    (Text("notes.txt"), ValueError, "^read_input: .* ends in .tflite or .onnx, not 'notes.txt'"),
    (Shorter("a\0.onnx"), ValueError, "^read_input: path must be a name that a file can have"),
    (Bytes(b"notes.txt"), ValueError, "^read_input: .* ends in .tflite or .onnx, not b'notes.txt'"),
    (Bytes(b"a\0.onnx"), ValueError, "^read_input: path must be a name that a file can have"),
], ids=range(5))  # fmt: skip
def test_paths_are_what_they_hold(path, error, says, wrapped):
    with pytest.raises(error, match=says):
        read_input(File(path) if wrapped else path)


class Incomparable:
    __hash__ = None
    __eq__ = fails


@pytest.mark.parametrize("wrong", ["dtype", "input_dtype"])
def test_unquantized_takes_names_of_types(wrong):
    model = ModelInput("x", (1, 3, 8, 8), "int8", 0.1, 4, "NCHW", "q", "float32")
    for value in (Incomparable(), None, np.dtype("int8")):
        with pytest.raises(TypeError, match=f"^ModelInput.unquantized: {wrong} must be a str, not "):
            model._replace(**{wrong: value}).unquantized()
    assert model._replace(dtype=Text("float32")).unquantized().scale == 0.1
    assert model._replace(dtype=Text("int8")).unquantized().scale is None


@pytest.mark.parametrize("fields, error, says", [
    ({"shape": (1, 3, 8.5, 8)}, TypeError, r"shape\[2\] of the input must be an integer, not 8\.5"),
    ({"shape": (1, 3.0, 8, 8)}, TypeError, r"shape\[1\] of the input must be an integer"),
    ({"shape": (1, 3, 8, "8")}, TypeError, r"shape\[3\] of the input must be an integer"),
    ({"shape": (1, 3, True, 8)}, TypeError, r"shape\[2\] of the input must be an integer"),
    ({"shape": (1, 3, -1, 8)}, ValueError, r"shape\[2\] of the input must be at least 0, not -1"),
    ({"shape": None}, TypeError, "shape of the input must be a tuple of integers and None"),
    ({"shape": (1, 10**5000, 8, 8)}, ValueError, "has <int> in NCHW or 8 in NHWC as its channels"),
    ({"data_format": "NHCW"}, ValueError, "data_format of the input must be one of NHWC, NCHW, not 'NHCW'"),
    ({"data_format": Incomparable()}, TypeError, "data_format of the input must be a str"),
])  # fmt: skip
def test_keywords_of_an_input_that_cannot_be(fields, error, says):
    model = ModelInput("x", (1, 3, 8, 8), "int8", 0.1, 4, "NCHW", "q", "float32")
    with pytest.raises(error, match=f"^ModelInput.keywords: .*{says}"):
        model._replace(**fields).keywords()


# ---- the keywords


def model_of(shape, data_format="NHWC"):
    return ModelInput("x", shape, "int8", 0.5, 0, data_format, "x", "int8")


@pytest.mark.parametrize("shape, custom, block, channels, data_format, size", [
    ((1, 224, 200, 3), "NHWC", 1, 3, "NHWC", (224, 200)),
    ((1, 3, 224, 200), "NCHW", 1, 3, "NCHW", (224, 200)),
    ((1, 3, 224, 200), "NHWC", 1, 3, "NCHW", (224, 200)),  # a .tflite made from PyTorch
    ((1, 224, 200, 3), "NCHW", 1, 3, "NHWC", (224, 200)),  # an .onnx made from TensorFlow
    ((1, 3, 3, 3), "NCHW", 1, 3, "NCHW", (3, 3)),
    ((1, 20, 24, 192), "NHWC", 8, 3, "NHWC", (160, 192)),
    ((1, 192, 20, 24), "NCHW", 8, 3, "NCHW", (160, 192)),
    ((1, 20, 24, 24), "NHWC", (2, 4), 3, "NHWC", (40, 96)),
    ((1, 28, 28, 1), "NHWC", 1, 1, "NHWC", (28, 28)),
    ((1, None, None, 3), "NHWC", 1, 3, "NHWC", None),
    ((None, None, None, None), "NCHW", 1, 3, "NCHW", None),
])  # fmt: skip
def test_keywords(shape, custom, block, channels, data_format, size):
    keywords = model_of(shape, custom).keywords(block, channels)
    assert (keywords["data_format"], keywords.get("size")) == (data_format, size)


def test_the_layout_may_be_told():
    assert model_of((1, 3, 3, 3)).keywords(data_format="NCHW")["data_format"] == "NCHW"
    with pytest.raises(ValueError, match="224 in NCHW"):
        model_of((1, 224, 224, 3)).keywords(data_format="NCHW")


@pytest.mark.parametrize("arguments, error, says", [
    ({"block_size": 2}, ValueError, r"3 in NHWC or 224 in NCHW as its channels, not 12"),
    ({"block_size": 0}, ValueError, "block_size"),
    ({"block_size": 2.0}, TypeError, "block_size"),
    ({"channels": 4}, ValueError, "not 4"),
    ({"channels": None}, TypeError, "channels"),
    ({"data_format": "NCHW_VECT_C"}, ValueError, "data_format"),
])  # fmt: skip
def test_keywords_that_do_not_fit(arguments, error, says):
    with pytest.raises(error, match=says):
        model_of((1, 224, 224, 3)).keywords(**arguments)


def test_an_input_that_is_no_picture():
    with pytest.raises(ValueError, match=r"\[1, \?\] does not have four dimensions"):
        model_of((1, None)).keywords()


# ---- s2dq preprocess --model


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """main(argv) in tmp_path, where there is a picture -> (exit code, stdout, stderr)."""
    image = pytest.importorskip("PIL.Image")
    from s2dq.cli import main

    monkeypatch.chdir(tmp_path)
    y, x, c = np.mgrid[0:8, 0:6, 0:3]
    image.fromarray(((y * 37 + x * 11 + c * 83) % 256).astype(np.uint8)).save("frame.png")

    def call(*argv):
        code = main(["preprocess", "frame.png", "-o", "out", *map(str, argv)])
        return code, *capsys.readouterr()

    return call


def pixels():
    from PIL import Image

    return np.asarray(Image.open("frame.png"))


STEP = 2 / 255  # a model that takes -1..1


def assert_refused(result, *fragments):
    code, out, err = result
    assert (code, out) == (2, "")
    assert err.startswith("s2dq: error: ") and err.count("\n") == 1
    for fragment in fragments:
        assert fragment in err
    assert not Path("out").exists()


def test_model_fills_in_the_numbers(run, litert):
    path = litert(FRAME | {"scale": [STEP], "zero_point": [-1]})
    code, _, err = run("--model", path, "--mean", "0.5", "--std", "0.5")
    assert (code, err) == (0, "")
    by_hand = s2dq.Preprocessor(scale=STEP, zero_point=-1, mean=0.5, std=0.5)(pixels())
    np.testing.assert_array_equal(np.load("out/frame.npy"), by_hand, strict=True)

    recipe = json.loads(Path("out/frame.json").read_text())
    assert recipe["model"] == {"file": str(path), "input": "x", "tensor": "x"}
    assert recipe["preprocessor"]["size"] == [8, 6]
    again = s2dq.Preprocessor(**recipe["preprocessor"])(pixels())
    np.testing.assert_array_equal(again, by_hand, strict=True)


def test_model_of_onnx_gets_what_its_quantizer_writes(run, onnx_file):
    path = onnx_file("float32", [1, 3, 16, 12], QUANTIZE, scale=np.float32(1 / 255), zero=np.uint8(0))
    code, _, err = run("--model", path)
    assert (code, err) == (0, "")
    tensor = np.load("out/frame.npy")
    assert (tensor.shape, tensor.dtype) == ((1, 3, 16, 12), np.uint8)
    assert json.loads(Path("out/frame.json").read_text())["model"]["tensor"] == "q"


def test_model_behind_a_space_to_depth_stem(run, litert):
    path = litert(FRAME | {"shape": (1, 4, 3, 12), "scale": [1 / 255], "zero_point": [-128]})
    assert_refused(run("--model", path), "[1, 4, 3, 12]", "block_size 1")
    code, _, err = run("--model", path, "--block-size", "2")
    assert (code, err) == (0, "")
    by_hand = s2dq.reference.space_to_depth((pixels().astype(int) - 128).astype(np.int8)[None], 2)
    np.testing.assert_array_equal(np.load("out/frame.npy"), by_hand, strict=True)


def test_model_with_open_size_needs_a_size(run, litert):
    path = litert(FRAME | {"signature": (1, -1, 6, 3)})
    assert_refused(run("--model", path), "--size")
    assert_refused(run("--model", path, "--size", "8x8"), "8x8", "W 6")
    code, _, _ = run("--model", path, "--size", "6x10")
    assert code == 0
    assert np.load("out/frame.npy").shape == (1, 10, 6, 3)


@pytest.mark.parametrize("option, value, told", [
    ("--scale", "0.25", "0.5"),
    ("--zero-point", "0", "-3"),
    ("--dtype", "uint8", "int8"),
    ("--dtype", "float32", "int8"),
    ("--size", "8x6", "6x8"),
    ("--data-format", "NCHW", "8 in NCHW"),
    ("--data-format", "NCHW_VECT_C", "NHWC, NCHW"),
    ("--model-input", "y", "it has: x"),
])  # fmt: skip
def test_options_that_contradict_the_model(run, litert, option, value, told):
    assert_refused(run("--model", litert(FRAME), option, value), value, told)


def test_options_that_agree_with_the_model(run, litert):
    path = litert(FRAME | {"scale": [0.1]})  # as a float32; the option is a float64
    code, _, _ = run("--model", path, "--scale", "0.1", "--zero-point", "-3", "--dtype", "int8", "--size", "6x8",
                     "--data-format", "NHWC", "--model-input", "x")
    assert code == 0


def test_model_with_several_inputs(run, litert):
    path = litert(FRAME, FRAME | {"name": "mask", "shape": (1, 4)})
    assert_refused(run("--model", path), "x, mask")
    assert_refused(run("--model", path, "--model-input", "mask"), "four dimensions")
    assert run("--model", path, "--model-input", "x")[0] == 0


def test_integer_input_without_a_scale_takes_that_of_the_options(run, litert):
    path = litert({"name": "x", "shape": (1, 8, 6, 3), "type": "UINT8"})
    assert_refused(run("--model", path), "--scale")
    assert run("--model", path, "--scale", "1/255")[0] == 0
    np.testing.assert_array_equal(np.load("out/frame.npy")[0], pixels(), strict=True)


def test_float_input_has_no_scale(run, litert):
    path = litert({"name": "x", "shape": (1, 8, 6, 3), "type": "FLOAT32"})
    assert_refused(run("--model", path, "--scale", "0.25"), "--scale 0.25", "none")


def test_batches_of_several_are_warned_of(run, litert):
    code, _, err = run("--model", litert(FRAME | {"shape": (4, 8, 6, 3)}))
    assert code == 0
    assert "warning" in err and "batches of 4" in err


def test_absurd_sizes_are_refused(run, litert):
    assert_refused(run("--model", litert(FRAME | {"shape": (1, 2**20, 2**20, 3)})), "pixels")


def test_model_files_that_cannot_be_read(run, tmp_path):
    for name in ("missing.tflite", "missing.onnx"):
        code, out, err = run("--model", name)
        assert (code, out) == (1, "")
        assert name in err
    assert_refused(run("--model", "frame.png"), ".tflite or .onnx", "frame.png")
    assert_refused(run("--model-input", "x"), "--model")


@pytest.mark.parametrize("name, package, extra", [("m.tflite", "ai_edge_litert", "litert"), ("m.onnx", "onnx", "onnx")])
def test_a_missing_reader_is_named(tmp_path, name, package, extra):
    pytest.importorskip("PIL.Image")
    (tmp_path / name).touch()
    program = (
        f"import sys; sys.modules[{package!r}] = None; from s2dq.cli import main; "
        f"sys.exit(main(['preprocess', 'frame.png', '-o', 'out', '--model', {name!r}]))"
    )
    command = [sys.executable, "-P", "-c", program]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=180)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"s2dq[{extra}]" in done.stderr and done.stderr.count("\n") == 1


def test_readers_are_imported_only_when_they_are_used():
    program = (
        "import sys; import s2dq, s2dq.cli, s2dq.models; "
        "assert not {'onnx', 'ai_edge_litert', 'torch', 'PIL'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-P", "-c", program], check=True, timeout=180)

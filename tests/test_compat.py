"""The adapters without the systems they are named after: right results, their systems' rules, one good exception."""

import importlib
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import loops
import problems
import s2dq
from s2dq.compat import nnapi, onnx, openvino, tensorflow

MODES = {"DCR": "blocks_first", "CRD": "depth_first"}
X = np.arange(2 * 8 * 4 * 4, dtype=np.int8).reshape(2, 8, 4, 4)
Q = s2dq.QuantizedTensor(X, 0.5, -7)


# ---- results


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("to_depth", [True, False])
def test_onnx(rng, to_depth, mode):
    name = "space_to_depth" if to_depth else "depth_to_space"
    for _ in range(20):
        x, block = problems.depth(rng, to_depth, dtype=np.int16)
        expected = getattr(loops, name)(x, block, "NCHW", mode=mode)
        problems.same(getattr(onnx, name)(problems.strided(rng, x), block, mode), expected, (x.shape, block))
        if mode == "DCR":
            problems.same(getattr(onnx, name)(x, blocksize=block), expected, (x.shape, block))


@pytest.mark.parametrize("spatial", [1, 2, 3])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("to_depth", [True, False])
def test_openvino_depth(rng, to_depth, mode, spatial):
    name = "space_to_depth" if to_depth else "depth_to_space"
    for _ in range(6):
        x, block = problems.depth(rng, to_depth, spatial, np.int16, blocks=(1, 2, 3))
        expected = getattr(loops, name)(x, block, ("NCW", "NCHW", "NCDHW")[spatial - 1], mode=mode)
        problems.same(getattr(openvino, name)(problems.strided(rng, x), MODES[mode], block), expected, (x.shape, block))
    problems.same(getattr(openvino, name)(x, MODES[mode]), x, "a block of 1 by default")


@pytest.mark.parametrize("spatial", [4, 5, 6])
@pytest.mark.parametrize("mode", MODES)
def test_openvino_depth_with_more_axes_than_have_names(spatial, mode):
    """Every element by its own equation: the deep channel is the offsets in the block, and the channel."""
    shape = (2, 3, *(2 * (1 + i % 2) for i in range(spatial)))
    x = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    deep = openvino.space_to_depth(x, MODES[mode], 2)
    assert deep.shape == (2, 3 * 2**spatial, *(extent // 2 for extent in shape[2:]))
    for place in np.ndindex(shape):
        n, c, *pixel = place
        offset = int("".join(str(p % 2) for p in pixel), 2)
        channel = offset * 3 + c if mode == "DCR" else c * 2**spatial + offset
        assert deep[(n, channel, *(p // 2 for p in pixel))] == x[place], place
    problems.same(openvino.depth_to_space(deep, MODES[mode], 2), x, shape)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_batch_operators(rng, dims):
    for _ in range(10):
        x, block, pads = problems.space_to_batch(rng, dims, 0, np.int16)
        begin, end = ([0, *column] for column in zip(*pads, strict=True))
        expected = loops.space_to_batch_nd(x, block, pads)
        x_strided = problems.strided(rng, x)
        problems.same(openvino.space_to_batch(x_strided, np.uint8([1, *block]), begin, end), expected, (block, pads))
        problems.same(tensorflow.space_to_batch_nd(x_strided, block, pads), expected, (block, pads))
        problems.same(tensorflow.space_to_batch(x_strided, block, np.int32(pads)), expected, (block, pads))
        x, block, crops = problems.batch_to_space(rng, dims, 0, np.int16)
        begin, end = ([0, *column] for column in zip(*crops, strict=True))
        expected = loops.batch_to_space_nd(x, block, crops)
        x_strided = problems.strided(rng, x)
        problems.same(openvino.batch_to_space(x_strided, [1, *block], begin, end), expected, (block, crops))
        problems.same(tensorflow.batch_to_space_nd(x_strided, block, crops), expected, (block, crops))
        problems.same(tensorflow.batch_to_space(x_strided, np.int64(block), crops), expected, (block, crops))


@pytest.mark.parametrize("dtype", ["float16", "float32", "int8", "uint8"])
@pytest.mark.parametrize("nchw", [False, True])
def test_nnapi(rng, dtype, nchw):
    layout = "NCHW" if nchw else "NHWC"
    for _ in range(8):
        x, block = problems.depth(rng, True, dtype=dtype, channels_last=not nchw)
        problems.same(nnapi.space_to_depth(x, block, nchw), loops.space_to_depth(x, block, layout), (x.shape, block))
        x, block = problems.depth(rng, False, dtype=dtype, channels_last=not nchw)
        problems.same(nnapi.depth_to_space(x, block, nchw), loops.depth_to_space(x, block, layout), (x.shape, block))
        x, block, pads = problems.space_to_batch(rng, 2, 1, dtype)
        deep = loops.space_to_batch_nd(x, block, pads)
        order = (0, 3, 1, 2) if nchw else (0, 1, 2, 3)
        problems.same(nnapi.space_to_batch_nd(x.transpose(order), block, pads, nchw), deep.transpose(order), block)
        whole = loops.batch_to_space_nd(deep, block, [[0, 0], [0, 0]])
        problems.same(nnapi.batch_to_space_nd(deep.transpose(order), block, nchw), whole.transpose(order), block)


def test_nnapi_keeps_scale_and_zero_point():
    deep = nnapi.space_to_depth(Q, 2, nchw=True)
    assert deep == s2dq.QuantizedTensor(loops.space_to_depth(X, 2, "NCHW"), 0.5, -7)
    assert nnapi.depth_to_space(deep, 2, nchw=True) == Q
    batch = nnapi.space_to_batch_nd(Q, [2, 2], [[1, 1], [0, 0]], nchw=True)
    assert batch.shape == (8, 8, 3, 2) and (batch.scale, batch.zero_point) == (0.5, -7)
    assert (batch.values[:2, :, 0] == -7).all(), "padding holds the zero point"
    assert nnapi.batch_to_space_nd(nnapi.space_to_batch_nd(Q, [2, 2], [[0, 0]] * 2), [2, 2]) == Q


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW", "NCHW_VECT_C"])
def test_tensorflow_depth(rng, data_format):
    for _ in range(8):
        words = 4 if data_format == "NCHW_VECT_C" else 0
        settings = {"dtype": np.int8, "channels_last": data_format == "NHWC", "blocks": (2, 3), "words": words}
        x, block = problems.depth(rng, True, **settings)
        expected = loops.space_to_depth(x, block, data_format)
        problems.same(tensorflow.space_to_depth(x, block, data_format, name="a"), expected, (x.shape, block))
        problems.same(tensorflow.v1.space_to_depth(x, block, "a", data_format), expected, (x.shape, block))
        x, block = problems.depth(rng, False, **settings)
        expected = loops.depth_to_space(x, block, data_format)
        problems.same(tensorflow.depth_to_space(x, block, data_format, name="a"), expected, (x.shape, block))
        problems.same(tensorflow.v1.depth_to_space(x, block, "a", data_format), expected, (x.shape, block))


def test_tensorflow_1_batch(rng):
    x = problems.values(rng, (2, 4, 3, 2), np.int16)
    pads = [[1, 1], [0, 0]]
    batch = loops.space_to_batch_nd(x, [3, 3], [[1, 1], [0, 0]])
    for result in (tensorflow.v1.space_to_batch(x, pads, 3), tensorflow.v1.space_to_batch(x, pads, None, "a", 3),
                   tensorflow.v1.space_to_batch(x, pads, block_shape=3)):
        problems.same(result, batch, pads)
    problems.same(tensorflow.v1.batch_to_space(batch, pads, 3), x, pads)
    problems.same(tensorflow.v1.batch_to_space(batch, pads, None, block_shape=np.int64(3)), x, pads)
    for name in ("space_to_batch_nd", "batch_to_space_nd", "required_space_to_batch_paddings"):
        assert getattr(tensorflow.v1, name) is getattr(tensorflow, name)


def test_required_paddings(rng):
    for _ in range(50):
        dims = int(rng.integers(0, 4))
        extents, block, base = rng.integers(0, 20, dims), rng.integers(1, 6, dims), rng.integers(0, 5, (dims, 2))
        paddings, crops = tensorflow.required_space_to_batch_paddings(extents, block, base)
        assert paddings.dtype == crops.dtype == np.int32 and paddings.shape == crops.shape == (dims, 2)
        for extent, b, (start, end), padding, crop in zip(extents, block, base, paddings, crops, strict=True):
            fitting = next(e for e in range(b) if (extent + start + end + e) % b == 0)
            assert padding.tolist() == [start, end + fitting] and crop.tolist() == [0, fitting]
        without, _ = tensorflow.required_space_to_batch_paddings(extents.tolist(), block.tolist())
        expected, _ = tensorflow.required_space_to_batch_paddings(extents, block, np.zeros((dims, 2), int))
        assert without.tolist() == expected.tolist()


def test_onnx_types():
    for dtype in ("bool", "float64", "complex128", "U3", "O", ml_dtypes.bfloat16, np.dtypes.StringDType()):
        x = np.arange(8).astype(dtype).reshape(1, 2, 2, 2)
        problems.same(onnx.depth_to_space(onnx.space_to_depth(x, 2), 2), x, dtype)
    for dtype in ("M8[s]", "V3", np.longdouble, ml_dtypes.float8_e5m2, ml_dtypes.int4):
        with pytest.raises(TypeError, match="ONNX"):
            onnx.space_to_depth(np.zeros((1, 2, 2, 2), dtype), 2)


# ---- refusals

BATCH = np.zeros((4, 2, 2, 1), np.int8)
REFUSED = [
    (onnx, "space_to_depth", (X, 3), {}, ValueError, "height 4 is not divisible"),
    (onnx, "space_to_depth", (X, 0), {}, ValueError, "blocksize must be at least 1"),
    (onnx, "space_to_depth", (X, 2.0), {}, TypeError, "blocksize must be an integer"),
    (onnx, "space_to_depth", (X, True), {}, TypeError, "blocksize must be an integer"),
    (onnx, "space_to_depth", (X, (2, 2)), {}, TypeError, "blocksize must be an integer"),
    (onnx, "space_to_depth", (X, 2, "focus"), {}, ValueError, "mode must be one of DCR, CRD"),
    (onnx, "space_to_depth", (X, 2, None), {}, TypeError, "mode must be a str"),
    (onnx, "space_to_depth", (X[0], 2), {}, ValueError, "x must have 4 dimensions"),
    (onnx, "space_to_depth", (Q, 2), {}, TypeError, "give x.values"),
    (onnx, "depth_to_space", (X[:, :3], 2), {}, ValueError, "channels 3 is not divisible"),
    (onnx, "depth_to_space", (object(), 2), {}, TypeError, "x must be an array"),
    (openvino, "space_to_depth", (X, "DCR", 2), {}, ValueError, "mode must be one of blocks_first, depth_first"),
    (openvino, "space_to_depth", (X, 2, "blocks_first"), {}, TypeError, "mode must be a str"),
    (openvino, "space_to_depth", (X[0, 0], "blocks_first", 2), {}, ValueError, "data must have at least 3"),
    (openvino, "space_to_depth", (X, "blocks_first", -1), {}, ValueError, "block_size must be at least 1"),
    (openvino, "space_to_depth", (np.zeros((1, 1, 2, 2, 2, 3)), "blocks_first", 2), {}, ValueError,
     "spatial extent 4 3 is not divisible"),
    (openvino, "depth_to_space", (Q, "blocks_first", 2), {}, TypeError, "give data.values"),
    (openvino, "space_to_batch", (X, [2, 1, 1, 1], [0] * 4, [0] * 4), {}, ValueError, r"block_shape\[0\] must be 1"),
    (openvino, "space_to_batch", (X, [1] * 4, [1, 0, 0, 0], [0] * 4), {}, ValueError, r"pads_begin\[0\] must be 0"),
    (openvino, "space_to_batch", (X, [1] * 4, [0] * 4, [1, 0, 0, 0]), {}, ValueError, r"pads_end\[0\] must be 0"),
    (openvino, "space_to_batch", (X, [1] * 4, [0, -1, 0, 0], [0] * 4), {}, ValueError, r"pads_begin\[1\] must be at"),
    (openvino, "space_to_batch", (X, [1] * 3, [0] * 4, [0] * 4), {}, ValueError, "block_shape must be 4 integers"),
    (openvino, "space_to_batch", (X, [1.0] * 4, [0] * 4, [0] * 4), {}, TypeError, r"block_shape\[0\]"),
    (openvino, "space_to_batch", (X, 2, [0] * 4, [0] * 4), {}, TypeError, "block_shape must be 4 integers"),
    (openvino, "space_to_batch", (np.zeros(3), [1], [0], [0]), {}, ValueError, "at least 2 dimensions"),
    (openvino, "batch_to_space", (BATCH, [1, 3, 1, 1], [0] * 4, [0] * 4), {}, ValueError, "batch 4 is not divisible"),
    (openvino, "batch_to_space", (BATCH, [1, 2, 2, 1], [0, 3, 0, 0], [0, 2, 0, 0]), {}, ValueError, "crops"),
    (openvino, "batch_to_space", (BATCH, [1] * 4, [0, -1, 0, 0], [0] * 4), {}, ValueError, r"crops_begin\[1\]"),
    (nnapi, "space_to_depth", (X.astype(np.int16), 2), {}, TypeError, "NNAPI's types"),
    (nnapi, "space_to_depth", (X.astype(">f4"), 2), {}, TypeError, "NNAPI's types"),
    (nnapi, "space_to_depth", (s2dq.QuantizedTensor(X.astype(np.int16), 1.0, 0), 2), {}, TypeError, "NNAPI's types"),
    (nnapi, "space_to_depth", (s2dq.QuantizedTensor(X, np.ones(8), np.zeros(8, int), axis=1), 2), {}, TypeError,
     "one scale"),
    (nnapi, "space_to_depth", (X[None], 2), {}, ValueError, "input must have 4 dimensions"),
    (nnapi, "space_to_depth", (X, 2, 1), {}, TypeError, "nchw must be a bool"),
    (nnapi, "depth_to_space", (X, 3), {}, ValueError, "channels 4 is not divisible"),
    (nnapi, "space_to_batch_nd", (X, [2], [[0, 0]]), {}, ValueError, "block_shape must be two integers"),
    (nnapi, "space_to_batch_nd", (X, [2, 2], None), {}, TypeError, "paddings must be"),
    (nnapi, "space_to_batch_nd", (X, [2, 2], [[0, 0]]), {}, ValueError, r"paddings must have shape \[2, 2\]"),
    (nnapi, "space_to_batch_nd", (X, [2, 2], [[0, -1], [0, 0]]), {}, ValueError, "at least 0"),
    (nnapi, "batch_to_space_nd", (X, [3, 1]), {}, ValueError, "batch 2 is not divisible"),
    (nnapi, "batch_to_space_nd", (X, [0, 1]), {}, ValueError, r"block_shape\[0\] must be at least 1"),
    (tensorflow, "space_to_depth", (X, 1), {}, ValueError, "block_size must be at least 2"),
    (tensorflow, "depth_to_space", (X, 1), {}, ValueError, "block_size must be at least 2"),
    (tensorflow, "space_to_depth", (X, 2, "NCW"), {}, ValueError, "data_format must be one of NHWC, NCHW, NCHW_VECT_C"),
    (tensorflow, "space_to_depth", (X, 2, "NCHW_VECT_C"), {}, ValueError, "input must have 5 dimensions"),
    (tensorflow, "space_to_depth", (X[None].astype(np.int16), 2, "NCHW_VECT_C"), {}, TypeError, "8-bit"),
    (tensorflow, "space_to_depth", (X, 2), {"name": 3}, TypeError, "name must be a str or None"),
    (tensorflow, "space_to_depth", (Q, 2), {}, TypeError, "give input.values"),
    (tensorflow, "space_to_batch", (X, 2, [[0, 0]]), {}, TypeError, "block_shape"),
    (tensorflow, "space_to_batch", (X, [2], [[0, 0], [0, 0]]), {}, ValueError, r"paddings must have shape \[1, 2\]"),
    (tensorflow, "space_to_batch_nd", (X[0, 0, 0], [2], [[0, 0]]), {}, ValueError, "at least 2 dimensions"),
    (tensorflow, "batch_to_space", (X, True, [[0, 0]] * 2), {}, TypeError, "block_shape"),
    (tensorflow, "batch_to_space_nd", (BATCH, [2, 2], [[3, 2], [0, 0]]), {}, ValueError, "crops"),
    (tensorflow.v1, "space_to_batch", (X, [[0, 0]] * 2), {}, TypeError, "block_size must be an integer, not None"),
    (tensorflow.v1, "space_to_batch", (X, [[0, 0]] * 2, 2), {"block_shape": 2}, ValueError, "are the same"),
    (tensorflow.v1, "space_to_batch", (X, [[0, 0]] * 2, [2, 2]), {}, TypeError, "block_size must be an integer"),
    (tensorflow.v1, "space_to_batch", (X[0], [[0, 0]] * 2, 2), {}, ValueError, "input must have 4 dimensions"),
    (tensorflow.v1, "batch_to_space", (BATCH, [[0, 0]] * 2, 3), {}, ValueError, "batch 4 is not divisible"),
    (tensorflow, "required_space_to_batch_paddings", ([4], [2, 2]), {}, ValueError, "input_shape must have 2 entries"),
    (tensorflow, "required_space_to_batch_paddings", ([4], [0]), {}, ValueError, r"block_shape\[0\] must be at least"),
    (tensorflow, "required_space_to_batch_paddings", ([-4], [1]), {}, ValueError, r"input_shape\[0\] must be at least"),
    (tensorflow, "required_space_to_batch_paddings", ([4], [2], [[-1, 0]]), {}, ValueError, "at least 0"),
    (tensorflow, "required_space_to_batch_paddings", ([1], [2**31 + 1]), {}, ValueError, "int32"),
    (tensorflow, "required_space_to_batch_paddings", ([4.0], [2]), {}, TypeError, r"input_shape\[0\]"),
]


@pytest.mark.parametrize(("module", "name", "arguments", "keywords", "kind", "text"), REFUSED)
def test_refusals(module, name, arguments, keywords, kind, text):
    with pytest.raises(kind, match=text) as caught:
        getattr(module, name)(*arguments, **keywords)
    assert type(caught.value) is kind
    told, _, rest = str(caught.value).partition(": ")
    assert told == f"{module.__name__.removeprefix('s2dq.')}.{name}" and rest


ONES = np.zeros((2, 4, 6, 3), np.int8)  # (N, H, W, C), or (N, C, H, W) of other sizes
FOUR = np.zeros((4, 2, 2, 3), np.int8)
NAMED = [
    (onnx.space_to_depth, (X, 3), "height 4 is not divisible by blocksize 3 (x.shape=(2, 8, 4, 4))"),
    (onnx.depth_to_space, (X, 3), "number of channels 8 is not divisible by blocksize 3 (block area 9) "
                                  "(x.shape=(2, 8, 4, 4))"),
    (openvino.space_to_depth, (X, "blocks_first", 3), "height 4 is not divisible by block_size 3 "
                                                      "(data.shape=(2, 8, 4, 4))"),
    (openvino.space_to_batch, (ONES, [1, 2, 1, 2], [0] * 4, [0, 0, 0, 2]),
     "axis 3 of extent 3 padded to 5 is not divisible by block_shape[3] 2 "
     "(data.shape=(2, 4, 6, 3), block_shape=(1, 2, 1, 2))"),
    (openvino.batch_to_space, (FOUR, [1, 3, 1, 1], [0] * 4, [0] * 4),
     "batch 4 is not divisible by block_shape (1, 3, 1, 1) (block area 3) "
     "(data.shape=(4, 2, 2, 3), block_shape=(1, 3, 1, 1))"),
    (openvino.batch_to_space, (FOUR, [1, 1, 2, 2], [0, 0, 3, 0], [0, 0, 2, 0]),
     "crops_begin[2] 3 and crops_end[2] 2 are larger than the extent 4 of axis 2 they are taken from "
     "(data.shape=(4, 2, 2, 3), block_shape=(1, 1, 2, 2))"),
    (nnapi.space_to_depth, (X, 3, True), "height 4 is not divisible by block_size 3 (input.shape=(2, 8, 4, 4))"),
    (nnapi.space_to_batch_nd, (ONES, [1, 4], [[0, 0]] * 2),
     "axis 2 of extent 6 is not divisible by block_shape[1] 4 (input.shape=(2, 4, 6, 3), block_shape=(1, 4))"),
    (nnapi.space_to_batch_nd, (ONES, [1, 2], [[0, 0]] * 2, True),
     "axis 3 of extent 3 is not divisible by block_shape[1] 2 (input.shape=(2, 4, 6, 3), block_shape=(1, 2))"),
    (nnapi.batch_to_space_nd, (FOUR, [3, 1], True),
     "batch 4 is not divisible by block_shape (3, 1) (block area 3) (input.shape=(4, 2, 2, 3), block_shape=(3, 1))"),
    (tensorflow.space_to_depth, (X, 3), "height 8 is not divisible by block_size 3 "
                                         "(input.shape=(2, 8, 4, 4), data_format='NHWC')"),
    (tensorflow.space_to_depth, (X[None].astype(np.int16), 2, "NCHW_VECT_C"),
     "input must have an 8-bit dtype where words go in and words come out, not int16 "
     "(input.shape=(1, 2, 8, 4, 4), data_format='NCHW_VECT_C')"),
    (tensorflow.batch_to_space, (FOUR, [2, 2], [[0, 0], [3, 2]]),
     "crops[1] [3, 2] are larger than the extent 4 of axis 2 they are taken from "
     "(input.shape=(4, 2, 2, 3), block_shape=(2, 2))"),
    (tensorflow.v1.space_to_batch, (ONES, [[0, 0], [1, 0]], 2),
     "axis 2 of extent 6 padded to 7 is not divisible by block_size 2 (input.shape=(2, 4, 6, 3), block_size=2)"),
    (tensorflow.v1.batch_to_space, (FOUR, [[0, 0]] * 2, None, None, 3),
     "batch 4 is not divisible by block_shape 3 (block area 9) (input.shape=(4, 2, 2, 3), block_shape=3)"),
]


@pytest.mark.parametrize(("function", "arguments", "text"), NAMED)
def test_messages_speak_of_the_callers_own_arguments(function, arguments, text):
    """What is found out by the operators is told in the names, values and indices that the caller has given."""
    with pytest.raises((TypeError, ValueError)) as caught:
        function(*arguments)
    assert str(caught.value).partition(": ")[2] == text


def test_what_the_systems_take_besides():
    deep = s2dq.space_to_depth(X, 2, "NCHW", mode="CRD")
    problems.same(openvino.space_to_depth(X, "DEPTH_FIRST", 2), deep, "capitals")
    problems.same(openvino.depth_to_space(deep, "Depth_First", 2), X, "capitals")
    problems.same(tensorflow.space_to_depth(X, 2, None), s2dq.space_to_depth(X, 2), "no format")
    problems.same(tensorflow.v1.depth_to_space(X, 2, data_format=None), s2dq.depth_to_space(X, 2), "no format")


class DeviceTensor:
    """A tensor on a CUDA device: its memory must not be asked for."""

    def __dlpack__(self, **kwargs):
        raise AssertionError("the memory of a device was asked for")

    def __dlpack_device__(self):
        return 2, 0


class CpuTensor(DeviceTensor):
    """DLPack and nothing else."""

    def __dlpack__(self, **kwargs):
        return X.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return 1, 0


CALLS = {
    onnx: lambda x: onnx.space_to_depth(x, 2),
    openvino: lambda x: openvino.space_to_depth(x, "blocks_first", 2),
    nnapi: lambda x: nnapi.space_to_depth(x, 2, nchw=True),
    tensorflow: lambda x: tensorflow.space_to_depth(x, 2, "NCHW"),
    tensorflow.v1: lambda x: tensorflow.v1.space_to_depth(x, 2, None, "NCHW"),
}


@pytest.mark.parametrize("module", CALLS)
def test_tensors_of_other_libraries_come_in_and_those_on_devices_do_not(module):
    expected = s2dq.space_to_depth(X, 2, "NCHW")
    for x in (X, memoryview(X), CpuTensor()):
        problems.same(CALLS[module](x), expected, type(x))
    with pytest.raises(TypeError, match=r"(x|input|data) must be in CPU memory, not on DLPack device 2"):
        CALLS[module](DeviceTensor())


def test_refusals_cover_every_function():
    public = {(module, name) for module in (onnx, openvino, nnapi, tensorflow) for name in module.__all__
              if name not in ("v1", "space_to_batch_nd", "batch_to_space_nd") or module is nnapi}
    assert public <= {(module, name) for module, name, *_ in REFUSED}


# ---- the modules


def test_adapters_are_thin():
    """They import numpy and s2dq, and loading them all loads no other system."""
    code = """
import sys
import s2dq
for name in ("nnapi", "onnx", "openvino", "tensorflow"):
    getattr(s2dq.compat, name)
print(*sorted({name.partition(".")[0] for name in sys.modules}
              & {"onnx", "openvino", "tensorflow", "torch", "dask", "jax", "ai_edge_litert"}))
"""
    ran = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "", ran.stdout


def test_names():
    assert set(s2dq.compat.__all__) == {"nnapi", "onnx", "openvino", "tensorflow", "torch"}
    assert dir(s2dq.compat) == sorted(s2dq.compat.__all__)
    assert importlib.import_module("s2dq.compat.tensorflow.v1") is tensorflow.v1
    for module in (s2dq.compat, onnx):
        with pytest.raises(AttributeError, match="no attribute 'nothing'"):
            _ = module.nothing

"""Small cases whose answer can be read: from the pages of the systems that define the operators, or by hand."""

import numpy as np
import pytest

import loops
import s2dq
import s2dq.reference

# The 4x4 picture of the TensorFlow pages, numbered block by block for the depth operators, row by row for the
# batch operators.
BY_BLOCKS = [[[[1], [2], [5], [6]], [[3], [4], [7], [8]], [[9], [10], [13], [14]], [[11], [12], [15], [16]]]]
BY_ROWS = [[[[1], [2], [3], [4]], [[5], [6], [7], [8]], [[9], [10], [11], [12]], [[13], [14], [15], [16]]]]

# The DepthToSpace examples of ONNX: eight channels of 2x3.
ONNX_DEPTH = [[[[0, 1, 2], [3, 4, 5]], [[9, 10, 11], [12, 13, 14]], [[18, 19, 20], [21, 22, 23]],
               [[27, 28, 29], [30, 31, 32]], [[36, 37, 38], [39, 40, 41]], [[45, 46, 47], [48, 49, 50]],
               [[54, 55, 56], [57, 58, 59]], [[63, 64, 65], [66, 67, 68]]]]
ONNX_SPACE = [[[[0, 6, 1, 7, 2, 8], [12, 18, 13, 19, 14, 20], [3, 9, 4, 10, 5, 11], [15, 21, 16, 22, 17, 23]]]]

ZERO_TO_SEVEN = [[[[[0, 1], [2, 3]], [[4, 5], [6, 7]]]]]  # NCDHW, one channel, 2x2x2

# name, operator, x, arguments, result
DEPTH_CASES = [
    ("tensorflow 2x2x1", "space_to_depth", [[[[1], [2]], [[3], [4]]]], {"block_size": 2}, [[[[1, 2, 3, 4]]]]),
    ("tensorflow 2x2x3", "space_to_depth", [[[[1, 2, 3], [4, 5, 6]], [[7, 8, 9], [10, 11, 12]]]],
     {"block_size": 2}, [[[[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]]]]),
    ("tensorflow 4x4x1", "space_to_depth", BY_BLOCKS, {"block_size": 2},
     [[[[1, 2, 3, 4], [5, 6, 7, 8]], [[9, 10, 11, 12], [13, 14, 15, 16]]]]),
    ("onnx DCR", "depth_to_space", ONNX_DEPTH, {"block_size": 2, "data_format": "NCHW", "mode": "DCR"},
     [[[[0, 18, 1, 19, 2, 20], [36, 54, 37, 55, 38, 56], [3, 21, 4, 22, 5, 23], [39, 57, 40, 58, 41, 59]],
       [[9, 27, 10, 28, 11, 29], [45, 63, 46, 64, 47, 65], [12, 30, 13, 31, 14, 32],
        [48, 66, 49, 67, 50, 68]]]]),
    ("onnx CRD", "depth_to_space", ONNX_DEPTH, {"block_size": 2, "data_format": "NCHW", "mode": "CRD"},
     [[[[0, 9, 1, 10, 2, 11], [18, 27, 19, 28, 20, 29], [3, 12, 4, 13, 5, 14], [21, 30, 22, 31, 23, 32]],
       [[36, 45, 37, 46, 38, 47], [54, 63, 55, 64, 56, 65], [39, 48, 40, 49, 41, 50],
        [57, 66, 58, 67, 59, 68]]]]),
    ("onnx SpaceToDepth", "space_to_depth", ONNX_SPACE, {"block_size": 2, "data_format": "NCHW"},
     [[[[0, 1, 2], [3, 4, 5]], [[6, 7, 8], [9, 10, 11]], [[12, 13, 14], [15, 16, 17]],
       [[18, 19, 20], [21, 22, 23]]]]),
    ("pytorch pixel_unshuffle", "space_to_depth", [[[[1, 2], [3, 4]], [[5, 6], [7, 8]]]],
     {"block_size": 2, "data_format": "NCHW", "mode": "CRD"},
     [[[[1]], [[2]], [[3]], [[4]], [[5]], [[6]], [[7]], [[8]]]]),
    ("the same in DCR", "space_to_depth", [[[[1, 2], [3, 4]], [[5, 6], [7, 8]]]],
     {"block_size": 2, "data_format": "NCHW", "mode": "DCR"},
     [[[[1]], [[5]], [[2]], [[6]], [[3]], [[7]], [[4]], [[8]]]]),
    ("pytorch pixel_shuffle", "depth_to_space", [[[[1]], [[2]], [[3]], [[4]], [[5]], [[6]], [[7]], [[8]]]],
     {"block_size": 2, "data_format": "NCHW", "mode": "CRD"}, [[[[1, 2], [3, 4]], [[5, 6], [7, 8]]]]),
    ("yolov5 focus", "space_to_depth", [[[[1, 2], [3, 4], [5, 6], [7, 8]], [[9, 10], [11, 12], [13, 14], [15, 16]]]],
     {"block_size": 2, "mode": "focus"}, [[[[1, 2, 9, 10, 3, 4, 11, 12], [5, 6, 13, 14, 7, 8, 15, 16]]]]),
    ("CRD channels last", "space_to_depth", [[[[1, 2], [3, 4]], [[5, 6], [7, 8]]]],
     {"block_size": 2, "mode": "CRD"}, [[[[1, 3, 5, 7, 2, 4, 6, 8]]]]),
    ("rectangular block", "space_to_depth", [[[[0], [1], [2]], [[3], [4], [5]]]], {"block_size": (2, 3)},
     [[[[0, 1, 2, 3, 4, 5]]]]),
    ("rectangular focus", "space_to_depth", [[[[0], [1], [2]], [[3], [4], [5]]]],
     {"block_size": (2, 3), "mode": "focus"}, [[[[0, 3, 1, 4, 2, 5]]]]),
    ("one dimension", "space_to_depth", [[[1, 2], [3, 4], [5, 6], [7, 8]]], {"block_size": 2, "data_format": "NWC"},
     [[[1, 2, 3, 4], [5, 6, 7, 8]]]),
    ("one dimension, CRD", "space_to_depth", [[[1, 3, 5, 7], [2, 4, 6, 8]]],
     {"block_size": 2, "data_format": "NCW", "mode": "CRD"}, [[[1, 5], [3, 7], [2, 6], [4, 8]]]),
    ("three dimensions", "space_to_depth", ZERO_TO_SEVEN, {"block_size": 2, "data_format": "NCDHW"},
     [[[[[0]]], [[[1]]], [[[2]]], [[[3]]], [[[4]]], [[[5]]], [[[6]]], [[[7]]]]]),
    ("three dimensions, focus", "space_to_depth", ZERO_TO_SEVEN,
     {"block_size": 2, "data_format": "NCDHW", "mode": "focus"},
     [[[[[0]]], [[[4]]], [[[2]]], [[[6]]], [[[1]]], [[[5]]], [[[3]]], [[[7]]]]]),
    ("frames to words", "space_to_depth", [[[[1, 2, 3], [4, 5, 6]], [[7, 8, 9], [10, 11, 12]]]],
     {"block_size": 2, "out_format": "NCHW_VECT_C"}, [[[[[1, 2, 3, 4]]], [[[5, 6, 7, 8]]], [[[9, 10, 11, 12]]]]]),
    ("words to words keep their fillers", "space_to_depth",
     [[[[[1, 2, 3, 0], [4, 5, 6, 0]], [[7, 8, 9, 0], [10, 11, 12, 0]]]]],
     {"block_size": 2, "data_format": "NCHW_VECT_C"},
     [[[[[1, 2, 3, 0]]], [[[4, 5, 6, 0]]], [[[7, 8, 9, 0]]], [[[10, 11, 12, 0]]]]]),
    ("words of three channels to words", "space_to_depth",
     [[[[[1, 2, 3, 99], [4, 5, 6, 99]], [[7, 8, 9, 99], [10, 11, 12, 99]]]]],
     {"block_size": 2, "data_format": "NCHW_VECT_C", "channels": 3},
     [[[[[1, 2, 3, 4]]], [[[5, 6, 7, 8]]], [[[9, 10, 11, 12]]]]]),
    ("tensorflow words", "depth_to_space",
     [[[[[1, 2, 3, 4]]], [[[5, 6, 7, 8]]], [[[9, 10, 11, 12]]], [[[13, 14, 15, 16]]]]],
     {"block_size": 2, "data_format": "NCHW_VECT_C"},
     [[[[[1, 2, 3, 4], [5, 6, 7, 8]], [[9, 10, 11, 12], [13, 14, 15, 16]]]]]),
    ("padded", "space_to_depth", [[[[1], [2]]]], {"block_size": 2, "paddings": [[1, 0], [0, 2]], "pad_value": 9},
     [[[[9, 9, 1, 2], [9, 9, 9, 9]]]]),
    ("padded words have raw spare lanes", "space_to_depth", [[[[1, 2, 3]]]],
     {"block_size": 1, "paddings": [[0, 1], [0, 0]], "pad_value": 9, "out_format": "NCHW_VECT_C"},
     [[[[[1, 2, 3, 0]], [[9, 9, 9, 0]]]]]),
    ("cropped", "depth_to_space", [[[[1, 2, 3, 4], [5, 6, 7, 8]]]], {"block_size": 2, "crops": [[1, 0], [1, 0]]},
     [[[[4], [7], [8]]]]),
    ("block of one", "space_to_depth", [[[[1, 2]]]], {"block_size": 1}, [[[[1, 2]]]]),
]

BATCH_CASES = [
    ("tensorflow 1", "space_to_batch_nd", [[[[1], [2]], [[3], [4]]]],
     {"block_shape": [2, 2], "paddings": [[0, 0], [0, 0]]}, [[[[1]]], [[[2]]], [[[3]]], [[[4]]]]),
    ("tensorflow 2", "space_to_batch_nd", [[[[1, 2, 3], [4, 5, 6]], [[7, 8, 9], [10, 11, 12]]]],
     {"block_shape": [2, 2], "paddings": [[0, 0], [0, 0]]},
     [[[[1, 2, 3]]], [[[4, 5, 6]]], [[[7, 8, 9]]], [[[10, 11, 12]]]]),
    ("tensorflow 3", "space_to_batch_nd", BY_ROWS, {"block_shape": [2, 2], "paddings": [[0, 0], [0, 0]]},
     [[[[1], [3]], [[9], [11]]], [[[2], [4]], [[10], [12]]], [[[5], [7]], [[13], [15]]],
      [[[6], [8]], [[14], [16]]]]),
    ("tensorflow 4", "space_to_batch_nd",
     [[[[1], [2], [3], [4]], [[5], [6], [7], [8]]], [[[9], [10], [11], [12]], [[13], [14], [15], [16]]]],
     {"block_shape": [2, 2], "paddings": [[0, 0], [2, 0]]},
     [[[[0], [1], [3]]], [[[0], [9], [11]]], [[[0], [2], [4]]], [[[0], [10], [12]]],
      [[[0], [5], [7]]], [[[0], [13], [15]]], [[[0], [6], [8]]], [[[0], [14], [16]]]]),
    ("tflite, padding", "space_to_batch_nd",
     [[[[1], [2]], [[3], [4]], [[5], [6]], [[7], [8]], [[9], [10]]]],
     {"block_shape": [3, 2], "paddings": [[1, 0], [2, 0]]},
     [[[[0], [0]], [[0], [5]]], [[[0], [0]], [[0], [6]]], [[[0], [1]], [[0], [7]]],
      [[[0], [2]], [[0], [8]]], [[[0], [3]], [[0], [9]]], [[[0], [4]], [[0], [10]]]]),
    ("tflite, padding with a zero point", "space_to_batch_nd",
     [[[[1], [2]], [[3], [4]], [[5], [6]], [[7], [8]], [[9], [10]]]],
     {"block_shape": [3, 2], "paddings": [[1, 0], [2, 0]], "pad_value": 77},
     [[[[77], [77]], [[77], [5]]], [[[77], [77]], [[77], [6]]], [[[77], [1]], [[77], [7]]],
      [[[77], [2]], [[77], [8]]], [[[77], [3]], [[77], [9]]], [[[77], [4]], [[77], [10]]]]),
    ("the batch is the low part", "space_to_batch_nd", [[1, 2], [3, 4], [5, 6]],
     {"block_shape": [2], "paddings": [[0, 0]]}, [[1], [3], [5], [2], [4], [6]]),
    ("no block dims", "space_to_batch_nd", [[1, 2], [3, 4]],
     {"block_shape": [], "paddings": np.zeros((0, 2), int)}, [[1, 2], [3, 4]]),
    ("tensorflow back, cropped", "batch_to_space_nd",
     [[[[0], [1], [3]]], [[[0], [9], [11]]], [[[0], [2], [4]]], [[[0], [10], [12]]],
      [[[0], [5], [7]]], [[[0], [13], [15]]], [[[0], [6], [8]]], [[[0], [14], [16]]]],
     {"block_shape": [2, 2], "crops": [[0, 0], [2, 0]]},
     [[[[1], [2], [3], [4]], [[5], [6], [7], [8]]], [[[9], [10], [11], [12]], [[13], [14], [15], [16]]]]),
    ("rest before nothing", "batch_to_space_nd", [[1], [3], [5], [2], [4], [6]],
     {"block_shape": [2], "crops": [[0, 0]]}, [[1, 2], [3, 4], [5, 6]]),
    ("one row cropped from each end", "batch_to_space_nd", [[1, 3], [2, 4]],
     {"block_shape": [2], "crops": [[1, 1]]}, [[2, 3]]),
]

PACK_CASES = [
    ("ragged", "pack_vect_c", [[[[0, 1]], [[10, 11]], [[20, 21]], [[30, 31]], [[40, 41]]]], {},
     [[[[[0, 10, 20, 30], [1, 11, 21, 31]]], [[[40, 0, 0, 0], [41, 0, 0, 0]]]]]),
    ("ragged, channels last", "pack_vect_c", [[[[1, 2, 3], [4, 5, 6]]]], {"data_format": "NHWC", "vect": 2},
     [[[[[1, 2], [4, 5]]], [[[3, 0], [6, 0]]]]]),
    ("filled", "pack_vect_c", [[[[1, 2, 3], [4, 5, 6]]]], {"data_format": "NHWC", "vect": 4, "pad_value": 77},
     [[[[[1, 2, 3, 77], [4, 5, 6, 77]]]]]),
    ("unpacked", "unpack_vect_c", [[[[[1, 2], [4, 5]]], [[[3, 99], [6, 99]]]]], {"channels": 3},
     [[[[1, 4]], [[2, 5]], [[3, 6]]]]),
    ("unpacked with its spare lanes", "unpack_vect_c", [[[[[1, 2], [4, 5]]], [[[3, 99], [6, 98]]]]],
     {"data_format": "NHWC"}, [[[[1, 2, 3, 99], [4, 5, 6, 98]]]]),
]

CASES = DEPTH_CASES + BATCH_CASES + PACK_CASES


@pytest.mark.parametrize("source", [s2dq, s2dq.reference, loops], ids=lambda module: module.__name__)
@pytest.mark.parametrize("dtype", ["i1", "u1", "f4", ">i4", "c16"])
@pytest.mark.parametrize(("operator", "x", "arguments", "expected"), [
    pytest.param(*case, id=name.replace(" ", "_")) for name, *case in CASES])
def test_worked_case(source, operator, x, arguments, expected, dtype):
    if "NCHW_VECT_C" == arguments.get("data_format") and dtype not in ("i1", "u1"):
        arguments = arguments | {"out_format": "NCHW"}  # words to words are words of bytes
        expected = unpacked(expected)
    result = getattr(source, operator)(np.array(x, dtype), **arguments)
    np.testing.assert_array_equal(result, np.array(expected, dtype), strict=True)


def unpacked(words):
    """The NCHW form of a packed literal of one image: lists only."""
    [image] = words
    return [[[[pixel[lane] for pixel in row] for row in word]
             for word in image for lane in range(len(word[0][0]))]]


INVERSES = {"space_to_depth": "depth_to_space", "depth_to_space": "space_to_depth",
            "space_to_batch_nd": "batch_to_space_nd", "batch_to_space_nd": "space_to_batch_nd"}


@pytest.mark.parametrize(("operator", "x", "arguments", "expected"), [
    pytest.param(*case, id=name.replace(" ", "_")) for name, *case in DEPTH_CASES + BATCH_CASES
    if not {"out_format", "channels", "pad_value"} & set(case[2]) and "cropped" not in name])
def test_worked_case_backwards(operator, x, arguments, expected):
    arguments = {{"paddings": "crops", "crops": "paddings"}.get(name, name): value
                 for name, value in arguments.items()}
    result = getattr(s2dq, INVERSES[operator])(np.array(expected, np.int8), **arguments)
    np.testing.assert_array_equal(result, np.array(x, np.int8), strict=True)


@pytest.mark.parametrize(("operator", "shape", "arguments", "expected"), [
    pytest.param("depth_to_space", (5, 28, 2, 3), {"block_size": 2, "data_format": "NCHW"}, (5, 7, 4, 6),
                 id="openvino-DepthToSpace"),
    pytest.param("space_to_depth", (5, 7, 4, 6), {"block_size": 2, "data_format": "NCHW", "mode": "CRD"},
                 (5, 28, 2, 3), id="openvino-SpaceToDepth"),
    pytest.param("space_to_batch_nd", (2, 6, 10, 3, 3),
                 {"block_shape": [2, 4, 3, 1], "paddings": [[0, 0], [1, 1], [0, 0], [0, 0]]}, (48, 3, 3, 1, 3),
                 id="openvino-SpaceToBatch"),
    pytest.param("batch_to_space_nd", (48, 3, 3, 1, 3),
                 {"block_shape": [2, 4, 3, 1], "crops": [[0, 0], [1, 1], [0, 0], [0, 0]]}, (2, 6, 10, 3, 3),
                 id="openvino-BatchToSpace"),
    pytest.param("depth_to_space", (1, 9, 4, 4), {"block_size": 3, "data_format": "NCHW", "mode": "CRD"},
                 (1, 1, 12, 12), id="pytorch-pixel_shuffle"),
    pytest.param("space_to_depth", (1, 1, 12, 12), {"block_size": 3, "data_format": "NCHW", "mode": "CRD"},
                 (1, 9, 4, 4), id="pytorch-pixel_unshuffle"),
    pytest.param("space_to_depth", (1, 640, 640, 3), {"block_size": 2, "mode": "focus", "out_format": "NCHW"},
                 (1, 12, 320, 320), id="yolov5-focus"),
    pytest.param("pack_vect_c", (1, 3, 224, 224), {"vect": 32}, (1, 1, 224, 224, 32), id="tensorrt-kCHW32"),
])
def test_published_shape(operator, shape, arguments, expected):
    assert getattr(s2dq, operator)(np.zeros(shape, np.int8), **arguments).shape == expected


def test_focus_is_the_slices_of_yolov5():
    x = np.arange(2 * 4 * 6 * 3, dtype=np.int16).reshape(2, 4, 6, 3)
    slices = [x[:, ::2, ::2], x[:, 1::2, ::2], x[:, ::2, 1::2], x[:, 1::2, 1::2]]
    result = s2dq.space_to_depth(x, 2, mode="focus")
    np.testing.assert_array_equal(result, np.concatenate(slices, axis=-1), strict=True)

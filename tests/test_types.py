"""What a type checker makes of calls: mypy reads this file (`.ci/run types`), and pytest runs it."""

import subprocess
import sys
from pathlib import Path
from typing import Any, assert_type

import numpy as np
import pytest
from numpy.typing import NDArray

import s2dq

Bytes = NDArray[np.int8]
FRAME: Bytes = np.arange(48, dtype=np.int8).reshape(1, 4, 4, 3)
QUANTIZED = s2dq.QuantizedTensor(FRAME, 0.5, 3)
NOTHING = ((0, 0), (0, 0))


def test_array_in_is_array_out() -> None:
    deep = assert_type(s2dq.space_to_depth(FRAME, 2, out_format="NCHW", mode="CRD"), Bytes)
    assert_type(s2dq.depth_to_space(deep, (2, 2), "NCHW", mode="CRD", crops=np.zeros((2, 2), int)), Bytes)
    batch = assert_type(s2dq.space_to_batch_nd(FRAME, [2, 2], NOTHING, pad_value=1), Bytes)
    assert_type(s2dq.batch_to_space_nd(batch, np.array([2, 2]), [[0, 0], [0, 1]]), Bytes)
    batch = assert_type(s2dq.space_to_batch(FRAME, (2, 2), NOTHING), Bytes)
    assert_type(s2dq.batch_to_space(batch, (2, 2), NOTHING), Bytes)
    words = assert_type(s2dq.pack_vect_c(FRAME, "NHWC", vect=np.int64(4)), Bytes)
    unpacked = assert_type(s2dq.unpack_vect_c(words, "NHWC", channels=3, num_threads=1), Bytes)
    assert np.array_equal(unpacked, FRAME)


def test_quantized_tensor_in_is_quantized_tensor_out() -> None:
    deep = assert_type(s2dq.space_to_depth(QUANTIZED, 2), s2dq.QuantizedTensor)
    assert_type(s2dq.depth_to_space(deep, 2), s2dq.QuantizedTensor)
    batch = assert_type(s2dq.space_to_batch_nd(QUANTIZED, [2, 2], NOTHING), s2dq.QuantizedTensor)
    assert_type(s2dq.batch_to_space_nd(batch, [2, 2], NOTHING), s2dq.QuantizedTensor)
    batch = assert_type(s2dq.space_to_batch(QUANTIZED, [2, 2], NOTHING), s2dq.QuantizedTensor)
    assert_type(s2dq.batch_to_space(batch, [2, 2], NOTHING), s2dq.QuantizedTensor)
    words = assert_type(s2dq.pack_vect_c(QUANTIZED, "NHWC"), s2dq.QuantizedTensor)
    assert_type(s2dq.unpack_vect_c(words, "NHWC", channels=3), s2dq.QuantizedTensor)
    into = assert_type(s2dq.space_to_depth(QUANTIZED, 2, out=np.empty((1, 2, 2, 12), np.int8)), s2dq.QuantizedTensor)
    assert deep == into


def test_out() -> None:
    out = np.empty((1, 2, 2, 12), np.int8)
    assert assert_type(s2dq.space_to_depth(FRAME, 2, out=out), Bytes) is out
    numbers = np.empty(FRAME.shape, np.float64)
    assert assert_type(s2dq.dequantize(QUANTIZED, out=numbers).dtype, np.dtype[np.float64]) == np.float64
    assert_type(QUANTIZED.dequantize(out=numbers).dtype, np.dtype[np.float64])
    assert_type(s2dq.dequantize(QUANTIZED, num_threads=1), NDArray[np.float32])
    assert_type(QUANTIZED.dequantize(), NDArray[np.float32])


def test_what_else_shows_its_elements() -> None:
    class Shown:
        __array_interface__ = FRAME.__array_interface__

    assert_type(s2dq.space_to_depth(memoryview(bytes(48)).cast("b", [1, 4, 4, 3]), 2), NDArray[Any])
    assert_type(s2dq.space_to_depth(FRAME.tolist(), 2), Any)
    assert_type(s2dq.space_to_depth([[[[1], [2]], [[3], [4]]]], 2), NDArray[Any])
    assert s2dq.space_to_depth(Shown(), 2).shape == (1, 2, 2, 12)


def test_tensors_and_settings() -> None:
    assert_type(QUANTIZED.values, np.ndarray)
    assert_type(QUANTIZED.scale, NDArray[np.float32])
    assert_type(QUANTIZED.zero_point, NDArray[np.int32])
    assert_type(QUANTIZED.axis, int | None)
    assert_type(s2dq.quantize(np.zeros(3), [0.5, 1, 2], np.array([0, 1, 2]), "uint8", axis=0), s2dq.QuantizedTensor)
    assert_type(s2dq.requantize(QUANTIZED, 0.25, 0, np.uint8), s2dq.QuantizedTensor)
    pre = s2dq.Preprocessor(scale=1 / 255, zero_point=-128, size=(4, 4), mean=[0, 0, 0])
    tensor = assert_type(pre(np.zeros((4, 4, 3), np.uint8)), np.ndarray)
    assert_type(pre.geometry(4, 4).top, int)
    frames = assert_type(assert_type(pre.inverse(), s2dq.Postprocessor)(tensor, frame=(4, 4)), np.ndarray)
    assert frames.shape == (1, 4, 4, 3) and not frames.any()


def test_what_is_wrong_is_seen() -> None:
    """Each error that mypy does not find is one itself: an unused ignore."""
    with pytest.raises(TypeError):
        s2dq.space_to_depth(FRAME, "2")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        s2dq.space_to_depth(FRAME, 2, pad=1)  # type: ignore[call-overload]
    with pytest.raises(TypeError):
        s2dq.space_to_depth(FRAME, 2, out="new")  # type: ignore[call-overload]
    with pytest.raises(TypeError):
        s2dq.dequantize(FRAME)  # type: ignore[call-overload]
    with pytest.raises(TypeError):
        s2dq.Preprocessor(scale="1/255")  # type: ignore[arg-type]
    with pytest.raises(AttributeError):
        QUANTIZED.scales  # type: ignore[attr-defined]  # noqa: B018


def test_mypy_agrees() -> None:
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", str(Path(__file__))]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr

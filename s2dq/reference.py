"""The obvious NumPy twin of each operator: their specification in code, and one of the tests' two oracles.

Clear before fast, and on purpose without anything from the rest of the package. Every function takes a tensor to
channels-last form, applies the rule there as reshape - transpose - reshape, and goes to the layout asked for.
Arguments are as for the operators of the same name (without ``out`` and ``num_threads``) and are taken to be legal.
"""

import operator
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

__all__ = [
    "batch_to_space",
    "batch_to_space_nd",
    "depth_to_space",
    "dequantize",
    "pack_vect_c",
    "postprocess",
    "preprocess",
    "quantize",
    "requantize",
    "space_to_batch",
    "space_to_batch_nd",
    "space_to_depth",
    "unpack_vect_c",
]


def space_to_depth(
    x: ArrayLike, block_size: Any, data_format: str = "NHWC", *, mode: str = "DCR", out_format: str | None = None,
    vect: int = 4, channels: int | None = None, paddings: Any = None, pad_value: Any = None,
) -> np.ndarray:  # fmt: skip
    """Move spatial blocks into the channel dimension; see `s2dq.space_to_depth`.

    Examples
    --------
    >>> import numpy as np
    >>> from s2dq import reference
    >>> reference.space_to_depth(np.arange(4).reshape(1, 2, 2, 1), 2).ravel()
    array([0, 1, 2, 3])
    """
    x = np.asarray(x)
    lanes, outer = _lanes(x, data_format, out_format, vect), x.shape[1]
    x = _channels_last(x, data_format, channels)
    batch, *extents, count = x.shape
    block = _per_axis(block_size, len(extents))
    x = _pad(x, [(0, 0), *(paddings if paddings is not None else [(0, 0)] * len(extents)), (0, 0)], pad_value)
    extents = [extent // b for extent, b in zip(x.shape[1:-1], block)]

    split = x.reshape(batch, *(part for pair in zip(extents, block) for part in pair), count)
    blocks, offsets, channel = _split_axes(len(block))
    deep = {"DCR": [*offsets, channel], "CRD": [channel, *offsets], "focus": [*offsets[::-1], channel]}[mode]
    result = split.transpose([0, *blocks, *deep]).reshape(batch, *extents, prod(block) * count)
    return _to_layout(result, out_format or data_format, lanes, outer * prod(block))


def depth_to_space(
    x: ArrayLike, block_size: Any, data_format: str = "NHWC", *, mode: str = "DCR", out_format: str | None = None,
    vect: int = 4, channels: int | None = None, crops: Any = None,
) -> np.ndarray:  # fmt: skip
    """Move channels out into spatial blocks; see `s2dq.depth_to_space`.

    Examples
    --------
    >>> import numpy as np
    >>> from s2dq import reference
    >>> reference.depth_to_space(np.arange(4).reshape(1, 1, 1, 4), 2)[0, ..., 0]
    array([[0, 1],
           [2, 3]])
    """
    x = np.asarray(x)
    lanes, outer = _lanes(x, data_format, out_format, vect), x.shape[1]
    x = _channels_last(x, data_format, channels)
    batch, *extents, deep = x.shape
    block = _per_axis(block_size, len(extents))
    count = deep // prod(block)
    digits = {"DCR": [*block, count], "CRD": [count, *block], "focus": [*block[::-1], count]}[mode]

    split = x.reshape(batch, *extents, *digits)
    blocks = range(1, 1 + len(block))
    low = 1 + len(block)  # where the digits of the deep channel start
    offsets = range(low, low + len(block))
    channel = low + len(block)
    if mode == "CRD":
        offsets, channel = range(low + 1, low + 1 + len(block)), low
    elif mode == "focus":
        offsets = offsets[::-1]
    result = split.transpose([0, *(axis for pair in zip(blocks, offsets) for axis in pair), channel])
    result = result.reshape(batch, *(extent * b for extent, b in zip(extents, block)), count)
    result = _crop(result, [(0, 0), *(crops if crops is not None else [(0, 0)] * len(block)), (0, 0)])
    return _to_layout(result, out_format or data_format, lanes, outer // prod(block))


def space_to_batch_nd(x: ArrayLike, block_shape: Any, paddings: Any, *, pad_value: Any = None) -> np.ndarray:
    """Move spatial blocks into the batch dimension; see `s2dq.space_to_batch_nd`.

    Examples
    --------
    >>> import numpy as np
    >>> from s2dq import reference
    >>> reference.space_to_batch_nd(np.arange(4).reshape(1, 2, 2, 1), [2, 2], [[0, 0], [0, 0]]).shape
    (4, 1, 1, 1)
    """
    x = np.asarray(x)
    block = [operator.index(b) for b in block_shape]
    rest = x.shape[1 + len(block):]
    x = _pad(x, [(0, 0), *paddings, *[(0, 0)] * len(rest)], pad_value)
    batch = x.shape[0]
    extents = [extent // b for extent, b in zip(x.shape[1:], block)]

    split = x.reshape(batch, *(part for pair in zip(extents, block) for part in pair), *rest)
    blocks, offsets, first_rest = _split_axes(len(block))
    order = [*offsets, 0, *blocks, *range(first_rest, first_rest + len(rest))]
    return split.transpose(order).reshape(prod(block) * batch, *extents, *rest).copy()


def batch_to_space_nd(x: ArrayLike, block_shape: Any, crops: Any) -> np.ndarray:
    """Move batch entries back into spatial blocks; see `s2dq.batch_to_space_nd`.

    Examples
    --------
    >>> import numpy as np
    >>> from s2dq import reference
    >>> reference.batch_to_space_nd(np.arange(4).reshape(4, 1, 1, 1), [2, 2], [[0, 0], [0, 0]])[0, ..., 0]
    array([[0, 1],
           [2, 3]])
    """
    x = np.asarray(x)
    block = [operator.index(b) for b in block_shape]
    dims = len(block)
    batch = x.shape[0] // prod(block)
    extents, rest = x.shape[1: 1 + dims], x.shape[1 + dims:]

    split = x.reshape(*block, batch, *extents, *rest)
    pairs = (axis for i in range(dims) for axis in (dims + 1 + i, i))
    order = [dims, *pairs, *range(2 * dims + 1, 2 * dims + 1 + len(rest))]
    result = split.transpose(order).reshape(batch, *(extent * b for extent, b in zip(extents, block)), *rest)
    return _crop(result, [(0, 0), *crops, *[(0, 0)] * len(rest)]).copy()


def space_to_batch(x: ArrayLike, block_shape: Any, paddings: Any, *, pad_value: Any = None) -> np.ndarray:
    """`space_to_batch_nd` under TensorFlow 2's name.

    Examples
    --------
    >>> import numpy as np
    >>> from s2dq import reference
    >>> reference.space_to_batch(np.zeros((1, 4)), [2], [[0, 0]]).shape
    (2, 2)
    """
    return space_to_batch_nd(x, block_shape, paddings, pad_value=pad_value)


def batch_to_space(x: ArrayLike, block_shape: Any, crops: Any) -> np.ndarray:
    """`batch_to_space_nd` under TensorFlow 2's name.

    Examples
    --------
    >>> import numpy as np
    >>> from s2dq import reference
    >>> reference.batch_to_space(np.zeros((2, 2)), [2], [[0, 0]]).shape
    (1, 4)
    """
    return batch_to_space_nd(x, block_shape, crops)


def pack_vect_c(x: ArrayLike, data_format: str = "NCHW", *, vect: int = 4, pad_value: Any = 0) -> np.ndarray:
    """Pack channels into words; see `s2dq.pack_vect_c`.

    Examples
    --------
    >>> import numpy as np
    >>> from s2dq import reference
    >>> reference.pack_vect_c(np.arange(1, 4).reshape(1, 3, 1, 1)).ravel()
    array([1, 2, 3, 0])
    """
    return _pack(_channels_last(np.asarray(x), data_format, None), operator.index(vect), pad_value)


def unpack_vect_c(x: ArrayLike, data_format: str = "NCHW", *, channels: int | None = None) -> np.ndarray:
    """Unpack words of channels; see `s2dq.unpack_vect_c`.

    Examples
    --------
    >>> import numpy as np
    >>> from s2dq import reference
    >>> reference.unpack_vect_c(np.array([1, 2, 3, 0]).reshape(1, 1, 1, 1, 4), channels=3).ravel()
    array([1, 2, 3])
    """
    return _to_layout(_channels_last(np.asarray(x), "NCHW_VECT_C", channels), data_format, 0)


def preprocess(
    frames: ArrayLike, *, scale: Any = None, zero_point: Any = 0, dtype: Any = "int8", mean: Any = None,
    std: Any = None, rescale: Any = 1 / 255, input_format: str = "NHWC", data_format: str = "NHWC", block_size: Any = 1,
    mode: str = "DCR", vect: int = 4, reverse_channels: bool = False, size: Any = None, pad_value: Any = 114,
) -> np.ndarray:  # fmt: skip
    """Turn frames of uint8 or float32 into model input; see `s2dq.Preprocessor`.

    Examples
    --------
    >>> import numpy as np
    >>> from s2dq import reference
    >>> frame = np.array([0, 128, 255], np.uint8).reshape(1, 1, 3)
    >>> reference.preprocess(frame, scale=1 / 255, zero_point=-128).ravel()
    array([-128,    0,  127], dtype=int8)
    """
    frames = np.asarray(frames)
    if frames.ndim == 3:
        frames = frames[np.newaxis]
    if input_format == "NCHW":
        frames = frames.transpose(0, 2, 3, 1)
    if reverse_channels:
        frames = frames[..., ::-1]
    count = frames.shape[-1]
    if size is not None:
        height, width = _per_axis(size, 2)
        top, left = (height - frames.shape[1]) // 2, (width - frames.shape[2]) // 2
        canvas = np.empty((frames.shape[0], height, width, count), frames.dtype)
        canvas[...] = pad_value
        canvas[:, top: top + frames.shape[1], left: left + frames.shape[2]] = frames
        frames = canvas
    number: Any = np.float64 if frames.dtype == np.uint8 else np.float32  # what is computed in
    mean = np.broadcast_to(number(0 if mean is None else mean), count)
    std = np.broadcast_to(number(1 if std is None else std), count)
    with np.errstate(over="ignore", invalid="ignore"):
        values = (frames.astype(number) * number(rescale) - mean) / std
        if np.dtype(dtype).kind in "iu":
            info = np.iinfo(dtype)
            levels = np.rint(values / number(np.float32(scale))).astype(np.float64) + zero_point
            values = np.where(np.isnan(levels), zero_point, np.clip(levels, info.min, info.max))
        values = values.astype(dtype)
    return space_to_depth(values, block_size, "NHWC", mode=mode, out_format=data_format, vect=vect)


def postprocess(
    tensor: ArrayLike, *, scale: Any, zero_point: Any = 0, dtype: Any = "int8", mean: Any = None, std: Any = None,
    rescale: Any = 1 / 255, input_format: str = "NHWC", data_format: str = "NHWC", block_size: Any = 1,
    mode: str = "DCR", vect: int = 4, reverse_channels: bool = False, size: Any = None, pad_value: Any = 114,
    frame: Any = None,
) -> np.ndarray:  # fmt: skip
    """Turn quantized model output into uint8 frames; see `s2dq.Postprocessor`.

    Examples
    --------
    >>> import numpy as np
    >>> from s2dq import reference
    >>> tensor = np.array([-128, 0, 127], np.int8).reshape(1, 1, 3)
    >>> reference.postprocess(tensor, scale=1 / 255, zero_point=-128).ravel()
    array([  0, 128, 255], dtype=uint8)
    """
    tensor = np.asarray(tensor)
    if tensor.ndim == (4 if data_format == "NCHW_VECT_C" else 3):
        tensor = tensor[np.newaxis]
    told = [len(entries) for entries in (mean, std, pad_value) if np.ndim(entries)]
    deep = told[0] * prod(_per_axis(block_size, 2)) if told else None
    levels = depth_to_space(tensor, block_size, data_format, mode=mode, out_format="NHWC", channels=deep)
    if frame is not None:
        top, left = ((canvas - extent) // 2 for canvas, extent in zip(levels.shape[1:3], frame))
        levels = levels[:, top: top + frame[0], left: left + frame[1]]
    mean = np.float64(0 if mean is None else mean)
    std = np.float64(1 if std is None else std)
    with np.errstate(over="ignore"):
        numbers = (levels.astype(np.float64) - zero_point) * np.float64(np.float32(scale))
        levels = np.rint((numbers * std + mean) / np.float64(rescale))
    frames = np.clip(levels, 0, 255).astype(np.uint8)
    if reverse_channels:
        frames = frames[..., ::-1]
    return _to_layout(frames, input_format, 0)


def quantize(x: ArrayLike, scale: Any, zero_point: Any, dtype: Any = "int8", *, axis: int | None = None) -> np.ndarray:
    """Turn real numbers into stored integers; see `s2dq.quantize`. Arrays in, arrays out.

    Examples
    --------
    >>> import numpy as np
    >>> from s2dq import reference
    >>> reference.quantize(np.array([-0.75, -0.25, 0.25, 0.75]), 0.5, 10)
    array([ 8, 10, 10, 12], dtype=int8)
    """
    x = np.asarray(x)
    x = x.astype(np.result_type(x, np.float32))  # float16 is widened
    scale = _along(np.float32(scale), x.shape, axis).astype(x.dtype)
    zero_point = _along(np.int64(zero_point), x.shape, axis)
    info = np.iinfo(dtype)
    with np.errstate(all="ignore"):  # numbers too large for their type saturate as infinities
        steps = np.rint(x / scale).astype(np.float64)
    stored = np.clip(steps + zero_point, info.min, info.max)
    return np.asarray(np.where(np.isnan(steps), zero_point, stored).astype(dtype))


def dequantize(values: ArrayLike, scale: Any, zero_point: Any, *, axis: int | None = None) -> np.ndarray:
    """Turn stored integers into real numbers; see `s2dq.dequantize`. Arrays in, arrays out.

    Examples
    --------
    >>> import numpy as np
    >>> from s2dq import reference
    >>> reference.dequantize(np.array([0, 128, 255], np.uint8), 0.5, 128)
    array([-64. ,   0. ,  63.5], dtype=float32)
    """
    values = np.asarray(values)
    scale = _along(np.float32(scale), values.shape, axis)
    zero_point = _along(np.int64(zero_point), values.shape, axis)
    with np.errstate(all="ignore"):
        return np.asarray((values.astype(np.int64) - zero_point).astype(np.float32) * scale)


def requantize(
    values: ArrayLike, scale: Any, zero_point: Any, new_scale: Any, new_zero_point: Any, dtype: Any = None, *,
    axis: int | None = None,
) -> np.ndarray:  # fmt: skip
    """Take stored integers to another scale, zero point or type; see `s2dq.requantize`. Arrays in, arrays out.

    Both pairs of parameters are single numbers or lie along `axis`.

    Examples
    --------
    >>> import numpy as np
    >>> from s2dq import reference
    >>> reference.requantize(np.array([0, 128, 255], np.uint8), 0.5, 0, 0.5, -128, np.int8)
    array([-128,    0,  127], dtype=int8)
    """
    values = np.asarray(values)
    numbers = dequantize(values, scale, zero_point, axis=axis)
    return quantize(numbers, new_scale, new_zero_point, values.dtype if dtype is None else dtype, axis=axis)


# ------------------------------------------------------------------------------------------------------ pieces


def _along(entries: ArrayLike, shape: tuple[int, ...], axis: Any) -> np.ndarray:
    """Parameters in a form that broadcasts: one for all, one for each index of `axis`, or one for each packed lane."""
    entries = np.asarray(entries)
    if entries.ndim == 0:
        return entries
    form = [1] * len(shape)
    form[axis] = shape[axis]
    if entries.size != shape[axis]:  # axis 1 of (N, words, H, W, V)
        form[-1] = shape[-1]
    return entries.reshape(form)


def _per_axis(value: Any, count: int) -> list[int]:
    entries = np.asarray(value).tolist()
    return entries if isinstance(entries, list) else [entries] * count


def _split_axes(dims: int) -> tuple[range, range, int]:
    """Axes of a tensor whose axes 1 to `dims` were split in two: outer parts, inner parts, the first axis behind."""
    return range(1, 1 + 2 * dims, 2), range(2, 2 + 2 * dims, 2), 1 + 2 * dims


def _lanes(x: np.ndarray, data_format: str, out_format: str | None, vect: int) -> int:
    """Lanes of a packed result: a packed source keeps its own unless the caller says otherwise."""
    if data_format == "NCHW_VECT_C" and out_format is None and vect == 4:
        return int(x.shape[-1])
    return operator.index(vect)


def _channels_last(x: np.ndarray, data_format: str, channels: int | None) -> np.ndarray:
    """Any layout -> (N, spatial..., C)."""
    if data_format == "NCHW_VECT_C":
        batch, outer, height, width, lanes = x.shape
        x = x.transpose(0, 2, 3, 1, 4).reshape(batch, height, width, outer * lanes)
        return x[..., :channels]
    if data_format[1] == "C":
        return np.moveaxis(x, 1, -1)
    return x


def _to_layout(x: np.ndarray, data_format: str, lanes: int, empty: int = 0) -> np.ndarray:
    """(N, spatial..., C) -> any layout, in memory of its own; where words have no lanes there are `empty` ones."""
    if data_format == "NCHW_VECT_C":
        return _pack(x, lanes, 0, empty)
    if data_format[1] == "C":
        x = np.moveaxis(x, -1, 1)
    return x.copy()


def _pack(x: np.ndarray, lanes: int, pad_value: Any, empty: int = 0) -> np.ndarray:
    """(N, H, W, C) -> (N, words, H, W, lanes); spare lanes hold `pad_value`."""
    batch, height, width, count = x.shape
    outer = -(-count // lanes) if lanes else empty
    padded = _filled((batch, height, width, outer * lanes), x.dtype, pad_value)
    padded[..., :count] = x
    words = padded.reshape(batch, height, width, outer, lanes)
    return words.transpose(0, 3, 1, 2, 4).copy()


def _filled(shape: Any, dtype: np.dtype[Any], value: Any) -> np.ndarray:
    """An array of one value; the raw 0 of dtypes without numbers means the dtype's zero."""
    array = np.zeros(shape, dtype)
    raw = dtype.kind in "SUVmMT" and isinstance(value, (int, float, complex, np.number)) and value == 0
    if not raw:
        element = np.empty((), dtype)
        element[()] = value  # among objects a list is one of them
        array[...] = element
    return array


def _pad(x: np.ndarray, margins: Any, value: Any) -> np.ndarray:
    value = 0 if value is None else value
    inner = tuple(slice(start, start + extent) for (start, _), extent in zip(margins, x.shape))
    padded = _filled([start + extent + end for (start, end), extent in zip(margins, x.shape)], x.dtype, value)
    padded[inner] = x
    return padded


def _crop(x: np.ndarray, margins: Any) -> np.ndarray:
    return x[tuple(slice(start, extent - end) for (start, end), extent in zip(margins, x.shape))]

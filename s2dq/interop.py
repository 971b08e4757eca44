"""Quantized tensors of other systems, read into a QuantizedTensor, and what of them it cannot represent.

A QuantizedTensor has one float32 scale and one integer zero point for all of it or for each index of one axis. What
has other parameters (for each block, two axes, a zero point that is no integer) or other values (4 bits, float8) is
refused here rather than read as something else. A scale that is given as a Python number counts as the float32
nearest to it, as it does in these systems; an array of float64 has to hold float32 values.

None of the other packages is imported: objects of theirs bring it along.
"""

import sys
from collections.abc import Mapping
from math import prod
from numbers import Number, Real
from typing import Any, NoReturn, SupportsIndex

import numpy as np

from s2dq._validate import (
    Door,
    Parameters,
    check_tensor,
    guarded,
    is_complex,
    most_entries,
    parts_of,
    show,
    to_float32,
    to_float64,
)
from s2dq.quantized import QuantizedTensor, made_of

__all__ = ["from_litert", "from_onnx", "from_torch", "to_litert"]


# ---- LiteRT


def from_litert(values: Any, detail: Any) -> QuantizedTensor:
    """Read a tensor of a LiteRT (TFLite) interpreter.

    Parameters
    ----------
    values : array_like of int8, uint8, int16, uint16 or int32
        What ``interpreter.get_tensor(index)`` returns; viewed in place.
    detail : dict or tuple
        The tensor's entry of ``get_input_details()``, ``get_output_details()`` or ``get_tensor_details()``; or its
        ``"quantization_parameters"``; or its ``"quantization"``, the pair (scale, zero_point).

    Returns
    -------
    QuantizedTensor
        With an axis if there are several scales.

    Raises
    ------
    TypeError
        Values of another dtype than the model's tensor, or of one that a QuantizedTensor cannot have (bool, int64,
        floats); a `detail` of another kind.
    ValueError
        A tensor that is not quantized (no scales, or a scale of 0), is sparse, or has parameters for each block; a
        `detail` without any of the entries above; parameters that do not fit the values.

    See Also
    --------
    to_litert : the way back
    s2dq.models.read_input : the input of a .tflite file

    Notes
    -----
    The pair (scale, zero_point) is (0.0, 0) for a tensor with parameters per channel: give the dict then. LiteRT
    unpacks 4-bit tensors to int8 by itself.

    References
    ----------
    LiteRT ``Interpreter.get_tensor_details``; "LiteRT 8-bit quantization specification".

    Examples
    --------
    >>> import numpy as np
    >>> from s2dq import interop
    >>> interop.from_litert(np.array([[-3, 5]], np.int8), (0.5, -3))
    QuantizedTensor([[-3,  5]], dtype=int8, scale=0.5, zero_point=-3)
    >>> parameters = {"scales": [0.5, 0.25], "zero_points": [0, 0], "quantized_dimension": 1}
    >>> interop.from_litert(np.array([[-3, 5]], np.int8), parameters).dequantize()
    array([[-1.5 ,  1.25]], dtype=float32)
    """
    return made_of(*_litert_parts("from_litert", values, detail))


def to_litert(q: QuantizedTensor, detail: Any) -> np.ndarray:
    """Give the values of a quantized tensor to a LiteRT tensor that has the same parameters.

    ``interpreter.set_tensor(detail["index"], to_litert(q, detail))`` cannot hand over integers that mean something
    else to the model.

    Parameters
    ----------
    q : QuantizedTensor
        What is to be handed over.
    detail : dict or tuple
        As for `from_litert`.

    Returns
    -------
    ndarray
        ``q.values``, not copied.

    Raises
    ------
    TypeError
        No QuantizedTensor; one of another dtype than the model's tensor.
    ValueError
        Another scale, zero point or axis than the model's; a `detail` that `from_litert` refuses.

    See Also
    --------
    from_litert : the way back
    s2dq.requantize : to the model's parameters

    Examples
    --------
    >>> import numpy as np, s2dq
    >>> from s2dq import interop
    >>> q = s2dq.QuantizedTensor(np.array([1, 2], np.int8), 0.5, 0)
    >>> interop.to_litert(q, (0.5, 0))
    array([1, 2], dtype=int8)
    >>> interop.to_litert(q, (0.25, 0))
    Traceback (most recent call last):
        ...
    ValueError: to_litert: q has scale=0.5, zero_point=0, the model's tensor scale=0.25, zero_point=0; requantize it
    """
    check_tensor("to_litert", "q", QuantizedTensor, q)
    _check_same("to_litert", q, made_of(*_litert_parts("to_litert", q.values, detail)))
    return q.values


@guarded
def _litert_parts(name: str, values: Any, detail: Any) -> tuple[np.ndarray, Parameters]:
    door = Door(name)
    array = door.array(values, "values")
    parameters = detail
    if isinstance(detail, Mapping):
        sparsity = detail.get("sparsity_parameters")
        if not (sparsity is None or isinstance(sparsity, Mapping)):
            door.refuse(TypeError, f"detail['sparsity_parameters'] must be a dict, not {show(sparsity)}")
        if sparsity:
            door.refuse(ValueError, "a sparse tensor has no place for each value")
        # The pair says nothing about parameters per channel: it is the second choice.
        parameters = detail.get("quantization_parameters", detail.get("quantization", detail))
    if isinstance(parameters, Mapping):
        scale, zero_point, axis = _litert_arrays(door, parameters, array)
    elif isinstance(parameters, (tuple, list)) and len(parameters) == 2:
        (scale, zero_point), axis = parameters, None
        bits = scale.view(np.int32) if type(scale) is np.float32 else scale  # the thread may take small ones for 0
        if isinstance(scale, Real) and bits == 0:
            door.refuse(ValueError, "the tensor is not quantized, or per channel: its pair has a scale of 0")
    else:
        rule = "detail must be a dict of get_tensor_details() or a pair (scale, zero_point)"
        door.refuse(TypeError, f"{rule}, not {show(detail)}")
    if isinstance(detail, Mapping) and "dtype" in detail:
        try:
            wanted = np.dtype(detail["dtype"])
        except Exception as error:  # of strings that cannot be read, too
            door.refuse(TypeError, f"detail['dtype'] must be a dtype, not {show(detail['dtype'])}", error)
        if wanted != array.dtype:
            rule = f"values must have the dtype of the model's tensor, {wanted}, not {array.dtype}"
            door.refuse(TypeError, rule + ("; quantize them first" if array.dtype.kind == "f" else ""))
    scale, zero_point = _read(door, "scale", scale, array), _read(door, "zero_point", zero_point, array)
    return parts_of(door, values, array, _scale(door, scale), zero_point, axis)


def _litert_arrays(door: Door, parameters: Mapping[str, Any], array: np.ndarray) -> tuple[Any, Any, Any]:
    """``(scale, zero_point, axis)`` of a ``quantization_parameters`` dict."""
    if "scales" not in parameters:
        rule = "detail must have quantization_parameters, quantization or scales"
        door.refuse(ValueError, f"{rule}, not only {show(list(parameters))}")
    block_size = parameters.get("block_size")
    if block_size is not None and door.integer("block_size of detail", block_size, 0):
        _refuse_blocks(door, f"block_size is {show(block_size)}")
    scales, zero_points = (
        _vector(door, f"{key} of detail", parameters.get(key, ()), array) for key in ("scales", "zero_points")
    )
    if len(scales) == 0:
        door.refuse(ValueError, "the tensor is not quantized: it has no scales")
    if len(zero_points) == 0:
        zero_points = [0]
    single = len(scales) == 1 and len(zero_points) == 1
    axis = None if single else parameters.get("quantized_dimension", 0)
    return _only(scales), _only(zero_points), axis


def _vector(door: Door, argument: str, value: Any, array: np.ndarray) -> Any:
    listed = isinstance(value, (list, tuple, np.ndarray))
    entries: Any = _read(door, argument, value, array) if listed else None
    if len(_shape(entries)) != 1:
        door.refuse(TypeError, f"{argument} must be an array of one dimension, not {show(value)}")
    return entries


def _only(entries: Any) -> Any:
    return entries[0] if len(entries) == 1 else entries


@guarded
def _check_same(name: str, q: QuantizedTensor, model: QuantizedTensor) -> None:
    """Refuse parameters that are not those of the model's tensor."""
    # Bits: the thread may take small scales for 0.
    same = q.axis == model.axis and np.array_equal(q.scale.view(np.int32), model.scale.view(np.int32))
    if not same or not np.array_equal(q.zero_point, model.zero_point):
        rule = f"q has {_described(q)}, the model's tensor {_described(model)}"
        Door(name).refuse(ValueError, f"{rule}; requantize it")


def _described(q: QuantizedTensor) -> str:
    axis = "" if q.axis is None else f", axis={q.axis}"
    return f"scale={show(to_float64(q.scale).tolist())}, zero_point={show(q.zero_point.tolist())}{axis}"


# ---- ONNX


def from_onnx(
    values: Any, scale: Any, zero_point: Any = None, axis: SupportsIndex = 1, *, block_size: SupportsIndex = 0
) -> QuantizedTensor:
    """Read what a DequantizeLinear reads, or a QuantizeLinear writes.

    Parameters
    ----------
    values : array_like or onnx.TensorProto, of int8, uint8, int16, uint16 or int32
        The quantized tensor; an array is viewed in place.
    scale : float, array_like or onnx.TensorProto
        A scalar, or (C,) with one scale for each index of `axis`; a vector of one counts as a scalar. float16 and
        bfloat16 are exact in float32.
    zero_point : int, array_like or onnx.TensorProto, optional
        Of the shape of `scale` and the type of `values`, or a number of Python, which has neither and counts for every
        scale; 0 by default, and always for int32.
    axis : int
        Of the parameters, if there are several; counted from the end if negative.
    block_size : int
        The node's attribute, so that all of them can be handed over; other than 0 it is refused.

    Returns
    -------
    QuantizedTensor
        Of the shape of `values`; with an axis if there are several parameters.

    Raises
    ------
    TypeError
        Values that a QuantizedTensor cannot have (int4, uint4, float8 ...), or a zero point of another type.
    ValueError
        Blocked quantization (a scale of the rank of `values`, or a `block_size`); a float64 scale that is no float32;
        a zero point of another length, or other than 0 for int32; several parameters along an axis that is not there;
        a damaged TensorProto.

    See Also
    --------
    s2dq.models.read_input : the input of an .onnx file

    Notes
    -----
    With a scale of float16 or bfloat16, ONNX computes in that type; `s2dq.dequantize` always does in float32.

    References
    ----------
    ONNX QuantizeLinear and DequantizeLinear, opset 21 and later; ONNX Runtime for vectors of one.

    Examples
    --------
    >>> import numpy as np
    >>> from s2dq import interop
    >>> interop.from_onnx(np.array([[3, 5]], np.uint8), np.float32(0.5), np.uint8(3))
    QuantizedTensor([[3, 5]], dtype=uint8, scale=0.5, zero_point=3)
    >>> weights = np.ones((2, 1), np.int8)
    >>> interop.from_onnx(weights, np.array([0.5, 0.25], np.float32), axis=0).dequantize()
    array([[0.5 ],
           [0.25]], dtype=float32)
    """
    return made_of(*_onnx_parts("from_onnx", values, scale, zero_point, axis, block_size))


@guarded
def _onnx_parts(
    name: str, values: Any, scale: Any, zero_point: Any, axis: Any, block_size: Any
) -> tuple[np.ndarray, Parameters]:
    door = Door(name)
    values = _onnx_array(door, "values", values)
    scale, zero_point = _onnx_array(door, "scale", scale), _onnx_array(door, "zero_point", zero_point)
    array = door.array(values, "values")
    if door.integer("block_size", block_size, 0):
        _refuse_blocks(door, f"block_size is {show(block_size)}")
    axis = door.integer("axis", axis, -array.ndim if array.ndim else 0)
    scale, zero_point = _read(door, "scale", scale, array), _read(door, "zero_point", zero_point, array)
    scale = _scale(door, scale)
    if len(_shape(scale)) > 1:
        _refuse_blocks(door, f"scale has the shape {_shape(scale)}")
    if zero_point is None:
        zero_point = 0
    elif isinstance(zero_point, (np.ndarray, np.generic)):
        zero_point = door.view("zero_point", zero_point)
        if zero_point.dtype.newbyteorder("=") != array.dtype.newbyteorder("="):
            rule = f"zero_point must have the type of the values, {array.dtype}, not {zero_point.dtype}"
            door.refuse(TypeError, rule)
    if isinstance(zero_point, (np.ndarray, list)) and prod(_shape(zero_point)) != prod(_shape(scale)):
        rule = f"zero_point must have the shape of scale, {_shape(scale)}, not {_shape(zero_point)}"
        door.refuse(ValueError, rule)
    if array.dtype.name == "int32" and np.any(zero_point):
        door.refuse(ValueError, f"zero_point must be 0 for values of int32 in ONNX, not {show(zero_point)}")
    if prod(_shape(scale)) == prod(_shape(zero_point)) == 1:
        scale, zero_point, axis = _scalar(scale), _scalar(zero_point), None
    return parts_of(door, values, array, scale, zero_point, axis)


def _onnx_array(door: Door, argument: str, value: Any) -> Any:
    """The array of a TensorProto; anything else as it is."""
    onnx = sys.modules.get("onnx")  # without it there is no TensorProto
    if onnx is None or not isinstance(value, onnx.TensorProto):
        return value
    try:
        return onnx.numpy_helper.to_array(value)
    except MemoryError:
        raise
    except Exception as error:  # of no type, of too few bytes; onnx's own where they are in a file that is not there
        door.refuse(ValueError, f"{argument} is a damaged TensorProto: {type(error).__name__}: {error}", error)


# ---- PyTorch

TORCH_SCHEMES = ("torch.per_tensor_affine", "torch.per_tensor_symmetric", "torch.per_channel_affine",
                 "torch.per_channel_symmetric")  # fmt: skip
TORCH_DTYPES = ("torch.qint8", "torch.quint8", "torch.qint32")


def from_torch(
    values: Any, scale: Any = None, zero_point: Any = None, axis: SupportsIndex | None = None
) -> QuantizedTensor:
    """Read an integer tensor and its scale, or a tensor of PyTorch's own quantized types.

    Parameters
    ----------
    values : torch.Tensor, or array_like
        On the CPU. Of int8, uint8, int16, uint16 or int32, viewed in place; or of qint8, quint8 or qint32, whose
        integers are copied once.
    scale : float, torch.Tensor or array_like, optional
        One, or one for each index of `axis`; required, unless `values` has its own. A tensor of the rank of `values`
        with one entry along all axes but one, as torchao keeps them, says by itself which axis it lies along.
    zero_point : int, torch.Tensor or array_like, optional
        Of integers, 0 by default. Beside a scale of the rank of `values` it has the scale's shape, or one entry for
        all of it.
    axis : int, optional
        Of the parameters. Without it a vector of one, as the observers of PyTorch make, counts as a number.

    Returns
    -------
    QuantizedTensor
        Of the shape of `values`; with an axis if there are several parameters.

    Raises
    ------
    TypeError
        Values that a QuantizedTensor cannot have (int64, floats, quint4x2); a zero point that is no integer; a tensor
        that is not on the CPU.
    ValueError
        No scale, or one beside that of a quantized type; parameters for each group or token; a zero point of another
        shape than such a scale; a float64 scale that is no float32; ``per_channel_affine_float_qparams``, whose zero
        points are no integers.

    Notes
    -----
    PyTorch computes in float32 with the one scale of a tensor, and in float64 with those of ``per_channel_affine``.
    So the former is rounded to float32, and the latter have to be float32 values, which they are where an observer
    has made them; then `dequantize` gives the same bits.

    References
    ----------
    ``torch.ops.quantized_decomposed`` (PT2E), torchao ``AffineQuantizedTensor``, ``torch.quantize_per_channel``.

    Examples
    --------
    >>> import numpy as np  # arrays will do where PyTorch is not there
    >>> from s2dq import interop
    >>> interop.from_torch(np.array([[3, 5]], np.int8), 0.5, 3)
    QuantizedTensor([[3, 5]], dtype=int8, scale=0.5, zero_point=3)
    >>> interop.from_torch(np.array([[3], [5]], np.int8), np.array([[0.5], [0.25]])).scale
    array([0.5 , 0.25], dtype=float32)
    """
    return made_of(*_torch_parts("from_torch", values, scale, zero_point, axis))


@guarded
def _torch_parts(
    name: str, values: Any, scale: Any, zero_point: Any, axis: Any
) -> tuple[np.ndarray, Parameters]:
    door = Door(name)
    if getattr(values, "is_quantized", False):
        for argument, given in (("scale", scale), ("zero_point", zero_point), ("axis", axis)):
            if given is not None:
                door.refuse(ValueError, f"values of {values.dtype} have a {argument} of their own, not {show(given)}")
        values, scale, zero_point, axis = _torch_quantized(door, values)
    elif scale is None:
        door.refuse(ValueError, "scale must be given for values that have none of their own")
    array = door.array(values, "values")
    if axis is not None:
        axis = door.integer("axis", axis, -array.ndim if array.ndim else 0)
    scale = _scale(door, _read(door, "scale", _torch_array(door, "scale", scale), array))
    zero_point = _read(door, "zero_point", _torch_array(door, "zero_point", zero_point), array)
    zero_point = 0 if zero_point is None else zero_point
    if len(_shape(scale)) > 1:
        scale, zero_point, axis = _kept_axes(door, array.shape, scale, zero_point, axis)
    if axis is None:
        scale, zero_point = _scalar(scale), _scalar(zero_point)
    return parts_of(door, values, array, scale, zero_point, axis)


def _torch_quantized(door: Door, values: Any) -> tuple[Any, Any, Any, Any]:
    """The integers and parameters of a tensor of a quantized type."""
    if str(values.dtype) not in TORCH_DTYPES:
        door.refuse(TypeError, f"values must be of qint8, quint8 or qint32, not {values.dtype}")
    scheme = str(values.qscheme())
    if scheme not in TORCH_SCHEMES:
        door.refuse(ValueError, f"{scheme} has zero points that are no integers: no QuantizedTensor represents it")
    if "per_tensor" in scheme:
        return values.int_repr(), values.q_scale(), values.q_zero_point(), None
    scales, zero_points = values.q_per_channel_scales(), values.q_per_channel_zero_points()
    return values.int_repr(), scales, zero_points, values.q_per_channel_axis()


def _torch_array(door: Door, argument: str, value: Any) -> Any:
    """The array of a tensor, bfloat16, which NumPy does not know, as float32; anything else as it is."""
    if not hasattr(value, "detach"):
        return value
    tensor = value.detach()  # scales may be parameters that are trained
    return door.view(argument, tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor)


def _kept_axes(door: Door, shape: tuple[int, ...], scale: Any, zero_point: Any, axis: Any) -> tuple[Any, Any, Any]:
    """Vectors, and the axis along which they lie, of parameters that have the rank of the values."""
    shapes = _shape(scale), _shape(zero_point)
    along = [i for i, extent in enumerate(shapes[0]) if extent != 1]
    if len(shapes[0]) != len(shape) or len(along) > 1:
        _refuse_blocks(door, f"scale has the shape {shapes[0]}, the values {shape}")
    if axis is None and along:
        axis = along[0]
    elif along and axis % len(shape) != along[0]:
        door.refuse(ValueError, f"scale of shape {shapes[0]} lies along axis {along[0]}, not {show(axis)}")
    if shapes[1]:
        if prod(shapes[1]) != 1 and shapes[1] != shapes[0]:  # of as many entries it may lie along another axis
            door.refuse(ValueError, f"zero_point must have the shape of scale, {shapes[0]}, not {shapes[1]}")
        zero_point = _only(_flat(zero_point))
    return _flat(scale), zero_point, axis


def _flat(entries: Any) -> Any:
    """An array or a regular list as a vector; what is in lists stays as it is, until it is read."""
    if isinstance(entries, np.ndarray):
        return entries.reshape(-1)
    return np.array(entries, object).reshape(-1).tolist()


# ---- parameters


def _refuse_blocks(door: Door, found: str) -> NoReturn:
    rule = "parameters for each block cannot be represented, only one pair or one for each index of an axis"
    door.refuse(ValueError, f"{rule}; {found}")


def _read(door: Door, argument: str, value: Any, array: np.ndarray) -> Any:
    """Parameters of `array`: a number as it is, a regular list read once, anything else as an array."""
    if value is None or isinstance(value, (Number, str, bytes, bytearray)):
        return value
    if not isinstance(value, (list, tuple, range)):
        return door.view(argument, value)
    entries = door.read(argument, value, most_entries(array.shape))
    try:
        _shape(entries)
    except Exception as error:
        door.refuse(TypeError, f"{argument} must be a number or a regular list of them, not {show(value)}", error)
    return entries


def _shape(entries: Any) -> tuple[int, ...]:
    """Of a number, a regular list of them or an array."""
    with np.errstate(all="ignore"):  # NumPy makes an array of the list, of one type
        return np.shape(entries)


def _scale(door: Door, value: Any) -> Any:
    """A scale as a QuantizedTensor takes it; small floats widened, float64 only where nothing is lost."""
    if isinstance(value, (Number, list, tuple, range, str, bytes, bytearray, type(None))):
        return value
    array = door.view("scale", value)
    if array.dtype.kind != "f" and (array.dtype.isbuiltin != 2 or is_complex(array.dtype)):
        return array
    with np.errstate(all="ignore"):  # a longdouble beyond float64, a signalling NaN
        if array.dtype.itemsize <= (4 if array.dtype.kind == "f" else 2):
            return array.astype(np.float32)  # not by way of float64: the thread may take small numbers for 0
        wide = array.astype(np.float64)
        narrow = to_float32(wide)
        kept = (to_float64(narrow).view(np.int64) == wide.view(np.int64)) | np.isnan(narrow)
    if not kept.all():
        rule = f"scale holds float64 values that float32 cannot hold: {show(value)}"
        door.refuse(ValueError, f"{rule}; round them to float32 if that is what you want")
    return narrow


def _scalar(entries: Any) -> Any:
    """The only entry of a vector of one; anything else as it is."""
    shape = _shape(entries)
    if shape and prod(shape) == 1:
        return np.asarray(entries).reshape(())
    return entries

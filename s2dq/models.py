"""What a model file says of its own input: the keywords of a Preprocessor, read instead of copied by hand.

LiteRT and ONNX files are read by `ai_edge_litert` and `onnx`, imported when they are used.
"""

import os
from collections.abc import Iterable
from math import prod
from typing import Any, NamedTuple, NoReturn, SupportsIndex

import numpy as np

from s2dq._typing import Blocks
from s2dq._validate import Door, guarded, show

__all__ = ["ModelInput", "read_input"]

FRAME_LAYOUTS = ("NHWC", "NCHW")
FLOATS = ("float16", "float32", "float64", "bfloat16")


class ModelInput(NamedTuple):
    """What a model says of one of its inputs.

    Attributes
    ----------
    name : str
        Of the input.
    shape : tuple of int or None
        Its extents, None where the model leaves them open.
    dtype : str
        Element type of the values that `scale` and `zero_point` speak of: "int8", "uint8" ... or "float32" for an
        input that is not quantized.
    scale : float or None
        Step between two quantized values; None where the model does not tell, and for floats.
    zero_point : int
        The quantized value that stands for 0.
    data_format : str
        The layout that the inputs of such files have by custom: "NHWC" for LiteRT, "NCHW" for ONNX.
    tensor : str
        The tensor that holds such values: the input itself or, where an ONNX model takes floats and quantizes them,
        what its QuantizeLinear writes.
    input_dtype : str
        Element type of the input itself: `dtype`, but for such an ONNX model "float32".

    See Also
    --------
    read_input : reads one from a file

    Examples
    --------
    >>> from s2dq.models import ModelInput
    >>> stem = ModelInput("images", (1, 320, 320, 12), "int8", 1 / 255, -128, "NHWC", "images", "int8")
    >>> stem.keywords(block_size=2)["size"]
    (640, 640)
    """

    name: str
    shape: tuple[int | None, ...]
    dtype: str
    scale: float | None
    zero_point: int
    data_format: str
    tensor: str
    input_dtype: str

    def keywords(
        self, block_size: Blocks = 1, channels: SupportsIndex = 3, data_format: str | None = None
    ) -> dict[str, Any]:
        """Give the keywords of a `s2dq.Preprocessor` whose result fits this input.

        A model that starts behind a space-to-depth stem takes (H/b, W/b, C*b*b): with `block_size` b the frame has
        b times the model's extents.

        Parameters
        ----------
        block_size : int or pair of int
            Space-to-depth block in pixels that the model expects to have been applied; 1 for none.
        channels : int
            Of the frames: 3 for RGB, 1 for grey.
        data_format : {"NHWC", "NCHW"}, optional
            Axes of the input. Files do not tell. By default the layout that is customary for them, or else the other
            one, whichever has ``channels * block area`` channels.

        Returns
        -------
        dict
            ``scale``, ``zero_point``, ``dtype``, ``data_format``, ``block_size`` and, unless the model leaves it
            open, ``size``.

        Raises
        ------
        TypeError
            An argument of the wrong kind; a `shape` of others than integers and None.
        ValueError
            An input without four dimensions, or another number of channels; an unknown layout.

        Examples
        --------
        >>> import s2dq
        >>> from s2dq.models import ModelInput
        >>> model_input = ModelInput("x", (1, 3, 224, 224), "uint8", 1 / 255, 0, "NCHW", "x", "uint8")
        >>> model_input.keywords()["data_format"]
        'NCHW'
        >>> s2dq.Preprocessor(**model_input.keywords()).size
        (224, 224)
        """
        return _keywords("ModelInput.keywords", self, block_size, channels, data_format)

    def unquantized(self) -> "ModelInput":
        """The same input as the model's own element type: what goes in before an ONNX model quantizes it.

        Returns
        -------
        ModelInput
            With `dtype` equal to `input_dtype`; without a scale if that is another type.

        Raises
        ------
        TypeError
            A `dtype` or `input_dtype` that is no str.

        Examples
        --------
        >>> from s2dq.models import ModelInput
        >>> ModelInput("x", (1, 3, 8, 8), "int8", 0.1, 4, "NCHW", "x_quantized", "float32").unquantized().tensor
        'x'
        """
        return _unquantized("ModelInput.unquantized", self)


def read_input(path: str | bytes | os.PathLike[str] | os.PathLike[bytes], name: str | None = None) -> ModelInput:
    """Read what a LiteRT or ONNX model says of its input.

    Of a .tflite file: the quantization parameters, type and shape of the input tensor. Of an .onnx file: type and
    shape of the graph's input, and scale and zero point of the DequantizeLinear that reads an integer input or of
    the QuantizeLinear that a float input goes through; the values are then what that QuantizeLinear would write.

    Parameters
    ----------
    path : str or os.PathLike
        A file whose name ends in .tflite or .onnx.
    name : str, optional
        Which input; may be left out if there is one.

    Returns
    -------
    ModelInput
        ``Preprocessor(**read_input(path).keywords())`` makes what the model takes.

    Raises
    ------
    ImportError
        ``ai-edge-litert`` or ``onnx`` is not installed: ``pip install "s2dq[litert]"`` or ``"s2dq[onnx]"``.
    OSError
        The file cannot be read.
    TypeError
        A `path` or a `name` of another kind.
    ValueError
        No such model file, no such input, several inputs and no `name`, or quantization that one scale and one
        zero point do not express.

    See Also
    --------
    s2dq.interop.from_litert, s2dq.interop.from_onnx : for tensors

    Notes
    -----
    `mean`, `std` and the order of the channels are not in the file: the model's author has to tell them.

    LiteRT can crash on a damaged .tflite file: read only files that you trust.

    References
    ----------
    LiteRT ``Interpreter.get_input_details``; ONNX QuantizeLinear and DequantizeLinear (a missing zero point is 0,
    of uint8 unless ``output_dtype`` says otherwise).

    Examples
    --------
    >>> from s2dq.models import read_input
    >>> read_input("notes.txt")
    Traceback (most recent call last):
        ...
    ValueError: read_input: the name of a model ends in .tflite or .onnx, not 'notes.txt'
    """
    path, name = _file_and_input("read_input", path, name)
    readers = {".tflite": _read_litert, ".onnx": _read_onnx}
    suffix = os.path.splitext(os.fsdecode(path))[1].lower()
    if suffix not in readers:
        _refuse(f"the name of a model ends in .tflite or .onnx, not {show(path)}")
    with open(path, "rb"):  # an OSError that names the file; not every reader has one
        pass
    return readers[suffix](path, name)


@guarded
def _file_and_input(function: str, path: Any, name: Any) -> tuple[str | bytes, str | None]:
    """Check the arguments of `read_input`."""
    door = Door(function)
    try:
        kept = os.fspath(path)
    except Exception as error:
        door.refuse(TypeError, f"path must be a str or a path, not {show(path)}", error)
    # Without what a subclass may have changed.
    kept = str.__str__(kept) if issubclass(type(kept), str) else bytes.__getitem__(kept, slice(None))
    try:
        unusable = b"\0" in os.fsencode(kept)
    except ValueError:  # a lone surrogate
        unusable = True
    if unusable:
        door.refuse(ValueError, f"path must be a name that a file can have, not {show(path)}")
    return kept, None if name is None else _text(door, "name", name)


def _text(door: Door, argument: str, value: Any) -> str:
    if not issubclass(type(value), str):
        door.refuse(TypeError, f"{argument} must be a str, not {show(value)}")
    return str.__str__(value)


def _refuse(text: str, cause: BaseException | None = None) -> NoReturn:
    raise ValueError(f"read_input: {text}") from cause


def _choose(path: str | bytes, names: list[str], name: str | None) -> str:
    """`name`, or the only one of `names`."""
    if not names:
        _refuse(f"{show(path)} has no inputs")
    listed = ", ".join(names)
    if name is None and len(names) != 1:
        _refuse(f"{show(path)} has {len(names)} inputs, name one of them: {listed}")
    if name is not None and name not in names:
        _refuse(f"{show(path)} has no input {show(name)}; it has: {listed}")
    return names[0] if name is None else name


def _scalar(what: str, scales: Any, zero_points: Any) -> tuple[float, int]:
    """``(scale, zero_point)`` of parameters that are the same for the whole tensor."""
    kind = np.asarray(zero_points).dtype
    scales, zero_points = (set(np.asarray(entries).ravel().tolist()) for entries in (scales, zero_points))
    if not scales:
        _refuse(f"{what} has no scale")
    for scale in scales:
        if not 0 < scale < np.inf:
            _refuse(f"{what} has the scale {scale}, which is not above 0 and finite")
    if zero_points and kind.kind not in "iu":
        _refuse(f"{what} has zero points of {kind}; a Preprocessor has an integer")
    if len(scales) != 1 or len(zero_points) > 1:
        _refuse(f"{what} has parameters per channel; a Preprocessor has one scale and one zero point")
    return float(scales.pop()), int(zero_points.pop()) if zero_points else 0


def _extents(values: Iterable[int | None]) -> tuple[int | None, ...]:
    return tuple(int(value) if value is not None and value > 0 else None for value in values)


# ---- LiteRT


def _read_litert(path: str | bytes, name: str | None) -> ModelInput:
    try:
        from ai_edge_litert.interpreter import Interpreter
    except ImportError as error:
        raise ImportError('reading .tflite files needs LiteRT: pip install "s2dq[litert]"') from error
    try:
        details = Interpreter(model_path=os.fsdecode(path)).get_input_details()
    except (RuntimeError, ValueError) as error:
        _refuse(f"{show(path)} is not a LiteRT model: {error}", error)
    name = _choose(path, [detail["name"] for detail in details], name)
    detail = next(detail for detail in details if detail["name"] == name)
    dtype = np.dtype(detail["dtype"]).name
    parameters = detail["quantization_parameters"]
    scale, zero_point = None, 0
    if len(parameters["scales"]) and dtype not in FLOATS:
        what = f"input {show(name)} of {show(path)}"
        scale, zero_point = _scalar(what, parameters["scales"], parameters["zero_points"])
    return ModelInput(name, _extents(detail["shape_signature"]), dtype, scale, zero_point, "NHWC", name, dtype)


# ---- ONNX


def _read_onnx(path: str | bytes, name: str | None) -> ModelInput:
    try:
        import onnx
    except ImportError as error:
        raise ImportError('reading .onnx files needs onnx: pip install "s2dq[onnx]"') from error
    try:
        return _onnx_input(onnx, path, name)
    except (MemoryError, OSError, ValueError):
        raise
    except Exception as error:  # protobuf's own, onnx's own, and whatever half a graph leads to
        _refuse(f"{show(path)} is not an ONNX model, or damaged: {type(error).__name__}: {error}", error)


def _onnx_input(onnx: Any, path: str | bytes, name: str | None) -> ModelInput:
    graph = onnx.load(path, load_external_data=False).graph  # the weights may be many GB, and elsewhere
    constants = {tensor.name: tensor for tensor in graph.initializer}
    inputs = {value.name: value.type for value in graph.input if value.name not in constants}
    name = _choose(path, list(inputs), name)
    what = f"input {show(name)} of {show(path)}"
    if not inputs[name].HasField("tensor_type"):
        _refuse(f"{what} is not a tensor")
    tensor_type = inputs[name].tensor_type
    shape = _extents(dim.dim_value if dim.HasField("dim_value") else None for dim in tensor_type.shape.dim)
    dtype = _onnx_dtype(onnx, tensor_type.elem_type)

    for node in (node for node in graph.node if node.op_type == "Constant"):
        for attribute in (attribute for attribute in node.attribute if attribute.name == "value"):
            constants[node.output[0]] = attribute.t
    wanted = "QuantizeLinear" if dtype in FLOATS else "DequantizeLinear"
    nodes = [node for node in graph.node if node.op_type == wanted and list(node.input[:1]) == [name]]
    read = {_onnx_parameters(onnx, what, node, dtype, constants, os.path.dirname(path)) for node in nodes}
    if len(read) > 1:
        _refuse(f"{what} goes through several {wanted} of different parameters")
    if not read:
        return ModelInput(name, shape, dtype, None, 0, "NCHW", name, dtype)
    ((scale, zero_point, stored),) = read
    tensor = nodes[0].output[0] if wanted == "QuantizeLinear" else name
    return ModelInput(name, shape, stored, scale, zero_point, "NCHW", tensor, dtype)


def _onnx_dtype(onnx: Any, element_type: int) -> str:
    return str(onnx.helper.tensor_dtype_to_np_dtype(element_type).name)


def _onnx_parameters(
    onnx: Any, what: str, node: Any, dtype: str, constants: dict[str, Any], directory: str | bytes
) -> tuple[float, int, str]:
    """``(scale, zero_point, dtype of the quantized values)`` of a QuantizeLinear or DequantizeLinear."""
    names = [name for name in node.input[1:] if name]
    attributes = {attribute.name: attribute.i for attribute in node.attribute}
    if attributes.get("block_size"):
        _refuse(f"{what} is quantized in blocks; a Preprocessor has one scale and one zero point")
    for name in names:
        if name not in constants:
            _refuse(f"the parameter {show(name)} of {what} is computed while the model runs")
    if not names:
        _refuse(f"the {node.op_type} of {what} has no scale")
    try:
        arrays = [onnx.numpy_helper.to_array(constants[name], directory) for name in names]
    except ValueError as error:  # fewer bytes than the shape says
        _refuse(f"the parameters of {what} are damaged: {error}", error)
    scale, zero_point = _scalar(what, arrays[0].astype(np.float64), arrays[1] if len(arrays) > 1 else [])
    if node.op_type == "DequantizeLinear":
        stored = dtype
    elif len(arrays) > 1:
        stored = arrays[1].dtype.name
    else:
        stored = _onnx_dtype(onnx, attributes.get("output_dtype") or onnx.TensorProto.UINT8)
    return scale, zero_point, stored


# ---- the input as it is without a QuantizeLinear, and the keywords


@guarded
def _unquantized(name: str, model: ModelInput) -> ModelInput:
    door = Door(name)
    dtype, wanted = _text(door, "dtype", model.dtype), _text(door, "input_dtype", model.input_dtype)
    if dtype == wanted:
        return model
    return model._replace(dtype=wanted, scale=None, zero_point=0, tensor=model.name)


@guarded
def _keywords(name: str, model: ModelInput, block_size: Any, channels: Any, data_format: Any) -> dict[str, Any]:
    door = Door(name)
    block = door.block_sizes("block_size", block_size, ("h", "w"))
    deep = door.integer("channels", channels, 1) * prod(block)
    customary = door.choice("data_format of the input", model.data_format, FRAME_LAYOUTS)
    layouts = [customary, *(layout for layout in FRAME_LAYOUTS if layout != customary)]
    if data_format is not None:
        layouts = [door.choice("data_format", data_format, FRAME_LAYOUTS)]
    shape = [
        None if extent is None else door.integer(f"shape[{i}] of the input", extent, 0)
        for i, extent in enumerate(door.items("shape of the input", model.shape, "a tuple of integers and None"))
    ]
    axes = "[" + ", ".join("?" if extent is None else show(extent) for extent in shape) + "]"
    if len(shape) != 4:
        door.refuse(ValueError, f"input {show(model.name)} of shape {axes} does not have four dimensions")
    sizes = [dict(zip(layout, shape)) for layout in layouts]
    fitting = [i for i, size in enumerate(sizes) if size["C"] in (None, deep)]
    if not fitting:
        found = " or ".join(f"{show(size['C'])} in {layout}" for layout, size in zip(layouts, sizes))
        rule = f"input {show(model.name)} of shape {axes} has {found} as its channels"
        wanted = f"{show(deep)}: {show(channels)} of the frame, block_size {show(block_size)}"
        door.refuse(ValueError, f"{rule}, not {wanted}")
    height, width = sizes[fitting[0]]["H"], sizes[fitting[0]]["W"]
    keywords = {
        "scale": model.scale,
        "zero_point": model.zero_point,
        "dtype": model.dtype,
        "data_format": layouts[fitting[0]],
        "block_size": block,
    }
    if height is not None and width is not None:
        keywords["size"] = (height * block[0], width * block[1])
    return keywords

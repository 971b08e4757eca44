"""Camera frames to quantized model input, and model output back to frames: one table and one pass."""

import inspect
from collections.abc import Callable
from struct import pack
from typing import Any, NamedTuple, NoReturn, SupportsIndex, TypeAlias, cast

import numpy as np

from s2dq import _kernels
from s2dq._layout import DepthProblem
from s2dq._lookup import Lookup, lookup_of
from s2dq._typing import Blocks, DTypeLike, Integers, Real, Reals, Viewable
from s2dq._validate import (
    UNMADE,
    Call,
    FrameSettings,
    frame_call,
    frame_margins,
    frame_settings,
    no_memory,
    post_call,
    post_settings,
    show,
)
from s2dq.operators import SLACK, Checked, program_of
from s2dq.quantized import QuantizedTensor

__all__ = ["Geometry", "Postprocessor", "Preprocessor"]


class Geometry(NamedTuple):
    """Where a frame lies on its canvas: ``x_frame = x_model - left``, ``y_frame = y_model - top``, in pixels."""

    top: int
    left: int


Programmed: TypeAlias = tuple[_kernels.Program, bytes, _kernels.Lookups]  # with fill values between


class _Prepared:
    """What Preprocessor and Postprocessor have in common: keywords, checked once, that never change."""

    _name: str  # Preprocessor or Postprocessor, also where a user's class is made from it
    _settings: FrameSettings
    _lookup: Lookup  # None where nothing is looked up: for results of floats
    _memo: _kernels.Memo

    scale: float | None
    zero_point: int
    dtype: str
    mean: float | tuple[float, ...] | None
    std: float | tuple[float, ...] | None
    rescale: float
    input_format: str
    data_format: str
    block_size: tuple[int, ...]
    mode: str
    vect: int
    reverse_channels: bool
    size: tuple[int, ...] | None
    pad_value: int | tuple[int, ...]
    num_threads: int | None

    def _programmed(self, call: Call[DepthProblem]) -> Programmed:
        """What runs a checked call."""
        raise NotImplementedError

    def _mapped(self, call: Call[DepthProblem], fill: bytes) -> Programmed:
        """... where bytes go through tables."""
        program = program_of(call.problem._replace(lookup=self._lookup.kind))
        return program, fill, _kernels.Lookups(program, fill, *self._lookup)

    def _made(self, argument: str, call: Call[DepthProblem], out: Any) -> Checked:
        """Run a checked call; or prepare it, where `out` says that it is not to be made."""
        try:
            program, fill, lookups = self._programmed(call)
            if out is UNMADE:
                prepared = _kernels.PreparedCall(call.x, call.out, program, fill, lookups, call.num_threads)
                return prepared, None, None, None, b"", None
            _kernels.run(program, call.x, call.out, fill, lookups, call.num_threads)
        except MemoryError as error:
            raise no_memory(self._name, argument, call.x) from error
        return call.result, call.x, call.out, program, fill, lookups

    def _settle(self, check: Callable[..., FrameSettings], *keywords: Any) -> FrameSettings:
        """Check the keywords, and show them as attributes of the same names, in canonical form."""
        if "_settings" in self.__dict__:
            raise AttributeError(f"{self._name}: a {self._name} never changes, make another one")
        settings = self.__dict__["_settings"] = check(self._name, *keywords)
        given = dict(zip(_KEYWORDS, keywords))
        self.__dict__.update(
            {name: value for name, value in settings._asdict().items() if name in _KEYWORDS},
            dtype=settings.dtype.name,
            block_size=settings.block,
            mean=None if given["mean"] is None else settings.mean,
            std=None if given["std"] is None else settings.std,
            num_threads=settings.num_threads or None,
        )
        return settings

    def _keywords(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _KEYWORDS}

    def __repr__(self) -> str:
        shown = (f"{name}={_shown(value)}" for name, value in self._keywords().items())
        return f"{self._name}({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        if not issubclass(type(other), _Prepared):  # not isinstance: that asks the other's own __class__
            return NotImplemented
        return self._identity() == cast(_Prepared, other)._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> tuple[Any, ...]:
        """What tells it from others: floats bit by bit, because -0.0 and 0.0 can give different results."""
        return self._name, *map(_bits, self._settings)

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"{self._name}: {name} cannot be set; a {self._name} never changes, make another one")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{self._name}: {name} cannot be deleted; a {self._name} never changes")

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self._keywords())


class Preprocessor(_Prepared):
    """Turn frames into the input of a model, in one pass.

    For grey level v and output channel c, computed once in float64 for all 256 levels::

        q = clip(rint(((v*rescale - mean[c]) / std[c]) / scale) + zero_point, qmin, qmax)

    and then every byte is looked up while it moves to its place: channel reversal, letterbox padding,
    space-to-depth and the change of layout happen in the same pass.

    It does no colour conversion and no resizing: those belong to Pillow or OpenCV.

    Parameters
    ----------
    scale : float
        Step between two quantized values, in normalised units; above 0 and finite as a float32. Required for
        integers, refused for floats.
    zero_point : int
        The quantized value that stands for 0; not for floats.
    dtype : {"int8", "uint8", "float32", "float16"}
        Type of the result. Floats hold the normalised values, ``(v*rescale - mean[c]) / std[c]``, rounded once.
    mean, std : float or sequence of float, optional
        Subtracted from, then divided into, the rescaled grey level: one number, or one per channel in the order of
        the *output* channels. `std` is above 0. The defaults are 0 and 1.
    rescale : float
        Factor from grey levels to the units of `mean`; 1/255 by default, so that frames run from 0 to 1.
    input_format : {"NHWC", "NCHW"}
        Axes of the frames, with or without N.
    data_format : {"NHWC", "NCHW", "NCHW_VECT_C"}
        Axes of the result.
    block_size : int or pair of int
        Space-to-depth block in pixels, (height, width) if a pair; 1 leaves the pixels where they are.
    mode : {"DCR", "CRD", "focus"}
        Order of the deep channels; see `s2dq.space_to_depth`.
    vect : int
        Lanes of a word for NCHW_VECT_C.
    reverse_channels : bool
        Read the channels backwards: BGR frames for an RGB model, or the other way round.
    size : int or pair of int, optional
        (H, W) of the canvas in pixels, an int for a square one. The frame is centred on it, the odd pixel of padding
        at the bottom or right; a larger frame is refused. Multiples of `block_size`.
    pad_value : int or sequence of int
        Grey level of the padding, 0 to 255: one, or one per output channel. It goes through the same table.
    num_threads : int, optional
        The largest team of threads to use; by default `set_num_threads` and the environment decide.

    Raises
    ------
    TypeError
        A keyword of the wrong kind, or another `dtype`.
    ValueError
        No `scale` for integers or one for floats, a number out of its range, an unknown name, or sequences that
        disagree about the channels.

    See Also
    --------
    Postprocessor : the way back
    s2dq.space_to_depth : the rearrangement
    s2dq.reference.preprocess : the same in plain NumPy

    Notes
    -----
    A Preprocessor never changes after it is made, can be pickled, and may be called from many threads. Its keywords
    are attributes of the same names. Frames are read in place, with their own strides: crops cost no copy. Spare
    lanes of a packed result hold 0.

    Frames of float32 go through the same formula in float32, an operation after the other and every constant rounded
    once; what is not a number becomes the zero point.

    References
    ----------
    ONNX QuantizeLinear for the rounding (half to even) and saturation; ``scale`` is rounded to float32, as models
    store it.

    Examples
    --------
    >>> import numpy as np, s2dq
    >>> pre = s2dq.Preprocessor(scale=1 / 255, zero_point=-128)
    >>> frame = np.array([[[0, 100, 255]]], np.uint8)
    >>> pre(frame)
    array([[[[-128,  -28,  127]]]], dtype=int8)

    A 480x640 frame for a network that takes 640x640, space-to-depth'ed, in words of four channels:

    >>> pre = s2dq.Preprocessor(scale=1 / 255, zero_point=-128, size=640, block_size=2, data_format="NCHW_VECT_C")
    >>> pre(np.zeros((480, 640, 3), np.uint8)).shape
    (1, 3, 320, 320, 4)
    >>> pre.geometry(480, 640)
    Geometry(top=80, left=0)
    """

    _name = "Preprocessor"
    _tables: np.ndarray

    def __init__(
        self,
        *,
        scale: Real | None = None,
        zero_point: SupportsIndex = 0,
        dtype: DTypeLike = "int8",
        mean: Reals | None = None,
        std: Reals | None = None,
        rescale: Real = 1 / 255,
        input_format: str = "NHWC",
        data_format: str = "NHWC",
        block_size: Blocks = 1,
        mode: str = "DCR",
        vect: SupportsIndex = 4,
        reverse_channels: bool | np.bool_ = False,
        size: Blocks | None = None,
        pad_value: Blocks = 114,
        num_threads: SupportsIndex | None = None,
    ) -> None:
        settings = self._settle(
            frame_settings, scale, zero_point, dtype, mean, std, rescale, input_format, data_format, block_size, mode,
            vect, reverse_channels, size, pad_value, num_threads,
        )  # fmt: skip
        tables = _kernels.rounding_to_nearest(_tables, settings)
        self.__dict__["_tables"] = tables
        self.__dict__["_lookup"] = lookup_of(tables) if settings.scale is not None else None
        self.__dict__["_memo"] = _kernels.Memo(self._first)

    def __call__(self, frames: Viewable, out: np.ndarray | None = None) -> np.ndarray:
        """Preprocess one frame or a batch.

        Parameters
        ----------
        frames : array_like of uint8 or float32, shape (H, W, C) or (N, H, W, C)
            Grey levels, 0 to 255 in floats too.
            (C, H, W) or (N, C, H, W) with ``input_format="NCHW"``. Read in place, whatever the strides.
        out : ndarray, optional
            Where to write: C-contiguous, of exactly the result's shape and dtype, not overlapping `frames`; a slot
            ``ring[i:i+1]`` of a preallocated ring will do.

        Returns
        -------
        ndarray
            `out`, or a fresh array; always with N. Its spatial extents are those of `size` (or of the frame) divided
            by `block_size`, its channels ``C*bH*bW``.

        Raises
        ------
        TypeError
            Frames that are no array of uint8 or float32; an `out` of another kind or dtype.
        ValueError
            A frame larger than `size`, or not divisible by `block_size`; another number of channels than the keywords
            tell; an unfit `out`.
        MemoryError
            No memory for the result.

        Examples
        --------
        >>> import numpy as np, s2dq
        >>> pre = s2dq.Preprocessor(scale=1.0, rescale=1.0, dtype="uint8", size=2)
        >>> ring = np.empty((8, 2, 2, 1), np.uint8)
        >>> pre(np.full((1, 2, 1), 7, np.uint8), out=ring[3:4])[0, ..., 0]
        array([[  7,   7],
               [114, 114]], dtype=uint8)
        """
        return self._memo.call(frames, out, self.num_threads, ())

    def _first(self, frames: Any, out: Any, num_threads: Any, arguments: tuple[Any, ...]) -> Checked:
        """A call unlike the last ones."""
        return self._made("frames", frame_call("Preprocessor", self._settings, frames, out), out)

    def _programmed(self, call: Call[DepthProblem]) -> Programmed:
        fill = _kernels.rounding_to_nearest(_fill, self._settings, self._tables, call.x.dtype)
        if not call.problem.staged:
            return self._mapped(call, fill)
        program = program_of(call.problem)
        return program, fill, _kernels.rounding_to_nearest(self._staged, program, fill, call.x.dtype)

    def _staged(self, program: _kernels.Program, fill: bytes, source: np.dtype[Any]) -> _kernels.Lookups:
        """How elements of `source` become those of the result."""
        settings, count = self._settings, self._settings.channels or 1
        with np.errstate(all="ignore"):
            mean, std = (np.full(count, number, np.float32) for number in (settings.mean, settings.std))
        tables = self._tables.view(np.uint8).reshape(-1)
        return _kernels.staged(program, fill, source, settings.dtype, tables, settings.rescale, mean, std,
                               settings.scale or 1.0, settings.zero_point)

    def geometry(self, height: SupportsIndex, width: SupportsIndex) -> Geometry:
        """Where a frame lies on the canvas.

        Parameters
        ----------
        height, width : int
            Of the frame, in pixels.

        Returns
        -------
        Geometry
            ``(top, left)``: rows above and columns left of the frame, in pixels before space-to-depth. A box found at
            (x, y) lies at (x - left, y - top) in the frame.

        Raises
        ------
        TypeError
            Not integers.
        ValueError
            A frame larger than `size`, or not divisible by `block_size` where there is no `size`.

        Examples
        --------
        >>> import s2dq
        >>> s2dq.Preprocessor(scale=1 / 255, size=(4, 5)).geometry(3, 2)
        Geometry(top=0, left=1)
        """
        return Geometry(*frame_margins("Preprocessor.geometry", self._settings, height, width))

    def inverse(self) -> "Postprocessor":
        """The way back, for models that give what they take.

        Returns
        -------
        Postprocessor
            With the same keywords.

        Raises
        ------
        TypeError
            A `dtype` that a Postprocessor does not take.

        Notes
        -----
        ``pre.inverse()(pre(frames), frame=(H, W))`` gives frames of H x W back, exactly so wherever a quantization
        step is finer than a grey level and no level saturates. Channels that leave spare lanes in packed words come
        back with them, unless `mean`, `std` or `pad_value` are sequences and tell how many there are.

        Examples
        --------
        >>> import numpy as np, s2dq
        >>> pre = s2dq.Preprocessor(scale=1 / 255, zero_point=-128, size=4, block_size=2)
        >>> frame = np.arange(9, dtype=np.uint8).reshape(3, 3, 1)
        >>> pre.inverse()(pre(frame), frame=(3, 3))[0, ..., 0]
        array([[0, 1, 2],
               [3, 4, 5],
               [6, 7, 8]], dtype=uint8)
        """
        return Postprocessor(**self._keywords())


_KEYWORDS = tuple(name for name in inspect.signature(Preprocessor).parameters)


def _bits(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_bits, value))
    return pack("d", value) if isinstance(value, float) else value


def _shown(value: Any) -> str:
    """The repr, with something in place of integers that are too long for Python to print."""
    try:
        return repr(value)
    except ValueError:
        return f"({', '.join(map(show, value))})" if isinstance(value, tuple) else show(value)


def _rebuild(kind: Callable[..., _Prepared], keywords: dict[str, Any]) -> _Prepared:
    return kind(**keywords)


def _tables(settings: FrameSettings) -> np.ndarray:
    """What every grey level becomes, shape (1, 256) or (channels, 256)."""
    count = settings.channels or 1
    levels = np.arange(256, dtype=np.float64)
    mean = np.broadcast_to(settings.mean, count)[:, np.newaxis]
    std = np.broadcast_to(settings.std, count)[:, np.newaxis]
    values: np.ndarray
    with np.errstate(all="ignore"):  # infinities saturate like any other large value
        values = (levels * settings.rescale - mean) / std
        if settings.scale is not None:
            info = np.iinfo(settings.dtype)
            steps = np.rint(values / np.float64(np.float32(settings.scale)))
            values = np.clip(steps + settings.zero_point, info.min, info.max)
        return values.astype(settings.dtype)


def _fill(settings: FrameSettings, tables: np.ndarray, source: np.dtype) -> bytes:
    """Fill values of a run: the lane element 0, then what the pad level of each channel becomes."""
    levels = np.broadcast_to(settings.pad_value, len(tables))
    pads: np.ndarray
    if source == np.uint8:
        pads = tables[np.arange(len(tables)), levels]
    else:
        with np.errstate(all="ignore"):
            mean, std = (np.asarray(number, np.float32) for number in (settings.mean, settings.std))
            level = levels.astype(np.float32)
            pads = np.broadcast_to((level * np.float32(settings.rescale) - mean) / std, len(tables))
            if settings.scale is not None:
                info = np.iinfo(settings.dtype)
                steps = np.rint(pads / np.float32(settings.scale)) + settings.zero_point
                pads = np.clip(np.where(np.isnan(steps), settings.zero_point, steps), info.min, info.max)
            pads = pads.astype(settings.dtype)
    return np.zeros(1, settings.dtype).tobytes() + pads.tobytes() + SLACK


# ---------------------------------------------------------------------------------------------- the way back


class Postprocessor(_Prepared):
    """Turn the quantized output of a model into uint8 frames, in one pass: the way back of a `Preprocessor`.

    For the stored value q of a model's channel c, computed once in float64 for all 256 values::

        v = clip(rint((((q - zero_point) * scale) * std[c] + mean[c]) / rescale), 0, 255)

    and then every byte is looked up while it moves to its place: depth-to-space, the change of layout, channel
    reversal and the crop of the frame happen in the same pass. The keywords are those of the Preprocessor whose work
    is undone; see `Preprocessor.inverse`.

    Parameters
    ----------
    scale : float
        Step between two quantized values, in normalised units; above 0 and finite as a float32. Required.
    zero_point : int
        The quantized value that stands for 0.
    dtype : {"int8", "uint8"}
        Type of the tensors.
    mean, std : float or sequence of float, optional
        What the normalised values are multiplied with (`std`) and what is added then (`mean`): one number, or one per
        channel in the order of the model's channels. `std` is above 0. The defaults are 0 and 1.
    rescale : float
        Factor from grey levels to the units of `mean`, which the sum is divided by; 1/255 by default.
    input_format : {"NHWC", "NCHW"}
        Axes of the frames: what goes into the Preprocessor comes out here.
    data_format : {"NHWC", "NCHW", "NCHW_VECT_C"}
        Axes of the tensors, with or without N.
    block_size : int or pair of int
        Depth-to-space block in pixels, (height, width) if a pair; 1 leaves the pixels where they are.
    mode : {"DCR", "CRD", "focus"}
        Order of the deep channels; see `s2dq.depth_to_space`.
    vect : int
        Lanes of a word for NCHW_VECT_C.
    reverse_channels : bool
        Write the channels backwards: BGR frames from an RGB model, or the other way round.
    size : int or pair of int, optional
        (H, W) of the canvas in pixels, an int for a square one: what depth-to-space has to give. By default, whatever
        it gives.
    pad_value : int or sequence of int
        Grey level of a Preprocessor's padding, checked and kept; but a sequence tells the number of channels.
    num_threads : int, optional
        The largest team of threads to use; by default `set_num_threads` and the environment decide.

    Raises
    ------
    TypeError
        A keyword of the wrong kind, or a `dtype` other than int8 and uint8.
    ValueError
        No `scale`, a number out of its range, an unknown name, or sequences that disagree about the channels.

    See Also
    --------
    Preprocessor : the way there
    s2dq.depth_to_space : the rearrangement
    s2dq.reference.postprocess : the same in plain NumPy

    Notes
    -----
    A Postprocessor never changes after it is made, can be pickled, and may be called from many threads. Its keywords
    are attributes of the same names. Tensors are read in place, with their own strides.

    References
    ----------
    ONNX DequantizeLinear, but in float64 to the last step; ``scale`` is rounded to float32, as models store it.

    Examples
    --------
    >>> import numpy as np, s2dq
    >>> post = s2dq.Postprocessor(scale=1 / 255, zero_point=-128)
    >>> post(np.array([[[-128, -28, 127]]], np.int8))
    array([[[[  0, 100, 255]]]], dtype=uint8)

    The output of an image-to-image model, in words of four channels, as the 480x640 frame that went in:

    >>> post = s2dq.Postprocessor(
    ...     scale=1 / 255, zero_point=-128, size=640, block_size=2, data_format="NCHW_VECT_C"
    ... )
    >>> post(np.zeros((1, 3, 320, 320, 4), np.int8), frame=(480, 640)).shape
    (1, 480, 640, 3)
    """

    _name = "Postprocessor"

    def __init__(
        self,
        *,
        scale: Real | None = None,
        zero_point: SupportsIndex = 0,
        dtype: DTypeLike = "int8",
        mean: Reals | None = None,
        std: Reals | None = None,
        rescale: Real = 1 / 255,
        input_format: str = "NHWC",
        data_format: str = "NHWC",
        block_size: Blocks = 1,
        mode: str = "DCR",
        vect: SupportsIndex = 4,
        reverse_channels: bool | np.bool_ = False,
        size: Blocks | None = None,
        pad_value: Blocks = 114,
        num_threads: SupportsIndex | None = None,
    ) -> None:
        settings = self._settle(
            post_settings, scale, zero_point, dtype, mean, std, rescale, input_format, data_format, block_size, mode,
            vect, reverse_channels, size, pad_value, num_threads,
        )  # fmt: skip
        self.__dict__["_lookup"] = lookup_of(_kernels.rounding_to_nearest(_grey_tables, settings))
        self.__dict__["_memo"] = _kernels.Memo(self._first)

    def __call__(
        self, tensor: Viewable | QuantizedTensor, out: np.ndarray | None = None, *, frame: Integers | None = None
    ) -> np.ndarray:
        """Make frames of one tensor or a batch.

        Parameters
        ----------
        tensor : array_like of `dtype`, shape (N, H, W, C) or as `data_format` says, or the same without N
            Read in place, whatever the strides. Or a `QuantizedTensor` with the scale and zero point of the keywords.
            All lanes of packed words are channels, unless `mean`, `std` or `pad_value` tell how many there are.
        out : ndarray of uint8, optional
            Where to write: C-contiguous, of exactly the result's shape, not overlapping `tensor`.
        frame : pair of int, optional
            (height, width) of the frame to cut out of the canvas, from where `Preprocessor.geometry` has it; by
            default the whole canvas. Without `size` no canvas is larger than its frame.

        Returns
        -------
        ndarray of uint8
            `out`, or a fresh array; shape (N, height, width, ``C/(bH*bW)``), or as `input_format` says, always with N.

        Raises
        ------
        TypeError
            A tensor that is no array of `dtype`; a frame that is no pair of integers; an `out` of another kind or
            dtype.
        ValueError
            A canvas other than `size`, another number of channels or lanes than the keywords tell, channels that the
            block does not divide, a QuantizedTensor of other parameters, a frame that does not fit the canvas, an
            unfit `out`.
        MemoryError
            No memory for the result.

        Examples
        --------
        >>> import numpy as np, s2dq
        >>> post = s2dq.Postprocessor(scale=1.0, rescale=1.0, dtype="uint8", size=(2, 4))
        >>> canvas = np.arange(8, dtype=np.uint8).reshape(1, 2, 4, 1)
        >>> post(canvas, frame=(2, 2))[0, ..., 0]
        array([[1, 2],
               [5, 6]], dtype=uint8)
        """
        return self._memo.call(tensor, out, self.num_threads, (frame,))

    def _first(self, tensor: Any, out: Any, num_threads: Any, arguments: tuple[Any, ...]) -> Checked:
        """A call unlike the last ones."""
        call = post_call("Postprocessor", self._settings, QuantizedTensor, tensor, out, *arguments)
        return self._made("tensor", call, out)

    def _programmed(self, call: Call[DepthProblem]) -> Programmed:
        return self._mapped(call, _NO_FILL)


_NO_FILL = bytes(2) + SLACK  # frames have neither spare lanes nor padding


def _grey_tables(settings: FrameSettings) -> np.ndarray:
    """The grey levels of stored bytes, shape (1, 256) or (channels, 256)."""
    count = settings.channels or 1
    stored = np.arange(256, dtype=np.uint8).view(settings.dtype).astype(np.float64)
    mean = np.broadcast_to(settings.mean, count)[:, np.newaxis]
    std = np.broadcast_to(settings.std, count)[:, np.newaxis]
    with np.errstate(all="ignore"):  # infinities saturate like any other large value
        numbers = (stored - settings.zero_point) * np.float64(np.float32(settings.scale))
        levels: np.ndarray = np.rint((numbers * std + mean) / settings.rescale)
    return levels.clip(0, 255).astype(np.uint8)

"""Camera frames to quantized model input: one table and one pass."""

import inspect
from typing import NamedTuple

import numpy as np

from s2dq import _kernels
from s2dq._lookup import lookup_of
from s2dq._validate import FrameSettings, frame_call, frame_margins, frame_settings
from s2dq.operators import SLACK, program_of

__all__ = ["Geometry", "Preprocessor"]


class Geometry(NamedTuple):
    """Where a frame lies on its canvas: ``x_frame = x_model - left``, ``y_frame = y_model - top``, in pixels."""

    top: int
    left: int


class Preprocessor:
    """Turn frames into the input of a model, in one pass.

    For grey level v and output channel c, computed once in float64 for all 256 levels,

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

    def __init__(
        self,
        *,
        scale=None,
        zero_point=0,
        dtype="int8",
        mean=None,
        std=None,
        rescale=1 / 255,
        input_format="NHWC",
        data_format="NHWC",
        block_size=1,
        mode="DCR",
        vect=4,
        reverse_channels=False,
        size=None,
        pad_value=114,
        num_threads=None,
    ):
        if "_settings" in self.__dict__:
            raise AttributeError("Preprocessor: a Preprocessor never changes, make another one")
        self.__dict__["_settings"] = frame_settings(
            "Preprocessor", scale, zero_point, dtype, mean, std, rescale, input_format, data_format, block_size, mode,
            vect, reverse_channels, size, pad_value, num_threads,
        )  # fmt: skip
        # Attributes in canonical form, under the names of the keywords.
        settings = self._settings
        self.__dict__.update(
            {name: value for name, value in settings._asdict().items() if name in _KEYWORDS},
            dtype=settings.dtype.name,
            block_size=settings.block,
            mean=None if mean is None else settings.mean,
            std=None if std is None else settings.std,
            num_threads=settings.num_threads or None,
        )
        tables = _kernels.rounding_to_nearest(_tables, settings)
        self.__dict__["_tables"] = tables
        self.__dict__["_lookup"] = lookup_of(tables) if settings.scale is not None else None
        self.__dict__["_memo"] = _kernels.Memo(self._first)

    def __call__(self, frames, out=None):
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

    def _first(self, frames, out, num_threads, arguments):
        """A call unlike the last ones."""
        call = frame_call("Preprocessor", self._settings, frames, out)
        fill = _kernels.rounding_to_nearest(_fill, self._settings, self._tables, call.x.dtype)
        if call.problem.staged:
            program = program_of(call.problem)
            lookups = self._staged(program, fill, call.x.dtype)
        else:
            program = program_of(call.problem._replace(lookup=self._lookup.kind))
            lookups = _kernels.Lookups(program, fill, *self._lookup)
        _kernels.run(program, call.x, call.out, fill, lookups, call.num_threads)
        # What is remembered is the caller's array, with or without N.
        seen = frames if type(frames) is np.ndarray else call.x
        return call.result, seen, call.out, program, fill, lookups

    def _staged(self, program, fill, source):
        """How elements of `source` become those of the result."""
        settings, count = self._settings, self._settings.channels or 1
        mean, std = (
            np.broadcast_to(_kernels.rounding_to_nearest(np.float32, number), count).copy()
            for number in (settings.mean, settings.std)
        )
        tables = self._tables.view(np.uint8).reshape(-1)
        return _kernels.staged(program, fill, source, settings.dtype, tables, settings.rescale, mean, std,
                               settings.scale or 1.0, settings.zero_point)

    def geometry(self, height, width):
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

    def __repr__(self):
        shown = (f"{name}={getattr(self, name)!r}" for name in _KEYWORDS)
        return f"Preprocessor({', '.join(shown)})"

    def __eq__(self, other):
        return self._settings == other._settings if isinstance(other, Preprocessor) else NotImplemented

    def __hash__(self):
        return hash(self._settings)

    def __setattr__(self, name, value):
        raise AttributeError(f"Preprocessor: {name} cannot be set; a Preprocessor never changes, make another one")

    def __delattr__(self, name):
        raise AttributeError(f"Preprocessor: {name} cannot be deleted; a Preprocessor never changes")

    def __reduce__(self):
        return _rebuild, (type(self), {name: getattr(self, name) for name in _KEYWORDS},)


_KEYWORDS = tuple(name for name in inspect.signature(Preprocessor).parameters)


def _rebuild(kind, keywords):
    return kind(**keywords)


def _tables(settings: FrameSettings) -> np.ndarray:
    """What every grey level becomes, shape (1, 256) or (channels, 256)."""
    count = settings.channels or 1
    levels = np.arange(256, dtype=np.float64)
    mean = np.broadcast_to(settings.mean, count)[:, np.newaxis]
    std = np.broadcast_to(settings.std, count)[:, np.newaxis]
    with np.errstate(over="ignore"):  # infinities saturate like any other large value
        normalised = (levels * settings.rescale - mean) / std
        if settings.scale is None:
            return normalised.astype(settings.dtype)
        steps = np.rint(normalised / np.float64(np.float32(settings.scale)))
    info = np.iinfo(settings.dtype)
    return np.clip(steps + settings.zero_point, info.min, info.max).astype(settings.dtype)


def _fill(settings: FrameSettings, tables: np.ndarray, source: np.dtype) -> bytes:
    """Fill values of a run: the lane element 0, then what the pad level of each channel becomes."""
    levels = np.broadcast_to(settings.pad_value, len(tables))
    if source == np.uint8:
        pads = tables[np.arange(len(tables)), levels]
    else:
        mean, std, level = np.float32(settings.mean), np.float32(settings.std), levels.astype(np.float32)
        with np.errstate(over="ignore"):
            pads = np.broadcast_to((level * np.float32(settings.rescale) - mean) / std, len(tables))
            if settings.scale is not None:
                info = np.iinfo(settings.dtype)
                pads = np.clip(np.rint(pads / np.float32(settings.scale)) + settings.zero_point, info.min, info.max)
            pads = pads.astype(settings.dtype)
    return np.zeros(1, settings.dtype).tobytes() + pads.tobytes() + SLACK

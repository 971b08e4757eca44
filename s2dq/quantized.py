"""Quantized tensors: integers with the scale and the zero point that say what they stand for.

A stored value q stands for ``(q - zero_point) * scale``, with one pair of parameters for the whole tensor or one for
each index of an axis. The operators move the integers (`operators.Operation` says how they ask); where the parameters
of an axis go is decided here.
"""

from math import prod
from typing import Any, NamedTuple, NoReturn, Protocol, SupportsIndex, final, overload

import numpy as np
from numpy.typing import NDArray

from s2dq import _kernels
from s2dq._layout import (
    BatchProblem,
    DepthProblem,
    Loops,
    channels_first,
    deep_digits,
    loops_of,
    parts,
    spatial_word,
    words,
)
from s2dq._lookup import Lookup, lookup_of
from s2dq._typing import Array, Blocks, DTypeLike, Reals, Viewable
from s2dq._validate import (
    Call,
    Parameters,
    Snapshot,
    check_equal,
    check_packed,
    dequantize_call,
    no_memory,
    quantize_call,
    refuse_tensor,
    requantize_call,
    snapshot,
    tensor_parts,
)
from s2dq.operators import SLACK, Operation, program_of

__all__ = ["QuantizedTensor", "dequantize", "quantize", "requantize"]


class Pair(Protocol):
    """What has the parameters of a tensor: a QuantizedTensor, or the parameters alone."""

    @property
    def scale(self) -> NDArray[np.float32]: ...

    @property
    def zero_point(self) -> NDArray[np.int32]: ...

    @property
    def axis(self) -> int | None: ...


@final
class QuantizedTensor:
    """Integers with a scale and a zero point: ``number = (value - zero_point) * scale``.

    All operators take one and give one back: values are moved, never changed, paddings hold the zero point, and
    parameters per channel follow their channels.

    Parameters
    ----------
    values : array_like of int8, uint8, int16, uint16 or int32
        What is stored; viewed in place, with its own strides and byte order.
    scale : float, or float array of shape (C,)
        Step between two values; finite and above 0 once rounded to float32. One number, or one for each index of
        `axis`.
    zero_point : int, or int array of shape (C,)
        The value that stands for 0, within the dtype of `values`. Where only one of `scale` and `zero_point` is a
        single number, it is meant for every index.
    axis : int, optional
        Along which axis the parameters lie; C is its extent. Required for them, refused for single numbers. A packed
        tensor (N, words, H, W, V) may have one pair for each of its words*V lanes along axis 1; spare lanes have
        scale 1 and zero point 0.

    Attributes
    ----------
    values : ndarray
        Read-only; but where an operator or `quantize` was given `out`, that very array.
    scale : ndarray of float32
    zero_point : ndarray of int32
        Without dimensions, or of shape (C,). Read-only.
    axis : int or None
        From 0 on.
    shape : tuple of int
    dtype : dtype
    ndim : int
        Of `values`.

    Raises
    ------
    TypeError
        Values of another dtype, a scale that is no real number, a zero point or an axis that is no integer.
    ValueError
        A scale that is not above 0 and finite as a float32, a zero point outside the dtype, an axis that is not
        there, parameters of another length than their axis, or of one entry or more without an axis.

    See Also
    --------
    quantize : from real numbers
    dequantize : back to them
    requantize : to another scale, zero point or type

    Notes
    -----
    A QuantizedTensor never changes and can be pickled and copied. ``==`` compares type, shape, values, axis and
    parameters, bit by bit, and gives one bool. It has no hash, because it does not own the memory of its values. It is
    no array: ``numpy.asarray`` and arithmetic raise TypeError, since either reading of it, the integers or the numbers
    they stand for, would be wrong half of the time. Take `values` or `dequantize`. It cannot be subclassed.

    References
    ----------
    ONNX QuantizeLinear and DequantizeLinear; LiteRT's ``quantization_parameters``; NNAPI's TENSOR_QUANT8_ASYMM and
    TENSOR_QUANT8_ASYMM_SIGNED, whose rule it is that moving operators keep scale and zero point.

    Examples
    --------
    >>> import numpy as np, s2dq
    >>> q = s2dq.QuantizedTensor(np.array([[-3, 0, 5]], np.int8), 0.5, -3)
    >>> q
    QuantizedTensor([[-3,  0,  5]], dtype=int8, scale=0.5, zero_point=-3)
    >>> q.dequantize()
    array([[0. , 1.5, 4. ]], dtype=float32)

    Each channel with a scale of its own, which follows it through the operators:

    >>> q = s2dq.QuantizedTensor(np.zeros((1, 2, 2, 2), np.int8), [0.5, 0.25], 0, axis=3)
    >>> s2dq.space_to_depth(q, 2).scale
    array([0.5 , 0.25, 0.5 , 0.25, 0.5 , 0.25, 0.5 , 0.25], dtype=float32)
    """

    __slots__ = ("values", "scale", "zero_point", "axis", "__weakref__")

    values: np.ndarray
    scale: NDArray[np.float32]
    zero_point: NDArray[np.int32]
    axis: int | None

    def __new__(
        cls, values: Viewable, scale: Reals, zero_point: Blocks, *, axis: SupportsIndex | None = None
    ) -> "QuantizedTensor":
        return made_of(*tensor_parts("QuantizedTensor", values, scale, zero_point, axis))

    def __init_subclass__(cls, **keywords: Any) -> NoReturn:
        raise TypeError("QuantizedTensor cannot be subclassed")

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of `values`."""
        return self.values.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of `values`."""
        return self.values.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.values.ndim

    @overload
    def dequantize(self, *, out: None = ..., num_threads: SupportsIndex | None = ...) -> NDArray[np.float32]: ...

    @overload
    def dequantize(self, *, out: Array, num_threads: SupportsIndex | None = ...) -> Array: ...

    def dequantize(self, *, out: np.ndarray | None = None, num_threads: SupportsIndex | None = None) -> np.ndarray:
        """The numbers that the values stand for; see `s2dq.dequantize`.

        Parameters
        ----------
        out : ndarray of float16, float32 or float64, optional
            Where to write.
        num_threads : int, optional
            The largest team of threads to use.

        Returns
        -------
        ndarray
            `out`, or a fresh array of float32.

        Raises
        ------
        TypeError, ValueError, MemoryError
            As `s2dq.dequantize`.

        Examples
        --------
        >>> import numpy as np, s2dq
        >>> q = s2dq.QuantizedTensor(np.array([-128, 0, 127], np.int8), 0.5, -128)
        >>> q.dequantize()
        array([  0. ,  64. , 127.5], dtype=float32)
        """
        return dequantize(self, out=out, num_threads=num_threads)

    def __repr__(self) -> str:
        head = "QuantizedTensor("
        parts = [np.array2string(self.values, separator=", ", prefix=head), f"dtype={self.dtype}"]
        if not 0 < self.values.size <= np.get_printoptions()["threshold"]:
            parts.append(f"shape={self.shape}")
        parts += [f"scale={_shown(self.scale)}", f"zero_point={_shown(self.zero_point)}"]
        if self.axis is not None:
            parts.append(f"axis={self.axis}")
        return f"{head}{', '.join(parts)})"

    def __eq__(self, other: object) -> bool:
        if type(other) is not QuantizedTensor:
            return NotImplemented
        mine, theirs = snapshot(self), snapshot(other)
        if mine is None or theirs is None:
            return self is other
        return (
            mine.values.dtype == theirs.values.dtype
            and mine.shape == theirs.shape
            and mine.axis == theirs.axis
            and np.array_equal(_pairs(mine), _pairs(theirs))
            and np.array_equal(mine.values, theirs.values)
        )

    __hash__ = None  # type: ignore[assignment]  # the one way to say so
    __array_ufunc__ = None

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        raise TypeError("a QuantizedTensor is no array: take its .values, or .dequantize() it")

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"QuantizedTensor: {name} cannot be set; a QuantizedTensor never changes")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"QuantizedTensor: {name} cannot be deleted; a QuantizedTensor never changes")

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.values, self.scale, self.zero_point, self.axis)

    def __s2dq_move__(
        self, operation: Operation, out: Any, num_threads: Any, arguments: tuple[Any, ...]
    ) -> "QuantizedTensor":
        """What an operator makes of this tensor; see `s2dq.operators.Operation`."""
        taken = snapshot(self)
        if taken is None:
            refuse_tensor(operation.name, "x", QuantizedTensor, self)
        if taken.axis is None:
            if operation.pads and arguments[-1] is None:
                arguments = (*arguments[:-1], int(taken.zero_point))
            values = operation.run(taken.values, out, num_threads, arguments)
            own = Parameters(taken.scale.copy(), taken.zero_point.copy(), None)
            own.scale.flags.writeable = own.zero_point.flags.writeable = False
            return made_of(values, own, keep=out is not None)
        call = operation.check(taken.values, out, num_threads, arguments)
        pads = None
        try:
            if isinstance(call.problem, DepthProblem):
                parameters, padding = _followed_depth(taken, operation.name, call.problem)
            else:
                parameters, padding = _followed_batch(taken, operation.name, call.problem)
            if operation.pads and arguments[-1] is None:
                call, pads = _with_padding(call, padding)
        except MemoryError as error:
            raise no_memory(operation.name, "x", call.x) from error
        operation.execute(call, pads)
        return made_of(call.result, parameters, keep=out is not None)


def made_of(values: np.ndarray, parameters: Parameters, keep: bool = False) -> QuantizedTensor:
    """A tensor of what has been checked; `keep` leaves the flags of an array that is the caller's own."""
    if not keep:
        values.flags.writeable = False
    tensor = object.__new__(QuantizedTensor)
    for name, part in zip(("values", *parameters._fields), (values, *parameters)):
        object.__setattr__(tensor, name, part)
    return tensor


def _rebuild(values: np.ndarray, scale: np.ndarray, zero_point: np.ndarray, axis: int | None) -> QuantizedTensor:
    return QuantizedTensor(values, scale, zero_point, axis=axis)


def _shown(entries: np.ndarray) -> str:
    return np.array2string(entries, separator=", ", threshold=12, edgeitems=3)


# ------------------------------------------------------------------------------------------------ arithmetic


def quantize(
    x: Viewable, scale: Reals, zero_point: Blocks, dtype: DTypeLike = "int8", *, axis: SupportsIndex | None = None,
    out: np.ndarray | None = None, num_threads: SupportsIndex | None = None,
) -> QuantizedTensor:  # fmt: skip
    """Turn real numbers into a quantized tensor.

    With one scale and zero point for all, or one for each index of `axis`::

        q = clip(rint(x / scale) + zero_point, qmin, qmax)

    in which `rint` rounds half to even. NaN becomes the zero point, infinities saturate.

    Parameters
    ----------
    x : array_like of float16, float32 or float64
        Read in place, whatever its strides and byte order.
    scale : float, or float array of shape (C,)
        Step between two values; finite and above 0 once rounded to float32.
    zero_point : int, or int array of shape (C,)
        The value that stands for 0, within `dtype`.
    dtype : {"int8", "uint8", "int16", "uint16", "int32"}
        Type of the values.
    axis : int, optional
        Along which axis of `x` the parameters lie; see `QuantizedTensor`.
    out : ndarray, optional
        Where to write the values: C-contiguous, of the shape of `x` and exactly `dtype`, not overlapping `x`.
    num_threads : int, optional
        The largest team of threads to use; by default `set_num_threads` and the environment decide.

    Returns
    -------
    QuantizedTensor
        Of the shape of `x`; its `values` are `out`, or a fresh C-contiguous array.

    Raises
    ------
    TypeError
        An `x` of another dtype, another `dtype`, parameters that are no numbers, an `out` of another kind or dtype.
    ValueError
        Parameters that are out of range or do not fit `axis`; an unfit `out`.
    MemoryError
        No memory for the result.

    See Also
    --------
    dequantize : the way back
    s2dq.reference.quantize : the same in plain NumPy

    Notes
    -----
    float16 is widened, and divided in float32; float64 is divided in float64 by the float32 scale. The result depends
    neither on threads and instruction sets nor on how the calling thread rounds or treats subnormal numbers.

    References
    ----------
    ONNX QuantizeLinear, which leaves NaN open.

    Examples
    --------
    >>> import numpy as np, s2dq
    >>> s2dq.quantize(np.array([-0.75, -0.25, 0.25, 0.75, 1e9, np.nan], np.float32), 0.5, 10)
    QuantizedTensor([  8,  10,  10,  12, 127,  10], dtype=int8, scale=0.5, zero_point=10)
    >>> s2dq.quantize(np.ones((2, 2), np.float32), [0.5, 0.125], 0, "uint8", axis=1)
    QuantizedTensor([[2, 8],
                     [2, 8]], dtype=uint8, scale=[0.5  , 0.125], zero_point=[0, 0], axis=1)
    """
    call = quantize_call("quantize", x, scale, zero_point, dtype, axis, out, num_threads)
    try:
        along = _along(call.x.shape, call.parameters)
        _kernels.convert(call.x, call.out, None, _spread(call.parameters, along), along[:3], call.num_threads)
    except MemoryError as error:
        raise no_memory("quantize", "x", call.x) from error
    return made_of(call.result, call.parameters, keep=out is not None)


@overload
def dequantize(
    q: QuantizedTensor, *, out: None = ..., num_threads: SupportsIndex | None = ...
) -> NDArray[np.float32]: ...


@overload
def dequantize(q: QuantizedTensor, *, out: Array, num_threads: SupportsIndex | None = ...) -> Array: ...


def dequantize(
    q: QuantizedTensor, *, out: np.ndarray | None = None, num_threads: SupportsIndex | None = None
) -> np.ndarray:
    """Turn a quantized tensor into the real numbers that it stands for.

    For each value::

        x = float32(q - zero_point) * scale

    Parameters
    ----------
    q : QuantizedTensor
        What is turned into numbers; its values are read in place.
    out : ndarray of float16, float32 or float64, optional
        Where to write: C-contiguous, of the shape of `q`, not overlapping its values.
    num_threads : int, optional
        The largest team of threads to use; by default `set_num_threads` and the environment decide.

    Returns
    -------
    ndarray
        `out`, or a fresh C-contiguous array of float32.

    Raises
    ------
    TypeError
        No QuantizedTensor; an `out` of another kind or dtype.
    ValueError
        An unfit `out`.
    MemoryError
        No memory for the result.

    See Also
    --------
    quantize : the way back
    s2dq.reference.dequantize : the same in plain NumPy

    Notes
    -----
    The difference is exact and then rounded to float32, the product is one of float32. In an `out` of float16 that
    product is rounded once more, in one of float64 it is as it is. The result depends neither on threads and
    instruction sets nor on how the calling thread rounds or treats subnormal numbers.

    References
    ----------
    ONNX DequantizeLinear.

    Examples
    --------
    >>> import numpy as np, s2dq
    >>> s2dq.dequantize(s2dq.QuantizedTensor(np.array([0, 128, 255], np.uint8), 1 / 128, 128))
    array([-1.       ,  0.       ,  0.9921875], dtype=float32)
    """
    call = dequantize_call("dequantize", QuantizedTensor, q, out, num_threads)
    try:
        along = _along(call.x.shape, call.parameters)
        _kernels.convert(call.x, call.out, _spread(call.parameters, along), None, along[:3], call.num_threads)
    except MemoryError as error:
        raise no_memory("dequantize", "q", call.x) from error
    return call.result


def requantize(
    q: QuantizedTensor, scale: Reals, zero_point: Blocks, dtype: DTypeLike | None = None, *,
    out: np.ndarray | None = None, num_threads: SupportsIndex | None = None,
) -> QuantizedTensor:  # fmt: skip
    """Take a quantized tensor to another scale, zero point or type.

    Bit for bit ``quantize(dequantize(q), scale, zero_point, dtype)``, without the tensor of floats in between.

    Parameters
    ----------
    q : QuantizedTensor
        What is taken elsewhere; its values are read in place.
    scale : float, or float array of shape (C,)
        Step between two values of the result; finite and above 0 once rounded to float32.
    zero_point : int, or int array of shape (C,)
        The value of the result that stands for 0, within its dtype. Arrays lie along the axis of `q`.
    dtype : {"int8", "uint8", "int16", "uint16", "int32"}, optional
        Type of the result's values, by default that of `q`.
    out : ndarray, optional
        Where to write the values: C-contiguous, of the shape of `q` and exactly the dtype of the result, not
        overlapping the values of `q`.
    num_threads : int, optional
        The largest team of threads to use; by default `set_num_threads` and the environment decide.

    Returns
    -------
    QuantizedTensor
        Its `values` are `out`, or a fresh C-contiguous array. With a single scale and zero point it has no axis any
        more.

    Raises
    ------
    TypeError
        No QuantizedTensor, another `dtype`, parameters that are no numbers, an `out` of another kind or dtype.
    ValueError
        Parameters that are out of range, of another length than the axis of `q`, or with entries where `q` has no
        axis; an unfit `out`.
    MemoryError
        No memory for the result.

    See Also
    --------
    quantize, dequantize : the two steps
    s2dq.reference.requantize : the same in plain NumPy

    Notes
    -----
    From 8 bits to 8 bits, bytes are looked up in tables of all 256 results where neighbours share their parameters.

    References
    ----------
    ONNX DequantizeLinear, then QuantizeLinear.

    Examples
    --------
    >>> import numpy as np, s2dq
    >>> q = s2dq.QuantizedTensor(np.array([0, 128, 255], np.uint8), 1 / 255, 0)
    >>> s2dq.requantize(q, 1 / 255, -128, "int8")
    QuantizedTensor([-128,    0,  127], dtype=int8, scale=0.00392157, zero_point=-128)
    """
    call = requantize_call("requantize", QuantizedTensor, q, scale, zero_point, dtype, out, num_threads)
    assert call.source is not None, "requantize has the parameters of both sides"
    axis = call.source.axis if call.source.axis is not None else call.parameters.axis
    pairs = [call.source, call.parameters]
    if len({pair.scale.size for pair in pairs if pair.scale.ndim}) == 2:  # one has those of words, the other of lanes
        pairs = [_of_lanes(pair, call.x.shape) for pair in pairs]
    shape = np.broadcast_shapes(*(pair.scale.shape for pair in pairs))
    source, target = (
        Parameters(np.broadcast_to(pair.scale, shape), np.broadcast_to(pair.zero_point, shape), axis) for pair in pairs
    )
    bytes_to_bytes = call.x.itemsize == call.out.itemsize == 1
    try:
        planes = None
        if bytes_to_bytes and call.x.size >= 256 * prod(shape) > 0 and _shared_by(call.x.shape, source) >= _TABLE_RUN:
            planes = _planes(call.x, source)
        if planes:
            _look_up(call.x, call.out, source, target, planes, call.num_threads)
        else:
            along = _along(call.x.shape, source)
            spread = _spread(source, along), _spread(target, along)
            _kernels.convert(call.x, call.out, *spread, along[:3], call.num_threads)
    except MemoryError as error:
        raise no_memory("requantize", "q", call.x) from error
    return made_of(call.result, call.parameters, keep=out is not None)


_ONCE: Loops = ((1, 0),)


def _planes(x: np.ndarray, source: Parameters) -> Loops | None:
    """Extents and steps of `x` as a batch of planes, one for each table, and what is in these. None where several loops
    make the batch."""
    at = source.axis if source.scale.size > 1 else None
    before = after = 0
    planes = _ONCE
    if at is not None:
        before, after = at, at + 1
        planes = ((x.shape[at], x.strides[at]),)
    batch, inside = loops_of(x.shape[:before], x.strides[:before]), loops_of(x.shape[after:], x.strides[after:])
    return None if len(batch) > 1 else (batch or _ONCE) + planes + _ONCE * (2 - len(inside)) + inside


def _look_up(
    x: np.ndarray,
    out: np.ndarray,
    source: Parameters,
    target: Parameters,
    planes: Loops,
    num_threads: int,
) -> None:
    """Requantize bytes by tables: a change of layout that changes no layout, with one table or one a plane."""
    count = source.scale.size
    levels = np.broadcast_to(np.arange(256, dtype=np.uint8).view(x.dtype), (count, 256))
    tables = np.empty((count, 256), out.dtype)
    along = _Along(count, 256, 1)
    _kernels.convert(levels, tables, _spread(source, along), _spread(target, along), along[:3], 1)
    table_bytes = tables.view(np.uint8).reshape(-1)
    if count == 1:
        lookup = lookup_of(table_bytes)
    else:
        lookup = Lookup("table", table_bytes, np.zeros((count, 4), np.int64), 0, 0)
    shape, steps = zip(*planes)
    extents = shape[2:]
    layout = channels_first(len(extents))
    problem = DepthProblem(
        to_depth=True, source=layout, target=layout, mode="DCR", steps=steps, itemsize=1, batch=shape[0],
        blocks=extents, block=(1,) * len(extents), lo=(0,) * len(extents), space=extents, channels=shape[1],
        src_lanes=0, dst_lanes=0, dst_shape=shape, tables=count, lookup=lookup.kind,
    )  # fmt: skip
    program, fill = program_of(problem), bytes(2) + SLACK
    _kernels.run(program, x, out, fill, _kernels.Lookups(program, fill, *lookup), num_threads)


_TABLE_RUN = 16  # elements; where fewer neighbours share their parameters, to compute takes less time than to look up
_SHORT_RUN = 64  # elements; shorter runs with the same parameters are taken together, each element with its own
_SPREAD = 512  # elements that have their own parameters are taken so many at a time
_MOST = 1 << 16  # copies of parameters


class _Along(NamedTuple):
    """Where an element's parameters are: ``(element // run % groups) * period + element % run % period``.

    That is among the parameters each repeated `each` times, then each group of them `times` times.
    """

    groups: int
    run: int
    period: int
    each: int = 1
    times: int = 1


def _of_lanes(pair: Parameters, shape: tuple[int, ...]) -> Parameters:
    """Parameters of words as those of their lanes; others as they are."""
    if pair.scale.shape != shape[1:2]:
        return pair
    return pair._replace(scale=np.repeat(pair.scale, shape[4]), zero_point=np.repeat(pair.zero_point, shape[4]))


def _shared_by(shape: tuple[int, ...], pair: Pair) -> int:
    """How many neighbours share their parameters."""
    if pair.axis is None:
        return prod(shape)
    return 1 if _in_words(shape, pair) else prod(shape[pair.axis + 1:])


def _along(shape: tuple[int, ...], pair: Pair) -> _Along:
    size = max(1, prod(shape))
    if pair.axis is None or not prod(shape):
        return _Along(1, size, 1)
    if _in_words(shape, pair):
        groups, run, period, each = shape[1], prod(shape[2:]), shape[4], 1
    else:
        inner, count = prod(shape[pair.axis + 1:]), shape[pair.axis]
        if inner >= _SHORT_RUN or (inner > 1 and count * inner > _MOST):
            return _Along(count, inner, 1)
        groups, run, period, each = 1, size, count * inner, inner
    times = max(1, min(-(-_SPREAD // period), -(-run // period), _MOST // (groups * period)))
    return _Along(groups, run, period * times, each, times)


def _spread(pair: Pair, along: _Along) -> tuple[np.ndarray, np.ndarray]:
    """Scales and zero points as `along` counts them."""
    if pair.axis is None and along.groups == 1:
        return pair.scale.reshape(1), pair.zero_point.reshape(1)
    spread = []
    both: tuple[np.ndarray, np.ndarray] = (pair.scale, pair.zero_point)
    for entries in both:
        repeated = np.repeat(entries, along.each).reshape(along.groups, -1)
        spread.append(np.tile(repeated, along.times).reshape(-1))
    return spread[0], spread[1]


# ------------------------------------------------------------------------------- parameters that follow their axis

_PAIR = np.dtype([("scale", np.float32), ("zero_point", np.int32)])
_SPARE = np.array((1, 0), _PAIR).view(np.int64)  # of what holds nothing


class _Padding(NamedTuple):
    """Zero points of the source, and along which of its axes they lie: one, or two for the lanes of words."""

    zero_points: np.ndarray
    axes: tuple[int, ...]


def _pairs(tensor: Pair) -> np.ndarray:
    """Scale and zero point of each index, in one array of their bits."""
    pairs = np.empty(tensor.scale.shape, _PAIR)
    pairs["scale"], pairs["zero_point"] = tensor.scale, tensor.zero_point
    return pairs.view(np.int64)


def _parameters(pairs: np.ndarray, axis: int | None) -> Parameters:
    """What `_pairs` took apart."""
    entries = np.ascontiguousarray(pairs).view(_PAIR)
    parts = [entries[name].reshape(pairs.shape).copy() for name in ("scale", "zero_point")]
    for part in parts:
        part.flags.writeable = False
    return Parameters(parts[0], parts[1], axis)


def _in_words(shape: tuple[int, ...], pair: Pair) -> bool:
    """Whether there is a pair for every lane of a packed tensor, rather than for every index of axis 1."""
    return len(shape) == 5 and pair.axis == 1 and pair.scale.size != shape[1]


def _axes_of(q: Snapshot) -> tuple[int, ...]:
    assert q.axis is not None, "asked of parameters along an axis"
    return (1, 4) if _in_words(q.shape, q) else (q.axis,)


def _one_for_all(q: Snapshot, name: str, rows: np.ndarray, what: str) -> np.ndarray:
    """The one pair that each row of pairs comes to; rows without entries hold nothing."""
    if not rows.shape[1]:
        return np.full(rows.shape[0], _SPARE)
    parts = np.ascontiguousarray(rows).view(_PAIR)
    check_equal(name, q.shape, q.axis, parts["scale"].copy(), parts["zero_point"].copy(), what)
    return rows[:, 0]


def _followed_depth(q: Snapshot, name: str, p: DepthProblem) -> tuple[Parameters, _Padding]:
    """Parameters behind space_to_depth, depth_to_space or a change of layout, and those of what is padded."""
    assert q.axis is not None, "a single pair stays what it is"
    if _in_words(q.shape, q):
        if not p.source.packed:
            check_packed(name, q.shape, q.axis, p.source.name)
        along = "c"
    else:
        along = p.source.axes[q.axis]
    pairs = _pairs(q)
    if along in ("c", "cb", "v"):
        if along == "cb":
            pairs = np.repeat(pairs, p.src_lanes)
        elif along == "v":
            pairs = np.tile(pairs, q.shape[1])
        return _followed_channels(q, name, p, pairs)
    padding = _Padding(q.zero_point, (q.axis,))
    kept = pairs if along == "n" else _kept(p, p.source.spatial.index(along), p.to_depth, pairs)
    if kept is not None:
        return _parameters(kept, p.target.axes.index(along)), padding
    return _for_all(q, name, pairs, f"axis {q.axis} ({spatial_word(along)}) is cut: its parameters"), padding


def _followed_channels(
    q: Snapshot, name: str, p: DepthProblem, pairs: np.ndarray
) -> tuple[Parameters, _Padding]:
    """Each channel's pair goes to all deep channels that come from it, or comes from all that it is made of."""
    digits = deep_digits(p.mode, p.source.spatial)
    block = dict(zip(p.source.spatial, p.block))
    extents = [block.get(digit, p.channels) for digit in digits]
    place = digits.index("c")
    padding = _Padding(pairs[: p.channels].view(_PAIR)["zero_point"], ())
    if p.to_depth:
        once = [p.channels if digit == "c" else 1 for digit in digits]
        moved = np.broadcast_to(pairs[: p.channels].reshape(once), extents).reshape(-1)
    else:
        rows = np.moveaxis(pairs[: prod(extents)].reshape(extents), place, 0).reshape(p.channels, prod(p.block))
        moved = _one_for_all(q, name, rows, "the channels of x that channel {} of the result is made of")
    if p.target.packed:
        lanes = words(len(moved), p.dst_lanes) * p.dst_lanes if p.dst_lanes else 0
        moved = np.concatenate([moved, np.full(lanes - len(moved), _SPARE)])
    return _parameters(moved, p.target.axes.index("cb" if p.target.packed else "c")), padding


def _followed_batch(q: Snapshot, name: str, p: BatchProblem) -> tuple[Parameters, _Padding]:
    """Parameters behind space_to_batch_nd or batch_to_space_nd, and those of what is padded."""
    axes = _axes_of(q)
    padding = _Padding(q.zero_point, axes)
    pairs = _pairs(q)
    grid = pairs.reshape([q.shape[axis] for axis in axes])
    for k, axis in enumerate(axes):
        if axis == 0 and prod(p.block) > 1:
            return _for_all(q, name, pairs, "axis 0 (batch) is regrouped: its parameters"), padding
        if 0 < axis <= len(p.block):
            kept = _kept(p, axis - 1, p.to_batch, np.moveaxis(grid, k, 0))
            if kept is None:
                return _for_all(q, name, pairs, f"axis {axis} is cut: its parameters"), padding
            grid = np.moveaxis(kept, 0, k)
    return _parameters(grid.reshape(-1), q.axis), padding


def _for_all(q: Snapshot, name: str, pairs: np.ndarray, what: str) -> Parameters:
    """One pair for the whole tensor."""
    return _parameters(_one_for_all(q, name, pairs.reshape(1, -1), what)[0], None)


def _kept(p: DepthProblem | BatchProblem, i: int, cuts: bool, pairs: np.ndarray) -> np.ndarray | None:
    """The pairs along a spatial axis that has blocks of one, less those that are cropped; None where they mix."""
    if p.block[i] > 1 or (cuts and p.space[i] != p.blocks[i]):
        return None
    return pairs if cuts else pairs[p.lo[i]: p.lo[i] + p.space[i]]


def _with_padding(call: Call[Any], padding: _Padding) -> tuple[Call[Any], bytes | None]:
    """The call with a pad element for each zero point, where there is padding and they differ; and these elements."""
    p, zero_points = call.problem, padding.zero_points.astype(call.x.dtype)
    padded = any(b * count != extent for b, count, extent in zip(p.block, p.blocks, p.space))
    if not padded or not zero_points.size:
        return call, None
    if (zero_points == zero_points[0]).all():
        return call._replace(pad=zero_points[:1]), None  # an array still: a scalar has the machine's byte order
    if isinstance(p, BatchProblem):
        steps, step = [0] * call.x.ndim, call.x.itemsize
        for axis in reversed(padding.axes):
            steps[axis], step = step, step * call.x.shape[axis]
        return call._replace(problem=p._replace(pads=tuple(steps))), zero_points.tobytes()
    if not padding.axes:
        return call._replace(problem=p._replace(pads=p.channels)), zero_points.tobytes()
    return _padded_first(call, zero_points, *padding.axes), None


_PADDED = 1 << 20  # elements that NumPy moves before signals are looked at again


def _padded_first(call: Call[DepthProblem], zero_points: np.ndarray, axis: int) -> Call[DepthProblem]:
    """The call on an array that has its padding already, with a zero point for each index of another axis."""
    p = call.problem
    shape, inside = list(call.x.shape), [slice(None)] * call.x.ndim
    for name, b, count, lo, extent in zip(p.source.spatial, p.block, p.blocks, p.lo, p.space):
        at = p.source.axes.index(name)
        shape[at], inside[at] = b * count, slice(lo, lo + extent)
    padded = np.empty(shape, call.x.dtype)
    around = np.broadcast_to(zero_points.reshape([-1 if k == axis else 1 for k in range(len(shape))]), shape)
    for target, source in ((padded, around), (padded[tuple(inside)], call.x)):
        for part in parts(target.shape, _PADDED):
            target[part] = source[part]
    space = tuple(b * count for b, count in zip(p.block, p.blocks))
    problem = p._replace(steps=padded.strides, lo=(0,) * len(space), space=space)
    return call._replace(x=padded, problem=problem)

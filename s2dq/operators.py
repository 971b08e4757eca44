"""The public operators: signature, documentation, and one line each.

A call is checked (`_validate`), its plan is looked up or made (`_plan`), and the kernels run it (`_kernels`).
"""

from collections.abc import Callable
from functools import lru_cache, update_wrapper
from typing import Any, Protocol, SupportsIndex, TypeVar, cast, overload

import numpy as np
from numpy.typing import NDArray

from s2dq import _kernels
from s2dq._layout import BatchProblem, DepthProblem, contiguous_steps, parts
from s2dq._plan import Means, plan_batch, plan_depth
from s2dq._typing import Blocks, Integers, Pairs, Scalar, Viewable
from s2dq._validate import UNMADE, Call, batch_call, check_elements, depth_call, no_memory, pack_call, unpack_call

__all__ = [
    "batch_to_space",
    "batch_to_space_nd",
    "depth_to_space",
    "pack_vect_c",
    "space_to_batch",
    "space_to_batch_nd",
    "space_to_depth",
    "unpack_vect_c",
]

Operator = TypeVar("Operator", bound=Callable[..., Any])
Arguments = tuple[Any, ...]
AnyCall = Call[DepthProblem] | Call[BatchProblem]
# The result, x as it was read, out as it was written, and how; see `_kernels.Memo`.
Checked = tuple[Any, np.ndarray | None, np.ndarray | None, _kernels.Program | None, bytes, _kernels.Lookups | None]


# ------------------------------------------------------------------------------------------------ execution


_means = _kernels.tile_means()
_TILES = Means(*_means) if _means else None
SLACK = bytes(64)  # behind the fill values, so that kernels may read them in full registers
_NOTHING = _kernels.Program(np.zeros(2, np.int64))  # for elements of no bytes


@lru_cache(maxsize=1024)
def program_of(problem: DepthProblem | BatchProblem) -> _kernels.Program:
    """The compiled plan of a problem, from the one bounded cache of plans."""
    if isinstance(problem, DepthProblem):
        plan = plan_depth(problem, tiles=_TILES)
    else:
        plan = plan_batch(problem, tiles=_TILES)
    return _kernels.Program(np.array(plan.encode(), np.int64))


class Operation:
    """An operator, as it shows itself to tensors that are more than an array.

    Operators do not know such tensors. Where the type of `x` has a method

        __s2dq_move__(x, operation, out, num_threads, arguments)

    they return what it returns. The method moves arrays with `run`; or, where what the tensor carries besides its
    array has to follow, checks the call with `check`, reads from the problem what goes where, and moves with
    `execute`, which is the first to write. `arguments` are all others but `out` and `num_threads`, as they were given.
    """

    def __init__(self, check: Callable[..., AnyCall], name: str, *head: bool) -> None:
        self.name = name
        self.pads = head == (True,)  # the last argument is a pad value, None for the zero of what is padded
        self._check, self._head = check, head
        self.memo = _kernels.Memo(self._first)

    def run(self, x: np.ndarray, out: Any, num_threads: Any, arguments: Arguments) -> np.ndarray:
        """The operator on an array."""
        return self.memo.call(x, out, num_threads, arguments)

    def check(self, x: np.ndarray, out: Any, num_threads: Any, arguments: Arguments) -> AnyCall:
        """A call on an array, checked."""
        return self._check(self.name, *self._head, x, *arguments, out, num_threads)

    def execute(self, call: AnyCall, pads: bytes | None = None) -> tuple[_kernels.Program | None, bytes]:
        """Move what `check` found to be right; `pads` are the pad elements, where the problem wants more than one."""
        try:
            if call.x.dtype.hasobject:
                _run_references(call)
            elif call.x.dtype.itemsize and call.out.size:
                program = program_of(call.problem)
                fill = _fill(call, pads)
                _kernels.run(program, call.x, call.out, fill, None, call.num_threads)
                return program, fill
        except MemoryError as error:
            raise no_memory(self.name, "x", call.x) from error
        return None, b""

    def prepare(self, call: AnyCall) -> _kernels.PreparedCall:
        """What `check` found to be right, for others to move."""
        check_elements(self.name, call.x.dtype)
        try:
            program = program_of(call.problem) if call.x.dtype.itemsize else _NOTHING
            return _kernels.PreparedCall(call.x, call.out, program, _fill(call), None, call.num_threads)
        except MemoryError as error:
            raise no_memory(self.name, "x", call.x) from error

    def _first(self, x: Any, out: Any, num_threads: Any, arguments: Arguments) -> Checked:
        """A call that has not been made before, or is no plain one; see `_kernels.Memo`."""
        if out is UNMADE:
            return self.prepare(self.check(x, out, num_threads, arguments)), None, None, None, b"", None
        move = None if type(x) is np.ndarray else _mover(type(x))
        if move:
            return move(x, self, out, num_threads, arguments), None, None, None, b"", None
        call = self.check(x, out, num_threads, arguments)
        program, fill = self.execute(call)
        return call.result, call.x, call.out, program, fill, None


def _fill(call: AnyCall, pads: bytes | None = None) -> bytes:
    """Fill values of a run."""
    return cast(bytes, call.lane.tobytes()) + (call.pad.tobytes() if pads is None else pads) + SLACK


class Carrier(Protocol):
    """A tensor that is more than an array, and comes out of an operator as one of its kind."""

    def __s2dq_move__(self, operation: Operation, out: Any, num_threads: Any, arguments: Arguments, /) -> Any: ...


Carried = TypeVar("Carried", bound=Carrier)


def _mover(kind: type) -> Callable[..., Any] | None:
    """The method of a type that moves its tensors; asked in a way that runs no code of a metaclass."""
    try:
        return cast(Callable[..., Any], type.__getattribute__(kind, "__s2dq_move__"))
    except AttributeError:
        return None


def _memo(check: Callable[..., AnyCall], name: str, *head: bool) -> _kernels.Memo:
    """The calls of an operator: looked up where it has been made before, else checked by ``check(name, ...)``."""
    return Operation(check, name, *head).memo


_REFERENCES = 1 << 20  # elements that NumPy fetches before signals are looked at again


def _run_references(call: AnyCall) -> None:
    """Elements that hold references: move their positions, then let NumPy fetch them and keep the counts."""
    lane, pad = np.int64(-1), np.int64(-2)
    positions = np.arange(call.x.size, dtype=np.int64).reshape(call.x.shape)
    problem = call.problem._replace(steps=contiguous_steps(call.x.shape, 8), itemsize=8)
    moved = np.empty(problem.dst_shape, np.int64)
    fill = lane.tobytes() + pad.tobytes() + SLACK
    _kernels.run(program_of(problem), positions, moved, fill, None, call.num_threads)
    elements = call.x.reshape(-1)
    for part in parts(moved.shape, _REFERENCES):
        out, places = call.out[part], moved[part]
        inside = places >= 0
        out[inside] = elements[places[inside]]
        out[places == lane] = call.lane
        out[places == pad] = call.pad


_space_to_depth = _memo(depth_call, "space_to_depth", True)
_depth_to_space = _memo(depth_call, "depth_to_space", False)
_space_to_batch_nd = _memo(batch_call, "space_to_batch_nd", True)
_batch_to_space_nd = _memo(batch_call, "batch_to_space_nd", False)
_space_to_batch = _memo(batch_call, "space_to_batch", True)
_batch_to_space = _memo(batch_call, "batch_to_space", False)
_pack_vect_c = _memo(pack_call, "pack_vect_c")
_unpack_vect_c = _memo(unpack_call, "unpack_vect_c")


def _recalled(memo: _kernels.Memo) -> Callable[[Operator], Operator]:
    """Let calls like one before skip the function, and all of Python, on their way into `memo`."""

    def recalled(function: Operator) -> Operator:
        return cast(Operator, update_wrapper(_kernels.Recall(function, memo), function))

    return recalled


# ------------------------------------------------------------------------------------------------ operators


@overload
def space_to_depth(
    x: Carried, block_size: Blocks, data_format: str = ..., *, mode: str = ..., out_format: str | None = ...,
    vect: SupportsIndex = ..., channels: SupportsIndex | None = ..., paddings: Pairs | None = ..., pad_value: Any = ...,
    out: np.ndarray | None = ..., num_threads: SupportsIndex | None = ...
) -> Carried: ...


@overload
def space_to_depth(
    x: NDArray[Scalar], block_size: Blocks, data_format: str = ..., *, mode: str = ..., out_format: str | None = ...,
    vect: SupportsIndex = ..., channels: SupportsIndex | None = ..., paddings: Pairs | None = ..., pad_value: Any = ...,
    out: np.ndarray | None = ..., num_threads: SupportsIndex | None = ...
) -> NDArray[Scalar]: ...


@overload
def space_to_depth(
    x: Viewable, block_size: Blocks, data_format: str = ..., *, mode: str = ..., out_format: str | None = ...,
    vect: SupportsIndex = ..., channels: SupportsIndex | None = ..., paddings: Pairs | None = ..., pad_value: Any = ...,
    out: np.ndarray | None = ..., num_threads: SupportsIndex | None = ...
) -> np.ndarray: ...


@_recalled(_space_to_depth)
def space_to_depth(
    x: Viewable | Carrier,
    block_size: Blocks,
    data_format: str = "NHWC",
    *,
    mode: str = "DCR",
    out_format: str | None = None,
    vect: SupportsIndex = 4,
    channels: SupportsIndex | None = None,
    paddings: Pairs | None = None,
    pad_value: Any = None,
    out: np.ndarray | None = None,
    num_threads: SupportsIndex | None = None,
) -> Any:
    """Move spatial blocks into the channel dimension.

    Each block of ``bH x bW`` pixels becomes one output pixel whose channels list the block. For NHWC and DCR::

        out[n, i, j, (p*bW + q)*C + c] = x[n, i*bH + p, j*bW + q, c]        0 <= p < bH, 0 <= q < bW

    or, as a pattern, ``n (i p) (j q) c -> n i j (p q c)``. Values are moved, never changed.

    Parameters
    ----------
    x : array_like, shape (N, H, W, C) or as `data_format` says
        Any element type. An ndarray, buffer, CPU DLPack or ``__array_interface__`` object is read in place with its
        own strides; a nested list of numbers is copied. Or a `QuantizedTensor`, whose parameters per channel go with
        their channels.
    block_size : int or sequence of int
        Edge of a block in pixels, at least 1: one for all spatial axes or one per axis. 1 gives a copy (in another
        layout, if `out_format` says so).
    data_format : {"NHWC", "NCHW", "NCHW_VECT_C", "NWC", "NCW", "NDHWC", "NCDHW"}
        Axes of `x`. In NCHW_VECT_C, channel ``c`` lives at ``[n, c // V, h, w, c % V]`` and V is the last extent.
    mode : {"DCR", "CRD", "focus"}
        Order of the deep channels. DCR: position in the block first, ``(p*bW + q)*C + c`` (TensorFlow, TFLite,
        NNAPI, ONNX's default, OpenVINO's ``blocks_first``). CRD: channel first, ``c*bH*bW + p*bW + q`` (PyTorch,
        OpenVINO's ``depth_first``). focus: DCR with the first spatial axis running fastest, ``(q*bH + p)*C + c``
        (YOLOv5's first layer).
    out_format : str, optional
        Axes of the result, any layout with as many spatial axes; by default those of `x`. The layout changes in the
        same pass.
    vect : int
        Lanes of a word, V, when the result is NCHW_VECT_C. Where `out_format` is not given and `vect` is 4, a packed
        `x` keeps its own V.
    channels : int, optional
        Logical number of channels of a packed `x` whose last word is ragged; by default all lanes count.
    paddings : sequence or int array, shape (K, 2), optional
        Pixels to add before and after each spatial axis, in spatial order, before the blocks are cut.
    pad_value : scalar, optional
        What the padding holds; a value the dtype can hold, by default its zero, or the zero point of a QuantizedTensor.
        Spare lanes always hold raw zero.
    out : ndarray, optional
        Where to write: C-contiguous, of exactly the result's shape and dtype, not overlapping `x`.
    num_threads : int, optional
        The largest team of threads to use; by default `set_num_threads` and the environment decide.

    Returns
    -------
    ndarray
        `out`, or a fresh C-contiguous array of the dtype of `x` with shape (N, H/bH, W/bW, bH*bW*C) arranged as
        `out_format` says; a packed result has ``ceil(bH*bW*C / V)`` words. For a QuantizedTensor one of that shape, its
        `values` being `out`; each deep channel has the scale and zero point of the channel it comes from.

    Raises
    ------
    TypeError
        An argument of the wrong kind: a masked array, a Dask array, a tensor on a device, a float block size, an
        `out` of another dtype. Packed to packed with elements wider than 8 bits.
    ValueError
        A wrong rank, an extent that the block does not divide, a block below 1, negative or misshapen paddings, an
        unknown name, a value the dtype cannot hold, an unfit `out`, or a result above 2**63 - 1 bytes.
    MemoryError
        No memory for the result.

    See Also
    --------
    depth_to_space : the inverse
    s2dq.reference.space_to_depth : the same in plain NumPy

    Notes
    -----
    H and W (after padding) must be multiples of the block. CRD and focus on NCHW_VECT_C are defined by no system;
    here they mean unpack, operate, pack. With a packed result and a channel count that V does not divide, packing
    comes after the rearrangement: the only spare lanes are at the end. The result does not depend on the number of
    threads.

    Scales and zero points of a QuantizedTensor along the batch stay with it, and along a spatial axis that is neither
    cut nor padded. Along another one they must all be equal, and a single pair takes their place.

    References
    ----------
    TensorFlow ``tf.nn.space_to_depth``; ONNX SpaceToDepth; OpenVINO SpaceToDepth-1; PyTorch ``pixel_unshuffle``;
    YOLOv5 ``Focus``.

    Examples
    --------
    >>> import numpy as np, s2dq
    >>> x = np.arange(8, dtype=np.int8).reshape(1, 2, 2, 2)
    >>> s2dq.space_to_depth(x, 2)
    array([[[[0, 1, 2, 3, 4, 5, 6, 7]]]], dtype=int8)
    >>> s2dq.space_to_depth(x, 2, mode="CRD")
    array([[[[0, 2, 4, 6, 1, 3, 5, 7]]]], dtype=int8)

    Frames to the packed input of an int8 network, in one pass:

    >>> frame = np.zeros((1, 640, 640, 3), np.uint8)
    >>> s2dq.space_to_depth(frame, 2, out_format="NCHW_VECT_C").shape
    (1, 3, 320, 320, 4)
    """
    arguments = (block_size, data_format, mode, out_format, vect, channels, paddings, pad_value)
    return _space_to_depth.call(x, out, num_threads, arguments)


@overload
def depth_to_space(
    x: Carried, block_size: Blocks, data_format: str = ..., *, mode: str = ..., out_format: str | None = ...,
    vect: SupportsIndex = ..., channels: SupportsIndex | None = ..., crops: Pairs | None = ...,
    out: np.ndarray | None = ..., num_threads: SupportsIndex | None = ...
) -> Carried: ...


@overload
def depth_to_space(
    x: NDArray[Scalar], block_size: Blocks, data_format: str = ..., *, mode: str = ..., out_format: str | None = ...,
    vect: SupportsIndex = ..., channels: SupportsIndex | None = ..., crops: Pairs | None = ...,
    out: np.ndarray | None = ..., num_threads: SupportsIndex | None = ...
) -> NDArray[Scalar]: ...


@overload
def depth_to_space(
    x: Viewable, block_size: Blocks, data_format: str = ..., *, mode: str = ..., out_format: str | None = ...,
    vect: SupportsIndex = ..., channels: SupportsIndex | None = ..., crops: Pairs | None = ...,
    out: np.ndarray | None = ..., num_threads: SupportsIndex | None = ...
) -> np.ndarray: ...


@_recalled(_depth_to_space)
def depth_to_space(
    x: Viewable | Carrier,
    block_size: Blocks,
    data_format: str = "NHWC",
    *,
    mode: str = "DCR",
    out_format: str | None = None,
    vect: SupportsIndex = 4,
    channels: SupportsIndex | None = None,
    crops: Pairs | None = None,
    out: np.ndarray | None = None,
    num_threads: SupportsIndex | None = None,
) -> Any:
    """Move channels out into spatial blocks, the inverse of `space_to_depth`.

    Each pixel with ``bH*bW*C`` channels becomes a block of ``bH x bW`` pixels. For NHWC and DCR::

        out[n, i*bH + p, j*bW + q, c] = x[n, i, j, (p*bW + q)*C + c]        0 <= p < bH, 0 <= q < bW

    or, as a pattern, ``n i j (p q c) -> n (i p) (j q) c``. Values are moved, never changed.

    Parameters
    ----------
    x : array_like, shape (N, H, W, bH*bW*C) or as `data_format` says
        Any element type, or a `QuantizedTensor`; see `space_to_depth`.
    block_size : int or sequence of int
        Edge of a block in pixels, at least 1: one for all spatial axes or one per axis.
    data_format : {"NHWC", "NCHW", "NCHW_VECT_C", "NWC", "NCW", "NDHWC", "NCDHW"}
        Axes of `x`.
    mode : {"DCR", "CRD", "focus"}
        Order of the deep channels; see `space_to_depth`. CRD is PyTorch's ``pixel_shuffle``.
    out_format : str, optional
        Axes of the result, any layout with as many spatial axes; by default those of `x`.
    vect : int
        Lanes of a word, V, when the result is NCHW_VECT_C. Where `out_format` is not given and `vect` is 4, a packed
        `x` keeps its own V.
    channels : int, optional
        Logical number of channels of a packed `x` whose last word is ragged; by default all lanes count.
    crops : sequence or int array, shape (K, 2), optional
        Pixels to take away before and after each spatial axis of the result, in spatial order.
    out : ndarray, optional
        Where to write: C-contiguous, of exactly the result's shape and dtype, not overlapping `x`.
    num_threads : int, optional
        The largest team of threads to use; by default `set_num_threads` and the environment decide.

    Returns
    -------
    ndarray
        `out`, or a fresh C-contiguous array of the dtype of `x` with shape (N, H*bH, W*bW, C) less the crops,
        arranged as `out_format` says. For a QuantizedTensor one of that shape, its `values` being `out`.

    Raises
    ------
    TypeError
        An argument of the wrong kind, as for `space_to_depth`.
    ValueError
        A number of channels that the block area does not divide, crops larger than the axis they are taken from,
        channels of a QuantizedTensor that merge but differ in scale or zero point, and all that `space_to_depth`
        refuses.
    MemoryError
        No memory for the result.

    See Also
    --------
    space_to_depth : the inverse
    s2dq.reference.depth_to_space : the same in plain NumPy

    Notes
    -----
    With NCHW_VECT_C on both sides the number of *words* must be a multiple of the block area (TensorFlow's rule);
    with it on one side, the logical number of channels. Crops that leave nothing give an empty axis.

    References
    ----------
    TensorFlow ``tf.nn.depth_to_space``; ONNX DepthToSpace; OpenVINO DepthToSpace-1; PyTorch ``pixel_shuffle``.

    Examples
    --------
    >>> import numpy as np, s2dq
    >>> x = np.arange(8, dtype=np.int8).reshape(1, 1, 1, 8)
    >>> s2dq.depth_to_space(x, 2)[0, ..., 0]
    array([[0, 2],
           [4, 6]], dtype=int8)
    >>> s2dq.depth_to_space(x, 2, mode="CRD")[0, ..., 0]
    array([[0, 1],
           [2, 3]], dtype=int8)
    """
    arguments = (block_size, data_format, mode, out_format, vect, channels, crops, None)
    return _depth_to_space.call(x, out, num_threads, arguments)


@overload
def space_to_batch_nd(
    x: Carried, block_shape: Integers, paddings: Pairs, *, pad_value: Any = ..., out: np.ndarray | None = ...,
    num_threads: SupportsIndex | None = ...
) -> Carried: ...


@overload
def space_to_batch_nd(
    x: NDArray[Scalar], block_shape: Integers, paddings: Pairs, *, pad_value: Any = ..., out: np.ndarray | None = ...,
    num_threads: SupportsIndex | None = ...
) -> NDArray[Scalar]: ...


@overload
def space_to_batch_nd(
    x: Viewable, block_shape: Integers, paddings: Pairs, *, pad_value: Any = ..., out: np.ndarray | None = ...,
    num_threads: SupportsIndex | None = ...
) -> np.ndarray: ...


@_recalled(_space_to_batch_nd)
def space_to_batch_nd(
    x: Viewable | Carrier, block_shape: Integers, paddings: Pairs, *, pad_value: Any = None,
    out: np.ndarray | None = None, num_threads: SupportsIndex | None = None
) -> Any:
    """Move spatial blocks into the batch dimension, padding first.

    Axes 1 to M are padded, then cut into blocks; each offset inside the block becomes a batch entry of its own. For
    M = 2::

        out[(p*b2 + q)*N + n, i, j, ...] = padded[n, i*b1 + p, j*b2 + q, ...]

    or, as a pattern, ``n (i p) (j q) ... -> (p q n) i j ...``. The batch is the low part of the new batch index.

    Parameters
    ----------
    x : array_like, shape (N, D1, ..., DM, ...)
        Any element type, or a `QuantizedTensor`; see `space_to_depth`. Axes behind DM ride along.
    block_shape : sequence of int or int array, shape (M,)
        Block along each of the axes 1 to M, at least 1 each. M = 0 gives a copy.
    paddings : sequence or int array, shape (M, 2)
        Elements to add before and after each of these axes, not negative.
    pad_value : scalar, optional
        What the padding holds; a value the dtype can hold, by default its zero, or the zero point of a QuantizedTensor.
    out : ndarray, optional
        Where to write: C-contiguous, of exactly the result's shape and dtype, not overlapping `x`.
    num_threads : int, optional
        The largest team of threads to use; by default `set_num_threads` and the environment decide.

    Returns
    -------
    ndarray
        `out`, or a fresh C-contiguous array of the dtype of `x` with shape
        (N*prod(block_shape), (D1 + padding)/b1, ..., (DM + padding)/bM, ...). For a QuantizedTensor one of that
        shape, its `values` being `out`.

    Raises
    ------
    TypeError
        An argument of the wrong kind: a bare int for `block_shape` or `paddings`, floats or bools in them.
    ValueError
        A rank below M + 1, a padded extent that its block does not divide, a block below 1, negative or misshapen
        paddings, a value the dtype cannot hold, an unfit `out`, or a result above 2**63 - 1 bytes. Scales or
        zero points of a QuantizedTensor along the batch or a blocked axis that are not all equal.
    MemoryError
        No memory for the result.

    See Also
    --------
    batch_to_space_nd : the inverse
    space_to_batch : the same under TensorFlow 2's name
    s2dq.reference.space_to_batch_nd : the same in plain NumPy

    Notes
    -----
    Any number of block axes is allowed. The result does not depend on the number of threads.

    A packed tensor (N, words, H, W, V) has its words in axis 1, which a block of 1 leaves alone:
    ``space_to_batch_nd(x, [1, bH, bW], [[0, 0], [top, bottom], [left, right]])``.

    Scales and zero points of a QuantizedTensor stay with an axis that is neither blocked nor padded. Along another one
    they must all be equal, and a single pair takes their place.

    References
    ----------
    TensorFlow ``tf.space_to_batch_nd``; OpenVINO SpaceToBatch-2; NNAPI SPACE_TO_BATCH_ND.

    Examples
    --------
    >>> import numpy as np, s2dq
    >>> x = np.arange(1, 5, dtype=np.int8).reshape(1, 2, 2, 1)
    >>> s2dq.space_to_batch_nd(x, [2, 2], [[0, 0], [0, 0]]).ravel()
    array([1, 2, 3, 4], dtype=int8)
    >>> s2dq.space_to_batch_nd(x, [2, 2], [[0, 0], [2, 0]])[:, 0, :, 0]
    array([[0, 1],
           [0, 2],
           [0, 3],
           [0, 4]], dtype=int8)
    """
    return _space_to_batch_nd.call(x, out, num_threads, (block_shape, paddings, pad_value))


@overload
def batch_to_space_nd(
    x: Carried, block_shape: Integers, crops: Pairs, *, out: np.ndarray | None = ...,
    num_threads: SupportsIndex | None = ...
) -> Carried: ...


@overload
def batch_to_space_nd(
    x: NDArray[Scalar], block_shape: Integers, crops: Pairs, *, out: np.ndarray | None = ...,
    num_threads: SupportsIndex | None = ...
) -> NDArray[Scalar]: ...


@overload
def batch_to_space_nd(
    x: Viewable, block_shape: Integers, crops: Pairs, *, out: np.ndarray | None = ...,
    num_threads: SupportsIndex | None = ...
) -> np.ndarray: ...


@_recalled(_batch_to_space_nd)
def batch_to_space_nd(
    x: Viewable | Carrier, block_shape: Integers, crops: Pairs, *, out: np.ndarray | None = None,
    num_threads: SupportsIndex | None = None
) -> Any:
    """Move batch entries back into spatial blocks, then crop: the inverse of `space_to_batch_nd`.

    For M = 2, before the crops::

        out[n, i*b1 + p, j*b2 + q, ...] = x[(p*b2 + q)*N + n, i, j, ...]

    or, as a pattern, ``(p q n) i j ... -> n (i p) (j q) ...``.

    Parameters
    ----------
    x : array_like, shape (prod(block_shape)*N, D1, ..., DM, ...)
        Any element type, or a `QuantizedTensor`; see `space_to_depth`. Axes behind DM ride along.
    block_shape : sequence of int or int array, shape (M,)
        Block along each of the axes 1 to M, at least 1 each. M = 0 gives a copy.
    crops : sequence or int array, shape (M, 2)
        Elements to take away before and after each of these axes of the result, not negative.
    out : ndarray, optional
        Where to write: C-contiguous, of exactly the result's shape and dtype, not overlapping `x`.
    num_threads : int, optional
        The largest team of threads to use; by default `set_num_threads` and the environment decide.

    Returns
    -------
    ndarray
        `out`, or a fresh C-contiguous array of the dtype of `x` with shape (N, D1*b1 - crops, ..., DM*bM - crops, ...).
        For a QuantizedTensor one of that shape, its `values` being `out`.

    Raises
    ------
    TypeError
        An argument of the wrong kind, as for `space_to_batch_nd`.
    ValueError
        A batch that the product of `block_shape` does not divide, crops larger than the axis they are taken from,
        and all that `space_to_batch_nd` refuses.
    MemoryError
        No memory for the result.

    See Also
    --------
    space_to_batch_nd : the inverse
    batch_to_space : the same under TensorFlow 2's name
    s2dq.reference.batch_to_space_nd : the same in plain NumPy

    Notes
    -----
    Crops that leave nothing give an empty axis, which is legal. For packed tensors, and what becomes of scales
    and zero points, see `space_to_batch_nd`.

    References
    ----------
    TensorFlow ``tf.batch_to_space``; OpenVINO BatchToSpace-2; NNAPI BATCH_TO_SPACE_ND.

    Examples
    --------
    >>> import numpy as np, s2dq
    >>> x = np.arange(1, 5, dtype=np.int8).reshape(4, 1, 1, 1)
    >>> s2dq.batch_to_space_nd(x, [2, 2], [[0, 0], [0, 0]])[0, ..., 0]
    array([[1, 2],
           [3, 4]], dtype=int8)
    >>> s2dq.batch_to_space_nd(x, [2, 2], [[0, 1], [1, 0]]).ravel()
    array([2], dtype=int8)
    """
    return _batch_to_space_nd.call(x, out, num_threads, (block_shape, crops, None))


@overload
def space_to_batch(
    x: Carried, block_shape: Integers, paddings: Pairs, *, pad_value: Any = ..., out: np.ndarray | None = ...,
    num_threads: SupportsIndex | None = ...
) -> Carried: ...


@overload
def space_to_batch(
    x: NDArray[Scalar], block_shape: Integers, paddings: Pairs, *, pad_value: Any = ..., out: np.ndarray | None = ...,
    num_threads: SupportsIndex | None = ...
) -> NDArray[Scalar]: ...


@overload
def space_to_batch(
    x: Viewable, block_shape: Integers, paddings: Pairs, *, pad_value: Any = ..., out: np.ndarray | None = ...,
    num_threads: SupportsIndex | None = ...
) -> np.ndarray: ...


@_recalled(_space_to_batch)
def space_to_batch(
    x: Viewable | Carrier, block_shape: Integers, paddings: Pairs, *, pad_value: Any = None,
    out: np.ndarray | None = None, num_threads: SupportsIndex | None = None
) -> Any:
    """Move spatial blocks into the batch dimension: `space_to_batch_nd` under TensorFlow 2's name.

    The same rule, ``n (i p) (j q) ... -> (p q n) i j ...`` after padding.

    Parameters
    ----------
    x : array_like, shape (N, D1, ..., DM, ...)
        Any element type, or a `QuantizedTensor`.
    block_shape : sequence of int or int array, shape (M,)
        Block along each of the axes 1 to M, at least 1 each.
    paddings : sequence or int array, shape (M, 2)
        Elements to add before and after each of these axes, not negative.
    pad_value : scalar, optional
        What the padding holds; by default the dtype's zero, or the zero point of a QuantizedTensor.
    out : ndarray, optional
        Where to write.
    num_threads : int, optional
        The largest team of threads to use.

    Returns
    -------
    ndarray
        As `space_to_batch_nd`.

    Raises
    ------
    TypeError, ValueError, MemoryError
        As `space_to_batch_nd`.

    See Also
    --------
    space_to_batch_nd : all the details
    batch_to_space : the inverse

    References
    ----------
    TensorFlow ``tf.space_to_batch``. The legacy argument order of TensorFlow 1 is another function.

    Examples
    --------
    >>> import numpy as np, s2dq
    >>> s2dq.space_to_batch(np.zeros((2, 6, 3), np.uint8), [3], [[0, 0]]).shape
    (6, 2, 3)
    """
    return _space_to_batch.call(x, out, num_threads, (block_shape, paddings, pad_value))


@overload
def batch_to_space(
    x: Carried, block_shape: Integers, crops: Pairs, *, out: np.ndarray | None = ...,
    num_threads: SupportsIndex | None = ...
) -> Carried: ...


@overload
def batch_to_space(
    x: NDArray[Scalar], block_shape: Integers, crops: Pairs, *, out: np.ndarray | None = ...,
    num_threads: SupportsIndex | None = ...
) -> NDArray[Scalar]: ...


@overload
def batch_to_space(
    x: Viewable, block_shape: Integers, crops: Pairs, *, out: np.ndarray | None = ...,
    num_threads: SupportsIndex | None = ...
) -> np.ndarray: ...


@_recalled(_batch_to_space)
def batch_to_space(
    x: Viewable | Carrier, block_shape: Integers, crops: Pairs, *, out: np.ndarray | None = None,
    num_threads: SupportsIndex | None = None
) -> Any:
    """Move batch entries back into spatial blocks: `batch_to_space_nd` under TensorFlow 2's name.

    The same rule, ``(p q n) i j ... -> n (i p) (j q) ...`` before the crops.

    Parameters
    ----------
    x : array_like, shape (prod(block_shape)*N, D1, ..., DM, ...)
        Any element type, or a `QuantizedTensor`.
    block_shape : sequence of int or int array, shape (M,)
        Block along each of the axes 1 to M, at least 1 each.
    crops : sequence or int array, shape (M, 2)
        Elements to take away before and after each of these axes of the result, not negative.
    out : ndarray, optional
        Where to write.
    num_threads : int, optional
        The largest team of threads to use.

    Returns
    -------
    ndarray
        As `batch_to_space_nd`.

    Raises
    ------
    TypeError, ValueError, MemoryError
        As `batch_to_space_nd`.

    See Also
    --------
    batch_to_space_nd : all the details
    space_to_batch : the inverse

    References
    ----------
    TensorFlow ``tf.batch_to_space``. The legacy argument order of TensorFlow 1 is another function.

    Examples
    --------
    >>> import numpy as np, s2dq
    >>> s2dq.batch_to_space(np.zeros((6, 2, 3), np.uint8), [3], [[0, 0]]).shape
    (2, 6, 3)
    """
    return _batch_to_space.call(x, out, num_threads, (block_shape, crops, None))


@overload
def pack_vect_c(
    x: Carried, data_format: str = ..., *, vect: SupportsIndex = ..., pad_value: Any = ...,
    out: np.ndarray | None = ..., num_threads: SupportsIndex | None = ...
) -> Carried: ...


@overload
def pack_vect_c(
    x: NDArray[Scalar], data_format: str = ..., *, vect: SupportsIndex = ..., pad_value: Any = ...,
    out: np.ndarray | None = ..., num_threads: SupportsIndex | None = ...
) -> NDArray[Scalar]: ...


@overload
def pack_vect_c(
    x: Viewable, data_format: str = ..., *, vect: SupportsIndex = ..., pad_value: Any = ...,
    out: np.ndarray | None = ..., num_threads: SupportsIndex | None = ...
) -> np.ndarray: ...


@_recalled(_pack_vect_c)
def pack_vect_c(
    x: Viewable | Carrier, data_format: str = "NCHW", *, vect: SupportsIndex = 4, pad_value: Any = 0,
    out: np.ndarray | None = None, num_threads: SupportsIndex | None = None
) -> Any:
    """Pack channels into words of `vect` lanes: the NCHW_VECT_C layout.

    Channel ``c`` goes to word ``c // V``, lane ``c % V``::

        out[n, c // V, h, w, c % V] = x[n, c, h, w]

    Lanes of the last word that no channel fills hold `pad_value`.

    Parameters
    ----------
    x : array_like, shape (N, C, H, W) or (N, H, W, C)
        Any element type, or a `QuantizedTensor`; see `space_to_depth`.
    data_format : {"NCHW", "NHWC"}
        Axes of `x`.
    vect : int
        Lanes of a word, V, at least 1: 4 for TensorFlow and cuDNN, 32 for cuDNN and TensorRT, 8 and 16 for oneDNN and
        OpenVINO.
    pad_value : scalar
        What spare lanes hold; a value the dtype can hold. The default, raw zero, is what TensorRT and oneDNN require.
    out : ndarray, optional
        Where to write: C-contiguous, of exactly the result's shape and dtype, not overlapping `x`.
    num_threads : int, optional
        The largest team of threads to use; by default `set_num_threads` and the environment decide.

    Returns
    -------
    ndarray
        `out`, or a fresh C-contiguous array of the dtype of `x` with shape (N, ceil(C/V), H, W, V). For a
        QuantizedTensor one of that shape, its `values` being `out`; parameters per channel become one pair for every
        lane, (1, 0) for spare ones.

    Raises
    ------
    TypeError
        An argument of the wrong kind, as for `space_to_depth`.
    ValueError
        A wrong rank, an unknown format, `vect` below 1, a value the dtype cannot hold, or an unfit `out`.
    MemoryError
        No memory for the result.

    See Also
    --------
    unpack_vect_c : the inverse
    space_to_depth : packs in the same pass with ``out_format="NCHW_VECT_C"``
    s2dq.reference.pack_vect_c : the same in plain NumPy

    Notes
    -----
    A packed tensor does not remember C when V does not divide it: unpacking takes ``channels=``.

    References
    ----------
    TensorFlow's ``NCHW_VECT_C``; cuDNN's ``CUDNN_TENSOR_NCHW_VECT_C``; TensorRT's kCHW4 and kCHW32; oneDNN's nChw16c.

    Examples
    --------
    >>> import numpy as np, s2dq
    >>> x = np.arange(1, 7, dtype=np.int8).reshape(1, 6, 1, 1)
    >>> s2dq.pack_vect_c(x)[0, :, 0, 0]
    array([[1, 2, 3, 4],
           [5, 6, 0, 0]], dtype=int8)
    """
    return _pack_vect_c.call(x, out, num_threads, (data_format, vect, pad_value))


@overload
def unpack_vect_c(
    x: Carried, data_format: str = ..., *, channels: SupportsIndex | None = ..., out: np.ndarray | None = ...,
    num_threads: SupportsIndex | None = ...
) -> Carried: ...


@overload
def unpack_vect_c(
    x: NDArray[Scalar], data_format: str = ..., *, channels: SupportsIndex | None = ..., out: np.ndarray | None = ...,
    num_threads: SupportsIndex | None = ...
) -> NDArray[Scalar]: ...


@overload
def unpack_vect_c(
    x: Viewable, data_format: str = ..., *, channels: SupportsIndex | None = ..., out: np.ndarray | None = ...,
    num_threads: SupportsIndex | None = ...
) -> np.ndarray: ...


@_recalled(_unpack_vect_c)
def unpack_vect_c(
    x: Viewable | Carrier, data_format: str = "NCHW", *, channels: SupportsIndex | None = None,
    out: np.ndarray | None = None, num_threads: SupportsIndex | None = None
) -> Any:
    """Unpack words of channels, the inverse of `pack_vect_c`.

    Word ``c // V``, lane ``c % V`` holds channel ``c``::

        out[n, c, h, w] = x[n, c // V, h, w, c % V]        0 <= c < channels

    Parameters
    ----------
    x : array_like, shape (N, words, H, W, V)
        Any element type, or a `QuantizedTensor`; see `space_to_depth`.
    data_format : {"NCHW", "NHWC"}
        Axes of the result.
    channels : int, optional
        Logical number of channels, by default ``words*V``. It must need all the words.
    out : ndarray, optional
        Where to write: C-contiguous, of exactly the result's shape and dtype, not overlapping `x`.
    num_threads : int, optional
        The largest team of threads to use; by default `set_num_threads` and the environment decide.

    Returns
    -------
    ndarray
        `out`, or a fresh C-contiguous array of the dtype of `x` with shape (N, channels, H, W) or (N, H, W, channels).
        For a QuantizedTensor one of that shape, its `values` being `out`.

    Raises
    ------
    TypeError
        An argument of the wrong kind, as for `space_to_depth`.
    ValueError
        A wrong rank, an unknown format, `channels` that do not fill the words, or an unfit `out`.
    MemoryError
        No memory for the result.

    See Also
    --------
    pack_vect_c : the inverse
    s2dq.reference.unpack_vect_c : the same in plain NumPy

    References
    ----------
    As for `pack_vect_c`.

    Examples
    --------
    >>> import numpy as np, s2dq
    >>> packed = np.array([[1, 2, 3, 4], [5, 6, 0, 0]], np.int8).reshape(1, 2, 1, 1, 4)
    >>> s2dq.unpack_vect_c(packed, channels=6).ravel()
    array([1, 2, 3, 4, 5, 6], dtype=int8)
    """
    return _unpack_vect_c.call(x, out, num_threads, (data_format, channels))

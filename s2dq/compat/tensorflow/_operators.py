"""The functions of TensorFlow 2, and what those of TensorFlow 1 share with them."""

from typing import Any, SupportsIndex, cast

import numpy as np
from numpy.typing import NDArray

from s2dq._typing import Blocks, Integers, Pairs, Viewable
from s2dq._validate import Door, guarded, show
from s2dq.compat._adapter import Batch, Depth, Names, check_rank, plain_array

FORMATS = {"NHWC": 4, "NCHW": 4, "NCHW_VECT_C": 5}  # and their ranks
_INT32_MAX = 2**31 - 1

_operators = {
    name: kind(Names(f"compat.tensorflow.{name}", x="input"), forward)
    for name, kind, forward in (
        ("space_to_depth", Depth, True),
        ("depth_to_space", Depth, False),
        ("space_to_batch_nd", Batch, True),
        ("batch_to_space_nd", Batch, False),
        ("space_to_batch", Batch, True),
        ("batch_to_space", Batch, False),
    )
}


def space_to_depth(
    input: Viewable, block_size: SupportsIndex, data_format: str | None = "NHWC", name: str | None = None
) -> np.ndarray:
    """Move blocks into the channels: ``tf.nn.space_to_depth``.

    Parameters
    ----------
    input : array_like, shape (N, H, W, C), (N, C, H, W) or (N, C/V, H, W, V), as `data_format` says
        Any element type; of 8 bits for NCHW_VECT_C.
    block_size : int
        Edge of a block, at least 2; H and W are multiples of it.
    data_format : {"NHWC", "NCHW", "NCHW_VECT_C"}
        Axes of `input` and of the result; None is NHWC.
    name : str, optional
        Taken and not used.

    Returns
    -------
    ndarray
        Of shape (N, H/block_size, W/block_size, C*block_size**2) or with its axes in the order of `data_format`; of the
        dtype of `input`. Channels are in DCR order.

    Raises
    ------
    TypeError
        An `input` that is no array, or a `QuantizedTensor`; a `block_size` that is no integer; a `data_format` or a
        `name` that is no str; words of elements wider than 8 bits.
    ValueError
        A `block_size` below 2, which TensorFlow refuses, or one that does not divide H and W; a rank that is not that
        of `data_format`; another `data_format`.

    See Also
    --------
    s2dq.space_to_depth : other orders and layouts, blocks of 1, paddings, `out`

    References
    ----------
    TensorFlow 2.21, ``tf.nn.space_to_depth``.

    Examples
    --------
    >>> from s2dq.compat import tensorflow
    >>> tensorflow.space_to_depth([[[[1], [2]], [[3], [4]]]], 2)
    array([[[[1, 2, 3, 4]]]])
    """
    return _depth("space_to_depth", input, block_size, data_format, name)


def depth_to_space(
    input: Viewable, block_size: SupportsIndex, data_format: str | None = "NHWC", name: str | None = None
) -> np.ndarray:
    """Move channels into blocks: ``tf.nn.depth_to_space``.

    Parameters
    ----------
    input : array_like, shape (N, H, W, C), (N, C, H, W) or (N, C/V, H, W, V), as `data_format` says
        Any element type; of 8 bits for NCHW_VECT_C. C, or C/V, is a multiple of ``block_size**2``.
    block_size : int
        Edge of a block, at least 2.
    data_format : {"NHWC", "NCHW", "NCHW_VECT_C"}
        Axes of `input` and of the result; None is NHWC.
    name : str, optional
        Taken and not used.

    Returns
    -------
    ndarray
        Of shape (N, H*block_size, W*block_size, C/block_size**2) or with its axes in the order of `data_format`; of the
        dtype of `input`.

    Raises
    ------
    TypeError
        As `space_to_depth`.
    ValueError
        A `block_size` below 2, which TensorFlow refuses, or whose square does not divide the channels (the words); a
        rank that is not that of `data_format`; another `data_format`.

    See Also
    --------
    s2dq.depth_to_space : other orders and layouts, blocks of 1, crops, `out`

    References
    ----------
    TensorFlow 2.21, ``tf.nn.depth_to_space``.

    Examples
    --------
    >>> from s2dq.compat import tensorflow
    >>> tensorflow.depth_to_space([[[[1, 2, 3, 4]]]], 2)[0, ..., 0]
    array([[1, 2],
           [3, 4]])
    """
    return _depth("depth_to_space", input, block_size, data_format, name)


def space_to_batch_nd(input: Viewable, block_shape: Integers, paddings: Pairs, name: str | None = None) -> np.ndarray:
    """Move blocks of M axes into the batch: ``tf.space_to_batch_nd``.

    Parameters
    ----------
    input : array_like, shape (N, D1, ..., DM, ...)
        Any element type; what comes behind the M axes rides along.
    block_shape : sequence of int or int array, length M
        Block along each axis, at least 1.
    paddings : sequence or int array, shape (M, 2)
        Zeros before and behind each of the M axes.
    name : str, optional
        Taken and not used.

    Returns
    -------
    ndarray, shape (N*B, (D1 + pads)/b1, ..., (DM + pads)/bM, ...)
        B is the product of `block_shape`; of the dtype of `input`.

    Raises
    ------
    TypeError
        An `input` that is no array, or a `QuantizedTensor`; blocks or paddings that are no integers; a `name` that is
        no str.
    ValueError
        Too few axes, a block below 1, negative or misshapen paddings, a padded axis that its block does not divide.

    See Also
    --------
    s2dq.space_to_batch_nd : with a pad value, a zero point, `out`

    Notes
    -----
    TensorFlow's kernels stop at four axes that are blocked; here there is no such limit.

    References
    ----------
    TensorFlow 2.21, ``tf.space_to_batch_nd``.

    Examples
    --------
    >>> from s2dq.compat import tensorflow
    >>> tensorflow.space_to_batch_nd([[1, 2, 3]], [2], [[0, 1]])
    array([[1, 3],
           [2, 0]])
    """
    return _batch("space_to_batch_nd", input, block_shape, "paddings", paddings, name)


def batch_to_space_nd(input: Viewable, block_shape: Integers, crops: Pairs, name: str | None = None) -> np.ndarray:
    """Move the batch into blocks of M axes: ``tf.batch_to_space`` as it is called in graphs, ``BatchToSpaceND``.

    Parameters
    ----------
    input : array_like, shape (N*B, D1, ..., DM, ...)
        Any element type; B is the product of `block_shape`.
    block_shape : sequence of int or int array, length M
        Block along each axis, at least 1.
    crops : sequence or int array, shape (M, 2)
        What to take away at both ends of each of the M axes of the result.
    name : str, optional
        Taken and not used.

    Returns
    -------
    ndarray, shape (N, D1*b1 - crops, ..., DM*bM - crops, ...)
        Of the dtype of `input`.

    Raises
    ------
    TypeError
        As `space_to_batch_nd`.
    ValueError
        Too few axes, a block below 1, a batch that is no multiple of B, negative or misshapen crops, crops larger than
        their axis.

    See Also
    --------
    s2dq.batch_to_space_nd : with `out`

    References
    ----------
    TensorFlow 2.21, ``tf.raw_ops.BatchToSpaceND``.

    Examples
    --------
    >>> from s2dq.compat import tensorflow
    >>> tensorflow.batch_to_space_nd([[1, 3], [2, 0]], [2], [[0, 1]])
    array([[1, 2, 3]])
    """
    return _batch("batch_to_space_nd", input, block_shape, "crops", crops, name)


def space_to_batch(input: Viewable, block_shape: Integers, paddings: Pairs, name: str | None = None) -> np.ndarray:
    """`space_to_batch_nd` by the name it has in TensorFlow 2: ``tf.space_to_batch``.

    Parameters
    ----------
    input, block_shape, paddings, name
        As `space_to_batch_nd`.

    Returns
    -------
    ndarray
        As `space_to_batch_nd`.

    Raises
    ------
    TypeError, ValueError
        As `space_to_batch_nd`.

    References
    ----------
    TensorFlow 2.21, ``tf.space_to_batch``.

    Examples
    --------
    >>> from s2dq.compat import tensorflow
    >>> tensorflow.space_to_batch([[1, 2, 3]], [2], [[1, 0]])
    array([[0, 2],
           [1, 3]])
    """
    return _batch("space_to_batch", input, block_shape, "paddings", paddings, name)


def batch_to_space(input: Viewable, block_shape: Blocks, crops: Pairs, name: str | None = None) -> np.ndarray:
    """`batch_to_space_nd` by the name it has in TensorFlow 2: ``tf.batch_to_space``.

    Parameters
    ----------
    input : array_like
        As `batch_to_space_nd`.
    block_shape : int, sequence of int or int array
        As `batch_to_space_nd`; an int stands for two blocks of that size, as it does in TensorFlow.
    crops, name
        As `batch_to_space_nd`.

    Returns
    -------
    ndarray
        As `batch_to_space_nd`.

    Raises
    ------
    TypeError, ValueError
        As `batch_to_space_nd`.

    References
    ----------
    TensorFlow 2.21, ``tf.batch_to_space``.

    Examples
    --------
    >>> from s2dq.compat import tensorflow
    >>> tensorflow.batch_to_space([[[1]], [[2]], [[3]], [[4]]], 2, [[0, 0], [0, 0]])
    array([[[1, 2],
            [3, 4]]])
    """
    # An int's own type, not isinstance: that asks the value's own __class__.
    if issubclass(type(block_shape), int) and type(block_shape) is not bool:
        block_shape = cast(Integers, (block_shape, block_shape))
    return _batch("batch_to_space", input, block_shape, "crops", crops, name)


def required_space_to_batch_paddings(
    input_shape: Integers, block_shape: Integers, base_paddings: Pairs | None = None, name: str | None = None
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The paddings that let blocks divide a shape, and the crops that take them away again.

    ``tf.required_space_to_batch_paddings``; its paddings are for `space_to_batch_nd`, its crops for
    `batch_to_space_nd`.

    Parameters
    ----------
    input_shape : sequence of int or int array, length M
        Extents of the axes, at least 0.
    block_shape : sequence of int or int array, length M
        Block along each axis, at least 1.
    base_paddings : sequence or int array, shape (M, 2), optional
        The least to add before and behind each axis; by default nothing. What is missing is added behind.
    name : str, optional
        Taken and not used.

    Returns
    -------
    paddings : ndarray of int32, shape (M, 2)
        ``paddings[i] = [base start, base end + e]``, with the least ``e >= 0`` for which the block divides the padded
        axis.
    crops : ndarray of int32, shape (M, 2)
        ``crops[i] = [0, e]``, which takes that away again.

    Raises
    ------
    TypeError
        Entries that are no integers; a `name` that is no str.
    ValueError
        Other than M entries or pairs, a block below 1, negative extents or paddings, results beyond int32.

    References
    ----------
    TensorFlow 2.21, ``tf.required_space_to_batch_paddings``.

    Examples
    --------
    >>> from s2dq.compat import tensorflow
    >>> paddings, crops = tensorflow.required_space_to_batch_paddings([5, 8], [2, 4], [[1, 1], [0, 0]])
    >>> paddings
    array([[1, 2],
           [0, 0]], dtype=int32)
    >>> crops
    array([[0, 1],
           [0, 0]], dtype=int32)
    """
    rows = _checked_required("compat.tensorflow.required_space_to_batch_paddings", input_shape, block_shape,
                             base_paddings, name)
    paddings = np.array([(start, end + missing) for start, end, missing in rows], np.int32).reshape(-1, 2)
    crops = np.array([(0, missing) for _, _, missing in rows], np.int32).reshape(-1, 2)
    return paddings, crops


def _depth(operator: str, tensor: Any, block_size: Any, data_format: Any, name: Any) -> np.ndarray:
    move = _operators[operator]
    return move(*_checked_depth(move.name, tensor, block_size, data_format, name))


def _batch(operator: str, tensor: Any, block_shape: Any, margins: str, pairs: Any, name: Any) -> np.ndarray:
    move = _operators[operator]
    return move(*_checked_batch(move.name, tensor, block_shape, margins, pairs, name))


@guarded
def _checked_depth(
    operator: str, tensor: Any, block_size: Any, data_format: Any, name: Any
) -> tuple[np.ndarray, int, str]:
    door = Door(operator)
    array = plain_array(door, "input", tensor)
    block_size = door.integer("block_size", block_size, 2)
    data_format = "NHWC" if data_format is None else door.choice("data_format", data_format, FORMATS)
    check_name(door, name)
    array = door.settle(tensor, array, "input")
    check_rank(door, "input", array, FORMATS[data_format], data_format)
    return array, block_size, data_format


@guarded
def _checked_batch(
    operator: str, tensor: Any, block_shape: Any, margins: str, pairs: Any, name: Any
) -> tuple[np.ndarray, tuple[int, ...], tuple[tuple[int, int], ...]]:
    door = Door(operator)
    array = plain_array(door, "input", tensor)
    block = door.block_shape(block_shape)
    pairs = door.pairs(margins, pairs, len(block))
    check_name(door, name)
    array = door.settle(tensor, array, "input")
    if array.ndim <= len(block):
        rule = f"input must have at least {len(block) + 1} dimensions (batch and {len(block)} block axes)"
        door.refuse(ValueError, f"{rule}, not {array.ndim}")
    return array, block, pairs


@guarded
def _checked_required(
    operator: str, input_shape: Any, block_shape: Any, base_paddings: Any, name: Any
) -> list[tuple[int, int, int]]:
    door = Door(operator)
    block = door.block_shape(block_shape)
    rule = "a sequence of integers, one per block axis"
    extents = [door.integer(f"input_shape[{i}]", extent, 0)
               for i, extent in enumerate(door.items("input_shape", input_shape, rule))]
    if len(extents) != len(block):
        door.refuse(ValueError, f"input_shape must have {len(block)} entries, as block_shape, not {show(input_shape)}")
    base = ((0, 0),) * len(block)
    if base_paddings is not None:
        base = door.pairs("base_paddings", base_paddings, len(block))
    check_name(door, name)
    rows = [(start, end, -(extent + start + end) % b) for extent, b, (start, end) in zip(extents, block, base)]
    for i, (start, end, missing) in enumerate(rows):
        if max(start, end + missing) > _INT32_MAX:
            door.refuse(ValueError, f"paddings[{i}] [{show(start)}, {show(end + missing)}] do not fit into int32")
    return rows


def check_name(door: Door, name: Any) -> None:
    """Refuse what cannot name a node."""
    if name is not None and not isinstance(name, str):
        door.refuse(TypeError, f"name must be a str or None, not {show(name)}")

"""TensorFlow 1: the same operators in the argument orders of ``tf.compat.v1``.

What is the same in both has one function here and there: `space_to_batch_nd`, `batch_to_space_nd` and
`required_space_to_batch_paddings`.
"""

from typing import Any, SupportsIndex

import numpy as np

from s2dq._typing import Pairs, Viewable
from s2dq._validate import Door, guarded
from s2dq.compat._adapter import Batch, NamesOfOneBlock, check_rank, plain_array
from s2dq.compat.tensorflow import _operators
from s2dq.compat.tensorflow._operators import batch_to_space_nd, required_space_to_batch_paddings, space_to_batch_nd

__all__ = [
    "batch_to_space",
    "batch_to_space_nd",
    "depth_to_space",
    "required_space_to_batch_paddings",
    "space_to_batch",
    "space_to_batch_nd",
    "space_to_depth",
]



def _by_argument(name: str, to_batch: bool) -> dict[str, Batch]:
    """An operator for each of the names that a caller may give the block by."""
    arguments = ("block_size", "block_shape")
    return {word: Batch(NamesOfOneBlock(name, x="input", block_shape=word), to_batch) for word in arguments}


_to_batch = _by_argument("compat.tensorflow.v1.space_to_batch", True)
_from_batch = _by_argument("compat.tensorflow.v1.batch_to_space", False)


def space_to_depth(
    input: Viewable, block_size: SupportsIndex, name: str | None = None, data_format: str | None = "NHWC"
) -> np.ndarray:
    """``tf.compat.v1.space_to_depth``: `name` comes before `data_format`.

    Parameters
    ----------
    input, block_size, name, data_format
        As `s2dq.compat.tensorflow.space_to_depth`.

    Returns
    -------
    ndarray
        As `s2dq.compat.tensorflow.space_to_depth`.

    Raises
    ------
    TypeError, ValueError
        As `s2dq.compat.tensorflow.space_to_depth`.

    References
    ----------
    TensorFlow 2.21, ``tf.compat.v1.space_to_depth``.

    Examples
    --------
    >>> from s2dq.compat.tensorflow import v1
    >>> v1.space_to_depth([[[[1, 2], [3, 4]]]], 2, "stem", "NCHW").ravel()
    array([1, 2, 3, 4])
    """
    return _operators.space_to_depth(input, block_size, data_format, name)


def depth_to_space(
    input: Viewable, block_size: SupportsIndex, name: str | None = None, data_format: str | None = "NHWC"
) -> np.ndarray:
    """``tf.compat.v1.depth_to_space``: `name` comes before `data_format`.

    Parameters
    ----------
    input, block_size, name, data_format
        As `s2dq.compat.tensorflow.depth_to_space`.

    Returns
    -------
    ndarray
        As `s2dq.compat.tensorflow.depth_to_space`.

    Raises
    ------
    TypeError, ValueError
        As `s2dq.compat.tensorflow.depth_to_space`.

    References
    ----------
    TensorFlow 2.21, ``tf.compat.v1.depth_to_space``.

    Examples
    --------
    >>> from s2dq.compat.tensorflow import v1
    >>> v1.depth_to_space([[[[1, 2, 3, 4]]]], 2, "head").shape
    (1, 2, 2, 1)
    """
    return _operators.depth_to_space(input, block_size, data_format, name)


def space_to_batch(
    input: Viewable, paddings: Pairs, block_size: SupportsIndex | None = None, name: str | None = None,
    block_shape: SupportsIndex | None = None,
) -> np.ndarray:  # fmt: skip
    """``tf.compat.v1.space_to_batch``: one block size for the two axes of a four-dimensional tensor.

    Parameters
    ----------
    input : array_like, shape (N, H, W, C)
        Any element type.
    paddings : sequence or int array, shape (2, 2)
        Zeros before and behind H and W.
    block_size : int
        Edge of a block, at least 1.
    name : str, optional
        Taken and not used.
    block_shape : int
        Another name of `block_size`; give one of them.

    Returns
    -------
    ndarray, shape (N*block_size**2, H', W', C)
        H' and W' are the padded extents by `block_size`; of the dtype of `input`.

    Raises
    ------
    TypeError
        An `input` that is no array, or a `QuantizedTensor`; neither of `block_size` and `block_shape`, or one that is
        no integer; paddings that are no integers; a `name` that is no str.
    ValueError
        Both `block_size` and `block_shape`, another rank than 4, a block below 1, negative or misshapen paddings, a
        padded extent that the block does not divide.

    References
    ----------
    TensorFlow 2.21, ``tf.compat.v1.space_to_batch``.

    Examples
    --------
    >>> from s2dq.compat.tensorflow import v1
    >>> v1.space_to_batch([[[[1], [2]], [[3], [4]]]], [[0, 0], [0, 0]], 2).ravel()
    array([1, 2, 3, 4])
    """
    argument, *arguments = _checked(
        "compat.tensorflow.v1.space_to_batch", input, "paddings", paddings, block_size, name, block_shape)
    return _to_batch[argument](*arguments)


def batch_to_space(
    input: Viewable, crops: Pairs, block_size: SupportsIndex | None, name: str | None = None,
    block_shape: SupportsIndex | None = None,
) -> np.ndarray:  # fmt: skip
    """``tf.compat.v1.batch_to_space``: one block size for the two axes of a four-dimensional tensor.

    Parameters
    ----------
    input : array_like, shape (N*block_size**2, H, W, C)
        Any element type.
    crops : sequence or int array, shape (2, 2)
        What to take away at both ends of H and W of the result.
    block_size : int
        Edge of a block, at least 1.
    name : str, optional
        Taken and not used.
    block_shape : int
        Another name of `block_size`; give one of them, and None for the other.

    Returns
    -------
    ndarray, shape (N, H*block_size - crops, W*block_size - crops, C)
        Of the dtype of `input`.

    Raises
    ------
    TypeError, ValueError
        As `space_to_batch`; ValueError also where ``block_size**2`` does not divide the batch, or crops are larger than
        their axis.

    References
    ----------
    TensorFlow 2.21, ``tf.compat.v1.batch_to_space``.

    Examples
    --------
    >>> from s2dq.compat.tensorflow import v1
    >>> v1.batch_to_space([[[[1]]], [[[2]]], [[[3]]], [[[4]]]], [[0, 1], [0, 0]], 2).ravel()
    array([1, 2])
    """
    argument, *arguments = _checked(
        "compat.tensorflow.v1.batch_to_space", input, "crops", crops, block_size, name, block_shape)
    return _from_batch[argument](*arguments)


@guarded
def _checked(
    operator: str, tensor: Any, margins: str, pairs: Any, block_size: Any, name: Any, block_shape: Any
) -> tuple[str, np.ndarray, tuple[int, ...], tuple[tuple[int, int], ...]]:
    door = Door(operator)
    array = plain_array(door, "input", tensor)
    if block_size is not None and block_shape is not None:
        door.refuse(ValueError, "block_size and block_shape are the same; give one of them")
    argument, given = ("block_size", block_size) if block_shape is None else ("block_shape", block_shape)
    block = (door.integer(argument, given, 1),) * 2
    pairs = door.pairs(margins, pairs, 2)
    _operators.check_name(door, name)
    array = door.settle(tensor, array, "input")
    check_rank(door, "input", array, 4, "NHWC")
    return argument, array, block, pairs

"""Android NNAPI: SPACE_TO_DEPTH, DEPTH_TO_SPACE, SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND.

NNAPI's operands are float16, float32, or quantized to 8 bits with one scale and one zero point; a quantized result has
those of the input. The first two are arrays. The third may be one, and its zero point counts as 0 then; or a
`QuantizedTensor`, which brings its own and gets it back.
"""

from typing import Any, SupportsIndex

import numpy as np

from s2dq._typing import Integers, Pairs, Viewable
from s2dq._validate import Door, guarded, show
from s2dq.compat._adapter import Batch, Depth, Names, NamesWithoutChannels, check_rank
from s2dq.quantized import QuantizedTensor

__all__ = ["batch_to_space_nd", "depth_to_space", "space_to_batch_nd", "space_to_depth"]

DTYPES = ("float16", "float32", "int8", "uint8")

_to_depth = Depth(Names("compat.nnapi.space_to_depth", x="input", data_format=None), True)
_to_space = Depth(Names("compat.nnapi.depth_to_space", x="input", data_format=None), False)
# By what `nchw` says.
_to_batch = {
    nchw: Batch(names("compat.nnapi.space_to_batch_nd", x="input"), True)
    for nchw, names in ((False, Names), (True, NamesWithoutChannels))
}
_from_batch = {
    nchw: Batch(names("compat.nnapi.batch_to_space_nd", x="input"), False)
    for nchw, names in ((False, Names), (True, NamesWithoutChannels))
}


def space_to_depth(input: Viewable | QuantizedTensor, block_size: SupportsIndex, nchw: bool | np.bool_ = False) -> Any:
    """Move blocks into the channels: ANEURALNETWORKS_SPACE_TO_DEPTH.

    Parameters
    ----------
    input : array_like or QuantizedTensor, shape (N, H, W, C), or (N, C, H, W) with `nchw`
        Of float16, float32, int8 or uint8.
    block_size : int
        Edge of a block, at least 1; H and W are multiples of it.
    nchw : bool
        Channels before space.

    Returns
    -------
    ndarray or QuantizedTensor, shape (N, H/block_size, W/block_size, C*block_size**2), or with channels first
        As `input`: of the same dtype, and the same scale and zero point. Channels are in DCR order.

    Raises
    ------
    TypeError
        An `input` of another kind or dtype, or with parameters per channel; a `block_size` that is no integer, an
        `nchw` that is no bool.
    ValueError
        Another rank than 4; a `block_size` below 1 or one that does not divide H and W.

    See Also
    --------
    s2dq.space_to_depth : every dtype and order, parameters per channel, `out`

    References
    ----------
    Android NDK, NeuralNetworksTypes.h, ANEURALNETWORKS_SPACE_TO_DEPTH.

    Examples
    --------
    >>> import numpy as np, s2dq
    >>> from s2dq.compat import nnapi
    >>> q = s2dq.QuantizedTensor(np.arange(4, dtype=np.uint8).reshape(1, 2, 2, 1), 0.5, 128)
    >>> nnapi.space_to_depth(q, 2)
    QuantizedTensor([[[[0, 1, 2, 3]]]], dtype=uint8, scale=0.5, zero_point=128)
    """
    return _to_depth(*_checked_depth(_to_depth.name, input, block_size, nchw))


def depth_to_space(input: Viewable | QuantizedTensor, block_size: SupportsIndex, nchw: bool | np.bool_ = False) -> Any:
    """Move channels into blocks: ANEURALNETWORKS_DEPTH_TO_SPACE.

    Parameters
    ----------
    input : array_like or QuantizedTensor, shape (N, H, W, C), or (N, C, H, W) with `nchw`
        Of float16, float32, int8 or uint8; C is a multiple of ``block_size**2``, in DCR order.
    block_size : int
        Edge of a block, at least 1.
    nchw : bool
        Channels before space.

    Returns
    -------
    ndarray or QuantizedTensor, shape (N, H*block_size, W*block_size, C/block_size**2), or with channels first
        As `input`: of the same dtype, and the same scale and zero point.

    Raises
    ------
    TypeError
        As `space_to_depth`.
    ValueError
        Another rank than 4; a `block_size` below 1 or whose square does not divide C.

    References
    ----------
    Android NDK, NeuralNetworksTypes.h, ANEURALNETWORKS_DEPTH_TO_SPACE.

    Examples
    --------
    >>> import numpy as np
    >>> from s2dq.compat import nnapi
    >>> nnapi.depth_to_space(np.arange(4, dtype=np.float32).reshape(1, 4, 1, 1), 2, nchw=True)[0, 0]
    array([[0., 1.],
           [2., 3.]], dtype=float32)
    """
    return _to_space(*_checked_depth(_to_space.name, input, block_size, nchw))


def space_to_batch_nd(
    input: Viewable | QuantizedTensor, block_shape: Integers, paddings: Pairs, nchw: bool | np.bool_ = False
) -> Any:
    """Move blocks into the batch: ANEURALNETWORKS_SPACE_TO_BATCH_ND.

    Parameters
    ----------
    input : array_like or QuantizedTensor, shape (N, H, W, C), or (N, C, H, W) with `nchw`
        Of float16, float32, int8 or uint8.
    block_shape : sequence of int or int array, length 2
        Block along H and W, at least 1.
    paddings : sequence or int array, shape (2, 2)
        What to add before and behind H and W: zeros, or the zero point of a QuantizedTensor.
    nchw : bool
        Channels before space.

    Returns
    -------
    ndarray or QuantizedTensor, shape (N*bH*bW, H', W', C), or with channels first
        H' and W' are the padded extents by their blocks. As `input`: of the same dtype, scale and zero point.

    Raises
    ------
    TypeError
        An `input` of another kind or dtype, or with parameters per channel; blocks or paddings that are no integers, an
        `nchw` that is no bool.
    ValueError
        Another rank than 4, other than two blocks and two pairs, a block below 1, negative paddings, a padded extent
        that its block does not divide.

    See Also
    --------
    s2dq.space_to_batch_nd : any number of blocks, every dtype, parameters per channel, `out`

    References
    ----------
    Android NDK, NeuralNetworksTypes.h, ANEURALNETWORKS_SPACE_TO_BATCH_ND; paddings as from API level 29.

    Examples
    --------
    >>> import numpy as np, s2dq
    >>> from s2dq.compat import nnapi
    >>> q = s2dq.QuantizedTensor(np.ones((1, 2, 1, 1), np.int8), 0.5, -3)
    >>> nnapi.space_to_batch_nd(q, [2, 1], [[1, 1], [0, 0]]).values.ravel()
    array([-3,  1,  1, -3], dtype=int8)
    """
    nchw, *arguments = _checked_batch("compat.nnapi.space_to_batch_nd", input, block_shape, paddings, nchw)
    return _to_batch[nchw](*arguments)


def batch_to_space_nd(input: Viewable | QuantizedTensor, block_shape: Integers, nchw: bool | np.bool_ = False) -> Any:
    """Move the batch into blocks: ANEURALNETWORKS_BATCH_TO_SPACE_ND. It has no crops.

    Parameters
    ----------
    input : array_like or QuantizedTensor, shape (N*bH*bW, H, W, C), or (N*bH*bW, C, H, W) with `nchw`
        Of float16, float32, int8 or uint8.
    block_shape : sequence of int or int array, length 2
        Block along H and W, at least 1.
    nchw : bool
        Channels before space.

    Returns
    -------
    ndarray or QuantizedTensor, shape (N, H*bH, W*bW, C), or with channels first
        As `input`: of the same dtype, and the same scale and zero point.

    Raises
    ------
    TypeError
        As `space_to_batch_nd`.
    ValueError
        Another rank than 4, other than two blocks, a block below 1, a batch that is no multiple of ``bH*bW``.

    See Also
    --------
    s2dq.batch_to_space_nd : with crops, any number of blocks, every dtype, `out`

    References
    ----------
    Android NDK, NeuralNetworksTypes.h, ANEURALNETWORKS_BATCH_TO_SPACE_ND.

    Examples
    --------
    >>> import numpy as np
    >>> from s2dq.compat import nnapi
    >>> nnapi.batch_to_space_nd(np.arange(4, dtype=np.uint8).reshape(4, 1, 1, 1), [2, 2]).ravel()
    array([0, 1, 2, 3], dtype=uint8)
    """
    no_crops = ((0, 0), (0, 0))
    nchw, *arguments = _checked_batch("compat.nnapi.batch_to_space_nd", input, block_shape, no_crops, nchw)
    return _from_batch[nchw](*arguments)


@guarded
def _checked_depth(name: str, given: Any, block_size: Any, nchw: Any) -> tuple[Any, int, str]:
    door = Door(name)
    nchw = _flag(door, nchw)
    operand = _operand(door, given, nchw)
    block_size = door.integer("block_size", block_size, 1)
    operand = _settled(door, given, operand, nchw)
    return operand, block_size, "NCHW" if nchw else "NHWC"


@guarded
def _checked_batch(
    name: str, given: Any, block_shape: Any, paddings: Any, nchw: Any
) -> tuple[bool, Any, tuple[int, ...], tuple[tuple[int, int], ...]]:
    door = Door(name)
    nchw = _flag(door, nchw)
    operand = _operand(door, given, nchw)
    entries = door.items("block_shape", block_shape, "two integers, for H and W")
    if len(entries) != 2:
        door.refuse(ValueError, f"block_shape must be two integers, for H and W, not {show(block_shape)}")
    block = tuple(door.integer(f"block_shape[{i}]", entry, 1) for i, entry in enumerate(entries))
    pairs = door.pairs("paddings", paddings, 2)
    operand = _settled(door, given, operand, nchw)
    if nchw:
        block, pairs = (1, *block), ((0, 0), *pairs)
    return nchw, operand, block, pairs


def _operand(door: Door, given: Any, nchw: bool) -> Any:
    """A tensor that NNAPI has an operand type for."""
    quantized = isinstance(given, QuantizedTensor)
    array = given.values if quantized else door.array(given, "input")
    if array.dtype.name not in DTYPES or not array.dtype.isnative:
        door.refuse(TypeError, f"input must have one of NNAPI's types {', '.join(DTYPES)}, not {array.dtype}")
    if quantized and given.axis is not None:
        rule = "input must have one scale and one zero point, for NNAPI's operators take no others"
        door.refuse(TypeError, f"{rule}; it has one for each index of axis {given.axis}")
    check_rank(door, "input", array, 4, "NCHW" if nchw else "NHWC")
    return given if quantized else array


def _settled(door: Door, given: Any, operand: Any, nchw: bool) -> Any:
    """What `_operand` gave, after the last argument that could run code of the caller's own."""
    if operand is given:  # a quantized tensor: its operator takes its arrays as they are then
        return given
    array = door.settle(given, operand, "input")
    check_rank(door, "input", array, 4, "NCHW" if nchw else "NHWC")
    return array


def _flag(door: Door, nchw: Any) -> bool:
    if not isinstance(nchw, (bool, np.bool_)):
        door.refuse(TypeError, f"nchw must be a bool, not {show(nchw)}")
    return bool(nchw)

"""OpenVINO: SpaceToDepth-1, DepthToSpace-1, SpaceToBatch-2 and BatchToSpace-2, as functions of arrays.

Depth operators take channels first and any number of spatial axes. The batch operators' vectors have an entry for each
axis, the batch among them, whose entry can be nothing but 1 or 0.
"""

from typing import Any, SupportsIndex

import numpy as np

from s2dq._layout import Layout, channels_first
from s2dq._typing import Integers, Viewable
from s2dq._validate import Door, guarded, show
from s2dq.compat._adapter import Batch, Depth, Names, NamesWithBatch, plain_array

__all__ = ["batch_to_space", "depth_to_space", "space_to_batch", "space_to_depth"]

MODES = {"blocks_first": "DCR", "depth_first": "CRD"}

_to_depth = Depth(Names("compat.openvino.space_to_depth", x="data", data_format=None), True)
_to_space = Depth(Names("compat.openvino.depth_to_space", x="data", data_format=None), False)
_to_batch = Batch(NamesWithBatch("compat.openvino.space_to_batch", x="data"), True)
_from_batch = Batch(NamesWithBatch("compat.openvino.batch_to_space", x="data"), False)


def space_to_depth(data: Viewable, mode: str, block_size: SupportsIndex = 1) -> np.ndarray:
    """Move blocks of all spatial axes into the channels: OpenVINO SpaceToDepth-1.

    Parameters
    ----------
    data : array_like, shape (N, C, D1, ..., DK)
        K from 1 up, any element type.
    mode : {"blocks_first", "depth_first"}
        Order of the deep channels: position in the block first (DCR), or channel first (CRD). In capitals, too.
    block_size : int
        Edge of a block along every spatial axis, at least 1; divides them all.

    Returns
    -------
    ndarray, shape (N, C*block_size**K, D1/block_size, ..., DK/block_size)
        A fresh array of the dtype of `data`.

    Raises
    ------
    TypeError
        A `data` that is no array, or a `QuantizedTensor`; a `mode` that is no str; a `block_size` that is no integer.
    ValueError
        A rank below 3, another `mode`, a `block_size` below 1 or one that does not divide the spatial axes.

    See Also
    --------
    s2dq.space_to_depth : other layouts, paddings, `out`

    References
    ----------
    OpenVINO operation set 1, SpaceToDepth.

    Examples
    --------
    >>> import numpy as np
    >>> from s2dq.compat import openvino
    >>> openvino.space_to_depth(np.arange(8).reshape(1, 2, 4), "blocks_first", 2)[0]
    array([[0, 2],
           [4, 6],
           [1, 3],
           [5, 7]])
    """
    return _to_depth(*_checked_depth(_to_depth.name, data, mode, block_size))


def depth_to_space(data: Viewable, mode: str, block_size: SupportsIndex = 1) -> np.ndarray:
    """Move channels into blocks of all spatial axes: OpenVINO DepthToSpace-1.

    Parameters
    ----------
    data : array_like, shape (N, C, D1, ..., DK)
        K from 1 up, any element type; C is a multiple of ``block_size**K``.
    mode : {"blocks_first", "depth_first"}
        Order of the channels of `data`: position in the block first (DCR), or channel first (CRD). In capitals, too.
    block_size : int
        Edge of a block along every spatial axis, at least 1.

    Returns
    -------
    ndarray, shape (N, C/block_size**K, D1*block_size, ..., DK*block_size)
        A fresh array of the dtype of `data`.

    Raises
    ------
    TypeError
        As `space_to_depth`.
    ValueError
        A rank below 3, another `mode`, a `block_size` below 1 or whose power K does not divide C.

    See Also
    --------
    s2dq.depth_to_space : other layouts, crops, `out`

    References
    ----------
    OpenVINO operation set 1, DepthToSpace.

    Examples
    --------
    >>> import numpy as np
    >>> from s2dq.compat import openvino
    >>> openvino.depth_to_space(np.arange(8).reshape(1, 4, 2), "depth_first", 2)[0]
    array([[0, 2, 1, 3],
           [4, 6, 5, 7]])
    """
    return _to_space(*_checked_depth(_to_space.name, data, mode, block_size))


def space_to_batch(data: Viewable, block_shape: Integers, pads_begin: Integers, pads_end: Integers) -> np.ndarray:
    """Move blocks into the batch: OpenVINO SpaceToBatch-2.

    Parameters
    ----------
    data : array_like, shape (N, D1, ..., DK)
        K from 1 up, any element type.
    block_shape : sequence of int or int array, length K + 1
        Block along each axis, at least 1; 1 for the batch.
    pads_begin, pads_end : sequence of int or int array, length K + 1
        Zeros to add before and behind each axis; none to the batch.

    Returns
    -------
    ndarray, shape (N*B, (D1 + pads) / block, ..., (DK + pads) / block)
        B is the product of the blocks. A fresh array of the dtype of `data`.

    Raises
    ------
    TypeError
        A `data` that is no array, or a `QuantizedTensor`; vectors that are not of integers.
    ValueError
        A rank below 2, vectors of another length, a block below 1, negative pads, a batch that is blocked or padded,
        padded axes that are no multiples of their blocks.

    See Also
    --------
    s2dq.space_to_batch_nd : without entries for what rides along; with a pad value and `out`

    Notes
    -----
    OpenVINO 2026.4 takes a blocked batch, which it then leaves as it is, and negative pads, which cut. Its
    specification has neither, and they are refused here.

    References
    ----------
    OpenVINO operation set 2, SpaceToBatch.

    Examples
    --------
    >>> import numpy as np
    >>> from s2dq.compat import openvino
    >>> openvino.space_to_batch(np.arange(1, 5).reshape(1, 4), [1, 2], [0, 1], [0, 1])
    array([[0, 2, 4],
           [1, 3, 0]])
    """
    return _to_batch(*_checked_batch(_to_batch.name, "pads", data, block_shape, pads_begin, pads_end))


def batch_to_space(data: Viewable, block_shape: Integers, crops_begin: Integers, crops_end: Integers) -> np.ndarray:
    """Move the batch into blocks: OpenVINO BatchToSpace-2.

    Parameters
    ----------
    data : array_like, shape (N*B, D1, ..., DK)
        K from 1 up, any element type; B is the product of the blocks.
    block_shape : sequence of int or int array, length K + 1
        Block along each axis, at least 1; 1 for the batch.
    crops_begin, crops_end : sequence of int or int array, length K + 1
        What to take away at the start and the end of each axis of the result; nothing from the batch.

    Returns
    -------
    ndarray, shape (N, D1*block - crops, ..., DK*block - crops)
        A fresh array of the dtype of `data`.

    Raises
    ------
    TypeError
        As `space_to_batch`.
    ValueError
        A rank below 2, vectors of another length, a block below 1, negative crops, a batch that is blocked or cropped
        or no multiple of B, crops larger than their axis.

    See Also
    --------
    s2dq.batch_to_space_nd : without entries for what rides along; with `out`

    References
    ----------
    OpenVINO operation set 2, BatchToSpace.

    Examples
    --------
    >>> import numpy as np
    >>> from s2dq.compat import openvino
    >>> openvino.batch_to_space([[0, 2, 4], [1, 3, 0]], [1, 2], [0, 1], [0, 1])
    array([[1, 2, 3, 4]])
    """
    return _from_batch(*_checked_batch(_from_batch.name, "crops", data, block_shape, crops_begin, crops_end))


@guarded
def _checked_depth(name: str, data: Any, mode: Any, block_size: Any) -> tuple[np.ndarray, int, Layout, str]:
    door = Door(name)
    array = plain_array(door, "data", data)
    if issubclass(type(mode), str):  # in capitals, too, as OpenVINO takes it
        mode = str.lower(mode)
    mode = MODES[door.choice("mode", mode, MODES)]
    block_size = door.integer("block_size", block_size, 1)
    array = door.settle(data, array, "data")
    if array.ndim < 3:
        rule = "data must have at least 3 dimensions (batch, channels and one spatial axis)"
        door.refuse(ValueError, f"{rule}, not {array.ndim}")
    return array, block_size, channels_first(array.ndim - 2), mode


@guarded
def _checked_batch(
    name: str, margins: str, data: Any, block_shape: Any, begin: Any, end: Any
) -> tuple[np.ndarray, tuple[int, ...], tuple[tuple[int, int], ...]]:
    door = Door(name)
    array = plain_array(door, "data", data)
    if array.ndim < 2:
        door.refuse(ValueError, f"data must have at least 2 dimensions (batch and one more), not {array.ndim}")
    block = _vector(door, "block_shape", block_shape, array.ndim, least=1, of_batch=1)
    begin = _vector(door, f"{margins}_begin", begin, array.ndim, least=0, of_batch=0)
    end = _vector(door, f"{margins}_end", end, array.ndim, least=0, of_batch=0)
    rank, array = array.ndim, door.settle(data, array, "data")
    if array.ndim != rank:
        door.refuse(TypeError, "data changed its shape during the call")
    return array, block[1:], tuple(zip(begin, end))[1:]


def _vector(door: Door, argument: str, value: Any, rank: int, least: int, of_batch: int) -> tuple[int, ...]:
    """One integer for each axis; that of the batch is given."""
    rule = f"{rank} integers, one for each dimension of data"
    entries = door.items(argument, value, rule)
    if len(entries) != rank:
        door.refuse(ValueError, f"{argument} must be {rule}, not {show(value)}")
    checked = tuple(door.integer(f"{argument}[{i}]", entry, least) for i, entry in enumerate(entries))
    if checked[0] != of_batch:
        rule = f"{argument}[0] must be {of_batch}, for it is that of the batch"
        door.refuse(ValueError, f"{rule}, not {show(checked[0])}")
    return checked

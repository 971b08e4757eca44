"""The operators on Dask arrays: the same results, lazily, a chunk at a time.

Nothing but this module imports Dask. A call is checked by the plain operator's own door, on an array of the right
shape that has no memory, so every error comes at the call and says the same. What is left is to say which piece of
`x` makes which chunk of the result: edges of chunks that fall inside a block move to its end, paddings and crops are
the affair of the first and last chunks, and each chunk is one call of the plain operator on one thread (the
scheduler has threads of its own).

Top to bottom: the public functions, the check, the axes (integers only), the functions that run on chunks.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import accumulate, pairwise
from math import gcd, isnan, lcm, prod
from typing import Any, NamedTuple, SupportsIndex, TypeAlias

import dask.array as da
import numpy as np
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph

from s2dq import operators
from s2dq._layout import BatchProblem, DepthProblem, Layout, words
from s2dq._typing import Blocks, Integers, Pairs
from s2dq._validate import UNMADE, Door, batch_call, depth_call, frame_call, guarded
from s2dq.operators import AnyCall
from s2dq.preprocess import Preprocessor
from s2dq.quantized import QuantizedTensor

__all__ = ["batch_to_space_nd", "depth_to_space", "preprocess", "space_to_batch_nd", "space_to_depth"]

Problem: TypeAlias = DepthProblem | BatchProblem
Margins: TypeAlias = Sequence[dict[int, tuple[int, int]]]  # of each axis: those of its chunks, as in `Side`
Chunks: TypeAlias = Mapping[str, tuple[int, ...]]  # by axis


# ------------------------------------------------------------------------------------------------ operators


def space_to_depth(
    x: da.Array,
    block_size: Blocks,
    data_format: str = "NHWC",
    *,
    mode: str = "DCR",
    out_format: str | None = None,
    vect: SupportsIndex = 4,
    channels: SupportsIndex | None = None,
    paddings: Pairs | None = None,
    pad_value: Any = None,
) -> da.Array:
    """Move spatial blocks into the channel dimension, lazily; see `s2dq.space_to_depth`.

    Parameters
    ----------
    x : dask.array.Array, shape (N, H, W, C) or as `data_format` says
        Of any chunks of known size, and any element type.
    block_size : int or sequence of int
        Edge of a block in pixels: one for all spatial axes or one per axis.
    data_format : {"NHWC", "NCHW", "NCHW_VECT_C", "NWC", "NCW", "NDHWC", "NCDHW"}
        Axes of `x`.
    mode : {"DCR", "CRD", "focus"}
        Order of the deep channels.
    out_format : str, optional
        Axes of the result; by default those of `x`.
    vect : int
        Lanes of a word when the result is NCHW_VECT_C.
    channels : int, optional
        Logical number of channels of a packed `x` whose last word is ragged.
    paddings : sequence or int array, shape (K, 2), optional
        Pixels to add before and after each spatial axis of the whole array.
    pad_value : scalar, optional
        What the padding holds, by default the dtype's zero.

    Returns
    -------
    dask.array.Array
        Of the shape and dtype that the plain operator gives.

    Raises
    ------
    TypeError
        No Dask array (a QuantizedTensor among them), one whose chunks are no NumPy arrays, and all that
        `s2dq.space_to_depth` refuses.
    ValueError
        Chunks of unknown size, and all that `s2dq.space_to_depth` refuses.

    See Also
    --------
    depth_to_space : the inverse
    s2dq.space_to_depth : the operator on arrays in memory

    Notes
    -----
    Chunks along the batch stay as they are. Along a spatial axis a chunk's edge that falls inside a block, counted
    from the start of the padding, moves to the end of that block; the others stay. Padding belongs to the first and
    the last chunk; as long as the longest chunk or longer, it is cut into chunks of that length.

    Channels keep their chunks in CRD, where a chunk's deep channels lie side by side, and with blocks of 1; edges
    move up to the next word where words are cut otherwise. In DCR and focus a channel's deep channels lie apart, so
    the channels are merged into one chunk. The lanes of words always are.

    References
    ----------
    As of `s2dq.space_to_depth`.

    Examples
    --------
    >>> import dask.array as da, numpy as np, s2dq.dask
    >>> x = da.from_array(np.arange(48, dtype=np.int8).reshape(1, 6, 8, 1), chunks=(1, 3, 4, 1))
    >>> y = s2dq.dask.space_to_depth(x, 2)
    >>> y.chunks  # the edge behind the third row was inside a block
    ((1,), (2, 1), (2, 2), (4,))
    >>> y[0, 0, 0].compute()
    array([0, 1, 8, 9], dtype=int8)
    """
    arguments = (block_size, data_format, mode, out_format, vect, channels, paddings, pad_value)
    return _depth("space_to_depth", True, x, arguments)


def depth_to_space(
    x: da.Array,
    block_size: Blocks,
    data_format: str = "NHWC",
    *,
    mode: str = "DCR",
    out_format: str | None = None,
    vect: SupportsIndex = 4,
    channels: SupportsIndex | None = None,
    crops: Pairs | None = None,
) -> da.Array:
    """Move channels out into spatial blocks, lazily; see `s2dq.depth_to_space`.

    Parameters
    ----------
    x : dask.array.Array, shape (N, H, W, bH*bW*C) or as `data_format` says
        Of any chunks of known size, and any element type.
    block_size : int or sequence of int
        Edge of a block in pixels: one for all spatial axes or one per axis.
    data_format : {"NHWC", "NCHW", "NCHW_VECT_C", "NWC", "NCW", "NDHWC", "NCDHW"}
        Axes of `x`.
    mode : {"DCR", "CRD", "focus"}
        Order of the deep channels.
    out_format : str, optional
        Axes of the result; by default those of `x`.
    vect : int
        Lanes of a word when the result is NCHW_VECT_C.
    channels : int, optional
        Logical number of channels of a packed `x` whose last word is ragged.
    crops : sequence or int array, shape (K, 2), optional
        Pixels to take away before and after each spatial axis of the whole result.

    Returns
    -------
    dask.array.Array
        Of the shape and dtype that the plain operator gives.

    Raises
    ------
    TypeError
        No Dask array (a QuantizedTensor among them), one whose chunks are no NumPy arrays, and all that
        `s2dq.depth_to_space` refuses.
    ValueError
        Chunks of unknown size, and all that `s2dq.depth_to_space` refuses.

    See Also
    --------
    space_to_depth : the inverse
    s2dq.depth_to_space : the operator on arrays in memory

    Notes
    -----
    Chunks along the batch and the spatial axes stay as they are, `block_size` times as long; those that are cropped
    away altogether are never computed. Channels keep their chunks in CRD and with blocks of 1, but for edges that
    move up to the next whole channel (and word). In DCR and focus they are merged into one chunk. The lanes of words
    always are.

    References
    ----------
    As of `s2dq.depth_to_space`.

    Examples
    --------
    >>> import dask.array as da, numpy as np, s2dq.dask
    >>> x = da.from_array(np.arange(16, dtype=np.int8).reshape(1, 2, 2, 4), chunks=(1, 1, 2, 4))
    >>> y = s2dq.dask.depth_to_space(x, 2, crops=[[0, 0], [0, 1]])
    >>> y.chunks
    ((1,), (2, 2), (3,), (1,))
    >>> y[0, :2, :, 0].compute()
    array([[0, 1, 4],
           [2, 3, 6]], dtype=int8)
    """
    arguments = (block_size, data_format, mode, out_format, vect, channels, crops, None)
    return _depth("depth_to_space", False, x, arguments)


def space_to_batch_nd(x: da.Array, block_shape: Integers, paddings: Pairs, *, pad_value: Any = None) -> da.Array:
    """Move spatial blocks into the batch dimension, padding first, lazily; see `s2dq.space_to_batch_nd`.

    Parameters
    ----------
    x : dask.array.Array, shape (N, D1, ..., DM, ...)
        Of any chunks of known size, and any element type.
    block_shape : sequence of int or int array, shape (M,)
        Block along each of the axes 1 to M.
    paddings : sequence or int array, shape (M, 2)
        Elements to add before and after each of these axes of the whole array.
    pad_value : scalar, optional
        What the padding holds, by default the dtype's zero.

    Returns
    -------
    dask.array.Array
        Of the shape and dtype that the plain operator gives.

    Raises
    ------
    TypeError
        No Dask array (a QuantizedTensor among them), one whose chunks are no NumPy arrays, and all that
        `s2dq.space_to_batch_nd` refuses.
    ValueError
        Chunks of unknown size, and all that `s2dq.space_to_batch_nd` refuses.

    See Also
    --------
    batch_to_space_nd : the inverse
    s2dq.space_to_batch_nd : the operator on arrays in memory

    Notes
    -----
    Edges along axes 1 to M move as in `space_to_depth`, and paddings are treated likewise; axes behind them keep
    their chunks. A batch in one chunk stays in one chunk, ``prod(block_shape)`` times as long. With several chunks
    the entries of one lie apart in the result (its batch index is ``offset*N + n``): each chunk is rearranged
    once and then split, so the result has the chunks of the batch once for each offset in a block. Every part is a
    copy of its own: a part that is kept does not keep the others.

    References
    ----------
    As of `s2dq.space_to_batch_nd`.

    Examples
    --------
    >>> import dask.array as da, numpy as np, s2dq.dask
    >>> x = da.from_array(np.arange(8, dtype=np.int8).reshape(2, 4), chunks=(1, 4))
    >>> y = s2dq.dask.space_to_batch_nd(x, [2], [[0, 0]])
    >>> y.chunks
    ((1, 1, 1, 1), (2,))
    >>> y.compute()
    array([[0, 2],
           [4, 6],
           [1, 3],
           [5, 7]], dtype=int8)
    """
    call = batch_call("space_to_batch_nd", True, _blank("space_to_batch_nd", x), block_shape, paddings, pad_value,
                      UNMADE, None)  # fmt: skip
    problem, shape = call.problem, call.result.shape
    if 0 in shape:
        return _empty(call)
    area, rank = prod(problem.block), len(problem.block)
    sides = _cut_sides(problem, x.chunks[1:])
    batch, rest = _filled(x.chunks[0]), x.chunks[1 + rank :]
    x = _rechunk(x, (batch, *(side.source for side in sides), *rest))
    behind = (*(side.target for side in sides), *rest)
    function = partial(batch_block, operator="space_to_batch_nd", block=problem.block, margins=_margins(sides),
                       settings={} if pad_value is None else {"pad_value": call.pad})  # fmt: skip
    result = _mapped(function, [x], (tuple(n * area for n in batch), *behind), call)
    if area == 1 or len(batch) == 1:
        return result
    parts = [_mapped(partial(batch_part, offset=k, area=area), [result], (batch, *behind), call) for k in range(area)]
    return _stacked(parts)


def batch_to_space_nd(x: da.Array, block_shape: Integers, crops: Pairs) -> da.Array:
    """Move batch entries out into spatial blocks, then crop, lazily; see `s2dq.batch_to_space_nd`.

    Parameters
    ----------
    x : dask.array.Array, shape (N*prod(block_shape), D1, ..., DM, ...)
        Of any chunks of known size, and any element type.
    block_shape : sequence of int or int array, shape (M,)
        Block along each of the axes 1 to M.
    crops : sequence or int array, shape (M, 2)
        Elements to take away before and after each of these axes of the whole result.

    Returns
    -------
    dask.array.Array
        Of the shape and dtype that the plain operator gives.

    Raises
    ------
    TypeError
        No Dask array (a QuantizedTensor among them), one whose chunks are no NumPy arrays, and all that
        `s2dq.batch_to_space_nd` refuses.
    ValueError
        Chunks of unknown size, and all that `s2dq.batch_to_space_nd` refuses.

    See Also
    --------
    space_to_batch_nd : the inverse
    s2dq.batch_to_space_nd : the operator on arrays in memory

    Notes
    -----
    Axes other than the batch keep their chunks, those of axes 1 to M `block_shape` times as long; what is cropped
    away altogether is never computed. A batch in one chunk stays in one chunk. With several chunks each entry of the
    result needs ``prod(block_shape)`` entries that lie N apart. Where the chunks are the same for every offset, as
    `space_to_batch_nd` leaves them, the result has them once; otherwise the batch is cut so that a chunk of the
    result is not larger than the longest one of `x`, if it has several entries.

    References
    ----------
    As of `s2dq.batch_to_space_nd`.

    Examples
    --------
    >>> import dask.array as da, numpy as np, s2dq.dask
    >>> x = da.from_array(np.array([[0, 2], [4, 6], [1, 3], [5, 7]], np.int8), chunks=(1, 2))
    >>> y = s2dq.dask.batch_to_space_nd(x, [2], [[1, 0]])
    >>> y.chunks
    ((1, 1), (3,))
    >>> y.compute()
    array([[1, 2, 3],
           [5, 6, 7]], dtype=int8)
    """
    call = batch_call("batch_to_space_nd", False, _blank("batch_to_space_nd", x), block_shape, crops, None,
                      UNMADE, None)  # fmt: skip
    problem, shape = call.problem, call.result.shape
    if 0 in shape:
        return _empty(call)
    area, rank, count = prod(problem.block), len(problem.block), problem.batch
    x = x[(slice(None), *_windows(problem))]
    sides = _joined_sides(problem, x.chunks[1:])
    batch, rest = _filled(x.chunks[0]), x.chunks[1 + rank :]
    apart = area > 1 and len(batch) > 1
    shares = _shares(batch, count, area) if apart else tuple(n // area for n in batch)
    x = _rechunk(x, (shares * area if apart else batch, *(side.source for side in sides), *rest))
    offsets = [x[k * count : (k + 1) * count] for k in range(area)] if apart else [x]
    function = partial(batch_block, operator="batch_to_space_nd", block=problem.block, margins=_margins(sides),
                       settings={})  # fmt: skip
    return _mapped(function, offsets, (shares, *(side.target for side in sides), *rest), call)


def preprocess(pre: Preprocessor, frames: da.Array) -> da.Array:
    """Preprocess frames lazily; see `s2dq.Preprocessor`.

    Parameters
    ----------
    pre : Preprocessor
        What to do with each frame. Its `num_threads` does not count: a chunk is preprocessed on one thread.
    frames : dask.array.Array of uint8 or float32, shape (H, W, C) or (N, H, W, C)
        Of any chunks of known size; (C, H, W) or (N, C, H, W) with ``input_format="NCHW"``.

    Returns
    -------
    dask.array.Array
        Of the shape and dtype that ``pre(frames)`` gives; always with N.

    Raises
    ------
    TypeError
        No Preprocessor, no Dask array, one whose chunks are no NumPy arrays, and all that a Preprocessor refuses.
    ValueError
        Chunks of unknown size, and all that a Preprocessor refuses.

    See Also
    --------
    space_to_depth : the rearrangement alone
    s2dq.Preprocessor : the same on arrays in memory

    Notes
    -----
    Chunks along the batch stay as they are, channels are merged into one. Without `size`, or along an axis that the
    frames fill, edges of chunks that fall inside a block move to its end. Along an axis that has to be padded the
    chunks are merged, so that each frame is put in the middle of its canvas as a whole.

    References
    ----------
    As of `s2dq.Preprocessor`.

    Examples
    --------
    >>> import dask.array as da, numpy as np, s2dq, s2dq.dask
    >>> pre = s2dq.Preprocessor(scale=1 / 255, zero_point=-128, size=(4, 6), block_size=2)
    >>> frames = da.full((8, 3, 6, 3), 255, dtype=np.uint8, chunks=(4, 2, 4, 3))
    >>> tensor = s2dq.dask.preprocess(pre, frames)  # three rows on a canvas of four: the rows are merged
    >>> tensor.chunks
    ((4, 4), (2,), (2, 1), (12,))
    >>> tensor[0, 1, 0].compute()
    array([127, 127, 127, 127, 127, 127, -14, -14, -14, -14, -14, -14],
          dtype=int8)
    """
    _check_preprocessor("preprocess", pre)
    call = frame_call("Preprocessor", pre._settings, _blank("preprocess", frames, "frames"), UNMADE)
    problem = call.problem
    if 0 in call.result.shape:
        return _empty(call)
    if frames.ndim == 3:
        frames = frames[np.newaxis]
    given = dict(zip(problem.source.axes, frames.chunks))
    deep = words(problem.channels * prod(problem.block), problem.dst_lanes or 1)
    source, target = {"n": given["n"], "c": (problem.channels,)}, {"n": given["n"], "c": (deep,)}
    padded = {}
    for axis, extent, canvas, b in zip("hw", problem.space, pre.size or problem.space, problem.block):
        if extent != canvas:
            padded[axis] = canvas
            source[axis], target[axis] = (extent,), (canvas // b,)
        else:
            source[axis], target[axis], _ = _cut(_filled(given[axis]), b, 0, 0)
    return _arranged(partial(frame_block, pre=pre, padded=padded), frames, problem, source, target, call)


# ------------------------------------------------------------------------------------------------ the check


@guarded
def _blank(name: str, x: Any, argument: str = "x") -> np.ndarray:
    """An array of the shape and dtype of a Dask array, for the plain operator's own check: it has no memory."""
    door = Door(name)
    if type(x) is QuantizedTensor:
        rule = f"{argument} must be a Dask array, not a QuantizedTensor, whose scales chunks do not carry"
        door.refuse(TypeError, f"{rule}; give a Dask array of its values, with its zero point as pad_value")
    if not isinstance(x, da.Array):
        plain = "a Preprocessor itself" if name == "preprocess" else f"s2dq.{name}"
        door.refuse(TypeError, f"{argument} must be a Dask array, not {type(x).__name__}; {plain} takes other arrays")
    for axis, chunks in enumerate(x.chunks):
        if any(isnan(chunk) for chunk in chunks):
            rule = f"{argument} has chunks of unknown size along axis {axis}"
            door.refuse(ValueError, f"{rule}; {argument}.compute_chunk_sizes() finds them out")
    element = np.ndarray((), door.view(argument, x._meta).dtype)  # masked chunks, or of a device, end here
    try:
        return np.broadcast_to(element, x.shape)
    except ValueError as error:
        door.refuse(ValueError, f"{argument} of shape {x.shape} and dtype {x.dtype} is larger than any array", error)


@guarded
def _check_preprocessor(name: str, pre: Any) -> None:
    if not isinstance(pre, Preprocessor):
        Door(name).refuse(TypeError, f"pre must be a Preprocessor, not {type(pre).__name__}")


# ------------------------------------------------------------------------------------------------ the axes


class Side(NamedTuple):
    """The chunks of one axis: which pieces of `x` are made into which of the result, and what is padded or cropped.

    ``margins[k]`` is (before, after) of piece k; most pieces have none and are not in it.
    """

    source: tuple[int, ...]
    target: tuple[int, ...]
    margins: dict[int, tuple[int, int]]


def _cut(chunks: tuple[int, ...], b: int, before: int, after: int) -> Side:
    """An axis that is padded and cut into blocks of b: edges move up to the next block."""
    extent = sum(chunks)
    start, stop, total = before, before + extent, before + extent + after  # on the padded axis
    moved = {-(-(start + edge) // b) * b for edge in accumulate(chunks)}
    inner = {edge for edge in moved if start < edge < stop}
    edges = {0, total, *inner}
    longest = max(-(-(hi - lo) // b) * b for lo, hi in pairwise(sorted({start, *inner}) + [stop]))
    if longest:  # there is something to be padded: padding of that length gets chunks of its own
        edges.update(range(longest, start + 1, longest))
        edges.update(range(total - longest, stop - 1, -longest))
    bounds = sorted(edges)
    source, target, margins = [], [], {}
    for k, (lo, hi) in enumerate(pairwise(bounds)):
        inside = max(0, min(hi, stop) - max(lo, start))
        left = max(0, min(hi, start) - lo)
        source.append(inside)
        target.append((hi - lo) // b)
        if inside < hi - lo:
            margins[k] = (left, hi - lo - inside - left)
    return Side(tuple(source), tuple(target), margins)


def _join(chunks: tuple[int, ...], b: int, before: int, extent: int) -> Side:
    """An axis that blocks of b make, of which `extent` elements remain; what lies outside has been sliced off."""
    target = [chunk * b for chunk in chunks]
    after = sum(target) - before - extent
    margins: dict[int, tuple[int, int]] = {}
    for k, pair in ((0, (before, 0)), (len(chunks) - 1, (0, after))):
        if any(pair):
            start, end = margins.get(k, (0, 0))
            margins[k] = (start + pair[0], end + pair[1])
            target[k] -= sum(pair)
    return Side(chunks, tuple(target), margins)


def _cut_sides(problem: Problem, chunks: Iterable[tuple[int, ...]]) -> list[Side]:
    sides = []
    for given, b, count, lo, extent in zip(chunks, problem.block, problem.blocks, problem.lo, problem.space):
        sides.append(_cut(_filled(given), b, lo, count * b - lo - extent))
    return sides


def _joined_sides(problem: Problem, chunks: Iterable[tuple[int, ...]]) -> list[Side]:
    """As `_windows` has left the axes."""
    return [_join(_filled(given), b, lo % b, extent)
            for given, b, lo, extent in zip(chunks, problem.block, problem.lo, problem.space)]  # fmt: skip


def _windows(problem: Problem) -> list[slice]:
    """The blocks of each axis of which something is left after the crops."""
    return [slice(lo // b, -(-(lo + extent) // b)) for b, lo, extent in zip(problem.block, problem.lo, problem.space)]


def _margins(sides: Sequence[Side]) -> tuple[dict[int, tuple[int, int]], ...]:
    return tuple(side.margins for side in sides)


def _filled(chunks: tuple[int, ...]) -> tuple[int, ...]:
    """Without chunks of nothing, unless there is nothing else."""
    return tuple(chunk for chunk in chunks if chunk) or (0,)


def _shares(batch: tuple[int, ...], count: int, area: int) -> tuple[int, ...]:
    """How to cut the batch of batch_to_space_nd's result: as all offsets are cut already, or by the longest chunk."""
    shares = batch[: len(batch) // area]
    if shares * area == batch:
        return shares
    length = max(1, max(batch) // area)
    return tuple(min(length, count - start) for start in range(0, count, length))


class Channels(NamedTuple):
    """The chunks of the channel axis, in channels or words; `logical` channels in each that is packed and ragged."""

    source: tuple[int, ...]
    target: tuple[int, ...]
    logical: dict[int, int]


def _channels(problem: DepthProblem, chunks: tuple[int, ...]) -> Channels:
    """Edges that move up to where channels, and words of both sides, begin; or one chunk, if they lie apart."""
    area, lanes = prod(problem.block), problem.src_lanes or 1
    count = problem.channels * (1 if problem.to_depth else area)  # of the source
    out_lanes = problem.dst_lanes or 1
    if problem.to_depth:
        step = lcm(lanes, out_lanes // gcd(out_lanes, area))
    else:
        step = lcm(area * out_lanes, lanes * area if problem.source.packed and problem.target.packed else lanes)
    together = problem.mode == "CRD" or area == 1
    unit = step // lanes
    # As an axis of blocks, the last of which may be ragged.
    source = _cut(chunks, unit, 0, -sum(chunks) % unit).source if together else (sum(chunks),)
    target, logical, start = [], {}, 0
    for k, piece in enumerate(source):
        held = min(piece * lanes, count - start)
        start += piece * lanes
        if held < piece * lanes:
            logical[k] = held
        made = held * area if problem.to_depth else held // area
        target.append(words(made, out_lanes))
    return Channels(source, tuple(target), logical)


# ------------------------------------------------------------------------------------------------ the chunks


def _depth(name: str, to_depth: bool, x: Any, arguments: tuple[Any, Any, Any, Any, Any, Any, Any, Any]) -> da.Array:
    """space_to_depth or depth_to_space."""
    call = depth_call(name, to_depth, _blank(name, x), *arguments, UNMADE, None)
    problem = call.problem
    if 0 in call.result.shape:
        return _empty(call)
    axes = problem.source.axes
    if not to_depth:
        windows = dict(zip(problem.source.spatial, _windows(problem)))
        x = x[tuple(windows.get(axis, slice(None)) for axis in axes)]
    given = dict(zip(axes, x.chunks))
    sides = (_cut_sides if to_depth else _joined_sides)(problem, [given[axis] for axis in problem.source.spatial])
    channels = _channels(problem, _filled(given["cb" if problem.source.packed else "c"]))
    source, target = {"n": given["n"], "c": channels.source}, {"n": given["n"], "c": channels.target}
    for axis, side in zip(problem.source.spatial, sides):
        source[axis], target[axis] = side.source, side.target
    settings = {"block_size": problem.block, "data_format": problem.source.name, "mode": problem.mode,
                "out_format": problem.target.name, "vect": problem.dst_lanes or 4}  # fmt: skip
    if to_depth and arguments[-1] is not None:
        settings["pad_value"] = call.pad
    function = partial(depth_block, operator=name, settings=settings, margins=_margins(sides), logical=channels.logical)
    return _arranged(function, x, problem, source, target, call)


def _arranged(
    function: Callable[..., Any], x: da.Array, problem: DepthProblem, source: Chunks, target: Chunks, call: AnyCall
) -> da.Array:
    """`function` on each chunk of `x`, once it has the chunks `source`; the result has the chunks `target`.

    Chunks lie in the result as its axes do. So the axes of `x` are put into that order first, which moves nothing,
    and `function` is told how to put them back.
    """
    names = [_channel_name(axis) for axis in problem.source.axes]
    wanted = [_channel_name(axis) for axis in problem.target.axes if axis != "v"]
    source = {**source, "v": (problem.src_lanes,)}
    lanes: tuple[tuple[int, ...], ...] = ()
    x = _rechunk(x, tuple(source[axis] for axis in names))
    order = [names.index(axis) for axis in (*wanted, *(["v"] if problem.source.packed else []))]
    moved = {}
    if problem.target.packed:
        lanes = ((problem.dst_lanes,),)
    if problem.source.packed != problem.target.packed:
        moved["new_axis" if problem.target.packed else "drop_axis"] = [len(wanted)]
    function = partial(function, source=problem.source, back=tuple(np.argsort(order).tolist()), axes=tuple(wanted))
    return _mapped(function, [x.transpose(order)], (*(target[axis] for axis in wanted), *lanes), call, **moved)


def _channel_name(axis: str) -> str:
    return "c" if axis == "cb" else axis


def _rechunk(x: da.Array, chunks: Any) -> da.Array:
    # Not by a shuffle of all chunks, which clusters may prefer: most of them stay as they are.
    return x if x.chunks == chunks else x.rechunk(chunks, method="tasks")


def _mapped(
    function: Callable[..., Any], arrays: Sequence[da.Array], chunks: Any, call: AnyCall, **axes: Any
) -> da.Array:
    """`function` on each chunk; with `meta` given, Dask does not try it out."""
    dtype = call.result.dtype
    meta = np.ndarray((0,) * len(chunks), dtype)
    return da.map_blocks(function, *arrays, chunks=chunks, dtype=dtype, meta=meta, **axes)


def _empty(call: AnyCall) -> da.Array:
    return da.from_array(np.ndarray(call.result.shape, call.result.dtype), chunks=-1)


# What runs in the workers. `block_id` is the place of a chunk in the result.


def depth_block(
    block: np.ndarray, block_id: tuple[int, ...], operator: str, settings: dict[str, Any], margins: Margins,
    logical: dict[int, int], source: Layout, back: tuple[int, ...], axes: tuple[str, ...],
) -> np.ndarray:  # fmt: skip
    """One chunk of a result of space_to_depth or depth_to_space."""
    place = dict(zip(axes, block_id))
    pairs = [margin.get(place[axis], (0, 0)) for axis, margin in zip(source.spatial, margins)]
    given = dict(settings)
    given["paddings" if operator == "space_to_depth" else "crops"] = pairs
    if place["c"] in logical:
        given["channels"] = logical[place["c"]]
    result: np.ndarray = getattr(operators, operator)(block.transpose(back), **given, num_threads=1)
    return result


def _stacked(parts: Sequence[da.Array]) -> da.Array:
    """Arrays of the same chunks one behind the other; unlike da.concatenate, in their own byte order."""
    name = "stack-" + tokenize(*(part.name for part in parts))
    count = len(parts[0].chunks[0])
    graph = {
        (name, k * count + place[0], *place[1:]): (part.name, *place)
        for k, part in enumerate(parts) for place in np.ndindex(part.numblocks)
    }  # fmt: skip
    chunks = (parts[0].chunks[0] * len(parts), *parts[0].chunks[1:])
    graph = HighLevelGraph.from_collections(name, graph, dependencies=parts)
    return da.Array(graph, name, chunks, meta=parts[0]._meta)


def batch_block(
    *blocks: np.ndarray, block_id: tuple[int, ...], operator: str, block: tuple[int, ...], margins: Margins,
    settings: dict[str, Any],
) -> np.ndarray:  # fmt: skip
    """One chunk of a result of space_to_batch_nd or batch_to_space_nd; of the latter, perhaps offset by offset."""
    # Its dtype is told: NumPy would give the machine's byte order.
    x = blocks[0] if len(blocks) == 1 else np.concatenate(blocks, dtype=blocks[0].dtype)
    pairs = [margin.get(k, (0, 0)) for k, margin in zip(block_id[1:], margins)]
    result: np.ndarray = getattr(operators, operator)(x, block, pairs, **settings, num_threads=1)
    return result


def batch_part(block: np.ndarray, offset: int, area: int) -> np.ndarray:
    """The batch entries of one offset. A view would keep those of all others in memory."""
    count = len(block) // area
    return block[offset * count : (offset + 1) * count].copy()


def frame_block(
    block: np.ndarray, pre: Preprocessor, padded: dict[str, int], source: Layout, back: tuple[int, ...],
    axes: tuple[str, ...],
) -> np.ndarray:  # fmt: skip
    """One chunk of preprocessed frames."""
    frames = block.transpose(back)
    size = None
    if padded:
        extents = dict(zip(source.axes, frames.shape))
        size = tuple(padded.get(axis, extents[axis]) for axis in "hw")
    return _fitted(pre, size)(frames)


@lru_cache(maxsize=64, typed=True)
def _fitted(pre: Preprocessor, size: tuple[int, ...] | None) -> Preprocessor:
    """`pre` for chunks with a canvas of this size, on one thread."""
    return type(pre)(**pre._keywords() | {"size": size, "num_threads": 1})

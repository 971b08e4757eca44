"""Random calls for the tests that ask other systems: what to rearrange and how, drawn small and odd."""

import numpy as np


def values(rng, shape, dtype):
    """Any bits that a value of the dtype can have, but no NaN: some systems give another NaN back."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    if dtype.kind == "c":
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def strided(rng, x):
    """The same values in other memory, now and then: axes in another order, every second element, backwards."""
    way = rng.integers(0, 4)
    if way == 0 and x.ndim:
        order = rng.permutation(x.ndim)
        return np.ascontiguousarray(x.transpose(order)).transpose(np.argsort(order))
    if way == 1:
        wide = np.zeros(tuple(2 * extent for extent in x.shape), x.dtype)
        view = wide[(slice(None, None, 2),) * x.ndim]
        view[...] = x
        return view
    if way == 2:
        return np.ascontiguousarray(x[::-1])[::-1]
    return x


def depth(rng, to_depth, spatial=2, dtype=np.float32, channels_last=False, blocks=(1, 2, 3, 4), words=0):
    """``(x, block)`` of a depth operator; `words` of that many lanes behind the spatial axes, or none."""
    block = int(rng.choice(blocks))
    batch, count = int(rng.integers(1, 4)), int(rng.integers(1, 6))
    extents = [int(extent) for extent in rng.integers(1, 6, spatial)]
    if to_depth:
        extents = [extent * block for extent in extents]
    else:
        count *= block**spatial
    shape = (batch, *extents, count) if channels_last else (batch, count, *extents)
    if words:
        shape += (words,)
    return values(rng, shape, dtype), block


def space_to_batch(rng, dims=2, rest=1, dtype=np.float32):
    """``(x, block_shape, paddings)``."""
    block = [int(b) for b in rng.integers(1, 4, dims)]
    pads = rng.integers(0, 4, (dims, 2))
    # What the padding leaves of some blocks, or of the next multiple where it leaves nothing.
    extents = [max(int(count) * b - int(total), (-int(total)) % b or b)
               for count, b, total in zip(rng.integers(1, 6, dims), block, pads.sum(axis=1), strict=True)]
    shape = (int(rng.integers(1, 4)), *extents, *(int(extent) for extent in rng.integers(1, 5, rest)))
    return values(rng, shape, dtype), block, pads.tolist()


def batch_to_space(rng, dims=2, rest=1, dtype=np.float32):
    """``(x, block_shape, crops)``; something is always left."""
    block = [int(b) for b in rng.integers(1, 4, dims)]
    extents = [int(extent) for extent in rng.integers(1, 6, dims)]
    crops = []
    for extent, b in zip(extents, block, strict=True):
        total = int(rng.integers(0, min(extent * b, 7)))
        start = int(rng.integers(0, total + 1))
        crops.append([start, total - start])
    batch = int(rng.integers(1, 4)) * int(np.prod(block))
    shape = (batch, *extents, *(int(extent) for extent in rng.integers(1, 5, rest)))
    return values(rng, shape, dtype), block, crops


def same(ours, theirs, told):
    """Assert equality: shape, dtype and every byte."""
    theirs = np.asarray(theirs)
    assert ours.shape == theirs.shape, (told, ours.shape, theirs.shape)
    assert ours.dtype == theirs.dtype, (told, ours.dtype, theirs.dtype)
    if ours.dtype.hasobject:
        assert ours.tolist() == theirs.tolist(), told
    else:
        assert np.ascontiguousarray(ours).tobytes() == np.ascontiguousarray(theirs).tobytes(), told

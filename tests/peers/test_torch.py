"""PyTorch: pixel_shuffle and pixel_unshuffle on tensors of all ranks and memory formats, and on arrays."""

import numpy as np
import pytest

import problems
import s2dq

DTYPES = ("int8", "uint8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64", "bool")


@pytest.fixture
def torch(peer):
    return peer("torch")


def arranged(torch, rng, x):
    """The tensor in one of its memories: contiguous, channels_last, or every second element of a larger one."""
    tensor = torch.from_numpy(x)
    way = int(rng.integers(0, 3))
    if way == 1 and tensor.dim() == 4:
        return tensor.contiguous(memory_format=torch.channels_last)
    if way == 2:
        return torch.stack((tensor, tensor), -1)[..., 0]
    return tensor


@pytest.mark.parametrize("to_depth", [True, False])
def test_pixel_shuffle(torch, rng, counted, to_depth):
    from s2dq.compat import torch as ours

    name, operator = ("pixel_unshuffle", s2dq.space_to_depth) if to_depth else ("pixel_shuffle", s2dq.depth_to_space)
    for i in range(120):
        x, block = problems.depth(rng, to_depth, dtype=DTYPES[i % len(DTYPES)])
        tensor = arranged(torch, rng, x)
        if i % 5 == 3:
            tensor = tensor[None, None]
        elif i % 5 == 4:
            tensor = tensor[0]
        theirs = getattr(torch.nn.functional, name)(tensor, block)
        mine = getattr(ours, name)(tensor, block)
        told = (name, tuple(tensor.shape), tensor.stride(), tensor.dtype, block)
        assert mine.stride() == theirs.stride(), told
        problems.same(mine.numpy(), theirs.numpy(), told)
        if tensor.dim() == 4:
            problems.same(operator(tensor, block, "NCHW", mode="CRD"), theirs.contiguous().numpy(), told)
        counted("PyTorch")


@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_permute_in_every_order(torch, rng, counted, spatial):
    """PyTorch has no other of these operators; its reshape and permute say the same."""
    layout = ("NCW", "NCHW", "NCDHW")[spatial - 1]
    inner, outer = [3 + 2 * i for i in range(spatial)], [2 + 2 * i for i in range(spatial)]
    orders = {"DCR": [0, *inner, 1, *outer], "CRD": [0, 1, *inner, *outer], "focus": [0, *inner[::-1], 1, *outer]}
    for mode, order in orders.items():
        for _ in range(12):
            x, block = problems.depth(rng, True, spatial, np.int16)
            n, c, *extents = x.shape
            split = [n, c, *(part for extent in extents for part in (extent // block, block))]
            shape = [n, c * block**spatial, *(extent // block for extent in extents)]
            theirs = torch.from_numpy(x).reshape(split).permute(order).reshape(shape).numpy()
            problems.same(s2dq.space_to_depth(x, block, layout, mode=mode), theirs, (x.shape, block, mode))
            problems.same(s2dq.depth_to_space(theirs, block, layout, mode=mode), x, (x.shape, block, mode))
            counted("PyTorch", 2)

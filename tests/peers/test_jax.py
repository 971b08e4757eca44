"""JAX: patches of a convolution (which are CRD), and the operators written with its reshape and transpose, compiled."""

import numpy as np
import pytest

import problems
import s2dq

DTYPES = ("int8", "uint8", "int16", "int32", "float16", "float32", "complex64", "bool")


@pytest.fixture
def jax(peer):
    return peer("jax")


def compiled(jax, x, split, order, shape):
    """The rearrangement, by XLA."""
    return np.asarray(jax.jit(lambda x: x.reshape(split).transpose(order).reshape(shape))(x))


def test_patches_of_a_convolution(jax, rng, counted):
    for _ in range(60):
        x, block = problems.depth(rng, True, dtype=np.float32)
        theirs = jax.lax.conv_general_dilated_patches(
            x, (block, block), (block, block), "VALID", precision=jax.lax.Precision.HIGHEST)
        problems.same(s2dq.space_to_depth(x, block, "NCHW", mode="CRD"), np.asarray(theirs), (x.shape, block))
        counted("JAX")


@pytest.mark.parametrize(("data_format", "mode", "order"), [
    ("NHWC", "DCR", (0, 1, 3, 2, 4, 5)), ("NHWC", "CRD", (0, 1, 3, 5, 2, 4)),
    ("NCHW", "DCR", (0, 3, 5, 1, 2, 4)), ("NCHW", "CRD", (0, 1, 3, 5, 2, 4)),
])
def test_depth_operators(jax, rng, counted, data_format, mode, order):
    for i in range(16):
        dtype, last = DTYPES[i % len(DTYPES)], data_format == "NHWC"
        x, b = problems.depth(rng, True, dtype=dtype, channels_last=last)
        n, c, h, w = (x.shape[axis] for axis in ((0, 3, 1, 2) if last else (0, 1, 2, 3)))
        split = (n, h // b, b, w // b, b, c) if last else (n, c, h // b, b, w // b, b)
        shape = (n, h // b, w // b, c * b * b) if last else (n, c * b * b, h // b, w // b)
        deep = compiled(jax, x, split, order, shape)
        told = (x.shape, dtype, b, data_format, mode)
        problems.same(s2dq.space_to_depth(problems.strided(rng, x), b, data_format, mode=mode), deep, told)
        back = tuple(split[axis] for axis in order)
        problems.same(s2dq.depth_to_space(deep, b, data_format, mode=mode),
                      compiled(jax, deep, back, tuple(np.argsort(order)), x.shape), told)
        counted("JAX", 2)


def test_batch_operators(jax, rng, counted):
    for i in range(40):
        x, block, pads = problems.space_to_batch(rng, 2, 1, DTYPES[i % len(DTYPES)])
        padded = np.asarray(jax.numpy.pad(x, [(0, 0), *pads, (0, 0)]))
        n, h, w, c = padded.shape
        split = (n, h // block[0], block[0], w // block[1], block[1], c)
        shape = (n * block[0] * block[1], h // block[0], w // block[1], c)
        theirs = compiled(jax, padded, split, (2, 4, 0, 1, 3, 5), shape)
        problems.same(s2dq.space_to_batch_nd(problems.strided(rng, x), block, pads), theirs, (x.shape, block, pads))
        problems.same(s2dq.batch_to_space_nd(theirs, block, pads), x, (x.shape, block, pads))
        counted("JAX", 2)


def test_packing(jax, rng, counted):
    for i in range(20):
        lanes = (4, 8, 16, 32)[i % 4]
        x = problems.values(rng, (2, int(rng.integers(1, 40)), 3, 4), ("int8", "uint8")[i % 2])
        spare = -x.shape[1] % lanes
        padded = np.asarray(jax.numpy.pad(x, [(0, 0), (0, spare), (0, 0), (0, 0)]))
        n, c, h, w = padded.shape
        packed = compiled(jax, padded, (n, c // lanes, lanes, h, w), (0, 1, 3, 4, 2), (n, c // lanes, h, w, lanes))
        problems.same(s2dq.pack_vect_c(x, vect=lanes), packed, (x.shape, lanes))
        problems.same(s2dq.unpack_vect_c(packed, channels=x.shape[1]), x, (x.shape, lanes))
        counted("JAX", 2)

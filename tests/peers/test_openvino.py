"""OpenVINO's CPU plugin: all four operators, ranks 2 to 8 and types as they come."""

import numpy as np
import pytest

import loops
import problems
from s2dq.compat import openvino as ours

DTYPES = ("int8", "uint8", "int32", "int64", "float32", "float16")


@pytest.fixture
def ov(peer):
    return peer("openvino")


def of_32_bits(x):
    """The CPU plugin computes int64 in int32 (`test_int64_is_computed_in_int32`): values that both hold."""
    return x.astype(np.int32).astype(np.int64) if x.dtype == np.int64 else x


def run(ov, build, x):
    """What the plugin computes of one operator."""
    from openvino import opset13 as ops

    source = ops.parameter(x.shape, x.dtype)
    # Types are kept as they are: by default the plugin computes float16 models in what suits it.
    compiled = ov.Core().compile_model(ov.Model([build(ops, source)], [source]), "CPU",
                                       {"INFERENCE_PRECISION_HINT": "f32"})
    return compiled([x])[0].copy()


@pytest.mark.parametrize("to_depth", [True, False])
def test_depth_operators(ov, rng, counted, to_depth):
    name = "space_to_depth" if to_depth else "depth_to_space"
    for i in range(72):
        mode, spatial, dtype = ("blocks_first", "depth_first")[i % 2], 1 + i % 3, DTYPES[i % len(DTYPES)]
        x, block = problems.depth(rng, to_depth, spatial, dtype, blocks=(1, 2, 3))
        x = of_32_bits(x)
        theirs = run(ov, lambda ops, x, mode=mode, block=block: getattr(ops, name)(x, mode, block), x)
        mine = getattr(ours, name)(problems.strided(rng, x), mode, block)
        problems.same(mine, theirs, (name, x.shape, dtype, mode, block))
        counted("OpenVINO")


def test_space_to_batch(ov, rng, counted, disagreed):
    wrong = []
    for i in range(110):
        dims, dtype = 1 + i % 4, DTYPES[i % len(DTYPES)]
        x, block, pads = problems.space_to_batch(rng, dims, 0, dtype)
        x = of_32_bits(x)
        begin, end = (list(column) for column in zip(*pads, strict=True))
        vectors = ([1, *block], [0, *begin], [0, *end])
        theirs = run(ov, lambda ops, x, vectors=vectors: ops.space_to_batch(
            x, *(ops.constant(np.int64(vector)) for vector in vectors)), x)
        mine = ours.space_to_batch(problems.strided(rng, x), *vectors)
        problems.same(mine, loops.space_to_batch_nd(x, block, pads), (x.shape, dtype, vectors))
        counted("OpenVINO")
        if mine.tobytes() != theirs.tobytes():
            assert mine.shape == theirs.shape and any(map(any, pads)), (x.shape, dtype, vectors)
            wrong.append((x.shape, dtype, *vectors))
    if wrong:
        disagreed(f"OpenVINO SpaceToBatch: {len(wrong)} of 110 differ from its specification, all of them padded; the "
                  f"first: shape, type, block_shape, pads_begin, pads_end = {wrong[0]}")


def test_batch_to_space(ov, rng, counted):
    for i in range(110):
        dims, dtype = 1 + i % 4, DTYPES[i % len(DTYPES)]
        x, block, crops = problems.batch_to_space(rng, dims, 0, dtype)
        x = of_32_bits(x)
        begin, end = (list(column) for column in zip(*crops, strict=True))
        vectors = ([1, *block], [0, *begin], [0, *end])
        theirs = run(ov, lambda ops, x, vectors=vectors: ops.batch_to_space(
            x, *(ops.constant(np.int64(vector)) for vector in vectors)), x)
        problems.same(ours.batch_to_space(problems.strided(rng, x), *vectors), theirs, (x.shape, dtype, vectors))
        counted("OpenVINO")


@pytest.mark.parametrize("dims", [5, 6, 7])
def test_batch_operators_of_high_ranks(ov, rng, counted, disagreed, dims):
    """Blocks of 2 along three axes at most: the batch is their product."""
    wrong = []
    for i in range(14):
        dtype = DTYPES[i % len(DTYPES)]
        block = np.ones(dims, int)
        block[rng.choice(dims, 3, replace=False)] = rng.integers(1, 3, 3)
        margins = rng.integers(0, 2, (dims, 2)) * (block == 2)[:, None] * (i % 2)
        told = (dims, dtype, vectors := ([1, *block], [0, *margins[:, 0]], [0, *margins[:, 1]]))
        extents = 2 * rng.integers(1, 3, dims) - margins.sum(axis=1) % 2
        x = of_32_bits(problems.values(rng, (int(rng.integers(1, 3)), *extents), dtype))
        theirs = run(ov, lambda ops, x, vectors=vectors: ops.space_to_batch(
            x, *(ops.constant(np.int64(vector)) for vector in vectors)), x)
        mine = ours.space_to_batch(problems.strided(rng, x), *vectors)
        problems.same(mine, loops.space_to_batch_nd(x, block.tolist(), margins.tolist()), told)
        if mine.tobytes() != theirs.tobytes():
            assert mine.shape == theirs.shape and margins.any(), told
            wrong.append(told)
        theirs = run(ov, lambda ops, x, vectors=vectors: ops.batch_to_space(
            x, *(ops.constant(np.int64(vector)) for vector in vectors)), mine)
        problems.same(ours.batch_to_space(problems.strided(rng, mine), *vectors), theirs, told)
        problems.same(theirs, x, told)
        counted("OpenVINO", 2)
    if wrong:
        disagreed(f"OpenVINO SpaceToBatch of rank {dims + 1}: {len(wrong)} of 14 differ from its specification")


def test_modes_in_capitals(ov, rng, counted):
    for i, mode in enumerate(("BLOCKS_FIRST", "DEPTH_FIRST", "Blocks_First", "Depth_First") * 2):
        name = ("space_to_depth", "depth_to_space")[i % 2]
        x, block = problems.depth(rng, i % 2 == 0, 2, "int8", blocks=(2,))
        theirs = run(ov, lambda ops, x, name=name, mode=mode: getattr(ops, name)(x, mode, 2), x)
        problems.same(getattr(ours, name)(x, mode, block), theirs, (name, mode))
        counted("OpenVINO")


def test_tensors_come_as_arrays(ov, counted):
    x = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    with pytest.raises(TypeError, match="data must be an array"):
        ours.space_to_depth(ov.Tensor(x), "blocks_first", 2)
    theirs = run(ov, lambda ops, x: ops.space_to_depth(x, "blocks_first", 2), x)
    problems.same(ours.space_to_depth(ov.Tensor(x).data, "blocks_first", 2), theirs, "Tensor.data")
    counted("OpenVINO")


def test_int64_is_computed_in_int32(ov, counted, disagreed):
    x = np.array([[[2**40 + 1, 2**40 + 2]]])
    theirs = run(ov, lambda ops, x: ops.space_to_depth(x, "blocks_first", 2), x)
    problems.same(ours.space_to_depth(x, "blocks_first", 2), x.reshape(1, 2, 1), "int64")
    counted("OpenVINO")
    if theirs.ravel().tolist() != x.ravel().tolist():
        disagreed(f"OpenVINO moves int64 through int32: {x.ravel().tolist()} becomes {theirs.ravel().tolist()}")

"""LiteRT: its four operators on floats and on fully quantized tensors; NNAPI's rules are the same."""

import numpy as np
import pytest

import problems
import s2dq
from s2dq.compat import nnapi

KINDS = {"SPACE_TO_DEPTH": nnapi.space_to_depth, "DEPTH_TO_SPACE": nnapi.depth_to_space}


@pytest.fixture
def litert(peer):
    peer("ai_edge_litert")
    from s2dq.bench.peers import litert

    litert.set_up(1)
    return litert


def run(litert, model, x):
    interpreter = litert.Interpreter(model_content=model.to_bytes())
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def tensor(rng, x):
    """`x` as NNAPI takes it: bytes with a scale of 1, as the models have it, and a zero point."""
    if x.dtype.kind == "f":
        return x, 0
    info = np.iinfo(x.dtype)
    zero_point = int(rng.integers(info.min, info.max, endpoint=True))
    return s2dq.QuantizedTensor(x, 1.0, zero_point), zero_point


def values(result):
    return result.values if isinstance(result, s2dq.QuantizedTensor) else result


@pytest.mark.parametrize("kind", KINDS)
def test_depth_operators(litert, rng, counted, kind):
    options = "SpaceToDepthOptions" if kind == "SPACE_TO_DEPTH" else "DepthToSpaceOptions"
    for i in range(60):
        dtype = ("float32", "int8", "uint8")[i % 3]
        x, block = problems.depth(rng, kind == "SPACE_TO_DEPTH", dtype=dtype, channels_last=True, blocks=(1, 2, 3))
        given, zero_point = tensor(rng, x)
        model = litert.Model(x, zero_point)
        model.add(kind, options, [], (1,) * 4, blockSize=block)
        problems.same(values(KINDS[kind](given, block)), run(litert, model, x), (kind, x.shape, dtype, block))
        counted("LiteRT")


def test_space_to_batch(litert, rng, counted):
    for i in range(120):
        dtype = ("float32", "int8", "uint8")[i % 3]
        x, block, pads = problems.space_to_batch(rng, 2, 1, dtype)
        given, zero_point = tensor(rng, x)
        model = litert.Model(x, zero_point)
        model.add("SPACE_TO_BATCH_ND", "SpaceToBatchNDOptions", [model.constant(block), model.constant(pads)], (1,) * 4)
        mine = nnapi.space_to_batch_nd(given, block, pads)
        problems.same(values(mine), run(litert, model, x), (x.shape, dtype, block, pads, zero_point))
        if dtype != "float32":
            assert (mine.scale, mine.zero_point) == (1.0, zero_point)
        counted("LiteRT")


def test_batch_to_space(litert, rng, counted):
    """LiteRT has crops, NNAPI has not: s2dq's own operator where there are any."""
    for i in range(120):
        dtype = ("float32", "int8", "uint8")[i % 3]
        x, block, crops = problems.batch_to_space(rng, 2, 1, dtype)
        if i % 2:
            crops = [[0, 0], [0, 0]]
        given, zero_point = tensor(rng, x)
        model = litert.Model(x, zero_point)
        model.add("BATCH_TO_SPACE_ND", "BatchToSpaceNDOptions", [model.constant(block), model.constant(crops)],
                  (1,) * 4)
        mine = nnapi.batch_to_space_nd(given, block) if i % 2 else s2dq.batch_to_space_nd(given, block, crops)
        problems.same(values(mine), run(litert, model, x), (x.shape, dtype, block, crops, zero_point))
        counted("LiteRT")

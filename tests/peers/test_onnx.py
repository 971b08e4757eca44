"""ONNX: its reference evaluator with and without our operators, its own node tests, and ONNX Runtime."""

import warnings

import ml_dtypes
import numpy as np
import pytest

import problems
from s2dq.compat import onnx as ours

DTYPES = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "bool", "float16", "float32",
          "float64", "complex64", "complex128")
OPSETS = {"SpaceToDepth": (1, 13, 28), "DepthToSpace": (1, 11, 13, 28)}
WITH_MODE = {"SpaceToDepth": 28, "DepthToSpace": 11}
MOVES = {"SpaceToDepth": ours.space_to_depth, "DepthToSpace": ours.depth_to_space}


def model_of(kind, x, block, mode, opset):
    """A model of one node; `mode` None leaves the attribute out."""
    from onnx import helper

    attributes = {"blocksize": block} | ({} if mode is None else {"mode": mode})
    dtype = helper.np_dtype_to_tensor_dtype(x.dtype)
    graph = helper.make_graph([helper.make_node(kind, ["x"], ["y"], **attributes)], "case",
                              [helper.make_tensor_value_info("x", dtype, x.shape)],
                              [helper.make_tensor_value_info("y", dtype, None)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def modes_of(kind, opset):
    return (None, "DCR", "CRD") if opset >= WITH_MODE[kind] else (None,)


def cases(rng, kind, dtypes, repeats):
    for opset in OPSETS[kind]:
        for mode in modes_of(kind, opset):
            for i in range(repeats):
                dtype = dtypes[i % len(dtypes)]
                x, block = problems.depth(rng, kind == "SpaceToDepth", dtype=dtype)
                yield x, block, mode, opset


@pytest.mark.parametrize("kind", MOVES)
def test_reference_evaluator(peer, rng, counted, kind):
    """Ours in the evaluator's place of them, and ours against the evaluator's own."""
    peer("onnx")
    from onnx.reference import ReferenceEvaluator

    for x, block, mode, opset in cases(rng, kind, DTYPES, 28):
        model, told = model_of(kind, x, block, mode, opset), (kind, x.shape, x.dtype, block, mode, opset)
        mine = MOVES[kind](problems.strided(rng, x), block, *([] if mode is None else [mode]))
        (through,) = ReferenceEvaluator(model, new_ops=ours.OPS).run(None, {"x": x})
        problems.same(mine, through, told)
        (theirs,) = ReferenceEvaluator(model).run(None, {"x": x})
        problems.same(mine, theirs, told)
        counted("ONNX reference")


@pytest.mark.parametrize("kind", MOVES)
def test_strings_and_bfloat16(peer, rng, counted, kind):
    peer("onnx")
    from onnx.reference import ReferenceEvaluator

    for mode in ("DCR", "CRD"):
        x, block = problems.depth(rng, kind == "SpaceToDepth", dtype=np.int32)
        strings = np.array([f"s{value}" for value in x.ravel()], dtype=object).reshape(x.shape)
        for tensor in (strings, x.astype(ml_dtypes.bfloat16)):
            model = model_of(kind, tensor, block, mode, 28)
            (through,) = ReferenceEvaluator(model, new_ops=ours.OPS).run(None, {"x": tensor})
            (theirs,) = ReferenceEvaluator(model).run(None, {"x": tensor})
            problems.same(through, theirs, (kind, tensor.shape, tensor.dtype, mode))
            counted("ONNX reference")


def test_node_tests_of_the_onnx_project(peer, counted):
    """Every backend node test of both operators, through the evaluator with our operators."""
    peer("onnx")
    from onnx.backend.test.case.node import collect_testcases
    from onnx.reference import ReferenceEvaluator

    ran = []
    with warnings.catch_warnings(action="ignore"):  # of other operators' cases
        found_cases = collect_testcases()
    for case in found_cases:
        if not any(node.op_type in MOVES for node in case.model.graph.node):
            continue
        evaluator = ReferenceEvaluator(case.model, new_ops=ours.OPS)
        for inputs, outputs in case.data_sets:
            names = [value.name for value in case.model.graph.input]
            found = evaluator.run(None, dict(zip(names, inputs, strict=True)))
            for mine, theirs in zip(found, outputs, strict=True):
                problems.same(mine, theirs, case.name)
        ran.append(case.name)
        counted("ONNX node tests")
    assert {"test_spacetodepth", "test_spacetodepth_example", "test_depthtospace_example",
            "test_depthtospace_crd_mode_example"} <= set(ran), ran


@pytest.mark.parametrize("kind", MOVES)
def test_onnx_runtime(peer, rng, counted, kind):
    runtime = peer("onnxruntime")
    peer("onnx")
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    refused = set()
    ran = 0
    for x, block, mode, opset in cases(rng, kind, ("float32", "float64", "uint8", "int8"), 55):
        model = model_of(kind, x, block, mode, opset)
        try:
            session = runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # its exceptions have no common class
            assert "NOT_IMPLEMENTED" in str(error) or (opset == 28 and "is till opset" in str(error)), error
            refused.add((opset, str(x.dtype)))
            continue
        (theirs,) = session.run(None, {"x": x})
        mine = MOVES[kind](problems.strided(rng, x), block, *([] if mode is None else [mode]))
        problems.same(mine, theirs, (kind, x.shape, x.dtype, block, mode, opset))
        ran += 1
        counted("ONNX Runtime")
    assert ran >= 100, refused

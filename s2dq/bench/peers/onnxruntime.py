"""ONNX Runtime: SpaceToDepth and DepthToSpace on NCHW, Transpose for everything; plain and with bound buffers."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ..cases import Case
from ..recipe import Move, Pad, cropped_shape, formats, padded_shape, recipe
from ..timing import Call
from . import those_that_work

if TYPE_CHECKING:  # set_up imports
    import onnxruntime as ort
    from onnx import helper

OPSET, OPSET_WITH_MODE = 17, 28
settings: Any  # of sessions


def set_up(threads: int) -> None:
    global helper, ort, settings
    import onnxruntime as ort
    from onnx import helper

    settings = ort.SessionOptions()
    settings.intra_op_num_threads = threads
    settings.inter_op_num_threads = 1
    settings.log_severity_level = 3


def calls(case: Case, x: Any) -> list[Call]:
    native = native_node(case)
    builders = [lambda: session_calls("Transpose", *recipe_nodes(case, x), x)]
    if native:
        builders.append(lambda: session_calls(native.op_type, [native], [], x))
        if native.op_type == "SpaceToDepth":
            builders.append(lambda: session_calls("SpaceToDepth", [native], [], x, opset=OPSET_WITH_MODE))
    return those_that_work(*builders)


def session_calls(label: str, nodes: list[Any], constants: list[Any], x: Any, opset: int = OPSET) -> list[Call]:
    dtype = helper.np_dtype_to_tensor_dtype(x.dtype)
    graph = helper.make_graph(nodes, "case", [helper.make_tensor_value_info("x", dtype, x.shape)],
                              [helper.make_tensor_value_info("y", dtype, None)], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    session = ort.InferenceSession(model.SerializeToString(), settings, providers=["CPUExecutionProvider"])
    feed = {"x": x}
    result = session.run(None, feed)[0]

    binding, out = session.io_binding(), ort.OrtValue.ortvalue_from_shape_and_type(result.shape, result.dtype)
    binding.bind_ortvalue_input("x", ort.OrtValue.ortvalue_from_numpy(x))
    binding.bind_ortvalue_output("y", out)
    bound = {"run": session.run_with_iobinding, "binding": binding, "out": out}
    return [Call(label, "run(None, feed)", [{"run": session.run, "feed": feed}], fresh=True, to_numpy=lambda y: y[0]),
            Call(f"{label}, bound", "run(binding)", [bound], fresh=False, to_numpy=lambda out: out.numpy())]


def native_node(case: Case) -> Any:
    """The operator itself, for a case that is just that."""
    names = {"space_to_depth": "SpaceToDepth", "depth_to_space": "DepthToSpace"}
    if case.operator not in names or set(case.arguments) - {"block_size", "data_format", "mode"}:
        return None
    mode = case.arguments.get("mode", "DCR")
    if formats(case)[0] != "NCHW" or mode == "focus":
        return None
    attributes = {"blocksize": case.arguments["block_size"]}
    if case.operator == "depth_to_space" or mode == "CRD":
        attributes["mode"] = mode  # for SpaceToDepth in the newest opset alone; the older ones refuse the model
    return helper.make_node(names[case.operator], ["x"], ["y"], **attributes)


def integers(values: Any) -> np.ndarray:
    return np.array(values, np.int64)


def recipe_nodes(case: Case, x: Any) -> tuple[list[Any], list[Any]]:
    """The recipe as nodes and their constants."""
    nodes: list[Any] = []
    constants: list[Any] = []
    shape, name = x.shape, "x"

    def constant(values: Any) -> str:
        values = np.atleast_1d(values)
        dtype = helper.np_dtype_to_tensor_dtype(values.dtype)
        constants.append(helper.make_tensor(f"c{len(constants)}", dtype, values.shape, values.tobytes(), raw=True))
        return str(constants[-1].name)

    def add(kind: str, inputs: list[Any], **attributes: Any) -> str:
        nodes.append(helper.make_node(kind, [name, *inputs], [f"t{len(nodes)}"], **attributes))
        return str(nodes[-1].output[0])

    for step in recipe(case):
        if isinstance(step, Pad):
            margins = integers(step.margins).T.ravel()
            name = add("Pad", [constant(margins), constant(x.dtype.type([step.value]))])
            shape = padded_shape(step, shape)
        elif isinstance(step, Move):
            name = add("Reshape", [constant(integers(step.split))])
            name = add("Transpose", [], perm=step.order)
            name = add("Reshape", [constant(integers(step.shape))])
            shape = step.shape
        else:
            starts = integers(step.margins)[:, 0]
            shape = cropped_shape(step, shape)
            name = add("Slice", [constant(starts), constant(starts + integers(shape)),
                                 constant(np.arange(len(shape), dtype=np.int64))])
    nodes[-1].output[0] = "y"
    return nodes, constants

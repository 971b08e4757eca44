"""OpenVINO: its four operators where they are the case, Transpose for everything, Gather for
lookups; compiled for the CPU.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..cases import Case
from ..recipe import Lookup, Move, Pad, Reverse, formats, recipe
from ..timing import Call
from . import those_that_work

if TYPE_CHECKING:  # set_up imports
    import openvino as ov
    from openvino import opset13 as ops

settings: dict[str, Any] = {"PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": "1", "ENABLE_CPU_PINNING": False}
MODES = {"DCR": "blocks_first", "CRD": "depth_first"}


def set_up(threads: int) -> None:
    global ops, ov
    import openvino as ov
    from openvino import opset13 as ops

    settings["INFERENCE_NUM_THREADS"] = threads


def calls(case: Case, x: Any) -> list[Call]:
    builders = [lambda: model_calls("Transpose", x, lambda node: recipe_nodes(case, node, x.dtype))]
    native = native_operator(case)
    if native:
        builders.append(lambda: model_calls("native", x, native))
    return those_that_work(*builders)


def model_calls(label: str, x: Any, build: Callable[[Any], Any]) -> list[Call]:
    source = ops.parameter(x.shape, x.dtype)
    model = ov.Model([build(source)], [source])
    compiled = ov.Core().compile_model(model, "CPU", settings)
    request = compiled.create_infer_request()
    request.set_input_tensor(ov.Tensor(x))
    request.infer()
    names = {"infer": request.infer, "start": request.start_async, "wait": request.wait,
             "out": request.get_output_tensor(), "compiled": compiled}
    return [Call(label, "infer()", [names], fresh=False, to_numpy=lambda out: out.data),
            Call(f"{label}, async", "(start(), wait())", [names], fresh=False, to_numpy=lambda out: out.data)]


def native_operator(case: Case) -> Callable[[Any], Any] | None:
    """A function of a node, or None: depth operators take channels first, batch operators pad with zeros."""
    arguments = case.arguments
    if case.operator in ("space_to_depth", "depth_to_space"):
        source, target, _ = formats(case)
        mode = MODES.get(arguments.get("mode", "DCR"))
        is_plain = set(arguments) <= {"block_size", "data_format", "mode"} and isinstance(arguments["block_size"], int)
        if source not in ("NCW", "NCHW", "NCDHW") or mode is None or not is_plain:
            return None
        return lambda node: getattr(ops, case.operator)(node, mode, arguments["block_size"])
    if case.operator not in ("space_to_batch_nd", "batch_to_space_nd") or arguments.get("pad_value"):
        return None
    kept = [0] * (len(case.shape) - 1 - len(arguments["block_shape"]))
    block = [1, *arguments["block_shape"], *(1 for _ in kept)]
    margins = arguments["paddings" if "paddings" in arguments else "crops"]
    begins, ends = ([0, *values, *kept] for values in zip(*margins))
    operator = ops.space_to_batch if case.operator == "space_to_batch_nd" else ops.batch_to_space
    return lambda node: operator(node, *(ops.constant(integers(values)) for values in (block, begins, ends)))


def integers(values: Any) -> np.ndarray:
    return np.array(values, np.int64)


def recipe_nodes(case: Case, node: Any, dtype: Any) -> Any:
    for step in recipe(case):
        if isinstance(step, Pad):
            begins, ends = (ops.constant(integers(values)) for values in zip(*step.margins))
            node = ops.pad(node, begins, ends, "constant", ops.constant(dtype.type(step.value)))
        elif isinstance(step, Move):
            node = ops.reshape(node, ops.constant(integers(step.split)), False)
            node = ops.transpose(node, ops.constant(integers(step.order)))
            node = ops.reshape(node, ops.constant(integers(step.shape)), False)
        elif isinstance(step, Reverse):
            extent = node.output(0).shape[step.axis]
            node = ops.gather(node, ops.constant(np.arange(extent)[::-1].astype("int32")), ops.constant(step.axis))
        elif isinstance(step, Lookup):
            node, dtype = look_up(step, node), step.tables.dtype
        else:
            starts, ends = integers(step.margins).T
            stops = integers(node.output(0).shape) - ends
            node = ops.slice(node, *(ops.constant(values) for values in (starts, stops, np.ones_like(starts))))
    return node


def look_up(step: Any, node: Any) -> Any:
    levels = ops.convert(node, "i32")
    if len(step.tables) > 1:
        levels = ops.add(levels, ops.constant(step.offsets(len(node.output(0).shape), "int32")))
    return ops.gather(ops.constant(step.tables.ravel()), levels, ops.constant(0))

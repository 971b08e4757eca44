"""TensorFlow: its own operators where its CPU kernels take them, transpose for everything; eager and tf.function."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..cases import Case
from ..recipe import Move, Pad, Steps, formats, recipe, window
from ..timing import Call
from . import signed

if TYPE_CHECKING:  # set_up imports
    import tensorflow as tf


def set_up(threads: int) -> None:
    global tf
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)


def calls(case: Case, x: Any) -> list[Call]:
    steps, tensor = recipe(case), tf.constant(signed(x))
    found = []
    programs = {"transpose": lambda x: run(steps, x)}
    if native := native_program(case):
        programs |= {"native": native}
    for label, program in programs.items():
        function = tf.function(program).get_concrete_function(tf.TensorSpec(tensor.shape, tensor.dtype))
        for way, call in (("eager", program), ("tf.function", function)):
            found.append(Call(f"{label}, {way}", "program(x)", [{"program": call, "x": tensor}], fresh=True,
                              to_numpy=to_numpy))
    return found


def run(steps: Steps, x: Any) -> Any:
    for step in steps:
        if isinstance(step, Pad):
            x = tf.pad(x, step.margins, constant_values=step.value)
        elif isinstance(step, Move):
            x = tf.reshape(tf.transpose(tf.reshape(x, step.split), step.order), step.shape)
        else:
            x = x[window(step, x.shape)]
    return x


def native_program(case: Case) -> Callable[[Any], Any] | None:
    """tf.nn.space_to_depth and its relatives, or None: the CPU has NHWC and DCR alone, and pads with zeros."""
    arguments = case.arguments
    if arguments.get("pad_value"):
        return None
    if case.operator == "space_to_batch_nd":
        return lambda x: tf.space_to_batch(x, arguments["block_shape"], arguments["paddings"])
    if case.operator == "batch_to_space_nd":
        return lambda x: tf.batch_to_space(x, arguments["block_shape"], arguments["crops"])
    operators = {"space_to_depth": tf.nn.space_to_depth, "depth_to_space": tf.nn.depth_to_space}
    block = arguments.get("block_size")
    if (case.operator not in operators or formats(case)[:2] != ("NHWC", "NHWC") or arguments.get("mode", "DCR") != "DCR"
            or not isinstance(block, int) or block == 1):
        return None
    operator = operators[case.operator]
    margins = [[0, 0], *arguments.get("paddings", arguments.get("crops", [[0, 0], [0, 0]])), [0, 0]]
    if case.operator == "space_to_depth":
        is_padded = any(map(any, margins))
        return lambda x: operator(tf.pad(x, margins) if is_padded else x, block)

    def program(x: Any) -> Any:
        result = operator(x, block)
        if any(map(any, margins)):
            result = result[tuple(slice(start, extent - end)
                                  for (start, end), extent in zip(margins, result.shape))]
        return result

    return program


def to_numpy(tensor: Any) -> np.ndarray:
    return np.asarray(tensor.numpy())

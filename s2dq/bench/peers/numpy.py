"""NumPy: reshape, transpose and copy, as one assignment or as one per offset within the block.

Frames are looked up by `take`, one channel after the other if each has its table; where the tables only flip the top
bit, by an exclusive or, in one pass with the transpose.
"""

from typing import Any

import numpy as np

from ..cases import Case
from ..recipe import (
    Crop,
    Lookup,
    Move,
    Pad,
    Reverse,
    Steps,
    is_one_transpose,
    offsets,
    padded_shape,
    recipe,
    result_dtype,
    result_shape,
    window,
)
from ..timing import Call


def set_up(threads: int) -> None:
    """NumPy moves data with one thread."""


def calls(case: Case, x: Any) -> list[Call]:
    steps = recipe(case)
    found = [transpose(steps, x)]
    out = np.empty(result_shape(steps, x.shape), result_dtype(steps, x.dtype))
    found.append(assignment("assignment", steps, x, out))
    if any(offsets(step) for step in steps if isinstance(step, Move)):
        found.append(staged("per offset", steps, x, out, per_offset=True))
    if len(steps) == 2 and isinstance(steps[0], Lookup) and steps[0].is_flip:
        found.append(flip(steps[1], x, out))
    return found


def transpose(steps: Steps, x: Any) -> Call:
    if is_one_transpose(steps):
        names = {"x": x, "split": steps[0].split, "order": steps[0].order, "shape": steps[0].shape}
        names["copied"] = np.ascontiguousarray
        statement = "copied(x.reshape(split).transpose(order)).reshape(shape)"
        return Call("transpose", statement, [names], fresh=True)
    return Call("transpose", "run(steps, x)", [{"run": run, "steps": steps, "x": x}], fresh=True)


def run(steps: Steps, x: Any) -> Any:
    """The recipe as a chain of NumPy calls; the result is contiguous and new."""
    source = x
    for step in steps:
        if isinstance(step, Pad):
            padded = np.full(padded_shape(step, x.shape), step.value, x.dtype)
            padded[window(step, padded.shape)] = x
            x = padded
        elif isinstance(step, Reverse):
            x = x[step.index]
        elif isinstance(step, Lookup):
            x = look_up(step, x, np.empty(x.shape, step.tables.dtype))
        elif isinstance(step, Move):
            x = x.reshape(step.split).transpose(step.order).reshape(step.shape)
        else:
            x = x[window(step, x.shape)]
    return x.copy() if np.may_share_memory(x, source) or not x.flags.c_contiguous else x


def assignment(label: str, steps: Steps, x: Any, out: Any) -> Call:
    """One assignment to a view of `out`, where the case is one transpose."""
    if len(steps) > 1 or not isinstance(steps[0], Move):
        return staged(label, steps, x, out, per_offset=False)
    step = steps[0]
    names = {"copyto": np.copyto, "x": x, "out": out, "split": step.split, "order": step.order,
             "transposed": step.transposed}
    return Call(label, "copyto(out.reshape(transposed), x.reshape(split).transpose(order))", [names], fresh=False)


def flip(step: Any, x: Any, out: Any) -> Call:
    """The top bit on the way to its place."""
    names = {"xor": np.bitwise_xor, "x": x, "out": out, "split": step.split, "order": step.order, "uint8": np.uint8,
             "transposed": step.transposed}
    statement = "xor(x.reshape(split).transpose(order), 128, out=out.view(uint8).reshape(transposed))"
    return Call("exclusive or", statement, [names], fresh=False)


def staged(label: str, steps: Steps, x: Any, out: Any, per_offset: bool) -> Call:
    """The steps one after the other, what lies between in arrays made beforehand."""
    names = {"run_stages": run_stages, "stages": stages_of(steps, x, per_offset), "x": x, "out": out}
    return Call(label, "run_stages(stages, x, out)", [names], fresh=False)


def stages_of(steps: Steps, x: Any, per_offset: bool) -> list[tuple[Any, Any, Any]]:
    """(step, indices, buffer) of each step; the last one writes into `out` and has no buffer."""
    stages: list[tuple[Any, Any, Any]] = []
    given = x
    for step in steps:
        indices = None
        if isinstance(step, Pad):
            buffer = np.full(padded_shape(step, given.shape), step.value, given.dtype)
            indices = [window(step, buffer.shape)]
        elif isinstance(step, Crop):
            indices = [window(step, given.shape)]
            buffer = np.empty(given[indices[0]].shape, given.dtype)
        elif isinstance(step, Reverse):
            buffer = given
        elif isinstance(step, Lookup):
            buffer = np.empty(given.shape, step.tables.dtype)
        else:
            indices = (offsets(step) if per_offset else None) or [...]
            buffer = np.empty(step.shape, given.dtype)
        stages.append((step, indices, buffer))
        given = buffer
    stages[-1] = (*stages[-1][:2], None)  # out
    return stages


def run_stages(stages: Any, x: Any, out: Any) -> None:
    for step, indices, buffer in stages:
        target = out if buffer is None else buffer
        if isinstance(step, Pad):
            target[indices[0]] = x
        elif isinstance(step, Crop):
            target[...] = x[indices[0]]
        elif isinstance(step, Reverse):
            target = x[step.index]
        elif isinstance(step, Lookup):
            look_up(step, x, target)
        else:
            destination, source = target.reshape(step.transposed), x.reshape(step.split).transpose(step.order)
            for index in indices:
                destination[index] = source[index]
        x = target


def look_up(step: Any, x: Any, out: Any) -> Any:
    if step.is_flip:
        np.bitwise_xor(x, 128, out=out.view(np.uint8))
    elif len(step.tables) == 1:
        out[...] = step.tables[0].take(x)  # faster than take's own out=
    else:
        for channel, table in enumerate(step.tables):
            index = (*(slice(None),) * step.axis, channel)
            out[index] = table.take(x[index])
    return out

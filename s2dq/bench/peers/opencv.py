"""OpenCV: cvtColor, copyMakeBorder and LUT for frames; the rearranging is left to NumPy, or to split for planes."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ..cases import Case
from ..recipe import Lookup, Move, Pad, Reverse, Steps, padded_shape, recipe, result_shape
from ..timing import Call
from .numpy import run_stages, stages_of

if TYPE_CHECKING:  # set_up imports
    import cv2


def set_up(threads: int) -> None:
    global cv2
    import cv2

    cv2.setNumThreads(threads)


def calls(case: Case, x: Any) -> list[Call]:
    steps = recipe(case)
    cut = next(place for place, step in enumerate(steps) if isinstance(step, Lookup)) + 1
    stages, given = [], x
    for step in steps[:cut]:
        buffer = np.empty(padded_shape(step, given.shape) if isinstance(step, Pad) else given.shape,
                          step.tables.dtype if isinstance(step, Lookup) else np.uint8)
        stages.append((FUNCTIONS[type(step)], step, buffer))
        given = buffer
    rest = steps[cut:]
    out = np.empty(result_shape(steps, x.shape), given.dtype) if rest else given
    names = {"run": run, "stages": stages, "x": x, "out": out}
    if not rest:
        return [Call("LUT", "run(stages, x)", [names], fresh=False)]
    found = []
    for label, per_offset in (("LUT, transpose", False), ("LUT, per offset", True)):
        moved = names | {"run_stages": run_stages, "rest": stages_of(rest, given, per_offset)}
        found.append(Call(label, "run_stages(rest, run(stages, x), out)", [moved], fresh=False))
    if is_split(rest, x, out):
        planes = names | {"split": cv2.split, "planes": list(out[0])}
        found.append(Call("LUT, split", "split(run(stages, x)[0], planes)", [planes], fresh=False))
    return found


def run(stages: Any, x: Any) -> Any:
    for function, step, buffer in stages:
        function(step, x, buffer)
        x = buffer
    return x


def is_split(steps: Steps, x: Any, out: Any) -> bool:
    """Whether one frame of interleaved channels becomes planes, and nothing else moves."""
    return (len(steps) == 1 and isinstance(steps[0], Move) and len(out) == 1 and out.ndim == 4
            and out.shape[1] == x.shape[-1])


def reverse(step: Any, x: Any, out: Any) -> None:
    """BGR to RGB, all frames as one tall picture."""
    cv2.cvtColor(as_picture(x), cv2.COLOR_BGR2RGB, dst=as_picture(out))


def pad(step: Any, x: Any, out: Any) -> None:
    (top, bottom), (left, right) = step.margins[1:3]
    for frame, canvas in zip(x, out, strict=True):
        cv2.copyMakeBorder(frame, top, bottom, left, right, cv2.BORDER_CONSTANT, dst=canvas, value=[step.value] * 4)


def look_up(step: Any, x: Any, out: Any) -> None:
    if step.axis == 3:
        tables = np.broadcast_to(step.tables, (x.shape[-1], 256)) if len(step.tables) > 1 else step.tables
        cv2.LUT(as_picture(x), np.ascontiguousarray(tables.T)[np.newaxis], dst=as_picture(out))
        return
    for number, frame in enumerate(x):
        for channel, plane in enumerate(frame):
            cv2.LUT(plane, step.tables[channel % len(step.tables)], dst=out[number, channel])


def as_picture(x: Any) -> Any:
    return x.reshape(-1, *x.shape[2:])


FUNCTIONS = {Reverse: reverse, Pad: pad, Lookup: look_up}

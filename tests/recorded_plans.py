"""A fixed list of calls, and digests of their plans: what is planned changes on purpose or not at all.

    python tests/recorded_plans.py          record them anew in plans.json and drawn_plans.json

A plan that moves the same bytes more slowly is no wrong result, so no other test sees it. Calls are checked as a user's
are, but nothing is run; plans are made for what each of `MEANS` can do, whatever this machine has. Then there are the
problems of `drawn_problems.py`: no calls, but more, in sizes at the limits, and each for one instruction set.
"""

import hashlib
import json
import random
from pathlib import Path

import numpy as np

import drawn_problems
import s2dq
from s2dq import _validate
from s2dq._layout import DepthProblem
from s2dq._plan import Means, plan_batch, plan_depth
from s2dq.bench import cases

FILE = Path(__file__).with_name("plans.json")
DRAWN = Path(__file__).with_name("drawn_plans.json")  # a digest for each problem, in their order
PER_LINE = 10
MEANS = {  # of each instruction set, as `_kernels.tile_means()` has them; also where the processor follows streams
    "portable": None,
    "avx2": (False, False, False, True, False, True, False, False, False),
    "avx512vbmi": (True, True, True, True, True, False, True, False, True),
    "avx512vbmi, followed": (True, True, True, True, True, False, True, True, True),
    "neon": (True, False, False, False, True, False, False, False, False),
}


class Asking:
    """In the place of an operator's argument, it has the operator return the problem."""

    def __init__(self, x):
        self.x = x

    def __s2dq_move__(self, operation, out, num_threads, arguments):
        return operation.check(self.x, out, num_threads, arguments).problem


def problem_of(function, x, arguments):
    """Of a call of an operator, a Preprocessor or a Postprocessor."""
    if function == "preprocess":
        pre = s2dq.Preprocessor(**arguments)
        problem = _validate.frame_call("Preprocessor", pre._settings, x, None).problem
        return problem if problem.staged else problem._replace(lookup=pre._lookup.kind)
    if function == "postprocess":
        post = s2dq.Postprocessor(**arguments)
        problem = _validate.post_call("Postprocessor", post._settings, s2dq.QuantizedTensor, x, None, None).problem
        return problem._replace(lookup=post._lookup.kind)
    return getattr(s2dq, function)(Asking(x), **arguments)


def named_calls():
    """(name, function, x, arguments): the named cases, and drawn ones."""
    for case in (*cases.CASES, *cases.PREPROCESSING):
        # Strides as they are in a frame; zeros, because nothing is read.
        x = np.empty(case.frame or case.shape, case.dtype)[tuple(map(slice, case.shape))]
        yield case.name, "preprocess" if case.operator == "preprocess" else case.operator, x, case.arguments
    draw = random.Random(20250301)
    for index in range(500):
        yield f"drawn {index}", *drawn_call(lambda n: int(draw.random() * n))
    for index in range(200):
        yield f"drawn frames {index}", *drawn_frames(lambda n: int(draw.random() * n))


def drawn_call(below):
    """Odd sizes, margins, strides and words; `below(n)` draws a number from 0 to n - 1."""
    def pick(*values):
        return values[below(len(values))]

    dtype = np.dtype(pick("u1", "u1", "u1", "i2", "f4", "f8", "V3"))
    n, c = pick(1, 1, 2, 5), pick(1, 3, 4, 16, 1 + below(80))
    h, w = 1 + below(pick(9, 40, 130, 1500)), 1 + below(pick(9, 40, 130, 1500))
    b, layout = pick(1, 2, 2, 3, 4), pick("NHWC", "NCHW")
    kind = pick("s2d", "s2d", "d2s", "d2s", "volume", "words", "s2b", "b2s", "pack", "unpack")
    arguments = {"data_format": layout}
    if kind == "volume":
        blocks = (pick(1, 2), b, pick(2, 3))
        shape = [n, *(1 + below(6) for _ in blocks), c]
        shape[1:4] = [extent * block for extent, block in zip(shape[1:4], blocks)]
        return "space_to_depth", np.empty(shape, dtype), {
            "block_size": blocks, "data_format": "NDHWC", "mode": pick("DCR", "CRD"),
            "out_format": pick("NDHWC", "NCDHW")}  # fmt: skip
    if kind == "words":
        lanes, c = pick(4, 8, 32), pick(1, 3, 4, c)
        shape = (n, -(-c // lanes), h * b, w * b, lanes)
        return "space_to_depth", np.empty(shape, np.uint8), {
            "block_size": b, "data_format": "NCHW_VECT_C", "mode": pick("DCR", "CRD", "focus"), "channels": c,
            "vect": pick(lanes, 4, 8), "out_format": pick("NHWC", "NCHW", "NCHW_VECT_C")}  # fmt: skip
    if kind in ("s2d", "d2s"):
        arguments |= {"block_size": b, "mode": pick("DCR", "CRD", "focus"), "vect": pick(4, 8, 32),
                      "out_format": pick(None, "NHWC", "NCHW", "NCHW_VECT_C")}
    if kind == "s2d":
        if below(2):
            arguments["paddings"] = [[1, -(h + 1) % b], [b, -w % b]]
        else:
            h, w = h * b, w * b
    elif kind == "d2s":
        c *= b * b
        if below(2):
            arguments["crops"] = [[0, b - 1], [b // 2, 0]]
    elif kind == "s2b":
        arguments = {"block_shape": [b, 2], "paddings": [[2, -(h + 2) % b], [1, (w + 1) % 2]]}
        layout = "NHWC"
    elif kind == "b2s":
        arguments = {"block_shape": [b, 2], "crops": [[0, b - 1], [1, 0]]}
        n, layout = n * 2 * b, "NHWC"
    elif kind == "pack":
        arguments["vect"] = pick(4, 8, 32)
    shape = (n, h, w, c) if layout == "NHWC" else (n, c, h, w)
    if kind == "unpack":
        lanes = pick(4, 8, 32)
        shape = (n, -(-c // lanes), h, w, lanes)
        arguments["channels"] = c
    x = np.empty(shape, dtype)
    if below(4) == 0:  # a window of a larger array, or a turned one
        x = np.empty([extent + 3 for extent in shape], dtype)[tuple(slice(1, 1 + extent) for extent in shape)]
    elif below(6) == 0:
        x = x[:, ::-1]
    functions = {"s2d": "space_to_depth", "d2s": "depth_to_space", "s2b": "space_to_batch_nd",
                 "b2s": "batch_to_space_nd", "pack": "pack_vect_c", "unpack": "unpack_vect_c"}
    return functions[kind], x, arguments


def drawn_frames(below):
    """Frames of a Preprocessor, or a tensor for a Postprocessor, with one table or one for each channel."""
    def pick(*values):
        return values[below(len(values))]

    c, b, reverse = pick(1, 3, 3, 4), pick(1, 2, 2, 4), below(2) == 1
    h, w = b * (1 + below(pick(9, 60, 400))), b * (1 + below(pick(9, 60, 400)))
    source, target = pick("NHWC", "NHWC", "NCHW"), pick("NHWC", "NCHW", "NCHW_VECT_C")
    settings = {"input_format": source, "data_format": target, "block_size": b, "mode": pick("DCR", "CRD", "focus"),
                "vect": pick(4, 8, 32), "reverse_channels": reverse, "scale": pick(1 / 255, 1 / 50),
                "zero_point": pick(0, -128), "rescale": pick(1 / 255, 1.0)}  # fmt: skip
    if below(2):
        settings |= {"mean": np.arange(c) / 8, "std": 1 + np.arange(c) / 4}
    if below(3) == 0:
        settings["pad_value"] = tuple(range(c))
    if below(4) == 0:
        words = -(-c * b * b // settings["vect"])
        shape = {"NHWC": (1, h // b, w // b, c * b * b), "NCHW": (2, c * b * b, h // b, w // b),
                 "NCHW_VECT_C": (1, words, h // b, w // b, settings["vect"])}[target]
        return "postprocess", np.empty(shape, np.int8), {"mean": np.zeros(c), **settings}
    kind = pick("u1", "u1", "f4")
    if below(4) == 0:
        settings["dtype"] = pick("float32", "float16")
        del settings["scale"], settings["zero_point"]
    if below(2):
        settings["size"] = (h + b * below(4), w + b * below(70))
    n = pick(1, 1, 3)
    frames = np.empty((n, h, w, c) if source == "NHWC" else (n, c, h, w), kind)
    return "preprocess", frames[:, ::-1] if below(5) == 0 else frames, settings


def plan_of(problem, means):
    plan_it = plan_depth if isinstance(problem, DepthProblem) else plan_batch
    return plan_it(problem, tiles=None if means is None else Means(*means))


def digest(plan):
    """Of all that the kernels get."""
    return hashlib.sha256(np.array(plan.encode(), "<i8").tobytes()).hexdigest()[:12]


def problems():
    """Names and problems of all calls."""
    for name, *call in named_calls():
        problem = problem_of(*call)
        yield name, problem
        # As of a quantized tensor with a zero point for each channel.
        if isinstance(problem, DepthProblem) and problem.to_depth and problem.lo != (0,) * len(problem.lo):
            yield f"{name}, padded by channel", problem._replace(pads=problem.channels)


def recorded():
    return json.loads(FILE.read_text())


def short_digest(plan):
    """Of all that the kernels get, and of what a developer reads."""
    table = np.array(plan.encode(), "<i8").tobytes()
    return hashlib.sha256(table + str(plan).encode()).hexdigest()[:8]


def recorded_drawn():
    return json.loads(DRAWN.read_text())


if __name__ == "__main__":
    lines = ",\n".join(
        f"{json.dumps(name)}: {json.dumps([digest(plan_of(problem, means)) for means in MEANS.values()])}"
        for name, problem in problems()
    )
    FILE.write_text(f"{{\n{lines}\n}}\n")
    drawn = [short_digest(plan_of(*drawn_problems.drawn_problem(index))) for index in drawn_problems.INDICES]
    lines = ",\n".join(json.dumps(drawn[start:start + PER_LINE])[1:-1] for start in range(0, len(drawn), PER_LINE))
    DRAWN.write_text(f"[\n{lines}\n]\n")

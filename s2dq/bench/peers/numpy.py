"""NumPy: reshape, transpose and copy, as one assignment or as one per offset within the block."""

import itertools

import numpy as np

from ..recipe import Crop, Move, Pad, padded_shape, recipe, window
from ..timing import Call

PACKAGES = ("numpy",)
MOST_ASSIGNMENTS = 64


def set_up(threads):
    """NumPy moves data with one thread."""


def calls(case, x):
    steps = recipe(case)
    names = {"run": run, "steps": steps, "x": x}
    out = np.empty_like(run(steps, x))
    found = [Call("transpose", "run(steps, x)", [names], fresh=True)]
    for label, pairs in (("assignment", assignments(steps, x, out)),
                         ("assignment per offset", assignments(steps, x, out, per_offset=True))):
        if len(pairs) == 1:
            (target, source), = pairs
            names = {"copyto": np.copyto, "target": target, "source": source, "out": out}
            found.append(Call(label, "copyto(target, source)", [names], fresh=False))
        else:
            names = {"assign": assign, "pairs": pairs, "out": out}
            found.append(Call(label, "assign(pairs)", [names], fresh=False))
    return found


def run(steps, x):
    """The recipe as a chain of NumPy calls; the result is contiguous and new."""
    source = x
    for step in steps:
        if isinstance(step, Pad):
            padded = np.full(padded_shape(step, x.shape), step.value, x.dtype)
            padded[window(step, padded.shape)] = x
            x = padded
        elif isinstance(step, Move):
            x = x.reshape(step.split).transpose(step.order).reshape(step.shape)
        else:
            x = x[window(step, x.shape)]
    return x.copy() if np.may_share_memory(x, source) or not x.flags.c_contiguous else x


def assign(pairs):
    for target, source in pairs:
        target[...] = source


def assignments(steps, x, out, per_offset=False):
    """(target, source) pairs of views that write `out` from `x`, what lies between in arrays made beforehand."""
    pairs = []
    for number, step in enumerate(steps):
        is_last = number == len(steps) - 1
        if isinstance(step, Pad):
            padded = np.full(padded_shape(step, x.shape), step.value, x.dtype)
            pairs.append((padded[window(step, padded.shape)], x))
            x = padded
        elif isinstance(step, Crop):
            x = x[window(step, x.shape)]
            if not is_last:  # the next step wants to reshape it
                pairs.append((np.empty(x.shape, x.dtype), x))
                x = pairs[-1][0]
            else:
                pairs.append((out, x))
        else:
            source = x.reshape(step.split).transpose(step.order)
            x = out if is_last else np.empty(step.shape, x.dtype)
            target = x.reshape(source.shape)
            pairs += offsets_apart(step, target, source) if per_offset else [(target, source)]
    return pairs


def offsets_apart(step, target, source):
    """The pair as one per index of the short axes, which are the offsets within a block or the lanes of a word."""
    short, count = [], 1
    for axis, place in enumerate(step.order):
        is_run = axis == place == len(step.split) - 1  # what stays together
        if step.split[place] <= 16 and not is_run and count * step.split[place] <= MOST_ASSIGNMENTS:
            short.append(axis)
            count *= step.split[place]
    ranges = [range(extent) if axis in short else (slice(None),) for axis, extent in enumerate(target.shape)]
    return [(target[index], source[index]) for index in itertools.product(*ranges)]

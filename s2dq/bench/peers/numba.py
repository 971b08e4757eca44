"""Numba: loops as one writes them by hand over arrays of known rank, with small numbers - block sizes, colours, lanes -
as constants and larger extents as arguments, as in a function that is to serve more than one shape.

Two nests, one that walks through the result in order and one that walks through the input. What no input goes to is
filled first; indices outside of the padded or cropped array are skipped as soon as they are known. Frames are looked
up on the way.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from s2dq import reference

from ..cases import Case
from ..recipe import (
    DIMS,
    RANK,
    Lookup,
    as_space_to_depth,
    channels_of,
    deep_tokens,
    formats,
    is_channels_last,
    lanes_of_c,
    recipe,
    result_shape,
    spatial_of,
)
from ..timing import Call

if TYPE_CHECKING:  # set_up imports
    import numba

CONSTANTS = {*range(9), 16, 32, 128}


def set_up(threads: int) -> None:
    global numba
    import numba

    numba.set_num_threads(threads)


def calls(case: Case, x: Any) -> list[Call]:
    if case.operator == "preprocess":
        return preprocess_calls(case, x)
    nest = batch_nest(case) if "block_shape" in case.arguments else depth_nest(case)
    bits = x.view(f"u{x.itemsize}")  # Numba's float16 cannot do much, but bits just move
    out = np.empty(result_shape(recipe(case), x.shape), bits.dtype)
    rank = 1 + len(case.arguments["block_shape"]) if "block_shape" in case.arguments else None
    views = [a if rank is None else a.reshape(*a.shape[:rank], prod(a.shape[rank:])) for a in (bits, out)]
    fill = np.asarray(case.arguments.get("pad_value", 0), x.dtype).view(bits.dtype)[()]
    return nest_calls(nest, {"x": views[0], "target": views[1], "fill": fill}, out)


def preprocess_calls(case: Case, x: Any) -> list[Call]:
    """As space_to_depth, every byte looked up; first comes a result that is all padding, where there is any."""
    nest = depth_nest(as_space_to_depth(case))
    step = next(step for step in recipe(case) if isinstance(step, Lookup))
    index = nest.source.split(", ")
    channel = index[step.axis]
    if case.arguments.get("reverse_channels"):
        index[step.axis] = f"{x.shape[step.axis] - 1} - ({channel})"
    level = f"x[{', '.join(index)}]"
    nest.value = f"{level} ^ 128" if step.is_flip else f"tables[{channel if len(step.tables) > 1 else 0}, {level}]"
    nest.fill = "fill[i]"
    fill = case.call(reference, np.full_like(x, case.arguments.get("pad_value", 114))).view(np.uint8)
    out = np.empty_like(fill)
    return nest_calls(nest, {"x": x, "target": out, "fill": fill.ravel(), "tables": step.tables.view(np.uint8)}, out)


@dataclass
class Nest:
    """Loops over `extents`, in either order; names of `coordinates` are bound as soon as their loops are open."""

    extents: dict[str, int]  # loop: extent
    # By name: the loops it needs, its expression, and its extent if it may lie outside.
    coordinates: dict[str, tuple[set[str], str, int | None]]
    source: str  # index expressions
    target: str
    input_order: list[str]
    result_order: list[str]
    is_filled: bool
    value: str = ""  # what is made of the element, if it changes
    fill: str = "fill"


def nest_calls(nest: Nest, arrays: dict[str, Any], out: Any) -> list[Call]:
    """A call for either order; `arrays` are the arguments x, target, fill and what else there is."""
    orders = {"result's order": nest.result_order, "input's order": nest.input_order}
    return [nest_call(label, program(nest, order, arrays), arrays, out) for label, order in orders.items()]


def nest_call(label: str, text: str, arrays: dict[str, Any], out: Any) -> Call:
    text, extents = with_arguments(text)
    scope: dict[str, Any] = {}
    exec(text, scope)
    names = {"function": numba.njit(scope["function"]), "out": out, **arrays, **extents}
    statement = f"function({', '.join([*arrays, *extents])})"
    eval(statement, dict(names))  # compiles
    return Call(label, statement, [names], fresh=False)


def with_arguments(text: str) -> tuple[str, dict[str, int]]:
    """The source text with its larger numbers as arguments, and their values."""
    numbers = sorted({int(number) for number in re.findall(r"\b\d+\b", text)} - CONSTANTS)
    extents = {f"e{number}": number for number in numbers}
    text = re.sub(r"\b\d+\b", lambda match: match[0] if int(match[0]) in CONSTANTS else f"e{match[0]}", text)
    return text.replace("):", f"{''.join(f', {name}' for name in extents)}):", 1), extents


def program(nest: Nest, order: list[str], parameters: Iterable[str]) -> str:
    """The source text of the function."""
    lines = [f"def function({', '.join(parameters)}):"]
    if nest.is_filled:
        lines += ["    flat = target.reshape(-1)", "    for i in range(flat.size):", f"        flat[i] = {nest.fill}"]
    depth, opened, bound = 1, set(), set()
    for loop in order:
        lines.append("    " * depth + f"for {loop} in range({nest.extents[loop]}):")
        depth += 1
        opened.add(loop)
        for name, (needed, expression, extent) in nest.coordinates.items():
            if name not in bound and needed <= opened:
                bound.add(name)
                lines.append("    " * depth + f"{name} = {expression}")
                if extent is not None:
                    lines.append("    " * depth + f"if {name} >= 0 and {name} < {extent}:")
                    depth += 1
    lines.append("    " * depth + f"target[{nest.target}] = {nest.value or f'x[{nest.source}]'}")
    return "\n".join(lines)


def radix(names: list[str], extents: dict[str, int]) -> str:
    """The flat index of nested names: "((a) * 3 + b) * 4 + c"."""
    index = "0"
    for name in names:
        index = name if index == "0" else f"({index}) * {extents[name]} + {name}"
    return index


def depth_nest(case: Case) -> Nest:
    source, target, vect = formats(case)
    to_depth = case.operator != "depth_to_space"
    axes = DIMS[RANK[source]]
    block = case.arguments.get("block_size", 1)
    block = block if isinstance(block, tuple) else (block,) * len(axes)
    margins = case.arguments.get("paddings" if to_depth else "crops", [[0, 0]] * len(axes))
    held = channels_of(source, case.shape)
    count = case.arguments.get("channels", held)

    # Loops h and bh, w and bw ...; the coordinates H, W of the space side come from both.
    extents = {"n": case.shape[0], "c": count if to_depth else count // prod(block)}
    coordinates, space = {}, {}
    for axis, extent, b, (start, end) in zip(axes, spatial_of(source, case.shape), block, margins):
        extents |= {axis: (extent + start + end) // b if to_depth else extent, f"b{axis}": b}
        space[axis.upper()] = extent if to_depth else extent * b - start - end
        outside = space[axis.upper()] if start or end else None
        coordinates[axis.upper()] = ({axis, f"b{axis}"}, f"{axis} * {b} + b{axis} - {start}", outside)
    deep = deep_tokens(case.arguments.get("mode", "DCR"), len(axes))
    source_channel, target_channel = (["c"], deep) if to_depth else (deep, ["c"])

    # c in two loops where words begin and end within it.
    lows = (lanes_of_c(source, source_channel, extents, case.shape[-1]),
            lanes_of_c(target, target_channel, extents, vect))
    low = max(one or 1 for one in lows)
    extents |= {"c1": extents["c"] // low, "c0": low}
    source_channel, target_channel = ([part for token in tokens for part in (["c1", "c0"] if token == "c" else [token])]
                                      for tokens in (source_channel, target_channel))
    total = prod(extents[token] for token in target_channel)
    sides = [
        (source, source_channel, held, case.shape[-1], lows[0] == low, to_depth),
        (target, target_channel, total, vect, lows[1] == low, not to_depth),
    ]
    (source_index, input_order), (target_index, result_order) = (side(*one, extents, space) for one in sides)
    is_filled = (to_depth and any(map(any, margins))) or (target == "NCHW_VECT_C" and total % vect != 0)
    return Nest(extents, coordinates, source_index, target_index, input_order, result_order, is_filled)


def side(
    layout: str, channel: list[str], count: int, lanes: int, is_aligned: bool, is_space: bool, extents: dict[str, int],
    space: dict[str, int],
) -> tuple[str, list[str]]:  # fmt: skip
    """(flat index, loops in order) of one side; `channel` are the loops that make the channel's index."""
    sizes = space if is_space else {axis.lower(): extents[axis.lower()] for axis in space}
    spatial = [loop for axis in space for loop in ([axis.lower(), f"b{axis.lower()}"] if is_space else [axis.lower()])]
    if layout == "NCHW_VECT_C":
        cut = channel.index("c0")
        word, lane = radix(channel[:cut], extents), radix(channel[cut:], extents)
        if not is_aligned:
            word, lane = f"({radix(channel, extents)}) // {lanes}", f"({radix(channel, extents)}) % {lanes}"
        parts = ["n", word, *sizes, lane]
        order = ["n", *channel[:cut], *spatial, *channel[cut:]]
    elif is_channels_last(layout):
        parts = ["n", *sizes, radix(channel, extents)]
        order = ["n", *spatial, *channel]
    else:
        parts = ["n", radix(channel, extents), *sizes]
        order = ["n", *channel, *spatial]
    return ", ".join(parts), order


def batch_nest(case: Case) -> Nest:
    block = case.arguments["block_shape"]
    to_batch = case.operator == "space_to_batch_nd"
    margins = case.arguments["paddings" if to_batch else "crops"]
    rest = prod(case.shape[1 + len(block) :])
    offsets, blocks = [f"b{i}" for i in range(len(block))], [f"d{i}" for i in range(len(block))]
    extents = {"n": case.shape[0] if to_batch else case.shape[0] // prod(block), "r": rest}
    extents |= dict(zip(offsets, block))
    coordinates, space_index, block_index = {}, ["n"], [radix([*offsets, "n"], extents)]
    for i, (b, (start, end), extent) in enumerate(zip(block, margins, case.shape[1:])):
        extents[f"d{i}"] = (extent + start + end) // b if to_batch else extent
        size = extent if to_batch else extent * b - start - end
        coordinates[f"D{i}"] = ({f"d{i}", f"b{i}"}, f"d{i} * {b} + b{i} - {start}", size if start or end else None)
        space_index.append(f"D{i}")
        block_index.append(f"d{i}")
    space = ", ".join([*space_index, "r"]), ["n", *(loop for pair in zip(blocks, offsets) for loop in pair), "r"]
    blocked = ", ".join([*block_index, "r"]), [*offsets, "n", *blocks, "r"]
    (source, input_order), (target, result_order) = (space, blocked) if to_batch else (blocked, space)
    return Nest(extents, coordinates, source, target, input_order, result_order, to_batch and any(map(any, margins)))

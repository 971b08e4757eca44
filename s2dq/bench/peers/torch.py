"""PyTorch: pixel_shuffle and pixel_unshuffle, joined slices, permute for everything, and take for lookups."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..cases import Case
from ..recipe import Lookup, Move, Pad, Reverse, Steps, is_one_transpose, offsets, recipe, slices_to_join, window
from ..timing import Call
from . import signed

if TYPE_CHECKING:  # set_up imports
    import torch
    import torch.nn.functional as F


def set_up(threads: int) -> None:
    global F, torch
    import torch
    import torch.nn.functional as F

    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)


def calls(case: Case, x: Any) -> list[Call]:
    steps, tensor = recipe(case), torch.from_numpy(signed(x))
    found = [permute(steps, tensor), *pixel_calls(case, tensor)]
    joined = slices_to_join(case)
    if joined:
        names = {"cat": torch.cat, "indices": joined[0], "axis": joined[1], "x": tensor}
        found.append(Call("cat", "cat([x[index] for index in indices], axis)", [names], fresh=True, to_numpy=to_numpy))
    if len(steps) == 1 and isinstance(steps[0], Move):
        found += copy_calls(steps[0], tensor)
    return found


def permute(steps: Steps, x: Any) -> Call:
    if is_one_transpose(steps):
        names = {"x": x, "split": steps[0].split, "order": steps[0].order, "shape": steps[0].shape}
        statement = "x.view(split).permute(order).contiguous().view(shape)"
    else:
        steps = [(step, tables_of(step, x.ndim)) for step in steps]
        names, statement = {"run": run, "steps": steps, "x": x}, "run(steps, x)"
    return Call("permute", statement, [names], fresh=True, to_numpy=to_numpy)


def run(steps: Steps, x: Any) -> Any:
    """The recipe; the result is contiguous and new."""
    given = x
    for step, tables in steps:
        if isinstance(step, Pad):
            x = F.pad(x, [count for pair in reversed(step.margins) for count in pair], value=step.value)
        elif isinstance(step, Move):
            x = x.reshape(step.split).permute(step.order).reshape(step.shape)
        elif isinstance(step, Reverse):
            x = x.flip(step.axis)
        elif isinstance(step, Lookup):
            x = look_up(tables, x)
        else:
            x = x[window(step, x.shape)]
    x = x.contiguous()
    return x.clone() if x.data_ptr() == given.data_ptr() else x


def tables_of(step: Any, rank: int) -> Any:
    """(tables end to end, the start of each channel's or None) of a lookup; (dtype, None) where it flips a bit."""
    if not isinstance(step, Lookup):
        return None
    tables = torch.from_numpy(step.tables)
    if step.is_flip:
        return tables.dtype, None
    return tables.ravel(), torch.from_numpy(step.offsets(rank, "int64")) if len(tables) > 1 else None


def look_up(tables: Any, x: Any) -> Any:
    table, starts = tables
    if isinstance(table, torch.dtype):
        return (x ^ 128).view(table)
    return torch.take(table, x.long() if starts is None else x + starts)


def pixel_calls(case: Case, x: Any) -> list[Call]:
    """The module's own operators: CRD, channels first or, as a memory format, last."""
    arguments = case.arguments
    operators = {"space_to_depth": F.pixel_unshuffle, "depth_to_space": F.pixel_shuffle}
    if case.operator not in operators or set(arguments) - {"block_size", "data_format", "mode"}:
        return []
    if arguments.get("mode") != "CRD" or arguments["data_format"] not in ("NCHW", "NHWC"):
        return []
    names = {"pixel": operators[case.operator], "x": x, "block": arguments["block_size"]}
    if arguments["data_format"] == "NCHW":
        return [Call("pixel", "pixel(x, block)", [names], fresh=True, to_numpy=to_numpy)]
    names["x"] = x.permute(0, 3, 1, 2)  # NCHW with the memory format channels_last
    names["channels_last"] = torch.channels_last
    return [Call("pixel, channels_last", "pixel(x, block).contiguous(memory_format=channels_last)", [names],
                 fresh=True, to_numpy=lambda result: to_numpy(result.permute(0, 2, 3, 1)))]


def copy_calls(step: Any, x: Any) -> Iterator[Call]:
    """Into a tensor that exists: one copy_, or one per offset within the block."""
    out = torch.empty(step.shape, dtype=x.dtype)
    names = {"x": x, "out": out, "split": step.split, "order": step.order, "transposed": step.transposed}
    yield Call("copy_", "out.view(transposed).copy_(x.view(split).permute(order))", [names], fresh=False,
               to_numpy=to_numpy)
    if offsets(step):
        names = names | {"copy_each": copy_each, "indices": offsets(step)}
        statement = "copy_each(out.view(transposed), x.view(split).permute(order), indices)"
        yield Call("per offset", statement, [names], fresh=False, to_numpy=to_numpy)


def copy_each(target: Any, source: Any, indices: Any) -> None:
    for index in indices:
        target[index].copy_(source[index])


def to_numpy(tensor: Any) -> np.ndarray:
    return np.asarray(tensor.numpy())

"""PyTorch: its two pixel functions, and every operator of s2dq, on tensors and as custom operators.

Tensors go in and come out. An input on the CPU is read in place with its own strides. Each function calls an operator
of ``torch.ops.s2dq``, so that autograd, ``torch.compile``, ``torch.export``, fake tensors and ``vmap`` know it:

* the kernel of an operator makes the result and lets the NumPy operator of the same name write to it;
* its fake kernel makes the same tensor, with the same strides, from the same checks, and writes nothing;
* its gradient is the inverse operator, so that it can be differentiated again.

A result keeps the memory format of its input (channels_last, channels_last_3d) wherever both have the same axes,
channels come second, and a batch operator leaves them whole. Team sizes are those of `s2dq.set_num_threads`; nothing
here changes PyTorch's own.
"""

from collections.abc import Callable
from math import inf, prod
from typing import Any, NamedTuple, SupportsIndex

import numpy as np
import torch
from torch import Tensor
from torch.autograd import forward_ad

import s2dq
from s2dq._layout import LAYOUTS, Layout
from s2dq._typing import Blocks, Integers, Pairs
from s2dq._validate import DepthSizes, Door, Interface, batch_sizes, depth_arguments, depth_sizes, guarded, show

__all__ = [
    "batch_to_space_nd",
    "depth_to_space",
    "pack_vect_c",
    "pixel_shuffle",
    "pixel_unshuffle",
    "space_to_batch_nd",
    "space_to_depth",
    "unpack_vect_c",
]

PACKED = "NCHW_VECT_C"
CHANNELS_LAST = {"NCHW": "NHWC", "NCDHW": "NDHWC"}
SPATIAL_RANKS = {name: len(layout.spatial) for name, layout in LAYOUTS.items()}

NUMPY_DTYPES = {
    getattr(torch, name): np.dtype(name)
    for name in ("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64",
                 "float16", "float32", "float64", "complex64", "complex128")
}  # fmt: skip
# What NumPy does not know (bfloat16, float8 ...) moves as integers of the same width.
STAND_INS = {1: torch.int8, 2: torch.int16, 4: torch.int32}
LARGEST = 2**63 - 1  # integer that a schema takes


# ---- checks


class Plan(NamedTuple):
    """A checked call: what the custom operator takes besides the tensor, and the shape and format of the result."""

    arguments: tuple[Any, ...]
    shape: tuple[int, ...]
    memory_format: torch.memory_format


class TensorDoor(Door):
    """The checks of one call, for tensors, and for integers that are symbolic while a program is traced."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.beyond: dict[str, int] = {}  # integers that no schema takes, refused last: other rules say more

    def tensor(self, argument: str, value: Any) -> Tensor:
        """A dense tensor in CPU memory, or one without memory (meta, fake)."""
        if not isinstance(value, Tensor):
            self.refuse(TypeError, f"{argument} must be a torch.Tensor, not {type(value).__name__}")
        rule = f"{argument} must be a dense tensor on the CPU"
        if value.is_nested:  # first: it need not have a shape
            self.refuse(TypeError, f"{rule}, not a nested one; .to_padded_tensor() makes it one")
        self.context[f"{argument}.shape"] = tuple(value.shape)
        if value.layout is not torch.strided:
            self.refuse(TypeError, f"{rule}, not one of {value.layout}; .to_dense() makes it one")
        if value.is_quantized:
            self.refuse(TypeError, f"{rule}, not one of {value.dtype}; s2dq.interop.from_torch reads it")
        if value.device.type not in ("cpu", "meta"):
            self.refuse(TypeError, f"{rule}, not on {value.device}; .cpu() moves it there")
        if forward_ad.unpack_dual(value).tangent is not None:  # it would be lost in silence
            self.refuse(TypeError, f"{argument} is a dual tensor; custom operators have no forward-mode gradient")
        return value

    def integer(self, argument: str, value: Any, least: int) -> int:
        if isinstance(value, torch.SymInt):  # operator.index would make a constant of it
            if value < least:
                self.refuse(ValueError, f"{argument} must be at least {least}, not {show(value)}")
            return value  # type: ignore[no-any-return]  # it does what an int does
        number = super().integer(argument, value, least)
        if number > LARGEST:
            self.beyond[argument] = number
        return number

    def fill(self, value: Any, dtype: torch.dtype) -> Any:
        """A pad value as a schema takes it; that the dtype can hold it is checked here where NumPy knows the dtype."""
        if value is None or isinstance(value, (torch.SymInt, torch.SymFloat)):
            return value
        if isinstance(value, (np.generic, np.ndarray, Tensor)) and value.ndim == 0:
            value = value.item()
        if not isinstance(value, (int, float, complex)):
            self.refuse(TypeError, f"pad_value must be a number, not {show(value)}")
        if dtype in NUMPY_DTYPES:
            self.element("pad_value", value, NUMPY_DTYPES[dtype])
        if isinstance(value, int) and not -(2**63) <= value < 2**64:  # more than a schema's Scalar takes
            try:
                value = float(value)
            except OverflowError as error:
                self.refuse(ValueError, f"pad_value {show(value)} cannot be held by dtype {dtype}", error)
        return value

    def plan(self, x: Tensor, arguments: tuple[Any, ...], shape: tuple[int, ...], channels_second: bool) -> Plan:
        for argument, number in self.beyond.items():
            self.refuse(ValueError, f"{argument} must be at most 2**63 - 1 in PyTorch, not {show(number)}")
        if all(type(extent) is int for extent in shape):
            self.size(shape, x.dtype)
        last = channels_second and _is_channels_last(x)
        formats = {4: torch.channels_last, 5: torch.channels_last_3d}
        return Plan(arguments, tuple(shape), formats[x.ndim] if last else torch.contiguous_format)


def _is_channels_last(x: Tensor) -> bool:
    """PyTorch's own rule (``suggest_memory_format``), by which a tensor of these strides makes channels_last ones.

    Not ``x.is_contiguous(memory_format=...)``: that is true of both formats where C is 1 or the plane one pixel, and
    false of slices.
    """
    if x.ndim not in (4, 5):
        return False
    shape, strides = x.shape, x.stride()
    if strides[1] == 0 or any(extent == 0 for extent in shape):
        return False
    least = 0
    for axis in (1, *range(x.ndim - 1, 1, -1), 0):
        if strides[axis] < least or (axis == 0 and least == strides[1]):
            return False
        least = strides[axis] * shape[axis]
    return True


@guarded
def _check_pixel(name: str, up: bool, input: Any, factor: Any) -> Plan:
    """Check a call of pixel_shuffle (`up`) or pixel_unshuffle."""
    door = TensorDoor(name)
    door.tensor("input", input)
    argument = "upscale_factor" if up else "downscale_factor"
    r = door.integer(argument, factor, 1)
    if input.ndim < 3:
        door.refuse(ValueError, f"input must have at least 3 dimensions (..., c, h, w), not {input.ndim}")
    *lead, c, h, w = input.shape
    if up:
        if c % (r * r):
            door.refuse(ValueError, f"number of channels {c} is not divisible by the square of {argument} {show(r)}")
        shape = (*lead, c // (r * r), h * r, w * r)
    else:
        for axis, extent in (("height", h), ("width", w)):
            if extent % r:
                door.refuse(ValueError, f"{axis} {extent} is not divisible by {argument} {show(r)}")
        shape = (*lead, c * r * r, h // r, w // r)
    return door.plan(input, (r,), shape, input.ndim == 4)


@guarded
def _check_depth(
    name: str, to_depth: bool, x: Any, block_size: Any, data_format: Any, mode: Any, out_format: Any, vect: Any,
    channels: Any, pairs: Any, pad_value: Any = None,
) -> Plan:  # fmt: skip
    """Check a call of space_to_depth (`to_depth`) or depth_to_space; `pairs` is paddings or crops."""
    door = TensorDoor(name)
    door.tensor("x", x)
    source, target, mode, block, lanes, margins = depth_arguments(
        door, to_depth, block_size, data_format, mode, out_format, vect, pairs)
    fill = door.fill(pad_value, x.dtype)
    logical = None if channels is None else door.integer("channels", channels, 0)
    sizes = depth_sizes(
        door, to_depth, x, block_size, block, source, out_format, target, lanes, logical,
        ((0, 0),) * len(block) if margins is None else margins,
    )  # fmt: skip
    names = (source.name, mode, None if out_format is None else target.name)
    arguments = (list(block), *names, lanes, logical, _flat(margins), *((fill,) if to_depth else ()))
    return door.plan(x, arguments, sizes.shape, source is target and source.name in CHANNELS_LAST)


@guarded
def _check_batch(name: str, to_batch: bool, x: Any, block_shape: Any, pairs: Any, pad_value: Any = None) -> Plan:
    """Check a call of space_to_batch_nd (`to_batch`) or batch_to_space_nd; `pairs` is paddings or crops."""
    door = TensorDoor(name)
    door.tensor("x", x)
    block = door.block_shape(block_shape)
    door.context["block_shape"] = block
    margins = door.pairs("paddings" if to_batch else "crops", pairs, len(block))
    fill = door.fill(pad_value, x.dtype)
    sizes = batch_sizes(door, to_batch, x, block, margins)
    arguments = (list(block), _flat(margins), *((fill,) if to_batch else ()))
    # Blocks of channels would come first in the batch; as the last axis they would come last.
    return door.plan(x, arguments, sizes.shape, block[:1] in ((), (1,)))


@guarded
def _check_pack(name: str, x: Any, data_format: Any, vect: Any, pad_value: Any) -> Plan:
    """Check a call of pack_vect_c."""
    door = TensorDoor(name)
    door.tensor("x", x)
    source = LAYOUTS[door.choice("data_format", data_format, ("NCHW", "NHWC"))]
    door.context["data_format"] = source.name
    lanes = door.integer("vect", vect, 1)
    if pad_value is None:
        door.refuse(TypeError, "pad_value must be a number, not None")
    # The default means raw zero bytes, in every dtype.
    fill = 0 if type(pad_value) is int and pad_value == 0 else door.fill(pad_value, x.dtype)
    sizes = _convert_sizes(door, x, source, LAYOUTS[PACKED], lanes, None)
    return door.plan(x, (source.name, lanes, fill), sizes.shape, False)


@guarded
def _check_unpack(name: str, x: Any, data_format: Any, channels: Any) -> Plan:
    """Check a call of unpack_vect_c."""
    door = TensorDoor(name)
    door.tensor("x", x)
    target = LAYOUTS[door.choice("data_format", data_format, ("NCHW", "NHWC"))]
    door.context["data_format"] = target.name
    logical = None if channels is None else door.integer("channels", channels, 0)
    sizes = _convert_sizes(door, x, LAYOUTS[PACKED], target, 1, logical)
    return door.plan(x, (target.name, logical), sizes.shape, False)


def _convert_sizes(
    door: Door, x: Tensor, source: Layout, target: Layout, lanes: int, logical: int | None
) -> DepthSizes:
    """A change of layout alone: space_to_depth with blocks of one."""
    margins = ((0, 0), (0, 0))
    return depth_sizes(door, True, x, 1, (1, 1), source, target.name, target, lanes, logical, margins)


@guarded
def _stored_fill(name: str, x: Tensor, value: Any) -> Any:
    """A pad value as an element of what `_array_of` makes of `x`."""
    if value is None or x.dtype in NUMPY_DTYPES:
        return value
    door = Door(name)
    rule = f"pad_value must be a value of dtype {x.dtype}, not {show(value)}"
    if isinstance(value, bool) or (isinstance(value, complex) and not x.dtype.is_complex):
        door.refuse(TypeError, rule)
    wide = torch.complex128 if x.dtype.is_complex else torch.float64
    try:
        held = torch.tensor(value, dtype=wide).to(x.dtype)
        kept, last = held.to(wide).item(), torch.finfo(x.dtype).max
    except RuntimeError as error:  # dtypes without arithmetic (float4, bits)
        if type(value) is int and value == 0:
            return 0
        door.refuse(TypeError, rule, error)
    # Some small floats saturate where others overflow: what is past the last of them is not held either way. And
    # rounding moves no number by more than itself, as taking a sign away does. NaN is what differs from itself.
    rounded = abs(value.real) <= last and abs(value.imag) <= last and abs(kept - value) <= abs(value)
    if not (rounded or kept == value or (kept != kept and value != value)):
        door.refuse(ValueError, f"pad_value {show(value)} cannot be held by dtype {x.dtype}")
    return held.view(STAND_INS[x.dtype.itemsize]).item()


# ---- arguments of the custom operators, whose lists are flat


def _flat(pairs: Any) -> Any:
    """``[[start, end], ...]`` as a flat list."""
    return None if pairs is None else [entry for pair in pairs for entry in pair]


def _paired(entries: Any) -> Any:
    """A flat list as ``[[start, end], ...]``; an odd entry at the end is left for the checks."""
    return None if entries is None else [entries[i:i + 2] for i in range(0, len(entries), 2)]


# While a compiler traces a call, the checks are left to the fake kernel, for doors are too much to be traced. What an
# operator's schema would change or leave out before that is checked here. What is raised here makes the compiler leave
# the call as it is, and the door decides; with fullgraph=True it is what the compiler's error tells.


def _traced_integer(argument: str, value: Any) -> int:
    """An integer for a schema, which would take a bool; those of NumPy are tensors to a compiler, of unknown value."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{argument} must be an int of Python where a program is traced")
    if value > LARGEST:
        raise ValueError(f"{argument} must be at most 2**63 - 1 in PyTorch")
    return value


def _traced_block(argument: str, value: Any) -> list[int]:
    """A list of integers."""
    if not isinstance(value, (list, tuple, range)):
        raise TypeError(f"{argument} must be a list or a tuple of integers where a program is traced")
    return [_traced_integer(argument, entry) for entry in value]


def _traced_pairs(argument: str, pairs: Any) -> list[int] | None:
    """``[[start, end], ...]`` as a flat list, which does not say how long the rows were."""
    if pairs is None:
        return None
    for pair in pairs:
        if len(pair) != 2:
            raise ValueError(f"{argument} must be [start, end] pairs")
    return [_traced_integer(argument, entry) for pair in pairs for entry in pair]


def _traced_fill(x: Tensor, value: Any) -> Any:
    """A pad value for a schema, which would take a bool; what is out of the dtype's range is left to the door."""
    if x.dtype is torch.bool and isinstance(value, bool):
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float, complex)):
        raise TypeError("pad_value must be a number of Python where a program is traced")
    parts: tuple[Any, ...] = (value.real, value.imag) if isinstance(value, complex) else (value,)
    if x.dtype.is_floating_point or x.dtype.is_complex:
        last = torch.finfo(x.dtype).max
        held = len(parts) == 1 or x.dtype.is_complex
        for part in parts:
            held = held and not last < abs(part) < inf
    else:
        least, last = (0, 1) if x.dtype is torch.bool else (torch.iinfo(x.dtype).min, torch.iinfo(x.dtype).max)
        held = len(parts) == 1 and least <= parts[0] <= last and parts[0] == int(parts[0])
    if not held or (isinstance(value, int) and not -LARGEST <= value <= 2 * LARGEST + 1):
        raise ValueError(f"pad_value must be a value of dtype {x.dtype} where a program is traced")
    return value


def _traced_depth(
    block_size: Any, data_format: Any, mode: Any, out_format: Any, vect: Any, channels: Any, pairs: Any, *pad_value: Any
) -> tuple[Any, ...]:
    """Arguments of a depth operator."""
    if not isinstance(block_size, (list, tuple, range)):
        block_size = [block_size] * SPATIAL_RANKS[data_format]
    block, lanes = _traced_block("block_size", block_size), _traced_integer("vect", vect)
    logical = None if channels is None else _traced_integer("channels", channels)
    pairs = _traced_pairs("paddings" if pad_value else "crops", pairs)
    return (block, data_format, mode, out_format, lanes, logical, pairs, *pad_value)


# ---- execution


def _result_of(x: Tensor, plan: Plan) -> Tensor:
    """A fresh tensor for the result, be it real, meta or fake."""
    return torch.empty(plan.shape, dtype=x.dtype, device=x.device, memory_format=plan.memory_format)


@guarded
def _allocated(name: str, x: Tensor, plan: Plan) -> Tensor:
    """`_result_of` in CPU memory."""
    try:
        return _result_of(x, plan)
    except RuntimeError as error:
        text = f"no memory for a result of shape {plan.shape} and dtype {x.dtype}"
        Door(name).refuse(MemoryError, text, error)


@guarded
def _check_memory(name: str, argument: str, x: Tensor) -> None:
    """Refuse a tensor whose elements do not lie in its memory: that can be taken away, and given back, under it."""
    steps = sum((extent - 1) * step for extent, step in zip(x.shape, x.stride()))
    least, given = (x.storage_offset() + steps + 1) * x.dtype.itemsize, x.untyped_storage().nbytes()
    if x.numel() and given < least:
        door = Door(name)
        door.context[f"{argument}.shape"] = tuple(x.shape)
        rule = f"{argument} must have memory for its elements, {least} bytes"
        door.refuse(ValueError, f"{rule}; its storage was resized to {given}")


def _array_of(x: Tensor) -> np.ndarray:
    """The elements of a tensor, viewed.

    Not by ``x.numpy()``, after which a tensor's memory, the caller's too, cannot be resized any more.
    """
    width = x.dtype.itemsize
    dtype = NUMPY_DTYPES.get(x.dtype) or NUMPY_DTYPES[STAND_INS[width]]
    steps = tuple(step * width for step in x.stride())
    memory = {"version": 3, "data": (x.data_ptr(), False), "shape": tuple(x.shape), "strides": steps}
    return np.asarray(Interface(memory | {"typestr": dtype.str}, x))


def _move_pixels(operator: Callable[..., Any], r: int, source: Tensor, target: Tensor) -> None:
    """An operator on (..., C, H, W): on all leading axes at once where one step leads through them."""
    if source.ndim > 4:
        try:
            source = source.view(-1, *source.shape[-3:])
        except RuntimeError:  # no such view
            for one, other in zip(source.unbind(0), target.unbind(0)):
                _move_pixels(operator, r, one, other)
            return
    batched = source.ndim == 4
    x = _array_of(source if batched else source[None])
    out = _array_of(target).reshape(-1, *target.shape[-3:])  # a view: contiguous, or of 4 axes
    if out.flags.c_contiguous:
        operator(x, r, "NCHW", mode="CRD", out=out)
    else:
        operator(np.moveaxis(x, 1, -1), r, "NHWC", mode="CRD", out=np.moveaxis(out, 1, -1))


def _run_pixel(name: str, up: bool, input: Tensor, factor: int) -> Tensor:
    plan = _check_pixel(name, up, input, factor)
    _check_memory(name, "input", input)
    out = _allocated(name, input, plan)
    if out.numel():
        _move_pixels(s2dq.depth_to_space if up else s2dq.space_to_depth, factor, input.detach(), out)
    return out


def _run_depth(
    name: str, to_depth: bool, x: Tensor, block: list[int], data_format: Any, mode: Any, out_format: Any, vect: Any,
    channels: Any, pairs: Any, *pad_value: Any,
) -> Tensor:  # fmt: skip
    arguments = (block, data_format, mode, out_format, vect, channels, _paired(pairs), *pad_value)
    plan = _check_depth(name, to_depth, x, *arguments)
    _check_memory(name, "x", x)
    out = _allocated(name, x, plan)
    source, target = _array_of(x), _array_of(out)
    if plan.memory_format is not torch.contiguous_format:
        source, target = np.moveaxis(source, 1, -1), np.moveaxis(target, 1, -1)
        data_format, out_format = CHANNELS_LAST[data_format], None
    keywords = {"mode": mode, "out_format": out_format, "vect": vect, "channels": channels, "out": target}
    if to_depth:
        fill = _stored_fill(name, x, *pad_value)
        s2dq.space_to_depth(source, block, data_format, paddings=_paired(pairs), pad_value=fill, **keywords)
    else:
        s2dq.depth_to_space(source, block, data_format, crops=_paired(pairs), **keywords)
    return out


def _run_batch(name: str, to_batch: bool, x: Tensor, block: list[int], pairs: Any, *pad_value: Any) -> Tensor:
    plan = _check_batch(name, to_batch, x, block, _paired(pairs), *pad_value)
    _check_memory(name, "x", x)
    out = _allocated(name, x, plan)
    source, target, pairs = _array_of(x), _array_of(out), _paired(pairs)
    if plan.memory_format is not torch.contiguous_format:
        source, target = np.moveaxis(source, 1, -1), np.moveaxis(target, 1, -1)
        idle = x.ndim - 1 - len(block)
        block, pairs = block + [1] * idle, pairs + [[0, 0]] * idle
        block, pairs = block[1:] + block[:1], pairs[1:] + pairs[:1]
    if to_batch:
        s2dq.space_to_batch_nd(source, block, pairs, pad_value=_stored_fill(name, x, *pad_value), out=target)
    else:
        s2dq.batch_to_space_nd(source, block, pairs, out=target)
    return out


def _run_pack(name: str, x: Tensor, data_format: Any, vect: Any, pad_value: Any) -> Tensor:
    plan = _check_pack(name, x, data_format, vect, pad_value)
    _check_memory(name, "x", x)
    out = _allocated(name, x, plan)
    fill = 0 if type(pad_value) is int and pad_value == 0 else _stored_fill(name, x, pad_value)  # as in `_check_pack`
    s2dq.pack_vect_c(_array_of(x), data_format, vect=vect, pad_value=fill, out=_array_of(out))
    return out


def _run_unpack(name: str, x: Tensor, data_format: Any, channels: Any) -> Tensor:
    plan = _check_unpack(name, x, data_format, channels)
    _check_memory(name, "x", x)
    out = _allocated(name, x, plan)
    s2dq.unpack_vect_c(_array_of(x), data_format, channels=channels, out=_array_of(out))
    return out


def _fake_pixel(name: str, up: bool, input: Tensor, factor: int) -> Tensor:
    return _result_of(input, _check_pixel(name, up, input, factor))


def _fake_depth(
    name: str, to_depth: bool, x: Tensor, block: list[int], data_format: Any, mode: Any, out_format: Any, vect: Any,
    channels: Any, pairs: Any, *pad_value: Any,
) -> Tensor:  # fmt: skip
    arguments = (block, data_format, mode, out_format, vect, channels, _paired(pairs), *pad_value)
    return _result_of(x, _check_depth(name, to_depth, x, *arguments))


def _fake_batch(name: str, to_batch: bool, x: Tensor, block: list[int], pairs: Any, *pad_value: Any) -> Tensor:
    return _result_of(x, _check_batch(name, to_batch, x, block, _paired(pairs), *pad_value))


def _fake_pack(name: str, x: Tensor, data_format: Any, vect: Any, pad_value: Any) -> Tensor:
    return _result_of(x, _check_pack(name, x, data_format, vect, pad_value))


def _fake_unpack(name: str, x: Tensor, data_format: Any, channels: Any) -> Tensor:
    return _result_of(x, _check_unpack(name, x, data_format, channels))


# ---- gradients: each operator moves every element once, so its transpose is its inverse


def _back_pixel(up: bool, grad: Tensor, input_shape: torch.Size, factor: int) -> Tensor:
    return (torch.ops.s2dq.pixel_unshuffle if up else torch.ops.s2dq.pixel_shuffle)(grad, factor)


def _back_depth(
    to_depth: bool, grad: Tensor, x_shape: torch.Size, block: list[int], data_format: Any, mode: Any, out_format: Any,
    vect: Any, channels: Any, pairs: Any, *pad_value: Any,
) -> Tensor:  # fmt: skip
    source, target = LAYOUTS[data_format], LAYOUTS[out_format or data_format]
    lanes = x_shape[-1] if source.packed else 4
    if lanes == 0:  # no element, and no word that could be packed
        return grad.new_zeros(x_shape)
    area = prod(block)
    if channels is None:
        channels = x_shape[1] * lanes if source.packed else x_shape[source.axes.index("c")]
    passed = channels * area if to_depth else channels // area
    known = passed if target.packed else None
    if not to_depth:
        return torch.ops.s2dq.space_to_depth(grad, block, target.name, mode, source.name, lanes, known, pairs)
    if source.packed and target.packed and grad.shape[1] % area:
        # A ragged number of words: depth_to_space from words to words refuses it, as TensorFlow does.
        planes = torch.ops.s2dq.depth_to_space(grad, block, target.name, mode, "NCHW", 4, known, pairs)
        return torch.ops.s2dq.pack_vect_c(planes, "NCHW", lanes)
    return torch.ops.s2dq.depth_to_space(grad, block, target.name, mode, source.name, lanes, known, pairs)


def _back_batch(
    to_batch: bool, grad: Tensor, x_shape: torch.Size, block: list[int], pairs: Any, *pad_value: Any
) -> Tensor:
    return (torch.ops.s2dq.batch_to_space_nd if to_batch else torch.ops.s2dq.space_to_batch_nd)(grad, block, pairs)


def _back_pack(grad: Tensor, x_shape: torch.Size, data_format: Any, vect: Any, pad_value: Any) -> Tensor:
    return torch.ops.s2dq.unpack_vect_c(grad, data_format, x_shape[LAYOUTS[data_format].axes.index("c")])


def _back_unpack(grad: Tensor, x_shape: torch.Size, data_format: Any, channels: Any) -> Tensor:
    if x_shape[-1] == 0:  # no element, and no word that could be packed
        return grad.new_zeros(x_shape)
    return torch.ops.s2dq.pack_vect_c(grad, data_format, x_shape[-1])


# ---- the custom operators

DEPTH = "Tensor x, int[] block_size, str data_format='NHWC', str mode='DCR', str? out_format=None, SymInt vect=4, "
DEPTH += "SymInt? channels=None, SymInt[]? {}=None"
SCHEMAS = {
    "pixel_shuffle": "Tensor input, int upscale_factor",
    "pixel_unshuffle": "Tensor input, int downscale_factor",
    "space_to_depth": DEPTH.format("paddings") + ", Scalar? pad_value=None",
    "depth_to_space": DEPTH.format("crops"),
    "space_to_batch_nd": "Tensor x, int[] block_shape, SymInt[] paddings, Scalar? pad_value=None",
    "batch_to_space_nd": "Tensor x, int[] block_shape, SymInt[] crops",
    "pack_vect_c": "Tensor x, str data_format='NCHW', SymInt vect=4, Scalar pad_value=0",
    "unpack_vect_c": "Tensor x, str data_format='NCHW', SymInt? channels=None",
}


def _define(
    name: str, run: Callable[..., Tensor], fake: Callable[..., Tensor], back: Callable[..., Tensor], *direction: bool
) -> None:
    """Define the custom operator `name`; `direction` is the first argument of the functions a pair of them shares."""
    batch_axis = 0 if name.startswith("pixel") else 1  # of vmap: batch operators keep what lies inside of N together

    def differentiate(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        return (back(*direction, grad, ctx.shape, *ctx.arguments), *(None for _ in ctx.arguments))

    def remember(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.shape, ctx.arguments = inputs[0].shape, inputs[1:]

    def batched(info: Any, in_dims: tuple[int, ...], x: Tensor, *arguments: Any) -> tuple[Tensor, int]:
        x = x.movedim(in_dims[0], batch_axis)
        if batch_axis == 0:
            return made(x, *arguments), 0
        out = made(x.flatten(0, 1), *arguments)
        if info.batch_size == 0:  # of nothing, N is what it is of one entry, and what is wrong with that is refused
            one = made(torch.empty((x.shape[0], *x.shape[2:]), dtype=x.dtype, device="meta"), *arguments)
            return out.unflatten(0, (one.shape[0], 0)), 1
        return out.unflatten(0, (-1, info.batch_size)), 1

    def kernel(x: Tensor, *arguments: Any) -> Tensor:
        return run(name, *direction, x, *arguments, *defaults[len(arguments):])

    def fake_kernel(x: Tensor, *arguments: Any) -> Tensor:
        return fake(name, *direction, x, *arguments, *defaults[len(arguments):])

    schema = f"({SCHEMAS[name]}) -> Tensor"
    made = torch.library.custom_op(f"s2dq::{name}", kernel, mutates_args=(), device_types="cpu", schema=schema)
    made.register_fake(fake_kernel)
    made.register_autograd(differentiate, setup_context=remember)
    made.register_vmap(batched)
    # The dispatcher leaves out what equals its default at the end of a call.
    defaults = tuple(argument.default_value for argument in getattr(torch.ops.s2dq, name).default._schema.arguments[1:])


_define("pixel_shuffle", _run_pixel, _fake_pixel, _back_pixel, True)
_define("pixel_unshuffle", _run_pixel, _fake_pixel, _back_pixel, False)
_define("space_to_depth", _run_depth, _fake_depth, _back_depth, True)
_define("depth_to_space", _run_depth, _fake_depth, _back_depth, False)
_define("space_to_batch_nd", _run_batch, _fake_batch, _back_batch, True)
_define("batch_to_space_nd", _run_batch, _fake_batch, _back_batch, False)
_define("pack_vect_c", _run_pack, _fake_pack, _back_pack)
_define("unpack_vect_c", _run_unpack, _fake_unpack, _back_unpack)


# ---- the functions


def pixel_shuffle(input: Tensor, upscale_factor: SupportsIndex) -> Tensor:
    """Rearrange (..., C*r*r, H, W) to (..., C, H*r, W*r): ``torch.nn.functional.pixel_shuffle``.

    In every plane::

        out[..., c, h*r + p, w*r + q] = input[..., c*r*r + p*r + q, h, w]        0 <= p, q < r

    which is depth_to_space with the channel first ("CRD"), in NCHW order.

    Parameters
    ----------
    input : torch.Tensor, shape (..., C*r*r, H, W)
        Any dtype, any strides, on the CPU (or without memory: meta, fake); at least 3 dimensions.
    upscale_factor : int
        The block, r, at least 1.

    Returns
    -------
    torch.Tensor
        A fresh tensor of the dtype of `input`, shape (..., C, H*r, W*r); channels_last where `input` is (or is a slice
        of such a tensor), else contiguous.

    Raises
    ------
    TypeError
        No tensor; one that is sparse, nested, quantized, MKL-DNN's, dual or on another device; a factor that is no
        integer.
    ValueError
        Fewer than 3 dimensions, a factor below 1, a number of channels that its square does not divide.
    MemoryError
        No memory for the result.

    See Also
    --------
    pixel_unshuffle : the inverse
    depth_to_space : other orders and layouts

    Notes
    -----
    Same values, dtype, shape and strides as PyTorch's, which has RuntimeError for everything that is refused here. Of
    rank 5 and with the strides of channels_last_3d, which PyTorch refuses, the result is contiguous. The gradient is
    `pixel_unshuffle`.

    References
    ----------
    PyTorch ``torch.nn.functional.pixel_shuffle``, ``torch.nn.PixelShuffle``.

    Examples
    --------
    >>> import torch
    >>> from s2dq.compat.torch import pixel_shuffle
    >>> pixel_shuffle(torch.arange(8, dtype=torch.int8).reshape(1, 4, 1, 2), 2)
    tensor([[[[0, 2, 1, 3],
              [4, 6, 5, 7]]]], dtype=torch.int8)
    """
    if torch.compiler.is_compiling():
        factor = _traced_integer("upscale_factor", upscale_factor)
    else:
        (factor,) = _check_pixel("pixel_shuffle", True, input, upscale_factor).arguments
    return torch.ops.s2dq.pixel_shuffle(input, factor)


def pixel_unshuffle(input: Tensor, downscale_factor: SupportsIndex) -> Tensor:
    """Rearrange (..., C, H*r, W*r) to (..., C*r*r, H, W): ``torch.nn.functional.pixel_unshuffle``.

    In every plane::

        out[..., c*r*r + p*r + q, h, w] = input[..., c, h*r + p, w*r + q]        0 <= p, q < r

    which is space_to_depth with the channel first ("CRD"), in NCHW order.

    Parameters
    ----------
    input : torch.Tensor, shape (..., C, H*r, W*r)
        Any dtype, any strides, on the CPU (or without memory: meta, fake); at least 3 dimensions.
    downscale_factor : int
        The block, r, at least 1.

    Returns
    -------
    torch.Tensor
        A fresh tensor of the dtype of `input`, shape (..., C*r*r, H, W); channels_last where `input` is (or is a slice
        of such a tensor), else contiguous.

    Raises
    ------
    TypeError
        As for `pixel_shuffle`.
    ValueError
        Fewer than 3 dimensions, a factor below 1, a height or width that it does not divide.
    MemoryError
        No memory for the result.

    See Also
    --------
    pixel_shuffle : the inverse
    space_to_depth : other orders and layouts

    Notes
    -----
    As for `pixel_shuffle`. Of an input without elements PyTorch's kernel (not its fake one) gives the shape of the
    input; here it is that of the rule. The gradient is `pixel_shuffle`.

    References
    ----------
    PyTorch ``torch.nn.functional.pixel_unshuffle``, ``torch.nn.PixelUnshuffle``.

    Examples
    --------
    >>> import torch
    >>> from s2dq.compat.torch import pixel_unshuffle
    >>> pixel_unshuffle(torch.arange(8, dtype=torch.int8).reshape(1, 1, 2, 4), 2).flatten(2)
    tensor([[[0, 2],
             [1, 3],
             [4, 6],
             [5, 7]]], dtype=torch.int8)
    """
    if torch.compiler.is_compiling():
        factor = _traced_integer("downscale_factor", downscale_factor)
    else:
        (factor,) = _check_pixel("pixel_unshuffle", False, input, downscale_factor).arguments
    return torch.ops.s2dq.pixel_unshuffle(input, factor)


def space_to_depth(
    x: Tensor, block_size: Blocks, data_format: str = "NHWC", *, mode: str = "DCR", out_format: str | None = None,
    vect: SupportsIndex = 4, channels: SupportsIndex | None = None, paddings: Pairs | None = None,
    pad_value: Any = None,
) -> Tensor:  # fmt: skip
    """Move spatial blocks of a tensor into the channel dimension: `s2dq.space_to_depth` for tensors.

    For NHWC and DCR::

        out[n, i, j, (p*bW + q)*C + c] = x[n, i*bH + p, j*bW + q, c]        0 <= p < bH, 0 <= q < bW

    Parameters
    ----------
    x : torch.Tensor, shape (N, H, W, C) or as `data_format` says
        Any dtype, any strides, on the CPU (or without memory: meta, fake).
    block_size : int or sequence of int
        Edge of a block in pixels, at least 1: one for all spatial axes or one per axis.
    data_format : {"NHWC", "NCHW", "NCHW_VECT_C", "NWC", "NCW", "NDHWC", "NCDHW"}
        Axes of `x`. PyTorch's own order is NCHW, and NCHW it is with channels_last memory, too.
    mode : {"DCR", "CRD", "focus"}
        Order of the deep channels; CRD is PyTorch's.
    out_format : str, optional
        Axes of the result, any layout with as many spatial axes; by default those of `x`.
    vect : int
        Lanes of a word, when the result is NCHW_VECT_C.
    channels : int, optional
        Logical number of channels of a packed `x` whose last word is ragged.
    paddings : sequence or int array, shape (K, 2), optional
        Pixels to add before and after each spatial axis.
    pad_value : number, optional
        What the padding holds; a value the dtype can hold, by default its zero.

    Returns
    -------
    torch.Tensor
        A fresh tensor of the dtype of `x`, of the shape that `s2dq.space_to_depth` gives. From NCHW to NCHW, or NCDHW
        to NCDHW, it has the memory format of `x`; otherwise it is contiguous.

    Raises
    ------
    TypeError
        No tensor; one that is sparse, nested, quantized, MKL-DNN's, dual or on another device; another argument
        of the wrong kind. Packed to packed with elements wider than 8 bits.
    ValueError
        All that `s2dq.space_to_depth` refuses.
    MemoryError
        No memory for the result.

    See Also
    --------
    depth_to_space : the inverse
    s2dq.space_to_depth : all the details, for arrays

    Notes
    -----
    The gradient is `depth_to_space` with the paddings as crops; `pad_value` has none. In bfloat16 and float8, which
    NumPy lacks, a fake tensor's `pad_value` is not checked: the real one's is.

    References
    ----------
    As for `s2dq.space_to_depth`.

    Examples
    --------
    >>> import torch
    >>> from s2dq.compat.torch import space_to_depth
    >>> x = torch.arange(4.0, requires_grad=True)
    >>> y = space_to_depth(x.reshape(1, 1, 2, 2), 2, "NCHW")
    >>> y.flatten().tolist()
    [0.0, 1.0, 2.0, 3.0]
    >>> (y.flatten() * torch.tensor([1.0, 2.0, 3.0, 4.0])).sum().backward()
    >>> x.grad
    tensor([1., 2., 3., 4.])
    """
    arguments = (block_size, data_format, mode, out_format, vect, channels, paddings, pad_value)
    if torch.compiler.is_compiling():
        fill = None if pad_value is None else _traced_fill(x, pad_value)
        arguments = _traced_depth(*arguments[:-1], fill)
    else:
        arguments = _check_depth("space_to_depth", True, x, *arguments).arguments
    return torch.ops.s2dq.space_to_depth(x, *arguments)


def depth_to_space(
    x: Tensor, block_size: Blocks, data_format: str = "NHWC", *, mode: str = "DCR", out_format: str | None = None,
    vect: SupportsIndex = 4, channels: SupportsIndex | None = None, crops: Pairs | None = None,
) -> Tensor:  # fmt: skip
    """Move channels of a tensor out into spatial blocks: `s2dq.depth_to_space` for tensors.

    For NHWC and DCR::

        out[n, i*bH + p, j*bW + q, c] = x[n, i, j, (p*bW + q)*C + c]        0 <= p < bH, 0 <= q < bW

    Parameters
    ----------
    x : torch.Tensor, shape (N, H, W, bH*bW*C) or as `data_format` says
        Any dtype, any strides, on the CPU (or without memory: meta, fake).
    block_size : int or sequence of int
        Edge of a block in pixels, at least 1: one for all spatial axes or one per axis.
    data_format : {"NHWC", "NCHW", "NCHW_VECT_C", "NWC", "NCW", "NDHWC", "NCDHW"}
        Axes of `x`.
    mode : {"DCR", "CRD", "focus"}
        Order of the deep channels; CRD is PyTorch's.
    out_format : str, optional
        Axes of the result, any layout with as many spatial axes; by default those of `x`.
    vect : int
        Lanes of a word, when the result is NCHW_VECT_C.
    channels : int, optional
        Logical number of channels of a packed `x` whose last word is ragged.
    crops : sequence or int array, shape (K, 2), optional
        Pixels to take away before and after each spatial axis of the result.

    Returns
    -------
    torch.Tensor
        A fresh tensor of the dtype of `x`, of the shape that `s2dq.depth_to_space` gives. From NCHW to NCHW, or NCDHW
        to NCDHW, it has the memory format of `x`; otherwise it is contiguous.

    Raises
    ------
    TypeError
        As for `space_to_depth`.
    ValueError
        All that `s2dq.depth_to_space` refuses.
    MemoryError
        No memory for the result.

    See Also
    --------
    space_to_depth : the inverse
    s2dq.depth_to_space : all the details, for arrays

    Notes
    -----
    The gradient is `space_to_depth` with the crops as paddings.

    References
    ----------
    As for `s2dq.depth_to_space`.

    Examples
    --------
    >>> import torch
    >>> from s2dq.compat.torch import depth_to_space
    >>> depth_to_space(torch.arange(4).reshape(1, 4, 1, 1), 2, "NCHW", crops=[[0, 1], [0, 0]])
    tensor([[[[0, 1]]]])
    """
    arguments = (block_size, data_format, mode, out_format, vect, channels, crops)
    if torch.compiler.is_compiling():
        arguments = _traced_depth(*arguments)
    else:
        arguments = _check_depth("depth_to_space", False, x, *arguments).arguments
    return torch.ops.s2dq.depth_to_space(x, *arguments)


def space_to_batch_nd(x: Tensor, block_shape: Integers, paddings: Pairs, *, pad_value: Any = None) -> Tensor:
    """Move spatial blocks of a tensor into the batch, padding first: `s2dq.space_to_batch_nd` for tensors.

    For two block axes::

        out[(p*b2 + q)*N + n, i, j, ...] = padded[n, i*b1 + p, j*b2 + q, ...]

    Parameters
    ----------
    x : torch.Tensor, shape (N, D1, ..., DM, ...)
        Any dtype, any strides, on the CPU (or without memory: meta, fake).
    block_shape : sequence of int or int array, shape (M,)
        Block along each of the axes 1 to M, at least 1 each: ``[1, bH, bW]`` for images in PyTorch's order.
    paddings : sequence or int array, shape (M, 2)
        Elements to add before and after each of these axes, not negative.
    pad_value : number, optional
        What the padding holds; a value the dtype can hold, by default its zero.

    Returns
    -------
    torch.Tensor
        A fresh tensor of the dtype of `x`, shape
        (N*prod(block_shape), (D1 + padding)/b1, ..., (DM + padding)/bM, ...), in the memory format of `x` where
        axis 1 has a block of 1, else contiguous.

    Raises
    ------
    TypeError
        No tensor; one that is sparse, nested, quantized, MKL-DNN's, dual or on another device; another argument
        of the wrong kind.
    ValueError
        All that `s2dq.space_to_batch_nd` refuses.
    MemoryError
        No memory for the result.

    See Also
    --------
    batch_to_space_nd : the inverse
    s2dq.space_to_batch_nd : all the details, for arrays

    Notes
    -----
    The gradient is `batch_to_space_nd` with the paddings as crops; `pad_value` has none.

    References
    ----------
    TensorFlow ``tf.space_to_batch_nd``.

    Examples
    --------
    >>> import torch
    >>> from s2dq.compat.torch import space_to_batch_nd
    >>> space_to_batch_nd(torch.arange(1, 4), [], []).tolist()
    [1, 2, 3]
    >>> space_to_batch_nd(torch.arange(1, 4).reshape(1, 3), [2], [[0, 1]], pad_value=-1)
    tensor([[ 1,  3],
            [ 2, -1]])
    """
    if torch.compiler.is_compiling():
        fill = None if pad_value is None else _traced_fill(x, pad_value)
        arguments = (_traced_block("block_shape", block_shape), _traced_pairs("paddings", paddings), fill)
    else:
        arguments = _check_batch("space_to_batch_nd", True, x, block_shape, paddings, pad_value).arguments
    return torch.ops.s2dq.space_to_batch_nd(x, *arguments)


def batch_to_space_nd(x: Tensor, block_shape: Integers, crops: Pairs) -> Tensor:
    """Move batch entries of a tensor back into spatial blocks, then crop: `s2dq.batch_to_space_nd` for tensors.

    For two block axes, before the crops::

        out[n, i*b1 + p, j*b2 + q, ...] = x[(p*b2 + q)*N + n, i, j, ...]

    Parameters
    ----------
    x : torch.Tensor, shape (prod(block_shape)*N, D1, ..., DM, ...)
        Any dtype, any strides, on the CPU (or without memory: meta, fake).
    block_shape : sequence of int or int array, shape (M,)
        Block along each of the axes 1 to M, at least 1 each.
    crops : sequence or int array, shape (M, 2)
        Elements to take away before and after each of these axes of the result, not negative.

    Returns
    -------
    torch.Tensor
        A fresh tensor of the dtype of `x`, shape (N, D1*b1 - crops, ..., DM*bM - crops, ...), in the memory format of
        `x` where axis 1 has a block of 1, else contiguous.

    Raises
    ------
    TypeError
        As for `space_to_batch_nd`.
    ValueError
        All that `s2dq.batch_to_space_nd` refuses.
    MemoryError
        No memory for the result.

    See Also
    --------
    space_to_batch_nd : the inverse
    s2dq.batch_to_space_nd : all the details, for arrays

    Notes
    -----
    The gradient is `space_to_batch_nd` with the crops as paddings.

    References
    ----------
    TensorFlow ``tf.batch_to_space``.

    Examples
    --------
    >>> import torch
    >>> from s2dq.compat.torch import batch_to_space_nd
    >>> batch_to_space_nd(torch.tensor([[1, 3], [2, 4]]), [2], [[0, 1]])
    tensor([[1, 2, 3]])
    """
    if torch.compiler.is_compiling():
        arguments = (_traced_block("block_shape", block_shape), _traced_pairs("crops", crops))
    else:
        arguments = _check_batch("batch_to_space_nd", False, x, block_shape, crops).arguments
    return torch.ops.s2dq.batch_to_space_nd(x, *arguments)


def pack_vect_c(x: Tensor, data_format: str = "NCHW", *, vect: SupportsIndex = 4, pad_value: Any = 0) -> Tensor:
    """Pack channels of a tensor into words of `vect` lanes: `s2dq.pack_vect_c` for tensors.

    For each channel::

        out[n, c // V, h, w, c % V] = x[n, c, h, w]

    Parameters
    ----------
    x : torch.Tensor, shape (N, C, H, W) or (N, H, W, C)
        Any dtype, any strides, on the CPU (or without memory: meta, fake).
    data_format : {"NCHW", "NHWC"}
        Axes of `x`.
    vect : int
        Lanes of a word, V, at least 1.
    pad_value : number
        What spare lanes hold; a value the dtype can hold. The default is raw zero.

    Returns
    -------
    torch.Tensor
        A fresh contiguous tensor of the dtype of `x`, shape (N, ceil(C/V), H, W, V).

    Raises
    ------
    TypeError
        No tensor; one that is sparse, nested, quantized, MKL-DNN's, dual or on another device; another argument
        of the wrong kind.
    ValueError
        All that `s2dq.pack_vect_c` refuses.
    MemoryError
        No memory for the result.

    See Also
    --------
    unpack_vect_c : the inverse
    s2dq.pack_vect_c : all the details, for arrays

    Notes
    -----
    The gradient is `unpack_vect_c` with the channels of `x`; `pad_value` has none.

    References
    ----------
    As for `s2dq.pack_vect_c`.

    Examples
    --------
    >>> import torch
    >>> from s2dq.compat.torch import pack_vect_c
    >>> pack_vect_c(torch.arange(1, 7, dtype=torch.int8).reshape(1, 6, 1, 1))[0, :, 0, 0]
    tensor([[1, 2, 3, 4],
            [5, 6, 0, 0]], dtype=torch.int8)
    """
    if torch.compiler.is_compiling():
        arguments = (data_format, _traced_integer("vect", vect), _traced_fill(x, pad_value))
    else:
        arguments = _check_pack("pack_vect_c", x, data_format, vect, pad_value).arguments
    return torch.ops.s2dq.pack_vect_c(x, *arguments)


def unpack_vect_c(x: Tensor, data_format: str = "NCHW", *, channels: SupportsIndex | None = None) -> Tensor:
    """Unpack words of channels of a tensor, the inverse of `pack_vect_c`: `s2dq.unpack_vect_c` for tensors.

    For each channel::

        out[n, c, h, w] = x[n, c // V, h, w, c % V]        0 <= c < channels

    Parameters
    ----------
    x : torch.Tensor, shape (N, words, H, W, V)
        Any dtype, any strides, on the CPU (or without memory: meta, fake).
    data_format : {"NCHW", "NHWC"}
        Axes of the result.
    channels : int, optional
        Logical number of channels, by default ``words*V``. It must need all the words.

    Returns
    -------
    torch.Tensor
        A fresh contiguous tensor of the dtype of `x`, shape (N, channels, H, W) or (N, H, W, channels).

    Raises
    ------
    TypeError
        As for `pack_vect_c`.
    ValueError
        All that `s2dq.unpack_vect_c` refuses.
    MemoryError
        No memory for the result.

    See Also
    --------
    pack_vect_c : the inverse
    s2dq.unpack_vect_c : all the details, for arrays

    Notes
    -----
    The gradient is `pack_vect_c` with spare lanes of zero.

    References
    ----------
    As for `s2dq.pack_vect_c`.

    Examples
    --------
    >>> import torch
    >>> from s2dq.compat.torch import unpack_vect_c
    >>> unpack_vect_c(torch.tensor([[1, 2, 3, 4], [5, 6, 0, 0]]).reshape(1, 2, 1, 1, 4), channels=6).flatten()
    tensor([1, 2, 3, 4, 5, 6])
    """
    if torch.compiler.is_compiling():
        arguments = (data_format, None if channels is None else _traced_integer("channels", channels))
    else:
        arguments = _check_unpack("unpack_vect_c", x, data_format, channels).arguments
    return torch.ops.s2dq.unpack_vect_c(x, *arguments)

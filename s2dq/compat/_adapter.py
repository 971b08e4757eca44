"""What the adapters share: an operator under another system's name, and the tensors they take."""

from typing import Any, Self

import numpy as np

from s2dq._validate import Caller, Door, batch_call, depth_call, show
from s2dq.operators import Operation
from s2dq.quantized import QuantizedTensor


class Names(Caller):
    """An adapter's function and its names for what s2dq calls x, block_size, block_shape, crops and data_format."""

    names: dict[str, str | None]

    def __new__(cls, function: str, **names: str | None) -> Self:
        self = super().__new__(cls, function)
        self.names = names
        return self

    def argument(self, name: str) -> str | None:
        return self.names.get(name, name)


class NamesWithBatch(Names):
    """Of vectors that begin with an entry for the batch; begins and ends of crops are two of them."""

    def block_shape(self, block: tuple[int, ...]) -> Any:
        return (1, *block)

    def block_entry(self, i: int) -> str:
        return f"block_shape[{i + 1}]"

    def crop(self, i: int, start: Any, end: Any) -> str:
        return f"crops_begin[{i + 1}] {show(start)} and crops_end[{i + 1}] {show(end)}"


class NamesWithoutChannels(Names):
    """Of blocks along H and W, where channels come first: they have a block of their own here, and none there."""

    def block_shape(self, block: tuple[int, ...]) -> Any:
        return block[1:]

    def block_entry(self, i: int) -> str:
        return f"block_shape[{i - 1}]"


class NamesOfOneBlock(Names):
    """Of a number that is the block of all axes; the argument has one of two names."""

    def block_shape(self, block: tuple[int, ...]) -> Any:
        return block[0]

    def block_entry(self, i: int) -> str:
        return str(self.argument("block_shape"))


class Depth:
    """space_to_depth (`to_depth`) or depth_to_space under `name`, which its messages begin with."""

    def __init__(self, name: Caller, to_depth: bool) -> None:
        self.name = name
        self._memo = Operation(depth_call, name, to_depth).memo

    def __call__(self, x: Any, block_size: Any, data_format: Any, mode: str = "DCR") -> np.ndarray:
        return self._memo.call(x, None, None, (block_size, data_format, mode, None, 4, None, None, None))


class Batch:
    """space_to_batch_nd (`to_batch`) or batch_to_space_nd under `name`, which its messages begin with."""

    def __init__(self, name: Caller, to_batch: bool) -> None:
        self.name = name
        self._memo = Operation(batch_call, name, to_batch).memo

    def __call__(self, x: Any, block_shape: Any, pairs: Any) -> np.ndarray:
        return self._memo.call(x, None, None, (block_shape, pairs, None))


def plain_array(door: Door, argument: str, value: Any) -> np.ndarray:
    """A tensor of a system whose tensors do not carry their quantization."""
    if isinstance(value, QuantizedTensor):
        rule = f"{argument} must be an array: this system's tensors carry no scale and zero point"
        door.refuse(TypeError, f"{rule}; give {argument}.values")
    return door.array(value, argument)


def check_rank(door: Door, argument: str, array: np.ndarray, rank: int, axes: str) -> None:
    """Refuse an array that has not exactly `rank` dimensions."""
    if array.ndim != rank:
        door.refuse(ValueError, f"{argument} must have {rank} dimensions ({axes}), not {array.ndim}")

"""What the adapters share: an operator under another system's name, and the tensors they take."""

import numpy as np

from s2dq._validate import Door, batch_call, depth_call
from s2dq.operators import Operation
from s2dq.quantized import QuantizedTensor


class Depth:
    """space_to_depth (`to_depth`) or depth_to_space under `name`, which its messages begin with."""

    def __init__(self, name: str, to_depth: bool):
        self.name = name
        self._memo = Operation(depth_call, name, to_depth).memo

    def __call__(self, x, block_size, data_format, mode="DCR"):
        return self._memo.call(x, None, None, (block_size, data_format, mode, None, 4, None, None, None))


class Batch:
    """space_to_batch_nd (`to_batch`) or batch_to_space_nd under `name`, which its messages begin with."""

    def __init__(self, name: str, to_batch: bool):
        self.name = name
        self._memo = Operation(batch_call, name, to_batch).memo

    def __call__(self, x, block_shape, pairs):
        return self._memo.call(x, None, None, (block_shape, pairs, None))


def plain_array(door: Door, argument: str, value) -> np.ndarray:
    """A tensor of a system whose tensors do not carry their quantization."""
    if isinstance(value, QuantizedTensor):
        rule = f"{argument} must be an array: this system's tensors carry no scale and zero point"
        door.refuse(TypeError, f"{rule}; give {argument}.values")
    return door.array(value, argument)


def check_rank(door: Door, argument: str, array: np.ndarray, rank: int, axes: str) -> None:
    """Refuse an array that has not exactly `rank` dimensions."""
    if array.ndim != rank:
        door.refuse(ValueError, f"{argument} must have {rank} dimensions ({axes}), not {array.ndim}")

"""Rearrange tensors for quantized edge models: space_to_depth and its relatives in every layout and order."""

from typing import Any

from s2dq import compat, interop, kernels, models, reference
from s2dq._threads import get_num_threads, set_num_threads, show_config
from s2dq.operators import (
    batch_to_space,
    batch_to_space_nd,
    depth_to_space,
    pack_vect_c,
    space_to_batch,
    space_to_batch_nd,
    space_to_depth,
    unpack_vect_c,
)
from s2dq.preprocess import Postprocessor, Preprocessor
from s2dq.quantized import QuantizedTensor, dequantize, quantize, requantize

__version__ = "0.1.0"

__all__ = [
    "Postprocessor",
    "Preprocessor",
    "QuantizedTensor",
    "batch_to_space",
    "batch_to_space_nd",
    "compat",
    "depth_to_space",
    "dequantize",
    "get_num_threads",
    "interop",
    "kernels",
    "models",
    "pack_vect_c",
    "quantize",
    "reference",
    "requantize",
    "set_num_threads",
    "show_config",
    "space_to_batch",
    "space_to_batch_nd",
    "space_to_depth",
    "unpack_vect_c",
]


def __getattr__(name: str) -> Any:
    if name == "dask":  # not before it is asked for: it imports Dask
        from importlib import import_module

        return import_module("s2dq.dask")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

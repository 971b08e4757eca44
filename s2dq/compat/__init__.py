"""The operators under the names, argument orders, defaults and rules of other systems.

`s2dq.compat.onnx`, `openvino`, `nnapi`, `tensorflow` (and its `v1`) take arrays and give NumPy arrays;
`s2dq.compat.torch` takes and gives tensors. Each is loaded when it is first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from s2dq.compat import nnapi, onnx, openvino, tensorflow, torch

__all__ = ["nnapi", "onnx", "openvino", "tensorflow", "torch"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return import_module(f"s2dq.compat.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__

"""ONNX: SpaceToDepth and DepthToSpace, opsets 1, 11, 13 and 28, as functions and for ONNX's reference evaluator.

Tensors are NCHW. Opset 1 has DCR alone (without calling it so); DepthToSpace has `mode` since opset 11, SpaceToDepth
since opset 28. `onnx` itself is imported by `OPS` alone.
"""

from collections.abc import Callable
from typing import Any, SupportsIndex

import numpy as np

from s2dq._typing import Viewable
from s2dq._validate import Door, guarded
from s2dq.compat._adapter import Depth, Names, check_rank, plain_array

__all__ = ["depth_to_space", "space_to_depth"]  # and OPS, which imports onnx

MODES = ("DCR", "CRD")
_WIDTHS = {"i": (1, 2, 4, 8), "u": (1, 2, 4, 8), "f": (2, 4, 8), "c": (8, 16)}  # bytes of the types ONNX lists

_to_depth = Depth(Names("compat.onnx.space_to_depth", block_size="blocksize", data_format=None), True)
_to_space = Depth(Names("compat.onnx.depth_to_space", block_size="blocksize", data_format=None), False)


def space_to_depth(x: Viewable, blocksize: SupportsIndex, mode: str = "DCR") -> np.ndarray:
    """Move blocks of an NCHW tensor into its channels: ONNX SpaceToDepth.

    Parameters
    ----------
    x : array_like, shape (N, C, H, W)
        Of a type that ONNX lists: integers of 8 to 64 bits, bool, float16, bfloat16, float32, float64, complex64,
        complex128, and strings (object arrays, NumPy's StringDType, fixed-width ones).
    blocksize : int
        Edge of a block, at least 1; H and W are multiples of it.
    mode : {"DCR", "CRD"}
        Order of the deep channels: position in the block first, or channel first (opset 28).

    Returns
    -------
    ndarray, shape (N, C*blocksize**2, H/blocksize, W/blocksize)
        A fresh array of the dtype of `x`.

    Raises
    ------
    TypeError
        An `x` that is no array or of a type that ONNX does not list; a `QuantizedTensor`; a `blocksize` that is no
        integer; a `mode` that is no str.
    ValueError
        Another rank than 4, a `blocksize` below 1 or one that does not divide H and W, another `mode`.

    See Also
    --------
    s2dq.space_to_depth : all layouts, paddings, `out`

    References
    ----------
    ONNX operators, SpaceToDepth-1, -13 and -28.

    Examples
    --------
    >>> import numpy as np
    >>> from s2dq.compat import onnx
    >>> onnx.space_to_depth(np.arange(8).reshape(1, 2, 2, 2), 2).ravel()
    array([0, 4, 1, 5, 2, 6, 3, 7])
    >>> onnx.space_to_depth(np.arange(8).reshape(1, 2, 2, 2), 2, mode="CRD").ravel()
    array([0, 1, 2, 3, 4, 5, 6, 7])
    """
    return _to_depth(*_checked(_to_depth.name, x, blocksize, mode))


def depth_to_space(x: Viewable, blocksize: SupportsIndex, mode: str = "DCR") -> np.ndarray:
    """Move channels of an NCHW tensor into blocks: ONNX DepthToSpace.

    Parameters
    ----------
    x : array_like, shape (N, C, H, W)
        Of a type that ONNX lists, as in `space_to_depth`; C is a multiple of ``blocksize**2``.
    blocksize : int
        Edge of a block, at least 1.
    mode : {"DCR", "CRD"}
        Order of the channels of `x`: position in the block first, or channel first (opset 11).

    Returns
    -------
    ndarray, shape (N, C/blocksize**2, H*blocksize, W*blocksize)
        A fresh array of the dtype of `x`.

    Raises
    ------
    TypeError
        As `space_to_depth`.
    ValueError
        Another rank than 4, a `blocksize` below 1 or whose square does not divide C, another `mode`.

    See Also
    --------
    s2dq.depth_to_space : all layouts, crops, `out`

    References
    ----------
    ONNX operators, DepthToSpace-1, -11, -13 and -28.

    Examples
    --------
    >>> import numpy as np
    >>> from s2dq.compat import onnx
    >>> onnx.depth_to_space(np.arange(8).reshape(1, 8, 1, 1), 2)[0, 0]
    array([[0, 2],
           [4, 6]])
    >>> onnx.depth_to_space(np.arange(8).reshape(1, 8, 1, 1), 2, mode="CRD")[0, 0]
    array([[0, 1],
           [2, 3]])
    """
    return _to_space(*_checked(_to_space.name, x, blocksize, mode))


@guarded
def _checked(name: str, x: Any, blocksize: Any, mode: Any) -> tuple[np.ndarray, int, str, str]:
    door = Door(name)
    array = plain_array(door, "x", x)
    if not _is_listed(array.dtype):
        door.refuse(TypeError, f"x must have an element type of ONNX's operator, not {array.dtype}")
    blocksize = door.integer("blocksize", blocksize, 1)
    mode = door.choice("mode", mode, MODES)
    array = door.settle(x, array)
    check_rank(door, "x", array, 4, "NCHW")
    return array, blocksize, "NCHW", mode


def _is_listed(dtype: np.dtype) -> bool:
    if dtype.isbuiltin == 2:
        return dtype.name == "bfloat16"
    return dtype.kind in "bOSTU" or dtype.itemsize in _WIDTHS.get(dtype.kind, ())


def __getattr__(name: str) -> Any:
    """`OPS`: operators for ``onnx.reference.ReferenceEvaluator(model, new_ops=OPS)``."""
    if name != "OPS":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from onnx.reference.op_run import OpRun

    def operator(kind: str, move: Callable[..., np.ndarray]) -> type:
        # The evaluator hands over the attributes' defaults; before `mode` there was nothing but DCR.
        def _run(self: Any, x: Any, blocksize: Any = None, mode: Any = None) -> tuple[np.ndarray]:
            return (move(x, blocksize, mode or "DCR"),)

        return type(kind, (OpRun,), {"op_domain": "", "_run": _run, "__doc__": f"ONNX {kind}, computed by s2dq."})

    globals()["OPS"] = [operator("SpaceToDepth", space_to_depth), operator("DepthToSpace", depth_to_space)]
    return globals()["OPS"]

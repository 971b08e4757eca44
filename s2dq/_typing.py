"""Types of the public arguments, as a type checker is told of them; what may pass is decided in `_validate`.

They are wider than what passes: a nested list or a dtype cannot be told from its like by its type alone.
"""

from collections.abc import Sequence
from typing import Any, Protocol, SupportsIndex, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

__all__ = ["Array", "Blocks", "DTypeLike", "Integers", "Pairs", "Real", "Reals", "Scalar", "Viewable"]


class ShowsDLPack(Protocol):
    """A tensor of another library."""

    def __dlpack__(self) -> Any: ...

    def __dlpack_device__(self) -> tuple[Any, Any]: ...


class ShowsInterface(Protocol):
    """An object that says where its elements lie."""

    @property
    def __array_interface__(self) -> dict[str, Any]: ...


Scalar = TypeVar("Scalar", bound=np.generic)  # element type of what goes in and comes out
Array = TypeVar("Array", bound="np.ndarray[Any, Any]")  # of an `out`, which is returned as it is

Viewable: TypeAlias = ArrayLike | ShowsDLPack | ShowsInterface
Integers: TypeAlias = Sequence[SupportsIndex] | NDArray[np.integer[Any]]
Blocks: TypeAlias = SupportsIndex | Integers
Pairs: TypeAlias = Sequence[Integers] | NDArray[np.integer[Any]]
Real: TypeAlias = float | np.floating[Any] | np.integer[Any]
Reals: TypeAlias = Real | Sequence[Real] | NDArray[np.floating[Any] | np.integer[Any]]

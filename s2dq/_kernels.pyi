"""Types of the compiled driver; see `_kernels.pyx`."""

from collections.abc import Callable
from typing import Any, Self, TypeAlias, TypeVar, final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer, disjoint_base

_Result = TypeVar("_Result")
_Pair: TypeAlias = tuple[NDArray[np.float32], NDArray[np.int32]]  # scales, zero points

@disjoint_base
class Program:
    """A plan in the form the driver reads: immutable, shared between threads."""

    @property
    def scratch(self) -> int: ...
    @property
    def low(self) -> int: ...
    @property
    def high(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    def __new__(cls, table: Buffer | NDArray[np.int64]) -> Self: ...
    def chosen(self) -> tuple[int, int, bool, list[tuple[int, ...]]]: ...
    def tasks(self, team: int) -> tuple[list[tuple[int, int]], int]: ...

@disjoint_base
class Lookups:
    """What the tiles of a program make of the bytes they look up: immutable, shared between threads."""

    def __new__(
        cls,
        program: Program,
        fill: bytes,
        kind: str,
        tables: Buffer | np.ndarray,
        lines: NDArray[np.int64] | None,
        first: int,
        flip: int,
    ) -> Self: ...

@final
class PreparedCall:
    """A call that Cython code can run: immutable, shared between threads."""

    @property
    def x_shape(self) -> tuple[int, ...]: ...
    @property
    def x_strides(self) -> tuple[int, ...]: ...
    @property
    def x_dtype(self) -> np.dtype[Any]: ...
    @property
    def x_low(self) -> int: ...
    @property
    def x_high(self) -> int: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def num_threads(self) -> int: ...
    @property
    def __s2dq_plan__(self) -> Any: ...  # a capsule
    def __new__(
        cls,
        x: np.ndarray,
        out: np.ndarray,
        program: Program,
        fill: bytes,
        lookups: Lookups | None,
        num_threads: int,
    ) -> Self: ...

@disjoint_base
class Seen:
    """What a call came to, for arrays of one shape, strides and dtype."""

    def __new__(
        cls,
        x: np.ndarray,
        out: np.ndarray,
        program: Program,
        fill: bytes,
        lookups: Lookups | None,
        key: tuple[Any, ...],
    ) -> Self: ...

# The result, x as it was read, out as it was written, and how.
_Checked: TypeAlias = tuple[Any, np.ndarray | None, np.ndarray | None, Program | None, bytes, Lookups | None]

@final
class Exactly:
    """A float or one of NumPy's numbers, equal to no other number but those of its type and bytes."""

    def __new__(cls, number: float | np.number[Any]) -> Self: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@disjoint_base
class Memo:
    """An operator with a memory: a call like one before goes straight to its program."""

    @property
    def calls(self) -> dict[tuple[Any, ...], tuple[Seen, ...]]: ...
    def __init__(self, check: Callable[[Any, Any, Any, tuple[Any, ...]], _Checked]) -> None: ...
    # Of arrays; of what carries more than an array, whatever `check` returned first.
    def call(self, x: Any, out: Any, num_threads: Any, arguments: tuple[Any, ...]) -> np.ndarray: ...
    def clear(self) -> None: ...

@final
class Recall:
    """A function of `Memo.call`, skipped by calls like the last one on an array of this shape."""

    def __new__(cls, function: Callable[..., Any], memo: Memo) -> Self: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __get__(self, instance: Any, owner: type | None = None, /) -> Any: ...

def run(
    program: Program,
    x: np.ndarray,
    out: np.ndarray,
    fill: Buffer,
    lookups: Lookups | None,
    num_threads: int,
) -> None: ...
def convert(
    x: np.ndarray,
    out: np.ndarray,
    source: _Pair | None,
    target: _Pair | None,
    along: tuple[int, int, int],
    num_threads: int,
) -> None: ...
def staged(
    program: Program,
    fill: bytes,
    source: np.dtype[Any],
    target: np.dtype[Any],
    tables: Buffer | np.ndarray,
    rescale: float,
    mean: NDArray[np.float32],
    std: NDArray[np.float32],
    scale: float,
    zero: int,
) -> Lookups: ...
def recent_place(x: np.ndarray) -> int: ...
def shift_of(done: int, tasks: int, nbytes: int, team: int) -> tuple[int, int, int]: ...
def tasks_of_shift(tasks: int, nbytes: int, nanoseconds: int) -> int: ...
def team_of(nbytes: int, num_threads: int) -> int: ...
def fences_of(
    program: Program, x: np.ndarray, out: np.ndarray, fill: Buffer | np.ndarray, num_threads: int
) -> int: ...
def conversion_part(nbytes: int, width: int, team: int) -> int: ...
def get_team_limit() -> int: ...
def set_thread_cap(count: int) -> None: ...
def set_quota(count: int) -> None: ...
def set_stack_size(size: int) -> None: ...
def pretend_processors(count: int) -> None: ...
def last_team_size() -> int: ...
def build_info() -> tuple[str, int]: ...
def isa() -> str: ...
def available_isas() -> list[str]: ...
def pretend_habits(follows_streams: bool | None = None, stores_across: int | None = None) -> None: ...
def tile_means() -> tuple[bool, bool, bool, bool, bool, bool, bool, bool, bool] | None: ...
def rounding_to_nearest(function: Callable[..., _Result], *args: Any) -> _Result: ...

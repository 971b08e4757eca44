"""Types of the compiled driver; see `_kernels.pyx`."""

from collections.abc import Callable
from typing import Any

import numpy as np
from typing_extensions import Buffer

class Program:
    """A plan in the form the driver reads: immutable, shared between threads."""

    scratch: int
    nbytes: int
    def __init__(self, table: Buffer) -> None: ...

class Lookups:
    """What the tiles of a program make of the bytes they look up: immutable, shared between threads."""

    def __init__(
        self, program: Program, fill: bytes, kind: str, tables: np.ndarray, lines: np.ndarray | None, first: int,
        flip: int,
    ) -> None: ...

class Seen:
    """What a call came to, for arrays of one shape, strides and dtype."""

    def __init__(
        self, x: np.ndarray, out: np.ndarray, program: Program, fill: bytes, lookups: Lookups | None, key: tuple
    ) -> None: ...

class Memo:
    """An operator with a memory: a call like one before goes straight to its program."""

    calls: dict[tuple, tuple[Seen, ...]]
    def __init__(
        self,
        check: Callable[
            [Any, Any, Any, tuple], tuple[np.ndarray, np.ndarray, np.ndarray, Program | None, bytes, Lookups | None],
        ],
    ) -> None: ...
    def call(self, x: Any, out: Any, num_threads: Any, arguments: tuple) -> np.ndarray: ...
    def clear(self) -> None: ...

class Recall:
    """A function of `Memo.call`, skipped by calls like the last one on an array of this shape."""

    def __init__(self, function: Callable, memo: Memo) -> None: ...
    def __call__(self, *args: Any, **kwargs: Any) -> np.ndarray: ...

def run(
    program: Program, x: np.ndarray, out: np.ndarray, fill: Buffer, lookups: Lookups | None, num_threads: int
) -> None: ...
def convert(
    x: np.ndarray,
    out: np.ndarray,
    source: tuple[np.ndarray, np.ndarray] | None,
    target: tuple[np.ndarray, np.ndarray] | None,
    along: tuple[int, int, int],
    num_threads: int,
) -> None: ...
def get_team_limit() -> int: ...
def set_thread_cap(count: int) -> None: ...
def set_quota(count: int) -> None: ...
def set_stack_size(size: int) -> None: ...
def pretend_processors(count: int) -> None: ...
def last_team_size() -> int: ...
def build_info() -> tuple[str, int]: ...
def isa() -> str: ...
def available_isas() -> list[str]: ...
def tile_means() -> tuple[bool, bool, bool, bool, bool] | None: ...
def rounding_to_nearest(function: Callable, *args: Any) -> Any: ...
def staged(
    program: Program, fill: bytes, source: np.dtype, target: np.dtype, tables: np.ndarray, rescale: float,
    mean: np.ndarray, std: np.ndarray, scale: float, zero: int,
) -> Lookups: ...

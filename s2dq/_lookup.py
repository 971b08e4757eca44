"""Lookup tables of bytes, and the cheaper ways to the same values.

No instruction set but one looks 64 bytes up in 256 at once, and that one only in a quarter of them. But a table that
quantizes is a line, rounded, with ends; and a line is a multiplication and an addition of 16 bits. `lookup_of` searches
for the constants and checks them against the table for all 256 values, so that whoever uses them gets the table's
values, every bit of them.
"""

from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np

_LEVELS = np.arange(256)
_SHIFTS = 8
_LESS = tuple(range(32, 256, 32))  # tried: parts of a step, where a slope alone is too coarse
_SLOPES = 4096  # tried for a table, at most
_COARSE = 32  # slopes from one to the next, in the first of the tries
_TRIES = 2000  # lines computed for it


class Lookup(NamedTuple):
    """Tables, and how to do without them.

    `kind` is "flip" where all tables turn the bits of `flip`; "line" where turning the bits of `first`, a line for each
    of them, and turning the bits of `flip` gives the table's value for every byte; else "table".
    """

    kind: str
    tables: np.ndarray  # bytes, 256 of each table, read-only
    lines: np.ndarray  # (tables, 4): the fields of `s2dq_line` in `_micro/tile.h`
    first: int
    flip: int


class Line(NamedTuple):
    """The fields of `s2dq_line` in `_micro/tile.h`."""

    slope: int
    more: int
    less: int
    shift: int


def lookup_of(tables: np.ndarray) -> Lookup:
    """The best way through tables of shape (count, 256), of 8-bit values."""
    return _best(tables.tobytes())


@lru_cache(maxsize=64)
def _best(table_bytes: bytes) -> Lookup:
    """The search for something cheaper than a table takes longer than many a tensor."""
    flat = np.frombuffer(table_bytes, np.uint8)
    tables = flat.reshape(-1, 256)
    no_lines = np.zeros((len(tables), 4), np.int64)
    # Not np.unique: its C++ waits for the GIL where no exception may pass, so that a thread which the interpreter ends
    # there ends the process.
    flips = tables ^ _LEVELS.astype(np.uint8)
    if (flips == flips[0, 0]).all():
        return Lookup("flip", flat, no_lines, 0, int(flips[0, 0]))
    for first, flip in product((0, 128), repeat=2):  # the order of values without a sign, and of those with one
        lines = lines_of([table[_LEVELS ^ first] ^ np.uint8(flip) for table in tables])
        if lines:
            return Lookup("line", flat, np.array(lines, np.int64), first, flip)
    return Lookup("table", flat, no_lines, 0, 0)


def lines_of(tables: list[np.ndarray]) -> list[Line]:
    """Lines that give the values of the tables, all with the same shift; none where one of them is not found."""
    if any((np.diff(table.astype(np.int64)) < 0).any() for table in tables):
        return []
    for shift in range(_SHIFTS):
        lines = []
        for table in tables:
            line = line_of(table, shift)
            if line is None:
                break
            lines.append(line)
        else:
            return lines
    return []


def line_of(table: np.ndarray, shift: int) -> Line | None:
    """A line of this shift that gives the values of `table`, which rise, or None where none is found."""
    values = table.astype(np.int64)
    if values[0] == values[-1]:
        return Line(0, (int(values[0]) << 8 - shift) + _saturating(shift), 0, shift)
    between = np.flatnonzero((values > values[0]) & (values < values[-1]))
    if len(between) < 2:
        return None
    first, last = between[0], between[-1]
    one = 1 << 16 - shift
    slope = max((values[last] - values[first]) / (last - first), 1e-9) * one
    doubt = 1.5 * one / (last - first)
    if slope - doubt >= 65536:
        return None
    slopes = _slopes(slope, doubt)
    for some in (slopes[::_COARSE], slopes):  # most tables leave room for many
        line = _rising(values, some, 0, shift) or _falling(values, some, shift)
        if line:
            return line
    lines = (_rising(values, slopes, less, shift) for less in _LESS)
    return next((line for line in lines if line), None)


def _saturating(shift: int) -> int:
    """What words are short of 65535 where the values shifted out of them are 255."""
    return 65536 - (65536 >> shift)


def _slopes(slope: float, doubt: float) -> np.ndarray:
    """Slopes worth trying."""
    near = min(doubt, _SLOPES / 2)
    return np.arange(max(1, int(slope - near)), min(65535, int(slope + near) + 1) + 1)


def _words(values: np.ndarray, shift: int) -> tuple[np.ndarray, np.ndarray]:
    """What words lie between before they are shifted; ends are open, there they saturate."""
    low = np.where(values > 0, values << 8 - shift, -(2**31))
    high = np.where(values < 255, (values + 1 << 8 - shift) - 1, 2**31)
    return low, high


def _rising(values: np.ndarray, slopes: np.ndarray, less: int, shift: int) -> Line | None:
    """A line that adds something behind its slope."""
    risen = np.maximum(_LEVELS * 256 - less, 0) * slopes[:, np.newaxis] >> 16
    low, high = _words(values, shift)
    least = np.maximum((low - risen).max(axis=1), 0)
    most = (high - risen).min(axis=1)
    fits = least <= most
    return _first_right(values, [(at, more, less, shift) for at, more in zip(slopes[fits], least[fits])])


def _falling(values: np.ndarray, slopes: np.ndarray, shift: int) -> Line | None:
    """A line that takes something off before its slope; it begins at zero."""
    if values[0]:
        return None
    low, high = _words(values, shift)
    factor = slopes[:, np.newaxis] / 65536
    # Without rounding down: (v * 256 - less) * factor reaches `low` and stays below the next of `high`.
    most = (_LEVELS * 256 - low / factor).min(axis=1)
    least = (_LEVELS * 256 - (high + 1) / factor).max(axis=1)
    tries = [
        (at, 0, less, shift)
        for at, start, stop in zip(slopes, np.ceil(least), np.floor(most))
        for less in range(max(0, int(start)), min(65535, int(stop), int(start) + 3) + 1)
    ]
    return _first_right(values, tries)


def _first_right(values: np.ndarray, tries: list[tuple[int, int, int, int]]) -> Line | None:
    """The first of the lines ``(slope, more, less, shift)`` that gives all values; `more` up to where it saturates."""
    for slope, more, less, shift in tries[:_TRIES]:
        line = Line(int(slope), int(more) + _saturating(shift), int(less), shift)
        if np.array_equal(values_of(line), values):
            return line
    return None


def values_of(line: Line) -> np.ndarray:
    """What a line gives for every byte, as the kernels compute it."""
    value = np.maximum(_LEVELS * 256 - line.less, 0)
    value = np.minimum((value * line.slope >> 16) + line.more, 65535)
    levels: np.ndarray = value >> 8 - line.shift & 255
    return levels

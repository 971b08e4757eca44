"""Lookup tables of bytes, and the cheaper ways to the same values.

No instruction set but one looks 64 bytes up in 256 at once, and that one only in a quarter of them. But a table that
quantizes is a line, rounded, with ends; and a line is a multiplication and an addition of 16 bits. `lookup_of` searches
for the constants and checks them against the table for all 256 values, so that whoever uses them gets the table's
values, every bit of them.
"""

from itertools import product
from typing import NamedTuple

import numpy as np

_LEVELS = np.arange(256)
_ONE = 256  # what a step of the table's values is in words of 16 bits
_DOUBLINGS = 3
_SLOPES = 4096  # tried for a table, at most
_TRIES = 2000  # lines computed for it


class Lookup(NamedTuple):
    """Tables, and how to do without them.

    `kind` is "flip" where all tables turn the bits of `flip`; "line" where turning the bits of `first`, a line for each
    of them, and turning the bits of `flip` gives the table's value for every byte; else "table".
    """

    kind: str
    tables: np.ndarray  # bytes, 256 of each table, read-only
    lines: np.ndarray  # (tables, 5): the fields of `s2dq_line` in `_micro/tile.h`
    first: int
    flip: int


class Line(NamedTuple):
    """The fields of `s2dq_line` in `_micro/tile.h`."""

    slope: int
    more: int
    less: int
    wide: int
    doublings: int


def lookup_of(tables: np.ndarray) -> Lookup:
    """The best way through tables of shape (count, 256), of 8-bit values."""
    table_bytes = np.ascontiguousarray(tables).view(np.uint8).reshape(-1, 256)
    flat = table_bytes.reshape(-1).copy()
    flat.flags.writeable = False
    no_lines = np.zeros((len(table_bytes), 5), np.int64)
    flips = np.unique(table_bytes ^ _LEVELS.astype(np.uint8))
    if len(flips) == 1:
        return Lookup("flip", flat, no_lines, 0, int(flips[0]))
    for first, flip in product((0, 128), repeat=2):  # the order of values without a sign, and of those with one
        lines = [line_of(table[_LEVELS ^ first] ^ np.uint8(flip)) for table in table_bytes]
        if all(line is not None for line in lines):
            return Lookup("line", flat, np.array(lines, np.int64), first, flip)
    return Lookup("table", flat, no_lines, 0, 0)


def line_of(table: np.ndarray) -> Line | None:
    """A line that gives the values of `table`, or None where none is found."""
    values = table.astype(np.int64)
    if (np.diff(values) < 0).any():
        return None
    if values[0] == values[-1]:
        return Line(0, int(values[0]) * _ONE, 0, 0, 0)
    between = np.flatnonzero((values > values[0]) & (values < values[-1]))
    if len(between) < 2:
        return None
    first, last = between[0], between[-1]
    steep = max((values[last] - values[first]) / (last - first), 1e-9)
    for doublings in range(_DOUBLINGS + 1):
        slope, doubt = steep * 65536 / 2**doublings, 1.5 * 65536 / 2**doublings / (last - first)
        if slope - doubt < 2 * 65536:
            line = _rising(values, slope, doubt, doublings) or _falling(values, slope, doubt, doublings)
            if line:
                return line
    return None


def _slopes(slope: float, doubt: float) -> np.ndarray:
    """Slopes worth trying, in units of 1/65536, up to 2."""
    near = min(doubt, _SLOPES / 2)
    return np.arange(max(1, int(slope - near)), min(2 * 65536 - 1, int(slope + near) + 1) + 1)


def _levels(values: np.ndarray, doublings: int) -> tuple[np.ndarray, np.ndarray]:
    """What is doubled lies from one to the other; ends are open, there it saturates."""
    low = np.where(values > 0, -(-values * _ONE >> doublings), -(2**31))
    high = np.where(values < 255, ((values + 1) * _ONE - 1) >> doublings, 2**31)
    return low, high


def _rising(values, slope, doubt, doublings) -> Line | None:
    """A line that adds something behind its slope."""
    slopes = _slopes(slope, doubt)
    risen = _LEVELS * 256 * slopes[:, np.newaxis] >> 16
    low, high = _levels(values, doublings)
    least, most = np.maximum((low - risen).max(axis=1), 0), np.minimum((high - risen).min(axis=1), 65535)
    fits = least <= most
    return _first_right(values, [(at, more, 0, doublings) for at, more in zip(slopes[fits], least[fits])])


def _falling(values, slope, doubt, doublings) -> Line | None:
    """A line that takes something off before its slope; it begins at zero."""
    if values[0]:
        return None
    slopes = _slopes(slope, doubt)
    low, high = _levels(values, doublings)
    factor = slopes[:, np.newaxis] / 65536
    # Without rounding down: (v * 256 - less) * factor reaches `low` and stays below the next of `high`.
    most = (_LEVELS * 256 - low / factor).min(axis=1)
    least = (_LEVELS * 256 - (high + 1) / factor).max(axis=1)
    tries = [
        (at, 0, less, doublings)
        for at, start, stop in zip(slopes, np.ceil(least), np.floor(most))
        for less in range(max(0, int(start)), min(65535, int(stop), int(start) + 3) + 1)
    ]
    return _first_right(values, tries)


def _first_right(values: np.ndarray, tries: list[tuple[int, int, int, int]]) -> Line | None:
    """The first of the lines ``(slope, more, less, doublings)`` that gives all values."""
    for slope, more, less, doublings in tries[:_TRIES]:
        wide, part = divmod(int(slope), 65536)
        line = Line(part, int(more), int(less), wide, doublings)
        if np.array_equal(values_of(line), values):
            return line
    return None


def values_of(line: Line) -> np.ndarray:
    """What a line gives for every byte, as the kernels compute it."""
    value = np.maximum(_LEVELS * 256 - line.less, 0)
    value = np.minimum((value * line.slope >> 16) + line.wide * value, 65535)
    value = np.minimum(value + line.more, 65535)
    for _ in range(line.doublings):
        value = np.minimum(2 * value, 65535)
    return value >> 8

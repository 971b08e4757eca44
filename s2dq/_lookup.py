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


def lookup_of(tables: np.ndarray) -> Lookup:
    """The best way through tables of shape (count, 256), of 8-bit values."""
    table_bytes = np.ascontiguousarray(tables).view(np.uint8).reshape(-1, 256)
    flat = table_bytes.reshape(-1).copy()
    flat.flags.writeable = False
    no_lines = np.zeros((len(table_bytes), 4), np.int64)
    flips = np.unique(table_bytes ^ _LEVELS.astype(np.uint8))
    if len(flips) == 1:
        return Lookup("flip", flat, no_lines, 0, int(flips[0]))
    for first, flip in product((0, 128), repeat=2):  # the order of values without a sign, and of those with one
        lines = [line_of(table[_LEVELS ^ first] ^ np.uint8(flip)) for table in table_bytes]
        if all(line is not None for line in lines):
            return Lookup("line", flat, np.array(lines, np.int64), first, flip)
    return Lookup("table", flat, no_lines, 0, 0)


def line_of(table: np.ndarray) -> tuple[int, int, int, int] | None:
    """``(slope, more, less, doublings)`` of a line that gives the values of `table`, or None where none does."""
    values = table.astype(np.int64)
    if (np.diff(values) < 0).any():
        return None
    if values[0] == values[-1]:
        return 0, int(values[0]) * _ONE, 0, 0
    between = np.flatnonzero((values > values[0]) & (values < values[-1]))
    if len(between) < 2:
        return None
    first, last = between[0], between[-1]
    steep = max((values[last] - values[first]) / (last - first), 1e-9)
    for doublings in range(max(0, int(np.ceil(np.log2(steep)))), _DOUBLINGS + 1):
        line = _fitting(values, steep * 65536 / 2**doublings, 1.5 * 65536 / 2**doublings / (last - first), doublings)
        if line:
            return line
    return None


def _fitting(values, slope, doubt, doublings):
    """A line of a slope near `slope` that fits all values."""
    least, most = max(1, int(slope - min(doubt, _SLOPES / 2))), min(65535, int(slope + min(doubt, _SLOPES / 2)) + 1)
    slopes = np.arange(least, most + 1)
    if not len(slopes):
        return None
    risen = _LEVELS * 256 * slopes[:, np.newaxis] >> 16
    # What is doubled lies from `low` on and not beyond `high`; ends are open, there it saturates.
    low = np.where(values > 0, -(-values * _ONE >> doublings), -(2**31))
    high = np.where(values < 255, ((values + 1) * _ONE - 1) >> doublings, 2**31)
    lowest, highest = (low - risen).max(axis=1), (high - risen).min(axis=1)
    fits = np.flatnonzero(lowest <= highest)
    if not len(fits):
        return None
    rising = fits[highest[fits] >= 0]  # kernels leave out a step where no line of a tile takes anything off
    best = int((rising if len(rising) else fits)[0])
    offset = min(max(0, int(lowest[best])), 65535) if len(rising) else int(highest[best])
    line = (int(slopes[best]), max(0, offset), max(0, -offset), doublings)
    return line if np.array_equal(values_of(line), values) else None


def values_of(line: tuple[int, int, int, int]) -> np.ndarray:
    """What a line gives for every byte, as the kernels compute it."""
    slope, more, less, doublings = line
    value = np.maximum(np.minimum((_LEVELS * 256 * slope >> 16) + more, 65535) - less, 0)
    for _ in range(doublings):
        value = np.minimum(2 * value, 65535)
    return value >> 8

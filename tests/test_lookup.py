"""Tables and the cheaper ways to their values: every one of them for every byte."""

import numpy as np
import pytest

from s2dq._lookup import Line, Lookup, lines_of, lookup_of, values_of

BYTES = np.arange(256, dtype=np.uint8)


def values_by(lookup: Lookup) -> np.ndarray:
    """What kernels make of every byte, in Python's integers, by the words of `_micro/tile.h`."""
    if lookup.kind == "table":
        return lookup.tables.reshape(-1, 256)
    if lookup.kind == "flip":
        return np.repeat([BYTES ^ np.uint8(lookup.flip)], len(lookup.lines), axis=0)
    made = np.empty((len(lookup.lines), 256), np.uint8)
    for line, row in zip(lookup.lines.tolist(), made):
        slope, more, less, shift = line
        for byte in range(256):
            start = max(0, (byte ^ lookup.first) * 256 - less)
            word = min(65535, (start * slope >> 16) + more)
            row[byte] = word >> (8 - shift) & 255 ^ lookup.flip
    return made


def quantizing(rng, dtype):
    """A table as models have them: mostly steps of about a level, and some that saturate."""
    info = np.iinfo(dtype)
    mean, std = rng.uniform(0, 0.7), rng.uniform(0.1, 0.5)
    full = max(mean, 1 - mean) / std
    scale = rng.choice([full / 127, 1 / std / 255, 1 / std / 255 * rng.uniform(0.3, 3)])
    zero = rng.integers(info.min, info.max + 1)
    steps = np.rint((np.arange(256) / 255 - mean) / std / scale)
    return np.clip(steps + zero, info.min, info.max).astype(dtype)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("count", [1, 3])
def test_tables_that_quantize_are_lines(rng, dtype, count):
    kinds = []
    for _ in range(60):
        tables = np.stack([quantizing(rng, dtype) for _ in range(count)])
        lookup = lookup_of(tables)
        np.testing.assert_array_equal(values_by(lookup), tables.view(np.uint8))
        assert lookup.lines.dtype == np.int64 and (lookup.lines >= 0).all() and (lookup.lines <= 65535).all()
        assert len(set(lookup.lines[:, 3])) == 1 and (lookup.lines[:, 3] <= 7).all()
        assert (lookup.tables == tables.view(np.uint8).reshape(-1)).all()
        kinds.append(lookup.kind)
    assert kinds.count("line") >= 57, kinds


@pytest.mark.parametrize("turned", [0, 128, 255, 1])
def test_tables_that_turn_bits(turned):
    table = BYTES ^ np.uint8(turned)
    assert lookup_of(np.stack([table, table]))[0::4] == ("flip", turned)
    other = lookup_of(np.stack([table, BYTES[::-1] ^ np.uint8(7)]))
    assert (other.kind, other.first, other.flip) == ("table", 0, 0)


def test_signed_bytes_are_lines_too(rng):
    """Requantizing int8: the index is the byte's bit pattern."""
    order = BYTES.view(np.int8).astype(np.float64)
    for scale in rng.uniform(0.4, 1.9, 30):
        table = np.clip(np.rint(order * scale) + 5, -128, 127).astype(np.int8)
        lookup = lookup_of(table[np.newaxis])
        np.testing.assert_array_equal(values_by(lookup)[0], table.view(np.uint8))
        assert lookup.kind == "line" and lookup.first == 128


@pytest.mark.parametrize("table", [BYTES[::-1], np.where(BYTES > 99, 255, 0), BYTES * np.uint8(3), BYTES // 100])
def test_what_is_no_line_stays_a_table(table):
    table = table.astype(np.uint8)
    lines = lines_of([table])
    lookup = lookup_of(table[np.newaxis])
    np.testing.assert_array_equal(values_by(lookup)[0], table)
    assert (lookup.kind == "line") == bool(lines) or lookup.kind == "flip"


@pytest.mark.parametrize("flip, line", [
    (0, (53648, 52290, 0, 1)), (0, (42565, 32768, 22177, 1)),  # of the first slopes tried, then of all of them
    (128, (32954, 33918, 32, 1)), (0, (30329, 32776, 192, 0)),  # by less than a step, in the first try and the sixth
])  # fmt: skip
def test_the_first_line_that_fits_is_taken(flip, line):
    lookup = lookup_of(values_of(Line(*line)).astype(np.uint8)[np.newaxis] ^ np.uint8(flip))
    assert (lookup.kind, lookup.first, lookup.flip, lookup.lines.tolist()) == ("line", 0, flip, [list(line)])


def test_constant_tables_are_lines():
    for value in (0, 1, 127, 128, 255):
        lookup = lookup_of(np.full((1, 256), value, np.uint8))
        assert lookup.kind == "line"
        np.testing.assert_array_equal(values_by(lookup)[0], value)

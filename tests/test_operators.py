"""Every operator over combinations of everything it takes, against both oracles.

`all_pairs` makes a short list of cases in which every pair of values of two parameters meets; layout,
out_format and mode count as one parameter, so every triple of these meets every value of the others.
"""

import ctypes
import gc
import os
import re
import sys
import time
from contextlib import contextmanager
from functools import partial, wraps
from itertools import combinations, product
from math import gcd, prod
from operator import attrgetter, methodcaller
from pathlib import Path

import numpy as np
import pytest

import loops
import s2dq
import s2dq.reference
from checker import ARRANGEMENTS, both_oracles, bytes_of, check, sample
from s2dq import _kernels

try:
    import ml_dtypes
except ModuleNotFoundError:  # there is no wheel of it for every machine
    ml_dtypes = None

OPERATORS = ("space_to_depth", "depth_to_space", "space_to_batch_nd", "batch_to_space_nd",
             "space_to_batch", "batch_to_space", "pack_vect_c", "unpack_vect_c")
MODES = ("DCR", "CRD", "focus")
LAYOUTS = {1: ("NWC", "NCW"), 2: ("NHWC", "NCHW", "NCHW_VECT_C"), 3: ("NDHWC", "NCDHW")}
PACKED = "NCHW_VECT_C"
DTYPES = {"int8": "i1", "uint8": "u1", "int16": "i2", "float32": "f4", "float64": "f8", "complex128": "c16",
          "3 bytes": "V3", "S3": "S3", "6 bytes": [("a", "<i2"), ("b", "<i4")]}
NUMBERS = ("int8", "uint8", "int16", "float32", "float64", "complex128")


# --- all pairs


def all_pairs(parameters, allowed=lambda row: True):
    """Rows (dicts of parameter -> value) in which every allowed pair of values of two parameters meets.

    Greedy and without chance: a row starts from the first pair still missing and takes, parameter by
    parameter, the value that brings most missing pairs. `allowed` judges rows that are not complete yet, too.
    """
    order = list(parameters)
    missing = {((a, v), (b, w)): None for a, b in combinations(order, 2)
               for v, w in product(parameters[a], parameters[b]) if allowed({a: v, b: w})}
    rows = []
    while missing:
        row = dict(next(iter(missing)))
        for name in order:
            if name not in row:
                values = [v for v in parameters[name] if allowed({**row, name: v})]
                turn = len(rows) % len(values)  # so that ties do not always go to the first value
                brings = [sum(pair(name, v, other, row, order) in missing for other in row) for v in values]
                row[name] = values[max(range(len(values)), key=lambda i: (brings[i], i == turn))]
        for a, b in combinations(order, 2):
            missing.pop(((a, row[a]), (b, row[b])), None)
        rows.append(row)
    return rows


def pair(name, value, other, row, order):
    """The key of (name, value) with what the row holds for `other`."""
    one, two = (name, value), (other, row[other])
    return (one, two) if order.index(name) < order.index(other) else (two, one)


def uncovered(parameters, rows, allowed=lambda row: True):
    """Pairs of values that are allowed and meet in no row."""
    return [(a, v, b, w) for a, b in combinations(parameters, 2)
            for v, w in product(parameters[a], parameters[b])
            if allowed({a: v, b: w}) and not any(row[a] == v and row[b] == w for row in rows)]


# --- the depth operators


BLOCKS = {1: (1, 2, 3, (3,)), 2: (1, 2, 3, (2, 3), (3, 1)), 3: (1, 2, (1, 2, 3), (3, 1, 2))}
MARGINS = ("none", "zero", "start", "end", "both", "over", "under", "all")
MEMORY = tuple(ARRANGEMENTS)


def depth_parameters(dims):
    return {
        "formats": list(product(LAYOUTS[dims], (None, *LAYOUTS[dims]), MODES)),
        "memory": MEMORY,
        "dtype": tuple(DTYPES),
        "margins": MARGINS,
        "vect": (4, 1, 2, 8, 16, 32) if dims == 2 else (4,),
        "lanes": (1, 2, 4, 8, 16, 32) if dims == 2 else (4,),
        "block": BLOCKS[dims],
        "count": ("one", "few", "more"),
        "pad_value": ("default", "zero", "seven"),
        "given_as": ("list", "tuple", "int32", "int64"),
        "num_threads": (None, 1, 2),
        "operator": ("space_to_depth", "depth_to_space"),
        "batch": (1, 2),
        "cells": ("row", "square"),
    }


def depth_allowed(row):
    layout, out_format, _ = row.get("formats", ("", "", ""))
    packed_to_packed = layout == PACKED and out_format in (None, PACKED)
    if packed_to_packed and row.get("dtype") not in (None, "int8", "uint8"):
        return False  # words are moved whole, and only words of bytes exist
    return number_pads_numbers(row)


def number_pads_numbers(row):
    return row.get("pad_value", "default") == "default" or row.get("dtype", "int8") in NUMBERS


def depth_case(row):
    """Shape and arguments of a row: the sizes follow from the block, so that every row is legal."""
    layout, out_format, mode = row["formats"]
    dims = next(d for d, layouts in LAYOUTS.items() if layout in layouts)
    block = loops.per_dimension(row["block"], dims)
    cells = {"row": (1, 1, 3), "square": (2, 1, 2)}[row["cells"]][-dims:]
    cells = tuple(c + 1 for c in cells) if dims == 1 else cells
    pairs = margin_pairs(row["margins"], [c * b for c, b in zip(cells, block, strict=True)])

    arguments = {"data_format": layout, "mode": mode, "out_format": out_format, "vect": row["vect"],
                 "num_threads": row["num_threads"]}
    arguments["block_size"] = row["block"] if isinstance(row["block"], int) else given(row["block"], row)
    extents = cells
    if row["operator"] == "space_to_depth":
        extents = [c * b - sum(p) for c, b, p in zip(cells, block, pairs, strict=True)]
        arguments |= {"paddings": None if row["margins"] == "none" else given(pairs, row), **padding(row)}
        count = shallow_count(row)
    else:
        arguments |= {"crops": None if row["margins"] == "none" else given(pairs, row)}
        count = deep_count(row, prod(block))
    if layout == PACKED:
        words, arguments["channels"] = count
        return (row["batch"], words, *extents, row["lanes"]), arguments
    return loops.shape_in(layout, row["batch"], extents, count, 0), arguments


def shallow_count(row):
    """Channels of the source; of a packed one its words and `channels=`."""
    lanes = row["lanes"]
    if row["formats"][0] != PACKED:
        return {"one": 1, "few": 3, "more": 5}[row["count"]]
    return {"one": (1, None), "few": (1, max(1, lanes - 1)), "more": (2, lanes + 1)}[row["count"]]


def deep_count(row, volume):
    """Channels of the source, divisible as the mode asks; of a packed one its words and `channels=`."""
    (layout, out_format, _), lanes = row["formats"], row["lanes"]
    shallow = {"one": 1, "few": 3, "more": 5}[row["count"]]
    if layout != PACKED:
        return shallow * volume
    if out_format in (None, PACKED):  # words are divisible
        ragged = volume * lanes - volume
        channels = {"one": None, "few": volume * lanes, "more": ragged if volume < lanes else None}
        return volume, channels[row["count"]]
    if row["count"] == "one":  # all lanes are channels, and these are divisible
        return volume // gcd(volume, lanes), None
    return -(-shallow * volume // lanes), shallow * volume


def margin_pairs(kind, totals):
    """[start, end] per dimension: "over" and "under" leave one element, "all" nothing of the first dimension."""
    start, end = {"none": (0, 0), "zero": (0, 0), "start": (1, 0), "end": (0, 1), "both": (1, 2), "all": (0, 1),
                  "over": (99, 0), "under": (0, 99)}[kind]
    pairs = []
    for total in totals:
        left = min(start, total - 1)
        pairs.append([left, min(end, total - 1 - left)])
    if kind == "all" and totals:
        pairs[0] = [1, totals[0] - 1]
    return pairs


def given(values, row):
    """The same numbers as a list, tuple or array."""
    if row["given_as"] in ("int32", "int64"):
        return np.array(values, row["given_as"])
    kind = {"list": list, "tuple": tuple}[row["given_as"]]
    return kind(kind(v) if isinstance(v, list | tuple) else v for v in values)


def padding(row):
    return {"default": {}, "zero": {"pad_value": 0}, "seven": {"pad_value": 7}}[row["pad_value"]]


DEPTH_ROWS = [row for dims in LAYOUTS for row in all_pairs(depth_parameters(dims), depth_allowed)]


# --- the batch operators


BATCH_PARAMETERS = {
    "memory": MEMORY,
    "dtype": tuple(DTYPES),
    "margins": MARGINS,
    "dims": (0, 1, 2, 3, 4, 5),
    "block": ("ones", "twos", "mixed", "threes"),
    "rest": ((), (3,), (2, 2)),
    "pad_value": ("default", "zero", "seven"),
    "given_as": ("list", "tuple", "int32", "int64"),
    "num_threads": (None, 1, 2),
    "operator": ("space_to_batch_nd", "batch_to_space_nd", "space_to_batch", "batch_to_space"),
    "batch": (1, 2, 3),
    "cells": ("row", "square"),
}


def batch_case(row):
    block = {"ones": (1, 1, 1, 1, 1), "twos": (2, 2, 2, 2, 2), "mixed": (2, 3, 1, 2, 1),
             "threes": (3, 1, 2, 1, 3)}[row["block"]][:row["dims"]]
    cells = {"row": (3, 1, 1, 1, 1), "square": (2, 2, 1, 1, 2)}[row["cells"]][:row["dims"]]
    pairs = margin_pairs(row["margins"], [c * b for c, b in zip(cells, block, strict=True)])
    arguments = {"block_shape": given(block, row), "num_threads": row["num_threads"]}
    pairs_given = given(pairs, row) if pairs else np.zeros((0, 2), np.int64)
    if row["operator"].startswith("space"):
        extents = [c * b - sum(p) for c, b, p in zip(cells, block, pairs, strict=True)]
        return (row["batch"], *extents, *row["rest"]), arguments | {"paddings": pairs_given, **padding(row)}
    return (row["batch"] * prod(block), *cells, *row["rest"]), arguments | {"crops": pairs_given}


BATCH_ROWS = all_pairs(BATCH_PARAMETERS, number_pads_numbers)


# --- packing


PACK_PARAMETERS = {
    "memory": MEMORY,
    "dtype": tuple(DTYPES),
    "vect": (4, 1, 2, 3, 8, 16, 32),
    "count": ("one", "word", "ragged", "nearly two", "unknown"),
    "space": ((2, 3), (1, 1), (1, 5), (4, 1)),
    "pad_value": ("default", "zero", "seven"),
    "num_threads": (None, 1, 2),
    "operator": ("pack_vect_c", "unpack_vect_c"),
    "data_format": ("NCHW", "NHWC"),
    "batch": (1, 2),
}


def pack_case(row):
    vect = row["vect"]
    count = {"one": 1, "word": vect, "ragged": vect + 1, "nearly two": max(1, 2 * vect - 1),
             "unknown": 2 * vect}[row["count"]]
    arguments = {"data_format": row["data_format"], "num_threads": row["num_threads"]}
    if row["operator"] == "pack_vect_c":
        shape = loops.shape_in(row["data_format"], row["batch"], row["space"], count, 0)
        return shape, arguments | {"vect": vect, **padding(row)}
    shape = loops.shape_in(PACKED, row["batch"], row["space"], count, vect)
    return shape, arguments | {"channels": None if row["count"] == "unknown" else count}


PACK_ROWS = all_pairs(PACK_PARAMETERS, number_pads_numbers)


# --- the combinations


CASES = [(row, depth_case) for row in DEPTH_ROWS] + [(row, batch_case) for row in BATCH_ROWS] + [
    (row, pack_case) for row in PACK_ROWS]


def case_name(number, row):
    formats = (str(part) for part in row.get("formats", ()))
    return "-".join([str(number), row["operator"], *formats, row["dtype"].replace(" ", "_"), row["memory"]])


@pytest.mark.parametrize(("row", "case"), [
    pytest.param(row, case, id=case_name(number, row)) for number, (row, case) in enumerate(CASES)])
def test_operator_over_all_pairs(row, case, rng):
    shape, arguments = case(row)
    check(getattr(s2dq, row["operator"]), shape, DTYPES[row["dtype"]], arguments,
          both_oracles(row["operator"]), rng=rng, arrange=ARRANGEMENTS[row["memory"]])


@pytest.mark.parametrize(("parameters", "rows", "allowed"), [
    pytest.param(depth_parameters(1), DEPTH_ROWS, depth_allowed, id="depth-1d"),
    pytest.param(depth_parameters(2), DEPTH_ROWS, depth_allowed, id="depth-2d"),
    pytest.param(depth_parameters(3), DEPTH_ROWS, depth_allowed, id="depth-3d"),
    pytest.param(BATCH_PARAMETERS, BATCH_ROWS, number_pads_numbers, id="batch"),
    pytest.param(PACK_PARAMETERS, PACK_ROWS, number_pads_numbers, id="pack")])
def test_rows_cover_all_pairs(parameters, rows, allowed):
    if "formats" in parameters:  # the rows of one number of dimensions
        rows = [row for row in rows if row["formats"] in parameters["formats"]]
    assert uncovered(parameters, rows, allowed) == []
    assert uncovered(parameters, rows[1:], allowed), "nothing is ever found missing"


def test_rows_cover_every_triple_of_formats_with_both_operators():
    seen = {(row["operator"], *row["formats"]) for row in DEPTH_ROWS}
    wanted = {(operator, layout, out_format, mode) for operator in ("space_to_depth", "depth_to_space")
              for layouts in LAYOUTS.values() for layout in layouts for out_format in (None, *layouts)
              for mode in MODES}
    assert len(wanted) == 2 * 3 * (2 * 3 + 3 * 4 + 2 * 3)
    assert seen == wanted


STRADDLING = list(product(((2, 2), (3, 1), (1, 2)), (1, 2, 3, 5, 6), (2, 3, 4, 8), ("none", "both", "over", "under")))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("layout", "out_format"), [
    ("NHWC", PACKED), ("NCHW", PACKED), (PACKED, "NHWC"), (PACKED, "NCHW"), (PACKED, PACKED)])
@pytest.mark.parametrize("operator", ["space_to_depth", "depth_to_space"])
def test_depth_operator_where_words_straddle_blocks(operator, layout, out_format, mode, rng):
    """Every way a word can end inside the digits of the deep channel, under every way to pad or crop."""
    for block, count, lanes, margins in STRADDLING:
        cells, volume = (2, 3), prod(block)
        pairs = margin_pairs(margins, [c * b for c, b in zip(cells, block)])
        arguments = {"block_size": block, "data_format": layout, "out_format": out_format, "mode": mode, "vect": lanes}
        if operator == "space_to_depth":
            extents = [c * b - sum(p) for c, b, p in zip(cells, block, pairs)]
            shape = loops.shape_in(layout, 1, extents, count, 4)
            arguments |= {"paddings": pairs, "channels": count if layout == PACKED else None}
        elif layout == out_format:  # whole words on both sides
            shape = (1, volume, *cells, count)
            arguments |= {"crops": pairs}
        else:
            shape = loops.shape_in(layout, 1, cells, count * volume, lanes)
            arguments |= {"crops": pairs, "channels": count * volume if layout == PACKED else None}
        check(getattr(s2dq, operator), shape, "u1", arguments, getattr(s2dq.reference, operator), rng=rng)


# --- empty tensors


def empty_cases():
    """Every operator and layout with a zero extent in every position where there may be one."""
    for layout in ("NWC", "NCW", "NHWC", "NCHW", PACKED, "NDHWC", "NCDHW"):
        dims = next(d for d, layouts in LAYOUTS.items() if layout in layouts)
        full = {"space_to_depth": loops.shape_in(layout, 2, (4,) * dims, 3, 4),
                "depth_to_space": loops.shape_in(layout, 2, (2,) * dims, 2**dims * 4, 4)}
        for operator, out_format in product(full, LAYOUTS[dims]):
            for shape in with_one_zero(full[operator], keep=(4,) if layout == PACKED else ()):
                yield operator, shape, {"block_size": 2, "data_format": layout, "out_format": out_format}
    for shape in with_one_zero((2, 4, 2, 3)):
        yield "space_to_batch_nd", shape, {"block_shape": [2, 1], "paddings": [[0, 0], [0, 0]]}
        yield "space_to_batch_nd", shape, {"block_shape": [2, 1], "paddings": [[1, 1], [1, 0]]}
    for shape in with_one_zero((4, 4, 2, 3)):
        yield "batch_to_space_nd", shape, {"block_shape": [2, 2], "crops": [[0, 0], [0, 0]]}
    for data_format in ("NCHW", "NHWC"):
        for shape in with_one_zero((2, 3, 4, 5)):
            yield "pack_vect_c", shape, {"data_format": data_format}
        for shape in with_one_zero((2, 3, 4, 5, 4), keep=(4,)):
            yield "unpack_vect_c", shape, {"data_format": data_format}
    s2d = {"block_size": 2}
    yield "space_to_depth", (1, 0, 4, 3), s2d | {"paddings": [[1, 1], [0, 0]], "pad_value": 9}
    yield "space_to_depth", (1, 0, 0, 3), s2d | {"paddings": [[2, 2], [1, 3]], "out_format": "NCHW"}
    yield "space_to_depth", (1, 0, 2, 3), s2d | {"paddings": [[2, 2], [0, 0]], "out_format": PACKED}
    yield "depth_to_space", (1, 1, 2, 4), {"block_size": 2, "crops": [[2, 0], [0, 0]]}
    yield "batch_to_space_nd", (4, 1, 2, 3), {"block_shape": [2, 2], "crops": [[1, 1], [4, 0]]}
    yield "space_to_batch_nd", (1, 0, 0), {
        "block_shape": [2, 3], "paddings": [[1, 1], [0, 3]], "pad_value": 9}


def with_one_zero(shape, keep=()):
    """The shape with each axis in turn emptied, and all of them at once."""
    places = [axis for axis in range(len(shape)) if axis not in keep]
    for chosen in [*((axis,) for axis in places), places]:
        yield tuple(0 if axis in chosen else extent for axis, extent in enumerate(shape))


@pytest.mark.parametrize(("operator", "shape", "arguments"), list(empty_cases()))
def test_operator_on_empty_tensor(operator, shape, arguments, rng):
    for dtype in ("i1", "f4") if not packed_to_packed(arguments) else ("i1",):
        check(getattr(s2dq, operator), shape, dtype, arguments, both_oracles(operator), rng=rng)


@pytest.mark.parametrize("operator", ["space_to_depth", "pack_vect_c", "space_to_batch_nd"])
def test_empty_tensor_of_huge_elements_costs_nothing(operator):
    """Fill values of a gigabyte each were made for no element, which took 14 seconds."""
    arguments = {"space_to_depth": (2,), "pack_vect_c": (), "space_to_batch_nd": ([2, 2], [[0, 0], [2, 0]])}[operator]
    x = np.zeros((0, 2, 2, 1), f"V{2**30}")
    began = time.monotonic()
    assert getattr(s2dq, operator)(x, *arguments).size == 0
    assert time.monotonic() - began < 2 * float(os.environ.get("S2DQ_TEST_PATIENCE", "1"))


def packed_to_packed(arguments):
    return arguments.get("data_format") == arguments.get("out_format", PACKED) == PACKED


def cut_lines():
    """Lines whose edges cut blocks, in planes of which several are moved together, and in none that are."""
    for block, (lo, hi) in product((2, 3, 4), ((0, 1), (1, 0), (5, 3))):
        width = 50 * block  # of the whole line
        arguments = {"block_size": block, "data_format": "NCHW", "mode": "CRD"}
        yield "depth_to_space", (2, 3 * block**2, 20, 50), arguments | {"crops": [[1, 2], [lo, hi]]}
        yield "space_to_depth", (2, 3, 20 * block - 3, width - lo - hi), arguments | {
            "paddings": [[1, 2], [lo, hi]], "pad_value": 7}
        yield "batch_to_space_nd", (2 * block, 200, 50), {
            "block_shape": [1, block], "crops": [[0, 1], [lo, hi]]}
        yield "space_to_batch_nd", (3, 40, width - lo - hi, 3), {
            "block_shape": [1, block], "paddings": [[0, 0], [lo, hi]], "pad_value": 7}


@pytest.mark.parametrize(("operator", "shape", "arguments"), list(cut_lines()))
def test_operator_cuts_lines(operator, shape, arguments, rng):
    for dtype, threads in (("i1", 1), ("i2", 3)):
        check(getattr(s2dq, operator), shape, dtype, {**arguments, "num_threads": threads},
              getattr(s2dq.reference, operator), rng=rng)


# --- element types


ELEMENT_TYPES = {
    **{name: name for name in (
        "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
        "float16", "float32", "float64", "longdouble", "complex64", "complex128", "clongdouble",
        "S1", "S5", "S70", "U1", "U4", "V0",
        "datetime64[ns]", "datetime64[D]", "timedelta64[s]", ">i2", ">f8", ">c8", ">U2")},
    **{name: getattr(ml_dtypes, name) for name in (
        "bfloat16", "int4", "uint4", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")
       if ml_dtypes},
    "struct of 3": [("r", "u1"), ("g", "u1"), ("b", "u1")],
    "struct of 6": [("a", "<i2"), ("b", "<i4")],
    "struct with array": [("a", "u1"), ("b", "<i4", (2,))],
    "struct with object": [("a", "u1"), ("b", object)],
    "object": object,
    "StringDType": np.dtypes.StringDType(),
}
SMALL_CASES = {
    "space_to_depth": ((1, 3, 4, 3), {"block_size": 2, "paddings": [[1, 0], [0, 0]], "out_format": PACKED}),
    "depth_to_space": ((1, 8, 2, 2), {"block_size": 2, "data_format": "NCHW", "crops": [[0, 1], [1, 0]]}),
    "space_to_batch_nd": ((2, 3, 4, 2), {"block_shape": [2, 2], "paddings": [[1, 0], [2, 0]]}),
    "batch_to_space_nd": ((8, 2, 2, 2), {"block_shape": [2, 2], "crops": [[0, 1], [1, 0]]}),
    "space_to_batch": ((2, 6), {"block_shape": [3], "paddings": [[0, 0]]}),
    "batch_to_space": ((6, 2), {"block_shape": [3], "crops": [[0, 0]]}),
    "pack_vect_c": ((1, 5, 2, 3), {"vect": 4}),
    "unpack_vect_c": ((1, 2, 2, 3, 4), {"channels": 5, "data_format": "NHWC"}),
}


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("dtype", ELEMENT_TYPES.values(), ids=ELEMENT_TYPES)
def test_operator_moves_every_element_type(operator, dtype, rng):
    shape, arguments = SMALL_CASES[operator]
    for memory in ("C", "negative"):
        check(getattr(s2dq, operator), shape, dtype, arguments, both_oracles(operator), rng=rng,
              arrange=ARRANGEMENTS[memory])


@pytest.mark.parametrize("operator", OPERATORS)
def test_operator_moves_elements_of_every_width(operator, rng):
    shape, arguments = SMALL_CASES[operator]
    for width in (*range(1, 41), 47, 48, 63, 64, 65, 100, 127, 128, 129):
        check(getattr(s2dq, operator), shape, f"V{width}", arguments, getattr(s2dq.reference, operator), rng=rng,
              arrange=ARRANGEMENTS["crop"])


@pytest.mark.parametrize("operator", OPERATORS)
def test_operator_counts_references(operator):
    shape, arguments = SMALL_CASES[operator]
    items = [object() for _ in range(prod(shape))]
    x = np.array(items, object).reshape(shape)
    resting = [sys.getrefcount(item) for item in items]
    result = getattr(s2dq, operator)(x, **arguments)
    moved = loops_moves(operator, x, arguments)
    assert [sys.getrefcount(item) for item in items] == [
        count + (id(item) in moved) for count, item in zip(resting, items, strict=True)]

    evicted = object()
    alone = sys.getrefcount(evicted)
    out = np.full(result.shape, evicted, object)
    getattr(s2dq, operator)(x, out=out, **arguments)
    assert sys.getrefcount(evicted) == alone
    del result, out
    assert [sys.getrefcount(item) for item in items] == resting


def loops_moves(operator, x, arguments):
    """Ids of the objects that the operator keeps."""
    return set(map(id, getattr(loops, operator)(x, **arguments).ravel().tolist()))


PADDED_VALUES = [("i1", -128), ("i1", np.int64(5)), ("i1", 3.0), ("u1", 255), ("i2", -300), (">i4", 7),
                 ("u8", 2**64 - 1), ("f2", 0.1), ("f4", 1e-3), ("f8", -0.0), ("f4", float("nan")),
                 ("f4", float("inf")), ("c8", 1 + 2j), ("bool", True)]
if ml_dtypes:
    PADDED_VALUES += [(ml_dtypes.bfloat16, 0.5), (ml_dtypes.int4, -3)]


@pytest.mark.parametrize(("dtype", "value"), PADDED_VALUES, ids=repr)
@pytest.mark.parametrize("operator", ["space_to_depth", "space_to_batch_nd", "pack_vect_c"])
def test_operator_pads_with_typed_value(operator, dtype, value, rng):
    shape, arguments = SMALL_CASES[operator]
    arguments = {**arguments, "pad_value": value}
    x = sample(shape, np.dtype(dtype), rng)
    expected = both_oracles(operator)(x, **arguments)
    result = getattr(s2dq, operator)(x, **arguments)
    np.testing.assert_array_equal(bytes_of(result), bytes_of(expected), strict=True)
    stored = bytes_of(np.array([value]).astype(dtype))[0]
    assert (bytes_of(result) == stored).all(axis=-1).any(), "nothing was padded"


@pytest.mark.parametrize("value", [0, 7, [1, 2], None], ids=repr)
@pytest.mark.parametrize("operator", ["space_to_depth", "space_to_batch_nd", "pack_vect_c"])
def test_operator_pads_objects(operator, value):
    """Any object is one; None is the default of the operators that have paddings, and of no packing."""
    shape, arguments = SMALL_CASES[operator]
    arguments = {**arguments, "pad_value": value}
    x = np.array([object() for _ in range(prod(shape))], object).reshape(shape)
    result = getattr(s2dq, operator)(x, **arguments).ravel().tolist()
    for oracle in (getattr(loops, operator), getattr(s2dq.reference, operator)):
        expected = oracle(x, **arguments).ravel().tolist()
        assert all(one is other for one, other in zip(result, expected, strict=True))
    padding = 0 if value is None and operator != "pack_vect_c" else value
    assert any(entry is padding for entry in result), "nothing was padded"


# --- out=


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("dtype", ["i2", "f8", "c16"])
def test_operator_fills_misaligned_out(operator, dtype, rng):
    shape, arguments = SMALL_CASES[operator]
    x = sample(shape, np.dtype(dtype), rng)
    expected = both_oracles(operator)(x, **arguments)
    memory = np.full(expected.nbytes + 2, 0xA5, np.uint8)
    out = np.ndarray(expected.shape, dtype, buffer=memory, offset=1)
    assert getattr(s2dq, operator)(x, out=out, **arguments) is out
    np.testing.assert_array_equal(out, expected, strict=True)
    assert memory[0] == memory[-1] == 0xA5


@pytest.mark.parametrize("operator", OPERATORS)
def test_operator_fills_out_of_a_subclass(operator, rng):
    shape, arguments = SMALL_CASES[operator]
    x = sample(shape, np.dtype("i1"), rng)
    expected = both_oracles(operator)(x, **arguments)
    out = np.full(expected.shape, 0x5A, np.int8).view(type("Subclass", (np.ndarray,), {}))
    assert getattr(s2dq, operator)(x, out=out, **arguments) is out
    np.testing.assert_array_equal(np.asarray(out), expected, strict=True)


# --- many dimensions


MANY_BLOCKS = [((2, 1) * 6, 1, ()), ((1, 2, 1) * 4, 2, (3,)), ((1,) * 11 + (2,), 1, (2, 2)),
               ((2,) * 7, 1, (1,))]


@pytest.mark.parametrize(("block", "batch", "rest"), MANY_BLOCKS)
@pytest.mark.parametrize("padded", [False, True])
def test_batch_operators_take_many_block_dims(block, batch, rest, padded, rng):
    pairs = [[1, b - 1] if padded and b > 1 else [0, 0] for b in block]
    cells = [2 if i % 5 == 0 else 1 for i in range(len(block))]
    extents = [c * b - sum(p) for c, b, p in zip(cells, block, pairs, strict=True)]
    check(s2dq.space_to_batch_nd, (batch, *extents, *rest), "i1", {"block_shape": block, "paddings": pairs},
          both_oracles("space_to_batch_nd"), rng=rng)
    check(s2dq.batch_to_space_nd, (batch * prod(block), *cells, *rest), "i1",
          {"block_shape": block, "crops": pairs}, both_oracles("batch_to_space_nd"), rng=rng)


@pytest.mark.parametrize(("block", "margin", "rest"), [
    ((2, 1) * 6, (1, 0), ()),  # pads everywhere
    ((2, 1, 1) * 4, (1, 0), ()),
    ((2,) * 5, (1, 1), (2,)),  # of three cells the first and the last are cut: three parts a dim
    ((3,) * 3, (2, 1), (3,)),
])
@pytest.mark.parametrize("num_threads", [1, 2])
def test_batch_operators_with_margins_in_every_dim(block, margin, rest, num_threads, rng):
    pairs = [margin] * len(block)
    cells = [3 if len(block) < 6 else -(-(sum(margin) + 1) // b) for b in block]
    extents = [c * b - sum(margin) for c, b in zip(cells, block, strict=True)]
    threads = {"num_threads": num_threads}
    check(s2dq.space_to_batch_nd, (2, *extents, *rest), "f8", {"block_shape": block, "paddings": pairs} | threads,
          s2dq.reference.space_to_batch_nd, rng=rng)
    check(s2dq.batch_to_space_nd, (2 * prod(block), *cells, *rest), "f8",
          {"block_shape": block, "crops": pairs} | threads, s2dq.reference.batch_to_space_nd, rng=rng)


@pytest.mark.parametrize("dims", [33, 62])
def test_batch_operators_take_dozens_of_block_dims(dims, rng):
    """Two axes for every block dim are more than NumPy has: the loops are the only oracle."""
    block = [2 if i % 9 == 0 else 1 for i in range(dims)]
    pairs = [[1, 0] if i % 27 == 0 else [0, 0] for i in range(dims)]
    cells = [2 if i % 16 == 0 else 1 for i in range(dims)]
    extents = [c * b - sum(p) for c, b, p in zip(cells, block, pairs, strict=True)]
    check(s2dq.space_to_batch_nd, (1, *extents), "i1", {"block_shape": block, "paddings": pairs},
          loops.space_to_batch_nd, rng=rng)
    check(s2dq.batch_to_space_nd, (prod(block), *cells), "i1", {"block_shape": block, "crops": pairs},
          loops.batch_to_space_nd, rng=rng)


# --- larger tensors, against the reference alone


WIDTHS = (*range(1, 36), 47, 48, 49, 63, 64, 65, 66, 95, 127, 128, 129, 130, 255, 257)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("layout", "out_format"), list(product(("NHWC", "NCHW"), ("NHWC", "NCHW", PACKED))))
@pytest.mark.parametrize("operator", ["space_to_depth", "depth_to_space"])
def test_depth_operator_on_rows_of_every_width(operator, layout, out_format, mode, rng):
    for width, (block, count) in product(WIDTHS, ((2, 3), (3, 1))):
        cells = (2, width)
        deep = operator == "depth_to_space"
        extents = cells if deep else [block * cell for cell in cells]
        shape = loops.shape_in(layout, 1, extents, count * block**2 if deep else count, 0)
        check_values_only(operator, shape, "u1", {"block_size": block, "data_format": layout, "mode": mode,
                                                  "out_format": out_format}, rng)


@pytest.mark.parametrize("dtype", ["u1", "u2", "u4", "u8"])
@pytest.mark.parametrize("vect", [4, 8, 32])
@pytest.mark.parametrize("data_format", ["NCHW", "NHWC"])
def test_packing_of_rows_of_every_width(data_format, vect, dtype, rng):
    for width, count in product(WIDTHS, (3, vect, vect + 1)):
        shape = loops.shape_in(data_format, 1, (1, width), count, 0)
        x = check_values_only("pack_vect_c", shape, dtype, {"data_format": data_format, "vect": vect}, rng)
        check_values_only("unpack_vect_c", x.shape, dtype,
                          {"data_format": data_format, "channels": count}, rng)


@pytest.mark.parametrize("dtype", ["u1", "u2", "u4", "u8"])
@pytest.mark.parametrize("rest", [(), (3,), (16,)])
def test_batch_operators_on_rows_of_every_width(rest, dtype, rng):
    for width in WIDTHS:
        check_values_only("space_to_batch_nd", (1, 2, width, *rest), dtype, {
            "block_shape": [2, 2], "paddings": [[0, 0], [1, 1 + width % 2]]}, rng)
        check_values_only("batch_to_space_nd", (4, 1, width, *rest), dtype, {
            "block_shape": [2, 2], "crops": [[0, 0], [1, width % 2]]}, rng)


def check_values_only(operator, shape, dtype, arguments, rng):
    x = sample(shape, np.dtype(dtype), rng)
    expected = getattr(s2dq.reference, operator)(x, **arguments)
    result = getattr(s2dq, operator)(x, **arguments)
    np.testing.assert_array_equal(result, expected, strict=True,
                                  err_msg=f"{operator}: shape {shape}, dtype {dtype}, {arguments}")
    return result


THREE = {"block_size": 2, "out_format": PACKED}  # words that straddle blocks of 3 channels
LARGE_CASES = [
    ("space_to_depth", (1, 4, 1500, 3), "c16", "C", THREE),
    ("space_to_depth", (1, 5, 1495, 3), "c16", "C", THREE | {"paddings": [[1, 0], [2, 3]], "mode": "CRD"}),
    ("space_to_depth", (1, 4, 4, 9001), "f8", "C", THREE),
    ("space_to_depth", (2, 3, 60, 90), "i2", "C", THREE | {"data_format": "NCHW", "vect": 32}),
    ("depth_to_space", (1, 3, 2, 750, 4), "c16", "C", {"block_size": 2, "data_format": PACKED, "out_format": "NHWC"}),
    ("depth_to_space", (1, 3, 2, 750, 4), "c16", "C", {"block_size": 2, "data_format": PACKED, "out_format": "NCHW",
                                                       "crops": [[1, 1], [3, 4]]}),
    ("space_to_depth", (1, 300, 1000, 1), "u1", "C", {"block_size": 1}),
    ("space_to_depth", (1, 300, 300, 3), "u1", "C", {"block_size": 1, "out_format": "NCHW"}),
    ("depth_to_space", (1, 3, 300, 300), "u1", "C", {"block_size": 1, "data_format": "NCHW", "out_format": "NHWC"}),
    ("space_to_depth", (1, 2, 3, 70000), "u1", "C", {"block_size": (2, 3)}),
    ("batch_to_space_nd", (6, 70000), "u2", "every_second", {"block_shape": [3], "crops": [[70, 1]]}),
    ("space_to_depth", (1, 224, 224, 3), "u1", "C", {"block_size": 2}),
    ("space_to_depth", (1, 224, 224, 3), "i1", "C", {"block_size": 2, "mode": "focus", "out_format": PACKED}),
    ("space_to_depth", (1, 224, 224, 3), "u1", "C", {"block_size": 4, "mode": "CRD", "out_format": "NCHW"}),
    ("space_to_depth", (1, 640, 640, 3), "u1", "crop", {"block_size": 2, "out_format": PACKED}),
    ("space_to_depth", (2, 111, 113, 4), "f4", "negative", {"block_size": 2, "paddings": [[1, 0], [0, 1]]}),
    ("space_to_depth", (1, 64, 56, 56), "i1", "C", {"block_size": 2, "data_format": "NCHW"}),
    ("space_to_depth", (1, 16, 56, 56, 4), "i1", "C", {"block_size": 2, "data_format": PACKED}),
    ("depth_to_space", (1, 64, 56, 56), "i1", "C", {"block_size": 2, "data_format": "NCHW"}),
    ("depth_to_space", (1, 64, 56, 56), "i1", "fortran",
     {"block_size": 2, "data_format": "NCHW", "mode": "CRD"}),
    ("depth_to_space", (1, 112, 112, 12), "u1", "C", {"block_size": 2, "crops": [[1, 0], [3, 2]]}),
    ("depth_to_space", (1, 56, 56, 64), "i2", "C", {"block_size": 2, "out_format": "NCHW"}),
    ("depth_to_space", (1, 16, 56, 56, 4), "i1", "C", {"block_size": 2, "data_format": PACKED}),
    ("space_to_batch_nd", (2, 57, 55, 32), "i1", "C", {"block_shape": [2, 2], "paddings": [[1, 0], [0, 1]]}),
    ("space_to_batch_nd", (2, 32, 56, 56), "f4", "C", {"block_shape": [1, 2, 4], "paddings": [[0, 0]] * 3}),
    ("batch_to_space_nd", (8, 28, 28, 32), "i1", "C", {"block_shape": [2, 2], "crops": [[1, 1], [0, 3]]}),
    ("batch_to_space_nd", (8, 28, 28, 3), "u1", "rolled", {"block_shape": [2, 2], "crops": [[0, 0], [0, 0]]}),
    ("pack_vect_c", (1, 67, 56, 56), "i1", "C", {"vect": 32}),
    ("pack_vect_c", (1, 224, 224, 3), "i1", "C", {"data_format": "NHWC"}),
    ("unpack_vect_c", (1, 17, 56, 56, 4), "i1", "C", {"channels": 67}),
    ("unpack_vect_c", (1, 3, 56, 56, 32), "i1", "C", {"data_format": "NHWC", "channels": 67}),
]


@pytest.mark.parametrize("num_threads", [None, 1, 2])
@pytest.mark.parametrize(("operator", "shape", "dtype", "memory", "arguments"), LARGE_CASES)
def test_operator_on_feature_map(operator, shape, dtype, memory, arguments, num_threads, rng):
    oracle = getattr(s2dq.reference, operator)
    check(getattr(s2dq, operator), shape, dtype, {**arguments, "num_threads": num_threads}, oracle, rng=rng,
          arrange=ARRANGEMENTS[memory])


@pytest.mark.parametrize(("operator", "shape", "arguments"), [
    ("space_to_depth", (12, 480, 640, 3), {"block_size": 2, "mode": "focus", "out_format": PACKED}),
    ("space_to_depth", (2, 640, 639, 3), {"block_size": 2, "paddings": [[1, 1], [0, 1]]}),
    ("depth_to_space", (4, 128, 96, 96), {"block_size": 4, "data_format": "NCHW"}),
    ("space_to_batch_nd", (3, 240, 320, 16), {"block_shape": [3, 2], "paddings": [[0, 0], [3, 1]]}),
    ("batch_to_space_nd", (12, 80, 100, 32), {"block_shape": [2, 2], "crops": [[1, 0], [0, 1]]}),
    ("pack_vect_c", (4, 30, 200, 200), {"vect": 8}),
    ("unpack_vect_c", (4, 8, 200, 200, 4), {"channels": 30, "data_format": "NHWC"}),
])
def test_operator_result_is_independent_of_threads(operator, shape, arguments, rng):
    x = sample(shape, np.dtype("i1"), rng)
    expected = getattr(s2dq.reference, operator)(x, **arguments)
    for num_threads in (1, 2, 3, None):
        out = np.full(expected.shape, 0x5A, np.int8)
        getattr(s2dq, operator)(x, **arguments, num_threads=num_threads, out=out)
        np.testing.assert_array_equal(out, expected, strict=True, err_msg=f"{num_threads=}")
        if num_threads:
            assert _kernels.last_team_size() == min(num_threads, s2dq.get_num_threads()), "not in parallel"


# --- the kernels do the work


def raising(name):
    def stub(*args, **kwargs):
        raise AssertionError(f"NumPy's {name} was called")
    return stub


ARRAY_MOVERS = ("transpose", "swapaxes", "copy", "flatten", "ravel", "take")
ARRAY_VIEWS = ("T", "mT")
FUNCTION_MOVERS = ("transpose", "copyto", "swapaxes", "moveaxis", "rollaxis", "ascontiguousarray", "copy",
                   "take", "pad")
C_MOVERS = ("Transpose", "SwapAxes", "CopyInto", "CopyAnyInto", "NewCopy", "Flatten", "Ravel", "TakeFrom")


@contextmanager
def numpy_moves_nothing():
    """Make every way to have NumPy rearrange an array fail: functions, methods, and the C interface.

    ndarray is a C type: its attributes cannot be set, but the dictionary behind them can be reached, and an
    attribute changed there is changed for compiled callers as well. Those may also call through NumPy's table
    of C functions; these entries are replaced by ones that take note and go on.
    """
    methods = gc.get_referents(np.ndarray.__dict__)[0]
    changed = {name: raising(f"ndarray.{name}") for name in ARRAY_MOVERS}
    changed |= {name: property(raising(f"ndarray.{name}")) for name in ARRAY_VIEWS}
    calls = []
    with pytest.MonkeyPatch.context() as patch, c_calls_noted(calls):
        for name in FUNCTION_MOVERS:
            patch.setattr(np, name, raising(name))
        for name, stub in changed.items():
            patch.setitem(methods, name, stub)
        forget_looked_up_methods()
        try:
            yield
        finally:
            patch.undo()
            forget_looked_up_methods()
    assert not calls, f"NumPy's {calls} called"


def forget_looked_up_methods():
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(np.ndarray))


@contextmanager
def c_calls_noted(calls):
    """Append the name of each of C_MOVERS called through NumPy's C interface to `calls`."""
    table, places = c_interface()
    original = {name: table[place] for name, place in places.items()}
    notes = {name: noting(name, address, calls) for name, address in original.items()}
    try:
        for name, place in places.items():
            table[place] = ctypes.cast(notes[name], ctypes.c_void_p).value
        yield
    finally:
        for name, place in places.items():
            table[place] = original[name]


C_FUNCTION = ctypes.PYFUNCTYPE(ctypes.c_void_p, *[ctypes.c_void_p] * 5)  # more arguments than any of them has


def noting(name, address, calls):
    def note(*arguments):
        calls.append(f"PyArray_{name}")
        return C_FUNCTION(address)(*arguments)
    return C_FUNCTION(note)


def c_interface():
    """NumPy's table of C functions, and where in it C_MOVERS are."""
    header = Path(np.get_include(), "numpy", "__multiarray_api.h").read_text(encoding="utf-8")
    places = {name: int(re.search(rf"#define PyArray_{name} .*?PyArray_API\[(\d+)\]", header, re.DOTALL)[1])
              for name in C_MOVERS}
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    start = pointer(np._core._multiarray_umath._ARRAY_API, None)
    return (ctypes.c_void_p * (1 + max(places.values()))).from_address(start), places


def without_numpy(operator):
    @wraps(operator)
    def run(x, **arguments):
        with numpy_moves_nothing():
            return operator(x, **arguments)
    return run


patches_numpy = pytest.mark.thread_unsafe(reason="changes NumPy for all threads")


@patches_numpy
@pytest.mark.parametrize(("row", "case"), [
    pytest.param(row, case, id=case_name(number, row)) for number, (row, case) in enumerate(CASES)
    if number % 4 == 0])
def test_operator_without_numpy_moving_anything(row, case, rng):
    shape, arguments = case(row)
    check(without_numpy(getattr(s2dq, row["operator"])), shape, DTYPES[row["dtype"]], arguments,
          getattr(s2dq.reference, row["operator"]), rng=rng, arrange=ARRANGEMENTS[row["memory"]])


@patches_numpy
@pytest.mark.parametrize(("operator", "shape", "dtype", "memory", "arguments"), LARGE_CASES)
def test_operator_on_feature_map_without_numpy_moving(operator, shape, dtype, memory, arguments, rng):
    x = ARRANGEMENTS[memory](sample(shape, np.dtype(dtype), rng))
    expected = getattr(s2dq.reference, operator)(x, **arguments)
    result = without_numpy(getattr(s2dq, operator))(x, **arguments)
    np.testing.assert_array_equal(result, expected, strict=True)


@patches_numpy
def test_numpy_moves_nothing_notices_every_way():
    x = np.arange(6).reshape(2, 3)
    for move in (lambda: x.T, lambda: x.mT, lambda: x.transpose(1, 0), lambda: x.swapaxes(0, 1),
                 lambda: x.copy(), lambda: x.ravel(), lambda: np.transpose(x), lambda: np.copyto(x, 1),
                 lambda: np.moveaxis(x, 0, 1), lambda: np.ascontiguousarray(x),
                 partial(methodcaller("transpose"), x), partial(attrgetter("T"), x)):  # these two call from C
        with pytest.raises(AssertionError, match="was called"), numpy_moves_nothing():
            move()
    with pytest.raises(AssertionError, match="PyArray_Transpose"), numpy_moves_nothing():
        transpose_through_the_c_interface(x)
    assert x.T.shape == np.transpose(x).shape == transpose_through_the_c_interface(x).shape == (3, 2)


def transpose_through_the_c_interface(x):
    table, places = c_interface()
    prototype = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.c_void_p)
    return prototype(table[places["Transpose"]])(x, None)

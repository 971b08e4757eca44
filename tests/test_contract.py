"""Bad arguments: one exact exception, one clear line, and nothing written; and what has to be accepted.

`GOOD` holds a call of every function that works. A row of `BAD` replaces one of its arguments and says what
comes of it. All of them are tried once more in a child with little memory, where a product that wrapped or a
shape that was not checked would be a crash.
"""

import ctypes
import fractions
import re
import sys
import threading
import time
from functools import partial
from typing import NamedTuple

import numpy as np
import pytest

import s2dq
from guarded import FLUSHES, PATIENCE, rounding_directions, run_child, subnormals_are_zero
from s2dq import reference

POISON = 0xA5


def zeros(*shape, dtype="int8"):
    return np.zeros(shape, dtype)


NO_PADDING = ((0, 0), (0, 0))
NO_DIMS = np.zeros((0, 2), int)
GOOD = {
    "space_to_depth": {"x": zeros(1, 4, 6, 3), "block_size": 2},
    "depth_to_space": {"x": zeros(1, 2, 3, 12), "block_size": 2},
    "space_to_batch_nd": {"x": zeros(2, 4, 6, 3), "block_shape": (2, 3), "paddings": NO_PADDING},
    "batch_to_space_nd": {"x": zeros(12, 2, 2, 3), "block_shape": (2, 3), "crops": NO_PADDING},
    "pack_vect_c": {"x": zeros(1, 6, 2, 3)},
    "unpack_vect_c": {"x": zeros(1, 2, 2, 3, 4)},
    "set_num_threads": {"n": 1},
}
OPERATORS = tuple(name for name in GOOD if name != "set_num_threads")
DEPTH = ("space_to_depth", "depth_to_space")
BATCH = ("space_to_batch_nd", "batch_to_space_nd")
PACKING = ("pack_vect_c", "unpack_vect_c")
PADDED = ("space_to_depth", "space_to_batch_nd", "pack_vect_c")  # the ones with a pad_value
WINDOW = {"space_to_depth": "paddings", "depth_to_space": "crops",
          "space_to_batch_nd": "paddings", "batch_to_space_nd": "crops"}


# ------------------------------------------------------------------------------------- objects that misbehave


class Raising:
    """Every method a library could call on an argument raises."""

    def _raise(self, *args, **kwargs):
        raise RuntimeError("raised by the caller's own method")

    __index__ = __int__ = __float__ = __complex__ = __len__ = __getitem__ = __iter__ = __hash__ = _raise
    __bool__ = __array__ = __dlpack__ = __dlpack_device__ = __str__ = __repr__ = __format__ = __eq__ = _raise
    __array_interface__ = __array_struct__ = ndim = shape = dtype = property(_raise)


class RaisingClass:
    """Does not even say what it is: `isinstance` raises."""

    @property
    def __class__(self):
        raise RuntimeError("no class")


class RaisingList(list):
    """A list that cannot be read."""

    def _raise(self, *args):
        raise RuntimeError("no entries")

    __iter__ = __len__ = __getitem__ = __bool__ = __repr__ = _raise
    ndim = property(_raise)


class RaisingIndex:
    def __index__(self):
        raise RuntimeError("no index")

    def __repr__(self):
        return "RaisingIndex()"


class RaisingDLPack:
    def __dlpack__(self, **kwargs):
        raise RuntimeError("no tensor")

    def __dlpack_device__(self):
        return 1, 0


class RaisingInterface:
    @property
    def __array_interface__(self):
        raise RuntimeError("no interface")


class DeviceTensor:
    """A tensor on a CUDA device: its memory must not be asked for."""

    def __dlpack__(self, **kwargs):
        raise AssertionError("the memory of a device was asked for")

    def __dlpack_device__(self):
        return 2, 0


class DaskLike:
    """What tells a Dask array. Nothing may be computed."""

    __module__ = "dask.array.core"
    shape, dtype, ndim = (1, 4, 6, 3), np.dtype("int8"), 4

    def __dask_graph__(self):
        raise AssertionError("computed behind the user's back")

    compute = __array__ = __dask_graph__


class ArrayMethodOnly:
    """`__array__` alone makes a new array of who knows what: not among what operators accept."""

    def __array__(self, dtype=None, copy=None):
        return zeros(1, 4, 6, 3)


class LongRepr:
    def __repr__(self):
        return "<line 1\n" + "long " * 1_000_000 + ">"


class BadHash(str):
    """A str that is no format, and cannot be looked up either."""

    __slots__ = ()

    def __hash__(self):
        raise RuntimeError("no hash")

    def __eq__(self, other):
        raise RuntimeError("no comparison")


class RaisingFloat(float):
    """A number that cannot be compared or converted."""

    def _raise(self, *args):
        raise RuntimeError("no number")

    __int__ = __float__ = __eq__ = __lt__ = __le__ = __gt__ = __ge__ = __trunc__ = __hash__ = __repr__ = _raise


class RaisingInt(int):
    """An int that cannot be used."""

    def _raise(self, *args):
        raise RuntimeError("no number")

    __index__ = __int__ = __float__ = __eq__ = __lt__ = __le__ = __gt__ = __ge__ = __pos__ = __repr__ = _raise
    __mul__ = __rmul__ = __add__ = __radd__ = __mod__ = __rmod__ = __hash__ = _raise


HUGE = 10**5000  # too long for str()
RECURSIVE = []
RECURSIVE.append(RECURSIVE)
DEEP = [0]
for _ in range(200):
    DEEP = [DEEP]


# ------------------------------------------------------------------------------------------ table of bad calls


class Bad(NamedTuple):
    function: str
    changes: dict  # the offending argument first
    error: type | tuple
    rule: str  # a regular expression the message has to match
    shape: bool  # the message has to give the shape of x

    def __str__(self):
        changes = (f"{name}={shown(value)}" for name, value in self.changes.items())
        return f"{self.function}({', '.join(changes)})".replace("\0", "0")


def shown(value):
    """A name for a value, whatever it is."""
    if isinstance(value, Raising):
        return "Raising()"
    if isinstance(value, np.ndarray) and value.size > 4:
        return f"{type(value).__name__}{value.shape}{value.dtype}"
    if isinstance(value, int) and abs(value) >= HUGE:
        return "HUGE" if value > 0 else "-HUGE"
    if isinstance(value, list | tuple):
        return "[...]" if value in (RECURSIVE, DEEP) else f"[{', '.join(map(shown, value))}]"
    text = re.sub(r"^<(?:.*\.)?(\w+) object at .*>$", r"\1()", repr(value))  # addresses differ from run to run
    return text if len(text) < 60 else f"{text[:40]}..."


def bad(functions, argument, error, rule, *values, shape=False, **others):
    """Rows in which `argument` takes each of `values` in turn and `others` are as given."""
    for function in (functions,) if isinstance(functions, str) else functions:
        for value in values:
            yield Bad(function, {argument: value, **others}, error, rule, shape)


INTEGER = r"\binteger"
POSITIVE = r"at least 1\b"
SEQUENCE = r"sequence|integers|array"
DIVISIBLE = r"not divisible"
RANK = r"dimensions"
TOO_LARGE = r"2\*\*63"
WRONG_KINDS = (True, False, np.True_, 2.0, np.float32(2), float("nan"), 2j, "2", b"2", object(),
               RaisingIndex(), fractions.Fraction(2))
NEGATIVE = (-1, -2, -(2**31), -(2**63), -(2**64), -HUGE, np.int64(-1))
# Counts whose squares and products wrap in 32 or 64 bits, to 0 among others.
WRAPPING = (65536, 2**29, 2**31, 15 * 2**58, 2**63 - 1, 2**63, 2**64, HUGE, (65536, 65536), (2**32, 2**32))


def bad_block_sizes():
    rows = partial(bad, DEPTH, "block_size")
    yield from rows(ValueError, POSITIVE, 0, np.int64(0), np.array(0), *NEGATIVE)
    yield from rows(ValueError, POSITIVE, (0, 2), [2, 0], (-1, -1), (-2, -2), np.array([2, -1]))
    yield from rows(TypeError, INTEGER, None, *WRONG_KINDS)
    yield from rows(TypeError, INTEGER, (2, 2.0), ("2", 2), [True, 2], (2, RaisingIndex()), (None, 2))
    yield from rows(TypeError, INTEGER, np.array([2.0, 2.0]), np.array([True, True]), np.array(2.0))
    yield from rows(ValueError, r"one per spatial axis", (), [2], (2, 2, 2), np.array([2, 2, 2]))
    yield from rows(ValueError, DIVISIBLE, *WRAPPING, shape=True)

    rows = partial(bad, BATCH, "block_shape")
    yield from rows(ValueError, POSITIVE, (0, 1), [1, 0], (-1, -1), (-2, -2), np.array([2, -1]), (-HUGE, 1))
    yield from rows(TypeError, SEQUENCE, None, 2, np.int64(2), 2.0, "22", True, object(), RaisingIndex())
    yield from rows(TypeError, INTEGER, (2, 2.0), ("2", 2), [True, 2], (2, RaisingIndex()), (None, 2))
    yield from rows(TypeError, INTEGER, np.array([2.0, 2.0]), np.array([True, True]), np.zeros(2, "m8[s]"))
    yield from rows(ValueError, r"paddings|crops", (2, 3, 1), (2,), (), np.array([2]))
    yield from rows(ValueError, DIVISIBLE, (65536, 65536), (2**29, 2**29), (15 * 2**58, 1), (2**63 - 1, 2),
                    (2**32, 2**32), (HUGE, 1), np.array([2**63, 1], np.uint64), shape=True)


def bad_windows():
    for function, window in WINDOW.items():
        rows = partial(bad, function, window)
        yield from rows(ValueError, r"at least 0\b", ((-1, 0), (0, 0)), ((0, 0), (0, -1)), ((-1, 1), (0, 0)),
                        ((0, 0), (0, -HUGE)), np.full((2, 2), -2))
        yield from rows(TypeError, INTEGER, ((0.0, 0), (0, 0)), ((0, "0"), (0, 0)), ((0, False), (0, 0)),
                        ((0, None), (0, 0)), ((0, RaisingIndex()), (0, 0)), np.zeros((2, 2)),
                        np.zeros((2, 2), bool), np.zeros((2, 2), "m8[s]"), np.full((2, 2), 0j))
        yield from rows(TypeError, SEQUENCE, 0, 1, np.int64(1), 1.0, True, "00", b"00", object())
        yield from rows(TypeError, window, Raising())
        yield from rows(ValueError, r"shape \[2, 2\]", (), ((0, 0),), ((0, 0),) * 3, ((0, 0, 0),) * 2,
                        ((0,), (0,)), ((0, 0), (0,)), np.zeros((2, 2, 1), int), NO_DIMS)
    yield from bad("space_to_batch_nd", "paddings", TypeError, SEQUENCE, None)
    yield from bad("batch_to_space_nd", "crops", TypeError, SEQUENCE, None)
    for function in ("space_to_depth", "space_to_batch_nd"):
        yield from bad(function, "paddings", ValueError, DIVISIBLE, ((1, 0), (0, 0)), ((0, 0), (0, 1)),
                       ((0, 0), (HUGE, 1)), shape=True)
    for function in ("depth_to_space", "batch_to_space_nd"):
        yield from bad(function, "crops", ValueError, r"larger than", ((3, 2), (0, 0)), ((0, 0), (0, 7)),
                       ((5, 0), (0, 0)), ((2**63, 0), (0, 0)), ((2**62, 2**62), (0, 0)),
                       ((0, 0), (HUGE, HUGE)), shape=True)


def bad_shapes():
    """Ranks, and sizes that do not divide: an empty tensor skips no check."""
    def rows(functions, rule, *shapes, **others):
        return bad(functions, "x", ValueError, rule, *(zeros(*shape) for shape in shapes), shape=True, **others)

    yield from rows("space_to_depth", DIVISIBLE, (1, 5, 6, 3), (1, 4, 5, 3), (0, 5, 6, 3), (1, 5, 0, 3),
                    (1, 5, 6, 0))
    yield from rows("depth_to_space", DIVISIBLE, (1, 2, 3, 6), (1, 2, 3, 11), (0, 2, 3, 6), (1, 0, 3, 6))
    yield from rows("depth_to_space", DIVISIBLE, (1, 3, 2, 2, 4), (1, 1, 2, 2, 4), (1, 3, 0, 2, 4),
                    data_format="NCHW_VECT_C")
    yield from rows("space_to_batch_nd", DIVISIBLE, (2, 5, 6, 3), (2, 4, 5, 3), (0, 5, 6, 3), (2, 5, 6, 0))
    yield from rows("batch_to_space_nd", DIVISIBLE, (3, 2, 2, 3), (13, 2, 2, 3), (13, 0, 2, 3), (13, 2, 2, 0))

    yield from rows(DEPTH, RANK, (), (4,), (4, 4), (4, 4, 12), (1, 4, 4, 12, 1), [1] * 64, (0,), (0, 4, 4))
    for data_format in ("NWC", "NCW", "NDHWC", "NCDHW", "NCHW_VECT_C"):
        yield from rows(DEPTH, RANK, (1, 4, 4, 12), data_format=data_format)
    yield from rows("space_to_batch_nd", RANK, (), (12,), (12, 4), (0,), (0, 4))
    yield from rows("space_to_batch_nd", RANK, (), block_shape=(), paddings=NO_DIMS)
    yield from rows("batch_to_space_nd", RANK, (), (12,), (12, 4), (0,), (0, 4))
    yield from rows("batch_to_space_nd", RANK, (), block_shape=(), crops=NO_DIMS)
    yield from rows("pack_vect_c", RANK, (), (4,), (1, 4, 4), (1, 1, 4, 4, 4))
    yield from rows("unpack_vect_c", RANK, (), (4,), (1, 4, 4, 4), (1, 1, 1, 4, 4, 4))


def bad_names():
    no_str = (0, False, b"NCHW", ["NHWC"], object())
    misspelt = ("nhwc", "NHWC ", "", "NCHW_VECT_X", "N\nHWC", "\ud800", "NHWC\0", "X" * 10**6)
    yield from bad((*DEPTH, *PACKING), "data_format", ValueError, r"one of .*NHWC", *misspelt)
    yield from bad((*DEPTH, *PACKING), "data_format", TypeError, r"\bstr\b", None, *no_str)
    yield from bad(PACKING, "data_format", ValueError, r"one of .*NHWC", "NCHW_VECT_C", "NWC", "NCW", "NDHWC",
                   "NCDHW")
    yield from bad(DEPTH, "mode", ValueError, r"one of .*DCR", "dcr", "Focus", "", "RDC", "X" * 10**6)
    yield from bad(DEPTH, "mode", TypeError, r"\bstr\b", None, *no_str)
    yield from bad(DEPTH, "out_format", ValueError, r"one of .*NHWC", *misspelt)
    yield from bad(DEPTH, "out_format", TypeError, r"\bstr\b", *no_str)
    yield from bad(DEPTH, "out_format", ValueError, r"spatial", "NWC", "NCW", "NDHWC", "NCDHW")
    yield from bad(DEPTH, "out_format", ValueError, r"spatial", "NCHW_VECT_C", "NHWC", x=zeros(1, 4, 12),
                   data_format="NWC")


def bad_packing():
    wrong_kinds = (True, 4.0, "4", object(), RaisingIndex())
    yield from bad(DEPTH, "vect", ValueError, POSITIVE, 0, -1, -HUGE, np.int64(0), out_format="NCHW_VECT_C")
    yield from bad(DEPTH, "vect", TypeError, INTEGER, None, *wrong_kinds, out_format="NCHW_VECT_C")
    yield from bad("pack_vect_c", "vect", ValueError, POSITIVE, 0, -1, -HUGE, np.int64(0))
    yield from bad("pack_vect_c", "vect", TypeError, INTEGER, None, *wrong_kinds)

    # Two words of four lanes hold five to eight channels.
    packed = {"x": zeros(1, 2, 4, 6, 4), "data_format": "NCHW_VECT_C", "out_format": "NHWC"}
    for function, others in (("unpack_vect_c", {}), ("space_to_depth", packed), ("depth_to_space", packed)):
        rows = partial(bad, function, "channels", **others)
        yield from rows(ValueError, r"at least 0", -1, -HUGE)
        yield from rows(ValueError, r"\b8\b", 0, 4, 9, 2**63, HUGE)
        yield from rows(TypeError, INTEGER, *wrong_kinds)
    yield from bad("depth_to_space", "channels", ValueError, DIVISIBLE, 6, shape=True, **packed)
    yield from bad(DEPTH, "channels", ValueError, r"contradicts", 2, 13, HUGE)

    for dtype in ("int16", "float32", "O", "S2"):  # words in and words out are for 8-bit types
        yield from bad(DEPTH, "x", TypeError, r"8-bit", zeros(1, 4, 4, 6, 4, dtype=dtype),
                       data_format="NCHW_VECT_C", shape=True)


def bad_pad_values():
    impossible = {
        "int8": (128, -129, 3.5, float("nan"), float("inf"), 2**63, HUGE, -HUGE, np.float32(0.5), np.uint8(200)),
        "uint8": (-1, 256, 1.5),
        "int64": (2**63, -(2**63) - 1, 1e19, 0.5),
        "uint64": (-1, 2**64, 2.0**64),
        "bool": (2, -1, 0.5, float("nan")),
        "float16": (70000.0, 70000, 1e300, HUGE),
        "float32": (1e39, -1e300, HUGE, 2**1024),
        "float64": (HUGE, 2**1024, np.longdouble("1e400")),
        "complex64": (1e39j, complex(1e39, 0), HUGE),
        "S3": (b"abcd",),
        "U2": ("abc",),
    }
    wrong_kinds = {
        "int8": (True, np.True_, "0", b"0", "", object(), [0], np.datetime64(0, "s"), 1j, Raising()),
        "float32": (True, "1", b"1", 1j, object(), [1.0], np.zeros(1)),
        "bool": ("True", bool, 1j),
        "complex128": (True, "1j", object()),
        "S3": ("abc", 1, True, 1.0),
        "U2": (b"ab", 1, True),
        "datetime64[s]": ("2000", True, 1.5, object(), np.timedelta64(1, "s")),
    }
    for error, table in ((ValueError, impossible), (TypeError, wrong_kinds)):
        for dtype, values in table.items():
            for function in PADDED:  # checked even where there is nothing to pad
                x = zeros(*GOOD[function]["x"].shape, dtype=dtype)
                yield from bad(function, "pad_value", error, re.escape(str(x.dtype)), *values, x=x)


def bad_thread_counts():
    for functions, argument in ((OPERATORS, "num_threads"), ("set_num_threads", "n")):
        yield from bad(functions, argument, ValueError, POSITIVE, 0, -1, np.int64(-1), -(2**63), -HUGE)
        yield from bad(functions, argument, TypeError, INTEGER, *WRONG_KINDS, [2], Raising())


def bad_sources():
    yield from bad(OPERATORS, "x", TypeError, r"\bx\b", None, "abcd", 3, 3.0, True, object(), {}, {1, 2}, int,
                   iter([1]), ["a", "b"], [["a"]], [None], [object()], DaskLike(), ArrayMethodOnly(),
                   DeviceTensor(), RaisingDLPack(), RaisingInterface(), Raising(), np.ma.masked,
                   np.ma.zeros((1, 4, 4, 12), "int8"))
    yield from bad(OPERATORS, "x", ValueError, r"regular", [[1, 2], [3]], [[[[1]], [[1, 2]]]], [1, [2]])
    yield from bad(OPERATORS, "x", (TypeError, ValueError), r"list", RECURSIVE, DEEP, [[[[HUGE]]]])


def bad_results():
    """Results that cannot be: no array has more than 2**63 - 1 bytes, and no machine 2**56."""
    too_much = (((0, 2**60), (0, 0)), ((0, 2**63), (0, 0)), ((2**62, 2**62), (0, 0)),
                ((2**31, 2**31), (2**31, 2**31)), ((0, 2 * HUGE), (0, 0)))
    yield from bad("space_to_depth", "paddings", ValueError, TOO_LARGE, *too_much, shape=True)
    yield from bad("space_to_batch_nd", "paddings", ValueError, TOO_LARGE, *too_much, shape=True,
                   block_shape=(2, 1))
    yield from bad("pack_vect_c", "vect", ValueError, TOO_LARGE, 2**62, 2**63 - 1, 2**63, HUGE, shape=True)
    yield from bad("space_to_depth", "vect", ValueError, TOO_LARGE, 2**63, HUGE, shape=True,
                   out_format="NCHW_VECT_C")
    # Empty results that NumPy cannot express: their other extents multiply to more than 2**63 - 1.
    for function, x, block in (
        ("space_to_depth", zeros(1, 0, 0, 3), {"block_size": 2**32}),
        ("depth_to_space", zeros(1, 4, 4, 0), {"block_size": 2**32}),
        ("space_to_batch_nd", zeros(1, 0, 0, 3), {"block_shape": (2**31, 2**32)}),
        ("space_to_batch_nd", zeros(1, 0, 0, 3), {"block_shape": (2**63, HUGE)}),
        ("pack_vect_c", zeros(1, 0, 4, 4), {"vect": 2**60}),
    ):
        yield from bad(function, "x", ValueError, TOO_LARGE, x, shape=True, **block)

    unaffordable = (((0, 2**56), (0, 0)), ((2**28, 0), (0, 2**28)))
    rows = partial(bad, shape=True)
    yield from rows("space_to_depth", "paddings", MemoryError, "memory", *unaffordable)
    yield from rows("space_to_batch_nd", "paddings", MemoryError, "memory", *unaffordable, block_shape=(2, 2))
    yield from rows("space_to_batch_nd", "paddings", MemoryError, "memory", ((0, 2**28 - 4), (0, 2**28 - 6)),
                    block_shape=(2**28, 2**28))
    yield from rows("pack_vect_c", "vect", MemoryError, "memory", 2**56)


BAD = [*bad_block_sizes(), *bad_windows(), *bad_shapes(), *bad_names(), *bad_packing(), *bad_pad_values(),
       *bad_thread_counts(), *bad_sources(), *bad_results()]


def refuse(row, **more):
    """Call as the row says and return the exception; AssertionError if there is none or of another class."""
    arguments = {**GOOD[row.function], **row.changes, **more}
    expected = row.error if isinstance(row.error, tuple) else (row.error,)
    try:
        result = getattr(s2dq, row.function)(**arguments)
    except BaseException as error:
        exact = type(error) in expected or (MemoryError in expected and isinstance(error, MemoryError))
        assert exact, f"{row} raised {type(error).__name__}: {error}, not {row.error}"
        return error
    raise AssertionError(f"{row} returned {type(result)} {getattr(result, 'shape', '')}")


def check_message(row, message):
    """One line that names operator, argument, value and rule, and the shape where that matters."""
    argument, value = next(iter(row.changes.items()))
    assert message.startswith(f"{row.function}: "), f"{row}: no operator: {message!r}"
    assert message.isprintable(), f"{row}: more than a line of text: {message!r}"
    assert len(message) < 1000, f"{row}: {len(message)} characters: {message[:300]}"
    assert re.search(row.rule, message), f"{row}: no {row.rule!r} in {message!r}"
    if row.shape:
        x = row.changes.get("x", GOOD[row.function]["x"])
        shape = f"({', '.join(map(str, x.shape[:4]))}"  # long shapes are shortened
        assert shape in message, f"{row}: no shape {shape} in {message!r}"
    else:
        assert re.search(rf"\b{argument}\b", message), f"{row}: no {argument!r} in {message!r}"
        assert any(text in message for text in renderings(value)), f"{row}: no value in {message!r}"


def renderings(value):
    """What a message may show of a value: its type or dtype, the value, or an entry of it."""
    yield type(value).__name__
    if isinstance(value, DeviceTensor):
        yield "device 2"
    elif isinstance(value, str):
        yield repr(value)[:20]
    elif isinstance(value, np.ma.MaskedArray):
        yield "masked array"
    elif isinstance(value, np.ndarray):
        yield from (str(value.dtype), repr(value), *map(str, value.ravel()))
    elif isinstance(value, list | tuple) and value not in (RECURSIVE, DEEP):
        yield from (text for entry in value for text in renderings(entry))
        yield "()" if not value else "(("
    elif isinstance(value, int) and abs(value) > 2**65:
        yield str(abs(value) % 10**5)  # shortened, if it is shown at all
        yield "<int>"
    elif not isinstance(value, Raising):
        yield from (repr(value), str(value))


def poisoned_out(row):
    """A result of the good call's shape and the row's dtype, and its raw bytes."""
    good = getattr(reference, row.function)(**GOOD[row.function])
    x = row.changes.get("x")
    dtype = x.dtype if isinstance(x, np.ndarray) and not x.dtype.hasobject else good.dtype
    raw = np.full(good.size * dtype.itemsize, POISON, np.uint8)
    return raw.view(dtype).reshape(good.shape), raw


def test_good_calls_work():
    """Otherwise a refusal below would prove nothing."""
    for name in OPERATORS:
        result = getattr(s2dq, name)(**GOOD[name])
        expected = getattr(reference, name)(**GOOD[name])
        np.testing.assert_array_equal(result, expected, strict=True, err_msg=name)


@pytest.mark.parametrize("row", BAD, ids=str)
def test_bad_argument_is_refused(row):
    check_message(row, str(refuse(row)))
    if row.function == "set_num_threads":
        return
    out, raw = poisoned_out(row)
    # No `out` has the shape of a result that no memory could hold: that is what is wrong then.
    refuse(row._replace(error=ValueError) if row.error is MemoryError else row, out=out)
    assert (raw == POISON).all(), f"{row}: out was written to"


def test_bad_arguments_are_many():
    assert len(BAD) > 1000, len(BAD)
    assert {row.function for row in BAD} == set(GOOD)


@pytest.mark.parametrize("argument, value", [
    ("x", RaisingDLPack()), ("x", RaisingInterface()), ("block_size", RaisingIndex()),
    ("num_threads", RaisingIndex()), ("paddings", [[0, RaisingIndex()], [0, 0]]),
], ids=shown)
def test_exception_of_the_caller_is_the_cause(argument, value):
    with pytest.raises(TypeError, match=r"^space_to_depth: ") as raised:
        s2dq.space_to_depth(**{**GOOD["space_to_depth"], argument: value})
    assert isinstance(raised.value.__cause__, RuntimeError), raised.value.__cause__


@pytest.mark.parametrize("exception", [KeyboardInterrupt, SystemExit])
def test_request_to_stop_passes_through(exception):
    class Stop:
        def __index__(self):
            raise exception

    with pytest.raises(exception):
        s2dq.space_to_depth(zeros(1, 4, 6, 3), Stop())


# ------------------------------------------------------------------------------------- anything whatsoever

RELEASED = memoryview(b"abcd")
RELEASED.release()
JUNK = {
    "none": None, "true": True, "zero": 0, "one": 1, "minus one": -1, "two": 2, "float": 2.5, "complex": 1 + 2j,
    "nan": float("nan"), "inf": float("inf"), "huge": HUGE, "-huge": -HUGE, "2**63": 2**63, "-2**63-1": -(2**63) - 1,
    "str": "NCHW", "junk str": "junk", "newline": "a\nb", "surrogate": "\ud800", "nul": "a\0b",
    "bytes": b"xy", "bytearray": bytearray(4), "memoryview": memoryview(b"abcd"), "released": RELEASED,
    "empty list": [], "list": [1, 2], "pairs": [[0, 0], [0, 0]], "huge list": [HUGE, HUGE],
    "huge pairs": [[HUGE, HUGE], [HUGE, HUGE]], "ragged": [[1], [2, 3]], "recursive": RECURSIVE, "deep": DEEP,
    "dict": {}, "set": {1, 2}, "range": range(2), "type": int, "function": len, "ellipsis": ..., "object": object(),
    "raising": Raising(), "raising class": RaisingClass(), "raising list": RaisingList([1, 2]),
    "raising index": RaisingIndex(), "raising float": RaisingFloat(1),
    "raising int": RaisingInt(2), "bad hash": BadHash("junk"), "long repr": LongRepr(), "dask": DaskLike(),
    "device": DeviceTensor(), "fraction": fractions.Fraction(1, 2), "nat": np.datetime64("NaT", "s"),
    "array": np.zeros((2, 2)), "int array": np.array([2, 1]), "0-d": np.array(2), "empty": np.empty((0, 2), int),
    "object array": np.array([None, 2]), "huge object array": np.array([HUGE, HUGE], object),
    "bool array": np.array([True, False]), "strings": np.array(["a", "b"]), "big-endian": np.array([1, 2], ">i8"),
    "void": np.void(b"abc"), "structured": np.zeros(2, "i4,f4"), "masked": np.ma.masked,
    "masked array": np.ma.array([1, 2], mask=[0, 1]), "4-d": np.zeros((1, 4, 4, 12), ">f8"),
    "object 4-d": np.full((1, 4, 4, 12), None), "5-d": np.zeros((1, 4, 4, 4, 4), np.int8),
}  # fmt: skip
ARGUMENTS = {
    "space_to_depth": ("x", "block_size", "data_format", "mode", "out_format", "vect", "channels", "paddings",
                       "pad_value", "out", "num_threads"),
    "depth_to_space": ("x", "block_size", "data_format", "mode", "out_format", "vect", "channels", "crops",
                       "out", "num_threads"),
    "space_to_batch_nd": ("x", "block_shape", "paddings", "pad_value", "out", "num_threads"),
    "batch_to_space_nd": ("x", "block_shape", "crops", "out", "num_threads"),
    "pack_vect_c": ("x", "data_format", "vect", "pad_value", "out", "num_threads"),
    "unpack_vect_c": ("x", "data_format", "channels", "out", "num_threads"),
}


def outcome(function, arguments):
    """What is wrong with the answer to a call, or None."""
    try:
        result = getattr(s2dq, function)(**arguments)
    except (TypeError, ValueError, MemoryError) as error:
        message = str(error)
        clear = message.startswith(f"{function}: ") and message.isprintable() and len(message) < 1000
        exact = type(error) in (TypeError, ValueError) or isinstance(error, MemoryError)
        return None if clear and exact else f"{type(error).__name__}: {message[:300]!r}"
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    plain = {
        name: int.__pos__(value) if isinstance(value, RaisingInt) else value
        for name, value in arguments.items() if name not in ("out", "num_threads")
    }
    expected = getattr(reference, function)(**plain)
    if type(result) is not np.ndarray or (result.shape, result.dtype) != (expected.shape, expected.dtype):
        return f"accepted, but gave {type(result)} {getattr(result, 'shape', '')}"
    return None if result.tobytes() == expected.tobytes() else "accepted, with a wrong result"


@pytest.mark.parametrize("function, argument", [(name, one) for name, names in ARGUMENTS.items() for one in names])
def test_junk_is_refused_or_right(function, argument):
    """Any object as any argument: a clear refusal, or what the definition in NumPy gives."""
    outcomes = {name: outcome(function, {**GOOD[function], argument: value}) for name, value in JUNK.items()}
    wrong = [f"{name}: {what}" for name, what in outcomes.items() if what]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("function", OPERATORS)
def test_unknown_and_missing_arguments_are_type_errors(function):
    with pytest.raises(TypeError):
        getattr(s2dq, function)()
    with pytest.raises(TypeError):
        getattr(s2dq, function)(**GOOD[function], axis=1)


def test_index_is_asked_once():
    """A value read twice could change in between: 2 when it is checked, 2**40 when it is used."""
    class Growing:
        asked = 0

        def __index__(self):
            self.asked += 1
            return 2 if self.asked == 1 else 2**40

    block, pad, vect = Growing(), Growing(), Growing()
    result = s2dq.space_to_depth(zeros(1, 4, 6, 3), block, paddings=[[pad, 0], [0, 0]], vect=vect,
                                 out_format="NCHW_VECT_C")
    assert (block.asked, pad.asked, vect.asked, result.shape) == (1, 1, 1, (1, 6, 3, 3, 2))


def test_lying_sequence_is_read_once():
    class Lying(list):
        """Two entries of 2 when it is read for the first time, something else after that."""

        def __init__(self):
            super().__init__([2, 2])
            self.read = 0

        def __iter__(self):
            self.read += 1
            return iter([2, 2] if self.read == 1 else [2**40, 2**40, 0])

        def __getitem__(self, index):
            return 2**40

    x = np.arange(24, dtype="int8").reshape(1, 4, 6, 1)
    depth = s2dq.space_to_depth(x, Lying())
    np.testing.assert_array_equal(depth, reference.space_to_depth(x, 2), strict=True)
    batch = s2dq.space_to_batch_nd(x, Lying(), NO_PADDING)
    np.testing.assert_array_equal(batch, reference.space_to_batch_nd(x, [2, 2], NO_PADDING), strict=True)


# ------------------------------------------------------------------------------------------------ accepted

X = np.arange(2 * 4 * 6 * 3, dtype=np.int16).reshape(2, 4, 6, 3)
INTEGER_ARRAYS = [partial(np.array, dtype=dtype) for dtype in ("int8", "int32", "int64", "uint64", ">i4")]


@pytest.mark.parametrize("two", [
    2, np.int8(2), np.int64(2), np.uint64(2), np.array(2), np.array(2, np.uint8), (2, 2), [2, 2],
    (np.int32(2), np.array(2)), np.array([2, 2]), np.array([2, 2], np.int32), np.array([2, 2], np.uint64),
    np.array([2, 2], ">i4"), np.array([2, 9, 2])[::2], np.broadcast_to(2, 2),
], ids=lambda two: f"{type(two).__name__}-{getattr(two, 'dtype', '')}-{two}")
def test_block_size_of_any_integer_kind(two):
    expected = reference.space_to_depth(X, 2)
    np.testing.assert_array_equal(s2dq.space_to_depth(X, two), expected, strict=True)
    np.testing.assert_array_equal(s2dq.depth_to_space(expected, two), X, strict=True)


@pytest.mark.parametrize("kind", [list, tuple, *INTEGER_ARRAYS], ids=str)
def test_block_shape_and_paddings_of_any_integer_kind(kind):
    block, paddings = kind([2, 3]), kind([[1, 1], [3, 0]])
    expected = reference.space_to_batch_nd(X, [2, 3], [[1, 1], [3, 0]])
    np.testing.assert_array_equal(s2dq.space_to_batch_nd(X, block, paddings), expected, strict=True)
    np.testing.assert_array_equal(s2dq.batch_to_space_nd(expected, block, paddings), X, strict=True)
    padded = s2dq.space_to_depth(X, block, paddings=paddings)
    expected = reference.space_to_depth(X, [2, 3], paddings=[[1, 1], [3, 0]])
    np.testing.assert_array_equal(padded, expected, strict=True)
    np.testing.assert_array_equal(s2dq.depth_to_space(padded, block, crops=paddings), X, strict=True)


def test_parameter_array_may_change_after_the_call():
    block, paddings = np.array([2, 3]), np.zeros((2, 2), np.int64)
    first = s2dq.space_to_batch_nd(X, block, paddings)
    block[:], paddings[:] = (1, 2), 1
    second = s2dq.space_to_batch_nd(X, block, paddings)
    np.testing.assert_array_equal(first, reference.space_to_batch_nd(X, [2, 3], NO_PADDING), strict=True)
    expected = reference.space_to_batch_nd(X, [1, 2], [[1, 1], [1, 1]])
    np.testing.assert_array_equal(second, expected, strict=True)


@pytest.mark.parametrize("count", [1, 2, np.int64(3), 10**9, 2**31, 2**63, HUGE, np.array(2), None], ids=shown)
def test_num_threads_is_capped(count):
    result = s2dq.space_to_depth(X, 2, num_threads=count)
    np.testing.assert_array_equal(result, reference.space_to_depth(X, 2), strict=True)


def test_set_num_threads_is_capped_and_undone():
    before = s2dq.get_num_threads()
    try:
        for count in (HUGE, 2**63, np.int64(10**9)):
            s2dq.set_num_threads(count)
            assert 1 <= s2dq.get_num_threads() <= before
        s2dq.set_num_threads(1)
        assert s2dq.get_num_threads() == 1
        with pytest.raises(ValueError):
            s2dq.set_num_threads(0)
        assert s2dq.get_num_threads() == 1, "a refused value changed the setting"
    finally:
        s2dq.set_num_threads(None)
    assert s2dq.get_num_threads() == before


@pytest.mark.parametrize("shape, function, arguments", [
    ((1, 0, 0, 3 * 2**58), "space_to_depth", {"x": zeros(1, 0, 0, 3), "block_size": 2**29}),
    ((1, 0, 6, 3 * 65536), "space_to_depth", {"x": zeros(1, 0, 6, 3), "block_size": (65536, 1)}),
    ((1, 0, 0, 0), "space_to_depth", {"x": zeros(1, 0, 0, 0), "block_size": 65536}),
    ((0, 2 + 2**39, 3, 12), "space_to_depth",
     {"x": zeros(0, 4, 6, 3), "block_size": 2, "pad_value": 7, "paddings": [[0, 2**40], [0, 0]]}),
    ((1, 2**31, 2**31, 0), "depth_to_space", {"x": zeros(1, 4, 4, 0), "block_size": 2**29}),
    ((0, 8, 8, 1), "depth_to_space", {"x": zeros(0, 4, 4, 4), "block_size": 2}),
    ((1, 0, 0, 3), "depth_to_space", {"x": zeros(1, 2, 3, 12), "block_size": 2, "crops": [[2, 2], [0, 6]]}),
    ((2**32, 0, 0, 3), "space_to_batch_nd",
     {"x": zeros(1, 0, 0, 3), "block_shape": (65536, 65536), "paddings": NO_PADDING}),
    ((0, 2, 2, 3), "space_to_batch_nd",
     {"x": zeros(0, 4, 6, 3), "block_shape": (2, 3), "paddings": NO_PADDING}),
    ((0, 8, 18, 3), "batch_to_space_nd", {"x": zeros(0, 4, 6, 3), "block_shape": (2, 3), "crops": NO_PADDING}),
    ((1, 0, 0, 3), "batch_to_space_nd",
     {"x": zeros(6, 4, 6, 3), "block_shape": (2, 3), "crops": [[0, 8], [9, 9]]}),
    ((1, 0, 2, 3, 4), "pack_vect_c", {"x": zeros(1, 0, 2, 3)}),
    ((1, 1, 0, 3, 2**40), "pack_vect_c", {"x": zeros(1, 3, 0, 3), "vect": 2**40}),
    ((1, 0, 2, 3), "unpack_vect_c", {"x": zeros(1, 0, 2, 3, 4)}),
    ((3,), "space_to_batch_nd", {"x": zeros(3), "block_shape": (), "paddings": NO_DIMS}),
    ((3,), "space_to_batch_nd", {"x": zeros(3), "block_shape": [], "paddings": []}),
    ((3, 2), "batch_to_space_nd", {"x": zeros(3, 2), "block_shape": np.array([], int), "crops": []}),
    ((1,) * 64, "space_to_batch_nd",
     {"x": zeros(*[1] * 64), "block_shape": [1] * 63, "paddings": [[0, 0]] * 63}),
    ((4096, *[1] * 12), "space_to_batch_nd",
     {"x": zeros(*[1] * 13), "block_shape": [2] * 12, "paddings": [[1, 0]] * 12}),
    ((1,) * 13, "batch_to_space_nd",
     {"x": zeros(4096, *[1] * 12), "block_shape": [2] * 12, "crops": [[1, 0]] * 12}),
], ids=lambda value: shown(value) if isinstance(value, tuple) else "")
def test_legal_extremes(shape, function, arguments):
    result = getattr(s2dq, function)(**arguments)
    assert result.shape == shape
    assert result.dtype == np.int8
    assert not result[..., :1].any() or arguments.get("pad_value"), result


@pytest.mark.parametrize("name, value", [("data_format", "NHWC"), ("mode", "CRD"), ("out_format", "NCHW")])
def test_str_subclass_is_a_str(name, value):
    result = s2dq.space_to_depth(X, 2, **{name: np.str_(value)})
    np.testing.assert_array_equal(result, reference.space_to_depth(X, 2, **{name: value}), strict=True)


def test_tensorflow_2_names():
    """The same operators; a message names the one that was called, under one of its names."""
    batched = s2dq.space_to_batch(X, [2, 3], NO_PADDING)
    np.testing.assert_array_equal(batched, s2dq.space_to_batch_nd(X, [2, 3], NO_PADDING), strict=True)
    np.testing.assert_array_equal(s2dq.batch_to_space(batched, [2, 3], NO_PADDING), X, strict=True)
    with pytest.raises(ValueError, match=r"^space_to_batch(_nd)?: .*at least 1"):
        s2dq.space_to_batch(X, [0, 3], NO_PADDING)
    with pytest.raises(TypeError, match=r"^batch_to_space(_nd)?: .*integer"):
        s2dq.batch_to_space(X, [2.0, 3], NO_PADDING)


# -------------------------------------------------------------------------------- with little memory, in a child


def refuse_all_in_little_memory():
    """Every bad call again with 512 MiB to spare, then legal ones that cannot be paid, then the good ones."""
    import resource

    import numpy as np

    import test_contract as table

    with open("/proc/self/statm") as statm:
        size = int(statm.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + 2**29, size + 2**29))
    for row in table.BAD:
        table.refuse(row)

    one = np.int8(1)
    large = np.broadcast_to(one, (1, 2**15, 2**15, 1))
    unaffordable = [
        ("space_to_depth", (large, 2), {}),
        ("space_to_depth", (large, 2), {"out_format": "NCHW_VECT_C"}),
        ("depth_to_space", (np.broadcast_to(one, (1, 2**14, 2**14, 4)), 2), {}),
        ("space_to_batch_nd", (large, [2, 2], table.NO_PADDING), {}),
        ("batch_to_space_nd", (np.broadcast_to(one, (4, 2**14, 2**14, 1)), [2, 2], table.NO_PADDING), {}),
        ("pack_vect_c", (large, "NHWC"), {}),
        ("unpack_vect_c", (np.broadcast_to(one, (1, 1, 2**14, 2**14, 4)),), {}),
    ]
    for name, args, kwargs in unaffordable:
        try:
            result = getattr(table.s2dq, name)(*args, **kwargs)
        except MemoryError:
            continue
        raise AssertionError(f"{name} returned {result.shape}")

    for name in table.OPERATORS:
        getattr(table.s2dq, name)(**table.GOOD[name])
    print(len(table.BAD), len(unaffordable))


@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space")
def test_bad_arguments_in_little_memory():
    assert run_child(refuse_all_in_little_memory).split() == [str(len(BAD)), "7"]


def change_arrays_under_the_call():
    """Arguments whose methods change x, out and other arguments while they are being read."""
    import numpy as np

    import s2dq

    class Shrink:
        """Gives the memory of an array back to the system when it is asked for its value."""

        def __init__(self, array, shape):
            self.array, self.shape = array, shape

        def __index__(self):
            self.array.resize(self.shape, refcheck=False)
            return 2

    side = 4096  # 16 MiB: a late access to what was there is a crash

    def frame():
        return np.ones((1, side, side, 1), np.int8)

    def packed():
        return np.ones((1, 1, side // 2, side // 2, 4), np.int8)

    def deep():
        return np.zeros((1, side // 2, side // 2, 4), np.int8)

    def shrink_x(x, out):
        return Shrink(x, (1, 1, 2, 2, 4) if x.ndim == 5 else (1, 2, 2, 1))

    def shrink_out(x, out):
        return Shrink(out, (1, 1, 1, 4))

    words = {"data_format": "NCHW_VECT_C", "out_format": "NHWC"}
    calls = [
        (frame, shrink_x, lambda x, out, two: s2dq.space_to_depth(x, two)),
        (frame, shrink_x, lambda x, out, two: s2dq.space_to_depth(x, (two, 2))),
        (frame, shrink_x, lambda x, out, two: s2dq.space_to_depth(x, 2, paddings=[[0, 0], [0, two]])),
        (frame, shrink_x, lambda x, out, two: s2dq.space_to_depth(x, 2, pad_value=two)),
        (frame, shrink_x, lambda x, out, two: s2dq.space_to_depth(x, 2, vect=two, out_format="NCHW_VECT_C")),
        (frame, shrink_x, lambda x, out, two: s2dq.space_to_depth(x, 2, channels=two)),
        (frame, shrink_x, lambda x, out, two: s2dq.space_to_depth(x, 2, num_threads=two)),
        (packed, shrink_x, lambda x, out, two: s2dq.space_to_depth(x, 2, channels=two, **words)),
        (packed, shrink_x, lambda x, out, two: s2dq.unpack_vect_c(x, channels=two)),
        (packed, shrink_x, lambda x, out, two: s2dq.unpack_vect_c(x, num_threads=two)),
        (frame, shrink_x, lambda x, out, two: s2dq.pack_vect_c(x, vect=two)),
        (frame, shrink_x, lambda x, out, two: s2dq.pack_vect_c(x, pad_value=two)),
        (frame, shrink_x, lambda x, out, two: s2dq.space_to_batch_nd(x, [2, two], [[0, 0], [0, 0]])),
        (frame, shrink_x, lambda x, out, two: s2dq.space_to_batch_nd(x, [2, 2], [[0, 0], [0, two]])),
        (frame, shrink_out, lambda x, out, two: s2dq.space_to_depth(x, two, out=out)),
        (frame, shrink_out, lambda x, out, two: s2dq.space_to_depth(x, 2, out=out, pad_value=two)),
        (frame, shrink_out, lambda x, out, two: s2dq.space_to_depth(x, 2, out=out, num_threads=two)),
    ]

    class Widen(Shrink):
        """Makes fewer and wider elements of the array."""

        def __index__(self):
            self.array.dtype = "V1024"
            return 2

    def widen_x(x, out):
        return Widen(x, None)

    def wide():
        return np.ones((1, 2, 2, 1024), np.int8)

    pads = [[2, 0], [0, 0]]
    calls += [
        (wide, widen_x, lambda x, out, two: s2dq.space_to_depth(x, two)),
        (wide, widen_x, lambda x, out, two: s2dq.space_to_depth(x, 2, paddings=pads, num_threads=two)),
        (wide, widen_x, lambda x, out, two: s2dq.space_to_batch_nd(x, [2, 2], pads, pad_value=two)),
        (wide, widen_x, lambda x, out, two: s2dq.pack_vect_c(x, vect=two)),
        (wide, widen_x, lambda x, out, two: s2dq.QuantizedTensor(x, 0.5, two).values),
    ]

    class Shown(Shrink):
        """... when it is shown, in a message or for one."""

        def __index__(self):
            return 2

        def __repr__(self):
            self.array.resize(self.shape, refcheck=False)
            return "2"

    def shown(x, out):
        return Shown(x, (1, 2, 2, 1))

    calls += [
        (frame, shown, lambda x, out, two: s2dq.space_to_depth(x, two)),
        (frame, shown, lambda x, out, two: s2dq.space_to_depth(x, (two, 2))),
        (deep, shown, lambda x, out, two: s2dq.depth_to_space(x, two)),
    ]

    from s2dq.compat import nnapi, onnx, openvino, tensorflow

    def channels_first():
        return np.ones((1, 4, side // 2, side // 2), np.int8)

    calls += [
        (channels_first, shrink_x, lambda x, out, two: onnx.space_to_depth(x, two)),
        (channels_first, shrink_x, lambda x, out, two: nnapi.space_to_depth(x, two, True)),
        (channels_first, shrink_x, lambda x, out, two: nnapi.space_to_batch_nd(x, [2, two], [[0, 0], [0, 0]], True)),
        (channels_first, shrink_x, lambda x, out, two: openvino.space_to_depth(x, "blocks_first", two)),
        (channels_first, shrink_x, lambda x, out, two: openvino.space_to_batch(x, [1, 1, 2, two], [0] * 4, [0] * 4)),
        (frame, shrink_x, lambda x, out, two: tensorflow.space_to_depth(x, two)),
        (frame, shrink_x, lambda x, out, two: tensorflow.space_to_batch_nd(x, [2, two], [[0, 0], [0, 0]])),
        (frame, shrink_x, lambda x, out, two: tensorflow.v1.space_to_batch(x, [[0, 0], [0, 0]], two)),
    ]
    for number, (source, shrink, call) in enumerate(calls):
        x, out = source(), deep()
        try:
            result = call(x, out, shrink(x, out))
        except (TypeError, ValueError):
            continue
        assert result.dtype == np.int8 and set(np.unique(result)) <= {0, 1, 2}, number
    print(len(calls))


def test_arrays_that_change_during_the_call():
    assert run_child(change_arrays_under_the_call).split() == ["33"]


def change_arrays_when_dtypes_are_compared(which):
    """By what names and titles of fields do when they are asked whether they equal others."""
    import numpy as np

    import s2dq

    class Title:
        def __hash__(self):
            return 7

        def __eq__(self, other):
            if arrays:
                arrays.pop().resize((1, 2, 2, 1), refcheck=False)
            return True

    class Name(str):
        __hash__ = str.__hash__
        __eq__ = Title.__eq__

    arrays = []
    for name, rows in ((lambda: (Title(), "a"), ()), (lambda: Name("a"), ()), (lambda: (Title(), "a"), (1,)),
                       (lambda: Name("a"), (1,))):  # fmt: skip
        x, out = (np.ones(shape, [("row", [(name(), "i1")], rows)])
                  for shape in ((1, 2048, 2048, 1), (1, 1024, 1024, 4)))
        arrays.append(x if which == "x" else out)
        try:
            s2dq.space_to_depth(x, 2, out=out)
            print("returned")
        except TypeError as error:
            print(str(error).partition(" [")[0])
        arrays.clear()


@pytest.mark.parametrize("which", ["x", "out"])
def test_dtypes_are_compared_without_methods_of_their_fields(which):
    output = run_child(change_arrays_when_dtypes_are_compared, which).splitlines()
    assert output == 2 * ["space_to_depth: out must have dtype", "returned"], "titles are equal if they are strings"


@pytest.mark.parametrize("fields", [
    [("a", "i4"), ("b", "f8")], [(("title", "a"), "i4"), ("b", "f8")], [("a", [("b", "i2"), ("c", "S3")])],
    [("a", "i4", (2, 3))], {"names": ["a"], "formats": ["i4"], "offsets": [4], "itemsize": 12}, [("a", "V24")],
    {"names": ["a", "b"], "formats": ["i4", "i4"], "offsets": [0, 0], "titles": ["t", None]},
], ids=str)
def test_out_of_equal_fields_is_taken_and_of_others_refused(fields):
    x, out = np.zeros((1, 2, 2, 1), np.dtype(fields)), np.ones((1, 1, 1, 4), np.dtype(fields))
    assert s2dq.space_to_depth(x, 2, out=out) is out
    assert not any(any(out[name].tobytes()) for name in out.dtype.names)
    others = [[("x", "i4"), ("b", "f8")], [(("other", "a"), "i4"), ("b", "f8")], [("a", [("b", "u2"), ("c", "S3")])],
              [("a", "i4", (6,))], [("a", "S24")], [("a", "u4", (2, 3))],
              {"names": ["a"], "formats": ["i4"], "offsets": [8], "itemsize": 12},
              {"names": ["a"], "formats": ["i4"], "offsets": [4], "itemsize": 16},
              {"names": ["a", "b"], "formats": ["i4", "i4"], "offsets": [0, 0], "titles": [None, "t"]}]
    for other in others:
        with pytest.raises(TypeError, match="out must have dtype"):
            s2dq.space_to_depth(x, 2, out=np.ones((1, 1, 1, 4), np.dtype(other)))


def test_exceptions_are_named_whatever_their_class_says():
    class Meta(type):
        __name__ = property(lambda self: 1 / 0)

    class Nameless(Exception, metaclass=Meta):
        pass

    class Block:
        @property
        def __class__(self):
            raise Nameless

    with pytest.raises(TypeError, match=r"^space_to_depth: a method of an argument raised Nameless$"):
        s2dq.space_to_depth(np.zeros((1, 2, 2, 1)), Block())


def test_large_arrays_are_shown_in_part_however_arrays_are_printed():
    """All of a million elements took minutes."""
    x, block = np.zeros((1, 2, 2, 1)), np.full(10**6, 0.5)
    messages = set()
    for threshold in (1000, sys.maxsize):
        with np.printoptions(threshold=threshold), pytest.raises(TypeError) as raised:
            begun = time.monotonic()
            s2dq.space_to_depth(x, block)
        assert time.monotonic() - begun < 1 * PATIENCE
        messages.add(str(raised.value))
    assert len(messages) == 1


def test_arrays_are_shown_as_the_caller_prints_them():
    """... where that is shorter."""
    x, block = np.zeros((1, 2, 2, 1)), np.arange(20)
    for threshold, shown in ((5, "array([ 0, 1, 2, ..., 17, 18, 19]"), (20, "array([ 0, 1, 2, 3, 4, 5, 6, 7,")):
        with np.printoptions(threshold=threshold), pytest.raises(ValueError) as raised:
            s2dq.space_to_depth(x, block)
        assert f"not {shown}" in str(raised.value)


@pytest.mark.parametrize("arguments, shown", [
    ({"block_size": [[2, 3], 2]}, "must be an integer, not [2, 3] "), ({"block_size": [2]}, ", not [2] "),
    ({"block_size": ([2], 2)}, "must be an integer, not [2] "), ({"block_size": (2,)}, ", not (2,) "),
])  # fmt: skip
def test_lists_are_shown_as_lists(arguments, shown):
    """... although calls are remembered by tuples."""
    with pytest.raises((TypeError, ValueError)) as raised:
        s2dq.space_to_depth(np.zeros((1, 2, 2, 1)), **arguments)
    assert shown in str(raised.value)


def test_steps_along_one_index_mean_nothing():
    """They may be larger than any sum of them that an int64 holds."""
    x = np.arange(48, dtype=np.int8).reshape(1, 4, 4, 3)
    for step in (2**20, 2**56, 2**59, 2**62):
        one = x[:, ::step]
        assert one.shape == (1, 1, 4, 3)
        for mode in ("DCR", "CRD", "focus"):
            arguments = {"out_format": "NCHW_VECT_C", "paddings": [[7, 0], [0, 0]], "mode": mode}
            np.testing.assert_array_equal(s2dq.space_to_depth(one, (8, 1), **arguments),
                                          s2dq.space_to_depth(x[:, :1].copy(), (8, 1), **arguments), strict=True)
        frames = np.ones((1, 4, 4, 3), np.uint8)
        convert = s2dq.Preprocessor(scale=1 / 255, size=64, block_size=2, data_format="NCHW_VECT_C")
        np.testing.assert_array_equal(convert(frames[:, ::step]), convert(frames[:, :1].copy()), strict=True)


def test_zero_points_that_another_thread_changes_are_those_that_were_checked():
    zero_point, stop = np.zeros(40000, np.int64), threading.Event()

    def change():
        while not stop.is_set():
            zero_point[-1] = 1000
            zero_point[-1] = 0

    values, outcomes = np.zeros((1, 40000), np.int8), set()
    thread = threading.Thread(target=change)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread.start()
    try:
        end = time.monotonic() + 2
        while time.monotonic() < end:
            try:
                outcomes.add(int(s2dq.QuantizedTensor(values, 0.5, zero_point, axis=1).zero_point[-1]))
            except ValueError as error:
                outcomes.add(str(error).partition(" (")[0])
    finally:
        stop.set()
        thread.join()
        sys.setswitchinterval(interval)
    assert outcomes <= {0, "QuantizedTensor: zero_point[39999] 1000 cannot be held by dtype int8"}


def test_numbers_that_have_fields_are_no_stored_values():
    dtype = np.dtype((np.int8, {"a": (np.int8, 0)}))
    assert dtype == np.int8
    with pytest.raises(TypeError, match=r"^QuantizedTensor: values must have dtype int8, "):
        s2dq.QuantizedTensor(np.zeros((2, 2), dtype), 1.0, 0)
    with pytest.raises(TypeError, match=r"^quantize: dtype must be int8, "):
        s2dq.quantize(np.zeros((2, 2), np.float32), 1.0, 0, dtype=dtype)


def test_pad_value_of_records_is_a_tuple_however_paddings_are_given():
    """Lists are tuples where calls are remembered."""
    x = np.zeros((1, 1, 1, 1), [("a", np.int16), ("b", np.int32)])
    for paddings in ([[0, 1], [0, 1]], np.array([[0, 1], [0, 1]])):
        with pytest.raises(TypeError, match=r"pad_value must be a value of dtype .*, not \[1, 2\]"):
            s2dq.space_to_depth(x, 2, paddings=paddings, pad_value=[1, 2])
        padded = s2dq.space_to_depth(x, 2, paddings=paddings, pad_value=(1, 2))
        assert padded.ravel().tolist() == [(0, 0), (1, 2), (1, 2), (1, 2)]


def pads(number):
    """Bits that are padded with, for every dtype of floats."""
    found = []
    for dtype in ("float16", "float32", ">f4", "float64", "complex64"):
        padded = s2dq.space_to_depth(np.zeros((1, 1, 1, 1), dtype), (1, 2), paddings=[[0, 0], [0, 1]], pad_value=number)
        found.append(padded[0, 0, 0, 1:].tobytes())
    return found


@pytest.mark.parametrize("kind", [bytes, bytearray])
def test_bytes_are_shown_in_full_up_to_80(kind):
    for length, shown in ((80, "x" * 80), (81, f"{kind(b'x' * 40)!r}...(81 bytes)")):
        with pytest.raises(TypeError, match="data_format must be a str, not b") as raised:
            s2dq.space_to_depth(np.ones((1, 2, 2, 1)), 2, kind(b"x" * length))
        assert shown in str(raised.value) and str(raised.value).count("x" * 41) == (length == 80)


def test_arrays_are_summarized_however_NumPy_prints_them():
    messages = set()
    for threshold in (1000, 1001, sys.maxsize):
        with np.printoptions(threshold=threshold), pytest.raises(TypeError, match="must be a str") as raised:
            s2dq.space_to_depth(np.ones((1, 2, 2, 1)), 2, np.zeros(1001, np.int8))
        messages.add(str(raised.value))
    assert len(messages) == 1


def test_results_beyond_all_sizes_by_an_extent_behind_the_largest():
    with pytest.raises(ValueError, match=r"would be larger than 2\*\*63 - 1 bytes"):
        s2dq.space_to_batch_nd(np.zeros((1, 1, 2), np.int8), [1], [[0, 2**63 - 2]])


@pytest.mark.parametrize("dtype, taken", [("torch.bool", False), ("bool", False), ("torch.uint8", True), (None, True)])
def test_booleans_of_other_packages_are_no_integers(dtype, taken):
    """They have an ``__index__``, as PyTorch's do."""
    flag = type("Flag", (), {"dtype": dtype, "__index__": lambda self: 1})()
    if taken:
        assert s2dq.space_to_depth(np.ones((1, 2, 2, 1)), flag).shape == (1, 2, 2, 1)
        return
    with pytest.raises(TypeError, match="block_size must be an integer, not <.*Flag"):
        s2dq.space_to_depth(np.ones((1, 2, 2, 1)), flag)


@pytest.mark.parametrize("wide, shown", [
    (2**2048, r"block area \d+\.\.\."), (2**2048 + 1, r"block area above 2\*\*4096\)"),
    (2**2049, r"block area above 2\*\*4096\)"),
], ids=["just", "more", "twice"])  # fmt: skip
def test_areas_are_shown_up_to_2_to_4096(wide, shown):
    with pytest.raises(ValueError, match=shown):
        s2dq.depth_to_space(np.zeros((1, 2, 2, 12)), (2**2048, wide))


def test_the_smallest_std_is_above_0():
    assert s2dq.Preprocessor(scale=1, std=5e-324).std == 5e-324
    for std in (0.0, -0.0, -5e-324):
        with pytest.raises(ValueError, match="std must be above 0, not"):
            s2dq.Preprocessor(scale=1, std=std)


def test_numbers_kept_in_float64_are_rounded_to_it():
    """... not to one that float32 is rounded from once more, as scales are."""
    for mean in (np.longdouble(1) / 7, np.int64(2**54 + 1)):
        assert s2dq.Preprocessor(scale=0.5, zero_point=0, mean=mean).mean == float(mean)


PADS = {
    "tenth": 0.1, "third": fractions.Fraction(1, 3), "integer": 2**24 + 1, "tiny": 1e-40, "float32": np.float32(1e-40),
    "float64": np.float64(1 + 2**-24 + 2**-50), "long": np.longdouble(1) / 3, "int64": np.int64(2**62 + 2**38 + 1),
}  # fmt: skip


@pytest.mark.parametrize("number", PADS)
def test_pad_value_is_rounded_to_nearest(number):
    value = min(PADS[number], 2**15) if number in ("integer", "int64") else PADS[number]
    expected = pads(value)
    for direction in rounding_directions().values():
        libm = ctypes.CDLL("libm.so.6")
        assert libm.fesetround(direction) == 0
        try:
            found = pads(value)
        finally:
            libm.fesetround(0)
        assert found == expected, direction
    if FLUSHES:
        with subnormals_are_zero():
            found = pads(value)
        assert found == expected


@pytest.mark.skipif(not FLUSHES, reason="needs an x86-64 and Linux")
@pytest.mark.parametrize("dtype", ["int8", "uint64", "bool"])
@pytest.mark.parametrize("number", [5e-324, -1e-310, np.float32(1e-40), np.longdouble(5e-324)])
def test_a_subnormal_pad_value_is_no_integer(number, dtype):
    x = np.zeros((1, 1, 1, 1), dtype)
    with subnormals_are_zero(), pytest.raises(ValueError, match="pad_value .* cannot be held by dtype"):
        s2dq.space_to_depth(x, (1, 2), paddings=[[0, 0], [0, 1]], pad_value=number)


def test_messages_are_one_line_whatever_classes_are_called():
    strange = type("A\nB", (), {"__index__": lambda self: {}[self]})
    for x, block in ((strange(), 2), (np.zeros((1, 2, 2, 1)), strange())):
        with pytest.raises(TypeError) as caught:
            s2dq.space_to_depth(x, block)
        assert str(caught.value).isprintable(), caught.value


def test_records_within_records_are_no_pad_values():
    x = np.zeros((1, 1, 1, 1), [("a", [("x", np.int16), ("y", np.int16)], (2,))])
    for entry in ((1, 2), [(1, 2), (3, 4)], 0):
        with pytest.raises((TypeError, ValueError), match=r"^space_to_depth: pad_value"):
            s2dq.space_to_depth(x, 2, paddings=[[0, 1], [0, 1]], pad_value=(entry,))


MANY = 10**6  # digits, in bits
HOPELESS = {
    "blocks of a batch": lambda: s2dq.batch_to_space_nd(np.zeros((1,) * 60, np.int8), [1 << MANY] * 50, [[0, 0]] * 50),
    "blocks of axes": lambda: s2dq.space_to_batch_nd(
        np.zeros((1,) * 60, np.int8), [1 << MANY] * 59, [[0, (1 << MANY) - 1]] * 59),
    "nested tuples": lambda: s2dq.space_to_depth(np.zeros((1, 2, 2, 1)), 2, nested_tuples(100)),
    "bytes": lambda: s2dq.space_to_depth(np.zeros((1, 2, 2, 1)), bytes(30 << 20)),
}  # fmt: skip


def nested_tuples(levels):
    nested = (1,)
    for _ in range(levels):
        nested = (nested,) * 8
    return nested


@pytest.mark.parametrize("what", HOPELESS)
def test_huge_arguments_are_refused_at_once(what):
    began = time.process_time()
    with pytest.raises((TypeError, ValueError)) as caught:
        HOPELESS[what]()
    assert time.process_time() - began < 0.5 * PATIENCE
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 2000


def race_for_the_arguments():
    """One thread changes the parameter arrays all the time, another one calls."""
    import sys
    import threading

    import numpy as np

    import s2dq

    sys.setswitchinterval(1e-5)
    block, paddings, stop = np.array([2, 2]), np.zeros((2, 2), np.int64), threading.Event()
    x = np.arange(1, 65, dtype=np.int8).reshape(1, 8, 8, 1)

    def change():
        while not stop.is_set():
            for b, pad in ((1, 0), (2, 2), (4, 2**62), (2**31, -1), (8, 0), (0, 4)):
                block[0], paddings[0, 0] = b, pad

    thread = threading.Thread(target=change)
    thread.start()
    outcomes = set()
    try:
        for _ in range(4000):
            try:
                result = s2dq.space_to_batch_nd(x, block, paddings)
            except ValueError:
                outcomes.add("refused")
            else:
                assert sorted(result[result != 0]) == list(range(1, 65)), (result.shape, block, paddings)
                outcomes.add("right")
    finally:
        stop.set()
        thread.join()
    print(*sorted(outcomes))


def test_parameter_arrays_that_another_thread_changes():
    assert run_child(race_for_the_arguments).split() == ["refused", "right"]


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.uint64], ids=lambda kind: kind.__name__)
def test_arguments_of_numpys_integers(kind):
    """No step of a computation wraps or overflows in their width."""
    x = np.arange(96, dtype=np.int8).reshape(1, 24, 2, 2)
    margins = np.array([[1, 1], [2, 0]], kind)
    for module in (s2dq, reference):
        np.testing.assert_array_equal(module.pack_vect_c(x, vect=kind(16)), module.pack_vect_c(x, vect=16))
        packed = module.space_to_depth(x, kind(2), "NCHW", out_format="NCHW_VECT_C", vect=kind(4), paddings=margins)
        expected = module.space_to_depth(x, 2, "NCHW", out_format="NCHW_VECT_C", vect=4, paddings=[[1, 1], [2, 0]])
        np.testing.assert_array_equal(packed, expected, strict=True)

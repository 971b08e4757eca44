"""Bad input to every public function, as one table, in children with little memory.

A row replaces arguments of a call that works and says which exception comes of it, exactly, and what its message has
to name. Rows from a public advisory or issue carry its identifier. Each child runs some rows and writes down what came
of them; where it dies or hangs that is what came of the row it was at, and another child takes the next one. Below the
table, Hypothesis makes up arguments that nobody has thought of.
"""

import ast
import functools
import importlib
import importlib.util
import inspect
import json
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st

import s2dq
from guarded import run_child
from s2dq import interop, kernels, models, reference
from s2dq.compat import nnapi, onnx, openvino, tensorflow

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits the address space")

POISON = 0xA5
HUGE = 10**5000  # too long for str()
NO_PADDING = ((0, 0), (0, 0))
SPARE = 2**29  # bytes a child may take beyond what its imports took
# Of work, for one row; of waiting it may be ten times that, on a machine that is shared. More in an emulator.
SECONDS = float(os.environ.get("S2DQ_TEST_PATIENCE", "1"))


def zeros(*shape, dtype="int8"):
    return np.zeros(shape, dtype)


# ------------------------------------------------------------------------------------------------- the good calls


class Good(NamedTuple):
    """A call that works: how the function is found, its arguments, and how its messages begin."""

    find: Any
    arguments: dict
    prefix: str
    result: tuple = ()  # shape and dtype of what may be given as `out`


def quantized(*shape, dtype="int8", **parameters):
    return s2dq.QuantizedTensor(zeros(*shape, dtype=dtype), **{"scale": 0.5, "zero_point": 0, **parameters})


PRE = s2dq.Preprocessor(scale=1.0, size=8, block_size=2)
POST = PRE.inverse()
MODEL = models.ModelInput("image", (1, 4, 4, 3), "int8", 0.5, 0, "NHWC", "image", "int8")
SETTINGS = {name: parameter.default for name, parameter in inspect.signature(s2dq.Preprocessor).parameters.items()}
LITERT = {"dtype": np.int8, "quantization_parameters": {"scales": [0.5], "zero_points": [0]}}
FROM_FRAMES = {"quantize": ((2, 3), "int8"), "dequantize": ((1, 4, 4, 4), "float32"),
               "requantize": ((1, 4, 4, 4), "int8")}


def public(name):
    """A function by its name; those of other packages are imported when they are asked for."""
    module, _, last = name.rpartition(".")
    return getattr(importlib.import_module(f"s2dq.{module}") if module else s2dq, last)


def good_calls():
    depth = {"x": zeros(1, 4, 6, 4), "block_size": 2}
    to_batch = {"x": zeros(2, 4, 6, 3), "block_shape": (2, 3), "paddings": NO_PADDING}
    from_batch = {"x": zeros(12, 2, 2, 3), "block_shape": (2, 3), "crops": NO_PADDING}
    packs = {"pack_vect_c": {"x": zeros(1, 6, 2, 3)}, "unpack_vect_c": {"x": zeros(1, 2, 2, 3, 4)}}
    for name, arguments in {"space_to_depth": depth, "depth_to_space": depth, "space_to_batch_nd": to_batch,
                            "space_to_batch": to_batch, "batch_to_space_nd": from_batch, "batch_to_space": from_batch,
                            **packs}.items():
        result = getattr(reference, name)(**arguments)
        yield name, Good(None, arguments, name, (result.shape, "int8"))

    q = quantized(1, 4, 4, 4)
    yield "quantize", Good(None, {"x": zeros(2, 3, dtype="f4"), "scale": 0.5, "zero_point": 0}, "quantize",
                           FROM_FRAMES["quantize"])
    yield "dequantize", Good(None, {"q": q}, "dequantize", FROM_FRAMES["dequantize"])
    yield "requantize", Good(None, {"q": q, "scale": 0.25, "zero_point": 1}, "requantize", FROM_FRAMES["requantize"])
    yield "QuantizedTensor", Good(None, {"values": zeros(2, 3), "scale": 0.5, "zero_point": 0}, "QuantizedTensor")
    yield "QuantizedTensor.dequantize", Good(lambda: q.dequantize, {}, "dequantize", FROM_FRAMES["dequantize"])

    for name in ("Preprocessor", "Postprocessor"):
        yield name, Good(None, {"scale": 0.5}, name)
    yield "Preprocessor.__call__", Good(lambda: PRE, {"frames": zeros(8, 8, 3, dtype="u1")}, "Preprocessor",
                                        ((1, 4, 4, 12), "int8"))
    yield "Postprocessor.__call__", Good(lambda: POST, {"tensor": zeros(1, 4, 4, 12)}, "Postprocessor",
                                         ((1, 8, 8, 3), "uint8"))
    yield "Preprocessor.geometry", Good(lambda: PRE.geometry, {"height": 4, "width": 8}, "Preprocessor.geometry")
    yield "Preprocessor.inverse", Good(lambda: lambda **keywords: s2dq.Preprocessor(**keywords).inverse(),
                                       {"scale": 1.0}, "Postprocessor")
    yield "set_num_threads", Good(None, {"n": None}, "set_num_threads")

    yield "interop.from_litert", Good(None, {"values": zeros(2, 3), "detail": (0.5, 0)}, "from_litert")
    yield "interop.to_litert", Good(None, {"q": q, "detail": (0.5, 0)}, "to_litert")
    yield "interop.from_onnx", Good(None, {"values": zeros(2, 3), "scale": 0.5}, "from_onnx")
    yield "interop.from_torch", Good(None, {"values": zeros(2, 3), "scale": 0.5}, "from_torch")
    yield "models.read_input", Good(None, {"path": "model.onnx"}, "read_input")
    yield "models.ModelInput.keywords", Good(lambda: MODEL.keywords, {}, "ModelInput.keywords")

    x, batch = zeros(4, 4, 4, 4), {"block_shape": [2, 2]}
    margins = {"block_shape": [1, 2, 2, 1]}
    for name, arguments in {
        "onnx.space_to_depth": {"x": x, "blocksize": 2}, "onnx.depth_to_space": {"x": x, "blocksize": 2},
        "openvino.space_to_depth": {"data": x, "mode": "blocks_first", "block_size": 2},
        "openvino.depth_to_space": {"data": x, "mode": "blocks_first", "block_size": 2},
        "openvino.space_to_batch": {"data": x, **margins, "pads_begin": [0] * 4, "pads_end": [0] * 4},
        "openvino.batch_to_space": {"data": x, **margins, "crops_begin": [0] * 4, "crops_end": [0] * 4},
        "nnapi.space_to_depth": {"input": x, "block_size": 2}, "nnapi.depth_to_space": {"input": x, "block_size": 2},
        "nnapi.space_to_batch_nd": {"input": x, **batch, "paddings": NO_PADDING},
        "nnapi.batch_to_space_nd": {"input": x, **batch},
        "tensorflow.space_to_depth": {"input": x, "block_size": 2},
        "tensorflow.depth_to_space": {"input": x, "block_size": 2},
        "tensorflow.space_to_batch_nd": {"input": x, **batch, "paddings": NO_PADDING},
        "tensorflow.space_to_batch": {"input": x, **batch, "paddings": NO_PADDING},
        "tensorflow.batch_to_space_nd": {"input": x, **batch, "crops": NO_PADDING},
        "tensorflow.batch_to_space": {"input": x, **batch, "crops": NO_PADDING},
        "tensorflow.required_space_to_batch_paddings": {"input_shape": [4, 4], **batch},
        "tensorflow.v1.space_to_batch": {"input": x, "paddings": NO_PADDING, "block_size": 2},
        "tensorflow.v1.batch_to_space": {"input": x, "crops": NO_PADDING, "block_size": 2},
    }.items():
        yield f"compat.{name}", Good(None, arguments, f"compat.{name}")
    for name in ("space_to_depth", "depth_to_space"):
        yield f"compat.tensorflow.v1.{name}", Good(None, {"input": x, "block_size": 2}, f"compat.tensorflow.{name}")

    yield "kernels.prepare", Good(lambda: lambda operator: kernels.prepare(operator, zeros(1, 4, 6, 4), 2),
                                  {"operator": s2dq.space_to_depth}, "prepare")
    yield "kernels.prepare, of x", Good(lambda: lambda x, block_size: kernels.prepare(s2dq.space_to_depth, x,
                                                                                      block_size),
                                        {"x": zeros(1, 4, 6, 4), "block_size": 2}, "space_to_depth")
    for name, arguments in {"pixel_shuffle": {"input": (1, 4, 2, 2), "upscale_factor": 2},
                            "pixel_unshuffle": {"input": (1, 1, 4, 4), "downscale_factor": 2},
                            "space_to_depth": {"x": (1, 4, 4, 4), "block_size": 2},
                            "depth_to_space": {"x": (1, 4, 4, 4), "block_size": 2},
                            "space_to_batch_nd": {"x": (1, 4, 4, 4), **batch, "paddings": NO_PADDING},
                            "batch_to_space_nd": {"x": (4, 4, 4, 4), **batch, "crops": NO_PADDING},
                            "pack_vect_c": {"x": (1, 4, 4, 4)}, "unpack_vect_c": {"x": (1, 1, 4, 4, 4)}}.items():
        first, shape = next(iter(arguments.items()))
        yield f"compat.torch.{name}", Good(None, {**arguments, first: Tensor(shape)}, name)
        if not name.startswith("p") and "vect" not in name:
            yield f"dask.{name}", Good(None, {**arguments, first: Lazy(shape)}, name)
    yield "dask.preprocess", Good(None, {"pre": PRE, "frames": Lazy((1, 8, 8, 3), "u1")}, "preprocess")


class Tensor(NamedTuple):
    """A torch.Tensor of zeros, made in the child."""

    shape: tuple

    def made(self):
        return importlib.import_module("torch").zeros(self.shape)


class Lazy(NamedTuple):
    """A Dask array of zeros, made in the child."""

    shape: tuple
    dtype: str = "i1"

    def made(self):
        return importlib.import_module("dask.array").zeros(self.shape, dtype=self.dtype)


GOOD = dict(good_calls())


# -------------------------------------------------------------------------------------------- hostile arguments


class HostileIndex:
    def __index__(self):
        raise RuntimeError("no index")


class HostileClass:
    @property
    def __class__(self):
        raise RuntimeError("no class")


class HostileArray:
    """Makes an array of who knows what when it is asked; nobody may ask."""

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("no array")


class HostileEquality:
    __hash__ = None

    def __eq__(self, other):
        raise RuntimeError("no comparison")


class Endless(list):
    """A list whose iterator never ends."""

    def __iter__(self):
        while True:
            yield 1

    def __repr__(self):
        return "Endless()"


class HostileLength(list):
    def __len__(self):
        raise RuntimeError("no length")

    __iter__ = __getitem__ = __len__


class HostilePath:
    def __fspath__(self):
        raise RuntimeError("no path")


class HostileMapping(dict):
    def get(self, *arguments):
        raise RuntimeError("no entries")

    __getitem__ = __contains__ = get


class Out(NamedTuple):
    """An `out` that does not fit: what to make of the poisoned bytes of one that does."""

    label: str
    make: Any

    def __repr__(self):
        return self.label


def subclassed(array):
    return np.ma.MaskedArray(array)


UNFIT = [
    (Out("a list", lambda array: array.tolist()), TypeError, "list", "must be an ndarray"),
    (Out("a memoryview", memoryview), TypeError, "memoryview", "must be an ndarray"),
    (Out("masked", subclassed), TypeError, "MaskedArray", "must be an ndarray"),
    (Out("strings", lambda array: array.view(np.uint8).view("S1")), TypeError, "S1", "must have dtype"),
    (Out("fields", lambda array: array.view([("f", array.dtype)])), TypeError, "('f'", "must have dtype"),
    (Out("an axis more", lambda array: array[np.newaxis]), ValueError, "(1, ", "must have shape"),
    (Out("flat", lambda array: array.reshape(-1)), ValueError, ",)", "must have shape"),
    (Out("empty", lambda array: array[:0]), ValueError, "(0, ", "must have shape"),
    (Out("read-only", lambda array: frozen(array)), ValueError, "read-only", "must be writeable"),
]


def frozen(array):
    array.flags.writeable = False
    return array


RELEASED = memoryview(b"abcd")
RELEASED.release()


# ------------------------------------------------------------------------------------------------------ the table


class Row(NamedTuple):
    function: str
    changes: dict  # the offending argument first
    error: type
    value: str  # what the message has to give of the value
    rule: str  # and of the rule
    named: str  # the argument, as the message names it
    source: str = ""

    def __str__(self):
        changes = ", ".join(f"{name}={label(value)}" for name, value in self.changes.items())
        return f"{self.function}({changes}){f' {self.source}' if self.source else ''}".replace("\0", "0")


def label(value):
    """The same in every run, so no addresses; and short."""
    if isinstance(value, np.ndarray) and value.size > 4:
        return f"{value.dtype}{value.shape}"
    try:
        text = repr(value)
    except ValueError:  # too long an integer
        return f"{type(value).__name__} of more digits than Python prints"
    return ascii(re.sub(r"<(?:[\w.]*\.)?(\w+) object at 0x\w+>", r"\1()", text))[1:41]


class Says(NamedTuple):
    """A value, and what a message says of it where that is not its repr or its type."""

    value: Any
    text: str


def said(value):
    if type(value) is int and abs(value) >= HUGE:
        return "<int>"
    plain = value is None or isinstance(value, (bool, int, float, complex, str, bytes, list, tuple, np.generic))
    return repr(value)[:20] if plain else type(value).__name__


def rows(functions, argument, error, rule, *values, named=None, source="", **others):
    """Rows in which `argument` takes each of `values` in turn and `others` are as given."""
    for function in (functions,) if isinstance(functions, str) else functions:
        for value in values:
            kept, text = value if type(value) is Says else (value, said(value))
            yield Row(function, {argument: kept, **others}, error, text, rule, named or argument, source)


def where(suffix, argument, system=""):
    """Functions of the compat modules whose name ends so and that take the argument."""
    return [name for name in GOOD if name.startswith(f"compat.{system}") and name.endswith(suffix)
            and "torch" not in name and argument in inspect.signature(public(name)).parameters]


# No arrays that can be viewed in place; messages give their types.
NO_ARRAYS = (None, Says("x", "str"), Says(1.5, "float"), object(), HostileArray(), Says(np.ma.zeros(4, "u1"), "masked"))
OPERATORS = [name for name in GOOD if "." not in name and name in dir(reference) and name not in FROM_FRAMES]
WITH_OUT = [name for name, good in GOOD.items() if good.result]
MAKERS = ("Preprocessor", "Postprocessor")
S2D, D2S = "space_to_depth", "depth_to_space"
EVERY_D2S = [D2S, *where(D2S, "blocksize"), *where(D2S, "block_size")]
EVERY_S2D = [S2D, *where(S2D, "blocksize"), *where(S2D, "block_size")]


def block_of(function):
    names = inspect.signature(public(function)).parameters
    return next(name for name in ("block_size", "blocksize", "upscale_factor") if name in names)


def tensor_of(function):
    return next(iter(GOOD[function].arguments))


def advisories():
    """What crashed others. The numbers are those of their reproductions where these are public."""
    for functions, source in ((EVERY_S2D, "CVE-2021-29587"), (EVERY_D2S, "CVE-2021-29595"),
                              ([f"compat.onnx.{S2D}", f"compat.onnx.{D2S}"], "onnxruntime#32039"),
                              ([S2D, D2S], "keras#22126")):
        for function in functions:  # a block of 0, or below
            yield from rows(function, block_of(function), ValueError, "must be at least", 0, -1, source=source)
    for functions, window, source in (
        (("batch_to_space_nd", "batch_to_space", *where("batch_to_space_nd", "block_shape")), "crops",
         "CVE-2021-29593"),
        (("space_to_batch_nd", "space_to_batch", *where("space_to_batch_nd", "block_shape")), "paddings",
         "CVE-2021-29597"),
    ):
        for function in functions:
            yield from rows(function, "block_shape", ValueError, "must be at least 1", Says((0, 2), "0"),
                            Says([2, 0], "0"), source=source)
            # Two negative entries whose product is above 0.
            yield from rows(function, "block_shape", ValueError, "must be at least 1",
                            Says((-1879048192,) * 2, "-1879048192"), source="CVE-2022-29203")
            if window in inspect.signature(public(function)).parameters:
                yield from rows(function, window, ValueError, "must be at least 0", Says(((0, -1), (0, 0)), "-1"),
                                source="CVE-2022-29203")
    shape = {"compat.onnx": "NCHW"}
    for function in EVERY_D2S:  # squares that wrap, in 32 bits and in 64
        first, block = tensor_of(function), block_of(function)
        nchw = shape.get(function.rpartition(".")[0]) or "openvino" in function
        for extents, number, source in (
            ((4, 1, 1, 1), 2**31 - 1, "tensorflow#46939"), ((3, 2, 3, 4), 2**31 - 1, "tensorflow#61540"),
            ((1, 1, 1, 1), 65536, "XNNPACK#11048"), ((1, 1, 2, 2), 2**63 - 1, "pytorch#172011"),
            ((1, 4, 2, 2), 545460846592, "pytorch#163154"), ((16, 256, 72, 72), 10**10, "pytorch#83232"),
            ((1, 1363, 1, 1), 8070450532247928832, "pytorch#146795"), ((0, 12, 2, 3), 536870912, "tensorflow#61541"),
        ):
            x = np.broadcast_to(np.float32(0), extents if nchw else (extents[0], *extents[2:], extents[1]))
            yield from rows(function, block, ValueError, "not divisible", number, source=source,
                            **{first: x})
        # Nothing to move, and extents that no array has.
        x = zeros(1, 0, 0, 9) if nchw else zeros(1, 0, 9, 0)
        yield from rows(function, block, ValueError, "2**63 - 1 bytes",
                        Says(4323455642275676160, str(9 * 4323455642275676160)), source="pytorch#153327",
                        named="result", **{first: x})
    for function in EVERY_S2D:
        first, block = tensor_of(function), block_of(function)
        x = np.broadcast_to(np.int8(0), (1, 300, 300, 100000))
        nchw = "onnx" in function or "openvino" in function
        yield from rows(function, block, ValueError, "not divisible", 7, source="XNNPACK#10907", **{first: x})
        yield from rows(function, first, ValueError, "not divisible", Says(zeros(1, 1, 7, 8), "(1, 1, 7, 8)"),
                        source="onnx#8467" if nchw else "onnx#8467 in NHWC")
    for axis in (2**31 - 1, -(2**31), -3, 2, HUGE):
        source = "CVE-2022-21727" if abs(axis) > 2 else "CVE-2022-21726"
        least = "must be at least -64" if axis == -(2**31) else "is not one of the 2 dimensions"
        yield from rows(("quantize", "QuantizedTensor"), "axis", ValueError, least, axis, source=source,
                        scale=[0.5, 0.25, 1.0])


def outs():
    for function in WITH_OUT:
        for out, error, value, rule in UNFIT:
            # dequantize lets `out` choose the type; its rule is a list of them.
            yield from rows(function, "out", error, rule, Says(out, value))


def quantization():
    both = ("quantize", "QuantizedTensor", "requantize", "interop.from_onnx", "interop.from_torch")
    yield from rows(both, "scale", ValueError, "finite", 0, 0.0, -1.0, 5e-324, 1e39, float("nan"), float("inf"),
                    HUGE, np.float32(0), Says(np.array(0.0, "f4"), "array(0."))
    yield from rows(both, "scale", TypeError, "real number", "1", b"1", True, 1j)
    yield from rows(both, "zero_point", ValueError, "cannot be held by dtype int8", 128, HUGE)
    yield from rows(both, "zero_point", ValueError, "must be at least -128", -129, -HUGE)
    yield from rows(both, "zero_point", TypeError, "integer", 0.5, float("nan"), "0", True)
    for function in ("quantize", "QuantizedTensor", "requantize"):
        # Read before it is known how many there have to be: neither memory nor time is spent on them.
        yield from rows(function, "scale", ValueError, "at most 65536 entries", Says(Endless([1.0]), "Endless()"),
                        Says(range(1, 10**12), "range(1, 10"),
                        Says(np.broadcast_to(np.float32(1), 10**10), "10000000000"))
        yield from rows(function, "zero_point", ValueError, "at most 65536 entries", Says(Endless([1]), "Endless()"),
                        Says(range(10**12), "range(0, 10"),
                        Says(np.broadcast_to(np.int8(1), 10**10), "10000000000"))
        yield from rows(function, "scale", TypeError, "real number", Says([0.5, "1"], "'1'"), None)
        yield from rows(function, "scale", TypeError, "view in place", object(), HostileArray())
    for function in ("quantize", "QuantizedTensor"):
        yield from rows(function, "axis", TypeError, "must be an integer", 0.0, "0", True, HostileIndex(),
                        scale=[1.0] * 3)
        yield from rows(function, "axis", ValueError, "both are single numbers", Says(0, "axis"))
        yield from rows(function, "scale", ValueError, "entries, axis 1", Says([1.0, 2.0], "2"), axis=1)
        yield from rows(function, "scale", ValueError, "axis must say", Says([1.0] * 3, "(3,)"))
        yield from rows(function, "scale", ValueError, "one per index", Says(np.ones((2, 3)), "(2, 3)"), axis=1)
    yield from rows("requantize", "scale", ValueError, "no axis", Says([1.0] * 4, "(4,)"))
    yield from rows(("quantize", "requantize"), "dtype", TypeError, "must be int8", "int4", Says("float32", "float32"),
                    Says("O", "object"), 8, object(),
                    HostileIndex(), Says(np.dtype("S1"), "|S1"))
    yield from rows("quantize", "dtype", TypeError, "must be int8", None)
    yield from rows("quantize", "x", TypeError, "must hold float16", Says(zeros(2, dtype="i4"), "int32"),
                    Says(zeros(2, dtype="?"), "bool"), Says(zeros(2, dtype="c8"), "complex64"),
                    Says(zeros(2, dtype="S4"), "|S4"), Says(np.zeros(2, "f4,f4"), "f0"),
                    Says(np.zeros(2, "M8[s]"), "datetime64"))
    yield from rows("quantize", "x", TypeError, "x must", *NO_ARRAYS, Says([["1"]], "str"))
    yield from rows("quantize", "x", MemoryError, "no memory",
                    Says(np.broadcast_to(np.float32(0), (2**15, 2**15)), "(32768, 32768)"))
    yield from rows("quantize", "x", MemoryError, "no memory",
                    Says(np.broadcast_to(np.float32(0), (2**30, 2**30)), "(1073741824, 1073741824)"))
    values = "QuantizedTensor", "interop.from_onnx", "interop.from_torch", "interop.from_litert"
    yield from rows(values, "values", TypeError, "must have dtype int8", Says(zeros(3, dtype="f4"), "float32"),
                    Says(zeros(3, dtype="i8"), "int64"), Says(zeros(3, dtype="?"), "bool"),
                    Says(np.zeros(3, "S1"), "|S1"), Says(np.zeros(3, "m8[s]"), "timedelta64"))
    yield from rows(values, "values", TypeError, "values must", *NO_ARRAYS)
    for function in ("dequantize", "requantize"):
        yield from rows(function, "q", TypeError, "must be a QuantizedTensor", None, Says(zeros(3), "ndarray"),
                        Says("q", "str"), Says(1, "int"), HostileIndex())
    yield from rows(("dequantize", "QuantizedTensor.dequantize"), "out", TypeError, "must have dtype float16",
                    Says(Out("bytes", lambda array: array.view("i1")), "int8"),
                    Says(Out("ints", lambda array: array.view("i4")), "int32"))


def numbers_of_threads():
    functions = [*OPERATORS, *FROM_FRAMES, "QuantizedTensor.dequantize", *MAKERS]
    for names, argument in ((functions, "num_threads"), ("set_num_threads", "n")):
        yield from rows(names, argument, ValueError, "must be at least 1", 0, -(2**31), -HUGE)
        yield from rows(names, argument, TypeError, "must be an integer", 2.0, "2", True, HostileIndex())


def frames():
    """Preprocessor, Postprocessor, the calls of those, geometry and inverse."""
    yield from rows(MAKERS, "scale", ValueError, "finite", 0, -1.0, 5e-324, 1e39, float("nan"), float("-inf"), HUGE)
    yield from rows(MAKERS, "scale", ValueError, "must be given", Says(None, "int8"))
    yield from rows(MAKERS, "scale", TypeError, "must be a real number", "1", [1.0], True, 1j, object())
    yield from rows(MAKERS, "zero_point", ValueError, "cannot be held by dtype int8", 128, HUGE)
    yield from rows(MAKERS, "zero_point", ValueError, "must be at least -128", -129)
    yield from rows(MAKERS, "zero_point", TypeError, "must be an integer", 1.0, None, "1", True, HostileIndex())
    yield from rows(MAKERS, "dtype", TypeError, "must be int8", "int16", "O", None, 8, object(), HostileIndex())
    yield from rows("Preprocessor", "scale", ValueError, "must not be given", Says(1.0, "float32"), dtype="float32")
    yield from rows("Preprocessor", "zero_point", ValueError, "must be 0", 1, dtype="float32", scale=None)
    yield from rows("Preprocessor.inverse", "dtype", TypeError, "must be int8 or uint8", "float32", "float16",
                    scale=None)
    for argument in ("mean", "std", "rescale"):
        yield from rows(MAKERS, argument, TypeError, "must be a real number", "1", True, 1j, object())
        yield from rows(MAKERS, argument, ValueError, "must be finite", float("nan"), float("inf"), HUGE)
    yield from rows(MAKERS, "rescale", ValueError, "must not be 0", Says(0, "0"))
    yield from rows(MAKERS, "std", ValueError, "must be above 0", 0, -1.0, [1.0, 0.0])
    for argument in ("mean", "std", "pad_value"):
        yield from rows(MAKERS, argument, ValueError, "one per channel", [], Says(np.ones((1, 3)), "array("))
        yield from rows(MAKERS, argument, ValueError, "at most 65536 entries", Says(Endless([1]), "Endless()"),
                        Says(range(1, 10**12), "range(1, 10"))
        yield from rows(MAKERS, argument, ValueError, "one per channel",
                        Says(np.broadcast_to(1.0, 10**10), "array("))
    yield from rows(MAKERS, "mean", ValueError, "disagree", Says([0.0, 0.0], "2 in mean, 3 in std"), std=[1.0] * 3)
    yield from rows(MAKERS, "pad_value", ValueError, "grey level", -1, 256, 0.5, [0, 256])
    yield from rows(MAKERS, "pad_value", ValueError, "must be finite", float("nan"), HUGE)
    yield from rows(MAKERS, "pad_value", TypeError, "must be a real number", None, "114", True)
    yield from rows(MAKERS, "input_format", ValueError, "must be one of NHWC, NCHW", "NCHW_VECT_C", "nhwc", "NWC")
    yield from rows(MAKERS, "data_format", ValueError, "must be one of NHWC, NCHW", "NWC", "", "NDHWC")
    yield from rows(MAKERS, "mode", ValueError, "must be one of DCR", "dcr", "")
    for argument in ("input_format", "data_format", "mode"):
        yield from rows(MAKERS, argument, TypeError, "must be a str", None, 1, b"NHWC")
    for argument in ("block_size", "size"):
        yield from rows(MAKERS, argument, ValueError, "must be at least 1", 0, -2, Says((0, 2), "0"))
        yield from rows(MAKERS, argument, TypeError, "must be an integer", 2.0, "2", True, HostileIndex(),
                        Says(RELEASED, "released"))
        yield from rows(MAKERS, argument, ValueError, "one per spatial axis", (2, 2, 2), [])
        yield from rows(MAKERS, argument, ValueError, "at most 64 entries", Says(Endless([2]), "Endless()"),
                        Says(range(10**12), "range(0, 10"))
    yield from rows(MAKERS, "size", ValueError, "not divisible", 7, HUGE + 1, block_size=2)
    yield from rows(MAKERS, "vect", ValueError, "must be at least 1", 0, -4)
    yield from rows(MAKERS, "vect", TypeError, "must be an integer", 4.0, None, "4", True)
    yield from rows(MAKERS, "reverse_channels", TypeError, "must be True or False", 1, None, "yes")

    call = "Preprocessor.__call__"
    yield from rows(call, "frames", TypeError, "must be uint8 or float32", Says(zeros(8, 8, 3), "int8"),
                    Says(zeros(8, 8, 3, dtype="f8"), "float64"), Says(zeros(8, 8, 3, dtype="?"), "bool"),
                    Says(zeros(8, 8, 3, dtype="S1"), "|S1"), Says(zeros(8, 8, 3, dtype=">f4"), ">f4"))
    yield from rows(call, "frames", TypeError, "frames must", *NO_ARRAYS)
    yield from rows(call, "frames", ValueError, "dimensions", *(
        Says(zeros(*shape, dtype="u1"), f"not {len(shape)}") for shape in ((), (8,), (8, 8), (1, 1, 8, 8, 3))))
    yield from rows(call, "frames", ValueError, "larger than size", Says(zeros(9, 8, 3, dtype="u1"), "9"),
                    Says(np.broadcast_to(np.uint8(0), (8, 2**40, 3)), "1099511627776"))
    yield from rows(call, "frames", MemoryError, "no memory", Says(np.broadcast_to(np.uint8(0), (2**25, 8, 8, 3)),
                                                                   "(33554432, 4, 4, 12)"), named="result")
    call = "Postprocessor.__call__"
    yield from rows(call, "tensor", TypeError, "must have dtype int8", Says(zeros(1, 4, 4, 12, dtype="u1"), "uint8"),
                    Says(zeros(1, 4, 4, 12, dtype="f4"), "float32"))
    yield from rows(call, "tensor", TypeError, "tensor must", *NO_ARRAYS)
    yield from rows(call, "tensor", ValueError, "dimensions", Says(zeros(), "not 0"), Says(zeros(4, 4), "not 2"),
                    Says(zeros(1, 1, 4, 4, 12), "not 5"))
    yield from rows(call, "tensor", ValueError, "not divisible", Says(zeros(1, 4, 4, 11), "11"))
    yield from rows(call, "tensor", ValueError, "but size is", Says(zeros(1, 4, 5, 12), "(8, 10)"))
    yield from rows(call, "tensor", ValueError, "but the keywords say", Says(quantized(1, 4, 4, 12), "0.5"))
    yield from rows(call, "tensor", ValueError, "single scale", Says(
        quantized(1, 4, 4, 12, scale=np.ones(12), axis=3), "axis 3"))
    yield from rows(call, "frame", ValueError, "larger than size", Says((9, 8), "9"), Says((HUGE, 8), "<int>"))
    yield from rows(call, "frame", ValueError, "at least 0", Says((-1, 8), "-1"))
    yield from rows(call, "frame", ValueError, "pair of integers", (8,), (8, 8, 3))
    yield from rows(call, "frame", TypeError, "integer", 8, "8x", Says((8.0, 8), "8.0"), Says((True, 8), "True"))
    for argument in ("height", "width"):
        yield from rows("Preprocessor.geometry", argument, ValueError, "larger than size", 9, HUGE)
        yield from rows("Preprocessor.geometry", argument, ValueError, "at least 0", -1)
        yield from rows("Preprocessor.geometry", argument, TypeError, "must be an integer", 8.0, None, "8", True,
                        HostileIndex())


def readers():
    """interop and models."""
    detail = functools.partial(rows, ("interop.from_litert", "interop.to_litert"), "detail")
    yield from detail(TypeError, "must be a dict", None, 5, "x", (), (1.0,), Says((1.0, 0, 0), "(1.0, 0, 0)"), object())
    yield from detail(ValueError, "must have quantization_parameters", Says({}, "[]"), Says({"a": 1}, "'a'"))
    yield from detail(ValueError, "is not quantized", Says((0.0, 0), "scale of 0"), named="pair")
    yield from detail(ValueError, "is not quantized", Says({"scales": []}, "no scales"), named="scales")
    yield from detail(ValueError, "sparse", Says({"sparsity_parameters": {"a": 1}}, "sparse"), named="tensor")
    yield from detail(TypeError, "must be a dict", Says({"sparsity_parameters": np.zeros(2)}, "array("))
    yield from detail(TypeError, "must be a dtype", *(
        Says({**LITERT, "dtype": dtype}, text) for dtype, text in
        (("int7", "'int7'"), ("\ud800", "ud800"), (HUGE, "<int>"), ([HUGE], "[<int>]"), (object(), "object"))))
    yield from detail(TypeError, "dtype of the model's tensor", Says({**LITERT, "dtype": np.uint8}, "uint8"),
                      named="values")
    yield from detail(TypeError, "array of one dimension", Says({"scales": 1.0}, "1.0"),
                      Says({"scales": [[1]]}, "[[1]]"),
                      Says({"scales": None}, "None"), Says({"scales": [1.0], "zero_points": 0}, "not 0"))
    yield from detail(TypeError, "regular list", Says({"scales": [1.0, [2.0]]}, "[1.0, [2.0]]"),
                      Says({"scales": [1.0], "zero_points": [0, [1]]}, "[0, [1]]"))
    yield from detail(ValueError, "each block", Says({"scales": [1.0], "block_size": 2}, "block_size is 2"),
                      Says({"scales": [1.0], "block_size": HUGE}, "<int>"), named="block_size")
    yield from detail(ValueError, "at most 65536", Says({"scales": Endless([1.0])}, "Endless()"))
    yield from rows("interop.to_litert", "q", TypeError, "must be a QuantizedTensor", None, Says(zeros(3), "ndarray"),
                    object())
    yield from rows("interop.to_litert", "q", ValueError, "requantize it",
                    Says(quantized(2, zero_point=1), "zero_point=1"))

    name = "interop.from_onnx"
    yield from rows(name, "block_size", ValueError, "each block", 2, HUGE)
    yield from rows(name, "block_size", ValueError, "at least 0", -1)
    yield from rows(name, "block_size", TypeError, "must be an integer", 0.0, None, "0", False)
    yield from rows(name, "axis", ValueError, "must be at least -2", -3, -HUGE, scale=[1.0] * 3)
    yield from rows(name, "axis", ValueError, "is not one of the 2 dimensions", 2, 2**63, HUGE, scale=[1.0] * 3)
    yield from rows((name, "interop.from_torch"), "axis", TypeError, "must be an integer", 1.0, "1", True,
                    HostileIndex())
    yield from rows(name, "axis", TypeError, "must be an integer", None)
    yield from rows("interop.from_torch", "axis", ValueError, "is not one of the 2 dimensions", 2, HUGE)
    yield from rows((name, "interop.from_torch"), "scale", ValueError, "each block", Says(np.ones((2, 3)), "(2, 3)"))
    yield from rows((name, "interop.from_torch"), "scale", ValueError, "float32 cannot hold",
                    Says(np.array(0.1), "0.1"))
    for argument in ("scale", "zero_point"):
        yield from rows((name, "interop.from_torch"), argument, TypeError, "regular list", Says([1, [2]], "[1, [2]]"))
        yield from rows((name, "interop.from_torch"), argument, TypeError, "view in place", object(), HostileArray(),
                        Says(RELEASED, "memoryview"))
        yield from rows((name, "interop.from_torch"), argument, ValueError, "at most 65536",
                        Says(Endless([1]), "Endless()"), Says(range(1, 10**12), "range(1, 10"))
    yield from rows("interop.from_torch", "scale", ValueError, "must be given", Says(None, "of their own"))
    yield from rows(name, "zero_point", TypeError, "must have the type of the values", Says(np.uint8(0), "uint8"),
                    Says(np.zeros(1, "f4"), "float32"))
    yield from rows(name, "zero_point", ValueError, "shape of scale", Says(np.zeros(2, "i1"), "(2,)"))
    yield from rows(name, "zero_point", ValueError, "must be 0", 5, values=zeros(2, 3, dtype="i4"))

    name = "models.read_input"
    yield from rows(name, "path", TypeError, "must be a str or a path", None, 5, 1.5, Says([], "[]"), object(),
                    HostilePath(), Says(np.zeros(2), "array("))
    yield from rows(name, "path", ValueError, "that a file can have", "a\0.onnx", "\ud800.onnx", b"a\0.tflite")
    yield from rows(name, "path", ValueError, "ends in .tflite or .onnx", "", "model.pb", "onnx", b"x",
                    named="name of a model")
    yield from rows(name, "name", TypeError, "must be a str", 5, b"x", Says([], "[]"), object())
    name = "models.ModelInput.keywords"
    yield from rows(name, "block_size", ValueError, "at least 1", 0, -1, Says((1, 0), "0"))
    yield from rows(name, "block_size", TypeError, "must be an integer", 1.0, "1", None, Says(RELEASED, "released"))
    yield from rows(name, "block_size", ValueError, "as its channels", 2, HUGE)
    yield from rows(name, "channels", ValueError, "at least 1", 0, -3)
    yield from rows(name, "channels", TypeError, "must be an integer", 3.0, None, True)
    yield from rows(name, "channels", ValueError, "as its channels", 5, HUGE)
    yield from rows(name, "data_format", ValueError, "one of NHWC, NCHW", "NCHW_VECT_C", "")
    yield from rows(name, "data_format", TypeError, "must be a str", 1, b"NHWC")


def other_systems():
    """The adapters: every argument of every function, of the wrong kind and with impossible values."""
    for function, good in GOOD.items():
        if not function.startswith("compat.") or "torch" in function:
            continue
        first = tensor_of(function)
        names = inspect.signature(public(function)).parameters
        if first != "input_shape":
            yield from rows(function, first, TypeError, f"{first} must", *NO_ARRAYS)
            yield from rows(function, first, ValueError, "dimensions", Says(zeros(), "not 0"))
            if "nnapi" not in function:
                yield from rows(function, first, TypeError, "must be an array", Says(quantized(4, 4, 4, 4), ".values"))
        for block in {"block_size", "blocksize"} & set(names):
            yield from rows(function, block, TypeError, "must be an integer", None, 2.0, "2", True, [2, 2],
                            HostileIndex())
            yield from rows(function, block, ValueError, "divisible", HUGE + 1, 2**63 + 1, 7)
        if "block_shape" in names and "v1" not in function:
            yield from rows(function, "block_shape", TypeError, "integers", None, 2.5, "22",
                            Says(np.ones(2), "float64"))
            yield from rows(function, "block_shape", TypeError, "must be an", object(), HostileArray(),
                            Says([2.0] * len(good.arguments["block_shape"]), "2.0"))
            yield from rows(function, "block_shape", ValueError, "at most 64 entries", Says(Endless([1]), "Endless()"),
                            Says(range(1, 10**12), "range(1, 10"))
        for window in {"paddings", "crops", "base_paddings"} & set(names):
            yield from rows(function, window, ValueError, "at least 0", Says(((0, 0), (-HUGE, 0)), "<int>"))
            yield from rows(function, window, ValueError, "shape [2, 2]", [], Says(((0, 0),), "((0, 0),)"),
                            Says(((0, 0, 0),) * 2, "(0, 0, 0)"))
            yield from rows(function, window, TypeError, "integer", 0, "00", Says(((0, 0), (0.0, 0)), "0.0"),
                            Says(np.zeros((2, 2)), "float64"), Says(((0, 0), (HostileIndex(), 0)), "HostileIndex"))
        for window in {"pads_begin", "pads_end", "crops_begin", "crops_end"} & set(names):
            yield from rows(function, window, ValueError, "must be 0", Says([1, 0, 0, 0], "1"))
            yield from rows(function, window, ValueError, "at least 0", Says([0, 0, -1, 0], "-1"))
            yield from rows(function, window, ValueError, "4 integers", [0, 0, 0], [])
            yield from rows(function, window, TypeError, "integer", None, 0, Says([0, 0.0, 0, 0], "0.0"))
        for argument, other in (("mode", "focus"), ("data_format", "NDHWC")):
            if argument in names:
                yield from rows(function, argument, ValueError, "must be one of", other, "", "dcr")
                yield from rows(function, argument, TypeError, "must be a str", 1, b"DCR")
                if "tensorflow" not in function:  # where None is NHWC
                    yield from rows(function, argument, TypeError, "must be a str", None)
        if "name" in names:
            yield from rows(function, "name", TypeError, "must be a str or None", 1, b"x", object())
        if "nchw" in names:
            yield from rows(function, "nchw", TypeError, "must be a bool", 1, None, "NCHW")
    name = "compat.tensorflow.required_space_to_batch_paddings"
    yield from rows(name, "input_shape", TypeError, "integer", None, 4, Says([4.0, 4], "4.0"))
    yield from rows(name, "input_shape", ValueError, "at least 0", Says([-1, 4], "-1"))
    yield from rows(name, "input_shape", ValueError, "must have 2 entries", [4], [4, 4, 4])
    yield from rows(name, "input_shape", ValueError, "at most 64 entries", Says(range(10**12), "range(0, 10"))
    yield from rows(name, "base_paddings", ValueError, "int32", Says(((2**31, 0), (0, 0)), "2147483648"),
                    named="paddings")
    for function, window in (("compat.tensorflow.v1.space_to_batch", "paddings"),
                             ("compat.tensorflow.v1.batch_to_space", "crops")):
        yield from rows(function, "block_shape", ValueError, "are the same", Says(2, "block_shape"))
        yield from rows(function, "block_shape", ValueError, "at least 1", 0, block_size=None)
        yield from rows(function, "block_shape", TypeError, "must be an integer", [2, 2], 2.0, block_size=None)
        yield from rows(function, window, TypeError, "integer", None)


def operators():
    """The operators themselves have a table of their own in test_contract.py; here what that one lacks."""
    for function in OPERATORS:
        yield from rows(function, "x", TypeError, "view in place", HostileArray(), Says(HostileEquality(), "Hostile"))
        for argument in ("block_size", "block_shape", "paddings", "crops"):
            if argument in inspect.signature(getattr(s2dq, function)).parameters:
                yield from rows(function, argument, ValueError, "at most 64 entries", Says(Endless([1]), "Endless()"),
                                Says(range(1, 10**12), "range(1, 10"),
                                Says([[0, 0]] * 65, "[[0, 0]"))
        x = np.broadcast_to(np.int8(0), {5: (2**10, 1, 2**10, 2**10, 4), 4: (12, 2**14, 6 * 2**10, 12)}
                            [GOOD[function].arguments["x"].ndim])
        yield from rows(function, "x", MemoryError, "no memory", Says(x, str(x.shape[-1])), named="result")
    for argument in ("data_format", "mode", "out_format"):
        yield from rows((S2D, D2S), argument, ValueError, "must be one of", "\0", "NHWC\n")
    for function in (S2D, D2S):
        yield from rows(function, "vect", ValueError, "at least 1", 0, out_format="NCHW_VECT_C")
        yield from rows(function, "channels", ValueError, "contradicts", 2**64)
    yield from rows("pack_vect_c", "vect", ValueError, "at least 1", -(2**64))
    yield from rows("pack_vect_c", "data_format", ValueError, "must be one of", "NDHWC")
    yield from rows("unpack_vect_c", "data_format", TypeError, "must be a str", None)
    yield from rows("unpack_vect_c", "channels", ValueError, "does not fill", 9, 2**63)
    for function in (S2D, "space_to_batch_nd", "space_to_batch", "pack_vect_c"):
        yield from rows(function, "pad_value", ValueError, "cannot be held by dtype int8", 128, float("nan"), 0.5)
        yield from rows(function, "pad_value", TypeError, "must be a value of dtype int8", "0", True, object(),
                        np.timedelta64(1), np.timedelta64(1, "D"))


def prepared():
    yield from rows("kernels.prepare", "operator", TypeError, "must be an operator of s2dq", None, 3, "space_to_depth",
                    object(), HostileEquality(), Says(print, "print"), Says(s2dq.quantize, "quantize"),
                    Says(PRE.geometry, "geometry"))
    yield from rows("kernels.prepare, of x", "x", TypeError, "must be an array", None, Says("x", "str"), HostileArray(),
                    quantized(1, 4, 6, 4))
    yield from rows("kernels.prepare, of x", "x", TypeError, "hold references",
                    Says(zeros(1, 4, 6, 4, dtype=object), "object"), Says(zeros(1, 4, 6, 4, dtype="T"), "StringDType"),
                    named="elements")
    yield from rows("kernels.prepare, of x", "x", ValueError, "not divisible", Says(zeros(1, 3, 6, 4), "3"),
                    named="height")
    yield from rows("kernels.prepare, of x", "block_size", ValueError, "not divisible", 65536, 2**63, HUGE)
    yield from rows("kernels.prepare, of x", "block_size", TypeError, "must be an integer", 2.0, "2", True, None)


def where_importable():
    """Rows for the packages that need not be there."""
    name = "compat.torch.pixel_shuffle"
    yield from rows(name, "upscale_factor", ValueError, "not divisible", 545460846592, source="pytorch#163154")
    yield from rows(name, "upscale_factor", ValueError, "not divisible", 8070450532247928832,
                    input=Tensor((1, 1363, 1)), source="pytorch#146795")
    yield from rows(name, "upscale_factor", ValueError, "not divisible", 2**63 - 1, input=Tensor((1, 1, 2, 2)),
                    source="pytorch#172011")
    yield from rows(name, "upscale_factor", ValueError, "2**63 - 1 bytes",
                    Says(4323455642275676160, str(9 * 4323455642275676160)), input=Tensor((0, 0, 9)),
                    source="pytorch#153327", named="result")
    for name, argument in (("pixel_shuffle", "upscale_factor"), ("pixel_unshuffle", "downscale_factor")):
        yield from rows(f"compat.torch.{name}", argument, ValueError, "at least 1", 0, -2)
        yield from rows(f"compat.torch.{name}", argument, ValueError, "not divisible", 2**70, HUGE)
        yield from rows(f"compat.torch.{name}", argument, TypeError, "must be an integer", 2.0, "2", True, None,
                        HostileIndex())
        yield from rows(f"compat.torch.{name}", "input", TypeError, "torch.Tensor", None,
                        Says(zeros(1, 4, 2, 2), "ndarray"))
        yield from rows(f"compat.torch.{name}", "input", ValueError, "dimensions", Says(Tensor((4, 2)), "not 2"))
    for package, kind in (("compat.torch", "torch.Tensor"), ("dask", "Dask array")):
        for name in (S2D, D2S):
            function = f"{package}.{name}"
            yield from rows(function, "block_size", ValueError, "at least 1", 0, -1)
            yield from rows(function, "block_size", ValueError, "not divisible", 65536, 2**63, HUGE)
            yield from rows(function, "block_size", TypeError, "must be an integer", 2.0, "2", True, HostileIndex())
            yield from rows(function, "data_format", ValueError, "must be one of", "NHCW")
            yield from rows(function, "mode", TypeError, "must be a str", 5)
        for name, window in (("space_to_batch_nd", "paddings"), ("batch_to_space_nd", "crops")):
            yield from rows(f"{package}.{name}", "block_shape", ValueError, "at least 1", Says([0, 2], "0"),
                            Says([-1, -1], "-1"))
            yield from rows(f"{package}.{name}", window, ValueError, "at least 0", Says(((0, -1), (0, 0)), "-1"))
        for name in (S2D, D2S, "space_to_batch_nd", "batch_to_space_nd"):
            yield from rows(f"{package}.{name}", "x", TypeError, kind, None, Says(zeros(4, 4, 4, 4), "ndarray"))
    yield from rows("compat.torch.pack_vect_c", "vect", ValueError, "at least 1", 0)
    yield from rows("compat.torch.unpack_vect_c", "x", ValueError, "dimensions", Says(Tensor((1, 4, 4, 4)), "not 4"))
    yield from rows("dask.preprocess", "pre", TypeError, "must be a Preprocessor", Says(5, "int"), None)
    yield from rows("dask.preprocess", "frames", TypeError, "Dask array", None)


GROUPS = {
    make.__name__: [*make()]
    for make in (advisories, outs, quantization, numbers_of_threads, frames, readers, other_systems, operators,
                 prepared)
}
for _row in where_importable():
    GROUPS.setdefault("torch" if "torch" in _row.function else "dask", []).append(_row)


# --------------------------------------------------------------------------------------------------- in the children


def call(row, **more):
    """Call as the row says; the exception, and the seconds of work it took to refuse."""
    import time

    good = GOOD[row.function]
    function = good.find() if good.find else public(row.function)
    arguments = {**good.arguments, **row.changes, **more}
    arguments = {name: value.made() if isinstance(value, Tensor | Lazy) else value for name, value in arguments.items()}
    begun = time.process_time()
    try:
        result = function(**arguments)
    except BaseException as error:
        return error, time.process_time() - begun
    raise AssertionError(f"returned {type(result).__name__} {getattr(result, 'shape', '')}")


def verdict(row):
    """What is wrong with how a row is refused; empty if nothing is."""
    good = GOOD[row.function]
    poisoned = "out" in row.changes
    raw = np.full(int(np.prod(good.result[0])) * np.dtype(good.result[1]).itemsize if good.result else 0, POISON, "u1")
    out = raw.view(good.result[1]).reshape(good.result[0]) if good.result else None
    error, seconds = call(row, **({"out": row.changes["out"].make(out)} if poisoned else {}))
    message = str(error)
    told = f"{type(error).__name__}: {message[:400]}"
    if type(error) is not row.error:
        return f"not {row.error.__name__} but {told}"
    if not (message.startswith(f"{good.prefix}: ") and message.isprintable() and len(message) < 1000):
        return f"not a line of {good.prefix!r}: {told}"
    rest = message.removeprefix(good.prefix)
    lacking = [text for text in (row.value, row.rule) if text not in rest]
    if lacking or not re.search(rf"\b{re.escape(row.named)}", rest):
        return f"no {', '.join(map(repr, lacking)) or repr(row.named)} in {told}"
    if seconds > SECONDS:
        return f"took {seconds:.1f} s: {told}"
    if good.result and not poisoned:
        # An `out` that fits the good call never fits a result that no memory can hold: that is what is wrong then.
        error, _ = call(row, out=out)
        if type(error) is not (ValueError if row.error is MemoryError else row.error):
            return f"with out: {type(error).__name__}: {str(error)[:400]}"
    return "" if (raw == POISON).all() else f"out was written to: {told}"


def limit_memory():
    import resource

    with open("/proc/self/statm") as statm:
        size = int(statm.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + SPARE, size + SPARE))


def run_rows(group, first, report, sabotage):
    """The rows of a group from `first` on, each with its verdict in a line of `report`.

    `sabotage` is code that row 1 runs, so that the machinery around the rows can be tested.
    """
    import importlib
    import json
    import signal
    import warnings

    import test_bad_input as table

    if group in ("torch", "dask"):
        importlib.import_module("torch" if group == "torch" else "dask.array")
        importlib.import_module("s2dq.compat.torch" if group == "torch" else "s2dq.dask")
    table.limit_memory()
    warnings.simplefilter("error")
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends even what never comes back to Python
    with open(report, "a") as lines:
        for number, row in list(enumerate(table.GROUPS[group]))[first:]:
            print(json.dumps(["begins", number, ""]), file=lines, flush=True)
            signal.setitimer(signal.ITIMER_REAL, (1 if sabotage else 10) * table.SECONDS)
            try:
                if number == 1:
                    exec(sabotage)
                wrong = table.verdict(row)
            except BaseException as error:
                wrong = f"{type(error).__name__}: {error}"
            signal.setitimer(signal.ITIMER_REAL, 0)
            print(json.dumps(["ended", number, wrong]), file=lines, flush=True)


@functools.cache
def verdicts(group, sabotage=""):
    """What came of each row of a group. A child that dies is one row's doing; another one goes on behind it."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        while len(found) < len(GROUPS[group]):
            report = Path(folder) / f"{len(found)}"
            report.touch()
            death = None
            try:
                run_child(run_rows, group, len(found), str(report), sabotage, timeout=120)
            except AssertionError as error:
                death = str(error)
            lines = [json.loads(line) for line in report.read_text().splitlines()]
            found.update({number: wrong for what, number, wrong in lines if what == "ended"})
            if len(found) < len(GROUPS[group]):
                assert lines, death  # it did not come to any row
                found[len(found)] = f"the child died: {death}"
    return found


@pytest.mark.parametrize("group, number", [
    pytest.param(group, number, id=f"{group}-{number}-{row}")
    for group, table in GROUPS.items() for number, row in enumerate(table)
])
def test_row(group, number):
    if group in ("torch", "dask") and not importlib.util.find_spec(group):
        pytest.skip(f"{group} is not installed")
    wrong = verdicts(group)[number]
    assert not wrong, f"{GROUPS[group][number]}: {wrong}"


def test_rows_cover_every_argument_of_every_function():
    tried = {(row.function, argument) for table in GROUPS.values() for row in table for argument in row.changes}
    for name, good in GOOD.items():
        if name.startswith(("compat.torch", "dask")):  # what they refuse is the operators' business, and theirs to test
            assert any(function == name for function, _ in tried), name
            continue
        names = inspect.signature(good.find() if good.find else public(name)).parameters
        names = [one for one in names if names[one].kind not in (names[one].VAR_KEYWORD, names[one].VAR_POSITIONAL)]
        if name != "Preprocessor.inverse":
            assert names, name
        missing = [argument for argument in names if (name, argument) not in tried]
        assert not missing, f"{name}: no row for {missing}"


def test_table_covers_every_public_function():
    # Without arguments, and the type of what another returns.
    exempt = {"get_num_threads", "show_config", "kernels.PreparedCall"}
    covered = set(GOOD) | exempt
    for module, prefix in ((s2dq, ""), (interop, "interop."), (kernels, "kernels."), (onnx, "compat.onnx."),
                           (openvino, "compat.openvino."), (nnapi, "compat.nnapi."),
                           (tensorflow, "compat.tensorflow."), (tensorflow.v1, "compat.tensorflow.v1.")):
        for name in module.__all__:
            function = getattr(module, name) if name != "OPS" else None
            if callable(function) and function not in [public(one) for one in covered if not GOOD.get(one, (1,))[0]
                                                       and not one.startswith(("compat.torch", "dask"))]:
                assert f"{prefix}{name}" in covered, f"{prefix}{name} is not in the table"
    assert callable(models.read_input) and "models.read_input" in covered  # the other name is of what it returns
    for module in ("compat.torch", "dask"):  # not imported: what they stand on may not be there
        source = Path(s2dq.__file__).parent.joinpath(*module.split(".")).with_suffix(".py").read_text()
        assigned = next(node for node in ast.parse(source).body if isinstance(node, ast.Assign)
                        and node.targets[0].id == "__all__")
        for name in ast.literal_eval(assigned.value):
            assert f"{module}.{name}" in covered, f"{module}.{name} is not in the table"


def test_identifiers_of_advisories():
    sources = {row.source for table in GROUPS.values() for row in table}
    assert {"CVE-2021-29587", "CVE-2021-29593", "CVE-2021-29595", "CVE-2021-29597", "CVE-2022-29203",
            "XNNPACK#11048", "pytorch#163154"} <= sources
    assert all(re.match(r"(CVE-\d{4}-\d+|[a-zA-Z]+#\d+)( in NHWC)?$", source) for source in sources if source)


def test_good_calls_work():
    """Otherwise a refusal would prove nothing."""
    for name, good in GOOD.items():
        if name == "models.read_input" or name.startswith(("compat.torch", "dask")):
            continue
        (good.find() if good.find else public(name))(**good.arguments)


@pytest.mark.parametrize("ending, told", [
    ("import os; os.kill(os.getpid(), 11)", "ended with -11"), ("while True: pass", "ended with -14"),
    ("raise OverflowError('wrapped')", "OverflowError: wrapped"),
])
def test_a_crash_or_a_hang_is_the_row_it_happened_in(ending, told):
    found = verdicts("numbers_of_threads", ending)
    assert told in found.pop(1) and set(found.values()) == {""}, found


# --------------------------------------------------------------------------------------- arguments nobody thought of


class Resizing:
    """An integer that gives an array of the call another size when it is asked which."""

    stands_for = 2
    target = None

    def __index__(self):
        if self.target is not None:
            self.target.resize((1,) * self.target.ndim, refcheck=False)
        return 2


class ResizingList(list):
    stands_for = [2, 2]
    target = None

    def __iter__(self):
        if self.target is not None:
            self.target.resize((1,) * self.target.ndim, refcheck=False)
        return iter([2, 2])


class Poisonous:
    """Whatever is asked of it raises."""

    def _raise(self, *arguments, **keywords):
        raise OverflowError("raised by the caller's own method")

    __index__ = __int__ = __float__ = __len__ = __getitem__ = __iter__ = __bool__ = __eq__ = _raise
    __hash__ = __array__ = __dlpack__ = __dlpack_device__ = __fspath__ = __lt__ = __contains__ = __format__ = _raise
    __array_interface__ = shape = dtype = ndim = is_quantized = detach = property(_raise)


INTEGERS = st.one_of(st.integers(-3, 9), st.sampled_from([
    2**31 - 1, 2**31, 2**32, 65536, 2**62, 2**63 - 1, 2**63, 2**64, -(2**63)]))
REALS = st.one_of(st.floats(), st.sampled_from([5e-324, 1e39, 0.0, -0.0, np.longdouble("1e400"), np.longdouble(2)]))
SCALARS = st.one_of(st.none(), st.booleans(), INTEGERS, REALS, st.complex_numbers(), st.text(max_size=8),
                    st.binary(max_size=8), st.sampled_from(["NHWC", "NCHW", "NCHW_VECT_C", "DCR", "CRD", "int8"]))
TYPES = ("?", "i1", "u1", "<i2", ">i4", "i8", "u8", "f2", "f4", ">f8", "g", "c8", "S1", "U2", "O", "M8[s]", "m8[D]",
         "V3", "i4,f4")


@st.composite
def numpy_scalars(draw):
    return np.zeros((), draw(st.sampled_from(TYPES)))[()]


@st.composite
def arrays(draw):
    shape = draw(st.lists(st.integers(0, 4), max_size=5))
    array = np.zeros(shape, draw(st.sampled_from(TYPES)))
    turned = draw(st.sampled_from([lambda a: a, lambda a: a.T, lambda a: a[..., ::-1] if a.ndim else a,
                                   lambda a: np.broadcast_to(a, (2, *a.shape)), np.ma.MaskedArray, memoryview]))
    return turned(array) if turned is not memoryview or array.dtype.kind not in "Mm" else array


class Made(NamedTuple):
    """What Hypothesis is not to look at: made when the call is."""

    make: Any


def huge():
    return HUGE


HOSTILE = st.sampled_from([HostileIndex, HostileClass, HostileArray, HostileEquality, HostileLength, HostileMapping,
                           HostilePath, Poisonous, Resizing, ResizingList, object, Endless, huge]).map(Made)


def made(value):
    if type(value) is Made:
        return value.make()
    if type(value) in (list, tuple):
        return type(value)(map(made, value))
    return {key: made(entry) for key, entry in value.items()} if type(value) is dict else value


# Some of it is right after all.
PLAUSIBLE = st.sampled_from([
    1, 2, np.int8(2), np.uint64(1), (2, 1), [1, 2], [2, 3], np.array([1, 2]), NO_PADDING, [[1, 1], [0, 0]],
    np.zeros((2, 2), "u1"), 0.5, np.float16(0.25), [0.5, 1.0, 2.0], np.ones(3, "f4"), None, "uint8", "NCHW", "CRD"])
GARBAGE = st.one_of(
    PLAUSIBLE, SCALARS, numpy_scalars(), arrays(), HOSTILE,
    st.recursive(st.one_of(SCALARS, HOSTILE), lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(st.sampled_from(["scales", "zero_points", "dtype", "quantization"]), inner, max_size=3)),
        max_leaves=8),
)


@st.composite
def garbage_calls(draw):
    """(function, arguments of which one or two are garbage, whether an `out` is given)."""
    names = [name for name in GOOD if not name.startswith(("compat.torch", "dask")) and name != "Preprocessor.inverse"]
    name = draw(st.sampled_from(names))
    parameters = list(inspect.signature(GOOD[name].find() if GOOD[name].find else public(name)).parameters)
    chosen = draw(st.lists(st.sampled_from(parameters), min_size=1, max_size=2, unique=True))
    return name, {argument: draw(GARBAGE) for argument in chosen}, draw(st.booleans()) and bool(GOOD[name].result)


def plain(value):
    """What a value of our own stands for where it is taken."""
    if type(value) in (list, tuple):
        return type(value)(plain(entry) for entry in value)
    return value.stands_for if type(value) in (Resizing, ResizingList) else value


def aimed(value, target):
    """Let what resizes an array resize this one."""
    if type(value) in (Resizing, ResizingList):
        value.target = target
    elif type(value) in (list, tuple):
        for entry in value:
            aimed(entry, target)


def expected(name, arguments):
    """What the definition in NumPy gives; None where there is no such thing."""
    given = {key: plain(value) for key, value in arguments.items() if key not in ("out", "num_threads")}
    if name in OPERATORS:
        q = given[tensor_of(name)]
        return None if isinstance(q, s2dq.QuantizedTensor) else getattr(reference, name)(**given)
    if name == "quantize":
        return reference.quantize(**given)
    if name in ("dequantize", "QuantizedTensor.dequantize"):
        q = given.get("q", GOOD["dequantize"].arguments["q"])
        return reference.dequantize(q.values, q.scale, q.zero_point, axis=q.axis)
    return None


def answer(name, changes, with_out):
    """Make a call with garbage in it; AssertionError unless it is refused well, or right."""
    good = GOOD[name]
    changes = {argument: made(value) for argument, value in changes.items()}
    arguments = {key: value.copy() if isinstance(value, np.ndarray) else value for key, value in good.arguments.items()}
    out = None
    if with_out and "out" not in changes:
        out = np.empty(*good.result)
        out.view("u1").fill(POISON)
        arguments["out"] = out
    arguments |= changes
    owned = [value for value in (out, arguments.get(tensor_of(name)) if good.arguments else None)
             if type(value) is np.ndarray and value.flags.owndata]
    for value in changes.values():
        aimed(value, owned[-1] if owned else None)
    try:
        result = (good.find() if good.find else public(name))(**arguments)
    except (TypeError, ValueError, MemoryError) as error:
        message = str(error)
        assert type(error) in (TypeError, ValueError, MemoryError), f"{type(error)}: {message}"
        assert message.startswith(f"{good.prefix}: ") and message.isprintable() and len(message) < 1000, message
        assert out is None or (out.view("u1") == POISON).all(), "out was written to"
        return "refused"
    except (OSError, ImportError):
        assert name == "models.read_input"  # what the file system and the installation say
        return "refused"
    finally:
        if name == "set_num_threads":
            s2dq.set_num_threads(None)
    wanted = expected(name, arguments)
    if wanted is not None:
        values = result.values if isinstance(result, s2dq.QuantizedTensor) else result
        if "out" not in changes:
            wanted = wanted.astype(values.dtype) if name.endswith("dequantize") else wanted
        assert out is None or values is out
        np.testing.assert_array_equal(values, wanted, strict="out" not in changes)
    return "right"


def try_garbage(examples, derandomize):
    """As many calls with garbage in them, in this child."""
    import collections
    import warnings

    import hypothesis

    import test_bad_input as table

    table.limit_memory()
    warnings.simplefilter("error")
    counts = collections.Counter()

    @hypothesis.settings(deadline=None, max_examples=examples, derandomize=derandomize, database=None,
                         suppress_health_check=list(hypothesis.HealthCheck))
    @hypothesis.given(table.garbage_calls())
    def try_one(drawn):
        counts[table.answer(*drawn)] += 1

    try_one()
    print(counts["refused"], counts["right"])


def test_garbage_is_refused_or_right():
    """Anything as any argument: the result of the definition, or one clear exception and nothing written."""
    refused, right = map(int, run_child(try_garbage, 1500, settings().derandomize, timeout=120).split())
    assert refused > 100 and right > 10, (refused, right)


@pytest.mark.parametrize("keywords, source, rule", [
    ({"block_size": HUGE}, zeros(8, 8, 3, dtype="u1"), "not divisible by block_size"),
    ({"size": HUGE}, zeros(1, 4, 4, 12), "but size is"),
    ({"block_size": HUGE}, zeros(1, 4, 4, 12), "not divisible by block_size"),
    ({"vect": HUGE, "data_format": "NCHW_VECT_C"}, zeros(1, 3, 4, 4, 4), "but vect is"),
], ids=["Preprocessor block_size", "Postprocessor size", "Postprocessor block_size", "Postprocessor vect"])
def test_keywords_too_long_to_print(keywords, source, rule):
    """They are legal, but nothing fits them; and the message that says so does not print them."""
    kind = s2dq.Preprocessor if source.dtype == np.uint8 else s2dq.Postprocessor
    with pytest.raises(ValueError, match=rule) as caught:
        kind(scale=1.0, **keywords)(source)
    assert type(caught.value) is ValueError and len(str(caught.value)) < 1000


class LongRepr:
    """Shown in lines, in colour, and at length."""

    def __index__(self):
        return 2

    def __repr__(self):
        return "two\n\x1b[31m" * 100


@pytest.mark.parametrize("function, argument, value", [
    ("batch_to_space_nd", "num_threads", [[[LongRepr()] * 6] * 6] * 6),
    ("pack_vect_c", "vect", [[["a" * 60] * 8] * 8] * 8),
    ("space_to_depth", "pad_value", [[LongRepr()] * 8] * 8),
    ("quantize", "axis", [[[1.5] * 8] * 8] * 8),
])
def test_value_too_long_for_a_message(function, argument, value):
    """Found by the fuzzer: lists of lists of objects made messages of thousands of characters."""
    with pytest.raises(TypeError) as caught:
        getattr(s2dq, function)(**{**GOOD[function].arguments, argument: value})
    message = str(caught.value)
    assert message.startswith(f"{function}: {argument} ") and "..." in message
    assert message.isprintable() and len(message) < 1000, message


@pytest.mark.parametrize("pad", [np.void(b"abc"), None], ids=repr)
def test_raw_bytes_pad_raw_bytes(pad):
    """Found by the fuzzer: the reference asked a void whether it is 0, which NumPy refuses."""
    x = np.frombuffer(b"xyz", "V3").reshape(1, 1)
    for module in (s2dq, reference):
        result = module.space_to_batch_nd(x, [2], [[0, 1]], pad_value=pad)
        assert result.tobytes() == b"xyz" + (pad.tobytes() if isinstance(pad, np.void) else bytes(3))


def test_a_dtype_that_counts_as_false():
    """Found by the fuzzer: a NumPy zero has a dtype, which the reference took for none."""
    q = s2dq.QuantizedTensor(np.array([-3, 4], np.int8), 0.5, 0)
    assert s2dq.requantize(q, 0.25, 3, dtype=np.uint8(0)).dtype == np.uint8
    assert reference.requantize(q.values, 0.5, 0, 0.25, 3, np.uint8(0)).dtype == np.uint8


@pytest.mark.parametrize("pad", [[], [5], (), np.array([1]), np.zeros((0, 2)), "ab", {"a": 1}], ids=repr)
def test_any_object_pads_an_array_of_objects(pad):
    """Found by the fuzzer: to the operators a list is one object; the reference spread it."""
    x = np.array([[7]], object)
    for module in (s2dq, reference):
        result = module.space_to_batch_nd(x, [2], [[0, 1]], pad_value=pad)
        assert result.shape == (2, 1) and result[0, 0] == 7 and result[1, 0] is pad

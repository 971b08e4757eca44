"""Calls at the door, each with its exact answer in answers.txt: the message, or what is handed on.

    python tests/recorded_answers.py        record the answers anew

A line of that file without an indent is a call in Python, made of the functions and names here; the line below it is
the answer, which is there after the next recording. Who changes a message sees in the difference what users will read.
"""

import array
import re
from pathlib import Path

import ml_dtypes
import numpy as np

import s2dq
from s2dq import _validate as door
from s2dq._layout import Layout, channels_first

FILE = Path(__file__).with_name("answers.txt")
HUGE = 10**5000  # too long for str()
SETTINGS = {"scale": 0.5, "zero_point": 0, "dtype": "int8", "mean": None, "std": None, "rescale": 1 / 255,
            "input_format": "NHWC", "data_format": "NHWC", "block_size": 1, "mode": "DCR", "vect": 4,
            "reverse_channels": False, "size": None, "pad_value": 114, "num_threads": None}  # fmt: skip


def zeros(*shape, dtype="i1"):
    return np.zeros(shape, dtype)


def large(*shape, dtype="i1"):
    """An array of no more memory than one element."""
    return np.broadcast_to(np.zeros((), dtype), shape)


# ---------------------------------------------------------------------------------------------------- the calls


def space_to_depth(x=None, block_size=2, data_format="NHWC", mode="DCR", out_format=None, vect=4, channels=None,
                   paddings=None, pad_value=None, out=None, num_threads=None, name="space_to_depth"):
    x = zeros(1, 4, 6, 3) if x is None else x
    return door.depth_call(name, True, x, block_size, data_format, mode, out_format, vect, channels, paddings,
                           pad_value, out, num_threads)


def depth_to_space(x=None, block_size=2, data_format="NHWC", mode="DCR", out_format=None, vect=4, channels=None,
                   crops=None, out=None, num_threads=None, name="depth_to_space"):
    x = zeros(1, 2, 3, 12) if x is None else x
    return door.depth_call(name, False, x, block_size, data_format, mode, out_format, vect, channels, crops, None, out,
                           num_threads)


def space_to_batch(x=None, block_shape=(2, 3), paddings=((0, 0), (0, 0)), pad_value=None, out=None, num_threads=None,
                   name="space_to_batch_nd"):
    x = zeros(2, 4, 6, 3) if x is None else x
    return door.batch_call(name, True, x, block_shape, paddings, pad_value, out, num_threads)


def batch_to_space(x=None, block_shape=(2, 3), crops=((0, 0), (0, 0)), out=None, num_threads=None,
                   name="batch_to_space_nd"):
    x = zeros(12, 2, 2, 3) if x is None else x
    return door.batch_call(name, False, x, block_shape, crops, None, out, num_threads)


def pack(x=None, data_format="NCHW", vect=4, pad_value=0, out=None, num_threads=None):
    x = zeros(1, 6, 2, 3) if x is None else x
    return door.pack_call("pack_vect_c", x, data_format, vect, pad_value, out, num_threads)


def unpack(x=None, data_format="NCHW", channels=None, out=None, num_threads=None):
    x = zeros(1, 2, 2, 3, 4) if x is None else x
    return door.unpack_call("unpack_vect_c", x, data_format, channels, out, num_threads)


def tensor(values=None, scale=0.5, zero_point=0, axis=None):
    return door.tensor_parts("QuantizedTensor", zeros(2, 3) if values is None else values, scale, zero_point, axis)


def stored(*shape, dtype="i1", scale=0.5, zero_point=0, axis=None):
    return s2dq.QuantizedTensor(zeros(*shape, dtype=dtype), scale, zero_point, axis=axis)


def quantize(x=None, scale=0.5, zero_point=0, dtype="int8", axis=None, out=None, num_threads=None):
    x = zeros(2, 3, dtype="f4") if x is None else x
    return door.quantize_call("quantize", x, scale, zero_point, dtype, axis, out, num_threads)


def dequantize(q=None, out=None, num_threads=None):
    return door.dequantize_call("dequantize", s2dq.QuantizedTensor, stored(2, 3) if q is None else q, out, num_threads)


def requantize(q=None, scale=0.25, zero_point=1, dtype=None, out=None, num_threads=None):
    q = stored(2, 3) if q is None else q
    return door.requantize_call("requantize", s2dq.QuantizedTensor, q, scale, zero_point, dtype, out, num_threads)


def settings(**keywords):
    return door.frame_settings("Preprocessor", *(SETTINGS | keywords).values())


def post_settings(**keywords):
    return door.post_settings("Postprocessor", *(SETTINGS | keywords).values())


def frames(x=None, out=None, **keywords):
    x = zeros(8, 8, 3, dtype="u1") if x is None else x
    return door.frame_call("Preprocessor", settings(**keywords), x, out)


def geometry(height=4, width=8, **keywords):
    return door.frame_margins("Preprocessor.geometry", settings(**keywords), height, width)


def post(x=None, out=None, frame=None, **keywords):
    x = zeros(1, 4, 4, 12) if x is None else x
    return door.post_call("Postprocessor", post_settings(**keywords), s2dq.QuantizedTensor, x, out, frame)


def threads(n):
    return door.thread_count("set_num_threads", n)


def preparable(operator, **keywords):
    return door.preparable("prepare", operator, (int, str), keywords)


def elements(dtype):
    return door.check_elements("prepare", np.dtype(dtype))


def equal(scale, zero_point):
    scale, zero_point = np.array(scale, np.float32), np.array(zero_point, np.int32)
    return door.check_equal("space_to_depth", (1, 2), 1, scale, zero_point, "entries of row {}")


def float32(numbers):
    return door.to_float32(np.array(numbers))


def shown(value):
    return door.show(value)


def called(name):
    """The name of a function whose caller has words of its own for the arguments."""

    class Names(door.Caller):
        def argument(self, name):
            return {"x": "input", "block_size": "blocksize", "block_shape": "blocks"}.get(name)

    return Names(name)


# ------------------------------------------------------------------------------------------------- odd arguments


class Odd:
    """What a test gives it as attributes; whatever else it is asked for it has not."""

    def __init__(self, **attributes):
        for name, value in attributes.items():
            setattr(self, name, value)

    def __repr__(self):
        return "Odd()"


class Failing:
    """Each method that an argument may be asked for raises."""

    def fail(self, *args, **kwargs):
        raise RuntimeError("raised by a method of the caller's own")

    __index__ = __float__ = __array__ = __dlpack__ = __dlpack_device__ = __repr__ = fail
    __array_interface__ = property(fail)


class Unclassed:
    @property
    def __class__(self):
        raise RuntimeError("no class")


class Memoryless:
    def __index__(self):
        raise MemoryError


class Index:
    """An integer that is no int."""

    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value

    def __repr__(self):
        return f"Index({self.value})"


class Lazy:
    """What tells a Dask collection."""

    def __dask_graph__(self):
        raise AssertionError("computed")


class Tensor:
    """A tensor that shows its memory by DLPack, on a device, and says more of itself."""

    def __init__(self, values, device=1, **attributes):
        self.values, self.device = values, device
        for name, value in attributes.items():
            setattr(self, name, value)

    def __dlpack_device__(self):
        return self.device, 0

    def __dlpack__(self, **keywords):
        if isinstance(self.values, Exception):
            raise self.values
        return self.values.__dlpack__(**keywords)


class Torchlike(Odd):
    __module__ = "torch.nested"


class Numpylike(Odd):
    def numpy(self):
        raise AssertionError("asked for a copy")


class Shown:
    """An array interface alone."""

    def __init__(self, values):
        self.values = values

    @property
    def __array_interface__(self):
        return self.values.__array_interface__


class Said:
    """Represented as a test says."""

    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return self.text


class Text(str):
    """A str that says it is another one."""

    def __str__(self):
        return "another"


class Spreading(list):
    def __iter__(self):
        return iter([[9]] * 9)


class Mine(np.ndarray):
    """A subclass of arrays."""


def fixed(*shape, dtype="i1"):
    """An array that must not be written to."""
    x = zeros(*shape, dtype=dtype)
    x.flags.writeable = False
    return x


def mine(*shape, dtype="i1"):
    return zeros(*shape, dtype=dtype).view(Mine)


class Turning:
    """An integer that changes an array when it is asked for its value."""

    def __init__(self, value, change):
        self.value, self.change = value, change

    def __index__(self):
        self.change()
        return self.value


def nested(depth):
    value = 0
    for _ in range(depth):
        value = [value]
    return value


# --------------------------------------------------------------------------------------------------- the answers

RECORD = np.dtype([("a", "i1"), ("b", "u1", (2,))])
SMALL = {"bfloat16": "bfloat16", "int4": "int4", "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2",
         "e2m1": "float4_e2m1fn"}  # fmt: skip
NAMES = {
    **globals(), "array": array.array, "channels_first": channels_first, "inf": np.inf, "nan": np.nan,
    "strings": np.dtypes.StringDType(), **{name: np.dtype(getattr(ml_dtypes, of)) for name, of in SMALL.items()},
}  # fmt: skip


def told(value):
    """A value in words that are the same on every machine."""
    if isinstance(value, np.ndarray):
        entries = f" {value.tolist()!r}" if value.ndim < 2 and 0 < value.size <= 8 and value.dtype.kind != "V" else ""
        kind = "" if type(value) is np.ndarray else f"{type(value).__name__} of "
        return f"{kind}{value.dtype}{value.shape}{entries}{'' if value.flags.writeable else ' read-only'}"
    if isinstance(value, Layout):
        return value.name
    if isinstance(value, (door.Call, door.Conversion)):
        parts = value._asdict()
        out, result = parts.pop("out"), parts.pop("result")  # not their entries: nothing has been written
        parts["result"] = f"{result.dtype}{result.shape}" + ("" if result is out else f" seen as {type(out).__name__}")
        return f"{type(value).__name__}({', '.join(map(told, parts.values()))})"
    if isinstance(value, tuple):
        name = type(value).__name__ if hasattr(value, "_fields") else ""
        return f"{name}({', '.join(map(told, value))})"
    return str(value) if isinstance(value, (np.dtype, str)) else repr(value)


def answer(call):
    """What comes of a call: a value, or an exception with the one that caused it."""
    try:
        text = told(eval(call, dict(NAMES)))
    except (TypeError, ValueError, MemoryError) as error:
        cause = f" <- {type(error.__cause__).__name__}" if error.__cause__ else ""
        text = f"{type(error).__name__}: {error}{cause}"
    return re.sub(r" at 0x[0-9A-Fa-f]+", "", text)


def recorded():
    """Pairs of a call and its answer, "" where none is recorded."""
    pairs = []
    for line in FILE.read_text().splitlines():
        if line.startswith("    "):
            pairs[-1] = (pairs[-1][0], line.strip())
        elif line:
            pairs.append((line, ""))
    return pairs


def record():
    FILE.write_text("".join(f"{call}\n    {answer(call)}\n" for call, _ in recorded()))


if __name__ == "__main__":
    __import__("recorded_answers").record()  # so that the classes here are called the same

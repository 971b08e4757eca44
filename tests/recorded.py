"""A fixed list of calls, and the digests of their results: the same on every machine, build and number of threads.

    python tests/recorded.py          record them anew in digests.json, as the reference has them

What goes in comes from SHAKE-128, so it depends on no generator of random numbers and on no byte order; what comes out
is taken in little-endian byte order. Floats are made of integers, exactly.
"""

import hashlib
import json
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np

import s2dq
from s2dq import reference

FILE = Path(__file__).with_name("digests.json")
IMAGENET = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}
MODES = "DCR", "CRD", "focus"
PIXELS = 768, 640  # of a frame large enough for eight threads


class Call(NamedTuple):
    """`name` tells it apart, `function` is one of s2dq or a verb of `run`."""

    name: str
    function: str
    x: np.ndarray
    arguments: dict


def drawn(name, shape, dtype="int8"):
    """Integers of any value, the same for the same name."""
    dtype = np.dtype(dtype)
    raw = hashlib.shake_128(name.encode()).digest(int(np.prod(shape)) * dtype.itemsize)
    return np.frombuffer(raw, dtype.newbyteorder("<")).astype(dtype).reshape(shape)


def numbers(name, shape, dtype):
    """Floats between -128 and 128, in steps that hit ties, with zeros, infinities, subnormals and NaN among them."""
    values = drawn(name, shape, "int16").astype(np.float64) / 256
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 2.0**-149, -(2.0**-149), 2.0**-24, 65504.0, -65504.0]
    values.reshape(-1)[: len(special)] = special
    return values.astype(dtype)  # what is rounded here is halves of float16, to even


def levels(name, shape):
    """Grey levels as float32."""
    return drawn(name, shape, "uint16").astype(np.float32) / 256


def all_calls():
    """Every operator, layout, mode and conversion; small and ragged ones, and some that are worth a team of eight."""
    height, width = PIXELS
    frame = drawn("frame", (1, height, width, 4))
    planes = frame.reshape(1, 4, height, width)
    rgb = drawn("rgb", (2, 44, 60, 3), "uint8")
    return [
        *operator_calls(frame, planes),
        *layout_calls(),
        *conversion_calls(),
        *(Call(f"preprocess {name}", "preprocess", x, settings) for name, x, settings in [
            ("table, large", drawn("large rgb", (1, height, width, 3), "uint8"),
             {"scale": 1 / 55, "zero_point": -4, **IMAGENET, "block_size": 2}),
            ("line, large", drawn("large rgb", (1, height, width, 3), "uint8"),
             {"scale": 1 / 255, "zero_point": -128, "data_format": "NCHW"}),
            ("words", rgb, {"scale": 1 / 50, **IMAGENET, "data_format": "NCHW_VECT_C", "block_size": 2, "size": 64}),
            ("uint8", rgb, {"scale": 1 / 60, "zero_point": 121, "dtype": "uint8", **IMAGENET, "mode": "CRD",
                            "block_size": 2, "reverse_channels": True}),
            ("float16", rgb, {"dtype": "float16", **IMAGENET, "data_format": "NCHW"}),
            ("float32", rgb, {"dtype": "float32", **IMAGENET, "block_size": 2, "mode": "focus", "size": (52, 62)}),
            ("floats, large", levels("levels", (1, height, width, 3)),
             {"scale": 1 / 55, "zero_point": 9, **IMAGENET, "block_size": 2}),
            ("floats to float32", levels("levels", (1, 44, 60, 3)),
             {"dtype": "float32", **IMAGENET, "data_format": "NCHW"}),
            ("floats to float16", levels("levels", (1, 44, 60, 3)), {"dtype": "float16", **IMAGENET}),
        ]),
        *(Call(f"postprocess {name}", "postprocess", x, {"scale": 1 / 55, "zero_point": -4, **IMAGENET, **settings})
          for name, x, settings in [
            ("table, large", drawn("deep", (1, height // 2, width // 2, 12)), {"block_size": 2}),
            ("words", drawn("deep words", (2, 3, 22, 30, 4)), {"block_size": 2, "data_format": "NCHW_VECT_C"}),
            ("planes", drawn("deep planes", (2, 12, 22, 30)),
             {"block_size": 2, "data_format": "NCHW", "mode": "CRD", "reverse_channels": True}),
        ]),
    ]  # fmt: skip


def operator_calls(frame, planes):
    """Large ones."""
    height, width = PIXELS
    deep = frame.reshape(1, height // 2, width // 2, 16)
    words = frame.reshape(1, 1, height, width, 4)
    for name, function, x, arguments in [
        ("s2d", "space_to_depth", frame, {"block_size": 2}),
        ("s2d rgb", "space_to_depth", frame[..., :3], {"block_size": 2, "paddings": [[1, 1], [3, 1]], "pad_value": 5}),
        ("s2d crd", "space_to_depth", frame, {"block_size": 4, "mode": "CRD"}),
        ("s2d planes", "space_to_depth", planes, {"block_size": 2, "data_format": "NCHW"}),
        ("s2d planes crd", "space_to_depth", planes[:, :, 1:-1, 1:-1],
         {"block_size": 2, "data_format": "NCHW", "mode": "CRD"}),
        ("s2d to words", "space_to_depth", frame[..., :3], {"block_size": 2, "out_format": "NCHW_VECT_C"}),
        ("s2d turned", "space_to_depth", frame.transpose(0, 3, 2, 1), {"block_size": (1, 2), "mode": "CRD"}),
        ("s2d words", "space_to_depth", words, {"block_size": 2, "data_format": "NCHW_VECT_C"}),
        ("d2s", "depth_to_space", deep, {"block_size": 2}),
        ("d2s focus", "depth_to_space", deep, {"block_size": 2, "mode": "focus", "crops": [[1, 0], [0, 3]]}),
        ("d2s to planes", "depth_to_space", deep, {"block_size": 2, "out_format": "NCHW"}),
        ("d2s of words", "depth_to_space", frame.reshape(1, 4, height // 2, width // 2, 4),
         {"block_size": 2, "data_format": "NCHW_VECT_C", "out_format": "NHWC"}),
        ("s2b", "space_to_batch_nd", frame.reshape(3, 1024, -1), {"block_shape": [2, 3], "paddings": [[1, 1], [1, 1]]}),
        ("b2s", "batch_to_space_nd", frame.reshape(12, 512, -1), {"block_shape": [2, 3], "crops": [[1, 0], [5, 6]]}),
        ("pack", "pack_vect_c", planes[:, :3], {}),
        ("pack 32", "pack_vect_c", frame.reshape(1, 48, 160, 256), {"vect": 32, "pad_value": -7}),
        ("unpack", "unpack_vect_c", frame.reshape(1, 12, 160, -1, 4), {"channels": 45}),
        ("unpack to pixels", "unpack_vect_c", words, {"data_format": "NHWC", "channels": 3}),
    ]:  # fmt: skip
        yield Call(f"{name}, large", function, x, arguments)


def layout_calls():
    """Small ones: all pairs of layouts, all modes, several widths."""
    shapes = {"NHWC": (2, 12, 14, 8), "NCHW": (2, 8, 12, 14), "NCHW_VECT_C": (2, 4, 12, 14, 4)}
    for dtype, mode, source, target in product(("int8", "int16", "int32", "int64"), MODES, shapes, shapes):
        if dtype == "int8" or "NCHW_VECT_C" not in (source, target):
            x = drawn("small", shapes[source], dtype)
            both = {"block_size": 2, "data_format": source, "out_format": target, "mode": mode}
            name = f"{source} to {target} {mode} {dtype}"
            yield Call(f"s2d {name}", "space_to_depth", x, both)
            yield Call(f"d2s {name}", "depth_to_space", x, both)
    yield Call("s2d volume", "space_to_depth", drawn("small", (2, 6, 9, 12, 5)),
               {"block_size": (2, 3, 4), "data_format": "NDHWC", "mode": "CRD"})
    yield Call("d2s line", "depth_to_space", drawn("small", (3, 30, 37), "int16"),
               {"block_size": 5, "data_format": "NCW"})


def conversion_calls():
    height, width = PIXELS
    steps = np.arange(1, 9) / 64
    zeros = np.arange(-3, 5)
    for dtype in ("int8", "uint8", "int16", "uint16", "int32"):
        for source in ("float16", "float32", "float64"):
            x = numbers("numbers", (60, 8, 33), source)
            yield Call(f"quantize {source} to {dtype}", "quantize", x, {"scale": 0.1, "zero_point": 3, "dtype": dtype})
            yield Call(f"quantize {source} to {dtype} by channel", "quantize", x,
                       {"scale": steps, "zero_point": np.arange(8), "dtype": dtype, "axis": 1})
        values = drawn("values", (60, 8, 33), dtype)
        few = {"scale": steps, "zero_point": np.arange(8), "axis": 1}
        yield Call(f"dequantize {dtype}", "dequantize", values, few)
        yield Call(f"requantize {dtype}", "requantize", values, {**few, "to": (np.float32(0.3), 5, dtype)})
    yield Call("quantize, large", "quantize", numbers("numbers", (height, width), "float32"),
               {"scale": 1 / 3, "zero_point": -1})
    yield Call("quantize subnormal scale, large", "quantize", numbers("numbers", (height, width), "float64"),
               {"scale": 1e-40, "zero_point": 0, "dtype": "int16"})
    yield Call("quantize turned, large", "quantize", numbers("numbers", (8, width, height), "float16").T,
               {"scale": steps, "zero_point": zeros, "axis": 2})
    values = drawn("frame", (height, width, 8))
    yield Call("dequantize, large", "dequantize", values, {"scale": steps, "zero_point": zeros, "axis": 2})
    yield Call("requantize, large", "requantize", values,
               {"scale": steps, "zero_point": zeros, "axis": 2, "to": (0.1, 7, "uint8")})


def run(call, num_threads=None, **out):
    """What s2dq makes of it. `out` is for moves alone."""
    function, x, arguments = call.function, call.x, call.arguments
    if function == "quantize":
        return s2dq.quantize(x, **arguments, num_threads=num_threads).values
    if function in ("dequantize", "requantize"):
        arguments = dict(arguments)
        to = arguments.pop("to", ())
        result = getattr(s2dq, function)(s2dq.QuantizedTensor(x, **arguments), *to, num_threads=num_threads)
        return result.values if to else result
    if function == "preprocess":
        return s2dq.Preprocessor(**arguments, num_threads=num_threads)(x, **out)
    if function == "postprocess":
        return s2dq.Postprocessor(**arguments, num_threads=num_threads)(x, **out)
    return getattr(s2dq, function)(x, **arguments, num_threads=num_threads, **out)


def expected(call):
    """What its definition makes of it."""
    arguments = dict(call.arguments)
    if call.function == "requantize":
        scale, zero_point, dtype = arguments.pop("to")
        q = reference.dequantize(call.x, **arguments)
        return reference.quantize(q, scale, zero_point, dtype)
    return getattr(reference, call.function)(call.x, **arguments)


def digest(result):
    """Of dtype, shape and elements."""
    little = np.ascontiguousarray(result.astype(result.dtype.newbyteorder("<"), copy=False))
    found = hashlib.sha256(f"{result.dtype.name} {result.shape} ".encode())
    found.update(little.reshape(-1).view(np.uint8))  # not a copy: some tests have little memory
    return found.hexdigest()[:32]


def recorded():
    return json.loads(FILE.read_text())


if __name__ == "__main__":
    FILE.write_text(json.dumps({call.name: digest(expected(call)) for call in all_calls()}, indent=0) + "\n")

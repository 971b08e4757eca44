"""Random legal calls of every public function that computes, each with what the definition in NumPy gives.

The soak draws them from a random generator, the fuzzer from the bytes that libFuzzer makes up.
"""

import threading
from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import numpy as np

import s2dq
from s2dq import reference

PLAIN = {"NWC": 1, "NHWC": 2, "NDHWC": 3, "NCW": 1, "NCHW": 2, "NCDHW": 3}  # layouts, and their spatial axes
DTYPES = ("i1", "i1", "u1", "?", "<i2", ">u2", "<f2", "<f4", ">f4", "<i8", "<f8", "<c16", "V3", "S5", "<M8[s]", "O")
STORED = ("int8", "uint8", "int16", "uint16", "int32")
FLOATS = ("<f2", "<f4", ">f4", "<f8", ">f8")
POISON = 0xA5


class Source:
    """Where draws come from: `integer(low, high)`, both ends included, is for the kinds of it to define."""

    may_be_long = True  # one extent of a call, so that no tensor is large

    def pick(self, sequence):
        return sequence[self.integer(0, len(sequence) - 1)]


class RandomSource(Source):
    """Draws from NumPy's generator."""

    def __init__(self, rng):
        self._rng = rng

    def integer(self, low, high):
        return int(self._rng.integers(low, high, endpoint=True))


class Request(NamedTuple):
    """A call: `function(**arguments)` gives `expected()`, an array, as `values_of` of what it returns."""

    name: str  # with which its messages begin
    function: Callable
    arguments: dict[str, Any]
    reference: Callable[[dict[str, Any]], np.ndarray]  # of the arguments as they were given in the end
    out_dtype: Any = None  # of the result

    def expected(self):
        return self.reference(self.arguments)


def values_of(result):
    return result.values if type(result) is s2dq.QuantizedTensor else result


def differs(found, wanted):
    """Say in what two arrays differ; empty where every bit is the same."""
    if type(found) is not np.ndarray:
        return f"{type(found).__name__} is no array"
    if (found.shape, found.dtype) != (wanted.shape, wanted.dtype):
        return f"{found.shape} of {found.dtype}, not {wanted.shape} of {wanted.dtype}"
    if found.dtype.hasobject:
        same = all(one is other for one, other in zip(found.reshape(-1), wanted.reshape(-1)))
        return "" if same else "other objects"
    found, wanted = np.ascontiguousarray(found), np.ascontiguousarray(wanted)
    if found.tobytes() == wanted.tobytes():
        return ""
    if found.dtype.kind == "f" and np.array_equal(found, wanted, equal_nan=True):
        nan = np.isnan(wanted)  # which NaN a computation gives is the processor's choice
        same = found[~nan].tobytes() == wanted[~nan].tobytes()
        return "" if same and nan.any() else "another zero"
    return f"{np.count_nonzero(found.reshape(-1).view('u1') != wanted.reshape(-1).view('u1'))} other bytes"


def poisoned(shape, dtype):
    """An array to be written to; None where it would hold references."""
    dtype = np.dtype(dtype)
    if dtype.hasobject:
        return np.full(shape, "poison", dtype)
    return np.full(prod(shape) * dtype.itemsize, POISON, np.uint8).view(dtype).reshape(shape)


def is_poison(out):
    if out.dtype.hasobject:
        return all(entry == "poison" for entry in out.reshape(-1))
    return bool((out.reshape(-1).view(np.uint8) == POISON).all())


# ---------------------------------------------------------------------------------------------------- arrays


def draw_values(source, shape, dtype):
    """Any values of a dtype, in an array of its own."""
    dtype = np.dtype(dtype)
    rng = np.random.default_rng(source.integer(0, 255))
    if dtype.hasobject:
        return rng.integers(-9, 9, shape).astype(object)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        return rng.integers(0, 256, (*shape, dtype.itemsize), np.uint8).view(dtype).reshape(shape)
    if dtype.kind in "fc":
        numbers = (rng.standard_normal(shape) * source.pick((1, 1, 100, 1e4))).astype(dtype)
        special = source.pick((None, None, None, np.nan, np.inf, -np.inf, -0.0, 1e-40))
        if special is not None and numbers.size:
            numbers.reshape(-1)[:: source.integer(1, 7)] = special
        return numbers
    if dtype.kind == "S":
        return rng.integers(1, 128, (*shape, dtype.itemsize), np.uint8).view(dtype).reshape(shape)
    if dtype.kind == "M":
        return rng.integers(0, 2**40, shape).astype(dtype)
    return rng.integers(0, 256, (*shape, dtype.itemsize), np.uint8).view(dtype).reshape(shape)


def lay_out(source, x):
    """The same values elsewhere in memory: axes rolled, backwards, every second one, a crop, off by a byte."""
    way = source.integer(0, 9)
    if way == 0 and x.ndim > 1:
        return np.ascontiguousarray(np.moveaxis(x, -1, 0)).transpose([*range(1, x.ndim), 0])
    if way == 1:
        return np.ascontiguousarray(x[..., ::-1])[..., ::-1]
    if way == 2:
        return np.ascontiguousarray(x[::-1])[::-1]
    if way == 3:
        wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
        wide[..., ::2] = x
        return wide[..., ::2]
    if way == 4:
        frame = np.zeros([extent + 3 for extent in x.shape], x.dtype)
        inner = tuple(slice(1, 1 + extent) for extent in x.shape)
        frame[inner] = x
        return frame[inner]
    if way == 5 and not x.dtype.hasobject:
        raw = np.zeros(x.nbytes + 1, np.uint8)
        shifted = raw[1:].view(x.dtype).reshape(x.shape)
        shifted[...] = x
        return shifted
    if way == 6:
        x.flags.writeable = False
    return x


def draw_array(source, shape, dtype):
    return lay_out(source, draw_values(source, shape, dtype))


# ------------------------------------------------------------------------------------------------- operators


def draw_extent(source, least=1):
    """Small mostly, sometimes longer than a register, seldom nothing at all."""
    kind = source.integer(0, 15)
    if kind == 0:
        return 0
    if kind < 4 and source.may_be_long:
        source.may_be_long = False
        return source.integer(least, 80)
    return source.integer(least, 5)


def draw_pairs(source, counts, block, to_depth):
    """(extents, paddings or crops) of axes of as many blocks."""
    extents, pairs = [], []
    for count, b in zip(counts, block):
        whole = count * b
        low = source.integer(0, min(whole, 5))
        high = source.integer(0, min(whole - low, 5))
        pairs.append([low, high])
        extents.append(whole - low - high)
    return (extents if to_depth else list(counts)), pairs


def spell(source, numbers):
    """A list of integers in one of the ways in which a caller may write it."""
    way = source.integer(0, 3)
    nested = any(isinstance(entry, list) for entry in numbers)
    if way == 0:
        return np.array(numbers, np.int64).reshape((len(numbers), 2) if nested else (len(numbers),))
    if way == 1:
        return tuple(map(tuple, numbers)) if nested else tuple(numbers)
    return numbers


def draw_depth(source, to_depth):
    packed = source.integer(0, 5) == 0
    layout = "NCHW_VECT_C" if packed else source.pick(tuple(PLAIN))
    spatial = 2 if packed else PLAIN[layout]
    block = [source.integer(1, 4) for _ in range(spatial)]
    if source.integer(0, 1):
        block = [block[0]] * spatial
    targets = [None, *(name for name, count in PLAIN.items() if count == spatial)]
    targets += ["NCHW_VECT_C"] if spatial == 2 else []
    target = source.pick(targets)
    counts = [draw_extent(source) for _ in range(spatial)]
    extents, pairs = draw_pairs(source, counts, block, to_depth)
    batch, count = source.integer(1, 3), draw_extent(source)
    arguments = {"data_format": layout, "mode": source.pick(("DCR", "CRD", "focus"))}
    if target or not source.integer(0, 3):
        arguments["out_format"] = target
    if target == "NCHW_VECT_C":
        arguments["vect"] = source.integer(1, 33)
    area = prod(block)
    if packed:
        lanes, outer = source.pick((1, 2, 4, 4, 8, 32)), source.integer(1, 4)
        if not to_depth:
            outer *= area
        shape = (batch, outer, *extents, lanes)
        dtype = source.pick(("i1", "u1", "?"))
        to_words = target in (None, "NCHW_VECT_C")
        if not to_words and source.integer(0, 1):
            arguments["channels"] = outer * lanes - (source.integer(0, lanes - 1) if to_depth else 0)
    else:
        deep = count if to_depth else count * area
        shape = (batch, deep, *extents) if layout[1] == "C" else (batch, *extents, deep)
        dtype = source.pick(DTYPES)
    x = draw_array(source, shape, dtype)
    arguments["block_size"] = block[0] if len(set(block)) == 1 else spell(source, block)
    if any(map(any, pairs)):
        arguments["paddings" if to_depth else "crops"] = spell(source, pairs)
    if to_depth and np.dtype(dtype).kind in "iuf" and source.integer(0, 1):
        arguments["pad_value"] = source.integer(0, 100)
    return "space_to_depth" if to_depth else "depth_to_space", x, arguments


def draw_batch(source, to_batch):
    dims = source.integer(1, 3)
    block = [source.integer(1, 3) for _ in range(dims)]
    counts = [draw_extent(source) for _ in range(dims)]
    extents, pairs = draw_pairs(source, counts, block, to_batch)
    rest = [draw_extent(source) for _ in range(source.integer(0, 2))]
    batch = source.integer(1, 3) * (1 if to_batch else prod(block))
    x = draw_array(source, (batch, *extents, *rest), source.pick(DTYPES))
    arguments = {"block_shape": spell(source, block), "paddings" if to_batch else "crops": spell(source, pairs)}
    if to_batch and x.dtype.kind in "iuf" and source.integer(0, 1):
        arguments["pad_value"] = source.integer(0, 100)
    name = "space_to_batch" if to_batch else "batch_to_space"
    return name + source.pick(("", "_nd")), x, arguments


def draw_pack(source, packs):
    sizes = [draw_extent(source) for _ in range(3)]
    layout, batch = source.pick(("NCHW", "NHWC")), source.integer(1, 3)
    arguments = {"data_format": layout}
    if packs:
        shape = (batch, *sizes)
        arguments["vect"] = source.integer(1, 40)
        if source.integer(0, 1):
            arguments["pad_value"] = 0
    else:
        lanes = source.integer(1, 40)
        outer = source.integer(1, 4)
        shape = (batch, outer, *sizes[:2], lanes)
        if source.integer(0, 1):
            arguments["channels"] = outer * lanes - source.integer(0, lanes - 1)
    return "pack_vect_c" if packs else "unpack_vect_c", draw_array(source, shape, source.pick(DTYPES)), arguments


def draw_operator(source):
    kind = source.integer(0, 9)
    if kind < 3:
        name, x, arguments = draw_depth(source, True)
    elif kind < 5:
        name, x, arguments = draw_depth(source, False)
    elif kind < 8:
        name, x, arguments = draw_batch(source, kind != 5)
    else:
        name, x, arguments = draw_pack(source, kind == 8)
    function = getattr(s2dq, name)
    if x.dtype.kind in "iu" and x.dtype.name in STORED and not source.integer(0, 3):
        return draw_on_quantized(source, name, function, x, arguments)
    return Request(name, function, {"x": x, **arguments}, lambda given: by_reference(name, given), x.dtype)


def draw_on_quantized(source, name, function, x, arguments):
    """An operator on a tensor with one scale: the operator on its values; what is padded is its zero point."""
    info = np.iinfo(x.dtype)
    zero = source.integer(max(int(info.min), -100), min(int(info.max), 100))
    q = s2dq.QuantizedTensor(x, source.pick((0.5, 1e-3, 3.0)), zero)

    def by_values(given):
        tensor = given["x"]
        if type(tensor) is not s2dq.QuantizedTensor:
            return by_reference(name, given)
        told = {**given, "x": tensor.values}
        if name.startswith("space_to") and told.get("pad_value") is None:
            told["pad_value"] = int(tensor.zero_point)
        return by_reference(name, told)

    return Request(name, function, {"x": q, **arguments}, by_values, x.dtype)


def by_reference(name, given):
    """The twin's answer, which knows neither `out` nor threads."""
    return getattr(reference, name)(**{key: value for key, value in given.items() if key not in ("out", "num_threads")})


# ---------------------------------------------------------------------------------------------- quantization


def draw_parameters(source, shape, dtype):
    """(scale, zero_point, axis) for an array of this shape."""
    info = np.iinfo(dtype)
    low, high = max(int(info.min), -(2**20)), min(int(info.max), 2**20)
    if not shape or source.integer(0, 1):
        return source.pick((0.5, 1.0, 0.0123, 1e-30, 1e20)), source.integer(low, high), None
    axis = source.integer(0, len(shape) - 1)
    rng = np.random.default_rng(source.integer(0, 255))
    scale = (rng.random(shape[axis]) + 0.01).astype(np.float32)
    zero = rng.integers(low, high, shape[axis], endpoint=True)
    return scale, zero, axis


def draw_shape(source):
    return tuple(draw_extent(source) for _ in range(source.integer(1, 4)))


def draw_conversion(source):
    shape = draw_shape(source)
    kind = source.pick(("quantize", "dequantize", "requantize"))
    dtype = source.pick(STORED)
    if kind == "quantize":
        x = draw_array(source, shape, source.pick(FLOATS))
        scale, zero, axis = draw_parameters(source, shape, dtype)
        arguments = {"x": x, "scale": scale, "zero_point": zero, "dtype": dtype, "axis": axis}
        return Request(kind, s2dq.quantize, arguments, lambda given: by_reference(kind, given), np.dtype(dtype))
    values = draw_array(source, shape, np.dtype(dtype).newbyteorder(source.pick(("<", "<", ">"))))
    scale, zero, axis = draw_parameters(source, shape, dtype)
    q = s2dq.QuantizedTensor(values, scale, zero, axis=axis)
    if kind == "dequantize":
        def back(given):
            q = given["q"]
            numbers = reference.dequantize(q.values, q.scale, q.zero_point, axis=q.axis)
            with np.errstate(all="ignore"):
                return numbers if given.get("out") is None else numbers.astype(given["out"].dtype)

        return Request(kind, s2dq.dequantize, {"q": q}, back, np.dtype("f4"))
    other = source.pick(STORED)
    new_scale, new_zero, new_axis = draw_parameters(source, shape, other)
    if new_axis is not None and new_axis != axis:
        new_scale, new_zero = 0.25, 3

    def again(given):
        q = given["q"]
        return reference.requantize(q.values, q.scale, q.zero_point, given["scale"], given["zero_point"],
                                    given.get("dtype"), axis=q.axis)

    arguments = {"q": q, "scale": new_scale, "zero_point": new_zero, "dtype": other}
    return Request(kind, s2dq.requantize, arguments, again, np.dtype(other))


# ---------------------------------------------------------------------------------------------------- frames


def draw_frames(source):
    """A Preprocessor or a Postprocessor, made and called."""
    count, block = source.integer(1, 5), source.integer(1, 4)
    layout = source.pick(("NHWC", "NCHW", "NCHW_VECT_C"))
    keywords = {"block_size": block, "data_format": layout, "input_format": source.pick(("NHWC", "NCHW")),
                "mode": source.pick(("DCR", "CRD", "focus")), "reverse_channels": bool(source.integer(0, 1))}
    per_channel = bool(source.integer(0, 1))
    if per_channel:
        keywords["mean"] = [0.1 * (k + 1) for k in range(count)]
        keywords["std"] = [0.5 + 0.1 * k for k in range(count)]
    blocks = [source.integer(1, 9), source.integer(1, 20)]
    canvas = [b * block for b in blocks]
    batch = source.integer(1, 2)
    if source.integer(0, 2):
        return draw_preprocess(source, keywords, canvas, batch, count)
    keywords["dtype"] = source.pick(("int8", "uint8"))
    keywords |= {"scale": source.pick((0.0078, 0.5, 1e-3)), "zero_point": source.integer(0, 100)}
    deep = count * block * block
    if layout == "NCHW_VECT_C":
        lanes = keywords["vect"] = source.pick((1, 4, 8, 32))
        if not per_channel:
            deep = -(-deep // lanes) * lanes  # the spare lanes are channels, where nobody says otherwise
            if deep % (block * block):
                return draw_preprocess(source, keywords, canvas, batch, count)
        shape = (batch, -(-deep // lanes), *blocks, lanes)
    else:
        shape = (batch, deep, *blocks) if layout == "NCHW" else (batch, *blocks, deep)
    arguments = {"tensor": draw_array(source, shape, keywords["dtype"])}
    if source.integer(0, 1):
        keywords["size"] = tuple(canvas)
        arguments["frame"] = tuple(source.integer(1, extent) for extent in canvas)

    def back(given):
        return reference.postprocess(given["tensor"], frame=given.get("frame"), **keywords)

    return Request("Postprocessor", s2dq.Postprocessor(**keywords), arguments, back, np.dtype("u1"))


def draw_preprocess(source, keywords, canvas, batch, count):
    frame = canvas
    if source.integer(0, 1):
        keywords["size"] = tuple(canvas)
        keywords["pad_value"] = source.integer(0, 255)
        frame = [source.integer(0, extent) for extent in canvas]
    keywords.setdefault("dtype", source.pick(("int8", "uint8", "float32", "float16")))
    if keywords["dtype"] in ("int8", "uint8") and "scale" not in keywords:
        keywords |= {"scale": source.pick((0.0078, 0.5, 1e-3)), "zero_point": source.integer(0, 100)}
    if keywords["data_format"] == "NCHW_VECT_C":
        keywords.setdefault("vect", source.pick((1, 4, 8, 32)))
    shape = (count, *frame) if keywords["input_format"] == "NCHW" else (*frame, count)
    frames = draw_array(source, (batch, *shape), source.pick(("u1", "u1", "<f4")))

    def made(given):
        return reference.preprocess(given["frames"], **keywords)

    return Request("Preprocessor", s2dq.Preprocessor(**keywords), {"frames": frames}, made, np.dtype(keywords["dtype"]))


def in_threads(work, arguments):
    """``work(argument)`` in a thread for each, all at once; raises what one of them did."""
    errors = []

    def run(argument):
        try:
            work(argument)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(argument,)) for argument in arguments]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def draw(source):
    """A legal call of any of them."""
    source.may_be_long = True
    kind = source.integer(0, 9)
    if kind < 6:
        return draw_operator(source)
    return draw_conversion(source) if kind < 8 else draw_frames(source)

"""Every kind of array there is: the reference's answer, a fresh plain result, and nothing copied on the way."""

import array
import ctypes
import mmap
import sys

import numpy as np
import pytest

import s2dq
from guarded import SANITIZED, run_child
from s2dq import reference

# One call per operator and way of moving: (operator, shape of x, its other arguments).
CALLS = {
    "s2d": ("space_to_depth", (2, 4, 6, 3), {"block_size": 2}),
    "s2d to words": ("space_to_depth", (2, 4, 6, 3), {"block_size": 2, "out_format": "NCHW_VECT_C"}),
    "s2d planes": ("space_to_depth", (2, 3, 4, 6), {"block_size": (2, 3), "data_format": "NCHW", "mode": "CRD",
                                                    "paddings": [[1, 1], [0, 3]], "pad_value": 7}),
    "d2s": ("depth_to_space", (2, 3, 2, 12), {"block_size": 2, "crops": [[1, 0], [0, 1]]}),
    "d2s from words": ("depth_to_space", (1, 3, 2, 3, 4), {"block_size": 2, "data_format": "NCHW_VECT_C",
                                                           "out_format": "NHWC"}),
    "s2b": ("space_to_batch_nd", (2, 4, 6, 3), {"block_shape": [2, 3], "paddings": [[1, 1], [0, 3]]}),
    "b2s": ("batch_to_space_nd", (12, 2, 2, 3), {"block_shape": [2, 3], "crops": [[1, 1], [0, 3]]}),
    "pack": ("pack_vect_c", (2, 6, 2, 3), {"pad_value": 5}),
    "unpack": ("unpack_vect_c", (2, 2, 2, 3, 4), {"channels": 7}),
}


def values_of(shape, dtype="int16"):
    """Distinct values of any numeric dtype."""
    return np.arange(1, 1 + np.prod(shape)).reshape(shape).astype(dtype)


def check(call, x, dtype):
    """The call on `x` gives what the reference gives on the same values in an ordinary array of `dtype`."""
    name, shape, arguments = CALLS[call]
    before = values_of(shape, dtype)
    expected = getattr(reference, name)(before, **arguments)
    result = getattr(s2dq, name)(x, **arguments)
    np.testing.assert_array_equal(result, expected, strict=True)
    check_plain(result, dtype)


def check_plain(result, dtype):
    """A fresh base-class array that owns its memory, in the byte order of the source."""
    assert type(result) is np.ndarray
    assert result.base is None
    assert result.flags.owndata and result.flags.c_contiguous and result.flags.writeable and result.flags.aligned
    assert result.dtype == np.dtype(dtype)
    assert result.dtype.isnative == np.dtype(dtype).isnative


X = values_of((2, 4, 6, 3))


# ------------------------------------------------------------------------------------------ memory layouts


def fortran(x):
    return np.asfortranarray(x)


def axes_reversed(x):
    """Negative steps along every axis."""
    backwards = (slice(None, None, -1),) * x.ndim
    return np.ascontiguousarray(x[backwards])[backwards]


def every_other(x):
    """A gap of one element after every element."""
    wide = np.full([2 * extent for extent in x.shape], -1, x.dtype)
    view = wide[(slice(None, None, 2),) * x.ndim]
    view[...] = x
    return view


def crop(x):
    """The inside of a larger frame."""
    wide = np.full([extent + 5 for extent in x.shape], -1, x.dtype)
    view = wide[tuple(slice(2, 2 + extent) for extent in x.shape)]
    view[...] = x
    return view


def axes_shuffled(x):
    """Another order of axes in memory than in the shape."""
    order = np.roll(np.arange(x.ndim), 2)
    return np.ascontiguousarray(x.transpose(order)).transpose(np.argsort(order))


def misaligned(x):
    raw = np.zeros(x.nbytes + 1, np.uint8)
    view = raw[1:].view(x.dtype).reshape(x.shape)
    view[...] = x
    assert x.itemsize == 1 or not view.flags.aligned
    return view


def read_only(x):
    x = x.copy()
    x.flags.writeable = False
    return x


LAYOUTS = [np.array, fortran, axes_reversed, every_other, crop, axes_shuffled, misaligned, read_only]


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.__name__)
@pytest.mark.parametrize("call", CALLS)
def test_strides_and_alignment(call, layout):
    _, shape, _ = CALLS[call]
    for dtype in ("int8", "int16", "float32", "complex128"):
        x = layout(values_of(shape, dtype))
        unchanged = x.copy()
        check(call, x, dtype)
        np.testing.assert_array_equal(x, unchanged, err_msg="the source was changed")


@pytest.mark.parametrize("dtype", [">i2", "<i2", ">f4", ">u8", ">c8", ">M8[s]"])
@pytest.mark.parametrize("call", CALLS)
def test_byte_order_is_kept(call, dtype):
    name, shape, arguments = CALLS[call]
    x = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    if dtype.endswith("[s]"):
        arguments = {key: value for key, value in arguments.items() if key != "pad_value"}
    result = getattr(s2dq, name)(x, **arguments)
    check_plain(result, dtype)
    assert result.tobytes() == getattr(reference, name)(x, **arguments).tobytes()


@pytest.mark.parametrize("call", CALLS)
def test_broadcast_source(call):
    """Steps of 0 along each axis in turn, and along all."""
    name, shape, arguments = CALLS[call]
    single = values_of(shape)
    sources = [np.broadcast_to(single[(slice(None),) * axis + (slice(1),)], shape) for axis in range(len(shape))]
    for x in (*sources, np.broadcast_to(np.int16(9), shape)):
        result = getattr(s2dq, name)(x, **arguments)
        np.testing.assert_array_equal(result, getattr(reference, name)(x, **arguments), strict=True)
        check_plain(result, "int16")


@pytest.mark.parametrize("call", CALLS)
def test_source_that_overlaps_itself(call):
    """A sliding window: every element is at several indices."""
    name, shape, arguments = CALLS[call]
    memory = values_of(sum(shape) + 1)
    x = np.lib.stride_tricks.as_strided(memory, shape, (2,) * len(shape), writeable=False)
    result = getattr(s2dq, name)(x, **arguments)
    np.testing.assert_array_equal(result, getattr(reference, name)(x, **arguments), strict=True)


STEPS = [0, 1, 1, 2, 2, 3, 4, 4, 6, 8, 12, 16, 29, 64, 100]  # elements


@pytest.mark.parametrize("operator", ["space_to_depth", "depth_to_space", "space_to_batch_nd", "batch_to_space_nd"])
def test_any_steps_that_overlap(operator, rng):
    """Axes that continue each other, or the elements, in places where no array without overlaps has such: kernels of
    AVX2 once took them for wider elements, and wrote behind the result."""
    for _ in range(400):
        dtype = np.dtype(rng.choice(["u1", "u2", "u4", "u8"]))
        block, planes = int(rng.integers(2, 5)), bool(rng.integers(2))
        n, height, width, channels = (int(rng.integers(1, most)) for most in (4, 9, 17, 9))
        arguments = {"block_shape": [block, block], "paddings": [[0, 0], [0, 0]]}
        if operator == "batch_to_space_nd":
            n *= block * block
            arguments["crops"] = arguments.pop("paddings")
        elif operator == "depth_to_space":
            channels *= block * block
        else:
            height, width = height * block, width * block
        if "depth" in operator:
            arguments = {"block_size": block, "data_format": "NCHW" if planes else "NHWC",
                         "mode": str(rng.choice(["DCR", "CRD"])), "out_format": str(rng.choice(["NHWC", "NCHW"]))}
        shape = (n, channels, height, width) if planes and "depth" in operator else (n, height, width, channels)
        steps = [int(rng.choice(STEPS)) for _ in shape]
        memory = rng.integers(256, size=sum(map(np.multiply, shape, steps)) * dtype.itemsize + 8, dtype="u1")
        x = np.lib.stride_tricks.as_strided(memory.view(dtype), shape,
                                            [step * dtype.itemsize for step in steps], writeable=False)
        x = x[tuple(slice(None, None, int(rng.choice([1, 1, 1, -1]))) for _ in shape)]
        expected = getattr(reference, operator)(x, **arguments)
        around = np.full(expected.nbytes + 8192, 0xA5, "u1")
        out = around[4096:-4096].view(dtype).reshape(expected.shape)
        getattr(s2dq, operator)(x, **arguments, out=out)
        case = f"{shape}, steps of {steps} x {dtype}, {arguments}"
        np.testing.assert_array_equal(out, expected, err_msg=case)
        assert (around[:4096] == 0xA5).all() and (around[-4096:] == 0xA5).all(), case


@pytest.mark.parametrize("call", CALLS)
def test_empty_in_every_position(call):
    name, shape, arguments = CALLS[call]
    arguments = {key: [[0, 0], [0, 0]] if key in ("paddings", "crops") else value
                 for key, value in arguments.items() if key != "channels"}
    for axis in range(len(shape)):
        x = np.zeros((*shape[:axis], 0, *shape[axis + 1:]), "int16")
        expected = getattr(reference, name)(x, **arguments)
        result = getattr(s2dq, name)(x, **arguments)
        np.testing.assert_array_equal(result, expected, strict=True, err_msg=f"axis {axis}")


def test_padding_around_nothing():
    """No pixels, but padding: a result that is all fill."""
    expected = np.full((1, 2, 3, 12), 9, np.int8)
    result = s2dq.space_to_depth(np.zeros((1, 0, 6, 3), np.int8), 2, paddings=[[1, 3], [0, 0]], pad_value=9)
    np.testing.assert_array_equal(result, expected, strict=True)
    result = s2dq.space_to_batch_nd(np.zeros((1, 0, 6, 3), np.int8), [2, 2], [[1, 3], [0, 0]], pad_value=9)
    np.testing.assert_array_equal(result, np.full((4, 2, 3, 3), 9, np.int8), strict=True)


# ------------------------------------------------------------------------------------------- kinds of objects


class Meddling(np.ndarray):
    """A subclass that must be read as the memory it is: none of its overrides may be asked."""

    def _meddle(self, *args, **kwargs):
        raise AssertionError("an override was called")

    __array_ufunc__ = __array_function__ = __array_wrap__ = __getitem__ = __len__ = __iter__ = _meddle
    reshape = transpose = view = copy = astype = ravel = __reduce__ = _meddle
    shape = strides = dtype = ndim = size = itemsize = nbytes = flags = T = property(_meddle)


class InterfaceObject:
    """`__array_interface__` and nothing else; with an offset and strides, as a library would export a crop."""

    def __init__(self, x):
        self.keep = crop(x)

    @property
    def __array_interface__(self):
        interface = self.keep.__array_interface__
        return {key: interface[key] for key in ("shape", "typestr", "data", "strides", "version")}


class Tensor:
    """A CPU tensor of another library: DLPack and nothing else."""

    def __init__(self, x):
        self.keep = crop(x)

    def __dlpack__(self, **kwargs):
        return self.keep.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self.keep.__dlpack_device__()


class Dtype:
    name = "string"


class Strings:
    """A tensor of TensorFlow's strings, which ends the process where it is asked for DLPack."""

    dtype = Dtype()

    def __dlpack__(self, **kwargs):
        raise AssertionError("asked for")

    def __dlpack_device__(self):
        return 1, 0

    def numpy(self):
        raise AssertionError("asked for")


class OldTensor(Tensor):
    """DLPack before version 1: no keyword but the stream."""

    def __dlpack__(self, stream=None):
        return self.keep.__dlpack__()


class Buffered:
    """An exporter whose interface is an attribute of the object and whose memory is another buffer."""

    def __init__(self, x):
        self.__array_interface__ = {"shape": x.shape, "typestr": x.dtype.str, "data": x.tobytes(), "version": 3}


def cast(buffer, x):
    return memoryview(buffer).cast("B").cast(x.dtype.char, x.shape)


def mapped(x):
    memory = mmap.mmap(-1, x.nbytes)
    memory.write(x.tobytes())
    return cast(memory, x)


def c_array(x):
    return (ctypes.c_int16 * x.shape[-1] * int(np.prod(x.shape[:-1]))).from_buffer_copy(x.tobytes())


KINDS = {
    "subclass": lambda x: x.view(Meddling),
    "memoryview": lambda x: memoryview(x),
    "memoryview of a crop": lambda x: memoryview(crop(x)),
    "bytes": lambda x: cast(x.tobytes(), x),
    "bytearray": lambda x: cast(bytearray(x.tobytes()), x),
    "array.array": lambda x: cast(array.array("h", x.ravel().tolist()), x),
    "mmap": mapped,
    "interface": InterfaceObject,
    "interface on a buffer": Buffered,
    "dlpack": Tensor,
    "old dlpack": OldTensor,
}


@pytest.mark.parametrize(("claim", "says"), [
    ("requires_grad", r"x requires a gradient, .*; \.detach\(\) it first"),
    ("is_conj", r"x is the conjugate .* call \.resolve_conj\(\) first"),
    ("is_neg", r"x is the negative .* call \.resolve_neg\(\) first"),
    ("is_sparse", r"x is sparse; call \.to_dense\(\) first"),
    ("is_quantized", "x is a quantized tensor; s2dq.interop.from_torch"),
])  # fmt: skip
def test_a_tensor_whose_bytes_are_not_all_of_it_is_refused(claim, says):
    """As PyTorch's say it, in an attribute or by a method."""
    x = np.arange(12, dtype=np.int16).reshape(1, 2, 2, 3)
    for value in (True, lambda self: True):
        with pytest.raises(TypeError, match=f"^space_to_depth: {says}"):
            s2dq.space_to_depth(type("Claiming", (Tensor,), {claim: value})(x), 2)
    for value in (False, lambda self: False, 7):
        plain = type("Claiming", (Tensor,), {claim: value})(x)
        np.testing.assert_array_equal(s2dq.space_to_depth(plain, 2), s2dq.space_to_depth(x, 2), strict=True)


def test_tensors_of_strings_are_not_asked_for_their_memory():
    with pytest.raises(TypeError, match=r"not Strings of .*; \.numpy\(\) may make one of it"):
        s2dq.space_to_depth(Strings(), 2)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("call", CALLS)
def test_kind_of_object(call, kind):
    check(call, KINDS[kind](values_of(CALLS[call][1])), "int16")


@pytest.mark.parametrize("call", CALLS)
def test_nested_lists(call):
    """Lists of numbers are the one thing that is copied: to NumPy's default dtypes."""
    shape = CALLS[call][1]
    check(call, values_of(shape).tolist(), np.array([1]).dtype)
    check(call, values_of(shape, "float64").tolist(), "float64")
    check(call, tuple(values_of(shape, "complex128").tolist()), "complex128")


@pytest.mark.parametrize("call", CALLS)
def test_memmap(call, tmp_path):
    shape = CALLS[call][1]
    values_of(shape).tofile(tmp_path / "x")
    for mode in ("r", "r+", "c"):
        check(call, np.memmap(tmp_path / "x", np.int16, mode, shape=shape), "int16")


@pytest.mark.parametrize("source, dtype", [
    (b"\x01\x02\x03", "uint8"), (bytearray(b"\x01\x02\x03"), "uint8"), (array.array("h", [1, 2, 3]), "int16"),
    (memoryview(b"\x01\x02\x03"), "uint8"), (array.array("d", [1, 2, 3]), "float64"),
    ((ctypes.c_int32 * 3)(1, 2, 3), "int32"),
], ids=lambda value: type(value).__name__ if not isinstance(value, str) else value)
def test_flat_buffers_where_the_rank_allows(source, dtype):
    result = s2dq.space_to_batch_nd(source, [], np.zeros((0, 2), int))
    np.testing.assert_array_equal(result, np.array([1, 2, 3], dtype), strict=True)
    check_plain(result, dtype)


def test_c_array_of_two_axes():
    x = values_of((4, 6))
    result = s2dq.space_to_batch_nd(c_array(x), [3], [[0, 0]])
    np.testing.assert_array_equal(result, reference.space_to_batch_nd(x, [3], [[0, 0]]), strict=True)


def test_recarray_gives_a_plain_structured_array():
    dtype = np.dtype([("a", "i2"), ("b", "f8")])
    x = np.zeros((1, 2, 2, 3), dtype)
    x["a"], x["b"] = values_of(x.shape), values_of(x.shape) / 8
    result = s2dq.space_to_depth(x.view(np.recarray), 2)
    assert type(result) is np.ndarray
    for field in ("a", "b"):
        np.testing.assert_array_equal(result[field], reference.space_to_depth(x[field], 2), strict=True)


def test_interface_is_asked_once():
    class Counting:
        asked = 0

        @property
        def __array_interface__(self):
            self.asked += 1
            return X.__array_interface__

    x = Counting()
    np.testing.assert_array_equal(s2dq.space_to_depth(x, 2), reference.space_to_depth(X, 2), strict=True)
    assert x.asked == 1


# ------------------------------------------------------------------------------------------- no temporaries


def measure_memory():
    """Print by how many KiB the peak memory grows during calls on crops of a 100 MiB frame.

    Frame and result are touched beforehand, the code and the threads have run before, and the memory in use is
    brought up to the peak, so that what the peak grows by was allocated by the call.
    """
    import resource
    from math import prod

    import numpy as np

    import s2dq

    size = 100 * 2**20
    frame_memory, out_memory = np.ones(size, np.uint8), np.ones(size, np.uint8)

    def frame(*shape):
        assert 0.95 * size < prod(shape) <= size, shape
        return frame_memory[: prod(shape)].reshape(shape)

    rgb, deep, planes = frame(1, 4884, 7140, 3), frame(1, 2442, 3570, 12), frame(1, 3, 4884, 7140)
    words, deep_words = frame(1, 3, 2442, 3570, 4), frame(1, 12, 1221, 1785, 4)
    to_words, from_words = {"out_format": "NCHW_VECT_C"}, {"data_format": "NCHW_VECT_C", "out_format": "NHWC"}
    in_planes, in_words = {"data_format": "NCHW"}, {"data_format": "NCHW_VECT_C"}
    halves = [2, 2], [[0, 0], [0, 0]]
    calls = {
        "s2d": (s2dq.space_to_depth, rgb[:, 2:-2, 2:-2], (2,), {}, (1, 2440, 3568, 12)),
        "s2d padded": (s2dq.space_to_depth, planes[..., 2:-2, 2:-2], (2,),
                       {**in_planes, "mode": "CRD", "paddings": [[1, 1], [3, 1]]}, (1, 12, 2441, 3570)),
        "s2d RGB to words": (s2dq.space_to_depth, rgb[:, 2:-2, 2:-2], (2,), to_words, (1, 3, 2440, 3568, 4)),
        "s2d planes to words": (s2dq.space_to_depth, planes[..., 2:-2, 2:-2], (2,),
                                {**in_planes, **to_words}, (1, 3, 2440, 3568, 4)),
        "d2s": (s2dq.depth_to_space, deep[:, 2:-2, 2:-2], (2,), {}, (1, 4876, 7132, 3)),
        "d2s RGB from words": (s2dq.depth_to_space, words[:, :, 2:-2, 2:-2], (2,), from_words, (1, 4876, 7132, 3)),
        "d2s words": (s2dq.depth_to_space, deep_words[:, :, 2:-2, 2:-2], (2,), in_words, (1, 3, 2434, 3562, 4)),
        "s2b": (s2dq.space_to_batch_nd, rgb[:, 2:-2, 2:-2], ([2, 2], [[1, 1], [3, 1]]), {}, (4, 2441, 3570, 3)),
        "b2s": (s2dq.batch_to_space_nd, frame(4, 2442, 3570, 3)[:, 2:-2, 2:-2], halves, {}, (1, 4876, 7132, 3)),
        "pack": (s2dq.pack_vect_c, planes[..., 2:2500, 2:-2], (), {}, (1, 1, 2498, 7136, 4)),
        "unpack": (s2dq.unpack_vect_c, words[:, :, 2:-2, 2:-2], (), {}, (1, 12, 2438, 3566)),
    }

    def peak():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    def in_use():
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * resource.getpagesize() // 1024

    ballast = []
    for name, (operator, x, args, kwargs, shape) in calls.items():
        small = x[tuple(slice(400) if extent > 400 else slice(None) for extent in x.shape)]
        operator(small, *args, **kwargs, num_threads=2)
        out = out_memory[: prod(shape)].reshape(shape)
        growth = []
        for _ in range(3):  # the interpreter's own heap grows now and then, a temporary is there every time
            while in_use() < peak():
                ballast.append(np.ones(2**17, np.uint8))
            before = peak()
            operator(x, *args, **kwargs, num_threads=2, out=out)
            growth.append(peak() - before)
        print(name, min(growth), sep=": ")

    # The gauge itself: two more MiB are seen.
    before = peak()
    ballast.append(np.ones(2 * 2**20, np.uint8))
    print("gauge", peak() - before, sep=": ")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.skipif(SANITIZED, reason="a sanitizer holds back memory that was freed")
def test_no_temporaries():
    # Fixed thresholds: else freed memory stays in the heap, and the next allocation does not show in the peak.
    malloc = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
    lines = run_child(measure_memory, env=malloc).splitlines()
    growth = {name: int(kib) for name, kib in (line.split(": ") for line in lines)}
    assert growth.pop("gauge") >= 1024, "the peak does not show what is allocated"
    assert len(growth) == 11
    assert max(growth.values()) < 1024, growth


class LooksLazy:
    """What NumPy would compute behind the user's back."""

    def __array__(self, dtype=None, copy=None):
        raise AssertionError("computed")


NO_NUMBERS = [np.ma.array(np.ones((4, 4, 1)), mask=True), LooksLazy(), "12", None, b"12"]


@pytest.mark.parametrize("entry", NO_NUMBERS, ids=lambda entry: type(entry).__name__)
def test_lists_hold_nothing_but_numbers(entry):
    with pytest.raises(TypeError, match="^space_to_depth: x must be a nested list of numbers"):
        s2dq.space_to_depth([entry], 2)


def test_lists_of_arrays_and_numpy_scalars_are_numbers():
    rows = [[np.int8(1), 2], np.array([3, 4])]
    assert s2dq.space_to_depth([[[[v] for v in row] for row in rows]], 2).ravel().tolist() == [1, 2, 3, 4]


def test_lists_that_hold_themselves_end():
    endless = []
    endless.append(endless)
    with pytest.raises(ValueError, match="nested deeper than 64"):
        s2dq.space_to_depth(endless, 2)


def test_block_sizes_come_in_buffers_too():
    x = np.arange(16).reshape(1, 4, 4, 1)
    for block in (memoryview(np.array([2, 4])), array.array("i", [2, 4]), np.array([2, 4], np.uint8)):
        assert s2dq.space_to_depth(x, block).shape == (1, 2, 1, 8)


def test_paddings_of_no_rows_still_have_two_columns():
    assert s2dq.space_to_batch_nd(np.ones(3), [], np.zeros((0, 2), int)).shape == (3,)
    with pytest.raises(ValueError, match="paddings must be .* shape"):
        s2dq.space_to_batch_nd(np.ones(3), [], np.zeros((0, 5), int))


@pytest.mark.parametrize(("name", "shape", "expected"), [
    ("space_to_depth", (2, 3, 4, 6, 0), (2, 12, 2, 3, 0)),
    ("depth_to_space", (2, 8, 2, 3, 0), (2, 2, 4, 6, 0)),
])  # fmt: skip
def test_words_without_lanes(name, shape, expected):
    """The channels of a word are its lanes, so there are none, and still as many words as those of a block make."""
    x = np.zeros(shape, np.int8)
    for module in (s2dq, reference):
        assert getattr(module, name)(x, 2, "NCHW_VECT_C").shape == expected, module


class WithoutMemory:
    """A tensor whose own library has no memory for a view."""

    def __dlpack__(self, **kwargs):
        raise MemoryError("of the other library")

    def __dlpack_device__(self):
        return 1, 0


def test_no_memory_of_another_library_is_a_memory_error():
    with pytest.raises(MemoryError, match="^space_to_depth: ") as caught:
        s2dq.space_to_depth(WithoutMemory(), 2)
    assert str(caught.value.__cause__) == "of the other library"


def test_more_block_dimensions_than_arrays_have():
    with pytest.raises(ValueError, match="block_shape must have at most 64 entries, not 65"):
        s2dq.space_to_batch_nd(np.zeros((1, 2), np.int8), np.ones(65, np.int64), [[0, 0]])


def test_whether_out_overlaps_may_be_too_hard_to_tell(rng):
    """Of twenty-one dimensions whose steps are drawn, in 16 GiB that are never touched: refused, and soon."""
    steps = tuple(int(step) | 1 for step in rng.integers(1 << 27, 1 << 29, 21))
    memory = np.frombuffer(mmap.mmap(-1, 1 << 34, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000), np.int8)
    x = np.lib.stride_tricks.as_strided(memory, (2,) * 21, steps)
    out = memory[sum(steps) // 2:][:1 << 21].reshape(1 << 20, *(1,) * 19, 2)
    with pytest.raises(np.exceptions.TooHardError):
        np.shares_memory(x, out, max_work=1_000_000)
    with pytest.raises(ValueError, match="out must not overlap x"):
        s2dq.space_to_batch_nd(x, [2] * 19, [[0, 0]] * 19, out=out)

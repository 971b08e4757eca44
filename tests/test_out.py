"""`out=`: the object that was passed comes back, completely written, or it is refused before the first write."""

import numpy as np
import pytest

import s2dq
from s2dq import reference

POISONS = (0xA5, 0x5A)
CALLS = {
    "s2d": ("space_to_depth", (2, 4, 6, 3), {"block_size": 2}),
    "s2d padded": ("space_to_depth", (2, 4, 6, 3), {"block_size": 2, "paddings": [[1, 1], [0, 2]], "pad_value": 7}),
    "s2d to words": ("space_to_depth", (2, 4, 6, 3), {"block_size": 2, "out_format": "NCHW_VECT_C", "vect": 8}),
    "s2d planes": ("space_to_depth", (2, 3, 4, 6), {"block_size": 2, "data_format": "NCHW", "mode": "CRD"}),
    "d2s": ("depth_to_space", (2, 3, 2, 12), {"block_size": 2}),
    "d2s cropped": ("depth_to_space", (2, 3, 2, 12), {"block_size": 2, "crops": [[1, 0], [0, 3]]}),
    "d2s words": ("depth_to_space", (2, 4, 2, 3, 4), {"block_size": 2, "data_format": "NCHW_VECT_C"}),
    "s2b": ("space_to_batch_nd", (2, 4, 6, 3), {"block_shape": [2, 3], "paddings": [[1, 1], [0, 3]]}),
    "b2s": ("batch_to_space_nd", (12, 2, 2, 3), {"block_shape": [2, 3], "crops": [[1, 1], [0, 3]]}),
    "pack": ("pack_vect_c", (2, 6, 2, 3), {"pad_value": 5}),
    "unpack": ("unpack_vect_c", (2, 2, 2, 3, 4), {"channels": 7}),
}


def source(call, dtype="int8"):
    shape = CALLS[call][1]
    return np.arange(np.prod(shape)).reshape(shape).astype(dtype)


def run(call, x, **more):
    name, _, arguments = CALLS[call]
    return getattr(s2dq, name)(x, **arguments, **more)


def answer(call, x):
    name, _, arguments = CALLS[call]
    return getattr(reference, name)(x, **arguments)


def poisoned(shape, dtype, poison=POISONS[0]):
    dtype = np.dtype(dtype)
    return np.full(int(np.prod(shape)) * dtype.itemsize, poison, np.uint8).view(dtype).reshape(shape)


# ------------------------------------------------------------------------------------------------ accepted


@pytest.mark.parametrize("poison", POISONS)
@pytest.mark.parametrize("dtype", ["int8", "int16", ">f4", "complex128"])
@pytest.mark.parametrize("call", CALLS)
def test_out_is_returned_and_completely_written(call, dtype, poison):
    x = source(call, dtype) if call != "d2s words" else source(call)
    expected = answer(call, x)
    out = poisoned(expected.shape, x.dtype, poison)
    assert run(call, x, out=out) is out
    np.testing.assert_array_equal(out, expected, strict=True)


def conversion(name, count):
    """(function, arguments, what the definition gives) of what computes, with `count` elements in the last axis."""
    rng = np.random.default_rng(count)
    values, real = rng.integers(-128, 128, (3, count), np.int8), rng.standard_normal((3, count)).astype(np.float32)
    scale = rng.random(count).astype(np.float32) + np.float32(0.01)
    q, per_column = s2dq.QuantizedTensor(values, 0.5, 3), s2dq.QuantizedTensor(values, scale, 3, axis=1)
    keywords = {"scale": 0.02, "zero_point": -5, "block_size": 2, "mean": [0.1, 0.2, 0.3]}
    padded = {**keywords, "size": (6, 2 * count + 4), "pad_value": 7}
    frames = rng.integers(0, 256, (2, 4, 2 * count, 3), np.uint8)
    words = {**keywords, "data_format": "NCHW_VECT_C", "vect": 32}
    tensor = rng.integers(-128, 128, (2, 2, count, 12), np.int8)
    return {
        "quantize": (s2dq.quantize, (real, 0.02, 3), reference.quantize(real, 0.02, 3)),
        "quantize int32": (s2dq.quantize, (real, 0.02, 3, "int32"), reference.quantize(real, 0.02, 3, "int32")),
        "dequantize": (s2dq.dequantize, (q,), reference.dequantize(values, 0.5, 3)),
        "dequantize columns": (s2dq.dequantize, (per_column,), reference.dequantize(values, scale, 3, axis=1)),
        "requantize": (s2dq.requantize, (q, 0.3, 1), reference.requantize(values, 0.5, 3, 0.3, 1)),
        "requantize columns": (s2dq.requantize, (per_column, scale / 2, 1),
                               reference.requantize(values, scale, 3, scale / 2, 1, axis=1)),
        "preprocess": (s2dq.Preprocessor(**keywords), (frames,), reference.preprocess(frames, **keywords)),
        "preprocess padded": (s2dq.Preprocessor(**padded), (frames,), reference.preprocess(frames, **padded)),
        "preprocess to words": (s2dq.Preprocessor(**words), (frames,), reference.preprocess(frames, **words)),
        "postprocess": (s2dq.Postprocessor(**keywords), (tensor,), reference.postprocess(tensor, **keywords)),
    }[name]


@pytest.mark.parametrize("poison", POISONS)
@pytest.mark.parametrize("name", ["quantize", "quantize int32", "dequantize", "dequantize columns", "requantize",
                                  "requantize columns", "preprocess", "preprocess padded", "preprocess to words",
                                  "postprocess"])
def test_what_computes_writes_all_of_out_and_nothing_else(name, poison):
    for count in (1, 2, 15, 16, 17, 33, 63, 64, 65, 1000):
        function, arguments, expected = conversion(name, count)
        raw = poisoned((expected.nbytes + 128,), np.uint8, poison)
        out = raw[64:-64].view(expected.dtype).reshape(expected.shape)
        result = function(*arguments, out=out)
        assert (result.values if isinstance(result, s2dq.QuantizedTensor) else result) is out
        np.testing.assert_array_equal(out, expected, err_msg=f"{count}", strict=True)
        assert (raw[:64] == poison).all() and (raw[-64:] == poison).all(), count


@pytest.mark.parametrize("call", CALLS)
def test_none_is_no_out(call):
    x = source(call)
    np.testing.assert_array_equal(run(call, x, out=None), answer(call, x), strict=True)


@pytest.mark.parametrize("call", CALLS)
def test_slot_of_a_ring(call):
    """`ring[i:i+1]` for one tensor at a time; the neighbours stay as they are."""
    x = source(call)
    expected = answer(call, x)
    shape = expected.shape
    ring = poisoned((4, *shape), x.dtype).reshape(4 * shape[0], *shape[1:])
    slot = ring[shape[0] : 2 * shape[0]]
    assert run(call, x, out=slot) is slot
    np.testing.assert_array_equal(slot, expected)
    others = np.concatenate([ring[: shape[0]], ring[2 * shape[0] :]])
    assert (others.view(np.uint8) == POISONS[0]).all()


def test_single_slot_has_an_arbitrary_step():
    """The step along an axis of extent 1 means nothing: C-contiguous is what the flag says."""
    x = source("s2d")[:1]
    ring = poisoned((5, 2, 3, 12), x.dtype)
    slot = ring[::3][1:2]
    assert slot.strides[0] != slot[0].nbytes and slot.flags.c_contiguous
    assert run("s2d", x, out=slot) is slot
    np.testing.assert_array_equal(ring[3], answer("s2d", x)[0])


@pytest.mark.parametrize("call", CALLS)
def test_memmap(call, tmp_path):
    x = source(call)
    expected = answer(call, x)
    out = np.memmap(tmp_path / "out", x.dtype, "w+", shape=expected.shape)
    assert run(call, x, out=out) is out
    out.flush()
    assert (tmp_path / "out").read_bytes() == expected.tobytes()


@pytest.mark.parametrize("call", CALLS)
def test_subclass(call):
    class Tagged(np.ndarray):
        def __setitem__(self, *args):
            raise AssertionError("an override was called")

    x = source(call)
    expected = answer(call, x)
    out = poisoned(expected.shape, x.dtype).view(Tagged)
    assert run(call, x, out=out) is out
    np.testing.assert_array_equal(np.asarray(out), expected, strict=True)


@pytest.mark.parametrize("call", CALLS)
def test_misaligned(call):
    x = source(call, "int8" if call == "d2s words" else "float64")
    expected = answer(call, x)
    raw = np.zeros(expected.nbytes + 1, np.uint8)
    out = raw[1:].view(x.dtype).reshape(expected.shape)
    assert run(call, x, out=out) is out
    np.testing.assert_array_equal(out, expected, strict=True)
    assert raw[0] == 0


def test_same_dtype_under_another_name():
    """On a 64-bit Linux long and long long are two names of one dtype."""
    x = source("s2d", np.longlong)
    out = np.empty((2, 2, 3, 12), f"i{np.dtype(np.longlong).itemsize}")
    np.testing.assert_array_equal(run("s2d", x, out=out), answer("s2d", x))


def test_neighbours_in_one_buffer_do_not_overlap():
    buffer = np.zeros(288, np.int8)
    x, out = buffer[:144].reshape(2, 4, 6, 3), buffer[144:].reshape(2, 2, 3, 12)
    x[...] = source("s2d")
    np.testing.assert_array_equal(run("s2d", x, out=out), answer("s2d", x))


def test_out_in_a_gap_of_the_source_does_not_overlap():
    """The two spans of memory overlap, the elements do not: `np.shares_memory` decides."""
    buffer = np.zeros((4, 400), np.int8)
    x, out = buffer[None, :, :36, None], buffer[1, 100:244].reshape(1, 2, 18, 4)
    x[...] = np.arange(144, dtype=np.uint8).view(np.int8).reshape(x.shape)
    assert np.may_share_memory(x, out) and not np.shares_memory(x, out)
    np.testing.assert_array_equal(s2dq.space_to_depth(x, 2, out=out), reference.space_to_depth(x, 2))


@pytest.mark.parametrize("shape", [(0, 4, 6, 3), (2, 0, 6, 3), (2, 4, 0, 3), (2, 4, 6, 0)])
def test_empty(shape):
    x = np.zeros(shape, np.int8)
    out = np.empty((shape[0], shape[1] // 2, shape[2] // 2, 4 * shape[3]), np.int8)
    assert s2dq.space_to_depth(x, 2, out=out) is out


# ------------------------------------------------------------------------------------------------- refused


def refuse(call, x, out, error, *words, memory=None):
    """The call raises exactly `error`, names `out`, and leaves the memory alone."""
    memory = out if memory is None else memory
    before = bytes_of(memory)
    with pytest.raises(error, match=rf"^{CALLS[call][0]}: .*\bout\b") as raised:
        run(call, x, out=out)
    assert raised.type is error
    for word in words:
        assert word in str(raised.value), f"no {word!r} in {raised.value}"
    assert bytes_of(memory) == before, "out was written to"


def bytes_of(memory):
    return memory.tobytes() if isinstance(memory, np.ndarray) else bytes(memory)


@pytest.mark.parametrize("call", CALLS)
def test_other_dtype_is_a_type_error(call):
    x = source(call)
    shape = answer(call, x).shape
    for dtype in ("uint8", "int16", "bool", "S1", "V1", "float32", [("a", "i1")]):
        refuse(call, x, poisoned(shape, dtype), TypeError, "int8", str(np.dtype(dtype)))
    refuse(call, x, np.full(shape, None), TypeError, "int8", "object", memory=b"")


@pytest.mark.parametrize("call", [call for call in CALLS if call != "d2s words"])
def test_other_byte_order_is_a_type_error(call):
    x = source(call, "int16")
    shape = answer(call, x).shape
    refuse(call, x, poisoned(shape, x.dtype.newbyteorder()), TypeError, "int16")
    refuse(call, x.astype(x.dtype.newbyteorder()), poisoned(shape, "int16"), TypeError, "int16")


@pytest.mark.parametrize("call", CALLS)
def test_no_ndarray_is_a_type_error(call):
    x = source(call)
    good = answer(call, x)
    buffer = bytearray(good.nbytes)
    shaped = memoryview(buffer).cast("b", good.shape)
    for out in (shaped, buffer, good.tolist(), (), "out", 0, False, object(), np.int8(1)):
        refuse(call, x, out, TypeError, type(out).__name__, memory=buffer)
    masked = np.ma.array(poisoned(good.shape, "int8"), mask=False)
    refuse(call, x, masked, TypeError, memory=masked.data)


@pytest.mark.parametrize("call", CALLS)
def test_other_shape_is_a_value_error(call):
    x = source(call)
    shape = answer(call, x).shape
    others = {shape[1:], (1, *shape), (*shape, 1), shape[::-1], (0, *shape[1:]), (shape[0] + 1, *shape[1:]), (),
              (int(np.prod(shape)),), (*shape[:-1], shape[-1] + 1)} - {shape}
    for other in others:
        refuse(call, x, poisoned(other, "int8"), ValueError, str(shape), str(other))


@pytest.mark.parametrize("call", CALLS)
def test_other_order_is_a_value_error(call):
    x = source(call)
    shape = answer(call, x).shape
    refuse(call, x, np.asfortranarray(poisoned(shape, "int8")), ValueError, "contiguous")
    refuse(call, x, poisoned(shape, "int8")[..., ::-1], ValueError, "contiguous")
    refuse(call, x, poisoned(shape, "int8")[::-1], ValueError, "contiguous")
    refuse(call, x, poisoned((*shape, 2), "int8")[..., 0], ValueError, "contiguous")
    larger = poisoned([extent + 1 for extent in shape], "int8")
    refuse(call, x, larger[tuple(map(slice, shape))], ValueError, "contiguous")


@pytest.mark.parametrize("call", CALLS)
def test_overlap_with_itself_is_a_value_error(call):
    x = source(call)
    shape = answer(call, x).shape
    memory = poisoned(shape, "int8")
    for axis, extent in enumerate(shape):
        if extent > 1:
            steps = [step if i != axis else 0 for i, step in enumerate(memory.strides)]
            out = np.lib.stride_tricks.as_strided(memory, shape, steps, writeable=True)
            refuse(call, x, out, ValueError, memory=memory)


@pytest.mark.parametrize("call", CALLS)
def test_read_only_is_a_value_error(call, tmp_path):
    x = source(call)
    out = poisoned(answer(call, x).shape, "int8")
    out.flags.writeable = False
    refuse(call, x, out, ValueError, "read-only")
    out.tofile(tmp_path / "out")
    mapped = np.memmap(tmp_path / "out", np.int8, "r", shape=out.shape)
    refuse(call, x, mapped, ValueError, "read-only")


@pytest.mark.parametrize("call", CALLS)
def test_overlap_with_the_source_is_a_value_error(call):
    x = source(call)
    shape = answer(call, x).shape
    size = int(np.prod(shape))
    # From the same memory to one byte in common at either end.
    for offset in (0, 1, x.size // 2, x.size - 1, 1 - size):
        buffer = poisoned(2 * size + 2 * x.size, "int8")
        shared = buffer[size : size + x.size].reshape(x.shape)
        shared[...] = x
        out = buffer[size + offset : 2 * size + offset].reshape(shape)
        refuse(call, shared, out, ValueError, "overlap", memory=buffer)


def test_overlap_with_a_broadcast_source_is_a_value_error():
    """One byte, seen everywhere: the extent of the memory says little about it."""
    buffer = poisoned((2, 2, 3, 12), "int8")
    x = np.broadcast_to(buffer[1, 1, 2, 11:], (2, 4, 6, 3))
    refuse("s2d", x, buffer, ValueError, "overlap")


def test_sliced_views_of_one_array_overlap():
    buffer = poisoned((2, 8, 6, 3), "int8")
    x, out = buffer[:, ::2], buffer.reshape(-1)[:144].reshape(2, 2, 3, 12)
    refuse("s2d", x, out, ValueError, "overlap", memory=buffer)

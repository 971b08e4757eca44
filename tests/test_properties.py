"""What must hold for any shape, block, padding, dtype and memory: found by Hypothesis."""

from math import prod

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import s2dq
import s2dq.reference
from checker import bytes_of, elements_of

LAYOUTS = {1: ("NWC", "NCW"), 2: ("NHWC", "NCHW", "NCHW_VECT_C"), 3: ("NDHWC", "NCDHW")}
PACKED = "NCHW_VECT_C"
DTYPES = ("i1", "u1", "<i2", ">i2", "<f4", "<f8", "<c16", "S3", "V6")
BYTES = ("i1", "u1")
MODES = st.sampled_from(("DCR", "CRD", "focus"))
THREADS = st.sampled_from((None, 1, 2))


@st.composite
def tensors(draw, shape, dtypes=DTYPES):
    """An array of this shape with any bytes in it, axes in any order in memory, gaps, backward steps."""
    dtype = np.dtype(draw(st.sampled_from(dtypes)))
    order = draw(st.permutations(range(len(shape))))
    steps = draw(st.lists(st.sampled_from((1, 1, -1, 2, -3)), min_size=len(shape), max_size=len(shape)))
    seed = draw(st.integers(0, 2**32 - 1))
    memory = [shape[axis] * abs(steps[axis]) for axis in order]
    raw = np.random.default_rng(seed).integers(0, 256, prod(memory) * dtype.itemsize, np.uint8)
    if dtype.kind in "fc":
        raw &= 0x3F  # no NaN, so that equal arrays compare equal
    whole = elements_of(raw, memory, dtype).transpose(np.argsort(order))
    return whole[tuple(slice(None, None, step) for step in steps)]


@st.composite
def blocks(draw, dims):
    """An int, or one per dimension; and the latter."""
    largest = 3 if dims < 3 else 2
    if draw(st.booleans()):
        size = draw(st.integers(1, largest))
        return size, (size,) * dims
    sizes = tuple(draw(st.integers(1, largest)) for _ in range(dims))
    return sizes, sizes


@st.composite
def margins(draw, totals):
    """[start, end] per dimension, together no more than there is."""
    pairs = []
    for total in totals:
        start = draw(st.integers(0, min(total, 4)))
        pairs.append([start, draw(st.integers(0, min(total - start, 4)))])
    return pairs


@st.composite
def depth_calls(draw, dims=(1, 2, 3), packed=True):
    """(x, arguments) of a legal space_to_depth of a possibly packed source."""
    dims = draw(st.sampled_from(dims))
    layout = draw(st.sampled_from([f for f in LAYOUTS[dims] if packed or f != PACKED]))
    out_format = draw(st.sampled_from((None, *LAYOUTS[dims])))
    block_size, block = draw(blocks(dims))
    cells = [draw(st.integers(0, 3)) for _ in range(dims)]
    pairs = draw(margins([c * b for c, b in zip(cells, block, strict=True)]))
    extents = [c * b - sum(p) for c, b, p in zip(cells, block, pairs, strict=True)]
    batch, count, lanes = draw(st.integers(0, 2)), draw(st.integers(0, 5)), draw(st.integers(1, 9))
    arguments = {"block_size": block_size, "data_format": layout, "out_format": out_format, "mode": draw(MODES),
                 "vect": draw(st.integers(1, 9)), "paddings": pairs}
    packed_to_packed = layout == PACKED and out_format in (None, PACKED)
    if layout == PACKED:
        arguments["channels"] = draw(st.sampled_from((None, count)))
    x = draw(tensors(shape_of(layout, batch, extents, count, lanes), BYTES if packed_to_packed else DTYPES))
    return x, arguments


def shape_of(layout, batch, extents, count, lanes):
    if layout == PACKED:
        return (batch, -(-count // lanes), *extents, lanes)
    return (batch, *extents, count) if layout.endswith("C") else (batch, count, *extents)


def equal(result, expected):
    """Same type, shape, dtype and bytes."""
    assert type(result) is np.ndarray
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(bytes_of(result), bytes_of(expected), strict=True)


def called(operator, x, num_threads, **arguments):
    """The result, also written into a poisoned `out`, equal to the reference."""
    result = getattr(s2dq, operator)(x, **arguments, num_threads=num_threads)
    equal(result, getattr(s2dq.reference, operator)(x, **arguments))
    out = np.ndarray(result.shape, result.dtype, buffer=bytearray(b"\xa5" * result.nbytes))
    assert getattr(s2dq, operator)(x, **arguments, num_threads=num_threads, out=out) is out
    equal(out, result)
    return result


@given(depth_calls(), THREADS)
def test_space_to_depth_equals_reference(call, num_threads):
    x, arguments = call
    called("space_to_depth", x, num_threads, **arguments)


@given(depth_calls(packed=False), THREADS)
def test_depth_to_space_undoes_space_to_depth(call, num_threads):
    x, arguments = call
    deep = called("space_to_depth", x, num_threads, **arguments)
    back = {"block_size": arguments["block_size"], "mode": arguments["mode"], "crops": arguments["paddings"],
            "data_format": arguments["out_format"] or arguments["data_format"],
            "out_format": arguments["data_format"]}
    if back["data_format"] == PACKED:  # a packed tensor does not know how many channels it has
        shallow = x.shape[-1 if arguments["data_format"] == "NHWC" else 1]
        back["channels"] = shallow * prod(np.broadcast_to(arguments["block_size"], 2).tolist())
    equal(called("depth_to_space", deep, num_threads, **back), np.array(x))


@st.composite
def deep_calls(draw):
    """(x, arguments) of a legal depth_to_space without packing on both sides."""
    dims = draw(st.integers(1, 3))
    layout = draw(st.sampled_from(LAYOUTS[dims]))
    targets = [f for f in LAYOUTS[dims] if not layout == f == PACKED]
    block_size, block = draw(blocks(dims))
    cells = [draw(st.integers(0, 3)) for _ in range(dims)]
    pairs = draw(margins([c * b for c, b in zip(cells, block, strict=True)]))
    count, lanes = draw(st.integers(0, 4)) * prod(block), draw(st.integers(1, 9))
    arguments = {"block_size": block_size, "data_format": layout, "out_format": draw(st.sampled_from(targets)),
                 "mode": draw(MODES), "vect": draw(st.integers(1, 9)), "crops": pairs}
    if layout == PACKED:
        arguments["channels"] = count
    x = draw(tensors(shape_of(layout, draw(st.integers(0, 2)), cells, count, lanes)))
    return x, arguments


@given(deep_calls(), THREADS)
def test_depth_to_space_equals_reference(call, num_threads):
    x, arguments = call
    called("depth_to_space", x, num_threads, **arguments)


@given(st.data(), MODES, blocks(2), st.integers(1, 9), THREADS)
def test_packed_depth_to_space_equals_reference(data, mode, block, lanes, num_threads):
    block_size, sizes = block
    cells = [data.draw(st.integers(0, 3)) for _ in sizes]
    words = prod(sizes) * data.draw(st.integers(0, 2))
    x = data.draw(tensors((data.draw(st.integers(0, 2)), words, *cells, lanes), BYTES))
    shallow = called("depth_to_space", x, num_threads, block_size=block_size, data_format=PACKED, mode=mode,
                     out_format=PACKED, vect=lanes)
    back = called("space_to_depth", shallow, num_threads, block_size=block_size, data_format=PACKED, mode=mode,
                  out_format=PACKED, vect=lanes)
    equal(back, np.array(x))


@given(st.data(), st.lists(st.integers(1, 3), max_size=5), st.integers(0, 3), THREADS)
def test_batch_to_space_undoes_space_to_batch(data, block, batch, num_threads):
    cells = [data.draw(st.integers(0, 2)) for _ in block]
    pairs = data.draw(margins([c * b for c, b in zip(cells, block, strict=True)]))
    extents = [c * b - sum(p) for c, b, p in zip(cells, block, pairs, strict=True)]
    rest = data.draw(st.lists(st.integers(0, 3), max_size=2))
    x = data.draw(tensors((batch, *extents, *rest)))
    pairs = np.array(pairs, np.int32).reshape(-1, 2)
    batches = called("space_to_batch_nd", x, num_threads, block_shape=block, paddings=pairs)
    equal(called("batch_to_space_nd", batches, num_threads, block_shape=block, crops=pairs), np.array(x))


@given(st.data(), st.sampled_from(("NCHW", "NHWC")), st.integers(1, 33), THREADS)
def test_unpack_undoes_pack(data, data_format, vect, num_threads):
    x = data.draw(tensors([data.draw(st.integers(0, 4)) for _ in range(3)] + [data.draw(st.integers(0, 40))]))
    count = x.shape[1 if data_format == "NCHW" else -1]
    packed = called("pack_vect_c", x, num_threads, data_format=data_format, vect=vect)
    assert packed.shape[1] == -(-count // vect) and packed.shape[-1] == vect
    spare = bytes_of(packed).sum(dtype=np.int64) - bytes_of(np.array(x)).sum(dtype=np.int64)
    assert spare == 0, "spare lanes are raw zero"
    back = called("unpack_vect_c", packed, num_threads, data_format=data_format, channels=count)
    equal(back, np.array(x))


@given(depth_calls(dims=(2,), packed=False))
def test_packing_in_the_same_pass_is_packing_afterwards(call):
    x, arguments = call
    layout, vect = arguments["data_format"], arguments.pop("vect")
    once = s2dq.space_to_depth(x, **arguments | {"out_format": PACKED, "vect": vect})
    twice = s2dq.pack_vect_c(s2dq.space_to_depth(x, **arguments | {"out_format": layout}), layout, vect=vect)
    equal(once, twice)

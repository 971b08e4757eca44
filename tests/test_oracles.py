"""The oracles agree with each other and with the table that defines the operators; the checker can fail."""

from itertools import product

import numpy as np
import pytest

import loops
import s2dq.reference
from checker import ARRANGEMENTS, both_oracles, check, elements_of, sample

MODES = ("DCR", "CRD", "focus")
LAYOUTS = {1: ("NWC", "NCW"), 2: ("NHWC", "NCHW", "NCHW_VECT_C"), 3: ("NDHWC", "NCDHW")}
LAYOUT_PAIRS = [pair for layouts in LAYOUTS.values() for pair in product(layouts, (None, *layouts))]
DIMS = {layout: dims for dims, layouts in LAYOUTS.items() for layout in layouts}


def numbered(shape, dtype=np.int16):
    """1, 2, 3 ...: no two elements are equal, and none is the zero of a filler."""
    return np.arange(1, np.prod(shape, dtype=int) + 1).reshape(shape).astype(dtype)


# --- both oracles


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("layout", "out_format"), LAYOUT_PAIRS)
def test_oracles_agree_on_depth_operators(layout, out_format, mode):
    dims = DIMS[layout]
    blocks = (1, 2, 3, (2, 3)) if dims == 2 else (1, 2, (1, 2, 3)[-dims:])
    margin_choices = (None, [[1, 1]] * dims, [[0, 2], [2, 0], [1, 1]][:dims])
    formats = {"data_format": layout, "out_format": out_format, "mode": mode}
    for block, margins, vect, lanes in product(blocks, margin_choices, (1, 4, 8), (3, 4)):
        volume = np.prod(loops.per_dimension(block, dims))
        extents = [b * 2 - sum(pair) % b for b, pair in zip(
            loops.per_dimension(block, dims), margins or [[0, 0]] * dims, strict=True)]
        x = numbered(loops.shape_in(layout, 1, extents, 5, lanes), np.uint8)
        both_oracles("space_to_depth")(x, block_size=block, vect=vect, paddings=margins, pad_value=201, **formats,
                                       channels=5 if layout == "NCHW_VECT_C" else None)
        y = numbered(loops.shape_in(layout, 2, (2,) * dims, volume * lanes, lanes), np.uint8)
        crops = margins if np.min(loops.per_dimension(block, dims)) > 1 else None
        both_oracles("depth_to_space")(y, block_size=block, vect=vect, crops=crops, **formats)


@pytest.mark.parametrize("block", [(), (1,), (3,), (2, 3), (3, 1, 2), (1, 2, 1, 2)])
@pytest.mark.parametrize("rest", [(), (3,), (2, 2)])
def test_oracles_agree_on_batch_operators(block, rest):
    for batch, margins in product((1, 2), ((0, 0), (1, 0), (0, 2), (2, 1))):
        pairs = np.array([margins] * len(block), int).reshape(len(block), 2)
        x = numbered((batch, *(2 * b - sum(margins) % b for b in block), *rest))
        both_oracles("space_to_batch_nd")(x, block_shape=block, paddings=pairs, pad_value=-1)
        y = numbered((batch * int(np.prod(block)), *(3 for _ in block), *rest))
        both_oracles("batch_to_space_nd")(y, block_shape=block, crops=pairs)


@pytest.mark.parametrize("data_format", ["NCHW", "NHWC"])
@pytest.mark.parametrize("vect", [1, 3, 4, 32])
def test_oracles_agree_on_packing(data_format, vect):
    for count in (1, vect - 1 or 1, vect, vect + 1, 2 * vect + 1):
        x = numbered(loops.shape_in(data_format, 2, (2, 3), count, 0))
        packed = both_oracles("pack_vect_c")(x, data_format=data_format, vect=vect, pad_value=-7)
        back = both_oracles("unpack_vect_c")(packed, data_format=data_format, channels=count)
        np.testing.assert_array_equal(back, x, strict=True)
        everything = both_oracles("unpack_vect_c")(packed, data_format=data_format)
        assert np.count_nonzero(everything == -7) == (-count % vect) * 2 * 2 * 3


# --- the loops against the definition


# operator, layout, mode, how the source is split, the permutation: x has b = 2, and 3x2 cells of C = 3 channels
DEFINITIONS = [
    ("space_to_depth", "NHWC", "DCR", "N h bY w bX C", (0, 1, 3, 2, 4, 5)),
    ("space_to_depth", "NHWC", "CRD", "N h bY w bX C", (0, 1, 3, 5, 2, 4)),
    ("space_to_depth", "NCHW", "DCR", "N C h bY w bX", (0, 3, 5, 1, 2, 4)),
    ("space_to_depth", "NCHW", "CRD", "N C h bY w bX", (0, 1, 3, 5, 2, 4)),
    ("depth_to_space", "NHWC", "DCR", "N h w bY bX C", (0, 1, 3, 2, 4, 5)),
    ("depth_to_space", "NHWC", "CRD", "N h w C bY bX", (0, 1, 4, 2, 5, 3)),
    ("depth_to_space", "NCHW", "DCR", "N bY bX C h w", (0, 3, 4, 1, 5, 2)),
    ("depth_to_space", "NCHW", "CRD", "N C bY bX h w", (0, 1, 4, 2, 5, 3)),
    ("space_to_depth", "NCHW_VECT_C", "DCR", "N C h bY w bX V", (0, 3, 5, 1, 2, 4, 6)),
    ("depth_to_space", "NCHW_VECT_C", "DCR", "N bY bX C h w V", (0, 3, 4, 1, 5, 2, 6)),
]


@pytest.mark.parametrize(("operator", "layout", "mode", "split", "order"), DEFINITIONS)
def test_loops_are_the_published_permutation(operator, layout, mode, split, order):
    extents = {"N": 2, "h": 3, "w": 2, "bY": 2, "bX": 2, "C": 3, "V": 4}
    x = numbered([extents[axis] for axis in split.split()], np.uint16)
    cells = (3, 2)
    big, small = ((6, 4), 3), (cells, 12)
    (space, count), (out_space, out_count) = (big, small) if operator == "space_to_depth" else (small, big)
    lanes = extents["V"] if layout == "NCHW_VECT_C" else 1  # the packed operator counts channels in words
    source = x.reshape(loops.shape_in(layout, 2, space, count * lanes, lanes))
    expected = x.transpose(order).reshape(loops.shape_in(layout, 2, out_space, out_count * lanes, lanes))
    result = getattr(loops, operator)(source, 2, layout, mode=mode)
    np.testing.assert_array_equal(result, expected, strict=True)


@pytest.mark.parametrize("mode", MODES)
def test_loops_number_deep_channels_once(mode):
    for block in ((3,), (2, 3), (2, 1, 3)):
        deep = [loops.deep_channel(mode, offset, block, c, 4) for offset in product(*map(range, block))
                for c in range(4)]
        assert sorted(deep) == list(range(4 * int(np.prod(block))))


# --- known relations, on the oracles themselves


@pytest.mark.parametrize("source", [loops, s2dq.reference], ids=lambda module: module.__name__)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("layout", "out_format"), LAYOUT_PAIRS)
def test_depth_to_space_undoes_space_to_depth(source, layout, out_format, mode):
    dims, block = DIMS[layout], (2, 3, 2)[:DIMS[layout]]
    x = numbered(loops.shape_in(layout, 2, [2 * b for b in block], 4, 4), np.uint8)
    deep = source.space_to_depth(x, block, layout, mode=mode, out_format=out_format)
    back = source.depth_to_space(deep, block, out_format or layout, mode=mode, out_format=layout)
    np.testing.assert_array_equal(back, x, strict=True)
    margins = [[1, b - 1] for b in block]
    padded = source.space_to_depth(x, block, layout, mode=mode, out_format=out_format, paddings=margins)
    back = source.depth_to_space(padded, block, out_format or layout, mode=mode, out_format=layout, crops=margins)
    np.testing.assert_array_equal(back, x, strict=True)
    assert padded.size == deep.size // 2**dims * 3**dims


@pytest.mark.parametrize("source", [loops, s2dq.reference], ids=lambda module: module.__name__)
def test_batch_to_space_undoes_space_to_batch(source):
    x = numbered((2, 3, 4, 5))
    margins = [[1, 2], [0, 0]]
    batches = source.space_to_batch_nd(x, [3, 2], margins)
    assert batches.shape == (12, 2, 2, 5)
    np.testing.assert_array_equal(source.batch_to_space_nd(batches, [3, 2], margins), x, strict=True)
    np.testing.assert_array_equal(source.space_to_batch(x, [3, 2], margins), batches, strict=True)
    np.testing.assert_array_equal(source.batch_to_space(batches, [3, 2], margins), x, strict=True)


@pytest.mark.parametrize("source", [loops, s2dq.reference], ids=lambda module: module.__name__)
def test_packing_before_space_to_depth_is_not_packing_after_it(source):
    x = numbered((1, 3, 4, 4), np.uint8)
    packed_before = source.space_to_depth(source.pack_vect_c(x), 2, "NCHW_VECT_C")
    packed_after = source.pack_vect_c(source.space_to_depth(x, 2, "NCHW"))
    assert packed_before.shape == (1, 4, 2, 2, 4) and packed_after.shape == (1, 3, 2, 2, 4)
    assert not packed_before[..., 3].any() and packed_after.all(), "a filler after every 3, and none"
    fused = source.space_to_depth(x, 2, "NCHW", out_format="NCHW_VECT_C")
    np.testing.assert_array_equal(fused, packed_after, strict=True)
    np.testing.assert_array_equal(
        source.space_to_depth(source.pack_vect_c(x), 2, "NCHW_VECT_C", channels=3), packed_after, strict=True)


@pytest.mark.parametrize("source", [loops, s2dq.reference], ids=lambda module: module.__name__)
@pytest.mark.parametrize("mode", MODES)
def test_packed_operator_is_unpack_operator_pack(source, mode):
    x = numbered((1, 4, 4, 4, 4), np.uint8)
    for name, shape in (("space_to_depth", (1, 16, 2, 2, 4)), ("depth_to_space", (1, 1, 8, 8, 4))):
        operator = getattr(source, name)
        packed = operator(x, 2, "NCHW_VECT_C", mode=mode)
        step_by_step = source.pack_vect_c(operator(source.unpack_vect_c(x), 2, "NCHW", mode=mode))
        assert packed.shape == shape
        np.testing.assert_array_equal(packed, step_by_step, strict=True)


@pytest.mark.parametrize(("operator", "shape", "arguments"), [
    ("space_to_depth", (1, 2, 2, 4), {"block_size": 1}),
    ("depth_to_space", (1, 2, 2, 4), {"block_size": 1}),
    ("space_to_batch_nd", (1, 2), {"block_shape": [1], "paddings": [[0, 0]]}),
    ("batch_to_space_nd", (1, 2), {"block_shape": [1], "crops": [[0, 0]]}),
    ("pack_vect_c", (1, 2, 2, 4), {"data_format": "NHWC"}),
    ("unpack_vect_c", (1, 1, 1, 1, 4), {}),
])
def test_oracle_gives_a_copy_where_nothing_moves(operator, shape, arguments):
    x = numbered(shape)
    for source in (loops, s2dq.reference):
        result = getattr(source, operator)(x, **arguments)
        np.testing.assert_array_equal(result.ravel(), x.ravel())
        assert not np.shares_memory(result, x), source.__name__


def test_packed_format_left_alone_keeps_its_words():
    x = numbered((1, 2, 2, 2, 8), np.uint8)
    for source in (loops, s2dq.reference):
        assert source.space_to_depth(x, 2, "NCHW_VECT_C").shape == (1, 8, 1, 1, 8)
        assert source.space_to_depth(x, 2, "NCHW_VECT_C", vect=16).shape == (1, 4, 1, 1, 16)
        assert source.space_to_depth(x, 2, "NCHW_VECT_C", out_format="NCHW_VECT_C").shape == (1, 16, 1, 1, 4)


# --- the checker


def right(x, *, out=None, **arguments):
    result = loops.space_to_depth(x, **arguments)
    if out is None:
        return result
    out[...] = result
    return out


def swaps_elements_whose_labels_agree(x, *, out=None, **arguments):
    """Source elements 10 and 266 change places: as int8 labels, both are 10."""
    places = loops.space_to_depth(np.arange(x.size).reshape(x.shape), **arguments | {"pad_value": -1})
    result = right(x, **arguments)
    one, other = np.argwhere(places == 10)[0], np.argwhere(places == 266)[0]
    result[*one], result[*other] = result[*other].copy(), result[*one].copy()
    return stored(result, out)


def stored(result, out):
    if out is None:
        return result
    out[...] = result
    return out


def swaps_bytes_of_elements(x, *, out=None, **arguments):
    return stored(right(x, **arguments).byteswap(), out)


def moves_padding_by_one(x, *, out=None, paddings=None, **arguments):
    return stored(right(x, paddings=[[start + 1, end - 1] for start, end in paddings], **arguments), out)


def forgets_the_pad_value(x, *, out=None, pad_value=None, **arguments):
    return right(x, out=out, **arguments)


def leaves_the_last_element_of_out(x, *, out=None, **arguments):
    if out is None:
        return right(x, **arguments)
    out.reshape(-1)[:-1] = right(x, **arguments).reshape(-1)[:-1]
    return out


def returns_another_object(x, *, out=None, **arguments):
    return right(x, **arguments) if out is None else right(x, out=out, **arguments)[...]


def returns_a_view(x, *, out=None, **arguments):
    return right(x, out=out, **arguments) if out is not None else right(x, **arguments)[...]


def returns_fortran_order(x, *, out=None, **arguments):
    return right(x, out=out, **arguments) if out is not None else np.asfortranarray(right(x, **arguments))


def returns_another_dtype(x, *, out=None, **arguments):
    return right(x, out=out, **arguments) if out is not None else right(x, **arguments).view(
        np.dtype(f"V{x.itemsize}"))


def returns_another_shape(x, *, out=None, **arguments):
    return right(x, out=out, **arguments) if out is not None else np.array(right(x, **arguments)[None])


def changes_its_source(x, *, out=None, **arguments):
    result = right(x, out=out, **arguments)
    np.ndarray(1, np.uint8, buffer=x)[0] ^= 1
    return result


def writes_past_the_end_of_out(x, *, out=None, **arguments):
    if out is not None:
        memory = out.base
        memory[memory.size // 2 + out.nbytes // 2] = 0
    return right(x, out=out, **arguments)


SABOTAGE = [swaps_elements_whose_labels_agree, swaps_bytes_of_elements, moves_padding_by_one,
            forgets_the_pad_value, leaves_the_last_element_of_out, returns_another_object, returns_a_view,
            returns_fortran_order, returns_another_dtype, returns_another_shape, changes_its_source,
            writes_past_the_end_of_out]
SABOTAGED = {"x_shape": (1, 10, 14, 3), "arguments": {"block_size": 2, "paddings": [[1, 1], [1, 1]], "pad_value": 5},
             "oracle": loops.space_to_depth}


@pytest.mark.parametrize("dtype", ["u1", "f4"])
def test_checker_passes_what_is_right(dtype, rng):
    check(right, dtype=dtype, rng=rng, **SABOTAGED)


@pytest.mark.parametrize("sabotaged", SABOTAGE, ids=lambda function: function.__name__)
def test_checker_notices(sabotaged, rng):
    dtype = "u2" if sabotaged is swaps_bytes_of_elements else "u1"
    with pytest.raises(AssertionError, match=sabotaged.__name__):
        check(sabotaged, dtype=dtype, rng=rng, **SABOTAGED)


def test_values_alone_would_miss_swapped_labels():
    """Why there are planes: the sabotage is invisible in one run over int8 labels."""
    x = np.arange(10 * 14 * 3).astype(np.int8).reshape(1, 10, 14, 3)
    np.testing.assert_array_equal(swaps_elements_whose_labels_agree(x, block_size=2), right(x, block_size=2))


# --- memory


@pytest.mark.parametrize("name", ARRANGEMENTS)
@pytest.mark.parametrize("dtype", ["u1", "f4", "V3"])
def test_arrangement_keeps_shape_and_most_values(name, dtype, rng):
    x = sample((2, 3, 4, 5), np.dtype(dtype), rng)
    arranged = ARRANGEMENTS[name](x.copy())
    assert arranged.shape == x.shape
    if not name.startswith("broadcast"):
        assert arranged.tobytes() == x.tobytes()
    expected = {
        "C": lambda a: a.flags.c_contiguous and a.flags.writeable,
        "fortran": lambda a: a.flags.f_contiguous and not a.flags.c_contiguous,
        "rolled": lambda a: a.strides[-1] == max(a.strides),
        "negative": lambda a: max(a.strides) < 0,
        "partly_negative": lambda a: min(a.strides) < 0 < max(a.strides),
        "crop": lambda a: a.base.nbytes > a.nbytes and a.strides[-1] == a.itemsize,
        "every_second": lambda a: a.strides[-1] == 2 * a.itemsize,
        "broadcast_batch": lambda a: a.strides[0] == 0,
        "broadcast_inner": lambda a: a.strides[2] == 0,
        "broadcast_last": lambda a: a.strides[-1] == 0,
        "misaligned": lambda a: a.ctypes.data % 2 == 1,
        "read_only": lambda a: not a.flags.writeable,
        "big_endian": lambda a: a.dtype == x.dtype.newbyteorder(">"),
        "subclass": lambda a: type(a) is not np.ndarray,
    }
    assert expected[name](arranged)


def test_elements_of_takes_raw_bytes():
    raw = np.array([1, 2, 3, 4], np.uint8)
    np.testing.assert_array_equal(elements_of(raw, (2,), np.dtype("<u2")), np.array([0x201, 0x403], "<u2"))

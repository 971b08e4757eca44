"""Every element type: fixed-size ones move as bytes, references through NumPy with their counts intact."""

import gc
import sys
from fractions import Fraction

import numpy as np
import pytest

import s2dq
from s2dq import _validate, reference

MARGINS = [[1, 1], [0, 2]]
# (operator, shape of x, arguments): moving, padding, cropping, spare lanes.
CALLS = {
    "s2d": ("space_to_depth", (1, 4, 6, 3), {"block_size": 2}),
    "s2d padded": ("space_to_depth", (1, 4, 6, 3), {"block_size": 2, "mode": "CRD", "paddings": MARGINS}),
    "s2d to words": ("space_to_depth", (1, 4, 6, 3), {"block_size": 1, "out_format": "NCHW_VECT_C",
                                                      "paddings": MARGINS}),
    "d2s": ("depth_to_space", (1, 2, 3, 8), {"block_size": 2, "out_format": "NCHW", "crops": MARGINS}),
    "s2b": ("space_to_batch_nd", (1, 4, 6, 3), {"block_shape": [2, 2], "paddings": MARGINS}),
    "b2s": ("batch_to_space_nd", (4, 2, 3, 3), {"block_shape": [2, 2], "crops": MARGINS}),
    "pack": ("pack_vect_c", (1, 6, 2, 3), {}),
    "unpack": ("unpack_vect_c", (1, 2, 2, 3, 4), {"channels": 7}),
}
PADDED = ("s2d padded", "s2b")

FIXED = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32",
         "float64", "longdouble", "complex64", "complex128", "clongdouble", "M8[s]", "M8[ns]", "m8[D]", "M8[25us]",
         "S1", "S3", "S33", "U1", "U5", "V1", "V3", "V16", "V40", ">i2", ">f8", ">c16", ">U4", ">M8[s]"]
STRUCTURED = {
    "packed": np.dtype("u1,>i4,f2"),
    "aligned": np.dtype([("a", "u1"), ("b", "f8"), ("c", "i2")], align=True),
    "nested": np.dtype([("a", [("x", "i2"), ("y", "f4", (2, 3))]), ("b", "S3")]),
    "titled": np.dtype([(("first", "a"), "i2"), ("b", "M8[s]")]),
    "offsets": np.dtype({"names": ["a", "b"], "formats": ["i2", "u1"], "offsets": [5, 1], "itemsize": 11}),
    "one field": np.dtype([("a", "f4")]),
}
ML_DTYPES = ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz", "float8_e3m4", "float8_e8m0fnu",
             "float6_e2m3fn", "float4_e2m1fn", "int4", "uint4", "int2", "uint2", "complex32"]


def registered(name):
    """The type of ml_dtypes, if this version has it."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    if not hasattr(ml_dtypes, name):
        pytest.skip(f"ml_dtypes {ml_dtypes.__version__} has no {name}")
    return getattr(ml_dtypes, name)


def reference_of(call):
    name, _, arguments = CALLS[call]
    return lambda x: getattr(reference, name)(x, **arguments)


def run(call, x, **more):
    name, _, arguments = CALLS[call]
    return getattr(s2dq, name)(x, **arguments, **more)


def source_positions(call):
    """Flat index in x of every element of the result, -1 where there is fill: from the reference alone."""
    shape = CALLS[call][1]
    return reference_of(call)(np.arange(1, 1 + np.prod(shape)).reshape(shape)) - 1


def elements(shape, dtype, rng):
    """Elements with random bytes: NaNs with payloads, NaTs, denormals, padding bytes, whatever comes."""
    dtype = np.dtype(dtype)
    count = int(np.prod(shape))
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind == "U":  # not every 32-bit number is a character
        numbers = rng.integers(0, 0xD800, (count, dtype.itemsize // 4))
        return numbers.astype(f"{dtype.byteorder}u4").view(dtype).reshape(shape)
    return rng.integers(0, 256, count * dtype.itemsize, np.uint8).view(dtype).reshape(shape)


def check_bytes(call, x):
    """Every element of the result holds exactly the bytes of its source, and the fill is the dtype's zero."""
    result = run(call, x)
    assert type(result) is np.ndarray and result.dtype == x.dtype and result.flags.c_contiguous
    positions = source_positions(call)
    width = x.dtype.itemsize
    given = np.frombuffer(x.tobytes(), np.uint8).reshape(x.size, width)
    zero = np.frombuffer(np.zeros(1, x.dtype).tobytes(), np.uint8).reshape(1, width)
    expected = np.concatenate([given, zero])[positions.ravel()]
    found = np.frombuffer(result.tobytes(), np.uint8).reshape(result.size, width)
    np.testing.assert_array_equal(found, expected, err_msg=f"{call}, {x.dtype}")
    assert result.shape == positions.shape


@pytest.mark.parametrize("dtype", FIXED)
def test_fixed_size(dtype, rng):
    for call in CALLS:
        check_bytes(call, elements(CALLS[call][1], dtype, rng))


@pytest.mark.parametrize("name", STRUCTURED)
def test_structured(name, rng):
    dtype = STRUCTURED[name]
    for call in CALLS:
        x = elements(CALLS[call][1], dtype, rng)
        result = run(call, x)
        assert result.dtype == dtype
        for field in dtype.names:
            plain = np.ascontiguousarray(x[field])
            width = plain.nbytes // x.size
            expected = reference_of(call)(plain.reshape(x.size, -1).view(f"V{width}").reshape(x.shape))
            assert np.ascontiguousarray(result[field]).tobytes() == expected.tobytes(), f"{call}: field {field}"


def test_no_bytes_at_all():
    for call in CALLS:
        for dtype in ("S0", "V0"):
            x = np.zeros(CALLS[call][1], np.dtype([]) if dtype == "V0" else dtype)
            result = run(call, x)
            assert result.dtype == x.dtype and result.shape == source_positions(call).shape


@pytest.mark.parametrize("name", ML_DTYPES)
def test_ml_dtypes(name, rng):
    dtype = np.dtype(registered(name))
    for call in CALLS:
        values = rng.integers(0, 2 if name.endswith("2") else 8, CALLS[call][1])
        x = values.astype(np.float32).astype(dtype)
        result = run(call, x)
        assert result.dtype == dtype
        positions = source_positions(call)
        zero = np.zeros(1, dtype)
        expected = np.concatenate([x.ravel(), zero])[positions]
        np.testing.assert_array_equal(result.view(f"V{dtype.itemsize}"), expected.view(f"V{dtype.itemsize}"))


def test_out_keeps_the_dtype(rng):
    for dtype in [*FIXED, *STRUCTURED.values()]:
        x = elements((1, 4, 6, 3), dtype, rng)
        out = np.empty((1, 2, 3, 12), x.dtype)
        assert run("s2d", x, out=out) is out
        assert out.tobytes() == run("s2d", x).tobytes(), dtype


# ---------------------------------------------------------------------------------------------- pad values


PAD_VALUES = [
    ("bool", True), ("bool", 1), ("int8", -128), ("int8", 127.0), ("uint8", np.int64(255)), ("int16", -32768),
    ("uint16", 65535), ("int32", -(2**31)), ("uint32", 2**32 - 1), ("int64", -(2**63)), ("uint64", 2**64 - 1),
    (">i4", 0x01020304), ("float16", 65504.0), ("float16", np.float64(1e-9)), ("float32", 0.1), ("float32", -0.0),
    ("float64", 0.1), ("float64", float("inf")), (">f8", 1.5), ("complex64", 1 - 2j), ("complex128", 3),
    ("complex128", complex(float("inf"), -1)), ("M8[s]", np.datetime64("2020-01-02T03:04:05")),
    ("M8[ns]", np.datetime64("2020-01-02")), ("M8[s]", np.datetime64("NaT", "s")), ("m8[D]", np.timedelta64(-3, "D")),
    ("S3", b"xyz"), ("S3", b"x"), ("S3", b""), ("U5", "h\u00e9llo"), (">U4", "ab"),
]


@pytest.mark.parametrize("dtype, value", PAD_VALUES)
def test_pad_value(dtype, value, rng):
    """The padding holds the value, bit for bit; so do the spare lanes of pack_vect_c."""
    zeros, held = np.zeros(1, dtype), np.empty(1, dtype)
    held[0] = value
    for call in (*PADDED, "pack"):
        x = elements(CALLS[call][1], dtype, rng)
        result = run(call, x, pad_value=value)
        width = x.dtype.itemsize
        table = np.frombuffer(x.tobytes() + held.tobytes(), np.uint8).reshape(-1, width)
        found = np.frombuffer(result.tobytes(), np.uint8).reshape(-1, width)
        np.testing.assert_array_equal(found, table[source_positions(call).ravel()], err_msg=f"{call}")
    # Spare lanes are raw 0 whatever the padding holds.
    x = elements((1, 4, 6, 3), dtype, rng)
    lanes = run("s2d to words", x, pad_value=value)
    assert lanes[..., 3].tobytes() == zeros.tobytes() * lanes[..., 3].size
    assert lanes[:, :, 0, :, :3].tobytes() == held.tobytes() * lanes[:, :, 0, :, :3].size


def test_pad_value_of_longdouble():
    """Some of its bytes are padding of the format and mean nothing."""
    value = np.longdouble(1) / 3
    result = run("s2d padded", np.ones((1, 4, 6, 3), np.longdouble), pad_value=value)
    expected = np.where(source_positions("s2d padded") < 0, value, np.longdouble(1))
    np.testing.assert_array_equal(result, expected, strict=True)


def test_pad_value_of_clongdouble():
    value = np.clongdouble(np.longdouble(1) / 3) + 1j
    padded = s2dq.space_to_batch_nd(np.ones((1, 1), np.clongdouble), [1], [[0, 1]], pad_value=value)
    assert padded[0, 1] == value


def test_nan_as_pad_value():
    for dtype in ("float16", "float32", "float64", "longdouble", "complex64", "complex128"):
        x = np.ones((1, 4, 6, 3), dtype)
        result = run("s2d padded", x, pad_value=float("nan"))
        np.testing.assert_array_equal(np.isnan(result), source_positions("s2d padded") < 0, err_msg=dtype)


@pytest.mark.parametrize("name, good, bad", [
    ("bfloat16", [1.5, 3, -0.0, float("inf")], [1e39, "1", True]),
    ("float8_e4m3fn", [448, 0.5], [1e6, float("inf"), True]),
    ("float8_e5m2", [57344.0, float("inf")], [1e6, 1j]),
    ("int4", [-8, 7, 2.0], [8, -9, 1.5, float("nan"), True]),
    ("uint4", [0, 15], [16, -1, 0.5, "1"]),
    ("complex32", [1 - 2j, 0.5, 3, np.complex64(1j), complex("inf")], [1e9, 1e9j, "1", True]),
    ("bcomplex32", [1 - 2j, 0.5, complex(0, float("nan"))], [1e39j, "1j", True]),
])
def test_pad_value_of_ml_dtypes(name, good, bad):
    make = registered(name)
    x = np.ones((1, 4, 6, 3), make)
    for value in (*good, make(good[0])):
        result = run("s2d padded", x, pad_value=value)
        held = np.array([make(value)], make)
        expected = np.concatenate([x.ravel(), held])[source_positions("s2d padded")]
        assert result.tobytes() == expected.tobytes(), value
    for value in bad:
        kinds = str | bool if "complex" in name else str | bool | complex
        error = TypeError if isinstance(value, kinds) else ValueError
        with pytest.raises(error, match=r"^space_to_depth: .*pad_value") as raised:
            run("s2d padded", x, pad_value=value)
        assert raised.type is error, value


@pytest.mark.parametrize("name", ["complex32", "bcomplex32"])
def test_complex_scalars_of_ml_dtypes_lose_no_part(name):
    value = registered(name)(1 - 2j)
    for dtype in ("complex64", "complex128", registered("complex32")):
        assert s2dq.space_to_batch_nd(np.zeros((1, 1), dtype), [1], [[0, 1]], pad_value=value)[0, 1] == 1 - 2j
    for dtype in ("float32", "int8", "bool", registered("bfloat16")):
        with pytest.raises(TypeError, match="pad_value must be a value of dtype"):
            s2dq.space_to_batch_nd(np.zeros((1, 1), dtype), [1], [[0, 1]], pad_value=value)


@pytest.mark.parametrize("value", [10**30, -(10**300), Fraction(10**300, 3)])
def test_numbers_beyond_all_integers_are_held_by_floats(value):
    assert s2dq.space_to_batch_nd(np.ones((1, 1)), [1], [[0, 1]], pad_value=value).tolist() == [[1, float(value)]]
    with pytest.raises(ValueError, match="pad_value .* cannot be held by dtype float16"):
        s2dq.space_to_batch_nd(np.ones((1, 1), np.float16), [1], [[0, 1]], pad_value=value)


@pytest.mark.parametrize("value", [
    2**60 + 2**36 + 1, -(2**60) - 2**36 - 1, 2**24 + 1, np.int64(2**60 + 2**36 + 1), np.uint64(2**63 + 2**39 + 1),
    np.longdouble(1) + np.longdouble(2) ** -24 + np.longdouble(2) ** -60,
], ids=repr)  # fmt: skip
def test_numbers_are_rounded_to_float32_as_numpy_rounds_them(value):
    """Python's by way of float64, scalars of NumPy's once."""
    padded = s2dq.space_to_batch_nd(np.ones((1, 1), np.float32), [1], [[0, 1]], pad_value=value)
    assert padded[0, 1] == np.array(value, np.float32)


@pytest.mark.parametrize("value", [np.int64(2**53 + 1), np.int64(2**53 + 3), np.longdouble(1) / 3])
def test_numbers_are_rounded_to_the_nearest_float64(value):
    padded = s2dq.space_to_batch_nd(np.ones((1, 1)), [1], [[0, 1]], pad_value=value)
    assert padded[0, 1] == float(value)


@pytest.mark.parametrize("other", [
    "i2", [((b"first", "a"), "i2")], [((("first",), "a"), "i2")], [("a", "i2")],
], ids=str)  # fmt: skip
def test_out_of_a_dtype_with_other_titles_or_none(other):
    titled, other = np.dtype([(("first", "a"), "i2")]), np.dtype(other)
    for mine, theirs in ((titled, other), (other, titled)):
        with pytest.raises(TypeError, match="out must have dtype"):
            s2dq.space_to_depth(np.zeros((1, 2, 2, 1), mine), 2, out=np.zeros((1, 1, 1, 4), theirs))


@pytest.mark.parametrize("title", ["first", b"first", ("first", 1)])
def test_out_of_a_dtype_with_the_same_title(title):
    x, out = (np.ones(shape, [((title, "a"), "i2")]) for shape in ((1, 2, 2, 1), (1, 1, 1, 4)))
    assert x.dtype is not out.dtype and s2dq.space_to_depth(x, 2, out=out) is out


@pytest.mark.parametrize("sign", [1, -1])
def test_fractions_beyond_all_floats_are_held_by_none(sign):
    huge = Fraction(sign * 10**400, 3)
    with pytest.raises(ValueError, match="pad_value .* cannot be held by dtype float64"):
        s2dq.space_to_batch_nd(np.ones((1, 1)), [1], [[0, 1]], pad_value=huge)
    with pytest.raises(ValueError, match="scale must be finite"):
        s2dq.quantize(np.ones(1), huge, 0)


@pytest.mark.parametrize("kind", [bool, np.bool_, int, float, np.int8, np.float16, np.float64, np.longdouble, Fraction])
def test_booleans_are_padded_by_0_and_1_of_any_type(kind):
    for value in (0, 1):
        padded = s2dq.space_to_batch_nd(np.array([[1 - value]], bool), [1], [[0, 1]], pad_value=kind(value))
        assert padded.tolist() == [[not value, bool(value)]]


@pytest.mark.skipif(np.finfo(np.longdouble).max == np.finfo(np.float64).max, reason="no wider float here")
def test_numbers_beyond_float64_are_held_by_no_narrower_complex_dtype():
    x = np.ones((1, 1), "F").astype(registered("complex32"))
    with pytest.raises(ValueError, match="pad_value .* cannot be held by dtype complex32"):
        s2dq.space_to_batch_nd(x, [1], [[0, 1]], pad_value=np.finfo(np.longdouble).max)


def test_dtype_of_no_known_kind_takes_no_value_for_padding(monkeypatch):
    """NumPy has no such kind today."""
    monkeypatch.setattr(_validate.Door, "_elements", {})
    with pytest.raises(TypeError, match=r"^space_to_batch_nd: pad_value must be a value of dtype int8, not 1 "):
        s2dq.space_to_batch_nd(np.ones((1, 1), np.int8), [1], [[0, 1]], pad_value=1)


def test_dtype_that_is_made_of_no_float_takes_its_own_values_for_padding():
    rational = pytest.importorskip("numpy._core._rational_tests").rational
    x = np.array([rational(1, 2), rational(3)])[None]
    assert s2dq.space_to_batch_nd(x, [1], [[0, 1]], pad_value=rational(2, 3)).tolist() == [[*x[0], rational(2, 3)]]
    for value in (0.5, 1):
        with pytest.raises(TypeError, match=f"pad_value must be a value of dtype rational, not {value} ") as raised:
            s2dq.space_to_batch_nd(x, [1], [[0, 1]], pad_value=value)
        assert isinstance(raised.value.__cause__, TypeError)


@pytest.mark.parametrize("name", ["packed", "aligned", "titled", "one field"])
def test_pad_value_of_a_structured_dtype(name, rng):
    dtype = STRUCTURED[name]
    value = elements((1,), dtype, rng)[0].copy()
    for field in dtype.names:  # a NaN would differ from itself
        value[field] = np.ones(1, dtype[field])[0]
    x = np.zeros((1, 4, 6, 3), dtype)
    result = run("s2d padded", x, pad_value=value)
    padding = source_positions("s2d padded") < 0
    for field in dtype.names:
        np.testing.assert_array_equal(result[field][padding], value[field])
        np.testing.assert_array_equal(result[field][~padding], np.zeros(1, dtype)[field][0])


# ---------------------------------------------------------------------------------------------- references


class Token:
    """An object that nothing else refers to."""

    def __eq__(self, other):
        raise AssertionError("elements were compared")

    __hash__ = None


def tokens(shape):
    x = np.empty(shape, object)
    x.ravel()[:] = [Token() for _ in range(x.size)]
    return x


def counts(x):
    return [sys.getrefcount(element) for element in x.ravel()]


@pytest.mark.parametrize("call", CALLS)
def test_objects_keep_identity_and_counts(call):
    x = tokens(CALLS[call][1])
    before = counts(x)
    result = run(call, x)
    positions = source_positions(call)
    assert result.dtype == object and result.shape == positions.shape and type(result) is np.ndarray
    originals = x.ravel()
    for element, position in zip(result.ravel(), positions.ravel(), strict=True):
        if position >= 0:
            assert element is originals[position]
        else:
            assert element == 0 and type(element) is int
    del element
    moved = np.bincount(positions[positions >= 0], minlength=x.size)
    assert counts(x) == [count + times for count, times in zip(before, moved, strict=True)]
    del result
    gc.collect()
    assert counts(x) == before


@pytest.mark.parametrize("call", CALLS)
def test_objects_into_out(call):
    """What `out` held is let go of, once per element."""
    x = tokens(CALLS[call][1])
    positions = source_positions(call)
    old, before = Token(), counts(x)
    out = np.full(positions.shape, None)
    out.ravel()[:] = [old] * out.size
    held = sys.getrefcount(old)
    assert run(call, x, out=out) is out
    assert sys.getrefcount(old) == held - out.size
    moved = np.bincount(positions[positions >= 0], minlength=x.size)
    assert counts(x) == [count + times for count, times in zip(before, moved, strict=True)]


@pytest.mark.parametrize("call", [*PADDED, "pack"])
def test_object_as_pad_value(call):
    x, pad = tokens(CALLS[call][1]), Token()
    before = sys.getrefcount(pad)
    result = run(call, x, pad_value=pad)
    padding = source_positions(call) < 0
    assert padding.any() and all(element is pad for element in result[padding])
    assert sys.getrefcount(pad) == before + np.count_nonzero(padding)
    del result
    assert sys.getrefcount(pad) == before
    for value in ([1, 2], (3,), np.arange(3), "text"):  # any object, sequences among them
        result = run(call, x, pad_value=value)
        assert all(element is value for element in result[padding])


def test_refused_object_call_leaves_counts_and_out_alone():
    x, old = tokens((1, 4, 6, 3)), Token()
    out = np.full((1, 2, 3, 11), None)
    out.ravel()[:] = [old] * out.size
    before = counts(x), sys.getrefcount(old)
    with pytest.raises(ValueError, match=r"out must have shape"):
        run("s2d", x, out=out)
    assert (counts(x), sys.getrefcount(old)) == before
    assert all(element is old for element in out.ravel())


@pytest.mark.parametrize("view", [
    lambda x: x[::-1, ::-1, :, ::-1], np.asfortranarray, lambda x: np.broadcast_to(x[:, :1], x.shape),
], ids=["negative", "fortran", "broadcast"])
def test_objects_with_strides(view):
    x = view(tokens((1, 4, 6, 3)))
    result = run("s2d", x)
    originals = list(x.ravel())
    assert all(a is originals[p] for a, p in zip(result.ravel(), source_positions("s2d").ravel(), strict=True))


@pytest.mark.parametrize("call", CALLS)
def test_structured_with_objects(call):
    dtype = np.dtype([("number", "i4"), ("object", "O")])
    shape = CALLS[call][1]
    x = np.zeros(shape, dtype)
    x["number"], x["object"] = np.arange(1, 1 + x.size).reshape(shape), tokens(shape)
    before = counts(x["object"])
    result = run(call, x)
    positions = source_positions(call)
    np.testing.assert_array_equal(result["number"], np.where(positions < 0, 0, positions + 1))
    originals = list(x["object"].ravel())
    for element, position in zip(result["object"].ravel(), positions.ravel(), strict=True):
        assert element is originals[position] if position >= 0 else type(element) is int and element == 0
    del element, originals, result
    gc.collect()
    assert counts(x["object"]) == before


@pytest.mark.parametrize("options", [{}, {"na_object": None}, {"na_object": float("nan")}, {"coerce": False}], ids=str)
@pytest.mark.parametrize("call", CALLS)
def test_variable_width_strings(call, options):
    dtype = np.dtypes.StringDType(**options)
    shape = CALLS[call][1]
    texts = [f"{number} " + "long enough for the heap " * (number % 3) for number in range(int(np.prod(shape)))]
    if "na_object" in options:
        texts[::5] = [options["na_object"]] * len(texts[::5])
    x = np.array(texts, dtype).reshape(shape)
    result = run(call, x)
    assert result.dtype == dtype and type(result) is np.ndarray
    positions = source_positions(call)
    assert result.shape == positions.shape
    for element, position in zip(result.ravel(), positions.ravel(), strict=True):
        expected = texts[position] if position >= 0 else ""
        assert element == expected or (element is expected) or (element != element and expected != expected)
    out = np.empty(positions.shape, dtype)
    assert run(call, x, out=out) is out
    del x, result
    gc.collect()
    assert [str(element) for element in out.ravel()] == [str(texts[p]) if p >= 0 else "" for p in positions.ravel()]


@pytest.mark.parametrize("call", [*PADDED, "pack"])
def test_variable_width_string_as_pad_value(call):
    x = np.full(CALLS[call][1], "a text of more than fifteen bytes", np.dtypes.StringDType())
    fill = "a fill that lives on the heap \u00e9"
    result = run(call, x, pad_value=fill)
    np.testing.assert_array_equal(result == fill, source_positions(call) < 0)
    for bad in (1, b"bytes", True, object()):
        with pytest.raises(TypeError, match=r"pad_value"):
            run(call, x, pad_value=bad)


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("M8[ns]", np.datetime64("90000-01-01")),
        ("m8[ns]", np.timedelta64(10**9, "D")),
        ("M8[D]", np.datetime64("2020-01-01T12", "h")),
        ("float4_e2m1fn", 99999),
        ("float4_e2m1fn", float("inf")),
        ("float8_e4m3fn", 99999),
        ("bfloat16", 1e300),
        ([("a", "i1"), ("b", "f4")], (1, 1e300)),
        ([("a", "i1"), ("b", "f4")], (200, 0.5)),
        ([("a", "i1"), ("b", "f4")], (1,)),
    ],
)
def test_pad_value_that_would_wrap_or_saturate_is_refused(dtype, value):
    dtype = registered(dtype) if dtype in ML_DTYPES else dtype
    with pytest.raises(ValueError, match="^space_to_batch_nd: pad_value"):
        s2dq.space_to_batch_nd(np.zeros((1, 1), dtype), [2], [[1, 0]], pad_value=value)


def test_record_as_pad_value_is_rounded_field_by_field():
    dtype = np.dtype([("a", "i1"), ("b", "f4"), ("c", "i2", (2,))])
    result = s2dq.space_to_batch_nd(np.zeros((1, 1), dtype), [2], [[1, 0]], pad_value=(3, 0.1, [4, 5]))
    assert result[0, 0]["a"] == 3 and result[0, 0]["b"] == np.float32(0.1) and result[0, 0]["c"].tolist() == [4, 5]


@pytest.mark.parametrize(("value", "says"), [
    (3, " must be a value of dtype"),
    ((3, 0.1), " \\(3, 0.1\\) cannot be held by dtype"),  # one field is missing
    ((3, 0.1, [4, 70000]), " .* cannot be held by dtype"),  # of the array inside
    (("3", 0.1, [4, 5]), "\\['a'\\] must be a value of dtype int8"),
])  # fmt: skip
def test_record_that_does_not_fit_is_refused(value, says):
    dtype = np.dtype([("a", "i1"), ("b", "f4"), ("c", "i2", (2,))])
    with pytest.raises((TypeError, ValueError), match=f"^space_to_batch_nd: pad_value{says}"):
        s2dq.space_to_batch_nd(np.zeros((1, 1), dtype), [2], [[1, 0]], pad_value=value)


@pytest.mark.parametrize(("other", "number", "dtype"), [
    ("int4", 3, "int8"), ("bfloat16", 1.5, "float32"), ("float8_e4m3fn", 1.5, "bfloat16"),
])  # fmt: skip
def test_pad_value_of_another_registered_dtype(other, number, dtype):
    """Its value counts, as a float has it."""
    value, dtype = registered(other)(number), registered(dtype) if dtype in ML_DTYPES else dtype
    result = s2dq.space_to_batch_nd(np.zeros((1, 1), dtype), [2], [[1, 0]], pad_value=value)
    assert result.dtype == dtype and result.ravel().astype(float).tolist() == [float(value), 0.0]


def test_pad_value_of_another_registered_dtype_that_is_no_integer():
    value = registered("bfloat16")(1.5)
    with pytest.raises(ValueError, match="^space_to_batch_nd: pad_value 1.5 cannot be held by dtype int8"):
        s2dq.space_to_batch_nd(np.zeros((1, 1), np.int8), [2], [[1, 0]], pad_value=value)

"""s2dq.compat.torch gives what PyTorch's own functions and s2dq's operators give, wherever PyTorch takes a tensor."""

import copy
import importlib
import inspect
import os
import shutil
import warnings
from functools import partial
from itertools import product

import numpy as np
import pytest

import s2dq
import s2dq.reference

torch = pytest.importorskip("torch")
compat = importlib.import_module("s2dq.compat.torch")
# complex32 is said to be experimental, once, wherever it comes first.
pytestmark = pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental:UserWarning")

F = torch.nn.functional
PIXEL = {"pixel_shuffle": F.pixel_shuffle, "pixel_unshuffle": F.pixel_unshuffle}
NUMPY_DTYPES = ("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "float32",
                "float64", "complex64", "complex128")  # fmt: skip
OTHER_DTYPES = ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu",
                "complex32", "float4_e2m1fn_x2")  # fmt: skip
STAND_INS = {1: "int8", 2: "int16", 4: "int32", 8: "int64", 16: "complex128"}
FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}

# One call or more of each operator: (operator, shape, arguments, keywords). They cover layouts, margins, words, ranks.
CALLS = [
    ("pixel_shuffle", (2, 8, 3, 5), (2,), {}),
    ("pixel_shuffle", (2, 3, 18, 1, 2), (3,), {}),
    ("pixel_unshuffle", (2, 3, 4, 6), (2,), {}),
    ("pixel_unshuffle", (3, 4, 6), (1,), {}),
    ("space_to_depth", (2, 4, 6, 3), (2,), {}),
    ("space_to_depth", (2, 3, 4, 6), ([2, 3], "NCHW"), {"mode": "CRD"}),
    ("space_to_depth", (1, 3, 3, 5), (2, "NCHW"), {"mode": "focus", "paddings": [[1, 0], [0, 1]]}),
    ("space_to_depth", (1, 4, 4, 3), (2,), {"out_format": "NCHW_VECT_C", "vect": 8}),
    ("space_to_depth", (1, 2, 2, 4, 4), (2, "NCHW_VECT_C"), {"out_format": "NHWC", "channels": 7}),
    ("space_to_depth", (1, 2, 2, 4, 2), (2, "NCDHW"), {"out_format": "NDHWC"}),
    ("space_to_depth", (2, 6, 3), (3, "NWC"), {}),
    ("depth_to_space", (2, 2, 3, 12), (2,), {"mode": "CRD"}),
    ("depth_to_space", (1, 12, 2, 3), ((2, 3), "NCHW"), {"crops": [[0, 1], [2, 0]]}),
    ("depth_to_space", (1, 2, 3, 5, 8), (2, "NCHW_VECT_C"), {"out_format": "NCHW", "channels": 12}),
    ("depth_to_space", (1, 8, 2, 3, 2), (2, "NCDHW"), {}),
    ("space_to_batch_nd", (2, 4, 6, 3), ([2, 3], [[0, 0], [1, 2]]), {}),
    ("space_to_batch_nd", (2, 3, 4, 6), ([1, 2, 2], [[0, 0], [1, 1], [0, 0]]), {}),
    ("space_to_batch_nd", (3, 2), ([], []), {}),
    ("batch_to_space_nd", (12, 2, 3), ([2, 3], [[1, 0], [0, 2]]), {}),
    ("batch_to_space_nd", (8, 3, 2, 3), ([1, 2, 2], [[0, 0], [1, 0], [0, 0]]), {}),
    ("pack_vect_c", (2, 5, 3, 2), (), {}),
    ("pack_vect_c", (2, 3, 2, 5), ("NHWC",), {"vect": 3}),
    ("unpack_vect_c", (2, 2, 3, 2, 4), (), {"channels": 6}),
    ("unpack_vect_c", (2, 2, 3, 2, 4), ("NHWC",), {}),
]
PADDED = [
    ("space_to_depth", (1, 3, 4, 2), (2,), {"paddings": [[0, 1], [2, 0]], "pad_value": 3}),
    ("space_to_batch_nd", (1, 3, 2), ([2], [[1, 0]]), {"pad_value": 3}),
    ("pack_vect_c", (1, 3, 2, 2), (), {"pad_value": 3}),
]
each_call = pytest.mark.parametrize(("name", "shape", "arguments", "keywords"), CALLS)


def bits(tensor):
    """The elements as integers, whatever they stand for."""
    tensor = tensor.detach().resolve_conj().resolve_neg()
    return tensor.view(getattr(torch, STAND_INS[tensor.dtype.itemsize]))


def numbered(shape, dtype="float32"):
    """1, 2, 3 ... as elements of this dtype, or, where PyTorch cannot convert, as their bits."""
    dtype = getattr(torch, dtype)
    numbers = torch.arange(1, int(np.prod(shape)) + 1).reshape(shape)
    if dtype in (torch.float4_e2m1fn_x2, torch.complex32):
        return numbers.to(getattr(torch, STAND_INS[dtype.itemsize])).view(dtype)
    return numbers.to(dtype)


def draw(rng, shape, dtype):
    """Random bits of this dtype."""
    width = dtype.itemsize
    raw = rng.integers(0, 2 if dtype is torch.bool else 256, (*shape, width), np.uint8)
    return torch.from_numpy(raw.reshape(-1)).view(dtype).reshape(shape)


def assert_same(ours, expected):
    """Bit for bit, and in the same memory format."""
    assert type(ours) is torch.Tensor and ours.dtype == expected.dtype and ours.shape == expected.shape
    assert torch.equal(bits(ours), bits(expected))
    assert ours.stride() == expected.stride(), (ours.shape, ours.stride(), expected.stride())


def as_array_operator(name):
    """The operator of s2dq for arrays that an operator for tensors is."""
    if name.startswith("pixel"):
        operator = s2dq.reference.depth_to_space if name == "pixel_shuffle" else s2dq.reference.space_to_depth
        return lambda x, r: operator(
            x.reshape(-1, *x.shape[-3:]), r, "NCHW", mode="CRD").reshape(PIXEL[name](torch.empty(x.shape), r).shape)
    return getattr(s2dq.reference, name)


def strided(tensor):
    """The same elements in other memory."""
    yield tensor
    if tensor.ndim in FORMATS:
        yield tensor.contiguous(memory_format=FORMATS[tensor.ndim])
    yield tensor.repeat_interleave(2, -1)[..., ::2]
    yield tensor.transpose(0, -1).contiguous().transpose(0, -1)


def arguments_of(name, *arguments, **keywords):
    """What the custom operator takes for a call of the function."""
    function = getattr(compat, name)
    bound = inspect.signature(function).bind(None, *arguments, **keywords)
    bound.apply_defaults()
    given = dict(bound.arguments)
    del given[next(iter(given))]
    if "block_size" in given and isinstance(given["block_size"], int):
        rank = sum(axis in "DHW" for axis in given["data_format"].split("_")[0])
        given["block_size"] = [given["block_size"]] * rank
    for pairs in ("paddings", "crops"):
        if given.get(pairs) is not None:
            given[pairs] = [entry for pair in given[pairs] for entry in pair]
    return tuple(given.values())


def operator_of(name):
    return getattr(torch.ops.s2dq, name).default


def refuses(error, says, function, *arguments, **keywords):
    with pytest.raises(error, match=says) as caught:
        function(*arguments, **keywords)
    assert type(caught.value) is error
    assert "\n" not in str(caught.value)


# ---- PyTorch's own functions


def memories(rng, shape, dtype):
    """Tensors of this shape in every kind of memory PyTorch has: formats, slices, steps, permutations."""
    yield draw(rng, shape, dtype)
    if len(shape) == 4:
        yield draw(rng, shape, dtype).contiguous(memory_format=torch.channels_last)
        wide = draw(rng, (shape[0], shape[1] + 2, *shape[2:]), dtype)
        yield wide.contiguous(memory_format=torch.channels_last)[:, 1:-1]
    yield draw(rng, (*shape[:-1], 2 * shape[-1]), dtype)[..., ::2]
    order = rng.permutation(len(shape))
    yield draw(rng, [shape[axis] for axis in order], dtype).permute(*np.argsort(order).tolist())


def test_random_calls_equal_those_of_pytorch(rng):
    compared = formats = 0
    for _ in range(30):
        for name, theirs in PIXEL.items():
            r = int(rng.integers(1, 4))
            lead = rng.integers(1, 4, rng.integers(0, 3)).tolist()
            c, h, w = rng.integers(1, 5, 3).tolist()
            shape = [*lead, c * r * r, h, w] if name == "pixel_shuffle" else [*lead, c, h * r, w * r]
            dtype = getattr(torch, str(rng.choice(["uint8", "int8", "int64", "float32", "bfloat16", "complex64"])))
            for x in memories(rng, shape, dtype):
                # Of rank 5 PyTorch refuses strides like those of channels_last_3d.
                expected = theirs(x if x.ndim < 5 else x.contiguous(), r)
                assert_same(getattr(compat, name)(x, r), expected)
                compared += 1
                formats += not expected.is_contiguous()
    assert compared >= 150
    assert formats >= 10, "hardly any result was channels_last"


@pytest.mark.parametrize("name", PIXEL)
@pytest.mark.parametrize("shape", [(1, 4, 2, 2), (2, 4, 2, 2), (3, 4, 1, 1), (1, 4, 1, 1), (1, 1, 1, 1), (2, 1, 4, 2)])
def test_ambiguous_memory_formats_are_pytorchs(name, shape):
    """Extents of one have strides that mean nothing; both formats fit, and PyTorch has a rule for each."""
    r = 2 if (name == "pixel_shuffle" and shape[1] == 4) or (name == "pixel_unshuffle" and shape[2] > 1) else 1
    n, c, h, w = shape
    strides = {(c * h * w, h * w, w, 1), (c * h * w, 1, w * c, c), (c * h * w, 1, 1, 1), (1, 1, 1, 1), (c, 1, c, c),
               (0, 1, 0, 0), (c * h * w, 0, w, 1), (7, 7, 7, 7), (c * h * w, c * h * w, w, 1)}  # fmt: skip
    for steps in strides:
        x = torch.arange(400).as_strided(shape, steps)
        assert_same(getattr(compat, name)(x, r), PIXEL[name](x, r))


def test_channels_last_3d_that_pytorch_refuses():
    x = numbered((2, 3, 4, 2, 2)).contiguous(memory_format=torch.channels_last_3d)
    with pytest.raises(RuntimeError):
        F.pixel_shuffle(x, 2)
    assert_same(compat.pixel_shuffle(x, 2), F.pixel_shuffle(x.contiguous(), 2))


@pytest.mark.parametrize("name", PIXEL)
def test_what_pytorch_refuses_is_refused(name):
    """With a ValueError or TypeError where PyTorch has a RuntimeError or TypeError."""
    for shape, r in (((4, 4), 2), ((1, 3, 3, 3), 2), ((4, 4, 4), 0), ((4, 4, 4), -1), ((1, 6, 4, 3), 2)):
        x = torch.zeros(shape)
        with pytest.raises(RuntimeError):
            PIXEL[name](x, r)
        refuses(ValueError, name, getattr(compat, name), x, r)
        refuses(ValueError, name, operator_of(name), x, r)
    for r in (2.0, "2", None, True, [2]):
        refuses(TypeError, "factor must be an integer", getattr(compat, name), torch.zeros(4, 4, 4), r)


@pytest.mark.parametrize("name", PIXEL)
@pytest.mark.parametrize("shape", [(0, 4, 2, 2), (2, 0, 2, 2), (2, 4, 0, 2), (0, 3, 4, 2, 2), (4, 2, 0)])
def test_pixel_functions_of_nothing(name, shape):
    """Of nothing PyTorch's pixel_unshuffle gives the shape of its input; ours gives that of every other input."""
    *lead, c, h, w = shape
    expected = (*lead, c // 4, 2 * h, 2 * w) if name == "pixel_shuffle" else (*lead, 4 * c, h // 2, w // 2)
    for dtype in (torch.float32, torch.float8_e5m2):
        x = torch.zeros(shape, dtype=dtype)
        assert_same(getattr(compat, name)(x, 2), torch.zeros(expected, dtype=dtype))
        meta = getattr(compat, name)(x.to("meta"), 2)
        assert meta.shape == torch.Size(expected) == PIXEL[name](x.to("meta"), 2).shape


# ---- the operators of s2dq


@each_call
def test_operators_move_what_the_reference_moves(name, shape, arguments, keywords):
    x = numbered(shape, "int16")
    expected = torch.from_numpy(np.ascontiguousarray(as_array_operator(name)(x.numpy(), *arguments, **keywords)))
    for source in strided(x):
        result = getattr(compat, name)(source, *arguments, **keywords)
        assert result.dtype == x.dtype and torch.equal(result, expected)
        plane_last = result.ndim in FORMATS and result.is_contiguous(memory_format=FORMATS[result.ndim])
        assert result.is_contiguous() or plane_last
        assert not np.shares_memory(result.numpy(), source.numpy())


@each_call
@pytest.mark.parametrize("dtype", NUMPY_DTYPES + OTHER_DTYPES)
def test_element_types(name, shape, arguments, keywords, dtype):
    """Every dtype moves as integers of its width do."""
    x = numbered(shape, dtype)
    result = getattr(compat, name)(x, *arguments, **keywords)
    expected = getattr(compat, name)(bits(x), *arguments, **keywords)
    assert result.dtype == x.dtype
    assert torch.equal(bits(result), bits(expected))


def test_words_to_words():
    x = torch.arange(-64, 64, dtype=torch.int8).reshape(1, 2, 4, 4, 4)
    result = compat.space_to_depth(x, 2, "NCHW_VECT_C")
    np.testing.assert_array_equal(result.numpy(), s2dq.reference.space_to_depth(x.numpy(), 2, "NCHW_VECT_C"))
    assert torch.equal(compat.depth_to_space(result, 2, "NCHW_VECT_C"), x)
    for wide in (x.short(), x.to("meta", torch.bfloat16)):
        refuses(TypeError, "8-bit dtype.*torch", compat.space_to_depth, wide, 2, "NCHW_VECT_C")


@pytest.mark.parametrize(("name", "shape", "arguments", "keywords", "axes"), [
    ("space_to_depth", (2, 3, 4, 6), (2, "NCHW"), {"paddings": [[1, 1], [0, 2]]}, 4),
    ("space_to_depth", (2, 3, 4, 6), ((2, 3), "NCHW"), {"mode": "focus", "out_format": "NCHW"}, 4),
    ("space_to_depth", (2, 3, 2, 4, 6), ((1, 2, 3), "NCDHW"), {}, 5),
    ("depth_to_space", (2, 12, 2, 3), ((2, 3), "NCHW"), {"mode": "CRD", "crops": [[1, 0], [0, 1]]}, 4),
    ("depth_to_space", (1, 16, 2, 3, 2), (2, "NCDHW"), {"crops": [[1, 0], [0, 1], [0, 0]]}, 5),
    ("space_to_batch_nd", (2, 3, 4, 6), ([1, 2, 3], [[0, 0], [1, 1], [0, 0]]), {}, 4),
    ("space_to_batch_nd", (2, 4, 4, 6), ([1, 2], [[1, 1], [0, 2]]), {"pad_value": 7}, 4),
    ("space_to_batch_nd", (2, 4, 2, 4, 6), ([1, 2, 2], [[0, 0], [3, 1], [0, 2]]), {}, 5),
    ("space_to_batch_nd", (2, 4, 2, 6), ([], []), {}, 4),
    ("batch_to_space_nd", (8, 3, 4, 6), ([1, 2, 2], [[1, 0], [1, 1], [0, 0]]), {}, 4),
    ("batch_to_space_nd", (4, 3, 2, 4, 6), ([1, 2, 2], [[0, 1], [1, 0], [0, 0]]), {}, 5),
])  # fmt: skip
def test_channels_last_in_is_channels_last_out(name, shape, arguments, keywords, axes):
    x = numbered(shape, "int32")
    plain = getattr(compat, name)(x, *arguments, **keywords)
    last = getattr(compat, name)(x.contiguous(memory_format=FORMATS[axes]), *arguments, **keywords)
    assert plain.is_contiguous()
    assert last.is_contiguous(memory_format=FORMATS[axes]) and not last.is_contiguous()
    assert torch.equal(plain, last)


def test_other_layouts_are_contiguous():
    x = numbered((1, 4, 4, 8)).permute(0, 3, 1, 2)
    assert compat.space_to_depth(x, 2, "NCHW", out_format="NHWC").is_contiguous()
    assert compat.space_to_depth(x.permute(0, 2, 1, 3), 2, "NHWC").is_contiguous()
    assert compat.pack_vect_c(x).is_contiguous()
    cut = compat.space_to_batch_nd(x, [2, 2], [[0, 0], [0, 0]])  # the channels, too
    assert cut.is_contiguous()
    assert torch.equal(cut, compat.space_to_batch_nd(x.contiguous(), [2, 2], [[0, 0], [0, 0]]))


def test_the_operators_read_the_tensor_in_place(monkeypatch):
    """Strides and address are those of the tensor: no hidden copy, in whatever memory format."""
    seen = []

    def watched(operator, x, *arguments, **keywords):
        seen.append((x.__array_interface__["data"][0], x.size, sorted(x.strides)))
        return operator(x, *arguments, **keywords)

    names = {name for name, *_ in CALLS if not name.startswith("pixel")}
    for name in names:
        monkeypatch.setattr(s2dq, name, partial(watched, getattr(s2dq, name)))
    calls = 0
    for (name, shape, arguments, keywords), dtype in product(CALLS, ("float32", "bfloat16", "bool")):
        for x in strided(numbered(shape, dtype)):
            seen.clear()
            getattr(compat, name)(x, *arguments, **keywords)
            assert {address for address, *_ in seen} <= {x.data_ptr() + i * x[0].element_size() * x.stride(0)
                                                         for i in range(len(x))}  # fmt: skip
            assert sum(size for _, size, _ in seen) == x.numel()
            if len(seen) == 1 and x.ndim != 5 and x.ndim != 3:
                assert seen[0][2] == sorted(step * x.element_size() for step in x.stride())
            calls += 1
    assert calls > 100


# ---- arguments


def test_pairs_and_blocks_may_be_tensors_and_arrays():
    x = numbered((1, 4, 4, 1))
    expected = compat.space_to_batch_nd(x, [2, 2], [[0, 0], [2, 0]])
    for kind in (torch.tensor, np.array, tuple):
        assert_same(compat.space_to_batch_nd(x, kind([2, 2]), kind([[0, 0], [2, 0]])), expected)
    assert_same(compat.space_to_depth(x, np.int64(2), paddings=torch.tensor([[0, 0], [2, 0]])),
                compat.space_to_depth(x, [2, 2], paddings=[[0, 0], [2, 0]]))


@pytest.mark.parametrize(("name", "shape", "arguments", "keywords"), PADDED)
@pytest.mark.parametrize("dtype", [name for name in NUMPY_DTYPES + OTHER_DTYPES if name not in (
    "bool", "float4_e2m1fn_x2", "float8_e8m0fnu")])
def test_pad_value(name, shape, arguments, keywords, dtype):
    x = torch.zeros(shape, dtype=getattr(torch, dtype))
    expected = torch.from_numpy(getattr(s2dq.reference, name)(np.zeros(shape), *arguments, **keywords))
    assert 0 < expected.count_nonzero() < expected.numel()
    for value in (3, np.int8(3), torch.tensor(3), *((3.0, np.float32(3)) if x.dtype.is_floating_point else ())):
        result = getattr(compat, name)(x, *arguments, **{**keywords, "pad_value": value})
        assert result.dtype == x.dtype
        assert torch.equal(result.to(torch.complex128), expected.to(torch.complex128))


@pytest.mark.parametrize(("dtype", "value"), [
    ("uint64", 2**64 - 1), ("int64", -(2**63)), ("float64", 2**70), ("float32", float("inf")), ("bool", True),
    ("bfloat16", float("inf")), ("bfloat16", 1e-60), ("bfloat16", -0.1), ("bfloat16", 2**70), ("float8_e5m2", 57344),
    ("float8_e4m3fn", -448.0), ("complex64", 1 - 2j), ("complex32", 1 - 2j), ("float8_e8m0fnu", 2.0),
])  # fmt: skip
def test_pad_values_that_a_dtype_holds(dtype, value):
    dtype = getattr(torch, dtype)
    result = compat.pack_vect_c(torch.zeros((1, 1, 1, 1)).to(dtype), vect=2, pad_value=value)
    expected = torch.tensor(value, dtype=None if dtype.is_complex else torch.float64).to(dtype)
    if not dtype.is_floating_point and not dtype.is_complex:
        expected = torch.tensor(value, dtype=dtype)
    assert torch.equal(bits(result)[0, 0, 0, 0, 1], bits(expected))


def test_pad_value_0_of_a_dtype_without_zero():
    """The bits of 0 are 2**-127 there: raw zero is what stands where nothing is said, and pack_vect_c's default."""
    x = torch.ones((1, 2, 1, 1)).to(torch.float8_e8m0fnu)
    calls = (partial(compat.space_to_depth, block_size=2, paddings=[[0, 0], [0, 1]]),
             partial(compat.space_to_batch_nd, block_shape=[2], paddings=[[0, 2]]), compat.pack_vect_c)  # fmt: skip
    for call, wrong in zip(calls, ((0, 0.0), (0, 0.0), (0.0,)), strict=True):
        assert (bits(call(x)) == 0).any()
        for value in wrong:
            refuses(ValueError, f"pad_value {value} cannot be held by dtype torch.float8", call, x, pad_value=value)
    assert_same(compat.pack_vect_c(x, pad_value=0), compat.pack_vect_c(x))
    without_arithmetic = bits(x).view(torch.float4_e2m1fn_x2)
    assert (bits(calls[1](without_arithmetic, pad_value=0)) == 0).any()


def test_pad_value_nan():
    for dtype in (torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2fnuz):
        result = compat.pack_vect_c(torch.zeros((1, 1, 1, 1), dtype=dtype), vect=2, pad_value=float("nan"))
        assert result.float().isnan().flatten().tolist() == [False, True]


@pytest.mark.parametrize(("dtype", "value", "error"), [
    ("int8", 128, ValueError), ("uint8", -1, ValueError), ("int32", 1.5, ValueError), ("int32", "1", TypeError),
    ("float32", True, TypeError), ("float32", 1e39, ValueError), ("float32", 10**400, ValueError),
    ("float32", 1j, TypeError), ("float16", 65520, ValueError), ("int64", 2**63, ValueError),
    ("bfloat16", 1e39, ValueError), ("bfloat16", 1j, TypeError), ("bfloat16", True, TypeError),
    ("bfloat16", 10**400, ValueError), ("float4_e2m1fn_x2", 1, TypeError),
    ("float8_e4m3fn", 1e9, ValueError), ("float8_e4m3fn", float("inf"), ValueError),
    ("float8_e8m0fnu", -2.0, ValueError), ("bfloat16", [1], TypeError), ("float8_e5m2", torch.ones(2), TypeError),
])  # fmt: skip
def test_pad_values_that_a_dtype_does_not_hold(dtype, value, error):
    x = torch.zeros((1, 2, 1, 1), dtype=getattr(torch, dtype))
    for call in (partial(compat.space_to_depth, block_size=2, paddings=[[0, 0], [0, 1]]),
                 partial(compat.space_to_batch_nd, block_shape=[2], paddings=[[0, 0]]), compat.pack_vect_c):
        refuses(error, "pad_value", call, x, pad_value=value)
    refuses(TypeError, "pad_value must be a number, not None", compat.pack_vect_c, x, pad_value=None)


@pytest.mark.parametrize(("call", "error", "says"), [
    (lambda x: compat.space_to_depth(x, 3), ValueError, r"height 4 is not divisible by block_size 3 \(x.shape=\(2, 4"),
    (lambda x: compat.space_to_depth(x, 2.0), TypeError, "block_size must be an integer"),
    (lambda x: compat.space_to_depth(x, [2]), ValueError, "block_size must be an integer or 2 of them"),
    (lambda x: compat.space_to_depth(x, 2, "NHCW"), ValueError, "data_format must be one of"),
    (lambda x: compat.space_to_depth(x, 2, 4), TypeError, "data_format must be a str"),
    (lambda x: compat.space_to_depth(x, 2, out_format="NWC"), ValueError, "as many spatial axes"),
    (lambda x: compat.space_to_depth(x, 2, mode="crd"), ValueError, "mode must be one of"),
    (lambda x: compat.space_to_depth(x, 2, vect=0), ValueError, "vect must be at least 1"),
    (lambda x: compat.space_to_depth(x, 2, paddings=[[0, 0]]), ValueError, "paddings must have shape"),
    (lambda x: compat.space_to_depth(x, 2, paddings=2), TypeError, "paddings must be a sequence"),
    (lambda x: compat.depth_to_space(x, 2), ValueError, "number of channels 6 is not divisible"),
    (lambda x: compat.depth_to_space(x, 1, crops=[[5, 0], [0, 0]]), ValueError, "crops"),
    (lambda x: compat.depth_to_space(x, 1, channels=5), ValueError, "channels 5 contradicts"),
    (lambda x: compat.space_to_batch_nd(x, 2, [[0, 0]]), TypeError, "block_shape"),
    (lambda x: compat.space_to_batch_nd(x, [2], [[0, 1]]), ValueError, "axis 1 of extent 4 padded to 5"),
    (lambda x: compat.space_to_batch_nd(x, [2], [[0, -1]]), ValueError, r"paddings\[0\]\[1\] must be at least 0"),
    (lambda x: compat.space_to_batch_nd(x, [1] * 4, [[0, 0]] * 4), ValueError, "at least 5 dimensions"),
    (lambda x: compat.batch_to_space_nd(x, [4], [[0, 0]]), ValueError, "batch 2 is not divisible by block_shape"),
    (lambda x: compat.pack_vect_c(x, "NCHW_VECT_C"), ValueError, "data_format must be one of NCHW, NHWC"),
    (lambda x: compat.pack_vect_c(x, vect=1.5), TypeError, "vect must be an integer"),
    (lambda x: compat.unpack_vect_c(x), ValueError, "x must have 5 dimensions"),
    (lambda x: compat.unpack_vect_c(x[None], channels=30), ValueError, "channels 30 does not fill 2 words"),
    (lambda x: torch.ops.s2dq.space_to_depth(x, [3, 3]), ValueError, "height 4 is not divisible"),
    (lambda x: torch.ops.s2dq.space_to_depth(x, [2]), ValueError, "block_size must be"),
    (lambda x: torch.ops.s2dq.space_to_depth(x, [2, 2], paddings=[0, 0, 0]), ValueError, "paddings must have shape"),
    (lambda x: torch.ops.s2dq.batch_to_space_nd(x, [2], [0, 0, 0]), ValueError, "crops must have shape"),
    (lambda x: torch.ops.s2dq.unpack_vect_c(x), ValueError, "x must have 5 dimensions"),
])  # fmt: skip
def test_errors(call, error, says):
    """The same for a tensor, for one without memory, and for a fake one."""
    x = torch.zeros((2, 4, 5, 6))
    refuses(error, says, call, x)
    refuses(error, says, call, x.to("meta"))
    with torch._subclasses.FakeTensorMode() as mode:
        refuses(error, says, call, mode.from_tensor(x))


@pytest.mark.parametrize(("argument", "call"), [
    ("upscale_factor", lambda n: compat.pixel_shuffle(torch.zeros(1, 0, 0, 0), n)),
    ("downscale_factor", lambda n: compat.pixel_unshuffle(torch.zeros(1, 0, 0, 0), n)),
    ("block_size", lambda n: compat.space_to_depth(torch.zeros(0, 0, 0, 0), n)),
    (r"block_size\[1\]", lambda n: compat.depth_to_space(torch.zeros(0, 0, 0, 0), [1, n])),
    ("vect", lambda n: compat.space_to_depth(torch.zeros(1, 2, 2, 1), 2, vect=n)),
    ("vect", lambda n: compat.depth_to_space(torch.zeros(1, 1, 1, 4), 2, vect=n)),
    ("vect", lambda n: compat.pack_vect_c(torch.zeros(0, 0, 0, 0), vect=n)),
    (r"block_shape\[0\]", lambda n: compat.space_to_batch_nd(torch.zeros(0, 0, 0, 0), [n], [[0, 0]])),
    (r"block_shape\[0\]", lambda n: compat.batch_to_space_nd(torch.zeros(0, 0, 0, 0), (n,), [[0, 0]])),
    (r"paddings\[0\]\[1\]", lambda n: compat.space_to_batch_nd(torch.zeros(0, 0), [1], [[0, n]])),
])  # fmt: skip
def test_integers_that_no_schema_takes(fresh_compiler, argument, call):
    for number in (2**63, 2**64, np.uint64(2**63), 10**400):
        refuses(ValueError, rf"^\w+: {argument} must be at most 2\*\*63 - 1 in PyTorch, not ", call, number)
    refuses(ValueError, f"{argument} must be at most", torch.compile(partial(call, 2**64), backend="eager"))


def test_other_rules_say_more_of_integers_that_no_schema_takes():
    refuses(ValueError, "channels .* does not fill 1 words", compat.unpack_vect_c, X4[None], channels=2**63)
    refuses(ValueError, r"crops\[0\] .* are larger than", compat.batch_to_space_nd, X4, [1], [[2**63, 0]])
    refuses(ValueError, "height 4 is not divisible by block_size", compat.space_to_depth, X4, 2**64)


def test_the_largest_integers_that_a_schema_takes():
    for n in (2**63 - 1, np.uint64(2**63 - 1)):
        assert_same(compat.pixel_unshuffle(torch.zeros(1, 0, 0, 0), n), torch.zeros(1, 0, 0, 0))
        assert_same(compat.space_to_batch_nd(torch.zeros(0, 0), [n], [[0, 0]]), torch.zeros(0, 0))
        assert_same(compat.depth_to_space(torch.zeros(1, 1, 1, 4), 2, vect=n), torch.zeros(1, 2, 2, 1))


def test_results_that_no_memory_holds():
    x = torch.zeros((1, 1))
    refuses(MemoryError, "no memory for a result", compat.space_to_batch_nd, x, [2], [[0, 2**55 - 1]])
    refuses(ValueError, "larger than 2", compat.space_to_batch_nd, x, [2], [[0, 2**62 - 1]])


UNFIT = {
    "ndarray": (lambda: np.zeros((1, 4, 4, 4)), "torch.Tensor, not ndarray"),
    "list": (lambda: [[1]], "torch.Tensor, not list"),
    "sparse": (lambda: torch.zeros(1, 4, 4, 4).to_sparse(), "torch.sparse_coo"),
    "mkldnn": (lambda: torch.zeros(1, 4, 4, 4).to_mkldnn(), "torch._mkldnn"),
    "quantized": (lambda: torch.quantize_per_tensor(torch.zeros(1, 4, 4, 4), 1.0, 0, torch.qint8), "qint8"),
    "nested": (lambda: torch.nested.nested_tensor([torch.zeros(4, 4, 4), torch.zeros(4, 4, 2)]), "nested"),
    "jagged": (lambda: torch.nested.nested_tensor([torch.zeros(3), torch.zeros(2)], layout=torch.jagged), "nested"),
}


@pytest.mark.parametrize("kind", UNFIT)
def test_tensors_of_other_kinds(kind):
    make, says = UNFIT[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # quantized and nested tensors are said to go, or to be prototypes
        x = make()
    for call in (partial(compat.pixel_shuffle, upscale_factor=2), partial(compat.pixel_unshuffle, downscale_factor=2),
                 partial(compat.space_to_depth, block_size=2), partial(compat.depth_to_space, block_size=2),
                 partial(compat.space_to_batch_nd, block_shape=[2], paddings=[[0, 0]]), compat.pack_vect_c,
                 partial(compat.batch_to_space_nd, block_shape=[1], crops=[[0, 0]]), compat.unpack_vect_c):
        refuses(TypeError, says, call, x)


@each_call
@pytest.mark.parametrize("left", [0, 4, -1])
def test_tensors_whose_memory_was_taken_away(name, shape, arguments, keywords, left):
    """As FSDP does it with weights; what is left may be too little, and nothing past it is read."""
    parent = numbered((2, *shape))
    x = parent[1]
    size = parent.untyped_storage().nbytes()
    parent.untyped_storage().resize_(left % size if left else 0)
    argument = "input" if name.startswith("pixel") else "x"
    says = rf"^{name}: {argument} must have memory for its elements, {size} bytes; its storage was resized to "
    refuses(ValueError, says, getattr(compat, name), x, *arguments, **keywords)
    refuses(ValueError, says, operator_of(name), x, *arguments_of(name, *arguments, **keywords))
    parent.untyped_storage().resize_(size)
    getattr(compat, name)(x, *arguments, **keywords)


def test_nothing_needs_no_memory():
    x = torch.zeros(0, 4, 2, 2)
    x.untyped_storage().resize_(0)
    assert_same(compat.pixel_shuffle(x, 2), torch.zeros(0, 1, 4, 4))


def test_other_devices():
    with torch._subclasses.FakeTensorMode():
        x = torch.empty((1, 4, 4, 4), device="cuda")
        refuses(TypeError, "on the CPU, not on cuda", compat.pixel_shuffle, x, 2)
        refuses(TypeError, "on the CPU, not on cuda", torch.ops.s2dq.pixel_shuffle, x, 2)


# ---- what PyTorch does with an operator


@each_call
def test_meta_and_fake_tensors_have_the_strides_of_real_ones(name, shape, arguments, keywords):
    function = getattr(compat, name)
    for x, dtype in product(strided(numbered(shape)), (torch.float32, torch.int8, torch.bfloat16)):
        x = x.to(dtype)  # keeps the memory format
        real = function(x, *arguments, **keywords)
        meta = function(torch.empty_strided(shape, x.stride(), dtype=dtype, device="meta"), *arguments, **keywords)
        with torch._subclasses.FakeTensorMode() as mode:
            fake = function(mode.from_tensor(x), *arguments, **keywords)
        assert meta.device.type == "meta" and isinstance(fake, torch._subclasses.FakeTensor)
        for made in (meta, fake):
            assert (made.shape, made.stride(), made.dtype) == (real.shape, real.stride(), real.dtype)


QUICK_CHECKS = ("test_schema", "test_autograd_registration", "test_faketensor")
CHECKS = (*QUICK_CHECKS, "test_aot_dispatch_dynamic")  # the last takes most of a second
OPCHECKED = ("float32", "float64", "int8", "bool", "complex64", "bfloat16")


def checks_of(call, dtype):
    """Those of PyTorch in each memory: the slow one with float32 in both, with three of the other dtypes in one, by
    turns in which every operator meets all of them. `S2DQ_TEST_LONG=1`: all of them, always."""
    turn = CALLS.index(call)
    if dtype == "float32" or os.environ.get("S2DQ_TEST_LONG") == "1":
        return CHECKS, CHECKS
    if (OPCHECKED.index(dtype) - 1 - 3 * turn) % 5 > 2:
        return QUICK_CHECKS, QUICK_CHECKS
    return (CHECKS, QUICK_CHECKS) if turn % 2 else (QUICK_CHECKS, CHECKS)


def test_every_operator_is_traced_with_every_dtype():
    met = {(call[0], dtype) for call, dtype in product(CALLS, OPCHECKED) if CHECKS in checks_of(call, dtype)}
    assert met == set(product((name for name, *_ in CALLS), OPCHECKED))


@each_call
@pytest.mark.parametrize("dtype", OPCHECKED)
def test_opcheck(name, shape, arguments, keywords, dtype):
    x = numbered(shape, dtype)
    differentiable = x.is_floating_point() or x.is_complex()
    memory = FORMATS.get(x.ndim, torch.contiguous_format)
    sources = x, x.contiguous(memory_format=memory)
    for source, checks in zip(sources, checks_of((name, shape, arguments, keywords), dtype), strict=True):
        source = source.clone().requires_grad_(differentiable)
        given = source, *arguments_of(name, *arguments, **keywords)
        done = torch.library.opcheck(operator_of(name), given, test_utils=checks)
        assert done == dict.fromkeys(checks, "SUCCESS")


@pytest.mark.parametrize(("name", "shape", "arguments", "keywords"), PADDED)
def test_opcheck_with_a_pad_value(name, shape, arguments, keywords):
    source = numbered(shape).requires_grad_()
    done = torch.library.opcheck(operator_of(name), (source, *arguments_of(name, *arguments, **keywords)))
    assert set(done.values()) == {"SUCCESS"}


@pytest.mark.parametrize(("name", "shape", "arguments", "keywords"), CALLS + PADDED)
def test_gradients(name, shape, arguments, keywords):
    call = getattr(compat, name)
    for x in strided(torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))):
        for source, fast in ((x, False), (torch.complex(x, -x), True)):
            source = source.detach().requires_grad_()
            check = {"inputs": source, "fast_mode": fast or x.numel() > 100}
            assert torch.autograd.gradcheck(lambda x: call(x, *arguments, **keywords), **check)
            assert torch.autograd.gradgradcheck(lambda x: call(x, *arguments, **keywords), **check)


@each_call
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64"])
def test_gradients_put_every_element_back(name, shape, arguments, keywords, dtype):
    """Of the sum of squares it is twice the tensor, but for what crops and spare lanes leave out."""
    x = numbered(shape, dtype).requires_grad_()
    result = getattr(compat, name)(x, *arguments, **keywords)
    result.backward(result.detach())
    kept = torch.isin(x.detach().real.double(), result.detach().real.double())
    assert kept.any()
    assert torch.equal(x.grad, torch.where(kept, x.detach(), 0))
    assert x.grad.shape == x.shape and x.grad.dtype == x.dtype


def test_gradients_of_words_to_words():
    """Of float8, with a ragged number of words, which depth_to_space cannot take back from words to words."""
    for channels, width in ((None, 2), (5, 2), (3, 1)):
        x = torch.arange(width * 16).remainder(15).add(1).reshape(1, width, 2, 2, 4).to(torch.float8_e5m2)
        x.requires_grad_()
        y = compat.space_to_depth(x, 2, "NCHW_VECT_C", channels=channels)
        y.backward(y.detach())
        lane = torch.arange(width).reshape(-1, 1, 1, 1) * 4 + torch.arange(4)
        expected = torch.where(lane < (channels or 4 * width), x.detach().float(), 0)
        assert torch.equal(x.grad.float(), expected)


def test_gradients_of_nothing():
    for call, shape in ((lambda x: compat.unpack_vect_c(x), (1, 2, 3, 3, 0)), (compat.pack_vect_c, (1, 0, 2, 2)),
                        (lambda x: compat.space_to_depth(x, 2, "NCHW_VECT_C", out_format="NCHW"), (1, 2, 4, 4, 0)),
                        (lambda x: compat.pixel_shuffle(x, 2), (0, 4, 2, 2)),
                        (lambda x: compat.depth_to_space(x, 2, crops=[[2, 0], [0, 0]]), (1, 1, 1, 4))):  # fmt: skip
        x = torch.ones(shape, requires_grad=True)
        result = call(x)
        assert result.numel() == 0
        result.sum().backward()
        assert torch.equal(x.grad, torch.zeros(shape))


def test_integers_have_no_gradient():
    assert not compat.pixel_shuffle(torch.zeros((4, 2, 2), dtype=torch.int8), 2).requires_grad
    with torch.no_grad():
        assert not compat.pixel_shuffle(torch.zeros((4, 2, 2), requires_grad=True), 2).requires_grad
    with torch.inference_mode():
        result = compat.pixel_shuffle(numbered((4, 2, 2)).requires_grad_(), 2)
        assert result.is_inference()
    assert torch.equal(compat.pixel_unshuffle(result, 2), numbered((4, 2, 2)))


def test_conjugate_and_negative_bits():
    x = torch.complex(numbered((1, 4, 2, 2)), -numbered((1, 4, 2, 2)))
    for view in (x.conj(), x.conj().imag, x.mH, torch._neg_view(x)):
        assert view.is_conj() or view.is_neg()
        assert_same(compat.pixel_unshuffle(view, 2), F.pixel_unshuffle(view.resolve_conj().resolve_neg(), 2))


def test_expanded_tensors_and_subclasses():
    class Labelled(torch.Tensor):
        pass

    x = numbered((1, 4, 2, 2))
    assert_same(compat.pixel_shuffle(x[:, :1].expand(3, 4, 2, 2), 2), F.pixel_shuffle(x[:, :1].expand(3, 4, 2, 2), 2))
    labelled = compat.pixel_shuffle(x.as_subclass(Labelled), 2)
    assert type(labelled) is Labelled and torch.equal(labelled.as_subclass(torch.Tensor), F.pixel_shuffle(x, 2))
    assert_same(compat.pixel_shuffle(torch.nn.Parameter(x), 2), F.pixel_shuffle(x, 2))


def test_results_can_be_resized_in_place():
    """Their memory is PyTorch's own; that of the input stays so."""
    x = numbered((1, 4, 2, 2))
    for tensor in (compat.pixel_shuffle(x, 2), x):
        assert tensor.resize_(3, 50).shape == (3, 50)


@pytest.mark.parametrize(("name", "shape", "arguments", "keywords"), CALLS + PADDED)
def test_vmap(name, shape, arguments, keywords):
    call = getattr(compat, name)
    for axis in range(len(shape) + 1):
        x = torch.randn((*shape[:axis], 3, *shape[axis:]), generator=torch.Generator().manual_seed(axis))
        one_by_one = torch.stack([call(one, *arguments, **keywords) for one in x.unbind(axis)])
        assert torch.equal(torch.vmap(lambda x: call(x, *arguments, **keywords), axis)(x), one_by_one)


@pytest.mark.parametrize(("name", "shape", "arguments", "keywords"), CALLS + PADDED)
def test_vmap_over_nothing(name, shape, arguments, keywords):
    def call(x):
        return getattr(compat, name)(x, *arguments, **keywords)

    expected = call(torch.zeros(shape)).shape
    for axis in (0, len(shape)):
        x = torch.zeros((*shape[:axis], 0, *shape[axis:]), requires_grad=True)
        result = torch.vmap(call, axis)(x)
        assert result.shape == (0, *expected)
        result.sum().backward()
        assert x.grad.shape == x.shape
    assert torch.vmap(torch.vmap(call))(torch.zeros(2, 0, *shape)).shape == (2, 0, *expected)


def test_vmap_over_nothing_refuses_what_it_refuses_over_something():
    refuses(ValueError, "batch 3 is not divisible", torch.vmap(lambda x: compat.batch_to_space_nd(x, [2], [[0, 0]])),
            torch.zeros(0, 3, 2))  # fmt: skip


def test_gradients_in_batches():
    x = numbered((1, 4, 2, 2))
    jacobian = torch.autograd.functional.jacobian
    ours = jacobian(lambda x: compat.pixel_shuffle(x, 2), x, vectorize=True)
    assert torch.equal(ours, jacobian(lambda x: F.pixel_shuffle(x, 2), x))


@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")  # of PyTorch's own forward mode
def test_function_transforms_that_custom_operators_lack():
    """As docs/compat/pytorch.md says: an error, no wrong gradient."""
    x = numbered((1, 4, 2, 2))
    with pytest.raises(RuntimeError, match="functorch"):
        torch.func.grad(lambda x: compat.pixel_shuffle(x, 2).sum())(x)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, x)
        refuses(TypeError, "input is a dual tensor", compat.pixel_shuffle, dual, 2)
        refuses(TypeError, "input is a dual tensor", torch.ops.s2dq.pixel_shuffle, dual, 2)
        assert_same(compat.pixel_shuffle(x, 2), F.pixel_shuffle(x, 2))
    refuses(TypeError, "x is a dual tensor", torch.func.jvp, compat.pack_vect_c, (x,), (x,))


# ---- programs


class Model(torch.nn.Module):
    """A convolution between operators of every kind, with a padding that depends on the input."""

    def __init__(self):
        super().__init__()
        self.convolution = torch.nn.Conv2d(12, 12, 3, padding=1)

    def forward(self, x):
        height = x.shape[2]
        y = compat.space_to_depth(x, 2, "NCHW", mode="CRD", paddings=[(0, height % 2), (0, 0)], pad_value=0.5)
        y = compat.space_to_batch_nd(y, [1, 1, 2], [[0, 0], [0, 0], [1, 1]], pad_value=1)
        y = compat.batch_to_space_nd(self.convolution(y).relu(), [1, 1, 2], [[0, 0], [0, 0], [1, 1]])
        y = compat.unpack_vect_c(compat.pack_vect_c(y, vect=8), channels=y.shape[1])
        z = compat.pixel_unshuffle(compat.pixel_shuffle(y, 2), 2)
        return compat.depth_to_space(y + z, 2, "NCHW", out_format="NHWC", crops=[[0, height % 2], [0, 0]])


@pytest.fixture
def model():
    torch.manual_seed(0)
    return Model()


@pytest.fixture
def fresh_compiler():
    """Nothing compiled before, and none of the compiler's own warnings."""
    torch.compiler.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    torch.compiler.reset()


def frames(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(1))


def train(model, x):
    """The output, and the gradients of its squares."""
    x = x.clone().requires_grad_()
    y = model(x)
    y.square().sum().backward()
    gradients = [x.grad, *(parameter.grad.clone() for parameter in model.parameters())]
    model.zero_grad()
    return [y.detach(), *gradients]


@pytest.mark.parametrize(("read", "value", "error"), [
    (compat._traced_integer, True, "must be an int of Python"),
    (compat._traced_integer, 2.0, "must be an int of Python"),
    (compat._traced_block, 2, "must be a list or a tuple of integers"),
    (compat._traced_block, [2, True], "must be an int of Python"),
    (compat._traced_pairs, [[0, 1, 2]], "must be .start, end. pairs"),
])  # fmt: skip
def test_what_a_traced_program_may_not_have(read, value, error):
    """Refused instead of taken for something else by the schema of an operator."""
    with pytest.raises((TypeError, ValueError), match=f"^block_size {error}"):
        read("block_size", value)


@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled_programs(model, fresh_compiler, dynamic):
    compiled = torch.compile(copy.deepcopy(model), fullgraph=True, backend="aot_eager", dynamic=dynamic)
    for x in (frames(2, 3, 6, 8), frames(1, 3, 7, 4), frames(2, 3, 6, 8).to(memory_format=torch.channels_last)):
        ours, theirs = train(compiled, x), train(model, x)
        assert len(ours) == 4
        for one, other in zip(ours, theirs, strict=True):
            torch.testing.assert_close(one, other)
            assert one.stride() == other.stride()


@pytest.mark.skipif(not any(map(shutil.which, ("c++", "g++", "clang++"))), reason="inductor needs a C++ compiler")
def test_compiled_by_inductor(model, fresh_compiler):
    compiled = torch.compile(copy.deepcopy(model), fullgraph=True)
    for x in (frames(2, 3, 6, 8), frames(2, 3, 6, 8).to(memory_format=torch.channels_last)):
        for one, other in zip(train(compiled, x), train(model, x), strict=True):
            torch.testing.assert_close(one, other)


def test_one_program_serves_all_extents(fresh_compiler):
    """But for extents of 0 and 1, for which PyTorch always makes programs of their own."""
    counter = pytest.importorskip("torch._dynamo.testing").CompileCounterWithBackend("aot_eager")

    def shuffled(x):
        return compat.pixel_shuffle(compat.space_to_depth(x, 2, "NCHW") + 1, 2)

    compiled = torch.compile(shuffled, fullgraph=True, backend=counter, dynamic=True)
    for shape in ((2, 3, 4, 6), (3, 2, 8, 10), (5, 7, 6, 4)):
        x = frames(*shape)
        assert_same(compiled(x), shuffled(x))
    assert counter.frame_count == 1
    # What the fake kernel refuses is no program.
    with pytest.raises(torch._dynamo.exc.TorchRuntimeError, match="is not divisible by block_size"):
        compiled(frames(1, 2, 5, 6))


def test_compiled_pixel_functions_equal_pytorchs(fresh_compiler, rng):
    for name, theirs in PIXEL.items():
        for dtype, shape in product((torch.float32, torch.int8), ((2, 4, 6, 4), (1, 8, 2, 2))):
            torch.compiler.reset()  # each memory is a program, and their number has a limit
            compiled = torch.compile(getattr(compat, name), fullgraph=True, backend="aot_eager", dynamic=True)
            for x in memories(rng, shape, dtype):
                assert_same(compiled(x, 2), theirs(x, 2))


X4 = torch.zeros(1, 4, 4, 4)
# Calls whose arguments a schema would change, or not take: refused or taken as without a compiler.
TRACED = [
    (lambda: compat.pixel_unshuffle(X4, True), TypeError, "downscale_factor must be an integer, not True"),
    (lambda: compat.pixel_shuffle(X4, np.bool_(True)), TypeError, "integer"),
    (lambda: compat.pixel_shuffle(X4, 2.0), TypeError, "integer"),
    (lambda: compat.space_to_depth(X4, True), TypeError, "must be an integer, not True"),
    (lambda: compat.space_to_depth(X4, [2, True]), TypeError, "must be an integer, not True"),
    (lambda: compat.space_to_depth(X4, 2, out_format="NCHW_VECT_C", vect=True), TypeError, "vect must be an integer"),
    (lambda: compat.space_to_depth(X4, 2, channels=True), TypeError, "channels must be an integer"),
    (lambda: compat.space_to_depth(X4, 1, paddings=[[1, 2, 1], [0]]), ValueError, "paddings must"),
    (lambda: compat.space_to_depth(X4, 1, paddings=[[0, True], [0, 0]]), TypeError, "must be an integer, not True"),
    (lambda: compat.depth_to_space(X4, 1, crops=[[1], [0, 0, 0]]), ValueError, "crops must"),
    (lambda: compat.space_to_batch_nd(X4, [True, 1], [[0, 0], [0, 0]]), TypeError, "must be an integer, not True"),
    (lambda: compat.space_to_batch_nd(X4, [2, 2], [[1, 1, 1], [1]]), ValueError, "paddings must"),
    (lambda: compat.batch_to_space_nd(X4, [1], [[False, 0]]), TypeError, "must be an integer, not False"),
    (lambda: compat.pack_vect_c(X4, vect=True), TypeError, "vect must be an integer, not True"),
    (lambda: compat.unpack_vect_c(X4[None], channels=True), TypeError, "channels must be an integer, not True"),
    (lambda: compat.pixel_unshuffle(X4, np.int64(2)), None, ""),
    (lambda: compat.pixel_shuffle(X4, np.uint8(2)), None, ""),
    (lambda: compat.space_to_depth(X4, np.int32(2), "NCHW", paddings=[[np.int64(2), 0], (0, 2)]), None, ""),
    (lambda: compat.depth_to_space(X4, (np.int64(2), 1)), None, ""),
    (lambda: compat.space_to_depth(X4, range(1, 3)), None, ""),
    (lambda: compat.space_to_batch_nd(X4, (np.int64(2),), [[0, np.uint8(2)]]), None, ""),
    (lambda: compat.pack_vect_c(X4, vect=np.int64(3)), None, ""),
]


def padded_calls(dtype, value):
    """Calls of all operators that pad, with this pad value."""
    x = torch.zeros((1, 2, 2, 3), dtype=getattr(torch, dtype))
    return (lambda: compat.space_to_depth(x, 2, paddings=[[0, 2], [0, 0]], pad_value=value),
            lambda: compat.space_to_batch_nd(x, [2], [[0, 2]], pad_value=value),
            lambda: compat.pack_vect_c(x, "NHWC", pad_value=value))  # fmt: skip


PAD_VALUES = [
    ("int8", np.int8(7), None, ""), ("int8", torch.tensor(7), None, ""),
    ("int8", True, TypeError, "pad_value must be a value of dtype int8, not True"),
    ("int8", 300, ValueError, "pad_value 300 cannot be held by dtype int8"),
    # Of the rest, each for one operator.
    ("int8", np.array(7), None, ""), ("float32", np.float32(0.5), None, ""), ("float64", 2**70, None, ""),
    ("bool", True, None, ""), ("complex64", np.complex64(1j), None, ""),
    ("int8", "a", TypeError, "pad_value must be a number, not 'a'"),
    ("int8", 7.5, ValueError, "pad_value 7.5 cannot be held"),
    ("int8", float("nan"), ValueError, "pad_value nan cannot be held"),
    ("bool", 2, ValueError, "pad_value 2 cannot be held"),
    ("float32", 1e39, ValueError, "pad_value 1e.39 cannot be held by dtype float32"),
    ("float32", 1j, TypeError, "pad_value must be a value of dtype float32, not 1j"),
    ("complex64", complex(0, 1e39), ValueError, "pad_value 1e.39j cannot be held"),
]  # fmt: skip
TRACED += [
    (call, error, says)
    for row, (dtype, value, error, says) in enumerate(PAD_VALUES)
    for turn, call in enumerate(padded_calls(dtype, value))
    if row < 4 or row % 3 == turn
]
TRACED += [(padded_calls("float32", None)[2], TypeError, "pad_value must be a number, not None")]


@pytest.mark.parametrize(("call", "error", "says"), TRACED)
def test_compiled_calls_take_and_refuse_what_others_do(fresh_compiler, call, error, says):
    compiled = torch.compile(call, backend="aot_eager")
    if error is None:
        assert_same(compiled(), call())
    else:
        refuses(error, says, call)
        refuses(error, says, compiled)


@pytest.mark.parametrize("row", [0, 3, 7, 8, 11, 13, 15])
def test_whole_programs_do_not_change_what_a_schema_would(fresh_compiler, row):
    """Where the call may not be left out of the program, the compiler tells what is wrong with it."""
    with pytest.raises(torch._dynamo.exc.Unsupported, match=r"must be an int of Python|must be \[start, end\] pairs"):
        torch.compile(TRACED[row][0], backend="eager", fullgraph=True)()


@pytest.mark.parametrize(("dtype", "value"), [
    ("int8", 7.0), ("float32", 7), ("float32", float("inf")), ("complex64", 1j), ("bool", True), ("bfloat16", 0.3),
    ("uint64", 2**64 - 1),
])  # fmt: skip
def test_whole_programs_with_a_pad_value(fresh_compiler, dtype, value):
    for call in padded_calls(dtype, value):
        assert_same(torch.compile(call, backend="eager", fullgraph=True)(), call())


def test_whole_programs_have_no_pad_value_of_numpy(fresh_compiler):
    for call in padded_calls("int8", np.int8(7)):
        with pytest.raises(torch._dynamo.exc.Unsupported, match="pad_value must be a number of Python"):
            torch.compile(call, backend="eager", fullgraph=True)()


def test_exported_programs(model, fresh_compiler):
    batch, width = torch.export.Dim("batch", min=2, max=64), torch.export.Dim("width", min=2, max=64)
    example = frames(2, 3, 7, 8)
    for strict in (False, True):
        dynamic = {"x": {0: batch, 3: 4 * width}}
        program = torch.export.export(model, (example,), dynamic_shapes=dynamic, strict=strict)
        targets = {str(node.target) for node in program.graph.nodes}
        assert {f"s2dq.{name}.default" for name in compat.__all__} <= targets
        for x in (example, frames(5, 3, 7, 16)):
            torch.testing.assert_close(program.module()(x), model(x))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_traced_by_the_jit():
    """As docs/compat/pytorch.md says: with warnings, and right for other tensors than that of the trace."""
    def shuffled(x):
        return compat.pixel_shuffle(compat.space_to_depth(x, 2, "NCHW", paddings=[[0, 1], [1, 0]]) + 1, 2)

    with pytest.warns(torch.jit.TracerWarning):
        program = torch.jit.trace(shuffled, (frames(1, 2, 3, 5),))
    for x in (frames(1, 2, 3, 5), frames(2, 3, 5, 7), frames(2, 4, 3, 3).to(memory_format=torch.channels_last)):
        assert_same(program(x), shuffled(x))
    with pytest.raises(RuntimeError, match="is not divisible by block_size"):
        program(frames(1, 2, 4, 5))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_scripted_by_the_jit():
    def shuffled(x: torch.Tensor) -> torch.Tensor:
        return torch.ops.s2dq.pixel_shuffle(x, 2)

    program, x = torch.jit.script(shuffled), frames(1, 8, 3, 5)
    assert_same(program(x), compat.pixel_shuffle(x, 2))
    with pytest.raises(RuntimeError):
        torch.jit.script(compat.pixel_shuffle)


# ---- tensors for the operators on arrays


@pytest.mark.parametrize(("make", "says"), [
    (lambda x: x.requires_grad_(), r"requires a gradient, which would be lost; \.detach\(\) it first"),
    (lambda x: x.to(torch.complex64).conj(), r"is the conjugate of .* call \.resolve_conj\(\) first"),
    (lambda x: (x * 1j).conj().imag, r"is the negative of .* call \.resolve_neg\(\) first"),
    (lambda x: x.to(torch.bfloat16), r"not Tensor of torch\.bfloat16; s2dq\.compat\.torch takes all"),
    (lambda x: x.to(torch.float8_e5m2), r"not Tensor of torch\.float8_e5m2; s2dq\.compat\.torch takes all"),
    (lambda x: x.to_sparse(), r"is sparse; call \.to_dense\(\) first"),
    (lambda x: torch.quantize_per_tensor(x, 1.0, 0, torch.qint8), r"quantized tensor; s2dq\.interop\.from_torch"),
])
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
def test_operators_on_arrays_say_why_a_tensor_cannot_come_in(make, says):
    """The bit that makes a tensor negative is not in its bytes: read as they are, they would be wrong."""
    x = numbered((1, 2, 2, 3))
    refuses(TypeError, rf"^space_to_depth: x .*{says}", s2dq.space_to_depth, make(x), 2)


@pytest.mark.parametrize("value", [torch.tensor(True), torch.tensor([False])])
@pytest.mark.parametrize(("argument", "call"), [
    ("block_size", lambda x, value: s2dq.space_to_depth(x, value)),
    (r"block_size\[1\]", lambda x, value: s2dq.space_to_depth(x, [1, value])),
    ("vect", lambda x, value: s2dq.pack_vect_c(x, vect=value)),
    ("num_threads", lambda x, value: s2dq.space_to_depth(x, 1, num_threads=value)),
    ("n", lambda x, value: s2dq.set_num_threads(value)),
    (r"paddings\[0\]\[0\]", lambda x, value: s2dq.space_to_batch_nd(x, [1], [[value, 0]])),
    ("zero_point", lambda x, value: s2dq.QuantizedTensor(x, 0.5, value)),
    (r"zero_point\[0\]", lambda x, value: s2dq.QuantizedTensor(x, 0.5, [value], axis=3)),
    ("axis", lambda x, value: s2dq.QuantizedTensor(x, [0.5], 0, axis=value)),
    ("block_size", lambda x, value: s2dq.Preprocessor(scale=0.5, zero_point=0, block_size=value)),
    ("zero_point", lambda x, value: s2dq.Preprocessor(scale=0.5, zero_point=value)),
    ("downscale_factor", lambda x, value: compat.pixel_unshuffle(torch.from_numpy(x), value)),
])  # fmt: skip
def test_bools_of_pytorch_are_no_integers(argument, call, value):
    x = np.zeros((1, 2, 2, 1), np.int8)
    refuses(TypeError, rf"^\w+: {argument} must be an integer, not tensor\(", call, x, value)
    assert np.array_equal(s2dq.space_to_depth(x, torch.tensor(1)), x)  # which is an integer


def test_the_ways_out_for_tensors_are_ways_out():
    x = numbered((1, 2, 2, 3))
    negative, conjugate = (x * 1j).conj().imag, (x * 1j).conj()
    for tensor in (x.clone().requires_grad_().detach(), negative.resolve_neg(), conjugate.resolve_conj(),
                   x.to_sparse().to_dense()):  # fmt: skip
        expected = s2dq.space_to_depth(tensor.numpy(), 2)
        assert np.array_equal(s2dq.space_to_depth(tensor, 2), expected) and expected.any()
    half = x.to(torch.bfloat16)
    moved = torch.from_numpy(s2dq.space_to_depth(half.view(torch.int16), 2)).view(torch.bfloat16)
    assert_same(compat.space_to_depth(half, 2), moved)


# ---- threads


def test_threads_are_left_alone(monkeypatch):
    before = torch.get_num_threads(), s2dq.get_num_threads()
    x = torch.arange(2**22, dtype=torch.int32).reshape(1, 64, 256, 256)
    expected = F.pixel_shuffle(x, 2)

    def forbidden(count):
        raise AssertionError(f"torch.set_num_threads({count}) was called")

    monkeypatch.setattr(torch, "set_num_threads", forbidden)
    try:
        for count in (1, 2, None):
            s2dq.set_num_threads(count)
            assert torch.equal(compat.pixel_shuffle(x, 2), expected)
    finally:
        s2dq.set_num_threads(None)
    assert (torch.get_num_threads(), s2dq.get_num_threads()) == before


# ---- documentation


def test_signatures_are_those_of_the_operators_for_arrays():
    """All that a tensor can have: no `out`, no `num_threads`."""
    for name in compat.__all__:
        ours = inspect.signature(getattr(compat, name)).parameters.values()
        theirs = inspect.signature(getattr(s2dq, name)).parameters.values() if name not in PIXEL else None
        if theirs is None:
            assert [parameter.name for parameter in ours] == [
                "input", "upscale_factor" if name == "pixel_shuffle" else "downscale_factor"]
        else:
            bare = [(one.name, one.kind, one.default) for one in ours]
            assert bare == [(one.name, one.kind, one.default) for one in theirs if one.name not in (
                "out", "num_threads")]  # fmt: skip


@pytest.mark.parametrize("name", compat.__all__)
def test_docstrings_have_all_sections(name):
    text = inspect.getdoc(getattr(compat, name))
    headings = ("Parameters", "Returns", "Raises", "See Also", "References", "Examples")
    places = [text.index(f"\n{heading}\n{'-' * len(heading)}\n") for heading in headings]
    assert places == sorted(places)
    for parameter in inspect.signature(getattr(compat, name)).parameters:
        assert f"\n{parameter} : " in text, parameter

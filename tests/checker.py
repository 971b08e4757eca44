"""One checker for every operator, good or sabotaged: which source byte is where in the result?

int8 has 256 values, so `arange` wraps and elements that changed places can hide. `check` therefore recovers
the whole map from result to source. Every source byte is numbered from 1; the operator runs once per
base-256 digit of these numbers (a *plane*), and the digits found in the results spell the number of the byte
that landed there, or 0 where the operator wrote its fill. Planes are raw bytes: any element width will do.

Every run is made three times: with a fresh result, into `out` full of 0xA5 and into `out` full of 0x5A. A
byte that was never written differs, and so does a byte next to `out` that was.
"""

from math import prod

import numpy as np

import loops

POISONS = (0xA5, 0x5A)
MARGIN = 64  # poisoned bytes on either side of `out`


def check(operator, x_shape, dtype, arguments, oracle, *, rng, arrange=None, label=""):
    """Assert that `operator(x, **arguments)` does what `oracle` does, bit for bit.

    `operator` takes `out=`; `oracle` takes neither `out` nor `num_threads`. `arrange` puts a C-contiguous
    array into other memory (see `ARRANGEMENTS`). Any difference is an AssertionError that names the case.
    """
    dtype, arrange = np.dtype(dtype), arrange or ARRANGEMENTS["C"]
    case = (f"{label or getattr(operator, '__name__', operator)}: shape {tuple(x_shape)}, dtype {dtype}, "
            f"memory {arrange.__name__}, {arguments}")
    if not has_python_elements(dtype):
        check_map(operator, x_shape, dtype, arguments, oracle, arrange, case)
    check_values(operator, arrange(sample(x_shape, dtype, rng)), arguments, oracle, case)


def check_map(operator, x_shape, dtype, arguments, oracle, arrange, case):
    """Assert that both write every byte of the same source element in the same place, and fill elsewhere."""
    arguments = {name: value for name, value in arguments.items() if name != "pad_value"}
    elements = byte_map(oracle_run(oracle), x_shape, np.dtype(np.uint8), arguments, arrange)
    within = np.arange(dtype.itemsize)
    expected = np.where(elements < 0, -1, elements * dtype.itemsize + within)

    for poison in (None, *POISONS):
        run = operator_run(operator, elements.shape[:-1], poison, case)
        found = byte_map(run, x_shape, dtype, arguments, arrange)
        assert_same(found, expected, f"{case}\nbyte map (shape of the result + bytes of an element, -1 is fill), "
                                     f"{described(poison)}")


def check_values(operator, x, arguments, oracle, case):
    """Assert equal values, padding included."""
    expected = oracle_run(oracle)(x, **arguments)
    assert isinstance(expected, np.ndarray) and expected.dtype == x.dtype, f"{case}: the oracle is broken"
    for poison in (None, *POISONS):
        result = operator_run(operator, expected.shape, poison, case)(x, **arguments)
        assert_same(result, expected, f"{case}\nvalues, {described(poison)}")


def assert_same(found, expected, message):
    if found.dtype != expected.dtype or not np.array_equal(found, expected):  # which is quicker than NumPy's assertion
        np.testing.assert_array_equal(found, expected, strict=True, err_msg=message)


def byte_map(run, x_shape, dtype, arguments, arrange):
    """Flat number of the source byte found at every byte of the result, -1 where there is fill."""
    base = 2 if dtype.kind == "b" else 256  # a bool has two values
    numbers = np.arange(1, prod(x_shape) * dtype.itemsize + 1)
    found, weight = 0, 1
    while weight == 1 or weight <= numbers.size:
        plane = (numbers // weight % base).astype(np.uint8)
        result = run(arrange(elements_of(plane, x_shape, dtype)), **arguments)
        found = found + bytes_of(result).astype(np.int64) * weight
        weight *= base
    return found - 1


def oracle_run(oracle):
    """The oracle without the arguments that are none of its business."""
    def run(x, *, num_threads=None, **arguments):
        return oracle(x, **arguments)
    return run


def operator_run(operator, shape, poison, case):
    """The operator into a fresh result, or into poisoned memory of this shape; the contract checked."""
    def fresh(x, **arguments):
        before = bytes_or_items(x)
        result = operator(x, **arguments)
        assert bytes_or_items(x) == before, f"{case}: the source was changed"
        assert type(result) is np.ndarray, f"{case}: a {type(result)} came back"
        assert result.base is None, f"{case}: the result is a view"
        assert result.flags.c_contiguous and result.flags.writeable, f"{case}: {result.flags}"
        assert result.dtype == x.dtype, f"{case}: {x.dtype} became {result.dtype}"
        assert not np.shares_memory(result, x), f"{case}: the result is the source"
        return result

    def into_out(x, **arguments):
        memory, out = poisoned(shape, x.dtype, poison)
        before = bytes_or_items(x)
        result = operator(x, out=out, **arguments)
        assert result is out, f"{case}: another object than `out` came back"
        assert bytes_or_items(x) == before, f"{case}: the source was changed"
        if memory is not None:
            around = np.concatenate([memory[:MARGIN], memory[-MARGIN:]])
            assert (around == poison).all(), f"{case}: written beside `out`"
        return result

    return fresh if poison is None else into_out


def poisoned(shape, dtype, poison):
    """Memory full of `poison` and an `out` in the middle of it; no memory to look at for Python elements."""
    if has_python_elements(dtype):
        return None, np.full(shape, str(poison), dtype)
    memory = np.full(2 * MARGIN + prod(shape) * dtype.itemsize, poison, np.uint8)
    return memory, np.ndarray(shape, dtype, buffer=memory, offset=MARGIN)


def described(poison):
    return "fresh result" if poison is None else f"out= full of {poison:#x}"


def elements_of(raw, shape, dtype):
    """A C-contiguous array of these bytes."""
    return np.ndarray(shape, dtype, buffer=bytearray(raw.tobytes()))


def bytes_of(array):
    """The bytes of every element, along one more axis."""
    return np.frombuffer(bytearray(raw_bytes(array)), np.uint8).reshape(*array.shape, array.dtype.itemsize)


def bytes_or_items(array):
    return array.tolist() if has_python_elements(array.dtype) else raw_bytes(array)


def raw_bytes(array):
    """`tobytes` goes element by element where memory has gaps, a copy does not; but one of records may lack padding."""
    return (array if array.dtype.names else np.ascontiguousarray(array)).tobytes()


def has_python_elements(dtype):
    """True of object and StringDType arrays, whose bytes are references."""
    return dtype.hasobject or dtype.kind == "T"


def sample(shape, dtype, rng):
    """Values for an array of any dtype, as different from one another as the dtype allows."""
    size = prod(shape)
    if dtype.kind == "b":
        values = rng.integers(0, 2, size).astype(bool)
    elif dtype.names and dtype.hasobject:
        values = np.empty(size, dtype)
        for name in dtype.names:
            values[name] = sample((size,), dtype[name], rng)
    elif dtype.kind in "OTU":
        values = np.array([f"{i} is {n}" for i, n in enumerate(rng.integers(0, 10**9, size))] or [""])[:size]
        values = values.astype(dtype)
    elif dtype.kind in "iufc":
        values = rng.integers(-100, 100, size).astype(dtype)
    elif dtype.type is not np.void and dtype.kind not in "SmM":  # ml_dtypes: few bits, no spare NaN
        values = rng.integers(1, 4, size).astype(dtype)
    else:
        values = elements_of(rng.integers(0, 256, size * dtype.itemsize, np.uint8), (size,), dtype)
    return values.reshape(shape)


# --- memory a source may come in; each takes a C-contiguous array and keeps its values and shape


def c_contiguous(x):
    return x


def fortran(x):
    return np.asfortranarray(x)


def rolled(x):
    """The last axis outermost in memory."""
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(x, -1, 0)), 0, -1)


def negative(x):
    """Every step negative."""
    back = (slice(None, None, -1),) * x.ndim
    return np.ascontiguousarray(x[back])[back]


def partly_negative(x):
    """A mirrored picture: one axis runs backwards."""
    back = (slice(None),) * (x.ndim // 2) + (slice(None, None, -1),)
    return np.ascontiguousarray(x[back])[back]


def crop(x):
    """A window of a larger array."""
    larger = np.empty([extent + 3 for extent in x.shape], x.dtype)
    window = larger[tuple(slice(1, 1 + extent) for extent in x.shape)]
    window[...] = x
    return window


def every_second(x):
    """Gaps between all elements."""
    larger = np.empty([2 * extent for extent in x.shape], x.dtype)
    window = larger[(slice(None, None, 2),) * x.ndim]
    window[...] = x
    return window


def broadcast_batch(x):
    return np.broadcast_to(x[:1], x.shape)


def broadcast_last(x):
    return np.broadcast_to(x[..., :1], x.shape)


def broadcast_inner(x):
    """One picture row repeated."""
    row = (slice(None),) * (x.ndim // 2) + (slice(1),)
    return np.broadcast_to(x[row], x.shape)


def misaligned(x):
    memory = np.empty(x.nbytes + 1, np.uint8)
    view = np.ndarray(x.shape, x.dtype, buffer=memory, offset=1)
    view[...] = x
    return view


def read_only(x):
    x = x.copy()
    x.flags.writeable = False
    return x


def big_endian(x):
    """The same bytes called big-endian: the values are others, their places are not."""
    return x.view(x.dtype.newbyteorder(">"))


class Subclass(np.ndarray):
    """An ndarray in all but type."""


def subclass(x):
    return x.view(Subclass)


ARRANGEMENTS = {function.__name__: function for function in (
    fortran, rolled, negative, partly_negative, crop, every_second, broadcast_batch, broadcast_inner,
    broadcast_last, misaligned, read_only, big_endian, subclass)}
ARRANGEMENTS = {"C": c_contiguous, **ARRANGEMENTS}


# --- oracles


def both_oracles(name):
    """The oracle for tiny shapes: the loops, after asserting that `s2dq.reference` says the same."""
    import s2dq.reference

    by_loops, by_reference = getattr(loops, name), getattr(s2dq.reference, name)

    def agreed(x, **arguments):
        first, second = by_loops(x, **arguments), by_reference(x, **arguments)
        np.testing.assert_array_equal(first, second, strict=True, err_msg=(
            f"{name}: loops and reference disagree: shape {x.shape}, dtype {x.dtype}, {arguments}"))
        return first

    return agreed

"""Calls like one before: an operator remembers them, and nobody can tell but by the clock.

Each test makes a good call first, so that it is remembered, and then another that must not be taken for it.
"""

import contextlib
import copy
import functools
import gc
import inspect
import pickle
import pydoc
import sys
import sysconfig
import threading
import tracemalloc
import weakref

import numpy as np
import pytest

import s2dq
from guarded import SANITIZED, run_child
from s2dq import _kernels, operators, reference

pytestmark = pytest.mark.thread_unsafe(reason="looks into what the operators remember, and clears it")
OPERATORS = {
    "space_to_depth": ((2, 4, 6, 3), {"block_size": 2}),
    "depth_to_space": ((2, 3, 2, 12), {"block_size": 2, "crops": [[1, 0], [0, 3]]}),
    "space_to_batch_nd": ((2, 4, 6, 3), {"block_shape": [2, 3], "paddings": [[1, 1], [0, 3]]}),
    "space_to_batch": ((2, 4, 6, 3), {"block_shape": [2, 3], "paddings": [[1, 1], [0, 3]], "pad_value": 4}),
    "batch_to_space_nd": ((12, 2, 2, 3), {"block_shape": [2, 3], "crops": [[1, 1], [0, 3]]}),
    "batch_to_space": ((12, 2, 2, 3), {"block_shape": (2, 3), "crops": ((0, 0), (0, 3))}),
    "pack_vect_c": ((2, 6, 2, 3), {"vect": 8, "pad_value": 5}),
    "unpack_vect_c": ((2, 2, 2, 3, 4), {"channels": 7}),
}
each_operator = pytest.mark.parametrize("name", OPERATORS)
REFERENCES = {"space_to_batch": "space_to_batch_nd", "batch_to_space": "batch_to_space_nd"}


def memo_of(name):
    return getattr(operators, f"_{name}")


def calls_of(name):
    """What the memo of an operator holds: {arguments: (one entry per kind of array, ...)}."""
    return memo_of(name).calls


@pytest.fixture(autouse=True)
def fresh():
    """No test remembers what another one did."""
    for name in OPERATORS:
        memo_of(name).clear()
    operators.program_of.cache_clear()


def source(name, dtype="int8", shape=None):
    shape = shape or OPERATORS[name][0]
    return np.arange(1, 1 + np.prod(shape)).reshape(shape).astype(dtype)


def run(name, x, **more):
    return getattr(s2dq, name)(x, **{**OPERATORS[name][1], **more})


def answer(name, x, **more):
    return getattr(reference, REFERENCES.get(name, name))(x, **{**OPERATORS[name][1], **more})


def outcome(call, *args, **kwargs):
    """What a call gives: its result, or the type and the words of its error."""
    try:
        return call(*args, **kwargs)
    except Exception as error:
        return type(error), str(error)


def same(found, expected, what):
    assert type(found) is type(expected), f"{what}: {found} instead of {expected}"
    if isinstance(expected, tuple):
        assert found == expected, what
    else:
        np.testing.assert_array_equal(found, expected, strict=True, err_msg=str(what))


def remembered(name):
    return sum(map(len, calls_of(name).values()))


def assert_like_a_first_call(name, x, good=None, **more):
    """The call gives, after the good call it resembles, what it gives when nothing is remembered."""
    memo_of(name).clear()
    first = outcome(run, name, x, **more)
    memo_of(name).clear()
    good = source(name) if good is None else good
    for _ in range(2):
        same(run(name, good), answer(name, good), "the good call")
    assert remembered(name) == 1, "the good call was not remembered"
    for _ in range(3):
        same(outcome(run, name, x, **more), first, (name, more))
    for _ in range(2):
        same(run(name, good), answer(name, good), "the good call afterwards")


# ------------------------------------------------------------------------------------------ it does remember


@each_operator
def test_second_call_asks_nobody(name, monkeypatch):
    x = source(name)
    run(name, x)
    monkeypatch.setattr(operators, "program_of", None)  # whoever comes this far fails
    out = np.empty_like(answer(name, x))
    same(run(name, x), answer(name, x), name)
    same(run(name, x, num_threads=2), answer(name, x), name)
    assert run(name, x, out=out) is out
    same(out, answer(name, x), name)
    other = source(name)[::-1].copy()
    same(run(name, other), answer(name, other), name)
    with pytest.raises(TypeError):
        run(name, x.astype("uint8"))
    assert remembered(name) == 1


@each_operator
def test_what_is_given_by_name_alone_is_not_taken_by_place(name):
    x, function = source(name), getattr(s2dq, name)
    given = inspect.signature(function).bind(x, **OPERATORS[name][1])
    given.apply_defaults()
    for _ in range(2):
        same(function(**given.arguments), answer(name, x), name)
        same(run(name, x), answer(name, x), name)
        for more in ([], [None]):
            with pytest.raises(TypeError, match="positional"):
                function(*given.arguments.values(), *more)


def test_calls_in_turn_ask_nobody(monkeypatch):
    """Those on arrays of one shape, of which only the last is found without looking at all that is remembered."""
    x, ways = source("space_to_depth"), [{"mode": mode, "out_format": "NCHW"} for mode in ("DCR", "CRD", "focus")]
    for way in ways:
        run("space_to_depth", x, **way)
    monkeypatch.setattr(operators, "program_of", None)  # whoever comes this far fails
    for way in ways * 2:
        same(run("space_to_depth", x, **way), answer("space_to_depth", x, **way), way)
    assert len(calls_of("space_to_depth")) == 3


def test_eight_arrays_of_a_call_ask_nobody(monkeypatch):
    xs = [source("space_to_depth", shape=(2, 4, 6, k)) for k in range(1, 10)]
    for x in xs:
        s2dq.space_to_depth(x, 2)
    [known] = calls_of("space_to_depth").values()
    assert len(known) == 8
    monkeypatch.setattr(operators, "program_of", None)
    for x in xs[:0:-1]:
        np.testing.assert_array_equal(s2dq.space_to_depth(x, 2), reference.space_to_depth(x, 2))


@each_operator
def test_result_is_a_fresh_base_ndarray(name):
    x = source(name)
    results = [run(name, x) for _ in range(4)]
    for result in results:
        assert type(result) is np.ndarray and result.base is None
        assert result.flags.owndata and result.flags.writeable and result.flags.c_contiguous and result.flags.aligned
        assert result.dtype is x.dtype and result.shape == answer(name, x).shape
    assert len({result.ctypes.data for result in results}) == len(results)
    for number, result in enumerate(results):
        result.fill(number)
    assert [int(result.max()) for result in results] == [0, 1, 2, 3]
    results[0].resize(7, refcheck=False)  # its memory is its own
    same(run(name, x), answer(name, x), name)


@each_operator
def test_lists_and_tuples_are_the_same_call(name):
    def changed(value, kind):
        return kind(changed(entry, kind) for entry in value) if isinstance(value, (list, tuple)) else value

    x = source(name)
    for kind in (list, tuple, list):
        arguments = {key: changed(value, kind) for key, value in OPERATORS[name][1].items()}
        same(getattr(s2dq, name)(x, **arguments), answer(name, x), (name, kind))
    assert remembered(name) == 1


# ------------------------------------------------------------------------------ what skips the function itself


@pytest.fixture
def recall(request):
    """An operator's short cut, with one call remembered, around a function that says that it was entered."""
    name = request.param
    run(name, source(name))
    scope, signature = {}, inspect.signature(getattr(s2dq, name))
    bare = [one.replace(annotation=one.empty) for one in signature.parameters.values()]
    exec(f"def entered{inspect.Signature(bare)}: return 'entered'", scope)
    return name, _kernels.Recall(scope["entered"], memo_of(name))


each_recall = pytest.mark.parametrize("recall", OPERATORS, indirect=True)


def takes_another_argument_first(y, x, out=None, num_threads=None): ...


def takes_too_many(x, a, b, c, d, e, f, g, h, i, j, k, m, n, out=None, num_threads=None, *, last=None): ...


@pytest.mark.parametrize("function", [takes_another_argument_first, takes_too_many])
def test_a_function_of_other_arguments_has_no_short_cut(function):
    with pytest.raises(ValueError, match="cannot recall calls of <function takes_"):
        _kernels.Recall(function, memo_of("space_to_depth"))


@each_recall
def test_call_like_the_last_does_not_enter_the_function(recall):
    name, call = recall
    x, arguments = source(name), OPERATORS[name][1]
    if sysconfig.get_config_var("Py_GIL_DISABLED"):  # others may change what a short cut would look at
        assert call(x, **arguments) == "entered"
        return
    out = np.empty_like(answer(name, x))
    same(call(x, **arguments), answer(name, x), name)
    assert call(x, out=out, num_threads=1, **arguments) is out
    same(out, answer(name, x), name)
    parameters = inspect.signature(getattr(s2dq, name)).parameters.values()
    positional = [one.name for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD][1:]
    given = [arguments.get(one.name, one.default) for one in parameters if one.name in positional]
    rest = {key: value for key, value in arguments.items() if key not in positional}
    same(call(x, *given, **rest), answer(name, x), (name, "by position"))


@each_recall
def test_any_other_call_enters_the_function(recall):
    name, call = recall
    x, arguments = source(name), OPERATORS[name][1]
    others = [
        (x[:1], {}), (x.tolist(), {}), (x.astype("uint8"), {}), (x[::-1], {}), (x.reshape(1, *x.shape), {}),
        (x, {"num_threads": True}), (x, {"num_threads": 0}), (x, {"out": x}), (x, {"out": []}),
    ]  # fmt: skip
    for key, value in arguments.items():
        others += [(x, {key: 1.5}), (x, {key: None}), (x, {key: [[7, 7], [7, 7]]}), (x, {key: np.array(value)})]
    for array, more in others:
        assert call(array, **{**arguments, **more}) == "entered", more
    run_time_name = "".join(["num_", "threads"])  # not interned
    assert call(x, **arguments, **{run_time_name: 1}) == "entered" or sys.intern(run_time_name) is run_time_name
    with pytest.raises(TypeError, match="nonsense"):
        call(x, **arguments, nonsense=1)
    with pytest.raises(TypeError, match="x"):
        call(x, **arguments, x=x)
    with pytest.raises(TypeError, match="positional"):
        call(x, *[1] * 20)
    for nothing in ({}, arguments):
        with pytest.raises(TypeError, match="missing"):
            call(**nothing)


@each_operator
def test_operator_is_a_function_to_all_who_look(name):
    operator = getattr(s2dq, name)
    assert inspect.isroutine(operator) and callable(operator)
    assert (operator.__name__, operator.__qualname__, operator.__module__) == (name, name, "s2dq.operators")
    assert operator.__doc__.count("Parameters") == 1
    assert list(inspect.signature(operator).parameters)[0] == "x" and inspect.unwrap(operator) is not operator
    assert pickle.loads(pickle.dumps(operator)) is copy.deepcopy(operator) is operator
    assert weakref.ref(operator)() is operator and name in repr(operator)
    assert name in pydoc.render_doc(operator) and "NNAPI" in pydoc.render_doc(s2dq.space_to_depth)
    x = source(name)

    with pytest.raises(TypeError, match="base type"):
        type("Derived", (type(operator),), {})  # one with a __call__ of its own would be passed by

    class Owner:
        method = operator

    assert Owner.method is operator
    with pytest.raises(TypeError):
        Owner().method(x, **OPERATORS[name][1])  # the owner is no array
    expected = answer(name, x)
    same(functools.partial(operator, x, **OPERATORS[name][1])(), expected, "partial")
    same(type(operator).__call__(operator, x, **OPERATORS[name][1]), expected, "through the type")
    same(operator(*[x], **OPERATORS[name][1]), expected, "unpacked")


# --------------------------------------------------------------------------- equal arguments that mean another


class Integer(int):
    """An int in all but type."""


class Text(str):
    """A str in all but type, and equal to anything."""

    __hash__ = str.__hash__

    def __eq__(self, other):
        return True


class Index:
    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value

    def __eq__(self, other):
        return other == self.value

    def __hash__(self):
        return hash(self.value)


LIKE_ONE = [True, 1.0, np.int64(1), np.int8(1), np.bool_(True), np.float32(1), 1 + 0j, "1", Integer(1), Index(1), None,
            np.array(1), np.array(True), [1], (1,), [[1]], [True, True], (1, True), [1.0, 1], [Integer(1), 1],
            np.array([1, 1]), np.array([1.0, 1.0]), [np.True_, 1], {1, 2}, {1: 1}, b"1", range(1, 2), range(1, 3)]


@pytest.mark.parametrize("value", LIKE_ONE, ids=repr)
@pytest.mark.parametrize("name", ["space_to_depth", "depth_to_space"])
def test_block_size_like_one(name, value):
    x = source(name, shape=(1, 2, 2, 4))
    for good in (1, [1, 1], (1, 1)):
        memo_of(name).clear()
        first = outcome(getattr(s2dq, name), x, value)
        memo_of(name).clear()
        for _ in range(2):
            getattr(s2dq, name)(x, good)
        for _ in range(2):
            same(outcome(getattr(s2dq, name), x, value), first, (good, value))


@pytest.mark.parametrize("value", LIKE_ONE, ids=repr)
@pytest.mark.parametrize(("name", "argument", "good"), [
    ("space_to_depth", "vect", 1), ("pack_vect_c", "vect", 1), ("pack_vect_c", "pad_value", 1),
    ("space_to_depth", "pad_value", 1), ("space_to_batch_nd", "pad_value", 1), ("unpack_vect_c", "channels", 1),
])  # fmt: skip
def test_integer_argument_like_one(name, argument, good, value):
    shapes = {"unpack_vect_c": (1, 1, 2, 3, 4)}
    x = source(name, shape=shapes.get(name))
    more = {} if name == "unpack_vect_c" else {"paddings": [[2, 0], [0, 0]]} if "space" in name else {}
    more |= {"block_shape": [2, 1]} if name == "space_to_batch_nd" else {}
    more |= {"out_format": "NCHW_VECT_C"} if name == "space_to_depth" else {}
    first = outcome(run, name, x, **more, **{argument: value})
    memo_of(name).clear()
    for _ in range(2):
        run(name, x, **more, **{argument: good})
    assert remembered(name) == 1
    for _ in range(2):
        same(outcome(run, name, x, **more, **{argument: value}), first, (argument, value))


@pytest.mark.parametrize("pairs", [
    [[True, 0], [0, 0]], [[1, False], [0, 0]], [[1.0, 0], [0, 0]], [[1, 0], [0.0, 0]], [[1, 0], (0, False)],
    [[1, "0"], [0, 0]], [[1, 0], [0, 0], [0, 0]], [[1, 0], [0]], [1, 0, 0, 0], [[[1, 0]], [[0, 0]]], [[1, 0], None],
    [[np.int64(1), 0], [0, 0]], [[Integer(1), 0], [0, 0]], [[Index(1), 0], [0, 0]], np.array([[1, 0], [0, 0]]),
    np.array([[1.0, 0], [0, 0]]), np.array([[True, False], [False, False]]), [{1, 0}, {0}], [[-1, 0], [0, 0]],
], ids=repr)  # fmt: skip
def test_paddings_like_others(pairs):
    x = source("space_to_depth", shape=(1, 3, 4, 2))
    good = [[1, 0], [0, 0]]
    first = outcome(s2dq.space_to_depth, x, 2, paddings=pairs)
    memo_of("space_to_depth").clear()
    for _ in range(2):
        s2dq.space_to_depth(x, 2, paddings=good)
    assert remembered("space_to_depth") == 1
    for _ in range(2):
        same(outcome(s2dq.space_to_depth, x, 2, paddings=pairs), first, pairs)


@pytest.mark.parametrize("first", [0.0, -0.0])
def test_zeros_of_both_signs(first):
    x = np.ones((1, 1, 2, 1), np.float32)
    for value in (first, -first, first, 0, -first):
        result = s2dq.space_to_depth(x, 2, paddings=[[1, 0], [0, 0]], pad_value=value)
        signs = np.signbit(result[0, 0, 0, :2])
        assert (signs == np.signbit(np.float32(value))).all(), f"{value} came out as {result}"


NUMBERS = [1, 1.0, np.float32(1), np.float64(1), np.float16(1), np.int8(1), np.uint8(1), np.int64(1), 0, 0.0, -0.0,
           np.float32(-0.0), np.int16(0), 0.5, np.float32(0.5), float("nan"), np.float32("nan"), float("inf"), 2**100]


@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "c8"])
def test_numbers_are_remembered_and_told_apart_by_type_and_bytes(dtype):
    x = np.ones((1, 1, 2, 1), dtype)
    arguments = {"block_size": 2, "paddings": [[1, 0], [0, 0]]}
    firsts = []
    for value in NUMBERS:
        memo_of("space_to_depth").clear()
        firsts.append(outcome(s2dq.space_to_depth, x, **arguments, pad_value=value))
    memo_of("space_to_depth").clear()
    for step in (1, 5, -1, 7, 1):
        for k in range(len(NUMBERS)):
            k = k * step % len(NUMBERS)
            same(outcome(s2dq.space_to_depth, x, **arguments, pad_value=NUMBERS[k]), firsts[k], (dtype, NUMBERS[k]))
    assert remembered("space_to_depth") == sum(isinstance(first, np.ndarray) for first in firsts)


TWOS = [2, 2.0, np.float32(2), np.int16(2), True, "2", Integer(2), 2 + 0j, np.array(2), float("nan")]


@pytest.mark.parametrize("value", TWOS, ids=repr)
def test_pad_values_of_several_kinds(value):
    for dtype in ("f4", "i1", "c8"):
        x = np.ones((1, 1, 2, 1), dtype)
        arguments = {"block_size": 2, "paddings": [[1, 0], [0, 0]]}
        memo_of("space_to_depth").clear()
        first = outcome(s2dq.space_to_depth, x, **arguments, pad_value=value)
        memo_of("space_to_depth").clear()
        for _ in range(2):
            s2dq.space_to_depth(x, **arguments, pad_value=2)
        for _ in range(2):
            same(outcome(s2dq.space_to_depth, x, **arguments, pad_value=value), first, (dtype, value))


NAMES = [Text("NHWC"), Text("NCHW"), Text("?"), b"NHWC", np.str_("NHWC"), "nhwc", "NHWC ", None, 0,
         ["N", "H", "W", "C"], ["NHWC"]]


@pytest.mark.parametrize("value", NAMES, ids=repr)
@pytest.mark.parametrize("argument", ["data_format", "out_format", "mode"])
def test_names_like_others(argument, value):
    x = source("space_to_depth", shape=(1, 4, 4, 4))
    good = "DCR" if argument == "mode" else "NHWC"
    value = Text(str(value).replace("NHWC", "DCR")) if argument == "mode" and isinstance(value, Text) else value
    first = outcome(s2dq.space_to_depth, x, 2, **{argument: value})
    memo_of("space_to_depth").clear()
    for _ in range(2):
        s2dq.space_to_depth(x, 2, **{argument: good})
    for _ in range(2):
        same(outcome(s2dq.space_to_depth, x, 2, **{argument: value}), first, (argument, value))


COUNTS = [0, -1, True, False, 1.0, "1", 2**31, 2**64, -2**64, [1], np.int64(1), np.bool_(1), Integer(1), Index(1),
          Index(0)]


@each_operator
@pytest.mark.parametrize("value", COUNTS, ids=repr)
def test_num_threads_is_checked_every_time(name, value):
    assert_like_a_first_call(name, source(name), num_threads=value)


# ------------------------------------------------------------------ arguments that change under the operator


class Meddler:
    """One thread, and a change to somebody's arguments while they are being read."""

    def __init__(self, change):
        self.change = change

    def __index__(self):
        self.change()
        return 1


def test_arguments_that_change_during_the_call_are_not_remembered_as_they_were():
    """What is remembered is what was checked: a list may change between one look at it and the next."""
    x = source("space_to_depth", "uint8", (1, 4, 4, 4))
    pairs = [[0, 0], [0, 0]]

    def change():
        pairs[0][0] = 2

    outcome(s2dq.space_to_depth, x, 2, paddings=pairs, num_threads=Meddler(change))
    assert pairs == [[2, 0], [0, 0]]
    for given in ([[0, 0], [0, 0]], [[2, 0], [0, 0]]):
        expected = reference.space_to_depth(x, 2, paddings=given)
        for _ in range(2):
            same(s2dq.space_to_depth(x, 2, paddings=given), expected, given)


def test_array_that_changes_during_the_call_is_remembered_as_it_was_moved():
    x = source("space_to_depth", "uint8", (1, 4, 4, 4))

    def change():
        x.shape = (1, 2, 8, 4)

    outcome(s2dq.space_to_depth, x, 2, num_threads=Meddler(change))
    for shape in ((1, 4, 4, 4), (1, 2, 8, 4)):
        x.shape = shape
        same(s2dq.space_to_depth(x, 2), reference.space_to_depth(x, 2), shape)


def test_paddings_changed_by_another_thread():
    """Every result is that of one of the two states of the list, and neither is remembered as the other."""
    x = source("space_to_depth", "uint8", (1, 4, 4, 4))
    states = [[0, 0], [2, 0], [0, 2], [2, 2]]
    answers = {reference.space_to_depth(x, 2, paddings=[state, [0, 0]]).shape: state for state in states}
    pairs, stop = [[0, 0], [0, 0]], threading.Event()

    def meddle():
        while not stop.is_set():
            pairs[0][0] ^= 2

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread = threading.Thread(target=meddle)
    thread.start()
    try:
        for _ in range(400):
            memo_of("space_to_depth").clear()
            assert s2dq.space_to_depth(x, 2, paddings=pairs).shape in answers
            for state in ([0, 0], [2, 0]):
                result = s2dq.space_to_depth(x, 2, paddings=[state, [0, 0]])
                same(result, reference.space_to_depth(x, 2, paddings=[state, [0, 0]]), state)
    finally:
        stop.set()
        thread.join()
        sys.setswitchinterval(interval)


@each_operator
def test_source_with_another_shape_every_time(name):
    """One array, given another shape, other strides and other memory between the calls."""
    x = source(name)
    other = (x.shape[0] * 2, *x.shape[1:])
    memory = np.arange(3 * np.prod(other)).astype("int8")
    for _ in range(3):
        for view in (x, np.resize(x, other), memory[:x.size].reshape(x.shape), memory[1 : 1 + x.size].reshape(x.shape),
                     memory[: 2 * x.size : 2].reshape(x.shape), memory[x.size - 1 :: -1].reshape(x.shape)):
            same(run(name, view), answer(name, view), (name, view.strides))
    flat = source(name).reshape(-1)
    for shape in (x.shape, other):
        flat = np.resize(flat, np.prod(shape))
        flat.shape = shape
        same(run(name, flat), answer(name, flat), shape)
    x.resize((x.shape[0] // 2, *x.shape[1:]), refcheck=False)
    same(outcome(run, name, x), outcome(getattr(s2dq, name), x.copy(), **OPERATORS[name][1]), "resized")


# ------------------------------------------------------------------------------------------- other arrays


@each_operator
def test_other_arrays_after_a_good_one(name, rng):
    good = source(name)
    larger = np.zeros((*good.shape, 3), "int8")
    larger[..., 1] = good
    wide = rng.integers(0, 100, good.shape).astype(">i2")
    arrays = [
        good.astype("uint8"), good.astype(bool), good.astype("i2"), good.astype(">i2"), wide, wide.astype("<i2"),
        good.astype("f8"), np.asfortranarray(good), larger[..., 1], good[::-1], good[..., ::-1],
        np.broadcast_to(good[:1], good.shape),
        good[:1], good[..., :1], good[0], good[None], np.zeros((0, *good.shape[1:]), "int8"), good.astype("S3"),
        good.astype("M8[s]"), good.astype(object), good.view([("a", "i1")]), good.astype(np.longlong),
    ]  # fmt: skip
    for x in arrays:
        more = {} if x.dtype.kind in "biuf" else {"pad_value": 0 if name == "pack_vect_c" else None}
        more = more if "pad_value" in OPERATORS[name][1] else {}
        assert_like_a_first_call(name, x, **more)
    unwritable = good.copy()
    unwritable.flags.writeable = False
    assert_like_a_first_call(name, unwritable)


@each_operator
def test_things_that_are_no_ndarray_after_a_good_one(name):
    good = source(name)

    class Sub(np.ndarray):
        def __array_finalize__(self, other):
            if other is not None and type(other) is not Sub:
                self.tag = 1

    shaped = memoryview(bytearray(good.tobytes())).cast("b", good.shape)
    masked = np.ma.array(good, mask=good > 3)
    for x in (good.tolist(), shaped, masked, good.view(np.recarray), None, 3, "x"):
        assert_like_a_first_call(name, x)
    sub = good.view(Sub)
    for _ in range(3):
        run(name, good)
        result = run(name, sub)
        assert type(result) is np.ndarray and result.base is None
        same(result, answer(name, good), "subclass")


@each_operator
def test_unfit_out_after_a_good_call(name):
    """Another dtype, byte order, shape, order; read-only, overlapping, self-overlapping, or no array at all."""
    x = source(name)
    shape = answer(name, x).shape
    empty = np.full(shape, 7, "int8")
    locked = empty.copy()
    locked.flags.writeable = False
    repeated = np.lib.stride_tricks.as_strided(empty, shape, (0, *empty.strides[1:]), writeable=True)
    unfit = [
        empty.view("uint8"), empty.view(bool), empty.astype("i2"), empty.view([("a", "i1")]), empty.reshape(-1),
        empty.reshape(*shape, 1), np.full((shape[0] + 1, *shape[1:]), 7, "int8"), np.asfortranarray(empty),
        empty[..., ::-1], np.zeros((*shape, 2), "int8")[..., 0], locked, repeated, empty.tolist(), [empty], (empty,),
        bytearray(empty.nbytes), "out", False, 0, np.int8(1), np.ma.array(empty, mask=False), memoryview(empty),
    ]  # fmt: skip
    for out in unfit:
        assert_like_a_first_call(name, x, out=out)
    assert (empty == 7).all() and (locked == 7).all(), "a refused out was written to"
    buffer = np.zeros(x.size + 2 * empty.size, "int8")
    inside = buffer[empty.size : empty.size + x.size].reshape(x.shape)
    for start in (1, empty.size - 1, empty.size, empty.size + x.size - 1):
        inside[...] = x
        before = buffer.tobytes()
        assert_like_a_first_call(name, inside, out=buffer[start : start + empty.size].reshape(shape))
        with pytest.raises(ValueError, match="overlap"):
            run(name, inside, out=buffer[start : start + empty.size].reshape(shape))
        assert buffer.tobytes() == before
    for start in (0, empty.size + x.size):
        out = buffer[start : start + empty.size].reshape(shape)
        assert run(name, inside, out=out) is out
        same(out, answer(name, x), "next to the source")


@pytest.mark.parametrize("steps", [(1, 1, 1), (-1, 1, 1), (1, -1, 1), (-1, -1, -1), (2, -1, 1), (-2, 1, -2)])
def test_out_before_upon_and_behind_a_source(steps):
    """Of any strides: refused the second time where it is the first time, and nowhere else."""
    memory = np.zeros(600, np.int8)
    rows, columns, channels = [extent * abs(step) for extent, step in zip((4, 6, 3), steps)]
    whole = memory[150 : 150 + rows * columns * channels].reshape(1, rows, columns, channels)
    x = whole[:, :: steps[0], :: steps[1], :: steps[2]]
    outs = [memory[k : k + x.size].reshape(1, 2, 3, 12) for k in range(memory.size - x.size)]
    first = []
    for out in outs:
        memo_of("space_to_depth").clear()
        first.append(outcome(s2dq.space_to_depth, x, 2, out=out))
    s2dq.space_to_depth(x, 2)
    again = [outcome(s2dq.space_to_depth, x, 2, out=out) for out in outs]
    assert any(isinstance(one, tuple) for one in first) and any(one is out for one, out in zip(first, outs))
    for one, other, out in zip(first, again, outs):
        assert one is other is out or one == other


@each_operator
def test_fit_out_that_is_not_plain(name):
    """Subclasses, memory of others, odd addresses, meaningless steps: accepted the second time as the first."""
    x = source(name)
    expected = answer(name, x)
    memory = np.zeros(expected.size + 1, "int8")

    class Sub(np.ndarray):
        pass

    for _ in range(3):
        for out in (np.empty_like(expected), memory[1:].reshape(expected.shape), np.empty_like(expected).view(Sub),
                    np.empty((3, *expected.shape), "int8")[1]):
            assert run(name, x, out=out) is out
            same(np.asarray(out), expected, name)


def test_out_in_a_gap_of_the_source():
    buffer = np.zeros((4, 400), np.int8)
    x, out = buffer[None, :, :36, None], buffer[1, 100:244].reshape(1, 2, 18, 4)
    x[...] = np.arange(144, dtype=np.uint8).view(np.int8).reshape(x.shape)
    for _ in range(3):
        s2dq.space_to_depth(x, 2)
        assert s2dq.space_to_depth(x, 2, out=out) is out
        same(out, reference.space_to_depth(x, 2), "in a gap")


def test_empty_results_and_sources():
    for _ in range(3):
        for shape in ((0, 4, 6, 3), (2, 0, 6, 3), (2, 4, 6, 0)):
            x = np.zeros(shape, np.int8)
            out = np.empty((shape[0], shape[1] // 2, 3, 4 * shape[3]), np.int8)
            assert s2dq.space_to_depth(x, 2, out=out) is out
            same(s2dq.space_to_depth(x, 2), out, shape)
        padded = s2dq.space_to_depth(np.zeros((1, 0, 4, 2), np.int8), 2, paddings=[[2, 0], [0, 0]], pad_value=3)
        same(padded, np.full((1, 1, 2, 8), 3, np.int8), "all padding")


def test_element_types_that_hold_references_are_not_remembered():
    x = np.array([[[["a"], ["b"]], [["c"], ["d"]]]], object)
    text = x.astype(np.dtypes.StringDType())
    for array in (x, text):
        for _ in range(3):
            same(s2dq.space_to_depth(array, 2), reference.space_to_depth(array, 2), array.dtype)
    assert remembered("space_to_depth") == 0


# -------------------------------------------------------------------------------------------- bounds and leaks


def test_memo_is_bounded():
    x = source("space_to_depth", shape=(1, 4, 4, 2))
    for value in range(1, 700):
        s2dq.space_to_depth(x, 2, vect=value)
        assert len(calls_of("space_to_depth")) <= 64
    assert len(calls_of("space_to_depth")) > 32
    for width in range(1, 60):
        s2dq.space_to_depth(np.zeros((1, 2, 2, width), np.int8), 2)
        assert len(calls_of("space_to_depth")[2, "NHWC", "DCR", None, 4, None, None, None]) <= 8
    assert len(calls_of("space_to_depth")[2, "NHWC", "DCR", None, 4, None, None, None]) == 8
    assert operators.program_of.cache_info().maxsize == 1024
    assert operators.program_of.cache_info().currsize <= 1024


def test_calls_with_many_axes_work_and_are_not_remembered():
    x = source("space_to_batch_nd", "int8", (2,) * 17)
    expected = reference.space_to_batch_nd(x, [2], [[0, 0]])
    for _ in range(2):
        same(s2dq.space_to_batch_nd(x, [2], [[0, 0]]), expected, "17 axes")
    assert remembered("space_to_batch_nd") == 0
    for _ in range(2):
        same(s2dq.space_to_batch_nd(x[0], [2], [[0, 0]]), reference.space_to_batch_nd(x[0], [2], [[0, 0]]), "16 axes")
    assert remembered("space_to_batch_nd") == 1


@each_operator
def test_references_and_memory_stay_as_they_are(name):
    x = source(name, np.dtype("int16") if name != "unpack_vect_c" else "int8")
    arguments = OPERATORS[name][1]
    out = run(name, x)
    texts = [value for value in arguments.values() if isinstance(value, (list, tuple))]
    watched = [x, out, x.dtype, arguments, *texts, *(entry for value in texts for entry in value)]
    watched = [thing for thing in watched if not isinstance(thing, int)]

    def calls(count):
        for _ in range(count):
            run(name, x)
            run(name, x, out=out)

    def refused(count):
        for _ in range(count):
            outcome(run, name, x, out=x)

    calls(10), refused(10)
    gc.collect()
    before = [sys.getrefcount(thing) for thing in watched]
    blocks = sys.getallocatedblocks()
    calls(5000), refused(500)
    gc.collect()
    assert [sys.getrefcount(thing) for thing in watched] == before, name
    assert sys.getallocatedblocks() - blocks < 500
    tracemalloc.start()
    try:
        calls(500)
        first, _ = tracemalloc.get_traced_memory()
        calls(2000)
        last, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert last - first < 2000, f"{last - first} bytes"


def test_structured_dtype_of_its_own_does_not_pile_up():
    """A dtype that is equal and another object every time: right, forgotten in turn, and let go."""
    kinds = [np.dtype([("a", "i1"), ("b", "<i2")]) for _ in range(40)]
    before = [sys.getrefcount(kind) for kind in kinds]
    for kind in kinds:
        x = np.arange(48, dtype=np.uint8).view(kind).reshape(1, 2, 4, 2)
        same(s2dq.space_to_depth(x, 2), reference.space_to_depth(x, 2), kind)
        assert s2dq.space_to_depth(x, 2).dtype is x.dtype
    assert remembered("space_to_depth") <= 8
    memo_of("space_to_depth").clear()
    del x, kind
    gc.collect()
    assert [sys.getrefcount(kind) for kind in kinds] == before


def test_from_many_threads_at_once():
    """Results of one thread are never those of another, whatever is forgotten in between."""
    errors = []

    def work(number):
        rng = np.random.default_rng(number)
        x = rng.integers(0, 256, (1, 4, 4, 1 + number % 20), np.uint8)
        expected = reference.space_to_depth(x, 2)
        out = np.empty_like(expected)
        try:
            for turn in range(300):
                same(s2dq.space_to_depth(x, 2), expected, number)
                same(s2dq.space_to_depth(x, 2, out=out), expected, number)
                s2dq.space_to_depth(x, 2, vect=1 + (turn + 7 * number) % 400)
                if turn % 100 == number:
                    memo_of("space_to_depth").clear()
        except BaseException as error:
            errors.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    threads = [threading.Thread(target=work, args=(number,)) for number in range(24)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not errors, errors[0]


def ask_for_too_much(name):
    """The same call, first with a result that fits and then in a process that has no memory left."""
    import resource

    import numpy as np

    import s2dq
    from guarded import address_space

    x = np.broadcast_to(np.int8(3), (1 << 13, 1 << 13, 1, 4))
    assert x.strides == (0, 0, 0, 0)
    arguments = {"pack_vect_c": (x, "NHWC"), "space_to_depth": (x, 1)}[name]
    for _ in range(2):
        assert (getattr(s2dq, name)(*arguments)[::997] == 3).all()
    for _ in range(3):  # a freed result may be kept for the next one: now that is a smaller one
        getattr(s2dq, name)(x[:1400], *arguments[1:])
    used = address_space()
    resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20), used + (64 << 20)))
    for _ in range(3):
        try:
            getattr(s2dq, name)(*arguments)
        except MemoryError as error:
            print(name in str(error))
    print(getattr(s2dq, name)(x[:1, :2], *arguments[1:]).size)


@pytest.mark.skipif(sys.platform != "linux", reason="needs RLIMIT_AS and /proc")
@pytest.mark.parametrize("name", ["space_to_depth", "pack_vect_c"])
def test_no_memory_for_a_result_that_fitted_before(name):
    """The second call says what the first would: a MemoryError that names the operator."""
    assert run_child(ask_for_too_much, name).split() == ["True"] * 3 + ["8"]


# 36 MB: from 32 MiB on, the memory of a freed result may be used again. 900 KB: from 256 KiB on, lines are made use of.
LARGE = (1, 2400, 2500, 6)
SIZES = pytest.mark.parametrize("shape", [(1, 300, 500, 6), LARGE], ids=["from a line on", "kept"])


@SIZES
def test_large_results_are_never_shared(rng, shape):
    """However memory is kept: what is alive is nobody else's, and holds what it should."""
    x = rng.integers(0, 256, shape, np.uint8)
    expected = reference.space_to_depth(x, 2)
    alive = [s2dq.space_to_depth(x, 2) for _ in range(4)]
    addresses = [result.ctypes.data for result in alive]
    if sys.platform == "linux":
        assert not any(address % 64 for address in addresses[1:]), "those after the first begin at a line"
    assert all(abs(a - b) >= expected.nbytes for k, a in enumerate(addresses) for b in addresses[:k])
    for number, result in enumerate(alive[:3]):
        same(result, expected, number)
        result.fill(number)
    del alive[1]
    again = s2dq.space_to_depth(x, 2)
    other = s2dq.space_to_depth(x[:, :-4], 2)  # of another size
    assert (alive[0] == 0).all() and (alive[1] == 2).all()
    same(alive[2], expected, "alive all the time")
    same(again, expected, "in memory of a freed result")
    same(other, reference.space_to_depth(x[:, :-4], 2), "of another size")
    for result in (again, other):
        assert type(result) is np.ndarray and result.base is None and result.flags.owndata and result.flags.writeable


@SIZES
def test_numpy_goes_on_with_memory_of_its_own(shape):
    """Results of s2dq may lie in other memory; what NumPy makes for others does not."""
    name_of = np._core.multiarray.get_handler_name
    x = np.zeros(shape, np.uint8)
    for out in (None, None, np.empty(3)):  # the last one does not fit, which is found out later
        before = name_of()
        with contextlib.suppress(ValueError, TypeError):
            s2dq.space_to_depth(x, 2, out=out)
        assert name_of() == before == name_of(np.empty(1 << 22, np.uint8))


@SIZES
def test_large_results_can_be_resized_and_copied(rng, shape):
    x = rng.integers(0, 256, shape, np.uint8)
    expected = reference.space_to_depth(x, 2)
    for size in (10, expected.size // 3, expected.size + 1, 2 * expected.size):
        for _ in range(2):
            result = s2dq.space_to_depth(x, 2)
        result.resize(size, refcheck=False)
        common = min(size, expected.size)
        same(result[:common], expected.reshape(-1)[:common], size)
        if size > common:
            assert (result[common:] == 0).all()
            result[common:] = 1
    for _ in range(2):
        same(s2dq.space_to_depth(x, 2).copy(), expected, "a copy")
    assert np.zeros(100).sum() == 0  # arrays of others are theirs


@SIZES
def test_large_results_of_many_threads(rng, shape):
    x = rng.integers(0, 256, shape, np.uint8)
    expected = reference.space_to_depth(x, 2)
    s2dq.space_to_depth(x, 2)
    wrong = []

    def work():
        kept = s2dq.space_to_depth(x, 2, num_threads=1)
        for _ in range(6):
            result = s2dq.space_to_depth(x, 2, num_threads=1)
            wrong.append(not np.array_equal(kept, expected) or not np.array_equal(result, expected))
            result.fill(7)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == [False] * 24


def hold_large_results(shape, count):
    """Print how many results more than before `count` calls are mapped, at most; each result is dropped at once."""
    import numpy as np

    import s2dq
    from guarded import address_space

    x = np.ones(shape, np.uint8)
    s2dq.space_to_depth(x, 2, num_threads=2)  # threads map memory of their own when they start
    before = address_space()
    most = []
    for _ in range(count):
        s2dq.space_to_depth(x, 2)
        most.append((address_space() - before) / x.nbytes)
    print(max(most))


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.skipif(SANITIZED, reason="a sanitizer holds back memory that was freed")
def test_no_more_than_one_freed_result_is_kept():
    assert float(run_child(hold_large_results, LARGE, 20)) < 1.5


@pytest.mark.parametrize("extent", [1 << 15, 1 << 20])
def test_huge_broadcast_source_is_a_memory_error_every_time(extent):
    small = np.broadcast_to(np.int8(1), (1, 4, 4, 4))
    huge = np.broadcast_to(np.int8(1), (1 << 10, extent, extent, 4))
    s2dq.space_to_depth(small, 2)
    for _ in range(3):
        with pytest.raises(MemoryError, match="space_to_depth"):
            s2dq.space_to_depth(huge, 2)
    same(s2dq.space_to_depth(small, 2), np.ones((1, 2, 2, 16), np.int8), "after it")


@pytest.mark.skipif(sys.platform != "linux", reason="counts what Linux counts")
@pytest.mark.skipif(SANITIZED, reason="a sanitizer holds back memory that was freed")
def test_memory_of_a_freed_result_is_there_for_the_next():
    """It takes no page fault for each of its pages, small or huge, a second time."""
    import resource

    x = np.ones((1, 4096, 4096, 4), np.uint8)
    faults = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        s2dq.space_to_depth(x, 2)
        faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
    assert faults[2] < 16, faults


def test_teams_of_calls_in_turn():
    """On one array, of which only the last is found without looking at all that is remembered."""
    x = np.zeros((1, 1024, 1024, 4), np.uint8)
    most = min(2, _kernels.get_team_limit())
    default = set()
    for _ in range(8):
        s2dq.space_to_depth(x, 2, mode="DCR", num_threads=2)
        assert _kernels.last_team_size() == most
        s2dq.space_to_depth(x, 2, mode="CRD")  # on a team, unless that one is asleep again
        default.add(_kernels.last_team_size())
        s2dq.space_to_depth(x, 2, mode="focus", num_threads=1)
        assert _kernels.last_team_size() == 1
    assert default <= {1, _kernels.get_team_limit()}
    assert SANITIZED or _kernels.get_team_limit() in default  # calls so slow that the team sleeps before the next


def test_team_of_a_remembered_call_is_the_one_asked_for():
    x = np.zeros((1, 1024, 1024, 3), np.uint8)
    s2dq.space_to_depth(x, 2, num_threads=1)
    teams = []
    for count in (1, 2, 1):
        s2dq.space_to_depth(x, 2, num_threads=count)
        teams.append(_kernels.last_team_size())
    most = min(2, _kernels.get_team_limit())
    assert teams == [1, most, 1]

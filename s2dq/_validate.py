"""The door: a user's value becomes a canonical value, or one good exception.

Every user-facing error of the operators is raised here. `TypeError` is the wrong kind of object or dtype,
`ValueError` the right kind with an impossible value or shape. A message names the operator, the argument, its value,
the rule, and what else the caller passed. Each argument is read once; all shape arithmetic is done in Python
integers, which cannot wrap; what leaves this module fits in 63 bits.
"""

import operator
import reprlib
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache, wraps
from itertools import islice
from math import copysign, inf, isfinite, isnan, nextafter, prod
from numbers import Complex, Number, Rational, Real
from typing import Any, Generic, NamedTuple, NoReturn, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from s2dq._layout import (
    LAYOUTS,
    MODES,
    BatchProblem,
    DepthProblem,
    Layout,
    spatial_word,
    tensor_shape,
    words,
)

MAX_BYTES = 2**63 - 1
MAX_DIMENSIONS = 64  # of an ndarray
MAX_ENTRIES = 2**16  # that are read before it is known how many there have to be
_HUGE = 2**4096

_DLPACK_CPU = 1

Margins: TypeAlias = Sequence[tuple[int, int]]  # before and after each axis
Check = TypeVar("Check", bound=Callable[..., Any])
Problem = TypeVar("Problem", bound=DepthProblem | BatchProblem)

_NO_NUMBERS = (bool, np.bool_, np.timedelta64)  # though some of them call themselves so
_NAME = type.__dict__["__name__"]  # of a class, whatever its own class says when it is asked
UNMADE = object()  # as `out`: a call that is checked and not made, whose result may be larger than the memory


class _Short(reprlib.Repr):
    """Shortens bytes as `reprlib` shortens strings: before their repr is made."""

    def repr_bytes(self, x: bytes, level: int) -> str:
        return repr(x) if len(x) <= self.maxother else f"{x[: self.maxother // 2]!r}...({len(x)} bytes)"

    repr_bytearray = cast(Any, repr_bytes)

    def repr_int(self, x: int, level: int) -> str:
        try:
            repr(x)
        except ValueError:  # too long to print; Python 3.14 says so with an address
            return f"<{type(x).__name__}>"
        return super().repr_int(x, level)


_short = _Short()
_short.maxother, _short.maxstring, _short.maxlist, _short.maxtuple, _short.maxlevel = 80, 60, 8, 8, 4
_SUMMARIZED = 1000  # elements from which NumPy shows the ends of an array, unless it was told otherwise
_LONGEST = 400  # characters of a value in a message: lists of lists have no end in sight


def show(value: Any) -> str:
    """A short one-line repr that cannot fail."""
    try:
        if np.get_printoptions()["threshold"] > _SUMMARIZED:
            with np.printoptions(threshold=_SUMMARIZED):  # whole arrays take minutes, and are cut then
                text = _short.repr(value)
        else:
            text = _short.repr(value)
        text = " ".join(text.split())
    except Exception:  # a repr of the caller's own
        return f"<{type(value).__name__}>"
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST // 2]}...{text[-_LONGEST // 2 :]}"
    return one_line(text)


def _steps(array: np.ndarray) -> tuple[int, ...]:
    """Bytes from an index to the next one; along an axis of one, where arrays say anything, as if it were dense."""
    steps: list[int] = []
    dense = array.dtype.itemsize
    for extent, step in zip(reversed(array.shape), reversed(array.strides)):
        steps.append(step if extent > 1 else dense)
        dense = extent * steps[-1]
    return tuple(reversed(steps))


def _is_same(one: np.dtype, other: np.dtype) -> bool:
    """Whether two dtypes are equal, by no method of the caller's: names and titles of fields may have some."""
    if one is other:
        return True
    if one.subdtype and other.subdtype:
        return one.subdtype[1] == other.subdtype[1] and _is_same(one.subdtype[0], other.subdtype[0])
    if one.names is None or other.names is None:
        return one == other
    # A title has an entry of its own, and differs at that of its field before the numbers of entries do.
    fields = [list(dtype.fields.values()) for dtype in (one, other)]  # type: ignore[union-attr]
    return (
        one.itemsize == other.itemsize
        and _are_same(one.names, other.names)
        and all(
            _is_same(mine[0], theirs[0]) and mine[1] == theirs[1] and _are_same(mine[2:], theirs[2:])
            for mine, theirs in zip(*fields)
        )
    )


def _are_same(mine: tuple[Any, ...], theirs: tuple[Any, ...]) -> bool:
    """Names or titles: the same objects, or equal strings, whatever these say of it themselves."""
    return len(mine) == len(theirs) and all(
        one is other or (issubclass(type(one), str) and issubclass(type(other), str) and str.__eq__(one, other))
        for one, other in zip(mine, theirs)
    )


def is_complex(dtype: np.dtype) -> bool:
    """Whether a dtype holds complex numbers: also one that another package has registered."""
    return np.can_cast(dtype, np.complex128) and not np.can_cast(dtype, np.float64)


class Call(NamedTuple, Generic[Problem]):
    """A checked call: the arrays to run on, the problem to plan, and the two fill values.

    `lane` and `pad` are zero-dimensional arrays of the dtype.
    """

    x: np.ndarray
    problem: Problem
    out: np.ndarray
    result: np.ndarray
    lane: Any
    pad: Any
    num_threads: int


class Caller(str):
    """A function's name, and what its caller calls the arguments: here as s2dq itself does.

    What knows an adapter's arguments by s2dq's names, after they have been translated, asks here how to speak of them.
    """

    def argument(self, name: str) -> str | None:
        """The caller's name of an argument; None for one that the caller has not."""
        return name

    def block_shape(self, block: tuple[int, ...]) -> Any:
        """`block` as the caller gave it."""
        return block

    def block_entry(self, i: int) -> str:
        """The block of axis ``i + 1``."""
        return f"block_shape[{i}]"

    def crop(self, i: int, start: Any, end: Any) -> str:
        """What is taken from both ends of axis ``i + 1``, with its values."""
        return f"crops[{i}] [{show(start)}, {show(end)}]"


class Refusal(Exception):
    """A finished message on its way to the door's edge; never leaves this module."""

    def __init__(self, kind: type[Exception], text: str, cause: BaseException | None) -> None:
        self.kind, self.text, self.cause = kind, one_line(text), cause


def one_line(text: str) -> str:
    """A message as it is, unless a class of the caller's has a name that nobody can print."""
    return text if text.isprintable() else ascii(text)[1:-1]


def guarded(check: Check) -> Check:
    """Turn what `check` ends with into one of the three exceptions a caller may see.

    Arguments can run code of the caller's own (``__index__``, ``__class__``, ``__eq__`` ...) in any place; whatever it
    raises becomes a TypeError with that as its cause. The first argument of `check` is the operator's name.
    """

    @wraps(check)
    def door(name: str, *arguments: Any) -> Any:
        refused = False
        try:
            return check(name, *arguments)
        except Refusal as refusal:
            kind, text, cause = refusal.kind, refusal.text, refusal.cause
            # What a signal's handler raises can be the cause, too; a TypeError is that of a value that is no integer.
            refused = cause is None or type(cause) is TypeError
        except MemoryError as error:
            kind, cause = MemoryError, error
            text = f"{name}: no memory to read the arguments"
        except Exception as error:
            kind, cause = TypeError, error
            text = one_line(f"{name}: a method of an argument raised {_NAME.__get__(type(error))}")
        raised = kind(text)
        if refused:  # by a rule, so that the same arguments are refused again: `_kernels.Memo` wants to know
            raised.__dict__["refused"] = True
        raise raised from cause

    return cast(Check, door)


def no_memory(name: str, argument: str, x: np.ndarray) -> MemoryError:
    """What is raised where there is none for what a call keeps besides its arguments and its result."""
    text = f"{name}: no memory to work with, besides {argument} and the result"
    return MemoryError(f"{text} ({argument}.shape={x.shape}, {argument}.dtype={x.dtype})")


class Door:
    """Checks the arguments of one call; carries what its messages repeat."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.caller = name if isinstance(name, Caller) else Caller(name)
        self.context: dict[str, Any] = {}

    def refuse(self, kind: type[Exception], text: str, cause: BaseException | None = None) -> NoReturn:
        """End the call with `kind`, the operator in front and the context behind."""
        context = ", ".join(f"{key}={show(value)}" for key, value in self.context.items())
        raise Refusal(kind, f"{self.name}: {text}" + (f" ({context})" if context else ""), cause)

    def note(self, argument: str, value: Any) -> None:
        """Let messages repeat an argument, if the caller has it."""
        known = self.caller.argument(argument)
        if known is not None:
            self.context[known] = value

    # ------------------------------------------------------------------------------------------- scalars

    def integer(self, argument: str, value: Any, least: int) -> int:
        """An integer of at least `least`; bools are not integers here."""
        if isinstance(value, (bool, np.bool_)):
            self.refuse(TypeError, f"{argument} must be an integer, not {show(value)}")
        self.present(argument, value)
        if type(value) is int:
            number = value
        else:
            try:
                number = int.__pos__(operator.index(value))
                # PyTorch's bools have an ``__index__``, as integers do; other packages' raise.
                boolean = str(getattr(value, "dtype", "")).rpartition(".")[2] == "bool"
            except Exception as error:
                self.refuse(TypeError, f"{argument} must be an integer, not {show(value)}", error)
            if boolean:
                self.refuse(TypeError, f"{argument} must be an integer, not {show(value)}")
        if number < least:
            self.refuse(ValueError, f"{argument} must be at least {least}, not {show(number)}")
        return number

    def choice(self, argument: str, value: Any, allowed: Collection[str]) -> str:
        """One of a few names."""
        if not isinstance(value, str):
            self.refuse(TypeError, f"{argument} must be a str, not {show(value)}")
        name = str.__str__(value)  # without what a subclass may have changed
        if name not in allowed:
            self.refuse(ValueError, f"{argument} must be one of {', '.join(allowed)}, not {show(name)}")
        return name

    def threads(self, num_threads: Any, argument: str = "num_threads") -> int:
        """Wanted team size; 0 where the caller does not say."""
        if num_threads is None:
            return 0
        return min(self.integer(argument, num_threads, 1), 2**31 - 1)

    def real(self, argument: str, value: Any, odd: bool = False) -> float:
        """A finite real number; `odd` as `_to_float` has it."""
        if isinstance(value, np.ndarray) and value.ndim == 0:
            value = value[()]
        if not isinstance(value, Real) or isinstance(value, _NO_NUMBERS):
            self.refuse(TypeError, f"{argument} must be a real number, not {show(value)}")
        try:
            number = _to_float(value, odd)
        except OverflowError:
            number = inf
        if not isfinite(number):
            self.refuse(ValueError, f"{argument} must be finite, not {show(value)}")
        return number

    def reals(self, argument: str, value: Any) -> float | tuple[float, ...]:
        """A finite real number, or one for each channel."""
        if isinstance(value, np.ndarray) and value.ndim:
            if value.ndim > 1:
                self.refuse(ValueError, f"{argument} must be a number or one per channel, not {show(value)}")
            entries = list(value[: MAX_ENTRIES + 1])
        elif isinstance(value, (list, tuple, range)):
            entries = self.read(argument, value, MAX_ENTRIES)
        else:
            return self.real(argument, value)
        if not 0 < len(entries) <= MAX_ENTRIES:
            self.refuse(ValueError, f"{argument} must be a number or one per channel, not {show(value)}")
        return tuple(self.real(f"{argument}[{i}]", entry) for i, entry in enumerate(entries))

    # ----------------------------------------------------------------------------------------- sequences

    def read(self, argument: str, value: Any, most: int) -> list[Any]:
        """The entries of a list, a tuple or a range, read once; ranges are long, and iterators may never end."""
        entries = list(islice(value, most + 1))
        if len(entries) > most:
            self.refuse(ValueError, f"{argument} must have at most {most} entries, not {show(value)}")
        return entries

    def items(self, argument: str, value: Any, what: str, rank: int = 1) -> list[Any]:
        """The entries of a sequence or of an integer array with `rank` dimensions, read once.

        There is one for each of some dimensions, so there cannot be many.
        """
        if isinstance(value, (list, tuple, range)):
            return self.read(argument, value, MAX_DIMENSIONS)
        if isinstance(value, (str, bytes, int, float, dict, set)) or value is None:
            self.refuse(TypeError, f"{argument} must be {what}, not {show(value)}")
        array = self.view(argument, value)
        if array.dtype.kind not in "iu":
            self.refuse(TypeError, f"{argument} must hold integers, not {array.dtype}: {show(value)}")
        if array.ndim == 0:
            self.refuse(TypeError, f"{argument} must be {what}, not {show(value)}")
        if array.ndim != rank or (rank == 2 and array.shape[1] != 2):
            self.refuse(ValueError, f"{argument} must be {what}, not of shape {array.shape}: {show(value)}")
        if array.shape[0] > MAX_DIMENSIONS:
            self.refuse(ValueError, f"{argument} must have at most {MAX_DIMENSIONS} entries, not {array.shape[0]}")
        entries: list[Any] = array.tolist()
        return entries

    def block_sizes(self, argument: str, value: Any, spatial: tuple[str, ...]) -> tuple[int, ...]:
        """An integer for all spatial axes, or one for each."""
        rule = f"an integer or {len(spatial)} of them (one per spatial axis)"
        if not isinstance(value, (list, tuple, range)) and not _holds_entries(value):
            return (self.integer(argument, value, 1),) * len(spatial)
        entries = self.items(argument, value, rule)
        if len(entries) != len(spatial):
            self.refuse(ValueError, f"{argument} must be {rule}, not {show(value)}")
        return tuple(self.integer(f"{argument}[{i}]", entry, 1) for i, entry in enumerate(entries))

    def block_shape(self, value: Any) -> tuple[int, ...]:
        """One integer for each block axis, however many."""
        entries = self.items("block_shape", value, "a sequence of integers, one per block axis")
        return tuple(self.integer(f"block_shape[{i}]", entry, 1) for i, entry in enumerate(entries))

    def pairs(self, argument: str, value: Any, count: int) -> tuple[tuple[int, int], ...]:
        """``[[start, end], ...]``, `count` rows, nothing negative."""
        rows = self.items(argument, value, f"a sequence or integer array of shape [{count}, 2]", rank=2)
        checked: list[tuple[int, ...]] = []
        for i, row in enumerate(rows):
            pair = self.items(f"{argument}[{i}]", row, "a [start, end] pair")
            checked.append(tuple(self.integer(f"{argument}[{i}][{j}]", entry, 0) for j, entry in enumerate(pair)))
        if len(checked) != count or any(len(pair) != 2 for pair in checked):
            rule = f"{argument} must have shape [{count}, 2], one [start, end] row per block axis"
            self.refuse(ValueError, f"{rule}, not {show(value)}")
        return tuple((start, end) for start, end in checked)

    # -------------------------------------------------------------------------------------------- arrays

    def array(self, x: Any, argument: str = "x") -> np.ndarray:
        """The tensor to rearrange, viewed in place; only nested lists of numbers are copied."""
        array = self._from_lists(argument, x) if isinstance(x, (list, tuple)) else self.view(argument, x)
        self.context[f"{argument}.shape"] = array.shape
        return array

    def settle(self, x: Any, array: np.ndarray, argument: str = "x") -> np.ndarray:
        """`array` as it is now, after the last argument that could run code of the caller's own.

        Such code may resize `x` or give it another shape. From here on nothing of the caller's runs any more, and
        the view is our own: another thread that gives `x` a new shape does not change it.
        """
        if not issubclass(type(x), np.ndarray):
            return array
        settled = np.ndarray.view(x, np.ndarray)
        if not _is_same(settled.dtype, array.dtype):
            self.refuse(TypeError, f"{argument} changed its dtype during the call")
        self.context[f"{argument}.shape"] = settled.shape
        return settled

    def view(self, argument: str, value: Any) -> np.ndarray:
        """Anything NumPy can view without a copy, as a base-class array."""
        kind = type(value)  # not isinstance: that asks the value's own __class__
        if issubclass(kind, np.ma.MaskedArray):
            rule = f"{argument} must not be a masked array: its mask would be lost"
            self.refuse(TypeError, f"{rule}; fill it first, for instance with .filled(0)")
        if issubclass(kind, np.ndarray):
            return np.ndarray.view(value, np.ndarray)  # our own: the caller's code may change the dtype of theirs
        plain = (np.number, np.bool_, np.flexible)
        if issubclass(kind, np.timedelta64) or (issubclass(kind, np.generic) and not issubclass(kind, plain)):
            return np.array(value)  # the buffers of dates, and of other packages' types, are bytes
        self.present(argument, value, "call .compute() first, or use s2dq.dask")
        cause = None
        if hasattr(kind, "__dlpack__"):
            array, cause = self._from_dlpack(argument, value)
            if array is not None:
                return array
        try:
            return self._viewed(np.asarray(memoryview(value)), value)
        except Exception as error:
            cause = cause or error
        try:
            return self._viewed(np.asarray(Interface(value.__array_interface__, value)), value)
        except AttributeError:  # no such protocol: what went wrong before says more
            pass
        except Exception as error:
            cause = error
        rule = f"{argument} must be an array that NumPy can view in place (ndarray, buffer, CPU DLPack, "
        self.refuse(TypeError, f"{rule}__array_interface__), not {kind.__name__}{_way_out(kind, value)}", cause)

    def present(self, argument: str, value: Any, way_out: str = "call .compute() first") -> None:
        """Refuse what would have to be computed first."""
        kind = type(value)
        if hasattr(kind, "__dask_graph__"):
            rule = f"{argument} is a lazy Dask collection ({kind.__name__}), and nothing is computed behind your back"
            self.refuse(TypeError, f"{rule}; {way_out}")

    def _from_dlpack(self, argument: str, value: Any) -> tuple[np.ndarray | None, Exception | None]:
        try:
            device, _ = value.__dlpack_device__()
            device = operator.index(device)
        except Exception as error:
            self.refuse(TypeError, f"{argument}: __dlpack_device__ of {type(value).__name__} failed", error)
        if device != _DLPACK_CPU:
            rule = f"{argument} must be in CPU memory, not on DLPack device {show(device)}"
            self.refuse(TypeError, f"{rule}; move it to the CPU first")
        for question, obstacle in _OBSTACLES.items():
            answer = getattr(value, question, False)
            if (answer() if callable(answer) else answer) is True:
                self.refuse(TypeError, f"{argument} {obstacle}")
        if getattr(getattr(value, "dtype", None), "name", None) == "string":
            return None, None  # TensorFlow ends the process where it should refuse
        try:
            return np.from_dlpack(value), None
        except MemoryError:
            raise
        except Exception as error:  # an element type DLPack or NumPy lacks: another protocol may have it
            return None, error

    @staticmethod
    def _viewed(array: np.ndarray, value: Any) -> np.ndarray:
        if array.dtype.hasobject and not isinstance(value, np.generic):
            raise TypeError(f"{type(value).__name__} is not a view of numbers")
        return array

    def _from_lists(self, argument: str, x: Any) -> np.ndarray:
        self._numbers(argument, x, 0)
        try:
            array = np.array(x)
        except ValueError as error:
            self.refuse(ValueError, f"{argument} must be a regular nested list of numbers, not {show(x)}", error)
        if array.dtype.kind not in "biufc":
            self.refuse(TypeError, f"{argument} must be a nested list of numbers, not of {array.dtype}: {show(x)}")
        return array

    def _numbers(self, argument: str, entry: Any, depth: int) -> None:
        """Refuse what NumPy would take but change: masked and lazy arrays, strings, whatever has ``__array__``."""
        if isinstance(entry, (list, tuple)):
            if depth > MAX_DIMENSIONS:
                self.refuse(ValueError, f"{argument} is nested deeper than {MAX_DIMENSIONS} lists")
            # What is stored, as NumPy reads it, whatever a subclass says when it is asked.
            kind: Any = list if issubclass(type(entry), list) else tuple
            stored = kind.__iter__(entry)
            for inner in stored:
                self._numbers(argument, inner, depth + 1)
        elif type(entry) is not np.ndarray and not isinstance(entry, (Number, np.generic)):
            rule = f"{argument} must be a nested list of numbers"
            self.refuse(TypeError, f"{rule}; it holds a {type(entry).__name__}: {show(entry)}")

    def result(
        self, out: Any, shape: tuple[int, ...], x: np.ndarray, dtype: np.dtype | None = None, argument: str = "x"
    ) -> tuple[np.ndarray, np.ndarray]:
        """``(what to return, view to write)``: a fresh array, or the caller's `out` once it is proven fit."""
        dtype = x.dtype if dtype is None else dtype
        if out is UNMADE:
            array = np.broadcast_to(np.ndarray((), dtype), shape)
            return array, array
        if out is None:
            try:
                # np.empty would widen strings of no characters to one.
                array = np.ndarray(shape, dtype) if dtype.itemsize == 0 else np.empty(shape, dtype)
            except MemoryError as error:
                self.refuse(MemoryError, f"no memory for a result of shape {shape} and dtype {dtype}", error)
            return array, array
        view = self.ndarray("out", out)
        if not _is_same(view.dtype, dtype):
            self.refuse(TypeError, f"out must have dtype {dtype}, not {view.dtype}")
        if view.shape != shape:
            self.refuse(ValueError, f"out must have shape {_sized(shape)}, not {view.shape}")
        if not view.flags.c_contiguous:
            self.refuse(ValueError, f"out must be C-contiguous, not of strides {view.strides}")
        if not view.flags.writeable:
            self.refuse(ValueError, "out must be writeable, not read-only")
        try:
            overlap = np.shares_memory(x, view, max_work=cast(Any, 1_000_000))
        except np.exceptions.TooHardError:
            overlap = True
        if overlap:
            self.refuse(ValueError, f"out must not overlap {argument}")
        return out, view

    def ndarray(self, argument: str, value: Any) -> np.ndarray:
        """A base-class view of an array to write to."""
        kind = type(value)  # not isinstance: that asks the value's own __class__
        if not issubclass(kind, np.ndarray) or issubclass(kind, np.ma.MaskedArray):
            self.refuse(TypeError, f"{argument} must be an ndarray, not {kind.__name__}")
        return np.ndarray.view(value, np.ndarray)

    def size(self, shape: tuple[int, ...], dtype: np.dtype) -> None:
        """Refuse a shape that no array can have."""
        if _product((dtype.itemsize, *shape), MAX_BYTES) > MAX_BYTES:
            rule = f"a result of shape {_sized(shape)} and dtype {dtype} would be larger than 2**63 - 1 bytes"
            self.refuse(ValueError, rule)

    # ------------------------------------------------------------------------------------------- elements

    def element(self, argument: str, value: Any, dtype: np.dtype) -> np.ndarray:
        """`value` as an element of `dtype`, in a zero-dimensional array.

        It must equal its value in the dtype: integers exactly, floats after rounding to a finite number.
        """
        held = _zero(dtype)
        self.present(argument, value)
        if dtype.kind == "O":
            held[()] = value
            return held
        if isinstance(value, np.ndarray) and value.ndim == 0:
            value = value[()]
        check = self._elements.get(dtype.kind, Door._other)
        if dtype.isbuiltin == 2:
            check = Door._registered
        cause = None
        try:
            with np.errstate(all="ignore"):
                fits = check(self, argument, value, held)
        except (ValueError, OverflowError) as error:
            fits, cause = False, error
        if not fits:
            self.refuse(ValueError, f"{argument} {show(value)} cannot be held by dtype {dtype}", cause)
        return held

    def _wrong_kind(self, argument: str, value: Any, dtype: np.dtype) -> NoReturn:
        self.refuse(TypeError, f"{argument} must be a value of dtype {dtype}, not {show(value)}")

    def _real(self, argument: str, value: Any, dtype: np.dtype) -> Any:
        """A real number; NumPy scalars of a registered dtype count by their float value."""
        if isinstance(value, _NO_NUMBERS):
            self._wrong_kind(argument, value, dtype)
        if isinstance(value, Real):
            return value
        if isinstance(value, np.generic) and value.dtype.isbuiltin == 2 and not is_complex(value.dtype):
            return float(value)
        try:
            return operator.index(value)
        except Exception:
            self._wrong_kind(argument, value, dtype)

    def _integer(self, argument: str, value: Any, held: np.ndarray) -> bool:
        number = self._real(argument, value, held.dtype)
        whole = int(number)  # ValueError for NaN, OverflowError for infinities
        held[...] = whole
        return _equals(number, whole)

    def _float(self, argument: str, value: Any, held: np.ndarray) -> bool:
        return self._rounded(self._real(argument, value, held.dtype), held)

    @staticmethod
    def _rounded(number: Any, held: np.ndarray) -> bool:
        if held.dtype.kind == "f" and held.dtype.itemsize == 4:  # without the processor, which rounds as it was told
            held[...] = to_float32(np.array(number if isinstance(number, np.generic) else _to_float(number)))
        elif held.dtype.kind == "f" and held.dtype.itemsize == 8:
            held[...] = _to_float(number)
        else:
            held[...] = number
        # NumPy's test for its own scalars: a longdouble may be finite beyond the range of a float.
        finite = np.isfinite(number) if isinstance(number, np.generic) else isfinite(number)
        return bool(np.isfinite(held)) or not finite

    def _complex(self, argument: str, value: Any, held: np.ndarray) -> bool:
        if isinstance(value, np.generic) and value.dtype.isbuiltin == 2 and is_complex(value.dtype):
            value = complex(value)
        if isinstance(value, Complex) and not isinstance(value, Real):
            return self._rounded(value.real, held.real) and self._rounded(value.imag, held.imag)
        return self._rounded(self._real(argument, value, held.dtype), held.real)

    def _boolean(self, argument: str, value: Any, held: np.ndarray) -> bool:
        number = value if isinstance(value, (bool, np.bool_)) else self._real(argument, value, held.dtype)
        one = not _equals(number, 0)
        held[...] = one
        return not one or _equals(number, 1)

    def _time(self, argument: str, value: Any, held: np.ndarray) -> bool:
        if not isinstance(value, held.dtype.type):
            self._wrong_kind(argument, value, held.dtype)
        if np.isnat(value):
            held[...] = "NaT"
            return True
        held[...] = value.astype(held.dtype)
        return bool(held.astype(value.dtype)[()] == value)  # casts between units wrap in silence

    def _string(self, argument: str, value: Any, held: np.ndarray) -> bool:
        if not isinstance(value, bytes if held.dtype.kind == "S" else str):
            self._wrong_kind(argument, value, held.dtype)
        held[...] = value
        return bool(held[()] == value)

    def _variable_string(self, argument: str, value: Any, held: np.ndarray) -> bool:
        missing = getattr(held.dtype, "na_object", held)
        if not isinstance(value, str) and value is not missing:
            self._wrong_kind(argument, value, held.dtype)
        held[...] = value
        return True

    def _void(self, argument: str, value: Any, held: np.ndarray) -> bool:
        if isinstance(value, np.void) and value.dtype == held.dtype:
            held[...] = value
            return True
        names = held.dtype.names
        if not names or not isinstance(value, tuple):
            self._wrong_kind(argument, value, held.dtype)
        entries = list(value)
        if len(entries) != len(names):
            return False
        for name, entry in zip(names, entries):
            field = held.dtype[name]
            if field.subdtype:  # an array inside the record
                held[name] = entry
                if field.base.names:  # records have no ==, or one that is theirs
                    self._wrong_kind(f"{argument}[{name!r}]", entry, field)
                if not np.array_equal(held[name], entry):
                    return False
            else:
                held[name] = self.element(f"{argument}[{name!r}]", entry, field)
        return True

    def _registered(self, argument: str, value: Any, held: np.ndarray) -> bool:
        """Dtypes other packages register, ml_dtypes above all: small floats, complex ones, sub-byte integers."""
        make = held.dtype.type
        if isinstance(value, make):
            held[...] = value
            return True
        if is_complex(held.dtype):
            given = np.zeros((), np.complex128)
            if not self._complex(argument, value, given):
                return False
            held[...] = given
            return bool(np.isfinite(complex(held[()])) or not np.isfinite(given))
        number = self._real(argument, value, held.dtype)
        try:
            integral = float(make(0.5)) != 0.5
            if integral:
                held[...] = make(int(number))
                return bool(int(held[()]) == number)
            held[...] = make(float(number))
            kept = float(held[()])
        except TypeError as error:
            self.refuse(TypeError, f"{argument} must be a value of dtype {held.dtype}, not {show(value)}", error)
        if not isfinite(number):
            return kept == number or (isnan(number) and isnan(kept))
        # Some small floats saturate where others overflow: what is past the last of them is not held either way.
        last = float(make(copysign(1e300, number)))
        return isfinite(kept) and not abs(number) > abs(last)

    def _other(self, argument: str, value: Any, held: np.ndarray) -> bool:
        self._wrong_kind(argument, value, held.dtype)

    _elements = {
        "i": _integer,
        "u": _integer,
        "f": _float,
        "c": _complex,
        "b": _boolean,
        "m": _time,
        "M": _time,
        "S": _string,
        "U": _string,
        "T": _variable_string,
        "V": _void,
    }


def _equals(number: Any, whole: int) -> bool:
    """Whether a number is an integer; a thread may take small ones for 0 where it compares floats."""
    if isinstance(number, float):
        magnitude = int(np.float64(number).view(np.int64)) & MAX_BYTES
        return bool(number == whole) and not 0 < magnitude < 1 << 52
    if isinstance(number, np.floating):
        return bool(number.as_integer_ratio() == (whole, 1))
    return bool(number == whole)


def _holds_entries(value: Any) -> bool:
    """True of arrays and buffers with dimensions; what is left is a scalar, or a mistake."""
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    if hasattr(type(value), "__index__"):
        return False
    try:
        return memoryview(value).ndim > 0
    except Exception:  # no buffer, or a released one
        return hasattr(type(value), "__dlpack__")


# What a tensor of PyTorch says of itself that its bytes do not show, or that keeps them back.
_OBSTACLES = {
    "requires_grad": "requires a gradient, which would be lost; .detach() it first, or use s2dq.compat.torch",
    "is_conj": "is the conjugate of what its memory holds; call .resolve_conj() first",
    "is_neg": "is the negative of what its memory holds; call .resolve_neg() first",
    "is_sparse": "is sparse; call .to_dense() first",
    "is_quantized": "is a quantized tensor; s2dq.interop.from_torch reads it",
}


def _way_out(kind: type, value: Any) -> str:
    """What to do with a tensor of an element type that NumPy lacks, or one that shows its memory to nobody."""
    if str(kind.__module__).partition(".")[0] == "torch":
        rule = "s2dq.compat.torch takes all that PyTorch has, .view(dtype) makes integers of them"
    elif callable(getattr(kind, "numpy", None)):
        rule = ".numpy() may make one of it"
    else:
        return ""
    return f" of {show(getattr(value, 'dtype', None))}; {rule}"


class Interface:
    """Shows NumPy an array interface that was read once, and keeps its owner alive."""

    def __init__(self, interface: Any, owner: Any) -> None:
        self.__array_interface__ = interface
        self.owner = owner


def _sized(shape: tuple[int, ...]) -> str:
    return "(" + ", ".join(show(extent) for extent in shape) + ("," if len(shape) == 1 else "") + ")"


def _zero(dtype: np.dtype) -> np.ndarray:
    """The dtype's zero, the integer 0 for object arrays."""
    return np.zeros((), dtype)


# ------------------------------------------------------------------------------------------------ operators


@guarded
def thread_count(name: str, n: Any) -> int:
    """Check the argument of set_num_threads; 0 stands for None."""
    return Door(name).threads(n, "n")


@guarded
def preparable(name: str, operator: Any, kinds: tuple[type, ...], keywords: dict[str, Any]) -> None:
    """Check what `prepare` does not leave to the operator."""
    door = Door(name)
    if not issubclass(type(operator), kinds):
        rule = "operator must be an operator of s2dq, a Preprocessor or a Postprocessor"
        door.refuse(TypeError, f"{rule}, not {show(operator)}")
    if "out" in keywords:
        door.refuse(TypeError, f"out is for each run to give, not {show(keywords['out'])}")


@guarded
def check_elements(name: str, dtype: np.dtype) -> None:
    """Refuse elements that hold references: without the GIL nobody may count them."""
    if dtype.hasobject:
        Door(name).refuse(TypeError, f"elements of dtype {dtype} hold references, which no prepared call can move")


@guarded
def depth_call(
    name: str, to_depth: bool, x: Any, block_size: Any, data_format: Any, mode: Any, out_format: Any, vect: Any,
    channels: Any, pairs: Any, pad_value: Any, out: Any, num_threads: Any,
) -> Call[DepthProblem]:  # fmt: skip
    """Check a call of space_to_depth (`to_depth`) or depth_to_space; `pairs` is paddings or crops."""
    door = Door(name)
    argument = str(door.caller.argument("x"))
    array = door.array(x, argument)
    source, target, mode, block, lanes, given = depth_arguments(
        door, to_depth, block_size, data_format, mode, out_format, vect, pairs)
    margins = ((0, 0),) * len(block) if given is None else given
    wanted = door.threads(num_threads)
    zero = _zero(array.dtype)
    pad = zero if pad_value is None else door.element("pad_value", pad_value, array.dtype)
    logical = None if channels is None else door.integer("channels", channels, 0)
    array = door.settle(x, array, argument)
    sizes = depth_sizes(door, to_depth, array, block_size, block, source, out_format, target, lanes, logical, margins)
    door.size(sizes.shape, array.dtype)
    result, view = door.result(out, sizes.shape, array)
    problem = DepthProblem(
        to_depth=to_depth, source=source, target=target, mode=mode, steps=_steps(array),
        itemsize=array.dtype.itemsize, batch=sizes.batch, blocks=sizes.blocks, block=block,
        lo=tuple(start for start, _ in margins), space=sizes.space, channels=sizes.channels,
        src_lanes=sizes.src_lanes, dst_lanes=sizes.dst_lanes, dst_shape=sizes.shape,
    )  # fmt: skip
    return Call(array, problem, view, result, zero, pad, wanted)


class DepthArguments(NamedTuple):
    """The checked arguments of a depth operator that any kind of tensor has; `margins` None where nothing is said."""

    source: Layout
    target: Layout
    mode: str
    block: tuple[int, ...]
    lanes: int
    margins: tuple[tuple[int, int], ...] | None


def depth_arguments(
    door: Door, to_depth: bool, block_size: Any, data_format: Any, mode: Any, out_format: Any, vect: Any, pairs: Any
) -> DepthArguments:
    """Check the arguments of a depth operator as far as they do not depend on the tensor."""
    # Adapters may come with a layout that users have no name for.
    own = type(data_format) is Layout
    source = target = data_format if own else LAYOUTS[door.choice("data_format", data_format, LAYOUTS)]
    door.note("data_format", source.name)
    if out_format is not None:
        target = LAYOUTS[door.choice("out_format", out_format, LAYOUTS)]
        door.note("out_format", target.name)
    mode = door.choice("mode", mode, MODES)
    block = door.block_sizes("block_size", block_size, source.spatial)
    lanes = door.integer("vect", vect, 1)
    if len(target.spatial) != len(source.spatial):
        rule = "out_format must have as many spatial axes as data_format"
        door.refuse(ValueError, f"{rule}, not {target.name} for {source.name}")
    margins = None if pairs is None else door.pairs("paddings" if to_depth else "crops", pairs, len(block))
    return DepthArguments(source, target, mode, block, lanes, margins)


class DepthSizes(NamedTuple):
    """What the extents of a depth operator's source come to; fields as in `DepthProblem`."""

    batch: int
    blocks: tuple[int, ...]
    space: tuple[int, ...]
    channels: int
    src_lanes: int
    dst_lanes: int
    shape: tuple[int, ...]


def depth_sizes(
    door: Door, to_depth: bool, x: np.ndarray, block_size: Any, block: tuple[int, ...], source: Layout, out_format: Any,
    target: Layout, lanes: int, logical: int | None, margins: Margins,
) -> DepthSizes:  # fmt: skip
    """Sizes of a depth operator on `x`, of which only rank, shape and dtype count.

    `block_size` and `out_format` are as the caller gave them; the other arguments are checked. Extents may be
    symbolic integers.
    """
    sizes = _axes(door, x, source)
    words_to_words = source.packed and target.packed
    if words_to_words and x.dtype.itemsize != 1:
        rule = f"{door.caller.argument('x')} must have an 8-bit dtype where words go in and words come out"
        door.refuse(TypeError, f"{rule}, not {x.dtype}")
    # Without a word about the destination's lanes the words stay as they are.
    src_lanes = sizes["v"] if source.packed else 0
    dst_lanes = (src_lanes if out_format is None and lanes == 4 else lanes) if target.packed else 0
    count = _channels(door, sizes, logical)

    area = _product(block, _HUGE)
    extents = [sizes[axis] for axis in source.spatial]
    axes = [spatial_word(axis) for axis in source.spatial]

    def divisor() -> str:  # asked for where a call is refused: `block_size` can be of the caller's own class
        return f"{door.caller.argument('block_size')} {show(block_size)}"

    if to_depth:
        shallow, result_channels = count, count * area

        def tell_padded(i: int, padded: str) -> str:
            return f"{axes[i]} {padded} is not divisible by {divisor()}"

        blocks = _cut(door, extents, block, margins, tell_padded)
        space, result_extents = extents, blocks
    else:
        if count % area or (words_to_words and sizes["cb"] % area):
            amount = f"words {sizes['cb']}" if words_to_words else f"channels {count}"
            door.refuse(ValueError, f"number of {amount} is not divisible by {divisor()} ({_area_in_words(area)})")
        shallow = result_channels = count // area
        blocks = extents

        def tell(i: int, start: int, end: int, whole: int) -> str:
            return f"crops [{show(start)}, {show(end)}] are larger than the {axes[i]} {show(whole)}"

        space = _join(door, blocks, block, margins, tell)
        result_extents = space

    shape = tensor_shape(target, sizes["n"], dict(zip(source.spatial, result_extents)), result_channels, dst_lanes)
    if words_to_words and src_lanes == dst_lanes == 0:  # words without lanes
        scaled = sizes["cb"] * area if to_depth else sizes["cb"] // area
        shape = (shape[0], scaled, *shape[2:])
    return DepthSizes(sizes["n"], tuple(blocks), tuple(space), shallow, src_lanes, dst_lanes, shape)


@guarded
def batch_call(
    name: str, to_batch: bool, x: Any, block_shape: Any, pairs: Any, pad_value: Any, out: Any, num_threads: Any
) -> Call[BatchProblem]:
    """Check a call of space_to_batch_nd (`to_batch`) or batch_to_space_nd; `pairs` is paddings or crops."""
    door = Door(name)
    argument = str(door.caller.argument("x"))
    array = door.array(x, argument)
    block = door.block_shape(block_shape)
    door.note("block_shape", door.caller.block_shape(block))
    dims = len(block)
    margins = door.pairs("paddings" if to_batch else "crops", pairs, dims)
    wanted = door.threads(num_threads)
    zero = _zero(array.dtype)
    pad = zero if pad_value is None else door.element("pad_value", pad_value, array.dtype)
    array = door.settle(x, array, argument)
    sizes = batch_sizes(door, to_batch, array, block, margins)
    door.size(sizes.shape, array.dtype)
    result, view = door.result(out, sizes.shape, array)
    problem = BatchProblem(
        to_batch=to_batch, steps=_steps(array), itemsize=array.dtype.itemsize, batch=sizes.batch, blocks=sizes.blocks,
        block=block, lo=tuple(start for start, _ in margins), space=sizes.space, rest=sizes.rest, dst_shape=sizes.shape,
    )  # fmt: skip
    return Call(array, problem, view, result, zero, pad, wanted)


class BatchSizes(NamedTuple):
    """What the extents of a batch operator's source come to; fields as in `BatchProblem`."""

    batch: int
    blocks: tuple[int, ...]
    space: tuple[int, ...]
    rest: tuple[int, ...]
    shape: tuple[int, ...]


def batch_sizes(door: Door, to_batch: bool, x: np.ndarray, block: tuple[int, ...], margins: Margins) -> BatchSizes:
    """Sizes of a batch operator on `x`, of which only rank and shape count; extents may be symbolic integers."""
    dims, caller = len(block), door.caller
    if x.ndim < dims + 1:
        rule = f"{caller.argument('x')} must have at least {dims + 1} dimensions (batch and {dims} block axes)"
        door.refuse(ValueError, f"{rule}, not {x.ndim}")
    batch, *extents = x.shape[: dims + 1]
    rest = x.shape[dims + 1:]
    area = _product(block, _HUGE)
    if to_batch:

        def tell_padded(i: int, padded: str) -> str:
            return f"axis {i + 1} of extent {padded} is not divisible by {caller.block_entry(i)} {show(block[i])}"

        blocks = _cut(door, extents, block, margins, tell_padded)
        space = extents
        shape = (batch * area, *blocks, *rest)
    else:
        if batch % area:
            divisor = f"{caller.argument('block_shape')} {show(caller.block_shape(block))}"
            door.refuse(ValueError, f"batch {batch} is not divisible by {divisor} ({_area_in_words(area)})")
        batch //= area
        blocks = extents

        def tell(i: int, start: int, end: int, whole: int) -> str:
            return f"{caller.crop(i, start, end)} are larger than the extent {show(whole)} of axis {i + 1}"

        space = _join(door, blocks, block, margins, tell)
        shape = (batch, *space, *rest)
    return BatchSizes(batch, tuple(blocks), tuple(space), rest, shape)


@guarded
def pack_call(
    name: str, x: Any, data_format: Any, vect: Any, pad_value: Any, out: Any, num_threads: Any
) -> Call[DepthProblem]:
    """Check a call of pack_vect_c."""
    door = Door(name)
    array = door.array(x)
    source = _plain_layout(door, data_format)
    lanes = door.integer("vect", vect, 1)
    wanted = door.threads(num_threads)
    # The default 0 means raw zero bytes, which strings, dates and records have no number for.
    raw = type(pad_value) is int and pad_value == 0
    lane = _zero(array.dtype) if raw else door.element("pad_value", pad_value, array.dtype)
    array = door.settle(x, array)
    sizes = _axes(door, array, source)
    return _convert(door, array, source, LAYOUTS["NCHW_VECT_C"], sizes, sizes["c"], lanes, lane, out, wanted)


@guarded
def unpack_call(name: str, x: Any, data_format: Any, channels: Any, out: Any, num_threads: Any) -> Call[DepthProblem]:
    """Check a call of unpack_vect_c; `data_format` is the layout of the result."""
    door = Door(name)
    array = door.array(x)
    target = _plain_layout(door, data_format)
    wanted = door.threads(num_threads)
    logical = None if channels is None else door.integer("channels", channels, 0)
    array = door.settle(x, array)
    source = LAYOUTS["NCHW_VECT_C"]
    sizes = _axes(door, array, source)
    count = _channels(door, sizes, logical)
    return _convert(door, array, source, target, sizes, count, 0, _zero(array.dtype), out, wanted)


def _convert(
    door: Door, array: np.ndarray, source: Layout, target: Layout, sizes: dict[str, int], count: int, dst_lanes: int,
    lane: np.ndarray, out: Any, wanted: int,
) -> Call[DepthProblem]:  # fmt: skip
    """A change of layout alone: space_to_depth with blocks of one."""
    extents = (sizes["h"], sizes["w"])
    shape = tensor_shape(target, sizes["n"], {"h": extents[0], "w": extents[1]}, count, dst_lanes)
    door.size(shape, array.dtype)
    result, view = door.result(out, shape, array)
    problem = DepthProblem(
        to_depth=True, source=source, target=target, mode="DCR", steps=_steps(array),
        itemsize=array.dtype.itemsize, batch=sizes["n"], blocks=extents, block=(1, 1), lo=(0, 0), space=extents,
        channels=count, src_lanes=sizes["v"] if source.packed else 0, dst_lanes=dst_lanes, dst_shape=shape,
    )  # fmt: skip
    return Call(array, problem, view, result, lane, _zero(array.dtype), wanted)


def _plain_layout(door: Door, data_format: Any) -> Layout:
    layout = LAYOUTS[door.choice("data_format", data_format, ("NCHW", "NHWC"))]
    door.context["data_format"] = layout.name
    return layout


def _axes(door: Door, array: np.ndarray, layout: Layout) -> dict[str, int]:
    """Extents by axis name."""
    if array.ndim != len(layout.axes):
        rule = f"{door.caller.argument('x')} must have {len(layout.axes)} dimensions ({', '.join(layout.axes)})"
        door.refuse(ValueError, f"{rule} for {layout.name}, not {array.ndim}")
    return dict(zip(layout.axes, array.shape))


def _channels(door: Door, sizes: dict[str, int], channels: int | None) -> int:
    """The logical number of channels of the source, `channels` where the caller says so."""
    if "c" in sizes:
        if channels not in (None, sizes["c"]):
            rule = f"channels {show(channels)} contradicts the {sizes['c']} channels of {door.caller.argument('x')}"
            door.refuse(ValueError, f"{rule}; it is for packed tensors")
        return sizes["c"]
    outer, lanes = sizes["cb"], sizes["v"]
    if channels is None:
        return outer * lanes
    if (words(channels, lanes) if lanes else channels) != (outer if lanes else 0):
        rule = f"channels {show(channels)} does not fill {outer} words of {lanes} lanes"
        least = max(0, (outer - 1) * lanes + 1) if lanes else 0
        door.refuse(ValueError, f"{rule}: it must be from {least} to {outer * lanes}")
    return channels


def _product(extents: tuple[int, ...], most: int) -> int:
    """Of all extents, those of 0 as 1; of the first of them where these are above `most`: long integers take long."""
    product = 1
    for extent in extents:
        product *= max(1, extent)
        if product > most:
            break
    return product


def _area_in_words(area: int) -> str:
    return f"block area {show(area)}" if area <= _HUGE else "block area above 2**4096"


def _cut(
    door: Door, extents: Sequence[int], block: tuple[int, ...], margins: Margins, tell: Callable[[int, str], str]
) -> list[int]:
    """How many blocks each padded axis has; `tell` says of one that it has no whole number of them."""
    blocks = []
    for i, (extent, b, (start, end)) in enumerate(zip(extents, block, margins)):
        total = extent + start + end
        if total % b:
            door.refuse(ValueError, tell(i, f"{extent}" if total == extent else f"{extent} padded to {show(total)}"))
        blocks.append(total // b)
    return blocks


def _join(
    door: Door, blocks: Sequence[int], block: tuple[int, ...], crops: Margins, tell: Callable[[int, int, int, int], str]
) -> list[int]:
    """Extents of the axes that blocks make, less the crops; `tell` says of one that it is too large."""
    space = []
    for i, (count, b, (start, end)) in enumerate(zip(blocks, block, crops)):
        whole = count * b
        if start + end > whole:
            door.refuse(ValueError, f"{tell(i, start, end, whole)} they are taken from")
        space.append(whole - start - end)
    return space


# --------------------------------------------------------------------------------------------- quantization

QUANTIZED = ("int8", "uint8", "int16", "uint16", "int32")
FLOATS = ("float16", "float32", "float64")
_CODES = {np.dtype(name).str[1:]: name for name in QUANTIZED + FLOATS}  # quicker to ask for than the name
_FLOAT32, _INT32 = np.dtype(np.float32), np.dtype(np.int32)
_LIMITS = {
    np.dtype(order + np.dtype(name).str[1:]): (int(np.iinfo(name).min), int(np.iinfo(name).max))
    for name in QUANTIZED for order in "<>"
}  # fmt: skip


class Parameters(NamedTuple):
    """What stored values stand for: float32 `scale` and int32 `zero_point`, 0-d, or 1-d along `axis`; read-only.

    With `axis` 1 of a packed tensor (N, words, H, W, V) there may be one entry for each of its words*V lanes.
    """

    scale: NDArray[np.float32]
    zero_point: NDArray[np.int32]
    axis: int | None


class Conversion(NamedTuple):
    """A checked call of quantize, dequantize or requantize: the arrays and the parameters of what is stored."""

    x: np.ndarray
    out: np.ndarray
    result: np.ndarray
    parameters: Parameters
    num_threads: int
    source: Parameters | None = None  # of requantize: those of `x`


@guarded
def tensor_parts(name: str, values: Any, scale: Any, zero_point: Any, axis: Any) -> tuple[np.ndarray, Parameters]:
    """Check the arguments of a QuantizedTensor; the values come back as a read-only view."""
    door = Door(name)
    return parts_of(door, values, door.array(values, "values"), scale, zero_point, axis)


def parts_of(
    door: Door, values: Any, array: np.ndarray, scale: Any, zero_point: Any, axis: Any
) -> tuple[np.ndarray, Parameters]:
    """The same of `values` that have been viewed as `array`; they are settled once all else has been read."""
    _quantized(door, "values", array.dtype)
    given = _read_parameters(door, scale, zero_point, axis, array.dtype, array.shape)
    array = door.settle(values, array, "values").view()
    array.flags.writeable = False
    return array, _placed(door, given, array.shape, "values")


@guarded
def quantize_call(
    name: str, x: Any, scale: Any, zero_point: Any, dtype: Any, axis: Any, out: Any, num_threads: Any
) -> Conversion:
    """Check a call of quantize."""
    door = Door(name)
    array = door.array(x)
    _among(door, "x must hold", array.dtype, FLOATS)
    kept = _dtype(door, dtype)
    given = _read_parameters(door, scale, zero_point, axis, kept, array.shape)
    wanted = door.threads(num_threads)
    array = door.settle(x, array)
    parameters = _placed(door, given, array.shape, "x")
    door.size(array.shape, kept)
    result, view = door.result(out, array.shape, array, kept)
    return Conversion(array, view, result, parameters, wanted)


@guarded
def dequantize_call(name: str, kind: type[Any], q: Any, out: Any, num_threads: Any) -> Conversion:
    """Check a call of dequantize; `kind` is the type of quantized tensors."""
    door = Door(name)
    taken = _tensor(door, "q", kind, q)
    array = taken.values
    door.context["q.shape"] = array.shape
    dtype = np.dtype(np.float32)
    if out is not None:
        view = door.ndarray("out", out)
        _among(door, "out must have dtype", view.dtype, FLOATS)
        dtype = view.dtype
    wanted = door.threads(num_threads)
    door.size(array.shape, dtype)
    result, view = door.result(out, array.shape, array, dtype, "q")
    return Conversion(array, view, result, taken.parameters, wanted)


@guarded
def requantize_call(
    name: str, kind: type[Any], q: Any, scale: Any, zero_point: Any, dtype: Any, out: Any, num_threads: Any
) -> Conversion:
    """Check a call of requantize; `kind` is the type of quantized tensors."""
    door = Door(name)
    taken = _tensor(door, "q", kind, q)
    array, source = taken.values, taken.parameters
    door.context["q.shape"] = array.shape
    kept = array.dtype if dtype is None else _dtype(door, dtype)
    given = _read_parameters(door, scale, zero_point, None, kept, array.shape)
    wanted = door.threads(num_threads)
    for argument, entries in (("scale", given.scale), ("zero_point", given.zero_point)):
        if entries.ndim and source.axis is None:
            rule = f"{argument} has shape {entries.shape}, but q has a single scale and no axis"
            door.refuse(ValueError, f"{rule}; quantize(dequantize(q), ..., axis=) says which")
    if given.scale.ndim or given.zero_point.ndim:
        given = given._replace(axis=source.axis)
    parameters = _placed(door, given, array.shape, "q")
    door.size(array.shape, kept)
    result, view = door.result(out, array.shape, array, kept, "q")
    return Conversion(array, view, result, parameters, wanted, source)


@guarded
def check_equal(
    name: str, shape: tuple[int, ...], axis: int | None, scale: np.ndarray, zero_point: np.ndarray, what: str
) -> None:
    """Refuse rows of parameters that would have to become one pair each; ``what.format(row)`` says why."""
    door = Door(name)
    door.context.update({"x.shape": shape, "axis": axis})
    # Bits: nothing here depends on how the thread looks at subnormal numbers.
    differ = (scale.view(np.int32) != scale[:, :1].view(np.int32)) | (zero_point != zero_point[:, :1])
    if differ.any():
        row, other = np.argwhere(differ)[0].tolist()
        pairs = (f"({scale[row, k]}, {zero_point[row, k]})" for k in (0, other))
        rule = "must all have the same scale and zero point, not"
        door.refuse(ValueError, f"{what.format(row)} {rule} {' and '.join(pairs)}")


@guarded
def check_packed(name: str, shape: tuple[int, ...], axis: int | None, data_format: str) -> None:
    """Refuse a tensor with parameters for every lane of its words where no words are expected."""
    door = Door(name)
    door.context.update({"x.shape": shape, "axis": axis, "data_format": data_format})
    door.refuse(ValueError, "x has parameters for every lane of packed words, so data_format must be NCHW_VECT_C")


def _quantized(door: Door, argument: str, dtype: np.dtype) -> None:
    _among(door, f"{argument} must have dtype", dtype, QUANTIZED)


def _among(door: Door, rule: str, dtype: np.dtype, names: tuple[str, ...]) -> None:
    """One of a few dtypes, in either byte order."""
    known = dtype.str[1:] in _CODES and dtype.isbuiltin != 2 and dtype.names is None  # fields are views of numbers
    if not known or _CODES[dtype.str[1:]] not in names:
        door.refuse(TypeError, f"{rule} {', '.join(names[:-1])} or {names[-1]}, not {dtype}")


def _dtype(door: Door, dtype: Any) -> np.dtype:
    """The argument `dtype`: a type of stored values."""
    kept: np.dtype[Any] | None = None
    cause = None
    try:
        kept = np.dtype(dtype) if dtype is not None else None
    except Exception as error:
        cause = error
    if kept is None:
        rule = f"dtype must be {', '.join(QUANTIZED[:-1])} or {QUANTIZED[-1]}"
        door.refuse(TypeError, f"{rule}, not {show(dtype)}", cause)
    _among(door, "dtype must be", kept, QUANTIZED)
    return kept


class Snapshot(NamedTuple):
    """A quantized tensor in views of our own: who holds its arrays may set shape, strides and dtype of them."""

    values: np.ndarray
    scale: NDArray[np.float32]
    zero_point: NDArray[np.int32]
    axis: int | None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    @property
    def parameters(self) -> Parameters:
        return Parameters(self.scale, self.zero_point, self.axis)


def snapshot(q: Any) -> Snapshot | None:
    """A quantized tensor as it is now; None where its arrays are not what they were, or nobody made it."""
    try:
        values, scale, zero_point, axis = q.values, q.scale, q.zero_point, q.axis
    except AttributeError:
        return None
    view = np.ndarray.view
    taken = Snapshot(view(values, np.ndarray), view(scale, np.ndarray), view(zero_point, np.ndarray), axis)
    return taken if _is_intact(taken) else None


@guarded
def refuse_tensor(name: str, argument: str, kind: type[Any], q: Any) -> NoReturn:
    """Say what is wrong with a tensor that `snapshot` did not take."""
    _refuse_tensor(Door(name), argument, kind, q)


def _refuse_tensor(door: Door, argument: str, kind: type[Any], q: Any) -> NoReturn:
    argument = str(door.caller.argument(argument))
    try:
        values, scale, zero_point = (np.ndarray.view(array, np.ndarray) for array in (q.values, q.scale, q.zero_point))
    except AttributeError as error:
        door.refuse(TypeError, f"{argument} was not made by {kind.__name__}(values, scale, zero_point)", error)
    parts = f"values of {values.dtype}, scale of shape {scale.shape}, zero_point {zero_point.shape}"
    along = "" if q.axis is None else f", axis {q.axis}"
    rule = f"{argument} is no quantized tensor any more, its arrays were changed: {parts}{along}"
    door.refuse(ValueError, f"{rule} ({argument}.shape={values.shape})")


@guarded
def check_tensor(name: str, argument: str, kind: type[Any], q: Any) -> None:
    """Refuse what is no quantized tensor, or none any more; `kind` is the type of quantized tensors."""
    _tensor(Door(name), argument, kind, q)


def _tensor(door: Door, argument: str, kind: type[Any], q: Any) -> Snapshot:
    """The values and the parameters of a quantized tensor."""
    if type(q) is not kind:
        rule = f"{argument} must be a {kind.__name__}, not {type(q).__name__}"
        door.refuse(TypeError, f"{rule}; {kind.__name__}(values, scale, zero_point) makes one of an array")
    taken = snapshot(q)
    if taken is None:
        _refuse_tensor(door, argument, kind, q)
    return taken


def _is_intact(taken: Snapshot) -> bool:
    """Whether the arrays of a tensor fit each other."""
    array = taken.values
    scale, zero_point, axis = taken.scale, taken.zero_point, taken.axis
    limits = _LIMITS.get(array.dtype)
    shape = scale.shape
    if limits is None or scale.dtype != _FLOAT32 or zero_point.dtype != _INT32 or shape != zero_point.shape:
        return False
    if axis is None:
        return shape == () and limits[0] <= int(zero_point) <= limits[1]
    if len(shape) != 1 or axis >= array.ndim or not (scale.flags.c_contiguous and zero_point.flags.c_contiguous):
        return False
    if shape[0] != array.shape[axis]:  # or one for every lane of a packed tensor
        if axis != 1 or array.ndim != 5 or shape[0] != array.shape[1] * array.shape[4]:
            return False
    return shape == (0,) or bool(limits[0] <= zero_point.min() and zero_point.max() <= limits[1])


def _read_parameters(
    door: Door, scale: Any, zero_point: Any, axis: Any, dtype: np.dtype, shape: tuple[int, ...]
) -> Parameters:
    """The three arguments, each read once; whether they fit the shape is for `_placed` to say."""
    most = most_entries(shape)
    scales = _scales(door, scale, most)
    zeros = _zero_points(door, zero_point, dtype, most)
    return Parameters(scales, zeros, None if axis is None else door.integer("axis", axis, -MAX_DIMENSIONS))


def most_entries(shape: tuple[int, ...]) -> int:
    """How many parameters are read at most: more do not fit an array of this shape in any way."""
    return max(MAX_ENTRIES, prod(max(1, extent) for extent in shape))


def _placed(door: Door, given: Parameters, shape: tuple[int, ...], argument: str) -> Parameters:
    """Parameters that fit an array of this shape, a single one repeated where the other has an axis."""
    scale, zero_point, axis = given
    named = (("scale", scale), ("zero_point", zero_point))
    if axis is None:
        for name, entries in named:
            if entries.ndim:
                door.refuse(ValueError, f"{name} has shape {entries.shape}: axis must say along which axis it lies")
        counts: list[tuple[int, ...]] = [()]
    else:
        if not -len(shape) <= axis < len(shape):
            door.refuse(ValueError, f"axis {show(axis)} is not one of the {len(shape)} dimensions of {argument}")
        axis %= len(shape)
        if not (scale.ndim or zero_point.ndim):
            door.refuse(ValueError, "axis is for one scale or zero_point per index, but both are single numbers")
        counts = [(shape[axis],)]
        if axis == 1 and len(shape) == 5:  # or one for every lane of a packed tensor
            counts.append((shape[1] * shape[4],))
        wanted = " or, if packed, ".join(str(*count) for count in counts)
        for name, entries in named:
            if entries.ndim and entries.shape not in counts:
                door.refuse(ValueError, f"{name} has {entries.size} entries, axis {axis} of {argument} {wanted}")
        if scale.ndim and zero_point.ndim and scale.shape != zero_point.shape:
            door.refuse(ValueError, f"scale has {scale.size} entries, but zero_point has {zero_point.size}")
        counts = [(scale if scale.ndim else zero_point).shape]
    spread: list[Any] = [entries if entries.shape == counts[0] else np.full(counts[0], entries) for _, entries in named]
    for entries in spread:
        entries.flags.writeable = False
    return Parameters(spread[0], spread[1], axis)


def _entries(door: Door, argument: str, value: Any, what: str, kinds: str, most: int) -> np.ndarray:
    """An array of parameters, of at most one dimension and `most` entries."""
    number = isinstance(value, Number) and not isinstance(value, np.generic)
    if value is None or number or isinstance(value, (str, bytes, bytearray, dict, set)):
        door.refuse(TypeError, f"{argument} must be {what} or one per index, not {show(value)}")
    array = door.view(argument, value)
    if array.dtype.kind not in kinds or array.dtype.isbuiltin == 2:
        door.refuse(TypeError, f"{argument} must be {what} or one per index, not of {array.dtype}: {show(value)}")
    if array.ndim > 1:
        rule = f"{argument} must be {what} or one per index"
        door.refuse(ValueError, f"{rule}, not of shape {array.shape}: {show(value)}")
    if array.size > most:
        door.refuse(ValueError, f"{argument} must have at most {most} entries, not {array.size}")
    return array


def _scales(door: Door, value: Any, most: int) -> np.ndarray:
    """Scales as float32, 0-d or 1-d: finite and above 0 once they are rounded."""
    if isinstance(value, (list, tuple, range)):
        entries = door.read("scale", value, most)
        numbers = [door.real(f"scale[{i}]", entry, odd=True) for i, entry in enumerate(entries)]
        scales = to_float32(np.array(numbers, np.float64))
    elif isinstance(value, Real) and not isinstance(value, (bool, np.generic)):
        scales = _one_float32(door.real("scale", value)).copy()  # its shape and flags are its tensor's
    else:
        scales = to_float32(_entries(door, "scale", value, "a real number", "iuf", most))
    _check_scales(door, scales, value)
    return scales


def _check_scales(door: Door, scales: np.ndarray, value: Any) -> None:
    """Refuse float32 scales that are not above 0 and finite; in integers, for a thread may flush what is small."""
    bits = scales.view(np.int32)
    if not scales.ndim:
        fits = 0 < int(bits) < 0x7F800000
    else:
        fits = not scales.size or 0 < int(bits.min()) <= int(bits.max()) < 0x7F800000
    if not fits:
        rule = "scale must be above 0 and finite as a float32" + (", every entry of it" if scales.ndim else "")
        door.refuse(ValueError, f"{rule}, not {show(value)}")


def _zero_points(door: Door, value: Any, dtype: np.dtype, most: int) -> np.ndarray:
    """Zero points as int32, 0-d or 1-d, all within the dtype."""
    info = np.iinfo(dtype)
    least, greatest = int(info.min), int(info.max)
    numbers: Any  # one, or a list
    if isinstance(value, (list, tuple, range)):
        entries = door.read("zero_point", value, most)
        numbers = [door.integer(f"zero_point[{i}]", entry, least) for i, entry in enumerate(entries)]
    elif hasattr(type(value), "__index__") and not (isinstance(value, np.ndarray) and value.ndim):
        numbers = door.integer("zero_point", value, least)
    else:
        array = _entries(door, "zero_point", value, "an integer", "iu", most).copy()  # another thread may write to it
        if not array.size or least <= int(array.min()) <= int(array.max()) <= greatest:
            return array.astype(np.int32)
        numbers = array.tolist()
    for i, number in enumerate(numbers if isinstance(numbers, list) else [numbers]):
        if not least <= number <= greatest:
            entry = f"[{i}]" if isinstance(numbers, list) else ""
            door.refuse(ValueError, f"zero_point{entry} {show(number)} cannot be held by dtype {dtype}")
    return np.array(numbers, np.int32)


def _to_float(value: Any, odd: bool = False) -> float:
    """`value` as a float, however the thread rounds; or with `odd` as one which is rounded to float32 as `value` is.

    Rounding twice is rounding once where what is not exact ends in an odd digit the first time.
    """
    if isinstance(value, np.integer):
        above, below = int(value), 1
    elif isinstance(value, np.longdouble) and np.isfinite(value):
        above, below = value.as_integer_ratio()
    elif isinstance(value, np.float32):
        return float(to_float64(np.array(value, np.float32)))
    elif isinstance(value, Rational) and not isinstance(value, int):  # which NumPy makes a float of before all else
        above, below, odd = int(value.numerator), int(value.denominator), False
    else:
        return float(value)
    try:
        number = (above << 64) / (below << 64)  # Python divides integers in integers, unless the processor can
    except OverflowError:
        return inf if above > 0 else -inf
    if odd and not np.float64(number).view(np.int64) & 1:
        other_above, other_below = number.as_integer_ratio()
        error = above * other_below - other_above * below
        if error:
            number = nextafter(number, inf if error > 0 else -inf)
    return number


@lru_cache(maxsize=256)
def _one_float32(number: float) -> np.ndarray:
    """`to_float32` of a number, for the scales that come again and again."""
    rounded = to_float32(np.array(number, np.float64))
    rounded.flags.writeable = False
    return rounded


def to_float32(numbers: np.ndarray) -> np.ndarray:
    """Float32 nearest to `numbers`, half to even, in a new array.

    In integers, because a cast rounds as the calling thread rounds, and flushes what the thread flushes.
    """
    if numbers.dtype.kind == "f" and numbers.dtype.itemsize == 4:
        return numbers.astype(np.float32)  # its own, at most swapped
    with np.errstate(all="ignore"):  # a longdouble beyond float64
        doubles = numbers.astype(np.float64)
        if numbers.dtype.itemsize > 4 and numbers.dtype.str[1:] != "f8":
            if numbers.dtype.kind == "f":
                inexact = np.isfinite(numbers) & (doubles.astype(numbers.dtype) != numbers)
            else:
                inexact = np.abs(doubles) >= 2.0**53
            if inexact.any():
                doubles[inexact] = [_to_float(number, odd=True) for number in numbers[inexact]]
        bits = doubles.view(np.int64)
    magnitude, sign = bits & MAX_BYTES, (bits < 0).astype(np.int64) << 31
    exponent = np.maximum((magnitude >> 52) - 1023, -1022)
    digits = (magnitude & (2**52 - 1)) | ((magnitude >> 52 > 0).astype(np.int64) << 52)
    drop = np.minimum(29 + np.maximum(-126 - exponent, 0), 62)  # subnormal ones lose more of their 53 bits
    kept, rest, half = digits >> drop, digits & ((1 << drop) - 1), 1 << (drop - 1)
    kept = kept + ((rest > half) | ((rest == half) & ((kept & 1) == 1)))
    rounded = np.minimum((np.maximum(exponent + 126, 0) << 23) + kept, 0x7F800000)
    rounded = np.where(magnitude > 2047 << 52, 0x7FC00000, rounded) | sign
    return np.asarray(rounded.astype(np.uint32).view(np.float32))


def to_float64(numbers: np.ndarray) -> np.ndarray:
    """`numbers` of float32 in float64: a cast would take the small ones for 0 where the thread does."""
    magnitude = numbers.view(np.int32) & 0x7FFFFFFF
    with np.errstate(all="ignore"):  # a signalling NaN
        return np.where(magnitude < 1 << 23, np.copysign(magnitude * 2.0**-149, numbers), numbers)


# -------------------------------------------------------------------------------------------- preprocessing


class FrameSettings(NamedTuple):
    """The checked keywords of a Preprocessor. Numbers per channel are tuples in output channel order."""

    scale: float | None
    zero_point: int
    dtype: np.dtype
    mean: float | tuple[float, ...]
    std: float | tuple[float, ...]
    rescale: float
    input_format: str
    data_format: str
    block: tuple[int, ...]  # two
    mode: str
    vect: int
    reverse_channels: bool
    size: tuple[int, ...] | None  # two
    pad_value: int | tuple[int, ...]
    num_threads: int
    channels: int | None  # how many, where some keyword tells


@guarded
def frame_settings(
    name: str, scale: Any, zero_point: Any, dtype: Any, mean: Any, std: Any, rescale: Any, input_format: Any,
    data_format: Any, block_size: Any, mode: Any, vect: Any, reverse_channels: Any, size: Any, pad_value: Any,
    num_threads: Any,
) -> FrameSettings:  # fmt: skip
    """Check the keywords of a Preprocessor."""
    door = Door(name)
    rule = f"dtype must be int8, uint8, float32 or float16, not {show(dtype)}"
    try:
        kept = np.dtype(dtype)
    except Exception as error:
        door.refuse(TypeError, rule, error)
    if kept not in _FRAME_DTYPES:
        door.refuse(TypeError, rule)
    step, zero = None, 0
    if kept.kind == "f":
        if scale is not None:
            door.refuse(ValueError, f"scale must not be given for dtype {kept}: its values are not quantized")
        if door.integer("zero_point", zero_point, -(2**31)) != 0:
            door.refuse(ValueError, f"zero_point must be 0 for dtype {kept}, not {show(zero_point)}")
    else:
        step, zero = _frame_scale(door, kept, scale, zero_point)
    middle = 0.0 if mean is None else door.reals("mean", mean)
    spread = 1.0 if std is None else door.reals("std", std)
    # Bits: a thread may take small numbers for 0.
    if (np.array(spread).view(np.int64) <= 0).any():
        door.refuse(ValueError, f"std must be above 0, not {show(std)}")
    factor = door.real("rescale", rescale)
    if not np.array(factor).view(np.int64) & MAX_BYTES:
        door.refuse(ValueError, "rescale must not be 0")
    layouts = ("NHWC", "NCHW")
    source = door.choice("input_format", input_format, layouts)
    target = door.choice("data_format", data_format, (*layouts, "NCHW_VECT_C"))
    block = door.block_sizes("block_size", block_size, ("h", "w"))
    order = door.choice("mode", mode, MODES)
    lanes = door.integer("vect", vect, 1)
    if not isinstance(reverse_channels, (bool, np.bool_)):
        door.refuse(TypeError, f"reverse_channels must be True or False, not {show(reverse_channels)}")
    canvas = None if size is None else door.block_sizes("size", size, ("h", "w"))
    if canvas is not None:
        for axis, extent, b in zip("hw", canvas, block):
            if extent % b:
                rule = f"{spatial_word(axis)} {show(extent)} of size is not divisible by block_size"
                door.refuse(ValueError, f"{rule} {show(block_size)}")
    levels = door.reals("pad_value", pad_value)
    for level in levels if isinstance(levels, tuple) else (levels,):
        if int(level) not in range(256) or not _equals(level, int(level)):
            rule = "pad_value must be a grey level, an integer from 0 to 255"
            door.refuse(ValueError, f"{rule} (or one per channel), not {show(pad_value)}")
    grey = tuple(int(level) for level in levels) if isinstance(levels, tuple) else int(levels)
    counts = {
        argument: len(value)
        for argument, value in (("mean", middle), ("std", spread), ("pad_value", grey))
        if isinstance(value, tuple)
    }
    if len(set(counts.values())) > 1:
        told = ", ".join(f"{count} in {argument}" for argument, count in counts.items())
        door.refuse(ValueError, f"numbers per channel disagree about the channels: {told}")
    channels = next(iter(counts.values()), None)
    return FrameSettings(
        scale=step, zero_point=zero, dtype=kept, mean=middle, std=spread, rescale=factor, input_format=source,
        data_format=target, block=block, mode=order, vect=lanes, reverse_channels=bool(reverse_channels), size=canvas,
        pad_value=grey, num_threads=door.threads(num_threads), channels=channels,
    )  # fmt: skip


_FRAME_DTYPES = (np.dtype(np.int8), np.dtype(np.uint8), np.dtype(np.float32), np.dtype(np.float16))


def _frame_scale(door: Door, dtype: np.dtype, scale: Any, zero_point: Any) -> tuple[float, int]:
    """Scale and zero point of quantized frames."""
    if scale is None:
        door.refuse(ValueError, f"scale must be given for dtype {dtype}: the step between two quantized values")
    step = door.real("scale", scale, odd=True)
    _check_scales(door, to_float32(np.array(step)), scale)
    zero = door.integer("zero_point", zero_point, int(np.iinfo(dtype).min))
    if zero > np.iinfo(dtype).max:
        door.refuse(ValueError, f"zero_point {show(zero_point)} cannot be held by dtype {dtype}")
    return step, zero


@guarded
def frame_margins(name: str, settings: FrameSettings, height: Any, width: Any) -> tuple[int, int]:
    """Rows above and columns left of a frame on its canvas."""
    door = Door(name)
    frame = (door.integer("height", height, 0), door.integer("width", width, 0))
    return _frame_margins(door, settings, frame)


def _frame_margins(door: Door, settings: FrameSettings, frame: tuple[int, int]) -> tuple[int, int]:
    if settings.size is None:

        def tell(i: int, padded: str) -> str:
            return f"{('height', 'width')[i]} {padded} is not divisible by block_size {show(settings.block[i])}"

        _cut(door, frame, settings.block, ((0, 0), (0, 0)), tell)
        return 0, 0
    for axis, extent, canvas in zip("hw", frame, settings.size):
        if extent > canvas:
            rule = f"a frame of {spatial_word(axis)} {show(extent)} is larger than size {show(settings.size)}"
            door.refuse(ValueError, f"{rule}; resize it first")
    return (settings.size[0] - frame[0]) // 2, (settings.size[1] - frame[1]) // 2


@guarded
def frame_call(name: str, settings: FrameSettings, frames: Any, out: Any) -> Call[DepthProblem]:
    """Check a call of a Preprocessor; the caller adds tables and fill values."""
    door = Door(name)
    array = door.settle(frames, door.array(frames, "frames"), "frames")
    if array.dtype not in (np.dtype(np.uint8), np.dtype(np.float32)):
        door.refuse(TypeError, f"frames must be uint8 or float32, not {array.dtype}")
    source = LAYOUTS[settings.input_format]
    target = LAYOUTS[settings.data_format]
    given = array  # with or without N, as the call is remembered
    if array.ndim == 3:
        array = array[np.newaxis]
    elif array.ndim != 4:
        axes = ", ".join(source.axes)
        door.refuse(ValueError, f"frames must have the dimensions ({axes}) or the same without n, not {array.ndim}")
    sizes = dict(zip(source.axes, array.shape))
    count = sizes["c"]
    if settings.channels not in (None, count):
        rule = f"frames have {count} channels, but mean, std or pad_value have"
        door.refuse(ValueError, f"{rule} {settings.channels} entries")
    frame = (sizes["h"], sizes["w"])
    margins = _frame_margins(door, settings, frame)
    canvas = settings.size or frame
    blocks = tuple(extent // b for extent, b in zip(canvas, settings.block))
    deep = count * prod(settings.block)
    lanes = settings.vect if target.packed else 0
    shape = tensor_shape(target, sizes["n"], dict(zip("hw", blocks)), deep, lanes)
    door.size(shape, settings.dtype)
    result, view = door.result(out, shape, array, settings.dtype, "frames")
    problem = DepthProblem(
        to_depth=True, source=source, target=target, mode=settings.mode, steps=_steps(array),
        itemsize=settings.dtype.itemsize, batch=sizes["n"], blocks=blocks, block=settings.block, lo=margins,
        space=frame, channels=count, src_lanes=0, dst_lanes=lanes, dst_shape=shape, tables=settings.channels or 1,
        pads=settings.channels or 1, reverse=settings.reverse_channels,
        staged=array.dtype.itemsize if array.dtype.kind == "f" or settings.dtype.kind == "f" else 0,
    )  # fmt: skip
    return Call(given, problem, view, result, None, None, settings.num_threads)


def post_settings(name: str, scale: Any, zero_point: Any, dtype: Any, *others: Any) -> FrameSettings:
    """Check the keywords of a Postprocessor: those of a Preprocessor, for tensors of bytes."""
    return frame_settings(name, scale, zero_point, byte_dtype(name, dtype), *others)


@guarded
def byte_dtype(name: str, dtype: Any) -> np.dtype:
    """Check a dtype that has to be one of 8 bits."""
    door = Door(name)
    rule = f"dtype must be int8 or uint8, not {show(dtype)}"
    try:
        kept: np.dtype[Any] = np.dtype(dtype)
    except Exception as error:
        door.refuse(TypeError, rule, error)
    if kept not in (np.dtype(np.int8), np.dtype(np.uint8)):
        door.refuse(TypeError, rule)
    return kept


@guarded
def post_call(
    name: str, settings: FrameSettings, kind: type[Any], tensor: Any, out: Any, frame: Any
) -> Call[DepthProblem]:
    """Check a call of a Postprocessor; `kind` is the type of quantized tensors. The caller adds tables."""
    door = Door(name)
    source = LAYOUTS[settings.data_format]
    target = LAYOUTS[settings.input_format]
    wanted = None if frame is None else _frame_extents(door, frame)
    values = _stored_values(door, settings, kind, tensor) if type(tensor) is kind else tensor
    array = door.settle(values, door.array(values, "tensor"), "tensor")
    if array.dtype != settings.dtype:
        door.refuse(TypeError, f"tensor must have dtype {settings.dtype}, not {array.dtype}")
    shape, steps = array.shape, _steps(array)
    if array.ndim == len(source.axes) - 1:
        shape, steps = (1, *shape), (0, *steps)
    elif array.ndim != len(source.axes):
        rule = f"tensor must have the dimensions ({', '.join(source.axes)}) or the same without n"
        door.refuse(ValueError, f"{rule} for {source.name}, not {array.ndim}")
    sizes = dict(zip(source.axes, shape))
    count = _shallow_channels(door, settings, sizes)
    blocks = (sizes["h"], sizes["w"])
    canvas = tuple(extent * b for extent, b in zip(blocks, settings.block))
    if settings.size not in (None, canvas):
        rule = f"tensor makes a canvas of ({show(canvas[0])}, {show(canvas[1])})"
        door.refuse(ValueError, f"{rule}, but size is {show(settings.size)}")
    space = canvas if wanted is None else wanted
    margins = _canvas_margins(door, settings, canvas, space)
    dtype = np.dtype(np.uint8)
    shape = tensor_shape(target, sizes["n"], dict(zip("hw", space)), count, 0)
    door.size(shape, dtype)
    result, view = door.result(out, shape, array, dtype, "tensor")
    problem = DepthProblem(
        to_depth=False, source=source, target=target, mode=settings.mode, steps=steps, itemsize=1, batch=sizes["n"],
        blocks=blocks, block=settings.block, lo=margins, space=space, channels=count,
        src_lanes=settings.vect if source.packed else 0, dst_lanes=0, dst_shape=shape, tables=settings.channels or 1,
        reverse=settings.reverse_channels,
    )  # fmt: skip
    return Call(array, problem, view, result, None, None, settings.num_threads)


def _frame_extents(door: Door, frame: Any) -> tuple[int, int]:
    """The argument `frame`: (height, width)."""
    rule = "a (height, width) pair of integers"
    entries = door.items("frame", frame, rule)
    if len(entries) != 2:
        door.refuse(ValueError, f"frame must be {rule}, not {show(frame)}")
    height, width = (door.integer(f"frame[{i}]", entry, 0) for i, entry in enumerate(entries))
    return height, width


def _stored_values(door: Door, settings: FrameSettings, kind: type[Any], tensor: Any) -> np.ndarray:
    """The values of a quantized tensor that stand for what the settings say."""
    taken = _tensor(door, "tensor", kind, tensor)
    if taken.axis is not None:
        rule = "tensor must have a single scale and zero point, those of the keywords"
        door.refuse(ValueError, f"{rule}, not some along axis {taken.axis}")
    scale, zero_point = to_float32(np.array(settings.scale)), settings.zero_point
    if taken.scale.view(np.int32) != scale.view(np.int32) or int(taken.zero_point) != zero_point:
        rule = f"tensor has scale {to_float64(taken.scale)} and zero_point {taken.zero_point}"
        door.refuse(ValueError, f"{rule}, but the keywords say {to_float64(scale)} and {zero_point}")
    return taken.values


def _shallow_channels(door: Door, settings: FrameSettings, sizes: dict[str, int]) -> int:
    """How many channels the frames have that a tensor of these extents becomes."""
    area = prod(settings.block)
    told = "mean, std or pad_value have"
    if "v" in sizes:
        if sizes["v"] != settings.vect:
            door.refuse(ValueError, f"tensor has words of {sizes['v']} lanes, but vect is {show(settings.vect)}")
        deep = sizes["cb"] * sizes["v"]
        if settings.channels is not None:
            outer = words(settings.channels * area, settings.vect)
            if sizes["cb"] != outer:
                rule = f"tensor has {sizes['cb']} words of {show(settings.vect)} lanes, but {told} {settings.channels}"
                door.refuse(ValueError, f"{rule} entries: with block_size {show(settings.block)} that is {show(outer)}")
            deep = settings.channels * area
    else:
        deep = sizes["c"]
    if deep % area:
        rule = f"number of channels {deep} is not divisible by block_size {show(settings.block)}"
        door.refuse(ValueError, f"{rule} (block area {show(area)})")
    count = deep // area
    if settings.channels not in (None, count):
        door.refuse(ValueError, f"tensor makes frames of {count} channels, but {told} {settings.channels} entries")
    return count


def _canvas_margins(
    door: Door, settings: FrameSettings, canvas: tuple[int, int], frame: tuple[int, int]
) -> tuple[int, int]:
    """Rows above and columns left of a frame to cut out."""
    shown = f"frame ({show(frame[0])}, {show(frame[1])})"
    if settings.size is None and frame != canvas:
        rule = f"{shown} is not the canvas {show(canvas)} that tensor makes"
        door.refuse(ValueError, f"{rule}; without size nothing was padded")
    if any(extent > whole for extent, whole in zip(frame, canvas)):
        door.refuse(ValueError, f"{shown} is larger than size {show(settings.size)}")
    return (canvas[0] - frame[0]) // 2, (canvas[1] - frame[1]) // 2

"""A coverage-guided fuzzer of the public functions, with the promise as its oracle.

    python tests/stress/fuzz.py [--minutes 20] [--corpus DIRECTORY] [libFuzzer options]

From the bytes that libFuzzer makes up comes a call that `calls.py` draws, legal; then none, one or more of its
arguments are replaced by junk. It has to return what `s2dq.reference` gives, bit by bit, or raise exactly TypeError,
ValueError or MemoryError with one line that names the function, and `out` as it was. A call without junk has to
return. What breaks this ends the run; its bytes are left in a file, and ``fuzz.py FILE`` runs it again.

Needs Atheris (``pip install atheris``; Linux, Python 3.11 to 3.13). Memory is limited to 4 GiB of address space.
"""

import sys

import atheris

with atheris.instrument_imports(include=["s2dq"], exclude=["s2dq.reference", "s2dq.cli", "s2dq.bench"]):
    import s2dq

import argparse
import collections
import inspect
import resource
import time
import tracemalloc  # noqa: F401 - loaded before the memory is limited
import warnings
from pathlib import Path

import calls
import numpy as np

sys.path.append(str(Path(__file__).parents[1]))
from test_bad_input import GOOD, public  # noqa: E402 - a right call of every public function

MEMORY = 4 << 30
# Results of more than these bytes are not compared: the twin would take seconds.
MUCH = 1 << 24
counts = collections.Counter()


class Bytes(calls.Source):
    """Draws from the fuzzer's bytes."""

    def __init__(self, provider):
        self._provider = provider

    def integer(self, low, high):
        return self._provider.ConsumeIntInRange(low, high)


# ------------------------------------------------------------------------------------------------------ junk

INTEGERS = (0, 1, 2, 3, 4, 5, 7, 8, 16, 100, -1, -2, 127, 128, 255, 256, 65536, 2**31 - 1, 2**31, 2**32, 2**62,
            2**63 - 1, 2**63, 2**64, -(2**31), -(2**63), 10**30)
REALS = (0.0, -0.0, 0.5, 1.0, 2.0, -1.0, 1e-46, 1e-45, 5e-324, 1e38, 3.5e38, 1e308, float("inf"), float("-inf"),
         float("nan"))
WORDS = ("", "NHWC", "NCHW", "NWC", "NCW", "NDHWC", "NCDHW", "NCHW_VECT_C", "nhwc", "DCR", "CRD", "focus", "int8",
         "uint8", "float32", "float16", "int32", ">i4", "i4,f4", "\u0662", "2", "\0", "a\nb", "x" * 300)
KINDS = ("?", "i1", "u1", "<i2", ">i4", "i8", "u8", "f2", "f4", ">f8", "g", "c8", "S1", "U2", "O", "M8[s]", "m8[D]",
         "V3", "i4,f4", "(2,)i1")


class Raising:
    """Whatever is asked of it raises."""

    def _raise(self, *arguments, **keywords):
        raise OverflowError("the caller's own\nmethod")

    __index__ = __int__ = __float__ = __len__ = __getitem__ = __iter__ = __bool__ = __eq__ = __array__ = _raise
    __hash__ = __repr__ = __str__ = __format__ = __lt__ = __contains__ = _raise


class Two:
    """An integer, as far as the language goes."""

    def __index__(self):
        return 2

    def __repr__(self):
        return "two\n" * 100


def junk(source, depth=0):
    """Any object at all."""
    kind = source.integer(0, 13 if depth < 3 else 6)
    if kind < 3:
        return source.pick(INTEGERS) if kind else source.integer(-10, 10)
    if kind == 3:
        return source.pick(REALS)
    if kind == 4:
        return source.pick((None, True, False, ..., 1j, b"", b"\2", bytearray(b"\2"), object, np.nan, range(2), len))
    if kind == 5:
        return source.pick(WORDS)
    if kind == 6:
        return source.pick((Raising, Two, object, dict, set, list))()
    if kind == 7:
        if source.integer(0, 1):
            return np.zeros((), source.pick(KINDS[:-1]))[()]
        return np.array(source.pick(INTEGERS[:20]), source.pick(("i8", "f8", "O")))
    if kind == 8:
        return junk_array(source)
    if kind == 9:
        return [[source.integer(-1, 5), source.integer(-1, 5)] for _ in range(source.integer(0, 4))]
    if kind == 10:
        entries = [source.integer(-2, 6) for _ in range(source.integer(0, 4))]
        return np.array(entries, source.pick(("i8", "i1", "f8", "O")))
    entries = [junk(source, depth + 1) for _ in range(source.integer(0, 3))]
    return tuple(entries) if kind == 11 else entries


def junk_array(source):
    """An array that is not what was asked for, or not where."""
    shape = [source.integer(0, 5) for _ in range(source.integer(0, 6))]
    array = np.zeros(shape, source.pick(KINDS))
    way = source.integer(0, 7)
    if way == 0:
        return np.broadcast_to(array, (source.pick((2, 3, 2**20)), *array.shape))
    if way == 1:
        return array.T
    if way == 2 and array.ndim:
        return array[..., ::-1]
    if way == 3:
        return np.ma.MaskedArray(array)
    if way == 4 and array.dtype.kind not in "Mm":
        return memoryview(array)
    if way == 5:
        shape = [source.pick((1, 2, 4, 2**12)) for _ in range(source.integer(2, 4))]
        return np.broadcast_to(np.int8(1), [source.pick((1, 4, 2**14)), *shape])
    if way == 6 and array.dtype.kind in "iu" and array.dtype.itemsize < 8 and array.dtype.isnative:
        return s2dq.QuantizedTensor(array, 0.5, 0) if array.dtype.name in calls.STORED else array
    return array


def made_worse(source, request):
    """The call with some arguments replaced, and some given that were not."""
    arguments = dict(request.arguments)
    changes = source.pick((0, 1, 1, 1, 2))
    for _ in range(changes):
        options = {"space_to_depth": ("channels", "vect", "out_format", "paddings", "pad_value"),
                   "depth_to_space": ("channels", "vect", "out_format", "crops"),
                   "pack_vect_c": ("pad_value",), "unpack_vect_c": ("channels",), "quantize": ("axis",),
                   "Postprocessor": ("frame",)}.get(request.name, ("pad_value",) if "paddings" in arguments else ())
        threads = () if "cessor" in request.name else ("num_threads",)
        name = source.pick((*arguments, *arguments, *options, *threads))
        arguments[name] = junk(source)
    return arguments, changes > 0


def frame_keywords(source):
    """A Preprocessor or Postprocessor whose keywords are junk: it is made, or it is refused."""
    kind = source.pick((s2dq.Preprocessor, s2dq.Postprocessor))
    names = ("scale", "zero_point", "dtype", "mean", "std", "rescale", "input_format", "data_format", "block_size",
             "mode", "vect", "reverse_channels", "size", "pad_value", "num_threads")
    keywords = {"scale": 0.5, **{source.pick(names): junk(source) for _ in range(source.integer(1, 3))}}
    frames = np.zeros((1, 12, 12, 3), "u1" if kind is s2dq.Preprocessor else "i1")

    def make_and_call(**keywords):
        return kind(**keywords)(frames)

    return calls.Request(kind.__name__, make_and_call, keywords, None, None)


# Where a result that is not compared is enough: the functions for other systems that take arrays, and settings.
DOORS = [name for name in GOOD if name.startswith(("compat.", "interop.", "models.ModelInput", "Preprocessor.geometry"))
         and not name.startswith("compat.torch")]


def door(source):
    """A right call of a function for other systems, some of its arguments replaced."""
    name = source.pick(DOORS)
    good = GOOD[name]
    function = good.find() if good.find else public(name)
    arguments, known = dict(good.arguments), list(inspect.signature(function).parameters)
    for _ in range(source.integer(1, 3)):
        arguments[source.pick(known)] = junk(source)
    return calls.Request(good.prefix, function, arguments, None, None)


def tensor_parts(source):
    """A QuantizedTensor of junk; what is made of it has to come back from `dequantize`."""
    arguments = {"values": np.zeros((2, 3), "i1"), "scale": 0.5, "zero_point": 0}
    for _ in range(source.integer(1, 2)):
        arguments[source.pick(("values", "scale", "zero_point", "axis"))] = junk(source)

    def right(given):
        values = given["values"]
        return np.asarray(memoryview(values) if isinstance(values, bytes) else values)  # a buffer, as operators see it

    return calls.Request("QuantizedTensor", s2dq.QuantizedTensor, arguments, right, None)


# ---------------------------------------------------------------------------------------------------- oracle


def plain(value):
    """What the junk that has been accepted stands for: the twin takes integers, not what says it is one."""
    if type(value) in (list, tuple):
        return type(value)(map(plain, value))
    if isinstance(value, memoryview):  # which cannot read elements of another byte order itself
        return np.asarray(value)
    return 2 if type(value) is Two else value


def check(request, arguments, spoiled, with_out, out):
    """AssertionError unless the call is right, or refused as promised."""
    given = {**arguments, "out": out} if with_out else arguments
    try:
        result = calls.values_of(request.function(**given))
    except (TypeError, ValueError, MemoryError) as error:
        message = str(error)
        assert type(error) in (TypeError, ValueError, MemoryError), f"{type(error)}: {message}"
        assert spoiled or type(error) is MemoryError, f"a legal call is refused: {message}"
        assert message.startswith(f"{request.name}: ") and message.isprintable() and len(message) < 1000, repr(message)
        assert not with_out or calls.is_poison(out), f"out was written to before: {message}"
        counts[f"refused: {type(error).__name__}"] += 1
        return
    counts["returned"] += 1
    if request.reference is None or not isinstance(result, np.ndarray) or result.nbytes > MUCH:
        return
    objects = result.dtype.hasobject  # of which any object is one
    stands = {name: value if name == "pad_value" and objects else plain(value) for name, value in given.items()}
    try:
        wanted = request.reference(stands)
    except ValueError as error:
        if result.size or not any(words in str(error) for words in ("is too big", "Maximum allowed dimension")):
            raise
        return  # nothing, in more blocks than NumPy has an array for, which the twin wants on its way
    difference = calls.differs(result, wanted)
    assert not difference, f"{request.name}: {difference}"
    assert not with_out or result is out
    counts["compared"] += 1


def try_one(data):
    source = Bytes(atheris.FuzzedDataProvider(data))
    kind = source.integer(-3, 11)
    if kind < 0:
        request = door(source)
    elif kind == 0:
        request = frame_keywords(source)
    elif kind == 1:
        request = tensor_parts(source)
    else:
        request = calls.draw(source)
    arguments, spoiled, with_out, out = request.arguments, True, False, None
    if kind > 1:
        arguments, spoiled = made_worse(source, request)
        with_out = bool(source.integer(0, 1))
        if with_out:
            legal = request.expected()
            out = calls.poisoned(legal.shape, request.out_dtype)
    try:
        check(request, arguments, spoiled, with_out, out)
    except BaseException:
        print(f"{request.name}({', '.join(f'{name}={told(value)}' for name, value in arguments.items())})"
              f"{' with out' if with_out else ''}", file=sys.stderr)
        raise
    counts["calls"] += 1


def told(value):
    """An argument in words, whatever it does when it is asked for them."""
    if isinstance(value, s2dq.QuantizedTensor):
        return f"QuantizedTensor({told(value.values)}, {value.scale!r}, {value.zero_point!r}, axis={value.axis})"
    if isinstance(value, np.ndarray) and value.size > 16:
        return f"<{type(value).__name__} {value.shape} {value.dtype} strides {value.strides}>"
    try:
        return repr(value)[:300]
    except Exception:
        return f"<{type(value).__name__}>"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--corpus", help="where inputs that reached something new are kept, and begun with")
    options, others = parser.parse_known_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("error")
    warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"calls|s2dq\.reference|numpy")
    corpus = [options.corpus] if options.corpus else []
    for folder in corpus:
        Path(folder).mkdir(parents=True, exist_ok=True)
    begun, last = time.monotonic(), [time.monotonic()]

    def one_input(data):
        try_one(data)
        if time.monotonic() - last[0] > 60:
            last[0] = time.monotonic()
            print(f"{last[0] - begun:.0f} s: {dict(counts)}", flush=True)

    # What is found ends with 1: libFuzzer's own 77 would be NOT RUN in .ci/run.
    limits = [f"-max_total_time={options.minutes * 60:.0f}", "-rss_limit_mb=3000", "-timeout=30", "-error_exitcode=1",
              "-timeout_exitcode=1"]  # fmt: skip
    lengths = ["-max_len=256", "-len_control=0"]
    atheris.Setup([sys.argv[0], *limits, *lengths, *others, *corpus], one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()

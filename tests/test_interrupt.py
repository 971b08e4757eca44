"""Ctrl-C within a third of a second, whatever the kernel does; and interpreters that end while kernels run.

Arrays of 4 GiB are files of 16 MiB, mapped over and over: even the fastest call takes longer than the answer may. On
the slowest paths it would take minutes.
"""

import sys

import pytest

from guarded import PATIENCE, run_child, usual_delay
from s2dq import _kernels

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or sys.maxsize < 2**32, reason="needs memfd_create and a 64-bit address space"
)
LIMIT = 0.3  # seconds


# -------------------------------------------------------------------- functions that travel into the children


def long_calls():
    """Calls by name: the operators in their fastest and slowest ways, packing, conversions, frames."""
    import numpy as np

    import s2dq
    from guarded import Ring

    noise, ring = Ring(2**24, 2**8), Ring(2**24, 2**8)
    noise.ring[...] = noise.tail[...] = np.random.default_rng(20250301).integers(-128, 128, 2**24, np.int8)
    x, out = noise.all, ring.all
    source, target = x.view(np.uint8), out.view(np.uint8)
    scales = np.linspace(0.01, 2, 64)

    def view(array, dtype, *shape):
        size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        return array[:size].view(dtype).reshape(shape)

    frames = view(source, np.uint8, 1024, 1024, 1024, 4)
    levels = view(source, np.float32, 256, 1024, 1024, 4)
    pre = s2dq.Preprocessor(scale=1 / 64, zero_point=-3, mean=0.4, std=0.3, block_size=2)
    rgb = s2dq.Preprocessor(dtype="float32", mean=(0.4, 0.5, 0.4), std=0.3, data_format="NCHW")
    line = s2dq.Preprocessor(scale=1 / 64, block_size=(1, 2))
    pixel = s2dq.Preprocessor(scale=1 / 64)
    plane = s2dq.Preprocessor(scale=1 / 64, input_format="NCHW")
    post = s2dq.Postprocessor(scale=1 / 64, zero_point=-3, mean=0.4, std=0.3, block_size=2)
    q = s2dq.QuantizedTensor(view(x, np.int8, 2**26, 64), scales, np.arange(64), axis=1)
    turned = x.reshape(2048, 2048, 4, 256).transpose(3, 2, 1, 0)  # its bytes lie a MiB apart
    lines = s2dq.QuantizedTensor(turned[:32], np.linspace(0.01, 2, 2048), np.arange(2048) % 99, axis=2)
    shuffled = view(x, ">f8", 2**15, 2**14).T
    small = s2dq.QuantizedTensor(view(x, np.int8, 2**24, 64), scales, np.arange(64), axis=1)
    return {
        "s2d": lambda n: s2dq.space_to_depth(
            x.reshape(1024, 1024, 1024, 4), 2, out=out.reshape(1024, 512, 512, 16), num_threads=n),
        "s2d turned": lambda n: s2dq.space_to_depth(
            turned, 2, "NCHW", mode="CRD", out_format="NHWC", out=out.reshape(256, 1024, 1024, 16), num_threads=n),
        "d2s focus": lambda n: s2dq.depth_to_space(
            x.reshape(256, 1024, 1024, 16), 2, mode="focus", out=out.reshape(256, 2048, 2048, 4), num_threads=n),
        "s2b": lambda n: s2dq.space_to_batch_nd(
            x.reshape(64, 8192, 8192), [2, 2], [[0, 0]] * 2, out=out.reshape(256, 4096, 4096), num_threads=n),
        "b2s": lambda n: s2dq.batch_to_space_nd(
            x.reshape(256, 4096, 4096), [2, 2], [[0, 0]] * 2, out=out.reshape(64, 8192, 8192), num_threads=n),
        "one row": lambda n: s2dq.space_to_depth(
            x.reshape(1, 1, -1, 1), (1, 2), out=out.reshape(1, 1, -1, 2), num_threads=n),
        "pack": lambda n: s2dq.pack_vect_c(
            x.reshape(1024, 4, 1024, 1024), out=out.reshape(1024, 1, 1024, 1024, 4), num_threads=n),
        "unpack": lambda n: s2dq.unpack_vect_c(
            x.reshape(1024, 1, 1024, 1024, 4), out=out.reshape(1024, 4, 1024, 1024), num_threads=n),
        "quantize": lambda n: s2dq.quantize(view(source, np.float32, 2**24, 64), scales, 3, axis=1,
                                            out=view(out, np.int8, 2**24, 64), num_threads=n),
        "quantize turned": lambda n: s2dq.quantize(shuffled, 0.1, 3, "int16", out=view(target, np.int16, 2**14, 2**15),
                                                   num_threads=n),
        "dequantize": lambda n: s2dq.dequantize(small, out=view(target, np.float32, 2**24, 64), num_threads=n),
        "requantize turned": lambda n: s2dq.requantize(
            s2dq.QuantizedTensor(turned, 0.2, 3), 0.3, 1, out=out.reshape(turned.shape), num_threads=n),
        # Zero points along an axis: padded before it is moved.
        "s2d padded": lambda n: s2dq.space_to_depth(
            lines, (1, 2), "NCHW", paddings=[[0, 0], [2, 2]], num_threads=n),
        "requantize": lambda n: s2dq.requantize(q, 0.3, 1, out=view(out, np.int8, 2**26, 64), num_threads=n),
        "preprocess": lambda n: pre(frames, out.reshape(1024, 512, 512, 16)),
        "preprocess floats": lambda n: rgb(levels[..., :3], view(target, np.float32, 256, 3, 1024, 1024)),
        "preprocess one line": lambda n: line(
            view(source, np.float32, 1, 1, 2**28, 4), view(out, np.int8, 1, 1, 2**27, 8)),
        "preprocess one pixel": lambda n: pixel(
            view(source, np.float32, 1, 1, 1, 2**28), view(out, np.int8, 1, 1, 1, 2**28)),
        "preprocess planes of one pixel": lambda n: plane(
            view(source, np.float32, 1, 2**28, 1, 1), view(out, np.int8, 1, 1, 1, 2**28)),
        "postprocess": lambda n: post(x.reshape(1024, 512, 512, 16), target.reshape(1024, 1024, 1024, 4)),
    }


def right_answers():
    """Results of a few small calls, of every kind."""
    import numpy as np

    import s2dq

    x = np.arange(2**20, dtype=np.uint32).view(np.int8).reshape(1, 1024, 1024, 4)
    q = s2dq.quantize(x.astype(np.float32), 0.3, 1, num_threads=2)
    pre = s2dq.Preprocessor(scale=0.5, block_size=2, num_threads=2)
    return [result.tobytes() for result in (s2dq.space_to_depth(x, 2, num_threads=2), q.values, q.dequantize(),
                                            pre(x.view(np.uint8)), s2dq.pack_vect_c(x, "NHWC", num_threads=2))]


def interrupter():
    """A process that sends this one SIGINT so many hundredths of a second after it is asked to. Returns how to ask, and
    when it was sent."""
    import os
    import signal
    import struct
    import time

    signal.signal(signal.SIGINT, signal.default_int_handler)  # what shells start behind their back ignores it
    asked, ask = os.pipe()
    told, tell = os.pipe()
    pid = os.getpid()
    if not os.fork():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.close(ask)
        os.close(told)
        while moment := os.read(asked, 1):
            time.sleep(moment[0] / 100)
            os.write(tell, struct.pack("d", time.monotonic()))
            os.kill(pid, signal.SIGINT)
        os._exit(0)
    os.close(asked)
    os.close(tell)
    return lambda moment=5: os.write(ask, bytes([moment])), lambda: struct.unpack("d", os.read(told, 8))[0]


def interrupt_all(threads, limit):
    """For every call: how long it takes from the signal to KeyboardInterrupt, and whether it ended before."""
    import time
    from functools import partial

    ask, when = interrupter()
    import s2dq
    from guarded import usual_delay
    from s2dq import _kernels

    expected = right_answers()
    s2dq.set_num_threads(threads)
    turns = {}

    def interrupt(name, call):
        turns[name] = 0
        try:
            ask(150 if name == "s2d padded" else 5)  # not while the padding is written, which takes a second
            while True:
                call(threads)
                turns[name] += 1
        except KeyboardInterrupt:
            took = time.monotonic() - when()
        if right_answers() != expected:
            raise AssertionError(f"wrong bytes after {name} was interrupted")
        return took

    for name, call in long_calls().items():
        took = usual_delay(partial(interrupt, name, call), limit)
        print(name, took, turns[name], _kernels.isa(), sep=": ")


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("isa", dict.fromkeys((_kernels.isa(), "portable")))
def test_interrupt_is_answered(isa, threads):
    """... and the next calls are right."""
    helpers = (long_calls, right_answers, interrupter)
    limit = LIMIT * PATIENCE
    output = run_child(interrupt_all, threads, limit, helpers=helpers, timeout=240, env={"S2DQ_ISA": isa})
    lines = [line.split(": ") for line in output.splitlines()]
    assert len(lines) == 20
    assert {used for *_, used in lines} == {isa}
    late = {name: took for name, took, *_ in lines if not 0 <= float(took) < limit}
    assert not late, f"seconds from the signal to KeyboardInterrupt, {threads} threads"
    # The signal came while the first call ran, but for those that the machine is too fast for.
    assert sum(int(ended) == 0 for _, _, ended, _ in lines) >= 10, output


def raising(kind, message):
    """When a handler of SIGALRM raised that, so far."""
    import signal
    import time

    raised = []

    def handler(*_):
        raised.append(time.monotonic())
        raise kind(message)

    signal.signal(signal.SIGALRM, handler)
    return raised


def raise_from_a_handler(limit):
    """For every call, not made before and made before: what is raised while it runs, and how late."""
    import signal
    import time
    from functools import partial

    from guarded import usual_delay
    from s2dq import operators

    calls = long_calls()
    raised = raising(TimeoutError, "too late")
    seen = {}  # of a call: its answer, and how often it ended before

    def interrupt(name, call, new):
        if new:
            operators.program_of.cache_clear()
        ended = 0
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            while len(raised) == 0:
                call(1)
                ended += 1
            answer = "nothing"
        except BaseException as error:
            error = error.__cause__ or error  # of what comes while the arguments are still being checked
            answer = type(error).__name__ + str(error)
        seen[name] = answer, ended
        return time.monotonic() - raised.pop()

    for name, call in calls.items():
        for new in (True, False):
            took = usual_delay(partial(interrupt, name, call, new), limit)
            answer, ended = seen[name]
            print(name, answer, took, ended, sep=": ")


def test_what_a_handler_raises_ends_the_call():
    """Not only KeyboardInterrupt: a deadline, for instance. The call is not begun again."""
    output = run_child(raise_from_a_handler, LIMIT * PATIENCE, helpers=[long_calls, raising], timeout=240)
    lines = [line.split(": ") for line in output.splitlines()]
    assert len(lines) == 40
    assert {answer for _, answer, *_ in lines} == {"TimeoutErrortoo late"}, lines
    assert all(float(took) < LIMIT * PATIENCE for *_, took, _ in lines), lines
    assert sum(int(ended) == 0 for *_, ended in lines) >= 20, lines


def raise_memory_error_from_a_handler():
    """Calls that are remembered, of which one without memory for its scratch is tried again."""
    import signal

    calls = long_calls()
    raised = raising(MemoryError, "of the handler")
    for name in ("s2d", "preprocess"):
        calls[name](1)
        raised.clear()
        answer = "nothing"
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            while not raised:
                calls[name](1)
        except MemoryError as error:
            answer = str(error)
        print(name, answer, sep=": ")


def test_memory_error_of_a_handler_ends_a_call_that_is_remembered():
    output = run_child(raise_memory_error_from_a_handler, helpers=[long_calls, raising], timeout=120)
    assert output == "s2d: of the handler\npreprocess: of the handler\n"


def raise_from_a_handler_while_arguments_are_checked():
    """Short calls not made before, of which the check and the plan take longer than the kernel."""
    import signal

    import numpy as np

    import s2dq

    raised = raising(ValueError, "too late")

    def wait():  # by itself: what is raised in a loop that ends a try is not caught there by Python 3.13
        while not raised:
            pass

    x = np.zeros((1, 64, 64, 1), np.int8)
    s2dq.space_to_depth(x, [2, 2])  # the first one imports, and the import system has exceptions of its own
    ended, lost = 0, 0
    for k in range(400):
        raised.clear()
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.0001 * (1 + k % 8))
            s2dq.space_to_depth(x, 2, paddings=[[2 * k, 0], [0, 0]])
            lost += bool(raised)
            wait()
        except ValueError as error:
            assert str(error) == "too late", error
            ended += 1
        except TypeError as error:
            assert str(error.__cause__) == "too late", error
            ended += 1
    print(ended, lost)


def test_what_a_handler_raises_while_arguments_are_checked_is_not_lost():
    output = run_child(raise_from_a_handler_while_arguments_are_checked, helpers=[raising], timeout=120)
    assert output.split() == ["400", "0"]


def interrupt_main_while_another_computes():
    import threading
    import time

    ask, when = interrupter()
    import numpy as np

    import s2dq

    expected = right_answers()
    x = np.arange(2**26, dtype=np.uint32).view(np.int8).reshape(1, 8192, 8192, 4)
    results, stop = [], threading.Event()

    def work():
        while not stop.is_set():
            results.append(s2dq.space_to_depth(x, 2, num_threads=2)[0, -1, -1].tobytes())

    thread = threading.Thread(target=work)
    thread.start()
    try:
        ask()
        while True:
            time.sleep(10)
    except KeyboardInterrupt:
        took = time.monotonic() - when()
    stop.set()
    thread.join()
    last = x[0, -2:, -2:].tobytes()
    print(took, bool(results) and set(results) == {last}, right_answers() == expected)


def test_interrupt_of_the_main_thread_while_another_computes():
    def interrupt():
        took, results, after = run_child(
            interrupt_main_while_another_computes, helpers=(interrupter, right_answers)).split()  # fmt: skip
        assert (results, after) == ("True", "True"), "the call of the other thread was disturbed"
        return float(took)

    assert usual_delay(interrupt, LIMIT * PATIENCE) < LIMIT * PATIENCE


# ------------------------------------------------------------------------------------------ the interpreter's end


def exit_while_threads_compute(threads, how, group):
    import sys
    import threading

    calls = list(long_calls().values())[group::3]
    started = threading.Barrier(len(calls) + 1)

    def work(call):
        started.wait()
        while True:
            call(threads)

    for call in calls:
        threading.Thread(target=work, args=[call], daemon=True).start()
    started.wait()
    print("ended", flush=True)
    if how == "exit":
        sys.exit(0)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("how", ["exit", "end"])
@pytest.mark.parametrize("group", range(3))
def test_daemon_threads_at_the_end_of_the_interpreter(threads, how, group):
    """`run_child` fails where the exit code is not 0."""
    output = run_child(exit_while_threads_compute, threads, how, group, helpers=(long_calls,))
    assert output == "ended\n"

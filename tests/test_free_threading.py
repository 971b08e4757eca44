"""Many Python threads on the same plans, tables, tensors and settings: each gets its own result, and the right one.

On a free-threaded Python they run at the same time; elsewhere they change places as often as the interpreter lets them.
"""

import sys
import sysconfig
import threading
import time

import numpy as np
import pytest

import s2dq
from guarded import run_child
from s2dq import _kernels, _lookup, operators, reference

pytestmark = pytest.mark.thread_unsafe(reason="starts threads of its own, and changes what all threads share")
THREADS = 8
SECONDS = 0.7


@pytest.fixture(autouse=True)
def settings_stay():
    """Threads change places often, and no setting outlives its test."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)
    s2dq.set_num_threads(None)


def hammer(*works, count=THREADS, seconds=SECONDS):
    """Run the works on `count` threads, in turn, again and again until the time is over; all start at once.

    A work is a function of (thread, turn). The first exception of any thread is raised here.
    """
    errors, turns, start = [], [0] * count, threading.Barrier(count)

    def run(number):
        try:
            start.wait()
            end = time.monotonic() + seconds
            while not errors and (time.monotonic() < end or turns[number] < 3):
                works[number % len(works)](number, turns[number])
                turns[number] += 1
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"
    if errors:
        raise errors[0]
    assert min(turns) >= 3


def same(found, expected):
    np.testing.assert_array_equal(found, expected, strict=True)


def numbered(shape, dtype="int8", first=0):
    return (np.arange(np.prod(shape)) + first).reshape(shape).astype(dtype)


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this Python always has its GIL")
def test_the_gil_stays_off():
    assert run_child(print_gil).split() == ["False", "False"]


def print_gil():
    import sys
    import warnings

    before = sys._is_gil_enabled()
    warnings.simplefilter("error")  # an extension that turns it on says so
    import numpy as np

    import s2dq

    s2dq.space_to_depth(np.zeros((1, 2, 2, 1), np.int8), 2)
    print(before, sys._is_gil_enabled())


def test_one_operator_while_its_memory_is_cleared():
    """The same call, calls that push it out, and clears of everything that is remembered."""
    x = numbered((1, 4, 6, 3))
    blocks = {(bh, bw): reference.space_to_depth(x, (bh, bw)) for bh in (1, 2, 4) for bw in (1, 2, 3, 6)}

    def calls(number, turn):
        out = np.empty((1, 2, 3, 12), np.int8)
        for block, expected in blocks.items():
            same(s2dq.space_to_depth(x, block), expected)
            same(s2dq.space_to_depth(x, list(block)), expected)
        assert s2dq.space_to_depth(x, 2, out=out) is out
        same(out, blocks[2, 2])
        with pytest.raises(ValueError, match="height 4 is not divisible by block_size 3"):
            s2dq.space_to_depth(x, 3)

    def crowd(number, turn):
        for vect in range(1, 100):
            same(s2dq.space_to_depth(x, (2, 3), vect=vect), blocks[2, 3])

    def clear(number, turn):
        operators._space_to_depth.clear()
        operators.program_of.cache_clear()
        same(s2dq.space_to_depth(x, 2), blocks[2, 2])

    hammer(calls, calls, crowd, clear)
    assert len(operators._space_to_depth.calls) <= 64 + THREADS


def test_one_plan_by_many_teams():
    """A chained plan with scratch rows, in teams of every size, and a cap that others change."""
    x = numbered((1, 128, 512, 9), first=3)
    expected = reference.space_to_depth(x, 2, out_format="NCHW_VECT_C")

    def calls(number, turn):
        same(s2dq.space_to_depth(x, 2, out_format="NCHW_VECT_C", num_threads=(None, 1, 2, 7)[turn % 4]), expected)

    def caps(number, turn):
        s2dq.set_num_threads((1, 2, 3, None)[turn % 4])
        assert s2dq.get_num_threads() >= 1

    hammer(calls, calls, calls, caps)


def test_one_quantized_tensor():
    """Requantized, dequantized, moved, compared and printed by all threads, while tables are forgotten."""
    values = numbered((1, 16, 16, 4), first=-7)
    single = s2dq.QuantizedTensor(values, 0.25, 3)
    several = s2dq.QuantizedTensor(values, [0.5, 0.25, 0.125, 2.0], [0, 1, -2, 3], axis=3)
    numbers = reference.dequantize(values, 0.25, 3)
    scales = [0.1 + k / 100 for k in range(9)]
    # More tables than the memory of them, and the first answers, of one thread.
    first = {scale: s2dq.requantize(single, scale, 5).values for scale in scales}
    moved = s2dq.space_to_depth(several, 2)
    back = several.dequantize()

    def calls(number, turn):
        scale = scales[(number + turn) % len(scales)]
        same(s2dq.requantize(single, scale, 5).values, first[scale])
        same(s2dq.dequantize(single), numbers)
        same(several.dequantize(num_threads=2), back)
        assert s2dq.space_to_depth(several, 2) == moved
        assert s2dq.depth_to_space(moved, 2) == several
        assert repr(single) == repr(s2dq.QuantizedTensor(values, 0.25, 3))
        same(s2dq.quantize(numbers, 0.25, 3).values, values)

    def clear(number, turn):
        _lookup._best.cache_clear()
        calls(number, turn)

    hammer(calls, calls, calls, clear)


def test_one_preprocessor():
    """Frames of several sizes through one object that remembers them."""
    pre = s2dq.Preprocessor(scale=1 / 64, zero_point=-3, block_size=2, size=12, mean=[0.4, 0.5, 0.6], std=0.25)
    post = pre.inverse()
    frames = [numbered((h, w, 3), np.uint8, h * w) for h in range(1, 13, 2) for w in range(1, 13, 3)]
    expected = [reference.preprocess(frame, **{name: getattr(pre, name) for name in KEYWORDS}) for frame in frames]

    def calls(number, turn):
        at = (5 * number + turn) % len(frames)
        found = pre(frames[at])
        same(found, expected[at])
        assert post(found, frame=frames[at].shape[:2]).shape == (1, *frames[at].shape)

    def clear(number, turn):
        pre._memo.clear()
        calls(number, turn)

    hammer(calls, calls, calls, clear)


KEYWORDS = ("scale", "zero_point", "dtype", "mean", "std", "rescale", "block_size", "size", "pad_value")


def test_arguments_that_other_threads_change():
    """Lists of arguments that change all the time: what one of their states gives, or one good exception."""
    x = numbered((1, 4, 4, 2))
    block, paddings = [2, 2], [[0, 0], [0, 0]]
    shapes = {reference.space_to_batch_nd(x, [bh, bw], [[0, 0], [0, right]]).shape
              for bh in (1, 2) for bw in (1, 2) for right in (0, 2)}

    def change(number, turn):
        if number:  # one thread changes them: two would break each other's steps
            return calls(number, turn)
        block[turn % 2] = 1 + turn // 2 % 2
        paddings[1] = [0, 2 * (turn % 2)]
        if turn % 16 == 0:
            block.append(1)
            del block[2:]
            paddings.clear()
            paddings.extend([[0, 0], [0, 0]])

    def calls(number, turn):
        try:
            assert s2dq.space_to_batch_nd(x, block, paddings).shape in shapes
        except (ValueError, TypeError) as error:
            assert str(error).startswith("space_to_batch_nd: ")

    hammer(change, calls, calls, calls)


def test_large_results_of_many_threads_are_apart():
    """The memory of one freed result is handed to one thread."""
    shape = (1, 2, 2, 9 << 20)

    def calls(number, turn):
        x = np.full(shape, number, np.int8)
        first = s2dq.space_to_depth(x, 2)
        second = s2dq.space_to_depth(x, 2)
        assert (first == number).all() and (second == number).all()

    hammer(calls, count=3, seconds=0.5)


def test_threads_that_come_and_go():
    """What a thread keeps for itself ends with it, and the next one starts afresh."""
    x = numbered((1, 64, 64, 64), np.int32)
    expected = reference.space_to_depth(x, 4)
    teams = []

    def work():
        same(s2dq.space_to_depth(x, 4, num_threads=2), expected)
        teams.append(_kernels.last_team_size())

    for _ in range(30):
        pair = [threading.Thread(target=work) for _ in range(2)]
        for thread in pair:
            thread.start()
        for thread in pair:
            thread.join(60)
    assert len(teams) == 60 and set(teams) == {min(2, s2dq.get_num_threads())}

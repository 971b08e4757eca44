"""Tensors of more than 2**31 and 2**32 elements, in little memory.

One file of 4 MiB is mapped a thousand times over a reservation of 4 GiB (a *ring*), and a second one behind it, from
past the 2**32nd byte to the end (the *tail*). The tensor is as large as it says; what a call does in its tail cannot
be done by another offset, and an offset that wrapped in 31 or 32 bits leaves the memory or misses the tail.
"""

import sys

import pytest

from guarded import run_child

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or sys.maxsize < 2**32, reason="needs memfd_create and a 64-bit address space"
)


def move_large_tensors():
    """Print name, elements of the source and elements of the result of every case, checked."""
    import ctypes
    import mmap
    import os
    import signal
    from math import prod

    import numpy as np

    import s2dq

    period, times = 4190208, 1027  # a frame of 704 x 1984 x 3 bytes; 1023 pages
    size = period * times
    assert (size - period) > 2**32
    map_fixed, map_noreserve, readable, anonymous = 0x10, 0x4000, mmap.PROT_READ | mmap.PROT_WRITE, -1
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]

    def memory_map(*args):
        address = libc.mmap(*args)
        if address == ctypes.c_void_p(-1).value:
            raise OSError(ctypes.get_errno(), "mmap")
        return address

    class Memory:
        """`size` bytes: a ring of copies of `ring`, then `tail`."""

        def __init__(self):
            start = memory_map(None, size, 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | map_noreserve, anonymous, 0)
            files = [os.memfd_create("ring"), os.memfd_create("tail")]
            for file in files:
                os.ftruncate(file, period)
            for i in range(times):
                file = files[i == times - 1]
                memory_map(start + i * period, period, readable, mmap.MAP_SHARED | map_fixed, file, 0)
            self.all = np.frombuffer((ctypes.c_uint8 * size).from_address(start), np.int8)
            self.ring, self.tail = self.all[:period], self.all[-period:]

        def array(self, *shape):
            assert prod(shape) == size, shape
            return self.all.reshape(shape)

    source, target = Memory(), Memory()
    source.ring[...] = 7
    source.tail[...] = np.random.default_rng(20250301).integers(-128, 128, period, np.int8)

    def report(name, x, out, found, expected):
        np.testing.assert_array_equal(found, expected, err_msg=name)
        print(name, x.size, out.size, sep=": ")
        target.ring[...] = target.tail[...] = -91

    target.ring[...] = target.tail[...] = -91

    # Whole frames, both sides large.
    frames = source.array(times, 704, 1984, 3)
    out = s2dq.space_to_depth(frames, 2, out=target.array(times, 352, 992, 12))
    assert (target.ring == 7).all()
    expected = frames[-1].reshape(352, 2, 992, 2, 3).transpose(0, 2, 1, 3, 4).reshape(352, 992, 12)
    report("s2d", frames, out, out[-1], expected)

    # One frame, as tall as all of them; every second row goes to the far half.
    tall = source.array(1, times * 704, 1984, 3)
    out = s2dq.space_to_batch_nd(tall, [2, 1], [[0, 0], [0, 0]], out=target.array(2, times * 352, 1984, 3))
    assert (target.ring == 7).all()
    report("s2b", tall, out, out[1, -704:], tall[0, -1407::2])

    # Deep pixels of a tall image.
    deep = source.array(1, times * 352, 992, 12)
    out = s2dq.depth_to_space(deep, 2, out=target.array(1, times * 704, 1984, 3), num_threads=2)
    rows = deep[0, -352:].reshape(352, 992, 2, 2, 3)
    assert (target.ring == 7).all()
    report("d2s", deep, out, out[0, -704:].reshape(352, 2, 992, 2, 3)[:, 1, :, 0], rows[:, :, 1, 0])

    # A source of a few bytes, broadcast.
    line = np.random.default_rng(20250302).integers(-128, 128, (1, 3, 1, 1056), np.int8)
    x = np.broadcast_to(line, (times, 3, 992, 1056))
    out = s2dq.pack_vect_c(x, out=target.array(times, 1, 992, 1056, 4))
    expected = np.zeros((992, 1056, 4), np.int8)
    expected[..., :3] = line[0, :, 0].T
    np.testing.assert_array_equal(target.ring, expected.ravel())
    report("pack broadcast", x, out, target.tail, expected.ravel())

    # Crops that leave the end of a large source.
    x = source.array(2, times * 352, 1984, 3)
    out = s2dq.batch_to_space_nd(x, [2, 1], [[times * 704 - 6, 0], [0, 0]])
    expected = np.stack([x[0, -3:], x[1, -3:]], axis=1).reshape(1, 6, 1984, 3)
    report("b2s cropped", x, out, out, expected)

    x = source.array(1, 3, times * 176, 1984, 4)
    crops = [[times * 352 - 2, 0], [0, 2]]
    out = s2dq.depth_to_space(x, 2, "NCHW_VECT_C", out_format="NHWC", crops=crops)
    channels = x[0, :, -1].transpose(1, 0, 2).reshape(1984, 2, 2, 3)  # word by word, then (by, bx, c)
    expected = channels.transpose(1, 0, 2, 3).reshape(1, 2, 3968, 3)[:, :, :-2]
    report("d2s from words, cropped", x, out, out, expected)

    # Ctrl-C is answered between slabs: long before the tail.
    def interrupt(number, frame):
        raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, interrupt)
    for threads in (1, 2):
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        try:
            s2dq.space_to_depth(frames, 2, out=target.array(times, 352, 992, 12), num_threads=threads)
        except KeyboardInterrupt:
            signal.setitimer(signal.ITIMER_REAL, 0)
            assert (target.tail == -91).all()
            print("interrupted", size, size, sep=": ")

    # One lane of 64.
    x = source.array(1, 1, times * 66, 992, 64)
    out = s2dq.unpack_vect_c(x, channels=1)
    report("unpack", x, out, out, x[:, :, :, :, 0])


def test_large_tensors():
    output = run_child(move_large_tensors, timeout=120)
    cases = [line.split(": ") for line in output.splitlines()]
    assert [name for name, *_ in cases].count("interrupted") == 2, f"Ctrl-C was not answered:\n{output}"
    assert len(cases) == 9, output
    for name, *sizes in cases:
        assert max(map(int, sizes)) > 2**32, f"{name} is not large: {sizes}"

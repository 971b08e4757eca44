"""Tensors of more than 2**31 and 2**32 elements, in little memory.

One file of 4 MiB is mapped a thousand times over a reservation of 4 GiB (a *ring*), and a second one behind it, from
past the 2**32nd byte to the end (the *tail*). The tensor is as large as it says; what a call does in its tail cannot
be done by another offset, and an offset that wrapped in 31 or 32 bits leaves the memory or misses the tail.
"""

import sys

import pytest

from guarded import SANITIZED, run_child

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or sys.maxsize < 2**32, reason="needs memfd_create and a 64-bit address space"
)


def move_large_tensors():
    """Print name, elements of the source and elements of the result of every case, checked."""
    import signal

    import numpy as np

    import s2dq
    from guarded import Ring

    period, times = 4190208, 1027  # a frame of 704 x 1984 x 3 bytes; 1023 pages
    size = period * times
    assert (size - period) > 2**32
    source, target = Ring(period, times), Ring(period, times)
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
    # The near half ends in the ring: the even rows of the tail are there, or what was written over them.
    start, stop = target.ring.reshape(2, 352, 1984, 3)
    assert ((start == 7) | (start == tall[0, -704::2])).all()
    assert (stop == 7).all()
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


def convert_large_tensors():
    """The same for what computes: quantization and frames."""
    import numpy as np

    import s2dq
    from guarded import Ring
    from s2dq import reference

    period, times = 4190208, 1027
    source, target = Ring(period, times), Ring(period, times)
    source.ring[...] = 7
    source.tail[...] = np.random.default_rng(20250301).integers(-128, 128, period, np.int8)

    def report(name, size, found, ring, tail):
        """`found` is the result; its first period is compared with what the ring makes, its last with the tail."""
        np.testing.assert_array_equal(found.ravel()[: ring.size], ring.ravel(), err_msg=name)
        np.testing.assert_array_equal(found.ravel()[-tail.size :], tail.ravel(), err_msg=name)
        print(name, size, found.size, sep=": ")
        target.ring[...] = target.tail[...] = -91

    # A source of a few bytes, broadcast, with parameters along its last axis.
    line = np.random.default_rng(20250302).standard_normal((1, 1, 992)).astype(np.float32)
    scale = np.linspace(0.01, 0.1, 992, dtype=np.float32)
    x = np.broadcast_to(line, (times, period // 992, 992))
    q = s2dq.quantize(x, scale, 3, axis=2, out=target.array(*x.shape))
    expected = np.broadcast_to(reference.quantize(line, scale, 3, axis=2), (1, *x.shape[1:]))
    report("quantize", x.size, q.values, expected, expected)

    q = s2dq.QuantizedTensor(source.array(times, period), 0.5, -3)
    again = s2dq.requantize(q, 0.25, 5, "uint8", out=target.array(times, period).view(np.uint8))
    parts = [reference.requantize(part, 0.5, -3, 0.25, 5, np.uint8) for part in (source.ring, source.tail)]
    report("requantize", q.values.size, again.values, *parts)

    numbers = Ring(period, times, np.float32)
    parts = [reference.dequantize(part, 0.5, -3) for part in (source.ring, source.tail)]
    report("dequantize", q.values.size, s2dq.dequantize(q, out=numbers.array(times, period)), *parts)

    keywords = {"scale": 0.02, "zero_point": -5, "block_size": 2, "data_format": "NCHW"}
    frames = source.array(times, 704, 1984, 3)
    out = s2dq.Preprocessor(**keywords)(frames.view(np.uint8), target.array(times, 12, 352, 992))
    parts = [reference.preprocess(frames[i : i + 1].view(np.uint8), **keywords) for i in (0, times - 1)]
    report("preprocess", frames.size, out, *parts)

    tensor = source.array(times, 12, 352, 992)
    out = s2dq.Postprocessor(**keywords)(tensor, target.array(times, 704, 1984, 3).view(np.uint8))
    parts = [reference.postprocess(tensor[i : i + 1], **keywords) for i in (0, times - 1)]
    report("postprocess", tensor.size, out, *parts)

    # The other name of each batch operator, and words.
    tall = source.array(1, times * 704, 1984, 3)
    out = s2dq.space_to_batch(tall, [1, 2], [[0, 0], [0, 0]], out=target.array(2, times * 704, 992, 3))
    # Of the first half of the batch the ring may have forgotten all: threads decide what is written last.
    np.testing.assert_array_equal(out[1, -704:], tall[0, -704:].reshape(704, 992, 2, 3)[:, :, 1])
    print("space_to_batch", tall.size, out.size, sep=": ")
    flat = source.array(2, times * 704, 992, 3)
    out = s2dq.batch_to_space(flat, [1, 2], [[times * 704 - 5, 0], [0, 0]])
    np.testing.assert_array_equal(out[0], flat[:, -5:].transpose(1, 2, 0, 3).reshape(5, 1984, 3))
    print("batch_to_space", flat.size, out.size, sep=": ")


def test_conversions_of_large_tensors():
    output = run_child(convert_large_tensors, timeout=240)
    cases = [line.split(": ") for line in output.splitlines()]
    assert [name for name, *_ in cases] == ["quantize", "requantize", "dequantize", "preprocess", "postprocess",
                                            "space_to_batch", "batch_to_space"]
    for name, *sizes in cases:
        assert max(map(int, sizes)) > 2**32, f"{name} is not large: {sizes}"


def ask_for_more_than_there_is(threads):
    """What a result of 64 MiB comes to, function by function, as the address space grows from nothing to enough."""
    import resource

    import numpy as np

    import s2dq

    x = np.zeros((1, 4096, 4096, 4), np.int8)
    x[0, ::7] = 3
    shallow = x.reshape(1, 4, 4096, 4096)
    numbers = np.ones((4096, 4096), np.float32)
    rows, things = np.linspace(0.1, 1, 4096), np.broadcast_to(np.array("an object", object), (1, 4096, 512, 4))
    block, none, team = [2, 2], [[0, 0], [0, 0]], {"num_threads": threads}
    keywords = {"scale": 0.5, "block_size": 2, "num_threads": threads}
    work = {
        "space_to_depth": lambda part: s2dq.space_to_depth(x[:, :part], 2, **team),
        "depth_to_space": lambda part: s2dq.depth_to_space(x[:, :part], 2, **team),
        "space_to_batch_nd": lambda part: s2dq.space_to_batch_nd(x[:, :part], block, none, **team),
        "space_to_batch": lambda part: s2dq.space_to_batch(x[:, :part], block, none, **team),
        "batch_to_space_nd": lambda part: s2dq.batch_to_space_nd(shallow[:, :, :part].transpose(1, 2, 3, 0), block,
                                                                 none, **team),
        "batch_to_space": lambda part: s2dq.batch_to_space(shallow[:, :, :part].transpose(1, 2, 3, 0), block, none,
                                                           **team),
        "pack_vect_c": lambda part: s2dq.pack_vect_c(x[:, :part], "NHWC", **team),
        "unpack_vect_c": lambda part: s2dq.unpack_vect_c(x[:, None, :part], **team),
        "quantize": lambda part: s2dq.quantize(numbers[:part], 0.5, 0, "int32", **team).values,
        "dequantize": lambda part: s2dq.dequantize(s2dq.QuantizedTensor(x[:, :part, :, 0], 0.5, 0), **team),
        "requantize": lambda part: s2dq.requantize(s2dq.QuantizedTensor(x[:, :part], 0.5, 0), 0.25, 0, **team).values,
        "Preprocessor": lambda part: s2dq.Preprocessor(**keywords)(x[:, :part].view(np.uint8)),
        "Postprocessor": lambda part: s2dq.Postprocessor(**keywords)(x[:, :part]),
        # These need memory besides that of their results.
        "space_to_depth with zero points": lambda part: s2dq.space_to_depth(
            s2dq.QuantizedTensor(x[:, :part], rows[:part], np.arange(part) % 99, axis=1), (1, 2),
            paddings=((0, 0), (2, 0)), **team).values,
        "space_to_depth of objects": lambda part: s2dq.space_to_depth(things[:, :part], 2, **team),
    }
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    for name, call in work.items():
        call(16)  # what is loaded on the first call
        refused = 0
        for spare in (0, 1 << 12, 1 << 16, 1 << 20, 8 << 20, 48 << 20, 63 << 20, 100 << 20, 1 << 30):
            with open("/proc/self/statm") as statm:
                used = int(statm.read().split()[0]) * resource.getpagesize()
            message = result = None
            resource.setrlimit(resource.RLIMIT_AS, (used + spare, hard))
            try:
                result = call(4096)
            except MemoryError as error:
                message = str(error)
            finally:
                resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
            if message is None:
                assert spare >= 1 << 20 and result.nbytes >= 1 << 26, (name, spare)
            else:
                refused += 1
                assert spare < 1 << 26 or " " in name, (name, message)
                assert message.startswith(f"{name.split()[0]}: ") and message.isprintable(), (name, message)
            del result
        assert call(16).size, name
        print(refused)


@pytest.mark.skipif(SANITIZED, reason="limits the address space")
@pytest.mark.parametrize("threads", [1, 2, None])
def test_no_memory_is_a_memory_error(threads):
    refused = [int(line) for line in run_child(ask_for_more_than_there_is, threads, timeout=120).split()]
    assert len(refused) == 15
    assert min(refused) >= 5, refused
    assert refused[-2:] == [8, 8], "100 MiB are enough for these results alone"

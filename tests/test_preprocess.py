"""The Preprocessor: its formula level by level, its geometry, and everything it refuses."""

import ctypes
import pickle
import struct
import threading
from itertools import product
from math import prod

import numpy as np
import pytest

import s2dq
from guarded import FLUSHES, rounding_directions, subnormals_are_zero
from s2dq import _kernels, _plan, _validate, operators, reference

IMAGENET = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}


def float32(value):
    """`value` rounded to float32, as a Python float."""
    return struct.unpack("f", struct.pack("f", value))[0]


def expected_level(v, scale, zero_point, mean, std, rescale, lowest, highest):
    """The formula in Python floats: `round` goes half to even."""
    steps = ((v * rescale - mean) / std) / float32(scale)
    return max(lowest, min(highest, round(steps) + zero_point))


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize(
    "settings",
    [
        {"scale": 1 / 255, "zero_point": 0},
        {"scale": 0.0186, "zero_point": 5, **IMAGENET},
        {"scale": 2.0, "zero_point": 1, "rescale": 1.0},  # every odd level is a tie
        {"scale": 1e-6, "zero_point": 100},  # saturates
        {"scale": 0.5, "zero_point": 64, "mean": (1.0, 2.0, 3.0), "std": 0.25, "rescale": -1 / 16},
        {"scale": 0.1, "rescale": 1e308},  # infinities saturate
    ],
)
def test_every_level_of_every_channel(settings, dtype):
    levels = np.arange(256, dtype=np.uint8)
    frame = np.stack([levels] * 3, axis=-1).reshape(16, 16, 3)
    result = s2dq.Preprocessor(dtype=dtype, **settings)(frame)
    assert result.dtype == dtype and result.shape == (1, 16, 16, 3)
    info = np.iinfo(dtype)
    per_channel = {name: np.broadcast_to(settings.get(name, default), 3).tolist()
                   for name, default in (("mean", 0.0), ("std", 1.0))}
    for v, c in product(range(256), range(3)):
        if settings.get("rescale") == 1e308:
            expected = settings.get("zero_point", 0) if v == 0 else info.max
        else:
            expected = expected_level(
                v, settings["scale"], settings.get("zero_point", 0), per_channel["mean"][c], per_channel["std"][c],
                settings.get("rescale", 1 / 255), info.min, info.max,
            )  # fmt: skip
        assert result[0, v // 16, v % 16, c] == expected, f"level {v}, channel {c}"


LAYOUT_CASES = list(product(["NHWC", "NCHW"], ["NHWC", "NCHW", "NCHW_VECT_C"], ["DCR", "CRD", "focus"], [1, 2, (3, 2)]))


@pytest.mark.parametrize(("input_format", "data_format", "mode", "block_size"), LAYOUT_CASES)
def test_agrees_with_reference(rng, input_format, data_format, mode, block_size):
    vects = (4, 32, 3) if data_format == "NCHW_VECT_C" else (3,)
    choices = product(vects, (1, 3, 4), (None, 2), (False, True), (False, True))
    for vect, channels, batch, padded, reverse in choices:
        height, width = (6, 12) if not padded else (5, 9)
        shape = (height, width, channels) if input_format == "NHWC" else (channels, height, width)
        frames = rng.integers(0, 256, shape if batch is None else (batch, *shape)).astype(np.uint8)
        settings = {
            "scale": 0.02, "zero_point": -3, "mean": rng.uniform(0, 1, channels).tolist(),
            "std": rng.uniform(0.1, 1, channels), "input_format": input_format, "data_format": data_format,
            "mode": mode, "block_size": block_size, "vect": vect, "reverse_channels": reverse,
            "size": (6, 12) if padded else None, "pad_value": [10 * c for c in range(channels)],
        }  # fmt: skip
        result = s2dq.Preprocessor(**settings)(frames)
        expected = reference.preprocess(frames, **settings)
        np.testing.assert_array_equal(result, expected, strict=True, err_msg=f"{settings} {frames.shape}")


ONE_TABLE, OWN_TABLES = {"scale": 0.004}, {"scale": 0.02, "mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}


@pytest.mark.parametrize("settings", [ONE_TABLE, OWN_TABLES], ids=["one table", "own tables"])
@pytest.mark.parametrize("data_format", ["NHWC", "NCHW", "NCHW_VECT_C"])
@pytest.mark.parametrize(("block_size", "width"), [(1, 640), (1, 331), (2, 640), (2, 566), (4, 640)])
def test_results_begin_anywhere(rng, settings, data_format, block_size, width):
    """At every distance from a cache line, and nothing is written before or behind them."""
    frame = rng.integers(0, 256, (8, width + width % block_size, 3), dtype=np.uint8)
    settings = {"zero_point": -100, "data_format": data_format, "block_size": block_size, **settings}
    expected = reference.preprocess(frame, **settings)
    pre = s2dq.Preprocessor(**settings)
    memory = np.empty(expected.nbytes + 192, np.int8)
    for start in range(64, 128):
        memory.fill(77)
        pre(frame, out=memory[start : start + expected.nbytes].reshape(expected.shape))
        np.testing.assert_array_equal(memory[start : start + expected.nbytes], expected.reshape(-1))
        assert (memory[:start] == 77).all() and (memory[start + expected.nbytes :] == 77).all()


# Settings whose lines rise from something, saturate at the end, begin late, or are shifted; and their kind of lookup.
LINES = {
    "flip": {"scale": 1 / 255, "zero_point": -128},
    "rises": {"scale": 0.02, "mean": 0.45, "std": 0.225},
    "saturates": {"scale": 0.02, "zero_point": 60, "mean": 0.45, "std": 0.225},
    "begins late": {"scale": 0.005, "zero_point": -128, "mean": 0.2},
    "shifted": {"scale": 0.002},
    "begins late, shifted": {"scale": 0.001, "zero_point": -128, "mean": 0.3},
}


def kind_of(lookup):
    lines = lookup.lines.tolist()
    if lookup.kind == "flip":
        return "flip"
    assert lookup.kind == "line", "found for all of these"
    ends = any((65280 * slope >> 16) + more > 65535 for slope, more, _, _ in lines)
    late, shifted = any(line[2] for line in lines), any(line[3] for line in lines)
    names = {(0, 0): "saturates" if ends else "rises", (1, 0): "begins late", (0, 1): "shifted"}
    return names.get((late, shifted), "begins late, shifted")


@pytest.mark.parametrize("kind", LINES)
@pytest.mark.parametrize("own_tables", [False, True])
def test_pixels_that_stay_as_they_are(rng, kind, own_tables):
    """Any number of channels, in rows of any length, dense or not."""
    for channels, (width, cut) in product(range(1, 19), ((1, 0), (5, 1), (17, 0), (24, 1), (33, 0), (70, 1))):
        settings = {"data_format": "NHWC", **LINES[kind]}
        if own_tables and kind != "flip":
            settings["mean"] = [settings.get("mean", 0.0) + 0.001 * c for c in range(channels)]
        pre = s2dq.Preprocessor(**settings)
        if channels == 1:
            assert kind_of(pre._lookup) == kind, settings
        frames = rng.integers(0, 256, (2, 3, width + 2 * cut, channels), np.uint8)[:, :, cut : width + cut]
        np.testing.assert_array_equal(pre(frames), reference.preprocess(frames, **settings), strict=True,
                                      err_msg=f"{settings} {frames.shape}")


@pytest.mark.parametrize("mode", ["DCR", "CRD", "focus"])
@pytest.mark.parametrize("block_size", [2, (2, 1), (2, 3), (2, 4)])
def test_turned_bits_of_two_rows(rng, mode, block_size):
    """Any number of channels, in rows of any length and where images are cropped; there and back."""
    rows, columns = (2, 2) if block_size == 2 else block_size
    for channels, (blocks, cut) in product((1, 2, 3, 4, 5, 6, 8, 12), ((3, 0), (17, 0), (40, 1), (70, 0))):
        settings = {"data_format": "NHWC", "mode": mode, "block_size": block_size, **LINES["flip"]}
        shape = 2, 3 * rows, columns * blocks + 2 * cut, channels
        frames = rng.integers(0, 256, shape, np.uint8)[:, :, cut : columns * blocks + cut]
        mapped = s2dq.Preprocessor(**settings)(frames)
        np.testing.assert_array_equal(mapped, reference.preprocess(frames, **settings), strict=True,
                                      err_msg=f"{settings} {frames.shape}")
        np.testing.assert_array_equal(s2dq.Postprocessor(**settings)(mapped), frames, strict=True)


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW", "NCHW_VECT_C"])
def test_large_frame_and_threads(rng, data_format):
    frame = rng.integers(0, 256, (2, 1080, 1920, 3)).astype(np.uint8)
    settings = {"scale": 0.02, "block_size": 2, "data_format": data_format, **IMAGENET}
    expected = reference.preprocess(frame, **settings)
    for num_threads in (None, 1, 2):
        result = s2dq.Preprocessor(num_threads=num_threads, **settings)(frame)
        np.testing.assert_array_equal(result, expected, strict=True)


def test_one_table_serves_any_number_of_channels(rng):
    pre = s2dq.Preprocessor(scale=1 / 255, zero_point=-128)
    for channels in (1, 2, 3, 5):
        frame = rng.integers(0, 256, (4, 4, channels)).astype(np.uint8)
        np.testing.assert_array_equal(pre(frame)[0], (frame ^ 0x80).view(np.int8))


def test_spare_lanes_hold_raw_zero_and_padding_the_grey_level():
    pre = s2dq.Preprocessor(scale=1 / 255, zero_point=-128, size=(1, 3), data_format="NCHW_VECT_C", pad_value=255)
    result = pre(np.zeros((1, 1, 3), np.uint8))
    grey, black = [127, 127, 127, 0], [-128, -128, -128, 0]
    assert result.tolist() == [[[[grey, black, grey]]]]


def test_crop_is_read_in_place_and_results_go_into_a_ring(rng):
    video = rng.integers(0, 256, (100, 200, 3)).astype(np.uint8)
    pre = s2dq.Preprocessor(scale=1 / 255, zero_point=-128, block_size=2)
    ring = np.full((4, 20, 30, 12), 99, np.int8)
    slot = ring[2:3]
    crop = video[10:50, 20:80]
    assert pre(crop, out=slot) is slot
    np.testing.assert_array_equal(ring[2:3], reference.preprocess(crop, scale=1 / 255, zero_point=-128, block_size=2))
    assert (ring[[0, 1, 3]] == 99).all()
    mirrored = pre(video[::-1, ::-1])
    np.testing.assert_array_equal(mirrored, pre(np.ascontiguousarray(video[::-1, ::-1])))


@pytest.mark.parametrize(
    ("size", "frame", "offsets"),
    [
        (640, (480, 640), (80, 0)),
        ((5, 7), (2, 4), (1, 1)),  # the odd pixel is at the bottom and right
        ((4, 4), (4, 4), (0, 0)),
        ((4, 4), (0, 3), (2, 0)),
        (None, (3, 9), (0, 0)),
    ],
)
def test_geometry(size, frame, offsets):
    pre = s2dq.Preprocessor(scale=1.0, rescale=1.0, dtype="uint8", size=size, pad_value=255)
    geometry = pre.geometry(*frame)
    assert geometry == offsets and (geometry.top, geometry.left) == offsets
    image = np.full((*frame, 1), 7, np.uint8)
    rows, columns = np.nonzero(pre(image)[0, ..., 0] == 7)
    if image.size:
        assert (rows.min(), columns.min()) == offsets
        assert (rows.max() - rows.min() + 1, columns.max() - columns.min() + 1) == frame


def test_empty_batches_and_frames():
    pre = s2dq.Preprocessor(scale=1.0)
    assert pre(np.zeros((0, 4, 4, 3), np.uint8)).shape == (0, 4, 4, 3)
    assert pre(np.zeros((2, 0, 4, 3), np.uint8)).shape == (2, 0, 4, 3)
    assert pre(np.zeros((2, 4, 4, 0), np.uint8)).shape == (2, 4, 4, 0)


def test_keywords_are_attributes_that_stay(rng):
    pre = s2dq.Preprocessor(scale=0.1, zero_point=3, dtype=np.uint8, size=8, **IMAGENET)
    assert (pre.scale, pre.zero_point, pre.dtype, pre.size, pre.mean) == (0.1, 3, "uint8", (8, 8), IMAGENET["mean"])
    assert pre.rescale == 1 / 255 and pre.data_format == "NHWC" and pre.num_threads is None
    with pytest.raises(AttributeError, match="scale cannot be set"):
        pre.scale = 1.0
    with pytest.raises(AttributeError, match="cannot be deleted"):
        del pre.scale
    assert "scale=0.1" in repr(pre) and "pad_value=114" in repr(pre)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickle(protocol):
    pre = s2dq.Preprocessor(scale=0.1, size=8, pad_value=(1, 2, 3), block_size=(2, 1), **IMAGENET)
    copy = pickle.loads(pickle.dumps(pre, protocol))
    assert copy == pre and hash(copy) == hash(pre) and copy != s2dq.Preprocessor(scale=0.2)
    frame = np.arange(8 * 8 * 3, dtype=np.uint8).reshape(8, 8, 3)
    np.testing.assert_array_equal(copy(frame), pre(frame))


def test_many_threads_share_one(rng):
    pre = s2dq.Preprocessor(scale=0.02, block_size=2, data_format="NCHW_VECT_C", **IMAGENET)
    frames = rng.integers(0, 256, (16, 32, 32, 3)).astype(np.uint8)
    expected = [pre(frame) for frame in frames]
    wrong = []

    def work(i):
        for _ in range(50):
            if not np.array_equal(pre(frames[i]), expected[i]):
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


FRAME = np.zeros((4, 4, 3), np.uint8)
SWAPPED = np.dtype(np.float32).newbyteorder()  # not of this machine


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"scale": None}, ValueError, "scale must be given"),
        ({"scale": 0}, ValueError, "scale must be above 0"),
        ({"scale": -1.0}, ValueError, "scale must be above 0"),
        ({"scale": 5e-324}, ValueError, "float32"),
        ({"scale": 1e300}, ValueError, "float32"),
        ({"scale": float("nan")}, ValueError, "scale must be finite"),
        ({"scale": "1"}, TypeError, "scale must be a real number"),
        ({"scale": True}, TypeError, "scale must be a real number"),
        ({"scale": [0.1, 0.2]}, TypeError, "scale must be a real number"),
        ({"zero_point": 128}, ValueError, "zero_point 128"),
        ({"zero_point": -1, "dtype": "uint8"}, ValueError, "zero_point must be at least 0"),
        ({"zero_point": 1.0}, TypeError, "zero_point must be an integer"),
        ({"dtype": "int16"}, TypeError, "dtype must be int8, uint8, float32 or float16"),
        ({"dtype": "float64"}, TypeError, "dtype must be int8, uint8, float32 or float16"),
        ({"dtype": "float32"}, ValueError, "scale must not be given for dtype float32"),
        ({"scale": None, "dtype": "float16", "zero_point": 1}, ValueError, "zero_point must be 0 for dtype float16"),
        ({"dtype": None}, TypeError, "dtype must be int8, uint8, float32 or float16"),
        ({"dtype": "nonsense"}, TypeError, "dtype must be int8, uint8, float32 or float16"),
        ({"std": 0.0}, ValueError, "std must be above 0"),
        ({"std": (1.0, -1.0, 1.0)}, ValueError, "std must be above 0"),
        ({"mean": "0.5"}, TypeError, "mean must be a real number"),
        ({"mean": []}, ValueError, "mean must be a number or one per channel"),
        ({"mean": (0.1, float("inf"), 0.2)}, ValueError, r"mean\[1\] must be finite"),
        ({"mean": (0.1, 0.2), "std": (1.0, 1.0, 1.0)}, ValueError, "disagree"),
        ({"rescale": 0}, ValueError, "rescale must not be 0"),
        ({"rescale": None}, TypeError, "rescale must be a real number"),
        ({"input_format": "NCHW_VECT_C"}, ValueError, "input_format must be one of"),
        ({"data_format": "NDHWC"}, ValueError, "data_format must be one of"),
        ({"data_format": 5}, TypeError, "data_format must be a str"),
        ({"mode": "dcr"}, ValueError, "mode must be one of"),
        ({"block_size": 0}, ValueError, "block_size must be at least 1"),
        ({"block_size": True}, TypeError, "block_size must be an integer"),
        ({"block_size": (2, 2, 2)}, ValueError, "block_size must be an integer or 2"),
        ({"vect": 0}, ValueError, "vect must be at least 1"),
        ({"reverse_channels": 1}, TypeError, "reverse_channels must be True or False"),
        ({"size": 0}, ValueError, "size must be at least 1"),
        ({"size": (5, 4), "block_size": 2}, ValueError, "height 5 of size is not divisible"),
        ({"pad_value": 256}, ValueError, "pad_value must be a grey level"),
        ({"pad_value": 1.5}, ValueError, "pad_value must be a grey level"),
        ({"pad_value": None}, TypeError, "pad_value must be a real number"),
        ({"num_threads": 0}, ValueError, "num_threads must be at least 1"),
        ({"num_threads": 2.0}, TypeError, "num_threads must be an integer"),
    ],
)
def test_bad_keywords(settings, error, words):
    with pytest.raises(error, match=f"^Preprocessor: .*{words}") as caught:
        s2dq.Preprocessor(**{"scale": 1.0, **settings})
    assert type(caught.value) is error


@pytest.mark.parametrize(
    ("settings", "frames", "out", "error", "words"),
    [
        ({}, FRAME.astype(np.int8), None, TypeError, "frames must be uint8 or float32, not int8"),
        ({}, FRAME.astype(np.float64), None, TypeError, "frames must be uint8 or float32, not float64"),
        ({}, FRAME.astype(SWAPPED), None, TypeError, "frames must be uint8 or float32, not [<>]f4"),
        ({}, None, None, TypeError, "NoneType"),
        ({}, np.ma.masked_array(FRAME), None, TypeError, "masked"),
        ({}, FRAME[0], None, ValueError, "dimensions"),
        ({}, FRAME[None, None], None, ValueError, "dimensions"),
        ({"mean": (0.1, 0.2)}, FRAME, None, ValueError, "frames have 3 channels"),
        ({"size": 3}, FRAME, None, ValueError, "larger than size"),
        ({"block_size": 3}, FRAME, None, ValueError, "height 4 is not divisible by block_size 3"),
        ({}, FRAME, np.zeros((1, 4, 4, 3), np.uint8), TypeError, "out must have dtype int8"),
        ({}, FRAME, np.zeros((4, 4, 3), np.int8), ValueError, "out must have shape"),
        ({}, FRAME, np.zeros((1, 4, 4, 6), np.int8)[..., ::2], ValueError, "out must be C-contiguous"),
        ({}, FRAME, FRAME[None].view(np.int8), ValueError, "out must not overlap"),
        ({}, FRAME, [[0]], TypeError, "out must be an ndarray"),
    ],
)
def test_bad_calls(settings, frames, out, error, words):
    pre = s2dq.Preprocessor(scale=1.0, **settings)
    before = out.copy() if isinstance(out, np.ndarray) else None
    with pytest.raises(error, match=f"^Preprocessor: .*{words}") as caught:
        pre(frames, out=out)
    assert type(caught.value) is error
    if before is not None:
        np.testing.assert_array_equal(out, before)


@pytest.mark.parametrize(("arguments", "error"), [((5, 4), ValueError), ((1.5, 4), TypeError), ((-1, 4), ValueError)])
def test_bad_geometry(arguments, error):
    with pytest.raises(error, match="^Preprocessor.geometry: "):
        s2dq.Preprocessor(scale=1.0, size=4).geometry(*arguments)


def test_frames_are_looked_at_before_anything_else_runs():
    frames = np.arange(60000, dtype=np.uint16).astype(np.uint8).reshape(1, 60000, 1, 1)
    expected = frames.copy()

    class Out(np.ndarray):
        """Gives the frames another shape when it is asked what it is."""

        @property
        def __class__(self):
            frames.shape = (1, 1, 1, 60000)
            return Out

    out = np.zeros((1, 60000, 1, 1), np.int8).view(Out)
    s2dq.Preprocessor(scale=1.0, rescale=1.0, dtype="int8", zero_point=-128)(frames, out)
    np.testing.assert_array_equal(np.asarray(out), (expected ^ 0x80).view(np.int8))


def test_scale_is_read_once():
    class Fickle(float):
        reads = 0

        def __float__(self):
            self.reads += 1
            return 0.5 if self.reads == 1 else float("nan")

    assert s2dq.Preprocessor(scale=Fickle(0.5)).scale == 0.5


class Labelled(s2dq.Preprocessor):
    """A subclass, as a user may write one."""


@pytest.mark.parametrize("kind", [s2dq.Preprocessor, s2dq.Postprocessor])
def test_equal_ones_give_the_same_bytes(kind):
    """Zeros have a sign in floats that come out."""
    made = [kind(scale=1.0, rescale=-1.0, mean=mean) for mean in (0.0, -0.0, (0.0, 0.0), (0.0, -0.0), None)]
    for i, one in enumerate(made):
        for j, other in enumerate(made):
            assert (one == other) == (i == j or {i, j} == {0, 4})  # no mean is 0.0
    for one, same in zip(made, [pickle.loads(pickle.dumps(one)) for one in made]):
        assert same == one and hash(same) == hash(one)
    assert len(set(made)) == 4
    assert kind(scale=1, std=np.float32(0.5), size=4) == kind(scale=np.array(1.0), std=0.5, size=(4, 4))
    results = [s2dq.Preprocessor(dtype="float32", rescale=-1.0, mean=mean)(np.zeros((1, 1, 1), np.uint8)).tobytes()
               for mean in (0.0, -0.0)]  # fmt: skip
    assert results[0] != results[1]


class Unclassed:
    """What says nothing true of its class."""

    def __init__(self, answer):
        self.answer = answer

    @property
    def __class__(self):
        return self.answer()


@pytest.mark.parametrize("answer", [lambda: s2dq.Preprocessor, lambda: s2dq.Postprocessor, lambda: 1 / 0])
def test_comparison_asks_no_object_for_its_class(answer):
    for one in (s2dq.Preprocessor(scale=1.0), s2dq.Postprocessor(scale=1.0)):
        other = Unclassed(answer)
        assert one != other and other != one and not one == other
        assert one.__eq__(other) is NotImplemented


@pytest.mark.parametrize("kind", [s2dq.Preprocessor, s2dq.Postprocessor])
def test_repr_of_integers_that_are_too_long_to_print(kind):
    long = 10**5000
    shown = repr(kind(scale=1.0, vect=long, size=(long, 4)))
    assert "vect=<int>, " in shown and "size=(<int>, 4), " in shown and shown.startswith(f"{kind.__name__}(scale=1.0, ")


def test_subclass_survives_pickle_and_nothing_survives_a_second_init():
    copy = pickle.loads(pickle.dumps(Labelled(scale=0.5)))
    assert type(copy) is Labelled and copy.scale == 0.5
    with pytest.raises(AttributeError, match="never changes"):
        copy.__init__(scale=2.0)
    assert copy.scale == 0.5


def test_numbers_per_channel_come_in_any_sequence():
    for mean in ([0, 1, 2], (0, 1, 2), range(3), np.arange(3), np.float32([0, 1, 2])):
        assert s2dq.Preprocessor(scale=1.0, mean=mean).mean == (0.0, 1.0, 2.0)
    with pytest.raises(ValueError, match="mean must be a number or one per channel"):
        s2dq.Preprocessor(scale=1.0, mean=np.ones((1, 3)))


# ---- floats


def in_floats(v, mean, std, rescale):
    """The normalised value in float32, an operation after the other."""
    return np.float32(np.float32(np.float32(np.float32(v) * np.float32(rescale)) - np.float32(mean)) / np.float32(std))


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_float_frames_go_through_the_formula_in_float32(rng, dtype):
    scale, zero, info = 0.0173, 5, np.iinfo(dtype)
    pre = s2dq.Preprocessor(scale=scale, zero_point=zero, dtype=dtype, **IMAGENET)
    values = rng.uniform(-100, 400, (5, 7, 3)).astype(np.float32)
    result = pre(values)[0]
    for (i, j, c), v in np.ndenumerate(values):
        steps = np.float32(in_floats(v, IMAGENET["mean"][c], IMAGENET["std"][c], 1 / 255) / np.float32(scale))
        assert result[i, j, c] == max(info.min, min(info.max, round(float(steps)) + zero))


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW", "NCHW_VECT_C"])
@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_float_frames_are_padded_channel_by_channel(dtype, data_format):
    """Narrow frames on wide canvases and the other way round: padding rows, columns, and both."""
    settings = {"dtype": dtype, "mean": (0.1, 0.2, 0.3), "std": (1, 2, 4), "pad_value": 255, "data_format": data_format}
    if dtype == "int8":
        settings["scale"] = 0.01
    for height, width in ((32, 2), (3, 60), (7, 7), (64, 36)):
        frames = np.zeros((2, height, width, 3), np.float32)
        for size in ((height, 128), (72, width), (72, 128)):
            for block in (1, 2) if size[0] % 2 == size[1] % 2 == 0 else (1,):
                pre = s2dq.Preprocessor(**settings, size=size, block_size=block)
                expected = s2dq.reference.preprocess(frames, **settings, size=size, block_size=block)
                np.testing.assert_array_equal(pre(frames), expected, strict=True, err_msg=f"{frames.shape} {size}")


def staged_problems(rng, shape, flipped, mean, sizes):
    """Frames that are converted, of NHWC `shape` with an axis flipped or in planes, to every layout: what each problem
    is, once its result is the reference's."""
    for source, kind in product(("NHWC", "NCHW"), (np.float32, np.uint8)):
        for data_format, block, mode in product(("NHWC", "NCHW", "NCHW_VECT_C"), (1, 2, (2, 3)), ("DCR", "CRD")):
            values = rng.uniform(0, 255, shape).astype(kind)
            frames = np.flip(values, flipped) if source == "NHWC" else values.transpose(0, 3, 1, 2)
            settings = {"mean": mean, "input_format": source, "data_format": data_format, "block_size": block,
                        "mode": mode}  # fmt: skip
            settings |= {"scale": 0.02} if kind is np.float32 else {"dtype": "float32"}
            for size in sizes:
                operators.program_of.cache_clear()
                pre = s2dq.Preprocessor(**settings, size=size)
                found, expected = pre(frames), reference.preprocess(frames, **settings, size=size)
                if kind is np.float32:
                    np.testing.assert_array_equal(found, expected, strict=True)
                else:
                    np.testing.assert_allclose(found, expected, rtol=1e-6, strict=True)
                problem = _validate.frame_call("Preprocessor", pre._settings, frames, None).problem
                if problem.staged:
                    yield problem
    operators.program_of.cache_clear()


@pytest.mark.parametrize("longest, parts", [(1 << 8, 1 << 20), (1 << 8, 3), (1, 1 << 20)])
def test_lines_that_are_converted_in_parts(rng, monkeypatch, longest, parts):
    """As lines of many millions of pixels are, so that Ctrl-C is looked at: parts of padding too, and of both."""
    monkeypatch.setattr(_plan, "_ROW_BYTES", longest)
    monkeypatch.setattr(_plan, "_LINE_PARTS", parts)
    cut = 0
    for problem in staged_problems(rng, (2, 12, 90, 3), 2, IMAGENET["mean"], (None, (18, 150), (12, 96))):
        cut += _plan._line_blocks(problem) < problem.blocks[1]
        segments = _plan.plan_depth(problem, tiles=operators._TILES).segments
        converted = sum(prod(axis.extent for axis in (*segment.rows, *box.axes)) for segment in segments
                        for box in segment.boxes if box.lookup == "stage")  # fmt: skip
        assert converted == problem.batch * prod(problem.space) * problem.channels, "each level once"
    assert cut > 60


@pytest.mark.parametrize("dtype, channels, count, blocks", [
    ("int8", 4, 5, 5), ("int8", 4, 2**20, 2**20), ("int8", 4, 2**20 + 1, 2**20), ("int8", 2**22 + 1, 3, 1),
    ("float16", 4, 2**19, 2**19), ("float16", 4, 2**19 + 1, 2**19), ("float16", 4, 2**21, 2**19),
    ("int8", 4, 2**29, 2**21),  # 256 parts of 16 MiB
])  # fmt: skip
def test_lines_are_cut_from_8_mib_on(dtype, channels, count, blocks):
    """Blocks of two pixels, so many of them."""
    pre = s2dq.Preprocessor(scale=1 if dtype == "int8" else None, dtype=dtype, block_size=(1, 2))
    frames = np.broadcast_to(np.float32(0), (1, 1, 2 * count, channels))
    problem = _validate.frame_call("Preprocessor", pre._settings, frames, None).problem
    assert problem.staged and _plan._line_blocks(problem) == blocks


@pytest.mark.parametrize("channels, part, run", [
    (5, 1, 1), (5, 64, 256), (65, 64, 256), (33, 16, 10), (3, 200, 1), (3, 1 << 22, 1), (20, 1 << 22, 20),
])  # fmt: skip
def test_rows_that_are_converted_in_parts(rng, monkeypatch, channels, part, run):
    """As those of millions of channels are: parts of pixels, of their channels, and of what moves them on. In scratch,
    frames in planes stay so or do not."""
    monkeypatch.setattr(_plan, "_BOX_BYTES", part)
    monkeypatch.setattr(_plan, "_PLANE_RUN", run)
    boxes = 0
    mean = tuple(np.linspace(0.1, 0.5, channels))
    for problem in staged_problems(rng, (2, 6, 6, channels), 1, mean, (None, (12, 18))):
        plan = _plan.plan_depth(problem, tiles=operators._TILES)
        boxes += sum(box.lookup == "stage" for segment in plan.segments for box in segment.boxes)
    assert boxes > 200 or (boxes and part == 1 << 22), "too few for parts"


@pytest.mark.parametrize("source, size", [("NHWC", None), ("NCHW", None), ("NHWC", (1, 3)), ("NHWC", (2, 1))])
def test_a_pixel_of_millions_of_channels(source, size):
    """Too much for a task, so each box of such a row is one, of one thread; padding too."""
    channels = 2**23 + 5
    frames = np.resize(np.arange(-100, 100, 0.25, np.float32), (3, channels))
    pre = s2dq.Preprocessor(scale=0.25, rescale=1, zero_point=3, input_format=source, data_format=source, num_threads=2,
                            size=size, pad_value=7)  # fmt: skip
    expected = np.clip(np.rint(frames * 4) + 3, -128, 127).astype(np.int8)
    frames = frames.reshape((3, 1, 1, channels) if source == "NHWC" else (3, channels, 1, 1))
    found = pre(frames)
    assert _kernels.last_team_size() == 1
    height, width = size or (1, 1)
    top, left = (height - 1) // 2, (width - 1) // 2
    pixels = found.reshape(3, height * width, channels) if source == "NHWC" else found.reshape(3, 1, channels)
    for k in range(height * width):
        right = expected if k == top * width + left else np.int8(7 * 4 + 3)
        assert (pixels[:, k] == right).all(), k
    problem = _validate.frame_call("Preprocessor", pre._settings, frames, None).problem
    tasks = operators.program_of(problem).tasks(1)[1]
    assert tasks >= 3 * (8 + 2), "of each frame, 8 parts of the conversion of 32 MiB and 2 of the move of 8"


def test_what_goes_to_scratch_is_shared_out_and_waited_for(rng):
    """Blocks of which a crop leaves next to nothing: the words are unpacked all the same."""
    block = 49
    x = rng.integers(-128, 128, (40, (block * block * 3 + 3) // 4, 1, 1, 4), np.int8)
    settings = {"channels": block * block * 3, "crops": [[24, 24]] * 2, "out_format": "NHWC"}
    found = s2dq.depth_to_space(x, block, "NCHW_VECT_C", **settings)
    np.testing.assert_array_equal(found, reference.depth_to_space(x, block, "NCHW_VECT_C", **settings), strict=True)
    call = _validate.depth_call("depth_to_space", False, x, block, "NCHW_VECT_C", "DCR", "NHWC", 4,
                                settings["channels"], settings["crops"], None, None, None)  # fmt: skip
    program = operators.program_of(call.problem)
    assert program.nbytes == found.nbytes == 120 and program.tasks(2)[1] >= 4


def test_frames_of_many_planes_have_no_box_for_each():
    problem = _validate.frame_call("Preprocessor", s2dq.Preprocessor(scale=1, input_format="NCHW")._settings,
                                   np.zeros((1, 2**16, 2, 2), np.float32), None).problem  # fmt: skip
    plan = _plan.plan_depth(problem, tiles=operators._TILES)
    assert sum(len(segment.boxes) for segment in plan.segments) < 100


@pytest.mark.parametrize("block", (1, 2, 4))
@pytest.mark.parametrize("layout", ("NHWC", "NCHW", "NCHW_VECT_C"))
@pytest.mark.parametrize("source", ("NHWC", "NCHW"))
def test_one_grey_level_for_all_channels(rng, source, layout, block):
    """A byte that is read once goes through the tables of all channels."""
    shape, grey = ((2, 24, 72, 3), (2, 24, 72, 1)) if source == "NHWC" else ((2, 3, 24, 72), (2, 1, 24, 72))
    frames = np.broadcast_to(rng.integers(0, 256, grey, np.uint8), shape)
    settings = {**IMAGENET, "scale": 0.018658, "zero_point": -14, "input_format": source, "data_format": layout,
                "block_size": block}  # fmt: skip
    expected = reference.preprocess(frames, **settings)
    np.testing.assert_array_equal(s2dq.Preprocessor(**settings)(frames), expected, strict=True)


def test_padding_that_is_no_number_is_the_zero_point():
    pre = s2dq.Preprocessor(scale=1.0, zero_point=5, std=1e-60, pad_value=0, size=(1, 2))
    assert pre(np.zeros((1, 1, 1), np.float32)).ravel().tolist() == [5, 5]


def test_what_numpy_is_told_to_raise_does_not_matter():
    with np.errstate(all="raise"):
        for keywords in ({"dtype": "float16", "rescale": 1e-9}, {"scale": 1 / 255, "std": 1e300, "rescale": 1e-300},
                         {"scale": 1.0, "mean": 1e300}, {"dtype": "float32", "std": 1e-60}):
            for frame in (np.full((1, 2, 1), 9, np.uint8), np.full((1, 2, 1), 9, np.float32)):
                within = s2dq.Preprocessor(**keywords, size=(2, 2))(frame)
                with np.errstate(all="ignore"):
                    without = s2dq.Preprocessor(**keywords, size=(2, 2))(frame)
                np.testing.assert_array_equal(within, without)
        q = np.full((1, 1, 1, 1), 9, np.int8)
        assert s2dq.Postprocessor(scale=1e-30, std=1e-300)(q).tolist() == [[[[0]]]]


@pytest.mark.parametrize("direction", ["down", "up", "zero"])
def test_rounding_mode_of_the_caller_does_not_matter(direction, rng):
    if direction not in rounding_directions():
        pytest.skip("fesetround's numbers are not known here")
    libm = ctypes.CDLL("libm.so.6")
    frames = rng.uniform(0, 255, (9, 11, 3)).astype(np.float32)

    def all_results():
        for keywords in ({"dtype": "float32"}, {"dtype": "float16"}, {"scale": 0.0173}, {"scale": 1e-40}):
            pre = s2dq.Preprocessor(**keywords, **IMAGENET, size=16, pad_value=(7, 99, 200))
            yield pre(frames).tobytes(), pre(frames.astype(np.uint8)).tobytes()
            if "scale" in keywords:
                yield pre.inverse()(pre(frames)).tobytes()

    def tenths():
        """Of the arithmetic of vectors, which has a rounding mode of its own on x86."""
        return (np.array([1.0, -1.0]) / 10).tobytes()

    expected, nearest = list(all_results()), tenths()
    floats = s2dq.Preprocessor(scale=0.0173, **IMAGENET, size=16)
    assert libm.fesetround(rounding_directions()[direction]) == 0
    try:
        before = tenths()
        results = list(all_results())
        floats(frames)  # nothing else comes behind it
        assert tenths() == before, "the caller's rounding mode was changed"
    finally:
        libm.fesetround(0)
    assert results == expected and before != nearest == tenths()


@pytest.mark.skipif(not FLUSHES, reason="the environment of an x86 thread")
def test_small_keywords_are_not_0_to_a_thread_that_flushes():
    """As everywhere, float32 and float64 that are not normal are numbers like any other."""
    frame = np.arange(12, dtype=np.uint8).reshape(1, 4, 3)
    small = np.float32(1e-40)
    given = [{"std": 1e-310}, {"rescale": -1e-310}, {"std": (1.0, 1e-310, small)}, {"rescale": small},
             {"mean": small, "std": small, "rescale": 1e-40}, {"scale": small}]  # fmt: skip
    given = [{"scale": 1.0} | keywords for keywords in given]
    expected = [(s2dq.Preprocessor(**keywords)(frame).tobytes(), float32(keywords["scale"])) for keywords in given]
    refused = ({"std": -1e-310}, {"std": 0.0}, {"std": (1.0, -1e-310)}, {"rescale": -0.0}, {"pad_value": 1e-310})
    with subnormals_are_zero():
        made = [s2dq.Preprocessor(**keywords) for keywords in given]
        results = [pre(frame).tobytes() for pre in made]
        for keywords in refused:
            with pytest.raises(ValueError, match=f"^Preprocessor: {next(iter(keywords))} must"):
                s2dq.Preprocessor(scale=1.0, **keywords)
    assert list(zip(results, (float32(pre.scale) for pre in made))) == expected
    assert s2dq.Preprocessor(scale=1.0, pad_value=-0.0).pad_value == 0


def test_float_frames_that_are_no_numbers():
    pre = s2dq.Preprocessor(scale=0.5, zero_point=7, rescale=1.0)
    frame = np.array([np.nan, np.inf, -np.inf, 1.25, -0.25, 1e30], np.float32).reshape(1, 2, 3)
    assert pre(frame).ravel().tolist() == [7, 127, -128, 9, 7, 127]  # 2.5 and -0.5 steps are ties


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_floats_out_are_rounded_once(dtype):
    levels = np.arange(256, dtype=np.uint8)
    pre = s2dq.Preprocessor(dtype=dtype, **IMAGENET)
    result = pre(np.stack([levels] * 3, axis=-1).reshape(16, 16, 3))
    assert result.dtype == dtype
    for v, c in product(range(256), range(3)):
        exact = (v * (1 / 255) - IMAGENET["mean"][c]) / IMAGENET["std"][c]  # of Python's floats
        assert result[0, v // 16, v % 16, c] == np.dtype(dtype).type(exact)


def test_floats_become_halves_half_to_even():
    halves = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float32)  # all from 0 on
    ties = np.append((halves[1:] + halves[:-1]) / 2, np.float32(65520))  # exact in float32
    numbers = np.concatenate([halves, ties, np.nextafter(ties, np.float32(0)), np.nextafter(ties, np.float32(np.inf)),
                              np.array([1e-45, 1e30, np.finfo(np.float32).max, np.inf], np.float32)])  # fmt: skip
    # What is no number stays none: quiet ones and others, with digits that a half does not have.
    numbers = np.append(numbers, np.array([0x7FC00000, 0x7F800001, 0x7FFFFFFF], np.uint32).view(np.float32))
    frame = np.stack([numbers, -numbers], axis=-1)[np.newaxis]
    result = s2dq.Preprocessor(dtype="float16", rescale=1.0)(frame)[0]
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        expected = frame.astype(np.float16)
    none = np.isnan(frame)
    np.testing.assert_array_equal(np.isnan(result), none)
    np.testing.assert_array_equal(result.view(np.uint16)[~none], expected.view(np.uint16)[~none])


@pytest.mark.parametrize("source", [np.uint8, np.float32])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "float32", "float16"])
@pytest.mark.parametrize("data_format", ["NHWC", "NCHW", "NCHW_VECT_C"])
def test_floats_agree_with_reference(rng, source, dtype, data_format):
    for input_format, mode, block, reverse, size in product(
        ["NHWC", "NCHW"], ["DCR", "CRD"], [1, 2, (3, 2)], [False, True], [None, (18, 24)]
    ):
        count = int(rng.choice([1, 3, 4, 5]))
        settings = {"data_format": data_format, "input_format": input_format, "mode": mode, "block_size": block,
                    "reverse_channels": reverse, "size": size, "dtype": dtype}
        if rng.random() < 0.7:
            settings |= {"mean": rng.uniform(0, 1, count).tolist(), "std": rng.uniform(0.1, 1, count).tolist()}
        if dtype in ("int8", "uint8"):
            settings |= {"scale": float(rng.uniform(0.005, 0.05)), "zero_point": int(rng.integers(0, 128))}
        shape = (2, 12, 14, count) if input_format == "NHWC" else (2, count, 12, 14)
        frames = rng.uniform(-30, 300, shape).astype(source) if source is np.float32 else rng.integers(
            0, 256, shape, source)
        frames = frames[:, ::-1] if rng.random() < 0.3 else frames
        expected = reference.preprocess(frames, **settings)
        np.testing.assert_array_equal(s2dq.Preprocessor(**settings)(frames), expected, str(settings), strict=True)


def test_float_frames_may_have_more_channels_than_a_block_of_constants(rng):
    frames = rng.uniform(0, 255, (1, 3, 5, 1100)).astype(np.float32)
    mean = rng.uniform(0, 1, 1100).tolist()
    for dtype, scale in (("float32", None), ("int8", 0.01)):
        settings = {"dtype": dtype, "scale": scale, "mean": mean}
        result = s2dq.Preprocessor(**settings)(frames)
        np.testing.assert_array_equal(result, reference.preprocess(frames, **settings), strict=True)


def test_calls_alike_are_remembered_and_all_give_the_same(rng):
    pre = s2dq.Preprocessor(scale=0.02, zero_point=3, size=(20, 24), block_size=2, **IMAGENET)
    for shape in ((16, 20, 3), (2, 16, 20, 3), (20, 24, 3)):
        for _ in range(3):
            frames = rng.integers(0, 256, shape, np.uint8)
            expected = reference.preprocess(frames, scale=0.02, zero_point=3, size=(20, 24), block_size=2, **IMAGENET)
            out = np.empty_like(expected)
            assert pre(frames, out) is out
            np.testing.assert_array_equal(out, expected)
            np.testing.assert_array_equal(pre(frames[:, ::-1]), reference.preprocess(
                frames[:, ::-1], scale=0.02, zero_point=3, size=(20, 24), block_size=2, **IMAGENET))


def test_numbers_may_be_arrays_without_dimensions():
    settings = {"scale": 0.5, "rescale": 0.25, "zero_point": 3}
    pre = s2dq.Preprocessor(**{name: np.array(value) for name, value in settings.items()})
    assert pre == s2dq.Preprocessor(**settings)
    with pytest.raises(TypeError, match="^Preprocessor: scale must be a real number, not"):
        s2dq.Preprocessor(scale=np.array(True))

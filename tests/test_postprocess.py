"""The Postprocessor: its formula value by value, the round trip of frames, and everything it refuses."""

import pickle
import sys
import threading
from itertools import product

import numpy as np
import pytest

import s2dq
from guarded import FLUSHES, run_child, subnormals_are_zero
from s2dq import _kernels, reference
from test_preprocess import IMAGENET, float32

LAYOUT_CASES = list(product(["NHWC", "NCHW"], ["NHWC", "NCHW", "NCHW_VECT_C"], ["DCR", "CRD", "focus"], [1, 2, (3, 2)]))


def expected_level(q, scale, zero_point, mean, std, rescale):
    """The formula in Python floats: `round` goes half to even."""
    return max(0, min(255, round((((q - zero_point) * float32(scale)) * std + mean) / rescale)))


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize(
    "settings",
    [
        {"scale": 1 / 255, "zero_point": 0},
        {"scale": 0.0186, "zero_point": 5, **IMAGENET},
        {"scale": 0.5, "zero_point": 3, "rescale": 1.0},  # every odd value is a tie
        {"scale": 3.0, "zero_point": 100, "rescale": 1.0},  # saturates
        {"scale": 0.5, "zero_point": 64, "mean": (1.0, 2.0, 3.0), "std": 0.25, "rescale": -1 / 16},
        {"scale": 1e-30, "zero_point": 7, "mean": 0.25},  # one grey level
    ],
)
def test_every_value_of_every_channel(settings, dtype):
    values = np.arange(256, dtype=np.uint8).view(dtype)
    tensor = np.stack([values] * 3, axis=-1).reshape(16, 16, 3)
    result = s2dq.Postprocessor(dtype=dtype, **settings)(tensor)
    assert result.dtype == np.uint8 and result.shape == (1, 16, 16, 3) and result.flags.c_contiguous
    mean = np.broadcast_to(settings.get("mean", 0.0), 3).tolist()
    std = np.broadcast_to(settings.get("std", 1.0), 3).tolist()
    for i, c in product(range(256), range(3)):
        expected = expected_level(
            int(values[i]), settings["scale"], settings["zero_point"], mean[c], std[c], settings.get("rescale", 1 / 255)
        )
        assert result[0, i // 16, i % 16, c] == expected, f"value {values[i]}, channel {c}"


def test_infinities_saturate():
    post = s2dq.Postprocessor(scale=1e38, std=1e300, rescale=1e-300)
    assert post(np.array([-1, 0, 1], np.int8).reshape(3, 1, 1)).ravel().tolist() == [0, 0, 255]


def drawn_tensor(rng, batch, blocks, deep, settings):
    """Any bytes in a tensor of `data_format`; `deep` channels, in packed words of `vect`."""
    height, width = blocks
    shape = {
        "NHWC": (height, width, deep),
        "NCHW": (deep, height, width),
        "NCHW_VECT_C": (-(-deep // settings["vect"]), height, width, settings["vect"]),
    }[settings["data_format"]]
    shape = shape if batch is None else (batch, *shape)
    return rng.integers(0, 256, shape).astype(np.uint8).view(settings["dtype"])


@pytest.mark.parametrize(("input_format", "data_format", "mode", "block_size"), LAYOUT_CASES)
def test_agrees_with_reference(rng, input_format, data_format, mode, block_size):
    high, wide = np.broadcast_to(block_size, 2).tolist()
    settings = {"input_format": input_format, "data_format": data_format, "mode": mode, "block_size": block_size}
    vects = (4, 32, 3) if data_format == "NCHW_VECT_C" else (4,)
    for vect, channels, reverse, frame, arithmetic in product(vects, (1, 3, 4), (0, 1), (None, (4, 5)), range(3)):
        batch, dtype = (None, 2)[rng.integers(2)], ("int8", "uint8")[rng.integers(2)]
        blocks = (3, 6) if frame is None else (4, 7)
        settings.update(vect=vect, reverse_channels=bool(reverse), dtype=dtype, size=None)
        if frame is not None:
            settings.update(size=(blocks[0] * high, blocks[1] * wide))
        settings.update((
            {"scale": 0.013, "zero_point": 9, "mean": rng.uniform(0, 1, channels), "std": rng.uniform(0.1, 2, 1)[0]},
            {"scale": 0.003, "zero_point": 20, "mean": 0.3, "std": [1.25] * channels},
            {"scale": 1 / 255, "zero_point": np.iinfo(dtype).min, "mean": [0] * channels, "std": 1},  # bits flipped
        )[arithmetic])  # fmt: skip
        tensor = drawn_tensor(rng, batch, blocks, channels * high * wide, settings)
        expected = reference.postprocess(tensor, **settings, frame=frame)
        out = np.full(expected.shape, 0xA5, np.uint8)
        post = s2dq.Postprocessor(**settings)
        message = f"{settings} {tensor.shape} {frame}"
        assert post(tensor, out, frame=frame) is out
        np.testing.assert_array_equal(out, expected, strict=True, err_msg=message)
        np.testing.assert_array_equal(post(tensor, frame=frame), expected, strict=True, err_msg=message)


@pytest.mark.parametrize(("input_format", "data_format", "mode", "block_size"), LAYOUT_CASES)
def test_frames_come_back(rng, input_format, data_format, mode, block_size):
    """All grey levels, letterboxed and cut out again: exact where nothing saturates and steps are fine enough."""
    high, wide = np.broadcast_to(block_size, 2).tolist()
    for channels, reverse, dtype, sign in product((1, 3, 4), (False, True), ("int8", "uint8"), (1, -1)):
        info = np.iinfo(dtype)
        rescale = sign * rng.uniform(0.01, 2)
        scale = float32(10 ** rng.uniform(-4, 0))
        steps = rng.uniform(1.001, 3, channels)  # of quantization in a grey level
        std = abs(rescale) / (scale * steps)
        mean = rng.uniform(0, 255, channels) * rescale
        zero_point = int(rng.integers(info.min, info.max + 1))
        if rng.integers(3) == 0:  # one step a level: nothing saturates
            steps, std = np.ones(channels), np.full(channels, abs(rescale) / scale)
            zero_point, mean = (info.min, [0.0] * channels) if sign == 1 else (info.max, [0.0] * channels)
        pre = s2dq.Preprocessor(
            scale=scale, zero_point=zero_point, dtype=dtype, mean=mean, std=std, rescale=rescale,
            input_format=input_format, data_format=data_format, block_size=block_size, mode=mode,
            vect=int(rng.choice([3, 4, 8, 32])), reverse_channels=reverse, size=(18 * high, 17 * wide),
        )  # fmt: skip
        levels = np.stack([rng.permutation(256) for _ in range(channels)], axis=-1).astype(np.uint8)
        frames = levels.reshape(1, 16, 16, channels)
        # In the frame's own order of channels, which reversal turns around.
        order = slice(None, None, -1) if reverse else slice(None)
        exact = (frames[..., order] * rescale - np.array(mean)) / std / scale + zero_point
        fits = ((exact > info.min - 0.49) & (exact < info.max + 0.49))[..., order]
        if input_format == "NCHW":
            frames, fits = frames.transpose(0, 3, 1, 2), fits.transpose(0, 3, 1, 2)
        back = pre.inverse()(pre(frames), frame=(16, 16))
        assert back.shape == frames.shape and fits.any()
        assert fits.all() or steps[0] != 1
        np.testing.assert_array_equal(back[fits], frames[fits], err_msg=repr(pre))


def test_inverse_has_the_same_keywords():
    pre = s2dq.Preprocessor(scale=0.1, zero_point=3, size=(4, 8), block_size=(2, 4), num_threads=2, **IMAGENET)
    post = pre.inverse()
    assert type(post) is s2dq.Postprocessor
    assert repr(post) == repr(pre).replace("Preprocessor(", "Postprocessor(")
    assert post != pre and pre != post
    with pytest.raises(TypeError, match="^Postprocessor: dtype must be int8 or uint8, not 'float32'"):
        s2dq.Preprocessor(dtype="float32").inverse()


def test_reversed_channels_are_the_frames_of_the_camera():
    """Tables are counted along the model's channels, whichever way these are written."""
    settings = {"scale": 1.0, "rescale": 1.0, "dtype": "uint8", "mean": (10, 20, 30)}
    tensor = np.array([1, 2, 3], np.uint8).reshape(1, 1, 3)
    assert s2dq.Postprocessor(**settings)(tensor).ravel().tolist() == [11, 22, 33]
    assert s2dq.Postprocessor(**settings, reverse_channels=True)(tensor).ravel().tolist() == [33, 22, 11]


@pytest.mark.parametrize("told", [{"mean": [0, 0, 0]}, {"std": (1, 1, 1)}, {"pad_value": (114, 114, 114)}])
def test_channels_of_words_are_those_that_a_keyword_tells(told):
    words = np.arange(4, dtype=np.uint8).reshape(1, 1, 1, 1, 4)
    settings = {"scale": 1.0, "rescale": 1.0, "dtype": "uint8", "data_format": "NCHW_VECT_C"}
    assert s2dq.Postprocessor(**settings)(words).tolist() == [[[[0, 1, 2, 3]]]]
    assert s2dq.Postprocessor(**settings, **told)(words).tolist() == [[[[0, 1, 2]]]]


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW", "NCHW_VECT_C"])
def test_large_tensor_and_threads(rng, data_format):
    settings = {"scale": 0.02, "block_size": 2, "data_format": data_format, "vect": 4, "dtype": "int8", **IMAGENET}
    tensor = drawn_tensor(rng, 2, (540, 960), 12, settings)
    expected = reference.postprocess(tensor, **settings)
    for num_threads in (None, 1, 2):
        result = s2dq.Postprocessor(num_threads=num_threads, **settings)(tensor)
        np.testing.assert_array_equal(result, expected, strict=True)


def test_tensors_are_read_in_place(rng):
    post = s2dq.Postprocessor(scale=0.01, block_size=2)
    whole = rng.integers(-128, 128, (2, 9, 12, 16)).astype(np.int8)
    for tensor in (whole[:, ::-1, ::2], whole[:, 1:5, 3:, 4:], whole[1], whole.transpose(0, 2, 1, 3)):
        np.testing.assert_array_equal(post(tensor), reference.postprocess(tensor, scale=0.01, block_size=2))
        np.testing.assert_array_equal(post(memoryview(tensor)), post(tensor))


def test_one_goes_for_many_shapes_and_frames(rng):
    """Remembered calls are told apart by shape, strides and frame."""
    post = s2dq.Postprocessor(scale=0.02, size=(4, 6), dtype="uint8")
    tensor = rng.integers(0, 256, (1, 4, 6, 2)).astype(np.uint8)
    for frame in [(4, 6), (2, 2), (3, 5), [2, 2], np.array([1, 6]), None, (0, 6), (2, 2), (4, 6)]:
        for one in (tensor, tensor[0], tensor[:, ::-1]):
            expected = reference.postprocess(one, scale=0.02, size=(4, 6), dtype="uint8", frame=frame)
            np.testing.assert_array_equal(post(one, frame=frame), expected, strict=True)


def test_empty_batches_and_tensors():
    post = s2dq.Postprocessor(scale=1.0, block_size=2)
    assert post(np.zeros((0, 4, 4, 12), np.int8)).shape == (0, 8, 8, 3)
    assert post(np.zeros((2, 0, 4, 12), np.int8)).shape == (2, 0, 8, 3)
    assert post(np.zeros((2, 4, 4, 0), np.int8)).shape == (2, 8, 8, 0)
    assert s2dq.Postprocessor(scale=1.0, size=2)(np.zeros((1, 2, 2, 3), np.int8), frame=(0, 1)).shape == (1, 0, 1, 3)


def test_quantized_tensor_has_the_parameters_of_the_keywords(rng):
    values = rng.integers(-128, 128, (1, 2, 2, 3)).astype(np.int8)
    post = s2dq.Postprocessor(scale=0.1, zero_point=3)
    np.testing.assert_array_equal(post(s2dq.QuantizedTensor(values, 0.1, 3)), post(values))
    for other in ((0.2, 3), (0.1, 4), (np.nextafter(np.float32(0.1), np.float32(1)), 3)):
        with pytest.raises(ValueError, match=r"^Postprocessor: tensor has scale .* but the keywords say 0\.1"):
            post(s2dq.QuantizedTensor(values, *other))
    with pytest.raises(ValueError, match="^Postprocessor: tensor must have a single scale and zero point"):
        post(s2dq.QuantizedTensor(values, [0.1] * 3, 3, axis=3))
    with pytest.raises(TypeError, match="^Postprocessor: tensor must have dtype int8, not int16"):
        post(s2dq.QuantizedTensor(values.astype(np.int16), 0.1, 3))


@pytest.mark.skipif(not FLUSHES, reason="the environment of an x86 thread")
def test_small_scales_are_told_apart_on_a_thread_that_flushes():
    values = np.arange(12, dtype=np.int8).reshape(1, 2, 2, 3)
    a, b = np.float32(1e-40), np.float32(2e-40)
    q = s2dq.QuantizedTensor(values, a, 3)
    with subnormals_are_zero():
        with pytest.raises(ValueError, match=r"tensor has scale 9\.999\d*e-41 .* but the keywords say 2\.000\d*e-40 "):
            s2dq.Postprocessor(scale=b, zero_point=3)(q)
        frames = s2dq.Postprocessor(scale=a, zero_point=3)(q)
    np.testing.assert_array_equal(frames, s2dq.Postprocessor(scale=a, zero_point=3)(values))


def test_keywords_are_attributes_that_stay():
    post = s2dq.Postprocessor(scale=0.1, zero_point=3, dtype=np.uint8, size=8, **IMAGENET)
    assert (post.scale, post.zero_point, post.dtype, post.size) == (0.1, 3, "uint8", (8, 8))
    assert (post.mean, post.rescale, post.pad_value) == (IMAGENET["mean"], 1 / 255, 114) and post.num_threads is None
    with pytest.raises(AttributeError, match="^Postprocessor: scale cannot be set"):
        post.scale = 1.0
    with pytest.raises(AttributeError, match="^Postprocessor: scale cannot be deleted"):
        del post.scale
    with pytest.raises(AttributeError, match="^Postprocessor: a Postprocessor never changes"):
        post.__init__(scale=1.0)
    assert post.scale == 0.1 and repr(post).startswith("Postprocessor(scale=0.1, zero_point=3, dtype='uint8'")
    assert eval(repr(post), {"Postprocessor": s2dq.Postprocessor}) == post


class Labelled(s2dq.Postprocessor):
    """A subclass, as a user may write one."""


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("kind", [s2dq.Postprocessor, Labelled])
def test_pickle(rng, kind, protocol):
    post = kind(scale=0.1, size=8, pad_value=(1, 2, 3), block_size=(2, 1), **IMAGENET)
    copy = pickle.loads(pickle.dumps(post, protocol))
    assert type(copy) is kind
    assert copy == post and hash(copy) == hash(post) and copy != s2dq.Postprocessor(scale=0.2)
    tensor = rng.integers(-128, 128, (4, 8, 6)).astype(np.int8)
    np.testing.assert_array_equal(copy(tensor), post(tensor))


def test_many_threads_share_one(rng):
    settings = {"scale": 0.02, "block_size": 2, "data_format": "NCHW_VECT_C", "vect": 4, "dtype": "int8", **IMAGENET}
    post = s2dq.Postprocessor(**settings)
    tensors = drawn_tensor(rng, 16, (16, 16), 12, settings)
    expected = reference.postprocess(tensors, **settings)
    wrong = []

    def work(i):
        for _ in range(50):
            if not np.array_equal(post(tensors[i])[0], expected[i]):
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"scale": None}, ValueError, "scale must be given"),
        ({"scale": 5e-324}, ValueError, "float32"),
        ({"scale": [0.1, 0.2]}, TypeError, "scale must be a real number"),
        ({"zero_point": 128}, ValueError, "zero_point 128"),
        ({"dtype": "int16"}, TypeError, "dtype must be int8 or uint8, not 'int16'"),
        ({"dtype": "float32"}, TypeError, "dtype must be int8 or uint8, not 'float32'"),
        ({"dtype": np.float16, "scale": None}, TypeError, "dtype must be int8 or uint8"),
        ({"dtype": None}, TypeError, "dtype must be int8 or uint8"),
        ({"dtype": "nonsense"}, TypeError, "dtype must be int8 or uint8"),
        ({"std": (1.0, -1.0, 1.0)}, ValueError, "std must be above 0"),
        ({"mean": (0.1, 0.2), "std": (1.0, 1.0, 1.0)}, ValueError, "disagree"),
        ({"rescale": 0}, ValueError, "rescale must not be 0"),
        ({"input_format": "NCHW_VECT_C"}, ValueError, "input_format must be one of"),
        ({"data_format": 5}, TypeError, "data_format must be a str"),
        ({"block_size": True}, TypeError, "block_size must be an integer"),
        ({"reverse_channels": 1}, TypeError, "reverse_channels must be True or False"),
        ({"size": (5, 4), "block_size": 2}, ValueError, "height 5 of size is not divisible"),
        ({"pad_value": 256}, ValueError, "pad_value must be a grey level"),
        ({"num_threads": 0}, ValueError, "num_threads must be at least 1"),
    ],
)
def test_bad_keywords(settings, error, words):
    with pytest.raises(error, match=f"^Postprocessor: .*{words}") as caught:
        s2dq.Postprocessor(**{"scale": 1.0, **settings})
    assert type(caught.value) is error


TENSOR = np.zeros((4, 4, 12), np.int8)
WORDS = np.zeros((1, 3, 4, 4, 4), np.int8)
PACKED = {"data_format": "NCHW_VECT_C"}


class Wrong:
    """An integer that cannot be read."""

    def __index__(self):
        raise OverflowError("not today")


@pytest.mark.parametrize(
    ("settings", "tensor", "call", "error", "words"),
    [
        ({}, TENSOR.view(np.uint8), {}, TypeError, "tensor must have dtype int8, not uint8"),
        ({}, TENSOR.astype(np.float32), {}, TypeError, "tensor must have dtype int8"),
        ({}, None, {}, TypeError, "NoneType"),
        ({}, np.ma.masked_array(TENSOR), {}, TypeError, "masked"),
        ({}, TENSOR[0], {}, ValueError, r"dimensions \(n, h, w, c\) or the same without n for NHWC, not 2"),
        ({}, WORDS, {}, ValueError, "dimensions .* not 5"),
        (PACKED, WORDS[0, 0], {}, ValueError, r"dimensions \(n, cb, h, w, v\) .* not 3"),
        ({"block_size": 5}, TENSOR, {}, ValueError, "channels 12 is not divisible by block_size"),
        ({"mean": (0.1, 0.2)}, TENSOR, {}, ValueError, "frames of 12 channels, but mean, std or pad_value have 2"),
        ({"mean": (0.1, 0.2), **PACKED}, WORDS, {}, ValueError, "3 words of 4 lanes, but .* 2 entries"),
        ({"vect": 8, **PACKED}, WORDS, {}, ValueError, "words of 4 lanes, but vect is 8"),
        ({"size": (4, 8)}, TENSOR, {}, ValueError, r"canvas of \(4, 4\), but size is \(4, 8\)"),
        ({}, TENSOR, {"frame": (4, 3)}, ValueError, r"frame \(4, 3\) is not the canvas \(4, 4\)"),
        ({"size": 4}, TENSOR, {"frame": (4, 5)}, ValueError, r"frame \(4, 5\) is larger than size"),
        ({"size": 4}, TENSOR, {"frame": (-1, 4)}, ValueError, r"frame\[0\] must be at least 0"),
        ({"size": 4}, TENSOR, {"frame": (4,)}, ValueError, "frame must be a .height, width. pair"),
        ({"size": 4}, TENSOR, {"frame": 4}, TypeError, "frame must be a .height, width. pair"),
        ({"size": 4}, TENSOR, {"frame": (4.0, 4)}, TypeError, r"frame\[0\] must be an integer"),
        ({"size": 4}, TENSOR, {"frame": (True, 4)}, TypeError, r"frame\[0\] must be an integer"),
        ({"size": 4}, TENSOR, {"frame": (Wrong(), 4)}, TypeError, r"frame\[0\] must be an integer"),
        ({}, TENSOR, {"out": np.zeros((1, 4, 4, 12), np.int8)}, TypeError, "out must have dtype uint8"),
        ({}, TENSOR, {"out": np.zeros((4, 4, 12), np.uint8)}, ValueError, "out must have shape"),
        ({}, TENSOR, {"out": np.zeros((1, 4, 4, 24), np.uint8)[..., ::2]}, ValueError, "out must be C-contiguous"),
        ({}, TENSOR, {"out": TENSOR[None].view(np.uint8)}, ValueError, "out must not overlap tensor"),
        ({}, TENSOR, {"out": [[0]]}, TypeError, "out must be an ndarray"),
    ],
)
def test_bad_calls(settings, tensor, call, error, words):
    post = s2dq.Postprocessor(scale=1.0, **settings)
    out = call.get("out")
    before = out.copy() if isinstance(out, np.ndarray) else None
    with pytest.raises(error, match=f"^Postprocessor: .*{words}") as caught:
        post(tensor, **call)
    assert type(caught.value) is error
    if before is not None:
        np.testing.assert_array_equal(out, before)


def run_between_guards():
    """Print how many calls were made with both arrays between inaccessible pages."""
    from math import prod

    import numpy as np

    import s2dq
    from guarded import Arena
    from s2dq import _kernels, reference

    rng = np.random.default_rng(20250301)
    calls = 0
    for width in (*range(1, 36), 64, 65, 129, 200):
        for number in range(40):
            channels, block, reverse = (1, 3, 4, 5)[number % 4], (1, 2, (1, 2))[number % 3], number % 2 == 1
            settings = {
                "scale": 0.004, "zero_point": 7, "dtype": "uint8", "block_size": block, "reverse_channels": reverse,
                "data_format": ("NHWC", "NCHW", "NCHW_VECT_C")[(number // 4) % 3], "vect": (4, 8)[number // 2 % 2],
                "input_format": ("NHWC", "NCHW")[(number // 3) % 2], "mode": ("DCR", "CRD", "focus")[number % 3],
                "std": (rng.uniform(0.5, 1.5, channels) if number % 5 else np.ones(channels)).tolist(),
            }  # fmt: skip
            if number % 7 == 0:  # bits flipped
                settings.update(scale=1 / 255, zero_point=-128, dtype="int8", std=[1.0] * channels)
            area = prod(np.broadcast_to(block, 2).tolist())
            deep, lanes = channels * area, settings["vect"]
            shape = {"NHWC": (1, 3, width, deep), "NCHW": (1, deep, 3, width),
                     "NCHW_VECT_C": (1, -(-deep // lanes), 3, width, lanes)}[settings["data_format"]]
            frame = None
            if number % 3 == 0:
                settings["size"] = tuple((np.broadcast_to(block, 2) * (3, width)).tolist())
                frame = (settings["size"][0] - 1, max(1, settings["size"][1] - 3))
            data = rng.integers(0, 256, shape).astype(np.uint8).view(settings["dtype"])
            expected = reference.postprocess(data, **settings, frame=frame)
            post = s2dq.Postprocessor(**settings)
            source, target = Arena(data.nbytes), Arena(expected.nbytes)
            for end in ("low", "high"):
                tensor = source.place(shape, settings["dtype"], end)
                tensor[...] = data
                out = target.place(expected.shape, "u1", end)
                post(tensor, out, frame=frame)
                calls += 1
                case = f"{shape} {settings} {frame} at the {end} end"
                assert np.array_equal(out, expected), case
                assert np.array_equal(tensor, data), f"{case}: the source was changed"
                assert source.untouched_outside(tensor) and target.untouched_outside(out), f"{case}: bytes outside"
    print(calls, _kernels.isa())


@pytest.mark.skipif(sys.platform == "win32", reason="needs mprotect")
def test_not_a_byte_outside_the_arrays():
    assert run_child(run_between_guards).split() == [str(39 * 40 * 2), _kernels.isa()]

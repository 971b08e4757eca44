"""s2dq.dask: what the plain operators give, chunk by chunk, and nothing before it is asked for.

Work on a cluster has a deadline, and the cluster is closed whatever happens.
"""

import contextlib
import inspect
import os
import subprocess
import sys
from math import prod
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

import jobs
import s2dq
from s2dq._layout import LAYOUTS

da = pytest.importorskip("dask.array")
dask = pytest.importorskip("dask")
lazy = pytest.importorskip("s2dq.dask")

DEADLINE = 120  # seconds; of anything that a cluster is asked for


@pytest.fixture(scope="module", autouse=True)
def environment():
    """Dask sets OMP_NUM_THREADS, PYTHONHASHSEED and more in this process, for workers to come, and leaves them so."""
    with mock.patch.dict(os.environ):
        yield


@pytest.fixture(autouse=True)
def in_this_thread():
    """Unless a test says otherwise."""
    with dask.config.set(scheduler="synchronous"):
        yield


# ---- the same values


class Draw:
    """Random calls: arguments that the plain operators take, and arrays in random chunks."""

    def __init__(self, rng):
        self.rng = rng

    def number(self, least, most):
        return int(self.rng.integers(least, most + 1))

    def choice(self, values):
        return values[self.number(0, len(values) - 1)]

    def chance(self, probability):
        return self.rng.random() < probability

    def chunks(self, extent):
        """Uneven, now and then empty."""
        longest, chunks = self.choice([2, 3, 5, max(1, extent)]), []
        while sum(chunks) < extent:
            least = 0 if self.chance(0.1) else 1
            chunks.append(min(self.number(least, longest), extent - sum(chunks)))
        return tuple(chunks) or (0,)

    def array(self, shape, dtype):
        x = self.rng.integers(0, 256, shape).astype(np.uint8).astype(dtype)
        return x, da.from_array(x, chunks=tuple(map(self.chunks, shape)))

    def margin(self, whole):
        before = self.number(0, whole) if self.chance(0.5) else 0
        return before, self.number(0, whole - before) if self.chance(0.5) else 0

    def blocks(self):
        return self.number(0 if self.chance(0.1) else 1, 4)

    def depth(self):
        """(operator, x, Dask x, arguments, keywords)"""
        layout = LAYOUTS[self.choice(list(LAYOUTS))]
        to_depth, packed = self.chance(0.5), layout.packed
        block = [self.number(1, 3) for _ in layout.spatial]
        like = [name for name, other in LAYOUTS.items() if len(other.spatial) == len(block)]
        keywords = {"mode": self.choice(["DCR", "CRD", "focus"]), "out_format": self.choice([None, *like]),
                    "vect": self.choice([2, 3, 4, 8])}  # fmt: skip
        whole = [b * self.blocks() * (self.number(1, 3) if to_depth else 1) for b in block]
        margins = [self.margin(extent) for extent in whole]
        if to_depth:
            extents = [extent - sum(margin) for extent, margin in zip(whole, margins)]
            keywords["paddings"] = margins
            if self.chance(0.5):
                keywords["pad_value"] = self.number(0, 127)
        else:
            extents = [extent // b for extent, b in zip(whole, block)]
            keywords["crops"] = margins
        count, lanes = self.number(1, 5) * (1 if to_depth else prod(block)), self.choice([1, 2, 3, 4])
        sizes = {"n": self.blocks() % 5, "c": count, "cb": count, "v": lanes, **dict(zip(layout.spatial, extents))}
        words_to_words = packed and "V" in (keywords["out_format"] or layout.name)
        if packed and not words_to_words and self.chance(0.5):
            sizes["cb"], keywords["channels"] = -(-count // lanes), count
        dtype = np.int8 if words_to_words else self.choice([np.int8, np.uint16, np.float32, np.complex128])
        x, given = self.array(tuple(sizes[axis] for axis in layout.axes), dtype)
        name = "space_to_depth" if to_depth else "depth_to_space"
        return name, x, given, (block, layout.name), keywords

    def batch(self):
        to_batch = self.chance(0.5)
        block = [self.number(1, 3) for _ in range(self.number(0, 3))]
        whole = [b * self.blocks() * (self.number(1, 2) if to_batch else 1) for b in block]
        margins = [self.margin(extent) for extent in whole]
        count, rest = self.number(1, 5), [self.number(1, 3) for _ in range(self.number(0, 2))]
        if to_batch:
            shape = (count, *(extent - sum(margin) for extent, margin in zip(whole, margins)), *rest)
            keywords = {"pad_value": 7} if self.chance(0.5) else {}
        else:
            shape, keywords = (count * prod(block), *(extent // b for extent, b in zip(whole, block)), *rest), {}
        x, given = self.array(shape, self.choice([np.int8, np.float32]))
        margins = np.array(margins, np.int64).reshape(len(block), 2)
        return "space_to_batch_nd" if to_batch else "batch_to_space_nd", x, given, (block, margins), keywords

    def frames(self):
        block = self.number(1, 3), self.number(1, 3)
        height, width = (b * self.number(1, 5) for b in block)
        count, size = self.choice([1, 3, 4]), None
        if self.chance(0.6):
            size = [extent + b * self.number(0, 5) for extent, b in zip((height, width), block)]
            height, width = (self.number(1, extent) if self.chance(0.5) else extent for extent in (height, width))
        pre = s2dq.Preprocessor(
            scale=0.01, zero_point=-3, mean=[0.1 * c for c in range(count)] if self.chance(0.5) else None,
            input_format=self.choice(["NHWC", "NCHW"]), data_format=self.choice(["NHWC", "NCHW", "NCHW_VECT_C"]),
            block_size=block, mode=self.choice(["DCR", "CRD", "focus"]), vect=self.choice([3, 4]), size=size,
            reverse_channels=self.chance(0.5),
        )  # fmt: skip
        shape = (height, width, count) if pre.input_format == "NHWC" else (count, height, width)
        if self.chance(0.7):
            shape = (self.number(0, 4), *shape)
        return (pre, *self.array(shape, self.choice([np.uint8, np.float32])))


def assert_promised(result, expected, note):
    """All that is known before anything is computed."""
    assert isinstance(result, da.Array), note
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype), note
    assert type(result._meta) is np.ndarray, note
    assert (result._meta.dtype, result._meta.ndim) == (expected.dtype, expected.ndim), note


def assert_chunks_are_true(result, note):
    """Each chunk has the shape it was said to have."""
    keys = list(np.ndindex(*result.numblocks))
    for key, chunk in zip(keys, dask.compute(*[result.blocks[key] for key in keys])):
        promised = tuple(chunks[k] for chunks, k in zip(result.chunks, key))
        assert (chunk.shape, chunk.dtype) == (promised, result.dtype), (key, *note)


def assert_same(result, expected, note):
    assert_promised(result, expected, note)
    values = result.compute()
    assert values.tobytes() == expected.tobytes() and values.shape == expected.shape, note


@pytest.mark.parametrize("kind", ["depth", "batch"])
def test_operators_give_what_the_plain_ones_give(kind, rng):
    draw, compared, empty = Draw(rng), 0, 0
    for _ in range(300):
        name, x, given, arguments, keywords = getattr(draw, kind)()
        note = (name, x.shape, x.dtype, given.chunks, arguments, keywords)
        expected = getattr(s2dq, name)(x, *arguments, **keywords)
        result = getattr(lazy, name)(given, *arguments, **keywords)
        assert_same(result, expected, note)
        if compared % 10 == 0:
            assert_chunks_are_true(result, note)
        compared += 1
        empty += expected.size == 0
    assert compared == 300 and 5 < empty < 200


def test_preprocess_gives_what_the_preprocessor_gives(rng):
    draw, compared = Draw(rng), 0
    for _ in range(150):
        pre, frames, given = draw.frames()
        note = (pre, frames.shape, frames.dtype, given.chunks)
        try:
            expected = pre(frames)
        except ValueError as error:  # frames that the block does not divide
            with pytest.raises(ValueError) as refused:
                lazy.preprocess(pre, given)
            assert str(refused.value) == str(error), note
            continue
        result = lazy.preprocess(pre, given)
        assert_same(result, expected, note)
        if compared % 10 == 0:
            assert_chunks_are_true(result, note)
        compared += 1
    assert compared >= 100


def test_the_comparison_sees_chunks_that_changed_places():
    x = np.arange(64, dtype=np.int8).reshape(1, 8, 8, 1)
    given = da.from_array(x, chunks=(1, 4, 4, 1))
    swapped = da.concatenate([given[:, :, 4:], given[:, :, :4]], axis=2)
    with pytest.raises(AssertionError):
        assert_same(lazy.space_to_depth(swapped, 2), s2dq.space_to_depth(x, 2), ())


@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_schedulers_make_no_difference(scheduler, rng):
    x = rng.integers(-128, 128, (3, 12, 20, 5), np.int8)
    given = da.from_array(x, chunks=(2, 5, 7, 2))
    with dask.config.set(scheduler=scheduler, num_workers=2):
        assert_same(lazy.space_to_depth(given, 4, mode="CRD"), s2dq.space_to_depth(x, 4, mode="CRD"), ())
        expected = s2dq.space_to_batch_nd(x, [2, 2], [[3, 1], [0, 0]])
        assert_same(lazy.space_to_batch_nd(given, [2, 2], [[3, 1], [0, 0]]), expected, ())


@pytest.mark.parametrize("dtype", ["O", "M8[s]", "S3", ">f4", "bool", [("a", "i2"), ("b", "u1")]])
def test_element_types_that_are_no_numbers(dtype):
    flat = np.arange(1, 49)
    x = (flat.astype("U") if dtype == "S3" else flat).astype(dtype).reshape(1, 6, 8, 1)
    given = da.from_array(x, chunks=(1, 4, 3, 1))
    result = lazy.space_to_depth(given, 2, paddings=[[1, 1], [0, 0]])
    expected = s2dq.space_to_depth(x, 2, paddings=[[1, 1], [0, 0]])
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(result.compute(), expected)


@pytest.mark.parametrize("dtype", [">i4", "<i4", ">U2", ">M8[s]", [("a", ">i4"), ("b", "i1")]])
def test_a_batch_in_parts_keeps_its_byte_order(dtype):
    x = np.arange(16).astype(">i4" if isinstance(dtype, list) else dtype)
    if isinstance(dtype, list):
        x = np.array([(k, k) for k in range(16)], dtype)
    x = x.reshape(4, 4)
    deep = s2dq.space_to_batch_nd(x, [2], [[0, 0]])
    for result, expected in (
        (lazy.space_to_batch_nd(da.from_array(x, chunks=(1, 4)), [2], [[0, 0]]), deep),
        (lazy.batch_to_space_nd(da.from_array(deep, chunks=(2, 2)), [2], [[0, 0]]), x),
        (lazy.batch_to_space_nd(da.from_array(deep, chunks=(3, 1)), [2], [[0, 0]]), x),
    ):
        computed = result.compute()
        assert result.dtype == computed.dtype == expected.dtype and computed.tobytes() == expected.tobytes()
        assert all(block.compute().dtype == expected.dtype for block in result.blocks)


def test_a_round_trip_is_the_array_with_its_chunks(rng):
    x = da.from_array(rng.integers(-128, 128, (4, 8, 12, 3), np.int8), chunks=((1, 3), (4, 4), (8, 4), 3))
    deep = lazy.space_to_depth(x, 4)
    assert_same(lazy.depth_to_space(deep, 4), x.compute(), ())
    assert lazy.depth_to_space(deep, 4).chunks == x.chunks
    batch = lazy.space_to_batch_nd(x, [2, 2], [[2, 0], [1, 1]])
    back = lazy.batch_to_space_nd(batch, [2, 2], [[2, 0], [1, 1]])
    assert_same(back, x.compute(), ())
    assert back.chunks[0] == x.chunks[0]


# ---- chunks


def zeros(shape, chunks, dtype=np.int8):
    return da.zeros(shape, dtype=dtype, chunks=chunks)


@pytest.mark.parametrize("chunks, paddings, rows", [
    ((4, 4, 4), None, (2, 2, 2)), ((12,), None, (6,)), ((2, 6, 4), None, (1, 3, 2)),  # aligned: as they are
    ((3, 5, 4), None, (2, 2, 2)), ((3, 3, 3, 3), None, (2, 1, 2, 1)),  # the odd edges move up
    ((1, 1, 10), None, (1, 5)), ((1, 10, 1), None, (1, 5)), ((0, 4, 0, 8), None, (2, 4)),
    ((4, 4, 4), [[1, 1], [0, 0]], (3, 2, 2)), ((4, 4, 4), [[2, 0], [0, 0]], (3, 2, 2)),
    ((4, 4, 4), [[8, 0], [0, 0]], (2, 2, 2, 2, 2)), ((4, 4, 4), [[0, 10], [0, 0]], (2, 2, 3, 2, 2)),  # no giant
])  # fmt: skip
def test_edges_inside_a_block_move_to_its_end_and_no_others(chunks, paddings, rows):
    result = lazy.space_to_depth(zeros((2, 12, 6, 3), ((1, 1), chunks, (4, 2), 3)), 2, paddings=paddings)
    assert result.chunks == ((1, 1), rows, (2, 1), (12,))


@pytest.mark.parametrize("operator", ["space_to_depth", "space_to_batch_nd"])
def test_aligned_chunks_are_not_rechunked(operator):
    x = zeros((1, 8, 8, 3), (1, 4, 2, 3))
    arguments = (2,) if operator == "space_to_depth" else ([2, 2], [[0, 0], [0, 0]])
    assert not any("rechunk" in str(key) for key in getattr(lazy, operator)(x, *arguments).__dask_graph__())
    misaligned = getattr(lazy, operator)(x.rechunk((1, 3, 2, 3)), *arguments)
    assert any("rechunk" in str(key) for key in misaligned.__dask_graph__())


@pytest.mark.parametrize("mode, deep", [("DCR", (20,)), ("CRD", (8, 12)), ("focus", (20,))])
def test_channels_keep_their_chunks_where_their_deep_ones_lie_together(mode, deep):
    x = zeros((1, 4, 4, 5), (1, 2, 2, (2, 3)))
    result = lazy.space_to_depth(x, 2, mode=mode)
    assert result.chunks[3] == deep
    assert lazy.depth_to_space(result, 2, mode=mode).chunks[3] == ((2, 3) if mode == "CRD" else (5,))
    assert lazy.space_to_depth(x, 1, mode=mode, out_format="NCHW").chunks == ((1,), (2, 3), (2, 2), (2, 2))


def test_edges_of_channels_move_to_whole_channels_and_words():
    x = zeros((1, 2, 2, 20), (1, 2, 2, (3, 6, 11)))
    assert lazy.depth_to_space(x, 2, mode="CRD").chunks[3] == (1, 2, 2)
    packed = lazy.space_to_depth(x, 1, out_format="NCHW_VECT_C", vect=4)
    assert packed.chunks == ((1,), (1, 2, 2), (2,), (2,), (4,))
    assert lazy.depth_to_space(packed.rechunk({4: 1}), 1, "NCHW_VECT_C", out_format="NHWC").chunks[3] == (4, 8, 8)


def test_a_batch_in_several_chunks_is_split_and_in_one_is_not():
    paddings = [[0, 0], [0, 0]]
    whole = lazy.space_to_batch_nd(zeros((3, 4, 4), (3, 2, 4)), [2, 2], paddings)
    assert whole.chunks == ((12,), (1, 1), (2,))
    apart = lazy.space_to_batch_nd(zeros((3, 4, 4), ((2, 1), 2, 4)), [2, 2], paddings)
    assert apart.chunks == ((2, 1) * 4, (1, 1), (2,))
    assert lazy.batch_to_space_nd(whole, [2, 2], paddings).chunks == ((3,), (2, 2), (4,))
    assert lazy.batch_to_space_nd(apart, [2, 2], paddings).chunks == ((2, 1), (2, 2), (4,))
    mixed = lazy.batch_to_space_nd(zeros((24, 4), ((9, 15), 4)), [2], [[0, 0]])
    assert mixed.chunks == ((7, 5), (8,))


def test_parts_of_a_split_batch_own_their_memory():
    x = zeros((4, 4), (2, 4))
    part = lazy.space_to_batch_nd(x, [2], [[0, 0]]).blocks[1].compute()
    assert part.base is None or part.base.nbytes == part.nbytes


def test_what_is_cropped_away_is_not_computed():
    computed = []

    def note(block, block_info=None):
        computed.append(block_info[0]["chunk-location"][1])
        return block

    x = zeros((1, 6, 2, 4), (1, 2, 2, 4)).map_blocks(note, meta=np.empty((0,) * 4, np.int8))
    result = lazy.depth_to_space(x, 2, crops=[[5, 4], [0, 0]])
    assert result.chunks[1] == (3,)
    result.compute()
    assert computed == [1]


def test_letterboxed_axes_are_merged_and_others_are_not():
    frames = zeros((4, 6, 8, 3), (2, 3, 4, 1), np.uint8)
    padded = lazy.preprocess(s2dq.Preprocessor(scale=0.1, size=(10, 8), block_size=2), frames)
    assert padded.chunks == ((2, 2), (5,), (2, 2), (12,))
    filled = lazy.preprocess(s2dq.Preprocessor(scale=0.1, size=(6, 8), block_size=2), frames)
    assert filled.chunks == ((2, 2), (2, 1), (2, 2), (12,))


# ---- nothing before it is asked for, and then once


def never(block):
    raise AssertionError("computed before it was asked for")


CALLS = {
    "space_to_depth": lambda x: lazy.space_to_depth(x, 2, paddings=[[1, 1], [0, 0]], pad_value=3),
    "depth_to_space": lambda x: lazy.depth_to_space(x, 2, crops=[[1, 1], [0, 0]]),
    "space_to_batch_nd": lambda x: lazy.space_to_batch_nd(x, [2, 2], [[1, 1], [0, 0]]),
    "batch_to_space_nd": lambda x: lazy.batch_to_space_nd(x, [2, 2], [[1, 1], [0, 0]]),
    "preprocess": lambda x: lazy.preprocess(s2dq.Preprocessor(scale=0.1, size=(10, 8), block_size=2), x),
}


@pytest.mark.parametrize("name", CALLS)
def test_nothing_is_computed_by_the_call(name):
    x = zeros((4, 8, 6, 4), (1, 3, 5, 3), np.uint8).map_blocks(never, meta=np.empty((0,) * 4, np.uint8))
    result = CALLS[name](x)
    assert result.dtype == (np.int8 if name == "preprocess" else np.uint8)
    with pytest.raises(AssertionError, match="before it was asked for"):
        result.compute()


@pytest.mark.parametrize("dtype", [np.int8, np.float32, object])
@pytest.mark.parametrize(("name", "call"), [
    ("space_to_depth", lambda f, x, lazy: f(x, lazy)),
    ("space_to_depth", lambda f, x, lazy: f(x, [2, lazy])),
    ("space_to_depth", lambda f, x, lazy: f(x, 2, vect=lazy)),
    ("space_to_depth", lambda f, x, lazy: f(x, 2, channels=lazy)),
    ("space_to_depth", lambda f, x, lazy: f(x, 2, paddings=[[lazy, 0], [0, 0]])),
    ("space_to_depth", lambda f, x, lazy: f(x, 2, pad_value=lazy)),
    ("depth_to_space", lambda f, x, lazy: f(x, 2, crops=lazy)),
    ("space_to_batch_nd", lambda f, x, lazy: f(x, lazy.reshape(1), [[0, 0]])),
    ("space_to_batch_nd", lambda f, x, lazy: f(x, [2], [[0, 0]], pad_value=lazy)),
    ("batch_to_space_nd", lambda f, x, lazy: f(x, [lazy], [[0, 0]])),
])  # fmt: skip
def test_no_argument_is_computed(name, call, dtype):
    """Neither here nor by the plain operators: a Dask array would give its value to whoever asks for a number."""
    argument = da.from_array(np.array(2)).map_blocks(never, meta=np.array(2))
    for operator, x in ((getattr(lazy, name), zeros((4, 4, 4, 4), 2, dtype)),
                        (getattr(s2dq, name), np.zeros((4, 4, 4, 4), dtype))):  # fmt: skip
        with pytest.raises(TypeError, match=r"lazy Dask collection \(Array\).*call \.compute\(\) first") as refused:
            call(operator, x, argument)
        assert refused.value.__cause__ is None


@pytest.mark.parametrize("name", CALLS)
def test_the_plain_operator_runs_once_for_each_chunk_on_one_thread(name, monkeypatch):
    calls = []
    if name == "preprocess":
        monkeypatch.setattr(s2dq.Preprocessor, "__call__", lambda pre, frames: calls.append(pre.num_threads) or
                            np.zeros((len(frames), *(extent // 2 for extent in pre.size), 16), np.int8))  # fmt: skip
    else:
        plain = getattr(s2dq.operators, name)

        def counted(x, *arguments, num_threads=None, **keywords):
            calls.append(num_threads)
            return plain(x, *arguments, num_threads=num_threads, **keywords)

        monkeypatch.setattr(s2dq.operators, name, counted)
    result = CALLS[name](zeros((4, 8, 6, 4), (2, 4, 6, 4), np.uint8))
    assert calls == []
    result.compute()
    assert calls == [1] * {"preprocess": 2, "batch_to_space_nd": 2}.get(name, 4)


def test_the_same_call_has_the_same_name():
    x = zeros((4, 8, 6, 4), (1, 4, 6, 4), np.uint8)
    for call in CALLS.values():
        assert call(x).name == call(x).name
    assert lazy.space_to_depth(x, 2).name != lazy.space_to_depth(x, 2, mode="CRD").name


def test_importing_s2dq_does_not_import_dask():
    program = """
import sys, s2dq, s2dq.cli
assert not {"dask", "distributed"} & set(sys.modules)
assert callable(s2dq.dask.space_to_depth)  # asked for
"""
    subprocess.run([sys.executable, "-P", "-c", program], check=True, timeout=DEADLINE)


# ---- refusals


@pytest.mark.parametrize("name, call", [
    ("space_to_depth", lambda f, x: f(x, 3)), ("space_to_depth", lambda f, x: f(x, 2, "NCWH")),
    ("space_to_depth", lambda f, x: f(x, 2.0)), ("space_to_depth", lambda f, x: f(x, 0)),
    ("space_to_depth", lambda f, x: f(x, 2, mode="crd")), ("space_to_depth", lambda f, x: f(x, 2, channels=5)),
    ("space_to_depth", lambda f, x: f(x, 2, paddings=[[1, 0], [0, 0]])),
    ("space_to_depth", lambda f, x: f(x, 2, "NWC")),
    ("space_to_depth", lambda f, x: f(x, 2, pad_value=300)), ("depth_to_space", lambda f, x: f(x, 3)),
    ("depth_to_space", lambda f, x: f(x, 2, crops=[[9, 9], [0, 0]])),
    ("space_to_batch_nd", lambda f, x: f(x, [3, 1], [[0, 0], [0, 0]])),
    ("space_to_batch_nd", lambda f, x: f(x, [2, 2], [[0, 0]])), ("space_to_batch_nd", lambda f, x: f(x, 2, 0)),
    ("batch_to_space_nd", lambda f, x: f(x, [3], [[0, 0]])),
    ("batch_to_space_nd", lambda f, x: f(x, [2], [[0, -1]])),
])  # fmt: skip
def test_bad_arguments_get_the_plain_operators_message_at_the_call(name, call):
    x = np.zeros((4, 8, 8, 4), np.uint8)
    with pytest.raises((TypeError, ValueError)) as plain:
        call(getattr(s2dq, name), x)
    with pytest.raises(plain.type) as refused:
        call(getattr(lazy, name), da.from_array(x, chunks=3))
    assert type(refused.value) is type(plain.value) and str(refused.value) == str(plain.value)


@pytest.mark.parametrize("frames", [np.zeros((2, 9, 8, 3), np.uint8), np.zeros((2, 8, 8, 3), np.int8),
                                    np.zeros((8, 8), np.uint8), np.zeros((2, 7, 8, 3), np.uint8)])  # fmt: skip
def test_bad_frames_get_the_preprocessors_message_at_the_call(frames):
    pre = s2dq.Preprocessor(scale=0.1, block_size=2, **({"size": 8} if frames.shape[1] == 9 else {}))
    with pytest.raises((TypeError, ValueError)) as plain:
        pre(frames)
    with pytest.raises(plain.type) as refused:
        lazy.preprocess(pre, da.from_array(frames, chunks=2))
    assert str(refused.value) == str(plain.value)


@pytest.mark.parametrize("name", CALLS)
def test_other_arrays_are_refused(name):
    x = np.zeros((4, 8, 6, 4), np.uint8)
    argument = "frames" if name == "preprocess" else "x"
    plain = "a Preprocessor itself" if name == "preprocess" else f"s2dq.{name}"
    with pytest.raises(TypeError, match=f"^{name}: {argument} must be a Dask array, not ndarray; {plain} takes"):
        CALLS[name](x)
    with pytest.raises(TypeError, match="not a QuantizedTensor.* its values"):
        CALLS[name](s2dq.QuantizedTensor(x, 0.1, 3))
    masked = da.ma.masked_equal(da.from_array(x, chunks=2), 0)
    with pytest.raises(TypeError, match=f"^{name}: {argument} must not be a masked array"):
        CALLS[name](masked)
    unknown = da.from_array(x, chunks=2)
    unknown = unknown[unknown[:, 0, 0, 0] == 0]
    with pytest.raises(ValueError, match=f"^{name}: {argument} has chunks of unknown size along axis 0"):
        CALLS[name](unknown)


def test_pre_must_be_a_preprocessor():
    with pytest.raises(TypeError, match="^preprocess: pre must be a Preprocessor, not Postprocessor"):
        lazy.preprocess(s2dq.Postprocessor(scale=0.1), zeros((1, 2, 2, 3), 1, np.uint8))


def test_the_plain_operators_point_here():
    with pytest.raises(TypeError, match="s2dq.dask"):
        s2dq.space_to_depth(zeros((1, 2, 2, 1), 1), 2)


def test_an_array_larger_than_any_memory_is_only_described():
    x = zeros((2**20, 2**11, 2**11, 3), (1, -1, -1, -1))
    assert lazy.space_to_depth(x[: 2**8], 2).nbytes == 2**8 * 2**22 * 3
    huge = da.zeros((2**40, 2**20, 2, 2), dtype=np.float64, chunks=(2**36, 2**18, 2, 2))
    with pytest.raises(ValueError, match="larger than any array"):
        lazy.space_to_depth(huge, 2)


def test_signatures_are_those_of_the_plain_operators():
    for name in lazy.__all__:
        if name == "preprocess":
            continue
        plain, ours = (
            [(one.name, one.kind, one.default) for one in inspect.signature(function).parameters.values()]
            for function in (getattr(s2dq, name), getattr(lazy, name))
        )
        assert ours == [one for one in plain if one[0] not in ("out", "num_threads")]
    for name in lazy.__all__:
        text = inspect.getdoc(getattr(lazy, name))
        sections = ["Parameters", "Returns", "Raises", "See Also", "Notes", "References", "Examples"]
        places = [text.find(f"\n{section}\n{'-' * len(section)}\n") for section in sections]
        assert places == sorted(places) and places[0] > 0, name


# ---- stores and clusters


def test_from_one_zarr_store_to_another(tmp_path, rng):
    pytest.importorskip("zarr")
    x = rng.integers(-128, 128, (3, 12, 14, 3), np.int8)
    da.from_array(x, chunks=(1, 5, 7, 3)).to_zarr(str(tmp_path / "in.zarr"))
    stored = da.from_zarr(str(tmp_path / "in.zarr"))
    assert stored.chunks == ((1, 1, 1), (5, 5, 2), (7, 7), (3,))
    with dask.config.set(scheduler="threads", num_workers=2):
        # A Zarr array has chunks of one size: that is for the caller to choose.
        lazy.space_to_depth(stored, 2).rechunk((1, 3, 7, 12)).to_zarr(str(tmp_path / "out.zarr"))
        result = da.from_zarr(str(tmp_path / "out.zarr")).compute()
    np.testing.assert_array_equal(result, s2dq.space_to_depth(x, 2), strict=True)


@contextlib.contextmanager
def cluster_of_two(memory_limit, folder):
    """A client of two worker processes of one thread each."""
    distributed = pytest.importorskip("distributed")
    with dask.config.set({"temporary-directory": str(folder)}):
        cluster = distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, memory_limit=memory_limit, silence_logs=50,
            dashboard_address="127.0.0.1:0", scheduler_kwargs={"dashboard": False},
        )  # fmt: skip
        try:
            client = distributed.Client(cluster, timeout=DEADLINE, set_as_default=False)
            try:
                client.wait_for_workers(2, timeout=DEADLINE)
                yield client
            finally:
                client.close(timeout=DEADLINE)
        finally:
            cluster.close(timeout=DEADLINE)


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with cluster_of_two("1GB", tmp_path_factory.mktemp("cluster")) as client:
        yield client


def test_worker_processes_give_what_the_plain_operators_give(client, rng):
    draw, compared, futures = Draw(rng), 0, []
    for _ in range(12):
        for kind in (draw.depth, draw.batch):
            name, x, given, arguments, keywords = kind()
            note = (name, x.shape, x.dtype, given.chunks, arguments, keywords)
            result = getattr(lazy, name)(given, *arguments, **keywords)
            futures.append((client.compute(result), getattr(s2dq, name)(x, *arguments, **keywords), note))
    pre = s2dq.Preprocessor(scale=0.01, size=24, block_size=2, data_format="NCHW_VECT_C")
    frames = rng.integers(0, 256, (5, 18, 24, 3), np.uint8)
    result = lazy.preprocess(pre, da.from_array(frames, chunks=(2, 7, 9, 2)))
    futures.append((client.compute(result), pre(frames), (pre,)))
    for future, expected, note in futures:
        values = future.result(timeout=DEADLINE)
        assert (values.shape, values.dtype) == (expected.shape, expected.dtype), note
        assert values.tobytes() == expected.tobytes(), note
        compared += 1
    assert compared == 25


def test_chunks_are_made_in_other_processes(client):
    x = lazy.space_to_depth(zeros((8, 4, 4, 1), (1, 4, 4, 1)), 2)
    pids = x.map_blocks(jobs.pid_of, dtype=int, chunks=(1, 1, 1, 1), meta=np.empty((0,) * 4, int))
    seen = set(client.compute(pids).result(timeout=DEADLINE).ravel().tolist())
    assert os.getpid() not in seen and 1 <= len(seen) <= 2


def test_an_array_larger_than_the_memory_of_the_workers_is_spilled(tmp_path):
    """1.2 GB held by two workers of 300 MB each."""
    count = 96
    with cluster_of_two("300MB", tmp_path) as client:
        chunks = ((1,) * count, *((extent,) for extent in jobs.FRAME[1:]))
        x = da.map_blocks(jobs.frame, chunks=chunks, dtype=np.int8, meta=np.empty((0,) * 4, np.int8))
        deep = client.persist(lazy.space_to_depth(x, 2))
        chunks = ((1,) * count, 1, 1, 1)
        right = deep.map_blocks(jobs.is_right, chunks=chunks, dtype=bool, meta=np.empty((0,) * 4, bool))
        answers = client.compute(right).result(timeout=DEADLINE)
        spilled = client.run(lambda dask_worker: dask_worker.data.spilled_total.disk)
        assert answers.shape == (count, 1, 1, 1) and answers.all()
        assert deep.nbytes > 2 * 300e6 and sum(spilled.values()) > 500e6
        assert len(spilled) == 2


def test_the_command_on_a_scheduler_writes_the_same_files(client, tmp_path, monkeypatch, capsys, rng):
    Image = pytest.importorskip("PIL.Image")
    from s2dq.cli import main

    monkeypatch.chdir(tmp_path)
    for k in range(3):
        Image.fromarray(rng.integers(0, 256, (20, 30 + 2 * k, 3), np.uint8)).save(f"{k}.png")
    Path("notes.png").write_text("no image")
    command = ["preprocess", "0.png", "notes.png", "1.png", "2.png", "--size", "32x32", "--preview"]
    assert main([*command, "-o", "serial"]) == 1
    serial = capsys.readouterr()
    assert main([*command, "-o", "shared", "--scheduler", client.scheduler.address]) == 1
    shared = capsys.readouterr()
    assert serial.err.count("\n") == shared.err.count("\n") == 1
    assert serial.err.startswith("s2dq: error: notes.png: ") and shared.err.startswith("s2dq: error: notes.png: ")
    assert len(serial.out.splitlines()) == len(shared.out.splitlines()) == 4
    files = [{path.name: path.read_bytes() for path in Path(name).iterdir()} for name in ("serial", "shared")]
    assert files[0] == files[1] and len(files[0]) == 9


def test_a_scheduler_that_is_not_there_is_one_line(tmp_path, monkeypatch, capsys):
    pytest.importorskip("distributed")
    Image = pytest.importorskip("PIL.Image")
    from s2dq import _workers
    from s2dq.cli import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(_workers, "CONNECT_SECONDS", 1)
    Image.fromarray(np.zeros((4, 4, 3), np.uint8)).save("a.png")
    assert main(["preprocess", "a.png", "-o", "out", "--scheduler", "tcp://127.0.0.1:1"]) == 1
    err = capsys.readouterr().err
    assert err.startswith("s2dq: error: --scheduler tcp://127.0.0.1:1: ") and err.count("\n") == 1

"""TensorFlow: eager kernels for NHWC, XLA on the CPU for NCHW and NCHW_VECT_C, batch operators, legacy orders."""

import os

import numpy as np
import pytest

import problems
from s2dq.compat import tensorflow as ours

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
EAGER = ("int8", "uint8", "int16", "uint16", "int32", "int64", "float16", "float32", "float64", "complex64", "bool")
OF_BATCH = tuple(dtype for dtype in EAGER if dtype not in ("complex64", "bool"))  # the CPU has no kernel for these two


@pytest.fixture
def tf(peer):
    return peer("tensorflow")


@pytest.mark.parametrize("to_depth", [True, False])
def test_depth_operators(tf, rng, counted, to_depth):
    theirs = tf.nn.space_to_depth if to_depth else tf.nn.depth_to_space
    mine = ours.space_to_depth if to_depth else ours.depth_to_space
    for i in range(110):
        dtype = EAGER[i % len(EAGER)]
        x, block = problems.depth(rng, to_depth, dtype=dtype, channels_last=True, blocks=(2, 3, 4))
        problems.same(mine(problems.strided(rng, x), block), theirs(x, block).numpy(), (x.shape, dtype, block))
        counted("TensorFlow, eager")


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW", "NCHW_VECT_C"])
@pytest.mark.parametrize("to_depth", [True, False])
def test_depth_operators_compiled_by_xla(tf, rng, counted, to_depth, data_format):
    theirs = tf.nn.space_to_depth if to_depth else tf.nn.depth_to_space
    mine = ours.space_to_depth if to_depth else ours.depth_to_space
    for i in range(25):
        words = 4 if data_format == "NCHW_VECT_C" else 0
        dtype = ("int8", "uint8")[i % 2] if words else ("float32", "int8", "uint8", "int32", "float16")[i % 5]
        x, block = problems.depth(rng, to_depth, dtype=dtype, channels_last=data_format == "NHWC", blocks=(2, 3),
                                  words=words)
        compiled = tf.function(lambda x, block=block: theirs(x, block, data_format), jit_compile=True)
        problems.same(mine(problems.strided(rng, x), block, data_format), compiled(tf.constant(x)).numpy(),
                      (x.shape, dtype, block, data_format))
        counted("TensorFlow, XLA")


def test_space_to_batch(tf, rng, counted):
    for i in range(110):
        dims, dtype = 1 + i % 3, OF_BATCH[i % len(OF_BATCH)]
        x, block, pads = problems.space_to_batch(rng, dims, int(rng.integers(0, 3)), dtype)
        theirs = tf.space_to_batch_nd(x, block, pads).numpy()
        for mine in (ours.space_to_batch_nd, ours.space_to_batch):
            problems.same(mine(problems.strided(rng, x), block, pads), theirs, (x.shape, dtype, block, pads))
        counted("TensorFlow, eager")


def test_batch_to_space(tf, rng, counted):
    for i in range(110):
        dims, dtype = 1 + i % 3, OF_BATCH[i % len(OF_BATCH)]
        x, block, crops = problems.batch_to_space(rng, dims, int(rng.integers(0, 3)), dtype)
        theirs = tf.batch_to_space(x, block, crops).numpy()
        for mine in (ours.batch_to_space_nd, ours.batch_to_space):
            problems.same(mine(problems.strided(rng, x), block, crops), theirs, (x.shape, dtype, block, crops))
        counted("TensorFlow, eager")


def test_no_blocks_and_an_integer_for_two(tf, counted):
    x = np.arange(16, dtype=np.int8).reshape(4, 2, 2, 1)
    none = np.zeros((0, 2), np.int32)
    problems.same(ours.space_to_batch_nd(x, np.zeros(0, np.int32), none),
                  tf.space_to_batch_nd(x, np.zeros(0, np.int32), none).numpy(), "no blocks")
    problems.same(ours.batch_to_space(x, 2, [[0, 0], [1, 0]]),
                  tf.batch_to_space(x, 2, [[0, 0], [1, 0]]).numpy(), "an integer")
    counted("TensorFlow, eager", 2)


def test_legacy_orders(tf, rng, counted):
    v1 = tf.compat.v1
    for _ in range(40):
        x, block = problems.depth(rng, True, channels_last=True, blocks=(2, 3))
        problems.same(ours.v1.space_to_depth(x, block, "name", "NHWC"),
                      v1.space_to_depth(x, block, "name", "NHWC").numpy(), (x.shape, block))
        x, block = problems.depth(rng, False, channels_last=True, blocks=(2, 3))
        problems.same(ours.v1.depth_to_space(x, block, None, "NHWC"),
                      v1.depth_to_space(x, block, None, "NHWC").numpy(), (x.shape, block))
        block = int(rng.integers(1, 4))
        x = problems.values(rng, (2, 2 * block, 3 * block, 3), np.float32)
        pads = [[block, 0], [0, 2 * block]]
        batch = v1.space_to_batch(x, pads, block).numpy()
        problems.same(ours.v1.space_to_batch(x, pads, block), batch, (x.shape, pads, block))
        problems.same(ours.v1.space_to_batch(x, pads, block_shape=block), batch, (x.shape, pads, block))
        problems.same(ours.v1.batch_to_space(batch, pads, block), v1.batch_to_space(batch, pads, block).numpy(), block)
        counted("TensorFlow, eager", 4)


def test_required_paddings(tf, rng, counted):
    for _ in range(110):
        dims = int(rng.integers(0, 4))
        shape, block = rng.integers(1, 20, dims), rng.integers(1, 6, dims)
        base = None if rng.integers(0, 2) else rng.integers(0, 5, (dims, 2))
        theirs = tf.required_space_to_batch_paddings(
            shape.astype(np.int32), block.astype(np.int32), None if base is None else base.astype(np.int32))
        mine = ours.required_space_to_batch_paddings(shape, block, base)
        for one, other in zip(mine, theirs, strict=True):
            problems.same(one, np.asarray(other), (shape, block, base))
        counted("TensorFlow, eager")


def test_what_is_taken_there_and_refused_here(tf, counted):
    """The rows of "What differs" in docs/compat/tensorflow.md."""
    x = np.arange(16, dtype=np.float32).reshape(1, 4, 4, 1)
    two, none = np.array([2.0, 2.0]), [[0, 0], [0, 0]]
    for theirs, mine in (
        (lambda: tf.nn.space_to_depth(x, 2.0), lambda: ours.space_to_depth(x, 2.0)),
        (lambda: tf.nn.space_to_depth(x, 2.5), lambda: ours.space_to_depth(x, 2.5)),
        (lambda: tf.nn.space_to_depth(x, np.float32(2)), lambda: ours.space_to_depth(x, np.float32(2))),
        (lambda: tf.nn.space_to_depth(x, 2, b"NHWC"), lambda: ours.space_to_depth(x, 2, b"NHWC")),
        (lambda: tf.nn.space_to_depth(x, 2, name=3), lambda: ours.space_to_depth(x, 2, name=3)),
        (lambda: tf.space_to_batch(x, two, none), lambda: ours.space_to_batch(x, two, none)),
        (lambda: tf.space_to_batch(x, [2, 2], np.zeros((2, 2))),
         lambda: ours.space_to_batch(x, [2, 2], np.zeros((2, 2)))),
        (lambda: tf.required_space_to_batch_paddings([5], two[:1])[0],
         lambda: ours.required_space_to_batch_paddings([5], two[:1])),
        (lambda: tf.nn.space_to_depth(tf.cast(x, tf.bfloat16), 2),
         lambda: ours.space_to_depth(tf.cast(x, tf.bfloat16), 2)),
        (lambda: tf.nn.space_to_depth(tf.Variable(x), 2), lambda: ours.space_to_depth(tf.Variable(x), 2)),
        (lambda: tf.nn.space_to_depth(tf.strings.as_string(x), 2),
         lambda: ours.space_to_depth(tf.strings.as_string(x), 2)),
    ):  # fmt: skip
        assert theirs().shape
        with pytest.raises(TypeError):
            mine()
        counted("TensorFlow, eager")
    assert tf.required_space_to_batch_paddings([5], [2], [[-1, 0]])[0].numpy().tolist() == [[-1, 0]]
    with pytest.raises(ValueError, match="at least 0"):
        ours.required_space_to_batch_paddings([5], [2], [[-1, 0]])
    for tensor in (tf.cast(x, tf.bfloat16), tf.Variable(x)):
        with pytest.raises(TypeError, match=r"\.numpy\(\) may make one of it"):
            ours.space_to_depth(tensor, 2)
        problems.same(ours.space_to_depth(tensor.numpy(), 2), tf.nn.space_to_depth(tensor, 2).numpy(), tensor.dtype)


def test_what_is_taken_here_and_refused_there(tf, counted):
    x = np.arange(16, dtype=np.float32).reshape(1, 4, 4, 1)
    for dtype in ("g", "M8[s]", "O"):
        given = x.astype(dtype)
        with pytest.raises(ValueError, match="Failed to convert"):
            tf.nn.space_to_depth(given, 2)
        assert ours.space_to_depth(given, 2).dtype == given.dtype
        counted("TensorFlow, refusals")


def test_no_data_format_is_nhwc(tf, counted):
    x = np.arange(16, dtype=np.float32).reshape(1, 4, 4, 1)
    problems.same(ours.space_to_depth(x, 2, None), tf.nn.space_to_depth(x, 2, None).numpy(), "None")
    counted("TensorFlow, eager")


@pytest.mark.parametrize(("call", "kind"), [
    (lambda f: f.space_to_depth(np.zeros((1, 2, 2, 1), np.int8), 1), ValueError),
    (lambda f: f.space_to_depth(np.zeros((1, 3, 2, 1), np.int8), 2), ValueError),
    (lambda f: f.depth_to_space(np.zeros((1, 2, 2, 3), np.int8), 2), ValueError),
    (lambda f: f.space_to_batch(np.zeros((1, 3, 1), np.int8), [2], [[0, 0]]), ValueError),
    (lambda f: f.space_to_batch(np.zeros((1, 2, 1), np.int8), [2], [[-2, 2]]), ValueError),
    (lambda f: f.space_to_batch(np.zeros((1, 2, 1), np.int8), [0], [[0, 0]]), ValueError),
    (lambda f: f.batch_to_space(np.zeros((3, 2, 1), np.int8), [2], [[0, 0]]), ValueError),
    (lambda f: f.batch_to_space(np.zeros((2, 2, 1), np.int8), [2], [[3, 2]]), ValueError),
])
def test_both_refuse(tf, counted, call, kind):
    with pytest.raises(kind):
        call(ours)
    namespace = type("TF", (), {
        "space_to_depth": tf.nn.space_to_depth, "depth_to_space": tf.nn.depth_to_space,
        "space_to_batch": tf.space_to_batch, "batch_to_space": tf.batch_to_space,
    })
    with pytest.raises((tf.errors.InvalidArgumentError, ValueError)):
        call(namespace)
    counted("TensorFlow, refusals")

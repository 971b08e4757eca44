"""Problems of every kind in sizes at the limits of the planner, with what kernels can do: `drawn_problem(index)`.

Plans are made of integers alone, so no problem here has an array, and results may be larger than any memory. Limits are
written here once more, for those of the planner may be what is broken.
"""

import random
from math import prod

from s2dq._layout import LAYOUTS, MODES, BatchProblem, DepthProblem, channels_first, contiguous_steps, tensor_shape

# The first ones, and some more that noticed changes of the planner which these did not.
PRICED = 10**10  # from this index on, problems of `PRICED_KINDS`
INDICES = (
    *range(2000),
    2050, 2265, 2284, 2364, 2529, 2612, 2675, 2971, 3202, 3268, 3273, 3349, 3454, 3559, 3717, 3932, 4166, 4468, 4814,
    5556, 6838, 6918, 7549, 7976, 10217, 12536, 17872, 18559, 18562, 301709, 308246, 313471, 810114, 900690, 1017881,
    1219649, 1309284, 1407942,
    *range(PRICED, PRICED + 300),
    *(PRICED + index for index in (419, 822, 1490, 3247, 3453, 3692, 4403, 6253, 6717, 8314, 19023, 50524)),
)  # fmt: skip
SEED = 20250301
# Bytes of a run, a row or a result, or indices of a loop, from which on the planner goes another way.
RUNS = (16, 32, 64, 128, 192, 256, 1 << 11, 1 << 12)
ROWS = (1 << 12, 12 << 10, 1 << 14, 1 << 15, 1 << 15, 1 << 16, 1 << 16)
RESULTS = (1 << 16, 10 << 20, 10 << 20, 1 << 23, 1 << 23, 2 * 65537, 4096 * 65537)  # 65537 is a prime number
LIMITS = RUNS + ROWS + RESULTS
MEANS = (
    None, None,  # the same for all instruction sets without tiles
    (False, False, False, True, False, True, False, False, False),
    (False, False, False, True, False, True, False, False, False),
    (True, True, True, True, True, False, True, False, True), (True, True, True, True, True, False, True, True, True),
    (True, False, False, False, True, False, False, False, False),
)  # fmt: skip


class Drawer:
    """Numbers from a seed; the same in every version of Python."""

    def __init__(self, seed):
        self.draw = random.Random(seed).random

    def below(self, count):
        """From 0 to ``count - 1``."""
        return int(self.draw() * count)

    def pick(self, *values):
        return values[self.below(len(values))]

    def chance(self, one_in):
        return self.below(one_in) == 0

    def near(self, limit, unit):
        """So many units that `limit` is met, or missed by one."""
        return max(1, limit // max(1, unit) + self.pick(-1, 0, 0, 1))

    def extents(self, count, unit, limits=LIMITS):
        """Of so many axes: small, odd, or such that some of them come to a limit together with `unit` bytes."""
        way = self.below(8)
        if way < 2:
            return [1 + self.below(6) for _ in range(count)]
        if way < 4:
            return [1 + self.below(self.pick(9, 40, 130, 700)) for _ in range(count)]
        found = [self.pick(1, 1, 2, 3, 4, 8, 15, 16, 17, 32) for _ in range(count)]
        inner = self.below(count)  # the limit is that of the axes from here on
        found[inner] = self.near(self.pick(*limits), unit * prod(found[inner + 1:]))
        if inner and self.chance(2):  # and another one of them all
            found[0] = self.near(self.pick(*limits), unit * prod(found[1:]))
        return found

    def margins(self, whole, block, one_in=2):
        """Where a window begins on an axis, and its extent; `one_in` windows is the whole axis."""
        if self.chance(one_in):
            return 0, whole
        start = min(whole, self.pick(0, 1, block - 1, block, self.below(2 * block + 1)))
        return start, max(0, whole - start - self.pick(0, 1, block, self.below(2 * block + 1)))

    def steps(self, shape, itemsize):
        """Of a source: in order, in a larger array, backwards, repeated, or turned."""
        steps = contiguous_steps(shape, itemsize)
        way = self.below(12)
        if way < 7 or not shape:
            return steps
        axis = self.below(len(shape))
        if way == 7:
            return contiguous_steps([extent + self.pick(0, 1, 3) for extent in shape], itemsize)
        if way == 8:
            return tuple(2 * step for step in steps)
        if way == 9:
            return (*steps[:axis], -steps[axis], *steps[axis + 1:])
        if way == 10:
            return (*steps[:axis], 0, *steps[axis + 1:])
        turned = contiguous_steps((*shape[axis:], *shape[:axis]), itemsize)
        return (*turned[len(shape) - axis:], *turned[: len(shape) - axis])


def drawn_problem(index):
    """A problem, and the fields of `Means`, or None: the same for the same index."""
    drawer = Drawer(SEED * 1000000 + index)
    means = drawer.pick(*MEANS)
    if means and drawer.chance(4):  # what no instruction set has
        means = (*(drawer.chance(2) for _ in means[:-2]), *means[-2:])  # the last fields are newer than the draws
    kind = drawer.pick(*(KINDS if index < PRICED else PRICED_KINDS))
    return kind(drawer), means


def moved(drawer):
    """Elements of any width, between plain layouts above all."""
    return depth_problem(drawer, drawer.pick(1, 2, 2, 2, 2, 3, 4), words_in=drawer.pick(0, 3, 6))


def packed(drawer):
    """To words, from words, and both."""
    return depth_problem(drawer, 2, words_in=2)


def ragged(drawer):
    """Small blocks that fill words in part."""
    block = drawer.pick((1, 1), (1, 2), (2, 1), (2, 2), (2, 2), (3, 3), (4, 4))
    channels = drawer.pick(1, 2, 3, 3, 5, 6, 7, 1 + drawer.below(40))
    itemsize = drawer.pick(1, 1, 1, 1, 2, 4, 8, 16)
    if drawer.chance(8):  # so many pad values that a tile does not reach all of them
        channels = drawer.near(128, itemsize) - 1
    blocks = (1 + drawer.below(3), 1 + drawer.below(3)) if drawer.chance(2) else None
    lookup = drawer.pick("", "", "", "flip", "line", "table")
    return depth_problem(drawer, 2, words_in=1, itemsize=itemsize, lookup=lookup, block=block, channels=channels,
                         blocks=blocks)


def vast_words(drawer):
    """Words that hold blocks with rows of pages."""
    wide = drawer.pick(4096, 8192, 4099, 2048, 65536)
    return depth_problem(drawer, 2, words_in=1, itemsize=drawer.pick(1, 1, 2), channels=drawer.pick(1, 3, 5),
                         block=(1, wide), blocks=(1 + drawer.below(4), 1 + drawer.below(4)), lanes=(2 * wide,))


def framed(drawer):
    """Bytes that go through tables on their way."""
    lookup = drawer.pick("table", "flip", "line", "line")
    channels = drawer.pick(1, 2, 3, 3, 4, 8, 16, 64, 1 + drawer.below(100))
    block = drawer.pick(None, (1, 1), (1, 1), (1, 2), (2, 1))
    return depth_problem(drawer, 2, words_in=3, lookup=lookup, channels=channels, block=block)


def looked_up(drawer):
    """Long runs of bytes, and planes of a line, that go through tables."""
    lookup = drawer.pick("flip", "line", "line")
    run = drawer.pick(64, 64, 128, 190, 192, 320, 1 << 11, 1 << 15, 40000, 1 << 16)
    blocks = drawer.pick((8, 8), (1, 64), (2, 32), (9, 7), (4, 64), (1, run), (1, run + 1), (1, run - 1), (3, run // 3))
    return depth_problem(drawer, 2, words_in=0, lookup=lookup, channels=drawer.pick(1, 1, 2, 3), block=(1, 1),
                         blocks=blocks)


def converted(drawer):
    """Frames that are converted to elements of another width."""
    itemsize, staged = drawer.pick((1, 4), (1, 4), (2, 1), (4, 1), (2, 4), (4, 4))
    blocks = drawer.pick(None, None, (drawer.pick(1, 3, 9, 6200, 13000), 1 + drawer.below(4)))
    return depth_problem(drawer, 2, words_in=2, itemsize=itemsize, staged=staged, channels=drawer.pick(1, 3, 3, 4, 6),
                         block=drawer.pick(None, (1, 1), (2, 2), (2, 2)), blocks=blocks)


def short(drawer):
    """Planes with rows of about 16 or 32 bytes, or of a few vectors."""
    itemsize = drawer.pick(1, 1, 2, 4, 8)
    block = drawer.pick((1, 2), (2, 2), (2, 2), (8, 8), (1, 8), (2, 8), (4, 4), (2, 3))
    row = drawer.pick(16, 16, 17, 20, 24, 31, 32, 32, 64)
    blocks = (1 + drawer.below(9), drawer.near(row, itemsize * drawer.pick(1, 1, block[1])))
    return depth_problem(drawer, 2, words_in=0, itemsize=itemsize, channels=drawer.pick(1, 2, 3, 4), block=block,
                         blocks=blocks, whole=drawer.pick(1, 2))


def windowed(drawer):
    """Windows that cut a move into many boxes."""
    dims = drawer.pick(3, 4, 4, 5)
    block, blocks = (2,) * dims, tuple(drawer.pick(1, 2, 3, 3) for _ in range(dims))
    starts = tuple(drawer.pick(0, 1, 1, 2) for _ in range(dims))
    windows = [(start, max(0, 2 * count - start - drawer.pick(0, 1, 1, 2))) for start, count in zip(starts, blocks)]
    return depth_problem(drawer, dims, words_in=0, itemsize=drawer.pick(1, 1, 1, 2, 8, 200), block=block,
                         blocks=blocks, channels=drawer.pick(1, 2, 3, 16, 512, 1 << 10, 1 << 11, 1 << 12),
                         batch=drawer.pick(1, 2, 4), windows=windows)


def streamed(drawer):
    """Results of about 10 MiB, in rows and runs of powers of two, and runs whose extent has a large prime factor."""
    itemsize, channels = drawer.pick(1, 1, 2, 4), drawer.pick(1, 1, 2, 3, 4, 16, 64)
    block = drawer.pick((1, 1), (2, 2), (2, 2), (4, 4), (1, 2))
    row = drawer.pick(1 << 10, 1 << 11, 1 << 11, 1 << 11, 1 << 12, 5 << 11)
    wide = drawer.near(row, itemsize * drawer.pick(1, channels, prod(block), channels * prod(block)))
    if drawer.below(4):
        wide = row // itemsize
    tall = drawer.near(drawer.pick(10 << 20, 10 << 20, 21 << 19), itemsize * channels * prod(block) * wide)
    if drawer.chance(5):
        block, channels, itemsize = (1, 1), 1, drawer.pick(1, 1, 2)
        tall, wide = drawer.pick(1, 2, 3, 6, 4096, 4096 // itemsize, 2048), 65537
    return depth_problem(drawer, 2, words_in=0, itemsize=itemsize, channels=channels, block=block, blocks=(tall, wide),
                         whole=drawer.pick(1, 1, 2), lookup=drawer.pick("", "", "", "flip", "line"), batch=1)


def leaping(drawer):
    """Other layouts, of results about where leaps in memory change their price, in about as many streams as a
    processor follows."""
    itemsize, batch, block = drawer.pick(1, 1, 2, 4, 8), drawer.pick(1, 1, 2), drawer.pick((1, 1), (1, 1), (2, 2))
    channels = drawer.pick(16, 32, 64, 128) + drawer.pick(-1, 0, 0, 1)
    unit = itemsize * batch * channels * prod(block)
    nbytes = drawer.pick(640 << 10, 640 << 10, 12 << 20) + drawer.below(1 << 11)
    tall = drawer.pick(1, 2, 8, 16, 17, 32, 33, 64, 65, 1 + drawer.below(70))
    blocks = (tall, max(1, nbytes // (unit * tall)))
    blocks = blocks if drawer.below(2) else blocks[::-1]
    return depth_problem(drawer, 2, words_in=drawer.pick(0, 0, 0, 3), itemsize=itemsize, batch=batch, channels=channels,
                         block=block, blocks=blocks, whole=1)


def grown(drawer):
    """Blocks of which a run of the result is made that is about as long as those that are stored in whole lines, in
    results about as large as those are."""
    itemsize, batch = drawer.pick(1, 1, 2, 4, 8, 8, 16), drawer.pick(1, 1, 2)
    block = drawer.pick((2, 2), (2, 2), (3, 3), (4, 4), (4, 4), (2, 4), (8, 8), (1, 2))
    run = drawer.pick(1536, 1536, 768, 2048, 3072, 96 * drawer.pick(1, 2, 3, 4, 6, 8, 12))
    channels = max(1, run // (itemsize * prod(block)) + drawer.pick(-1, 0, 0, 0, 0, 1))
    unit = itemsize * batch * channels * prod(block)
    count = max(1, drawer.pick(1 << 15, 1 << 15, 1 << 17, 1 << 20, 1 << 20) // unit + drawer.pick(-1, 0, 1))
    tall = drawer.pick(1, 2, 3, 4, 8, 24)
    lookup = drawer.pick("", "", "", "", "flip", "line") if itemsize == 1 else ""
    return depth_problem(drawer, 2, words_in=drawer.pick(0, 0, 0, 3), itemsize=itemsize, batch=batch, channels=channels,
                         block=block, blocks=(tall, max(1, count // tall)), whole=1, lookup=lookup)


def depth_problem(drawer, dims, words_in, itemsize=0, lookup="", staged=0, batch=None, channels=0, block=None,
                  blocks=None, lanes=(1, 2, 3, 4, 4, 8, 16, 32, 64), whole=2, windows=None):
    """One of the depth operators; the layout of one in `words_in` tensors has words, one window in `whole` is none."""
    frames = bool(lookup or staged)
    itemsize = 1 if lookup else itemsize or drawer.pick(1, 1, 1, 1, 2, 4, 8, 3, 16, 200)
    to_depth = staged > 0 or drawer.below(3) > 0
    first = channels_first(dims)
    plain = [first] if dims > 3 else [first, LAYOUTS[("NWC", "NHWC", "NDHWC")[dims - 1]]]
    source, target = drawer.pick(*plain), drawer.pick(*plain)
    if words_in and drawer.chance(words_in) and not (frames and to_depth):
        source = LAYOUTS["NCHW_VECT_C"] if dims == 2 else source
    if words_in and drawer.chance(words_in) and not (frames and not to_depth):
        target = LAYOUTS["NCHW_VECT_C"] if dims == 2 else target
    if words_in == 1 and drawer.chance(2):
        source, target = drawer.pick((source, plain[0]), (plain[-1], target)) if not frames else (source, target)
    src_lanes = drawer.pick(*lanes) if source.packed else 0
    dst_lanes = drawer.pick(*lanes) if target.packed else 0
    if source.packed and target.packed and drawer.chance(2):
        dst_lanes = src_lanes
    batch = batch or drawer.pick(1, 1, 1, 2, 5, 20, 3000 if staged else 20)
    if not channels:
        channels = drawer.pick(1, 3, 3, 4, 4, 8, 16, 32, 64, 1 + drawer.below(20), 1 + drawer.below(200))
        if drawer.chance(8):
            channels = drawer.near(drawer.pick(*RUNS, *ROWS), itemsize)
    if not block:
        block = tuple(drawer.pick(1, 2, 2, 2, 3, 4, 5) for _ in range(dims))
        if drawer.chance(2):
            block = (drawer.pick(1, 2, 2, 4, 8),) * dims
    if not blocks:
        unit = drawer.pick(1, channels, prod(block), channels * prod(block))
        limits = ROWS if staged else LIMITS
        blocks = tuple(drawer.extents(dims, itemsize * unit, limits))
        if staged:  # a row comes to as many boxes
            blocks = (blocks[0], min(blocks[1], 1 + 12000 // (channels * block[1])))
    windows = windows or [drawer.margins(count * b, b, whole) for count, b in zip(blocks, block)]
    if staged and blocks[1] > 8 and min(extent for _, extent in windows) == 0:
        windows = [(0, count * b) for count, b in zip(blocks, block)]
    lo, space = zip(*windows)
    if drawer.chance(60):
        batch, channels = drawer.pick((0, channels), (batch, 0))
    outside, inside = dict(zip(first.spatial, space)), dict(zip(first.spatial, blocks))
    deep = channels * prod(block)
    here, there = ((outside, channels), (inside, deep)) if to_depth else ((inside, deep), (outside, channels))
    shape = tensor_shape(source, batch, *here, src_lanes)
    return DepthProblem(
        to_depth=to_depth, source=source, target=target, mode=drawer.pick(*MODES),
        steps=drawer.steps(shape, staged or itemsize), itemsize=itemsize, batch=batch, blocks=blocks, block=block,
        lo=lo, space=space, channels=channels, src_lanes=src_lanes, dst_lanes=dst_lanes,
        dst_shape=tensor_shape(target, batch, *there, dst_lanes), tables=drawer.pick(1, channels) if frames else 0,
        pads=drawer.pick(1, channels) if to_depth else 1, reverse=frames and drawer.chance(2), lookup=lookup,
        staged=staged,
    )  # fmt: skip


def batches(drawer):
    """One of the batch operators."""
    dims = drawer.pick(0, 1, 1, 2, 2, 2, 3)
    itemsize = drawer.pick(1, 1, 2, 4, 8, 3, 200)
    rest = tuple(drawer.extents(drawer.pick(1, 1, 2), itemsize)) if drawer.below(4) else ()
    block = tuple(drawer.pick(1, 2, 2, 3, 4) for _ in range(dims))
    blocks = tuple(drawer.extents(dims, itemsize * prod(rest))) if dims else ()
    windows = [drawer.margins(count * b, b) for count, b in zip(blocks, block)]
    lo, space = tuple(start for start, _ in windows), tuple(extent for _, extent in windows)
    batch, to_batch = drawer.pick(1, 1, 2, 3) if drawer.below(20) else 0, drawer.below(2) == 0
    plain, blocked = (batch, *space, *rest), (batch * prod(block), *blocks, *rest)
    source, target = (plain, blocked) if to_batch else (blocked, plain)
    pads = ()
    if to_batch and drawer.chance(3):
        pads = tuple(step if drawer.chance(2) else 0 for step in contiguous_steps(source, itemsize))
    return BatchProblem(
        to_batch=to_batch, steps=drawer.steps(source, itemsize), itemsize=itemsize, batch=batch, blocks=blocks,
        block=block, lo=lo, space=space, rest=rest, dst_shape=target, pads=pads,
    )  # fmt: skip


KINDS = (
    moved, moved, packed, packed, ragged, ragged, ragged, framed, framed, looked_up, looked_up, converted, converted,
    short, short, windowed, streamed, streamed, batches, batches, vast_words,
)  # fmt: skip
PRICED_KINDS = (leaping, grown)

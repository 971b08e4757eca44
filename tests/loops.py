"""The second oracle: every operator as literal index loops over tiny arrays.

Written from the index equations alone: one element at a time is read at one coordinate and written at
another, and every coordinate is computed with plain integer arithmetic. No reshape, no transposition and
nothing of the package is used, so a mistake made there cannot be repeated here.

Arguments are taken to be legal; bad ones are the business of other tests.
"""

from itertools import product
from math import prod

import numpy as np

CHANNELS_LAST = ("NWC", "NHWC", "NDHWC")
CHANNELS_FIRST = ("NCW", "NCHW", "NCDHW")
PACKED = "NCHW_VECT_C"


def space_to_depth(x, block_size, data_format="NHWC", *, mode="DCR", out_format=None, vect=4, channels=None,
                   paddings=None, pad_value=None):
    """out[n, cell, deep(offset, c)] = x[n, cell*block + offset - start, c], the padding outside of x."""
    batch, extents, count, lanes = sizes(x.shape, data_format, channels)
    block = per_dimension(block_size, len(extents))
    pads = margins(paddings, len(extents))
    word = out_lanes(data_format, out_format, lanes, vect)
    target = out_format or data_format

    cells = [(e + start + end) // b for e, b, (start, end) in zip(extents, block, pads, strict=True)]
    out = np.zeros(shape_in(target, batch, cells, count * prod(block), word), x.dtype)
    padding = fill_value(0 if pad_value is None else pad_value, x.dtype)

    for n, c in product(range(batch), range(count)):
        for cell in product(*map(range, cells)):
            for offset in product(*map(range, block)):
                place = [i * b + o - start
                         for i, b, o, (start, _) in zip(cell, block, offset, pads, strict=True)]
                inside = all(0 <= p < e for p, e in zip(place, extents, strict=True))
                value = x[index_in(data_format, n, place, c, lanes)] if inside else padding
                out[index_in(target, n, cell, deep_channel(mode, offset, block, c, count), word)] = value
    return out


def depth_to_space(x, block_size, data_format="NHWC", *, mode="DCR", out_format=None, vect=4, channels=None,
                   crops=None):
    """out[n, p, c] = x[n, (p + start) // block, deep((p + start) % block, c)]."""
    batch, cells, deep, lanes = sizes(x.shape, data_format, channels)
    block = per_dimension(block_size, len(cells))
    cuts = margins(crops, len(cells))
    word = out_lanes(data_format, out_format, lanes, vect)
    target = out_format or data_format

    count = deep // prod(block)
    extents = [i * b - start - end for i, b, (start, end) in zip(cells, block, cuts, strict=True)]
    out = np.zeros(shape_in(target, batch, extents, count, word), x.dtype)

    for n, c in product(range(batch), range(count)):
        for place in product(*map(range, extents)):
            full = [p + start for p, (start, _) in zip(place, cuts, strict=True)]
            cell = [p // b for p, b in zip(full, block, strict=True)]
            offset = [p % b for p, b in zip(full, block, strict=True)]
            source = deep_channel(mode, offset, block, c, count)
            out[index_in(target, n, place, c, word)] = x[index_in(data_format, n, cell, source, lanes)]
    return out


def space_to_batch_nd(x, block_shape, paddings, *, pad_value=None):
    """out[blk*N + n, cell, rest] = x[n, cell*block + offset - start, rest], the padding outside of x."""
    block = [int(b) for b in block_shape]
    pads = margins(paddings, len(block))
    batch, extents, rest = x.shape[0], x.shape[1:1 + len(block)], x.shape[1 + len(block):]

    cells = [(e + start + end) // b for e, b, (start, end) in zip(extents, block, pads, strict=True)]
    out = np.zeros((prod(block) * batch, *cells, *rest), x.dtype)
    padding = fill_value(0 if pad_value is None else pad_value, x.dtype)

    for m, *index in product(*map(range, out.shape)):
        cell, tail = index[:len(block)], index[len(block):]
        offset = digits(m // batch, block)
        place = [i * b + o - start for i, b, o, (start, _) in zip(cell, block, offset, pads, strict=True)]
        inside = all(0 <= p < e for p, e in zip(place, extents, strict=True))
        out[m, *index] = x[m % batch, *place, *tail] if inside else padding
    return out


def batch_to_space_nd(x, block_shape, crops):
    """out[n, p, rest] = x[blk*N + n, (p + start) // block, rest], blk from (p + start) % block."""
    block = [int(b) for b in block_shape]
    cuts = margins(crops, len(block))
    batch, cells, rest = x.shape[0] // prod(block), x.shape[1:1 + len(block)], x.shape[1 + len(block):]

    extents = [i * b - start - end for i, b, (start, end) in zip(cells, block, cuts, strict=True)]
    out = np.zeros((batch, *extents, *rest), x.dtype)

    for n, *index in product(*map(range, out.shape)):
        place, tail = index[:len(block)], index[len(block):]
        full = [p + start for p, (start, _) in zip(place, cuts, strict=True)]
        cell = [p // b for p, b in zip(full, block, strict=True)]
        blk = number([p % b for p, b in zip(full, block, strict=True)], block)
        out[n, *index] = x[blk * batch + n, *cell, *tail]
    return out


space_to_batch = space_to_batch_nd  # TensorFlow 2 has both names for one operator
batch_to_space = batch_to_space_nd


def pack_vect_c(x, data_format="NCHW", *, vect=4, pad_value=0):
    """out[n, c // V, h, w, c % V] = x[n, c, h, w]; lanes past the last channel hold pad_value."""
    batch, (height, width), count, _ = sizes(x.shape, data_format, None)
    words = -(-count // vect)
    out = np.zeros((batch, words, height, width, vect), x.dtype)
    spare = fill_value(pad_value, x.dtype)

    for n, word, h, w, lane in product(*map(range, out.shape)):
        c = word * vect + lane
        out[n, word, h, w, lane] = x[index_in(data_format, n, (h, w), c, 0)] if c < count else spare
    return out


def unpack_vect_c(x, data_format="NCHW", *, channels=None):
    """out[n, c, h, w] = x[n, c // V, h, w, c % V]."""
    batch, (height, width), count, lanes = sizes(x.shape, PACKED, channels)
    out = np.zeros(shape_in(data_format, batch, (height, width), count, 0), x.dtype)

    for n, c, h, w in product(range(batch), range(count), range(height), range(width)):
        out[index_in(data_format, n, (h, w), c, 0)] = x[n, c // lanes, h, w, c % lanes]
    return out


def deep_channel(mode, offset, block, c, count):
    """The deep channel of shallow channel `c` at `offset` inside its block."""
    if mode == "DCR":
        return number(offset, block) * count + c
    if mode == "CRD":
        return c * prod(block) + number(offset, block)
    if mode == "focus":
        return number(offset[::-1], block[::-1]) * count + c
    raise AssertionError(mode)


def number(offset, block):
    """The number of a position in a block counted row by row: 2-D `offset[0]*block[1] + offset[1]`."""
    total = 0
    for o, b in zip(offset, block, strict=True):
        total = total * b + o
    return total


def digits(total, block):
    """The position in a block that has this number: the inverse of `number`."""
    offset = []
    for b in reversed(block):
        offset.insert(0, total % b)
        total //= b
    return offset


def sizes(shape, layout, channels):
    """Batch, spatial extents, logical channels and lanes (0 unless packed) of a tensor of this shape."""
    if layout == PACKED:
        batch, words, height, width, lanes = shape
        return batch, (height, width), words * lanes if channels is None else int(channels), lanes
    if layout in CHANNELS_LAST:
        batch, *extents, count = shape
    else:
        assert layout in CHANNELS_FIRST, layout
        batch, count, *extents = shape
    return batch, tuple(extents), count, 0


def shape_in(layout, batch, extents, count, lanes):
    """Shape of a tensor with these sizes."""
    if layout == PACKED:
        return (batch, -(-count // lanes), *extents, lanes)
    return (batch, *extents, count) if layout in CHANNELS_LAST else (batch, count, *extents)


def index_in(layout, n, place, c, lanes):
    """Where element (n, place, c) is stored."""
    if layout == PACKED:
        return (n, c // lanes, *place, c % lanes)
    return (n, *place, c) if layout in CHANNELS_LAST else (n, c, *place)


def out_lanes(data_format, out_format, lanes, vect):
    """Lanes of a packed result: `vect`; with format and `vect` left alone, those of a packed source."""
    keeps_words = out_format is None and data_format == PACKED and vect == 4
    return lanes if keeps_words else int(vect)


def per_dimension(block_size, count):
    """One block extent per spatial dimension."""
    if np.ndim(block_size) == 0:
        return (int(block_size),) * count
    return tuple(int(b) for b in block_size)


def margins(pairs, count):
    """(start, end) per dimension."""
    return [(0, 0)] * count if pairs is None else [(int(start), int(end)) for start, end in pairs]


def fill_value(value, dtype):
    """`value` as an element of the dtype; none, or the integer 0, is raw zero in every dtype."""
    fill = np.zeros(1, dtype)
    if not (type(value) is int and value == 0):
        fill[0] = value
    return fill[0]

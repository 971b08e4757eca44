"""Tile programs run by hand: what a `Tile` and its loops say, byte by byte, without a kernel.

A *map* is an array of rows ``(destination byte, source)`` where the source is the offset of a byte, or ``FILL - k`` for
byte k of the fill values. Bytes are numbered, not looked at: two that hold the same value are still two.
"""

import numpy as np

from s2dq._tiles import Network

FILL = -(1 << 40)
REGISTER = 64


def run_of_network(network):
    """The map of one turn of a network: sixteen registers, exchanged pair by pair on every level."""
    if network.bend:
        return run_of_bend(network)

    def bytes_of(side):
        assert side.masks == ((1 << side.width) - 1,) * (16 * REGISTER // side.width), "pieces are full"
        return (np.array(side.offsets, np.int64)[:, None] + np.arange(side.width)).reshape(16, REGISTER)

    registers = bytes_of(network.src)
    for level, (clear, other) in enumerate(network.tables):
        assert max(*clear, *other) < 2 * REGISTER
        made = registers.copy()
        for k in range(16):
            pair = np.concatenate([registers[k & ~(1 << level)], registers[k | 1 << level]])
            made[k] = pair[list(other if k >> level & 1 else clear)]
        registers = made
    return np.stack([bytes_of(network.dst).reshape(-1), registers.reshape(-1)], axis=1)


def run_of_bend(network):
    """The map of all places of a network where they are uneven on one side; the last ones go back, as loops do."""
    bend = network.bend
    places = np.zeros(1, np.int64)
    for extent, step in bend.digits:
        places = (np.arange(extent)[:, None] * step + places).reshape(-1)
    assert len(places) == bend.total >= bend.indices
    maps = []
    for done in range(0, bend.total, bend.indices):
        first = min(done, bend.total - bend.indices)
        sides = {1: network.src, 2: network.dst}
        for number, side in sides.items():
            if number == bend.side:
                moved = places[first + np.array(bend.pieces)] + np.array(side.offsets)
            else:
                moved = np.array(side.offsets) + first * bend.unit
            sides[number] = side._replace(offsets=tuple(moved.tolist()))
        maps.append(run_of_network(network._replace(src=sides[1], dst=sides[2], bend=None)))
    return np.concatenate(maps)


def run_of_tile(tile):
    """The map of one turn of a tile. Asserts that it looks at, and stores, nothing that its masks leave out."""
    if isinstance(tile, Network):
        return run_of_network(tile)
    loaded = {}
    for k, (offset, mask) in enumerate(zip(tile.src.offsets, tile.src.masks, strict=True)):
        assert 0 <= mask < 1 << tile.src.width, f"a mask wider than its piece: {tile.src}"
        for bit in range(tile.src.width):
            if mask >> bit & 1:
                loaded[k * tile.src.width + bit] = offset + bit
    stored = []
    assert len(tile.outputs) == tile.dst.registers <= 4 and tile.src.registers <= 4
    for k, (offset, mask) in enumerate(zip(tile.dst.offsets, tile.dst.masks, strict=True)):
        assert 0 <= mask < 1 << tile.dst.width, f"a mask wider than its piece: {tile.dst}"
        for bit in range(tile.dst.width):
            if mask >> bit & 1:
                register, lane = divmod(k * tile.dst.width + bit, REGISTER)
                output = tile.outputs[register]
                if output.fill[lane] >= 0:
                    stored.append((offset + bit, FILL - output.fill[lane]))
                    continue
                upper = output.upper >> lane & 1
                index = output.high[lane] if upper else output.low[lane]
                assert index < 2 * REGISTER, f"index {index} is in no register"
                place = index + 2 * REGISTER * upper
                assert place in loaded, f"lane {lane} of register {register} looks at a byte no mask has: {tile}"
                stored.append((offset + bit, loaded[place]))
    return np.array(stored, np.int64).reshape(-1, 2)


def turns_of(loops):
    """``(source, destination)`` offsets of every turn of nested loops; the last turn of each goes back."""
    src = dst = np.zeros(1, np.int64)
    for axis in loops:
        turn = np.arange(axis.extent)
        last = turn == axis.extent - 1
        src = (src[:, None] + turn * axis.src - last * axis.src_back).reshape(-1)
        dst = (dst[:, None] + turn * axis.dst - last * axis.dst_back).reshape(-1)
    return src, dst


def moved(entries, src, dst):
    """The map `entries` at every position."""
    filled = entries[:, 1] <= FILL
    sources = np.where(filled, entries[:, 1], entries[:, 1] + src[:, None])
    return np.stack([(entries[:, 0] + dst[:, None]).reshape(-1), sources.reshape(-1)], axis=1)


def map_of_granules(axes, pattern, width, first_src=0, first_dst=0):
    """What a box says: the granules of its pattern at every position of its axes."""
    entries = [
        (target + byte, FILL - fill - byte if source is None else source + byte)
        for source, target, fill, _ in pattern
        for byte in range(width)
    ]
    src, dst = turns_of(axes)
    return moved(np.array(entries, np.int64).reshape(-1, 2), src + first_src, dst + first_dst)


def map_of_row(segment):
    """What the boxes of the first row write; X and F as sources, Y as destination."""
    parts = []
    for box in segment.boxes:
        assert (box.target, box.source != 2) == (1, True), "chains go through a scratch row"
        entries = run_of_tile(box.tile) if box.tile else map_of_granules((), ((0, 0, 0, 0),), box.width)
        src, dst = turns_of(box.axes)
        part = moved(entries, src + box.src_offset, dst + box.dst_offset)
        if box.source == 3:  # offsets in the fill values, and these do not move with the row
            part[:, 1] = np.where(part[:, 1] <= FILL, part[:, 1], FILL - part[:, 1])
        parts.append(part)
    return np.concatenate(parts)


def distinct(pairs):
    """The rows of a map in the order of the destination, each once."""
    if not len(pairs):
        return pairs
    if not (pairs[1:, 0] > pairs[:-1, 0]).all():
        pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
        # One destination with several sources, which the order of those has to put beside each other.
        if ((pairs[1:, 0] == pairs[:-1, 0]) & (pairs[1:, 1] != pairs[:-1, 1])).any():
            pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
        pairs = pairs[np.concatenate([[True], (pairs[1:] != pairs[:-1]).any(axis=1)])]
    return pairs


def map_of_segments(segments):
    """What segments write, in the order of the destination.

    Asserts that no byte is written with two different sources, and that no two rows write the same byte: rows are run
    by different threads.
    """
    rows = []
    for segment in segments:
        assert not any(axis.src_back or axis.dst_back for axis in segment.rows), "a row that goes back"
        row = distinct(map_of_row(segment))
        assert (np.diff(row[:, 0]) > 0).all(), "a byte is written with two different sources"
        rows.append(moved(row, *turns_of(segment.rows)))  # all rows write as the first does, elsewhere
    everything = distinct(np.concatenate(rows)) if rows else np.empty((0, 2), np.int64)
    assert len(everything) == sum(map(len, rows)), "two rows write the same byte"
    assert (np.diff(everything[:, 0]) > 0).all(), "two rows write the same byte, differently"
    return everything

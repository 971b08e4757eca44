"""Draw what the operators do, as SVG: python docs/pictures.py [FOLDER]

The operators themselves move the labels and the colours that are drawn, so a picture cannot show anything else than
they do. Without a folder only docs/rearrangements.svg is written, the README's picture, which is kept in the
repository; with one, all of them go there. The pages of this folder get theirs when they are built (conf.py).
"""

import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

README = Path(__file__).with_name("rearrangements.svg")

# A colour code is 3*hue + shade; PAD is what no element of the source went to.
HUES = (("#8ec5f4", "#b9dcfa", "#dceefd"), ("#f9b870", "#fcd3a4", "#fee9d1"), ("#8fd19e", "#b8e3c1", "#dcf2e1"),
        ("#cda4ea", "#dfc6f3", "#efe2f9"))  # fmt: skip
PAD = -1
INK, PALE, PAPER = "#1d2733", "#5b6875", "#ffffff"

CELL, TITLE, CAPTION, GAP, MARGIN, WORD_GAP = 24, 15, 20, 10, 12, 4  # pixels


class Panel(NamedTuple):
    """One plane: what its cells say and their colours, and how many of them in a row make a word."""

    title: str
    labels: np.ndarray
    codes: np.ndarray
    lanes: int = 0

    @property
    def width(self):
        count = self.labels.shape[1]
        return count * CELL + (count // self.lanes - 1) * WORD_GAP if self.lanes else count * CELL

    @property
    def height(self):
        return self.labels.shape[0] * CELL + (TITLE if self.title else 4)


class Row(NamedTuple):
    """A tensor: how it was made, and its planes."""

    caption: str
    panels: list


# ------------------------------------------------------------------------------------------------ what is drawn


def space_to_depth(operators):
    """Two channels of 4 x 4, and the eight of each channel order."""
    x, codes = image(channels=2), in_blocks(channels=2)
    yield Row("x, shape (1, 4, 4, 2)", planes(x, codes))
    for call, mode in (("", "DCR"), (', mode="CRD"', "CRD"), (', mode="focus"', "focus")):
        moved = [operators.space_to_depth(one, 2, mode=mode) for one in (x, codes)]
        yield Row(f"space_to_depth(x, 2{call})", planes(*moved))


def depth_to_space(operators):
    """Eight channels of 2 x 2, and the two that each channel order makes of them."""
    x = np.arange(32).reshape(1, 8, 2, 2).transpose(0, 2, 3, 1)
    codes = np.broadcast_to([3 * (c // 2) + c % 2 for c in range(8)], x.shape)
    yield Row("x, shape (1, 2, 2, 8)", planes(x, codes))
    for call, mode in (("", "DCR"), (', mode="CRD"', "CRD"), (', mode="focus"', "focus")):
        moved = [operators.depth_to_space(one, 2, mode=mode) for one in (x, codes)]
        yield Row(f"depth_to_space(x, 2{call})", planes(*moved))


def space_to_batch_nd(operators):
    """A batch of two, without paddings and with some."""
    x, codes = batch_of_two()
    yield Row("x, shape (2, 4, 4, 1)", planes(x, codes))
    for pads in ([[0, 0], [0, 0]], [[0, 0], [2, 0]]):
        moved = [operators.space_to_batch_nd(x, [2, 2], pads),
                 operators.space_to_batch_nd(codes, [2, 2], pads, pad_value=PAD)]
        yield Row(f"space_to_batch_nd(x, [2, 2], {pads})", planes(*moved))


def batch_to_space_nd(operators):
    """The same way back, without crops and with some."""
    x, codes = (operators.space_to_batch_nd(one, [2, 2], [[0, 0], [0, 0]]) for one in batch_of_two())
    yield Row("x, shape (8, 2, 2, 1)", planes(x, codes))
    for crops in ([[0, 0], [0, 0]], [[1, 0], [0, 1]]):
        moved = [operators.batch_to_space_nd(one, [2, 2], crops) for one in (x, codes)]
        yield Row(f"batch_to_space_nd(x, [2, 2], {crops})", planes(*moved))


def pack_vect_c(operators):
    """Six channels, which leave two lanes of the second word to spare."""
    x, codes = six_channels()
    yield Row("x, shape (1, 6, 2, 2)", planes(x, codes, "NCHW"))
    yield Row("pack_vect_c(x), shape (1, 2, 2, 2, 4)", packed(operators, x, codes))


def unpack_vect_c(operators):
    """The same way back."""
    x, codes = six_channels()
    words = [operators.pack_vect_c(x), operators.pack_vect_c(codes, pad_value=PAD)]
    yield Row("x, shape (1, 2, 2, 2, 4)", packed(operators, x, codes))
    unpacked = [operators.unpack_vect_c(one, channels=6) for one in words]
    yield Row("unpack_vect_c(x, channels=6)", planes(*unpacked, "NCHW"))


def layouts(operators):
    """An image of 2 x 2 pixels and three channels, as it lies in memory in three layouts."""
    x = np.arange(12).reshape(1, 3, 2, 2).transpose(0, 2, 3, 1)
    codes = np.broadcast_to([0, 3, 6], x.shape)
    yield Row("channels 0 to 2 of 2 x 2 pixels", planes(x, codes))
    for layout, lanes in (("NHWC", 3), ("NCHW", 4), ("NCHW_VECT_C", 4)):
        # Numbers from 1 on, so that the zeros of spare lanes tell themselves apart.
        moved = [operators.space_to_depth(one + 1, 1, out_format=layout).reshape(1, -1) - 1 for one in (x, codes)]
        labels = np.where(moved[1] == PAD, 0, moved[0])
        yield Row(f"{layout}, in the order of memory", [Panel("", labels, moved[1], lanes)])


def preprocessor(operators):
    """A frame of 2 x 4 pixels in the middle of a canvas of 4 x 4, as int8."""
    frame, codes = small_frame()
    keywords = {"scale": 1 / 255, "zero_point": -128, "size": 4, "block_size": 2}
    yield Row("frame, uint8, shape (2, 4, 3)", planes(frame[np.newaxis], codes[:, 1:3]))
    yield Row("Preprocessor(scale=1/255, zero_point=-128,", [])
    yield Row("             size=4, block_size=2)(frame)", planes(*prepared(operators, frame, codes, keywords)))


def postprocessor(operators):
    """The same way back."""
    frame, codes = small_frame()
    keywords = {"scale": 1 / 255, "zero_point": -128, "size": 4, "block_size": 2}
    tensor, moved = prepared(operators, frame, codes, keywords)
    back = postprocess(operators, tensor, frame=(2, 4), **keywords)
    yield Row("tensor, int8, shape (1, 2, 2, 12)", planes(tensor, moved))
    yield Row("pre.inverse()(tensor, frame=(2, 4))", planes(back, operators.depth_to_space(moved, 2)[:, 1:3]))


def rearrangements(operators):
    """The README's picture: the same two channels in four ways."""
    x, codes = image(channels=2), in_blocks(channels=2)
    yield Row("x, shape (1, 4, 4, 2)", planes(x, codes))
    for call, move in (
        ("space_to_depth(x, 2)", lambda one: operators.space_to_depth(one, 2)),
        ('space_to_depth(x, 2, mode="CRD")', lambda one: operators.space_to_depth(one, 2, mode="CRD")),
        ("space_to_batch_nd(x, [2, 2], [[0, 0], [0, 0]])",
         lambda one: operators.space_to_batch_nd(one, [2, 2], [[0, 0], [0, 0]])),
    ):
        yield Row(call, planes(move(x), move(codes)))
    # Two channels fill half a word; the codes are numbered from 1, so that the zeros of spare lanes become PAD.
    words = operators.space_to_depth(x, 1, out_format="NCHW_VECT_C")
    moved = operators.space_to_depth(codes + 1, 1, out_format="NCHW_VECT_C") - 1
    yield Row('space_to_depth(x, 1, out_format="NCHW_VECT_C")', words_of(words, moved))


SCENES = {scene.__name__: scene for scene in (
    space_to_depth, depth_to_space, space_to_batch_nd, batch_to_space_nd, pack_vect_c, unpack_vect_c, layouts,
    preprocessor, postprocessor, rearrangements,
)}  # fmt: skip


# ------------------------------------------------------------------------------------------------ small tensors


def image(channels):
    """4 x 4 pixels in NHWC; channel c counts on from 16*c."""
    return np.arange(16 * channels).reshape(1, channels, 4, 4).transpose(0, 2, 3, 1)


def in_blocks(channels, height=4):
    """Codes: a hue for each place in a block of 2 x 2, a shade for each channel."""
    row, column, channel = np.ogrid[:height, :4, :channels]
    return (3 * (2 * (row % 2) + column % 2) + channel)[np.newaxis]


def batch_of_two():
    """Two images of one channel, and their codes: a shade for each of them."""
    x, codes = image(channels=2), in_blocks(channels=2)
    return [np.ascontiguousarray(one.transpose(3, 1, 2, 0)) for one in (x, codes)]


def six_channels():
    """2 x 2 pixels in NCHW, and their codes: a hue for each lane, a shade for each word."""
    x = np.arange(1, 25).reshape(1, 6, 2, 2)
    codes = np.array([3 * (c % 4) + c // 4 for c in range(6)]).reshape(1, 6, 1, 1)
    return x, np.broadcast_to(codes, x.shape)


def small_frame():
    """Grey levels of a frame, and codes for the canvas of 4 x 4 that it lies in the middle of."""
    frame = (np.arange(24).reshape(3, 2, 4).transpose(1, 2, 0) * 11).astype(np.uint8)
    codes = in_blocks(channels=3)
    codes[:, [0, 3]] = PAD
    return frame, codes


def prepared(operators, frame, codes, keywords):
    if hasattr(operators, "Preprocessor"):
        tensor = operators.Preprocessor(**keywords)(frame)
    else:  # s2dq.reference
        tensor = operators.preprocess(frame, **keywords)
    return tensor, operators.space_to_depth(codes, 2)


def postprocess(operators, tensor, frame, **keywords):
    if hasattr(operators, "Postprocessor"):
        return operators.Postprocessor(**keywords)(tensor, frame=frame)
    return operators.postprocess(tensor, frame=frame, **keywords)


# ------------------------------------------------------------------------------------------------ panels


def planes(x, codes, layout="NHWC"):
    """A panel for each channel of each batch entry."""
    if layout == "NHWC":
        x, codes = (np.moveaxis(one, -1, 1) for one in (x, codes))
    many = x.shape[0] > 1
    return [Panel(" ".join([f"n={n}"] * many + [f"c={c}"] * (not many or x.shape[1] > 1)), x[n, c], codes[n, c])
            for n in range(x.shape[0]) for c in range(x.shape[1])]


def packed(operators, x, codes):
    return words_of(operators.pack_vect_c(x), operators.pack_vect_c(codes, pad_value=PAD))


def words_of(x, codes):
    """A panel for each word: its lanes lie side by side, as in memory."""
    _, count, height, width, lanes = x.shape
    return [Panel(f"word {word}", *(one[0, word].reshape(height, width * lanes) for one in (x, codes)), lanes)
            for word in range(count)]


# ------------------------------------------------------------------------------------------------ SVG


def draw(rows, width=400):
    """The text of an SVG of these rows, one below the other, their panels in lines of equal length."""
    rows = list(rows)
    width = max(width, *(2 * MARGIN + panel.width for row in rows for panel in row.panels))
    parts, y = [], MARGIN
    for row in rows:
        y += CAPTION
        parts.append(text(MARGIN, y - 6, row.caption, 12.5, INK, "monospace"))
        for line in lines_of(row.panels, width - 2 * MARGIN):
            x = MARGIN
            for panel in line:
                parts.extend(drawn(panel, x, y))
                x += panel.width + GAP
            y += line[0].height + 4
        y += GAP - 4 if row.panels else -4
    height = y + MARGIN - GAP
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" role="img">')
    # Paper of its own: the colours and the ink would be lost on a dark page.
    paper = f'<rect width="{width}" height="{height}" rx="6" fill="{PAPER}"/>'
    return "\n".join([head, paper, *parts, "</svg>", ""])


def lines_of(panels, width):
    """The panels of a tensor, which are all alike, in as few lines as there are."""
    if panels:
        fitting = max(1, (width + GAP) // (panels[0].width + GAP))
        count = -(-len(panels) // fitting)
        each = -(-len(panels) // count)
        yield from (panels[start : start + each] for start in range(0, len(panels), each))


def drawn(panel, x, y):
    if panel.title:
        yield text(x, y + TITLE - 4, panel.title, 10.5, PALE, "sans-serif")
    top = y + (TITLE if panel.title else 4)
    for i, (labels, codes) in enumerate(zip(panel.labels.tolist(), panel.codes.tolist())):
        for j, (label, code) in enumerate(zip(labels, codes)):
            left = x + j * CELL + (WORD_GAP * (j // panel.lanes) if panel.lanes else 0)
            yield from cell(left, top + i * CELL, label, code)


def cell(x, y, label, code):
    if code == PAD:
        style = f'fill="{PAPER}" stroke="{PALE}" stroke-dasharray="2 2"'
    else:
        style = f'fill="{HUES[code // 3][code % 3]}" stroke="{PAPER}"'
    yield f'<rect x="{x + 0.5}" y="{y + 0.5}" width="{CELL - 1}" height="{CELL - 1}" {style}/>'
    size = 11 if len(str(label)) < 4 else 9.5
    yield text(x + CELL / 2, y + CELL / 2 + 4, label, size, PALE if code == PAD else INK, "sans-serif",
               ' text-anchor="middle" class="label"')


def text(x, y, what, size, colour, family, more=""):
    escaped = str(what).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("  ", "\u00a0 ")
    return f'<text x="{x:g}" y="{y:g}" font-family="{family}" font-size="{size}" fill="{colour}"{more}>{escaped}</text>'


def write_all(folder):
    """All pictures, as files of a folder."""
    import s2dq

    Path(folder).mkdir(parents=True, exist_ok=True)
    for name, scene in SCENES.items():
        Path(folder, f"{name}.svg").write_text(draw(scene(s2dq)), encoding="utf-8")


def main(arguments):
    if arguments:
        write_all(arguments[0])
        return
    import s2dq

    README.write_text(draw(rearrangements(s2dq), width=500), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

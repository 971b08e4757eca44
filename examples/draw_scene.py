"""Draw scene.png: a picture with what preprocessing can get wrong.

Sharp edges, text, smooth gradients, fine texture, patches of known colour, and a layout without symmetry, so
that a mirrored, shifted or colour-swapped result shows at once. Nothing is random.

    python examples/draw_scene.py [scene.png]
"""

import math
import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

WIDTH, HEIGHT = 800, 600
FINE = 3  # shapes are drawn this many times larger and averaged down: smooth outlines
HORIZON = 356

INK = (28, 32, 44)
PATCHES = [
    (115, 82, 68), (194, 150, 130), (98, 122, 157), (87, 108, 67), (133, 128, 177), (103, 189, 170),
    (214, 126, 44), (80, 91, 166), (193, 90, 99), (94, 60, 108), (157, 188, 64), (224, 163, 46),
    (56, 61, 150), (70, 148, 73), (175, 54, 60), (231, 199, 31), (187, 86, 149), (8, 133, 161),
    (243, 243, 242), (200, 200, 200), (160, 160, 160), (122, 122, 121), (85, 85, 85), (52, 52, 52),
]  # fmt: skip


def draw_scene():
    """The picture as an RGB image of 800 x 600 pixels."""
    scene = Canvas(landscape())
    draw_sun(scene)
    draw_balloon(scene)
    draw_hills(scene)
    draw_road(scene)
    draw_house(scene)
    draw_tree(scene)
    draw_car(scene)
    draw_board(scene)
    image = scene.flat()
    draw_chart(image, left=494, top=196)  # drawn at the final size: its edges are to be sharp
    return image


class Canvas:
    """Shapes in pixels of the picture, drawn FINE times larger."""

    def __init__(self, background):
        self.image = background.resize((WIDTH * FINE, HEIGHT * FINE), Image.Resampling.NEAREST)
        self.draw = ImageDraw.Draw(self.image)

    def polygon(self, points, fill):
        self.draw.polygon([(x * FINE, y * FINE) for x, y in points], fill)

    def box(self, left, top, right, bottom, fill, radius=0):
        corners = (left * FINE, top * FINE, right * FINE - 1, bottom * FINE - 1)
        self.draw.rounded_rectangle(corners, radius * FINE, fill)

    def disc(self, x, y, radius, fill):
        self.draw.ellipse([value * FINE for value in (x - radius, y - radius, x + radius, y + radius)], fill)

    def line(self, points, fill, width):
        self.draw.line([(x * FINE, y * FINE) for x, y in points], fill, round(width * FINE), joint="curve")

    def flat(self):
        return self.image.reduce(FINE)


def blend(low, high, t):
    """Colours from `low` (t = 0) to `high` (t = 1), one for each element of t."""
    t = np.clip(t, 0, 1)[..., None]
    return np.asarray(low) * (1 - t) + np.asarray(high) * t


def speckle(x, y):
    """A fine texture: an integer hash of the position (Python integers or arrays of them), 0..3."""
    mixed = (x * 73856093) ^ (y * 19349663)
    mixed = (mixed ^ mixed >> 13) & 0xFFFFFFF
    return (mixed * 12741261 >> 16) & 3


def landscape():
    """Sky, sun and meadow: the smooth gradients and the fine texture."""
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    height = 1 - y / HORIZON
    sky = np.where((height > 0.5)[..., None], blend((136, 186, 226), (44, 104, 186), height * 2 - 1),
                   blend((252, 222, 184), (136, 186, 226), height * 2))
    distance = np.hypot(x - 652, y - 92)
    sky = sky + (np.array([255, 246, 214]) - sky) * np.exp(-distance / 70)[..., None] * 0.9

    meadow = blend((134, 160, 78), (58, 98, 44), (y - HORIZON) / (HEIGHT - HORIZON))
    meadow = np.round(meadow / 4) * 4 + 7 * (speckle(x // 2, y) - 1)[..., None] * (y % 3 > 0)[..., None]
    pixels = np.where((y < HORIZON)[..., None], sky, meadow)
    return Image.fromarray(pixels.round().clip(0, 255).astype(np.uint8))


def draw_sun(scene):
    scene.disc(652, 92, 34, (255, 250, 228))


def draw_balloon(scene):
    x, y, radius = 356, 96, 58
    colours = [(196, 40, 48), (250, 200, 40), (24, 110, 180), (250, 200, 40), (196, 40, 48)]
    for edge, colour in zip((1.0, 0.74, 0.40, -0.40, -0.74), colours, strict=True):
        # The right edge of a gore is a meridian: an ellipse seen from the side.
        angles = [math.pi * i / 60 for i in range(61)]
        right = [(x + radius * edge * math.sin(a), y - radius * math.cos(a) * 1.05) for a in angles]
        left = [(x - radius * math.sin(a), y - radius * math.cos(a) * 1.05) for a in reversed(angles)]
        scene.polygon(right + left, colour)
    scene.polygon([(x - 24, y + 54), (x + 24, y + 54), (x + 9, y + 84), (x - 9, y + 84)], (150, 30, 38))
    for offset in (-8, 8):
        scene.line([(x + offset, y + 82), (x + offset * 0.9, y + 102)], (70, 50, 40), 1)
    scene.box(x - 10, y + 100, x + 10, y + 115, (122, 84, 48), radius=2)


def draw_hills(scene):
    ridges = [
        ((126, 140, 178), [(0, 268), (86, 214), (150, 262), (236, 190), (330, 272), (420, 226), (520, 290),
                           (610, 236), (700, 288), (800, 240)]),
        ((92, 116, 132), [(0, 312), (120, 276), (230, 318), (350, 280), (470, 326), (600, 288), (720, 322),
                          (800, 300)]),
    ]  # fmt: skip
    for colour, ridge in ridges:
        scene.polygon([*ridge, (WIDTH, HORIZON), (0, HORIZON)], colour)
    # Snow on the highest peak.
    scene.polygon([(236, 190), (216, 206), (228, 212), (238, 204), (248, 216), (262, 213)], (240, 244, 250))


def draw_road(scene):
    scene.polygon([(388, HORIZON), (408, HORIZON), (720, HEIGHT), (180, HEIGHT)], (84, 86, 92))
    for near, far in ((180, 388), (720, 408)):
        inward = 14 if near < far else -14
        scene.polygon([(near, HEIGHT), (near + inward, HEIGHT), (far + inward / 14, HORIZON), (far, HORIZON)],
                      (226, 226, 216))
    dashes = [(0.03, 0.07), (0.11, 0.17), (0.23, 0.32), (0.41, 0.54), (0.67, 0.85)]
    for start, end in dashes:  # 0 at the horizon, 1 at the lower edge
        corners = []
        for t, side in ((start, -1), (start, 1), (end, 1), (end, -1)):
            centre, half = 398 + 52 * t, 1 + 7 * t
            corners.append((centre + side * half, HORIZON + (HEIGHT - HORIZON) * t))
        scene.polygon(corners, (244, 240, 220))


def draw_house(scene):
    left, top, right, bottom = 40, 300, 232, 452
    scene.box(left, top, right, bottom, (206, 196, 184))  # mortar
    for row, y in enumerate(range(top, bottom, 6)):
        for x in range(left - 8 * (row % 2), right, 16):
            shade = speckle(x, y) * 9
            brick = (168 + shade, 84 + shade // 2, 64 + shade // 3)
            scene.box(max(x, left) + 1, y + 1, min(x + 16, right), min(y + 6, bottom), brick)
    scene.box(182, 216, 206, 290, (132, 70, 58))
    scene.box(178, 210, 210, 220, (98, 52, 46))
    scene.polygon([(22, 304), (136, 218), (250, 304)], (82, 60, 74))
    for y in range(230, 304, 8):
        reach = (y - 218) * 114 / 86
        scene.line([(136 - reach, y), (136 + reach, y)], (108, 84, 98), 1)
    for x in (62, 162):
        scene.box(x - 4, 326, x + 50, 384, (244, 240, 230))
        scene.polygon([(x, 330), (x + 46, 330), (x + 46, 380), (x, 380)], (92, 138, 170))
        scene.polygon([(x, 330), (x + 30, 330), (x, 362)], (158, 196, 216))
        scene.box(x + 21, 330, x + 25, 380, (244, 240, 230))
        scene.box(x, 353, x + 46, 357, (244, 240, 230))
    scene.box(116, 376, 154, bottom, (244, 240, 230))
    scene.box(120, 380, 150, bottom, (36, 92, 74))
    scene.disc(144, 418, 2.5, (240, 200, 70))


def draw_tree(scene):
    scene.polygon([(278, 436), (284, 360), (296, 360), (302, 436)], (96, 66, 42))
    crown = [(290, 318, 34, 0), (268, 344, 28, 1), (314, 342, 28, 1), (288, 352, 30, 2), (304, 320, 20, 3),
             (276, 322, 17, 3), (292, 336, 14, 4)]  # fmt: skip
    greens = [(34, 84, 44), (42, 98, 50), (54, 116, 56), (78, 140, 64), (112, 168, 78)]
    for x, y, radius, green in crown:
        scene.disc(x, y, radius, greens[green])


def draw_car(scene):
    x, y = 392, 470
    scene.polygon([(x + 4, y + 62), (x + 196, y + 62), (x + 184, y + 76), (x + 14, y + 76)], (52, 54, 60))
    body = [(x, y + 30), (x + 34, y + 24), (x + 62, y), (x + 134, y), (x + 166, y + 26), (x + 196, y + 32),
            (x + 200, y + 58), (x + 192, y + 64), (x + 4, y + 64), (x - 2, y + 56)]  # fmt: skip
    scene.polygon(body, (204, 30, 44))
    scene.polygon([(x + 44, y + 24), (x + 66, y + 5), (x + 96, y + 5), (x + 96, y + 24)], (176, 212, 228))
    scene.polygon([(x + 102, y + 5), (x + 131, y + 5), (x + 156, y + 26), (x + 102, y + 24)], (146, 186, 206))
    scene.box(x - 1, y + 44, x + 200, y + 48, (150, 18, 32))
    scene.box(x - 2, y + 34, x + 12, y + 42, (255, 240, 190), radius=3)
    scene.box(x + 188, y + 35, x + 199, y + 43, (255, 120, 60), radius=3)
    for wheel in (x + 42, x + 156):
        scene.disc(wheel, y + 62, 20, (28, 28, 32))
        scene.disc(wheel, y + 62, 11, (196, 200, 206))
        scene.disc(wheel, y + 62, 4, (60, 62, 68))


def draw_board(scene):
    for x in (520, 744):
        scene.box(x, 400, x + 12, 470, (92, 80, 70))
    scene.box(482, 184, 786, 412, (60, 64, 74), radius=6)
    scene.box(488, 190, 780, 406, (246, 244, 238), radius=3)


def draw_chart(image, left, top):
    """A test chart: colour patches, a grey wedge, gratings, a star and text in four sizes."""
    draw = ImageDraw.Draw(image)
    for index, colour in enumerate(PATCHES):
        x, y = left + 2 + index % 6 * 24, top + 2 + index // 6 * 20
        draw.rectangle([x, y, x + 21, y + 17], colour)
    for x in range(256):
        draw.line([(left + 10 + x, top + 88), (left + 10 + x, top + 99)], (x, x, x))

    y, x = np.mgrid[0:18, 0:40]
    for row, grating in enumerate(((x + y) % 2, x % 2, y % 2, x // 2 % 2)):
        paste_ink(image, left + 150, top + 2 + row * 20, grating == 1)
    y, x = np.mgrid[0:80, 0:80] - 39.5
    star = (np.sin(np.arctan2(y, x) * 16 + 0.1) > 0) & (np.hypot(x, y) < 39)
    paste_ink(image, left + 196, top + 2, star)

    for text, size, y in (("space to depth", 36, 102), ("n (i p) (j q) c -> n i j (p q c)", 17, 144),
                          ("The quick brown fox jumps over the lazy dog 0123456789", 10, 168),
                          ("int8  NHWC  NCHW  NCHW_VECT_C  DCR  CRD", 12, 184)):  # fmt: skip
        draw.text((left + 10, top + y), text, fill=INK, font=ImageFont.load_default(size))


def paste_ink(image, left, top, bits):
    mask = Image.fromarray(np.where(bits, 255, 0).astype(np.uint8))
    image.paste(INK, (left, top, left + mask.width, top + mask.height), mask)


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("scene.png")
    draw_scene().save(target, optimize=True)
    print(f"{target}: {WIDTH} x {HEIGHT} pixels, {target.stat().st_size / 1000:.0f} kB")

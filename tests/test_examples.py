"""The examples run as a reader would run them, and the committed picture is the one its script draws."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

Image = pytest.importorskip("PIL.Image")

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(script, *argv, cwd):
    """The script's stdout; it must succeed in silence."""
    done = subprocess.run(
        [sys.executable, EXAMPLES / script, *argv], cwd=cwd, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_scene_is_what_its_script_draws(tmp_path):
    run("draw_scene.py", tmp_path / "scene.png", cwd=tmp_path)
    drawn, committed = (
        np.asarray(Image.open(folder / "scene.png")).astype(int) for folder in (tmp_path, EXAMPLES)
    )
    assert drawn.shape == committed.shape == (600, 800, 3)
    # Another FreeType may set the text a little differently.
    assert differing(drawn, committed) < 0.02
    assert differing(drawn[:, ::-1], committed) > 0.2  # the measure sees a mirrored picture


def differing(a, b):
    """The part of the pixels that differ by more than rounding."""
    return np.mean(np.abs(a - b).max(axis=2) > 2)


def test_the_scene_is_small_and_has_all_grey_levels():
    assert (EXAMPLES / "scene.png").stat().st_size < 300_000
    scene = np.asarray(Image.open(EXAMPLES / "scene.png"))
    for channel in range(3):
        assert len(np.unique(scene[..., channel])) == 256


def test_frame_to_int8_restores_the_frame_and_maps_the_wheel_back(tmp_path):
    report = dict(line.split(maxsplit=1) for line in run("frame_to_int8.py", cwd=tmp_path).splitlines())
    assert report["frame"] == "(600, 800, 3) uint8"
    assert report["ring"] == "(4, 3, 304, 400, 4) int8, frames 4 to 7, levels -128..127"
    assert report["undone"] == "(600, 800, 3) uint8, equal to the frame: True"
    assert report["crop"].endswith("-> (1, 3, 128, 256) int8")
    assert report["box"].endswith("[414, 512, 454, 552] of the frame")
    # That box is the front wheel: a dark tyre round a light rim.
    scene = np.asarray(Image.open(EXAMPLES / "scene.png"))
    assert scene[512 + 4, 434].max() < 60 and scene[532, 434 - 8].min() > 150


def test_convert_layouts_shows_what_it_says(tmp_path):
    lines = run("convert_layouts.py", cwd=tmp_path).splitlines()
    checks = [line for line in lines if "equal: " in line]
    assert len(checks) == 6 and all(line.endswith("equal: True") for line in checks)
    shown = {before: after.strip() for before, after in zip(lines, lines[1:], strict=False) if after.strip()[:1] == "["}
    assert shown["DCR: TensorFlow, TFLite, ONNX by default  (1, 1, 1, 12)"] == (
        "[10, 11, 12, 20, 21, 22, 30, 31, 32, 40, 41, 42]")  # fmt: skip
    assert shown["CRD: PyTorch's pixel_unshuffle, here also NHWC -> NCHW in the same pass  (1, 12, 1, 1)"] == (
        "[10, 20, 30, 40, 11, 21, 31, 41, 12, 22, 32, 42]")  # fmt: skip
    assert shown["packed first, then deep: a filler after every third  (1, 4, 1, 1, 4)"] == (
        "[1, 2, 3, 0, 4, 5, 6, 0, 7, 8, 9, 0, 10, 11, 12, 0]")  # fmt: skip
    assert shown["space_to_batch_nd, one column of padding that holds the zero point -128  (2, 1, 3, 1)"] == (
        "[1, 3, 5, 2, 4, -128]")  # fmt: skip

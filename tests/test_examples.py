"""The examples run as a reader would run them, and the committed picture is the one its script draws."""

import importlib.util
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import s2dq

Image = pytest.importorskip("PIL.Image")
ImageOps = pytest.importorskip("PIL.ImageOps")

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(script, *argv, cwd):
    """The script's stdout; it must succeed in silence."""
    done = subprocess.run(
        [sys.executable, EXAMPLES / script, *argv], cwd=cwd, capture_output=True, text=True, timeout=180, check=False
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


# ---- frames_to_zarr.py


def start(script, *argv, cwd):
    return subprocess.Popen(
        [sys.executable, EXAMPLES / script, *argv], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def lines_of(log):
    return log.read_text().split() if log.exists() else []


def test_frames_to_zarr_goes_on_where_it_was_killed(tmp_path, rng):
    for package in ("dask.array", "zarr"):
        pytest.importorskip(package)
    import zarr

    (tmp_path / "in").mkdir()
    for k in range(200):
        height, width = (30, 40) if k % 2 else (128, 96)
        frame = rng.integers(0, 256, (height, width, 3), np.uint8)
        Image.fromarray(frame).resize((256, 256) if k % 3 else (90, 70)).save(tmp_path / "in" / f"{k:03}.png")
    command = ["frames_to_zarr.py", "in", "out.zarr", "--size", "512x512", "--frames", "2", "--workers", "1"]
    log, chunks = tmp_path / "out.zarr" / "done.txt", tmp_path / "out.zarr" / "c"

    first = start(*command, cwd=tmp_path)
    try:
        end = time.monotonic() + 180
        while len(lines_of(log)) < 3 and first.poll() is None and time.monotonic() < end:
            time.sleep(0.001)
    finally:
        first.kill()
        first.communicate()
    done = {int(line) for line in log.read_text().split("\n")[:-1]}
    assert 3 <= len(done) < 100, "it was not killed half-way"

    # What a kill may leave: half a chunk that is not in the log, and half a line.
    missing = max(set(range(100)) - done)
    half = chunks / str(missing) / "0" / "0" / "0"
    half.parent.mkdir(parents=True, exist_ok=True)
    half.write_bytes(b"half a chunk")
    with open(log, "a") as file:
        file.write(str(missing)[:1])

    def state(number):
        found = (chunks / str(number) / "0" / "0" / "0").stat()
        return found.st_ino, found.st_mtime_ns

    before = {number: state(number) for number in done}
    said = run(*command, cwd=tmp_path)
    assert said == f"out.zarr: (200, 256, 256, 12) int8, {len(done)} chunks were there, {100 - len(done)} written\n"
    assert {number: state(number) for number in done} == before
    assert sorted(map(int, lines_of(log))) == list(range(100))

    tensor = zarr.open_array(tmp_path / "out.zarr", mode="r")[:]
    pre = s2dq.Preprocessor(scale=1 / 255, zero_point=-128, block_size=2)
    for k, path in enumerate(sorted((tmp_path / "in").iterdir())):
        fitted = ImageOps.pad(Image.open(path), (512, 512), color=(114, 114, 114))
        np.testing.assert_array_equal(tensor[k], pre(np.asarray(fitted))[0], strict=True)

    assert "100 chunks were there, 0 written" in run(*command, cwd=tmp_path)
    (tmp_path / "in" / "000.png").unlink()
    other = start(*command, cwd=tmp_path)
    assert "was made of other files" in other.communicate(timeout=180)[1] and other.returncode == 1


# ---- ray_batches.py


def example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


KEYWORDS = {"scale": 1 / 255, "zero_point": -128, "size": 16, "block_size": 2}


def test_ray_batches_takes_read_only_frames(rng):
    """Batches are views of shared memory: nothing may be written, and nothing else of the batch is touched."""
    to_input = example("ray_batches").ToModelInput(**KEYWORDS)
    frames = rng.integers(0, 256, (5, 12, 16, 3), np.uint8)
    before = frames.copy()
    frames.flags.writeable = False
    labels = np.arange(5)
    result = to_input({"image": frames, "label": labels})
    assert sorted(result) == ["image", "label"] and result["label"] is labels
    np.testing.assert_array_equal(result["image"], s2dq.Preprocessor(**KEYWORDS)(before), strict=True)
    np.testing.assert_array_equal(frames, before)
    assert to_input.pre.num_threads == 1


def test_ray_batches_takes_frames_of_several_sizes(rng):
    frames = np.empty(3, object)
    for k, shape in enumerate([(12, 16, 3), (16, 4, 3), (7, 9, 3)]):
        frames[k] = rng.integers(0, 256, shape, np.uint8)
        frames[k].flags.writeable = False
    frames.flags.writeable = False
    result = example("ray_batches").ToModelInput(**KEYWORDS)({"image": frames})["image"]
    assert result.shape == (3, 8, 8, 12)
    for tensor, frame in zip(result, frames, strict=True):
        np.testing.assert_array_equal(tensor, s2dq.Preprocessor(**KEYWORDS)(frame)[0], strict=True)


@pytest.mark.parametrize("keywords", [{}, {"input_format": "NCHW", "data_format": "NCHW"}])
def test_ray_batches_takes_a_batch_of_nothing(keywords):
    """It can be put together with the others."""
    to_input = example("ray_batches").ToModelInput(**KEYWORDS, **keywords)
    frames = np.empty(1, object)
    frames[0] = np.zeros((3, 9, 7) if keywords else (9, 7, 3), np.uint8)
    some, none = (to_input({"image": batch, "label": batch})["image"] for batch in (frames, frames[:0]))
    assert none.shape == (0, *some.shape[1:]) and none.dtype == some.dtype == np.int8
    labels = np.arange(0)
    assert to_input({"image": frames[:0], "label": labels})["label"] is labels


def test_the_recipe_for_ray_is_the_example():
    page = (EXAMPLES.parent / "docs" / "ray.md").read_text(encoding="utf-8")
    source = (EXAMPLES / "ray_batches.py").read_text(encoding="utf-8")
    quoted = re.findall(r"^```py\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert len(quoted) == 2
    for block in quoted:
        assert block in source

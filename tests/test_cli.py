"""The command line: files in, files out, one-line errors, exit codes.

Most cases call `main` in this process; those that concern the process itself (streams, signals, imports,
exit codes) run `python -m s2dq`, away from the source tree.
"""

import io
import json
import os
import signal
import stat
import struct
import subprocess
import sys
import threading
import zlib
from pathlib import Path

import numpy as np
import pytest

import s2dq
from s2dq import cli
from s2dq.cli import main

Image = pytest.importorskip("PIL.Image")

SCENE = Path(__file__).parents[1] / "examples" / "scene.png"
POSIX = pytest.mark.skipif(os.name != "posix", reason="POSIX only")


# ---- helpers


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """main(argv) in tmp_path -> (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def call(*argv):
        code = main([str(argument) for argument in argv])
        return code, *capsys.readouterr()

    return call


def spawn(*argv, cwd, **kwargs):
    """`python -m s2dq` -> the finished process."""
    command = [sys.executable, "-m", "s2dq", *map(os.fspath, argv)]
    kwargs = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "timeout": 60} | kwargs
    return subprocess.run(command, cwd=cwd, check=False, **kwargs)


def assert_one_line(err, *fragments):
    """stderr is one error line of ours that says all of `fragments`."""
    assert err.startswith("s2dq: error: ") and err.count("\n") == 1 and err.endswith("\n"), err
    for fragment in fragments:
        assert fragment in err


def colours(height=24, width=36):
    """A uint8 RGB frame in which no two neighbours and no two channels agree."""
    y, x, c = np.mgrid[0:height, 0:width, 0:3]
    return ((y * 7 + x * 5 + c * 83 + y * x) % 256).astype(np.uint8)


def save(path, pixels, **kwargs):
    Image.fromarray(pixels).save(path, **kwargs)
    return path


def mode_of(path):
    with Image.open(path) as image:
        return image.mode


def rgb_of(run, path, *options):
    """The picture as the model gets it: uint8 with scale 1/255 and zero point 0 keeps grey levels."""
    code, _, err = run("preprocess", path, "-o", "out", "--dtype", "uint8", *options)
    assert (code, err) == (0, "")
    return np.load(Path("out", Path(path).stem + ".npy"))[0]


def letterbox(source, width, height, grey=114):
    """The definition: resize to fit, paste in the middle, the odd pixel below or right."""
    ratio = min(width / source.width, height / source.height)
    resized = source.resize((round(source.width * ratio), round(source.height * ratio)), Image.BILINEAR)
    frame = np.full((height, width, 3), grey, np.uint8)
    top, left = (height - resized.height) // 2, (width - resized.width) // 2
    frame[top : top + resized.height, left : left + resized.width] = np.asarray(resized)
    return frame


def psnr(a, b):
    """Peak signal-to-noise ratio of two 8-bit pictures, dB."""
    error = np.mean((a.astype(np.float64) - b) ** 2)
    return np.inf if error == 0 else 10 * np.log10(255**2 / error)


def snapshot(directory):
    """Every path below with its bytes: to see that nothing was written."""
    return {path: path.read_bytes() if path.is_file() else None for path in Path(directory).rglob("*")}


# ---- preprocess: the main job


def test_the_readme_command_gives_an_input_whose_preview_is_the_scene(tmp_path):
    done = spawn("preprocess", SCENE, "-o", "out", "--size", "640x640", "--block-size", "2",
                 "--scale", "0.00392156862745098", "--zero-point", "-128", "--preview", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")

    header, row = done.stdout.splitlines()
    assert header.split() == ["file", "shape", "dtype", "time"]
    assert row.split() == [os.path.join("out", "scene.npy"), "(1,", "320,", "320,", "12)", "int8",
                           row.split()[-2], "ms"]
    assert float(row.split()[-2]) > 0
    tensor = np.load(tmp_path / "out" / "scene.npy")
    assert (tensor.shape, tensor.dtype) == ((1, 320, 320, 12), np.int8)

    expected = letterbox(Image.open(SCENE), 640, 640)
    preview = np.asarray(Image.open(tmp_path / "out" / "scene.preview.png"))
    assert preview.shape == expected.shape
    assert psnr(preview, expected) >= 40
    assert psnr(np.roll(preview, 1, axis=1), expected) < 40  # the measure sees a shift by one pixel
    assert psnr(preview[..., ::-1], expected) < 40  # and swapped colours
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "scene.json", "scene.npy", "scene.preview.png"]  # fmt: skip


def test_without_options_the_image_goes_in_as_it_is(run):
    pixels = colours()
    save("frame.png", pixels)
    code, _, err = run("preprocess", "frame.png", "-o", "out")
    assert (code, err) == (0, "")
    expected = (pixels.astype(int) - 128).astype(np.int8)[None]
    np.testing.assert_array_equal(np.load("out/frame.npy"), expected, strict=True)
    assert sorted(os.listdir("out")) == ["frame.json", "frame.npy"]


@pytest.mark.parametrize("width, height", [(48, 32), (40, 40), (33, 47), (7, 90), (36, 24), (20, 10)])
def test_size_keeps_the_aspect_ratio_and_centres(run, width, height):
    save("frame.png", colours())
    frame = rgb_of(run, "frame.png", "--size", f"{width}x{height}")
    np.testing.assert_array_equal(frame, letterbox(Image.open("frame.png"), width, height), strict=True)


def test_size_of_a_very_long_image_keeps_one_pixel(run):
    save("line.png", colours(1, 400))
    frame = rgb_of(run, "line.png", "--size", "40x9", "--pad-value", "0")
    assert frame.shape == (9, 40, 3)
    assert frame[4].any() and not frame[:4].any() and not frame[5:].any()


@pytest.mark.parametrize("block", ["1", "2", "3,2"])
@pytest.mark.parametrize("mode", ["DCR", "CRD", "focus"])
@pytest.mark.parametrize("layout", [["NHWC"], ["NCHW"], ["NCHW_VECT_C"], ["NCHW_VECT_C", "--vect", "32"]])
def test_layout_options_reach_the_operator_and_the_preview_undoes_them(run, block, mode, layout):
    pixels = colours(24, 36)
    save("frame.png", pixels)
    code, _, err = run("preprocess", "frame.png", "-o", "out", "--block-size", block, "--mode", mode,
                       "--data-format", *layout, "--preview")
    assert (code, err) == (0, "")
    size = [int(part) for part in block.split(",")] if "," in block else int(block)
    expected = s2dq.reference.space_to_depth(
        (pixels.astype(int) - 128).astype(np.int8)[None], size, "NHWC", mode=mode, out_format=layout[0],
        vect=int(layout[2]) if len(layout) > 1 else 4,
    )  # fmt: skip
    np.testing.assert_array_equal(np.load("out/frame.npy"), expected, strict=True)
    np.testing.assert_array_equal(np.asarray(Image.open("out/frame.preview.png")), pixels, strict=True)


IMAGENET = ["--mean", "0.485,0.456,0.406", "--std", "0.229,0.224,0.225", "--scale", "0.0187",
            "--zero-point", "-15"]  # fmt: skip


@pytest.mark.parametrize("reverse", [False, True])
def test_quantization_options_reach_the_formula(run, reverse):
    pixels = colours()
    save("frame.png", pixels)
    code, _, err = run("preprocess", "frame.png", "-o", "out", "--preview", *IMAGENET,
                       *["--reverse-channels"] * reverse)
    assert (code, err) == (0, "")
    frame = (pixels[..., ::-1] if reverse else pixels).astype(np.float64)
    values = (frame * (1 / 255) - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    expected = np.clip(np.rint(values / np.float64(np.float32(0.0187))) - 15, -128, 127).astype(np.int8)[None]
    np.testing.assert_array_equal(np.load("out/frame.npy"), expected, strict=True)
    values = (expected[0] + 15.0) * np.float64(np.float32(0.0187)) * [0.229, 0.224, 0.225] + [0.485, 0.456, 0.406]
    undone = np.rint(values * 255).astype(np.uint8)
    preview = np.asarray(Image.open("out/frame.preview.png"))
    np.testing.assert_array_equal(preview, undone[..., ::-1] if reverse else undone, strict=True)
    assert np.abs(preview.astype(int) - pixels).max() <= 1  # half a step: 0.0187 * 0.229 * 255 / 2 grey levels


def test_rescale_takes_a_fraction_or_a_decimal(run):
    save("frame.png", colours())
    results = []
    for rescale in ("1/128", "0.0078125"):
        code, _, err = run("preprocess", "frame.png", "-o", "out", "--rescale", rescale, "--scale", "1/64",
                           "--preview")
        assert (code, err) == (0, "")
        results.append(np.load("out/frame.npy"))
        assert np.abs(np.asarray(Image.open("out/frame.preview.png")).astype(int) - colours()).max() <= 1
    np.testing.assert_array_equal(*results)
    np.testing.assert_array_equal(results[0][0], np.rint(colours() / 2).clip(0, 127).astype(np.int8))


def test_one_mean_counts_for_all_channels(run):
    save("frame.png", colours())
    code, _, err = run("preprocess", "frame.png", "-o", "out", "--mean", "0.5", "--std", "0.5",
                       "--scale", "2/255")
    assert (code, err) == (0, "")
    levels = (colours() / 255 - 0.5) / 0.5 / np.float64(np.float32(2 / 255))
    np.testing.assert_array_equal(np.load("out/frame.npy")[0], np.rint(levels).clip(-128, 127).astype(np.int8))


@pytest.mark.parametrize("options, levels", [
    ([], (-128, 127)),
    (["--dtype", "uint8"], (0, 255)),
    (["--scale", "1/127"], (0, 127)),
    (["--scale", "1/255", "--zero-point", "-128"], (-128, 127)),
])  # fmt: skip
def test_default_scale_and_zero_point_keep_black_and_white(run, options, levels):
    save("ends.png", np.repeat(np.array([[[0], [255]]], np.uint8), 3, axis=2))
    code, _, err = run("preprocess", "ends.png", "-o", "out", *options)
    assert (code, err) == (0, "")
    assert tuple(np.load("out/ends.npy")[0, 0, :, 0]) == levels


def test_saturating_parameters_are_warned_of(run):
    save("frame.png", colours())
    code, _, err = run("preprocess", "frame.png", "-o", "out", "--scale", "1/255")
    assert code == 0
    assert err == ("s2dq: warning: 128 of 256 grey levels saturate in int8 with scale 0.00392157 "
                   "and zero point 0\n")
    # Black alone becomes -129.
    code, _, err = run("preprocess", "frame.png", "-o", "out", "--mean", "1/255", "--scale", "1/254",
                       "--zero-point", "-128")
    assert code == 0
    assert err.startswith("s2dq: warning: 1 of 256 grey levels saturate")


def test_scale_is_asked_for_where_its_default_makes_no_sense(run):
    save("frame.png", colours())
    for option in (["--mean", "0.5"], ["--std", "0.5"], ["--rescale", "1"]):
        code, _, err = run("preprocess", "frame.png", "-o", "out", *option)
        assert code == 2
        assert_one_line(err, "--scale")
    assert not Path("out").exists()


# ---- preprocess: what Pillow reads


def test_grey_palette_and_bilevel_images_become_rgb(run):
    grey = colours()[..., 0]
    save("grey.png", grey)
    np.testing.assert_array_equal(rgb_of(run, "grey.png"), np.repeat(grey[..., None], 3, axis=2))

    table = np.array([[10, 200, 30], [250, 0, 128], [7, 8, 9], [90, 91, 250]], np.uint8)
    palette = Image.fromarray(grey % 4)
    palette.putpalette(table.tobytes())
    palette.save("palette.png")
    assert mode_of("palette.png") == "P"
    np.testing.assert_array_equal(rgb_of(run, "palette.png"), table[grey % 4])

    Image.fromarray(grey > 90).save("bits.png")
    assert mode_of("bits.png") == "1"
    np.testing.assert_array_equal(rgb_of(run, "bits.png"), np.where(grey > 90, 255, 0)[..., None].repeat(3, 2))


@pytest.mark.parametrize("kind", ["LA", "RGBA", "palette", "key"])
@pytest.mark.parametrize("options, background", [
    ([], (114, 114, 114)),
    (["--pad-value", "10,20,200"], (10, 20, 200)),
])  # fmt: skip
def test_transparency_shows_the_colour_of_the_padding(run, kind, options, background):
    pixels, alpha = colours(), np.tile(np.array([0, 64, 128, 255], np.uint8), (24, 9))
    if kind == "LA":
        pixels = pixels[..., :1].repeat(3, 2)
        save("clear.png", np.stack([pixels[..., 0], alpha], axis=2))
    elif kind == "RGBA":
        save("clear.png", np.concatenate([pixels, alpha[..., None]], axis=2))
    elif kind == "palette":  # each palette entry with an alpha of its own
        table = np.array([[10, 200, 30], [250, 0, 128], [7, 8, 9], [90, 91, 250]], np.uint8)
        index = np.tile(np.arange(4, dtype=np.uint8), (24, 9))
        image, pixels = Image.fromarray(index), table[index]
        image.putpalette(table.tobytes())
        image.save("clear.png", transparency=bytes([0, 64, 128, 255]))
    else:  # one colour stands for nothing
        pixels[3:9, 4:20] = (1, 2, 3)
        alpha = np.where((pixels == (1, 2, 3)).all(axis=2), 0, 255)
        Image.fromarray(pixels).save("clear.png", transparency=(1, 2, 3))
    part = alpha[..., None] / 255
    expected = pixels * part + np.array(background) * (1 - part)
    assert np.abs(rgb_of(run, "clear.png", *options) - expected).max() <= 1


def test_transparency_shows_the_padding_also_in_reversed_channels(run):
    save("clear.png", np.zeros((4, 2, 4), np.uint8))
    frame = rgb_of(run, "clear.png", "--size", "4x4", "--reverse-channels", "--pad-value", "10,20,200")
    np.testing.assert_array_equal(frame, np.full((4, 4, 3), (10, 20, 200)))


def test_cmyk_becomes_rgb(run):
    inks = np.zeros((1, 5, 4), np.uint8)
    for pixel, ink in enumerate([(0, 0, 0, 0), (255, 0, 0, 0), (0, 255, 0, 0), (0, 0, 255, 0), (0, 0, 0, 255)]):
        inks[0, pixel] = ink
    Image.frombytes("CMYK", (5, 1), inks.tobytes()).save("inks.tif")
    assert mode_of("inks.tif") == "CMYK"
    expected = [(255, 255, 255), (0, 255, 255), (255, 0, 255), (255, 255, 0), (0, 0, 0)]
    np.testing.assert_array_equal(rgb_of(run, "inks.tif")[0], expected)


@pytest.mark.parametrize("name, mode", [("deep.png", "I;16"), ("deep.tif", "I;16"), ("big.tif", "I;16B"),
                                        ("wide.tif", "I"), ("deep.pgm", "I")])  # fmt: skip
def test_16_bit_samples_are_scaled_not_clipped(run, name, mode):
    samples = np.array([[0, 127, 129, 255, 256, 257, 32767, 32768, 65406, 65535]], np.uint16)
    if mode == "I":
        Image.fromarray(samples.astype(np.int32)).save(name)
    elif mode == "I;16B":
        Path(name).write_bytes(big_endian_tiff(samples))
    else:
        Image.fromarray(samples).save(name)
    assert mode_of(name) == mode or (mode, mode_of(name)) == ("I;16", "I")  # older Pillow reads PNG as I
    expected = np.rint(samples / 257).astype(np.uint8)
    np.testing.assert_array_equal(rgb_of(run, name), expected[..., None].repeat(3, 2), strict=True)


@pytest.mark.parametrize("orientation", [1, 6])
def test_the_transparent_grey_of_16_bits_is_clear(run, orientation):
    """As of 8 bits, and nothing but it: its neighbours become the same level."""
    samples = np.array([[0, 39999, 40000, 40001], [40000, 128, 257, 65535]], np.uint16)
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.fromarray(samples).save("clear.png", exif=exif)
    data = Path("clear.png").read_bytes()  # Pillow of old writes no such chunk; it comes after the first, of 25 bytes
    Path("clear.png").write_bytes(data[:33] + chunk(b"tRNS", struct.pack(">H", 40000)) + data[33:])
    with Image.open("clear.png") as image:
        assert image.info["transparency"] == 40000
    levels = np.where(samples == 40000, 114, np.rint(samples / 257)).astype(np.uint8)
    expected = levels if orientation == 1 else np.rot90(levels, -1)
    np.testing.assert_array_equal(rgb_of(run, "clear.png"), expected[..., None].repeat(3, 2), strict=True)
    assert (levels == 156).sum() == 2


def chunk(kind, body):
    """One of a PNG file."""
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def big_endian_tiff(samples):
    """A TIFF file of one strip of big-endian 16-bit grey samples."""
    height, width = samples.shape
    tags = [(256, width), (257, height), (258, 16), (259, 1), (262, 1), (273, 0), (277, 1), (278, height),
            (279, samples.size * 2)]  # fmt: skip
    start = 8 + 2 + 12 * len(tags) + 4
    entries = b"".join(struct.pack(">HHII", tag, 4, 1, start if tag == 273 else value) for tag, value in tags)
    return b"MM\0*" + struct.pack(">IH", 8, len(tags)) + entries + bytes(4) + samples.astype(">u2").tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_samples_without_a_white_level_are_refused(run, dtype):
    Image.fromarray((colours()[..., 0] * 70000.0).astype(dtype)).save("samples.tif")
    code, _, err = run("preprocess", "samples.tif", "-o", "out")
    assert code == 1
    assert_one_line(err, "samples.tif", "white level")


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("deep", [False, True])
def test_exif_orientation_is_applied(run, orientation, deep):
    upright = colours(6, 9)
    stored = {
        1: upright, 2: upright[:, ::-1], 3: upright[::-1, ::-1], 4: upright[::-1],
        5: upright.transpose(1, 0, 2), 6: np.rot90(upright), 7: upright[::-1, ::-1].transpose(1, 0, 2),
        8: np.rot90(upright, -1),
    }[orientation]  # fmt: skip
    stored = np.ascontiguousarray(stored)
    if deep:
        stored = stored[..., 0].astype(np.uint16) * 257
        upright = upright[..., :1].repeat(3, 2)
    exif = Image.Exif()
    exif[274] = orientation
    save("turned.png", stored, exif=exif)
    np.testing.assert_array_equal(rgb_of(run, "turned.png"), upright, strict=True)
    recipe = json.loads(Path("out/turned.json").read_text())
    assert recipe["source_size"] == {"width": 9, "height": 6}


def test_the_first_frame_of_an_animation_counts(run):
    frames = [Image.fromarray(np.full((4, 4), level, np.uint8)) for level in (40, 90)]
    frames[0].save("moving.gif", save_all=True, append_images=frames[1:])
    np.testing.assert_array_equal(rgb_of(run, "moving.gif"), np.full((4, 4, 3), 40))


# ---- preprocess: the description


def test_the_description_makes_the_same_input_again(run):
    save("frame.png", colours())
    code, _, _ = run("preprocess", "frame.png", "-o", "out", "--size", "64x40", "--block-size", "2,4",
                     "--data-format", "NCHW_VECT_C", "--vect", "8", "--mode", "CRD", *IMAGENET,
                     "--reverse-channels", "--pad-value", "1,2,3", "--dtype", "int8")
    assert code == 0
    recipe = json.loads(Path("out/frame.json").read_text())
    assert recipe["s2dq"] == s2dq.__version__
    assert recipe["source"] == "frame.png"
    assert recipe["source_size"] == {"width": 36, "height": 24}
    assert recipe["resized_size"] == {"width": 60, "height": 40}
    assert recipe["resample"] == "bilinear"
    assert (recipe["letterbox"]["left"], recipe["letterbox"]["top"]) == (2, 0)
    assert recipe["preprocessor"] == {
        "scale": 0.0187, "zero_point": -15, "dtype": "int8", "mean": [0.485, 0.456, 0.406],
        "std": [0.229, 0.224, 0.225], "rescale": 1 / 255, "data_format": "NCHW_VECT_C", "block_size": [2, 4],
        "mode": "CRD", "vect": 8, "reverse_channels": True, "size": [40, 64], "pad_value": [1, 2, 3],
    }  # fmt: skip
    tensor = np.load("out/frame.npy")
    assert (recipe["shape"], recipe["dtype"]) == (list(tensor.shape), tensor.dtype.name)

    resized = Image.fromarray(colours()).resize((60, 40), Image.BILINEAR)
    again = s2dq.Preprocessor(**recipe["preprocessor"])(np.asarray(resized))
    np.testing.assert_array_equal(again, tensor, strict=True)


@pytest.mark.parametrize("size", [None, (128, 96), (160, 160), (96, 200), (61, 50)])
def test_the_description_maps_a_box_back(run, size):
    box = np.array([20, 12, 52, 36])  # left, top, right, bottom in the source
    pixels = np.zeros((60, 80, 3), np.uint8)
    pixels[box[1] : box[3], box[0] : box[2]] = (255, 255, 255)
    save("frame.png", pixels)
    frame = rgb_of(run, "frame.png", "--pad-value", "0", *(["--size", f"{size[0]}x{size[1]}"] if size else []))

    rows, columns = (np.flatnonzero((frame[..., 0] > 127).any(axis=axis)) for axis in (1, 0))
    x_model, y_model = np.array([columns[0], columns[-1] + 1]), np.array([rows[0], rows[-1] + 1])
    recipe = json.loads(Path("out/frame.json").read_text())
    fit, resized = recipe["letterbox"], recipe["resized_size"]
    assert (fit["ratio_x"], fit["ratio_y"]) == (resized["width"] / 80, resized["height"] / 60)
    x_source = eval(fit["x_source"], {}, fit | {"x_model": x_model})  # as the file itself says
    y_source = eval(fit["y_source"], {}, fit | {"y_model": y_model})
    within = 0 if size is None else 0.5 / min(fit["ratio_x"], fit["ratio_y"]) + 1e-9  # half a model pixel
    assert np.abs(x_source - box[0::2]).max() <= within
    assert np.abs(y_source - box[1::2]).max() <= within
    np.testing.assert_allclose(x_source, (x_model - fit["left"]) / fit["ratio_x"])


# ---- preprocess: several images, and failures


def test_several_images_give_one_table(run):
    for name in ("a.png", "b.png", "c.png"):
        save(name, colours())
    code, out, err = run("preprocess", "a.png", "b.png", "c.png", "-o", "deep/er", "--block-size", "2")
    assert (code, err) == (0, "")  # stderr is no terminal: no progress bar
    lines = out.splitlines()
    assert [line.split()[0] for line in lines] == ["file", *(os.path.join("deep/er", f"{n}.npy") for n in "abc")]
    assert {line.index("int8") for line in lines[1:]} == {lines[0].index("dtype")}
    assert all("(1, 12, 18, 12)" in line and line.endswith(" ms") for line in lines[1:])


def test_a_terminal_gets_a_progress_bar_for_several_images(run, monkeypatch, capsys):
    pytest.importorskip("tqdm")
    for name in ("a.png", "b.png"):
        save(name, colours())
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert "0/2" in run("preprocess", "a.png", "b.png", "-o", "out")[2]
    assert run("preprocess", "a.png", "-o", "out")[2] == ""


@pytest.mark.parametrize("options", [[], ["--workers", "2"]])
def test_a_folder_stands_for_its_images(run, options):
    folder = Path("frames")
    (folder / "deeper.png").mkdir(parents=True)
    for name in ("b.PNG", "a.png", "c.bmp"):
        save(folder / name, colours())
    (folder / "notes.txt").write_text("no image")
    save("single.png", colours())
    code, out, err = run("preprocess", "single.png", "frames", "-o", "out", *options)
    assert code == 1 and "deeper.png" in err and len(err.splitlines()) == 1  # what is called an image has to be one
    written = [line.split()[0] for line in out.splitlines()[1:]]
    assert written == [f"out/{name}.npy".replace("/", os.sep) for name in ("single", "a", "b", "c")]
    assert json.loads(Path("out/c.json").read_text())["source"] == str(folder / "c.bmp")


def test_a_folder_without_images_is_told_and_the_others_are_done(run):
    Path("empty").mkdir()
    Path("outer/inner").mkdir(parents=True)
    Path("outer/notes.txt").write_text("no image")
    save("outer/inner/a.png", colours())
    told = ["s2dq: error: no images in empty", "s2dq: error: no images in outer (subfolders are not searched)"]
    code, out, err = run("preprocess", "empty", "outer", "-o", "out")
    assert (code, out, err.splitlines()) == (1, "", told) and not Path("out").exists()
    code, out, err = run("preprocess", "empty", "outer/inner", "-o", "out")
    assert code == 1 and err.splitlines() == told[:1] and "a.npy" in out and Path("out/a.npy").exists()


@pytest.mark.parametrize("options", [[], ["--preview"]])
def test_a_folder_that_is_its_own_output_can_be_done_again(run, options):
    """What the first run has written there is no image for the second; another file of such a name is."""
    Path("frames").mkdir()
    for name in ("a.png", "b.png", "b2.preview.png"):
        save(Path("frames") / name, colours())
    first = run("preprocess", "frames", "-o", "frames", "--preview")
    written = {path.name: path.read_bytes() for path in Path("frames").iterdir()}
    assert first[0] == 0 and {"a.preview.png", "b.preview.png", "b2.preview.preview.png"} <= set(written)
    again = run("preprocess", "frames", "-o", "frames", *options)
    assert (again[0], again[2]) == (0, "")
    assert [line.split()[0] for line in again[1].splitlines()] == [line.split()[0] for line in first[1].splitlines()]
    assert {path.name: path.read_bytes() for path in Path("frames").iterdir()} == written
    assert run("preprocess", "frames/a.preview.png", "-o", "out")[0] == 0, "by its own name it is an image"


def test_an_unreadable_image_is_named_and_the_others_are_done(run):
    save("first.png", colours())
    Path("notes.png").write_text("no image")
    whole = save("whole.png", colours(200, 200))
    Path("half.png").write_bytes(Path(whole).read_bytes()[:2000])
    Path("folder.png").mkdir()
    save("odd.png", colours(23, 36))
    save("last.png", colours())
    names = ["first.png", "notes.png", "half.png", "missing.png", "folder.png", "odd.png", "last.png"]
    code, out, err = run("preprocess", *names, "-o", "out", "--block-size", "2", "--preview")
    assert code == 1
    empty, *complaints = err.splitlines()
    assert empty == "s2dq: error: no images in folder.png"
    names.remove("folder.png")
    assert len(complaints) == 4
    for complaint, name in zip(complaints, names[1:-1], strict=True):
        assert complaint.startswith(f"s2dq: error: {name}: ")
    assert complaints[2].endswith(os.strerror(2))
    assert "23" in complaints[3] and "block_size" in complaints[3]
    assert [line.split()[0] for line in out.splitlines()[1:]] == [
        os.path.join("out", "first.npy"), os.path.join("out", "last.npy")]  # fmt: skip
    assert len(os.listdir("out")) == 6  # three files each for the first and the last, nothing else


def test_an_unreadable_image_sets_the_exit_code_of_the_process(tmp_path):
    save(tmp_path / "good.png", colours())
    (tmp_path / "bad.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(40))
    done = spawn("preprocess", "bad.png", "good.png", "-o", "out", cwd=tmp_path)
    assert done.returncode == 1
    assert_one_line(done.stderr, "bad.png")
    assert (tmp_path / "out" / "good.npy").exists()


@pytest.mark.parametrize("images", [["a/frame.png", "b/frame.png"], ["a/frame.png", "a/frame.bmp"],
                                    ["a/frame.png", "a/frame.png"]])  # fmt: skip
def test_two_inputs_for_one_output_are_refused_before_anything_is_written(run, images):
    for image in images:
        Path(image).parent.mkdir(exist_ok=True)
        save(image, colours())
    save("other.png", colours())
    code, out, err = run("preprocess", "other.png", *images, "-o", "out")
    assert (code, out) == (2, "")
    assert_one_line(err, *images, os.path.join("out", "frame.npy"))
    assert not Path("out").exists()


def test_an_output_that_is_an_input_is_refused(run):
    save("frame.png", colours())
    save("frame.preview.png", colours())
    before = snapshot(".")
    code, _, err = run("preprocess", "frame.png", "frame.preview.png", "-o", ".", "--preview")
    assert code == 2
    assert_one_line(err, "frame.preview.png", "overwrite")
    assert snapshot(".") == before


@POSIX
def test_two_outputs_linked_to_one_file_are_refused(run):
    for name in ("a", "b"):
        save(f"{name}.png", colours())
    Path("out").mkdir()
    Path("out/a.npy").symlink_to("b.npy")
    code, _, err = run("preprocess", "a.png", "b.png", "-o", "out")
    assert code == 2
    assert_one_line(err, "a.png", "b.png")


def test_existing_results_are_replaced(run):
    save("frame.png", colours())
    assert run("preprocess", "frame.png", "-o", "out")[0] == 0
    save("frame.png", colours()[::-1])
    assert run("preprocess", "frame.png", "-o", "out", "--dtype", "uint8")[0] == 0
    np.testing.assert_array_equal(np.load("out/frame.npy")[0], colours()[::-1], strict=True)


@pytest.mark.parametrize("error, code", [(OSError(28, "No space left on device"), 1), (MemoryError(), 1),
                                         (KeyboardInterrupt(), 130)])  # fmt: skip
def test_a_failed_write_leaves_the_old_file_and_no_half_one(run, monkeypatch, error, code):
    save("frame.png", colours())
    assert run("preprocess", "frame.png", "-o", "out")[0] == 0
    before = snapshot("out")

    def fail(file, array, **_):
        file.write(b"half")
        raise error

    monkeypatch.setattr(np, "save", fail)
    result, _, err = run("preprocess", "frame.png", "-o", "out", "--dtype", "uint8")
    assert result == code
    assert snapshot("out") == before
    if code == 1:
        assert_one_line(err, "frame.png", "No space left" if isinstance(error, OSError) else "MemoryError")


def test_a_pixel_bomb_is_an_error_line(tmp_path):
    header = struct.pack(">IIBBBBB", 60000, 60000, 8, 2, 0, 0, 0)
    data = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(1000))) + chunk(b"IEND", b"")
    (tmp_path / "bomb.png").write_bytes(b"\x89PNG\r\n\x1a\n" + data)
    done = spawn("preprocess", "bomb.png", "-o", "out", cwd=tmp_path)
    assert done.returncode == 1
    assert_one_line(done.stderr, "bomb.png", "limit")
    assert list((tmp_path / "out").iterdir()) == []


def test_large_images_below_the_limit_of_pillow_are_read_without_a_warning(run, monkeypatch):
    save("frame.png", colours())
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 600)  # Pillow warns above this and refuses twice as much
    assert rgb_of(run, "frame.png").shape == (24, 36, 3)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 400)
    code, _, err = run("preprocess", "frame.png", "-o", "out")
    assert code == 1
    assert_one_line(err, "frame.png", "limit")


def test_missing_pillow_is_one_line_that_says_what_to_install(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    code, _, err = run("preprocess", "frame.png", "-o", "out")
    assert code == 1
    assert_one_line(err, 'pip install "s2dq[cli]"')
    assert not Path("out").exists()


# ---- apply


def labels(*shape, dtype=np.int16):
    return np.arange(np.prod(shape)).astype(dtype).reshape(shape)


APPLY = [
    ("space_to_depth", (2, 4, 6, 3), "--block-size 2", {"block_size": 2}),
    ("space_to_depth", (2, 4, 6, 3), "--block-size 2,3 --mode CRD --out-format NCHW",
     {"block_size": (2, 3), "mode": "CRD", "out_format": "NCHW"}),
    ("space_to_depth", (2, 3, 4, 5), "--block-size 2 --data-format NCHW --mode focus --paddings 0,0;1,0 "
     "--pad-value -7 --num-threads 1",
     {"block_size": 2, "data_format": "NCHW", "mode": "focus", "paddings": [[0, 0], [1, 0]],
      "pad_value": -7, "num_threads": 1}),
    ("space_to_depth", (1, 4, 4, 3), "--block-size 2 --out-format NCHW_VECT_C --vect 8",
     {"block_size": 2, "out_format": "NCHW_VECT_C", "vect": 8}),
    ("space_to_depth", (2, 8, 3), "--block-size 4 --data-format NWC", {"block_size": 4, "data_format": "NWC"}),
    ("depth_to_space", (1, 3, 2, 2, 4), "--block-size 2 --data-format NCHW_VECT_C --out-format NHWC "
     "--channels 12",
     {"block_size": 2, "data_format": "NCHW_VECT_C", "out_format": "NHWC", "channels": 12}),
    ("depth_to_space", (1, 2, 3, 8), "--block-size 2 --crops 1,0;0,2", {"block_size": 2,
                                                                        "crops": [[1, 0], [0, 2]]}),
    ("space_to_batch_nd", (2, 3, 4, 3), "--block-shape 2,2 --paddings 1,0;0,0 --pad-value 9",
     {"block_shape": [2, 2], "paddings": [[1, 0], [0, 0]], "pad_value": 9}),
    ("space_to_batch", (2, 6, 3), "--block-shape 3 --paddings 0,0", {"block_shape": [3],
                                                                    "paddings": [[0, 0]]}),
    ("space_to_batch_nd", (2, 3), "--block-shape= --paddings=", {"block_shape": [],
                                                               "paddings": np.empty((0, 2), int)}),
    ("batch_to_space_nd", (8, 2, 2, 3), "--block-shape 2,2 --crops 1,0;0,1",
     {"block_shape": [2, 2], "crops": [[1, 0], [0, 1]]}),
    ("batch_to_space", (6, 2, 3), "--block-shape 3 --crops 0,2", {"block_shape": [3], "crops": [[0, 2]]}),
    ("pack_vect_c", (1, 6, 2, 2), "--vect 4 --pad-value -3", {"vect": 4, "pad_value": -3}),
    ("pack_vect_c", (1, 2, 2, 6), "--data-format NHWC --vect 8", {"data_format": "NHWC", "vect": 8}),
    ("unpack_vect_c", (1, 2, 2, 2, 4), "--channels 6 --data-format NHWC", {"channels": 6,
                                                                         "data_format": "NHWC"}),
]  # fmt: skip


@pytest.mark.parametrize("operator, shape, options, keywords", APPLY,
                         ids=[f"{case[0]} {case[2]}" for case in APPLY])
def test_apply_gives_what_the_function_gives(run, operator, shape, options, keywords):
    x = labels(*shape)
    np.save("in.npy", x)
    code, out, err = run("apply", operator, "in.npy", "out.npy", *options.split())
    assert (code, err) == (0, "")
    expected = getattr(s2dq, operator)(x, **keywords)
    np.testing.assert_array_equal(np.load("out.npy"), expected, strict=True)
    assert str(expected.shape) in out and "int16" in out
    assert sorted(os.listdir()) == ["in.npy", "out.npy"]


def test_apply_has_every_operator_and_every_option_of_its_signature():
    assert {case[0] for case in APPLY} == {
        "space_to_depth", "depth_to_space", "space_to_batch_nd", "batch_to_space_nd", "space_to_batch",
        "batch_to_space", "pack_vect_c", "unpack_vect_c"}  # fmt: skip


@pytest.mark.parametrize("dtype", ["bool", "uint8", "float16", ">i4", "complex128", "S3", "M8[s]", "i4,u1"])
def test_apply_keeps_the_dtype(run, dtype):
    x = labels(1, 4, 4, 3, dtype=np.int64).astype("i4" if "," in dtype else dtype).astype(dtype)
    np.save("in.npy", x)
    assert run("apply", "space_to_depth", "in.npy", "out.npy", "--block-size", "2")[0] == 0
    result = np.load("out.npy")
    assert result.dtype == x.dtype
    np.testing.assert_array_equal(result, s2dq.reference.space_to_depth(x, 2))


def test_apply_reads_fortran_order_and_empty_arrays(run):
    for x in (np.asfortranarray(labels(1, 4, 6, 3)), np.empty((0, 4, 4, 3), np.int8)):
        np.save("in.npy", x)
        assert run("apply", "space_to_depth", "in.npy", "out.npy", "--block-size", "2")[0] == 0
        np.testing.assert_array_equal(np.load("out.npy"), s2dq.reference.space_to_depth(x, 2), strict=True)


def test_apply_may_write_over_its_input(run):
    x = labels(1, 4, 4, 3)
    np.save("x.npy", x)
    assert run("apply", "space_to_depth", "x.npy", "x.npy", "--block-size", "2")[0] == 0
    np.testing.assert_array_equal(np.load("x.npy"), s2dq.reference.space_to_depth(x, 2), strict=True)


@pytest.mark.parametrize("text, dtype, stored", [("nan", "f4", np.nan), ("2.5", "f4", 2.5), ("1e-3", "f8", 1e-3),
                                                 ("1+2j", "c8", 1 + 2j), ("200", "u1", 200),
                                                 (f"{2**53 + 1}", "i8", 2**53 + 1)])  # fmt: skip
def test_apply_takes_pad_values_of_every_kind(run, text, dtype, stored):
    np.save("in.npy", np.zeros((1, 1, 2, 1), dtype))
    code, _, err = run("apply", "space_to_depth", "in.npy", "out.npy", "--block-size", "2", "--paddings",
                       "1,0;0,0", "--pad-value", text)
    assert (code, err) == (0, "")
    np.testing.assert_array_equal(np.load("out.npy").ravel()[:2], np.array([stored] * 2, dtype))


def test_apply_reports_unreadable_input(run):
    np.save("objects.npy", np.array([None, 1], object), allow_pickle=True)
    np.savez("many.npz", np.zeros(3))
    Path("text.npy").write_text("no array")
    Path("empty.npy").touch()
    np.save("whole.npy", labels(1, 64, 64, 3))
    Path("half.npy").write_bytes(Path("whole.npy").read_bytes()[:5000])
    for name in ("objects.npy", "many.npz", "text.npy", "empty.npy", "half.npy", "missing.npy", "."):
        code, out, err = run("apply", "space_to_depth", name, "out.npy", "--block-size", "2")
        assert (code, out) == (1, ""), name
        assert_one_line(err, name)
        assert not Path("out.npy").exists()


def header(text, body=b""):
    """A .npy file of version 1 with this header."""
    text = text.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + body


FIELDS = "{{'descr': {}, 'fortran_order': False, 'shape': {}, }}"


@pytest.mark.parametrize("data", [
    pytest.param(header("-" * 9000 + "1"), id="minus signs"),  # RecursionError or MemoryError
    pytest.param(header(FIELDS.format("'|i1'", "(1, 2")[:-4]), id="open"),  # SyntaxError, tokenize.TokenError
    pytest.param(header(FIELDS.format("'|i1'", f"({10**30},)")), id="huge"),  # OverflowError
    pytest.param(header("{[]: 1}"), id="unhashable"),  # TypeError
    pytest.param(header("{1: 1, 'a': 2, 'shape': 3}"), id="keys"),
])  # fmt: skip
def test_a_damaged_header_is_one_line(run, data):
    Path("in.npy").write_bytes(data)
    for argv in (["apply", "space_to_depth", "in.npy", "out.npy", "--block-size", "2"],
                 ["postprocess", "in.npy", "-o", "out.png"]):
        code, out, err = run(*argv)
        assert (code, out) == (1, "")
        assert_one_line(err, "in.npy: ")
        assert os.listdir() == ["in.npy"]


def test_a_damaged_header_is_one_line_without_a_warning(tmp_path):
    """Python's, of "1if"."""
    (tmp_path / "in.npy").write_bytes(header(FIELDS.format("'|i1'", "(1if 1else 2, 2)"), bytes(100)))
    done = spawn("apply", "space_to_depth", "in.npy", "out.npy", "--block-size", "2", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert_one_line(done.stderr, "in.npy: ")


def test_apply_reports_an_output_that_cannot_be_written(run):
    np.save("in.npy", labels(1, 4, 4, 3))
    Path("folder").mkdir()
    for name in ("folder", os.path.join("missing", "out.npy")):
        code, _, err = run("apply", "space_to_depth", "in.npy", name, "--block-size", "2")
        assert code == 1
        assert_one_line(err, name)
    assert sorted(os.listdir()) == ["folder", "in.npy"] and not os.listdir("folder")


@POSIX
def test_apply_does_not_replace_a_device_and_follows_a_link(run):
    np.save("in.npy", labels(1, 4, 4, 3))
    code, _, err = run("apply", "space_to_depth", "in.npy", "/dev/null", "--block-size", "2")
    assert code == 1
    assert_one_line(err, "/dev/null", "regular file")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)

    Path("link.npy").symlink_to("target.npy")
    assert run("apply", "space_to_depth", "in.npy", "link.npy", "--block-size", "2")[0] == 0
    assert Path("link.npy").is_symlink() and np.load("target.npy").shape == (1, 2, 2, 12)


@pytest.mark.parametrize("operator, options, says", [
    ("space_to_depth", "--block-size 3", "block_size"),
    ("space_to_depth", "--block-size 0", "block_size"),
    ("space_to_depth", f"--block-size {2**70}", "block_size"),
    ("space_to_depth", "--block-size 2 --data-format NDHWC", "NDHWC"),
    ("space_to_depth", "--block-size 2 --paddings -2,0;0,0", "paddings"),
    ("space_to_depth", "--block-size 2 --paddings 2,0;0,0 --pad-value 1000000", "pad_value"),
    ("space_to_depth", "--block-size 2 --num-threads 0", "num_threads"),
    ("space_to_batch_nd", "--block-shape 2,2 --paddings 0,0", "paddings"),
    ("batch_to_space_nd", "--block-shape 2,2 --crops 0,0;0,0", "batch"),
    ("unpack_vect_c", "--channels 3", "unpack_vect_c"),
])  # fmt: skip
def test_what_an_operator_refuses_is_one_line(run, operator, options, says):
    np.save("in.npy", labels(1, 4, 4, 3))
    code, out, err = run("apply", operator, "in.npy", "out.npy", *options.split())
    assert (code, out) == (2, "")
    assert_one_line(err, says)
    assert not Path("out.npy").exists()


# ---- postprocess


def undo(run, *options, name="out/frame.npy", to="back.png"):
    """`s2dq postprocess` -> the picture it has written."""
    code, out, err = run("postprocess", name, "-o", to, *options)
    assert (code, err) == (0, "")
    assert to in out
    return np.asarray(Image.open(to))


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("block", ["1", "2", "3,2"])
@pytest.mark.parametrize("options", [
    "", "--mode CRD", "--mode focus --data-format NCHW", "--reverse-channels", "--data-format NCHW",
    "--scale 1/127 --mean 0.5 --std 0.5 --rescale 1/128 --zero-point 2",
])  # fmt: skip
def test_postprocess_is_the_way_back(run, dtype, block, options):
    shared = [*options.split(), "--block-size", block]
    pixels = colours(24, 36) // 4 + 64  # to 127: the last options saturate beyond
    save("frame.png", pixels)
    assert run("preprocess", "frame.png", "-o", "out", "--dtype", dtype, *shared)[0] == 0
    np.testing.assert_array_equal(undo(run, *shared), pixels, strict=True)


@pytest.mark.parametrize("block", ["1", "2", "3", "1,2"])
@pytest.mark.parametrize("vect", ["1", "4", "16", "32"])
@pytest.mark.parametrize("normalised", [[], ["--scale", "1/127", "--mean", "0.5,0.5,0.5", "--std", "0.5"]])
def test_postprocess_of_packed_words(run, block, vect, normalised):
    """Whether their lanes are full or some are spare."""
    pixels = colours(24, 36) // 4 + 64
    save("frame.png", pixels)
    options = ["--data-format", "NCHW_VECT_C", "--vect", vect, "--block-size", block, *normalised]
    assert run("preprocess", "frame.png", "-o", "out", *options)[0] == 0
    back = undo(run, *options).astype(int)
    assert back.shape == pixels.shape and np.abs(back - pixels).max() <= bool(normalised)


@pytest.mark.parametrize("block, vect, told", [
    (1, 4, ["--channels", "1"]), (2, 16, ["--channels", "1"]), (3, 4, ["--channels", "1"]), (2, 4, []), (4, 16, []),
])  # fmt: skip
def test_postprocess_of_words_of_one_channel(run, block, vect, told):
    """Full ones tell; what could be three channels is, unless an option says otherwise."""
    grey = colours(24, 36)[..., :1]
    words = s2dq.space_to_depth(grey[None], block, "NHWC", out_format="NCHW_VECT_C", vect=vect)
    np.save("out.npy", words)
    options = ["--data-format", "NCHW_VECT_C", "--vect", vect, "--block-size", block]
    np.testing.assert_array_equal(undo(run, *options, *told, name="out.npy"), grey[..., 0], strict=True)
    if told and block < 3:
        three = undo(run, *options, name="out.npy")
        assert three.shape == (24, 36, 3)
        np.testing.assert_array_equal(three, undo(run, *options, "--channels", 3, name="out.npy"), strict=True)


@pytest.mark.parametrize("reverse", [False, True])
def test_postprocess_formula(run, reverse):
    tensor = labels(1, 16, 16, 3, dtype=np.uint8).view(np.int8)
    np.save("out.npy", tensor)
    values = (tensor[0].astype(np.float64) + 15) * np.float64(np.float32(0.0187))
    grey = (values * [0.229, 0.224, 0.225] + [0.485, 0.456, 0.406]) * 255
    expected = np.rint(grey).clip(0, 255).astype(np.uint8)
    picture = undo(run, *IMAGENET, *["--reverse-channels"] * reverse, name="out.npy")
    np.testing.assert_array_equal(picture, expected[..., ::-1] if reverse else expected, strict=True)
    assert {0, 255} <= set(expected.ravel().tolist())


def test_postprocess_undoes_the_letterbox_as_the_description_tells(run):
    y, x, c = np.mgrid[0:48, 0:72, 0:3]
    pixels = (x * 2 + y + c * 30).astype(np.uint8)  # smooth: it will be resized twice
    save("frame.png", pixels)
    assert run("preprocess", "frame.png", "-o", "out", "--size", "51x40", "--pad-value", "255")[0] == 0
    recipe = json.loads(Path("out/frame.json").read_text())
    crop, size = ("{width}x{height}".format(**recipe[key]) for key in ("resized_size", "source_size"))
    assert (crop, size) == ("51x34", "72x48")
    cropped = undo(run, "--crop", crop)
    np.testing.assert_array_equal(cropped, np.asarray(Image.fromarray(pixels).resize((51, 34), Image.BILINEAR)))
    restored = undo(run, "--crop", crop, "--size", size)
    assert restored.shape == pixels.shape
    assert psnr(restored, pixels) >= 40


def test_postprocess_crops_like_the_geometry(run):
    save("frame.png", colours(5, 7))
    frame = s2dq.Preprocessor(scale=1 / 255, zero_point=-128, size=(8, 12))(colours(5, 7))
    np.save("out.npy", frame)
    np.testing.assert_array_equal(undo(run, "--crop", "7x5", name="out.npy"), colours(5, 7))


def test_postprocess_of_a_batch_numbers_the_pictures(run):
    tensor = labels(3, 4, 5, 3)
    np.save("out.npy", tensor.astype(np.int8))
    code, out, err = run("postprocess", "out.npy", "-o", "many.png")
    assert (code, err) == (0, "")
    assert sorted(path.name for path in Path().glob("*.png")) == ["many_0.png", "many_1.png", "many_2.png"]
    assert [line.split()[0] for line in out.splitlines()] == ["file", "many_0.png", "many_1.png", "many_2.png"]
    for i, frame in enumerate(tensor.astype(np.int8)):
        np.testing.assert_array_equal(np.asarray(Image.open(f"many_{i}.png")), (frame.astype(int) + 128))


def test_postprocess_of_one_channel_is_grey(run):
    np.save("out.npy", labels(1, 4, 4, 4, dtype=np.uint8))
    picture = undo(run, "--block-size", "2", name="out.npy")
    assert mode_of("back.png") == "L"
    np.testing.assert_array_equal(picture, s2dq.reference.depth_to_space(np.load("out.npy"), 2)[0, ..., 0])


@pytest.mark.parametrize("suffix, file_format", [(".png", "PNG"), (".PNG", "PNG"), (".bmp", "BMP"), (".tif", "TIFF"),
                                                 (".jpg", "JPEG")])  # fmt: skip
def test_postprocess_writes_the_format_of_the_suffix(run, suffix, file_format):
    np.save("out.npy", labels(1, 4, 4, 3, dtype=np.uint8))
    undo(run, name="out.npy", to="back" + suffix)
    with Image.open("back" + suffix) as picture:
        assert (picture.format, picture.size, picture.mode) == (file_format, (4, 4), "RGB")


@pytest.mark.parametrize("shape, dtype, argv, says", [
    ((1, 4, 4, 3), "int8", "", "--output"),
    ((1, 4, 4, 3), "int8", "-o back.xyz", ".xyz"),
    ((1, 4, 4, 3), "int8", "-o back", "suffix"),
    ((1, 4, 4, 3), "int8", "-o back.png --block-size 2", "block"),
    ((1, 4, 4, 12), "int8", "-o back.png", "not 12"),
    ((1, 4, 4, 3), "int8", "-o back.png --scale 0", "scale"),
    ((1, 4, 4, 3), "uint8", "-o back.png --scale 1 --zero-point -1", "zero_point"),
    ((1, 4, 4, 3), "int8", "-o back.png --mean 0.5", "--scale"),
    ((1, 4, 4, 3), "int8", "-o back.png --crop 5x4", "5x4 is larger than the picture, 4x4"),
    ((1, 4, 4, 3), "int8", "-o back.png --size 0x4", "WxH"),
    ((1, 4, 4, 3), "int64", "-o back.png", "int64"),
    ((4, 4), "int8", "-o back.png", "dimensions"),
    ((1, 0, 4, 3), "int8", "-o back.png", "4x0"),
    ((1, 4, 4, 3), "int8", "-o back.png --channels 3", "NCHW_VECT_C"),
    ((1, 3, 4, 4, 4), "int8", "-o back.png --data-format NCHW_VECT_C", "not 12"),
    ((1, 3, 4, 4, 4), "int8", "-o back.png --data-format NCHW_VECT_C --block-size 3", "block"),
    ((1, 3, 4, 4, 4), "int8", "-o back.png --data-format NCHW_VECT_C --vect 0", "vect"),
    ((1, 3, 4, 4, 0), "int8", "-o back.png --data-format NCHW_VECT_C --vect 0", "vect"),
    ((1, 3, 4, 4, 4), "int8", "-o back.png --data-format NCHW_VECT_C --block-size 2,2,2", "block_size"),
    ((4, 4), "int8", "-o back.png --data-format NCHW_VECT_C", "dimensions"),
    ((1, 3, 4, 4, 4), "int8", "-o back.png --data-format NCHW_VECT_C --block-size 2 --channels 1", "--channels 1"),
    ((1, 1, 4, 4, 4), "int8", "-o back.png --data-format NCHW_VECT_C --channels 4", "--channels"),
    ((1, 1, 4, 4, 4), "int8", "-o back.png --data-format NCHW_VECT_C --channels 1 --scale 1 --std 1,2,3", "--std"),
])  # fmt: skip
def test_what_postprocess_refuses_is_one_line(run, shape, dtype, argv, says):
    np.save("out.npy", np.zeros(shape, dtype))
    before = snapshot(".")
    code, out, err = run("postprocess", "out.npy", *argv.split())
    assert (code, out) == (2, "")
    assert_one_line(err, says)
    assert snapshot(".") == before


def test_postprocess_reports_files_that_cannot_be_read_or_written(run):
    np.save("out.npy", np.zeros((1, 4, 4, 3), np.int8))
    np.save("none.npy", np.zeros((0, 4, 4, 3), np.int8))
    missing = os.path.join("missing", "back.png")
    for tensor, picture in (("missing.npy", "back.png"), ("none.npy", "back.png"), ("out.npy", missing)):
        code, out, err = run("postprocess", tensor, "-o", picture)
        assert (code, out) == (1, "")
        assert_one_line(err, "missing" if "missing" in tensor + picture else "none.npy")
        assert not Path("back.png").exists()


@pytest.mark.parametrize("shape, name", [
    ((1, 1, 70000, 3), "back.gif"),  # struct.error or OverflowError: 16 bits for the width
    ((1, 1, 70000, 3), "back.tga"), ((1, 1, 70000, 1), "back.pcx"), ((1, 1, 70000, 3), "back.sgi"),
    ((1, 8, 8, 3), "back.blp"), ((1, 8, 8, 1), "back.qoi"),  # ValueError: RGB and grey are not among its modes
    ((2, 1, 20000, 3), "back.webp"),
])  # fmt: skip
def test_what_a_format_has_no_room_for_is_one_line(run, shape, name):
    Image.init()
    file_format = Image.registered_extensions().get(Path(name).suffix)
    if file_format not in Image.SAVE:
        pytest.skip(f"this Pillow does not write {name}")
    np.save("out.npy", np.zeros(shape, np.int8))
    code, out, err = run("postprocess", "out.npy", "-o", name)
    assert (code, out) == (1, "")
    assert_one_line(err, "cannot write ", "back", file_format)
    assert os.listdir() == ["out.npy"]


@pytest.mark.parametrize("error", [ValueError("reason"), OverflowError("reason"), struct.error("reason"),
                                   RuntimeError("reason"), KeyError("reason"), SystemError("reason")])  # fmt: skip
def test_whatever_a_writer_of_pillow_raises_is_one_line(run, monkeypatch, error):
    def fail(picture, file, format):
        file.write(b"half")
        raise error

    monkeypatch.setattr(Image.Image, "save", fail)
    np.save("out.npy", np.zeros((1, 4, 4, 3), np.int8))
    code, out, err = run("postprocess", "out.npy", "-o", "back.png")
    assert (code, out) == (1, "")
    assert_one_line(err, "back.png", "reason")
    assert os.listdir() == ["out.npy"]


# ---- the command itself


@pytest.mark.parametrize("argv, says", [
    ("", "COMMAND"),
    ("transmogrify", "transmogrify"),
    ("preprocess", "IMAGE"),
    ("preprocess frame.png", "--output"),
    ("preprocess -o out", "IMAGE"),
    ("preprocess frame.png -o out --size 640", "WxH"),
    ("preprocess frame.png -o out --size 0x640", "WxH"),
    ("preprocess frame.png -o out --size -5x640", "--size"),
    ("preprocess frame.png -o out --size 99999999x99999999", "pixels"),
    pytest.param("preprocess frame.png -o out --size " + 5000 * "9" + "x1", "--size", id="5000 digits"),
    ("preprocess frame.png -o out --size 30x30 --block-size 4", "block"),
    ("preprocess frame.png -o out --block-size 0", "block_size"),
    ("preprocess frame.png -o out --block-size two", "two"),
    ("preprocess frame.png -o out --mode RCD", "RCD"),
    ("preprocess frame.png -o out --data-format NCW", "NCW"),
    ("preprocess frame.png -o out --data-format NCHW_VECT_C --vect 0", "vect"),
    ("preprocess frame.png -o out --rescale 1/0", "1/0"),
    ("preprocess frame.png -o out --rescale 1/2/3", "1/2/3"),
    ("preprocess frame.png -o out --rescale nan --scale 1", "rescale"),
    ("preprocess frame.png -o out --mean 1,2 --scale 1", "1,2"),
    ("preprocess frame.png -o out --std 0 --scale 1", "std"),
    ("preprocess frame.png -o out --std 1,0,1 --scale 1", "std"),
    ("preprocess frame.png -o out --scale 0", "scale"),
    ("preprocess frame.png -o out --scale -1", "scale"),
    ("preprocess frame.png -o out --scale 1e-60", "scale"),
    ("preprocess frame.png -o out --scale inf", "scale"),
    ("preprocess frame.png -o out --zero-point 128", "zero_point"),
    ("preprocess frame.png -o out --zero-point 1.5", "1.5"),
    ("preprocess frame.png -o out --dtype int16", "int16"),
    ("preprocess frame.png -o out --pad-value 256", "256"),
    ("preprocess frame.png -o out --pad-value 1,2", "1,2"),
    ("preprocess frame.png -o out --num-threads 0", "num_threads"),
    ("preprocess frame.png -o out --prev", "--prev"),
    ("apply", "OPERATOR"),
    ("apply space_to_death in.npy out.npy", "space_to_death"),
    ("apply space_to_depth in.npy out.npy", "--block-size"),
    ("apply space_to_depth in.npy", "out.npy"),
    ("apply space_to_depth in.npy out.npy --block-size 2,", "2,"),
    ("apply space_to_depth in.npy out.npy --block-size 2 --crops 0,0;0,0", "--crops"),
    ("apply space_to_batch_nd in.npy out.npy --block-shape 2,2", "--paddings"),
    ("apply space_to_batch_nd in.npy out.npy --block-shape 2,2 --paddings 0,0;0", "0,0;0"),
    ("apply pack_vect_c in.npy out.npy --pad-value three", "three"),
    ("info extra", "extra"),
])  # fmt: skip
def test_bad_arguments_are_one_line_and_exit_code_2(run, argv, says):
    save("frame.png", colours())
    np.save("in.npy", labels(1, 4, 4, 3))
    before = snapshot(".")
    code, out, err = run(*argv.split())
    assert (code, out) == (2, "")
    assert_one_line(err, says)
    assert snapshot(".") == before


def test_bad_arguments_set_the_exit_code_of_the_process(tmp_path):
    done = spawn("preprocess", "frame.png", "-o", "out", "--scale", "zero", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert_one_line(done.stderr, "zero", "s2dq preprocess --help")


def test_version_and_help(run):
    assert run("--version") == (0, f"s2dq {s2dq.__version__}\n", "")
    for argv in (["--help"], ["preprocess", "--help"], ["postprocess", "--help"], ["apply", "--help"],
                 ["apply", "space_to_depth", "-h"]):
        code, out, err = run(*argv)
        assert (code, err) == (0, "")
        assert out.startswith("usage: s2dq")
    code, out, _ = run("preprocess", "--help")
    for option in ("--size", "--block-size", "--mode", "--data-format", "--vect", "--rescale", "--mean", "--std",
                   "--scale", "--zero-point", "--dtype", "--pad-value", "--reverse-channels", "--preview"):
        assert f"\n  {option}" in out
    assert "examples:\n  s2dq preprocess" in out


def test_info_prints_the_configuration(tmp_path):
    done = spawn("info", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert len(lines) > 3 and all(": " in line for line in lines)
    assert s2dq.__version__ in done.stdout and np.__version__ in done.stdout


def test_the_installed_command_is_main():
    from importlib.metadata import entry_points

    (script,) = entry_points(group="console_scripts", name="s2dq")
    assert script.load() is main


def test_pillow_and_tqdm_are_imported_only_where_they_are_used(tmp_path):
    np.save(tmp_path / "in.npy", labels(1, 4, 4, 3))
    program = (
        "import sys; sys.modules.update({'PIL': None, 'tqdm': None}); from s2dq.cli import main; "
        "sys.exit(main(['info']) or main(['apply', 'space_to_depth', 'in.npy', 'out.npy', '--block-size', '2']))"
    )
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, capture_output=True, timeout=180)
    assert np.load(tmp_path / "out.npy").shape == (1, 2, 2, 12)


# ---- streams and signals


@POSIX
@pytest.mark.parametrize("number, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_ends_quietly(tmp_path, number, code):
    save(tmp_path / "first.png", colours())
    os.mkfifo(tmp_path / "second.png")
    command = [sys.executable, "-m", "s2dq", "preprocess", "first.png", "second.png", "-o", "out"]
    # Whoever runs the tests in the background may have left the signal ignored, and children inherit that.
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))
    try:
        with open(tmp_path / "second.png", "wb"):  # returns when the command has opened it to read
            process.send_signal(number)
            out, err = process.communicate(timeout=180)
    finally:
        process.kill()
    assert (process.returncode, err) == (code, "")
    assert "first.npy" in out
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["first.json", "first.npy"]


@POSIX
@pytest.mark.parametrize("argv", ["preprocess frame.png -o out", "apply space_to_depth in.npy out.npy --block-size 2"])
def test_sigterm_leaves_no_half_file(tmp_path, argv):
    save(tmp_path / "frame.png", colours())
    np.save(tmp_path / "in.npy", labels(1, 4, 4, 3))
    (tmp_path / "out").mkdir()
    before = snapshot(tmp_path)
    program = (
        "import signal, sys, numpy\n"
        "from s2dq.cli import main\n"
        "def half(file, array, **_):\n"
        "    file.write(b'half')\n"
        "    signal.raise_signal(signal.SIGTERM)\n"
        "numpy.save = half\n"
        "signal.signal(signal.SIGTERM, signal.SIG_DFL)\n"
        f"code = main({argv.split()!r})\n"
        "assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL\n"
        "sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False,
                          timeout=180)  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (143, "", "")
    assert snapshot(tmp_path) == before


@pytest.mark.thread_unsafe(reason="signals are of the process, and of its main thread")
def test_sigterm_is_left_to_whoever_handles_it(run):
    """A program that calls main, or a thread of it."""
    seen = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: seen.append(number))
    try:
        with cli.sigterm_raised():
            signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert seen == [signal.SIGTERM]
    codes = []
    thread = threading.Thread(target=lambda: codes.append(main(["info"])))
    thread.start()
    thread.join()
    assert codes == [0]


@POSIX
def test_a_reader_that_went_away_is_no_error_message(tmp_path):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as stdout:
        done = spawn("info", cwd=tmp_path, stdout=stdout)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_full_disk_under_stdout_is_one_line(tmp_path):
    with open("/dev/full", "w") as stdout:
        done = spawn("info", cwd=tmp_path, stdout=stdout)
    assert done.returncode == 1
    assert_one_line(done.stderr, "No space left")


@pytest.mark.skipif(sys.platform != "linux", reason="file names are bytes on Linux only")
def test_file_names_may_hold_anything(tmp_path):
    names = [b"caf\xe9.png", "\u96ea\n.png".encode(), b"bad\n\xff.png"]
    for name in names[:2]:
        save(os.fsdecode(os.fsencode(tmp_path) + b"/" + name), colours(), format="PNG")
    done = spawn("preprocess", *map(os.fsdecode, names), "-o", "out", cwd=tmp_path, encoding="ascii",
                 env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 1
    assert_one_line(done.stderr, "bad ")
    assert len(os.listdir(tmp_path / "out")) == 4
    assert json.loads((tmp_path / "out" / os.fsdecode(b"caf\xe9.json")).read_text())["source"] == os.fsdecode(names[0])


def test_output_folder_that_is_a_file(run):
    save("frame.png", colours())
    Path("out").write_text("something else")
    code, out, err = run("preprocess", "frame.png", "-o", "out")
    assert (code, out) == (1, "") and Path("out").read_text() == "something else"
    assert_one_line(err, "-o out is not a directory")


def test_float_tensors_do_not_saturate(run):
    """No warning without a scale: nothing is cut off."""
    save("frame.png", colours())
    code, _, err = run("preprocess", "frame.png", "-o", "out", "--dtype", "float32")
    assert (code, err) == (0, "")
    expected = s2dq.Preprocessor(dtype="float32")(colours()[None])
    np.testing.assert_array_equal(np.load("out/frame.npy"), expected, strict=True)


def test_bench_whose_own_process_cannot_begin(run, monkeypatch):
    from s2dq.bench import runner

    def run_nothing(*arguments, **keywords):
        raise runner.WorkerError("the process ended with 1: no numpy")

    monkeypatch.setattr(runner, "run", run_nothing)
    code, out, err = run("bench", "--quick")
    assert (code, out) == (1, "")
    assert_one_line(err, "the process ended with 1: no numpy")


def test_bench_shows_its_steps_where_somebody_is_watching(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    cli.show_step("numpy: 1 of 2, tiny")
    cli.show_step("")
    assert sys.stderr.getvalue() == "\r\x1b[Knumpy: 1 of 2, tiny\r\x1b[K"
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    cli.show_step("numpy: 1 of 2, tiny")
    assert sys.stderr.getvalue() == ""

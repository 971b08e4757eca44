"""The `s2dq` command: photographs to int8 model inputs and back, every operator on .npy files, and how fast it all is.

Top to bottom: main, the commands (preprocess, postprocess, apply, info, bench), what they share (files, messages),
the values of options, the parser. Pillow and tqdm are imported where they are used: `apply` and `info` need neither.

Exit codes: 0 done; 1 a file could not be read, processed or written, or `bench --fail` has seen a loss;
2 bad arguments; 130 interrupted; 141 nobody reads the output any more; 143 ended by SIGTERM.
"""

import argparse
import contextlib
import inspect
import json
import math
import os
import secrets
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, TypeAlias

import numpy as np

import s2dq
from s2dq._layout import LAYOUTS, MODES
from s2dq.models import read_input

FAILED, BAD_ARGUMENTS, INTERRUPTED, BROKEN_PIPE, TERMINATED = 1, 2, 130, 141, 143
INTEGERS = ("int8", "uint8")  # quantized: they have a scale
PICTURE_OPTIONS = ("mean", "std", "rescale", "data_format", "block_size", "mode", "vect", "reverse_channels")
PREVIEW = ".preview.png"
MAX_PIXELS = 2**28  # of --size: a mistyped one is not to eat the memory

Image: TypeAlias = Any  # of Pillow, which is not there before it is needed
Pixels: TypeAlias = tuple[int, int]  # height, width
Job: TypeAlias = tuple[str, str]  # an image, and the path of its results without suffix
Done: TypeAlias = Generator[tuple[int, Any], None, None]  # numbers of jobs, and what came of them
Work: TypeAlias = Callable[..., tuple[str, ...] | str]


class CommandError(Exception):
    """A message for the user and the exit code that goes with it."""

    def __init__(self, message: object, code: int = BAD_ARGUMENTS) -> None:
        super().__init__(message)
        self.code = code


class Terminated(KeyboardInterrupt):
    """SIGTERM has come: a command ends as Ctrl-C ends it, with nothing half written and no worker left."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    try:
        with sigterm_raised():
            return run(argv)
    except CommandError as error:
        complain(error)
        return error.code
    except Terminated:
        return TERMINATED
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        drop_broken_stdout()
        return BROKEN_PIPE
    except (OSError, MemoryError) as error:
        drop_broken_stdout()
        complain(str(error) or type(error).__name__)
        return FAILED


@contextlib.contextmanager
def sigterm_raised() -> Iterator[None]:
    """Raise Terminated at SIGTERM, where nobody has said what else it does; only a main thread can."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def terminate(number: int, frame: Any) -> NoReturn:
    raise Terminated


def run(argv: Sequence[str] | None) -> int:
    try:
        args = build_parser().parse_args(argv)
        with np.errstate(all="ignore"):  # absurd but legal --scale values overflow: no warnings
            code: int = args.run(args)
    except SystemExit:  # argparse has printed the help or the version
        code = 0
    if sys.stdout is not None:
        sys.stdout.flush()  # here, where a full disk or a closed pipe can still be reported
    return code


# ---- s2dq preprocess


def preprocess(args: argparse.Namespace) -> int:
    """Write a model input and its description for every image; go on past those that fail."""
    require_pillow()
    model = read_model(args)
    parameters = preprocessor_parameters(args)
    with bad_arguments():
        pre = s2dq.Preprocessor(**parameters, num_threads=threads_of_each(args))
    warn_of_saturation(parameters)
    images, empty = images_of(args.images)
    for folder in empty:
        complain(f"no images in {folder}" + " (subfolders are not searched)" * has_folders(folder))
    if not images:
        return FAILED
    jobs = plan_outputs(images, args.output, args.preview)
    try:
        os.makedirs(args.output, exist_ok=True)
    except FileExistsError:
        raise CommandError(f"-o {args.output} is not a directory", FAILED) from None

    mark = secrets.token_hex(8)
    work = partial(attempt, pre=pre, parameters=parameters, model=model, preview=args.preview, mark=mark)
    outcomes = {}
    try:
        with contextlib.closing(start_work(work, jobs, args)) as done:
            for number, outcome in progress(done, len(jobs)):
                outcomes[number] = outcome
    finally:  # an interrupted run, too, says what it has done
        remove_half_files(args.output, mark)
        rows, failures = [("file", "shape", "dtype", "time")], []
        for number in sorted(outcomes):  # that of the images, whoever was first
            outcome = outcomes[number]
            if isinstance(outcome, tuple):
                rows.append(outcome)
            else:
                failures.append(f"{jobs[number][0]}: {outcome}")
        for failure in failures:
            complain(failure)
        print_table(rows)
    return FAILED if failures or empty else 0


def threads_of_each(args: argparse.Namespace) -> int | None:
    """Threads of one image: a worker has the one it is."""
    num_threads: int | None = args.num_threads
    if args.workers is None and args.scheduler is None:
        return num_threads
    if num_threads is not None:
        raise CommandError("--num-threads is for one process: workers have one thread each")
    return 1


def start_work(work: Work, jobs: list[Job], args: argparse.Namespace) -> Done:
    """An iterator that does `jobs` here, in processes or on a cluster: (number, row or failure), as they are done."""
    if args.workers is not None:
        from s2dq._workers import in_processes

        return in_processes(work, jobs, args.workers)
    if args.scheduler is None:
        return ((number, work(job)) for number, job in enumerate(jobs))
    # Workers elsewhere have another working directory.
    return on_scheduler(partial(work, folder=os.getcwd()), jobs, args.scheduler)


def on_scheduler(work: Work, jobs: list[Job], address: str) -> Done:
    """As `on_cluster`, with one line for what is wrong with `address`."""
    from s2dq._workers import on_cluster

    try:
        yield from on_cluster(work, jobs, address)
    except ImportError:
        raise CommandError('--scheduler needs Dask: pip install "s2dq[dask]"', FAILED) from None
    except (OSError, ValueError, TypeError) as error:  # TypeError: tls:// without certificates
        raise CommandError(f"--scheduler {address}: {describe(error)}", FAILED) from error


def attempt(
    job: Job, pre: s2dq.Preprocessor, parameters: dict[str, Any], model: dict[str, Any], preview: bool, mark: str,
    folder: str = "",
) -> tuple[str, ...] | str:  # fmt: skip
    """The row of one image, or what went wrong with it. Runs in workers, too."""
    image, base = job
    start = time.perf_counter()
    try:
        with np.errstate(all="ignore"):
            tensor = preprocess_image(image, base, pre, parameters, model, preview, mark, folder)
    except (OSError, TypeError, ValueError, OverflowError, MemoryError) as error:
        return describe(error)  # an exception may not survive the way back from a worker
    elapsed = f"{(time.perf_counter() - start) * 1000:.1f} ms"
    return base + ".npy", str(tensor.shape), str(tensor.dtype), elapsed


def preprocess_image(
    path: str, base: str, pre: s2dq.Preprocessor, parameters: dict[str, Any], model: dict[str, Any], preview: bool,
    mark: str, folder: str = "",
) -> np.ndarray:  # fmt: skip
    """Read, resize, preprocess and write one image; returns the model input. `folder` is where paths begin."""
    base = os.path.join(folder, base)
    image = read_rgb(os.path.join(folder, path), background=rgb_background(parameters))
    resized = letterbox_resize(image, parameters["size"])
    tensor = pre(np.asarray(resized))
    top, left = pre.geometry(resized.height, resized.width)
    recipe = {
        "s2dq": s2dq.__version__,
        "source": os.fspath(path),
        "source_size": {"width": image.width, "height": image.height},
        "resized_size": {"width": resized.width, "height": resized.height},
        "resample": "bilinear" if resized.size != image.size else None,
        "letterbox": {
            "ratio_x": resized.width / image.width,
            "ratio_y": resized.height / image.height,
            "left": left,
            "top": top,
            "x_source": "(x_model - left) / ratio_x",
            "y_source": "(y_model - top) / ratio_y",
            "unit": "pixels: of the letterboxed frame (before space_to_depth), of the upright source",
        },
        **model,
        "preprocessor": parameters,
        "shape": tensor.shape,
        "dtype": str(tensor.dtype),
    }
    write_atomically(base + ".npy", lambda file: np.save(file, tensor, allow_pickle=False), mark)
    if preview:
        picture = undo(tensor, parameters)
        write_atomically(base + PREVIEW, lambda file: picture.save(file, format="PNG"), mark)
    # Written last: where there is a new description, what it describes is there.
    text = json.dumps(recipe, indent=2) + "\n"
    write_atomically(base + ".json", lambda file: file.write(text.encode()), mark)
    return tensor


def read_model(args: argparse.Namespace) -> dict[str, Any]:
    """Fill in what the file of --model tells and no option contradicts; returns what to say of it."""
    if args.model is None:
        if args.model_input is not None:
            raise CommandError("--model-input needs --model")
        return {}
    try:
        with bad_arguments():
            model = read_input(args.model, args.model_input)
    except OSError as error:
        raise CommandError(f"{args.model}: {describe(error)}", FAILED) from error
    except ImportError as error:
        raise CommandError(error, FAILED) from error
    with bad_arguments():
        if args.dtype == model.input_dtype:  # the input itself, not what the model quantizes it to
            model = model.unquantized()
        told = model.keywords(args.block_size, channels=3, data_format=args.data_format)
    block = told.pop("block_size")
    if model.scale is None and model.dtype in INTEGERS:
        del told["scale"], told["zero_point"]
        if args.scale is None:
            raise CommandError(f"{args.model} does not tell the scale of its {model.dtype} input: --scale must")
    for name, value in told.items():
        given = getattr(args, name)
        if given is not None and not same_number(given, value):
            option = "--" + name.replace("_", "-")
            raise CommandError(f"{option} {shown(given)} contradicts {args.model}, "
                               f"whose input {model.name} has {shown(value)}")
        setattr(args, name, value)
    if args.size is None:
        raise CommandError(f"{args.model} leaves the size of its input open: --size must tell it")
    extents = dict(zip(args.data_format, model.shape))  # one of the two may be fixed all the same
    for axis, pixels, b in zip("HW", args.size, block):
        if extents[axis] not in (None, pixels / b):
            raise CommandError(f"--size {shown(args.size)} contradicts {args.model}, "
                               f"whose input {model.name} has {axis} {extents[axis] * b}")
    if math.prod(args.size) > MAX_PIXELS:
        raise CommandError(f"{args.model} takes {shown(args.size)} pixels, more than {MAX_PIXELS}")
    if model.shape[0] not in (None, 1):
        complain(f"{args.model} takes batches of {model.shape[0]}, each file holds a batch of one", kind="warning")
    return {"model": {"file": os.fspath(args.model), "input": model.name, "tensor": model.tensor}}


def same_number(given: Any, told: Any) -> bool:
    """Equal, numbers with a fraction as the float32 that models store."""
    if isinstance(given, float) and isinstance(told, float):
        return bool(np.float32(given) == np.float32(told))
    return bool(given == told)


def shown(value: Any) -> str:
    """The value of an option as it is written."""
    return f"{value[1]}x{value[0]}" if isinstance(value, tuple) else "none" if value is None else f"{value}"


def preprocessor_parameters(args: argparse.Namespace) -> dict[str, Any]:
    """Keywords of s2dq.Preprocessor: all that shape the result, so that the description is complete."""
    args.dtype = args.dtype or "int8"
    args.data_format = args.data_format or "NHWC"
    names = ("dtype", *PICTURE_OPTIONS, "size", "pad_value")
    return quantization(args, args.dtype) | {name: getattr(args, name) for name in names}


def quantization(args: argparse.Namespace, dtype: str) -> dict[str, Any]:
    """Scale and zero point; without --scale those that keep every grey level of a model that takes 0..1."""
    scale, zero_point = args.scale, args.zero_point
    if scale is None and dtype in INTEGERS:
        if args.mean is not None or args.std is not None or args.rescale != 1 / 255:
            raise CommandError("--mean, --std and --rescale need --scale: its default is for values of 0..1")
        scale = 1 / 255
        zero_point = int(np.iinfo(dtype).min) if zero_point is None else zero_point
    return {"scale": scale, "zero_point": zero_point or 0}


def warn_of_saturation(parameters: dict[str, Any]) -> None:
    """Say so when scale and zero point cut grey levels off: most often one of the two is missing."""
    if parameters["dtype"] not in INTEGERS:
        return
    grey = np.arange(256.0)[:, None] * parameters["rescale"]
    values = (grey - (parameters["mean"] or 0.0)) / (parameters["std"] or 1.0)
    levels = values / parameters["scale"] + parameters["zero_point"]
    limits = np.iinfo(parameters["dtype"])
    cut = np.any((levels < limits.min - 0.5) | (levels > limits.max + 0.5), axis=1).sum()
    if cut:
        text = "{} of 256 grey levels saturate in {dtype} with scale {scale:.6g} and zero point {zero_point}"
        complain(text.format(cut, **parameters), kind="warning")


def images_of(paths: list[str]) -> tuple[list[str], list[str]]:
    """Files as they are, and of a folder those whose names say that Pillow reads them, in order of their names.

    Previews of an earlier run are none of a folder's images. Also the folders without any.
    """
    from PIL import Image

    readable = {suffix for suffix, kind in Image.registered_extensions().items() if kind in Image.OPEN}
    images, empty = [], []
    for path in paths:
        if not os.path.isdir(path):
            images.append(path)
            continue
        names = set(os.listdir(path))
        found = sorted(name for name in names if os.path.splitext(name)[1].lower() in readable)
        found = [os.path.join(path, name) for name in found if not is_preview(name, names)]
        images += found
        if not found:
            empty.append(path)
    return images, empty


def is_preview(name: str, names: set[str]) -> bool:
    """Whether preprocess has written a file of this name: beside its other two."""
    base = name.removesuffix(PREVIEW)
    return base != name and {base + ".npy", base + ".json"} <= names


def has_folders(folder: str) -> bool:
    with os.scandir(folder) as entries:
        return any(entry.is_dir() for entry in entries)


def plan_outputs(images: list[str], directory: str, preview: bool) -> list[Job]:
    """Pairs of image and output path without suffix; refuses clashes before anything is written."""
    suffixes = [".npy", ".json"] + [PREVIEW] * preview
    jobs = [(image, os.path.join(directory, Path(image).stem)) for image in images]
    inputs = {os.path.normcase(os.path.realpath(image)) for image in images}
    writers: dict[str, str] = {}
    for image, base in jobs:
        for suffix in suffixes:
            target = os.path.normcase(os.path.realpath(base + suffix))
            if target in writers:
                raise CommandError(f"{writers[target]} and {image} would both write {base}{suffix}")
            if target in inputs:
                raise CommandError(f"{image} would overwrite the input {base}{suffix}")
            writers[target] = image
    return jobs


def progress(done: Done, total: int) -> Done:
    """`done` behind a progress bar, where there are several jobs and somebody is watching."""
    if total > 1 and sys.stderr is not None and sys.stderr.isatty():
        with contextlib.suppress(ImportError):
            from tqdm import tqdm

            watched: Done = tqdm(done, total=total, unit="image", leave=False)
            return watched
    return done


# ---- s2dq postprocess


def postprocess(args: argparse.Namespace) -> int:
    """Write the pictures that a model's output stands for."""
    require_pillow()
    tensor = load_npy(args.tensor)
    dtype = str(tensor.dtype)
    parameters = quantization(args, dtype) | {name: getattr(args, name) for name in PICTURE_OPTIONS}
    parameters |= channels_told(args, tensor.shape)
    with bad_arguments():
        frames = s2dq.Postprocessor(**parameters, dtype=dtype, num_threads=args.num_threads)(tensor)
        pictures = [picture_of(frame, args.crop, args.size) for frame in frames]
    if not pictures:
        raise CommandError(f"{args.tensor} holds a batch of none", FAILED)
    file_format = picture_format(args.output)
    rows = [("file", "size", "mode")]
    for path, picture in zip(numbered(args.output, len(pictures)), pictures):
        write_atomically(path, partial(write_picture, picture, file_format))
        rows.append((path, f"{picture.width}x{picture.height}", picture.mode))
    print_table(rows)
    return 0


def channels_told(args: argparse.Namespace, shape: tuple[int, ...]) -> dict[str, Any]:
    """The keyword that tells a Postprocessor how many channels words hold, which may have lanes to spare.

    Preprocess writes 3: where these make so many words, it is they. Words of another number are full, or refused.
    """
    if args.data_format != "NCHW_VECT_C":
        if args.channels is not None:
            raise CommandError("--channels is for NCHW_VECT_C: in other layouts there are as many as there are")
        return {}
    if args.channels == 1 and (isinstance(args.mean, list) or isinstance(args.std, list)):
        raise CommandError("--channels 1 contradicts a --mean or --std of three")
    if len(shape) not in (4, 5) or shape[-1] != args.vect:  # which the Postprocessor refuses
        return {}
    channels, words = args.channels or 3, shape[-4]
    deep = channels * (math.prod(args.block_size) if isinstance(args.block_size, list) else args.block_size**2)
    if (words - 1) * args.vect < deep <= words * args.vect:
        return {"pad_value": [0] * channels}  # of which a picture has nothing but the number
    if args.channels is not None:
        raise CommandError(f"{deep} channels, of --channels {channels} and --block-size, do not make {words} words")
    return {}


def picture_of(frame: np.ndarray, crop: Pixels | None, size: Pixels | None) -> Image:
    """A frame (H, W, C) as a picture: the `crop` in its middle, resized to `size`; both (height, width) or None."""
    from PIL import Image

    height, width, channels = frame.shape
    if channels not in (1, 3):
        raise ValueError(f"a picture has 1 or 3 channels, not {channels}: is --block-size right?")
    if crop is not None:
        if crop[0] > height or crop[1] > width:
            raise ValueError(f"--crop {shown(crop)} is larger than the picture, {width}x{height}")
        top, left = (height - crop[0]) // 2, (width - crop[1]) // 2  # as Preprocessor.geometry has it
        frame = frame[top : top + crop[0], left : left + crop[1]]
    if 0 in frame.shape:
        raise ValueError(f"a picture of {frame.shape[1]}x{frame.shape[0]} pixels is none")
    picture = Image.fromarray(frame[..., 0] if channels == 1 else frame)
    if size is None or (picture.height, picture.width) == size:
        return picture
    return picture.resize((size[1], size[0]), Image.Resampling.BILINEAR)


def picture_format(path: str) -> str:
    """The format that Pillow writes to a file of such a name."""
    from PIL import Image

    suffix = os.path.splitext(path)[1].lower()
    found: str | None = Image.registered_extensions().get(suffix)
    if found is None or found not in Image.SAVE:
        raise CommandError(f"-o {path}: Pillow writes no {suffix or 'files without suffix'}; .png will do")
    return found


def write_picture(picture: Image, file_format: str, file: BinaryIO) -> None:
    """Write a picture; what its format has no room for is an OSError, as a full disk is."""
    try:
        picture.save(file, format=file_format)
    except (OSError, MemoryError):
        raise
    except Exception as error:  # encoders meet sizes and modes that they lack with exceptions of every kind
        raise OSError(f"{file_format}: {describe(error)}") from error


def numbered(path: str, count: int) -> list[str]:
    """`path` for one picture, a numbered path for each of several."""
    base, suffix = os.path.splitext(path)
    return [path] if count == 1 else [f"{base}_{i}{suffix}" for i in range(count)]


# ---- images: files to 8-bit RGB, and model inputs back to pictures


def require_pillow() -> None:
    try:
        import PIL.Image  # noqa: F401
    except ImportError:
        raise CommandError('reading images needs Pillow: pip install "s2dq[cli]"', FAILED) from None


def read_rgb(path: str, background: tuple[int, ...]) -> Image:
    """The first frame of an image file, upright, as 8-bit RGB; transparency shows `background`."""
    from PIL import Image, ImageOps

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd metadata, and sizes that Pillow warns of but reads
            with Image.open(path) as image:
                return to_rgb(ImageOps.exif_transpose(image), background)
    except (OSError, ValueError, MemoryError):
        raise
    except Exception as error:  # decoders meet broken files with exceptions of every kind
        raise ValueError(describe(error)) from error


def to_rgb(image: Image, background: tuple[int, ...]) -> Image:
    """8-bit RGB of any mode Pillow decodes. Colour profiles are not applied."""
    from PIL import Image

    if image.mode.startswith("I"):  # I;16 in either byte order, and I, which may hold 16-bit samples, too
        samples = np.asarray(image).astype(np.int64)
        if samples.min() < 0 or samples.max() > 65535:
            raise ValueError("32-bit samples have no known white level: convert the image to 8 or 16 bits")
        # Image.convert would clip at 255. 65535 is 255 * 257; the half of 257 is for rounding.
        key = image.info.get("transparency")  # of 16 bits, too: of the samples that become one level, it alone is clear
        image = Image.fromarray(((samples + 128) // 257).astype(np.uint8))
        if key is not None:
            image.putalpha(Image.fromarray(np.where(samples == key, 0, 255).astype(np.uint8)))
    if image.mode == "F":
        raise ValueError("float samples have no known white level: convert the image to 8 or 16 bits")
    if image.has_transparency_data:
        canvas = Image.new("RGBA", image.size, (*background, 255))
        image = Image.alpha_composite(canvas, image.convert("RGBA"))
    return image.convert("RGB")


def rgb_background(parameters: dict[str, Any]) -> tuple[int, ...]:
    """The colour of the padding as red, green, blue: --pad-value counts in the model's channel order."""
    grey = parameters["pad_value"]
    colour = grey if isinstance(grey, list) else [grey] * 3
    return tuple(reversed(colour)) if parameters["reverse_channels"] else tuple(colour)


def letterbox_resize(image: Image, size: Pixels | None) -> Image:
    """The image at the largest size of its own aspect ratio that fits into `size` (height, width)."""
    if size is None:
        return image
    from PIL import Image

    ratio = min(size[1] / image.width, size[0] / image.height)
    fitted = max(1, round(image.width * ratio)), max(1, round(image.height * ratio))
    return image if fitted == image.size else image.resize(fitted, Image.Resampling.BILINEAR)


def undo(tensor: np.ndarray, parameters: dict[str, Any]) -> Image:
    """The picture that a model input stands for: each step of Preprocessor, backwards."""
    from PIL import Image

    block, data_format = parameters["block_size"], parameters["data_format"]
    deep = 3 * (math.prod(block) if isinstance(block, list) else block**2)
    channels = deep if data_format == "NCHW_VECT_C" else None
    frame = s2dq.depth_to_space(
        tensor, block, data_format, mode=parameters["mode"], out_format="NHWC", channels=channels
    )[0]
    values = (frame.astype(np.float64) - parameters["zero_point"]) * np.float32(parameters["scale"] or 1.0)
    normalised = values * (parameters["std"] or 1.0) + (parameters["mean"] or 0.0)
    grey = np.rint(normalised / parameters["rescale"]).clip(0, 255).astype(np.uint8)
    return Image.fromarray(grey[..., ::-1] if parameters["reverse_channels"] else grey)


# ---- s2dq apply, s2dq info

OPERATORS = tuple(s2dq.operators.__all__)


def apply(args: argparse.Namespace) -> int:
    """Run one operator on a .npy file."""
    given = {name: value for name, value in vars(args).items() if name in OPTIONS}
    x = load_npy(args.source)
    with bad_arguments():
        result = getattr(s2dq, args.operator)(x, **given)
    write_atomically(args.destination, lambda file: np.save(file, result, allow_pickle=False))
    print_table([("file", "shape", "dtype"),
                 (args.source, str(x.shape), str(x.dtype)),
                 (args.destination, str(result.shape), str(result.dtype))])
    return 0


def load_npy(path: str) -> np.ndarray:
    """The array of a .npy file, mapped rather than read (operators take it in place) and never unpickled."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the syntax of a damaged header, and of NumPy for those of Python 2
            return np.lib.format.open_memmap(path, mode="r")
    except Exception as error:  # a header is parsed as Python: what is damaged ends in exceptions of every kind
        raise CommandError(f"{path}: {describe(error)}", FAILED) from error


def info(args: argparse.Namespace) -> int:
    """Print how this build was made and what it uses."""
    s2dq.show_config()
    return 0


# ---- s2dq bench


def bench(args: argparse.Namespace) -> int:
    """Time the named cases against a copy and against the peers that are installed."""
    from s2dq.bench import chart, report, runner, verdict

    for path in (args.json, args.png):  # not after minutes of measuring
        if path is not None:
            if not os.path.isdir(os.path.dirname(os.path.realpath(path))):
                raise CommandError(f"cannot write {path}: no such directory", FAILED)
            refuse_irregular(os.path.realpath(path))
    if args.png is not None:
        with needs_matplotlib():
            chart.require()
    names = runner.choose_cases(quick=args.quick, pattern=args.cases, random=args.random, seed=args.seed)
    if not names:
        raise CommandError(f"no case is called {args.cases}; s2dq bench --list shows the names")
    if args.list:
        print("\n".join(names))
        return 0
    wanted = args.peers if args.peers is not None else [] if args.random else list(PEERS)
    try:
        result = runner.run(names, wanted, threads=args.threads, quick=args.quick, confirm=args.confirm,
                            interpreters=dict(args.python), progress=show_step)
    except runner.WorkerError as error:
        raise CommandError(error, FAILED) from None
    finally:
        show_step("")
    for line in report.lines_of(result):
        print_line(line)
    if args.json is not None:
        text = runner.to_json(result)
        write_atomically(args.json, lambda file: file.write(text.encode()))
    if args.png is not None:
        write_atomically(args.png, lambda file: chart.draw(result, file))
    return FAILED if args.fail and any(map(verdict.fails, result["cases"])) else 0


@contextlib.contextmanager
def needs_matplotlib() -> Iterator[None]:
    try:
        yield
    except ImportError:
        raise CommandError('--png needs Matplotlib: pip install "s2dq[bench]"', FAILED) from None


def show_step(text: str) -> None:
    """What is being done, on one line that is written over, where somebody is watching."""
    if sys.stderr is not None and sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


# ---- files and messages


def write_atomically(path: str, write: Callable[[BinaryIO], object], mark: str = "") -> None:
    """Call `write(file)` on a new file beside `path` and rename it: `path` is never half written.

    `mark` is in the name of the new file, for `remove_half_files`.
    """
    path = os.path.realpath(path)  # a symbolic link stays one
    refuse_irregular(path)
    temporary = os.path.join(os.path.dirname(path), f".s2dq-{mark}{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            write(file)
        os.replace(temporary, path)
    except OSError as error:  # name the file that was asked for
        raise OSError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary)


def remove_half_files(folder: str, mark: str) -> None:
    """Remove what processes that were killed in the middle of writing left of the run that has this mark."""
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            if name.startswith(f".s2dq-{mark}"):
                os.unlink(os.path.join(folder, name))


def refuse_irregular(path: str) -> None:
    """Refuse to write over what is no file: renaming over a device would remove it."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise OSError(f"cannot write {path}: not a regular file")


@contextlib.contextmanager
def bad_arguments() -> Iterator[None]:
    """What the library refuses are the arguments of the command."""
    try:
        yield
    except (TypeError, ValueError, MemoryError) as error:
        raise CommandError(describe(error)) from error


def describe(error: BaseException) -> str:
    """The message of an exception without the file name, or the exception's name if it has none."""
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def complain(message: object, kind: str = "error") -> None:
    """One line on stderr, whatever the message holds."""
    print(f"s2dq: {kind}: {' '.join(str(message).split())}", file=sys.stderr)


def print_table(rows: Sequence[tuple[str, ...]]) -> None:
    """Columns on stdout; what its encoding lacks (file names may hold anything) as escapes."""
    if len(rows) == 1:  # the header alone
        return
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.replace("\n", "\\n").ljust(width) for cell, width in zip(row, widths, strict=True))
        print_line("  ".join(cells).rstrip())


def print_line(line: str) -> None:
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    print(line.encode(encoding, "backslashreplace").decode(encoding))


def drop_broken_stdout() -> None:
    """If stdout is what failed, keep the interpreter from failing once more when it flushes at exit."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError, AttributeError):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


# ---- values of options


def refuse(text: str, wanted: str) -> NoReturn:
    raise argparse.ArgumentTypeError(f"{text!r} is not {wanted}")


def number(text: str) -> float:
    top, slash, bottom = text.partition("/")
    try:
        return float(top) / float(bottom) if slash else float(text)
    except (ValueError, ZeroDivisionError):
        refuse(text, "a number such as 0.0039 or 1/255")


def integers(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")] if text else []
    except ValueError:
        refuse(text, "an integer or a list such as 2,3")


def integer_or_list(text: str) -> int | list[int]:
    values = integers(text)
    return values[0] if len(values) == 1 else values


def pairs(text: str) -> list[list[int]]:
    rows = [integers(part) for part in text.split(";")] if text else []
    if any(len(row) != 2 for row in rows):
        refuse(text, 'pairs such as "1,1;0,0"')
    return rows


def scalar(text: str) -> complex:
    for kind in (int, float, complex):
        with contextlib.suppress(ValueError):
            return kind(text)
    refuse(text, "a number")


def per_channel(text: str) -> Any:
    values = [number(part) for part in text.split(",")]
    return one_or_three(values, text, "one number or three, as in 0.485,0.456,0.406")


def grey_levels(text: str) -> Any:
    values = integers(text)
    in_range = all(0 <= value <= 255 for value in values)
    return one_or_three(values if in_range else [], text, "a grey level of 0..255 or three of them")


def one_or_three(values: list[Any], text: str, wanted: str) -> Any:
    if len(values) not in (1, 3):
        refuse(text, wanted)
    return values if len(values) == 3 else values[0]


def peer_list(text: str) -> list[str]:
    if text in ("all", "none"):
        return list(PEERS) if text == "all" else []
    names = text.split(",")
    if not set(names) <= set(PEERS):
        refuse(text, f"all, none or a list of {', '.join(PEERS)}")
    return names


def peer_interpreter(text: str) -> tuple[str, str]:
    peer, _, path = text.partition("=")
    if peer not in PEERS or not path:
        refuse(text, "PEER=PATH, as in tensorflow=env/bin/python")
    return peer, path


def seed(text: str) -> int:
    if not text.isdecimal():
        refuse(text, "a number of at least 0")
    return int(text)


def count(text: str) -> int:
    if not (text.isdecimal() and int(text)):
        refuse(text, "a number of at least 1")
    return int(text)


def width_x_height(text: str) -> Pixels:
    width, _, height = text.lower().partition("x")
    if not (width.isdecimal() and height.isdecimal() and int(width) and int(height)):
        refuse(text, "WxH in pixels, as in 640x480")
    if int(width) * int(height) > MAX_PIXELS:
        refuse(text, f"a size of at most {MAX_PIXELS} pixels")
    return int(height), int(width)


# ---- the parser

FORMATS = tuple(LAYOUTS)
PEERS = ("numpy", "torch", "tensorflow", "litert", "onnxruntime", "openvino", "jax", "numba", "opencv")
FRAME_FORMATS = ("NHWC", "NCHW", "NCHW_VECT_C")

PREPROCESS_HELP = """\
examples:
  s2dq preprocess photo.jpg -o out --size 640x640 --block-size 2 --preview
  s2dq preprocess photo.jpg -o out --model detector.tflite --mean 0.485,0.456,0.406 --std 0.229,0.224,0.225

Writes out/photo.npy (the model input, a batch of one), out/photo.json (how it was made, with the ratio and
offsets that map boxes back) and with --preview out/photo.preview.png (the input, undone to a picture).
Existing files are replaced. Of a folder all images are taken but such previews; its subfolders are not searched.
The pixel value v of 0..255 becomes
  q = round((v * rescale - mean) / std / scale) + zero_point, saturated.
Images are read upright (EXIF) as 8-bit RGB; transparency shows the colour of the padding; of an animation the
first frame counts; colour profiles are not applied. 16-bit grey is scaled and rounded; of 16-bit colour and of
16-bit grey with an alpha channel Pillow gives the upper 8 bits, and of such colour no colour that stands for nothing.
--model FILE fills in --size, --data-format, --dtype, --scale and --zero-point; an option that contradicts the
file is an error. --mean and --std are not in the file. A model that starts behind a space-to-depth stem needs
--block-size: the picture is that many times larger. Files do not tell the layout: it is NHWC for LiteRT and NCHW
for ONNX, or the other one where only that has the right number of channels. An ONNX model that takes floats and
quantizes them itself gets what its QuantizeLinear would write, or with --dtype float32 the floats.
With --workers or --scheduler (Dask: pip install "s2dq[dask]") images are done side by side, each by one thread; the
files are the same. The image of a worker process that dies is tried once more at the end. A scheduler's workers have
to see the same files under the same absolute paths.
A list that begins with a minus sign needs "=": --mean=-1,0,0"""

POSTPROCESS_HELP = """\
examples:
  s2dq postprocess enhanced.npy -o enhanced.png --block-size 2 --scale 1/255 --zero-point -128
  s2dq postprocess out/photo.npy -o photo.png --block-size 2 --crop 640x480 --size 1280x960

The way back of s2dq preprocess, with the same options: the stored value q becomes the grey level
  v = round(((q - zero_point) * scale * std + mean) / rescale), saturated.
A batch of N becomes IMAGE_0.png, IMAGE_1.png ... Existing files are replaced. --crop and --size undo a letterbox:
they are resized_size and source_size of the description that s2dq preprocess has written.
A list that begins with a minus sign needs "=": --mean=-1,0,0"""

APPLY_HELP = """\
example:
  s2dq apply space_to_depth in.npy out.npy --block-size 2 --data-format NCHW --mode CRD

operators:
  """ + "\n  ".join(OPERATORS) + """

s2dq apply OPERATOR --help lists the options of one. The result has the input's dtype."""

BENCH_HELP = """\
examples:
  s2dq bench --quick
  s2dq bench --cases "*1080p*" --peers numpy,torch --json result.json --png result.png
  s2dq bench --random 300 --seed 7 --fail

Every library runs in a process of its own, held to --threads threads and pinned to as many CPUs; its result is
checked against s2dq.reference bit by bit and then timed in turn with np.copyto of as many bytes as the output has.
Figures are in such copies: out= into an existing array, fresh a new one, k the budget of the case. Lead is the time
of the best peer over that of s2dq; peers that write into an existing array are held against out=, others against
fresh. S2DQ_ISA=portable|avx2|avx512vbmi|neon in the environment picks the instruction set."""

# What `apply` passes on, by the names of the operators' parameters.
OPTIONS: dict[str, dict[str, Any]] = {
    "block_size": {"type": integer_or_list, "metavar": "B",
                   "help": "edge of a block in elements: 2, or one per spatial axis: 2,3"},
    "block_shape": {"type": integers, "metavar": "B,B", "help": "elements, per axis after the batch: 2,2"},
    "paddings": {"type": pairs, "metavar": "P", "help": 'elements, start,end of each axis: "1,1;0,0"'},
    "crops": {"type": pairs, "metavar": "P", "help": 'elements, start,end of each axis: "1,1;0,0"'},
    "pad_value": {"type": scalar, "metavar": "X", "help": "what the padding holds, as stored (default 0)"},
    "data_format": {"choices": FORMATS, "metavar": "F", "help": "layout of the input: " + " ".join(FORMATS)
                    + " (default NHWC; for pack_vect_c and unpack_vect_c, of the unpacked side, NCHW)"},
    "out_format": {"choices": FORMATS, "metavar": "F", "help": "layout of the result (default: unchanged)"},
    "mode": {"choices": MODES, "help": "order of the deep channels (default DCR)"},
    "vect": {"type": int, "metavar": "V", "help": "channels per word of NCHW_VECT_C (default 4)"},
    "channels": {"type": int, "metavar": "C", "help": "channels that a packed input really has"},
    "num_threads": {"type": int, "metavar": "N", "help": "upper limit; the result does not depend on it"},
}


class Parser(argparse.ArgumentParser):
    """A parser with one-line errors and help texts laid out as written."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs, allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter)

    def error(self, message: str) -> NoReturn:
        raise CommandError(f"{message} (see {self.prog} --help)")


def build_parser() -> Parser:
    parser = Parser(prog="s2dq", description="Rearrange tensors, and turn images into int8 model inputs.")
    parser.add_argument("--version", action="version", version=f"s2dq {s2dq.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    add_preprocess(commands.add_parser("preprocess", help="images to model inputs", epilog=PREPROCESS_HELP))
    add_postprocess(commands.add_parser("postprocess", help="model outputs to images", epilog=POSTPROCESS_HELP))
    add_apply(commands.add_parser("apply", help="one operator on a .npy file", epilog=APPLY_HELP))
    commands.add_parser("info", help="version, compiler, instruction set, threads").set_defaults(run=info)
    add_bench(commands.add_parser("bench", help="how fast: against a copy and other libraries", epilog=BENCH_HELP))
    return parser


def add_preprocess(command: argparse.ArgumentParser) -> None:
    command.set_defaults(run=preprocess)
    add = command.add_argument
    add("images", nargs="+", metavar="IMAGE",
        help="files that Pillow reads, and folders of such; subfolders are not searched")
    add("-o", "--output", required=True, metavar="DIR", help="directory of the results, made if need be")
    add("--model", metavar="FILE",
        help="take size, layout, type, scale and zero point from the input of this .tflite or .onnx file")
    add("--model-input", metavar="NAME", help="which of the model's inputs, if it has several")
    add("--size", type=width_x_height, metavar="WxH",
        help="pixels; resize to fit, aspect ratio kept, and pad all round (default: as it is)")
    add("--block-size", type=integer_or_list, default=1, metavar="B",
        help="space_to_depth block in pixels: 2, or height,width: 2,4 (default 1: none)")
    add_normalisation(command)
    add("--data-format", choices=FRAME_FORMATS, help="layout of the result (default NHWC)")
    add("--dtype", choices=(*INTEGERS, "float32", "float16"), help="of the result (default int8)")
    add("--pad-value", type=grey_levels, default=114, metavar="G",
        help="grey level of padding and transparency, 0..255; one, or per channel (default 114)")
    add("--reverse-channels", action="store_true",
        help="the model takes BGR; --mean, --std and --pad-value are then in that order")
    add("--num-threads", **OPTIONS["num_threads"])
    where = command.add_mutually_exclusive_group()
    where.add_argument("--workers", type=count, metavar="N",
        help="share the images out between N processes, of one thread each")
    where.add_argument("--scheduler", metavar="ADDRESS",
        help="share them out between the workers of this Dask scheduler, such as tcp://host:8786")
    add("--preview", action="store_true", help="also write the model input, undone to a picture")


def add_postprocess(command: argparse.ArgumentParser) -> None:
    command.set_defaults(run=postprocess)
    add = command.add_argument
    add("tensor", metavar="TENSOR.npy", help="a model output of int8 or uint8")
    add("-o", "--output", required=True, metavar="IMAGE", help="a file that Pillow writes; its suffix says the format")
    add("--block-size", type=integer_or_list, default=1, metavar="B",
        help="depth_to_space block in pixels: 2, or height,width: 2,4 (default 1: none)")
    add_normalisation(command)
    add("--data-format", choices=FRAME_FORMATS, default="NHWC", help="layout of the tensor (default NHWC)")
    add("--channels", type=int, choices=(1, 3),
        help="of the picture, where words of NCHW_VECT_C may have lanes to spare (default: 3 if these make as many "
             "words, else all lanes)")
    add("--reverse-channels", action="store_true", help="the model gives BGR; --mean and --std are then in that order")
    add("--crop", type=width_x_height, metavar="WxH", help="pixels; keep the middle: what a letterbox was put around")
    add("--size", type=width_x_height, metavar="WxH", help="pixels; resize the picture, after --crop")
    add("--num-threads", **OPTIONS["num_threads"])


def add_normalisation(command: argparse.ArgumentParser) -> None:
    """What images to tensors and tensors to images have in common, and say in the same words."""
    add = command.add_argument
    add("--mode", default="DCR", **OPTIONS["mode"])
    add("--vect", default=4, **OPTIONS["vect"])
    add("--rescale", type=number, default=1 / 255, metavar="R", help="factor on 0..255 (default 1/255)")
    add("--mean", type=per_channel, metavar="M", help="of rescaled values: one, or 0.485,0.456,0.406")
    add("--std", type=per_channel, metavar="S", help="of rescaled values: one, or 0.229,0.224,0.225")
    add("--scale", type=number, metavar="S",
        help="the model's quantization step, 0.0039 or 1/255. Without it: 1/255, with zero point -128 for "
             "int8 and 0 for uint8, which keeps every grey level of 0..1")
    add("--zero-point", type=int, metavar="Z", help="stored value that means 0 (with --scale: default 0)")


def add_apply(command: argparse.ArgumentParser) -> None:
    operators = command.add_subparsers(dest="operator", metavar="OPERATOR", required=True)
    for name in OPERATORS:
        operator = operators.add_parser(name)
        operator.set_defaults(run=apply)
        operator.add_argument("source", metavar="in.npy", help="the array; it is mapped into memory")
        operator.add_argument("destination", metavar="out.npy", help="the result; an old file is replaced")
        for parameter in inspect.signature(getattr(s2dq, name)).parameters.values():
            if parameter.name in OPTIONS:  # not x and out; what is not given keeps its default
                operator.add_argument("--" + parameter.name.replace("_", "-"), dest=parameter.name,
                                      required=parameter.default is parameter.empty,
                                      default=argparse.SUPPRESS, **OPTIONS[parameter.name])


def add_bench(command: argparse.ArgumentParser) -> None:
    command.set_defaults(run=bench)
    add = command.add_argument
    add("--quick", action="store_true", help="21 cases and few samples: less than a minute")
    add("--cases", metavar="PATTERN", help='names, as in "*1080p*" (default: all)')
    add("--random", type=count, default=0, metavar="N", help="cases drawn at random instead, or besides --cases")
    add("--seed", type=seed, default=0, metavar="S", help="of --random (default 0)")
    add("--list", action="store_true", help="print the names of the cases and stop")
    add("--peers", type=peer_list, metavar="LIST",
        help=f"all, none or a list of {', '.join(PEERS)} (default: those installed; none with --random)")
    add("--python", type=peer_interpreter, action="append", default=[], metavar="PEER=PATH",
        help="the interpreter that has this peer, if it is another one")
    add("--threads", type=count, default=1, metavar="N", help="threads of every library (default 1)")
    add("--confirm", action="store_true", help="measure cases that fail again: they fail if they fail twice")
    add("--json", metavar="FILE", help="write the result as JSON")
    add("--png", metavar="FILE", help="draw it as a bar chart")
    add("--fail", action="store_true", help="exit with 1 if a case is over budget or behind a peer")

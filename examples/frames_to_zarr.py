"""A folder of images to one Zarr array of model inputs, chunk by chunk; a run that was killed is taken up again.

    python examples/frames_to_zarr.py FOLDER OUT.zarr [--size 640x640] [--frames 8] [--workers 2]

A chunk of the array holds some frames. When it is written, and only then, a line with its number is added to done.txt
in the store: the next run leaves out the chunks of whole lines and does all others again, whatever their files hold.
The store remembers which files it is made of, with their sizes and times, and how: for anything else it is refused.
That is good for killed processes; what a power cut leaves of files that were just written is up to the disk.
"""

import argparse
import os
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import zarr
from PIL import Image, ImageOps

import s2dq
import s2dq.dask

SUFFIXES = (".bmp", ".jpeg", ".jpg", ".png", ".ppm", ".webp")
GREY = (114, 114, 114)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("store", type=Path)
    parser.add_argument("--size", default="640x640", metavar="WxH", help="pixels of a frame")
    parser.add_argument("--frames", type=int, default=8, help="in one chunk")
    parser.add_argument("--workers", type=int, default=2, help="threads; each does one chunk at a time")
    args = parser.parse_args()
    width, height = map(int, args.size.split("x"))

    files = sorted(path for path in args.folder.iterdir() if path.suffix.lower() in SUFFIXES)
    if not files:
        raise SystemExit(f"no images in {args.folder}")
    pre = s2dq.Preprocessor(scale=1 / 255, zero_point=-128, block_size=2)
    tensor = model_inputs(files, pre, height, width, args.frames)

    store = open_store(args.store, tensor, recipe(files, pre))
    log = args.store / "done.txt"
    done = finished_chunks(log)
    chunks = tensor.to_delayed().ravel()
    todo = [k for k in range(len(chunks)) if k not in done]
    writes = [dask.delayed(write)(chunks[k], store, log, k) for k in todo]
    dask.compute(*writes, scheduler="threads", num_workers=args.workers)
    print(f"{args.store}: {tensor.shape} {tensor.dtype}, {len(done)} chunks were there, {len(todo)} written")


def model_inputs(files, pre, height, width, count):
    """The lazy array (N, H/2, W/2, 12) of all frames, `count` in a chunk."""
    names = da.from_array(np.array([os.fspath(path) for path in files]), chunks=count)
    frames = da.map_blocks(
        read_frames, names, height, width, dtype=np.uint8, meta=np.empty((0, 0, 0, 0), np.uint8),
        new_axis=[1, 2, 3], chunks=(names.chunks[0], (height,), (width,), (3,)),
    )  # fmt: skip
    return s2dq.dask.preprocess(pre, frames)


def read_frames(names, height, width):
    """Images as one array (N, H, W, 3), fitted into the frame, the rest grey."""
    frames = np.empty((len(names), height, width, 3), np.uint8)
    for frame, name in zip(frames, names, strict=True):
        with Image.open(name) as image:
            frame[...] = ImageOps.pad(ImageOps.exif_transpose(image).convert("RGB"), (width, height), color=GREY)
    return frames


def recipe(files, pre):
    """All that the array is made of, to be kept with it."""
    states = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    return {"files": [list(state) for state in states], "preprocessor": repr(pre), "s2dq": s2dq.__version__}


def open_store(path, tensor, attributes):
    """A new Zarr array, or the one of a run before, if it is of the same files and chunks."""
    if not (path / "zarr.json").exists():  # written whole, and before anything else
        return zarr.create_array(path, shape=tensor.shape, chunks=tensor.chunksize, dtype=tensor.dtype,
                                 attributes=attributes)  # fmt: skip
    store = zarr.open_array(path, mode="r+")
    if (store.shape, store.chunks, dict(store.attrs)) != (tensor.shape, tensor.chunksize, attributes):
        raise SystemExit(f"{path} was made of other files, or otherwise: give another store, or remove it")
    return store


def finished_chunks(log):
    """The numbers of the chunks that are done. A line that was cut short is removed: its chunk is done again."""
    text = log.read_text() if log.exists() else ""
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        fresh = log.with_name("done.new")
        fresh.write_text(whole)
        fresh.replace(log)
    return {int(line) for line in whole.split()}


def write(chunk, store, log, number):
    start = number * store.chunks[0]
    store[start : start + len(chunk)] = chunk
    with open(log, "a") as file:  # one short write at the end of the file: threads do not mix their lines
        file.write(f"{number}\n")


if __name__ == "__main__":
    main()

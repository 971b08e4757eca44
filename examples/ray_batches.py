"""Ray Data: frames of a dataset to model inputs with `map_batches`. docs/ray.md explains it.

    python examples/ray_batches.py FOLDER OUT
"""

import sys

import numpy as np

import s2dq


class ToModelInput:
    """Replace the frames of a batch, a dict of arrays, by what a Preprocessor makes of them."""

    def __init__(self, column="image", **keywords):
        self.column = column
        self.pre = s2dq.Preprocessor(**keywords, num_threads=1)  # Ray counts one CPU for each task

    def __call__(self, batch):
        frames = batch[self.column]  # read-only, in Ray's shared memory: it is read in place and never written
        if frames.dtype == object:  # frames of several sizes: an array of arrays
            tensor = np.concatenate([self.pre(frame) for frame in frames] or [self.nothing()])
        else:
            tensor = self.pre(frames)
        return {**batch, self.column: tensor}

    def nothing(self):
        """The result for no frames: of the shape that `size` and RGB frames have, for there is none to tell it."""
        frames = np.zeros((0, 0, 0, 3), np.uint8)
        return self.pre(np.moveaxis(frames, 3, 1) if self.pre.input_format == "NCHW" else frames)


def main(folder, out):
    import ray

    frames = ray.data.read_images(folder, mode="RGB")
    inputs = frames.map_batches(
        ToModelInput, batch_size=16, concurrency=2,
        fn_constructor_kwargs={"scale": 1 / 255, "zero_point": -128, "size": 1024, "block_size": 2},
    )  # fmt: skip
    inputs.write_parquet(out)


if __name__ == "__main__":
    main(*sys.argv[1:])

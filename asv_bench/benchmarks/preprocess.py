"""The main job and its way back, one thread: uint8 frames to an int8 model input in one pass, and frames of it."""

import numpy as np

import s2dq

from .common import _InCopies, cases, numpy_call, ratio_to


class _Prepared(_InCopies):
    """A prepared object called on what `setup` makes, into an output that exists: `job`, `x` and `out`."""

    def call(self):
        self.job(self.x, out=self.out)


class Preprocess(_Prepared):
    """A prepared `Preprocessor` called on frames, into an output that exists."""

    param_names = ("case",)
    params = (tuple(case.name for case in cases.PREPROCESSING),)
    version = "3"
    timeout = 120

    def setup(self, name):
        if not hasattr(s2dq, "Preprocessor"):
            raise NotImplementedError  # a commit without it: asv skips it
        self.case = cases.find(name)
        self.x = cases.make_input(self.case, np.random.default_rng(0))
        self.job = s2dq.Preprocessor(**self.case.arguments, num_threads=1)
        self.out = self.job(self.x)

    def track_ratio_to_numpy(self, name):
        return ratio_to(self.call, numpy_call(self.case, self.x))

    track_ratio_to_numpy.unit = "times"


FLOATS = {  # name: shape and dtype of the frames, arguments
    "planes_640": ((1, 3, 640, 640), np.float32, {"input_format": "NCHW", "scale": 0.02}),
    "planes_224_normalised_batch8": ((8, 3, 224, 224), np.float32, {
        "input_format": "NCHW", "scale": 0.02, "mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}),
    "planes_56_c64_b2": ((1, 64, 56, 56), np.float32, {"input_format": "NCHW", "scale": 0.02, "block_size": 2}),
    "planes_7_c1280": ((1, 1280, 7, 7), np.float32, {"input_format": "NCHW", "scale": 0.02}),
    "pixels_640": ((1, 640, 640, 3), np.float32, {"scale": 0.02}),
    "to_float32_640_normalised": ((1, 640, 640, 3), np.uint8, {
        "dtype": "float32", "mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225), "data_format": "NCHW"}),
}  # fmt: skip


class PreprocessFloats(_Prepared):
    """Frames of floats to int8, and bytes to floats: what is converted on its way."""

    param_names = ("case",)
    params = (tuple(FLOATS),)
    version = "1"

    def setup(self, name):
        if not hasattr(s2dq, "Preprocessor"):
            raise NotImplementedError
        shape, dtype, arguments = FLOATS[name]
        self.x = np.random.default_rng(0).uniform(0, 255, shape).astype(dtype)
        self.job = s2dq.Preprocessor(**arguments, num_threads=1)
        self.out = self.job(self.x)


INVERSE = {  # name: shape of the tensor, arguments
    "camera_640": ((1, 640, 640, 3), {}),
    "camera_640_nchw": ((1, 3, 640, 640), {"data_format": "NCHW"}),
    "camera_640_b2": ((1, 320, 320, 12), {"block_size": 2}),
    # As many means as channels tell spare lanes from them.
    "camera_640_int8x4": ((1, 1, 640, 640, 4), {"data_format": "NCHW_VECT_C", "mean": (0, 0, 0)}),
}


class Postprocess(_Prepared):
    """A prepared `Postprocessor` called on a tensor of int8, into frames that exist."""

    param_names = ("case",)
    params = (tuple(INVERSE),)
    version = "1"

    def setup(self, name):
        if not hasattr(s2dq, "Postprocessor"):
            raise NotImplementedError  # a commit without it: asv skips it
        shape, arguments = INVERSE[name]
        self.x = np.random.default_rng(0).integers(-128, 128, shape, np.int8)
        self.job = s2dq.Postprocessor(scale=1 / 255, zero_point=-128, **arguments, num_threads=1)
        self.out = self.job(self.x)

"""Conversions of values, one thread: the time of a call, and the same in copies of as many bytes."""

import numpy as np

import s2dq

from .common import _InCopies

# A feature map and a frame of a detector, a parameter for all and one per channel.
SHAPES = {"feature_map_56_c64": (1, 56, 56, 64), "frame_640": (1, 640, 640, 3)}
PARAMETERS = {"per tensor": None, "per channel": -1}


class Conversion(_InCopies):
    """A function of quantized tensors, into an output that exists."""

    param_names = ("operator", "shape", "parameters")
    params = (("quantize", "dequantize", "requantize"), tuple(SHAPES), tuple(PARAMETERS))
    version = "1"

    def setup(self, operator, shape, parameters):
        if not hasattr(s2dq, operator):
            raise NotImplementedError  # a commit without it: asv skips it
        x = np.random.default_rng(0).standard_normal(SHAPES[shape], np.float32)
        axis = PARAMETERS[parameters]
        scale, zero_point = 0.05, 3
        if axis is not None:
            scale = np.linspace(0.02, 0.08, x.shape[axis])
            zero_point = np.zeros(x.shape[axis], np.int64)
        q = s2dq.quantize(x, scale, zero_point, axis=axis)
        self.out = np.zeros(x.shape, np.float32 if operator == "dequantize" else np.int8)
        arguments = {
            "quantize": (x, scale, zero_point),
            "dequantize": (q,),
            "requantize": (q, scale * 2, zero_point),
        }[operator]
        more = {"axis": axis} if operator == "quantize" else {}
        self.call = lambda: getattr(s2dq, operator)(*arguments, **more, out=self.out, num_threads=1)
        self.call()


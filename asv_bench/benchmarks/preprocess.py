"""The main job, one thread: uint8 frames to an int8 model input in one pass."""

import numpy as np

import s2dq

from .common import cases, ratio_to_copy


class Preprocess:
    """A prepared `Preprocessor` called on frames, into an output that exists."""

    param_names = ("case",)
    params = (tuple(case.name for case in cases.PREPROCESSING),)
    version = "3"
    timeout = 120

    def setup(self, name):
        if not hasattr(s2dq, "Preprocessor"):
            raise NotImplementedError  # a commit without it: asv skips it
        case = cases.find(name)
        self.frames = cases.make_input(case, np.random.default_rng(0))
        self.pre = s2dq.Preprocessor(**case.arguments, num_threads=1)
        self.out = self.pre(self.frames)

    def call(self):
        self.pre(self.frames, out=self.out)

    def time_call(self, name):
        self.call()

    def track_ratio_to_copy(self, name):
        return ratio_to_copy(self.call, self.out.nbytes)

    track_ratio_to_copy.unit = "copies"

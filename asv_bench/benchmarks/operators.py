"""Every operator and layout, one thread: the time of a call, and the same in copies of as many bytes."""

import numpy as np

import s2dq

from .common import cases, ratio_to_copy


def names(*, small):
    return tuple(case.name for case in cases.CASES if ("small" in case.tags) == small)


class OneCase:
    """`self.x` and `self.out` of the case named by the parameter, every page touched."""

    param_names = ("case",)
    version = "3"
    timeout = 120

    def setup(self, name):
        self.case = cases.find(name)
        if not hasattr(s2dq, self.case.operator):
            raise NotImplementedError  # a commit without the operator: asv skips it
        self.x = cases.make_input(self.case, np.random.default_rng(0))
        self.out = self.case.call(s2dq, self.x)

    def call(self):
        self.case.call(s2dq, self.x, out=self.out, num_threads=1)


class Throughput(OneCase):
    """A call into an output that exists."""

    params = (names(small=False),)

    def time_call(self, name):
        self.call()

    def track_ratio_to_copy(self, name):
        return ratio_to_copy(self.call, self.out.nbytes)

    track_ratio_to_copy.unit = "copies"


class SmallCall(OneCase):
    """Sixty-four elements: what a call costs before it moves anything."""

    params = (names(small=True),)

    def fresh(self):
        self.case.call(s2dq, self.x, num_threads=1)

    def time_call(self, name):
        self.call()

    def time_fresh(self, name):
        self.fresh()

    def track_ratio_to_copy(self, name):
        return ratio_to_copy(self.call, self.out.nbytes)

    def track_fresh_ratio_to_copy(self, name):
        return ratio_to_copy(self.fresh, self.out.nbytes)

    track_ratio_to_copy.unit = track_fresh_ratio_to_copy.unit = "copies"

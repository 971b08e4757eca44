"""Every operator and layout, one thread: the time of a call, and the same in copies of as many bytes."""

import numpy as np

import s2dq

from .common import _InCopies, cases, numpy_call, ratio_to, ratio_to_copy

LINE = 64  # bytes
NUMPY_BYTES = 2 << 20  # in as many cases as have no more: NumPy is slow in the others, and says what it says in these


def names(*, small, most=None):
    """Of cases with so little data that the call is all there is, or of others, with up to `most` bytes."""
    return tuple(
        case.name
        for case in cases.CASES
        if ("small" in case.tags) == small and (most is None or cases.input_nbytes(case) <= most)
    )


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


class Throughput(_InCopies, OneCase):
    """A call into an output that exists."""

    params = (names(small=False),)


class Offsets(_InCopies, OneCase):
    """Into results that begin so many bytes behind a line of the cache: 16 is where NumPy has its large arrays."""

    param_names = ("case", "offset")
    params = (("feature_map_180_c256_to_nchw_f32", "layout_28_c512_nhwc_to_nchw_f32", "camera_640_to_int8x32",
               "layout_56_c64_nchw_to_nhwc_batch32"), (0, 16, 48))  # fmt: skip
    version = "1"

    def setup(self, name, offset):
        super().setup(name)
        room = np.zeros(self.out.nbytes + offset + LINE, np.uint8)
        start = -room.ctypes.data % LINE + offset
        self.out = room[start : start + self.out.nbytes].view(self.out.dtype).reshape(self.out.shape)


class OverNumPy(OneCase):
    """A call into an output that exists, over the fastest that NumPy does for the same result."""

    params = (names(small=False, most=NUMPY_BYTES),)

    def setup(self, name):
        super().setup(name)
        self.numpy = numpy_call(self.case, self.x)

    def track_ratio_to_numpy(self, name):
        return ratio_to(self.call, self.numpy)

    track_ratio_to_numpy.unit = "times"


class SmallCall(_InCopies, OneCase):
    """Sixty-four elements: what a call costs before it moves anything."""

    params = (names(small=True),)

    def fresh(self):
        self.case.call(s2dq, self.x, num_threads=1)

    def time_fresh(self, name):
        self.fresh()

    def track_fresh_ratio_to_copy(self, name):
        return ratio_to_copy(self.fresh, self.out.nbytes)

    track_fresh_ratio_to_copy.unit = "copies"

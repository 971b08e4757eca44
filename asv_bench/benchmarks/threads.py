"""Teams and pauses: what threads gain, and what a call costs whose data or whose threads have cooled down."""

from statistics import median
from time import perf_counter, sleep

import numpy as np

import s2dq

from .common import ratio_to
from .operators import OneCase

# From one MiB to more than caches hold.
NAMES = (
    "camera_640_to_int8x4", "layout_56_c64_nchw_to_nhwc_batch32", "camera_1080p_to_nchw_crd", "satellite_2048_nchw",
)  # fmt: skip
IDLE = 33e-3  # seconds between two frames of a camera
EVICTING = 1 << 26  # bytes, more than caches hold


class Calls(OneCase):
    """A case with any number of threads."""

    version = "1"

    def setup(self, name, *others):
        super().setup(name)

    def call(self, num_threads=None):
        self.case.call(s2dq, self.x, out=self.out, num_threads=num_threads)


class Teams(Calls):
    """Threads that were asked for, call after call."""

    param_names = ("case", "threads")
    params = (NAMES, (2, 4))

    def track_time_over_one_thread(self, name, threads):
        return ratio_to(lambda: self.call(threads), lambda: self.call(1))

    track_time_over_one_thread.unit = "times"


class Pauses(Calls):
    """Nobody asks for threads; between calls there is a pause, or other data goes through the caches."""

    param_names = ("case",)
    params = (NAMES,)

    def setup(self, name):
        super().setup(name)
        self.source, self.target = np.ones(self.out.nbytes, np.uint8), np.zeros(self.out.nbytes, np.uint8)
        self.evicting = np.ones(EVICTING, np.uint8)

    def copy(self):
        np.copyto(self.target, self.source)

    def ratio_after(self, pause):
        """Medians of a call and of a copy, each once after a pause."""
        times = {self.call: [], self.copy: []}
        for _ in range(15):
            for timed, seen in times.items():
                pause()
                start = perf_counter()
                timed()
                seen.append(perf_counter() - start)
        return median(times[self.call]) / median(times[self.copy])

    def track_idle_ratio_to_copy(self, name):
        return self.ratio_after(lambda: sleep(IDLE))

    def track_cold_ratio_to_copy(self, name):
        return self.ratio_after(lambda: self.evicting.sum())

    track_idle_ratio_to_copy.unit = track_cold_ratio_to_copy.unit = "copies"

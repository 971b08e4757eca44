"""What a process pays besides time: the import, the file of the extension, memory beyond input and output."""

import subprocess
import sys
from pathlib import Path
from statistics import median

import s2dq

# The peak of memory in a call that writes into `out`, over what was there before it. The arrays are touched before.
PEAK = """
import numpy as np, s2dq
x, out = np.ones({shape}, np.uint8), np.ones({out}, np.uint8)
def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM"))
small = np.ones({small}, np.uint8)
{call}(small)
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")
before = peak()
{call}(x, out)
print(peak() - before)
"""
CALLS = {  # name: expression of a function of x and out, shapes of x, of out, and of a small x
    "space_to_depth": (
        "lambda x, out=None: s2dq.space_to_depth(x, 2, out=out, num_threads=1)",
        (1, 2048, 2048, 4), (1, 1024, 1024, 16), (1, 4, 4, 4)),
    "space_to_depth to words": (
        "lambda x, out=None: s2dq.space_to_depth(x, 2, out_format='NCHW_VECT_C', out=out, num_threads=1)",
        (1, 2048, 2048, 3), (1, 3, 1024, 1024, 4), (1, 4, 4, 3)),
    "batch_to_space_nd": (
        "lambda x, out=None: s2dq.batch_to_space_nd(x, [2, 2], [[0, 0], [0, 0]], out=out, num_threads=1)",
        (4, 1024, 1024, 4), (1, 2048, 2048, 4), (4, 4, 4, 4)),
    "pack_vect_c": (
        "lambda x, out=None: s2dq.pack_vect_c(x, out=out, num_threads=1)",
        (1, 16, 1024, 1024), (1, 4, 1024, 1024, 4), (1, 16, 4, 4)),
}  # fmt: skip


def python(program):
    return subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout


class Import:
    """In new processes, in turn with NumPy alone."""

    version = "1"
    timeout = 120

    def track_import_over_numpy(self):
        program = "from time import perf_counter as now; start = now(); import {}; print(now() - start)"
        ours, numpy = [], []
        for _ in range(9):
            ours.append(float(python(program.format("s2dq"))))
            numpy.append(float(python(program.format("numpy"))))
        return median(ours) / median(numpy)

    track_import_over_numpy.unit = "times"


class Size:
    version = "1"

    def setup(self):
        try:
            from s2dq import _kernels
        except ImportError:
            raise NotImplementedError from None  # a commit without it: asv skips it
        self.extension = Path(_kernels.__file__)

    def track_extension(self):
        return self.extension.stat().st_size

    def track_package(self):
        """Without what was compiled from Python."""
        folder = Path(s2dq.__file__).parent
        return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")

    track_extension.unit = track_package.unit = "bytes"


class Memory:
    """Hidden temporaries would show here: a copy of the input would be 12 MiB or more."""

    param_names = ("call",)
    params = (tuple(CALLS),)
    version = "1"
    timeout = 120

    def setup(self, name):
        if not Path("/proc/self/clear_refs").exists():
            raise NotImplementedError  # not Linux: asv skips it

    def track_peak_beyond_the_arrays(self, name):
        call, shape, out, small = CALLS[name]
        return int(python(PEAK.format(call=f"({call})", shape=shape, out=out, small=small)))

    track_peak_beyond_the_arrays.unit = "bytes"

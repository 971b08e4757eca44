"""Guards for tests: pages that nobody may touch, and child processes with a deadline.

`Arena` places arrays against PROT_NONE pages, so that one byte read or written past either end kills the process;
tests therefore use it in a child. `run_child` is how tests get one.
"""

import ctypes
import importlib.util
import inspect
import mmap
import os
import platform
import signal
import subprocess
import sys
import textwrap
from contextlib import contextmanager
from math import prod
from pathlib import Path

import numpy as np

POISON = 0xA5
PAGE = mmap.PAGESIZE
_PROT_NONE = 0

# Under AddressSanitizer: it takes terabytes of address space at the start, and holds back memory that was freed.
SANITIZED = "asan" in os.environ.get("LD_PRELOAD", "")
GIL = getattr(sys, "_is_gil_enabled", lambda: True)()
PACKAGE = Path(importlib.util.find_spec("s2dq").origin).parent
# A wheel may bring libraries along, such as a libgomp of its own, which other packages do not take for theirs.
LIBRARIES = list(PACKAGE.parent.glob("s2dq.libs"))
OWN_OPENMP = any(path.name.startswith("libgomp") for folder in LIBRARIES for path in folder.iterdir())

# What this process may use.
CPUS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()

# How many times as long as usual children may take, say in an emulator.
PATIENCE = float(os.environ.get("S2DQ_TEST_PATIENCE", "1"))


def address_space():
    """Bytes of it that this process has taken, on Linux."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * PAGE


class Arena:
    """Memory between two inaccessible pages."""

    def __init__(self, capacity):
        pages = -(-capacity // PAGE)
        self._mapping = mmap.mmap(-1, (pages + 2) * PAGE)
        everything = np.frombuffer(self._mapping, np.uint8)
        self.memory = everything[PAGE:-PAGE]
        libc = ctypes.CDLL(None, use_errno=True)
        for edge in (everything.ctypes.data, everything.ctypes.data + (pages + 1) * PAGE):
            if libc.mprotect(ctypes.c_void_p(edge), ctypes.c_size_t(PAGE), _PROT_NONE):
                raise OSError(ctypes.get_errno(), "mprotect")

    def place(self, shape, dtype, end):
        """Return a poisoned array whose first byte ("low") or last byte ("high") borders an inaccessible page."""
        dtype = np.dtype(dtype)
        size = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
        if size > self.memory.size:
            raise ValueError(f"{size} bytes do not fit into an arena of {self.memory.size}")
        self.memory[...] = POISON
        start = 0 if end == "low" else self.memory.size - size
        return self.memory[start : start + size].view(dtype).reshape(shape)

    def place_steps(self, shape, dtype, steps, end):
        """Return an array of these byte steps, in poisoned memory, whose lowest or highest byte borders a page."""
        dtype = np.dtype(dtype)
        reach = [(extent - 1) * step for extent, step in zip(shape, steps, strict=True)]
        low = sum(step for step in reach if step < 0)
        size = sum(map(abs, reach)) + dtype.itemsize
        if size > self.memory.size:
            raise ValueError(f"{size} bytes do not fit into an arena of {self.memory.size}")
        self.memory[...] = POISON
        start = 0 if end == "low" else self.memory.size - size
        return np.ndarray(shape, dtype, self.memory, start - low, steps)

    def untouched_outside(self, array):
        """True where every byte of the arena that is not part of `array` still holds the poison."""
        start = array.ctypes.data - self.memory.ctypes.data
        outside = np.concatenate([self.memory[:start], self.memory[start + array.nbytes :]])
        return bool((outside == POISON).all())


class Ring:
    """Elements of a dtype, `period` of them mapped `times` times: a *ring* of copies, then a *tail* of its own."""

    def __init__(self, period, times, dtype="int8"):
        dtype = np.dtype(dtype)
        step, readable = period * dtype.itemsize, mmap.PROT_READ | mmap.PROT_WRITE
        map_fixed, map_noreserve = 0x10, 0x4000
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]

        def memory_map(*args):
            address = libc.mmap(*args)
            if address == ctypes.c_void_p(-1).value:
                raise OSError(ctypes.get_errno(), "mmap")
            return address

        start = memory_map(None, step * times, 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | map_noreserve, -1, 0)
        files = [os.memfd_create("ring"), os.memfd_create("tail")]
        for file in files:
            os.ftruncate(file, step)
        for i in range(times):
            memory_map(start + i * step, step, readable, mmap.MAP_SHARED | map_fixed, files[i == times - 1], 0)
        for file in files:
            os.close(file)
        self.all = np.frombuffer((ctypes.c_uint8 * (step * times)).from_address(start), dtype)
        self.ring, self.tail = self.all[:period], self.all[-period:]

    def array(self, *shape):
        assert prod(shape) == self.all.size, shape
        return self.all.reshape(shape)


def usual_delay(measure, limit):
    """The seconds that `measure` gives. Where they are too many it has to be in time twice more: machines halt now and
    then."""
    times = []
    while len(times) < 3 and max(times, default=limit) >= limit:
        times.append(measure())
    return sorted(times)[len(times) // 2]


def run_child(function, *arguments, helpers=(), timeout=120, env=None):
    """Run ``function(*arguments)`` in a fresh interpreter and return what it printed.

    The function and its `helpers` travel as source text: they import what they need, and arguments are literals.
    Thread settings of this environment are not passed on; `env` adds variables. The child leads a process group of
    its own which is killed as a whole at the deadline, because a hung grandchild would keep the pipe open.
    """
    timeout *= PATIENCE
    sources = [textwrap.dedent(inspect.getsource(part)) for part in (*helpers, function)]
    program = "\n\n".join([*sources, f"{function.__name__}(*{arguments!r})\n"])
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OMP_", "GOMP_", "KMP_")) and name != "S2DQ_NUM_THREADS"
    }
    path = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    child = subprocess.Popen(
        # -P: `import s2dq` finds the installed package even when the suite runs from the checkout.
        [sys.executable, "-P", "-X", "faulthandler", "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**inherited, "PYTHONPATH": os.pathsep.join(path), **(env or {})},
        start_new_session=True,
    )
    try:
        output, errors = child.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        output, errors = child.communicate()
        raise AssertionError(
            f"{function.__name__}{arguments} still ran after {timeout} s\n{output}\n{errors}"
        ) from None
    if child.returncode:
        raise AssertionError(
            f"{function.__name__}{arguments} ended with {child.returncode}, env {env}\n{output}\n{errors}"
        )
    return output


def rounding_directions():
    """fesetround's names by their numbers on this machine."""
    if sys.platform != "linux":
        return {}
    machines = {"x86_64": (0x400, 0x800, 0xC00), "aarch64": (0x800000, 0x400000, 0xC00000), "s390x": (3, 2, 1)}
    return dict(zip(("down", "up", "zero"), machines.get(platform.machine(), ())))


FLUSHES = sys.platform == "linux" and platform.machine() == "x86_64"


@contextmanager
def subnormals_are_zero():
    """Within it the thread takes subnormal numbers for 0, and makes none: of x86, where `FLUSHES`."""
    code = {"get": b"\x0f\xae\x1f\xc3", "set": b"\x0f\xae\x17\xc3"}  # stmxcsr (rdi); ldmxcsr (rdi)
    page = mmap.mmap(-1, PAGE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code["get"].ljust(16, b"\xcc") + code["set"])
    base = ctypes.addressof(ctypes.c_char.from_buffer(page))
    get, put = (ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_uint32))(base + at) for at in (0, 16))
    before, changed = ctypes.c_uint32(), ctypes.c_uint32(0x1F80 | 0x8040)
    get(before)
    put(changed)
    try:
        assert np.float32(1e-40) == 0
        yield
    finally:
        put(before)

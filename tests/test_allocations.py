"""What the system refuses: memory, from any allocation of the extension on, which is MemoryError; fork handlers."""

import os
import platform
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from guarded import SANITIZED, run_child

COMPILER = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]
SOURCE = Path(__file__).with_name("failing_malloc.c")


@pytest.fixture(scope="module")
def allocator(tmp_path_factory):
    """A library for LD_PRELOAD whose allocations can be made to fail."""
    if sys.platform != "linux" or platform.libc_ver()[0] != "glibc":
        pytest.skip("needs glibc")
    if not shutil.which(COMPILER):
        pytest.skip("no C compiler")
    library = tmp_path_factory.mktemp("allocator") / "failing_malloc.so"
    subprocess.run([COMPILER, "-O1", "-shared", "-fPIC", str(SOURCE), "-o", str(library), "-ldl"], check=True)
    return str(library)


def fail_each(kind):
    import ctypes
    import itertools

    import numpy as np

    import s2dq
    from prepared import Plan
    from s2dq import operators
    from s2dq.kernels import prepare

    library = ctypes.CDLL(None)
    after, seen = (ctypes.c_long.in_dll(library, name) for name in ("failing_after", "failing_seen"))
    x = np.random.default_rng(1).integers(0, 256, (1, 512, 512, 3), np.uint8)
    words = {"block_size": 2, "out_format": "NCHW_VECT_C"}  # with scratch rows
    right = s2dq.space_to_depth(x, **words)
    out = np.empty_like(right)
    prepared = prepare(s2dq.space_to_depth, x, **words)
    capsule = prepared.__s2dq_plan__
    pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi))
    place = pointer_of(capsule, b"s2dq.plan")
    run = ctypes.PYFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 3, ctypes.c_int)(Plan.from_address(place).run)

    def forget():
        s2dq.operators._space_to_depth.clear()
        operators.program_of.cache_clear()

    def plan():
        return s2dq.space_to_depth(x, **words, num_threads=1, out=out)

    def frames():
        return s2dq.Preprocessor(scale=1 / 255, rescale=1 / 255, zero_point=0, dtype="uint8", block_size=2,
                                 data_format="NCHW_VECT_C")(x, out=out)

    def remembered(num_threads):
        return s2dq.space_to_depth(x, **words, num_threads=num_threads, out=out)

    def fresh():
        return s2dq.space_to_depth(x, **words)

    def alone():
        assert run(place, x.ctypes.data, out.ctypes.data, 1) == 0
        return out

    work = {"plan": plan, "frames": frames, "one thread": lambda: remembered(1), "team": lambda: remembered(2),
            "fresh": fresh, "prepared": alone}[kind]  # fmt: skip
    np.testing.assert_array_equal(work(), right)
    name = "Preprocessor: no memory" if kind == "frames" else "space_to_depth: no memory"
    refused = 0
    for k in itertools.count():
        out.fill(0xA5)
        if kind in ("plan", "frames"):
            forget()
        seen.value, after.value = 0, k
        try:
            result = work()
        except MemoryError as error:
            refused += 1
            told = str(error)
            assert told if kind == "prepared" else told.startswith(name), f"no memory for what? {told}"
            assert kind == "prepared" or "(1, 512, 512, 3)" in told or "(1, 3, 256, 256, 4)" in told, told
            assert (out == 0xA5).all(), "the result was begun"
        else:
            np.testing.assert_array_equal(result, right)
        met, after.value = seen.value, -1
        np.testing.assert_array_equal(work(), right)
        if met <= k:
            break
    print(k, refused)


@pytest.mark.skipif(SANITIZED, reason="a sanitizer has an allocator of its own")
@pytest.mark.parametrize("kind", ["plan", "frames", "one thread", "team", "fresh", "prepared"])
def test_no_allocation_that_fails_is_worse_than_a_memory_error(allocator, kind):
    met, refused = map(int, run_child(fail_each, kind, env={"LD_PRELOAD": allocator}).split())
    assert met > 0 and refused == met


def import_refused():
    try:
        import s2dq
    except ImportError as error:
        print(error)
    else:
        print(s2dq.__name__)


@pytest.mark.skipif(SANITIZED, reason="a sanitizer has an allocator of its own")
@pytest.mark.parametrize(("refused", "told"), [("", "s2dq"), ("1", "s2dq: pthread_atfork refused the fork handlers")])
def test_import_without_fork_handlers(allocator, refused, told):
    """Children of a fork would hang: there is no s2dq without handlers."""
    env = {"LD_PRELOAD": allocator, **({"FAILING_ATFORK": refused} if refused else {})}
    assert run_child(import_refused, env=env).strip() == told

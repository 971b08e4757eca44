"""How many threads a call gets, and what this installation is made of.

A call wants the threads of its ``num_threads`` argument, else of `set_num_threads`, else of the environment variable
``S2DQ_NUM_THREADS``, else OpenMP's current maximum (which ``OMP_NUM_THREADS`` and threadpoolctl act through). It gets
at most OpenMP's maximum, the CPUs that affinity and control group allow, and one thread per task; and one
inside another parallel region, where the system refuses more threads, or in a forked child whose OpenMP runtime could
not be put in order (`_micro/threads.h` has the handlers).

Small tensors never open a parallel region. Where nobody has said how many threads to use, neither do tensors of a few
MiB that come alone: a team that sleeps takes longer to wake than they take to move. Calls in quick succession get one.
"""

import os
import platform
import re
import sys
import warnings
from pathlib import Path
from typing import SupportsIndex

import numpy as np

from s2dq import _kernels
from s2dq._validate import show, thread_count

_LARGEST = 2**31 - 1


def set_num_threads(n: SupportsIndex | None) -> None:
    """Set how many threads calls without ``num_threads`` want, in this process.

    Parameters
    ----------
    n : int or None
        At least 1; more than possible is capped at the call. None goes back to ``S2DQ_NUM_THREADS`` or, without it,
        OpenMP's maximum.

    Raises
    ------
    TypeError
        Not an integer (bools are not).
    ValueError
        Below 1.

    See Also
    --------
    get_num_threads : what a large call gets now

    Examples
    --------
    >>> import s2dq
    >>> s2dq.set_num_threads(1)
    >>> s2dq.get_num_threads()
    1
    >>> s2dq.set_num_threads(None)
    """
    _kernels.set_thread_cap(thread_count("set_num_threads", n) or _from_environment)


def get_num_threads() -> int:
    """Return the number of threads a large call on this thread would get now.

    Returns
    -------
    int
        At least 1.

    See Also
    --------
    set_num_threads : change it

    Examples
    --------
    >>> import s2dq
    >>> s2dq.get_num_threads() >= 1
    True
    """
    return _kernels.get_team_limit()


def show_config() -> None:
    """Print what this installation is made of, one ``name: value`` a line.

    Version, Python, NumPy, platform, compiler, OpenMP, instruction set, thread counts, and the thread pools that
    threadpoolctl sees in the process.

    Examples
    --------
    >>> import s2dq
    >>> s2dq.show_config()  # doctest: +ELLIPSIS
    s2dq: ...
    """
    import threadpoolctl  # used here alone

    import s2dq

    compiler, openmp = _kernels.build_info()
    lines = [
        ("s2dq", s2dq.__version__),
        ("python", f"{platform.python_version()} ({platform.python_implementation()})"),
        ("numpy", np.__version__),
        ("platform", f"{sys.platform} {platform.machine()}"),
        ("compiler", compiler),
        ("openmp", openmp or "none: built to run on one thread"),
        ("instruction set", f"{_kernels.isa()} (of {', '.join(_kernels.available_isas())})"),
        ("threads", get_num_threads()),
        ("cpus of the machine", os.cpu_count()),
        ("cpus allowed by affinity", _affinity()),
        ("cpus allowed by control group", _quota or "no limit"),
    ]
    for pool in threadpoolctl.threadpool_info():
        lines.append(("thread pool", f"{pool['internal_api']} {pool['version'] or ''} x {pool['num_threads']}"))
    for name, value in lines:
        print(f"{name}: {value}")


def _affinity() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _read_environment() -> int:
    """``S2DQ_NUM_THREADS``, or 0 where it is not set or makes no sense."""
    text = os.environ.get("S2DQ_NUM_THREADS")
    if text is None or not text.strip():
        return 0
    # Plain digits only: int() also takes underscores, signs and digits of other scripts.
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit() and digits.strip("0")):
        warnings.warn(f"S2DQ_NUM_THREADS={show(text)} is ignored: not an integer of at least 1", stacklevel=2)
        return 0
    return int(digits) if len(digits) < 10 else _LARGEST  # capped at the call


def _read_stack_size() -> int:
    """Bytes of stack that OpenMP gives its threads, 0 where it takes the system's default."""
    for name in ("OMP_STACKSIZE", "GOMP_STACKSIZE"):
        match = re.fullmatch(r"\s*\+?([0-9]{1,18})\s*([bkmg]?)\s*", os.environ.get(name, ""), re.IGNORECASE | re.ASCII)
        if match:
            number, unit = match.groups()
            size = int(number) << 10 * "bkmg".index(unit.lower() or "k")
            if size < 2**63:  # more is ignored
                return size
    return 0


def _cgroup_quota(root: Path = Path("/sys/fs/cgroup"), process: Path = Path("/proc/self/cgroup")) -> int:
    """CPUs that the control groups of this process grant, rounded up; 0 where there is no limit."""
    limits = []
    try:
        text = process.read_text(errors="surrogateescape")  # groups are named by any bytes
        groups = [line.split(":", 2) for line in text.splitlines()]
    except OSError:
        return 0
    for group in groups:
        if len(group) != 3:
            continue
        _, controllers, path = group
        if controllers == "":  # version 2: one tree for all controllers
            base, parts = root, ["cpu.max"]
        elif "cpu" in controllers.split(","):
            base, parts = root / "cpu", ["cpu.cfs_quota_us", "cpu.cfs_period_us"]
        else:
            continue
        folder = base / path.lstrip("/")
        # A limit on any ancestor holds too; inside a container the tree may start at the mount itself.
        for candidate in (folder, *folder.parents):
            if candidate != base and base not in candidate.parents:
                break
            limits.append(_quota_of([candidate / part for part in parts]))
    granted = [limit for limit in limits if limit]
    return min(granted) if granted else 0


def _quota_of(files: list[Path]) -> int:
    """One group's limit: ``quota period`` in one file or in two; 0 where there is none."""
    try:
        quota, period = " ".join(file.read_text().strip() for file in files).split()
        if quota == "max" or int(quota) <= 0 or int(period) <= 0:
            return 0
        return max(1, -(-int(quota) // int(period)))
    except (OSError, ValueError):
        return 0


_from_environment = _read_environment()
_quota = _cgroup_quota()
_kernels.set_thread_cap(_from_environment)
_kernels.set_quota(_quota)
_kernels.set_stack_size(_read_stack_size())

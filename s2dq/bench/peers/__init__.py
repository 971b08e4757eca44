"""The other systems that can do what the cases ask for, one module each.

A peer's module has

* `PACKAGES`: the distributions whose versions belong to a result;
* `set_up(threads)`: import the library and hold it to so many threads;
* `calls(case, x)`: every natural way to get the result with it, from a contiguous input `x`, as `timing.Call`s. It
  does what may be done beforehand: inputs in the library's own form and memory layout, models built and compiled.
  An empty list says that the library has no way.

Results are compared bit for bit with `s2dq.reference` before anything is timed, and the fastest of a peer's calls
counts, fresh results and results written into an existing array apart.
"""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version

NAMES = ("numpy", "torch", "tensorflow", "litert", "onnxruntime", "openvino", "jax", "numba")


def signed(x):
    """`x`, its 16-bit unsigned integers read as signed ones: some libraries have no others, and bits just move."""
    return x.view("int16") if x.dtype == "uint16" else x


def load(name):
    """The module of a peer; `s2dq` itself is there, too."""
    return import_module(f".{name}", __name__)


def versions(name):
    """`{distribution: version}` of a peer, or None if it is not installed here."""
    try:
        return {package: version(package) for package in load(name).PACKAGES}
    except PackageNotFoundError:
        return None

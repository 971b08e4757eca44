"""The other systems that can do what the cases ask for, one module each.

A peer's module has

* `set_up(threads)`: import the library, which the module does not need to be imported itself, and hold it to so many
  threads;
* `calls(case, x)`: every natural way to get the result with it, from a contiguous input `x`, as `timing.Call`s. It
  does what may be done beforehand: inputs in the library's own form and memory layout, models built and compiled.
  It raises what the library raises for what it does not have.

Results are compared bit for bit with `s2dq.reference` before anything is timed, and the fastest of a peer's calls
counts, fresh results and results written into an existing array apart. A library that writes into memory of its own,
the same at every call, counts as one that writes into an existing array.
"""

from collections.abc import Callable, Iterable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType

import numpy as np

from ..timing import Call

# What has to be installed for a peer, alternatives in order.
DISTRIBUTIONS: dict[str, list[tuple[str, ...]]] = {
    "numpy": [("numpy",)],
    "torch": [("torch",)],
    "tensorflow": [("tensorflow", "tensorflow-cpu", "tensorflow-intel")],
    "litert": [("ai-edge-litert",)],
    "onnxruntime": [("onnxruntime", "onnxruntime-gpu"), ("onnx",)],
    "openvino": [("openvino",)],
    "jax": [("jax",), ("jaxlib",)],
    "numba": [("numba",), ("llvmlite",)],
    "opencv": [("opencv-python", "opencv-python-headless", "opencv-contrib-python", "opencv-contrib-python-headless")],
}
NAMES = tuple(DISTRIBUTIONS)
PREPROCESSING_ALONE = ("opencv",)
REARRANGING_ALONE = ("tensorflow", "litert", "onnxruntime")  # what they have for lookups, OpenVINO has, too


def serves(name: str, operator: str) -> bool:
    """Whether a peer is asked for cases of this operator."""
    return name not in (REARRANGING_ALONE if operator == "preprocess" else PREPROCESSING_ALONE)


def load(name: str) -> ModuleType:
    """The module of a peer; `s2dq` itself is there, too."""
    return import_module(f".{name}", __name__)


def versions(name: str) -> dict[str, str] | None:
    """`{distribution: version}` of a peer, or None if it is not installed here."""
    found = [next(((one, number) for one in alternatives if (number := version_of(one))), None)
             for alternatives in DISTRIBUTIONS[name]]
    return None if None in found else dict(one for one in found if one)


def version_of(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def signed(x: np.ndarray) -> np.ndarray:
    """`x`, its 16-bit unsigned integers read as signed ones: some libraries have no others, and bits just move."""
    return x.view("int16") if x.dtype == "uint16" else x


def those_that_work(*builders: Callable[[], Iterable[Call]]) -> list[Call]:
    """The calls of the builders that do not raise; what the first one raised if all do."""
    found: list[Call] = []
    errors = []
    for build in builders:
        try:
            found += build()
        except Exception as error:  # whatever a library raises for what it does not have
            errors.append(error)
    if not found:
        raise errors[0]
    return found

"""This package: what a user writes, with `out=` and without."""

from typing import Any

import numpy as np

import s2dq

from ..cases import Case
from ..timing import Call, placements

# Arguments that are written without their names.
POSITIONAL = {
    "space_to_depth": ("block_size", "data_format"),
    "depth_to_space": ("block_size", "data_format"),
    "space_to_batch_nd": ("block_shape", "paddings"),
    "batch_to_space_nd": ("block_shape", "crops"),
    "pack_vect_c": ("data_format",),
    "unpack_vect_c": ("data_format",),
}


def set_up(threads: int) -> None:
    s2dq.set_num_threads(threads)


def calls(case: Case, x: Any) -> list[Call]:
    if case.operator == "preprocess":
        pre = s2dq.Preprocessor(**case.arguments)
        return calls_of("pre(x", x, pre(x), {"pre": pre})
    positional = POSITIONAL[case.operator]
    given = ["x", *positional, *(f"{name}={name}" for name in case.arguments if name not in positional)]
    operator, arguments = getattr(s2dq, case.operator), ", ".join(given)
    return calls_of(f"operator({arguments}", x, case.call(s2dq, x), {"operator": operator, **case.arguments})


def calls_of(statement: str, x: np.ndarray, result: np.ndarray, names: dict[str, Any]) -> list[Call]:
    """The statement, which lacks its end, with `out=` and without."""
    placed = [{**names, "x": x, "out": np.empty_like(result)}]
    for _ in range(placements(result.nbytes) - 1):
        again = np.empty_like(x) if x.flags.c_contiguous else x
        again[...] = x
        placed.append({**placed[0], "x": again, "out": np.empty_like(result)})
    return [Call("s2dq", f"{statement}, out=out)", placed, fresh=False),
            Call("s2dq", f"{statement})", placed, fresh=True)]

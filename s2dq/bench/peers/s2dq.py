"""This package: what a user writes, with `out=` and without."""

import numpy as np

import s2dq

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


def set_up(threads):
    s2dq.set_num_threads(threads)


def calls(case, x):
    positional = POSITIONAL[case.operator]
    arguments = ["x", *positional, *(f"{name}={name}" for name in case.arguments if name not in positional)]
    operator, arguments = getattr(s2dq, case.operator), ", ".join(arguments)
    result = case.call(s2dq, x)
    names = [{"operator": operator, **case.arguments, "x": x, "out": np.empty_like(result)}]
    for _ in range(placements(result.nbytes) - 1):
        again = np.empty_like(x) if x.flags.c_contiguous else x
        again[...] = x
        names.append({**names[0], "x": again, "out": np.empty_like(result)})
    return [Call("s2dq", f"operator({arguments}, out=out)", names, fresh=False),
            Call("s2dq", f"operator({arguments})", names, fresh=True)]

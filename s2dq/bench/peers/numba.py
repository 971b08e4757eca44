"""Numba: loops as one writes them by hand, compiled for the case: all extents are constants.

Two nests, one that walks through the result in order and one that walks through the input. Padding is filled first,
what is cropped away is skipped where the index is known.
"""

import numba
import numpy as np

from ..recipe import DIMS, RANK, channels_of, deep_tokens, formats, is_channels_last, spatial_of
from ..timing import Call


def set_up(threads):
    numba.set_num_threads(threads)


def calls(case, x):
    problem = batch_problem(case) if case.operator.endswith("_nd") else depth_problem(case)
    found = []
    for label, order in (("loops over the result", problem["result order"]), ("loops over the input", problem["input order"])):
        function = compile_loops(problem, order)
        out = np.empty(problem["result shape"], x.dtype)
        names = {"function": function, "x": x.reshape(-1), "flat": out.reshape(-1), "out": out,
                 "fill": x.dtype.type(problem["fill"])}
        function(names["x"], names["flat"], names["fill"])
        found.append(Call(label, "function(x.reshape(-1), out.reshape(-1), fill)", [names | {"x": x}], fresh=False))
    return found

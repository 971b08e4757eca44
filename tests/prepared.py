"""Prepared calls for tests: of recorded calls, and what their plan looks like from C."""

import ctypes

import s2dq
from s2dq.kernels import prepare

OBJECTS = {"preprocess": s2dq.Preprocessor, "postprocess": s2dq.Postprocessor}


class Plan(ctypes.Structure):
    """What kernels.pxd declares."""

    _fields_ = [("version", ctypes.c_int), ("oldest", ctypes.c_int), ("run", ctypes.c_void_p),
                ("x_low", ctypes.c_int64), ("x_high", ctypes.c_int64), ("out_bytes", ctypes.c_int64)]  # fmt: skip


def prepared_of(call):
    """The call that `recorded` has, prepared."""
    if call.function in OBJECTS:
        return prepare(OBJECTS[call.function](**call.arguments), call.x)
    return prepare(getattr(s2dq, call.function), call.x, **call.arguments)

"""Calls made ready for Cython: planned here, once, and run by other compiled code with `s2dq/kernels.pxd`."""

from collections.abc import Callable
from typing import Any

from s2dq import _kernels
from s2dq._kernels import PreparedCall
from s2dq._typing import Viewable
from s2dq._validate import UNMADE, preparable
from s2dq.preprocess import Postprocessor, Preprocessor

__all__ = ["PreparedCall", "prepare"]


def prepare(operator: Callable[..., Any], x: Viewable, *args: Any, **kwargs: Any) -> PreparedCall:
    """Check and plan a call, and leave it to Cython code to run it.

    ``prepare(operator, x, ...)`` takes what ``operator(x, ...)`` takes, but for `out`, and moves nothing. What it
    returns holds for all tensors of the same shape, strides and dtype: ``plan_of(prepared)`` of ``s2dq/kernels.pxd``
    gives Cython code the plan, and ``run(plan, x, out, num_threads)`` runs it on two pointers.

    Parameters
    ----------
    operator : function, Preprocessor or Postprocessor
        One of `s2dq.space_to_depth`, `s2dq.depth_to_space`, `s2dq.space_to_batch_nd`, `s2dq.batch_to_space_nd`, their
        other names, `s2dq.pack_vect_c` and `s2dq.unpack_vect_c`; or an object that is called with frames or tensors.
    x : array_like
        A tensor like those to come; only its shape, strides and dtype matter. No elements that hold references. A
        `QuantizedTensor` only for a Postprocessor, which checks its parameters once, here: runs are handed nothing
        but values. For any other operator take its `values`, with a `pad_value` where there is padding.
    *args, **kwargs
        Further arguments of `operator`. A `num_threads` holds for runs that do not say.

    Returns
    -------
    PreparedCall
        Immutable; may be run from many threads at once.

    Raises
    ------
    TypeError
        Another operator, an `x` of objects or ``StringDType``, an `out`, and whatever `operator` refuses so.
    ValueError
        Whatever `operator` refuses so.
    MemoryError
        No memory for the plan.

    See Also
    --------
    PreparedCall : what it tells about the call

    Notes
    -----
    A tensor without memory of its own can be described by an array that nobody touches: ``numpy.empty`` takes no
    memory before it is written, and a view of it has any strides, ``np.empty((height, pitch, 3))[:, :width]``.

    Examples
    --------
    >>> import numpy as np, s2dq
    >>> frame = np.empty((1, 480, 640, 3), np.uint8)
    >>> prepared = s2dq.kernels.prepare(s2dq.space_to_depth, frame, 2, out_format="NCHW_VECT_C")
    >>> prepared.shape, prepared.nbytes
    ((1, 3, 240, 320, 4), 921600)
    >>> prepared.x_low, prepared.x_high
    (0, 921600)
    """
    preparable("prepare", operator, (_kernels.Recall, Preprocessor, Postprocessor), kwargs)
    prepared: PreparedCall = operator(x, *args, out=UNMADE, **kwargs)
    return prepared

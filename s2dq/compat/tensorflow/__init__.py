"""TensorFlow: the depth operators of ``tf.nn``, and space_to_batch and batch_to_space, on arrays.

As in TensorFlow 2; `v1` has the argument orders of TensorFlow 1. `name` names a node of a graph there and nothing here.
Padding holds raw zeros, as TensorFlow's does.
"""

from s2dq.compat.tensorflow import v1
from s2dq.compat.tensorflow._operators import (
    batch_to_space,
    batch_to_space_nd,
    depth_to_space,
    required_space_to_batch_paddings,
    space_to_batch,
    space_to_batch_nd,
    space_to_depth,
)

__all__ = [
    "batch_to_space",
    "batch_to_space_nd",
    "depth_to_space",
    "required_space_to_batch_paddings",
    "space_to_batch",
    "space_to_batch_nd",
    "space_to_depth",
    "v1",
]

"""JAX: jnp.reshape and transpose, and indexing for lookups, compiled by XLA for the CPU."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ..cases import Case
from ..recipe import Lookup, Move, Pad, Reverse, Steps, recipe, slices_to_join, window
from ..timing import Call

if TYPE_CHECKING:  # set_up imports
    import jax
    import jax.numpy as jnp


def set_up(threads: int) -> None:
    """XLA takes the number of threads from the CPUs that the process may use."""
    global jax, jnp
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_platforms", "cpu")


def calls(case: Case, x: Any) -> list[Call]:
    steps, array = recipe(case), jax.device_put(x)
    programs = {"transpose": lambda x: run(steps, x)}
    joined = slices_to_join(case)
    if joined:
        programs["concatenate"] = lambda x: jnp.concatenate([x[index] for index in joined[0]], joined[1])
    found = []
    for label, program in programs.items():
        names = {"program": jax.jit(program).lower(array).compile(), "x": array}
        found.append(Call(label, "program(x).block_until_ready()", [names], fresh=True, to_numpy=np.asarray))
    return found


def run(steps: Steps, x: Any) -> Any:
    for step in steps:
        if isinstance(step, Pad):
            x = jnp.pad(x, step.margins, constant_values=step.value)
        elif isinstance(step, Move):
            x = x.reshape(step.split).transpose(step.order).reshape(step.shape)
        elif isinstance(step, Reverse):
            x = x[step.index]
        elif isinstance(step, Lookup):
            x = look_up(step, x)
        else:
            x = x[window(step, x.shape)]
    return x


def look_up(step: Any, x: Any) -> Any:
    if step.is_flip:
        return jax.lax.bitcast_convert_type(x ^ 128, step.tables.dtype)
    levels = x.astype("int32")
    if len(step.tables) > 1:
        levels += step.offsets(x.ndim, "int32")
    return jnp.asarray(step.tables.ravel()).at[levels].get(mode="promise_in_bounds")

"""What a call may cost: k copies of as many bytes as its output has, and half a microsecond.

| output | k | k for the exceptions |
|---|---|---|
| up to 128 KiB | 1.4 | |
| to 1 MiB | 2.0 | power-of-two pitch 2.3 |
| to 16 MiB | 1.3 | V = 4 to or from NHWC, S2D NHWC to NCHW, NHWC CRD 1.5 |
| | | byte transposes of 16 streams and more 1.7 |
| | | power-of-two pitch: 8 streams 1.5, V = 32 3, NHWC to or from NCHW 5 |
| above | 1.15 | planar from 32 MiB 1.0 |

Where several exceptions hold, the largest k does. The words of the table, as they are taken here:

* *streams*: the rows that must be open at once to read and write in order, as many as the transpose at the core of
  the case has on its narrower side. Four planes into words of four lanes are four streams, a planar block of 8 is
  eight, NHWC to NCHW has one per channel.
* *byte transpose*: single bytes change their neighbours; a case that moves runs of several bytes is none.
* *power-of-two pitch*: four or more streams whose starts are multiples of 4 KiB apart, so that they fall into the
  same cache sets; the table's eight are eight such streams or more.
* *V = 32*: words of 32 lanes on either side. *Planar*: channels before the spatial axes on both sides; for the batch
  operators, nothing but blocked axes.
* *NHWC to or from NCHW* at a power-of-two pitch: 16 streams or more, as fewer are not what costs.
* NHWC and NCHW stand for the layouts of one and three spatial dims, too.

AVX2 has a table of two lines: from 512 KiB 1.6, and 2.0 for V = 32 and byte transposes of 16 streams and more; at a
power-of-two pitch the general exceptions hold where they are larger. Below 512 KiB, and for other instruction sets,
there is no budget, and `budget` returns None.

Preprocessing has a line of its own, for any size: 1.5 copies of its output and a microsecond; 3 copies with AVX2.
"""

from collections.abc import Sequence
from math import prod

import numpy as np

from .cases import Case
from .recipe import Move, formats, is_channels_last, recipe

KIB, MIB = 1 << 10, 1 << 20
OVERHEAD = 0.5e-6  # seconds a call may cost before it moves anything
PREPROCESSING_OVERHEAD = 1e-6
PREPROCESSING = {"avx512vbmi": 1.5, "avx2": 3.0}
BEHIND = 1.05  # this much slower than a peer is slower
SMALL_CALL = 0.8e-6  # a call with 64 elements
FRESH = 1.7  # a fresh result of 128 MiB over the call with out=
MEDIAN_TO_1_MIB = 1.6
MEAN_FROM_1_MIB = 1.2
SIZE_CLASSES = ((128 * KIB, "to 128 KiB"), (MIB, "to 1 MiB"), (16 * MIB, "to 16 MiB"), (None, "above 16 MiB"))


def budget(case: Case, output_nbytes: int, instruction_set: str = "avx512vbmi") -> float | None:
    """Return how many copies a call of `case` may cost, besides its overhead; None where nothing is promised."""
    if case.operator == "preprocess":
        return PREPROCESSING.get(instruction_set)
    if instruction_set == "avx2":
        return avx2_budget(case, output_nbytes)
    if instruction_set != "avx512vbmi":
        return None
    if output_nbytes <= 128 * KIB:
        return 1.4
    if output_nbytes <= MIB:
        return 2.3 if colliding_streams(case) >= 4 else 2.0
    if output_nbytes <= 16 * MIB:
        return max(k for k, holds in exceptions_to_16_mib(case) if holds)
    return 1.0 if is_planar(case) and output_nbytes >= 32 * MIB else 1.15


def overhead(operator: str) -> float:
    """Seconds that a call may cost besides its copies."""
    return PREPROCESSING_OVERHEAD if operator == "preprocess" else OVERHEAD


def avx2_budget(case: Case, output_nbytes: int) -> float | None:
    if output_nbytes < 512 * KIB:
        return None
    k = 2.0 if has_lanes(case, 32) or is_wide_byte_transpose(case) else 1.6
    return max(k, budget(case, output_nbytes) or k) if colliding_streams(case) >= 4 else k


def exceptions_to_16_mib(case: Case) -> tuple[tuple[float, bool], ...]:
    colliding = colliding_streams(case)
    return (
        (1.3, True),
        (1.5, is_word4_nhwc(case) or is_s2d_nhwc_to_nchw(case) or is_nhwc_crd(case)),
        (1.7, is_wide_byte_transpose(case)),
        (1.5, colliding >= 8),
        (3.0, colliding >= 8 and has_lanes(case, 32)),
        (5.0, colliding >= 16 and is_nhwc_nchw(case)),
    )


def size_class(output_nbytes: int) -> str:
    """The name of the table's row."""
    return next(name for largest, name in SIZE_CLASSES if largest is None or output_nbytes <= largest)


# ---- what kind of case it is


def is_planar(case: Case) -> bool:
    if case.operator in ("space_to_batch_nd", "batch_to_space_nd"):
        return prod(case.shape[1 + len(case.arguments["block_shape"]) :]) == 1
    return all(is_channels_first(layout) for layout in formats(case)[:2])


def is_word4_nhwc(case: Case) -> bool:
    """V = 4 to or from NHWC."""
    return has_lanes(case, 4) and is_depth(case) and any(map(is_channels_last, formats(case)[:2]))


def is_s2d_nhwc_to_nchw(case: Case) -> bool:
    if case.operator != "space_to_depth":
        return False
    source, target, _ = formats(case)
    return is_channels_last(source) and is_channels_first(target)


def is_nhwc_crd(case: Case) -> bool:
    return case.arguments.get("mode") == "CRD" and all(map(is_channels_last, formats(case)[:2]))


def is_nhwc_nchw(case: Case) -> bool:
    """From NHWC to NCHW or back."""
    if not is_depth(case):
        return False
    layouts = formats(case)[:2]
    return any(map(is_channels_last, layouts)) and any(map(is_channels_first, layouts))


def has_lanes(case: Case, lanes: int) -> bool:
    """Words of so many lanes on either side."""
    if not is_depth(case):
        return False
    source, target, vect = formats(case)
    return (source == "NCHW_VECT_C" and case.shape[-1] == lanes) or (target == "NCHW_VECT_C" and vect == lanes)


def is_wide_byte_transpose(case: Case) -> bool:
    """Single bytes of 16 streams and more."""
    return any(granule == 1 and count >= 16 for granule, count, _ in streams(case))


def colliding_streams(case: Case) -> int:
    """How many streams start multiples of 4 KiB apart."""
    return max((colliding for *_, colliding in streams(case)), default=1)


def is_depth(case: Case) -> bool:
    return case.operator not in ("space_to_batch_nd", "batch_to_space_nd")


def is_channels_first(layout: str) -> bool:
    return layout in ("NCW", "NCHW", "NCDHW")


def streams(case: Case) -> list[tuple[int, int, int]]:
    """For each transpose in the recipe: (bytes that move together, streams, streams at a power-of-two pitch)."""
    itemsize = np.dtype(case.dtype).itemsize
    return [streams_of(step, itemsize) for step in recipe(case) if isinstance(step, Move)]


def streams_of(move: Move, itemsize: int) -> tuple[int, int, int]:
    split, order = list(move.split), list(move.order)
    granule = itemsize
    if order and order[-1] == len(split) - 1:  # neighbours on both sides
        granule *= split[-1]
        split, order = split[:-1], order[:-1]
    if not split:
        return granule, 1, 1
    # Reading in order scatters over the axes behind the result's last one; writing in order gathers likewise.
    scattered = list(range(order[-1] + 1, len(split)))
    gathered = order[order.index(len(split) - 1) + 1 :]
    if prod(split[axis] for axis in scattered) <= prod(split[axis] for axis in gathered):
        axes, steps = scattered, dict(zip(order, steps_of([split[axis] for axis in order], granule)))
    else:
        axes, steps = gathered, dict(enumerate(steps_of(split, granule)))
    colliding = prod(split[axis] for axis in axes if steps[axis] % (4 * KIB) == 0)
    return granule, prod(split[axis] for axis in axes), colliding


def steps_of(extents: Sequence[int], granule: int) -> list[int]:
    """Bytes from one index to the next of each axis of a contiguous array."""
    return [granule * prod(extents[axis + 1 :]) for axis in range(len(extents))]

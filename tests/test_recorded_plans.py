"""Plans are the recorded ones: `python tests/recorded_plans.py` records what was changed on purpose."""

import numpy as np
import pytest

from drawn_problems import INDICES, drawn_problem
from recorded_plans import (
    MEANS,
    digest,
    plan_of,
    problem_of,
    problems,
    recorded,
    recorded_drawn,
    short_digest,
)
from s2dq import _kernels
from s2dq._plan import Means
from s2dq.bench.cases import IMAGENET


def test_means_are_those_of_the_kernels():
    means = _kernels.tile_means()
    followed = ", followed" if means and Means(*means).follows else ""
    assert MEANS[_kernels.isa() + followed] == means


def test_plans_are_the_recorded_ones():
    entries = recorded()
    others = []
    for name, problem in problems():
        plans = [plan_of(problem, means) for means in MEANS.values()]
        known = entries.pop(name, None)
        if list(map(digest, plans)) != known:
            shown = (f"\n    {isa}: {plan}" for isa, plan in zip(MEANS, plans))
            others.append(f"{name}, recorded as {known}{''.join(shown)}")
        if len(others) == 3:
            break
    assert not others, "planned in another way than recorded:\n" + "\n".join(others)
    assert not entries, "recorded, but not among the calls"


def test_plans_of_drawn_problems_are_the_recorded_ones():
    known = recorded_drawn()
    others = []
    for index, digest_then in zip(INDICES, known, strict=True):
        problem, means = drawn_problem(index)
        plan = plan_of(problem, means)
        if short_digest(plan) != digest_then:
            others.append(f"drawn problem {index}, with {means}:\n    {problem}\n    {str(plan):.2000}")
        if len(others) == 3:
            break
    assert not others, "planned in another way than recorded:\n" + "\n".join(others)


def test_instruction_sets_differ():
    """What the kernels can do is made use of: a plan that ignored it would be the same for all."""
    columns = list(zip(*recorded().values()))
    assert len(set(columns)) == len(MEANS)


WORDS = [  # instruction set, operator, x, arguments, and the plan as it prints
    ("portable", "space_to_batch_nd", (1, 3, 4, 2), {"block_shape": [2, 2], "paddings": [[0, 1], [0, 0]]},
     "[] {X+0->Y+0 2B 2:8>16 2:2>8 2:4>2} | [] {X+16->Y+4 2B 2:2>8 2:4>2} | [] {F+1->Y+20 1B 2:0>8 4:0>1}"),
    ("portable", "pack_vect_c", (1, 6, 2, 3), {},
     "[] {X+0->Y+0 1B 6:1>4 4:6>1} | [] {X+24->Y+24 1B+2 2:6>1 6:1>4}"),
    ("avx512vbmi", "pack_vect_c", (1, 6, 2, 3), {},
     "[] {X+0->Y+0 (1x16B>1x32B)} | [] {X+0->Y+0 (1x32B>1x32B)}"),
    ("avx512vbmi", "space_to_depth", (1, 2048, 4096, 4), {"block_size": 2},
     "[1024:32768>32768] {X+0->Y+0 (4x64B>4x64B!) 128:128>256}"),
    ("avx512vbmi", "space_to_depth", (1, 16, 70, 16), {"block_size": 2, "out_format": "NCHW"},
     "[] {X+0->Y+0 (32x32B>32x32B net) 2:1120>8960 2:1024>32<928,29 8:2240>35}"),
    ("avx512vbmi", "space_to_depth", (1, 1024, 1024, 80), {"block_size": 2},
     "[512:163840>163840 512:160>320] {X+0->Y+0 (6x32B>5x32B) 2:81920>160}"),
    ("avx512vbmi", "space_to_depth", (0, 10, 10, 5), {"block_size": 2}, "nothing"),
    ("portable", "space_to_depth", (1, 4, 4, 3), {"block_size": 2, "out_format": "NCHW_VECT_C", "vect": 32},
     "[] {X+0->T+0 6B 2:24>24 2:6>12 2:12>6 ; T+0->Y+0 12B+20 4:12>32}"),
    ("portable", "preprocess", (1, 8, 8, 3), {"scale": 0.1, "mean": [0, 1, 2]}, "[] {X+0=>Y+0 1B 3:1>1~256 64:3>3}"),
    # Bytes that go through lines are quickest from one register; or in order, or each register through one table.
    ("avx512vbmi", "preprocess", (1, 640, 640, 3), {"block_size": 2, **IMAGENET},
     "[320:3840>3840] {X+0=>Y+0 (2x32B>1x64B) 64:30>60}"),
    ("avx512vbmi", "preprocess", (1, 640, 640, 3), {"data_format": "NCHW_VECT_C", **IMAGENET},
     "[25600:48>64] {X+0=>Y+0 (1x64B>1x64B)}"),
    ("avx512vbmi", "preprocess", (1, 640, 640, 3), {"block_size": 4, **IMAGENET},
     "[160:7680>7680] {X+0=>Y+0 (4x64B>3x64B) 40:48>192}"),
    ("avx512vbmi", "preprocess", (1, 640, 640, 3), IMAGENET, "[6400:192>192] {X+0=>Y+0 (3x64B>3x64B)}"),
    ("avx512vbmi", "preprocess", (1, 640, 640, 3), {"data_format": "NCHW", **IMAGENET},
     "[6400:192>64] {X+0=>Y+0 (3x64B>3x64B)}"),
    ("avx2", "preprocess", (1, 640, 640, 3), {"block_size": 2, **IMAGENET},
     "[320:3840>3840] {X+0=>Y+0 (6x32B>3x64B) 20:96>192}"),
]  # fmt: skip


@pytest.mark.parametrize("isa, operator, shape, arguments, words", WORDS)
def test_plans_in_words(isa, operator, shape, arguments, words):
    """What a developer reads: sources and targets, granules, loops, spare lanes, lookups, tiles and networks."""
    problem = problem_of(operator, np.empty(shape, np.uint8), arguments)
    assert str(plan_of(problem, MEANS[isa])) == words

"""Plans are the recorded ones: `python tests/recorded_plans.py` records what was changed on purpose."""

import pytest

from recorded_plans import MEANS, digest, plan_of, problems, recorded
from s2dq import _kernels


@pytest.fixture(scope="module")
def found():
    return problems()


def test_list_of_calls_is_the_recorded_one(found):
    assert list(found) == list(recorded())


def test_means_are_those_of_the_kernels():
    assert MEANS[_kernels.isa()] == _kernels.tile_means()


@pytest.mark.parametrize("isa", MEANS)
def test_plan_is_the_recorded_one(found, isa):
    place, entries = list(MEANS).index(isa), recorded()
    others = []
    for name, problem in found.items():
        plan = plan_of(problem, MEANS[isa])
        if digest(plan) != entries[name][place]:
            others.append(f"{name}: {plan}")
            if len(others) == 3:
                break
    assert not others, "planned in another way than recorded:\n" + "\n".join(others)


def test_instruction_sets_differ():
    """What the kernels can do is made use of: a plan that ignored it would be the same for all."""
    columns = list(zip(*recorded().values()))
    assert len(set(columns)) == len(MEANS)

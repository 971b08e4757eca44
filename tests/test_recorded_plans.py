"""Plans are the recorded ones: `python tests/recorded_plans.py` records what was changed on purpose."""

from recorded_plans import MEANS, digest, plan_of, problems, recorded
from s2dq import _kernels


def test_means_are_those_of_the_kernels():
    assert MEANS[_kernels.isa()] == _kernels.tile_means()


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


def test_instruction_sets_differ():
    """What the kernels can do is made use of: a plan that ignored it would be the same for all."""
    columns = list(zip(*recorded().values()))
    assert len(set(columns)) == len(MEANS)

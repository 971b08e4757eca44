"""The same bytes everywhere: results that were recorded once, in `digests.json`, hold for every build and machine."""

import sys

import pytest

from guarded import rounding_directions, run_child
from recorded import all_calls, digest, expected, recorded, run
from s2dq import _kernels

CALLS = {call.name: call for call in all_calls()}
RECORDED = recorded()


def test_list_of_calls_is_the_recorded_one():
    assert list(CALLS) == list(RECORDED)
    # Functions of one signature differ in what they do: no two calls may come to the same by accident.
    assert len(set(RECORDED.values())) > 0.7 * len(RECORDED)


@pytest.mark.parametrize("name", CALLS)
def test_result_is_the_recorded_one(name):
    assert digest(run(CALLS[name])) == RECORDED[name]


@pytest.mark.parametrize("name", CALLS)
def test_reference_gives_what_is_recorded(name):
    assert digest(expected(CALLS[name])) == RECORDED[name]


def print_wrong(counts, pretended):
    """On teams of every size in `counts`: what differs from the record, and the teams of large calls."""
    from recorded import all_calls, digest, recorded, run
    from s2dq import _kernels

    right = recorded()
    _kernels.pretend_processors(pretended)
    _kernels.set_quota(0)
    for count in counts:
        teams = set()
        for call in all_calls():
            if digest(run(call, count)) != right[call.name]:
                print("wrong", count, call.name, sep=": ")
            if call.name.endswith(", large"):
                teams.add(_kernels.last_team_size())
        print(_kernels.isa(), count, *sorted(teams), sep=": ")


@pytest.mark.parametrize("isa", _kernels.available_isas())
def test_teams_of_one_to_eight(isa):
    """... on every instruction set, whatever the machine has. The teams are those that ran."""
    env = {"S2DQ_ISA": isa, "OMP_NUM_THREADS": "8", "OMP_DYNAMIC": "false"}
    output = run_child(print_wrong, list(range(1, 9)), 8, env=env, timeout=300)
    teams = [count if _kernels.build_info()[1] else 1 for count in range(1, 9)]
    assert output.splitlines() == [f"{isa}: {count}: {team}" for count, team in enumerate(teams, 1)]


def print_wrong_when_rounding(number):
    """What differs from the record where the calling thread rounds another way, during construction and call."""
    import ctypes

    from recorded import all_calls, digest, recorded, run
    from s2dq import _kernels

    libm = ctypes.CDLL("libm.so.6")
    calls, right = all_calls(), recorded()
    for count in (1, 2):
        for call in calls:
            assert libm.fesetround(number) == 0
            try:
                result = run(call, count)
                kept = libm.fegetround() == number
            finally:
                libm.fesetround(0)
            if digest(result) != right[call.name] or not kept:
                print("wrong", count, call.name, kept, sep=": ")
    print(_kernels.isa(), len(calls))


@pytest.mark.skipif(sys.platform != "linux", reason="needs glibc's fesetround")
@pytest.mark.parametrize("isa", dict.fromkeys((_kernels.isa(), "portable")))
@pytest.mark.parametrize("direction", rounding_directions())
def test_rounding_mode_of_the_caller_does_not_matter(direction, isa):
    output = run_child(print_wrong_when_rounding, rounding_directions()[direction], env={"S2DQ_ISA": isa}, timeout=120)
    assert output.splitlines() == [f"{isa} {len(CALLS)}"]

"""What the door says is what was recorded: `python tests/recorded_answers.py` records what was changed on purpose."""

from recorded_answers import answer, recorded


def test_answers_are_the_recorded_ones():
    others = [(call, now, known) for call, known in recorded() if (now := answer(call)) != known]
    told = (f"{call}\n    {now}\nrecorded:\n    {known}" for call, now, known in others[:3])
    assert not others, f"{len(others)} answers are others:\n" + "\n".join(told)


def test_calls_are_recorded_once():
    calls = [call for call, _ in recorded()]
    assert len(calls) == len(set(calls)) > 500

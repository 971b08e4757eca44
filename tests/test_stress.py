"""The long tests of `tests/stress` in a short form, and proof that their checks can fail."""

import json
import sys
from pathlib import Path

import pytest

from guarded import SANITIZED, run_child

STRESS = Path(__file__).parent / "stress"
linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
plain_memory = pytest.mark.skipif(SANITIZED, reason="a sanitizer holds back memory that was freed")


# ------------------------------------------------------------------------------------------------------ soak


def soak_some_steps(stress, steps, plant):
    """Print what the soak makes of `steps` steps, some of which leak what `plant` says."""
    import json
    import sys
    import threading

    sys.path.insert(0, stress)
    import numpy as np
    import soak

    kept = []

    def leak_memory(source):
        kept.append(np.ones(1 << 20, np.int8))
        return 0

    def leak_a_thread(source):
        kept.append(threading.Thread(target=threading.Event().wait, daemon=True))
        kept[-1].start()
        return 0

    def change_a_byte(source):
        x = np.zeros((1, 4, 4, 1), np.int8)
        result = soak.s2dq.space_to_depth(x, 2)
        result[0, 0, 0, 0] = 1
        assert not soak.calls.differs(result, soak.s2dq.reference.space_to_depth(x, 2)), "other bytes"

    more = {"": (), "memory": (leak_memory,) * 4, "thread": (leak_a_thread,) * 4, "byte": (change_a_byte,)}[plant]
    samples, made, kinds = soak.soak(1, steps=steps, more=more, distinct=40)
    print(json.dumps({"verdict": soak.verdict(samples), "calls": made, "kinds": kinds}))


def soaked(steps, plant=""):
    return json.loads(run_child(soak_some_steps, str(STRESS), steps, plant, timeout=120))


@linux
@plain_memory
def test_soak_stays_flat():
    found = soaked(100)
    assert found["verdict"] == ""
    assert found["calls"] > 500 and all(found["kinds"].values()), found


@linux
@plain_memory
@pytest.mark.parametrize("plant, told", [("memory", "memory grew by"), ("thread", "OS threads grew by")])
def test_soak_finds_a_leak(plant, told):
    assert told in soaked(60, plant)["verdict"]


@linux
def test_soak_finds_a_wrong_byte():
    with pytest.raises(AssertionError, match="other bytes"):
        soaked(200, "byte")

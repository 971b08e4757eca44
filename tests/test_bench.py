"""`s2dq bench`: budgets, recipes, verdicts, processes, reports. Nothing here depends on how fast anything is."""

import importlib.util
import io
import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import s2dq
from s2dq.bench import budget, cases, peers, readme, recipe, report, runner, timing, verdict, worker
from s2dq.cli import main

KIB, MIB = 1 << 10, 1 << 20
ROOT = Path(__file__).parent.parent


def case(operator, shape, dtype="int8", **arguments):
    return cases.Case("made_up", operator, shape, dtype, arguments)


def s2d(shape, block=2, data_format="NHWC", dtype="int8", **arguments):
    return case("space_to_depth", shape, dtype, block_size=block, data_format=data_format, **arguments)


def d2s(shape, block=2, data_format="NHWC", dtype="int8", **arguments):
    return case("depth_to_space", shape, dtype, block_size=block, data_format=data_format, **arguments)


def s2b(shape, block, dtype="int8"):
    return case("space_to_batch_nd", shape, dtype, block_shape=block, paddings=[[0, 0]] * len(block))


def pack(shape, vect=4, data_format="NCHW", dtype="int8"):
    return case("pack_vect_c", shape, dtype, vect=vect, data_format=data_format)


def unpack(shape, data_format="NCHW", dtype="int8"):
    return case("unpack_vect_c", shape, dtype, data_format=data_format)


FRAME = s2d((1, 1080, 1920, 3))

# ---- budgets

BUDGETS = [
    # The rows of the table, at their limits.
    (FRAME, 1, 1.4),
    (FRAME, 128 * KIB, 1.4),
    (FRAME, 128 * KIB + 1, 2.0),
    (FRAME, MIB, 2.0),
    (FRAME, MIB + 1, 1.3),
    (FRAME, 16 * MIB, 1.3),
    (FRAME, 16 * MIB + 1, 1.15),
    (FRAME, 128 * MIB, 1.15),
    # Planar cases: channels first on both sides, or nothing but blocked axes.
    (s2d((1, 3, 640, 640), data_format="NCHW"), 32 * MIB - 1, 1.15),
    (s2d((1, 3, 640, 640), data_format="NCHW"), 32 * MIB, 1.0),
    (d2s((1, 12, 640, 640), data_format="NCHW", out_format="NHWC"), 32 * MIB, 1.15),
    (s2b((1, 8192, 8192, 1), [2, 2]), 64 * MIB, 1.0),
    (s2b((1, 8192, 8192, 3), [2, 2]), 64 * MIB, 1.15),
    # V = 4 to or from NHWC.
    (pack((32, 56, 56, 64), 4, "NHWC"), 6 * MIB, 1.5),
    (unpack((32, 16, 56, 56, 4), "NHWC"), 6 * MIB, 1.5),
    (s2d((1, 640, 640, 3), out_format="NCHW_VECT_C"), 2 * MIB, 1.5),
    (pack((32, 56, 56, 64), 8, "NHWC"), 6 * MIB, 1.3),
    (pack((32, 64, 56, 56), 4, "NCHW"), 6 * MIB, 1.3),
    # S2D from NHWC to NCHW, but not the way back.
    (s2d((1, 1080, 1920, 3), out_format="NCHW"), 6 * MIB, 1.5),
    (s2d((1, 3, 1080, 1920), data_format="NCHW", out_format="NHWC"), 6 * MIB, 1.3),
    # NHWC in CRD order.
    (s2d((32, 56, 56, 64), mode="CRD"), 6 * MIB, 1.5),
    (d2s((1, 540, 960, 12), mode="CRD"), 6 * MIB, 1.5),
    (s2d((32, 64, 56, 56), data_format="NCHW", mode="CRD"), 6 * MIB, 1.3),
    (s2d((32, 56, 56, 64), mode="focus"), 6 * MIB, 1.3),
    # Byte transposes of 16 streams and more: bytes, and 16 of them.
    (pack((32, 64, 56, 56), 16), 6 * MIB, 1.7),
    (pack((32, 64, 56, 56), 8), 6 * MIB, 1.3),
    (pack((32, 64, 56, 56), 16, dtype="int16"), 12 * MIB, 1.3),
    (s2d((32, 64, 56, 56), 1, "NCHW", out_format="NHWC"), 6 * MIB, 1.7),
    (s2d((1, 1080, 1920, 3), 8, out_format="NCHW"), 6 * MIB, 1.7),  # 24 planes
    # Power-of-two pitch: planes of 64 x 64 bytes are 4 KiB apart.
    (pack((1, 64, 64, 64), 4), 256 * KIB, 2.3),
    (pack((1, 64, 56, 56), 4), 196 * KIB, 2.0),
    (s2d((1, 64, 64, 64), data_format="NCHW"), 256 * KIB, 2.0),  # two streams never collide
    (s2d((1, 4, 1024, 1024), 8, "NCHW"), 4 * MIB, 1.5),
    (s2d((1, 4, 1024, 1024), 4, "NCHW"), 4 * MIB, 1.3),
    (pack((16, 64, 64, 64), 32), 4 * MIB, 3.0),
    (unpack((16, 2, 64, 64, 32)), 4 * MIB, 3.0),
    (pack((32, 64, 56, 56), 32), 6 * MIB, 1.7),
    (s2d((16, 64, 64, 64), 1, out_format="NCHW"), 4 * MIB, 5.0),
    (s2d((16, 64, 64, 64), 1, "NCHW", out_format="NHWC"), 4 * MIB, 5.0),
    (s2d((1, 1024, 1024, 3), 1, out_format="NCHW"), 3 * MIB, 1.5),  # three planes do not need it
]


@pytest.mark.parametrize(("case", "nbytes", "k"), BUDGETS)
def test_budget(case, nbytes, k):
    assert budget.budget(case, nbytes) == k


@pytest.mark.parametrize(("case", "nbytes", "k"), [
    (FRAME, 512 * KIB - 1, None),
    (FRAME, 512 * KIB, 1.6),
    (FRAME, 128 * MIB, 1.6),
    (pack((32, 64, 56, 56), 32), 6 * MIB, 2.0),
    (pack((32, 56, 56, 64), 32, "NHWC"), 6 * MIB, 2.0),
    (s2d((32, 64, 56, 56), 1, "NCHW", out_format="NHWC"), 6 * MIB, 2.0),
    (pack((16, 64, 64, 64), 32), 4 * MIB, 3.0),
])  # fmt: skip
def test_budget_of_avx2(case, nbytes, k):
    assert budget.budget(case, nbytes, "avx2") == k


@pytest.mark.parametrize(("instruction_set", "k"), [("avx512vbmi", 1.5), ("avx2", 3.0), ("portable", None),
                                                    ("neon", None)])
@pytest.mark.parametrize("nbytes", [64, 512 * KIB - 1, 2 * MIB, 64 * MIB])
def test_budget_of_preprocessing(instruction_set, k, nbytes):
    assert budget.budget(cases.find("imagenet_640_nhwc"), nbytes, instruction_set) == k


def test_overhead_of_preprocessing_is_a_microsecond():
    assert {operator: budget.overhead(operator) for operator in ("preprocess", "pack_vect_c", "space_to_depth")} == {
        "preprocess": 1e-6, "pack_vect_c": 0.5e-6, "space_to_depth": 0.5e-6}


@pytest.mark.parametrize("instruction_set", ["portable", "neon"])
def test_no_budget_for_other_instruction_sets(instruction_set):
    assert budget.budget(FRAME, MIB, instruction_set) is None


@pytest.mark.parametrize(("case", "expected"), [
    # (bytes that move together, streams, of them at a pitch of 4 KiB)
    (s2d((1, 224, 224, 3)), (6, 2, 1)),  # two rows, each a run of two pixels
    (s2d((1, 512, 512, 1), dtype="int64"), (16, 2, 2)),  # rows of 4 KiB
    (s2d((1, 3, 224, 224), data_format="NCHW"), (1, 2, 1)),
    (s2d((1, 3, 640, 640), data_format="NCHW"), (1, 2, 2)),  # planes of 25 times 4 KiB
    (s2d((1, 224, 224, 64), mode="CRD"), (1, 4, 1)),
    (pack((1, 64, 56, 56), 32), (1, 32, 1)),
    (s2d((1, 64, 64, 64), 1, out_format="NCHW"), (1, 64, 64)),
    (s2b((1, 512, 1024, 1), [8, 8]), (1, 8, 8)),
])  # fmt: skip
def test_streams(case, expected):
    assert budget.streams(case) == [expected]


def test_named_cases_have_budgets_of_the_table():
    found = {budget.budget(one, cases.input_nbytes(one)) for one in cases.CASES}
    assert found == {1.0, 1.15, 1.3, 1.4, 1.5, 1.7, 2.0, 2.3, 3.0, 5.0}


# ---- recipes, and NumPy's way with them

SMALL_ENOUGH = [case for case in cases.NAMED if cases.input_nbytes(case) <= 8 * MIB]


@pytest.mark.parametrize("case", SMALL_ENOUGH, ids=lambda case: case.name)
def test_recipe_gives_what_the_reference_gives(case, rng):
    check_recipe(case, rng)


def test_recipes_of_random_cases(rng):
    seed = int(rng.integers(2**31))
    for case in cases.random_cases(seed, 300, largest=2**13):
        check_recipe(case, rng)


def preprocess(shape, **arguments):
    return cases.Case("made_up", "preprocess", shape, "uint8", {"scale": 1 / 255, **arguments})


@pytest.mark.parametrize("made_up", [
    # An odd margin, another grey level, three tables, planes in, and spare lanes that hold 0 whatever the padding.
    preprocess((2, 3, 5, 3), size=8, block_size=2, pad_value=7, mean=(0.1, 0.2, 0.3), data_format="NCHW_VECT_C",
               vect=8),
    preprocess((1, 3, 4, 6), size=(8, 6), input_format="NCHW", data_format="NHWC", reverse_channels=True, zero_point=9,
               std=(1, 2, 3), block_size=2, mode="CRD"),
    preprocess((1, 3, 4, 6), input_format="NCHW", data_format="NCHW", zero_point=-128),
    preprocess((2, 4, 6, 3), zero_point=-128, rescale=1 / 128, dtype="int8", data_format="NCHW", mode="focus",
               block_size=2, reverse_channels=True),
    preprocess((1, 5, 3, 1), data_format="NCHW", dtype="uint8"),
])  # fmt: skip
def test_recipe_of_preprocessing(made_up, rng):
    check_recipe(made_up, rng)


def test_one_table_is_enough_where_all_are_the_same():
    lookups = {name: next(step for step in recipe.recipe(cases.find(name)) if isinstance(step, recipe.Lookup))
               for name in ("model_input_640_nhwc", "mobilenet_640_s2d_b4_nchw", "imagenet_640_planes_s2d_nchw")}
    assert [len(step.tables) for step in lookups.values()] == [1, 1, 3]
    assert [step.is_flip for step in lookups.values()] == [True, False, False]
    assert [step.axis for step in lookups.values()] == [3, 3, 1]
    flip, other, _ = lookups.values()
    np.testing.assert_array_equal(flip.tables[0], np.arange(-128, 128, dtype=np.int8), strict=True)
    assert other.tables[0, [0, 255]].tolist() == [-128, 127]


def check_recipe(case, rng):
    x = np.ascontiguousarray(cases.make_input(case, rng))
    expected = case.call(s2dq.reference, x)
    steps = recipe.recipe(case)
    assert recipe.result_shape(steps, x.shape) == expected.shape
    for call in peers.load("numpy").calls(case, x):
        assert worker.what_is_wrong(call, expected, x) is None, (case, call.label)


@pytest.mark.parametrize("peer", peers.NAMES)
def test_peer_gives_what_the_reference_gives(peer):
    """Each peer that is installed, in a process of its own, on small cases of every operator that it is asked for."""
    if peers.versions(peer) is None:
        pytest.skip(f"{peer} is not installed")
    names = ["tiny_s2d_nhwc", "tiny_s2d_nhwc_crd", "tiny_d2s_nhwc", "tiny_d2s_nchw_crd", "ffdnet_unshuffle2_256",
             "deeplab_rate6_int8", "deeplab_rate6_int8_undo", "tiny_pack_v4", "tiny_unpack_v4",
             "yolov2_passthrough_26", "rgb_640_to_int8x4", "camera_640_to_int8x32", "imagenet_224_nhwc",
             "model_input_640_s2d_int8x4", "imagenet_480x640_letterboxed_bgr_nchw", "imagenet_640_planes_s2d_nchw",
             "mobilenet_640_s2d_b4_nchw"]
    names = [name for name in names if peers.serves(peer, cases.find(name).operator)]
    job = {"peer": peer, "cases": names, "threads": 1, "seconds": 0}
    results = runner.run_peer(job, sys.executable, runner.pinned_cpus(1), lambda text: None)
    assert list(results) == names
    for result in results.values():
        assert "problems" not in result and {"out", "fresh"} & result.keys(), result


def test_calls_of_a_peer_are_those_that_can_be_built():
    def lacks(what):
        raise NotImplementedError(what)

    assert peers.those_that_work(lambda: lacks("int8"), lambda: ["a"], lambda: ["b", "c"]) == ["a", "b", "c"]
    with pytest.raises(NotImplementedError, match="int8"):
        peers.those_that_work(lambda: lacks("int8"), lambda: lacks("float32"))


def test_a_peer_that_is_wrong_is_not_timed(rng):
    """What is wrong with each of its calls is told instead."""

    class Peer:
        @staticmethod
        def calls(case, x):
            result = case.call(s2dq.reference, x)
            return [timing.Call("off by one", "result", [{"result": result ^ 1}], fresh=True)]

        __name__ = "made up"

    report = worker.run_case(s2d((1, 4, 4, 1)), Peer(), 0)
    assert list(report["problems"]) == ["off by one"] and not {"out", "fresh", "copy"} & report.keys()


def test_slices_that_joined_are_the_result(rng):
    """In focus order and in that of DCR; None where channels of a pixel would be torn apart or pixels are made up."""
    for made_up in (s2d((1, 4, 6, 3)), s2d((1, 4, 6, 3), mode="focus"), s2d((2, 3, 4, 6), data_format="NCHW")):
        x = cases.make_input(made_up, rng)
        slices, axis = recipe.slices_to_join(made_up)
        joined = np.concatenate([x[one] for one in slices], axis)
        np.testing.assert_array_equal(joined, made_up.call(s2dq.reference, x), strict=True)
    for made_up in (s2d((1, 4, 6, 3), mode="CRD"), s2d((1, 2, 6, 3), paddings=[[1, 1], [0, 0]]), d2s((1, 2, 2, 4)),
                    s2d((1, 4, 4, 1), (2, 1)), s2d((1, 8, 8, 1), 8), s2d((1, 4, 6, 3), out_format="NCHW")):
        assert recipe.slices_to_join(made_up) is None, made_up


def test_peers_are_asked_for_what_they_have():
    assert {name for name in peers.NAMES if peers.serves(name, "pack_vect_c")} == set(peers.NAMES) - {"opencv"}
    assert {name for name in peers.NAMES if peers.serves(name, "preprocess")} == {
        "numpy", "torch", "openvino", "jax", "numba", "opencv"}
    assert peers.serves("s2dq", "preprocess") and peers.serves("s2dq", "space_to_depth")


def test_every_peer_is_a_module_that_needs_nothing_to_be_imported():
    assert set(peers.NAMES) == set(peers.DISTRIBUTIONS)
    for name in (*peers.NAMES, "s2dq"):
        assert callable(peers.load(name).calls) and callable(peers.load(name).set_up)


def test_versions_of_what_is_not_installed(monkeypatch):
    monkeypatch.setitem(peers.DISTRIBUTIONS, "numpy", [("numpy",), ("no-such-distribution", "nor-this-one")])
    assert peers.versions("numpy") is None
    monkeypatch.setitem(peers.DISTRIBUTIONS, "numpy", [("no-such-distribution", "numpy")])
    assert peers.versions("numpy") == {"numpy": np.__version__}


# ---- timing


def test_calls_are_timed_in_turn_with_a_copy():
    order = []
    calls = [timing.Call(name, "order.append(name)", [{"order": order, "name": name}], fresh=True) for name in "ab"]
    copy, timings = timing.measure(calls, 64, seconds=0)
    assert copy.copies == 1.0 and copy.seconds > 0
    for one in timings:
        assert one.copies == pytest.approx(one.seconds / copy.seconds)
        assert one.samples >= timing.LEAST_ROUNDS * timing.placements(64)
        assert one.spread[0] <= 1 <= one.spread[1]
    changes = sum(one != other for one, other in zip(order, order[1:], strict=False))
    assert changes >= 2 * timing.LEAST_ROUNDS - 1, "not in turn"


def test_all_sets_of_names_are_timed():
    seen = set()
    call = timing.Call("a", "seen.add(number)", [{"seen": seen, "number": number} for number in range(3)], fresh=True)
    timing.measure([call], 64, seconds=0)
    assert seen == {0, 1, 2}


def test_a_copy_is_of_as_many_bytes_between_arrays_of_their_own():
    call = timing.copy_call(1000)
    assert len(call.names) == timing.placements(1000) == 4
    for names in call.names:
        assert names["source"].nbytes == names["target"].nbytes == 1000
        eval(call.statement, dict(names))
        np.testing.assert_array_equal(names["target"], 1)
    assert len({names["target"].ctypes.data for names in call.names}) == 4


def test_the_fastest_call_wins_the_race():
    calls = [timing.Call(str(count), "sum(range(count))", [{"count": count}], fresh=True) for count in (9999, 1, 9999)]
    assert timing.fastest(calls).label == "1"


def test_s2dq_is_called_as_a_user_would():
    case = cases.find("era5_field_f64")
    out, fresh = peers.load("s2dq").calls(case, cases.make_input(case, np.random.default_rng(0)))
    assert out.statement == "operator(x, block_size, data_format, paddings=paddings, out=out)"
    assert fresh.statement == "operator(x, block_size, data_format, paddings=paddings)"
    assert (out.fresh, fresh.fresh) == (False, True)
    sets = out.names
    assert len({id(names["x"]) for names in sets}) == len({id(names["out"]) for names in sets}) == len(sets)
    for names in sets:
        np.testing.assert_array_equal(names["x"], sets[0]["x"], strict=True)


def test_a_preprocessor_is_made_beforehand():
    case = cases.find("imagenet_480x640_letterboxed_bgr_nchw")
    out, fresh = peers.load("s2dq").calls(case, cases.make_input(case, np.random.default_rng(0)))
    assert (out.statement, fresh.statement) == ("pre(x, out=out)", "pre(x)")
    assert all(names["pre"] == s2dq.Preprocessor(**case.arguments) for names in out.names)
    assert out.names[0]["out"].shape == (1, 3, 640, 640)


@pytest.mark.parametrize("name", ["camera_crop_640_of_1080p", "model_input_640_of_1080p"])
def test_a_crop_stays_a_crop_for_s2dq(name):
    case = cases.find(name)
    out, _ = peers.load("s2dq").calls(case, cases.make_input(case, np.random.default_rng(0)))
    assert not any(names["x"].flags.c_contiguous for names in out.names)


# ---- what a worker reports


class Sabotaged:
    """A peer that is right by one call and wrong by others."""

    __name__ = "s2dq.bench.peers.sabotaged"

    def __init__(self, *wrong):
        self.wrong = wrong

    def calls(self, case, x):
        result = case.call(s2dq.reference, x)
        spoilt = {"values": result ^ 1, "shape": result[..., :1].copy(), "dtype": result.astype(np.int16),
                  "input": x.reshape(result.shape), "order": np.asfortranarray(result)}
        yield timing.Call("right", "y.copy()", [{"y": result}], fresh=True)
        for kind in self.wrong:
            yield timing.Call(kind, "y", [{"y": spoilt[kind]}], fresh=True)
        yield timing.Call("raises", "1 / 0", [{}], fresh=True)
        # Right at the first sight: `out` has been filled beforehand and is not written.
        yield timing.Call("lazy", "None", [{"out": result.copy()}], fresh=False)


def test_wrong_results_are_reported_and_not_timed():
    peer = Sabotaged("values", "shape", "dtype", "input", "order")
    result = worker.run_case(cases.find("tiny_s2d_nhwc"), peer, seconds=0)
    assert result["fresh"]["how"] == "right" and "out" not in result
    assert result["problems"].keys() == {"values", "shape", "dtype", "input", "order", "raises", "lazy"}
    assert result["problems"]["input"] == result["problems"]["order"] == "a view"
    assert result["problems"]["values"] == result["problems"]["lazy"] == "wrong values"
    assert result["problems"]["shape"].startswith("wrong shape")
    assert result["problems"]["raises"].startswith("ZeroDivisionError")


def test_what_a_library_cannot_do_is_said():
    class Unable:
        __name__ = "s2dq.bench.peers.unable"

        def calls(self, case, x):
            raise NotImplementedError("no such\noperator")

    result = worker.run_case(cases.find("tiny_s2d_nhwc"), Unable(), seconds=0)
    assert result == {"case": "tiny_s2d_nhwc", "nbytes": 64, "cannot": "NotImplementedError: no such operator"}


def stand_in(tmp_path, body):
    """An interpreter that runs `body` in place of the worker."""
    path = tmp_path / "python"
    path.write_text(f"#!{sys.executable}\n" + textwrap.dedent(body))
    path.chmod(0o755)
    return str(path)


needs_scripts = pytest.mark.skipif(os.name == "nt", reason="the stand-in for Python is a script")


@needs_scripts
def test_a_process_that_dies_is_followed_by_one_for_the_other_cases(tmp_path):
    interpreter = stand_in(tmp_path, """
        import json, os, sys
        job = json.load(sys.stdin)
        for name in job["cases"]:
            print(json.dumps({"begin": name}), flush=True)
            if name == "b":
                print("something broke", file=sys.stderr, flush=True)
                os.abort()
            print(json.dumps({"case": name, "nbytes": 1, "cannot": "told so"}), flush=True)
    """)
    job = {"peer": "numpy", "cases": ["a", "b", "c"], "threads": 1, "seconds": 0}
    results = runner.run_peer(job, interpreter, None, lambda text: None)
    assert list(results) == ["a", "b", "c"]
    assert results["a"] == results["c"] == {"nbytes": 1, "cannot": "told so"}
    assert results["b"] == {"cannot": "the process ended with -6: something broke"}


@needs_scripts
def test_a_process_that_never_begins(tmp_path):
    """A peer can do nothing then; without s2dq there is nothing to say."""
    interpreter = stand_in(tmp_path, "raise SystemExit('no such library')")
    job = {"peer": "jax", "cases": ["tiny", "frame"], "threads": 1, "seconds": 0}
    results = runner.run_peer(job, interpreter, None, lambda text: None)
    assert results == dict.fromkeys(("tiny", "frame"), {"cannot": "the process ended with 1: no such library"})
    with pytest.raises(runner.WorkerError, match="^the process ended with 1: no such library$"):
        runner.run_peer(job | {"peer": "s2dq"}, interpreter, None, lambda text: None)

    result = fixture()
    for one in result["cases"]:
        one["runs"][0]["jax"] = results["tiny"]
    assert "jax did nothing: the process ended with 1: no such library" in report.lines_of(result)


@needs_scripts
def test_a_process_does_not_outlive_an_exception(tmp_path):
    """Ctrl-C in the parent, for one: it would go on using the processors."""
    interpreter = stand_in(tmp_path, """
        import json, os, sys, time
        print(json.dumps({"begin": str(os.getpid())}), flush=True)
        time.sleep(60)
    """)
    seen = []

    def interrupt(text):
        seen.append(int(text.split()[-1]))
        raise KeyboardInterrupt

    job = {"peer": "numpy", "cases": ["a"], "threads": 1, "seconds": 0}
    with pytest.raises(KeyboardInterrupt):
        runner.run_peer(job, interpreter, None, interrupt)
    with pytest.raises(ProcessLookupError):
        os.kill(*seen, 0)


@needs_scripts
def test_versions_come_from_the_peers_own_interpreter(tmp_path):
    interpreter = stand_in(tmp_path, """
        import json, sys
        json.dump({sys.argv[-1]: "1.2.3"}, sys.stdout)
    """)
    assert runner.versions_of("jax", {"jax": interpreter}) == {"jax": "1.2.3"}
    assert runner.versions_of("numpy", {"jax": interpreter}) == {"numpy": np.__version__}


@needs_scripts
def test_an_interpreter_that_cannot_run_s2dq_is_told_of(tmp_path):
    interpreter = stand_in(tmp_path, "raise SystemExit('no numpy here')")
    with pytest.raises(runner.WorkerError, match=r"^jax: .*python cannot run s2dq: \['no numpy here'\]$"):
        runner.versions_of("jax", {"jax": interpreter})


@needs_scripts
@pytest.mark.parametrize("body", ["", "print('hello')", "import sys; sys.stdout.buffer.write(bytes([0xff, 0xfe]))"])
def test_an_interpreter_that_says_something_else_is_told_of(tmp_path, body):
    """/bin/true, for one."""
    interpreter = stand_in(tmp_path, body)
    with pytest.raises(runner.WorkerError, match=r"^jax: .*python is no Python that runs s2dq"):
        runner.versions_of("jax", {"jax": interpreter})


@needs_scripts
def test_a_silent_process_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "SILENCE", 0.3)
    interpreter = stand_in(tmp_path, """
        import json, sys, time
        print(json.dumps({"begin": json.load(sys.stdin)["cases"][0]}), flush=True)
        time.sleep(60)
    """)
    job = {"peer": "numpy", "cases": ["a"], "threads": 1, "seconds": 0}
    results = runner.run_peer(job, interpreter, None, lambda text: None)
    assert results == {"a": {"cannot": "no sign of life for 0.3 s"}}


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="no affinity here")
@needs_scripts
def test_a_process_is_pinned_and_held_to_its_threads(tmp_path):
    interpreter = stand_in(tmp_path, """
        import json, os, sys
        json.load(sys.stdin)
        said = f"{os.sched_getaffinity(0)} {os.environ['OMP_NUM_THREADS']} {os.environ['NUMBA_NUM_THREADS']}"
        print(json.dumps({"begin": "a"}))
        print(json.dumps({"case": "a", "cannot": said}), flush=True)
    """)
    before = os.sched_getaffinity(0)
    cpus = runner.pinned_cpus(1)
    assert cpus == [max(before)]
    job = {"peer": "numpy", "cases": ["a"], "threads": 1, "seconds": 0}
    results = runner.run_peer(job, interpreter, cpus, lambda text: None)
    assert results == {"a": {"cannot": f"{{{cpus[0]}}} 1 1"}}
    assert os.sched_getaffinity(0) == before


# ---- verdicts, from made-up results


def timed(us, copies, how="x"):
    return [us, copies, 0.9, 1.1, 10, how]


def row(name="a", nbytes=2 * MIB, k=1.3, out=(12.0, 1.2), fresh=(13.0, 1.3), copy=10.0, operator="space_to_depth",
        **others):
    run = {"s2dq": {"copy": copy, "out": timed(*out), "fresh": timed(*fresh)}}
    run |= {peer: {"copy": copy, **{kind: timed(*figures) for kind, figures in kinds.items()}}
            for peer, kinds in others.items()}
    return {"name": name, "operator": operator, "nbytes": nbytes, "k": k, "runs": [run]}


@pytest.mark.parametrize(("made_up", "expected"), [
    (row(), []),
    (row(out=(13.5, 1.35)), []),  # 1.3 copies are 13 us, and half a microsecond
    (row(out=(13.6, 1.36)), ["over budget"]),
    (row(out=(99.0, 9.9), k=None), []),
    # 1.5 copies are 15 us, and a microsecond.
    (row(out=(15.9, 1.59), fresh=(16.0, 1.6), k=1.5, operator="preprocess"), []),
    (row(out=(16.1, 1.61), fresh=(16.0, 1.6), k=1.5, operator="preprocess"), ["over budget"]),
    # Behind: more than 5 % by the clock and in copies, and like is compared with like.
    (row(numpy={"out": (11.0, 1.1)}), ["behind numpy"]),
    (row(numpy={"out": (11.5, 1.15)}), []),
    (row(numpy={"out": (11.0, 1.2)}), []),
    (row(numpy={"out": (12.0, 1.1)}), []),
    (row(numpy={"fresh": (12.5, 1.25)}), []),
    (row(jax={"fresh": (12.0, 1.2)}), ["behind jax"]),
    (row(jax={"fresh": (12.0, 1.2)}, torch={"out": (5.0, 0.5), "fresh": (6.0, 0.6)}, out=(14.0, 1.4)),
     ["over budget", "behind jax", "behind torch"]),
])  # fmt: skip
def test_losses(made_up, expected):
    assert verdict.fails(made_up) == expected


def test_a_wrong_result_of_our_own_is_a_loss():
    made_up = row()
    del made_up["runs"][0]["s2dq"]["out"]
    assert verdict.fails(made_up) == ["wrong result"]


def test_a_case_fails_if_it_fails_in_every_run():
    slow, fast = row(out=(14.0, 1.4), numpy={"out": (11.0, 1.1)}), row()
    slow["runs"] += fast["runs"]
    assert verdict.fails(slow) == []
    assert report.marks(slow) == " (over budget, behind numpy)"
    slow["runs"][1] = row(out=(14.0, 1.4))["runs"][0]
    assert verdict.fails(slow) == ["over budget"]
    assert report.marks(slow) == "over budget (behind numpy)"


def test_the_closest_peer_is_the_one_with_the_smallest_lead():
    run = row(numpy={"out": (24.0, 2.4)}, jax={"fresh": (19.5, 1.95)}, numba={"out": (60.0, 6.0)})["runs"][0]
    assert verdict.closest(run) == ("jax", "fresh", 1.95, pytest.approx(1.5))
    assert verdict.best_of_peers(run) == 1.95
    assert verdict.closest(row()["runs"][0]) is None and verdict.best_of_peers(row()["runs"][0]) is None


def test_promises_of_all_cases():
    rows = [row(nbytes=64, out=(0.5, 5.0)),
            row(nbytes=512 * KIB, out=(15.5, 1.55)), row(nbytes=900 * KIB, out=(19.5, 1.95)),
            row(nbytes=2 * MIB, out=(1.0, 1.0)), row(nbytes=128 * MIB, out=(10.0, 1.21), fresh=(20.0, 2.0))]
    figures = {what: (figure, limit) for what, figure, limit in verdict.promises(rows)}
    assert figures == {
        "copies from 1 MiB up, geometric mean": (pytest.approx(1.1), 1.2),
        "copies beyond 0.5 us from 128 KiB to 1 MiB, median": (pytest.approx(1.7), 1.6),
        "us of the slowest call with 64 bytes": (0.5, pytest.approx(0.8)),
        "fresh 128 MiB over out=, largest": (pytest.approx(2.0), 1.7),
    }
    assert verdict.promises([row(nbytes=100 * KIB)]) == []


def test_promises_and_means_are_of_what_only_moves():
    rows = [row(nbytes=2 * MIB, out=(1.0, 1.0))]
    more = [*rows, row("imagenet_640_nhwc", 2 * MIB, out=(9.0, 9.0), operator="preprocess")]
    assert verdict.promises(more) == verdict.promises(rows) != []
    assert verdict.groups(more) == verdict.groups(rows)
    assert verdict.preprocessing_groups(rows) == []
    assert [title for title, *_ in verdict.operator_groups(more)] == ["space_to_depth", "preprocess"]


def test_preprocessing_is_grouped_by_the_layout_of_the_result():
    names = ("imagenet_640_int8x4", "model_input_480x640_letterboxed", "imagenet_640_nhwc")
    rows = [row(name, operator="preprocess") for name in names]
    assert [(title, [one["name"] for one in found]) for title, found in verdict.preprocessing_groups(rows)] == [
        ("NHWC", list(names[1:])), ("NCHW_VECT_C", [names[0]]), ("all", list(names))]


# ---- reports


def fixture():
    """A small result, as `runner.run` gives it."""
    rows = [
        row("tiny", 64, 1.4, out=(0.4, 4.0), fresh=(0.5, 5.0), copy=0.1,
            numpy={"out": (0.9, 9.0), "fresh": (1.2, 12.0)}),
        row("frame", 6 * MIB, 1.3, out=(110.0, 1.1), fresh=(120.0, 1.2), copy=100.0,
            numpy={"out": (2000.0, 20.0), "fresh": (2100.0, 21.0)}, jax={"fresh": (240.0, 2.4)}),
        row("upscaled", 2 * MIB, 1.3, out=(45.0, 1.5), fresh=(46.0, 1.53), copy=30.0, operator="depth_to_space",
            numpy={"out": (600.0, 20.0)}, jax={"fresh": (42.0, 1.4)}),
    ]
    for one in rows:
        one["runs"][0].setdefault("jax", {"cannot": "NotImplementedError: no"})
    machine = {"cpu": "Some CPU", "s2dq": "0.1.0", "python": "3.11.7 (CPython)", "numpy": "2.4.6", "platform": "linux",
               "compiler": "gcc 12.2.0", "instruction set": "avx512vbmi", "threads": 1, "pinned to": [1],
               "date": "2026-01-31"}
    return {"machine": machine, "settings": {"threads": 1, "quick": False, "confirm": False},
            "peers": {"numpy": {"numpy": "2.4.6"}, "jax": {"jax": "0.10.2", "jaxlib": "0.10.2"}}, "cases": rows}


def with_preprocessing():
    """The same after two frames, for which OpenCV is asked and JAX is not able."""
    result = fixture()
    rows = [
        row("imagenet_640_nhwc", 2 * MIB, 1.5, out=(30.0, 1.0), fresh=(36.0, 1.2), copy=30.0, operator="preprocess",
            opencv={"out": (900.0, 30.0)}, numpy={"out": (1200.0, 40.0), "fresh": (1500.0, 50.0)}),
        row("imagenet_640_nchw_uint8", 2 * MIB, 1.5, out=(48.0, 1.6), fresh=(54.0, 1.8), copy=30.0,
            operator="preprocess", opencv={"out": (1080.0, 36.0)}, numpy={"out": (1260.0, 42.0)}),
    ]
    for one in rows:
        one["runs"][0]["jax"] = {"cannot": "NotImplementedError: no"}
    result["peers"]["opencv"] = {"opencv-python": "5.0.0"}
    result["cases"] += rows
    return result


REPORT = """\
Some CPU, avx512vbmi, gcc 12.2.0, 1 thread, 2026-01-31
s2dq 0.1.0, Python 3.11.7 (CPython), numpy 2.4.6, jax 0.10.2, jaxlib 0.10.2
A copy is np.copyto of as many bytes as the output has. Lead: the best peer's time over that of s2dq.

case      output  out=  fresh     k    best peer  copies  lead
tiny        64 B  4.00   5.00  1.40  numpy (out)    9.00  2.25
frame      6 MiB  1.10   1.20  1.30  jax (fresh)    2.40  2.00
upscaled   2 MiB  1.50   1.53  1.30  jax (fresh)    1.40  0.92  over budget, behind jax

copies, geometric means  cases  out=  fresh  best peer  lead  copy GB/s
to 128 KiB                   1  4.00   5.00       9.00  2.25          1
to 16 MiB                    2  1.28   1.35       1.83  1.35         66
space_to_depth               2  2.10   2.45       4.65  2.12         32
depth_to_space               1  1.50   1.53       1.40  0.92         70
from 1 MiB                   2  1.28   1.35       1.83  1.35         66
all                          3  1.88   2.09       3.12  1.60         63

peer   cases  copies  s2dq there  wrong  cannot
numpy      3    15.3        1.88      0       0
jax        2    1.83        1.28      0       1

copies from 1 MiB up, geometric mean: 1.28 (limit 1.20)  MISSED
us of the slowest call with 64 bytes: 0.40 (limit 0.80)
1 of 3 cases fail:
  upscaled: over budget, behind jax; 45 us, 1.50 copies
"""


def test_report():
    assert "\n".join(report.lines_of(fixture())) + "\n" == REPORT


REPORT_OF_PREPROCESSING = """
preprocessing, copies, geometric means  cases  out=  fresh  best peer  lead  copy GB/s
NHWC                                        1  1.00   1.20         30    30         70
NCHW                                        1  1.60   1.80         36  22.5         70
all                                         2  1.26   1.47       32.9    26         70

peer    cases  copies  s2dq there  wrong  cannot
numpy       2      41        1.26      0       0
jax         0                          0       2
opencv      2    32.9        1.26      0       0

copies from 1 MiB up, geometric mean: 1.28 (limit 1.20)  MISSED
us of the slowest call with 64 bytes: 0.40 (limit 0.80)
2 of 5 cases fail:
  upscaled: over budget, behind jax; 45 us, 1.50 copies
  imagenet_640_nchw_uint8: over budget; 48 us, 1.60 copies
"""


def test_report_of_preprocessing_is_apart():
    text = "\n".join(report.lines_of(with_preprocessing())) + "\n"
    assert text.endswith(REPORT_OF_PREPROCESSING)
    of_the_others = REPORT.partition("copies, geometric means")[2].partition("\ncopies from")[0]
    assert of_the_others in text
    assert "did nothing" not in text


def test_report_of_preprocessing_alone():
    result = with_preprocessing()
    del result["cases"][:3]
    lines = list(report.lines_of(result))
    assert not any(line.startswith("copies, geometric means") for line in lines)
    assert "jax did nothing: NotImplementedError: no" in lines
    assert lines[-2] == "1 of 2 cases fail:"


def test_report_says_what_a_random_case_is():
    result = fixture()
    result["cases"][2]["name"] = "random_7_0"
    case = cases.find("random_7_0")
    assert list(report.lines_of(result))[-1].startswith(f"    {case.operator}({case.dtype} {case.shape}")


def test_report_without_losses_says_so():
    result = fixture()
    del result["cases"][2]
    assert list(report.lines_of(result))[-1] == "2 cases, none over budget, none behind a peer"


def test_report_shows_what_s2dq_got_wrong():
    result = fixture()
    own = result["cases"][1]["runs"][0]["s2dq"]
    del own["out"]
    own["problems"] = {"s2dq": "wrong values"}
    lines = list(report.lines_of(result))
    assert "WRONG frame: wrong values" in lines
    assert any(line.startswith("  frame: wrong result") for line in lines)


def test_report_counts_what_peers_got_wrong():
    result = fixture()
    result["cases"][0]["runs"][0]["jax"] = {"problems": {"transpose": "wrong values"}}
    assert re.search(r"^jax +2 +1.83 +1.28 +1 +1$", "\n".join(report.lines_of(result)), re.MULTILINE)


SECTION = """\
Some CPU, avx512vbmi, gcc 12.2.0, 1 thread, 2026-01-31:

| | output | cases | s2dq | fresh result | best peer | lead | slowest case |
|---|---|---|---|---|---|---|---|
| `space_to_depth` | to 128 KiB | 1 | 4.00 | 5.00 | 9.00 | 2.25 | tiny 4.00 |
| `space_to_depth` | to 16 MiB | 1 | 1.10 | 1.20 | 2.40 | 2.00 | frame 1.10 |
| `depth_to_space` | to 16 MiB | 1 | 1.50 | 1.53 | 1.40 | 0.92 | upscaled 1.50 |
| **all** |  | 3 | 1.88 | 2.09 | 3.12 | 1.60 | tiny 4.00 |
"""


def test_readme_section():
    section = readme.section(fixture(), "speed.png")
    assert section.startswith(SECTION)
    assert "Peers, each in copies over the cases it can run (their number): numpy 15.3 (3), jax 1.83 (2)." in section
    assert "behind a peer by more than 5 %: 1 of 3 cases.\n" in section
    assert "\n| upscaled | 2 MiB | 1.50 | over budget, behind jax | jax 1.40 |\n" in section
    assert section.endswith("](speed.png)")


PREPROCESSING_SECTION = """
| **all** |  | 3 | 1.88 | 2.09 | 3.12 | 1.60 | tiny 4.00 |

| `Preprocessor` to | cases | s2dq | fresh result | best peer | lead | slowest case |
|---|---|---|---|---|---|---|
| NHWC | 1 | 1.00 | 1.20 | 30 | 30 | imagenet_640_nhwc 1.00 |
| NCHW | 1 | 1.60 | 1.80 | 36 | 22.5 | imagenet_640_nchw_uint8 1.60 |
| **all** | 2 | 1.26 | 1.47 | 32.9 | 26 | imagenet_640_nchw_uint8 1.60 |

All figures"""


def test_readme_section_has_preprocessing_in_a_table_of_its_own():
    section = readme.section(with_preprocessing())
    assert section.startswith(SECTION) and PREPROCESSING_SECTION in section
    assert ": numpy 15.3 (3), jax 1.83 (2).\n" in section
    assert ("\nPeers in preprocessing, each in copies over the cases it can run (their number): numpy 41 (2), "
            "opencv 32.9 (2).\n") in section
    assert "\n| imagenet_640_nchw_uint8 | 2 MiB | 1.60 | over budget | opencv 36 |\n" in section


def test_readme_section_of_preprocessing_alone():
    result = with_preprocessing()
    del result["cases"][:3]
    section = readme.section(result)
    assert "`space_to_depth`" not in section and "\n| NHWC | 1 | 1.00 |" in section


def test_readme_section_without_losses():
    result = fixture()
    del result["cases"][2]
    assert "None of 2 cases is over budget" in readme.section(result)


def test_section_replaces_what_is_between_the_markers_alone():
    begin, end = readme.marks("speed")
    text = f"before\n{begin}\nold\n{end}\nafter\n"
    assert readme.with_section(text, "new") == f"before\n{begin}\nnew\n{end}\nafter\n"
    for other in ("no markers", text.replace(end, ""), text.replace("speed", "rate")):
        with pytest.raises(ValueError, match="page has no <!-- speed"):
            readme.with_section(other, "new")


SHORT_SECTION = """\
Some CPU, avx512vbmi, gcc 12.2.0, 1 thread, 2026-01-31:

|  | cases | s2dq | best peer | lead | slowest case | losses |
|---|---|---|---|---|---|---|
| `space_to_depth` | 2 | 2.10 | 4.65 | 2.12 | tiny 4.00 | 0 |
| `depth_to_space` | 1 | 1.50 | 1.40 | 0.92 | upscaled 1.50 | 1 |
| `Preprocessor` | 2 | 1.26 | 32.9 | 26 | imagenet_640_nchw_uint8 1.60 | 1 |
"""


def test_short_section_keeps_the_losses():
    section = readme.short_section(with_preprocessing(), "docs/page.md")
    assert section.startswith(SHORT_SECTION)
    assert "more than 5 % behind a peer: 2 of 5: upscaled, imagenet_640_nchw_uint8.\n" in section
    assert "\n[docs/page.md](docs/page.md) has the method" in section


def test_short_section_without_losses():
    result = fixture()
    del result["cases"][2]
    assert "behind a peer: 0 of 2.\n" in readme.short_section(result)


def test_rate_is_that_of_its_case():
    result = with_preprocessing()
    assert readme.rate_line(result) == ""
    result["cases"][3]["name"] = readme.RATED
    line, machine = readme.rate_line(result).split("\n")
    assert line.startswith("**70 GB/s** of output: a 640 x 640 RGB frame")
    assert machine.startswith("(Some CPU, avx512vbmi")
    assert line.endswith("in 30 us, the time of 1.00 copies of its bytes. The closest other library, opencv, takes 30.")


def test_rate_is_of_what_the_readme_does():
    case, text = cases.find(readme.RATED), (ROOT / "README.md").read_text(encoding="utf-8")
    assert case.operator == "preprocess" and case.shape[-3:] == (640, 640, 3) and case.dtype == "uint8"
    assert case.arguments["block_size"] == 2 and case.arguments.get("data_format", "NHWC") == "NHWC"
    assert case.arguments["scale"] == 1 / 255 and case.arguments["zero_point"] == -128
    assert "--size 640x640 --block-size 2 --scale 0.00392156862745098 --zero-point -128" in text


def test_readme_is_what_the_script_makes_of_the_result_in_docs():
    text, page = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/speed.md"))
    source = ROOT / "docs" / "speed.json"
    assert source.stat().st_size < 200_000
    result = runner.load(source)
    assert readme.with_section(text, readme.short_section(result)) == text
    assert readme.with_section(text, readme.rate_line(result), "rate") == text
    assert readme.with_section(page, readme.section(result)) == page
    assert (ROOT / "docs" / "speed.png").stat().st_size > 10_000


def test_result_in_docs_is_of_every_case_and_peer():
    result = runner.load(ROOT / "docs" / "speed.json")
    assert [one["name"] for one in result["cases"]] == [case.name for case in cases.NAMED]
    assert set(result["peers"]) == set(peers.NAMES)


def test_json_round_trip(tmp_path):
    path = tmp_path / "result.json"
    path.write_text(runner.to_json(fixture()), encoding="utf-8")
    assert runner.load(path) == json.loads(path.read_text()) == fixture()
    path.write_text("{}")
    with pytest.raises(ValueError, match="is no result of s2dq bench"):
        runner.load(path)


def test_chart_is_a_picture(tmp_path):
    pytest.importorskip("matplotlib")
    image = pytest.importorskip("PIL.Image")
    from s2dq.bench import chart

    file = io.BytesIO()
    chart.draw(fixture(), file)
    with image.open(file) as picture:
        assert picture.format == "PNG" and picture.width == 1660
        colours = {colour for _, colour in picture.convert("RGB").getcolors(1 << 20)}
        assert {(0x1B, 0x7F, 0x79), (0xC9, 0xC2, 0xB6)} <= colours  # both kinds of bars


def test_readme_script(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "speed.json").write_text(runner.to_json(fixture()))
    rate, speed = ("\n".join(readme.marks(name)) for name in ("rate", "speed"))
    (tmp_path / "README.md").write_text(f"# Title\n\n{rate}\n\n{speed}\n")
    (tmp_path / "docs" / "speed.md").write_text(f"# Speed\n\n{speed}\n")
    monkeypatch.chdir(tmp_path)
    readme.main([])
    assert readme.short_section(fixture()) in (tmp_path / "README.md").read_text()
    assert readme.section(fixture()) in (tmp_path / "docs" / "speed.md").read_text()
    assert (tmp_path / "docs" / "speed.png").read_bytes().startswith(b"\x89PNG")


# ---- the command


def test_bench_end_to_end(tmp_path, capsys):
    """Two processes, one case: table, JSON, exit code."""
    path = tmp_path / "result.json"
    assert main(["bench", "--quick", "--cases", "tiny_pack*", "--peers", "numpy", "--json", str(path)]) == 0
    printed = capsys.readouterr().out
    result = runner.load(path)
    assert result["machine"]["threads"] == 1 and result["peers"] == {"numpy": {"numpy": np.__version__}}
    (only,) = result["cases"]
    assert (only["name"], only["operator"], only["nbytes"]) == ("tiny_pack_v4", "pack_vect_c", 64)
    own, numpy = only["runs"][0]["s2dq"], only["runs"][0]["numpy"]
    for figures in (own["out"], own["fresh"], numpy["out"], numpy["fresh"]):
        us, copies, low, high, samples, how = figures
        assert us > 0 and copies > 0 and low <= 1 <= high and samples >= 3 and how
    assert f"{own['out'][0] / own['copy']:.2f}"[:3] == f"{own['out'][1]:.2f}"[:3]
    assert re.search(r"^tiny_pack_v4 +64 B ", printed, re.MULTILINE)
    assert result["machine"]["date"] in printed.splitlines()[0]


def test_bench_fail_is_the_exit_code(monkeypatch, capsys):
    for rows, code in ((fixture()["cases"], 1), (fixture()["cases"][:2], 0)):
        result = fixture() | {"cases": rows}
        monkeypatch.setattr(runner, "run", lambda *args, result=result, **options: result)
        assert main(["bench", "--fail"]) == code
        assert main(["bench"]) == 0
    capsys.readouterr()


def test_confirm_measures_failed_cases_again(monkeypatch):
    asked = []

    def run_peer(job, interpreter, cpus, progress):
        asked.append((job["peer"], job["cases"]))
        slow = 1.0 if len(asked) > 1 else 9.0
        return {name: {"nbytes": 2 * MIB, "copy": 10.0, "out": timed(10.0 * (slow if name == "mask_512" else 1), 1.0),
                       "fresh": timed(10.0, 1.0)} for name in job["cases"]}

    monkeypatch.setattr(runner, "run_peer", run_peer)
    monkeypatch.setattr(runner, "describe_machine", lambda *args: {"instruction set": "avx512vbmi"})
    names = ["mask_512", "mask_512_undo"]
    result = runner.run(names, [], confirm=True)
    assert asked == [("s2dq", names), ("s2dq", ["mask_512"])]
    assert [len(one["runs"]) for one in result["cases"]] == [2, 1]
    assert verdict.losses(result["cases"][0], result["cases"][0]["runs"][0]) == ["over budget"]
    assert verdict.fails(result["cases"][0]) == []


def test_a_peer_is_asked_for_the_operators_that_it_has(monkeypatch):
    asked = {}

    def run_peer(job, interpreter, cpus, progress):
        asked[job["peer"]] = job["cases"]
        return {name: {"nbytes": 2 * MIB, "copy": 10.0, "out": timed(10.0, 1.0), "fresh": timed(10.0, 1.0)}
                for name in job["cases"]}

    monkeypatch.setattr(runner, "run_peer", run_peer)
    monkeypatch.setattr(runner, "versions_of", lambda peer, interpreters: {peer: "1"})
    monkeypatch.setattr(runner, "describe_machine", lambda *args: {"instruction set": "avx2"})
    names = ["mask_512", "imagenet_640_nhwc"]
    result = runner.run(names, ["numpy", "litert", "opencv"])
    assert asked == {"s2dq": names, "numpy": names, "litert": names[:1], "opencv": names[1:]}
    moved, looked_up = result["cases"]
    assert list(moved["runs"][0]) == ["s2dq", "numpy", "litert"]
    assert list(looked_up["runs"][0]) == ["s2dq", "numpy", "opencv"]
    assert (looked_up["operator"], looked_up["k"]) == ("preprocess", 3.0)


@pytest.mark.parametrize(("arguments", "expected"), [
    ({}, [case.name for case in cases.NAMED]),
    ({"pattern": "imagenet_1080p_n*"}, ["imagenet_1080p_nhwc", "imagenet_1080p_nchw"]),
    ({"quick": True}, list(runner.QUICK)),
    ({"pattern": "tiny_*b"}, ["tiny_s2b"]),
    ({"quick": True, "pattern": "tiny_b2s"}, ["tiny_b2s"]),
    ({"random": 2, "seed": 5}, ["random_5_0", "random_5_1"]),
    ({"pattern": "tiny_s2b", "random": 1}, ["tiny_s2b", "random_0_0"]),
    ({"pattern": "nothing"}, []),
])  # fmt: skip
def test_choice_of_cases(arguments, expected):
    assert runner.choose_cases(**arguments) == expected


def test_quick_cases_span_the_operators():
    chosen = [cases.find(name) for name in runner.QUICK]
    assert {case.operator for case in chosen} == {case.operator for case in cases.NAMED}
    assert max(map(cases.input_nbytes, chosen)) <= 8 * MIB


@pytest.mark.parametrize(("arguments", "peers_asked"), [
    ([], list(peers.NAMES)),
    (["--peers", "all"], list(peers.NAMES)),
    (["--peers", "none"], []),
    (["--peers", "torch,numpy"], ["torch", "numpy"]),
    (["--random", "2"], []),
    (["--random", "2", "--peers", "numpy"], ["numpy"]),
])
def test_choice_of_peers(arguments, peers_asked, monkeypatch, capsys):
    asked = []

    def run(names, wanted, **options):
        asked.append((wanted, options["interpreters"]))
        return fixture()

    monkeypatch.setattr(runner, "run", run)
    assert main(["bench", *arguments, "--python", "jax=/somewhere/python"]) == 0
    assert asked == [(peers_asked, {"jax": "/somewhere/python"})]
    capsys.readouterr()


def test_bench_list(capsys):
    assert main(["bench", "--list", "--cases", "wavenet_dilation8*"]) == 0
    assert capsys.readouterr().out.split() == ["wavenet_dilation8", "wavenet_dilation8_undo"]


@pytest.mark.parametrize(("arguments", "message"), [
    (["--cases", "nothing"], "no case is called nothing"),
    (["--peers", "numpy,cupy"], "'numpy,cupy' is not all, none or a list of numpy, "),
    (["--python", "torch"], "'torch' is not PEER=PATH"),
    (["--threads", "0"], "'0' is not a number of at least 1"),
    (["--random", "-1"], "'-1' is not a number of at least 1"),
    (["--list", "--random", "3", "--seed", "-5"], "'-5' is not a number of at least 0"),
    (["--list", "--random", "3", "--seed", "1.5"], "'1.5' is not a number of at least 0"),
])
def test_bench_refuses(arguments, message, capsys):
    assert main(["bench", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_png_without_matplotlib_is_refused_before_anything_is_measured(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr(runner, "run", lambda *args, **options: pytest.fail("measured"))
    assert main(["bench", "--png", "x.png"]) == 1
    assert 'pip install "s2dq[bench]"' in capsys.readouterr().err


def test_where_nothing_can_be_written_nothing_is_measured(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(runner, "run", lambda *args, **options: pytest.fail("measured"))
    assert main(["bench", "--json", str(tmp_path / "missing" / "result.json")]) == 1
    assert "no such directory" in capsys.readouterr().err
    for folder in (str(tmp_path), ""):  # the empty path is the folder that it is in
        assert main(["bench", "--json", folder]) == 1
        assert "not a regular file" in capsys.readouterr().err


def test_unusable_interpreter_is_one_line(tmp_path, capsys):
    assert main(["bench", "--cases", "tiny_s2b", "--peers", "numpy", "--python", f"numpy={tmp_path}/none"]) == 1
    assert "none" in capsys.readouterr().err


def test_bench_needs_numpy_alone():
    """The parent process imports no peer, and neither do the modules of the peers."""
    program = ("import sys, s2dq.cli\n"
               "from s2dq.bench import peers, runner\n"
               "[peers.load(name) for name in peers.NAMES]\n"
               "print([name for name in ('torch', 'tensorflow', 'jax', 'numba', 'matplotlib') if name in sys.modules])")
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    assert importlib.util.find_spec("s2dq.bench.worker") is not None

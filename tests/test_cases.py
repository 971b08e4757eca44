"""The list of named cases spans what it promises, and every case gives what the reference gives."""

import re
import subprocess
import sys
from math import prod

import numpy as np
import pytest

import s2dq
from s2dq.bench import cases

LAYOUTS = {"NWC", "NHWC", "NDHWC", "NCW", "NCHW", "NCDHW", "NCHW_VECT_C"}


def of_operator(*names):
    return [case for case in cases.CASES if case.operator in names]


def argument(case, name):
    return case.arguments.get(name)


def check_against_reference(case, rng):
    x = cases.make_input(case, rng)
    expected = case.call(s2dq.reference, x)
    out = np.empty(expected.shape, expected.dtype)
    out.view(np.uint8).fill(0xA5)

    assert case.call(s2dq, x, out=out) is out
    # Bits, not values: a NaN or a negative zero counts as it is.
    np.testing.assert_array_equal(out.view(np.uint8), expected.view(np.uint8), strict=True)


@pytest.mark.parametrize("case", cases.CASES, ids=lambda case: case.name)
def test_case_gives_what_the_reference_gives(case, rng):
    check_against_reference(case, rng)


@pytest.mark.parametrize("index", range(60))
def test_random_case_gives_what_the_reference_gives(index, rng):
    seed = int(rng.integers(2**31))
    case = cases.random_cases(seed, index + 1, largest=2**16)[index]
    print(f"random_cases({seed}, {index + 1}, largest=2**16)[{index}]: {case}")  # shown if the test fails
    check_against_reference(case, rng)


@pytest.mark.parametrize("case", cases.PREPROCESSING, ids=lambda case: case.name)
def test_preprocessing_case_gives_what_the_reference_gives(case, rng):
    frames = cases.make_input(case, rng)
    expected = case.call(s2dq.reference, frames)
    out = np.empty(expected.shape, expected.dtype)
    out.view(np.uint8).fill(0xA5)

    assert s2dq.Preprocessor(**case.arguments)(frames, out=out) is out
    np.testing.assert_array_equal(out, expected, strict=True)


def check_tags(case):
    assert set(case.tags) <= set(cases.TAGS)
    assert ("small" in case.tags) == (prod(case.shape) * np.dtype(case.dtype).itemsize <= 1024)
    assert ("crop" in case.tags) == bool(case.frame)
    assert ("pad" in case.tags) == bool(np.any(argument(case, "paddings") or 0))
    assert ("cut" in case.tags) == bool(np.any(argument(case, "crops") or 0))
    assert ("convert" in case.tags) == (argument(case, "out_format") is not None)


@pytest.mark.parametrize("case", cases.CASES, ids=lambda case: case.name)
def test_tags_say_what_the_case_is(case):
    check_tags(case)


def test_names_are_unique_words():
    names = [case.name for case in (*cases.CASES, *cases.PREPROCESSING)]
    assert len(set(names)) == len(names) >= 150
    assert [name for name in names if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name)] == []
    assert [cases.find(name).name for name in names] == names


def test_every_operator_is_there():
    rearranging = {"space_to_depth", "depth_to_space", "space_to_batch_nd", "batch_to_space_nd"}
    assert {case.operator for case in cases.CASES} == rearranging | {"pack_vect_c", "unpack_vect_c"}


@pytest.mark.parametrize("operator", ["space_to_depth", "depth_to_space"])
def test_depth_operators_cover_layouts_modes_and_blocks(operator):
    group = of_operator(operator)
    assert {argument(case, "data_format") for case in group} == LAYOUTS
    pairs = {(argument(case, "data_format"), argument(case, "mode") or "DCR") for case in group}
    planar = {(layout, mode) for layout in ("NHWC", "NCHW") for mode in ("DCR", "CRD", "focus")}
    assert planar <= pairs
    assert {2, 3, 4} <= {argument(case, "block_size") for case in group}


def test_cases_cover_blocks_element_sizes_channels_and_conversions():
    depth = of_operator("space_to_depth", "depth_to_space")
    assert {1, 2, 3, 4, 8} <= {argument(case, "block_size") for case in depth}
    assert {np.dtype(case.dtype).itemsize for case in cases.CASES} >= {1, 2, 4, 8}
    assert {np.dtype(case.dtype).kind for case in cases.CASES} >= set("iuf")
    last = [case.shape[-1] for case in depth if argument(case, "data_format") == "NHWC"]
    first = [case.shape[1] for case in depth if argument(case, "data_format") == "NCHW"]
    assert {1, 3, 4, 12, 16, 27, 48, 64, 512} <= {*last, *first}
    converted = {(argument(case, "data_format"), argument(case, "out_format")) for case in depth}
    assert {("NHWC", "NCHW"), ("NHWC", "NCHW_VECT_C"), ("NCHW", "NHWC"), ("NCHW_VECT_C", "NHWC")} <= converted
    assert {1, 32} <= {case.shape[0] for case in depth}


def test_cases_cover_sizes_and_maps():
    sizes = sorted(map(cases.input_nbytes, cases.CASES))
    assert sizes[0] == 64 and sizes[-1] == 2**27
    for around in (2**17, 2**20, 2**24, 2**25):  # where copies change their speed
        assert any(0.7 * around <= size <= 1.4 * around for size in sizes), around
    assert sum(size >= 2**26 for size in sizes) >= 4
    maps = {case.shape[2:] for case in cases.CASES if argument(case, "data_format") == "NCHW" and case.shape[1] >= 256}
    assert {(7, 7), (14, 14), (28, 28)} <= maps


def test_batch_operators_cover_channels():
    group = of_operator("space_to_batch_nd", "batch_to_space_nd")
    assert {1, 256} <= {case.shape[-1] for case in group}


def test_batch_operators_cover_one_to_three_block_dims():
    for operator in ("space_to_batch_nd", "batch_to_space_nd"):
        assert {len(argument(case, "block_shape")) for case in of_operator(operator)} == {1, 2, 3}


def test_packing_covers_both_layouts_and_word_sizes():
    group = of_operator("pack_vect_c")
    assert {argument(case, "data_format") for case in group} == {"NCHW", "NHWC"}
    assert {argument(case, "vect") for case in group} >= {4, 8, 16, 32}
    assert any("ragged" in case.tags for case in group)
    assert {case.shape[-1] for case in of_operator("unpack_vect_c")} >= {4, 32}


def test_preprocessing_cases_cover_what_frames_and_models_ask_for():
    frames = cases.PREPROCESSING
    assert len(frames) >= 25 and cases.NAMED == (*cases.CASES, *frames)
    assert {case.operator for case in frames} == {"preprocess"} and {case.dtype for case in frames} == {"uint8"}
    layouts = {(argument(case, "data_format") or "NHWC", argument(case, "block_size") or 1) for case in frames}
    assert {(layout, block) for layout in ("NHWC", "NCHW") for block in (1, 2, 4)} <= layouts
    assert {("NCHW_VECT_C", 1), ("NCHW_VECT_C", 2), ("NCHW_VECT_C", 4)} <= layouts
    three_tables = {case.shape for case in frames if argument(case, "std") and isinstance(argument(case, "std"), tuple)}
    assert {(1, 640, 640, 3), (1, 1080, 1920, 3), (32, 224, 224, 3)} <= three_tables
    for name, values in (("vect", {None, 16, 32}), ("mode", {None, "CRD", "focus"}), ("dtype", {None, "uint8"}),
                         ("reverse_channels", {None, True}), ("mean", {None, 0.5, cases.IMAGENET["mean"]}),
                         ("input_format", {None, "NCHW"})):
        assert {argument(case, name) for case in frames} == values
    assert {bool(argument(case, "size")) for case in frames} == {True, False}


def test_random_cases_are_the_same_for_the_same_seed():
    drawn = cases.random_cases(7, 50)
    assert drawn == cases.random_cases(7, 50) == [cases.find(f"random_7_{index}") for index in range(50)]
    assert drawn[:10] == cases.random_cases(7, 10)
    assert drawn != cases.random_cases(8, 50)


def test_random_cases_span_what_the_named_ones_do():
    drawn = cases.random_cases(1, 600)
    for case in drawn:
        check_tags(case)
    assert {case.operator for case in drawn} == {case.operator for case in cases.CASES}
    assert {tag for case in drawn for tag in case.tags} == set(cases.TAGS)
    assert {argument(case, "data_format") for case in drawn} == LAYOUTS | {None}
    assert {argument(case, "mode") for case in drawn} == {None, "CRD", "focus"}
    assert {argument(case, "block_size") for case in drawn} == {None, 1, 2, 3, 4, 8}
    assert {np.dtype(case.dtype).itemsize for case in drawn} == {1, 2, 4, 8}


def test_random_cases_have_sizes_that_are_log_uniform():
    sizes = np.log2([cases.input_nbytes(case) for case in cases.random_cases(3, 600)])
    assert 6 <= sizes.min() and sizes.max() <= 25
    counts, _ = np.histogram(sizes, bins=[6, 10, 14, 18, 22, 25])
    assert (counts >= 60).all(), counts  # of 600, and 90 to 126 expected


def test_make_input_repeats_and_crops():
    case = cases.find("camera_crop_640_of_1080p")
    x, again = (cases.make_input(case, np.random.default_rng(7)) for _ in range(2))
    np.testing.assert_array_equal(x, again, strict=True)
    assert x.shape == case.shape and x.base is not None
    assert x.strides == (1080 * 1920 * 3, 1920 * 3, 3, 1)
    assert len(np.unique(x)) == 256


def test_list_loads_by_path_without_the_package():
    program = (
        "import importlib.util, sys\n"
        "sys.modules['s2dq'] = None\n"  # any import of the package is an ImportError now
        "spec = importlib.util.spec_from_file_location('cases', sys.argv[1])\n"
        "module = sys.modules['cases'] = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(module)\n"
        "print(len(module.CASES))\n"
    )
    command = [sys.executable, "-c", program, cases.__file__]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout) == len(cases.CASES)

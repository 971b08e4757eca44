"""The public surface is the one that was promised, and every part of it is documented."""

import inspect
import re
from pathlib import Path

import pytest

import s2dq

# Names, order and defaults are fixed: other programs are written against them.
SIGNATURES = {
    "space_to_depth": "(x, block_size, data_format='NHWC', *, mode='DCR', out_format=None, vect=4, channels=None, "
                      "paddings=None, pad_value=None, out=None, num_threads=None)",
    "depth_to_space": "(x, block_size, data_format='NHWC', *, mode='DCR', out_format=None, vect=4, channels=None, "
                      "crops=None, out=None, num_threads=None)",
    "space_to_batch_nd": "(x, block_shape, paddings, *, pad_value=None, out=None, num_threads=None)",
    "batch_to_space_nd": "(x, block_shape, crops, *, out=None, num_threads=None)",
    "space_to_batch": "(x, block_shape, paddings, *, pad_value=None, out=None, num_threads=None)",
    "batch_to_space": "(x, block_shape, crops, *, out=None, num_threads=None)",
    "pack_vect_c": "(x, data_format='NCHW', *, vect=4, pad_value=0, out=None, num_threads=None)",
    "unpack_vect_c": "(x, data_format='NCHW', *, channels=None, out=None, num_threads=None)",
    "quantize": "(x, scale, zero_point, dtype='int8', *, axis=None, out=None, num_threads=None)",
    "dequantize": "(q, *, out=None, num_threads=None)",
    "requantize": "(q, scale, zero_point, dtype=None, *, out=None, num_threads=None)",
    "QuantizedTensor": "(values, scale, zero_point, *, axis=None)",
    "Preprocessor": "(*, scale=None, zero_point=0, dtype='int8', mean=None, std=None, rescale=0.00392156862745098, "
                    "input_format='NHWC', data_format='NHWC', block_size=1, mode='DCR', vect=4, "
                    "reverse_channels=False, size=None, pad_value=114, num_threads=None)",
    "Postprocessor": "(*, scale=None, zero_point=0, dtype='int8', mean=None, std=None, rescale=0.00392156862745098, "
                     "input_format='NHWC', data_format='NHWC', block_size=1, mode='DCR', vect=4, "
                     "reverse_channels=False, size=None, pad_value=114, num_threads=None)",
    "set_num_threads": "(n)",
    "get_num_threads": "()",
    "show_config": "()",
}
CLASSES = ("Postprocessor", "Preprocessor", "QuantizedTensor")
FUNCTIONS = [name for name in SIGNATURES if name not in CLASSES]
OPERATORS = FUNCTIONS[:8]
CONVERSIONS = ("quantize", "dequantize", "requantize")
ALIASES = ("space_to_batch", "batch_to_space")  # their sections may point to those of the operators they are


def signature_of(name):
    """The signature as text, annotations apart."""
    signature = inspect.signature(getattr(s2dq, name))
    bare = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in signature.parameters.values()]
    return str(inspect.Signature(bare))


def sections_of(documented):
    """``{section: text}`` of a NumPy-style docstring; the text before the first section is under ""."""
    lines = inspect.getdoc(documented).splitlines()
    sections, current = {"": []}, ""
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if line and following and set(following) == {"-"}:
            assert len(following) == len(line), f"underline of {line!r} has another length"
            current = line
            assert current not in sections, f"{current} twice"
            sections[current] = []
        elif set(line) != {"-"}:
            sections[current].append(line)
    return {name: "\n".join(text).strip() for name, text in sections.items()}


def documented_names(section):
    """The names of a Parameters section: ``a, b : type`` at the left margin."""
    return [name.strip() for line in section.splitlines() if re.match(r"\S.* : ", line)
            for name in line.split(" : ")[0].split(",")]


@pytest.mark.parametrize("name", SIGNATURES)
def test_signature(name):
    assert signature_of(name) == SIGNATURES[name]


def test_public_names():
    assert set(s2dq.__all__) >= {*SIGNATURES, "reference"}
    for name in s2dq.__all__:
        assert hasattr(s2dq, name), name
    assert re.fullmatch(r"\d+\.\d+\.\d+([a-z]+\d+)?(\.dev\d+)?", s2dq.__version__)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_sections(name):
    """The sections there have to be, with something in them, in the order of the NumPy style."""
    function = getattr(s2dq, name)
    sections = sections_of(function)
    required = {"Examples"}
    if inspect.signature(function).parameters:
        required |= {"Parameters", "Raises"}
    if name in (*OPERATORS, *CONVERSIONS, "get_num_threads"):
        required |= {"Returns"}
    if name in (*OPERATORS, *CONVERSIONS):
        required |= {"Raises", "See Also"}
    assert required <= set(sections), f"{name} lacks {sorted(required - set(sections))}"
    assert all(sections.values()), f"{name}: empty {[section for section, text in sections.items() if not text]}"
    order = ["", "Parameters", "Returns", "Raises", "See Also", "Notes", "References", "Examples"]
    assert list(sections) == [section for section in order if section in sections]


@pytest.mark.parametrize("name", [*FUNCTIONS, *CLASSES])
def test_first_line(name):
    """One sentence on one line, and more about the rule below it for the operators."""
    first, *rest = sections_of(getattr(s2dq, name))[""].split("\n\n")
    assert re.fullmatch(r"[A-Z][^\n]{10,}\.", first), first
    assert rest or name not in ("space_to_depth", "depth_to_space", "space_to_batch_nd", "batch_to_space_nd")


@pytest.mark.parametrize("name", [*FUNCTIONS, *CLASSES])
def test_every_parameter_is_documented(name):
    parameters = list(inspect.signature(getattr(s2dq, name)).parameters)
    documented = documented_names(sections_of(getattr(s2dq, name)).get("Parameters", ""))
    assert documented == parameters


@pytest.mark.parametrize("name", [name for name in (*OPERATORS, *CONVERSIONS) if name not in ALIASES])
def test_raises_lists_the_three_exceptions(name):
    raised = re.findall(r"^(\w+)$", sections_of(getattr(s2dq, name))["Raises"], re.MULTILINE)
    assert raised == ["TypeError", "ValueError", "MemoryError"]


@pytest.mark.parametrize("name", [*OPERATORS, *CONVERSIONS])
def test_see_also_names_exist(name):
    """The inverse and the twin in `reference`, and nothing that is not there."""
    section = sections_of(getattr(s2dq, name))["See Also"]
    names = [line.split(" : ")[0] for line in section.splitlines() if re.match(r"\S", line)]
    assert f"s2dq.reference.{name}" in names or name in ALIASES, names
    for full in (one.strip() for line in names for one in line.split(",")):
        found = s2dq
        for part in full.removeprefix("s2dq.").split("."):
            assert hasattr(found, part), f"{name}: See Also {full}"
            found = getattr(found, part)


@pytest.mark.parametrize("name", OPERATORS)
def test_reference_has_the_same_arguments(name):
    """The twin takes what the operator takes, but for `out` and `num_threads`."""
    def parameters(function):
        return [(parameter.name, parameter.kind, parameter.default)
                for parameter in inspect.signature(function).parameters.values()
                if parameter.name not in ("out", "num_threads")]

    assert parameters(getattr(s2dq.reference, name)) == parameters(getattr(s2dq, name))


def test_tests_that_the_promise_names_exist():
    """docs/reliability.md says how each part of the promise is tested."""
    tests = Path(__file__).parent
    page = (tests.parent / "docs" / "reliability.md").read_text()
    files = set(re.findall(r"`tests/(test_\w+\.py)`", page))
    named = set(re.findall(r"`(test_\w+)`", page))
    assert len(files) > 5 and len(named) > 20
    assert not [file for file in files if not (tests / file).exists()]
    sources = "".join((tests / file).read_text() for file in files)
    there = set(re.findall(r"^def (test_\w+)", sources, re.MULTILINE))
    assert named <= there, sorted(named - there)

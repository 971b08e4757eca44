"""What the pages of docs/ show and say besides sessions: pictures, the table of systems, sizes, links."""

import importlib.util
import re
import shlex
from math import prod
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import s2dq
from s2dq import compat
from s2dq.cli import build_parser

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


def load(name):
    """A script of docs/ as a module."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


pictures = load("pictures")


# ---- pictures


def labels_of(rows):
    return [str(label) for row in rows for panel in row.panels for label in panel.labels.ravel().tolist()]


def labels_in(svg):
    cells = ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")
    return [cell.text for cell in cells if cell.get("class") == "label"]


def test_the_picture_of_the_readme_is_what_its_script_draws(monkeypatch, tmp_path):
    monkeypatch.setattr(pictures, "README", tmp_path / "drawn.svg")
    pictures.main([])
    assert (tmp_path / "drawn.svg").read_text() == (DOCS / "rearrangements.svg").read_text()
    assert "(docs/rearrangements.svg)" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("name", pictures.SCENES)
def test_pictures_show_what_the_reference_gives(name):
    """Labels and colours by the operators and by their twins; the twins' are those in the SVG."""
    ours, theirs = (list(pictures.SCENES[name](operators)) for operators in (s2dq, s2dq.reference))
    assert [row.caption for row in ours] == [row.caption for row in theirs]
    for row, twin in zip(ours, theirs):
        assert [panel.title for panel in row.panels] == [panel.title for panel in twin.panels]
        for panel, other in zip(row.panels, twin.panels):
            np.testing.assert_array_equal(panel.labels, other.labels)
            np.testing.assert_array_equal(panel.codes, other.codes)
    assert labels_in(pictures.draw(ours)) == labels_of(theirs) != []


def test_every_picture_is_on_a_page(tmp_path):
    pictures.write_all(tmp_path)
    shown = set(re.findall(r"_generated/(\w+)\.svg", "".join(page.read_text() for page in DOCS.glob("*/*.md"))))
    assert shown | {"rearrangements"} == {path.stem for path in tmp_path.iterdir()}


def test_a_wrong_operator_would_be_another_picture():
    class Wrong:
        """Of which one operator is another."""

        space_to_depth = staticmethod(lambda x, *arguments, **keywords: s2dq.space_to_depth(
            x, *arguments, **{**keywords, "mode": "CRD"}))
        space_to_batch_nd = staticmethod(s2dq.space_to_batch_nd)

    assert pictures.draw(pictures.rearrangements(Wrong), width=500) != (DOCS / "rearrangements.svg").read_text()


# ---- the table of systems


def rows_of(page):
    """(section, system, pattern, lanes, call) of each call in the tables of docs/systems.md that have patterns."""
    section = ""
    for line in page.splitlines():
        if line.startswith("## "):
            section = line[3:]
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) == 6 and "->" in cells[4]:
            pattern = " ".join(re.findall(r"`([^`]+)`", cells[4]))
            lanes = re.search(r"v = (\d+)", cells[4])
            for call in re.findall(r"`([^`]+)`", cells[3]):
                yield section, cells[1], pattern, int(lanes[1]) if lanes else 0, call


CALLS = list(rows_of((DOCS / "systems.md").read_text(encoding="utf-8")))
BLOCK, SIZES = 2, {"n": 2, "c": 3, "k": 8, "h": 4, "w": 6, "i": 3, "j": 2, "v": 4}
PLACES = "pqo"  # letters that stand for places in a block


def parsed(side):
    """``n (i p) c`` -> [[n], [i, p], [c]]."""
    return [group.strip("()").split() for group in re.findall(r"\([^)]*\)|\S+", side)]


def rearranged(x, pattern, sizes):
    """What a pattern says, by splitting, transposing and joining axes."""
    left, right = map(parsed, pattern.split("->"))
    letters = [letter for group in left for letter in group]
    assert sorted(letters) == sorted(letter for group in right for letter in group)
    split = x.reshape([sizes[letter] for letter in letters])
    order = [letters.index(letter) for group in right for letter in group]
    return split.transpose(order).reshape([prod(sizes[letter] for letter in group) for group in right])


def blocked_axes(side):
    """Axes made of a block's count and its places."""
    return [axis for axis, group in enumerate(parsed(side)) if len(group) == 2 and group[1] in PLACES]


@pytest.mark.parametrize(("section", "system", "pattern", "lanes", "call"), CALLS,
                         ids=[f"{system}-{call}" for _, system, _, _, call in CALLS])
def test_call_of_the_table_is_its_pattern(section, system, pattern, lanes, call, rng):
    sizes = {**SIZES, **dict.fromkeys(PLACES, BLOCK), "v": lanes or SIZES["v"]}
    left, right = pattern.split("->")
    whole = [prod(sizes[letter] for letter in group) for group in parsed(left)]
    pads, cuts, zero_point = [[1, 3], [0, 2]], [[1, 0], [0, 1]], 7
    margins = [(0, 0)] * len(whole)
    if section == "space_to_batch":
        for axis, pair in zip(blocked_axes(left), pads, strict=True):
            margins[axis] = pair
    shape = [extent - sum(pair) for extent, pair in zip(whole, margins)]
    assert section != "space_to_batch" or min(shape) > 0
    x = rng.integers(-128, 128, shape).astype(np.int8)
    quantized = re.search(r"\bq\b", call)
    padded = np.pad(x, margins, constant_values=zero_point if quantized else 0)
    expected = rearranged(padded, pattern, sizes)
    if "crops" in call or "begin" in call and section == "batch_to_space":
        kept = [slice(None)] * expected.ndim
        for axis, (start, end) in zip(blocked_axes(right), cuts, strict=True):
            kept[axis] = slice(start, expected.shape[axis] - end)
        expected = expected[tuple(kept)]
    begin, end = zip(*(pads if section == "space_to_batch" else cuts))
    names = {"s2dq": s2dq, "compat": compat, "b": BLOCK, "x": x, "paddings": pads, "crops": cuts, "begin": begin,
             "end": end, "q": s2dq.QuantizedTensor(x, 0.5, zero_point)}
    if "compat.torch" in call:
        names["x"] = pytest.importorskip("torch").from_numpy(x)
    result = eval(call, names)
    if quantized:
        assert (result.scale, result.zero_point) == (0.5, zero_point)
        result = result.values
    np.testing.assert_array_equal(np.asarray(result), expected, strict=True)


def test_table_has_every_system_and_operator():
    sections = {section for section, *_ in CALLS}
    assert sections == {"space_to_depth", "depth_to_space", "space_to_batch", "batch_to_space", "Words of channels"}
    for module in ("tensorflow", "tensorflow.v1", "onnx", "openvino", "nnapi", "torch"):
        assert any(call.startswith(f"compat.{module}.") for *_, call in CALLS), module
    operators = {re.match(r"s2dq\.(\w+)", call)[1] for *_, call in CALLS if call.startswith("s2dq.")}
    assert len(CALLS) > 60
    assert operators == {"space_to_depth", "depth_to_space", "space_to_batch_nd", "space_to_batch", "batch_to_space_nd",
                         "batch_to_space", "pack_vect_c", "unpack_vect_c"}


def test_patterns_are_told_apart(rng):
    """A pattern of another order would be seen."""
    x = np.arange(2 * 3 * 6 * 4).reshape(2, 3, 6, 4)
    sizes = {**SIZES, **dict.fromkeys(PLACES, BLOCK)}
    patterns = [row[2] for row in CALLS if row[0] == "space_to_depth" and row[2].startswith("n c (i p) (j q)")]
    results = {rearranged(x, pattern, sizes).tobytes() for pattern in patterns}
    assert len(results) == len(set(patterns)) == 3


# ---- numbers and links


def test_sizes_of_threads_are_those_of_the_kernels():
    source, page = (ROOT / "s2dq" / "_kernels.pyx").read_text(), (DOCS / "threads.md").read_text()
    shifts = [int(re.search(rf"{name} = 1 << (\d+)", source)[1])
              for name in ("PARALLEL_ASKED", "PARALLEL_AWAKE", "PARALLEL_ASLEEP")]
    told = re.findall(r"\| (\d+) (KiB|MiB) \|", page)
    assert [int(number) << {"KiB": 10, "MiB": 20}[unit] for number, unit in told] == [1 << shift for shift in shifts]
    awake = int(re.search(r"AWAKE = (\d{4,})", source)[1])
    assert f"less than {awake // 1_000_000} ms ago" in page
    small = 1 << int(re.search(r"int64_t SMALL = 1 << (\d+)", source)[1])
    assert f"results above {small >> 10} KiB release the GIL" in page


@pytest.mark.parametrize("page", ["command", "speed"])
def test_commands_that_pages_show_are_understood(page):
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    lines = [line for block in re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
             for line in block.splitlines() if line.startswith("s2dq ")]
    assert lines
    for line in lines:
        arguments = build_parser().parse_args(shlex.split(line)[1:])  # an unknown option raises
        assert arguments.command == line.split()[1]


@pytest.mark.parametrize("page", ["README.md", *sorted(
    path.relative_to(ROOT).as_posix() for path in DOCS.glob("**/*.md") if "_build" not in path.parts)])
def test_links_to_files_lead_somewhere(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#\s]+)", text):
        if not target.startswith("http") and "_generated/" not in target:
            assert (ROOT / page).parent.joinpath(target).exists(), target


def test_every_page_is_in_the_table_of_contents():
    named = set()
    for index in DOCS.glob("**/*.md"):
        for tree in re.findall(r"^```\{toctree\}\n(.*?)^```", index.read_text(), re.MULTILINE | re.DOTALL):
            entries = [line for line in tree.splitlines() if line and not line.startswith(":")]
            named |= {(index.parent / f"{entry}.md").resolve() for entry in entries}
    pages = {path.resolve() for path in DOCS.glob("**/*.md") if not {"_build", "_generated"} & set(path.parts)}
    assert named == pages - {(DOCS / "index.md").resolve()}

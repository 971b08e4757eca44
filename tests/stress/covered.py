"""Print which lines were never run, and fail below a floor: python covered.py PYTHON.json GCOV.json C [--floors]

PYTHON.json is what `coverage json` writes. C is what Cython made, which says which line of the .pyx it comes from, and
GCOV.json what `gcov --json-format --stdout` prints of it. tests/stress/coverage makes all three.
"""

import argparse
import json
import re
import sys
from pathlib import Path
from typing import NamedTuple

# Percent of the lines, of the whole suite, below what README.md beside this file says was measured.
FLOORS = {"Python": 99.3, "Cython": 98.5}


class File(NamedTuple):
    kind: str
    name: str
    lines: int
    missing: list  # line numbers


def of_python(report):
    """Files of the package as coverage has them."""
    for name, found in report["files"].items():
        yield File("Python", name, found["summary"]["num_statements"], found["missing_lines"])


def of_gcov(report, code):
    """The .pyx and the headers of the package; those that are compiled for each instruction set count as one.

    `code` is the text of the C. What it says of a statement holds for one line of C: lines behind are not statements of
    the .pyx, whatever their number is. Those have a comment.
    """
    statements = {int(number) for number in re.findall(r'/\* "s2dq/_kernels\.pyx":(\d+)$', code, re.MULTILINE)}
    runs = {}
    for found in report["files"]:
        name = found["file"]
        at = name.rfind("s2dq/_")  # headers are named by the folder that the build found them in
        if at < 0 or not name.endswith((".pyx", ".h")):
            continue
        counts = runs.setdefault(name[at:], {})
        for line in found["lines"]:
            number = line["line_number"]
            if name.endswith(".pyx") and number not in statements:
                continue
            counts[number] = counts.get(number, 0) + line["count"]
    for name, counts in runs.items():
        kind = "Cython" if name.endswith(".pyx") else "C"
        yield File(kind, name, len(counts), sorted(number for number, count in counts.items() if not count))


def ranges(numbers):
    """Text of ascending numbers: ``3, 7-9``. IN: ascending."""
    found = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(f"{first}-{last}" if last > first else f"{first}" for first, last in found)


def percent(lines, missing):
    return 100 * (lines - missing) / lines if lines else 100.0


def table(files):
    """Lines of text: every file, and what was not run of it."""
    width = max(len(file.name) for file in files)
    yield f"{'file':{width}} {'lines':>6} {'not run':>8} {'%':>6}  which"
    for file in sorted(files, key=lambda file: (file.kind != "Python", file.kind, file.name)):
        missing = len(file.missing)
        row = f"{file.name:{width}} {file.lines:6} {missing:8} {percent(file.lines, missing):6.1f}"
        yield f"{row}  {ranges(file.missing)}".rstrip()


def totals(files):
    """``{kind: percent of its lines that were run}``"""
    kinds = sorted({file.kind for file in files})
    sums = {kind: [(file.lines, len(file.missing)) for file in files if file.kind == kind] for kind in kinds}
    return {kind: percent(*map(sum, zip(*of_files))) for kind, of_files in sums.items()}


def below(run, floors):
    """What is below its floor, or was not measured at all, in words."""
    for kind, floor in floors.items():
        if kind not in run:
            yield f"{kind}: nothing was measured"
        elif run[kind] < floor:
            yield f"{kind}: {run[kind]:.2f} % of the lines were run, the floor is {floor} %"


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("python", type=Path)
    parser.add_argument("gcov", type=Path)
    parser.add_argument("code", type=Path, metavar="c")
    parser.add_argument("--floors", action="store_true", help="fail below those of the whole suite")
    options = parser.parse_args(arguments)
    files = [
        *of_python(json.loads(options.python.read_text())),
        *of_gcov(json.loads(options.gcov.read_text()), options.code.read_text()),
    ]
    print(*table(files), sep="\n")
    run = totals(files)
    print("lines run:", ", ".join(f"{kind} {of_kind:.2f} %" for kind, of_kind in run.items()))
    errors = list(below(run, FLOORS)) if options.floors else []
    print(*errors, sep="\n", end="\n" if errors else "")
    return bool(errors)


if __name__ == "__main__":
    sys.exit(main())

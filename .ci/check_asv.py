"""Check that every benchmark of the newest asv results gave a finite number for every parameter.

    python check_asv.py RESULTS_FOLDER
"""

import json
import math
import sys
from pathlib import Path


def without_number(values):
    """Tell whether a benchmark failed (None) or was skipped (NaN) for any of its parameters."""
    return values is None or any(value is None or not math.isfinite(value) for value in values)


def main(folder):
    files = [path for path in Path(folder).glob("*/*.json") if path.name != "machine.json"]
    if not files:
        sys.exit(f"no results in {folder}")
    newest = json.loads(max(files, key=lambda path: path.stat().st_mtime).read_text())
    column = newest["result_columns"].index("result")
    results = {name: row[column] for name, row in newest["results"].items()}
    bad = sorted(name for name, values in results.items() if without_number(values))
    for name in bad:
        print(f"{name}: {results[name]}")
    if bad or not results:
        sys.exit(f"{len(bad)} of {len(results)} benchmarks have parameters without a number")
    print(f"{len(results)} benchmarks, {sum(map(len, results.values()))} numbers")


main(*sys.argv[1:])

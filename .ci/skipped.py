"""Fail where a test has run nowhere: python .ci/skipped.py REPORTS [TESTS]

REPORTS is the folder that S2DQ_TEST_REPORT named in all runs of pytest: a file for each run, which says of every test
that was reached why it was skipped, or "" if it ran (tests/conftest.py). A test that was skipped in every one of them
is an error, and so is a test file below TESTS of which nothing ran, unless ELSEWHERE says where it does run.
"""

import json
import sys
from fnmatch import fnmatchcase
from pathlib import Path

# Tests, by pattern, that need a machine or an interpreter no stage has, and who runs them.
ELSEWHERE = {
    "tests/test_free_threading.py::test_the_gil_stays_off": "tests/stress/free_threaded",
}


def never_ran(reports):
    """{test: reason} of what was skipped in every report that has it."""
    reasons, ran = {}, set()
    for report in reports:
        for name, reason in report.items():
            if reason:
                reasons[name] = reason
            else:
                ran.add(name)
                ran.add(name.partition("::")[0])  # a file that is skipped as a whole somewhere
    return {name: reason for name, reason in reasons.items() if name not in ran}


def missing_files(reports, files):
    """Files of tests none of which was reached by a run."""
    reached = {name.partition("::")[0] for report in reports for name in report}
    return sorted(set(files) - reached)


def main(folder, tests="tests"):
    reports = [json.loads(path.read_text()) for path in sorted(Path(folder).glob("*.json"))]
    if not reports:
        return f"no reports in {folder}"
    root = Path(tests).resolve()
    files = [path.relative_to(root.parent).as_posix() for path in root.rglob("test_*.py")]
    errors = [f"{name}: reached by no run" for name in missing_files(reports, files)]
    for name, reason in sorted(never_ran(reports).items()):
        if any(fnmatchcase(name, pattern) for pattern in ELSEWHERE):
            continue
        errors.append(f"{name}: skipped in every run ({reason})")
    print(*errors, sep="\n")
    print(f"{len(reports)} runs of pytest, {len(errors)} tests or files that ran in none of them")
    return bool(errors)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

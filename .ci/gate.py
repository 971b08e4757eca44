#!/usr/bin/env python3
"""Has a commit become slower than another? python .ci/gate.py BASE [HEAD] [options]

BASE and HEAD are commits, or wheels that exist; without HEAD it is the working tree. "previous" is the commit before
the package changed for the last time. Both are built, and the `track_` ratios to a copy of asv_bench, of this checkout
for both, are taken by one process for each, in turn on one processor. Ends with 1 and the names of those that take more
copies than the base by the factor, and with 0 where there are none.

What is measured once may be wrong by more than the factor, for it counts where arrays happen to lie. So what looks
slower is measured again, with other arrays in other processes, and only those figures count.

`--instructions` counts those of the portable kernels (valgrind), for machines where time says nothing: the same to a
thousandth at every run. `--prove N` shows N times that HEAD against itself passes, and that a HEAD whose driver takes
1.3 times as long does not.

Needs git, a C compiler, a package index, and Linux. Ends with 77 where it cannot compare: valgrind is asked for and
missing, or there is no history.
"""

import argparse
import importlib
import json
import os
import re
import select
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from itertools import product
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]
BENCHMARKS = ROOT / "asv_bench"
PACKAGE = ("s2dq", "setup.py")
MODULES = ("operators", "preprocess")  # one thread, data in the caches: what two builds can be compared by
TRACKS = r"ratio_to_copy"
FACTOR, COUNT_FACTOR = 1.15, 1.05
# Times that all cases are measured, and those that look slower. In each process arrays lie elsewhere: one and the same
# case took 2.0 to 2.6 copies on a Zen 3.
ROUNDS, CONFIRMING = 3, 11
SUSPICION = 0.6  # of the factor's way from 1: what is measured again
MOST_SUSPECTS = 20  # the worst ones: more than these are no accident
COUNTED_BYTES = 1 << 20  # of a result: instructions are counted at a fiftieth of the speed
DEADLINE = 300  # seconds for an answer of a process

# What `--prove` makes of the driver: a task takes 1.3 times as long.
DRIVER = "s2dq/_kernels.pyx"
TASK, SLOWER_TASK = "shift.run(shift.work, task)", "run_slower(shift, task)"
BEFORE = "cdef void work_on("
RUN_SLOWER = """\
cdef void run_slower(Shift *shift, int64_t task) noexcept nogil:
    cdef int64_t begun = s2dq_now(), end
    shift.run(shift.work, task)
    end = begun + (s2dq_now() - begun) * 13 // 10
    while s2dq_now() < end:
        pass


"""


# ------------------------------------------------------------------------------------------- in a measuring process


def load(package):
    """The benchmarks of this checkout, by name, for the s2dq of a folder: class, method, parameter."""
    sys.path[:0] = [str(package), str(BENCHMARKS)]
    import s2dq

    assert Path(s2dq.__file__).is_relative_to(package), s2dq.__file__
    found = {}
    for module in MODULES:
        for kind in vars(importlib.import_module(f"benchmarks.{module}")).values():
            if isinstance(kind, type) and kind.__module__ == f"benchmarks.{module}" and hasattr(kind, "params"):
                for method in filter(re.compile(TRACKS).search, dir(kind)):
                    for parameters in product(*kind.params):
                        name = f"{module}.{kind.__name__}.{method}({', '.join(map(str, parameters))})"
                        found[name] = kind, method, parameters
    return found


def set_up(kind, parameters):
    """A benchmark that is ready, or None where the commit lacks what it is about, or an argument of it."""
    benchmark = kind()
    try:
        benchmark.setup(*parameters)
    except (AttributeError, NotImplementedError, TypeError, ValueError):
        return None
    return benchmark


def serve_ratios(package):
    """Answer the names that come in, each with a ratio taken on new arrays."""
    found = load(package)
    print(json.dumps(list(found)), flush=True)
    for line in sys.stdin:
        kind, method, parameters = found[line.strip()]
        benchmark = set_up(kind, parameters)
        print(json.dumps(benchmark and getattr(benchmark, method)(*parameters)), flush=True)
        del benchmark


def run_for_counting(package, pattern):
    """Run one call of each case between two calls of getppid, where callgrind writes down its counts."""
    found = load(package)
    assert sys.modules["s2dq"]._kernels.isa() == "portable"
    names = []
    for name, (kind, method, parameters) in found.items():
        if method != "track_ratio_to_copy" or not re.search(pattern, name):
            continue
        benchmark = set_up(kind, parameters)
        if benchmark is None or benchmark.out.nbytes > COUNTED_BYTES:
            continue
        benchmark.call()
        os.getppid()
        benchmark.call()
        os.getppid()
        names.append(name)
    print(json.dumps(names))


# --------------------------------------------------------------------------------------------------------- two builds


class Failure(Exception):
    """What the user is told."""


class CannotCompare(Failure):
    """Something is missing that this machine or checkout may lack."""


def git(*arguments):
    done = subprocess.run(["git", "-c", "safe.directory=*", "-C", ROOT, *arguments], capture_output=True)
    if done.returncode:
        raise Failure(f"git {' '.join(arguments)}: {done.stderr.decode().strip()}")
    return done.stdout


def previous():
    """The commit before the package changed for the last time, be it in the working tree."""
    try:
        if git("status", "--porcelain", "--", *PACKAGE):
            return git("rev-parse", "HEAD").decode().strip()
        changed = git("log", "-1", "--format=%H", "--", *PACKAGE).decode().strip()
        return git("rev-parse", f"{changed}^").decode().strip()
    except (Failure, FileNotFoundError) as failure:
        raise CannotCompare(f"no earlier commit is known: {failure}") from None


def sources(commit, folder):
    """The files of a commit; of None, those that a commit of the working tree would hold."""
    folder.mkdir()
    if commit is not None:
        tarfile.open(fileobj=BytesIO(git("archive", commit))).extractall(folder, filter="data")
        return
    for name in git("ls-files", "-z", "--cached", "--others", "--exclude-standard").decode().split("\0"):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)


def package_of(side, folder, python, change=None):
    """A folder with the package of a commit (None: the working tree) or a wheel. `change` is made to the sources."""
    folder.mkdir()
    wheel = side
    if side is None or not side.endswith(".whl"):
        sources(side, folder / "source")
        if change:
            change(folder / "source")
        run(python, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder / "dist", folder / "source")
        (wheel,) = (folder / "dist").glob("*.whl")
    run(python, "-m", "pip", "install", "-q", "--no-deps", "--target", folder / "package", wheel)
    return folder / "package"


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise Failure(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")


def plant(source):
    """Make the driver of these sources slower."""
    text = (source / DRIVER).read_text()
    if text.count(TASK) != 2 or text.count(BEFORE) != 1:
        raise Failure(f"{DRIVER} no longer has what --prove changes")
    (source / DRIVER).write_text(text.replace(TASK, SLOWER_TASK).replace(BEFORE, RUN_SLOWER + BEFORE))


# --------------------------------------------------------------------------------------------------------- two figures


class Measurer:
    """A process with the package of one side."""

    def __init__(self, python, package):
        processor = max(os.sched_getaffinity(0))
        self._process = subprocess.Popen(
            [python, __file__, "--serve", package], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            cwd="/", env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
            preexec_fn=lambda: os.sched_setaffinity(0, {processor}),
        )  # fmt: skip
        self.names = self._answer()

    def ratio(self, name):
        self._process.stdin.write(f"{name}\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self):
        ready, _, _ = select.select([self._process.stdout], [], [], DEADLINE)
        line = ready and self._process.stdout.readline()
        if not line:
            raise Failure("a measuring process ended, or took too long")
        return json.loads(line)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.kill()
        with self._process:  # closes its pipes and waits
            pass


def ratios(python, packages, names, rounds):
    """{name: ([of the base], [of HEAD])}, from two new processes; without what the base does not have."""
    with Measurer(python, packages[0]) as base, Measurer(python, packages[1]) as head:
        taken = {name: ([], []) for name in names(head.names)}
        for number in range(rounds):
            for name, figures in taken.items():
                for side, figure in list(zip((base, head), figures))[:: -1 if number % 2 else 1]:
                    figure.append(side.ratio(name))
    check_kept([name for name, (base, _) in taken.items() if None not in base],
               [name for name, (_, head) in taken.items() if None not in head])
    return {name: sides for name, sides in taken.items() if None not in sides[0]}


def check_kept(names_of_base, names_of_head):
    """What cannot be measured any more is no pass."""
    lost = set(names_of_base) - set(names_of_head)
    if lost:
        raise Failure(f"the base runs this, and HEAD does not: {', '.join(sorted(lost))}")


def change(sides):
    base, head = sides
    return median(head) / median(base)


def slower(python, packages, pattern, factor):
    """(figures of all, figures of those that are slower); the latter were taken again."""
    seen = ratios(python, packages, lambda names: filter(re.compile(pattern).search, names), ROUNDS)
    suspects = sorted((name for name in seen if change(seen[name]) > 1 + SUSPICION * (factor - 1)),
                      key=lambda name: -change(seen[name]))[:MOST_SUSPECTS]
    again = {name: ([], []) for name in suspects}
    for _ in range(CONFIRMING if suspects else 0):
        for name, sides in ratios(python, packages, lambda _: suspects, 1).items():
            for figures, more in zip(again[name], sides):
                figures += more
    return seen | again, {name: sides for name, sides in again.items() if change(sides) > factor}


def counts(python, package, pattern, folder):
    """{name: instructions} of one call on the portable kernels."""
    folder.mkdir()
    done = subprocess.run(
        ["valgrind", "--tool=callgrind", "--dump-before=getppid", f"--callgrind-out-file={folder}/out",
         python, __file__, "--run-for-counting", package, pattern],
        cwd="/", capture_output=True, text=True,
        env=os.environ | {"S2DQ_ISA": "portable", "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1",
                          "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    if done.returncode:
        raise Failure(f"callgrind:\n{done.stdout}{done.stderr}")
    parts = sorted(folder.glob("out.*"), key=lambda path: int(path.suffix[1:]))
    totals = [int(re.search(r"^summary: (\d+)", part.read_text(), re.MULTILINE)[1]) for part in parts]
    names = json.loads(done.stdout)
    # One part ends before a call, the next after it.
    if len(totals) != 2 * len(names):
        raise Failure(f"callgrind wrote {len(totals)} counts for {len(names)} calls")
    return dict(zip(names, totals[1::2]))


def more_instructions(python, packages, pattern, factor, folder):
    with ThreadPoolExecutor(2) as pool:
        sides = list(pool.map(lambda side: counts(python, packages[side], pattern, folder / f"counts{side}"), (0, 1)))
    check_kept(*sides)
    seen = {name: ([count], [sides[1][name]]) for name, count in sides[0].items()}
    return seen, {name: both for name, both in seen.items() if change(both) > factor}


# --------------------------------------------------------------------------------------------------------- the command


def report(seen, bad, factor, unit):
    """Print what became slower, or what came nearest to it."""
    if not seen:
        raise Failure("no benchmark that both commits have")
    ordered = sorted(seen, key=lambda name: -change(seen[name]))
    for name in ordered if bad else ordered[:3]:
        if name in bad or not bad:
            base, head = map(median, seen[name])
            print(f"{name}: {base:.4g} -> {head:.4g} {unit}, {head / base:.2f} times as many")
    middle = median(map(change, seen.values()))
    verdict = f"{len(bad)} SLOWER by more than {factor}" if bad else f"none slower by more than {factor}"
    print(f"{len(seen)} benchmarks, {verdict}; the middle one takes {middle:.3f} times as many", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", nargs="?", help='commit, wheel or "previous"')
    parser.add_argument("head", nargs="?", help="commit or wheel; the working tree unless given")
    parser.add_argument("--factor", type=float, help=f"{FACTOR}, of instructions {COUNT_FACTOR}, unless given")
    parser.add_argument("--bench", default="", metavar="REGEX", help="of the benchmarks' names, such as int8x4")
    parser.add_argument("--instructions", action="store_true", help="count them on the portable kernels")
    parser.add_argument("--prove", type=int, default=0, metavar="N", help="HEAD against itself and slowed down")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="leave the wheel of BASE there")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--run-for-counting", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return serve_ratios(options.serve)
    if options.run_for_counting:
        return run_for_counting(*options.run_for_counting)
    if (options.base is None) == (options.prove == 0):
        parser.error("a commit to compare with, or --prove N")
    try:
        if options.instructions and not shutil.which("valgrind"):
            raise CannotCompare("no valgrind")
        if options.base == "previous":
            options.base = previous()
            print(f"the base is {options.base}", flush=True)
        with tempfile.TemporaryDirectory(prefix="s2dq-gate.") as folder:
            return judge(options, Path(folder))
    except CannotCompare as failure:
        print(f"NOT RUN: {failure}")
        return 77
    except Failure as failure:
        print(failure)
        return 2


def judge(options, folder):
    """Build both sides, compare them, and return the exit code."""
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv/bin/python"
    run(python, "-m", "pip", "install", "-q", "numpy", "threadpoolctl")
    wanted = [(options.base, None), (options.head, None)]
    if options.prove:
        wanted = [(None, None), (None, None), (None, plant)]
    with ThreadPoolExecutor(2) as pool:
        packages = list(pool.map(
            lambda number: package_of(wanted[number][0], folder / f"side{number}", python, wanted[number][1]),
            range(len(wanted)),
        ))  # fmt: skip
    if options.keep:
        for wheel in (folder / "side0/dist").glob("*.whl"):
            options.keep.mkdir(parents=True, exist_ok=True)
            shutil.copy(wheel, options.keep)
    if not options.prove:
        return int(compared(options, python, packages, folder / "all"))
    wrong = 0
    for number in range(options.prove):
        for head, expected in ((1, False), (2, True)):
            found = compared(options, python, [packages[0], packages[head]], folder / f"{number}.{head}")
            wrong += found != expected
            print(f"{number + 1}. {'slowed down' if expected else 'the same'}: {'fails' if found else 'passes'}\n")
    print(f"{2 * options.prove - wrong} of {2 * options.prove} as they should be")
    return int(wrong > 0)


def compared(options, python, packages, folder):
    """Report on two packages and tell whether HEAD's is slower."""
    if options.instructions:
        folder.mkdir()
        factor = options.factor or COUNT_FACTOR
        seen, bad = more_instructions(python, packages, options.bench, factor, folder)
    else:
        factor = options.factor or FACTOR
        seen, bad = slower(python, packages, options.bench, factor)
    report(seen, bad, factor, "instructions" if options.instructions else "copies")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())

"""Break the Python layer a little, many times over, and see whether a test notices: python tests/stress/mutants.py

Needs s2dq installed with what its tests need, and coverage (`pip install -e ".[test,mutants]"`). A mutant changes one
expression or statement of one file: an operator, a constant, a condition, an argument, a line that is left out. Each is
written into a copy of the package under a temporary directory and the tests of its file are run there until the first
fails, but for tests that do not run the changed lines, nor start a process that may: a run of all of them under
coverage tells. A run that takes too long counts as noticed.

    python tests/stress/mutants.py --files s2dq/_plan.py s2dq/_validate.py --jobs 2 --resume mutants.json
    python tests/stress/mutants.py --sample 100 --resume mutants.json
    python tests/stress/mutants.py --files s2dq/_plan.py --part 1/8
    python tests/stress/mutants.py --files s2dq/_validate.py --since v1.0

The last are those of what has been written since a commit. What `--resume FILE` holds is not run again. The parts are
the same on every machine, and after most edits. Survivors are printed with their change. Those that no test can notice,
for they mean the same, are listed with the reason in `equivalent_mutants.txt` beside this file, and are left out.
"""

import argparse
import ast
import contextlib
import copy
import importlib.util
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zlib
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PACKAGE = Path(importlib.util.find_spec("s2dq").origin).parent  # with its extension
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.txt")
# Of a file, the tests most likely to notice, the quickest first.
DRAWN = "recorded_plans.py::test_plans_of_drawn_problems_are_the_recorded_ones"
TESTS = {
    "s2dq/_layout.py": [DRAWN, "worked_cases", "recorded_plans", "plan", "lookup"],
    "s2dq/_lookup.py": ["lookup", "recorded_plans", "preprocess"],
    "s2dq/_plan.py": [DRAWN, "recorded_plans", "plan", "pictures", "worked_cases", "tiles", "preprocess"],
    "s2dq/_tiles.py": [DRAWN, "recorded_plans", "plan", "worked_cases", "tiles"],
    "s2dq/_validate.py": ["recorded_answers", "worked_cases", "contract", "arrays", "out", "bad_input",
                          "preprocess", "postprocess", "dtypes", "quantized"],
    "s2dq/operators.py": ["worked_cases", "arrays", "memo", "bad_input"],
    "s2dq/preprocess.py": ["preprocess", "postprocess"],
    "s2dq/quantized.py": ["quantized"],
}
# Of files whose tests look at what a child said that the first of them started, all tests are run.
WHOLE = {"bad_input"}
COMPARISONS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
# Functions to which the order of the first two arguments means nothing.
SYMMETRIC = {"max", "min", "gcd", "lcm", "np.array_equal", "np.maximum", "np.minimum", "np.shares_memory"}
ARITHMETIC = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitOr, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip


class Mutant(NamedTuple):
    """`before`, which starts at a character of a file, becomes `after`."""

    file: str
    line: int
    start: int
    before: str
    after: str
    where: str = ""  # its line, and which one there, as far as other mutants of the file change the same words

    @property
    def name(self):
        """Its own, and the same after edits elsewhere in the file, but for new twins."""
        change = f"{' '.join(self.before.split())} -> {' '.join(self.after.split())}"
        return f"{self.file}: {change}" + (f" in {self.where}" if self.where else "")

    def applied(self, text):
        return text[: self.start] + self.after + text[self.start + len(self.before):]


def changes(node):
    """What a node could be instead: new nodes, or None to leave a statement out."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        yield changed(node, ops=[COMPARISONS[type(node.ops[0])]()])
    elif isinstance(node, ast.Compare):
        for k, op in enumerate(node.ops):
            yield changed(node, ops=[*node.ops[:k], COMPARISONS[type(op)](), *node.ops[k + 1:]])
    elif isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC and not is_text(node.left):
        yield changed(node, op=ARITHMETIC[type(node.op)]())
    elif isinstance(node, ast.AugAssign):
        if type(node.op) in ARITHMETIC:
            yield changed(node, op=ARITHMETIC[type(node.op)]())
        yield None
    elif isinstance(node, ast.BoolOp):
        yield changed(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
        for k in range(len(node.values)):
            rest = [value for at, value in enumerate(node.values) if at != k]
            yield rest[0] if len(rest) == 1 else changed(node, values=rest)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub)):
        yield node.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        yield ast.Constant(node.value + 1)
        if node.value == 1:
            yield ast.Constant(0)
    elif isinstance(node, ast.IfExp):
        yield node.body
        yield node.orelse
    elif isinstance(node, ast.Continue):
        yield ast.Break()
    elif isinstance(node, ast.Break):
        yield ast.Continue()
    elif isinstance(node, ast.Call) and len(node.args) >= 2 and not (
        any(map(is_starred, node.args[:2])) or ast.unparse(node.func) in SYMMETRIC
    ):
        yield changed(node, args=[node.args[1], node.args[0], *node.args[2:]])
    elif isinstance(node, ast.Return) and node.value and not is_none(node.value):
        yield ast.Return(ast.Constant(None))
    elif isinstance(node, ast.Raise) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        yield None


def changed(node, **fields):
    new = copy.copy(node)
    for name, value in fields.items():
        setattr(new, name, value)
    return new


def is_none(node):
    return isinstance(node, ast.Constant) and node.value is None


def is_starred(node):
    return isinstance(node, ast.Starred)


def is_text(node):
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def conditions(node):
    """Whole conditions, which are taken for true and for false."""
    if isinstance(node, ast.If):
        yield node.test
    elif isinstance(node, ast.comprehension):
        yield from node.ifs


def walk(node):
    """Nodes that do something: no annotations, no words of messages (which have no places of their own either)."""
    yield node
    for name, child in ast.iter_fields(node):
        if name in ("annotation", "returns"):
            continue
        for part in child if isinstance(child, list) else [child]:
            if isinstance(part, ast.AST) and not isinstance(part, ast.JoinedStr):
                yield from walk(part)


def mutants_of(file, text):
    """All mutants of a file's text, in its order."""
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))

    def mutant(node, new):
        if node.end_lineno - node.lineno > 6:
            return None
        # The columns of a syntax tree count bytes.
        start, end = (starts[row - 1] + len(lines[row - 1].encode()[:column].decode())
                      for row, column in ((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)))
        after = "pass" if new is None else ast.unparse(new)
        if isinstance(new, ast.expr) and not isinstance(new, (ast.Constant, ast.Name, ast.Call)):
            after = f"({after})"
        return Mutant(file, node.lineno, start, text[start:end], after)

    found = []
    for node in walk(ast.parse(text)):
        found += [mutant(node, new) for new in changes(node)]
        found += [mutant(test, ast.Constant(value)) for test in conditions(node) for value in (True, False)]
    found = sorted({m for m in found if m and m.after != m.before}, key=lambda m: (m.start, m.after))
    found = told_apart(found, lambda m, k: lines[m.line - 1].strip())
    return told_apart(found, lambda m, k: f"{m.where} ({k})")


def told_apart(mutants, words):
    """The same mutants, `words` of the mutant and its number added to those of one name."""
    counts = Counter(m.name for m in mutants)
    numbers = Counter()
    apart = []
    for m in mutants:
        numbers[m.name] += 1
        apart.append(m._replace(where=words(m, numbers[m.name])) if counts[m.name] > 1 else m)
    return apart


def text_of(file):
    return (PACKAGE.parent / file).read_text()


def text_at(commit, file):
    """The bytes of a file in an older commit, none where there was no such file."""
    git = ["git", "-c", "safe.directory=*", "-C", str(ROOT)]
    listed = subprocess.run([*git, "ls-tree", "--name-only", commit, "--", file], check=True, capture_output=True)
    if not listed.stdout:
        return b""
    return subprocess.run([*git, "show", f"{commit}:{file}"], check=True, capture_output=True).stdout


def equivalent(path=EQUIVALENT):
    """Names of mutants that mean the same as the original."""
    return {line for line in path.read_text().splitlines() if line and not line.startswith("#")}


class Bench:
    """A copy of the package to break and mend again, and a process that runs tests in it.

    The process has imported what tests import besides the package, and forks for every run.
    """

    def __init__(self, folder, like=None):
        """`like` is another one, whose compiled files serve as well."""
        self.folder = Path(folder)
        if like:
            shutil.copytree(like.folder, self.folder)
        else:
            ignore = shutil.ignore_patterns("__pycache__")
            libraries = PACKAGE.parent.glob("s2dq.libs")  # that a wheel brings along
            for path in (PACKAGE, *libraries, ROOT / "tests"):
                shutil.copytree(path, self.folder / path.name, ignore=ignore)
            shutil.copy(ROOT / "pyproject.toml", self.folder)
        environment = {**os.environ, "PYTHONPATH": str(self.folder), "CI": "true"}
        environment.pop("S2DQ_TEST_REPORT", None)  # tests of a broken package count nowhere
        command = [sys.executable, "-P", str(Path(__file__).resolve()), "--serve"]
        self.server = subprocess.Popen(command, cwd=self.folder, env=environment, stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, text=True)

    def close(self):
        self.server.stdin.close()
        self.server.wait()
        self.server.stdout.close()

    @property
    def said(self):
        return (self.folder / "said").read_text()

    def _ask(self, *request):
        self.server.stdin.write(json.dumps(request) + "\n")
        self.server.stdin.flush()
        return json.loads(self.server.stdout.readline())

    def learn(self, test, files):
        """The tests of a file that run each line of `files`: by file and line, a set of their names, "" for what is run
        before the first; under None, those that start processes. None if one fails."""
        if self._ask(test, 3600, True, files, None):
            return None
        found = defaultdict(set)
        for name, lines in json.loads((self.folder / "learned").read_text()).items():
            for file, line in lines:
                found[file and (file, line)].add(name)
        return found

    def fails(self, mutant, limits, only=None):
        """How tests notice a mutant: "failed", "late", or "" if they do not; `limits` of them in seconds, in order.

        None is no mutant. Of a test that is in `only`, nothing is run but what that names.
        """
        path = self.folder / mutant.file if mutant else None
        text = path.read_text() if mutant else None
        if mutant:
            path.write_text(mutant.applied(text))
            for compiled in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):  # of the same second, it would be taken
                compiled.unlink()
        try:
            # What is compiled now is of use to the next runs, but not a mutant.
            for test, limit in limits.items():
                names = only.get(test) if only else None
                if how := self._ask(test, limit, mutant is None, [], names):
                    return how
            return ""
        finally:
            if mutant:
                path.write_text(text)


def serve():
    """Run tests as lines of standard input say, each in a fork of this process, and print how they notice a mutant."""
    import hypothesis  # noqa: F401
    import ml_dtypes  # noqa: F401
    import numpy  # noqa: F401
    import PIL.Image  # noqa: F401
    import pytest

    assert "s2dq" not in sys.modules
    answers = os.dup(1)
    for line in sys.stdin:
        test, limit, compiles, files, names = json.loads(line)
        child = os.fork()
        if not child:
            os.setsid()
            # A mutant without end ends, too, where nobody waits for it any more, and before the machine has no memory.
            signal.alarm(int(limit) + 60)
            resource.setrlimit(resource.RLIMIT_DATA, (20 << 30, 20 << 30))
            said = os.open("said", os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
            for stream in (1, 2):
                os.dup2(said, stream)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            sys.dont_write_bytecode = not compiles
            if not compiles:
                os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
            path = f"tests/test_{test if '::' in test else test + '.py'}"
            plugins = [Learner(files)] if files else [Chosen(names)] if names is not None else []
            arguments = ["-x", "-q", "-p", "no:cacheprovider", "-W", "ignore:Module already imported", path]
            code = pytest.main(arguments, plugins)
            sys.stdout.flush()
            os._exit(code != 0)
        os.write(answers, (json.dumps(ending(child, limit)) + "\n").encode())


class Chosen:
    """Of the tests that pytest collects, those of these names."""

    def __init__(self, names):
        self.names = set(names)

    def pytest_collection_modifyitems(self, config, items):
        items[:] = [item for item in items if item.nodeid in self.names]


class Learner:
    """Writes down which tests run which lines of some files: "learned" has [file, line] of each test by its name, and
    [null, 0] if it starts processes."""

    def __init__(self, files):
        import coverage

        self.files = {str(Path(file).resolve()): file for file in files}
        self.tracer = coverage.Coverage(data_file=None, include=list(self.files), config_file=False)
        self.running = ""
        self.starts = set()
        sys.addaudithook(self.audit)
        self.tracer.start()

    def audit(self, event, args):
        if event in ("subprocess.Popen", "os.fork", "os.posix_spawn"):
            self.starts.add(self.running)

    def pytest_runtest_logstart(self, nodeid):
        self.running = nodeid
        self.tracer.switch_context(nodeid)

    def pytest_sessionfinish(self):
        self.tracer.stop()
        found = {name: [(None, 0)] for name in self.starts}
        data = self.tracer.get_data()
        for path, file in self.files.items():
            for line, names in data.contexts_by_lineno(path).items():
                for name in names:
                    found.setdefault(name, []).append((file, line))
        Path("learned").write_text(json.dumps(found))


def statements(text):
    """By line, the lines of its innermost statement, of which Python may report another as run; of a statement with a
    body, those before that."""
    found = {}
    for node in ast.walk(ast.parse(text)):  # the outer ones first
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            lines = range(node.lineno, max(node.lineno + 1, body[0].lineno) if body else node.end_lineno + 1)
            found.update(dict.fromkeys(lines, lines))
    return found


def first_look(names, sizes, most):
    """So many of some tests: half of them those that run the fewest lines, for these are about the one that is changed,
    the others from all over."""
    narrow = sorted(names, key=lambda name: (sizes[name], name))[: most // 2]
    others = sorted(names.difference(narrow))
    return narrow + others[:: max(1, -(-len(others) // (most - most // 2)))]


class Learned:
    """Which tests may notice a mutant, and how long they may take."""

    def __init__(self, bench, chosen, limit, most):
        self.limits, self.tests, self.sizes, self.most = {}, {}, {}, most
        files = sorted({mutant.file for mutant in chosen})
        self.statements = {file: statements(text_of(file)) for file in files}
        for test in dict.fromkeys(test for file in files for test in TESTS[file]):
            if most and test in WHOLE:
                continue
            began = time.monotonic()
            self.tests[test] = None if test in WHOLE else bench.learn(test, files)
            if self.tests[test] is None and bench.fails(None, {test: 3600}):
                sys.exit(f"{test} fails before anything is changed\n{bench.said[-3000:]}")
            self.limits[test] = limit or 30 + 4 * (time.monotonic() - began)
            found = self.tests[test] or {}
            self.sizes[test] = Counter(name for line, names in found.items() if line for name in names)

    def of(self, mutant):
        """Limits by test, and the names to run of those of which not all are."""
        last = mutant.line + mutant.before.count("\n")
        lines = {line for first in range(mutant.line, last + 1)
                 for line in self.statements[mutant.file].get(first, [first])}
        everywhere = any("" in tests.get((mutant.file, line), ()) for tests in self.tests.values() if tests
                         for line in lines)  # run on import
        limits, only = {}, {}
        for test in filter(self.limits.__contains__, TESTS[mutant.file]):
            tests = self.tests[test]
            if tests is not None and not everywhere:
                names = tests[None].union(*(tests[mutant.file, line] for line in lines))
                only[test] = first_look(names, self.sizes[test], self.most) if self.most else sorted(names)
                if not names:
                    continue
            limits[test] = self.limits[test]
        return limits, only


def ending(child, limit):
    """How a child ends, within `limit` seconds; then its process group is gone."""
    end, ended = time.monotonic() + limit, False
    while not ended and time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        time.sleep(0 if ended else 0.005)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, 9)
    if not ended:
        os.waitpid(child, 0)
        return "late"
    return "failed" if status else ""


class Part:
    """K/N: of N parts of all mutants the K-th, by their names."""

    def __init__(self, text):
        self.number, self.count = map(int, text.split("/"))
        if not 1 <= self.number <= self.count:
            raise ValueError(text)

    def __contains__(self, mutant):
        return zlib.crc32(mutant.name.encode()) % self.count == self.number - 1


EVERYTHING = Part("1/1")


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", nargs="+", default=list(TESTS), choices=list(TESTS), metavar="FILE")
    parser.add_argument("--lines", type=lambda text: range(*map(int, text.split(":"))), metavar="FIRST:END",
                        help="of those of these lines alone, such as new ones")
    parser.add_argument("--since", metavar="COMMIT", help="of what was written behind it")
    parser.add_argument("--part", type=Part, default=EVERYTHING, metavar="K/N",
                        help="of N parts of all the K-th, the same ones on every machine")
    parser.add_argument("--seed", type=int, default=20250301)
    parser.add_argument("--sample", type=int, metavar="N", help="so many of all, by chance")
    parser.add_argument("--resume", type=Path, metavar="FILE", help="results, read and written")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=1e9, help="start none after so long")
    parser.add_argument("--limit", type=float, metavar="SECONDS",
                        help="of a file of tests; by default what it takes unchanged tells")
    parser.add_argument("--most", type=int, default=0, metavar="N",
                        help="a first look, by no more of each file's tests: who survives has to be tried again")
    parser.add_argument("--list", action="store_true", help="print the mutants and end")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    args = parse_args()
    if args.serve:
        return serve()
    known = equivalent()
    if args.since:
        known |= {m.name for file in args.files for m in mutants_of(file, text_at(args.since, file).decode())}
    pool = [m for file in args.files for m in mutants_of(file, text_of(file)) if m.name not in known]
    pool = [m for m in pool if m in args.part and (not args.lines or m.line in args.lines)]
    chosen = random.Random(args.seed).sample(pool, min(args.sample or len(pool), len(pool)))
    if args.list:
        print(*(f"{m.line:5} {m.name}" for m in chosen), sep="\n")
        return 0
    results = json.loads(args.resume.read_text()) if args.resume and args.resume.exists() else {}
    with tempfile.TemporaryDirectory(prefix="s2dq-mutants.") as folder:
        benches = [Bench(Path(folder, "0"))]
        learned = Learned(benches[0], [m for m in chosen if m.name not in results], args.limit, args.most)
        benches += [Bench(Path(folder, str(k)), benches[0]) for k in range(1, args.jobs)]
        end = time.monotonic() + 60 * args.minutes

        def try_one(mutant):
            key = mutant.name
            if key in results or time.monotonic() > end:
                return
            bench = benches.pop()
            results[key] = bench.fails(mutant, *learned.of(mutant))
            benches.append(bench)
            print(f"{results[key] or 'SURVIVED':8} {mutant.line:5} {mutant.name}", flush=True)
            if args.resume:
                args.resume.write_text(json.dumps(dict(results), indent=1))

        with ThreadPoolExecutor(args.jobs) as threads:
            list(threads.map(try_one, chosen))
        for bench in benches:
            bench.close()
    tried = [m for m in chosen if m.name in results]
    survivors = [m for m in tried if not results[m.name]]
    print(f"\n{len(tried)} of {len(pool)} mutants tried, {len(tried) - len(survivors)} noticed, {len(survivors)} not")
    for m in survivors:
        print(f"\n{m.file}:{m.line}\n- {m.before}\n+ {m.after}")
    return bool(survivors)


if __name__ == "__main__":
    sys.exit(main())

"""Break the kernels a little, many times over, and see whether a test notices: python tests/stress/kernel_mutants.py

Needs gcc, and `pip install -e ".[test,mutants]"`. A mutant changes one expression or statement of
`_kernels.pyx` or of a header in `_micro`, what macros expand to included: an operator, a constant, a condition, a
statement that is left out. All of them are built into one extension, where an integer chooses the one that is broken:

    a < b      becomes      (S2DQ_M(17) ? (a <= b) : (a < b))

First those of headers are run in `tests/boxes.c`, `tests/tiles.c`, `tests/numbers.c` and `tests/system.c`, a process
for each mutant that they reach: a thousand random calls take them no longer than pytest takes for one. They notice
wrong bytes, another order of loads and stores, and with sanitizers places behind an array. For what these do not notice
there is the suite: a process per instruction set collects tests once, runs each to see which mutants it reaches, itself
or in processes that it starts, and forks for every mutant to run those that reach it, quickest first, until one fails,
crashes or takes too long. What the compiler refuses (constants that have to be constants, types that do not fit) is
left out and counted. Not among them: data (tables in static arrays), object-like macros, and the headers of other
machines (`neon.h` on x86-64): with `--cross` they are compiled for one of them, and its programs run in qemu.

    python tests/stress/kernel_mutants.py --dir DIRECTORY --files _micro/tile.h _micro/axis.h
    python tests/stress/kernel_mutants.py --dir DIRECTORY --files _micro/avx2.h --programs --jobs 2
    python tests/stress/kernel_mutants.py --dir DIRECTORY --files _kernels.pyx --minutes 30 --jobs 2 --since v1.0
    python tests/stress/kernel_mutants.py --dir DIRECTORY --cross aarch64 --files _micro/neon.h --jobs 2

`--since COMMIT` takes those of what was written behind it. All headers at once take the compiler a minute, in the
programs. What is in results.json is not run again, and which tests reach what is kept there too: take another directory
when tests have changed. Survivors are printed with their change, but for those that `equivalent_kernel_mutants.txt`
beside this file explains: some by name, which are not run, and, as `* in LINE` and `* in FUNCTION()`, whatever survives
there. For where code only weighs which of several ways is quickest, or fetches ahead, no change is a wrong byte.
"""

import argparse
import ast
import contextlib
import ctypes
import functools
import json
import os
import pickle
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from mutants import EVERYTHING, ROOT, Mutant, Part, equivalent, text_at, told_apart

SUITES = ["decisions", "worked_cases", "dtypes", "arrays", "out", "lookup", "digests", "operators", "quantized",
          "preprocess", "postprocess", "memo", "prepared", "programs", "allocations", "plan", "recorded_plans", "tiles",
          "isas", "fork_threads", "process", "interrupt", "guard_pages"]
TOO_LONG = "tests/test_isas.py::test_operator_suites_on"  # it runs the others again
EQUIVALENT = Path(__file__).with_name("equivalent_kernel_mutants.txt")
ITEMS = 3000  # tests that a mutant is shown, at most
OTHER_MACHINES = {"neon.h"}
# Programs in C that try the headers, with rounds, seed and instruction set: traced, then with sanitizers, which notice
# what is read or written behind an array.
PROGRAMS = [("boxes 20000 1 portable", False), ("boxes 20000 1 avx2", False), ("boxes 20000 1 avx512vbmi", False),
            ("tiles 8000 1 avx2", False), ("tiles 8000 1 avx512vbmi", False), ("boxes 3000 2 all", True),
            ("tiles 2000 3 avx2", True), ("tiles 2000 3 avx512vbmi", True), ("numbers 3000 1 portable", False),
            ("numbers 3000 1 avx2", False), ("numbers 3000 1 avx512vbmi", False),
            ("numbers 1000 2 all", True), ("system", False), ("system", True)]  # fmt: skip
# The same for another machine, by its name.
CROSS_PROGRAMS = {"aarch64": [("tiles 1000 1 neon", False), ("tiles 300 2 neon", True)]}
# AVX-512 by plain C, for processors without it.
AVX512_IN_C = ["-mavx2", "-mbmi", "-mbmi2", "-Wno-psabi", "-D_GNU_SOURCE=", "-include", "tests/avx512_in_c.h"]
# What a parser of C takes for types or stray words; blanks do not move what follows.
ATTRIBUTES = re.compile(rb"\bS2DQ_(?:AVX2|512|STEP|NEON)(?:_INLINE)?\b|\bS2DQ_(?:EVERYWHERE|RESTRICT|THREAD_LOCAL)\b")
SWAPS = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "+": "-", "-": "+", "*": "/",
    "/": "*", "%": "/", "&": "|", "|": "&", "^": "|", "<<": ">>", ">>": "<<", "&&": "||", "||": "&&",
    "+=": "-=", "-=": "+=", "|=": "&=", "&=": "|=", "<<=": ">>=", ">>=": "<<=",
}  # fmt: skip
EITHER = {"s2dq_min", "s2dq_max"}
CYTHON_SWAPS = {"and": "or", "or": "and", "//": "*", **{k: v for k, v in SWAPS.items() if k not in ("&&", "||")}}


class Spot(NamedTuple):
    """A range of a text, and what could be there instead; `statement` is left out as a whole."""

    start: int
    end: int
    others: tuple[str, ...]
    statement: bool = False


# ------------------------------------------------------------------------------------------------------ C


def flat(text):
    """On one line, without the backslashes of macros."""
    return " ".join(text.replace("\\\n", " ").split())


class CText:
    """The spots of a C header."""

    CONSTANT = {"enumerator", "array_declarator", "bitfield_clause", "preproc_def", "preproc_include",
                "attribute_specifier", "gnu_asm_expression", "sizeof_expression", "field_declaration"}  # fmt: skip
    OPERANDS = {"argument_list", "binary_expression", "cast_expression", "parenthesized_expression"}

    def __init__(self, raw):
        import tree_sitter
        import tree_sitter_c

        self.parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_c.language()))
        self.raw = raw
        self.spots = []
        self.functions = []  # (start, end, name)
        masked = ATTRIBUTES.sub(lambda found: b" " * len(found[0]), raw)
        self.walk(self.parser.parse(masked).root_node, 0)

    def text(self, node, shift):
        return self.raw[node.start_byte - shift : node.end_byte - shift].decode()

    def add(self, node, shift, others, statement=False):
        start, end = node.start_byte - shift, node.end_byte - shift
        self.spots.append(Spot(start, end, tuple(map(flat, others)), statement))

    def walk(self, node, shift, inside=False):
        if node.type == "preproc_function_def":
            value = node.child_by_field_name("value")
            if value:
                self.functions.append((node.start_byte, node.end_byte, self.text(node.child_by_field_name("name"), 0)))
                self.macro(value)
            return
        if node.type in self.CONSTANT:
            return
        if node.type == "declaration" and any(self.text(child, shift) == "static" for child in node.children):
            return
        if node.type == "function_definition" and not inside:
            inside = True
            head = self.text(node.child_by_field_name("declarator"), shift)
            self.functions.append((node.start_byte - shift, node.end_byte - shift, re.search(r"(\w+)\s*\(", head)[1]))
        if inside and not node.has_error:
            self.consider(node, shift)
        skipped = None
        if node.type == "case_statement":
            skipped = node.child_by_field_name("value")
        elif node.type in ("preproc_if", "preproc_elif"):
            skipped = node.child_by_field_name("condition")
        for child in node.children:
            if child != skipped:
                self.walk(child, shift, inside)

    def macro(self, value):
        """The body of a macro, as statements or as an expression, whichever it is."""
        body = self.raw[value.start_byte : value.end_byte].replace(b"\\\n", b" \n")
        body = ATTRIBUTES.sub(lambda found: b" " * len(found[0]), body)
        trees = []
        for head, tail in ((b"void f(void) {", b"}"), (b"int f(void) { return ", b";}"), (b"", b"")):
            root = self.parser.parse(head + body + tail).root_node
            errors = sum(1 for node in every(root) if node.type == "ERROR" or node.is_missing)
            trees.append((errors, len(trees), root, len(head)))
        _, _, root, head = min(trees, key=lambda tree: tree[:2])
        self.walk(root, head - value.start_byte, inside=True)

    def consider(self, node, shift):
        kind = node.type
        if kind in ("binary_expression", "assignment_expression"):
            operator = node.child_by_field_name("operator")
            symbol = self.text(operator, shift)
            before = self.raw[node.start_byte - shift : operator.start_byte - shift].decode()
            after = self.raw[operator.end_byte - shift : node.end_byte - shift].decode()
            if symbol in SWAPS:
                self.add(node, shift, [before + SWAPS[symbol] + after])
        elif kind == "unary_expression":
            if self.text(node.child_by_field_name("operator"), shift) in ("!", "-", "~"):
                self.add(node, shift, [self.text(node.child_by_field_name("argument"), shift)])
        elif kind == "number_literal":
            self.number(node, shift)
        elif kind in ("true", "false"):
            self.add(node, shift, ["false" if kind == "true" else "true"])
        elif kind == "call_expression" and self.text(node.child_by_field_name("function"), shift) in EITHER:
            # The one or the other without being asked for.
            self.add(node, shift, [self.text(argument, shift)
                                   for argument in node.child_by_field_name("arguments").named_children])  # fmt: skip
        elif kind == "conditional_expression":
            self.add(node, shift, [self.text(node.child_by_field_name(name), shift)
                                   for name in ("consequence", "alternative")])  # fmt: skip
        elif kind == "if_statement":
            condition = node.child_by_field_name("condition")
            inner = condition.named_children[0] if condition.named_children else None
            if inner and inner.type != "preproc_defined":
                self.add(inner, shift, ["1", "0"])
        elif kind == "expression_statement" and node.named_children:
            if node.named_children[0].type in ("call_expression", "assignment_expression", "update_expression"):
                if not re.match(r"S2DQ_|__asm__", self.text(node, shift)):
                    self.add(node, shift, [""], statement=True)

    def number(self, node, shift):
        text = self.text(node, shift)
        found = re.fullmatch(r"(0x[0-9A-Fa-f]+|\d+)([uUlL]*)", text)
        if not found:
            return
        value = int(found[1], 0)
        others = [f"{value + 1}{found[2]}", *(["0"] if value == 1 else [])]
        # An immediate operand has to be a constant: there the call as a whole is another one.
        target, parent = node, node.parent
        while parent and parent.type in self.OPERANDS:
            parent = parent.parent
        if parent and parent.type == "call_expression" and self.text(parent, shift).startswith("_mm"):
            target = parent
        before = self.raw[target.start_byte - shift : node.start_byte - shift].decode()
        after = self.raw[node.end_byte - shift : target.end_byte - shift].decode()
        self.add(target, shift, [before + other + after for other in others])


def every(node):
    yield node
    for child in node.children:
        yield from every(child)


# ------------------------------------------------------------------------------------------------- Cython


CAST = re.compile(r"<(?:const )?[A-Za-z_][\w.]*(?: \w+)?(?: ?\*+)?>(?=[\w(&<+-])")
TARGET = r"(?:cdef (?:const )?[\w.]+(?:\[[:, \w]*\])? \*?\w+|[\w.\[\]()+* ,&-]+?)"
ASSIGNMENT = re.compile(rf"^{TARGET} (?:=|[-+*|&]=|//=|<<=|>>=) (?P<value>[^=].*)$", re.S)
HEADS = re.compile(r"^(?:if |elif |while |return |for [\w, ]+ in )(?P<value>.*?):?$", re.S)
# What begins a statement that has no mutants but those inside of it, and what declares without a value.
OTHERS = re.compile(r"from |c?import |cnp\.|class |def |ctypedef |@|raise |assert |with |pass|else|try|finally|except")
DECLARATION = re.compile(r"cdef .*\)[^=]*:?$|cdef (?:class|extern|struct|enum|packed|union)", re.S)


class CythonText:
    """The spots of a Cython file: of the right sides of assignments, of conditions, of calls and what they return.

    Casts and the taking of addresses are shown to Python's parser as unary plus signs, which are as long.
    """

    def __init__(self, text):
        self.spots = []
        self.functions = list(cython_functions(text))  # (start, end, name)
        for start, line in logical_lines(text):
            self.line(start, line)

    def line(self, start, line):
        if OTHERS.match(line):
            if line.startswith("raise "):
                self.spots.append(Spot(start, start + len(line), ("",), statement=True))
            return
        if DECLARATION.match(line) and "=" not in line.split("(")[0]:
            return
        found = ASSIGNMENT.match(line) or HEADS.match(line)
        if found:
            self.expression(start + found.start("value"), found["value"])
            if found.re is ASSIGNMENT and not line.startswith("cdef"):
                self.spots.append(Spot(start, start + len(line), ("",), statement=True))
            if line.startswith(("if ", "elif ")):
                at = start + found.start("value")
                self.spots.append(Spot(at, at + len(found["value"]), ("True", "False")))
        elif re.match(r"[\w.\[\]]+\(.*\)$", line, re.S):
            self.expression(start, line)
            self.spots.append(Spot(start, start + len(line), ("",), statement=True))

    def expression(self, start, text):
        shown = CAST.sub(lambda found: "+" * len(found[0]), text)
        shown = re.sub(r"(?<![\w)\]] )&(?=\w)", "+", shown)
        shown = re.sub(r"#.*", lambda found: " " * len(found[0]), shown)
        try:
            # Brackets let the expression go on over several lines.
            tree = ast.parse(f"({shown}\n)", mode="eval").body
        except SyntaxError:
            return
        rows = shown.split("\n")

        def at(row, column):
            return column - 1 if row == 1 else sum(len(line) + 1 for line in rows[: row - 1]) + column

        for node in ast.walk(tree):
            if isinstance(node, (ast.JoinedStr, ast.FormattedValue)) or not hasattr(node, "col_offset"):
                continue
            first, last = at(node.lineno, node.col_offset), at(node.end_lineno, node.end_col_offset)
            for other in self.others(node, text, at):
                self.spots.append(Spot(start + first, start + last, (flat(other(first, last)),)))

    def others(self, node, text, at):
        """Functions of the range of a node to what could be there instead."""
        def between(left, right, allowed):
            low, high = at(left.end_lineno, left.end_col_offset), at(right.lineno, right.col_offset)
            found = re.search(r"<=|>=|==|!=|<<|>>|//|\band\b|\bor\b|[-+*%<>&|^]", text[low:high])
            if found and found[0] in allowed:
                other = CYTHON_SWAPS[found[0]]
                yield lambda a, b: text[a : low + found.start()] + other + text[low + found.end() : b]

        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            yield from between(node.left, node.comparators[0], {"<", "<=", ">", ">=", "==", "!="})
        elif isinstance(node, ast.Compare):
            for left, right in zip([node.left, *node.comparators], node.comparators):
                yield from between(left, right, {"<", "<=", ">", ">="})
        elif isinstance(node, ast.BinOp):
            yield from between(node.left, node.right, {"+", "-", "*", "//", "%", "&", "|", "^", "<<", ">>"})
        elif isinstance(node, ast.BoolOp):
            yield from between(node.values[0], node.values[1], {"and", "or"})
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub)):
            inner = at(node.operand.lineno, node.operand.col_offset)
            yield lambda a, b: text[inner:b]
        elif isinstance(node, ast.Constant) and type(node.value) is bool:
            yield lambda a, b: str(not node.value)
        elif isinstance(node, ast.Constant) and type(node.value) is int:
            yield lambda a, b: str(node.value + 1)
            if node.value == 1:
                yield lambda a, b: "0"
        elif isinstance(node, ast.IfExp):
            for part in (node.body, node.orelse):
                low, high = at(part.lineno, part.col_offset), at(part.end_lineno, part.end_col_offset)
                yield lambda a, b, low=low, high=high: text[low:high]


def cython_functions(text):
    """(start, end, name) of functions, up to the next line that is indented as little."""
    for found in re.finditer(r"^( *)c?p?def [^(=\n]*?(\w+)\(", text, re.M):
        after = re.compile(rf"^ {{0,{len(found[1])}}}[^ \n)]", re.M).search(text, found.end())
        yield found.start(), after.start() if after else len(text), found[2]


def logical_lines(text):
    """(start, text) of statements inside functions: from their first word, lines in brackets joined, comments cut."""
    lines = text.splitlines(keepends=True)
    at, k, in_text = 0, 0, False
    while k < len(lines):
        line, start = lines[k], at
        at += len(line)
        k += 1
        if in_text or '"""' in line:
            if line.count('"""') % 2:
                in_text = not in_text
            continue
        bare = re.sub(r"\s+#.*", "", line.rstrip("\n"))
        while k < len(lines) and (is_open(bare) or bare.endswith("\\")):
            bare = text[start : at + len(lines[k].rstrip("\n"))]
            at += len(lines[k])
            k += 1
        inner = bare.lstrip()
        if inner and not inner.startswith("#") and len(bare) > len(inner):  # indented
            yield start + len(bare) - len(inner), inner


def is_open(line):
    return sum(map(line.count, "([{")) > sum(map(line.count, ")]}"))


# ------------------------------------------------------------------------------------------------- weaving


def woven(raw, spots, number, is_c):
    """The text with all spots in it; `number` gives each its identity, or None to leave it out."""
    groups = defaultdict(list)
    for spot in spots:
        for other in spot.others:
            k = number(spot, other)
            if k is not None:
                groups[spot.start, -spot.end, not spot.statement].append((k, other))
    order = sorted(groups)
    # Of expressions, and of statements that are left out.
    forms = {True: "(({other}) if S2DQ_M({k}) else ({inner}))", False: "if not S2DQ_M({k}): {inner}"}
    if is_c:
        forms = {True: "(S2DQ_M({k}) ? ({other}) : ({inner}))", False: "{{ if (!S2DQ_M({k})) {{ {inner} }} }}"}

    def render(start, end, first):
        parts, at = [], start
        while first < len(order) and order[first][0] < end:
            begin, stop = order[first][0], -order[first][1]
            inner, following = render_one(begin, stop, first)
            parts += [raw[at:begin].decode(), inner]
            at, first = stop, following
        parts.append(raw[at:end].decode())
        return "".join(parts), first

    def render_one(begin, stop, first):
        key = order[first]
        inner, following = render(begin, stop, first + 1)
        for k, other in groups[key]:
            inner = forms[key[2]].format(k=k, other=other, inner=inner)
        return inner, following

    return render(0, len(raw), 0)[0]


class Kernels:
    """The package in a directory of its own, its kernels with all mutants in them."""

    def __init__(self, folder, files, cross="", commit=None):
        self.folder = Path(folder)
        self.cross = cross  # the name of another machine
        self.mutants = []  # their numbers are their places
        self.spans = []
        self.lines = {}  # of every file
        self.functions = []  # of every mutant, the name
        self.spots = {}
        for file in files:
            raw = text_at(commit, f"s2dq/{file}") if commit else (ROOT / "s2dq" / file).read_bytes()
            is_c = file.endswith(".h")
            read = CText(raw) if is_c else CythonText(raw.decode())
            self.spots[file] = raw, read.spots, {}
            self.lines[f"s2dq/{file}"] = raw.decode().split("\n")
            for spot in sorted(set(read.spots)):
                for other in spot.others:
                    before = raw[spot.start : spot.end].decode()
                    line = raw.count(b"\n", 0, spot.start) + 1
                    self.spots[file][2][spot, other] = len(self.mutants)
                    self.mutants.append(Mutant(f"s2dq/{file}", line, spot.start, before, other or "nothing"))
                    self.spans.append((file, line, line + before.count("\n")))
                    self.functions.append(next((name for start, end, name in reversed(read.functions)
                                                if start <= spot.start < end), ""))
        self.mutants = told_apart(self.mutants, lambda m, k: self.line_of(m))
        self.mutants = told_apart(self.mutants, lambda m, k: f"{m.where} ({k})")
        self.woven = set(range(len(self.mutants)))  # what is built: the fewer, the sooner
        self.refused = set()
        self.compiled = set()  # what some C program has of the headers

    def line_of(self, mutant):
        """The words of its line."""
        return self.lines[mutant.file][mutant.line - 1].removesuffix("\\").strip()

    def entries(self, k):
        """What of a list of equivalent mutants would name this one."""
        m = self.mutants[k]
        return {m.name, f"{m.file}: * in {self.line_of(m)}", f"{m.file}: * in {self.functions[k]}()"}

    def prepare(self):
        """A copy of the package, and a header for all mutants."""
        if not self.folder.exists():
            ignore = shutil.ignore_patterns(".git", "build", "*.so", "__pycache__", "*.egg-info", "asv_bench")
            shutil.copytree(ROOT, self.folder, ignore=ignore)
        names = self.folder / "refused.json"
        if names.exists():
            known = set(json.loads(names.read_text()))
            self.refused = {k for k, mutant in enumerate(self.mutants) if mutant_key(mutant) in known}
        names = self.folder / "compiled.json"
        if names.exists():
            known = set(json.loads(names.read_text()))
            self.compiled = {k for k, mutant in enumerate(self.mutants) if mutant_key(mutant) in known}
        header = self.folder / "mutants.h"
        header.write_text(f"""\
#define _GNU_SOURCE
#define always_inline /* the compiler would take hours */
#include <stdio.h>
#include <stdlib.h>
#define VISIBLE __attribute__((visibility("default"), used))
VISIBLE unsigned char s2dq_reached[{len(self.mutants)}];
VISIBLE int s2dq_mutant = -1;
static __attribute__((constructor)) void s2dq_read_mutant(void)
{{
    const char *chosen = getenv("S2DQ_MUTANT");
    if (chosen) s2dq_mutant = atoi(chosen);
}}
static __attribute__((destructor)) void s2dq_write_reached(void)
{{
    const char *name = getenv("S2DQ_REACHED");
    FILE *file = name ? fopen(name, "ab") : NULL; /* of more than one process */
    if (!file) return;
    setvbuf(file, NULL, _IOFBF, sizeof s2dq_reached);
    fwrite(s2dq_reached, 1, sizeof s2dq_reached, file);
    fclose(file);
}}
static __attribute__((noinline)) int S2DQ_M(int k)
{{
    s2dq_reached[k] = 1;
    return s2dq_mutant == k;
}}
""")

    def build(self):
        """Compile the extension, without what the compilers refuse."""
        (self.folder / "s2dq" / "_kernels.pxd").write_text(
            "cdef extern from *:\n    bint S2DQ_M(int k) noexcept nogil\n")
        wrapper = self.folder / "cc"
        wrapper.write_text('#!/usr/bin/env bash\narguments=("$@")\nexec gcc "${arguments[@]/#-O3/-O1}" -g0\n')
        wrapper.chmod(0o755)
        environment = {**os.environ, "CC": str(wrapper), "LDSHARED": f"{wrapper} -shared", "PYTHONPATH": "",
                       "CFLAGS": f"-include {self.folder / 'mutants.h'} -Wno-error -fmax-errors=0"}  # fmt: skip
        self.compile([sys.executable, "setup.py", "-q", "build_ext", "--inplace"], environment)

    def build_program(self, name, sanitized):
        """One of the C programs. Returns its path."""
        program = self.folder / f"{name}{'_sanitized' if sanitized else ''}"
        # Of shuffles by intrinsics all that `undefined` looks at would take the compiler minutes.
        checks = "bounds" if name in ("boxes", "tiles") else "undefined,float-cast-overflow"
        how = [f"-fsanitize=address,{checks}", "-fno-sanitize-recover=all"] if sanitized else ["-DTRACED"]
        unwritten = "pattern"  # what nobody wrote is far off
        if self.cross and sanitized:  # the patterns were in the program before
            how, unwritten = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"], "zero"
        elif self.cross:  # traces are of loads and stores by x86's instructions
            how = ["-static"]
        compiler = f"{self.cross}-linux-gnu-gcc" if self.cross else "gcc"
        stand_in = [] if self.cross or has_avx512() else AVX512_IN_C
        command = [compiler, "-O1", *stand_in, "-include", str(self.folder / "mutants.h"), "-I", "s2dq/_micro",
                   "-fmax-errors=0", "-ffp-contract=off", "-fopenmp", f"-ftrivial-auto-var-init={unwritten}",
                   *how, f"tests/{name}.c", "-lm"]  # fmt: skip
        self.compile([*command, "-o", str(program)], dict(os.environ))
        text = subprocess.run([*command, "-E"], cwd=self.folder, check=True, capture_output=True, text=True).stdout
        self.compiled |= set(map(int, re.findall(r"S2DQ_M\((\d+)\)", text)))
        (self.folder / "compiled.json").write_text(json.dumps([mutant_key(self.mutants[k]) for k in self.compiled]))
        return program

    def compile(self, command, environment):
        """Run a compiler until it refuses nothing, without what it refused."""
        for attempt in range(60):
            self.weave()
            run = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True)
            refused = self.blamed(run.stdout + run.stderr) - self.refused if run.returncode else set()
            print(f"build {attempt}: {len(self.woven - self.refused)} mutants, {len(refused)} more refused",
                  flush=True)
            if run.returncode == 0:
                break
            if not refused:
                sys.exit(f"cannot be built\n{(run.stdout + run.stderr)[-6000:]}")
            self.refused |= refused
            names = sorted(mutant_key(self.mutants[k]) for k in self.refused)
            (self.folder / "refused.json").write_text(json.dumps(names))

    def weave(self):
        built = self.woven - self.refused
        for file, (raw, spots, numbers) in self.spots.items():
            def number(spot, other, numbers=numbers):
                k = numbers[spot, other]
                return k if k in built else None

            path = self.folder / "s2dq" / file
            text = woven(raw, set(spots), number, file.endswith(".h"))
            if not path.exists() or path.read_text() != text:
                path.write_text(text)

    def blamed(self, said):
        """Mutants on the lines that errors name. Of one error, the lines of macros come with it as notes."""
        lines = set()
        in_error = False
        for found in re.finditer(r"^(\S+?\.(?:h|c|pyx)):(\d+):\d+: ?(error|note|warning)?", said, re.M):
            in_error = found[3] == "error" or found[1].endswith(".pyx") or in_error and found[3] == "note"
            if in_error and found[1].endswith("_kernels.c"):  # what Cython made: a comment before it tells of what
                made = (self.folder / found[1]).read_text().split("\n")[: int(found[2])]
                of = re.findall(r'^ *(?:/\*|\*) "s2dq/_kernels\.pyx":(\d+)$', "\n".join(made), re.M)
                lines.add(("_kernels.pyx", int(of[-1])))
            elif in_error:
                lines.add((found[1].split("s2dq/", 1)[-1], int(found[2])))
        # An immediate operand that is out of range, or of NEON no constant: the error is in the compiler's header, the
        # call in ours.
        inlined = r"^In function .(_mm|v).*\n +inlined from .* at (\S+?):(\d+):\d+[,:]\n(?: +inlined.*\n)*\S+: error"
        calls = {(found[1], found[2].split("s2dq/", 1)[-1], int(found[3]))
                 for found in re.finditer(inlined, said, re.M)}

        def is_blamed(k, file, line):
            before = self.mutants[k].before
            return ((file, line) in lines or (before.startswith("_mm") and ("_mm", file, line) in calls)
                    or (before.isdigit() and ("v", file, line) in calls))

        return {k for k, (file, first, last) in enumerate(self.spans)
                if any(is_blamed(k, file, line) for line in range(first, last + 1))}


def has_avx512():
    return "avx512_vbmi" in Path("/proc/cpuinfo").read_text()


def mutant_key(mutant):
    return f"{mutant.start} {mutant.name}"


# ------------------------------------------------------------------------------------------------- running


def run_programs(kernels, chosen, results, jobs, end, save):
    """Run mutants of headers in the C programs that reach them, until one notices. OUT: results."""
    def found(k):
        return results.get(mutant_key(kernels.mutants[k]), ["", []])

    headers = [k for k in chosen if kernels.mutants[k].file.endswith(".h") and not found(k)[0]]
    build = functools.cache(kernels.build_program)
    emulator = [f"qemu-{kernels.cross}-static", "-L", f"/usr/{kernels.cross}-linux-gnu"] if kernels.cross else []
    # The sanitizer reads the emulator's environment; it cannot look for leaks in there.
    environment = {**os.environ, **({"ASAN_OPTIONS": "detect_leaks=0"} if kernels.cross else {})}
    for call, sanitized in (CROSS_PROGRAMS[kernels.cross] if kernels.cross else PROGRAMS) if headers else ():
        name, *arguments = call.split()
        label = f"{call}{' sanitized' if sanitized else ''}"
        command = [*emulator, str(build(name, sanitized)), *arguments, f"{kernels.folder}/tests/recorded_{name}.txt"]
        reached = kernels.folder / f"{name}.reached"
        reached.unlink(missing_ok=True)
        began = time.monotonic()
        reaching = {**environment, "S2DQ_REACHED": str(reached)}
        subprocess.run(command, env=reaching, check=True, stdout=subprocess.DEVNULL)
        patience = 10 + 4 * (time.monotonic() - began)
        hits = reached.read_bytes()
        shown = [k for k in headers if hits[k] and k not in kernels.refused
                 and not found(k)[0] and label not in found(k)[1]]
        random.Random(0).shuffle(shown)
        with ThreadPoolExecutor(jobs) as pool:
            verdicts = pool.map(functools.partial(run_program, command, environment, patience, end), shown)
            for at, (k, verdict) in enumerate(zip(shown, verdicts)):
                if verdict is not None:
                    results[mutant_key(kernels.mutants[k])] = [verdict, [*found(k)[1], label]]
                if at % 100 == 0:
                    save()
        print(f"{label}: {len(shown)} reached, {sum(not found(k)[0] for k in headers)} left", flush=True)


def run_program(command, environment, patience, end, k):
    """How a program ends with mutant `k`: "" if it noticed nothing, None where there was no time left."""
    if time.monotonic() > end:
        return None
    try:
        code = subprocess.run(command, env={**environment, "S2DQ_MUTANT": str(k)}, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, timeout=patience).returncode
    except subprocess.TimeoutExpired:
        return "late"
    return "crashed" if code < 0 else "failed" if code else ""


class Session:
    """A plugin of pytest that runs tests once for each mutant, each time in a fork."""

    def __init__(self, task, results, report):
        self.built, self.wanted = task["built"], task["mutants"]  # how many mutants there are, and which are to run
        self.seconds, self.jobs, self.end = task["seconds"], task["jobs"], time.monotonic() + task["left"]
        self.results, self.report = results, report

    def pytest_runtestloop(self, session):
        from s2dq import _kernels

        library = ctypes.CDLL(_kernels.__file__)
        self.reached = (ctypes.c_ubyte * self.built).in_dll(library, "s2dq_reached")
        self.mutant = ctypes.c_int.in_dll(library, "s2dq_mutant")
        self.items = session.items
        kept = self.report.with_suffix(".survey")
        if not kept.exists():  # minutes, for the mutants slow the kernels down
            self.survey(kept)
        survey = pickle.loads(kept.read_bytes())
        shown = defaultdict(list)
        for place, (seconds, numbers) in survey.items():
            for k in numbers:
                shown[k].append((seconds, place))
        children = {}
        for k in self.wanted:
            if time.monotonic() > self.end:
                break
            chosen, total = [], 0.0
            for seconds, place in self.spread(shown[k]):
                if len(chosen) == ITEMS or total > self.seconds:
                    break
                chosen.append(place)
                total += seconds
            if not chosen:
                continue
            while len(children) >= self.jobs:
                self.wait(children)
            children[self.start(k, chosen)] = k, time.monotonic() + 20 + 4 * total
        while children:
            self.wait(children)
        return True

    def spread(self, entries):
        """The quickest first, where the second of a test function counts as if it took four times as long, the third
        nine times, and so on: not all of a thousand that take a millisecond before another function's first."""
        seen = defaultdict(int)
        ranked = []
        for seconds, place in sorted(entries):
            function = self.items[place].nodeid.split("[")[0]
            seen[function] += 1
            ranked.append((seconds * seen[function] ** 2, seconds, place))
        return [(seconds, place) for _, seconds, place in sorted(ranked)]

    def survey(self, path):
        """Write {place of a test: (seconds, mutants it reaches)} to a file, found out in a fork."""
        import numpy as np

        child = os.fork()
        if not child:
            found = {}
            others = path.with_suffix(".reached")  # what processes reach that tests start
            os.environ["S2DQ_REACHED"] = str(others)
            for place, item in enumerate(self.items):
                ctypes.memset(self.reached, 0, len(self.reached))
                others.unlink(missing_ok=True)
                began = time.monotonic()
                outcome = self.run(item)
                if outcome == "passed":
                    hits = np.frombuffer(self.reached, np.uint8).copy()
                    if others.exists():
                        rows = np.fromfile(others, np.uint8)
                        hits |= rows[: rows.size // self.built * self.built].reshape(-1, self.built).any(axis=0)
                    found[place] = time.monotonic() - began, np.flatnonzero(hits).tolist()
                elif outcome == "failed":
                    os.write(2, f"{item.nodeid} fails before anything is changed\n".encode())
            path.write_bytes(pickle.dumps(found))
            os._exit(0)
        os.waitpid(child, 0)

    def run(self, item):
        from _pytest.runner import runtestprotocol

        reports = runtestprotocol(item, nextitem=None, log=False)
        if any(report.failed for report in reports):
            return "failed"
        return "passed" if all(report.passed for report in reports) else "skipped"

    def start(self, k, places):
        child = os.fork()
        if child:
            return child
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        os.environ["S2DQ_MUTANT"] = str(k)  # for children of tests
        self.mutant.value = k
        for place in places:
            if self.run(self.items[place]) == "failed":
                os._exit(1)
        os._exit(0)

    def wait(self, children):
        """For one of the children to end, or to be late."""
        while True:
            for child, (k, limit) in list(children.items()):
                ended, status = os.waitpid(child, os.WNOHANG)
                verdict = "late" if time.monotonic() > limit else None
                if ended:
                    verdict = "crashed" if os.WIFSIGNALED(status) else "failed" if status else ""
                if verdict is not None:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(child, signal.SIGKILL)
                    if not ended:
                        os.waitpid(child, 0)
                    del children[child]
                    self.results[k] = verdict
                    if len(self.results) % 10 == 0:
                        self.report.write_text(json.dumps(self.results))
                    return
            time.sleep(0.002)


def run_session(args):
    """In the process of one instruction set."""
    import pytest

    task = json.loads(args.session.read_text())
    results = {}
    report = args.session.with_suffix(".results")
    plugin = Session(task, results, report)
    files = [f"tests/test_{name}.py" for name in task["suites"]]
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:faulthandler", f"--deselect={TOO_LONG}"]
    pytest.main([*options, *files], plugins=[plugin])
    report.write_text(json.dumps(results))
    return 0


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    every_file = ["_kernels.pyx", *sorted(f"_micro/{path.name}" for path in (ROOT / "s2dq" / "_micro").glob("*.h"))]
    ours = [file for file in every_file if Path(file).name not in OTHER_MACHINES]
    parser.add_argument("--dir", type=Path, required=True, help="where to build, and to keep results")
    parser.add_argument("--files", nargs="+", default=ours, metavar="FILE", choices=every_file)
    parser.add_argument("--suites", nargs="+", default=SUITES, metavar="NAME")
    parser.add_argument("--isas", nargs="+", default=["avx512vbmi", "avx2", "portable"])
    parser.add_argument("--programs", action="store_true", help="the programs in C alone")
    parser.add_argument("--cross", default="", choices=CROSS_PROGRAMS,
                        help="of another machine, in its programs in C alone")
    parser.add_argument("--since", metavar="COMMIT", help="of what was written behind it")
    parser.add_argument("--sample", type=int, metavar="N", help="so many of all, by chance")
    parser.add_argument("--part", type=Part, default=EVERYTHING, metavar="K/N",
                        help="of N parts of all the K-th, the same ones on every machine")
    parser.add_argument("--seed", type=int, default=20250301)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=6, help="of tests that a mutant is shown, at most")
    parser.add_argument("--minutes", type=float, default=1e6)
    parser.add_argument("--list", action="store_true", help="print the mutants and end")
    parser.add_argument("--session", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    args = parse_args()
    if args.session:
        return run_session(args)
    folder = args.dir.resolve()
    kernels = Kernels(folder / "checkout", args.files, args.cross)
    older = Kernels(folder, args.files, args.cross, args.since).mutants if args.since else []
    known = equivalent(EQUIVALENT) | {m.name for m in older}
    if args.list:
        for mutant, function in zip(kernels.mutants, kernels.functions):
            if mutant in args.part and mutant.name not in known:
                print(f"{mutant.line:5} {function}: {mutant.name}")
        return 0
    folder.mkdir(exist_ok=True)
    kernels.prepare()
    pool = [k for k, m in enumerate(kernels.mutants)
            if k not in kernels.refused and m in args.part and m.name not in known]
    chosen = sorted(random.Random(args.seed).sample(pool, min(args.sample or len(pool), len(pool))))
    kernels.woven = set(chosen)
    path = folder / "results.json"
    results = json.loads(path.read_text()) if path.exists() else {}
    end = time.monotonic() + 60 * args.minutes

    def save():
        path.write_text(json.dumps(results, indent=0))

    run_programs(kernels, chosen, results, args.jobs, end, save)
    save()
    if args.programs or args.cross:
        return say(kernels, chosen, results)
    kernels.build()
    chosen = [k for k in chosen if k not in kernels.refused]
    for isa in args.isas:
        # What one instruction set did not notice, another may.
        found = {k: results.get(mutant_key(kernels.mutants[k]), ["", []]) for k in chosen}
        left = [k for k, (verdict, tried) in found.items() if not verdict and isa not in tried]
        if not left or time.monotonic() > end:
            continue
        random.Random(args.seed).shuffle(left)  # a part of them is a sample
        task = folder / f"session-{isa}.json"
        task.write_text(json.dumps({
            "built": len(kernels.mutants), "mutants": left, "jobs": args.jobs, "suites": args.suites,
            "seconds": args.seconds, "left": end - time.monotonic()}))  # fmt: skip
        paths = f"{folder / 'checkout'}{os.pathsep}{Path(__file__).resolve().parent}"
        environment = {**os.environ, "PYTHONPATH": paths, "S2DQ_ISA": isa, "CI": "true"}
        environment.pop("S2DQ_TEST_REPORT", None)
        command = [sys.executable, "-P", str(Path(__file__).resolve()), "--dir", str(folder), "--session", str(task)]
        subprocess.run(command, cwd=folder / "checkout", env=environment, check=True)
        for k, verdict in json.loads(task.with_suffix(".results").read_text()).items():
            results[mutant_key(kernels.mutants[int(k)])] = [verdict, [*found[int(k)][1], isa]]
        save()
    return say(kernels, chosen, results)


def say(kernels, chosen, results):
    """Print what came out; 1 where a mutant was run and not noticed."""
    survivors, unreached, elsewhere, verdicts = [], [], [], defaultdict(int)
    known = equivalent(EQUIVALENT)
    for k in chosen:
        mutant = kernels.mutants[k]
        found = results.get(mutant_key(mutant))
        if found is None:
            compiled = not kernels.compiled or k in kernels.compiled or mutant.file.endswith(".pyx")
            (unreached if compiled else elsewhere).append(mutant)
        else:
            explained = not found[0] and kernels.entries(k) & known
            verdicts[found[0] or ("explained" if explained else "survived")] += 1
            if not found[0] and not explained:
                survivors.append(mutant)
    for title, group in (("not compiled on this machine", elsewhere),
                         ("not reached by any test, or not run", unreached), ("survived", survivors)):
        print(f"\n---- {title}")
        for m in group:
            print(f"{m.file}:{m.line}: {' '.join(m.before.split())} -> {m.after}")
    print(f"\n{len(kernels.mutants)} mutants, {len(kernels.refused)} refused by the compilers; of {len(chosen)} chosen "
          f"{dict(verdicts)}, {len(unreached)} not reached or not run, {len(elsewhere)} not compiled here")  # fmt: skip
    return bool(survivors)


if __name__ == "__main__":
    sys.exit(main())

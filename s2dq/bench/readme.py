"""Write the README's speed section and its picture from a result: `python -m s2dq.bench.readme`.

In a checkout, after `s2dq bench --confirm --json docs/speed.json`:

    python -m s2dq.bench.readme [docs/speed.json [README.md [docs/speed.png]]]

What stands between the two markers is replaced; nothing else is touched.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from . import chart, runner
from .report import headline, number, short, size
from .verdict import (
    COPIES,
    KINDS,
    Row,
    best_of_peers,
    closest,
    copies,
    fails,
    mean,
    operator_groups,
    preprocessing,
    preprocessing_groups,
    promises,
    rearranging,
    timed,
)

BEGIN, END = "<!-- speed: begin; written by python -m s2dq.bench.readme -->", "<!-- speed: end -->"
DEFAULTS = ("docs/speed.json", "README.md", "docs/speed.png")


def main(arguments: Sequence[str]) -> None:
    source, readme, picture = map(Path, (*arguments, *DEFAULTS[len(arguments):]))
    result = runner.load(source)
    text = readme.read_text(encoding="utf-8")
    readme.write_text(with_section(text, section(result, picture.as_posix())), encoding="utf-8")
    with open(picture, "wb") as file:
        chart.draw(result, file)


def with_section(text: str, section: str) -> str:
    """The README's text with this speed section."""
    head, begin, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the README has no {BEGIN} ... {END}")
    return f"{head}{BEGIN}\n{section}\n{END}{tail}"


def section(result: dict[str, Any], picture: str = "docs/speed.png") -> str:
    """Machine, table by operator and size, that of preprocessing, what is promised of all cases, losses, picture."""
    return "\n".join([
        f"{headline(result)}:",
        "",
        *summary(result["cases"]),
        *preprocessing_summary(result["cases"]),
        *notes(result),
        "",
        *losses(result["cases"]),
        "",
        f"![Time in copies by operator and size, s2dq and the best peer]({picture})",
    ])


def summary(rows: list[Row]) -> Iterator[str]:
    """The table of what only moves, by operator and size."""
    groups = [(f"`{operator}` | {size}", found) for operator, size, found in operator_groups(rearranging(rows))]
    if groups:
        yield from table("| | output |", [*groups, ("**all** | ", timed(rearranging(rows)))])


def preprocessing_summary(rows: list[Row]) -> Iterator[str]:
    """The table of `Preprocessor`, by layout of the result."""
    groups = preprocessing_groups(rows)
    if groups:
        yield from table("| `Preprocessor` to |", [*groups[:-1], ("**all**", groups[-1][1])])


def table(head: str, groups: Iterable[tuple[str, list[Row]]]) -> Iterator[str]:
    head += " cases | s2dq | fresh result | best peer | lead | slowest case |"
    yield head
    yield "|" + "---|" * (head.count("|") - 1)
    for title, rows in groups:
        yield f"| {title} | {cells(rows)} |"
    yield ""


def cells(rows: list[Row]) -> str:
    """Number of cases, means and the slowest case."""
    slowest = max(rows, key=lambda row: copies(row, "out") or 0.0)
    peers = [best_of_peers(row["runs"][0]) for row in rows]
    leads = [peer[3] for row in rows if (peer := closest(row["runs"][0]))]
    figures = [mean(copies(row, "out") for row in rows), mean(copies(row, "fresh") for row in rows), mean(peers),
               mean(leads)]
    return f"{len(rows)} | {' | '.join(map(number, figures))} | {slowest['name']} {number(copies(slowest, 'out'))}"


def notes(result: dict[str, Any]) -> Iterator[str]:
    rows = result["cases"]
    yield ("All figures but the lead are times in copies, geometric means over the cases: a *copy* is `np.copyto` of "
           "as many bytes as the output has, timed in turn with the call in the same process. *s2dq* writes into "
           "`out=`; the *best peer* is the fastest library of each case, by any of its calls. *Lead* compares like "
           "with like: peers that write into an existing array with `out=`, the others with a fresh result.")
    for title, chosen in (("Peers", rearranging(rows)), ("Peers in preprocessing", preprocessing(rows))):
        if tried := ", ".join(f"{peer} {number(own)} ({count})" for peer, own, count in peer_means(result, chosen)):
            yield ""
            yield f"{title}, each in copies over the cases it can run (their number): {tried}."
    figures = [f"{what}: {number(figure)}" for what, figure, _ in promises(rows)]
    if figures:
        yield ""
        yield f"Over all cases that only move: {'; '.join(figures)}."


def peer_means(result: dict[str, Any], rows: list[Row]) -> Iterator[tuple[str, float | None, int]]:
    for peer in result["peers"]:
        found = [row["runs"][0].get(peer, {}) for row in rows]
        own = [min(one[kind][COPIES] for kind in KINDS if kind in one) for one in found if one.keys() & set(KINDS)]
        if own:
            yield peer, mean(own), len(own)


def losses(rows: list[Row]) -> Iterator[str]:
    failed = [row for row in rows if fails(row)]
    if not failed:
        yield f"None of {len(rows)} cases is over budget (`s2dq/bench/budget.py`) or behind a peer by more than 5 %."
        return
    yield f"Over budget (`s2dq/bench/budget.py`) or behind a peer by more than 5 %: {len(failed)} of {len(rows)} cases."
    yield ""
    yield "| case | output | copies | | |"
    yield "|---|---|---|---|---|"
    for row in failed:
        peer = closest(row["runs"][0])
        lead = f"{peer[0]} {number(peer[2])}" if peer else ""
        yield (f"| {row['name']} | {size(row['nbytes'])} | {number(copies(row, 'out'))} | {short(fails(row))} "
               f"| {lead} |")


if __name__ == "__main__":
    main(sys.argv[1:])

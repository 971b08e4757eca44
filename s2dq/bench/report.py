"""A result as text for the terminal."""

from collections.abc import Iterable, Iterator
from statistics import median
from typing import Any

from . import cases
from .verdict import (
    COPIES,
    KINDS,
    US,
    Row,
    best_of_peers,
    closest,
    copies,
    fails,
    groups,
    losses,
    mean,
    preprocessing,
    preprocessing_groups,
    promises,
    rate,
    rearranging,
    timed,
)


def lines_of(result: dict[str, Any]) -> Iterator[str]:
    """The report: machine, one line per case, means and peers, those of preprocessing apart, promises, losses."""
    rows = result["cases"]
    yield from header(result)
    yield ""
    yield from table(["case", "output", "out=", "fresh", "k", "best peer", "copies", "lead", ""], map(cells, rows))
    yield ""
    for title, found, chosen in (("copies", groups(rows), rearranging(rows)),
                                 ("preprocessing, copies", preprocessing_groups(rows), preprocessing(rows))):
        if found:
            yield from table([f"{title}, geometric means", "cases", "out=", "fresh", "best peer", "lead", "copy GB/s"],
                             (mean_cells(*group) for group in found))
            yield ""
            yield from peer_lines(result, chosen)
    yield from idle_lines(result)
    for what, figure, limit in promises(rows):
        yield f"{what}: {number(figure)} (limit {number(limit)}){'' if figure <= limit else '  MISSED'}"
    yield from problem_lines(rows)
    yield from loss_lines(rows)


def header(result: dict[str, Any]) -> Iterator[str]:
    machine = result["machine"]
    yield headline(result)
    versions = [f"{name} {version}" for own in result["peers"].values() for name, version in own.items()]
    yield f"s2dq {machine['s2dq']}, Python {machine['python']}, {', '.join(versions) or 'no peers'}"
    yield "A copy is np.copyto of as many bytes as the output has. Lead: the best peer's time over that of s2dq."


def headline(result: dict[str, Any]) -> str:
    """What a figure needs beside it: CPU, instruction set, compiler, threads, date."""
    machine = result["machine"]
    threads = "1 thread" if machine["threads"] == 1 else f"{machine['threads']} threads"
    return f"{machine['cpu']}, {machine['instruction set']}, {machine['compiler']}, {threads}, {machine['date']}"


def cells(row: Row) -> list[str]:
    run = row["runs"][0]
    peer = closest(run)
    own = [number(copies(row, "out")), number(copies(row, "fresh")), number(row["k"])]
    other = [f"{peer[0]} ({peer[1]})", number(peer[2]), number(peer[3])] if peer else ["", "", ""]
    return [row["name"], size(row["nbytes"]), *own, *other, marks(row)]


def marks(row: Row) -> str:
    """What is wrong; in brackets what a second run did not show again."""
    failed = fails(row)
    once = [loss for loss in losses(row, row["runs"][0]) if loss not in failed]
    return short(failed) + (f" ({short(once)})" if once else "")


def short(found: list[str]) -> str:
    """A list of losses in a few words: over budget, behind numpy jax."""
    behind = [loss.removeprefix("behind ") for loss in found if loss.startswith("behind ")]
    other = [loss for loss in found if not loss.startswith("behind ")]
    return ", ".join([*other, *([f"behind {' '.join(behind)}"] if behind else [])])


def mean_cells(title: str, rows: list[Row]) -> list[str]:
    peers = [best_of_peers(row["runs"][0]) for row in rows]
    leads = [peer[3] for row in rows if (peer := closest(row["runs"][0]))]
    return [title, str(len(rows)), *(number(mean(copies(row, kind) for row in rows)) for kind in KINDS),
            number(mean(peers)), number(mean(leads)), f"{median(map(rate, rows)):.0f}"]


def peer_lines(result: dict[str, Any], rows: list[Row]) -> Iterator[str]:
    """The table of the peers that are asked for any of these rows, and an empty line."""
    asked = [peer for peer in result["peers"] if any(peer in row["runs"][0] for row in rows)]
    if asked:
        yield from table(["peer", "cases", "copies", "s2dq there", "wrong", "cannot"],
                         (peer_cells(peer, rows) for peer in asked))
        yield ""


def peer_cells(peer: str, rows: list[Row]) -> list[str]:
    asked = [row for row in timed(rows) if peer in row["runs"][0]]
    own = [(row, result) for row in asked if (result := row["runs"][0][peer]).keys() & set(KINDS)]
    best = [min(result[kind][COPIES] for kind in KINDS if kind in result) for _, result in own]
    wrong = sum(any("wrong" in text for text in row["runs"][0][peer].get("problems", {}).values()) for row in asked)
    return [peer, str(len(own)), number(mean(best)), number(mean(copies(row, "out") for row, _ in own)), str(wrong),
            str(len(asked) - len(own))]


def idle_lines(result: dict[str, Any]) -> Iterator[str]:
    """Why a peer has done nothing at all of what it has been asked for."""
    for peer in result["peers"]:
        own = [row["runs"][0][peer] for row in result["cases"] if peer in row["runs"][0]]
        if own and not any(found.keys() & set(KINDS) for found in own):
            reason = next((found["cannot"] for found in own if "cannot" in found), "wrong results")
            yield f"{peer} did nothing: {reason}"


def problem_lines(rows: list[Row]) -> Iterator[str]:
    """What s2dq itself got wrong: never expected, never hidden."""
    for row in rows:
        own = row["runs"][0]["s2dq"]
        for what in [own.get("cannot"), *own.get("problems", {}).values()]:
            if what:
                yield f"WRONG {row['name']}: {what}"


def loss_lines(rows: list[Row]) -> Iterator[str]:
    failed = [row for row in rows if fails(row)]
    if not failed:
        yield f"{len(rows)} cases, none over budget, none behind a peer"
        return
    yield f"{len(failed)} of {len(rows)} cases fail:"
    for row in failed:
        run = row["runs"][0]["s2dq"]
        figure = f"{run['out'][US]:.4g} us, {number(run['out'][COPIES])} copies" if "out" in run else ""
        yield f"  {row['name']}: {short(fails(row))}; {figure}"
        if row["name"].startswith("random_"):  # the name says nothing
            case = cases.find(row["name"])
            arguments = ", ".join(f"{name}={value!r}" for name, value in case.arguments.items())
            frame = f" of {case.frame}" if case.frame else ""
            yield f"    {case.operator}({case.dtype} {case.shape}{frame}, {arguments})"


def table(head: list[str], rows: Iterable[list[str]]) -> Iterator[str]:
    """Columns, the first to the left and figures to the right."""
    rows = [head, *rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        first, *rest, last = zip(row, widths, strict=True)
        aligned = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in rest)]
        aligned.append(last[0] if head[-1] == "" else last[0].rjust(last[1]))
        yield "  ".join(aligned).rstrip()


def number(value: float | None) -> str:
    """Three digits, empty for None."""
    if value is None:
        return ""
    return f"{value:.0f}" if value >= 99.95 else f"{value:.3g}" if value >= 9.995 else f"{value:.2f}"


def size(nbytes: int | None) -> str:
    """48 KiB, 1.5 MiB; empty for None."""
    if nbytes is None:
        return ""
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if nbytes >= unit:
            return f"{nbytes / unit:.3g} {name}"
    return f"{nbytes} B"

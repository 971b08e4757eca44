"""What a result says: losses, the best peer, means by size and operator. Rows are the cases of `runner.run`.

A call with `out=` is compared with peers that write into an existing array, a fresh result with peers that give one;
each peer counts with its fastest call of that kind. s2dq is *behind* a peer if it takes more than 5 % longer both by
the clock and in copies: the two were measured in different processes, whose copies can differ by more than that. It
is *over* its budget if the call with `out=` takes longer than k copies and the overhead of its operator. A case
*fails* if it is over or behind in every run that it has.

What is said of all cases together is said of those that only move; preprocessing has means of its own.
"""

from collections.abc import Iterable
from statistics import geometric_mean, median
from typing import Any, TypeAlias

from . import cases
from .budget import (
    BEHIND,
    FRESH,
    MEAN_FROM_1_MIB,
    MEDIAN_TO_1_MIB,
    MIB,
    OVERHEAD,
    SIZE_CLASSES,
    SMALL_CALL,
    overhead,
    size_class,
)

Row: TypeAlias = dict[str, Any]  # a case: its name, operator, bytes, budget, and runs
Run: TypeAlias = dict[str, Any]  # what each peer says of a case

KINDS = ("out", "fresh")
US, COPIES, LOW, HIGH, SAMPLES, HOW = range(6)  # of what a result says of a call


def fails(row: Row) -> list[str]:
    """The losses of a row that are in every run: "over budget", "behind PEER", "wrong result"."""
    per_run = [losses(row, run) for run in row["runs"]]
    return [loss for loss in per_run[0] if all(loss in one for one in per_run)]


def losses(row: Row, run: Run) -> list[str]:
    own = run["s2dq"]
    if not set(KINDS) <= own.keys():
        return ["wrong result"]
    behind = [f"behind {peer}" for peer, result in run.items() if peer != "s2dq"
              and any(kind in result and is_behind(own[kind], result[kind]) for kind in KINDS)]
    return ["over budget"] * is_over(row, own) + behind


def is_over(row: Row, own: Any) -> bool:
    k: float | None = row["k"]
    return k is not None and bool(own["out"][US] > k * own["copy"] + overhead(row["operator"]) * 1e6)


def k_of(own: Any) -> float:
    """The k that a call would just keep: copies of what it takes beyond the half microsecond."""
    return float(max(0.0, own["out"][US] - OVERHEAD * 1e6) / own["copy"])


def is_behind(own: Any, other: Any) -> bool:
    return bool(own[US] > BEHIND * other[US] and own[COPIES] > BEHIND * other[COPIES])


def rivals(run: Run, kind: str) -> list[tuple[str, float]]:
    """(peer, its copies) of all peers that have a call of this kind."""
    return [(peer, result[kind][COPIES]) for peer, result in run.items() if peer != "s2dq" and kind in result]


def closest(run: Run) -> tuple[str, str, float, float] | None:
    """The peer that s2dq leads by least: (peer, kind, its copies, its copies over those of s2dq); None without one."""
    found = [(copies / run["s2dq"][kind][COPIES], peer, kind, copies)
             for kind in KINDS if kind in run["s2dq"] for peer, copies in rivals(run, kind)]
    if not found:
        return None
    lead, peer, kind, copies = min(found)
    return peer, kind, copies, lead


def best_of_peers(run: Run) -> float | None:
    """The fewest copies that any peer needs, by any call."""
    return min((copies for kind in KINDS for _, copies in rivals(run, kind)), default=None)


def copies(row: Row, kind: str) -> float | None:
    """Copies of s2dq in the first run, None if there was nothing to time."""
    own = row["runs"][0]["s2dq"]
    return own[kind][COPIES] if kind in own else None


def mean(values: Iterable[float | None]) -> float | None:
    """The geometric mean of what is not None; None of nothing."""
    known = [value for value in values if value is not None]
    return geometric_mean(known) if known else None


def timed(rows: list[Row]) -> list[Row]:
    return [row for row in rows if copies(row, "out") is not None]


def rearranging(rows: list[Row]) -> list[Row]:
    """The rows that only move."""
    return [row for row in rows if row["operator"] != "preprocess"]


def preprocessing(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row["operator"] == "preprocess"]


def groups(rows: list[Row]) -> list[tuple[str, list[Row]]]:
    """(title, rows) by size class, by operator and of all rows, as far as they only move."""
    rows = rearranging(timed(rows))
    sizes = [(name, [row for row in rows if size_class(row["nbytes"]) == name]) for _, name in SIZE_CLASSES]
    operators = [(name, [row for row in rows if row["operator"] == name])
                 for name in dict.fromkeys(row["operator"] for row in rows)]
    large = [("from 1 MiB", [row for row in rows if row["nbytes"] >= MIB])]
    return [(title, chosen) for title, chosen in [*sizes, *operators, *large, ("all", rows)] if chosen]


def preprocessing_groups(rows: list[Row]) -> list[tuple[str, list[Row]]]:
    """(title, rows) of preprocessing by the layout of the result, and of all of it."""
    rows = preprocessing(timed(rows))
    layouts: dict[str, list[Row]] = {layout: [] for layout in ("NHWC", "NCHW", "NCHW_VECT_C")}
    for row in rows:
        layouts[cases.find(row["name"]).arguments.get("data_format", "NHWC")].append(row)
    return [(title, chosen) for title, chosen in [*layouts.items(), ("all", rows)] if chosen]


def operator_groups(rows: list[Row]) -> list[tuple[str, str, list[Row]]]:
    """(operator, size class, rows) of what there is, in the order of the list of cases."""
    rows = timed(rows)
    operators = dict.fromkeys(row["operator"] for row in rows)
    found: dict[tuple[str, str], list[Row]] = {
        (operator, name): [] for operator in operators for _, name in SIZE_CLASSES
    }
    for row in rows:
        found[row["operator"], size_class(row["nbytes"])].append(row)
    return [(*key, chosen) for key, chosen in found.items() if chosen]


def promises(rows: list[Row]) -> list[tuple[str, float, float]]:
    """(what, figure, limit) of what is promised of all cases together; only what these rows can show."""
    rows = rearranging(timed(rows))
    ratios = [(row["nbytes"], copies(row, "out"), row["runs"][0]["s2dq"]) for row in rows]
    from_1_mib = [ratio for nbytes, ratio, _ in ratios if nbytes >= MIB]
    to_1_mib = [k_of(own) for nbytes, _, own in ratios if size_class(nbytes) == "to 1 MiB"]
    smallest = [own["out"][US] for nbytes, _, own in ratios if nbytes <= 64]
    largest = [own["fresh"][US] / own["out"][US] for nbytes, _, own in ratios if nbytes == 128 * MIB]
    candidates: tuple[tuple[str, float | None, float], ...] = (
        ("copies from 1 MiB up, geometric mean", mean(from_1_mib), MEAN_FROM_1_MIB),
        ("copies beyond 0.5 us from 128 KiB to 1 MiB, median", median(to_1_mib) if to_1_mib else None, MEDIAN_TO_1_MIB),
        ("us of the slowest call with 64 bytes", max(smallest, default=None), SMALL_CALL * 1e6),
        ("fresh 128 MiB over out=, largest", max(largest, default=None), FRESH),
    )
    return [(what, figure, limit) for what, figure, limit in candidates if figure is not None]


def rate(row: Row) -> float:
    """GB/s of the copy: bytes of the output over the time it takes to copy as many."""
    return float(row["nbytes"] / row["runs"][0]["s2dq"]["copy"] / 1e3)

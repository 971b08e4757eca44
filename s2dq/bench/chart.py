"""A result as a bar chart: copies of s2dq and of the best peer by operator and size, every case as a dot."""

from statistics import geometric_mean
from typing import Any, BinaryIO

from .report import headline
from .verdict import best_of_peers, copies, operator_groups

OWN, PEER, INK = "#1b7f79", "#c9c2b6", "#333333"
WIDTH, ROW, MARGINS = 8.3, 0.34, 1.5  # inches: the width of a README
DPI = 200


def require() -> None:
    """Raise ImportError here, before anything is measured, if Matplotlib is missing."""
    import matplotlib  # noqa: F401


def draw(result: dict[str, Any], file: BinaryIO) -> None:
    """Write the chart as PNG to an open file."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rows = operator_groups(result["cases"])[::-1]  # Matplotlib counts from below
    figure = Figure(figsize=(WIDTH, ROW * len(rows) + MARGINS), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for place, (_, _, cases) in enumerate(rows):
        own = [count for row in cases if (count := copies(row, "out")) is not None]
        peers = [best for row in cases if (best := best_of_peers(row["runs"][0])) is not None]
        bar(axes, place + 0.19, own, OWN, "s2dq, out=")
        if peers:
            bar(axes, place - 0.19, peers, PEER, "best peer of each case")
    finish(axes, [f"{operator}  {size}" for operator, size, _ in rows])
    figure.suptitle(headline(result), fontsize=8, color=INK)
    figure.savefig(file, format="png")


def bar(axes: Any, place: float, values: list[float], colour: str, label: str) -> None:
    width = geometric_mean(values) - 1  # from a copy on
    axes.barh(place, width, left=1, height=0.36, color=colour, label=label, zorder=1)
    axes.plot(values, [place] * len(values), "|", color=INK, markersize=5, markeredgewidth=0.8, zorder=2,
              label="a case")


def finish(axes: Any, names: list[str]) -> None:
    axes.set_xscale("log")
    axes.set_xlim(left=min(0.5, 0.8 * axes.dataLim.minpos[0]))
    axes.set_yticks(range(len(names)), names, fontsize=8, family="monospace")
    axes.set_ylim(-0.6, len(names) - 0.4)
    axes.axvline(1, color=INK, linewidth=0.8, zorder=3)
    ticks = [value for value in (0.5, 1, 2, 5, 10, 20, 50, 100) if axes.get_xlim()[0] <= value <= axes.get_xlim()[1]]
    axes.set_xticks(ticks, [f"{value:g}" for value in ticks], fontsize=8)
    axes.minorticks_off()
    axes.grid(axis="x", color="#e6e6e6", zorder=0)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.set_xlabel("time in copies of the same bytes (bars: geometric means), logarithmic", fontsize=8)
    handles, labels = axes.get_legend_handles_labels()
    unique = dict(zip(labels, handles))
    axes.figure.legend(unique.values(), unique.keys(), fontsize=8, loc="outside lower center", ncols=3, frameon=False)

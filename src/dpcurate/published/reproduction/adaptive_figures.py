"""Pictures of runs that differ in the allocation of the budget alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from dpcurate.published.reproduction.adaptive_comparisons import Z95
from dpcurate.published.reproduction.grid import FAMILIES, INCREMENTS, CellKind
from dpcurate.published.reproduction.store import Runs, Summary

COLOURS = ("#d55e00", "#e69f00", "#0072b2", "#56b4e9", "#009e73", "#cc79a7", "#999999")
MARKS = ("o", "P", "s", "D", "^", "v", "X")
Panel = Callable[[Any, Runs, str], None]


def lines(kind: CellKind, metric: str, readings: tuple[str, ...], label: str) -> Panel:
    """A panel: F1 with 95 % intervals against the mean leakage spent, a line for each reading."""

    def panel(axis: Any, runs: Runs, network: str) -> None:
        family = FAMILIES[kind]
        for i, reading in enumerate(readings):
            points = []
            for target in family.targets:
                spent, f1 = (runs.of(c, network, family.method, target, reading, kind) for c in ("claimed", metric))
                if spent is not None and f1 is not None:
                    # Side by side: equal leakage would put the intervals on top of each other.
                    shift = math.exp(0.055 * (i - (len(readings) - 1) / 2))
                    points.append((spent.mean * shift, f1.mean, Z95 * f1.error))
            if points:
                xs, ys, halves = zip(*points, strict=True)
                shape = {"marker": MARKS[i], "color": COLOURS[i], "markersize": 4, "linewidth": 1.9 - 0.8 * (i > 0)}
                axis.errorbar(xs, ys, yerr=halves, label=reading, elinewidth=0.7, **shape)
        axis.set_xscale("log")
        axis.set_ylim(-0.03, 1.05)
        axis.set_xlabel(label)
        axis.grid(alpha=0.25, linewidth=0.5)

    return panel


def order_0(axis: Any, runs: Runs, network: str) -> None:
    """The part of the leakage that OPT gives to order 0, against the total."""
    for i, reading in enumerate(("OPT", "OPT, planned once", "the script's OPT", "uniform")):
        points = []
        for target in FAMILIES["allocation"].targets:
            found = runs.of("first", network, "curate-pc", target, reading, "allocation")
            if found is not None:
                points.append((target, found.mean))
        if points:
            xs, ys = zip(*points, strict=True)
            axis.plot(xs, ys, marker=MARKS[i], color=COLOURS[i], markersize=4, linewidth=1.2, label=reading)
    axis.set_xscale("log")
    axis.set_ylim(-0.03, 1.05)
    axis.set_xlabel("total epsilon of OPT")
    axis.grid(alpha=0.25, linewidth=0.5)


def increments(plt: Any, runs: Runs) -> Any:
    """Mean skeleton F1 over the networks, and iterations used, against eps_0; a column for each total."""
    family = FAMILIES["increment"]
    figure, axes = plt.subplots(2, len(family.targets), figsize=(9.9, 4.9), squeeze=False, sharex="col")
    for column, total in enumerate(family.targets):
        for i, kind in enumerate(INCREMENTS):
            found = [(float(reading.split()[1]), reading) for reading in family.readings if reading.startswith(kind)]
            for row, (metric, label) in enumerate((("skeleton_f1", "mean skeleton F1"), ("answered", "gradients"))):
                points = [(first, mean) for first, r in found if (mean := _mean(runs, metric, total, r)) is not None]
                if points:
                    xs, ys = zip(*points, strict=True)
                    shape = {"marker": MARKS[i], "color": COLOURS[i], "markersize": 4, "linewidth": 1.2}
                    axes[row][column].plot(xs, ys, label=kind, **shape)
                axes[row][0].set_ylabel(label)
        axes[0][column].set(xscale="log", title=f"total = {total:g}", ylim=(0.3, 1.0))
        axes[1][column].set(xscale="log", yscale="log", xlabel="eps_0")
        for axis in (axes[0][column], axes[1][column]):
            axis.grid(alpha=0.25, linewidth=0.5)
    figure.legend(*axes[0][-1].get_legend_handles_labels(), loc="lower center", ncols=4, frameon=False, fontsize=8)
    figure.tight_layout(rect=(0, 0.05, 1, 1))
    return figure


def _mean(runs: Runs, metric: str, total: float, reading: str) -> float | None:
    found = [runs.of(metric, n, "curate-score", total, reading, "increment") for n in runs.networks]
    there = [one.mean for one in found if isinstance(one, Summary)]
    return sum(there) / len(there) if there and len(there) == len(found) else None


def panels() -> Iterator[tuple[str, Panel, str, CellKind]]:
    """Pictures with a panel for each network: a name, the panel, the label of the ordinate and what it shows."""
    readings = tuple(r for r in FAMILIES["allocation"].readings if not r.endswith("same total"))
    spent = "epsilon spent"
    arcs, skeleton = "F1 (arcs, PC run)", "F1 (skeleton)"
    yield "allocation", lines("allocation", "pc_f1", readings, spent), arcs, "allocation"
    yield "order-0", order_0, "part for order 0", "allocation"
    shown = FAMILIES["proved allocation"].readings
    yield "allocation-proved", lines("proved allocation", "skeleton_f1", shown, spent), skeleton, "proved allocation"
    yield "shapes", lines("shape", "skeleton_f1", FAMILIES["shape"].readings, spent), skeleton, "shape"
    yield "adaptive", lines("adaptive", "skeleton_f1", FAMILIES["adaptive"].readings, "epsilon"), skeleton, "adaptive"

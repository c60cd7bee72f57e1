"""The figures, drawn from the Parquet file alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from dpcurate.published.reproduction.grid import TESTED
from dpcurate.published.reproduction.store import read_runs
from dpcurate.published.reproduction.summary import LABELS, METRICS, Runs

COLOURS = {
    "em-pc": "#e69f00",
    "svt-pc": "#999999",
    "priv-pc": "#56b4e9",
    "curate-pc": "#d55e00",
    "noleaks": "#009e73",
    "curate-score": "#cc79a7",
    "measure-once": "#000000",
    "notears-on-moments": "#0072b2",
}
MARKS = {
    "em-pc": "s",
    "svt-pc": "v",
    "priv-pc": "D",
    "curate-pc": "o",
    "noleaks": "^",
    "curate-score": "P",
    "measure-once": "*",
    "notears-on-moments": "X",
}
STYLE = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
Panel = Callable[[Any, Runs, str], None]


def draw(parquet: Path, directory: Path) -> list[Path]:
    """Every figure as SVG and PNG; an empty list if matplotlib is not installed."""
    try:
        import_module("matplotlib").use("Agg")
    except ImportError:
        return []
    plt: Any = import_module("matplotlib.pyplot")
    directory.mkdir(parents=True, exist_ok=True)
    runs = Runs(read_runs(parquet))
    drawn: list[Path] = []
    with plt.rc_context(STYLE):
        for metric, words in METRICS.items():
            short = metric.removesuffix("_f1")
            drawn += _six(plt, runs, directory / f"claimed-{short}", _claimed(metric), f"F1 ({words})")
            drawn += _six(plt, runs, directory / f"proved-{short}", _proved(metric), f"F1 ({words})")
        drawn += _six(plt, runs, directory / "tests", _tests, "CI tests a run (dotted: PC)", legend=False)
        drawn += _six(plt, runs, directory / "seconds", _seconds, "seconds a run", legend=False)
        drawn += _schedules(plt, runs, directory / "schedules")
    return drawn


def _six(plt: Any, runs: Runs, path: Path, panel: Panel, label: str, *, legend: bool = True) -> list[Path]:
    """A panel for each network, one legend for all."""
    across = 2 if len(runs.networks) == 4 else min(3, len(runs.networks))
    down = math.ceil(len(runs.networks) / across)
    figure, axes = plt.subplots(
        down, across, figsize=(3.4 * across + 1.2 * (across < 3), 2.5 * down + 0.9), squeeze=False, sharey=legend
    )
    for axis, network in zip(axes.flat, runs.networks, strict=False):
        axis.set_title(network, fontsize=10)
        panel(axis, runs, network)
    for axis in list(axes.flat)[len(runs.networks) :]:
        axis.set_visible(False)
    for row in axes:
        row[0].set_ylabel(label)
    if legend:
        entries = {t: h for a in axes.flat for h, t in zip(*a.get_legend_handles_labels(), strict=True)}
        figure.legend(
            entries.values(), entries.keys(), loc="lower center", ncols=1 + across, frameon=False, fontsize=7.5
        )
    figure.tight_layout(rect=(0, 0.8 / figure.get_figheight() if legend else 0, 1, 1))
    return _save(plt, figure, path)


def _save(plt: Any, figure: Any, path: Path) -> list[Path]:
    target = path.with_suffix(".png")
    figure.savefig(target, dpi=130)
    plt.close(figure)
    return [target]


def _line(
    axis: Any, runs: Runs, network: str, method: str, variant: str, metric: str, across: str, label: str, **style: Any
) -> None:
    points = []
    for target in runs.targets:
        x, y = (runs.of(c, network, method, target, variant=variant) for c in (across, metric))
        if x is not None and y is not None and math.isfinite(x.mean):
            points.append((x.mean, y.mean, y.error))
    if points:
        xs, ys, errors = zip(*points, strict=True)
        shape = {"marker": MARKS[method], "color": COLOURS[method], "markersize": 4.5, "linewidth": 1.1, **style}
        axis.errorbar(xs, ys, yerr=errors, label=label, elinewidth=0.6, **shape)


def _frame(axis: Any, label: str) -> None:
    axis.set_xscale("log")
    axis.set_ylim(-0.03, 1.05)
    axis.set_xlabel(label)
    axis.grid(alpha=0.25, linewidth=0.5)


def _claimed(metric: str) -> Panel:
    """The published methods at the leakage that their authors' formulas give."""

    def panel(axis: Any, runs: Runs, network: str) -> None:
        for method in runs.variants("published"):
            _line(axis, runs, network, method, "published", metric, "claimed", LABELS[method])
        exact = runs.exact(metric, network, "pc-kendall" if metric != "pc_f1" else "pc-g")
        words = "PC, Kendall, not private" if metric != "pc_f1" else "PC, G test, not private"
        axis.axhline(exact, color="black", linewidth=0.8, linestyle=":", label=words)
        _frame(axis, "claimed epsilon (not proved)")

    return panel


def _proved(metric: str) -> Panel:
    """The same runs at the epsilon that is proved for their noise, with our methods."""

    def panel(axis: Any, runs: Runs, network: str) -> None:
        for method in runs.variants("published"):
            style = {"linestyle": "--", "markerfacecolor": "white"}
            _line(
                axis, runs, network, method, "published", metric, "proved", f"{LABELS[method]}, as published", **style
            )
        for method in runs.variants("proved"):
            _line(axis, runs, network, method, "proved", metric, "proved", f"{LABELS[method]}, proved")
        _frame(axis, "proved epsilon, delta = 1e-10")

    return panel


def _bars(axis: Any, values: Sequence[tuple[str, float, float]]) -> None:
    names = [LABELS[m].replace(" (", "\n(") for m, _, _ in values]
    axis.bar(names, [v for _, v, _ in values], color=[COLOURS[m] for m, _, _ in values], width=0.7)
    axis.errorbar(names, [v for _, v, _ in values], yerr=[e for *_, e in values], fmt="none", color="black", lw=0.7)
    axis.tick_params(axis="x", rotation=60, labelsize=7)


def _tests(axis: Any, runs: Runs, network: str) -> None:
    methods = [m for m in runs.variants("published") if m not in ("noleaks", "curate-score")]
    found = [(m, runs.of("tests", network, m, TESTED)) for m in methods]
    _bars(axis, [(m, s.mean, s.error) for m, s in found if s is not None])
    axis.axhline(runs.exact("tests", network, "pc-kendall"), color="black", linestyle=":", linewidth=1)


def _seconds(axis: Any, runs: Runs, network: str) -> None:
    found = [(m, runs.of("seconds", network, m, TESTED, kind="time")) for m in runs.variants("published")]
    for method, one in found:
        if one is not None:
            name = LABELS[method].replace(" (", "\n(")
            axis.plot([name], [one.mean], marker=MARKS[method], color=COLOURS[method], markersize=7)
    axis.tick_params(axis="x", rotation=60, labelsize=7)
    axis.margins(x=0.12)
    axis.set_yscale("log")
    axis.set_ylim(1e-3, 300)
    axis.grid(alpha=0.25, linewidth=0.5)


def _schedules(plt: Any, runs: Runs, path: Path) -> list[Path]:
    """Figure 3: iterations against the total for each increment, by Lemma 2 and exactly."""
    rows = [r for r in runs.rows if r["kind"] == "schedule"]
    firsts = sorted({r["step"] for r in rows})
    if not firsts:
        return []
    figure, axes = plt.subplots(1, len(firsts), figsize=(2.7 * len(firsts), 2.9), squeeze=False)
    colours = {"additive": "#56b4e9", "exponential": "#e69f00", "multiplicative": "#d55e00"}
    for axis, first in zip(axes.flat, firsts, strict=True):
        for kind, colour in colours.items():
            for variant, style in (("lemma-2", "-"), ("exact", "")):
                chosen = (kind, variant, first)
                points = [(r["target"], r["tests"]) for r in rows if (r["method"], r["variant"], r["step"]) == chosen]
                shown = sorted((x, y) for x, y in points if y >= 1)
                mark = "." if variant == "exact" else ""
                label = f"{kind}, {'exact' if mark else 'Lemma 2'}"
                xs, ys = zip(*shown, strict=True) if shown else ((), ())
                axis.plot(xs, ys, linestyle=style, marker=mark, color=colour, label=label, linewidth=1)
        axis.set(xscale="log", yscale="log", xlim=(0.08, 12), title=f"eps_0 = {first:g}", xlabel="total epsilon")
        for side in (axis.xaxis, axis.yaxis):
            side.set_minor_formatter(plt.NullFormatter())
        axis.grid(alpha=0.25, linewidth=0.5)
    axes[0][0].set_ylabel("iterations")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=3, frameon=False, fontsize=8)
    figure.tight_layout(rect=(0, 0.16, 1, 1))
    return _save(plt, figure, path)

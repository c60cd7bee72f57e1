"""The figures, drawn from the runs alone."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from dpcurate._files import save_bytes
from dpcurate.published.reproduction import adaptive_figures
from dpcurate.published.reproduction.grid import CONSTRAINT, FIRSTS, PUBLISHED, SCORE, TESTED
from dpcurate.published.reproduction.store import LABELS, METRICS, Runs

COLOURS = {
    "em-pc": "#e69f00",
    "svt-pc": "#999999",
    "priv-pc": "#56b4e9",
    "curate-pc": "#d55e00",
    "noleaks": "#009e73",
    "curate-score": "#cc79a7",
    "measure-once": "#000000",
    "notears-moments": "#0072b2",
}
MARKS = {
    "em-pc": "s",
    "svt-pc": "v",
    "priv-pc": "D",
    "curate-pc": "o",
    "noleaks": "^",
    "curate-score": "P",
    "measure-once": "*",
    "notears-moments": "X",
}
REGIMES = (0.1, 5.0, 10.0)
STYLE: dict[str, object] = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
Panel = Callable[[Any, Runs, str], None]
Curve = tuple[str, str, str, dict[str, Any]]
"""A method, its reading, its label and how its line is drawn."""


def draw(runs: Runs, directory: Path) -> list[Path]:
    """Every figure as PNG; an empty list if matplotlib is not installed."""
    try:
        import_module("matplotlib").use("Agg")
    except ImportError:
        return []
    plt: Any = import_module("matplotlib.pyplot")
    directory.mkdir(parents=True, exist_ok=True)
    with plt.rc_context(STYLE):
        figures = dict(_figures(plt, runs))
        paths = [directory / f"{name}.png" for name in figures]
        for path, figure in zip(paths, figures.values(), strict=True):
            picture = io.BytesIO()
            figure.savefig(picture, dpi=110, format="png")
            save_bytes(path, picture.getvalue())
            plt.close(figure)
    return paths


def _figures(plt: Any, runs: Runs) -> Iterator[tuple[str, Any]]:
    yield "workflow", workflow(plt)
    yield "composition", composition(plt)
    yield "schedules", _schedules(plt, runs)
    yield "equal-first", _six(plt, runs, _equal_first, "F1 (skeleton)")
    yield "increments", adaptive_figures.increments(plt, runs)
    for metric in ("pc_f1", "skeleton_f1"):
        yield f"spent-{metric.removesuffix('_f1')}", _six(plt, runs, _spent(metric), f"F1 ({METRICS[metric]})")
    yield "proved", _six(plt, runs, _proved("skeleton_f1"), f"F1 ({METRICS['skeleton_f1']})")
    for name, panel, label, kind in adaptive_figures.panels():
        yield name, _six(plt, runs, panel, label, networks=runs.with_kind(kind))
    yield "regimes", _six(plt, runs, _regimes, "F1 (arcs, PC run)")
    yield "rates", _six(plt, runs, _rates, "recall")
    yield "tests", _six(plt, runs, _tests, "CI tests a run", share=False)
    yield "seconds", _six(plt, runs, _seconds, "seconds a run", share=False)


def _six(
    plt: Any, runs: Runs, panel: Panel, label: str, *, share: bool = True, networks: list[str] | None = None
) -> Any:
    """A panel for each network, or for some, and one legend for all."""
    shown = networks or runs.networks
    across = min(3, len(shown))
    down = math.ceil(len(shown) / across)
    size = (max(3.3 * across, 5.0), 2.5 * down + 0.9)
    figure, axes = plt.subplots(down, across, figsize=size, squeeze=False, sharey=share)
    for axis, network in zip(axes.flat, shown, strict=False):
        axis.set_title(network, fontsize=10)
        panel(axis, runs, network)
    for axis in list(axes.flat)[len(shown) :]:
        axis.set_visible(False)
    for row in axes:
        row[0].set_ylabel(label)
    entries = {t: h for a in axes.flat for h, t in zip(*a.get_legend_handles_labels(), strict=True)}
    figure.legend(
        entries.values(), entries.keys(), loc="lower center", ncols=min(5, 2 * across), frameon=False, fontsize=7.5
    )
    rows = math.ceil(len(entries) / min(5, 2 * across))
    figure.tight_layout(rect=(0, (0.12 + 0.19 * rows) / figure.get_figheight() if rows else 0, 1, 1))
    return figure


# --- F1 against leakage -----------------------------------------------------------------------------------


def _published(runs: Runs) -> Iterator[Curve]:
    """Every published method in its literal reading, CURATE also as its script."""
    for method in PUBLISHED:
        for reading in runs.readings(method)[:1]:
            yield method, reading, LABELS[method], {}
        if "script" in runs.readings(method):
            dashed = {"linestyle": "--", "markerfacecolor": "white"}
            yield method, "script", f"{LABELS[method]}, script", dashed


def _line(axis: Any, runs: Runs, network: str, metric: str, across: str, curve: Curve) -> None:
    method, reading, label, style = curve
    points = runs.line(metric, network, method, across, reading)
    if across == "spent":
        points = [(x, y) for x, y in points if x < 1.3 * runs.targets[-1]]
    if points:
        shape = {"marker": MARKS[method], "color": COLOURS[method], "markersize": 4.5, "linewidth": 1.1, **style}
        xs, ys, errors = zip(*((x, y.mean, y.error) for x, y in points), strict=True)
        axis.errorbar(xs, ys, yerr=errors, label=label, elinewidth=0.6, **shape)


def _frame(axis: Any, label: str) -> None:
    axis.set_xscale("log")
    axis.set_ylim(-0.03, 1.05)
    axis.set_xlabel(label)
    axis.grid(alpha=0.25, linewidth=0.5)


def _spent(metric: str) -> Panel:
    """The published methods at what they spent; dotted, the non-private run that they are compared with."""

    def panel(axis: Any, runs: Runs, network: str) -> None:
        for curve in _published(runs):
            _line(axis, runs, network, metric, "spent", curve)
        exact = runs.exact(metric, network)
        axis.axhline(exact, color="black", linewidth=0.8, linestyle=":", label="PC, Kendall, not private")
        _frame(axis, "epsilon spent, by the authors' count")

    return panel


def _proved(metric: str) -> Panel:
    """The same runs at the epsilon that is proved for their noise, with our methods."""

    def panel(axis: Any, runs: Runs, network: str) -> None:
        for method, reading, label, style in _published(runs):
            hollow = {"linestyle": "--", "markerfacecolor": "white", **style}
            if reading == "script":
                hollow["linestyle"] = ":"
            _line(axis, runs, network, metric, "proved", (method, reading, f"{label}, published", hollow))
        for method in runs.methods("proved"):
            _line(axis, runs, network, metric, "proved", (method, "proved", f"{LABELS[method]}, proved", {}))
        _frame(axis, "proved epsilon, delta = 1e-10")

    return panel


def _regimes(axis: Any, runs: Runs, network: str) -> None:
    """Mean and standard deviation at three totals, methods side by side."""
    shown = [t for t in REGIMES if t in runs.targets]
    curves = list(_published(runs))
    for i, (method, reading, label, style) in enumerate(curves):
        found = [runs.of("pc_f1", network, method, t, reading) for t in shown]
        place = [k + (i - (len(curves) - 1) / 2) * 0.11 for k, s in enumerate(found) if s is not None]
        means, sds = ([getattr(s, c) for s in found if s is not None] for c in ("mean", "sd"))
        shape = {"marker": MARKS[method], "color": COLOURS[method], "markersize": 4, **style, "linestyle": "none"}
        axis.errorbar(place, means, yerr=sds, label=label, elinewidth=0.9, **shape)
    axis.set_xticks(range(len(shown)), [f"{t:g}" for t in shown])
    axis.set_xlabel("total epsilon")
    axis.set_ylim(-0.05, 1.1)
    axis.grid(alpha=0.25, linewidth=0.5, axis="y")


def _rates(axis: Any, runs: Runs, network: str) -> None:
    """A path through the plane of precision and recall; the largest total has the largest mark."""
    for method, reading, label, style in _published(runs):
        pairs = [
            [runs.of(f"pc_{c}", network, method, t, reading) for c in ("precision", "recall")] for t in runs.targets
        ]
        points = [(p.mean, r.mean) for p, r in pairs if p is not None and r is not None]
        if points:
            xs, ys = zip(*points, strict=True)
            shape = {"color": COLOURS[method], "linewidth": 0.9, **style}
            axis.plot(xs, ys, marker=MARKS[method], markersize=2.5, label=label, **shape)
            axis.plot(xs[-1:], ys[-1:], marker=MARKS[method], markersize=6, **{**shape, "linestyle": "none"})
    axis.set(xlim=(-0.03, 1.05), ylim=(-0.03, 1.05), xlabel="precision")
    axis.grid(alpha=0.25, linewidth=0.5)


def _equal_first(axis: Any, runs: Runs, network: str) -> None:
    """For each eps_0 a line from NOLEAKS to CURATE."""
    for first in FIRSTS:
        ends = []
        for method in SCORE:
            x, y = (
                runs.of(c, network, method, first, "artifact's noise, I = 30", "first")
                for c in ("claimed", "skeleton_f1")
            )
            if x is not None and y is not None:
                ends.append((x.mean, y.mean))
                shape = {"marker": MARKS[method], "color": COLOURS[method], "linestyle": "none", "markersize": 6}
                axis.errorbar([x.mean], [y.mean], yerr=[1.96 * y.error], label=LABELS[method], elinewidth=0.7, **shape)
        if len(ends) == 2:
            axis.plot(*zip(*ends, strict=True), color=PALE, linewidth=0.9, zorder=0)
    _frame(axis, "epsilon claimed")


# --- tests, times, schedules ------------------------------------------------------------------------------


def _tests(axis: Any, runs: Runs, network: str) -> None:
    """Two bars a method: the authors' unit, and answered tests; two lines for PC."""
    curves = [c for c in _published(runs) if c[0] in CONSTRAINT]
    names = [
        label.removeprefix("CURATE (constraint), ").replace("CURATE (constraint)", "CURATE")
        for _, _, label, _ in curves
    ]
    for column, side, alpha, line in (("counted", -0.2, 1.0, "-"), ("answered", 0.2, 0.45, ":")):
        found = [(i, c, runs.of(column, network, c[0], TESTED, c[1])) for i, c in enumerate(curves)]
        for i, curve, one in found:
            if one is not None:
                shape = {"color": COLOURS[curve[0]], "alpha": alpha, "width": 0.38}
                axis.bar([i + side], [one.mean], yerr=[one.error], error_kw={"lw": 0.7}, **shape)
        words = {"counted": "PC, authors' unit (deletions)", "answered": "PC, answered tests"}[column]
        axis.axhline(runs.exact(column, network), color="black", linestyle=line, linewidth=0.9, label=words)
    axis.set_xticks(range(len(names)), names, rotation=45, fontsize=7.5)


def _seconds(axis: Any, runs: Runs, network: str) -> None:
    names = []
    for method in PUBLISHED:
        one = runs.of("seconds", network, method, TESTED, kind="time")
        names.append(LABELS[method].replace(" (", "\n("))
        if one is not None:
            axis.plot([len(names) - 1], [one.mean], marker=MARKS[method], color=COLOURS[method], markersize=7)
    axis.set_xticks(range(len(names)), names, rotation=60, fontsize=7)
    axis.margins(x=0.12)
    axis.set(yscale="log", ylim=(1e-3, 300))
    axis.grid(alpha=0.25, linewidth=0.5)


def _schedules(plt: Any, runs: Runs) -> Any:
    """Figure 3: iterations against eps_0 for each increment, a panel for each total."""
    rows = [r for r in runs.rows if r["kind"] == "schedule"]
    totals = sorted({r["target"] for r in rows})
    figure, axes = plt.subplots(1, len(totals), figsize=(9.9, 3.1), squeeze=False)
    colours = {"additive": "#56b4e9", "exponential": "#e69f00", "multiplicative": "#d55e00"}
    for axis, total in zip(axes.flat, totals, strict=True):
        for kind, colour in colours.items():
            for how, shape in (("lemma-2", {"linestyle": "-"}), ("exact", {"linestyle": "", "marker": "."})):
                chosen = [r for r in rows if (r["method"], r["reading"], r["target"]) == (kind, how, total)]
                points = sorted((r["step"], r["answered"]) for r in chosen if r["answered"] >= 1)
                label = f"{kind}, {'Lemma 2' if how == 'lemma-2' else 'exact'}"
                xs, ys = zip(*points, strict=True) if points else ((), ())
                axis.plot(xs, ys, color=colour, label=label, linewidth=1, markersize=4, **shape)
        axis.axvline(1.0, color="black", linewidth=0.6, linestyle=":")
        axis.set(xscale="log", yscale="log", xlim=(8e-4, 6), title=f"total = {total:g}", xlabel="eps_0")
        axis.grid(alpha=0.25, linewidth=0.5)
    axes[0][0].set_ylabel("iterations")
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="lower center", ncols=6, frameon=False, fontsize=7.5)
    figure.tight_layout(rect=(0, 0.09, 1, 1))
    return figure


# --- the paper's two drawings without data ---------------------------------------------------------------

INK, PALE, ACCENT = "#222222", "#bbbbbb", "#d55e00"
_NODES = 5
_STAGES: tuple[tuple[str, str, frozenset[tuple[int, int]]], ...] = (
    ("fully connected", "d nodes", frozenset((i, j) for i in range(5) for j in range(i + 1, 5))),
    ("order 0", "at most $k_0$ tests", frozenset({(0, 2), (1, 2), (2, 3), (2, 4), (0, 3), (1, 4), (3, 4)})),
    ("order 1", "at most $k_1$ tests", frozenset({(0, 2), (1, 2), (2, 3), (2, 4)})),
    ("order $d-2$", "at most $k_{d-2}$ tests", frozenset({(0, 2), (1, 2), (2, 3), (2, 4)})),
    ("oriented", "no rows are read", frozenset({(0, 2), (1, 2), (2, 3), (2, 4)})),
)
"""Cancer's five columns after each step: its title, what it asks, and the edges left."""


def workflow(plt: Any) -> Any:
    """Figure 1: the skeleton phase order by order, then the orientation phase."""
    figure, axes = plt.subplots(1, len(_STAGES), figsize=(9.9, 2.5))
    everything = _STAGES[0][2]
    for i, (axis, (title, words, edges)) in enumerate(zip(axes, _STAGES, strict=True)):
        _graph(axis, edges, cut=everything - edges, arrows=i == len(_STAGES) - 1)
        axis.set_title(title, fontsize=10)
        axis.text(0, -1.55, words, ha="center", fontsize=8.5, color=INK)
        if i:
            sign = "→" if i != 3 else "→ … →"
            axis.text(-1.75, 0, sign, ha="center", va="center", fontsize=13, color=INK, clip_on=False)
    figure.text(0.41, 0.93, "skeleton phase: its tests read rows and leak", ha="center", color=ACCENT, fontsize=9.5)
    figure.text(0.9, 0.93, "orientation phase", ha="center", color=INK, fontsize=9.5)
    figure.subplots_adjust(left=0.02, right=0.98, top=0.78, bottom=0.08, wspace=0.35)
    return figure


def _graph(axis: Any, edges: frozenset[tuple[int, int]], cut: frozenset[tuple[int, int]], *, arrows: bool) -> None:
    turn = [math.pi / 2 + 2 * math.pi * i / _NODES for i in (0, 1, 3, 2, 4)]
    place = [(math.cos(t), math.sin(t)) for t in turn]
    for a, b in cut:
        axis.plot(*zip(place[a], place[b], strict=True), color=PALE, linewidth=0.6, linestyle=":")
    for a, b in edges:
        style = {"arrowstyle": "-|>" if arrows else "-", "color": INK, "shrinkA": 7, "shrinkB": 7, "linewidth": 1.1}
        axis.annotate("", place[b], place[a], arrowprops=style)
    for i, (x, y) in enumerate(place):
        axis.text(x, y, f"$v_{i + 1}$", ha="center", va="center", fontsize=8, bbox=_node())
    axis.set(xlim=(-1.4, 1.4), ylim=(-1.8, 1.3), aspect="equal")
    axis.axis("off")


def _node() -> dict[str, Any]:
    return {"boxstyle": "circle,pad=0.22", "facecolor": "white", "edgecolor": INK, "linewidth": 0.9}


def composition(plt: Any) -> Any:
    """Figure 2: advanced composition within an order, basic over orders."""
    figure, axis = plt.subplots(figsize=(9.9, 2.7))
    names = ("0", "1", "d-2")
    for i, name in enumerate(names):
        x = 0.5 + 3.3 * i
        tests = rf"$t_{{{name}}}$ tests, each $(\epsilon_{{{name}}}, \delta)$-DP"
        leak = rf"$t_{{{name}}}\epsilon_{{{name}}}^2+\sqrt{{2\log(1/\delta')\,t_{{{name}}}\epsilon_{{{name}}}^2}}$"
        _box(axis, x, 2.0, f"order ${name}$\n{tests}")
        _box(axis, x, 1.0, leak)
        _arrow(axis, (x, 1.77), (x, 1.22))
        _arrow(axis, (x, 0.8), (0.5 + 3.3 + (i - 1) * 1.2, 0.22))
    axis.text(2.15, 2.0, r"$\epsilon_0\geq\epsilon_1$", ha="center", va="center", fontsize=9)
    axis.text(5.45, 2.0, "…", ha="center", va="center", fontsize=14)
    axis.text(8.65, 1.5, "advanced composition\nwithin an order", ha="left", va="center", color=ACCENT, fontsize=9)
    axis.text(8.65, 0.4, "basic composition\nover orders", ha="left", va="center", color=ACCENT, fontsize=9)
    _box(axis, 3.8, 0.0, r"total leakage $\sum_j\epsilon_{curate}^{(j)}\leq\epsilon_{Total}$")
    axis.set(xlim=(-1.0, 10.4), ylim=(-0.35, 2.4))
    axis.axis("off")
    figure.tight_layout()
    return figure


def _box(axis: Any, x: float, y: float, words: str) -> None:
    box = {"boxstyle": "round,pad=0.35", "facecolor": "white", "edgecolor": INK, "linewidth": 0.9}
    axis.text(x, y, words, ha="center", va="center", fontsize=9, bbox=box)


def _arrow(axis: Any, start: tuple[float, float], end: tuple[float, float]) -> None:
    axis.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": INK, "linewidth": 0.9})

"""The page of calibration: stated against true where they differ most, and a table of every family."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from benchmarks.calibration import Run

GROUPS = ((0.5, 0.8), (0.8, 0.95), (0.95, 1.01))
SURE = 0.95
MANY, APART = 10, 0.1
"""A family is shown if a cell of at least so many pairs states so much more or less than is true."""
FIGURES = "data/confidence.csv"
HEAD = """# How true P(edge) is

Among pairs with P(edge) = 0.9, are nine of ten linked? About so on most kinds of tables that hold all common causes;
fewer on others ([where it is off](#where-it-is-off)). This page compares P(edge) of the default method with the truth,
on {runs:,} runs on {worlds:,} random tables and published networks of {families} families ({rows} rows, epsilon
{epsilons}, add/remove, delta = 1e-10). {new} families, marked *, were not used to fit P(edge). The fit used other
tables of the rest; the bound on weakly correlated numbers used other *products*, *linear* tables and *hubs of numbers*.

A cell holds the number of pairs, their mean P(edge) and the share that is linked in truth, without runs whose verdict
is *mostly noise*. F1 is of the drawn graph (P(edge) from 0.5), over all runs. Where columns are hidden, a pair is
linked if it is adjacent in the ancestral graph of the visible columns. [All families]({figures}), with the Brier score
per true edge, are in a file. Written by `python -m benchmarks.calibration --results FILE --write docs/confidence.md`.
"""


def page(runs: Sequence[Run]) -> str:
    """The whole page."""
    from benchmarks.calibration import HELD_OUT

    if not runs:
        return "no runs of this version\n"
    families = list(dict.fromkeys(run.key.family for run in sorted(runs, key=lambda r: r.key.family)))
    rows, epsilons = sorted({r.key.rows for r in runs}), sorted({r.key.epsilon for r in runs})
    worlds = len({(r.key.family, r.key.seed) for r in runs})
    parts = [
        HEAD.format(
            runs=len(runs),
            worlds=worlds,
            families=len(families),
            new=sum(name in HELD_OUT for name in families),
            figures=FIGURES,
            rows=", ".join(f"{n:,}" for n in rows),
            epsilons=", ".join(f"{e:g}" for e in epsilons),
        ),
        "## By rows and epsilon",
        "",
        *table((f"{n:,} rows, epsilon {e:g}", of(runs, rows=n, epsilon=e)) for n in rows for e in epsilons),
        "",
        "## Where it is off",
        "",
        f"Families in which a cell of at least {MANY} pairs is off by {APART:g} or more.",
        "",
        *table(
            ((f"{name}{' *' if name in HELD_OUT else ''}", of(runs, family=name)) for name in families),
            shown=is_off,
        ),
        *faulty(runs, families),
    ]
    return "\n".join(parts) + "\n"


LACKING = ("weak", "factors", "error", "selection", "cycles")
"""Families of which a table lacks what its links rest on."""
DEPENDENCES = """
## Links and dependences

P(edge) says that two columns depend on each other whatever other columns are held fixed. That is a link if the table
holds all common causes, without error. In five kinds of tables it does not: *weak* effects of every column on every
later one, hidden *factors* of all columns, *errors* of measurement, a *selection* of rows, and feedback (*cycles*).
What follows from such a fault counts as no link above. Here are the pairs with P(edge) of 0.95 and more, the share that
is a link, and the share that no set of columns of the table separates.
"""


def faulty(runs: Sequence[Run], families: Sequence[str]) -> list[str]:
    """Of pairs that are said to be surely linked: links, and dependences that no set of columns explains."""
    lines = [DEPENDENCES, "| | pairs | P(edge) | links | dependences |", "|---|---|---|---|---|"]
    for kind in LACKING:
        these = [run for name in families if name.startswith(kind) for run in of(runs, family=name)]
        told = [p for run in these if run.verdict != "hopeless" for p in run.pairs if p[0] >= SURE]
        if told:
            stated, linked, joined = (float(np.mean([p[i] for p in told])) for i in (0, 1, 5))
            lines.append(f"| {kind} | {len(told)} | {stated:.3f} | {linked:.3f} | {joined:.3f} |")
    return lines if len(lines) > 3 else []


def of(runs: Iterable[Run], **wanted: object) -> list[Run]:
    return [run for run in runs if all(getattr(run.key, name) == value for name, value in wanted.items())]


HEADS = [f"{low:g} to {high:g}" if high < 1 else f"{low:g} and more" for low, high in GROUPS]


def table(parts: Iterable[tuple[str, list[Run]]], shown: Callable[[Sequence[Run]], bool] = lambda _: True) -> list[str]:
    """A line for each part that is shown, with all of them first."""
    parts = list(parts)
    lines = ["| | " + " | ".join(HEADS) + " | F1 |", "|---" * (len(GROUPS) + 2) + "|"]
    for name, these in (("all", [run for _, part in parts for run in part]), *parts):
        if these and (name == "all" or shown(these)):
            told = (cell(these, *group) for group in GROUPS)
            cells = (f"{pairs}: {stated:.3f}, {true:.3f}" if pairs else "-" for pairs, stated, true in told)
            lines.append(f"| {name} | {' | '.join(cells)} | {f1(these):.3f} |")
    return lines


def is_off(runs: Sequence[Run]) -> bool:
    """Whether a cell with enough pairs states something else than is true."""
    cells = (cell(runs, *group) for group in GROUPS)
    return any(pairs >= MANY and abs(stated - true) >= APART for pairs, stated, true in cells)


def cell(runs: Iterable[Run], low: float, high: float) -> tuple[int, float, float]:
    """How many pairs, their mean P(edge), and the share that is linked."""
    told = [(p[0], p[1]) for run in runs if run.verdict != "hopeless" for p in run.pairs if low <= p[0] < high]
    return (len(told), *map(float, np.array(told, dtype=float).mean(axis=0))) if told else (0, math.nan, math.nan)


def every_family(runs: Sequence[Run]) -> str:
    """All families as CSV: of each group its pairs, what is stated and what is true; F1 and the Brier score."""
    from benchmarks.calibration import HELD_OUT

    heads = (f"{head}: {what}" for head in HEADS for what in ("pairs", "stated", "true"))
    lines = [",".join(("family", "used to fit", *heads, "F1", "Brier"))]
    for name in sorted({run.key.family for run in runs}):
        these = of(runs, family=name)
        cells = [f"{x:.3f}" if i else str(x) for group in GROUPS for i, x in enumerate(cell(these, *group))]
        fitted = "no" if name in HELD_OUT else "yes"
        lines.append(",".join((f'"{name}"', fitted, *cells, f"{f1(these):.3f}", f"{brier(these):.3f}")))
    return "\n".join(lines).replace("nan", "") + "\n"


def f1(runs: Iterable[Run]) -> float:
    """The mean over runs that have edges; nothing where no world has any."""
    each = [score for run in runs if run.edges for score in [skeleton_f1(run)]]
    return float(np.mean(each)) if each else float("nan")


def skeleton_f1(run: Run) -> float:
    drawn = [p for p in run.pairs if p[0] >= 0.5]
    return 2 * sum(p[1] for p in drawn) / max(len(drawn) + run.edges, 1)


def brier(runs: Sequence[Run]) -> float:
    """Squared errors over the number of true edges, or of runs where there are none."""
    total = sum((p[0] - p[1]) ** 2 for run in runs for p in run.pairs) + sum(run.unlikely for run in runs)
    return float(total / max(sum(run.edges for run in runs), len(runs)))


def verdicts(runs: Sequence[Run]) -> list[str]:
    """What each verdict expected and what was found."""
    lines = ["| verdict | runs | F1 expected | F1 found | 10 % | 90 % |", "|---|---|---|---|---|---|"]
    for level in ("fine", "partial", "weak", "hopeless"):
        these = [run for run in runs if run.verdict == level and run.edges]
        if these:
            found = np.array([skeleton_f1(run) for run in these])
            low, high = np.quantile(found, (0.1, 0.9))
            expected = np.mean([run.f1[0] for run in these])
            lines.append(f"| {level} | {len(these)} | {expected:.2f} | {found.mean():.2f} | {low:.2f} | {high:.2f} |")
    return lines

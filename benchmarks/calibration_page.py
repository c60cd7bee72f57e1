"""The page of calibration: stated against true by family and group, F1 and Brier score."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from benchmarks.calibration import Run

GROUPS = ((0.5, 0.8), (0.8, 0.95), (0.95, 1.01))
SURE = 0.95
HEAD = """# How true P(edge) is

P(edge) of the default method against the truth, on {runs:,} runs on {worlds:,} random tables and published networks
({rows} rows, epsilon {epsilons}, add/remove, delta = 1e-10). A cell holds the number of pairs, their mean P(edge) and
the share that is linked in truth. Runs whose verdict is *mostly noise* are left out of these columns. F1 is of the
drawn graph (P(edge) from 0.5), over all runs; the Brier score is per true edge. Families marked * were not used to fit
P(edge). Where columns are hidden, a pair is linked if it is adjacent in the ancestral graph of the visible columns.

The weights were fitted on other seeds, and the bound on edges of weakly correlated numbers was chosen on other seeds of
*products*, *linear*, *dense linear* and *hubs of numbers*.

In *weak*, *factors*, *error*, *selection* and *cycles* the table lacks what its links rest on. The dependences that
follow from it count as no links in the tables by family and size; the last table on this page counts them.

Written by `python -m benchmarks.calibration --results FILE --write docs/confidence.md`.
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
            rows=", ".join(f"{n:,}" for n in rows),
            epsilons=", ".join(f"{e:g}" for e in epsilons),
        ),
        "## By family",
        "",
        *table((f"{name}{' *' if name in HELD_OUT else ''}", of(runs, family=name)) for name in families),
        "",
        "## By rows and epsilon",
        "",
        *table((f"{n:,} rows, epsilon {e:g}", of(runs, rows=n, epsilon=e)) for n in rows for e in epsilons),
        *faulty(runs, [name for name in families if name.startswith(LACKING)]),
    ]
    return "\n".join(parts) + "\n"


LACKING = ("weak", "factors", "error", "selection", "cycles")
"""Families of which a table lacks what its links rest on."""
DEPENDENCES = """
## Links and dependences

P(edge) says that two columns depend on each other whatever other columns are held fixed. That is a link if the table
holds all common causes, without error. Where it does not, the fault itself makes columns depend on each other: weak
effects of every column on every later one, hidden causes of all columns, errors of measurement, a choice of rows, or
feedback.

Pairs with P(edge) of 0.95 and more, and the share that is a link, and that no set of columns of the table separates
(adjacent in the ancestral graph of the visible columns).
"""


def faulty(runs: Sequence[Run], families: Sequence[str]) -> list[str]:
    """Of pairs that are said to be surely linked: links, and dependences that no set of columns explains."""
    lines = [DEPENDENCES, "| | pairs | P(edge) | links | dependences |", "|---|---|---|---|---|"]
    for name in families:
        told = [p for run in of(runs, family=name) if run.verdict != "hopeless" for p in run.pairs if p[0] >= SURE]
        if told:
            stated, linked, joined = (float(np.mean([p[i] for p in told])) for i in (0, 1, 5))
            lines.append(f"| {name} | {len(told)} | {stated:.3f} | {linked:.3f} | {joined:.3f} |")
    return lines if len(lines) > 3 else []


def of(runs: Iterable[Run], **wanted: object) -> list[Run]:
    return [run for run in runs if all(getattr(run.key, name) == value for name, value in wanted.items())]


def table(parts: Iterable[tuple[str, list[Run]]]) -> list[str]:
    """A line for each part, with all of them first."""
    parts = list(parts)
    heads = [f"{low:g} to {high:g}" if high < 1 else f"{low:g} and more" for low, high in GROUPS]
    lines = ["| | " + " | ".join(heads) + " | F1 | Brier |", "|---" * (len(GROUPS) + 3) + "|"]
    for name, these in (("all", [run for _, part in parts for run in part]), *parts):
        if these:
            cells = [cell(these, *group) for group in GROUPS]
            lines.append(f"| {name} | {' | '.join(cells)} | {f1(these):.3f} | {brier(these):.3f} |")
    return lines


def cell(runs: Iterable[Run], low: float, high: float) -> str:
    told = [(p[0], p[1]) for run in runs if run.verdict != "hopeless" for p in run.pairs if low <= p[0] < high]
    if not told:
        return "-"
    stated, true = np.array(told, dtype=float).mean(axis=0)
    return f"{len(told)}: {stated:.3f}, {true:.3f}"


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

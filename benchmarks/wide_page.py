"""The page of wide tables from runs: means, each network beside its ceiling."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

METHODS = {"auto": "default", "pc": "exact PC", "order-search": "exact score search"}
FIGURES = ("f1", "precision", "recall", "cpdag", "f1_half", "cpdag_half", "seconds")
HEAD = """# Wide tables

The default method at three epsilons, compared with exact PC (G test, .01) and exact order search (BIC) on the same rows
without privacy. These two are the ceiling: what they cannot see in the rows, noised answers seldom show. Neither is
perfect, so the default exceeds them in places.

{rows:,} rows, add/remove, delta = 1e-10, private row count; means over {seeds} tables drawn afresh. Half of the
standard errors of F1 are below {usual:.3f}, the largest is {largest:.3f}. Figures of the default are about the graph of
the highest expected F1 (`found.at("best-f1")`); "at 1/2" is what `found.graph` draws. Seconds are processor time of one
thread, from the open table to the graph. Networks that are not shipped are from the Bayesian network repository
(M. Scutari, bnlearn.com/bnrepository). Written by `python -m benchmarks.wide`.

## Skeleton F1 (CPDAG F1)
"""

SHUFFLED = """
## Columns in a random order

Of two columns that repeat each other, the default keeps the edges of the first in the schema. Network files mostly list
causes first, which helps: Hailfinder and Win95pts have three such pairs each. Here the columns of every table are
shuffled (`--shuffled`), so that the first of two is as often the wrong one.
"""

Row = tuple[str, float | None]
"""A method and its epsilon, None where it is exact."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Mean and standard error by figure."""

    mean: dict[str, float]
    error: dict[str, float]
    runs: int


def page(runs: Sequence[Any]) -> str:
    """All that is known of runs with one number of rows; of each cell the version measured last."""
    shuffled = [r for r in runs if r.key.shuffled]
    runs = [r for r in runs if not r.key.shuffled]
    if not runs:
        return "No runs yet.\n"
    columns, cells = _columns(runs), _cells(runs)
    errors = [c.error["f1"] for c in (*cells.values(), *_cells(shuffled).values()) if not math.isnan(c.error["f1"])]
    parts = [
        HEAD.format(
            rows=runs[0].key.rows,
            seeds=min(cell.runs for cell in cells.values()),
            usual=np.median(errors) if errors else math.nan,
            largest=max(errors, default=math.nan),
        )
    ]
    parts += _summary(list(columns), columns, rows(runs), cells)
    if shuffled:
        parts += [SHUFFLED, *_summary(list(_columns(shuffled)), _columns(shuffled), rows(shuffled), _cells(shuffled))]
    parts.append("\n## Means of everything measured\n")
    parts += _details(list(columns), rows(runs), cells)
    parts += _versions(runs)
    return "\n".join(parts) + "\n"


def _columns(runs: Sequence[Any]) -> dict[str, int]:
    """How many each network has, the smallest first."""
    columns = {r.key.network: r.columns for r in runs}
    return dict(sorted(columns.items(), key=lambda item: item[::-1]))


def _cells(runs: Sequence[Any]) -> dict[tuple[str, Row], Cell]:
    every = ((name, row) for name in _columns(runs) for row in rows(runs))
    return {key: cell for key in every if (cell := _cell(runs, *key)) is not None}


def rows(runs: Sequence[Any]) -> list[Row]:
    """The default by epsilon, then what is exact."""
    order = list(METHODS)
    seen = {(r.key.method, r.key.epsilon) for r in runs}
    return sorted(seen, key=lambda row: (order.index(row[0]), row[1] or math.inf))


def _newest(runs: Sequence[Any], network: str, row: Row) -> list[Any]:
    these = [r for r in runs if (r.key.network, r.key.method, r.key.epsilon) == (network, *row)]
    return [r for r in these if r.key.version == these[-1].key.version]


def _cell(runs: Sequence[Any], network: str, row: Row) -> Cell | None:
    these = _newest(runs, network, row)
    if not these:
        return None
    values = {figure: np.array([getattr(r, figure) for r in these]) for figure in FIGURES}
    count = len(these)
    error = {f: float(v.std(ddof=1) / math.sqrt(count)) if count > 1 else math.nan for f, v in values.items()}
    return Cell({f: float(v.mean()) for f, v in values.items()}, error, count)


def _over(cells: Sequence[Cell]) -> Cell:
    """The mean over networks."""
    mean = {f: float(np.mean([c.mean[f] for c in cells])) for f in FIGURES}
    return Cell(mean, {}, min(c.runs for c in cells))


def _name(row: Row) -> str:
    method, epsilon = row
    return METHODS[method] if epsilon is None else f"{METHODS[method]}, eps {epsilon:g}"


def _told(cell: Cell, figure: str) -> str:
    return "" if math.isnan(cell.mean[figure]) else f"{cell.mean[figure]:.3f}"


def _pair(cell: Cell | None) -> str:
    return "" if cell is None else f"{_told(cell, 'f1')} ({_told(cell, 'cpdag')})"


def _summary(names: list[str], columns: dict, asked: list[Row], cells: dict) -> Iterator[str]:
    yield "| network (columns) | " + " | ".join(map(_name, asked)) + " |"
    yield "|---" * (len(asked) + 1) + "|"
    for name in names:
        told = [_pair(cells.get((name, row))) for row in asked]
        yield f"| {name} ({columns[name]}) | {' | '.join(told)} |"
    means = [_pair(_everywhere(names, row, cells)) or "not all measured" for row in asked]
    yield f"| **mean of {len(names)}** | {' | '.join(means)} |"


def _everywhere(names: list[str], row: Row, cells: dict) -> Cell | None:
    """No mean over some of the networks: it would look like one over all."""
    known = [cells.get((name, row)) for name in names]
    return None if None in known else _over([c for c in known if c is not None])


def _details(names: list[str], asked: list[Row], cells: dict) -> Iterator[str]:
    rates = "skeleton F1 | precision | recall | CPDAG F1 | F1 at 1/2 | CPDAG at 1/2"
    yield f"| method | {rates} | seconds |"
    yield "|---" * 8 + "|"
    for row in asked:
        if cell := _everywhere(names, row, cells):
            yield f"| {_figures(row, cell)}"


def _figures(row: Row, cell: Cell) -> str:
    told = [_told(cell, figure) for figure in FIGURES[:-1]]
    return f"{_name(row)} | {' | '.join(told)} | {cell.mean['seconds']:.1f} |"


def _versions(runs: Sequence[Any]) -> Iterator[str]:
    """Figures of two states of the code side by side are said to be so."""
    cells = {(r.key.network, (r.key.method, r.key.epsilon)) for r in runs}
    shown = [r.key for network, row in cells for r in _newest(runs, network, row)]
    for method, name in METHODS.items():
        marks = sorted({key.version for key in shown if key.method == method})
        if len(marks) > 1:
            yield f"\nFigures of {name} are of {len(marks)} states of its code: {', '.join(marks)}."

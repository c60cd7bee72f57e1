"""What plans said beside what was found, as a page; and the curves that fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from dpcurate.arrays import FloatArray
from dpcurate.learn.power import BEST_F1, BEST_HIGH, BEST_LOW, EDGES_PER_COLUMN, Curve, Power

if TYPE_CHECKING:
    from benchmarks.plan_check import Cell

HALF_A_STEP = 0.005
"""Figures are shown to two places."""
HEAD = """# How far plans are right

`dpcurate plan` says where the skeleton F1 of 8 of 10 tables is to lie. Here it is asked for the schema of a table, the
table is learnt, and the two are compared. Tables: the shipped networks and others of the Bayesian network repository
(M. Scutari, bnlearn.com/bnrepository), networks with random tables (Dirichlet), mixtures of numbers, ordinals and
categories, and linear Gaussian worlds; 5,000 to 100,000 rows, epsilon from 0.03 to 5, delta = 1e-10, one run of each.
The closed form was fitted to half of the tables; what stands here is about the other half.
Written by `python -m benchmarks.plan_check`.
"""


def f1(counts: Sequence[int]) -> float:
    hits, kept, true = counts
    return 2 * hits / max(kept + true, 1)


def page(cells: Sequence[Cell]) -> str:
    checked = [c for c in cells if not c.fitted]
    plans = [(c, c.planned) for c in checked if c.planned is not None]
    forms = [(c, Power(effect=c.effect, columns=c.columns).best) for c in checked]
    parts = [HEAD]
    for title, said in (("The plan", plans), ("The closed form alone", forms)):
        if said:
            parts += [f"\n## {title}\n", *_table(said)]
    return "\n".join(parts) + "\n"


Said = Sequence[tuple["Cell", tuple[float, float, float]]]


def _table(said: Said) -> Iterable[str]:
    yield "| tables | cells | in the range | below | above | found F1 | said | mean error | mean width |"
    yield "|---|---:|---:|---:|---:|---:|---:|---:|---:|"
    yield _line("all", said)
    kinds = {"networks": lambda c: not _random(c.table)} | {
        kind: (lambda c, kind=kind: _random(c.table) == kind) for kind in ("dirichlet", "mixed", "linear")
    }
    groups: dict[str, Callable[[Cell], bool]] = kinds | {
        "epsilon up to 0.1": lambda c: c.epsilon <= 0.1,
        "epsilon above 0.1": lambda c: c.epsilon > 0.1,
        "up to 12 columns": lambda c: c.columns <= 12,
        "more than 12 columns": lambda c: c.columns > 12,
    }
    for name, belongs in groups.items():
        some = [pair for pair in said if belongs(pair[0])]
        if some:
            yield _line(name, some)


def _random(table: str) -> str:
    kind = table.rstrip("0123456789")
    return kind if kind in ("dirichlet", "mixed", "linear") else ""


def _line(name: str, said: Said) -> str:
    values = np.array([f1(c.best) for c, _ in said])
    mean, low, high = np.array([s for _, s in said]).T
    below, above = values < low - HALF_A_STEP, values > high + HALF_A_STEP
    shares = (1 - (below | above).mean(), below.mean(), above.mean())
    figures = (values.mean(), mean.mean(), np.abs(values - mean).mean(), (high - low).mean())
    return f"| {name} | {len(values)} | {' | '.join(f'{x:.2f}' for x in (*shares, *figures))} |"


def curves(cells: Sequence[Cell]) -> str:
    """The curves of `learn/power.py`, by least squares and by the quantiles' own loss."""
    effect, columns = np.array([c.effect for c in cells]), np.array([c.columns for c in cells])
    edges = np.minimum(EDGES_PER_COLUMN * columns, columns * (columns - 1) / 4)
    all_pairs = 2 * edges / (edges + columns * (columns - 1) / 2)
    likely, best = np.array([f1(c.likely) for c in cells]), np.array([f1(c.best) for c in cells])
    recall = np.array([c.likely[0] / c.likely[2] for c in cells])
    kept = np.array([c.likely[1] > 0 for c in cells])
    precision = np.array([c.likely[0] / max(c.likely[1], 1) for c in cells])
    lines = [
        ("RECALL", _fitted(effect, recall, None, 0 * all_pairs)),
        ("PRECISION", _fitted(effect[kept], precision[kept], None, 0 * all_pairs[kept])),
        *((n, _fitted(effect, likely, q, 0 * all_pairs)) for n, q in (("F1", None), ("LOW", 0.1), ("HIGH", 0.9))),
        *(
            (name, _fitted(effect, best, quantile, curve.floor * all_pairs))
            for name, quantile, curve in (
                ("BEST_F1", None, BEST_F1),
                ("BEST_LOW", 0.1, BEST_LOW),
                ("BEST_HIGH", 0.9, BEST_HIGH),
            )
        ),
    ]
    return "\n".join(f"{name} = Curve({c.top:.2f}, {c.middle:.2f}, {c.steepness:.1f})" for name, c in lines)


def _fitted(effect: FloatArray, values: FloatArray, quantile: float | None, floor: FloatArray) -> Curve:
    from scipy.optimize import minimize

    def loss(parameters: FloatArray) -> float:
        top, middle, steepness = parameters
        apart = values - (floor + (top - floor) / (1 + (effect / np.exp(middle)) ** np.exp(steepness)))
        lost = apart**2 if quantile is None else np.maximum(quantile * apart, (quantile - 1) * apart)
        return float(lost.mean() + 100 * max(0.0, top - 1) ** 2 + 100 * max(0.0, steepness - np.log(4)) ** 2)

    starts = [np.array([0.95, middle, 0.6]) for middle in (-2.0, -1.2, -0.5)]
    best = min(
        (minimize(loss, s, method="Nelder-Mead", options={"maxiter": 4000}) for s in starts), key=lambda r: r.fun
    )
    top, middle, steepness = best.x
    return Curve(float(top), float(np.exp(middle)), float(np.exp(steepness)))

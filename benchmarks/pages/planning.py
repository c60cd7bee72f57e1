"""What was estimated beside what was found, as a table of docs/choosing-epsilon.md; and the curves that fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from dpcurate._typing import FloatArray
from dpcurate.learn.power import Power, PowerCurve

if TYPE_CHECKING:
    from benchmarks.plan_check import Cell

HALF_A_STEP = 0.005
"""Figures are shown to two places."""


def f1(counts: Sequence[int]) -> float:
    hits, kept, true = counts
    return 2 * hits / max(kept + true, 1)


def page(cells: Sequence[Cell]) -> str:
    said = [(c, _said(Power(effect=c.effect, columns=c.columns))) for c in cells if not c.fitted]
    return "\n".join(_table(said)) + "\n"


Said = Sequence[tuple["Cell", tuple[float, float, float]]]


def _said(power: Power) -> tuple[float, float, float]:
    return power.f1, *power.range


def _table(said: Said) -> Iterable[str]:
    yield "| tables | runs | in the range | below | above | F1 found | F1 estimated | mean error | mean width |"
    yield "|---|---:|---:|---:|---:|---:|---:|---:|---:|"
    yield _line("all", said)
    kinds = {"networks": lambda c: not _random(c.table)} | {
        kind: (lambda c, kind=kind: _random(c.table) == kind) for kind in ("dirichlet", "mixed", "linear")
    }
    groups: dict[str, Callable[[Cell], bool]] = kinds | {
        "up to 1,000 rows": lambda c: c.rows <= 1000,
        "more than 1,000 rows": lambda c: c.rows > 1000,
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
    values = np.array([f1(c.counts) for c, _ in said])
    mean, low, high = np.array([s for _, s in said]).T
    below, above = values < low - HALF_A_STEP, values > high + HALF_A_STEP
    shares = (1 - (below | above).mean(), below.mean(), above.mean())
    figures = (values.mean(), mean.mean(), np.abs(values - mean).mean(), (high - low).mean())
    return f"| {name} | {len(values)} | {' | '.join(f'{x:.2f}' for x in (*shares, *figures))} |"


def curves(cells: Sequence[Cell]) -> str:
    """The curves of `learn/power.py`, by least squares and by the quantiles' own loss."""
    effect, scores = np.array([c.effect for c in cells]), np.array([f1(c.counts) for c in cells])
    recall = np.array([c.counts[0] / c.counts[2] for c in cells])
    kept = np.array([c.counts[1] > 0 for c in cells])
    precision = np.array([c.counts[0] / max(c.counts[1], 1) for c in cells])
    lines = [
        ("RECALL", _fitted(effect, recall, None)),
        ("PRECISION", _fitted(effect[kept], precision[kept], None)),
        ("LOW", _fitted(effect, scores, 0.1)),
        ("HIGH", _fitted(effect, scores, 0.9)),
    ]
    return "\n".join(f"{name} = Curve({c.top:.2f}, {c.middle:.2f}, {c.steepness:.1f})" for name, c in lines)


def _fitted(effect: FloatArray, values: FloatArray, quantile: float | None) -> PowerCurve:
    from scipy.optimize import minimize

    def loss(parameters: FloatArray) -> float:
        top, middle, steepness = parameters
        apart = values - top / (1 + (effect / np.exp(middle)) ** np.exp(steepness))
        lost = apart**2 if quantile is None else np.maximum(quantile * apart, (quantile - 1) * apart)
        return float(lost.mean() + 100 * max(0.0, top - 1) ** 2 + 100 * max(0.0, steepness - np.log(4)) ** 2)

    starts = [np.array([0.95, middle, 0.6]) for middle in (-2.0, -1.2, -0.5)]
    best = min(
        (minimize(loss, s, method="Nelder-Mead", options={"maxiter": 4000}) for s in starts), key=lambda r: r.fun
    )
    top, middle, steepness = best.x
    return PowerCurve(float(top), float(np.exp(middle)), float(np.exp(steepness)))

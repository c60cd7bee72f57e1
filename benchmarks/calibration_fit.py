"""Candidates for P(edge) from the signs of a run, fitted on some families and judged on all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.calibration_page import GROUPS
from dpcurate.learn.measure_once.confidence import BOUND

if TYPE_CHECKING:
    from benchmarks.calibration import Run

Signs = Callable[["Run", list[Any]], tuple[float, ...]]
FEWEST = 30
"""Pairs in a group of a family that are judged."""


def bounded(log_odds: float, bound: float = BOUND) -> float:
    return min(max(log_odds, -bound), bound)


def apart(run: Run) -> float:
    """The share of pairs left apart that stay dependent, where a run has it."""
    return float((run.fit or {}).get("unexplained", 0.0))


CANDIDATES: dict[str, Signs] = {
    "walk": lambda _, p: (p[2],),
    "walk, bounded": lambda _, p: (bounded(p[2]),),
    "walk, drawn": lambda _, p: (p[2], p[3]),
    "parents": lambda _, p: (bounded(p[4][1]),),
    "weakest": lambda _, p: (bounded(p[4][0]),),
    "parents, weakest": lambda _, p: (bounded(p[4][1]), bounded(p[4][0])),
    "parents, weakest, bound 2": lambda _, p: (bounded(p[4][1], 2), bounded(p[4][0], 2)),
    "parents, weakest, bound 8": lambda _, p: (bounded(p[4][1], 8), bounded(p[4][0], 8)),
    "parents, weakest, walk": lambda _, p: (bounded(p[4][1]), bounded(p[4][0]), bounded(p[2])),
    "parents, weakest, fit": lambda run, p: (bounded(p[4][1]), bounded(p[4][0]), apart(run)),
    "parents, weakest, drawn, triangles": lambda _, p: (bounded(p[4][1]), bounded(p[4][0]), p[3], min(p[4][3], 3)),
}
"""The one that is used is 'parents, weakest'."""


def compare(runs: Sequence[Run]) -> str:
    """Weights, log loss per true edge and the worst families of each candidate."""
    from benchmarks.calibration import HELD_OUT

    told = [(run, p) for run in runs if run.verdict != "hopeless" for p in run.pairs if p[4]]
    fitted = np.array([run.key.family not in HELD_OUT for run, _ in told])
    truth = np.array([p[1] for _, p in told], dtype=float)
    weights = even_weights([run.key.family for run, _ in told])
    stated = np.clip([p[0] for _, p in told], 1e-4, 1 - 1e-4)
    lines = [judged("as stated", stated, truth, told, fitted)]
    for name, signs in CANDIDATES.items():
        x = np.array([(1.0, *signs(run, p)) for run, p in told])
        w = logistic(x[fitted], truth[fitted], weights[fitted])
        lines.append(judged(f"{name} {np.round(w, 2).tolist()}", 1 / (1 + np.exp(-x @ w)), truth, told, fitted))
    return "\n".join(lines)


def even_weights(families: Sequence[str]) -> np.ndarray:
    """So that every family counts the same."""
    names, place, counts = np.unique(families, return_inverse=True, return_counts=True)
    return np.asarray(len(families) / len(names) / counts[place])


def logistic(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Newton's steps with a ridge of one on all but the first weight."""
    w, ridge = np.zeros(x.shape[1]), np.diag([0.0] + [1.0] * (x.shape[1] - 1))
    for _ in range(50):
        p = 1 / (1 + np.exp(-x @ w))
        slope = (x.T * (weights * p * (1 - p))) @ x + ridge
        w = w - np.linalg.solve(slope, x.T @ (weights * (p - y)) + ridge @ w)
    return w


def judged(name: str, p: np.ndarray, truth: np.ndarray, told: Sequence[tuple[Run, Any]], fitted: np.ndarray) -> str:
    loss = -(truth * np.log(p) + (1 - truth) * np.log(1 - p))
    families = np.array([run.key.family for run, _ in told])
    losses = [
        f"{which} {loss[rows].mean():.4f}" for which, rows in (("fitted", fitted), ("held out", ~fitted)) if any(rows)
    ]
    words = [f"{name}\n    log loss {', '.join(losses)}"]
    for low, high in GROUPS:
        worst = []
        for family in np.unique(families):
            group = (families == family) & (p >= low) & (p < high)
            if group.sum() >= FEWEST:
                worst.append((p[group].mean() - truth[group].mean(), f"{family} {group.sum()}"))
        tops = ", ".join(f"{gap:+.3f} {family}" for gap, family in sorted(worst, reverse=True)[:5])
        words.append(f"    {low:g}: {tops}")
    return "\n".join(words)

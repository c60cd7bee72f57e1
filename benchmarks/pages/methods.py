"""Lines of the comparison of methods: means over networks, with the standard error over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from benchmarks.compare import Run


def head(networks: Sequence[str]) -> str:
    """The names of the columns."""
    heads = "".join(f"{name:>12}" for name in networks)
    return f"{'method':18}{'eps':>6}{heads}{'mean (s.e.)':>16}{'CPDAG':>8}{'cpu s':>8}{'at 1/2':>10}{'CPDAG':>8}"


def line(method: str, epsilon: float, runs: Sequence[Run], networks: Sequence[str]) -> str:
    """One method at one epsilon."""
    scores = np.array(
        [
            [(r.f1, r.cpdag, r.seconds, r.f1_half, r.cpdag_half) for r in runs if r.network == network]
            for network in networks
        ]
    )
    means, spread = scores.mean(axis=1), scores[:, :, 0].std(axis=1)
    error = np.sqrt((spread**2).sum() / scores.shape[1]) / len(spread)
    cells = "".join(f"{m:7.3f}±{s:.2f}" for m, s in zip(means[:, 0], spread, strict=True))
    overall = f"{means[:, 0].mean():8.3f} ({error:.3f}){means[:, 1].mean():8.3f}{means[:, 2].max():8.2f}"
    overall += f"{means[:, 3].mean():10.3f}{means[:, 4].mean():8.3f}"
    return f"{method:18}{epsilon:6g}{cells}{overall}"

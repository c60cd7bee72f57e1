"""Means over runs, and comparisons of two means."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from dpcurate.networks import SHIPPED

RunRow = dict[str, Any]
METRICS = {"pc_f1": "arcs, non-private PC run", "skeleton_f1": "skeleton, real network", "arc_f1": "arcs, real network"}
"""The published metric against a PC run, and two against the network."""
LABELS = {
    "em-pc": "EM-PC",
    "svt-pc": "SVT-PC",
    "priv-pc": "Priv-PC",
    "curate-pc": "CURATE (constraint)",
    "noleaks": "NOLEAKS",
    "curate-score": "CURATE (score)",
    "measure-once": "MeasureOnce",
    "notears-on-moments": "NotearsOnMoments",
    "pc-kendall": "PC, Kendall, 0.05",
    "pc-g": "PC, G test, 0.01",
}


@dataclass(frozen=True, slots=True)
class Summary:
    """Mean, standard deviation and number of some runs."""

    mean: float
    sd: float
    runs: int

    @classmethod
    def of(cls, values: list[float]) -> Summary:
        mean = math.fsum(values) / len(values)
        if not math.isfinite(mean):
            return cls(mean, math.nan, len(values))
        spread = math.fsum((v - mean) ** 2 for v in values) / max(len(values) - 1, 1)
        return cls(mean, math.sqrt(spread), len(values))

    @property
    def error(self) -> float:
        return self.sd / math.sqrt(self.runs)


def beats(ours: Summary, theirs: Summary) -> int:
    """1 if ours is larger by two standard errors of the difference, -1 if smaller, 0 if it cannot be told."""
    gap, doubt = ours.mean - theirs.mean, 2 * math.hypot(ours.error, theirs.error)
    return int(gap > max(doubt, 1e-9)) - int(gap < -max(doubt, 1e-9))


class Runs:
    """Rows by what they have in common."""

    def __init__(self, rows: list[RunRow]) -> None:
        self.rows = rows
        self._cells: dict[tuple[str, str, str, str, float], list[RunRow]] = defaultdict(list)
        for row in rows:
            self._cells[row["kind"], row["network"], row["method"], row["variant"], row["target"]].append(row)
        there = {row["network"] for row in rows}
        self.networks = [n for n in SHIPPED if n in there]
        self.targets = sorted({row["target"] for row in rows if row["kind"] == "private"})

    def of(
        self,
        column: str,
        network: str,
        method: str,
        target: float,
        *,
        variant: str = "published",
        kind: str = "private",
    ) -> Summary | None:
        """A summary of one cell; None if it was not run or has no such number."""
        rows = self._cells.get((kind, network, method, variant, target), [])
        values = [float(row[column]) for row in rows if row[column] is not None]
        return Summary.of(values) if values else None

    def exact(self, column: str, network: str, method: str) -> float:
        """A number of a non-private run; not a number if it was not run."""
        found = self.of(column, network, method, 0.0, variant="exact", kind="exact")
        return math.nan if found is None else found.mean

    def fixed(self) -> Runs:
        """The same runs with the score methods' threshold fixed beforehand."""
        score = {r["method"] for r in self.rows if r["variant"] == "published-fixed"}
        kept = [
            r for r in self.rows if r["method"] not in score or r["variant"] != "published" or r["kind"] != "private"
        ]
        return Runs([{**r, "variant": "published"} if r["variant"] == "published-fixed" else r for r in kept])

    def variants(self, variant: str) -> list[str]:
        """Methods that were run in a variant, in the order of LABELS."""
        there = {r["method"] for r in self.rows if r["kind"] == "private" and r["variant"] == variant}
        return [m for m in LABELS if m in there]

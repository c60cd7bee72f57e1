"""Means over runs, lines through them, and comparisons of two means."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from dpcurate.networks import SHIPPED
from dpcurate.published.reproduction.grid import ALL_READINGS, LITERAL

RunRow = dict[str, Any]
METRICS = {
    "pc_f1": "arcs, non-private PC run",
    "authors_f1": "arcs, the authors' edge list",
    "skeleton_f1": "skeleton, real network",
    "arc_f1": "arcs, real network",
}
"""The published metric against a PC run and against the authors' own, and two against the network."""
LABELS = {
    "em-pc": "EM-PC",
    "svt-pc": "SVT-PC",
    "priv-pc": "Priv-PC",
    "curate-pc": "CURATE (constraint)",
    "noleaks": "NOLEAKS",
    "curate-score": "CURATE (score)",
    "measure-once": "MeasureOnce",
    "notears-moments": "NotearsOnMoments",
    "pc-kendall": "PC, Kendall, 0.05",
    "pc-g": "PC, G test, 0.01",
}
AXES = {"spent": "claimed", "nominal": "target", "proved": "proved"}
"""Kinds of leakage by the column that holds them."""
ENOUGH = 20
"""Fewer runs of the literal reading than this give no verdict."""


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

    def towards(self, other: Summary, share: float) -> Summary:
        """A point of the line between two means; its error is that of the weighted mean."""
        error = math.hypot((1 - share) * self.error, share * other.error)
        runs = min(self.runs, other.runs)
        return Summary((1 - share) * self.mean + share * other.mean, error * math.sqrt(runs), runs)


def beats(ours: Summary, theirs: Summary) -> int:
    """1 if ours is larger by two standard errors of the difference, -1 if smaller, 0 if it cannot be told."""
    gap, doubt = ours.mean - theirs.mean, 2 * math.hypot(ours.error, theirs.error)
    return int(gap > max(doubt, 1e-9)) - int(gap < -max(doubt, 1e-9))


class Runs:
    """Rows by what they have in common. A reading that is not named is the most literal one."""

    def __init__(self, rows: list[RunRow]) -> None:
        self.rows = rows
        self._cells: dict[tuple[str, str, str, str, float], list[RunRow]] = defaultdict(list)
        for row in rows:
            self._cells[row["kind"], row["network"], row["method"], row["reading"], row["target"]].append(row)
        there = {row["network"] for row in rows}
        self.networks: list[str] = [n for n in SHIPPED if n in there]
        self._there = {key[2:] for key in self._cells if key[0] == "private"}
        self.targets: list[float] = self._targets("curate-pc")

    def _targets(self, method: str) -> list[float]:
        return sorted({target for m, _, target in self._there if m == method})

    @property
    def few(self) -> bool:
        """Whether these runs are too few for a verdict."""
        cells = [r for k, r in self._cells.items() if k[0] == "private" and k[2:4] == ("curate-pc", "printed")]
        return min(map(len, cells), default=0) < ENOUGH

    def of(
        self, column: str, network: str, method: str, target: float, reading: str | None = None, kind: str = "private"
    ) -> Summary | None:
        """A summary of one cell; None if it was not run or has no such number."""
        rows = self._cells.get((kind, network, method, reading or LITERAL[method], target), [])
        values = [float(row[column]) for row in rows if row[column] is not None]
        return Summary.of(values) if values else None

    def exact(self, column: str, network: str, method: str = "pc-kendall") -> float:
        """A number of a non-private run; not a number if it was not run."""
        found = self.of(column, network, method, 0.0, "exact", "exact")
        return math.nan if found is None else found.mean

    def line(
        self, column: str, network: str, method: str, axis: str, reading: str | None = None
    ) -> list[tuple[float, Summary]]:
        """Points of a method, from left to right, at the mean leakage of each total."""
        points = []
        for target in self._targets(method):
            x, y = (self.of(c, network, method, target, reading) for c in (AXES[axis], column))
            if x is not None and y is not None and math.isfinite(x.mean):
                points.append((x.mean, y))
        return sorted(points, key=lambda p: p[0])

    def at(
        self, column: str, network: str, method: str, axis: str, place: float, reading: str | None = None
    ) -> Summary | None:
        """A method at a leakage, by a line on a log axis; None beyond its points."""
        line = [(math.log(x), y) for x, y in self.line(column, network, method, axis, reading) if x > 0]
        for (left, low), (right, high) in pairwise(line):
            if left <= math.log(place) <= right:
                return low.towards(high, (math.log(place) - left) / (right - left) if right > left else 0.0)
        return None

    def readings(self, method: str) -> list[str]:
        """Readings of a method that were run, the most literal first."""
        there = {reading for m, reading, _ in self._there if m == method}
        return [r for r in ALL_READINGS[method] if r in there]

    def methods(self, reading: str | None = None) -> list[str]:
        """Methods that were run in a reading (their most literal one if none is named), in the order of LABELS."""
        there = {(m, r) for m, r, _ in self._there}
        return [m for m in LABELS if (m, reading or LITERAL.get(m)) in there]

"""Comparisons of runs that differ in the allocation of the budget alone: at equal spent leakage, with intervals."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from dpcurate.published.reproduction.comparisons import Outcomes, Rule, View
from dpcurate.published.reproduction.grid import FAMILIES, INCREMENT_FIRSTS, CellKind
from dpcurate.published.reproduction.store import Runs, Summary, beats

ALIKE = 0.1
"""Two means of spent leakage are equal if they differ by no more than this part."""
Z95 = 1.96


@dataclass(frozen=True, slots=True)
class Gap:
    """The difference of two means in one cell, with a 95 % interval."""

    network: str
    target: float
    ours: Summary
    theirs: Summary
    spent: tuple[float, float]

    @property
    def mean(self) -> float:
        """The difference."""
        return self.ours.mean - self.theirs.mean

    @property
    def half(self) -> float:
        """Half the interval's width."""
        return Z95 * math.hypot(self.ours.error, self.theirs.error)

    @property
    def equal(self) -> bool:
        """Whether both spent the same."""
        return abs(math.log(self.spent[0] / self.spent[1])) < math.log1p(ALIKE)

    @property
    def sign(self) -> int:
        """1 if ours is larger beyond doubt, -1 if smaller, 0 if it cannot be told."""
        return beats(self.ours, self.theirs)


def gaps(runs: Runs, kind: CellKind, ours: str, theirs: str, metric: str) -> Iterator[Gap]:
    """One for each network and total that was run."""
    family = FAMILIES[kind]
    for network in runs.networks:
        for target in family.targets:
            found = [
                runs.of(column, network, family.method, target, reading, kind)
                for reading in (ours, theirs)
                for column in (metric, "claimed")
            ]
            if all(one is not None and one.runs > 1 for one in found):
                first, spent, second, other = (one for one in found if one is not None)
                yield Gap(network, target, first, second, (spent.mean, other.mean))


def between(kind: CellKind, ours: str, theirs: str, metric: str = "", *, best: Literal[1, -1] = 1) -> Rule:
    """One allocation of a kind against another where both spent the same, by the view's metric unless one is named.

    `best` is -1 of a metric that is better when it is smaller.
    """

    def outcomes(runs: Runs, view: View) -> Outcomes:
        for gap in gaps(runs, kind, ours, theirs, metric or view.metric):
            if gap.equal:
                yield f"{gap.network} {gap.target:g}", best * gap.sign

    return outcomes


def increments(other: str) -> Rule:
    """The multiplicative increment against another one at the same eps_0 and total, as many iterations as Lemma 2's."""

    def outcomes(runs: Runs, _: View) -> Outcomes:
        for first in INCREMENT_FIRSTS:
            readings = f"multiplicative {first:g}", f"{other} {first:g}"
            for gap in gaps(runs, "increment", *readings, "skeleton_f1"):
                yield f"{gap.network} {gap.target:g} {first:g}", gap.sign

    return outcomes

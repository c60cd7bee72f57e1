"""What a learner hands over: a graph, the evidence for every pair, and what was left undone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dpcurate.graphs.base_graph import UnorderedPair
from dpcurate.graphs.graph import Cpdag, Dag, Pag, Skeleton
from dpcurate.learn.fit import Fit

if TYPE_CHECKING:
    from dpcurate.learn.directions import DirectionVerdict
    from dpcurate.learn.measure_once.releases import Releases


@dataclass(frozen=True, slots=True)
class Evidence:
    """One decision on a pair, in released numbers.

    `value` is what was released, `noise` its standard deviation, `threshold` what it was compared
    with; `verdict` says what became of the edge.
    """

    pair: tuple[str, str]
    given: tuple[str, ...]
    verdict: str
    value: float | None = None
    noise: float | None = None
    threshold: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseLevel:
    """How well a pair of columns could be seen, from released numbers alone."""

    rows: float
    """The released row count; its noise may have taken it below zero."""
    rows_noise: float
    """Standard deviation of that noise."""
    variance: float
    """Of one coordinate of a typical pair without a link, sampling and noise, where both columns have variance 1."""
    coordinates: int
    """How many coordinates a typical pair has."""


@dataclass(frozen=True, slots=True)
class FitResult:
    """The result of a learner.

    `linked` is the probability that the pair is adjacent, where the method has one; `direction` maps (a, b),
    a before b among the columns, to the probability that the DAG has a -> b if they are linked (see `way`).
    `graph` is the method's best guess: where it has probabilities, the cut of the highest expected F1.
    `marks` maps the end of an edge of a PAG, (a, b) for the one at b, to the probabilities of a tail and of an
    arrowhead there. `tests` counts decisions per order (or stage): what a loop would ask that stops at the test
    that cuts an edge, not what an exact search asked beyond it, looking ahead. `unfinished` maps an order to the edges
    that were not tested to the end in it when the budget ended. `leaked` is what each order cost (by the
    authors' count in a published run). `claimed` is the epsilon that the authors of a published variant
    would report; it is not a guarantee. `notes` are sentences for the report, `noise` how noisy the answers
    were, where a method knows, `repeated` columns that repeat others. `released` are the answers themselves, where
    more can be computed from them, `fit` how well the graph explains them, and `directions` whether the directions can
    be read; where they cannot, `direction` and `marks` say so, too. `causes` maps (a, b) to the probability that a
    causes b if b does not cause a: otherwise something outside the table drives both.
    """

    graph: Cpdag | Dag | Pag
    skeleton: Skeleton
    linked: Mapping[UnorderedPair, float] = field(default_factory=dict)
    direction: Mapping[tuple[str, str], float] = field(default_factory=dict)
    evidence: tuple[Evidence, ...] = ()
    tests: tuple[int, ...] = ()
    unfinished: Mapping[int, tuple[UnorderedPair, ...]] = field(default_factory=dict)
    leaked: tuple[float, ...] = ()
    claimed: float | None = None
    notes: tuple[str, ...] = ()
    noise: NoiseLevel | None = None
    repeated: tuple[str, ...] = ()
    marks: Mapping[tuple[str, str], tuple[float, float]] = field(default_factory=dict)
    released: Releases | None = None
    fit: Fit | None = None
    directions: DirectionVerdict | None = None
    causes: Mapping[tuple[str, str], float] = field(default_factory=dict)

    def way(self, a: str, b: str) -> float | None:
        """P(a -> b | linked), where the method has one."""
        if (a, b) in self.direction:
            return self.direction[a, b]
        other = self.direction.get((b, a))
        return None if other is None else 1 - other

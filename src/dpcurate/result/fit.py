"""What a learner hands over: a graph, the evidence for every pair, and what was left undone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from dpcurate.graphs.base_graph import UnorderedPair
from dpcurate.graphs.graph import Cpdag, Dag, Pag, Skeleton

if TYPE_CHECKING:
    from dpcurate.learn.measure_once.released import Releases

DirectionLevel = Literal["readable", "unreadable", "noisy"]

UNEXPLAINED, LEAST_DEPENDENT = 0.1, 3
"""A graph does not explain a table if so large a share of the pairs without an edge stays dependent: the likeliest one,
or that of the pairs that are seen to, if there are so many of them."""
TRUST: Mapping[DirectionLevel, float] = MappingProxyType({"readable": 1.0, "unreadable": 0.27, "noisy": 0.4})
"""What is left of the distance of P(direction) from 1/2. All of these were chosen on random worlds, and checked on real
tables (docs/confidence.md)."""
TITLES: Mapping[DirectionLevel, str] = MappingProxyType(
    {
        "readable": "Directions can be read",
        "unreadable": "Directions cannot be read here: shown as lines",
        "noisy": "Too noisy for directions",
    }
)
NOT_IDENTIFIED: Mapping[DirectionLevel, str] = MappingProxyType(
    {
        "unreadable": "directions cannot be read here; add an order of the columns",
        "noisy": "too noisy for directions; add an order of the columns",
    }
)
"""Why there is no effect along a direction that cannot be read."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class GoodnessOfFit:
    """How much dependence a graph leaves unexplained, from released answers alone.

    A graph claims that two columns without an edge are independent given the parents of the later one. `apart` counts
    the pairs for which it claims this, `dependent` those of them that the answers say are dependent nevertheless.
    Dependences too weak to be seen one by one show in all pairs together: `share` is the share of dependent pairs that
    makes the answers likeliest, and `log_ratio` the log of how much likelier they are with it than with no such pair.
    """

    columns: int
    edges: int
    apart: int
    dependent: int
    share: float = 0.0
    log_ratio: float = 0.0

    @property
    def unexplained(self) -> float:
        """The share of pairs without an edge that stay dependent; 0 if every pair has an edge."""
        return self.dependent / self.apart if self.apart else 0.0

    @property
    def explains(self) -> bool:
        """Whether the graph explains the table: few of the pairs without an edge stay dependent."""
        return self.still_dependent < UNEXPLAINED

    @property
    def still_dependent(self) -> float:
        """The likeliest share of pairs without an edge that stay dependent, or of those seen if that is larger."""
        return max(self.share, self.unexplained if self.dependent >= LEAST_DEPENDENT else 0.0)

    @property
    def edges_per_column(self) -> float:
        """Edges divided by columns."""
        return self.edges / self.columns

    def to_dict(self) -> dict[str, float]:
        """As a result's JSON holds it."""
        return {
            "columns": self.columns,
            "edges": self.edges,
            "apart": self.apart,
            "dependent": self.dependent,
            "share": self.share,
            "log_ratio": self.log_ratio,
            "explains": self.explains,
            "unexplained": self.unexplained,
            "edges_per_column": self.edges_per_column,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectionVerdict:
    """Whether directions can be read, the evidence in a sentence, and what to do."""

    level: DirectionLevel
    sentences: tuple[str, ...]

    @property
    def title(self) -> str:
        """The level in words."""
        return TITLES[self.level]

    @property
    def readable(self) -> bool:
        """Whether P(direction) is what the evidence for directions says."""
        return self.level == "readable"

    @property
    def trust(self) -> float:
        """What is left of the distance of P(direction) from 1/2."""
        return TRUST[self.level]

    @property
    def lines(self) -> tuple[str, ...]:
        """For a terminal."""
        return f"{self.title}.", *(f"  {sentence}" for sentence in self.sentences)

    def to_dict(self) -> dict[str, object]:
        """As a result's JSON holds it."""
        return {"level": self.level, "title": self.title, "sentences": list(self.sentences)}

    def __str__(self) -> str:
        return f"{self.title}. {' '.join(self.sentences)}"


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
    fit: GoodnessOfFit | None = None
    directions: DirectionVerdict | None = None
    causes: Mapping[tuple[str, str], float] = field(default_factory=dict)

    def way(self, a: str, b: str) -> float | None:
        """P(a -> b | edge), where the method has one."""
        if (a, b) in self.direction:
            return self.direction[a, b]
        other = self.direction.get((b, a))
        return None if other is None else 1 - other

"""What may be asked: a statistic with noise, or a choice among scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from dpcurate import plain
from dpcurate.errors import QueryError
from dpcurate.queries.answer import Answer
from dpcurate.queries.features import FeatureMoments, FeatureNorms, Histograms
from dpcurate.queries.noise import Exact, Gaussian, Laplace, Noise
from dpcurate.queries.numbers import Gradient, GradientNorms, Moments
from dpcurate.queries.pairs import PairStatistic
from dpcurate.queries.tables import Contrasts, Counts, Tables
from dpcurate.wording import shown

Statistic = (
    Counts
    | Tables
    | Contrasts
    | Moments
    | Gradient
    | GradientNorms
    | Histograms
    | FeatureMoments
    | FeatureNorms
    | PairStatistic
)

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Query(Generic[T_co]):
    """What may be asked, by the type of what comes back: a `Query[Answer]` or a `Query[int]`."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Release(Query[Answer]):
    """Ask for a statistic with noise."""

    statistic: Statistic
    noise: Noise

    def __post_init__(self) -> None:
        if not isinstance(self.statistic, Statistic):
            raise QueryError(f"a release needs a statistic, such as Counts or Tau, got {shown(self.statistic)}")
        if type(self.noise) not in (Laplace, Gaussian, Exact):
            raise QueryError(f"a release needs noise: Laplace, Gaussian or Exact, got {shown(self.noise)}")


@dataclass(frozen=True, slots=True)
class Score:
    """How far a scalar statistic lies beyond a public threshold, in units of its sensitivity.

    'above' is (abs(value) - threshold) / sensitivity, 'below' its negative: one row moves it by at
    most 1 whatever the statistic, so scores of different tests may be compared.
    """

    statistic: PairStatistic
    threshold: float
    side: Literal["above", "below"]

    def __post_init__(self) -> None:
        if not isinstance(self.statistic, PairStatistic):
            raise QueryError("a score needs a statistic that is one number, such as Tau or KendallP")
        threshold, side = plain.number(self.threshold), plain.text(self.side)
        if threshold is None or not -1e12 <= threshold <= 1e12:
            raise QueryError(f"a threshold must be a finite number, at most 1e12 in size, got {shown(self.threshold)}")
        if side not in ("above", "below"):
            raise QueryError(f"side must be 'above' or 'below', got {shown(self.side)}")
        plain.keep(self, threshold=threshold, side=side)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choose(Query[int]):
    """Pick the candidate of (about) the highest score by the exponential mechanism.

    With `or_none` a further candidate of score 0, meaning none of them, takes part; its index is
    the number of candidates.
    """

    candidates: tuple[Score, ...]
    epsilon: float
    or_none: bool = False

    def __post_init__(self) -> None:
        candidates = plain.listed(self.candidates, "candidates come as a tuple of scores")
        plain.keep(self, candidates=candidates, epsilon=plain.positive("epsilon", self.epsilon))
        if not self.candidates:
            raise QueryError("choosing needs at least one candidate")
        if type(self.or_none) is not bool:
            raise QueryError(f"or_none must be True or False, got {shown(self.or_none)}")
        if any(type(c) is not Score for c in self.candidates):
            raise QueryError("candidates are scores (Score itself, not a subclass of it)")

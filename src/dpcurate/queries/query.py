"""What may be asked: releases with their noise, choices, quantiles, and gates that stay open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Generic, Literal, Protocol, TypeVar

from dpcurate import _validation
from dpcurate._messages import shown
from dpcurate._validation import Number
from dpcurate.accounting import SMALLEST_DELTA
from dpcurate.errors import QueryError
from dpcurate.queries.answer import Answer
from dpcurate.queries.statistics import CELLS, PairStatistic, Statistic

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Laplace:
    """Discrete Laplace noise, by its scale or by the epsilon it is to cost."""

    epsilon: float | None = None
    scale: float | None = None

    def __post_init__(self) -> None:
        _validation.keep(self, **_one_of(epsilon=self.epsilon, scale=self.scale))


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaussian:
    """Discrete Gaussian noise, by sigma, by the rho it is to cost, or by (epsilon, delta).

    The last is the analytic calibration of Balle and Wang 2018, equation (1) of the CURATE paper.
    """

    sigma: float | None = None
    rho: float | None = None
    epsilon: float | None = None
    delta: float | None = None

    def __post_init__(self) -> None:
        _validation.keep(self, **_one_of(sigma=self.sigma, rho=self.rho, epsilon=self.epsilon))
        if (self.epsilon is None) != (self.delta is None):
            raise QueryError("Gaussian noise by epsilon needs delta, and delta goes with epsilon only")
        if self.delta is not None:
            delta = _validation.between(0, self.delta, 1)
            if delta is None or delta < SMALLEST_DELTA:
                raise QueryError(
                    f"delta must lie between 0 and 1, got {shown(self.delta)}; the least is {SMALLEST_DELTA:g}"
                )
            _validation.keep(self, delta=delta)


MOST_SITES = 500
"""Sites of one study."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianShare:
    """One site's share of discrete Gaussian noise on a sum over sites, by the rho that the sum is to cost.

    The cost is that of the noise of `sites - colluding` sites: as many as `colluding` of them may pool what they know.
    A person may have rows at `sites_per_person` sites. A share protects nothing by itself, so a table answers this
    in a round with the other sites and in no other way (docs/proofs/shared-noise.md).
    """

    rho: float
    sites: int
    colluding: int = 1
    sites_per_person: int = 1

    def __post_init__(self) -> None:
        _validation.keep(self, rho=_validation.positive("rho", self.rho))
        for name in ("sites", "colluding", "sites_per_person"):
            if type(getattr(self, name)) is not int:
                raise QueryError(f"{name} must be a whole number, got {shown(getattr(self, name))}")
        if not 3 <= self.sites <= MOST_SITES:
            raise QueryError(
                f"shared noise is for 3 to {MOST_SITES} sites, got {self.sites}: of two, each could subtract its own "
                "part from the sum. Let every site add its own noise (noise='own')"
            )
        if not 1 <= self.colluding <= self.sites - 2:
            raise QueryError(
                f"of {self.sites} sites 1 to {self.sites - 2} may collude, got colluding={self.colluding}; every site "
                "knows its own noise, and two sites at least must not tell theirs"
            )
        if not 1 <= self.sites_per_person <= self.sites:
            raise QueryError(
                f"a person may be at 1 to {self.sites} of the sites, got sites_per_person={self.sites_per_person}"
            )

    @property
    def honest(self) -> int:
        """How many sites' noise the cost relies on."""
        return self.sites - self.colluding


@dataclass(frozen=True, slots=True)
class Exact:
    """No noise: NOT PRIVATE, of infinite cost, for public data and for comparison."""


def _one_of(**choices: float | None) -> dict[str, Number]:
    given = {name: value for name, value in choices.items() if value is not None}
    if len(given) != 1:
        raise QueryError(f"give exactly one of {', '.join(choices)}")
    return {name: _validation.positive(name, value) for name, value in given.items()}


Noise = Laplace | Gaussian | GaussianShare | Exact


# --- gates ----------------------------------------------------------------------------------------------


class Gate(Generic[T_co]):
    """An interactive mechanism that may be opened, by the type of what is opened."""

    __slots__ = ()


class ThresholdGate(Protocol):
    """An open above-threshold gate."""

    @property
    def closed(self) -> bool:
        """Whether it has said yes."""

    def ask(self, score: Score) -> bool:
        """Whether the score is (about) positive."""

    def first(self, scores: Sequence[Score]) -> int | None:
        """The index of the first score to which it says yes, which closes it; None if there is none."""


class SampleGate(Protocol):
    """An open gate to a secret sample."""

    def ask(self, query: Query[T]) -> T:
        """Ask of the sample."""

    def open(self, gate: Gate[T]) -> T:
        """Open a gate on the sample."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AboveThreshold(Gate[ThresholdGate]):
    """A gate that tells of each score whether it is positive, until the first yes; then it closes."""

    epsilon: float

    def __post_init__(self) -> None:
        _validation.keep(self, epsilon=_validation.positive("epsilon", self.epsilon))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample(Gate[SampleGate]):
    """A gate to a fresh secret Poisson sample of the rows.

    What is asked of the sample may cost `epsilon` altogether, in pure epsilon; the curator is
    charged the smaller, amplified epsilon at once, when the gate opens.
    """

    rate: float
    epsilon: float

    def __post_init__(self) -> None:
        rate = _validation.number(self.rate)
        if rate is None or not 0 < rate <= 1:
            raise QueryError(f"a sampling rate lies above 0 and at most at 1, got {shown(self.rate)}")
        _validation.keep(self, rate=rate, epsilon=_validation.positive("epsilon", self.epsilon))


# --- releases, choices and quantiles --------------------------------------------------------------------


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
        if type(self.noise) not in (Laplace, Gaussian, GaussianShare, Exact):
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
        threshold, side = _validation.number(self.threshold), _validation.text(self.side)
        if threshold is None or not -1e12 <= threshold <= 1e12:
            raise QueryError(f"a threshold must be a finite number, at most 1e12 in size, got {shown(self.threshold)}")
        if side not in ("above", "below"):
            raise QueryError(f"side must be 'above' or 'below', got {shown(self.side)}")
        _validation.keep(self, threshold=threshold, side=side)


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
        candidates = _validation.listed(self.candidates, "candidates come as a tuple of scores")
        _validation.keep(self, candidates=candidates, epsilon=_validation.positive("epsilon", self.epsilon))
        if not self.candidates:
            raise QueryError("choosing needs at least one candidate")
        if type(self.or_none) is not bool:
            raise QueryError(f"or_none must be True or False, got {shown(self.or_none)}")
        if any(type(c) is not Score for c in self.candidates):
            raise QueryError("candidates are scores (Score itself, not a subclass of it)")


FINEST = 10_000
"""Probabilities of quantiles are fractions of at most this denominator."""
LARGEST_SHIFT = 10**12


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantile(Query[int]):
    """Pick (about) the interval of a number's range that holds a quantile, by the exponential mechanism.

    The intervals lie between `cuts`, rising whole numbers from 0 to CELLS in which the range is measured; without
    cuts they are the CELLS finest. What is sought is the row of rank `probability` times the rows with a number, and
    `shift` rows further.
    """

    column: str
    probability: float | Fraction
    epsilon: float
    shift: int = 0
    cuts: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        (column,) = _validation.names(self.column)
        _validation.keep(self, column=column, epsilon=_validation.positive("epsilon", self.epsilon))
        _validation.keep(self, probability=_probability(self.probability), cuts=_cuts(self.cuts))
        if type(self.shift) is not int or abs(self.shift) > LARGEST_SHIFT:
            raise QueryError(
                f"a shift is a whole number of rows, at most {LARGEST_SHIFT:,} in size, got {shown(self.shift)}"
            )


def _probability(given: object) -> Fraction:
    inside = _validation.between(0, given, 1)
    near = Fraction(0) if inside is None else Fraction(inside).limit_denominator(FINEST)
    if not 0 < near < 1:
        raise QueryError(f"the probability of a quantile lies between 0 and 1, such as 0.5, got {shown(given)}")
    return near


def _cuts(given: object) -> tuple[int, ...]:
    cuts = _validation.listed(given, "cuts come as a tuple of whole numbers")
    whole = all(type(cut) is int for cut in cuts)
    if cuts and not (whole and len(cuts) > 2 and cuts[0] == 0 and cuts[-1] == CELLS and _rising(cuts)):
        raise QueryError(
            f"cuts are rising whole numbers from 0 to {CELLS} with at least one between, got {shown(given)}"
        )
    return cuts


def _rising(cuts: tuple[int, ...]) -> bool:
    return all(a < b for a, b in pairwise(cuts))

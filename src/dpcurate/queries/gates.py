"""Interactive mechanisms that keep a secret in the session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol

from dpcurate import _validation
from dpcurate._messages import shown
from dpcurate.errors import QueryError
from dpcurate.queries.releases import Query, Score, T, T_co


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

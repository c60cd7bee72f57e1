"""Which effect is asked for, and what there is to answer from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from dpcurate.effects.effect import Effect

QUANTIFY = "dpcurate.quantify(found, curator) buys what it takes"
"""What to do next where released answers do not tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The effect of one column on another; levels as usual where none are named."""

    cause: str
    outcome: str
    to: str | None = None
    instead_of: str | None = None
    level: str | None = None

    def undetermined(self, why: str, given: Sequence[str] = ()) -> Effect:
        """That what was released does not tell."""
        reason = f"what was released does not tell: {why}; {QUANTIFY}"
        return Effect.unknown(self.cause, self.outcome, "not determined", reason, adjusted_for=given)


class Estimator(Protocol):
    """Effects from released answers."""

    def estimate(self, asked: Question, sets: Sequence[tuple[str, ...]]) -> Effect:
        """By adjustment for one of these sets, whichever the answers tell most of."""
        ...

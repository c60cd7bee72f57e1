"""Which effect is asked for, and what there is to answer from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from dpcurate.effects.effect import Effect
from dpcurate.graphs.adjustment import Adjustment
from dpcurate.schema import Schema

QUANTIFY = "ask found.model.effect after a run with quantify=0.5, or dpcurate.quantify(found, curator).effect"
"""What to do next where released answers do not tell."""
BINS = "give numbers `bins` in the schema, and ask found.model.effect after a run with quantify=0.5"
"""The same where a table has numbers without levels, and nothing else."""


def way_on(schema: Schema) -> str:
    """What to do next with such a table."""
    return QUANTIFY if any(column.has_levels for column in schema.columns) else BINS


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The effect of one column on another; levels as usual where none are named."""

    cause: str
    outcome: str
    to: str | None = None
    instead_of: str | None = None
    level: str | None = None

    def undetermined(self, why: str, given: Sequence[str] = (), then: str = QUANTIFY) -> Effect:
        """That what was released does not tell, and what to do then."""
        reason = f"{why}; {then}"
        return Effect.unknown(self.cause, self.outcome, "not determined", reason, adjusted_for=given)


class Estimator(Protocol):
    """Effects from released answers."""

    def estimate(self, asked: Question, possible: Adjustment) -> Effect:
        """By adjustment for one of its sets, whichever the answers tell most of, or in its DAG."""
        ...

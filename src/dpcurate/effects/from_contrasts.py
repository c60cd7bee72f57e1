"""Effects of columns with levels, from the table of cause, outcome and adjustment set where it was released whole.

With nothing to adjust for the table is a pair. A sum of effects of single columns, which pairs alone would give, is
not what an adjustment needs unless nothing interacts, and pairs do not tell whether anything does.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpcurate.effects.counts import NoisedCounts
from dpcurate.effects.effect import Effect
from dpcurate.effects.question import Question
from dpcurate.effects.standardise import standardised
from dpcurate.effects.table import EffectTable
from dpcurate.graphs.adjustment import Adjustment
from dpcurate.learn.measure_once.moments import Released
from dpcurate.schema import Schema


@dataclass(frozen=True, slots=True)
class FromContrasts:
    """From contrasts of levels."""

    released: Released
    schema: Schema

    def estimate(self, asked: Question, possible: Adjustment) -> Effect:
        """Of the sets whose table was released the one of the smallest error."""
        tried = [self._adjusted(asked, given) for given in possible.sets]
        known = [effect for effect in tried if effect.error is not None]
        return min(known, key=_total_error) if known else tried[-1]

    def _adjusted(self, asked: Question, given: tuple[str, ...]) -> Effect:
        names = (asked.cause, asked.outcome, *given)
        counts = NoisedCounts.of(self.released, tuple(self.schema.names.index(name) for name in names))
        if counts is None:
            return asked.undetermined(f"the table of {', '.join(names)} was not bought", given)
        found = standardised(counts)
        if found is None:
            return asked.undetermined(f"the table of {', '.join(names)} has too few rows for its noise", given)
        cause, outcome = self.schema[asked.cause], self.schema[asked.outcome]
        table = EffectTable(cause.levels, outcome.levels, found.values, found.covariances)
        return Effect.of_levels(
            asked.cause,
            asked.outcome,
            table,
            adjusted_for=given,
            to=asked.to,
            instead_of=asked.instead_of,
            level=asked.level,
        )


def _total_error(effect: Effect) -> float:
    """Of all entries: the one that is asked for should not choose its own set."""
    return float("inf") if effect.table is None else float((effect.table.errors**2).sum())

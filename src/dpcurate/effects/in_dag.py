"""Effects in tables that mix numbers and levels, in DAGs, from released products of features.

A table is simulated along the graph that would have released what was released; what setting a column does in it is
the effect. Where it cannot be made to release that, links are not what they are taken to be, and nothing is said.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from dpcurate._typing import FloatArray
from dpcurate.effects.effect import (
    Effect,
    EffectQuestion,
    EffectTable,
    IfSet,
    mean_table,
    place_of,
    short_number,
    usual,
)
from dpcurate.effects.matching import Matched, matched, means_and_slopes, sizes
from dpcurate.effects.simulated import SimulatedNumber, Simulator, even_numbers
from dpcurate.graphs.adjustment import Adjustment, covering
from dpcurate.graphs.graph import Cpdag, Dag, Pag
from dpcurate.learn.measure_once.feature_release import ReleasedFeatures
from dpcurate.schema import OWN, Numeric, Schema

ROWS, TURNS = 1 << 14, 4
"""Rows simulated for an effect, and how often."""
NUMBER_STEP = 0.2
"""How far a number is moved to either side, in standard deviations: what is said is the mean slope."""


def effect_of(model: Matched, schema: Schema, asked: EffectQuestion) -> Effect:
    """The total effect in the model's graph."""
    if schema[asked.cause].has_levels:
        return _of_levels(model, schema, asked)
    outcome, shown = schema[asked.outcome], model.simulator.shown[asked.cause]
    level = (asked.level or usual(outcome.levels)[0]) if outcome.has_levels else None
    at = 0 if level is None else place_of(level, outcome.levels, "the outcome")
    return (_per_unit if shown.ends is None else _of_quarters)(model, asked, level, at)


def _of_levels(model: Matched, schema: Schema, asked: EffectQuestion) -> Effect:
    cause, outcome = schema[asked.cause], schema[asked.outcome]
    found = if_levels(model, asked.cause, asked.outcome, cause.size)
    if outcome.has_levels:
        table = EffectTable(cause.levels, outcome.levels, found.values, found.covariances)
    else:
        table = mean_table(cause.levels, found.values[:, 0], found.covariances[0])
    return Effect.of_levels(
        asked.cause,
        asked.outcome,
        table,
        adjusted_for=model.simulator.dag.parents(asked.cause),
        to=asked.to,
        instead_of=asked.instead_of,
        level=asked.level,
        spread=None if outcome.has_levels else _spread(model, asked.outcome),
    )


def _per_unit(model: Matched, asked: EffectQuestion, level: str | None, at: int) -> Effect:
    """The mean slope."""
    found, width = if_moved(model, asked.cause, asked.outcome)
    change, error = _change(found, at)
    return _of_number(model, asked, level, (change / width, error / width), 1.0)


def _of_quarters(model: Matched, asked: EffectQuestion, level: str | None, at: int) -> Effect:
    """Of a skewed number, whose mean slope hangs on its ends: its upper quartile instead of its lower."""
    low, high = (short_number(x) for x in model.simulator.shown[asked.cause].quarters)
    found = if_values(model, asked.cause, asked.outcome, [float(low), float(high)])
    moved = _of_number(model, asked, level, _change(found, at), max(float(high) - float(low), 1e-12))
    return replace(moved, to=high, instead_of=low)


def _of_number(
    model: Matched, asked: EffectQuestion, level: str | None, told: tuple[float, float], width: float
) -> Effect:
    spread = width * (_spread(model, asked.outcome) if level is None else 1.0) / _spread(model, asked.cause)
    given = model.simulator.dag.parents(asked.cause)
    return Effect.per_unit(asked.cause, asked.outcome, *told, adjusted_for=given, level=level, spread=spread)


def _change(found: IfSet, at: int) -> tuple[float, float]:
    """From the first setting to the second, and its error."""
    covariance = found.covariances[at]
    variance = covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1]
    return float(found.values[1, at] - found.values[0, at]), float(np.sqrt(max(variance, 0.0)))


def _spread(model: Matched, name: str) -> float:
    """The standard deviation of a number, about."""
    shown = model.simulator.shown[name]
    values = model.simulator.rows(model.parameters, even_numbers(ROWS, len(model.simulator.names)))[name]
    return float(np.std(shown.numbers(values)))


def if_levels(model: Matched, cause: str, outcome: str, levels: int) -> IfSet:
    """The cause set to each of its levels."""
    return _averaged(model, cause, outcome, lambda _: [np.full(ROWS, x, dtype=np.intp) for x in range(levels)])


def if_values(model: Matched, cause: str, outcome: str, numbers: list[float]) -> IfSet:
    """The cause, a number, set to each of these."""
    shown: SimulatedNumber = model.simulator.shown[cause]
    latent = shown.latent(np.array(numbers))
    found = _averaged(model, cause, outcome, lambda _: [np.full(ROWS, x) for x in latent])
    steep = (found.values[-1] - found.values[0]) / max(float(latent[-1] - latent[0]), 1e-6)
    unknown = (steep[:, None] * shown.width(latent)) ** 2 / 12  # where in its place a number lies
    return replace(found, covariances=found.covariances + unknown[:, :, None] * np.eye(len(numbers)))


def if_moved(model: Matched, cause: str, outcome: str) -> tuple[IfSet, float]:
    """The cause set to its own values, whatever its parents, and a step below and above; and what lies between."""
    shown: SimulatedNumber = model.simulator.shown[cause]
    step = NUMBER_STEP * _spread(model, cause)

    def settings(turn: int) -> list[Any]:
        columns = len(model.simulator.names)
        own = np.sort(model.simulator.rows(model.parameters, even_numbers(ROWS, columns, turn))[cause])
        place = even_numbers(ROWS, columns + 1, turn)[:, -1]
        numbers = shown.numbers(own[(place * ROWS).astype(np.intp)])
        return [shown.latent(numbers - step), shown.latent(numbers + step)]

    return _averaged(model, cause, outcome, settings), 2 * step


def _averaged(model: Matched, cause: str, outcome: str, settings: Callable[[int], list[Any]]) -> IfSet:
    """Over turns of simulation, whose differences are an error too."""
    turns = [_one(model, cause, outcome, settings(turn), turn) for turn in range(TURNS)]
    values = np.array([one[0] for one in turns])
    slopes = np.mean([one[1] for one in turns], axis=0)
    simulator = model.simulator
    at = np.concatenate(
        [
            np.arange(simulator.size)[simulator.at[x]]
            for x in simulator.scored(simulator.dag.upstream([outcome], [cause]), cause)
        ]
    )
    covariances = np.einsum("sop,pq,toq->ost", slopes, model.covariance[np.ix_(at, at)], slopes) * model.widening
    apart = values - values.mean(axis=0)
    simulated = np.einsum("nso,nto->ost", apart, apart) / (TURNS * (TURNS - 1))
    unsure = getattr(simulator.shown[outcome], "unsure", 0.0) ** 2 * np.eye(values.shape[1])
    return IfSet(values.mean(axis=0), covariances + simulated + unsure)


def _one(model: Matched, cause: str, outcome: str, settings: list[Any], turn: int) -> tuple[FloatArray, FloatArray]:
    """Means of the outcome under each setting, and their derivatives by parameters of what lies above it."""
    simulator, parameters = model.simulator, model.parameters
    above = simulator.dag.upstream([outcome], [cause])
    even = even_numbers(ROWS, len(simulator.names), turn)
    means, slopes = [], []
    for setting in settings:
        values = simulator.rows(parameters, even, {cause: setting}, above)
        scores = simulator.scores(parameters, values, but=cause)
        expected, sampled = simulator.expected(parameters, outcome, values), simulator.sampled(outcome, values)
        mean, slope = means_and_slopes(np.column_stack([expected, sampled]), scores)
        means.append(mean[: expected.shape[1]])
        slopes.append(slope[expected.shape[1] :])
    return np.array(means), np.array(slopes)


WORST_MISFIT = 3.0
"""Beyond this misfit (1 is what errors explain) nothing is said; below, where it is clear, errors are widened."""
MOST_MATCHED = 1200
"""Products and parameters at most: more take too long, and too much memory."""
MOST_UNSETTLED = 1.0
"""A last step of more standard errors than this has not arrived anywhere."""
ADVICE_BINS = "with `bins` for its numbers in the schema a model has the tables needed"
ADVICE_NARROWER = "give bounds as narrow as is publicly known, declare its logarithm instead, or give it `bins`"
ADVICE_FEWER = "group levels in the schema, or quantify a graph with fewer parents (dag=...)"
NO_DAG = "the graph allows hidden causes, or no DAG has its arrows; effects in mixed tables are simulated along a DAG"
ADVICE_TABLES = "with `bins` for numbers in the schema the tables needed are released"


@dataclass(frozen=True, eq=False)
class InDag:
    """From features of numbers and levels."""

    released: ReleasedFeatures
    dag: Dag
    schema: Schema

    @cached_property
    def simulator(self) -> Simulator:
        """Rows drawn from the graph as its released columns look."""
        return Simulator.of(self.released, self.dag, self.schema.names)

    @cached_property
    def fitted(self) -> Matched:
        """All columns together."""
        return matched(self.released, self.simulator)

    @cached_property
    def why_not(self) -> tuple[str, str]:
        """Why nothing is said, and what to do; empty where something is."""
        gone = [c.name for c in self.schema.columns if isinstance(c, Numeric) and c.missing == OWN]
        if gone:
            return f"{', '.join(gone)} with missing cells of their own (missing = 'own')", ADVICE_BINS
        if (together := sum(sizes(self.released, self.simulator))) > MOST_MATCHED:
            return (
                f"{together:,} products and parameters are more than the {MOST_MATCHED:,} that are matched",
                ADVICE_FEWER,
            )
        if self.fitted.misfit > WORST_MISFIT or not self.fitted.settled < MOST_UNSETTLED:
            return "no table with straight links that add up would have released what was released", ADVICE_BINS
        return "", ""

    def effect(self, asked: EffectQuestion) -> Effect:
        """In the graph itself, whatever others say the same."""
        if not self.dag.leads(asked.cause, asked.outcome):
            return Effect.none(asked.cause, asked.outcome)
        why, then = self._constant(asked) or self._blurred(asked) or self.why_not
        if why:
            return asked.undetermined(why, self.dag.parents(asked.cause), then)
        return effect_of(self.fitted, self.schema, asked)

    def _constant(self, asked: EffectQuestion) -> tuple[str, str] | None:
        shown = self.simulator.shown[asked.cause]
        if getattr(shown, "quarters", ()) is not None:
            return None
        return f"nine rows of ten hold nearly the same {asked.cause}", "give it `bins`, or declare it as ordinal"

    def _blurred(self, asked: EffectQuestion) -> tuple[str, str] | None:
        shown = self.simulator.shown
        involved = (x for x in self.schema.names if x in self.dag.upstream([asked.outcome], [asked.cause]))
        hidden = [x for x in involved if getattr(shown[x], "blurred", False)]
        if not hidden:
            return None
        return f"noise hides how rows of {' and '.join(hidden)} lie within bounds that are far wider", ADVICE_NARROWER


@dataclass(frozen=True, eq=False)
class InDags:
    """The same in the DAGs that a graph leaves possible: each is simulated once, when it is first needed."""

    released: ReleasedFeatures
    schema: Schema
    graph: Cpdag | Dag | Pag
    known: dict[Dag, InDag] = field(default_factory=dict, init=False)

    @cached_property
    def dags(self) -> tuple[Dag, ...]:
        """DAGs that tell all effects."""
        return covering(self.graph) if isinstance(self.graph, Cpdag) else ()

    @property
    def work(self) -> int:
        """Columns to be simulated for all effects."""
        return len(self.dags) * len(self.schema.names)

    def estimate(self, asked: EffectQuestion, possible: Adjustment) -> Effect:
        """In a DAG of this possibility: any in which the cause has the same parents."""
        if possible.dag is None:
            return asked.undetermined(NO_DAG, possible.sets[0], ADVICE_TABLES)
        parents = possible.dag.parents(asked.cause)
        dag = next((one for one in self.dags if one.parents(asked.cause) == parents), possible.dag)
        if dag not in self.known:
            self.known[dag] = InDag(self.released, dag, self.schema)
        return self.known[dag].effect(asked)

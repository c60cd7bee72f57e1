"""What setting a column does in a simulated table, with errors: sampling, noise, and what simulation leaves open."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpcurate._typing import FloatArray
from dpcurate.effects.effect import Effect, mean_table, short_number
from dpcurate.effects.matching import Matched, means_and_slopes
from dpcurate.effects.question import Question
from dpcurate.effects.simulated import Number, even_numbers
from dpcurate.effects.table import EffectTable, place_of, usual
from dpcurate.graphs.graph import Dag
from dpcurate.schema import Schema

ROWS, TURNS = 1 << 14, 4
"""Rows simulated for an effect, and how often."""
STEP = 0.2
"""How far a number is moved to either side, in standard deviations: what is said is the mean slope."""


@dataclass(frozen=True, slots=True, eq=False)
class IfSet:
    """Means of an outcome (one of a number, the chances of levels) under settings of its cause, and their errors."""

    values: FloatArray
    """(settings, outcomes)."""
    covariances: FloatArray
    """(outcomes, settings, settings)."""


def effect_of(model: Matched, schema: Schema, asked: Question) -> Effect:
    """The total effect in the model's graph."""
    if schema[asked.cause].has_levels:
        return _of_levels(model, schema, asked)
    outcome, shown = schema[asked.outcome], model.simulator.shown[asked.cause]
    level = (asked.level or usual(outcome.levels)[0]) if outcome.has_levels else None
    at = 0 if level is None else place_of(level, outcome.levels, "the outcome")
    return (_per_unit if shown.ends is None else _of_quarters)(model, asked, level, at)


def _of_levels(model: Matched, schema: Schema, asked: Question) -> Effect:
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


def _per_unit(model: Matched, asked: Question, level: str | None, at: int) -> Effect:
    """The mean slope."""
    found, width = if_moved(model, asked.cause, asked.outcome)
    change, error = _change(found, at)
    return _of_number(model, asked, level, (change / width, error / width), 1.0)


def _of_quarters(model: Matched, asked: Question, level: str | None, at: int) -> Effect:
    """Of a skewed number, whose mean slope hangs on its ends: its upper quartile instead of its lower."""
    low, high = (short_number(x) for x in model.simulator.shown[asked.cause].quarters)
    found = if_values(model, asked.cause, asked.outcome, [float(low), float(high)])
    moved = _of_number(model, asked, level, _change(found, at), max(float(high) - float(low), 1e-12))
    return replace(moved, to=high, instead_of=low)


def _of_number(model: Matched, asked: Question, level: str | None, told: tuple[float, float], width: float) -> Effect:
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
    shown: Number = model.simulator.shown[cause]
    latent = shown.latent(np.array(numbers))
    found = _averaged(model, cause, outcome, lambda _: [np.full(ROWS, x) for x in latent])
    steep = (found.values[-1] - found.values[0]) / max(float(latent[-1] - latent[0]), 1e-6)
    unknown = (steep[:, None] * shown.width(latent)) ** 2 / 12  # where in its place a number lies
    return replace(found, covariances=found.covariances + unknown[:, :, None] * np.eye(len(numbers)))


def if_moved(model: Matched, cause: str, outcome: str) -> tuple[IfSet, float]:
    """The cause set to its own values, whatever its parents, and a step below and above; and what lies between."""
    shown: Number = model.simulator.shown[cause]
    step = STEP * _spread(model, cause)

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
            for x in simulator.scored(needed(simulator.dag, cause, outcome), cause)
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
    above = needed(simulator.dag, cause, outcome)
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


def needed(dag: Dag, cause: str, outcome: str) -> set[str]:
    """The outcome and all that lead to it; the cause is set, so what leads to it does not matter."""
    found = {outcome}
    for name in reversed(dag.order()):
        if name in found and name != cause:
            found.update(dag.parents(name))
    return found


def leads(dag: Dag, cause: str, outcome: str) -> bool:
    """Whether a directed path goes from one to the other."""
    return cause in needed(dag, cause, outcome)

"""The effect of one column on another in a graph that was found, from released answers alone: nothing is charged."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from heapq import heappop, heappush
from itertools import pairwise
from typing import Any

from dpcurate._messages import one_line, probability
from dpcurate._tables import frame_of, safe, table_html
from dpcurate.effects.effect import Effect, EffectQuestion, EffectTable, Estimator, way_on
from dpcurate.effects.from_contrasts import FromContrasts
from dpcurate.effects.from_features import FromFeatures, all_numbers
from dpcurate.effects.in_dag import InDags
from dpcurate.errors import QueryError
from dpcurate.graphs.adjustment import Adjustment
from dpcurate.graphs.base_graph import Arrow
from dpcurate.graphs.formats.graph_draft import EFFECT_COLUMNS, EdgeProbabilities, EdgeProbability, written
from dpcurate.graphs.graph import Cpdag, Dag, Graph, Pag
from dpcurate.learn.measure_once.central_moments import Released
from dpcurate.learn.measure_once.feature_release import ReleasedFeatures
from dpcurate.learn.measure_once.released import Releases
from dpcurate.result.edges import ColumnPair
from dpcurate.schema import Schema, did_you_mean


class FoundEffects(tuple[Effect, ...]):
    """Effects that print one to a line, and below them, once, why some are not known."""

    __slots__ = ()

    @property
    def why_none(self) -> str:
        """Why none of them is known, where all have the same reason and there are several."""
        reasons = {effect.why for effect in self}
        return next(iter(reasons)) if len(self) > 1 and len(reasons) == 1 else ""

    def to_frame(self) -> Any:
        """A pandas frame with a row for each effect: its ends, state, size with a 95 % interval, and sentence."""
        rows = [[*(getattr(effect, name) for name in FRAME_COLUMNS[:-2]), effect.brief, effect.why] for effect in self]
        return frame_of(FRAME_COLUMNS, rows, words=(*FRAME_COLUMNS[:5], *FRAME_COLUMNS[-2:]))

    def _repr_html_(self) -> str:
        """What a notebook shows: a table of those that are known, and why the others are not."""
        known = [effect for effect in self if not effect.why]
        left = len(self) - len(known)
        rows = [(effect.cause, effect.outcome, effect.brief) for effect in known]
        shown = table_html(("cause", "outcome", "effect"), rows) if rows else ""
        whys = "; ".join(dict.fromkeys(effect.why for effect in self if effect.why))
        return shown + (f"<p>{safe(f'{left} of {len(self)} effects are left out. {whys}')}</p>" if left else "")

    def __str__(self) -> str:
        if self.why_none:
            return f"none of {len(self)} effects along edges is known; {self.why_none}"
        lines = [f"{effect.cause} -> {effect.outcome}: {effect.brief}" for effect in self]
        reasons = dict.fromkeys(effect.why for effect in self if effect.why)
        return "\n".join(map(one_line, (*lines, *reasons)))


FRAME_COLUMNS = (
    *("cause", "outcome", "to", "instead_of", "level", "estimate", "error", "low", "high", "strength"),
    *("in_words", "why_unknown"),
)
"""The columns of a frame of effects."""
MOST_REPORTED_EDGES = 400
"""In a larger graph effects are computed when they are asked for, and not for every file."""
MOST_SIMULATED = 50
"""The same where more columns would have to be simulated, over all DAGs."""
MANY_DAGS = "many DAGs are possible, and simulating them takes a while; found.effects() does, and is free"


@dataclass(frozen=True)
class Effects:
    """Effects in one graph, from one release."""

    graph: Cpdag | Dag | Pag
    schema: Schema
    estimator: Estimator | None
    """None where the answers themselves were not kept, or do not tell effects."""
    why: str = ""
    not_identified: str = ""
    """Why the graph identifies no effect, where its directions cannot be read."""

    @classmethod
    def of(
        cls, graph: Cpdag | Dag | Pag, released: Releases | None, schema: Schema, not_identified: str = ""
    ) -> Effects:
        """With the estimator that fits what was released."""
        if not_identified:
            return cls(graph, schema, None, not_identified=not_identified)
        if isinstance(released, Released):
            return cls(graph, schema, FromContrasts(released, schema))
        if isinstance(released, ReleasedFeatures):
            numbers = all_numbers(released)
            return cls(graph, schema, FromFeatures(released, schema) if numbers else InDags(released, schema, graph))
        if released is None:
            return cls(graph, schema, None, "this method keeps no answers to compute effects from")
        return cls(graph, schema, None, "rows were shrunk to one length before they were added up")

    def effect(
        self,
        cause: str,
        outcome: str,
        *,
        to: str | None = None,
        instead_of: str | None = None,
        level: str | None = None,
    ) -> Effect:
        """The total effect of setting the cause; levels as usual where none are named."""
        asked = EffectQuestion(cause=cause, outcome=outcome, to=to, instead_of=instead_of, level=level)
        self._check(asked)
        if self.not_identified:
            return Effect.unknown(cause, outcome, "not identified", self.not_identified)
        possible = self.graph.adjustments(cause, outcome)
        if not possible:
            return Effect.unknown(cause, outcome, "not identified", self._unidentified(cause))
        return Effect.several([self._by(asked, one) for one in possible])

    def _unidentified(self, cause: str) -> str:
        if self.graph.latent:
            return (
                f"a hidden cause may move {cause} and what it leads to; a column that causes {cause} alone would tell"
            )
        return f"{cause} has too many lines to try every direction of them; knowledge that directs some would help"

    def _by(self, asked: EffectQuestion, adjustment: Adjustment) -> Effect:
        if not adjustment.acts:
            return Effect.none(asked.cause, asked.outcome)
        if self.estimator is None:
            return asked.undetermined(self.why, adjustment.sets[0], way_on(self.schema))
        return self.estimator.estimate(asked, adjustment)

    @cached_property
    def edges(self) -> FoundEffects:
        """Of every edge, along its arrow; of a line both ways."""
        return FoundEffects(self.effect(a, b) for a, b in directions(self.graph))

    @property
    def reported(self) -> FoundEffects:
        """What reports tell of them: nothing where no answers were kept, nor of very large graphs."""
        if (self.estimator is None and not self.not_identified) or len(self.graph.edges) > MOST_REPORTED_EDGES:
            return FoundEffects()
        if isinstance(self.estimator, InDags) and self.estimator.work > MOST_SIMULATED:
            return FoundEffects(Effect.unknown(a, b, "not determined", MANY_DAGS) for a, b in directions(self.graph))
        return self.edges

    def _check(self, asked: EffectQuestion) -> None:
        for name in (asked.cause, asked.outcome):
            if name not in self.schema.names:
                raise QueryError(f"there is no column {name!r}{did_you_mean(name, self.schema.names)}")
        if asked.cause == asked.outcome:
            raise QueryError(f"an effect is of one column on another, not of {asked.cause!r} on itself")
        for name, said in ((asked.cause, asked.to), (asked.cause, asked.instead_of), (asked.outcome, asked.level)):
            levels = self.schema[name].levels if self.schema[name].has_levels else ()
            if said is not None and said not in levels:
                has = did_you_mean(said, levels) if levels else "; it is a number"
                raise QueryError(f"{name!r} has no level {said!r}{has}")
        if asked.to is not None and asked.to == asked.instead_of:
            raise QueryError(
                f"{asked.to!r} instead of {asked.to!r} changes nothing: name two levels of {asked.cause!r}"
            )


def directions(graph: Cpdag | Dag | Pag) -> tuple[tuple[str, str], ...]:
    """Every edge as (cause, outcome) in the columns' order: an arrow once, any other both ways."""
    found = []
    for a, sign, b in graph.written():
        found += [(a, b)] if sign == "->" else [(a, b), (b, a)]
    return tuple(found)


OpenSteps = dict[str, dict[str, int]]
"""Where one may go from a column, and how many undecided pairs that takes: none or one."""


def unless_undecided(effect: Effect, graph: Graph, pairs: Iterable[ColumnPair], direction: float) -> Effect:
    """The effect, or *undecided* where the graph has none but pairs that it leaves open could lead there.

    `direction` is the probability from which on a pair would be drawn as an arrow.
    """
    if effect.state != "none":
        return effect
    undecided = {(p.a, p.b): p for p in pairs}
    way = _fewest(_steps(graph, undecided, direction), effect.cause, effect.outcome)
    on_the_way = [undecided.get(ends) or undecided.get(ends[::-1]) for ends in pairwise(way)]
    open_pairs = [pair for pair in on_the_way if pair is not None]
    if not open_pairs:
        return effect
    return Effect.unknown(effect.cause, effect.outcome, "undecided", _reason(open_pairs))


def _reason(pairs: list[ColumnPair]) -> str:
    named = " and ".join(f"{p.a} and {p.b} ({probability('P(edge)', p.linked or 0.0)})" for p in pairs)
    lowest = math.floor(100 * min(p.linked or 0.0 for p in pairs)) / 100
    them, link = ("it", "link") if len(pairs) == 1 else ("them", "links")
    drawn = f"found.at({lowest:g}).effect(...) supposes {them}; " if lowest > 0 else ""
    return (
        f"it depends on the {link} between {named}, neither drawn nor ruled out. {drawn}"
        f"knowledge, more rows or a larger epsilon would decide {them}"
    )


def _steps(graph: Graph, undecided: Mapping[tuple[str, str], ColumnPair], direction: float) -> OpenSteps:
    steps: OpenSteps = {name: {} for name in graph.nodes}
    for a, sign, b in graph.written():
        if sign[0] != "<" and (sign[-1] != "-" or sign == "--"):
            steps[a][b] = 0
        if sign[-1] != ">":
            steps[b][a] = 0
    for (a, b), pair in undecided.items():
        forwards = 0.5 if pair.direction is None else pair.direction
        if forwards > 1 - direction:
            steps[a].setdefault(b, 1)
        if forwards < direction:
            steps[b].setdefault(a, 1)
    return steps


def _fewest(steps: OpenSteps, start: str, end: str) -> list[str]:
    """The columns on a way with the fewest undecided pairs; none if there is no way."""
    queue, seen = [(0, 0, [start])], set[str]()
    while queue:
        taken, length, way = heappop(queue)
        if way[-1] == end:
            return way
        if way[-1] not in seen:
            seen.add(way[-1])
            for name, more in steps[way[-1]].items():
                heappush(queue, (taken + more, length + 1, [*way, name]))
    return []


JSON_FIELDS = (
    *("cause", "outcome", "state", "estimate", "error", "low", "high", "adjusted_for", "to", "instead_of"),
    *("level", "strength", "reason"),
)


def with_effects(
    probabilities: EdgeProbabilities, edges: Iterable[Arrow], effects: Iterable[Effect]
) -> EdgeProbabilities:
    """How sure edges are, with the effect along each as it is written."""
    known = {(effect.cause, effect.outcome): effect for effect in effects}
    told = {
        ends: replace(probabilities.get(ends, EdgeProbability()), effect=_beside(known[ends]))
        for ends in edges
        if ends in known
    }
    return {**probabilities, **told}


def _beside(effect: Effect) -> tuple[tuple[str, str], ...]:
    numbers = effect.estimate, effect.low, effect.high
    return tuple(zip(EFFECT_COLUMNS, (*("" if x is None else written(x) for x in numbers), effect.brief), strict=True))


def plain(effect: Effect) -> dict[str, Any]:
    """An effect as JSON holds it."""
    values = {name: getattr(effect, name) for name in JSON_FIELDS}
    table = {} if effect.table is None else {"table": _plain_table(effect.table)}
    possible = {"possible": [plain(one) for one in effect.possible]} if effect.possible else {}
    return {**values, "adjusted_for": list(effect.adjusted_for), "words": effect.sentence, **table, **possible}


def _plain_table(table: EffectTable) -> dict[str, Any]:
    return {
        "causes": list(table.causes),
        "outcomes": list(table.outcomes),
        "values": table.values.tolist(),
        "errors": table.errors.tolist(),
    }

"""A fitted model of a table with numbers, ordinals or long lists of levels."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from dpcurate._files import save_text
from dpcurate._messages import did_you_mean, how_many, shown
from dpcurate._typing import FloatArray
from dpcurate.effects.effect import Effect
from dpcurate.effects.effect_table import place_of
from dpcurate.effects.from_features import all_numbers
from dpcurate.effects.in_dag import ADVICE_BINS
from dpcurate.effects.in_graph import Effects
from dpcurate.errors import QueryError
from dpcurate.graphs.graph import Dag
from dpcurate.learn.measure_once.feature_release import ReleasedFeatures
from dpcurate.models.columns import draw_column, is_scored, level_chances, score_quantile
from dpcurate.models.scores import Covariance, Step
from dpcurate.networks.streams import stream, whole
from dpcurate.schema import Numeric, Schema

NOTE = (
    "A synthetic table with numbers keeps, up to the noise, the distribution of every column and straight links of a "
    "column and its causes on the scale of normal scores (ranks). Where bounds are far wider than the numbers, noise "
    "fills the empty end and moves means. It does not keep what two causes do only together, links that rise and fall, "
    "spreads that change, nor anything that the graph leaves out; errors computed from its rows ignore the noise. No "
    "row is anybody's."
)


@dataclass(frozen=True, eq=False)
class ScoreModel:
    """Regressions on normal scores and indicators along a graph, from released answers alone: asking it is free."""

    dag: Dag
    schema: Schema
    released: ReleasedFeatures
    steps: Mapping[str, Step]
    cost: str = ""
    not_identified: str = ""
    """Why it tells no effects, where the directions of its graph cannot be read."""

    @classmethod
    def of(cls, released: ReleasedFeatures, dag: Dag, schema: Schema, cost: str = "") -> ScoreModel:
        """The regression of every column on its parents."""
        covariance, place = Covariance.of(released), {name: i for i, name in enumerate(schema.names)}
        steps = {x: covariance.step(place[x], [place[p] for p in dag.parents(x)]) for x in schema.names}
        return cls(dag, schema, released, steps, cost)

    @property
    def rows(self) -> float:
        """The released row count."""
        return self.released.rows

    @property
    def note(self) -> str:
        """What a synthetic table is good for, and what not."""
        return NOTE

    def sample(self, rows: int, *, seed: int) -> dict[str, Any]:
        """A synthetic table of the schema, a column of cells by name; numbers lie within their bounds. See `note`."""
        count = whole("rows", rows)
        features: dict[int, FloatArray] = {}
        cells: dict[str, Any] = {}
        for name in self.dag.order():
            column, step = self.schema.names.index(name), self.steps[name]
            given = np.column_stack([features[p] for p in step.parents]) if step.parents else np.zeros((count, 0))
            known, own = self.released.distributions[column], self.released.features[column]
            drawn = draw_column(known, own, given @ step.weights, step.rest, stream(seed, f"cells of {name}"))
            features[column], cells[name] = own.values[drawn.places], drawn.cells
        return {name: cells[name] for name in self.schema.names}

    def predict(self, given: Mapping[str, Any], outcome: str) -> dict[str, float]:
        """Of a column with levels the probability of each, of a number its mean and where 95 % lie, in such rows.

        By regression on all that is given, so that only straight links are seen.
        """
        column = self._place(outcome)
        if outcome in given:
            raise QueryError(f"{outcome!r} is given and asked for: leave it out of one of the two")
        step = Covariance.of(self.released).step(column, [self._place(x) for x in given])
        seen = [self._features(x, value) for x, value in given.items()]
        mean = np.concatenate([np.zeros(0), *seen]) @ step.weights
        known, own = self.released.distributions[column], self.released.features[column]
        if isinstance(known.column, Numeric):
            said = score_quantile(known, own, float(mean[0]), float(step.rest[0, 0]))
            return dict(zip(("mean", "low", "high"), said, strict=True))
        chances = level_chances(known, own, mean[None, :])[0]
        return dict(zip(known.column.levels, chances.tolist(), strict=True))

    def _place(self, name: str) -> int:
        if name not in self.schema.names:
            raise QueryError(f"the model has no column {name!r}{did_you_mean(name, self.schema.names)}")
        return self.schema.names.index(name)

    def _features(self, name: str, value: Any) -> FloatArray:
        at = self._place(name)
        column, values = self.schema.columns[at], self.released.features[at].values
        if not isinstance(column, Numeric):
            return np.asarray(values[place_of(str(value), column.levels, repr(name))])
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not column.low <= value <= column.high:
            raise QueryError(f"{name!r} is a number from {column.low:g} to {column.high:g}, got {shown(value)}")
        count = len(self.released.distributions[at].shares)
        share = (value - column.low) / (column.high - column.low)
        inner = int(np.searchsorted(column.edges, value, side="right")) if column.has_levels else int(share * count)
        return np.asarray(values[min(inner, count - 1)])

    def effect(
        self,
        cause: str,
        outcome: str,
        *,
        to: str | None = None,
        instead_of: str | None = None,
        level: str | None = None,
    ) -> Effect:
        """What setting a column does to another in this graph; where lines may bend it says so."""
        effect = self.effects.effect(cause, outcome, to=to, instead_of=instead_of, level=level)
        why = effect.reason.partition("; ")[0]
        bent = effect.state == "not determined" and all_numbers(self.released)
        return replace(effect, reason=f"{why}; {ADVICE_BINS}") if bent else effect

    @cached_property
    def effects(self) -> Effects:
        """Effects in the model's own graph."""
        return Effects.of(self.dag, self.released, self.schema, self.not_identified)

    def table(self, column: str) -> NoReturn:
        """A model by regressions has no table of probabilities; it says what has."""
        raise QueryError(
            "a model with numbers has no tables: predict says what is likely given some columns, and sample draws "
            "rows; with `bins` for numbers in the schema a model has tables"
        )

    def marginal(self, columns: Sequence[str]) -> NoReturn:
        """As `table`."""
        self.table("")

    def log_likelihood(self) -> NoReturn:
        """As `table`."""
        self.table("")

    def to_pgmpy(self) -> NoReturn:
        """As `table`; `found.to_pgmpy()` hands over the graph."""
        self.table("")

    def save(self, path: str | Path) -> Path:
        """Write the graph, the regressions and the distributions as JSON."""
        target = Path(path)
        if target.suffix != ".json":
            raise QueryError(f"a model with numbers is saved as .json, not {target.suffix!r}: name it model.json")
        save_text(target, self.file_text())
        return target

    def file_text(self) -> str:
        """What `save` writes."""
        return json.dumps(self._plain(), indent=1) + "\n"

    def _plain(self) -> dict[str, Any]:
        columns = {}
        for i, (name, known) in enumerate(zip(self.schema.names, self.released.distributions, strict=True)):
            step = self.steps[name]
            columns[name] = {
                "parents": list(self.dag.parents(name)),
                "weights": step.weights.tolist(),
                "rest": step.rest.tolist(),
                "shares": known.shares.tolist(),
                "missing": known.missing,
                "features": self.released.features[i].values.tolist() if known.column.has_levels else "normal score",
                "scored": is_scored(known.column),
            }
        return {"kind": "score model", "note": self.note, "cost": self.cost, "columns": columns}

    def __str__(self) -> str:
        arrows = how_many(len(self.dag.arrows), "arrow")
        head = f"a model of {len(self.dag.nodes)} columns and {arrows}, by regressions on scores"
        return "\n".join(line for line in (head, self.cost, self.dag.note) if line)

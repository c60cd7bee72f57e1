"""A fitted model of a table with numbers, ordinals or long lists of levels."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from dpcurate._messages import aligned, did_you_mean, how_many, shown
from dpcurate._typing import FloatArray
from dpcurate.effects.effect import Effect, place_of
from dpcurate.effects.from_features import all_numbers
from dpcurate.effects.in_dag import ADVICE_BINS
from dpcurate.effects.in_graph import Effects
from dpcurate.errors import DomainTooLarge, QueryError
from dpcurate.graphs.graph import Dag
from dpcurate.graphs.interop import pgmpy_dag
from dpcurate.learn.measure_once.constants import FeatureConstants
from dpcurate.learn.measure_once.feature_release import Products, ReleasedFeatures, buy_features, products_of
from dpcurate.models.column_draws import Drawn, draw_column, is_scored, level_chances, place_chances, score_quantile
from dpcurate.models.model import Model
from dpcurate.networks.network import stream, whole
from dpcurate.queries import Queryable
from dpcurate.schema import Numeric, Schema

NOTE = (
    "A synthetic table with numbers keeps, up to the noise, the distribution of every column and straight links of a "
    "column and its causes on the scale of normal scores (ranks). Where bounds are far wider than the numbers, noise "
    "fills the empty end and moves means. It does not keep what two causes do only together, links that rise and fall, "
    "spreads that change, nor anything that the graph leaves out; errors computed from its rows ignore the noise. No "
    "row is anybody's."
)


SIMULATED = 100_000
"""Rows that are drawn for what has no closed form."""
MOST_CELLS = 1 << 22
SMALLEST = 1e-12
"""No probability counts as smaller in a likelihood."""


@dataclass(frozen=True, eq=False)
class ColumnRegression:
    """A linear regression of a column's features on those of its parents; `rest` is the covariance that is left."""

    column: str
    features: tuple[str, ...]
    given: tuple[str, ...]
    weights: FloatArray
    rest: FloatArray

    def __str__(self) -> str:
        rows = [["", *self.features]]
        rows += [[name, *(f"{w:.3f}" for w in line)] for name, line in zip(self.given, self.weights, strict=True)]
        rows.append(["left over", *(f"{v:.3f}" for v in np.diag(self.rest))])
        return "\n".join(aligned(rows, range(1, len(rows[0]))))


@dataclass(frozen=True, eq=False)
class RegressionModel(Model):
    """Regressions on normal scores and indicators along a graph, from released answers alone: asking it is free."""

    dag: Dag
    schema: Schema
    released: ReleasedFeatures
    steps: Mapping[str, Step]
    cost: str = ""
    not_identified: str = ""
    """Why it tells no effects, where the directions of its graph cannot be read."""

    @classmethod
    def of(cls, released: ReleasedFeatures, dag: Dag, schema: Schema, cost: str = "") -> RegressionModel:
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
        drawn = self._drawn(whole("rows", rows), seed)
        return {name: drawn[name][1].cells for name in self.schema.names}

    def _drawn(self, rows: int, seed: int) -> dict[str, tuple[FloatArray, Drawn]]:
        """Of every column the mean of its features given those of its parents, and what was drawn; parents first."""
        features: dict[int, FloatArray] = {}
        columns: dict[str, tuple[FloatArray, Drawn]] = {}
        for name in self.dag.order():
            column, step = self.schema.names.index(name), self.steps[name]
            given = np.column_stack([features[p] for p in step.parents]) if step.parents else np.zeros((rows, 0))
            known, own = self.released.distributions[column], self.released.features[column]
            mean = given @ step.weights
            drawn = draw_column(known, own, mean, step.rest, stream(seed, f"cells of {name}"))
            features[column] = own.values[drawn.places]
            columns[name] = mean, drawn
        return columns

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

    def table(self, column: str) -> ColumnRegression:
        """How the column follows from its parents: coefficients of its features, and what they leave; prints itself."""
        step = self.steps[self.schema.names[self._place(column)]]
        given = [name for parent in step.parents for name in self._feature_names(parent)]
        return ColumnRegression(
            column, tuple(self._feature_names(self._place(column))), tuple(given), step.weights, step.rest
        )

    def marginal(self, columns: Sequence[str]) -> FloatArray:
        """The joint distribution of some columns, an axis for each in the order asked; from simulated rows.

        The axis of a number has the equal parts of its range that were released, and one for missing cells if they
        count as a value.
        """
        at = [self._place(column) for column in columns]
        sizes = [len(self.released.features[i].values) for i in at]
        if prod(sizes) > MOST_CELLS:
            raise DomainTooLarge(
                f"this marginal needs {prod(sizes):,} cells, more than {MOST_CELLS:,}: ask for fewer columns"
            )
        drawn = self._drawn(SIMULATED, seed=0)
        cells = np.ravel_multi_index([drawn[self.schema.names[i]][1].places for i in at], sizes)
        return np.asarray(np.bincount(cells, minlength=prod(sizes)).reshape(sizes) / SIMULATED)

    def log_likelihood(self) -> float:
        """The mean log-likelihood of a row in nats, of numbers by the part of their range; no row is read.

        It is taken over rows that are simulated from the model.
        """
        total = 0.0
        for name, (mean, drawn) in self._drawn(SIMULATED, seed=0).items():
            column = self._place(name)
            known, own = self.released.distributions[column], self.released.features[column]
            chances = place_chances(known, own, mean, self.steps[name].rest, drawn.places)
            total += float(np.log(np.maximum(chances, SMALLEST)).mean())
        return total

    def to_pgmpy(self) -> Any:
        """The graph as a pgmpy DAG; pgmpy has no place for these regressions."""
        return pgmpy_dag(self.dag, {})

    def _feature_names(self, column: int) -> list[str]:
        """A score has the column's name; other features are numbered."""
        name, size = self.schema.names[column], self.released.features[column].size
        if is_scored(self.schema.columns[column]):
            return [name, *(f"{name}: {i}" for i in range(2, size + 1))]
        return [f"{name}: {i}" for i in range(1, size + 1)]

    @property
    def file_suffix(self) -> str:
        """A model with numbers is saved as JSON."""
        return ".json"

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


# --- regressions between the features of columns, from released products of them: numbers, ordinals and long lists
# A number and an ordinal are the normal score of their place in the released distribution, a level its indicators. Each
# column is a linear function of its parents' features and independent noise. Rows were shrunk to one length before
# their products were added up, so that the products of a column are scaled back to the variance that its own
# distribution has.

LEAST_SCALE = 0.2
"""Rows are not taken to have been shrunk further than this, whatever the noise says."""


def buy_products(queryable: Queryable, before: ReleasedFeatures | None, amount: float) -> ReleasedFeatures:
    """The products of features once more, in one release; all of it where nothing was released before."""
    if before is None:
        return buy_features(queryable, amount, FeatureConstants()).answers
    more = products_of(queryable, before.features, before.clip.square, before.rows, amount)
    return replace(before, products=_merged(before.products, more))


def _merged(one: Products, other: Products) -> Products:
    """Inverse-variance means."""
    share = other.noise / (one.noise + other.noise)
    mean, products = (share * a + (1 - share) * b for a, b in ((one.mean, other.mean), (one.products, other.products)))
    return Products(one.blocks, mean, products, one.noise * share)


@dataclass(frozen=True, slots=True)
class Step:
    """How the features of a column follow from those of its parents."""

    parents: tuple[int, ...]
    weights: FloatArray
    """(features of the parents, features of the column)."""
    rest: FloatArray
    """The covariance of what parents do not explain."""


@dataclass(frozen=True, slots=True)
class Covariance:
    """Of the features of all columns, as their distributions have it."""

    blocks: tuple[tuple[int, int], ...]
    matrix: FloatArray
    noise: float
    """Noise variance of an entry."""

    @classmethod
    def of(cls, released: ReleasedFeatures) -> Covariance:
        """Products about the means, each column scaled to its own variance; none of the directions is negative."""
        products, features = released.products, released.features
        matrix = products.products - np.outer(products.mean, products.mean)
        scale = np.ones(len(matrix))
        for (a, b), one in zip(products.blocks, features, strict=True):
            seen = float(np.trace(matrix[a:b, a:b])) / max(one.length, 1e-9)
            scale[a:b] = 1 / np.sqrt(min(max(seen, LEAST_SCALE), 1 / LEAST_SCALE))
        matrix = matrix * np.outer(scale, scale)
        for (a, b), one in zip(products.blocks, features, strict=True):
            matrix[a:b, a:b] = one.covariance
        noise = products.noise * float(np.mean(scale)) ** 4
        return cls(products.blocks, _without_negative(matrix), noise)

    def places(self, columns: Sequence[int]) -> list[int]:
        """Where the features of these columns stand."""
        return [i for c in columns for i in range(*self.blocks[c])]

    def step(self, column: int, parents: Sequence[int]) -> Step:
        """The regression of a column on others; noise counts as variance that they do not have."""
        own, given = self.places([column]), self.places(parents)
        among = self.matrix[np.ix_(given, given)] + np.sqrt(self.noise) * np.eye(len(given))
        between = self.matrix[np.ix_(given, own)]
        weights = np.linalg.solve(among, between) if given else np.zeros((0, len(own)))
        rest = self.matrix[np.ix_(own, own)] - weights.T @ self.matrix[np.ix_(given, given)] @ weights
        return Step(tuple(parents), weights, _without_negative(rest))


def _without_negative(matrix: FloatArray) -> FloatArray:
    values, axes = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.asarray((axes * np.maximum(values, 0.0)) @ axes.T)

"""Random worlds of numbers, ordinals and categories together, as the tables that people have.

Every column speaks to its children through a signal of variance about 1: a number through its latent value, an
ordinal through its level's place, a category through an effect of each level drawn for each child. A number is the
sum of its parents' effects and Gaussian noise, shown through a monotone margin; an ordinal is such a sum cut into
levels; a category takes the level of the largest utility (a sum of effects and Gumbel noise).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, get_args

import numpy as np
from scipy.special import ndtr, ndtri

from dpcurate._typing import FloatArray
from dpcurate.errors import QueryError
from dpcurate.graphs.graph import Dag
from dpcurate.networks.interventions import SettableWorld, set_to
from dpcurate.networks.network import stream, streams, whole
from dpcurate.schema import Categorical, Column, Numeric, Ordinal, Schema

Range = tuple[float, float]
MarginName = Literal["plain", "skewed", "cubic", "heavy", "zeros"]

FAR = 5.0
"""Standardised latent values are shown as if they ended here."""
UTILITY = 1.3
"""Gumbel noise has 1.3 times the spread of Gaussian noise, so utilities are stretched by as much."""

MARGINS: Mapping[str, Callable[[FloatArray], FloatArray]] = MappingProxyType(
    {
        "plain": lambda x: x,
        "skewed": lambda x: np.exp(x),
        "cubic": lambda x: x**3,
        "heavy": lambda x: np.sinh(1.5 * x),
        "zeros": lambda x: np.maximum(np.floor(np.exp(x) - 1), 0.0),
    }
)
"""Monotone: as it is, log-normal (incomes), cubes, heavy tails (costs), counts with many zeros (visits)."""


LATENT: Mapping[str, Callable[[FloatArray], FloatArray]] = MappingProxyType(
    {
        "plain": lambda x: x,
        "skewed": lambda x: np.log(np.maximum(x, math.exp(-FAR))),
        "cubic": lambda x: np.cbrt(x),
        "heavy": lambda x: np.arcsinh(x) / 1.5,
    }
)
"""The latent value behind one that is shown, where there is one."""


@dataclass(frozen=True, slots=True)
class MixedColumn:
    """One column of a mixed world.

    `levels` is 0 for a number. `effects` holds for each parent what its signal adds: one weight for numbers and
    ordinals, for a category one row for each of its levels; a category as child has one value for each of its levels.
    `products` multiplies the signals of two parents.
    """

    kind: Literal["number", "ordinal", "category"]
    levels: int
    margin: MarginName
    effects: Mapping[str, FloatArray]
    products: Mapping[tuple[str, str], float]


@dataclass(frozen=True, slots=True, eq=False)
class MixedWorld(SettableWorld):
    """A DAG and a MixedColumn for each node."""

    dag: Dag
    columns: Mapping[str, MixedColumn]

    @property
    def schema(self) -> Schema:
        """Numbers between what the margin makes of a latent value FAR out on either side."""
        return Schema(tuple(self._declared(name) for name in self.dag.nodes))

    def _declared(self, name: str) -> Column:
        column = self.columns[name]
        if column.kind == "number":
            low, high = (float(MARGINS[column.margin](np.array(x))) for x in (-FAR, FAR))
            return Numeric(name, low, high)
        levels = tuple(str(i) for i in range(column.levels))
        return Ordinal(name, levels) if column.kind == "ordinal" else Categorical(name, levels)

    def sample(self, rows: int, *, seed: int, do: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Draw `rows` rows, one array per column; columns in `do` are set."""
        count = whole("rows", rows)
        sources = dict(zip(self.dag.nodes, streams(seed, "mixed rows", len(self.dag.nodes)), strict=True))
        signals: dict[str, Any] = {}
        shown: dict[str, Any] = {}
        for node in self.dag.order():
            signals[node], shown[node] = self._drawn(node, signals, sources[node], count)
            if do is not None and node in do:
                signals[node], shown[node] = self._set(node, do[node], count)
        return {node: shown[node] for node in self.dag.nodes}

    def expected(self, outcome: str, rows: int, *, seed: int, do: Mapping[str, Any]) -> FloatArray:
        """The mean of a number, or the chances of all levels, if columns are set.

        Averaged over rows of what leads to it; in each row it is exact, given its parents.
        """
        count = whole("rows", rows)
        sources = dict(zip(self.dag.nodes, streams(seed, "mixed rows", len(self.dag.nodes)), strict=True))
        needed = self.dag.upstream([outcome], do)
        signals: dict[str, Any] = {}
        for node in (x for x in self.dag.order() if x in needed and x != outcome):
            is_set = node in do
            drawn = self._set(node, do[node], count) if is_set else self._drawn(node, signals, sources[node], count)
            signals[node] = drawn[0]
        return np.asarray(self._given(outcome, self._effects(outcome, signals, count)).mean(axis=0))

    def _given(self, node: str, total: FloatArray) -> FloatArray:
        """The mean of a number or the chances of levels in rows where parents add so much."""
        column, spread = self.columns[node], math.sqrt(1 + self._explained(node))
        if column.kind == "category":
            weights = np.exp(UTILITY * (total - total.max(axis=1, keepdims=True)))
            return np.asarray(weights / weights.sum(axis=1, keepdims=True))
        if column.kind == "ordinal":
            cuts = spread * ndtri(np.arange(column.levels + 1) / column.levels)
            return np.diff(ndtr(cuts - total), axis=1)
        noise, weights = np.polynomial.hermite_e.hermegauss(21)
        shown = MARGINS[column.margin](np.clip((total + noise) / spread, -FAR, FAR))
        return np.asarray(shown @ weights[:, None] / weights.sum())

    def _drawn(self, node: str, signals: Mapping[str, Any], source: np.random.Generator, count: int) -> tuple[Any, Any]:
        """A column's signal for its children (levels themselves for a category), and what a table shows of it."""
        column = self.columns[node]
        total = self._effects(node, signals, count)
        if column.kind == "category":
            utility = UTILITY * total + source.gumbel(size=(count, column.levels))
            level = utility.argmax(axis=1)
            return level, level.astype(str)
        latent = total[:, 0] + source.standard_normal(count)
        latent = latent / math.sqrt(1 + self._explained(node))
        if column.kind == "number":
            latent = np.clip(latent, -FAR, FAR)
            return latent, MARGINS[column.margin](latent)
        level = np.searchsorted(ndtri(np.arange(1, column.levels) / column.levels), latent)
        return _signal(level, column.levels), level.astype(str)

    def _set(self, node: str, value: Any, count: int) -> tuple[Any, Any]:
        """The same of a column that is set to one value."""
        column = self.columns[node]
        if column.kind == "number":
            if column.margin not in LATENT:
                raise QueryError(
                    f"{node!r} shows the same value for many latent ones, so it cannot be set to {value!r}"
                )
            latent = np.clip(LATENT[column.margin](set_to(value, count)), -FAR, FAR)
            return latent, MARGINS[column.margin](latent)
        levels = [str(i) for i in range(column.levels)]
        if str(value) not in levels:
            raise QueryError(f"{node!r} has no level {value!r} to be set to; its levels are {', '.join(levels)}")
        level = np.full(count, int(value))
        return (level if column.kind == "category" else _signal(level, column.levels)), level.astype(str)

    def _effects(self, node: str, signals: Mapping[str, Any], count: int) -> FloatArray:
        column = self.columns[node]
        total = np.zeros((count, column.levels if column.kind == "category" else 1))
        for parent, effect in column.effects.items():
            levelled = self.columns[parent].kind == "category"
            total += effect[signals[parent]] if levelled else signals[parent][:, None] * effect
        for (one, two), weight in column.products.items():
            total[:, 0] += weight * signals[one] * signals[two]
        return total

    def _explained(self, node: str) -> float:
        """About the variance that its parents add: signals have variance 1, and their covariances are left out."""
        column = self.columns[node]
        effects = sum(float(np.mean(np.square(effect))) for effect in column.effects.values())
        return effects + sum(weight**2 for weight in column.products.values())


def _signal(level: Any, levels: int) -> Any:
    """What an ordinal says to its children: its level's place, centred and of variance 1 where levels are even."""
    return (level - (levels - 1) / 2) / math.sqrt((levels**2 - 1) / 12)


def random_mixed(
    dag: Dag,
    *,
    ordinals: float = 0.25,
    categories: float = 0.25,
    levels: tuple[int, int] = (2, 6),
    weights: Range = (0.3, 1.0),
    margins: tuple[MarginName, ...] = ("plain", "skewed"),
    products: float = 0.0,
    seed: int,
) -> MixedWorld:
    """Shares of columns by kind (the rest are numbers), level counts, sizes of effects, and margins to draw from.

    `products` is the share of columns with two parents or more, all of them numbers or ordinals, to which the product
    of two adds as well: a link that is not additive.
    """
    _check(ordinals, categories, levels, margins)
    source = stream(seed, "random mixed")
    size = len(dag.nodes)
    counts = round(ordinals * size), round(categories * size)
    kinds = ["ordinal"] * counts[0] + ["category"] * counts[1] + ["number"] * (size - sum(counts))
    of = dict(zip(dag.nodes, [kinds[i] for i in source.permutation(size)], strict=True))
    many = {n: int(source.integers(max(levels[0], 3 if of[n] == "ordinal" else 2), levels[1] + 1)) for n in dag.nodes}
    many = {n: 0 if of[n] == "number" else many[n] for n in dag.nodes}
    return MixedWorld(dag, {n: _column(dag, n, of, many, weights, margins, products, source) for n in dag.nodes})


def _check(ordinals: float, categories: float, levels: tuple[int, int], margins: tuple[str, ...]) -> None:
    if not (0 <= ordinals <= 1 and 0 <= categories <= 1 and ordinals + categories <= 1):
        raise QueryError(f"ordinals and categories are shares of columns, got {ordinals!r} and {categories!r}")
    if levels[1] < 3 or not 2 <= levels[0] <= levels[1]:
        raise QueryError(f"levels are a rising range from 2, to 3 at least, got {levels!r}")
    unknown = [m for m in margins if m not in get_args(MarginName)]
    if unknown or not margins:
        raise QueryError(f"margins are some of {', '.join(get_args(MarginName))}, got {margins!r}")


def _column(
    dag: Dag,
    node: str,
    kinds: Mapping[str, Any],
    levels: Mapping[str, int],
    weights: Range,
    margins: tuple[MarginName, ...],
    products: float,
    source: np.random.Generator,
) -> MixedColumn:
    margin = margins[int(source.integers(len(margins)))] if kinds[node] == "number" else "plain"
    parents = dag.parents(node)
    effects = {
        p: _effect(levels[p] * (kinds[p] == "category"), levels[node] * (kinds[node] == "category"), weights, source)
        for p in parents
    }
    spoken = [p for p in parents if kinds[p] != "category"]
    bent = kinds[node] != "category" and len(spoken) >= 2 and source.random() < products
    weight = float(source.uniform(*weights)) if bent else 0.0
    return MixedColumn(kinds[node], levels[node], margin, effects, {(spoken[0], spoken[1]): weight} if bent else {})


def _effect(of_parent: int, of_child: int, weights: Range, source: np.random.Generator) -> FloatArray:
    """One weight in size, spread over the levels of a category so that they differ by as much as a signal would."""
    weight = float(source.uniform(*weights)) * (1 if source.random() < 0.5 else -1)
    if not of_parent and not of_child:
        return np.array([weight])
    drawn = source.standard_normal((max(of_parent, 1), max(of_child, 1)))
    for axis, size in enumerate((of_parent, of_child)):
        drawn = drawn - drawn.mean(axis=axis, keepdims=True) if size else drawn
    drawn = weight * drawn / math.sqrt(float(np.mean(drawn**2)))
    return drawn if of_parent else drawn[0]

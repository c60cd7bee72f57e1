"""A fitted model of a table of levels: what it says, free of charge and without a look at the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from dpcurate._messages import aligned, how_many
from dpcurate._typing import FloatArray
from dpcurate.effects.effect import Effect, EffectTable, covariance_of, place_of
from dpcurate.errors import QueryError
from dpcurate.graphs.graph import Dag
from dpcurate.graphs.interop import pgmpy_network
from dpcurate.models.family import FittedFamily
from dpcurate.models.model import Model
from dpcurate.networks.library import write as write_bif
from dpcurate.networks.network import Codes, Factor, Network, joint, stream
from dpcurate.schema import Numeric, Schema


@dataclass(frozen=True, eq=False)
class TableModel(Model):
    """A Bayesian network with errors, from released answers alone: every question to it is free.

    `network` has the graph and the conditional tables, `families` their errors, `rows` is the released row count.
    """

    network: Network
    families: Mapping[str, FittedFamily]
    schema: Schema
    rows: float
    dag: Dag
    cost: str = ""
    """What its own release cost, in words."""
    not_identified: str = ""
    """Why it tells no effects, where the directions of its graph cannot be read."""

    @property
    def note(self) -> str:
        """What a synthetic table is good for, and what not."""
        return NOTE

    def table(self, column: str) -> ConditionalTable:
        """The probabilities of a column's levels given its parents, with standard errors; it prints itself."""
        v, fitted = self.network[column], self.families[self.network[column].name]
        shares = self.network.marginal(v.parents).ravel() if v.parents else np.ones(1)
        given = combinations_of([self.network[p].levels for p in v.parents])
        return ConditionalTable(column, v.levels, v.parents, given, fitted.table, fitted.errors, shares)

    def marginal(self, columns: Sequence[str]) -> FloatArray:
        """The joint distribution of some columns, an axis for each in the order asked."""
        return self.network.marginal(columns)

    def predict(self, given: Mapping[str, str], outcome: str) -> dict[str, float]:
        """The probability of each level of a column in rows where others have these levels."""
        levels = self.network[outcome].levels
        if outcome in given:
            raise QueryError(f"{outcome!r} is given and asked for: leave it out of one of the two")
        places = {x: place_of(str(level), self.network[x].levels, repr(x)) for x, level in given.items()}
        chances = distribution_given(self.network, places, outcome)
        total = float(chances.sum())
        if total <= 0:
            raise QueryError(f"the model has no rows with {dict(given)!r}, so it cannot tell: give fewer columns")
        return dict(zip(levels, (chances / total).tolist(), strict=True))

    def log_likelihood(self) -> float:
        """The mean log-likelihood of a row, as the released tables of the families have it; no row is read."""
        total = 0.0
        for v in self.network.variables:
            shares = self.network.marginal(v.parents).ravel() if v.parents else np.ones(1)
            p = v.probabilities
            total += float(shares @ (p * np.log(np.where(p > 0, p, 1.0))).sum(axis=1))
        return total

    def effect(
        self,
        cause: str,
        outcome: str,
        *,
        to: str | None = None,
        instead_of: str | None = None,
        level: str | None = None,
    ) -> Effect:
        """What setting a column does to another, given that the graph is right: exact in the fitted network.

        Its errors hold sampling and privacy noise. `to`, `instead_of` and `level` choose what is compared.
        """
        one, other = self.network[cause], self.network[outcome]
        if cause == outcome:
            raise QueryError(f"an effect is that of one column on another, got {cause!r} twice")
        if self.not_identified:
            return Effect.unknown(cause, outcome, "not identified", self.not_identified)
        if not self.dag.leads(cause, outcome):
            return Effect.none(cause, outcome)
        drawn = {x: family.draws for x, family in self.families.items()}
        values, might_be = (if_set(factors(self.network, tables), self.dag, cause, outcome) for tables in (None, drawn))
        apart = might_be.mean(axis=0) - values  # where tables end at zero draws lie to one side
        spread = covariance_of(might_be) + np.einsum("ij,kj->jik", apart, apart)
        table = EffectTable(one.levels, other.levels, values, spread)
        return Effect.of_levels(
            cause, outcome, table, adjusted_for=self.dag.parents(cause), to=to, instead_of=instead_of, level=level
        )

    def sample(self, rows: int, *, seed: int) -> dict[str, Any]:
        """A synthetic table of the schema, a column of cells by name (`pandas.DataFrame(...)` takes it); see `note`."""
        return cells_of(self.schema, self.network.codes(rows, seed=seed), seed)

    def to_pgmpy(self) -> Any:
        """The graph and its tables as a pgmpy DiscreteBayesianNetwork."""
        levels = {v.name: v.levels for v in self.network.variables}
        sizes = {x: [len(levels[p]) for p in (*self.dag.parents(x), x)] for x in self.dag.nodes}
        tables = {x: self.network[x].probabilities.reshape(sizes[x]) for x in self.dag.nodes}
        return pgmpy_network(self.dag, levels, tables)

    @property
    def file_suffix(self) -> str:
        """A model of tables is saved as BIF, which bnlearn, pgmpy and `networks.load` read."""
        return ".bif"

    def file_text(self) -> str:
        """What `save` writes."""
        return write_bif(self.network, note=f"{self}\n{self.note}")

    def __str__(self) -> str:
        columns, arrows = len(self.dag.nodes), how_many(len(self.dag.arrows), "arrow")
        head = f"a model of {columns} columns and {arrows}, {self.network.parameters} free probabilities"
        lines = [head, self.cost, f"log-likelihood of a row: {self.log_likelihood():.4g}", self.dag.note]
        return "\n".join(line for line in lines if line)


# --- questions to a fitted network, and to many networks that fit as well: evidence, interventions, and their errors

DRAW = "\0draw"
"""The axis of draws; no column can be called so."""


def factors(network: Network, tables: Mapping[str, FloatArray] | None = None) -> dict[str, Factor]:
    """The factor of every column; of `tables` (draws, combinations, levels), where given, with an axis of draws."""
    sizes = {v.name: len(v.levels) for v in network.variables}
    made: dict[str, Factor] = {}
    for v in network.variables:
        names, shape = (*v.parents, v.name), [sizes[x] for x in (*v.parents, v.name)]
        if tables is None:
            made[v.name] = names, v.probabilities.reshape(shape)
        elif v.name in tables:
            made[v.name] = (DRAW, *names), tables[v.name].reshape(-1, *shape)
    return made


def distribution_given(network: Network, evidence: Mapping[str, int], outcome: str) -> FloatArray:
    """The distribution of a column in rows of this evidence, by places of levels."""
    needed = network.dag.upstream([outcome, *evidence])
    some = [_at(f, evidence) for name, f in factors(network).items() if name in needed]
    return joint(some, (outcome,))


def _at(factor: Factor, evidence: Mapping[str, int]) -> Factor:
    names, table = factor
    index = tuple(evidence.get(name, slice(None)) for name in names)
    return tuple(name for name in names if name not in evidence), np.asarray(table[index])


def if_set(made: Mapping[str, Factor], dag: Dag, cause: str, outcome: str) -> FloatArray:
    """P(outcome | do(cause)), a row for each level of the cause; with draws a table for each.

    A column that is set has no causes: the product of all factors but its own, summed over the other columns.
    """
    needed = dag.upstream([outcome], [cause]) - {cause}
    some = [made[name] for name in dag.nodes if name in needed]
    drawn = (DRAW,) if any(DRAW in names for names, _ in some) else ()
    return joint(some, (*drawn, cause, outcome))


# --- from places of levels to the cells of a table -----------------------------------------------------

NOTE = (
    "A synthetic table is good for writing and testing code, for teaching, and for tables of a column or two and of a "
    "column with its causes, which it keeps up to the noise. It keeps nothing that the graph leaves out, rare "
    "combinations are the model's guess, and tests and errors computed from its rows ignore both the noise and that "
    "rows can be drawn without end: take those of the model instead. No row is anybody's."
)


def cells_of(schema: Schema, codes: Codes, seed: int) -> dict[str, Any]:
    """Names of levels; a number with bins is drawn evenly within its bin."""
    return {c.name: _cells(c, codes[:, i], seed) for i, c in enumerate(schema.columns)}


def _cells(column: Any, codes: Any, seed: int) -> Any:
    if not isinstance(column, Numeric):
        return np.array(column.levels, dtype=object).take(codes)
    cuts = np.array([column.low, *column.edges, column.high])
    within = stream(seed, f"cells of {column.name}").random(len(codes))
    return np.minimum(cuts[codes] + within * (cuts[1:] - cuts[:-1])[codes], column.high)


# --- a conditional table with its errors, as people read one -------------------------------------------

MOST_ROWS = 40
"""Rows of a table that are printed."""
GUESS = 0.29
"""The error of a probability of which nothing is known: the spread of even numbers between 0 and 1."""


@dataclass(frozen=True, slots=True, eq=False)
class ConditionalTable:
    """P(column = level) in each combination of its parents' levels, with standard errors.

    `values` and `errors` have a row for every combination, the last parent changing fastest, and a column for every
    level. `shares` says how often each combination occurs in the model.
    """

    column: str
    levels: tuple[str, ...]
    parents: tuple[str, ...]
    combinations: tuple[tuple[str, ...], ...]
    values: FloatArray
    errors: FloatArray
    shares: FloatArray

    def __str__(self) -> str:
        heads = [
            *self.parents,
            *(f"{self.column}={level}" for level in self.levels),
            *(["of rows"] * bool(self.parents)),
        ]
        rows = [
            [*labels, *(_cell(p, e) for p, e in zip(*row, strict=True)), *([f"{share:.1%}"] * bool(labels))]
            for labels, row, share in zip(
                self.combinations, zip(self.values, self.errors, strict=True), self.shares, strict=True
            )
        ]
        left = len(rows) - MOST_ROWS
        lines = aligned([heads, *rows[:MOST_ROWS]])
        return "\n".join(lines + ([f"and {left} more rows"] if left > 0 else []))


def _cell(probability: float, error: float) -> str:
    """With its error, or that it is no more than a guess: so few rows have these parents."""
    return f"{probability:.3f} ± {error:.3f}" if error < GUESS else f"{probability:.3f}, not seen"


def combinations_of(levels: list[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    """Every combination of some columns' levels, the last column changing fastest."""
    return tuple(product(*levels))

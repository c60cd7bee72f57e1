"""A fitted model of a table of levels: what it says, free of charge and without a look at the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpcurate._files import save_text
from dpcurate._messages import how_many
from dpcurate._typing import FloatArray
from dpcurate.effects.effect import Effect, covariance_of
from dpcurate.effects.effect_table import EffectTable, place_of
from dpcurate.errors import QueryError
from dpcurate.graphs.graph import Dag
from dpcurate.graphs.interop import pgmpy_network
from dpcurate.models import draws
from dpcurate.models.family import FittedFamily
from dpcurate.models.synthetic import NOTE, cells_of
from dpcurate.models.tables import ConditionalTable, combinations_of
from dpcurate.networks.library import write as write_bif
from dpcurate.networks.network import Network
from dpcurate.schema import Schema


@dataclass(frozen=True, slots=True, eq=False)
class Model:
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
        chances = draws.given(self.network, places, outcome)
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
        if not draws.leads(self.dag, cause, outcome):
            return Effect.none(cause, outcome)
        drawn = {x: family.draws for x, family in self.families.items()}
        values, might_be = (
            draws.if_set(draws.factors(self.network, tables), self.dag, cause, outcome) for tables in (None, drawn)
        )
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

    def save(self, path: str | Path) -> Path:
        """Write the network as BIF, which bnlearn, pgmpy and `networks.load` read."""
        target = Path(path)
        if target.suffix != ".bif":
            raise QueryError(
                f"a model is saved as .bif, not {target.suffix or 'without a suffix'!r}: name it model.bif"
            )
        save_text(target, self.file_text())
        return target

    def file_text(self) -> str:
        """What `save` writes."""
        return write_bif(self.network, note=f"{self}\n{self.note}")

    def __str__(self) -> str:
        columns, arrows = len(self.dag.nodes), how_many(len(self.dag.arrows), "arrow")
        head = f"a model of {columns} columns and {arrows}, {self.network.parameters} free probabilities"
        lines = [head, self.cost, f"log-likelihood of a row: {self.log_likelihood():.4g}", self.dag.note]
        return "\n".join(line for line in lines if line)

"""A table with its schema and the truth about every pair of its columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpcurate._typing import BoolArray
from dpcurate.graphs.graph import Cpdag, Dag, Pag
from dpcurate.networks.interventions import ancestors, true_pag
from dpcurate.schema import Schema

Table = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class World:
    """Rows of a known world; matrices are in the order of the schema's columns.

    `adjacent` is the truth about links: adjacency in the DAG, or in the ancestral graph of the visible columns where
    columns are hidden or rows selected. `cause_of[a, b]` says that a causes b, directly or not. `graph` is what the
    best method could find: the CPDAG, or the PAG where the DAG does not hold all that is needed; None where neither
    exists (cycles).
    """

    family: str
    seed: int
    table: Table
    schema: Schema
    adjacent: BoolArray
    cause_of: BoolArray
    graph: Cpdag | Pag | None
    dag: Dag | None = None
    """The whole DAG, hidden columns included."""
    joined: BoolArray | None = None
    """Where a table lacks what its links rest on: pairs that no set of its columns separates, linked or not."""

    @classmethod
    def of(
        cls,
        family: str,
        seed: int,
        table: Table,
        schema: Schema,
        dag: Dag,
        *,
        hidden: Iterable[str] = (),
        selected: Iterable[str] = (),
    ) -> World:
        """From the DAG that made the rows. `table` and `schema` may hold the hidden columns: they are taken out."""
        unseen, chosen = set(hidden), tuple(selected)
        columns = tuple(c for c in schema.columns if c.name not in unseen and c.name not in chosen)
        names = tuple(c.name for c in columns)
        graph = true_pag(dag, unseen, chosen) if unseen or chosen else dag.cpdag()
        above = ancestors(dag)
        return cls(
            family=family,
            seed=seed,
            table={name: table[name] for name in names},
            schema=Schema(columns),
            adjacent=np.array([[frozenset((a, b)) in graph.edges for b in names] for a in names]),
            cause_of=np.array([[a in above[b] for b in names] for a in names]),
            graph=graph,
            dag=dag,
        )

    @property
    def columns(self) -> tuple[str, ...]:
        return self.schema.names

    @property
    def inseparable(self) -> BoolArray:
        """Pairs that no set of columns of the table separates."""
        return self.adjacent if self.joined is None else self.joined

    @property
    def rows(self) -> int:
        return len(next(iter(self.table.values())))

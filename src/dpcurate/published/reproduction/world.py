"""The data of the paper's section IV: six networks, one table of 100,000 rows each, and what counts as true."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from dpcurate import Budget, Curator, networks
from dpcurate.graphs.graph import Cpdag, Dag
from dpcurate.published.claims import PublishedLearned
from dpcurate.published.constraint import PublishedPC, reach
from dpcurate.schema import Categorical, Schema

ROWS = 100_000
THRESHOLD = 0.05
Arcs = frozenset[tuple[str, str]]

AUTHORS_ARCS = {
    "cancer": "0-2 1-2 2-3 4-2",
    "earthquake": "0-2 1-2 2-3 2-4",
    "survey": "2-3 2-4 4-2 4-5 5-3 5-4",
    "asia": "0-1 1-0 1-5 2-3 2-4 3-2 3-5 4-2 4-7 7-4",
    "sachs": "0-1 1-0 1-3 1-7 2-8 3-1 3-7 3-8 3-10 4-7 4-10 5-6 5-9 6-5 6-9 7-1 7-3 7-10 8-2 8-3 8-7 9-5 9-6",
    "child": "0-18 1-7 2-7 2-8 2-10 2-16 3-9 3-17 4-10 4-17 4-18 5-12 6-14 8-2 8-12 9-3 11-13 11-14 11-15 11-16 "
    "11-18 12-8 13-11 13-18 13-19 14-6 14-11 15-1 15-11 16-1 16-2 16-11 17-3 17-4 17-5 19-5 19-13",
}
"""The arcs that CURATE's script compares with, by column number; an undirected edge is two arcs."""


@dataclass(frozen=True)
class Coded:
    """A table of level numbers and its schema."""

    table: dict[str, Any]
    schema: Schema

    def curator(self, budget: Budget, seed: int) -> Curator:
        """A simulated curator: whoever knows the seed can undo its noise."""
        return Curator(self.table, self.schema, budget=budget, allow_unproved=True, insecure_seed=seed)


@dataclass(frozen=True)
class World:
    """A network, its table in two codings and its three truths.

    `alphabetical` numbers the levels by the order of their names, as the authors' code does (pandas
    categories); it matters to Kendall's tau of columns with three or more levels. `natural` keeps the
    network's order.
    """

    name: str
    rows: int

    @cached_property
    def network(self) -> networks.Network:
        return networks.load(self.name)

    @cached_property
    def dag(self) -> Dag:
        return self.network.dag

    @cached_property
    def _table(self) -> Any:
        return self.network.sample(self.rows, seed=1)

    def _coded(self, ordered: bool) -> Coded:
        table, columns = {}, []
        for column in self.network.schema.columns:
            assert isinstance(column, Categorical)
            levels = sorted(column.levels) if ordered else list(column.levels)
            place = {level: i for i, level in enumerate(levels)}
            table[column.name] = np.array([place[v] for v in self._table[column.name]], dtype=np.uint8)
            columns.append(Categorical(column.name, tuple(map(str, range(len(levels))))))
        return Coded(table, Schema(tuple(columns), rows=self.rows))

    @cached_property
    def alphabetical(self) -> Coded:
        return self._coded(ordered=True)

    @cached_property
    def natural(self) -> Coded:
        return self._coded(ordered=False)

    def kendall_pc(self) -> PublishedPC:
        """Non-private PC as published: Kendall's p, 0.05, the sequential loop."""
        return PublishedPC(alpha=THRESHOLD, max_order=reach(self.rows, len(self.dag.nodes)))

    @cached_property
    def pc_run(self) -> PublishedLearned:
        """That run."""
        return self.kendall_pc().fit(self.alphabetical.curator(Budget.unlimited(), 1))

    @property
    def pc(self) -> Arcs:
        """The arcs that the authors' code draws from it: what the published F1 compares with."""
        return self.pc_run.arcs

    @cached_property
    def authors(self) -> Arcs:
        nodes = self.dag.nodes
        pairs = (arc.split("-") for arc in AUTHORS_ARCS[self.name].split())
        return frozenset((nodes[int(a)], nodes[int(b)]) for a, b in pairs)


def arcs_of(graph: Cpdag) -> Arcs:
    """An undirected edge is two arcs."""
    return frozenset(graph.arrows | {arc for a, b in graph.lines for arc in ((a, b), (b, a))})


@lru_cache(maxsize=8)
def world(name: str, rows: int = ROWS) -> World:
    return World(name, rows)

"""Tables whose true graph is known: networks by name or file, and families of random worlds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, Protocol

from dpcurate import networks
from dpcurate._messages import shown
from dpcurate.benchmark import added_files
from dpcurate.errors import FormatError, QueryError
from dpcurate.graphs.graph import Cpdag, Dag
from dpcurate.graphs.pag import Pag
from dpcurate.schema import Schema

FIRST_SEED = 10_000
"""Of the tables of networks; a table's noise has the small seed, so the two share none."""
COLUMNS, DEGREE = 10, 2.0


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A table, its public description and its true graph.

    Of a DAG the Markov class is compared. With a PAG only adjacencies are, unless the method returns one too.
    """

    table: Any
    schema: Schema
    graph: Dag | Cpdag | Pag


class TableOfTruth(Protocol):
    """What a world has to return: a `Case`, or anything else with these three."""

    @property
    def table(self) -> Any:
        """Columns of cells."""

    @property
    def schema(self) -> Schema:
        """The public facts."""

    @property
    def graph(self) -> Dag | Cpdag | Pag | None:
        """The truth; None where no graph describes it."""


World = Callable[[int, int], TableOfTruth]
"""From a seed and a number of rows to a table; equal seeds give equal tables."""


def levels(seed: int, rows: int) -> Case:
    """Columns of 2 to 4 levels, each row of their tables from a Dirichlet distribution."""
    return _drawn(networks.random_network(_dag(seed), levels=(2, 4), seed=seed), seed, rows)


def linear(seed: int, rows: int) -> Case:
    """Linear Gaussian columns of equal variance, so that variances do not tell the order."""
    return _drawn(networks.random_linear(_dag(seed), seed=seed).standardised(), seed, rows)


def mixed(seed: int, rows: int) -> Case:
    """Numbers, skewed or not, ordinals and categories."""
    return _drawn(networks.random_mixed(_dag(seed), seed=seed), seed, rows)


FAMILIES: dict[str, World] = {"levels": levels, "linear": linear, "mixed": mixed}
"""Random worlds of COLUMNS columns, a new one for every seed."""


def find(name: str) -> World:
    """The world of a name: a family, a network, a BIF file, or FILE:NAME, a function of one's own."""
    if name in FAMILIES:
        return FAMILIES[name]
    if added_files.is_file(name):
        made: World = added_files.named(name)
        if not callable(made):
            raise QueryError(f"a world is a function of a seed and a number of rows, and {shown(name)} is none")
        return made
    _network(name)  # refuses what is none
    return partial(_of_network, name)


def title(name: str) -> str:
    """A world's name in a table."""
    if added_files.is_file(name):
        return added_files.split(name)[1]
    return name.replace("\\", "/").rpartition("/")[2].partition(".")[0]


def _of_network(name: str, seed: int, rows: int) -> Case:
    return _drawn(_network(name), FIRST_SEED + seed, rows)


@lru_cache(maxsize=8)
def _network(name: str) -> networks.Network:
    try:
        return networks.load(name)
    except FormatError as problem:
        raise QueryError(f"{problem}; or a family of random worlds: {', '.join(FAMILIES)}") from None


def _dag(seed: int) -> Dag:
    return networks.random_dag(COLUMNS, degree=DEGREE, seed=seed)


def _drawn(world: Any, seed: int, rows: int) -> Case:
    return Case(world.sample(rows, seed=seed), replace(world.schema, rows=rows), world.dag)

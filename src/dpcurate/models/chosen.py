"""The graph of a model: one DAG of what was found, its families small enough for tables."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING

from dpcurate.errors import FormatError, QueryError
from dpcurate.graphs.formats.bif_grammar import quote
from dpcurate.graphs.graph import Dag
from dpcurate.result.threshold import BEST_F1, DOUBTFUL
from dpcurate.schema import Schema

if TYPE_CHECKING:
    from dpcurate.result.discovery import Discovery

LIKELY = 0.5
MOST_LEVELS = 32
"""Beyond this a column's levels are measured by features, like numbers."""
MOST_CELLS = 1024
"""Cells of a column's table with its parents: beyond this most would be noise, and solving for them takes long."""


def graph_of(found: Discovery) -> Dag:
    """The DAG of the highest expected F1, or of what the method found; the least sure parents of large tables go."""
    dag = (found.at(BEST_F1) if found.learned.linked else found).to_dag()
    sure = {arrow: found.confidence.get(frozenset(arrow), 1.0) for arrow in dag.arrows}
    if sure and max(sure.values()) < LIKELY:  # all is noise: the highest expected F1 has nearly every edge
        dag = Dag(dag.nodes, frozenset(arrow for arrow, p in sure.items() if p >= DOUBTFUL), dag.note)
    return _lean(dag, found.schema, lambda a, b: sure[a, b]) if has_tables(found.schema) else dag


def has_tables(schema: Schema) -> bool:
    """Whether every column has levels, and few enough for tables of some columns together."""
    return all(c.has_levels and c.size <= MOST_LEVELS for c in schema.columns)


def file_name(schema: Schema) -> str:
    """The name of the file that holds a model of such a table.

    Raises:
        QueryError: a column or a level has a name that the file cannot hold.
    """
    if not has_tables(schema):
        return "model.json"
    for column in schema.columns:
        for name in (column.name, *column.levels):
            try:
                quote(name)
            except FormatError as problem:
                raise QueryError(f"{problem}; rename it, or use discover(..., quantify=...) in Python") from None
    return "model.bif"


def checked(dag: Dag, schema: Schema) -> Dag:
    """A DAG that someone gave, refused where it does not fit."""
    if not isinstance(dag, Dag):
        raise QueryError(f"dag is a Dag, such as found.to_dag(), got {type(dag).__name__}; nothing was read")
    if set(dag.nodes) != set(schema.names):
        raise QueryError("the graph has other columns than the schema: give a DAG of all of them, and of no others")
    large = [x for x in dag.nodes if has_tables(schema) and _cells(dag.parents(x), x, schema) > MOST_CELLS]
    if large:
        cells = _cells(dag.parents(large[0]), large[0], schema)
        raise QueryError(
            f"the table of {large[0]!r} with its {len(dag.parents(large[0]))} parents has {cells:,} cells, more than "
            f"{MOST_CELLS:,}: leave out parents, or group levels in the schema"
        )
    return dag


def _lean(dag: Dag, schema: Schema, linked: Callable[[str, str], float]) -> Dag:
    gone = set()
    for x in dag.nodes:
        parents = sorted(dag.parents(x), key=lambda p: linked(p, x))
        while _cells(tuple(parents), x, schema) > MOST_CELLS:
            gone.add((parents.pop(0), x))
    if not gone:
        return dag
    said = ", ".join(f"{a} -> {b}" for a, b in sorted(gone))
    note = f"left out, since tables would have more than {MOST_CELLS:,} cells: {said}"
    return Dag(dag.nodes, dag.arrows - gone, f"{dag.note}; {note}" if dag.note else note)


def _cells(parents: tuple[str, ...], column: str, schema: Schema) -> int:
    return prod(schema.sizes((*parents, column)))

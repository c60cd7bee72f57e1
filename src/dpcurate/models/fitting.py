"""From a found graph to a fitted model, in one release of what its families still need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from dpcurate._messages import shown
from dpcurate.errors import DomainTooLarge, FormatError, NotStored, QueryError
from dpcurate.graphs.formats.bif_grammar import quote
from dpcurate.graphs.graph import Dag
from dpcurate.learn.measure_once.central_moments import Released
from dpcurate.learn.measure_once.feature_release import ReleasedFeatures
from dpcurate.learn.measure_once.pair_release import ReleasedPairs
from dpcurate.learn.measure_once.release import buy, offered
from dpcurate.models.family import FittedFamily, Shares, fit_family
from dpcurate.models.model import Model
from dpcurate.models.purchase import family_weights
from dpcurate.models.regression_model import RegressionModel, buy_products
from dpcurate.models.table_model import DRAW, TableModel, factors, upstream
from dpcurate.networks.network import Network, Variable, joint
from dpcurate.networks.streams import stream
from dpcurate.queries import Queryable
from dpcurate.result.threshold import BEST_F1, DOUBTFUL
from dpcurate.schema import Schema

if TYPE_CHECKING:
    from dpcurate.result.discovery import Discovery


DRAWS = 300
"""Models that fit as well, drawn for the errors of what a model says."""
SHARE_ROWS = 200_000
"""Rows drawn for the shares of parents where they cannot be computed exactly."""
LEAST = 0.01
"""A smaller part of a budget buys nothing but noise."""
HIDDEN = "a model needs a graph without hidden common causes: leave out latent, or quantify (--latent, --quantify)"
PLENTY = 1e4
"""More zCDP than this buys nothing: the noise is far below one row."""


def model_graph(found: Discovery, schema: Schema, dag: Dag | None = None) -> Dag:
    """The graph to fit, refused if there is no model of it: of the highest expected F1, or the one that was given."""
    if found.graph.latent:
        raise QueryError(HIDDEN)
    if found.schema.hash != schema.hash:
        raise QueryError("the graph was found with another schema than the curator has: quantify it where it was found")
    return graph_of(found) if dag is None else checked(dag, schema)


def fit_model(found: Discovery, queryable: Queryable, dag: Dag | None = None) -> Model:
    """Buy what the graph's families still need, in one release, and fit a model to all that was released.

    What the run that found the graph has released counts too: nothing is paid twice.
    """
    schema, amount = queryable.schema, min(queryable.remaining, PLENTY)
    graph, price = model_graph(found, schema, dag), f"for {queryable.budget.currency} = {amount:.3g}"
    why = found.not_identified if dag is None else ""
    if not has_tables(schema):
        kept = found.learned.released
        before = kept if isinstance(kept, ReleasedFeatures) else None
        scored = RegressionModel.of(
            buy_products(queryable, before, amount), graph, schema, f"products of scores {price}"
        )
        return replace(scored, not_identified=why)
    released = _released(found)
    weights = offered(queryable, family_weights(released, graph, 2 * amount))
    if not weights:
        raise NotStored("the stored answers hold nothing that a model of this graph needs; nothing was spent")
    released = released.merged(buy(queryable, weights, amount).answers)
    made = fitted(released, graph, schema, f"{len(weights)} tables bought in one release, {price}")
    return replace(made, not_identified=why)


def check_part(part: float | None, *, latent: bool) -> None:
    """Refuse, before anything is read, a part of a budget that is none, and a graph of which there is no model."""
    if part is None:
        return
    if isinstance(part, bool) or not isinstance(part, (int, float)) or not LEAST <= part <= 1 - LEAST:
        raise QueryError(
            f"quantify is the part of the budget for a model, between 0 and 1 ({LEAST:g} at least, and as much left "
            f"for the graph), not {shown(part)}: 0.5 serves"
        )
    if latent:
        raise QueryError(HIDDEN)


def _released(found: Discovery) -> Released:
    """What the run has released of contrasts; pairs over clipped rows are not of all rows, and are left out."""
    kept = found.learned.released
    if isinstance(kept, ReleasedPairs):
        return kept.margins
    return kept if isinstance(kept, Released) else Released.nothing([c.size for c in found.schema.columns])


def fitted(released: Released, dag: Dag, schema: Schema, cost: str = "") -> TableModel:
    """The tables of all families, parents first."""
    place = {name: i for i, name in enumerate(schema.names)}
    families: dict[str, FittedFamily] = {}
    variables: dict[str, Variable] = {}
    for name in dag.order():
        parents = dag.parents(name)
        shares = _shares(variables, families, parents)
        normals = stream(0, f"draws of {name}").standard_normal((DRAWS, len(shares.values) * schema[name].size))
        families[name] = fit_family(released, tuple(place[p] for p in parents), place[name], shares, normals)
        variables[name] = Variable(name, schema[name].levels, parents, families[name].table)
    network = Network("model", tuple(variables[name] for name in schema.names))
    return TableModel(network, families, schema, released.rows, dag, cost)


def _shares(variables: dict[str, Variable], families: dict[str, FittedFamily], parents: tuple[str, ...]) -> Shares:
    """How often each combination of parents occurs in the model so far, and how sure that is."""
    if not parents:
        return Shares(np.ones(1), np.zeros((DRAWS, 1)))
    so_far = Network("so far", tuple(variables.values()))
    try:
        return _exact_shares(so_far, families, parents)
    except DomainTooLarge:  # a dense graph of many columns
        codes = so_far.codes(SHARE_ROWS, seed=0)
        place = [so_far.nodes.index(p) for p in parents]
        sizes = [len(so_far[p].levels) for p in parents]
        counts = np.bincount(np.ravel_multi_index([codes[:, i] for i in place], sizes), minlength=prod(sizes))
        return Shares(np.maximum(counts / SHARE_ROWS, 1 / SHARE_ROWS), np.zeros((DRAWS, prod(sizes))))


def _exact_shares(so_far: Network, families: dict[str, FittedFamily], parents: tuple[str, ...]) -> Shares:
    tables = {x: families[x].draws for x in upstream(so_far.dag, parents)}
    drawn = joint(list(factors(so_far, tables).values()), (DRAW, *parents))
    return Shares.of(so_far.marginal(parents), drawn.reshape(DRAWS, -1))


# --- the graph of a model: one DAG of what was found, its families small enough for tables -------------

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

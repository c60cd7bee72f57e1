"""From a found graph to a fitted model, in one release of what its families still need."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from dpcurate._messages import shown
from dpcurate.errors import DomainTooLarge, NotStored, QueryError
from dpcurate.graphs.graph import Dag
from dpcurate.learn.measure_once.central_moments import Released
from dpcurate.learn.measure_once.feature_release import ReleasedFeatures
from dpcurate.learn.measure_once.pair_release import ReleasedPairs
from dpcurate.learn.measure_once.release import buy, offered
from dpcurate.models.chosen import checked, graph_of, has_tables
from dpcurate.models.draws import DRAW, factors, upstream
from dpcurate.models.family import FittedFamily, Shares, fit_family
from dpcurate.models.mixed import ScoreModel
from dpcurate.models.model import Model
from dpcurate.models.purchase import family_weights
from dpcurate.models.scores import buy_products
from dpcurate.networks.network import Network, Variable, joint
from dpcurate.networks.streams import stream
from dpcurate.queries import Queryable
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


def fit_model(found: Discovery, queryable: Queryable, dag: Dag | None = None) -> Model | ScoreModel:
    """Buy what the graph's families still need, in one release, and fit a model to all that was released.

    What the run that found the graph has released counts too: nothing is paid twice.
    """
    schema, amount = queryable.schema, min(queryable.remaining, PLENTY)
    graph, price = model_graph(found, schema, dag), f"for {queryable.budget.currency} = {amount:.3g}"
    why = found.not_identified if dag is None else ""
    if not has_tables(schema):
        kept = found.learned.released
        before = kept if isinstance(kept, ReleasedFeatures) else None
        scored = ScoreModel.of(buy_products(queryable, before, amount), graph, schema, f"products of scores {price}")
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


def fitted(released: Released, dag: Dag, schema: Schema, cost: str = "") -> Model:
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
    return Model(network, families, schema, released.rows, dag, cost)


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

"""From a found graph to a fitted model, in one release of what its families still need."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from math import prod, sqrt
from typing import TYPE_CHECKING

import numpy as np

from dpcurate._messages import how_many, shown
from dpcurate.errors import DomainTooLarge, FormatError, NotStored, QueryError
from dpcurate.graphs.formats.bif_grammar import quote
from dpcurate.graphs.graph import Dag
from dpcurate.learn.measure_once.blocks import Columns, sorted_set, subsets
from dpcurate.learn.measure_once.central_moments import Released
from dpcurate.learn.measure_once.feature_release import ReleasedFeatures
from dpcurate.learn.measure_once.pair_release import ReleasedPairs
from dpcurate.learn.measure_once.release import Weights, buy, offered
from dpcurate.models.family import FittedFamily, Shares, fit_family
from dpcurate.models.model import Model
from dpcurate.models.regression_model import RegressionModel, buy_products
from dpcurate.models.table_model import DRAW, TableModel, factors
from dpcurate.networks.network import Network, Variable, joint, stream
from dpcurate.queries import Queryable
from dpcurate.result.threshold import BEST_F1, DOUBTFUL
from dpcurate.schema import Schema

if TYPE_CHECKING:
    from dpcurate.result.discovery import Discovery

DRAWS = 300
"""Models that fit as well, drawn for the errors of what a model says."""
SHARE_ROWS = 200_000
"""Rows drawn for the shares of parents where they cannot be computed exactly."""
SMALLEST_PART = 0.01
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
            buy_products(queryable, before, amount), graph, schema, f"released: products of scores, {price}"
        )
        return replace(scored, not_identified=why)
    released = _released(found)
    weights = offered(queryable, family_weights(released, graph, 2 * amount))
    if not weights:
        raise NotStored("the stored answers hold nothing that a model of this graph needs; nothing was spent")
    released = released.merged(buy(queryable, weights, amount).answers)
    made = fitted(released, graph, schema, f"released: {how_many(len(weights), 'table')}, {price}")
    return replace(made, not_identified=why)


def check_part(part: float | None, *, latent: bool) -> None:
    """Refuse, before anything is read, a part of a budget that is none, and a graph of which there is no model."""
    if part is None:
        return
    if isinstance(part, bool) or not isinstance(part, (int, float)) or not SMALLEST_PART <= part <= 1 - SMALLEST_PART:
        raise QueryError(
            f"quantify is the part of the budget for a model, between 0 and 1 (at least {SMALLEST_PART:g}, and as much "
            f"left for the graph), not {shown(part)}; try 0.5"
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
    tables = {x: families[x].draws for x in so_far.dag.upstream(parents)}
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


# ---------------------------------------------------------------------------------------------------------------------
# What a model buys: the contrasts of every family of its graph, each as well as its error matters.
#
# The tables of interest are the families of the graph and all pairs of columns. A contrast of variance v in each of its
# k coordinates adds k v / (cells of the other columns) to the squared error of every table that holds it: c v in all.
# With precision a before and x more, at the price g for each (the squared length of a row's contrast), the sum of
# c / (a + x) for a given total of g x is smallest where x = l sqrt(c / g) - a, or 0 if that is negative: water filling,
# l being the level. After Xiao, He, Zhang and Kifer, "An optimal and scalable matrix mechanism for noisy marginals
# under convex loss functions", 2023 (ResidualPlanner).


HALVINGS = 60
SMALLEST_WEIGHT = 1e-4
"""Contrasts that would get less than this part of the most are left as they are."""
PAIRS = 3.0
"""What the error of a pair's table counts beside that of a family's, where both are noise."""


def families(dag: Dag) -> list[Columns]:
    """Every column with its parents, by position."""
    place = {name: i for i, name in enumerate(dag.nodes)}
    return [sorted_set(place[x], *(place[p] for p in dag.parents(x))) for x in dag.nodes]


def importance(levels: Sequence[int], wanted: Sequence[Columns], pairs: float) -> dict[Columns, float]:
    """How much the variance of each contrast adds to the squared error of all tables of interest, pairs so weighted."""
    matters = {(): 0.0} | {u: 0.0 for family in wanted for u in subsets(family)}
    for table in (family for family in wanted if len(family) > 2):
        _add(matters, levels, table, 1.0)
    for pair in combinations(range(len(levels)), 2):
        _add(matters, levels, pair, pairs)
    return matters


def _add(matters: dict[Columns, float], levels: Sequence[int], table: Columns, weight: float) -> None:
    cells = prod(levels[a] for a in table)
    for u in ((), *subsets(table)):
        if u in matters:
            matters[u] += weight * prod(levels[a] * (levels[a] - 1) for a in u) / cells


def family_weights(released: Released, dag: Dag, precision: float) -> Weights:
    """Weights of the contrasts to buy; `precision` is the sum of price times precision that can be paid for."""
    wanted = families(dag)
    loud = _filled(released, importance(released.levels, wanted, PAIRS), precision)
    share = sqrt(_noise_share(released, loud, wanted))
    bought = _filled(released, importance(released.levels, wanted, PAIRS * share), precision)
    most = max(bought.values())
    return {u: sqrt(x / most) for u, x in bought.items() if x > SMALLEST_WEIGHT * most}


def _filled(released: Released, matters: Mapping[Columns, float], precision: float) -> dict[Columns, float]:
    """The precision to buy of each contrast."""
    price = np.array([prod(1 - 1 / released.levels[a] for a in u) for u in matters])
    before = np.array([_precision(released, u) for u in matters])
    ideal = np.sqrt(np.array(list(matters.values())) / price)
    low, high = 0.0, (precision + float(price @ before)) / float(price @ ideal)
    for _ in range(HALVINGS):
        level = (low + high) / 2
        too_much = float(price @ np.maximum(level * ideal - before, 0.0)) > precision
        low, high = (low, level) if too_much else (level, high)
    return dict(zip(matters, np.maximum(high * ideal - before, 0.0).tolist(), strict=True))


def _precision(released: Released, columns: Columns) -> float:
    return 1 / released.variances[columns] if columns in released.variances else 0.0


def _noise_share(released: Released, bought: Mapping[Columns, float], wanted: Sequence[Columns]) -> float:
    """How much of the squared error of a pair's table would be noise, the rest being sampling; 1 without a row count.

    Where sampling rules, less noise in pairs mends little, and families matter more.
    """
    if () not in released.sums:
        return 1.0
    pairs = sorted({u for family in wanted for u in subsets(family) if len(u) == 2})
    noise = []
    for pair in pairs:
        parts = []
        for u in subsets(pair):
            contrasts = prod(released.levels[a] - 1 for a in u)
            spread = prod(released.levels[a] for a in pair if a not in u)
            parts.append(contrasts / spread / (_precision(released, u) + bought[u]))
        noise.append(sum(parts))
    return float(np.mean(noise) / (np.mean(noise) + released.rows)) if noise else 1.0

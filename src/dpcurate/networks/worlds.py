"""Random worlds: a random graph, and mechanisms on it that are known exactly.

Every world has `dag`, `schema` and `sample(rows, seed=...)`, like a Network. Bounds in a schema
come from the world's parameters by a stated rule, never from a sample.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dpcurate._typing import FloatArray
from dpcurate.errors import DomainTooLarge, GraphError, QueryError
from dpcurate.graphs.graph import Dag
from dpcurate.networks.interventions import SettableWorld, set_to
from dpcurate.networks.network import MAX_CELLS, Network, Variable, stream, streams, whole
from dpcurate.schema import Numeric, Schema

WIDTH = 4.0
"""Bounds lie this many standard deviations out."""

SHAPES: Mapping[str, Callable[[FloatArray], FloatArray]] = MappingProxyType(
    {
        "tanh": lambda x: np.asarray(np.tanh(x)),
        "sine": lambda x: np.asarray(np.sin(2 * x)),
        "bowl": lambda x: np.asarray((x * x - 1) / (x * x + 1)),
    }
)
"""Effects of one parent, all within [-1, 1]: monotone, oscillating, and even (a saturating square)."""

Range = tuple[float, float]


def random_dag(
    nodes: int,
    *,
    edges: int | None = None,
    degree: float | None = None,
    kind: Literal["er", "scale-free"] = "er",
    seed: int,
) -> Dag:
    """A random DAG over X1, X2, ... with exactly `edges` arrows, or nodes * degree / 2 of them rounded.

    `degree` is the mean number of neighbours. "er": every set of that many pairs is equally likely
    (Erdos and Renyi, 1959). "scale-free": nodes arrive one by one and choose earlier ones in
    proportion to 1 + neighbours (Barabasi and Albert, 1999); arrows leave the earlier node, so hubs
    are common causes and no node has many parents. Names are shuffled: they do not tell the order.
    """
    size = whole("nodes", nodes, least=1)
    count = _edge_count(size, edges, degree)
    pick = {"er": _uniform_pairs, "scale-free": _preferential_pairs}.get(kind)
    if pick is None:
        raise QueryError(f"kind must be 'er' or 'scale-free', got {kind!r}")
    source = stream(seed, "random dag")
    names = [f"X{i + 1}" for i in range(size)]
    order = [names[i] for i in source.permutation(size)]
    return Dag(tuple(names), frozenset((order[a], order[b]) for a, b in pick(size, count, source)))


def _edge_count(nodes: int, edges: int | None, degree: float | None) -> int:
    if (edges is None) == (degree is None):
        raise QueryError("give either edges or degree")
    if degree is not None and not 0 <= degree < math.inf:
        raise QueryError(f"degree must be a number of at least 0, got {degree!r}")
    count = round(nodes * degree / 2) if degree is not None else whole("edges", edges or 0)
    most = nodes * (nodes - 1) // 2
    if count > most:
        raise QueryError(f"{nodes} nodes hold at most {most} edges, {count} were asked for")
    return count


def _uniform_pairs(nodes: int, count: int, source: np.random.Generator) -> list[tuple[int, int]]:
    later, earlier = np.tril_indices(nodes, -1)
    chosen = source.choice(len(later), size=count, replace=False)
    return [(int(earlier[i]), int(later[i])) for i in chosen]


def _preferential_pairs(nodes: int, count: int, source: np.random.Generator) -> list[tuple[int, int]]:
    weight = np.ones(nodes)
    pairs: list[tuple[int, int]] = []
    for new in range(1, nodes):
        # An even share of what is left, so the total is exact.
        share = min(new, math.ceil((count - len(pairs)) / (nodes - new)))
        chosen = source.choice(new, size=share, replace=False, p=weight[:new] / weight[:new].sum())
        pairs += [(int(old), new) for old in chosen]
        weight[chosen] += 1
        weight[new] += share
    return pairs


def random_network(
    dag: Dag, *, levels: tuple[int, int] = (2, 4), concentration: float = 1.0, seed: int, name: str = "random"
) -> Network:
    """A Network on `dag`: level counts uniform in the range, each row from a symmetric Dirichlet."""
    low, high = (whole("levels", x, least=2) for x in levels)
    if low > high:
        raise QueryError(f"levels must rise, got {levels!r}")
    if not 0 < concentration < math.inf:
        raise QueryError(f"concentration must be above 0, got {concentration!r}")
    source = stream(seed, "random network")
    sizes = {x: int(source.integers(low, high + 1)) for x in dag.nodes}
    cells = sum(math.prod(sizes[p] for p in (x, *dag.parents(x))) for x in dag.nodes)
    if cells > MAX_CELLS:
        raise DomainTooLarge(f"the tables have {cells} cells, the limit is {MAX_CELLS}; use fewer levels or edges")
    return Network(name, tuple(_dirichlet(dag, x, sizes, concentration, source) for x in dag.nodes))


def _dirichlet(
    dag: Dag, node: str, sizes: Mapping[str, int], concentration: float, source: np.random.Generator
) -> Variable:
    parents = dag.parents(node)
    rows = math.prod(sizes[p] for p in parents)
    table = source.dirichlet(np.full(sizes[node], concentration), size=rows)
    return Variable(node, tuple(str(i) for i in range(sizes[node])), parents, table)


@dataclass(frozen=True, slots=True, eq=False)
class LinearWorld(SettableWorld):
    """X_j = sum of weights[i, j] X_i over its parents, plus N(0, variances[j]); order of dag.nodes."""

    dag: Dag
    weights: FloatArray
    variances: FloatArray

    def __post_init__(self) -> None:
        size = len(self.dag.nodes)
        object.__setattr__(self, "weights", _fixed("weights", self.weights, (size, size)))
        object.__setattr__(self, "variances", _variances(self.variances, size))
        if (self.weights[self.dag.adjacency() == 0] != 0).any():
            raise GraphError("weights must be 0 where the graph has no arrow")

    def __reduce__(self) -> tuple[Any, ...]:
        return LinearWorld, (self.dag, self.weights, self.variances)

    @property
    def covariance(self) -> FloatArray:
        """The exact covariance, (I - W)^-T diag(variances) (I - W)^-1."""
        spread = np.linalg.inv(np.eye(len(self.variances)) - self.weights)
        return np.asarray(spread.T @ (self.variances[:, None] * spread), dtype=np.float64)

    @property
    def schema(self) -> Schema:
        """Bounds are WIDTH exact standard deviations on either side of the mean, 0."""
        ends = WIDTH * np.sqrt(np.diag(self.covariance))
        return _schema(self.dag, ends)

    def standardised(self) -> LinearWorld:
        """The same graph and correlations with every variance 1.

        Otherwise the variance grows along the order and gives it away (Reisach et al., 2021).
        """
        scale = np.sqrt(np.diag(self.covariance))
        return LinearWorld(self.dag, self.weights * scale[:, None] / scale, self.variances / scale**2)

    def effect(self, cause: str, outcome: str) -> float:
        """What one more unit of the cause adds to the outcome, along all paths: an entry of (I - W)^-1."""
        a, b = (self.dag.nodes.index(name) for name in (cause, outcome))
        return float(np.linalg.inv(np.eye(len(self.variances)) - self.weights)[a, b])

    def sample(self, rows: int, *, seed: int, do: Mapping[str, Any] | None = None) -> dict[str, FloatArray]:
        """Draw `rows` rows, one array per column; columns in `do` are set."""
        place = {name: i for i, name in enumerate(self.dag.nodes)}
        return _simulate(self.dag, self.variances, rows, seed, lambda i, j, x: self.weights[place[i], place[j]] * x, do)


@dataclass(frozen=True, slots=True)
class ParentEffect:
    """What one parent adds to its child: weight * SHAPES[shape](parent)."""

    shape: str
    weight: float

    def __post_init__(self) -> None:
        if self.shape not in SHAPES or not math.isfinite(self.weight):
            raise GraphError(f"an effect is a finite weight and one of {', '.join(SHAPES)}; got {self!r}")

    def __call__(self, parent: FloatArray) -> FloatArray:
        """The weighted shape at these values."""
        return self.weight * SHAPES[self.shape](parent)


@dataclass(frozen=True, slots=True, eq=False)
class NonlinearWorld(SettableWorld):
    """X_j = sum of the effects of its parents, plus N(0, variances[j]); variances in order of dag.nodes."""

    dag: Dag
    effects: Mapping[tuple[str, str], ParentEffect]
    variances: FloatArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "effects", MappingProxyType(dict(self.effects)))
        object.__setattr__(self, "variances", _variances(self.variances, len(self.dag.nodes)))
        if set(self.effects) != self.dag.arrows:
            raise GraphError("a nonlinear world needs one effect for each arrow of its graph and no other")

    def __reduce__(self) -> tuple[Any, ...]:
        return NonlinearWorld, (self.dag, dict(self.effects), self.variances)

    @property
    def schema(self) -> Schema:
        """Bounds are the largest sum of the parents' effects plus WIDTH standard deviations of the noise."""
        ends = WIDTH * np.sqrt(self.variances)
        place = {name: i for i, name in enumerate(self.dag.nodes)}
        for (_, child), effect in sorted(self.effects.items()):
            ends[place[child]] += abs(effect.weight)
        return _schema(self.dag, ends)

    def sample(self, rows: int, *, seed: int, do: Mapping[str, Any] | None = None) -> dict[str, FloatArray]:
        """Draw `rows` rows, one array per column; columns in `do` are set."""
        return _simulate(self.dag, self.variances, rows, seed, lambda i, j, x: self.effects[i, j](x), do)


def random_linear(dag: Dag, *, weights: Range = (0.5, 2.0), variances: Range = (1.0, 1.0), seed: int) -> LinearWorld:
    """Weights uniform in +-`weights`, noise variances uniform in `variances`."""
    source = stream(seed, "random linear")
    size = len(dag.nodes)
    drawn = _signed(source, weights, (size, size))
    return LinearWorld(dag, drawn * dag.adjacency(), _uniform(source, "variances", variances, (size,)))


def random_nonlinear(
    dag: Dag, *, weights: Range = (1.0, 2.0), variances: Range = (0.25, 0.25), seed: int
) -> NonlinearWorld:
    """Each arrow gets a uniform shape and a weight uniform in +-`weights`."""
    source = stream(seed, "random nonlinear")
    size = len(dag.nodes)
    drawn = _signed(source, weights, (size, size))
    shape = source.integers(len(SHAPES), size=(size, size))
    names = list(SHAPES)
    place = {name: i for i, name in enumerate(dag.nodes)}
    effects = {
        (i, j): ParentEffect(names[shape[place[i], place[j]]], float(drawn[place[i], place[j]])) for i, j in dag.arrows
    }
    return NonlinearWorld(dag, effects, _uniform(source, "variances", variances, (size,)))


def _simulate(
    dag: Dag,
    variances: FloatArray,
    rows: int,
    seed: int,
    effect: Callable[[str, str, FloatArray], FloatArray],
    do: Mapping[str, Any] | None = None,
) -> dict[str, FloatArray]:
    """Parents first, each column with its own stream of noise; columns in `do` are set."""
    count = whole("rows", rows)
    sources = dict(zip(dag.nodes, streams(seed, "world rows", len(dag.nodes)), strict=True))
    spread = dict(zip(dag.nodes, np.sqrt(variances).tolist(), strict=True))
    table: dict[str, FloatArray] = {}
    for node in dag.order():
        table[node] = spread[node] * sources[node].standard_normal(count)
        for parent in dag.parents(node):
            table[node] += effect(parent, node, table[parent])
        if do is not None and node in do:
            table[node] = set_to(do[node], count)
    return {node: table[node] for node in dag.nodes}


def _schema(dag: Dag, ends: npt.NDArray[Any]) -> Schema:
    return Schema(tuple(Numeric(n, -end, end) for n, end in zip(dag.nodes, ends.tolist(), strict=True)))


def _uniform(source: np.random.Generator, what: str, between: Range, shape: tuple[int, ...]) -> FloatArray:
    low, high = between
    if not 0 <= low <= high < math.inf:
        raise QueryError(f"{what} must be a rising range of numbers of at least 0, got {between!r}")
    return source.uniform(low, high, size=shape)


def _signed(source: np.random.Generator, between: Range, shape: tuple[int, ...]) -> FloatArray:
    sign = np.where(source.random(shape) < 0.5, -1.0, 1.0)
    return np.asarray(sign * _uniform(source, "weights", between, shape), dtype=np.float64)


def _variances(values: FloatArray, size: int) -> FloatArray:
    variances = _fixed("variances", values, (size,))
    if not (variances > 0).all():
        raise GraphError("noise variances must be above 0")
    return variances


def _fixed(what: str, values: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    """A read-only copy of the right shape."""
    array = np.array(values, dtype=np.float64)
    if array.shape != shape or not np.isfinite(array).all():
        raise GraphError(f"{what} must be finite numbers of shape {shape}, got shape {array.shape}")
    array.flags.writeable = False
    return array

"""A discrete Bayesian network as a value, its forward sampler and its exact marginals."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from string import ascii_letters
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcurate._typing import FloatArray
from dpcurate.errors import DomainTooLarge, GraphError, QueryError
from dpcurate.graphs.graph import Cpdag, Dag
from dpcurate.networks.interventions import HiddenWorld, check_set
from dpcurate.schema import MAX_LEVELS, Categorical, Schema, did_you_mean

TOLERANCE = 1e-3
"""How far a row of probabilities may be from 1. Published digits are kept; sampling normalises."""

Codes = npt.NDArray[np.uint8] | npt.NDArray[np.uint16]


@dataclass(frozen=True, slots=True, eq=False)
class Variable:
    """A node with its levels, parents and conditional table.

    `table` has one column per level and one row per combination of the parents' levels, in
    counting order: the last parent changes fastest.
    """

    name: str
    levels: tuple[str, ...]
    parents: tuple[str, ...]
    table: FloatArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", tuple(self.levels))
        object.__setattr__(self, "parents", tuple(self.parents))
        self._check_names()
        table = np.array(self.table, dtype=np.float64)
        if table.ndim != 2 or table.shape[1] != len(self.levels):
            raise GraphError(f"{self.name!r} has {len(self.levels)} levels; its table has shape {table.shape}")
        off = ~(np.abs(table.sum(axis=1) - 1) <= TOLERANCE) | (table < 0).any(axis=1)
        if off.any():
            raise GraphError(f"{self.name!r}: row {int(off.argmax())} of the table is not a distribution")
        table.flags.writeable = False
        object.__setattr__(self, "table", table)

    def _check_names(self) -> None:
        for text in (self.name, *self.levels, *self.parents):
            if not isinstance(text, str) or not text:
                raise GraphError(f"names and levels are texts of at least one character, got {text!r}")
        if not 1 <= len(set(self.levels)) == len(self.levels) <= MAX_LEVELS:
            raise GraphError(f"{self.name!r} needs 1 to {MAX_LEVELS} different levels, got {len(self.levels)}")
        if len({self.name, *self.parents}) <= len(self.parents):
            raise GraphError(f"{self.name!r} names a parent twice or itself: {list(self.parents)!r}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Variable):
            return NotImplemented
        return self._names == other._names and np.array_equal(self.table, other.table)

    def __hash__(self) -> int:
        return hash(self._names)

    def __reduce__(self) -> tuple[Any, ...]:
        # Through the constructor, so that the table is read-only again.
        return Variable, (self.name, self.levels, self.parents, self.table)

    @property
    def _names(self) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
        return self.name, self.levels, self.parents

    @property
    def parameters(self) -> int:
        """Free parameters: one less than the levels, for each row."""
        return len(self.table) * (len(self.levels) - 1)

    @property
    def probabilities(self) -> FloatArray:
        """The table with rows that sum to 1."""
        return np.asarray(self.table / self.table.sum(axis=1, keepdims=True), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Network:
    """A directed acyclic graph with a conditional table at each node."""

    name: str
    variables: tuple[Variable, ...]
    _dag: Dag = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "variables", tuple(self.variables))
        if not isinstance(self.name, str) or not self.name or not self.variables:
            raise GraphError(f"a network needs a name and at least one variable, got {self.name!r}")
        object.__setattr__(self, "_dag", Dag(self.nodes, frozenset(self.arcs)))
        sizes = {v.name: len(v.levels) for v in self.variables}
        for v in self.variables:
            rows = math.prod(sizes[p] for p in v.parents)
            if len(v.table) != rows:
                raise GraphError(
                    f"{v.name!r} needs {rows} rows, one per combination of its parents; got {len(v.table)}"
                )

    def __reduce__(self) -> tuple[Any, ...]:
        return Network, (self.name, self.variables)

    def __getitem__(self, name: str) -> Variable:
        for variable in self.variables:
            if variable.name == name:
                return variable
        raise QueryError(f"network {self.name!r} has no variable {name!r}{did_you_mean(name, self.nodes)}")

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of the variables in declared order."""
        return tuple(v.name for v in self.variables)

    @property
    def arcs(self) -> tuple[tuple[str, str], ...]:
        """(parent, child) pairs in declared order."""
        return tuple((p, v.name) for v in self.variables for p in v.parents)

    @property
    def parameters(self) -> int:
        """Number of free parameters."""
        return sum(v.parameters for v in self.variables)

    @property
    def dag(self) -> Dag:
        """The true graph."""
        return self._dag

    @property
    def cpdag(self) -> Cpdag:
        """The class of graphs that no sample tells from the true one."""
        return self._dag.cpdag()

    @property
    def schema(self) -> Schema:
        """The public facts: every column with its declared levels, no row count."""
        return Schema(tuple(Categorical(v.name, v.levels) for v in self.variables))

    def codes(self, rows: int, *, seed: int) -> Codes:
        """Draw `rows` rows as level numbers: rows by nodes, column-major, uint8 where it fits.

        Inverse transform per node, parents first. Column j has its own PCG64 stream, so the first
        rows of a longer sample are the shorter sample.
        """
        count = whole("rows", rows)
        drawn = self._blank(count)
        column = {name: j for j, name in enumerate(self.nodes)}
        draws = streams(seed, "network rows", len(self.variables))
        for name in self._dag.order():
            j = column[name]
            v = self.variables[j]
            row = np.zeros(count, dtype=np.intp)
            for parent in v.parents:
                row *= len(self.variables[column[parent]].levels)
                row += drawn[:, column[parent]]
            drawn[:, j] = _invert(_cumulative(v.probabilities), row, draws[j].random(count))
        return drawn

    def _blank(self, rows: int) -> Codes:
        shape = (rows, len(self.variables))
        if max(len(v.levels) for v in self.variables) > 256:
            return np.zeros(shape, np.uint16, order="F")
        return np.zeros(shape, np.uint8, order="F")

    def sample(self, rows: int, *, seed: int) -> dict[str, npt.NDArray[np.object_]]:
        """Draw `rows` rows as labels, one array of str per column (for pandas, polars, DuckDB)."""
        codes = self.codes(rows, seed=seed)
        return {v.name: np.array(v.levels, dtype=object).take(codes[:, j]) for j, v in enumerate(self.variables)}

    def hide(self, *names: str) -> HiddenWorld:
        """The same world without these columns in its tables, as common causes are missing from real ones."""
        return HiddenWorld(self, names)

    def do(self, values: Mapping[str, str] | None = None, /, **more: str) -> Network:
        """The network with columns set from outside, such as smoke="yes"; its `marginal` is what would happen."""
        settings = {**(values or {}), **more}
        check_set(settings, self.nodes)
        name = ", ".join(f"{x}={level}" for x, level in settings.items())
        return Network(f"{self.name}, do({name})", tuple(self._set(v, settings) for v in self.variables))

    def _set(self, variable: Variable, settings: Mapping[str, str]) -> Variable:
        if variable.name not in settings:
            return variable
        level, levels = settings[variable.name], variable.levels
        if level not in levels:
            raise QueryError(f"{variable.name!r} has no level {level!r} to be set to{did_you_mean(level, levels)}")
        return Variable(variable.name, levels, (), np.eye(len(levels))[[levels.index(level)]])

    def marginal(self, nodes: Sequence[str]) -> FloatArray:
        """The exact joint distribution of `nodes`, one axis each in the order asked."""
        keep = tuple(nodes)
        if isinstance(nodes, str) or not keep or len(set(keep)) < len(keep):
            raise QueryError(f"marginal takes a list of different variables, got {nodes!r}")
        by_name = {v.name: v for v in self.variables}
        sizes = {v.name: len(v.levels) for v in self.variables}
        needed = self._dag.upstream([self[name].name for name in keep])
        scopes = [(*by_name[x].parents, x) for x in self.nodes if x in needed]
        return joint([factor(n, [sizes[x] for x in n], by_name[n[-1]].probabilities) for n in scopes], keep)


def _cumulative(probabilities: FloatArray) -> FloatArray:
    """Chance of each level or a lower one, padded to a power of two with a number no draw reaches."""
    rows, size = probabilities.shape
    padded = np.full((rows, 1 << (size - 1).bit_length()), np.inf)
    total = probabilities.cumsum(axis=1)
    # Dividing by the last sum makes it 1 exactly, so a last level of probability 0 is never drawn.
    padded[:, : size - 1] = total[:, :-1] / total[:, -1:]
    return padded


def _invert(cumulative: FloatArray, row: npt.NDArray[np.intp], draw: FloatArray) -> npt.NDArray[np.intp]:
    """How many entries of `cumulative[row]` are at most `draw`, by halving."""
    width = cumulative.shape[1]
    flat = cumulative.ravel()
    row *= width
    step = width // 2
    while step:
        row += step * (draw >= flat.take(row + (step - 1)))
        step //= 2
    row &= width - 1
    return row


# --- exact marginals by variable elimination, for tests and small questions ----------------------------
# Zhang and Poole, "A simple approach to Bayesian network computations", 1994.

Factor = tuple[tuple[str, ...], FloatArray]

MAX_CELLS = 1 << 24
MAX_AXES = 32


def factor(names: tuple[str, ...], sizes: Sequence[int], table: FloatArray) -> Factor:
    """A table with one axis per name."""
    _require_fitting(sizes)
    return names, table.reshape(sizes)


def joint(factors: Sequence[Factor], keep: tuple[str, ...]) -> FloatArray:
    """Multiply the factors and sum out every name that is not in `keep`; axes in the order of `keep`."""
    sizes = {name: size for names, table in factors for name, size in zip(names, table.shape, strict=True)}
    left = list(factors)
    hidden = [name for name in sizes if name not in keep]
    while hidden:
        name = min(hidden, key=lambda x: _cells(_scope(_having(left, x)), sizes))
        hidden.remove(name)
        touched = _having(left, name)
        rest = tuple(x for x in _scope(touched) if x != name)
        left = [f for f in left if name not in f[0]] + [_product(touched, rest, sizes)]
    return _product(left, keep, sizes)[1]


def _having(factors: Iterable[Factor], name: str) -> list[Factor]:
    return [f for f in factors if name in f[0]]


def _scope(factors: Iterable[Factor]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for names, _ in factors for name in names))


def _cells(names: Iterable[str], sizes: Mapping[str, int]) -> int:
    return math.prod(sizes[name] for name in names)


def _product(factors: Sequence[Factor], keep: tuple[str, ...], sizes: Mapping[str, int]) -> Factor:
    """The product of the factors, summed down to the names in `keep`."""
    scope = _scope(factors)
    _require_fitting([sizes[name] for name in scope])
    whole = reduce(_times, factors)
    return keep, _einsum([whole], keep)


def _require_fitting(sizes: Sequence[int]) -> None:
    cells = math.prod(sizes)
    if cells > MAX_CELLS or len(sizes) > MAX_AXES:
        raise DomainTooLarge(
            f"this marginal needs a table of {cells} cells over {len(sizes)} variables; "
            f"the limits are {MAX_CELLS} and {MAX_AXES}. Ask for fewer variables"
        )


def _times(a: Factor, b: Factor) -> Factor:
    names = _scope([a, b])
    return names, _einsum([a, b], names)


def _einsum(factors: Sequence[Factor], keep: tuple[str, ...]) -> FloatArray:
    letter = dict(zip(_scope(factors), ascii_letters, strict=False))
    terms = ",".join("".join(letter[x] for x in names) for names, _ in factors)
    result = np.einsum(f"{terms}->{''.join(letter[x] for x in keep)}", *(table for _, table in factors))
    return np.asarray(result, dtype=np.float64)


# ---------------------------------------------------------------------------------------------------------------------
# Seeded random streams for simulation, and the checks of its whole-number arguments.
#
# Each purpose and each column has a stream of its own, so a network drawn with a seed and rows
# sampled with the same seed are not made of the same numbers, and adding rows changes no earlier row.


def whole(name: str, value: int, *, least: int = 0) -> int:
    """`value` as an int of at least `least`."""
    try:
        number = operator.index(value)
    except TypeError:
        raise QueryError(f"{name} must be a whole number, got {value!r}") from None
    if isinstance(value, bool) or number < least:
        raise QueryError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return number


def streams(seed: int, purpose: str, count: int) -> list[np.random.Generator]:
    """`count` independent PCG64 streams for one purpose."""
    root = np.random.SeedSequence([whole("seed", seed), *purpose.encode()])
    return [np.random.Generator(np.random.PCG64(child)) for child in root.spawn(count)]


def stream(seed: int, purpose: str) -> np.random.Generator:
    """The generator of this seed for one purpose."""
    return streams(seed, purpose, 1)[0]

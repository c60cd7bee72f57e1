"""Which runs make the reproduction: cells of a network, a method, a reading of it and a total epsilon."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from functools import cached_property, lru_cache
from importlib.metadata import version
from typing import Any, Literal

import numpy as np

from dpcurate import Budget, Curator, networks
from dpcurate.graphs.graph import Dag
from dpcurate.networks import SHIPPED
from dpcurate.published.claims import ALLOCATIONS, READINGS, PublishedLearned
from dpcurate.published.constraint import PublishedPC, reach
from dpcurate.schema import Categorical, Schema

# --- the data of the paper's section IV ------------------------------------------------------------------

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
class PaperWorld:
    """A network, its table in two codings and its three truths.

    `alphabetical` numbers the levels by the order of their names, as the authors' code does (pandas
    categories); it matters to Kendall's tau of columns with three or more levels. `natural` keeps the
    network's order.
    """

    name: str
    rows: int

    @cached_property
    def network(self) -> networks.Network:
        """The network of the paper."""
        return networks.load(self.name)

    @cached_property
    def dag(self) -> Dag:
        """The true graph."""
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
        """The table with the codes of each column in alphabetical order."""
        return self._coded(ordered=True)

    @cached_property
    def natural(self) -> Coded:
        """The table with the codes of each column in the network's order."""
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
        """The arcs that the authors' code counts as true."""
        nodes = self.dag.nodes
        pairs = (arc.split("-") for arc in AUTHORS_ARCS[self.name].split())
        return frozenset((nodes[int(a)], nodes[int(b)]) for a, b in pairs)


@lru_cache(maxsize=8)
def world(name: str, rows: int = ROWS) -> PaperWorld:
    """Return the table of a network; the same one each time."""
    return PaperWorld(name, rows)


# --- the cells to run -------------------------------------------------------------------------------------

CellKind = Literal[
    "exact", "private", "first", "time", "schedule", "allocation", "proved allocation", "shape", "proved shape",
    "increment", "adaptive", "test",
]  # fmt: skip
"""What a cell is for; from 'allocation' on they are those of adaptivity.py."""
TARGETS = (0.1, 0.5, 1.0, 5.0, 10.0)
ENDS = (0.03, 20.0)
"""Totals at which rivals are run too, so that their lines reach whatever CURATE has spent."""
FIRSTS = (0.001, 0.01, 0.1)
"""Values of eps_0 in the comparison at equal eps_0."""
TESTED = 1.0
"""The total at which tests and times are compared."""

RIVALS = ("svt-pc", "priv-pc", "em-pc")
CONSTRAINT = (*RIVALS, "curate-pc")
SCORE = ("noleaks", "curate-score")
PUBLISHED = (*CONSTRAINT, *SCORE)
OURS = ("measure-once", "em-pc", "svt-pc", "priv-pc", "curate-pc", "notears-moments")

SCORE_READINGS = {
    "printed": "sensitivity and delta' as printed, eps_0 = 0.01, I by Lemma 2",
    "artifact's noise": "sensitivity and delta of NOLEAKS' artifact, all rows",
    "artifact's noise, I = 30": "the same with 30 iterations per minimisation",
    "artifact": "the artifact's noise, 5,000 rows and public rows",
    "one schedule": "the artifact's noise; 200 gradients in all share the total, eps_0 follows from it",
}
"""Readings of the score-based methods, the most literal first."""
SCORE_SHOWN = ("printed", "artifact's noise", "one schedule")
"""Those of the full grid: a run on the artifact's own samples is long."""
EM_READINGS = {
    "coded": "separating sets stored as in the code, often under another pair",
    "own separators": "stored under their own pair",
}
LITERAL = {"em-pc": "coded", "svt-pc": "printed", "priv-pc": "coded", "curate-pc": "printed"} | dict.fromkeys(
    SCORE, "printed"
)
"""The most literal reading of each published method."""
ALL_READINGS: Mapping[str, tuple[str, ...]] = {
    **{m: (LITERAL[m],) for m in ("svt-pc", "priv-pc")},
    "em-pc": tuple(EM_READINGS),
    "curate-pc": tuple(READINGS),
    **dict.fromkeys(SCORE, tuple(SCORE_READINGS)),
}
_SECONDS = {"cancer": 0.02, "earthquake": 0.02, "survey": 0.02, "asia": 0.03, "sachs": 0.05, "child": 0.1}
_EM_SECONDS = {"cancer": 0.05, "earthquake": 0.05, "survey": 0.1, "asia": 0.3, "sachs": 1.0, "child": 12.0}
INCREMENTS = ("even", "additive", "exponential", "multiplicative")
INCREMENT_FIRSTS = (0.001, 0.01, 0.03, 0.1, 0.3)
"""Values of eps_0 in the comparison of increments; those of at most a third of the total are run."""
NOMINAL = "uniform, same total"
"""The uniform allocation at the nominal total, not at equal spent leakage."""
_THREE = (0.1, 1.0, 10.0)


@dataclass(frozen=True, slots=True)
class CellFamily:
    """Cells of one of the kinds that adaptivity.py runs."""

    method: str
    readings: tuple[str, ...]
    targets: tuple[float, ...]


FAMILIES: Mapping[CellKind, CellFamily] = {
    "allocation": CellFamily("curate-pc", (*ALLOCATIONS, NOMINAL), TARGETS),
    "proved allocation": CellFamily(
        "curate-pc", ("OPT", "the default floor of 0.7", "uniform", "order 0 only"), TARGETS
    ),
    "shape": CellFamily(
        "curate-score",
        ("even", "additive", "exponential", "multiplicative", "reversed", "rising"),
        (0.01, *_THREE),
    ),
    "proved shape": CellFamily("curate-score", ("even", "additive", "exponential", "geometric, 1 to 16"), _THREE),
    "increment": CellFamily(
        "curate-score", tuple(f"{kind} {first:g}" for kind in INCREMENTS for first in INCREMENT_FIRSTS), _THREE
    ),
    "adaptive": CellFamily("measure-once", ("adaptive", "one release of all pairs", "pairs, then all triples"), _THREE),
    "test": CellFamily("curate-pc", ("Kendall", "G", "chi-squared", "Spearman"), (1.0, 5.0, 10.0)),
}
"""What each of these kinds compares: the first reading is the one that the others are compared with."""

KIND_SECONDS = {
    "allocation": 1.5, "proved allocation": 3.0, "shape": 1.0, "proved shape": 15.0, "increment": 3.0, "adaptive": 15.0,
    "test": 1.0,
}  # fmt: skip
"""Runs of some kinds, in units of _SECONDS."""


@dataclass(frozen=True, slots=True)
class GridCell:
    """Some runs of one method in one reading on one network; `target` is a total, or eps_0 in kind 'first'."""

    kind: CellKind
    network: str
    method: str
    reading: str
    target: float
    runs: int
    rows: int = ROWS

    @property
    def name(self) -> str:
        """A file name that tells cells, and versions of the package, apart."""
        code = hashlib.sha256(repr((version("dpcurate"), astuple(self))).encode()).hexdigest()[:10]
        return f"{self.kind}-{self.network}-{self.method}-{self.target:g}-{code}"

    @property
    def seed(self) -> str:
        """Readings of one cell meet the same noise, number by number."""
        return f"{self.network}/{self.method}/{self.target:g}"

    @property
    def score(self) -> bool:
        """Whether its graph is cut out of weights, at the threshold chosen with the true graph."""
        return self.method in SCORE and self.reading != "proved" and self.kind != "proved shape"

    @property
    def family(self) -> tuple[str, ...]:
        """Cells that share exact statistics, best run in one process."""
        if self.reading == "proved" or self.kind.startswith("proved") or self.kind == "adaptive":
            return self.kind, self.network, "proved", self.method
        return self.kind, self.network, "em" if self.method == "em-pc" else "others"

    @property
    def cost(self) -> float:
        """Seconds it may take, roughly: for the order of work and the time left."""
        if self.network not in _SECONDS:
            return 0.1
        if self.kind in KIND_SECONDS:
            return 0.2 + _SECONDS[self.network] * self.runs * KIND_SECONDS[self.kind]
        if self.method == "em-pc" and self.reading == "coded":
            return _EM_SECONDS[self.network] * (self.runs + 2)
        times = {"measure-once": 40.0}.get(self.method, 10.0) if self.reading == "proved" else 1.5
        return 0.2 + _SECONDS[self.network] * self.runs * times * (4 if self.method in SCORE else 1)


@dataclass(frozen=True, slots=True)
class Grid:
    """A choice of cells: networks, totals, readings, and numbers of runs.

    `literal` runs of the most literal reading, `others` of every other one; `em` and `proved` say the
    number by network where a run is long.
    """

    literal: int
    others: int
    em: Mapping[str, int]
    proved: Mapping[str, int]
    networks: Sequence[str] = SHIPPED
    targets: Sequence[float] = TARGETS
    ends: Sequence[float] = ENDS
    firsts: Sequence[float] = FIRSTS
    readings: Mapping[str, Sequence[str]] = field(default_factory=lambda: ALL_READINGS)
    timed: int = 3
    rows: int = ROWS
    ours: Sequence[str] = OURS
    adaptivity: Mapping[CellKind, Mapping[str, int]] = field(default_factory=dict)

    def cells(self) -> tuple[GridCell, ...]:
        """List all cells of the grid."""
        found = [GridCell("schedule", "none", "schedules", "lemma-2", 0.0, 1, self.rows)]
        for network in self.networks:
            found += [self._cell("exact", network, m, "exact", 0.0, 1) for m in ("pc-kendall", "pc-g")]
            found += [*self._published(network), *self._firsts(network), *self._times(network), *self._proved(network)]
            found += self._adaptivity(network)
        return tuple(found)

    def _cell(self, kind: CellKind, network: str, method: str, reading: str, target: float, runs: int) -> GridCell:
        return GridCell(kind, network, method, reading, target, runs, self.rows)

    def _published(self, network: str) -> Iterator[GridCell]:
        for method in PUBLISHED:
            targets = sorted({*self.targets, *(self.ends if method in RIVALS else ())})
            for reading in self.readings[method]:
                runs = self._runs(network, method, reading)
                yield from (self._cell("private", network, method, reading, t, runs) for t in targets if runs)

    def _runs(self, network: str, method: str, reading: str) -> int:
        most = self.literal if reading == LITERAL[method] else self.others
        return min(most, self.em.get(network, 0)) if method == "em-pc" else most

    def _firsts(self, network: str) -> Iterator[GridCell]:
        for method in SCORE:
            for first in self.firsts:
                yield self._cell("first", network, method, "artifact's noise, I = 30", first, self.others)

    def _times(self, network: str) -> Iterator[GridCell]:
        for method in PUBLISHED:
            short = network in self.em and _EM_SECONDS[network] <= 0.1  # a run of EM-PC takes minutes on Child
            runs = self.timed if method != "em-pc" else min(int(short), self.em.get(network, 0))
            if runs:
                yield self._cell("time", network, method, LITERAL[method], TESTED, runs)

    def _adaptivity(self, network: str) -> Iterator[GridCell]:
        for kind, runs in self.adaptivity.items():
            family, number = FAMILIES[kind], runs.get(network, 0)
            for target in family.targets if number else ():
                for reading in family.readings:
                    if kind != "increment" or 3 * float(reading.split()[1]) <= target:
                        yield self._cell(kind, network, family.method, reading, target, number)

    def _proved(self, network: str) -> Iterator[GridCell]:
        runs = self.proved.get(network, 0)
        for method in self.ours if runs else ():
            yield from (self._cell("private", network, method, "proved", t, runs) for t in self.targets)


def _by_size(small: int, asia: int, sachs: int, child: int) -> dict[str, int]:
    return {"cancer": small, "earthquake": small, "survey": small, "asia": asia, "sachs": sachs, "child": child}


def full() -> tuple[GridCell, ...]:
    """Six networks; 20 runs of the literal readings, 40 of the allocations, fewer where a run is long."""
    adaptivity: dict[CellKind, Mapping[str, int]] = {
        "allocation": _by_size(40, 40, 40, 40),
        "proved allocation": {"cancer": 40, "asia": 40},
        "shape": _by_size(40, 40, 40, 24),
        "increment": _by_size(8, 8, 6, 4),
        "adaptive": _by_size(16, 0, 0, 0),
        "test": _by_size(20, 20, 20, 4),
    }
    readings = {**ALL_READINGS, "noleaks": SCORE_SHOWN, "curate-score": SCORE_SHOWN}
    em, proved = _by_size(20, 20, 0, 0), _by_size(8, 6, 0, 0)
    ours = ("measure-once", "priv-pc", "curate-pc")
    return Grid(20, 8, em, proved, readings=readings, timed=2, ours=ours, adaptivity=adaptivity).cells()


def quick() -> tuple[GridCell, ...]:
    """Six networks and the figures' totals with few runs: under 180 seconds on two cores."""
    readings = {**{m: (LITERAL[m],) for m in PUBLISHED}, "curate-pc": ("printed", "script")}
    em, proved = _by_size(3, 1, 1, 0), _by_size(2, 1, 1, 1)
    adaptivity: dict[CellKind, Mapping[str, int]] = {"allocation": _by_size(4, 3, 2, 1), "shape": _by_size(2, 2, 2, 1)}
    return Grid(
        6, 4, em, proved, ends=(), firsts=(0.01,), readings=readings, timed=1, ours=("measure-once",),
        adaptivity=adaptivity,
    ).cells()  # fmt: skip


def tiny() -> tuple[GridCell, ...]:
    """A network, a few runs on few rows: for tests."""
    one, ours = {"cancer": 2}, ("measure-once", "svt-pc")
    short = {**ALL_READINGS, "curate-pc": ("printed", "script"), **dict.fromkeys(SCORE, ("printed", "one schedule"))}
    more: dict[CellKind, Mapping[str, int]] = dict.fromkeys(("allocation", "shape", "adaptive", "test"), one)
    return Grid(3, 2, one, one, ("cancer",), (1.0, 10.0), (20.0,), (0.01,), short, 1, 2_000, ours, more).cells()


GRIDS = {"full": full, "quick": quick, "tiny": tiny}

"""Which runs make the reproduction: cells of a network, a method, a variant and a total epsilon."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from importlib.metadata import version
from typing import Literal

from dpcurate.networks import SHIPPED
from dpcurate.published.reproduction.world import ROWS

CellKind = Literal["exact", "private", "time", "schedule"]
TARGETS = (0.1, 0.5, 1.0, 5.0, 10.0)
TESTED = 1.0
"""The total at which tests and times are compared."""
CONSTRAINT = ("em-pc", "svt-pc", "priv-pc", "curate-pc")
SCORE = ("noleaks", "curate-score")
OURS = ("measure-once", "em-pc", "svt-pc", "priv-pc", "curate-pc", "notears-on-moments")

_EM = {"cancer": 0.05, "earthquake": 0.05, "survey": 0.1, "asia": 0.3, "sachs": 2.0, "child": 15.0}
_OTHERS = {"cancer": 0.02, "earthquake": 0.02, "survey": 0.02, "asia": 0.03, "sachs": 0.05, "child": 0.1}


@dataclass(frozen=True, slots=True)
class GridCell:
    """Some runs of one method on one network at one total epsilon."""

    kind: CellKind
    network: str
    method: str
    variant: str
    target: float
    runs: int
    rows: int = ROWS

    @property
    def name(self) -> str:
        """A file name that tells cells, and versions of the package, apart."""
        code = hashlib.sha256(repr((version("dpcurate"), astuple(self))).encode()).hexdigest()[:8]
        return f"{self.kind}-{self.network}-{self.method}-{self.variant}-{self.target:g}-{code}"

    @property
    def family(self) -> tuple[str, str, str]:
        """Cells that share exact statistics, best run in one process."""
        part = "em" if (self.method, self.variant) == ("em-pc", "published") else self.variant
        return self.kind, self.network, part

    @property
    def cost(self) -> float:
        """Seconds it may take, roughly: for the order of work and the time left."""
        if self.kind == "schedule" or self.network not in _OTHERS:
            return 0.1
        if self.variant == "published" and self.method == "em-pc":
            return _EM[self.network] * (self.runs + 2)
        each = _OTHERS[self.network]
        return 0.2 + each * self.runs * {"proved": 12.0, "exact": 2.0}.get(self.variant, 1.3) + (self.kind == "time")


@dataclass(frozen=True, slots=True)
class Grid:
    """A choice of cells: networks, totals, and runs by network."""

    networks: Sequence[str] = SHIPPED
    targets: Sequence[float] = TARGETS
    cheap: int = 50
    em: tuple[tuple[str, int], ...] = ()
    proved: tuple[tuple[str, int], ...] = ()
    timed: int = 3
    rows: int = ROWS
    ours: Sequence[str] = OURS
    text: bool = True

    def cells(self) -> tuple[GridCell, ...]:
        found = [GridCell("schedule", "none", "schedules", "lemma-2", 0.0, 1, self.rows)]
        for network in self.networks:
            found += [GridCell("exact", network, m, "exact", 0.0, 1, self.rows) for m in ("pc-kendall", "pc-g")]
            found += self._published(network)
            found += self._proved(network)
        return tuple(dict.fromkeys(found))

    def _published(self, network: str) -> Iterator[GridCell]:
        em = dict(self.em).get(network, 0)
        for target in self.targets:
            for method in (*CONSTRAINT, *SCORE):
                runs = em if method == "em-pc" else self.cheap
                if runs:
                    yield GridCell("private", network, method, "published", target, runs, self.rows)
            if self.text:
                yield GridCell("private", network, "curate-pc", "published-text", target, self.cheap, self.rows)
        for method in (*CONSTRAINT, *SCORE):
            if self.timed and (method != "em-pc" or em):
                timed = 1 if method == "em-pc" else self.timed
                yield GridCell("time", network, method, "published", TESTED, timed, self.rows)

    def _proved(self, network: str) -> Iterator[GridCell]:
        runs = dict(self.proved).get(network, 0)
        for target in self.targets:
            for method in self.ours:
                if runs:
                    yield GridCell("private", network, method, "proved", target, runs, self.rows)


def full() -> tuple[GridCell, ...]:
    """Six networks, 50 runs where they are cheap: 10 to 20 minutes on two cores."""
    small = ("cancer", "earthquake", "survey")
    em = (*((n, 50) for n in (*small, "asia")), ("sachs", 10), ("child", 3))
    proved = (*((n, 20) for n in (*small, "asia")), ("sachs", 12), ("child", 5))
    return Grid(em=em, proved=proved).cells()


def quick() -> tuple[GridCell, ...]:
    """Four networks, few runs: under 90 seconds on two cores."""
    names = ("cancer", "survey", "asia", "sachs")
    proved = tuple((n, 3 if n != "sachs" else 2) for n in names)
    em = (("cancer", 6), ("survey", 4))
    return Grid(names, (0.1, 1.0, 10.0), 12, em, proved, timed=1).cells()


def tiny() -> tuple[GridCell, ...]:
    """A network, a few runs on few rows: for tests."""
    one = (("cancer", 2),)
    return Grid(("cancer",), (1.0, 10.0), 3, one, one, 1, 2_000, ("measure-once", "svt-pc"), text=False).cells()


GRIDS = {"full": full, "quick": quick, "tiny": tiny}

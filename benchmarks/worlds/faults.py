"""Worlds with what real tables have and a DAG of their columns lacks: one fault each, in numbers, levels and mixtures.

Every world has a DAG of clear effects. *weak* adds a little effect of every column on every later one, *factors* three
hidden causes of all columns; *hidden* takes 20 to 40 % of the columns out, *clusters* lets rows share noise, *error*
measures every column with error, *sums* makes columns of two others, *bends* turns effects into ones that rise and
fall, *selection* keeps rows by three columns, *rounding* rounds numbers, and *cycles* lets effects feed back.
*sufficient* has none of these. In *weak*, *factors*, *error*, *selection* and *cycles* pairs that are not linked may be
dependent whatever is given: `World.inseparable` says which.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks.worlds.world import World
from dpcurate._typing import BoolArray
from dpcurate.graphs.graph import Dag
from dpcurate.networks import random_dag
from dpcurate.networks.interventions import visible_skeleton
from dpcurate.schema import Categorical, Numeric, Schema

Rng = np.random.Generator
Arrow = tuple[str, str]
FAULTS = (
    "sufficient", "weak", "factors", "hidden", "clusters", "error", "sums", "bends", "selection", "rounding", "cycles",
)  # fmt: skip
KINDS = ("numbers", "levels", "mixed")
FURTHEST = 6.0
"""Bounds of numbers, in standard deviations."""
CLUSTER = 30
"""Rows of a cluster, on average."""
ON_LEVELS = 1.6
"""Effects on levels, in units of effects on numbers: the noise of a choice among levels is larger."""
BENDS: tuple[Callable[[Any], Any], ...] = (
    lambda x: x * x - 1,
    lambda x: 1.4 * np.sin(2 * x),
    lambda x: 1.6 * np.abs(x) - 1.3,
)


def fault(seed: int, rows: int, name: str, kind: str) -> World:
    """A world with this fault."""
    return _Maker(seed, rows, name, kind).world()


class _Maker:
    """Draws a world column by column."""

    def __init__(self, seed: int, rows: int, fault: str, kind: str) -> None:
        self.seed, self.kept, self.fault, self.kind = seed, rows, fault, kind
        self.draw = np.random.default_rng([seed, 41, FAULTS.index(fault), KINDS.index(kind)])
        self.rows = math.ceil(2.2 * rows) if fault == "selection" else rows
        size = int(self.draw.integers(6, 15))
        self.clear = random_dag(size, degree=float(self.draw.uniform(1.2, 2.6)), seed=seed)
        self.order = self.clear.order()
        numbers = {"numbers": 1.0, "levels": 0.0, "mixed": 0.5}[kind]
        self.is_number = {name: bool(self.draw.random() < numbers) for name in self.order}
        self.sizes = {name: int(self.draw.integers(2, 5)) for name in self.order}
        self.tilt = {name: self.draw.normal(size=self.sizes[name]) for name in self.order}
        self.effects = self._effects()
        self.feedback = self._feedback() if fault == "cycles" else {}
        self.sums = self._sums() if fault == "sums" else {}
        self.shared = self._shared()
        self.deciding: tuple[str, ...] = ()
        """The columns by which rows were selected."""

    def _effects(self) -> dict[Arrow, Callable[[np.ndarray], np.ndarray]]:
        least, effects = float(self.draw.uniform(0.15, 0.35)), {}
        for place, b in enumerate(self.order):
            for a in self.order[:place]:
                if (a, b) in self.clear.arrows:
                    effects[a, b] = self._effect(a, b, self.draw.uniform(least, 1.0))
                elif self.fault == "weak":
                    effects[a, b] = self._effect(a, b, self.draw.uniform(0.02, 0.06))
        return effects

    def _effect(self, a: str, b: str, size: float) -> Callable[[np.ndarray], np.ndarray]:
        """A function of a's values: a number, or one for each level of b."""
        size *= float(self.draw.choice([-1, 1])) * (1.0 if self.is_number[b] else ON_LEVELS)
        shape = (() if self.is_number[a] else (self.sizes[a],)) + (() if self.is_number[b] else (self.sizes[b],))
        weights = np.asarray(size * self._even(shape)) if shape else np.asarray(size)
        bend = BENDS[self.draw.integers(3)] if self.fault == "bends" and self.draw.random() < 0.6 else lambda x: x
        if not self.is_number[a]:
            return lambda x: weights[x]
        return (lambda x: weights * bend(x)) if self.is_number[b] else (lambda x: bend(x)[:, None] * weights)

    def _even(self, shape: tuple[int, ...]) -> np.ndarray:
        drawn = self.draw.normal(size=shape)
        drawn -= drawn.mean(axis=-1, keepdims=True)
        return np.asarray(drawn / max(float(drawn.std()), 0.3))

    def _feedback(self) -> dict[Arrow, Callable[[np.ndarray], np.ndarray]]:
        """A quarter of the arrows act back."""
        some = sorted(self.clear.arrows)
        chosen = self.draw.permutation(len(some))[: max(1, len(some) // 4)]
        return {(b, a): self._effect(b, a, self.draw.uniform(0.2, 0.5)) for a, b in (some[i] for i in chosen)}

    def _sums(self) -> dict[str, Arrow]:
        """The last column and one in the middle are each made of two earlier ones."""
        places = (len(self.order) - 1, len(self.order) // 2)
        picks = {p: self.draw.choice(p, size=2, replace=False) for p in places}
        return {self.order[p]: (self.order[i], self.order[j]) for p, (i, j) in picks.items()}

    def _shared(self) -> dict[str, np.ndarray]:
        """What columns get from hidden factors, and rows from their cluster."""
        none = np.zeros(self.rows)
        if self.fault == "factors":
            factors, size = self.draw.normal(size=(self.rows, 3)), float(self.draw.uniform(0.1, 0.25))
            return {name: factors @ (size * self.draw.normal(size=3)) for name in self.order}
        if self.fault == "clusters":
            count, spread = max(2, self.rows // CLUSTER), math.sqrt(self.draw.uniform(0.1, 0.4))
            cluster = self.draw.integers(0, count, size=self.rows)
            return {name: spread * self.draw.normal(size=count)[cluster] for name in self.order}
        return dict.fromkeys(self.order, none)

    def _cells(self) -> dict[str, np.ndarray]:
        noise = {
            x: self.draw.normal(size=self.rows)
            if self.is_number[x]
            else self.draw.gumbel(size=(self.rows, self.sizes[x])) + 0.5 * self.tilt[x]
            for x in self.order
        }
        cells: dict[str, np.ndarray] = {}
        for x in self.order:
            cells[x] = self._sum(x, cells) if x in self.sums else self._cell(x, cells, noise[x], self.effects)
        if self.feedback:
            for _ in range(4):
                for x in self.order:
                    cells[x] = self._cell(x, cells, noise[x], self.effects | self.feedback)
        return cells

    def _cell(
        self, x: str, cells: dict[str, np.ndarray], noise: np.ndarray, effects: dict[Arrow, Callable[..., np.ndarray]]
    ) -> np.ndarray:
        shared = self.shared[x]
        total = noise + (shared if self.is_number[x] else ON_LEVELS * shared[:, None] * self.tilt[x])
        for (a, b), effect in effects.items():
            if b == x and a in cells:
                total = total + effect(cells[a])
        return np.asarray(total / total.std()) if self.is_number[x] else total.argmax(axis=1)

    def _sum(self, x: str, cells: dict[str, np.ndarray]) -> np.ndarray:
        a, b = (cells[name] for name in self.sums[x])
        if self.is_number[x]:
            total = a + b
            return np.asarray((total - total.mean()) / max(float(total.std()), 1e-9))
        a, b = (v if v.dtype.kind == "i" else (v > 0).astype(int) for v in (a, b))
        return np.minimum(a + b, self.sizes[x] - 1)

    def _measured(self, x: str, cells: np.ndarray) -> np.ndarray:
        if self.fault == "error":
            right = float(self.draw.uniform(0.75, 0.97))
            if self.is_number[x]:
                return np.asarray(math.sqrt(right) * cells + math.sqrt(1 - right) * self.draw.normal(size=self.rows))
            wrong = self.draw.random(self.rows) < 0.7 * (1 - right)
            return np.where(wrong, self.draw.integers(0, self.sizes[x], size=self.rows), cells)
        if self.fault == "rounding" and self.is_number[x]:
            step = 5.0 / int(self.draw.integers(3, 12))
            return np.asarray(np.round(cells / step) * step)
        return cells

    def _selected(self, cells: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The rows with the highest scores, which three columns make up."""
        score = 0.7 * self.draw.normal(size=self.rows)
        self.deciding = tuple(str(x) for x in self.draw.choice(self.order, size=3, replace=False))
        for x in self.deciding:
            score = score + (cells[x] if self.is_number[x] else self.tilt[x][cells[x]])
        kept = np.sort(np.argsort(-score)[: self.kept])
        return {x: values[kept] for x, values in cells.items()}

    def world(self) -> World:
        cells = {x: self._measured(x, values) for x, values in self._cells().items()}
        cells = self._selected(cells) if self.fault == "selection" else cells
        table: dict[str, Any] = {
            x: np.clip(v, -FURTHEST, FURTHEST) if self.is_number[x] else v.astype(str) for x, v in cells.items()
        }
        columns = [
            Numeric(x, -FURTHEST, FURTHEST)
            if self.is_number[x]
            else Categorical(x, tuple(map(str, range(self.sizes[x]))))
            for x in self.clear.nodes
        ]
        family = f"{self.fault}, {self.kind}"
        made = World.of(family, self.seed, table, Schema(tuple(columns)), self._dag(), hidden=self._hidden())
        made = replace(made, joined=self._inseparable(made))
        return made if self.fault not in ("weak", "cycles") else self._with_causes(made)

    def _inseparable(self, made: World) -> BoolArray | None:
        """Adjacency in the ancestral graph (Richardson and Spirtes, 2002) of the table's columns, fault included."""
        names, arrows = self.clear.nodes, self.clear.arrows
        if self.fault in ("weak", "factors"):  # effects or hidden causes of every two columns
            return ~np.eye(len(names), dtype=bool)
        if self.fault == "cycles":
            return self._joined_by_feedback(made)
        if self.fault == "error":
            right = {x: f"{x} without error" for x in names}
            inside = {(right[a], right[b]) for a, b in arrows} | {(right[x], x) for x in names}
            skeleton = visible_skeleton(Dag.of((*names, *right.values()), inside), right.values())
        elif self.fault == "selection":
            chosen = Dag.of((*names, "kept"), arrows | {(x, "kept") for x in self.deciding})
            skeleton = visible_skeleton(chosen, (), ("kept",))
        else:
            return None
        return np.array([[frozenset((a, b)) in skeleton.edges for b in made.columns] for a in made.columns])

    def _joined_by_feedback(self, made: World) -> BoolArray:
        """Columns of one circle, and what causes one of them, are joined (acyclification: Forre and Mooij, 2017)."""
        place = {x: i for i, x in enumerate(made.columns)}
        arrows = np.zeros((len(place), len(place)), dtype=bool)
        for a, b in (*self.effects, *self.feedback):
            arrows[place[a], place[b]] = True
        causes = self._closed(arrows)
        circle = causes & causes.T
        joined = arrows @ circle | circle
        np.fill_diagonal(joined, False)
        return np.asarray(joined | joined.T)

    @staticmethod
    def _closed(arrows: BoolArray) -> BoolArray:
        """Which column causes which, itself included."""
        causes = arrows | np.eye(len(arrows), dtype=bool)
        for _ in arrows:
            causes = causes @ causes
        return causes

    def _dag(self) -> Dag:
        arrows = {(a, b) for a, b in self.clear.arrows if b not in self.sums}
        return Dag.of(self.clear.nodes, arrows | {(p, x) for x, both in self.sums.items() for p in both})

    def _hidden(self) -> tuple[str, ...]:
        if self.fault != "hidden":
            return ()
        count = max(2, round(len(self.order) * self.draw.uniform(0.2, 0.4)))
        return tuple(str(x) for x in self.draw.choice(self.order, size=count, replace=False))

    def _with_causes(self, made: World) -> World:
        """Little effects and feedback cause, too, but are no links that anybody should see."""
        place = {x: i for i, x in enumerate(made.columns)}
        arrows = np.zeros((len(place), len(place)), dtype=bool)
        for a, b in (*self.effects, *self.feedback):
            arrows[place[a], place[b]] = True
        causes = self._closed(arrows)
        np.fill_diagonal(causes, False)
        return replace(made, cause_of=causes, graph=None if self.fault == "cycles" else made.graph)


FAMILIES: dict[str, Callable[[int, int], World]] = {
    f"{name}, {kind}": partial(fault, name=name, kind=kind) for name in FAULTS for kind in KINDS
}

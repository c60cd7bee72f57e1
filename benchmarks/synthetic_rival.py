"""What a practitioner would do instead: private synthetic rows by AIM, then ordinary discovery, beside the default.

    python -m benchmarks.synthetic_rival [--networks asia child] [--epsilons 0.1 1] [--seeds 1] [--rows 100000]
    dpcurate benchmark --add benchmarks/synthetic_rival.py:AIM_PC      # beside other methods

All learn from the same sample with the same (epsilon, delta = 1e-10), converted to zCDP alike. AIM (McKenna, Mullins,
Sheldon and Miklau, VLDB 2022) runs with all pairs as its workload. Its loop is written after the paper, on the
estimator of `benchmarks.junction`. A network is a name or the path to a .bif or .bif.gz file. Skeleton F1,
CPDAG F1 by arcs, and processor seconds.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.junction import Columns, Model, Noisy, Tables, fitted, megabytes, predictions
from dpcurate import Budget, Curator, networks
from dpcurate.graphs.metrics import arc_rates, skeleton_rates
from dpcurate.learn.methods import PC, Method, OrderSearch, get
from dpcurate.result.fit import FitResult
from dpcurate.schema import Schema

DELTA = 1e-10
MEASURED = 0.9
"""The share of each round that is spent on the measurement; the rest is spent on its choice."""
MEGABYTES = 80
"""How large the model may become by the end."""
STEPS, END = 4, 40
"""The most steps of a round's fit, which goes on from the last, and of the one at the end."""


def counts(codes: dict[str, np.ndarray], sizes: dict[str, int], columns: Columns) -> np.ndarray:
    shape = tuple(sizes[c] for c in columns)
    flat = np.ravel_multi_index(tuple(codes[c] for c in columns), shape)
    return np.bincount(flat, minlength=math.prod(shape)).reshape(shape).astype(float)


def silent(_measured: int, _spent: float) -> None:
    """Nobody watches."""


@dataclass
class Aim:
    """The adaptive and iterative mechanism: in every round measure what the model predicts worst, and fit again."""

    codes: dict[str, np.ndarray]
    sizes: dict[str, int]
    rho: float
    random: np.random.Generator
    watch: Callable[[int, float], None] = silent
    measured: dict[Columns, Noisy] = field(default_factory=dict)
    spent: float = 0.0

    def __post_init__(self) -> None:
        names, count = tuple(self.sizes), len(self.sizes)
        self.weights = {(n,): count - 1 for n in names} | dict.fromkeys(combinations(names, 2), 2 * count - 2)
        self.true = {columns: counts(self.codes, self.sizes, columns) for columns in self.weights}
        rounds = 16 * count
        self.sigma = math.sqrt(rounds / (2 * MEASURED * self.rho))
        self.epsilon = math.sqrt(8 * (1 - MEASURED) * self.rho / rounds)

    def run(self) -> Model:
        """The fitted model."""
        for name in self.sizes:
            self._measure((name,))
        model = self._fit(None, STEPS)
        while self.spent < self.rho * (1 - 1e-9):
            self._spare_no_rest()
            before = predictions(model)
            columns = self._choose(before)
            self._measure(columns)
            model = self._fit(model, STEPS)
            self.watch(len(self.measured), self.spent / self.rho)
            change = np.abs(model.tables()[columns] - before[columns]).sum()
            if change <= self._noise(columns):  # nothing was learnt: look closer
                self.sigma, self.epsilon = self.sigma / 2, self.epsilon * 2
        assert self.spent <= self.rho * (1 + 1e-9)
        return self._fit(model, END)

    def _spare_no_rest(self) -> None:
        """The last round takes what two more could not share."""
        rest = self.rho - self.spent
        if rest <= 2 * (1 / (2 * self.sigma**2) + self.epsilon**2 / 8):
            self.sigma = math.sqrt(1 / (2 * MEASURED * rest))
            self.epsilon = math.sqrt(8 * (1 - MEASURED) * rest)

    def _noise(self, columns: Columns) -> float:
        return math.sqrt(2 / math.pi) * self.sigma * self.true[columns].size

    def _choose(self, guess: Tables) -> Columns:
        """By the exponential mechanism: the largest error beyond the noise that a measurement would have."""
        able = [c for c in self.weights if self._affordable(c)]
        gains = [np.abs(self.true[c] - guess[c]).sum() - self._noise(c) for c in able]
        quality = np.array([self.weights[c] * gain for c, gain in zip(able, gains, strict=True)])
        sensitivity = max(self.weights[c] for c in able)
        self.spent += self.epsilon**2 / 8
        scores = self.epsilon * quality / (2 * sensitivity) + self.random.gumbel(size=len(able))
        return able[int(scores.argmax())]

    def _affordable(self, columns: Columns) -> bool:
        if any(set(columns) <= set(c) for c in self.measured):
            return True
        return megabytes(self.sizes, [*self.measured, columns]) <= MEGABYTES * self.spent / self.rho

    def _measure(self, columns: Columns) -> None:
        true = self.true[columns]
        self.spent += 1 / (2 * self.sigma**2)
        noisy = Noisy(true + self.random.normal(0, self.sigma, true.shape), self.sigma**-2)
        self.measured[columns] = self.measured[columns] + noisy if columns in self.measured else noisy

    def _fit(self, model: Model | None, steps: int) -> Model:
        return fitted(self.sizes, self.measured, model, steps)


# --- as a method of the benchmark ---------------------------------------------------------------------------


@dataclass(frozen=True)
class SyntheticThen:
    """AIM's rows, then an ordinary method, which takes them for free of noise.

    It reads the rows itself and draws its noise in floating point, so its epsilon is a claim.
    """

    method: Method

    def fit_rows(self, table: Any, schema: Schema, budget: Budget, seed: int) -> FitResult:
        synthetic = drawn(table, schema, budget, seed)
        curator = Curator(synthetic, replace(schema, rows=None), budget=Budget.unlimited(), insecure_seed=seed)
        return replace(self.method.fit(curator), claimed=budget.epsilon)


AIM_PC, AIM_ORDER = SyntheticThen(PC()), SyntheticThen(OrderSearch())


def drawn(
    table: Any, schema: Schema, budget: Budget, seed: int, watch: Callable[[int, float], None] = silent
) -> dict[str, np.ndarray]:
    """As many rows as there are, from AIM's model of them."""
    schema.check_levels(schema.names, "AIM")
    levels = {column.name: np.array(column.levels, dtype=object) for column in schema.columns}
    place = {name: {level: i for i, level in enumerate(of)} for name, of in levels.items()}
    codes = {name: np.array([place[name][cell] for cell in table[name]]) for name in levels}
    sizes, random = {name: len(of) for name, of in levels.items()}, np.random.default_rng(seed)
    rows = len(next(iter(codes.values())))
    made = Aim(codes, sizes, budget.ceiling, random, watch).run().rows(rows, random)
    return {name: of[made[name]] for name, of in levels.items()}


# --- the comparison -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Told:
    name: str
    f1: float
    cpdag: float
    seconds: float


def compare(world: networks.Network, epsilon: float, rows: int, seed: int) -> Iterator[Told]:
    budget = Budget(epsilon=epsilon, delta=DELTA)
    table = world.sample(rows, seed=seed)
    start = time.process_time()
    graph = get("auto").fit(Curator(table, world.schema, budget=budget, insecure_seed=seed)).graph
    yield _told("default", graph, world, time.process_time() - start)
    start = time.process_time()
    synthetic, error = synthesised(world, rows, budget, seed)
    spent = time.process_time() - start
    for name, method in (("AIM + PC", PC()), ("AIM + order search", OrderSearch())):
        start = time.process_time()
        found = method.fit(Curator(synthetic, world.schema, budget=Budget.unlimited(), insecure_seed=seed)).graph
        yield _told(name, found, world, spent + time.process_time() - start)
    print(f"mean total variation of all pairs, synthetic rows against the sample: {error:.4f}", flush=True)


def _told(name: str, graph: Any, world: networks.Network, seconds: float) -> Told:
    return Told(name, skeleton_rates(graph, world.dag).f1, arc_rates(graph, world.cpdag).f1, seconds)


def watch(measured: int, spent: float) -> None:
    print(f"{measured} tables measured, {spent:.0%} spent", file=sys.stderr, flush=True)


def synthesised(world: networks.Network, rows: int, budget: Budget, seed: int) -> tuple[dict[str, np.ndarray], float]:
    """AIM's rows in the levels of the network, and how far their pairs are from those of the sample."""
    table, sizes = world.sample(rows, seed=seed), {v.name: len(v.levels) for v in world.variables}
    synthetic = drawn(table, world.schema, budget, seed, watch)
    both = [_codes(cells, world) for cells in (table, synthetic)]
    gaps = [np.subtract(*(counts(c, sizes, p) for c in both)) for p in combinations(sizes, 2)]
    return synthetic, float(np.mean([np.abs(gap).sum() / (2 * rows) for gap in gaps]))


def _codes(table: Any, world: networks.Network) -> dict[str, np.ndarray]:
    return {v.name: np.array([v.levels.index(cell) for cell in table[v.name]]) for v in world.variables}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", nargs="+", default=["asia", "child"])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.1, 1])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first", type=int, default=30_000)
    parser.add_argument("--rows", type=int, default=100_000)
    given = parser.parse_args()
    for name in given.networks:
        stem = Path(name).name.split(".")[0]
        for epsilon in given.epsilons:
            for seed in range(given.first, given.first + given.seeds):
                for told in compare(networks.load(name), epsilon, given.rows, seed):
                    figures = f"F1 {told.f1:.3f}  CPDAG {told.cpdag:.3f}  {told.seconds:.1f} s"
                    print(f"{stem:<10} eps {epsilon:<5g} seed {seed}  {told.name:<20} {figures}", flush=True)


if __name__ == "__main__":
    main()

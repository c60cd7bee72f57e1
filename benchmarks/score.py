"""The score-based family, measured: `python benchmarks/score.py six | recovery | figure3 [--seeds N]`.

six       skeleton and CPDAG F1 on the six networks, n = 100,000, delta = 1e-10, add-remove
recovery  NOTEARS on random linear-Gaussian worlds against a plain implementation over rows
figure3   iterations against budget for CURATE's three increments: Lemma 2, closed form, simulation
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from dpcurate import Budget, Curator, networks
from dpcurate.graphs.metrics import score
from dpcurate.learn.methods import CurateScore, Noleaks, Notears, NotearsOnMoments
from dpcurate.learn.score.descent import Descent, Lagrangian
from dpcurate.published import PublishedCurateScore, PublishedNoleaks, schedules
from dpcurate.published.reproduction.runs import first_of

DELTA, ROWS = 1e-10, 100_000
EXACT = "Notears (exact, variance 1)"

PROVED: dict[str, Any] = {
    "NotearsOnMoments": NotearsOnMoments(),
    "Noleaks": Noleaks(),
    "CurateScore": CurateScore(),
    "CurateScore, reacting": CurateScore(budgets="released"),
    "CurateScore, adaptive clip": CurateScore(clipping="quantile"),
}


def published(epsilon: float) -> dict[str, Any]:
    """The unproved variants at a claimed epsilon; CURATE's eps_0 is what 20 multiplicative steps take from it."""
    first = first_of(epsilon, 20)
    return {
        "Noleaks, published": PublishedNoleaks.sharing(epsilon, 20),
        "CurateScore, published": PublishedCurateScore(first=first, iterations=20, schedule="run"),
    }


def curator(table: Any, schema: Any, epsilon: float | None, seed: int) -> Curator:
    if epsilon is None:
        return Curator(table, schema, budget=Budget.unlimited())
    budget = Budget(epsilon=epsilon, delta=DELTA)
    return Curator(table, schema, budget=budget, allow_unproved=True, insecure_seed=seed)


def six(seeds: int, only: str) -> None:
    names = networks.SHIPPED
    print(f"| method | eps | {' | '.join(names)} | mean skeleton F1 | mean CPDAG F1 | s a run |")
    print(f"|---|---|{'---|' * (len(names) + 3)}")
    tables = {(n, s): networks.load(n).sample(ROWS, seed=s) for n in names for s in range(seeds)}
    if only in EXACT:
        row(tables, EXACT, Notears(scale="moments", threshold=0.1, refine="none"), None, seeds)
    for epsilon in (0.1, 1.0, 10.0):
        for label, method in {**PROVED, **published(epsilon)}.items():
            if only in label:
                row(tables, label, method, epsilon, seeds)


def row(tables: Any, label: str, method: Any, epsilon: float | None, seeds: int) -> None:
    skeleton, cpdag, began = [], [], time.perf_counter()
    for name in networks.SHIPPED:
        network = networks.load(name)
        runs = [method.fit(curator(tables[name, s], network.schema, epsilon, 1000 + s)).graph for s in range(seeds)]
        found = [score(graph, network.dag.cpdag()) for graph in runs]
        skeleton.append(np.mean([f.skeleton_f1 for f in found]))
        cpdag.append(np.mean([f.cpdag_f1 for f in found]))
    each = (time.perf_counter() - began) / seeds / len(skeleton)
    cells = " | ".join(f"{x:.2f}" for x in skeleton)
    amount = "-" if epsilon is None else f"{epsilon:g}"
    print(f"| {label} | {amount} | {cells} | {np.mean(skeleton):.3f} | {np.mean(cpdag):.3f} | {each:.2f} |", flush=True)


# --- recovery ----------------------------------------------------------------------------------------


def plain_notears(x: np.ndarray, penalty: float = 0.1) -> np.ndarray:
    """NOTEARS as its paper states it, over the rows: the thing to compare with."""
    from scipy.linalg import expm
    from scipy.optimize import minimize

    n, d = x.shape
    x = x - x.mean(axis=0)
    bounds = [(0, 0) if i == j else (0, None) for _ in range(2) for i in range(d) for j in range(d)]
    alpha, rho, h, both = 0.0, 1.0, np.inf, np.zeros(2 * d * d)

    def joined(v: np.ndarray) -> np.ndarray:
        return (v[: d * d] - v[d * d :]).reshape(d, d)

    def objective(v: np.ndarray) -> tuple[float, np.ndarray]:
        w = joined(v)
        rest = x - x @ w
        power = expm(w * w)
        cycle = np.trace(power) - d
        g = -x.T @ rest / n + (rho * cycle + alpha) * power.T * 2 * w
        value = 0.5 / n * (rest**2).sum() + penalty * v.sum() + 0.5 * rho * cycle**2 + alpha * cycle
        return value, np.concatenate([(g + penalty).ravel(), (-g + penalty).ravel()])

    for _ in range(100):
        while rho < 1e16:
            new = minimize(objective, both, jac=True, method="L-BFGS-B", bounds=bounds).x
            now = float(np.trace(expm(joined(new) ** 2)) - d)
            if now <= 0.25 * h:
                break
            rho *= 10
        both, h = new, now
        alpha += rho * h
        if h <= 1e-8 or rho >= 1e16:
            break
    return joined(both)


METHODS: dict[str, Callable[[], Notears]] = {
    "path": lambda: Notears(refine="none"),
    "path+search": Notears,
    "Lagrangian, exp": lambda: Notears(
        refine="none", descent=Descent(penalty=0.1, acyclicity="exp", rule=Lagrangian(), tolerance=2.2e-9)
    ),
}


def directed(weights: np.ndarray, truth: np.ndarray, threshold: float = 0.3) -> tuple[int, float]:
    """SHD as NOTEARS counts it (extra, missing, reversed), and the share of true arrows found."""
    found = np.abs(weights) >= threshold
    wrong = found != truth.astype(bool)
    return int(np.triu(wrong | wrong.T).sum()), float((found & (truth > 0)).sum() / max(1, truth.sum()))


def recovery(seeds: int, sizes: tuple[int, ...], plain: bool) -> None:
    print("| d | arcs | kind | seed | method | SHD | TPR | seconds |\n|---|---|---|---|---|---|---|---|")
    for d in sizes:
        for arcs in (d, 2 * d):
            for kind in ("er", "scale-free"):
                for seed in range(seeds):
                    _recover(d, arcs, kind, seed, plain)


def _recover(d: int, arcs: int, kind: Any, seed: int, plain: bool) -> None:
    dag = networks.random_dag(d, edges=arcs, kind=kind, seed=seed)
    world = networks.random_linear(dag, seed=seed)
    table, truth = world.sample(1000, seed=seed), dag.adjacency()
    head = f"| {d} | {arcs} | {kind} | {seed} |"
    for label, make in METHODS.items():
        if label == "Lagrangian, exp" and not plain:
            continue
        queryable = Curator(table, world.schema, budget=Budget.unlimited())
        began = time.perf_counter()
        graph = make().fit(queryable).graph
        took = time.perf_counter() - began
        shd, tpr = directed(graph.adjacency().astype(float), truth)
        print(head, f"{label} | {shd} | {tpr:.3f} | {took:.2f} |", flush=True)
    if plain:
        began = time.perf_counter()
        weights = plain_notears(np.column_stack([table[n] for n in dag.nodes]))
        took = time.perf_counter() - began
        shd, tpr = directed(weights, truth)
        print(head, f"plain, rows | {shd} | {tpr:.3f} | {took:.2f} |", flush=True)


# --- figure 3 ----------------------------------------------------------------------------------------


def figure3() -> None:
    print("| total | eps_0 | increment | Lemma 2 | closed form | simulated |\n|---|---|---|---|---|---|")
    for total, firsts in ((0.1, (0.001, 0.01)), (1.0, (0.001, 0.01, 0.1)), (10.0, (0.01, 0.1, 1.0, 1.5, 2.0))):
        for first in firsts:
            for kind in schedules.INCREMENTS:
                lemma = schedules.lemma_2(kind, total, first)
                exact = schedules.exact_count(kind, total, first)
                simulated = schedules.simulated_count(kind, total, first) if exact < 3000 else "-"
                print(f"| {total:g} | {first:g} | {kind} | {lemma:.2f} | {exact} | {simulated} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("six", "recovery", "figure3"))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--only", default="", help="only methods whose name holds this")
    parser.add_argument("--sizes", type=int, nargs="+", default=[20, 50, 100])
    parser.add_argument("--plain", action="store_true", help="also run the plain implementation (minutes at d = 50)")
    asked = parser.parse_args()
    if asked.what == "six":
        six(asked.seeds, asked.only)
    elif asked.what == "recovery":
        recovery(asked.seeds, tuple(asked.sizes), asked.plain)
    else:
        figure3()


if __name__ == "__main__":
    main()

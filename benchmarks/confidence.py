"""How true the confidence of the default is: said against found, on worlds it was not fitted on.

    python -m benchmarks.confidence [--worlds dirichlet sharp asia FILE.bif] [--seeds 8] [--first 5000]
        [--results confidence.jsonl] [--write docs/confidence.md]        # runs what is missing, and makes the page
    python -m benchmarks.confidence --fit --first 2000 --seeds 20 --results fit.jsonl      # weights, from other seeds

Every world is learnt at epsilon .1, 1 and 5 from 10,000 and 100,000 rows (add-remove, delta = 1e-10).
"""

from __future__ import annotations

import argparse
import json
import sys
from itertools import product
from pathlib import Path

import numpy as np

from benchmarks.confidence_page import page, plot
from benchmarks.confidence_worlds import KINDS, world
from dpcurate import Budget, Curator, fit
from dpcurate.learn.measure_once import confidence as signs
from dpcurate.learn.measure_once import method
from dpcurate.learn.measure_once.arrows import adjacency

EPSILONS, ROWS = (0.1, 1.0, 5.0), (10_000, 100_000)
LEAST = 0.02
"""Pairs less likely than this are not kept; there are thousands."""


def run(name: str, seed: int, rows: int, epsilon: float) -> dict:
    """One table: what was said of every pair worth mentioning, and what is true."""
    found = world(name, seed)
    curator = Curator(
        found.sample(rows, seed=seed + 77),
        found.schema,
        budget=Budget(epsilon=epsilon, delta=1e-10),
        insecure_seed=seed + 900,
    )
    with _spied() as seen:
        learned = fit(curator).learned
    place = {column: i for i, column in enumerate(found.schema.names)}
    pairs = []
    for (a, b), way in learned.direction.items():
        linked, truth = learned.linked[frozenset((a, b))], frozenset((a, b)) in found.dag.edges
        walked, kept, weighed = _signs(seen, place[a], place[b])
        if linked > LEAST or walked > LEAST:
            right = _right(way, (a, b) in found.dag.arrows) if truth else None
            pairs.append([linked, truth, max(way, 1 - way), right, walked, kept, weighed])
    return {"world": name, "seed": seed, "rows": rows, "epsilon": epsilon, "columns": len(place), "pairs": pairs}


def _right(way: float, forward: bool) -> float:
    """Whether the likelier direction is the true one; who says a half is right half the time."""
    return 0.5 if abs(way - 0.5) < 1e-9 else float((way > 0.5) == forward)


class _spied:
    """What the method's confidence was made of."""

    def __enter__(self) -> list:
        self.seen, self.made = [], method.confidence

        def spy(decision, families, *rest):
            self.seen[:] = decision, families, adjacency(decision, families.constraints)
            return self.made(decision, families, *rest)

        method.confidence = spy
        return self.seen

    def __exit__(self, *_: object) -> None:
        method.confidence = self.made


def _signs(seen: list, a: int, b: int) -> tuple[float, bool, list[float]]:
    """P(edge) of the walk over orders, whether the edge was kept, and the signs that are weighed."""
    decision, _, adjacent = seen
    walked, kept = float(decision.probabilities[a, b]), bool(adjacent[a, b])
    if not kept and walked <= signs.UNLIKELY:
        return walked, kept, []
    weigh = signs.signs_of_edge if kept else signs.signs_left_out
    return walked, kept, list(map(float, weigh(*seen, (a, b))))


def weights(runs: list[dict]) -> dict[str, np.ndarray]:
    """Logistic regression of the truth on the signs, for edges kept and for pairs left out."""
    found = {}
    for name, kept in (("KEPT", True), ("LEFT_OUT", False)):
        rows = [(p[6], p[1]) for r in runs for p in r["pairs"] if p[5] == kept and p[6]]
        found[name] = _logistic(np.array([[1, *x] for x, _ in rows]), np.array([y for _, y in rows], dtype=float))
    return found


def _logistic(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Newton's steps with a ridge of one on all but the first weight."""
    w, ridge = np.zeros(x.shape[1]), np.diag([0.0] + [1.0] * (x.shape[1] - 1))
    for _ in range(50):
        p = 1 / (1 + np.exp(-x @ w))
        w = w - np.linalg.solve((x.T * (p * (1 - p))) @ x + ridge, x.T @ (p - y) + ridge @ w)
    return w


def work(asked: list[tuple], results: Path) -> list[dict]:
    """Run what is missing, a line a run, so that a stopped grid goes on where it was."""
    lines = results.read_text(encoding="utf-8").splitlines() if results.exists() else []
    runs = {(r["world"], r["seed"], r["rows"], r["epsilon"]): r for r in map(json.loads, lines)}
    for done, key in enumerate(asked):
        if key not in runs:
            runs[key] = run(*key)
            with results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(runs[key]) + "\n")
            print(f"{done + 1} of {len(asked)}: {key}", file=sys.stderr, flush=True)
    return list(runs.values())


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--worlds", nargs="+", default=list(KINDS), help="kinds of random worlds, networks or files")
    options.add_argument("--seeds", type=int, default=8)
    options.add_argument("--first", type=int, default=5000)
    options.add_argument("--results", type=Path, default=Path("confidence.jsonl"))
    options.add_argument("--write", type=Path, help="make the page, and its figure in figures/ beside it")
    options.add_argument("--fit", action="store_true", help="print weights instead of the page")
    return options


def main() -> None:
    options = parser().parse_args()
    seeds = range(options.first, options.first + options.seeds)
    runs = work(list(product(options.worlds, seeds, ROWS, EPSILONS)), options.results)
    if options.fit:
        print("\n".join(f"{name} = {np.round(w, 2).tolist()}" for name, w in weights(runs).items()))
        return
    if options.write:
        plot(runs, options.write.parent / "figures" / "confidence.png")
        options.write.write_text(page(runs), encoding="utf-8")
    print(page(runs))


if __name__ == "__main__":
    main()

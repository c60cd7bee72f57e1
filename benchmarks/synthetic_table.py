"""How good a fitted model is: its pairs against the world's, the graph that PC finds in its rows, and its effects.

    python -m benchmarks.synthetic_table tables [--worlds asia sachs child random] [--epsilons 0.1 1] [--seeds 3]
    python -m benchmarks.synthetic_table effects [--worlds asia sachs child random] [--epsilons 0.1 1 5] [--seeds 50]
                                                 [--first 0]

`tables`: discover and quantify together at the total (epsilon, delta = 1e-10), n = 100,000. Mean total variation over
all pairs between the model's own tables and the true ones (and the rows it learnt from), beside that of tables fitted
to the true graph without privacy; skeleton F1 of the model's graph, and of PC (G test, .01) on as many synthetic rows;
processor seconds. `effects`: given the true graph, how often 95 % intervals of all effects hold the truth, and their
median width, as a multiple of the width without privacy. `random` are random networks, another for each
seed, but for those whose tables are too large for a model.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from itertools import combinations

import numpy as np

from dpcurate import Budget, Curator, Model, fit, networks, quantify
from dpcurate.graphs.metrics import skeleton_rates
from dpcurate.learn.methods import PC
from dpcurate.models.fitting import MOST_CELLS
from dpcurate.networks.network import Network
from dpcurate.networks.worlds import random_dag, random_network

DELTA = 1e-10
ROWS = 100_000
NO_PRIVACY = 1e4
"""An epsilon at which noise is nothing beside sampling."""
SHARE = 0.5


def world(name: str, seed: int) -> Network:
    """A network by name, or a random one."""
    if name != "random":
        return networks.load(name)
    size = 6 + 4 * (seed % 3)
    return random_network(random_dag(size, degree=2.2, seed=seed), levels=(2, 4), seed=seed)


def fitted(net: Network, epsilon: float, seed: int, share: float = SHARE, *, given: bool = False) -> Model:
    """Discover and quantify; `given` fits the true graph."""
    curator = Curator(
        net.sample(ROWS, seed=seed), net.schema, budget=Budget(epsilon=epsilon, delta=DELTA), insecure_seed=seed
    )
    found = fit(curator, share=(1 - share) * curator.remaining)
    return quantify(found, curator, dag=net.dag if given else None)


def pairs_of(net: Network | Model, nodes: tuple[str, ...]) -> list[np.ndarray]:
    return [net.marginal(pair) for pair in combinations(nodes, 2)]


def apart(one: list[np.ndarray], other: list[np.ndarray]) -> float:
    """Mean total variation."""
    return float(np.mean([np.abs(p - q).sum() / 2 for p, q in zip(one, other, strict=True)]))


def sample_pairs(net: Network, seed: int) -> list[np.ndarray]:
    codes = net.codes(ROWS, seed=seed).astype(int)
    sizes = [len(v.levels) for v in net.variables]
    tables = []
    for a, b in combinations(range(len(sizes)), 2):
        counts = np.bincount(codes[:, a] * sizes[b] + codes[:, b], minlength=sizes[a] * sizes[b])
        tables.append(counts.reshape(sizes[a], sizes[b]) / ROWS)
    return tables


def pc_on(table: dict[str, np.ndarray], net: Network) -> float:
    """Skeleton F1 of PC on rows that may be shown."""
    shown = Curator(table, net.schema, budget=Budget.unlimited(), allow_unproved=True)
    return float(skeleton_rates(fit(shown, PC(test="g", alpha=0.01)).graph, net.dag).f1)


def tables(names: list[str], epsilons: list[float], seeds: int, shares: list[float]) -> None:
    print("world epsilon share | TV to the truth (without privacy) | to the rows | F1, PC on synthetic rows | seconds")
    for name in names:
        for epsilon in epsilons:
            for share in shares:
                rows = [_table(world(name, seed), epsilon, seed, share, name) for seed in range(seeds)]
                truth, floor, sample, f1, pc, seconds = np.mean(rows, axis=0)
                print(
                    f"{name:7} {epsilon:<5g} {share:.2f} | {truth:.5f} ({floor:.5f}) | {sample:.5f} | {f1:.2f} "
                    f"{pc:.2f} | {seconds:.1f}",
                    flush=True,
                )


def _table(net: Network, epsilon: float, seed: int, share: float, name: str) -> tuple[float, ...]:
    start = time.process_time()
    model = fitted(net, epsilon, seed, share)
    seconds = time.process_time() - start
    own, truth = pairs_of(model, net.nodes), pairs_of(net, net.nodes)
    plain = pairs_of(fitted(net, NO_PRIVACY, seed, given=True), net.nodes) if name != "random" else truth
    pc = pc_on(model.sample(ROWS, seed=seed), net) if epsilon >= 1 and name != "random" else np.nan
    f1 = skeleton_rates(model.dag, net.dag).f1
    return apart(own, truth), apart(plain, truth), apart(own, sample_pairs(net, seed)), f1, pc, seconds


def effects(names: list[str], epsilons: list[float], seeds: int, first: int) -> None:
    print("world epsilon | intervals that hold the truth | median width | as a multiple of that without privacy")
    for name in names:
        chosen = [seed for seed in range(first, first + seeds) if _largest(world(name, seed)) <= MOST_CELLS]
        plain = [one[1] for one in _intervals(name, NO_PRIVACY, chosen[:10])]
        for epsilon in epsilons:
            hits, widths = zip(*_intervals(name, epsilon, chosen), strict=True)
            inside, wide = np.concatenate(hits), np.concatenate(widths)
            ratio = np.median(np.concatenate(widths[: len(plain)]) / np.concatenate(plain))
            print(
                f"{name:7} {epsilon:<4g} | {inside.mean():.3f} of {len(inside)} | {np.median(wide):.4f} | {ratio:.2f}",
                flush=True,
            )


def _largest(net: Network) -> int:
    """Cells of the largest table of a column and its parents: a model has none of more than MOST_CELLS."""
    return max(v.probabilities.size for v in net.variables)


def _intervals(name: str, epsilon: float, seeds: list[int]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for seed in seeds:
        net = world(name, seed)
        model = fitted(net, epsilon, seed, given=True)
        hits, widths = [], []
        for cause in net.nodes:
            would = {level: net.do({cause: level}) for level in net[cause].levels}
            for outcome in net.nodes:
                if outcome == cause or (effect := model.effect(cause, outcome)).state != "estimated":
                    continue
                at = net[outcome].levels.index(effect.level)
                truth = would[effect.to].marginal([outcome])[at] - would[effect.instead_of].marginal([outcome])[at]
                hits.append(effect.low - 1e-12 <= truth <= effect.high + 1e-12)
                widths.append(effect.high - effect.low)
        yield np.array(hits), np.array(widths)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("tables", "effects"))
    parser.add_argument("--worlds", nargs="+", default=["asia", "sachs", "child"])
    parser.add_argument("--epsilons", nargs="+", type=float)
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--first", type=int, default=0, help="the first seed of effects")
    parser.add_argument("--shares", nargs="+", type=float, default=[SHARE])
    args = parser.parse_args()
    if args.what == "tables":
        tables(args.worlds, args.epsilons or [0.1, 1.0], args.seeds or 3, args.shares)
    else:
        effects(args.worlds, args.epsilons or [0.1, 1.0, 5.0], args.seeds or 50, args.first)


if __name__ == "__main__":
    main()

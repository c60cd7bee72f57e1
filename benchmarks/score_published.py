"""Score-based CURATE against NOLEAKS, both as published: the same skeleton F1 at less claimed leakage?

    python -m benchmarks.score_published [--seeds 12] [--networks cancer asia]

At equal eps_0 every gradient of NOLEAKS gets the epsilon that CURATE's schedule starts with; at equal total
both stop at CURATE's mean claimed epsilon. The threshold is chosen with the true graph, by the artifact's
rule. n = 100,000, one table a network, noise seeds. NOT PRIVATE, simulated data. Takes seconds.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

import numpy as np

from dpcurate.graphs.graph import Dag
from dpcurate.learn.score.acyclic import dag_of, reachable
from dpcurate.published import PublishedCurateScore, PublishedNoleaks
from dpcurate.published.reproduction.grid import ROWS, world
from dpcurate.published.reproduction.rehearsal import Rehearsal, memory

NETWORKS = ("cancer", "earthquake", "survey", "asia")
MAKERS: dict[str, Any] = {
    "coded": (PublishedCurateScore, PublishedNoleaks),
    "printed": (PublishedCurateScore.printed, PublishedNoleaks.printed),
}
ALL = 1e-9
"""A threshold that leaves every weight in the evidence."""


def artifact_f1(weights: Any, truth: Dag) -> float:
    """The best skeleton F1 over thresholds 0, 0.001, ..., 1.999 at which the plain threshold leaves a DAG."""
    best = 0.0
    for threshold in np.unique(np.ceil(np.abs(weights) * 1000) / 1000 + 1e-12):
        arrows = np.abs(weights) >= threshold
        if threshold < 2 and not (reachable(arrows) & reachable(arrows).T & ~np.eye(len(arrows), dtype=bool)).any():
            edges = dag_of(truth.nodes, arrows).edges
            best = max(best, 2 * len(edges & truth.edges) / (len(edges) + len(truth.edges)))
    return best


def measured(method: Any, network: str, seeds: int) -> tuple[float, float, float, float]:
    """Mean F1, its standard error, mean claimed epsilon and mean number of gradients."""
    known, truth = memory(network, ROWS), world(network, ROWS).dag
    place = {name: i for i, name in enumerate(truth.nodes)}
    f1, claimed, calls = [], [], []
    for seed in range(seeds):
        found = replace(method, threshold=ALL).fit(Rehearsal(known, f"{network}/{seed}"))
        weights = np.zeros((len(place), len(place)))
        for e in found.evidence:
            weights[place[e.pair[0]], place[e.pair[1]]] = e.value
        f1.append(artifact_f1(weights, truth))
        claimed.append(found.claimed)
        calls.append(found.tests[0])
    return float(np.mean(f1)), float(np.std(f1) / seeds**0.5), float(np.mean(claimed)), float(np.mean(calls))


def show(network: str, label: str, figures: tuple[float, float, float, float]) -> None:
    print("| {} | {} | {:.2f} | {:.2f} | {:.2f} | {:.0f} |".format(network, label, *figures), flush=True)


def compare(network: str, preset: str, seeds: int) -> None:
    curate, noleaks = MAKERS[preset]
    ours = measured(curate(first=0.01, iterations=30), network, seeds)
    show(network, f"CURATE, {preset}, eps_0 = .01, I = 30", ours)
    show(network, f"NOLEAKS, {preset}, the same eps_0", measured(noleaks(each=0.01), network, seeds))
    shared = noleaks(each=ours[2] / round(ours[3]), total=ours[2])  # over as many gradients as CURATE took
    show(network, f"NOLEAKS, {preset}, the same total", measured(shared, network, seeds))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--networks", nargs="+", default=NETWORKS)
    options = parser.parse_args()
    print("| network | method | skeleton F1 | its error | claimed epsilon | gradients |\n|---|---|---|---|---|---|")
    for network in options.networks:
        for preset in ("coded", "printed"):
            compare(network, preset, options.seeds)


if __name__ == "__main__":
    main()

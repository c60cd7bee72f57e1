"""All methods side by side on the six networks: skeleton F1 against the true network, fresh data and noise seeds.

    python -m benchmarks.compare [--seeds 20] [--rows 100000] [--epsilons 0.03 0.1 1 5] [--methods measure-once em-pc]

What the methods are is told in methods.py (add-remove, delta = 1e-10). Figures are of the best-f1 cut; the last two
columns are means at the default cut, P(edge) of 1/2 and arrows from 0.8 on. Runs are kept in a file and not made
again; a change of a method asks for a new file.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from benchmarks.harness import Results, command, spread
from benchmarks.methods import EXACT, PROVED, PUBLISHED, SIX, learned
from benchmarks.pages.methods import head, line
from dpcurate import networks
from dpcurate.graphs.metrics import arc_rates, skeleton_rates
from dpcurate.result.threshold import Threshold, graph_at


@dataclass(frozen=True, slots=True)
class Run:
    """Skeleton F1, CPDAG F1 by arcs, and seconds of one run; both F1 again of what `discover` draws."""

    method: str
    network: str
    rows: int
    epsilon: float
    seed: int
    f1: float
    cpdag: float
    seconds: float
    f1_half: float
    cpdag_half: float

    @property
    def key(self) -> Hashable:
        return self.method, self.network, self.rows, self.epsilon, self.seed


def run(method: str, network: str, rows: int, epsilon: float, seed: int) -> Run:
    """One method on one table."""
    world = networks.load(network)
    found, seconds = learned(method, network, rows, epsilon, seed)
    best, half = (
        (skeleton_rates(graph, world.dag).f1, arc_rates(graph, world.cpdag).f1)
        for graph in (found.graph, graph_at(found, Threshold()))
    )
    return Run(method, network, rows, epsilon, seed, *best, seconds, *half)


def main() -> None:
    """Print a line for each method and epsilon."""
    words = command(__doc__, results="speed/compare.jsonl")
    words.add_argument("--seeds", type=int, default=20)
    words.add_argument("--rows", type=int, default=100_000)
    words.add_argument("--epsilons", type=float, nargs="*", default=[0.03, 0.1, 1, 5])
    words.add_argument("--methods", nargs="*", default=[*EXACT, *PROVED, *PUBLISHED])
    words.add_argument("--networks", nargs="*", default=SIX)
    words.add_argument("--workers", type=int, default=2)
    args = words.parse_args()
    results = Results(args.results, Run, lambda found: found.key)
    print(head(args.networks))
    for method in args.methods:
        for epsilon in [float("inf")] if method in EXACT else args.epsilons:
            asked = [
                (method, network, args.rows, epsilon, seed) for network in args.networks for seed in range(args.seeds)
            ]
            for found in spread(run, [job for job in asked if job not in results], args.workers):
                results.keep(found)
            print(line(method, epsilon, [r for r in results.rows if r.key in set(asked)], args.networks), flush=True)


if __name__ == "__main__":
    main()

"""The default on wide tables, beside what exact methods reach on the same rows: figures with their ceiling.

    python -m benchmarks.wide --networks FOLDER [--epsilons 0.1 1 5] [--seeds 3] [--shuffled] [--resume]
                              [--write docs/wide.md]

Networks are names (`dpcurate.networks.names()`), BIF files, or folders of these. Every run is kept in a file as soon as
it ends, by network, method, epsilon, rows, seed and version of the method's code. --resume skips what is there;
without it the runs asked for are made again, so that one cell can be. The page is written from that file alone.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, astuple, dataclass
from multiprocessing import get_context
from pathlib import Path
from random import Random

import dpcurate
from benchmarks.wide_page import page
from dpcurate import Budget, Curator, networks
from dpcurate.graphs.metrics import arc_rates, skeleton_rates
from dpcurate.learn.methods import get
from dpcurate.result.threshold import Threshold, graph_at
from dpcurate.schema import Schema

SOURCE = Path(dpcurate.__file__).parent
CODE = {"auto": ("learn/measure_once", "private"), "pc": ("learn/constraint",), "order-search": ("learn/score",)}
"""Where the code is on which the graphs of a method depend: a change there makes another version."""
FIVE = ("insurance", "alarm", "hailfinder", "hepar2", "win95pts")
DELTA = 1e-10


@dataclass(frozen=True, slots=True)
class Key:
    """One run. The epsilon of an exact method is None."""

    network: str
    method: str
    epsilon: float | None
    rows: int
    seed: int
    version: str
    shuffled: bool = False
    """Whether the schema has the columns in a random order; a network's file mostly has causes first."""


@dataclass(frozen=True, slots=True)
class Run:
    """What a run found; seconds are of processor time with one thread, from the open table to the graph.

    Rates are of the graph of the highest expected F1, those of half of the one that `discover` draws.
    """

    key: Key
    columns: int
    f1: float
    precision: float
    recall: float
    cpdag: float
    seconds: float
    f1_half: float = math.nan
    cpdag_half: float = math.nan


class Results:
    """Runs by their keys in one JSON file; the last one of a key counts."""

    def __init__(self, path: Path) -> None:
        self.path, self.runs = path, {}
        for row in json.loads(path.read_text(encoding="utf-8")) if path.exists() else []:
            run = Run(**(row | {"key": Key(**row["key"])}))
            self.runs[run.key] = run

    def keep(self, run: Run) -> None:
        self.runs.pop(run.key, None)  # so that the newest stands last
        self.runs[run.key] = run
        self.path.parent.mkdir(parents=True, exist_ok=True)
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps([asdict(r) for r in self.runs.values()], indent=1), encoding="utf-8")
        os.replace(part, self.path)  # a run that is stopped leaves whole files


def version(method: str) -> str:
    """A mark of the method's code as it stands."""
    text = hashlib.sha256()
    for path in sorted(p for folder in CODE[method] for p in (SOURCE / folder).rglob("*.py")):
        text.update(path.read_bytes())
    return text.hexdigest()[:8]


def found(words: list[str]) -> dict[str, str]:
    """What to load each network from, by its name; a folder stands for the files in it."""
    paths = [p for word in words for p in (sorted(Path(word).glob("*.bif*")) if Path(word).is_dir() else [word])]
    return {Path(p).name.removesuffix(".gz").removesuffix(".bif"): str(p) for p in paths}


def keys(names: list[str], options: argparse.Namespace) -> Iterator[Key]:
    for method in options.methods:
        mark = version(method)
        for epsilon in options.epsilons if method == "auto" else (None,):
            for name in names:
                for seed in range(options.first, options.first + options.seeds):
                    yield Key(name, method, epsilon, options.rows, seed, mark, options.shuffled)


def shuffled(schema: Schema, seed: int) -> Schema:
    return Schema(tuple(Random(seed).sample(schema.columns, len(schema.columns))))


def measure(source: str, key: Key) -> Run:
    """The seed draws rows and noise, so that all methods see the same table. The row count stays private."""
    world = networks.load(source)
    budget = Budget.unlimited() if key.epsilon is None else Budget(epsilon=key.epsilon, delta=DELTA)
    schema = shuffled(world.schema, key.seed) if key.shuffled else world.schema
    curator = Curator(world.sample(key.rows, seed=key.seed), schema, budget=budget, insecure_seed=key.seed)
    start = time.process_time()
    learned = get(key.method).fit(curator)
    seconds = time.process_time() - start
    edges, arrows = skeleton_rates(learned.graph, world.dag), arc_rates(learned.graph, world.cpdag)
    half = graph_at(learned, Threshold())
    halves = skeleton_rates(half, world.dag).f1, arc_rates(half, world.cpdag).f1
    return Run(key, len(world.nodes), edges.f1, edges.precision, edges.recall, arrows.f1, seconds, *halves)


def work(sources: dict[str, str], asked: list[Key], results: Results, workers: int) -> None:
    os.environ |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")  # or waiting threads count as work
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        jobs = [pool.submit(measure, sources[key.network], key) for key in asked]
        for job in as_completed(jobs):
            run = job.result()
            results.keep(run)
            network, method, epsilon, _, seed, _, _ = astuple(run.key)
            budget = math.inf if epsilon is None else epsilon
            told = f"F1 {run.f1:.3f}  CPDAG {run.cpdag:.3f}  at 1/2 {run.f1_half:.3f} {run.cpdag_half:.3f}"
            told += f"  {run.seconds:.1f} s"
            print(f"{network:<12} {method:<13} eps {budget:<5g} seed {seed}  {told}", flush=True)


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--networks", nargs="+", default=FIVE, help="names, BIF files, folders of BIF files")
    options.add_argument("--methods", nargs="+", default=list(CODE), choices=list(CODE))
    options.add_argument("--epsilons", type=float, nargs="+", default=[0.1, 1, 5])
    options.add_argument("--seeds", type=int, default=3, help="how many")
    options.add_argument("--first", type=int, default=20_000, help="the first of them")
    options.add_argument("--rows", type=int, default=100_000)
    options.add_argument("--workers", type=int, default=1)
    options.add_argument("--results", type=Path, default=Path("speed/wide.json"), help="the file of runs")
    options.add_argument("--shuffled", action="store_true", help="columns in a random order, another one for each seed")
    options.add_argument("--resume", action="store_true", help="leave out runs that the file has")
    options.add_argument("--write", type=Path, metavar="PAGE", help="write the page, such as docs/wide.md")
    return options


def main() -> None:
    options = parser().parse_args()
    results, sources = Results(options.results), found(options.networks)
    asked = [k for k in keys(list(sources), options) if not (options.resume and k in results.runs)]
    work(sources, asked, results, options.workers)
    text = page([r for r in results.runs.values() if r.key.rows == options.rows])
    print(text)
    if options.write:
        options.write.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

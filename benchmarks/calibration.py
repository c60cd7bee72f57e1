"""How true P(edge) is: stated against true, family by family, on worlds that users have and the fit has not seen.

    python -m benchmarks.calibration --results FILE [--families linear bent] [--seeds 6] [--first 1000] [--workers 2]
    python -m benchmarks.calibration --results FILE --compare   # what was seen, fitted and judged, no run
    python -m benchmarks.calibration --results FILE --write docs/confidence.md

Each seed has one number of rows and is learnt at every epsilon. A run is one line of the results; runs that are there
for this version of the method's code are not made again. Families in `HELD_OUT` are no part of a fit.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import os
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.wide import version
from benchmarks.worlds import FAMILIES, World, faults
from dpcurate import Budget, Curator, fit
from dpcurate.learn.measure_once import confidence, method
from dpcurate.learn.measure_once.arrows import adjacency

DELTA = 1e-10
ROWS = (2_000, 20_000, 100_000)
EPSILONS = (0.1, 1.0, 10.0)
LEAST = 0.02
"""Pairs less likely than this are counted, not kept; there are thousands."""
HELD_OUT = frozenset(
    {
        "networks", "wide", "hubs of levels", "hubs of numbers", "dense linear", "lognormal", "rounded",
        "independent numbers", "independent mixed", "mixed, long lists", "missing drop", "clustered", "exact copies",
        "near copies of numbers", "hidden, networks", "hidden, mixtures", "rare levels", "many levels, wide",
    }
).union(faults.FAMILIES)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Key:
    """One run."""

    family: str
    seed: int
    rows: int
    epsilon: float
    version: str


@dataclass(frozen=True, slots=True)
class Run:
    """What a run stated.

    Of each pair: P(edge), the truth, the walk's log odds, whether it was drawn, its signs, and whether no set of
    columns of the table separates it.
    """

    key: Key
    columns: int
    levels: bool
    """Measured by levels, not by features."""
    edges: int
    """In truth."""
    verdict: str
    f1: tuple[float, float, float]
    """As the verdict expects it, and its range."""
    fit: dict[str, Any] | None
    seconds: float
    pairs: list[list[Any]]
    unlikely: int
    """Edges among the pairs that are not kept."""
    directions: str = ""
    """The verdict on directions."""
    effect: float = math.nan
    """The smallest correlation that the run could see."""


def measure(family: str, seed: int, rows: int, epsilons: Iterable[float], code: str) -> list[Run]:
    """The same table at every epsilon."""
    world = FAMILIES[family](seed, rows)
    return [_run(world, Key(family, seed, rows, epsilon, code)) for epsilon in epsilons]


def _run(world: World, key: Key) -> Run:
    budget = Budget(epsilon=key.epsilon, delta=DELTA)
    curator = Curator(dict(world.table), world.schema, budget=budget, insecure_seed=key.seed)
    start = time.process_time()
    with _spied() as seen:
        found = fit(curator)
    seconds = time.process_time() - start
    pairs, unlikely, names = [], 0, world.columns
    for a in range(len(names)):
        for b in range(a + 1, len(names)):
            stated = found.learned.linked.get(frozenset((names[a], names[b])), 0.0)
            truth, (walk, drawn, weighed) = bool(world.adjacent[a, b]), _signs(seen, a, b)
            if max(stated, walk) <= LEAST:
                unlikely += truth
                continue
            signs, joined = [round(x, 2) for x in weighed], int(world.inseparable[a, b])
            pairs.append([round(stated, 4), int(truth), _log_odds(walk), int(drawn), signs, joined])
    verdict, checked = found.verdict, getattr(found.learned, "fit", None)
    return Run(
        key=key,
        columns=len(names),
        levels=all(c.kind == "categorical" for c in world.schema.columns),
        edges=int(world.adjacent.sum()) // 2,
        verdict=verdict.level if verdict else "",
        f1=(verdict.f1, verdict.low, verdict.high) if verdict else (math.nan,) * 3,
        fit=None if checked is None else checked.to_dict(),
        seconds=round(seconds, 2),
        pairs=pairs,
        unlikely=unlikely,
        directions=found.directions.level if found.directions else "",
        effect=verdict.effect if verdict else math.nan,
    )


def _log_odds(p: float) -> float:
    p = min(max(p, 1e-6), 1 - 1e-6)
    return round(math.log(p / (1 - p)), 2)


class _spied:
    """What the method's confidence was made of."""

    def __enter__(self) -> list[Any]:
        self.seen: list[Any] = []
        self.made = method.confidence

        def spy(decision: Any, families: Any, *rest: Any, **more: Any) -> Any:
            self.seen[:] = decision, families, adjacency(decision, families.constraints)
            return self.made(decision, families, *rest, **more)

        method.confidence = spy
        return self.seen

    def __exit__(self, *_: object) -> None:
        method.confidence = self.made


def _signs(seen: list[Any], a: int, b: int) -> tuple[float, bool, list[float]]:
    """P(edge) of the walk, whether the search drew the edge, and the log odds that may be weighed."""
    decision, families, adjacent = seen
    walk, drawn = float(decision.probabilities[a, b]), bool(adjacent[a, b])
    if not drawn and walk <= LEAST:
        return walk, drawn, []
    given_parents, weakest = confidence.signs(decision, families, adjacent, (a, b))
    given_earlier = _given_other_parents(families, decision, a, b)
    common = int(adjacent[a] @ adjacent[b].astype(int))
    return walk, drawn, [float(x) for x in (weakest, given_parents, given_earlier, common)]


def _given_other_parents(families: Any, decision: Any, a: int, b: int) -> float:
    """The log odds of an edge given the other parents of the earlier column."""
    earlier, later = sorted((a, b), key=decision.order.index)
    return float(families.gain(earlier, later, tuple(x for x in decision.parents[earlier] if x != later)))


class Results:
    """Runs by their keys, a line each, so that a stopped grid goes on where it was."""

    def __init__(self, path: Path) -> None:
        self.path, self.runs = path, dict[Key, Run]()
        if path.exists():
            with gzip.open(path, "rt", encoding="utf-8") as file:
                for line in file:
                    row = json.loads(line)
                    run = Run(**(row | {"key": Key(**row["key"]), "f1": tuple(row["f1"])}))
                    self.runs[run.key] = run

    def keep(self, runs: list[Run]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with gzip.open(self.path, "at", encoding="utf-8") as file:
            for run in runs:
                self.runs[run.key] = run
                file.write(json.dumps(asdict(run)) + "\n")


def work(options: argparse.Namespace, results: Results, code: str) -> None:
    """Run what is missing."""
    os.environ |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
    jobs = []
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        for seed in range(options.first, options.first + options.seeds):
            for family in options.families:
                rows = options.rows[seed % len(options.rows)]
                missing = [e for e in options.epsilons if Key(family, seed, rows, e, code) not in results.runs]
                if missing:
                    jobs.append(pool.submit(measure, family, seed, rows, missing, code))
        for done, job in enumerate(as_completed(jobs)):
            results.keep(job.result())
            print(f"{done + 1} of {len(jobs)}", end="\r", flush=True)


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument(
        "--results", type=Path, required=True, help="a file of runs, .jsonl.gz, outside the repository"
    )
    options.add_argument("--families", nargs="+", default=list(FAMILIES), choices=list(FAMILIES), metavar="FAMILY")
    options.add_argument("--epsilons", type=float, nargs="+", default=list(EPSILONS))
    options.add_argument("--rows", type=int, nargs="+", default=list(ROWS))
    options.add_argument("--seeds", type=int, default=6)
    options.add_argument("--first", type=int, default=1000)
    options.add_argument("--workers", type=int, default=1)
    options.add_argument("--compare", action="store_true", help="fit candidates and judge them on families held out")
    options.add_argument("--write", type=Path, metavar="PAGE", help="write the page, such as docs/confidence.md")
    return options


def main() -> None:
    """Run what is missing and say what was found."""
    from benchmarks.calibration_fit import compare
    from benchmarks.calibration_page import FIGURES, every_family, page, verdicts

    options, code = parser().parse_args(), version("auto")
    results = Results(options.results)
    if not options.compare:
        work(options, results, code)
    runs = list(chosen(results.runs.values(), options, code))
    print(compare(runs) if options.compare else "\n".join([page(runs), *verdicts(runs)]))
    if options.write:
        options.write.write_text(page(runs), encoding="utf-8")
        (options.write.parent / FIGURES).write_text(every_family(runs), encoding="utf-8")


def chosen(runs: Iterable[Run], options: argparse.Namespace, code: str) -> Iterator[Run]:
    """Runs of this version and of what was asked for."""
    for run in runs:
        if run.key.version == code and run.key.family in options.families and run.key.epsilon in options.epsilons:
            yield run


if __name__ == "__main__":
    main()

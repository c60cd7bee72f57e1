"""Directions by family of worlds: what is drawn, what is said, and what is true.

    python -m benchmarks.directions run [--families "weak, numbers" ...] [--rows 3000 20000 100000] [--epsilons 1 1000]
                                        [--seeds 3] [--first 0] [--results speed/directions.jsonl] [--seconds 3600]
    python -m benchmarks.directions page [--results ...] [--write docs/directions.md]

Every run is one line of the file of results; runs that are there are not made again.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.worlds import FAMILIES
from dpcurate import Budget, Curator
from dpcurate.learn.measure_once import MeasureOnce
from dpcurate.result.fit import TRUST

DELTA = 1e-10
LIKELY, SURE = 0.5, 0.8
"""Pairs are drawn from this P(edge) on, as arrows from this P(direction) on."""
BEGIN, END = "<!-- directions by family -->", "<!-- end of directions by family -->"
Run = dict[str, Any]


def measure(family: str, seed: int, rows: int, epsilon: float) -> Run:
    """One run: the verdict, and of every likely pair what is said and what is true."""
    world = FAMILIES[family](seed, rows)
    budget = Budget(epsilon=epsilon, delta=DELTA)
    curator = Curator(dict(world.table), world.schema, budget=budget, insecure_seed=seed)
    start = time.process_time()
    learned = MeasureOnce().fit(curator)
    seconds = time.process_time() - start
    assert learned.fit is not None
    assert learned.directions is not None
    place = {name: i for i, name in enumerate(world.columns)}
    pairs = []
    for (a, b), way in learned.direction.items():
        linked, i, j = learned.linked[frozenset((a, b))], place[a], place[b]
        if linked >= LIKELY:
            truth = bool(world.adjacent[i, j]), bool(world.cause_of[i, j]), bool(world.cause_of[j, i])
            known = learned.causes.get((a, b)), learned.causes.get((b, a))
            pairs.append([round(linked, 4), round(way, 4), *truth, *known])
    return {
        "family": family,
        "seed": seed,
        "rows": rows,
        "epsilon": epsilon,
        "seconds": round(seconds, 2),
        "fit": learned.fit.to_dict(),
        "verdict": learned.directions.level,
        "pairs": pairs,
    }


def stated(runs: Iterable[Run], *, raw: bool = False) -> list[tuple[float, bool, bool, float | None]]:
    """Of each direction: what is said, whether the other end does not cause this one, whether it causes, what is said.

    Where directions cannot be read, `raw` gives what would be said if they could.
    """
    said = []
    for run in runs:
        trust = TRUST[run["verdict"]] if raw else 1.0
        for _, way, linked, ab, ba, cause_ab, cause_ba in run["pairs"]:
            p = 0.5 + (way - 0.5) / trust
            if not linked or max(p, 1 - p) < SURE:
                continue
            right, causes, known = (not ba, ab, cause_ab) if p > LIKELY else (not ab, ba, cause_ba)
            p = max(p, 1 - p)
            said.append((p, right, causes, None if known is None else p * known))
    return said


def _line(name: str, runs: Sequence[Run]) -> list[str]:
    readable = [run for run in runs if run["verdict"] == "readable"]
    others = [run for run in runs if run["verdict"] != "readable"]
    drawn, failing = stated(readable), stated(others, raw=True)
    causes = [(p, true) for _, _, true, p in drawn if p is not None]
    return [
        name,
        str(len(runs)),
        *(f"{sum(run['verdict'] == level for run in runs) / len(runs):.0%}" for level in TRUST),
        _said([p for p, *_ in drawn], [right for _, right, *_ in drawn]),
        _said([p for p, _ in causes], [true for _, true in causes]),
        _said([p for p, *_ in failing], [right and true for _, right, true, _ in failing]),
    ]


def _said(said: Sequence[float], true: Sequence[bool]) -> str:
    return f"{np.mean(said):.2f} / {np.mean(true):.2f} ({len(said)})" if said else "none"


HEADS = ("table", "runs", *TRUST, "b does not cause a", "a causes b", "not drawn, would say")


def table(runs: Sequence[Run], *, by: Sequence[str] = ("family",)) -> str:
    """Said and true, in brackets how many, of directions of at least .8 between linked columns.

    By "fault", families of levels, mixtures and numbers with the same fault are one line.
    """
    groups: dict[tuple[Any, ...], list[Run]] = defaultdict(list)
    for run in runs:
        known = {**run, "fault": run["family"].split(",")[0]}
        groups[tuple(known[key] for key in by)].append(run)
    rows = [_line(", ".join(map(str, key)), groups[key]) for key in sorted(groups, key=str)]
    lines = [HEADS, ["---"] * len(HEADS), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def load(path: Path) -> list[Run]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def work(options: argparse.Namespace) -> None:
    """Make what is not there, seed by seed so that families grow together."""
    done = {(r["family"], r["seed"], r["rows"], r["epsilon"]) for r in load(options.results)}
    stop = time.monotonic() + options.seconds
    options.results.parent.mkdir(parents=True, exist_ok=True)
    for seed in range(options.first, options.first + options.seeds):
        for family in options.families:
            for rows in options.rows:
                for epsilon in options.epsilons:
                    if (family, seed, rows, epsilon) in done or time.monotonic() > stop:
                        continue
                    run = measure(family, seed, rows, epsilon)
                    with options.results.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(run) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "page"])
    parser.add_argument("--families", nargs="+", default=list(FAMILIES), choices=list(FAMILIES), metavar="FAMILY")
    parser.add_argument("--rows", type=int, nargs="+", default=[3_000, 20_000, 100_000])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 1000.0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--by", nargs="+", default=["fault"], choices=["fault", "family", "rows", "epsilon"])
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no run after so long")
    parser.add_argument("--results", type=Path, default=Path("speed/directions.jsonl"))
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table between its marks on this page")
    options = parser.parse_args()
    if options.what == "run":
        work(options)
        return
    text = table([run for run in load(options.results) if run["family"] in options.families], by=options.by)
    print(text)
    if options.write:
        page = options.write.read_text(encoding="utf-8")
        before, rest = page.split(BEGIN)
        options.write.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{rest.split(END)[1]}", encoding="utf-8")


if __name__ == "__main__":
    main()

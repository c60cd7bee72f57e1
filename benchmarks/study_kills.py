"""Kills of sites and of the coordinator in the middle of a study by files: nothing is lost, nothing is paid twice.

    python -m benchmarks.study_kills [--kills 500] [--seed 1]

Every step of a study (a site's answer, the coordinator's combining) runs in a process of its own that is killed at a
random instant and started again, until it is done. Checked: files are whole or absent, whatever is seen of an answer
is the same every time, every ledger ends at exactly what its rounds cost, and the study has a result.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.context import ForkServerContext
from pathlib import Path

import dpcurate
from dpcurate import Discovery, networks, pooling

SITES = ("berlin", "oslo", "rome")
ROWS = 500
LATEST = 1.1
"""Of the time that a step takes when it is left alone: the latest instant of a kill."""
MOST_IN_A_STEP = 3
"""Kills of one step, so that they are spread over a study."""
PRELOADED = ["dpcurate.pooling", "dpcurate.study.calls", "dpcurate.private.curator", "duckdb", "opendp", "scipy.stats"]


def answer(folder: Path, number: int, site: str) -> None:
    """One site answers one round."""
    network = networks.load("cancer")
    table = network.sample(ROWS, seed=SITES.index(site))
    ledger = folder / f"{site}.ledger"
    study = dpcurate.open(table, network.schema, epsilon=None if ledger.exists() else 2.0, ledger=ledger, name=site)
    file = pooling.StudyFile.load(folder / f"study{number}.json")
    pooling.answer_study(file, site, study).save(folder / f"{site}{number}.json")


def combine(folder: Path, number: int, _coordinator: str) -> None:
    """The coordinator puts the answers together."""
    file = pooling.StudyFile.load(folder / f"study{number}.json")
    found = pooling.combine_study(file, [pooling.SiteAnswer.load(folder / f"{site}{number}.json") for site in SITES])
    if isinstance(found, Discovery):
        found.report(folder / "result.json")
    else:
        found.save(folder / f"study{number + 1}.json")


@dataclass
class Kills:
    """What was killed, and what went wrong."""

    source: random.Random
    killed: Counter[str] = field(default_factory=Counter)
    studies: int = 0
    wrong: list[str] = field(default_factory=list)
    _lasted: dict[str, float] = field(default_factory=dict)
    _seen: dict[tuple[str, str, int], bytes] = field(default_factory=dict)

    def study(self, folder: Path, context: ForkServerContext, most: int) -> None:
        """One study from its first file to its result; after so many kills in all its steps are left alone."""
        schema = networks.load("cancer").schema
        pooling.new_study(schema, sites=SITES, epsilon=1).save(folder / "study1.json")
        number, ended = 1, False
        while not ended:
            for site in SITES:
                self._step(context, answer, folder, number, site, most)
            self._step(context, combine, folder, number, "coordinator", most)
            ended, number = not (folder / f"study{number + 1}.json").exists(), number + 1
        if not (folder / "result.json").exists():
            self.wrong.append(f"{folder.name}: no result")
        self._check_ledgers(folder, number - 1)
        self.studies += 1

    def _step(self, context: ForkServerContext, work, folder: Path, number: int, who: str, most: int) -> None:
        known, before = self._lasted.get(work.__name__), self.killed.total()
        most = min(most, before + MOST_IN_A_STEP)
        while True:
            process = context.Process(target=work, args=(folder, number, who))
            start = time.monotonic()
            process.start()
            if known is not None and self.killed.total() < most:
                process.join(self.source.uniform(0, LATEST * known))
                process.kill()
            process.join()
            self._look(folder, number, who)
            if process.exitcode == 0:
                self._lasted[work.__name__] = time.monotonic() - start
                return
            if process.exitcode != -9:
                self.wrong.append(f"{folder.name}: {work.__name__} of {who} failed in round {number}")
                return
            self.killed[work.__name__] += 1

    def _look(self, folder: Path, number: int, who: str) -> None:
        """Files are whole, and an answer that was seen once never changes."""
        if who in SITES and (path := folder / f"{who}{number}.json").exists():
            body = pooling.SiteAnswer.load(path).bodies[-1]
            if self._seen.setdefault((folder.name, who, number), body) != body:
                self.wrong.append(f"{folder.name}: {who} answered round {number} twice")
        for path in folder.glob("study*.json"):
            pooling.StudyFile.load(path)

    def _check_ledgers(self, folder: Path, rounds: int) -> None:
        for site in SITES:
            ledger = dpcurate.Ledger.open(folder / f"{site}.ledger")
            most = float(pooling.StudyFile.load(folder / f"study{rounds}.json").budget.ceiling)
            if not 0.999 * most < ledger.spent <= most * (1 + 1e-9):
                self.wrong.append(f"{folder.name}: {site} spent {ledger.spent:.6g} of {most:.6g}")
            finished = [run for run in ledger.log() if run.finished]
            if len(finished) != rounds or sum(run.answers for run in ledger.log()) != rounds:
                self.wrong.append(f"{folder.name}: {site} has {len(finished)} finished runs of {rounds} rounds")


def kills(count: int, seed: int, folder: Path) -> Kills:
    """So many kills, in as many studies as they take; the first study is left alone, to know how long steps last."""
    context = get_context("forkserver")
    context.set_forkserver_preload([*PRELOADED, __name__])
    told = Kills(random.Random(seed))
    while told.killed.total() < count:
        place = folder / f"study{told.studies}"
        place.mkdir()
        told.study(place, context, count if told.studies else 0)
    return told


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--kills", type=int, default=500)
    words.add_argument("--seed", type=int, default=1)
    args = words.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        told = kills(args.kills, args.seed, Path(folder))
    said = ", ".join(f"{number} of {name}" for name, number in told.killed.items())
    print(f"{told.killed.total()} kills ({said}) in {told.studies} studies; {len(told.wrong)} wrong")
    print(*told.wrong, sep="\n")


if __name__ == "__main__":
    main()

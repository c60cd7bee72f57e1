"""All attacks, in the order they are run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from benchmarks.chaos import kills, races
from benchmarks.chaos.arena import Arena
from benchmarks.chaos.clock import clock
from benchmarks.chaos.command import command
from benchmarks.chaos.damage import damage
from benchmarks.chaos.database import database
from benchmarks.chaos.disk import full_disk
from benchmarks.chaos.forks import forks
from benchmarks.chaos.names import names
from benchmarks.chaos.resumes import resumes
from benchmarks.chaos.spark import spark
from benchmarks.chaos.spill import spill

WHOLE = 30
"""Minutes of the documented run; a shorter one makes fewer rounds in proportion."""


@dataclass(frozen=True, slots=True)
class Attack:
    """Rounds of one kind. `rounds` and the share of the `minutes` are those of the documented run."""

    run: Callable[[Arena], Iterator[None]]
    rounds: int
    minutes: float
    says: str
    breaks: tuple[str, ...]


ATTACKS = {
    "kills": Attack(kills.ledgers, 480, 7, "kill -9 of forks that charge, reserve or create, at a random moment or "
                    "just before a random system call", ("lossy", "late", "twice")),
    "starts": Attack(kills.fresh, 215, 7, "kill -9 of processes started from nothing, the ledger alone or a curator",
                     ("late",)),
    "races": Attack(races.ledgers, 960, 3, "processes and threads that go for the last of a ledger at once",
                    ("careless", "lossy")),
    "damage": Attack(damage, 250, 1.5, "bit flips, truncations and worse in ledgers and journals", ("forgiving",)),
    "names": Attack(names, 200, 1, "hard links, renames and moved folders, after kills and while running",
                    ("any-name",)),
    "clock": Attack(clock, 120, 0.5, "clocks and file times that jump", ("by-the-clock",)),
    "disk": Attack(full_disk, 250, 1, "a disk that fills up", ("careless",)),
    "curators": Attack(kills.curators, 15, 2, "kill -9 of forks that open a curator and ask in every way it has",
                       ("late",)),
    "asks": Attack(races.curators, 60, 1, "processes and threads that ask curators of one ledger at once", ("lossy",)),
    "resumes": Attack(resumes, 60, 4, "runs of the default that are killed, raced for, or taken from a process that "
                      "sleeps, and resumed by the same command", ("forgetful", "unstored")),
    "forks": Attack(forks, 100, 2, "curators, gates, samples, ledgers and blocks used in forked children",
                    ("one-process",)),
    "spill": Attack(spill, 25, 1, "an engine with less memory than the table takes", ("littering",)),
    "database": Attack(database, 30, 1.5, "a PostgreSQL server that stops or ends sessions", ("lossy",)),
    "spark": Attack(spark, 2, 1.5, "Spark tasks that fail and files that go", ("lossy",)),
    "commands": Attack(command, 30, 3, "the command dpcurate, killed on the way", ("free",)),
}  # fmt: skip

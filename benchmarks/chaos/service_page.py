"""The section of docs/reliability.md about the service."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from benchmarks.chaos.arena import Arena
from benchmarks.service_section import write_section

HEAD = "## The service"
MOST = 20
HOW = """
More than half of the servers kill themselves just before a statement of SQLite or a send on a socket; the other kills
fall at a random moment. A client that is told of a lost service, or was killed, makes the same call until its run has
ended. Shares are .3 and .7 of the ceiling, reserved or first come; in races also .8 and .8.
`python -m benchmarks.chaos.service --self-test` breaks the store in three ways, each of which must be seen."""
HIDDEN = ("refused", "failed")
ROW = re.compile(r"^\| ([a-z ]+) \| ([\d,]+) \|$", re.MULTILINE)


def lines(arena: Arena, kills: int, words: str) -> Iterator[str]:
    """The section."""
    faults = len(arena.faults)
    yield f"Written by `python -m benchmarks.chaos.service {words} --page docs/reliability.md`.\n"
    yield (
        f"**{kills:,} kills** of servers and clients and **{arena.tried['races']:,} races** of analysts. "
        f"{arena.tried['answered']:,} answers were received and compared with the ledgers in {arena.tried['checks']:,} "
        "openings: "
        + (
            "**every answer was paid for and stored, no payment was lost or made twice, no share and no ceiling was "
            "exceeded, and every run came to its end.**\n"
            if not faults
            else f"**{faults:,} faults**, listed below.\n"
        )
    )
    yield "| what | how often |"
    yield "|---|---:|"
    yield from (f"| {what} | {n:,} |" for what, n in sorted(arena.tried.items()) if what and what not in HIDDEN)
    yield HOW
    yield from (f"\n* FAULT {text}" for text in arena.faults[:MOST])
    yield from (f"\n* did not come to an end: {text}" for text in arena.unfinished[:MOST])


def earlier(path: Path) -> Counter[str]:
    """What the section of a page counts."""
    _, _, section = path.read_text(encoding="utf-8").partition(f"\n{HEAD}\n")
    return Counter({what: int(n.replace(",", "")) for what, n in ROW.findall(section.partition("\n## ")[0])})


def write(path: Path, arena: Arena, kills: int, words: str) -> None:
    """Put the section into the page, in place of an earlier one."""
    write_section(path, HEAD, lines(arena, kills, words))

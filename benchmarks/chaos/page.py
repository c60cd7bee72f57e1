"""The figures of a run, on the screen and as docs/reliability.md."""

from __future__ import annotations

import platform
import re
import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from benchmarks.chaos.arena import Arena
from benchmarks.chaos.attacks import ATTACKS
from benchmarks.chaos.instants import can_trace
from benchmarks.service_section import kept

MOST, SHOWN = 20, 4
"""Faults, and counts of what was tried, shown of one attack."""


def summary(arena: Arena, *, seconds: float) -> str:
    """An attack in a few lines."""
    if arena.skipped:
        return f"{arena.name}: not tried, {arena.skipped}"
    counts = ", ".join(f"{what} {n:,}" for what, n in arena.tried.items() if n)
    lines = [f"{arena.name} ({seconds:.0f} s): {counts}"]
    lines += [f"  FAULT {text}" for text in _shown(arena)] + [f"  UNFINISHED {text}" for text in arena.unfinished]
    return "\n".join(lines)


def _shown(arena: Arena) -> list[str]:
    """The faults of one kind together: numbers and names differ from round to round."""
    kinds: dict[str, tuple[str, int]] = {}
    for text in arena.faults:
        kind = re.sub(r"[\d.]+|'[^']*'|/\S+", "", text)
        kinds[kind] = (kinds.get(kind, (text, 0))[0], kinds.get(kind, (text, 0))[1] + 1)
    shown = [_plain(text) + (f" (and {n - 1:,} alike)" if n > 1 else "") for text, n in kinds.values()]
    return shown[:MOST] + ([f"and {len(shown) - MOST} other kinds"] if len(shown) > MOST else [])


def _plain(text: str) -> str:
    """Without this machine's folders."""
    return re.sub(r"/\S*/", ".../", text)


def write(path: Path, arenas: list[Arena], command: str) -> None:
    """Write the page; sections that other commands write stay."""
    sections = kept(path.read_text(encoding="utf-8")) if path.exists() else ""
    path.write_text("\n".join(_page(arenas, command)) + f"\n{sections}", encoding="utf-8")


def _page(arenas: list[Arena], command: str) -> Iterator[str]:
    total: Counter[str] = sum((arena.tried for arena in arenas), Counter())
    yield from _head(arenas, command, total)
    yield "| attack | what it does | what was tried | answers checked | faults |"
    yield "|---|---|---|---:|---:|"
    for arena in arenas:
        yield _row(arena)
    yield from _faults(arenas)
    yield from _how()


def _head(arenas: list[Arena], command: str, total: Counter[str]) -> Iterator[str]:
    faults = sum(len(arena.faults) for arena in arenas)
    fresh = total["kills of processes started from nothing"]
    yield "# Reliability\n"
    yield "Written by `make chaos`, which kills, races and damages ledgers:\n"
    yield f"    {command} --page docs/reliability.md\n"
    yield (
        f"**{kills(total):,} kills** (kill -9), {fresh:,} of them of processes started from nothing, the others of "
        f"forks or commands; {total['of them at a system call']:,} fell just before a chosen system call, the others "
        f"at a random moment. **{total['races']:,} races** of "
        f"{total['processes in races']:,} processes and {total['threads in races']:,} threads. "
        f"{total['answered']:,} answers were received and held against the ledgers in {total['checks']:,} openings: "
        + ("**no answer was unpaid and no payment lost.**" if not faults else f"**{faults:,} faults**, listed below.")
        + "\n"
    )
    traced = "could" if can_trace() else "could not"
    yield f"System calls {traced} be traced; Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}.\n"


def kills(total: Counter[str]) -> int:
    """Processes that died of our kill -9, wherever they were."""
    return sum(n for what, n in total.items() if what.startswith("kills ") and not what.startswith("kills,"))


def _row(arena: Arena) -> str:
    says = ATTACKS[arena.name].says
    if arena.skipped:
        return f"| {arena.name} | {says} | not tried: {arena.skipped} | - | - |"
    hidden = ("answered", "refused", "failed", "checks", "rounds")
    tried = Counter({what: n for what, n in arena.tried.items() if n and what not in hidden})
    counts = "; ".join(f"{what} {n:,}" for what, n in tried.most_common(SHOWN))
    counts += f"; {len(tried) - SHOWN} more kinds" if len(tried) > SHOWN else ""
    return f"| {arena.name} | {says} | {counts} | {arena.tried['answered']:,} | {len(arena.faults):,} |"


def _faults(arenas: list[Arena]) -> Iterator[str]:
    for title, texts in (
        ("Faults", [text for arena in arenas for text in _shown(arena)]),
        ("Did not come to an end", [text for arena in arenas for text in arena.unfinished]),
    ):
        if texts:
            yield f"\n## {title}\n"
            yield from (f"* {text}" for text in texts)


def _how() -> Iterator[str]:
    yield "\n## How it is checked\n"
    yield (
        "An attacked process writes down each question before it asks and each answer after it has it. Afterwards the "
        "ledger is opened by a process of its own and compared: every answer is paid for, at its price; nothing is "
        "paid that was not asked for, or that was refused, or twice; what an earlier opening showed is still there; "
        "the total is the sum of its events and open blocks and stays within the ceiling. A second name of a ledger, a "
        "gate in a fork, rows in a file that others can read, and any error that is not a sentence of ours are faults, "
        "too.\n"
    )
    yield (
        "`python -m benchmarks.chaos --self-test` breaks the ledger on purpose (payments forgotten, late, doubled or "
        "swallowed, forks not noticed, damage forgiven, second names taken, rows left lying around), and every attack "
        "must report it. The seed fixes what is tried, not at which instants the kills fall."
    )

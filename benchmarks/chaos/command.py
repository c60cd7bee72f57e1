"""The command `dpcurate`, killed on the way: `ledger init`, `discover --ledger` and `ledger show`."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.chaos.arena import LIMIT, Arena, Unfinished, apart
from benchmarks.chaos.diary import Sight, look

BREAK = "from benchmarks.chaos import sabotage; sabotage.apply({broken!r}); "
RUN = "import sys; from dpcurate.cli import main; sys.exit(main(sys.argv[1:]))"
SCHEMA = "".join(f'[columns.{name}]\nkind = "categorical"\nlevels = ["no", "yes"]\n' for name in ("a", "b", "c"))


def command(arena: Arena) -> Iterator[None]:
    """A ledger begun, spent from and shown by commands that may be killed; no trace, nothing given back."""
    with _inputs(arena) as folder:
        start = time.monotonic()
        _whole(arena, _discover(folder, "first"))
        span = time.monotonic() - start  # it places the kills and decides nothing else
    while True:
        with _inputs(arena) as folder:
            _round(arena, folder, span)
        yield


@contextmanager
def _inputs(arena: Arena) -> Iterator[Path]:
    with arena.place() as folder:
        (folder / "schema.toml").write_text(SCHEMA)
        (folder / "rows.csv").write_text("a,b,c\n" + "no,yes,no\nyes,yes,no\nno,no,yes\n" * 30)
        yield folder


def _init(folder: Path) -> list[str]:
    facts = ["--table", "rows", "--schema", str(folder / "schema.toml"), "--epsilon", "3"]
    return ["ledger", "init", str(folder / "books.ledger"), *facts]


def _discover(folder: Path, result: str) -> list[str]:
    words = ["discover", str(folder / "rows.csv"), "--schema", str(folder / "schema.toml")]
    return [*words, "--ledger", str(folder / "books.ledger"), "--epsilon", "0.1", "-o", str(folder / result)]


def _round(arena: Arena, folder: Path, span: float) -> None:
    path = folder / "books.ledger"
    _killed(arena, _init(folder), span)
    if not path.exists() or not path.stat().st_size:
        arena.tried["creations cut short"] += path.exists()
        path.unlink(missing_ok=True)
        _whole(arena, _init(folder))
    before = _look(arena, path)
    for turn in range(3):
        if turn == 2:
            _whole(arena, _discover(folder, f"{turn}"))
        else:
            _killed(arena, _discover(folder, f"{turn}"), span)
        now = _look(arena, path, before)
        if any((folder / f"{turn}").glob("*.json")):
            arena.tried["results handed over"] += 1
            arena.fault("discover", ["answer not paid: a whole result"] if now.spent <= before.spent else [])
        before = now
    _killed(arena, ["ledger", "show", str(path)], span)
    _whole(arena, ["ledger", "show", str(path)])
    _look(arena, path, before)


def _look(arena: Arena, path: Path, before: Sight | None = None) -> Sight:
    now: Sight = apart(look, path)
    arena.tried["checks"] += 1
    if now.refused or now.trace:
        arena.fault("the ledger after a kill", [now.refused or now.trace])
    elif before is not None and now.spent < before.spent:
        arena.fault("the ledger after a kill", [f"payment lost: spent {before.spent} -> {now.spent}"])
    return now


def _start(arena: Arena, words: list[str]) -> subprocess.Popen[str]:
    program = (BREAK.format(broken=arena.broken) if arena.broken else "") + RUN
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-c", program, *words], text=True, **pipes)


def _killed(arena: Arena, words: list[str], span: float) -> None:
    """At any moment of its life; some end before."""
    with _start(arena, words) as running:
        time.sleep(arena.rng.uniform(0, span))
        running.kill()
        _no_trace(arena, words, running.communicate()[1])
    done = running.returncode >= 0
    arena.tried["commands that ended first" if done else "kills of commands"] += 1


def _whole(arena: Arena, words: list[str]) -> None:
    with _start(arena, words) as running:
        try:
            said = running.communicate(timeout=LIMIT)[1]
        except subprocess.TimeoutExpired:
            running.kill()
            raise Unfinished(f"dpcurate {words[0]} did not end") from None
    arena.tried["commands run to their end"] += 1
    _no_trace(arena, words, said)
    arena.fault("a command", [f"{' '.join(words[:2])} failed: {said.strip()[:200]}"] if running.returncode else [])


def _no_trace(arena: Arena, words: list[str], said: str) -> None:
    arena.fault(" ".join(words[:2]), ["a trace, not a sentence"] if "Traceback" in said else [])

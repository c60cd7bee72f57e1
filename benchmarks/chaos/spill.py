"""An engine short of memory: what it writes beside itself, who may read that, and what a kill leaves of it."""

from __future__ import annotations

import os
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.chaos.arena import Arena, Unavailable, apart, fork
from benchmarks.chaos.diary import STEP, Diary, note
from benchmarks.chaos.worker import prepare

ROWS = 400_000
MEMORY = "40MB"
FILE = "rows.parquet"
LOOKS = 400
"""At the folders, while a process works."""


def spill(arena: Arena) -> Iterator[None]:
    """A table of persons larger than the engine's memory; some of the processes are killed when files appear."""
    prepare()
    with arena.place() as folder:
        apart(_table, folder / FILE)
        while True:
            with arena.place() as work, arena.diary(work) as diary:
                _round(arena, folder / FILE, work, diary)
            yield


def _round(arena: Arena, table: Path, work: Path, diary: Diary) -> None:
    path, session, kill = work / "books.ledger", work / "session", arena.rng.random() < 0.6
    for name in ("here", "elsewhere", "temporary"):
        (session / name).mkdir(parents=True)
    child = fork(lambda _: _ask(table, path, session, diary), arena.broken)
    seen, killed = _watch(child, session, kill=kill)
    arena.tried["tables larger than the memory"] += 1
    arena.tried["files seen"] += len(seen)
    arena.tried["kills while spilling"] += killed
    open_to_all = sorted({path.name for path, readable in seen.items() if readable})
    arena.fault("while it ran", [f"rows in a file that others may read: {name}" for name in open_to_all])
    if killed:
        fork(lambda _: _ask(table, path, session, diary, here="elsewhere"), arena.broken).wait()  # the next start
    left = sorted(str(file.relative_to(session)) for file in _files(session))
    arena.fault(f"after {'a kill and the next start' if killed else 'the end'}", [f"left: {name}" for name in left])
    if path.exists():
        arena.check("under little memory", path, diary)


def _watch(child: Any, session: Path, *, kill: bool) -> tuple[dict[Path, bool], bool]:
    """Every file that came up, and whether others could read it; killed, if so wished, once there is one."""
    seen: dict[Path, bool] = {}
    for _ in range(LOOKS):
        for file in _files(session):
            seen[file] = seen.get(file, False) or _readable(file, session)
        if kill and seen:
            return seen, child.kill()
        if os.waitpid(child.pid, os.WNOHANG)[0]:
            child.status = 0
            break
        time.sleep(0.01)
    if child.status is None:
        child.wait()
    child.close()
    return seen, False


def _files(session: Path) -> list[Path]:
    found = []
    for folder, _, names in os.walk(session):
        found += [Path(folder) / name for name in names]
    return [file for file in found if _size(file) > 0]


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:  # gone again
        return 0


def _readable(file: Path, session: Path) -> bool:
    """By somebody else: the file, and every folder on the way to it from ours."""
    try:
        folders = [p for p in file.parents if p.is_relative_to(session) and p.parent not in (session, session.parent)]
        read, enter = stat.S_IRGRP | stat.S_IROTH, stat.S_IXGRP | stat.S_IXOTH
        return bool(file.stat().st_mode & read) and all(p.stat().st_mode & enter for p in folders)
    except OSError:
        return False


def _table(path: Path) -> None:
    """Rows of persons whose numbers do not fit the engine's memory."""
    try:
        import duckdb
    except ImportError:
        raise Unavailable("duckdb is not installed") from None
    columns = ", ".join(f"CAST(hash(i + {n}) % 5 AS INTEGER) AS c{n}" for n in range(8))
    query = f"SELECT 'person number ' || (hash(i) % {ROWS // 2})::VARCHAR AS id, {columns} FROM range({ROWS}) t(i)"
    duckdb.connect().execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")


def _ask(table: Path, path: Path, session: Path, diary: Diary, here: str = "here") -> None:
    """Open the table with little memory, from a folder and with a temporary folder that can be watched."""
    import duckdb

    from dpcurate import Budget, Categorical, Curator, Person, Schema
    from dpcurate import queries as r

    os.chdir(session / here)
    os.environ["TMPDIR"] = str(session / "temporary")
    os.environ["HOME"] = str(session)
    tempfile.tempdir = None
    os.umask(0o022)
    real = duckdb.connect
    duckdb.connect = lambda *words, **more: _starved(real(*words, **more))
    levels = tuple(Categorical(f"c{n}", tuple(range(5))) for n in range(8))
    budget = None if path.exists() else Budget(rho=1.0)
    schema = Schema(levels, person=Person("id", rows=2))
    try:
        curator = Curator(str(table), schema, ledger=path, budget=budget)
    except Exception as problem:
        diary.write("ended", [f"{type(problem).__name__}: {problem}".splitlines()[0][:200]])
        return
    for n in range(2):
        columns = tuple(f"c{i}" for i in range(n, n + 3))
        note(diary, [STEP], lambda columns=columns: curator.ask(r.Release(r.Counts(columns), r.Gaussian(rho=2.0**-10))))


def _starved(connection: Any) -> Any:
    connection.execute(f"SET memory_limit = '{MEMORY}'")
    connection.execute("SET threads = 1")
    return connection

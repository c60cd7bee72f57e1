"""A Spark of our own, on this machine, whose tasks fail and whose files go while it is asked."""

from __future__ import annotations

import os
import random
import shutil
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import combinations, islice
from pathlib import Path
from typing import Any

from benchmarks.chaos.arena import Arena, Unavailable, fork
from benchmarks.chaos.diary import STEP, Diary, note

COLUMNS = tuple(f"c{n}" for n in range(9))
LEVELS = {name: tuple(range(9)) for name in COLUMNS}
ROWS = 4_000
ROUNDS = 4
"""Frames for one start of Spark."""


def spark(arena: Arena) -> Iterator[None]:
    """A partition's file removed between or before questions, and a function that fails in some tasks."""
    if shutil.which("java") is None:
        raise Unavailable("Spark needs Java, and there is none on the path")
    try:
        import pyspark
    except ImportError:
        raise Unavailable("pyspark is not installed") from None
    assert pyspark
    while True:
        with arena.place() as folder:
            diaries = [Diary(folder / f"diary-{n}") for n in range(ROUNDS)]
            chance = random.Random(arena.rng.random())
            told = fork(partial(_driver, folder, diaries, chance), arena.broken).wait()
            arena.tried["frames with failing tasks"] += told.count(b"u")
            arena.tried["frames with files removed"] += told.count(b"f")
            for number, diary in enumerate(diaries):
                _verdict(arena, folder / f"{number}.ledger", diary)
                diary.close()
        yield


def _verdict(arena: Arena, path: Path, diary: Diary) -> None:
    for mark in ("answered", "failed"):
        arena.tried[mark] += diary.read(mark).total()
    if path.exists():
        arena.check("a task that failed", path, diary)
    arena.fault("a task that failed", [f"a trace, not a sentence: {t}" for t in diary.read("ended")])


def _driver(folder: Path, diaries: list[Diary], chance: random.Random, pipe: int) -> None:
    with _session() as session:
        for number, diary in enumerate(diaries):
            attack = _failing if number % 2 else _removed
            try:
                attack(session, folder, number, diary, chance)
            except Exception as problem:
                diary.write("ended", [f"{type(problem).__name__}: {problem}".splitlines()[0][:200]])
            os.write(pipe, b"u" if number % 2 else b"f")


@contextmanager
def _session() -> Iterator[Any]:
    from pyspark.sql import SparkSession

    warnings.simplefilter("ignore")  # of pandas, about pandas
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    builder = SparkSession.builder.master("local[1,2]")
    settings = {"driver.host": "127.0.0.1", "driver.bindAddress": "127.0.0.1", "ui.enabled": "false"}
    settings |= {"ui.showConsoleProgress": "false", "sql.shuffle.partitions": "2", "driver.memory": "1g"}
    for name, value in settings.items():
        builder = builder.config(f"spark.{name}", value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    try:
        yield session
    finally:
        gateway = session.sparkContext._gateway  # noqa: SLF001
        session.stop()
        gateway.shutdown()
        gateway.proc.stdin.close()  # on which the JVM ends
        gateway.proc.wait()


def _rows(session: Any, columns: int = 9) -> Any:
    from pyspark.sql import functions as f

    frame = session.range(ROWS, numPartitions=4)
    return frame.select(*((f.hash("id", f.lit(n)) % 5 + 4).alias(name) for n, name in enumerate(COLUMNS[:columns])))


def _removed(session: Any, folder: Path, number: int, diary: Diary, chance: random.Random) -> None:
    """Files go one by one."""
    place = folder / f"{number}.parquet"
    _rows(session).write.parquet(str(place))
    fresh = combinations(COLUMNS, 3)
    curator = _curator(session.read.parquet(str(place)), folder, number)
    _ask(curator, diary, fresh, 1)
    for file in chance.sample(sorted(place.glob("*.parquet")), 2):
        file.unlink()
        _ask(curator, diary, fresh, 1)


def _failing(session: Any, folder: Path, number: int, diary: Diary, _chance: random.Random) -> None:
    """A function in the frame that fails once a file is there, so that opening succeeds and asking does not."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import IntegerType

    bomb = folder / f"{number}.bomb"

    def cell(value: int) -> int:
        if os.path.exists(bomb) and value == 4:
            raise RuntimeError("a secret row")
        return value

    frame = _rows(session).withColumn("c0", f.udf(cell, IntegerType())("c0"))
    fresh = ((COLUMNS[0], *pair) for pair in combinations(COLUMNS[1:], 2))
    curator = _curator(frame, folder, number)
    _ask(curator, diary, fresh, 1)
    for _ in range(2):
        bomb.touch()
        _ask(curator, diary, fresh, 1)
        bomb.unlink()
        _ask(curator, diary, fresh, 1)


def _curator(frame: Any, folder: Path, number: int) -> Any:
    from dpcurate import Budget, Curator

    return Curator(frame, LEVELS, ledger=folder / f"{number}.ledger", budget=Budget(rho=1.0))


def _ask(curator: Any, diary: Diary, fresh: Iterator[tuple[str, ...]], times: int) -> None:
    """Tables that were not asked before: the others are remembered and need no task."""
    from dpcurate import queries as r

    for columns in islice(fresh, times):
        query = r.Release(r.Counts(columns), r.Gaussian(rho=2.0**-14))
        note(diary, [STEP], lambda query=query: curator.ask(query))

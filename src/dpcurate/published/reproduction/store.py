"""Cells to files, files to one Parquet: what was done stays done."""

from __future__ import annotations

import csv
import json
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

from dpcurate._files import NO_INPUTS, OutputFolder, save_text
from dpcurate.published.reproduction.grid import GridCell
from dpcurate.published.reproduction.runs import COLUMNS, run
from dpcurate.published.reproduction.summary import RunRow

_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def run_grid(cells: Sequence[GridCell], directory: Path, *, workers: int = 2, fresh: bool = False) -> Path:
    """Run what is not done yet, then write runs.parquet."""
    kept = directory / "cells"
    # A folder that holds cells is one that this command has written to before.
    OutputFolder.made(directory, ("runs.parquet", "paper.md"), NO_INPUTS, force=kept.is_dir())
    kept.mkdir(exist_ok=True)
    for cell in cells if fresh else ():
        _file(kept, cell).unlink(missing_ok=True)
    groups = grouped([c for c in cells if not _file(kept, c).exists()])
    bar = _Progress(cells, kept)
    if workers <= 1:
        for group in groups:
            for cell in group:
                run_group([cell], kept)
                bar.draw()
    else:
        _in_parallel(groups, kept, workers, bar)
    bar.end()
    path = directory / "runs.parquet"
    write_runs((row for cell in cells for row in json.loads(_file(kept, cell).read_text())), path)
    return path


def grouped(cells: Iterable[GridCell]) -> list[list[GridCell]]:
    """Cells by what they share, the longest work first."""
    groups: dict[tuple[str, ...], list[GridCell]] = {}
    for cell in cells:
        groups.setdefault(cell.family, []).append(cell)
    return sorted(groups.values(), key=lambda group: -sum(c.cost for c in group))


def run_group(cells: Sequence[GridCell], kept: Path) -> None:
    """Run cells and write each at its end; another process may already have done so."""
    for cell in cells:
        path = _file(kept, cell)
        if not path.exists():
            save_text(path, json.dumps([asdict(r) for r in run(cell)]))


def _in_parallel(groups: list[list[GridCell]], kept: Path, workers: int, bar: _Progress) -> None:
    context, others = multiprocessing.get_context("spawn"), set(multiprocessing.active_children())
    with _environment(), ProcessPoolExecutor(workers, mp_context=context, initializer=_leave_to_parent) as pool:
        open_: set[Future[None]] = {pool.submit(run_group, group, kept) for group in groups}
        try:
            while open_:
                done, open_ = wait(open_, timeout=0.5)
                for future in done:
                    future.result()
                bar.draw()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in set(multiprocessing.active_children()) - others:
                process.terminate()
            raise


def _leave_to_parent() -> None:
    """Ctrl-C is the parent's affair."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _environment() -> Iterator[None]:
    """One thread for each worker's linear algebra."""
    before = {name: os.environ.get(name) for name in _ONE_THREAD}
    os.environ.update(dict.fromkeys(_ONE_THREAD, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _file(kept: Path, cell: GridCell) -> Path:
    return kept / f"{cell.name}.json"


class _Progress:
    """One line: cells done, time gone, time left."""

    def __init__(self, cells: Sequence[GridCell], kept: Path) -> None:
        self._cells, self._kept = cells, kept
        self._began, self._next = time.monotonic(), 0.0
        self._total = sum(c.cost for c in cells)
        self._before = self._done()[1]

    def _done(self) -> tuple[int, float]:
        there = {p.name for p in self._kept.iterdir()}
        done = [c for c in self._cells if _file(self._kept, c).name in there]
        return len(done), sum(c.cost for c in done)

    def draw(self) -> None:
        """At most once a second on a terminal, every 15 seconds elsewhere."""
        now, live = time.monotonic(), sys.stderr.isatty()
        if now < self._next:
            return
        self._next = now + (1 if live else 15)
        number, work = self._done()
        gone, fresh = now - self._began, work - self._before
        left = f", about {_clock(gone * (self._total - work) / fresh)} left" if fresh > 0.02 * self._total else ""
        line = f"reproduce: {number} of {len(self._cells)} cells, {_clock(gone)} gone{left}"
        print(f"\r{line}\x1b[K" if live else line, end="" if live else "\n", file=sys.stderr, flush=True)

    def end(self) -> None:
        self._next = 0.0
        self.draw()
        if sys.stderr.isatty():
            print(file=sys.stderr)


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def write_runs(rows: Iterable[RunRow], path: Path) -> None:
    """One tidy Parquet file, through DuckDB."""
    import duckdb

    with TemporaryDirectory(dir=path.parent) as session:
        source, draft = Path(session) / "runs.csv", Path(session) / "runs.parquet"
        with source.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(COLUMNS))
            writer.writeheader()
            writer.writerows(rows)
        columns = ", ".join(f"'{name}': '{kind}'" for name, kind in COLUMNS.items())
        read = f"read_csv({_quoted(source)}, header = true, auto_detect = false, columns = {{{columns}}})"
        with duckdb.connect() as connection:
            connection.execute(f"COPY (SELECT * FROM {read}) TO {_quoted(draft)} (FORMAT parquet)")
        draft.replace(path)


def read_runs(path: Path) -> list[RunRow]:
    import duckdb

    with duckdb.connect() as connection:
        answer = connection.execute(f"SELECT * FROM read_parquet({_quoted(path)})")
        names = [column[0] for column in answer.description]
        return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]


def _quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"

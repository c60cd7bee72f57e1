"""Runs that are kept in a file, and work for several processes."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Hashable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any, Generic, TypeVar

from dpcurate.errors import FormatError

Row = TypeVar("Row")
Answer = TypeVar("Answer")
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


class RunFile(Generic[Row]):
    """Rows by their keys, one JSON object a line; a key that is there need not be run again.

    Without a path the rows are kept in memory alone.
    """

    def __init__(self, path: Path | None, row: Callable[..., Row], key: Callable[[Row], Hashable]) -> None:
        self.path, self._key = path, key
        self.rows: list[Row] = [] if path is None else [_row(row, found, path) for found in _read(path)]
        self._keys = set(map(key, self.rows))

    def __contains__(self, key: Hashable) -> bool:
        return key in self._keys

    def keep(self, *rows: Row) -> None:
        """Add rows at the end of the file; those of one key are kept together, or it would be taken for done."""
        self.rows += rows
        self._keys |= set(map(self._key, rows))
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write("".join(json.dumps(asdict(row)) + "\n" for row in rows))  # type: ignore[call-overload]


def _read(path: Path) -> Iterator[dict[str, Any]]:
    if not path.exists():
        return
    text = path.read_text(encoding="utf-8")
    whole, _, torn = text.rpartition("\n")
    if torn:  # a run that was stopped while it wrote: that line is made again
        path.write_bytes((whole + "\n" if whole else "").encode())
    for number, line in enumerate(whole.splitlines(), start=1):
        try:
            yield json.loads(line)
        except ValueError:
            raise FormatError(f"{str(path)!r}, line {number}: not a run; move the file away to start anew") from None


def _row(row: Callable[..., Row], found: dict[str, Any], path: Path) -> Row:
    try:
        return row(**{name: _frozen(value) for name, value in found.items()})
    except (AttributeError, TypeError):
        raise FormatError(f"{str(path)!r} holds runs of another kind; move it away to start anew") from None


def _frozen(value: Any) -> Any:
    """Lists as tuples, which JSON does not know."""
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def spread(work: Callable[..., Answer], jobs: Iterable[tuple[Any, ...]], workers: int) -> Iterator[Answer]:
    """Answers of `work` to all jobs as they come, from this process or from several."""
    if workers <= 1:
        for job in jobs:
            yield work(*job)
        return
    with processes(workers) as pool:
        for ended in as_completed([pool.submit(work, *job) for job in jobs]):
            yield ended.result()


@contextmanager
def processes(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Processes of one thread each, because threads that wait would count as work; ended when the caller is stopped."""
    before, others = {name: os.environ.get(name) for name in _THREADS}, set(active_children())
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_leave_to_parent) as pool:
            try:
                yield pool
            except BaseException:  # Ctrl-C above all: what runs is not worth waiting for
                pool.shutdown(wait=False, cancel_futures=True)
                for process in set(active_children()) - others:
                    process.terminate()
                raise
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _leave_to_parent() -> None:
    """Ctrl-C is the parent's affair."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

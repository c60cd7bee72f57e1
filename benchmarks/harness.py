"""What every benchmark does alike: the command's words, runs that are kept in a file, and work for several processes.

A benchmark has four parts: worlds (`worlds/`), what is compared (`methods.py`), one run (a function of the world, the
method and a seed that returns a row), and the page that tells the rows (`pages/`).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Generic, TypeVar

Row = TypeVar("Row")
Answer = TypeVar("Answer")
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
"""Threads that wait would count as work."""


class Results(Generic[Row]):
    """Rows of a file, one JSON object a line, by their keys; a key that is there is not run again."""

    def __init__(self, path: Path, row: Callable[..., Row], key: Callable[[Row], Hashable]) -> None:
        self.path, self._key = path, key
        self.rows: list[Row] = [row(**{k: _frozen(v) for k, v in found.items()}) for found in _read(path)]
        self._keys = set(map(key, self.rows))

    def __contains__(self, key: Hashable) -> bool:
        return key in self._keys

    def keep(self, *rows: Row) -> None:
        """Add rows at the end of the file; those of one key are kept together, or it would be taken for done."""
        self.rows += rows
        self._keys |= set(map(self._key, rows))
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write("".join(json.dumps(asdict(row)) + "\n" for row in rows))  # type: ignore[call-overload]


def _read(path: Path) -> Iterator[dict[str, Any]]:
    if not path.exists():
        return
    text = path.read_text(encoding="utf-8")
    whole, _, torn = text.rpartition("\n")
    if torn:  # a run that was stopped while it wrote: that line is made again
        path.write_text(whole + "\n" if whole else "", encoding="utf-8")
    for line in whole.splitlines():
        yield json.loads(line)


def _frozen(value: Any) -> Any:
    """Lists as tuples, which JSON does not know."""
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def command(doc: str | None, results: str | None = None, page: str | None = None) -> argparse.ArgumentParser:
    """The words of a benchmark: its docstring as help, its file of results and its page if it has them."""
    words = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    if results:
        words.add_argument("--results", type=Path, default=Path(results), help="the file of runs; what it has is kept")
    if page:
        words.add_argument("--write", type=Path, metavar="PAGE", help=f"write the page, such as {page}")
    return words


def tell(text: str, page: Path | None) -> None:
    """Print the page, and write it if that was asked for."""
    print(text)
    if page:
        page.write_text(text, encoding="utf-8")


def spread(work: Callable[..., Answer], jobs: Iterable[tuple[Any, ...]], workers: int) -> Iterator[Answer]:
    """Answers of `work` to all jobs as they come, from processes of one thread each, with a count on a terminal."""
    os.environ |= ONE_THREAD
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        asked = [pool.submit(work, *job) for job in jobs]
        for done, job in enumerate(as_completed(asked), start=1):
            yield job.result()
            if sys.stderr.isatty():
                print(f"{done} of {len(asked)}", end="\r", file=sys.stderr, flush=True)

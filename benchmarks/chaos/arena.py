"""Where attacks are fought: folders, forked processes, counts and faults."""

from __future__ import annotations

import ctypes
import os
import pickle
import random
import select
import shutil
import signal
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.chaos import sabotage
from benchmarks.chaos.diary import Diary, Sight, compare, look

MEMORY = Path("/dev/shm")
LIMIT = 600
"""Seconds after which a process is given up. It is then listed as unfinished; no verdict comes from it."""


class Unfinished(Exception):
    """A process that did not end within the limit."""


class Unavailable(Exception):
    """What an attack needs and this machine does not have."""


@dataclass(slots=True)
class Arena:
    """One attack's chance, counts and faults."""

    name: str
    rng: random.Random
    broken: str | None = None
    tried: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)
    skipped: str = ""

    def fault(self, where: str, texts: list[str]) -> None:
        self.faults += [f"{self.name}, {where}: {text}" for text in texts]

    @contextmanager
    def place(self) -> Iterator[Path]:
        """A fresh folder, in memory where there is such a place: a kill does not lose what was written."""
        folder = tempfile.mkdtemp(prefix="dpcurate-chaos-", dir=MEMORY if os.access(MEMORY, os.W_OK) else None)
        try:
            yield Path(folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    @contextmanager
    def diary(self, folder: Path, name: str = "diary") -> Iterator[Diary]:
        diary = Diary(folder / name)
        try:
            yield diary
        finally:
            for mark in ("answered", "refused", "failed"):
                self.tried[mark] += diary.read(mark).total()
            diary.close()

    def create(self, path: Path, *, quanta: int = 1 << 20) -> None:
        """A ledger on which so many quanta may be spent."""
        apart(_create, path, quanta)

    def check(self, where: str, path: Path, diary: Diary, before: Sight | None = None) -> Sight:
        """Open the ledger in a process of its own and report whatever does not fit the diary."""
        now = apart(look, path)
        self.tried["checks"] += 1
        self.fault(where, compare(diary, now, before))
        return now


def _create(path: Path, quanta: int) -> None:
    from benchmarks.chaos.worker import create

    create(path, quanta)


@dataclass(slots=True)
class Child:
    """A forked process and the pipe it speaks through."""

    pid: int
    pipe: int
    status: int | None = None

    def hear(self, size: int = 65536) -> bytes:
        """What it says next; empty once it has ended."""
        if not select.select([self.pipe], [], [], LIMIT)[0]:
            self.end()
            raise Unfinished(f"a process said nothing for {LIMIT} seconds")
        return os.read(self.pipe, size)

    def kill(self) -> bool:
        """Whether it was alive and died of it."""
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            self.status = os.waitpid(self.pid, 0)[1]
        self.close()
        return os.WIFSIGNALED(self.status) and os.WTERMSIG(self.status) == signal.SIGKILL

    def end(self) -> None:
        self.kill()

    def wait(self) -> bytes:
        """All it says until it ends."""
        said = b""
        while part := self.hear():
            said += part
        if self.status is None:
            self.status = os.waitpid(self.pid, 0)[1]
        self.close()
        return said

    def close(self) -> None:
        if self.pipe >= 0:
            os.close(self.pipe)
            self.pipe = -1


def fork(work: Callable[[int], object], broken: str | None = None) -> Child:
    """Run `work` in a fork, with the writing end of a pipe."""
    out, into = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # libraries may have threads; the workers share none
        pid = os.fork()
    if pid == 0:
        try:
            os.close(out)
            _end_with_parent()
            sabotage.apply(broken)
            work(into)
        except BaseException as problem:
            os.write(2, f"chaos: {problem!r}\n".encode())
        finally:
            os._exit(0)
    os.close(into)
    return Child(pid, out)


def _end_with_parent() -> None:
    """A run that is stopped leaves nobody behind."""
    if sys.platform == "linux":
        set_death_signal = 1
        ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL)


def apart(function: Callable[..., Any], *arguments: Any) -> Any:
    """The result of a function that ran in a fork, so that this process never opens a ledger or a table."""
    said = fork(lambda pipe: _say(pipe, pickle.dumps(function(*arguments)))).wait()
    if not said:
        raise RuntimeError(f"{function.__name__}{arguments} failed in its process")
    return pickle.loads(said)


def _say(pipe: int, said: bytes) -> None:
    with os.fdopen(pipe, "wb", closefd=False) as file:
        file.write(said)

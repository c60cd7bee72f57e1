"""A running service for tests: `dpcurate serve` in a process of its own, and what stands in front of it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from benchmarks.ports import free_port

import dpcurate


@dataclass(frozen=True)
class Served:
    """A service that answers: its own port, the owner's link, its folder and its process."""

    port: int
    link: str
    folder: Path
    process: subprocess.Popen[str]

    @property
    def key(self) -> str:
        return self.link.partition("#")[2]

    def records(self) -> dpcurate.service.Records:
        return dpcurate.service.Records.open(self.folder / "t.ledger")


def a_table(folder: Path, rows: int = 500) -> None:
    """A table, its schema and its ledger."""
    network = dpcurate.networks.load("cancer")
    cells = network.sample(rows, seed=1)
    lines = [",".join(network.schema.names), *(",".join(map(str, row)) for row in zip(*cells.values(), strict=True))]
    (folder / "t.csv").write_text("\n".join(lines) + "\n")
    network.schema.save(folder / "t.toml")
    budget = dpcurate.Budget(epsilon=2, delta=1e-10)
    dpcurate.Ledger.create(
        folder / "t.ledger", table="patients", neighbours="add-remove", budget=budget, schema=network.schema
    )


def until(condition, what: str) -> None:
    """Wait for something that happens soon; only a hang takes all of the turns."""
    for _ in range(3000):
        if condition():
            return
        time.sleep(0.02)
    raise AssertionError(f"it never happened: {what}")


def answers(url: str) -> bool:
    try:
        with httpx.Client(verify=False) as client:
            return client.get(f"{url}/v1/health").status_code < 500
    except httpx.TransportError:
        return False


@contextmanager
def served(folder: Path, *words: str, port: int | None = None, tls: bool = False) -> Iterator[Served]:
    """`dpcurate serve` on the table of a folder, stopped as Ctrl-C stops it."""
    if not (folder / "t.ledger").exists():
        a_table(folder)
    port = free_port() if port is None else port
    command = [sys.executable, "-m", "dpcurate.cli", "serve", "t.csv", "--schema", "t.toml", "--ledger", "t.ledger"]
    errors = (folder / "errors.txt").open("w")
    process = subprocess.Popen(
        [*command, "--port", str(port), *words], cwd=folder, stdout=subprocess.PIPE, stderr=errors, text=True,
        env=os.environ,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        said = process.stdout.readline() + process.stdout.readline()
        link = re.search(r"https?://\S+#\S+", said)
        assert link is not None, said + (folder / "errors.txt").read_text()
        own = f"{'https' if tls else 'http'}://127.0.0.1:{port}"
        until(lambda: process.poll() is not None or answers(own), "the service answers")
        assert process.poll() is None, (folder / "errors.txt").read_text()
        yield Served(port, link[0], folder, process)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)
        assert process.stdout is not None
        process.stdout.close()
        errors.close()

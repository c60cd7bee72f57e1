"""A service in a thread of this process, for tests that look at both of its ends."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from benchmarks.ports import free_port

import dpcurate
from dpcurate.private.noise import Seeded
from dpcurate.service.app import create_app
from dpcurate.service.host import ServiceHost, ServiceSettings
from dpcurate.service.records import Records
from running_service import until


class Local:
    """A host that answers at `url`, until it is stopped; `start` starts it again, with everything read anew."""

    def __init__(self, folder: Path, table: Any, schema: Any, seed: int | None, settings: ServiceSettings) -> None:
        self.folder, self._table, self._schema, self._seed, self._settings = folder, table, schema, seed, settings
        self.port = free_port()
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        curator = dpcurate.Curator(
            self._table, self._schema, budget=dpcurate.Budget(epsilon=4, delta=1e-10), ledger=self.folder / "t.ledger"
        )
        if self._seed is not None:
            curator._randomness = Seeded(self._seed)
        self.host = ServiceHost(curator, Records.open(self.folder / "t.ledger"), self._settings)
        config = uvicorn.Config(create_app(self.host), port=self.port, log_level="error", ws="none")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        until(lambda: self._server.started, "the service starts")

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(60)
        assert not self._thread.is_alive()

    def token(self, name: str = "alice", epsilon: float = 3.0, **more: Any) -> str:
        return self.host.records.add_token(name, epsilon, **more)

    def study(self, name: str = "alice", epsilon: float = 3.0, **more: Any) -> dpcurate.Study:
        return dpcurate.connect(self.url, self.token(name, epsilon, **more), patience=5)


@contextmanager
def serving(
    folder: Path, table: Any = None, schema: Any = None, *, seed: int | None = None, **settings: Any
) -> Iterator[Local]:
    """A service of a table, by default 2,000 rows of a small network; `seed` makes its noise the same again."""
    if table is None:
        network = dpcurate.networks.load("cancer")
        table, schema = network.sample(2000, seed=1), network.schema
    service = Local(folder, table, schema, seed, ServiceSettings(**settings))
    try:
        yield service
    finally:
        service.stop()

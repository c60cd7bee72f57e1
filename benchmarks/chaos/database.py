"""A PostgreSQL server of our own that goes away while it is asked, on a port of the loopback."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from glob import glob
from pathlib import Path
from typing import Any

from benchmarks.chaos.arena import Arena, Unavailable, fork
from benchmarks.chaos.diary import STEP, Diary, note
from benchmarks.chaos.worker import prepare
from benchmarks.ports import free_port

PASSWORD = "a-word-to-look-for"
COLUMNS = tuple(f"c{n}" for n in range(9))
LEVELS = {name: tuple(range(9)) for name in COLUMNS}
"""A domain too large to be held, so that every question goes to the server."""
ROWS = 20_000
ASKS = 40


def database(arena: Arena) -> Iterator[None]:
    """Stop the server, or end its sessions, while a curator asks; then start it again."""
    prepare()
    with _server() as server:
        while True:
            with arena.place() as folder, arena.diary(folder) as diary:
                _round(arena, server, folder / "books.ledger", diary)
            yield


class Server:
    """One server, started and stopped as often as one likes."""

    def __init__(self, folder: str, owner: dict[str, Any]) -> None:
        self.folder, self._owner, self.port = folder, owner, free_port()
        words = [_program("initdb"), "-D", f"{folder}/data", "-U", "owner", "-A", "scram-sha-256", "--no-sync"]
        words += ["--locale=C", "-E", "UTF8", f"--pwfile={folder}/password"]
        subprocess.run(words, check=True, capture_output=True, cwd=folder, **owner)
        self.running: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"postgresql://owner:{PASSWORD}@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        words = [_program("postgres"), "-D", f"{self.folder}/data", "-p", str(self.port), "-k", self.folder]
        with open(f"{self.folder}/log", "ab") as log:
            self.running = subprocess.Popen(
                [*words, "-c", "fsync=off"], stdout=log, stderr=log, cwd=self.folder, **self._owner
            )
        self.connect().close()

    def stop(self, how: signal.Signals) -> None:
        """SIGINT is a fast shutdown, SIGQUIT an immediate one."""
        if self.running is not None:
            self.running.send_signal(how)
            self.running.wait()
            self.running = None

    def connect(self) -> Any:
        import psycopg

        for _ in range(600):
            try:
                return psycopg.connect(self.url, autocommit=True)
            except psycopg.OperationalError:
                time.sleep(0.1)
        raise Unavailable("the server of PostgreSQL did not start")


def _program(name: str) -> str:
    found = shutil.which(name) or max(glob(f"/usr/lib/postgresql/*/bin/{name}"), default=None)
    if found is None:
        raise Unavailable("there is no PostgreSQL server here")
    return found


@contextmanager
def _server() -> Iterator[Server]:
    try:
        import psycopg
    except ImportError:
        raise Unavailable("psycopg is not installed") from None
    assert psycopg
    _program("initdb")
    with tempfile.TemporaryDirectory(prefix="dpcurate-chaos-pg-") as folder:
        owner = _owner()
        password = Path(folder) / "password"
        password.write_text(PASSWORD)
        if owner:
            for path in (folder, password):
                os.chown(path, owner["user"], owner["group"])
        server = Server(folder, owner)
        try:
            server.start()
            _load(server)
            yield server
        finally:
            server.stop(signal.SIGINT)


def _owner() -> dict[str, Any]:
    """Who runs the server, which refuses to be root's."""
    if os.geteuid() != 0:
        return {}
    names = [entry.pw_name for entry in pwd.getpwall()]
    other = pwd.getpwnam("postgres" if "postgres" in names else "nobody")
    return {"user": other.pw_uid, "group": other.pw_gid, "extra_groups": []}


def _load(server: Server) -> None:
    cells = ", ".join(f"CAST(floor(random() * 9) AS int) AS {name}" for name in COLUMNS)
    with server.connect() as connection:
        connection.execute(f"CREATE TABLE rows AS SELECT {cells} FROM generate_series(1, {ROWS})")


def _round(arena: Arena, server: Server, path: Path, diary: Diary) -> None:
    child = fork(lambda pipe: _ask(f"{server.url}#rows", path, diary, pipe), arena.broken)
    for _ in range(arena.rng.randrange(2, 12)):
        child.hear(1)
    time.sleep(arena.rng.uniform(0, 0.02))
    if arena.rng.random() < 0.4:
        server.stop(arena.rng.choice((signal.SIGINT, signal.SIGQUIT)))
        arena.tried["servers stopped"] += 1
        child.wait()
        server.start()
    else:
        _end_sessions(server)
        arena.tried["sessions ended by the server"] += 1
        child.wait()
    arena.check("a server that went away", path, diary)
    told = [text for text in diary.read("failure") if PASSWORD in text]
    arena.fault("a server that went away", [f"an error tells the password: {text}" for text in told])
    arena.tried["questions that failed"] += diary.read("failed").total()


def _end_sessions(server: Server) -> None:
    with server.connect() as connection:
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")


def _ask(url: str, path: Path, diary: Diary, pipe: int) -> None:
    from dpcurate import Budget, Curator
    from dpcurate import queries as r

    curator = Curator(url, LEVELS, ledger=path, budget=Budget(rho=1.0))
    for n in range(ASKS):
        query = r.Release(r.Counts((COLUMNS[n % 9], COLUMNS[(n + 1) % 9])), r.Gaussian(rho=2.0**-14))
        note(diary, [STEP], lambda query=query: _told(diary, lambda: curator.ask(query)))
        os.write(pipe, b".")


def _told(diary: Diary, action: Any) -> None:
    """Keep the whole text of an error, to look for what it must not say."""
    try:
        action()
    except Exception as problem:
        diary.write("failure", [" ".join(f"{problem!r} {problem.__cause__!r}".split())])
        raise

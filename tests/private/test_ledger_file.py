"""A payment is on the disk before it is an answer, and a connection is kept only while that is safe."""

from __future__ import annotations

import gc
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from test_ledger import ZCDP, _python, gaussian, made

from dpcurate import Curator
from dpcurate.errors import BudgetExceeded, LedgerError
from dpcurate.private.ledger import Ledger
from dpcurate.private.ledger import file as ledger_file
from dpcurate.private.ledger import path as ledger_path
from dpcurate.queries import Counts, Gaussian, Release

QUARTER = [gaussian(0.25)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger"


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[sqlite3.Connection]:
    """Every connection that is opened from now on."""
    connections: list[sqlite3.Connection] = []
    connect = sqlite3.connect

    def counted(*args: Any, **more: Any) -> sqlite3.Connection:
        connections.append(connect(*args, **more))
        return connections[-1]

    monkeypatch.setattr(sqlite3, "connect", counted)
    return connections


# --- durable ---------------------------------------------------------------------------------------------

TRANSACTIONS: dict[str, Callable[[Ledger], object]] = {
    "charge": lambda ledger: ledger.charge(QUARTER),
    "reserve": lambda ledger: ledger.reserve(0.25).__enter__(),
    "settle": lambda ledger: ledger._close_block(),
}


def test_every_payment_is_written_under_the_lock_with_a_journal_and_synced(
    path: Path, opened: list[sqlite3.Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What holds in the transaction, just before its commit, asked of the connection that makes it."""
    ledger = made(path)
    assert ledger.spent == 0
    _, connection = opened  # a ledger is made under another name than its own
    seen: list[dict[str, object]] = []
    statements: list[str] = []
    monkeypatch.setattr(ledger._store, "_writing", watched(ledger._store._writing, path, seen))  # type: ignore[attr-defined]
    connection.set_trace_callback(statements.append)
    for name, pay in TRANSACTIONS.items():
        pay(ledger)
        assert seen.pop() == {
            "journal_mode": "delete",
            "synchronous": 3,  # EXTRA: the folder is synced after the journal is gone
            "fullfsync": 1,
            "locking_mode": "normal",
            "others": "SQLITE_BUSY",
            "journal": True,  # what undoes it is in a file until the commit
        }, name
        assert statements[-1] == "COMMIT", name
        assert not Path(f"{path}-journal").exists(), name


def watched(writing: Callable[[], Any], path: Path, seen: list[dict[str, object]]) -> Callable[[], Any]:
    """The store's transaction, which at its end tells how it was made."""
    names = ("journal_mode", "synchronous", "fullfsync", "locking_mode")
    journal = Path(f"{path}-journal")

    @contextmanager
    def transaction() -> Iterator[Any]:
        with writing() as (connection, book):
            others = _lock(path)  # before anything is written: the lock came before the reading
            yield connection, book
            pragmas = {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names}
            seen.append({**pragmas, "others": others, "journal": journal.exists() and journal.stat().st_size > 0})

    return transaction


def _lock(path: Path) -> str:
    """What another connection hears that wants to write."""
    other = sqlite3.connect(path, timeout=0, isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as problem:
        return problem.sqlite_errorname
    finally:
        other.close()
    return "free"


def test_reading_writes_nothing(path: Path) -> None:
    ledger = made(path)
    with (
        pytest.raises(LedgerError, match="readonly"),
        ledger._store._file.reading() as connection,  # type: ignore[attr-defined]
    ):
        connection.execute("DELETE FROM event")
    ledger.charge(QUARTER)
    assert ledger.spent == 0.25


# --- one connection --------------------------------------------------------------------------------------


def test_a_ledger_is_opened_once(path: Path, opened: list[sqlite3.Connection]) -> None:
    table = {"a": ["x", "y"], "b": ["x", "y"]}
    levels = {"a": ("x", "y"), "b": ("x", "y")}
    curator = Curator(table, levels, budget=ZCDP, ledger=path)
    for _ in range(2):
        curator.ask(Release(Counts(("a", "b")), Gaussian(rho=0.125)))
        assert curator.remaining > 0
        assert len(curator.privacy().events) > 0
    with curator.reserve(0.25):
        curator.ask(Release(Counts(("a",)), Gaussian(rho=0.125)))
    assert len(opened) == 2  # one to make it
    assert Curator(table, levels, ledger=path).remaining == 0.625
    assert len(opened) == 3


def test_where_a_fork_could_not_be_seen_nothing_is_kept(
    path: Path, opened: list[sqlite3.Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_file, "_KEEP", False)
    ledger = made(path)
    ledger.charge(QUARTER)
    assert ledger.spent == 0.25
    assert len(opened) == 3
    for connection in opened:
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            connection.execute("SELECT 1")


def test_a_connection_is_closed_by_a_failure_a_refusal_and_the_end(
    path: Path, opened: list[sqlite3.Connection]
) -> None:
    ledger = made(path)
    with pytest.raises(BudgetExceeded):
        ledger.charge([gaussian(2)])
    ledger.charge(QUARTER)
    assert len(opened) == 3
    del ledger
    gc.collect()
    for connection in opened:
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            connection.execute("SELECT 1")


def test_threads_share_the_connection(path: Path, opened: list[sqlite3.Connection]) -> None:
    ledger = made(path)
    threads = [threading.Thread(target=ledger.charge, args=([gaussian(0.125)],)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ledger.spent == 0.5
    assert len(opened) == 2


def test_another_file_at_the_path_is_opened_anew(path: Path, opened: list[sqlite3.Connection]) -> None:
    ledger = made(path)
    ledger.charge(QUARTER)
    copy = path.with_name("copy")
    copy.write_bytes(path.read_bytes())
    copy.rename(path)
    ledger.charge(QUARTER)
    assert len(opened) == 3
    assert Ledger.open(path).spent == 0.5


# --- forks -----------------------------------------------------------------------------------------------


def test_a_child_inherits_no_connection(path: Path) -> None:
    """Neither the process that forks nor its child has the file open at that moment; both go on with their own."""
    program = """
    import gc
    path = os.path.realpath(sys.argv[1])
    def open_files():
        return [name for name in os.listdir("/proc/self/fd") if _target(name) == path]
    def _target(name):
        try:
            return os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            return ""
    ledger = Ledger.open(path)
    ledger.charge([gaussian(0.25)])
    assert not os.path.isdir("/proc/self/fd") or len(open_files()) == 1
    child = os.fork()
    if child == 0:
        try:
            assert not os.path.isdir("/proc/self/fd") or not open_files()
            for use in WAYS_IN.values():
                try:
                    use(ledger)
                except LedgerError:
                    continue
                os._exit(2)
            ledger = None
            gc.collect()  # must not touch what the parent does
            Ledger.open(path).charge([gaussian(0.25)])
            os._exit(0)
        finally:
            os._exit(1)
    ledger.charge([gaussian(0.125)])
    assert os.waitpid(child, 0)[1] == 0
    ledger.charge([gaussian(0.125)])
    print(ledger.spent)
    """
    made(path)
    assert _python(program, path) == "0.75\n"
    assert Ledger.open(path).spent == 0.75


def test_a_fork_waits_for_the_gate_and_closes_what_is_open(path: Path, opened: list[sqlite3.Connection]) -> None:
    ledger = made(path)
    ledger_file._before_fork()
    try:
        entered = threading.Thread(target=lambda: ledger.charge(QUARTER))
        entered.start()
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            opened[0].execute("SELECT 1")
        assert len(opened) == 1  # nobody else comes in
    finally:
        ledger_file.GATE.release()
    entered.join()
    assert ledger.spent == 0.25


def test_a_fork_within_a_transaction_is_no_payment(path: Path) -> None:
    """A signal may fork where nobody waits: the payment is undone and nothing is answered."""
    program = """
    ledger = Ledger.open(sys.argv[1])
    def fork_here(spent):
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        return 1
    try:
        ledger._store.charge(fork_here, [gaussian(0.25)], unproved=False)
    except LedgerError as problem:
        print("refused" if "No answer was given" in str(problem) else problem)
    ledger.charge([gaussian(0.5)])
    """
    made(path)
    assert _python(program, path) == "refused\n"
    assert Ledger.open(path).spent == 0.5


def test_without_fork_hooks(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows has neither forks nor hooks; where there were forks without hooks nothing would be kept."""
    monkeypatch.delattr(os, "register_at_fork")
    assert not ledger_file._forks_are_seen()
    monkeypatch.delattr(os, "fork")
    assert ledger_file._forks_are_seen()
    program = """
    for name in ("register_at_fork", "fork")[: int(sys.argv[2])]:
        delattr(os, name)
    for name in [name for name in sys.modules if name.startswith("dpcurate")]:
        del sys.modules[name]
    from dpcurate.private.ledger import Ledger
    ledger = Ledger.open(sys.argv[1])
    ledger.charge([gaussian(0.25)])
    with ledger.reserve(0.25):
        ledger.charge([gaussian(0.125)])
    print(ledger.spent)
    """
    made(path)
    monkeypatch.undo()
    assert _python(program, path, 1) == "0.375\n"
    assert _python(program, path, 2) == "0.75\n"


def test_the_look_is_at_the_plain_file(path: Path) -> None:
    made(path)
    seen = path.stat()
    assert ledger_path.look(path) == (seen.st_dev, seen.st_ino)

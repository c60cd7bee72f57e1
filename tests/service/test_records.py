"""Tokens, consents and the log of a service."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import stat
import threading

import pytest

from dpcurate import Budget, Ledger, Schema
from dpcurate.errors import LedgerError, RefusedError
from dpcurate.service import records as module
from dpcurate.service.records import Records

RUN = {"command": "c" * 64, "method": "auto", "epsilon": 0.2, "purpose": "cohort study", "power": "good"}


@pytest.fixture
def ledger(tmp_path):
    path = tmp_path / "patients.ledger"
    schema = Schema.of({"smokes": ("no", "yes"), "coughs": ("no", "yes")})
    Ledger.create(path, table="patients", neighbours="add-remove", budget=Budget(epsilon=1, delta=1e-10), schema=schema)
    return path


@pytest.fixture
def records(ledger):
    return Records.open(ledger)


def edit(records, statement, *values):
    """Change the log's file behind its back."""
    connection = sqlite3.connect(records.path)
    with connection:
        connection.execute(statement, values)
    connection.close()


# --- tokens ---------------------------------------------------------------------------------------------------------


def test_a_token_is_its_analysts_and_nobody_elses(records):
    alice, bob = records.add_token("alice", 0.4), records.add_token("bob", 0.3)
    assert len(alice) >= 43
    assert records.analyst(alice) == "alice"
    assert records.analyst(bob) == "bob"
    for wrong in ("", alice[:-1], f"{alice} ", alice.swapcase(), hashlib.sha256(alice.encode()).hexdigest(), "\udcff"):
        assert records.analyst(wrong) is None


def test_only_the_hash_of_a_token_is_stored(ledger, records):
    token = records.add_token("alice", 0.4, purpose="cohort study")
    stored = ledger.read_bytes() + records.path.read_bytes()
    assert token.encode() not in stored
    assert hashlib.sha256(token.encode()).hexdigest().encode() in stored


def test_every_token_is_compared_in_constant_time(records, monkeypatch):
    tokens = [records.add_token(name, 0.1) for name in ("alice", "bob", "carol")]
    records.revoke("carol")
    compared = []
    monkeypatch.setattr(module.hmac, "compare_digest", lambda a, b: compared.append((a, b)) or a == b)
    for token in (*tokens, "guess"):
        compared.clear()
        records.analyst(token)
        assert len(compared) == 3  # the first hit ends nothing early
        assert {len(text) for pair in compared for text in pair} == {64}


def test_a_revoked_token_is_nobodys_at_once_in_every_process(ledger, records):
    token = records.add_token("alice", 0.4)
    Records.open(ledger).revoke("alice")
    assert records.analyst(token) is None
    assert records.named("alice") is None
    again = records.add_token("alice", 0.4)
    assert records.analyst(token) is None
    assert records.analyst(again) == "alice"


def test_a_share_without_a_token_has_none(ledger, records):
    Ledger.open(ledger).grant("alice", 0.001)
    assert records.analyst("") is None
    assert records.analyst(" " * 64) is None
    assert records.named("alice") == "alice"


# --- consent --------------------------------------------------------------------------------------------------------


def test_a_share_without_approval_waits_for_nobody(records):
    records.add_token("alice", 0.4)
    assert records.consent("alice", RUN) == "approved"
    assert records.use_consent("alice", RUN)
    assert records.requests() == ()


def test_a_request_waits_until_the_owner_decides(records):
    records.add_token("alice", 0.4, approval=True)
    spent = records.tokens()[0].used
    assert [records.consent("alice", RUN) for _ in range(3)] == ["waiting"] * 3
    (request,) = records.requests("waiting")
    assert (request.analyst, request.facts["epsilon"], request.facts["power"]) == ("alice", 0.2, "good")
    assert records.tokens()[0].used == spent == 0
    assert not records.use_consent("alice", RUN)
    records.decide(request.number, approved=False)
    assert records.consent("alice", RUN) == "denied"
    records.decide(request.number, approved=True)
    assert records.consent("alice", RUN) == "approved"
    assert [one.event for one in records.entries("alice") if one.request] == [
        "consent-waiting", "consent-denied", "consent-approved",
    ]  # fmt: skip


@pytest.mark.parametrize("other", [{"epsilon": 0.4}, {"method": "em-pc"}, {"purpose": "curiosity"}, {"command": "d"}])
def test_consent_to_one_run_is_none_to_another(records, other):
    records.add_token("alice", 0.4, approval=True)
    records.add_token("bob", 0.4, approval=True)
    records.consent("alice", RUN)
    records.decide(1, approved=True)
    assert records.consent("alice", {**RUN, **other}) == "waiting"
    assert records.consent("bob", RUN) == "waiting"
    assert records.consent("alice", {**RUN, "power": "poor"}) == "approved"


def test_a_consent_is_used_once(records):
    records.add_token("alice", 0.4, approval=True)
    records.consent("alice", RUN)
    records.decide(1, approved=True)
    got, start = [], threading.Barrier(8)

    def begin():
        start.wait()
        got.append(records.use_consent("alice", RUN))

    threads = [threading.Thread(target=begin) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got) == [False] * 7 + [True]
    assert records.consent("alice", RUN) == "waiting"
    assert [one.number for one in records.requests()] == [1, 2]
    with pytest.raises(LedgerError, match="has begun"):
        records.decide(1, approved=False)


def test_an_analyst_cannot_flood_the_owner(records):
    records.add_token("alice", 0.4, approval=True)
    records.add_token("bob", 0.4, approval=True)
    for number in range(module.MOST_WAITING):
        records.consent("alice", {**RUN, "command": str(number)})
    with pytest.raises(RefusedError, match="wait for the owner already"):
        records.consent("alice", {**RUN, "command": "one more"})
    assert records.consent("bob", RUN) == "waiting"


def test_a_request_that_is_not_there_cannot_be_decided(records):
    with pytest.raises(LedgerError, match="there is no request 7"):
        records.decide(7, approved=True)
    with pytest.raises(LedgerError, match="a request is waiting"):
        records.requests("open")


# --- the log --------------------------------------------------------------------------------------------------------


def test_the_log_is_read_back_as_it_was_written(ledger, records):
    records.add_token("alice", 0.4)
    records.write("ask", "alice", queries=3, rho=0.001, private=True, run=None)
    records.write("refused", "", why="x" * 2000, digits=10**5000, nan=float("nan"))
    entries = list(Records.open(ledger).entries())
    assert [one.event for one in entries] == ["created", "token-added", "ask", "refused"]
    assert entries[2].facts == {"queries": 3, "rho": 0.001, "private": True, "run": None}
    assert len(entries[3].facts["why"]) == 503
    assert [one.event for one in records.entries("alice")] == ["token-added", "ask"]
    assert records.verify() == (4, entries[-1].chain)


def test_a_line_of_the_log_is_one_line_whatever_is_in_it(records):
    nasty = 'one\ntwo\r\x1b[2J\x00\u2028\u202e"} {"event": "approved"\x85'
    records.write("ask", "alice", purpose=nasty, **{"na\nme": 1})
    line = list(records.entries())[-1].json()
    assert line.isascii()
    assert line.isprintable()
    assert json.loads(line)["facts"] == {"purpose": nasty, "na\nme": 1}
    for analyst in ("alice\n", "a b", "\x1b[2J", "x" * 65):
        with pytest.raises(LedgerError, match="name of an analyst"):
            records.write("ask", analyst)
    for event in ("", "Ask", "ask\n", "consent-approved", "x" * 41):
        with pytest.raises(LedgerError, match="an event is"):
            records.write(event, "alice")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entry SET facts = '{}' WHERE id = 3",
        "UPDATE entry SET analyst = 'bob' WHERE id = 3",
        "UPDATE entry SET written = '2020-01-01T00:00:00+00:00' WHERE id = 3",
        "UPDATE entry SET request = 1 WHERE id = 3",
        "UPDATE entry SET event = 'other' WHERE id = 3",
        "DELETE FROM entry WHERE id = 3",
        "UPDATE entry SET id = 30 WHERE id = 3",
        "UPDATE entry SET chain = '' WHERE id = 3",
    ],
)
def test_an_edited_log_is_noticed(records, statement):
    for number in range(4):
        records.write("ask", "alice", number=number)
    records.verify()
    edit(records, statement)
    with pytest.raises(LedgerError, match="broken at entry 3"):
        records.verify()


def test_threads_and_processes_lose_nothing_and_write_nothing_twice(ledger, records):
    def work(name):
        mine = Records.open(ledger)
        for number in range(15):
            mine.write("ask", name, number=number)

    threads = [threading.Thread(target=work, args=(name,)) for name in ("alice", "bob", "carol")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    records.verify()
    for name in ("alice", "bob", "carol"):
        assert [one.facts["number"] for one in records.entries(name)] == list(range(15))


# --- the file -------------------------------------------------------------------------------------------------------


def test_the_file_is_the_owners_alone_and_has_one_name(tmp_path, ledger, records):
    assert stat.S_IMODE(records.path.stat().st_mode) == 0o600
    os.link(records.path, tmp_path / "second")
    with pytest.raises(LedgerError, match="2 names"):
        records.write("ask", "alice")
    with pytest.raises(LedgerError, match="2 names"):
        Records.open(ledger)


def test_a_moved_ledger_takes_its_log_along(tmp_path, ledger, records):
    records.write("ask", "alice")
    home = tmp_path / "new.ledger"
    os.rename(ledger, home)
    os.rename(records.path, f"{home}-service")
    Ledger.moved(home)
    moved = Records.open(home)
    moved.verify()
    assert [one.event for one in moved.entries()] == ["created", "ask", "moved"]


def test_a_foreign_log_is_refused_and_left_alone(tmp_path, ledger):
    other = tmp_path / "patients.ledger-service"
    other.write_text("notes of the owner\n" * 20)
    with pytest.raises(LedgerError, match="not the log of a service"):
        Records.open(ledger)
    assert other.read_text().startswith("notes of the owner")
    other.unlink()
    second = tmp_path / "second.ledger"
    Ledger.create(second, table="t", neighbours="add-remove", budget=Budget(epsilon=1, delta=0), schema_hash="x")
    os.rename(Records.open(second).path, other)
    with pytest.raises(LedgerError, match="the log of another ledger"):
        Records.open(ledger)


def test_a_fork_cannot_write(records):
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            records.write("ask", "alice")
            os.write(theirs, b"wrote")
        except RefusedError:
            os.write(theirs, b"refused")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert os.read(ours, 10) == b"refused"
    records.write("ask", "alice")
    records.verify()

"""`dpcurate serve`: shares, consent and the log, and what is refused before a table is opened."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from dpcurate import Budget, Ledger, Schema, service
from dpcurate.cli import main

RUN = {"command": "c" * 64, "method": "auto", "epsilon": 0.2, "purpose": "cohort study", "power": "good"}


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    schema = Schema.of({"smokes": ("no", "yes"), "coughs": ("no", "yes")})
    schema.save("t.toml")
    Path("t.csv").write_text("smokes,coughs\n" + "no,no\nyes,yes\n" * 50)
    budget = Budget(epsilon=1, delta=1e-10)
    Ledger.create("t.ledger", table="t", neighbours="replace", budget=budget, schema=schema)
    return tmp_path


def serve(*words):
    return main(["serve", *words, "--ledger", "t.ledger"])


def test_a_token_is_printed_once_and_alone(here, capsys):
    assert serve("token", "add", "alice", "--epsilon", "0.4", "--purpose", "cohort study") == 0
    out, err = capsys.readouterr()
    token = out.strip()
    assert service.Records.open("t.ledger").analyst(token) == "alice"
    assert "not shown again" in err
    assert serve("token", "list") == serve("log") == serve("log", "--json") == 0
    assert token not in "".join(capsys.readouterr())


def test_shares_are_listed_with_both_amounts(here, capsys):
    serve("token", "add", "alice", "--epsilon", "0.4", "--purpose", "cohort study")
    serve("token", "add", "bob", "--epsilon", "0.5", "--reserved", "--approve")
    assert serve("token", "revoke", "alice") == 0
    capsys.readouterr()
    assert serve("token", "list") == 0
    head, alice, bob = capsys.readouterr().out.splitlines()
    assert head.split()[:4] == ["analyst", "share", "epsilon", "spent"]
    assert "revoked" in alice
    assert "cohort study" in alice
    assert bob.split()[:3] == ["bob", "reserved", "0.5"]
    assert [share.approval for share in Ledger.open("t.ledger").shares] == [False, True]


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["token", "add", "a\nb", "--epsilon", "0.4"], "1 to 64 letters"),
        (["token", "add", "alice", "--epsilon", "-1"], "greater than 0"),
        (["token", "add", "alice", "--epsilon", "5"], "at most the ceiling"),
        (["token", "revoke", "nobody"], "'nobody' has no share"),
        (["approve", "7"], "there is no request 7"),
    ],
)
def test_refusals_are_one_sentence(here, capsys, words, hint):
    assert serve(*words) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[-1].startswith("dpcurate: ")
    assert hint in err


@pytest.mark.parametrize(("verb", "state"), [("approve", "approved"), ("deny", "denied")])
def test_the_owner_decides(here, capsys, verb, state):
    serve("token", "add", "alice", "--epsilon", "0.4", "--approve")
    records = service.Records.open("t.ledger")
    assert records.consent("alice", RUN) == "waiting"
    assert serve("log") == 0
    assert "waiting for your consent: request 1" in capsys.readouterr().err
    assert serve(verb, "1") == 0
    assert capsys.readouterr().out == (
        f"request 1 of alice is {state}: method auto, epsilon 0.2, purpose cohort study, power good\n"
    )
    assert records.consent("alice", RUN) == state


def test_the_log_as_lines_of_json(here, capsys):
    serve("token", "add", "alice", "--epsilon", "0.4", "--purpose", "Krebs-Register Zürich")
    capsys.readouterr()
    assert serve("log", "--json") == 0
    out, err = capsys.readouterr()
    entries = [json.loads(line) for line in out.splitlines()]
    assert [entry["event"] for entry in entries] == ["created", "token-added"]
    assert entries[1]["facts"]["purpose"] == "Krebs-Register Zürich"
    assert entries[-1]["chain"] in err


def test_a_log_that_was_edited_is_shown_and_fails(here, capsys):
    serve("token", "add", "alice", "--epsilon", "0.4")
    serve("token", "revoke", "alice")
    connection = sqlite3.connect("t.ledger-service")
    with connection:
        connection.execute("UPDATE entry SET analyst = 'bob' WHERE id = 2")
    connection.close()
    capsys.readouterr()
    assert serve("log") == 1
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 4
    assert "broken at entry 2" in err


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["--host", "0.0.0.0"], "in clear text"),
        (["--user-header", "X-User"], "needs --behind-proxy"),
        (["--behind-proxy"], "--url"),
        (["--tls-cert", "c.pem"], "both a certificate and its key"),
    ],
)
def test_an_unsafe_address_is_refused_before_the_table_is_opened(here, capsys, words, hint):
    Path("t.csv").unlink()
    assert serve("t.csv", "--schema", "t.toml", *words) == 1
    assert hint in capsys.readouterr().err


def test_a_service_needs_a_ledger_that_exists(here, capsys):
    Path("t.ledger").unlink()
    assert serve("t.csv", "--schema", "t.toml") == 1
    assert "there is no ledger at 't.ledger'" in capsys.readouterr().err


def test_serving_says_where_and_how(here, capsys, monkeypatch):
    given = {}

    def stand_in(table, schema, *, address, ready, **more):
        given.update(more, table=table)
        ready(f"{address.url}/#key")

    monkeypatch.setattr(service, "serve", stand_in, raising=False)
    assert serve("t.csv", "--schema", "t.toml", "--approve", "--team", "--whole-seconds") == 0
    assert given == {
        "table": "t.csv", "ledger": "t.ledger", "approve_all": True, "team": True, "whole_seconds": True,
    }  # fmt: skip
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "serving t.csv at http://127.0.0.1:8765"
    assert out[1].endswith("http://127.0.0.1:8765/#key")


def test_a_table_with_the_name_of_a_verb_is_written_with_its_folder(here, monkeypatch):
    Path("log").mkdir()
    seen = []
    monkeypatch.setattr(service, "serve", lambda table, schema, **more: seen.append(table), raising=False)
    assert serve("./log", "--schema", "t.toml") == 0
    assert seen == ["./log"]

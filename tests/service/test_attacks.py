"""What an analyst, a stranger or another site may try on a service, below its routes and on the owner's page."""

from __future__ import annotations

import asyncio
import json
import re
import threading

import numpy as np
import pytest

import dpcurate
from asgi import Client
from dpcurate import Budget, Curator, Ledger, Numeric, Schema
from dpcurate.errors import DpcurateError, LedgerError, QueryError, RefusedError
from dpcurate.private.ledger import RunFacts
from dpcurate.private.masking import fresh_key
from dpcurate.queries import (
    Counts,
    Exact,
    FeatureMap,
    FeatureMoments,
    Gaussian,
    GaussianShare,
    Quantile,
    Release,
    Sample,
    encoding,
)
from dpcurate.service import owner_page
from dpcurate.service.app import create_app
from dpcurate.service.host import ServiceHost, ServiceSettings
from dpcurate.service.limits import Limits, Meter, TooMuch
from dpcurate.service.owner_page import routes
from dpcurate.service.records import Records

KEY = "k" * 43
OURS = {"Origin": "http://127.0.0.1:8000", "Sec-Fetch-Site": "same-origin"}
NASTY = "\ud800 \u202eeslaf\u202c \x1b[2J\x00\r\n\u2028</dd><script>alert(1)</script>{{ 7*7 }}&amp;\"'"


def a_host(folder, **limits):
    network = dpcurate.networks.load("cancer")
    path = folder / "patients.ledger"
    curator = Curator(network.sample(200, seed=1), network.schema, budget=Budget(epsilon=2, delta=1e-10), ledger=path)
    host = ServiceHost(curator, Records.open(path), ServiceSettings(limits=Limits(**limits)))
    host.records.add_token("alice", 0.5)
    return host


@pytest.fixture
def host(tmp_path):
    host = a_host(tmp_path)
    yield host
    host.close()


def facts(**more):
    return RunFacts(**{"command": "c", "method": "auto", "schema": "s", "by": "alice", **more})


def page_of(host):
    client = Client(create_app(host, routes(host, KEY)))
    answer = client.post("/owner/open", content=f"key={KEY}", headers=OURS)
    return client.get("/", headers={**OURS, "Cookie": answer.headers["set-cookie"].partition(";")[0]})


# --- what analysts write, on the owner's page ----------------------------------------------------------------------


def test_no_text_of_an_analyst_blinds_the_owner_or_passes_for_a_page(host):
    """A purpose is written by the analyst: no markup, no control character, nothing that turns text around."""
    host.records.write("ask", "alice", purpose=NASTY, method=NASTY)
    host.records.revoke("alice")
    host.records.add_token("alice", 0.5, approval=True)
    host.records.consent("alice", {"command": "c", "purpose": NASTY, "method": NASTY, NASTY: NASTY})
    host.records.revoke("alice")
    host.records.add_token("alice", 0.5)
    run = host.runs.begin("alice", "r", facts(purpose=NASTY, method=NASTY, result=NASTY), None)
    host.runs.finish(run, "finished")
    host.runs.begin("alice", "r", facts(purpose=NASTY, method=NASTY, command="d"), None)
    page = page_of(host)
    assert page.status_code == 200
    assert "alert(1)" in page.text
    for raw in ("<script>alert", "\u202e", "\x1b", "\x00", "\u2028", "\ud800"):
        assert raw not in page.text
    assert re.search(r"\b49\b", page.text) is None or "{{ 7*7 }}" in page.text


@pytest.mark.parametrize(
    "wrong",
    [
        {"method": 7}, {"purpose": None}, {"epsilon": "0.2"}, {"epsilon": float("nan")}, {"epsilon": -1.0},
        {"quantify": True}, {"purpose": "x" * 100_000}, {"method": "x" * 100_000},
        {"result": {"a": 1}}, {"epsilon": 10**400},
    ],
)  # fmt: skip
def test_facts_of_a_run_that_a_ledger_would_call_damage_are_refused(host, wrong):
    """What a client says of its run stands in the ledger for good: no client can make a ledger that is refused."""
    path = host.curator.ledger.facts.path
    with pytest.raises(DpcurateError):
        host.runs.begin("alice", "r", facts(**wrong), None)
    again = Ledger.open(path)
    assert again.log() == ()
    again.log(), again.stopped("c")


# --- memory, disk and time -----------------------------------------------------------------------------------------


def test_statistics_that_were_only_priced_are_not_all_kept(tmp_path):
    """Each is megabytes of numbers from a body; pricing them is free, so keeping them would fill the memory."""
    names = tuple(f"n{i}" for i in range(4))
    schema = Schema(tuple(Numeric(name, 0, 1) for name in names))
    curator = Curator({name: np.zeros(3) for name in names}, schema, budget=Budget(epsilon=1, delta=1e-6))
    for number in range(40):
        maps = tuple(FeatureMap(name, ((number,) * 50,) * 20) for name in names)
        curator.price([Release(FeatureMoments(maps, 1.0), Gaussian(rho=1e-9))])
    assert len(curator._known) < 10


def test_a_request_holds_as_many_queries_as_it_may(tmp_path):
    host = a_host(tmp_path, queries=10, candidates=50)
    run = host.runs.begin("alice", "r", facts(), None)
    asked = [Release(Counts(("Smoker",)), Gaussian(rho=1e-9))] * 11
    with pytest.raises(TooMuch, match="10 queries"):
        run.ask(asked)
    assert host.share("alice").spent == 0
    assert len(run.ask(asked[:10])) == 10
    host.close()


def test_noise_is_drawn_for_as_many_numbers_as_a_request_may_hold(tmp_path):
    """Drawing a number takes microseconds, in which nobody else is answered; reading a cell takes next to nothing."""
    host = a_host(tmp_path, numbers=10)
    run = host.runs.begin("alice", "r", facts(), None)
    two = [Release(Counts(("Smoker", "Cancer")), Gaussian(rho=1e-9))]
    with pytest.raises(TooMuch, match="may hold 10"):
        run.ask(two * 3)
    assert host.share("alice").spent == 0
    assert len(run.ask(two * 2)) == 2
    host.close()


def test_a_quantile_counts_what_it_reads():
    schema = Schema((Numeric("n", 0, 1),))
    curator = Curator({"n": [0.5]}, schema, budget=Budget(epsilon=1, delta=1e-6))
    one = Quantile(column="n", probability=0.5, epsilon=0.1)
    assert curator.cells_for([one]) >= 4096
    assert curator.cells_for([one] * 3) >= 3 * 4096


def test_a_disk_is_not_filled_by_answers_that_cost_next_to_nothing(tmp_path):
    host = a_host(tmp_path, hourly_bytes=2_000)
    run = host.runs.begin("alice", "r", facts(), None)
    free = [Release(Counts(("Smoker", "Cancer")), Gaussian(rho=1e-12))]
    size = len(encoding.encode_queries(free)) + 8 * 5
    for _ in range(2_000 // size):
        run.ask(free)
    spent = host.share("alice").spent
    with pytest.raises(TooMuch, match="2,000 bytes"):
        run.ask(free)
    assert host.share("alice").spent == spent
    host.runs.finish(run, "stopped")
    again = host.runs.begin("alice", "s", facts(command="d"), None)
    with pytest.raises(TooMuch, match="2,000 bytes"):
        again.ask(free)
    host.close()


def test_the_work_of_an_hour_is_not_added_up_at_every_request():
    """A sum over all requests of an hour would make each of many small requests slower than the one before."""
    meter = Meter(Limits())
    for _ in range(3):
        with meter.work("alice"):
            pass
    before = meter.seconds("alice")
    assert before > 0
    meter._nanoseconds._added["alice"].popleft()
    assert meter.seconds("alice") == before


def test_a_second_block_is_the_analysts_mistake_and_not_the_ledgers(host):
    run = host.runs.begin("alice", "r", facts(), None)
    block = run.reserve(1e-6)
    with pytest.raises(QueryError, match="already"):
        run.reserve(1e-6)
    run.settle(block)
    run.settle(run.reserve(1e-6))


def test_secret_samples_which_hold_a_copy_of_rows_are_few(host):
    run = host.runs.begin("alice", "r", facts(), None)
    tiny = Sample(rate=1.0, epsilon=1e-60)
    for _ in range(host.settings.limits.samples):
        run.open(tiny)
    with pytest.raises(TooMuch, match="sample"):
        run.open(tiny)
    assert host.settings.limits.samples <= 8


def test_a_form_that_never_ends_is_empty(host, monkeypatch):
    """A stranger who sends one byte and waits would keep a request open for ever, and the service from stopping."""
    monkeypatch.setattr(owner_page, "FORM_SECONDS", 0.05)
    sent, first = [], [{"type": "http.request", "body": b"key=", "more_body": True}]

    async def receive():
        return first.pop() if first else await asyncio.Event().wait()

    async def send(message):
        sent.append(message)

    names = [(b"host", b"127.0.0.1:8000"), (b"origin", b"http://127.0.0.1:8000")]
    scope = {"type": "http", "method": "POST", "path": "/owner/open", "headers": names, "query_string": b""}
    asyncio.run(create_app(host, routes(host, KEY))(scope, receive, send))
    assert sent[0]["status"] == 403


def test_a_client_that_leaves_in_the_middle_is_no_error(host):
    sent = []

    async def receive():
        return {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)

    names = [(b"host", b"127.0.0.1:8000"), (b"origin", b"http://127.0.0.1:8000")]
    scope = {"type": "http", "method": "POST", "path": "/owner/open", "headers": names, "query_string": b""}
    asyncio.run(create_app(host, routes(host, KEY))(scope, receive, send))
    assert sent[0]["status"] == 403


# --- the log -------------------------------------------------------------------------------------------------------


def test_entries_are_one_line_each_whatever_is_in_them(host):
    host.records.write("ask", "alice", **{NASTY: NASTY})
    for entry in host.entries():
        line = entry.json()
        assert line.isascii()
        assert line.isprintable()
        json.loads(line)
    host.records.verify()


@pytest.mark.parametrize("name", ["../x", "a/b", "a b", "x\n", "\u202ex", "a'; DROP TABLE entry; --", "%", ""])
def test_no_name_of_an_analyst_reaches_a_file_or_a_statement(host, name):
    with pytest.raises(LedgerError):
        host.records.add_token(name, 0.1)
    assert host.records.named(name) is None
    assert list(host.entries(name)) == [e for e in host.entries() if e.analyst == name]


# --- other sites ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site", "Origin": "http://127.0.0.1:9999"},
        {"Sec-Fetch-Site": "same-site", "Origin": "http://127.0.0.1:8000"},
        {"Sec-Fetch-Site": "none"},
        {"Origin": "null"},
        {"Origin": "http://evil.example"},
        {"Origin": "http://127.0.0.1:8000.evil.example"},
        {"Origin": "http://evil.example/127.0.0.1:8000"},
        {"Origin": "127.0.0.1:8000"},
        {"Referer": "http://127.0.0.1:8000/"},
        {},
    ],
)
def test_another_site_decides_nothing(host, headers):
    client = Client(create_app(host, routes(host, KEY)))
    cookie = client.post("/owner/open", content=f"key={KEY}", headers=OURS).headers["set-cookie"].partition(";")[0]
    host.records.add_token("bob", 0.1, approval=True)
    host.records.consent("bob", {"command": "c", "method": "auto", "epsilon": 0.1})
    number = host.waiting()[0].number
    for path, body in (
        ("/owner/decide", f"number={number}&decision=approve"), ("/owner/close", ""), ("/owner/open", f"key={KEY}"),
    ):  # fmt: skip
        said = client.post(path, content=body, headers={**headers, "Cookie": cookie})
        assert said.status_code == 403, path
        assert "set-cookie" not in said.headers
    assert host.waiting()[0].state == "waiting"
    assert client.get("/", headers={**OURS, "Cookie": cookie}).status_code == 200


@pytest.mark.parametrize(
    "name",
    ["evil.example:8000", "127.0.0.1:8000.evil.example", "127.0.0.1", "localhost", "[::ffff:127.0.0.1]:8000", "",
     "127.0.0.1:8000@evil.example", "2130706433:8000"],
)  # fmt: skip
def test_a_foreign_name_that_points_here_is_refused(tmp_path, name):
    host = a_host(tmp_path)
    host.settings = ServiceSettings(hosts=("127.0.0.1:8000",))
    client = Client(create_app(host, routes(host, KEY)))
    assert client.get("/", headers={"Host": name}).status_code == 421
    assert client.get("/v1/health", headers={"Host": name}).status_code == 421
    assert client.get("/v1/health").status_code == 200
    host.close()


# --- what is kept and what is read ------------------------------------------------------------------------------------


def test_stored_answers_of_one_run_are_read_alone_and_not_without_end(host):
    run = host.runs.begin("alice", "r", facts(), None)
    asked = [Release(Counts(("Smoker",)), Gaussian(rho=1e-9))]
    answers = [run.ask(asked), run.ask(asked)]
    other = host.runs.begin("alice", "s", facts(command="d"), None)
    other.ask([Release(Counts(("Cancer",)), Gaussian(rho=1e-9))])
    ledger = host.curator.ledger
    stored = ledger.stored(run.number, most_bytes=1 << 20)
    kept = [encoding.decode(body)[0][1].value.tolist() for _, body in stored.answers.values()]
    assert sorted(kept) == sorted(answer[0].value.tolist() for answer in answers)
    assert stored.logged.number == run.number
    assert stored.spent == ledger.spent
    assert ledger.stored(99, most_bytes=1 << 20) is None
    with pytest.raises(RefusedError, match="bytes"):
        ledger.stored(run.number, most_bytes=100)


def test_the_newest_entries_are_read_without_all_others(host):
    for number in range(30):
        host.records.write("ask", "alice", number=number)
        host.records.write("ask", "bob", number=number)
    newest = host.records.newest("alice", 5)
    assert [entry.facts["number"] for entry in newest] == [25, 26, 27, 28, 29]
    assert {entry.analyst for entry in newest} == {"alice"}


def test_reading_the_log_does_not_wait_for_what_others_do_meanwhile(host):
    """Under steady requests there is always an entry that is not written yet; only those before count."""
    flushed, real = threading.Event(), host.records.write_all

    def writes_while_more_comes(notes):
        real(notes)
        if not flushed.is_set():
            host.notes.add("asked", "alice", more=True)

    host.records.write_all = writes_while_more_comes
    host.notes.add("asked", "alice", number=1)

    def flush():
        host.notes.flush()
        flushed.set()

    reader = threading.Thread(target=flush, daemon=True)
    reader.start()
    reader.join(20)
    ended = flushed.is_set()
    flushed.set()
    reader.join(20)
    assert ended
    assert any(entry.facts.get("number") == 1 for entry in host.entries("alice"))


def test_the_log_says_what_a_run_may_spend_and_not_what_its_client_claims(host):
    host.records.revoke("alice")
    token = host.records.add_token("alice", 0.5)
    client = Client(create_app(host))
    share = host.share("alice").ceiling / 2
    body = {
        "request": "r" * 12, "command": "c" * 64, "schema": host.curator.schema.hash, "method": "auto",
        "epsilon": 1e-9, "share": share,
    }  # fmt: skip
    begun = client.post("/v1/runs", json=body, headers={"Authorization": f"Bearer {token}"})
    assert begun.status_code == 200, begun.text
    (entry,) = [one for one in host.entries("alice") if one.event == "run-begun"]
    assert entry.facts["epsilon"] == host.curator.budget.as_epsilon(share) > 0.1


@pytest.mark.parametrize("noise", [Exact(), GaussianShare(rho=0.01, sites=3)])
def test_noise_that_protects_nobody_is_refused_everywhere(host, noise):
    """An exact release, or one site's share of the noise of many: neither of the table nor of a secret sample."""
    host.records.revoke("alice")
    token = host.records.add_token("alice", 0.5)
    mine, client = {"Authorization": f"Bearer {token}"}, Client(create_app(host))
    begin = {"request": "r" * 12, "command": "c" * 64, "schema": host.curator.schema.hash, "method": "auto"}
    run = client.post("/v1/runs", json=begin, headers=mine).json()["run"]
    gate = {"request": "g" * 12, "gate": encoding.to_plain(Sample(rate=0.5, epsilon=0.01)), "place": ""}
    sample = client.post(f"/v1/runs/{run}/gates", json=gate, headers=mine).json()["gate"]
    spent = host.share("alice").spent
    asked = [encoding.to_plain(Release(Counts(("Smoker",)), noise))]
    for path, more in (("/v1/cost", {}), (f"/v1/runs/{run}/ask", {"request": "q" * 12, "place": ""}),
                       (f"/v1/runs/{run}/ask", {"request": "p" * 12, "place": sample})):  # fmt: skip
        said = client.post(path, json={"queries": asked, **more}, headers=mine)
        assert said.status_code in (403, 422), said.text
        assert "answers" not in said.json()
    assert host.share("alice").spent == spent


def test_a_team_reads_no_masked_part_of_a_study_that_the_owner_has_answered(tmp_path):
    """Parts are for the coordinator of their study, and say nothing by themselves; the run is there without them."""
    network, path = dpcurate.networks.load("cancer"), tmp_path / "patients.ledger"
    keys = {"Oslo": dpcurate.pooling.site_public_key(path), "Rome": fresh_key().public, "Lima": fresh_key().public}
    file = dpcurate.pooling.new_study(network.schema, sites=tuple(keys), epsilon=0.2, noise="shared", keys=keys)
    owner = dpcurate.pooling.SiteOwner(network.sample(200, seed=1), network.schema, epsilon=2, ledger=path)
    part = dpcurate.pooling.answer_study(file, "Oslo", owner).bodies[0]
    host = ServiceHost(owner.opened().curator, Records.open(path), ServiceSettings(team=True))
    client, mine = Client(create_app(host)), {"Authorization": f"Bearer {host.records.add_token('alice', 0.5)}"}
    assert [run["number"] for run in client.get("/v1/runs", headers=mine).json()["runs"]] == [1]
    said = client.get("/v1/answers/1", headers=mine)
    assert said.status_code == 200, said.text
    assert said.json()["answers"] == []
    assert part.hex()[:200] not in said.text
    host.close()


def test_an_analyst_cannot_pass_for_the_owner_who_answers_a_study_by_files(host, tmp_path):
    """The log is where a site looks up what it has answered; a run over the service says of itself what it likes."""
    network = dpcurate.networks.load("cancer")
    file = dpcurate.pooling.new_study(network.schema, sites=("Oslo", "Rome"), epsilon=0.2)
    study = dpcurate.open(network.sample(200, seed=1), network.schema, ledger=tmp_path / "patients.ledger")
    for number, site in ((1, "Oslo"), (2, "Oslo"), (1, "Rome")):
        told = facts(command=f"c{number}{site}", method="study", result=f"round {number} of study {file.id} as {site}")
        run = host.runs.begin("alice", f"r{number}{site}", told, None)
        run.ask([Release(Counts(("Smoker",)), Gaussian(rho=1e-7))])
        host.runs.finish(run, "finished")
    assert dpcurate.pooling.preview_answer(file, "Oslo", study).stored == 0
    assert dpcurate.pooling.answer_study(file, "Oslo", study).round == 1
    assert dpcurate.pooling.preview_answer(file, "Oslo", study).stored == 1

"""The routes for analysts as HTTP: who is let in, what is refused, and what nobody learns from it."""

from __future__ import annotations

import asyncio
import json

import pytest

import dpcurate
from asgi import Client
from dpcurate import Budget, Curator
from dpcurate.queries.encoding import KNOWN
from dpcurate.remote import wire
from dpcurate.service import refusals
from dpcurate.service.app import create_app
from dpcurate.service.host import ServiceHost, ServiceSettings
from dpcurate.service.limits import Limits
from dpcurate.service.openapi import ANSWERS, BODIES
from dpcurate.service.records import Records


def counts(columns, rho):
    return {"Release": [{"Counts": [columns]}, {"Gaussian": [None, rho, None, None]}]}


COUNTS = counts(["Smoker"], 0.001)
SCORE = {"Score": [{"Tau": ["Smoker", "Cancer", []]}, 0.1, "above"]}
RUN = {"command": "c" * 64, "method": "test", "request": "request-0", "share": 0.01}


@pytest.fixture
def settings():
    return ServiceSettings()


@pytest.fixture
def host(tmp_path, settings):
    network = dpcurate.networks.load("cancer")
    budget = Budget(epsilon=2, delta=1e-10)
    curator = Curator(network.sample(500, seed=1), network.schema, budget=budget, ledger=tmp_path / "patients.ledger")
    host = ServiceHost(curator, Records.open(tmp_path / "patients.ledger"), settings)
    yield host
    host.close()


class Analyst:
    """One analyst's requests; each has a new id unless one is given."""

    def __init__(self, host, name="alice", epsilon=1.0, headers=None):
        self._client, self._host, self._count = Client(create_app(host)), host, 0
        self.headers = headers or {"Authorization": f"Bearer {host.records.add_token(name, epsilon)}"}

    def get(self, path, **more):
        return self._client.get(f"/v1{path}", headers={**self.headers, **more})

    def post(self, path, body, **more):
        headers = {"Content-Type": "application/json", **self.headers, **more}
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self._client.post(f"/v1{path}", content=content, headers=headers)

    def begin(self, **more):
        told = self.post("/runs", {**RUN, "schema": self._host.curator.schema.hash, **more})
        assert told.status_code == 200, told.text
        return told.json()["run"]

    def asked(self, run, path, **body):
        self._count += 1
        return self.post(f"/runs/{run}{path}", {"request": f"request-{self._count}", **body})


@pytest.fixture
def alice(host):
    return Analyst(host)


def code(response):
    """The code of a refusal, which says nothing of files and holds no trace."""
    told = response.json()["error"]
    assert response.status_code == wire.ERRORS[told["code"]][1]
    assert "patients" not in response.text  # the names of the table and of the ledger's file
    assert "Traceback" not in response.text
    return told["code"]


# --- who is let in ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers", [{}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic YTpi"}, {"Authorization": "Bearer"},
                {"Authorization": "Bearer " + "x" * 10_000}],
)  # fmt: skip
def test_nobody_is_let_in_without_a_token(host, headers):
    stranger = Analyst(host, headers=headers or {"X-None": ""})
    for _, path, method in calls(host):
        response = stranger.get(path) if method == "GET" else stranger.post(path, b"{" * 100)
        assert code(response) == "token"
    assert list(host.entries())[1:] == []  # a stranger writes nothing on the owner's disk


def calls(host):
    from dpcurate.service.analyst_routes import Analysts

    return [(call.handler.__name__, call.path, call.method) for call in Analysts(host).calls]


class TestAProxyThatVouches:
    @pytest.fixture
    def settings(self):
        return ServiceSettings(user_header="X-User")

    def test_names_an_analyst_and_a_token_still_counts(self, host, alice):
        host.records.add_token("bob", 0.5)
        assert Analyst(host, headers={"X-User": "bob"}).get("/facts").json()["analyst"] == "bob"
        assert code(Analyst(host, headers={"X-User": "carol"}).get("/facts")) == "token"
        assert alice.get("/facts", **{"X-User": "bob"}).json()["analyst"] == "alice"
        assert code(Analyst(host, headers={"X-User": "bob", "Authorization": "Bearer x"}).get("/facts")) == "token"

    def test_cannot_be_made_to_ask_by_a_page_elsewhere(self, host):
        host.records.add_token("bob", 0.5)
        victim = Analyst(host, headers={"X-User": "bob"})
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
            assert code(victim.post("/runs", RUN, **{"Content-Type": kind})) == "media"


def test_a_name_in_a_header_counts_for_nothing_without_a_proxy(host, alice):
    assert code(Analyst(host, headers={"X-User": "alice"}).get("/facts")) == "token"


# --- what is said -----------------------------------------------------------------------------------------------------


def test_facts_say_what_an_analyst_has_to_know(host, alice):
    told = alice.get("/facts").json()
    assert dpcurate.Schema.loads(told["schema"]) == host.curator.schema
    assert told["guarantee"]["epsilon"] == 2
    assert told["share"]["ceiling"] == pytest.approx(told["remaining"])
    assert set(told) == {"version", *ANSWERS["facts"]}


def test_a_cost_is_told_and_not_paid(host, alice):
    told = alice.post("/cost", {"queries": [COUNTS, COUNTS]}).json()
    assert told["cost"] == pytest.approx(0.002)
    assert told["cells"] == 2
    assert host.budget().spent == 0


def test_an_answer_says_what_it_cost_and_what_is_left(host, alice):
    run = alice.begin()
    told = alice.asked(run, "/ask", queries=[COUNTS]).json()
    ((total,),) = (answer["shapes"] for answer in told["answers"])
    assert total == [2]
    assert told["cost"] == pytest.approx(0.001)
    assert told["remaining"] == pytest.approx(0.009)
    assert told["steps"][0][:2] == ["gaussian", "Counts(Smoker)"]
    assert alice.post(f"/runs/{run}/end", {"outcome": "finished"}).json()["spent"] == pytest.approx(0.001)


def test_the_log_says_who_asked_what_and_what_was_refused(host, alice):
    run = alice.begin(purpose="a trial")
    alice.asked(run, "/ask", queries=[COUNTS])
    alice.asked(run, "/ask", queries=[{"Nothing": []}])
    alice.post(f"/runs/{run}/end", {"outcome": "finished"})
    entries = alice.get("/log").json()["entries"]
    assert [entry["event"] for entry in entries] == ["token-added", "run-begun", "asked", "refused", "run-ended"]
    assert entries[1]["facts"]["purpose"] == "a trial"
    assert entries[2]["facts"]["about"] == "Counts"
    assert entries[3]["facts"]["code"] == "body"
    host.records.verify()


def test_the_description_has_every_route_and_every_query(host, alice):
    told = alice.get("/openapi.json").json()
    assert {(path, method.upper()) for path, ways in told["paths"].items() for method in ways} == {
        (f"/v1{path}", method) for _, path, method in calls(host)
    }
    names = told["components"]["schemas"].keys()
    assert KNOWN.keys() - names == {"Exact"}
    assert set(re_refs(json.dumps(told))) <= set(names)
    assert '"Exact"' not in json.dumps(told)


def re_refs(text):
    return [part.partition('"')[0] for part in text.split("#/components/schemas/")[1:]]


def test_the_description_has_the_fields_that_are_taken(host, alice):
    run = alice.begin()
    values = {
        "queries": [COUNTS], "gate": {"AboveThreshold": [0.001]}, "scores": [SCORE],
        "amount": 0.001, "outcome": "finished", "command": "d" * 64, "schema": host.curator.schema.hash, "method": "m",
    }  # fmt: skip
    for name, path, _ in calls(host):
        if name in BODIES:
            given = {field: values[field] for field in BODIES[name] if field in values}
            if "request" in BODIES[name]:
                given["request"] = f"request-{name}"
            place = path.replace("{run}", run).replace("{gate}", "none").replace("{block}", "none")
            response = alice.post(place, given)
            assert response.status_code == 200 or code(response) == "query", (name, response.text)
            assert code(alice.post(place, {**given, "request": "request-x", "more": 1})) == "body"
            if response.status_code == 200 and name != "end":
                assert set(response.json()) == {"version", *ANSWERS[name]}


# --- hostile bodies ---------------------------------------------------------------------------------------------------

EXACT = {"Release": [{"Counts": [["Smoker"]]}, {"Exact": []}]}


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "body"), (b"{", "body"), (b"[]", "body"), (b"null", "body"), (b"\xff\xfe", "body"),
        (b"[" * 50_000, "body"), (b'{"a":' * 50_000, "body"), (b'{"request":NaN}', "body"),
        (b'{"request":"request-x","request":"request-y"}', "body"),
        ({"queries": [COUNTS]}, "body"),
        ({"request": "../../etc/passwd", "queries": [COUNTS]}, "body"),
        ({"request": "request-x", "queries": "Counts"}, "body"),
        ({"request": "request-x", "queries": [COUNTS], "insecure_seed": 1}, "body"),
        ({"request": "request-x", "queries": [COUNTS], "allow_unproved": True}, "body"),
        ({"request": "request-x", "queries": []}, "query"),
        ({"request": "request-x", "queries": [EXACT]}, "not-private"),
        ({"request": "request-x", "queries": [{"AboveThreshold": [1]}]}, "query"),
        ({"request": "request-x", "queries": [{"os.system": ["true"]}]}, "body"),
        ({"request": "request-x", "queries": [counts(["nobody"], 0.001)]}, "query"),
        ({"request": "request-x", "queries": [COUNTS], "place": "nowhere"}, "query"),
        ({"request": "request-x", "queries": [COUNTS] * 30_000}, "limit"),
        ({"request": "request-x", "queries": [counts(["Smoker"], 10)]}, "budget"),
        (b'{"request":"request-x","queries":[' + b"1" * 5_000 + b"]}", "body"),
        (b" " * (5 << 20), "too-large"),
    ],
    ids=lambda value: value if isinstance(value, str) else repr(value)[:60],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_in_a_sentence_and_costs_nothing(host, alice, body, why):
    run = alice.begin()
    assert code(alice.post(f"/runs/{run}/ask", body)) == why
    assert host.budget().spent == 0
    assert alice.asked(run, "/ask", queries=[COUNTS]).status_code == 200


@pytest.mark.parametrize(
    "wrong",
    [
        {"command": "x"}, {"command": "../ledger"}, {"method": "a\nb"}, {"method": 1}, {"purpose": "x" * 501},
        {"purpose": "\x1b[2J"}, {"share": "all"}, {"share": -1}, {"share": 0}, {"epsilon": True}, {"epsilon": 1e999},
        {"by": "bob"}, {"result": "x" * 201}, {"quantify": "half"}, {"schema": 7}, {"schema": "another"},
    ],
    ids=str,
)  # fmt: skip
def test_a_run_that_makes_no_sense_is_not_begun(host, alice, wrong):
    response = alice.post("/runs", {**RUN, "schema": host.curator.schema.hash, **wrong})
    assert code(response) in ("body", "amount", "query")
    assert host.log() == ()


@pytest.mark.parametrize("path", ["/runs/x/ask", "/facts/../etc", "/answers/1%2f..", "/v2/facts", "/pickle"])
def test_what_is_at_no_address_is_not_there(alice, path):
    response = alice.get(path)
    assert response.status_code in (404, 405)
    assert code(response) in ("route", "method", "answers")


def test_an_error_of_ours_tells_its_kind_to_the_owner_alone(host, alice, monkeypatch):
    run = alice.begin()

    def broken(self, queries, place=""):
        raise RuntimeError("row 7: Smith, /home/owner/patients.csv")

    monkeypatch.setattr(type(host.runs.find("alice", run)), "ask", broken)
    response = alice.asked(run, "/ask", queries=[COUNTS])
    assert code(response) == "internal"
    assert "Smith" not in response.text
    (entry,) = (entry for entry in host.entries("alice") if entry.event == "refused")
    assert entry.facts == {"route": "/runs/{run}/ask", "code": "internal", "error": "RuntimeError"}


def test_every_code_of_a_refusal_is_known_to_clients():
    assert {code for _, code in refusals.CODES} | refusals.OURS.keys() <= wire.ERRORS.keys()


def test_refusals_do_not_fill_the_log(host, alice, monkeypatch):
    from dpcurate.service import analyst_routes

    monkeypatch.setattr(analyst_routes, "REFUSALS_LOGGED", 3)
    for _ in range(6):
        alice.get("/answers/99")
    assert sum(entry.event == "refused" for entry in host.entries()) == 3


# --- runs, gates and blocks are leases --------------------------------------------------------------------------------


def test_nobody_reaches_the_run_of_another(host, alice):
    bob = Analyst(host, "bob", 0.5)
    run = alice.begin()
    gate = alice.asked(run, "/gates", gate={"AboveThreshold": [0.01]}).json()["gate"]
    assert code(bob.asked(run, "/ask", queries=[COUNTS])) == "run"
    assert code(bob.asked(run, f"/gates/{gate}/first", scores=[])) == "run"
    assert code(bob.post(f"/runs/{run}/end", {"outcome": "finished"})) == "run"
    assert code(bob.get("/answers/1")) == "answers"
    assert bob.get("/runs").json()["runs"] == []
    assert bob.get("/runs/stopped?command=" + "c" * 64).json()["run"] is None


class TestAClientThatFallsSilent:
    @pytest.fixture
    def settings(self):
        return ServiceSettings(limits=Limits(idle_seconds=1e-6))

    def test_loses_its_run_and_what_it_had_set_aside(self, host, alice):
        run = alice.begin()
        assert alice.asked(run, "/blocks", amount=0.005).json()["remaining"] == pytest.approx(0.005)
        host.runs.expire()
        assert code(alice.asked(run, "/ask", queries=[COUNTS])) == "run"
        assert host.budget().spent == pytest.approx(0.005)
        assert host.log()[0].outcome == "stopped"


def test_a_block_that_is_ended_gives_back_what_it_did_not_use(host, alice):
    run = alice.begin()
    block = alice.asked(run, "/blocks", amount=0.005).json()["block"]
    assert alice.asked(run, "/ask", queries=[COUNTS]).status_code == 200
    assert alice.asked(run, f"/blocks/{block}/end").json()["remaining"] == pytest.approx(0.009)
    assert code(alice.asked(run, f"/blocks/{block}/end")) == "query"
    assert host.budget().spent == pytest.approx(0.001)


def test_samples_that_a_client_is_done_with_make_room_for_others(host, alice):
    run = alice.begin()
    sample = {"Sample": [0.5, 0.01]}
    first, second = (alice.asked(run, "/gates", gate=sample).json()["gate"] for _ in range(2))
    inner = alice.asked(run, "/gates", gate={"AboveThreshold": [0.001]}, place=first).json()["gate"]
    assert code(alice.asked(run, "/gates", gate=sample)) == "limit"
    assert alice.asked(run, "/gates", gate=sample, done=[first]).status_code == 200
    assert code(alice.asked(run, f"/gates/{inner}/first", scores=[])) == "query"  # it was a gate of that sample
    assert alice.asked(run, "/ask", queries=[COUNTS], done=["", second]).status_code == 200


# --- limits and time --------------------------------------------------------------------------------------------------


class TestALimitOfRunsAndTime:
    @pytest.fixture
    def settings(self):
        return ServiceSettings(limits=Limits(runs=1, seconds=1e-9), whole_seconds=True)

    def test_is_kept_and_answers_leave_on_whole_seconds(self, alice, monkeypatch):
        slept = []

        async def sleep(seconds):
            slept.append(seconds)

        monkeypatch.setattr(asyncio, "sleep", sleep)
        assert alice.get("/facts").status_code == 200
        assert code(alice.get("/facts")) == "limit"  # the first has used up the hour
        assert len(slept) == 2
        assert all(0 <= seconds < 1 for seconds in slept)


def test_a_service_that_stops_answers_nothing_more(host, alice):
    run = alice.begin()
    host.runs.close()
    assert code(alice.asked(run, "/ask", queries=[COUNTS])) == "stopping"


def test_a_service_that_cannot_write_its_log_answers_nothing_until_it_can(host, alice, monkeypatch):
    write = host.records.write_all
    monkeypatch.setattr(host.records, "write_all", lambda notes: 1 / 0)
    run = alice.begin()
    host.notes.flush()
    assert code(alice.asked(run, "/ask", queries=[COUNTS])) == "ledger"
    assert host.budget().spent == 0
    monkeypatch.setattr(host.records, "write_all", write)
    host.notes.flush()
    while host.notes._failed:
        host.notes.flush()
    assert alice.asked(run, "/ask", queries=[COUNTS]).status_code == 200
    assert [entry.event for entry in host.entries("alice")][1:3] == ["run-begun", "refused"]

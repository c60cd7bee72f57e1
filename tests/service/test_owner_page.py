"""The owner's page: what it shows, and to whom."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

import dpcurate
from asgi import Client
from dpcurate import Budget, Curator
from dpcurate.queries import Counts
from dpcurate.service.app import create_app
from dpcurate.service.host import ServiceHost
from dpcurate.service.owner_page import routes
from dpcurate.service.records import Records

KEY = "k" * 43
OURS = {"Origin": "http://127.0.0.1:8000", "Sec-Fetch-Site": "same-origin"}
RUN = {"command": "c" * 64, "method": "auto", "epsilon": 0.2, "purpose": "<b>cohort</b>", "power": "good"}


@pytest.fixture
def host(tmp_path):
    network = dpcurate.networks.load("cancer")
    budget = Budget(epsilon=2, delta=1e-10)
    curator = Curator(network.sample(500, seed=1), network.schema, budget=budget, ledger=tmp_path / "patients.ledger")
    host = ServiceHost(curator, Records.open(tmp_path / "patients.ledger"))
    yield host
    host.close()


@pytest.fixture
def client(host):
    return Client(create_app(host, routes(host, KEY)))


def signed_in(client, **more):
    """Headers of the owner's browser."""
    answer = client.post("/owner/open", content=f"key={KEY}", headers={**OURS, **more})
    assert answer.status_code == 303
    return {**OURS, "Cookie": answer.headers["set-cookie"].partition(";")[0]}


def asks(host, name="bob", **more):
    """A run of an analyst that waits."""
    if name not in {share.name for share in host.shares()}:
        host.records.add_token(name, 0.4, approval=True, purpose="trial")
    assert host.records.consent(name, {**RUN, **more}) == "waiting"
    return host.waiting()[-1].number


# --- who sees it ------------------------------------------------------------------------------------------------------


def test_a_stranger_sees_a_form_and_nothing_of_the_table(host, client):
    asks(host)
    page = client.get("/")
    assert page.status_code == 403
    assert "Owner's key" in page.text
    for secret in ("bob", "trial", "patients", "epsilon"):
        assert secret not in page.text


def test_the_key_is_exchanged_for_a_cookie_that_scripts_and_other_sites_do_not_get(client):
    answer = client.post("/owner/open", content=f"key={KEY}", headers=OURS)
    cookie = answer.headers["set-cookie"].lower()
    assert answer.headers["location"] == "/"
    assert {"httponly", "samesite=strict", "path=/"} <= {part.strip() for part in cookie.split(";")}
    assert "secure" not in cookie
    assert KEY not in cookie
    assert client.get("/", headers=signed_in(client)).status_code == 200


def test_over_https_the_cookie_never_travels_in_clear_text(host):
    client = Client(create_app(host, routes(host, KEY, secure=True)), base="https://stats.example.org")
    ours = {"Origin": "https://stats.example.org"}
    answer = client.post("/owner/open", content=f"key={KEY}", headers=ours)
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("__Host-")
    assert "secure" in cookie.lower()
    page = client.get("/", headers={"Cookie": cookie.partition(";")[0]})
    assert page.status_code == 200


@pytest.mark.parametrize("key", ["", "k" * 42, "k" * 44, KEY.upper(), "%00", "\u00e9", "x" * 10_000])
def test_another_key_opens_nothing(client, key):
    answer = client.post("/owner/open", content=f"key={key}".encode(), headers=OURS)
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


def test_an_analysts_token_opens_nothing(host, client):
    token = host.records.add_token("alice", 0.4)
    number = asks(host)
    named = signed_in(client)["Cookie"].partition("=")[0]
    forged = [{"Authorization": f"Bearer {token}"}, {"Cookie": f"{named}={token}"}, {"Cookie": f"{named}={KEY}"}]
    for headers in forged:
        assert client.get("/", headers=headers).status_code == 403
        said = client.post("/owner/decide", content=f"number={number}&decision=approve", headers={**OURS, **headers})
        assert said.status_code == 403
    assert client.post("/owner/open", content=f"key={token}", headers=OURS).status_code == 403
    assert host.waiting()[0].state == "waiting"


def test_signing_out_ends_every_session(client):
    mine = signed_in(client)
    assert client.get("/", headers=mine).status_code == 200
    assert client.post("/owner/close", headers=OURS).status_code == 303  # a stranger ends nobody's
    assert client.get("/", headers=mine).status_code == 200
    assert client.post("/owner/close", headers=mine).status_code == 303
    assert client.get("/", headers=mine).status_code == 403


def test_two_services_on_one_host_have_cookies_of_two_names(host):
    names = set()
    for key in (KEY, "l" * 43):
        answer = Client(create_app(host, routes(host, key))).post("/owner/open", content=f"key={key}", headers=OURS)
        names.add(answer.headers["set-cookie"].partition("=")[0])
    assert len(names) == 2


CROSS_SITE = [
    {"Origin": "https://elsewhere.example"},
    {"Origin": "null"},
    {"Origin": "http://127.0.0.1:9000", "Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "cross-site"},
    {},
]


@pytest.mark.parametrize("path", ["/owner/decide", "/owner/open", "/owner/close"])
@pytest.mark.parametrize("headers", CROSS_SITE)
def test_another_site_cannot_use_the_owners_browser(host, client, path, headers):
    number, mine = asks(host), signed_in(client)
    body = f"number={number}&decision=approve&key={KEY}"
    said = client.post(path, content=body, headers={**headers, "Cookie": mine["Cookie"]})
    assert said.status_code == 403
    assert "set-cookie" not in said.headers
    assert host.waiting()[0].state == "waiting"
    assert client.get("/", headers=mine).status_code == 200


def test_another_site_cannot_embed_or_read_the_page(client):
    mine = signed_in(client)
    embedded = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}
    assert client.get("/", headers={**embedded, "Cookie": mine["Cookie"]}).status_code == 403
    policy = client.get("/", headers=mine).headers["content-security-policy"]
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy


def test_a_decision_is_never_a_get(host, client):
    number, mine = asks(host), signed_in(client)
    assert client.get(f"/owner/decide?number={number}&decision=approve", headers=mine).status_code == 405
    assert host.waiting()[0].state == "waiting"


# --- what it shows ----------------------------------------------------------------------------------------------------


def test_the_page_shows_budget_shares_requests_runs_and_log(host, client):
    host.records.add_token("alice", 0.4, reserved=True, purpose="cohort study")
    asks(host, power="detects correlations above about 0.04")
    study = dpcurate.Study.over(host.curator)
    study.ask(Counts(("Smoker", "Cancer")), epsilon=0.5, by="me", purpose="table 1")
    text = client.get("/", headers=signed_in(client)).text
    for shown in (
        "epsilon = 2, delta = 1e-10", "alice", "reserved", "cohort study", "bob", "wait for you",
        "detects correlations above about 0.04", "Approve", "Deny", "table 1", "finished", "token added",
        "No run is under way", "by itself epsilon = 0.5",
    ):  # fmt: skip
        assert shown in text, shown
    spent = float(re.search(r'class="spent" width="([\d.]+)"', text)[1])
    state = host.budget()
    assert spent == pytest.approx(100 * state.spent / float(state.budget.ceiling), abs=0.01)
    kept = float(re.search(r'class="kept" x="[\d.]+" width="([\d.]+)"', text)[1])
    assert kept == pytest.approx(100 * state.promised / float(state.budget.ceiling), abs=0.01)
    assert kept > 0


def test_a_run_under_way_is_shown(host, client):
    from dpcurate.private.ledger import RunFacts

    host.records.add_token("alice", 0.4)
    facts = RunFacts(command="c", method="em-pc", schema="", by="alice", purpose="under way")
    host.runs.begin("alice", "r1", facts, None)
    text = client.get("/", headers=signed_in(client)).text
    section = re.search(r'<section id="running".*?</section>', text, re.DOTALL)[0]
    assert "em-pc" in section
    assert "under way" in section


def test_what_an_analyst_wrote_is_text(host, client):
    asks(host, method="<script>alert(1)</script>")
    text = client.get("/", headers=signed_in(client)).text
    assert "&lt;b&gt;cohort&lt;/b&gt;" in text
    assert "<b>cohort" not in text
    assert "<script>alert" not in text
    assert "c" * 64 not in text


def test_nothing_is_inline_and_nothing_comes_from_elsewhere(host, client):
    asks(host)
    for page in (client.get("/"), client.get("/", headers=signed_in(client))):
        assert not re.search(r"<style|\bstyle=|\bon\w+=|<script>|https?://", page.text)
        for link in re.findall(r'(?:href|src)="(/assets/[^"]+)"', page.text):
            assert client.get(link).status_code == 200, link
    assert "http" not in (files("dpcurate.service") / "assets" / "owner.js").read_text()


def test_only_the_newest_runs_and_entries_are_shown(host, client):
    for number in range(60):
        host.records.write("test-event", "alice", number=1000 + number)
    text = client.get("/", headers=signed_in(client)).text
    assert "number 1059" in text
    assert "number 1009" not in text


# --- decisions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("decision", "state"), [("approve", "approved"), ("deny", "denied")])
def test_the_owner_decides(host, client, decision, state):
    number, mine = asks(host), signed_in(client)
    said = client.post("/owner/decide", content=f"number={number}&decision={decision}", headers=mine)
    assert (said.status_code, said.headers["location"]) == (303, "/")
    assert host.waiting() == ()
    assert host.records.consent("bob", RUN) == state


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("number=99&decision=approve", 409),
        ("number=x&decision=approve", 400),
        ("number=1&decision=perhaps", 400),
        ("number=%D9%A1&decision=approve", 400),
        ("number=99999999999999999999&decision=deny", 400),
        ("", 400),
        ("number=1&decision=approve&" + "x" * 5000, 400),
        ("&".join(f"a{i}=1" for i in range(50)), 400),
    ],
)
def test_a_form_that_makes_no_sense_decides_nothing(host, client, body, status):
    asks(host)
    said = client.post("/owner/decide", content=body, headers=signed_in(client))
    assert said.status_code == status
    assert 'id="problem"' in said.text
    assert len(host.waiting()) == 1


def test_a_run_that_has_begun_cannot_be_denied(host, client):
    number, mine = asks(host), signed_in(client)
    host.decide(number, yes=True)
    assert host.records.use_consent("bob", RUN)
    said = client.post("/owner/decide", content=f"number={number}&decision=deny", headers=mine)
    assert said.status_code == 409
    assert "has begun" in said.text

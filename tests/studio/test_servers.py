"""Tables on servers, and sites as one study, in the studio: by requests, against services in this process."""

from __future__ import annotations

import re

import pytest

import dpcurate
from local_service import serving
from studio_tables import Visitor, a_clinic, hidden


@pytest.fixture
def visitor(tmp_path):
    (tmp_path / "mine").mkdir()
    return Visitor(tmp_path / "mine")


@pytest.fixture
def service(tmp_path):
    (tmp_path / "theirs").mkdir()
    with serving(tmp_path / "theirs") as service:
        yield service


def ran(visitor, **fields):
    """A run on the connection that the visitor looks at, up to its end."""
    place = visitor.at
    visitor.post(place, do="run", **hidden(visitor.get(place).text, "remaining"), **fields)
    return visitor.until(place, lambda page: "<h1>Running" not in page.text, "the run ends").text


def test_a_run_within_a_share_is_saved_and_read_again_for_free(visitor, service, tmp_path):
    page = visitor.post("/servers", address=service.url, token=service.token("alice", 1.0)).text
    assert "epsilon = 1" in page
    assert "Smoker" in page
    page = ran(visitor, epsilon="0.5", order="Pollution, Smoker | *", purpose="a <first> look")
    assert "What was found" in page
    assert "a &lt;first&gt; look" in page
    spent = service.host.curator.ledger.spent
    (folder,) = (tmp_path / "mine").glob("*-results/result-1")
    report = (folder / "report.html").read_text()
    assert "<title>Causal graph of 5 columns" in report
    assert visitor.get(f"{visitor.at}/report?result=result-1").text == report
    place = visitor.at.partition("/report")[0]
    visitor.post(place, do="again", order="Smoker | *", latent="1")
    visitor.until(place, lambda page: "<h1>Running" not in page.text, "it was looked at again")
    assert "hidden" in (folder.parent / "result-2" / "report.html").read_text()
    assert service.host.curator.ledger.spent == spent > 0
    assert [run.facts.by for run in service.host.curator.ledger.log()] == ["alice"]


def test_sites_are_pooled(visitor, service, tmp_path):
    (tmp_path / "others").mkdir()
    with serving(tmp_path / "others") as other:
        lines = f"{service.url} {service.token()}\n{other.url} {other.token()}"
        page = visitor.post("/servers", address="", token="", sites=lines).text
        assert "<h1>2 sites" in page
        assert "site, " in page
        assert "What was found" in ran(visitor, epsilon="1", order="", purpose="")
        spent = [one.host.curator.ledger.spent for one in (service, other)]
        assert spent[0] == spent[1] > 0


def test_what_cannot_be_done_is_told_and_spends_nothing(visitor, service):
    token = service.token("alice", 0.2)
    for address, given in ((service.url, "wrong"), ("ftp://x", token), ("", token), (service.url, "")):
        answer = visitor.post("/servers", address=address, token=given)
        assert answer.status_code == 400
        assert token not in answer.text
    assert visitor.post("/servers", sites="one-word").status_code == 400
    visitor.post("/servers", address=service.url, token=token)
    place = visitor.at
    assert visitor.post(place, do="run", remaining="1", epsilon="0.1").status_code == 400
    left = hidden(visitor.get(place).text, "remaining")
    assert visitor.post(place, do="run", **left, epsilon="5").status_code == 400
    assert visitor.post(place, do="run", **left, epsilon="much").status_code == 400
    assert visitor.get("/s/unknown").status_code == 400
    assert visitor.get(f"{place}/report").status_code == 400
    assert service.host.curator.ledger.spent == 0


def test_a_run_that_waits_for_consent_says_so(visitor, service):
    visitor.post("/servers", address=service.url, token=service.token("alice", 1.0, approval=True))
    assert re.search("consent|owner", ran(visitor, epsilon="0.5", order="", purpose="p").partition("A run</h2>")[0])
    (request,) = service.host.records.requests("waiting")
    service.host.records.decide(request.number, True)
    assert "What was found" in ran(visitor, epsilon="0.5", order="", purpose="p")


def test_a_token_is_written_nowhere(visitor, service, tmp_path):
    token = service.token()
    visitor.post("/servers", address=service.url, token=token)
    ran(visitor, epsilon="1", order="", purpose="")
    files = [path for path in (tmp_path / "mine").rglob("*") if path.is_file()]
    assert files
    assert not any(token.encode() in path.read_bytes() for path in files)
    assert token not in visitor.get(visitor.at).text


def test_the_owner_sees_shares_of_the_ledger(tmp_path):
    a_clinic(tmp_path)
    visitor = Visitor(tmp_path)
    project = visitor.described()
    visitor.spent(project, 1)
    assert "Who may ask" not in visitor.get(f"{project}/read").text
    ledger = dpcurate.Ledger.open(tmp_path / "clinic-studio" / "clinic-studio.ledger")
    ledger.grant("bob", ledger.budget.ceiling / 4, purpose="a study")
    page = visitor.get(f"{project}/read").text
    assert "Who may ask" in page
    assert "bob" in page

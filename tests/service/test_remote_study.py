"""A study of a table on a server: the same calls, the same transcript, and nothing paid twice."""

from __future__ import annotations

from dataclasses import replace

import httpx
import pytest

import dpcurate
from dpcurate import Budget, Curator, Study
from dpcurate.errors import (
    BudgetExceeded,
    DecodeError,
    LedgerError,
    NotStored,
    QueryError,
    RefusedError,
    ServiceError,
    WaitingForConsent,
)
from dpcurate.private.ledger import RunFacts
from dpcurate.private.noise import Seeded
from dpcurate.queries import AboveThreshold, Counts, Gaussian, Laplace, Means, Release, Sample, Score, Tau
from local_service import serving

COUNTS = Counts(("Smoker", "Cancer"))


@pytest.fixture
def service(tmp_path):
    with serving(tmp_path) as service:
        yield service


def facts(study, letter="a"):
    return RunFacts(command=letter * 64, method="test", schema=study.schema.hash, by="mallory")


def release(rho=0.001):
    return Release(COUNTS, Gaussian(rho=rho))


# --- the same as on a table here --------------------------------------------------------------------------------------


def local(tmp_path, table, schema, seed):
    """The same study on a table here, with the noise of the service; public draws come from elsewhere, as there."""
    (tmp_path / "here").mkdir()
    budget = Budget(epsilon=4, delta=1e-10)
    curator = Curator(table, schema, budget=budget, ledger=tmp_path / "here" / "t.ledger")
    curator._randomness = Seeded(seed)
    return Study.over(curator)


def transcript(path):
    """All that left the sessions of a ledger, in order."""
    runs = dpcurate.Ledger.open(path).log()
    return [(run.facts.method, run.outcome, run.units, run.answers) for run in runs]


def steps(privacy):
    """What was charged; a ledger in a file rounds up to its grid."""
    return [(e.mechanism, e.about, e.noise, pytest.approx(float(e.cost.rho), rel=1e-12)) for e in privacy.events]


@pytest.mark.parametrize("method", ["auto", "em-pc", "svt-pc"])
def test_a_method_finds_over_the_wire_what_it_finds_here(tmp_path, method):
    network = dpcurate.networks.load("cancer")
    table = network.sample(2000, seed=1)
    here = local(tmp_path, table, network.schema, 5)
    with serving(tmp_path, table, network.schema, seed=5) as service:
        found = service.study().discover(epsilon=1, method=method)
    same = here.discover(epsilon=1, method=method)
    assert found.graph == same.graph
    assert found.confidence == same.confidence
    assert found.privacy.run == same.privacy.run
    assert steps(found.privacy) == steps(same.privacy)
    assert transcript(tmp_path / "t.ledger") == transcript(tmp_path / "here" / "t.ledger")


def test_an_answer_and_a_model_are_the_same_too(tmp_path):
    network = dpcurate.networks.load("cancer")
    table = network.sample(2000, seed=1)
    here = local(tmp_path, table, network.schema, 5)
    with serving(tmp_path, table, network.schema, seed=5) as service:
        there = service.study()
        told = [(str(s.ask(COUNTS, epsilon=0.5).tables), s.discover(epsilon=1)) for s in (here, there)]
        models = [s.fit_model(found, epsilon=0.5) for s, (_, found) in zip((here, there), told, strict=True)]
    assert told[0][0] == told[1][0]
    assert told[0][1].graph == told[1][1].graph
    assert models[0].file_text() == models[1].file_text()


# --- shares -----------------------------------------------------------------------------------------------------------


def test_a_share_is_the_most_that_its_analyst_spends(service):
    alice, bob = service.study("alice", 0.3), service.study("bob", 0.7)
    alice.ask(COUNTS, epsilon=0.3)
    with pytest.raises(BudgetExceeded):
        alice.ask(COUNTS, epsilon=0.1)
    assert bob.ask(COUNTS, epsilon=0.7)
    shares = {share.name: share for share in service.host.shares()}
    assert all(share.spent <= share.ceiling for share in shares.values())
    assert alice.remaining < 1e-9 * shares["alice"].ceiling
    assert [run.facts.by for run in service.host.log()] == ["alice", "bob"]
    assert [run.facts.by for run in alice.log] == ["alice"]


def test_who_asks_is_said_by_the_token(service):
    study = service.study()
    found = study.ask(COUNTS, epsilon=0.1, by="mallory", purpose="a trial")
    assert found.run.by == "alice"
    assert service.host.log()[0].facts.by == "alice"
    assert service.host.log()[0].facts.purpose == "a trial"


def test_a_revoked_or_unknown_token_is_refused(service):
    study = service.study()
    service.host.records.revoke("alice")
    with pytest.raises(ServiceError, match="token"):
        study.ask(COUNTS, epsilon=0.1)
    with pytest.raises(ServiceError, match="token"):
        dpcurate.connect(service.url, "wrong")
    assert service.host.budget().spent == 0


# --- what stops in the middle -----------------------------------------------------------------------------------------


def test_a_service_that_starts_again_is_told_what_was_asked_and_charges_nothing_twice(service):
    study = service.study()
    curator = study.opened()
    with curator.run(facts(study), share=0.01):
        first = curator.ask(release())
        left = curator.remaining
        service.stop()
        service.start()
        second = curator.ask(release(0.002))
        assert curator.remaining == pytest.approx(left - 0.002)
        with pytest.raises(BudgetExceeded):
            curator.ask(release(0.008))
    spent = service.host.budget().spent
    assert spent == pytest.approx(0.003)
    assert [run.outcome for run in study.log] == ["finished"]
    with curator.run(facts(study)):  # the same command again is another run
        assert (curator.ask(release()).value != first.value).any()
    assert first.value.shape == second.value.shape


def test_a_service_that_starts_again_before_anything_was_asked_begins_the_run_anew(service):
    study = service.study()
    with study.opened().run(facts(study), share=0.01):
        service.stop()
        service.start()
        assert study.opened().ask(release())
        assert study.opened().running == 2
    assert [run.outcome for run in study.log] == ["stopped", "finished"]


def test_a_client_that_is_killed_resumes_with_the_same_answers(service):
    token = service.token()
    first = dpcurate.connect(service.url, token).opened()
    killed = first.run(facts(first), share=0.01)
    killed.__enter__()
    answer = first.ask(release())
    again = dpcurate.connect(service.url, token)
    assert again.opened().stopped("a" * 64).number == 1
    with again.opened().run(facts(first), share=0.01):
        assert (again.opened().ask(release()).value == answer.value).all()
        again.opened().ask(release(0.002))
        with pytest.raises(RefusedError, match="given again elsewhere"):
            first.ask(release(0.004))
    assert service.host.budget().spent == pytest.approx(0.003)
    assert [run.outcome for run in again.log] == ["finished"]
    killed.__exit__(RuntimeError, RuntimeError(), None)  # nothing more comes of it
    assert again.log[0].outcome == "finished"


def test_a_request_that_is_sent_twice_is_paid_once(service):
    study = service.study()
    curator = study.opened()
    with curator.run(facts(study)):
        send, sent = curator._connection.post, []

        def twice(path, body):
            sent.append([send(path, body), send(path, body)])
            return sent[-1][1]

        curator._connection.post = twice
        curator.ask(release())
        curator._connection.post = send
    assert sent[0][0] == sent[0][1]
    assert service.host.budget().spent == pytest.approx(0.001)
    assert service.host.log()[0].answers == 1


def test_a_service_that_is_gone_is_reported_and_the_same_call_goes_on(service):
    study = dpcurate.connect(service.url, service.token(), patience=0.2)
    service.stop()
    with pytest.raises(ServiceError, match="does not answer"):
        study.ask(COUNTS, epsilon=0.1)
    service.start()
    assert study.ask(COUNTS, epsilon=0.1)


# --- consent ----------------------------------------------------------------------------------------------------------


def test_a_run_waits_for_the_owner_and_begins_once_it_is_approved(service):
    study = service.study(approval=True)
    for _ in range(2):
        with pytest.raises(WaitingForConsent):
            study.ask(COUNTS, epsilon=0.1, purpose="a trial")
    (waiting,) = service.host.waiting()
    assert waiting.facts["epsilon"] == pytest.approx(0.1)
    assert waiting.facts["purpose"] == "a trial"
    service.host.decide(waiting.number, True)
    assert study.ask(COUNTS, epsilon=0.1, purpose="a trial")
    with pytest.raises(WaitingForConsent):  # the next one needs another consent
        study.ask(COUNTS, epsilon=0.1, purpose="a trial")
    service.host.decide(service.host.waiting()[0].number, False)
    with pytest.raises(RefusedError, match="denied"):
        study.ask(COUNTS, epsilon=0.1, purpose="a trial")
    assert [run.outcome for run in service.host.log()] == ["finished"]


def test_a_consent_is_not_lost_to_a_run_that_ended_before_it_spent(service):
    study = service.study(approval=True)
    curator = study.opened()
    with pytest.raises(WaitingForConsent), curator.run(facts(study), share=0.01):
        pass
    service.host.decide(1, True)
    with pytest.raises(QueryError), curator.run(facts(study), share=0.01):
        curator.ask(Release(Means(("Smoker",)), Gaussian(rho=0.001)))
    with pytest.raises(WaitingForConsent), curator.run(facts(study), share=0.02):  # more than was agreed
        pass
    for other in ({"purpose": "another one"}, {"method": "another one"}):  # than the owner has read
        with pytest.raises(WaitingForConsent), curator.run(replace(facts(study), **other), share=0.01):
            pass
    with curator.run(facts(study), share=0.01):
        curator.ask(release())
    with pytest.raises(WaitingForConsent), curator.run(facts(study), share=0.01):
        pass


# --- what a team shares -----------------------------------------------------------------------------------------------


def test_stored_answers_are_for_their_analyst_alone_or_for_the_team(tmp_path):
    with serving(tmp_path, team=True) as service:
        alice, bob = service.study("alice"), service.study("bob")
        found = alice.discover(epsilon=1)
        again = bob.reopen(bob.runs()[-1].number).discover()
        assert again.graph == found.graph
        assert bob.log[0].facts.by == "alice"
        assert service.host.share("bob").used == 0
    (tmp_path / "other").mkdir()
    with serving(tmp_path / "other") as service:
        alice, bob = service.study("alice"), service.study("bob")
        found = alice.discover(epsilon=1)
        assert alice.reopen().discover().graph == found.graph
        assert bob.runs() == ()
        with pytest.raises(NotStored, match="no such stored answers"):
            bob.reopen(1)


# --- made-up rows -----------------------------------------------------------------------------------------------------


def test_a_dummy_answers_every_call_free_and_says_what_it_is(service):
    token = service.token()
    dummy = dpcurate.connect(service.url, token, dummy=True)
    found = dummy.discover(epsilon=1)
    assert "MADE-UP ROWS" in str(found)
    assert "MADE-UP ROWS" in found.run.table
    assert "MADE-UP ROWS" in str(dummy.ask(COUNTS, epsilon=0.5))
    assert dummy.discover(epsilon=3).privacy.run_epsilon == pytest.approx(3, rel=1e-6)
    assert dummy.discover(epsilon=3).privacy.run_epsilon == pytest.approx(
        3, rel=1e-6
    )  # there is no budget that could be used up
    assert dummy.fit_model(found, epsilon=0.5)
    assert service.host.budget().spent == 0
    assert service.host.log() == ()


# --- several sites ----------------------------------------------------------------------------------------------------


def test_a_service_is_a_site_of_a_pool(service):
    network = dpcurate.networks.load("cancer")
    here = dpcurate.open(network.sample(2000, seed=2), network.schema, epsilon=2)
    found = dpcurate.pool({"there": service.study(), "here": here}).discover(epsilon=1)
    assert {site.name for site in found.privacy.sites} == {"there", "here"}
    assert service.host.log()[0].outcome == "finished"
    assert service.host.budget().spent > 0


# --- addresses --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url", ["http://stats.example.org", "ftp://127.0.0.1", "stats.example.org", "http://a:b@127.0.0.1", "", None]
)
def test_an_address_that_is_none_or_sends_tokens_in_clear_text_is_refused(url):
    with pytest.raises(QueryError, match="https://"):
        dpcurate.connect(url, "token")


def test_a_token_is_needed_and_found_in_the_environment(service, monkeypatch):
    monkeypatch.setenv("DPCURATE_TOKEN", f"{service.token()}\n")
    assert dpcurate.connect(service.url).opened().analyst == "alice"
    monkeypatch.delenv("DPCURATE_TOKEN")
    with pytest.raises(QueryError, match="DPCURATE_TOKEN"):
        dpcurate.connect("http://127.0.0.1:9")


def test_certificates_that_are_none_are_refused(tmp_path):
    (tmp_path / "none.pem").write_text("nothing")
    for name in ("none.pem", "missing.pem"):
        with pytest.raises(QueryError, match="no certificates"):
            dpcurate.connect("https://127.0.0.1:9", "token", certificates=tmp_path / name)


# --- a service that is none, or not itself ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "told",
    [
        httpx.Response(200, text="<html>welcome</html>"), httpx.Response(404, text="not found"),
        httpx.Response(200, json=[1]), httpx.Response(200, json={"version": 2}), httpx.Response(302),
        httpx.Response(403, json={"version": 1, "error": {"code": "made up", "message": "x"}}),
        httpx.Response(500, json={"version": 1, "error": "x"}),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_no_service_is_called_so(monkeypatch, told):
    told.request = httpx.Request("GET", "http://127.0.0.1:9/v1/facts?secret=1")
    monkeypatch.setattr(httpx.Client, "request", lambda self, *args, **more: told)
    with pytest.raises(ServiceError, match=r"is no service of dpcurate") as refusal:
        dpcurate.connect("http://127.0.0.1:9", "token")
    assert "secret" not in str(refusal.value)


def test_a_proxy_that_has_lost_its_service_for_a_moment_is_asked_again(service, monkeypatch):
    study, send, lost = service.study(), httpx.Client.request, [httpx.Response(502), httpx.Response(503, text="later")]
    monkeypatch.setattr(httpx.Client, "request", lambda self, *a, **m: lost.pop() if lost else send(self, *a, **m))
    assert study.ask(COUNTS, epsilon=0.1)
    assert lost == []


def test_a_request_that_is_answered_after_a_long_silence_is_paid_once(service, monkeypatch):
    """The network lost the answer, and nobody said so."""
    curator, send, lost = service.study().opened(), httpx.Client.request, []

    def silent(self, method, path, **more):
        told = send(self, method, path, **more)
        if path.endswith("/ask") and not lost:
            lost.append(told)
            raise httpx.ReadTimeout("timed out")
        return told

    monkeypatch.setattr(httpx.Client, "request", silent)
    monkeypatch.setattr(curator._connection, "_patience", 0)
    with curator.run(facts(curator)):
        curator.ask(release())
    assert len(lost) == 1
    assert service.host.budget().spent == pytest.approx(0.001)


def answered(curator, monkeypatch, change):
    """The service's answers, changed on their way."""
    send = curator._connection.post

    def post(path, body):
        told = send(path, body)
        return change(told) if path.endswith("/ask") else told

    monkeypatch.setattr(curator._connection, "post", post)


@pytest.mark.parametrize(
    "change",
    [
        lambda told: told | {"answers": []},
        lambda told: told | {"answers": [7]},
        lambda told: told | {"answers": [told["answers"][0] | {"numbers": [1.0]}]},
        lambda told: told | {"answers": [told["answers"][0] | {"numbers": [1.0] * 5}]},
        lambda told: told | {"answers": [told["answers"][0] | {"shapes": [[4]]}]},
        lambda told: told | {"answers": [told["answers"][0] | {"scales": [1.0]}]},
        lambda told: told | {"answers": [told["answers"][0] | {"numbers": [1e100] * 4}]},
        lambda told: told | {"answers": [told["answers"][0] | {"numbers": ["1"] * 4}]},
        lambda told: told | {"remaining": "much"},
        lambda told: told | {"steps": [["gaussian"]]},
    ],
)
def test_an_answer_that_no_service_gives_is_refused(service, monkeypatch, change):
    curator = service.study().opened()
    answered(curator, monkeypatch, change)
    with pytest.raises(DecodeError), curator.run(facts(curator)):
        curator.ask(release())
    assert service.host.log()[0].outcome == "failed"


# --- gates and blocks -------------------------------------------------------------------------------------------------


def test_a_gate_answers_until_its_first_yes(service):
    curator = service.study().opened()
    sure, never = (Score(Tau("Smoker", "Cancer"), threshold, "above") for threshold in (-1e9, 1e9))
    with curator.run(facts(curator)):
        gate = curator.open(AboveThreshold(epsilon=0.1))
        assert gate.first([]) is None
        assert not gate.ask(never)
        assert not gate.closed
        assert gate.first([never, sure]) == 1
        assert gate.closed
        with pytest.raises(QueryError, match="no such open gate"):
            gate.ask(sure)
        sample = curator.open(Sample(rate=0.5, epsilon=0.2))
        assert sample.ask(Release(COUNTS, Laplace(epsilon=0.1))).value.shape == (2, 2)
        assert sample.open(AboveThreshold(epsilon=0.1)).ask(sure)
        with pytest.raises(BudgetExceeded):
            sample.ask(Release(COUNTS, Laplace(epsilon=0.1)))


def test_a_run_with_a_gate_does_not_outlive_its_service(service):
    curator = service.study().opened()
    with curator.run(facts(curator), share=0.1):
        curator.open(AboveThreshold(epsilon=0.01))
        service.stop()
        service.start()
        with pytest.raises(RefusedError, match="no such open run"):
            curator.ask(release())
    spent = service.host.budget().spent
    assert 0 < spent < 0.001  # the gate is paid for, and nothing else


def test_a_block_is_set_aside_and_what_is_left_of_it_comes_back(service):
    curator = service.study().opened()
    with curator.run(facts(curator), share=0.01):
        with curator.reserve(0.005):
            assert curator.remaining == pytest.approx(0.005)
            curator.ask(release())
        assert curator.remaining == pytest.approx(0.009)
        with pytest.raises(KeyError), curator.reserve(0.005):
            raise KeyError
        assert curator.remaining == pytest.approx(0.009)
    assert service.host.budget().spent == pytest.approx(0.001)


def test_what_is_asked_outside_a_run_or_in_two_is_refused(service):
    curator = service.study().opened()
    assert curator.ask_all([]) == []
    for call in (lambda: curator.ask(release()), lambda: curator.open(AboveThreshold(epsilon=1))):
        with pytest.raises(QueryError, match="within a run"):
            call()
    with curator.run(facts(curator)), pytest.raises(LedgerError), curator.run(facts(curator, "b")):
        pass
    assert "alice" in repr(curator)
    assert service.host.budget().spent == 0

"""Every private method over the wire, on tables of levels, numbers and both; and many analysts at once."""

from __future__ import annotations

import threading

import pytest

import dpcurate
from dpcurate import Budget, Curator, Study, methods
from dpcurate.errors import BudgetExceeded, RefusedError
from dpcurate.private.noise import Seeded
from dpcurate.queries import Counts, Means
from local_service import serving

SEED = 11
pytestmark = pytest.mark.slow


def levels():
    network = dpcurate.networks.load("asia")
    return network.sample(3000, seed=1), network.schema


def numbers():
    network = dpcurate.networks.load("sachs")
    schema, rows = network.schema, network.sample(3000, seed=1)
    columns = [dpcurate.Numeric(name, 0, schema[name].size - 1, bins=3) for name in schema.names]
    return {
        name: [float(schema[name].levels.index(str(cell))) for cell in rows[name]] for name in schema.names
    }, dpcurate.Schema(columns)


def mixture():
    table, schema = numbers()
    own, first = dpcurate.networks.load("sachs").schema, schema.names[0]
    changed = {**table, first: [own[first].levels[int(cell)] for cell in table[first]]}
    columns = [own[name] if name == first else schema[name] for name in schema.names]
    return changed, dpcurate.Schema(columns)


TABLES = {"levels": levels, "numbers": numbers, "mixture": mixture}
CASES = [
    *((name, table, {}) for name in ("auto",) for table in TABLES),
    *(("auto", table, {"latent": True}) for table in TABLES),
    ("auto", "levels", {"quantify": 0.5}),
    *((name, "levels", {}) for name in ("curate-pc", "em-pc", "svt-pc", "priv-pc")),
    ("priv-pc rate=0.5", "levels", {}),
    *((name, "numbers", {}) for name in ("notears-moments", "noleaks", "curate-score")),
]


def test_every_private_method_is_tried():
    assert {case[0].partition(" ")[0] for case in CASES} == {*methods.private()} - {
        "measure-once"
    }  # which is another name of auto


def local(folder, table, schema):
    curator = Curator(table, schema, budget=Budget(epsilon=4, delta=1e-10), ledger=folder / "t.ledger")
    curator._randomness = Seeded(SEED)
    return curator


def without_coins(monkeypatch):
    """Public draws are made on either side of the wire: the same ones here and there."""
    from dpcurate.remote.remote_curator import RemoteCurator

    monkeypatch.setattr(RemoteCurator, "draw", lambda self: 0.25)
    monkeypatch.setattr(Curator, "draw", lambda self: 0.25)


@pytest.mark.parametrize(("method", "table", "more"), CASES, ids=lambda x: "+".join(x) if isinstance(x, dict) else x)
def test_a_method_has_the_same_transcript_over_the_wire_as_here(tmp_path, monkeypatch, method, table, more):
    without_coins(monkeypatch)
    name, _, setting = method.partition(" ")
    method = methods.with_settings(methods.get(name), [setting]) if setting else name
    rows, schema = TABLES[table]()
    for folder in ("here", "there"):
        (tmp_path / folder).mkdir()
    here = Study.over(local(tmp_path / "here", rows, schema)).discover(epsilon=2, method=method, **more)
    with serving(tmp_path / "there", rows, schema, seed=SEED) as service:
        there = service.study().discover(epsilon=2, method=method, **more)
    assert there.graph == here.graph
    assert there.confidence == here.confidence
    assert (there.model is None) == (here.model is None)
    if here.model is not None:
        assert there.model.file_text() == here.model.file_text()
    one, two = (dpcurate.Ledger.open(tmp_path / folder / "t.ledger") for folder in ("here", "there"))
    assert one.events == two.events
    assert one.spent == two.spent
    assert [run.answers for run in one.log()] == [run.answers for run in two.log()]


def test_questions_have_the_same_answers(tmp_path):
    rows, schema = numbers()
    for folder in ("here", "there"):
        (tmp_path / folder).mkdir()
    name = schema.names[0]
    questions = (Counts((name,)), Means((name,)), dpcurate.Quantiles(name, (0.5,)))
    study = Study.over(local(tmp_path / "here", rows, schema))
    here = [[str(table) for table in study.ask(question, epsilon=0.5).tables] for question in questions]
    with serving(tmp_path / "there", rows, schema, seed=SEED) as service:
        study = service.study()
        there = [[str(table) for table in study.ask(question, epsilon=0.5).tables] for question in questions]
    assert there == here


def test_fifty_analysts_at_once_are_answered_or_refused_and_exceed_nothing(tmp_path):
    with serving(tmp_path) as service:
        tokens = [service.token(f"analyst-{i}", 0.25) for i in range(50)]
        answered, refused, wrong = [], [], []

        def ask(token):
            try:
                study = dpcurate.connect(service.url, token)
                for turn in range(3):
                    answered.append(study.ask(Counts(("Smoker",)), epsilon=0.2, purpose=f"turn {turn}"))
            except BudgetExceeded as error:
                refused.append(error)
            except Exception as error:
                wrong.append(error)

        threads = [threading.Thread(target=ask, args=(token,)) for token in tokens]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []
        assert len(answered) == 50
        assert len(refused) == 50
        state = service.host.budget()
        assert state.spent <= float(state.budget.ceiling)
        assert all(share.spent <= share.ceiling for share in service.host.shares())
        assert sum(run.finished for run in service.host.log()) == len(answered)


def test_two_shares_of_a_table_that_is_too_small_for_both_never_exceed_it(tmp_path):
    with serving(tmp_path) as service:
        alice, bob = service.study("alice", 3.0), service.study("bob", 3.9)
        paid = {"alice": 0, "bob": 0}

        def spend(name, study):
            for _ in range(40):
                try:
                    study.ask(Counts(("Smoker",)), epsilon=0.9)
                    paid[name] += 1
                except RefusedError:
                    return

        threads = [threading.Thread(target=spend, args=pair) for pair in (("alice", alice), ("bob", bob))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        shares = {share.name: share for share in service.host.shares()}
        budget = service.host.budget()
        assert sum(paid.values()) == len([run for run in service.host.log() if run.finished])
        assert all(share.spent <= share.ceiling for share in shares.values())
        assert budget.spent <= float(budget.budget.ceiling)

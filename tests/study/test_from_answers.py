"""From stored answers: another knowledge or cut for free, from a ledger that stays as it is; nothing else."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpcurate
from dpcurate.cli import main
from dpcurate.errors import LedgerError, NotPrivate, NotStored
from dpcurate.networks import load
from dpcurate.private.ledger import Ledger
from dpcurate.private.stored import StoredAnswers
from dpcurate.queries import AboveThreshold, Choose, Contrasts, Counts, Gaussian, Release, Score, Tau

ASIA = load("asia")
TABLE = ASIA.sample(20_000, seed=5)
TIERS = dpcurate.Knowledge.of(tiers=[["asia", "smoke"], ["tub", "lung", "bronc"], ["either"], ["xray", "dysp"]])
FORBIDDEN = dpcurate.Knowledge.of(forbidden_edges=[("smoke", "xray"), ("smoke", "bronc"), ("asia", "dysp")])


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dpcurate.Discovery]:
    """A ledger after a run with noise low enough that triples were bought."""
    path = tmp_path_factory.mktemp("ledger") / "asia.ledger"
    return path, dpcurate.discover(TABLE, ASIA.schema, epsilon=5, ledger=path)


def test_a_result_knows_its_run_and_the_one_whose_answers_it_uses(ledger: tuple[Path, dpcurate.Discovery]) -> None:
    path, found = ledger
    logged, again = Ledger.open(path).log()[0], dpcurate.discover_from(path).run
    assert found.run is not None
    assert again is not None
    assert (found.run.by, found.run.number, found.run.table) == (logged.facts.by, 1, Ledger.open(path).facts.table)  # type: ignore[union-attr]
    assert (again.by, again.number, again.table) == (found.run.by, 1, found.run.table)
    assert found.run.again is None
    assert again.again is not None
    assert again.at == logged.started[:19] + "+00:00"
    assert found.to_dict()["run"]["at"] == found.run.at


def test_the_same_finding_from_answers_alone(ledger: tuple[Path, dpcurate.Discovery]) -> None:
    path, found = ledger
    before = path.read_bytes()
    again = dpcurate.discover_from(path)
    assert again.learned.graph == found.learned.graph
    assert again.learned.evidence == found.learned.evidence
    assert again.fit == found.fit is not None
    assert again.schema == found.schema
    assert again.privacy.run == 0
    assert again.privacy.spent == found.privacy.spent
    assert again.privacy.private
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("knowledge", [TIERS, FORBIDDEN])
def test_another_knowledge_is_free(ledger: tuple[Path, dpcurate.Discovery], knowledge: dpcurate.Knowledge) -> None:
    path, found = ledger
    before = path.read_bytes()
    again = dpcurate.discover_from(path, 1, knowledge=knowledge)
    assert path.read_bytes() == before
    assert all(knowledge.may_point(a, b) for a, b in again.learned.graph.arrows)
    assert not {frozenset(p) for p in knowledge.forbidden_edges} & {frozenset((e.a, e.b)) for e in again.edges}
    assert again.learned.graph != found.learned.graph


def test_numbers_take_any_knowledge(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=3000)
    table = {"x": x, "y": 2 * x + random.normal(size=3000), "z": random.normal(size=3000)}
    schema = dpcurate.Schema(tuple(dpcurate.Numeric(name, -8, 8) for name in table))
    found = dpcurate.discover(table, schema, epsilon=3, ledger=tmp_path / "l")
    assert {(e.a, e.b) for e in found.edges} == {("x", "y")}
    again = dpcurate.discover_from(tmp_path / "l", knowledge=dpcurate.Knowledge.of(forbidden_edges=[("x", "y")]))
    assert again.edges == ()


def test_a_copy_does_as_well_and_a_moved_ledger_too(ledger: tuple[Path, dpcurate.Discovery], tmp_path: Path) -> None:
    path, found = ledger
    copy = Path(shutil.copy(path, tmp_path / "copy.ledger"))
    copy.chmod(0o400)
    assert dpcurate.discover_from(copy).learned.graph == found.learned.graph
    with pytest.raises(LedgerError, match="kept at"):
        Ledger.open(copy)  # to spend from a copy is another matter


def test_what_is_not_stored_is_refused(ledger: tuple[Path, dpcurate.Discovery]) -> None:
    path, _ = ledger
    stored = StoredAnswers(path)
    noise = Gaussian(rho=0.01)
    pair = Contrasts((("asia", "tub"),))
    for query in (Release(Counts(("asia",)), noise), Release(Contrasts((tuple(ASIA.schema.names),)), noise)):
        with pytest.raises(NotStored, match="nothing was read and nothing was spent"):
            stored.ask(query)
    with pytest.raises(NotStored, match="Choose"):
        stored.ask(Choose(candidates=(Score(Tau("asia", "tub"), 1.0, "above"),), epsilon=1.0))
    with pytest.raises(NotStored, match="a gate"):
        stored.open(AboveThreshold(epsilon=1.0))
    with pytest.raises(NotStored):
        dpcurate.discover_from(path, method="notears-moments")
    with pytest.raises(NotPrivate):
        dpcurate.discover_from(path, method="pc")
    first = stored.ask(Release(pair, noise))
    assert first.scales[0] > 0
    while stored.offered([("asia", "tub")]):
        assert not np.array_equal(stored.ask(Release(pair, noise)).value, first.value)  # another release of it
    with pytest.raises(NotStored):
        stored.ask(Release(pair, noise))


def test_a_queryable_like_any_other(ledger: tuple[Path, dpcurate.Discovery]) -> None:
    stored = StoredAnswers(ledger[0])
    assert stored.run == 1
    assert stored.neighbours is dpcurate.Neighbours.ADD_REMOVE
    assert stored.remaining == pytest.approx(float(stored.budget.ceiling))
    assert stored.sensitivity(Counts(("asia",))) == 1
    assert 0 <= stored.draw() < 1
    with stored.reserve(1.0):
        assert stored.schema == ASIA.schema


def test_persons_are_named_in_the_statement(tmp_path: Path) -> None:
    table = {"a": [0, 1] * 40, "b": [1, 1, 0, 0] * 20, "who": list(range(40)) * 2}
    columns = tuple(dpcurate.Categorical(name, (0, 1)) for name in "ab")
    dpcurate.discover(
        table, dpcurate.Schema(columns, person=dpcurate.Person("who", 2)), epsilon=5, ledger=tmp_path / "l"
    )
    assert "one person" in dpcurate.discover_from(tmp_path / "l").privacy.unit


def test_the_run_is_chosen_and_must_have_answers(ledger: tuple[Path, dpcurate.Discovery], tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="has no stored answers; runs that have: 1"):
        StoredAnswers(ledger[0], 7)
    empty = tmp_path / "empty.ledger"
    budget = dpcurate.Budget(epsilon=1, delta=1e-10)
    Ledger.create(empty, table="t", schema=ASIA.schema, neighbours="replace", budget=budget)
    with pytest.raises(LedgerError, match="no run with stored answers"):
        StoredAnswers(empty)
    with pytest.raises(LedgerError, match="could not be read"):
        StoredAnswers(tmp_path / "nowhere")


def test_an_edited_answer_is_refused(ledger: tuple[Path, dpcurate.Discovery], tmp_path: Path) -> None:
    copy = Path(shutil.copy(ledger[0], tmp_path / "copy.ledger"))
    connection = sqlite3.connect(copy)
    connection.execute("UPDATE answer SET body = zeroblob(length(body)) WHERE id = 1")
    connection.commit()
    connection.close()
    with pytest.raises(LedgerError, match="answer was edited"):
        StoredAnswers(copy)


def test_a_run_whose_schema_the_ledger_does_not_hold(tmp_path: Path) -> None:
    from dpcurate.private.ledger import RunFacts

    path = tmp_path / "l"
    curator = dpcurate.Curator(TABLE, ASIA.schema, ledger=path, budget=dpcurate.Budget(rho=1))
    with curator.run(RunFacts(command="c", method="m", schema="another", by="b")):
        curator.ask(Release(Counts(("asia",)), Gaussian(rho=0.1)))
    with pytest.raises(LedgerError, match="does not hold the schema another"):
        StoredAnswers(path)


# --- the command -----------------------------------------------------------------------------------------


def test_the_command(
    ledger: tuple[Path, dpcurate.Discovery], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    path, before = str(ledger[0]), ledger[0].read_bytes()
    Path("known.toml").write_text(TIERS.dumps())
    assert main(["discover", "--from-answers", path, "1", "--knowledge", "known.toml", "--at", "0.9", "-o", "r"]) == 0
    assert "nothing is spent" in capsys.readouterr().err
    assert json.loads(Path("r/report.json").read_text())["privacy"]["private"]
    assert ledger[0].read_bytes() == before
    for words, hint in (
        (["x.csv", "--from-answers", path], "leave out a table"),
        (["--from-answers", path, "--epsilon", "1"], "leave out --epsilon"),
        (["--from-answers", path, "--table", "t"], "leave out --table"),
        (["--from-answers", path, "--method", "pc", "--not-private"], "leave out --not-private"),
        (["--from-answers", path, "9"], "no stored answers"),
        (["--from-answers", "nowhere.ledger"], "there is no ledger"),
    ):
        assert main(["discover", *words]) == 1
        assert hint in capsys.readouterr().err
    for words in (["--from-answers", path, "one"], ["--from-answers", path, "1", "2"]):
        with pytest.raises(SystemExit) as stop:
            main(["discover", *words])
        assert stop.value.code == 2
    with pytest.raises(SystemExit):
        main(["discover", "--at", "0.9"])


def test_a_ledger_that_was_moved_out_of_a_crash_is_refused(
    ledger: tuple[Path, dpcurate.Discovery], tmp_path: Path
) -> None:
    """Its journal, which undoes what was half written, lies where it came from; an answer in it may be drawn again."""
    path, _ = ledger
    copy, journal = tmp_path / "copy", path.with_name(f"{path.name}-journal")
    copy.write_bytes(path.read_bytes())
    dpcurate.discover_from(copy)
    journal.write_bytes(b"")
    try:
        with pytest.raises(LedgerError, match="still there"):
            dpcurate.discover_from(copy)
    finally:
        journal.unlink()

"""A study by files: what sites are asked, what they pay, and what is refused."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpcurate
from dpcurate import BudgetExceeded, Codebook, Discovery, Schema, SchemaError, Study, networks
from dpcurate.errors import DecodeError, DpcurateError, FormatError, NotPrivate, QueryError, RefusedError
from dpcurate.pooling import SiteAnswer, StudyFile, answer_study, combine_study, new_study, preview_answer
from dpcurate.queries import encoding

CANCER = networks.load("cancer")
NAMES = ("Berlin", "Oslo", "Rome")
ROWS = 400


def tables(rows: int = ROWS, seed: int = 1) -> dict[str, dict[str, Any]]:
    drawn = CANCER.sample(rows * len(NAMES), seed=seed)
    return {name: {c: np.asarray(cells)[k :: len(NAMES)] for c, cells in drawn.items()} for k, name in enumerate(NAMES)}


TABLES = tables()


def site(folder: Path, name: str, **known: Any) -> Study:
    ledger = folder / f"{name}.ledger"
    return dpcurate.open(
        TABLES[name], CANCER.schema, **{"epsilon": None if ledger.exists() else 3.0, "ledger": ledger} | known
    )


def spent(study: Study) -> float:
    return study.opened().privacy().spent


def started(**known: Any) -> StudyFile:
    return new_study(CANCER.schema, **{"sites": NAMES, "epsilon": 1.0} | known)


def answers(file: StudyFile, folder: Path, make: Callable[[Path, str], Any] = site) -> list[SiteAnswer]:
    return [answer_study(file, name, make(folder, name)) for name in NAMES]


def finished(
    file: StudyFile | Discovery, folder: Path, make: Callable[[Path, str], Any] = site
) -> tuple[Discovery, list[StudyFile]]:
    """The result, by files that are written and read again, and the study's files."""
    files = []
    while isinstance(file, StudyFile):
        files.append(StudyFile.loads(file.dumps()))
        file = combine_study(files[-1], [SiteAnswer.loads(one.dumps()) for one in answers(files[-1], folder, make)])
    return file, files


# --- what a study is ----------------------------------------------------------------------------------------------


def test_rounds_go_on_until_there_is_a_result_and_every_site_pays_its_epsilon(tmp_path: Path) -> None:
    found, files = finished(started(), tmp_path)
    assert [file.round for file in files] == list(range(1, len(files) + 1))
    assert 2 <= len(files) <= 4
    assert found.schema.names[0] == "site"
    assert [one.name for one in found.privacy.sites] == list(NAMES)
    assert [one.ledger for one in found.privacy.sites] == list(NAMES)
    for one in found.privacy.sites:
        assert one.privacy.run_epsilon == pytest.approx(1, rel=1e-3)
    for name in NAMES:
        study = site(tmp_path, name)
        assert study.opened().budget.as_epsilon(spent(study)) == pytest.approx(1, rel=1e-3)
        assert [run.facts.method for run in study.log] == ["study"] * len(files)
        assert all(run.finished for run in study.log)


def test_the_result_is_that_of_the_pool_of_the_same_answers(tmp_path: Path) -> None:
    """Answers by files are added up as those of a pool are: the same method on the same numbers."""
    found, files = finished(started(), tmp_path)
    again = combine_study(files[-1], answers(files[-1], tmp_path))
    assert isinstance(again, Discovery)
    assert again.learned.linked == found.learned.linked
    assert again.graph == found.graph


def test_a_study_of_one_round_asks_once(tmp_path: Path) -> None:
    file = started(rounds=1)
    sets = file.requests[0][0].statistic.sets  # type: ignore[union-attr]
    assert max(map(len, sets)) == 3
    found, files = finished(file, tmp_path)
    assert len(files) == 1
    assert found.privacy.run_epsilon == pytest.approx(1, rel=1e-3)
    assert spent(site(tmp_path, "Oslo")) == pytest.approx(float(file.budget.ceiling), rel=1e-6)


def test_without_a_site_column_and_at_delta_0(tmp_path: Path) -> None:
    file = started(column=None, delta=0.0)
    for name in NAMES:
        site(tmp_path, name, epsilon=1.0, delta=0.0).opened()
    found, _ = finished(file, tmp_path)
    assert found.schema.names == CANCER.schema.names
    assert spent(site(tmp_path, "Rome")) == pytest.approx(1)


def test_a_site_with_other_names_answers_in_the_study_s(tmp_path: Path) -> None:
    book = Codebook.loads('[map.Smoker]\ncolumn = "Raucher"\nlevels = { True = ["ja"], False = ["nein"] }\n')
    file = started(rounds=1)
    words = {"True": "ja", "False": "nein"}
    table = {**TABLES["Oslo"], "Raucher": [words[str(cell)] for cell in TABLES["Oslo"]["Smoker"]]}
    del table["Smoker"]
    own = dpcurate.open(table, book.at_site(CANCER.schema), epsilon=1, ledger=tmp_path / "other.ledger")
    mapped = answer_study(file, "Oslo", own, codebook=book)
    others = [answer_study(file, name, site(tmp_path, name)) for name in ("Berlin", "Rome")]
    assert isinstance(combine_study(file, [mapped, *others]), Discovery)
    with pytest.raises(SchemaError, match="'Smoker' is missing in the second"):
        answer_study(file, "Oslo", own)


# --- what is announced, and paid once -----------------------------------------------------------------------------


def test_what_an_answer_spends_is_said_before_the_table_is_opened(tmp_path: Path) -> None:
    file = started(purpose="a trial")
    told = preview_answer(file, "Oslo", site(tmp_path, "Oslo"))
    said = str(told)
    for word in ("round 1 of at most 4", "a trial", "'Berlin', 'Oslo', 'Rome'", "Contrasts(", "epsilon = 1 at delta"):
        assert word in said
    assert not (tmp_path / "Oslo.ledger").exists()
    answer = answer_study(file, "Oslo", site(tmp_path, "Oslo"))
    assert answer.spent == pytest.approx(told.cost, rel=1e-6)
    assert "answered before, free" in str(preview_answer(file, "Oslo", site(tmp_path, "Oslo")))


def test_the_same_round_twice_returns_the_stored_answer_for_free(tmp_path: Path) -> None:
    file = started()
    first = answer_study(file, "Oslo", site(tmp_path, "Oslo"))
    second = answer_study(file, "Oslo", site(tmp_path, "Oslo"))
    assert first == second
    assert spent(site(tmp_path, "Oslo")) == first.spent


def test_a_round_that_was_stopped_is_paid_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = started()
    with monkeypatch.context() as patched:
        patched.setattr(encoding, "encode", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            answer_study(file, "Oslo", site(tmp_path, "Oslo"))
    paid = spent(site(tmp_path, "Oslo"))
    assert paid > 0
    assert preview_answer(file, "Oslo", site(tmp_path, "Oslo")).cost == 0
    assert answer_study(file, "Oslo", site(tmp_path, "Oslo")).spent == paid


def test_while_another_process_answers_nothing_is_paid(tmp_path: Path) -> None:
    file = started()
    first, second = site(tmp_path, "Oslo"), site(tmp_path, "Oslo")
    keeper, refused = first.opened(), []
    ask_all = type(keeper).ask_all

    def meanwhile(self: Any, queries: Any) -> Any:
        if self is keeper and not refused:
            with pytest.raises(RefusedError, match="another process") as error:
                answer_study(file, "Oslo", second)
            refused.append(error)
        return ask_all(self, queries)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(type(keeper), "ask_all", meanwhile)
        answer = answer_study(file, "Oslo", first)
    assert refused
    assert spent(site(tmp_path, "Oslo")) == answer.spent
    assert answer_study(file, "Oslo", site(tmp_path, "Oslo")).bodies == answer.bodies


# --- what a site refuses ------------------------------------------------------------------------------------------


def altered(file: StudyFile, **known: Any) -> StudyFile:
    return replace(file, **known)


def dearer(file: StudyFile, factor: float) -> StudyFile:
    (release,) = file.requests[-1]
    noise = replace(release.noise, rho=float(release.noise.rho) * factor)  # type: ignore[union-attr, arg-type]
    return replace(file, requests=(*file.requests[:-1], (replace(release, noise=noise),)))


def test_an_altered_file_is_refused_before_anything_is_paid(tmp_path: Path) -> None:
    file = started()
    paid = answer_study(file, "Oslo", site(tmp_path, "Oslo")).spent
    for other in (altered(file, epsilon=2.0), altered(file, purpose="more"), dearer(file, 0.5)):
        with pytest.raises(RefusedError, match="altered"):
            answer_study(other, "Oslo", site(tmp_path, "Oslo"))
    assert spent(site(tmp_path, "Oslo")) == paid


def test_a_ledger_answers_as_one_site(tmp_path: Path) -> None:
    file = started()
    answer_study(file, "Oslo", site(tmp_path, "Oslo"))
    with pytest.raises(RefusedError, match="counted twice"):
        answer_study(file, "Rome", site(tmp_path, "Oslo"))


def test_an_older_round_is_refused_once_a_newer_one_is_answered(tmp_path: Path) -> None:
    first = started()
    second = combine_study(first, answers(first, tmp_path))
    assert isinstance(second, StudyFile)
    answer_study(second, "Oslo", site(tmp_path, "Oslo"))
    with pytest.raises(RefusedError, match="round 2 already"):
        answer_study(first, "Oslo", site(tmp_path, "Oslo"))


def test_a_file_never_spends_more_than_it_states(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="more than the epsilon"):
        answer_study(dearer(started(), 4), "Oslo", site(tmp_path, "Oslo"))
    assert not (tmp_path / "Oslo.ledger").exists()


def test_noise_of_another_kind_is_counted_in_the_currency_of_the_ledger(tmp_path: Path) -> None:
    """Laplace noise of a large epsilon costs more zCDP than its number says; Gaussian noise has no pure epsilon."""
    (release,) = started().requests[0]
    loud = replace(release, noise=dpcurate.queries.Laplace(epsilon=20))
    for delta, asked in ((1e-10, loud), (0.0, release)):
        budget = dpcurate.Budget(epsilon=100, delta=delta)
        own = Study.over(dpcurate.Curator(TABLES["Oslo"], CANCER.schema, budget=budget, ledger=tmp_path / f"{delta}.l"))
        file = replace(started(epsilon=100.0, delta=delta), requests=((asked,),))
        assert 20 < float(file.budget.ceiling) < 200
        with pytest.raises(RefusedError, match="more than the epsilon"):
            answer_study(file, "Oslo", own)
        assert not own.log


def test_a_site_that_has_spent_its_budget_in_the_middle_is_told(tmp_path: Path) -> None:
    site(tmp_path, "Oslo", epsilon=1.0).opened()
    first = started()
    second = combine_study(first, answers(first, tmp_path))
    assert isinstance(second, StudyFile)
    own = site(tmp_path, "Oslo")
    own.discover()  # whatever is left
    paid = spent(site(tmp_path, "Oslo"))
    with pytest.raises(BudgetExceeded, match="nothing was read or spent"):
        answer_study(second, "Oslo", site(tmp_path, "Oslo"))
    assert spent(site(tmp_path, "Oslo")) == paid


def test_after_the_deadline_only_stored_answers_are_given(tmp_path: Path) -> None:
    file = started(deadline="2999-12-31")
    answer = answer_study(file, "Oslo", site(tmp_path, "Oslo"))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(StudyFile, "late", property(lambda _: True))
        assert answer_study(file, "Oslo", site(tmp_path, "Oslo")) == answer
        with pytest.raises(RefusedError, match="ended on 2999-12-31"):
            answer_study(file, "Rome", site(tmp_path, "Rome"))
    assert started(deadline="2000-01-01").late
    assert not file.late


def test_a_site_without_a_ledger_in_a_file_and_one_that_is_none_are_refused(tmp_path: Path) -> None:
    file = started()
    with pytest.raises(RefusedError, match="ledger in a file"):
        answer_study(file, "Oslo", dpcurate.open(TABLES["Oslo"], CANCER.schema, epsilon=1))
    with pytest.raises(QueryError, match="'Lima' is no site"):
        answer_study(file, "Lima", site(tmp_path, "Oslo"))
    loose = dpcurate.Curator(
        TABLES["Berlin"], CANCER.schema, budget=dpcurate.Budget.unlimited(), ledger=tmp_path / "loose"
    )
    loose.ask(dpcurate.queries.Release(dpcurate.queries.Counts(()), dpcurate.queries.Exact()))
    for study in (Study.over(loose), dpcurate.open(TABLES["Berlin"], CANCER.schema, ledger=tmp_path / "loose")):
        with pytest.raises(NotPrivate, match="promise nothing"):
            answer_study(file, "Berlin", study)
    site(tmp_path, "Rome", delta=0.0).opened()
    with pytest.raises(QueryError, match="counts in rho, and this ledger in epsilon"):
        answer_study(file, "Rome", site(tmp_path, "Rome"))


@pytest.mark.parametrize(
    ("known", "hint"),
    [
        ({"method": "noleaks"}, "asks too often"),
        ({"method": "em-pc"}, "cannot answer together"),
        ({"rounds": 2}, "takes up to 4 rounds"),
        ({"sites": ("A",)}, "2 to 500 sites"),
        ({"sites": ("A", "A")}, "different names"),
        ({"sites": ("A", "B\n")}, "printable"),
        ({"deadline": "soon"}, "a day such as"),
        ({"noise": "none"}, "'own' or 'shared'"),
        ({"column": "Smoker"}, "in the schema already"),
        ({"epsilon": -1.0}, "greater than 0"),
        ({"epsilon": float("inf")}, "finite epsilon"),
        ({"keys": {"Lima": "k"}}, "no site"),
        ({"knowledge": dpcurate.Knowledge.of(required_arrows=[("x", "Smoker")])}, "unknown node"),
    ],
)
def test_terms_that_no_study_has_are_refused(known: dict[str, Any], hint: str) -> None:
    with pytest.raises(DpcurateError, match=hint):
        started(**known)


def test_a_table_with_numbers_is_asked_in_rounds() -> None:
    schema = Schema(tuple(dpcurate.Numeric(name, 0, 1) for name in "abc"))
    assert new_study(schema, sites=NAMES, epsilon=1).round == 1
    with pytest.raises(QueryError, match="single planned release"):
        new_study(schema, sites=NAMES, epsilon=1, rounds=1)


# --- what the coordinator refuses ---------------------------------------------------------------------------------


def test_missing_double_foreign_and_late_answers_are_refused_by_name(tmp_path: Path) -> None:
    file = started()
    one, two, three = answers(file, tmp_path)
    for given, hint in (
        ([one, two], "not answered by 'Rome' yet"),
        ([one, two, three, replace(three, spent=3.0)], "answered twice"),
        ([one, two, replace(three, study="0" * 32)], "another study"),
        ([one, two, replace(three, site="Lima")], "no site"),
        ([one, two, replace(three, file="0" * 64)], "altered"),
        ([one, two, replace(three, bodies=(*three.bodies, *three.bodies))], "answers round 2"),
    ):
        with pytest.raises(FormatError, match=hint):
            combine_study(file, given)
    assert isinstance(combine_study(file, [one, two, three, three]), StudyFile)


def test_a_site_that_sends_the_answers_of_another_is_found_out(tmp_path: Path) -> None:
    file = started()
    one, two, three = answers(file, tmp_path)
    with pytest.raises(DecodeError, match="the same numbers"):
        combine_study(file, [one, two, replace(three, bodies=two.bodies)])


def lying(body: bytes, lie: str) -> bytes:
    pairs = encoding.decode(body)
    queries, found = [query for query, _ in pairs], [answer for _, answer in pairs]
    (answer,) = found
    parts, scales = answer.parts, answer.scales  # type: ignore[union-attr]
    if lie == "noise":
        found = [replace(answer, scales=tuple(scale / 10 for scale in scales))]  # type: ignore[arg-type]
    elif lie == "shape":
        found = [replace(answer, parts=tuple(np.asarray(part)[None] for part in parts))]  # type: ignore[arg-type]
    elif lie == "huge":
        found = [replace(answer, parts=tuple(part + 1e100 for part in parts))]  # type: ignore[arg-type]
    else:
        queries = [replace(queries[0], noise=dpcurate.queries.Gaussian(rho=0.5))]  # type: ignore[type-var]
    return encoding.encode(queries, found)


@pytest.mark.parametrize("lie", ["noise", "shape", "huge", "question"])
def test_a_site_that_lies_about_its_answer_is_named(lie: str, tmp_path: Path) -> None:
    file = started()
    one, two, three = answers(file, tmp_path)
    with pytest.raises(DecodeError, match="'Oslo'"):
        combine_study(file, [one, replace(two, bodies=(lying(two.bodies[0], lie),)), three])


@pytest.mark.parametrize("rounds", [1, 2])
def test_a_study_ends_without_a_site_that_has_gone_away(rounds: int, tmp_path: Path) -> None:
    file = started()
    for _ in range(rounds - 1):
        file = combine_study(file, answers(file, tmp_path))  # type: ignore[assignment]
    left = [answer_study(file, name, site(tmp_path, name)) for name in NAMES if name != "Oslo"]
    with pytest.raises(FormatError, match="'Oslo' yet"):
        combine_study(file, left)
    before = [one.spent for one in left]
    found = combine_study(file, left, without=["Oslo"])
    assert isinstance(found, Discovery)
    assert [one.name for one in found.privacy.sites] == ["Berlin", "Rome"]
    assert found.schema["site"].levels == ("Berlin", "Rome")
    assert found.privacy.run == pytest.approx(before[0], rel=1e-6)
    assert [spent(site(tmp_path, name)) for name in ("Berlin", "Rome")] == before
    for given, hint in ((["Lima"], "no site"), (list(NAMES), "no site is left")):
        with pytest.raises(FormatError, match=hint):
            combine_study(file, [*left, answer_study(file, "Oslo", site(tmp_path, "Oslo"))], without=given)
    with pytest.raises(DecodeError, match="'Rome'"):
        combine_study(
            file, [left[0], replace(left[1], bodies=(lying(left[1].bodies[0], "noise"), *left[1].bodies[1:]))],
            without=["Oslo"],
        )  # fmt: skip


def test_a_study_of_numbers_cannot_end_without_a_site(tmp_path: Path) -> None:
    schema = Schema(tuple(dpcurate.Numeric(name, 0, 1) for name in "ab"))
    file = new_study(schema, sites=NAMES, epsilon=1)
    table = {name: [0.25, 0.5] * 50 for name in "ab"}
    left = []
    for name in ("Berlin", "Rome"):
        own = dpcurate.open(table, schema, epsilon=1, ledger=tmp_path / f"{name}.ledger")
        left.append(answer_study(file, name, own))
    with pytest.raises(QueryError, match="begin another study"):
        combine_study(file, left, without=["Oslo"])


# --- files from anybody -------------------------------------------------------------------------------------------


def test_files_are_read_as_they_were_written(tmp_path: Path) -> None:
    file = started(latent=True, purpose="ü", deadline="2030-01-01", keys={"Rome": "abc"}, order="Smoker | *")
    assert StudyFile.load(file.save(tmp_path / "study.json")) == file
    answer = answer_study(file, "Oslo", site(tmp_path, "Oslo"))
    assert SiteAnswer.load(answer.save(tmp_path / "a.json")) == answer
    with pytest.raises(FormatError, match="this is a study"):
        SiteAnswer.load(tmp_path / "study.json")
    with pytest.raises(FormatError, match="this is an answer"):
        StudyFile.load(tmp_path / "a.json")
    with pytest.raises(FormatError, match="cannot read"):
        StudyFile.load(tmp_path / "none.json")


def spoilt(drawn: random.Random, value: Any) -> Any:
    """The same JSON with one value of it replaced, left out or repeated."""
    if isinstance(value, dict) and value and drawn.random() < 0.85:
        key = drawn.choice(list(value))
        return {k: spoilt(drawn, v) if k == key else v for k, v in value.items()}
    if isinstance(value, list) and value and drawn.random() < 0.85:
        place = drawn.randrange(len(value))
        return [spoilt(drawn, one) if i == place else one for i, one in enumerate(value)]
    odd = [None, True, -1, 0, 1e308, 10**30, "", "x" * 2000, "\ud800", [], {}, [[]], {"Release": []}, "auto"]
    return drawn.choice(odd)


@pytest.mark.parametrize("seed", range(60))
def test_hostile_files_are_refused_in_a_sentence(seed: int, tmp_path: Path) -> None:
    drawn = random.Random(seed)
    file = started(rounds=1)
    answer = SiteAnswer(
        study=file.id, file=file.hash, site="Oslo", table="t", neighbours=dpcurate.Neighbours.ADD_REMOVE,
        budget=file.budget, spent=0.1, bodies=(b"\0" * 40,),
    )  # fmt: skip
    for kind, good in ((StudyFile, file.to_dict()), (SiteAnswer, answer.to_dict())):
        for _ in range(20):
            text = json.dumps(spoilt(drawn, good))
            with suppress(FormatError):
                read = kind.loads(text)  # type: ignore[attr-defined]
                assert kind.loads(read.dumps()) == read  # type: ignore[attr-defined]
    cut = file.dumps()
    for _ in range(5):
        with pytest.raises(FormatError):
            StudyFile.loads(cut[: drawn.randrange(len(cut) - 2)])


def test_an_answer_that_is_no_answer_is_refused_in_a_sentence(tmp_path: Path) -> None:
    file = started(rounds=1)
    one, two, three = answers(file, tmp_path)
    drawn, refused = random.Random(3), []
    for _ in range(30):
        body = bytearray(two.bodies[0])
        for _ in range(drawn.choice((1, 5))):
            body[drawn.randrange(len(body))] = drawn.randrange(256)
        try:
            combine_study(file, [one, replace(two, bodies=(bytes(body),)), three])
        except DecodeError as error:
            refused.append(str(error))
    assert refused
    assert all("'Oslo'" in said for said in refused)

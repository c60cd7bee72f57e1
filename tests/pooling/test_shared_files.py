"""A study by files whose sites share the noise: keys, masked parts, and the sum."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import test_by_files
from test_by_files import CANCER, NAMES, TABLES, site, spent

from dpcurate import Budget, Codebook
from dpcurate.cli import main
from dpcurate.errors import DpcurateError, FormatError, LedgerError, QueryError, RefusedError
from dpcurate.pooling import (
    SiteAnswer,
    SiteOwner,
    StudyFile,
    answer_study,
    combine_study,
    describe_file,
    new_study,
    preview_answer,
    site_public_key,
)
from dpcurate.private import shared_round
from dpcurate.private.masking import Masked, fresh_key


def keys(folder: Path) -> dict[str, str]:
    return {name: site_public_key(folder / f"{name}.ledger") for name in NAMES}


def owner(folder: Path, name: str) -> SiteOwner:
    ledger = folder / f"{name}.ledger"
    return SiteOwner(TABLES[name], CANCER.schema, epsilon=None if ledger.exists() else 3.0, ledger=ledger)


def answers(file: StudyFile, folder: Path) -> list[SiteAnswer]:
    return test_by_files.answers(file, folder, owner)


def started(folder: Path, **known: Any) -> StudyFile:
    given = {"sites": NAMES, "epsilon": 1.0, "noise": "shared", "keys": keys(folder)} | known
    return new_study(CANCER.schema, **given)


def test_a_study_with_shared_noise_ends_in_a_result_and_every_site_pays_its_epsilon(tmp_path: Path) -> None:
    found, files = test_by_files.finished(started(tmp_path), tmp_path, owner)
    assert 2 <= len(files) <= 4
    assert found.privacy.shared is not None
    for one in found.privacy.sites:
        assert one.privacy.run_epsilon == pytest.approx(1, rel=1e-3)
    ceiling = Budget(epsilon=1, delta=1e-10).ceiling
    for name in NAMES:
        study = site(tmp_path, name)
        assert spent(study) == pytest.approx(ceiling, rel=1e-3)
        assert {event.mechanism for event in study.opened().privacy().events} == {"gaussian-share"}
        assert (tmp_path / f"{name}.ledger-site-key").stat().st_mode & 0o077 == 0


def test_an_answer_is_given_again_free_and_the_same(tmp_path: Path) -> None:
    file = started(tmp_path)
    first = answers(file, tmp_path)
    before = [spent(site(tmp_path, name)) for name in NAMES]
    again = answers(file, tmp_path)
    assert [one.bodies for one in first] == [one.bodies for one in again]
    assert [spent(site(tmp_path, name)) for name in NAMES] == before
    assert preview_answer(file, "Oslo", site(tmp_path, "Oslo")).cost == 0


def test_files_show_masked_numbers_and_whose_keys_they_are(tmp_path: Path) -> None:
    file = started(tmp_path)
    said = str(preview_answer(file, "Oslo", site(tmp_path, "Oslo")))
    assert "noise shared by 3 sites" in said
    assert "compare this with the other sites" in said
    digits = re.search(r"keys    ([0-9a-f ]+):", said)
    assert digits is not None
    assert len(digits[1].replace(" ", "")) == 40  # of 16 digits, two lists of keys with one hash are found in minutes
    file.save(tmp_path / "study.json")
    assert f"keys    {digits[1]}" in list(describe_file(tmp_path / "study.json"))
    assert "only the sum of all sites can be read" in said
    body = answers(file, tmp_path)[0]
    body.save(tmp_path / "a.json")
    assert "masked numbers, which say nothing without all sites" in "\n".join(describe_file(tmp_path / "a.json"))
    numbers = body.masked[0].words.view(np.int64)
    assert (np.abs(numbers) > 2**40).all()


# --- refusals ------------------------------------------------------------------------------------------------


def test_the_terms_of_a_study_are_checked(tmp_path: Path) -> None:
    known = keys(tmp_path)
    for change, why in (
        ({"keys": {}}, "every site has a public key"),
        ({"keys": known | {"Rome": known["Oslo"]}}, "one public key"),
        ({"keys": known | {"Rome": "xyz"}}, "hexadecimal"),
        ({"sites": NAMES[:2], "keys": {name: known[name] for name in NAMES[:2]}}, "3 to 500"),
        ({"colluding": 2}, "may collude"),
        ({"sites_per_person": 4}, "may be at"),
        ({"delta": 0.0}, "delta above 0"),
    ):
        with pytest.raises(DpcurateError, match=why):
            started(tmp_path, **change)


def test_a_missing_site_a_mixed_round_and_another_sites_part_are_refused_and_reveal_nothing(tmp_path: Path) -> None:
    file = started(tmp_path)
    first = answers(file, tmp_path)
    with pytest.raises(FormatError, match="not answered by 'Rome'"):
        combine_study(file, first[:2])
    with pytest.raises(FormatError, match="is void"):
        combine_study(file, first[:2], without=["Rome"])
    second = combine_study(file, first)
    assert isinstance(second, StudyFile)
    new = answers(second, tmp_path)
    old = replace(new[0], bodies=(new[0].bodies[0], new[0].bodies[0]))
    with pytest.raises(QueryError, match="different rounds"):
        combine_study(second, [old, *new[1:]])
    stolen = replace(new[0], bodies=new[1].bodies)
    with pytest.raises(DpcurateError, match="another site's part"):
        combine_study(second, [stolen, *new[1:]])
    part = new[0].masked[0]
    short = shared_round.stored(Masked(part.round, part.place, part.words[:-1]))
    with pytest.raises(QueryError, match="different lengths"):
        combine_study(second, [replace(new[0], bodies=(short, new[0].bodies[1])), *new[1:]])
    with pytest.raises(DpcurateError):
        combine_study(second, [replace(new[0], bodies=(b"\xff" * 40,) * 2), *new[1:]])


def test_a_round_under_other_keys_or_terms_is_refused_before_it_is_paid(tmp_path: Path) -> None:
    file = started(tmp_path)
    known = keys(tmp_path)
    stolen = replace(file, keys=tuple(sorted((known | {"Oslo": fresh_key().public}).items())))
    with pytest.raises(RefusedError, match="another public key for site 'Oslo'"):
        answer_study(stolen, "Oslo", owner(tmp_path, "Oslo"))
    with pytest.raises(QueryError, match="differ from the study's"):
        answer_study(replace(file, neighbours=file.neighbours.of("replace")), "Oslo", owner(tmp_path, "Oslo"))
    assert spent(site(tmp_path, "Oslo")) == 0
    answer_study(file, "Oslo", owner(tmp_path, "Oslo"))
    paid = spent(site(tmp_path, "Oslo"))
    other = replace(file, keys=tuple(sorted((known | {"Rome": fresh_key().public}).items())))
    with pytest.raises(RefusedError, match="altered"):
        answer_study(other, "Oslo", owner(tmp_path, "Oslo"))
    assert spent(site(tmp_path, "Oslo")) == paid


def test_a_ledger_that_is_new_does_not_answer_with_the_secret_of_one_that_is_gone(tmp_path: Path) -> None:
    file = started(tmp_path)
    answer_study(file, "Oslo", owner(tmp_path, "Oslo"))
    (tmp_path / "Oslo.ledger").unlink()
    with pytest.raises(LedgerError, match="of another ledger"):
        answer_study(file, "Oslo", owner(tmp_path, "Oslo"))


def test_answers_of_the_other_kind_are_refused(tmp_path: Path) -> None:
    file = started(tmp_path)
    said = answers(file, tmp_path)
    own = replace(file, noise="own")
    with pytest.raises(FormatError, match="other noise than the study"):
        combine_study(own, [replace(one, file=own.hash) for one in said])


def test_a_file_comes_back_as_it_was_and_lacks_no_field(tmp_path: Path) -> None:
    file = started(tmp_path, colluding=1, sites_per_person=2, neighbours="replace")
    assert StudyFile.loads(file.dumps()) == file
    said = SiteAnswer.loads(answers(started(tmp_path), tmp_path)[0].dumps())
    assert said.shares_noise
    for field in ("neighbours", "colluding", "sites_per_person"):
        given = json.loads(file.dumps())
        del given[field]
        with pytest.raises(FormatError, match=field):
            StudyFile.loads(json.dumps(given))
    empty = Codebook()
    assert preview_answer(started(tmp_path), "Rome", site(tmp_path, "Rome"), codebook=empty).cost > 0


# --- the command ---------------------------------------------------------------------------------------------


def test_three_sites_by_commands(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cancer.toml").write_text(CANCER.schema.dumps())
    given = []
    for name in NAMES:
        table = CANCER.sample(400, seed=NAMES.index(name))
        rows = zip(*(np.asarray(table[c]).astype(str) for c in table), strict=True)
        (tmp_path / f"{name}.csv").write_text("\n".join([",".join(table), *map(",".join, rows)]) + "\n")
        assert main(["study", "key", "--ledger", f"{name}.ledger"]) == 0
        given += ["--key", f"{name}={capsys.readouterr().out.strip()}"]
    assert main(["study", "new", "--schema", "cancer.toml", "--sites", *NAMES, "--epsilon", "1", "--noise", "shared",
                 *given, "-o", "study.json"]) == 0  # fmt: skip
    folder = Path()
    for number in range(1, 5):
        for name in NAMES:
            assert main(["study", "answer", str(folder / "study.json"), f"{name}.csv", "--site", name, "--ledger",
                         f"{name}.ledger", "--yes", "-o", f"{name}{number}.json"]) == 0  # fmt: skip
        assert main(["study", "combine", str(folder / "study.json"), *(f"{name}{number}.json" for name in NAMES), "-o",
                     f"round{number}"]) == 0  # fmt: skip
        folder = Path(f"round{number}")
        if not (folder / "study.json").exists():
            break
    assert (folder / "report.html").exists() or (folder / "graph.json").exists()
    wrong = ["study", "new", "--schema", "cancer.toml", "--sites", *NAMES, "--epsilon", "1", "--noise", "shared"]
    assert main([*wrong, "--key", "abc", "-o", "other.json"]) != 0
    assert "SITE=KEY" in capsys.readouterr().err

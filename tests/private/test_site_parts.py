"""Attacks on rounds of shared noise: each is refused before anything is charged, or shows nothing."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from pathlib import Path
from types import FunctionType, MethodType
from typing import Any

import numpy as np
import pytest

import dpcurate
from dpcurate import Budget, Study
from dpcurate.errors import QueryError
from dpcurate.pooling import SiteOwner, answer_study, new_study, preview_answer
from dpcurate.private import shared_round
from dpcurate.private.ledger import RunFacts
from dpcurate.private.masking import Masked, SiteKey, check_public, fresh_key
from dpcurate.private.session import Session
from dpcurate.private.site_parts import SiteParts
from dpcurate.private.stored import StoredAnswers
from dpcurate.queries import Counts, Gaussian, GaussianShare, Release
from dpcurate.schema import Neighbours
from pooled_tables import NAMES, SCHEMA, tables

ADD = Neighbours.ADD_REMOVE
BUDGET = Budget(rho=100, delta=1e-6)
ASKED = [Release(Counts(("a", "b")), GaussianShare(rho=0.5, sites=3))]
FACTS = RunFacts(command="c0ffee", method="by hand", schema=SCHEMA.hash, by="ann", purpose="a test", result="here")
P = 2**255 - 19


def owned(folder: Path | None = None) -> SiteParts:
    ledger = None if folder is None else folder / "Berlin.ledger"
    return SiteParts(tables(1)[0], SCHEMA, budget=BUDGET, ledger=ledger)


def turn_of(keys: list[str], number: int = 0, study: str = "study") -> shared_round.Round:
    return shared_round.round_of(ASKED, SCHEMA, ADD, study=study, number=number, keys=keys, names=NAMES)


def reached(start: object) -> list[object]:
    """Whatever of ours can be reached from an object by attributes, public or not, items, closures and methods."""
    seen: dict[int, object] = {}
    waiting = deque([start])
    while waiting:
        one = waiting.popleft()
        if id(one) in seen:
            continue
        seen[id(one)] = one
        if isinstance(one, MethodType):
            waiting += [one.__self__, one.__func__]
        elif isinstance(one, FunctionType):
            waiting += [cell.cell_contents for cell in one.__closure__ or ()]
        elif isinstance(one, dict):
            waiting += [*one.keys(), *one.values()]
        elif isinstance(one, (list, tuple, set, frozenset)):
            waiting += one
        elif type(one).__module__.startswith("dpcurate"):
            slots = [name for kind in type(one).__mro__ for name in getattr(kind, "__slots__", ())]
            waiting += [getattr(one, name) for name in slots if hasattr(one, name)]
            waiting += getattr(one, "__dict__", {}).values()
    return list(seen.values())


# --- what an analyst is handed -------------------------------------------------------------------------------------


def test_nothing_leads_from_what_an_analyst_is_handed_to_parts_or_to_the_secret(tmp_path: Path) -> None:
    owner = SiteOwner(tables(1)[0], SCHEMA, epsilon=1, ledger=tmp_path / "Berlin.ledger")
    assert owner.public_key
    curator = owner.opened().curator
    curator.ledger.grant("ann", 0.001)
    handed = [owner.study, curator, curator.of_share("ann"), Study.over(curator), curator.ledger]
    for one in handed:
        assert not any(isinstance(found, (SiteParts, SiteKey, SiteOwner)) for found in reached(one))
    assert any(isinstance(found, SiteKey) for found in reached(owner))  # the search finds what is there


@pytest.mark.parametrize("kind", [Session, dpcurate.Curator, Study, StoredAnswers], ids=lambda kind: kind.__name__)
def test_no_queryable_gives_parts(kind: type) -> None:
    assert not {"masked", "site_key", "public_key", "ready", "approve"} & set(dir(kind))


def test_an_analyst_cannot_pool_a_study_with_tables_whose_keys_are_hers(tmp_path: Path) -> None:
    """With the secrets of the two other sites she would take the masks off, and one share of noise would remain."""
    handed = dpcurate.open(tables(1)[0], SCHEMA, epsilon=1)
    hers = {name: SiteOwner(table, SCHEMA, epsilon=1) for name, table in zip(NAMES[1:], tables(1)[1:], strict=True)}
    for study in (handed, Study.over(handed.opened())):
        with pytest.raises(QueryError, match="only the owner of a table"):
            dpcurate.pool({NAMES[0]: study, **hers}, noise="shared")  # type: ignore[dict-item]
    privacy = handed.privacy()
    assert privacy is not None
    assert privacy.spent == 0


def test_an_analyst_cannot_answer_a_file_of_her_own_with_a_study_she_was_handed(tmp_path: Path) -> None:
    ledger = tmp_path / "Berlin.ledger"
    keys = {NAMES[0]: dpcurate.pooling.site_public_key(ledger)} | {name: fresh_key().public for name in NAMES[1:]}
    handed = dpcurate.open(tables(1)[0], SCHEMA, epsilon=1, ledger=ledger)
    file = new_study(SCHEMA, sites=NAMES, epsilon=0.5, noise="shared", keys=keys)
    for study in (handed, Study.over(handed.opened())):
        with pytest.raises(QueryError, match="only the owner of a table"):
            answer_study(file, NAMES[0], study)
    with pytest.raises(QueryError, match="only the owner of a table"):
        preview_answer(file, NAMES[0], Study.over(handed.opened()))
    assert handed.log == ()
    assert handed.remaining == handed.opened().budget.ceiling


# --- keys ----------------------------------------------------------------------------------------------------------


def test_a_round_whose_keys_the_owner_has_not_approved_is_refused_before_it_is_paid() -> None:
    one, others = owned(), [fresh_key() for _ in range(3)]
    keys = [one.public_key, others[0].public, others[1].public]
    with pytest.raises(QueryError, match="has not approved the keys"):
        one.masked(ASKED, turn_of(keys))
    one.approve(keys)
    for wrong in (
        [keys[0], keys[1], others[2].public],
        [keys[0], keys[2], keys[1]],
        [*keys[:2], others[2].public],
    ):
        for call in (one.masked, one.ready):
            with pytest.raises(QueryError, match="has not approved the keys"):
                call(ASKED, turn_of(wrong))
    assert one.curator.remaining == 100
    assert isinstance(one.masked(ASKED, turn_of(keys)), Masked)


def encoded(key: str, add: int) -> str:
    """The same point of the curve, written as another number."""
    return (int.from_bytes(bytes.fromhex(key), "little") + add).to_bytes(32, "little").hex()


@pytest.mark.parametrize(
    ("chosen", "why"),
    [
        (lambda own, a, b: [a, b, fresh_key().public], "not among those"),
        (lambda own, a, b: [own, a, a], "one public key"),
        (lambda own, a, b: [own, own, b], "one public key"),
        (lambda own, a, b: [own], "3 to 500 sites"),
        (lambda own, a, b: [own, a], "3 to 500 sites"),
        (lambda own, a, b: [own, a, "00" * 32], "would make"),
        (lambda own, a, b: [own, a, "01" + "00" * 31], "would make"),
        (lambda own, a, b: [own, a, encoded(a, 2**255)], "as a site writes it"),
        (lambda own, a, b: [own, a, encoded(own, 2**255)], "as a site writes it"),
        (lambda own, a, b: [own, a, P.to_bytes(32, "little").hex()], "as a site writes it"),
        (lambda own, a, b: [own, a, encoded("09" + "00" * 31, P)], "as a site writes it"),
        (lambda own, a, b: [own, a, "key"], "hexadecimal"),
        (lambda own, a, b: own, "hexadecimal"),
    ],
)
def test_keys_that_no_three_sites_have_are_not_approved(chosen: Any, why: str) -> None:
    """Own key missing or twice, one site twice (also in other writing), one site alone, secrets that all know."""
    one = owned()
    with pytest.raises(QueryError, match=why):
        one.approve(chosen(one.public_key, fresh_key().public, fresh_key().public))
    assert one.curator.remaining == 100


def test_keys_are_written_in_one_way_and_sites_write_theirs_so() -> None:
    assert all(check_public(fresh_key().public) for _ in range(50))
    assert check_public((P - 1).to_bytes(32, "little").hex())


# --- rounds --------------------------------------------------------------------------------------------------------


def test_a_round_that_is_asked_again_with_other_sites_is_another_one_and_its_parts_do_not_add_up() -> None:
    """Two sets of sites, both approved: the second is paid, and no sum mixes the two."""
    one, a, b, c = owned(), fresh_key(), fresh_key(), fresh_key()
    first, second = [one.public_key, a.public, b.public], [one.public_key, a.public, c.public]
    for keys in (first, second):
        one.approve(keys)
    parts = [one.masked(ASKED, turn_of(keys)) for keys in (first, second)]
    assert one.curator.remaining == pytest.approx(99.0)
    zeros = np.zeros(len(parts[0].words), dtype=np.int64)
    for part, wrong in zip(parts, (second, first), strict=True):
        turn = turn_of(wrong)
        others = [(a, b, c)[[a.public, b.public, c.public].index(key)].masked(turn, zeros) for key in wrong[1:]]
        with pytest.raises(QueryError, match="different rounds"):
            shared_round.combined(ASKED, turn, [part, *others], SCHEMA, ADD)
        forged = Masked(turn.identity, 0, part.words)
        (answer,) = shared_round.combined(ASKED, turn, [forged, *others], SCHEMA, ADD)
        assert (np.abs(answer.value) > 2**40).all()  # masks of another round hide it as before


def test_keys_that_are_used_again_make_masks_that_are_not() -> None:
    """Who knows a part, and then its noised integers, learns nothing of the next part of the same keys."""
    key, turns = fresh_key(), []
    keys = [key.public, fresh_key().public, fresh_key().public]
    for study in ("one", "two"):
        turns += [turn_of(keys, number, study) for number in range(3)]
    masks = np.stack([key.masked(turn, np.zeros(200, dtype=np.int64)).words for turn in turns])
    assert len(np.unique(masks)) == masks.size
    assert len(np.unique(masks[1:] - masks[:-1])) == masks[1:].size


def test_other_rows_under_the_name_of_a_round_give_what_was_said_before(tmp_path: Path) -> None:
    """Two parts of one round with other rows would differ by the rows: their masks are the same."""
    one, others = owned(tmp_path), [fresh_key().public, fresh_key().public]
    keys = [one.public_key, *others]
    one.approve(keys)
    with one.curator.run(FACTS):
        said = one.masked(ASKED, turn_of(keys))
    other = SiteParts(tables(2)[0], SCHEMA, ledger=tmp_path / "Berlin.ledger")
    other.approve(keys)
    with other.curator.run(replace(FACTS, command="other")):
        assert np.array_equal(other.masked(ASKED, turn_of(keys)).words, said.words)
    assert other.curator.remaining == pytest.approx(99.5)


def test_sites_that_are_asked_something_else_under_one_round_lose_nothing() -> None:
    """A coordinator may name a round by other questions; a site's part is of what it was asked, once."""
    one = owned()
    keys = [one.public_key, fresh_key().public, fresh_key().public]
    one.approve(keys)
    turn = replace(turn_of(keys), asked="something else")
    first = one.masked(ASKED, turn)
    with pytest.raises(QueryError, match="a mask is used once"):
        one.masked([Release(Counts(("b", "a")), ASKED[0].noise)], turn)
    assert np.array_equal(one.masked(ASKED, turn).words, first.words)
    assert one.curator.remaining == pytest.approx(99.5)


def test_ordinary_questions_and_rounds_spend_one_budget() -> None:
    one = owned()
    keys = [one.public_key, fresh_key().public, fresh_key().public]
    one.approve(keys)
    one.curator.ask(Release(Counts(("a",)), Gaussian(rho=99.6)))
    with pytest.raises(dpcurate.BudgetExceeded):
        one.masked(ASKED, turn_of(keys))
    assert one.curator.remaining == pytest.approx(0.4)

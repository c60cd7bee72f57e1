"""Pools whose sites share the noise: what is found, charged, refused, resumed, and seen on the way."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_pool import ASIA, NAMES, NUMBERS, asia, numbers, studies

import dpcurate
from dpcurate import Budget, BudgetExceeded, Person
from dpcurate.accounting.budget import SharedNoise
from dpcurate.errors import DpcurateError, QueryError, SourceError
from dpcurate.pooling import Pool, SiteOwner
from dpcurate.private import shared_round
from dpcurate.private.masking import Masked
from dpcurate.private.site_parts import SiteParts
from dpcurate.queries import Answer, Contrasts, Counts, Gaussian, Laplace, Release


def owners(some: list[dict[str, Any]], folder: Path | None = None, **known: Any) -> dict[str, SiteOwner]:
    made = {}
    for name, table in zip(NAMES, some, strict=True):
        ledger = None if folder is None else folder / f"{name}.ledger"
        made[name] = SiteOwner(table, ASIA.schema, **{"epsilon": 3.0, "ledger": ledger} | known)
    return made


def spent(one: SiteOwner) -> float:
    return one.study.opened().privacy().spent


def pool_of(sites: dict[str, SiteOwner], **known: Any) -> Pool:
    found = dpcurate.pool(sites, noise="shared", **known).opened()
    assert isinstance(found, Pool)
    return found


def test_sites_that_share_noise_find_a_graph_and_pay_what_one_table_pays() -> None:
    sites = owners(asia(10_000))
    found = dpcurate.pool(sites, noise="shared").discover(epsilon=1)
    assert found.schema["site"].levels == NAMES
    assert frozenset(("tub", "either")) in found.learned.skeleton.edges
    for one in sites.values():
        events = one.study.opened().privacy().events
        assert {event.mechanism for event in events} == {"gaussian-share"}
        assert one.study.opened().privacy().spent == pytest.approx(found.privacy.run or 0)
    assert found.privacy.run_epsilon == pytest.approx(1, rel=1e-3)
    said = str(found)
    assert "noise shared by 3 sites: the promises hold if at most 1 site colludes" in said
    assert found.report_text("x.html")


def test_noise_is_that_of_one_table_but_for_the_sites_that_may_collude() -> None:
    asked = Release(Counts(("smoke",)), Gaussian(rho=0.001))
    (own, shared, two) = (
        dpcurate.pool(owners(asia(500)), **known).opened().ask(asked).scale
        for known in ({}, {"noise": "shared"}, {"noise": "shared", "sites_per_person": 2})
    )
    alone = math.sqrt(1 / (2 * 0.001))
    assert own == pytest.approx(alone * math.sqrt(3), rel=1e-6)
    assert shared == pytest.approx(alone * math.sqrt(3 / 2), rel=1e-6)
    assert two == pytest.approx(2 * shared, rel=1e-6)


def test_answers_have_the_noise_that_they_state() -> None:
    """400 numbers in units of their noise: the sum of squares is chi-square, and with 0.7 of the noise it is not."""
    pooled = pool_of(owners(asia(2_000)))
    truth = np.zeros(2)
    for table in asia(2_000):
        truth += np.array(
            [np.count_nonzero(np.asarray(table["smoke"]) == level) for level in ASIA.schema["smoke"].levels]
        )
    answers = [pooled.ask(Release(Counts(("smoke",)), Gaussian(rho=0.0005))) for _ in range(200)]
    squares = sum(float((((one.value - truth) / one.scale) ** 2).sum()) for one in answers)
    assert 290 < squares < 520  # 400 with a deviation of 28; with 0.7 of the noise it is 196


@pytest.mark.parametrize(("method", "site"), [("auto", "site"), ("notears-moments", "site"), ("noleaks", None)])
def test_numbers_share_noise_too(method: str, site: str | None) -> None:
    sites = {name: SiteOwner(t, NUMBERS, epsilon=2) for name, t in zip(NAMES, numbers(1), strict=True)}
    found = dpcurate.pool(sites, site=site, noise="shared").discover(method=method)
    assert frozenset("xy") in found.learned.skeleton.edges
    if method == "auto":
        assert frozenset(("site", "x")) in found.learned.skeleton.edges


def test_who_runs_the_pool_sees_masked_parts_alone(monkeypatch: Any) -> None:
    """All zeros at the sites: no number of a part is as small as noise is, and their sum is."""
    seen: list[list[Masked]] = []
    combined = shared_round.combined

    def kept(queries: Any, turn: Any, said: Any, *rest: Any) -> Any:
        seen.append(said)
        return combined(queries, turn, said, *rest)

    monkeypatch.setattr(shared_round, "combined", kept)
    asked = [Release(Contrasts((("smoke", "lung"), ("smoke",))), Gaussian(rho=0.005))] * 20
    answers = pool_of(owners(asia(0))).ask_all(asked)
    assert all((np.abs(part) < 200).all() for answer in answers for part in answer.parts)
    for part in seen[0]:
        assert (np.abs(part.words.view(np.int64)) > 2**40).all()


# --- refusals, before anybody pays ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("known", "why"),
    [
        ({"noise": "both"}, "'own' or 'shared'"),
        ({"noise": "shared", "colluding": 2}, "may collude"),
        ({"noise": "shared", "sites_per_person": 4}, "may be at"),
    ],
)
def test_pools_are_checked(known: dict[str, Any], why: str) -> None:
    with pytest.raises(QueryError, match=why):
        dpcurate.pool(owners(asia(100)), **known)


def test_two_sites_cannot_share_noise() -> None:
    sites = owners(asia(100))
    with pytest.raises(QueryError, match="of two, each could subtract"):
        dpcurate.pool({name: sites[name] for name in NAMES[:2]}, noise="shared")


def test_sites_that_protect_something_else_cannot_share_noise() -> None:
    some = asia(100)
    for other in (
        SiteOwner(some[2], ASIA.schema, epsilon=3, neighbours="replace"),
        SiteOwner(
            some[2] | {"id": [f"p{i}" for i in range(100)]}, replace(ASIA.schema, person=Person("id", 2)), epsilon=3
        ),
    ):
        with pytest.raises(QueryError, match="protect the same"):
            dpcurate.pool(owners(some) | {"Rome": other}, noise="shared")
    pure = owners(some, delta=0)
    with pytest.raises(QueryError, match="no pure epsilon"):
        dpcurate.pool(pure, noise="shared")


def test_stored_answers_have_no_noise_to_share(tmp_path: Path) -> None:
    sites = studies(asia(300), tmp_path)
    dpcurate.pool(sites).discover(epsilon=0.5)
    again = {name: dpcurate.reopen(tmp_path / f"{name}.ledger") for name in NAMES}
    with pytest.raises(QueryError, match="only the owner of a table"):
        dpcurate.pool(again, noise="shared")


def test_a_site_that_cannot_pay_or_another_noise_voids_the_round_before_it_begins() -> None:
    sites = owners(asia(100)) | {"Rome": SiteOwner(asia(100)[2], ASIA.schema, epsilon=0.01)}
    pooled = pool_of(sites)
    with pytest.raises(BudgetExceeded, match="'Rome'"):
        pooled.ask(Release(Counts(("smoke",)), Gaussian(rho=0.01)))
    with pytest.raises(QueryError, match="shared noise is Gaussian"):
        pooled.ask(Release(Counts(("smoke",)), Laplace(epsilon=0.001)))
    with pytest.raises(QueryError, match="shared noise is Gaussian"):
        pooled.ask(Release(Counts(("smoke",)), Gaussian(sigma=10.0)))
    assert all(spent(one) == 0 for one in sites.values())
    assert pooled.ask_all([]) == []


# --- failures in the middle ----------------------------------------------------------------------------------


def test_a_site_that_fails_voids_the_round_and_it_is_asked_again_at_no_further_cost(monkeypatch: Any) -> None:
    sites = owners(asia(100))
    pooled, asked = pool_of(sites), Release(Counts(("smoke",)), Gaussian(rho=0.01))
    rome = sites["Rome"].opened().curator
    with monkeypatch.context() as patch:
        patch.setattr(rome._source, "totals", lambda sums: 1 / 0)
        with pytest.raises(SourceError, match="'Rome'"):
            pooled.ask(asked)
    assert [spent(one) for one in sites.values()] == pytest.approx([0.01] * 3)
    pooled.ask(asked)
    assert [spent(one) for one in sites.values()] == pytest.approx([0.01] * 3)
    pooled.ask(asked)
    assert [spent(one) for one in sites.values()] == pytest.approx([0.02] * 3)


class Stop(BaseException):
    """Stands for kill -9."""


@pytest.mark.parametrize("part", [1, 2, 3, 4, 6])
def test_a_pool_that_is_killed_goes_on_and_pays_for_nothing_twice(part: int, tmp_path: Path, monkeypatch: Any) -> None:
    said, done = SiteParts.masked, [0]

    def counted(self: SiteParts, *given: Any) -> Masked:
        done[0] += 1
        if done[0] == part:
            raise Stop
        return said(self, *given)

    with monkeypatch.context() as patch:
        patch.setattr(SiteParts, "masked", counted)
        with pytest.raises(Stop):
            dpcurate.pool(owners(asia(500), tmp_path), noise="shared").discover(epsilon=0.5)
    before = [spent(one) for one in owners(asia(500), tmp_path).values()]
    sites = owners(asia(500), tmp_path)
    found = dpcurate.pool(sites, noise="shared").discover(epsilon=0.5)
    paid = Budget(epsilon=0.5, delta=1e-10).ceiling
    assert [spent(one) for one in sites.values()] == pytest.approx([paid] * 3, rel=1e-6)
    assert max(before) < paid
    more = dpcurate.pool(sites, noise="shared").discover(epsilon=0.5)  # a run of its own
    assert [spent(one) for one in sites.values()] == pytest.approx([2 * paid] * 3, rel=1e-6)
    assert str(more) != str(found)


def test_sites_that_have_finished_say_the_same_again_to_a_pool_that_has_not(tmp_path: Path, monkeypatch: Any) -> None:
    """The end of the run is written at two sites; the third is killed before its own."""
    from dpcurate.private.ledger.disk_store import DiskStore

    ended, done = DiskStore.end, [0]

    def counted(self: DiskStore, *given: Any) -> None:
        done[0] += 1
        if done[0] == 3:
            raise Stop
        ended(self, *given)

    with monkeypatch.context() as patch:
        patch.setattr(DiskStore, "end", counted)
        with pytest.raises(Stop):
            dpcurate.pool(owners(asia(500), tmp_path), noise="shared").discover(epsilon=0.5)
    sites = owners(asia(500), tmp_path)
    before = [spent(one) for one in sites.values()]
    dpcurate.pool(sites, noise="shared").discover(epsilon=0.5)
    assert [spent(one) for one in sites.values()] == before


def test_a_site_whose_secret_is_lost_begins_new_rounds(tmp_path: Path) -> None:
    first = owners(asia(300), tmp_path)
    key = first["Rome"].public_key
    (tmp_path / "Rome.ledger-site-key").unlink()
    again = owners(asia(300), tmp_path)
    assert again["Rome"].public_key != key


# --- what is promised ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("most", "cap", "times"), [(1, 1, 1), (2, 1, 4), (3, 1, 9), (2, 2, 2), (3, 2, 3)])
def test_a_person_at_several_sites_is_told_the_square(most: int, cap: int, times: float) -> None:
    """Every ceiling is spent on shared noise, or on each site's own: the worse of the two."""
    pooled = pool_of(owners(asia(100)), sites_per_person=cap)
    privacy = pooled.privacy()
    assert privacy.shared == SharedNoise(3, 1, cap)
    one = float(privacy.budget.ceiling)
    from dpcurate.accounting import epsilon_of

    assert privacy.together(most) == pytest.approx(epsilon_of(rho=times * one, delta=1e-10), rel=1e-9)


def test_a_pool_states_the_sensitivity_with_its_site_column() -> None:
    sites = owners(asia(100))
    one, site = Contrasts((("smoke", "lung"),)), Contrasts((("site", "smoke"),))
    pooled = pool_of(sites)
    assert pooled.sensitivity(one) == sites["Rome"].study.opened().sensitivity(one)
    assert pooled.sensitivity(site) == pytest.approx(2 * 2 / 3 * 2 * 1 / 2)


def test_every_error_of_a_site_names_it(monkeypatch: Any) -> None:
    sites = owners(asia(100))
    pooled = pool_of(sites)
    monkeypatch.setattr(sites["Oslo"].opened(), "ready", lambda *given: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        pooled.ask(Release(Counts(("smoke",)), Gaussian(rho=0.01)))

    def refused(*given: Any) -> Answer:
        raise DpcurateError("no")

    monkeypatch.setattr(sites["Oslo"].opened(), "ready", refused)
    with pytest.raises(DpcurateError, match="'Oslo': no"):
        pooled.ask(Release(Counts(("smoke",)), Gaussian(rho=0.01)))

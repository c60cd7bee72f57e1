"""One site's part of a round: charged, read, noised, masked, once; and the sum of all sites is one table's release."""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcurate import Budget, Curator, Neighbours, Person, Schema
from dpcurate.accounting import LEAST_STEPS
from dpcurate.errors import BudgetExceeded, DecodeError, LedgerError, NotPrivate, NotStored, QueryError, SourceError
from dpcurate.private import shared_round
from dpcurate.private.ledger import RunFacts
from dpcurate.private.masking import Masked, Round, fresh_key
from dpcurate.private.mechanisms import GaussianShareNoise, Sensitivity, build
from dpcurate.private.noise import Secure
from dpcurate.private.row_sums import CountRows
from dpcurate.private.site_parts import SiteParts
from dpcurate.private.sources.site_column import WithSite
from dpcurate.queries import (
    Contrasts,
    Counts,
    Exact,
    FeatureMap,
    FeatureMoments,
    FeatureNorms,
    Gaussian,
    GaussianShare,
    Gradient,
    Histograms,
    Laplace,
    Means,
    Moments,
    Query,
    Release,
    Statistic,
    Tables,
    Tau,
)
from dpcurate.schema import Categorical
from helpers import any_record, distance, schema_of
from pooled_tables import NAMES, SCHEMA, tables, united, with_site

ADD = Neighbours.ADD_REMOVE
BUDGET = Budget(rho=100, delta=1e-6)
FACTS = RunFacts(command="c0ffee", method="by hand", schema=SCHEMA.hash, by="ann", purpose="a test", result="here")
SHARE = GaussianShare(rho=0.5, sites=3)
ASKED = [Release(Counts(("a", "b")), SHARE), Release(Contrasts((("a",), ("a", "b"))), SHARE)]
LEVEL = FeatureMap("site", ((1, 0), (0, 2), (-1, 1)))
OTHERS = FeatureMap("a", ((1,), (2,), (0,))), FeatureMap("n", ((0, 1), (3, -1)))
SUMS: list[Statistic] = [
    Counts(()),
    Counts(("b", "site", "a")),
    Tables((("a",), ("site", "b"), ())),
    Contrasts((("site",), ("a", "site"), ("a", "b")), (1.0, 0.5, 2.0)),
    Means(("n", "m")),
    Moments(("n", "site", "b", "m")),
    Moments(("n", "b"), clip=0.5),
    Histograms(("site", "n", "m", "b"), 2),
    FeatureMoments((OTHERS[0], LEVEL, OTHERS[1]), 1.5),
    FeatureMoments((LEVEL, *OTHERS), 0.01),
    FeatureNorms((OTHERS[1], LEVEL, OTHERS[0]), (0.001, 0.01)),
    Gradient(("n", "b"), ((0.0, 0.5), (0.0, 0.0)), 1.0),
]


class Silent(Secure):
    """No noise at all, so that sums can be compared."""

    def gaussian(self, scale: float, size: int) -> np.ndarray:
        return np.zeros(size, dtype=np.int64)


def owners(folder: Path | None = None, schema: Schema = SCHEMA, **known: Any) -> list[SiteParts]:
    made = []
    for name, table in zip(NAMES, tables(1), strict=True):
        ledger = None if folder is None else folder / f"{name}.ledger"
        budget = None if ledger is not None and ledger.exists() else BUDGET
        made.append(SiteParts(table, schema, budget=budget, ledger=ledger, **known))
    return made


def turn_of(some: Sequence[SiteParts], asked: Sequence[Query[Any]], number: int = 0, site: str | None = None) -> Round:
    """A round whose keys every owner has approved."""
    schema, keys = SCHEMA if site is None else with_site(SCHEMA), [one.public_key for one in some]
    for one in some:
        one.approve(keys)
    return shared_round.round_of(asked, schema, ADD, study="study", number=number, keys=keys, names=NAMES, site=site)


# --- the sum -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("statistic", SUMS, ids=str)
def test_the_sum_is_exactly_that_of_one_table_with_a_site_column(statistic: Statistic, monkeypatch: Any) -> None:
    some, whole = owners(), Curator(united(tables(1)), with_site(SCHEMA), budget=Budget.unlimited())
    for one in some:
        monkeypatch.setattr(one.curator, "_randomness", Silent())
    asked = [Release(statistic, GaussianShare(rho=0.05, sites=3))]
    turn = turn_of(some, asked, site="site")
    (found,) = shared_round.combined(asked, turn, [c.masked(asked, turn) for c in some], with_site(SCHEMA), ADD)
    true = whole.ask(Release(statistic, Exact()))
    assert len(found.parts) == len(true.parts)
    for one, other in zip(found.parts, true.parts, strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize(("factor", "right"), [(1.0, True), (0.7, False), (1.3, False)])
def test_the_noise_of_the_sum_is_as_large_as_is_stated(factor: float, right: bool, monkeypatch: Any) -> None:
    """2,400 numbers: the estimate of a deviation has an error of 1.5 %, so 0.7 and 1.3 fail at 6 % surely."""
    some = owners()
    drawn = Secure.gaussian
    monkeypatch.setattr(Secure, "gaussian", lambda self, scale, size: drawn(self, factor * scale, size))
    asked = [Release(Counts(("a", "b")), GaussianShare(rho=0.01, sites=3))] * 400
    turn = turn_of(some, asked)
    answers = shared_round.combined(asked, turn, [c.masked(asked, turn) for c in some], SCHEMA, ADD)
    sd = np.std([a.value for a in answers], axis=0)
    stated = answers[0].scale
    assert stated == pytest.approx(math.sqrt(3 / 2) * math.sqrt(1 / (2 * 0.01)), rel=1e-6)
    assert (abs(float(np.sqrt((sd**2).mean())) / stated - 1) < 0.06) is right


def test_a_single_sites_part_says_nothing_and_an_ordinary_question_gets_no_share() -> None:
    (one, *_), asked = owners(), ASKED[0]
    with pytest.raises(QueryError, match="too small to protect"):
        one.curator.ask(asked)
    with pytest.raises(QueryError, match="too small to protect"):
        one.curator.price([asked])
    assert one.curator.remaining == 100


# --- what it costs -------------------------------------------------------------------------------------------

ROWS = schema_of(2, 3, rows=40, numeric=1)
STATISTICS = [Counts(("a", "b")), Contrasts((("a",), ("a", "b"))), Moments(("a", "x0"))]


def worth(statistic: Statistic, relation: Neighbours, one: Any, other: Any) -> Fraction:
    """The rho of one discrete Gaussian as large as the honest sites' noise, on these two tables."""
    computed = shared_round.parts_of([Release(statistic, SHARE)], ROWS, relation)[0]
    _, l2 = distance(statistic, ROWS, one, other)
    return l2 / (2 * 2 * computed.mechanism.share**2)


@pytest.mark.parametrize("relation", Neighbours)
@pytest.mark.parametrize("statistic", STATISTICS, ids=str)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_no_neighbours_of_a_site_are_worth_more_than_is_charged(statistic: Any, relation: Any, data: Any) -> None:
    def draw_int(low: int, high: int) -> int:
        return data.draw(st.integers(low, high))

    rows = [any_record(ROWS, draw_int) for _ in range(draw_int(0, 6))]
    more = any_record(ROWS, draw_int)
    other = [*rows, more] if relation is ADD else [*rows[1:], more] if rows else rows
    assert worth(statistic, relation, rows, other) <= Fraction(SHARE.rho)


@pytest.mark.parametrize("statistic", STATISTICS, ids=str)
def test_some_neighbours_are_worth_more_than_half_the_sensitivity_charges(statistic: Statistic) -> None:
    """With half the sensitivity the cost would be a quarter."""
    worst = max(
        worth(statistic, ADD, [], [row]) for row in ([i, j, x] for i in (0, 1) for j in (0, 2) for x in (-1024, 1024))
    )
    assert worst > Fraction(SHARE.rho) / 4 * Fraction(21, 20)


@given(
    st.floats(1e-6, 10), st.integers(3, 30), st.integers(1, 28), st.integers(1, 3), st.fractions(Fraction(1, 100), 100)
)
def test_a_share_never_costs_more_than_was_asked(
    rho: float, sites: int, few: int, where: int, square: Fraction
) -> None:
    colluding = min(few, sites - 2)
    made = build(
        GaussianShare(rho=rho, sites=sites, colluding=colluding, sites_per_person=where), Sensitivity(square, square)
    )
    assert isinstance(made, GaussianShareNoise)
    assert Fraction(rho) * Fraction(999_999, 10**6) < made.cost.rho <= Fraction(rho)
    assert math.isinf(made.cost.epsilon)
    honest = sites - colluding
    assert float(made.share) ** 2 == pytest.approx(where**2 * float(square) / (2 * honest * rho), rel=1e-9)
    assert made.deviation == pytest.approx(float(made.share) * math.sqrt(sites))
    assert made.multiplier == pytest.approx(1 / math.sqrt(2 * rho), rel=1e-6)


def test_shares_below_four_steps_are_refused_and_grids_are_refined_before() -> None:
    bound = Sensitivity(Fraction(1), Fraction(1))
    small = GaussianShareNoise(Fraction(1, 3), bound, 3, 1, 1)
    with pytest.raises(QueryError, match="4 are the least"):
        small.draw(Fraction(1), 1, Secure())
    assert small.refinement(Fraction(1)) == 16
    assert small.refinement(Fraction(12)) == 1
    assert small.refinement(Fraction(1199, 100)) == 2
    small.check(Fraction(1))
    assert np.std(small.draw(Fraction(16), 20_000, Secure())) == pytest.approx(16 / 3, rel=0.03)
    with pytest.raises(QueryError, match="4 are the least"):
        GaussianShareNoise(Fraction(1, 10**5), bound, 3, 1, 1).check(Fraction(1))
    with pytest.raises(QueryError, match="less noise"):
        GaussianShareNoise(Fraction(2**56), bound, 3, 1, 1).check(Fraction(1))
    assert LEAST_STEPS == 4


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"sites": 2}, "3 to 500"),
        ({"sites": 501}, "3 to 500"),
        ({"sites": 3.0}, "whole number"),
        ({"colluding": 0}, "may collude"),
        ({"colluding": 2}, "may collude"),
        ({"sites_per_person": 0}, "may be at"),
        ({"sites_per_person": 4}, "may be at"),
        ({"rho": 0.0}, "rho"),
    ],
)
def test_noise_in_shares_is_checked(change: dict[str, Any], why: str) -> None:
    with pytest.raises(QueryError, match=why):
        replace(SHARE, **change)


# --- the order, and what is refused ------------------------------------------------------------------------


def test_a_site_is_charged_before_it_reads_and_reads_nothing_it_cannot_pay_for(monkeypatch: Any) -> None:
    some, log = owners(), []
    turn = turn_of(some, ASKED)
    one = some[0]
    charge, read, mask = one.curator.ledger.charge, one.curator._source.totals, one._key.masked  # type: ignore[union-attr]
    monkeypatch.setattr(one.curator._ledger, "charge", lambda events: (log.append("charge"), charge(events))[1])
    monkeypatch.setattr(one.curator._source, "totals", lambda sums: (log.append("read"), read(sums))[1])
    monkeypatch.setattr(one._key, "masked", lambda *given: (log.append("mask"), mask(*given))[1])
    assert one.ready(ASKED, turn) == pytest.approx(1.0)
    assert not log
    one.masked(ASKED, turn)
    assert log == ["charge", "read", "mask"]
    assert one.curator.remaining == pytest.approx(99.0)
    dear = [replace(one, noise=replace(SHARE, rho=150.0)) for one in ASKED[:1]]
    log.clear()
    with pytest.raises(BudgetExceeded):
        one.masked(dear, turn_of(some, dear, 1))
    assert log == ["charge"]


def test_a_round_has_one_part_whoever_asks_and_other_questions_are_refused() -> None:
    some = owners()
    turn = turn_of(some, ASKED)
    first, again = some[0].masked(ASKED, turn), some[0].masked(ASKED, turn)
    assert np.array_equal(first.words, again.words)
    assert some[0].curator.remaining == pytest.approx(99.0)
    with pytest.raises(QueryError, match="a mask is used once"):
        some[0].masked(ASKED[::-1], replace(turn))  # the same shares, by another name of the questions
    new = some[0].masked(ASKED, turn_of(some, ASKED, 1))
    assert not (new.words == first.words).any()
    assert some[0].curator.remaining == pytest.approx(98.0)


def test_other_partners_are_another_round_and_another_charge() -> None:
    some = owners()
    first = some[0].masked(ASKED, turn_of(some, ASKED))
    other = replace(turn_of(some, ASKED), keys=(some[0].public_key, some[1].public_key, fresh_key().public))
    some[0].approve(other.keys)
    second = some[0].masked(ASKED, other)
    assert some[0].curator.remaining == pytest.approx(98.0)
    assert first.round != second.round
    with pytest.raises(QueryError, match="different rounds"):
        shared_round.combined(
            ASKED, other, [second, *(c.masked(ASKED, turn_of(some, ASKED)) for c in some[1:])], SCHEMA, ADD
        )


def test_a_part_that_could_not_be_read_is_paid_once(monkeypatch: Any) -> None:
    some = owners()
    turn = turn_of(some, ASKED)
    with monkeypatch.context() as patch:
        patch.setattr(some[0].curator._source, "totals", lambda sums: 1 / 0)
        with pytest.raises(SourceError):
            some[0].masked(ASKED, turn)
    assert some[0].curator.remaining == pytest.approx(99.0)
    some[0].masked(ASKED, turn)
    assert some[0].curator.remaining == pytest.approx(99.0)


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ([], "one release or more"),
        ([Release(Counts(("a",)), Gaussian(rho=1.0))], "shares of Gaussian noise"),
        ([Release(Counts(("a",)), Laplace(epsilon=1.0))], "shares of Gaussian noise"),
        ([Release(Tau("a", "b"), SHARE)], "not the sum"),
        ([Release(Counts(("a",)), replace(SHARE, sites=4))], "noise is for 4 sites"),
    ],
)
def test_what_does_not_add_up_is_no_round(asked: list[Any], why: str) -> None:
    some = owners()
    with pytest.raises(QueryError, match=why):
        turn_of(some, asked)
    turn = turn_of(some, ASKED)
    with pytest.raises(QueryError):
        some[0].masked(asked, turn)
    with pytest.raises(QueryError, match="of a Round"):
        some[0].masked(ASKED, "round")  # type: ignore[arg-type]
    assert some[0].curator.remaining == 100


def test_a_round_with_other_noise_than_the_table_would_add_is_refused() -> None:
    """A table under the other relation, or with a cap of rows, would add more, and rely on more than it gets."""
    some = owners()
    turn = turn_of(some, ASKED)
    table = tables(1)[0] | {"id": [f"p{i // 2}" for i in range(120)]}
    for other in (
        SiteParts(tables(1)[0], SCHEMA, budget=BUDGET, neighbours="replace"),
        SiteParts(table, replace(SCHEMA, person=Person("id", 2)), budget=BUDGET),
    ):
        own = replace(turn, keys=(other.public_key, *turn.keys[1:]))
        other.approve(own.keys)
        with pytest.raises(QueryError, match="differ from the study's"):
            other.masked(ASKED, own)
        assert other.curator.remaining == 100


def test_the_site_column_is_a_new_one_and_some_statistics_cannot_have_it() -> None:
    some = owners()
    with pytest.raises(QueryError, match="give the column that names the site another name"):
        some[0].masked(ASKED, replace(turn_of(some, ASKED), site="a"))
    for statistic in (Moments(("n", "site"), clip=0.5), FeatureNorms((LEVEL,), (1.0,)), Moments(("site",))):
        asked = [Release(statistic, SHARE)]
        with pytest.raises(QueryError, match="pool them without it"):
            some[0].masked(asked, turn_of(some, asked, site="site"))
    assert some[0].curator.remaining == 100


def test_a_table_without_a_guarantee_takes_no_part(tmp_path: Path) -> None:
    file = tmp_path / "Berlin.ledger"
    Curator(tables(1)[0], SCHEMA, budget=BUDGET, ledger=file, allow_unproved=True).ask(Release(Counts(()), Exact()))
    one = SiteParts(tables(1)[0], SCHEMA, ledger=file)
    with pytest.raises(NotPrivate, match="rely on its noise"):
        one.masked(ASKED, turn_of([one, *owners()[1:]], ASKED))
    with pytest.raises(TypeError):
        SiteParts(tables(1)[0], SCHEMA, budget=BUDGET, insecure_seed=1)  # type: ignore[call-arg]


def test_the_answers_are_those_of_the_questions() -> None:
    some = owners()
    turn = turn_of(some, ASKED)
    said = [c.masked(ASKED, turn) for c in some]
    with pytest.raises(QueryError, match="not the questions"):
        shared_round.combined([ASKED[1], ASKED[0]], replace(turn, shares=turn.shares[::-1]), said, SCHEMA, ADD)
    long = [Masked(p.round, p.place, np.append(p.words, p.words)) for p in said]
    with pytest.raises(QueryError, match="not as long"):
        shared_round.combined(ASKED, turn, long, SCHEMA, ADD)


# --- ledgers in files ----------------------------------------------------------------------------------------


def test_a_ledger_says_the_same_again_in_whatever_run_and_never_twice_anew(tmp_path: Path) -> None:
    some = owners(tmp_path)
    turn = turn_of(some, ASKED)
    one = some[0]
    with pytest.raises(LedgerError, match="within a run"):
        one.masked(ASKED, turn)
    assert one.curator.remaining == 100
    with one.curator.run(FACTS):
        first = one.masked(ASKED, turn)
        assert np.array_equal(one.masked(ASKED, turn).words, first.words)
    assert one.curator.remaining == pytest.approx(99.0)
    again = owners(tmp_path)[0]
    assert again.public_key == one.public_key
    again.approve(turn.keys)
    assert np.array_equal(again.masked(ASKED, turn).words, first.words)
    with again.curator.run(replace(FACTS, command="other")):
        assert np.array_equal(again.masked(ASKED, turn).words, first.words)
        with pytest.raises(QueryError, match="a mask is used once"):
            again.masked(ASKED[::-1], turn)
    assert again.curator.remaining == pytest.approx(99.0)
    kept = again.curator.stored(1)
    with pytest.raises(NotStored):
        kept.ask(Release(Counts(("a", "b")), Gaussian(rho=0.5)))


def test_of_two_runs_that_answer_one_round_the_second_forgets_its_part(tmp_path: Path, monkeypatch: Any) -> None:
    some = owners(tmp_path)
    turn = turn_of(some, ASKED)
    first, second = some[0], owners(tmp_path)[0]
    second.approve(turn.keys)
    drawn = shared_round.noised
    said: list[Masked] = []

    def slowly(*given: Any) -> Any:
        monkeypatch.setattr(shared_round, "noised", drawn)
        with second.curator.run(replace(FACTS, command="other")):
            said.append(second.masked(ASKED, turn))
        return drawn(*given)

    monkeypatch.setattr(shared_round, "noised", slowly)
    with pytest.raises(LedgerError, match="answered by another run"), first.curator.run(FACTS):
        first.masked(ASKED, turn)
    assert np.array_equal(first.masked(ASKED, turn).words, said[0].words)


def _killed_at(folder: Path, step: int) -> None:
    """A child that dies before its step-th transaction or draw in a round."""
    from dpcurate.private.ledger.disk_store import DiskStore

    some = owners(folder)
    asked, done = ASKED[:1], [0]

    def counted(call: Any) -> Any:
        def wrapped(*given: Any, **known: Any) -> Any:
            done[0] += 1
            if done[0] == step:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*given, **known)

        return wrapped

    DiskStore.pay = counted(DiskStore.pay)  # type: ignore[method-assign]
    DiskStore.keep = counted(DiskStore.keep)  # type: ignore[method-assign]
    Secure.gaussian = counted(Secure.gaussian)  # type: ignore[method-assign]
    turn = turn_of(some, asked)
    with some[0].curator.run(FACTS):
        some[0].masked(asked, turn)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no kill -9 here")
@pytest.mark.parametrize("step", [1, 2, 3, 4])
def test_a_site_that_is_killed_pays_once_and_says_one_thing(step: int, tmp_path: Path) -> None:
    owners(tmp_path)
    child = multiprocessing.get_context("spawn").Process(target=_killed_at, args=(tmp_path, step))
    child.start()
    child.join(60)
    assert child.exitcode == (-signal.SIGKILL if step < 4 else 0)
    some = owners(tmp_path)
    turn = turn_of(some, ASKED[:1])
    spent = [100.0, 99.5, 99.5, 99.5][step - 1]
    assert some[0].curator.remaining == pytest.approx(spent)
    with some[0].curator.run(FACTS):
        said = some[0].masked(ASKED[:1], turn)
    assert some[0].curator.remaining == pytest.approx(99.5)
    again = owners(tmp_path)[0]
    again.approve(turn.keys)
    assert np.array_equal(again.masked(ASKED[:1], turn).words, said.words)


def test_what_is_stored_is_a_part_of_the_round() -> None:
    some = owners()
    turn = turn_of(some, ASKED)
    body = shared_round.stored(some[0].masked(ASKED, turn))
    assert shared_round.is_part(body)
    assert not shared_round.is_part(b"an answer")
    with pytest.raises(DecodeError, match="another round"):
        shared_round.restored(body, turn_of(some, ASKED, 1))
    with pytest.raises(DecodeError, match="not a part"):
        shared_round.restored(b"an answer", turn)


def test_a_round_is_no_longer_than_an_answer(monkeypatch: Any) -> None:
    monkeypatch.setattr(shared_round, "MOST_NUMBERS", 8)
    with pytest.raises(QueryError, match="at most 8 numbers"):
        turn_of(owners(), ASKED)


def test_no_sample_is_drawn_of_a_site() -> None:
    source = WithSite(owners()[0].curator._source, "site", 0, 3)
    for draw in (source.check_sample, lambda: source.sample(1, Secure())):
        with pytest.raises(QueryError, match="not of several"):
            draw()
    assert source.passes([CountRows(("site",), (3,)), CountRows((), ())]) == source.source.passes([CountRows((), ())])
    assert source.made == owners()[0].curator.passes


def test_a_schema_with_site_is_that_of_the_round() -> None:
    some = owners()
    turn = turn_of(some, ASKED, site="site")
    assert shared_round.with_site(SCHEMA, turn).columns[0] == Categorical("site", NAMES)

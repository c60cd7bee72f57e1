"""Composition rules: hand-computed cases, dp-accounting called directly, and the order they must stand in."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path

import pytest
from dp_accounting import dp_event, rdp
from dp_accounting.pld import privacy_loss_distribution
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcurate.accounting import Budget, Cost, Event, epsilon_of, gaussian_epsilon
from dpcurate.accounting.composition import RULES, under
from dpcurate.errors import BudgetError, QueryError
from dpcurate.private.ledger import Ledger

DELTA = 1e-10


def gaussian(rho: float) -> Event:
    return Event("gaussian", "x", Cost.concentrated(Fraction(rho)), noise=1 / math.sqrt(2 * rho))


def laplace(epsilon: float) -> Event:
    return Event("laplace", "x", Cost.pure(Fraction(epsilon)), noise=1 / epsilon)


def chosen(epsilon: float) -> Event:
    return Event("exponential", "x", Cost.bounded_range(Fraction(epsilon)))


def block(rho: float) -> Event:
    return Event("reserved", "x", Cost.concentrated(Fraction(rho)))


def epsilon(events: Iterable[Event], rule: str, delta: float = DELTA) -> float:
    return under(events, rule, delta=delta).epsilon


def gaussian_delta(mu: float, at: float) -> float:
    """Balle and Wang 2018, Theorem 8, written as printed."""

    def phi(x: float) -> float:
        return math.erfc(-x / math.sqrt(2)) / 2

    return phi(mu / 2 - at / mu) - math.exp(at) * phi(-mu / 2 - at / mu)


# --- cases computed by hand ------------------------------------------------------------------------------


def test_basic_is_the_plain_sum() -> None:
    report = under([laplace(0.25)] * 3 + [chosen(0.5)], "basic", delta=DELTA)
    assert report.epsilon == 1.25
    assert report.adaptive
    assert str(report).startswith("basic: epsilon = 1.25 at delta = 1e-10; may be used when")


def test_basic_gives_gaussian_steps_an_even_share_of_delta() -> None:
    report = under([gaussian(0.02)] * 4, "basic", delta=1e-6)
    assert gaussian_delta(0.2, report.epsilon / 4) == pytest.approx(1e-6 / 4, rel=1e-6)
    assert not report.adaptive
    assert "4 steps without a pure epsilon" in report.remark


def test_steps_known_by_rho_alone_are_converted() -> None:
    assert epsilon([block(0.01)] * 2, "basic") == pytest.approx(2 * epsilon_of(rho=0.01, delta=DELTA / 2))


def test_advanced_is_dwork_rothblum_vadhan() -> None:
    by_hand = 0.1 * math.expm1(0.1) * 2 + 0.2 * math.expm1(0.2) + math.sqrt(2 * math.log(1e10) * 0.06)
    assert epsilon([laplace(0.1), laplace(0.2), laplace(0.1)], "advanced") == pytest.approx(by_hand)
    assert epsilon([laplace(800)], "advanced") == math.inf


def test_advanced_halves_delta_when_gaussian_steps_need_some() -> None:
    step = gaussian_epsilon(mu=0.1, delta=DELTA / 2)
    by_hand = step * math.expm1(step) + step * math.sqrt(2 * math.log(2 / DELTA))
    assert epsilon([gaussian(0.005)], "advanced") == pytest.approx(by_hand)


def test_adaptive_is_whitehouse_and_others() -> None:
    report = under([laplace(0.1), laplace(0.2)], "adaptive", delta=DELTA)
    assert report.epsilon == pytest.approx(0.025 + math.sqrt(2 * math.log(1e10) * 0.05))
    assert report.adaptive
    assert not under([gaussian(0.1)], "adaptive", delta=DELTA).adaptive


@pytest.mark.parametrize(
    ("epsilons", "drift", "squares"),
    [([0.1, 0.2], (0.1 * 0.10517091807564763 + 0.2 * 0.22140275816016985) / 2, 0.05), ([1.0], 0.8591409142295225, 1.0)],
)
def test_rogers_is_theorem_5_1_at_its_least_ceiling(epsilons, drift, squares) -> None:
    report = under([laplace(e) for e in epsilons], "rogers", delta=1e-10)

    def loss(ceiling: float) -> float:  # ln(1e10) = 23.02585, ln(2e10) = 23.71900
        start = ceiling**2 / (28.04 * 23.025850929940457)
        return drift + math.sqrt(2 * (squares + start) * (1 + 0.5 * math.log(squares / start + 1)) * 23.718998110500402)

    assert loss(report.epsilon) == pytest.approx(report.epsilon, rel=1e-9)
    assert loss(report.epsilon * 0.999) > report.epsilon * 0.999
    assert report.adaptive
    assert "Rogers" in report.remark


def test_rogers_by_figures_found_apart() -> None:
    # Theorem 5.1's loss iterated to its fixed point, apart from this code.
    assert epsilon([laplace(0.1), laplace(0.2)], "rogers", 1e-10) == pytest.approx(2.360982, rel=1e-6)
    assert epsilon([laplace(1.0)], "rogers", 1e-10) == pytest.approx(11.2533, rel=1e-6)
    assert epsilon([laplace(0.01)] * 100, "rogers", 1e-6) == pytest.approx(0.8210184, rel=1e-6)


def test_rogers_leaves_half_of_delta_to_gaussian_steps() -> None:
    assert not under([gaussian(0.1)], "rogers", delta=DELTA).adaptive
    half = gaussian_epsilon(mu=0.1, delta=DELTA / 2)
    assert epsilon([gaussian(0.005)], "rogers") == pytest.approx(epsilon([laplace(half)], "rogers"))


@settings(deadline=None, max_examples=50)
@given(st.lists(st.floats(1e-3, 1.0), min_size=1, max_size=20), st.floats(1e-12, 0.3))
def test_the_newer_filter_is_below_rogers(epsilons: list[float], delta: float) -> None:
    events = [laplace(e) for e in epsilons]
    assert epsilon(events, "adaptive", delta) <= epsilon(events, "rogers", delta)


def test_optimal_is_exact_for_equal_epsilons() -> None:
    # Two steps at epsilon 1: losses 2, 0, -2 with chances p^2, 2pq, q^2; for 0 < E < 2 only the first counts.
    p = math.e / (1 + math.e)
    delta = p * p * -math.expm1(1.5 - 2)
    assert epsilon([laplace(1)] * 2, "optimal", delta) == pytest.approx(1.5)
    # Theorem 3.3 of the paper at its grid point i = 2 of k = 5.
    e, k, i = 0.3, 5, 2
    terms = (math.comb(k, m) * (math.exp((k - m) * e) - math.exp((k - 2 * i + m) * e)) for m in range(i))
    assert epsilon([laplace(e)] * k, "optimal", sum(terms) / (1 + math.exp(e)) ** k) == pytest.approx((k - 2 * i) * e)


def test_optimal_uses_theorem_3_5_for_unequal_epsilons() -> None:
    events = [laplace(0.01)] * 1000 + [laplace(0.02)] * 100
    drift = 10 * math.tanh(0.005) + 2 * math.tanh(0.01)
    squares = 0.1 + 0.04
    log = min(math.log(1e10), math.log(math.e + math.sqrt(squares) / DELTA))
    report = under(events, "optimal", delta=DELTA)
    assert report.epsilon == pytest.approx(drift + math.sqrt(2 * squares * log))
    assert "Theorem 3.5" in report.remark
    assert epsilon([laplace(0.1), laplace(0.2)], "optimal") == pytest.approx(0.3)


def test_zcdp_is_the_tight_conversion_of_the_sum() -> None:
    events = [gaussian(0.001)] * 5 + [laplace(0.1), chosen(0.2), block(0.01)]
    assert epsilon(events, "zcdp") == pytest.approx(epsilon_of(rho=0.005 + 0.005 + 0.005 + 0.01, delta=DELTA))


def test_moments_of_gaussian_steps_are_zcdp() -> None:
    assert epsilon([gaussian(0.001)] * 13, "moments") == pytest.approx(epsilon_of(rho=0.013, delta=DELTA), rel=1e-4)


@pytest.mark.parametrize("rule", ["moments", "pld"])
def test_an_exponential_step_is_bounded_by_both_of_its_guarantees(rule: str) -> None:
    many = [chosen(0.01)] * 1000
    assert epsilon(many, rule) == pytest.approx(epsilon_of(rho=0.0125, delta=DELTA), rel=1e-3)
    assert epsilon([chosen(0.5)], rule) == pytest.approx(0.5, rel=1e-3)


def test_a_large_exponential_step_among_small_ones() -> None:
    small = [laplace(0.01)] * 1000
    assert epsilon(small, "pld") < epsilon([*small, chosen(0.5)], "pld") < epsilon(small, "pld") + 0.5


# --- dp-accounting called directly -----------------------------------------------------------------------


def test_moments_against_dp_accounting() -> None:
    accountant = rdp.RdpAccountant(neighboring_relation=rdp.rdp_privacy_accountant.NeighborRel.REPLACE_ONE)
    response = dp_event.RandomizedResponseDpEvent(noise_parameter=2 / (1 + math.exp(0.2)), num_buckets=2)
    accountant.compose(response, 300)
    assert epsilon([laplace(0.2)] * 300, "moments") == pytest.approx(accountant.get_epsilon(DELTA), rel=2e-3)


def test_pld_of_gaussian_steps_against_the_truth_and_dp_accounting() -> None:
    ours = epsilon([gaussian(0.001)] * 20, "pld")
    assert ours == pytest.approx(gaussian_epsilon(mu=0.2, delta=DELTA), rel=1e-3)
    theirs = privacy_loss_distribution.from_gaussian_mechanism(5.0, value_discretization_interval=1e-4)
    assert ours == pytest.approx(theirs.get_epsilon_for_delta(DELTA), rel=1e-3)


def test_pld_of_laplace_steps_is_the_discrete_one() -> None:
    """On integers, with sensitivity 1, discrete Laplace noise is randomised response, the worst there is."""
    discrete = privacy_loss_distribution.from_discrete_laplace_mechanism(
        0.1, sensitivity=1, value_discretization_interval=1e-3
    ).self_compose(200)
    continuous = privacy_loss_distribution.from_laplace_mechanism(10, value_discretization_interval=1e-3)
    ours = epsilon([laplace(0.1)] * 200, "pld")
    assert ours == pytest.approx(discrete.get_epsilon_for_delta(DELTA), rel=1e-3)
    assert ours == pytest.approx(epsilon([laplace(0.1)] * 200, "optimal"), rel=1e-3)
    assert ours > continuous.self_compose(200).get_epsilon_for_delta(DELTA) + 0.01


def test_pld_of_mixed_steps() -> None:
    gauss, pure = [gaussian(0.005)], [laplace(0.05)] * 30 + [laplace(0.03)] * 10 + [laplace(0.07)]
    both = epsilon(gauss + pure, "pld")
    assert max(epsilon(gauss, "pld"), epsilon(pure, "pld")) < both < epsilon(gauss + pure, "zcdp")
    with_block = epsilon([*gauss, *pure, block(0.002)], "pld")
    assert both < with_block <= epsilon([*gauss, *pure, block(0.002)], "zcdp")


def test_pld_does_not_pretend_below_its_resolution() -> None:
    report = under([laplace(0.01)] * 1000, "pld", delta=1e-15)
    assert report.epsilon == epsilon([laplace(0.01)] * 1000, "zcdp", 1e-15)
    assert "too fine" in report.remark


# --- laws ------------------------------------------------------------------------------------------------

deltas = st.sampled_from([1e-5, 1e-8, 1e-10])


@settings(deadline=None, max_examples=25)
@given(st.lists(st.floats(1e-5, 0.05), min_size=1, max_size=6), st.integers(1, 500), deltas)
def test_gaussian_lists(rhos: list[float], times: int, delta: float) -> None:
    events = [gaussian(rho) for rho in rhos] * times
    truth = gaussian_epsilon(mu=math.sqrt(2 * times * math.fsum(rhos)), delta=delta)
    assert truth * (1 - 1e-4) <= epsilon(events, "pld", delta) <= epsilon(events, "zcdp", delta) * (1 + 1e-9)
    assert epsilon(events, "moments", delta) == pytest.approx(epsilon(events, "zcdp", delta), rel=1e-3)


@settings(deadline=None, max_examples=25)
@given(st.lists(st.floats(1e-3, 1.0), min_size=1, max_size=6), st.integers(1, 300), deltas)
def test_laplace_lists(epsilons: list[float], times: int, delta: float) -> None:
    events = [laplace(e) for e in epsilons] * times
    plain = epsilon(events, "basic", delta)
    assert plain == pytest.approx(times * math.fsum(epsilons), rel=1e-12)
    tight = epsilon(events, "pld", delta)
    assert tight <= epsilon(events, "zcdp", delta) * (1 + 1e-9)
    for rule in ("basic", "advanced", "optimal", "adaptive", "moments"):
        assert tight <= epsilon(events, rule, delta) * (1 + 2e-3) + 1e-9


@settings(deadline=None, max_examples=10)
@given(st.floats(1e-3, 0.5), st.integers(1, 2000), deltas)
def test_equal_laplace_steps_have_one_tight_answer(e: float, times: int, delta: float) -> None:
    exact = epsilon([laplace(e)] * times, "optimal", delta)
    assert epsilon([laplace(e)] * times, "pld", delta) == pytest.approx(exact, rel=2e-3, abs=1e-9)


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_on_the_edges(rule: str) -> None:
    assert epsilon([], rule) == 0
    assert epsilon([Event("constant", "x", Cost(0.0, 0.0))], rule) == 0
    lost = under([laplace(0.1), Event("exact", "x", Cost.infinite())], rule, delta=DELTA)
    assert lost.epsilon == math.inf
    assert "NOT PRIVATE" in lost.remark
    assert epsilon([gaussian(0.1), laplace(1)], rule, 0.0) == math.inf
    assert epsilon([laplace(1), laplace(2)], rule, 0.0) == (3.0 if rule in ("basic", "optimal", "pld") else math.inf)
    assert epsilon([laplace(1)] * 2, rule, 0.0) == (2.0 if rule in ("basic", "optimal", "pld") else math.inf)
    assert 0 < epsilon([laplace(1e-9)] * 3, rule) < 1e-6
    assert epsilon([laplace(800)] * 2 + [gaussian(400)], rule) > 0  # huge numbers warn of nothing
    for delta in (-1e-9, 1.0, math.nan):
        with pytest.raises(BudgetError, match="delta"):
            under([], rule, delta=delta)


def test_thousands_of_different_steps() -> None:
    events = [laplace(0.001 + i / 100_000) for i in range(1500)]
    assert epsilon(events, "pld") <= epsilon(events, "zcdp")


def test_an_unknown_lens_lists_the_known_ones() -> None:
    with pytest.raises(QueryError, match="basic, advanced, optimal, adaptive, rogers, moments, zcdp, pld"):
        under([], "magic", delta=DELTA)


@pytest.mark.parametrize("rule", ["moments", "pld"])
def test_without_dp_accounting_the_error_says_what_to_install(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("dp_accounting")]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(QueryError, match=r"pip install 'dpcurate\[accounting\]'"):
        under([laplace(0.1)], rule, delta=DELTA)
    assert epsilon([laplace(0.1)], "optimal") > 0


# --- through the ledger ----------------------------------------------------------------------------------


def test_a_ledger_looks_at_its_events_at_its_delta() -> None:
    ledger = Ledger(Budget(epsilon=1.0, delta=1e-8))
    ledger.charge([gaussian(0.001), laplace(0.05)])
    assert ledger.under("zcdp").delta == 1e-8
    assert ledger.under("zcdp").epsilon == pytest.approx(epsilon_of(rho=0.00225, delta=1e-8))
    assert ledger.under("zcdp", delta=1e-5).delta == 1e-5
    with ledger.reserve(0.005):  # what is reserved here is not lost
        ledger.charge([laplace(0.05)])
        assert ledger.under("zcdp").epsilon == pytest.approx(epsilon_of(rho=0.0035, delta=1e-8))
    assert Ledger(Budget(epsilon=1.0, delta=0)).under("basic").delta == 0


@pytest.mark.parametrize("budget", [Budget(epsilon=1.0, delta=0), Budget(epsilon=1.0, delta=1e-10)])
def test_blocks_lost_in_a_crash_are_seen(tmp_path: Path, budget: Budget) -> None:
    path = tmp_path / "ledger"
    ledger = Ledger.create(path, table="t", schema_hash="h", neighbours="add-remove", budget=budget)
    ledger.charge([laplace(0.01)])
    with ledger.reserve(0.001):
        seen = Ledger.open(path).under("basic").epsilon
    assert seen == pytest.approx(0.01 + (0.001 if budget.pure else epsilon_of(rho=0.001, delta=1e-10)))

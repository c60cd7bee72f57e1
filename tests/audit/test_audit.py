"""The audit: it does not accuse what is proved, it catches what is broken, and its bounds hold as often as they say."""

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest
from charge_order import ChargesLate, order_cases, order_faults
from scipy.stats import norm

from dpcurate import Budget
from dpcurate.audit import (
    Audit,
    Gate,
    Pair,
    Sampled,
    Script,
    all_controls,
    audit,
    audit_published,
    bounds,
    forecast,
    pairs,
)
from dpcurate.audit.__main__ import main, proved_table, rows_of, summary, write
from dpcurate.audit.cases import AuditCase, cases, methods, study
from dpcurate.audit.controls import published, reachable
from dpcurate.audit.examples import examples
from dpcurate.audit.run import WEAK, measure, target_of
from dpcurate.audit.transcript import Coordinates, Observer, Tally, Truth, linked
from dpcurate.cli import main as cli
from dpcurate.errors import PowerWarning, QueryError
from dpcurate.learn.methods import PC, private
from dpcurate.private import mechanisms, session
from dpcurate.private.noise import Secure, Seeded
from dpcurate.private.replay import OpenPair, proved_statistics, randomness
from dpcurate.private.statistics import registry
from dpcurate.private.statistics.levels import CountsTransformation, TablesTransformation
from dpcurate.private.statistics.numbers import GradientNormsTransformation, QuantileTransformation
from dpcurate.published import PublishedCuratePC, PublishedFlips, PublishedKendallP
from dpcurate.queries import (
    AboveThreshold,
    Answer,
    Choose,
    Counts,
    Exact,
    Gaussian,
    Laplace,
    Quantile,
    Release,
    Sample,
    Score,
    Tables,
    Tau,
)
from dpcurate.schema import Categorical, Neighbours, Schema

COUNTS = Release(Counts(("a", "b", "c")), Laplace(epsilon=1.0))
QUICK = 1_000_000  # most runs of a negative control in this file


# --- bounds ----------------------------------------------------------------------------------------


def test_clopper_pearson_is_the_textbook_interval():
    low, high = bounds.at_least(np.array([7.0]), 10, 0.025), bounds.at_most(np.array([7.0]), 10, 0.025)
    assert low[0] == pytest.approx(0.3475, abs=1e-4)
    assert high[0] == pytest.approx(0.9333, abs=1e-4)
    assert bounds.at_least(np.array([0.0]), 10, 0.05)[0] == 0
    assert bounds.at_most(np.array([10.0]), 10, 0.05)[0] == 1


@pytest.mark.parametrize("mu", [0.1, 1.0, 3.0])
def test_events_of_a_gaussian_never_need_more_than_its_own_mu_and_rho(mu):
    t = np.linspace(-4, 6, 201)
    p, q = norm.sf(t - mu), norm.sf(t)
    assert bounds.mu_of(p, q) == pytest.approx(mu, rel=1e-4)
    assert bounds.rho_of(p, q).max() <= mu**2 / 2
    assert bounds.rho_of(p, q).max() > 0.6 * mu**2 / 2


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_a_coin_that_is_as_unfair_as_epsilon_allows_needs_epsilon(epsilon):
    p = np.array([1 / (1 + math.exp(-epsilon))])
    assert bounds.epsilon_of(p, 1 - p, 0.0)[0] == pytest.approx(epsilon)
    assert bounds.rho_of(p, 1 - p)[0] <= epsilon**2 / 2
    assert bounds.epsilon_of(p, 1 - p, 0.1)[0] < epsilon


def test_certain_and_impossible_events_are_bounded():
    assert bounds.rho_of(np.array([1.0]), np.array([0.25]))[0] == pytest.approx(math.log(4), rel=1e-6)
    assert bounds.rho_of(np.array([0.2]), np.array([0.3]))[0] == 0


def test_bounds_are_wrong_no_more_often_than_stated():
    """A coin at exactly epsilon = 1, two hundred audits at 80 %: at most a fifth may accuse, but for chance."""
    rng, p = np.random.default_rng(3), 1 / (1 + math.exp(-1))
    wrong = 0
    for _ in range(200):
        first, second = (rng.random(400) < q for q in (1 - p, p))
        found = bounds.lower_bound(first.astype(float), second.astype(float), "epsilon", error=0.2)
        wrong += found.lower > 1
    assert wrong <= 55  # 40 expected at most; 55 has a chance below 1 %


# --- what is proved ----------------------------------------------------------------------------------


CASES = cases()
CONFIDENCE = 0.999
"""Of one audit in this file; each uses one seed, so it ends the same way every time."""
SURE = 1 - 1e-7
"""Of an audit of the secure source, which ends another way every time."""
FEWER = {Gaussian: 1.0, Laplace: 0.75}
"""The share of the page's runs that is enough at this confidence."""


def runs_of(case: AuditCase) -> int:
    """Enough to accuse 0.7 of the noise; a whole method costs too much here, so it gets a few runs and no power."""
    if case.budget.ceiling and not isinstance(case.audited, (Release, Choose, Quantile, Gate, Sampled, Script)):
        return 20
    return int(case.runs * FEWER.get(type(getattr(case.audited, "noise", None)), 0.6))


def audited(case: AuditCase, runs: int | None = None, seed: int | None = 11, noise: float = 1.0) -> Audit:
    target = target_of(case.audited, case.pair, case.budget, case.neighbours)
    return measure(target, runs or runs_of(case), SURE if seed is None else CONFIDENCE, seed, noise)


def named(name: str) -> AuditCase:
    (case,) = [c for c in CASES if c.name == name]
    return case


@pytest.mark.slow(
    but=[
        "counts, laplace, add-remove",
        "counts, gaussian, replace",
        "histograms, gaussian, add-remove",
        "exponential mechanism, add-remove",
        "quantile, replace",
        "em-pc",
    ]
)
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_nothing_proved_is_accused_and_seven_tenths_of_its_noise_is(case):
    assert not (found := audited(case)).accused, str(found)
    if runs_of(case) > 20:
        assert (weak := audited(case, seed=12, noise=WEAK)).accused, str(weak)


def test_a_quantile_whose_sensitivity_is_half_of_what_it_is_would_be_accused(monkeypatch):
    case, real = named("quantile, add-remove"), QuantileTransformation.one_row

    def half(computed, neighbours):
        stated = real(computed, neighbours)
        return mechanisms.Sensitivity(stated.l1 / 2, stated.l2_squared / 4)

    monkeypatch.setattr(QuantileTransformation, "one_row", half)
    assert audited(case).accused


@pytest.mark.slow
@pytest.mark.secure_noise
def test_the_secure_source_is_not_accused():
    for noise in (Laplace(epsilon=1.0), Gaussian(rho=0.5)):
        found = audit(Release(Counts(("a", "b", "c")), noise), runs=4_000, confidence=SURE, seed=None, power=1.0)
        assert found.secure
        assert not found.accused
        assert found.lower > 0.3  # about 0.67, give or take 0.05


@pytest.mark.secure_noise
def test_noise_of_less_than_a_step_is_held_against_rho_alone():
    """Discrete Gaussian noise of half a step is no Gaussian: its mu looks 1.24 times too large."""
    release = Release(Counts(("a", "b", "c")), Gaussian(sigma=0.5))
    found = audit(release, runs=4_000, confidence=SURE, seed=None, power=1.0)
    assert [b.limit.currency for b in found.bounds] == ["rho"]
    assert not found.accused


# --- nothing is forgotten ------------------------------------------------------------------------------


def test_every_proved_statistic_of_the_registry_is_audited():
    kinds = set(proved_statistics())
    assert Tables in kinds
    assert PublishedFlips not in kinds
    assert {type(example.statistic) for example in examples()} == kinds
    for noise_kind in (Laplace, Gaussian):
        for relation in Neighbours:
            asked = [c.audited for c in CASES if isinstance(c.audited, Release) and c.neighbours is relation]
            assert {type(r.statistic) for r in asked if isinstance(r.noise, noise_kind)} == kinds
        ordered = [asked for _, _, asked in order_cases() if isinstance(asked, Release)]
        assert {type(r.statistic) for r in ordered if isinstance(r.noise, noise_kind)} == kinds


@pytest.mark.slow(but=["Adjacency.ADD_REMOVE"])
@pytest.mark.parametrize("relation", list(Neighbours))
def test_every_mechanism_is_audited(monkeypatch, relation):
    seen, charged = set(), OpenPair.charged

    def noted(tables, asked):
        event = charged(tables, asked)
        seen.add(event.mechanism)
        return event

    monkeypatch.setattr(OpenPair, "charged", noted)
    for case in CASES:
        if case.neighbours is relation and isinstance(case.audited, (Release, Choose, Quantile, Gate, Sampled)):
            target_of(case.audited, case.pair, case.budget, relation)
    made = {kind.name for kind in vars(mechanisms).values() if hasattr(kind, "cost")}
    assert seen == made - {"exact"} | {"poisson-sample"}


def test_a_proved_statistic_without_an_audit_is_refused(monkeypatch):
    class New(Counts):
        pass

    monkeypatch.setitem(registry.PROVED, New, CountsTransformation)
    for forgetful in (cases, order_faults):
        with pytest.raises(QueryError, match=r"New: proved, and nothing here says how to audit it"):
            forgetful()


def test_every_method_of_the_registry_is_audited():
    audited_kinds = {type(c.audited) for c in CASES}
    assert {type(method) for method in private().values()} <= audited_kinds
    assert set(private()) - set(methods()) == {"auto"}


@pytest.mark.parametrize("relation", list(Neighbours))
@pytest.mark.parametrize("example", examples(), ids=lambda e: e.name)
def test_built_in_pairs_move_nearly_as_far_as_one_row_can(example, relation):
    """In L2 for Gaussian noise and in L1 for Laplace noise, or too little noise would not show."""
    tables = example.pair(relation).opened()
    made = registry.transformation(example.statistic, tables.schema)
    answers = Truth(tables).both(example.statistic)
    seen = Coordinates.of(
        Release(example.statistic, Gaussian(rho=1.0)),
        [Answer(answers[1].parts, tuple(1 / w for w in made.weights()))],
        Truth(tables),
    )
    bound, moved = registry.sensitivity(made, tables.schema, relation), seen.second - seen.first
    if Gaussian in example.noises:
        assert 0.94**2 < (moved**2).sum() / bound.l2_squared < 1 + 1e-9
    if Laplace in example.noises:
        assert 0.94 < abs(moved).sum() / bound.l1 < 1 + 1e-9


@pytest.mark.parametrize("name", ["feature moments", "feature sums", "clipped moments", "gradient"])
def test_examples_with_a_clip_have_rows_that_are_longer(name):
    (example,) = [e for e in examples() if e.name == name]
    tables = example.pair(Neighbours.ADD_REMOVE).opened()
    unclipped = dataclasses.replace(example.statistic, clip=example.statistic.clip * 10)
    clipped, whole = (Truth(tables).both(s)[1].parts for s in (example.statistic, unclipped))
    assert any(not np.allclose(one, other) for one, other in zip(clipped, whole, strict=True))


# --- what is broken ------------------------------------------------------------------------------------


@pytest.mark.slow(but=["CURATE's free answers", "EM-PC's utility", "NOLEAKS' aggregate clip"])
@pytest.mark.parametrize("control", all_controls(), ids=lambda c: c.name)
def test_every_negative_control_is_caught(control):
    runs = {"SVT-PC's re-drawn Gaussian threshold": 10_000_000, "CURATE's free answers": 400}.get(control.name, QUICK)
    found = audit(control, runs=min(runs, control.runs), seed=5)
    assert found.accused, str(found)
    assert not found.bounds[0].limit.proved


def exact(monkeypatch):
    monkeypatch.setattr(session, "_noised", lambda parts, *_: parts)


def shared_between_parts(monkeypatch):
    def noised(parts, units, mechanism, randomness):
        most = max(part.size for part in parts)
        drawn = {unit: mechanism.draw(unit, most, randomness) for unit in units}
        return tuple(p + drawn[u][: p.size].reshape(p.shape) for p, u in zip(parts, units, strict=True))

    monkeypatch.setattr(session, "_noised", noised)


def half_the_gumbel_noise(monkeypatch):
    def pick(self, scores, randomness):
        return randomness.noisiest(scores, float(mechanisms.STEPS / self.epsilon))

    monkeypatch.setattr(mechanisms.Exponential, "pick", pick)


def half_the_noise_of_questions(monkeypatch):
    def query(self, randomness):
        return int(randomness.laplace(float(2 * mechanisms.STEPS / self.epsilon), 1)[0])

    monkeypatch.setattr(mechanisms.FirstAbove, "query", query)


def no_noise_on_the_threshold(monkeypatch):
    monkeypatch.setattr(mechanisms.FirstAbove, "threshold", lambda self, randomness: 0)


def one_coin_for_equal_rows(monkeypatch):
    def thin(self, weights, rate):
        return weights * np.array([self.uniform() < rate / 2**32 for _ in weights], dtype=np.int64)

    for kind in (Seeded, Secure):
        monkeypatch.setattr(kind, "thin", thin)


def half_sensitivity(kind):
    def patch(monkeypatch):
        real = kind.one_row

        def one_row(self, neighbours):
            bound = real(self, neighbours)
            return mechanisms.Sensitivity(bound.l1 / 2, bound.l2_squared / 4)

        monkeypatch.setattr(kind, "one_row", one_row)

    return patch


BROKEN = {
    exact: ("counts, laplace", "counts, gaussian", "tau, laplace", "tau, gaussian"),
    shared_between_parts: ("tables, gaussian", "count and margin, laplace", "moments, gaussian"),
    half_the_gumbel_noise: ("exponential mechanism", "quantile"),
    half_the_noise_of_questions: ("above-threshold",),
    no_noise_on_the_threshold: ("above-threshold",),
    half_sensitivity(TablesTransformation): ("tables, gaussian", "count and margin, laplace"),
    half_sensitivity(GradientNormsTransformation): ("gradient norms, gaussian", "gradient norms, laplace"),
}


@pytest.mark.slow(
    but=[
        "exact-counts, laplace-add-remove",
        "exact-tau, gaussian-replace",
        "half_the_gumbel_noise-exponential mechanism-replace",
    ]
)
@pytest.mark.parametrize("relation", [relation.value for relation in Neighbours])
@pytest.mark.parametrize(("broken", "name"), [(broken, name) for broken, names in BROKEN.items() for name in names])
def test_broken_code_is_accused_by_the_audit_that_runs_it(monkeypatch, broken, name, relation):
    """With a third of the runs with which the same case passes above; a bare threshold shows in rare events alone."""
    case = named(f"{name}, {relation}")
    broken(monkeypatch)
    found = audited(case, runs_of(case) // (1 if broken is no_noise_on_the_threshold else 3))
    assert found.accused, str(found)


@pytest.mark.parametrize("name", [c.name for c in CASES if isinstance(c.audited, Script)])
def test_a_replay_of_exact_releases_is_accused(monkeypatch, name):
    exact(monkeypatch)
    assert audited(named(name), 200).accused


@pytest.mark.slow
@pytest.mark.secure_noise
def test_one_coin_for_equal_rows_is_accused_with_the_secure_source(monkeypatch):
    margin = Release(Counts(("a",)), Laplace(epsilon=2.0))
    sampled, pair = Sampled(rate=0.25, epsilon=2.0, release=margin), pairs.equal_rows(Neighbours.ADD_REMOVE)
    # The sample of twenty rows hides how much noise there is: no power without the shared coin.
    case = AuditCase("sample of equal rows", sampled, Neighbours.ADD_REMOVE, 8_000, pair=pair, powerful=False)
    assert not audited(case, 8_000, seed=None).accused
    one_coin_for_equal_rows(monkeypatch)
    assert audited(case, 8_000, seed=None).accused  # 1.44 times what was charged, give or take 0.04


def test_shared_noise_is_seen_where_likelihoods_see_nothing():
    first, second = np.array([0.0, 0.0]), np.array([1.0, 0.0])
    drawn = np.random.default_rng(0).normal(size=(50, 1))
    same = Coordinates(Gaussian, second + drawn, first, second)
    assert linked([same]).tolist() == [1] * 50
    apart = Coordinates(Gaussian, second + np.random.default_rng(0).normal(size=(50, 2)), first, second)
    assert linked([apart]).tolist() == [0] * 50
    assert linked([Coordinates(Gaussian, second + drawn, second, second)]) is None


@pytest.mark.slow
@pytest.mark.parametrize(("name", "runs"), [("counts, laplace", 4_000), ("exponential mechanism", 2_000)])
def test_a_forecast_agrees_with_audits_of_seven_tenths_of_the_noise(name, runs):
    case = named(f"{name}, add-remove")
    assert forecast(case.audited, pair=case.pair, runs=runs) > 0.9
    assert forecast(case.audited, pair=case.pair, runs=runs // 8) < 0.1
    target = target_of(case.audited, case.pair, case.budget, case.neighbours)
    assert all(measure(target, runs, 0.9999, seed, WEAK).accused for seed in range(4))
    assert not any(measure(target, runs // 8, 0.9999, seed, WEAK).accused for seed in range(4))


def test_an_audit_states_its_power_and_warns_if_it_has_none():
    found = audit(COUNTS, runs=4_000)
    assert found.power > 0.9
    assert "of such audits would accuse" in str(found)
    assert "WARNING" not in str(found)
    with pytest.warns(PowerWarning, match=r"0.7 of the noise, 0% of such audits would accuse\. WARNING"):
        weak = audit(COUNTS, runs=200)
    assert weak.power == 0
    assert "too little power" in str(weak)


def test_a_published_p_value_is_accused_through_the_door_itself():
    found = audit(
        Release(PublishedKendallP("a", "b", ("c",), bound="priv-pc"), Laplace(epsilon=1.0)), runs=8_000, power=1.0
    )
    assert found.accused
    assert "ACCUSED" in str(found)
    assert "claimed: 1" in str(found)


@pytest.mark.slow
def test_a_room_that_charges_after_reading_is_caught():
    assert order_faults() == ()
    faults = order_faults(ChargesLate)
    assert "counts: read before it was charged" in faults
    assert "counts: read although it was refused" in faults


def test_values_of_a_float_sampler_are_reachable_from_their_own_count():
    from dpcurate.audit.controls import laplace

    u = np.random.default_rng(1).random(2_000)
    assert reachable(1.0 + laplace(u, 1.0), 1.0, 1.0).all()
    assert not reachable(1.0 + laplace(u, 1.0), 0.0, 1.0).all()


# --- the interface ---------------------------------------------------------------------------------------


def test_tables_of_the_user_are_taken_and_checked():
    schema = Schema((Categorical("a", ("0", "1")), Categorical("b", ("0", "1"))))
    one, two = {"a": ["0"], "b": ["0"]}, {"a": ["0", "1"], "b": ["0", "1"]}
    query = Release(Counts(("a", "b")), Laplace(epsilon=1.0))
    found = audit(query, pair=Pair(schema, one, two), runs=4_000, power=1.0)
    assert found.pair == "given by the user"
    assert found.lower > 0.5
    far = {"a": ["1", "1", "1"], "b": ["0", "1", "1"]}
    with pytest.raises(QueryError, match="no neighbours"):
        audit(query, pair=Pair(schema, one, far), runs=100, power=1.0)


def test_tables_that_do_not_differ_tell_nothing():
    schema = Schema((Categorical("a", ("0", "1")),))
    same = {"a": ["0", "1"]}
    found = audit(Release(Counts(("a",)), Gaussian(rho=1.0)), pair=Pair(schema, same, same), runs=100, power=1.0)
    assert found.lower == 0


@pytest.mark.slow
def test_a_published_method_is_accused_by_its_name():
    assert all(a.accused for a in audit_published("priv-pc"))


def test_names_of_methods_are_known():
    assert not audit("svt-pc", runs=20, budget=Budget(epsilon=1.0, delta=0), power=1.0).accused
    with pytest.raises(QueryError, match="known are"):
        published("pc")
    with pytest.raises(QueryError, match="audit_published"):
        audit(PublishedCuratePC(), runs=20)


def test_what_cannot_be_audited_is_refused():
    with pytest.raises(QueryError, match="give pair="):
        audit(Release(PublishedFlips("a", "b"), Laplace(epsilon=1.0)), runs=20)
    with pytest.raises(QueryError, match="confidence"):
        audit(COUNTS, confidence=1.0)
    with pytest.raises(QueryError, match="at least 10 runs"):
        audit(COUNTS, runs=3)


def test_an_observer_passes_everything_on():
    tables = pairs.three_tests(Neighbours.ADD_REMOVE).opened()
    session = tables.session(1, Budget(rho=10.0), randomness(0))
    tally = Tally(Truth(tables))
    queryable = Observer(session, tally)
    tau = Tau("a", "b")
    assert queryable.schema is session.schema
    assert queryable.neighbours is Neighbours.ADD_REMOVE
    assert queryable.sensitivity(tau) == 2.0
    assert 0 <= queryable.draw() < 1
    score = Score(tau, 1.0, "above")
    with queryable.reserve(5.0):
        queryable.ask(Choose(candidates=(score,), epsilon=1.0, or_none=True))
    gate = queryable.open(AboveThreshold(epsilon=1.0))
    gate.ask(score)
    assert isinstance(gate.closed, bool)
    sample = queryable.open(Sample(rate=0.5, epsilon=1.0))
    sample.ask(Release(tau, Laplace(epsilon=0.5)))
    assert tally.total != 0
    assert len(queryable.privacy().events) == 3


def test_an_exact_answer_that_differs_is_certain():
    tables = pairs.three_tests(Neighbours.ADD_REMOVE).opened()
    tally = Tally(Truth(tables))
    PC(max_order=0).fit(Observer(tables.session(1, Budget.unlimited(), randomness(0)), tally))
    assert tally.total > 1e5
    assert Release(Counts(()), Exact()) not in tally.asked


def test_a_gate_that_never_says_yes_ends():
    tau = Tau("a", "b", ("c",))
    low = Score(tau, 1e6, "above")
    assert not audit(Gate(epsilon=1.0, scores=(low,)), runs=20, power=1.0).accused


def test_a_study_audits_a_case_with_all_and_with_seven_tenths_of_its_noise(capsys):
    found = study(named("exponential mechanism, add-remove"), 1)
    assert not found.honest.accused
    assert found.weak.accused
    assert not found.wrong
    assert main(["--only", "exponential mechanism, replace", "--workers", "1"]) == 0
    shown = capsys.readouterr()
    assert shown.out.count("| exponential mechanism, replace |") == 1
    assert (
        "0.7 of the noise was accused in 1 of the 1 that are meant to have power, and in 0 of the 0 others" in shown.out
    )
    assert "1 of 1 audited" in shown.err


def test_the_command_states_its_power_before_the_result(capsys):
    assert cli(["audit", "curate-pc", "--runs", "20"]) == 0
    shown = capsys.readouterr()
    assert "0% of such audits would accuse" in shown.err
    assert "not accused" in shown.out


def test_the_page_has_a_row_for_every_proved_statistic():
    page = (Path(__file__).parents[2] / "docs" / "audit.md").read_text(encoding="utf-8")
    rows = [line.split("|") for line in page.splitlines() if line.startswith("| ")]
    assert {kind.__name__ for kind in proved_statistics()} <= {row[2].strip() for row in rows}


def test_some_cases_that_are_audited_again_take_their_place_among_the_rows_of_a_page(tmp_path):
    page = tmp_path / "audit.md"
    rows = [
        f"| {name} |  | {end} |"
        for name, end in (("quantile, add-remove", "yes"), ("a case of old", "yes"), ("em-pc", "no"))
    ]
    page.write_text(f"<!-- proved -->\nhead\n---\n{chr(10).join(rows)}\n<!-- end of proved -->\n")
    found = study(named("exponential mechanism, add-remove"), 1)
    for _ in range(2):
        every = rows_of(page, [found])
        assert [row.split(" | ")[0] for row in every] == [
            "| exponential mechanism, add-remove", "| quantile, add-remove", "| em-pc",
        ]  # fmt: skip
        assert every[1:] == rows[::2]
        write(page, {"proved": proved_table(every)})
    assert "These are 3 of the" in summary(every)
    assert "in 2 of the 2 that are meant to have power, and in 0 of the 1 others" in summary(every)
    assert "With all of the noise, 0 were" in summary(every)
    assert "With all of the noise, 1 were" in summary([*every, "| em-pc |  | 1 ACCUSED | no |"])


def test_tables_go_between_their_marks(tmp_path):
    page = tmp_path / "audit.md"
    page.write_text("before\n<!-- run -->\nold\n<!-- end of run -->\nafter\n")
    write(page, {"run": "new"})
    assert page.read_text() == "before\n<!-- run -->\nnew\n<!-- end of run -->\nafter\n"
    with pytest.raises(QueryError, match="no place for proved"):
        write(page, {"proved": "table"})

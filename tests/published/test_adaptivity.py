"""Allocations at equal spent leakage, schedules, Appendix B, the other statistics, and the page about them."""

import csv
import io
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from dpcurate import Budget, Curator, networks
from dpcurate.errors import QueryError
from dpcurate.published import (
    READINGS,
    CurateReading,
    PublishedCuratePC,
    PublishedCurateScore,
    PublishedKendallP,
    schedules,
)
from dpcurate.published.claims import ALLOCATIONS
from dpcurate.published.reproduction import adaptivity, texts
from dpcurate.published.reproduction.adaptive_comparisons import between, gaps
from dpcurate.published.reproduction.comparisons import View, features, less_leakage
from dpcurate.published.reproduction.grid import FAMILIES, GridCell, world
from dpcurate.published.reproduction.paper_page import gap_rows, verdict_rows
from dpcurate.published.reproduction.rehearsal import Rehearsal, memory
from dpcurate.published.reproduction.runs import COLUMNS, CellRecord, run
from dpcurate.published.reproduction.statements import STATEMENTS
from dpcurate.published.reproduction.store import Provenance, Runs, provenance, write_runs
from dpcurate.published.unproved_statistics import appendix_b
from dpcurate.queries import Exact, Release
from pages import ROOT

ROWS = 100_000
PRINTED = CurateReading.printed()


def fitted(reading, seed=1, total=10.0, network="cancer"):
    return PublishedCuratePC(total=total, reading=reading).fit(Rehearsal(memory(network, ROWS), f"adaptivity/{seed}"))


class TestAllocations:
    def test_nothing_but_the_allocation_differs(self):
        for name, reading in ALLOCATIONS.items():
            same = replace(reading, allocation="opt", plan="each order", edges="current", margins="both")
            assert same == PRINTED, name
        assert len(set(ALLOCATIONS.values())) == len(ALLOCATIONS)
        assert ALLOCATIONS["OPT"] == READINGS["printed"]

    def test_all_on_order_0_spends_its_total_there(self):
        found = fitted(ALLOCATIONS["order 0 only"])
        assert found.tests == (10,)
        assert found.leaked == pytest.approx((10.0,))

    def test_uniform_gives_every_test_the_same_epsilon_until_it_plans_anew(self):
        once = fitted(ALLOCATIONS["uniform, planned once"])
        per_test = [leak / count for leak, count in zip(once.leaked, once.tests, strict=True)]
        # c eps^2 + eps sqrt(2 c log): the same eps gives a leakage that depends on the count alone.
        log = 2 * math.log(1 / PRINTED.delta_prime)
        solved = [(math.sqrt(log + 4 * leak) - math.sqrt(log)) / 2 / math.sqrt(c)
                  for leak, c in zip(once.leaked, once.tests, strict=True)]  # fmt: skip
        assert len(per_test) > 1
        assert solved == pytest.approx([solved[0]] * len(solved))

    def test_a_plan_for_each_order_gives_more_to_later_tests_once_edges_have_gone(self):
        anew, once = (fitted(ALLOCATIONS[name]) for name in ("uniform", "uniform, planned once"))
        assert anew.leaked[0] == pytest.approx(once.leaked[0])
        assert anew.claimed > once.claimed

    def test_matched_finds_the_total_that_spends_what_is_wanted(self):
        assert adaptivity.matched(lambda total: total, 2.0) == 2.0
        assert adaptivity.matched(lambda total: 0.3 * total**0.8, 2.0) == pytest.approx((2 / 0.3) ** 1.25, rel=0.05)
        assert adaptivity.matched(lambda total: 1e-3 * total, 2.0) == pytest.approx(2e3, rel=0.05)
        assert adaptivity.matched(lambda total: 3.0 * total, 2.0) == pytest.approx(2 / 3, rel=0.05)

    @pytest.mark.parametrize("reading", ["uniform", "order 0 only"])
    def test_allocations_spend_what_opt_spends(self, reading):
        ours, theirs = (run(GridCell("allocation", "cancer", "curate-pc", r, 10.0, 20)) for r in ("OPT", reading))
        assert np.mean([r.claimed for r in theirs]) == pytest.approx(np.mean([r.claimed for r in ours]), rel=0.1)
        assert {r.step for r in ours} == {10.0}
        assert all(0 < r.first <= 1 for r in (*ours, *theirs))

    def test_the_same_total_is_not_brought_to_equal_leakage(self):
        rows = run(GridCell("allocation", "asia", "curate-pc", "uniform, same total", 10.0, 6))
        assert {r.step for r in rows} == {10.0}
        assert np.mean([r.claimed for r in rows]) < 9

    def test_options_without_effect_are_refused(self):
        with pytest.raises(QueryError, match="plan='once' has no effect"):
            CurateReading(allocation="first", plan="once")
        with pytest.raises(QueryError, match="smallest"):
            CurateReading(bound="curate-code", smallest=5)


class TestToTheLetter:
    def test_undefined_tests_are_charged(self):
        """A column that is constant in every block leaves its test undefined; Algorithm 1 counts it all the same."""
        schema = networks.load("cancer").schema
        names = schema.names
        rng = np.random.default_rng(1)
        table = {c.name: np.array(c.levels)[rng.integers(0, 2, 400)] for c in schema.columns}
        table[names[0]] = np.full(400, schema.columns[0].levels[0])
        curator = Curator(
            table, replace(schema, rows=400), budget=Budget.unlimited(), allow_unproved=True, insecure_seed=1
        )
        found = PublishedCuratePC(total=1.0).fit(curator)
        assert found.tests[0] == 10
        assert found.leaked[0] == pytest.approx(1.0, rel=1e-3)

    def test_the_printed_reading_has_all_orders_and_the_script_its_own(self):
        printed, script = (PublishedCuratePC(reading=r)._last(ROWS, 20) for r in (PRINTED, CurateReading.script()))
        assert (printed, script) == (18, 11)

    def test_appendix_b_is_a_function_of_the_block_that_changes(self):
        assert appendix_b(ROWS) * math.sqrt(ROWS) == pytest.approx(0.5129, abs=1e-4)
        assert appendix_b(ROWS) / math.sqrt(2) * math.sqrt(ROWS) == pytest.approx(0.36267, abs=1e-4)
        sizes = [appendix_b(ROWS, n) for n in (2, 3, 5, 20, 1000)]
        assert sizes == sorted(sizes, reverse=True)
        by_hand = 2 / math.sqrt(ROWS * math.pi) * (9 * 5 * 6 / (2 * 17) - 9 * 25 / (2 * 15)) / 4
        assert appendix_b(ROWS, 5) == pytest.approx(by_hand)
        known = memory("cancer", ROWS)
        for smallest in (2, 5):
            statistic = PublishedKendallP("Smoker", "Cancer", bound="curate-printed", smallest=smallest)
            assert known.bound(statistic) == pytest.approx(appendix_b(ROWS, smallest))
        assert fitted(replace(PRINTED, smallest=50)).tests != ()

    @pytest.mark.parametrize("smallest", [1, 2.5, True])
    def test_a_block_has_at_least_two_rows(self, smallest):
        with pytest.raises(QueryError, match="smallest"):
            PublishedKendallP("a", "b", smallest=smallest)


class TestOtherStatistics:
    def test_p_values_are_those_of_the_tests(self):
        place = world("cancer")
        table = place.natural.table
        known = memory("cancer", ROWS)
        for a, b in (("Smoker", "Cancer"), ("Pollution", "Smoker"), ("Cancer", "Xray")):
            counts = np.zeros((2, 2))
            np.add.at(counts, (table[a], table[b]), 1)
            for test, lambda_ in (("chi-squared", "pearson"), ("g", "log-likelihood")):
                p = stats.chi2_contingency(counts, correction=False, lambda_=lambda_).pvalue
                asked = float(known.answer(PublishedKendallP(a, b, test=test)))
                assert asked == pytest.approx(p, abs=1e-6)

    def test_curate_runs_on_each(self):
        found = {t: fitted(CurateReading(test=t), total=1.0, network="survey") for t in adaptivity.TESTS.values()}
        assert {f.claimed for f in found.values()} == {found["kendall"].claimed}
        values = {test: tuple(round(e.value, 6) for e in f.evidence) for test, f in found.items()}
        assert len(set(values.values())) == 4

    def test_an_unknown_test_is_refused(self):
        with pytest.raises(QueryError, match="'spearman'"):
            PublishedKendallP("a", "b", test="fisher")


class TestSchedules:
    def test_rising_ones_rise_and_reversed_is_the_multiplicative_one_turned_round(self):
        rising = schedules.published("rising", 0.01, 50)
        assert list(rising) == sorted(rising)
        assert rising[-1] / rising[0] == pytest.approx(16 ** (49 / 50))
        assert schedules.published("reversed", 0.1, 9) == schedules.published("multiplicative", 0.1, 9)[::-1]
        assert set(schedules.published("even", 0.1, 9)) == {0.1}
        assert schedules.lemma_2("even", 1.0, 0.1) == pytest.approx(10)

    @pytest.mark.parametrize("shape", FAMILIES["shape"].readings)
    def test_shapes_share_a_total(self, shape):
        method = adaptivity.shaped(GridCell("shape", "cancer", "curate-score", shape, 1.0, 1))
        assert isinstance(method, PublishedCurateScore)
        assert len(method.budgets()) == adaptivity.GRADIENTS
        assert sum(method.budgets()) == pytest.approx(1.0, rel=1e-3)

    def test_increments_take_lemma_2s_iterations(self):
        method = adaptivity.incremented(GridCell("increment", "cancer", "curate-score", "additive 0.01", 1.0, 1))
        assert (method.first, len(method.budgets())) == (0.01, 67)


class TestFamilies:
    def test_every_reading_has_a_recipe(self):
        assert set(adaptivity.PROVED_ALLOCATIONS) == set(FAMILIES["proved allocation"].readings)
        assert set(adaptivity.PROVED_SHAPES) == set(FAMILIES["proved shape"].readings)
        assert set(adaptivity.ADAPTIVE) == set(FAMILIES["adaptive"].readings)
        assert set(adaptivity.TESTS) == set(FAMILIES["test"].readings)

    def test_one_release_of_the_default_is_one(self):
        queryable = world("cancer").natural.curator(Budget(epsilon=1, delta=1e-10), 1)
        once = adaptivity.ADAPTIVE["one release of all pairs"].fit(queryable)
        assert len(once.leaked) == 1


def row(kind, reading, target, f1, claimed, network="cancer", **more):
    method = FAMILIES[kind].method if kind in FAMILIES else more.pop("method")
    record = CellRecord(kind=kind, network=network, method=method, reading=reading, target=target, claimed=claimed,
                        pc_f1=f1, skeleton_f1=f1, **more)  # fmt: skip
    return {name: getattr(record, name) for name in COLUMNS}


def cell(kind, reading, target, f1, claimed, **more):
    return [row(kind, reading, target, f1 + 0.01 * (i % 3 - 1), claimed, **more) for i in range(30)]


class TestComparisons:
    def test_an_allocation_that_spent_something_else_is_not_compared(self):
        opt, same = cell("allocation", "OPT", 1.0, 0.5, 1.0), cell("allocation", "uniform", 1.0, 0.7, 1.05)
        less = cell("allocation", "uniform", 1.0, 0.7, 0.6)
        rule, view = between("allocation", "OPT", "uniform"), View("pc_f1", "", "")
        assert list(rule(Runs([*opt, *same]), view)) == [("cancer 1", -1)]
        assert list(rule(Runs([*opt, *less]), view)) == []

    def test_an_interval_is_that_of_a_difference_of_means(self):
        runs = Runs([*cell("allocation", "OPT", 1.0, 0.5, 1.0), *cell("allocation", "uniform", 1.0, 0.7, 1.0)])
        (gap,) = gaps(runs, "allocation", "uniform", "OPT", "pc_f1")
        error = np.std([0.01 * (i % 3 - 1) for i in range(30)], ddof=1) / math.sqrt(30)
        assert gap.mean == pytest.approx(0.2)
        assert gap.half == pytest.approx(1.96 * error * math.sqrt(2))
        rows = list(csv.DictReader(io.StringIO("\n".join(",".join(map(str, r)) for r in gap_rows(runs)))))
        assert [float(rows[0][k]) for k in ("gap", "low", "high")] == pytest.approx(
            [gap.mean, gap.mean - gap.half, gap.mean + gap.half], abs=1e-4
        )

    def test_less_leakage_is_read_in_several_ways(self):
        """As good for half the leakage: less, but not a third, and not better."""
        facts = {"network": "cancer", "reading": "artifact's noise, I = 30"}
        ours = cell("first", target=0.01, f1=0.8, claimed=1.0, method="curate-score", **facts)
        theirs = cell("first", target=0.01, f1=0.8, claimed=2.0, method="noleaks", **facts)
        runs, view = Runs([*ours, *theirs]), View("", "", "")
        verdicts = [next(less_leakage(*rule)(runs, view))[1]
                    for rule in (("higher",), ("not lower",), ("near",), ("near", 3.0))]  # fmt: skip
        assert verdicts == [-1, 1, 1, -1]

    def test_what_a_method_needs_is_read_in_several_ways(self):
        """On the large networks the best F1 comes later, and one of 0.5 at once."""
        rows = []
        for network in ("cancer", "earthquake", "survey", "sachs", "child"):
            late = network in ("sachs", "child")
            for total, f1 in ((0.1, 0.6), (1.0, 0.62 if late else 0.9), (10.0, 0.7 if late else 0.8)):
                rows += cell("private", "printed", total, f1, total, network=network, method="curate-pc")
        runs, view = Runs(rows), View("pc_f1", "nominal", "printed")
        signs = {needs: [sign for _, sign in features(needs)(runs, view)] for needs in ("best", "near", 0.5, 0.7)}
        assert signs == {"best": [1], "near": [1], 0.5: [0], 0.7: [1]}


class TestThePage:
    def test_every_item_of_the_paper_leads_somewhere(self):
        assert len(texts._ITEMS) == 40
        anchors = set()
        for line in (ROOT / "docs" / "paper.md").read_text(encoding="utf-8").splitlines():
            if line.startswith("## "):
                anchors.add("#" + re.sub(r"[^a-z0-9 -]", "", line[3:].lower()).replace(" ", "-"))
        for _, target in texts._ITEMS:
            path, _, anchor = target.partition("#")
            assert (ROOT / "docs" / path).exists()
            assert path or "#" + anchor in anchors

    def test_it_is_short_and_every_statement_is_in_one_section(self):
        text = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
        assert len(text.split()) < 4_000
        assert sorted(n for _, numbers, _, _ in texts.SECTIONS for n in numbers) == [*range(1, len(STATEMENTS) + 1)]
        for statement in STATEMENTS:
            assert statement.text in text

    def test_the_page_is_that_of_the_runs_in_the_repository(self):
        made = provenance(ROOT / "docs" / "paper" / "runs.parquet")
        text = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
        assert f"`{made.command}` made it (dpcurate {made.version}, commit {made.commit})" in text.replace("\n", " ")

    def test_all_views_are_in_the_file_of_verdicts(self):
        runs = Runs([*cell("allocation", "OPT", 1.0, 0.5, 1.0), *cell("allocation", "uniform", 1.0, 0.7, 1.0),
                     *(r for method in ("curate-pc", "curate-score")
                       for r in cell("private", "printed", 1.0, 0.5, 1.0, method=method))])  # fmt: skip
        rows = list(verdict_rows(runs))[1:]
        assert {r[0] for r in rows} == set(range(1, len(STATEMENTS) + 1))
        assert ["uniform", "pc_f1", 0, 1, 0] in [[r[1], r[2], *r[6:9]] for r in rows]


def test_a_file_of_runs_says_what_made_it(tmp_path):
    path = tmp_path / "runs.parquet"
    write_runs([dict.fromkeys(COLUMNS) | {"kind": "private"}], path, Provenance("it's a command", "1.2.3", "abc"))
    assert provenance(path) == Provenance("it's a command", "1.2.3", "abc")


def test_the_exact_answer_of_a_test_is_asked_once():
    known = memory("cancer", ROWS)
    statistic = PublishedKendallP("Smoker", "Cancer", test="g")
    assert known.answer(statistic) is known.answer(statistic)
    assert Release(statistic, Exact()).statistic.test == "g"

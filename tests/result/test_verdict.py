"""The verdict says what a run could see, what its graph is worth, and what to do about it."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from dpcurate import Budget, Curator, fit
from dpcurate.graphs.knowledge import Knowledge
from dpcurate.planning.estimate import _of_levels, estimate
from dpcurate.result.fit import GoodnessOfFit, NoiseLevel
from dpcurate.result.verdict import HOPELESS, WORTHWHILE, Expected, verdict_on, ways_to
from dpcurate.schema import Categorical, Numeric, Schema

QUIET = NoiseLevel(rows=100_000, rows_noise=30, variance=1.2e-5, coordinates=1)
LOUD = NoiseLevel(rows=2000, rows_noise=30, variance=0.02, coordinates=1)
GOOD = Expected(drawn=20, right=19.5, missed=1.0)


def on(noise=QUIET, **more):
    return verdict_on(noise, columns=15, declared=None, **{"expected": GOOD, **more})


def test_expected_counts_follow_from_the_probabilities():
    expected = Expected.of([0.9, 0.7, 0.3, 0.1], 0.5)
    assert (expected.drawn, expected.right, expected.missed) == (2, pytest.approx(1.6), pytest.approx(0.4))
    assert expected.edges == pytest.approx(2.0)
    assert expected.precision == pytest.approx(0.8)
    assert expected.f1 == pytest.approx(2 * 2.6 / 6)
    assert expected.range[0] < expected.f1 < expected.range[1]


def test_half_of_what_stays_dependent_is_expected_to_be_missed():
    fit = GoodnessOfFit(columns=15, edges=2, apart=80, dependent=16, share=0.075, log_ratio=2.0)
    expected = Expected.of([0.9, 0.7, 0.3, 0.1], 0.5, fit)
    assert expected.missed == pytest.approx(3.4)
    assert expected.right == Expected.of([0.9, 0.7, 0.3, 0.1], 0.5).right
    assert Expected.of([0.9, 0.7, 0.3, 0.1], 0.5, replace(fit, log_ratio=1.9)).missed == pytest.approx(0.4)


def test_of_noise_nothing_is_said_about_how_well_it_is_explained():
    noise = NoiseLevel(rows=400, rows_noise=30, variance=5.0, coordinates=1)
    bad = GoodnessOfFit(columns=15, edges=0, apart=80, dependent=30, share=0.3, log_ratio=5.0)
    said = str(on(noise, expected=Expected(drawn=0, right=0.0, missed=15.0), fit=bad))
    assert "Do not read the graph" in said
    assert "does not explain" not in said


def test_a_table_without_links_can_be_seen_clearly():
    assert on(expected=Expected(drawn=0, right=0.0, missed=0.3)).level == "fine"


def test_counts_of_edges_read_as_a_person_would_say_them():
    assert "Of 20 drawn edges about 20 are expected to be right, and about 1 edge to be missing:" in str(on())
    one = str(on(expected=Expected(drawn=1, right=0.9, missed=0.3)))
    assert "Of 1 drawn edge about 1 is expected to be right, and fewer than 1 edge to be missing:" in one
    none = str(on(expected=Expected(drawn=0, right=0.0, missed=0.3)))
    assert "No edge is drawn; fewer than 1 edge is expected to be missing." in none


def test_a_graph_with_edges_is_not_said_to_hide_every_link():
    noise = NoiseLevel(rows=2000, rows_noise=30, variance=2.0, coordinates=1)
    drawn = str(on(noise, expected=Expected(drawn=2, right=1.9, missed=1.0)))
    assert "Noise hides all but the strongest links." in drawn
    assert "every link" not in drawn
    assert "every link" in str(on(noise, expected=Expected(drawn=0, right=0.0, missed=3.0)))


def test_the_verdict_follows_what_is_drawn():
    levels = [on(LOUD, expected=Expected(drawn=9, right=right, missed=missed)).level for right, missed in
              ((8.9, 1.0), (8.0, 6.0), (6.0, 12.0), (5.0, 30.0))]  # fmt: skip
    assert levels == ["fine", "partial", "weak", "hopeless"]


def test_few_edges_that_are_right_are_no_noise():
    sure = on(LOUD, expected=Expected(drawn=3, right=2.9, missed=40.0))
    assert sure.level == "weak"
    assert "Do not read" not in str(sure)


def test_copies_and_a_bad_fit_lower_it_and_are_named():
    assert on().level == "fine"
    assert on(repeated=["b2"]).level == "partial"
    assert "leave out b2" in str(on(repeated=["b2"]))
    bad, good = (
        GoodnessOfFit(columns=15, edges=20, apart=80, dependent=30, share=0.38, log_ratio=5.0),
        GoodnessOfFit(columns=15, edges=20, apart=80, dependent=2),
    )
    assert on(fit=bad).level == "partial"
    assert "38% of the pairs" in str(on(fit=bad))
    assert on(fit=good) == on()


def test_it_says_how_much_more_is_needed_and_that_is_enough():
    weak = Expected(drawn=9, right=7.0, missed=9.0)
    said = str(on(LOUD, expected=weak, budget=Budget(epsilon=1, delta=1e-10)))
    epsilon, rows = said.split("Good power takes about epsilon = ")[1].split(" rows.")[0].split(" or ")
    times = 1.03 * float(rows.replace(",", "")) / LOUD.rows  # it is rounded to two digits
    more = replace(LOUD, rows=times * LOUD.rows, variance=5e-4 / times + (0.02 - 5e-4) / times**2)
    assert verdict_on(more, columns=15, declared=None).level == "fine"
    quieter = Budget(epsilon=1, delta=1e-10).ceiling / Budget(epsilon=1.03 * float(epsilon), delta=1e-10).ceiling
    louder = replace(LOUD, variance=5e-4 + (0.02 - 5e-4) * float(quieter))
    assert verdict_on(louder, columns=15, declared=None).level == "fine"
    assert verdict_on(LOUD, columns=15, declared=None).level != "fine"


def test_where_rows_are_what_lacks_no_epsilon_is_asked_for():
    few = NoiseLevel(rows=100, rows_noise=1, variance=0.0101, coordinates=1)
    said = str(on(few, expected=Expected(drawn=9, right=7.0, missed=9.0), budget=Budget(epsilon=1, delta=1e-10)))
    assert "Good power takes about" in said
    assert "epsilon =" not in said


def test_what_is_needed_where_all_is_noise_is_what_the_announcement_says():
    """A forecast from the same figures and the verdict name the same epsilon and the same number of rows."""
    schema = Schema(tuple(Categorical(name, ("0", "1")) for name in "abc"), rows=40)
    budget = Budget(epsilon=1, delta=1e-10)

    def seen(epsilons, rows):
        whole = Budget(epsilon=epsilons, delta=1e-10)
        return estimate(schema, round(40 * rows), budget=whole)

    announced = ways_to(WORTHWHILE, seen, epsilon=1, rows=40)
    assert announced.startswith("epsilon = ")
    power = estimate(schema, 40, budget=budget)
    assert power.f1 < HOPELESS  # the count alone has noise of half the rows
    released = NoiseLevel(rows=40.0, rows_noise=18.64, variance=power_variance(schema, budget), coordinates=1)
    verdict = verdict_on(released, columns=3, declared=40, budget=budget)
    assert verdict.level == "hopeless"
    assert "Noise hides every link" in str(verdict)
    assert f"An F1 of 0.5 takes about {announced}." in str(verdict)


def power_variance(schema, budget):
    return 1 / 40 + _of_levels(schema, budget).pair / 40**2


def test_noise_is_not_what_limits_a_quiet_run():
    assert "A larger budget would change little" in str(on(expected=Expected(drawn=20, right=12.0, missed=9.0)))


def nothing_to_find(rows=400, columns=8):
    draw = np.random.default_rng(5)
    schema = Schema(tuple(Categorical(f"c{i}", ("0", "1", "2")) for i in range(columns)))
    return {c.name: draw.choice(["0", "1", "2"], rows) for c in schema.columns}, schema


def test_where_all_is_noise_only_required_edges_are_drawn():
    table, schema = nothing_to_find()
    knowledge = Knowledge(required_edges={frozenset(("c1", "c2"))})
    found = fit(Curator(table, schema, budget=Budget(epsilon=0.02, delta=1e-10), insecure_seed=1), "auto", knowledge)
    assert found.verdict.level == "hopeless"
    assert found.graph.edges == {frozenset(("c1", "c2"))}
    likely = {pair for pair, p in found.learned.linked.items() if p >= 0.05}
    assert found.at(0.05).graph.edges >= likely


def test_an_exact_copy_is_named_to_be_dropped():
    draw = np.random.default_rng(6)
    x = draw.standard_normal(20_000)
    table = {"a": x, "b": x + draw.standard_normal(20_000), "again": x.copy()}
    schema = Schema(tuple(Numeric(name, -8, 8) for name in table))
    found = fit(Curator(table, schema, budget=Budget(epsilon=5, delta=1e-10), insecure_seed=1))
    assert found.learned.repeated == ("again",)
    assert found.verdict.level == "partial"
    assert "leave out again" in str(found.verdict)


def test_levels_do_not_skip_a_step():
    """A better graph never has a worse verdict."""
    order = ["hopeless", "weak", "partial", "fine"]
    seen = [
        on(LOUD, expected=Expected(drawn=10, right=float(r), missed=10.0 - r)).level for r in np.linspace(0, 10, 60)
    ]
    assert set(seen) == set(order)
    assert all(order.index(a) <= order.index(b) for a, b in combinations(seen, 2))


def test_a_large_share_of_dependent_pairs_is_a_misfit():
    def named(share, log_ratio):
        fit = GoodnessOfFit(columns=5, edges=4, apart=40, dependent=3, share=share, log_ratio=log_ratio)
        return "does not explain" in str(on(fit=fit))

    assert not named(0.09, 2.0)
    assert named(0.1, 2.0)
    assert not named(0.5, 1.9)  # by chance, where noise hides nearly everything

"""The search of the default method on evidence that is known: what it finds, what it buys, how sure it says it is."""

from __future__ import annotations

from itertools import combinations
from math import exp, log, prod
from random import Random

import numpy as np
import pytest

from dpcurate import Curator, networks
from dpcurate.accounting import Budget
from dpcurate.graphs.knowledge import Knowledge
from dpcurate.graphs.orient import orient
from dpcurate.learn.measure_once import (
    Constants,
    MeasureOnce,
    family_search,
    order_search,
    release,
    release_plan,
)
from dpcurate.learn.measure_once import decide as decide_module
from dpcurate.learn.measure_once.blocks import bits, helmert
from dpcurate.learn.measure_once.central_moments import Released
from dpcurate.learn.measure_once.constraints import Constraints
from dpcurate.learn.measure_once.decide import (
    Decision,
    decide,
    evidence_of,
    f1_threshold,
    skeleton_of,
)
from dpcurate.learn.measure_once.evidence import DependenceEvidence
from dpcurate.learn.measure_once.family_search import FamilySearch
from dpcurate.learn.measure_once.order_search import BestParents, SearchOrder, best_order, climbed_on, number_of_starts
from dpcurate.learn.measure_once.release import (
    first_weights,
    noise_over_sampling,
    noise_to_come,
    second_weights,
    still_open,
    triples,
)
from dpcurate.networks.worlds import random_dag
from dpcurate.queries import Answer
from dpcurate.schema import Categorical, Schema


class Oracle(DependenceEvidence):
    """Evidence from a graph by d-separation: the search must not ask for more than the protocol has."""

    def __init__(self, dag, strength=20.0):
        self.dag, self.strength = dag, strength
        self.measured = ~np.eye(len(dag.nodes), dtype=bool)

    def one(self, column, other, given):
        return float(self.row(column, given)[other])

    def row(self, column, given):
        nodes = self.dag.nodes
        out = np.zeros(len(nodes))
        for x, name in enumerate(nodes):
            if x != column and x not in given:
                apart = self.dag.d_separated(name, nodes[column], [nodes[s] for s in given])
                out[x] = -5.0 if apart else self.strength * (1 + 1e-3 * (x + 1) * (column + 1))  # no two alike
        return out


class Fixed(DependenceEvidence):
    """The same evidence for a pair whatever is given."""

    def __init__(self, matrix):
        self.matrix = np.array(matrix, dtype=float)
        self.measured = ~np.eye(len(matrix), dtype=bool)

    def one(self, column, other, given):
        return float(self.row(column, given)[other])

    def row(self, column, given):
        row = self.matrix[column].copy()
        row[[column, *given]] = 0
        return row


class Jittered(DependenceEvidence):
    """Evidence off by rounding."""

    def __init__(self, evidence, seed):
        self.evidence, self.random, self.measured = evidence, np.random.default_rng(seed), evidence.measured

    def one(self, column, other, given):
        return float(self.row(column, given)[other])

    def row(self, column, given):
        row = self.evidence.row(column, given)
        return row * (1 + 1e-14 * self.random.normal(size=len(row)))


def names(size):
    return tuple(f"X{i + 1}" for i in range(size))


def decided(evidence, knowledge=None, constants=None):
    constraints = Constraints.of(names(len(evidence.measured)), knowledge)
    return decide(FamilySearch.of(evidence, constraints, constants or Constants()), Random(0))


def pairwise(size, least=-40.0, **links):
    """Evidence of links like X1X2=3.0, all other pairs clearly independent."""
    matrix = np.full((size, size), least)
    for pair, value in links.items():
        a, b = (int(x) - 1 for x in pair[1:].split("X"))
        matrix[a, b] = matrix[b, a] = value
    return Fixed(matrix)


# --- the search ------------------------------------------------------------------------------------------------


def test_evidence_without_errors_gives_the_true_class():
    """None of sixty graphs is missed; without a spare parent it is seven, with half the starts some."""
    dags = [random_dag(4 + seed % 6, degree=1.5 + seed % 3 / 2, seed=seed) for seed in range(60)]
    missed = []
    for seed, dag in enumerate(dags):
        skeleton = skeleton_of(dag.nodes, Constraints.of(dag.nodes, None), decided(Oracle(dag)))
        few = max(sum(head == n for _, head in dag.arrows) for n in dag.nodes) <= Constants().max_parents
        if few and orient(skeleton) != dag.cpdag():
            missed.append(seed)
    assert not missed


def test_a_climb_ends_where_no_column_moves():
    for seed in range(12):
        dag = random_dag(9, degree=2.5, seed=seed)
        families = FamilySearch.of(Oracle(dag), Constraints.of(dag.nodes, None), Constants())
        order = SearchOrder(families, Random(seed).sample(range(9), 9))
        order.climb(Random(seed))
        assert not any(order.move_to_best_place(column) for column in range(9))


class Landscape(BestParents):
    """The first of five columns gains so much by each swap to the right, one after the other."""

    columns, hopeless = 5, 20.0

    def __init__(self, *gains):
        self.gains, self.asked, self.prepared = dict(enumerate(gains, start=1)), [], []

    def change(self, column, before, other):
        if column != 0:
            return 0.0
        self.asked.append(other)
        return self.gains[other]

    def prepare(self, asked):
        self.prepared += [(column, other) for column, _, other in asked]


@pytest.mark.parametrize(
    ("gains", "asked", "place"),
    [((-5, -14, 30, -1), 4, 3), ((-5, -16, 90, 90), 2, 0), ((5, -21, 90, 90), 2, 1), ((30, 30, -15, -4), 4, 2)],
)
def test_a_slide_ends_far_below_its_best_place_and_nowhere_else(gains, asked, place):
    order = SearchOrder(Landscape(*gains), range(5))
    assert order.move_to_best_place(0) == (place > 0)
    assert order.families.asked == list(range(1, 5))[:asked]
    assert order.columns.index(0) == place


def test_a_search_that_slides_less_far_asks_for_less_evidence():
    asked = []
    for hopeless in (Constants().hopeless, np.inf):
        dag = random_dag(12, degree=2.5, seed=3)
        families = FamilySearch.of(Oracle(dag), Constraints.of(dag.nodes, None), Constants(hopeless=hopeless))
        SearchOrder(families, Random(1).sample(range(12), 12)).climb(Random(1))
        asked.append(len(families.rows) + len(families.ones))
    assert asked[0] < asked[1]


def test_a_climb_prepares_the_first_swaps_of_several_columns(monkeypatch):
    """What was prepared before the first column moved; a climb that prepares nothing ends at the same place."""
    monkeypatch.setattr(order_search, "AHEAD", 2)
    order = SearchOrder(Landscape(-1, -2, -3, -4), range(5))
    first, second = Random(1).sample(range(5), 5)[:2]
    order.climb(Random(1))
    swaps = [(x, y) for x in (first, second) for y in (x - 1, x + 1) if 0 <= y < 5]
    assert order.families.prepared[: 2 * len(swaps)] == [pair for x, y in swaps for pair in ((y, x), (x, y))]
    monkeypatch.setattr(SearchOrder, "_look_ahead", lambda *_: None)
    plain = SearchOrder(Landscape(-1, -2, -3, -4), range(5))
    plain.climb(Random(1))
    assert plain.columns == order.columns


def test_what_was_prepared_is_known_when_it_is_asked_for(monkeypatch):
    """One after the other, so that some of it is known before; what comes before then can bar what was found."""
    asked = []
    for seed in range(4):
        dag = random_dag(8, degree=2.5, seed=seed)
        families = FamilySearch.of(Oracle(dag), Constraints.of(dag.nodes, None), Constants())
        for column in range(8):
            for other in (x for x in range(8) if x != column):
                change = column, bits(x for x in range(column + 2) if x not in (column, other)), other
                families.prepare([change])
                with monkeypatch.context() as patch:
                    patch.setattr(FamilySearch, "remember", lambda _, wanted: asked.append(wanted))
                    families.change(*change)
    assert not asked


def test_best_parents_that_were_forgotten_are_found_again(monkeypatch):
    dag = random_dag(7, degree=2.0, seed=5)
    remembered = decided(Oracle(dag))
    monkeypatch.setattr(family_search, "MOST_REMEMBERED", 3)
    forgotten = decided(Oracle(dag))
    assert forgotten.parents == remembered.parents
    assert np.array_equal(forgotten.probabilities, remembered.probabilities)


def test_other_log_odds_of_an_edge_have_other_parents():
    families = FamilySearch.of(pairwise(3, X1X2=3.0), Constraints.of(names(3), None), Constants())
    before = bits([1, 2])
    assert families.best(0, before)[0] == (1,)
    assert families.shifted(-20.0).best(0, before)[0] == ()


def test_evidence_counts_within_bounds_and_an_edge_has_its_cost():
    """Columns left out of a full set of parents: what they lose in score, and what each parent costs."""
    evidence = pairwise(8, X1X2=50.0, X1X3=51.0, X1X4=52.0, X1X5=53.0, X1X6=40.0, X1X7=6.0, X1X8=-30.0)
    families = FamilySearch.of(evidence, Constraints.of(names(8), None), Constants(max_parents_if_small=4))
    parents, score = families.best(0, bits(range(1, 8)))
    assert parents == (1, 2, 3, 4)
    assert score == pytest.approx(4 * (families.edge_log_odds - 2.0) - 10.0 - 6.0 + 4.0)


def test_an_order_that_knowledge_keeps_from_an_edge_pays_for_it_in_full():
    """X1 may not cause X2: where X1 comes first their dependence is not explained, however strong it is."""
    knowledge = Knowledge(forbidden_arrows=frozenset({("X1", "X2")}))
    for constraints, loss in ((Constraints.of(names(2), knowledge), 50.0), (Constraints.of(names(2), None), 0.0)):
        families = FamilySearch.of(pairwise(2, X1X2=50.0), constraints, Constants())
        parents, score = families.best(1, bits([0]))
        assert score == pytest.approx(len(parents) * (families.edge_log_odds - 2.0) - loss)


def test_a_search_goes_on_from_equivalent_graphs():
    """A climb from a bad order may be stuck; one more from an order of the same class leads on, and never back."""
    gained = []
    for seed in range(6):
        dag = random_dag(9, degree=3.0, seed=seed)
        families = FamilySearch.of(Oracle(dag), Constraints.of(dag.nodes, None), Constants())
        order = best_order(families, Random(seed), [list(reversed(range(9)))])
        before = order.total()
        gained.append(climbed_on(order, families.constraints, Random(seed), 3).total() - before)
    assert min(gained) > -1e-6
    assert max(gained) > 1


def test_equal_orders_are_not_told_apart_by_rounding():
    """Many orders have the same score; evidence off in its last digit must not change what is said."""
    for seed in range(4):
        dag = random_dag(8, degree=2.2, seed=seed)
        plain = decided(Oracle(dag, strength=3.0))
        for jitter in range(2):
            other = decided(Jittered(Oracle(dag, strength=3.0), jitter))
            assert other.parents == plain.parents
            assert other.order == plain.order
            assert other.probabilities == pytest.approx(plain.probabilities, abs=1e-9)


def parents_of_first(evidence):
    families = FamilySearch.of(evidence, Constraints.of(names(30), None), Constants())
    return families.best(0, bits(range(1, 30)))[0]


@pytest.mark.parametrize(("second", "found"), [(2.6, (1, 2)), (2.4, (1,))])
def test_a_parent_enters_if_its_evidence_is_worth_an_edge(second, found):
    """Of 30 columns an edge costs 2.51 = -log(p / (1 - p)), p = 1.2 (29 / 4)^0.3 / 29."""
    assert parents_of_first(pairwise(30, X1X2=10.0, X1X3=second)) == found


class Explained(DependenceEvidence):
    """X1 depends on X2 until X3 is known: X2 speaks loudest, and is needless at last."""

    measured = ~np.eye(4, dtype=bool)

    def one(self, column, other, given):
        return float(self.row(column, given)[other])

    def row(self, column, given):
        row = np.full(4, -10.0)
        if column == 0:
            row[[1, 2]] = (-10.0 if 2 in given else 30.0), 20.0
        row[[column, *given]] = 0
        return row


def test_a_parent_that_another_makes_needless_is_dropped():
    families = FamilySearch.of(Explained(), Constraints.of(names(4), None), Constants())
    assert families.best(0, bits((1, 2, 3)))[0] == (2,)
    assert families.best(0, bits((1, 3)))[0] == (1,)


def test_small_tables_are_searched_from_more_orders():
    assert [number_of_starts(Constants(), columns) for columns in (2, 5, 8, 10, 20, 300)] == [8, 8, 5, 4, 2, 2]
    assert number_of_starts(Constants(effort=0), 5) == 1


@pytest.mark.parametrize(("columns", "others"), [(5, 6), (10, 2), (20, 0)])
def test_an_earlier_search_stands_for_two_starts(monkeypatch, columns, others):
    asked = []
    monkeypatch.setattr(decide_module, "first_orders", lambda families, random, count: asked.append(count) or [])
    families = FamilySearch.of(pairwise(columns, X1X2=9.0), Constraints.of(names(columns), None), Constants())
    decide(families, Random(0), [tuple(range(columns))])
    assert asked == [others]


@pytest.mark.parametrize(("levels", "most"), [(2, 6), (3, 5), (4, 4), (8, 4)])
def test_a_column_has_at_most_six_parents_and_more_than_four_only_if_their_table_is_small(levels, most):
    star = pairwise(9, **{f"X1X{i}": 50.0 + i for i in range(2, 10)})
    star.cells = lambda given: levels ** len(given)
    last = Knowledge.of(forbidden_arrows=[("X1", f"X{i}") for i in range(2, 10)])
    assert decided(star, last).parents[0] == tuple(range(9 - most, 9))  # the strongest
    assert sum(map(len, decided(star).parents)) == 8  # the other way round each has one


def test_required_arrows_outweigh_any_evidence():
    """As loud as a million rows can, the table says that X1 and X2 have nothing to do with each other."""
    decision = decided(pairwise(3, least=-1e6), Knowledge.of(required_arrows=[("X2", "X1")]))
    assert decision.order.index(1) < decision.order.index(0)
    assert decision.parents == ((1,), (), ())


# --- the decision -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "prior"), [(2, 0.0), (5, log(3 / 7)), (49, log(1 / 19))])
@pytest.mark.parametrize("evidence", [-1.0, 0.5, 2.0])
def test_p_of_an_edge_is_prior_odds_times_evidence(size, prior, evidence):
    """1.2 neighbours a column are expected of five columns, 2.4 of many: over columns - 1, and at most a half."""
    found = decided(pairwise(size, X1X2=evidence)).probabilities[0, 1]
    assert found == pytest.approx(1 / (1 + exp(-evidence - prior)), rel=1e-6)


def test_evidence_beyond_measure_is_certainty():
    p = decided(pairwise(3, least=-1e5, X1X2=1e5)).probabilities
    assert (p[0, 1], p[0, 2]) == (1.0, 0.0)


def expected_f1(p, kept):
    return 2 * p[kept].sum() / (len(kept) + p.sum())


def test_edges_are_kept_that_raise_the_expected_f1():
    p = np.array([0.9, 0.6, 0.4, 0.35, 0.2, 0.05])
    best = max(expected_f1(p, np.array(k)) for n in range(1, 7) for k in combinations(range(6), n))
    assert f1_threshold(p) == pytest.approx(best / 2)
    assert f1_threshold(np.array([1.0, 1.0, 0.0, 0.0])) == 0.5
    assert f1_threshold(np.array([1e-3] * 9)) == 0.05
    weak = decided(pairwise(49, X1X2=2.54, X3X4=2.54))  # P = 0.4 each, and keeping both makes the expected F1 0.57
    assert sum(map(len, weak.parents)) == 2
    assert weak.probabilities.max() < 0.41


def test_pairs_left_out_are_separated_by_the_parents_of_the_later_column():
    decision = Decision(((), (0,), (1,), ()), (3, 0, 1, 2), np.full((4, 4), 0.25))
    constraints = Constraints.of("abcd", Knowledge.of(required_edges=["ad"], forbidden_edges=["bd"]))
    skeleton = skeleton_of("abcd", constraints, decision)
    assert skeleton.edges == {frozenset(p) for p in ("ab", "bc", "ad")}
    assert dict(skeleton.separators) == {frozenset("ac"): ("b",), frozenset("cd"): ("b",)}
    found = evidence_of("abcd", constraints, decision, skeleton, decision.probabilities)
    rows = {e.pair: (e.given, e.verdict, e.value) for e in found}
    assert rows["a", "d"] == ((), "kept", 0.25)
    assert rows["a", "c"] == (("b",), "left out", 0.25)
    assert ("b", "d") not in rows


# --- what is bought ---------------------------------------------------------------------------------------------


def price_and_noise(levels, pairs, weights, skew):
    """The price of a first release, and the noise of a pair's covariance, per unit of each other."""
    g = sum((r - 1) / r for r in levels) / len(levels)
    mu, w0, w1, w2 = skew * g, weights[()], weights[0,], weights[pairs[0]]
    return len(pairs) * g**2 * w2**2 + len(levels) * g * w1**2 + w0**2, 1 / w2**2 + 2 * mu / w1**2 + mu**2 / w0**2


@pytest.mark.parametrize("columns", [3, 8, 30])
def test_no_other_weights_buy_less_noise_for_the_price(columns):
    levels, pairs = [2, 3] * columns, list(combinations(range(2 * columns), 2))
    skew = Constants().skew
    weights = first_weights(levels, pairs, skew)
    assert list(weights) == [(), *((a,) for a in range(2 * columns)), *pairs]
    best = prod(price_and_noise(levels, pairs, weights, skew))
    for size in (0, 1):
        for factor in (1 / 1.5, 0.9, 1.1, 1.5):
            other = {u: w * factor if len(u) == size else w for u, w in weights.items()}
            assert prod(price_and_noise(levels, pairs, other, skew)) > best


def test_without_a_pair_there_is_still_something_to_release():
    assert min(first_weights([2, 2], [], 0.4).values()) > 0


def test_noise_of_pairs_is_compared_with_their_sampling_variance():
    """A pair's coordinate has sampling variance rows / (r_a r_b) in a uniform table, and less where levels are rare."""
    sums = {(): np.array(600.0)} | {(a,): np.zeros(r - 1) for a, r in enumerate((2, 3, 3))}
    sums |= {(0, 1): np.zeros((1, 2)), (0, 2): np.zeros((1, 2)), (1, 2): np.zeros((2, 2))}
    variances = dict.fromkeys(sums, 1.0) | {(0, 1): 50.0, (0, 2): 200.0}
    assert noise_over_sampling(Released((2, 3, 3), sums, variances)) == pytest.approx(50.0 * 6 / 600)
    rare = sums | {(0,): np.array([0.8 * 600 / np.sqrt(2)])}  # levels of shares .9 and .1: variance .18 and not .5
    assert noise_over_sampling(Released((2, 3, 3), rare, variances)) == pytest.approx(50.0 * 3 / 0.18 / 600)


def test_noise_to_come_is_that_of_the_release_when_it_comes():
    levels = (2, 3, 4)
    weights = first_weights(levels, list(combinations(range(3), 2)), 0.4)
    singles = {u: w for u, w in weights.items() if len(u) < 2}

    def answers(chosen, cost):
        price = sum(w * w * prod(1 - 1 / levels[a] for a in u) for u, w in chosen.items())
        zeros = {u: np.zeros([levels[a] for a in u]) for u in chosen}
        return {u: (zeros[u] + (900.0 if u == () else 0.0), np.sqrt(price / (2 * cost)) / w) for u, w in chosen.items()}

    margins = Released.nothing(levels).merged(answers(singles, 0.01))
    later = Released.nothing(levels).merged(answers(weights, 0.03))
    assert noise_to_come(margins, singles, weights, 3.0) == pytest.approx(noise_over_sampling(later))


def test_triples_are_two_links_in_a_row_or_parents_with_a_column_that_depends_on_both():
    p = np.zeros((5, 5))
    p[0, 1] = p[1, 0] = 0.25  # may yet be an edge
    p[2, 3] = p[3, 2] = 0.15  # hardly
    decision = Decision(((), (), (1,), (), ()), (0, 1, 2, 3, 4), p)
    nothing = pairwise(5, least=-1.0)
    assert triples(decision, nothing, Constants().maybe) == [(0, 1, 2)]
    assert triples(decision, nothing, maybe=0.4) == []
    parents = Decision(((), (), (0, 1), (), ()), (0, 1, 2, 3, 4), np.zeros((5, 5)))
    both = pairwise(5, least=-1.0, X1X4=2.0, X2X4=2.0, X1X5=2.0)
    assert triples(parents, both, maybe=0.2) == [(0, 1, 2), (0, 1, 3)]
    both.measured[1, 3] = both.measured[3, 1] = False
    assert triples(parents, both, maybe=0.2) == [(0, 1, 2)]


def test_what_is_still_open_is_looked_at_again():
    p = np.zeros((4, 4))
    p[0, 1], p[0, 2], p[1, 2], p[2, 3] = 0.01, 0.5, 0.995, 0.03
    first = first_weights([2] * 4, list(combinations(range(4), 2)), 0.4)
    again = still_open(Decision(((),) * 4, (0, 1, 2, 3), p), first, 0.02)
    assert list(again) == [(), (0,), (2,), (3,), (0, 2), (2, 3)]
    assert again == {u: first[u] for u in again}
    assert still_open(Decision(((),) * 4, (0, 1, 2, 3), np.zeros((4, 4))), first, 0.02) == {}


def test_pairs_that_depend_are_bought_again_at_a_lower_weight_than_what_is_open():
    p = np.zeros((4, 4))
    p[0, 2] = 0.5
    p[0, 1] = 0.999
    first = first_weights([2] * 4, list(combinations(range(4), 2)), 0.4)
    evidence = pairwise(4, least=-1.0, X1X2=9.0, X1X3=9.0, X2X3=0.5)
    decision = Decision(((), (0,), (), ()), (0, 1, 2, 3), p)
    wanted = second_weights(decision, evidence, first, Constants(), noise=9.0)
    assert {u: w for u, w in wanted.items() if len(u) == 2} == {(0, 1): 0.7, (0, 2): 1.0, (1, 2): 0.7}
    assert [u for u in wanted if len(u) < 2] == [(), (0,), (2,)]  # those of what is open; others are known well enough


@pytest.mark.parametrize(("noise", "wide", "weight"), [(1.1, 4, 1.0), (0.9, 4, 0.7), (1.1, 5, 0.7)])
def test_pairs_are_bought_again_at_full_weight_in_a_wide_table_whose_pairs_are_noisy(noise, wide, weight):
    first = first_weights([2] * 4, list(combinations(range(4), 2)), 0.4)
    evidence = pairwise(4, least=-1.0, X1X2=9.0)
    decision = Decision(((), (0,), (), ()), (0, 1, 2, 3), np.zeros((4, 4)))
    assert second_weights(decision, evidence, first, Constants(wide=wide), noise)[0, 1] == weight


def test_the_second_release_is_told_the_noise_of_the_first(monkeypatch):
    noises, told, measured = [], [], release.noise_over_sampling
    monkeypatch.setattr(release_plan, "noise_over_sampling", lambda given: noises.append(measured(given)) or noises[-1])
    monkeypatch.setattr(release_plan, "second_weights", lambda *given: told.append(given[4]) or second_weights(*given))
    world = networks.load("sachs")
    MeasureOnce().fit(Curator(world.sample(50_000, seed=1), world.schema, budget=Budget(epsilon=1, delta=1e-10)))
    assert told
    assert set(told) <= set(noises)


def test_more_neighbours_are_expected_in_a_wider_table():
    constants = Constants()
    assert [constants.expected_neighbours(d) for d in (2, 5)] == [1.2, 1.2]
    assert constants.expected_neighbours(9) == pytest.approx(1.2 * 2**0.3)
    assert constants.expected_neighbours(41) < constants.expected_neighbours(42) == 2.4


# --- the whole, on answers that do not depend on the room ---------------------------------------------------------


class Numbers:
    """A queryable over codes drawn here: contrasts by the book, Gaussian noise from NumPy."""

    def __init__(self, seed, rows, rho):
        self.random = np.random.default_rng(seed)
        self.codes, levels = world(self.random, rows)
        self.schema = Schema(tuple(Categorical(f"X{i + 1}", tuple(range(r))) for i, r in enumerate(levels)))
        self.remaining, self.asked = rho, []
        self.budget = Budget(rho=1.0)

    def ask(self, release):
        query, noise = release.statistic, release.noise
        self.asked.append((query, noise))
        self.remaining -= noise.rho
        sizes = {c.name: c.size for c in self.schema.columns}
        places = [[self.schema.names.index(n) for n in u] for u in query.sets]
        price = sum(w * w * prod(1 - 1 / sizes[n] for n in u) for u, w in zip(query.sets, query.weights, strict=True))
        scales = tuple(np.sqrt(price / (2 * noise.rho)) / w for w in query.weights)
        parts = tuple(self.contrast(u) for u in places)
        return Answer(
            tuple(p + s * self.random.normal(size=p.shape) for p, s in zip(parts, scales, strict=True)), scales
        )

    def spread(self, name):
        """The geometric mean of the variances of a column's coordinates."""
        column = self.codes[:, self.schema.names.index(name)]
        p = np.bincount(column, minlength=self.schema[name].size) / len(column)
        around = helmert(len(p)) - p @ helmert(len(p))
        return np.exp(np.log(np.linalg.eigvalsh(around.T @ (p[:, None] * around))).mean())

    def contrast(self, columns):
        sizes = [self.schema.columns[a].size for a in columns]
        flat = np.ravel_multi_index(self.codes[:, columns].T, sizes) if columns else np.zeros(len(self.codes), int)
        table = np.bincount(flat, minlength=prod(sizes)).reshape(sizes).astype(float)
        for axis, r in enumerate(sizes):
            table = table - table.sum(axis=axis, keepdims=True) / r
        return table


PARENTS = {0: (), 1: (0,), 2: (0,), 3: (1, 2), 4: (3,), 5: (), 6: (4, 5)}


def world(random, rows):
    """Seven columns, the arrows of PARENTS, random tables."""
    levels = (2, 3, 2, 3, 2, 4, 2)
    codes = np.zeros((rows, 7), dtype=int)
    for y, parents in PARENTS.items():
        shape = [levels[x] for x in parents]
        tables = random.dirichlet([0.8] * levels[y], size=shape).reshape(*shape, levels[y])
        p = tables[tuple(codes[:, x] for x in parents)]
        codes[:, y] = (random.random(rows)[:, None] > np.cumsum(np.broadcast_to(p, (rows, levels[y])), axis=1)).sum(1)
    return np.minimum(codes, np.array(levels) - 1), levels


def said(door, constants=None):
    learned = MeasureOnce(constants=constants or Constants()).fit(door)
    return np.array([learned.linked[frozenset(p)] for p in combinations(door.schema.names, 2)])


def test_half_of_the_budget_is_kept_for_later_releases():
    for rho, triple, later in ((1e-5, False, [0.5]), (0.02, True, [0.35, 0.15])):
        door = Numbers(1, 20_000, rho)
        MeasureOnce(constants=Constants(effort=0)).fit(door)
        assert [noise.rho for _, noise in door.asked] == pytest.approx([rho * share for share in (0.5, *later)])
        assert any(len(u) == 3 for u in door.asked[1][0].sets) == triple
    door = Numbers(1, 100, 1e9)
    MeasureOnce(constants=Constants(effort=0)).fit(door)
    assert [noise.rho for _, noise in door.asked] == [5e3, 2.5e3, 2.5e3]  # of 100 rows no family can be told
    assert door.asked[2][0] == door.asked[1][0]


@pytest.mark.parametrize(("ratio", "triple"), [(1.6, True), (2.5, False)])
def test_triples_are_bought_as_soon_as_the_noise_of_pairs_is_small_enough(ratio, triple):
    """The ratio had all the budget gone to pairs; rho is set so that it is the one asked for. Of 20,000 rows the
    sampling variance is half of what a regression may miss, so that 2 is the limit."""
    probe = Numbers(2, 20_000, 0.01)
    MeasureOnce(constants=Constants(effort=0)).fit(probe)
    query = probe.asked[0][0]
    price = sum(
        w * w * prod(1 - 1 / probe.schema[n].size for n in u) for u, w in zip(query.sets, query.weights, strict=True)
    )
    spread = {name: probe.spread(name) for name in probe.schema.names}
    typical = np.median([1 / prod(spread[n] for n in u) for u in query.sets if len(u) == 2])
    door = Numbers(2, 20_000, price * typical / (2 * 20_000 * ratio))
    MeasureOnce(constants=Constants(effort=0)).fit(door)
    assert any(len(u) == 3 for u in door.asked[1][0].sets) == triple


SAID = {
    (3, 20_000, 3e-4): "78 979 88 96 172 424 70 979 93 57 120 176 107 130 84 979 20 25 157 39 979",
    (3, 20_000, 0.01): "906 979 15 30 18 23 23 979 9 2 11 854 35 24 23 979 1 4 15 15 979",
    (5, 20_000, 0.01): "979 979 14 38 5 61 0 979 5 0 7 979 45 3 171 979 1 9 2 979 979",
}
"""Thousandths of P(linked) for each pair: the same numbers in, the same probabilities out.

Whoever changes the method on purpose puts the new ones here, with a reason from random worlds.
"""


@pytest.mark.parametrize("case", SAID, ids=str)
def test_the_same_answers_give_the_same_probabilities(case):
    door = Numbers(*case)
    assert 1000 * said(door) == pytest.approx(np.array(SAID[case].split(), dtype=float), abs=1)

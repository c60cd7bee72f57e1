"""P(this way round): what colliders decide, what nothing decides, and what knowledge decides."""

from __future__ import annotations

from itertools import combinations, permutations
from math import exp
from random import Random

import numpy as np
import pytest

from dpcurate import Knowledge
from dpcurate.graphs.orient import dag_to_cpdag
from dpcurate.learn.measure_once.arrows import Directions, unshielded
from dpcurate.learn.measure_once.confidence import MOST_LOG_ODDS, WRONG_TRIPLES, compelled_arrows, drawn_times, ways
from dpcurate.learn.measure_once.constraints import Constraints
from dpcurate.networks.worlds import random_dag


def directions(size, edges, log_odds, knowledge=None):
    adjacent = np.zeros((size, size), dtype=bool)
    for a, b in edges:
        adjacent[a, b] = adjacent[b, a] = True
    return Directions(adjacent, log_odds, Constraints.of([f"c{i}" for i in range(size)], knowledge))


def drawn_ways(found, order, seed):
    return ways(found, drawn_times(found, order, Random(seed))[0])


def mean_ways(found, order, runs=40):
    return np.mean([drawn_ways(found, order, seed) for seed in range(runs)], axis=0)


@pytest.mark.parametrize("seed", range(40))
def test_the_arrows_of_a_class_are_those_of_its_cpdag(seed):
    dag = random_dag(4 + seed % 9, degree=1.0 + seed % 4 * 0.6, seed=seed)
    place = {name: i for i, name in enumerate(dag.nodes)}
    parents = [{place[p] for p in dag.parents(name)} for name in dag.nodes]
    found = compelled_arrows([place[name] for name in dag.order()], parents)
    assert found == {(place[a], place[b]) for a, b in dag_to_cpdag(dag).arrows}


def test_an_edge_that_nothing_decides_is_a_half_however_the_columns_are_ordered():
    chain = directions(5, [(0, 1), (1, 2), (2, 3), (3, 4)], {(0, 1, 2): -50.0, (1, 2, 3): -50.0, (2, 3, 4): -50.0})
    assert mean_ways(chain, range(5)) == pytest.approx(np.full((5, 5), 0.5), abs=0.02)


@pytest.mark.parametrize("log_odds", [-1.0, 0.0, 1.0, 3.0])
def test_a_triple_is_a_collider_as_often_as_its_odds_say(log_odds):
    """One order in three puts the middle last; evidence multiplies its odds."""
    found = mean_ways(directions(3, [(0, 2), (1, 2)], {(0, 2, 1): log_odds}), range(3))
    share = (1 - WRONG_TRIPLES) * exp(log_odds) / (exp(log_odds) + 2)
    assert found[0, 2] == pytest.approx(0.5 + share / 2, abs=0.03)
    assert found + found.T == pytest.approx(1.0)


def test_no_triple_is_surer_than_the_most():
    capped, huge = (mean_ways(directions(3, [(0, 2), (1, 2)], {(0, 2, 1): x}), range(3)) for x in (MOST_LOG_ODDS, 1e6))
    assert (capped == huge).all()
    assert 0.95 < huge[0, 2] < 1 - WRONG_TRIPLES / 2


def test_knowledge_directs_an_edge_and_what_follows_from_it():
    """c0 -> c1 is known; c1 is no collider, so c1 -> c2 as well."""
    known = Knowledge.of(forbidden_arrows=[("c1", "c0")])
    found = mean_ways(directions(3, [(0, 1), (1, 2)], {(0, 1, 2): -1e3}, known), range(3))
    assert (found[0, 1], found[1, 0]) == (1.0, 0.0)
    assert found[1, 2] > 0.9


def test_columns_without_edges_are_a_half():
    assert (drawn_ways(directions(4, [], {}), range(4), 0) == 0.5).all()


def contradicting(size, seed, share=0.4, most=MOST_LOG_ODDS):
    """Edges at random, and triples that say this or that at random, so that no order pleases all of them."""
    random = Random(seed)
    edges = [pair for pair in combinations(range(size), 2) if random.random() < share]
    triples = unshielded(directions(size, edges, {}).adjacent, np.ones((size, size), dtype=bool))
    return directions(size, edges, {triple: random.choice([-most, most]) for triple in triples})


def of_all_orders(found):
    """The same by going through all orders of a few columns."""
    total, weight = np.zeros(found.adjacent.shape), 0.0
    for order in permutations(range(found.columns)):
        before = {y: set(order[:place]) for place, y in enumerate(order)}
        parents = [before[y] & set(np.flatnonzero(near).tolist()) for y, near in enumerate(found.adjacent)]
        colliders = ((a, y, b) for y, some in enumerate(parents) for a, b in combinations(sorted(some), 2))
        odds = exp(sum(found.log_odds.get(triple, 0.0) for triple in colliders))
        weight += odds
        for arrow in compelled_arrows(order, parents):
            total[arrow] += odds
    return 0.5 + (1 - WRONG_TRIPLES) * (total - total.T) / (2 * weight)


@pytest.mark.parametrize("seed", range(6))
def test_draws_are_as_frequent_as_all_orders_together_have_it(seed):
    found = contradicting(6, seed, most=2.0)
    assert mean_ways(found, range(6)) == pytest.approx(of_all_orders(found), abs=0.04)


@pytest.mark.parametrize(("size", "seed"), [(10, 1), (12, 0), (12, 4)])
def test_it_does_not_matter_where_the_walk_begins(size, seed):
    """In each of these a walk by itself stays in the region where it began: a deviation of .23 and more."""
    found = contradicting(size, seed)
    begun = [drawn_ways(found, Random(start).sample(range(size), size), start) for start in range(6)]
    assert np.std(begun, axis=0).max() < 0.15


def score_of(found, order):
    """The log odds of all colliders that an order makes."""
    before = {y: sum(1 << x for x in order[:place]) for place, y in enumerate(order)}
    return sum(found.best(y, before[y])[1] for y in order)


def test_the_likeliest_order_seen_is_the_best_of_all():
    """The walk begins at the worst of them."""
    found = contradicting(6, 3, most=2.0)
    scores = {order: score_of(found, order) for order in permutations(range(6))}
    worst, best = min(scores, key=scores.__getitem__), max(scores.values())
    _, likeliest = drawn_times(found, worst, Random(0))
    reached = score_of(found, sorted(range(6), key=likeliest.__getitem__))
    assert scores[worst] < best == pytest.approx(reached)

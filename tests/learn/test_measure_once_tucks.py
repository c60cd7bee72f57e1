"""Tucks: which columns move, and orders that slides of single columns do not reach."""

from __future__ import annotations

from random import Random

import pytest

from dpcurate.learn.measure_once.blocks import members_of
from dpcurate.learn.measure_once.order_search import BestParents, Order, best_order
from dpcurate.learn.measure_once.tucks import MOST_LOST, WORTH, tucked, tucked_on
from dpcurate.networks.worlds import random_dag

A_PARENT = 3.0


class Sparse(BestParents):
    """Parents by d-separation in a known graph: the fewer an order needs, the better."""

    def __init__(self, dag):
        self.dag, self.known = dag, {}

    @property
    def columns(self):
        return len(self.dag.nodes)

    def best(self, column, before):
        if (column, before) not in self.known:
            names, mine = self.dag.nodes, self.dag.nodes[column]
            earlier = [name for name, there in zip(names, members_of(before, self.columns), strict=True) if there]
            joined = [x for x in earlier if not self.dag.d_separated(x, mine, [y for y in earlier if y != x])]
            parents = tuple(names.index(x) for x in joined)
            self.known[column, before] = parents, -A_PARENT * len(parents)
        return self.known[column, before]

    def change(self, column, before, other):
        return self.best(column, before | 1 << other)[1] - self.best(column, before)[1]


def test_an_effect_passes_its_cause_with_those_of_its_ancestors_that_come_between():
    parents = ((), (0,), (), (1,), (0, 3), ())  # 0 -> 1 -> 3 -> 4, 0 -> 4
    assert tucked([5, 0, 2, 1, 3, 4], parents, 0, 4) == [5, 1, 3, 4, 0, 2]
    assert tucked([5, 0, 2, 1, 3, 4], parents, 0, 1) == [5, 1, 0, 2, 3, 4]
    assert tucked([0, 1, 3, 4, 2, 5], parents, 3, 4) == [0, 1, 4, 3, 2, 5]


def test_tucks_find_the_sparsest_graph_where_slides_are_stuck():
    stuck = freed = 0
    for seed in range(40):
        dag = random_dag(7, degree=3.0, seed=seed)
        slid = best_order(Sparse(dag), Random(seed), [Random(seed).sample(range(7), 7)])
        found = tucked_on(Order(slid.families, slid.columns), Random(seed))
        assert found.total() >= slid.total()
        stuck += slid.total() < -A_PARENT * len(dag.arrows)
        freed += slid.total() < found.total() == -A_PARENT * len(dag.arrows)
    assert stuck >= 8
    assert freed >= 0.8 * stuck


@pytest.mark.parametrize(("gain", "kept"), [(WORTH / 2, False), (2 * WORTH, True)])
def test_a_gain_within_the_noise_of_scores_is_not_followed(gain, kept):
    families = TwoOrders(gain)
    assert (tucked_on(Order(families, [0, 1]), Random(0)).columns == [1, 0]) == kept


class TwoOrders(BestParents):
    """Two columns, of which the second is better placed first."""

    def __init__(self, gain):
        self.gain = gain

    @property
    def columns(self):
        return 2

    def best(self, column, before):
        return ((1 - column,), self.gain if column == 0 else 0.0) if before else ((), 0.0)

    def change(self, column, before, other):
        return 0.0  # what slides see: nothing to gain


def test_what_costs_too_much_at_once_is_not_tried():
    tried = []

    class Watched(TwoOrders):
        def change(self, column, before, other):
            tried.append(column)
            return 0.0

    tucked_on(Order(Watched(-MOST_LOST - 1), [0, 1]), Random(0))
    assert not tried
    tucked_on(Order(Watched(-MOST_LOST + 1), [0, 1]), Random(0))
    assert tried

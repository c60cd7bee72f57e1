"""One release that is planned from public facts alone."""

from __future__ import annotations

import pytest

from dpcurate import Budget, Curator, Knowledge, networks
from dpcurate.errors import QueryError
from dpcurate.graphs.metrics import skeleton_rates
from dpcurate.learn import methods
from dpcurate.learn.measure_once import MeasureOnce
from dpcurate.queries import Contrasts, Release

ASIA = networks.load("asia")
PLANNED = MeasureOnce(releases="planned")


class Noting:
    """A queryable that notes what it is asked."""

    def __init__(self, inner):
        self._inner, self.asked = inner, []

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def ask(self, query):
        self.asked.append(query)
        return self._inner.ask(query)


def asked(knowledge=None, epsilon=1.0):
    table = ASIA.sample(20_000, seed=1)
    noting = Noting(Curator(table, ASIA.schema, budget=Budget(epsilon=epsilon, delta=1e-10), insecure_seed=1))
    return PLANNED.fit(noting, knowledge), noting


def test_all_of_the_budget_goes_to_one_release_of_pairs_and_triples():
    found, noting = asked()
    (release,) = noting.asked
    assert isinstance(release, Release)
    assert isinstance(release.statistic, Contrasts)
    sizes = [len(one) for one in release.statistic.sets]
    assert (sizes.count(0), sizes.count(1), sizes.count(2), sizes.count(3)) == (1, 8, 28, 56)
    weights = dict(zip(release.statistic.sets, release.statistic.weights, strict=True))
    assert weights["asia", "tub"] > weights["asia", "tub", "smoke"] > 0
    assert noting.remaining == pytest.approx(0, abs=1e-12)
    assert skeleton_rates(found.graph, ASIA.dag).f1 > 0.8


def test_triples_of_pairs_that_cannot_be_linked_are_left_out():
    _, noting = asked(Knowledge.of(forbidden_edges=[("asia", "smoke")]))
    sets = noting.asked[0].statistic.sets
    assert not any({"asia", "smoke"} <= set(one) for one in sets)
    assert len([one for one in sets if len(one) == 3]) == 56 - 6


def test_other_words_are_refused():
    with pytest.raises(QueryError, match="'adaptive' or 'planned'"):
        MeasureOnce(releases="once")
    assert methods.with_settings(methods.get("auto"), ["releases=planned"]) == PLANNED
    with pytest.raises(QueryError, match="'adaptive' or 'planned'"):
        methods.with_settings(methods.get("auto"), ["releases=twice"])

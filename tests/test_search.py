"""One loop, every judge: with an oracle for a door each returns the true class."""

from __future__ import annotations

from itertools import combinations

import pytest

from dpcurate import Budget, Curator, networks
from dpcurate.errors import BudgetExceeded, GraphError, RequestError
from dpcurate.graphs.graph import Dag
from dpcurate.graphs.knowledge import Knowledge
from dpcurate.learn.judges import ExactJudge
from dpcurate.learn.methods import EMPC, PC, SVTPC, CuratePC, PrivPC, published_reach
from dpcurate.learn.oracle import OracleDoor
from dpcurate.learn.skeleton import search
from dpcurate.networks.worlds import random_dag
from dpcurate.requests import Counts, Exact, Release

EVERY = {
    "PC": PC(test="kendall-proved"),
    "PC sequential": PC(test="kendall-published", style="sequential"),
    "EM-PC": EMPC(),
    "SVT-PC": SVTPC(),
    "Priv-PC": PrivPC(rate=0.5),
    "CURATE": CuratePC(),
    "CURATE sampled": CuratePC(rate=0.5),
    "CURATE on p-values": CuratePC(statistic="kendall-p"),
    "EM-PC published": EMPC(variant="published"),
    "SVT-PC published": SVTPC(variant="published"),
    "Priv-PC published": PrivPC(variant="published", rate=0.5),
    "CURATE published": CuratePC(variant="published"),
}
DAGS = [random_dag(2 + seed % 14, degree=min(1 + seed % 14, 2.4), seed=seed) for seed in range(200)]


@pytest.mark.parametrize("name", EVERY)
def test_noiseless_answers_give_the_true_class(name):
    # The published EM-PC may not delete all edges of a node at once, so small graphs are beyond it.
    dags = [d for d in DAGS if len(d.nodes) <= 9] if name.startswith("EM") else DAGS
    for dag in dags:
        assert EVERY[name].fit(OracleDoor(dag)).graph == dag.cpdag()


def test_pc_stable_does_not_depend_on_the_order_of_columns():
    network = networks.load("asia")
    table = network.sample(3000, seed=5)
    names = list(table)
    graphs = set()
    for turn in range(4):
        turned = names[turn * 2 :] + names[: turn * 2]
        schema = {n: network.schema[n].levels for n in turned}
        found = PC().fit(Curator({n: table[n] for n in turned}, schema, budget=Budget.unlimited()))
        graphs.add((found.graph.arrows, found.graph.lines))
    assert len(graphs) == 1


class Watching(OracleDoor):
    """An oracle that remembers what it was asked."""

    def __init__(self, dag):
        super().__init__(dag)
        self.pairs = []

    def _value(self, statistic):
        self.pairs.append((frozenset((statistic.x, statistic.y)), statistic.given))
        return super()._value(statistic)


@pytest.mark.parametrize("method", [PC(test="kendall-proved"), EMPC(), SVTPC(), PrivPC(), CuratePC()], ids=str)
def test_knowledge_is_enforced_and_saves_questions(method):
    dag = Dag.of("abcd", [("a", "b"), ("b", "c"), ("c", "d")])
    knowledge = Knowledge.of(forbidden_edges=[("a", "b")], required_edges=[("a", "d")], required_arrows=[("c", "d")])
    door = Watching(dag)
    found = method.fit(door, knowledge)
    asked = {pair for pair, _ in door.pairs}
    assert frozenset("ab") not in asked
    assert frozenset("ad") not in asked
    assert frozenset("cd") not in asked
    assert frozenset("ab") not in found.skeleton.edges
    assert frozenset("ad") in found.skeleton.edges
    assert ("c", "d") in found.graph.arrows
    with pytest.raises(GraphError):
        method.fit(door, Knowledge.of(forbidden_edges=[("a", "nobody")]))


def test_the_order_can_be_limited_and_is_reported():
    dag = random_dag(10, degree=4, seed=3)
    full, flat = (PC(test="kendall-proved", max_order=m).fit(OracleDoor(dag)) for m in (None, 0))
    assert len(flat.tests) == 1
    assert flat.tests[0] == 45
    assert full.tests[0] == 45
    assert len(full.tests) > 1
    assert len(full.evidence) == sum(full.tests)
    assert full.evidence[0].verdict in ("cut", "kept")
    assert flat.unfinished == {}
    separated = [e for e in full.evidence if e.verdict == "cut"]
    assert {frozenset(e.pair) for e in separated} == {frozenset(p) for p in combinations(dag.nodes, 2)} - dag.edges


class Poor(OracleDoor):
    """An oracle whose budget ends after so many answers."""

    def __init__(self, dag, answers):
        super().__init__(dag)
        self.answers = answers

    def ask(self, request):
        self.answers -= 1
        if self.answers < 0:
            raise BudgetExceeded("no more")
        return super().ask(request)


@pytest.mark.parametrize("answers", [0, 1, 7, 45, 50])
def test_when_the_budget_ends_the_graph_so_far_is_returned_and_said(answers):
    dag = random_dag(10, degree=2, seed=1)
    found = CuratePC().fit(Poor(dag, answers))
    assert len(found.evidence) == answers
    ((order, left),) = found.unfinished.items()
    assert order == (0 if answers < 45 else 1)
    assert left
    assert all(pair in found.skeleton.edges for pair in left)
    if answers < 45:
        assert len(left) == 45 - answers
    assert f"the budget ended at order {order}: {len(left)} edge(s)" in found.notes[0]


def test_two_columns_are_enough_and_one_is_not():
    pair = Dag.of("ab", [("a", "b")])
    for method in (PC(test="kendall-proved"), EMPC(), SVTPC(), PrivPC(), CuratePC()):
        assert method.fit(OracleDoor(pair)).skeleton.edges == {frozenset("ab")}
    with pytest.raises(RequestError, match="at least two columns"):
        CuratePC().fit(OracleDoor(Dag.of("a")))


def test_wrong_settings_are_refused():
    for make in (
        lambda: PC(test="t"),
        lambda: CuratePC(variant="improved"),
        lambda: SVTPC(threshold=0.7),
    ):
        with pytest.raises(RequestError):
            make()
    with pytest.raises(RequestError, match="tests of independence only"):
        OracleDoor(Dag.of("ab")).ask(Release(Counts(("a",)), Exact()))


def test_the_published_reach():
    assert published_reach(100_000, 20) == 11
    assert published_reach(100_000, 5) == 3
    assert published_reach(10, 5) == 0


def test_a_search_ends_when_its_judge_says_so():
    dag = random_dag(6, degree=2, seed=1)

    class Idle(ExactJudge):
        def begin(self, order, board):
            return order < 1

    found = search(dag.nodes, Idle(OracleDoor(dag), "kendall-proved", 0.05))
    assert len(found.tests) == 1
    assert set(found.unfinished) == {1}

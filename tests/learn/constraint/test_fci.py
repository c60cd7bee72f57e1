"""FCI with a d-separation oracle: the true PAG, what it says when it is stopped, and every recipe's form of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

import pytest

from dpcurate import networks
from dpcurate.errors import QueryError
from dpcurate.graphs.graph import Dag
from dpcurate.graphs.knowledge import Knowledge
from dpcurate.graphs.pag import Pag
from dpcurate.learn.constraint.fci import possible_d_sep
from dpcurate.learn.constraint.pc_search import PairQuestion, WorkingGraph, search_in
from dpcurate.learn.methods import EMPC, PC, SVTPC, CuratePC, Noleaks, PrivPC, with_hidden
from dpcurate.networks.interventions import ancestors, true_pag
from dpcurate.result.fit import Evidence
from oracle import OracleQueryable

EXACT = PC(test="kendall-proved", latent=True)
PRIVATE = [kind(statistic="tau", latent=True) for kind in (EMPC, SVTPC, PrivPC, CuratePC)]


def world(seed: int, visible: int, hidden: int, selected: int = 0) -> tuple[Dag, list[str], list[str]]:
    """A random DAG; hidden are those with most children, selected those with most parents."""
    random, total = Random(seed), visible + hidden + selected
    dag = networks.random_dag(total, edges=round(1.3 * total), seed=seed)
    left = sorted(dag.nodes, key=lambda n: (-sum(a == n for a, _ in dag.arrows), random.random()))
    unseen, left = left[:hidden], left[hidden:]
    return dag, unseen, sorted(left, key=lambda n: -len(dag.parents(n)))[:selected]


@pytest.mark.parametrize("seed", range(20))
def test_the_oracle_gives_the_true_pag(seed: int) -> None:
    dag, hidden, _ = world(seed, 4 + seed % 9, 1 + seed % 3)
    assert EXACT.fit(OracleQueryable(dag, hidden)).graph == true_pag(dag, hidden)


@pytest.mark.parametrize("seed", range(20))
def test_the_same_where_rows_were_selected(seed: int) -> None:
    dag, hidden, selected = world(seed, 4 + seed % 9, 1, 1 + seed % 2)
    method = PC(test="kendall-proved", latent=True, rows="selected")
    assert method.fit(OracleQueryable(dag, hidden, selected)).graph == true_pag(dag, hidden, selected)


def test_a_separating_set_beyond_the_neighbours_is_found() -> None:
    hidden = {"g": "ae", "h": "de", "i": "cf"}
    arrows = [(cause, effect) for cause, effects in hidden.items() for effect in effects]
    dag = Dag.of("ghiabcdef", [*arrows, *(tuple(pair) for pair in ("ab", "ac", "ae", "bc", "be", "cd", "ef"))])  # type: ignore[misc]
    near = PC(test="kendall-proved", latent=True, sets="neighbours").fit(OracleQueryable(dag, hidden)).graph
    far = EXACT.fit(OracleQueryable(dag, hidden))
    assert near.edges - far.graph.edges == {frozenset("df")}
    assert far.graph == true_pag(dag, hidden)
    assert far.skeleton.separator("d", "f") is not None


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("order", [0, 1, 2])
def test_stopped_after_any_order_it_says_nothing_false(seed: int, order: int) -> None:
    dag, hidden, _ = world(seed, 9, 2)
    found = PC(test="kendall-proved", latent=True, max_order=order).fit(OracleQueryable(dag, hidden)).graph
    assert isinstance(found, Pag)
    above = ancestors(dag)
    assert found.edges >= true_pag(dag, hidden).edges
    for (a, b), mark in found.marks.items():
        assert mark == "circle" or (mark == "tail") == (b in above[a])


@pytest.mark.parametrize("method", PRIVATE, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("seed", range(4))
def test_every_recipe_returns_what_exact_fci_does(method: CuratePC, seed: int) -> None:
    dag, hidden, _ = world(seed, 7, 2)
    exact = PC(test="kendall-proved", latent=True, sets="neighbours").fit(OracleQueryable(dag, hidden))
    assert method.fit(OracleQueryable(dag, hidden)).graph == exact.graph


def test_two_that_do_not_cause_each_other_are_tested_and_may_be_confounded() -> None:
    dag = Dag.of("hab", [("h", "a"), ("h", "b")])
    known = Knowledge.of(forbidden_arrows=[("a", "b"), ("b", "a")])
    assert EXACT.fit(OracleQueryable(dag, "h"), known).graph == Pag.of("ab", [("a", "<->", "b")])
    apart = Knowledge.of(forbidden_edges=["ab"])
    assert EXACT.fit(OracleQueryable(dag, "h"), apart).graph == Pag.of("ab")


def test_possible_d_sep_lies_between_the_ends_and_may_cause_one() -> None:
    # A triangle of a, b and c with arrowheads at b and c, from e and d, which hang on one edge each.
    dag = Dag.of("ghabcde", [("a", "b"), ("a", "c"), ("g", "b"), ("g", "c"), ("h", "c"), ("h", "d"), ("e", "b")])
    skeleton = PC(test="kendall-proved").fit(OracleQueryable(dag, "gh")).skeleton
    assert skeleton.edges == {frozenset(pair) for pair in ("ab", "ac", "bc", "cd", "be")}
    sets = possible_d_sep(skeleton)
    assert sets["a", "b"] == {"b"}  # c has arrowheads on all sides
    assert sets["b", "c"] == {"a", "c"}
    assert sets["c", "d"] == {"d"}  # nothing else lies between


class CutGivenBoth:
    """An edge test that finds independence given x and y, and notes what it was asked."""

    scope, growth = "test", 1

    def __init__(self) -> None:
        self.evidence: list[Evidence] = []
        self.asked: list[tuple[str, ...]] = []

    def begin(self, *_: object) -> bool:
        return True

    def decide(self, tests: Sequence[PairQuestion], _: WorkingGraph) -> Iterator[tuple[PairQuestion, bool]]:
        for test in tests:
            self.asked.append(test.given)
            yield test, set(test.given) == {"x", "y"}

    def end(self, *_: object) -> None:
        """Nothing is owed."""


def test_a_set_of_which_each_part_has_been_tried_is_tried_and_those_are_not_again() -> None:
    around = {"a": {"b", "x", "z"}, "b": {"a", "y"}, "x": {"a"}, "y": {"b"}, "z": {"a"}}
    fixed = frozenset(map(frozenset, ("ax", "az", "by")))
    graph, edge_test = WorkingGraph(tuple("abxyz"), around, fixed), CutGivenBoth()
    graph.widen({("a", "b"): {"x", "y"}, ("b", "a"): {"x", "y"}})  # z, a neighbour, cannot be needed
    search_in(graph, edge_test, min_order=1)
    assert edge_test.asked == [("x", "y")]
    assert not graph.joined("a", "b")


def test_options_without_a_use_are_refused() -> None:
    with pytest.raises(QueryError, match="say latent=True too"):
        PC(sets="neighbours")
    with pytest.raises(QueryError, match="say latent=True too"):
        CuratePC(rows="selected")
    with pytest.raises(QueryError, match="sets must be one of"):
        PC(latent=True, sets="far")  # type: ignore[arg-type]
    with pytest.raises(QueryError, match=r"Noleaks has no form for hidden causes.*curate-pc"):
        with_hidden(Noleaks())
    assert with_hidden("curate-pc") == CuratePC(max_order=2, latent=True)

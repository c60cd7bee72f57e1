"""The PAG as a value, its rules under contradiction, background knowledge, and its metrics."""

from __future__ import annotations

import pickle
from itertools import permutations

import pytest

from dpcurate.errors import GraphError
from dpcurate.graphs.graph import Cpdag, Dag, Skeleton
from dpcurate.graphs.interop import from_networkx
from dpcurate.graphs.knowledge import Knowledge
from dpcurate.graphs.metrics import Rates, score
from dpcurate.graphs.pag import Pag
from dpcurate.graphs.pag_orientation import orient_pag

EDGES = [("a", "->", "b"), ("b", "<->", "c"), ("d", "o->", "a"), ("c", "o-o", "d"), ("d", "--o", "b")]
PAG = Pag.of("dcab", EDGES)


def test_marks_are_read_from_either_end() -> None:
    assert PAG.mark("a", "b") == "arrow"
    assert PAG.mark("b", "a") == "tail"
    assert PAG.mark("a", "c") is None
    assert [PAG.sign(a, b) for a, b in ("ab", "ba", "ad", "bd", "db", "ac")] == ["->", "<-", "<-o", "o--", "--o", ""]
    assert PAG.arrows == {("a", "b")}
    assert PAG.confounded == {frozenset("bc")}
    assert len(PAG.lines) == 4
    assert PAG.neighbours("b") == ("d", "c", "a")


def test_it_is_a_value() -> None:
    again = Pag.of("dcab", [(b, s[::-1].translate(str.maketrans("<>", "><")), a) for a, s, b in EDGES])
    assert again == PAG == pickle.loads(pickle.dumps(PAG)) == from_networkx(PAG.to_networkx())
    assert hash(again) == hash(PAG)
    assert Pag.of("dcba", EDGES) != PAG
    assert str(PAG) == "Pag of 4 nodes: d o-o c, d o-> a, c <-> b, a -> b, b o-- d"


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([("a", "->", "b"), ("b", "->", "c"), ("c", "->", "a")], "form a cycle"),
        ([("a", "->", "b"), ("b", "->", "c"), ("c", "<->", "a")], "the arrowhead at 'a' of their edge"),
        ([("a", "=>", "b")], "is written ->, <->"),
        ([("a", "->", "x")], "unknown node 'x'"),
        ([("a", "->", "a")], "two different nodes"),
        ([("a", "->", "b"), ("b", "o->", "a")], "a second edge"),
    ],
)
def test_what_cannot_be_is_refused(edges: list[tuple[str, str, str]], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        Pag.of("abc", edges)
    with pytest.raises(GraphError, match="a mark at 'b' and none at 'a'"):
        Pag(("a", "b"), {("a", "b"): "tail"})


def test_a_pair_that_was_never_tested_decides_nothing() -> None:
    skeleton = Skeleton.of("abc", ["ac", "bc"])
    assert orient_pag(skeleton) == Pag.of("abc", [("a", "o-o", "c"), ("b", "o-o", "c")])
    tested = Skeleton.of("abc", ["ac", "bc"], {frozenset("ab"): ()})
    assert orient_pag(tested) == Pag.of("abc", [("a", "o->", "c"), ("b", "o->", "c")])


def test_contradicting_colliders_leave_circles_whatever_the_order() -> None:
    # a and b meet in m, c and d meet in m, but m separates a from c.
    apart = {frozenset("ab"): (), frozenset("cd"): (), frozenset("ac"): ("m",), frozenset("ad"): ()}
    found = {
        frozenset(orient_pag(Skeleton.of(nodes, ["am", "bm", "cm", "dm"], apart)).marks.items())
        for nodes in permutations("abcdm")
    }
    assert len(found) == 1
    (marks,) = found
    assert dict(marks)["a", "m"] == dict(marks)["c", "m"] == "circle"
    assert dict(marks)["b", "m"] == dict(marks)["d", "m"] == "arrow"


def test_knowledge_gives_heads_and_no_tails() -> None:
    skeleton = Skeleton.of("abc", ["ab", "bc"], {frozenset("ac"): ("b",)})
    tiers = orient_pag(skeleton, Knowledge.of(tiers=["a", "b"]))
    assert tiers == Pag.of("abc", [("a", "o->", "b"), ("b", "->", "c")])  # b is no collider, so it causes c
    forbidden = orient_pag(Skeleton.of("ab", ["ab"]), Knowledge.of(forbidden_arrows=[("b", "a")]))
    assert forbidden == Pag.of("ab", [("a", "o->", "b")])
    both = Knowledge.of(forbidden_arrows=[("b", "a"), ("a", "b")])
    assert orient_pag(Skeleton.of("ab", ["ab"]), both) == Pag.of("ab", [("a", "<->", "b")])
    required = orient_pag(Skeleton.of("ab", ["ab"]), Knowledge.of(required_arrows=[("a", "b")]))
    assert required == Pag.of("ab", [("a", "->", "b")])
    with pytest.raises(GraphError, match="lacks the edge 'a' -- 'c'"):
        orient_pag(skeleton, Knowledge.of(required_edges=["ac"]))


def test_every_graph_says_which_kind_it_is_and_what_stands_at_an_end() -> None:
    pag, dag = Pag.of("abc", [("a", "o->", "b")]), Dag.of("abc", [("a", "b")])
    assert (pag.kind, pag.latent, dag.kind, dag.latent) == ("pag", True, "dag", False)
    assert [graph.mark("a", "b") for graph in (pag, dag, dag.cpdag())] == ["arrow", "arrow", "tail"]
    assert [graph.mark("b", "a") for graph in (pag, dag, dag.cpdag())] == ["circle", "tail", "tail"]
    assert [graph.mark("a", "c") for graph in (pag, dag, dag.cpdag())] == [None] * 3
    with pytest.raises(GraphError, match="no DAG of its columns"):
        pag.some_dag(lambda *_: 0.5)


def test_scores() -> None:
    truth = Pag.of("abcd", [("a", "->", "b"), ("b", "<->", "c"), ("c", "o->", "d")])
    found = Pag.of("abcd", [("a", "o->", "b"), ("b", "->", "c"), ("a", "o-o", "d")])
    scores = score(found, truth)
    assert scores.adjacency == Rates(2 / 3, 2 / 3)
    assert scores.arrowheads == Rates(1.0, 2 / 4)
    assert scores.tails == Rates(0.0, 0.0)
    assert scores.distance == 1 + 1 + 2 + 2
    assert score(truth, truth).distance == 0
    with pytest.raises(GraphError, match="lacks"):
        score(Pag.of("abc"), truth)
    with pytest.raises(GraphError, match="a PAG is compared with a PAG"):
        score(Pag.of("abc"), Cpdag.of("abc"))

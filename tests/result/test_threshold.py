"""A cut of the probabilities: what is drawn, what is undecided, and what no cut may break."""

import json
import math
from dataclasses import replace
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpcurate.accounting import Budget, Privacy
from dpcurate.errors import QueryError
from dpcurate.graphs.formats import load, load_probabilities
from dpcurate.graphs.graph import Cpdag, Dag
from dpcurate.graphs.knowledge import Knowledge
from dpcurate.result.discovery import Discovery
from dpcurate.result.edges import Edge
from dpcurate.result.fit import FitResult
from dpcurate.schema import Categorical, Schema

PRIVACY = Privacy(Budget(epsilon=1.0, delta=1e-10), "add-remove", "one row", 0.0, (), True)
NAMES = tuple("abcde")
probabilities = st.floats(0, 1)
cuts = st.tuples(st.floats(0.01, 0.99), st.floats(0.5, 1))


def found(learned: FitResult, knowledge: Knowledge | None = None) -> Discovery:
    schema = Schema(tuple(Categorical(name, ("no", "yes")) for name in learned.graph.nodes))
    return Discovery(learned, PRIVACY, "auto", schema, knowledge)


def learned(
    linked: dict[str, float], direction: dict[str, float] | None = None, graph: Cpdag | Dag | None = None
) -> FitResult:
    """Pairs as two letters; the graph of best F1 is empty unless given."""
    graph = graph or Cpdag.of(NAMES)
    pairs = {frozenset(pair): p for pair, p in linked.items()}
    ways = {(pair[0], pair[1]): p for pair, p in (direction or {}).items()}
    return FitResult(graph, graph.skeleton, pairs, ways)


@st.composite
def guesses(draw: Any) -> FitResult:
    pairs = ["".join(p) for p in combinations(NAMES, 2)]
    linked = {pair: draw(probabilities) for pair in pairs}
    direction = draw(st.sampled_from([{}, {pair: draw(probabilities) for pair in pairs}]))
    arrows = [p for p in combinations(draw(st.permutations(NAMES)), 2) if draw(st.booleans())]
    return learned(linked, direction, Dag.of(NAMES, arrows).cpdag())


@st.composite
def knowledges(draw: Any) -> Knowledge:
    """Any facts that agree with one hidden order, so that they contradict neither each other nor acyclicity."""
    order = draw(st.permutations(NAMES))
    along = list(combinations(order, 2))
    some = st.lists(st.sampled_from(along), unique=True, max_size=4)
    required = draw(some)
    edges = [frozenset(p) for p in draw(some) if p not in required]
    forbidden = [frozenset(p) for p in draw(some) if p not in required and frozenset(p) not in edges]
    cut = draw(st.integers(0, len(order)))
    return Knowledge.of(
        required_arrows=required,
        required_edges=edges,
        forbidden_edges=forbidden,
        forbidden_arrows=[(b, a) for a, b in draw(some)],
        tiers=[order[:cut], order[cut:]] if draw(st.booleans()) else [],
    )


# --- what is drawn ----------------------------------------------------------------------------------


def test_the_graph_holds_likely_pairs_and_arrows_sure_enough() -> None:
    linked = {"ab": 0.5, "bc": 0.49, "cd": 0.9, "de": 0.99, "ae": 0.7}
    one = found(learned(linked, {"ab": 0.8, "bc": 0.99, "cd": 0.2, "de": 0.79, "ae": 0.21}))
    assert one.graph == Cpdag.of(NAMES, [("a", "b"), ("d", "c")], ["de", "ae"])
    assert one.at(0.5, direction=0.8).graph == one.graph
    assert one.at(0.95, direction=0.75).graph == Cpdag.of(NAMES, [("d", "e")])
    assert one.at(0.4, direction=1).graph == Cpdag.of(NAMES, [], ["ab", "bc", "cd", "de", "ae"])


def test_best_f1_is_the_graph_of_the_method() -> None:
    best = Dag.of(NAMES, [("a", "b"), ("c", "b")]).cpdag()
    one = found(learned({"ab": 0.3, "cd": 0.9}, {"ab": 0.9, "cd": 0.9}, best))
    assert one.at("best-f1").graph == best
    assert one.graph != best
    assert one.at("best-f1").at(0.5, direction=0.8) == one


def test_at_half_a_coin_is_a_line() -> None:
    assert found(learned({"ab": 0.9}, {"ab": 0.5})).at(0.5, direction=0.5).graph.lines == {frozenset("ab")}


def test_the_least_sure_arrow_of_a_cycle_is_a_line() -> None:
    linked = {"ab": 0.9, "bc": 0.9, "ac": 0.9}
    one = found(learned(linked, {"ab": 0.95, "bc": 0.85, "ac": 0.1}))  # a -> b -> c -> a
    assert one.graph == Cpdag.of(NAMES, [("a", "b"), ("c", "a")], ["bc"])


def test_without_directions_the_arrows_are_those_of_the_method() -> None:
    best = Dag.of(NAMES, [("a", "b"), ("c", "b"), ("b", "d")]).cpdag()
    one = found(learned({"ab": 0.9, "bc": 0.8, "bd": 0.3, "de": 0.6}, {}, best))
    assert one.graph == Cpdag.of(NAMES, [("a", "b"), ("c", "b")], ["de"])


def test_an_edge_without_a_probability_stays() -> None:
    best = Cpdag.of(NAMES, [], ["ab", "cd"])
    assert found(learned({"cd": 0.1}, {}, best)).graph.edges == {frozenset("ab")}


def test_a_method_without_probabilities_keeps_its_graph() -> None:
    best = Dag.of(NAMES, [("a", "b"), ("c", "b")])
    one = found(learned({}, {}, best))
    assert one.graph is best
    assert one.at("best-f1").graph is best
    assert {(p.state, p.linked) for p in one.pairs} == {("linked", None), ("apart", None)}
    assert str(one).count("\n") == 3
    with pytest.raises(QueryError, match=r"auto gives no probabilities, so there is nothing to cut at 0\.7"):
        one.at(0.7)


@given(guesses(), cuts)
def test_no_cut_draws_a_cycle_or_an_unlikely_pair(guess: FitResult, cut: tuple[float, float]) -> None:
    graph = found(guess).at(cut[0], direction=cut[1]).graph  # a Cpdag refuses cycles
    assert graph.edges == {pair for pair, p in guess.linked.items() if p >= cut[0]}
    for a, b in graph.arrows:
        p = guess.way(a, b)
        assert (a, b) in guess.graph.arrows if p is None else p >= cut[1]


@given(guesses(), cuts)
def test_an_arrow_is_a_line_only_for_want_of_sureness_or_for_a_cycle(
    guess: FitResult, cut: tuple[float, float]
) -> None:
    graph = found(guess).at(cut[0], direction=cut[1]).graph
    for a, b in permutations(NAMES, 2):
        p = guess.way(a, b)
        if frozenset((a, b)) in graph.lines and p is not None and p > 0.5 and p >= cut[1]:
            with pytest.raises(Exception, match="cycle"):
                Cpdag(graph.nodes, graph.arrows | {(a, b)}, frozenset())


@given(guesses(), knowledges(), cuts)
def test_knowledge_holds_at_every_cut(guess: FitResult, known: Knowledge, cut: tuple[float, float]) -> None:
    known.check(NAMES)
    # the method's own graph obeys it, as every learner's does
    own = [(a, b) for a, b in guess.graph.arrows if known.may_point(a, b)]
    guess = replace(guess, graph=Cpdag.of(NAMES, own))
    one = found(guess, known).at(cut[0], direction=cut[1])
    assert known.required_pairs() <= one.graph.edges
    assert known.required_arrows <= one.graph.arrows
    for a, b in one.graph.edges:
        assert known.allows(a, b)
        if known.may_point(a, b) != known.may_point(b, a):
            assert ((a, b) if known.may_point(a, b) else (b, a)) in one.graph.arrows
    assert all(known.may_point(a, b) for a, b in one.graph.arrows)
    for edge in one.edges:
        if known.requires(edge.a, edge.b):
            assert edge.linked == 1
        if guess.direction and known.may_point(edge.a, edge.b) != known.may_point(edge.b, edge.a):
            assert edge.direction == 1
    assert all(known.allows(p.a, p.b) for p in one.undecided)


# --- edges and pairs --------------------------------------------------------------------------------


def test_edges_carry_both_numbers() -> None:
    one = found(learned({"ab": 0.97, "cd": 0.6}, {"ab": 0.09, "cd": 0.45}))
    assert one.edges == (Edge("b", "a", True, 0.97, 0.91), Edge("c", "d", False, 0.6, 0.45))
    assert [edge.confidence for edge in one.edges] == [0.97, 0.6]
    assert [str(edge) for edge in one.edges] == [
        "b -> a  P(edge) = 0.97, P(b -> a) = 0.91: b causes a, or something not in the table drives both",
        "c -- d  P(edge) = 0.60, P(c -> d) = 0.45",
    ]
    assert str(found(learned({"ab": 0.9})).edges[0]) == "a -- b  P(edge) = 0.90"
    assert str(Edge("a", "b", True, cause=0.9)) == "a -> b: a causes b"
    assert str(Edge("a", "b", True, 0.9951, 0.9949)).startswith("a -> b  P(edge) > 0.99, P(a -> b) = 0.99: ")
    assert str(Edge("a", "b", True, 1.0, 0.004)).startswith("a -> b  P(edge) = 1, P(a -> b) < 0.01: ")


def test_the_csv_file_has_what_an_arrow_says_and_is_read_again(tmp_path: Path) -> None:
    guess = replace(learned({"ab": 0.97, "cd": 0.6}, {"ab": 0.91, "cd": 0.45}), causes={("a", "b"): 0.95})
    file = found(guess).report(tmp_path / "edges.csv")
    heads, *_ = rows = [line.split('","') for line in file.read_text().splitlines()]
    place = [head.strip('"') for head in heads].index("meaning")
    told = {row[0].strip('"') + row[1]: row[place].strip('"') for row in rows[1:] if row[2] in ("arrow", "line")}
    assert told == {"ab": "a causes b", "cd": ""}
    assert (load(file).arrows, load(file).edges) == (found(guess).graph.arrows, found(guess).graph.edges)
    assert load_probabilities(file)["a", "b"].direction == 0.91


def test_undecided_are_the_pairs_in_between() -> None:
    best = Cpdag.of(NAMES, [], ["ab", "de"])
    one = found(learned({"ab": 0.09, "bc": 0.2, "cd": 0.19, "ae": 0.6, "ac": 0.45, "de": 0.7}, {}, best))
    assert [(p.a + p.b, p.linked) for p in one.undecided] == [("ac", 0.45), ("bc", 0.2), ("ab", 0.09)]
    assert [p.a + p.b for p in one.at(0.85).undecided] == ["de", "ae", "ac", "bc", "cd", "ab"]
    assert [p.a + p.b for p in one.at("best-f1").undecided] == ["ae", "ac", "bc"]
    assert "3 undecided pairs, neither drawn nor ruled out: a, c (P(edge) = 0.45); b, c (P(edge) = 0.20); a, b" in str(
        one
    )
    assert "undecided" not in str(found(learned({"ab": 0.9})))


@given(guesses(), cuts)
def test_every_pair_is_there_once_with_its_numbers(guess: FitResult, cut: tuple[float, float]) -> None:
    one = found(guess).at(cut[0], direction=cut[1])
    assert [(p.a, p.b) for p in one.pairs] == list(combinations(NAMES, 2))
    least = min(0.2, 1 - cut[0])
    for p in one.pairs:
        pair = frozenset((p.a, p.b))
        assert p.linked == guess.linked[pair]
        assert p.direction == guess.direction.get((p.a, p.b))
        maybe = p.linked >= least or pair in guess.graph.edges
        expected = "linked" if pair in one.graph.edges else "undecided" if maybe else "apart"
        assert p.state == expected
    assert {frozenset((p.a, p.b)) for p in one.pairs if p.state == "linked"} == one.graph.edges


def test_the_json_report_is_the_plain_values_a_pair_a_line(tmp_path: Path) -> None:
    one = found(learned({"ab": 0.97, "cd": 0.3}, {"ab": 0.91, "cd": 0.5}))
    text = one.report(tmp_path / "report.json").read_text()
    assert json.loads(text) == one.to_dict()
    assert '    {"a": "c", "b": "d", "linked": 0.3, "direction": 0.5, "state": "undecided"}' in text.splitlines()


def test_plain_values_hold_the_cut_the_edges_and_every_pair() -> None:
    one = found(learned({"ab": 0.97, "cd": 0.3}, {"ab": 0.91, "cd": 0.5}))
    table = json.loads(json.dumps(one.to_dict()))
    assert table["cut"] == {"linked": 0.5, "direction": 0.8}
    assert table["edges"] == [
        {
            "a": "a",
            "b": "b",
            "directed": True,
            "linked": 0.97,
            "direction": 0.91,
            "confidence": 0.97,
            "cause": None,
            "meaning": "a causes b, or something not in the table drives both",
        }
    ]
    assert table["undecided"] == [{"a": "c", "b": "d", "linked": 0.3, "direction": 0.5, "state": "undecided"}]
    assert len(table["pairs"]) == math.comb(5, 2)
    assert one.at("best-f1").to_dict()["cut"] == "best-f1"
    assert found(learned({})).to_dict()["cut"] is None


# --- nonsense ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("linked", "more", "said"),
    [
        (0, {}, r"between 0 and 1, not 0;"),
        (1, {}, r"between 0 and 1, not 1;"),
        (-0.2, {}, r"not -0\.2"),
        (math.nan, {}, "not nan"),
        (True, {}, "not True"),
        (None, {}, "not None"),
        (0.5, {"direction": 0.49}, r"between 0\.5 and 1, not 0\.49: of the two ways round"),
        (0.5, {"direction": 1.1}, r"not 1\.1"),
        (0.5, {"direction": math.nan}, "not nan"),
        (0.5, {"direction": "up"}, "not 'up'"),
        ("best", {}, "unknown cut 'best'; did you mean 'best-f1'"),
        ("0.8", {}, "give a number or 'best-f1'"),
        ("best-f1", {"direction": 0.6}, "arrows included"),
    ],
)
def test_nonsense_is_refused_in_a_sentence(linked: Any, more: dict[str, Any], said: str) -> None:
    with pytest.raises(QueryError, match=said):
        found(learned({"ab": 0.9})).at(linked, **more)


# --- effects across what is undecided -----------------------------------------------------------------------------


def test_a_pair_that_is_undecided_has_no_effect_that_is_ruled_out():
    effect = found(learned({"ab": 0.493}, {"ab": 0.6})).effect("a", "b")
    assert (effect.state, effect.estimate, effect.sign) == ("undecided", None, None)
    assert str(effect).startswith("a -> b: undecided: it depends on the link between a and b (P(edge) = 0.49), neither")
    assert "found.at(0.49).effect(...) supposes it" in str(effect)
    assert "a larger epsilon would decide it" in str(effect)
    assert found(learned({"ab": 0.493}, {"ab": 0.6})).at(0.49).effect("a", "b").state != "none"


@pytest.mark.parametrize(
    ("linked", "direction", "state"),
    [
        ({"ab": 0.1}, {}, "none"),  # ruled out
        ({"ab": 0.4}, {"ab": 0.1}, "none"),  # it would point the other way
        ({"ab": 0.4}, {"ab": 0.3}, "undecided"),  # it would be a line
        ({"bc": 0.4, "ac": 0.9}, {"ac": 0.9, "bc": 0.5}, "undecided"),  # a -> c, c ? b
        ({"bc": 0.4, "ac": 0.9}, {"ac": 0.1, "bc": 0.5}, "none"),  # a <- c
        ({"cd": 0.4}, {}, "none"),  # elsewhere
    ],
)
def test_what_is_undecided_matters_on_the_way_only(linked, direction, state):
    assert found(learned(linked, direction)).effect("a", "b").state == state


def test_the_way_with_the_fewest_undecided_pairs_is_named():
    pairs = {"ac": 0.3, "bc": 0.35, "ad": 0.9, "bd": 0.4}
    effect = found(learned(pairs, {"ad": 0.9})).effect("a", "b")
    assert "link between b and d (P(edge) = 0.40)" in effect.reason
    assert " c " not in effect.reason
    both = found(learned({"ac": 0.3, "bc": 0.35})).effect("a", "b").reason
    assert "links between a and c (P(edge) = 0.30) and b and c (P(edge) = 0.35)" in both
    assert "would decide them" in both


def test_an_effect_that_the_graph_has_is_told_whatever_is_undecided():
    pairs = {"ab": 0.9, "bc": 0.4}
    assert found(learned(pairs, {"ab": 0.9})).effect("a", "b").state == "not determined"

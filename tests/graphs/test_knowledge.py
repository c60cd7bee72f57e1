"""Background knowledge: what it says, what it refuses, and its file."""

from __future__ import annotations

import pickle
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpcurate.errors import FormatError, GraphError
from dpcurate.graphs.knowledge import Knowledge

NASTY = ["a b", 'quo"te', "back\\slash", "ünï→", "comma,", "=1+1", "<script>", "new\nline", "del\x7f", "'"]


def test_empty_knowledge_allows_everything() -> None:
    nothing = Knowledge()
    assert nothing.allows("a", "b")
    assert nothing.may_point("a", "b")
    assert not nothing.requires("a", "b")
    nothing.check(["a", "b"])


def test_a_forbidden_edge_and_two_forbidden_arrows_both_forbid_the_pair() -> None:
    edge = Knowledge.of(forbidden_edges=["ab"])
    both = Knowledge.of(forbidden_arrows=[("a", "b"), ("b", "a")])
    for knowledge in (edge, both):
        assert not knowledge.allows("a", "b")
        assert not knowledge.allows("b", "a")
        assert knowledge.allows("a", "c")
        assert not knowledge.may_point("a", "b")


def test_one_forbidden_arrow_leaves_the_other() -> None:
    knowledge = Knowledge.of(forbidden_arrows=[("a", "b")])
    assert knowledge.allows("a", "b")
    assert not knowledge.may_point("a", "b")
    assert knowledge.may_point("b", "a")
    assert not knowledge.requires("a", "b")


def test_a_required_arrow_requires_the_pair_and_its_direction() -> None:
    knowledge = Knowledge.of(required_arrows=[("a", "b")], required_edges=["cd"])
    assert knowledge.requires("b", "a")
    assert knowledge.requires("a", "b")
    assert knowledge.requires("d", "c")
    assert not knowledge.requires("a", "c")
    assert knowledge.may_point("a", "b")
    assert not knowledge.may_point("b", "a")
    assert knowledge.may_point("c", "d")


def test_tiers_go_forward_only() -> None:
    knowledge = Knowledge.of(tiers=[["old"], ["mid", "mid2"], ["new"]])
    assert knowledge.may_point("old", "new")
    assert not knowledge.may_point("new", "old")
    assert not knowledge.may_point("new", "mid")
    assert knowledge.may_point("mid", "mid2")
    assert knowledge.may_point("mid2", "mid")
    assert knowledge.may_point("new", "free")
    assert knowledge.may_point("free", "old")
    assert knowledge.allows("new", "old")


@pytest.mark.parametrize(
    ("facts", "first", "second"),
    [
        (
            {"required_edges": ["ab"], "forbidden_edges": ["ba"]},
            "the edge 'a' -- 'b' is required",
            "the edge 'a' -- 'b' is forbidden",
        ),
        (
            {"required_arrows": [("b", "a")], "forbidden_edges": ["ab"]},
            "the arrow 'b' -> 'a' is required",
            "the edge 'b' -- 'a' is forbidden",
        ),
        (
            {"required_arrows": [("a", "b")], "forbidden_arrows": [("a", "b")]},
            "the arrow 'a' -> 'b' is required",
            "the arrow 'a' -> 'b' is forbidden",
        ),
        (
            {"required_arrows": [("a", "b"), ("b", "a")]},
            "the arrow 'a' -> 'b' is required",
            "the arrow 'b' -> 'a' is required",
        ),
        (
            {"required_arrows": [("a", "b")], "tiers": ["b", "a"]},
            "the arrow 'a' -> 'b' is required",
            "'a' is in tier 2, after 'b' in tier 1",
        ),
        (
            {"required_edges": ["ab"], "forbidden_arrows": [("a", "b"), ("b", "a")]},
            "the edge 'a' -- 'b' is required",
            "the arrow 'a' -> 'b' is forbidden and the arrow 'b' -> 'a' is forbidden",
        ),
        (
            {"required_edges": ["ab"], "forbidden_arrows": [("b", "a")], "tiers": ["b", "a"]},
            "the edge 'a' -- 'b' is required",
            "'a' is in tier 2, after 'b' in tier 1 and the arrow 'b' -> 'a' is forbidden",
        ),
        ({"tiers": ["ab", "bc"]}, "'b' is in tier 1", "'b' is in tier 2"),
    ],
)
def test_a_contradiction_names_both_facts(facts: dict[str, list[str]], first: str, second: str) -> None:
    with pytest.raises(GraphError) as caught:
        Knowledge.of(**facts)  # type: ignore[arg-type]
    assert first in str(caught.value)
    assert second in str(caught.value)
    assert "remove one" in str(caught.value)


def test_required_arrows_in_a_cycle_are_refused() -> None:
    with pytest.raises(GraphError, match=r"requires a cycle: .*'a' -> 'b' -> 'c' -> 'a'"):
        Knowledge.of(required_arrows=[("a", "b"), ("b", "c"), ("c", "a")])


def test_a_required_edge_with_one_direction_left_can_close_a_cycle() -> None:
    facts = {"required_arrows": [("a", "b"), ("b", "c")], "required_edges": ["ac"]}
    Knowledge.of(**facts)  # type: ignore[arg-type]
    with pytest.raises(GraphError, match="requires a cycle"):
        Knowledge.of(**facts, forbidden_arrows=[("a", "c")])  # type: ignore[arg-type]


def test_forbidden_arrows_that_would_force_a_cycle_are_refused_before_any_budget_is_spent() -> None:
    knowledge = Knowledge.of(forbidden_arrows=[("b", "a"), ("c", "b"), ("a", "c")])
    with pytest.raises(GraphError, match=r"forces a cycle wherever these edges are found: .*forbid one"):
        knowledge.check(["a", "b", "c"])
    without = Knowledge.of(forbidden_arrows=[("b", "a"), ("c", "b"), ("a", "c")], forbidden_edges=["ac"])
    without.check(["a", "b", "c"])


def test_an_unknown_node_is_named_with_the_closest() -> None:
    with pytest.raises(GraphError, match="unknown node 'smok'; did you mean 'smoke'"):
        Knowledge.of(tiers=[["smok"]]).check(["smoke", "lung"])
    with pytest.raises(GraphError, match=r"unknown node 'zzz'$"):
        Knowledge.of(forbidden_edges=[("zzz", "lung")]).check(["smoke", "lung"])


@pytest.mark.parametrize("facts", [{"required_edges": ["a"]}, {"forbidden_arrows": [("a", "a")]}])
def test_pairs_have_two_different_names(facts: dict[str, list[str]]) -> None:
    with pytest.raises(GraphError, match="two different nodes"):
        Knowledge.of(**facts)  # type: ignore[arg-type]


def test_knowledge_is_a_value() -> None:
    first = Knowledge.of(forbidden_edges=["ab"], tiers=["ab", "c"])
    second = Knowledge.of(forbidden_edges=["ba"], tiers=["ba", "c"])
    assert first == second
    assert hash(first) == hash(second)
    assert first != Knowledge.of(forbidden_edges=["ab"], tiers=["c", "ab"])
    assert pickle.loads(pickle.dumps(first)) == first


def test_the_plain_constructor_takes_lists_too() -> None:
    knowledge = Knowledge([("a", "b")], [], [["c", "d"]], [], [["a", "c"]])  # type: ignore[arg-type]
    assert knowledge == Knowledge.of(required_edges=["ab"], required_arrows=[("c", "d")], tiers=["ac"])
    hash(knowledge)


def test_the_file_round_trips(tmp_path: Path) -> None:
    knowledge = Knowledge.of(
        required_edges=[("a b", 'quo"te')],
        forbidden_edges=[("back\\slash", "ünï→")],
        required_arrows=[("comma,", "=1+1")],
        forbidden_arrows=[("<script>", "new\nline")],
        tiers=[["a b", "del\x7f"], ["'"]],
    )
    path = tmp_path / "knowledge.toml"
    path.write_text(knowledge.dumps(), encoding="utf-8")
    assert Knowledge.load(path) == knowledge
    assert Knowledge.loads("") == Knowledge()
    assert Knowledge().dumps() == ""


@given(st.sets(st.sampled_from(list(permutations(NASTY, 2))), max_size=6), st.text(min_size=1))
def test_any_names_round_trip(pairs: set[tuple[str, str]], name: str) -> None:
    name = name.encode("utf-8", "replace").decode()
    tiers = [[name]] if name else []
    knowledge = Knowledge.of(forbidden_arrows=pairs, tiers=tiers)
    assert Knowledge.loads(knowledge.dumps()) == knowledge


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("\n\nrequired_edges = [[", 3, "not TOML"),
        ("tiers = []\nforbiden_edges = []\n", 2, "did you mean 'forbidden_edges'"),
        ("tiers = []\n\nrequired_edges = 3\n", 3, "list of lists of names"),
        ('tiers = [\n  "a",\n]\n', 1, "list of lists of names"),
        ('required_edges = [\n  ["a", "b"],\n  ["a", "b", "c"],\n]\n', 3, "two different names"),
        ('required_edges = [\n  ["a", "b"],\n  ["c", "c"],\n]\n', 3, "two different names"),
        ("\nrequired_arrows = [[1, 2]]\n", 2, "list of lists of names"),
        ('required_edges = [["a", "b"]]\n\nforbidden_edges = [\n["b", \'a\']]\n', 4, "is forbidden"),
        ('tiers = [["a"],\n["b"],\n["c", "a"]]\n', 3, "'a' is in tier 3"),
    ],
)
def test_a_bad_file_gives_the_line(text: str, line: int, message: str) -> None:
    with pytest.raises(FormatError, match=message) as caught:
        Knowledge.loads(text)
    assert caught.value.line == line
    assert f"line {line}" in str(caught.value)


def test_a_required_cycle_in_a_file_is_a_format_error() -> None:
    with pytest.raises(FormatError, match="requires a cycle"):
        Knowledge.loads('required_arrows = [["a","b"],["b","c"],["c","a"]]')


def test_bytes_that_are_no_text_give_the_line(tmp_path: Path) -> None:
    path = tmp_path / "knowledge.toml"
    path.write_bytes(b"tiers = []\n# \xff\n")
    with pytest.raises(FormatError, match="line 2: not UTF-8"):
        Knowledge.load(path)

"""What was found in the words of other tools; those of packages beside this one are tested in tests/tools."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

import dpcurate
from dpcurate.accounting import Budget, Privacy
from dpcurate.errors import DpcurateError, FormatError
from dpcurate.graphs.formats import loads
from dpcurate.graphs.graph import Cpdag, Dag, Graph, Pag
from dpcurate.graphs.interop import bnlearn_text, from_networkx, networkx_dag
from dpcurate.result.discovery import Discovery
from dpcurate.result.fit import FitResult
from dpcurate.schema import Categorical, Schema

PRIVACY = Privacy(Budget(epsilon=1.0, delta=1e-10), "add-remove", "one row", 0.0, (), True)
CPDAG = Cpdag.of("abcd", [("a", "b")], ["bc"])
PAG = Pag.of("abcd", [("a", "->", "b"), ("b", "<->", "c"), ("d", "o->", "c")])
PACKAGES = ["to_pgmpy", "to_dowhy", "to_causallearn"]
NEED_A_DAG = ["to_dag", "to_pgmpy", "to_dowhy", "to_bnlearn"]


def found(graph: Graph, linked: dict[str, float] | None = None, ways: dict[str, float] | None = None) -> Discovery:
    schema = Schema(tuple(Categorical(name, ("no", "yes")) for name in graph.nodes))
    pairs = {frozenset(pair): p for pair, p in (linked or {}).items()}
    learned = FitResult(
        graph, Cpdag.of(graph.nodes).skeleton, pairs, {(p[0], p[1]): w for p, w in (ways or {}).items()}
    )
    return Discovery(learned, PRIVACY, "auto", schema, cut=None)


def call(result: Discovery, name: str) -> Any:
    return getattr(result, name)(*(["a", "b"] if name == "to_dowhy" else []))


@pytest.fixture
def sure() -> Discovery:
    return found(CPDAG, {"ab": 0.9, "bc": 0.6}, {"ab": 0.95, "bc": 0.4})


def test_networkx_has_one_arc_for_every_edge_with_its_numbers(sure: Discovery) -> None:
    arcs = sure.to_networkx()
    assert dict(arcs.edges) == {
        ("a", "b"): {"directed": True, "linked": 0.9, "direction": 0.95},
        ("b", "c"): {"directed": False, "linked": 0.6, "direction": 0.4},
    }
    assert list(arcs.nodes) == list("abcd")
    assert set(sure.graph.to_networkx().edges) == {("a", "b"), ("b", "c"), ("c", "b")}  # as it always was


def test_numbers_that_a_method_does_not_have_are_left_out() -> None:
    assert dict(found(Dag.of("ab", [("b", "a")])).to_networkx().edges) == {("b", "a"): {"directed": True}}


@pytest.mark.parametrize("graph", [CPDAG, PAG, Dag.of("abc", [("c", "a")]), Cpdag.of("ab")], ids=str)
def test_networkx_text_and_files_hold_the_same_graph(graph: Graph, tmp_path: Path) -> None:
    result = found(graph)
    assert from_networkx(result.to_networkx()) == graph
    nx.write_graphml(result.to_networkx(), tmp_path / "graph.graphml")
    assert from_networkx(nx.read_graphml(tmp_path / "graph.graphml")) == graph
    assert loads(result.to_dagitty(), "dagitty") == graph
    assert loads(result.to_tetrad(), "tetrad") == graph


def test_an_arc_of_a_pag_has_its_sign() -> None:
    arcs = found(PAG, {"ab": 0.9}).to_networkx()
    assert dict(arcs.edges)["d", "c"] == {"directed": False, "sign": "o->"}
    assert dict(arcs.edges)["a", "b"] == {"directed": True, "sign": "->", "linked": 0.9}
    with pytest.raises(FormatError, match="an edge ->>"):
        from_networkx(nx.DiGraph([("a", "b", {"sign": "->>"})], kind="pag"))


def test_an_arc_of_a_pag_has_the_chances_of_its_marks() -> None:
    result = found(PAG)
    result = replace(result, learned=replace(result.learned, marks={("b", "a"): (0.9, 0.05), ("a", "b"): (0.1, 0.8)}))
    arc = result.to_networkx().edges["a", "b"]
    assert (arc["tail_from"], arc["head_from"], arc["tail_to"], arc["head_to"]) == (0.9, 0.05, 0.1, 0.8)


def test_the_dag_is_one_of_the_class_and_says_so(sure: Discovery) -> None:
    assert sure.to_dag() == Dag.of("abcd", [("a", "b"), ("b", "c")])  # c -> b is likelier, and a new collider
    assert "1 of 2 edges had no direction" in sure.to_dag().note
    assert sure.to_bnlearn() == "[a][b|a][c|b][d]"


def test_bnlearn_has_parents_first_and_refuses_names_that_it_would_misread() -> None:
    assert bnlearn_text(Dag.of(["x", "y z", "w"], [("w", "x"), ("y z", "x")])) == "[y z][w][x|y z:w]"
    with pytest.raises(FormatError, match=r"'a:b'.*rename"):
        bnlearn_text(Dag.of(["a:b"]))


@pytest.mark.parametrize("name", NEED_A_DAG)
def test_what_needs_a_dag_refuses_a_pag_and_says_what_does_not(name: str) -> None:
    with pytest.raises(FormatError, match=r"PAG.*to_networkx, to_causallearn, to_dagitty and to_tetrad"):
        call(found(PAG), name)


@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_that_is_missing_is_named_with_how_to_have_it(
    sure: Discovery, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("pgmpy.base", "dowhy", "causallearn.graph.GraphNode"):
        monkeypatch.setitem(sys.modules, module, None)
    package = {"to_pgmpy": "pgmpy", "to_dowhy": "dowhy", "to_causallearn": "causal-learn"}[name]
    with pytest.raises(DpcurateError, match=f"^this needs {package}; install it with: pip install {package}$"):
        call(sure, name)


def test_a_line_that_was_turned_has_the_numbers_of_its_new_way() -> None:
    result = found(Cpdag.of("ab", lines=["ab"]), {"ab": 0.8}, {"ab": 0.25})
    arcs = networkx_dag(result.to_dag(), result._beside())
    assert dict(arcs.edges) == {("b", "a"): {"linked": 0.8, "direction": 0.75}}
    assert arcs.graph["note"] == result.to_dag().note


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Discovery, Path]:
    """A finding of a -> c <- b, and its ledger."""
    schema = Schema(tuple(Categorical(name, ("no", "yes")) for name in "abc"))
    draw = np.random.default_rng(1)
    a, b = draw.integers(0, 2, (2, 20_000))
    codes = {"a": a, "b": b, "c": (a | b) ^ (draw.random(20_000) < 0.1)}
    table = {name: np.array(["no", "yes"])[code] for name, code in codes.items()}
    ledger = tmp_path_factory.mktemp("run") / "a.ledger"
    return dpcurate.discover(table, schema, epsilon=5, ledger=ledger), ledger


def test_effects_stand_beside_their_arrows(run: tuple[Discovery, Path]) -> None:
    result, _ = run
    said, effect = result.to_networkx().edges["a", "c"], result.effect("a", "c")
    assert (said["effect"], said["effect_low"], said["effect_high"]) == (effect.estimate, effect.low, effect.high)
    assert effect.estimate == pytest.approx(0.4, abs=0.05)
    assert said["effect_in_words"] == effect.sentence


def test_of_a_line_the_effects_that_are_possible_stand_beside_it(run: tuple[Discovery, Path]) -> None:
    line = replace(run[0], learned=replace(run[0].learned, graph=Cpdag.of("abc", lines=["ac"])), cut=None)
    there, back = (line.effect(*ends) for ends in ("ac", "ca"))
    arc = line.to_networkx().edges["a", "c"]
    assert "effect" not in arc
    assert (arc["effect_low"], arc["effect_high"]) == (there.low, there.high)
    assert line._beside()["c", "a"]["effect_high"] == back.high != there.high


def test_nothing_of_it_is_charged(run: tuple[Discovery, Path]) -> None:
    result, ledger = run
    before = ledger.read_bytes()
    for name in ("to_dag", "to_networkx", "to_dagitty", "to_tetrad", "to_bnlearn"):
        call(result, name)
    assert ledger.read_bytes() == before
    assert result.to_dag().arrows == {("a", "c"), ("b", "c")}

"""What was found in the words of other tools; those of packages beside this one are tested in tests/tools."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

import dpcurate
from dpcurate.accounting import Budget, Privacy
from dpcurate.discovery import Discovery
from dpcurate.errors import DpcurateError, FormatError
from dpcurate.graphs.export import bnlearn_text
from dpcurate.graphs.formats import from_networkx, loads
from dpcurate.graphs.graph import Cpdag, Dag, Graph, Pag
from dpcurate.learn.outcome import Learned
from dpcurate.schema import Categorical, Schema

PRIVACY = Privacy(Budget(epsilon=1.0, delta=1e-10), "add-remove", "one row", 0.0, (), True)
CPDAG = Cpdag.of("abcd", [("a", "b")], ["bc"])
PAG = Pag.of("abcd", [("a", "->", "b"), ("b", "<->", "c"), ("d", "o->", "c")])
PACKAGES = ["to_pgmpy", "to_dowhy", "to_causallearn"]
NEED_A_DAG = ["to_dag", "to_pgmpy", "to_dowhy", "to_bnlearn"]


def found(graph: Graph, linked: dict[str, float] | None = None, ways: dict[str, float] | None = None) -> Discovery:
    schema = Schema(tuple(Categorical(name, ("no", "yes")) for name in graph.nodes))
    pairs = {frozenset(pair): p for pair, p in (linked or {}).items()}
    learned = Learned(graph, Cpdag.of(graph.nodes).skeleton, pairs, {(p[0], p[1]): w for p, w in (ways or {}).items()})
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


def test_nothing_of_it_is_charged(tmp_path: Path) -> None:
    schema = Schema((Categorical("a", ("no", "yes")), Categorical("b", ("no", "yes"))))
    coin = np.random.default_rng(1).integers(0, 2, 5_000)
    table = {name: np.array(["no", "yes"])[coin] for name in schema.names}
    result = dpcurate.discover(table, schema, epsilon=1, ledger=tmp_path / "a.ledger")
    before = (tmp_path / "a.ledger").read_bytes()
    for name in ("to_dag", "to_networkx", "to_dagitty", "to_tetrad", "to_bnlearn"):
        call(result, name)
    assert (tmp_path / "a.ledger").read_bytes() == before
    assert result.to_dag().edges == result.graph.edges != frozenset()

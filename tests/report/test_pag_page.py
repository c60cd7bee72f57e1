"""A result with hidden causes: page, text, files and notebook carry its marks, and say what they mean."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import dpcurate
from dpcurate import Budget, Curator, networks
from dpcurate.errors import QueryError
from dpcurate.graphs.formats import load
from dpcurate.graphs.graph import Pag, Skeleton
from dpcurate.learn.methods import PC
from dpcurate.result.discovery import Discovery
from dpcurate.result.fit import FitResult
from dpcurate.result.threshold import Threshold
from dpcurate.schema import Categorical, Schema
from dpcurate.study.calls import discover, fit

pd = pytest.importorskip("pandas")
PAG = Pag.of("abcde", [("a", "->", "b"), ("b", "<->", "c"), ("c", "o->", "d"), ("d", "o-o", "e")])
SURE = {("a", "b"): (0.0, 0.95), ("b", "a"): (0.9, 0.0), ("c", "d"): (0.1, 0.6), ("d", "c"): (0.2, 0.3)}


def result(linked: float = 0.9) -> Discovery:
    pairs = {pair: linked if "e" in pair else 0.9 for pair in PAG.edges}
    learned = FitResult(PAG, Skeleton(PAG.nodes, PAG.edges), linked=pairs, marks=SURE)
    schema = Schema(tuple(Categorical(name, ("0", "1")) for name in PAG.nodes))
    table = pd.DataFrame({name: np.array(["0", "1"]) for name in PAG.nodes})
    privacy = Curator(table, schema, budget=Budget(epsilon=1, delta=1e-10)).privacy()
    return Discovery(learned, privacy, "auto", schema)


def test_every_edge_says_what_it_means() -> None:
    lines = str(result()).splitlines()
    assert (
        "  a -> b  P(edge) = 0.90, P(tail at a) = 0.90, P(head at b) = 0.95: a causes b, perhaps through others"
        in lines
    )
    assert "  b <-> c  P(edge) = 0.90: neither causes the other: a hidden cause moves both" in lines
    assert any(line.startswith("  d o-o e") for line in lines)


def test_a_cut_leaves_circles_where_marks_are_not_sure() -> None:
    assert result().graph.mark("c", "d") == "circle"
    assert result().at(0.5, direction=0.6).graph.mark("c", "d") == "arrow"
    assert result().at("best-f1").graph == PAG
    assert result(0.3).graph.edges == PAG.edges - {frozenset("de")}
    assert Threshold().direction == 0.8


def test_the_page_draws_circles_and_explains_them(tmp_path: Path) -> None:
    page = result().at("best-f1").report(tmp_path / "report.html").read_text()
    assert page.count("<circle cx=") >= 3
    told = ("neither causes the other: a hidden cause moves both", "a causes b, perhaps through others")
    for words in (*told, "An arrowhead at b on an edge with a says", "a → b can be confounded"):
        assert words in page
    assert "Causal sufficiency" not in page
    assert "<circle" in result()._repr_html_()


@pytest.mark.parametrize("name", ["graph.dot", "edges.csv", "graph.graphml", "graph.tetrad", "graph.dagitty"])
def test_files_carry_it(name: str, tmp_path: Path) -> None:
    assert load(result().at("best-f1").report(tmp_path / name)) == PAG


def test_plain_values(tmp_path: Path) -> None:
    table = json.loads(result().at("best-f1").report(tmp_path / "report.json").read_text())
    assert table["graph"]["kind"] == "pag"
    assert table["edges"][0]["sign"] == "->"
    assert table["edges"][0]["tails"] == [0.9, 0.0]


def test_the_picture_of_matplotlib() -> None:
    pytest.importorskip("matplotlib").use("Agg")
    axes = result().at("best-f1").plot()
    assert sum(type(patch).__name__ == "Circle" for patch in axes.patches) == 3


def test_from_a_table_to_a_pag() -> None:
    world = networks.load("asia").hide("smoke")
    table = pd.DataFrame(world.sample(30_000, seed=1))
    found = discover(table, world.schema, epsilon=5, latent=True, insecure_seed=1)
    assert isinstance(found.graph, Pag)
    assert found.graph.nodes == world.nodes
    assert frozenset(("lung", "bronc")) in found.graph.edges
    for (a, b), probability in found.probabilities.items():
        assert (probability.tail_from, probability.head_from) == found.learned.marks[b, a]
        assert (probability.tail_to, probability.head_to) == found.learned.marks[a, b]
    assert found.probabilities
    exact = fit(Curator(table, world.schema, budget=Budget.unlimited()), PC(latent=True))
    assert isinstance(exact.graph, Pag)
    with pytest.raises(QueryError, match="notears-moments has no form for hidden causes"):
        dpcurate.discover(table, world.schema, epsilon=1, method="notears-moments", latent=True)

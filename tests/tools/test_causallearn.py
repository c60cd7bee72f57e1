"""The real causal-learn takes what it is given, and means the same by it."""

from __future__ import annotations

from itertools import combinations

import pytest

import dpcurate
from dpcurate.graphs.formats import loads, save
from dpcurate.graphs.graph import Pag
from dpcurate.graphs.interop import causallearn_graph, from_causallearn, to_causallearn
from dpcurate.networks.worlds import random_dag

MISSING = "causal-learn is not installed here"
text = pytest.importorskip("causallearn.utils.TXT2GeneralGraph", reason=MISSING)
classes = pytest.importorskip("causallearn.utils.DAG2CPDAG", reason=MISSING)
distance = pytest.importorskip("causallearn.graph.SHD", reason=MISSING)
PAG = Pag.of("dcab", [("a", "->", "b"), ("b", "<->", "c"), ("d", "o->", "a"), ("c", "o-o", "d"), ("b", "o--", "d")])
pytestmark = pytest.mark.tools


@pytest.mark.parametrize("seed", range(5))
def test_graphs_come_back_as_they_were_and_so_do_their_texts(seed, tmp_path):
    graph = random_dag(8, seed=seed, degree=2).cpdag()
    theirs = to_causallearn(graph)
    assert from_causallearn(theirs, "cpdag") == graph
    assert loads(str(theirs), "tetrad", "cpdag") == graph
    save(graph, tmp_path / "graph.txt")
    assert from_causallearn(text.txt2generalgraph(str(tmp_path / "graph.txt")), "cpdag") == graph


@pytest.mark.parametrize("seed", range(5))
def test_their_separations_and_classes_of_a_dag_are_ours(seed):
    dag = random_dag(8, seed=seed, degree=2)
    theirs = to_causallearn(dag)
    assert from_causallearn(classes.dag2cpdag(theirs), "cpdag") == dag.cpdag()
    for a, b in combinations(dag.nodes, 2):
        given = dag.parents(a)
        if b not in given:
            nodes = [theirs.get_node(name) for name in (a, b, *given)]
            assert theirs.is_dseparated_from(nodes[0], nodes[1], nodes[2:]) == dag.d_separated(a, b, given)


def test_a_pag_keeps_its_marks(tmp_path):
    theirs = causallearn_graph(PAG, {})
    assert theirs.is_pag()
    assert from_causallearn(theirs, "pag") == PAG
    assert loads(str(theirs), "tetrad", "pag") == PAG


def test_a_finding_is_compared_with_the_truth_by_their_measure(asia):
    network, _, found = asia
    theirs = found.to_causallearn()
    assert distance.SHD(to_causallearn(network.dag.cpdag()), theirs).get_shd() >= 0
    assert distance.SHD(to_causallearn(found.graph), theirs).get_shd() == 0
    assert not theirs.is_pag()
    numbers = theirs.get_attribute("edges")
    assert {ends: numbers[ends]["linked"] for ends in [(e.a, e.b) for e in found.edges]} == {
        (e.a, e.b): e.linked for e in found.edges
    }


def test_they_read_the_text_for_tetrad_with_its_numbers(asia, tmp_path):
    found = asia[2]
    assert "[no edge]:" in found.to_tetrad()
    (tmp_path / "graph.txt").write_text(found.to_tetrad(), encoding="utf-8")
    assert from_causallearn(text.txt2generalgraph(str(tmp_path / "graph.txt")), "cpdag") == found.graph


def test_a_finding_with_hidden_causes_is_one_of_theirs(asia):
    network, _, _ = asia
    seen = network.hide("smoke")
    rows = seen.sample(50_000, seed=1)
    found = dpcurate.discover(rows, seen.schema, epsilon=5, delta=1e-10, latent=True, insecure_seed=1)
    theirs = found.to_causallearn()
    assert theirs.is_pag()
    assert from_causallearn(theirs, "pag") == found.graph

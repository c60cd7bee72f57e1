"""The real pgmpy takes what it is given: graphs, DAGs with numbers beside edges, and networks with tables."""

from __future__ import annotations

import numpy as np
import pytest

import dpcurate
from dpcurate.errors import FormatError
from dpcurate.graphs.graph import Cpdag, Dag
from dpcurate.graphs.interop import from_pgmpy, pgmpy_network, to_pgmpy
from dpcurate.networks import load, names

base = pytest.importorskip("pgmpy.base", reason="pgmpy is not installed here")
SLOW = {"barley", "diabetes", "mildew", "munin", "munin2", "munin3", "munin4", "pathfinder"}
"""Networks whose files are large; what is in the others is in them too."""
inference = pytest.importorskip("pgmpy.inference", reason="pgmpy is not installed here")
pytestmark = pytest.mark.tools


@pytest.mark.parametrize(
    "graph", [Dag.of("abc", [("b", "a")]), Cpdag.of("abcd", [("a", "b")], ["cb"]), Cpdag.of("a")], ids=str
)
def test_graphs_come_back_as_they_were(graph):
    back = from_pgmpy(to_pgmpy(graph))
    assert type(back) is type(graph)
    assert (set(back.nodes), back.arrows, back.lines) == (set(graph.nodes), graph.arrows, graph.lines)


def test_a_finding_is_a_dag_with_its_numbers_and_note(asia):
    _, _, found = asia
    dag = found.to_pgmpy()
    assert isinstance(dag, base.DAG)
    assert set(dag.edges) == found.to_dag().arrows
    assert dag.graph["note"] == found.to_dag().note != ""
    assert dag.is_dconnected("smoke", "lung")
    for edge in found.edges:
        a, b = (edge.a, edge.b) if (edge.a, edge.b) in dag.edges else (edge.b, edge.a)
        assert dag.edges[a, b]["linked"] == edge.linked
        assert dag.edges[a, b]["direction"] == pytest.approx(edge.direction if a == edge.a else 1 - edge.direction)
    assert any(not edge.directed for edge in found.edges)


def test_a_network_has_the_same_chances_in_both():
    network = load("child")
    levels = {v.name: v.levels for v in network.variables}
    tables = {}
    for v in network.variables:
        table = v.table.reshape(*(len(levels[p]) for p in v.parents), len(v.levels))
        axes = [v.parents.index(p) for p in network.dag.parents(v.name)]
        tables[v.name] = np.transpose(table, [*axes, len(axes)])
    theirs = pgmpy_network(network.dag, levels, tables)
    assert theirs.check_model()
    assert any(len(network.dag.parents(v.name)) > 1 for v in network.variables)
    ask = inference.VariableElimination(theirs)
    for pair in (["Disease", "CO2Report"], ["LowerBodyO2", "Grunting"], ["Age", "XrayReport"]):
        joint = ask.query(pair, show_progress=False)
        assert joint.values == pytest.approx(
            network.marginal(joint.variables), abs=1e-3
        )  # published digits, which pgmpy does not normalise
        assert joint.state_names[pair[0]] == list(levels[pair[0]])


@pytest.fixture(scope="module")
def model(asia):
    network, table, found = asia
    curator = dpcurate.Curator(table, network.schema, budget=dpcurate.Budget(epsilon=5, delta=1e-10), insecure_seed=1)
    return dpcurate.quantify(found, curator)


def test_a_fitted_model_has_the_same_chances_in_both(model):
    theirs = model.to_pgmpy()
    assert theirs.check_model()
    assert set(theirs.edges) == model.dag.arrows
    assert theirs.graph["note"] == model.dag.note
    ask = inference.VariableElimination(theirs)
    for level, p in model.predict({"smoke": "yes", "dysp": "no"}, "lung").items():
        probabilities = ask.query(["lung"], evidence={"smoke": "yes", "dysp": "no"}, show_progress=False)
        assert probabilities.get_value(lung=level) == pytest.approx(p, abs=1e-6)


def test_it_reads_the_file_of_a_model(model, tmp_path):
    readwrite = pytest.importorskip("pgmpy.readwrite", reason="pgmpy is not installed here")
    theirs = readwrite.BIFReader(str(model.save(tmp_path / "model.bif"))).get_model()
    assert set(theirs.edges) == model.dag.arrows
    joint = inference.VariableElimination(theirs).query(["smoke", "lung"], show_progress=False)
    assert joint.get_value(smoke="yes", lung="yes") == pytest.approx(
        model.marginal(["smoke", "lung"])[_place(model, "smoke"), _place(model, "lung")], abs=1e-5
    )


def _place(model, column):
    return model.network[column].levels.index("yes")


def test_a_table_of_another_shape_is_refused():
    levels = {"a": ("no", "yes"), "b": ("low", "mid", "high")}
    tables = {"a": np.array([0.5, 0.5]), "b": np.full((3, 2), 0.5)}
    with pytest.raises(FormatError, match=r"table of 'b' has shape \(3, 2\), but its levels \(2, 3\)"):
        pgmpy_network(Dag.of("ab", [("a", "b")]), levels, tables)


def test_the_networks_of_an_installed_pgmpy_load():
    found = {name: load(name) for name in names() if name not in SLOW}
    assert len(found) >= 24 - len(SLOW)
    for name, network in found.items():
        assert network.name == name
        assert network.parameters > 0
    assert (len(found["munin1"].nodes), len(found["munin1"].arcs), found["munin1"].parameters) == (186, 273, 15622)

"""The real DoWhy reads a finding: it adjusts for the right columns and estimates the effect that is there."""

from __future__ import annotations

import numpy as np
import pytest

import dpcurate
from dpcurate.accounting import Budget, Privacy
from dpcurate.errors import GraphError
from dpcurate.graphs.graph import Cpdag
from dpcurate.result.discovery import Discovery
from dpcurate.result.fit import FitResult
from dpcurate.schema import Numeric, Schema

dowhy = pytest.importorskip("dowhy", reason="DoWhy is not installed here")
pytestmark = [
    pytest.mark.tools,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # its own, with new versions of pandas
]
PRIVACY = Privacy(Budget(epsilon=1.0, delta=1e-10), "add-remove", "one row", 0.0, (), True)
GRAPH = Cpdag.of(["age", "dose", "pain"], [("age", "pain"), ("dose", "pain")], [["age", "dose"]])
EFFECT = -0.5


@pytest.fixture
def found():
    schema = Schema(tuple(Numeric(name, -5, 5) for name in GRAPH.nodes))
    linked, direction = dict.fromkeys(GRAPH.edges, 0.9), {("age", "dose"): 0.7}
    return Discovery(FitResult(GRAPH, GRAPH.skeleton, linked, direction), PRIVACY, "auto", schema, cut=None)


@pytest.fixture(scope="module")
def rows():
    draw = np.random.default_rng(1)
    age = draw.normal(size=20_000)
    dose = 0.8 * age + draw.normal(size=20_000)
    return {"age": age, "dose": dose, "pain": EFFECT * dose + age + draw.normal(size=20_000)}


def test_it_adjusts_for_what_confounds_and_finds_the_effect(found, rows):
    model = found.to_dowhy("dose", "pain", rows)
    assert isinstance(model, dowhy.CausalModel)
    estimand = model.identify_effect()
    assert estimand.get_backdoor_variables() == ["age"]
    estimate = model.estimate_effect(estimand, method_name="backdoor.linear_regression")
    assert estimate.value == pytest.approx(EFFECT, abs=0.05)  # 1.0 off where age is not adjusted for


def test_without_rows_it_still_says_what_to_adjust_for(found):
    assert found.to_dowhy("dose", "pain").identify_effect().get_backdoor_variables() == ["age"]


def test_the_graph_in_it_has_numbers_and_the_note(found):
    graph = found.to_dowhy("dose", "pain")._graph._graph
    assert graph.edges["age", "dose"]["linked"] == 0.9
    assert graph.edges["age", "dose"]["direction"] == pytest.approx(0.7)
    assert "1 of 3 edges had no direction" in graph.graph["note"]


def test_a_column_that_is_not_there_is_named(found):
    with pytest.raises(GraphError, match="unknown node 'doze'; did you mean 'dose'"):
        found.to_dowhy("doze", "pain")


def test_a_found_graph_is_a_graphical_causal_model_too(asia):
    from dowhy import gcm

    dag = asia[2].to_dag()
    assert set(gcm.StructuralCausalModel(dag.to_networkx()).graph.edges) == dag.arrows


def test_it_estimates_from_a_synthetic_table_what_the_model_says(asia):
    network, table, found = asia
    curator = dpcurate.Curator(table, network.schema, budget=dpcurate.Budget(epsilon=5, delta=1e-10), insecure_seed=1)
    fitted = dpcurate.quantify(found, curator)
    rows = {name: cells == "yes" for name, cells in fitted.sample(50_000, seed=1).items()}
    model = found.to_dowhy("bronc", "dysp", rows)  # an arrow in every DAG of the class
    estimate = model.estimate_effect(model.identify_effect(), method_name="backdoor.linear_regression")
    truth = fitted.effect("bronc", "dysp", to="yes", instead_of="no", level="yes").estimate
    assert estimate.value == pytest.approx(truth, abs=0.05)

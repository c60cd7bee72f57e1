"""Directions that cannot be read: the verdict, what is drawn, what is said, and which effects are told."""

from __future__ import annotations

import json
from itertools import combinations

import numpy as np
import pytest

import dpcurate
from dpcurate import Budget, Curator, Knowledge
from dpcurate.accounting import Privacy
from dpcurate.cli import main
from dpcurate.graphs.graph import Cpdag, Dag, Skeleton
from dpcurate.graphs.pag import Pag
from dpcurate.learn.measure_once import MeasureOnce
from dpcurate.learn.measure_once.arrows import Weighed
from dpcurate.learn.measure_once.fit_check import verdict_on_directions
from dpcurate.learn.measure_once.hidden_causes import CAUSES, Found, causes
from dpcurate.result.edges import Edge
from dpcurate.result.fit import TRUST, DirectionVerdict, FitResult, GoodnessOfFit, NoiseLevel
from dpcurate.result.threshold import Threshold, graph_at
from dpcurate.schema import Numeric, Schema

QUIET = NoiseLevel(rows=20_000, rows_noise=1, variance=1 / 20_000, coordinates=1)
LOUD = NoiseLevel(rows=200, rows_noise=1, variance=1 / 200, coordinates=1)


def fit(columns=10, edges=12, dependent=0, share=0.0, log_ratio=0.0):
    apart = columns * (columns - 1) // 2 - edges
    return GoodnessOfFit(
        columns=columns, edges=edges, apart=apart, dependent=dependent, share=share, log_ratio=log_ratio
    )


@pytest.mark.parametrize(
    ("given", "level"),
    [
        (fit(), "readable"),
        (fit(dependent=3), "readable"),  # 3 of 33
        (fit(dependent=4), "unreadable"),
        (fit(columns=5, edges=4, dependent=2), "readable"),  # a third, but only two pairs
        (fit(share=0.2, log_ratio=3.0), "unreadable"),
        (fit(share=0.1), "unreadable"),
        (fit(share=0.09, log_ratio=9.0), "readable"),
        (fit(edges=19), "readable"),
        (fit(edges=20), "unreadable"),
        (fit(columns=6, edges=10), "unreadable"),  # two thirds of all pairs
        (fit(columns=5, edges=7), "readable"),  # as many, of so few columns that it says nothing
    ],
)
def test_the_verdict_follows_from_the_fit(given, level):
    verdict = verdict_on_directions(given, QUIET)
    assert verdict.level == level
    assert verdict.readable == (level == "readable")
    assert len(verdict.sentences) == 2
    assert ("come first" in str(verdict)) == (level == "unreadable")


def test_noise_that_hides_what_directions_rest_on_is_told_first():
    for given in (fit(), fit(dependent=20)):
        assert verdict_on_directions(given, LOUD).level == "noisy"
        assert verdict_on_directions(given, None).level == "noisy"


def test_curved_features_do_not_make_a_run_too_noisy_for_directions():
    many = NoiseLevel(rows=20_000, rows_noise=90, variance=0.00065, coordinates=25)
    assert verdict_on_directions(fit(), many).level == "readable"
    louder = NoiseLevel(rows=20_000, rows_noise=90, variance=0.0025, coordinates=25)
    assert verdict_on_directions(fit(), louder).level == "noisy"


def test_the_evidence_is_in_the_sentence_and_plurals_are_right():
    assert "1 of the 33 pairs without an edge stays dependent" in str(verdict_on_directions(fit(dependent=1), QUIET))
    assert "2 of the 33 pairs without an edge stay dependent" in str(verdict_on_directions(fit(dependent=2), QUIET))
    assert "About 27% of the 33 pairs" in str(verdict_on_directions(fit(dependent=9), QUIET))
    assert "25 edges among 10 columns" in str(verdict_on_directions(fit(edges=25), QUIET))
    assert "About 20% of the 33 pairs" in str(verdict_on_directions(fit(share=0.2, log_ratio=3.0), QUIET))


@pytest.mark.parametrize("level", ["unreadable", "noisy"])
def test_no_direction_that_cannot_be_read_is_drawn_by_default(level):
    assert 0.5 + TRUST[level] / 2 < Threshold().direction


# --- a table in which everything depends a little on everything ----------------------------------------


def weak(rows=20_000, size=8, seed=3):
    random = np.random.default_rng(seed)
    names, values = [f"x{i}" for i in range(size)], {}
    for i, name in enumerate(names):
        values[name] = random.standard_normal(rows)
        for j in range(i):
            effect = 0.6 if (i * j) % 3 == 1 or j == i - 3 else 0.05
            values[name] += effect * random.choice([-1, 1]) * values[names[j]]
        values[name] /= values[name].std()
    return values, Schema(tuple(Numeric(name, -6, 6) for name in names))


ORDER = Knowledge.of(tiers=[[f"x{i}"] for i in range(8)])
FIRST = Knowledge.of(tiers=[["x0", "x1"], [f"x{i}" for i in range(2, 8)]])


@pytest.fixture(scope="module")
def ledger(tmp_path_factory):
    path = tmp_path_factory.mktemp("weak") / "weak.ledger"
    values, schema = weak()
    return path, dpcurate.discover(values, schema, epsilon=5, ledger=path)


def test_directions_that_cannot_be_read_are_lines(ledger):
    found = ledger[1]
    assert found.directions.level == "unreadable"
    assert found.graph.lines
    for graph in (found.graph, found.at("best-f1").graph):
        assert not graph.arrows
    assert "Directions cannot be read here: shown as lines" in str(found)
    told = json.loads(json.dumps(found.to_dict()))["directions"]
    assert told == found.directions.to_dict()


def test_the_command_tells_both_verdicts(ledger, capsys):
    assert main(["discover", "--from-answers", str(ledger[0])]) == 0
    said = capsys.readouterr()
    assert "Directions cannot be read here: shown as lines." in said.out + said.err


def test_where_no_edge_is_drawn_nothing_is_said_of_directions(ledger):
    nothing = ledger[1].at(0.999999)
    assert not nothing.graph.edges
    assert "irections" not in "\n".join(nothing.verdict_lines)


def test_they_are_shown_when_asked_for_with_what_is_left_of_their_probability(ledger):
    found = ledger[1]
    most = 0.5 + TRUST["unreadable"] / 2
    assert all(1 - most <= edge.direction <= most for edge in found.edges)
    least = max(max(edge.direction, 1 - edge.direction) for edge in found.edges) - 0.001
    assert least > 0.51
    asked = found.at(0.5, direction=least)
    assert asked.graph.arrows
    assert all(least <= edge.direction <= most for edge in asked.edges if edge.directed)


def test_what_knowledge_decides_is_an_arrow_and_nothing_follows_from_colliders(ledger):
    path, found = ledger
    again = dpcurate.discover_from(path, knowledge=FIRST)
    assert again.directions.level == "unreadable"
    drawn = again.graph
    for a, b in combinations(again.schema.names, 2):
        if frozenset((a, b)) in drawn.edges:
            assert ((a, b) in drawn.arrows) == (FIRST.may_point(a, b) != FIRST.may_point(b, a))
    assert drawn.arrows
    assert drawn.lines
    assert again.fit is not None
    assert again.privacy.run == 0
    assert found.learned.released is not None


@pytest.mark.slow
def test_effects_along_them_are_not_identified_until_an_order_directs_all_edges(ledger):
    path, found = ledger
    for one in (found, found.at(0.5, direction=0.55), dpcurate.discover_from(path, knowledge=FIRST)):
        assert one.effects()
        assert {effect.state for effect in one.effects()} == {"not identified"}
        assert "directions cannot be read here; add an order" in str(one.effects())
        assert one.reported_effects.why_none
    ordered = dpcurate.discover_from(path, knowledge=ORDER)
    assert not ordered.graph.lines
    assert {effect.state for effect in ordered.effects()} == {"estimated"}


def test_a_model_along_them_tells_no_effects_but_one_along_a_graph_that_is_given_does(ledger):
    found, (values, schema) = ledger[1], weak()
    curator = Curator(values, schema, budget=Budget(rho=0.2))
    model = dpcurate.quantify(found, curator, share=0.1)
    assert model.effect("x0", "x3").state == "not identified"
    given = Dag.of(schema.names, [("x0", "x3")])
    assert dpcurate.quantify(found, curator, share=0.1, dag=given).effect("x0", "x3").state == "estimated"


@pytest.mark.slow
def test_the_marks_of_a_pag_that_cannot_be_read_are_circles(ledger):
    path = ledger[0]
    found = dpcurate.discover_from(path, latent=True)
    assert found.directions.level == "unreadable"
    for graph in (found.graph, found.at("best-f1").graph):
        assert set(graph.marks.values()) == {"circle"}
    assert "cannot be read" in str(found)
    most = 0.5 + TRUST["unreadable"] / 2
    assert max(max(ends) for ends in found.learned.marks.values()) <= most
    known = dpcurate.discover_from(path, latent=True, knowledge=FIRST)
    assert {b for (_, b), mark in known.graph.marks.items() if mark == "arrow"} <= set(known.schema.names[2:])
    assert "arrow" in known.graph.marks.values()


def test_a_fit_and_its_verdict_are_functions_of_the_released_answers(ledger):
    """The same answers, from a copy of the ledger and without the table, give the same."""
    path, found = ledger
    before = path.read_bytes()
    again = dpcurate.discover_from(path)
    assert (again.fit, again.directions, again.learned.direction) == (
        found.fit,
        found.directions,
        found.learned.direction,
    )
    assert path.read_bytes() == before


# --- what an arrow says ------------------------------------------------------------------------------


def test_an_arrow_says_that_a_causes_b_only_where_no_hidden_cause_explains_it():
    assert Edge("a", "b", True, 0.9, 0.95, 0.9).meaning == "a causes b"
    for cause in (None, 0.5):
        assert Edge("a", "b", True, 0.9, 0.95, cause).meaning == (
            "a causes b, or something not in the table drives both"
        )
    assert Edge("a", "b", False, 0.9, 0.5).meaning == "a and b are linked; the direction is open"


def test_the_mark_at_its_start_says_how_likely_a_cause_is():
    pag = Pag.of("abcd", [("a", "->", "b"), ("b", "o->", "c"), ("c", "<->", "d")])
    known = causes(Found(pag, Skeleton(pag.nodes, pag.edges), {}))
    assert known["a", "b"] == CAUSES["tail"]
    assert known["b", "c"] == CAUSES["circle"]
    assert known["c", "d"] == known["d", "c"] == known["c", "b"] == CAUSES["arrow"]


def test_a_common_cause_outside_the_table_is_not_excluded_and_a_cause_is_said():
    """a -> c <- h -> d <- b with h hidden: c and d are linked, and neither causes the other; e <- c is caused."""
    random = np.random.default_rng(0)
    a, b, h = random.standard_normal((3, 20_000))
    c, d = a + h + 0.7 * random.standard_normal(20_000), b + h + 0.7 * random.standard_normal(20_000)
    table = {"a": a, "b": b, "c": c, "d": d, "e": c + random.standard_normal(20_000)}
    schema = Schema(tuple(Numeric(name, -8, 8) for name in table))
    learned = MeasureOnce().fit(Curator(table, schema, budget=Budget(rho=5.0), insecure_seed=0))
    assert learned.directions is not None
    assert learned.directions.readable
    assert learned.causes["c", "e"] == CAUSES["tail"]
    assert CAUSES["arrow"] in (learned.causes["c", "d"], learned.causes["d", "c"])


def test_a_required_arrow_is_a_cause():
    graph = Cpdag.of("ab", ["ab"])
    schema = Schema(tuple(Numeric(name, 0, 1) for name in "ab"))
    privacy = Privacy(Budget(epsilon=1.0, delta=1e-10), "add-remove", "one row", 0.0, (), True)
    required = Knowledge.of(required_arrows=[("a", "b")])
    found = dpcurate.Discovery(
        FitResult(graph, graph.skeleton, {frozenset("ab"): 0.9}, {("a", "b"): 0.9}), privacy, "auto", schema, required
    )
    assert found.edges[0].cause == 1.0
    assert found.edges[0].meaning == "a causes b"


# --- triples ----------------------------------------------------------------------------------------


def test_triples_that_no_set_separates_say_nothing_if_evidence_asks_for_a_separation():
    rejected = Weighed(((),), [-34.5], [-132.0])
    assert rejected.log_odds > 90
    assert rejected.silenced.log_odds == 0.0


def test_a_graph_whose_directions_can_be_read_is_drawn_as_before():
    graph = Cpdag.of("ab", ["ab"])
    verdict = DirectionVerdict(level="readable", sentences=("", ""))
    learned = FitResult(graph, graph.skeleton, {frozenset("ab"): 0.9}, {("a", "b"): 0.9}, directions=verdict)
    assert graph_at(learned, Threshold()).arrows == {("a", "b")}

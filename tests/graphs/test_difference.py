"""What changed between two results, in values and in words."""

from __future__ import annotations

import json

import pytest

import dpcurate
from dpcurate.cli import main
from dpcurate.errors import FormatError
from dpcurate.graphs.formats import EdgeProbability, save
from dpcurate.graphs.graph import Cpdag, Dag
from dpcurate.graphs.pag import Pag
from dpcurate.result.comparison import NOISE_NOTE, Finding, difference, load_result

NAMES = tuple("abcdef")


def result(arrows="", lines="", probabilities=None, name=""):
    """Edges as pairs of letters; probabilities as {"ab": (linked, direction)}."""
    graph = Cpdag.of(NAMES, arrows.split(), lines.split())
    return Finding.of(graph, {tuple(e): EdgeProbability(*p) for e, p in (probabilities or {}).items()}, name)


def kinds(found):
    return [(c.kind, c.before, c.after) for c in found.changes]


def test_each_kind_of_change_is_told_once():
    first = result(arrows="ab cd ae", lines="bc de")
    second = result(arrows="ba bc ae", lines="cd df")
    assert kinds(difference(first, second)) == [
        ("appeared", "", "d -- f"),
        ("vanished", "d -- e", ""),
        ("turned", "a -> b", "b -> a"),
        ("became arrows", "b -- c", "b -> c"),
        ("became lines", "c -> d", "c -- d"),
    ]
    assert difference(first, second).same == 1


def test_the_other_way_round_is_the_opposite():
    first, second = result(arrows="ab", lines="cd"), result(arrows="ab ef")
    there, back = difference(first, second), difference(second, first)
    assert [c.after for c in there.appeared] == [c.before for c in back.vanished] == ["e -> f"]
    assert [c.before for c in there.vanished] == [c.after for c in back.appeared] == ["c -- d"]


def test_probabilities_that_moved_are_told_of_edges_drawn_alike_and_of_pairs_not_drawn():
    first = result("ab cd", "", {"ab": (0.7, 0.9), "cd": (0.9, 0.99), "ef": (0.1, 0.5)})
    second = result("ab cd", "", {"ab": (0.95, 0.88), "cd": (0.88, 0.81), "ef": (0.4, 0.9)})
    found = difference(first, second)
    assert list(map(str, found.surer)) == ["a -> b  (P(edge) 0.70 to 0.95)", "e, f (not drawn)  (P(edge) 0.10 to 0.40)"]
    assert list(map(str, found.less_sure)) == ["c -> d  (P(c -> d) 0.99 to 0.81)"]
    assert found.same == 2
    assert len(difference(first, second, least=0.01).less_sure) == 3


def test_a_direction_is_told_of_the_arrow_as_it_is_drawn_now():
    found = difference(result("ab", "", {"ab": (0.9, 0.85)}), result("ba", "", {"ba": (0.9, 0.8)}))
    assert str(found.turned[0]) == "b -> a, was a -> b  (P(edge) 0.90, P(b -> a) 0.15 to 0.80)"


def test_of_a_line_the_likelier_way_is_told():
    found = difference(result("", "ab", {"ab": (0.9, 0.5)}), result("", "ab", {"ab": (0.9, 0.3)}))
    assert [str(c) for c in found.surer] == ["a -- b  (P(b -> a) 0.50 to 0.70)"]


def test_columns_of_one_alone_are_named_and_not_compared():
    first = Finding(Dag.of("abx", ["ab", "xa"]), {})
    second = Finding(Dag.of("aby", ["ab", "yb"]), {})
    found = difference(first, second)
    assert not found.changes
    assert found.lines[1:] == (
        "only the first has x: edges with them are not compared",
        "only the second has y: edges with them are not compared",
        "1 edge is the same in both",
    )


def test_marks_of_a_pag():
    first, second = Pag.of("ab", [("a", "o->", "b")]), Pag.of("ab", [("a", "<->", "b")])
    assert kinds(difference(Finding(first, {}), Finding(second, {}))) == [("other marks", "a o-> b", "a <-> b")]


def test_chance_is_named_only_where_the_numbers_are_of_two_runs():
    known = {"ab": (0.6, 0.9)}
    assert NOISE_NOTE not in difference(result("ab", "", known), result("", "", known)).lines
    assert NOISE_NOTE in difference(result("ab", "", known), result("", "", {"ab": (0.4, 0.9)})).lines


@pytest.fixture(scope="module")
def two():
    asia = dpcurate.networks.load("asia")
    rows = asia.sample(5000, seed=1)
    return [dpcurate.fit(_curator(rows, asia, seed), "auto") for seed in (1, 2)]


def _curator(rows, network, seed):
    budget = dpcurate.Budget(epsilon=0.5, delta=1e-10)
    return dpcurate.Curator(rows, network.schema, budget=budget, insecure_seed=seed)


def test_findings_reports_and_graphs_say_the_same(two, tmp_path, capsys):
    first, second = two
    direct = first.diff(second)
    assert direct.changes
    for i, found in enumerate(two):
        (tmp_path / str(i)).mkdir()
        found.report(tmp_path / str(i) / "report.json")
        save(found.graph, tmp_path / f"{i}.csv", found.probabilities)
    report = tmp_path / "1" / "report.json"
    assert first.diff(report).changes == direct.changes
    assert main(["diff", str(tmp_path / "0"), str(report)]) == 0
    assert capsys.readouterr().out.split("\n")[1:-1] == list(direct.lines[1:])
    drawn = {c.kind: c for c in direct.changes if c.kind not in ("surer", "less sure")}
    from_graphs = difference(load_result(tmp_path / "0.csv"), load_result(tmp_path / "1.csv"))
    assert set(drawn) == {c.kind for c in from_graphs.changes if c.kind not in ("surer", "less sure")}
    assert from_graphs.same == direct.same


def test_another_cut_of_a_finding_moves_no_probability(two):
    found = two[0].at(0.05).diff(two[0].at(0.95))
    assert found.vanished
    assert not found.surer
    assert not found.less_sure


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.json", "{", "not JSON"),
        ("a.json", '{"graph": {"kind": "dag"}}', "nodes"),
        ("a.json", json.dumps({"graph": {"nodes": ["a"]}, "pairs": [{"a": "a", "b": "z"}]}), "two columns"),
        ("a.html", "", "for people"),
        ("a.doc", "", "suffix"),
    ],
)
def test_what_is_no_result_is_refused_in_a_sentence(name, text, said, tmp_path):
    (tmp_path / name).write_text(text)
    with pytest.raises(FormatError, match=said):
        load_result(tmp_path / name)

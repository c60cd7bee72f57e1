"""Every format both ways, names that try to break it, and files that are broken."""

from __future__ import annotations

import csv
import io
import json
import sys
from enum import Enum
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_graph import random_dag

from counting import steps
from dpcurate.errors import DpcurateError, FormatError
from dpcurate.graphs import formats, interop
from dpcurate.graphs.formats import (
    FORMATS,
    EdgeProbability,
    dumps,
    load,
    load_probabilities,
    loads,
    loads_probabilities,
    save,
)
from dpcurate.graphs.formats.graph_draft import GRAPH_KINDS
from dpcurate.graphs.graph import Cpdag, Dag, Graph, Pag, Skeleton, ordered_edges

NASTY = (
    "plain", "a b", " lead", "trail ", 'quo"te', "'tick", "''", "back\\slash", "end\\", '\\"', "comma,",
    "semi;", "ünï→漢", "<script>alert(1)</script>", "&amp;", "=1+1", "+1", "-1", "@x", "'=1", "''=1", "new\nline",
    "tab\t", "\r", "graph", "node", "-->", "a --> b", "1. a --> b", "[x]", "{y}", "# no", "// no", "</graphml>",
    "\u2028sep", "42", "\uff1dwide", "dd", "b dd", "kind: dag", "Graph Nodes:", "%41", "null", "\\N", "%", ";",
)  # fmt: skip
WRITTEN = [name for name in FORMATS if name not in ("bif", "gml")]
NO_SKELETON = {"dagitty"}
# What the format itself cannot hold; the writer must say so.
DAGITTY_CANNOT = {"end\\", '\\"', "new\nline", "tab\t", "\r"}

GRAPHS: list[Graph] = [
    Dag.of("abcd", [("d", "a"), ("a", "b")]),
    Dag.of("abc"),
    Dag.of(()),
    Cpdag.of("dcba", [("a", "b"), ("c", "b")], ["bd"]),
    Cpdag.of("abc", [("a", "b")]),
    Cpdag.of("abc", [], ["ab", "bc"]),
    Skeleton.of("cab", ["ab", "bc"]),
    Skeleton.of("ab"),
    Pag.of("dcab", [("a", "->", "b"), ("b", "<->", "c"), ("d", "o->", "a"), ("c", "o-o", "d"), ("b", "o--", "d")]),
    Pag.of("abc", [("b", "->", "a"), ("c", "--", "b")]),
    Pag.of("ab"),
]


PAGS = [graph for graph in GRAPHS if isinstance(graph, Pag)]


def nasty_graphs(names: tuple[str, ...]) -> list[Graph]:
    arrows, lines = list(pairwise(names)), list(zip(names, names[2:], strict=False))
    marked = [(b, "o->", a) for a, b in lines]
    pag = Pag.of(names, [(a, "<->", b) for a, b in arrows] + marked)
    return [Dag.of(names, arrows), Cpdag.of(names, arrows, lines), Skeleton.of(names, lines), pag]


@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.parametrize("graph", GRAPHS, ids=str)
def test_round_trip(graph: Graph, name: str, tmp_path: Path) -> None:
    if isinstance(graph, Skeleton) and name in NO_SKELETON:
        with pytest.raises(FormatError, match="no skeletons"):
            dumps(graph, name)
        return
    assert loads(dumps(graph, name), name) == graph
    for suffix in FORMATS[name].suffixes:
        save(graph, tmp_path / f"graph{suffix}")
        assert load(tmp_path / f"graph{suffix}") == graph


@pytest.mark.parametrize("name", WRITTEN)
def test_nasty_names_round_trip(name: str, tmp_path: Path) -> None:
    kept = tuple(x for x in NASTY if name != "dagitty" or x not in DAGITTY_CANNOT)
    for graph in nasty_graphs(kept):
        if not (isinstance(graph, Skeleton) and name in NO_SKELETON):
            path = tmp_path / f"graph{FORMATS[name].suffixes[0]}"
            save(graph, path)
            assert load(path) == graph


@pytest.mark.parametrize("name", sorted(DAGITTY_CANNOT))
def test_dagitty_refuses_what_it_cannot_hold(name: str) -> None:
    with pytest.raises(FormatError, match="DAGitty text cannot hold the name"):
        dumps(Dag.of([name]), "dagitty")


def test_graphml_refuses_what_xml_cannot_hold() -> None:
    with pytest.raises(FormatError, match="XML cannot hold the name"):
        dumps(Dag.of(["a\x01"]), "graphml")


any_text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)
tricky_text = st.text(st.sampled_from("ab\"'\\;,-<>=+@[]{}&#% \n\t.o"), min_size=1, max_size=8)


@settings(max_examples=60, deadline=None)
@pytest.mark.parametrize("name", WRITTEN)
@given(names=st.lists(any_text | tricky_text, min_size=3, max_size=6, unique=True))
def test_any_name_round_trips_or_is_refused(name: str, names: list[str]) -> None:
    for graph in nasty_graphs(tuple(names)):
        try:
            text = dumps(graph, name)
        except FormatError:
            assert name in ("dagitty", "graphml")
            continue
        assert loads(text, name) == graph


@settings(max_examples=150, deadline=None)
@pytest.mark.parametrize("name", WRITTEN)
@given(data=st.data())
def test_damaged_text_gives_a_format_error_or_a_graph(name: str, data: st.DataObject) -> None:
    text = dumps(GRAPHS[3], name)
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 10)))
    damaged = text[:start] + data.draw(tricky_text | st.just("")) + text[end:]
    line = None
    try:
        assert isinstance(loads(damaged, name), Graph)
    except FormatError as error:
        line = error.line
    assert line is None or 1 <= line <= damaged.count("\n") + 1


MALFORMED = [
    ("json", '{"nodes": ["a"],\n "arrows": [}', 2, "not JSON"),
    ("json", "[]", 1, "expected an object"),
    ("json", '{"nodes": "a"}', 1, "must hold lists of names"),
    ("json", '{"kind": "dag",\n"nodes": ["a", "a"]}', 2, "listed twice"),
    ("json", '{"nodes": ["abc", "b"],\n"arrows": [\n["abc", "b"],\n["abd", "b"]]}', 4, "did you mean 'abc'"),
    ("json", '{"nodes": ["a", "b"],\n"arrows": [["a"]]}', 2, "pairs of names"),
    ("json", '{"nodes": ["a", "b"],\n"lines": 3}', 2, "must be a list"),
    ("json", '{"nodes": ["a", "b"],\n"kind": "mag"}', 2, "one of dag, cpdag, skeleton"),
    ("json", '{"nodes": ["a", "b"],\n"lines": [],\n"separators": [1]}', 3, '"pair" and "given"'),
    (
        "json",
        '{"kind": "skeleton", "nodes": ["a", "b"],\n"separators": [{"pair": ["a", "b"], "given": ["a"]}]}',
        2,
        "holds one of the two",
    ),
    ("json", '{"kind": "skeleton", "nodes": ["a", "b"],\n"arrows": [["a", "b"]]}', 2, "has no arrow"),
    ("json", "[" * 100_000, 1, "nested too deeply"),
    ("csv", "", 1, "empty"),
    ("csv", "a,b\nc,d\n", 1, "first row must be"),
    ("csv", "from,to,edge\na,b,arrow\nb,a\n", 3, "2 cells where the first row has 3"),
    ("csv", "from,to\na,b\nb\n", 3, "1 cells where the first row has 2"),
    ("csv", 'from,to\n"a\nb",c\nc,c\n', 4, "with itself"),
    ("csv", 'from,to\n"a,b\n', 2, "not CSV"),
    ("csv", "from,to,edge\na,b,spouse\n", 2, "arrow, line or node"),
    ("csv", "from,to,edge\n,,mag\n", 2, "kind of graph"),
    ("csv", "from,to,edge\na,,arrow\n", 2, "empty name"),
    ("csv", "from,to\na,b\nb,c\nc,a\nc,d\n", 4, "cycle"),
    ("csv", "from,to,edge\na,,node\na,,node\n", 3, "listed twice"),
    ("csv", "from,to,edge\n,,dag\na,b,line\n", 3, "a DAG has no undirected edge"),
    ("csv", "from,to,edge\n,,skeleton\na,b,arrow\n", 3, "a skeleton has no arrow"),
    ("csv", "from,to,edge\na,b,arrow\na,b,line\n", 3, "a second edge"),
    ("csv", "from,to,edge\na,b,line\nb,a,line\n", 3, "a second edge"),
    ("dot", "tree {}", 1, "expected graph or digraph"),
    ("dot", "digraph {\n a -> b", 2, "expected a name"),
    ("dot", 'digraph {\n "a -> b;\n}', 2, "never ends"),
    ("dot", "digraph {\n a -> b;\n b -- c;\n}", 3, "written ->, not --"),
    ("dot", "digraph {\n a -> b [dir=both, arrowtail=box];\n}", 2, "one of none, normal, odot"),
    ("dot", "digraph {\n a -> b;\n a -> b;\n}", 3, "second edge"),
    ("dot", "digraph { a }\n}", 2, "end of the text"),
    ("dot", "digraph {\n <b>html</b> }", 2, "unexpected '<'"),
    ("dot", "digraph {\n a -> b [dir=none\n}", 3, "expected a name"),
    ("dot", "digraph " + "{" * 100_000, 1, "nested more than"),
    ("dot", "digraph { a -> b\nb -> c\nc -> a }", 3, "cycle"),
    ("dot", 'digraph {\n"a"' + '+"a"' * 5000 + "-> }", 2, "expected a name"),
    ("graphml", "<graphml>\n<graph>\n</graphml>", 3, "not XML"),
    ("graphml", "<html>\n</html>", 1, "expected <graphml>"),
    ("graphml", "<graphml><graph>\n<node/></graph></graphml>", 2, "without its id"),
    (
        "graphml",
        '<graphml><graph>\n<node id="a"/>\n<edge source="a" target="b"/></graph></graphml>',
        3,
        "unknown",
    ),
    ("graphml", "<graphml><graph>\n</graph><graph/></graphml>", 2, "second or nested"),
    ("graphml", "<graphml><graph>\n<hyperedge/></graph></graphml>", 2, "hyperedge"),
    ("graphml", '<!DOCTYPE x [\n<!ENTITY a "aaa">]>\n<graphml/>', 1, "document type"),
    ("graphml", '<graphml><graph>\n<node id="a"/>\n<node id="a"/></graph></graphml>', 3, "listed twice"),
    (
        "graphml",
        '<graphml><graph edgedefault="directed"><node id="a"/>\n<node id="b"/>'
        '<edge source="a" target="b" directed="false"/></graph></graphml>',
        None,
        "not a graph that networkx reads: directed=false edge",
    ),
    ("graphml", '<graphml><key id="k" for="graph" attr.name="n"/><graph>\n<data/></graph></graphml>', 2, "its key"),
    ("graphml", "<graphml>" + "<x>" * 1_000_000, 1, "nested more than 50 deep"),
    ("dagitty", "mag { a <-> b }", 1, "expected dag or pdag or pag"),
    ("dagitty", "dag {\na -> b\nb <-> c\n}", 3, "only a PAG has edges with circles or two heads"),
    ("dagitty", "dag {\na -- b\n}", 2, "write pdag"),
    ("dagitty", "dag {\na -> b\nb -> a\n}", 3, "cycle"),
    ("tetrad", "", 1, "no 'Graph Nodes:'"),
    ("tetrad", "hello\n", 1, "expected 'Graph Nodes:'"),
    ("tetrad", "Graph Nodes:\nabc;b\n\nGraph Edges:\n1. abd --> b\n", 5, "did you mean 'abc'"),
    ("tetrad", "Graph Nodes:\na;b\n\nGraph Edges:\n1. a <-- b\n2. a o-> b\n", 6, "a second edge"),
    ("tetrad", "Graph Nodes:\na;b\n\nGraph Edges:\n1. a ->o b\n", 5, "expected an edge such as"),
    ("tetrad", "Graph Nodes:\na;b\n\nGraph Edges:\na b\n", 5, "expected an edge"),
    ("tetrad", 'Graph Nodes:\na;"b\n', 2, "JSON string"),
    ("tetrad", "Graph Nodes:\na;;b\n", 2, "empty name"),
    ("tetrad", "Graph Nodes:\na;b\nGraph Edges:\n1. a --> b\n2. b --> a\n", 5, "cycle"),
]


@pytest.mark.parametrize(("name", "text", "line", "message"), MALFORMED, ids=lambda x: str(x)[:30])
def test_malformed_text_gives_the_line(name: str, text: str, line: int | None, message: str) -> None:
    with pytest.raises(FormatError, match=message) as caught:
        loads(text, name)
    assert caught.value.line == line
    assert line is None or f"line {line}" in str(caught.value)


def test_every_format_has_malformed_cases() -> None:
    assert {case[0] for case in MALFORMED} == set(WRITTEN)


# --- what other programs write ---


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("csv", "source,target\nb,a\n\na,c\n", Dag.of("bac", [("b", "a"), ("a", "c")])),
        ("csv", '\ufefffrom,to\r\n"x,y",z\r\n', Dag.of(["x,y", "z"], [("x,y", "z")])),
        ("dot", "strict digraph G { a -> b -> c; d }", Dag.of("abcd", [("a", "b"), ("b", "c")])),
        ("dot", "digraph { a -> {b c} [color=red] }", Dag.of("abc", [("a", "b"), ("a", "c")])),
        ("dot", "digraph { rankdir=LR; node [shape=box, x]; a:n -> b:s; subgraph {a} }", Dag.of("ab", [("a", "b")])),
        ("dot", "/* x */ graph { // y\n# z\n a -- b }", Skeleton.of("ab", ["ab"])),
        ("dot", "digraph { edge [dir=none]; a -> b }", Cpdag.of("ab", [], ["ab"])),
        ("dot", "digraph { a -> b; b -> a; c -> a }", Cpdag.of("abc", [("c", "a")], ["ab"])),
        ("dot", "digraph { a -> b [dir=back] }", Dag.of("ab", [("b", "a")])),
        ("dot", "digraph { subgraph s { edge [dir=none]; a } a -> b }", Dag.of("ab", [("a", "b")])),
        ("dot", 'digraph { "a" + "b" -> "gr\\\naph" }', Dag.of(["ab", "graph"], [("ab", "graph")])),
        (
            "dagitty",
            'dag {\nA [selected,pos="-2.2,-1.5"]\nB [outcome]\n"C d" -> B [beta=".3"]\nB <- A\n}',
            Dag.of(["A", "B", "C d"], [("C d", "B"), ("A", "B")]),
        ),
        ("dagitty", "pdag { x -> y y -- z }", Cpdag.of("xyz", [("x", "y")], ["yz"])),
        ("dagitty", "dag{x->{y z}}", Dag.of("xyz", [("x", "y"), ("x", "z")])),
        (
            "tetrad",
            "Graph Nodes:\nX1,X2,X3\n\nGraph Edges:\n1. X1 --- X2\n2. X3 <-- X2 dd nl\n\n"
            "Graph Attributes:\nBIC: -3\n",
            Cpdag.of(["X1", "X2", "X3"], [("X2", "X3")], [("X1", "X2")]),
        ),
        (
            "tetrad",
            "Graph Nodes:\r\nmy var;other\r\n\r\nGraph Edges:\r\n1. my var --> other\r\n",
            Dag.of(["my var", "other"], [("my var", "other")]),
        ),
        (
            "graphml",
            '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
            '<key id="v" for="node" attr.name="name" attr.type="string"/>'
            '<graph edgedefault="directed"><node id="n0"><data key="v">A</data></node>'
            '<node id="n1"><data key="v">B</data></node><edge source="n1" target="n0"/></graph></graphml>',
            Dag.of("AB", [("B", "A")]),
        ),
        ("json", '{"nodes": ["a", "b"], "lines": [["a", "b"]]}', Cpdag.of("ab", [], ["ab"])),
    ],
)  # fmt: skip
def test_what_others_write_is_read(name: str, text: str, expected: Graph, tmp_path: Path) -> None:
    path = tmp_path / f"graph{FORMATS[name].suffixes[0]}"
    path.write_bytes(text.encode())
    assert load(path) == expected


def test_the_kind_can_be_said() -> None:
    assert loads("from,to\na,b\n", "csv", kind="cpdag") == Cpdag.of("ab", [("a", "b")])
    assert loads("digraph { a -> b [dir=none] }", "dot", kind="skeleton") == Skeleton.of("ab", ["ab"])
    with pytest.raises(FormatError, match="a DAG has no undirected edge"):
        loads("graph { a -- b }", "dot", kind="dag")
    with pytest.raises(FormatError, match="one of dag, cpdag, skeleton"):
        loads("from,to\n", "csv", kind="tree")  # type: ignore[arg-type]


# --- how sure the edges are ---

CARRIES = ["json", "csv", "dot", "graphml"]
probabilities = st.none() | st.floats(0, 1) | st.sampled_from([0.0, 1.0, 1e-7, 5e-324])


@settings(max_examples=60, deadline=None)
@pytest.mark.parametrize("name", CARRIES)
@given(data=st.data())
def test_what_is_sure_comes_back_to_the_last_digit(name: str, data: st.DataObject) -> None:
    graph = data.draw(st.sampled_from([g for g in GRAPHS if g.edges] + nasty_graphs(NASTY[:12])))
    ends = [(a, b) for a, _, b in ordered_edges(graph)]
    numbers = st.tuples(*[probabilities] * (6 if isinstance(graph, Pag) else 2))
    known = {pair: EdgeProbability(*data.draw(numbers)) for pair in ends}
    text = dumps(graph, name, known)
    assert loads(text, name) == graph
    assert loads_probabilities(text, name) == {pair: one for pair, one in known.items() if one != EdgeProbability()}
    assert loads_probabilities(dumps(graph, name), name) == {}


@pytest.mark.parametrize("name", CARRIES)
def test_what_is_sure_is_in_files_and_where_others_look(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"graph{FORMATS[name].suffixes[0]}"
    probabilities = {
        ("a", "b"): EdgeProbability(0.97, 0.91),
        ("c", "b"): EdgeProbability(0.6),
        ("d", "b"): EdgeProbability(0.8, 0.45),
    }
    save(GRAPHS[3], path, probabilities)
    assert load_probabilities(path) == probabilities
    assert load(path) == GRAPHS[3]


@pytest.mark.parametrize("name", CARRIES)
def test_how_sure_the_marks_of_a_pag_are_is_read_from_either_end(name: str) -> None:
    probability = EdgeProbability(0.9, None, 0.25, 0.5, 0.0, 1.0)
    pag = Pag.of("ab", [("b", "o->", "a")])
    assert loads_probabilities(dumps(pag, name, {("b", "a"): probability}), name) == {("b", "a"): probability}
    assert probability.turned() == EdgeProbability(0.9, None, 0.0, 1.0, 0.25, 0.5)
    plain = dumps(pag, name, {("b", "a"): EdgeProbability(0.9)})
    assert "tail_from" in dumps(pag, name, {("b", "a"): probability})
    assert "tail_from" not in plain


def test_networkx_reads_how_sure_an_edge_is_each_way() -> None:
    probabilities = {("a", "b"): EdgeProbability(0.97, 0.91), ("d", "b"): EdgeProbability(0.8, 0.25)}
    for text, parse in (("graphml", nx.parse_graphml), ("gml", nx.parse_gml)):
        theirs = parse(dumps(GRAPHS[3], text, probabilities))
        assert theirs.edges["a", "b"] == {"linked": 0.97, "direction": 0.91}
        assert theirs.edges["d", "b"] == {"linked": 0.8, "direction": 0.25}
        assert theirs.edges["b", "d"] == {"linked": 0.8, "direction": 0.75}
        assert theirs.edges["c", "b"] == {}


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("csv", "from,to,edge,linked,direction\na,b,arrow,1.2,\n", 2),
        ("csv", "from,to,edge,linked,direction\na,b,arrow,,high\n", 2),
        ("dot", "digraph {\n\na -> b [linked=nan] }", 3),
        ("json", '{"nodes":["a","b"], "arrows":[["a","b"]],\n"chances":[{"from":"a", "to":"b", "linked":[]}]}', 2),
    ],
)  # fmt: skip
def test_a_number_that_is_no_probability_is_refused_only_when_asked_for(name: str, text: str, line: int) -> None:
    assert loads(text, name) == Dag.of("ab", [("a", "b")])
    with pytest.raises(FormatError, match="is a probability between 0 and 1, not") as caught:
        loads_probabilities(text, name)
    assert caught.value.line == line


def test_tetrad_has_chances_as_it_writes_them_itself() -> None:
    graph = Cpdag.of("abc", [("a", "b")], ["bc"])
    text = dumps(graph, "tetrad", {("a", "b"): EdgeProbability(0.9, 0.8), ("b", "c"): EdgeProbability(0.6)})
    assert "1. a --> b [a --> b]:0.7200;[a <-- b]:0.1800;[no edge]:0.1000;\n" in text
    assert "2. b --- c [edge]:0.6000;[no edge]:0.4000;\n" in text
    assert loads(text, "tetrad") == graph


@pytest.mark.parametrize("graph", nasty_graphs((*NASTY, "x [y];z")), ids=lambda graph: type(graph).__name__)
def test_chances_in_tetrads_text_hide_no_name(graph: Graph) -> None:
    probabilities = {(a, b): EdgeProbability(0.9, 0.8) for a, _, b in ordered_edges(graph)}
    assert loads(dumps(graph, "tetrad", probabilities), "tetrad") == graph


@pytest.mark.parametrize(
    ("probabilities", "said"),
    [("[1]", "an object with the names"), ('[{"from": "a"}]', "an object with the names"), ("1", "must be a list"),
     ('[{"from": "a", "to": "c"}]', "unknown node 'c'")],
)  # fmt: skip
def test_damaged_chances_in_json(probabilities: str, said: str) -> None:
    with pytest.raises(FormatError, match=said):
        loads('{"nodes": ["a", "b"], "chances": ' + probabilities + "}", "json")


def test_a_line_written_the_other_way_round_is_turned() -> None:
    text = "digraph { a; b; b -> a [dir=none, linked=0.5, direction=0.25] }"
    assert loads_probabilities(text, "dot") == {("a", "b"): EdgeProbability(0.5, 0.75)}
    text = "digraph { a -> b [dir=back, direction=0.9] }"
    assert loads_probabilities(text, "dot") == {("b", "a"): EdgeProbability(None, 0.9)}


# --- what other programs read ---


@pytest.mark.parametrize("graph", nasty_graphs(tuple(x for x in NASTY if x != "\r")), ids=GRAPH_KINDS)
def test_networkx_reads_our_graphml_and_gml(graph: Graph) -> None:
    for found in (
        nx.parse_graphml(dumps(graph, "graphml")),
        nx.parse_gml(dumps(graph, "gml"), label="label"),
    ):
        assert list(found.nodes) == list(graph.nodes)
        assert nx.utils.edges_equal(found.edges, graph.to_networkx().edges, directed=found.is_directed())
        assert found.graph["kind"] == type(graph).__name__.lower()


@pytest.mark.parametrize("graph", GRAPHS, ids=str)
def test_we_read_the_graphml_of_networkx(graph: Graph) -> None:
    theirs = graph.to_networkx()
    assert loads("\n".join(nx.generate_graphml(theirs)), "graphml") == graph


def test_markup_in_names_stays_text() -> None:
    name = '"><script>alert(1)</script>'
    root = ElementTree.fromstring(dumps(Dag.of([name]), "graphml"))
    (node,) = root.iter("{http://graphml.graphdrawing.org/xmlns}node")
    assert node.get("id") == name
    assert "<script" not in dumps(Dag.of([name]), "graphml")
    # In DOT an HTML label starts with a bare <, so every < must be inside a string.
    assert dumps(Dag.of(["<b>"]), "dot").splitlines()[2] == '  "<b>";'


def test_no_csv_cell_can_be_a_formula() -> None:
    names = ("=1+1", "+1", "-1", "@x", "\tx", "\rx", "'=1", "\uff1dx", "->")
    for graph in nasty_graphs(names):
        cells = [cell for row in csv.reader(io.StringIO(dumps(graph, "csv"), newline="")) for cell in row]
        assert "'=1+1" in cells
        assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d"))]


def test_dumps_is_the_same_for_equal_graphs() -> None:
    first = Cpdag.of("abc", [("a", "b"), ("c", "b")], ["ac"])
    second = Cpdag.of("abc", [("c", "b"), ("a", "b")], ["ca"])
    for name in WRITTEN:
        assert dumps(first, name) == dumps(second, name)


def test_separators_survive_in_json() -> None:
    skeleton = Skeleton.of("abcd", ["ab"], {frozenset("cd"): ("b", "a"), frozenset("ac"): ()})
    assert loads(dumps(skeleton, "json"), "json") == skeleton
    assert json.loads(dumps(skeleton, "json"))["separators"][0] == {"pair": ["a", "c"], "given": []}


def test_reading_grows_with_the_text() -> None:
    small, large = (random_dag(size, 1, degree=10) for size in (50, 400))
    for name in WRITTEN:
        few, many = dumps(small, name), dumps(large, name)
        assert loads(many, name) == large
        assert steps(lambda: loads(many, name)) / len(many) < 2 * steps(lambda: loads(few, name)) / len(few)  # noqa: B023


# --- the front ---


def test_unknown_formats_and_suffixes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="unknown format 'jsn'; did you mean 'json'"):
        loads("", "jsn")
    with pytest.raises(FormatError, match=r"no format has the suffix '\.docx'.*\.json"):
        save(GRAPHS[0], tmp_path / "x.docx")
    assert not (tmp_path / "x.docx").exists()
    with pytest.raises(FormatError, match="no format has the suffix ''"):
        load(tmp_path / "x")


def test_bytes_that_are_no_text_give_the_line(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(b"from,to\na,\xff\n")
    with pytest.raises(FormatError, match="line 2: not UTF-8"):
        load(tmp_path / "x.csv")


def test_a_name_that_is_no_text_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="no character"):
        save(Dag.of(["\ud800"]), tmp_path / "x.json")
    assert not (tmp_path / "x.json").exists()


def test_gml_is_written_only() -> None:
    with pytest.raises(FormatError, match=r"networkx.read_gml .* from_networkx, or save the graph as graphml"):
        loads(dumps(GRAPHS[0], "gml"), "gml")


def test_bif_is_read_for_real(tmp_path: Path) -> None:
    text = (
        "network t { }\nvariable a { type discrete [ 2 ] { y, n }; }\n"
        "variable b { type discrete [ 2 ] { y, n }; }\n"
        "probability ( a ) { table 0.5, 0.5; }\nprobability ( b | a ) { (y) 0.1, 0.9; (n) 0.3, 0.7; }\n"
    )
    (tmp_path / "t.bif").write_text(text)
    assert load(tmp_path / "t.bif") == Dag.of("ab", [("a", "b")]) == formats.read_bif_structure(text)


def test_bif_is_not_written() -> None:
    with pytest.raises(FormatError, match="probability tables"):
        dumps(GRAPHS[0], "bif")


# --- objects of other libraries ---


@pytest.mark.parametrize("graph", GRAPHS, ids=str)
def test_networkx_round_trip(graph: Graph) -> None:
    assert interop.from_networkx(graph.to_networkx()) == graph


def test_any_networkx_graph_is_read() -> None:
    assert interop.from_networkx(nx.DiGraph([(1, 2), (2, 3)])) == Dag.of("123", [("1", "2"), ("2", "3")])
    assert interop.from_networkx(nx.DiGraph([(1, 2), (2, 1)])) == Cpdag.of("12", [], ["12"])
    assert interop.from_networkx(nx.path_graph(2)) == Skeleton.of("01", ["01"])
    with pytest.raises(FormatError, match="cycle"):
        interop.from_networkx(nx.DiGraph([(1, 2), (2, 3), (3, 1)]))
    with pytest.raises(FormatError, match="listed twice"):
        interop.from_networkx(nx.DiGraph([(1, "1")]))


@pytest.mark.parametrize("graph", [g for g in GRAPHS if g.edges], ids=str)
def test_adjacency_round_trip(graph: Graph) -> None:
    kind: Any = type(graph).__name__.lower()
    assert interop.from_adjacency(graph.adjacency(), graph.nodes, kind) == graph


def test_adjacency_matrices_are_checked() -> None:
    weights = np.array([[0.0, -0.3], [0.0, 0.0]])
    assert interop.from_adjacency(weights, "ab") == Dag.of("ab", [("a", "b")])
    with pytest.raises(FormatError, match=r"shape \(2, 2\) for 3 nodes"):
        interop.from_adjacency(weights, "abc")
    with pytest.raises(FormatError, match="with itself"):
        interop.from_adjacency(np.eye(2), "ab")


class End(Enum):
    TAIL = -1
    ARROW = 1
    CIRCLE = 2


class FakeNode:
    def __init__(self, name: str) -> None:
        self.name = name

    def get_name(self) -> str:
        return self.name


class FakeGeneralGraph:
    """causal-learn's convention: [j, i] = 1 and [i, j] = -1 is i --> j."""

    def __init__(self, nodes: list[FakeNode]) -> None:
        self.nodes, self.graph = nodes, np.zeros((len(nodes), len(nodes)), dtype=int)

    def get_nodes(self) -> list[FakeNode]:
        return self.nodes

    def add_edge(self, edge: tuple[FakeNode, FakeNode, End, End]) -> None:
        i, j = self.nodes.index(edge[0]), self.nodes.index(edge[1])
        self.graph[i, j], self.graph[j, i] = edge[2].value, edge[3].value


@pytest.fixture
def causallearn(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = {"GraphNode": FakeNode, "Endpoint": End, "Edge": lambda *a: a, "GeneralGraph": FakeGeneralGraph}
    for name, part in parts.items():
        module = ModuleType(name)
        setattr(module, name, part)
        monkeypatch.setitem(sys.modules, f"causallearn.graph.{name}", module)


@pytest.mark.usefixtures("causallearn")
def test_causallearn_round_trip() -> None:
    for graph in (random_dag(6, 1), random_dag(6, 1).cpdag(), Cpdag.of("dcba", [("a", "d")], ["bc"]), *PAGS):
        kind: Any = type(graph).__name__.lower()
        assert interop.from_causallearn(interop.to_causallearn(graph), kind) == graph
    theirs = interop.to_causallearn(Dag.of("ab", [("a", "b")]))
    assert theirs.graph.tolist() == [[0, -1], [1, 0]]
    assert interop.from_causallearn(type("CausalGraph", (), {"G": theirs})()) == Dag.of("ab", [("a", "b")])


def test_the_matrices_of_pcalg_and_causallearn_say_the_same() -> None:
    pag = Pag.of("abcd", [("a", "->", "b"), ("b", "<->", "c"), ("d", "o->", "c")])
    assert pag.adjacency().tolist() == [[0, 2, 0, 0], [3, 0, 2, 0], [0, 2, 0, 1], [0, 0, 2, 0]]
    theirs = FakeGeneralGraph([FakeNode(name) for name in "abcd"])
    theirs.graph = np.array([[0, -1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 2, 0]])
    assert interop.from_causallearn(theirs) == pag
    for graph in PAGS:
        assert interop.from_adjacency(graph.adjacency(), graph.nodes, "pag") == graph


def test_causallearn_unknown_marks_are_refused() -> None:
    theirs = FakeGeneralGraph([FakeNode("a"), FakeNode("b")])
    theirs.graph[0, 1] = theirs.graph[1, 0] = 7
    with pytest.raises(FormatError, match="between 'a' and 'b' has the marks"):
        interop.from_causallearn(theirs)


class FakePdag(nx.DiGraph):  # type: ignore[misc]
    def __init__(self, directed_ebunch: Any = (), undirected_ebunch: Any = ()) -> None:
        super().__init__()
        self.directed_edges, self.undirected_edges = set(directed_ebunch), set(undirected_ebunch)


def test_pgmpy_round_trip(monkeypatch: pytest.MonkeyPatch) -> None:
    fake: Any = ModuleType("pgmpy.base")
    fake.DAG, fake.PDAG = nx.DiGraph, FakePdag
    monkeypatch.setitem(sys.modules, "pgmpy.base", fake)
    for graph in (Dag.of("abc", [("b", "a")]), Cpdag.of("abcd", [("a", "b")], ["cb"]), Cpdag.of("a")):
        found = interop.from_pgmpy(interop.to_pgmpy(graph))
        assert type(found) is type(graph)
        assert (set(found.nodes), found.arrows, found.lines) == (set(graph.nodes), graph.arrows, graph.lines)


@pytest.mark.parametrize(("write", "package"), [("to_pgmpy", "pgmpy"), ("to_causallearn", "causal-learn")])
def test_a_missing_library_is_named(write: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pgmpy.base", "causallearn.graph.GraphNode"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(DpcurateError, match=f"pip install {package}"):
        getattr(interop, write)(GRAPHS[0])


@pytest.mark.parametrize("name", ["a\x1b[31mred", "\x9b31m", "a\\x1b", "a\\\\x1b", "\x7f\n\t"], ids=ascii)
def test_control_characters_are_escaped_in_dot_and_in_words(name):
    graph = Dag.of([name, "b"], [(name, "b")])
    text = dumps(graph, "dot")
    assert not set(text) & set(map(chr, (0x1B, 0x9B, 0x7F)))
    assert loads(text, "dot") == graph
    assert str(graph).isprintable()

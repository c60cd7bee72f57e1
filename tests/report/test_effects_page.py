"""Effects on the page, in the notebook and in files: in words, as thickness, and at no cost."""

import csv
import io
import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from shutil import which

import pytest

from dpcurate import Budget, Curator, Numeric, Schema, networks
from dpcurate.graphs.formats import load, load_probabilities
from dpcurate.graphs.formats.graph_draft import EFFECT_COLUMNS
from dpcurate.graphs.graph import Cpdag, Pag
from dpcurate.report.edge_words import shown_effects
from dpcurate.report.html_report import page
from dpcurate.report.meaning import EFFECTS, NO_EFFECTS
from dpcurate.result.discovery import Discovery
from dpcurate.study.calls import fit

CHROMIUM = which("chromium") or which("chromium-browser") or which("google-chrome")
STRENGTH = 'const t = document.getElementById("thick"); t.value = "strength"; t.dispatchEvent(new Event("change"));'


@pytest.fixture(scope="module")
def session() -> tuple[Curator, Discovery]:
    world = networks.load("cancer")
    budget = Budget(epsilon=10, delta=1e-10)
    curator = Curator(world.sample(50_000, seed=1), world.schema, budget=budget, insecure_seed=1)
    return curator, fit(curator, share=curator.remaining / 2)


@pytest.fixture(scope="module")
def found(session: tuple[Curator, Discovery]) -> Discovery:
    return session[1]


def test_every_edge_has_its_effect_in_words(found: Discovery) -> None:
    html = page(found)
    assert found.edges
    for effect in found.effects():
        assert effect.supposed.sentence.split(" (")[0].replace("<", "&lt;") in html
    assert '<select id="thick">' in html
    assert EFFECTS in html
    assert NO_EFFECTS not in html


def test_an_edge_whose_direction_is_open_says_what_it_would_do_either_way(found: Discovery) -> None:
    nodes = found.graph.nodes
    pag = Pag.of(nodes, [(nodes[0], "o-o", nodes[1]), (nodes[1], "o->", nodes[2]), (nodes[3], "<->", nodes[4])])
    shown = shown_effects(replace(found, learned=replace(found.learned, graph=pag, linked={}), cut=None))
    assert shown[nodes[0], nodes[1]]["effects"] == ("not identified",)
    assert shown[nodes[1], nodes[2]]["effects"] == (f"if {nodes[1]} → {nodes[2]}: not identified",)
    assert shown[nodes[1], nodes[2]]["strength"] is None
    assert shown[nodes[3], nodes[4]] == {"effects": ("no effect in either direction",), "strength": 0.0}
    line = Cpdag.of(nodes, lines=[nodes[:2]])
    shown = shown_effects(replace(found, learned=replace(found.learned, graph=line, linked={}), cut=None))
    one, other = shown[nodes[0], nodes[1]]["effects"]
    assert one.startswith(f"if {nodes[0]} → {nodes[1]}: ")
    assert other.startswith(f"if {nodes[1]} → {nodes[0]}: ")
    assert "or nothing" not in one


def test_without_answers_the_page_says_that_it_does_not_know(found: Discovery) -> None:
    blank = replace(found, learned=replace(found.learned, released=None))
    html = page(blank)
    assert NO_EFFECTS in html
    assert '<select id="thick">' not in html
    assert "not determined" not in html
    assert blank.to_dict()["effects"] == []
    assert "effect" not in (blank._repr_html_().split("<table")[-1])


def test_a_page_that_knows_no_effect_says_why_once(found: Discovery) -> None:
    nodes = found.graph.nodes
    numbers = Schema(tuple(Numeric(name, 0, 1) for name in nodes))
    quiet = Curator({name: [0.5, 0.1] * 500 for name in nodes}, numbers, budget=Budget(epsilon=5, delta=1e-10))
    blank = replace(found, learned=replace(found.learned, released=fit(quiet).learned.released), schema=numbers)
    html = page(blank)
    assert html.count("ot determined") == 1
    assert f"{NO_EFFECTS} Not determined: columns are not normally" in html


def test_the_notebook_has_effects_beside_probabilities(found: Discovery) -> None:
    html = found._repr_html_()
    assert "Probabilities and effects of each edge" in html
    assert "raises P(" in html or "lowers P(" in html


def test_edges_csv_carries_effects_and_reads_as_the_same_edges(found: Discovery, tmp_path: Path) -> None:
    path = found.report(tmp_path / "edges.csv")
    read = load(path, "cpdag")
    assert (read.arrows, read.lines) == (found.graph.arrows, found.graph.lines)
    assert load_probabilities(path) == found.probabilities
    rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))
    assert set(EFFECT_COLUMNS) <= set(rows[0])
    edges = [row for row in rows if row["edge"] in ("arrow", "line")]
    assert len(edges) == len(found.edges)
    for row in edges:
        effect = found.effect(row["from"], row["to"])
        assert row["effect_in_words"] == effect.sentence
        assert float(row["effect_low"]) == pytest.approx(effect.low)


def test_json_holds_every_effect(found: Discovery, tmp_path: Path) -> None:
    told = json.loads(found.report(tmp_path / "r.json").read_text(encoding="utf-8"))["effects"]
    assert [(e["cause"], e["outcome"]) for e in told] == [(e.cause, e.outcome) for e in found.effects()]
    tables = [one["table"] for e in told for one in (e, *e.get("possible", ())) if "table" in one]
    assert tables
    assert all(sum(row) == pytest.approx(1, abs=1e-6) for table in tables for row in table["values"])


def test_telling_effects_is_free(session: tuple[Curator, Discovery], tmp_path: Path) -> None:
    curator, found = session
    before = curator.privacy()
    fresh = replace(found)  # nothing remembered
    page(fresh)
    fresh._repr_html_()
    fresh.report(tmp_path / "edges.csv")
    fresh.to_dict()
    assert curator.privacy() == before
    assert curator.remaining > 0


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_thickness_follows_strength_when_asked(found: Discovery, tmp_path: Path) -> None:
    html = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page(found))
    path = tmp_path / "page.html"
    path.write_text(html.replace("</body>", f"<script>{STRENGTH}</script></body>"), encoding="utf-8")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    shown = subprocess.run([str(CHROMIUM), *flags, path.as_uri()], capture_output=True, text=True, check=True).stdout
    assert "thicker: stronger effect" in shown
    width = re.compile(r'class="line"[^>]*stroke-width="([\d.]+)"')
    before, after = ([float(w) for w in width.findall(text)] for text in (page(found), shown))
    assert len(before) == len(after) == len(found.edges)
    assert before != after
    strengths = {(e.cause, e.outcome): e.strength or 0.0 for e in found.effects()}
    each = [max(strengths[e.a, e.b], strengths.get((e.b, e.a), 0.0)) for e in found.edges]
    assert sorted(range(len(each)), key=each.__getitem__) == sorted(range(len(after)), key=after.__getitem__)

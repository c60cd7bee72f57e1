"""The report page, in a real browser: it shows, answers, hides, sorts and prints, and runs nothing foreign."""

import json
import math
import random
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from shutil import which
from typing import Any

import pytest

from dpcurate.accounting import Budget, Cost, Event, Privacy
from dpcurate.draw.svg import graph_html
from dpcurate.draw.text import embedded
from dpcurate.errors import DpcurateError
from dpcurate.graphs.graph import Cpdag, Dag
from dpcurate.graphs.knowledge import Knowledge
from dpcurate.learn.methods import DESCRIPTIONS, private
from dpcurate.networks import random_dag
from dpcurate.report.html_report import page
from dpcurate.result.discovery import Discovery
from dpcurate.result.fit import DirectionVerdict, Evidence, FitResult
from dpcurate.result.run_record import RunRecord
from dpcurate.schema import Categorical, Numeric, Schema

CHROMIUM = which("chromium") or which("chromium-browser") or which("google-chrome")
PATIENCE = 60_000
"""Milliseconds that a step may take on a busy machine; only a hang takes so long."""
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
HOSTILE = (
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    "\"'><img src=x onerror=alert(3)>",
    "$title ${script} $$",
    "line\u2028break\u2029\nnew",
    "--><!-- {{7*7}} &lt;b&gt;",
    "=cmd|' /C calc'!A0 \u202egnp.exe",
)


def _privacy(private: bool = True) -> Privacy:
    budget = Budget(epsilon=1.0, delta=1e-10)
    steps = [Event("gaussian", "Counts()", Cost.concentrated(Fraction(1, 4000)))]
    steps += [Event("exponential", "choice", Cost.bounded_range(Fraction(1, 20)))] * 9
    if not private:
        steps.append(Event("exact", "Counts(a, b)", Cost.infinite()))
    spent = math.inf if not private else float(sum(e.cost.rho for e in steps))
    return Privacy(budget, "add-remove", "one row", spent, tuple(steps), private)


def _found(graph: Cpdag | Dag, *, sure: bool = True, seed: int = 0, **more: Any) -> Discovery:
    source = random.Random(seed)
    pairs = sorted(graph.edges, key=sorted)
    confidence = {pair: round(source.uniform(0.3, 0.99), 3) for pair in pairs} if sure else {}
    evidence = tuple(Evidence((a, b), (), "kept", 0.25, 0.01, 0.05) for a, b in map(sorted, pairs))
    learned = FitResult(graph, graph.skeleton, confidence, evidence=evidence, tests=(28, 40), leaked=(0.001, 0.002))
    schema = Schema(tuple(Categorical(name, ("no", "yes")) for name in graph.nodes))
    given = {"privacy": _privacy(), "method": "auto", "schema": schema, "versions": {"dpcurate": "9.8.7"}}
    return Discovery(learned, **(given | more))


SMALL = Cpdag.of(
    ["smoke", "lung", "tub", "either", "xray"], [("lung", "either"), ("tub", "either")], [("smoke", "lung")]
)


def _small() -> Discovery:
    found = _found(SMALL)
    edge = {frozenset(("lung", "either")): 0.9, frozenset(("tub", "either")): 0.4, frozenset(("smoke", "lung")): 0.6}
    return replace(found, learned=replace(found.learned, linked=edge)).at("best-f1")


def _sure() -> Discovery:
    """At the default cut: two arrows, a line, and pairs of all three states."""
    found = _found(SMALL)
    given = {"smoke lung": (0.6, 0.55), "lung either": (0.97, 0.95), "tub either": (0.8, 0.81)}
    given |= {"either xray": (0.4, 0.9), "smoke tub": (0.05, 0.5), "tub xray": (0.25, 0.3)}
    linked = {frozenset(pair.split()): p for pair, (p, _) in given.items()}
    ways = {(pair.split()[0], pair.split()[1]): p for pair, (_, p) in given.items()}
    sets = {frozenset(("smoke", "tub")): ("lung",), frozenset(("either", "xray")): ("tub",)}
    skeleton = type(found.learned.skeleton).of(SMALL.nodes, SMALL.edges, sets)
    pairs = map(sorted, SMALL.edges)
    evidence = tuple(Evidence((a, b), ("xray",), "kept", linked[frozenset((a, b))]) for a, b in pairs)
    learned = replace(found.learned, linked=linked, direction=ways, skeleton=skeleton, evidence=evidence)
    return replace(found, learned=learned)


# --- without a browser ------------------------------------------------------------------------------


def test_page_is_one_file_that_loads_nothing() -> None:
    text = page(_small())
    assert "default-src 'none'" in text
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:)?//""", text)
    for target in re.findall(r'href="#([^"]+)"', text):
        assert f'id="{target}"' in text
    assert not re.search(r"@import|url\(", text)
    assert ' style="' not in text.split("<body>")[1], "the policy forbids inline style attributes"


RUN = RunRecord(
    by="ann", at="2030-01-02T03:04:05+00:00", purpose="a <b>pilot</b>", table="patients", number=3,
    schema_file="patients.toml", settings="MeasureOnce(constants=Constants(skew=0.4))",
)  # fmt: skip


def test_page_says_who_made_it_when_what_for_and_of_what() -> None:
    text = page(replace(_small(), run=RUN))
    assert "Made by ann on 2030-01-02 03:04:05 UTC for: a &lt;b&gt;pilot&lt;/b&gt;." in text
    for words in ("patients (run 3 in its ledger&#x27;s log)", "<code>patients.toml</code>", "2030-01-02 03:04:05 UTC"):
        assert words in text.replace("&#39;", "&#x27;")
    assert "not stated" in page(replace(_small(), run=replace(RUN, purpose="")))
    again = page(replace(_small(), run=replace(RUN, again="2030-02-03T00:00:00+00:00")))
    assert "2030-02-03 00:00:00 UTC, from stored answers and without charge" in again


def test_constants_are_folded_away_and_the_method_is_told_in_words() -> None:
    made = page(replace(_small(), run=RUN)).split('id="h-made"')[1]
    told, _, settings = made.partition("All settings of the method")
    assert "Constants" not in told
    assert "Constants(skew=0.4)" in settings
    for recipe in private().values():
        assert type(recipe).__name__ in DESCRIPTIONS


def test_page_says_what_is_promised_and_what_was_spent() -> None:
    text = page(_small())
    for words in (
        "epsilon = 1, delta = 1e-10",
        "add-remove",
        "one row",
        "rho = 0.01324",
        "The ceiling is the guarantee",
    ):
        assert words in text
    assert "2.718 times as likely" in text
    assert re.search(r"exponential</td><td class=\"number\">9</td>", text)
    assert re.search(r"<td>0</td><td class=\"number\">28</td><td class=\"number\">0.001</td>", text)
    for words in (
        "Causal sufficiency",
        "Faithfulness",
        "Cite as",
        "dpcurate 9.8.7",
        _small().schema.hash,
        "few large releases",
    ):
        assert words in text
    assert "NOT PRIVATE" not in text


def test_pure_budget_and_persons() -> None:
    pure = replace(
        _privacy(), budget=Budget(epsilon=2.0, delta=0), events=(), spent=0.0, unit="one person, at most 3 rows each"
    )
    text = page(replace(_small(), privacy=pure))
    assert "epsilon = 2, delta = 0" in text
    assert "Kept as pure epsilon" in text
    assert "at most 3 rows each" in text
    assert "apart from failures" not in text


def test_banner_and_claim_when_not_private() -> None:
    found = _small()
    text = page(replace(found, privacy=_privacy(False), learned=replace(found.learned, claimed=0.9)))
    assert '<div class="banner" role="alert">' in text
    assert "(exact)" in text
    assert "would report epsilon = 0.9" in text
    assert "times as likely" not in text


def test_undecided_edges_are_listed_and_marked() -> None:
    found = _small()
    late = replace(found.learned, unfinished={1: (frozenset(("lung", "either")),), 2: (frozenset(("lung", "either")),)})
    text = page(replace(found, learned=late))
    assert "Undecided pairs" in text
    assert "<td>lung</td><td>either</td><td>1, 2</td>" in text
    assert "not tested at order 1, 2" in text
    assert "not fully tested" in text
    assert "Undecided pairs" not in page(found)


def test_both_numbers_of_every_edge_are_in_the_table() -> None:
    text = page(_sure())
    assert re.search(r'<th[^>]*><button type="button">P\(edge\)<.*?<button type="button">P\(direction\)<', text)
    for linked, way in (("0.97", "0.95"), ("0.80", "0.81"), ("0.60", "0.55")):
        assert re.search(rf">{linked}</td><td[^>]*>{way}</td>", text)
    assert "Drawn: edges with P(edge) at least 0.5, arrows with P(direction) at least 0.8." in text
    assert "best-f1: kept given xray<" in text, "a decision that was made for another cut says so"


def test_undecided_pairs_are_listed_and_not_called_independent() -> None:
    found = _sure()
    text = page(found)
    section = text.split('id="h-open"')[1].split("</section>")[0]
    assert "2 pairs are neither drawn nor ruled out" in section
    assert re.findall(r"<tr><td.*?>(\w+)</td><td.*?>(\w+)</td><td.*?>([\d.]+)</td><td.*?>([\d.]+)</td>", section) == [
        ("either", "xray", "0.40", "0.90"),
        ("tub", "xray", "0.25", "0.30"),
    ]
    absent = text.split("Pairs judged independent")[1]
    assert "<td>smoke</td><td>tub</td><td>lung</td>" in absent
    assert "<td>either</td><td>xray</td>" not in absent
    late = replace(found.learned, unfinished={1: (frozenset(("lung", "either")),)})
    both = page(replace(found, learned=late)).split('id="h-open"')[1].split("</section>")[0]
    assert "neither drawn nor ruled out" in both
    assert "Edges not fully tested" in both


def test_many_undecided_pairs_are_cut_short() -> None:
    nodes = [f"x{i:02}" for i in range(40)]
    found = _found(Cpdag.of(nodes))
    found = replace(found, learned=replace(found.learned, linked={frozenset(p): 0.3 for p in combinations(nodes, 2)}))
    text = page(found)
    assert "780 pairs are neither drawn" in text
    assert "the first 500 of 780" in text
    assert text.count('data-value="0.300000"') == 500
    assert str(found).count("(P(edge) = 0.30)") == 3


def test_thicker_is_more_surely_linked() -> None:
    widths = [float(w) for w in re.findall(r'class="line"[^>]*stroke-width="([\d.]+)"', page(_sure()))]
    assert widths == [round(0.6 + 2.8 * p**2, 2) for p in (0.6, 0.97, 0.8)]


def test_background_knowledge_is_marked_without_colour() -> None:
    known = Knowledge.of(required_arrows=[("lung", "either")], forbidden_arrows=[("either", "tub")])
    text = page(replace(_small(), knowledge=known))
    assert "required by background knowledge, not found" in text
    assert "direction from background knowledge" in text
    assert "decided on 2 edges" in text
    assert "stroke-dasharray" in text


def test_no_edges_no_confidence_no_evidence() -> None:
    text = page(_found(Cpdag.of("ab"), sure=False))
    assert "No edge was found" in text
    plain = page(_found(SMALL, sure=False))
    assert 'id="least"' not in plain
    assert ">P(edge)<" not in plain
    numeric = Schema((Numeric("a", 0, 1), Numeric("b", 0, 1, bins=20)), rows=1000)
    text = page(_found(Dag.of("ab", [("a", "b")]), schema=numeric))
    assert "(20 in all)" in text
    assert "numeric, 20 bins" in text
    assert "a number, [0, 1]" in text
    assert "about 1,000 by public knowledge" in text


def test_absent_pairs_tell_their_separator() -> None:
    found = _small()
    parted = type(found.learned.skeleton).of(SMALL.nodes, SMALL.edges, {frozenset(("smoke", "either")): ["lung"]})
    text = page(replace(found, learned=replace(found.learned, skeleton=parted)))
    assert "<td>smoke</td><td>either</td><td>lung</td>" in text


def test_json_cannot_end_its_script() -> None:
    text = embedded({"x": "</script>\u2028&<!--"})
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == {"x": "</script>\u2028&<!--"}


def test_many_decisions_are_cut_short() -> None:
    found = _small()
    many = tuple(Evidence(("lung", "either"), ("tub",), "kept", i, None, None) for i in range(40))
    text = page(replace(found, learned=replace(found.learned, evidence=many)))
    assert "28 earlier decisions are not shown" in text
    assert "kept given tub: value 39" in text


def test_notebook_cell_is_a_picture_and_a_line() -> None:
    shown = _small()._repr_html_()
    assert "3 edges among 5 columns" in shown
    assert "<svg" in shown
    assert "<script" not in shown
    assert "NOT PRIVATE" in replace(_small(), privacy=_privacy(False))._repr_html_()
    sure = _sure()._repr_html_()
    assert re.search(r"<td>lung → either</td><td[^>]*>0.97</td><td[^>]*>0.95</td>", sure)
    assert "2 undecided pairs, neither drawn nor ruled out: either, xray (P(edge) = 0.40)" in sure
    assert "undecided" not in _found(SMALL, sure=False)._repr_html_()
    assert "Cpdag: 5 nodes, 3 edges" in graph_html(SMALL)


def test_hostile_names_stay_text_in_a_notebook() -> None:
    shown = _found(Dag.of(HOSTILE, [HOSTILE[:2]]))._repr_html_()
    assert "<script" not in shown
    assert "<img" not in shown


def test_plot_draws_every_box() -> None:
    matplotlib = pytest.importorskip("matplotlib", reason="plot() needs matplotlib")
    matplotlib.use("Agg")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    known = Knowledge.of(required_arrows=[("lung", "either")], forbidden_arrows=[("either", "tub")])
    late = replace(_small().learned, unfinished={1: (frozenset(("smoke", "lung")),)})
    own = replace(_small(), learned=late, knowledge=known).plot()
    assert {t.get_text() for t in own.texts} == {*SMALL.nodes, "?", "0.60", "1", "0.40"}
    assert {t.get_text() for t in _sure().plot().texts} == {*SMALL.nodes, "0.60", "0.97, 0.95", "0.80, 0.81"}
    assert {t.get_text() for t in _found(SMALL, sure=False).plot().texts} == set(SMALL.nodes)
    figure, ax = pyplot.subplots()
    assert replace(_found(Dag.of(["$x^", "b"])), privacy=_privacy(False)).plot(ax) is ax
    assert {t.get_text() for t in ax.texts} == {"$x^", "b", "NOT PRIVATE"}
    figure.canvas.draw()
    pyplot.close("all")


def test_plot_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(DpcurateError, match="pip install matplotlib"):
        _small().plot()


# --- in Chromium ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    driver = pytest.importorskip("playwright.sync_api", reason="browser tests need playwright: pip install playwright")
    if CHROMIUM is None:
        pytest.skip("browser tests need a chromium: apt-get install chromium")
    with driver.sync_playwright() as play:
        started = play.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()


class Opened:
    """A page in a browser that keeps what must not happen."""

    def __init__(self, browser: Any, path: Path, **options: Any) -> None:
        self.context = browser.new_context(viewport={"width": 1280, "height": 900}, **options)
        self.tab = self.context.new_page()
        self.tab.set_default_timeout(PATIENCE)
        self.wrong: list[str] = []
        self.tab.on("console", lambda m: self.wrong.append(m.text) if m.type in ("error", "warning") else None)
        self.tab.on("pageerror", lambda e: self.wrong.append(str(e)))
        self.tab.on("dialog", lambda d: (self.wrong.append(d.message), d.dismiss()))
        self.tab.on("request", self._request)
        self.url = path.as_uri()
        self.tab.goto(self.url)

    def _request(self, request: Any) -> None:
        if request.url != self.url and not request.url.startswith("blob:"):
            self.wrong.append(request.url)

    def count(self, selector: str) -> int:
        return int(self.tab.locator(selector).count())

    def on_edge(self, i: int) -> tuple[float, float]:
        """A point of the screen on the edge's line."""
        x, y = self.tab.evaluate(
            """i => { const l = document.querySelector(`[data-edge="${i}"] .line`);
                      const p = l.getPointAtLength(l.getTotalLength() * .3).matrixTransform(l.getScreenCTM());
                      return [p.x, p.y] }""",
            i,
        )
        return x, y


@pytest.fixture
def show(browser: Any, tmp_path: Path) -> Iterator[Any]:
    opened: list[Opened] = []

    def open_page(found: Discovery, **options: Any) -> Opened:
        opened.append(Opened(browser, found.report(tmp_path / f"page{len(opened)}.html"), **options))
        return opened[-1]

    yield open_page
    for one in opened:
        one.context.close()
        assert one.wrong == [], "no console error, no dialog, no request"


def test_graph_is_visible_and_hover_tells_the_evidence(show: Any) -> None:
    opened = show(_small())
    tab = opened.tab
    assert opened.count("#graph .node") == 5
    assert tab.locator(".node text").first.is_visible()
    assert tab.locator("#card").is_hidden()
    tab.mouse.move(*opened.on_edge(1))
    said = tab.locator("#card").inner_text()
    assert "lung → either" in said
    assert "P(edge) = 0.90" in said
    assert "kept: value 0.25 ± 0.01 against 0.05" in said
    tab.hover('[data-node="3"]')
    assert "Arrows from: lung, tub" in tab.locator("#card").inner_text()
    tab.mouse.move(2, 2)
    assert tab.locator("#card").is_hidden()


def test_slider_hides_edges_and_rows(show: Any) -> None:
    opened = show(_small())
    opened.tab.locator("#least").fill("0.5")
    assert opened.count(".edge.off") == 1
    assert opened.count("tbody tr[data-edge].off") == 1
    assert "2 of 3 edges shown" in opened.tab.locator("#shown").inner_text()
    assert opened.tab.locator('[data-edge="2"] .line').is_hidden()
    opened.tab.locator("#least").fill("0.4")
    assert opened.count(".off") == 0


def test_an_arrow_less_sure_than_the_slider_is_a_line(show: Any) -> None:
    opened = show(_sure())
    tab = opened.tab
    kinds = "[...document.querySelectorAll('tr[data-edge]')].map(r => r.cells[1].textContent.slice(2))"
    assert tab.evaluate(kinds) == ["undirected", "directed", "directed"]
    tab.locator("#way").fill("0.9")
    assert tab.evaluate(kinds) == ["undirected", "directed", "undirected"]
    assert tab.locator('[data-edge="2"] .head').is_hidden()
    assert tab.locator('[data-edge="1"] .head').is_visible()
    assert tab.locator("#ways").inner_text() == "0.90: 1 arrow"
    tab.mouse.move(*opened.on_edge(2))
    said = tab.locator("#card").inner_text()
    assert "tub — either" in said
    assert "P(edge) = 0.80" in said
    assert "P(tub → either) = 0.81" in said
    tab.hover('[data-node="3"]')
    assert "Undirected with: tub" in tab.locator("#card").inner_text()
    tab.locator("#way").fill("0.8")
    assert tab.evaluate(kinds) == ["undirected", "directed", "directed"]
    label = tab.locator('#graph [data-edge="2"]').get_attribute("aria-label")
    assert label == "tub → either: directed, found in the data, P(edge) = 0.80, P(tub → either) = 0.81"


def test_sliders_start_where_the_drawing_is_cut() -> None:
    text = page(_sure())
    assert 'id="least" type="range" min="0.5" max="1" step="0.01" value="0.5"' in text
    assert ">0.50: 3 of 3 edges shown<" in text
    assert 'id="way" type="range" min="0.5" max="1" step="0.01" value="0.8"' in text  # a line may turn into an arrow
    assert ">0.80: 2 arrows<" in text
    assert ">0.90: 1 arrow<" in page(_sure().at(0.9, direction=0.9))
    assert "1 edge: 1 directed" in page(_sure().at(0.9, direction=0.9))
    assert 'min="0.4" max="1" step="0.01" value="0.4"' in page(_small())  # best-f1 is no number: its least sure edge


def _unread() -> Discovery:
    """Directions that cannot be read: lines, with what is left of their probabilities."""
    found = _sure()
    ways = {pair: 0.5 + 0.27 * (p - 0.5) for pair, p in found.learned.direction.items()}
    verdict = DirectionVerdict(level="unreadable", sentences=("9 of the 30 pairs stay dependent.", "Add an order."))
    return replace(found, learned=replace(found.learned, direction=ways, directions=verdict))


def test_the_page_says_whether_directions_can_be_read_and_what_an_arrow_says() -> None:
    text = page(_unread())
    assert "Directions cannot be read here: shown as lines" in text
    assert "9 of the 30 pairs stay dependent. Add an order." in text
    assert 'class="head"' not in text
    assert "lung causes either, or something not in the table drives both" in page(_sure())
    clear = replace(_sure().learned, causes={("lung", "either"): 0.97})
    assert ">lung causes either</td>" in page(replace(_sure(), learned=clear))


def test_the_slider_shows_directions_that_cannot_be_read(show: Any) -> None:
    opened = show(_unread())
    tab = opened.tab
    kinds = "[...document.querySelectorAll('tr[data-edge]')].map(r => r.cells[1].textContent.slice(2))"
    assert tab.evaluate(kinds) == ["undirected"] * 3
    assert tab.locator("#ways").inner_text() == "0.80: 0 arrows"
    assert tab.locator(".spare").count() == 3
    assert not tab.locator('[data-edge="1"] .spare').is_visible()
    tab.locator("#way").fill("0.6")
    assert tab.evaluate(kinds) == ["undirected", "directed", "undirected"]
    assert tab.locator("#ways").inner_text() == "0.60: 1 arrow"
    assert tab.locator('[data-edge="1"] .spare').is_visible()
    assert not tab.locator('[data-edge="0"] .spare').is_visible()
    label = tab.locator('#graph [data-edge="1"]').get_attribute("aria-label")
    assert label == "lung → either: directed at this threshold"
    tab.locator("#way").fill("0.8")
    assert tab.evaluate(kinds) == ["undirected"] * 3
    assert not tab.locator('[data-edge="1"] .spare').is_visible()


def test_click_highlights_parents_and_children(show: Any) -> None:
    opened = show(_small())
    tab = opened.tab
    tab.click('[data-node="1"]')
    assert tab.locator(".node.chosen").get_attribute("data-node") == "1"
    assert tab.locator(".node.child").get_attribute("data-node") == "3"
    assert tab.locator('[data-node="0"].on').count() == 1, "an undirected neighbour stays lit"
    assert float(tab.locator('[data-node="4"]').evaluate("e => getComputedStyle(e).opacity")) < 0.5
    tab.click('[data-node="3"]')
    assert opened.count(".node.parent") == 2
    tab.click('[data-node="3"]')
    assert opened.count(".picked") == 0


def test_drag_and_zoom_change_the_view_and_select_nothing(show: Any) -> None:
    tab = show(_small()).tab
    view = "document.querySelector('#graph svg').getAttribute('viewBox')"
    first = tab.evaluate(view)
    tab.hover('[data-node="1"]')
    tab.mouse.down()
    tab.mouse.move(500, 500, steps=4)
    tab.mouse.up()
    moved = tab.evaluate(view)
    assert moved != first
    assert tab.locator(".picked").count() == 0
    tab.click("#zoom-in")
    assert float(tab.evaluate(view).split()[2]) < float(moved.split()[2])
    tab.click("#zoom-fit")
    assert tab.evaluate(view) == first
    tab.hover("#graph svg", position={"x": 20, "y": 20})
    tab.keyboard.down("Control")
    tab.mouse.wheel(0, -200)
    tab.keyboard.up("Control")
    tab.wait_for_function(f"({view}) !== '{first}'")


def test_keyboard_reaches_every_item(show: Any) -> None:
    opened = show(_small())
    tab = opened.tab
    assert opened.count('#graph [tabindex="0"]') == 1, "one stop for Tab"
    tab.focus("#least")
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.dataset.node") == "0"
    assert "smoke" in tab.locator("#card").inner_text()
    tab.keyboard.press("ArrowRight")
    tab.keyboard.press("Enter")
    assert tab.evaluate("document.activeElement.getAttribute('aria-pressed')") == "true"
    tab.keyboard.press("Escape")
    assert opened.count(".picked") == 0
    tab.keyboard.press("End")
    assert tab.evaluate("document.activeElement.dataset.edge") == "2"
    assert "tub → either" in tab.locator("#card").inner_text()
    label = tab.evaluate("document.activeElement.getAttribute('aria-label')")
    assert label == "tub → either: directed, found in the data, P(edge) = 0.40"


def test_table_sorts_both_ways(show: Any) -> None:
    tab = show(_small()).tab
    cells = "[...document.querySelectorAll('tr[data-edge]')].map(r => r.cells[3].textContent)"
    tab.click("th button:has-text('P(edge)')")
    assert tab.evaluate(cells) == ["0.40", "0.60", "0.90"]
    tab.click("th button:has-text('P(edge)')")
    assert tab.evaluate(cells) == ["0.90", "0.60", "0.40"]
    assert tab.locator("th[aria-sort='descending']").count() == 1
    tab.click("th button:has-text('From')")
    assert tab.evaluate("document.querySelector('tr[data-edge]').cells[0].textContent") == "lung"


def test_hostile_names_do_not_run(show: Any) -> None:
    arrows = [(HOSTILE[i], HOSTILE[i + 1]) for i in range(len(HOSTILE) - 1)]
    found = _found(Dag.of(HOSTILE, arrows), method=HOSTILE[1])
    found = replace(found, learned=replace(found.learned, notes=HOSTILE), versions={HOSTILE[0]: HOSTILE[2]})
    opened = show(found)
    tab = opened.tab
    assert opened.count("script") == 2
    assert opened.count("img") == 0
    tab.hover('[data-node="0"]')
    assert HOSTILE[0] in tab.locator("#card").inner_text()
    tab.mouse.move(*opened.on_edge(0))
    assert HOSTILE[1] in tab.locator("#card").inner_text()
    assert "\u202e" not in tab.content()


def test_eighty_nodes_without_overlapping_labels(show: Any, tmp_path: Path) -> None:
    graph = random_dag(80, degree=2.5, seed=3)
    name = {x: x if i % 3 else f"{x}_WIDE_MEASUREMENT_AT_MONTH_{i}" for i, x in enumerate(graph.nodes)}
    found = _found(Dag.of(map(name.get, graph.nodes), [(name[a], name[b]) for a, b in graph.arrows]).cpdag())
    opened = show(found)
    assert Path(tmp_path / "page0.html").stat().st_size < 2_000_000
    assert opened.tab.evaluate("document.querySelectorAll('*').length") < 3000
    boxes = opened.tab.evaluate(
        """() => [...document.querySelectorAll('.node')].map(g => [g.querySelector('text'), g.querySelector('rect')]
             .map(e => { const b = e.getBoundingClientRect(); return [b.left, b.top, b.right, b.bottom] }))"""
    )
    assert len(boxes) == 80
    for text, rect in boxes:
        assert rect[0] <= text[0], "a label stays in its box"
        assert text[2] <= rect[2]
    rects = [rect for _, rect in boxes]
    for i, a in enumerate(rects):
        for b in rects[i + 1 :]:
            assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]


def test_dark_and_light_differ(show: Any) -> None:
    paper = "getComputedStyle(document.body).backgroundColor"
    light = show(_small(), color_scheme="light").tab.evaluate(paper)
    dark = show(_small(), color_scheme="dark").tab.evaluate(paper)
    assert light == "rgb(255, 255, 255)"
    assert dark != light


def test_banner_shows(show: Any) -> None:
    tab = show(replace(_small(), privacy=_privacy(False))).tab
    assert tab.get_by_role("alert").inner_text().startswith("NOT PRIVATE")


def test_paper_is_a4_and_leaves_controls_out(show: Any) -> None:
    opened = show(_small(), color_scheme="dark")
    opened.tab.emulate_media(media="print")
    assert opened.tab.locator(".controls").is_hidden()
    assert opened.tab.locator(".hint").is_hidden()
    assert opened.tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    opened.tab.emulate_media(media="screen")
    pdf = opened.tab.pdf(prefer_css_page_size=True)
    assert re.search(rb"/MediaBox ?\[0 0 59[456][\d.]* 84[123]", pdf)


def test_readable_by_role_and_without_script(show: Any) -> None:
    tab = show(_small(), java_script_enabled=False).tab
    assert tab.locator("#graph .node").first.is_visible()
    assert tab.locator(".controls").is_hidden(), "nothing to press that does nothing"
    assert tab.get_by_role("table").count() == 3
    assert tab.locator("table caption").count() == tab.locator("table").count()
    assert tab.get_by_role("columnheader").count() == 7 + 4 + 3
    assert tab.get_by_text("smoke: undirected edges with lung").count() == 1


def test_drawing_can_be_saved(show: Any) -> None:
    tab = show(_small()).tab
    with tab.expect_download() as waiting:
        tab.click("#save")
    saved = Path(waiting.value.path()).read_text(encoding="utf-8")
    assert saved.startswith("<svg")
    assert 'xmlns="http://www.w3.org/2000/svg"' in saved


def test_narrow_screens_do_not_scroll_sideways(show: Any) -> None:
    tab = show(_small()).tab
    tab.set_viewport_size({"width": 390, "height": 800})
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("width", [390, 320])
def test_no_table_of_edges_is_cut_on_a_narrow_screen(show: Any, width: int) -> None:
    tab = show(_sure()).tab
    tab.set_viewport_size({"width": width, "height": 800})
    for cells in ("tr[data-edge] td", "#h-open ~ .scroll td"):
        assert tab.locator(cells).count() > 0
        for cell in tab.locator(cells).all():
            assert cell.evaluate(
                "c => { const b = c.getBoundingClientRect(), s = c.closest('.scroll');"
                " return b.right <= innerWidth && b.width > 0 && s.scrollWidth <= s.clientWidth }"
            )
    tab.locator("#least").fill("0.7")
    assert tab.locator("tr[data-edge]").nth(0).is_hidden()

"""The studio in a real browser: the whole way, by mouse and by keyboard, narrow, dark, and when things go wrong."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from shutil import which
from typing import Any

import pytest

import dpcurate
from running_studio import RunningStudio, running_studio
from studio_tables import a_clinic

CHROMIUM = which("chromium") or which("chromium-browser") or which("google-chrome")
MOST_CLICKS = 25
PATIENCE = 60_000
"""Milliseconds that a step may take on a busy machine; only a hang takes so long."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    driver = pytest.importorskip("playwright.sync_api", reason="browser tests need playwright: pip install playwright")
    if CHROMIUM is None:
        pytest.skip("browser tests need a chromium: apt-get install chromium")
    with driver.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStudio]:
    folder = tmp_path_factory.mktemp("studio")
    a_clinic(folder)
    with running_studio(folder) as studio:
        yield studio


class Person:
    """Somebody at a page, who counts clicks; whatever the console says is wrong."""

    def __init__(self, context: Any, studio: RunningStudio) -> None:
        self.page, self.studio, self.clicks, self.wrong = context.new_page(), studio, 0, []
        self.page.set_default_timeout(PATIENCE)
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("console", lambda line: self.wrong.append(line.text))
        self.page.on("dialog", lambda dialog: dialog.accept())
        self.page.goto(studio.link)

    @property
    def project(self) -> str:
        return re.search(r"/p/([a-z0-9-]+)", self.page.url)[1]

    def to(self, step: str, project: str | None = None) -> None:
        self.page.goto(f"{self.studio.address}/p/{project or self.project}/{step}")

    def click(self, name: str) -> None:
        self.clicks += 1
        self.page.get_by_role("button", name=re.compile(name)).first.click()

    def heading(self, text: str) -> None:
        self.page.get_by_role("heading", level=1, name=re.compile(text)).wait_for()

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait while the page goes on; only a hang takes all of the turns."""
        for _ in range(3000):
            if condition():
                return
            self.page.wait_for_timeout(20)
        raise AssertionError(f"it never happened: {what}")

    # --- the way of a person --------------------------------------------------------------------------------------

    def choose(self, name: str) -> None:
        self.click(name)
        self.page.locator("#drafting .fine").wait_for()

    def describe(self) -> None:
        self.click("Describe the columns")
        self.page.locator("#card-0").wait_for()
        self.page.locator("#looking .hint").wait_for()

    def confirm(self) -> None:
        self.click("ontinue")
        self.heading("What comes first")

    def spend(self) -> None:
        self.click("^Spend epsilon")

    def read(self) -> None:
        self.page.locator("#view iframe").wait_for()
        self.page.frame_locator("#view iframe").get_by_role("heading", level=1).wait_for()

    def at_run(self, name: str) -> None:
        """As far as the button that spends."""
        self.choose(name)
        self.describe()
        self.confirm()
        self.to("run")
        self.heading("Ready to run")


@contextmanager
def a_person(browser: Any, studio: RunningStudio, **options: Any) -> Iterator[Person]:
    context = browser.new_context(**options)
    try:
        yield Person(context, studio)
    finally:
        context.close()


AXE = (files("axe_playwright_python") / "axe.min.js").read_text() if CHROMIUM else ""


def fits(person: Person) -> None:
    """What every screen must be: as wide as the window, understandable to a screen reader, without symbols."""
    page = person.page
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]
    page.evaluate(AXE)
    found = page.evaluate("axe.run(document, {iframes: false, resultTypes: ['violations']})")["violations"]
    serious = [
        (one["id"], [node["html"] for node in one["nodes"]][:3]) for one in found
        if one["impact"] in ("serious", "critical")
    ]  # fmt: skip
    assert serious == []
    said = page.locator("main").inner_text()
    assert not re.search(r"\brho\b|zCDP|skeleton F1|\[person\]|TOML text", said)


@pytest.mark.parametrize(
    ("table", "look"),
    [
        ("clinic.csv", {"viewport": {"width": 1280, "height": 900}}),
        ("clinic.csv", {"viewport": {"width": 400, "height": 800}, "color_scheme": "dark"}),
        ("Asia", {"viewport": {"width": 400, "height": 800}}),
    ],
    ids=["mixed-wide", "mixed-narrow-dark", "asia-narrow"],
)
def test_the_whole_way_is_short_and_every_screen_explains_itself(browser, studio, table, look):
    with a_person(browser, studio, **look) as person:
        page = person.page
        fits(person)
        person.choose(table)
        fits(person)
        person.describe()
        page.locator("#looking .note").wait_for(state="detached")
        fits(person)
        person.confirm()
        if page.locator("#suggest").count():
            person.click("Put them first")
            page.locator("#suggest").wait_for(state="detached")
        fits(person)
        person.click("^Continue")
        person.heading("How much may it tell")
        fits(person)
        person.click("^Continue")
        person.heading("Ready to run")
        fits(person)
        person.spend()
        person.read()
        fits(person)
        assert person.clicks <= MOST_CLICKS
        with page.expect_download() as loading:
            page.get_by_role("link", name="Download the page").click()
        home = studio.folder / person.project
        report = (home / "results" / "run-1" / "report.html").read_text()
        assert Path(loading.value.path()).read_text() == report
        assert "<title>Causal graph of " in report
        assert dpcurate.Schema.load(home / "schema.toml").names
        assert [run.outcome for run in studio.ledger(person.project).log()] == ["finished"]
        assert person.wrong == []


def test_the_keyboard_alone_is_enough(browser, studio):
    with a_person(browser, studio) as person:
        page = person.page

        def to(name: str) -> None:
            """Tab to what has this name."""
            for _ in range(400):
                page.keyboard.press("Tab")
                here = "document.activeElement.getAttribute('aria-label') || document.activeElement.textContent"
                if re.search(name, page.evaluate(here).strip()):
                    return
            raise AssertionError(f"Tab never reached {name}")

        def press(name: str, key: str = "Enter") -> None:
            to(name)
            page.keyboard.press(key)

        press("^Asia")
        person.heading("Table and budget")
        press("^Describe the columns")
        page.locator("#looking .hint").wait_for()  # until then, what has the focus may be replaced
        press("ontinue$")
        person.heading("What comes first")
        press("^smoke: earlier")
        page.locator(".tier[data-tier='2'] [data-column]").wait_for()
        assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "smoke: earlier"
        press("^Pick smoke")
        press("^Pick lung", "Space")
        page.get_by_text("smoke and lung: say below").wait_for()
        page.keyboard.press("Enter")  # the first of the buttons has the focus: causes
        page.locator(".facts li").wait_for()
        press("^Continue")
        person.heading("How much may it tell")
        to("epsilon|^$")
        page.locator("#slider").focus()
        page.keyboard.press("ArrowLeft")
        page.get_by_text("2.01 times as likely").wait_for()
        press("^Continue")
        person.heading("Ready to run")
        press("^Spend epsilon = 0.7")
        person.read()
        knowledge = dpcurate.Knowledge.load(studio.folder / person.project / "knowledge.toml")
        assert knowledge.required_arrows == {("smoke", "lung")}
        assert knowledge.tiers[0] == {"smoke"}
        assert person.wrong == []


def saved(state: Path, name: str) -> list[str]:
    """The levels of a column in a project's file."""
    cards = json.loads(state.read_text())["cards"]
    return next(one["levels"] for one in cards if one["name"] == name)


def test_levels_tiers_and_pairs_are_dragged(browser, studio):
    with a_person(browser, studio) as person:
        page = person.page
        person.choose("clinic.csv")
        person.describe()
        state = studio.folder / person.project / "studio.json"
        card = page.locator("article", has=page.get_by_role("heading", name="exercise"))
        lines = card.locator(".sorted li:not(.edit) > span")
        card.get_by_label("Use of exercise").select_option("ordered categories")
        card.locator(".sorted").wait_for()
        assert lines.all_inner_texts() == ["daily", "never", "often", "sometimes"]
        page.locator("#looking .hint").wait_for()
        card.locator(".sorted li").nth(3).drag_to(card.locator(".sorted li").nth(0))
        card.locator(".sorted li:first-child", has_text="sometimes").wait_for()
        assert lines.all_inner_texts() == ["sometimes", "daily", "never", "often"]
        person.until(lambda: saved(state, "exercise") == ["sometimes", "daily", "never", "often"], "it is saved")
        low = page.get_by_role("textbox", name="to", exact=True).first
        low.fill("60")
        page.get_by_text(
            re.compile(r"\d+ cells \(\d+\.\d%\) are beyond the bounds: they count as the bound")
        ).first.wait_for()
        person.confirm()
        page.locator(".chip", has_text="sex").drag_to(page.locator(".tier[data-tier='1']"))
        page.locator(".tier[data-tier='1'] .chip").wait_for()
        page.locator("[data-pick]", has_text="bmi").hover()
        page.mouse.down()
        page.locator("[data-pick]", has_text="smoker").hover()
        page.mouse.up()
        page.get_by_text("bmi and smoker: say below").wait_for()
        person.click("^does not cause")
        page.locator(".link.is-not").wait_for(state="attached")
        knowledge = dpcurate.Knowledge.load(studio.folder / person.project / "knowledge.toml")
        assert knowledge.forbidden_arrows == {("bmi", "smoker")}
        assert {"sex"} in knowledge.tiers
        page.get_by_role("button", name="Take back").click()
        page.locator(".link.is-not").wait_for(state="detached")
        assert person.wrong == []


def test_two_tabs_share_one_budget_which_ends_and_reading_stays_free(browser, studio):
    with a_person(browser, studio) as person:
        page = person.page
        person.choose("clinic.csv")
        page.get_by_label("Total epsilon of the new budget").fill("1")
        person.describe()
        person.confirm()
        person.to("run")
        other = person.page.context.new_page()
        other.goto(page.url)
        person.spend()
        person.read()
        spent = studio.ledger(person.project).spent
        other.get_by_role("button", name=re.compile("^Spend")).click()
        other.get_by_text("Nothing was spent: look at the page again").wait_for()
        other.get_by_role("link", name="Back").click()
        other.get_by_text("The budget does not allow another run").wait_for()
        assert other.get_by_role("button", name=re.compile("^Spend")).count() == 0
        page.locator("#at").fill("0.05")
        page.locator("#at-out", has_text="0.05").wait_for()
        page.locator("#view iframe[src*='at=0.05']").wait_for()
        page.get_by_label("Common causes may be missing").check()
        page.locator("#view iframe[src*='latent=1']").wait_for()
        person.click("What changes")
        page.locator("#compared pre").wait_for()
        person.click("By how much")
        page.locator("#effect .note").wait_for()
        person.click("Save this view")
        page.get_by_text("this view in run-1-view-2").wait_for()
        assert studio.ledger(person.project).spent == spent
        assert len(studio.ledger(person.project).log()) == 1
        assert person.wrong == []


def test_a_run_survives_a_reload_and_says_what_it_has_spent_when_it_is_stopped(browser, tmp_path):
    a_clinic(tmp_path)
    with running_studio(tmp_path) as studio, a_person(browser, studio) as person:
        page = person.page
        person.at_run("clinic.csv")
        studio.hold()
        person.spend()
        page.get_by_text(re.compile(r"Spent so far: epsilon = 0\.[1-9]")).wait_for()
        page.reload()
        person.heading("Running")
        page.get_by_text(re.compile("seconds? left")).wait_for()
        fits(person)
        person.to("read")
        page.get_by_text("No run has finished yet").wait_for()
        person.to("run")
        person.click("Stop the run")
        told = page.get_by_text(re.compile(r"Stopped\. It has spent epsilon = 0\.\d+")).inner_text()
        ledger = studio.ledger(person.project)
        assert float(re.search(r"= (0\.\d+)", told)[1]) == pytest.approx(
            ledger.budget.as_epsilon(ledger.spent), rel=0.01
        )
        studio.go_on()
        person.click("Go on with run 1")
        person.read()
        log = studio.ledger(person.project).log()
        assert [run.outcome for run in log] == ["finished"]
        assert ledger.budget.as_epsilon(log[0].spent) == pytest.approx(1, rel=1e-3)
        assert person.wrong == []


def test_a_studio_that_is_killed_goes_on_where_it_was(browser, tmp_path):
    a_clinic(tmp_path)
    with running_studio(tmp_path) as studio, a_person(browser, studio) as person:
        person.at_run("clinic.csv")
        studio.hold()
        person.spend()
        person.page.get_by_text(re.compile(r"Spent so far: epsilon = 0\.[1-9]")).wait_for()
        studio.process.kill()
        studio.process.wait(60)
        person.page.get_by_text("The server does not answer. Nothing is lost").wait_for()
    paid = studio.ledger("clinic-studio").spent
    studio.go_on()
    with running_studio(tmp_path) as again, a_person(browser, again) as person:
        person.page.get_by_role("link", name=re.compile("clinic-studio")).click()
        person.to("run")
        person.page.get_by_text("nothing is paid twice").wait_for()
        person.click("Go on with run 1")
        person.read()
        log = again.ledger("clinic-studio").log()
        assert [run.outcome for run in log] == ["finished"]
        assert 0 < paid < log[0].spent
        assert again.ledger("clinic-studio").budget.as_epsilon(log[0].spent) == pytest.approx(1, rel=1e-3)
        assert person.wrong == []


MARKUP = '<img src=x onerror="window.hacked=1">'


def test_a_hostile_table_is_shown_as_text(browser, studio):
    levels = [f"l{i}" for i in range(999)] + ["</textarea><script>window.hacked=1</script>"]
    names = [MARKUP, "{{ 7 * 7 }}", "' onfocus=alert(1) x='", *(f"c{i}" for i in range(297))]
    rows = [[levels[i % 1000], *(str((i * k) % 3) for k in range(1, 300))] for i in range(60)]
    quoted = [",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in (names, *rows)]
    (studio.folder / "hostile.csv").write_text("\n".join(quoted) + "\n")
    columns = [dpcurate.Categorical(names[0], tuple(levels))]
    columns += [dpcurate.Categorical(name, ("0", "1", "2")) for name in names[1:]]
    dpcurate.Schema(tuple(columns), rows=60).save(studio.folder / "hostile.toml")
    with a_person(browser, studio) as person:
        page = person.page
        person.choose("hostile.csv")
        page.get_by_text("Is there a description of it already?").click()
        page.get_by_label("Path of a schema file").fill("hostile.toml")
        person.click("^Use it")
        person.heading("Describe the columns")
        page.locator("#status button").wait_for()  # the end of a long page
        assert page.get_by_role("heading", name=MARKUP).is_visible()
        assert page.locator("article").count() == 300
        assert page.locator("#levels-0").input_value().split("\n") == levels
        for step, title in (
            ("order", "What comes first"),
            ("plan", "How much"),
            ("run", "Ready to run"),
            ("read", "Read"),
        ):
            person.to(step)
            person.heading(title)
            assert "7 * 7" in page.content() or step not in ("order",)
        assert page.evaluate("window.hacked") is None
        assert person.wrong == []


class _Evil(BaseHTTPRequestHandler):
    """A page elsewhere that tries to spend somebody's budget."""

    target = ""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(
            f"""<iframe name="f"></iframe><iframe src="{self.target}"></iframe>
            <form method="post" action="{self.target}" target="f"><input name="do" value="run">
            <input name="left" value="0.0499868499725944"><input name="epsilon" value="1"></form><script>
            document.forms[0].submit();
            fetch("{self.target}", {{method: "POST", credentials: "include", mode: "no-cors",
                body: new URLSearchParams({{do: "run", left: "0.0499868499725944", epsilon: "1"}})}})
            </script>""".encode()
        )

    def log_message(self, *_words: object) -> None:
        """Say nothing."""


def test_another_site_spends_nothing(browser, studio):
    with a_person(browser, studio) as person:
        person.at_run("clinic.csv")
        server = ThreadingHTTPServer(("127.0.0.1", 0), _Evil)
        _Evil.target = person.page.url
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            page = person.page.context.new_page()
            asked, answers = [], []
            page.on("request", lambda one: asked.append((one.method, one.url)))
            page.on("response", lambda one: answers.append((one.request.method, one.url, one.status)))
            page.goto(f"http://127.0.0.1:{server.server_port}/")
            tried = [("POST", _Evil.target)] * 2
            person.until(lambda: [one for one in asked if one in tried] == tried, "both forms are sent")
            page.wait_for_load_state("networkidle")
            ours = [(method, status) for method, url, status in answers if url == _Evil.target]
            assert asked.count(("POST", _Evil.target)) == 2
            assert set(ours) == {("POST", 403), ("GET", 403)}
        finally:
            server.shutdown()
            thread.join()
            server.server_close()
        assert not (studio.folder / person.project / f"{person.project}.ledger").exists()
        person.page.reload()
        person.spend()  # its own page still can
        person.read()

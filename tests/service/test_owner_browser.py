"""The owner's page in a real browser: with and without script, wide and narrow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from shutil import which
from typing import Any

import pytest

from running_service import Served, served, until

CHROMIUM = which("chromium") or which("chromium-browser") or which("google-chrome")
PATIENCE = 60_000
"""Milliseconds that a step may take on a busy machine; only a hang takes so long."""
RUN = {"method": "auto", "epsilon": 0.1, "purpose": "cohort study of a long name " * 5, "power": "good"}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    driver = pytest.importorskip("playwright.sync_api", reason="browser tests need playwright: pip install playwright")
    if CHROMIUM is None:
        pytest.skip("browser tests need a chromium: apt-get install chromium")
    with driver.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Served]:
    """One for each test: requests of one would wait on the page of another."""
    with served(tmp_path) as service:
        service.records().add_token("alice", 0.4, approval=True, purpose="cohort study")
        yield service


@pytest.fixture
def wrong(browser: Any, service: Served) -> list[str]:
    """What must stay empty."""
    return []


def opened(browser: Any, service: Served, wrong: list[str], **options: Any) -> Any:
    page = browser.new_context(**options).new_page()
    page.set_default_timeout(PATIENCE)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda line: "403" in line.text or wrong.append(line.text))  # the form is a refusal
    page.goto(service.link)
    return page


def test_the_link_opens_the_page_and_leaves_no_key_behind(browser, service, wrong):
    page = opened(browser, service, wrong)
    page.wait_for_selector("#budget")
    assert service.key not in page.url
    assert page.locator("h1").inner_text() == "patients"
    page.reload()
    assert page.locator("h1").inner_text() == "patients"
    page.get_by_role("button", name="Sign out").click()
    page.get_by_label("Owner's key").wait_for()
    assert wrong == []


def test_requests_appear_by_themselves_and_are_decided_in_place(browser, service, wrong):
    page = opened(browser, service, wrong)
    page.wait_for_selector("#budget")
    records = service.records()
    for command in ("one", "two"):
        records.consent("alice", {**RUN, "command": command})
    page.get_by_role("button", name="Deny").nth(1).wait_for()  # a poll may find the first request alone
    loaded = page.evaluate("performance.getEntriesByType('navigation')[0].startTime + performance.timeOrigin")
    page.get_by_role("button", name="Approve").first.click()
    until(lambda: records.consent("alice", {**RUN, "command": "one"}) == "approved", "approved")
    page.get_by_role("button", name="Deny").last.click()
    until(lambda: records.consent("alice", {**RUN, "command": "two"}) == "denied", "denied")
    page.get_by_text("Nothing waits").wait_for()
    again = page.evaluate("performance.getEntriesByType('navigation')[0].startTime + performance.timeOrigin")
    assert loaded == again  # the page was never loaded anew
    assert wrong == []


def test_a_poll_leaves_what_has_not_changed_alone(browser, service, wrong):
    page = opened(browser, service, wrong)
    page.wait_for_selector("#shares")
    page.evaluate("document.getElementById('shares').mark = document.getElementById('log').mark = true")
    service.records().write("test-event", "alice")
    page.get_by_text("test event").first.wait_for()
    assert page.evaluate("document.getElementById('shares').mark")
    assert not page.evaluate("document.getElementById('log').mark")


def test_without_script_the_key_is_pasted_and_forms_are_sent(browser, service, wrong):
    page = opened(browser, service, wrong, java_script_enabled=False)
    page.get_by_label("Owner's key").fill(service.key)
    page.get_by_role("button", name="Open").click()
    records = service.records()
    records.consent("alice", {**RUN, "command": "three"})
    page.reload()
    page.get_by_role("button", name="Deny").click()
    page.get_by_text("Nothing waits").wait_for()
    assert records.consent("alice", {**RUN, "command": "three"}) == "denied"
    assert wrong == []


@pytest.mark.parametrize("width", [320, 400, 1280])
def test_no_screen_is_too_narrow(browser, service, wrong, width):
    service.records().consent("alice", {**RUN, "command": f"w{width}", "asks": "x" * 300})
    page = opened(browser, service, wrong, viewport={"width": width, "height": 800})
    page.wait_for_selector("#waiting article")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert wrong == []

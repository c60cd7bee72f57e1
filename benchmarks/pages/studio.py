"""Pictures of every step of the studio, for docs/studio.md: a walk through the example clinic in a real browser.

    python -m benchmarks.pages.studio

Needs playwright and a chromium. Look at each picture before you commit it.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from shutil import which
from typing import Any

PICTURES = Path(__file__).parents[2] / "docs" / "screenshots"
WIDE, HIGH = 1000, 760
COLOURS = 256
"""Enough for flat pages, and a quarter of the bytes."""


def main() -> None:
    """Walk, and take a picture at each step."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory(prefix="clinic-") as folder, sync_playwright() as play:
        words = [sys.executable, "-m", "dpcurate.cli", "studio", folder, "--no-browser"]
        studio = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        try:
            assert studio.stdout is not None
            link = re.search(r"http://\S+", studio.stdout.readline())
            assert link is not None
            browser = play.chromium.launch(executable_path=which("chromium"), args=["--no-sandbox", "--disable-gpu"])
            walk(browser.new_page(viewport={"width": WIDE, "height": HIGH}), link[0])
            browser.close()
        finally:
            studio.terminate()
            studio.wait(60)


def walk(page: Any, link: str) -> None:
    """From the first page to a report."""
    page.set_default_timeout(120_000)

    def press(name: str) -> None:
        page.get_by_role("button", name=re.compile(name)).first.click()

    page.goto(link)
    press("made-up clinic")
    page.locator("#drafting .fine").wait_for()
    take(page, "choose")
    press("^Describe the columns")
    page.locator("#card-0").wait_for()
    page.locator("#looking .hint").wait_for()
    page.locator("article", has=page.get_by_role("heading", name="exercise")).get_by_label("Use of").select_option(
        "ordered categories"
    )
    page.wait_for_timeout(3000)
    page.evaluate("document.activeElement.blur()")
    take(page, "describe", high=1500)
    press("continue$")
    page.locator("#suggest").click()
    page.locator("#suggest").wait_for(state="detached")
    page.locator("[data-pick]", has_text="bmi").click()
    page.locator("[data-pick]", has_text="smoker").click()
    press("^does not cause")
    page.locator(".link.is-not").wait_for(state="attached")
    take(page, "order", high=1440)
    press("^Continue")
    press("^Try it on")
    page.get_by_text("Without any noise it would miss").wait_for()
    page.locator("#simulated progress").wait_for(state="detached")
    take(page, "plan", high=960)
    press("^Continue")
    page.get_by_role("heading", name="Ready to run").wait_for()
    page.get_by_label("What is it for").fill("Causes of a bad outcome: first look")
    take(page, "run")
    press("^Spend epsilon")
    page.locator("progress").wait_for()
    take(page, "running", high=420)
    page.locator("#view iframe").wait_for()
    page.frame_locator("#view iframe").get_by_role("heading", level=1).wait_for()
    page.wait_for_timeout(1500)
    take(page, "read", high=1560)


def take(page: Any, name: str, *, high: int = HIGH) -> None:
    """One picture, with few colours."""
    from PIL import Image

    page.set_viewport_size({"width": WIDE, "height": high})
    page.evaluate("scrollTo(0, 0)")
    page.wait_for_timeout(300)
    picture = Image.open(io.BytesIO(page.screenshot()))
    picture.convert("RGB").quantize(COLOURS, Image.Quantize.MAXCOVERAGE).save(
        PICTURES / f"studio-{name}.png", optimize=True
    )
    page.set_viewport_size({"width": WIDE, "height": HIGH})


if __name__ == "__main__":
    main()

"""A studio in this process for tests, and the tables that it is given."""

from __future__ import annotations

import re
import time
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlencode

import httpx

from asgi import Client
from dpcurate.studio.example_tables import clinic_csv
from dpcurate.studio.project import Workplace
from dpcurate.studio.studio_app import create_app
from dpcurate.studio.visit import StudioSite

TOKEN = "t" * 43
OURS = {"Origin": "http://127.0.0.1:8000", "Sec-Fetch-Site": "same-origin"}
HOSTS = ("127.0.0.1:8000",)


class Visitor:
    """A browser that was given the link: it keeps the cookie and follows redirects."""

    def __init__(self, folder: Path) -> None:
        self.site = StudioSite(Workplace(folder))
        self.client = Client(create_app(self.site, TOKEN, HOSTS))
        opened = self.client.get(f"/open/{TOKEN}")
        self.headers = {**OURS, "Cookie": opened.headers["set-cookie"].partition(";")[0]}
        self.at = "/"

    def get(self, path: str) -> httpx.Response:
        answer = self.client.get(path, headers=self.headers)
        while answer.is_redirect:
            path = answer.headers["location"]
            answer = self.client.get(path, headers=self.headers)
        self.at = path
        return answer

    def post(self, to: str, /, **fields: str) -> httpx.Response:
        answer = self.client.post(to, content=urlencode(fields), headers=self.headers)
        return self.get(answer.headers["location"]) if answer.is_redirect else answer

    def until(self, path: str, condition: object, what: str) -> httpx.Response:
        """The page, once a condition holds; only a hang takes all of the turns."""
        for _ in range(3000):
            answer = self.get(path)
            if condition(answer):  # type: ignore[operator]
                return answer
            time.sleep(0.02)
        raise AssertionError(f"it never happened: {what}")

    # --- the way of a person --------------------------------------------------------------------------------------

    def chosen(self, name: str) -> str:
        """Choose a listed file; the address of its project."""
        self.post("/", listed=name)
        return re.match(r"(/p/[a-z0-9-]+)/choose", self.at)[1]

    def described(self, name: str = "clinic.csv") -> str:
        """Up to a description that is confirmed."""
        project = self.chosen(name)
        self.confirmed(project)
        return project

    def confirmed(self, project: str) -> httpx.Response:
        """Everything confirmed that the page of the description shows."""
        page = self.until(f"{project}/describe", lambda page: 'id="card-0"' in page.text, "the draft is there")
        return self.post(f"{project}/describe", **fields_of(page.text), do="confirm")

    def spent(self, project: str, epsilon: float = 1.0, **fields: str) -> httpx.Response:
        """A run with this epsilon, up to its result."""
        self.post(f"{project}/plan", epsilon=f"{epsilon:g}", was="", do="next")
        page = self.get(f"{project}/run")
        self.post(f"{project}/run", do="run", **hidden(page.text, "left", "epsilon"), **fields)
        return self.until(f"{project}/run?watch=1", lambda page: "Running" not in page.text, "the run ends")


class _Fields(HTMLParser):
    """The fields of a page as a browser would send them."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, str] = {}
        self._open = ""

    def handle_starttag(self, tag: str, given: list[tuple[str, str | None]]) -> None:
        of = dict(given)
        name = of.get("name") or ""
        if tag == "input" and of.get("type") in ("checkbox", "radio"):
            self.found |= {name: of.get("value") or "on"} if "checked" in of else {}
        elif tag in ("input", "textarea"):
            self.found[name] = of.get("value") or ""
            self._open = name if tag == "textarea" else ""
        elif tag == "select":
            self._open = name
        elif tag == "option" and (self._open not in self.found or "selected" in of):
            self.found[self._open] = of.get("value") or ""

    def handle_data(self, data: str) -> None:
        if self._open and self.lasttag == "textarea":
            self.found[self._open] += data

    def handle_endtag(self, tag: str) -> None:
        if tag in ("textarea", "select"):
            self._open = ""


def fields_of(text: str) -> dict[str, str]:
    """The fields of a page, which has one form."""
    parser = _Fields()
    parser.feed(text)
    return {name: value for name, value in parser.found.items() if name}


def hidden(text: str, *names: str) -> dict[str, str]:
    """The values of hidden fields of a page."""
    return {name: re.search(f'type="hidden" name="{name}" value="([^"]*)"', text)[1] for name in names}


def a_clinic(folder: Path, rows: int = 1500) -> Path:
    """A mixed table of 12 columns: an id, a date, levels, an order, numbers, empty cells."""
    path = folder / "clinic.csv"
    path.write_text(clinic_csv(rows))
    return path

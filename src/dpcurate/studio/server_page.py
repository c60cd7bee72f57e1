"""Tables on servers: connect to one, or to several as one study, run within your share, and read what was found.

Learning happens here; only questions and noised answers travel. A token stays in memory and is written nowhere.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from starlette.responses import HTMLResponse, RedirectResponse, Response

from dpcurate import Discovery, DpcurateError, Study, connect, pool
from dpcurate.errors import FormatError
from dpcurate.schema.column_order import example_order
from dpcurate.studio.jobs import Job, Jobs
from dpcurate.studio.project import Workplace
from dpcurate.studio.words import largest, needed, promise, typed_number

if TYPE_CHECKING:
    from dpcurate.studio.visit import Visit

PATIENCE = 10.0
"""Seconds for which a page waits for a server that does not answer."""
MOST_SITES = 50
USUAL = 0.5
"""The epsilon that the form begins with, if so much is left."""
REPORT = "report.html"
REPORT_POLICY = "frame-ancestors 'self'; base-uri 'none'; form-action 'none'"
"""The report brings a stricter policy of its own; our usual one would forbid its inline script and style."""


class _Stopped(DpcurateError):
    """Raised inside a run that a person stops; what was paid is stored, and the same run again resumes it."""


@dataclass(slots=True)
class Place:
    """One connection of this process: a study on a server or on several, its work, and where results are written."""

    name: str
    addresses: tuple[str, ...]
    study: Study
    folder: Path
    job: Job | None = None
    stop: bool = False

    @property
    def left(self) -> float:
        """The largest epsilon that a run may have."""
        privacy = self.study.privacy()
        return 0.0 if privacy is None else largest(privacy.budget, self.study.remaining)

    @property
    def results(self) -> list[str]:
        """The folders of results that were saved, the newest first."""
        found = [path.parent.name for path in self.folder.glob(f"result-*/{REPORT}")]
        return sorted(found, key=lambda name: -int(name.rpartition("-")[2]))

    def save(self, found: Discovery) -> None:
        """Write a result into a folder of its own."""
        self.folder.mkdir(exist_ok=True)
        numbers = [int(name.rpartition("-")[2]) for name in self.results]
        found.save(self.folder / f"result-{max(numbers, default=0) + 1}")


@dataclass(slots=True)
class Places:
    """The connections of this process, by a name that nobody can guess."""

    jobs: Jobs
    known: dict[str, Place] = field(default_factory=dict)

    def add(self, workplace: Workplace, sites: list[tuple[str, str]]) -> str:
        """Connect; the first answers of the servers are read at once, so that a wrong token is told here."""
        studies = [connect(address, token, patience=PATIENCE) for address, token in sites]
        study = studies[0] if len(studies) == 1 else pool(studies)
        addresses = tuple(address for address, _ in sites)
        host = urlsplit(addresses[0]).netloc or addresses[0]
        slug = re.sub("[^a-z0-9]+", "-", host.lower()).strip("-") or "server"
        name = host if len(sites) == 1 else f"{len(sites)} sites"
        study.remaining  # noqa: B018  the share is asked for, so that a refusal is told here
        key = secrets.token_urlsafe(12)
        self.known[key] = Place(name, addresses, study, workplace.folder / f"{slug}-results")
        return key

    def find(self, key: str) -> Place:
        """One of them."""
        if key not in self.known:
            raise FormatError("this connection has ended with the studio that made it: connect again on the first page")
        return self.known[key]

    def work(self, place: Place, work: Any) -> None:
        """Begin some work in the background, unless some is under way."""
        if place.job is not None and not place.job.done:
            return
        place.stop = False
        place.job = self.jobs.start(("server", secrets.token_hex(8)), work)


def connecting(visit: Visit) -> Response:
    """Connect to what was typed: an address and a token, or a line of both for each of several."""
    sites = [(visit.text("address"), visit.text("token"))] if visit.text("address") else []
    for line in visit.text("sites").splitlines():
        words = line.split()
        if len(words) != 2:
            raise FormatError("each line holds the address of a server, a blank, and your token there")
        sites.append((words[0], words[1]))
    if not 0 < len(sites) <= MOST_SITES:
        raise FormatError("type the address of a server, and the token that its owner gave you")
    return RedirectResponse(f"/s/{visit.site.places.add(visit.site.workplace, sites)}", status_code=303)


def show(visit: Visit) -> Response:
    """What the server offers, what a run would spend, the run under way, and what was found."""
    key = str(visit.path["place"])
    place = visit.site.places.find(key)
    values: dict[str, Any] = {"place": place, "at": f"/s/{key}", "schema": place.study.schema, "problem": ""}
    if place.job is not None and not place.job.done:
        return visit.site.page("server_running.html", **values)
    left = place.left
    epsilon = _epsilon(visit.query.get("epsilon", ""), min(USUAL, left))
    order = visit.query.get("order", "")
    values |= {
        "left": left, "epsilon": epsilon, "order": order, "example": example_order(place.study.schema.columns),
        "promise": promise(epsilon), "outlook": None, "resumes": None, "remaining": repr(place.study.remaining),
        "results": place.results, "log": list(reversed(place.study.log)), "shown": _shown(visit, place),
    }  # fmt: skip
    try:
        if left > 0:
            preview = place.study.preview(epsilon=epsilon, order=order or None)
            values |= {"outlook": preview.outlook, "resumes": preview.resumes}
            if preview.outlook is not None and preview.outlook.hopeless:
                values["needed"] = needed(preview.outlook)
            preview.budget.check_share()
    except DpcurateError as error:
        values["problem"] = str(error)
    return visit.site.page("server.html", **values)


def _shown(visit: Visit, place: Place) -> str:
    results = place.results
    wanted = visit.query.get("result", "")
    return wanted if wanted in results else results[0] if results else ""


def _epsilon(text: str, usual: float) -> float:
    return typed_number(text, "epsilon is a number such as 0.5") if text.strip() else usual


def act(visit: Visit) -> Response:
    """Run, look again at stored answers, or stop."""
    key = str(visit.path["place"])
    place, action = visit.site.places.find(key), visit.text("do")
    back = RedirectResponse(f"/s/{key}", status_code=303)
    if action == "stop":
        place.stop = True
    elif action == "again":
        order, latent = visit.text("order") or None, visit.text("latent") == "1"
        visit.site.places.work(
            place, lambda _job: place.save(place.study.reopen().discover(order=order, latent=latent))
        )  # fmt: skip
    elif action == "run":
        if visit.text("remaining") != repr(place.study.remaining):
            raise FormatError("the budget has changed since this page was shown. Nothing was spent: look at it again")
        _begin(visit, place)
    return back


def _begin(visit: Visit, place: Place) -> None:
    epsilon, order = _epsilon(visit.text("epsilon"), USUAL), visit.text("order") or None
    purpose = visit.text("purpose")[:500]
    place.study.preview(epsilon=epsilon, order=order, purpose=purpose).budget.check_share()

    def work(job: Job) -> None:
        def notice(stage: str, _tests: int) -> None:
            if place.stop:
                raise _Stopped("stopped. What was paid is stored; the same run again pays nothing twice")
            job.value = stage

        place.study.discover(epsilon=epsilon, order=order, purpose=purpose, progress=notice, deliver=place.save)

    visit.site.places.work(place, work)


def report(visit: Visit) -> Response:
    """A saved page."""
    place = visit.site.places.find(str(visit.path["place"]))
    shown = _shown(visit, place)
    if not shown:
        raise FormatError("nothing was found yet")
    text = (place.folder / shown / REPORT).read_text(encoding="utf-8")
    return HTMLResponse(text, headers={"Content-Security-Policy": REPORT_POLICY})

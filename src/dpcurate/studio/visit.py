"""One request of a person to a page: its fields, its project, and the pages that answer it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

from jinja2 import Environment
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from dpcurate.errors import DpcurateError
from dpcurate.studio.jobs import Jobs
from dpcurate.studio.looks import Looks
from dpcurate.studio.project import Project, Workplace
from dpcurate.studio.results import Results
from dpcurate.studio.server_page import Places
from dpcurate.studio.watched_runs import WatchedRuns, finished
from dpcurate.web.pages import SHARED, Assets, templates

OWN = "dpcurate.studio"
LONGEST_FORM = 16_000_000
"""Bytes of a form: 300 columns of 1,000 levels."""
MOST_FIELDS = 20_000
STEPS = (
    ("choose", "Choose"),
    ("describe", "Describe"),
    ("order", "What comes first?"),
    ("plan", "Plan"),
    ("run", "Run"),
    ("read", "Read"),
)
"""The steps of a project: the end of their address, and their name."""


class TooLong(DpcurateError):
    """A form that is longer than any page of ours sends."""


@dataclass(slots=True)
class StudioSite:
    """What all pages share."""

    workplace: Workplace
    jobs: Jobs = field(default_factory=Jobs)
    looks: Looks = field(init=False)
    """Looks at rows."""
    places: Places = field(init=False)
    """Connections to servers."""
    runs: WatchedRuns = field(default_factory=WatchedRuns)
    results: Results = field(default_factory=Results)
    assets: Assets = field(default_factory=lambda: Assets({**SHARED, "studio.css": OWN, "studio.js": OWN}))
    pages: Environment = field(default_factory=lambda: templates(OWN))

    def __post_init__(self) -> None:
        self.looks = Looks(self.jobs)
        self.places = Places(self.jobs)

    def page(self, name: str, *, status: int = 200, **values: Any) -> Response:
        """A page from a template."""
        text = self.pages.get_template(name).render(assets=self.assets, root="", steps=STEPS, **values)
        return HTMLResponse(text, status_code=status)


@dataclass(frozen=True, slots=True)
class Visit:
    """A request, read."""

    site: StudioSite
    path: Mapping[str, Any]
    query: Mapping[str, str]
    form: Mapping[str, str]
    project: Project

    def page(self, name: str, step: str, *, status: int = 200, **values: Any) -> Response:
        """A page of a step of the project."""
        project = self.project
        state = project.state
        done = {
            "choose": True,
            "describe": bool(state.cards) and not state.unconfirmed and project.schema is not None,
            "order": bool(state.board.places or state.board.facts),
            "plan": bool(finished(project.ledger)),
            "run": bool(finished(project.ledger)),
            "read": False,
        }
        return self.site.page(
            name, status=status, project=project, state=state, step=step, done=done, at=f"/p/{project.id}", **values
        )

    def go(self, step: str, query: str = "") -> Response:
        """To a step of the project, after a form."""
        return RedirectResponse(f"/p/{self.project.id}/{step}{query}", status_code=303)

    def text(self, name: str) -> str:
        """A field of the form without blanks at its ends; empty if it is not there."""
        return self.form.get(name, "").strip()


def answering(site: StudioSite, work: Callable[[Visit], Response]) -> Callable[[Request], Any]:
    """The endpoint of a page: reads the request, works in a thread, and tells what was refused as a page."""

    async def answer(request: Request) -> Response:
        try:
            form = await _form(request) if request.method == "POST" else {}
            return await run_in_threadpool(_answered, request, form)
        except TooLong as error:
            return site.page("problem.html", status=413, problem=str(error), back="/")

    def _answered(request: Request, form: Mapping[str, str]) -> Response:
        name = request.path_params.get("project")
        back = request.url.path if request.path_params else "/"
        try:
            project = None if name is None else site.workplace.project(name)
            visit = Visit(site, request.path_params, dict(request.query_params), form, project)  # type: ignore[arg-type]
            return work(visit)
        except DpcurateError as error:
            return site.page("problem.html", status=400, problem=str(error), back=back)

    return answer


async def _form(request: Request) -> dict[str, str]:
    """The fields of a form; of several with one name the last."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > LONGEST_FORM:
            raise TooLong("the form is longer than any form of the studio")
    try:
        fields = parse_qs(body.decode("ascii", errors="replace"), keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError:
        raise TooLong("the form has more fields than any form of the studio") from None
    return {name: values[-1] for name, values in fields.items()}

"""Step 6, Read: the report of a run, other views of the same answers, effects, comparisons, files and the log."""

from __future__ import annotations

import io
import shlex
import zipfile
from dataclasses import dataclass, replace
from typing import Any

from starlette.responses import HTMLResponse, Response

from dpcurate import Discovery, Ledger, messages
from dpcurate.errors import DpcurateError, FormatError
from dpcurate.studio.project import KNOWLEDGE, RESULTS, SCHEMA, Project
from dpcurate.studio.results import ResultView, saved_text
from dpcurate.studio.server_page import REPORT_POLICY
from dpcurate.studio.visit import Visit
from dpcurate.studio.watched_runs import finished

REPORT, ALL = "report.html", "result.zip"
FILES = {
    REPORT: "the page to publish",
    "report.json": "everything as data",
    "edges.csv": "the edges as a table",
    "graph.dot": "the graph for Graphviz",
    "graph.graphml": "the graph for network tools",
    SCHEMA: "the description of the table",
    KNOWLEDGE: "what comes first",
    ALL: "all of these in one",
}
"""What can be downloaded."""
TYPES = {".json": "application/json", ".csv": "text/csv", ".html": "text/html", ".zip": "application/zip"}


@dataclass(frozen=True, slots=True)
class RunLine:
    """A run of the log as the page lists it."""

    number: int
    started: str
    by: str
    method: str
    purpose: str
    epsilon: float
    outcome: str
    readable: bool


def show(visit: Visit) -> Response:
    """The report and all that can be done with it."""
    project = visit.project
    ledger = project.ledger
    runs = finished(ledger)
    if not runs or ledger is None:
        return visit.page("nothing_yet.html", "read", log=_log(project))
    view = view_of(visit, runs[0].number)
    found = visit.site.results.found(project, view)
    names = found.schema.names
    values: dict[str, Any] = {
        "view": view, "found": found, "runs": runs, "log": _log(project), "files": _files(project), "names": names,
        "query": query_of(view), "effect": _effect(visit, found), "difference": _difference(visit, found, view),
        "cause": visit.query.get("cause", ""), "outcome": visit.query.get("outcome", ""),
        "other": visit.query.get("other", ""), "new": "new" in visit.query, "saved": visit.query.get("saved", ""),
        "folder": project.result_folder(view.run), "commands": commands(project, view),
        "knowledge": project.knowledge, "shares": _shares(ledger),
    }  # fmt: skip
    return visit.page("read.html", "read", **values)


def view_of(visit: Visit, newest: int) -> ResultView:
    """The view that the address asks for."""
    query = {**visit.query, **visit.form}
    run = query.get("run", "")
    at = query.get("at", "0.5")
    try:
        return ResultView(
            run=int(run) if run.isdecimal() else newest,
            at=at if at == "best-f1" else float(at),
            direction=float(query.get("direction", "0.8")),
            latent=query.get("latent", "") == "1",
        )
    except ValueError:
        raise FormatError("the address of this page was changed by hand") from None


def query_of(view: ResultView) -> str:
    """A view as the end of an address."""
    latent = "&latent=1" if view.latent else ""
    return f"?run={view.run}&at={view.at}&direction={view.direction:g}{latent}"


def _effect(visit: Visit, found: Discovery) -> str:
    cause, outcome = visit.query.get("cause", ""), visit.query.get("outcome", "")
    if not cause or not outcome:
        return ""
    try:
        effect = found.effect(cause, outcome)
    except DpcurateError as error:
        return str(error)
    return str(effect)


def _difference(visit: Visit, found: Discovery, view: ResultView) -> tuple[str, ...]:
    other = visit.query.get("other", "")
    if not other:
        return ()
    if other == "hidden":
        second = visit.site.results.found(visit.project, replace(view, latent=not view.latent))
    elif other.isdecimal():
        second = visit.site.results.found(visit.project, replace(view, run=int(other)))
    else:
        return ()
    return tuple(found.diff(second).lines[1:])


def _shares(ledger: Ledger) -> list[tuple[str, float, float, str]]:
    """Analysts who may ask through a service: the epsilon of their share, what they have spent, and what for."""
    worth = ledger.budget.as_epsilon
    return [
        (share.name, worth(share.ceiling), worth(share.spent), share.purpose)
        for share in ledger.shares
        if not share.revoked
    ]


def _log(project: Project) -> list[RunLine]:
    ledger = project.ledger
    if ledger is None:
        return []
    readable = {run.number for run in finished(ledger)}
    return [
        RunLine(
            run.number, run.started[:16].replace("T", " "), run.facts.by, run.facts.method, run.facts.purpose,
            ledger.budget.as_epsilon(run.spent), run.outcome, run.number in readable,
        )
        for run in reversed(ledger.log())
    ]  # fmt: skip


def _files(project: Project) -> dict[str, str]:
    return {name: what for name, what in FILES.items() if name != KNOWLEDGE or project.knowledge_file is not None}


def commands(project: Project, view: ResultView) -> tuple[str, ...]:
    """The same by the command line: the run, and this view of its answers."""
    ledger, state, schema = str(project.ledger_file), project.state, str(project.schema_file)
    known = () if project.knowledge_file is None else ("--knowledge", str(project.knowledge_file))
    epsilon = state.epsilon if state.started is None else state.started.epsilon
    cut = ["--at", f"{view.at}"] + ([] if isinstance(view.at, str) else ["--direction", f"{view.direction:g}"])
    cut += ["--latent"] if view.latent else []
    words: tuple[list[str], ...] = (
        ["ledger", "init", ledger, "--table", state.name, "--schema", schema, "--epsilon", f"{state.ceiling:g}"],
        ["discover", state.table, "--schema", schema, *known, "--epsilon", f"{epsilon:g}", "--ledger", ledger,
         "-o", "result"],
        ["discover", "--from-answers", ledger, f"{view.run}", *known, *cut, "-o", "view"],
    )  # fmt: skip
    return tuple(messages.one_line(f"dpcurate {shlex.join(one)}") for one in words)


def report(visit: Visit) -> Response:
    """The report page by itself, for the frame or a tab of its own."""
    return HTMLResponse(_text(visit, REPORT), headers={"Content-Security-Policy": REPORT_POLICY})


def _view(visit: Visit) -> ResultView:
    runs = finished(visit.project.ledger)
    if not runs:
        raise FormatError("there is no finished run yet")
    return view_of(visit, runs[0].number)


def _text(visit: Visit, name: str) -> str:
    """A file of this view: as the run has saved it, or from stored answers."""
    project = visit.project
    if name in (SCHEMA, KNOWLEDGE):
        return (project.folder / name).read_text(encoding="utf-8")
    view = _view(visit)
    saved = saved_text(project, view, name)
    return visit.site.results.found(project, view).report_text(name) if saved is None else saved


def download(visit: Visit) -> Response:
    """A file of this view."""
    name = str(visit.path["name"])
    if name not in _files(visit.project):
        raise FormatError("there is no such file")
    body = _all(visit) if name == ALL else _text(visit, name)
    kind = next((kind for suffix, kind in TYPES.items() if name.endswith(suffix)), "text/plain")
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Content-Security-Policy": "sandbox"}
    return Response(body, media_type=kind, headers=headers)


def _all(visit: Visit) -> bytes:
    """Every other file, packed into one."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in _files(visit.project):
            if name != ALL:
                archive.writestr(name, _text(visit, name))
    return packed.getvalue()


def save(visit: Visit) -> Response:
    """Write this view into the results folder, beside those that are there."""
    view = _view(visit)
    found = visit.site.results.found(visit.project, view)
    for number in range(2, 1000):
        folder = visit.project.folder / RESULTS / f"run-{view.run}-view-{number}"
        if not folder.exists():
            found.save(folder)
            return visit.go("read", f"{query_of(view)}&saved={folder.name}")
    raise FormatError("there are a thousand views of this run already; remove some")

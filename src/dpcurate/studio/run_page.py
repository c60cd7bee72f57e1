"""Step 5, Run: what will be spent, a confirmation, progress, and what became of it."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from dpcurate import Preview
from dpcurate.errors import BudgetExceeded, DpcurateError
from dpcurate.studio.project import Project, ProjectState, RunSettings
from dpcurate.studio.visit import Visit
from dpcurate.studio.watched_runs import STAGES, finished, preview_of, study_of
from dpcurate.studio.words import bar_of, needed, promise

LONGEST_PURPOSE = 500


def show(visit: Visit) -> Response:
    """The run under way, the one that can be resumed, or what a new one would spend."""
    project, state = visit.project, visit.project.state
    watch = visit.site.runs.watched(project)
    if watch is not None and watch.running:
        return visit.page("running.html", "run", watch=watch, stages=STAGES, paid=_paid(project))
    if watch is not None and watch.outcome == "finished" and "watch" in visit.query:
        return visit.go("read", f"?run={watch.number}&new=1")
    if project.schema is None or state.unconfirmed:
        return visit.page("not_described.html", "run")
    values: dict[str, Any] = {
        "watch": watch, "bar": None, "preview": None, "resume": None, "problem": "", "left": "", "promise": "",
        "paid": None, "done_runs": len(finished(project.ledger)),
    }  # fmt: skip
    try:
        values |= _facts(project, state)
    except BudgetExceeded as error:
        values["problem"], values["ended"] = str(error), True
    except DpcurateError as error:
        values["problem"] = str(error)
    return visit.page("run.html", "run", **values)


def _facts(project: Project, state: ProjectState) -> dict[str, Any]:
    ledger = project.ledger
    facts: dict[str, Any] = {"bar": None if ledger is None else bar_of(ledger), "left": _left(project)}
    if state.started is not None:
        again = preview_of(project, state.started)
        if again.resumes is not None:
            spent = again.budget.budget.as_epsilon(again.resumes.spent)
            facts |= {"resume": again.resumes, "paid": spent, "resumed": state.started}
    preview = preview_of(project, RunSettings(epsilon=state.epsilon))
    preview.budget.check_share()
    outlook = preview.outlook
    facts["needed"] = needed(outlook) if outlook is not None and outlook.hopeless else ""
    return facts | {"preview": preview, "promise": promise(state.epsilon), "unit": _unit(preview)}


def _unit(preview: Preview) -> str:
    person = preview.spec.schema.person
    return (
        "each row; if people have several rows, say so under Describe"
        if person is None
        else f"one person ({person.column}), {person.cap}"
    )


def _paid(project: Project) -> float:
    """What the newest run has spent so far, as an epsilon by itself."""
    ledger = project.ledger
    log = () if ledger is None else ledger.log()
    return 0.0 if ledger is None or not log else ledger.budget.as_epsilon(log[-1].spent)


def _left(project: Project) -> str:
    """What is left, exactly: a form from another time spends nothing."""
    return repr(study_of(project).remaining)


def act(visit: Visit) -> Response:
    """Begin, resume or cancel a run."""
    project, action = visit.project, visit.text("do")
    if action == "cancel":
        visit.site.runs.cancel(project)
        return visit.go("run", "?watch=1")
    state = project.state
    if state.unconfirmed:
        return visit.go("describe")
    watch = visit.site.runs.watched(project)
    if watch is not None and watch.running:
        return visit.go("run", "?watch=1")
    if action == "resume" and state.started is not None:
        visit.site.runs.start(project, state.started)
    elif action == "run":
        _begin(visit, project, state)
    return visit.go("run", "?watch=1")


def _begin(visit: Visit, project: Project, state: ProjectState) -> None:
    if visit.text("left") != _left(project) or visit.text("epsilon") != f"{state.epsilon:g}":
        raise DpcurateError(
            "the budget or the plan has changed since this page was shown, perhaps in another tab. Nothing was spent: "
            "look at the page again"
        )
    settings = RunSettings(epsilon=state.epsilon, purpose=visit.text("purpose")[:LONGEST_PURPOSE])
    preview = preview_of(project, settings)
    if preview.outlook is not None and preview.outlook.hopeless and "anyway" not in visit.form:
        raise DpcurateError(
            "this run is expected to find hardly any links; nothing was spent. Tick the box to run it anyway"
        )
    preview.budget.check_share()
    visit.site.runs.start(project, settings)

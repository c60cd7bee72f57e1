"""Runs: begun in a thread, watched and cancelled from pages, resumed after a stop. All spending is the ledger's.

A run is a `Study.discover`. It goes on when the page is closed. If the studio is killed, the ledger knows what was
paid, and the same run again pays nothing twice.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from dpcurate import Discovery, DpcurateError, Inputs, Ledger, OutputFolder, Preview, Study
from dpcurate._files import save_text
from dpcurate.studio.project import KNOWLEDGE, RESULTS, SCHEMA, Project, RunSettings

OPENING, SEARCHING, WRITING = "Reading the table", "Searching for the graph", "Writing the report"
MEASURING = "Releasing noisy sums"
STAGES = (OPENING, MEASURING, SEARCHING, WRITING)
"""What a run does, in order; the middle two may alternate."""
PASSES = 4.0
"""A first run takes about so many times as long as opening its table did."""
PATIENCE = 5.0
"""Seconds that the studio waits at its end for a run to stop by itself."""
UNDER_WAY = "under way"


class _Stopped(BaseException):
    """Raised inside a run that is cancelled; as with Ctrl-C the ledger notes it as stopped."""


@dataclass(slots=True)
class RunWatch:
    """A run of this process, as a page sees it."""

    settings: RunSettings
    usual: float | None
    """Seconds that the last finished run took."""
    began: float = field(default_factory=time.monotonic)
    stage: str = OPENING
    opened: float | None = None
    outcome: str = UNDER_WAY
    problem: str = ""
    number: int | None = None
    cancelling: bool = False
    thread: threading.Thread | None = None
    texts: dict[str, str] = field(default_factory=dict)
    """The description and the knowledge as they were when it began: saved with its result."""

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self.outcome == UNDER_WAY

    @property
    def seconds(self) -> float:
        """How long it has been under way."""
        return time.monotonic() - self.began

    @property
    def left(self) -> float | None:
        """Seconds that it may still take; None while nothing is known."""
        expected = self.usual
        if expected is None and self.opened is not None:
            expected = PASSES * self.opened
        return None if expected is None else max(expected - self.seconds, 1.0)

    def notice(self, stage: str, _tests: int) -> None:
        """Called by the run before it asks anything: the place where it can be stopped."""
        if self.cancelling:
            raise _Stopped
        if self.opened is None:
            self.opened = self.seconds
        self.stage = SEARCHING if stage == "search" else MEASURING


class WatchedRuns:
    """The runs of this process, one at a time for each project."""

    def __init__(self) -> None:
        self._watched: dict[Path, RunWatch] = {}
        self._lock = threading.Lock()

    def watched(self, project: Project) -> RunWatch | None:
        """The run of a project that was begun last in this process."""
        return self._watched.get(project.folder)

    def start(self, project: Project, settings: RunSettings) -> RunWatch:
        """Begin a run, or resume the same one. Raises what `Study.preview` refuses, before anything is read."""
        with self._lock:
            now = self._watched.get(project.folder)
            if now is not None and now.running:
                return now
            study = study_of(project)
            preview_of(project, settings, study=study)
            OutputFolder.made(project.folder / RESULTS, (), _inputs(project), force=True)
            project.change(started=settings)
            watch = RunWatch(settings, _usual(project.ledger), texts=project.texts())
            watch.thread = threading.Thread(target=_work, args=(project, study, watch), daemon=True)
            self._watched[project.folder] = watch
            watch.thread.start()
            return watch

    def cancel(self, project: Project) -> None:
        """Stop a run before its next question; what it has paid for stays paid and stored."""
        watch = self.watched(project)
        if watch is not None:
            watch.cancelling = True

    def close(self) -> None:
        """Stop every run at the end of the studio; each can be resumed."""
        threads = [watch.thread for watch in self._watched.values() if watch.running and watch.thread]
        for watch in self._watched.values():
            watch.cancelling = True
        end = time.monotonic() + PATIENCE
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))


def study_of(project: Project) -> Study:
    """The study of a project: its table, its schema file and its ledger."""
    state, path = project.state, project.ledger_file
    ceiling = None if Ledger.exists(path) else state.ceiling
    return Study(
        state.table, project.schema_file, epsilon=ceiling, ledger=path, name=None if state.ledger else state.name
    )


def told(project: Project, settings: RunSettings) -> dict[str, Any]:
    """A run's arguments: the same for its preview, its beginning and its resumption."""
    return {
        "epsilon": settings.epsilon, "knowledge": project.knowledge_file, "latent": settings.latent,
        "purpose": settings.purpose, "by": settings.by, "result": str(project.folder / RESULTS),
    }  # fmt: skip


def preview_of(project: Project, settings: RunSettings, *, study: Study | None = None) -> Preview:
    """What a run may spend and find; free."""
    return (study or study_of(project)).preview(**told(project, settings))


def _work(project: Project, study: Study, watch: RunWatch) -> None:
    def deliver(found: Discovery) -> None:
        watch.stage = WRITING
        watch.number = None if found.run is None else found.run.number
        folder = project.result_folder(watch.number or "unknown")
        found.save(folder, force=True)
        for name in (SCHEMA, KNOWLEDGE):
            (folder / name).unlink(missing_ok=True)
            if name in watch.texts:
                save_text(folder / name, watch.texts[name])

    try:
        study.discover(**told(project, watch.settings), progress=watch.notice, deliver=deliver)
        watch.outcome = "finished"
    except _Stopped:
        watch.outcome = "stopped"
    except DpcurateError as error:
        watch.outcome, watch.problem = "refused", str(error)
    except BaseException as error:  # a thread that dies in silence would leave the page waiting
        watch.outcome, watch.problem = "failed", f"unexpected: {type(error).__name__}: {error}"


def _inputs(project: Project) -> Inputs:
    return Inputs.of(
        table=project.state.table,
        schema=project.schema_file,
        knowledge=project.knowledge_file,
        ledger=project.ledger_file,
    )


def finished(ledger: Ledger | None) -> list[Any]:
    """The runs of a ledger that found a graph, the newest first."""
    runs: Iterable[Any] = () if ledger is None else ledger.log()
    return [run for run in reversed(list(runs)) if run.finished and _found_graph(run)]


def _found_graph(run: Any) -> bool:
    return not run.facts.method.startswith(("ask", "quantify"))


def _usual(ledger: Ledger | None) -> float | None:
    """Seconds that the last finished run took, without those that were resumed."""
    for run in finished(ledger):
        if run.ended is not None:
            return (datetime.fromisoformat(run.ended) - datetime.fromisoformat(run.started)).total_seconds()
    return None

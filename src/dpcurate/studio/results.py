"""Results computed again from stored answers: no table is read and nothing is spent."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from pathlib import Path

from dpcurate import Discovery, discover_from
from dpcurate.studio.project import KNOWLEDGE, Project

KEPT = 8
"""Results that are remembered: a search of many columns takes its time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultView:
    """A way to look at a run: which answers, what is known, whether causes may be hidden, and what is drawn."""

    run: int
    at: float | str = 0.5
    direction: float = 0.8
    latent: bool = False


AS_RUN = ResultView(run=0)
"""How a run itself looks at its answers."""


def saved_text(project: Project, view: ResultView, name: str) -> str | None:
    """A file that the run has saved, if the view is the one that it had; None if it must be computed again.

    The page to publish then says what the run has spent, and not that another look at stored answers spent nothing.
    """
    folder = project.result_folder(view.run)
    try:
        if replace(view, run=0) != AS_RUN or _knowledge_of(folder) != _knowledge_of(project.folder):
            return None
        return (folder / name).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None


def _knowledge_of(folder: Path) -> str:
    path = folder / KNOWLEDGE
    return path.read_text(encoding="utf-8") if path.exists() else ""


class Results:
    """The results of all projects, as views ask for them."""

    def __init__(self) -> None:
        self._found: OrderedDict[tuple[object, ...], Discovery] = OrderedDict()
        self._lock = threading.Lock()

    def found(self, project: Project, view: ResultView) -> Discovery:
        """The result of a view, with the project's present knowledge."""
        result = self._of(project, view)
        if not result.confidence:
            return result
        if isinstance(view.at, str):
            return result.at(view.at)
        return result.at(view.at, direction=view.direction)

    def _of(self, project: Project, view: ResultView) -> Discovery:
        knowledge = project.knowledge
        key = (project.ledger_file, view.run, view.latent, "" if knowledge is None else knowledge.dumps())
        with self._lock:  # one search at a time: the second may want what the first finds
            if key not in self._found:
                self._found[key] = discover_from(project.ledger_file, view.run, knowledge=knowledge, latent=view.latent)
                while len(self._found) > KEPT:
                    self._found.popitem(last=False)
            self._found.move_to_end(key)
            return self._found[key]

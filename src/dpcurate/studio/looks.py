"""Looks at the rows, for the owner alone: a draft, and how the rows fit what was typed. NOT PRIVATE, never published.

Everything here is a call of the public package; what it finds stays in the project folder and on the owner's screen.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from dpcurate import Draft, Schema, TableCheck, draft_schema
from dpcurate.studio.cards import drafted
from dpcurate.studio.jobs import Job, Jobs
from dpcurate.studio.project import Project

LAYOUT = ("separator", "encoding", "decimal", "skip")
"""How a text file is written; found in the file unless typed."""


class Looks:
    """Drafts and checks, each done once for what it depends on."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._newest: dict[Path, TableCheck] = {}

    def draft(self, project: Project) -> Job:
        """The draft of a project whose cards are not made yet; they are saved when it is done."""

        def work(_job: Job) -> None:
            state = project.state
            found = draft_schema(state.table, **{key: state.file[key] for key in LAYOUT if key in state.file})
            with project.changing() as holder:
                if not holder[0].cards:  # a reload may have begun it twice
                    holder[0] = replace(
                        holder[0], cards=drafted(found), file=_layout(found), read_as=found.read_as,
                        rows=str(found.rows), rows_guessed=True,
                    )  # fmt: skip

        return self._jobs.start(("draft", project.folder), work)

    def drafting(self, project: Project) -> Job | None:
        """The draft under way, or how it ended."""
        return self._jobs.find(("draft", project.folder))

    def again(self, project: Project, layout: dict[str, Any]) -> Job:
        """A new draft with another reading of the text file; cards typed before are replaced."""
        project.change(cards=(), file=layout, read_as="")
        self._jobs.forget(("draft", project.folder))
        return self.draft(project)

    def check(self, project: Project, schema: Schema) -> Job:
        """How the rows fit a schema."""
        table = project.state.table

        def work(_job: Job) -> TableCheck:
            check = TableCheck.of(table, schema)
            self._newest[project.folder] = check
            return check

        return self._jobs.start(("check", project.folder, schema.hash), work)

    def newest(self, project: Project) -> TableCheck | None:
        """The check that was done last: cards show it until the next one is done, so that nothing jumps."""
        return self._newest.get(project.folder)


def _layout(draft: Draft) -> dict[str, Any]:
    """What is not as usual, as the schema's file has it."""
    file, usual = draft.file, type(draft.file)()
    names = ("separator", "encoding", "decimal", "missing", "skip")
    told = {name: getattr(file, name) for name in names if getattr(file, name) != getattr(usual, name)}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in told.items()}

"""A project: one folder for one table, with everything a person has typed and everything that was found.

studio.json     what was typed, step by step; a page shows nothing that is not here, in the ledger or in the results
schema.toml     the description, once every column makes sense
knowledge.toml  what comes first, and edges that must or must not be there
NAME.ledger     the budget, unless another ledger was chosen
results/run-N   the files of each run
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from dpcurate import Inputs, Knowledge, Ledger, Schema
from dpcurate._files import save_text
from dpcurate.errors import DpcurateError, FormatError, LedgerError, OutputError
from dpcurate.studio.cards import Card, schema_of
from dpcurate.studio.tiers import Board

STATE, SCHEMA, KNOWLEDGE, RESULTS = "studio.json", "schema.toml", "knowledge.toml", "results"
CEILING = 2.0
"""The total epsilon of a new budget, unless another is typed."""
FIRST_RUN = 1.0
"""The epsilon that the slider begins at."""
LONGEST_STATE = 64_000_000
_SLUG = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """What makes a run the same run again, and what its log says."""

    epsilon: float
    latent: bool = False
    purpose: str = ""
    by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectState:
    """All that a person has typed. Frozen: a change is a new one, written to disk at once."""

    table: str
    name: str
    read_as: str = ""
    file: dict[str, Any] = field(default_factory=dict)
    rows: str = ""
    rows_guessed: bool = False
    cards: tuple[Card, ...] = ()
    board: Board = field(default_factory=Board)
    ledger: str = ""
    """A ledger elsewhere; empty for one of the project's own."""
    ceiling: float = CEILING
    epsilon: float = FIRST_RUN
    started: RunSettings | None = None
    """The run that was started last; if it was stopped, the same again resumes it."""

    def card(self, name: str) -> Card | None:
        """The card of a column."""
        return next((card for card in self.cards if card.name == name), None)

    @property
    def unconfirmed(self) -> tuple[str, ...]:
        """What was guessed from the rows and not yet confirmed."""
        names = [card.name for card in self.cards if card.waits]
        return (*names, *(["the number of rows"] if self.rows_guessed else []))


def _plain(state: ProjectState) -> dict[str, Any]:
    return {"version": 1, **asdict(state)}


def _state(data: Any) -> ProjectState:
    try:
        if data.pop("version") != 1:
            raise FormatError("this project was made by another version of dpcurate")
        known = {one.name for one in fields(ProjectState)}
        values = {key: value for key, value in data.items() if key in known}
        values["cards"] = tuple(Card.of(card) for card in values.get("cards", ()))
        values["board"] = Board.of(values.get("board", {}))
        started = values.get("started")
        values["started"] = None if started is None else RunSettings(**started)
        return ProjectState(**values)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise FormatError(f"{STATE} is damaged: {error}") from None


@dataclass(frozen=True, slots=True)
class Project:
    """A project folder. `state` is read anew from disk, so that two tabs and two servers see the same."""

    folder: Path
    _lock: threading.RLock = field(default_factory=threading.RLock, repr=False, compare=False)

    @property
    def id(self) -> str:
        """The folder's name, which is a part of addresses."""
        return self.folder.name

    # --- what was typed -----------------------------------------------------------------------------------------------

    @property
    def state(self) -> ProjectState:
        """What was typed so far."""
        path = self.folder / STATE
        try:
            if path.stat().st_size > LONGEST_STATE:
                raise FormatError(f"{STATE} is too long")
            return _state(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:
            raise FormatError(f"{STATE} of this project cannot be read: {error}") from None

    def save(self, state: ProjectState) -> None:
        """Write what was typed, and the schema and the knowledge that follow from it."""
        with self._lock:
            save_text(self.folder / STATE, json.dumps(_plain(state), ensure_ascii=False, indent=1) + "\n")
            schema, _ = schema_of(state.cards, state.rows, state.file)
            if schema is not None:
                save_text(self.folder / SCHEMA, schema.dumps(), Inputs.of(table=state.table))
                self._save_knowledge(state.board, schema)

    @contextmanager
    def changing(self) -> Iterator[list[ProjectState]]:
        """The state in a list of one, to be replaced by another; it is written at the end."""
        with self._lock:
            holder = [self.state]
            yield holder
            self.save(holder[0])

    def change(self, **values: Any) -> ProjectState:
        """Replace some of what was typed."""
        with self.changing() as holder:
            holder[0] = replace(holder[0], **values)
        return holder[0]

    def _save_knowledge(self, board: Board, schema: Schema) -> None:
        path = self.folder / KNOWLEDGE
        try:
            knowledge = board.knowledge(schema.names)
            knowledge.check(schema.names)
        except DpcurateError:  # the page of the step tells; the last good file stays
            return
        text = knowledge.dumps()
        if text:
            save_text(path, text)
        else:
            with suppress(FileNotFoundError):
                path.unlink()

    # --- what follows from it -----------------------------------------------------------------------------------------

    @property
    def schema(self) -> Schema | None:
        """The description, if every column makes sense."""
        state = self.state
        return schema_of(state.cards, state.rows, state.file)[0]

    @property
    def schema_file(self) -> Path:
        """Where the description is written."""
        return self.folder / SCHEMA

    @property
    def knowledge_file(self) -> Path | None:
        """Where the knowledge is written; None if there is none."""
        path = self.folder / KNOWLEDGE
        return path if path.exists() else None

    @property
    def knowledge(self) -> Knowledge | None:
        """What is known beforehand."""
        path = self.knowledge_file
        return None if path is None else Knowledge.load(path)

    def texts(self) -> dict[str, str]:
        """The files of the description and of the knowledge, by name."""
        there = [path for path in (self.schema_file, self.knowledge_file) if path is not None and path.exists()]
        return {path.name: path.read_text(encoding="utf-8") for path in there}

    @property
    def ledger_file(self) -> Path:
        """Where the budget is kept."""
        chosen = self.state.ledger
        return Path(chosen) if chosen else self.folder / f"{self.id}.ledger"

    @property
    def ledger(self) -> Ledger | None:
        """The budget, once a run or somebody else has made its ledger."""
        path = self.ledger_file
        return Ledger.open(path) if Ledger.exists(path) else None

    def result_folder(self, number: int | str) -> Path:
        """Where a run writes its files."""
        return self.folder / RESULTS / f"run-{number}"


# --- all projects of a folder -----------------------------------------------------------------------------------------


class Workplace:
    """The folder that the studio was started in: projects are made in it, and the file list stays within it."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).resolve()
        self._open: dict[str, Project] = {}
        self._lock = threading.Lock()

    def projects(self) -> tuple[Project, ...]:
        """Those that are there, the newest first."""
        found = [path.parent for path in self.folder.glob(f"*/{STATE}")]
        found.sort(key=lambda path: -(path / STATE).stat().st_mtime)
        return tuple(self._of(path) for path in found)

    def project(self, name: str) -> Project:
        """One of them."""
        folder = self.folder / name
        if _SLUG.sub("-", name) != name or not (folder / STATE).is_file():
            raise FormatError("there is no such project in this folder")
        return self._of(folder)

    def _of(self, folder: Path) -> Project:
        with self._lock:  # one object for each folder, because its lock keeps two tabs apart
            return self._open.setdefault(folder.name, Project(folder))

    def make(self, table: str, name: str) -> Project:
        """A new project in a folder of its own; nothing that is there is touched."""
        slug = _SLUG.sub("-", name.lower())[:40].strip("-") or "table"
        for number in range(1, 1000):
            folder = self.folder / (f"{slug}-studio" if number == 1 else f"{slug}-studio-{number}")
            try:
                folder.mkdir(mode=0o755)
            except FileExistsError:
                continue
            except OSError as error:
                raise OutputError(f"cannot make a folder for this project: {error.strerror}") from None
            project = self._of(folder)
            project.save(ProjectState(table=table, name=name))
            return project
        raise OutputError("there are a thousand projects of this name; start the studio in another folder")

    def inside(self, relative: str) -> Path:
        """A folder below the workplace; anything else is refused."""
        path = (self.folder / relative).resolve()
        if path != self.folder and self.folder not in path.parents:
            raise FormatError("the file list stays within the folder that the studio was started in")
        if not path.is_dir():
            raise FormatError("there is no such folder")
        return path


def near_ledgers(project: Project) -> list[tuple[Path, Ledger]]:
    """Ledgers beside the table and in the workplace, without those that cannot be opened."""
    table = project.state.table
    folders = [project.folder.parent]
    if "://" not in table:
        folders.append(Path(table.partition("#")[0]).parent)
    found: dict[Path, Ledger] = {}
    for folder in folders:
        for path in sorted(folder.glob("*.ledger")):
            with suppress(LedgerError, OSError):
                found.setdefault(Path(os.path.abspath(path)), Ledger.open(path))
    return list(found.items())

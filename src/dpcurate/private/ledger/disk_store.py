"""A ledger's store in one SQLite file, shared by processes and days."""

from __future__ import annotations

import json
import math
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dpcurate.accounting import Event
from dpcurate.errors import LedgerError, RefusedError
from dpcurate.private.ledger import format as form
from dpcurate.private.ledger import journal, run_log, shares
from dpcurate.private.ledger import path as ledger_path
from dpcurate.private.ledger.file import GATE, Damage, File
from dpcurate.private.ledger.run_log import LedgerRun, Liveness, LoggedRun, RunFacts
from dpcurate.private.ledger.shares import Grant, Share
from dpcurate.private.ledger.units import Decide, LedgerFacts, State, float_up, round_down
from dpcurate.schema import Schema


@dataclass(frozen=True, slots=True)
class StoredRound:
    """What a table said in a round of several sites: in which run, asked what, and the bytes of it."""

    run: int
    request: str
    body: bytes


class DiskStore:
    """A store in one SQLite file."""

    def __init__(self, file: File, facts: LedgerFacts, share: str | None = None) -> None:
        self.path: Path = file.path
        self.facts = facts
        self.share = share
        self._file = file
        self._run: LedgerRun | None = None

    @classmethod
    def create(cls, path: Path, facts: LedgerFacts, schema: Schema | None = None) -> DiskStore:
        """Write a new ledger with its first schema; an existing file, of whatever kind, is refused and left alone."""
        leftover = ledger_path.sqlite_journal(path)
        if ledger_path.is_there(leftover):
            raise LedgerError(
                f"{leftover} was left by another ledger that was at {path}, which may need it. Move that "
                "ledger back and open it once, or choose another name. If its creation was cut short, remove it"
            )
        if ledger_path.is_there(path):
            raise ledger_path.occupied(path)
        disk, draft = cls(File(path), facts), ledger_path.drafted(path)
        file = _make_empty(draft, path)
        try:
            with file.writing() as connection:
                form.write_new(connection, facts)
                for kind, body in [] if schema is None else disk._news(connection, schema):
                    form.write_note(connection, kind, body)
            file.close()
            ledger_path.put(draft, path)
        finally:
            draft.unlink(missing_ok=True)
        ledger_path.tidy(path)
        return disk

    @classmethod
    def open(cls, path: Path) -> DiskStore:
        """A ledger that exists and is kept here, after a check that reads all of it and writes nothing."""
        file = File(path)
        with GATE:
            look_at(path)
            with file.reading() as connection:
                form.check_tables(connection)
                _check_home(connection, path)
                return cls(file, form.check_contents(connection, path))

    @classmethod
    def moved(cls, path: Path) -> DiskStore:
        """A ledger that was moved here, after the same check; from now on it is kept here, and says so."""
        file = File(path)
        with GATE:
            look_at(path)
            with file.writing() as connection:  # whoever has the file open under its old name has to wait
                form.check_tables(connection)
                home = journal.home(connection)
                if home != path and ledger_path.check_left(home, path):
                    _refuse_copy(home, path, form.read_book(connection)["identity"])
                facts = form.check_contents(connection, path)
                if home != path:
                    form.write_home(connection, path)
                return cls(file, facts)

    def state(self) -> State:
        """Where the ledger stands."""
        with self._file.reading() as connection:
            book = self._book(connection)
            held, unproved = sum(form.holds(connection)), book["unproved"] == "1"
            return State(int(book["spent"]), held, unproved, self._taken(connection, book))

    def events(self) -> tuple[Event, ...]:
        """Everything charged, in order."""
        with self._file.reading() as connection:
            self._book(connection)
            return tuple(map(form.read_event, form.event_rows(connection)))

    def kept_at(self) -> tuple[tuple[str, str], ...]:
        """Since when, and where, the file was kept, in order."""
        with self._file.reading() as connection:
            self._book(connection)
            return tuple(
                (note.written, str(journal.path_of(note))) for note in journal.each(connection, journal.KEPT_AT)
            )

    def unit(self) -> journal.Unit | None:
        """The unit of privacy, if it is known."""
        with self._file.reading() as connection:
            self._book(connection)
            return journal.unit(connection)

    def schemas(self) -> tuple[journal.UsedSchema, ...]:
        """Every schema that was used, in order."""
        with self._file.reading() as connection:
            self._book(connection)
            return journal.schemas(connection)

    def use(self, schema: Schema) -> None:
        """Write a schema down before it is used; one of another unit of privacy is refused."""
        with self._file.reading() as connection:
            self._book(connection)
            if not self._news(connection, schema):
                return
        with self._writing() as (connection, _):
            for kind, body in self._news(connection, schema):
                form.write_note(connection, kind, body)

    def _news(self, connection: sqlite3.Connection, schema: Schema) -> list[tuple[str, str]]:
        """What a schema tells that the ledger does not know yet, as notes."""
        news, unit = [], journal.Unit(None if schema.person is None else schema.person.column)
        known = journal.unit(connection)
        if known is None:
            if schema.hash != self.facts.schema_hash:
                raise _unknown_unit(self.path, self.facts.schema_hash, schema.hash)
            news.append((journal.UNIT, json.dumps({"person": unit.person})))
        elif known != unit:
            raise _another_unit(self.path, known, unit)
        if schema.hash not in {used.hash for used in journal.schemas(connection)}:
            news.append((journal.SCHEMA, json.dumps({"hash": schema.hash, "text": schema.dumps()})))
        return news

    # --- runs: docs/proofs/answers.md ----------------------------------------------------------------------------

    def log(self) -> tuple[LoggedRun, ...]:
        """All runs, in order."""
        with self._file.reading() as connection:
            self._book(connection)
            return tuple(story.logged() for story in run_log.stories(connection).values())

    def stopped(self, command: str) -> LoggedRun | None:
        """The run that the same command would resume now."""
        with self._file.reading() as connection:  # most commands have none, and need not wait for the disk
            self._book(connection)
            if not any(True for _ in run_log.resumable(run_log.stories(connection), command)):
                return None
        with self._writing() as (connection, _):  # nobody else looks or claims meanwhile
            told = run_log.stories(connection)
            for number in run_log.resumable(told, command):
                lock = Liveness.take(self.path, number)
                if lock is not None:
                    lock.end()
                    return told[number].logged()
        return None

    def begin(self, facts: RunFacts, allowance: Callable[[int], int | None]) -> LedgerRun:
        """Claim the run of this command that was stopped, or a new one; `allowance` is told what was spent."""
        run = None
        try:
            with self._writing() as (connection, book):
                shares.check_spendable(connection, self.share)
                told = run_log.stories(connection)
                run = self._resumed(told, facts.command)
                if run is None:
                    units = allowance(self._taken(connection, book))
                    run = LedgerRun(len(told) + 1, units, Liveness.take(self.path, len(told) + 1))
                    form.write_note(connection, journal.RUN, run_log.new_note(run.number, facts, units))
                form.write_note(connection, run.kind("claim"), run.token)
        except BaseException:
            if run is not None:
                run.leave()
            raise
        self._run = run
        return run

    def _resumed(self, told: dict[int, run_log.Story], command: str) -> LedgerRun | None:
        for number in run_log.resumable(told, command):
            lock = Liveness.take(self.path, number)
            if lock is not None:
                return told[number].resumed(lock)
        return None

    def pay(self, run: LedgerRun, request: str, decide: Decide, events: Sequence[Event]) -> tuple[int, bytes | None]:
        """Charge a request of a run unless it is paid: what it took now, and its answer if there is one already."""
        units = 0
        with self._writing() as (connection, book):
            self._check_claim(connection, run)
            stored = journal.newest(connection, run.kind("stored", request))
            if stored is not None:
                return 0, form.answer(connection, stored.facts)
            if journal.newest(connection, run.kind("paid", request)) is None:
                shares.check_spendable(connection, self.share)
                units = decide(self._taken(connection, book))
                form.write(connection, book, int(book["spent"]) + units, events, unproved=False)
                form.write_note(connection, run.kind("paid", request), json.dumps({"units": str(units)}))
                self._tell_share(connection, units)
        return units, None

    def keep(self, run: LedgerRun, request: str, body: bytes, shared: str = "") -> None:
        """Store the answer to a request that is paid; whoever returns it does so after this.

        `shared` is the identity of the round of several sites that the answer is a part of: a round has one.
        """
        with self._writing() as (connection, _):
            self._check_claim(connection, run)
            if shared:
                if journal.newest(connection, f"round {shared}") is not None:
                    raise LedgerError(
                        "this round was answered by another run meanwhile; a second answer would undo its mask and was "
                        "forgotten. Ask again for the first one"
                    )
                facts = json.dumps({"run": run.number, "request": request})
                form.write_note(connection, f"round {shared}", facts)
            if journal.newest(connection, run.kind("stored", request)) or not journal.newest(
                connection, run.kind("paid", request)
            ):
                raise Damage("an answer is in it that nobody stored, or a payment has gone")
            form.write_note(connection, run.kind("stored", request), json.dumps(form.write_answer(connection, body)))

    def round(self, shared: str) -> StoredRound | None:
        """What was said in a round of several sites, in whatever run, if it was answered."""
        with self._file.reading() as connection:
            self._book(connection)
            note = journal.newest(connection, f"round {shared}")
            if note is None:
                return None
            number, request = int(note.facts["run"]), str(note.facts["request"])
            kept = journal.newest(connection, f"stored {number} {request}")
            if kept is None:
                raise Damage("a round is in it whose answer has gone")
            return StoredRound(number, request.partition("-")[0], form.answer(connection, kept.facts))

    def end(self, run: LedgerRun, outcome: str) -> None:
        """What became of a run, for the log; nothing if another process has claimed it."""
        self._run = None
        with self._writing() as (connection, _):
            claim = journal.newest(connection, run.kind("claim"))
            if claim is not None and claim.body == run.token:
                form.write_note(connection, run.kind("ended"), json.dumps({"outcome": outcome}))

    def _check_claim(self, connection: sqlite3.Connection, run: LedgerRun) -> None:
        claim = journal.newest(connection, run.kind("claim"))
        if claim is None or claim.body != run.token:
            raise LedgerError(
                f"run {run.number} of {self.path} was resumed by another process, which goes on with it; this one has "
                "given no answer since and has ended. 'dpcurate ledger log' shows what became of it"
            )

    # --- charges -------------------------------------------------------------------------------------------------

    def charge(self, decide: Decide, events: Sequence[Event], *, unproved: bool) -> None:
        """Add events and the units that `decide` says they take."""
        with self._writing() as (connection, book):
            self._check_mine(connection)
            units = decide(self._taken(connection, book))
            form.write(connection, book, int(book["spent"]) + units, events, unproved=unproved)
            self._tell(connection, units)

    def _check_mine(self, connection: sqlite3.Connection) -> None:
        """Refuse to spend from a share that was revoked, or for a run that another process has claimed."""
        shares.check_spendable(connection, self.share)
        if self._run is not None:
            self._check_claim(connection, self._run)

    def _tell(self, connection: sqlite3.Connection, units: int) -> None:
        """Write down what the run under way, and the share, paid or got back for what is not stored."""
        if self._run is not None and units:
            form.write_note(connection, self._run.kind("charged"), json.dumps({"units": str(units)}))
        self._tell_share(connection, units)

    def mark_unproved(self) -> None:
        """Record for good that a step without a finite cost was let through."""
        self.charge(lambda _spent: 0, (), unproved=True)

    def hold(self, decide: Decide) -> tuple[int, int]:
        """Set aside what `decide` says; the block's number and size."""
        with self._writing() as (connection, book):
            self._check_mine(connection)
            units = decide(self._taken(connection, book))
            added = connection.execute("INSERT INTO hold (units, opened) VALUES (?, ?)", (str(units), journal.now()))
            form.write(connection, book, int(book["spent"]) + units, (), unproved=False)
            self._tell(connection, units)
            hold = added.lastrowid
        assert hold is not None
        return hold, units

    def settle(self, hold: int, used: int, events: Sequence[Event]) -> None:
        """Close a block: write its events, give back what it did not use."""
        with self._writing() as (connection, book):
            held = connection.execute("SELECT units FROM hold WHERE id = ?", (hold,)).fetchone()
            if held is None:
                raise Damage("the open block has gone from it")
            connection.execute("DELETE FROM hold WHERE id = ?", (hold,))
            form.write(connection, book, int(book["spent"]) + used - int(held[0]), events, unproved=False)
            self._tell(connection, used - int(held[0]))

    def stored(self, number: int, most_bytes: int) -> StoredRun | None:
        """What one run has released, None if that is nothing; one of more bytes is refused before it is read."""
        with self._file.reading() as connection:
            book = self._book(connection)
            notes = journal.beginning(connection, f"stored {number}")
            size = form.answers_size(connection, [note.facts for note in notes])
            if size > most_bytes:
                raise RefusedError(
                    f"the answers of run {number} take {size:,} bytes, and {most_bytes:,} are read at once; the owner "
                    "can copy the ledger for you"
                )
            if not notes:
                return None
            answers = {}
            for note in notes:
                _, name, units = _stored(note)
                answers[name] = units, form.answer(connection, note.facts)
            logged, events = run_log.stories(connection)[number].logged(), form.event_rows(connection)
            return StoredRun(
                self.facts, logged, journal.schemas(connection), answers, float_up(int(book["spent"])),
                tuple(map(form.read_event, events)), book["unproved"] != "1",
            )  # fmt: skip

    # --- shares: docs/proofs/shares.md ---------------------------------------------------------------------------

    def of_share(self, name: str) -> DiskStore:
        """The same file for whoever spends from this share."""
        return DiskStore(self._file, self.facts, name)

    def shares(self) -> tuple[Share, ...]:
        """Every share, in the order they were granted first."""
        with self._file.reading() as connection:
            self._book(connection)
            return tuple(shares.read(connection).values())

    def grant(self, grant: Grant) -> None:
        """Write a share down, if it can be kept."""
        with self._writing() as (connection, book):
            note = shares.granted(shares.read(connection), grant, int(book["spent"]), self._ceiling)
            form.write_note(connection, *note)

    def revoke(self, name: str) -> None:
        """End a share; what it has spent stays spent."""
        with self._writing() as (connection, _):
            form.write_note(connection, *shares.revoked(shares.read(connection), name))

    def _taken(self, connection: sqlite3.Connection, book: dict[str, str]) -> int:
        """What counts as spent for whoever spends here."""
        return shares.taken(connection, self.share, int(book["spent"]), self._ceiling)

    @property
    def _ceiling(self) -> int:
        return 0 if math.isinf(self.facts.budget.ceiling) else round_down(self.facts.budget.ceiling)

    def _tell_share(self, connection: sqlite3.Connection, units: int) -> None:
        """Write down what the share has paid or got back, in the transaction of the payment."""
        if self.share is not None and units:
            form.write_note(connection, *shares.spending(connection, self.share, units))

    @contextmanager
    def _writing(self) -> Iterator[tuple[sqlite3.Connection, dict[str, str]]]:
        """A transaction with the checked row of `book`."""
        with self._file.writing() as connection:
            yield connection, self._book(connection)

    def _book(self, connection: sqlite3.Connection) -> dict[str, str]:
        """The one row of `book`, if it is still the ledger that was opened, and where it was."""
        book = form.read_book(connection)
        if book["identity"] != self.facts.identity:
            raise Damage("it is not the file that was opened")
        _check_home(connection, self.path)
        return book


def _another_unit(path: Path, known: journal.Unit, other: journal.Unit) -> LedgerError:
    return LedgerError(
        f"{path} protects {known}, and this schema would protect {other}: what was paid so far says nothing about "
        "that. No answer was given and it was left as it is. Give the schema the same [person] column, or none, as "
        "before; levels, bounds, bins, columns and the cap may change"
    )


def _unknown_unit(path: Path, known: str, other: str) -> LedgerError:
    return LedgerError(
        f"{path} knows the schema it was made for by its hash alone, {known}, and not whether that one protected rows "
        f"or persons; this schema is another one, {other}. No answer was given and it was left as it is. Use it with "
        "the schema it was made for once, then with others"
    )


def look_at(path: Path) -> None:
    """Refuse what is no ledger, before SQLite touches it; a creation cut short at its last step is finished."""
    try:
        ledger_path.tidy(path)
        ledger_path.look(path)
    except OSError as problem:
        raise LedgerError(f"{path} could not be read: {problem.strerror}; Ledger.create makes a new one") from None
    form.check_header(path)


def _check_home(connection: sqlite3.Connection, path: Path) -> None:
    home = journal.home(connection)
    if home != path:
        raise ledger_path.elsewhere(path, home)


def _refuse_copy(home: Path, path: Path, identity: str) -> None:
    """Refuse to adopt a ledger whose original is still where it was; when in doubt, too."""
    try:
        if DiskStore.open(home).facts.identity != identity:
            return
        why = "it is the same ledger, so one of the two is a copy, and both in use would be two budgets"
    except LedgerError as problem:
        why = f"whether it is the same ledger cannot be told ({problem})"
    raise LedgerError(
        f"{path} was not adopted, because there is a file at {home}, where it was kept: {why}. "
        f"Remove the one that was used less, or move what is at {home} out of the way if it is something else"
    )


def _make_empty(draft: Path, path: Path) -> File:
    try:
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError as problem:
        raise LedgerError(f"{path} could not be created: {problem.strerror}; choose a place you can write") from None
    return File(draft)


# --- what runs have released, read from a ledger or a copy of one ---------------------------------------


@dataclass(frozen=True, slots=True)
class StoredRun:
    """What a ledger says of one run: `answers` holds units and bytes of requests, by their names without the price."""

    facts: LedgerFacts
    logged: LoggedRun
    schemas: tuple[journal.UsedSchema, ...]
    answers: dict[str, tuple[int, bytes]]
    spent: float
    events: tuple[Event, ...]
    private: bool


def stored_runs(path: Path) -> dict[int, StoredRun]:
    """Runs with stored answers, of a ledger or of a copy of one: it is read as it is, and no path is refused."""
    file = File(path)
    with GATE:
        look_at(path)
        with file.reading() as connection:
            form.check_tables(connection)
            _check_whole(path, journal.home(connection))
            facts = form.check_contents(connection, path)
            book, schemas = form.read_book(connection), journal.schemas(connection)
            events = tuple(map(form.read_event, form.event_rows(connection)))
            state = float_up(int(book["spent"])), events, book["unproved"] != "1"
            answers = _answers(connection)
            told = run_log.stories(connection)
        file.close()
    return {n: StoredRun(facts, told[n].logged(), schemas, each, *state) for n, each in answers.items()}


def _check_whole(path: Path, home: Path) -> None:
    """Refuse what was moved out of a crash: an answer that was half stored will be undone, and drawn once more."""
    if home != path and os.path.exists(journal := ledger_path.sqlite_journal(home)):
        raise LedgerError(
            f"{journal} is still there, so {path} was copied or moved while a transaction was under way, or another is "
            f"now; nothing was read from it. Open the ledger at {home} once ('dpcurate ledger show') and copy it again"
        )


def _answers(connection: sqlite3.Connection) -> dict[int, dict[str, tuple[int, bytes]]]:
    """Units and bytes of every stored answer, by run and by the request's name without its price."""
    answers: dict[int, dict[str, tuple[int, bytes]]] = {}
    for note in journal.each(connection):
        if note.kind.startswith("stored "):
            number, name, units = _stored(note)
            answers.setdefault(number, {})[name] = units, form.answer(connection, note.facts)
    return answers


def _stored(note: journal.Note) -> tuple[int, str, int]:
    """Of which run an answer is, its request's name without the price, and that price in units."""
    _, number, request = note.kind.split(" ")
    (query, priced), nth = request.partition(".")[0].split("-"), request.partition(".")[2]
    return int(number), f"{query}.{nth}", int(priced, 16)

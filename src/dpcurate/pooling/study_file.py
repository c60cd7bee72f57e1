"""The two files of a study without servers: what all sites are asked, and what one site has answered.

Both are JSON. Queries are written as queries/encoding.py writes them, and are read by its closed decoder; answers are
its bytes, in base64. A file may come from anybody: whatever it holds, it is read as one of these or refused in a
sentence.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Self, TypeVar

from dpcurate import _files
from dpcurate._files import Inputs
from dpcurate._messages import how_many, shown, shown_path
from dpcurate.accounting import Budget
from dpcurate.errors import DecodeError, DpcurateError, FormatError
from dpcurate.graphs.knowledge import Knowledge
from dpcurate.private import shared_round
from dpcurate.private.masking import Masked, check_public
from dpcurate.queries import Answer, GaussianShare, Release, encoding
from dpcurate.queries.query import MOST_SITES
from dpcurate.schema import Neighbours, Schema

FORMAT = 1
LARGEST_FILE = 1 << 26
"""Bytes of a study's file: answers to products of very many features take tens of megabytes."""
MOST_ROUNDS = 100
LONGEST_NAME = 200
NOISES = ("own", "shared")
"""Who adds noise: every site its own, or all sites together (a sum that only shows as a whole)."""
_ID = re.compile(r"[0-9a-f]{32}\Z")
_HASH = re.compile(r"[0-9a-f]{64}\Z")

Request = tuple[Release, ...]
"""What is asked together in one round."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyFile:
    """What several sites agree to compute, and what they have been asked so far.

    The terms (everything but `requests`) never change during a study. `requests` has one entry for each round, of
    queries to all sites together; the last is the one that is open.
    """

    id: str
    schema: Schema
    sites: tuple[str, ...]
    epsilon: float
    """The most that the study may spend at each site, at `delta`."""
    delta: float
    method: str = "auto"
    settings: tuple[str, ...] = ()
    latent: bool = False
    knowledge: str = ""
    """Background knowledge, as TOML."""
    column: str = "site"
    """The column that names the site of a row; empty for none."""
    purpose: str = ""
    rounds: int = 4
    deadline: str = ""
    """The last day on which sites answer, as 2026-12-31, in UTC."""
    noise: str = "own"
    keys: tuple[tuple[str, str], ...] = ()
    """Public keys of sites, by name, for noise that they share."""
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    """With shared noise, the relation of all sites; else each site has its own."""
    colluding: int = 1
    """With shared noise, how many sites may pool what they know."""
    sites_per_person: int = 1
    """With shared noise, at how many sites one person may have rows."""
    version: str = ""
    """The version of dpcurate that made it."""
    requests: tuple[Request, ...] = ()

    def __post_init__(self) -> None:
        _check_study(self)

    @property
    def round(self) -> int:
        """The number of the open round, from 1."""
        return len(self.requests)

    @property
    def budget(self) -> Budget:
        """What the study may spend at each site."""
        return Budget(epsilon=self.epsilon, delta=self.delta)

    @property
    def known(self) -> Knowledge | None:
        """Its background knowledge."""
        return Knowledge.loads(self.knowledge) if self.knowledge else None

    @property
    def terms(self) -> str:
        """A hash of all that sites agreed to, without what they are asked."""
        return _hash(self._terms())

    @property
    def hash(self) -> str:
        """A hash of the whole file."""
        return _hash(self.to_dict())

    @property
    def late(self) -> bool:
        """Whether the deadline has passed."""
        return bool(self.deadline) and datetime.now(UTC).date() > date.fromisoformat(self.deadline)

    def asking(self, request: Request) -> Self:
        """The next round's file."""
        return replace(self, requests=(*self.requests, request))

    def _terms(self) -> dict[str, Any]:
        return {
            "dpcurate": "study",
            "format": FORMAT,
            "id": self.id,
            "purpose": self.purpose,
            "method": self.method,
            "settings": list(self.settings),
            "latent": self.latent,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "noise": self.noise,
            "sites": list(self.sites),
            "column": self.column,
            "rounds": self.rounds,
            "deadline": self.deadline,
            "keys": dict(self.keys),
            "neighbours": self.neighbours.value,
            "colluding": self.colluding,
            "sites_per_person": self.sites_per_person,
            "knowledge": self.knowledge,
            "schema": self.schema.dumps(),
            "version": self.version,
        }

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain values."""
        return self._terms() | {"requests": [[encoding.to_plain(one) for one in asked] for asked in self.requests]}

    def dumps(self) -> str:
        """The text of its file."""
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def loads(cls, text: str) -> Self:
        """Read the text of a file.

        Raises:
            FormatError: it is no study, or one that nobody can answer.
        """
        return _read(text, "study", cls._of)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file; every refusal names it."""
        return _files.load(path, cls.loads, largest=LARGEST_FILE)

    @classmethod
    def _of(cls, given: Mapping[str, Any]) -> Self:
        requests = _list(given, "requests", list)
        return cls(
            id=_text(given, "id"),
            schema=Schema.loads(_text(given, "schema")),
            sites=tuple(_list(given, "sites", str)),
            epsilon=_number(given, "epsilon"),
            delta=_number(given, "delta"),
            method=_text(given, "method"),
            settings=tuple(_list(given, "settings", str)),
            latent=_given(given, "latent", bool),
            knowledge=_text(given, "knowledge"),
            column=_text(given, "column"),
            purpose=_text(given, "purpose"),
            rounds=_given(given, "rounds", int),
            deadline=_text(given, "deadline"),
            noise=_text(given, "noise"),
            keys=tuple(sorted(_texts(given, "keys").items())),
            neighbours=Neighbours.of(_text(given, "neighbours")),
            colluding=_given(given, "colluding", int),
            sites_per_person=_given(given, "sites_per_person", int),
            version=_text(given, "version"),
            requests=tuple(_releases(encoding.from_plain(one)) for one in requests),
        )

    def save(self, path: str | Path, inputs: Inputs = _files.NO_INPUTS) -> Path:
        """Write the file; one that is there is replaced."""
        _files.save_text(path, self.dumps(), inputs)
        return Path(path)


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteAnswer:
    """What one site has answered to all rounds of a study so far, with its own promise.

    `file` is the hash of the study file that it answers. Each body has the queries of one round, as this site was
    asked them, with noised answers.
    """

    study: str
    file: str
    site: str
    table: str
    """The table's name in the site's ledger."""
    neighbours: Neighbours
    budget: Budget
    """The ceiling of the site's ledger."""
    spent: float
    """What all runs on the ledger have spent, in its currency."""
    bodies: tuple[bytes, ...]

    def __post_init__(self) -> None:
        if not _ID.match(self.study) or not _HASH.match(self.file):
            raise FormatError("an answer names the study and the hash of the file that it answers")
        if not 1 <= len(self.bodies) <= MOST_ROUNDS:
            raise FormatError(f"an answer has 1 to {MOST_ROUNDS} rounds, got {len(self.bodies)}")
        if not 0 <= self.spent < float("inf"):
            raise FormatError(f"what a site has spent is a number of at least 0, got {shown(self.spent)}")

    @property
    def round(self) -> int:
        """The last round that it answers."""
        return len(self.bodies)

    @property
    def masked(self) -> tuple[Masked, ...]:
        """The site's masked parts of the rounds, in a study with shared noise.

        Raises:
            DecodeError: it holds something else.
        """
        return tuple(shared_round.part_of(body) for body in self.bodies)

    @property
    def shares_noise(self) -> bool:
        """Whether it holds masked parts, of which only the sum over all sites can be read."""
        return any(body.startswith(shared_round.MARK) for body in self.bodies)

    @property
    def rounds(self) -> tuple[tuple[tuple[Release, Answer], ...], ...]:
        """The releases of each round with their answers.

        Raises:
            DecodeError: it holds something else.
        """
        return tuple(_answered(body) for body in self.bodies)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain values."""
        budget = self.budget
        delta = float(budget.delta or 0)
        by_epsilon = budget == Budget(epsilon=budget.epsilon, delta=delta)
        amount = {"epsilon": budget.epsilon} if by_epsilon else {"rho": float(budget.ceiling)}
        return {
            "dpcurate": "answer",
            "format": FORMAT,
            "study": self.study,
            "file": self.file,
            "round": self.round,
            "site": self.site,
            "table": self.table,
            "neighbours": self.neighbours.value,
            "budget": {**amount, "delta": delta},
            "spent": self.spent,
            "answers": [base64.b64encode(body).decode() for body in self.bodies],
        }

    def dumps(self) -> str:
        """The text of its file."""
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def loads(cls, text: str) -> Self:
        """Read the text of a file.

        Raises:
            FormatError: it is no answer of a site.
        """
        return _read(text, "answer", cls._of)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file; every refusal names it."""
        return _files.load(path, cls.loads, largest=LARGEST_FILE)

    @classmethod
    def _of(cls, given: Mapping[str, Any]) -> Self:
        budget = _given(given, "budget", dict)
        ceiling = {one: _number(budget, one) for one in ("rho", "epsilon", "delta") if one in budget}
        found = cls(
            study=_text(given, "study"),
            file=_text(given, "file"),
            site=_text(given, "site"),
            table=_text(given, "table"),
            neighbours=Neighbours.of(_text(given, "neighbours")),
            budget=Budget(**ceiling),
            spent=_number(given, "spent"),
            bodies=tuple(map(_unpacked, _list(given, "answers", str))),
        )
        if given.get("round") != found.round:
            raise FormatError(f"it says round {shown(given.get('round'))} and answers {how_many(found.round, 'round')}")
        return found

    def save(self, path: str | Path, inputs: Inputs = _files.NO_INPUTS) -> Path:
        """Write the file; one that is there is replaced."""
        _files.save_text(path, self.dumps(), inputs)
        return Path(path)


def _check_study(study: StudyFile) -> None:
    """Refuse terms that no study has; `Budget`, `Schema` and `Knowledge` refuse theirs themselves."""
    if not _ID.match(study.id):
        raise FormatError(f"a study's id is 32 hexadecimal digits, got {shown(study.id)}")
    if not 2 <= len(study.sites) <= MOST_SITES or len(set(study.sites)) < len(study.sites):
        raise FormatError(f"a study has 2 to {MOST_SITES} sites of different names")
    for name in (*study.sites, *([study.column] if study.column else [])):
        if not name.strip() or len(name) > LONGEST_NAME or not name.isprintable():
            raise FormatError(f"a name is printable text of at most {LONGEST_NAME} characters, got {shown(name)}")
    if study.column in study.schema.names:
        raise FormatError(
            f"the column {shown(study.column)} is in the schema already: name the site's column otherwise"
        )
    if not 1 <= study.rounds <= MOST_ROUNDS or study.round > study.rounds:
        raise FormatError(f"a study has 1 to {MOST_ROUNDS} rounds, got {study.rounds}, and is at round {study.round}")
    if study.noise not in NOISES:
        raise FormatError(f"noise is {' or '.join(map(repr, NOISES))}, got {shown(study.noise)}")
    if study.deadline:
        try:
            date.fromisoformat(study.deadline)
        except ValueError:
            raise FormatError(f"a deadline is a day such as 2026-12-31, got {shown(study.deadline)}") from None
    unknown = sorted({name for name, _ in study.keys} - set(study.sites))
    if unknown:
        raise FormatError(f"a key is given for {shown(unknown[0])}, which is no site")
    if study.noise == "shared":
        _check_shared(study)
    if study.budget.ceiling == float("inf"):
        raise FormatError("a study has a finite epsilon")
    if not all(study.requests):
        raise FormatError("a round asks for at least one release")
    _ = study.known


def _check_shared(study: StudyFile) -> None:
    """Refuse terms under which no round of shared noise is answered."""
    keys = dict(study.keys)
    missing = [name for name in study.sites if name not in keys]
    if missing:
        raise FormatError(
            f"with shared noise every site has a public key, and {', '.join(map(shown, missing))} has none: each site "
            "makes its own with 'dpcurate study key --ledger LEDGER'"
        )
    for name in study.sites:
        check_public(keys[name])
    if len(set(keys.values())) < len(keys):
        raise FormatError("two sites have one public key: each makes its own")
    GaussianShare(rho=1.0, sites=len(study.sites), colluding=study.colluding, sites_per_person=study.sites_per_person)
    if study.budget.pure:
        raise FormatError("shared noise is Gaussian: a study with it has a delta above 0")


def _releases(asked: Sequence[object]) -> Request:
    for one in asked:
        if type(one) is not Release:
            raise DecodeError(f"a study asks for releases alone, got {type(one).__name__}")
    return tuple(asked)  # type: ignore[arg-type]


def _answered(body: bytes) -> tuple[tuple[Release, Answer], ...]:
    pairs = encoding.decode(body)
    for query, answer in pairs:
        if type(query) is not Release or not isinstance(answer, Answer):
            raise DecodeError(f"a site answers releases alone, got an answer to {type(query).__name__}")
    return tuple(pairs)  # type: ignore[arg-type]


def _unpacked(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise FormatError("its answers are not base64") from None


# --- reading what anybody may have written ----------------------------------------------------------------------------


def _read(text: str, kind: str, make: Callable[[Mapping[str, Any]], T]) -> T:
    """The value that a text of JSON stands for; whatever is wrong is a FormatError of one sentence."""
    try:
        given = encoding.parsed(text.encode("utf-8", "replace"), LARGEST_FILE)
        if not isinstance(given, dict) or given.get("dpcurate") not in ("study", "answer"):
            raise FormatError("this is no file of a dpcurate study")
        if given["dpcurate"] != kind:
            article = {"study": "a study", "answer": "an answer"}
            raise FormatError(f"this is {article[given['dpcurate']]}, and {article[kind]} is needed here")
        if given.get("format") != FORMAT:
            raise FormatError(f"this file has format {shown(given.get('format'))}, and this version reads {FORMAT}")
        return make(given)
    except FormatError:
        raise
    except DpcurateError as error:
        raise FormatError(f"not {'a study' if kind == 'study' else 'an answer'} that can be read: {error}") from None


def _given(given: Mapping[str, Any], name: str, kind: type[T]) -> T:
    value = given.get(name)
    if type(value) is not kind:
        raise FormatError(f"{name!r} is missing, or is not of the type {kind.__name__}")
    return value


def _text(given: Mapping[str, Any], name: str) -> str:
    value = _given(given, name, str)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise FormatError(f"{name!r} is no text that can be written as UTF-8") from None
    return value


def _number(given: Mapping[str, Any], name: str) -> float:
    value = given.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < 1e100:
        raise FormatError(f"{name!r} is missing, or is not a number")
    return float(value)


def _list(given: Mapping[str, Any], name: str, kind: type[T]) -> list[T]:
    found = _given(given, name, list)
    if any(type(one) is not kind for one in found):
        raise FormatError(f"{name!r} is a list of the type {kind.__name__}")
    return found


def _texts(given: Mapping[str, Any], name: str) -> dict[str, str]:
    found = _given(given, name, dict)
    if any(type(one) is not str for one in found.values()):
        raise FormatError(f"{name!r} has a text for each name")
    return found


def _hash(plain: Mapping[str, Any]) -> str:
    """Of the values, however they are laid out in a file."""
    return hashlib.sha256(json.dumps(plain, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def loaded(path: str | Path) -> StudyFile | SiteAnswer:
    """Whichever of the two a file is."""
    text = _files.load(path, str, largest=LARGEST_FILE)
    try:
        return SiteAnswer.loads(text) if '"answer"' in text[:200] else StudyFile.loads(text)
    except FormatError as error:
        raise FormatError(f"{shown_path(str(path))}, {error}") from None

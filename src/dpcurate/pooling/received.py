"""What a site has answered in files, as a queryable: no table, and nothing that was not released."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NoReturn, cast

from dpcurate.accounting import Budget, Privacy
from dpcurate.errors import DecodeError, NotStored, QueryError
from dpcurate.pooling.study_file import SiteAnswer, StudyFile
from dpcurate.private.ledger import Ledger
from dpcurate.private.preview import event_of, sensitivity_of
from dpcurate.queries import Answer, Gate, Query, Release, Statistic, T
from dpcurate.schema import Neighbours, Schema


class Received:
    """One site's answers to the rounds of a study, given again in the order in which they were asked for."""

    def __init__(self, file: StudyFile, answer: SiteAnswer | None) -> None:
        self._file, self._answer = file, answer
        self._rounds = [] if answer is None else list(answer.rounds)
        self._ledger = Ledger(file.budget, neighbours=self.neighbours.value)

    @property
    def schema(self) -> Schema:
        """The study's schema: a site answers in the study's names."""
        return self._file.schema

    @property
    def neighbours(self) -> Neighbours:
        """The relation of the site's promise."""
        return Neighbours.ADD_REMOVE if self._answer is None else self._answer.neighbours

    @property
    def budget(self) -> Budget:
        """What the study may spend at the site."""
        return self._file.budget

    @property
    def remaining(self) -> float:
        """What is left of that after the answers that were given again so far."""
        return self._ledger.remaining

    @property
    def table(self) -> str:
        """The table's name in the site's ledger."""
        return "" if self._answer is None else self._answer.table

    def ask(self, query: Query[T]) -> T:
        """The answer to one release."""
        return self.ask_all([query])[0]

    def ask_all(self, queries: Sequence[Query[T]]) -> list[T]:
        """The site's answers to the next round, which must be these queries."""
        if not self._rounds:
            raise NotStored("the site has not answered this round")
        asked, answers = zip(*self._rounds.pop(0), strict=True)
        if tuple(queries) != asked:
            raise DecodeError("it answers other questions than the study asks")
        self._ledger.charge([event_of(one, self.schema, self.neighbours) for one in asked])
        return list(cast("tuple[T, ...]", answers))

    def open(self, gate: Gate[T]) -> NoReturn:
        """Refused: a gate is no release."""
        raise QueryError(f"{type(gate).__name__} cannot be asked by files")

    def reserve(self, amount: float) -> AbstractContextManager[object]:
        """Nothing is spent, so nothing is set aside."""
        return nullcontext()

    def sensitivity(self, statistic: Statistic) -> float:
        """How far one unit can move a statistic (L1), from public facts."""
        return sensitivity_of(statistic, self.schema, self.neighbours)

    def draw(self) -> float:
        """A fresh public random number in [0, 1)."""
        return secrets.randbelow(1 << 53) / (1 << 53)

    def privacy(self) -> Privacy:
        """The site's own promise; the study has spent what its rounds cost."""
        person = self.schema.person
        unit = "one row" if person is None else f"one person, {person.cap}"
        ledger = self._ledger
        budget = ledger.budget if self._answer is None else self._answer.budget
        spent = ledger.spent if self._answer is None else self._answer.spent
        return Privacy(budget, self.neighbours.value, unit, spent, ledger.events, ledger.private, ledger.spent)


def same_numbers(one: SiteAnswer, other: SiteAnswer) -> bool:
    """Whether two answers have a round of the same noised numbers, which no two sites ever draw."""
    rounds = zip(one.rounds, other.rounds, strict=False)
    return any(_numbers(mine) == _numbers(theirs) for mine, theirs in rounds)


def _numbers(answered: tuple[tuple[Release, Answer], ...]) -> list[Any]:
    return [part.tolist() for _, answer in answered for part in answer.parts]

"""What a site has answered in files, as a queryable: no table, and nothing that was not released."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NoReturn, cast

from dpcurate._typing import FloatArray
from dpcurate.accounting import Budget, Event, Privacy
from dpcurate.errors import DecodeError, NotStored, QueryError
from dpcurate.pooling.study_file import SiteAnswer, StudyFile
from dpcurate.private.ledger import Ledger
from dpcurate.private.preview import check_answer, event_of, sensitivity_of
from dpcurate.queries import Answer, Contrasts, Gate, Query, Release, Statistic, T
from dpcurate.schema import Neighbours, Schema


class Received:
    """One site's answers to the rounds of a study, given again in the order in which they were asked for."""

    def __init__(self, file: StudyFile, answer: SiteAnswer | None) -> None:
        self._file, self._answer = file, answer
        self._rounds = [] if answer is None or file.noise == "shared" else list(answer.rounds)
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

    def charge(self, events: Sequence[Event]) -> None:
        """Count what a round of shared noise was charged at the site."""
        self._ledger.charge(events)

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
        ledger, unit = self._ledger, self.schema.unit
        budget = ledger.budget if self._answer is None else self._answer.budget
        spent = ledger.spent if self._answer is None else self._answer.spent
        return Privacy(budget, self.neighbours.value, unit, spent, ledger.events, ledger.private, ledger.spent)


class ReceivedSets(Received):
    """The same answers by their sets of columns, for a method that asks otherwise than it did: nothing new is asked.

    A study goes on so if a site has gone away. Each set gives the answers that it has, the earliest first.
    """

    def __init__(self, file: StudyFile, answer: SiteAnswer) -> None:
        super().__init__(file, answer)
        self._sets: dict[tuple[str, ...], list[tuple[int, FloatArray, float]]] = {}
        self._given: set[int] = set()
        self._costs: list[list[Event]] = []
        for number, answered in enumerate(self._rounds):
            self._costs.append([event_of(release, self.schema, self.neighbours) for release, _ in answered])
            for release, found in answered:
                check_answer(release, found, self.schema, self.neighbours)
                if not isinstance(release.statistic, Contrasts):
                    raise QueryError(
                        "answers to products of numbers depend on who took part in the rounds before: begin another "
                        "study, without the site that has gone away"
                    )
                for one, part, scale in zip(release.statistic.sets, found.parts, found.scales, strict=True):
                    self._sets.setdefault(one, []).append((number, part, scale))

    def offered(self, sets: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
        """Those of the sets that were answered and not given yet."""
        return [one for one in sets if self._sets.get(one)]

    def ask_all(self, queries: Sequence[Query[T]]) -> list[T]:
        """What was answered for each set, with the noise that it was answered with."""
        found: list[Any] = []
        for query in queries:
            statistic = query.statistic if isinstance(query, Release) else None
            if not isinstance(statistic, Contrasts) or len(self.offered(statistic.sets)) < len(statistic.sets):
                raise NotStored("the sites have not answered what the method asks for without the site that is gone")
            given = [self._sets[one].pop(0) for one in statistic.sets]
            for number in sorted({number for number, _, _ in given} - self._given):
                self._ledger.charge(self._costs[number])
                self._given.add(number)
            found.append(Answer(tuple(part for _, part, _ in given), tuple(scale for _, _, scale in given)))
        return found


def same_numbers(one: SiteAnswer, other: SiteAnswer) -> bool:
    """Whether two answers have a round of the same noised numbers, which no two sites ever draw."""
    rounds = zip(one.rounds, other.rounds, strict=False)
    return any(_numbers(mine) == _numbers(theirs) for mine, theirs in rounds)


def _numbers(answered: tuple[tuple[Release, Answer], ...]) -> list[Any]:
    return [part.tolist() for _, answer in answered for part in answer.parts]

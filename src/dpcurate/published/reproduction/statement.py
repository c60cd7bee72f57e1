"""A statement of the paper, how it is looked at, and the verdict that the comparisons of runs make.

The verdict follows from how many comparisons agree and how many disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from dpcurate.published.reproduction.summary import Runs

Outcome = tuple[str, int]
"""Where, and 1 (as stated), -1 (the opposite) or 0 (cannot be told)."""
FOR, AGAINST = 0.7, 0.125
"""A statement holds if at least the first part of its comparisons is for it and at most the second against."""


@dataclass(frozen=True, slots=True)
class StatementVerdict:
    """A word, and the comparisons behind it: for, against, open."""

    word: str
    counts: tuple[int, int, int]
    against: tuple[str, ...] = ()

    @classmethod
    def of(cls, outcomes: Iterable[Outcome]) -> StatementVerdict:
        found = list(outcomes)
        yes, no, open_ = (sum(s == sign for _, s in found) for sign in (1, -1, 0))
        return cls(_word(yes, no, open_), (yes, no, open_), tuple(where for where, s in found if s == -1))

    def __str__(self) -> str:
        return f"{self.word} {'/'.join(map(str, self.counts))}" if any(self.counts) else "-"


def _word(yes: int, no: int, open_: int) -> str:
    number = yes + no + open_
    if number and yes >= FOR * number and no <= AGAINST * number:
        return "holds"
    if yes + no < open_ or not number:
        return "cannot be told"
    return "holds in part" if yes > no else "does not hold"


@dataclass(frozen=True, slots=True)
class View:
    """How a statement is looked at: the F1 (or count) it is about, the kind of leakage, and CURATE's reading."""

    metric: str
    axis: str
    reading: str


Outcomes = Iterator[Outcome]
Rule = Callable[[Runs, View], Outcomes]
Rows = Literal["constraint", "score", "tests", "plain"]


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence of the paper, how it is read as comparisons, and what should be known about it.

    `parts` are the comparisons by name; `rows` says which readings they are made for: those of
    constraint-based or of score-based CURATE, of constraint-based CURATE in two units of tests, or none.
    """

    where: str
    text: str
    rule: str
    why: str
    parts: Mapping[str, Rule]
    rows: Rows = "plain"
    axes: tuple[str, ...] = ("spent", "nominal")

    def readings(self, runs: Runs) -> list[str]:
        if self.rows == "plain":
            return [""]
        return runs.readings("curate-score" if self.rows == "score" else "curate-pc")

    def verdict(self, runs: Runs, part: str, view: View) -> StatementVerdict:
        return StatementVerdict.of(self.parts[part](runs, view))

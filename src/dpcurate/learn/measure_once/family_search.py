"""The best parents of a column among those that come before it in an order.

A graph's score is the sum over columns y of

    (number of parents) * (log prior odds of an edge - cost) - sum over x before y that is no parent of
    the evidence that x and y depend on each other given y's parents, within bounds:

every pair left unconnected must be explained by the parents of its later column. The bounds keep what additive
regressions leave near a column that others determine from outweighing a dozen edges.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import log
from operator import itemgetter
from typing import TypeAlias, TypeVar, cast

import numpy as np

from dpcurate._typing import BoolArray, FloatArray
from dpcurate.learn.measure_once.blocks import Columns, bits_of, members_of, sorted_set
from dpcurate.learn.measure_once.constants import EXCHANGED, SPARE, Constants
from dpcurate.learn.measure_once.constraints import Constraints
from dpcurate.learn.measure_once.evidence import DependenceEvidence, One, Row

AGAINST_KNOWLEDGE = 1e9
"""What an order loses in score for each required arrow that it would turn round: more than any evidence."""


MOST_REMEMBERED = 100_000
"""Best parents kept: a search comes back to those of late."""

STRIDE = 4
"""Of sets that differ by a column each, every 64th is searched first, then every 16th, every fourth and the rest."""

Wanted: TypeAlias = Row | One
Result = TypeVar("Result")
Steps: TypeAlias = Generator[list[Wanted], None, Result]
"""A computation that says before every step what evidence it wants to know."""


@dataclass(frozen=True, slots=True)
class Climb:
    """Parents found for a column, and for which columns before it the same would be found again."""

    parents: tuple[Columns, ...]
    """The best of these, by their score."""
    used: int
    """Columns that were taken or tried on the way, parents or not."""
    barred: int
    """Columns that would have been, had they come before, too."""
    losses: FloatArray | None
    """What the score loses by each column before; None if there is more than one set of parents to choose from."""


@dataclass(frozen=True, slots=True)
class FamilySearch:
    """Finds parents by growing and shrinking, and remembers what it found; columns before one are a set of bits."""

    evidence: DependenceEvidence
    constraints: Constraints
    constants: Constants
    edge_log_odds: float
    rows: dict[tuple[int, Columns], FloatArray] = field(default_factory=dict)
    ones: dict[tuple[int, int, Columns], float] = field(default_factory=dict)
    climbs: dict[int, list[Climb]] = field(default_factory=lambda: defaultdict(list))
    bests: dict[tuple[int, int], tuple[Columns, float]] = field(default_factory=dict)
    judges: dict[tuple[float, ...], FamilySearch] = field(default_factory=dict)

    @classmethod
    def of(cls, evidence: DependenceEvidence, constraints: Constraints, constants: Constants) -> FamilySearch:
        """With prior odds from the expected number of neighbours."""
        p = min(0.5, constants.expected_neighbours(len(evidence.measured)) / (len(evidence.measured) - 1))
        return cls(evidence, constraints, constants, log(p / (1 - p)))

    @property
    def columns(self) -> int:
        """How many columns there are."""
        return len(self.evidence.measured)

    @property
    def hopeless(self) -> float:
        """See BestParents."""
        return self.constants.hopeless

    def judging(self, *weaker: float) -> FamilySearch:
        """The same prior odds with evidence that forgives no misfit; what it finds is remembered, too."""
        if weaker not in self.judges:
            evidence = self.evidence.without_misfit(*weaker)
            self.judges[weaker] = FamilySearch(evidence, self.constraints, self.constants, self.edge_log_odds)
        return self.judges[weaker]

    def shifted(self, by: float) -> FamilySearch:
        """The same evidence with other log odds for an edge."""
        return replace(self, edge_log_odds=self.edge_log_odds + by, climbs=defaultdict(list), bests={}, judges={})

    def row(self, column: int, parents: Columns) -> FloatArray:
        """The evidence of every column with this one given its parents, remembered."""
        key = (column, parents)
        if key not in self.rows:
            self.rows[key] = self.evidence.row(column, parents)
        return self.rows[key]

    def prepare(self, asked: Iterable[tuple[int, int, int]]) -> None:
        """Find together what changes (column, before, other) will ask for one after the other."""
        unknown: dict[int, dict[int, None]] = defaultdict(dict)
        for column, before, other in asked:
            climb = self._known(column, before)
            if climb is None:
                unknown[column] |= {before: None, before | 1 << other: None}
            elif climb.losses is None or climb.barred >> other & 1:
                unknown[column][before | 1 << other] = None
        if unknown:
            self._run(together([self._prepared(column, list(sets)) for column, sets in unknown.items()]))

    def remember(self, wanted: Iterable[Wanted]) -> None:
        """Find together what is not yet known of this."""
        rows, ones = dict[Row, None](), dict[One, None]()
        for key in wanted:
            if self._knows(key):
                continue
            if len(key) == 2:
                rows[key] = None
            else:
                ones[key] = None
        of_rows, of_ones = self.evidence.many(list(rows), list(ones))
        self.rows.update(zip(rows, of_rows, strict=True))
        self.ones.update(zip(ones, of_ones, strict=True))

    def _want(self, wanted: list[Wanted]) -> Steps[None]:
        missing = [key for key in wanted if not self._knows(key)]
        if missing:
            yield missing

    def _knows(self, key: Wanted) -> bool:
        return key in self.rows if len(key) == 2 else key in self.ones or (key[0], key[2]) in self.rows

    def best(self, column: int, before: int) -> tuple[Columns, float]:
        """The best parents found among these columns, and their score."""
        key = column, before
        if key not in self.bests:
            members = members_of(before, self.columns)
            parents = self._climb(column, before).parents
            if len(self.bests) >= MOST_REMEMBERED:
                self.bests.clear()
            self.bests[key] = max(((some, self._score(column, some, members)) for some in parents), key=itemgetter(1))
        return self.bests[key]

    def change(self, column: int, before: int, other: int) -> float:
        """How much the score of the best parents found changes if another column comes before, too."""
        climb = self._climb(column, before)
        if climb.losses is None or climb.barred >> other & 1:
            return self.best(column, before | 1 << other)[1] - self.best(column, before)[1]
        return -climb.losses.item(other)

    def changes(self, asked: Sequence[tuple[int, int, int]]) -> list[float]:
        """The same for several, what is not known of them found together."""
        changes = []
        for column, before, other in asked:  # millions of times: what was found before is at hand
            climb = self._known(column, before)
            if climb is None or climb.losses is None or climb.barred >> other & 1:
                self.prepare(asked)
                return [self.change(*one) for one in asked]
            changes.append(-climb.losses.item(other))
        return changes

    def gain(self, column: int, parent: int, others: Columns) -> float:
        """The log odds of an edge from a parent, given the other parents."""
        return self.dependence(column, parent, others) + self.edge_log_odds

    def dependence(self, column: int, other: int, given: Columns) -> float:
        """The evidence that two columns depend on each other given a set, remembered."""
        if (column, given) in self.rows:
            return float(self.rows[column, given][other])
        key = (column, other, given)
        if key not in self.ones:
            self.ones[key] = self.evidence.one(column, other, given)
        return self.ones[key]

    def _score(self, column: int, parents: Columns, before: BoolArray) -> float:
        """The score of a column with these parents; an order against required arrows is all but ruled out."""
        edge = self.edge_log_odds - self.constants.edge_cost
        return edge * len(parents) - float(self._losses(column, parents)[before].sum())

    def _losses(self, column: int, parents: Columns) -> FloatArray:
        against, allowed = self.constraints.against[:, column], self.constraints.allowed
        row = np.maximum(self.row(column, parents), self.constants.least_counted)
        turned = allowed[column] & ~allowed[:, column]  # in another order these could be joined: nothing is forgiven
        row = np.where(turned, row, np.minimum(row, self.constants.most_counted))
        return row + AGAINST_KNOWLEDGE * against if against.any() else row

    def _climb(self, column: int, before: int) -> Climb:
        """What was found for such columns before, if anything was, or else is found now."""
        return self._known(column, before) or self._run(self._found(column, before))

    def _known(self, column: int, before: int) -> Climb | None:
        known, after = self.climbs[column], ~before
        for place, climb in enumerate(known):  # millions of times: nothing is called in here
            if not (climb.used & after or climb.barred & before):
                if place:
                    known[0], known[place] = climb, known[0]  # what was asked last is asked next
                return climb
        return None

    def _run(self, steps: Steps[Result]) -> Result:
        """Go through steps, and find what each of them wants to know."""
        while True:
            try:
                wanted = next(steps)
            except StopIteration as end:
                return cast("Result", end.value)
            self.remember(wanted)

    def _prepared(self, column: int, sets: Sequence[int]) -> Steps[None]:
        """Climbs for all of these sets before a column, far ones first: what those between need is often found then."""
        for some in far_first(sets):
            unknown = [before for before in some if self._known(column, before) is None]
            yield from together([self._found(column, before) for before in unknown])

    def _found(self, column: int, before: int) -> Steps[Climb]:
        climb = yield from self._climbed(column, members_of(before, self.columns))
        if self._known(column, before) is None:  # one beside it may have come to the same
            self.climbs[column].append(climb)
        return climb

    def _climbed(self, column: int, before: BoolArray) -> Steps[Climb]:
        """Grow and shrink (Margaritis, 2003): add the clearest parent, drop those that it makes needless, and again."""
        must = self.constraints.required[column] & self.constraints.allowed[:, column]  # whatever the evidence says
        used, barred = before & must, ~before & must
        parents, seen = tuple(int(x) for x in np.flatnonzero(used)), set[Columns]()
        while parents not in seen:  # noised evidence can lead in a circle
            seen.add(parents)
            yield from self._want([(column, parents)])
            grown, clearer = self._grown(column, parents, before)
            barred |= clearer
            if grown != parents:
                used[list(grown)] = True
                parents = yield from self._shrunk(column, grown, spare=SPARE)
        if self._too_many(parents):
            parents = yield from self._shrunk(column, parents)
        yield from self._want([(column, ()), (column, parents)])
        strong, stronger = self._strong(column, parents, before)
        used[strong] = True
        found = (parents, *(yield from self._exchanged(column, parents, strong)))
        yield from self._want([(column, some) for some in found])
        losses = self._losses(column, parents) if len(found) == 1 else None
        return Climb(found, bits_of(used), bits_of(barred | stronger), losses)

    def _exchanged(self, column: int, parents: Columns, strong: list[int]) -> Steps[list[Columns]]:
        """With one of the strongest columns left out instead of those that it makes needless.

        Two causes of a column that they determine say together what it says alone, and may be found first.
        """
        tried = yield from together([self._shrunk(column, sorted_set(*parents, x)) for x in strong])
        return [fewer for x, fewer in zip(strong, tried, strict=True) if x in fewer and len(fewer) <= len(parents)]

    def _strong(self, column: int, parents: Columns, before: BoolArray) -> tuple[list[int], BoolArray]:
        """Columns that could be parents and depend on this one more than some of its two or more parents do.

        Also those that would have been among them, had they come before.
        """
        if len(parents) < 2:
            return [], np.zeros(self.columns, dtype=bool)
        alone = self.row(column, ())
        free = self._free(column, parents) & (alone > min(alone[list(parents)]))
        strong = np.flatnonzero(free & before)
        strong = strong[np.argsort(-alone[strong])]
        if len(strong) >= EXCHANGED:
            free &= alone >= alone[strong[EXCHANGED - 1]]
        return [int(x) for x in strong[:EXCHANGED]], free & ~before

    def _grown(self, column: int, parents: Columns, before: BoolArray) -> tuple[Columns, BoolArray]:
        """With the clearest parent more, if any is clear; a full set grows too, which then costs it the weakest.

        Also the columns that would have been clearer, had they come before.
        """
        row, free = self.row(column, parents), self._free(column, parents)
        best = int(np.argmax(np.where(free & before, row, -np.inf)))
        if free[best] and before[best] and row[best] + self.edge_log_odds > 0:
            return sorted_set(*parents, best), free & ~before & (row >= row[best])
        return parents, free & ~before & (row + self.edge_log_odds > 0)

    def _free(self, column: int, parents: Columns) -> BoolArray:
        """Columns that could be parents and are not."""
        free: BoolArray = self.constraints.allowed[:, column].copy()
        free[list(parents)] = False
        return free

    def _too_many(self, parents: Columns, spare: int = 0) -> bool:
        """Whether a column cannot have so many parents: more of them only while their table has few cells."""
        few = self.evidence.cells(parents) <= self.constants.small_table
        return len(parents) > spare + (self.constants.max_parents_if_small if few else self.constants.max_parents)

    def _shrunk(self, column: int, parents: Columns, spare: int = 0) -> Steps[Columns]:
        """Without those that the others make needless, and without the weakest while there are too many."""
        required = self.constraints.required[:, column]
        while len(parents) > 1:
            fewer = [parents[:i] + parents[i + 1 :] for i in range(len(parents))]
            optional = [(column, x, rest) for x, rest in zip(parents, fewer, strict=True) if not required[x]]
            yield from self._want([*optional])
            gains = {rest: self.gain(column, x, rest) for _, x, rest in optional}
            weakest = min(gains, key=gains.__getitem__, default=None)
            if weakest is None or (gains[weakest] >= 0 and not self._too_many(parents, spare)):
                break
            parents = weakest
        return parents


def together(parts: Sequence[Steps[Result]]) -> Steps[list[Result]]:
    """Steps of several side by side, so that what they want to know is found at once."""
    results, running = dict[int, Result](), dict(enumerate(parts))
    while running:
        wanted = list[Wanted]()
        for place, steps in list(running.items()):
            try:
                wanted += next(steps)
            except StopIteration as end:
                results[place] = end.value
                del running[place]
        if wanted:
            yield wanted
    return [results[place] for place in range(len(parts))]


def far_first(some: Sequence[int]) -> Iterator[Sequence[int]]:
    """All of some, those far from each other first, and then those between."""
    step = 1
    while step < len(some):
        step *= STRIDE
    yield some[:1]
    while step > 1:
        step, last = step // STRIDE, step
        yield [x for place, x in enumerate(some) if place % step == 0 and place % last]

"""How long a grid will still take: from how long its cells took so far, method by method."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from dpcurate.published.reproduction.grid import GridCell


@dataclass(slots=True)
class TimeLeft:
    """Seconds that are left of `groups` of cells, each the work of one of so many `workers`, begun in order.

    A cell states a cost, roughly in seconds. The time between two cells of a group is what the later one took, so each
    method gets a factor of its own; a cell under way that has taken longer than stated counts as well. Without that,
    an estimate stands still when the last method is slower than stated.
    """

    groups: Sequence[Sequence[GridCell]]
    workers: int
    _begun: dict[int, float] = field(default_factory=dict)

    def __call__(self, ended: Mapping[GridCell, float], now: float) -> float | None:
        """The estimate, given when cells ended; None before anything is known."""
        taken: dict[str, float] = defaultdict(float)
        stated: dict[str, float] = defaultdict(float)
        waiting = []
        for number, group in enumerate(self.groups):
            for cell, seconds in self._timed(number, group, ended):
                taken[_kind(cell)] += seconds
                stated[_kind(cell)] += cell.cost
            if any(cell not in ended for cell in group):
                waiting.append(number)
        under_way = {n: self._since(n, ended, now) for n in waiting[: self.workers]}
        for number, seconds in under_way.items():
            cell = self._open(number, ended)[0]
            if seconds > cell.cost * _factor(taken, stated, cell):
                taken[_kind(cell)] += seconds
                stated[_kind(cell)] += cell.cost
        if not sum(stated.values()):
            return None
        each = [
            sum(cell.cost * _factor(taken, stated, cell) for cell in self._open(n, ended)) - under_way.get(n, 0.0)
            for n in waiting
        ]
        return max(0.0, sum(each) / self.workers, *each)

    def _open(self, number: int, ended: Mapping[GridCell, float]) -> list[GridCell]:
        return [cell for cell in self.groups[number] if cell not in ended]

    def _timed(
        self, number: int, group: Sequence[GridCell], ended: Mapping[GridCell, float]
    ) -> Iterator[tuple[GridCell, float]]:
        """Cells of a group with what they took; of its first one, from when the group was seen to begin."""
        before = self._begun.get(number)
        for cell in group:
            if cell in ended:
                if before is not None:
                    yield cell, max(0.0, ended[cell] - before)
                before = ended[cell]

    def _since(self, number: int, ended: Mapping[GridCell, float], now: float) -> float:
        """How long the cell under way has been."""
        begun = self._begun.setdefault(number, now)
        return max(0.0, now - max([begun, *(ended[cell] for cell in self.groups[number] if cell in ended)]))


def _kind(cell: GridCell) -> str:
    return f"{cell.method} {cell.reading}" if cell.reading == "proved" else cell.method


def _factor(taken: Mapping[str, float], stated: Mapping[str, float], cell: GridCell) -> float:
    """Seconds for one second that is stated: of the method, or of all if it was not seen yet."""
    if stated.get(_kind(cell)):
        return taken[_kind(cell)] / stated[_kind(cell)]
    return sum(taken.values()) / sum(stated.values()) if sum(stated.values()) else 1.0

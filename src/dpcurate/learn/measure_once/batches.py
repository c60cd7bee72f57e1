"""What is computed together: things of unlike sizes, padded to the largest, where that costs less than a call more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeVar

MOST_NUMBERS = 2_000_000
"""In the large arrays of one computation: enough to forget what a call costs, and little memory."""
CALL = 10_000
"""One more computation takes about as long as so many numbers."""

Part = TypeVar("Part")


class Sizes(NamedTuple):
    """The largest sizes of what is computed together, for each conditioning set."""

    cells: int
    features: int
    others: int = 1
    """Columns whose dependence with another one is asked for."""
    width: int = 1
    """Coordinates of the widest of these."""
    across: int = 1
    """Coordinates of that other one."""
    third: int = 1
    """Coordinates of a third one at whose levels they may depend in another way."""

    @property
    def numbers(self) -> int:
        """In the large arrays."""
        of_cells = self.cells * (self.width * self.third) ** 2
        of_residuals = 4 * (self.width * self.across * self.third) ** 2
        return (self.cells + self.features) * self.features + self.others * (of_cells + of_residuals)

    def joined(self, other: Sizes) -> Sizes:
        """Large enough for both."""
        return Sizes(*map(max, self, other))


def batches(alike: Mapping[Sizes, list[Part]]) -> Iterator[list[Part]]:
    """Parts of like sizes, and of no more numbers than one computation may have."""
    for sizes, parts in _joined(alike):
        at_once = max(1, MOST_NUMBERS // sizes.numbers)
        yield from (parts[start : start + at_once] for start in range(0, len(parts), at_once))


def _joined(alike: Mapping[Sizes, list[Part]]) -> list[tuple[Sizes, list[Part]]]:
    """The largest first; each goes with the first for which padding costs less than a call of its own."""
    groups: list[tuple[Sizes, int, list[Part]]] = []
    for sizes, own in sorted(((sizes, sizes.numbers) for sizes in alike), key=lambda pair: -pair[1]):
        parts = alike[sizes]
        for place, (largest, most, others) in enumerate(groups):
            if len(parts) * (most - own) >= CALL:  # too small for it, however alike
                continue
            both = largest.joined(sizes)
            numbers = both.numbers
            if len(others) * (numbers - most) + len(parts) * (numbers - own) < CALL:
                groups[place] = both, numbers, [*others, *parts]
                break
        else:
            groups.append((sizes, own, parts))
    return [(sizes, parts) for sizes, _, parts in groups]

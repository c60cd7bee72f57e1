"""Background knowledge as the search sees it: by positions of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np

from dpcurate._typing import BoolArray
from dpcurate.graphs.knowledge import Knowledge
from dpcurate.learn.measure_once.blocks import Columns


@dataclass(frozen=True, slots=True)
class Constraints:
    """Which pairs may be adjacent, which arrows (from, to) are allowed, which edges are required (symmetric)."""

    pairs: tuple[Columns, ...]
    allowed: BoolArray
    required: BoolArray
    against: BoolArray
    """[x, y]: x must come after y, as their edge is required and may not point from x to y."""
    copies: Mapping[int, int] = field(default_factory=dict)
    """Columns that repeat another one, and that one: the search has it come first, though nothing tells that it did."""

    @classmethod
    def of(cls, names: Sequence[str], knowledge: Knowledge | None) -> Constraints:
        """Without knowledge everything is allowed and nothing required."""
        known, size = knowledge or Knowledge(), len(names)
        pairs = tuple((a, b) for a, b in combinations(range(size), 2) if known.allows(names[a], names[b]))
        allowed, required = np.zeros((size, size), dtype=bool), np.zeros((size, size), dtype=bool)
        for a, b in pairs:
            allowed[a, b] = known.may_point(names[a], names[b])
            allowed[b, a] = known.may_point(names[b], names[a])
            required[a, b] = required[b, a] = known.requires(names[a], names[b])
        return cls(pairs, allowed, required, required & ~allowed)

    def with_copies(self, copies: Mapping[int, int]) -> Constraints:
        """With columns that come after those they repeat, so that these alone explain them."""
        allowed = self.allowed.copy()
        for copy, first in copies.items():
            allowed[copy, first] = False
        return replace(self, allowed=allowed, copies=copies)

"""The statistics that the published systems ask for, with the sensitivities their authors state: NOT PROVED.

A session answers them only if it was opened with allow_unproved=True.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from dpcurate import _validation
from dpcurate._messages import shown
from dpcurate.errors import QueryError
from dpcurate.queries import PairStatistic

StatedBound = Literal["priv-pc", "curate-printed", "curate-code"]


@dataclass(frozen=True, slots=True)
class PublishedKendallP(PairStatistic):
    """The p-value as the published systems compute it, with the sensitivity they state: NOT PROVED.

    `bound` is 'priv-pc', 'curate-printed' (the paper's formula) or 'curate-code'.
    """

    bound: StatedBound = "curate-code"

    def __post_init__(self) -> None:
        PairStatistic.__post_init__(self)
        if _validation.text(self.bound) not in get_args(StatedBound):
            raise QueryError(f"bound must be 'priv-pc', 'curate-printed' or 'curate-code', got {shown(self.bound)}")


@dataclass(frozen=True, slots=True)
class PublishedFlips(PairStatistic):
    """How many rows would have to go to change a G test's mind, as EM-PC's code counts: NOT PROVED."""

    level: float = 0.05

    def __post_init__(self) -> None:
        PairStatistic.__post_init__(self)
        if _validation.between(0, self.level, 1) is None:
            raise QueryError(f"a level lies between 0 and 1, got {shown(self.level)}")

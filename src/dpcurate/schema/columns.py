"""Columns of a table as the schema declares them: levels, bounds and bins, and what becomes of other cells."""

from __future__ import annotations

import math
import re
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from dpcurate._messages import how_many, listed, shown
from dpcurate.errors import SchemaError

GRID = 4096
"""Steps between the middle of a numeric column's range and its end; values are held on this grid."""
MISSING_VALUE = -GRID - 1
"""Stands on the grid for a missing number whose row is kept (missing = 'own')."""
MAX_LEVELS = 1000
MAX_SPELLINGS = 1000
"""Cells that the groups of a column stand for."""
MAX_NUMBER = sys.float_info.max
DROP = "drop"
CLAMP = "clamp"
OWN = "own"
MISSING = "missing"
"""The level of missing cells in a column with missing = 'own'."""
_DECLARE_A_LEVEL = (
    "; where a column has levels, declare one for missing cells, such as levels = [..., 'unknown'] "
    "with missing = 'unknown'"
)


_UNWRITABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
"""Control characters except tabs and line ends, and code points that are no character: XML cannot hold most of them,
and the others (0x80 to 0x9f) steer terminals."""


def level_text(level: Any) -> str:
    """The text of a level: 1, 1.0 and '1' are the same level, true and 'true' too."""
    if isinstance(level, bool):
        return "true" if level else "false"
    if isinstance(level, float) and level.is_integer() and abs(level) < 2**53:
        return str(int(level))
    return str(level)


def level_number(level: str) -> float | None:
    """The number a level stands for, if any: true is 1 and false is 0."""
    if level.lower() in ("true", "false"):
        return float(level.lower() == "true")
    try:
        value = float(level)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def no_number(level: str) -> bool:
    """Whether a text spells a number that is none, or infinite: a frame may write one for a cell."""
    try:
        return not math.isfinite(float(level))
    except ValueError:
        return False


def check_name(name: object) -> None:
    """Refuse what cannot name a column."""
    if not isinstance(name, str) or not name:
        raise SchemaError(f"a column name must be text of at least one character, got {shown(name)}")
    if not _writable(name):
        raise SchemaError(
            f"the column name {shown(name)} holds a control character or half a character, which files of results "
            "cannot hold; rename the column in the table"
        )


def _refused(name: str, setting: str, why: str) -> SchemaError:
    """About a column; the setting is there to find its line."""
    return SchemaError(f"column {name!r}{why}", setting=setting)


def _writable(text: str) -> bool:
    """Whether every format of a result can hold it: found out here, and not after a run was paid for."""
    return not _UNWRITABLE.search(text)


@dataclass(frozen=True, slots=True)
class Categorical:
    """A column of named levels without order.

    `missing` and `outside` say what becomes of a cell that is empty or holds no declared level:
    'drop' (the row is left out) or one of the levels; missing = 'own' gives missing cells a level of their own,
    called 'missing', which is added. With `groups`, a mapping of a name to the cells it stands for, the levels
    are the groups' names: many codes become a few public levels.
    """

    name: str
    levels: tuple[str, ...] = ()
    missing: str = DROP
    outside: str = DROP
    groups: tuple[tuple[str, tuple[str, ...]], ...] = ()

    kind = "categorical"

    def __post_init__(self) -> None:
        check_name(self.name)
        if self.groups:
            object.__setattr__(self, "groups", self._grouped())
        object.__setattr__(self, "levels", self._texts(self.levels))
        if self.missing == OWN and OWN not in self.levels and self.kind == "categorical":
            self._add_missing()
        levels = self.levels
        if not 2 <= len(levels) <= MAX_LEVELS:
            few = "A constant column tells nothing: leave it out of the schema"
            many = "Group them, such as groups = {north = [...], south = [...]}, or leave the column out of the schema"
            why = f" has {how_many(len(levels), 'level')}; it needs 2 to {MAX_LEVELS:,}. "
            raise _refused(self.name, "levels", why + (few if len(levels) < 2 else many))
        for setting, texts in (("levels", levels), ("groups", tuple(text for text, _ in self.spellings))):
            keys = Counter(x if level_number(x) is None else level_number(x) for x in texts)
            repeated = sorted({x for x in texts if keys[x if level_number(x) is None else level_number(x)] > 1})
            if repeated:
                raise _refused(self.name, setting, f" repeats the {listed('level', repeated[:8])}")
        for field in ("missing", "outside"):
            rule = level_text(getattr(self, field))
            object.__setattr__(self, field, rule)
            if rule != DROP and rule not in levels:
                why = f": {field} = {rule!r} is neither 'drop' nor one of its {len(levels)} levels"
                raise _refused(self.name, field, why + (_DECLARE_A_LEVEL if rule == OWN else ""))

    def _add_missing(self) -> None:
        """Missing cells become a level; an order has no place for one."""
        if MISSING not in self.levels:
            object.__setattr__(self, "levels", (*self.levels, MISSING))
            if self.groups:
                object.__setattr__(self, "groups", (*self.groups, (MISSING, (MISSING,))))
        object.__setattr__(self, "missing", MISSING)

    def _grouped(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        given: Any = self.groups
        try:
            pairs = [(name, cells) for name, cells in (given.items() if isinstance(given, Mapping) else given)]
        except (TypeError, ValueError):
            raise _refused(self.name, "groups", f": groups map a name to a list of cells, got {shown(given)}") from None
        names = self._texts(tuple(name for name, _ in pairs))
        if self.levels not in ((), names):
            raise _refused(self.name, "levels", ": give levels or groups, not both: the groups' names are the levels")
        object.__setattr__(self, "levels", names)
        groups = tuple((name, self._texts(cells)) for name, (_, cells) in zip(names, pairs, strict=True))
        if not all(cells for _, cells in groups) or sum(len(cells) for _, cells in groups) > MAX_SPELLINGS:
            raise _refused(
                self.name, "groups", f": groups stand for at least one cell each, {MAX_SPELLINGS:,} in all at most"
            )
        return groups

    @property
    def spellings(self) -> tuple[tuple[str, int], ...]:
        """Every text of a cell that means a level, with the level's place."""
        groups = [cells for _, cells in self.groups] or [(level,) for level in self.levels]
        return tuple((cell, place) for place, cells in enumerate(groups) for cell in cells)

    def _texts(self, given: Any) -> tuple[str, ...]:
        plain = isinstance(given, (list, tuple, range)) and all(
            isinstance(x, (str, int)) or (isinstance(x, float) and not math.isnan(x)) for x in given
        )
        if not plain:
            raise _refused(
                self.name, "levels", f": levels must be a list of texts, numbers or truth values, got {shown(given)}"
            )
        levels = tuple(level_text(x) for x in given)
        strange = [x for x in levels if no_number(x)]
        if strange:
            raise _refused(
                self.name,
                "levels",
                f": a level may not be called {strange[0]!r}, which is how a missing or infinite "
                "number is written: rename it in the table",
            )
        if DROP in levels:
            raise _refused(self.name, "levels", ": a level may not be called 'drop', which names a rule")
        wrong = next((x for x in levels if not _writable(x)), None)
        if wrong is not None:
            why = "holds a control character or half a character, which files of results cannot hold"
            raise _refused(self.name, "levels", f": the level {shown(wrong)} {why}; leave it out or rename it")
        return levels

    @property
    def has_levels(self) -> bool:
        """Always, as opposed to a number without bins."""
        return True

    @property
    def size(self) -> int:
        """Number of levels."""
        return len(self.levels)

    @property
    def steps(self) -> int:
        """The integer that stands for 1 when the column is used as a number in [-1, 1]."""
        return len(self.levels) - 1


@dataclass(frozen=True, slots=True)
class Ordinal(Categorical):
    """A column of named levels from lowest to highest."""

    kind = "ordinal"


@dataclass(frozen=True, slots=True)
class Numeric:
    """A column of numbers between public bounds; with `bins` or `edges` it has levels too.

    `edges` are the inner cuts (bins - 1 of them, equal widths when not given); a value equal to an
    edge belongs to the upper bin. `missing` is 'drop', a number in the bounds, or 'own' (a number without bins
    only: the row is kept, and that the cell is missing is known of it); `outside` is 'clamp' or 'drop'.
    """

    name: str
    low: float
    high: float
    bins: int | None = None
    edges: tuple[float, ...] = ()
    missing: str | float = DROP
    outside: str = CLAMP

    kind = "numeric"

    def __post_init__(self) -> None:
        check_name(self.name)
        for field in ("low", "high"):
            object.__setattr__(self, field, self._number(field, getattr(self, field)))
        if not self.low < self.high:
            raise _refused(self.name, "low", f": low = {self.low:g} must be below high = {self.high:g}")
        if self.high - self.low < 1e-300:
            raise _refused(self.name, "high", ": high - low is too small for a number")
        if not math.isfinite(self.high - self.low):
            raise _refused(self.name, "high", ": high - low is too large for a number")
        if self.bins is None and self.edges:
            object.__setattr__(self, "bins", len(self.edges) + 1)
        if self.bins is not None:
            object.__setattr__(self, "edges", self._cuts(self._checked(self.bins)))
        if self.missing == OWN and self.has_levels:
            raise _refused(self.name, "missing", ": missing = 'own' is for numbers without bins" + _DECLARE_A_LEVEL)
        if self.missing not in (DROP, OWN):
            value = self._number("missing", self.missing)
            if not self.low <= value <= self.high:
                raise _refused(self.name, "missing", f": missing = {value:g} is outside [{self.low:g}, {self.high:g}]")
            object.__setattr__(self, "missing", value)
        if self.outside not in (CLAMP, DROP):
            raise _refused(self.name, "outside", f": outside must be 'clamp' or 'drop', got {shown(self.outside)}")

    def _number(self, field: str, value: object) -> float:
        # Compared and not asked by math.isfinite, which fails on a very large whole number.
        if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= MAX_NUMBER:
            return float(value)
        raise _refused(self.name, field, f": {field} must be a finite number, got {shown(value)}")

    def _checked(self, bins: object) -> int:
        if isinstance(bins, bool) or not isinstance(bins, int) or not 2 <= bins <= MAX_LEVELS:
            why = f": bins must be a whole number from 2 to {MAX_LEVELS}, got {shown(bins)}"
            raise _refused(self.name, "bins", why)
        return bins

    def _cuts(self, bins: int) -> tuple[float, ...]:
        if not self.edges:
            width = (self.high - self.low) / bins
            return tuple(self.low + width * i for i in range(1, bins))
        cuts = tuple(self._number("edges", x) for x in self.edges)
        if len(cuts) != bins - 1:
            raise _refused(self.name, "edges", f": {bins} bins need {bins - 1} inner edges, got {len(cuts)}")
        if any(a >= b for a, b in pairwise((self.low, *cuts, self.high))):
            raise _refused(self.name, "edges", ": edges must rise and lie strictly between low and high")
        return cuts

    @property
    def has_levels(self) -> bool:
        """Whether it was given bins."""
        return self.bins is not None

    @property
    def size(self) -> int:
        """Number of bins; 1 for a number without bins."""
        return self.bins or 1

    @property
    def steps(self) -> int:
        """The integer that stands for 1 when the column is used as a number in [-1, 1]."""
        return GRID

    @property
    def levels(self) -> tuple[str, ...]:
        """Names of the bins; the bounds of a number without bins."""
        cuts = (self.low, *self.edges, self.high)
        return tuple(f"[{a:g}, {b:g}{']' if b == self.high else ')'}" for a, b in pairwise(cuts))


Column = Categorical | Ordinal | Numeric

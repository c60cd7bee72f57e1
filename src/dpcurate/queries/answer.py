"""What comes back: a released statistic, and its tables of estimates with errors."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from importlib import import_module
from itertools import product
from typing import Any

from dpcurate._messages import aligned
from dpcurate._tables import csv_text
from dpcurate._typing import FloatArray
from dpcurate.errors import DpcurateError, QueryError
from dpcurate.queries.statistics import Counts, Means, Statistic, Tables
from dpcurate.schema import GRID, OWN, Numeric, Schema

MOST_DRAWN = 200
"""Numbers in one drawing."""
NORMAL_95 = 1.959964
NOISE_ALONE = "the error is that of the noise for privacy alone; the rows' own sampling error comes on top"
EXACT = "no noise was added: NOT PRIVATE"


@dataclass(frozen=True, slots=True)
class Estimate:
    """One number: what it is of, its value, and the standard error of its noise or an interval."""

    of: tuple[str, ...]
    value: float
    error: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Estimates:
    """Numbers of one kind; `names` head what they are of, `kind` heads their values, `notes` say how they are made."""

    names: tuple[str, ...]
    kind: str
    rows: tuple[Estimate, ...]
    notes: tuple[str, ...] = ()

    def _head(self) -> tuple[str, ...]:
        return (*self.names, self.kind, *(("low", "high") if self._intervals else ("error",)))

    @property
    def _intervals(self) -> bool:
        return any(row.low is not None for row in self.rows)

    def _numbers(self, row: Estimate) -> tuple[float | None, ...]:
        return (row.value, row.low, row.high) if self._intervals else (row.value, row.error)

    def __str__(self) -> str:
        head = self._head()
        cells = [(*row.of, *map(_digits(row), self._numbers(row))) for row in self.rows]
        table = [[cell.replace("\n", "\\n") for cell in row] for row in (head, *cells)]
        lines = aligned(table, range(len(self.names), len(head)))
        return "\n".join([*lines, *(f"({note})" for note in self.notes)])

    def to_csv(self) -> str:
        """The table with a head, all digits."""
        return csv_text([self._head(), *((*row.of, *self._numbers(row)) for row in self.rows)])

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain values."""
        return {
            "columns": list(self.names),
            "kind": self.kind,
            "rows": [asdict(row) | {"of": list(row.of)} for row in self.rows],
            "notes": list(self.notes),
        }

    def plot(self, ax: Any = None) -> Any:
        """Draw values with bars of 95 %: of the noise, or the interval that is given; returns the axes."""
        if len(self.rows) > MOST_DRAWN:
            raise QueryError(f"{len(self.rows):,} numbers are more than the {MOST_DRAWN} that can be drawn and read")
        ax = _axes(len(self.rows)) if ax is None else ax
        places = list(range(len(self.rows)))
        values = [row.value for row in self.rows]
        ax.errorbar(values, places, xerr=list(zip(*map(_bar, self.rows), strict=True)), fmt="o", color="0.2", capsize=3)
        ax.set_yticks(places, [", ".join(row.of) for row in self.rows], parse_math=False)
        ax.set_ylim(len(places) - 0.5, -0.5)
        ax.set_xlabel(f"{self.kind} (bars: 95 %)")
        ax.set_ylabel(", ".join(self.names), parse_math=False)
        return ax


def _bar(row: Estimate) -> tuple[float, float]:
    if row.low is not None and row.high is not None:
        return row.value - row.low, row.high - row.value
    return (NORMAL_95 * (row.error or 0.0),) * 2


def _axes(rows: int) -> Any:
    try:
        plots = import_module("matplotlib.pyplot")
    except ImportError:
        raise DpcurateError("plot() draws with matplotlib, which is not installed: pip install matplotlib") from None
    return plots.figure(figsize=(6, 1.2 + 0.3 * rows), layout="constrained").add_subplot()


def _digits(row: Estimate) -> Any:
    """How numbers of a row are written: as far as their error goes, and one digit further."""
    spread = row.error if row.low is None or row.high is None else (row.high - row.low) / 4
    places = 0 if not spread or not math.isfinite(spread) else min(12, max(0, 1 - math.floor(math.log10(spread))))
    shown = f"{{:,.{places}f}}" if spread else "{:,.6g}"
    whole = row.value if row.value.is_integer() else None  # a count is a whole number, whatever its error
    return lambda number: "" if number is None else f"{number:,.0f}" if number == whole else shown.format(number)


def counted(schema: Schema, columns: tuple[str, ...], part: FloatArray, scale: float) -> Estimates:
    """Counts, one row for each combination of levels."""
    levels = product(*(schema[name].levels for name in columns))
    values = part.ravel().tolist()
    rows = tuple(Estimate(of if columns else ("all rows",), v, scale) for of, v in zip(levels, values, strict=True))
    note = f"noise of standard deviation {scale:.4g} on every count, which may be below 0" if scale else EXACT
    return Estimates(columns or ("rows",), "count", rows, (note,))


def means(schema: Schema, columns: tuple[str, ...], parts: tuple[FloatArray, ...], scale: float) -> Estimates:
    """Means from a noised count and noised sums."""
    rest = iter(parts)
    count = float(next(rest))
    rows, steps = [], []
    for name in columns:
        column = schema[name]
        assert isinstance(column, Numeric)
        total, missing = float(next(rest)), float(next(rest)) if column.missing == OWN else None
        rows.append(_mean(column, count, total, missing, scale))
        steps.append(f"{(column.high - column.low) / (2 * GRID):.3g} for {name}")
    made = f"a mean is a noised sum over a noised count, here {count:,.0f} with noise of {scale:.4g}"
    held = f"numbers are held in steps, by one of which a mean may be off: {', '.join(steps)}"
    return Estimates(("column",), "mean", tuple(rows), (made, NOISE_ALONE if scale else EXACT, held))


def _mean(column: Numeric, count: float, total: float, missing: float | None, scale: float) -> Estimate:
    """By the first-order error of a ratio; where the count is mostly noise, the middle and half the range."""
    middle, half = (column.low + column.high) / 2, (column.high - column.low) / 2
    parts = 1 if missing is None else 2
    present = count - (missing or 0.0)
    if present <= 5 * scale * math.sqrt(parts) or present <= 0:
        return Estimate((column.name,), middle, half)
    share = min(1.0, max(-1.0, total / present))
    error = half * scale * math.sqrt(1 + parts * share * share) / present
    return Estimate((column.name,), middle + half * share, min(half, error))


# --- answers --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """A released statistic: its parts and the standard deviation of the noise in each.

    Tables, Contrasts, Histograms and Means have several parts; most other statistics have one. `statistic` and
    `schema` say what was asked, where that is known.
    """

    parts: tuple[FloatArray, ...]
    scales: tuple[float, ...]
    statistic: Statistic | None = field(default=None, repr=False)
    schema: Schema | None = field(default=None, repr=False)

    @property
    def value(self) -> FloatArray:
        """The only part."""
        (part,) = self.parts
        return part

    @property
    def scale(self) -> float:
        """The noise of the only part."""
        (scale,) = self.scales
        return scale

    def __float__(self) -> float:
        return float(self.value)

    def estimates(self) -> tuple[Estimates, ...]:
        """The answer as tables for people: of counts one, of tables one for each set, of means one."""
        statistic, schema = self.statistic, self.schema
        if schema is None or not isinstance(statistic, (Counts, Tables, Means)):
            raise QueryError("counts, tables and means can be shown; other answers are arrays, in `parts`")
        if isinstance(statistic, Means):
            return (means(schema, statistic.columns, self.parts, self.scales[0]),)
        sets = statistic.sets if isinstance(statistic, Tables) else (statistic.columns,)
        each = zip(sets, self.parts, self.scales, strict=True)
        return tuple(counted(schema, columns, part, scale) for columns, part, scale in each)

    def __str__(self) -> str:
        if self.schema is None or not isinstance(self.statistic, (Counts, Tables, Means)):
            return repr(self)
        return "\n\n".join(map(str, self.estimates()))

    def plot(self, ax: Any = None) -> Any:
        """Draw it with matplotlib, with error bars, into `ax` if given; returns the axes."""
        first, *more = self.estimates()
        if more:
            raise QueryError(f"this answer has {len(more) + 1} tables: draw one, such as answer.estimates()[0].plot()")
        return first.plot(ax)

"""What comes back, and how it shows itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dpcurate._typing import FloatArray
from dpcurate.errors import QueryError
from dpcurate.queries.estimates import Estimates, counted, means
from dpcurate.queries.numbers import Means
from dpcurate.queries.statistics import Statistic
from dpcurate.queries.tables import Counts, Tables
from dpcurate.schema import Schema


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

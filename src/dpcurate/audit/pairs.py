"""Worst-case neighbouring tables, built in for every statistic and method.

Each attains the stated sensitivity or says how near it comes. Tables are mappings of columns; the
public row count of the schema is a constant and need not be near the number of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from dpcurate.errors import QueryError
from dpcurate.private.replay import OpenPair, randomness
from dpcurate.queries import Counts, Exact, Release
from dpcurate.schema import OWN, Categorical, Column, Neighbours, Numeric, Schema

ADD, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """Two neighbouring tables under one schema, in any form that a curator opens."""

    schema: Schema
    first: Any
    second: Any
    neighbours: Neighbours = ADD
    name: str = "given by the user"

    def opened(self) -> OpenPair:
        """Open both, after a check that they may be neighbours at all."""
        tables = self.first, self.second
        binned = OpenPair.from_tables(tables, _binned(self.schema), self.neighbours)
        asked = Release(Counts(self.schema.names), Exact())
        one, two = (binned.unlimited(which, randomness(0)).ask(asked).value for which in (0, 1))
        apart = float(np.abs(one - two).sum())
        if apart > (1 if self.neighbours is ADD else 2) * self.schema.rows_per_unit:
            raise QueryError(
                f"the two tables differ in {apart:g} rows and are no neighbours under {self.neighbours.value}"
            )
        return OpenPair.from_tables(tables, self.schema, self.neighbours)


def _binned(schema: Schema) -> Schema:
    """The same schema with bins for numbers that have none, so that rows can be counted."""
    return replace(schema, columns=tuple(c if c.has_levels else _halved(cast(Numeric, c)) for c in schema.columns))


def _halved(column: Numeric) -> Numeric:
    return replace(column, bins=2, missing=column.low if column.missing == OWN else column.missing)


def levels(*sizes: int, rows: int | None = None) -> Schema:
    """Columns a, b, c, ... of so many levels."""
    columns = tuple(Categorical("abcdefgh"[i], tuple(map(str, range(r)))) for i, r in enumerate(sizes))
    return Schema(columns, rows=rows)


def table(schema: Schema, records: Sequence[Sequence[float]]) -> dict[str, Any]:
    """Records as the columns of this schema."""
    return {c.name: np.array([r[i] for r in records], dtype=_kind(c)) for i, c in enumerate(schema.columns)}


def _kind(column: Column) -> type[np.float64] | type[np.int64]:
    return np.float64 if isinstance(column, Numeric) else np.int64


def add(schema: Schema, records: Sequence[Sequence[float]], row: Sequence[float], name: str) -> Pair:
    """A table, and the same with one row more."""
    return Pair(schema, table(schema, records), table(schema, [*records, row]), ADD, name)


def swap(
    schema: Schema, records: Sequence[Sequence[float]], out: Sequence[float], row: Sequence[float], name: str
) -> Pair:
    """A table with a row `out`, and the same with another row in its place."""
    return Pair(schema, table(schema, [*records, out]), table(schema, [*records, row]), REPLACE, name)


def sums(relation: Neighbours) -> Pair:
    """Three binary columns: attains the L2 of counts, contrasts of all pairs and moments, under either relation."""
    schema = levels(2, 2, 2)
    if relation is ADD:
        # A row that moves some entries up and some down, so that noise they share shows.
        return add(schema, [(0, 0, 0)], (1, 0, 1), "one row (0,0,0); one row (1,0,1) more")
    return swap(schema, [(0, 0, 0)], (1, 1, 1), (0, 0, 1), "rows (0,0,0), (1,1,1); the second becomes (0,0,1)")


def opposite(relation: Neighbours) -> Pair:
    """Three binary columns: a row with the second level in every column, which under replace takes the first."""
    return three_tests(relation)


def gradients(relation: Neighbours) -> Pair:
    """Two numeric columns at their bounds: attains the clip, with opposite matrices under replace."""
    return _two_numbers(relation, (1.0, -1.0))


def norms(relation: Neighbours) -> Pair:
    """Two numeric columns: a row of the largest gradient, and one of none, which stand in the outermost bins."""
    return _two_numbers(relation, (0.0, 0.0))


def bounds(relation: Neighbours) -> Pair:
    """Two numeric columns: a row at the upper bounds, that moves to the lower ones under replace."""
    return _two_numbers(relation, (-1.0, -1.0))


def quarters(relation: Neighbours) -> Pair:
    """One number, few rows: one quarter of its range comes nearer to a rank that is sought, another goes away from it.

    Attains a score's sensitivity in either direction: below all rows when one is added, at the median when one moves.
    """
    schema = Schema((Numeric("a", 0, 4, bins=4),))
    if relation is ADD:
        return add(schema, [(3.5,)], (0.5,), "one row in the last quarter; one in the first more")
    name = "rows in the first, first, second and last quarter; the first moves to the last"
    return swap(schema, [(0.5,), (1.5,), (3.5,)], (0.5,), (3.5,), name)


def _two_numbers(relation: Neighbours, other: tuple[float, float]) -> Pair:
    schema = Schema((Numeric("a", -1, 1, bins=2), Numeric("b", -1, 1, bins=2)))
    if relation is ADD:
        return add(schema, [(0.0, 0.0)], (1.0, 1.0), "one row (0, 0); one row (1, 1) more")
    name = f"rows (0, 0), (1, 1); the second becomes ({other[0]:g}, {other[1]:g})"
    return swap(schema, [(0.0, 0.0)], (1.0, 1.0), other, name)


def equal_rows(relation: Neighbours, rows: int = 20) -> Pair:
    """Many equal rows, one of which may not be there: what a sample with one coin for all of them would show."""
    schema = levels(2, 2, 2)
    same = [(0, 0, 0)] * rows
    if relation is ADD:
        return add(schema, same, (0, 0, 0), f"{rows} equal rows; one more")
    return swap(schema, same, (0, 0, 0), (1, 1, 1), f"{rows + 1} equal rows; one of them becomes (1, 1, 1)")


def ranks(relation: Neighbours) -> Pair:
    """Attains tau of a and b given c: 3 on three levels when a row is added, 4 on two when one is replaced.

    A further stratum keeps the sum positive, so that its size, on which scores depend, moves as far.
    """
    if relation is ADD:
        records = [(0, 1, 0), (1, 2, 0), (0, 0, 1), (1, 1, 1)]
        return add(
            levels(3, 3, 2), records, (2, 0, 0), "two rising rows and as many apart; a row against the first two"
        )
    records = [(0, 0, 0), (1, 0, 1), (0, 0, 2), (1, 1, 2)]
    name = "a row concordant in its stratum becomes one discordant in another"
    return swap(levels(2, 2, 3), records, (1, 1, 0), (0, 1, 1), name)


def p_values(relation: Neighbours, steps: int = 120, rows: int = 10**6) -> Pair:
    """Nears kendall-p: a rising and a falling stratum that nearly cancel, and a row against its stratum's order."""
    schema = levels(steps + 2, steps + 2, 2, rows=rows)
    rising = [(i + 1, i + 1, 0) for i in range(steps)]
    falling = [(i + 1, steps - i, 1) for i in range(steps)]
    if relation is ADD:
        return add(schema, [*rising, *falling[3:]], (steps + 1, 0, 0), f"{steps} rising rows and one against them more")
    records = [*rising, *falling[3:]]
    out, row = (steps + 1, steps + 1, 1), (steps + 1, 0, 0)
    return swap(schema, records, out, row, f"a row against {steps} falling rows moves against {steps} rising ones")


def dropped_stratum(rows: int = 100_000) -> Pair:
    """Binary a, b, c. c = 0 is constant until the added row (1, 1): the published p-value drops it, then does not."""
    records = [(0, 0, 0)] * (rows - 16) + [(0, 0, 1)] * 8 + [(1, 1, 1)] * 8
    return add(levels(2, 2, 2, rows=rows), records, (1, 1, 0), f"a constant stratum of {rows - 16} rows; one row more")


def unconditioned(rows: int = 100_000) -> Pair:
    """Binary a, b: the table [[n-2, 1], [1, 0]] and a row (1, 1) more, nothing dropped."""
    records = [(0, 0)] * (rows - 2) + [(0, 1), (1, 0)]
    return add(levels(2, 2, rows=rows), records, (1, 1), "[[n-2, 1], [1, 0]]; one row (1, 1) more")


def dependent(rows: int = 10_000) -> Pair:
    """Binary a, b with p = 0.029: dependent at T = 0.05, and p moves by less than every published bound."""
    records = [(0, 0)] * (rows - 63) + [(1, 1)] * 63
    return add(levels(2, 2, rows=rows), records, (1, 1), "a dependent 2 x 2 table; one row (1, 1) more")


def three_tests(relation: Neighbours, rows: int = 4) -> Pair:
    """Three binary columns whose three taus all move by their sensitivity, past the threshold of n0 = `rows`."""
    schema = levels(2, 2, 2, rows=rows)
    if relation is ADD:
        return add(schema, [(0, 0, 0)], (1, 1, 1), "one row (0,0,0); one row (1,1,1) more")
    return swap(schema, [(0, 0, 0)], (1, 1, 1), (0, 0, 0), "rows (0,0,0), (1,1,1); the second becomes (0,0,0)")


def mixed(relation: Neighbours) -> Pair:
    """A number and two levels, which the default method measures by features; the row that differs is far out."""
    schema = Schema((Numeric("a", -1, 1), Categorical("b", ("0", "1"))), rows=4)
    if relation is ADD:
        return add(schema, [(-1.0, 0)], (1.0, 1), "a row (-1, 0); a row (1, 1) more")
    return swap(schema, [(-1.0, 0)], (1.0, 1), (-1.0, 0), "rows (-1, 0), (1, 1); the second becomes (-1, 0)")


def many(relation: Neighbours, rows: int = 40_000) -> Pair:
    """Two binary columns, -1 and 1 on the scale of moments, with enough rows that no release is lost in its noise."""
    schema = levels(2, 2, rows=rows)
    corners = [(1, 1), (1, 0), (0, 1), (0, 0)] * (rows // 4)
    if relation is ADD:
        return add(schema, corners, (1, 1), f"{rows} rows, a quarter in each cell; one row (1, 1) more")
    return swap(schema, corners, (1, 1), (1, 0), f"{rows} rows, a quarter in each cell; a row (1, 1) becomes (1, 0)")

"""What a column holds, as far as a draft has to know. This LOOKS AT THE DATA."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpcurate.private.sources.encode import Cell, Kind
from dpcurate.private.sources.engine import Engine
from dpcurate.private.sources.foreign import Described
from dpcurate.schema import Numeric

_FAR = "-1.7e308", "1.7e308"
"""Beyond these a number is infinite or none."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A column: some of its different values, and what all of its cells are.

    `values` are all different ones, in order, unless there are `many`; then they are the first.
    """

    name: str
    kind: Kind
    stored: str
    described: Described
    values: tuple[Any, ...]
    many: bool
    rows: int
    present: int
    numbers: int
    whole: int
    low: float
    high: float
    different: int

    @property
    def only_numbers(self) -> bool:
        return self.kind != "boolean" and 0 < self.numbers == self.present

    @property
    def running(self) -> bool:
        """Whether it numbers the rows."""
        return self.whole == self.present == self.different and self.high - self.low == self.present - 1


def see(engine: Engine, name: str, max_levels: int) -> Seen:
    """Look at one column, in two or three passes."""
    stored = engine.stored()[name]
    kind, cell = engine.kind(stored), engine.dialect.quote(name)
    distinct = f"SELECT DISTINCT {cell} AS x FROM {engine.relation} WHERE {cell} IS NOT NULL ORDER BY x"
    found = engine.fetch(f"{distinct} LIMIT {max_levels + 1}")["x"].tolist()
    values = tuple(x for x in found if x == x)
    facts = _facts(engine, name, kind)
    many, different = len(found) > max_levels, len(found)
    if many:
        counted = engine.fetch(f"SELECT count(DISTINCT {cell}) AS n FROM {engine.relation}")
        different = int(counted["n"][0])
    described = getattr(engine, "codebook", {}).get(name, Described())
    return Seen(name, kind, stored, described, values, many, *facts, different)


def _facts(engine: Engine, name: str, kind: Kind) -> tuple[int, int, int, int, float, float]:
    """Rows, cells that are not missing, numbers among them, whole ones among those, the least and the greatest."""
    cell = Cell(0, Numeric(name, 0, 1), kind, engine.dialect)
    stored = f"SELECT {cell.read} FROM {engine.relation}"
    near = f"{cell.number} > {_FAR[0]} AND {cell.number} < {_FAR[1]}"
    there = cell.number if kind in ("whole", "number") else cell.text
    looked = f"SELECT CASE WHEN {near} THEN {cell.number} END AS x, CASE WHEN {there} IS NOT NULL THEN 1 END AS c"
    found = engine.fetch(
        "SELECT count(*) AS n, count(c) AS p, count(x) AS m, sum(CASE WHEN floor(x) = x THEN 1 ELSE 0 END) AS w, "
        f"min(x) AS low, max(x) AS high FROM ({looked} FROM ({stored}) AS s) AS q"
    )
    rows, present, numbers = (int(found[key][0]) for key in "npm")
    if not numbers:
        return rows, present, 0, 0, 0.0, 0.0
    return rows, present, numbers, int(found["w"][0]), float(found["low"][0]), float(found["high"][0])

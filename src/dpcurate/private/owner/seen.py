"""What a column holds, as far as a draft has to know. This LOOKS AT THE DATA."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from dpcurate.private.sources.encode import Cell, Kind
from dpcurate.private.sources.engine import Engine
from dpcurate.private.sources.statfiles import Described
from dpcurate.schema import Numeric

_FAR = "-1.7e308", "1.7e308"
"""Beyond these a number is infinite or none."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A column: some of its different values, and what all of its cells are.

    `values` are all different ones, in order, unless there are `many`; then they are the first. `low` and `high` are
    the least and the greatest number, `usual_low` and `usual_high` the numbers that 1 % of them do not go beyond.
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
    usual_low: float
    usual_high: float
    different: int

    @property
    def only_numbers(self) -> bool:
        """Whether every cell that is not missing is a number."""
        return self.kind != "boolean" and 0 < self.numbers == self.present

    @property
    def numbers_rows(self) -> bool:
        """Whether it holds whole numbers, each of them once."""
        return self.whole == self.rows == self.different

    @property
    def running(self) -> bool:
        """Whether it counts the rows."""
        return self.numbers_rows and self.high - self.low == self.rows - 1

    @property
    def rows_each(self) -> float:
        """On how many rows a value stands, on average."""
        return self.present / self.different if self.different else 0.0


def see(engine: Engine, name: str, max_levels: int) -> Seen:
    """Look at one column, in two passes."""
    stored = engine.stored()[name]
    kind, cell = engine.kind(stored), engine.dialect.quote(name)
    distinct = f"SELECT DISTINCT {cell} AS x FROM {engine.relation} WHERE {cell} IS NOT NULL ORDER BY x"
    found = engine.fetch(f"{distinct} LIMIT {max_levels + 1}")["x"].tolist()
    described = getattr(engine, "codebook", {}).get(name, Described())
    values = tuple(x for x in found if x == x)
    return Seen(name, kind, stored, described, values, len(found) > max_levels, *_facts(engine, name, kind))


_ALIKE = "dpcurate_rows_alike"
"""How many rows have a value; no column of a table has this name."""


def _facts(engine: Engine, name: str, kind: Kind) -> tuple[int, int, int, int, float, float, float, float, int]:
    """Rows, cells that are there, numbers, whole ones, the least, the greatest and usual numbers, different values.

    Each different value is read once: texts are not cheap to read as numbers.
    """
    cell, column = Cell(0, Numeric(name, 0, 1), kind, engine.dialect), engine.dialect.quote(name)
    alike = f"SELECT {column} AS {column}, count(*) AS {_ALIKE} FROM {engine.relation} GROUP BY 1"
    near = f"{cell.number} > {_FAR[0]} AND {cell.number} < {_FAR[1]}"
    there = cell.number if kind in ("whole", "number") else cell.text
    is_there = f"CASE WHEN {there} IS NOT NULL THEN 1 ELSE 0 END"
    looked = f"SELECT CASE WHEN {near} THEN {cell.number} END AS x, {is_there} AS c, {_ALIKE} AS w"
    weighed = f"{looked} FROM (SELECT {cell.read}, {_ALIKE} FROM ({alike}) AS g) AS s"
    counted = "sum(CASE WHEN x IS NULL THEN 0 ELSE w END)"
    ranked = f"SELECT *, {counted} OVER (ORDER BY x) AS below, {counted} OVER () AS total FROM ({weighed}) AS r"
    found = engine.fetch(
        "SELECT coalesce(sum(w), 0) AS n, coalesce(sum(c * w), 0) AS p, "
        f"coalesce({counted}, 0) AS m, "
        "coalesce(sum(CASE WHEN floor(x) = x THEN w ELSE 0 END), 0) AS i, coalesce(sum(c), 0) AS d, "
        "min(x) AS low, max(x) AS high, "
        "min(CASE WHEN below * 100 >= total THEN x END) AS usual_low, "
        "min(CASE WHEN below * 100 >= total * 99 THEN x END) AS usual_high "
        f"FROM ({ranked}) AS q"
    )
    rows, present, numbers, whole, different = (int(found[key][0]) for key in "npmid")
    ends = [float(found[key][0]) if numbers else 0.0 for key in ("low", "high", "usual_low", "usual_high")]
    return rows, present, numbers, whole, ends[0], ends[1], ends[2], ends[3], different


# --- what a column's name says --------------------------------------------------------------------------


_WHO = (
    "person|patient|subject|respondent|participant|individual|student|pupil|customer|client|employee|worker|member|user"
)
_PERSON = re.compile(
    rf"(?i:({_WHO}|subj|id|pid|id_?(code|num|no|nr)|caseid|(case|hh|household|merge|indiv|resp|cust|subj|pat|{_WHO})_?id)s?)"
)
_ID = re.compile(r"(?i:(^|.*[\W_])(id|ids|nr|key|uuid|guid|pid)([\W_\d].*|$))")
_CAMEL_ID = re.compile(r".*[a-z](Id|ID|Nr)")
_INDEX = re.compile(r"(?i:|unnamed: ?\d+(\.\d+)*|__index_level_\d+__|row[._ ]?names?|\.\.\.1)")
"""Names that a program gave to the numbers or names of rows (pandas, R), or none."""
_PERHAPS_INDEX = re.compile(r"(?i:x|x1|c0|column0|index|level_0|obs|row|row[._ ]?(id|nr|no|num|number|index))")


def names_a_person(name: str) -> bool:
    """Whether a name is that of a person's id, such as subject or patient_id."""
    return bool(_PERSON.fullmatch(name))


def is_id(name: str) -> bool:
    """Whether a name is that of an id of whatever kind."""
    return names_a_person(name) or bool(_ID.fullmatch(name) or _CAMEL_ID.fullmatch(name))


def is_row_index(name: str) -> bool:
    """Whether a name is one that programs give to a row's number."""
    return bool(_INDEX.fullmatch(name))


def may_be_row_index(name: str) -> bool:
    """Whether numbers of rows often have the name, and other columns too."""
    return bool(_PERHAPS_INDEX.fullmatch(name))

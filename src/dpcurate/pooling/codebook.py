"""How a site calls the study's columns and levels: `[map]` in a file of the site.

[map.smoker]
column = "raucher"
levels = { yes = ["ja", "1"], no = ["nein", "0"] }

[map.weight]             # the study's numbers are times * the site's + plus
column = "weight_lb"
times = 0.4536
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from dpcurate import _files
from dpcurate._messages import did_you_mean, shown
from dpcurate.errors import SchemaError
from dpcurate.queries import FeatureMap, Release, Statistic
from dpcurate.schema import DROP, OWN, Categorical, Column, Numeric, Schema

KEYS = ("column", "levels", "times", "plus")


@dataclass(frozen=True, slots=True)
class CodebookEntry:
    """One of the study's columns, as a site has it."""

    column: str
    levels: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Each of the study's levels with the cells that mean it here."""
    times: float = 1.0
    plus: float = 0.0

    def at_site(self, column: Column) -> Column:
        """The study's column under the site's name, bounds and cells."""
        if isinstance(column, Numeric):
            if self.levels:
                raise SchemaError(f"[map.{column.name}]: a number has no levels to map; use times and plus")
            return replace(column, name=self.column, **{k: self._back(v) for k, v in _numbers(column).items()})
        if (self.times, self.plus) != (1.0, 0.0):
            raise SchemaError(f"[map.{column.name}]: times and plus are for numbers; map its levels")
        if not self.levels:
            return replace(column, name=self.column)
        given = dict(self.levels)
        own = tuple(level for level in column.levels if not (level == "missing" and column.missing == OWN))
        if set(given) != set(own):
            missing = sorted(set(own) ^ set(given))
            raise SchemaError(f"[map.{column.name}]: levels must map each of {', '.join(own)}; see {shown(missing[0])}")
        groups = {level: list(given[level]) for level in own}
        return replace(column, name=self.column, levels=(), groups=groups)  # type: ignore[arg-type]

    def _back(self, value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple((one - self.plus) / self.times for one in value)
        return (value - self.plus) / self.times

    def to_study(self, column: Column, name: str) -> Column:
        """The site's column under the study's name, bounds and levels."""
        if isinstance(column, Numeric):
            known = {k: self._forth(v) for k, v in _numbers(column).items()}
            return replace(column, name=name, **known)
        level_of = {cell: level for level, cells in self.levels for cell in cells}
        told = tuple(level_of.get(level, level) for level in column.levels)
        if told == column.levels or not isinstance(column, Categorical) or len(set(told)) < len(told):
            return replace(column, name=name)
        rules = {rule: level_of.get(getattr(column, rule), getattr(column, rule)) for rule in ("missing", "outside")}
        return replace(column, name=name, levels=told, groups=(), **rules)

    def _forth(self, value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(self.times * one + self.plus for one in value)
        return self.times * value + self.plus


def _numbers(column: Numeric) -> dict[str, Any]:
    """What of a column is measured in its unit."""
    known: dict[str, Any] = {"low": column.low, "high": column.high, "edges": column.edges}
    return known if column.missing in (DROP, OWN) else known | {"missing": column.missing}


@dataclass(frozen=True, slots=True)
class Codebook:
    """A site's names for the study's columns, levels and units; an empty one has the study's own."""

    entries: Mapping[str, CodebookEntry] = field(default_factory=dict)

    @classmethod
    def loads(cls, text: str) -> Codebook:
        """Read the `[map]` of a TOML text."""
        given = _files.toml(text, SchemaError)
        if set(given) != {"map"} or not isinstance(given["map"], dict):
            raise SchemaError(
                "a codebook is a table [map.COLUMN] for each column that a site calls or writes otherwise"
            )
        return cls({name: _entry(name, one) for name, one in given["map"].items()})

    @classmethod
    def load(cls, path: str | Path) -> Codebook:
        """Read a TOML file."""
        return _files.load(path, cls.loads, SchemaError)

    def name_of(self, name: str) -> str:
        """The site's name of one of the study's columns."""
        return self.entries[name].column if name in self.entries else name

    def at_site(self, schema: Schema) -> Schema:
        """The study's schema as the site's table has it: open the table with this one."""
        self._check(schema)
        columns = tuple(self.entries[c.name].at_site(c) if c.name in self.entries else c for c in schema.columns)
        order = tuple(tuple(map(self.name_of, group)) for group in schema.order)
        return replace(schema, columns=columns, order=order)

    def to_study(self, schema: Schema) -> Schema:
        """A site's schema in the study's names, levels and units; what the map does not name stays."""
        if not self.entries:
            return schema
        known = {entry.column: (name, entry) for name, entry in self.entries.items()}
        columns = tuple(
            known[c.name][1].to_study(c, known[c.name][0]) if c.name in known else c for c in schema.columns
        )
        order = tuple(tuple(known[n][0] if n in known else n for n in group) for group in schema.order)
        return replace(schema, columns=columns, order=order)

    def to_site(self, release: Release) -> Release:
        """The same release in the site's names."""
        return release if not self.entries else replace(release, statistic=self._renamed(release.statistic))

    def _renamed(self, statistic: Statistic) -> Statistic:
        known = {one.name: getattr(statistic, one.name) for one in fields(statistic)}
        changed: dict[str, Any] = {}
        if "columns" in known:
            changed["columns"] = tuple(map(self.name_of, known["columns"]))
        if "sets" in known:
            changed["sets"] = tuple(tuple(map(self.name_of, one)) for one in known["sets"])
        if "maps" in known:
            changed["maps"] = tuple(FeatureMap(self.name_of(one.column), one.vectors) for one in known["maps"])
        return replace(statistic, **changed)

    def _check(self, schema: Schema) -> None:
        for name in self.entries:
            if name not in schema.names:
                raise SchemaError(f"[map.{name}] is no column of the study{did_you_mean(name, schema.names)}")


def _entry(name: str, given: Any) -> CodebookEntry:
    if not isinstance(given, dict) or not set(given) <= set(KEYS):
        raise SchemaError(f"[map.{name}] is a table with {', '.join(KEYS)}, got {shown(given)}")
    column, levels = given.get("column", name), given.get("levels", {})
    if not isinstance(column, str) or not column:
        raise SchemaError(f"[map.{name}]: column is the site's name of it, got {shown(column)}")
    if not isinstance(levels, dict):
        raise SchemaError(f"[map.{name}]: levels map each of the study's levels to cells here, got {shown(levels)}")
    cells = tuple((str(level), _cells(name, some)) for level, some in levels.items())
    times, plus = (_number(name, key, given.get(key, default)) for key, default in (("times", 1.0), ("plus", 0.0)))
    if times <= 0:
        raise SchemaError(f"[map.{name}]: times is above 0, got {shown(times)}")
    return CodebookEntry(column, cells, times, plus)


def _cells(name: str, given: Any) -> tuple[str, ...]:
    cells = given if isinstance(given, list) else [given]
    if not cells or not all(isinstance(cell, (str, int, float)) for cell in cells):
        raise SchemaError(f"[map.{name}]: a level stands for a list of cells, got {shown(given)}")
    return tuple(str(cell) for cell in cells)


def _number(name: str, key: str, given: Any) -> float:
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not -1e12 < given < 1e12:
        raise SchemaError(f"[map.{name}]: {key} is a number, got {shown(given)}")
    return float(given)

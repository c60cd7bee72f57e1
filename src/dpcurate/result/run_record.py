"""Who made a result, when, what for and from which table."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from dpcurate._messages import one_line
from dpcurate.private.origin import TableOrigin


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """Who made a result, when (UTC), what for, and of what; all of it public.

    `table` is the name in the ledger and `number` the run's in its log; `schema_file` is the file's name
    where the schema came from one. `again` says when stored answers of that run were used once more.
    """

    by: str
    at: str
    purpose: str = ""
    table: str = ""
    number: int | None = None
    schema_file: str = ""
    settings: str = ""
    again: str | None = None
    origin: TableOrigin = field(default=TableOrigin(), repr=False, compare=False)
    """Which table it was, in this process."""

    def __str__(self) -> str:
        said = f"made by {self.by} on {self.clock(self.at)}" + (f" for: {self.purpose}" if self.purpose else "")
        said = one_line(said)
        return said + ("" if self.again is None else f"; from its stored answers again on {self.clock(self.again)}")

    def to_dict(self) -> dict[str, Any]:
        """The record as plain values, without the origin, which means something in this process alone."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "origin"}

    @staticmethod
    def clock(time: str) -> str:
        """An ISO time as people write it."""
        return time.replace("T", " ").replace("+00:00", " UTC")

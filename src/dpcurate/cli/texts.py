"""What commands share: words for the terminal, and files that must or must not exist."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

from dpcurate._messages import one_line, printable
from dpcurate.errors import FormatError


def say(text: object) -> None:
    """To the person: standard error, which leaves the pipe to the result."""
    print(printable(text), file=sys.stderr, flush=True)


def show(text: object) -> None:
    """The result: standard output."""
    print(printable(text))


def columns(rows: Iterable[tuple[str, ...]], *, right: frozenset[int] = frozenset()) -> str:
    """Rows as aligned text; columns in `right` are right-aligned."""
    table = [tuple(one_line(cell) for cell in row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = (
        "  ".join(
            cell.rjust(width) if i in right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in table
    )
    return "\n".join(line.rstrip() for line in lines)


TABLES = (
    ".csv",
    ".tsv",
    ".csv.gz",
    ".tsv.gz",
    ".parquet",
    ".xlsx",
    ".dta",
    ".sav",
    ".sas7bdat",
    ".xpt",
    ".duckdb",
    ".db",
)
KINDS: dict[str, tuple[str, ...]] = {"table": TABLES, "schema": (".toml",), "knowledge file": (".toml",)}
"""How the names of files end that may be meant; of other kinds any."""


def existing(path: str, what: str) -> str:
    """The path, if something is there; else a refusal that names the closest file of that kind beside it."""
    place = Path(path.partition("#")[0])
    if place.exists() or any(c in path for c in "*?["):  # DuckDB reads patterns such as part-*.parquet
        return path
    beside = [p.name for p in place.parent.iterdir()] if place.parent.is_dir() else []
    beside = [name for name in beside if name.lower().endswith(KINDS.get(what, ""))]
    close = get_close_matches(place.name, beside, n=1) or [b for b in beside if Path(b).stem == place.stem]
    hint = f"; did you mean {str(place.parent / close[0])!r}?" if close else ""
    raise FormatError(f"there is no {what} at {path!r}{hint}")


def some_table(path: str) -> str:
    """The path of a table that is there, or a URL, which is tried when it is opened."""
    return path if "://" in path else existing(path, "table")


def table_name(path: str) -> str:
    """A table for the terminal; of a URL only the scheme, since the rest may hold a password."""
    scheme, colon, _ = path.partition("://")
    return repr(f"{scheme}{colon}..." if colon else path)

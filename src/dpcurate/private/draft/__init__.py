"""A draft schema from a table, for its owner to check. This is the one helper that looks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpcurate.errors import OwnerError
from dpcurate.private.draft.guess import Guess, LeftOut, guess
from dpcurate.private.draft.layout import found_in
from dpcurate.private.draft.seen import see
from dpcurate.private.draft.text import the_person, written_out
from dpcurate.private.sources import open_engine
from dpcurate.private.sources.engine import first_line
from dpcurate.schema import TextFormat

__all__ = ["Draft", "draft", "draft_schema"]


@dataclass(frozen=True, slots=True)
class Draft:
    """A schema as TOML with remarks, how a text file was read, and a column of ids that repeat."""

    text: str
    read_as: str
    repeated_id: str | None


def draft(
    table: Any,
    *,
    max_levels: int = 20,
    separator: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    skip: int | None = None,
) -> str:
    """Write a draft schema (TOML text) for `table`. It LOOKS AT THE DATA: a person must check it.

    How a text file is written is found, unless it is given, and goes into the schema. Columns of dates, ids and
    free text are left out and named.
    """
    given = {"separator": separator, "encoding": encoding, "decimal": decimal}
    return draft_schema(table, max_levels=max_levels, **given, skip=skip).text


def draft_schema(
    table: Any,
    *,
    max_levels: int = 20,
    separator: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    skip: int | None = None,
) -> Draft:
    """The same as `draft`, with how a text file was read and whether a column of ids repeats."""
    layout = found_in(table, separator=separator, encoding=encoding, decimal=decimal, skip=skip)
    written = TextFormat() if layout is None else layout.format
    engine = open_engine(table, None, written)[0] if layout is None else layout.opened(table)
    every, rows = [], 0
    for name in engine.stored():
        try:
            seen = see(engine, name, max_levels)
            every.append(guess(seen, max_levels))
            rows = seen.rows
        except Exception as error:
            raise OwnerError(f"column {name!r} could not be read: {first_line(error)}") from error
    guesses = [one for one in every if isinstance(one, Guess)]
    left_out = [one for one in every if isinstance(one, LeftOut)]
    if not guesses:
        raise OwnerError("no column of the table can be used:\n" + "\n".join(f"{o.name!r}: {o.why}" for o in left_out))
    who = the_person(left_out)
    return Draft(
        written_out(guesses, left_out, written, rows),
        "" if layout is None else layout.in_words,
        None if who is None or who.rows_each <= 1 else who.name,
    )

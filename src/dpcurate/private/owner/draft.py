"""A draft schema from a table, for its owner to check. This is the one helper that looks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from dpcurate._files import toml_text
from dpcurate.errors import OwnerError
from dpcurate.private.owner.file_layout import found_in
from dpcurate.private.owner.guess import Guess, LeftOut, cap, guess, roughly
from dpcurate.private.owner.seen import names_a_person, see
from dpcurate.private.sources import open_engine
from dpcurate.private.sources.engine import first_line
from dpcurate.schema import MISSING, OWN, Categorical, Column, Numeric, TextFormat
from dpcurate.schema.column_order import REST, likely_first
from dpcurate.schema.toml import file_settings, toml_key, toml_texts

__all__ = ["Draft", "draft", "draft_schema"]


@dataclass(frozen=True, slots=True)
class Draft:
    """A schema as TOML with remarks, how a text file was read, and a column of ids that repeat.

    `columns` are the drafted ones, each with what to check; `left_out` the others, each with the reason.
    """

    text: str
    read_as: str
    repeated_id: str | None
    columns: tuple[Guess, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    file: TextFormat = field(default_factory=TextFormat)
    rows: int = 10
    """The number of rows, rounded to one digit."""


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
        tuple(guesses),
        tuple(left_out),
        written,
        roughly(rows),
    )


# --- the text of a draft --------------------------------------------------------------------------------


WARNING = """\
# DRAFT: dpcurate LOOKED AT THE DATA to write this. Check every line before use:
# a level or a bound that only one person's row holds would tell that the person is in the table.
# Put what is known beforehand (a codebook, a questionnaire, physical limits) in its place,
# add levels that could occur, then delete these four lines.
"""
SETTINGS = """\
# kind      "categorical": levels without an order; "ordinal": from low to high; "numeric": a number between bounds
# missing   an empty cell: "drop" leaves its row out, "own" keeps it as missing, a level or a number counts it as that
# outside   any other cell: "drop" leaves its row out, "clamp" counts a number beyond the bounds as the bound
"""
EXAMPLE_CAP = 5
"""Where no id was seen to repeat."""


def written_out(guesses: Sequence[Guess], left_out: Sequence[LeftOut], file: TextFormat, rows: int) -> str:
    lines = [*_rows(rows), *_order([one.column for one in guesses]), *_person(left_out), *_file(file)]
    for one in guesses:
        lines += ["", *_column(one)]
    if left_out:
        lines += ["", *(f"# left out: {_one_line(repr(one.name))}: {_one_line(one.why)}" for one in left_out)]
    return f"{WARNING}\n{SETTINGS}" + "\n".join(lines) + "\n"


def _line(setting: str, remark: str) -> str:
    return f"{setting}  # {_one_line(remark)}" if remark else setting


def _one_line(text: str) -> str:
    """No text from the table may end a remark and begin a setting."""
    return "".join(c if c.isprintable() else " " for c in text)


def _rows(rows: int) -> Iterator[str]:
    yield ""
    yield "# CONFIRM: roughly how many rows are there, as far as that is public? The number below is the table's own,"
    yield "# rounded to one digit. Replace it by one from a press release or a plan; delete the line if none is public."
    yield f"rows = {roughly(rows)}"


def _order(columns: Sequence[Column]) -> Iterator[str]:
    if REST in {column.name for column in columns}:
        return
    first = likely_first(columns)
    yield ""
    yield "# QUESTION: what comes first? No arrow points from a later group to an earlier one. Saying so costs no"
    yield "# budget and keeps arrows from pointing the wrong way. Name ALL columns that nothing else can cause: if one"
    yield '# is left out, about half of the arrows at it are wrong. "*" stands for all columns that are not named.'
    if first:
        yield "# By their names alone these may be such columns (a treatment only if it was drawn by lot):"
    else:
        yield "# By their names alone none is such a column; sex, age, region or an arm drawn by lot would be:"
    yield f'# order = [{_one_line(toml_texts(first or ("FIRST", "COLUMNS")))}, ["*"]]'


def the_person(left_out: Sequence[LeftOut]) -> LeftOut | None:
    """The column that most likely says whose row it is: one whose ids repeat, if there is one."""
    ids = [one for one in left_out if one.rows_each > 0]
    return max(ids, key=lambda one: (one.rows_each > 1, names_a_person(one.name)), default=None)


def _person(left_out: Sequence[LeftOut]) -> Iterator[str]:
    who = the_person(left_out)
    repeats = who is not None and who.rows_each > 1
    name = "patient" if who is None else who.name
    yield ""
    if repeats:
        yield f"# QUESTION: does {_one_line(repr(name))} identify persons? Its ids repeat over several rows."
        yield "# If it does, uncomment the three lines: a person is then protected, at most so many of their rows used."
        yield "# Without them one row is protected, and a person with several rows is not."
    else:
        yield "# If one person can have several rows, name the column of their ids, and a cap on rows:"
    yield "# [person]"
    yield f"# column = {_one_line(toml_text(name))}"
    yield f"# rows = {cap(who.rows_each) if who is not None and repeats else EXAMPLE_CAP}"


def _file(file: TextFormat) -> Iterator[str]:
    settings = file_settings(file)
    if settings:
        yield ""
        yield _line("[file]", "how the text file is written; found in the file")
    for name, value in settings.items():
        yield f"{name} = {value}"


def _column(guess: Guess) -> Iterator[str]:
    column = guess.column
    remark = "; ".join(part for part in (guess.about, guess.remark) if part)
    yield _line(f"[columns.{toml_key(column.name)}]", remark)
    for name, value in _settings(guess).items():
        yield f"{name} = {value}"
    if isinstance(column, Categorical) and column.groups:
        yield f"[columns.{toml_key(column.name)}.groups]"
        for name, cells in column.groups:
            if (name, cells) != (MISSING, (MISSING,)):  # which missing = 'own' adds
                yield f"{toml_key(name)} = {toml_texts(cells)}"


def _settings(guess: Guess) -> dict[str, str]:
    """The column's own, and missing = 'own' rather than a level that two settings must agree on."""
    column = guess.column
    head = {"kind": toml_text(column.kind)}
    tail = {"missing": toml_text(str(column.missing)), "outside": toml_text(column.outside)}
    if isinstance(column, Numeric):
        return head | {"low": _number(column.low), "high": _number(column.high)} | tail
    own = column.missing == MISSING
    levels = tuple(level for level in column.levels if not (own and level == MISSING))
    tail |= {"missing": toml_text(OWN)} if own else {}
    return head | ({} if column.groups else {"levels": toml_texts(levels)}) | tail


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)

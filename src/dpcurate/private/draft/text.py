"""A draft as TOML with a remark on every line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dpcurate.files import toml_text
from dpcurate.private.draft.guess import Guess, LeftOut
from dpcurate.schema import MISSING, OWN, Categorical, Numeric, TextFormat
from dpcurate.schema.toml import file_settings, toml_key, toml_texts

WARNING = """\
# DRAFT: dpcurate LOOKED AT THE DATA to write this. Check every line before use:
# a level or a bound that only one person's row holds would tell that the person is in the table.
# Put what is known beforehand (a codebook, a questionnaire, physical limits) in its place,
# add levels that could occur, then delete these four lines.
"""
_WIDTH = 34
_FILE = {
    "separator": "what stands between two cells; found in the file",
    "encoding": "how letters are written; found in the file",
    "decimal": "what numbers have before their fraction; found in the file",
    "missing": "texts that mean an empty cell; found in the file",
}


def written_out(guesses: Sequence[Guess], left_out: Sequence[LeftOut], file: TextFormat) -> str:
    lines = [*_table(left_out), *_file(file)]
    for guess in guesses:
        lines += ["", *_column(guess)]
    if left_out:
        lines += ["", *(f"# left out: {_one_line(repr(one.name))}: {_one_line(one.why)}" for one in left_out)]
    return WARNING + "\n".join(lines) + "\n"


def _line(setting: str, remark: str) -> str:
    return f"{setting:<{_WIDTH}}  # {_one_line(remark)}" if remark else setting


def _one_line(text: str) -> str:
    """No text from the table may end a remark and begin a setting."""
    return "".join(c if c.isprintable() else " " for c in text)


def _table(left_out: Sequence[LeftOut]) -> Iterator[str]:
    person = next((one.name for one in left_out if one.names_persons), "patient")
    yield ""
    yield _line("# rows = 50000", "fill in if a number near that of rows is public; 50000 is an example, not counted")
    yield ""
    yield _line("# [person]", "fill in if one person can have several rows; else one row is protected")
    yield _line(f"# column = {_one_line(toml_text(person))}", "the column that says whose row it is")
    yield _line("# rows = 5", "at most so many rows of a person are used; an example")


def _file(file: TextFormat) -> Iterator[str]:
    settings = file_settings(file)
    if settings:
        yield ""
        yield _line("[file]", "how the text file is written")
    for name, value in settings.items():
        yield _line(f"{name} = {value}", _FILE[name])


def _column(guess: Guess) -> Iterator[str]:
    column, remarks = guess.column, guess.remarks
    yield _line(f"[columns.{toml_key(column.name)}]", guess.about)
    for name, value in _settings(guess).items():
        yield _line(f"{name} = {value}", remarks.get(name, ""))
    if isinstance(column, Categorical) and column.groups:
        yield _line(f"[columns.{toml_key(column.name)}.groups]", remarks["groups"])
        for name, cells in column.groups:
            if (name, cells) != (MISSING, (MISSING,)):  # which missing = 'own' adds
                yield _line(f"{toml_key(name)} = {toml_texts(cells)}", "a level, and the cells that mean it")


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

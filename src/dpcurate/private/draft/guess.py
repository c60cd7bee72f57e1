"""From what was seen to a column of the schema, with a remark; or why there is none."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dpcurate.errors import SchemaError
from dpcurate.private.draft.bounds import outwards
from dpcurate.private.draft.names import is_id, is_row_index, may_be_row_index, names_a_person
from dpcurate.private.draft.scales import in_order
from dpcurate.private.draft.seen import Seen
from dpcurate.schema import DROP, OWN, Categorical, Column, Numeric, Ordinal, level_number, level_text, no_number

MOST_PLACES = 12
"""Different numbers that are taken for the places of a scale (0 to 10, months); more are a number."""
MOSTLY = 0.9
"""A column is a number if so many of its cells are; the others count as missing."""
FEWEST_PERSONS = 5
"""Different ids, below which even a column called subject holds levels."""
SPARSE = 4
"""Numbers of rows reach at most so many times the number of rows, where some rows were taken out."""
_DATE = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}.*|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2})(\D.*)?")
_NUMBERED = re.compile(r"[A-Za-z]{0,4}[-_ ]?\d+")
_SHORT = re.compile(r"[+-]?\d{1,4}([.,]\d)?")
_ZEROS = re.compile(r"0\d+")
_WHOLE = re.compile(r"([+-]?(0|[1-9]\d*))\.0+")
_UNIT = re.compile(r"\D{0,4}\d[\d.,]*\D{0,4}")
_THOUSANDS = re.compile(r"[+-]?\d{1,3}([,. ']\d{3})+([.,]\d*)?")


@dataclass(frozen=True, slots=True)
class Guess:
    """A drafted column, what the file says of it, and what to check."""

    column: Column
    remark: str = ""
    about: str = ""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A column that is not drafted, and why.

    `rows_each` is on how many rows each of its ids stands on average; 0 if it cannot name persons.
    """

    name: str
    why: str
    rows_each: float = 0.0


def guess(seen: Seen, max_levels: int) -> Guess | LeftOut:
    """A drafted column, or why there is none."""
    try:
        return _row_index(seen) or _person(seen) or _labelled(seen, max_levels) or _plain(seen, max_levels)
    except SchemaError as error:
        return LeftOut(seen.name, str(error))


def _row_index(seen: Seen) -> LeftOut | None:
    """Numbers or names of rows, which pandas and R write beside a table. They name no person and tell nothing."""
    each_once = seen.different == seen.rows or seen.whole == seen.rows
    named = is_row_index(seen.name) and each_once
    near = seen.numbers_rows and seen.low >= 0 and seen.high <= SPARSE * seen.rows
    if seen.rows and (named or (may_be_row_index(seen.name) and near)):
        return LeftOut(seen.name, "it is the row index that pandas or R wrote into the file")
    return None


def _person(seen: Seen) -> LeftOut | None:
    """Ids of persons, each on several rows; few of them would otherwise be levels."""
    if seen.many or not names_a_person(seen.name) or not FEWEST_PERSONS <= seen.different <= seen.rows / 2:
        return None
    numbered = seen.whole == seen.present or all(_NUMBERED.fullmatch(str(x)) for x in seen.values)
    return LeftOut(seen.name, _ID_REPEATS, seen.rows_each) if numbered else None


_ID_REPEATS = "it looks like an id that repeats over several rows; see [person] above"


def _plain(seen: Seen, max_levels: int) -> Guess | LeftOut:
    texts = [str(x) for x in seen.values]
    if seen.stored.upper().startswith(("DATE", "TIME", "INTERVAL")) or (texts and all(map(_DATE.fullmatch, texts))):
        return LeftOut(seen.name, "dates cannot be analysed: cut them into public periods (year, season) first")
    if seen.many and is_id(seen.name) and (seen.whole == seen.present or seen.numbers == 0):
        why = _ID_REPEATS if seen.rows_each > 1 else "it looks like an id; none repeats"
        return LeftOut(seen.name, why, seen.rows_each)
    if seen.many and seen.running:
        return LeftOut(seen.name, "it looks like an id or a row number: it counts the rows")
    if seen.many:
        return _number(seen) if _is_number(seen) else LeftOut(seen.name, _no_number(texts, max_levels))
    if len(seen.values) < 2:
        return LeftOut(seen.name, "fewer than two different values")
    if seen.only_numbers and not _is_scale(seen.values):
        return _number(seen)
    return _levels(seen)


def _is_scale(values: tuple[object, ...]) -> bool:
    """Whether numbers are few and short, as in a questionnaire: 1 to 5, or 0.5, 2.5, 6; measured ones are longer."""
    return len(values) == 2 or (len(values) <= MOST_PLACES and all(_SHORT.fullmatch(level_text(x)) for x in values))


def _is_number(seen: Seen) -> bool:
    codes = seen.kind == "text" and any(_ZEROS.fullmatch(str(x)) for x in seen.values)
    return seen.kind in ("whole", "number") or (seen.numbers >= MOSTLY * seen.present > 0 and not codes)


def _no_number(texts: list[str], max_levels: int) -> str:
    if any(map(_ZEROS.fullmatch, texts)):
        return "its numbers begin with zeros, so they are codes; group them: groups = {north = [...], south = [...]}"
    if all(map(_THOUSANDS.fullmatch, texts)):
        return "its numbers have marks for thousands: write 1234.5, not 1,234.5 or 1.234,5"
    if all(level_number(x.replace(",", ".")) is not None for x in texts):
        return 'its numbers have a decimal comma: store 3.5, not 3,5; of a text file, give --decimal ","'
    if all(map(_UNIT.fullmatch, texts)):
        return "its numbers carry a sign or a unit, such as % or EUR: write the number alone"
    return (
        f"more than {max_levels} different texts; names and free text cannot be analysed. If they are public codes, "
        "group them: groups = {north = [...], south = [...]}"
    )


# --- numbers ----------------------------------------------------------------------------------------------


def _number(seen: Seen) -> Guess | LeftOut:
    if seen.numbers == 0:
        return LeftOut(seen.name, "it holds no number")
    if seen.low == seen.high:
        return LeftOut(seen.name, "all its numbers are equal")
    low, high = outwards(*_ends(seen))
    gaps = seen.numbers < seen.rows
    remark = "bounds GUESSED from the rows: put the least and the greatest possible value"
    if gaps:
        strange = " or hold no number" if seen.numbers < seen.present else ""
        remark += f"; some cells are empty{strange}"
    return Guess(Numeric(seen.name, low, high, missing=OWN if gaps else DROP), remark, seen.described.about)


def _ends(seen: Seen) -> tuple[float, float]:
    """Of all numbers but the outermost; of all, where nearly all are equal."""
    usual = seen.usual_low, seen.usual_high
    return usual if usual[0] < usual[1] else (seen.low, seen.high)


# --- levels -----------------------------------------------------------------------------------------------


def _levels(seen: Seen) -> Guess | LeftOut:
    kept = [x for x in seen.values if not no_number(str(x))]
    if len(kept) < 2:
        return LeftOut(seen.name, "fewer than two different numbers")
    texts = _spelt(kept)
    values = {text: level_number(text.replace(",", ".")) for text in texts}
    scale = in_order(texts)
    if seen.only_numbers and None not in values.values():  # a CSV holds texts, whose order puts 10 before 2
        ordered = sorted(texts, key=lambda text: values[text] or 0.0)
        why = 'a scale is GUESSED: write "categorical" if they are codes of things without an order'
        return _made(seen, ordered, why if len(texts) > 2 else "")
    return _made(seen, scale or texts, _ORDER if scale else "")


_ORDER = "their order is GUESSED"


def _spelt(values: list[object]) -> list[str]:
    """Levels as texts. Whole numbers are written 1, not 1.0, which is what a missing cell makes of them elsewhere."""
    texts = list(map(level_text, values))
    if not all(_WHOLE.fullmatch(text) or "." not in text for text in texts):
        return texts
    return list(dict.fromkeys(_WHOLE.sub(r"\1", text) if _WHOLE.fullmatch(text) else text for text in texts))


def _made(seen: Seen, levels: list[str], order: str) -> Guess:
    gaps = seen.present < seen.rows
    remark = _remark("levels SEEN IN THE ROWS: put all that can occur", order, gaps)
    if is_id(seen.name):
        remark += "; its name is like that of an id: if it names persons, put it under [person] instead"
    return Guess(_column(seen.name, bool(order), gaps, levels=tuple(levels)), remark, seen.described.about)


def _column(name: str, ordered: bool, gaps: bool, **levels: object) -> Column:
    if ordered:
        return Ordinal(name, **levels)  # type: ignore[arg-type]
    return Categorical(name, **levels, missing=OWN if gaps else DROP)  # type: ignore[arg-type]


def _remark(levels: str, order: str, gaps: bool) -> str:
    dropped = "rows with an empty cell are left out unless missing names a level" if order else "some cells are empty"
    return "; ".join(part for part in (levels, order, dropped if gaps else "") if part)


def _labelled(seen: Seen, max_levels: int) -> Guess | None:
    """Levels named by the labels of a Stata or SPSS file, if every value that was seen has one."""
    labels = seen.described.labels
    if seen.many or not 2 <= len(set(labels.values())) <= max_levels or "" in labels.values():
        return None
    if not all(level_text(x) in labels for x in seen.values):
        return None
    groups: dict[str, tuple[str, ...]] = {}
    for value, label in sorted(labels.items(), key=lambda pair: (level_number(pair[0]) or 0.0, pair[0])):
        groups[label] = (*groups.get(label, ()), value)
    scale = in_order(list(groups))
    order = "the file says that they have an order" if seen.described.ordered else ""
    if scale and not order:
        order, groups = _ORDER, {label: groups[label] for label in scale}
    gaps = seen.present < seen.rows
    try:
        column = _column(seen.name, bool(order), gaps, groups=tuple(groups.items()))
    except SchemaError:  # a label that cannot name a level
        return None
    return Guess(column, _remark("levels from the labels in the file", order, gaps), seen.described.about)

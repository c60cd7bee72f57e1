"""From what was seen to a column of the schema, with a remark on every setting; or why there is none."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from dpcurate.errors import SchemaError
from dpcurate.private.draft.bounds import outwards
from dpcurate.private.draft.scales import in_order
from dpcurate.private.draft.seen import Seen
from dpcurate.schema import DROP, OWN, Categorical, Column, Numeric, Ordinal, level_number, level_text, no_number

MOST_PLACES = 12
"""Different numbers that are taken for the places of a scale (0 to 10, months); more are a number."""
MOSTLY = 0.9
"""A column is a number if so many of its cells are; the others count as missing."""
_DATE = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}.*|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2})(\D.*)?")
_ID = re.compile(r"(?i:(^|.*[\W_])(id|ids|nr|key|uuid|guid|pid)([\W_\d].*|$)|(person|patient|subject|respondent)$)")
_CAMEL_ID = re.compile(r".*[a-z](Id|ID|Nr)")
_SHORT = re.compile(r"[+-]?\d{1,4}([.,]\d)?")
_ZEROS = re.compile(r"0\d+")
_UNIT = re.compile(r"\D{0,4}\d[\d.,]*\D{0,4}")
_THOUSANDS = re.compile(r"[+-]?\d{1,3}([,. ']\d{3})+([.,]\d*)?")


@dataclass(frozen=True, slots=True)
class Guess:
    """A drafted column, and a remark on each of its settings."""

    column: Column
    remarks: Mapping[str, str] = field(default_factory=dict)
    about: str = ""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A column that is not drafted, and why."""

    name: str
    why: str
    names_persons: bool = False


def guess(seen: Seen, max_levels: int) -> Guess | LeftOut:
    """A drafted column, or why there is none."""
    try:
        return _labelled(seen, max_levels) or _plain(seen, max_levels)
    except SchemaError as error:
        return LeftOut(seen.name, str(error))


def _plain(seen: Seen, max_levels: int) -> Guess | LeftOut:
    texts = [str(x) for x in seen.values]
    if seen.stored.upper().startswith(("DATE", "TIME", "INTERVAL")) or (texts and all(map(_DATE.fullmatch, texts))):
        return LeftOut(seen.name, "dates cannot be analysed: cut them into public periods (year, season) first")
    if seen.many and _names_persons(seen):
        return LeftOut(
            seen.name, "it looks like an id; if a person can have several rows, name it under [person]", True
        )
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


def _names_persons(seen: Seen) -> bool:
    ids = seen.whole == seen.present or seen.numbers == 0
    named = bool(_ID.fullmatch(seen.name) or _CAMEL_ID.fullmatch(seen.name))
    return (ids and named) or seen.running


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
    low, high = outwards(seen.low, seen.high)
    gaps = seen.numbers < seen.rows
    strange = " (cells that are no numbers are missing too)" if seen.numbers < seen.present else ""
    kept = f'empty cells were seen{strange}: their rows stay, "drop" leaves them out'
    remarks = {
        "kind": "a number; methods that need levels also take bins = 4 here",
        "low": "GUESSED from the rows, rounded outwards: put the least possible value",
        "high": "GUESSED from the rows, rounded outwards: put the greatest possible value",
        "missing": kept if gaps else 'no empty cell was seen: "drop" leaves such a row out, "own" keeps it',
        "outside": 'a value beyond the bounds counts as the bound; "drop" leaves its row out',
    }
    return Guess(Numeric(seen.name, low, high, missing=OWN if gaps else DROP), remarks, seen.described.about)


# --- levels -----------------------------------------------------------------------------------------------


def _levels(seen: Seen) -> Guess | LeftOut:
    kept = [x for x in seen.values if not no_number(str(x))]
    if len(kept) < 2:
        return LeftOut(seen.name, "fewer than two different numbers")
    texts = [level_text(x) for x in kept]
    values = {text: level_number(text.replace(",", ".")) for text in texts}
    scale = in_order(texts)
    if seen.only_numbers and None not in values.values():  # a CSV holds texts, whose order puts 10 before 2
        ordered = sorted(texts, key=lambda text: values[text] or 0.0)
        why = 'GUESSED: numbers in order; "categorical" if they are codes of things without an order'
        return _made(seen, ordered, why if len(texts) > 2 else "")
    return _made(seen, scale or texts, "GUESSED: these words have an order" if scale else "")


def _made(seen: Seen, levels: list[str], ordered: str) -> Guess:
    gaps = seen.present < seen.rows
    remarks = _remarks(ordered, gaps) | {"levels": "SEEN IN THE ROWS: put all that can occur, from the codebook"}
    return Guess(_column(seen.name, bool(ordered), gaps, levels=tuple(levels)), remarks, seen.described.about)


def _column(name: str, ordered: bool, gaps: bool, **levels: object) -> Column:
    if ordered:
        return Ordinal(name, **levels)  # type: ignore[arg-type]
    return Categorical(name, **levels, missing=OWN if gaps else DROP)  # type: ignore[arg-type]


def _remarks(ordered: str, gaps: bool) -> dict[str, str]:
    kept = 'empty cells were seen and get a level of their own, "missing"; "drop" leaves their rows out'
    dropped = 'empty cells were seen and their rows are left out; a level, such as "3", keeps them as that level'
    none = 'no empty cell was seen: "drop" leaves such a row out'
    return {
        "kind": ordered or 'levels without an order; "ordinal" if they stand from low to high',
        "missing": (dropped if ordered else kept) if gaps else none,
        "outside": 'a cell that is no level: "drop" leaves its row out, a level counts it there',
    }


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
    ordered = "the file says that its values have an order" if seen.described.ordered else ""
    if scale and not ordered:
        ordered, groups = "GUESSED: these words have an order", {label: groups[label] for label in scale}
    gaps = seen.present < seen.rows
    try:
        column = _column(seen.name, bool(ordered), gaps, groups=tuple(groups.items()))
    except SchemaError:  # a label that cannot name a level
        return None
    remarks = _remarks(ordered, gaps) | {"groups": "from the labels in the file: a name, and the codes it stands for"}
    return Guess(column, remarks, seen.described.about)

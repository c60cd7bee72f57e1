"""From what was seen to a column of the schema, with a remark; or why there is none."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from dpcurate.errors import SchemaError
from dpcurate.private.owner.seen import Seen, is_id, is_row_index, may_be_row_index, names_a_person
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
_LETTERED = re.compile(r"[A-Za-z]{1,2}[-_]?\d{3,}")
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
    if seen.many and not seen.numbers and seen.different == seen.present and _are_ids(texts):
        return LeftOut(seen.name, "it looks like an id; none repeats", seen.rows_each)
    if seen.many and seen.running:
        return LeftOut(seen.name, "it looks like an id or a row number: it counts the rows")
    if seen.many:
        return _number(seen) if _is_number(seen) else LeftOut(seen.name, _no_number(texts, max_levels))
    if len(seen.values) < 2:
        return LeftOut(seen.name, "fewer than two different values")
    if seen.only_numbers and not _is_scale(seen.values):
        return _number(seen)
    return _levels(seen)


def _are_ids(texts: list[str]) -> bool:
    """Whether different texts look like ids: a letter or two and a number, all equally long."""
    return len(set(map(len, texts))) == 1 and all(map(_LETTERED.fullmatch, texts))


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


# --- scales whose order is known ------------------------------------------------------------------------


SCALES = (
    ("none", "very low", "low", "medium low", "moderate", "medium", "middle", "medium high", "high", "very high"),
    ("low", "lower", "lower middle", "medium", "middle", "upper middle", "high", "higher", "upper"),
    ("never", "almost never", "very rarely", "rarely", "seldom", "sometimes", "occasionally", "often", "frequently",
     "usually", "very often", "almost always", "always"),
    ("none", "never", "yearly", "monthly", "weekly", "daily"),
    ("not at all", "several days", "more than half the days", "nearly every day"),
    ("strongly disagree", "disagree strongly", "disagree", "somewhat disagree", "disagree somewhat",
     "slightly disagree", "disagree slightly", "neither agree nor disagree", "neither", "neutral", "undecided",
     "slightly agree", "agree slightly", "somewhat agree", "agree somewhat", "agree", "strongly agree",
     "agree strongly"),
    ("very dissatisfied", "dissatisfied", "somewhat dissatisfied", "neutral", "somewhat satisfied", "satisfied",
     "very satisfied", "extremely satisfied"),
    ("very unlikely", "unlikely", "neutral", "likely", "very likely"),
    ("not important", "not very important", "slightly important", "somewhat important", "moderately important",
     "important", "fairly important", "very important", "extremely important"),
    ("not happy", "not too happy", "unhappy", "pretty happy", "happy", "very happy"),
    ("very poor", "poor", "very bad", "bad", "fair", "average", "good", "very good", "excellent"),
    ("fair", "good", "very good", "premium", "ideal"),
    ("much worse", "worse", "slightly worse", "about the same", "same", "slightly better", "better", "much better"),
    ("none", "no pain", "no symptoms", "not at all", "no", "a little", "slightly", "slight", "mild", "some", "somewhat",
     "moderate", "moderately", "marked", "quite a bit", "severe", "very", "very much", "very severe", "extremely"),
    ("tiny", "xxs", "xs", "small", "s", "medium", "m", "large", "l", "xl", "huge", "xxl", "xxxl"),
    ("none", "no schooling", "preschool", "primary", "elementary", "middle school", "less than high school",
     "< high school", "< hs grad", "less than hs", "lower secondary", "secondary", "some high school", "high school",
     "hs", "hs grad", "high school graduate", "upper secondary", "vocational", "some college", "associate",
     "associate's degree", "college", "college grad", "college graduate", "bachelor", "bachelors",
     "bachelor's degree", "university", "tertiary", "master", "masters", "master's degree", "advanced degree",
     "graduate", "graduate school", "doctorate", "phd"),
    ("first", "second", "third", "fourth", "fifth"),
    ("i", "ii", "iii", "iv", "v"),
)  # fmt: skip
_LISTED = re.compile(r"\(?[0-9a-z][.):]\s*(?=\S)")
"""A number before an answer, as in '2. Good'."""
_COUNTED = re.compile(r"(?:(?:stage|grade|level|class|degree|quartile|quintile|decile|tertile)\s*)")
_NTH = re.compile(r"(?<=\d)(?:st|nd|rd|th)\b")
_MONEY = r"[$€£]?\s*"
_BAND_NUMBER = rf"{_MONEY}(-?\d+(?:,\d{{3}})+|-?\d+(?:[.,]\d+)?)\s*(k(?![a-z]))?"
_BELOW, _ABOVE = r"<=?|≤|under|below|up to|less than|at most|fewer than", r">=?|≥|over|above|more than|at least"
_MORE = r"\+|plus|(?:and|or|&) (?:over|more|above|older|up|greater)"
_BAND_UNIT = r"([^\W\d].*?)?"
_BAND = re.compile(
    rf"[\[(]?\s*(?:({_BELOW})\s*|({_ABOVE})\s*)?{_BAND_NUMBER}\s*(?:(?:-|–|—|to\b|,|;)\s*{_BAND_NUMBER})?\s*"
    rf"({_MORE})?\s*{_BAND_UNIT}\s*({_MORE}|(?:and|or|&) (?:under|below|less|younger))?\s*[\])]?"
)


def in_order(levels: Sequence[str]) -> list[str] | None:
    """Three levels or more from low to high, if they are words of one scale or bands of a number such as 18-24."""
    words = {" ".join(level.lower().replace("_", " ").split()): level for level in levels}
    if len(words) < max(3, len(levels)):
        return None
    return _by_scale(words) or _by_number(words)


def _by_scale(words: dict[str, str]) -> list[str] | None:
    listed = all(map(_LISTED.match, words))
    plain = {_LISTED.sub("", word, count=1) if listed else word: level for word, level in words.items()}
    for prefix in (re.compile(""), _COUNTED):
        bare = {prefix.sub("", word, count=1): level for word, level in plain.items()}
        for scale in SCALES:
            if len(bare) == len(words) and set(bare) <= set(scale):
                return [bare[word] for word in scale if word in bare]
    return None


def _by_number(words: dict[str, str]) -> list[str] | None:
    """By where bands of one unit begin: 9-11 years, 12 years, 13 years and over."""
    bands = {word: _BAND.fullmatch(_NTH.sub("", _COUNTED.sub("", word, count=1))) for word in words}
    found = {word: band for word, band in bands.items() if band is not None}
    bare = sum(word == band[3] for word, band in found.items())
    units = {(band[8] or "").rstrip("s.") for band in found.values()} - {""}
    if len(found) < len(words) or bare == len(words) or len(units) > 1:
        return None
    places = {word: _place(band) for word, band in found.items()}
    if any(band[5] and _number_of(band[5]) < _number_of(band[3]) for band in found.values() if not band[4]):  # a score
        return None
    if len(set(places.values())) < len(places):
        return None
    return [words[word] for word in sorted(words, key=lambda word: places[word])]


def _place(band: re.Match[str]) -> tuple[float, int]:
    """Where a band begins; one that is open below comes before one that begins there."""
    below = bool(band[1]) or (band[9] or "").endswith(("under", "below", "less", "younger"))
    above = bool(band[2]) or bool(band[7])
    return _number_of(band[3]) * (1000 if band[4] else 1), -1 if below else int(above)


def _number_of(digits: str) -> float:
    return float(re.sub(r",(?=\d{3})", "", digits).replace(",", "."))


# --- public bounds, caps and counts ---------------------------------------------------------------------


NEAR_NOTHING = 0.3
"""A least value below this part of the greatest is rounded to 0."""

CAPS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 75, 100)
"""Suggested caps on the rows of a person."""


def outwards(low: float, high: float) -> tuple[float, float]:
    """Bounds around two numbers: 18 and 93 become 0 and 100, 1931 and 2004 become 1930 and 2010."""
    if low < 0 < high:
        bounds = -_above(-low), _above(high)
    elif low >= 0 and low <= NEAR_NOTHING * high:
        bounds = 0.0, _above(high)
    elif high <= 0 and high >= NEAR_NOTHING * low:
        bounds = -_above(-low), 0.0
    else:
        exponent = _exponent(high - low)
        step = _power(1, exponent)
        bounds = _power(math.floor(low / step), exponent), _power(math.ceil(high / step), exponent)
    fits = bounds[0] <= low and high <= bounds[1] and math.isfinite(bounds[1] - bounds[0])
    return bounds if fits else (low, high)


def roughly(count: int) -> int:
    """A number of rows to one digit, so that one row more or less hardly ever changes it; at least 10."""
    digit, _, zeros = f"{count:.0e}".partition("e")
    return max(10, int(f"{digit}{'0' * int(zeros)}"))


def cap(mean: float) -> int:
    """The next number above a mean that a cap on rows would be."""
    return next((n for n in CAPS if n >= mean), CAPS[-1])


def _above(value: float) -> float:
    """The next of 1, 2, 3, 5 times a power of ten."""
    exponent = _exponent(value)
    return next(x for x in (_power(k, exponent) for k in (1, 2, 3, 5, 10, 100)) if x >= value)


def _exponent(value: float) -> int:
    return math.floor(math.log10(value))


def _power(times: int, exponent: int) -> float:
    """Without the noise of a product: 3e-1, not 0.30000000000000004."""
    return float(f"{times}e{exponent}")

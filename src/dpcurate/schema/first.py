"""Columns that no other column is likely to cause, judged by their names and kinds alone. No row is looked at."""

from __future__ import annotations

import re
from collections.abc import Iterable

from dpcurate.schema.columns import Column
from dpcurate.schema.order import REST

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_ANY_KIND = _set(
    "age ages agegp agegrp agegroup agecat yob dob born birthday birthdate birthyear year years yr month quarter "
    "season date day weekday dayofweek wave cohort region province district county country continent city zip postcode"
)
"""Times, places and ages."""
_LEVELS = _set(
    "sex gender female male race ethnicity ethnic ethn eth hispanic hisp black white nationality native weather arm "
    "trt treatment treated treat randomized randomised randomization randomisation assigned assignment placebo id"
)
"""What a person is born with, the weather, what is drawn by lot, and ids of few things: levels, or 0 and 1."""
_BIRTH = _set("birth date day year month quarter place country region cohort of")
"""Words beside which birth is a time or a place, and not a weight."""
_WHOLE_NAMES = _set("state group site centre center hospital holiday workingday")
_LATER = _set(
    "death died diagnosis diagnosed onset first last start started stop stopped quit marriage married follow followup "
    "since end education educ school schooling experience exper survival smoking smoke drink work working spouse wife "
    "husband mother father child children kids"
)
"""With one of these a name is about something that happened later, such as age_at_onset, or about somebody else."""


def likely_first(columns: Iterable[Column]) -> tuple[str, ...]:
    """Names of columns that may come before all others, in the schema's order."""
    return tuple(column.name for column in columns if _comes_first(column))


def example_order(columns: Iterable[Column]) -> str:
    """An order as it is typed, with the columns that may come first."""
    names = [name for name in likely_first(columns) if name == name.strip() and not set(name) & set(",|'")]
    return f"{', '.join(names) or 'FIRST, COLUMNS'} | {REST}"


def _comes_first(column: Column) -> bool:
    words = [word.lower() for word in _WORDS.findall(column.name)]
    if not words or _LATER.intersection(words):
        return False
    few = column.kind != "numeric" or column.has_levels
    if "birth" in words:
        return _BIRTH.issuperset(words)
    if len(words) == 1 and words[0] in _WHOLE_NAMES:
        return few
    if "years" in words and len(words) > 1:  # a duration
        return False
    return bool(_ANY_KIND.intersection(words)) or (few and bool(_LEVELS.intersection(words)))

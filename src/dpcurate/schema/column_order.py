"""What comes first: groups of columns from early to late, which nobody has to look at rows for.

A column of a later group never causes one of an earlier group. `"*"` stands for all columns that no group names;
without it, such columns may cause anything and be caused by anything.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from dpcurate._messages import did_you_mean, shown
from dpcurate.errors import SchemaError
from dpcurate.schema.columns import Column

REST = "*"
"""All columns that no group names."""
Order = tuple[tuple[str, ...], ...]


def checked_order(given: Any, names: Sequence[str]) -> Order:
    """Groups of a schema's columns; a mistake is told with the nearest name."""
    groups = _groups(given)
    told = [name for group in groups for name in group]
    for name in told:
        if name != REST and name not in names:
            raise _refused(f"names an unknown column {shown(name)}{did_you_mean(name, names)}")
    repeated = [name for name, times in Counter(told).items() if times > 1]
    if repeated:
        raise _refused(f"names {shown(repeated[0])} more than once; a column is in one group")
    if groups and REST in names:
        raise _refused('cannot be used with a column called "*"; give tiers in a knowledge file')
    if len(groups) == 1:
        raise _refused('has one group, which says nothing: add ["*"] after it if all other columns come later')
    return groups


def tiers_of(order: Order, names: Sequence[str]) -> Order:
    """The groups, with the columns that "*" stands for."""
    named = {name for group in order for name in group}
    rest = tuple(name for name in names if name not in named)
    groups = []
    for group in order:
        columns: list[str] = []
        for name in group:
            columns += rest if name == REST else (name,)
        if columns:
            groups.append(tuple(columns))
    return tuple(groups)


def parsed_order(text: str) -> Order:
    """An order as it is typed: commas within a group, bars between groups, as in 'sex, age | smoker | *'."""
    if not text.strip():
        return ()
    groups = tuple(tuple(name.strip() for name in group.split(",")) for group in text.split("|"))
    if not all(name for group in groups for name in group):
        raise _refused(f"is written like 'sex, age | smoker | *', with a name in every place; got {shown(text)}")
    return groups


def _groups(given: Any) -> Order:
    plain = isinstance(given, Iterable) and not isinstance(given, (str, bytes))
    groups = list(given) if plain else []
    if not plain or any(isinstance(group, (str, bytes)) or not isinstance(group, Iterable) for group in groups):
        raise _refused(f'must be a list of lists of columns, such as [["sex", "age"], ["*"]], got {shown(given)}')
    found = tuple(tuple(group) for group in groups)
    if not all(isinstance(name, str) for group in found for name in group) or not all(found):
        raise _refused(f"must have the name of a column in every place, got {shown(given)}")
    return found


def _refused(why: str) -> SchemaError:
    return SchemaError(f"order {why}", setting="order")


# --- columns that may come first ------------------------------------------------------------------------


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
    if "years" in words and len(words) > 1 and "age" not in words:  # a duration
        return False
    return bool(_ANY_KIND.intersection(words)) or (few and bool(_LEVELS.intersection(words)))

"""What a column's name says of ids: the person's, and numbers of rows that programs write beside a table."""

from __future__ import annotations

import re

_WHO = (
    "person|patient|subject|respondent|participant|individual|student|pupil|customer|client|employee|worker|member|user"
)
_PERSON = re.compile(
    rf"(?i:({_WHO}|subj|id|pid|id_?(code|num|no|nr)|caseid|(case|hh|household|merge|indiv|resp|cust|subj|pat|{_WHO})_?id)s?)"
)
_ID = re.compile(r"(?i:(^|.*[\W_])(id|ids|nr|key|uuid|guid|pid)([\W_\d].*|$))")
_CAMEL_ID = re.compile(r".*[a-z](Id|ID|Nr)")
_INDEX = re.compile(r"(?i:|unnamed: ?\d+(\.\d+)*|__index_level_\d+__|row[._ ]?names?|\.\.\.1)")
"""Names that a program gave to the numbers or names of rows (pandas, R), or none."""
_PERHAPS_INDEX = re.compile(r"(?i:x|x1|c0|column0|index|level_0|obs|row|row[._ ]?(id|nr|no|num|number|index))")


def names_a_person(name: str) -> bool:
    """Whether a name is that of a person's id, such as subject or patient_id."""
    return bool(_PERSON.fullmatch(name))


def is_id(name: str) -> bool:
    """Whether a name is that of an id of whatever kind."""
    return names_a_person(name) or bool(_ID.fullmatch(name) or _CAMEL_ID.fullmatch(name))


def is_row_index(name: str) -> bool:
    """Whether a name is one that programs give to a row's number."""
    return bool(_INDEX.fullmatch(name))


def may_be_row_index(name: str) -> bool:
    """Whether numbers of rows often have the name, and other columns too."""
    return bool(_PERHAPS_INDEX.fullmatch(name))

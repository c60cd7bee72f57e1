"""Cards of columns: what was drafted, what a person has typed, and the schema that follows. No row is read here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from dpcurate import Categorical, Draft, Numeric, Ordinal, Person, Schema, SchemaError, TextFormat
from dpcurate.errors import QueryError
from dpcurate.schema import Column

LEVELS, ORDERED, NUMBER, PERSON, OUT = "levels", "ordered", "number", "person", "out"
USES = {
    LEVELS: "categories",
    ORDERED: "ordered categories",
    NUMBER: "a number",
    PERSON: "says which person a row is about",
    OUT: "leave it out",
}
"""What a column can be used as, in words."""
DROP, OWN, AS, CLAMP = "drop", "own", "as", "clamp"
EDITED = (
    "use", "levels", "low", "high", "bins", "missing", "missing_as", "outside", "outside_as", "cap",
)  # fmt: skip
"""What a person can type on a card."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A column as it stands on the page: texts as typed, whether they make sense or not."""

    name: str
    use: str = OUT
    levels: tuple[str, ...] = ()
    groups: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Cells that stand for each level, where a file has codes; they follow the names of the levels."""
    low: str = ""
    high: str = ""
    bins: str = ""
    missing: str = DROP
    missing_as: str = ""
    outside: str = DROP
    outside_as: str = ""
    cap: str = "1"
    remark: str = ""
    """What to check, as the draft says it."""
    guessed: bool = False
    confirmed: bool = False

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Card:
        """From a project's file."""
        values = {one.name: data[one.name] for one in fields(cls) if one.name in data}
        values["levels"] = tuple(map(str, values.get("levels", ())))
        values["groups"] = tuple((str(name), tuple(map(str, cells))) for name, cells in values.get("groups", ()))
        return cls(**values)

    @property
    def used(self) -> bool:
        """Whether it is a column of the graph."""
        return self.use in (LEVELS, ORDERED, NUMBER)

    @property
    def waits(self) -> bool:
        """Whether it was guessed from the rows and nobody has confirmed it."""
        return self.guessed and not self.confirmed and self.used

    def edited(self, typed: Mapping[str, Any]) -> Card:
        """With what a person has typed; whoever changes a card has looked at it."""
        values = {key: value for key, value in typed.items() if key in EDITED}
        changed = replace(self, **values)
        return changed if changed == self else replace(changed, confirmed=True)

    def column(self) -> Column:
        """The column of the schema.

        Raises:
            SchemaError: what was typed makes no sense.
        """
        if self.use == NUMBER:
            bins = _whole("bins", self.bins) if self.bins.strip() else None
            missing = _number("empty cells count as", self.missing_as) if self.missing == AS else self.missing
            outside = CLAMP if self.outside == AS else self.outside
            ends = _number("the least possible value", self.low), _number("the greatest possible value", self.high)
            return Numeric(self.name, *ends, bins=bins, missing=missing, outside=outside)
        if self.use == ORDERED and self.missing == OWN:
            raise SchemaError(
                "an order has no place for missing cells: leave their rows out, count them as one of the levels, or "
                "use plain categories"
            )
        missing = self.missing_as if self.missing == AS else self.missing
        outside = self.outside_as if self.outside == AS else DROP
        make = Ordinal if self.use == ORDERED else Categorical
        return make(self.name, missing=missing, outside=outside, **self._values())

    def _values(self) -> dict[str, Any]:
        groups = dict(self.groups)
        if groups and set(groups) == set(self.levels):
            return {"groups": tuple((name, groups[name]) for name in self.levels)}
        return {"levels": self.levels}


def _number(what: str, text: str) -> float:
    try:
        return float(text.strip().replace(",", "."))
    except ValueError:
        raise SchemaError(f"{what} must be a number, not {text!r}" if text.strip() else f"{what} is empty") from None


def _whole(what: str, text: str) -> int:
    try:
        return int(text.strip().replace(",", ""))
    except ValueError:
        raise SchemaError(f"{what} must be a whole number, not {text!r}") from None


# --- from a draft, or from a schema -----------------------------------------------------------------------------------


def drafted(draft: Draft) -> tuple[Card, ...]:
    """The cards of a draft: guessed columns first, then those that are left out."""
    cards = [_card(guess.column, said(guess.about, guess.remark), guessed=True) for guess in draft.columns]
    for out in draft.left_out:
        person = out.name == draft.repeated_id
        cap = str(max(1, round(out.rows_each))) if out.rows_each else "1"
        cards.append(Card(name=out.name, use=PERSON if person else OUT, remark=said(out.why), cap=cap))
    return tuple(cards)


def known(schema: Schema) -> tuple[Card, ...]:
    """The cards of a schema that somebody has written: nothing is guessed."""
    cards = [_card(column, "", guessed=False) for column in schema.columns]
    if schema.person is not None:
        cards.append(Card(name=schema.person.column, use=PERSON, cap=str(schema.person.rows)))
    return tuple(cards)


def _card(column: Column, remark: str, *, guessed: bool) -> Card:
    if isinstance(column, Numeric):
        rule = {"missing": str(column.missing)}
        if isinstance(column.missing, float):
            rule = {"missing": AS, "missing_as": _text(column.missing)}
        return Card.of(
            {"name": column.name, "remark": remark, "guessed": guessed, "use": NUMBER, "low": _text(column.low),
             "high": _text(column.high), "bins": str(column.bins or ""), "outside": column.outside, **rule}
        )  # fmt: skip
    own = column.missing == "missing" and column.kind == "categorical"
    levels = tuple(level for level in column.levels if not (own and level == "missing"))
    groups = tuple((name, cells) for name, cells in column.groups if name in levels)
    rules = {"missing": OWN} if own else _rule("missing", column.missing)
    use = ORDERED if isinstance(column, Ordinal) else LEVELS
    start = Card(name=column.name, remark=remark, guessed=guessed)
    return replace(start, use=use, levels=levels, groups=groups, **rules, **_rule("outside", column.outside))


def _rule(name: str, rule: str) -> dict[str, Any]:
    return {name: DROP} if rule == DROP else {name: AS, f"{name}_as": rule}


def _text(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


_PHRASES = {
    "levels SEEN IN THE ROWS: put all that can occur": "These values were seen in the rows. Add all that can occur.",
    "bounds GUESSED from the rows: put the least and the greatest possible value": "The bounds were guessed from the "
    "rows. Put the least and the greatest possible value.",
    "see [person] above": "does it say which person a row is about?",
    "rows with an empty cell are left out unless missing names a level": "Rows with an empty cell are left out",
    "their order is GUESSED": "Their order was guessed",
    'a scale is GUESSED: write "categorical" if they': "A scale was guessed. Choose plain categories if they",
    "if it names persons, put it under [person] instead": "if it names persons, choose that use below",
    "name the column under [person]": "choose that use on its card",
    "; group them: groups = {north = [...], south = [...]}": "",
    "If they are public codes, group them: groups = {north = [...], south = [...]}": "Group them in the file first",
}
"""A draft is written for a file; these are its sentences for a card."""


def said(*parts: str) -> str:
    """Remarks of a draft or a check as sentences of a card."""
    text = "; ".join(part for part in parts if part)
    for phrase, words in _PHRASES.items():
        text = text.replace(phrase, words)
    sentences = [part.strip() for part in text.replace(".; ", "; ").split("; ")]
    return " ".join(f"{one[0].upper()}{one[1:]}{'' if one[-1] in '.?!' else '.'}" for one in sentences if one)


# --- to a schema --------------------------------------------------------------------------------------------------


def schema_of(cards: Sequence[Card], rows: str, file: Mapping[str, Any]) -> tuple[Schema | None, dict[str, str]]:
    """The schema, or None and what is wrong by the name of the column (the table's own by "")."""
    problems: dict[str, str] = {}
    columns = []
    for card in cards:
        if card.used:
            try:
                columns.append(card.column())
            except (SchemaError, QueryError) as error:
                problems[card.name] = _without_name(str(error), card.name)
    persons = [card for card in cards if card.use == PERSON]
    for card in persons[1:]:
        problems[card.name] = f"only one column can say which person a row is about, and {persons[0].name} does"
    if len(columns) + len(problems) < 2:
        problems[""] = "a graph needs at least two columns"
    try:
        person = Person(persons[0].name, _whole("rows of a person", persons[0].cap)) if persons else None
        number = _whole("the number of rows", rows) if rows.strip() else None
        if problems:
            return None, problems
        return Schema(tuple(columns), number, person, _format(file)), problems
    except SchemaError as error:
        problems.setdefault("", str(error))
        return None, problems


def _format(file: Mapping[str, Any]) -> TextFormat:
    values: dict[str, Any] = {key: tuple(x) if isinstance(x, list) else x for key, x in file.items()}
    return TextFormat(**values)


def _without_name(message: str, name: str) -> str:
    """The card has the name at its top."""
    return message.removeprefix(f"column {name!r}").removeprefix(":").strip()

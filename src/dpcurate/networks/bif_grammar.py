"""The grammar of BIF: text to declared variables and probability blocks, not yet fitted together."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NoReturn

from dpcurate.networks.network import TOLERANCE
from dpcurate.networks.tokens import END, Scanner, Token, show
from dpcurate.schema import MAX_LEVELS

UNNAMED = "unknown"
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_LONGEST_NUMBER = 64


@dataclass(slots=True)
class Values:
    """Numbers after `table`, `default` or a row's labels."""

    at: int
    labels: list[Token]
    numbers: list[float]


@dataclass(slots=True)
class Declaration:
    """A variable block."""

    at: int
    levels: tuple[str, ...] = ()
    places: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Block:
    """A probability block."""

    at: int
    parents: list[Token]
    rows: list[Values] = field(default_factory=list)
    table: Values | None = None
    default: Values | None = None


class Grammar:
    """Recursive descent, one method per piece; what was read is in `declared` and `blocks`."""

    def __init__(self, text: str) -> None:
        self._scan = Scanner(text)
        self.declared: dict[str, Declaration] = {}
        self.blocks: dict[str, Block] = {}
        self.name = self._network_block()
        while self._scan.token.kind != END:
            token = self._scan.take()
            if token.is_word("variable"):
                self._variable_block()
            elif token.is_word("probability"):
                self._probability_block()
            else:
                self._unexpected(token, "'variable' or 'probability'")
        if not self.declared:
            self._unexpected(self._scan.token, "'variable'")

    def fail(self, message: str, at: int) -> NoReturn:
        """Refuse the text at a place."""
        self._scan.fail(message, at)

    def _network_block(self) -> str:
        self._word("network")
        name = self._name("the network's name") if self._scan.token.is_name else None
        self._mark("{")
        while not self._closing("}"):
            self._property(self._scan.token)
        return name.text if name else UNNAMED

    def _variable_block(self) -> None:
        name = self._name("a variable's name")
        if name.text in self.declared:
            self.fail(f"variable {show(name.text)} is declared twice", name.at)
        found = self.declared[name.text] = Declaration(name.at)
        self._mark("{")
        while not self._closing("}"):
            if self._scan.token.is_word("type"):
                self._type(name.text, found)
            else:
                self._property(self._scan.token)
        if not found.levels:
            self.fail(f"variable {show(name.text)} has no 'type discrete [...] {{...}};'", name.at)

    def _type(self, name: str, found: Declaration) -> None:
        at = self._scan.take().at
        if found.levels:
            self.fail(f"variable {show(name)} has a second type", at)
        self._word("discrete")
        self._mark("[")
        count = self._name("the number of levels")
        self._mark("]")
        self._mark("{")
        levels = self._names("}", "a level")
        self._mark(";")
        self._check_levels(name, count, levels)
        found.levels = tuple(x.text for x in levels)
        found.places = {level: i for i, level in enumerate(found.levels)}

    def _check_levels(self, name: str, count: Token, levels: list[Token]) -> None:
        if not re.fullmatch(r"[0-9]{1,9}", count.text) or not 1 <= int(count.text) <= MAX_LEVELS:
            self.fail(f"the number of levels must be 1 to {MAX_LEVELS}, got {show(count.text)}", count.at)
        if int(count.text) != len(levels):
            said = f"variable {show(name)} says {int(count.text)} levels but lists {len(levels)}"
            self.fail(said, count.at)
        seen: set[str] = set()
        for level in levels:
            if level.text in seen:
                self.fail(f"variable {show(name)} lists the level {show(level.text)} twice", level.at)
            seen.add(level.text)

    def _probability_block(self) -> None:
        self._mark("(")
        name = self._name("a variable's name")
        if name.text in self.blocks:
            self.fail(f"variable {show(name.text)} has two probability blocks", name.at)
        if self._scan.token.is_mark("|"):
            self._scan.take()
        found = self.blocks[name.text] = Block(name.at, self._names(")", "a parent"))
        self._mark("{")
        while not self._closing("}"):
            self._statement(found)

    def _statement(self, block: Block) -> None:
        token = self._scan.token
        if token.is_mark("("):
            self._scan.take()
            block.rows.append(Values(token.at, self._names(")", "a level"), self._numbers()))
        elif token.is_word("table") or token.is_word("default"):
            self._scan.take()
            if getattr(block, token.text) is not None:
                self.fail(f"a second '{token.text}' in one probability block", token.at)
            setattr(block, token.text, Values(token.at, [], self._numbers()))
        else:
            self._property(token)

    def _property(self, token: Token) -> None:
        if not token.is_word("property"):
            self._unexpected(token, "a statement or '}'")
        self._scan.skip_property()

    def _numbers(self) -> list[float]:
        numbers = []
        while not (token := self._scan.take()).is_mark(";"):
            if len(token.text) > _LONGEST_NUMBER or not _NUMBER.fullmatch(token.text):
                self._unexpected(token, "a probability or ';'")
            number = float(token.text)
            if not 0 <= number <= 1 + TOLERANCE:
                self.fail(f"{token.text} is not a probability", token.at)
            numbers.append(number)
        return numbers

    def _names(self, closing: str, what: str) -> list[Token]:
        names = []
        while not self._closing(closing):
            names.append(self._name(f"{what} or '{closing}'"))
        return names

    def _name(self, what: str) -> Token:
        token = self._scan.take()
        if not token.is_name:
            self._unexpected(token, what)
        if not token.text:
            self.fail(f"expected {what}, found an empty name", token.at)
        return token

    def _word(self, text: str) -> None:
        token = self._scan.take()
        if not token.is_word(text):
            self._unexpected(token, f"'{text}'")

    def _mark(self, text: str) -> None:
        token = self._scan.take()
        if not token.is_mark(text):
            self._unexpected(token, f"'{text}'")

    def _closing(self, text: str) -> bool:
        if not self._scan.token.is_mark(text):
            return False
        self._scan.take()
        return True

    def _unexpected(self, token: Token, wanted: str) -> NoReturn:
        found = "the file ends here" if token.kind == END else f"found {show(token.text)}"
        self.fail(f"expected {wanted}, {found}", token.at)

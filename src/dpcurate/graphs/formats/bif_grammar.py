"""The grammar of BIF: text to declared variables and probability blocks, not yet fitted together."""

from __future__ import annotations

import math
import re
from array import array
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import NoReturn

from dpcurate._messages import did_you_mean
from dpcurate.graphs.formats.bif_tokens import END, BifToken, Scanner, show
from dpcurate.graphs.formats.draft import MAX_NODES
from dpcurate.schema import MAX_LEVELS

UNNAMED = "unknown"
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_LONGEST_NUMBER = 64
MAX_CELLS = 1 << 21
"""Most probabilities in a whole network, four times those of the largest public one."""
MAX_NAMES = 1 << 18
"""Most names of levels and parents, repetitions counted."""


@dataclass(slots=True)
class Values:
    """Numbers after `table`, `default` or a row's labels."""

    at: int
    labels: list[BifToken]
    numbers: array[float]


@dataclass(slots=True)
class Declaration:
    """A variable block."""

    at: int
    levels: tuple[str, ...] = ()
    places: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class ProbabilityBlock:
    """A probability block."""

    at: int
    parents: list[BifToken]
    rows: list[Values] = field(default_factory=list)
    table: Values | None = None
    default: Values | None = None


class Grammar:
    """Recursive descent, one method per piece; what was read is in `declared` and `blocks`."""

    def __init__(self, text: str) -> None:
        self._scan = Scanner(text)
        self._names_left, self._numbers_left = MAX_NAMES, MAX_CELLS
        self.declared: dict[str, Declaration] = {}
        self.blocks: dict[str, ProbabilityBlock] = {}
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
        self._scan.fail(message, at)

    def check_structure(self) -> None:
        """Refuse undeclared or repeated parents, variables without a block, and cycles."""
        for known, block in self.blocks.items():
            self._require_declared(known, block.at)
            self._check_parents(known, block)
        for known, declaration in self.declared.items():
            if known not in self.blocks:
                self.fail(f"variable {show(known)} has no probability block", declaration.at)
        self._check_acyclic()

    def _require_declared(self, name: str, at: int) -> None:
        if name not in self.declared:
            near = did_you_mean(name[:80], tuple(self.declared))
            self.fail(f"variable {show(name)} is not declared{near}", at)

    def _check_parents(self, name: str, block: ProbabilityBlock) -> None:
        seen = {name}
        for parent in block.parents:
            self._require_declared(parent.text, parent.at)
            if parent.text in seen:
                self.fail(f"{show(parent.text)} is named twice in the block of {show(name)}", parent.at)
            seen.add(parent.text)

    def _check_acyclic(self) -> None:
        graph = {name: [p.text for p in block.parents] for name, block in self.blocks.items()}
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            cycle = error.args[1]
            text = " -> ".join(show(x) for x in cycle[:8]) + (" -> ..." if len(cycle) > 8 else "")
            self.fail(f"the parents form a cycle: {text}", max(self.blocks[x].at for x in cycle))

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
        if len(self.declared) == MAX_NODES:
            self.fail(f"more than {MAX_NODES} variables, the limit", name.at)
        declaration = self.declared[name.text] = Declaration(name.at)
        self._mark("{")
        while not self._closing("}"):
            if self._scan.token.is_word("type"):
                self._type(name.text, declaration)
            else:
                self._property(self._scan.token)
        if not declaration.levels:
            self.fail(f"variable {show(name.text)} has no 'type discrete [...] {{...}};'", name.at)

    def _type(self, name: str, declaration: Declaration) -> None:
        at = self._scan.take().at
        if declaration.levels:
            self.fail(f"variable {show(name)} has a second type", at)
        self._word("discrete")
        self._mark("[")
        count = self._name("the number of levels")
        self._mark("]")
        self._mark("{")
        levels = self._names("}", "a level")
        self._mark(";")
        self._check_levels(name, count, levels)
        declaration.levels = tuple(x.text for x in levels)
        declaration.places = {level: i for i, level in enumerate(declaration.levels)}

    def _check_levels(self, name: str, count: BifToken, levels: list[BifToken]) -> None:
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
        block = self.blocks[name.text] = ProbabilityBlock(name.at, self._names(")", "a parent"))
        self._mark("{")
        while not self._closing("}"):
            self._statement(block)

    def _statement(self, block: ProbabilityBlock) -> None:
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

    def _property(self, token: BifToken) -> None:
        if not token.is_word("property"):
            self._unexpected(token, "a statement or '}'")
        self._scan.skip_property()

    def _numbers(self) -> array[float]:
        numbers = array("d")
        while not (token := self._scan.take()).is_mark(";"):
            if len(token.text) > _LONGEST_NUMBER or not _NUMBER.fullmatch(token.text):
                self._unexpected(token, "a probability or ';'")
            number = float(token.text)
            if not 0 <= number < math.inf:
                self.fail(f"{token.text} is not a probability", token.at)
            numbers.append(number)
            if len(numbers) > self._numbers_left:
                self.fail(f"more than {MAX_CELLS} probabilities, the limit", token.at)
        self._numbers_left -= len(numbers)
        return numbers

    def _names(self, closing: str, what: str) -> list[BifToken]:
        names = []
        while not self._closing(closing):
            names.append(self._name(f"{what} or '{closing}'"))
            if len(names) > self._names_left:
                self.fail(f"more than {MAX_NAMES} names of levels and parents, the limit", names[-1].at)
        self._names_left -= len(names)
        return names

    def _name(self, what: str) -> BifToken:
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

    def _unexpected(self, token: BifToken, wanted: str) -> NoReturn:
        found = "the file ends here" if token.kind == END else f"found {show(token.text)}"
        self.fail(f"expected {wanted}, {found}", token.at)

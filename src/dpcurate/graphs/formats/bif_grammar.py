"""BIF: the words, the grammar, and the structure of a Bayesian network; `dpcurate.networks` reads its tables."""

from __future__ import annotations

import math
import re
from array import array
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple, NoReturn

from dpcurate._files import check_length, line_at
from dpcurate._messages import did_you_mean
from dpcurate.errors import FormatError
from dpcurate.graphs.formats.graph_draft import MAX_NODES, NO_PROBABILITIES, EdgeProbabilities, GraphDraft
from dpcurate.graphs.graph import Dag, Graph
from dpcurate.schema import MAX_LEVELS

WORD, QUOTED, MARK, END = "word", "quoted", "mark", "end"

# Possessive (++), so that a text without an end is refused in one pass; but not where a part can fail halfway: Python
# 3.11.2 would go on from there.
_BARE = r'(?:[^\s,{}\[\]();|"/\x00]++|/(?![/*]))+'
_TOKEN = re.compile(rf'(?P<word>{_BARE})|"(?P<quoted>[^"\n\x00]*)"|(?P<mark>[{{}}\[\]();|])|(?P<end>\Z)')
_SOLID = re.compile(r"[^\s,]")  # a comma is a blank in BIF
_PROPERTY = re.compile(r'(?:"[^"]*"|[^";])*+;')
_BARE_NAME = re.compile(_BARE)
_LONGEST = 60


class BifToken(NamedTuple):
    """A word, a quoted name, a mark or the end."""

    kind: str
    text: str
    at: int

    @property
    def is_name(self) -> bool:
        """Whether it can name something."""
        return self.kind in (WORD, QUOTED)

    def is_word(self, text: str) -> bool:
        """Whether it is this keyword, not in quotes."""
        return self.kind == WORD and self.text == text

    def is_mark(self, text: str) -> bool:
        """Whether it is this mark."""
        return self.kind == MARK and self.text == text


class Scanner:
    """Reads tokens from left to right; `token` is the next one."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._after = 0
        self.token: BifToken = self._scan()

    def take(self) -> BifToken:
        """The next token; moves on."""
        token = self.token
        if token.kind != END:
            self.token = self._scan()
        return token

    def skip_property(self) -> None:
        """Move past `property ...;`, whose text is free except that quotes hide a semicolon."""
        match = _PROPERTY.match(self._text, self._after)
        if match is None:
            self.fail("this property never ends with ';'", self.token.at)
        self._after = match.end()
        self.token = self._scan()

    def fail(self, message: str, at: int) -> NoReturn:
        """Refuse the text, with the line of this place."""
        raise FormatError(message, line=line_at(self._text, at))

    def _scan(self) -> BifToken:
        at = self._after_blanks()
        match = _TOKEN.match(self._text, at)
        if match is None:
            reasons = {'"': "this quoted name never ends", "/": "this comment never ends"}
            self.fail(reasons.get(self._text[at], f"unexpected character {self._text[at]!r}"), at)
        self._after = match.end()
        kind = str(match.lastgroup)
        return BifToken(kind, match[kind], len(self._text.rstrip()) if kind == END else match.start(kind))

    def _after_blanks(self) -> int:
        """Where the next token begins, past blanks and comments that end."""
        text, at = self._text, self._after
        while True:
            solid = _SOLID.search(text, at)
            at = len(text) if solid is None else solid.start()
            if text.startswith("//", at):
                end = text.find("\n", at)
                at = len(text) if end < 0 else end
            elif text.startswith("/*", at) and (end := text.find("*/", at + 2)) >= 0:
                at = end + 2
            else:
                return at


def quote(name: str) -> str:
    """The name as BIF text, in quotes where it needs them."""
    if _BARE_NAME.fullmatch(name):
        return name
    if any(x in name for x in '"\n\x00'):
        raise FormatError(f"BIF cannot hold the name {show(name)}: it has a quote, a line break or a zero character")
    return f'"{name}"'


def show(name: str) -> str:
    """The name for an error message, never a page long."""
    return repr(name if len(name) <= _LONGEST else name[: _LONGEST - 3] + "...")


# --- The grammar of BIF: text to declared variables and probability blocks, not yet fitted together ------------------


UNNAMED = "unknown"
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_LONGEST_NUMBER = 64
MAX_CELLS = 1 << 21
"""Most probabilities in a whole network, four times those of the largest public one."""
MAX_NAMES = 1 << 18
"""Most names of levels and parents, repetitions counted."""


@dataclass(slots=True)
class BifNumbers:
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
    rows: list[BifNumbers] = field(default_factory=list)
    table: BifNumbers | None = None
    default: BifNumbers | None = None


class Grammar:
    """Recursive descent, one method per piece; what was read is in `declared` and `blocks`."""

    def __init__(self, text: str) -> None:
        self._scan = Scanner(text)
        self._names_left, self._numbers_left = MAX_NAMES, MAX_CELLS
        self.declared: dict[str, Declaration] = {}
        self.blocks: dict[str, ProbabilityBlock] = {}
        self.name: str = self._network_block()
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
        """Refuse the text, with the line of this place."""
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
            block.rows.append(BifNumbers(token.at, self._names(")", "a level"), self._numbers()))
        elif token.is_word("table") or token.is_word("default"):
            self._scan.take()
            if getattr(block, token.text) is not None:
                self.fail(f"a second '{token.text}' in one probability block", token.at)
            setattr(block, token.text, BifNumbers(token.at, [], self._numbers()))
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


# --- The structure of a Bayesian network in a BIF file; its tables are read by `dpcurate.networks` -------------------


def read_bif_structure(text: str) -> Dag:
    """The DAG of a network in BIF; its tables are not looked at."""
    draft = read(text)
    return Dag(tuple(draft.nodes), frozenset(draft.arrows))


def read(text: str) -> GraphDraft:
    """The graph of a network in BIF."""
    check_length(text)
    grammar = Grammar(text)
    grammar.check_structure()
    arrows = ((parent.text, name) for name, block in grammar.blocks.items() for parent in block.parents)
    return GraphDraft("dag", dict.fromkeys(grammar.declared), dict.fromkeys(arrows))


def write(graph: Graph, _: EdgeProbabilities = NO_PROBABILITIES) -> str:
    """Refuse: a BIF file is a network, not a graph."""
    raise FormatError(
        f"BIF needs probability tables, and a graph of {len(graph.nodes)} nodes has none; write json, dot or graphml"
    )

"""The parser that DOT and DAGitty text share: `digraph { a -> b -> {c d} [dir=none] }`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NoReturn

from dpcurate.errors import FormatError

_TOKEN = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/|^\#[^\n]*)
    |(?P<text>"(?:\\.|[^"\\])*")
    |(?P<edge>@->|<-@|<->|->|<-|@-@|--@|@--|--)
    |(?P<sign>[{}\[\];,=:+])
    |(?P<word>-?[\w.]+)""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
Attributes = dict[str, str]
DEPTH = 50


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the text: its kind, as written, and its line."""

    kind: str
    value: str
    line: int


@dataclass(frozen=True, slots=True)
class Link:
    """One edge statement between two nodes."""

    a: str
    mark: str
    b: str
    attributes: Attributes
    line: int


@dataclass(frozen=True, slots=True)
class Parsed:
    """The kind of graph, its own attributes, and nodes and links in order."""

    word: str
    attributes: dict[str, tuple[str, int]]
    nodes: list[tuple[str, int]]
    links: list[Link]


def tokens(text: str) -> Iterator[Token]:
    """The text in pieces, without spaces and comments, and an end."""
    place, line = 0, 1
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            what = "a string that never ends" if text[place] == '"' else f"unexpected {text[place]!r}"
            raise FormatError(what, line=line)
        if match.lastgroup != "skip":
            yield Token(str(match.lastgroup), match[0], line)
        place, line = match.end(), line + match[0].count("\n")
    yield Token("end", "the end of the text", line)


def parse(text: str, words: tuple[str, ...], unescape: Callable[[str], str]) -> Parsed:
    """Read one graph that starts with one of the words."""
    return _Parser(list(tokens(text)), unescape).graph(words)


class _Parser:
    """Recursive descent; each method reads one rule of the grammar."""

    def __init__(self, found: list[Token], unescape: Callable[[str], str]) -> None:
        self.tokens, self.place, self.unescape = found, 0, unescape
        self.attributes: dict[str, tuple[str, int]] = {}
        self.nodes: list[tuple[str, int]] = []
        self.links: list[Link] = []
        self.edge_defaults: Attributes = {}
        self.depth = 0

    @property
    def now(self) -> Token:
        return self.tokens[self.place]

    def take(self, value: str) -> Token:
        if self.now.value != value:
            self.fail(f"expected {value!r}")
        self.place += 1
        return self.tokens[self.place - 1]

    def sees(self, *values: str) -> bool:
        # A quoted name keeps its quotes here, so it is never taken for a word of the language.
        return self.now.value.lower() in values

    def fail(self, what: str) -> NoReturn:
        raise FormatError(f"{what}, found {self.now.value}", line=self.now.line)

    def graph(self, words: tuple[str, ...]) -> Parsed:
        if self.sees("strict"):
            self.place += 1
        if not self.sees(*words):
            self.fail(f"expected {' or '.join(words)}")
        word = self.now.value.lower()
        self.place += 1
        if not self.sees("{"):
            self.name()
        self.body()
        if self.now.kind != "end":
            self.fail("expected the end of the text")
        return Parsed(word, self.attributes, self.nodes, self.links)

    def body(self) -> list[str]:
        """{ statements }; the names in it, for a group used as one end of an edge."""
        self.take("{")
        self.depth += 1
        if self.depth > DEPTH:
            self.fail(f"braces nested more than {DEPTH} deep")
        names: list[str] = []
        while not self.sees("}"):
            if self.sees(";", ","):
                self.place += 1
            else:
                names += self.statement()
        self.take("}")
        self.depth -= 1
        return names

    def statement(self) -> list[str]:
        following = self.tokens[min(self.place + 1, len(self.tokens) - 1)]
        if self.sees("graph", "node", "edge") and following.value == "[":
            self.defaults()
            return []
        if following.value == "=":
            line, key = self.now.line, self.name()
            self.take("=")
            self.attributes[key] = (self.name(), line)
            return []
        return self.chain(self.operand())

    def defaults(self) -> None:
        word, line = self.now.value.lower(), self.now.line
        self.place += 1
        found = self.attribute_lists()
        if word == "edge":
            self.edge_defaults = {**self.edge_defaults, **found}
        if word == "graph":
            self.attributes |= {key: (value, line) for key, value in found.items()}

    def chain(self, names: list[str]) -> list[str]:
        ends, marks = [names], []
        while self.now.kind == "edge":
            marks.append(self.now)
            self.place += 1
            ends.append(self.operand())
        own = self.attribute_lists()
        for mark, left, right in zip(marks, ends, ends[1:], strict=False):
            attributes = {**self.edge_defaults, **own}
            self.links += [Link(a, mark.value, b, attributes, mark.line) for a in left for b in right]
        return [name for group in ends for name in group]

    def operand(self) -> list[str]:
        """A node, or a group of nodes in braces."""
        if self.sees("subgraph"):
            self.place += 1
            if not self.sees("{"):
                self.name()
        if self.sees("{"):
            outside = self.edge_defaults
            names = list(dict.fromkeys(self.body()))
            self.edge_defaults = outside
            return names
        line, name = self.now.line, self.name()
        while self.sees(":"):
            self.place += 1
            self.name()
        self.nodes.append((name, line))
        return [name]

    def name(self) -> str:
        """A word, or strings joined by +."""
        value = self.part()
        while self.tokens[self.place - 1].kind == "text" and self.sees("+"):
            self.place += 1
            value += self.part()
        return value

    def part(self) -> str:
        token = self.now
        if token.kind not in ("word", "text"):
            self.fail("expected a name")
        self.place += 1
        return token.value if token.kind == "word" else self.unescape(token.value[1:-1])

    def attribute_lists(self) -> Attributes:
        found: Attributes = {}
        while self.sees("["):
            self.place += 1
            while not self.sees("]"):
                if self.sees(",", ";"):
                    self.place += 1
                    continue
                key = self.name()
                found[key] = "true"
                if self.sees("="):
                    self.place += 1
                    found[key] = self.name()
            self.take("]")
        return found

"""The parser that DOT and DAGitty text share: `digraph { a -> b -> {c d} [dir=none] }`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NoReturn

from dpcurate._messages import shown
from dpcurate.errors import FormatError
from dpcurate.graphs.formats.chances import AT_ENDS, SURE
from dpcurate.graphs.formats.draft import MAX_EDGES, MAX_NODES

_TOKEN = re.compile(
    r"""(?P<skip>\s++|//[^\n]*+|/\*.*?\*/|^\#[^\n]*+)
    |(?P<text>"(?:\\.|[^"\\])*+")
    |(?P<edge>@->|<-@|<->|->|<-|@-@|--@|@--|--)
    |(?P<sign>[{}\[\];,=:+])
    |(?P<word>-?[\w.]++)""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
Attributes = dict[str, str]
DEPTH = 50
OF_EDGES = ("dir", "arrowtail", "arrowhead", *SURE, *AT_ENDS)
"""Attributes of edges that mean something here; others are dropped where they stand."""


@dataclass(frozen=True, slots=True)
class DotToken:
    """A piece of the text: its kind, as written, and its line."""

    kind: str
    value: str
    line: int


@dataclass(frozen=True, slots=True)
class Link:
    """One edge statement between two nodes, with its attributes."""

    a: str
    mark: str
    b: str
    attributes: Attributes
    line: int


@dataclass(frozen=True, slots=True)
class Parsed:
    """The kind of graph, as its first word and as its attribute kind say, and nodes and links in order."""

    word: str
    kind: tuple[str, int] | None
    nodes: list[tuple[str, int]]
    links: list[Link]


def tokens(text: str) -> Iterator[DotToken]:
    """The text in pieces, without spaces and comments, and an end."""
    place, line = 0, 1
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            what = "a string that never ends" if text[place] == '"' else f"unexpected {text[place]!r}"
            raise FormatError(what, line=line)
        if match.lastgroup != "skip":
            yield DotToken(str(match.lastgroup), match[0], line)
        place, line = match.end(), line + match[0].count("\n")
    yield DotToken("end", "the end of the text", line)


def parse(text: str, words: tuple[str, ...], unescape: Callable[[str], str]) -> Parsed:
    """Read one graph that starts with one of the words."""
    return _Parser(tokens(text), unescape).graph(words)


def _of_edges(attributes: Attributes) -> Attributes:
    return {name: attributes[name] for name in OF_EDGES if name in attributes}


class _Parser:
    """Recursive descent; each method reads one rule of the grammar."""

    def __init__(self, stream: Iterator[DotToken], unescape: Callable[[str], str]) -> None:
        self.tokens, self.unescape = stream, unescape
        self.now = next(stream)
        self.following = next(stream, self.now)
        self.kind: tuple[str, int] | None = None
        self.nodes: list[tuple[str, int]] = []
        self.links: list[Link] = []
        self.defaults: Attributes = {}
        self.depth = 0

    def move(self) -> DotToken:
        token, self.now = self.now, self.following
        self.following = next(self.tokens, self.now)
        return token

    def take(self, value: str) -> None:
        if self.now.value != value:
            self.fail(f"expected {value!r}")
        self.move()

    def sees(self, *values: str) -> bool:
        # A quoted name keeps its quotes here, so it is never taken for a word of the language.
        return self.now.value.lower() in values

    def fail(self, what: str) -> NoReturn:
        found = self.now.value if self.now.kind == "end" else shown(self.now.value)
        raise FormatError(f"{what}, found {found}", line=self.now.line)

    def graph(self, words: tuple[str, ...]) -> Parsed:
        if self.sees("strict"):
            self.move()
        if not self.sees(*words):
            self.fail(f"expected {' or '.join(words)}")
        word = self.move().value.lower()
        if not self.sees("{"):
            self.name()
        self.body()
        if self.now.kind != "end":
            self.fail("expected the end of the text")
        return Parsed(word, self.kind, self.nodes, self.links)

    def body(self) -> list[str]:
        """{ statements }; the names in it, for a group used as one end of an edge."""
        self.take("{")
        self.depth += 1
        if self.depth > DEPTH:
            self.fail(f"braces nested more than {DEPTH} deep")
        names: list[str] = []
        while not self.sees("}"):
            if self.sees(";", ","):
                self.move()
            else:
                names += self.statement()
        self.take("}")
        self.depth -= 1
        return names

    def statement(self) -> list[str]:
        if self.sees("graph", "node", "edge") and self.following.value == "[":
            self.set_defaults()
            return []
        if self.following.value == "=":
            line, key = self.now.line, self.name()
            self.take("=")
            self.say(key, self.name(), line)
            return []
        return self.chain(self.operand())

    def set_defaults(self) -> None:
        token = self.move()
        attributes = self.attribute_lists()
        if token.value.lower() == "edge":
            self.defaults = self.defaults | _of_edges(attributes)
        if token.value.lower() == "graph":
            for key, value in attributes.items():
                self.say(key, value, token.line)

    def say(self, key: str, value: str, line: int) -> None:
        if key == "kind":
            self.kind = (value, line)

    def chain(self, names: list[str]) -> list[str]:
        ends, marks = [names], []
        while self.now.kind == "edge":
            marks.append(self.move())
            ends.append(self.operand())
        attributes = self.defaults | _of_edges(self.attribute_lists())
        for mark, left, right in zip(marks, ends, ends[1:], strict=False):
            if len(self.links) + len(left) * len(right) > MAX_EDGES:
                raise FormatError(f"more than {MAX_EDGES} edges, the limit", line=mark.line)
            self.links += [Link(a, mark.value, b, attributes, mark.line) for a in left for b in right]
        return [name for group in ends for name in group]

    def operand(self) -> list[str]:
        """A node, or a group of nodes in braces."""
        if self.sees("subgraph"):
            self.move()
            if not self.sees("{"):
                self.name()
        if self.sees("{"):
            outside = self.defaults
            names = list(dict.fromkeys(self.body()))
            self.defaults = outside
            return names
        line, name = self.now.line, self.name()
        while self.sees(":"):
            self.move()
            self.name()
        self.nodes.append((name, line))
        if len(self.nodes) > 2 * (MAX_NODES + MAX_EDGES):
            raise FormatError(f"more names than {MAX_NODES} nodes and {MAX_EDGES} edges have, the limit", line=line)
        return [name]

    def name(self) -> str:
        """A word, or strings joined by +."""
        quoted = self.now.kind == "text"
        parts = [self.part()]
        while quoted and self.sees("+"):
            self.move()
            quoted = self.now.kind == "text"
            parts.append(self.part())
        return "".join(parts)

    def part(self) -> str:
        token = self.now
        if token.kind not in ("word", "text"):
            self.fail("expected a name")
        self.move()
        return token.value if token.kind == "word" else self.unescape(token.value[1:-1])

    def attribute_lists(self) -> Attributes:
        attributes: Attributes = {}
        while self.sees("["):
            self.move()
            while not self.sees("]"):
                if self.sees(",", ";"):
                    self.move()
                    continue
                key = self.name()
                attributes[key] = "true"
                if self.sees("="):
                    self.move()
                    attributes[key] = self.name()
            self.take("]")
        return attributes

"""Graphviz DOT and DAGitty text, which share a parser: `digraph { a -> b -> {c d} [dir=none] }`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NoReturn

from dpcurate._messages import shown
from dpcurate.errors import FormatError
from dpcurate.graphs.base_graph import GraphKind, Mark
from dpcurate.graphs.formats.graph_draft import (
    EDGE_NUMBERS,
    MARK_NUMBERS,
    MAX_EDGES,
    MAX_NODES,
    NO_PROBABILITIES,
    EdgeProbabilities,
    EdgeProbability,
    GraphDraft,
)
from dpcurate.graphs.graph import Graph, ordered_edges
from dpcurate.graphs.pag import SIGNS, sign_of

_TOKEN = re.compile(
    r"""(?P<skip>\s++|//[^\n]*+|/\*.*?\*/|^\#[^\n]*+)
    |(?P<text>"(?:\\.|[^"\\])*+")
    |(?P<edge>@->|<-@|<->|->|<-|@-@|--@|@--|--)
    |(?P<sign>[{}\[\];,=:+])
    |(?P<word>-?[\w.]++)""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
Attributes = dict[str, str]
MAX_NESTING = 50
EDGE_ATTRIBUTES = ("dir", "arrowtail", "arrowhead", *EDGE_NUMBERS, *MARK_NUMBERS)
"""Attributes of edges that mean something here; others are dropped where they stand."""


@dataclass(frozen=True, slots=True)
class DotToken:
    """A piece of the text: its kind, as written, and its line."""

    kind: str
    value: str
    line: int


@dataclass(frozen=True, slots=True)
class DotEdge:
    """One edge statement between two nodes, with its attributes."""

    a: str
    mark: str
    b: str
    attributes: Attributes
    line: int


@dataclass(frozen=True, slots=True)
class DotText:
    """The kind of graph, as its first word and as its attribute kind say, and nodes and links in order."""

    word: str
    kind: tuple[str, int] | None
    nodes: list[tuple[str, int]]
    links: list[DotEdge]


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


def parse(text: str, words: tuple[str, ...], unescape: Callable[[str], str]) -> DotText:
    """Read one graph that starts with one of the words."""
    return _DotParser(tokens(text), unescape).graph(words)


def _of_edges(attributes: Attributes) -> Attributes:
    return {name: attributes[name] for name in EDGE_ATTRIBUTES if name in attributes}


class _DotParser:
    """Recursive descent; each method reads one rule of the grammar."""

    def __init__(self, stream: Iterator[DotToken], unescape: Callable[[str], str]) -> None:
        self.tokens, self.unescape = stream, unescape
        self.now = next(stream)
        self.following = next(stream, self.now)
        self.kind: tuple[str, int] | None = None
        self.nodes: list[tuple[str, int]] = []
        self.links: list[DotEdge] = []
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

    def graph(self, words: tuple[str, ...]) -> DotText:
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
        return DotText(word, self.kind, self.nodes, self.links)

    def body(self) -> list[str]:
        """{ statements }; the names in it, for a group used as one end of an edge."""
        self.take("{")
        self.depth += 1
        if self.depth > MAX_NESTING:
            self.fail(f"braces nested more than {MAX_NESTING} deep")
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
            self.links += [DotEdge(a, mark.value, b, attributes, mark.line) for a in left for b in right]
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


# --- Graphviz DOT: a line of a CPDAG is an edge with dir=none, a skeleton is an undirected graph ---------------------
# In a PAG every edge has dir=both and says its marks: none for a tail, normal for an arrowhead, odot for a circle.
#
# The language itself only escapes the quote; as Graphviz shows a backslash only when it is doubled,
# a name's backslashes are written doubled and read back as one.


SIGN_OF_DIR = {"none": "--", "forward": "->", "back": "<-"}
SHAPES: dict[Mark, str] = {"tail": "none", "arrow": "normal", "circle": "odot"}
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
MARK_OF_SHAPE = {shape: mark for mark, shape in SHAPES.items()}


def quote(name: str) -> str:
    """The name in quotes; control characters, which could steer a terminal, in hexadecimal behind a backslash."""
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{_CONTROL.sub(lambda match: f"{chr(92)}x{ord(match[0]):02x}", escaped)}"'


def unquote(inside: str) -> str:
    """Undo `quote`; a backslash at a line's end joins the lines, any other stays."""
    return re.sub(r'\\(\r?\n|[\\"]|x[0189][0-9a-f]|x7f)', _unescaped, inside)


def _unescaped(match: re.Match[str]) -> str:
    return chr(int(match[1][1:], 16)) if match[1].startswith("x") else match[1].strip("\r\n")


def write_dot(graph: Graph, probabilities: EdgeProbabilities = NO_PROBABILITIES) -> str:
    """A graph as DOT."""
    plain = graph.kind == "skeleton"
    rows = [] if plain else [f"kind={graph.kind}"]
    rows += [quote(name) for name in graph.nodes]
    for a, mark, b in ordered_edges(graph):
        arrow = "--" if plain else "->"
        said: list[str] = []
        if graph.latent:
            said = _marks(mark)
        elif mark == "--" and not plain:
            said = ["dir=none"]
        said += [f"{name}={value}" for name, value in probabilities.get((a, b), EdgeProbability()).items()]
        rows.append(f"{quote(a)} {arrow} {quote(b)}" + (f" [{', '.join(said)}]" if said else ""))
    body = "".join(f"  {row};\n" for row in rows)
    return f"{'graph' if plain else 'digraph'} {{\n{body}}}\n"


def _marks(sign: str) -> list[str]:
    left, right = SIGNS[sign]
    return ["dir=both", f"arrowtail={SHAPES[left]}", f"arrowhead={SHAPES[right]}"]


def read_dot(text: str) -> GraphDraft:
    """A graph from DOT."""
    parsed = parse(text, ("graph", "digraph"), unquote)
    draft = GraphDraft()
    if parsed.word == "graph":
        draft.kind = "skeleton"
    if parsed.kind is not None:
        draft.say_kind(*parsed.kind)
    for name, line in parsed.nodes:
        draft.mention(name, line)
    for link in parsed.links:
        _add(draft, link, "--" if parsed.word == "graph" else "->")
    draft.join_opposites()
    return draft


def _add(draft: GraphDraft, link: DotEdge, mark: str) -> None:
    if link.mark != mark:
        raise FormatError(f"this graph's edges are written {mark}, not {link.mark}", line=link.line)
    direction = "none" if mark == "--" else link.attributes.get("dir", "forward")
    sign = _both(link) if direction == "both" else SIGN_OF_DIR.get(direction)
    draft.edge(link.a, sign, link.b, link.line, f"an edge with dir={shown(direction)}")
    draft.sure(*((link.b, link.a) if direction == "back" else (link.a, link.b)), link.attributes, link.line)


def _both(link: DotEdge) -> str:
    left, right = (link.attributes.get(name, "normal") for name in ("arrowtail", "arrowhead"))
    for shape in (left, right):
        if shape not in MARK_OF_SHAPE:
            raise FormatError(
                f"the end of an edge is one of {', '.join(MARK_OF_SHAPE)}, not {shown(shape)}", line=link.line
            )
    return sign_of(MARK_OF_SHAPE[left], MARK_OF_SHAPE[right])


# --- DAGitty text: `dag { a -> b }`, `pdag { a -> b b -- c }` for a CPDAG, `pag { a @-> b }` for a PAG ---------------
# Its strings escape nothing but the quote and hold no control characters, so a few names cannot
# be written and are refused.


DAGITTY_KINDS: dict[str, GraphKind] = {"dag": "dag", "pdag": "cpdag", "pag": "pag", "digraph": "dag"}


def write_dagitty(graph: Graph, _: EdgeProbabilities = NO_PROBABILITIES) -> str:
    """A graph as DAGitty text."""
    if graph.kind == "skeleton":
        raise FormatError("DAGitty text has no skeletons; write it as json, csv or dot")
    rows = [_quote_dagitty(name) for name in graph.nodes]
    rows += [f"{_quote_dagitty(a)} {mark.replace('o', '@')} {_quote_dagitty(b)}" for a, mark, b in ordered_edges(graph)]
    word = next(word for word, kind in DAGITTY_KINDS.items() if kind == graph.kind)
    return "\n".join([f"{word} {{", *rows, "}\n"])


def _quote_dagitty(name: str) -> str:
    if re.search(r'[\x00-\x1f\x7f]|\\"|\\$', name):
        raise FormatError(f"DAGitty text cannot hold the name {name!r}; write the graph as json, csv or dot")
    return '"' + name.replace('"', '\\"') + '"'


def read_dagitty(text: str) -> GraphDraft:
    """A graph from DAGitty text."""
    parsed = parse(text, tuple(DAGITTY_KINDS), lambda inside: inside.replace('\\"', '"'))
    draft = GraphDraft(DAGITTY_KINDS[parsed.word])
    for name, line in parsed.nodes:
        draft.mention(name, line)
    for link in parsed.links:
        if link.mark == "--" and DAGITTY_KINDS[parsed.word] == "dag":
            raise FormatError("a dag has no undirected edge; write pdag instead of dag", line=link.line)
        draft.edge(link.a, link.mark.replace("@", "o"), link.b, link.line, f"an edge {link.mark}")
    return draft

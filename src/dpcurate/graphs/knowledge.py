"""Background knowledge: what must and must not be in the graph, enforced without exception.

As a TOML file:

    required_edges = [["smoke", "lung"]]
    forbidden_arrows = [["lung", "age"]]
    tiers = [["age", "sex"], ["smoke"]]
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import permutations
from pathlib import Path
from typing import Any

from dpcurate import _files
from dpcurate.errors import FormatError, GraphError
from dpcurate.graphs.base_graph import Arrow, UnorderedPair, checked_nodes, find_cycle, hint
from dpcurate.schema import Schema
from dpcurate.schema.column_order import checked_order, parsed_order, tiers_of

PAIRS = ("required_edges", "forbidden_edges", "required_arrows", "forbidden_arrows")
KEYS = (*PAIRS, "tiers")
_STRING = r'"(?:\\.|[^"\\\n])*+"' + r"|'[^'\n]*+'"
_LIST = re.compile(rf"\[\s*(?:{_STRING})(?:\s*+,\s*+(?:{_STRING}))*+\s*+,?\s*+\]")


class Contradiction(GraphError):
    """Two facts that cannot both hold; `names` are those of the later fact, to find its line."""

    def __init__(self, first: str, second: str, names: tuple[str, ...]) -> None:
        super().__init__(f"the background knowledge contradicts itself: {first}, but {second}; remove one")
        self.names = names


@dataclass(frozen=True, slots=True)
class Knowledge:
    """Required and forbidden edges (pairs) and arrows (from, to), and tiers from early to late.

    No arrow points from a later tier to an earlier one; nodes in no tier are free. A pair that
    may not be adjacent is never tested, so it costs no budget.
    """

    required_edges: frozenset[UnorderedPair] = frozenset()
    forbidden_edges: frozenset[UnorderedPair] = frozenset()
    required_arrows: frozenset[Arrow] = frozenset()
    forbidden_arrows: frozenset[Arrow] = frozenset()
    tiers: tuple[frozenset[str], ...] = ()
    tier_of: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("required_edges", "forbidden_edges"):
            object.__setattr__(self, name, frozenset(frozenset(pair) for pair in getattr(self, name)))
        for name in ("required_arrows", "forbidden_arrows"):
            object.__setattr__(self, name, frozenset(map(tuple, getattr(self, name))))
        object.__setattr__(self, "tiers", tuple(map(frozenset, self.tiers)))
        object.__setattr__(self, "tier_of", {x: i for i, tier in enumerate(self.tiers) for x in tier})
        _check_shapes(self)
        _check_facts(self)

    @classmethod
    def of(
        cls,
        *,
        required_edges: Iterable[Iterable[str]] = (),
        forbidden_edges: Iterable[Iterable[str]] = (),
        required_arrows: Iterable[Arrow] = (),
        forbidden_arrows: Iterable[Arrow] = (),
        tiers: Iterable[Iterable[str]] = (),
    ) -> Knowledge:
        """From any iterables."""
        return cls(
            frozenset(map(frozenset, required_edges)),
            frozenset(map(frozenset, forbidden_edges)),
            frozenset(required_arrows),
            frozenset(forbidden_arrows),
            tuple(map(frozenset, tiers)),
        )

    def may_point(self, a: str, b: str) -> bool:
        """Whether a -> b is possible."""
        return _against(self, a, b) is None

    def allows(self, a: str, b: str) -> bool:
        """Whether a and b may be adjacent; if not, the pair need not be tested."""
        return self.may_point(a, b) or self.may_point(b, a)

    def allows_hidden(self, a: str, b: str) -> bool:
        """The same where common causes may be hidden: two that do not cause each other may share one."""
        return frozenset((a, b)) not in self.forbidden_edges

    def requires(self, a: str, b: str) -> bool:
        """Whether a and b must be adjacent."""
        arrow = (a, b) in self.required_arrows or (b, a) in self.required_arrows
        return arrow or frozenset((a, b)) in self.required_edges

    def undirected(self) -> Knowledge:
        """Which pairs must and must not be adjacent where common causes may be hidden, and no direction."""
        return Knowledge(required_edges=self.required_pairs(), forbidden_edges=self.forbidden_edges)

    def before(self, columns: Iterable[str], names: Iterable[str]) -> Knowledge:
        """The same, and nothing drives these columns: what they have to do with the others, they drive."""
        first = set(columns)
        arrows = {(name, one) for one in first for name in names if name != one}
        return replace(self, forbidden_arrows=self.forbidden_arrows | arrows)

    def required_pairs(self) -> frozenset[UnorderedPair]:
        """Pairs that must be adjacent, by an edge or an arrow."""
        return self.required_edges | {frozenset(pair) for pair in self.required_arrows}

    def names(self) -> tuple[str, ...]:
        """Every node mentioned, sorted."""
        pairs = [*self.required_edges, *self.forbidden_edges, *self.required_arrows, *self.forbidden_arrows]
        return tuple(sorted({name for pair in pairs for name in pair} | set(self.tier_of)))

    def check(self, nodes: Iterable[str]) -> None:
        """Refuse unknown nodes, and knowledge that would force a cycle if all its edges were found.

        The second is checked here, before any budget is spent, and not when the edges turn up.
        """
        known = checked_nodes(nodes)
        for name in self.names():
            if name not in known:
                near = hint(name, known)
                raise GraphError(f"the background knowledge names an unknown node {name!r}{near}")
        cycle = find_cycle(known, self.forced_arrows(known))
        if cycle is not None:
            raise GraphError(
                f"the background knowledge forces a cycle wherever these edges are found: {cycle};"
                " allow one arrow more, or forbid one of the edges"
            )

    def forced_arrows(self, nodes: Iterable[str]) -> frozenset[Arrow]:
        """Arrows a -> b that are possible while b -> a is not."""
        pairs = permutations(nodes, 2)
        return frozenset((a, b) for a, b in pairs if self.may_point(a, b) and not self.may_point(b, a))

    @classmethod
    def loads(cls, text: str) -> Knowledge:
        """Read TOML with the fields' names as keys; see `dumps`."""
        return _loads(text)

    @classmethod
    def load(cls, path: str | Path) -> Knowledge:
        """Read a TOML file; a FormatError says the line."""
        return _files.load(path, _loads)

    def dumps(self) -> str:
        """TOML that `loads` reads back, all sorted: equal knowledge gives equal text."""
        fields = {key: sorted(map(sorted, getattr(self, key))) for key in PAIRS[:2]}
        fields |= {key: sorted(map(list, getattr(self, key))) for key in PAIRS[2:]}
        fields["tiers"] = [sorted(tier) for tier in self.tiers]
        return "".join(_dump_field(key, parts) for key, parts in fields.items() if parts)


def _against(knowledge: Knowledge, a: str, b: str) -> str | None:
    """The fact that excludes a -> b."""
    if frozenset((a, b)) in knowledge.forbidden_edges:
        return f"the edge {a!r} -- {b!r} is forbidden"
    if (a, b) in knowledge.forbidden_arrows:
        return f"the arrow {a!r} -> {b!r} is forbidden"
    if (b, a) in knowledge.required_arrows:
        return f"the arrow {b!r} -> {a!r} is required"
    early, late = knowledge.tier_of.get(b), knowledge.tier_of.get(a)
    if early is not None and late is not None and early < late:
        return f"{a!r} is in tier {late + 1}, after {b!r} in tier {early + 1}"
    return None


def _check_shapes(knowledge: Knowledge) -> None:
    edges = [tuple(sorted(map(str, pair))) for pair in knowledge.required_edges | knowledge.forbidden_edges]
    for pair in sorted(edges) + sorted(knowledge.required_arrows | knowledge.forbidden_arrows):
        if len(pair) != 2 or pair[0] == pair[1]:
            raise GraphError(f"an edge or arrow joins two different nodes, not {list(pair)!r}")
    first: dict[str, int] = {}
    for number, tier in enumerate(knowledge.tiers, 1):
        for name in sorted(tier & first.keys()):
            raise Contradiction(f"{name!r} is in tier {first[name]}", f"{name!r} is in tier {number}", (name,))
        first |= dict.fromkeys(tier, number)


def _check_facts(knowledge: Knowledge) -> None:
    """Contradictions that need no list of nodes."""
    for a, b in sorted(knowledge.required_arrows):
        other = _against(knowledge, a, b)
        if other is not None:
            raise Contradiction(f"the arrow {a!r} -> {b!r} is required", other, (a, b))
    for a, b in sorted(map(sorted, knowledge.required_edges)):
        if not knowledge.allows(a, b):
            raise Contradiction(f"the edge {a!r} -- {b!r} is required", _both(knowledge, a, b), (a, b))
    cycle = find_cycle(knowledge.names(), set(_required_directions(knowledge)))
    if cycle is not None:
        raise GraphError(f"the background knowledge requires a cycle: {cycle}; remove one of the arrows")


def _both(knowledge: Knowledge, a: str, b: str) -> str:
    """Why neither direction is possible, without saying one fact twice."""
    reasons = {str(_against(knowledge, a, b)), str(_against(knowledge, b, a))}
    if frozenset((a, b)) in knowledge.forbidden_edges:
        return f"the edge {a!r} -- {b!r} is forbidden"
    return " and ".join(sorted(reasons))


def _required_directions(knowledge: Knowledge) -> Iterator[Arrow]:
    """Arrows that must be there: required ones, and required edges with one direction left."""
    for a, b in map(sorted, knowledge.required_pairs()):
        if not knowledge.may_point(b, a):
            yield a, b
        elif not knowledge.may_point(a, b):
            yield b, a


def _loads(text: str) -> Knowledge:
    table = _files.toml(text, FormatError)
    fields = {key: _names(key, value, text) for key, value in table.items()}
    try:
        return Knowledge.of(**{key: [tuple(part) for part in parts] for key, parts in fields.items()})  # type: ignore[arg-type]
    except Contradiction as error:
        raise FormatError(str(error), line=_line_of_names(text, error.names)) from None
    except GraphError as error:
        raise FormatError(str(error)) from None


def _dump_field(key: str, parts: Iterable[Iterable[str]]) -> str:
    rows = "".join(f"  [{', '.join(map(_files.toml_text, names))}],\n" for names in parts)
    return f"{key} = [\n{rows}]\n"


def _names(key: str, value: Any, text: str) -> list[list[str]]:
    line = _line_of_key(text, key)
    if key not in KEYS:
        raise FormatError(f"unknown key {key!r}{hint(key, KEYS)}; the keys are {', '.join(KEYS)}", line=line)
    lists = isinstance(value, list) and all(isinstance(part, list) for part in value)
    if not lists or not all(isinstance(name, str) for part in value for name in part):
        raise FormatError(f"{key} must be a list of lists of names", line=line)
    parts: list[list[str]] = value
    for part in parts:
        if key in PAIRS and (len(part) != 2 or part[0] == part[1]):
            here = _line_of_names(text, tuple(part)) or line
            raise FormatError(f"{key} holds pairs of two different names, not {part!r}", line=here)
    return parts


def _line_of_key(text: str, key: str) -> int | None:
    match = re.search(rf"^[ \t]*[\"']?{re.escape(key)}[\"']?\s*[=\].]", text, re.MULTILINE)
    return _files.line_at(text, match.start()) if match else None


def _line_of_names(text: str, names: tuple[str, ...]) -> int | None:
    """The last line where a list of exactly these names (or, for one name, with it) begins."""
    line = None
    for match in _LIST.finditer(text):
        try:
            listed = tomllib.loads(f"x = {match[0]}")["x"]
        except tomllib.TOMLDecodeError:  # a comment that looks like a list
            continue
        if sorted(listed) == sorted(names) or (len(names) == 1 and names[0] in listed):
            line = _files.line_at(text, match.start())
    return line


GivenOrder = str | Iterable[Iterable[str]] | None
"""'sex, age | smoker | *', or lists of names; None where nothing is said, empty for no order."""


def with_order(knowledge: Knowledge | None, order: GivenOrder, schema: Schema) -> Knowledge | None:
    """Knowledge with its tiers, with those of the order that is given, or else with those of the schema."""
    if order is None:
        groups = schema.order if knowledge is None or not knowledge.tiers else ()
    else:
        groups = checked_order(parsed_order(order) if isinstance(order, str) else order, schema.names)
    if not groups:
        return knowledge
    if knowledge is not None and knowledge.tiers:
        raise GraphError("the knowledge has tiers, and an order is given too: leave one of them out")
    return replace(knowledge or Knowledge(), tiers=tuple(map(frozenset, tiers_of(groups, schema.names))))

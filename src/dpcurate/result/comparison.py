"""What changed between two results: edges that appeared, vanished or turned, and how sure they are now."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

from dpcurate import _files
from dpcurate._messages import one_line, shown_probability
from dpcurate.errors import FormatError
from dpcurate.graphs.base_graph import UnorderedPair
from dpcurate.graphs.formats import load, load_probabilities, loads
from dpcurate.graphs.formats.graph_draft import NO_PROBABILITIES, EdgeProbabilities, EdgeProbability
from dpcurate.graphs.graph import Graph, ordered_edges

LEAST_MOVE = 0.05
"""A probability that moved by less is not told."""
ChangeKind = Literal[
    "appeared", "vanished", "turned", "became arrows", "became lines", "other marks", "surer", "less sure"
]
CHANGE_HEADINGS: dict[ChangeKind, tuple[str, str]] = {
    "appeared": ("1 edge appeared", "{} edges appeared"),
    "vanished": ("1 edge vanished", "{} edges vanished"),
    "turned": ("1 arrow turned round", "{} arrows turned round"),
    "became arrows": ("1 line became an arrow", "{} lines became arrows"),
    "became lines": ("1 arrow became a line", "{} arrows became lines"),
    "other marks": ("1 edge has other marks", "{} edges have other marks"),
    "surer": ("1 probability rose", "{} probabilities rose"),
    "less sure": ("1 probability fell", "{} probabilities fell"),
}
NOISE_NOTE = "Runs draw noise of their own: unless both are from the same answers, part of this may be chance."


@dataclass(frozen=True, slots=True)
class Finding:
    """A graph, what is known of its pairs (by two columns in the graph's order), and a name for it."""

    graph: Graph
    probabilities: EdgeProbabilities
    name: str = ""

    @classmethod
    def of(cls, graph: Graph, probabilities: EdgeProbabilities, name: str = "") -> Finding:
        """From probabilities of edges as they are written, in either order."""
        place = {node: i for i, node in enumerate(graph.nodes)}
        known = {(a, b) if place[a] < place[b] else (b, a): (a, b) for a, b in probabilities}
        return cls(graph, {ends: _from(probabilities, *ends, *edge) for ends, edge in known.items()}, name)

    def probability(self, a: str, b: str) -> EdgeProbability:
        """P(edge) and P(a -> b | edge), as far as they are known."""
        if (a, b) in self.probabilities:
            return self.probabilities[a, b]
        return self.probabilities.get((b, a), EdgeProbability()).turned()

    def drawn(self) -> dict[UnorderedPair, tuple[str, str, str]]:
        """Edges as they are written, by the pair."""
        return {frozenset((a, b)): (a, sign, b) for a, sign, b in ordered_edges(self.graph)}


def _from(probabilities: EdgeProbabilities, a: str, b: str, x: str, y: str) -> EdgeProbability:
    return probabilities[x, y] if (a, b) == (x, y) else probabilities[x, y].turned()


@dataclass(frozen=True, slots=True)
class EdgeChange:
    """One pair of columns: its edge before and after, empty if there was none, and the numbers before and after.

    `direction` is of the pair as `a` and `b` stand: P(a -> b | edge).
    """

    kind: ChangeKind
    a: str
    b: str
    before: str
    after: str
    linked: tuple[float | None, float | None] = (None, None)
    direction: tuple[float | None, float | None] = (None, None)

    def __str__(self) -> str:
        edge = self.after or self.before or f"{self.a}, {self.b} (not drawn)"
        was = f", was {self.before}" if self.before and self.after and self.before != self.after else ""
        said = [_moved("P(edge)", *self.linked), _moved(f"P({self.a} -> {self.b})", *self.direction)]
        sure = ", ".join(word for word in said if word)
        return f"{edge}{was}" + (f"  ({sure})" if sure else "")


def _moved(word: str, before: float | None, after: float | None) -> str:
    """The probability before and after, or the one that is known."""
    known = list(dict.fromkeys(shown_probability(p) for p in (before, after) if p is not None))
    return f"{word} {' to '.join(known)}" if known else ""


@dataclass(frozen=True, slots=True)
class Difference:
    """What changed from one result to another; prints itself in words."""

    first: Finding
    second: Finding
    changes: tuple[EdgeChange, ...]
    same: int
    """Edges that both have, drawn in the same way."""

    def of(self, kind: ChangeKind) -> tuple[EdgeChange, ...]:
        """The changes of one kind."""
        return tuple(change for change in self.changes if change.kind == kind)

    @property
    def appeared(self) -> tuple[EdgeChange, ...]:
        """Edges that only the second has."""
        return self.of("appeared")

    @property
    def vanished(self) -> tuple[EdgeChange, ...]:
        """Edges that only the first has."""
        return self.of("vanished")

    @property
    def turned(self) -> tuple[EdgeChange, ...]:
        """Arrows that point the other way now."""
        return self.of("turned")

    @property
    def surer(self) -> tuple[EdgeChange, ...]:
        """Pairs drawn alike, or in neither, whose P(edge) or P(direction) rose."""
        return self.of("surer")

    @property
    def less_sure(self) -> tuple[EdgeChange, ...]:
        """Pairs drawn alike, or in neither, whose P(edge) or P(direction) fell."""
        return self.of("less sure")

    @property
    def lines(self) -> tuple[str, ...]:
        """What is printed."""
        lines = [f"from {self.first.name or 'the first'} to {self.second.name or 'the second'}"]
        lines += _only("first", self.first, self.second) + _only("second", self.second, self.first)
        for kind, heads in CHANGE_HEADINGS.items():
            some = self.of(kind)
            lines += [_counted(len(some), *heads)] if some else []
            lines += [f"  {change}" for change in some]
        lines.append(_counted(self.same, "1 edge is the same in both", "{} edges are the same in both"))
        return *lines, *([NOISE_NOTE] if self.changes and self._noise_differs() else [])

    def __str__(self) -> str:
        return "\n".join(map(one_line, self.lines))

    def _noise_differs(self) -> bool:
        """Not where the second is another cut of the first."""
        return not self.first.probabilities or self.first.probabilities != self.second.probabilities


def _only(which: str, one: Finding, other: Finding) -> list[str]:
    names = [name for name in one.graph.nodes if name not in set(other.graph.nodes)]
    return [f"only the {which} has {', '.join(names)}: edges with them are not compared"] if names else []


def _counted(count: int, one: str, many: str) -> str:
    return one if count == 1 else many.format(count)


def difference(first: Finding, second: Finding, *, least: float = LEAST_MOVE) -> Difference:
    """What changed from the first to the second, among the columns of both; probabilities from `least` on."""
    common = [name for name in first.graph.nodes if name in set(second.graph.nodes)]
    before, after = first.drawn(), second.drawn()
    changes: list[EdgeChange] = []
    same = 0
    for a, b in combinations(common, 2):
        old, new = before.get(frozenset((a, b))), after.get(frozenset((a, b)))
        ends = new or old
        a, b = (a, b) if ends is None else (ends[0], ends[2])
        numbers = first.probability(a, b), second.probability(a, b)
        if old == new:
            same += new is not None
            changes += _surer(a, b, new, *numbers, least)
        else:
            changes.append(_change(_kind(old, new), a, b, old, new, *numbers))
    order = list(CHANGE_HEADINGS)
    return Difference(first, second, tuple(sorted(changes, key=lambda change: order.index(change.kind))), same)


Written = tuple[str, str, str] | None


def _kind(old: Written, new: Written) -> ChangeKind:
    if old is None or new is None:
        return "appeared" if old is None else "vanished"
    signs = old[1], new[1]
    known: dict[tuple[str, str], ChangeKind] = {("->", "->"): "turned", ("--", "->"): "became arrows"}
    return known.get(signs, "became lines" if signs == ("->", "--") else "other marks")


def _change(
    kind: ChangeKind, a: str, b: str, old: Written, new: Written, was: EdgeProbability, now: EdgeProbability
) -> EdgeChange:
    texts = ["" if edge is None else " ".join(edge) for edge in (old, new)]
    return EdgeChange(kind, a, b, texts[0], texts[1], (was.linked, now.linked), (was.direction, now.direction))


def _surer(
    a: str, b: str, edge: Written, was: EdgeProbability, now: EdgeProbability, least: float
) -> Iterator[EdgeChange]:
    """P(edge), and of an edge P(direction), each if it moved; of a line, which way is the likelier one now."""
    if edge is not None and edge[1] != "->" and (now.direction or 0.0) < 0.5:
        a, b, was, now = b, a, was.turned(), now.turned()
    text = "" if edge is None else " ".join(edge)
    for name in ("linked", "direction") if edge is not None else ("linked",):
        p, q = getattr(was, name), getattr(now, name)
        if p is not None and q is not None and abs(q - p) >= least:
            moved = {name: (p, q)}
            yield EdgeChange("surer" if q > p else "less sure", a, b, text, text, **moved)


REPORT_FILE = "report.json"


def load_result(path: str | Path) -> Finding:
    """The graph in a file and how sure its pairs are; of a folder, what its report.json holds."""
    place = Path(path)
    if place.is_dir():
        place = place / REPORT_FILE
    if place.suffix.lower() in (".html", ".htm"):
        raise FormatError(f"{place.name!r} is a page for people; give the report.json beside it, or a graph file")
    report = _files.load(place, _report) if place.suffix.lower() == ".json" else None
    if report is None:
        return Finding.of(load(place), load_probabilities(place), str(path))
    graph = loads(json.dumps(report["graph"]), "json")
    return Finding(graph, _probabilities(report, set(graph.nodes)), str(path))


def _report(text: str) -> dict[str, Any] | None:
    """The report in the text; None if it holds no report, such as a graph alone."""
    _files.check_length(text)
    try:
        table = json.loads(text)
    except (ValueError, RecursionError):
        return None  # the graph's reader says what is wrong, and where
    return table if isinstance(table, dict) and isinstance(table.get("graph"), dict) else None


def _probabilities(report: dict[str, Any], nodes: set[str]) -> EdgeProbabilities:
    """By the columns' order, as a report lists its pairs; reports of early versions have none."""
    pairs = report.get("pairs")
    if not isinstance(pairs, list):
        return NO_PROBABILITIES
    known = {}
    for pair in pairs:
        if not isinstance(pair, dict) or not {pair.get("a"), pair.get("b")} <= nodes:
            raise FormatError('an entry of "pairs" is an object with two columns "a" and "b"')
        probability = EdgeProbability.of(pair, None)
        if probability is not None:
            known[pair["a"], pair["b"]] = probability
    return known

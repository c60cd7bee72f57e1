"""The PC loop, once: ask, order by order, which adjacent pairs can be separated.

How a pair is judged is the judge's affair; what is asked, in which order and of which graph, is
settled here. A judge sees one round of tests at a time and says which of them found independence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Literal, Protocol

from dpcurate.errors import BudgetExceeded
from dpcurate.graphs.graph import Skeleton
from dpcurate.graphs.knowledge import Knowledge
from dpcurate.learn.outcome import Evidence, Pair

Scope = Literal["test", "node", "order"]
Style = Literal["stable", "sequential"]


@dataclass(frozen=True, slots=True)
class Question:
    """Whether x is independent of y given some others."""

    x: str
    y: str
    given: tuple[str, ...]

    @property
    def pair(self) -> Pair:
        """The two, without order."""
        return frozenset((self.x, self.y))


@dataclass(slots=True)
class Board:
    """The released graph so far; all of it is public."""

    nodes: tuple[str, ...]
    around: dict[str, set[str]]
    fixed: frozenset[Pair]
    separators: dict[Pair, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def complete(cls, nodes: tuple[str, ...], knowledge: Knowledge | None) -> Board:
        """Every pair that knowledge allows."""
        allowed = [(a, b) for a, b in combinations(nodes, 2) if knowledge is None or knowledge.allows(a, b)]
        around: dict[str, set[str]] = {n: set() for n in nodes}
        for a, b in allowed:
            around[a].add(b)
            around[b].add(a)
        fixed: frozenset[Pair] = frozenset() if knowledge is None else knowledge.required_pairs()
        return cls(nodes, around, fixed)

    def beside(self, node: str) -> list[str]:
        """Neighbours in the nodes' order."""
        return [n for n in self.nodes if n in self.around[node]]

    def joined(self, a: str, b: str) -> bool:
        """Whether the pair is still adjacent."""
        return b in self.around[a]

    @property
    def edges(self) -> list[tuple[str, str]]:
        """Adjacent pairs, each once, in the nodes' order."""
        return [(a, b) for a, b in combinations(self.nodes, 2) if self.joined(a, b)]

    @property
    def open_edges(self) -> list[tuple[str, str]]:
        """Adjacent pairs that may still be tested."""
        return [(a, b) for a, b in self.edges if frozenset((a, b)) not in self.fixed]

    def cut(self, test: Question) -> None:
        """Take an edge out and remember why."""
        self.around[test.x].discard(test.y)
        self.around[test.y].discard(test.x)
        self.separators.setdefault(test.pair, test.given)

    def skeleton(self) -> Skeleton:
        """The board as a value."""
        return Skeleton.of(self.nodes, self.edges, self.separators)


class Judge(Protocol):
    """Decides tests by what the door releases."""

    @property
    def scope(self) -> Scope:
        """Whether it wants to see single tests, those of one node, or those of a whole order."""

    @property
    def evidence(self) -> list[Evidence]:
        """What it has decided and on which numbers."""

    def begin(self, order: int, board: Board) -> bool:
        """Prepare for an order; False ends the search."""

    def decide(self, tests: Sequence[Question], board: Board) -> list[Question]:
        """Those that found independence."""

    def end(self, order: int, asked: int, board: Board) -> None:
        """Settle the books of an order."""


@dataclass(frozen=True, slots=True)
class Searched:
    """The skeleton found, how many tests each order took, and what the budget left undone."""

    skeleton: Skeleton
    tests: tuple[int, ...]
    unfinished: dict[int, tuple[Pair, ...]]


def search(
    nodes: tuple[str, ...],
    judge: Judge,
    *,
    knowledge: Knowledge | None = None,
    max_order: int | None = None,
    style: Style = "stable",
) -> Searched:
    """Find the skeleton. When the budget ends, what was found so far is returned, and said."""
    if knowledge is not None:
        knowledge.check(nodes)
    board = Board.complete(nodes, knowledge)
    last = len(nodes) - 2 if max_order is None else min(max_order, len(nodes) - 2)
    tests: list[int] = []
    for order in range(last + 1):
        pending = _pending(board, order)
        if not pending or not judge.begin(order, board):
            return Searched(board.skeleton(), tuple(tests), {order: tuple(pending)} if pending else {})
        tests.append(0)
        done: set[Pair] = set()
        try:
            for round_ in _rounds(board, order, judge.scope, style):
                tests[-1] += len(round_)
                for found in judge.decide(round_, board):
                    board.cut(found)
                done.update(t.pair for t in round_)
        except BudgetExceeded:
            left = tuple(p for p in pending if p not in done and _still(board, p))
            return Searched(board.skeleton(), tuple(tests), {order: left})
        judge.end(order, tests[-1], board)
    return Searched(board.skeleton(), tuple(tests), {})


def _still(board: Board, pair: Pair) -> bool:
    a, b = pair
    return board.joined(a, b)


def _pending(board: Board, order: int) -> list[Pair]:
    """Edges with enough neighbours for a test of this order."""
    return [
        frozenset((a, b)) for a, b in board.open_edges if max(len(board.around[a]), len(board.around[b])) - 1 >= order
    ]


def _rounds(board: Board, order: int, scope: Scope, style: Style) -> Iterator[list[Question]]:
    if scope == "test":
        yield from ([t] for t in (_stable(board, order) if style == "stable" else _sequential(board, order)))
    elif scope == "node":
        yield from _by_node(board, order)
    else:
        yield from _whole_order(board, order)


def _sets(around: dict[str, list[str]], a: str, b: str, order: int) -> Iterator[tuple[str, ...]]:
    """Conditioning sets from either side, each once."""
    seen = set()
    for node, other in ((a, b), (b, a)):
        for given in combinations([n for n in around[node] if n != other], order):
            if given not in seen:
                seen.add(given)
                yield given


def _stable(board: Board, order: int) -> Iterator[Question]:
    """Neighbours as they were when the order began, so that the result does not depend on names."""
    around = {n: board.beside(n) for n in board.nodes}
    for a, b in board.open_edges:
        for given in _sets(around, a, b, order):
            yield Question(a, b, given)
            if not board.joined(a, b):
                break


def _sequential(board: Board, order: int) -> Iterator[Question]:
    """The original loop: every ordered pair, neighbours as they are now, edges gone at once."""
    for a in board.nodes:
        for b in board.nodes:
            if not board.joined(a, b) or frozenset((a, b)) in board.fixed:
                continue
            for given in combinations([n for n in board.beside(a) if n != b], order):
                yield Question(a, b, given)
                if not board.joined(a, b):
                    break


def _by_node(board: Board, order: int) -> Iterator[list[Question]]:
    """All tests around one node at a time."""
    for a in board.nodes:
        beside = board.beside(a)
        if len(beside) < order + 1:
            continue
        tests = [
            Question(a, b, given)
            for b in beside
            if frozenset((a, b)) not in board.fixed
            for given in combinations([n for n in beside if n != b], order)
        ]
        if tests:
            yield tests


def _whole_order(board: Board, order: int) -> Iterator[list[Question]]:
    """All tests of the order, again after every round that took an edge out."""
    around = {n: board.beside(n) for n in board.nodes}
    while True:
        tests = [Question(a, b, s) for a, b in board.open_edges for s in _sets(around, a, b, order)]
        before = len(board.edges)
        if tests:
            yield tests
        if not tests or len(board.edges) == before:
            return

"""From a skeleton with separating sets to a PAG: background knowledge, colliders, then rules to closure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import combinations

from dpcurate.errors import GraphError
from dpcurate.graphs.base_graph import Arrow, Mark, UnorderedPair, reachable
from dpcurate.graphs.graph import SeparatingSets, Skeleton
from dpcurate.graphs.knowledge import Knowledge
from dpcurate.graphs.pag import Pag, reached

End = tuple[str, str, Mark]
"""(a, b, mark): that the end at b of the edge between a and b has this mark."""
UnshieldedTriple = tuple[str, UnorderedPair]
UnshieldedTriples = tuple[set[UnshieldedTriple], set[UnshieldedTriple]]
"""Unshielded triples (middle, ends): colliders, and those that are none."""


class PagMarks:
    """`at[a][b]` is the mark at b of the edge between a and b.

    `chains` are the triples (middle, ends) whose ends are separated by a set with the middle in it; a pair
    without a recorded separating set is evidence of nothing. A disputed end stays a circle for good.
    """

    def __init__(self, skeleton: Skeleton, triples: UnshieldedTriples | None = None) -> None:
        self.nodes: tuple[str, ...] = skeleton.nodes
        self.separators: SeparatingSets = skeleton.separators
        self.at: dict[str, dict[str, Mark]] = {name: {} for name in skeleton.nodes}
        for a, b in skeleton.edges:
            self.at[a][b] = self.at[b][a] = "circle"
        self.disputed: set[Arrow] = set()
        self.colliders: set[UnshieldedTriple]
        self.chains: set[UnshieldedTriple]
        self.colliders, self.chains = triples or self._sorted_triples()

    def _sorted_triples(self) -> UnshieldedTriples:
        """Unshielded triples as the separating sets of their ends say."""
        colliders: set[UnshieldedTriple] = set()
        chains: set[UnshieldedTriple] = set()
        for middle, near in self.at.items():
            for a, b in combinations(near, 2):
                given = self.separators.get(frozenset((a, b)))
                if given is not None:
                    (chains if middle in given else colliders).add((middle, frozenset((a, b))))
        return colliders, chains

    def edges(self) -> Iterator[Arrow]:
        """Every edge, both ways round."""
        return ((a, b) for a, near in self.at.items() for b in near)

    def joined(self, a: str, b: str) -> bool:
        """Whether there is an edge between both."""
        return b in self.at[a]

    def is_arrow(self, a: str, b: str) -> bool:
        """Whether the edge is a -> b."""
        return self.at[a].get(b) == "arrow" and self.at[b][a] == "tail"

    def chain(self, a: str, middle: str, b: str) -> bool:
        """Whether a and b are apart, and known to be so given the middle among others."""
        return (middle, frozenset((a, b))) in self.chains

    def draw(self, ends: Iterable[End]) -> None:
        """Make these marks, whatever stood there."""
        for a, b, mark in ends:
            self.at[a][b] = mark

    def settle(self, proposed: set[End]) -> bool:
        """Draw the proposals nothing contradicts, remember the disputed rest; whether any was drawn."""
        fresh = {(a, b, m) for a, b, m in proposed if self.at[a][b] == "circle" and (a, b) not in self.disputed}
        agreed = {end for end in fresh if (end[0], end[1], _other(end[2])) not in fresh}
        agreed -= self._against_chains(agreed)
        while wrong := self._on_cycles(agreed):
            agreed -= wrong
        self.disputed |= {(a, b) for a, b, _ in fresh - agreed}
        self.draw(agreed)
        return bool(agreed)

    def _against_chains(self, proposed: set[End]) -> set[End]:
        """Arrowheads that would make a collider of a triple that is known to be none."""
        wrong: set[End] = set()
        heads = {(a, b) for a, b, mark in proposed if mark == "arrow"}
        for a, middle in heads:
            for b in self.at[middle]:
                met = self.at[b][middle] == "arrow" or (b, middle) in heads
                if met and self.chain(a, middle, b):
                    wrong.add((a, middle, "arrow"))
        return wrong

    def _on_cycles(self, proposed: set[End]) -> set[End]:
        """Proposals with which a node would cause itself, or one that an arrowhead says it does not cause."""
        marks = {ends: self.at[ends[0]][ends[1]] for ends in self.edges()}
        marks.update({(a, b): mark for a, b, mark in proposed})
        below = reached(self.nodes, marks)
        wrong: set[End] = set()
        for (b, a), mark in marks.items():
            if mark == "arrow" and b in below[a]:
                path = {a, b} | {x for x in below[a] if b in below[x]}
                wrong |= {end for end in proposed if end[0] in path and end[1] in path}
        return wrong

    def pag(self) -> Pag:
        """The marks as a graph."""
        return Pag(self.nodes, {(a, b): self.at[a][b] for a, b in self.edges()})


def _other(mark: Mark) -> Mark:
    return "tail" if mark == "arrow" else "arrow"


# --- The orientation rules of Zhang (2008), Artificial Intelligence 172, section 3 -----------------------------------
# Each is a function of the marks so far.
#
# Every rule returns all that it asks for and changes nothing, so no result depends on an order. Letters are the
# paper's in Latin: a, b, c, d for alpha, beta, gamma, theta. Where the paper has an unshielded triple whose
# middle is no collider, these rules want to know it by a separating set: pairs that were never tested decide nothing.
#
# Rules 5, 9 and 10 speak of paths. Walks do as well: the argument passes an arrowhead, or a tail, from one edge to the
# next and never looks back, and a walk that met itself would be a cycle of causes.


PagRule = Callable[[PagMarks], set[End]]
Walk = tuple[str, str]


def colliders(marks: PagMarks) -> set[End]:
    """Rule 0: a *-> b <-* c where a and c are separated by a set without b."""
    return {(end, middle, "arrow") for middle, ends in marks.colliders for end in ends}


def rule_1(marks: PagMarks) -> set[End]:
    """A *-> b o-* c with a and c apart: b -> c."""
    found: set[End] = set()
    for b, c in _circles(marks):
        if any(marks.at[a][b] == "arrow" and marks.chain(a, b, c) for a in marks.at[b]):
            found |= {(c, b, "tail"), (b, c, "arrow")}
    return found


def rule_2(marks: PagMarks) -> set[End]:
    """A -> b *-> c or a *-> b -> c, with a *-o c: a *-> c."""
    found: set[End] = set()
    for c, a in _circles(marks):
        for b in marks.at[a].keys() & marks.at[c].keys():
            heads = marks.at[a][b] == marks.at[b][c] == "arrow"
            if heads and "tail" in (marks.at[b][a], marks.at[c][b]):
                found.add((a, c, "arrow"))
    return found


def rule_3(marks: PagMarks) -> set[End]:
    """A *-> b <-* c and a *-o d o-* c with a and c apart, d *-o b: d *-> b."""
    found: set[End] = set()
    for b, d in _circles(marks):
        both = marks.at[b].keys() & marks.at[d].keys()
        near = [x for x in both if marks.at[x][b] == "arrow" and marks.at[x][d] == "circle"]
        if any(marks.chain(a, d, c) for a, c in combinations(near, 2)):
            found.add((d, b, "arrow"))
    return found


def rule_4(marks: PagMarks) -> set[End]:
    """A path that discriminates for b, from d past a to c: b -> c if b separates d and c, else a <-> b <-> c."""
    found: set[End] = set()
    for b, c in _circles(marks):
        for a in marks.at[b]:
            if marks.is_arrow(a, c) and marks.at[b][a] == "arrow":
                for d in _discriminated(marks, a, b, c):
                    found |= _rule_4_marks(marks, a, b, c, d)
    return found


def _rule_4_marks(marks: PagMarks, a: str, b: str, c: str, d: str) -> set[End]:
    given = marks.separators.get(frozenset((d, c)))
    if given is None:
        return set()
    if b in given:
        return {(c, b, "tail"), (b, c, "arrow")}
    return {(b, a, "arrow"), (a, b, "arrow"), (c, b, "arrow"), (b, c, "arrow")}


def _discriminated(marks: PagMarks, a: str, b: str, c: str) -> Iterator[str]:
    """Ends d, apart from c, of paths d ... a b on which all between d and b are colliders and parents of c."""
    seen, todo = {a, b, c}, [a]
    while todo:
        x = todo.pop()
        for y in marks.at[x]:
            if y in seen or marks.at[y][x] != "arrow":
                continue
            if not marks.joined(y, c):
                seen.add(y)
                yield y
            elif marks.is_arrow(y, c) and marks.at[x][y] == "arrow":
                seen.add(y)
                todo.append(y)


def rule_5(marks: PagMarks) -> set[End]:
    """Edges on a ring of circles whose every three neighbours are known to be no collider: selection, a -- b."""
    steps = [(a, b) for a, b in marks.edges() if marks.at[a][b] == marks.at[b][a] == "circle"]
    after = {(a, b): [(b, c) for c in marks.at[b] if marks.chain(a, b, c)] for a, b in steps}
    onward = {step: [next_ for next_ in found if next_ in after] for step, found in after.items()}
    rings = [step for step in onward if step in reachable(step, onward)]
    return {end for a, b in rings for end in ((a, b, "tail"), (b, a, "tail"))}


def rule_6(marks: PagMarks) -> set[End]:
    """A -- b o-* c: b -* c."""
    return {(c, b, "tail") for b, c in _circles(marks) if any(_is_line(marks, a, b) for a in marks.at[b])}


def rule_7(marks: PagMarks) -> set[End]:
    """A -o b o-* c with a and c apart: b -* c."""
    found: set[End] = set()
    for b, c in _circles(marks):
        tails = (a for a in marks.at[b] if marks.at[b][a] == "tail" and marks.at[a][b] == "circle")
        if any(marks.chain(a, b, c) for a in tails):
            found.add((c, b, "tail"))
    return found


def rule_8(marks: PagMarks) -> set[End]:
    """A -> b -> c or a -o b -> c, with a o-> c: a -> c."""
    found: set[End] = set()
    for a, c in _open_arrows(marks):
        for b in marks.at[a].keys() & marks.at[c].keys():
            if marks.at[b][a] == "tail" and marks.at[a][b] != "tail" and marks.is_arrow(b, c):
                found.add((c, a, "tail"))
    return found


def rule_9(marks: PagMarks) -> set[End]:
    """A o-> c, and a walk from a by b to c that may be directed, b and c apart: a -> c."""
    found: set[End] = set()
    for a, c in _open_arrows(marks):
        starts = (b for b in marks.at[a] if marks.chain(b, a, c) and _may_point(marks, a, b))
        if any(c in _reach(marks, a, b) for b in starts):
            found.add((c, a, "tail"))
    return found


def rule_10(marks: PagMarks) -> set[End]:
    """A o-> c, and walks that may be directed from a to parents of c, whose first steps are apart: a -> c."""
    found: set[End] = set()
    for a, c in _open_arrows(marks):
        parents = {b for b in marks.at[c] if marks.is_arrow(b, c)} - {a}
        starts = [b for b in marks.at[a] if b != c and _may_point(marks, a, b)]
        leading = [b for b in starts if parents & (_reach(marks, a, b) | {b})] if parents else []
        if any(marks.chain(b, a, d) for b, d in combinations(leading, 2)):
            found.add((c, a, "tail"))
    return found


def _circles(marks: PagMarks) -> list[Walk]:
    """(b, c) of edges b o-* c."""
    return [(b, c) for b, c in marks.edges() if marks.at[c][b] == "circle"]


def _open_arrows(marks: PagMarks) -> list[Walk]:
    """(a, c) of edges a o-> c."""
    return [(a, c) for a, c in _circles(marks) if marks.at[a][c] == "arrow"]


def _is_line(marks: PagMarks, a: str, b: str) -> bool:
    return marks.at[a][b] == marks.at[b][a] == "tail"


def _may_point(marks: PagMarks, a: str, b: str) -> bool:
    """Whether a -> b is possible: no arrowhead at a, no tail at b."""
    return marks.at[b][a] != "arrow" and marks.at[a][b] != "tail"


def _reach(marks: PagMarks, a: str, b: str) -> set[str]:
    """Where walks lead that begin with a and b, may be directed, and turn at known non-colliders only."""
    seen, todo = {(a, b)}, [(a, b)]
    while todo:
        x, y = todo.pop()
        fresh = {(y, z) for z in marks.at[y] if marks.chain(x, y, z) and _may_point(marks, y, z)} - seen
        seen |= fresh
        todo += fresh
    return {y for _, y in seen} - {b}


HIDDEN: tuple[tuple[PagRule, ...], ...] = ((rule_1, rule_2, rule_3), (rule_4,), (rule_8, rule_9, rule_10))
"""The rules for hidden common causes, those that cost more later."""
HIDDEN_AND_SELECTED: tuple[tuple[PagRule, ...], ...] = (
    (rule_1, rule_2, rule_3),
    (rule_4,),
    (rule_5, rule_6, rule_7),
    (rule_8, rule_9, rule_10),
)
"""The same where which rows were kept may depend on columns."""


# --- From a skeleton with separating sets to a PAG: background knowledge, colliders, then rules to closure -----------


def orient_pag(
    skeleton: Skeleton,
    knowledge: Knowledge | None = None,
    rules: tuple[tuple[PagRule, ...], ...] = HIDDEN,
    *,
    triples: UnshieldedTriples | None = None,
) -> Pag:
    """Mark what the separating sets and the background knowledge decide.

    All proposals of a round are collected before any is adopted, so nothing depends on the order of nodes. Background
    knowledge always holds. An end for which both marks are proposed, an arrowhead that would make a collider of
    a triple known to be none, and marks that together would close a cycle are dropped, and stay circles. Which triples
    are colliders is read off the separating sets unless `triples` says it.
    """
    marks = PagMarks(skeleton, triples)
    if knowledge is not None:
        marks.draw(known_marks(skeleton, knowledge))
    marks.settle(colliders(marks))
    while any(marks.settle(set().union(*(rule(marks) for rule in group))) for group in rules):
        pass
    return marks.pag()


def known_marks(skeleton: Skeleton, knowledge: Knowledge) -> set[End]:
    """What knowledge says of edges where a common cause may be hidden.

    That b does not cause a is an arrowhead at b and nothing more: a may cause b, or something hidden both. Only
    a required arrow a -> b says that a causes b, a tail at a.
    """
    knowledge.check(skeleton.nodes)
    for a, b in map(sorted, knowledge.required_pairs() - skeleton.edges):
        raise GraphError(f"the skeleton lacks the edge {a!r} -- {b!r} that the background knowledge requires")
    ends: set[End] = set()
    for a, b in (ends for x, y in skeleton.edges for ends in ((x, y), (y, x))):
        if not knowledge.may_point(b, a):
            ends.add((a, b, "arrow"))
        if (a, b) in knowledge.required_arrows:
            ends.add((b, a, "tail"))
    return ends

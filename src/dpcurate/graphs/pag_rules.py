"""The orientation rules of Zhang (2008), Artificial Intelligence 172, section 3: each a function of the marks so far.

Every rule returns all that it asks for and changes nothing, so no result depends on an order. Letters are the
paper's in Latin: a, b, c, d for alpha, beta, gamma, theta. Where the paper has an unshielded triple whose
middle is no collider, these rules want to know it by a separating set: pairs that were never tested decide nothing.

Rules 5, 9 and 10 speak of paths. Walks do as well: the argument passes an arrowhead, or a tail, from one edge to the
next and never looks back, and a walk that met itself would be a cycle of causes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations

from dpcurate.graphs.pag_marks import End, PagMarks

Rule = Callable[[PagMarks], set[End]]
Step = tuple[str, str]


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
    rings = [step for step in onward if step in _walked(onward, onward[step])]
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


def _circles(marks: PagMarks) -> list[Step]:
    """(b, c) of edges b o-* c."""
    return [(b, c) for b, c in marks.edges() if marks.at[c][b] == "circle"]


def _open_arrows(marks: PagMarks) -> list[Step]:
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


def _walked(onward: dict[Step, list[Step]], first: list[Step]) -> set[Step]:
    """All that can be reached from these."""
    seen, todo = set(first), list(first)
    while todo:
        fresh = set(onward[todo.pop()]) - seen
        seen |= fresh
        todo += fresh
    return seen


HIDDEN: tuple[tuple[Rule, ...], ...] = ((rule_1, rule_2, rule_3), (rule_4,), (rule_8, rule_9, rule_10))
"""The rules for hidden common causes, those that cost more later."""
HIDDEN_AND_SELECTED: tuple[tuple[Rule, ...], ...] = (
    (rule_1, rule_2, rule_3),
    (rule_4,),
    (rule_5, rule_6, rule_7),
    (rule_8, rule_9, rule_10),
)
"""The same where which rows were kept may depend on columns."""

"""From a skeleton with separating sets to a PAG: background knowledge, colliders, then rules to closure."""

from __future__ import annotations

from dpcurate.errors import GraphError
from dpcurate.graphs.graph import Skeleton
from dpcurate.graphs.knowledge import Knowledge
from dpcurate.graphs.pag import Pag
from dpcurate.graphs.pag_marks import End, PagMarks, Triples
from dpcurate.graphs.pag_rules import HIDDEN, Rule, colliders


def orient_pag(
    skeleton: Skeleton,
    knowledge: Knowledge | None = None,
    rules: tuple[tuple[Rule, ...], ...] = HIDDEN,
    *,
    triples: Triples | None = None,
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

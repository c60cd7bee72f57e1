"""FCI: the PC loop where common causes may be hidden, and sets from further away than neighbours.

Spirtes, Meek and Richardson (1999), in Computation, Causation, and Discovery; Zhang (2008) for the rules. Stopped
after any order (Spirtes 2001, AISTATS: anytime FCI) it says less, and nothing else: an edge then means that no set
so small separates the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Literal

from dpcurate._validation import check_choice
from dpcurate.errors import QueryError
from dpcurate.graphs.base_graph import UnorderedPair, reachable
from dpcurate.graphs.graph import Skeleton
from dpcurate.graphs.knowledge import Knowledge
from dpcurate.graphs.pag import Pag
from dpcurate.graphs.pag_orientation import HIDDEN, HIDDEN_AND_SELECTED, PagMarks, colliders, orient_pag
from dpcurate.graphs.separation import blocks
from dpcurate.learn.constraint.pc_search import EdgeTest, Searched, Style, WorkingGraph, search_in

Sets = Literal["neighbours", "possible-d-sep"]
Sampling = Literal["random", "selected"]


@dataclass(frozen=True, slots=True)
class Fci:
    """Where separating sets are looked for, and whether rows may have been selected by their columns."""

    sets: Sets
    rows: Sampling

    def search(
        self,
        nodes: tuple[str, ...],
        edge_test: EdgeTest,
        *,
        knowledge: Knowledge | None = None,
        max_order: int | None = None,
        style: Style = "stable",
        sizes: Mapping[str, int] | None = None,
    ) -> Searched:
        """The skeleton by neighbours, then, if asked, by all that could be in a separating set."""
        known = knowledge or Knowledge()
        known.check(nodes)
        graph = WorkingGraph.complete(nodes, knowledge, known.allows_hidden)
        first = search_in(graph, edge_test, max_order=max_order, style=style, sizes=sizes)
        if self.sets == "neighbours" or first.unfinished:
            return first
        graph.widen(possible_d_sep(first.skeleton))
        graph.fixed = graph.fixed | _settled(graph)
        second = search_in(graph, edge_test, min_order=1, max_order=max_order, style=style, sizes=sizes)
        return _together(first, second)

    def orient(self, skeleton: Skeleton, knowledge: Knowledge | None) -> Pag:
        """The marks that its separating sets decide."""
        return orient_pag(skeleton, knowledge, HIDDEN_AND_SELECTED if self.rows == "selected" else HIDDEN)


def possible_d_sep(skeleton: Skeleton) -> dict[tuple[str, str], set[str]]:
    """By (a, b) of every edge, what may be needed to separate a from b: Possible-D-SEP.

    It lies on paths from a on which every node between is a collider, or has neighbours on the path that are
    adjacent. It lies on a path from a to b, and may cause a, b or what was selected: no smallest set that separates
    two holds anything else (Richardson and Spirtes 2002). Only arrowheads count whose tests have all been made.
    """
    marks = PagMarks(skeleton)
    marks.settle(colliders(marks))
    passable = {node: _passable(marks, node) for node in skeleton.nodes}
    above = _possible_causes(skeleton)
    block = {ends: part for part in blocks(skeleton) for ends in permutations(part, 2)}
    return {(a, b): passable[a] & (above[a] | above[b]) & block[a, b] for a, b in marks.edges()}


def _possible_causes(skeleton: Skeleton) -> dict[str, set[str]]:
    """Of every node, those from which a path leads to it that never starts at a sure arrowhead."""
    marks = PagMarks(skeleton)
    sure = {(middle, ends) for middle, ends in marks.colliders if _tested(marks, middle, ends)}
    marks.settle({(end, middle, "arrow") for middle, ends in sure for end in ends})
    before = {node: [x for x in marks.at[node] if marks.at[node][x] != "arrow"] for node in skeleton.nodes}
    return {node: {node} | reachable(node, before) for node in skeleton.nodes}


def _tested(marks: PagMarks, middle: str, ends: UnorderedPair) -> bool:
    """Whether the middle was found to depend on both ends given what separates them: sets of neighbours were tried."""
    given = marks.separators[ends]
    return all(marks.at[end].keys() >= set(given) or marks.at[middle].keys() >= set(given) for end in ends)


def _passable(marks: PagMarks, start: str) -> set[str]:
    seen = {(start, near) for near in marks.at[start]}
    todo = list(seen)
    while todo:
        x, y = todo.pop()
        for z in marks.at[y]:
            collider = marks.at[x][y] == marks.at[z][y] == "arrow"
            if z not in (x, start) and (y, z) not in seen and (collider or marks.joined(x, z)):
                seen.add((y, z))
                todo.append((y, z))
    return {y for _, y in seen}


def _settled(graph: WorkingGraph) -> frozenset[UnorderedPair]:
    """Edges of which every set has been tried, as they were among neighbours."""
    ends = ((a, b) for a, b in graph.edges)
    return frozenset(frozenset(e) for e in ends if all(graph.wider[x, y] <= graph.around[x] for x, y in (e, e[::-1])))


def _together(first: Searched, second: Searched) -> Searched:
    """One result of two searches in the same graph, their tests side by side."""
    large = dict(first.too_large)
    for order, count in second.too_large.items():
        large[order] = large.get(order, 0) + count
    return replace(second, tests=first.tests + second.tests, too_large=large)


def fci_of(latent: bool, sets: Sets | None, rows: Sampling, otherwise: Sets) -> Fci | None:
    """What a recipe's options say, None where no cause is hidden; refuses what would be ignored."""
    check_choice("rows", rows, ("random", "selected"))
    if sets is not None:
        check_choice("sets", sets, ("neighbours", "possible-d-sep"))
    if latent:
        return Fci(sets or otherwise, rows)
    if sets is not None or rows != "random":
        raise QueryError("sets and rows='selected' are for graphs with hidden causes; say latent=True too")
    return None

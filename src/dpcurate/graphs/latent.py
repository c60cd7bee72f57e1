"""A DAG of which some columns are hidden, or chose the rows: the ancestral graph and the true PAG of the others.

Richardson and Spirtes (2002), Annals of Statistics 30: two columns are adjacent if and only if the visible ancestors
of the two and of what was selected do not separate them. At a there is a tail if a is an ancestor of b or of what
was selected, an arrowhead otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

from dpcurate.errors import GraphError
from dpcurate.graphs.base_graph import Arrow, Mark, require_known
from dpcurate.graphs.graph import Dag, Skeleton
from dpcurate.graphs.pag import Pag
from dpcurate.graphs.pag_orientation import HIDDEN, HIDDEN_AND_SELECTED, orient_pag


def ancestral_graph(dag: Dag, hidden: Iterable[str] = (), selected: Iterable[str] = ()) -> Pag:
    """The maximal ancestral graph (MAG) of the visible columns: every mark as it is, and no circle."""
    kept = tuple(selected)
    skeleton = visible_skeleton(dag, hidden, kept)
    above = ancestors(dag)
    chosen = set(kept).union(*(above[name] for name in kept))
    marks: dict[Arrow, Mark] = {}
    for a, b in skeleton.edges:
        marks[b, a] = "tail" if a in above[b] or a in chosen else "arrow"
        marks[a, b] = "tail" if b in above[a] or b in chosen else "arrow"
    return Pag(skeleton.nodes, marks)


def true_pag(dag: Dag, hidden: Iterable[str] = (), selected: Iterable[str] = ()) -> Pag:
    """The PAG of the visible columns: what every graph has that no sample of them tells from the true one."""
    kept = tuple(selected)
    return orient_pag(visible_skeleton(dag, hidden, kept), rules=HIDDEN_AND_SELECTED if kept else HIDDEN)


def visible_skeleton(dag: Dag, hidden: Iterable[str] = (), selected: Iterable[str] = ()) -> Skeleton:
    """Adjacent visible pairs, and what separates the others."""
    kept, unseen = tuple(selected), set(hidden)
    nodes = _visible(dag, unseen, kept)
    above, edges, separators = ancestors(dag), [], {}
    for a, b in combinations(nodes, 2):
        over = set(above[a]).union(above[b], *(above[name] for name in kept))
        given = tuple(name for name in nodes if name in over and name not in (a, b))
        if dag.d_separated(a, b, (*given, *kept)):
            separators[frozenset((a, b))] = given
        else:
            edges.append((a, b))
    return Skeleton.of(nodes, edges, separators)


def ancestors(dag: Dag) -> dict[str, frozenset[str]]:
    """Of every node, without itself."""
    above: dict[str, frozenset[str]] = {}
    for name in dag.order():
        parents = dag.parents(name)
        above[name] = frozenset(parents).union(*(above[parent] for parent in parents))
    return above


def _visible(dag: Dag, hidden: set[str], selected: tuple[str, ...]) -> tuple[str, ...]:
    for name in (*sorted(hidden), *selected):
        require_known(name, dag.nodes)
    for name in sorted(hidden.intersection(selected)):
        raise GraphError(f"{name!r} cannot be hidden and have chosen the rows at once: say one of the two")
    return tuple(name for name in dag.nodes if name not in hidden and name not in selected)

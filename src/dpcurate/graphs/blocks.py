"""Blocks of a skeleton: the largest parts that no single node cuts in two."""

from __future__ import annotations

from collections.abc import Iterator

from dpcurate.graphs.graph import Skeleton


def blocks(skeleton: Skeleton) -> list[frozenset[str]]:
    """Biconnected components (Hopcroft and Tarjan 1973): a node lies on a path between the ends of an edge if and
    only if it is in the edge's block.
    """
    around: dict[str, list[str]] = {name: [] for name in skeleton.nodes}
    for a, b in skeleton.edges:
        around[a].append(b)
        around[b].append(a)
    found: list[frozenset[str]] = []
    seen: dict[str, int] = {}
    for start in skeleton.nodes:
        if start not in seen:
            found += _from(start, around, seen)
    return found


def _from(start: str, around: dict[str, list[str]], seen: dict[str, int]) -> Iterator[frozenset[str]]:
    """Depth first: `seen` is when a node was met, `low` the earliest node that its part reaches back to."""
    low, path = {start: len(seen)}, [start]
    seen[start] = len(seen)
    stack: list[tuple[str, str | None, Iterator[str]]] = [(start, None, iter(around[start]))]
    while stack:
        node, above, rest = stack[-1]
        child = next(rest, None)
        if child is None:
            stack.pop()
            if above is not None:
                low[above] = min(low[above], low[node])
                if low[node] >= seen[above]:
                    cut = path.index(node)
                    yield frozenset((*path[cut:], above))
                    del path[cut:]
        elif child not in seen:
            low[child] = seen[child] = len(seen)
            path.append(child)
            stack.append((child, node, iter(around[child])))
        elif child != above:
            low[node] = min(low[node], seen[child])

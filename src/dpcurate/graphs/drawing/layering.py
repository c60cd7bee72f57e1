"""Which row a node stands in, and in which order: the first two steps of a layered drawing.

Rows hold nodes (text) and places of edges that pass (whole numbers).
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

GAP = 18.0
"""Between two boxes of a row."""
SWEEPS = 12

RowItem = str | int
DownEdge = tuple[str, str]
Places = dict[RowItem, float]
RowOrder = list[list[RowItem]]
Ends = Mapping[RowItem, Sequence[RowItem]]
Part = tuple[list[str], list[DownEdge]]


def components(nodes: Sequence[str], edges: Sequence[DownEdge]) -> list[Part]:
    head = {name: name for name in nodes}

    def root(name: str) -> str:
        while head[name] != name:
            name = head[name]
        return name

    for a, b in edges:
        head[root(b)] = root(a)
    parts: dict[str, Part] = {}
    for name in nodes:
        parts.setdefault(root(name), ([], []))[0].append(name)
    for edge in edges:
        parts[root(edge[0])][1].append(edge)
    return list(parts.values())


def layers(nodes: Sequence[str], edges: Sequence[DownEdge], widths: Mapping[str, float], wide: float) -> dict[str, int]:
    """Below all parents, in a row that is not full; then nearer to neighbours where that shortens edges."""
    up: dict[str, list[str]] = {name: [] for name in nodes}
    down: dict[str, list[str]] = {name: [] for name in nodes}
    for a, b in edges:
        up[b].append(a)
        down[a].append(b)
    layer: dict[str, int] = {}
    space = [wide] * (2 * len(nodes) + 1)
    for name in nodes:  # in topological order
        row = max((layer[p] + 1 for p in up[name]), default=0)
        while space[row] < widths[name]:
            row += 1
        layer[name] = row
        space[row] -= widths[name] + GAP
    for _ in range(SWEEPS):
        for name in reversed(nodes):
            pull = len(down[name]) - len(up[name])
            low = max((layer[p] + 1 for p in up[name]), default=0)
            high = min((layer[c] - 1 for c in down[name]), default=layer[name])
            rows = range(high, layer[name], -1) if pull > 0 else range(low, layer[name]) if pull < 0 else ()
            row = next((r for r in rows if space[r] >= widths[name]), layer[name])
            space[layer[name]] += widths[name] + GAP
            space[row] -= widths[name] + GAP
            layer[name] = row
    used = {row: i for i, row in enumerate(sorted(set(layer.values())))}
    return {name: used[row] for name, row in layer.items()}


def uncross(rows: RowOrder, above: Ends, below: Ends) -> RowOrder:
    """Order the rows so that few edges cross: barycentres up and down, then swaps of neighbours."""
    best, fewest = rows, crossings(rows, below)
    for start in (rows, [row[::-1] for row in rows], _walked(rows, above, below)):
        rows = start
        for sweep in range(SWEEPS):
            if not fewest:
                return best
            downwards = sweep % 2 == 0
            rows = _swap(_barycentres(rows, above if downwards else below, downwards), above, below)
            crossed = crossings(rows, below)
            if crossed < fewest:
                best, fewest = rows, crossed
    return best


def _walked(rows: RowOrder, above: Ends, below: Ends) -> RowOrder:
    """Rows in the order of a walk that goes deep first: trees come out without a crossing."""
    seen: dict[RowItem, None] = {}
    stack = [item for row in reversed(rows) for item in reversed(row)]
    while stack:
        item = stack.pop()
        if item not in seen:
            seen[item] = None
            stack += [*reversed(above.get(item, ())), *reversed(below.get(item, ()))]
    place = {item: i for i, item in enumerate(seen)}
    return [sorted(row, key=place.__getitem__) for row in rows]


def _barycentres(rows: RowOrder, ends: Ends, downwards: bool) -> RowOrder:
    done: dict[int, list[RowItem]] = {}
    place: Places = {}
    for r in range(len(rows)) if downwards else range(len(rows) - 1, -1, -1):
        step = 1 / max(1, len(rows[r]))
        means = {x: _mean((place[o] for o in ends.get(x, ())), i * step) for i, x in enumerate(rows[r])}
        done[r] = sorted(rows[r], key=means.__getitem__)
        place |= {x: i * step for i, x in enumerate(done[r])}
    return [done[r] for r in range(len(rows))]


def _mean(values: Iterable[float], otherwise: float) -> float:
    numbers = list(values)
    return sum(numbers) / len(numbers) if numbers else otherwise


def _swap(rows: RowOrder, above: Ends, below: Ends) -> RowOrder:
    """Exchange neighbours in a row as long as that removes crossings."""
    rows = [list(row) for row in rows]
    place: Places = {x: float(i) for row in rows for i, x in enumerate(row)}
    for _ in range(4):
        moved = False
        for row in rows:
            for i in range(len(row) - 1):
                a, b = row[i], row[i + 1]
                gain = sum(_pairs(ends, a, b, place) - _pairs(ends, b, a, place) for ends in (above, below))
                if gain > 0:
                    row[i], row[i + 1] = b, a
                    place[a], place[b] = i + 1.0, float(i)
                    moved = True
        if not moved:
            break
    return rows


def _pairs(ends: Ends, left: RowItem, right: RowItem, place: Places) -> int:
    """Crossings between the edges of two neighbours in a row."""
    others = sorted(place[o] for o in ends.get(right, ()))
    return sum(sum(o < place[p] for o in others) for p in ends.get(left, ())) if others else 0


def crossings(rows: RowOrder, below: Ends) -> int:
    total = 0
    for row, after in pairwise(rows):
        place = {x: i for i, x in enumerate(after)}
        seen: list[int] = []
        for item in row:
            ends = sorted(place[o] for o in below.get(item, ()))
            total += sum(len(seen) - bisect_right(seen, end) for end in ends)
            for end in ends:
                insort(seen, end)
    return total

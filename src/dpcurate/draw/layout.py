"""Where to draw what: a layered layout (Sugiyama, Tagawa and Toda 1981) with labels of unequal width.

Every edge runs downwards between rows of boxes. Rows hold nodes (text) and places of edges that pass (whole numbers):
an edge that passes a row gets a narrow place of its own in it, so no edge runs through a box. Layouts depend on the
graph alone: equal graphs look equal.
"""

from __future__ import annotations

import math
from bisect import bisect_right, insort
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from dpcurate.graphs.base_graph import topological
from dpcurate.graphs.graph import Graph

BOX_GAP = 18.0
"""Between two boxes of a row."""
SWEEPS = 12

RowItem = str | int
DownEdge = tuple[str, str]
Positions = dict[RowItem, float]
RowOrder = list[list[RowItem]]
JoinedItems = Mapping[RowItem, Sequence[RowItem]]
Component = tuple[list[str], list[DownEdge]]


def components(nodes: Sequence[str], edges: Sequence[DownEdge]) -> list[Component]:
    """Connected parts of the graph, each with its nodes and edges."""
    head = {name: name for name in nodes}

    def root(name: str) -> str:
        while head[name] != name:
            name = head[name]
        return name

    for a, b in edges:
        head[root(b)] = root(a)
    parts: dict[str, Component] = {}
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
        space[row] -= widths[name] + BOX_GAP
    for _ in range(SWEEPS):
        for name in reversed(nodes):
            pull = len(down[name]) - len(up[name])
            low = max((layer[p] + 1 for p in up[name]), default=0)
            high = min((layer[c] - 1 for c in down[name]), default=layer[name])
            rows = range(high, layer[name], -1) if pull > 0 else range(low, layer[name]) if pull < 0 else ()
            row = next((r for r in rows if space[r] >= widths[name]), layer[name])
            space[layer[name]] += widths[name] + BOX_GAP
            space[row] -= widths[name] + BOX_GAP
            layer[name] = row
    used = {row: i for i, row in enumerate(sorted(set(layer.values())))}
    return {name: used[row] for name, row in layer.items()}


def uncross(rows: RowOrder, above: JoinedItems, below: JoinedItems) -> RowOrder:
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


def _walked(rows: RowOrder, above: JoinedItems, below: JoinedItems) -> RowOrder:
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


def _barycentres(rows: RowOrder, ends: JoinedItems, downwards: bool) -> RowOrder:
    done: dict[int, list[RowItem]] = {}
    place: Positions = {}
    for r in range(len(rows)) if downwards else range(len(rows) - 1, -1, -1):
        step = 1 / max(1, len(rows[r]))
        means = {x: _mean((place[o] for o in ends.get(x, ())), i * step) for i, x in enumerate(rows[r])}
        done[r] = sorted(rows[r], key=means.__getitem__)
        place |= {x: i * step for i, x in enumerate(done[r])}
    return [done[r] for r in range(len(rows))]


def _mean(values: Iterable[float], otherwise: float) -> float:
    numbers = list(values)
    return sum(numbers) / len(numbers) if numbers else otherwise


def _swap(rows: RowOrder, above: JoinedItems, below: JoinedItems) -> RowOrder:
    """Exchange neighbours in a row as long as that removes crossings."""
    rows = [list(row) for row in rows]
    place: Positions = {x: float(i) for row in rows for i, x in enumerate(row)}
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


def _pairs(ends: JoinedItems, left: RowItem, right: RowItem, place: Positions) -> int:
    """Crossings between the edges of two neighbours in a row."""
    others = sorted(place[o] for o in ends.get(right, ()))
    return sum(sum(o < place[p] for o in others) for p in ends.get(left, ())) if others else 0


def crossings(rows: RowOrder, below: JoinedItems) -> int:
    """How many edges between two neighbouring rows cross."""
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


BOX_HEIGHT = 28.0
"""Of a box."""
LANE_WIDTH = 10.0
"""Width of the place of an edge that passes a row."""
MOST_DRIFT = 14.0
"""How far an edge may drift while it passes a row; its place and the gaps beside it hold that."""
LEAST_ROW_DISTANCE = 44.0
"""Least distance between two rows of boxes."""
ASPECT_RATIO = 1.7
"""Width over height to aim at."""
STRAIGHTENING_ROUNDS = 40

XY = tuple[float, float]
Stretch = tuple[XY, XY, XY, XY]
"""A cubic curve: start, two controls, end."""


@dataclass(frozen=True, slots=True)
class Box:
    """A node: its centre, and its width."""

    x: float
    y: float
    width: float


@dataclass(frozen=True, slots=True)
class GraphLayout:
    """Boxes by name, and for every edge (upper, lower) the points its curve passes from box to box."""

    boxes: Mapping[str, Box]
    routes: Mapping[DownEdge, tuple[XY, ...]]
    width: float
    height: float


def lay_out(graph: Graph, widths: Mapping[str, float]) -> GraphLayout:
    """Place boxes of these widths; parts that are not connected stand side by side, then below."""
    order = {name: i for i, name in enumerate(topological(graph.nodes, graph.arrows))}
    downwards = (_downwards(pair, order) for pair in graph.edges)
    edges = sorted(downwards, key=lambda edge: (order[edge[0]], order[edge[1]]))
    area = sum(w + BOX_GAP for w in widths.values()) * (BOX_HEIGHT + 2 * LEAST_ROW_DISTANCE)
    wide = max(math.sqrt(area * ASPECT_RATIO), *(w + BOX_GAP for w in widths.values()))
    parts = [_Part(nodes, inside, widths, wide).place() for nodes, inside in components(list(order), edges)]
    return _pack(parts, wide)


def stretches(route: Sequence[XY]) -> list[Stretch]:
    """The smooth curve along a route: upright at both ends, straight where it passes a row."""
    slopes = [0.0] * len(route)
    for i in range(1, len(route) - 2, 2):
        slopes[i] = slopes[i + 1] = (route[i + 1][0] - route[i][0]) / (route[i + 1][1] - route[i][1])
    curves = []
    for i, ((x, y), (to_x, to_y)) in enumerate(pairwise(route)):
        half = (to_y - y) / 2
        first, second = (x + slopes[i] * half, y + half), (to_x - slopes[i + 1] * half, to_y - half)
        curves.append(((x, y), first, second, (to_x, to_y)))
    return curves


def halfway(route: Sequence[XY]) -> XY:
    """About half way, between two rows."""
    curve = stretches(route)
    (x, y), (x1, y1), (x2, y2), (to_x, to_y) = curve[len(curve) // 4 * 2]
    return (x + 3 * x1 + 3 * x2 + to_x) / 8, (y + 3 * y1 + 3 * y2 + to_y) / 8


def _downwards(pair: frozenset[str], order: Mapping[str, int]) -> DownEdge:
    upper, lower = sorted(pair, key=order.__getitem__)
    return upper, lower


@dataclass
class _Part:
    """One connected part on its way: rows of nodes (text) and of passing edges (whole numbers)."""

    nodes: list[str]
    edges: list[DownEdge]
    widths: Mapping[str, float]
    wide: float
    rows: RowOrder = field(default_factory=list)
    chains: dict[DownEdge, list[RowItem]] = field(default_factory=dict)
    above: dict[RowItem, list[RowItem]] = field(default_factory=dict)
    below: dict[RowItem, list[RowItem]] = field(default_factory=dict)

    def place(self) -> GraphLayout:
        self._fill(layers(self.nodes, self.edges, self.widths, self.wide))
        self.rows = uncross(self.rows, self.above, self.below)
        x = _straighten(self.rows, self.above, self.below, self._width)
        return self._layout(x)

    def _width(self, item: RowItem) -> float:
        return self.widths[item] if isinstance(item, str) else LANE_WIDTH

    def _fill(self, layer: Mapping[str, int]) -> None:
        """RowOrder, with a passing place wherever an edge spans more than one."""
        self.rows = [[] for _ in range(max(layer.values()) + 1)]
        for name in self.nodes:
            self.rows[layer[name]].append(name)
        lane = 0
        for a, b in self.edges:
            lanes = range(lane, lane + layer[b] - layer[a] - 1)
            lane += len(lanes)
            self.chains[a, b] = [a, *lanes, b]
            for row, item in enumerate(lanes, layer[a] + 1):
                self.rows[row].append(item)
        for chain in self.chains.values():
            for up, down in pairwise(chain):
                self.below.setdefault(up, []).append(down)
                self.above.setdefault(down, []).append(up)

    def _layout(self, x: Positions) -> GraphLayout:
        tops = self._tops(x)
        y = {item: tops[i] for i, row in enumerate(self.rows) for item in row}
        boxes = {name: Box(x[name], y[name] + BOX_HEIGHT / 2, self.widths[name]) for name in self.nodes}
        out, into = self._ports(x, self.below), self._ports(x, self.above)
        routes = {}
        for edge, chain in self.chains.items():
            first, last = (out[chain[0], chain[1]], y[edge[0]] + BOX_HEIGHT), (into[chain[-1], chain[-2]], y[edge[1]])
            passed = [point for k in range(1, len(chain) - 1) for point in self._lane(chain[k - 1 : k + 2], x, y)]
            routes[edge] = (first, *passed, last)
        right = max(x[i] + self._width(i) / 2 for row in self.rows for i in row)
        return GraphLayout(boxes, routes, right, tops[-1] + BOX_HEIGHT)

    def _lane(self, chain: list[RowItem], x: Positions, y: Mapping[RowItem, float]) -> tuple[XY, XY]:
        """Where an edge enters and leaves a row: leaning if it goes the same way before and after."""
        before, here, after = chain
        slopes = [(x[here] - x[before]) / (y[here] - y[before]), (x[after] - x[here]) / (y[after] - y[here])]
        steep = min(*map(abs, slopes), MOST_DRIFT / BOX_HEIGHT) if slopes[0] * slopes[1] > 0 else 0.0
        lean = math.copysign(steep, slopes[0]) * BOX_HEIGHT / 2
        return (x[here] - lean, y[here]), (x[here] + lean, y[here] + BOX_HEIGHT)

    def _tops(self, x: Positions) -> list[float]:
        """Rows stand further apart where edges run far sideways."""
        tops = [0.0]
        for row in self.rows[:-1]:
            far = max((abs(x[a] - x[b]) for a in row for b in self.below.get(a, ())), default=0.0)
            tops.append(tops[-1] + BOX_HEIGHT + LEAST_ROW_DISTANCE + min(0.13 * far, 2 * LEAST_ROW_DISTANCE))
        return tops

    def _ports(self, x: Positions, ends: Mapping[RowItem, list[RowItem]]) -> dict[tuple[RowItem, RowItem], float]:
        """Where on a box's side an edge ends: side by side, in the order of the other ends."""
        ports = {}
        for item, others in ends.items():
            step = min(11.0, (self._width(item) - 12) / max(1, len(others) - 1)) if isinstance(item, str) else 0.0
            for i, other in enumerate(sorted(others, key=lambda o: (x[o], str(o)))):
                ports[item, other] = x[item] + step * (i - (len(others) - 1) / 2)
        return ports


def _straighten(rows: RowOrder, above: JoinedItems, below: JoinedItems, width: Callable[[RowItem], float]) -> Positions:
    """Positions across: near the neighbours above and below, long edges straight, nothing overlapping."""
    x: Positions = {}
    for row in rows:
        left = 0.0
        for item in row:
            x[item] = left + width(item) / 2
            left += width(item) + BOX_GAP
    for sweep in range(STRAIGHTENING_ROUNDS):
        ends = ((above,), (below,))[sweep % 2] if sweep < STRAIGHTENING_ROUNDS / 2 else (above, below)
        for row in rows if sweep % 2 == 0 else rows[::-1]:
            wanted = [_pull(item, ends, x) for item in row]
            steps = [0.0, *((width(a) + width(b)) / 2 + _gap(a, b) for a, b in pairwise(row))]
            x.update(zip(row, _apart(wanted, steps), strict=True))
    left = min(x[item] - width(item) / 2 for row in rows for item in row)
    return {item: value - left for item, value in x.items()}


def _gap(a: RowItem, b: RowItem) -> float:
    return BOX_GAP if isinstance(a, str) and isinstance(b, str) else BOX_GAP / 3


def _pull(item: RowItem, ends: Sequence[JoinedItems], x: Positions) -> tuple[float, float]:
    """Where an item wants to be and how much: passing edges want to be straight more than nodes do."""
    total = weight = 1e-6
    total *= x[item]
    for side in ends:
        for other in side.get(item, ()):
            force = (1.0, 3.0, 8.0)[isinstance(item, int) + isinstance(other, int)]
            total, weight = total + force * x[other], weight + force
    return total / weight, weight


def _apart(wanted: Sequence[tuple[float, float]], steps: Sequence[float]) -> list[float]:
    """The nearest positions (weighted squares) at least so far apart: pool adjacent violators."""
    shift, blocks = 0.0, list[tuple[float, float, int]]()
    shifts = []
    for (value, weight), step in zip(wanted, steps, strict=True):
        shift += step
        shifts.append(shift)
        block = (value - shift, weight, 1)
        while blocks and blocks[-1][0] > block[0]:
            mean, mass, count = blocks.pop()
            both = mass + block[1]
            block = ((mean * mass + block[0] * block[1]) / both, both, count + block[2])
        blocks.append(block)
    flat = [mean for mean, _, count in blocks for _ in range(count)]
    return [mean + shift for mean, shift in zip(flat, shifts, strict=True)]


def _pack(parts: Sequence[GraphLayout], wide: float) -> GraphLayout:
    """Parts on shelves, the tallest first."""
    limit = max([wide, *(part.width for part in parts)])
    boxes: dict[str, Box] = {}
    routes: dict[DownEdge, tuple[XY, ...]] = {}
    left = top = shelf = right = 0.0
    for part in sorted(parts, key=lambda p: -p.height):
        if left and left + part.width > limit:
            left, top, shelf = 0.0, top + shelf + LEAST_ROW_DISTANCE, 0.0
        boxes |= {name: Box(b.x + left, b.y + top, b.width) for name, b in part.boxes.items()}
        routes |= {e: tuple((x + left, y + top) for x, y in route) for e, route in part.routes.items()}
        right, shelf = max(right, left + part.width), max(shelf, part.height)
        left += part.width + 2 * BOX_GAP
    return GraphLayout(boxes, routes, right, top + shelf)

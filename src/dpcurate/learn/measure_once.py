"""Measure once: release a few rich statistics, and let all the rest be free post-processing.

First the row count, every margin and the interaction contrast of every allowed pair, in one
release. Then, by the released noise level, more of the same or the three-way contrasts that decide
between the graphs still possible. Everything after that is search.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from random import Random

import numpy as np
from numpy.typing import NDArray

from dpcurate.errors import RequestError
from dpcurate.graphs.graph import Skeleton
from dpcurate.graphs.knowledge import Knowledge
from dpcurate.graphs.orient import orient
from dpcurate.learn.constants import Constants
from dpcurate.learn.contrasts import Answers, Array, Columns, Released
from dpcurate.learn.orders import Order, Rules, Scorer, first_orders, search, starts, walk
from dpcurate.learn.outcome import Evidence, Learned, Pair
from dpcurate.requests import Contrasts, Door, Gaussian, Laplace, Release

MOST_LEVELS = 32
"""Blocks of two columns have (r - 1)^2 coordinates; beyond this their covariances fill the memory."""
PLENTY = 1e4
"""More zCDP than this buys nothing: the noise is far below one row."""


@dataclass(frozen=True, slots=True)
class Found:
    """A graph by parents, and the probability of an edge for every pair."""

    parents: list[Columns]
    edges: Array
    order: list[int]


def first_sets(levels: Sequence[int], pairs: list[Columns], c: Constants) -> dict[Columns, float]:
    """The count, the margins and every allowed pair, with weights.

    The covariance of a pair carries noise 1/w2^2 + 2 mu/w1^2 + mu^2/w0^2 (mu: squared length of a
    centred margin) at the price P g^2 w2^2 + d g w1^2 + w0^2; these weights minimise the noise for
    that price (Cauchy-Schwarz).
    """
    d = len(levels)
    g = sum((r - 1) / r for r in levels) / d
    mu = c.skew * g
    margin = (2 * mu * len(pairs) * g / d) ** 0.25
    count = (mu * mu * len(pairs) * g * g) ** 0.25
    weights: dict[Columns, float] = {(): max(count, 0.1)}
    weights.update({(a,): max(margin, 0.1) for a in range(d)})
    weights.update(dict.fromkeys(pairs, 1.0))
    return weights


def best_threshold(p: Array) -> float:
    """The P(edge) from which on keeping edges raises the expected F1; at most a half."""
    p = np.sort(p)[::-1]
    f1 = 2 * np.cumsum(p) / (np.arange(1, len(p) + 1) + p.sum())
    return float(np.clip(f1.max() / 2, 0.05, 0.5)) if len(p) else 0.5


def lenient(order: Order, p: Array, c: Constants) -> Order:
    """The same search at the odds at which an edge pays in expected F1: without power, keep likely edges."""
    if not c.lenient:
        return order
    t = best_threshold(p[np.triu_indices(order.sc.d, 1)])
    return search(order.sc.shifted(c.lenient * math.log((1 - t) / t)), Random(0), [order.seq])


def learn(
    ev: Released, c: Constants, rules: Rules, rng: Random, warm: Sequence[Sequence[int]] = ()
) -> tuple[Found, Order]:
    """The best order found, its parents, and P(edge) averaged over orders nearby."""
    sc = Scorer(ev, c, rules)
    order = search(sc, rng, [*warm, *first_orders(sc, rng, starts(c, sc.d) - len(warm))])
    kept = list(order.seq)
    p = walk(order, rng, c.walk)
    order = lenient(Order(sc, kept), p, c)
    return Found(order.parents(), p * (1 - c.doubt), list(order.seq)), order


def triples(found: Found, sc: Scorer, floor: float) -> list[Columns]:
    """Triples that decide: two links in a row, or two parents of one child with a column that depends on both."""
    near, d = _links(found, sc, floor), sc.d
    out: set[Columns] = {t for t in combinations(range(d), 3) if _count(near, t) >= 2}
    for s in found.parents:
        for a, b in combinations(s, 2):
            both = (sc.alone[:, a] > 0) & (sc.alone[:, b] > 0)
            out |= {tuple(sorted((int(x), a, b))) for x in np.flatnonzero(both) if x not in (a, b)}
    return sorted(t for t in out if all(sc.ok[a, b] for a, b in combinations(t, 2)))


def _links(found: Found, sc: Scorer, floor: float) -> NDArray[np.bool_]:
    """Pairs that are, or may yet be, edges."""
    near = found.edges > floor
    for y, s in enumerate(found.parents):
        near[list(s), y] = near[y, list(s)] = True
    return np.asarray(near & sc.ok)


def _count(near: NDArray[np.bool_], t: Columns) -> int:
    return int(near[t[0], t[1]]) + int(near[t[0], t[2]]) + int(near[t[1], t[2]])


def again(found: Found, weights: dict[Columns, float], c: Constants) -> dict[Columns, float]:
    """Pairs still open after the first release, with their margins and the count, for a second look."""
    pairs = [u for u in weights if len(u) == 2 and c.open_from < found.edges[u] < 1 - c.open_from]
    singles = sorted({(a,) for u in pairs for a in u})
    return {u: weights[u] for u in [*([()] if pairs else []), *singles, *pairs]}


def quiet(ev: Released, share: float) -> float:
    """Noise variance over sampling variance of a typical pair, had all the budget gone to pairs."""
    cells = {u: math.prod(ev.levels[a] for a in u) for u in ev.raw if len(u) == 2}
    ratios = [share * ev.var[u] * cells[u] / ev.n for u in cells]
    return float(np.median(ratios)) if ratios else 0.0


@dataclass
class _Shop:
    """Buys contrasts with what the run may spend."""

    door: Door
    rho: float
    bought: list[int] = field(default_factory=list)
    paid: list[float] = field(default_factory=list)

    def buy(self, weights: dict[Columns, float], share: float) -> Answers:
        """One release for all the sets, at a share of the run's budget."""
        names = self.door.schema.names
        sets = tuple(tuple(names[a] for a in u) for u in weights)
        before = self.door.remaining
        cost = min(share * self.rho, before)
        noise = Laplace(epsilon=cost) if self.door.privacy().budget.pure else Gaussian(rho=cost)
        answer = self.door.ask(Release(Contrasts(sets, tuple(weights.values())), noise))
        self.bought.append(len(sets))
        self.paid.append(cost)
        return dict(zip(weights, zip(answer.parts, answer.scales, strict=True), strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureOnce:
    """The default: contrasts once, a second look where it pays, and a search that knows the noise."""

    constants: Constants = field(default_factory=Constants)

    def fit(self, door: Door, knowledge: Knowledge | None = None) -> Learned:
        """Learn with all that is left of the door's budget."""
        levels = _levels(door)
        if knowledge is not None:
            knowledge.check(door.schema.names)
        rules = Rules.of(door.schema.names, knowledge)
        shop = _Shop(door, min(door.remaining, PLENTY))
        found = self._discover(shop, levels, rules)
        return _learned(door, knowledge, rules, found, shop)

    def _discover(self, shop: _Shop, levels: list[int], rules: Rules) -> Found:
        c, rng = self.constants, Random(0)
        ev, weights = Released(levels, c), first_sets(levels, rules.pairs, c)
        ev.add(shop.buy(weights, 1 - c.share_later))
        if quiet(ev, 1 - c.share_later) > c.later_from:  # the noise of pairs still rules: the rest goes to them too
            ev.add(shop.buy(weights, c.share_later))
            return learn(ev, c, rules, rng)[0]
        scout, order = learn(ev, replace(c, effort=0, walk=0, lenient=0.0), rules, rng)
        want = dict.fromkeys(triples(scout, order.sc, c.maybe), 1.0) | again(scout, weights, c)
        if want:
            ev.add(shop.buy(want, c.share_later))
        return learn(ev, c, rules, rng, [order.seq])[0]


def _levels(door: Door) -> list[int]:
    columns = door.schema.columns
    if len(columns) < 2:
        raise RequestError(f"a graph needs at least two columns, the schema has {len(columns)}")
    for column in columns:
        if column.size > MOST_LEVELS:
            raise RequestError(
                f"column {column.name!r} has {column.size} levels, and this method takes at most {MOST_LEVELS}: "
                "declare fewer levels or bins, or use method='em-pc'"
            )
    return [column.size for column in columns]


def _learned(door: Door, knowledge: Knowledge | None, rules: Rules, found: Found, shop: _Shop) -> Learned:
    names = door.schema.names
    place = {y: i for i, y in enumerate(found.order)}
    edges = {frozenset((names[x], names[y])) for y, s in enumerate(found.parents) for x in s}
    edges |= {frozenset((names[int(x)], names[int(y)])) for x, y in np.argwhere(rules.given)}
    separators: dict[Pair, tuple[str, ...]] = {}
    evidence = []
    for a, b in rules.pairs:
        later = max(a, b, key=place.__getitem__)
        given = tuple(names[x] for x in found.parents[later] if x not in (a, b))
        pair = frozenset((names[a], names[b]))
        if pair not in edges:
            separators[pair] = given
        verdict = "kept" if pair in edges else "left out"
        sure = 1.0 if rules.given[a, b] else float(found.edges[a, b])
        evidence.append(Evidence((names[a], names[b]), given, verdict, sure))
    skeleton = Skeleton.of(names, edges, separators)
    confidence = {frozenset(e.pair): e.value for e in evidence if e.value is not None}
    return Learned(
        orient(skeleton, knowledge),
        skeleton,
        confidence=confidence,
        evidence=tuple(evidence),
        tests=tuple(shop.bought),
        leaked=tuple(shop.paid),
    )

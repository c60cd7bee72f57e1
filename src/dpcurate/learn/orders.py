"""Search over orders of the columns: which parents explain every dependence best.

score = edges * log prior odds - sum over non-adjacent pairs (x before y) of log BF(x, y | parents of y)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import combinations
from math import exp, log
from random import Random

import numpy as np
from numpy.typing import NDArray

from dpcurate.graphs.knowledge import Knowledge
from dpcurate.learn.constants import Constants
from dpcurate.learn.contrasts import Array, Columns, Released
from dpcurate.learn.residuals import alone, evidence

AGAINST = 1e4
"""What an order loses in score for each required arrow it would turn round."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Background knowledge by places: which pairs may be adjacent, which arrows are allowed, which edges are given."""

    pairs: list[Columns]
    allowed: NDArray[np.bool_]
    given: NDArray[np.bool_]

    @classmethod
    def of(cls, names: Sequence[str], knowledge: Knowledge | None) -> Rules:
        """From names; without knowledge everything is allowed."""
        d = len(names)
        if knowledge is None:
            every: list[Columns] = list(combinations(range(d), 2))
            return cls(every, ~np.eye(d, dtype=bool), np.zeros((d, d), dtype=bool))
        pairs: list[Columns] = [(a, b) for a, b in combinations(range(d), 2) if knowledge.allows(names[a], names[b])]
        allowed, given = np.zeros((d, d), dtype=bool), np.zeros((d, d), dtype=bool)
        for a, b in pairs:
            allowed[a, b] = knowledge.may_point(names[a], names[b])
            allowed[b, a] = knowledge.may_point(names[b], names[a])
            given[a, b] = given[b, a] = knowledge.requires(names[a], names[b])
        return cls(pairs, allowed, given)


class Scorer:
    """Best parents of a column among given predecessors; everything memoised."""

    def __init__(self, ev: Released, c: Constants, rules: Rules) -> None:
        self.ev, self.c, self.d, self.rules = ev, c, ev.d, rules
        odds = min(0.5, c.degree / max(ev.d - 1, 1))
        self.edge = log(odds / (1 - odds)) - c.penalty
        self.ok = np.array([[a != b and b in ev.fellows(a) for b in range(ev.d)] for a in range(ev.d)])
        self.rows: dict[tuple[int, Columns], Array] = {}
        self.best: dict[tuple[int, int], tuple[Columns, float]] = {}
        self.alone = np.zeros((ev.d, ev.d))
        for a, b in rules.pairs:
            self.alone[a, b] = self.alone[b, a] = alone(ev, a, b)

    def shifted(self, by: float) -> Scorer:
        """The same evidence with other odds for an edge."""
        other = copy(self)
        other.edge, other.best = self.edge + by, {}
        return other

    def row(self, y: int, s: Columns) -> Array:
        """Evidence of every column against y given s (0 for members of s and forbidden pairs)."""
        key = (y, s)
        if key not in self.rows:
            out = np.where(self.ok[y], self.alone[y], 0.0)
            out[list(s)] = 0
            # a column without a link to y or to s: conditioning changes nothing
            near = self.ok[:, y] & (self.alone[:, [y, *s]].max(axis=1) > self.c.linked)
            linked = [int(x) for x in np.flatnonzero(near) if x not in s]
            if s and linked:
                out[linked] = evidence(self.ev, linked, y, s)
            self.rows[key] = out
        return self.rows[key]

    def value(self, y: int, s: Columns, pre: Array) -> float:
        """The score of y with parents s among its predecessors; an order against given arrows is all but ruled out."""
        against = float(pre @ (self.rules.given[:, y] & ~self.rules.allowed[:, y]))
        return float(-(self.row(y, s) @ pre)) + self.edge * len(s) - AGAINST * against

    def parents(self, y: int, pre: Array, mask: int) -> tuple[Columns, float]:
        """The best parents found, and their score."""
        key = (y, mask)
        if key not in self.best:
            self.best[key] = self.greedy(y, pre)
        return self.best[key]

    def greedy(self, y: int, pre: Array) -> tuple[Columns, float]:
        """Add, drop or swap a parent while that helps; a dear kind of move only when the cheap ones fail."""
        s: Columns = self.fixed(y, pre)
        v = self.value(y, s, pre)
        while True:
            for moves in (
                self.larger,
                self.smaller,
                self.swapped,
            ):  # the dear kind of move only when the cheap ones fail
                better = max(((self.value(y, t, pre), t) for t in moves(y, s, pre)), default=(v, s))
                if better[0] > v + 1e-9:
                    v, s = better
                    break
            else:
                return s, v

    def fixed(self, y: int, pre: Array) -> Columns:
        """Predecessors that knowledge gives as parents; they stay whatever the evidence says."""
        return tuple(int(x) for x in np.flatnonzero((pre > 0) & self.rules.given[y] & self.rules.allowed[:, y]))

    def unexplained(self, y: int, s: Columns, pre: Array, count: int) -> list[int]:
        """Predecessors most clearly dependent on y given s; none if together they are not worth an edge."""
        r = np.where(pre > 0, self.row(y, s), -np.inf)
        if np.maximum(r, 0).sum() < -self.edge:
            return []
        top = np.argsort(-r)[:count]
        enough = max(0.0, self.c.near_top * r[top[0]])
        return [int(x) for x in top if r[x] > enough and x not in s and self.rules.allowed[x, y]]

    def larger(self, y: int, s: Columns, pre: Array) -> Iterable[Columns]:
        """One parent more."""
        if len(s) < self.c.max_parents:
            for x in self.unexplained(y, s, pre, self.c.tries):
                yield tuple(sorted((*s, x)))

    def smaller(self, y: int, s: Columns, pre: Array) -> Iterable[Columns]:
        """One parent less."""
        for x in s:
            if not self.rules.given[x, y]:
                yield tuple(t for t in s if t != x)

    def swapped(self, y: int, s: Columns, pre: Array) -> Iterable[Columns]:
        """Another parent in place of one."""
        for x in self.unexplained(y, s, pre, 1):
            for t in s:
                if not self.rules.given[t, y]:
                    yield tuple(sorted((*(u for u in s if u != t), x)))


class Order:
    """An order of the columns with each one's best parents among its predecessors."""

    def __init__(self, sc: Scorer, seq: Sequence[int]) -> None:
        self.sc, self.seq = sc, list(seq)
        self.val = [0.0] * sc.d
        for i in range(sc.d):
            self.refresh(i)

    def refresh(self, i: int) -> None:
        """Score the column at a place anew."""
        self.val[self.seq[i]] = self.at(self.seq[i], self.seq[:i])[1]

    def at(self, y: int, before: Sequence[int]) -> tuple[Columns, float]:
        """Best parents of y after these columns, and their score."""
        pre = np.zeros(self.sc.d)
        pre[list(before)] = 1
        return self.sc.parents(y, pre, sum(1 << x for x in before))

    def total(self) -> float:
        """The score of the order."""
        return sum(self.val)

    def swap_gain(self, i: int) -> tuple[float, float, float]:
        """Change of score when positions i and i+1 swap, and the two new values."""
        u, v = self.seq[i], self.seq[i + 1]
        head = self.seq[:i]
        nv, nu = self.at(v, head)[1], self.at(u, [*head, v])[1]
        return nu + nv - self.val[u] - self.val[v], nu, nv

    def swap(self, i: int, nu: float, nv: float) -> None:
        """Swap positions i and i + 1, whose new values are known."""
        u, v = self.seq[i], self.seq[i + 1]
        self.seq[i], self.seq[i + 1], self.val[u], self.val[v] = v, u, nu, nv

    def best_place(self, v: int) -> bool:
        """Slide v to both ends of the order by swaps, keep the best place; True if it moved."""
        home = list(self.seq), list(self.val)
        best, place = 1e-6, None
        for step in (-1, 1):
            self.seq, self.val, gain = list(home[0]), list(home[1]), 0.0
            i = self.seq.index(v)
            while 0 <= i + step < self.sc.d:
                k = min(i, i + step)
                more, nu, nv = self.swap_gain(k)
                self.swap(k, nu, nv)
                gain, i = gain + more, i + step
                if gain > best:
                    best, place = gain, (list(self.seq), list(self.val))
        self.seq, self.val = place or home
        return place is not None

    def climb(self, rng: Random) -> None:
        """Move columns to their best places until none moves, or for so many sweeps."""
        for _ in range(self.sc.c.sweeps):
            if not sum(self.best_place(v) for v in shuffled(self.sc.d, rng)):
                return

    def parents(self) -> list[Columns]:
        """The best parents of every column."""
        out: list[Columns] = [()] * self.sc.d
        for i, y in enumerate(self.seq):
            out[y] = self.at(y, self.seq[:i])[0]
        return out


def starts(c: Constants, d: int) -> int:
    """How many orders the search begins with."""
    return min(8, max(2, c.effort // max(d, 1))) if c.effort else 1


def first_orders(sc: Scorer, rng: Random, count: int) -> Iterable[Sequence[int]]:
    """Columns with most total evidence first (likely hubs), then random ones."""
    if count > 0:
        yield list(np.argsort(-np.maximum(sc.alone, 0).sum(1)))
    for _ in range(count - 1):
        yield shuffled(sc.d, rng)


def search(sc: Scorer, rng: Random, starts: Iterable[Sequence[int]]) -> Order:
    """Climb from every start and take the best."""
    found = []
    for seq in starts:
        o = Order(sc, seq)
        o.climb(rng)
        found.append(o)
    return max(found, key=lambda o: o.total())


def probabilities(o: Order) -> Array:
    """P(edge) of every pair at one order: how much the score would lose or gain by toggling it."""
    sc, p = o.sc, np.zeros((o.sc.d, o.sc.d))
    for i, y in enumerate(o.seq):
        s, v = o.at(y, o.seq[:i])
        pre = np.zeros(sc.d)
        pre[o.seq[:i]] = 1
        row = sc.row(y, s)
        for x in o.seq[:i]:
            if sc.ok[x, y]:
                gain = v - sc.value(y, tuple(t for t in s if t != x), pre) if x in s else row[x] + sc.edge
                p[x, y] = 1 / (1 + exp(-max(min(gain, 500), -500)))
    return p + p.T


def walk(o: Order, rng: Random, steps: int) -> Array:
    """Average P(edge) over orders visited by a Metropolis walk of adjacent swaps."""
    p, cnt = probabilities(o), 1
    for t in range(steps if o.sc.d > 1 else 0):
        i = rng.randrange(o.sc.d - 1)
        g, nu, nv = o.swap_gain(i)
        if g >= 0 or rng.random() < exp(g):
            o.swap(i, nu, nv)
        if t % 10 == 9:
            p, cnt = p + probabilities(o), cnt + 1
    return p / cnt


def shuffled(d: int, rng: Random) -> list[int]:
    """All columns in random order; the stream is fixed, so a run can be repeated."""
    return rng.sample(range(d), d)

"""Steps of a search over orders that turn one arrow (the tucks of GRaSP: Lam, Andrews and Ramsey, 2022).

An effect that stands before its causes has them joined; to get it behind them it would have to pass their ancestors,
too, which no slide of a single column does. A tuck takes an effect and all its ancestors to before one of its causes,
and a climb from there shows what that was worth.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from dpcurate.learn.measure_once.blocks import Columns
from dpcurate.learn.measure_once.order_search import Families, Order, best_order

MOST_LOST = 12.0
"""What a tuck may cost at once: one that costs more is seldom made up for by a climb."""
WORTH = 1.0
"""The least gain that is worth another round."""


def tucked_on(order: Order[Families], random: Random) -> Order[Families]:
    """Climb from every tuck of an order, those first that cost least, until none gains anything."""
    while (better := _better(order, random)) is not None:
        order = better
    return order


def _better(order: Order[Families], random: Random) -> Order[Families] | None:
    """The first that gains something."""
    parents, total = order.parents(), order.total()
    arrows = [(cause, effect) for effect, causes in enumerate(parents) for cause in causes]
    starts = [Order(order.families, tucked(order.columns, parents, *arrow)) for arrow in arrows]
    costs = [total - start.total() for start in starts]
    for place in sorted(range(len(starts)), key=costs.__getitem__):
        if costs[place] > MOST_LOST:
            break
        climbed = best_order(order.families, random, [starts[place].columns])
        if climbed.total() > total + WORTH:
            return climbed
    return None


def tucked(columns: Sequence[int], parents: Sequence[Columns], cause: int, effect: int) -> list[int]:
    """An order in which an effect, and those of its ancestors that come after a cause of it, come before that cause."""
    first, last = columns.index(cause), columns.index(effect)
    above, between = _ancestors(parents, effect), columns[first + 1 : last]
    passing, staying = ([x for x in between if (x in above) == passes] for passes in (True, False))
    return [*columns[:first], *passing, effect, cause, *staying, *columns[last + 1 :]]


def _ancestors(parents: Sequence[Columns], column: int) -> set[int]:
    found, left = set[int](), [column]
    while left:
        more = set(parents[left.pop()]) - found
        found |= more
        left.extend(more)
    return found

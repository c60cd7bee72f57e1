"""An order of columns as background knowledge."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from dpcurate.errors import GraphError
from dpcurate.graphs.knowledge import Knowledge
from dpcurate.schema import Schema
from dpcurate.schema.order import checked_order, parsed_order, tiers_of

GivenOrder = str | Iterable[Iterable[str]] | None
"""'sex, age | smoker | *', or lists of names; None where nothing is said, empty for no order."""


def with_order(knowledge: Knowledge | None, order: GivenOrder, schema: Schema) -> Knowledge | None:
    """Knowledge with its tiers, with those of the order that is given, or else with those of the schema."""
    if order is None:
        groups = schema.order if knowledge is None or not knowledge.tiers else ()
    else:
        groups = checked_order(parsed_order(order) if isinstance(order, str) else order, schema.names)
    if not groups:
        return knowledge
    if knowledge is not None and knowledge.tiers:
        raise GraphError("the knowledge has tiers, and an order is given too: leave one of them out")
    return replace(knowledge or Knowledge(), tiers=tuple(map(frozenset, tiers_of(groups, schema.names))))

"""P(a causes b) of an arrow a -> b, where something outside the table may drive both instead.

The same evidence is read once more with hidden causes allowed (`hidden.py`). An arrowhead at a there means that a
hidden cause explains the edge as well or better; a tail means that none does, and a circle leaves it open.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from dpcurate.graphs.base_graph import Arrow, Mark
from dpcurate.learn.measure_once.hidden import Found

CAUSES: Mapping[Mark, float] = MappingProxyType({"tail": 0.97, "circle": 0.9, "arrow": 0.5})
"""How often a causes b, if b does not cause a, by the mark at a: fitted on random worlds of which a part is hidden."""


def causes(found: Found) -> dict[Arrow, float]:
    """For each edge of either way round; an edge that is not in the PAG counts as one with an arrowhead."""
    return {(a, b): CAUSES[mark] for (b, a), mark in found.pag.marks.items()}

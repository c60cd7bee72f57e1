"""Worlds whose truth is known, by family: what is stated of them can be checked.

from benchmarks.worlds import FAMILIES
world = FAMILIES["bent"](seed, rows)      # a World: table, schema and truth; equal seeds give equal worlds

levels    networks and tables of levels      numbers   links of numbers, margins, tails
tables    mixtures, missing cells, clusters, copies, hidden columns      faults    what real tables have, one by one
"""

from collections.abc import Callable

from benchmarks.worlds import faults, levels, numbers, tables
from benchmarks.worlds.world import World

FAMILIES: dict[str, Callable[[int, int], World]] = {
    **levels.FAMILIES,
    **numbers.FAMILIES,
    **tables.FAMILIES,
    **faults.FAMILIES,
}
"""A world of a seed and a number of rows. Families in a new module are added here."""

__all__ = ["FAMILIES", "World"]

"""Moved to dpcurate.accounting.composition."""

from dpcurate.accounting.composition import RULES as LENSES
from dpcurate.accounting.composition import CompositionReport as Lens
from dpcurate.accounting.composition import under

__all__ = ["LENSES", "Lens", "under"]

"""From places of levels to the cells of a table."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpcurate.networks.network import Codes
from dpcurate.networks.streams import stream
from dpcurate.schema import Numeric, Schema

NOTE = (
    "A synthetic table is good for writing and testing code, for teaching, and for tables of a column or two and of a "
    "column with its causes, which it keeps up to the noise. It keeps nothing that the graph leaves out, rare "
    "combinations are the model's guess, and tests and errors computed from its rows ignore both the noise and that "
    "rows can be drawn without end: take those of the model instead. No row is anybody's."
)


def cells_of(schema: Schema, codes: Codes, seed: int) -> dict[str, Any]:
    """Names of levels; a number with bins is drawn evenly within its bin."""
    return {c.name: _cells(c, codes[:, i], seed) for i, c in enumerate(schema.columns)}


def _cells(column: Any, codes: Any, seed: int) -> Any:
    if not isinstance(column, Numeric):
        return np.array(column.levels, dtype=object).take(codes)
    cuts = np.array([column.low, *column.edges, column.high])
    within = stream(seed, f"cells of {column.name}").random(len(codes))
    return np.minimum(cuts[codes] + within * (cuts[1:] - cuts[:-1])[codes], column.high)

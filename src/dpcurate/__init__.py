"""Causal graph discovery with a privacy guarantee that is true."""

from dpcurate import networks
from dpcurate.budget import Budget
from dpcurate.errors import DpcurateError
from dpcurate.private.curator import Curator
from dpcurate.schema import Categorical, Neighbours, Numeric, Ordinal, Person, Schema

__all__ = [
    "Budget",
    "Categorical",
    "Curator",
    "DpcurateError",
    "Neighbours",
    "Numeric",
    "Ordinal",
    "Person",
    "Schema",
    "networks",
]
__version__ = "0.1.0"

"""Causal graph discovery with a privacy guarantee that is true."""

from dpcurate import networks
from dpcurate.budget import Budget
from dpcurate.discovery import Discovery, discover, learn
from dpcurate.errors import DpcurateError
from dpcurate.graphs.knowledge import Knowledge
from dpcurate.private.curator import Curator
from dpcurate.schema import Categorical, Neighbours, Numeric, Ordinal, Person, Schema

__all__ = [
    "Budget",
    "Categorical",
    "Curator",
    "Discovery",
    "DpcurateError",
    "Knowledge",
    "Neighbours",
    "Numeric",
    "Ordinal",
    "Person",
    "Schema",
    "discover",
    "learn",
    "networks",
]
__version__ = "0.1.0"

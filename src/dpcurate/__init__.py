"""Causal graph discovery with a privacy guarantee that is true."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpcurate import networks
    from dpcurate.accounting import Budget
    from dpcurate.discovery import Discovery, discover, fit
    from dpcurate.errors import DpcurateError
    from dpcurate.graphs.knowledge import Knowledge
    from dpcurate.planning.plan import plan
    from dpcurate.private.curator import Curator
    from dpcurate.private.draft import draft
    from dpcurate.schema import Categorical, Neighbours, Numeric, Ordinal, Person, Schema

__all__ = [
    "Budget", "Categorical", "Curator", "Discovery", "DpcurateError", "Knowledge", "Neighbours", "Numeric", "Ordinal",
    "Person", "Schema", "discover", "draft", "fit", "networks", "plan",
]  # fmt: skip
__version__ = "0.1.0"
_HOME = {
    "Budget": "accounting", "Discovery": "discovery", "discover": "discovery", "fit": "discovery",
    "DpcurateError": "errors", "Knowledge": "graphs.knowledge", "Curator": "private.curator", "draft": "private.draft",
    "Categorical": "schema", "Neighbours": "schema", "Numeric": "schema", "Ordinal": "schema", "Person": "schema",
    "Schema": "schema", "plan": "planning.plan",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `dpcurate --help` comes at once (PEP 562)."""
    if name == "networks":
        return import_module("dpcurate.networks")
    if name not in _HOME:
        raise AttributeError(f"module 'dpcurate' has no attribute {name!r}")
    value = getattr(import_module(f"dpcurate.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]

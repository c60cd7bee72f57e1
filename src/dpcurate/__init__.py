"""Differentially private causal discovery with proven guarantees."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpcurate import audit, errors, networks, queries
    from dpcurate.accounting import Budget
    from dpcurate.errors import BudgetExceeded, DpcurateError, LedgerError, NotPrivate, OwnerError, SchemaError
    from dpcurate.graphs.graph import Cpdag, Dag, Pag
    from dpcurate.graphs.knowledge import Knowledge
    from dpcurate.graphs.metrics import score, score_pag
    from dpcurate.learn import methods
    from dpcurate.models import Model, ScoreModel
    from dpcurate.planning.plan import plan
    from dpcurate.private.curator import Curator
    from dpcurate.private.draft import draft
    from dpcurate.private.ledger import Ledger
    from dpcurate.result.asked import Asked
    from dpcurate.result.discovery import Discovery
    from dpcurate.schema import Adjacency, Categorical, Neighbours, Numeric, Ordinal, Person, Schema, TextFormat
    from dpcurate.study.calls import ask, discover, discover_from, fit, open, quantify, reopen
    from dpcurate.study.quantiles import Quantiles
    from dpcurate.study.questions import asked_from
    from dpcurate.study.study import Study

__all__ = [
    "Adjacency", "Asked", "Budget", "BudgetExceeded", "Categorical", "Cpdag", "Curator", "Dag", "Discovery",
    "DpcurateError", "Knowledge", "Ledger", "LedgerError", "Model", "Neighbours", "NotPrivate", "Numeric", "Ordinal",
    "OwnerError", "Pag", "Person", "Quantiles", "Schema", "SchemaError", "ScoreModel", "Study", "TextFormat", "ask",
    "asked_from", "audit", "discover", "discover_from", "draft", "errors", "fit", "methods", "networks", "open",
    "plan", "quantify", "queries", "reopen", "score", "score_pag",
]  # fmt: skip
__version__ = "0.2.0"
_MODULES = {
    "audit": "audit", "errors": "errors", "methods": "learn.methods", "networks": "networks",
    "queries": "queries",
}  # fmt: skip
_HOMES = {
    "accounting": ("Budget",),
    "result.asked": ("Asked",),
    "result.discovery": ("Discovery",),
    "errors": ("BudgetExceeded", "DpcurateError", "LedgerError", "NotPrivate", "OwnerError", "SchemaError"),
    "graphs.graph": ("Cpdag", "Dag", "Pag"),
    "graphs.knowledge": ("Knowledge",),
    "graphs.metrics": ("score", "score_pag"),
    "models": ("Model", "ScoreModel"),
    "planning.plan": ("plan",),
    "private.curator": ("Curator",),
    "private.draft": ("draft",),
    "private.ledger": ("Ledger",),
    "schema": ("Adjacency", "Categorical", "Neighbours", "Numeric", "Ordinal", "Person", "Schema", "TextFormat"),
    "study.calls": ("ask", "discover", "discover_from", "fit", "open", "quantify", "reopen"),
    "study.quantiles": ("Quantiles",),
    "study.questions": ("asked_from",),
    "study.study": ("Study",),
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `dpcurate --help` comes at once (PEP 562)."""
    if name in _MODULES:
        return import_module(f"dpcurate.{_MODULES[name]}")
    for home, names in _HOMES.items():
        if name in names:
            value = getattr(import_module(f"dpcurate.{home}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'dpcurate' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]

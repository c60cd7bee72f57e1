"""Differentially private causal discovery with proven guarantees."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpcurate import _messages as messages
    from dpcurate import accounting, audit, benchmark, errors, networks, pooling, queries, service, studio
    from dpcurate._files import Inputs, OutputFolder
    from dpcurate.accounting import Budget
    from dpcurate.errors import BudgetExceeded, DpcurateError, LedgerError, NotPrivate, OwnerError, SchemaError
    from dpcurate.graphs.graph import Cpdag, Dag, Pag
    from dpcurate.graphs.knowledge import Knowledge
    from dpcurate.graphs.metrics import score, score_pag
    from dpcurate.learn import methods
    from dpcurate.models import Model
    from dpcurate.planning.plan import Plan, plan
    from dpcurate.pooling import Codebook, pool
    from dpcurate.private.curator import Curator
    from dpcurate.private.ledger import Ledger
    from dpcurate.private.owner.check import TableCheck, check_table
    from dpcurate.private.owner.draft import Draft, draft, draft_schema
    from dpcurate.remote.connect import connect
    from dpcurate.result.asked import Asked
    from dpcurate.result.discovery import Discovery, diff
    from dpcurate.result.threshold import Threshold
    from dpcurate.schema import Adjacency, Categorical, Neighbours, Numeric, Ordinal, Person, Schema, TextFormat
    from dpcurate.study.calls import ask, discover, discover_from, fit, open, quantify, reopen
    from dpcurate.study.quantiles import Quantiles
    from dpcurate.study.questions import asked_from
    from dpcurate.study.study import Preview, Study

__all__ = [
    "Adjacency", "Asked", "Budget", "BudgetExceeded", "Categorical", "Codebook", "Cpdag", "Curator", "Dag", "Discovery",
    "DpcurateError", "Draft", "Inputs", "Knowledge", "Ledger", "LedgerError", "Model", "Neighbours", "NotPrivate",
    "Numeric", "Ordinal", "OutputFolder", "OwnerError", "Pag", "Person", "Plan", "Preview", "Quantiles", "Schema",
    "SchemaError", "Study", "TableCheck", "TextFormat", "Threshold", "accounting", "ask", "asked_from", "audit",
    "benchmark", "check_table", "connect", "diff", "discover", "discover_from", "draft", "draft_schema", "errors",
    "fit", "messages", "methods", "networks", "open", "plan", "pool", "pooling", "quantify", "queries", "reopen",
    "score", "score_pag", "service", "studio",
]  # fmt: skip
__version__ = "0.2.0"
_MODULES = {
    "accounting": "accounting", "audit": "audit", "benchmark": "benchmark", "errors": "errors", "messages": "_messages",
    "methods": "learn.methods", "networks": "networks", "pooling": "pooling", "queries": "queries",
    "service": "service", "studio": "studio",
}  # fmt: skip
_HOMES = {
    "_files": ("Inputs", "OutputFolder"),
    "accounting": ("Budget",),
    "remote.connect": ("connect",),
    "result.asked": ("Asked",),
    "result.threshold": ("Threshold",),
    "result.discovery": ("Discovery", "diff"),
    "errors": ("BudgetExceeded", "DpcurateError", "LedgerError", "NotPrivate", "OwnerError", "SchemaError"),
    "graphs.graph": ("Cpdag", "Dag", "Pag"),
    "graphs.knowledge": ("Knowledge",),
    "graphs.metrics": ("score", "score_pag"),
    "models": ("Model",),
    "planning.plan": ("Plan", "plan"),
    "pooling": ("Codebook", "pool"),
    "private.curator": ("Curator",),
    "private.owner.check": ("TableCheck", "check_table"),
    "private.owner.draft": ("Draft", "draft", "draft_schema"),
    "private.ledger": ("Ledger",),
    "schema": ("Adjacency", "Categorical", "Neighbours", "Numeric", "Ordinal", "Person", "Schema", "TextFormat"),
    "study.calls": ("ask", "discover", "discover_from", "fit", "open", "quantify", "reopen"),
    "study.quantiles": ("Quantiles",),
    "study.questions": ("asked_from",),
    "study.study": ("Preview", "Study"),
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

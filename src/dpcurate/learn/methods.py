"""The registry of methods: read by the command line, the planner, the audit, the reproduction, docs and tests.

A new method is one module with a recipe, a frozen dataclass that has `fit`, and one line of the table below.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from types import MappingProxyType
from typing import Any, Literal, Protocol, TypeVar

from dpcurate._messages import did_you_mean, shown
from dpcurate.errors import NotPrivate, QueryError
from dpcurate.graphs.knowledge import Knowledge
from dpcurate.learn.constraint.recipes import EMPC, PC, SVTPC, CuratePC, PrivPC
from dpcurate.learn.measure_once import MeasureOnce
from dpcurate.learn.score.exact_search import OrderSearch
from dpcurate.learn.score.noised_gradients import CurateScore, Noleaks
from dpcurate.learn.score.notears import Notears, NotearsOnMoments
from dpcurate.queries import Queryable
from dpcurate.result.fit import FitResult

__all__ = [
    "EMPC", "PC", "SVTPC", "CuratePC", "CurateScore", "Family", "Listed", "MeasureOnce", "Method", "Noleaks",
    "Notears", "NotearsOnMoments", "OrderSearch", "PrivPC", "Variant", "check_keeps_budget", "entry_of",
    "find", "get", "listed", "private", "register",
    "settings_of", "with_settings",
]  # fmt: skip

Family = Literal["order", "constraint", "score"]
Variant = Literal["proved", "published"]
Asks = Literal["sums", "ranks", "choices", "gates", "exact"]
Group = Literal["recommended", "from the CURATE paper", "baselines", "not private"]


class Method(Protocol):
    """Anything that learns a graph through a queryable."""

    def fit(self, queryable: Queryable, knowledge: Knowledge | None = None) -> FitResult:
        """Learn within what is left of the queryable's budget."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A method by its name: its recipe, its family, what it does, and what it needs.

    `columns` is how it reads them, as 'levels' (numbers by their bins, which they need), as 'numbers' (levels by
    their place), or each as what it is ('any columns'). `pure` says whether a budget without delta can pay for
    it. What is not `private` needs an unlimited budget or a curator opened with allow_unproved=True. `asks` is what it
    asks of a table: 'sums' over rows, which several sites can answer together, or also 'ranks' (pairs of rows),
    'choices' by private scores, or open 'gates'.
    """

    name: str
    recipe: Method
    family: Family
    about: str
    columns: Literal["levels", "numbers", "any columns"] = "levels"
    pure: bool = True
    private: bool = True
    kind: Group = "baselines"
    asks: Asks = "sums"

    @property
    def group(self) -> Group:
        """Under which heading it is listed."""
        return self.kind if self.private else "not private"

    @property
    def needs(self) -> str:
        """What a call has to give, in words."""
        budget = "any budget" if self.pure else "delta > 0"
        return f"{budget if self.private else 'NOT PRIVATE'}; {self.columns}"


_METHODS: dict[str, Listed] = {}


def register(method: Listed) -> None:
    """Enter a method under a name of its own."""
    if method.name in _METHODS:
        raise QueryError(f"there is a method {method.name!r} already: choose another name")
    _METHODS[method.name] = method


_DEFAULT = "Recommended. Releases a few statistics, then refines adaptively."
_PAPER: Group = "from the CURATE paper"
for _entry in (
    Listed("auto", MeasureOnce(), "order", _DEFAULT, "any columns", kind="recommended"),
    Listed("measure-once", MeasureOnce(), "order", _DEFAULT, "any columns", kind="recommended"),
    Listed(
        "curate-pc",
        CuratePC(max_order=2),
        "constraint",
        "PC; noised values, optimised budgets.",
        kind=_PAPER,
        asks="ranks",
    ),
    Listed("curate-score", CurateScore(), "score", "Noleaks with budgets that grow.", "numbers", False, kind=_PAPER),
    Listed("em-pc", EMPC(max_order=2), "constraint", "PC; the exponential mechanism removes edges.", asks="choices"),
    Listed(
        "svt-pc",
        SVTPC(max_order=2),
        "constraint",
        "PC; above-threshold until an edge goes; misses are free.",
        asks="gates",
    ),
    Listed(
        "priv-pc", PrivPC(max_order=2), "constraint", "PC; above-threshold, then a noised value decides.", asks="gates"
    ),
    Listed("notears-moments", NotearsOnMoments(), "score", "NOTEARS on moments released once.", "numbers", False),
    Listed("noleaks", Noleaks(), "score", "Descent on noised clipped gradients, even budgets.", "numbers", False),
    Listed("pc", PC(), "constraint", "The PC algorithm on exact tables.", private=False, asks="exact"),
    Listed(
        "order-search",
        OrderSearch(),
        "score",
        "Orders by BIC, BDeu or BGe on exact tables.",
        private=False,
        asks="exact",
    ),
    Listed("notears", Notears(), "score", "NOTEARS on exact moments.", "numbers", private=False, asks="exact"),
):
    register(_entry)


def listed(variant: Variant = "proved") -> Mapping[str, Listed]:
    """Every method by its name; variant 'published' lists what papers printed or coded, which is NOT PRIVATE."""
    if variant == "published":
        from dpcurate.published import METHODS

        return METHODS
    if variant != "proved":
        raise QueryError(f"variant must be 'proved' or 'published', got {variant!r}")
    return dict(_METHODS)


def private() -> dict[str, Method]:
    """The recipes that are proved, by name."""
    return {name: entry.recipe for name, entry in _METHODS.items() if entry.private}


def get(method: str | Method, *, variant: Variant = "proved", latent: bool = False) -> Method:
    """The recipe of a name, or the recipe itself; with `latent` its form where common causes may be hidden."""
    if latent:
        return with_hidden(method)
    return method if not isinstance(method, str) else find(method, variant=variant).recipe


def with_hidden(method: str | Method) -> Method:
    """The same recipe where common causes may be hidden: its result is a PAG."""
    recipe = get(method)
    if not hasattr(recipe, "latent"):
        able = ", ".join(name for name, entry in _METHODS.items() if hasattr(entry.recipe, "latent"))
        name = method if isinstance(method, str) else type(recipe).__name__
        raise QueryError(f"{name} has no form for hidden causes, so latent=True has no use; these have one: {able}")
    return replace(recipe, latent=True)  # type: ignore[type-var]


def check_keeps_budget(method: str | Method) -> None:
    """Refuse a method that no finite budget can pay for, before a table is opened or a ledger made."""
    entry = find(method) if isinstance(method, str) else entry_of(method)
    if entry is not None and not entry.private:
        raise NotPrivate(
            f"{entry.name} is NOT PRIVATE, and a budget was named; nothing was read and nothing was made. Choose a "
            "private method, or fit it on Curator(table, schema, budget=Budget.unlimited())"
        )


def entry_of(method: Method) -> Listed | None:
    """What the registry says of a recipe of this kind, whatever its settings."""
    return next((entry for entry in _METHODS.values() if type(entry.recipe) is type(method)), None)


def find(name: str, *, variant: Variant = "proved") -> Listed:
    """The entry of a method, or a refusal that names those there are."""
    known = listed(variant)
    if name not in known:
        what = "method" if variant == "proved" else "published method"
        raise QueryError(f"there is no {what} {name!r}{did_you_mean(name, list(known))}")
    return known[name]


# ---------------------------------------------------------------------------------------------------------------------
# Settings of a method as text, `name=value`: listed, and checked against the fields of its recipe.


_NESTED = ("reading", "claim")
"""Parts of a published recipe. The constants of the default are left out: they were chosen together."""
_PLAIN = (bool, int, float, str, type(None))
Recipe = TypeVar("Recipe")


def settings_of(recipe: Any) -> dict[str, Any]:
    """What can be set and its value, also of a part such as a reading: `reading.coin`."""
    found: dict[str, Any] = {}
    for field in fields(recipe) if is_dataclass(recipe) else ():
        value = getattr(recipe, field.name)
        if isinstance(value, _PLAIN):
            found[field.name] = value
        elif field.name in _NESTED:
            found |= {f"{field.name}.{name}": inner for name, inner in settings_of(value).items()}
    return found


def with_settings(recipe: Recipe, given: Sequence[str]) -> Recipe:
    """The recipe with these settings, such as ``["threshold=0.01"]``; what has no meaning for it is refused."""
    for setting in given:
        name, equals, text = (part.strip() for part in setting.partition("="))
        known = settings_of(recipe)
        if not equals:
            raise QueryError(f"a setting is name=value, such as threshold=0.01, not {shown(setting)}")
        if name not in known:
            raise QueryError(f"the method has no setting {name!r}{did_you_mean(name, tuple(known))}")
        try:
            recipe = _replaced(recipe, name.split("."), _value(text, known[name]))
        except (TypeError, ValueError) as problem:
            raise QueryError(f"setting {setting}: {problem}") from None
    return recipe


def _replaced(whole: Any, path: Sequence[str], value: Any) -> Any:
    first, *rest = path
    return replace(whole, **{first: _replaced(getattr(whole, first), rest, value) if rest else value})


def _value(text: str, now: Any) -> Any:
    """The text as a value of the kind that it replaces."""
    if text.lower() == "none":
        return None
    if isinstance(now, bool):
        if text.lower() not in ("true", "false"):
            raise ValueError("use true or false")
        return text.lower() == "true"
    if isinstance(now, str):
        return text
    kinds = {int: (int,), float: (float,)}.get(type(now), (int, float, str))
    for kind in kinds:
        try:
            return kind(text)
        except ValueError:
            continue
    raise ValueError(f"{shown(text)} is not a {'whole number' if type(now) is int else 'number'}")


# ---------------------------------------------------------------------------------------------------------------------
# What each method does, for readers of a report who will never open its code. Data alone: no method is loaded.


_PC = (
    "The PC algorithm starts with an edge between every two columns and removes those that some other columns explain. "
)
DESCRIPTIONS: Mapping[str, str] = MappingProxyType(
    {
        "MeasureOnce": (
            "Noised statistics of sets of columns were released, in a few large releases instead of many small ones. "
            "Everything else was computed from them, without another look at the table: the order of the columns and "
            "the parents of each that fit best, given the noise, and the probability of every edge and direction."
        ),
        "EMPC": _PC + "Which edge goes next is chosen at random in favour of the weakest (exponential mechanism).",
        "SVTPC": _PC
        + "A noised comparison with a noised threshold says when an edge may go; each that goes is paid for.",
        "PrivPC": _PC
        + "A cheap noised comparison picks out weak edges; a second, noised look decides on each of these.",
        "CuratePC": _PC
        + "Each edge is judged by a noised number. The budget of each round is found by optimisation beforehand.",
        "NotearsOnMoments": (
            "Noised means and products of columns were released once. A graph of linear effects was fitted to them "
            "(NOTEARS), improved by a local search, and edges that do not stand out from the noise were left out."
        ),
        "Noleaks": (
            "A graph of linear effects was fitted step by step (NOTEARS), each step by a noised gradient that was paid "
            "for, all at the same price."
        ),
        "CurateScore": (
            "A graph of linear effects was fitted step by step (NOTEARS), each step by a noised gradient that was paid "
            "for; later steps, which matter more, were given more of the budget."
        ),
        "PC": _PC + "Tests were exact, so this protects nobody.",
        "OrderSearch": (
            "A search for the order of the columns and the parents of each that explain the exact table best. This "
            "protects nobody."
        ),
        "Notears": "A graph of linear effects was fitted to exact means and products of columns. This protects nobody.",
        "PublishedEMPC": "EM-PC as coded with Priv-PC.",
        "PublishedSVTPC": "SVT-PC as printed.",
        "PublishedPrivPC": "Priv-PC as coded.",
        "PublishedCuratePC": "CURATE's Algorithm 1 as printed.",
        "PublishedNoleaks": "NOLEAKS as in its artifact, on all rows.",
        "PublishedCurateScore": "Score-based CURATE.",
        "PublishedPC": "PC with Kendall's test as the papers compute it.",
    }
)
"""By the class of the recipe. Any other method is described by its line in the registry."""

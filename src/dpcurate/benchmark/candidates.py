"""What is compared: methods by name, recipes of one's own, and methods that read the rows themselves."""

from __future__ import annotations

import hashlib
import inspect
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np

from dpcurate._messages import shown
from dpcurate._typing import FloatArray
from dpcurate._validation import check_threshold
from dpcurate.accounting import Budget
from dpcurate.benchmark import added_files
from dpcurate.errors import QueryError
from dpcurate.graphs.knowledge import Knowledge
from dpcurate.learn import methods as registry
from dpcurate.learn.constraint.independence import ExactTest
from dpcurate.learn.constraint.pc_search import PairQuestion, search
from dpcurate.learn.constraint.recipes import deletable_pairs, learned
from dpcurate.learn.methods import Method
from dpcurate.learn.score.acyclic import AllowedArrows, empty, to_spend
from dpcurate.learn.score.notears import released_moments
from dpcurate.learn.score.objectives import ReleasedMoments, TooNoisy
from dpcurate.queries import Gaussian, Moments, Queryable, Release
from dpcurate.result.fit import FitResult
from dpcurate.schema import Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisedCovariance:
    """The PC algorithm on released moments, with partial correlations at level `alpha`.

    Levels are read by their place. Numbers without bins are first centred and scaled by released histograms. The
    variance of Fisher's z counts sampling and the noise of the release.
    """

    alpha: float = 0.01
    max_order: int | None = None

    def __post_init__(self) -> None:
        check_threshold(self.alpha)

    def fit(self, queryable: Queryable, knowledge: Knowledge | None = None) -> FitResult:
        """Spend all that is left on one release of moments, then run PC on it."""
        deletable_pairs(queryable, knowledge)
        names, rho = queryable.schema.names, to_spend(queryable, None)
        try:
            test = _NoisedCorrelationTest(queryable, self.alpha, _released(queryable, rho))
        except TooNoisy as problem:
            return empty(AllowedArrows.of(names, knowledge), knowledge, str(problem))
        return learned(test, search(names, test, knowledge=knowledge, max_order=self.max_order), knowledge)


def _released(queryable: Queryable, rho: float) -> ReleasedMoments:
    columns = queryable.schema.columns
    if not all(column.has_levels for column in columns):
        return released_moments(queryable, rho)
    return ReleasedMoments.of(queryable.ask(Release(Moments(queryable.schema.names), Gaussian(rho=rho))), columns)


class _NoisedCorrelationTest(ExactTest):
    """Fisher's z of partial correlations in a noised covariance; it asks the queryable for nothing more."""

    growth = 1

    def __init__(self, queryable: Queryable, level: float, released: ReleasedMoments) -> None:
        super().__init__(queryable, level)
        self._names, self._released = queryable.schema.names, released
        self._covariance = released.valid()

    def _p_values(self, tests: Sequence[PairQuestion]) -> list[float]:
        return list(map(self._p_value, tests))

    def _p_value(self, q: PairQuestion) -> float:
        x, y, *given = (self._names.index(name) for name in (q.x, q.y, *q.given))
        a, b = (self._residual(node, given) for node in (x, y))
        matrix, freedom = self._covariance, self._released.count - len(given) - 3
        spread = float(a @ matrix @ a) * float(b @ matrix @ b)
        if freedom <= 0 or spread <= 0:
            return 1.0
        r = min(max(float(a @ matrix @ b) / math.sqrt(spread), -1 + 1e-12), 1 - 1e-12)
        noise = float(self._released.noise_variance(a[None], b)[0]) / spread
        return math.erfc(abs(math.atanh(r)) / math.sqrt(2 * (1 / freedom + noise)))

    def _residual(self, node: int, given: Sequence[int]) -> FloatArray:
        """A column less its regression on others, as weights of the columns."""
        weights = np.zeros(len(self._names))
        weights[node] = 1.0
        if given:
            matrix = self._covariance
            weights[list(given)] = -np.linalg.solve(matrix[np.ix_(given, given)], matrix[given, node])
        return weights


Guarantee = Literal["proved", "claimed", "none"]
PUBLISHED = "published"
OWN: dict[str, Method] = {"noised-covariance": NoisedCovariance()}
"""Baselines that only the benchmark has."""
_SYSTEMS = ("curate-pc", "curate-score", "em-pc", "svt-pc", "priv-pc", "noleaks")
_EXACT = ("pc", f"pc:{PUBLISHED}", "notears", "order-search")
DEFAULT = (
    "auto", "notears-moments", *OWN, *_SYSTEMS, *(f"{name}:{PUBLISHED}" for name in _SYSTEMS), *_EXACT,
)  # fmt: skip
"""What is compared unless methods are named."""


@runtime_checkable
class RowMethod(Protocol):
    """A method that reads the rows itself: what it reveals is its own claim, which nobody checks."""

    def fit_rows(self, table: Any, schema: Schema, budget: Budget, seed: int) -> FitResult:
        """A graph within the budget; `claimed` in the result is the epsilon that it says it has spent."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A method with its name in the table and its guarantee.

    `code` identifies what runs were made with: the version of dpcurate, the settings, and the text of a user's file.
    """

    name: str
    method: Method | RowMethod
    guarantee: Guarantee
    code: str

    @classmethod
    def of(cls, name: str, method: Any, guarantee: Guarantee = "proved") -> Candidate:
        """A candidate from a recipe, a `RowMethod`, or a class of either that needs no arguments."""
        made = method() if isinstance(method, type) else method
        if isinstance(made, RowMethod):
            return cls(name, made, "claimed", _code(made))
        if not callable(getattr(made, "fit", None)):
            raise QueryError(
                f"{shown(name)} is no method: a recipe has fit(queryable, knowledge), and a method that reads rows has "
                "fit_rows(table, schema, budget, seed)"
            )
        return cls(name, made, guarantee, _code(made))


def candidates(methods: Sequence[Any] | None = None, add: Sequence[str] = ()) -> tuple[Candidate, ...]:
    """Methods by name, as recipes, or from files; DEFAULT if none are given."""
    found = [_candidate(method) for method in (DEFAULT if methods is None else methods)]
    found += [one for text in add for one in _from_file(text)]
    names = [one.name for one in found]
    for name in names:
        if names.count(name) > 1:
            raise QueryError(f"two methods are called {shown(name)}: name each once")
    if not found:
        raise QueryError("no methods to compare: name some, or add a file of your own")
    return tuple(found)


def _candidate(method: Any) -> Candidate:
    if isinstance(method, Candidate):
        return method
    if isinstance(method, str):
        return _by_name(method)
    return Candidate.of(method.__name__ if isinstance(method, type) else type(method).__name__, method)


def _by_name(text: str) -> Candidate:
    """`NAME`, with `:published` or `:setting=value` after it."""
    name, *words = text.split(":")
    settings = [word for word in words if word != PUBLISHED]
    if name in OWN and PUBLISHED not in words:
        return Candidate.of(text, registry.with_settings(OWN[name], settings))
    entry = registry.find(name, variant="published" if PUBLISHED in words else "proved")
    guarantee: Guarantee = "proved" if entry.private else "claimed" if hasattr(entry.recipe, "total") else "none"
    return Candidate.of(text, registry.with_settings(entry.recipe, settings), guarantee)


def _from_file(text: str) -> Iterator[Candidate]:
    """The object that is named, or every recipe that the file registers."""
    path, name = added_files.split(text)
    if path.suffix != ".py":
        raise QueryError(f"{shown(text)} is no Python file: give FILE.py or FILE.py:NAME")
    if name:
        yield Candidate.of(name, added_files.named(text))
        return
    module = added_files.load(path).__name__
    entries = [entry for entry in registry.listed().values() if type(entry.recipe).__module__ == module]
    if not entries:
        raise QueryError(f"{path.name} registers no method: call dpcurate.methods.register in it, or give {path}:NAME")
    for entry in entries:
        yield Candidate.of(entry.name, entry.recipe, "proved" if entry.private else "none")


def _code(method: object) -> str:
    from dpcurate import __version__

    kind = type(method)
    settings = repr(method) if is_dataclass(method) else kind.__qualname__
    return hashlib.sha256(f"{__version__} {settings} {_text_of(kind)}".encode()).hexdigest()[:10]


def _text_of(kind: type) -> str:
    """The file of a class that is not ours."""
    if kind.__module__.partition(".")[0] == "dpcurate":
        return ""
    try:
        return Path(inspect.getfile(kind)).read_text(encoding="utf-8")
    except (OSError, TypeError):  # typed at a prompt
        return ""

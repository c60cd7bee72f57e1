"""The registries of methods and statistics: what is entered is known everywhere; what is published stays apart."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import dataclass, fields, is_dataclass
from inspect import isabstract

import pytest

from dpcurate import Budget, Curator, discover, published
from dpcurate.audit.cases import cases
from dpcurate.audit.cases import methods as audited
from dpcurate.cli import main
from dpcurate.errors import NotPrivate, QueryError
from dpcurate.graphs.graph import Skeleton
from dpcurate.graphs.orient import orient
from dpcurate.learn import methods
from dpcurate.learn.methods import Listed, register
from dpcurate.planning.plan import plan
from dpcurate.private.statistics import registry
from dpcurate.private.statistics.kendall import PairTransformation, TauTransformation
from dpcurate.published import PublishedFlips, PublishedKendallP
from dpcurate.published.unproved_statistics import PublishedFlipsTransformation
from dpcurate.queries import Choose, Counts, Laplace, PairStatistic, Release, Score, Tau
from dpcurate.report.meaning import origin
from dpcurate.result.fit import FitResult
from helpers import schema_of

TABLE = {"a": ["0", "1"] * 50, "b": ["0", "1"] * 50, "c": ["0", "0", "1", "1"] * 25}
SCHEMA = {name: ["0", "1"] for name in TABLE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Toy:
    """What CONTRIBUTING asks of a method: a frozen dataclass with `fit`."""

    share: float = 1.0

    def fit(self, queryable, knowledge=None):
        budget = queryable.privacy().budget
        left = queryable.remaining * self.share if math.isfinite(queryable.remaining) else 1.0
        spend = left if budget.pure else math.sqrt(2 * left)
        queryable.ask(Release(Counts(queryable.schema.names[:1]), Laplace(epsilon=spend * (1 - 1e-9))))
        skeleton = Skeleton(queryable.schema.names, frozenset(), {})
        return FitResult(orient(skeleton, knowledge), skeleton, tests=(1,))


@pytest.fixture
def toy(monkeypatch):
    """The toy in the registry, by the call a contributor writes there, until the test ends."""
    monkeypatch.setattr(methods, "_METHODS", dict(methods._METHODS))
    register(Listed("toy", Toy(), "constraint", "Counts one column and finds nothing."))


def test_a_method_in_the_registry_is_known_everywhere(toy, capsys):
    assert main(["methods"]) == 0
    assert "toy" in capsys.readouterr().out
    found = discover(TABLE, SCHEMA, epsilon=1.0, method="toy")
    assert (found.method, found.edges) == ("toy", ())
    assert found.privacy.private
    assert "Counts one column and finds nothing." in origin(found)
    assert "toy" in plan(SCHEMA, 100, epsilons=(1.0,), methods=["toy"], worlds=1).methods
    assert audited()["toy"] == Toy()
    assert [c.name for c in cases() if c.name.startswith("toy")] == ["toy"]


def test_the_planner_takes_the_default_unless_told(toy):
    assert plan(SCHEMA, 100, epsilons=(1.0,), worlds=1).methods == ("auto",)


def test_a_name_is_given_once_and_unknown_names_are_refused(toy):
    with pytest.raises(QueryError, match="there is a method 'toy' already"):
        register(Listed("toy", Toy(), "constraint", "Again."))
    with pytest.raises(QueryError, match=r"no method 'tou'.*toy"):
        methods.get("tou")
    with pytest.raises(QueryError, match="no published method 'toy'"):
        methods.get("toy", variant="published")
    with pytest.raises(QueryError, match="variant must be"):
        methods.get("toy", variant="improved")


def test_the_registry_says_what_a_method_needs():
    """Budget kinds as stated: a pure budget pays for those that say so, and is refused by the others."""
    for name, entry in methods.listed().items():
        if not entry.private:
            with pytest.raises(NotPrivate):
                entry.recipe.fit(Curator(TABLE, SCHEMA, budget=Budget(epsilon=1, delta=1e-6)))
            continue
        pure = Curator(TABLE, SCHEMA, budget=Budget(epsilon=1, delta=0), insecure_seed=1)
        if entry.pure:
            entry.recipe.fit(pure)
        else:
            with pytest.raises(QueryError, match="give a delta"):
                entry.recipe.fit(pure)
        assert methods.get(name) is entry.recipe
        assert methods.entry_of(entry.recipe).recipe == entry.recipe


def test_every_recipe_is_a_frozen_value_with_its_own_options_alone():
    everything = [*methods.listed().values(), *methods.listed("published").values()]
    for entry in everything:
        assert is_dataclass(entry.recipe)
        names = {field.name for field in fields(entry.recipe)}
        assert not names & {"variant", "claimed"}
        assert hash(entry.recipe) is not None
    proved = {f.name for e in methods.listed().values() for f in fields(e.recipe)}
    assert not proved & {"epsilon", "claim", "reading", "redraw", "increment", "first"}


# --- published ----------------------------------------------------------------------------------------


def test_published_variants_are_found_by_the_proved_names():
    assert set(methods.listed("published")) <= set(methods.listed())
    assert methods.get("curate-pc", variant="published") == published.PublishedCuratePC()
    assert not any(entry.private for entry in methods.listed("published").values())


def test_a_session_answers_registered_unproved_queries_only_if_it_allows_them():
    schema = schema_of(2, 2, rows=100)
    table = {"a": [0, 1] * 50, "b": [0, 1] * 50}
    strict = Curator(table, schema, budget=Budget(epsilon=1, delta=1e-6))
    asked = [
        Release(PublishedKendallP("a", "b"), Laplace(epsilon=0.1)),
        Release(PublishedFlips("a", "b"), Laplace(epsilon=0.1)),
        Choose(candidates=(Score(PublishedKendallP("a", "b"), 0.05, "above"),), epsilon=0.1),
    ]
    for query in asked:
        with pytest.raises(NotPrivate):
            strict.ask(query)
    assert strict.ledger.spent == 0
    open_ = Curator(table, schema, budget=Budget(epsilon=1, delta=1e-6), allow_unproved=True, insecure_seed=1)
    for query in asked:
        open_.ask(query)
    assert not open_.privacy().private


def test_nothing_becomes_proved_by_registering():
    @dataclass(frozen=True, slots=True)
    class Mine(PairStatistic):
        pass

    with pytest.raises(QueryError, match="proved = False"):
        registry.register_unproved(Mine, TauTransformation)
    with pytest.raises(QueryError, match="cannot be registered"):
        registry.register_unproved(Tau, PublishedFlipsTransformation)
    with pytest.raises(QueryError, match="not a statistic of a session"):
        registry.transformation(Mine("a", "b"), schema_of(2, 2))
    with pytest.raises(QueryError, match="not a statistic of a session"):
        registry.transformation(PairStatistic("a", "b"), schema_of(2, 2))
    assert all(maker.proved for maker in registry.PROVED.values())
    assert all(not maker.proved for maker in registry._UNPROVED.values())
    assert isabstract(PairTransformation)


def test_the_product_runs_without_the_published_code():
    """In a process of its own, since this one has imported it."""
    code = (
        "import sys, dpcurate\n"
        "from dpcurate.learn import methods\n"
        f"dpcurate.discover({TABLE!r}, {SCHEMA!r}, epsilon=1.0, method='svt-pc')\n"
        "methods.listed()\n"
        "assert not [m for m in sys.modules if m.startswith('dpcurate.published')]\n"
        "methods.get('svt-pc', variant='published')\n"
        "assert 'dpcurate.published' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

"""Several sites as one study: what is found, spent, refused and resumed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpcurate
from dpcurate import BudgetExceeded, Numeric, Schema, SchemaError, Study, networks
from dpcurate.errors import DecodeError, DpcurateError, LedgerError, NotPrivate, QueryError, SourceError
from dpcurate.pooling import Pool
from dpcurate.queries import Answer, Contrasts, Counts
from dpcurate.study.quantiles import Quantiles
from pooled_tables import SCHEMA, tables

ASIA = networks.load("asia")
NAMES = ("Berlin", "Oslo", "Rome")


def asia(rows: int, seed: int = 1) -> list[dict[str, Any]]:
    drawn = ASIA.sample(rows * len(NAMES), seed=seed)
    return [{c: np.asarray(cells)[k :: len(NAMES)] for c, cells in drawn.items()} for k in range(len(NAMES))]


def studies(some: list[dict[str, Any]], folder: Path | None = None, **known: Any) -> dict[str, Study]:
    made = {}
    for name, table in zip(NAMES, some, strict=True):
        ledger = None if folder is None else folder / f"{name}.ledger"
        made[name] = dpcurate.open(table, ASIA.schema, **{"epsilon": 3.0, "ledger": ledger} | known)
    return made


def spent(study: Study) -> float:
    return study.opened().privacy().spent


def test_a_pool_finds_a_graph_and_every_site_pays_for_it() -> None:
    sites = studies(asia(10_000))
    study = dpcurate.pool(sites)
    found = study.discover(epsilon=1)
    assert found.schema.names[0] == "site"
    assert found.schema["site"].levels == NAMES
    assert frozenset(("tub", "either")) in found.graph.edges or ("tub", "either") in found.graph.arrows
    assert not any(edge.b == "site" and edge.directed for edge in found.edges)
    assert len({round(one.remaining, 9) for one in sites.values()}) == 1
    assert study.remaining == min(one.remaining for one in sites.values())
    assert found.privacy.run_epsilon == pytest.approx(1, rel=1e-3)


def test_the_statement_lists_every_site_with_its_own_relation_and_ledger(tmp_path: Path) -> None:
    some = asia(500)
    sites = studies(some, tmp_path)
    sites["Rome"] = dpcurate.open(some[2], ASIA.schema, epsilon=1, neighbours="replace")
    found = dpcurate.pool(sites).discover(epsilon=0.5)
    said = str(found)
    assert "3 sites, each with a promise and a ledger of its own" in said
    assert "Berlin: epsilon = 3" in said
    assert "Rome: epsilon = 1" in said
    assert "(replace one row; spent" in said
    assert "ledger: in memory" in said
    told = found.to_dict()["privacy"]["sites"]
    assert [one["name"] for one in told] == list(NAMES)
    assert [one["neighbours"] for one in told] == ["add-remove", "add-remove", "replace"]
    assert all(one["spent_by_this_run"]["epsilon"] == pytest.approx(0.5, rel=1e-3) for one in told)
    for name in NAMES:
        assert name in found.report_text("x.html")


def test_a_person_at_two_sites_costs_what_both_promise_together() -> None:
    found = dpcurate.pool(studies(asia(300))).discover(epsilon=0.5)
    both, all_three = found.privacy.together(2), found.privacy.together()
    assert 3 < both < 6
    assert both < all_three < 9


def test_the_site_comes_first_whatever_order_is_given() -> None:
    study = dpcurate.pool(studies(asia(4_000)), site="hospital")
    for order in (None, "asia, smoke | *", "xray | *"):
        found = study.discover(epsilon=0.4, order=order)
        assert found.knowledge is not None
        assert not any(found.knowledge.may_point(name, "hospital") for name in ASIA.schema.names)


@pytest.mark.parametrize("method", ["em-pc", "svt-pc", "priv-pc", "curate-pc"])
def test_methods_that_do_not_add_up_are_refused_before_anybody_pays(method: str, tmp_path: Path) -> None:
    sites = studies(asia(300), tmp_path)
    with pytest.raises(QueryError, match="no site was asked"):
        dpcurate.pool(sites).discover(epsilon=1, method=method)
    assert all(not one.log and spent(one) == 0 for one in sites.values())


@pytest.mark.parametrize("method", ["pc", "notears", "order-search"])
def test_methods_that_need_exact_answers_are_refused(method: str) -> None:
    with pytest.raises(NotPrivate, match="exact releases"):
        dpcurate.pool(studies(asia(300))).discover(method=method)


def numbers(seed: int) -> list[dict[str, Any]]:
    drawn = np.random.default_rng(seed)
    made = []
    for place in range(3):
        x = drawn.normal(place / 2, 1, 4000)
        y = x + drawn.normal(0, 1, 4000)
        made.append({"x": x, "y": y, "z": drawn.normal(0, 1, 4000)})
    return made


NUMBERS = Schema(tuple(Numeric(name, -6, 6) for name in "xyz"))


@pytest.mark.parametrize(("method", "site"), [("auto", "site"), ("notears-moments", "site"), ("noleaks", None)])
def test_numbers_are_pooled_too(method: str, site: str | None) -> None:
    sites = {name: dpcurate.open(t, NUMBERS, epsilon=2) for name, t in zip(NAMES, numbers(1), strict=True)}
    found = dpcurate.pool(sites, site=site).discover(method=method)
    assert frozenset("xy") in found.learned.skeleton.edges
    if method == "auto":
        assert frozenset(("site", "x")) in found.learned.skeleton.edges


def test_quantiles_are_refused_before_anybody_pays() -> None:
    sites = {name: dpcurate.open(t, NUMBERS, epsilon=2) for name, t in zip(NAMES, numbers(1), strict=True)}
    with pytest.raises(QueryError, match="private scores"):
        dpcurate.pool(sites).ask(Quantiles("x", (0.5,)), epsilon=0.5)
    assert all(spent(one) == 0 for one in sites.values())


def test_gradients_with_a_site_are_refused_before_anybody_pays() -> None:
    sites = {name: dpcurate.open(t, NUMBERS, epsilon=2) for name, t in zip(NAMES, numbers(1), strict=True)}
    with pytest.raises(QueryError, match="site=None"):
        dpcurate.pool(sites).discover(method="noleaks")
    assert all(spent(one) == 0 for one in sites.values())


def test_questions_and_models_work_on_a_pool() -> None:
    sites = studies(asia(3_000))
    study = dpcurate.pool(sites)
    answer = study.ask(Counts(("site", "smoke")), epsilon=0.5)
    assert sum(float(row.value) for row in answer.tables[0].rows) == pytest.approx(9_000, rel=0.2)
    found = study.discover(epsilon=1)
    assert study.fit_model(found, epsilon=0.5).schema.names == found.schema.names


# --- sites that cannot be pooled ----------------------------------------------------------------------------------


def test_differing_schemas_are_refused_column_by_column() -> None:
    some = tables(1)
    other = Schema((*SCHEMA.columns[:1], SCHEMA["b"], Numeric("n", 0, 11), Numeric("extra", 0, 1)), rows=SCHEMA.rows)
    first = dpcurate.open(some[0], SCHEMA, epsilon=1)
    second = dpcurate.open(some[1] | {"extra": some[1]["n"]}, other, epsilon=1)
    with pytest.raises(SchemaError) as refused:
        dpcurate.pool({"A": first, "B": second})
    for word in ("'n' goes from 0 to 10 in the first and from 0 to 11", "'m' is missing in the second", "'extra'"):
        assert word in str(refused.value)


def test_one_table_twice_and_what_is_no_study_are_refused() -> None:
    one = dpcurate.open(asia(100)[0], ASIA.schema, epsilon=1)
    with pytest.raises(QueryError, match="counted twice"):
        dpcurate.pool([one, one])
    with pytest.raises(QueryError, match="made of studies"):
        dpcurate.pool([one, 3])  # type: ignore[list-item]
    with pytest.raises(QueryError, match="in the tables already"):
        dpcurate.pool(studies(asia(100)), site="smoke")
    with pytest.raises(DpcurateError, match="how much may be spent"):
        dpcurate.pool([dpcurate.open(asia(100)[0], ASIA.schema)])


def test_a_site_with_less_is_named_before_anybody_pays() -> None:
    sites = studies(asia(200))
    sites["Oslo"] = dpcurate.open(asia(200)[1], ASIA.schema, epsilon=0.2)
    keeper = dpcurate.pool(sites).opened()
    with pytest.raises(BudgetExceeded, match="'Oslo' has rho"):
        keeper.ask(dpcurate.queries.Release(Counts(("smoke",)), dpcurate.queries.Gaussian(rho=0.01)))
    assert all(spent(one) == 0 for one in sites.values())


# --- sites that lie, die and come back ----------------------------------------------------------------------------


class Broken:
    """A site's queryable that does something else to its answers from some request on."""

    def __init__(self, inner: Any, change: Any, after: int = 0) -> None:
        self._inner, self._change, self._after = inner, change, after

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def ask_all(self, queries: Any) -> Any:
        self._after -= 1
        answers = self._inner.ask_all(queries) if self._change is not None or self._after >= 0 else None
        if self._after >= 0:
            return answers
        if self._change is None:
            raise SourceError("the site has gone")
        return self._change(answers)


LIES = {
    "shape": lambda found: [Answer(tuple(np.asarray(part)[None] for part in a.parts), a.scales) for a in found],
    "noise": lambda found: [Answer(a.parts, tuple(scale / 10 for scale in a.scales)) for a in found],
    "nan": lambda found: [Answer(tuple(part * np.nan for part in a.parts), a.scales) for a in found],
    "huge": lambda found: [Answer(tuple(part + 1e300 for part in a.parts), a.scales) for a in found],
    "none": lambda found: [None for _ in found],
    "another question": lambda found: [Answer(a.parts[:2], a.scales[:2]) for a in found],
    "fewer": lambda found: found[:-1],
    "twice": lambda found: [*found, *found],
}


@pytest.mark.parametrize("lie", list(LIES))
def test_a_site_that_lies_about_its_answer_is_named(lie: str) -> None:
    keeper = dpcurate.pool(studies(asia(200))).opened()
    assert isinstance(keeper, Pool)
    keeper.sites[1].queryable = Broken(keeper.sites[1].queryable, LIES[lie])
    asked = dpcurate.queries.Release(
        Contrasts(((), ("smoke",), ("smoke", "lung"))), dpcurate.queries.Gaussian(rho=0.01)
    )
    with pytest.raises(DecodeError, match="'Oslo'"):
        keeper.ask(asked)


def stop_at(study: Study, request: int) -> Any:
    """Let a site go away at a request."""
    keeper = study.opened()
    assert isinstance(keeper, Pool)
    site = keeper.sites[1]
    ask_all, left = type(site).ask_all, [request]

    def asked(releases: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise SourceError("the site has gone")
        return ask_all(site, releases)

    site.ask_all = asked  # type: ignore[method-assign]
    return site


@pytest.mark.parametrize("request_", [0, 1])
def test_the_same_call_resumes_and_pays_nothing_twice(request_: int, tmp_path: Path) -> None:
    some = asia(2_000)
    stop_at(stopped := dpcurate.pool(studies(some, tmp_path)), request_)
    with pytest.raises(SourceError, match="the site has gone"):
        stopped.discover(epsilon=1)
    again = studies(some, tmp_path)
    study = dpcurate.pool(again)
    found = study.discover(epsilon=1)
    for one in again.values():
        assert one.opened().budget.as_epsilon(spent(one)) == pytest.approx(1, rel=1e-3)
    assert all(one.privacy.private for one in found.privacy.sites)


def test_a_run_that_one_site_has_finished_and_others_not_goes_on(tmp_path: Path) -> None:
    """The coordinator dies while it tells the sites that the run is over."""
    some = asia(2_000)
    sites = studies(some, tmp_path)
    study = dpcurate.pool(sites)
    keeper = study.opened()
    assert isinstance(keeper, Pool)
    site, begun = keeper.sites[0], type(keeper.sites[0]).begun

    class Dies:
        def __init__(self, inner: Any) -> None:
            self.inner = inner

        def __enter__(self) -> None:
            self.inner.__enter__()

        def __exit__(self, *_: Any) -> None:
            self.inner.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
            raise KeyboardInterrupt

    site.begun = lambda *given: Dies(begun(site, *given))  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        study.discover(epsilon=1)
    assert [one.log[-1].outcome for one in sites.values()] == ["stopped", "finished", "finished"]
    before = [spent(one) for one in sites.values()]
    again = studies(some, tmp_path)
    first = dpcurate.pool(again).discover(epsilon=1)
    assert [spent(one) for one in again.values()] == before
    dpcurate.pool(studies(some, tmp_path)).discover(epsilon=1)  # finished everywhere: a new run, which pays
    assert all(spent(one) > 1.9 * b for one, b in zip(studies(some, tmp_path).values(), before, strict=True))
    assert first.graph.nodes[0] == "site"


def test_stored_answers_of_all_sites_are_read_again_for_free(tmp_path: Path) -> None:
    found = dpcurate.pool(studies(asia(3_000), tmp_path)).discover(epsilon=1)
    stored = {name: dpcurate.reopen(tmp_path / f"{name}.ledger") for name in NAMES}
    again = dpcurate.pool(stored).discover()
    assert again.learned.linked == found.learned.linked
    assert again.privacy.run == 0
    with pytest.raises(LedgerError, match="reopen"):
        dpcurate.pool(studies(asia(3_000), tmp_path)).opened().stored()  # type: ignore[attr-defined]


def test_results_never_replace_a_site_s_ledger(tmp_path: Path) -> None:
    found = dpcurate.pool(studies(asia(300), tmp_path)).discover(epsilon=1)
    with pytest.raises(DpcurateError, match="never overwritten"):
        found.inputs.refuse(tmp_path / "Oslo.ledger")

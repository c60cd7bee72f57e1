"""Calls of one line on a study: `open`, `discover`, `ask`, `quantify` and those on stored answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpcurate._files import Inputs
from dpcurate.accounting.budget import warn
from dpcurate.errors import QueryError
from dpcurate.graphs.graph import Dag
from dpcurate.graphs.knowledge import GivenOrder, Knowledge
from dpcurate.learn import methods
from dpcurate.learn.methods import Method
from dpcurate.models.model import Model
from dpcurate.private.stored import StoredAnswers
from dpcurate.queries import Queryable
from dpcurate.queries.proxies import Notice
from dpcurate.result.asked import Asked
from dpcurate.result.discovery import Discovery
from dpcurate.schema import Neighbours, Schema
from dpcurate.study.questions import Question
from dpcurate.study.run_budget import ASK_RUN, QUANTIFY_RUN, STUDY_RUN
from dpcurate.study.study import Study, model_of


def open(
    table: Any,
    schema: Schema | str | Path | Mapping[str, Any] | None = None,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    neighbours: Neighbours | str | None = None,
    ledger: str | Path | None = None,
    name: str | None = None,
    insecure_seed: int | None = None,
) -> Study:
    """Open a table for several runs on one privacy budget.

    `table` and `schema` are those of `Curator`. The budget is kept in the file `ledger`; `epsilon` (with `delta`, by
    default 1e-10) is the ceiling of a ledger that does not exist yet, or of a budget in memory.

    Example:
        >>> network = dpcurate.networks.load("cancer")
        >>> study = dpcurate.open(network.sample(10_000, seed=1), network.schema, epsilon=2)
        >>> found = study.discover(epsilon=1)
        >>> answer = study.ask(dpcurate.queries.Counts(("Smoker",)), epsilon=0.1)
    """
    study = Study(
        table, schema, epsilon=epsilon, delta=delta, neighbours=neighbours, ledger=ledger, name=name,
        insecure_seed=insecure_seed,
    )  # fmt: skip
    warn(study.cautions())
    return study


def reopen(ledger: str | Path, run: int | None = None) -> Study:
    """The answers that a run has stored in a ledger, or in a copy of one, for other calls on them: free.

    `run` is its number in the log, by default the newest that found a graph.
    """
    return Study.over(_stored(ledger, run))


def discover(
    data: Any,
    schema: Schema | str | Path | Mapping[str, Any] | None = None,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    method: str | Method = "auto",
    neighbours: Neighbours | str | None = None,
    knowledge: Knowledge | str | Path | None = None,
    order: GivenOrder = None,
    ledger: str | Path | None = None,
    insecure_seed: int | None = None,
    by: str | None = None,
    purpose: str | None = None,
    latent: bool = False,
    quantify: float | None = None,
) -> Discovery:
    """Find which columns drive which, within a privacy budget.

    `data` is a frame or a path (see `Curator`). Without a ledger the run may spend `epsilon` at `delta` (default
    1e-10). A `ledger` that does not exist is created with that budget; of one that exists the run spends at most
    `epsilon`, or all that is left. The ledger logs the run and stores its answers: the same call again resumes a run
    that was stopped. All other arguments are those of `Study.discover`.
    """
    methods.check_keeps_budget(method)
    study = Study(data, schema, delta=delta, neighbours=neighbours, ledger=ledger, insecure_seed=insecure_seed)
    warn(study.cautions(epsilon))
    return study.discover(
        epsilon=epsilon, method=method, knowledge=knowledge, order=order, latent=latent, quantify=quantify, by=by,
        purpose=purpose,
    )  # fmt: skip


def discover_from(
    ledger: str | Path,
    run: int | None = None,
    *,
    method: str | Method = "auto",
    knowledge: Knowledge | str | Path | None = None,
    order: GivenOrder = None,
    latent: bool = False,
    dag: Dag | None = None,
) -> Discovery:
    """Find again, from the answers that a run has stored in a ledger or in a copy of one: no table, no charge.

    `run` is its number in the log, by default the newest that found a graph. Another threshold (`found.at`), an `order`
    of columns, knowledge that forbids more, hidden causes (`latent`), and any method that asks for no more than what is
    stored are free; all else is refused. A model that the run has paid for comes with it, or else the newest that
    `dpcurate.quantify` has bought later; `run` may be the number of that call, to have its model. `dag` is the graph it
    was given, if any.
    """
    methods.check_keeps_budget(method)
    named = _stored(ledger, run)
    stored = named.before() if named.logged.facts.method == QUANTIFY_RUN else named
    found = Study.over(stored).discover(method=method, knowledge=knowledge, order=order, latent=latent)
    found = replace(found, inputs=Inputs.of(knowledge=knowledge, ledger=ledger))
    if stored is not named:
        return replace(found, model=_bought(found, [named], dag))
    return found if found.model is not None else replace(found, model=_bought(found, stored.later(QUANTIFY_RUN), dag))


def fit(
    curator: Queryable,
    method: str | Method = "auto",
    knowledge: Knowledge | None = None,
    *,
    order: GivenOrder = None,
    epsilon: float | None = None,
    share: float | None = None,
    notice: Notice | None = None,
    latent: bool = False,
    quantify: float | None = None,
) -> Discovery:
    """`Study.discover` on a curator that is already open; `share` is `epsilon` in the budget's currency."""
    return Study.over(curator).discover(
        epsilon=epsilon, method=method, knowledge=knowledge, order=order, share=share, progress=notice, latent=latent,
        quantify=quantify,
    )  # fmt: skip


def ask(
    data: Any,
    schema: Schema | str | Path | Mapping[str, Any],
    question: Question,
    *,
    epsilon: float,
    delta: float | None = None,
    neighbours: Neighbours | str | None = None,
    ledger: str | Path | None = None,
    insecure_seed: int | None = None,
    by: str | None = None,
    purpose: str | None = None,
) -> Asked:
    """Ask a table for counts, means or quantiles, within a privacy budget.

    `question` is `Counts(("age", "sex"))`, `Means(("income",))` or `Quantiles("income", (0.25, 0.5, 0.75))`. All
    else is as with `discover`.
    """
    study = Study(data, schema, delta=delta, neighbours=neighbours, ledger=ledger, insecure_seed=insecure_seed)
    warn(study.cautions(epsilon))
    return study.ask(question, epsilon=epsilon, by=by, purpose=purpose)


def quantify(
    found: Discovery,
    curator: Queryable,
    *,
    epsilon: float | None = None,
    share: float | None = None,
    dag: Dag | None = None,
) -> Model:
    """`Study.fit_model` on a curator that is already open; `share` is `epsilon` in the budget's currency."""
    if not hasattr(found, "learned") or not hasattr(curator, "ask_all"):
        raise QueryError(
            "a model is made of what was found and an open curator: "
            "quantify(found, dpcurate.Curator(table, found.schema, ledger=...))"
        )
    return Study.over(curator).fit_model(found, epsilon=epsilon, share=share, dag=dag)


def _stored(ledger: str | Path, run: int | None) -> StoredAnswers:
    """The answers of a run, by default of the newest that found a graph."""
    return StoredAnswers(ledger, run, passing_over=(ASK_RUN, QUANTIFY_RUN, STUDY_RUN))


def _bought(found: Discovery, runs: Iterable[StoredAnswers], dag: Dag | None) -> Model | None:
    """The model of the first run that has one."""
    return next((model for run in runs if (model := model_of(found, run, dag)) is not None), None)

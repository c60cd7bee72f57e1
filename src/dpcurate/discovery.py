"""One call from a table to a graph with its evidence and its privacy statement."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpcurate import models
from dpcurate.accounting.cautions import warn
from dpcurate.allowance import Allowance, Request, RunRecord, running
from dpcurate.errors import BudgetExceeded, NotStored
from dpcurate.graphs.graph import Dag, Pag
from dpcurate.graphs.knowledge import Knowledge
from dpcurate.graphs.order import GivenOrder, with_order
from dpcurate.learn import methods
from dpcurate.learn.methods import Method
from dpcurate.models.fitting import check_part
from dpcurate.models.mixed import ScoreModel
from dpcurate.models.model import Model
from dpcurate.outputs import NO_INPUTS, Inputs
from dpcurate.private.stored import StoredAnswers
from dpcurate.queries import Queryable
from dpcurate.queryables import Keeping, Notice, Watched
from dpcurate.result import Discovery
from dpcurate.schema import Neighbours, Schema


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

    `data` is a frame or a path (see Curator), `schema` its public description (`dpcurate.draft` drafts one to check),
    `method` a name (`dpcurate methods` lists them) or a recipe.
    Without a ledger the run may spend `epsilon` at `delta` (1e-10 when not given). A `ledger` that is not
    there is created with that budget; of one that exists the run spends at most `epsilon`, or all that is
    left when no epsilon is given. The ledger logs the run, with `by` (the login name when not given) and
    `purpose`, which reports show too, and stores its answers: the same call again resumes a run that was
    stopped. Published and non-private recipes run only on a curator that allows them: see `Curator` and a
    recipe's `fit`. With `latent` common causes may be missing from the table, and the graph is a PAG, whose
    every edge says less. `quantify` sets a part of the budget aside, such as 0.5, for the tables of what was found:
    then `found.model` is a fitted model, see `dpcurate.quantify`. `order` says what comes first, such as
    "sex, age | smoker | *" or lists of names, in place of the schema's order; an empty one stands for no order.
    """
    methods.check_keeps_budget(method)  # before the table is opened, as is a wrong name
    known = Knowledge.load(knowledge) if isinstance(knowledge, (str, Path)) else knowledge
    facts = Schema.of(schema)
    known = with_order(known, order, facts)
    if known is not None:
        known.check(facts.names)
    check_part(quantify, latent=latent)
    file = Path(schema).name if isinstance(schema, (str, Path)) else ""
    request = request_of(
        data, facts, method, known, latent=latent, epsilon=epsilon, by=by, purpose=purpose, schema_file=file,
        quantify=quantify, inputs=Inputs.of(table=data, schema=schema, knowledge=knowledge, ledger=ledger),
    )  # fmt: skip
    allowance = Allowance.of(epsilon=epsilon, delta=delta, neighbours=neighbours, ledger=ledger, request=request)
    if insecure_seed is None:  # a simulation promises nothing anyway
        warn(allowance.budget, facts.rows)
    curator = allowance.open(data, facts, insecure_seed=insecure_seed)
    return fit(
        curator, method, known, order=(), share=allowance.share, request=request, latent=latent, quantify=quantify
    )


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

    `run` is its number in the log, by default the newest that found a graph. Another cut (`found.at`), an `order` of
    columns, knowledge that forbids more, hidden causes (`latent`), and any method that asks for no more than what is
    stored are free; all else is refused. A model that the run has paid for comes with it, or else the newest that
    `dpcurate.quantify` has bought later; `run` may be the number of that call, to have its model. `dag` is the graph it
    was given, if any.
    """
    methods.check_keeps_budget(method)
    known = Knowledge.load(knowledge) if isinstance(knowledge, (str, Path)) else knowledge
    named = StoredAnswers(ledger, run)
    stored = named.graph_run
    found = replace(
        fit(stored, method, known, order=order, latent=latent), inputs=Inputs.of(knowledge=knowledge, ledger=ledger)
    )
    if stored is not named:
        return replace(found, model=_bought(found, [named], dag))
    return found if found.model is not None else replace(found, model=_bought(found, stored.model_runs, dag))


def request_of(
    table: Any,
    schema: Schema,
    method: str | Method,
    knowledge: Knowledge | None,
    *,
    latent: bool = False,
    epsilon: float | None = None,
    by: str | None = None,
    purpose: str | None = None,
    result: str = "",
    schema_file: str = "",
    quantify: float | None = None,
    inputs: Inputs = NO_INPUTS,
) -> Request:
    """A run as a ledger knows it again."""
    recipe = methods.get(method, latent=latent)
    return Request(
        table=table,
        schema=schema,
        method=method if isinstance(method, str) else type(recipe).__name__,
        recipe=recipe,
        knowledge="" if knowledge is None else knowledge.dumps(),
        epsilon=epsilon,
        by=by,
        purpose=purpose,
        result=result,
        schema_file=schema_file,
        quantify=quantify,
        inputs=inputs,
    )


def fit(
    curator: Queryable,
    method: str | Method = "auto",
    knowledge: Knowledge | None = None,
    *,
    order: GivenOrder = None,
    share: float | None = None,
    notice: Notice | None = None,
    request: Request | None = None,
    latent: bool = False,
    quantify: float | None = None,
) -> Discovery:
    """The same on a curator that is already open.

    Knowledge without tiers gets the `order`, or the schema's if none is given. The run may spend `share` of what is
    left, in the budget's currency, or all of it when that is not given. `notice` is told the stage and the number of
    tests before they are made, `request` is how a ledger logs it.
    """
    from dpcurate import __version__

    chosen = methods.get(method, latent=latent)
    knowledge = with_order(knowledge, order, curator.schema)
    check_part(quantify, latent=latent)
    asked = request_of(None, curator.schema, method, knowledge, latent=latent, quantify=quantify)
    request = request or replace(asked, share=share)
    name = method if isinstance(method, str) else type(chosen).__name__
    before = curator.privacy().run or 0.0
    with running(curator, request, share) as queryable:
        if queryable.remaining <= 0:
            raise BudgetExceeded(
                "nothing is left of this table's budget, so nothing was read. `ledger show` says where it went"
            )
        run = RunRecord.of(curator, request)
        kept = curator.logged.facts.quantify if isinstance(curator, StoredAnswers) else quantify
        first = queryable if kept is None else Keeping(queryable, kept * queryable.remaining)
        learned = chosen.fit(first if notice is None else Watched(first, notice), knowledge)
        found = Discovery(
            learned, curator.privacy(), name, curator.schema, knowledge, {"dpcurate": __version__}, run=run,
            inputs=request.inputs,
        )  # fmt: skip
        model = None if kept is None else _model(found, queryable)
    # The privacy statement comes after the block, which has given back what it did not use.
    privacy = curator.privacy()
    privacy = replace(privacy, run=None if privacy.run is None else privacy.run - before)
    return replace(found, privacy=privacy, model=model)


def _bought(found: Discovery, runs: Iterable[StoredAnswers], dag: Dag | None) -> Model | ScoreModel | None:
    """The model of the first run that has one."""
    return next((model for run in runs if (model := _model(found, run, dag)) is not None), None)


def _model(found: Discovery, queryable: Queryable, dag: Dag | None = None) -> Model | ScoreModel | None:
    """The model of a run with a part for it; none where stored answers are not those that this graph needs."""
    if isinstance(found.graph, Pag):
        return None
    try:
        return models.quantify(found, queryable, dag=dag)
    except NotStored:
        return None

"""A study: one table, one privacy budget, and every run on it.

This is the only place where a run begins, spends, resumes and is recorded. `dpcurate.discover`, `ask`, `quantify`,
`fit` and the command line are a few lines over it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import comb
from pathlib import Path
from typing import Any

from dpcurate._files import NO_INPUTS, Inputs
from dpcurate._messages import one_line
from dpcurate.accounting import DELTA, Budget, Privacy
from dpcurate.accounting.budget import cautions
from dpcurate.errors import BudgetError, BudgetExceeded, LedgerError, NotStored, QueryError
from dpcurate.graphs.graph import Dag
from dpcurate.graphs.knowledge import GivenOrder, Knowledge, with_order
from dpcurate.learn import methods
from dpcurate.learn.methods import Method
from dpcurate.learn.power import Power
from dpcurate.models.fitting import check_part, file_name, fit_model, model_graph
from dpcurate.models.model import Model
from dpcurate.planning.estimate import Outlook
from dpcurate.private.curator import Curator
from dpcurate.private.ledger import Ledger, LoggedRun
from dpcurate.private.stored import StoredAnswers
from dpcurate.queries import Means, Queryable
from dpcurate.queries.proxies import Notice, Reporting, Reserving
from dpcurate.result.asked import Asked
from dpcurate.result.discovery import Discovery
from dpcurate.result.export import SYNTHETIC
from dpcurate.result.run_record import RunRecord
from dpcurate.schema import Neighbours, Schema
from dpcurate.study import questions
from dpcurate.study.questions import Question
from dpcurate.study.run_budget import ASK_RUN, QUANTIFY_RUN, RunBudget, RunSpec, record_of, running
from dpcurate.study.run_keeper import keeper_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What a run may spend and what it can be expected to find, before anything is read or spent; printed in words.

    `outlook` is there if the number of rows is known; it is that of the default method. `noise` is the standard
    deviation of the noise on every number that answers a question, where it does not depend on the rows.
    """

    spec: RunSpec
    budget: RunBudget
    question: Question | None = None
    outlook: Outlook | None = None
    noise: float | None = None
    cautions: tuple[str, ...] = ()
    insecure: bool = False

    @property
    def power(self) -> Power | None:
        """What the default method is expected to see, if the number of rows is known."""
        return None if self.outlook is None else self.outlook.power

    @property
    def resumes(self) -> LoggedRun | None:
        """The stopped run that the same call resumes."""
        return self.budget.resumes

    @property
    def goes_on(self) -> bool:
        """Whether that run was to write to the same place, and may have begun to."""
        return self.resumes is not None and self.resumes.facts.result == self.spec.result

    def files(self, *, synthetic: bool = False) -> tuple[str, ...]:
        """The names of the files that `Discovery.save` writes, with those of a model if the run has one.

        Raises:
            QueryError: a column or a level has a name that the file of the model cannot hold.
        """
        model = () if self.spec.quantify is None else (file_name(self.spec.schema),)
        return *Discovery.FILES, *model, *((SYNTHETIC,) if synthetic else ())

    def __str__(self) -> str:
        lines = [*(self._of_graph() if self.question is None else self._of_question(self.question))]
        lines += [f"  ledger  {self.budget.kept}", *(f"warning: {caution}" for caution in self.cautions)]
        if self.insecure:
            lines.append("  NOT PRIVATE: whoever knows the insecure seed can remove the noise")
        return "\n".join(map(one_line, lines))

    def _of_graph(self) -> Iterator[str]:
        schema, columns = self.spec.schema, len(self.spec.schema.names)
        hidden = ", with latent confounders" if getattr(self.spec.recipe, "latent", False) else ""
        yield f"before any row is read: this run may spend {self.budget}"
        yield f"  on      the edges among {columns} columns of {self.spec.table_name} ({comb(columns, 2)} pairs)"
        yield f"  method  {self.spec.method}{hidden}; neighbours: {self.budget.neighbours.value}; unit: {schema.unit}"
        if self.spec.quantify is not None:
            yield f"  model   {self.spec.quantify:.0%} of it is reserved for a model of the graph"

    def _of_question(self, question: Question) -> Iterator[str]:
        schema, budget = self.spec.schema, self.budget
        part = float(budget.of_run.ceiling) / (budget.left or 1.0)
        share = "" if budget.left is None else f", {part:.2%} of what is left"
        yield f"before any row is read: this will cost {budget}{share}"
        yield f"  for     {questions.described(question, schema)} of {self.spec.table_name}"
        if self.noise is not None:
            of = "sum and count behind the means" if isinstance(question, Means) else "count"
            yield f"  error   noise of standard deviation {self.noise:.4g} on every {of}"
        yield f"  unit    {schema.unit}; neighbours: {budget.neighbours.value}"


class Study:
    """A table, its schema and its privacy budget; made by `dpcurate.open`.

    The table is opened by the first call that has to read it. `preview`, `remaining` and `log` are free.

    Example:
        >>> network = dpcurate.networks.load("cancer")
        >>> study = dpcurate.open(network.sample(10_000, seed=1), network.schema, epsilon=2)
        >>> print(study.preview(epsilon=1))
        >>> found = study.discover(epsilon=1)
        >>> model = study.fit_model(found, epsilon=0.5)
    """

    def __init__(
        self,
        table: Any,
        schema: Schema | str | Path | Mapping[str, Any] | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        neighbours: Neighbours | str | None = None,
        ledger: str | Path | None = None,
        name: str | None = None,
        insecure_seed: int | None = None,
        make: Callable[..., Curator] = Curator,
    ) -> None:
        self.schema: Schema = Schema.of(schema)
        self.ledger: Path | None = None if ledger is None else Path(ledger)
        """The file that keeps the budget, if one does."""
        self._table, self._name, self._insecure_seed, self._make = table, name, insecure_seed, make
        self._inputs = Inputs.of(table=table, schema=schema, ledger=ledger)
        self._schema_file = Path(schema).name if isinstance(schema, (str, Path)) else ""
        self._delta, self._neighbours = delta, neighbours
        self._ceiling = None if epsilon is None else Budget(epsilon=epsilon, delta=DELTA if delta is None else delta)
        self._curator: Queryable | None = None
        self._context: tuple[str, ...] = ()

    @classmethod
    def over(cls, queryable: Queryable) -> Study:
        """Runs on something that is open already: a curator, a part of one, or stored answers."""
        study = cls(None, queryable.schema)
        study._inputs = NO_INPUTS
        study._curator = queryable
        return study

    def opened(self) -> Queryable:
        """What answers its queries; a table that no call has read yet is opened now.

        Raises:
            BudgetError: the table has no budget yet: give `open` an epsilon.
        """
        if self._curator is None:
            whole = RunBudget.whole(self.ledger, ceiling=self._ceiling, neighbours=self._neighbours)
            self._curator = self._opened(whole)
        return self._curator

    def _opened(self, budget: RunBudget) -> Curator:
        seed, make = self._insecure_seed, self._make
        curator = budget.open(self._table, self.schema, name=self._name, insecure_seed=seed, make=make)
        self._make = Curator  # nothing leads from an open study to the owner who may have made it
        return curator

    def take_context(self, inputs: Inputs, columns: tuple[str, ...]) -> None:
        """Note the files behind its queryable, and columns that no other column drives, such as the site of a row."""
        self._inputs, self._context = inputs, columns

    @property
    def remaining(self) -> float:
        """What is left of the budget, in its currency (rho, or epsilon of a budget without delta)."""
        if self._curator is not None:
            return self._curator.remaining
        if self.ledger is not None and Ledger.exists(self.ledger):
            return Ledger.open(self.ledger).remaining
        return 0.0 if self._ceiling is None else float(self._ceiling.ceiling)

    @property
    def log(self) -> tuple[LoggedRun, ...]:
        """The runs that the ledger knows: when, who, what for, what each spent and what became of it."""
        if (keeper := keeper_of(self._curator)) is not None:
            return keeper.log()
        kept = self.ledger is not None and Ledger.exists(self.ledger)
        return Ledger.open(self.ledger).log() if kept and self.ledger is not None else ()

    def runs(self) -> tuple[LoggedRun, ...]:
        """The runs whose answers are stored, so that `reopen` gives them again; free."""
        return tuple(run for run in self.log if run.answers)

    def reopen(self, run: int | None = None) -> Study:
        """The answers that a run has stored, for other calls on them: free.

        `run` is its number in the log, by default the newest that found a graph.

        Example:
            >>> study.reopen(study.runs()[0].number).discover(latent=True)      # doctest: +SKIP
        """
        passing_over = (ASK_RUN, QUANTIFY_RUN)
        if (keeper := keeper_of(self._curator)) is not None:
            return Study.over(keeper.stored(run, passing_over=passing_over))
        if self.ledger is None:
            raise LedgerError("answers are stored in a ledger on disk: open the table with ledger=")
        return Study.over(StoredAnswers(self.ledger, run, passing_over=passing_over))

    def cautions(self, epsilon: float | None = None, rows: int | None = None) -> tuple[str, ...]:
        """What to know of a budget that promises little, such as an epsilon above 10; from public facts."""
        if self._insecure_seed is not None:  # a simulation promises nothing anyway
            return ()
        kept = self.ledger is not None and Ledger.exists(self.ledger)
        budget = Ledger.open(self.ledger).budget if kept and self.ledger is not None else self._ceiling
        if budget is None and epsilon is not None:
            budget = Budget(epsilon=epsilon, delta=DELTA if self._delta is None else self._delta)
        return () if budget is None else cautions(budget, rows or self.schema.rows)

    @property
    def passes(self) -> int:
        """How often the table was read from end to end so far."""
        keeper = keeper_of(self._curator)
        return 0 if keeper is None else keeper.passes

    def privacy(self) -> Privacy | None:
        """What was spent on the table so far, by whom ever; None before it is opened."""
        return None if self._curator is None else self._curator.privacy()

    # --- before anything is spent ---------------------------------------------------------------------------------

    def preview(
        self,
        question: Question | None = None,
        *,
        epsilon: float | None = None,
        method: str | Method = "auto",
        knowledge: Knowledge | str | Path | None = None,
        order: GivenOrder = None,
        latent: bool = False,
        quantify: float | None = None,
        by: str | None = None,
        purpose: str | None = None,
        result: str = "",
        rows: int | None = None,
    ) -> Preview:
        """What `discover`, or `ask` of this question, may spend and can be expected to find; free.

        Whatever can be refused is refused here, before the table is opened. `rows` is a rough public number of rows
        where the schema has none.
        """
        told = {"epsilon": epsilon, "by": by, "purpose": purpose, "result": result}
        if question is not None:
            return self._preview_of(question, self._question_spec(question, **told))
        spec = self._graph_spec(method, self._known(knowledge, order), latent=latent, quantify=quantify, **told)
        budget, outlook = self._budget(spec), None
        rows = self.schema.rows if rows is None else rows
        if rows is not None and len(self.schema.names) > 1:
            outlook = Outlook(
                schema=self.schema, rows=rows, budget=budget.of_run, neighbours=budget.neighbours,
                part=1 - (quantify or 0),
            )  # fmt: skip
        return self._preview(spec=spec, budget=budget, outlook=outlook, cautions=self.cautions(epsilon, rows))

    def earlier(self, preview: Preview) -> tuple[LoggedRun, ...]:
        """The runs of the log that were the same command as this one, finished or not."""
        command = preview.spec.facts.command
        return tuple(run for run in self.log if run.facts.command == command)

    @property
    def inputs(self) -> Inputs:
        """The files that its runs read, and its ledger: what no output may replace."""
        return self._inputs

    def _preview_of(self, question: Question, spec: RunSpec) -> Preview:
        if self._table is not None and spec.epsilon is None and spec.share is None:
            raise BudgetError("say how much the answer may cost: epsilon=0.1 (--epsilon 0.1)")
        budget = self._budget(spec)
        noise = questions.expected_noise(question, self.schema, budget)
        budget.check_share()
        return self._preview(
            spec=spec, budget=budget, question=question, noise=noise, cautions=self.cautions(spec.epsilon)
        )

    def _preview(self, **known: Any) -> Preview:
        return Preview(**known, insecure=self._insecure_seed is not None)

    # --- runs -------------------------------------------------------------------------------------------------------

    def discover(
        self,
        *,
        epsilon: float | None = None,
        method: str | Method = "auto",
        knowledge: Knowledge | str | Path | None = None,
        order: GivenOrder = None,
        latent: bool = False,
        quantify: float | None = None,
        by: str | None = None,
        purpose: str | None = None,
        result: str = "",
        share: float | None = None,
        progress: Notice | None = None,
        deliver: Callable[[Discovery], None] | None = None,
    ) -> Discovery:
        """Find which columns drive which.

        Args:
            epsilon: how much of what is left this run may spend; all of it if not given.
            method: a name (`dpcurate methods` lists them) or a recipe.
            knowledge: forbidden and required edges, or the path of a file that lists them.
            order: what comes first, such as ``"sex, age | smoker | *"`` or lists of names, in place of the schema's
                order; an empty one stands for no order.
            latent: whether common causes may be missing from the table; the graph is then a PAG.
            quantify: the part of the budget set aside for a fitted model, such as 0.5.
            by: who runs it, for the log (default: the login name).
            purpose: what the run is for, for the log.
            result: where the result goes, for the log.
            share: the same as `epsilon`, in the budget's currency.
            progress: called with a stage and a number of tests before they are made.
            deliver: called with the result before the run ends; if it fails, the same call resumes and pays nothing.

        Returns:
            The graph with its probabilities, its effects and its privacy statement.

        Raises:
            BudgetExceeded: nothing, or less than `epsilon`, is left. Nothing was read.
        """
        known = self._known(knowledge, order)
        told = {"epsilon": epsilon, "share": share, "by": by, "purpose": purpose, "result": result}
        spec = self._graph_spec(method, known, latent=latent, quantify=quantify, **told)
        with self._run(spec) as run:
            found = run.discovered(known, progress, self._inputs.with_(knowledge=knowledge))
            if deliver is not None:
                deliver(replace(found, privacy=run.privacy()))
        # The privacy statement comes after the run, which has given back what it did not use.
        return replace(found, privacy=run.privacy())

    def ask(
        self,
        question: Question,
        *,
        epsilon: float | None = None,
        by: str | None = None,
        purpose: str | None = None,
        result: str = "",
        share: float | None = None,
        deliver: Callable[[Asked], None] | None = None,
    ) -> Asked:
        """Release counts, means or quantiles at a cost of `epsilon`; other arguments are those of `discover`.

        Example:
            >>> print(study.ask(dpcurate.queries.Counts(("Smoker",)), epsilon=0.1))
        """
        told = {"epsilon": epsilon, "share": share, "by": by, "purpose": purpose, "result": result}
        preview = self._preview_of(question, self._question_spec(question, **told))
        with self._run(preview.spec) as run:
            asked = Asked(questions.measured(run.queryable, question), run.privacy(), run.record, self._inputs)
            if deliver is not None:
                deliver(asked)
        return replace(asked, privacy=run.privacy())

    def fit_model(
        self, found: Discovery, *, epsilon: float | None = None, share: float | None = None, dag: Dag | None = None
    ) -> Model:
        """Release what a model of the found graph still needs, and fit it; asking the model is free.

        What the run that found the graph has released is used again. The model has the edges of the highest expected
        F1 (`found.at("best-f1")`), because a missing edge harms a table more than one too many; `dag` is another graph
        to fit. A table of levels gets conditional tables, one with numbers regressions.
        """
        graph = model_graph(found, self.schema, dag)
        self._check_same_table(found)
        spec = self._spec(QUANTIFY_RUN, sorted(graph.arrows), epsilon=epsilon, share=share)
        with self._run(spec) as run:
            return fit_model(found, run.queryable, dag)

    # --- how a run begins and ends ----------------------------------------------------------------------------------

    @contextmanager
    def _run(self, spec: RunSpec) -> Iterator[_Run]:
        """Decide what may be spent, open the table, begin the run or resume it, and record how it ended."""
        budget = self._budget(spec)
        if self._curator is None:
            self._curator = self._opened(budget)
        curator = self._curator
        before = curator.privacy()
        with running(curator, spec, budget.share) as queryable:
            left = queryable.remaining
            if left <= 0 or (budget.share is None and curator.budget.is_negligible(left)):
                raise BudgetExceeded(
                    "nothing is left of this table's budget, so nothing was read. `ledger show` says where it went"
                )
            yield _Run(curator, queryable, spec, record_of(curator, spec), before)

    def _budget(self, spec: RunSpec) -> RunBudget:
        if self._curator is not None:
            return RunBudget.of_open(self._curator, spec, self.ledger)
        return RunBudget.of(
            spec, ceiling=self._ceiling, delta=self._delta, neighbours=self._neighbours, ledger=self.ledger
        )

    def _graph_spec(
        self, method: str | Method, known: Knowledge | None, *, latent: bool, quantify: float | None, **told: Any
    ) -> RunSpec:
        """A run as a ledger recognises it; what makes no sense is refused before a table is opened."""
        if self._curator is None:
            methods.check_keeps_budget(method)
        if known is not None:
            known.check(self.schema.names)
        check_part(quantify, latent=latent)
        recipe = methods.get(method, latent=latent)
        name = method if isinstance(method, str) else type(recipe).__name__
        knowledge = "" if known is None else known.dumps()
        return self._spec(name, recipe, knowledge=knowledge, quantify=quantify, **told)

    def _question_spec(self, question: Question, **told: Any) -> RunSpec:
        return self._spec(questions.kind(question), question, **told)

    def _spec(self, method: str, recipe: object, **told: Any) -> RunSpec:
        return RunSpec(
            table=self._table,
            schema=self.schema,
            method=method,
            recipe=recipe,
            schema_file=self._schema_file,
            named="" if (keeper := keeper_of(self._curator)) is None else keeper.table,
            **told,
        )

    def _known(self, knowledge: Knowledge | str | Path | None, order: GivenOrder) -> Knowledge | None:
        loaded = Knowledge.load(knowledge) if isinstance(knowledge, (str, Path)) else knowledge
        known = with_order(loaded, order, self.schema)
        return known if not self._context else (known or Knowledge()).before(self._context, self.schema.names)

    def _check_same_table(self, found: Discovery) -> None:
        """Refuse a result of another table, as far as tables can be told apart without looking at rows."""
        keeper = keeper_of(self._curator)
        if keeper is None or found.run is None:
            return
        here, there = keeper.table, found.run.table
        if here and there and here != there:
            raise QueryError(f"the graph was found in the table {there!r}, and the curator's is {here!r}")
        declared = bool(here) and here == there
        if not declared and found.run.origin.differs(keeper.origin):
            raise QueryError(
                "the graph was found in another table than the curator's: open the curator on that one, or keep the "
                "budget of both in one ledger, which says that they are one table"
            )


@dataclass(frozen=True, slots=True)
class _Run:
    """A run under way: what it asks, and what it has spent."""

    curator: Queryable
    queryable: Queryable
    spec: RunSpec
    record: RunRecord
    before: Privacy
    """What was stated before the run: the curator's earlier runs in this process have spent, too."""

    def privacy(self) -> Privacy:
        """The privacy statement, with what this run has spent so far."""
        return self.curator.privacy().since(self.before)

    def discovered(self, known: Knowledge | None, progress: Notice | None, inputs: Inputs) -> Discovery:
        """The graph, and its model if a part of the budget is set aside for one."""
        from dpcurate import __version__

        part = self.spec.quantify
        if isinstance(self.curator, StoredAnswers):
            part = self.curator.logged.facts.quantify
        source = self.queryable if part is None else Reserving(self.queryable, part * self.queryable.remaining)
        recipe: Any = self.spec.recipe
        learned = recipe.fit(source if progress is None else Reporting(source, progress), known)
        found = Discovery(
            learned, self.privacy(), self.spec.method, self.curator.schema, known, {"dpcurate": __version__},
            run=self.record, inputs=inputs,
        )  # fmt: skip
        return found if part is None else replace(found, model=model_of(found, self.queryable))


def model_of(found: Discovery, queryable: Queryable, dag: Dag | None = None) -> Model | None:
    """The model of a run with a part for it; none where stored answers are not those that this graph needs."""
    if found.graph.latent:
        return None
    try:
        return fit_model(found, queryable, dag)
    except NotStored:
        return None

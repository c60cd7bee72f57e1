"""Questions of a person, counts, means or quantiles, and what answers them."""

from __future__ import annotations

from fractions import Fraction
from math import prod
from pathlib import Path

from dpcurate._files import Inputs
from dpcurate.errors import LedgerError, QueryError
from dpcurate.private.ledger.disk_store import stored_runs
from dpcurate.private.ledger.path import real
from dpcurate.private.ledger.run_log import FINISHED
from dpcurate.private.preview import preview
from dpcurate.private.stored import StoredAnswers
from dpcurate.queries import Counts, Estimates, Means, Quantile, Queryable, Release, Tables
from dpcurate.result.asked import Asked
from dpcurate.schema import Schema
from dpcurate.study.quantiles import Quantiles, first_queries, last_epsilon, measure, noise_of, tell
from dpcurate.study.run_budget import ASK_RUN, RunBudget, RunSpec, record_of

Question = Counts | Tables | Means | Quantiles


def asked_from(ledger: str | Path, run: int | None = None) -> Asked:
    """The answer that a run of `ask` has stored in a ledger or in a copy of one: no table, no charge.

    `run` is its number in the log, by default the newest.
    """
    path = real(ledger)
    runs = [n for n, one in stored_runs(path).items() if one.logged.facts.method.startswith(ASK_RUN)]
    if not runs or (run is not None and run not in runs):
        one = "no run" if run is None else f"no run {run}"
        there = f"; it has {', '.join(map(str, runs))}" if runs else ""
        raise LedgerError(f"{path} has {one} of `ask` with a stored answer{there} ('dpcurate ledger log' lists runs)")
    stored = StoredAnswers(path, max(runs) if run is None else run)
    if stored.logged.outcome != FINISHED:
        raise LedgerError(f"run {stored.run} of {path} was stopped, or is under way: the same command resumes it")
    question, tables = _shown(stored)
    spec = RunSpec(table=None, schema=stored.schema, method=kind(question), recipe=question)
    return Asked(tables, stored.privacy(), record_of(stored, spec), Inputs.of(ledger=ledger))


def _shown(stored: StoredAnswers) -> tuple[Question, tuple[Estimates, ...]]:
    """What was asked, and its tables."""
    released = stored.released
    points = [query for query, _ in released if isinstance(query, Quantile) and not query.cuts]
    if points:
        asked = Quantiles(points[0].column, tuple(float(query.probability) for query in points))
        return asked, (tell(stored.schema, released),)
    ((_, answered),) = released
    return answered.statistic, answered.estimates()


def kind(question: Question) -> str:
    """What the log calls a run that asks this; refuses what is no question."""
    if type(question) not in (Counts, Tables, Means, Quantiles):
        raise QueryError(f"ask for Counts, Tables, Means or Quantiles, not for {type(question).__name__}")
    return f"{ASK_RUN} {type(question).__name__.lower()}"


def described(question: Question, schema: Schema) -> str:
    """The question in words, such as "8 counts of age, sex"."""
    if isinstance(question, Quantiles):
        return f"the quantiles {', '.join(f'{p:g}' for p in question.probabilities)} of {question.column}"
    if isinstance(question, Means):
        return f"the mean of {', '.join(question.columns)}"
    if isinstance(question, Counts):
        return f"{prod(schema.sizes(question.columns)):,} counts of {', '.join(question.columns)}"
    return f"{len(question.sets)} tables of counts"


def expected_noise(question: Question, schema: Schema, run: RunBudget) -> float | None:
    """The standard deviation of the noise to expect, None where the rows decide; from public facts alone."""
    amount, budget = float(run.of_run.ceiling), run.budget
    _check_levels(question, schema)
    if isinstance(question, Quantiles):
        end = Quantile(column=question.column, probability=0.5, epsilon=last_epsilon(question, amount, budget))
        for query in (*first_queries(question, amount, budget), end):  # nothing may be refused after the first is paid
            preview(query, schema, run.neighbours)
        return None
    return preview(Release(question, noise_of(Fraction(amount), budget)), schema, run.neighbours)


def _check_levels(question: Question, schema: Schema) -> None:
    sets = question.sets if isinstance(question, Tables) else ()
    for columns in (question.columns,) if isinstance(question, Counts) else sets:
        for name in (name for name in columns if not schema[name].has_levels):
            raise QueryError(
                f"column {name!r} is a number without bins, so there are no levels to count: ask for its mean or its "
                "quantiles, or give it bins in the schema, e.g. bins = 4"
            )


def measured(queryable: Queryable, question: Question) -> tuple[Estimates, ...]:
    """The answer, with all that the queryable has left."""
    if isinstance(question, Quantiles):
        return (measure(queryable, question),)
    noise = noise_of(Fraction(queryable.remaining), queryable.budget)
    return queryable.ask(Release(question, noise)).estimates()

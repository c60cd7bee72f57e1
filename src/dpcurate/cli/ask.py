"""`dpcurate ask`: say what an answer will cost, spend it, print it."""

from __future__ import annotations

import csv
import os
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

from dpcurate._files import Folder, Inputs
from dpcurate._messages import one_line
from dpcurate.cli.files import load_schema
from dpcurate.cli.texts import existing, say, show, some_table, table_name
from dpcurate.errors import QueryError
from dpcurate.private.ledger.run_log import FINISHED
from dpcurate.queries import Counts, Means
from dpcurate.result.asked import Asked, check_report
from dpcurate.schema import Schema
from dpcurate.study.quantiles import Quantiles
from dpcurate.study.questions import Question, asked_from
from dpcurate.study.study import Preview, Study

_NEEDLESS = ("table", "schema", "epsilon", "counts", "mean", "quantiles", "delta", "neighbours", "ledger", "name")


def run(args: Namespace) -> None:
    if args.from_answers is not None:
        _again(args)
    else:
        _run(args)


def _again(args: Namespace) -> None:
    """The answer of an earlier run, for nothing."""
    for name in (*_NEEDLESS, "by", "purpose", "insecure_seed"):
        if getattr(args, name) is not None:
            word = {"table": "a table", "name": "--table"}.get(name, f"--{name.replace('_', '-')}")
            raise QueryError(f"--from-answers reads no table and spends nothing: leave out {word}")
    path, number = args.from_answers
    folder = _folder(args, Inputs.of(ledger=path), force=args.force)
    asked = asked_from(existing(path, "ledger"), number)
    say(f"from the answers stored in {one_line(path)}: no table is read and nothing is spent")
    say(one_line(asked.run))
    _hand_over(args, asked, folder)
    say(str(asked.privacy))


def _run(args: Namespace) -> None:
    table, schema = some_table(args.table), load_schema(args.schema)
    question = _question(args, schema)
    study = Study(
        table, args.schema, delta=args.delta, neighbours=args.neighbours, ledger=args.ledger, name=args.name,
        insecure_seed=args.insecure_seed,
    )  # fmt: skip
    run: dict[str, Any] = {
        "epsilon": args.epsilon, "by": args.by, "purpose": args.purpose,
        "result": "standard output" if args.output is None else os.path.abspath(args.output),
    }  # fmt: skip
    preview = study.preview(question, **run)
    inputs = Inputs.of(table=args.table, schema=args.schema, ledger=args.ledger)
    folder = _folder(args, inputs, force=args.force or preview.goes_on)
    _announce(args, question, schema, preview)
    for caution in study.cautions(args.epsilon):
        say(f"warning: {caution}")
    _tell_of_earlier(args, study, preview)
    asked = study.ask(question, **run, deliver=lambda asked: _hand_over(args, asked, folder))
    say(str(asked.privacy))


def _question(args: Namespace, schema: Schema) -> Question:
    if args.counts is not None:
        return Counts(_columns(args.counts, schema))
    if args.mean is not None:
        return Means(_columns(args.mean, schema))
    column, probabilities = args.quantiles
    return Quantiles(column, tuple(map(_probability, probabilities.split(","))))


def _columns(text: str, schema: Schema) -> tuple[str, ...]:
    """Names between commas; one that holds a comma itself alone as it is, and beside others in double quotes."""
    return (text,) if text in schema.names else tuple(map(str.strip, next(csv.reader([text], skipinitialspace=True))))


def _probability(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise QueryError(f"quantiles are numbers between 0 and 1, such as 0.25,0.5,0.75; got {text!r}") from None


def _folder(args: Namespace, inputs: Inputs, *, force: bool) -> Folder | None:
    """A file that cannot be written is found out before anything is paid for."""
    if args.output is None:
        return None
    folder = Folder.of_file(args.output, inputs, force=force)
    check_report(args.output)
    return folder


def _announce(args: Namespace, question: Question, schema: Schema, preview: Preview) -> None:
    person, budget = schema.person, preview.budget
    unit = "one row" if person is None else f"one person, {person.cap}"
    part = float(budget.of_run.ceiling) / (budget.left or 1.0)
    share = "" if budget.left is None else f", {part:.2%} of what is left"
    say(f"before any row is read: this will cost {budget}{share}")
    say(f"  for     {one_line(_words(question, schema))} of {table_name(args.table)}")
    if preview.noise is not None:
        of = "count" if isinstance(question, Counts) else "sum and count behind the means"
        say(f"  error   noise of standard deviation {preview.noise:.4g} on every {of}")
    say(f"  unit    {unit}; neighbours: {budget.neighbours.value}")
    say(f"  ledger  {one_line(budget.kept)}")
    if args.insecure_seed is not None:
        say("  NOT PRIVATE: with --insecure-seed whoever knows the seed can undo the noise")


def _tell_of_earlier(args: Namespace, study: Study, preview: Preview) -> None:
    """Another answer to the same question is paid for again; the first one is stored."""
    command = preview.spec.facts.command
    for run in study.log:
        if run.facts.command == command and run.outcome == FINISHED:
            say(f"note: run {run.number} asked the same, and its answer is stored. To see that one for nothing:")
            say(f"  dpcurate ask --from-answers {one_line(args.ledger)} {run.number}")
            return


def _words(question: Question, schema: Schema) -> str:
    if isinstance(question, Quantiles):
        return f"the quantiles {', '.join(f'{p:g}' for p in question.probabilities)} of {question.column}"
    columns = ", ".join(question.columns) if isinstance(question, (Counts, Means)) else ""
    if isinstance(question, Means):
        return f"the mean of {columns}"
    cells = 1
    for size in schema.sizes(question.columns if isinstance(question, Counts) else ()):
        cells *= size
    return f"{cells:,} counts of {columns}"


def _hand_over(args: Namespace, asked: Asked, folder: Folder | None) -> None:
    try:
        if folder is not None:
            say(f"written: {folder.write(Path(args.output).name, asked.report_text(args.output))}")
    finally:  # paid for, so shown whatever happens to the file
        text = asked.to_csv() if args.csv else asked.to_json() if args.json else "\n\n".join(map(str, asked.tables))
        show(text.rstrip("\n"))
        if sys.stdout is not None:  # closed by the caller
            sys.stdout.flush()

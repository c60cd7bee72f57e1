"""`dpcurate ask`: announce what an answer will cost, spend it, print the answer."""

from __future__ import annotations

import csv
from argparse import Namespace
from pathlib import Path
from typing import Any

from dpcurate import Asked, Inputs, OutputFolder, Quantiles, Schema, asked_from, messages
from dpcurate.cli.options import destination, existing, refuse_for_answers, some_study
from dpcurate.cli.terminal import flush, say, show
from dpcurate.errors import QueryError
from dpcurate.queries import Counts, Means

_OF_A_RUN = (
    "table", "schema", "epsilon", "counts", "mean", "quantiles", "delta", "neighbours", "ledger", "name", "by",
    "purpose", "insecure_seed", "server",
)  # fmt: skip


def run(args: Namespace) -> None:
    """A new answer, or a stored one."""
    if args.from_answers is not None:
        _from_answers(args)
    else:
        _new_answer(args)


def _from_answers(args: Namespace) -> None:
    refuse_for_answers(args, _OF_A_RUN)
    ledger, number = args.from_answers
    folder = _folder(args, Inputs.of(ledger=ledger), force=args.force)
    asked = asked_from(existing(ledger, "ledger"), number)
    say(f"from the answers stored in {messages.one_line(ledger)}: no table is read and nothing is spent")
    say(messages.one_line(asked.run))
    _hand_over(args, asked, folder)
    say(asked.privacy)


def _new_answer(args: Namespace) -> None:
    study = some_study(args)
    question = _question(args, study.schema)
    told: dict[str, Any] = {
        "epsilon": args.epsilon, "by": args.by, "purpose": args.purpose,
        "result": destination(args),
    }  # fmt: skip
    preview = study.preview(question, **told)
    folder = _folder(args, study.inputs, force=args.force or preview.goes_on)
    say(preview)
    answered = [run for run in study.earlier(preview) if run.finished]
    if answered and args.server is None:
        say(f"note: run {answered[0].number} asked the same, and its answer is stored. To see that answer for free:")
        say(f"  dpcurate ask --from-answers {messages.one_line(args.ledger)} {answered[0].number}")
    asked = study.ask(question, **told, deliver=lambda asked: _hand_over(args, asked, folder))
    say(asked.privacy)


def _question(args: Namespace, schema: Schema) -> Counts | Means | Quantiles:
    if args.counts is not None:
        return Counts(_columns(args.counts, schema))
    if args.mean is not None:
        return Means(_columns(args.mean, schema))
    column, probabilities = args.quantiles
    return Quantiles(column, tuple(map(_probability, probabilities.split(","))))


def _columns(text: str, schema: Schema) -> tuple[str, ...]:
    """Names between commas; a name that holds a comma itself stands alone, or in double quotes among others."""
    return (text,) if text in schema.names else tuple(map(str.strip, next(csv.reader([text], skipinitialspace=True))))


def _probability(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise QueryError(f"quantiles are numbers between 0 and 1, such as 0.25,0.5,0.75; got {text!r}") from None


def _folder(args: Namespace, inputs: Inputs, *, force: bool) -> OutputFolder | None:
    """The folder of the file, checked before anything is paid for."""
    if args.output is None:
        return None
    return OutputFolder.of_file(args.output, inputs, force=force, suffixes=Asked.SUFFIXES)


def _hand_over(args: Namespace, asked: Asked, folder: OutputFolder | None) -> None:
    try:
        if folder is not None:
            say(f"written: {folder.write(Path(args.output).name, asked.report_text(args.output))}")
    finally:  # paid for, so shown whatever happens to the file
        if args.csv:
            text = asked.to_csv()
        elif args.json:
            text = asked.to_json()
        else:
            text = "\n\n".join(map(str, asked.tables))
        show(text.rstrip("\n"))
        flush()

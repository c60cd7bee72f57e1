"""`dpcurate discover`: say what will be spent, spend it, hand over what was found."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from typing import Any

from dpcurate._files import Inputs
from dpcurate._messages import one_line
from dpcurate.cli import from_answers, not_private, quantified
from dpcurate.cli.asking import check_worth
from dpcurate.cli.cuts import asked_cut, at_cut
from dpcurate.cli.files import hand_over, load_knowledge, load_schema, result_folder, tell_order
from dpcurate.cli.progress import Bar, progress
from dpcurate.cli.settings import chosen
from dpcurate.cli.texts import say, some_table, table_name
from dpcurate.errors import OutputError
from dpcurate.private.ledger.run_log import FINISHED
from dpcurate.result.discovery import Discovery
from dpcurate.result.threshold import Threshold
from dpcurate.schema import Schema
from dpcurate.study.study import Preview, Study


def run(args: Namespace) -> None:
    cut = asked_cut(args)
    if args.from_answers is not None:
        from_answers.run(args, cut)
    elif not_private.asked(args):
        not_private.run(args, cut)
    else:
        _run(args, cut)


def _run(args: Namespace, cut: Threshold | None) -> None:
    table, schema = some_table(args.table), load_schema(args.schema)
    knowledge = load_knowledge(args, schema)
    quantified.check(args, schema)
    study = Study(
        table, args.schema, delta=args.delta, neighbours=args.neighbours, ledger=args.ledger, name=args.name,
        insecure_seed=args.insecure_seed,
    )  # fmt: skip
    run: dict[str, Any] = {
        "epsilon": args.epsilon, "method": chosen(args), "knowledge": knowledge, "order": (), "latent": args.latent,
        "quantify": args.quantify, "by": args.by, "purpose": args.purpose,
        "result": "standard output" if args.output is None else os.path.abspath(args.output),
    }  # fmt: skip
    preview = study.preview(**run)
    inputs = Inputs.of(table=args.table, schema=args.schema, knowledge=args.knowledge, ledger=args.ledger)
    model = () if args.quantify is None else quantified.names(schema, args.synthetic)
    folder = result_folder(args.output, inputs, force=args.force or preview.goes_on, more=model)
    _announce(args, schema, study, preview)
    if preview.resumes is None:
        check_worth(args, schema, preview.budget)
    bar = Bar()

    def deliver(result: Discovery) -> None:
        bar.clear()
        if study.passes > 1:  # a table that is held is read once
            say(f"passes over the table: {study.passes}")
        hand_over(at_cut(result, cut), folder, rows=args.synthetic)
        quantified.tell(result, args.synthetic)
        tell_order(result, args.ledger)
        if sys.stdout is not None:  # closed by the caller
            sys.stdout.flush()

    try:
        study.discover(**run, progress=progress(study, bar), deliver=deliver)
    except BaseException as problem:  # told, and raised again: what was spent stays spent whatever went wrong
        bar.clear()
        _tell_of_failure(study, preview, problem)
        raise
    finally:
        bar.clear()


def _tell_of_failure(study: Study, preview: Preview, problem: BaseException) -> None:
    privacy, stopped = (
        study.privacy(),
        any(run.facts.command == preview.spec.facts.command and run.outcome != FINISHED for run in study.log),
    )
    if isinstance(problem, OutputError):
        if stopped:
            say("the answers are in the ledger: the same command, given again, writes the files and pays nothing more")
    elif privacy is not None and (privacy.run or 0) > 0:
        kept = "no ledger holds it: write it down" if study.ledger is None else "the ledger holds it"
        say(f"stopped before the end, nothing was written. Spent on this table: {privacy}; {kept}")
    elif isinstance(problem, KeyboardInterrupt):
        say("stopped before anything was spent")


def _announce(args: Namespace, schema: Schema, study: Study, preview: Preview) -> None:
    person = schema.person
    unit = "one row" if person is None else f"one person, {person.cap}"
    columns, table = len(schema.names), table_name(args.table)
    say(f"before any row is read: this run may spend {preview.budget}")
    say(f"  on      the edges among {columns} columns of {table} ({columns * (columns - 1) // 2} pairs)")
    hidden = ", causes may be hidden" if args.latent else ""
    say(f"  method  {one_line(args.method)}{hidden}; neighbours: {preview.budget.neighbours.value}; unit: {unit}")
    if args.quantify is not None:
        say(f"  model   {args.quantify:.0%} of it is set aside for the tables of what is found")
    say(f"  ledger  {one_line(preview.budget.kept)}")
    for caution in study.cautions(args.epsilon, args.rows):
        say(f"warning: {caution}")
    if args.insecure_seed is not None:
        say("  NOT PRIVATE: with --insecure-seed whoever knows the seed can undo the noise")

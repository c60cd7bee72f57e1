"""`dpcurate discover`: announce what will be spent, spend it, hand over the result."""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import Any

from dpcurate import Discovery, DpcurateError, Inputs, OutputFolder, Preview, Study, discover_from, messages
from dpcurate.cli import not_private
from dpcurate.cli.options import (
    at_threshold,
    check_threshold,
    chosen_method,
    destination,
    existing,
    knowledge_file,
    refuse_for_answers,
    some_study,
)
from dpcurate.cli.terminal import Bar, RunProgress, flush, hand_over, say, tell_order
from dpcurate.errors import OutputError, QueryError

NO_ROWS = (
    "note: without a rough public number of rows dpcurate cannot estimate what this run will find, and on a small "
    "table that may be mostly noise. Add --rows N, or `rows = N` to the schema"
)
MADE_UP = "MADE-UP-"
"""Before the name of every file that is about made-up rows."""
_OF_A_RUN = ("table", "schema", "epsilon", "delta", "neighbours", "ledger", "name", "by", "purpose", "insecure_seed",
              "server")  # fmt: skip


def run(args: Namespace) -> None:
    """A private run, one without privacy, or stored answers once more."""
    check_threshold(args)
    if args.from_answers is not None:
        _from_answers(args)
    elif not_private.asked(args):
        if args.server is not None:
            raise QueryError("a service answers with a guarantee and in no other way: leave out --not-private")
        not_private.run(args)
    else:
        _private_run(args)


def _private_run(args: Namespace) -> None:
    _check_model_options(args)
    if args.synthetic is not None and args.quantify is None:
        raise QueryError("synthetic rows are drawn from a model: add --quantify 0.5, the part of the budget for it")
    study = some_study(args)
    told: dict[str, Any] = {
        "epsilon": args.epsilon, "method": chosen_method(args), "knowledge": knowledge_file(args),
        "order": args.order, "latent": args.latent, "quantify": args.quantify, "by": args.by, "purpose": args.purpose,
        "result": destination(args),
    }  # fmt: skip
    preview = study.preview(**told, rows=args.rows)
    folder, mark = None, MADE_UP if args.dummy else ""
    if args.output is not None:
        names = tuple(f"{mark}{name}" for name in preview.files(synthetic=args.synthetic is not None))
        inputs = study.inputs.with_(knowledge=args.knowledge)
        folder = OutputFolder.made(args.output, names, inputs, force=args.force or preview.goes_on)
    say(preview)
    if preview.resumes is None:
        _check_worth(args, study, preview, told)
    bar = Bar()

    def deliver(result: Discovery) -> None:
        bar.clear()
        if study.passes > 1:  # a table in memory is read once
            say(f"passes over the table: {study.passes}")
        hand_over(at_threshold(result, args), folder, mark=mark, synthetic=args.synthetic)
        if args.server is None:
            tell_order(result, args.ledger)
        flush()

    try:
        study.discover(**told, progress=RunProgress(bar, lambda: study.remaining), deliver=deliver)
    except BaseException as problem:  # reported, and raised again: what was spent stays spent whatever went wrong
        bar.clear()
        _tell_of_failure(study, preview, problem)
        raise
    finally:
        bar.clear()


def _from_answers(args: Namespace) -> None:
    """Another order, knowledge, threshold or method, from answers that were paid for before."""
    refuse_for_answers(args, _OF_A_RUN)
    if args.not_private or args.variant != "proved":
        raise QueryError("--from-answers uses private answers, and methods with a proof: leave out --not-private")
    if args.quantify is not None:
        raise QueryError(
            "--from-answers spends nothing, and a model that the run has paid for comes with it: leave out --quantify"
        )
    _check_model_options(args)
    ledger, number = args.from_answers
    folder = None
    if args.output is not None:
        names = (*Discovery.FILES, *(() if args.synthetic is None else ("synthetic.csv",)))
        inputs = Inputs.of(knowledge=args.knowledge, ledger=ledger)
        folder = OutputFolder.made(args.output, names, inputs, force=args.force)
    knowledge = knowledge_file(args)
    say(f"from the answers stored in {messages.one_line(ledger)}: no table is read and nothing is spent")
    result = discover_from(
        existing(ledger, "ledger"), number, method=chosen_method(args), knowledge=knowledge, order=args.order,
        latent=args.latent,
    )  # fmt: skip
    names = tuple(result.files(synthetic=args.synthetic))
    if folder is not None:
        folder.check(names)
    hand_over(at_threshold(result, args), folder, synthetic=args.synthetic)
    tell_order(result, ledger)


def _check_model_options(args: Namespace) -> None:
    if args.synthetic is not None and args.synthetic < 1:
        raise QueryError(f"--synthetic is how many rows to write, at least 1, not {args.synthetic}")
    if args.output is None and (args.quantify, args.synthetic) != (None, None):
        raise QueryError("a model is written to a file: say where with -o FOLDER")


# --- is it worth its budget? --------------------------------------------------------------------------------


def _check_worth(args: Namespace, study: Study, preview: Preview, told: dict[str, Any]) -> None:
    """Return if the run is worth its budget or wanted all the same; nothing is read and nothing is spent here."""
    schema = study.schema
    if len(schema.names) < 2:
        return
    if preview.outlook is None and not args.yes:
        rows = _asked_rows()
        preview = preview if rows is None else study.preview(**told, rows=rows)
    outlook = preview.outlook
    if outlook is None:
        say(NO_ROWS)
        return
    if not outlook.hopeless:
        for sentence in outlook.sentences if args.method in ("auto", "measure-once") else ():
            say(f"  expect  {sentence}")
        return
    say(f"warning: {len(schema.names)} columns, {outlook.rows:,} rows and {outlook.budget} leave mostly noise.")
    for sentence in (*outlook.sentences, outlook.advice):
        say(f"  {sentence}")
    if not args.yes and not _agreed():
        raise DpcurateError("stopped before anything was read or spent")


def _asked_rows() -> int | None:
    """A rough public number of rows from whoever sits at the terminal; None where nobody does or answers."""
    if not sys.stdin.isatty():
        return None
    say("Roughly how many rows does the table have, from public knowledge? (Enter to continue without an estimate)")
    answer = sys.stdin.readline().strip().replace(",", "").replace("_", "")
    if answer and not (answer.isdecimal() and int(answer) > 0):
        raise DpcurateError(f"{answer!r} is not a number of rows; nothing was read or spent")
    return int(answer) if answer else None


def _agreed() -> bool:
    if not sys.stdin.isatty():
        raise DpcurateError("nothing was read or spent. There is no terminal to ask at; add --yes to run it anyway")
    say("Spend the budget anyway? [y/N]")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _tell_of_failure(study: Study, preview: Preview, problem: BaseException) -> None:
    privacy = study.privacy()
    if isinstance(problem, OutputError):
        if any(not run.finished for run in study.earlier(preview)):
            say("the answers are in the ledger: the same command writes the files and pays nothing more")
    elif privacy is not None and (privacy.run or 0) > 0:
        recorded = study.ledger is not None or preview.budget.keeper
        kept = "the ledger records it" if recorded else "no ledger records it: write it down"
        say(f"stopped before the end, nothing was written. Spent on this table: {privacy}; {kept}")
    elif isinstance(problem, KeyboardInterrupt):
        say("stopped before anything was spent")

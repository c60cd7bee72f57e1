"""`dpcurate discover`: say what will be spent, spend it, hand over what was found."""

from __future__ import annotations

import os
import sys
from argparse import Namespace

from dpcurate.accounting.cautions import cautions
from dpcurate.allowance import Allowance, Request, running
from dpcurate.cli import from_answers, not_private, quantified
from dpcurate.cli.asking import check_worth
from dpcurate.cli.cuts import asked_cut, at_cut
from dpcurate.cli.files import hand_over, load_knowledge, load_schema, result_folder, tell_order
from dpcurate.cli.progress import Bar, progress
from dpcurate.cli.settings import chosen
from dpcurate.cli.texts import say, some_table, table_name
from dpcurate.discovery import fit, request_of
from dpcurate.errors import OutputError
from dpcurate.graphs.knowledge import Knowledge
from dpcurate.learn.cuts import Cut
from dpcurate.learn.methods import Method
from dpcurate.outputs import Folder, Inputs
from dpcurate.private.curator import Curator
from dpcurate.queries import Queryable
from dpcurate.result import Discovery
from dpcurate.schema import Schema
from dpcurate.wording import one_line


def run(args: Namespace) -> None:
    cut = asked_cut(args)
    if args.from_answers is not None:
        from_answers.run(args, cut)
    elif not_private.asked(args):
        not_private.run(args, cut)
    else:
        _run(args, cut)


def _run(args: Namespace, cut: Cut | None) -> None:
    table = some_table(args.table)
    schema = load_schema(args.schema)
    knowledge = load_knowledge(args, schema)
    quantified.check(args, schema)
    request = request_of(
        table, schema, chosen(args), knowledge, latent=args.latent, epsilon=args.epsilon, by=args.by,
        purpose=args.purpose,
        result="standard output" if args.output is None else os.path.abspath(args.output),
        schema_file=os.path.basename(args.schema), quantify=args.quantify,
        inputs=Inputs.of(table=args.table, schema=args.schema, knowledge=args.knowledge, ledger=args.ledger),
    )  # fmt: skip
    allowance = Allowance.of(
        epsilon=args.epsilon, delta=args.delta, neighbours=args.neighbours, ledger=args.ledger, request=request
    )
    again = allowance.resumes is not None and allowance.resumes.facts.result == request.facts.result
    model = () if args.quantify is None else quantified.names(schema, args.synthetic)
    # a run that was stopped may have begun to write
    folder = result_folder(args.output, request.inputs, force=args.force or again, more=model)
    _announce(args, schema, allowance)
    if allowance.resumes is None:
        check_worth(args, schema, allowance)
    curator = allowance.open(table, schema, name=args.name, insecure_seed=args.insecure_seed)
    try:
        _spend(args, curator, request, allowance, folder, knowledge, cut)
    except OutputError:
        if curator.ledger.stopped(request.facts.command) is not None:
            say("the answers are in the ledger: the same command, given again, writes the files and pays nothing more")
        raise


def _spend(
    args: Namespace,
    curator: Curator,
    request: Request,
    allowance: Allowance,
    folder: Folder | None,
    knowledge: Knowledge | None,
    cut: Cut | None,
) -> None:
    with running(curator, request, allowance.share) as queryable:  # ends when all is handed over, not before
        result = _learn(curator, queryable, request, chosen(args), knowledge, latent=args.latent)
        if curator.passes > 1:  # a table that is held is read once
            say(f"passes over the table: {curator.passes}")
        hand_over(at_cut(result, cut), folder, rows=args.synthetic)
        quantified.tell(result, args.synthetic)
        tell_order(result, args.ledger)
        if sys.stdout is not None:  # closed by the caller
            sys.stdout.flush()


def _announce(args: Namespace, schema: Schema, allowance: Allowance) -> None:
    person = schema.person
    unit = "one row" if person is None else f"one person, {person.cap}"
    columns, table = len(schema.names), table_name(args.table)
    say(f"before any row is read: this run may spend {allowance}")
    say(f"  on      the edges among {columns} columns of {table} ({columns * (columns - 1) // 2} pairs)")
    hidden = ", causes may be hidden" if args.latent else ""
    say(f"  method  {one_line(args.method)}{hidden}; neighbours: {allowance.neighbours.value}; unit: {unit}")
    if args.quantify is not None:
        say(f"  model   {args.quantify:.0%} of it is set aside for the tables of what is found")
    say(f"  ledger  {one_line(allowance.kept)}")
    for caution in cautions(allowance.budget, args.rows or schema.rows):
        say(f"warning: {caution}")
    if args.insecure_seed is not None:
        say("  NOT PRIVATE: with --insecure-seed whoever knows the seed can undo the noise")


def _learn(
    curator: Curator,
    queryable: Queryable,
    request: Request,
    method: str | Method,
    knowledge: Knowledge | None,
    *,
    latent: bool,
) -> Discovery:
    bar, before = Bar(), curator.ledger.spent
    notice = progress(queryable, bar)
    try:
        return fit(
            queryable, method, knowledge, order=(), notice=notice, request=request, latent=latent,
            quantify=request.quantify,
        )  # fmt: skip
    except BaseException as problem:  # told, and raised again: what was spent stays spent whatever went wrong
        bar.clear()
        if curator.ledger.spent > before:
            _tell_spent(curator)
        elif isinstance(problem, KeyboardInterrupt):
            say("stopped before anything was spent")
        raise
    finally:
        bar.clear()


def _tell_spent(curator: Curator) -> None:
    kept = "the ledger holds it" if curator.ledger.facts else "no ledger holds it: write it down"
    say(f"stopped before the end, nothing was written. Spent on this table: {curator.privacy()}; {kept}")

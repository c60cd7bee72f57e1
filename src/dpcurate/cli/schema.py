"""`dpcurate schema`: for the owner of a table."""

from __future__ import annotations

import sys
from argparse import Namespace
from contextlib import redirect_stderr

from dpcurate.accounting import Budget
from dpcurate.cli.files import load_schema
from dpcurate.cli.texts import fresh, say, show, some_table, table_name
from dpcurate.private.curator import Curator
from dpcurate.private.draft import drafted


def draft_file(args: Namespace) -> None:
    target = None if args.output is None else fresh(args.output, force=args.force)
    given = {"separator": args.separator, "encoding": args.encoding, "decimal": args.decimal}
    result = drafted(some_table(args.table), **given)
    if result.read_as:
        say(f"read as {result.read_as}")
    say("this looked at the data: check every line before anyone uses the schema")
    if target is None:
        show(result.text.rstrip("\n"))
    else:
        target.write_text(result.text, encoding="utf-8")
        say(f"written: {target}; next: dpcurate schema check {table_name(args.table)} --schema {str(target)!r}")


def check(args: Namespace) -> None:
    schema = load_schema(args.schema)
    say("this looks at the data, for the owner's eyes only: what it says is not private, do not publish it")
    with redirect_stderr(sys.stdout):
        # Opening releases nothing; the unlimited budget is never used.
        Curator(some_table(args.table), schema, budget=Budget.unlimited(), check=True)
    show(f"the table can be used with this schema (hash {schema.hash})")

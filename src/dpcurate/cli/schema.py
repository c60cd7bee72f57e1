"""`dpcurate schema`: for the owner of a table."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path

from dpcurate._files import Folder, Inputs
from dpcurate.cli.files import load_schema
from dpcurate.cli.texts import say, show, some_table, table_name
from dpcurate.errors import DpcurateError
from dpcurate.private.check import check as check_table
from dpcurate.private.draft import drafted


def draft_file(args: Namespace) -> None:
    inputs = Inputs.of(table=args.table)
    folder = None if args.output is None else Folder.of_file(args.output, inputs, force=args.force)
    given = {"separator": args.separator, "encoding": args.encoding, "decimal": args.decimal}
    result = drafted(some_table(args.table), **given, skip=args.skip)
    if result.read_as:
        say(f"read as {result.read_as}")
    say("this looked at the data: check every line before anyone uses the schema")
    if result.repeated_id is not None:
        say(f"does column {result.repeated_id!r} identify persons? Its ids repeat: see [person] in the draft")
    if folder is None:
        show(result.text.rstrip("\n"))
    else:
        target = folder.write(Path(args.output).name, result.text)
        say(f"written: {target}; next: dpcurate schema check {table_name(args.table)} --schema {str(target)!r}")


def check(args: Namespace) -> None:
    schema = load_schema(args.schema)
    if not args.yes and not (sys.stdout is not None and sys.stdout.isatty()):
        raise DpcurateError(
            "a check prints exact numbers of the table, which are for the owner's eyes only, and standard output is "
            "no terminal: nothing was read. Run it in a terminal, or add --yes if you may see them"
        )
    say("this looks at the data, for the owner's eyes only: what it says is not private, do not publish it")
    told = check_table(some_table(args.table), schema)
    show(f"NOT PRIVATE, for the owner's eyes only\n{told}\nNOT PRIVATE, for the owner's eyes only\n")
    show(f"the table can be used with this schema (hash {schema.hash})")

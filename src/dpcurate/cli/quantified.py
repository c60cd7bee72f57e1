"""`dpcurate discover --quantify`: what is asked for is possible, and the files of a model."""

from __future__ import annotations

import csv
import secrets
from argparse import Namespace
from pathlib import Path

from dpcurate.cli.texts import say
from dpcurate.discovery import Discovery
from dpcurate.errors import QueryError
from dpcurate.models.fitting import check_part
from dpcurate.models.model import Model
from dpcurate.schema import Schema

MODEL = "model.bif"
ROWS = "synthetic.csv"
LARGEST_SEED = 2**32


def refuse(args: Namespace, why: str) -> None:
    """No model where nothing may be bought."""
    if args.quantify is not None or args.synthetic is not None:
        raise QueryError(f"{why}: leave out --quantify and --synthetic")


def check(args: Namespace, schema: Schema) -> None:
    """Before anything is read or spent."""
    check_part(args.quantify, schema, latent=args.latent)
    if args.synthetic is not None and args.quantify is None:
        raise QueryError("synthetic rows are drawn from a model: add --quantify 0.5, the part of the budget for it")
    if args.synthetic is not None and args.synthetic < 1:
        raise QueryError(f"--synthetic is how many rows to write, at least 1, not {args.synthetic}")
    if args.quantify is not None and args.output is None:
        raise QueryError(f"a model is written to a file, {MODEL}: say where with -o FOLDER")


def write(result: Discovery, folder: Path | None, rows: int | None) -> None:
    """The model, and rows drawn from it."""
    if result.model is None or folder is None:
        return
    say(f"written: {result.model.save(folder / MODEL)}")
    if rows is not None:
        say(f"written: {_rows(result.model, folder / ROWS, rows)}, {rows:,} synthetic rows")
        say(f"note: {result.model.note}")


def _rows(model: Model, path: Path, rows: int) -> Path:
    table = model.sample(rows, seed=secrets.randbelow(LARGEST_SEED))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(table)
        writer.writerows(zip(*(column.tolist() for column in table.values()), strict=True))
    return path

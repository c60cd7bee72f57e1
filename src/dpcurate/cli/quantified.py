"""`dpcurate discover --quantify`: what is asked for is possible, and the files of a model."""

from __future__ import annotations

import csv
import io
import secrets
from argparse import Namespace
from collections.abc import Callable
from functools import partial
from typing import Any

from dpcurate._messages import how_many
from dpcurate.cli.texts import say
from dpcurate.errors import FormatError, QueryError
from dpcurate.graphs.formats.bif_grammar import quote
from dpcurate.models.chosen import has_tables
from dpcurate.models.fitting import check_part
from dpcurate.models.mixed import ScoreModel
from dpcurate.models.model import Model
from dpcurate.result.discovery import Discovery
from dpcurate.schema import Column, Numeric, Schema

MODEL, SCORES = "model.bif", "model.json"
ROWS = "synthetic.csv"
LARGEST_SEED = 2**32


def refuse(args: Namespace, why: str) -> None:
    """No model where nothing may be bought."""
    if args.quantify is not None or args.synthetic is not None:
        raise QueryError(f"{why}: leave out --quantify and --synthetic")


def check(args: Namespace, schema: Schema) -> None:
    """Before anything is read or spent."""
    check_part(args.quantify, latent=args.latent)
    if args.quantify is not None and has_tables(schema):
        for name in (name for column in schema.columns for name in (column.name, *column.levels)):
            _check_name(name)
    if args.synthetic is not None and args.quantify is None:
        raise QueryError("synthetic rows are drawn from a model: add --quantify 0.5, the part of the budget for it")
    _check_rows(args)


def _check_name(name: str) -> None:
    try:
        quote(name)
    except FormatError as problem:
        raise QueryError(f"{problem}; rename it, or use discover(..., quantify=...) in Python") from None


def _check_rows(args: Namespace) -> None:
    if args.synthetic is not None and args.synthetic < 1:
        raise QueryError(f"--synthetic is how many rows to write, at least 1, not {args.synthetic}")
    if args.output is None and (args.quantify, args.synthetic) != (None, None):
        raise QueryError(f"a model is written to a file, {MODEL}: say where with -o FOLDER")


def refuse_stored(args: Namespace) -> None:
    """With --from-answers nothing is bought; rows of a model that a run has paid for can be drawn again."""
    if args.quantify is not None:
        raise QueryError(
            "--from-answers spends nothing, and a model that the run has paid for comes with it: leave out --quantify"
        )
    _check_rows(args)


def check_stored(args: Namespace, result: Discovery) -> None:
    """Synthetic rows need a model."""
    if args.synthetic is not None and result.model is None:
        raise QueryError(
            "the stored answers hold no model of this graph to draw rows from: leave out --synthetic, or other "
            "knowledge and methods than the run had; a run with --quantify 0.5 buys one"
        )


def names(schema: Schema, rows: int | None) -> tuple[str, ...]:
    """The files of a model of such a table."""
    return (MODEL if has_tables(schema) else SCORES, *(() if rows is None else (ROWS,)))


def texts(result: Discovery, rows: int | None) -> dict[str, Callable[[], str]]:
    """The files of the model, if there is one, and of rows drawn from it."""
    model = result.model
    if model is None:
        return {}
    found: dict[str, Callable[[], str]] = {MODEL if isinstance(model, Model) else SCORES: model.file_text}
    if rows is not None:
        found[ROWS] = partial(_rows, model, rows)
    return found


def tell(result: Discovery, rows: int | None) -> None:
    """What synthetic rows are good for."""
    if rows is not None and result.model is not None:
        say(f"note: {how_many(rows, 'synthetic row')} drawn from the model. {result.model.note}")


def _rows(model: Model | ScoreModel, rows: int) -> str:
    table = model.sample(rows, seed=secrets.randbelow(LARGEST_SEED))
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(table)
    writer.writerows(zip(*(_written(model.schema[name], cells) for name, cells in table.items()), strict=True))
    return text.getvalue()


def _written(column: Column, cells: Any) -> list[str]:
    """Cells as a file has them: of a number six digits, which are within its bounds; a missing one is empty."""
    if not isinstance(column, Numeric):
        return list(cells)
    short = ("" if cell != cell else f"{cell:.6g}" for cell in cells.tolist())
    return [text and f"{min(max(float(text), column.low), column.high):.15g}" for text in short]

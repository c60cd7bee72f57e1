"""The files of a result in one folder: reports, the graph in several formats, and those of a model."""

from __future__ import annotations

import csv
import io
import secrets
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from dpcurate.errors import QueryError
from dpcurate.graphs.formats import text_for
from dpcurate.models.fitting import file_name
from dpcurate.schema import Column, Numeric

if TYPE_CHECKING:
    from dpcurate.result.discovery import Discovery

REPORTS = ("report.html", "report.json", "edges.csv")
GRAPHS = ("graph.json", "graph.dot", "graph.graphml")
SYNTHETIC = "synthetic.csv"
_LARGEST_SEED = 2**32


def result_files(found: Discovery, synthetic: int | None = None) -> dict[str, Callable[[], str]]:
    """What makes the text of every file, by its name; `synthetic` is a number of rows to draw from the model."""
    texts: dict[str, Callable[[], str]] = {name: partial(found.report_text, name) for name in REPORTS}
    for name in GRAPHS:
        texts[name] = partial(text_for, found.graph, name, found.reported_probabilities)
    if found.model is not None:
        texts[file_name(found.schema)] = found.model.file_text
    if synthetic is not None:
        _check_synthetic(found, synthetic)
        texts[SYNTHETIC] = partial(_rows_as_csv, found.model, synthetic)
    return texts


def _check_synthetic(found: Discovery, rows: int) -> None:
    if rows < 1:
        raise QueryError(f"the number of synthetic rows is at least 1, not {rows}")
    if found.model is None:
        raise QueryError(
            "this result has no model of its graph to draw rows from. A run with quantify=0.5 (--quantify 0.5) buys "
            "one; from stored answers it comes with the knowledge and the method of that run"
        )


def _rows_as_csv(model: Any, rows: int) -> str:
    table = model.sample(rows, seed=secrets.randbelow(_LARGEST_SEED))
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(table)
    columns = [_cells_as_text(model.schema[name], cells) for name, cells in table.items()]
    writer.writerows(zip(*columns, strict=True))
    return text.getvalue()


def _cells_as_text(column: Column, cells: Any) -> list[str]:
    """Numbers have six digits and lie within their bounds; a missing one is empty."""
    if not isinstance(column, Numeric):
        return list(cells)
    written = []
    for cell in cells.tolist():
        if cell != cell:  # NaN: missing
            written.append("")
        else:
            short = float(f"{cell:.6g}")
            written.append(f"{min(max(short, column.low), column.high):.15g}")
    return written

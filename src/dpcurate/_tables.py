"""Tables of results: pandas frames, CSV, and plain HTML."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterable, Sequence
from html import escape
from importlib import import_module
from typing import Any, Literal

from dpcurate.errors import DpcurateError


def frame_of(heads: Sequence[str], rows: Sequence[Sequence[object]], *, words: Collection[str]) -> Any:
    """A frame of the cells: the columns in `words` are text, all others numbers; None and empty text are missing."""
    try:
        pandas = import_module("pandas")
    except ImportError:
        raise DpcurateError("to_frame() makes a pandas frame: pip install pandas") from None
    frame = pandas.DataFrame([list(row) for row in rows], columns=list(heads), dtype=object)
    for name in heads:
        if name not in words:
            frame[name] = pandas.to_numeric(frame[name].where(frame[name] != "", None))
    return frame


def csv_text(rows: Iterable[Iterable[object]], quoting: Literal[0, 1] = csv.QUOTE_MINIMAL) -> str:
    """Rows as CSV, cells quoted where they have to be, or all of them (`csv.QUOTE_ALL`)."""
    text = io.StringIO()
    csv.writer(text, quoting=quoting, lineterminator="\n").writerows(rows)
    return text.getvalue()


def table_html(heads: Sequence[str], rows: Iterable[Sequence[object]], caption: str = "") -> str:
    """A table of text; names are untrusted and escaped."""
    head = "".join(f'<th scope="col">{safe(name)}</th>' for name in heads)
    body = "".join("<tr>" + "".join(f"<td>{safe(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    title = f"<caption>{safe(caption)}</caption>" if caption else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def safe(text: object) -> str:
    """Text for HTML, without characters that hide or reverse what is shown."""
    return escape("".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(text)))

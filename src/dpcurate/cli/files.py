"""Files of a run: the schema that is read, the folder and the files that are written."""

from __future__ import annotations

import shlex
from argparse import Namespace
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from dpcurate._files import Folder, Inputs
from dpcurate._messages import how_many, one_line
from dpcurate.cli import quantified
from dpcurate.cli.texts import existing, say, show
from dpcurate.graphs.formats import text_for
from dpcurate.graphs.formats.jsontext import one_a_line
from dpcurate.graphs.knowledge import Knowledge, with_order
from dpcurate.result.discovery import Discovery
from dpcurate.schema import Schema
from dpcurate.schema.first import example_order

GRAPHS = ("graph.json", "graph.dot", "graph.graphml")
REPORTS = ("report.html", "report.json", "edges.csv")
_DRAFT = "# DRAFT: dpcurate LOOKED AT THE DATA"


def load_schema(path: str) -> Schema:
    """The schema; one that still says it is a draft is pointed out."""
    place = Path(existing(path, "schema"))
    schema = Schema.load(place)
    if _DRAFT in place.read_text(encoding="utf-8"):
        say(f"warning: {path!r} still says that it was drafted from the data; check it, then delete those lines")
    return schema


def load_knowledge(args: Namespace, schema: Schema) -> Knowledge | None:
    """What is known before: a file, and the order of columns that the command or else the schema gives."""
    knowledge = None if args.knowledge is None else Knowledge.load(existing(args.knowledge, "knowledge file"))
    knowledge = with_order(knowledge, args.order, schema)
    if knowledge is not None:
        knowledge.check(schema.names)
    return knowledge


def result_folder(
    path: str | None, inputs: Inputs, *, force: bool, mark: str = "", more: Iterable[str] = ()
) -> Folder | None:
    """The folder, made and found writable: a result that was paid for must not get lost."""
    if path is None:
        return None
    return Folder.made(path, [*(f"{mark}{name}" for name in (*GRAPHS, *REPORTS)), *more], inputs, force=force)


def hand_over(result: Discovery, folder: Folder | None, *, mark: str = "", rows: int | None = None) -> None:
    """Files first, each name after `mark`, then the edges; what cannot be written is printed."""
    problem = None if folder is None else _write(result, folder, mark, rows)
    for line in result.verdict_lines:
        say(line)
    say(f"{how_many(len(result.edges), 'edge')} among {how_many(len(result.graph.nodes), 'column')}; {result.privacy}")
    if result.drawn:
        say(f"drawn: {result.drawn}")
    if result.open_pairs:
        say(one_line(result.open_pairs))
    for note in result.notes:
        say(f"note: {note}")
    for edge in result.edges:
        show(one_line(edge))
    if problem is not None:
        _print_instead(result)
        raise problem


def tell_order(result: Discovery, ledger: str | None) -> None:
    """How to add an order of columns, where nothing was known before."""
    if result.knowledge is not None or not result.edges:
        return
    order = shlex.quote(example_order(result.schema.columns))
    again = (
        f"add it at no privacy cost: dpcurate discover --from-answers {shlex.quote(ledger)} --order {order}"
        if ledger is not None
        else f"add --order {order}; after a run with --ledger it can be added later, at no privacy cost"
    )
    say("directions rest on the data alone, because no order of columns was given. If you know which come first,")
    say(one_line(again))


def _write(result: Discovery, folder: Folder, mark: str, rows: int | None) -> Exception | None:
    """Write every file that can be written; the first problem, if there is one."""
    texts: dict[str, Callable[[], str]] = {}
    for name in REPORTS:
        texts[f"{mark}{name}"] = partial(result.report_text, name)
    for name in GRAPHS:
        texts[f"{mark}{name}"] = partial(text_for, result.graph, name, result.reported_probabilities)
    texts |= quantified.texts(result, rows)
    written: list[str] = []
    problem: Exception | None = None
    for name, text in texts.items():
        try:
            folder.write(name, text())
            written.append(name)
        except Exception as error:  # of whatever kind: the other files and the edges still come
            problem = problem or error
    if written:
        say(f"written: {folder.path / written[0]}{' and ' if written[1:] else ''}{', '.join(written[1:])}")
    return problem


def _print_instead(result: Discovery) -> None:
    """The result was paid for, so it is handed over in some way."""
    model = result.model
    say(f"not every file could be written, so here is the report as JSON{'' if model is None else ', and the model'}:")
    show(one_a_line(result.to_dict()).rstrip("\n"))
    if model is not None:
        show(model.file_text().rstrip("\n"))

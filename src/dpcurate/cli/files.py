"""Files of a run: the schema that is read, the folder and the files that are written."""

from __future__ import annotations

from pathlib import Path

from dpcurate.cli.texts import existing, one_line, say, show
from dpcurate.errors import DpcurateError
from dpcurate.graphs.formats import save
from dpcurate.result import Discovery
from dpcurate.schema import Schema

GRAPHS = ("graph.json", "graph.dot", "graph.graphml", "edges.csv")
REPORTS = ("report.json", "report.html")
_DRAFT = "# DRAFT: dpcurate LOOKED AT THE DATA"


def load_schema(path: str) -> Schema:
    """The schema; one that still says it is a draft is pointed out."""
    place = Path(existing(path, "schema"))
    schema = Schema.load(place)
    if _DRAFT in place.read_text(encoding="utf-8"):
        say(f"warning: {path!r} still says that it was drafted from the data; check it, then delete those lines")
    return schema


def result_folder(path: str | None, *, force: bool, mark: str = "") -> Path | None:
    """The folder, made and found writable: a result that was paid for must not get lost."""
    if path is None:
        return None
    folder = Path(path)
    there = [name for name in (*GRAPHS, *REPORTS) if (folder / f"{mark}{name}").exists()]
    if there and not force:
        raise DpcurateError(
            f"{path!r} already holds {', '.join(there)}; nothing was read or spent. Choose another -o, or add --force"
        )
    folder.mkdir(parents=True, exist_ok=True)
    trial = folder / ".dpcurate"
    trial.touch()
    trial.unlink()
    return folder


def hand_over(result: Discovery, folder: Path | None, *, mark: str = "") -> None:
    """Files first, each name after `mark`, then the edges; if a file fails the edges still come."""
    try:
        if folder is not None:
            _write(result, folder, mark)
    finally:
        for line in () if result.verdict is None else result.verdict.lines:
            say(line)
        say(f"{len(result.edges)} edges among {len(result.graph.nodes)} columns; {result.privacy}")
        if result.drawn:
            say(f"drawn: {result.drawn}")
        if result.open_pairs:
            say(one_line(result.open_pairs))
        for note in result.notes:
            say(f"note: {note}")
        for edge in result.edges:
            show(one_line(edge))


def _write(result: Discovery, folder: Path, mark: str) -> None:
    for name in GRAPHS:
        save(result.graph, folder / f"{mark}{name}", result.reported_chances)
    for name in REPORTS:
        result.report(folder / f"{mark}{name}")
    others = ", ".join(f"{mark}{name}" for name in (*GRAPHS, "report.json"))
    say(f"written: {folder / f'{mark}report.html'} and {others}")

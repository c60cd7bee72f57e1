"""Results from files: report.json, the folder it is in, or a graph in any format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dpcurate import _files
from dpcurate.errors import FormatError
from dpcurate.graphs.difference import Result
from dpcurate.graphs.formats import Chance, Chances, load, load_chances, loads
from dpcurate.graphs.formats.chances import NO_CHANCES

REPORT = "report.json"


def load_result(path: str | Path) -> Result:
    """The graph in a file and how sure its pairs are; of a folder, what its report.json holds."""
    place = Path(path)
    if place.is_dir():
        place = place / REPORT
    if place.suffix.lower() in (".html", ".htm"):
        raise FormatError(f"{place.name!r} is a page for people; give the report.json beside it, or a graph file")
    report = _files.load(place, _report) if place.suffix.lower() == ".json" else None
    if report is None:
        return Result.of(load(place), load_chances(place), str(path))
    graph = loads(json.dumps(report["graph"]), "json")
    return Result(graph, _chances(report, set(graph.nodes)), str(path))


def _report(text: str) -> dict[str, Any] | None:
    """The report in the text; None if it holds no report, such as a graph alone."""
    _files.check_length(text)
    try:
        table = json.loads(text)
    except (ValueError, RecursionError):
        return None  # the graph's reader says what is wrong, and where
    return table if isinstance(table, dict) and isinstance(table.get("graph"), dict) else None


def _chances(report: dict[str, Any], nodes: set[str]) -> Chances:
    """By the columns' order, as a report lists its pairs; reports of early versions have none."""
    pairs = report.get("pairs")
    if not isinstance(pairs, list):
        return NO_CHANCES
    known = {}
    for pair in pairs:
        if not isinstance(pair, dict) or not {pair.get("a"), pair.get("b")} <= nodes:
            raise FormatError('an entry of "pairs" is an object with two columns "a" and "b"')
        chance = Chance.of(pair, None)
        if chance is not None:
            known[pair["a"], pair["b"]] = chance
    return known

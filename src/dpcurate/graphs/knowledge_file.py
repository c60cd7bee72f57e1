"""Background knowledge as a TOML file.

required_edges = [["smoke", "lung"]]
forbidden_arrows = [["lung", "age"]]
tiers = [["age", "sex"], ["smoke"]]
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dpcurate import files
from dpcurate.errors import FormatError, GraphError
from dpcurate.graphs.checks import hint
from dpcurate.graphs.knowledge import Contradiction, Knowledge

PAIRS = ("required_edges", "forbidden_edges", "required_arrows", "forbidden_arrows")
KEYS = (*PAIRS, "tiers")
_STRING = r'"(?:\\.|[^"\\\n])*+"' + r"|'[^'\n]*+'"
_LIST = re.compile(rf"\[\s*(?:{_STRING})(?:\s*+,\s*+(?:{_STRING}))*+\s*+,?\s*+\]")


def load(path: str | Path) -> Knowledge:
    return files.load(path, loads)


def loads(text: str) -> Knowledge:
    table = files.toml(text, FormatError)
    fields = {key: _names(key, value, text) for key, value in table.items()}
    try:
        return Knowledge.of(**{key: [tuple(part) for part in parts] for key, parts in fields.items()})  # type: ignore[arg-type]
    except Contradiction as error:
        raise FormatError(str(error), line=_line_of_names(text, error.names)) from None
    except GraphError as error:
        raise FormatError(str(error)) from None


def dumps(knowledge: Knowledge) -> str:
    """Keys in a fixed order, one pair or tier a line, sorted: equal knowledge gives equal text."""
    fields: dict[str, list[list[str]]] = {
        "required_edges": sorted(map(sorted, knowledge.required_edges)),
        "forbidden_edges": sorted(map(sorted, knowledge.forbidden_edges)),
        "required_arrows": sorted(map(list, knowledge.required_arrows)),
        "forbidden_arrows": sorted(map(list, knowledge.forbidden_arrows)),
        "tiers": [sorted(tier) for tier in knowledge.tiers],
    }
    return "".join(_dump_field(key, parts) for key, parts in fields.items() if parts)


def _dump_field(key: str, parts: Iterable[Iterable[str]]) -> str:
    rows = "".join(f"  [{', '.join(map(files.toml_text, names))}],\n" for names in parts)
    return f"{key} = [\n{rows}]\n"


def _names(key: str, value: Any, text: str) -> list[list[str]]:
    line = _line_of_key(text, key)
    if key not in KEYS:
        raise FormatError(f"unknown key {key!r}{hint(key, KEYS)}; the keys are {', '.join(KEYS)}", line=line)
    lists = isinstance(value, list) and all(isinstance(part, list) for part in value)
    if not lists or not all(isinstance(name, str) for part in value for name in part):
        raise FormatError(f"{key} must be a list of lists of names", line=line)
    parts: list[list[str]] = value
    for part in parts:
        if key in PAIRS and (len(part) != 2 or part[0] == part[1]):
            here = _line_of_names(text, tuple(part)) or line
            raise FormatError(f"{key} holds pairs of two different names, not {part!r}", line=here)
    return parts


def _line_of_key(text: str, key: str) -> int | None:
    match = re.search(rf"^[ \t]*[\"']?{re.escape(key)}[\"']?\s*[=\].]", text, re.MULTILINE)
    return files.line_at(text, match.start()) if match else None


def _line_of_names(text: str, names: tuple[str, ...]) -> int | None:
    """The last line where a list of exactly these names (or, for one name, with it) begins."""
    line = None
    for match in _LIST.finditer(text):
        try:
            listed = tomllib.loads(f"x = {match[0]}")["x"]
        except tomllib.TOMLDecodeError:  # a comment that looks like a list
            continue
        if sorted(listed) == sorted(names) or (len(names) == 1 and names[0] in listed):
            line = files.line_at(text, match.start())
    return line

"""Text files from outside: of bounded size, in UTF-8, and refused in a sentence that names the file."""

from __future__ import annotations

import json
import os
import re
import stat
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from dpcurate.errors import FormatError, SchemaError
from dpcurate.wording import shown, shown_path

T = TypeVar("T")
Complaint = type[FormatError] | type[SchemaError]

LARGEST = 1 << 24
"""Bytes of a file: the largest public networks and graphs have a tenth of that."""
LARGEST_TOML = 1 << 22
_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(rf"(?:^|[\[{{,])[ \t]*+(?:{_PART}[ \t]*+\.[ \t]*+){{32}}", re.MULTILINE)


def load(
    path: str | os.PathLike[str],
    parse: Callable[[str], T],
    complain: Complaint = FormatError,
    unpack: Callable[[bytes], bytes] = bytes,
) -> T:
    """What `parse` makes of the file's text; every refusal names the file, and the line if there is one."""
    if not isinstance(path, str | os.PathLike):
        raise complain(f"a file is named by a path, got {shown(path)}")
    name = shown_path(os.fspath(path))
    raw = _bytes(path, name, complain)
    try:
        raw = unpack(raw)
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        _refuse(complain, f"{name}, line {line}: not UTF-8 text", line)
    except (OSError, EOFError, ValueError) as error:
        _refuse(complain, f"cannot read {name}: {error}")
    try:
        return parse(text)
    except (FormatError, SchemaError) as error:
        _refuse(complain, f"{name}, {error}", error.line)


def line_at(text: str, position: int) -> int:
    """The line of a position in the text, from 1."""
    return text.count("\n", 0, position) + 1


def toml_text(value: str) -> str:
    """A TOML basic string; JSON's escapes are a subset, but for surrogates and DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def check_length(text: str, complain: Complaint = FormatError, limit: int = LARGEST) -> None:
    """Refuse a text that no graph, network or schema has."""
    if len(text) > limit:
        raise complain(f"a text of {len(text)} characters; the limit is {limit}")


def toml(text: str, complain: Complaint) -> dict[str, Any]:
    """The TOML text as a dictionary, without what would stop tomllib or a message about it."""
    check_length(text, complain, LARGEST_TOML)
    long = _LONG_KEY.search(text)
    if long:  # tomllib takes the square of a key's parts
        raise complain("not TOML: a key of more than 32 parts", line=line_at(text, long.start()))
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        at = re.search(r"at line (\d+)", str(error))
        raise complain(f"not TOML: {error}", line=int(at[1]) if at else text.count("\n") + 1) from None
    except RecursionError:
        raise complain("not TOML that can be read: brackets nested too deeply") from None
    except ValueError as error:
        raise complain(f"not TOML that can be read: {error}") from None
    _check_numbers(table, complain)
    return table


def _check_numbers(table: dict[str, Any], complain: Complaint) -> None:
    waiting: list[Any] = [table]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict | list):
            waiting.extend(value.values() if isinstance(value, dict) else value)
        elif isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise complain("not TOML: a whole number of more than 64 bits")


def _bytes(path: str | os.PathLike[str], name: str, complain: Complaint) -> bytes:
    try:
        status = Path(path).stat()
        if not stat.S_ISREG(status.st_mode):
            _refuse(complain, f"cannot read {name}: it is a folder, a pipe or a device; give a file")
        with Path(path).open("rb") as file:
            raw = file.read(LARGEST + 1)  # a file may grow after it was looked at
    except (OSError, ValueError) as error:
        _refuse(complain, f"cannot read {name}: {getattr(error, 'strerror', None) or error}")
    if len(raw) > LARGEST:
        _refuse(complain, f"cannot read {name}: it has more than {LARGEST} bytes, the limit")
    return raw


def _refuse(complain: Complaint, message: str, line: int | None = None) -> NoReturn:
    error = complain(message)
    error.line = line
    raise error from None

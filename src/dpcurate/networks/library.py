"""Networks by name: the six of the paper, which are shipped, and those of an installed pgmpy."""

from __future__ import annotations

import gzip
import os
import zlib
from dataclasses import replace
from difflib import get_close_matches
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from dpcurate.errors import FormatError
from dpcurate.networks.bif import parse
from dpcurate.networks.bif_grammar import UNNAMED
from dpcurate.networks.network import Network

SHIPPED = ("cancer", "earthquake", "survey", "asia", "sachs", "child")
_SUFFIXES = (".bif", ".bif.gz")


def load(source: str | os.PathLike[str]) -> Network:
    """A network by name ("asia", in any case) or by path to a .bif or .bif.gz file."""
    if _is_path(source):
        return _read(Path(source))
    name = str(source).lower()
    if name in SHIPPED:
        return parse((files(__package__) / "data" / f"{name}.bif").read_text(encoding="utf-8"))
    found = _installed().get(name)
    if found is None:
        raise FormatError(_unknown(str(source)))
    return _read(found)


def names() -> tuple[str, ...]:
    """Every name `load` knows now: the shipped ones, then those only an installed pgmpy has."""
    return SHIPPED + tuple(sorted(set(_installed()) - set(SHIPPED)))


def _is_path(source: str | os.PathLike[str]) -> bool:
    if isinstance(source, os.PathLike):
        return True
    if not isinstance(source, str):
        raise FormatError(f"a network is loaded by name or path, got {type(source).__name__}")
    return source.lower().endswith(_SUFFIXES) or os.sep in source


def _installed() -> dict[str, Path]:
    """Files in an installed pgmpy, found without importing it, which is slow."""
    spec = find_spec("pgmpy")
    places = (spec.submodule_search_locations or []) if spec else []
    found = (f for p in places for f in Path(p, "utils", "example_models").glob("*.bif.gz"))
    return {f.name.removesuffix(".bif.gz").lower(): f for f in found}


def _unknown(name: str) -> str:
    known = names()
    close = get_close_matches(name.lower()[:80], known, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else "."
    more = "" if _installed() else ". With pgmpy installed its networks load by name too"
    listed = f"Known: {', '.join(known)}, or a path to a .bif or .bif.gz file"
    return f"no network is called {name[:80]!r}{hint} {listed}{more}"


def _read(path: Path) -> Network:
    try:
        data = path.read_bytes()
        text = (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8-sig")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise FormatError(f"cannot read the network {str(path)!r}: {error}") from None
    try:
        network = parse(text)
    except FormatError as error:
        located = FormatError(f"{str(path)!r}, {error}")
        located.line = error.line
        raise located from None
    stem = path.name.lower().removesuffix(".gz").removesuffix(".bif")
    return replace(network, name=stem) if network.name == UNNAMED and stem else network

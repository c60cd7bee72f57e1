"""Networks by name: the six of the paper, which are shipped, and those of an installed pgmpy."""

from __future__ import annotations

import gzip
import io
import os
import zlib
from dataclasses import replace
from importlib.resources import files as resources
from importlib.util import find_spec
from pathlib import Path

from dpcurate import _files
from dpcurate._messages import closest
from dpcurate.errors import FormatError
from dpcurate.graphs.formats.bif_grammar import UNNAMED
from dpcurate.networks.bif import parse
from dpcurate.networks.network import Network

SHIPPED = ("cancer", "earthquake", "survey", "asia", "sachs", "child")
_SUFFIXES = (".bif", ".bif.gz")


def load(source: str | os.PathLike[str]) -> Network:
    """A network by name ("asia", in any case) or by path to a .bif or .bif.gz file."""
    if _is_path(source):
        return _read(Path(source))
    name = str(source).lower()
    if name in SHIPPED:
        return parse((resources(__package__) / "data" / f"{name}.bif").read_text(encoding="utf-8"))
    path = _installed().get(name)
    if path is None:
        raise FormatError(_unknown(str(source)))
    return _read(path)


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
    paths = (f for p in places for f in Path(p, "utils", "example_models").glob("*.bif.gz"))
    return {f.name.removesuffix(".bif.gz").lower(): f for f in paths}


def _unknown(name: str) -> str:
    known = names()
    near = closest(name.lower(), known)
    hint = f"; did you mean {near!r}?" if near else "."
    more = "" if _installed() else ". With pgmpy installed its networks load by name too"
    listed = f"Known: {', '.join(known)}, or a path to a .bif or .bif.gz file"
    return f"no network is called {name[:80]!r}{hint} {listed}{more}"


def _read(path: Path) -> Network:
    network = _files.load(path, parse, unpack=_unzipped)
    stem = path.name.lower().removesuffix(".gz").removesuffix(".bif")
    return replace(network, name=stem) if network.name == UNNAMED and stem else network


def _unzipped(raw: bytes) -> bytes:
    """The bytes of a zipped file, of no more than the largest that is read."""
    if raw[:2] != b"\x1f\x8b":
        return raw
    try:
        content = gzip.GzipFile(fileobj=io.BytesIO(raw)).read(_files.LARGEST + 1)
    except (EOFError, zlib.error) as error:
        raise OSError(f"not a gzip file: {error}") from None
    if len(content) > _files.LARGEST:
        raise OSError(f"unzipped it has more than {_files.LARGEST} bytes, the limit")
    return content

"""Networks by name or from BIF files: the six of the paper, which are shipped, and those of an installed pgmpy."""

from __future__ import annotations

import gzip
import io
import os
import zlib
from array import array
from dataclasses import replace
from importlib.resources import files as resources
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import NoReturn

import numpy as np

from dpcurate import _files
from dpcurate._files import check_length
from dpcurate._messages import closest, did_you_mean, how_many
from dpcurate._typing import FloatArray
from dpcurate.errors import FormatError
from dpcurate.graphs.formats.bif_grammar import MAX_CELLS, UNNAMED, BifNumbers, Grammar, ProbabilityBlock, quote, show
from dpcurate.networks.network import TOLERANCE, Network, Variable

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


# --- bayesian networks in the Bayesian Interchange Format (BIF 0.15), both ways ------------------------
# The reader takes what the bnlearn repository and JavaBayes write: network, variable and
# probability blocks; `table`, `default` and labelled rows; properties and comments, which are
# skipped; blocks in any order after the network's. Every refusal is a FormatError with its line.
#
# A conditional `table` counts like a C array over (child, parents...): the child changes slowest.
# A row may miss 1 by TOLERANCE, because published files are rounded; its digits are kept as they are.
#
# Cozman, "The Interchange Format for Bayesian Networks", 1998.


def parse(text: str) -> Network:
    """Read a network; a FormatError tells the line of the first mistake found."""
    check_length(text)
    return _Assembly(Grammar(text)).network()


def write(network: Network, *, note: str = "") -> str:
    """The network as BIF text that `parse` reads back unchanged; `note` becomes a comment on top."""
    lines = [f"// {line}".rstrip() for line in note.splitlines()]
    lines += [f"network {quote(network.name)} {{", "}"]
    for v in network.variables:
        levels = ", ".join(map(quote, v.levels))
        lines += [f"variable {quote(v.name)} {{", f"  type discrete [ {len(v.levels)} ] {{ {levels} }};", "}"]
    known = {v.name: v.levels for v in network.variables}
    for v in network.variables:
        given = f" | {', '.join(map(quote, v.parents))}" if v.parents else ""
        lines += [f"probability ( {quote(v.name)}{given} ) {{"]
        for labels, row in zip(product(*(known[p] for p in v.parents)), v.table.tolist(), strict=True):
            head = f"({', '.join(map(quote, labels))})" if labels else "table"
            lines.append(f"  {head} {', '.join(map(repr, row))};")
        lines.append("}")
    return "\n".join(lines) + "\n"


class _Assembly:
    """Fits the blocks of a text together."""

    def __init__(self, text: Grammar) -> None:
        self._text = text
        self._cells = 0

    def network(self) -> Network:
        self._text.check_structure()
        return Network(self._text.name, tuple(self._variable(known) for known in self._text.declared))

    def _variable(self, name: str) -> Variable:
        block, levels = self._text.blocks[name], self._text.declared[name].levels
        parents = tuple(p.text for p in block.parents)
        rows = 1
        for parent in parents:
            rows = min(rows * len(self._text.declared[parent].levels), MAX_CELLS + 1)  # never a number of many digits
        self._cells += rows * len(levels)
        if self._cells > MAX_CELLS:
            self._text.fail(f"the tables up to {show(name)} have more than {MAX_CELLS} cells", block.at)
        fill = self._rows if block.table is None else self._whole_table
        return Variable(name, levels, parents, fill(name, block, (rows, len(levels))))

    def _whole_table(self, name: str, block: ProbabilityBlock, shape: tuple[int, int]) -> FloatArray:
        assert block.table is not None
        at = block.table.at
        for other in (*block.rows, *filter(None, [block.default])):
            self._text.fail(f"the block of {show(name)} has a table and also rows or a default", other.at)
        self._check_count(name, block.table, shape[0] * shape[1])
        table = np.array(block.table.numbers).reshape(shape[::-1]).T
        off = np.abs(table.sum(axis=1) - 1) > TOLERANCE
        if off.any():
            row = int(off.argmax())
            where = f" in column {row} of the table" if shape[0] > 1 else ""
            self._text.fail(f"probabilities of {show(name)} sum to {table[row].sum():.6g}, not 1{where}", at)
        return table

    def _rows(self, name: str, block: ProbabilityBlock, shape: tuple[int, int]) -> FloatArray:
        table = np.empty(shape)
        if block.default is not None:
            table[:] = self._distribution(name, block.default, shape[1])
        seen: set[int] = set()
        for values in block.rows:
            place = self._place(name, block, values)
            if place in seen:
                labels = ", ".join(show(x.text) for x in values.labels)
                self._text.fail(f"the row ({labels}) of {show(name)} is given twice", values.at)
            seen.add(place)
            table[place] = self._distribution(name, values, shape[1])
        if block.default is None and len(seen) < shape[0]:
            self._missing(name, block, shape[0], seen)
        return table

    def _place(self, name: str, block: ProbabilityBlock, values: BifNumbers) -> int:
        if len(values.labels) != len(block.parents):
            found = f"{how_many(len(values.labels), 'level')} for {how_many(len(block.parents), 'parent')}"
            self._text.fail(f"this row of {show(name)} names {found}", values.at)
        place = 0
        for label, parent in zip(values.labels, block.parents, strict=True):
            known = self._text.declared[parent.text]
            if label.text not in known.places:
                near = did_you_mean(label.text[:80], known.levels)
                self._text.fail(f"{show(parent.text)} has no level {show(label.text)}{near}", label.at)
            place = place * len(known.levels) + known.places[label.text]
        return place

    def _distribution(self, name: str, values: BifNumbers, size: int) -> array[float]:
        self._check_count(name, values, size)
        total = sum(values.numbers)
        if abs(total - 1) > TOLERANCE:
            self._text.fail(f"probabilities of {show(name)} sum to {total:.6g}, not 1", values.at)
        return values.numbers

    def _check_count(self, name: str, values: BifNumbers, size: int) -> None:
        if len(values.numbers) != size:
            self._text.fail(f"{show(name)} needs {size} probabilities here, got {len(values.numbers)}", values.at)

    def _missing(self, name: str, block: ProbabilityBlock, rows: int, seen: set[int]) -> NoReturn:
        place = next(i for i in range(rows) if i not in seen)
        labels: list[str] = []
        for parent in reversed(block.parents):
            levels = self._text.declared[parent.text].levels
            place, level = divmod(place, len(levels))
            labels.insert(0, show(levels[level]))
        what = f"{rows - len(seen)} of {rows} rows, first ({', '.join(labels)}), and has no default"
        self._text.fail(f"the block of {show(name)} misses {what}", block.at)

"""Cells to files, files to one Parquet: what was done stays done."""

from __future__ import annotations

import csv
import json
import math
import os
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import asdict, dataclass, field, fields
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dpcurate._files import NO_INPUTS, OutputFolder, save_text
from dpcurate.benchmark.run_file import processes
from dpcurate.networks import SHIPPED
from dpcurate.published.reproduction.grid import ALL_READINGS, LITERAL, GridCell
from dpcurate.published.reproduction.runs import COLUMNS, run


def run_grid(
    cells: Sequence[GridCell],
    directory: Path,
    *,
    workers: int = 2,
    fresh: bool = False,
    made: Provenance | None = None,
) -> Path:
    """Run what is not done yet, then write runs.parquet."""
    kept = directory / "cells"
    # A folder that holds cells is one that this command has written to before.
    OutputFolder.made(directory, ("runs.parquet", "paper.md"), NO_INPUTS, force=kept.is_dir())
    kept.mkdir(exist_ok=True)
    for cell in cells if fresh else ():
        _file(kept, cell).unlink(missing_ok=True)
    groups = grouped([c for c in cells if not _file(kept, c).exists()])
    bar = _Progress(cells, kept, TimeLeft(groups, max(1, workers)))
    if workers <= 1:
        for group in groups:
            for cell in group:
                run_group([cell], kept)
                bar.draw()
    else:
        _in_parallel(groups, kept, workers, bar)
    bar.end()
    path = directory / "runs.parquet"
    write_runs((row for cell in cells for row in json.loads(_file(kept, cell).read_text())), path, made)
    return path


def grouped(cells: Iterable[GridCell]) -> list[list[GridCell]]:
    """Cells by what they share, the longest work first."""
    groups: dict[tuple[str, ...], list[GridCell]] = {}
    for cell in cells:
        groups.setdefault(cell.family, []).append(cell)
    return sorted(groups.values(), key=lambda group: -sum(c.cost for c in group))


def run_group(cells: Sequence[GridCell], kept: Path) -> None:
    """Run cells and write each at its end; another process may already have done so."""
    for cell in cells:
        path = _file(kept, cell)
        if not path.exists():
            save_text(path, json.dumps([asdict(r) for r in run(cell)]))


def _in_parallel(groups: list[list[GridCell]], kept: Path, workers: int, bar: _Progress) -> None:
    with processes(workers) as pool:
        open_: set[Future[None]] = {pool.submit(run_group, group, kept) for group in groups}
        while open_:
            done, open_ = wait(open_, timeout=0.5)
            for future in done:
                future.result()
            bar.draw()


def _file(kept: Path, cell: GridCell) -> Path:
    return kept / f"{cell.name}.json"


class _Progress:
    """One line: cells done, time gone, time left."""

    def __init__(self, cells: Sequence[GridCell], kept: Path, left: TimeLeft) -> None:
        self._cells, self._kept, self._left = cells, kept, left
        self._began, self._next = time.monotonic(), 0.0

    def _ended(self) -> dict[GridCell, float]:
        """Cells that are done, and when their files were written."""
        there = {entry.name: entry.stat().st_mtime for entry in os.scandir(self._kept)}
        names = {cell: _file(self._kept, cell).name for cell in self._cells}
        return {cell: there[name] for cell, name in names.items() if name in there}

    def draw(self) -> None:
        """At most once a second on a terminal, every 15 seconds elsewhere."""
        now, live = time.monotonic(), sys.stderr.isatty()
        if now < self._next:
            return
        self._next = now + (1 if live else 15)
        ended, gone = self._ended(), now - self._began
        seconds = self._left(ended, time.time())
        left = f", about {_clock(seconds)} left" if seconds is not None and len(ended) < len(self._cells) else ""
        line = f"reproduce: {len(ended)} of {len(self._cells)} cells, {_clock(gone)} gone{left}"
        print(f"\r{line}\x1b[K" if live else line, end="" if live else "\n", file=sys.stderr, flush=True)

    def end(self) -> None:
        self._next = 0.0
        self.draw()
        if sys.stderr.isatty():
            print(file=sys.stderr)


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


@dataclass(frozen=True, slots=True)
class Provenance:
    """What made a file of runs: it stands in the file."""

    command: str = "dpcurate reproduce"
    version: str = field(default_factory=lambda: version("dpcurate"))
    commit: str = "unknown"


def provenance(path: Path) -> Provenance:
    """Read it back; files of other programs have none."""
    import duckdb

    with duckdb.connect() as connection:
        asked = f"SELECT decode(key), decode(value) FROM parquet_kv_metadata({_quoted(path)})"
        known = dict(connection.execute(asked).fetchall())
    return Provenance(**{f.name: known[f.name] for f in fields(Provenance) if f.name in known})


def write_runs(rows: Iterable[RunRow], path: Path, made: Provenance | None = None) -> None:
    """One tidy Parquet file, through DuckDB."""
    import duckdb

    with TemporaryDirectory(dir=path.parent) as session:
        source, draft = Path(session) / "runs.csv", Path(session) / "runs.parquet"
        with source.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(COLUMNS))
            writer.writeheader()
            writer.writerows({name: _short(value) for name, value in row.items()} for row in rows)
        columns = ", ".join(f"'{name}': '{kind}'" for name, kind in COLUMNS.items())
        read = f"read_csv({_quoted(source)}, header = true, auto_detect = false, columns = {{{columns}}})"
        with duckdb.connect() as connection:
            facts = ", ".join(f"{k}: {_quoted(v)}" for k, v in asdict(made or Provenance()).items())
            how = f"FORMAT parquet, COMPRESSION zstd, KV_METADATA {{{facts}}}"
            connection.execute(f"COPY (SELECT * FROM {read}) TO {_quoted(draft)} ({how})")
        draft.replace(path)


def read_runs(path: Path) -> list[RunRow]:
    """Read recorded runs from a Parquet file."""
    import duckdb

    with duckdb.connect() as connection:
        answer = connection.execute(f"SELECT * FROM read_parquet({_quoted(path)})")
        names = [column[0] for column in answer.description]
        return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]


def _short(value: Any) -> Any:
    """Six digits of a number: more would be noise, and a larger file."""
    return f"{value:.6g}" if isinstance(value, float) else value


def _quoted(path: Path | str) -> str:
    return "'" + str(path).replace("'", "''") + "'"


# --- means over runs, lines through them, and comparisons of two means ---------------------------------

RunRow = dict[str, Any]
METRICS = {
    "pc_f1": "arcs, non-private PC run",
    "authors_f1": "arcs, the authors' edge list",
    "skeleton_f1": "skeleton, real network",
    "arc_f1": "arcs, real network",
}
"""The published metric against a PC run and against the authors' own, and two against the network."""
LABELS = {
    "em-pc": "EM-PC",
    "svt-pc": "SVT-PC",
    "priv-pc": "Priv-PC",
    "curate-pc": "CURATE (constraint)",
    "noleaks": "NOLEAKS",
    "curate-score": "CURATE (score)",
    "measure-once": "MeasureOnce",
    "notears-moments": "NotearsOnMoments",
    "pc-kendall": "PC, Kendall, 0.05",
    "pc-g": "PC, G test, 0.01",
}
AXES = {"spent": "claimed", "nominal": "target", "proved": "proved"}
"""Kinds of leakage by the column that holds them."""
ENOUGH = 20
"""Fewer runs of the literal reading than this give no verdict."""


@dataclass(frozen=True, slots=True)
class Summary:
    """Mean, standard deviation and number of some runs."""

    mean: float
    sd: float
    runs: int

    @classmethod
    def of(cls, values: list[float]) -> Summary:
        """Summarise values by mean, standard deviation and count."""
        mean = math.fsum(values) / len(values)
        if not math.isfinite(mean):
            return cls(mean, math.nan, len(values))
        spread = math.fsum((v - mean) ** 2 for v in values) / max(len(values) - 1, 1)
        return cls(mean, math.sqrt(spread), len(values))

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        return self.sd / math.sqrt(self.runs)

    def towards(self, other: Summary, share: float) -> Summary:
        """A point of the line between two means; its error is that of the weighted mean."""
        error = math.hypot((1 - share) * self.error, share * other.error)
        runs = min(self.runs, other.runs)
        return Summary((1 - share) * self.mean + share * other.mean, error * math.sqrt(runs), runs)


def beats(ours: Summary, theirs: Summary) -> int:
    """1 if ours is larger by two standard errors of the difference, -1 if smaller, 0 if it cannot be told."""
    gap, doubt = ours.mean - theirs.mean, 2 * math.hypot(ours.error, theirs.error)
    return int(gap > max(doubt, 1e-9)) - int(gap < -max(doubt, 1e-9))


class Runs:
    """Rows by what they have in common. A reading that is not named is the most literal one."""

    def __init__(self, rows: list[RunRow]) -> None:
        self.rows = rows
        self._cells: dict[tuple[str, str, str, str, float], list[RunRow]] = defaultdict(list)
        for row in rows:
            self._cells[row["kind"], row["network"], row["method"], row["reading"], row["target"]].append(row)
        there = {row["network"] for row in rows}
        self.networks: list[str] = [n for n in SHIPPED if n in there]
        self._there = {key[2:] for key in self._cells if key[0] == "private"}
        self.targets: list[float] = self._targets("curate-pc")

    def _targets(self, method: str) -> list[float]:
        return sorted({target for m, _, target in self._there if m == method})

    def with_kind(self, kind: str) -> list[str]:
        """Networks of which cells of a kind were run."""
        there = {key[1] for key in self._cells if key[0] == kind}
        return [network for network in self.networks if network in there]

    @property
    def few(self) -> bool:
        """Whether these runs are too few for a verdict."""
        cells = [r for k, r in self._cells.items() if k[0] == "private" and k[2:4] == ("curate-pc", "printed")]
        return min(map(len, cells), default=0) < ENOUGH

    def of(
        self, column: str, network: str, method: str, target: float, reading: str | None = None, kind: str = "private"
    ) -> Summary | None:
        """A summary of one cell; None if it was not run or has no such number."""
        rows = self._cells.get((kind, network, method, reading or LITERAL[method], target), [])
        values = [float(row[column]) for row in rows if row[column] is not None]
        return Summary.of(values) if values else None

    def exact(self, column: str, network: str, method: str = "pc-kendall") -> float:
        """A number of a non-private run; not a number if it was not run."""
        found = self.of(column, network, method, 0.0, "exact", "exact")
        return math.nan if found is None else found.mean

    def line(
        self, column: str, network: str, method: str, axis: str, reading: str | None = None
    ) -> list[tuple[float, Summary]]:
        """Points of a method, from left to right, at the mean leakage of each total."""
        points = []
        for target in self._targets(method):
            x, y = (self.of(c, network, method, target, reading) for c in (AXES[axis], column))
            if x is not None and y is not None and math.isfinite(x.mean):
                points.append((x.mean, y))
        return sorted(points, key=lambda p: p[0])

    def at(
        self, column: str, network: str, method: str, axis: str, place: float, reading: str | None = None
    ) -> Summary | None:
        """A method at a leakage, by a line on a log axis; None beyond its points."""
        line = [(math.log(x), y) for x, y in self.line(column, network, method, axis, reading) if x > 0]
        for (left, low), (right, high) in pairwise(line):
            if left <= math.log(place) <= right:
                return low.towards(high, (math.log(place) - left) / (right - left) if right > left else 0.0)
        return None

    def readings(self, method: str) -> list[str]:
        """Readings of a method that were run, the most literal first."""
        there = {reading for m, reading, _ in self._there if m == method}
        return [r for r in ALL_READINGS[method] if r in there]

    def methods(self, reading: str | None = None) -> list[str]:
        """Methods that were run in a reading (their most literal one if none is named), in the order of LABELS."""
        there = {(m, r) for m, r, _ in self._there}
        return [m for m in LABELS if (m, reading or LITERAL.get(m)) in there]


# --- how long a grid will still take --------------------------------------------------------------------------------


@dataclass(slots=True)
class TimeLeft:
    """Seconds that are left of `groups` of cells, each the work of one of so many `workers`, begun in order.

    A cell states a cost, roughly in seconds. The time between two cells of a group is what the later one took, so each
    method gets a factor of its own; a cell under way that has taken longer than stated counts as well. Without that,
    an estimate stands still when the last method is slower than stated.
    """

    groups: Sequence[Sequence[GridCell]]
    workers: int
    _begun: dict[int, float] = field(default_factory=dict)

    def __call__(self, ended: Mapping[GridCell, float], now: float) -> float | None:
        """The estimate, given when cells ended; None before anything is known."""
        taken: dict[str, float] = defaultdict(float)
        stated: dict[str, float] = defaultdict(float)
        waiting = []
        for number, group in enumerate(self.groups):
            for cell, seconds in self._timed(number, group, ended):
                taken[_kind(cell)] += seconds
                stated[_kind(cell)] += cell.cost
            if any(cell not in ended for cell in group):
                waiting.append(number)
        under_way = {n: self._since(n, ended, now) for n in waiting[: self.workers]}
        for number, seconds in under_way.items():
            cell = self._open(number, ended)[0]
            if seconds > cell.cost * _factor(taken, stated, cell):
                taken[_kind(cell)] += seconds
                stated[_kind(cell)] += cell.cost
        if not sum(stated.values()):
            return None
        each = [
            sum(cell.cost * _factor(taken, stated, cell) for cell in self._open(n, ended)) - under_way.get(n, 0.0)
            for n in waiting
        ]
        return max(0.0, sum(each) / self.workers, *each)

    def _open(self, number: int, ended: Mapping[GridCell, float]) -> list[GridCell]:
        return [cell for cell in self.groups[number] if cell not in ended]

    def _timed(
        self, number: int, group: Sequence[GridCell], ended: Mapping[GridCell, float]
    ) -> Iterator[tuple[GridCell, float]]:
        """Cells of a group with what they took; of its first one, from when the group was seen to begin."""
        before = self._begun.get(number)
        for cell in group:
            if cell in ended:
                if before is not None:
                    yield cell, max(0.0, ended[cell] - before)
                before = ended[cell]

    def _since(self, number: int, ended: Mapping[GridCell, float], now: float) -> float:
        """How long the cell under way has been."""
        begun = self._begun.setdefault(number, now)
        return max(0.0, now - max([begun, *(ended[cell] for cell in self.groups[number] if cell in ended)]))


def _kind(cell: GridCell) -> str:
    return f"{cell.method} {cell.reading}" if cell.reading == "proved" else cell.method


def _factor(taken: Mapping[str, float], stated: Mapping[str, float], cell: GridCell) -> float:
    """Seconds for one second that is stated: of the method, or of all if it was not seen yet."""
    if stated.get(_kind(cell)):
        return taken[_kind(cell)] / stated[_kind(cell)]
    return sum(taken.values()) / sum(stated.values()) if sum(stated.values()) else 1.0

"""Runs on schemas nobody would write: each refuses before it pays, or ends with a result.

    python -m benchmarks.fuzz [--minutes 10] [--first 0] [--most-rows 1000000]

A case is fixed by its number. Prints every case that failed after a payment, failed with something that is no
`DpcurateError`, or warned; ends with 1 if there is one.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpcurate import Budget, Curator
from dpcurate.errors import DpcurateError
from dpcurate.learn import methods
from dpcurate.schema import Categorical, Column, Numeric, Ordinal, Schema
from dpcurate.study.calls import fit

Rng = np.random.Generator


@dataclass(frozen=True)
class Case:
    """One run."""

    number: int
    schema: Schema
    rows: int
    method: str
    latent: bool
    epsilon: float
    delta: float
    quantify: float | None

    def __str__(self) -> str:
        columns = ", ".join(
            f"{c.kind} {c.size if c.has_levels else f'{c.low:g}..{c.high:g}'}" for c in self.schema.columns
        )
        about = f"{self.method}{' latent' if self.latent else ''}, eps {self.epsilon:.3g}, delta {self.delta}"
        return f"case {self.number}: {about}, quantify {self.quantify}, {self.rows} rows of {columns}"


def log_uniform(draw: Rng, low: float, high: float) -> float:
    return float(np.exp(draw.uniform(np.log(low), np.log(high))))


def some_column(draw: Rng, name: str, most_levels: float) -> Column:
    kind = draw.choice(["categorical", "ordinal", "numeric", "numeric", "binned"])
    size = round(log_uniform(draw, 2, most_levels))
    names = tuple(map(str, range(size)))
    if kind == "categorical":
        return Categorical(name, names, missing=str(draw.choice(["drop", "own", "0"])))
    if kind == "ordinal":
        return Ordinal(name, names, missing=str(draw.choice(["drop", "0"])))
    ends = [log_uniform(draw, 1e-12, 1e12) * draw.choice([-1, 1]) for _ in range(2)]
    low, high = min(ends), max(ends)
    if draw.random() < 0.2:
        high = np.nextafter(low, np.inf) if draw.random() < 0.5 else low + abs(low) * 1e-9
    if kind == "binned":
        return Numeric(name, low, high, bins=size)
    return Numeric(name, low, high, missing=str(draw.choice(["drop", "own"])))


def some_cells(draw: Rng, column: Column, rows: int, before: list[Any]) -> Any:
    """Even, skewed, constant, a copy of an earlier column's order, outside the bounds; some of them missing."""
    shape = draw.choice(["even", "skewed", "constant", "copy"])
    place = draw.random(rows)
    if shape == "skewed":
        place = place ** log_uniform(draw, 1, 100)
    if shape == "constant":
        place = np.full(rows, draw.random())
    if shape == "copy" and before:
        place = before[int(draw.integers(len(before)))]
    before.append(place)
    absent = draw.random(rows) < draw.choice([0, 0, 0.1, 1.0], p=[0.5, 0.2, 0.28, 0.02])
    if isinstance(column, Numeric):
        width = column.high / 2 - column.low / 2
        stretch = 1 if draw.random() < 0.8 else 3
        cells = column.low + 2 * width * place * stretch
        return np.where(absent, np.nan, cells)
    cells = np.minimum((place * column.size).astype(int), column.size - 1).astype(str).astype(object)
    cells[absent] = None
    return cells


def case_of(
    number: int, most_rows: float = 1e6, most_levels: float = 1000, most_columns: int = 10
) -> tuple[Case, dict]:
    draw = np.random.default_rng([number, 31])
    width = int(draw.integers(2, most_columns + 1))
    if draw.random() < 0.3:  # few kinds: levels alone, short ones, or numbers alone
        most_levels = float(draw.choice([3, 10, 40]))
    schema = Schema(tuple(some_column(draw, f"c{i}", most_levels) for i in range(width)))
    names = list(methods.private())
    method = "auto" if draw.random() < 0.6 else str(draw.choice(names))
    case = Case(
        number,
        schema,
        rows=round(log_uniform(draw, 1, most_rows)),
        method=method,
        latent=bool(hasattr(methods.get(method), "latent") and draw.random() < 0.3),
        epsilon=log_uniform(draw, 1e-3, 1e4),
        delta=0.0 if draw.random() < 0.3 else float(draw.choice([1e-10, 1e-5])),
        quantify=0.3 if draw.random() < 0.15 else None,
    )
    before: list[Any] = []
    return case, {c.name: some_cells(draw, c, case.rows, before) for c in schema.columns}


def run(case: Case, table: dict) -> str:
    """What became of it: 'result', 'refused', or a fault in words."""
    budget = Budget(epsilon=case.epsilon, delta=case.delta)
    paid = False
    try:
        curator = Curator(table, case.schema, budget=budget, insecure_seed=case.number)
        before = curator.remaining
        try:
            found = fit(curator, case.method, latent=case.latent, quantify=case.quantify)
        finally:
            paid = curator.remaining < before
        paid = True  # whatever is said of a result may not fail either
        said(found)
    except DpcurateError as error:
        return f"{type(error).__name__} after payment: {error}" if paid else "refused"
    except Exception as error:
        where = "".join(traceback.format_exception(error)[-4:])
        return f"{type(error).__name__}{' after payment' if paid else ''}: {error}\n{where}"
    return "result"


def said(found: Any) -> None:
    """All that is made of a result without asking again."""
    str(found), found.to_dict(), found.verdict, found.undecided, found.pairs
    if found.learned.linked:
        found.at(0.3), found.at("best-f1")
    with tempfile.TemporaryDirectory() as folder:
        for name in ("page.html", "page.json", "page.txt"):
            found.report(Path(folder, name))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--most-rows", type=float, default=1e6)
    parser.add_argument("--cases", type=int, default=10**9)
    options = parser.parse_args()
    warnings.simplefilter("error")
    end, tried, faults = time.monotonic() + 60 * options.minutes, Counter[str](), 0
    for number in range(options.first, options.first + options.cases):
        if time.monotonic() > end:
            break
        case, table = case_of(number, options.most_rows)
        start = time.monotonic()
        outcome = run(case, table)
        if time.monotonic() - start > 60:
            print(f"SLOW {time.monotonic() - start:.0f} s: {case}", flush=True)
        tried[outcome if outcome in ("result", "refused") else "fault"] += 1
        if outcome not in ("result", "refused"):
            faults += 1
            print(f"{case}\n    {outcome}", flush=True)
    print(", ".join(f"{count} {what}" for what, count in tried.items()))
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()

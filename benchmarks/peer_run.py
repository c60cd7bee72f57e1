"""One tool, one table, one process: the time and memory of its PC, and the skeleton it finds.

    python benchmarks/peer_run.py TOOL FOLDER [--limit SECONDS]

Reads codes.npy (rows by columns, level numbers from 0) and facts.json (names, levels) in FOLDER and
prints one line of JSON. Started by peers.py; imports no dpcurate unless that is the tool, so it runs
in the peers' environment. `--explain` recomputes a peer's skeleton by the rules its source states.

Timed is the call that fits, with the data already in memory in the form the tool wants (an int64
array, a frame of integers; for dpcurate labels, that array, or an opened curator) and the tool imported. What a tool
imports or compiles inside its first call is in `first_call`.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import signal
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

ALPHA = 0.01
QUICK, AGAIN = 5.0, 3
"""A first call below QUICK seconds is followed by AGAIN more, and their median is the figure."""
MOST_MEMORY = 12 << 30
"""A tool that asks for more is stopped, so that it does not take the machine with it."""

FEW_CELLS = 1 << 17
"""Larger tables are counted over the strata that occur only."""

Edges = list[list[str]]
Fit = Callable[[], Any]


@dataclass(frozen=True)
class Table:
    """What every tool gets."""

    codes: np.ndarray
    names: list[str]
    levels: list[list[str]]

    @classmethod
    def read(cls, folder: Path) -> Table:
        facts = json.loads((folder / "facts.json").read_text(encoding="utf-8"))
        return cls(np.load(folder / "codes.npy"), facts["names"], facts["levels"])

    def edges(self, pairs: Iterable[tuple[int, int]]) -> Edges:
        """Pairs of column numbers as names, each once, in the columns' order."""
        unique = sorted({(min(i, j), max(i, j)) for i, j in map(tuple, pairs)})
        return [[self.names[i], self.names[j]] for i, j in unique]

    def named(self, pairs: Iterable[Iterable[str]]) -> Edges:
        place = {name: i for i, name in enumerate(self.names)}
        return self.edges(tuple(place[name] for name in pair) for pair in pairs)


@dataclass(frozen=True)
class Tool:
    """A package, how to get ready (not timed, before each call), and how to read its result."""

    package: str
    ready: Callable[[Table], Callable[[], Fit]]
    edges: Callable[[Table, Any], Edges]


# --- the tools ------------------------------------------------------------------------------------


def causal_learn(table: Table) -> Callable[[], Fit]:
    from causallearn.search.ConstraintBased.PC import pc

    data = np.ascontiguousarray(table.codes, dtype=np.int64)
    return lambda: lambda: pc(data, ALPHA, "gsq", stable=True, show_progress=False)


def pgmpy(table: Table) -> Callable[[], Fit]:
    import pandas as pd
    from pgmpy.causal_discovery import PC

    frame = pd.DataFrame(table.codes.astype(np.int64), columns=table.names)
    # Its default stops at sets of 5; the others have no such limit.
    options = {"variant": "stable", "ci_test": "g_sq", "significance_level": ALPHA, "max_cond_vars": len(table.names)}
    return lambda: lambda: PC(**options, show_progress=False).fit(frame)


def gcastle(table: Table) -> Callable[[], Fit]:
    from castle.algorithms.pc import pc
    from castle.common import Tensor

    data = Tensor(np.ascontiguousarray(table.codes, dtype=np.int64))

    def fit() -> Any:
        # What its PC.learn does, but the skeleton is kept: its orientation can lose an edge altogether.
        skeleton, separators = pc.find_skeleton(data, ALPHA, "g2", variant="stable")
        pc.orient(skeleton, separators)
        return skeleton

    return lambda: fit


def _curators(table: Table, data: Any, levels: Iterable[Iterable[Any]]) -> Callable[[], Any]:
    from dpcurate import Budget, Categorical, Curator, Schema

    schema = Schema(tuple(Categorical(n, tuple(x)) for n, x in zip(table.names, levels, strict=True)))
    return lambda: Curator(data, schema, budget=Budget.unlimited())


def _labelled(table: Table) -> Callable[[], Any]:
    """Curators on a frame of labels, in the type pandas chooses for them."""
    import pandas as pd

    labels = [np.array(levels, dtype=object).take(c) for levels, c in zip(table.levels, table.codes.T, strict=True)]
    return _curators(table, pd.DataFrame(dict(zip(table.names, labels, strict=True))), table.levels)


def _fit(curator: Any) -> Any:
    from dpcurate.learn.methods import PC

    return PC(test="g", alpha=ALPHA).fit(curator)


def from_labels(table: Table) -> Callable[[], Fit]:
    opened = _labelled(table)
    return lambda: lambda: _fit(opened())


def from_codes(table: Table) -> Callable[[], Fit]:
    """From what causal-learn gets."""
    data = np.ascontiguousarray(table.codes, dtype=np.int64)
    opened = _curators(table, data, [range(len(x)) for x in table.levels])
    return lambda: lambda: _fit(opened())


def from_curator(table: Table) -> Callable[[], Fit]:
    opened = _labelled(table)

    def ready() -> Fit:
        curator = opened()  # a new one each time: a curator remembers what it has counted
        return lambda: _fit(curator)

    return ready


def _searched(table: Table, found: Any) -> Edges:
    return table.named(found.skeleton.edges)


TOOLS = {
    "dpcurate, labels": Tool("dpcurate", from_labels, _searched),
    "dpcurate, codes": Tool("dpcurate", from_codes, _searched),
    "dpcurate, opened": Tool("dpcurate", from_curator, _searched),
    "causal-learn": Tool("causal-learn", causal_learn, lambda t, found: t.edges(np.argwhere(found.G.graph))),
    "pgmpy": Tool("pgmpy", pgmpy, lambda t, found: t.named(found.skeleton_.edges())),
    "gcastle": Tool("gcastle", gcastle, lambda t, found: t.edges(np.argwhere(found))),
}


def measure(tool: Tool, table: Table, limit: float) -> dict[str, Any]:
    """Fit once, and again if that was quick. Above the limit the alarm ends this process."""
    ready = tool.ready(table)
    fit = ready()
    before = peak()
    signal.setitimer(signal.ITIMER_REAL, limit)
    found, *first = timed(fit)
    signal.setitimer(signal.ITIMER_REAL, 0)
    times = [first] if first[0] >= QUICK else [timed(ready())[1:] for _ in range(AGAIN)]
    seconds, processor = (statistics.median(kind) for kind in zip(*times, strict=True))
    return {
        "version": version(tool.package),
        "seconds": seconds,
        "processor": processor,
        "first_call": first[0],
        "peak_mb": peak(),
        "before_mb": before,
        "skeleton": tool.edges(table, found),
    }


def timed(fit: Fit) -> tuple[Any, float, float]:
    """Result, wall time and processor time: wall time well above the other means that the machine was shared."""
    start, busy = time.perf_counter(), time.process_time()
    found = fit()
    return found, time.perf_counter() - start, time.process_time() - busy


def peak() -> float:
    """Greatest resident memory in MB. getrusage would count the parent's memory from before exec."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


# --- why skeletons differ -------------------------------------------------------------------------


@dataclass(frozen=True)
class Rules:
    """Where implementations of stable PC with a G test part. All count only levels that occur in a stratum.

    `correction`: how far a count moves towards its expectation in a 2 by 2 stratum (Yates: 0.5).
    `empty`: what a stratum without rows adds to G. `idle`: the p-value if no freedom is left.
    `sides`: conditioning sets from the neighbours of both ends, or of the earlier column only.
    """

    correction: float = 0.0
    empty: float = 0.0
    idle: float = 1.0
    sides: int = 2


PLAIN = Rules()
RULES = {
    **dict.fromkeys(("dpcurate, labels", "dpcurate, codes", "dpcurate, opened", "causal-learn"), PLAIN),
    "pgmpy": Rules(correction=0.5, empty=math.nan, idle=math.nan),  # 0 / 0 in an empty stratum, and NaN keeps an edge
    "gcastle": Rules(correction=0.5, sides=1),
}


class Tests:
    """G tests of one table by several rules at once, each computed once."""

    def __init__(self, codes: np.ndarray, *rules: Rules) -> None:
        found = [np.unique(column, return_inverse=True) for column in codes.T]
        self._columns = [inverse.astype(np.int64) for _, inverse in found]
        self._sizes = [len(levels) for levels, _ in found]
        self._rules = rules
        self._known: dict[tuple[int, int, tuple[int, ...]], dict[Rules, float]] = {}

    def p_value(self, i: int, j: int, given: tuple[int, ...], rules: Rules) -> float:
        key = (i, j, given)
        if key not in self._known:
            cells, strata = self._cells(*key)
            empty = len(cells) < strata
            self._known[key] = {r: g_test(cells, r, r.empty if empty else 0.0) for r in self._rules}
        return self._known[key][rules]

    def _cells(self, i: int, j: int, given: tuple[int, ...]) -> tuple[np.ndarray, int]:
        """Strata that occur by x by y, and how many could occur."""
        stratum = np.zeros(len(self._columns[0]), dtype=np.int64)
        for k in given:
            stratum = stratum * self._sizes[k] + self._columns[k]
        strata = possible = math.prod(self._sizes[k] for k in given)
        across, down = self._sizes[i], self._sizes[j]
        if possible * across * down > FEW_CELLS:
            occurring, stratum = np.unique(stratum, return_inverse=True)
            possible = len(occurring)
        key = (stratum * across + self._columns[i]) * down + self._columns[j]
        cells = np.bincount(key, minlength=possible * across * down).reshape(possible, across, down)
        return cells[cells.any(axis=(1, 2))], strata


def g_test(cells: np.ndarray, rules: Rules, more: float) -> float:
    """The p-value of strata by x by y, with `more` added to G."""
    from scipy.special import chdtrc

    rows, columns = cells.sum(axis=2), cells.sum(axis=1)
    expected = rows[:, :, None] * columns[:, None, :] / rows.sum(axis=1)[:, None, None]
    freedom = ((rows > 0).sum(axis=1) - 1) * ((columns > 0).sum(axis=1) - 1)
    towards = np.clip(expected - cells, -rules.correction, rules.correction)
    cells = np.where((freedom == 1)[:, None, None], cells + towards, cells)
    there = cells > 0
    g = 2 * (cells[there] * np.log(cells[there] / expected[there])).sum() + more
    return float(chdtrc(freedom.sum(), g)) if freedom.sum() else rules.idle


ColumnPair = tuple[int, int]
Given = tuple[int, ...]


def stable_pc(tests: Tests, columns: int, rules: Rules) -> tuple[set[ColumnPair], dict[ColumnPair, Given]]:
    """Edges, and the sets that cut the others."""
    around = {i: set(range(columns)) - {i} for i in range(columns)}
    cuts: dict[ColumnPair, Given] = {}
    order = 0
    while any(len(beside) > order for beside in around.values()):
        before = {i: sorted(beside) for i, beside in around.items()}
        for i, j in combinations(range(columns), 2):
            sets = _sets(before, i, j, order, rules.sides) if j in around[i] else iter(())
            found = next((given for given in sets if tests.p_value(i, j, given, rules) > ALPHA), None)
            if found is not None:
                cuts[i, j] = found
                around[i].discard(j)
                around[j].discard(i)
        order += 1
    return {(i, j) for i in around for j in around[i] if i < j}, cuts


def _sets(before: dict[int, list[int]], i: int, j: int, order: int, sides: int) -> Iterator[Given]:
    for near, far in ((i, j), (j, i))[:sides]:
        yield from combinations([k for k in before[near] if k != far], order)


def explain(name: str, table: Table) -> dict[str, Any]:
    """The skeletons by causal-learn's rules and by the tool's own, and the test that cut each edge that differs."""
    rules, columns = RULES[name], len(table.names)
    tests = Tests(table.codes, PLAIN, rules)
    plain, by_plain = stable_pc(tests, columns, PLAIN)
    own, by_own = stable_pc(tests, columns, rules)

    def told(pair: ColumnPair) -> dict[str, Any]:
        given = by_plain[pair] if pair in own else by_own[pair]
        values = {"causal-learn": tests.p_value(*pair, given, PLAIN), name: tests.p_value(*pair, given, rules)}
        return {
            "edge": table.edges([pair])[0],
            "cut_by": "causal-learn" if pair in own else name,
            "given": [table.names[k] for k in given],
            "p": {who: None if math.isnan(p) else p for who, p in values.items()},  # JSON has no NaN
        }

    return {"plain": table.edges(plain), "own": table.edges(own), "tests": [told(x) for x in sorted(plain ^ own)]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool", choices=TOOLS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--limit", type=float, default=300.0)
    parser.add_argument("--explain", action="store_true")
    given = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))
    table = Table.read(given.folder)
    if given.explain:
        signal.setitimer(signal.ITIMER_REAL, given.limit)
        print(json.dumps(explain(given.tool, table)))
    else:
        print(json.dumps(measure(TOOLS[given.tool], table, given.limit)))


if __name__ == "__main__":
    main()

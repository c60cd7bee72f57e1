"""Run every method on every world at every epsilon, once; what was run is kept."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from dpcurate._messages import how_many, shown
from dpcurate.accounting import DELTA, Budget
from dpcurate.benchmark.benchmark_worlds import find, title
from dpcurate.benchmark.candidates import Candidate, candidates
from dpcurate.benchmark.measure import Run, Task, check_limit, measure
from dpcurate.benchmark.run_file import RunFile, spread
from dpcurate.errors import QueryError
from dpcurate.networks import SHIPPED

EPSILONS = (0.1, 1.0, 10.0)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The runs, in the order of methods, epsilons, worlds and seeds; prints as a table."""

    runs: tuple[Run, ...]

    def __str__(self) -> str:
        return table_of(self.runs)

    @property
    def problems(self) -> tuple[str, ...]:
        """What could not be run, and why: a line for each method, world and reason."""
        return _problems(self.runs)


def compare(
    methods: Sequence[Any] | None = None,
    worlds: Sequence[Any] | None = None,
    epsilons: Sequence[float] = EPSILONS,
    *,
    add: Sequence[str] = (),
    rows: int = 100_000,
    seeds: int = 3,
    delta: float = DELTA,
    limit: float = 60.0,
    results: str | Path | None = None,
    workers: int = 1,
    progress: Callable[[int, int], object] | None = None,
) -> Comparison:
    """Compare methods on worlds; with `results`, a file, what it has is not run again.

    Args:
        methods: names ('auto', 'em-pc:published', 'curate-pc:statistic=g'), recipes, or a `RowMethod`.
        worlds: networks by name or file, families of random worlds, 'FILE:NAME', or functions of a seed and rows.
        epsilons: the budget of each run, with `delta`; methods without privacy run once.
        add: files with methods of one's own, `FILE` or `FILE:NAME`.
        rows: of each table; public.
        seeds: tables of each world, with fresh noise.
        delta: of each budget.
        limit: the most processor seconds of one run; what takes longer is left out on that world.
        results: the file of runs, one JSON object a line.
        workers: processes.
        progress: called with the numbers of runs done and to do.

    >>> from dpcurate import benchmark
    >>> found = benchmark.compare(["em-pc", "pc"], ["cancer"], [1.0], rows=2_000, seeds=1)
    >>> [run.guarantee for run in found.runs]
    ['proved', 'none']
    """
    for name, value in (("rows", rows), ("seeds", seeds), ("workers", workers)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise QueryError(f"{name} is a whole number above 0, got {shown(value)}")
    check_limit(limit)
    budgets = [float(Budget(epsilon=epsilon, delta=delta).epsilon or 0) for epsilon in dict.fromkeys(epsilons)]
    named = _named(SHIPPED if worlds is None else worlds)
    tasks = [
        Task(one, world, title, rows, epsilon, delta, seed, limit)
        for one in _in_order(candidates(methods, add))
        for epsilon in ([None] if one.guarantee == "none" else budgets)
        for title, world in named.items()
        for seed in range(seeds)
    ]
    if not tasks:
        raise QueryError("nothing to compare: name a method, a world and an epsilon at least")
    file = RunFile(None if results is None else Path(results), Run, lambda run: run.key)
    known = {run.key: run for run in file.rows if run.limit is None or run.limit >= limit}
    for run in _run(tasks, known, seeds, workers, progress):
        file.keep(run)
        known[run.key] = run
    return Comparison(tuple(known[task.key] for task in tasks if task.key in known))


def _named(given: Sequence[Any]) -> dict[str, Any]:
    """Worlds by their names in the table; a world that there is not is refused."""
    found: dict[str, Any] = {}
    for world in given:
        if isinstance(world, str):
            find(world)
        name = title(world) if isinstance(world, str) else getattr(world, "__name__", type(world).__name__)
        if name in found:
            raise QueryError(f"two worlds are called {shown(name)}: name each once")
        found[name] = world
    return found


def _in_order(given: Sequence[Candidate]) -> list[Candidate]:
    """Those with a proof first, those without privacy last."""
    return sorted(given, key=lambda one: ("proved", "claimed", "none").index(one.guarantee))


def _run(
    tasks: Sequence[Task],
    known: dict[Any, Run],
    seeds: int,
    workers: int,
    progress: Callable[[int, int], object] | None,
) -> Iterator[Run]:
    """Seed by seed: what has once taken too long on a world is not tried there again."""
    waiting = [task for task in tasks if task.key not in known]
    slow = {(run.method, run.world) for run in known.values() if run.limit is not None}
    done = 0
    for seed in range(seeds):
        now = [task for task in waiting if task.seed == seed]
        asked = [task for task in now if (task.candidate.name, task.title) not in slow]
        done += len(now) - len(asked)
        for run in spread(measure, [(task,) for task in asked], workers):
            done += 1
            if run.limit is not None:
                slow.add((run.method, run.world))
            yield run
            if progress is not None:
                progress(done, len(waiting))


# --- the table of means ---------------------------------------------------------------------------------------------

NOTHING = "–"
GUARANTEES = {"proved": "proved", "claimed": "*claimed*", "none": "*none*"}
NOT_PRIVATE = "Rows marked *claimed* (by the count of their authors) or *none* are NOT PRIVATE, whatever their epsilon."


def table_of(runs: Sequence[Run]) -> str:
    """How it was made, a Markdown table with its columns aligned, what its marks mean, and what is missing."""
    worlds = list(dict.fromkeys(run.world for run in runs))
    head = ("method", "guarantee", "epsilon", *worlds, "skeleton F1", "CPDAG F1", "Brier", "spent", "seconds")
    lines = [_line(list(group), worlds) for _, group in groupby(runs, key=lambda run: (run.method, run.epsilon))]
    notes = [NOT_PRIVATE] if any(run.guarantee != "proved" for run in runs) else []
    missing = [f"* {line}" for line in _problems(runs)]
    return "\n\n".join(filter(None, [_made(runs), _aligned([head, *lines]), *notes, "\n".join(missing)]))


def _made(runs: Sequence[Run]) -> str:
    from dpcurate import __version__

    rows = ", ".join(f"{number:,}" for number in sorted({run.rows for run in runs}))
    tables = how_many(1 + max(run.seed for run in runs), "table")
    deltas = ", ".join(f"{delta:g}" for delta in sorted({run.delta for run in runs if run.delta is not None}))
    promise = f", add/remove one row, delta = {deltas}" if deltas else ""
    return f"Means of {tables} of each world, {rows} rows{promise}; dpcurate {__version__}."


def _problems(runs: Sequence[Run]) -> tuple[str, ...]:
    """A line for each method, world and reason."""
    counts: dict[tuple[str, str, str], int] = {}
    for run in runs:
        if run.problem:
            key = run.method, run.world, run.problem
            counts[key] = counts.get(key, 0) + 1
    return tuple(
        f"{method} on {world}: {problem} ({how_many(count, 'run')})"
        for (method, world, problem), count in counts.items()
    )


def _line(runs: Sequence[Run], worlds: Sequence[str]) -> tuple[str, ...]:
    """A method at an epsilon: skeleton F1 by world, then means of the worlds that it finished."""
    by_world = [[run for run in runs if run.world == world and not run.problem] for world in worlds]
    there = [some for some in by_world if some]
    first = runs[0]
    epsilon = NOTHING if first.epsilon is None else f"{first.epsilon:g}"
    cells = [_mean([some], lambda run: run.skeleton_f1, "{:.2f}") if some else NOTHING for some in by_world]
    f1 = _mean(there, lambda run: run.skeleton_f1, "{:.3f}") + _error(there)
    if there and len(there) < len(worlds):
        f1 += f" ({len(there)} of {len(worlds)})"
    return (
        first.method,
        GUARANTEES[first.guarantee],
        epsilon,
        *cells,
        f1,
        _mean(there, lambda run: run.cpdag_f1, "{:.3f}"),
        _mean(there, lambda run: run.brier, "{:.4f}"),
        _mean(there, lambda run: run.spent, "{:.3g}"),
        _mean(there, lambda run: run.seconds, "{:.2g}"),
    )


def _mean(groups: Sequence[Sequence[Run]], of: Callable[[Run], float | None], form: str) -> str:
    """The mean over worlds of the means over seeds, of what there is."""
    means = []
    for runs in groups:
        values = [value for run in runs if (value := of(run)) is not None]
        if values:
            means.append(math.fsum(values) / len(values))
    return form.format(math.fsum(means) / len(means)) if means else NOTHING


def _error(groups: Sequence[Sequence[Run]]) -> str:
    """The standard error of the mean over seeds, if each world has several."""
    if not groups or min(map(len, groups)) < 2:
        return ""
    total = 0.0
    for runs in groups:
        values = [run.skeleton_f1 or 0.0 for run in runs]
        mean = math.fsum(values) / len(values)
        total += math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1) / len(values)
    return f" ± {math.sqrt(total) / len(groups):.3f}"


def _aligned(rows: Sequence[tuple[str, ...]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    padded = [[cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in rows]
    rule = ["-" * width for width in widths]
    return "\n".join(f"| {' | '.join(row)} |" for row in [padded[0], rule, *padded[1:]])

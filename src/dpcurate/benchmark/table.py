"""The table: means over seeds and worlds, a line for each method and epsilon."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import groupby

from dpcurate._messages import how_many
from dpcurate.benchmark.measure import Run

NOTHING = "–"
GUARANTEES = {"proved": "proved", "claimed": "*claimed*", "none": "*none*"}
NOT_PRIVATE = "Rows marked *claimed* (by the count of their authors) or *none* are NOT PRIVATE, whatever their epsilon."


def text(runs: Sequence[Run]) -> str:
    """How it was made, a Markdown table with its columns aligned, what its marks mean, and what is missing."""
    worlds = list(dict.fromkeys(run.world for run in runs))
    head = ("method", "guarantee", "epsilon", *worlds, "skeleton F1", "CPDAG F1", "Brier", "spent", "seconds")
    lines = [_line(list(group), worlds) for _, group in groupby(runs, key=lambda run: (run.method, run.epsilon))]
    notes = [NOT_PRIVATE] if any(run.guarantee != "proved" for run in runs) else []
    missing = [f"* {line}" for line in problems(runs)]
    return "\n\n".join(filter(None, [_made(runs), _aligned([head, *lines]), *notes, "\n".join(missing)]))


def _made(runs: Sequence[Run]) -> str:
    from dpcurate import __version__

    rows = ", ".join(f"{number:,}" for number in sorted({run.rows for run in runs}))
    tables = how_many(1 + max(run.seed for run in runs), "table")
    deltas = ", ".join(f"{delta:g}" for delta in sorted({run.delta for run in runs if run.delta is not None}))
    promise = f", add/remove one row, delta = {deltas}" if deltas else ""
    return f"Means of {tables} of each world, {rows} rows{promise}; dpcurate {__version__}."


def problems(runs: Sequence[Run]) -> tuple[str, ...]:
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

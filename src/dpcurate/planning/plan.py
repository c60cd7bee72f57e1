"""Plan before you spend: what accuracy to expect from a public schema and a number of rows.

Figures of the default come from `planning.estimate`, the same that `discover` announces before a run. For other
methods, and for exact ones as a ceiling, random worlds that have the schema are simulated and learnt through a real
curator. No private data is touched: the schema and the number of rows are all that goes in.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from html import escape
from pathlib import Path
from string import Template
from typing import Any, ClassVar

import numpy as np

from dpcurate._files import check_suffix, save_text
from dpcurate._tables import safe, table_html
from dpcurate.accounting import DELTA, Budget
from dpcurate.errors import QueryError
from dpcurate.graphs.knowledge import GivenOrder
from dpcurate.learn.methods import get
from dpcurate.learn.power import Power
from dpcurate.networks.network import whole
from dpcurate.networks.plausible import DEGREE, edge_count
from dpcurate.planning.estimate import estimate
from dpcurate.planning.simulation import EXACT, NO_NOISE, Progress, Refusal, Simulation, WorldRun, all_runs
from dpcurate.schema import Neighbours, Schema
from dpcurate.schema.column_order import parsed_order

_PAGE = Template("""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>dpcurate plan</title><style>
:root{color-scheme:light dark;--ink:#1a1a1a;--paper:#fff;--faint:#767676;--line:#ddd}
@media (prefers-color-scheme:dark){:root{--ink:#eee;--paper:#151515;--faint:#9a9a9a;--line:#3a3a3a}}
body{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem;color:var(--ink);
background:var(--paper)}
svg{width:100%;height:auto}svg text{font-size:12px;fill:var(--ink)}.axis{stroke:var(--line)}
.curve{fill:none;stroke:var(--ink);stroke-width:2}.range{fill:var(--ink);opacity:.08}
.limit{stroke:var(--ink);stroke-dasharray:1 2}
table{border-collapse:collapse;width:100%}
th,td{padding:.25rem .6rem;border-bottom:1px solid var(--line);text-align:right}
th:first-child,td:first-child{text-align:left}.advice{border-left:4px solid;padding-left:1rem;font-weight:600}
</style></head><body><h1>What to expect before spending</h1>
$advice$remarks
<figure>$chart
<figcaption>Mean skeleton F1 against epsilon. Shaded: where 8 of 10 tables lie by $first.$dotted</figcaption></figure>
<table><thead><tr><th scope="col">method</th><th scope="col">epsilon</th><th scope="col">F1</th>
<th scope="col">8 of 10 tables</th><th scope="col">missed edges</th><th scope="col">false edges</th></tr></thead>
<tbody>$rows</tbody></table></body></html>
""")
_DASHES = ("", "7 4", "2 3", "9 3 2 3", "1 5")
_LEFT, _RIGHT, _TOP, _BOTTOM = 40.0, 560.0, 15.0, 290.0


def page(plan: Plan, advice: str | None) -> str:
    """The page of a plan."""
    return _PAGE.substitute(
        advice="" if advice is None else f'<p class="advice">{escape(advice)}</p>',
        remarks="".join(f"<p>{escape(text)}</p>" for text in plan.remarks),
        first=escape(plan.methods[0]),
        chart=f'<svg viewBox="0 0 720 330" role="img" aria-label="skeleton F1 against epsilon">{_chart(plan)}</svg>',
        dotted=" Dotted: exact methods, without privacy." if plan.ceiling else "",
        rows="".join(_rows(plan)),
    )


def _rows(plan: Plan) -> Iterator[str]:
    for row in plan.table_rows:
        yield f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in row)}</tr>"


def _chart(plan: Plan) -> str:
    parts = [*_axes(plan)]
    ends = []
    for method, dash in zip(plan.methods, _DASHES * len(plan.methods), strict=False):
        cells = [plan.cells[method, e] for e in plan.epsilons]
        if method == plan.methods[0]:  # more than one would hide each other
            upper = [_point(plan, c.epsilon, c.high) for c in cells]
            lower = [_point(plan, c.epsilon, c.low) for c in reversed(cells)]
            parts.append(f'<polygon class="range" points="{" ".join(upper + lower)}"/>')
        line = " ".join(_point(plan, c.epsilon, c.f1) for c in cells)
        parts.append(f'<polyline class="curve" stroke-dasharray="{dash}" points="{line}"/>')
        ends.append((_y(cells[-1].f1), method, dash))
    for method, cell in plan.ceiling.items():
        y = f"{_y(cell.f1):.1f}"
        parts.append(f'<line class="limit" x1="{_LEFT}" x2="{_RIGHT}" y1="{y}" y2="{y}"/>')
        ends.append((_y(cell.f1), f"{method}, exact", "1 2"))
    return "".join(parts + _labels(ends))


def _axes(plan: Plan) -> Iterator[str]:
    for level in (0, 0.2, 0.4, 0.6, 0.8, 1):
        y = _y(level)
        yield f'<line class="axis" x1="{_LEFT}" x2="{_RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{level:g}</text>'
    for epsilon in plan.epsilons:
        yield f'<text x="{_x(plan, epsilon):.1f}" y="{_BOTTOM + 18}" text-anchor="middle">{epsilon:g}</text>'
    yield f'<text x="{(_LEFT + _RIGHT) / 2}" y="{_BOTTOM + 36}" text-anchor="middle">epsilon</text>'


def _labels(ends: list[tuple[float, str, str]]) -> list[str]:
    """Names beside the ends of the curves, with a piece of the line, pushed apart."""
    parts, last = [], -math.inf
    for wanted, method, dash in sorted(ends):
        last = max(wanted, last + 16)
        parts.append(
            f'<line class="curve" stroke-dasharray="{dash}" x1="568" x2="598" y1="{last:.1f}" y2="{last:.1f}"/>'
            f'<text x="604" y="{last + 4:.1f}">{escape(method)}</text>'
        )
    return parts


def _x(plan: Plan, epsilon: float) -> float:
    low, high = math.log(plan.epsilons[0]), math.log(plan.epsilons[-1])
    return (_LEFT + _RIGHT) / 2 if low == high else _LEFT + (math.log(epsilon) - low) / (high - low) * (_RIGHT - _LEFT)


def _y(f1: float) -> float:
    return _BOTTOM - f1 * (_BOTTOM - _TOP)


def _point(plan: Plan, epsilon: float, f1: float) -> str:
    return f"{_x(plan, epsilon):.1f},{_y(f1):.1f}"


EPSILONS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
DEFAULT = "auto"
SITES = {"alone": "one site with its own rows", "pooled": "all sites, each with its own noise",
         "shared": "all sites, with the noise of one table (secure aggregation)"}  # fmt: skip
"""How a site can take part in a study of several, all by the default method."""
ESTIMATED = frozenset({"auto", "measure-once", *SITES})
"""Methods with a closed form, which are not simulated."""
WORLDS = 8
"""How many worlds are simulated where a method asks for it."""
MOST_ROWS = 2_000_000
BAR = 24


@dataclass(frozen=True, slots=True)
class Expectation:
    """What to expect of a method at an epsilon: means, and where 8 of 10 tables lie."""

    method: str
    epsilon: float
    f1: float
    low: float
    high: float
    missed: float
    false: float


@dataclass(frozen=True)
class Plan:
    """Expected skeleton F1, missed and false edges against epsilon, for each method, and what exact ones reach."""

    SUFFIXES: ClassVar[tuple[str, ...]] = (".html", ".json", ".txt")
    """Of the files that `report` writes."""
    schema: Schema
    rows: int
    simulated_rows: int
    delta: float
    neighbours: str
    epsilons: tuple[float, ...]
    methods: tuple[str, ...]
    worlds: int
    runs: tuple[WorldRun, ...]
    refusals: tuple[Refusal, ...] = ()
    sites: int = 1
    """How many tables of `rows` rows there are; `methods` are then the keys of `SITES`."""

    @cached_property
    def cells(self) -> Mapping[tuple[str, float], Expectation]:
        """By method and epsilon; infinity is without noise."""
        return {(m, e): self._cell(m, e) for m in self.methods for e in (*self.epsilons, math.inf)}

    @cached_property
    def ceiling(self) -> Mapping[str, Expectation]:
        """What exact methods, which are NOT PRIVATE, reach on the same rows, by name."""
        refused = {r.method for r in self.refusals}
        return {m: self._cell(m, math.inf) for m in EXACT if m not in refused and any(r.method == m for r in self.runs)}

    def _cell(self, method: str, epsilon: float) -> Expectation:
        if method in ESTIMATED:
            power = self._power(method, epsilon)
            return Expectation(method, epsilon, power.f1, *power.range, power.missed, power.false)
        these = [r for r in self.runs if (r.method, r.epsilon) == (method, epsilon)]
        f1 = np.array([r.f1 for r in these])
        low, high = np.quantile(f1, (0.1, 0.9), method="weibull")  # the ends of few worlds hold less than they span
        missed, false = np.mean([r.missed for r in these]), np.mean([r.false for r in these])
        return Expectation(method, epsilon, float(f1.mean()), float(low), float(high), float(missed), float(false))

    def _power(self, method: str, epsilon: float) -> Power:
        rows = self.rows * (1 if method == "alone" else self.sites)
        budget = Budget(epsilon=min(epsilon, NO_NOISE), delta=self.delta)
        if method == "pooled":
            budget = _of_sum(budget, self.sites)
        return estimate(self.schema, rows, budget=budget, neighbours=Neighbours.of(self.neighbours))

    @staticmethod
    def check_accuracy(accuracy: float) -> None:
        """Refuse what is no skeleton F1; can be called before anything is simulated."""
        if not 0 < accuracy <= 1:
            raise QueryError(f"accuracy is a skeleton F1 above 0 and at most 1, got {accuracy!r}")

    def smallest(self, accuracy: float) -> Expectation | None:
        """The smallest epsilon from which on some method has this mean skeleton F1; None if there is none."""
        self.check_accuracy(accuracy)
        found = [cell for method in self.methods if (cell := self._first(method, accuracy)) is not None]
        return min(found, key=lambda cell: (cell.epsilon, -cell.f1), default=None)

    def _first(self, method: str, accuracy: float) -> Expectation | None:
        reached = None
        for epsilon in reversed(self.epsilons):  # so that one lucky figure among worse ones does not count
            cell = self.cells[method, epsilon]
            if cell.f1 < accuracy:
                break
            reached = cell
        return reached

    def advice(self, accuracy: float) -> str:
        """In a sentence, the smallest epsilon tried that reaches this skeleton F1."""
        cell = self.smallest(accuracy)
        if cell is not None:
            return (
                f"For a skeleton F1 of {accuracy:g} the smallest epsilon tried is {cell.epsilon:g}, by {cell.method}: "
                f"{cell.f1:.2f} on average, {cell.low:.2f} to {cell.high:.2f} in 8 of 10 tables."
            )
        best = max((self.cells[m, e] for m in self.methods for e in self.epsilons), key=lambda c: c.f1)
        limit = max((self.cells[m, math.inf] for m in self.methods), key=lambda c: c.f1)
        start = (
            f"No epsilon tried reaches a skeleton F1 of {accuracy:g}; the best is {best.f1:.2f} "
            f"({best.method} at epsilon = {best.epsilon:g})."
        )
        if limit.f1 < accuracy:
            return (
                f"{start} Even without noise it would be {limit.f1:.2f}, so a larger epsilon alone will not help: "
                "use more rows, fewer columns, or fewer levels."
            )
        return f"{start} Without noise {limit.method} has {limit.f1:.2f}: use a larger epsilon or more rows."

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a reader of the figures has to know."""
        less = f" ({self.simulated_rows:,} were simulated; more do better)" if self.simulated_rows < self.rows else ""
        worlds = "1 random network" if self.worlds == 1 else f"{self.worlds} random networks"
        of_sites = "" if self.sites == 1 else f" at each of {self.sites} sites"
        return (
            f"{len(self.schema.names)} columns and {self.rows:,} rows{of_sites}; delta = {self.delta:g}, "
            f"{self.neighbours}. No private data was touched.",
            "Figures are about the graph that a result shows: pairs with P(edge) of at least 0.5.",
            "Skeleton F1 is 1 if every edge is found and none is false. In 8 of 10 tables it lies in the range shown.",
            "Weak effects and rare levels need more budget or rows than this, strong effects less.",
            *self._delta,
            *(f"{m}: {SITES[m]}, at this epsilon at every site." for m in self.methods if m in SITES),
            *(
                f"{m}: the estimate that `discover` announces before a run."
                for m in self.methods
                if m in ESTIMATED and m not in SITES
            ),
            *([f"Everything else is from {worlds} with {self._edges} edges{less}."] if self.runs else []),
            *(
                []
                if self.runs or self.sites > 1
                else ["Simulate random networks (--worlds 8) to see what exact methods (NOT PRIVATE) would reach."]
            ),
            *(f"{name}: {EXACT[name]} on the same rows, NOT PRIVATE: the ceiling." for name in self.ceiling),
            *(f"Left out: {r.method}: {r.reason}." for r in self.refusals),
        )

    @property
    def _delta(self) -> tuple[str, ...]:
        """What a larger delta that is still small for this table would buy."""
        larger = 10.0 ** math.floor(-math.log10(100 * self.rows))
        if not 0 < self.delta < larger:
            return ()
        now, then = (Budget(epsilon=1, delta=delta).ceiling for delta in (self.delta, larger))
        return (
            f"With delta = {larger:g}, below a hundredth of 1 / rows, the same epsilon buys {then / now:.1f} times "
            f"the rho: {(now / then) ** 0.5:.0%} of the noise.",
        )

    @property
    def _edges(self) -> str:
        few, many = (edge_count(len(self.schema.names), degree) for degree in DEGREE)
        return f"{few}" if few == many else f"{few} to {many}"

    @property
    def table_rows(self) -> list[tuple[str, ...]]:
        """The figures as text: method, epsilon, skeleton F1, its range, missed and false edges."""
        rows = [_shown(cell, _name(cell.epsilon)) for cell in self.cells.values()]
        return rows + [_shown(cell, "without privacy") for cell in self.ceiling.values()]

    def __str__(self) -> str:
        return "\n".join([*self.remarks, *(line for m in self.methods for line in self._chart(m)), *self._limits()])

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        heads = ("method", "epsilon", "skeleton F1", "8 of 10 tables", "missed edges", "false edges")
        return table_html(heads, self.table_rows) + "".join(f"<p>{safe(remark)}</p>" for remark in self.remarks)

    def _chart(self, method: str) -> Iterator[str]:
        yield f"\n{method:12}{'skeleton F1':{BAR + 10}}{'range':>11}{'missed':>9}{'false':>8}"
        for epsilon in (*self.epsilons, math.inf):
            yield _line(_name(epsilon), self.cells[method, epsilon])

    def _limits(self) -> Iterator[str]:
        if self.ceiling:
            yield "\nwithout privacy"
        yield from (_line(method, cell) for method, cell in self.ceiling.items())

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain values; without noise, and without privacy, epsilon is null."""
        return {
            "schema": self.schema.hash,
            "rows": self.rows,
            "sites": self.sites,
            "remarks": list(self.remarks),
            "cells": list(map(_plain, self.cells.values())),
            "without_privacy": list(map(_plain, self.ceiling.values())),
        }

    def report(self, path: str | Path, *, accuracy: float | None = None) -> Path:
        """Write a page (.html), the figures (.json) or the chart (.txt)."""
        save_text(path, self.report_text(path, accuracy=accuracy))
        return Path(path)

    def report_text(self, path: str | Path, *, accuracy: float | None = None) -> str:
        """What `report` writes to a file of this name."""
        suffix = check_suffix(path, self.SUFFIXES).suffix.lower()
        advice = None if accuracy is None else self.advice(accuracy)
        if suffix == ".html":
            return page(self, advice)
        if suffix == ".json":
            return json.dumps(self.to_dict() | {"advice": advice}, indent=2) + "\n"
        return f"{self}\n" if advice is None else f"{self}\n\n{advice}\n"


def _plain(cell: Expectation) -> dict[str, Any]:
    return asdict(cell) | {"epsilon": None if math.isinf(cell.epsilon) else cell.epsilon}


def _line(name: str, cell: Expectation) -> str:
    bar = "#" * round(BAR * cell.f1)
    numbers = f"{cell.f1:.2f}   {cell.low:.2f} to {cell.high:.2f}{cell.missed:9.1f}{cell.false:8.1f}"
    return f"{name:>10}  {bar:.<{BAR}}  {numbers}"


def _shown(cell: Expectation, epsilon: str) -> tuple[str, ...]:
    spread = f"{cell.low:.2f} to {cell.high:.2f}"
    return cell.method, epsilon, f"{cell.f1:.2f}", spread, f"{cell.missed:.1f}", f"{cell.false:.1f}"


def _name(epsilon: float) -> str:
    return "no noise" if math.isinf(epsilon) else f"{epsilon:g}"


def plan(
    schema: Schema | str | Path | Mapping[str, Any],
    rows: int,
    *,
    order: GivenOrder = None,
    epsilons: Sequence[float] = EPSILONS,
    methods: Sequence[str] | None = None,
    sites: int = 1,
    worlds: int | None = None,
    seed: int = 0,
    delta: float = DELTA,
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    workers: int = 1,
    progress: Progress | None = None,
) -> Plan:
    """Expected accuracy for each epsilon, from a public schema and a rough number of rows; free.

    `methods` are names, the default alone when not given. The default's figures are the estimate that `discover`
    announces before a run, and come at once. Other methods learn `worlds` random worlds that have this schema (8 if
    not given). So do exact PC and, up to 20 columns, an exact score search: what they reach without privacy is the
    ceiling; for the default alone they are simulated if `worlds` is given. Time grows with `worlds`; with `workers`
    above 1 they are shared out to processes, so call it under `if __name__ == "__main__":`. The same seed gives the
    same figures whatever the workers. Worlds keep to the `order` of columns, by default the schema's.

    With `sites` above 1, `rows` is the number of rows at each of so many sites, and the figures are those of the
    default for one site alone, for sites that are pooled (`pool`), and for sites that share their noise.
    """
    facts, relation = Schema.of(schema), Neighbours.of(neighbours).value
    if order is not None:
        facts = replace(facts, order=parsed_order(order) if isinstance(order, str) else order)  # type: ignore[arg-type]
    if len(facts.names) < 2:
        raise QueryError(f"a graph needs at least two columns, the schema has {len(facts.names)}")
    budgets = tuple(sorted({float(e) for e in epsilons}))
    for epsilon in budgets:
        Budget(epsilon=epsilon, delta=delta)
    if not budgets or math.isinf(budgets[-1]):
        raise QueryError("plan needs at least one epsilon, and finite ones: a run without noise is always shown")
    if whole("sites", sites, least=1) > 1:
        if methods is not None or worlds:
            raise QueryError("a plan for several sites is that of the default method: leave out methods and worlds")
        return Plan(facts, whole("rows", rows, least=1), rows, delta, relation, budgets, tuple(SITES), 0, (), (), sites)
    names = (DEFAULT,) if methods is None else tuple(dict.fromkeys(methods))
    for name in names:
        get(name)
    simulated = min(whole("rows", rows, least=1), MOST_ROWS)
    simulated_methods = tuple(name for name in names if name not in ESTIMATED)
    if worlds is None:
        worlds = WORLDS if simulated_methods else 0
    count = whole("worlds", worlds, least=1 if simulated_methods else 0)
    jobs = [
        Simulation(facts, simulated, delta, relation, budgets, simulated_methods, seed, world) for world in range(count)
    ]
    found = all_runs(jobs, workers, progress or _silent) if jobs else ()
    refusals = tuple(dict.fromkeys(r for r in found if isinstance(r, Refusal)))
    unable = [r for r in refusals if r.method in names]
    if unable:
        raise QueryError(f"{unable[0].method}: {unable[0].reason}")
    runs = tuple(r for r in found if isinstance(r, WorldRun))
    return Plan(facts, rows, simulated, delta, relation, budgets, names, count, runs, refusals)


def _of_sum(budget: Budget, sites: int) -> Budget:
    """The budget at which one table has the noise of a sum over sites that each spend this one."""
    return budget.with_ceiling(float(budget.ceiling) / (math.sqrt(sites) if budget.pure else sites))


def _silent(_done: int, _total: int) -> None:
    """Nobody watches."""

"""Step 4, Plan: what an epsilon means, and what a run with it is expected to find. No row is read, nothing is spent."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from dpcurate import Budget, Schema
from dpcurate._messages import how_many
from dpcurate.accounting import DELTA
from dpcurate.errors import FormatError
from dpcurate.planning.estimate import Outlook, estimate
from dpcurate.planning.simulation import Simulation, WorldRun, all_runs
from dpcurate.schema import Neighbours
from dpcurate.studio.choose_page import ceiling_of
from dpcurate.studio.jobs import Job
from dpcurate.studio.project import Project, ProjectState
from dpcurate.studio.visit import Visit
from dpcurate.studio.words import bar_of, factor, needed, promise, strength, typed_number

EPSILONS = (0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0)
"""Places of the slider."""
WORLDS, AT_ONCE, SEED = 6, 2, 0
"""Random tables that a simulation draws, and how many of them at one time."""
METHOD = "auto"
WIDE, HIGH, LEFT, TOP, BOTTOM = 560.0, 190.0, 44.0, 12.0, 34.0


@dataclass(frozen=True, slots=True)
class Chart:
    """The share of links that are found, against epsilon: points of a polyline, ticks, and where the slider is."""

    line: str
    ticks: tuple[tuple[float, str], ...]
    levels: tuple[tuple[float, str], ...]
    here: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Simulated:
    """Runs of the method on random tables, with the noise of an epsilon and without any."""

    runs: tuple[WorldRun, ...]

    def _mean(self, of: Callable[[WorldRun], int], *, noise: bool) -> str:
        some = [of(run) for run in self.runs if math.isfinite(run.epsilon) == noise]
        return f"{sum(some) / max(len(some), 1):.1f}"

    @property
    def tables(self) -> int:
        """How many tables there are so far."""
        return len({run.world for run in self.runs})

    @property
    def sentence(self) -> str:
        """What was found on them, in words."""
        missed, wrong = self._mean(lambda run: run.missed, noise=True), self._mean(lambda run: run.false, noise=True)
        anyway = self._mean(lambda run: run.missed, noise=False)
        return (
            f"On {how_many(self.tables, 'random table')} of this shape, a run with this epsilon missed {missed} links "
            f"and drew {wrong} wrong ones on average. Without any noise it would miss {anyway}."
        )


def show(visit: Visit) -> Response:
    """The slider and what it buys."""
    project, state = visit.project, visit.project.state
    schema = project.schema
    if schema is None:
        return visit.page("not_described.html", "plan")
    most, budget = _most(project, state)
    epsilons = [epsilon for epsilon in EPSILONS if epsilon < most] + ([most] if most > 0 else [])
    epsilon = min(state.epsilon, most) if most > 0 else state.epsilon
    values: dict[str, Any] = {
        "most": most, "bar": budget, "epsilons": epsilons, "epsilon": epsilon, "promise": promise(epsilon),
        "factor": factor(epsilon), "strength": strength(epsilon), "place": bisect_left(epsilons, epsilon * (1 - 1e-9)),
        "outlook": None, "chart": None, "job": None, "worlds": WORLDS,
    }  # fmt: skip
    if schema.rows is not None:
        neighbours = _neighbours(project)
        outlook = Outlook(schema=schema, rows=schema.rows, budget=_budget(project, epsilon), neighbours=neighbours)
        values["needed"] = needed(outlook) if outlook.hopeless else ""
        values["outlook"], values["chart"] = outlook, _chart(project, schema, epsilons, epsilon)
        values["job"] = visit.site.jobs.find(_key(project, schema, epsilon))
    return visit.page("plan.html", "plan", **values)


def _most(project: Project, state: ProjectState) -> tuple[float, Any]:
    """The largest epsilon that a run may have now, and the ledger as a bar if there is one."""
    ledger = project.ledger
    if ledger is None:
        return state.ceiling, None
    bar = bar_of(ledger)
    return (0.0 if bar.empty else bar.left), bar


def _budget(project: Project, epsilon: float) -> Budget:
    ledger = project.ledger
    return Budget(epsilon=epsilon, delta=DELTA if ledger is None else ledger.budget.delta)


def _neighbours(project: Project) -> Neighbours:
    ledger = project.ledger
    relation = "add-remove" if ledger is None or ledger.facts is None else ledger.facts.neighbours
    return Neighbours.of(relation)


def _chart(project: Project, schema: Schema, epsilons: list[float], epsilon: float) -> Chart | None:
    if schema.rows is None or len(epsilons) < 2:
        return None
    low, high = math.log(epsilons[0]), math.log(epsilons[-1])

    def x(value: float) -> float:
        return round(LEFT + (math.log(value) - low) / (high - low) * (WIDE - LEFT - 12), 1)

    def y(share: float) -> float:
        return round(HIGH - BOTTOM - share * (HIGH - BOTTOM - TOP), 1)

    def found(value: float) -> float:
        power = estimate(schema, int(schema.rows or 1), budget=_budget(project, value), neighbours=_neighbours(project))
        return power.recall

    ticks = [value for value in (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0) if epsilons[0] <= value <= epsilons[-1]]
    return Chart(
        " ".join(f"{x(value)},{y(found(value))}" for value in epsilons),
        tuple((x(value), f"{value:g}") for value in ticks),
        tuple((y(share), f"{share:.0%}") for share in (0.0, 0.5, 1.0)),
        (x(epsilon), y(found(epsilon))),
    )


def save(visit: Visit) -> Response:
    """Keep the slider, or the number beside it; begin a simulation if asked."""
    project, state = visit.project, visit.project.state
    most, bar = _most(project, state)
    values: dict[str, Any] = {}
    if bar is None and visit.text("ceiling") and visit.text("ceiling") != f"{state.ceiling:g}":
        values["ceiling"] = most = ceiling_of(visit.text("ceiling"))
    if visit.text("rows"):
        values |= {"rows": visit.text("rows"), "rows_guessed": False}
    values["epsilon"] = _epsilon(visit, state, most)
    project.change(**values)
    if visit.text("do") == "simulate":
        _simulate(visit, values["epsilon"])
    return visit.go("run" if visit.text("do") == "next" else "plan")


def _epsilon(visit: Visit, state: ProjectState, most: float) -> float:
    typed, slid = visit.text("epsilon"), visit.text("slider")
    if typed and typed != visit.text("was"):
        epsilon = typed_number(typed, "epsilon is a number such as 1")
        if not epsilon > 0:
            raise FormatError("epsilon is a number above 0")
        return min(epsilon, most) if most > 0 else epsilon
    places = [epsilon for epsilon in EPSILONS if epsilon < most] + ([most] if most > 0 else [])
    if slid.isdecimal() and int(slid) < len(places):
        return places[int(slid)]
    return min(state.epsilon, most) if most > 0 else state.epsilon


def _key(project: Project, schema: Schema, epsilon: float) -> tuple[object, ...]:
    return "simulate", project.folder, schema.hash, epsilon


def _simulate(visit: Visit, epsilon: float) -> None:
    schema = visit.project.schema
    if schema is None or schema.rows is None:
        raise FormatError("say roughly how many rows the table has, from public knowledge")
    project, rows = visit.project, schema.rows
    delta, relation = float(_budget(project, epsilon).delta or 0), _neighbours(project).value

    def work(job: Job) -> Simulated:
        for first in range(0, WORLDS, AT_ONCE):
            worlds = range(first, min(first + AT_ONCE, WORLDS))
            jobs = [Simulation(schema, rows, delta, relation, (epsilon,), (METHOD,), SEED, world) for world in worlds]
            found = [run for run in all_runs(jobs, AT_ONCE, _silent) if isinstance(run, WorldRun)]
            job.value = Simulated((*(job.value.runs if job.value else ()), *found))
            job.told = (worlds.stop, WORLDS)
        return job.value  # type: ignore[no-any-return]

    visit.site.jobs.start(_key(project, schema, epsilon), work)


def _silent(_done: int, _total: int) -> None:
    """The page counts tables, not what happens inside one."""

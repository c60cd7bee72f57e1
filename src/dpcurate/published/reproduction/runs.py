"""One cell run: from a method and an epsilon to rows of results."""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from importlib.metadata import version
from typing import Any, cast

import numpy as np

from dpcurate import Budget
from dpcurate.accounting import epsilon_of
from dpcurate.accounting.search import greatest
from dpcurate.graphs.graph import Cpdag, Dag
from dpcurate.graphs.metrics import Rates, arc_rates, shd, skeleton_rates
from dpcurate.learn import methods
from dpcurate.learn.methods import PC, Method
from dpcurate.learn.outcome import Learned
from dpcurate.learn.score.acyclic import AllowedArrows, Growing, acyclic_part, dag_of
from dpcurate.published import schedules
from dpcurate.published.claims import Claim, CurateReading
from dpcurate.published.constraint import PublishedCuratePC
from dpcurate.published.reproduction.grid import GridCell
from dpcurate.published.reproduction.rehearsal import ExactAnswers, Rehearsal, memory
from dpcurate.published.reproduction.world import THRESHOLD, Arcs, World, world
from dpcurate.published.score import PublishedCurateScore, PublishedNoleaks
from dpcurate.queries import Queryable

DELTA = 1e-10
"""Every proved epsilon goes with this delta."""
DELTA_PRIME = 1e-12
"""The paper's delta' (its script has 1e-14)."""
ITERATIONS = 200
"""Gradients of the published score methods at most; NOLEAKS' artifact takes 200 to 1,800 of them."""
FIXED = 0.3
"""NOTEARS' own threshold on weights."""
NAMES = {"notears-on-moments": "notears-moments"}
"""Seeds and kept runs go by the name that the method had when they were made."""
CHOSEN, BEFORE = "published", "published-fixed"
"""Variants of the score methods: the threshold chosen with the true graph, as in the artifact, or beforehand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """One run, one row of the Parquet file.

    `target` is the total epsilon aimed at, `step` what one step was given, `claimed` the epsilon the
    authors' formula reports, `proved` the epsilon proved for the same noise at DELTA (infinite if none
    is). F1 is of the skeleton and of the CPDAG's arcs against the network, of the arcs against a
    non-private PC run, and of the arcs against the list in the authors' code. In rows of kind 'schedule'
    `target` is the total, `step` is eps_0 and `tests` the number of iterations.
    """

    kind: str
    network: str
    method: str
    variant: str
    seed: int = 0
    rows: int = 0
    target: float = 0.0
    step: float | None = None
    claimed: float | None = None
    proved: float | None = None
    tests: float | None = None
    undefined: int = 0
    seconds: float | None = None
    edges: int | None = None
    skeleton_precision: float | None = None
    skeleton_recall: float | None = None
    skeleton_f1: float | None = None
    arc_f1: float | None = None
    shd: int | None = None
    pc_f1: float | None = None
    authors_f1: float | None = None
    version: str = field(default_factory=lambda: version("dpcurate"))


COLUMNS = {
    f.name: "DOUBLE" if "float" in str(f.type) else "INTEGER" if "int" in str(f.type) else "VARCHAR"
    for f in fields(RunRecord)
}


def run(cell: GridCell) -> list[RunRecord]:
    if cell.kind == "schedule":
        return list(_schedules())
    if cell.kind == "exact":
        return [_exact(cell)]
    if cell.variant == "proved":
        return list(_proved(cell))
    return list(_timed(cell) if cell.kind == "time" else _published(cell))


# --- exact --------------------------------------------------------------------------------------------


def _exact(cell: GridCell) -> RunRecord:
    place = world(cell.network, cell.rows)
    began = time.perf_counter()
    if cell.method == "pc-kendall":
        found = place.exact_pc()
    else:
        found = PC(test="g", alpha=0.01).fit(place.natural.curator(Budget.unlimited(), 1))
    return scored(cell, place, found.graph, 0, seconds=time.perf_counter() - began, tests=float(sum(found.tests)))


# --- as published -------------------------------------------------------------------------------------


def recipe(cell: GridCell, step: float) -> Method:
    """The published method; `step` is its epsilon a step, for CURATE and the score methods the total."""
    if cell.method == "curate-pc":
        text = cell.variant == "published-text"
        reading = CurateReading.printed() if text else replace(CurateReading.script(), delta_prime=DELTA_PRIME)
        return PublishedCuratePC(total=step, threshold=THRESHOLD, reading=reading)
    if cell.method == "noleaks":
        return PublishedNoleaks.sharing(step, ITERATIONS, threshold=1e-9)
    if cell.method == "curate-score":
        return PublishedCurateScore(iterations=ITERATIONS, first=first_of(step), schedule="run", threshold=1e-9)
    maker: Any = type(methods.get(cell.method, variant="published"))
    return cast(Method, maker(epsilon=step, threshold=THRESHOLD, claim=Claim(delta=DELTA_PRIME)))


def first_of(total: float, iterations: int = ITERATIONS) -> float:
    """The eps_0 whose multiplicative schedule, as Algorithm 2 prints it, adds up to the total."""
    return greatest(lambda first: sum(schedules.algorithm_2(first, iterations)) <= total, 1e-12, max(total, 1.0))


def calibrated(cell: GridCell, known: ExactAnswers) -> float:
    """The epsilon a step at which the mean claimed epsilon meets the target."""
    if cell.method in ("curate-pc", "noleaks", "curate-score"):
        return cell.target
    columns = len(known.queryable.schema.names)
    step = _first_guess(cell, columns)
    turns, runs = (4, 8) if cell.method != "em-pc" else (2, 4) if columns <= 6 else (1, 1)
    for turn in range(turns if cell.kind == "private" else 0):
        queryables = [Rehearsal(known, f"{cell.name}/calibrate/{turn}/{i}") for i in range(runs)]
        claimed = np.mean([recipe(cell, step).fit(queryable).claimed for queryable in queryables])
        step *= min(max(cell.target / max(float(claimed), 1e-9), 0.1), 10.0)
    return step


def _first_guess(cell: GridCell, columns: int) -> float:
    """Advanced composition turned round, for as many steps as there are pairs (node visits for EM-PC)."""
    visits = columns * (2.2 if columns < 8 else 3.5)
    count = visits if cell.method == "em-pc" else columns * (columns - 1) / 2
    log = 2 * math.log(1 / DELTA_PRIME)
    root = (math.sqrt(log + 4 * cell.target) - math.sqrt(log)) / 2
    return root / math.sqrt(count)


def _published(cell: GridCell) -> Iterator[RunRecord]:
    place, known = world(cell.network, cell.rows), memory(cell.network, cell.rows)
    step = calibrated(cell, known)
    method = recipe(cell, step)
    for seed in range(cell.runs):
        queryable = Rehearsal(known, f"{cell.name}/{seed}")
        began = time.perf_counter()
        found = method.fit(queryable)
        seconds = time.perf_counter() - began
        facts = {
            "step": step,
            "claimed": found.claimed,
            "proved": epsilon_of(rho=queryable.rho, delta=DELTA),
            "tests": _tests(cell, found),
            "undefined": queryable.undefined,
            "seconds": seconds,
        }
        yield from _both(cell, place, found, seed, facts)


def _tests(cell: GridCell, found: Learned) -> float:
    """Answered tests; Priv-PC's examinations count like its sieves, as in its code."""
    examined = len(found.evidence) if cell.method == "priv-pc" else 0
    return float(sum(found.tests) + examined)


def _both(cell: GridCell, place: World, found: Learned, seed: int, facts: dict[str, Any]) -> Iterator[RunRecord]:
    """A score method's row for each way to set its threshold; any other method's one row."""
    if cell.method not in ("noleaks", "curate-score"):
        yield scored(cell, place, found.graph, seed, **facts)
        return
    weights = _weights(found, place.dag.nodes)
    yield scored(cell, place, chosen_threshold(weights, place.dag), seed, **facts)
    fixed = dag_of(place.dag.nodes, acyclic_part(weights, FIXED, AllowedArrows.of(place.dag.nodes, None)))
    yield scored(replace(cell, variant=BEFORE), place, fixed, seed, **facts)


def _weights(found: Learned, nodes: tuple[str, ...]) -> Any:
    index = {name: i for i, name in enumerate(nodes)}
    weights = np.zeros((len(nodes), len(nodes)))
    for e in found.evidence:
        weights[index[e.pair[0]], index[e.pair[1]]] = e.value
    return weights


def chosen_threshold(weights: Any, truth: Dag) -> Dag:
    """The DAG of best skeleton F1 over all thresholds: chosen with the truth, as NOLEAKS' artifact does."""
    nodes, size = truth.nodes, np.abs(weights)
    graph = Growing(len(nodes))
    best, best_f1, right, edges = dag_of(nodes, graph.arrows.copy()), 0.0, 0, 0
    for k in np.argsort(-size, axis=None, kind="stable"):
        i, j = divmod(int(k), len(nodes))
        if size[i, j] == 0:
            break
        if not graph.fits(i, j):
            continue  # left out, so that noise on both directions of a pair does not end the search
        graph.add(i, j)
        edges, right = edges + 1, right + (frozenset((nodes[i], nodes[j])) in truth.edges)
        f1 = 2 * right / (edges + len(truth.edges))
        if f1 > best_f1:
            best, best_f1 = dag_of(nodes, graph.arrows.copy()), f1
    return best


def _timed(cell: GridCell) -> Iterator[RunRecord]:
    """Runs on a curator that has read nothing yet."""
    place = world(cell.network, cell.rows)
    step = calibrated(cell, memory(cell.network, cell.rows))
    for seed in range(cell.runs):
        queryable = place.alphabetical.curator(Budget.unlimited(), _number(cell, seed))
        found, seconds = _clocked(recipe(cell, step).fit, queryable)
        yield scored(cell, place, found.graph, seed, step=step, seconds=seconds, claimed=found.claimed)


# --- ours ---------------------------------------------------------------------------------------------


def _proved(cell: GridCell) -> Iterator[RunRecord]:
    place, method = world(cell.network, cell.rows), methods.get(NAMES.get(cell.method, cell.method))
    for seed in range(cell.runs):
        queryable = place.natural.curator(Budget(epsilon=cell.target, delta=DELTA), _number(cell, seed))
        found, seconds = _clocked(method.fit, queryable)
        facts = {"claimed": cell.target, "proved": cell.target, "tests": float(sum(found.tests)), "seconds": seconds}
        yield scored(cell, place, found.graph, seed, **facts)


def _number(cell: GridCell, seed: int) -> int:
    return zlib.crc32(f"{cell.name}/{seed}".encode())


def _clocked(fit: Callable[[Queryable], Learned], queryable: Queryable) -> tuple[Learned, float]:
    began = time.perf_counter()
    found = fit(queryable)
    return found, time.perf_counter() - began


# --- measures -----------------------------------------------------------------------------------------


def scored(cell: GridCell, place: World, graph: Cpdag | Dag, seed: int, **facts: Any) -> RunRecord:
    ours = graph.cpdag() if isinstance(graph, Dag) else graph
    pc = place.pc.cpdag() if isinstance(place.pc, Dag) else place.pc
    skeleton, truth = skeleton_rates(ours, place.dag), place.dag.cpdag()
    return RunRecord(
        kind=cell.kind,
        network=cell.network,
        method=cell.method,
        variant=cell.variant,
        seed=seed,
        rows=cell.rows,
        target=cell.target,
        edges=len(ours.edges),
        skeleton_precision=skeleton.precision,
        skeleton_recall=skeleton.recall,
        skeleton_f1=skeleton.f1,
        arc_f1=arc_rates(ours, truth).f1,
        shd=shd(ours, truth),
        pc_f1=arc_rates(ours, pc).f1,
        authors_f1=_against(ours, place.authors).f1,
        **facts,
    )


def _against(graph: Cpdag, listed: Arcs) -> Rates:
    """Of arcs, against a list of arcs."""
    arcs = graph.arrows | {arc for a, b in graph.lines for arc in ((a, b), (b, a))}
    both = len(arcs & listed)
    return Rates(both / len(arcs) if arcs else 1.0, both / len(listed))


# --- figure 3 -----------------------------------------------------------------------------------------


def _schedules() -> Iterator[RunRecord]:
    for first in (0.01, 0.1, 0.5, 2.0):
        for total in (float(t) for t in np.geomspace(0.1, 10, 13)):
            for kind in schedules.INCREMENTS:
                counts = {
                    "lemma-2": schedules.lemma_2(kind, total, first),
                    "exact": float(schedules.exact_count(kind, total, first)),
                }
                for variant, count in counts.items():
                    yield RunRecord(
                        kind="schedule",
                        network="none",
                        method=kind,
                        variant=variant,
                        target=total,
                        step=first,
                        tests=count,
                    )

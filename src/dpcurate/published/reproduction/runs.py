"""One cell run: from a method, a reading and an epsilon to rows of results."""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from importlib.metadata import version
from typing import Any

import numpy as np

from dpcurate import Budget
from dpcurate.accounting import epsilon_of
from dpcurate.graphs.graph import Cpdag, Dag, Pag
from dpcurate.graphs.metrics import Rates, arc_rates, arcs_of, shd, skeleton_rates
from dpcurate.learn import methods
from dpcurate.learn.methods import PC, Method
from dpcurate.learn.score.acyclic import AllowedArrows, Growing, acyclic_part, dag_of
from dpcurate.published import schedules
from dpcurate.published.claims import READINGS, Claim, CurateReading, PublishedLearned
from dpcurate.published.constraint import PublishedCuratePC, PublishedEMPC, PublishedPrivPC, PublishedSVTPC
from dpcurate.published.reproduction import adaptivity
from dpcurate.published.reproduction.adaptivity import DELTA, DELTA_PRIME, GRADIENTS
from dpcurate.published.reproduction.grid import SCORE, THRESHOLD, Arcs, GridCell, PaperWorld, world
from dpcurate.published.reproduction.rehearsal import ExactAnswers, Rehearsal, memory
from dpcurate.published.score import PublishedCurateScore, PublishedNoleaks
from dpcurate.queries import Queryable
from dpcurate.result.fit import FitResult

FIRST = 0.01
"""eps_0 of the score methods, and NOLEAKS' epsilon a gradient: the paper does not print it."""
FIXED = 0.3
"""NOTEARS' own threshold on weights."""
BEFORE = f", threshold {FIXED}"
"""Added to a score method's reading where the threshold was fixed and not chosen with the true graph."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRecord:
    """One run, one row of the Parquet file.

    `target` is the total epsilon aimed at (eps_0 in kind 'first'), `step` what one step was given (the nominal
    total in kind 'allocation'), `claimed` the epsilon that the run spent by its authors' formula, `first` the part
    of it that order 0 got, `proved` the epsilon proved for the same noise at DELTA (infinite if none is). `counted`
    are tests in the authors' unit, `answered` all that got an answer. F1 is of arcs against a non-private PC run and
    against the list in the authors' code, and of skeleton and arcs against the network. In rows of kind 'schedule'
    `target` is the total, `step` is eps_0 and `answered` the number of iterations.
    """

    kind: str
    network: str
    method: str
    reading: str
    seed: int = 0
    rows: int = 0
    target: float = 0.0
    step: float | None = None
    claimed: float | None = None
    proved: float | None = None
    counted: float | None = None
    answered: float | None = None
    first: float | None = None
    undefined: int = 0
    seconds: float | None = None
    edges: int | None = None
    pc_precision: float | None = None
    pc_recall: float | None = None
    pc_f1: float | None = None
    authors_f1: float | None = None
    skeleton_precision: float | None = None
    skeleton_recall: float | None = None
    skeleton_f1: float | None = None
    arc_f1: float | None = None
    shd: int | None = None
    version: str = field(default_factory=lambda: version("dpcurate"))


COLUMNS = {
    f.name: "DOUBLE" if "float" in str(f.type) else "INTEGER" if "int" in str(f.type) else "VARCHAR"
    for f in fields(CellRecord)
}


def run(cell: GridCell) -> list[CellRecord]:
    """Run one cell of the grid."""
    if cell.kind == "schedule":
        return list(_schedules())
    if cell.kind == "exact":
        return [_exact(cell)]
    if cell.kind in ("allocation", "proved allocation"):
        return list(_allocated(cell))
    if cell.kind in ("proved shape", "adaptive") or cell.reading == "proved":
        return list(_of_ours(cell))
    return list(_timed(cell) if cell.kind == "time" else _published(cell))


# --- exact --------------------------------------------------------------------------------------------


def _exact(cell: GridCell) -> CellRecord:
    place = world(cell.network, cell.rows)
    if cell.method == "pc-kendall":
        found, seconds = _clocked(place.kendall_pc().fit, place.alphabetical.curator(Budget.unlimited(), 1))
    else:
        found, seconds = _clocked(PC(test="g", alpha=0.01).fit, place.natural.curator(Budget.unlimited(), 1))
    return scored(cell, place, found, 0, seconds=seconds, **_tests(found))


def _tests(found: FitResult) -> dict[str, float]:
    """Tests in the authors' unit, where they have one, and answers."""
    if isinstance(found, PublishedLearned):
        return {"counted": float(found.counted), "answered": float(found.answered)}
    return {"answered": float(sum(found.tests))}


# --- as published -------------------------------------------------------------------------------------


def recipe(cell: GridCell, step: float) -> Method:
    """The published method; `step` is its epsilon a step, for CURATE and the score methods the total."""
    if cell.kind == "shape":
        return adaptivity.shaped(cell)
    if cell.kind == "increment":
        return adaptivity.incremented(cell)
    if cell.method == "curate-pc":
        return PublishedCuratePC(total=step, threshold=THRESHOLD, reading=curate_reading(cell))
    if cell.kind == "first":
        first: dict[str, Method] = {
            "noleaks": PublishedNoleaks(each=step, threshold=1e-9),
            "curate-score": PublishedCurateScore(first=step, iterations=30, threshold=1e-9),
        }
        return first[cell.method]
    if cell.method == "noleaks":
        return _noleaks(cell.reading, step)
    if cell.method == "curate-score":
        return _curate_score(cell.reading, step)
    common: dict[str, Any] = {"epsilon": step, "threshold": THRESHOLD, "claim": Claim(delta=DELTA_PRIME)}
    if cell.method == "em-pc":
        return PublishedEMPC(separators="slip" if cell.reading == "coded" else "own", **common)
    return PublishedSVTPC(**common) if cell.method == "svt-pc" else PublishedPrivPC(**common)


def curate_reading(cell: GridCell) -> CurateReading:
    """A reading at the paper's delta'; the script takes Survey's six columns for five."""
    if cell.kind == "test":
        return CurateReading(test=adaptivity.TESTS[cell.reading])
    reading = replace(READINGS[cell.reading], delta_prime=DELTA_PRIME)
    return replace(reading, variables=5) if (cell.reading, cell.network) == ("script", "survey") else reading


def _noleaks(reading: str, total: float) -> Method:
    options: dict[str, Any] = {"each": FIRST, "total": total, "threshold": 1e-9}
    if reading == "printed":
        return PublishedNoleaks.printed(**options)
    if reading == "artifact":
        return PublishedNoleaks.artifact(**options)
    if reading == "one schedule":
        return PublishedNoleaks.sharing(total, GRADIENTS, threshold=1e-9)
    return PublishedNoleaks(**options)


def _curate_score(reading: str, total: float) -> Method:
    options: dict[str, Any] = {"first": FIRST, "iterations": None, "total": total, "threshold": 1e-9}
    if reading == "printed":
        return PublishedCurateScore.printed(**options)
    if reading == "artifact":
        return PublishedCurateScore.artifact(**options)
    if reading == "one schedule":
        first = adaptivity.first_of(total, GRADIENTS)
        return PublishedCurateScore(first=first, iterations=GRADIENTS, schedule="run", threshold=1e-9)
    return PublishedCurateScore(**{**options, "iterations": 30 if reading.endswith("30") else None})


def calibrated(cell: GridCell, known: ExactAnswers) -> float:
    """The epsilon a step at which the mean claimed epsilon meets the target."""
    if cell.method in ("curate-pc", *SCORE):
        return cell.target
    columns = len(known.queryable.schema.names)
    step = _first_guess(cell, columns)
    turns, runs = (4, 6) if cell.method != "em-pc" else (2, 4) if columns <= 6 else (1, 1)
    for turn in range(turns if cell.kind == "private" else 0):
        queryables = [Rehearsal(known, f"{cell.seed}/calibrate/{turn}/{i}") for i in range(runs)]
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


def _published(cell: GridCell) -> Iterator[CellRecord]:
    place, known = world(cell.network, cell.rows), memory(cell.network, cell.rows)
    step = calibrated(cell, known)
    method = recipe(cell, step)
    for seed in range(cell.runs):
        queryable = _queryable(cell, place, known, seed)
        found, seconds = _clocked(method.fit, queryable)
        facts = {"step": step, "claimed": found.claimed, "seconds": seconds, **_tests(found), **_proved_for(queryable)}
        yield scored(cell, place, found, seed, **facts)
        if cell.method in SCORE and cell.kind in ("private", "first"):
            yield scored(replace(cell, reading=cell.reading + BEFORE), place, _cut_at(FIXED, found), seed, **facts)


def _queryable(cell: GridCell, place: PaperWorld, known: ExactAnswers, seed: int) -> Queryable:
    """Exact answers once for all runs; a reading that samples rows needs a curator of its own."""
    if cell.reading == "artifact":
        return place.alphabetical.curator(Budget.unlimited(), _number(cell, seed))
    return Rehearsal(known, f"{cell.seed}/{seed}")


def _proved_for(queryable: Queryable) -> dict[str, float]:
    if not isinstance(queryable, Rehearsal):
        return {"proved": math.inf}
    return {"proved": epsilon_of(rho=queryable.rho, delta=DELTA), "undefined": queryable.undefined}


def _weights(found: FitResult) -> Any:
    nodes = found.graph.nodes
    index = {name: i for i, name in enumerate(nodes)}
    weights = np.zeros((len(nodes), len(nodes)))
    for e in found.evidence:
        weights[index[e.pair[0]], index[e.pair[1]]] = e.value
    return weights


def _cut_at(threshold: float, found: FitResult) -> Dag:
    nodes = found.graph.nodes
    return dag_of(nodes, acyclic_part(_weights(found), threshold, AllowedArrows.of(nodes, None)))


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


def _timed(cell: GridCell) -> Iterator[CellRecord]:
    """Runs on a curator that has read nothing yet."""
    place = world(cell.network, cell.rows)
    step = calibrated(cell, memory(cell.network, cell.rows))
    for seed in range(cell.runs):
        queryable = place.alphabetical.curator(Budget.unlimited(), _number(cell, seed))
        found, seconds = _clocked(recipe(cell, step).fit, queryable)
        yield scored(cell, place, found, seed, step=step, seconds=seconds, claimed=found.claimed)


# --- ours ---------------------------------------------------------------------------------------------


def _of_ours(cell: GridCell) -> Iterator[CellRecord]:
    """A proved method, or one of several forms of it, with the whole budget."""
    forms = {"proved shape": adaptivity.PROVED_SHAPES, "adaptive": adaptivity.ADAPTIVE}.get(cell.kind)
    place, method = world(cell.network, cell.rows), methods.get(cell.method) if forms is None else forms[cell.reading]
    for seed in range(cell.runs):
        queryable = place.natural.curator(Budget(epsilon=cell.target, delta=DELTA), _number(cell, seed))
        found, seconds = _clocked(method.fit, queryable)
        facts = {"claimed": cell.target, "proved": cell.target, "seconds": seconds, **_tests(found)}
        yield scored(cell, place, found.graph, seed, **facts)


def _allocated(cell: GridCell) -> Iterator[CellRecord]:
    place = world(cell.network, cell.rows)
    for seed, (one, facts) in enumerate(adaptivity.allocated(cell)):
        yield scored(cell, place, one.found, seed, claimed=one.claimed, **facts, **_tests(one.found))


def _number(cell: GridCell, seed: int) -> int:
    return zlib.crc32(f"{cell.reading}/{cell.seed}/{seed}".encode())


def _clocked(fit: Callable[[Queryable], FitResult], queryable: Queryable) -> tuple[FitResult, float]:
    began = time.perf_counter()
    found = fit(queryable)
    return found, time.perf_counter() - began


# --- measures -----------------------------------------------------------------------------------------


def scored(
    cell: GridCell, place: PaperWorld, found: FitResult | Cpdag | Dag | Pag, seed: int, **facts: Any
) -> CellRecord:
    """Compare a graph with the truths of its network."""
    graph, arcs = _drawn(cell, place, found)
    skeleton, truth, pc = skeleton_rates(graph, place.dag), place.dag.cpdag(), Rates.of(arcs, place.pc)
    return CellRecord(
        kind=cell.kind,
        network=cell.network,
        method=cell.method,
        reading=cell.reading,
        seed=seed,
        rows=cell.rows,
        target=cell.target,
        edges=len(graph.edges),
        pc_precision=pc.precision,
        pc_recall=pc.recall,
        pc_f1=pc.f1,
        authors_f1=Rates.of(arcs, place.authors).f1,
        skeleton_precision=skeleton.precision,
        skeleton_recall=skeleton.recall,
        skeleton_f1=skeleton.f1,
        arc_f1=arc_rates(graph, truth).f1,
        shd=shd(graph, truth),
        **facts,
    )


def _drawn(cell: GridCell, place: PaperWorld, found: FitResult | Cpdag | Dag | Pag) -> tuple[Cpdag, Arcs]:
    """The graph, and its arcs as the authors' code draws them if it is one of theirs."""
    graph = found.graph if isinstance(found, FitResult) else found
    if isinstance(found, FitResult) and cell.score:
        graph = chosen_threshold(_weights(found), place.dag)
    assert not isinstance(graph, Pag)  # no recipe of the grid admits hidden causes
    ours = graph.cpdag() if isinstance(graph, Dag) else graph
    return ours, found.arcs if isinstance(found, PublishedLearned) else arcs_of(ours)


# --- figure 3 -----------------------------------------------------------------------------------------


def _schedules() -> Iterator[CellRecord]:
    for total in (0.1, 1.0, 10.0):
        for first in (float(e) for e in np.geomspace(0.001, 5, 38)):
            for kind in schedules.INCREMENTS:
                stated = schedules.lemma_2(kind, total, first)
                exact = float(schedules.exact_count(kind, total, first))
                for how, count in (("lemma-2", stated), ("exact", exact)):
                    yield CellRecord(
                        kind="schedule", network="none", method=kind, reading=how, target=total, step=first,
                        answered=count,
                    )  # fmt: skip

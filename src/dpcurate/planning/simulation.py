"""Worlds that are simulated and learnt: one process a world, stopped at once when the caller stops."""

from __future__ import annotations

import math
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import active_children, get_context

from dpcurate.accounting import Budget
from dpcurate.errors import QueryError
from dpcurate.graphs.graph import Graph
from dpcurate.graphs.knowledge import Knowledge, with_order
from dpcurate.graphs.metrics import skeleton_rates
from dpcurate.learn.methods import PC, Method, OrderSearch, get
from dpcurate.networks.network import Network
from dpcurate.networks.plausible import random_world, simulate
from dpcurate.private.curator import Curator
from dpcurate.queries.proxies import limited
from dpcurate.result.threshold import Threshold, graph_at
from dpcurate.schema import Column, Schema

EXACT = {"PC": "exact PC", "BIC search": "an exact search over orders by BIC"}
"""The methods, none of them private, and what they are."""
SEARCHED_COLUMNS = 20
SEARCHED_CELLS = 2_000_000
"""Columns, and columns times distinct rows, up to which the search adds little to a plan's time."""


def exact(name: str, schema: Schema, rows: int) -> Method:
    """The exact method of this name for tables with this schema, refused where it cannot work or would take long."""
    levels = all(column.has_levels for column in schema.columns)
    if not levels and any(column.kind != "numeric" for column in schema.columns):
        raise QueryError("it reads levels alone or numbers alone; give the numbers bins to see it")
    if name == "PC":
        return PC() if levels else PC(test="partial-correlation")
    _check_time(len(schema.columns), schema.columns if levels else (), rows)
    return OrderSearch(starts=1, patience=3)  # enough for so few columns


def _check_time(count: int, counted: Sequence[Column], rows: int) -> None:
    """Numbers are read once; what is counted again and again are columns of levels."""
    cells = len(counted) * min(rows, math.prod(column.size for column in counted))
    if count > SEARCHED_COLUMNS:
        raise QueryError(f"{count} columns would take long; a plan runs it up to {SEARCHED_COLUMNS}")
    if cells > SEARCHED_CELLS:
        raise QueryError(f"{cells:,} cells in distinct rows would take long; a plan runs it up to {SEARCHED_CELLS:,}")


NO_NOISE = 1e6
"""An epsilon whose noise moves nothing."""

Progress = Callable[[int, int], None]
"""Told how many worlds are done, of how many."""


@dataclass(frozen=True, slots=True)
class WorldRun:
    """One method on one world with one epsilon (infinite: without noise)."""

    world: int
    method: str
    epsilon: float
    f1: float
    missed: int
    false: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """A method that cannot work with the schema, and why."""

    method: str
    reason: str


@dataclass(frozen=True, slots=True)
class Simulation:
    """One world to simulate; it crosses to another process."""

    schema: Schema
    rows: int
    delta: float
    neighbours: str
    epsilons: tuple[float, ...]
    methods: tuple[str, ...]
    seed: int
    world: int


def all_runs(jobs: list[Simulation], workers: int, progress: Progress) -> tuple[WorldRun | Refusal, ...]:
    """Every simulation, in the order of the jobs, from several processes."""
    progress(0, len(jobs))
    if min(workers, len(jobs)) > 1:
        try:
            return _parallel(jobs, min(workers, len(jobs)), progress)
        except (BrokenProcessPool, OSError):
            progress(0, len(jobs))  # no processes here: one world after the other
    return _collected(map(_world, jobs), len(jobs), progress)


def _parallel(jobs: list[Simulation], workers: int, progress: Progress) -> tuple[WorldRun | Refusal, ...]:
    others = set(active_children())
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        try:
            with _deaf_to_interrupts():
                results = pool.map(_world, jobs)
            return _collected(results, len(jobs), progress)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            started = set(active_children()) - others
            for child in started:  # a world under way may take long
                child.terminate()
            for child in started:
                child.join()
            raise


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Ctrl-C goes to the whole group; processes started here never see it, and the caller ends them."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _collected(
    results: Iterator[list[WorldRun | Refusal]], total: int, progress: Progress
) -> tuple[WorldRun | Refusal, ...]:
    runs: list[WorldRun | Refusal] = []
    for done, some in enumerate(results, start=1):
        runs += some
        progress(done, total)
    return tuple(runs)


def _world(job: Simulation) -> list[WorldRun | Refusal]:
    """All methods and budgets on one world: one open curator, so that exact tables are counted once."""
    seed = job.seed * 1_000_003 + job.world
    network = random_world(job.schema, seed=seed)
    curator = Curator(
        simulate(job.schema, network, job.rows, seed=seed),
        job.schema,
        budget=Budget(epsilon=math.inf, delta=job.delta),
        neighbours=job.neighbours,
        insecure_seed=seed,
    )
    found: list[WorldRun | Refusal] = []
    known = with_order(None, None, job.schema)
    for method in job.methods:
        try:
            found += [_run(job, curator, method, epsilon, network, known) for epsilon in (*job.epsilons, math.inf)]
        except QueryError as error:
            found.append(Refusal(method, str(error)))
    return [*found, *(_exact(job, curator, name, network, known) for name in EXACT)]


def _exact(
    job: Simulation, curator: Curator, name: str, network: Network, known: Knowledge | None
) -> WorldRun | Refusal:
    try:
        graph = exact(name, job.schema, job.rows).fit(curator, known).graph
    except QueryError as error:
        return Refusal(name, str(error))
    return compare(job.world, name, math.inf, graph, network.dag)


def _run(
    job: Simulation, curator: Curator, method: str, epsilon: float, network: Network, known: Knowledge | None
) -> WorldRun:
    with limited(curator, Budget(epsilon=min(epsilon, NO_NOISE), delta=job.delta).ceiling) as queryable:
        graph = graph_at(get(method).fit(queryable, known), Threshold(), known)
    return compare(job.world, method, epsilon, graph, network.dag)


def compare(world: int, method: str, epsilon: float, found: Graph, truth: Graph) -> WorldRun:
    """What a simulated run found beside the truth."""
    missed, false = len(truth.edges - found.edges), len(found.edges - truth.edges)
    return WorldRun(world, method, epsilon, skeleton_rates(found, truth).f1, missed, false)

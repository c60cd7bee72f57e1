"""One run: a method on one table, and how far its graph is from the true one."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from dpcurate._messages import one_line
from dpcurate.accounting import Budget
from dpcurate.benchmark.benchmark_worlds import TableOfTruth, World, find
from dpcurate.benchmark.candidates import Candidate, Guarantee, RowMethod
from dpcurate.errors import DpcurateError, QueryError
from dpcurate.graphs.graph import Cpdag, Dag
from dpcurate.graphs.metrics import arc_rates, class_of, skeleton_rates
from dpcurate.graphs.pag import Pag
from dpcurate.private.curator import Curator
from dpcurate.result.fit import FitResult


@dataclass(frozen=True, slots=True)
class Task:
    """What to run. `world` is a name, or a function with the name `title`; `epsilon` is None without a budget."""

    candidate: Candidate
    world: str | World
    title: str
    rows: int
    epsilon: float | None
    delta: float
    seed: int
    limit: float

    @property
    def key(self) -> Hashable:
        """What tells runs apart."""
        one = self.candidate
        delta = None if self.epsilon is None else self.delta
        return one.name, one.code, self.title, self.rows, self.epsilon, delta, self.seed


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run, one line of the file of runs.

    `epsilon` and `delta` are the budget (None: no privacy), `spent` the epsilon that the run has spent: as charged by
    a session where `guarantee` is 'proved', else as claimed. `brier` is None without probabilities, `cpdag_f1` where
    one of the graphs is a PAG. `problem` says why there is no graph; `limit` is the one that was exceeded.
    """

    method: str
    code: str
    guarantee: Guarantee
    world: str
    rows: int
    epsilon: float | None
    delta: float | None
    seed: int
    skeleton_f1: float | None = None
    cpdag_f1: float | None = None
    brier: float | None = None
    spent: float | None = None
    seconds: float | None = None
    problem: str = ""
    limit: float | None = None

    @property
    def key(self) -> Hashable:
        """Equal to that of its task."""
        return self.method, self.code, self.world, self.rows, self.epsilon, self.delta, self.seed


def measure(task: Task) -> Run:
    """Run it; what fails is a run with a problem."""
    one = task.candidate
    delta = None if task.epsilon is None else task.delta
    run = Run(
        method=one.name, code=one.code, guarantee=one.guarantee, world=task.title, rows=task.rows,
        epsilon=task.epsilon, delta=delta, seed=task.seed,
    )  # fmt: skip
    case = (find(task.world) if isinstance(task.world, str) else task.world)(task.seed, task.rows)
    if case.graph is None:
        return replace(run, problem="no graph describes this world")
    start = time.process_time()
    try:
        with _processor_limit(task.limit):
            found, spent = _fitted(one, case, task)
        return replace(run, seconds=time.process_time() - start, spent=spent, **_scores(found, case.graph))
    except _OverLimit:
        return replace(run, problem=f"over {task.limit:g} s of processor time", limit=task.limit)
    except DpcurateError as problem:
        return replace(run, problem=one_line(str(problem)))
    except Exception as problem:  # a method that fails on one table must not end a benchmark of hours
        return replace(run, problem=one_line(f"{type(problem).__name__}: {problem}"))


def _fitted(one: Candidate, case: TableOfTruth, task: Task) -> tuple[FitResult, float | None]:
    """The result and the epsilon spent."""
    if isinstance(one.method, RowMethod):
        assert task.epsilon is not None
        found = one.method.fit_rows(case.table, case.schema, Budget(epsilon=task.epsilon, delta=task.delta), task.seed)
        return found, found.claimed
    if one.guarantee == "proved":
        assert task.epsilon is not None
        budget = Budget(epsilon=task.epsilon, delta=task.delta)
        # Simulated rows: whoever knows the seed of the noise learns nothing about anybody.
        curator = Curator(case.table, case.schema, budget=budget, insecure_seed=task.seed)
        found = one.method.fit(curator)
        return found, budget.as_epsilon(float(curator.ledger.spent))
    open_to_all = Budget.unlimited()
    curator = Curator(case.table, case.schema, budget=open_to_all, allow_unproved=True, insecure_seed=task.seed)
    recipe: Any = one.method
    found = (recipe if task.epsilon is None else replace(recipe, total=task.epsilon)).fit(curator)
    return found, found.claimed


# --- how far from the truth ---------------------------------------------------------------------------------


def _scores(found: FitResult, truth: Dag | Cpdag | Pag) -> dict[str, Any]:
    if not isinstance(found, FitResult):
        raise QueryError(f"a method returns a FitResult, and this one returned {type(found).__name__}")
    graph = found.graph
    return {
        "skeleton_f1": skeleton_rates(graph, truth).f1,
        "cpdag_f1": None
        if isinstance(graph, Pag) or isinstance(truth, Pag)
        else arc_rates(class_of(graph), class_of(truth)).f1,
        "brier": _brier(found, truth),
    }


def _brier(found: FitResult, truth: Dag | Cpdag | Pag) -> float | None:
    """The mean squared error of P(edge) over all pairs."""
    if not found.linked:
        return None
    pairs = [frozenset(pair) for pair in combinations(truth.nodes, 2)]
    return sum((found.linked.get(pair, 0.0) - (pair in truth.edges)) ** 2 for pair in pairs) / len(pairs)


# --- a limit ------------------------------------------------------------------------------------------------


class _OverLimit(BaseException):
    """The processor time is up; no method may take it for an error of its own."""


@contextmanager
def _processor_limit(seconds: float) -> Iterator[None]:
    """Stop after so many seconds of processor time, where the system can (not on Windows, not in threads)."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        raise _OverLimit

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds, 1.0)  # again every second, should a library swallow it
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def check_limit(limit: float) -> float:
    """A positive number of seconds."""
    if not limit > 0:
        raise QueryError(f"limit is a number of seconds above 0, got {limit!r}")
    return float(limit)

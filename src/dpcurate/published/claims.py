"""What the authors of the published systems claim to spend, and where the CURATE paper and its script differ."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, get_args, get_type_hints

from dpcurate._validation import check_choice
from dpcurate.errors import BudgetExceeded, QueryError
from dpcurate.graphs.base_graph import Arrow
from dpcurate.learn.constraint.pc_search import Style
from dpcurate.published.unproved_statistics import SMALLEST, PaperTest, StatedBound
from dpcurate.result.fit import FitResult


@dataclass(frozen=True, slots=True)
class Claim:
    """How a system's authors turn so many steps of epsilon into one epsilon.

    'square' is CURATE's c eps^2 + sqrt(2 c eps^2 log(1/delta')), 'expm1' Priv-PC's advanced composition.
    """

    delta: float = 1e-14
    form: Literal["square", "expm1"] = "square"

    def total(self, count: float, epsilon: float, parts: int = 1) -> float:
        """The claimed epsilon of `count` steps, each of `parts` equal parts of epsilon / parts."""
        e = epsilon / parts
        if self.form == "square":
            v = count * parts * e * e
            return v + math.sqrt(2 * math.log(1 / self.delta) * v)
        log = math.log(parts / self.delta)
        return parts * (e * math.sqrt(2 * count * log) + count * e * math.expm1(e))

    def step(self, total: float, count: int, parts: int = 1) -> float:
        """The largest epsilon of a step, nearly, at which `count` steps are claimed to cost at most `total`."""
        low, high = 0.0, 1.0
        while self.total(count, high, parts) <= total:
            low, high = high, 2 * high
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if self.total(count, middle, parts) <= total else (low, middle)
        return low

    def check_room(self, limit: float, count: int, epsilon: float, parts: int = 1) -> None:
        """End a run whose claim may exceed its total after the next step."""
        if self.total(count, epsilon, parts) > limit:
            raise BudgetExceeded(f"one more step would be claimed to cost more than the total of {limit:g}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedLearned(FitResult):
    """What a published run hands over beside its graph.

    `claimed` is what the run *spent* by its authors' count, `nominal` the total that it was given (None
    where it is given an epsilon a step). `counted` are tests in the authors' unit: deletions for PC, the
    sum of running counts for CURATE, answers for the others; `answered` are all answers that tests got.
    `arcs` is the graph as the authors' code draws it, what their F1 is computed from: a line is two arcs, and
    arrows may close a cycle. `graph` is our CPDAG from the same separating sets.
    """

    nominal: float | None = None
    counted: int = 0
    answered: int = 0
    arcs: frozenset[Arrow] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class CurateReading:
    """A reading of CURATE's Algorithm 1; the defaults are the most literal one.

    `pairs`: 'once', each pair on each set once; 'ordered', (a, b) and (b, a) both asked.
    `style`: neighbours as they are now ('sequential') or as the order began ('stable', of pairs asked once).
    `stop`: before an order that has nothing to spend ('spent'), after one that passed the total
    ('overspent'), or 'never'.
    `charge`: 'all' answers, or those 'acted' on (deletions and the grey zone).
    `count`: of charged answers in each 'order', or 'running' on over orders.
    `coin`: in the grey zone, 'fair' or always 'keep' (the script seeds it alike each time).
    `margins`: Lemma 1 with beta1 and beta2 ('both'), or beta1 in both errors ('first').
    `allocation`: of what is left by 'opt', 'uniform' (one epsilon for every test that the bounds t_j allow),
    or all on the 'first' order to come; `plan`: made for 'each order' from the edges left, or 'once' at the start.
    `edges`: in the bounds t_j, the 'current' ones or the 'initial' ones.
    `variables`: the d of OPT after order 0 if it is not the table's; the script has 5 for Survey's 6.
    `orders`: 'all' up to d - 2, or at most floor(log2 n) - 5 ('script').
    `test`: whose p-value; the paper states a sensitivity for Kendall's alone, so the others get the same noise.
    `bound`: the sensitivity as printed or as coded; `smallest`: appendix B's n_i, the fewest rows of a block, in
    the printed one; `size`: its n, the 'sample' or the whole 'table'.
    `draw`: of the sub-sample, once for a 'run' or for each 'test'.
    `amplified`: epsilon after sub-sampling in noise, OPT and claim ('everywhere', the script) or 'nowhere'.
    `empty`: whether the order after the last test is 'charged' or 'free'.
    `delta`, `delta_prime`, `delta_total` are the paper's, `c` stands for c1 and c2 of Lemma 1.
    """

    pairs: Literal["once", "ordered"] = "once"
    style: Style = "sequential"
    stop: Literal["spent", "overspent", "never"] = "spent"
    charge: Literal["all", "acted"] = "all"
    count: Literal["order", "running"] = "order"
    coin: Literal["fair", "keep"] = "fair"
    margins: Literal["both", "first"] = "both"
    allocation: Literal["opt", "uniform", "first"] = "opt"
    plan: Literal["each order", "once"] = "each order"
    edges: Literal["current", "initial"] = "current"
    variables: int | None = None
    orders: Literal["all", "script"] = "all"
    test: PaperTest = "kendall"
    bound: StatedBound = "curate-printed"
    smallest: int = SMALLEST
    size: Literal["sample", "table"] = "sample"
    draw: Literal["run", "test"] = "run"
    amplified: Literal["everywhere", "nowhere"] = "nowhere"
    empty: Literal["free", "charged"] = "free"
    delta_prime: float = 1e-12
    delta: float = 1e-14
    delta_total: float = 1e-10
    c: float = 1.0

    def __post_init__(self) -> None:
        for name, hint in get_type_hints(CurateReading).items():
            if choices := tuple(c for c in get_args(hint) if isinstance(c, str)):
                check_choice(name, getattr(self, name), choices)
        if self.pairs == "ordered" and self.style == "stable":
            raise QueryError("style='stable' has no effect on ordered pairs: their loop cuts an edge at once")
        if self.plan == "once" and self.allocation == "first":
            raise QueryError("plan='once' has no effect where the first order gets everything: leave it out")
        if self.smallest != SMALLEST and self.bound != "curate-printed":
            raise QueryError("smallest is appendix B's n_i: it has no effect on another bound than 'curate-printed'")
        if self.variables is not None and self.variables < 2:
            raise QueryError(f"variables is OPT's number of columns, at least 2, got {self.variables!r}")

    @classmethod
    def printed(cls) -> CurateReading:
        """Algorithm 1 as printed; docs/paper.md lists what it leaves open."""
        return cls()

    @classmethod
    def script(cls, *, variables: int | None = None) -> CurateReading:
        """The authors' script; give variables=5 for Survey, as it does."""
        return cls(
            pairs="ordered", stop="overspent", charge="acted", count="running", coin="keep", margins="first",
            edges="initial", variables=variables, orders="script", bound="curate-code", amplified="everywhere",
            empty="charged", delta_prime=1e-14,
        )  # fmt: skip


_PRINTED, _SCRIPT = CurateReading.printed(), CurateReading.script()

READINGS: Mapping[str, CurateReading] = {
    "printed": _PRINTED,
    "printed, script's sensitivity": replace(_PRINTED, bound="curate-code"),
    "printed, not stopped": replace(_PRINTED, stop="overspent"),
    "printed, ordered pairs": replace(_PRINTED, pairs="ordered", stop="overspent"),
    "script, count per order": replace(_SCRIPT, count="order", edges="current"),
    "script": _SCRIPT,
}
"""Readings of Algorithm 1 between the text and the script, the most literal first."""

ALLOCATIONS: Mapping[str, CurateReading] = {
    "OPT": _PRINTED,
    "OPT, planned once": replace(_PRINTED, plan="once"),
    "uniform": replace(_PRINTED, allocation="uniform"),
    "uniform, planned once": replace(_PRINTED, allocation="uniform", plan="once"),
    "order 0 only": replace(_PRINTED, allocation="first"),
    "the script's OPT": replace(_PRINTED, edges="initial", margins="first"),
}
"""Algorithm 1 as printed with other allocations, and nothing else changed: what adaptivity brings."""

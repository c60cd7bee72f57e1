"""The audit: frequencies on two tables, a lower bound with its confidence, what it is held against, and its power."""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass, replace

from dpcurate._typing import FloatArray
from dpcurate.accounting import DELTA, Budget
from dpcurate.audit import pairs
from dpcurate.audit.bounds import LowerBound, hits_bound, lower_bound
from dpcurate.audit.bounds import power as power_of
from dpcurate.audit.examples import worst_pair
from dpcurate.audit.pairs import Pair
from dpcurate.audit.targets import (
    Control,
    Limit,
    OpenedGate,
    Sampled,
    Script,
    Target,
    of_choice,
    of_gate,
    of_method,
    of_quantile,
    of_release,
    of_sampled,
    of_script,
    of_shared,
)
from dpcurate.errors import PowerWarning, QueryError
from dpcurate.learn.methods import Method, entry_of, get
from dpcurate.queries import Choose, GaussianShare, Quantile, Release
from dpcurate.schema import Neighbours

WEAK = 0.7
"""The power of an audit is its chance to accuse the same mechanism with this much of its noise."""
ENOUGH = 0.5
"""An audit of less power says little when it accuses nobody."""
PILOT, FEWEST = 4, 100
"""A forecast takes a quarter of the runs, and at least so many."""
CONFIDENCE = 0.9999
DEFAULT = Budget(epsilon=20.0, delta=DELTA)
"""What a method may spend unless told: at a small epsilon no number of runs that fits into a day has power."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A lower bound in one currency beside what was charged, or claimed where nothing is proved."""

    limit: Limit
    found: LowerBound

    @property
    def exceeded(self) -> bool:
        """Whether more was found than is promised."""
        return self.found.lower > self.limit.value

    def __str__(self) -> str:
        word = "charged" if self.limit.proved else "claimed"
        name, f = self.limit.currency, self.found
        return (
            f"{name} is at least {f.lower:.4g}; {word}: {self.limit.value:.4g}. "
            f"Event: {f.event}, frequency {f.favoured:.4g} on one table and {f.other:.4g} on the other"
        )


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit found. `confidence` is that of all its bounds together.

    `power` is the chance that such an audit accuses the same mechanism with 0.7 of its noise, as forecast
    (None: not forecast). `secure` says whether the noise came from the secure source or a seeded stream.
    """

    subject: str
    pair: str
    neighbours: str
    runs: int
    confidence: float
    bounds: tuple[Bound, ...]
    power: float | None = None
    secure: bool = False

    @property
    def accused(self) -> bool:
        """Whether any bound was exceeded."""
        return any(b.exceeded for b in self.bounds)

    @property
    def lower(self) -> float:
        """The least that the mechanism can have, by the first bound."""
        return self.bounds[0].found.lower

    def __str__(self) -> str:
        verdict = "ACCUSED: more was learnt than was charged or claimed" if self.accused else "not accused"
        noise = "secure noise" if self.secure else "seeded noise"
        lines = [
            f"{self.subject}: {verdict}",
            f"  tables ({self.neighbours}): {self.pair}",
            f"  {self.runs} runs on each table ({noise}), confidence {100 * self.confidence:g} %",
            *(f"  {bound}" for bound in self.bounds),
        ]
        if self.power is not None:
            lines.append(f"  {power_sentence(self.power)}")
        return "\n".join(lines)


def power_sentence(power: float) -> str:
    """What a forecast means, in a line."""
    said = f"power: with {WEAK:g} of the noise, {power:.0%} of such audits would accuse"
    if power >= ENOUGH:
        return said
    return f"{said}. WARNING: this audit has too little power, so no accusation means little: use more runs or epsilon"


Audited = Release | Choose | Quantile | OpenedGate | Sampled | Script | Control | Method | str


def audit(
    subject: Audited,
    *,
    pair: Pair | None = None,
    budget: Budget = DEFAULT,
    runs: int = 4_000,
    confidence: float = CONFIDENCE,
    seed: int | None = 0,
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    power: float | None = None,
) -> Audit:
    """Run a query, a gate, a method (or its name) or a negative control many times on two neighbouring tables.

    `pair` is a pair of neighbouring tables, the built-in worst one unless given. `budget` is what a method may
    spend in each run. `runs` is the number of runs on each table, half of which choose the event. `seed=None` draws
    from the secure source. `power` is a forecast that was made before; otherwise one is made, and an audit
    with too little power gives a `PowerWarning`.
    """
    _check(runs, confidence)
    if isinstance(subject, Control):
        return _control(subject, runs, confidence, seed or 0)
    target = target_of(subject, pair, budget, Neighbours.of(neighbours))
    if power is None:
        power = _forecast(target, runs, confidence, seed)
        if power < ENOUGH:
            warnings.warn(power_sentence(power), PowerWarning, stacklevel=2)
    return replace(measure(target, runs, confidence, seed), power=power)


def forecast(
    subject: Audited,
    *,
    pair: Pair | None = None,
    budget: Budget = DEFAULT,
    runs: int = 4_000,
    confidence: float = CONFIDENCE,
    seed: int | None = 0,
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
) -> float:
    """The power of an audit before it is made: its chance to accuse the same mechanism with 0.7 of its noise.

    It takes a quarter of the runs. Negative controls need no forecast: they are accused or not.
    """
    _check(runs, confidence)
    return _forecast(target_of(subject, pair, budget, Neighbours.of(neighbours)), runs, confidence, seed)


def _check(runs: int, confidence: float) -> None:
    if not 0 < confidence < 1:
        raise QueryError(f"confidence lies between 0 and 1, got {confidence!r}")
    if runs < 10:
        raise QueryError(f"an audit needs at least 10 runs on each table, got {runs}")


def _forecast(target: Target, runs: int, confidence: float, seed: int | None) -> float:
    pilot = min(runs, max(FEWEST, runs // PILOT))
    scores = target.run(pilot, None if seed is None else seed + 1, WEAK)
    error = _error_each(target, scores, confidence)
    return max(
        power_of(first, second, runs, limit.currency, limit.value, error=error, delta=target.delta)
        for limit in target.limits
        for first, second in scores
    )


def measure(target: Target, runs: int, confidence: float, seed: int | None, noise: float = 1.0) -> Audit:
    """An audit without a forecast; `noise` below 1 makes the mechanism draw less than it is charged for."""
    bounds = bounds_of(target, target.run(runs, seed, noise), confidence)
    return Audit(target.name, target.pair, target.neighbours, runs, confidence, bounds, secure=seed is None)


def audit_published(
    method: str, *, confidence: float = CONFIDENCE, seed: int = 0, scale: float = 1.0
) -> tuple[Audit, ...]:
    """The negative controls of a method's published variant, with `scale` times their usual number of runs."""
    from dpcurate.audit.controls import published

    return tuple(_control(c, max(10, int(c.runs * scale)), confidence, seed) for c in published(method))


def bounds_of(target: Target, scores: FloatArray, confidence: float) -> tuple[Bound, ...]:
    """A bound for every currency, the best of all views; all of them share the error."""
    error = _error_each(target, scores, confidence)
    return tuple(Bound(limit, _best(limit, scores, error, target.delta)) for limit in target.limits)


def _error_each(target: Target, scores: FloatArray, confidence: float) -> float:
    return (1 - confidence) / (len(target.limits) * len(scores))


def _best(limit: Limit, scores: FloatArray, error: float, delta: float) -> LowerBound:
    each = [lower_bound(first, second, limit.currency, error=error, delta=delta) for first, second in scores]
    shared = [replace(found, event=f"shared noise, {found.event}") for found in each[1:]]
    return max([each[0], *shared], key=lambda found: found.lower)


def _control(control: Control, runs: int, confidence: float, seed: int) -> Audit:
    first, second = control.hits(runs, seed)
    found = hits_bound(second, first, runs, control.event, error=1 - confidence, delta=control.delta)
    bound = Bound(Limit("epsilon", control.claimed, proved=False), found)
    return Audit(control.name, control.pair, "add-remove", runs, confidence, (bound,))


def target_of(subject: Audited, pair: Pair | None, budget: Budget, relation: Neighbours) -> Target:
    """How to run something on its pair of tables, and what it may cost."""
    if isinstance(subject, Release):
        chosen = pair or worst_pair(subject.statistic, relation)
        if isinstance(subject.noise, GaussianShare):
            return of_shared(subject, subject.noise, chosen)
        return of_release(subject, chosen)
    if isinstance(subject, Choose):
        return of_choice(subject, pair or worst_pair(subject.candidates[0].statistic, relation))
    if isinstance(subject, Quantile):
        return of_quantile(subject, pair or pairs.quarters(relation))
    if isinstance(subject, OpenedGate):
        return of_gate(subject, pair or worst_pair(subject.scores[0].statistic, relation))
    if isinstance(subject, Sampled):
        return of_sampled(subject, pair or worst_pair(subject.release.statistic, relation))
    if isinstance(subject, Script):
        chosen = pair or method_pair(subject.method, relation)
        return of_script(type(subject.method).__name__, subject, chosen, budget)
    assert not isinstance(subject, Control)
    return _of_method(subject, pair, budget, relation)


def _of_method(subject: Method | str, pair: Pair | None, budget: Budget, relation: Neighbours) -> Target:
    method = get(subject)
    if _is_published(method):
        raise QueryError("a published variant states no cost: audit its parts with audit_published()")
    name = subject if isinstance(subject, str) else type(method).__name__
    return of_method(name, method, pair or method_pair(method, relation), budget)


def _is_published(method: Method) -> bool:
    """Whether a recipe is a paper's and states no proved cost; while none is loaded there is none."""
    if "dpcurate.published" not in sys.modules:
        return False
    from dpcurate.audit.controls import is_published

    return is_published(method)


def all_controls() -> tuple[Control, ...]:
    """Every negative control; this loads the published mechanisms, which are NOT PRIVATE."""
    from dpcurate.audit import controls

    return controls.all_controls()


def method_pair(method: Method, relation: Neighbours) -> Pair:
    """The neighbouring tables on which a method is audited."""
    entry = entry_of(method)
    numbers = entry is not None and entry.columns == "numbers"
    return pairs.many(relation) if numbers else pairs.three_tests(relation)

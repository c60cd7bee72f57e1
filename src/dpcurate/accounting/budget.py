"""Budgets, costs, charged events and the privacy statement of a run.

Nothing here sees a row. The filter that decides is in `private/ledger/filter.py`.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from dpcurate._messages import shown
from dpcurate.accounting.conversions import epsilon_of, rho_of
from dpcurate.errors import BudgetError, PrivacyWarning

if TYPE_CHECKING:  # it imports NumPy, which a command's help need not wait for
    from dpcurate._validation import Number

DELTA = 1e-10
"""The delta of a budget that names none."""
NEGLIGIBLE = 1e-6
"""A smaller part of a budget buys nothing but noise."""
SMALLEST_DELTA = 1e-300
"""Below it floating point has too few digits for the conversion from delta to be safe."""


def _positive(name: str, value: float) -> None:
    number = isinstance(value, (int, float, Fraction)) and not isinstance(value, bool)
    if not number or not (1e-100 < value < 1e100 or value == math.inf):
        raise BudgetError(
            f"{name} must be a number greater than 0 (from 1e-100 to 1e100, or infinite), got {shown(value)}; "
            "small values mean more privacy"
        )


def _check_delta(delta: float) -> None:
    number = isinstance(delta, (int, float)) and not isinstance(delta, bool)
    if not number or not (delta == 0 or SMALLEST_DELTA <= delta < 1):
        raise BudgetError(
            f"delta must be at least 0 and below 1, and not between 0 and {SMALLEST_DELTA:g}, got {shown(delta)}; "
            "1e-10 is a common choice"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The most that may ever be learnt about one unit of a table.

    `Budget(epsilon=, delta=)` with 0 < delta < 1 is kept in rho-zCDP by the tight conversion,
    `Budget(epsilon=, delta=0)` is kept in pure epsilon, `Budget(rho=)` is zCDP as given (its delta
    is only used to print an epsilon). `Budget.unlimited()` protects nobody.
    """

    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None
    pure: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        if (self.epsilon is None) == (self.rho is None):
            raise BudgetError("give either epsilon= with delta=, or rho=, not both and not neither")
        if self.delta is not None:
            _check_delta(self.delta)
        if self.rho is not None:
            _positive("rho", self.rho)
            object.__setattr__(self, "delta", self.delta or DELTA)
            object.__setattr__(self, "epsilon", epsilon_of(rho=float(self.rho), delta=float(self.delta or DELTA)))
            return
        assert self.epsilon is not None
        _positive("epsilon", self.epsilon)
        if self.delta is None:
            raise BudgetError("epsilon= needs delta=: 0 for a pure guarantee, or a small number such as 1e-10")
        object.__setattr__(self, "pure", self.delta == 0)
        rho = self.epsilon**2 / 2 if self.delta == 0 else rho_of(epsilon=self.epsilon, delta=self.delta)
        object.__setattr__(self, "rho", rho)

    @classmethod
    def unlimited(cls) -> Budget:
        """No limit and no protection, for exact runs on public data."""
        return cls(rho=math.inf)

    @classmethod
    def from_numbers(cls, epsilon: float, delta: float, rho: float) -> Budget:
        """A budget as it was written down. Converting again could differ in the last bit on another machine."""
        if delta == 0:
            return cls(epsilon=epsilon, delta=0)
        budget = cls(rho=rho, delta=delta)
        object.__setattr__(budget, "epsilon", epsilon)
        return budget

    @property
    def ceiling(self) -> float:
        """The total in the currency the filter counts in."""
        total = self.epsilon if self.pure else self.rho
        assert total is not None
        return total

    @property
    def currency(self) -> str:
        """'epsilon' for a pure budget, 'rho' otherwise."""
        return "epsilon" if self.pure else "rho"

    def with_ceiling(self, amount: float) -> Budget:
        """A budget of this amount in the same currency, at the same delta."""
        return Budget(epsilon=amount, delta=0) if self.pure else Budget(rho=amount, delta=self.delta)

    def as_epsilon(self, amount: float) -> float:
        """The epsilon, by itself, of an amount in the budget's currency."""
        if self.pure or not amount:
            return amount
        return epsilon_of(rho=amount, delta=float(self.delta or DELTA))

    def is_negligible(self, amount: float) -> bool:
        """Whether this amount, in the budget's currency, buys nothing but noise, which would look like a result."""
        return math.isfinite(self.ceiling) and amount <= NEGLIGIBLE * float(self.ceiling)

    def __str__(self) -> str:
        if math.isinf(self.ceiling):
            return "unlimited (NOT PRIVATE)"
        if self.pure:
            return f"epsilon = {float(self.ceiling):.6g}, delta = 0"
        return f"epsilon = {float(self.epsilon or 0):.6g}, delta = {self.delta:.3g} (rho = {float(self.ceiling):.6g})"


@dataclass(frozen=True, slots=True)
class Cost:
    """What one release costs, in both currencies; infinite where there is no guarantee."""

    epsilon: Number
    rho: Number

    @classmethod
    def pure(cls, epsilon: Fraction) -> Cost:
        """A pure epsilon-DP step: epsilon^2/2-zCDP (Bun and Steinke 2016, Prop. 1.4)."""
        return cls(epsilon, epsilon * epsilon / 2)

    @classmethod
    def bounded_range(cls, epsilon: Fraction) -> Cost:
        """An epsilon-bounded-range step: epsilon^2/8-zCDP (Cesar and Rogers 2021)."""
        return cls(epsilon, epsilon * epsilon / 8)

    @classmethod
    def concentrated(cls, rho: Fraction) -> Cost:
        """A rho-zCDP step with no pure guarantee."""
        return cls(math.inf, rho)

    @classmethod
    def infinite(cls) -> Cost:
        """No guarantee at all."""
        return cls(math.inf, math.inf)

    def within(self, budget: Budget) -> Number:
        """The cost in the budget's currency."""
        return self.epsilon if budget.pure else self.rho


@dataclass(frozen=True, slots=True)
class Event:
    """One charged step: what was done and what it costs, apart from any accountant.

    `noise` is the noise multiplier (scale over sensitivity) of Gaussian and Laplace noise.
    `claimed` is the epsilon an unproved method's authors would report for the step.
    """

    mechanism: str
    about: str
    cost: Cost
    noise: float | None = None
    claimed: float | None = None

    @property
    def private(self) -> bool:
        """Whether the step has a finite proved cost."""
        return not math.isinf(self.cost.rho)


NOT_PRIVATE = "NOT PRIVATE: exact, unproved or seeded releases took part"


@dataclass(frozen=True, slots=True)
class SitePrivacy:
    """The promise of one of several sites, and the name of its ledger."""

    name: str
    ledger: str
    privacy: Privacy


@dataclass(frozen=True, slots=True)
class SharedNoise:
    """What the promises of sites that share noise rely on, beside each site's own ledger."""

    sites: int
    colluding: int
    sites_per_person: int

    def __str__(self) -> str:
        few = "1 site colludes" if self.colluding == 1 else f"{self.colluding} sites collude"
        where = "1 site" if self.sites_per_person == 1 else f"{self.sites_per_person} sites"
        return (
            f"noise shared by {self.sites} sites: the promises hold if at most {few} with whoever sees the answers, "
            f"for persons with rows at {where}, and against whoever cannot break X25519, HKDF-SHA256 and ChaCha20"
        )


@dataclass(frozen=True, slots=True, repr=False)
class Privacy:
    """What a run cost, in public words: the ceiling is the guarantee, `spent` is bookkeeping.

    `spent` is what all runs of the ledger have spent, `run` what this one has, in the budget's currency.
    """

    budget: Budget
    neighbours: str
    unit: str
    spent: float
    events: tuple[Event, ...]
    private: bool
    run: float | None = None
    sites: tuple[SitePrivacy, ...] = ()
    """Every site's own promise, where several answered together; then the rest is that of the weakest."""
    shared: SharedNoise | None = None
    """What sites that share noise rely on."""

    @property
    def delta(self) -> float:
        """The delta every epsilon here goes with."""
        return float(self.budget.delta or 0.0)

    @property
    def rho(self) -> float:
        """Spent so far in zCDP; infinite where there is no guarantee."""
        return float(sum(e.cost.rho for e in self.events)) if self.private else math.inf

    @property
    def epsilon(self) -> float:
        """Spent so far as an epsilon at `delta`; infinite where there is no guarantee."""
        return self._epsilon(self.spent)

    @property
    def run_epsilon(self) -> float | None:
        """What this run alone spent, as an epsilon at `delta`; None if nobody counted."""
        return None if self.run is None else self._epsilon(self.run)

    def _epsilon(self, amount: float) -> float:
        if not self.private:
            return math.inf
        if self.budget.pure:
            return amount
        epsilon = epsilon_of(rho=amount, delta=self.delta)
        # What the ceiling allows costs no more than the ceiling does, whatever the last digit of the conversion says.
        return min(epsilon, float(self.budget.epsilon or 0.0)) if amount <= self.budget.ceiling else epsilon

    def since(self, earlier: Privacy) -> Privacy:
        """The same, of which the run has spent only what was spent after the earlier statement."""
        sites = tuple(
            replace(one, privacy=one.privacy.since(before.privacy))
            for one, before in zip(self.sites, earlier.sites, strict=bool(self.sites))
        )
        return replace(self, run=None if self.run is None else self.run - (earlier.run or 0.0), sites=sites)

    def together(self, most: int | None = None) -> float:
        """The epsilon of a person with rows at `most` of the sites (all, if not given): their promises add up.

        A release with shared noise moves m times as far by a person at m sites, so it costs m^2 times as much; it is
        charged at each of them, and was charged for `sites_per_person` of them.
        """
        budgets = sorted((one.privacy.budget for one in self.sites), key=lambda b: -float(b.ceiling))[:most]
        total = math.fsum(float(budget.ceiling) for budget in budgets)
        if self.shared is not None and budgets:
            times = max(1.0, (len(budgets) / self.shared.sites_per_person) ** 2)
            total += max(0.0, times - len(budgets)) * float(budgets[-1].ceiling)
        delta = max((float(budget.delta or 0) for budget in budgets), default=0.0)
        return total if self.budget.pure or not total else epsilon_of(rho=total, delta=delta)

    @property
    def lines(self) -> tuple[str, ...]:
        """The statement, and that of each site."""
        if not self.sites:
            return (str(self),)
        each = (f"  {one.name}: {one.privacy}; ledger: {one.ledger}" for one in self.sites)
        more = f"a person with rows at every one of these sites: epsilon = {self.together():.4g} at most"
        shared = () if self.shared is None else (f"  {self.shared}",)
        return str(self), *each, *shared, f"  {more}" if self.private else f"  {NOT_PRIVATE}"

    def __str__(self) -> str:
        if not self.private:
            return NOT_PRIVATE
        step = self.neighbours.replace("add-remove", "add/remove")
        said = f"{self.budget} ({step} {self.unit}; {self._shares()})"
        return (
            f"{len(self.sites)} sites, each with a promise and a ledger of its own; the weakest: {said}"
            if self.sites
            else said
        )

    @property
    def in_short(self) -> str:
        """The statement without its conversion to zCDP, for the head of a page."""
        return re.sub(r" \(rho = [^)]*\)", "", str(self))

    def __repr__(self) -> str:
        return f"Privacy({self})"

    def _shares(self) -> str:
        total, run, most = f"{self.epsilon:.4g}", self.run_epsilon, float(self.budget.epsilon or 0.0)
        mine = total if run is None else f"{run:.4g}"
        return f"spent {'' if mine == total else f'{mine} in this run, '}{total} of {most:.4g}"


# --- cautions -------------------------------------------------------------------------------------------


LARGE_EPSILON = 10
LIBRARY_CALL = 3
"""Levels of the stack from here to whoever called `discover` or `ask`."""


def cautions(budget: Budget, rows: int | None) -> tuple[str, ...]:
    """What to know of this budget for a table of so many rows, if the number is public."""
    epsilon, delta = float(budget.epsilon or 0), float(budget.delta or 0)
    said = []
    if LARGE_EPSILON < epsilon < math.inf:
        said.append(
            f"epsilon = {epsilon:.4g} is a weak promise: what anyone concludes about a person may become up to "
            f"exp({epsilon:.4g}) times as likely because of that person's data. Most releases use 1 or less"
        )
    if rows is not None and delta * rows > 1:
        said.append(
            f"delta = {delta:.3g} is above 1 / rows, which is {1 / rows:.3g} for {rows:,} rows: it would allow a "
            "release that publishes somebody's row outright. Choose a delta far below it, such as the default, 1e-10"
        )
    return tuple(said)


def warn(said: Iterable[str]) -> None:
    """Cautions as warnings, for callers of the library."""
    for caution in said:
        warnings.warn(caution, PrivacyWarning, stacklevel=LIBRARY_CALL)

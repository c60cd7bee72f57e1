"""The door's whole vocabulary: what may be asked of a curator, and what comes back.

A request names a statistic and a release. It is a frozen value without callables, so nothing of
the analyst's ever runs inside the room.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from dpcurate.budget import Privacy
from dpcurate.errors import RequestError
from dpcurate.schema import Neighbours, Schema

Array = NDArray[np.float64]
TINY, HUGE = 1e-100, 1e100
"""Numbers outside these would lose their meaning in floating point."""
MOST_CELLS = 10_000_000
"""The largest table that is built; learners leave out tests that would need a larger one."""


def _names(*names: str) -> None:
    if not all(isinstance(n, str) for n in names):
        raise RequestError(f"columns are named by text, got {names!r}")
    if len(set(names)) < len(names):
        repeated = sorted({n for n in names if names.count(n) > 1})
        raise RequestError(f"the column(s) {', '.join(map(repr, repeated))} stand more than once in one statistic")


def _columns(given: object) -> tuple[str, ...]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise RequestError(f"columns come as a tuple of names, got {given!r}")
    return tuple(given)


def _sets(given: object) -> Iterable[object]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise RequestError(f"sets of columns come as a tuple of tuples of names, got {given!r}")
    return given


def _number(value: object) -> bool:
    return isinstance(value, (int, float, Fraction)) and not isinstance(value, bool)


def _positive(name: str, value: Any) -> None:
    if not _number(value) or not TINY < value < HUGE:
        raise RequestError(f"{name} must be a finite number greater than 0, got {value!r}")


def _clip(value: Any) -> None:
    if not _number(value) or not 1e-9 <= value <= 1e9:  # squares of a row's entries must not underflow
        raise RequestError(f"clip must be a number between 1e-9 and 1e9, got {value!r}")


# --- statistics: what is computed from the rows -------------------------------------------------


@dataclass(frozen=True, slots=True)
class Counts:
    """How many rows hold each combination of levels, over the full public domain."""

    columns: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", _columns(self.columns))
        _names(*self.columns)


@dataclass(frozen=True, slots=True)
class Tables:
    """The counts of each of many sets of columns, in one request: a part for each set, axes in its order.

    The empty set is the row count.
    """

    sets: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "sets", tuple(map(_columns, _sets(self.sets))))
        if not self.sets:
            raise RequestError("tables need at least one set of columns")
        for one in self.sets:
            _names(*one)
        if len(set(map(frozenset, self.sets))) < len(self.sets):
            raise RequestError("a set of columns stands more than once; ask for it once")


@dataclass(frozen=True, slots=True)
class Contrasts:
    """For each set of columns the sum over rows of the product of centred indicators e_x - 1/r.

    The empty set is the row count. `weights` (1 each when not given) shift noise between sets:
    a set of weight w gets noise of scale sigma / w.
    """

    sets: tuple[tuple[str, ...], ...]
    weights: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "sets", tuple(_columns(s) for s in self.sets))
        object.__setattr__(self, "weights", tuple(self.weights) or (1.0,) * len(self.sets))
        if not self.sets:
            raise RequestError("contrasts need at least one set of columns")
        if len(self.weights) != len(self.sets):
            raise RequestError(f"{len(self.sets)} sets need as many weights, got {len(self.weights)}")
        for one in self.sets:
            _names(*one)
        if len({frozenset(s) for s in self.sets}) < len(self.sets):
            raise RequestError("a set of columns stands more than once; ask for it once with a larger weight")
        for weight in self.weights:
            _positive("a weight", weight)


@dataclass(frozen=True, slots=True)
class Moments:
    """The sum over rows of y y^T, y = (1, x), each column scaled to [-1, 1] by its public bounds.

    With `clip`, rows are first shrunk to Euclidean norm `clip`.
    """

    columns: tuple[str, ...]
    clip: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", _columns(self.columns))
        _names(*self.columns)
        if not self.columns:
            raise RequestError("moments need at least one column")
        if self.clip is not None:
            _clip(self.clip)


def _matrix(columns: tuple[str, ...], weights: Any) -> tuple[tuple[float, ...], ...]:
    """The weights of a gradient as a square tuple of rows of moderate numbers."""
    try:
        found = tuple(tuple(float(w) for w in row) for row in weights)
    except (TypeError, ValueError):
        raise RequestError("the weights of a gradient are rows of numbers") from None
    d = len(columns)
    if d < 2:
        raise RequestError("a gradient needs at least two columns")
    if len(found) != d or any(len(row) != d for row in found):
        raise RequestError(f"a gradient over {d} columns needs a {d} x {d} matrix of weights")
    if not np.isfinite(np.array(found)).all() or np.abs(np.array(found)).max() > 1e6:
        raise RequestError("the weights of a gradient must be finite and at most a million in size")
    # So small a weight changes nothing, but its square would vanish, which some engines take for an error.
    return tuple(tuple(0.0 if abs(w) < TINY else w for w in row) for row in found)


@dataclass(frozen=True, slots=True)
class Gradient:
    """The sum over rows of the off-diagonal of -x (x - W^T x)^T, each row's matrix clipped.

    `weights` is W as a tuple of rows; `clip` bounds the Frobenius norm of every row's matrix.
    """

    columns: tuple[str, ...]
    weights: tuple[tuple[float, ...], ...]
    clip: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", _columns(self.columns))
        _names(*self.columns)
        _clip(self.clip)
        object.__setattr__(self, "weights", _matrix(self.columns, self.weights))


@dataclass(frozen=True, slots=True)
class GradientNorms:
    """How many rows have a gradient matrix whose norm falls between public edges, below and above them."""

    columns: tuple[str, ...]
    weights: tuple[tuple[float, ...], ...]
    edges: tuple[float, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", _columns(self.columns))
        _names(*self.columns)
        object.__setattr__(self, "weights", _matrix(self.columns, self.weights))
        edges = tuple(self.edges)
        object.__setattr__(self, "edges", edges)
        numbers = bool(edges) and all(_number(e) and 0 < e < HUGE for e in edges)
        if not numbers or list(edges) != sorted(set(edges)):
            raise RequestError(f"edges must be rising numbers above 0, got {self.edges!r}")


@dataclass(frozen=True, slots=True)
class Tau:
    """Kendall's association of x and y in the strata of `given`: the sum of 2 C_k / (n_k - 1)."""

    x: str
    y: str
    given: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "given", _columns(self.given))
        _names(self.x, self.y, *self.given)


@dataclass(frozen=True, slots=True)
class KendallP(Tau):
    """The p-value of Kendall's test with a proved sensitivity; needs the schema's public row count."""


@dataclass(frozen=True, slots=True)
class PublishedKendallP(Tau):
    """The p-value as the published systems compute it, with the sensitivity they state: NOT PROVED.

    `bound` is 'priv-pc', 'curate-printed' (the paper's formula) or 'curate-code'.
    """

    bound: Literal["priv-pc", "curate-printed", "curate-code"] = "curate-code"

    def __post_init__(self) -> None:
        Tau.__post_init__(self)
        if self.bound not in ("priv-pc", "curate-printed", "curate-code"):
            raise RequestError(f"bound must be 'priv-pc', 'curate-printed' or 'curate-code', got {self.bound!r}")


@dataclass(frozen=True, slots=True)
class PublishedFlips(Tau):
    """How many rows would have to go to change a G test's mind, as EM-PC's code counts: NOT PROVED."""

    level: float = 0.05

    def __post_init__(self) -> None:
        Tau.__post_init__(self)
        if not _number(self.level) or not 0 < self.level < 1:
            raise RequestError(f"a level lies between 0 and 1, got {self.level!r}")


Statistic = (
    Counts
    | Tables
    | Contrasts
    | Moments
    | Gradient
    | GradientNorms
    | Tau
    | KendallP
    | PublishedKendallP
    | PublishedFlips
)


# --- releases: how it may leave the room ----------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Laplace:
    """Discrete Laplace noise, by its scale or by the epsilon it is to cost."""

    epsilon: float | None = None
    scale: float | None = None

    def __post_init__(self) -> None:
        _one_of(epsilon=self.epsilon, scale=self.scale)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaussian:
    """Discrete Gaussian noise, by sigma, by the rho it is to cost, or by (epsilon, delta).

    The last is the analytic calibration of Balle and Wang 2018, equation (1) of the CURATE paper.
    """

    sigma: float | None = None
    rho: float | None = None
    epsilon: float | None = None
    delta: float | None = None

    def __post_init__(self) -> None:
        _one_of(sigma=self.sigma, rho=self.rho, epsilon=self.epsilon)
        if (self.epsilon is None) != (self.delta is None):
            raise RequestError("Gaussian noise by epsilon needs delta, and delta goes with epsilon only")
        if self.delta is not None and not (_number(self.delta) and 0 < self.delta < 1):
            raise RequestError(f"delta must lie between 0 and 1, got {self.delta!r}")


@dataclass(frozen=True, slots=True)
class Exact:
    """No noise: NOT PRIVATE, of infinite cost, for public data and for comparison."""


def _one_of(**choices: float | None) -> None:
    given = {name: value for name, value in choices.items() if value is not None}
    if len(given) != 1:
        raise RequestError(f"give exactly one of {', '.join(choices)}")
    for name, value in given.items():
        _positive(name, value)


Noise = Laplace | Gaussian | Exact


@dataclass(frozen=True, slots=True)
class Release:
    """Ask for a statistic with noise."""

    statistic: Statistic
    noise: Noise


@dataclass(frozen=True, slots=True)
class Score:
    """How far a scalar statistic lies beyond a public threshold, in units of its sensitivity.

    'above' is (abs(value) - threshold) / sensitivity, 'below' its negative: one row moves it by at
    most 1 whatever the statistic, so scores of different tests may be compared.
    """

    statistic: Tau
    threshold: float
    side: Literal["above", "below"]

    def __post_init__(self) -> None:
        if not isinstance(self.statistic, Tau):
            raise RequestError("a score needs a statistic that is one number: Tau, KendallP or PublishedKendallP")
        if not _number(self.threshold) or not abs(self.threshold) <= 1e12:
            raise RequestError(f"a threshold must be a finite number, got {self.threshold!r}")
        if self.side not in ("above", "below"):
            raise RequestError(f"side must be 'above' or 'below', got {self.side!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Choose:
    """Pick the candidate of (about) the highest score by the exponential mechanism.

    With `or_none` a further candidate of score 0, meaning none of them, takes part; its index is
    the number of candidates.
    """

    candidates: tuple[Score, ...]
    epsilon: float
    or_none: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "candidates", tuple(self.candidates))
        _positive("epsilon", self.epsilon)
        if not self.candidates:
            raise RequestError("choosing needs at least one candidate")
        if not isinstance(self.or_none, bool):
            raise RequestError(f"or_none must be True or False, got {self.or_none!r}")
        if any(not isinstance(c, Score) for c in self.candidates):
            raise RequestError("candidates are scores")


Request = Release | Choose


# --- gates: interactive mechanisms that keep a secret in the room ---------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class AboveThreshold:
    """A gate that tells of each score whether it is positive, until the first yes; then it closes."""

    epsilon: float

    def __post_init__(self) -> None:
        _positive("epsilon", self.epsilon)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A gate to a fresh secret Poisson sample of the rows.

    What is asked of the sample may cost `epsilon` altogether, in pure epsilon; the curator is
    charged the smaller, amplified epsilon at once, when the gate opens.
    """

    rate: float
    epsilon: float

    def __post_init__(self) -> None:
        _positive("epsilon", self.epsilon)
        if not _number(self.rate) or not 0 < self.rate <= 1:
            raise RequestError(f"a sampling rate lies above 0 and at most at 1, got {self.rate!r}")


# --- answers ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """A released statistic: its parts and the standard deviation of the noise in each.

    Tables and Contrasts have a part for each set of columns; every other statistic has one.
    """

    parts: tuple[Array, ...]
    scales: tuple[float, ...]

    @property
    def value(self) -> Array:
        """The only part."""
        (part,) = self.parts
        return part

    @property
    def scale(self) -> float:
        """The noise of the only part."""
        (scale,) = self.scales
        return scale

    def __float__(self) -> float:
        return float(self.value)


class ThresholdGate(Protocol):
    """An open above-threshold gate."""

    @property
    def closed(self) -> bool:
        """Whether it has said yes."""

    def ask(self, score: Score) -> bool:
        """Whether the score is (about) positive."""

    def first(self, scores: Sequence[Score]) -> int | None:
        """The index of the first score to which it says yes, which closes it; None if there is none."""


class SampleGate(Protocol):
    """An open gate to a secret sample."""

    def ask(self, request: Request) -> Any:
        """Ask of the sample."""

    def open(self, gate: AboveThreshold) -> ThresholdGate:
        """Open a gate on the sample."""


class Door(Protocol):
    """What a learner sees: public facts, and answers."""

    @property
    def schema(self) -> Schema:
        """The public description of the table."""

    @property
    def neighbours(self) -> Neighbours:
        """The relation the guarantee is about."""

    @property
    def remaining(self) -> float:
        """What is left of the budget, in its currency."""

    def ask(self, request: Request) -> Any:
        """An Answer to a Release, an index to a Choose."""

    def ask_all(self, requests: Sequence[Request]) -> list[Any]:
        """Answers to many requests, charged together and read in one pass where the source can."""

    def open(self, gate: AboveThreshold | Sample) -> Any:
        """Open an interactive gate."""

    def reserve(self, amount: float) -> AbstractContextManager[Any]:
        """Set aside budget for many small requests with one durable entry in the books."""

    def sensitivity(self, statistic: Statistic) -> float:
        """How far one unit can move a statistic (L1), from public facts."""

    def draw(self) -> float:
        """A fresh public random number in [0, 1), for decisions that need no secret."""

    def privacy(self) -> Privacy:
        """What has been spent on what, in public words."""

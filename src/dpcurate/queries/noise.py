"""How a statistic may leave the session."""

from __future__ import annotations

from dataclasses import dataclass

from dpcurate import _validation
from dpcurate._messages import shown
from dpcurate._validation import Number
from dpcurate.accounting import SMALLEST_DELTA
from dpcurate.errors import QueryError


@dataclass(frozen=True, slots=True, kw_only=True)
class Laplace:
    """Discrete Laplace noise, by its scale or by the epsilon it is to cost."""

    epsilon: float | None = None
    scale: float | None = None

    def __post_init__(self) -> None:
        _validation.keep(self, **_one_of(epsilon=self.epsilon, scale=self.scale))


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
        _validation.keep(self, **_one_of(sigma=self.sigma, rho=self.rho, epsilon=self.epsilon))
        if (self.epsilon is None) != (self.delta is None):
            raise QueryError("Gaussian noise by epsilon needs delta, and delta goes with epsilon only")
        if self.delta is not None:
            delta = _validation.between(0, self.delta, 1)
            if delta is None or delta < SMALLEST_DELTA:
                raise QueryError(
                    f"delta must lie between 0 and 1, got {shown(self.delta)}; the least is {SMALLEST_DELTA:g}"
                )
            _validation.keep(self, delta=delta)


@dataclass(frozen=True, slots=True)
class Exact:
    """No noise: NOT PRIVATE, of infinite cost, for public data and for comparison."""


def _one_of(**choices: float | None) -> dict[str, Number]:
    given = {name: value for name, value in choices.items() if value is not None}
    if len(given) != 1:
        raise QueryError(f"give exactly one of {', '.join(choices)}")
    return {name: _validation.positive(name, value) for name, value in given.items()}


Noise = Laplace | Gaussian | Exact

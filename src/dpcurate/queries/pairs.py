"""What tests of conditional independence ask for."""

from __future__ import annotations

from dataclasses import dataclass

from dpcurate import _validation


@dataclass(frozen=True, slots=True)
class PairStatistic:
    """One number about x and y in the strata of `given`: what a test of conditional independence asks for."""

    x: str
    y: str
    given: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        x, y, *given = _validation.names(
            self.x, self.y, *_validation.listed(self.given, "columns come as a tuple of names")
        )
        _validation.keep(self, x=x, y=y, given=tuple(given))


@dataclass(frozen=True, slots=True)
class Tau(PairStatistic):
    """Kendall's association of x and y in the strata of `given`: the sum of 2 C_k / (n_k - 1)."""


@dataclass(frozen=True, slots=True)
class KendallP(PairStatistic):
    """The p-value of Kendall's test with a proved sensitivity; needs the schema's public row count."""

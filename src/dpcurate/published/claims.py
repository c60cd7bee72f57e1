"""What the authors of the published systems claim to spend, and where the CURATE paper and its code differ."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from dpcurate.published.queries import StatedBound


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


@dataclass(frozen=True, slots=True)
class CurateReading:
    """Where the CURATE paper's text and its authors' code differ, each difference by its name.

    `charge` 'all' answers or only those 'acted' on (deletions and the grey zone); `count` of charged
    answers per 'order' or 'running' on over orders; `coin` 'fair' or always 'keep'; `edges` in OPT
    'current' or 'initial'; `tests` bounded as printed ('worst') or by degrees ('likely'); `start` of
    SLSQP; `stop` when the claimed leakage has passed the total, checked 'after' an order, or 'never';
    `empty` whether the order after the last test is charged too.
    """

    charge: Literal["all", "acted"] = "all"
    count: Literal["order", "running"] = "order"
    coin: Literal["fair", "keep"] = "fair"
    edges: Literal["current", "initial"] = "current"
    tests: Literal["worst", "likely"] = "worst"
    bound: StatedBound = "curate-printed"
    start: Literal["uniform", "zero"] = "zero"
    stop: Literal["after", "never"] = "after"
    delta_prime: float = 1e-12
    delta: float = 1e-14
    delta_total: float = 1e-10
    c: float = 1.0
    empty: bool = False

    @classmethod
    def code(cls) -> CurateReading:
        return cls("acted", "running", "keep", "initial", bound="curate-code", delta_prime=1e-14, empty=True)

    @classmethod
    def paper(cls) -> CurateReading:
        return cls()

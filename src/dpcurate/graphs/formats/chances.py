"""How sure an edge is, as files carry it: two numbers beside every edge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType

from dpcurate.errors import FormatError
from dpcurate.graphs.checks import Arrow
from dpcurate.wording import shown


@dataclass(frozen=True, slots=True)
class Chance:
    """Of an edge from a to b as it is written: P(linked), and P(a -> b | linked); None where unknown."""

    linked: float | None = None
    direction: float | None = None

    def turned(self) -> Chance:
        """The same, written from b to a."""
        return Chance(self.linked, None if self.direction is None else 1 - self.direction)

    def items(self) -> list[tuple[str, str]]:
        """The numbers that are known, by name, as text."""
        known = [("linked", self.linked), ("direction", self.direction)]
        return [(name, written(p)) for name, p in known if p is not None]

    @classmethod
    def of(cls, values: Mapping[str, object], line: int | None) -> Chance | None:
        """From what stands beside an edge in a file; None if neither number is there."""
        chance = cls(_number(values, "linked", line), _number(values, "direction", line))
        return None if chance == cls() else chance


Chances = Mapping[Arrow, Chance]
NO_CHANCES: Chances = MappingProxyType({})


def written(p: float) -> str:
    """All digits, and no exponent: not every format reads one."""
    return format(Decimal(repr(float(p))), "f")


def _number(values: Mapping[str, object], name: str, line: int | None) -> float | None:
    text = values.get(name)
    if text is None or text == "":
        return None
    try:
        p = float(text) if isinstance(text, (str, int, float)) else -1.0
    except (ValueError, OverflowError):
        p = -1.0
    if not 0 <= p <= 1:
        raise FormatError(f"{name} is a probability between 0 and 1, not {shown(text)}", line=line)
    return p

"""How sure an edge is, as files carry it: numbers beside every edge, and for each end of one in a PAG."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from types import MappingProxyType

from dpcurate._messages import shown
from dpcurate.errors import FormatError
from dpcurate.graphs.checks import Arrow

SURE = "linked", "direction"
AT_ENDS = "tail_from", "head_from", "tail_to", "head_to"
MEANING = "meaning"
EFFECT = "effect", "effect_low", "effect_high", "effect_in_words"


@dataclass(frozen=True, slots=True)
class Chance:
    """Of an edge from a to b as it is written: P(linked), and P(a -> b | linked); None where unknown.

    Of an edge of a PAG also the probabilities of a tail and of an arrowhead at a, and of each at b.
    """

    linked: float | None = None
    direction: float | None = None
    tail_from: float | None = None
    head_from: float | None = None
    tail_to: float | None = None
    head_to: float | None = None
    effect: tuple[tuple[str, str], ...] = field(default=(), compare=False, kw_only=True)
    """What setting a does to b, by the names of EFFECT, as text; for people, and not read again."""
    meaning: str = field(default="", compare=False, kw_only=True)
    """What the edge says, in words; for people, too."""

    def turned(self) -> Chance:
        """The same, written from b to a."""
        direction = None if self.direction is None else 1 - self.direction
        return Chance(self.linked, direction, self.tail_to, self.head_to, self.tail_from, self.head_from)

    def numbers(self) -> dict[str, float]:
        """Those that are known, by name."""
        known = {name: getattr(self, name) for name in (*SURE, *AT_ENDS)}
        return {name: p for name, p in known.items() if p is not None}

    def items(self) -> list[tuple[str, str]]:
        """The numbers that are known, by name, as text."""
        return [(name, written(p)) for name, p in self.numbers().items()]

    @classmethod
    def of(cls, values: Mapping[str, object], line: int | None) -> Chance | None:
        """From what stands beside an edge in a file; None if no number is there."""
        chance = cls(*(_number(values, name, line) for name in (*SURE, *AT_ENDS)))
        return None if chance == cls() else chance


Chances = Mapping[Arrow, Chance]
NO_CHANCES: Chances = MappingProxyType({})


def names_in(chances: Chances) -> tuple[str, ...]:
    """The names of the numbers that a file needs: none, those of edges, and those of their ends if any is known."""
    if not chances:
        return ()
    ends = any(chance.numbers().keys() & set(AT_ENDS) for chance in chances.values())
    return (*SURE, *AT_ENDS) if ends else SURE


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

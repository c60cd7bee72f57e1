"""What comes back."""

from __future__ import annotations

from dataclasses import dataclass

from dpcurate.arrays import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """A released statistic: its parts and the standard deviation of the noise in each.

    Tables and Contrasts have a part for each set of columns; every other statistic has one.
    """

    parts: tuple[FloatArray, ...]
    scales: tuple[float, ...]

    @property
    def value(self) -> FloatArray:
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

"""How far a result can be trusted, in a few sentences at its top: from released numbers alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dpcurate.learn.outcome import NoiseLevel
from dpcurate.learn.power import Power

Level = Literal["fine", "weak", "hopeless"]

HOPELESS = 0.3
"""A skeleton F1 expected below this is no result; `dpcurate discover` asks before it spends on one."""
WEAK = 0.7
NOTHING = 0.15
"""Below this F1 is where even the strongest links are hidden."""
CLEARLY = 3.0
"""Standard deviations of noise that make a difference clear."""
MOST_DROPPED = 0.5
"""Of the rows a schema declares; where fewer are seen, it is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a run could see, and what runs like it find on average.

    `effect` is the smallest correlation that would show with probability 1/2 (above 1: none). On tables of this
    shape about `found` of `edges` edges are found, with a skeleton F1 of `f1` (8 of 10 tables: `low` to `high`).
    """

    level: Level
    effect: float
    found: float
    edges: float
    f1: float
    low: float
    high: float
    sentences: tuple[str, ...]

    @property
    def title(self) -> str:
        """The level in words."""
        return {"fine": "A clear view", "weak": "A weak view", "hopeless": "MOSTLY NOISE"}[self.level]

    @property
    def lines(self) -> tuple[str, ...]:
        """For a terminal."""
        return f"{self.title}:", *(f"  {sentence}" for sentence in self.sentences)

    def __str__(self) -> str:
        return f"{self.title}: {' '.join(self.sentences)}"


def verdict_on(noise: NoiseLevel, *, columns: int, declared: int | None) -> Verdict:
    """The verdict on a run with this noise; `declared` is the row count in the schema, if there is one."""
    power = Power.of(variance=noise.variance, coordinates=noise.coordinates, columns=columns)
    empty = noise.rows < CLEARLY * noise.rows_noise
    few = declared is not None and noise.rows + CLEARLY * noise.rows_noise < MOST_DROPPED * declared
    level: Level = "hopeless" if empty or power.f1 < HOPELESS else "weak" if few or power.f1 < WEAK else "fine"
    said = [*_rows(noise, declared, empty=empty, few=few), *visible(power)]
    if level == "hopeless":
        said.append("Do not read the graph: it needs more rows, a larger epsilon or fewer columns.")
    low, high = power.range
    return Verdict(
        level=level,
        effect=power.effect,
        found=power.recall * power.edges,
        edges=power.edges,
        f1=power.f1,
        low=low,
        high=high,
        sentences=tuple(said),
    )


def visible(power: Power) -> tuple[str, str]:
    """What is seen and how much that tends to be, in words."""
    if power.effect >= 1:
        return (
            "Noise hides every link, even between columns that determine each other.",
            f"On tables of this shape such a run finds hardly any edges: skeleton F1 below {NOTHING:g}.",
        )
    low, high = power.range
    return (
        f"Links show from a correlation of about {power.effect:.2g} on; most weaker ones are missed.",
        f"On tables of this shape such a run finds about {power.recall:.0%} of the edges; "
        f"skeleton F1 about {power.f1:.2f} ({low:.2f} to {high:.2f} in 8 of 10 tables).",
    )


def _rows(noise: NoiseLevel, declared: int | None, *, empty: bool, few: bool) -> tuple[str, ...]:
    counted = f"The released row count is {noise.rows:,.0f}, with noise of {noise.rows_noise:,.0f}"
    if empty:
        return (
            f"{counted}: no different from none. Either epsilon is too small for this table, or it is empty or tiny, "
            "or the schema drops its rows, which `dpcurate schema check` tells the owner.",
        )
    if few:
        return (
            f"{counted}, far below the {declared:,} rows that the schema declares: it may drop most rows (levels it "
            "does not list, missing cells), which `dpcurate schema check` tells the owner.",
        )
    return ()

"""Words that have an order, as questionnaires use them."""

from __future__ import annotations

import re
from collections.abc import Sequence

SCALES = (
    ("none", "very low", "low", "medium low", "moderate", "medium", "middle", "medium high", "high", "very high"),
    ("never", "almost never", "rarely", "seldom", "sometimes", "occasionally", "often", "usually", "very often",
     "almost always", "always"),
    ("never", "yearly", "monthly", "weekly", "daily"),
    ("strongly disagree", "disagree", "somewhat disagree", "neither agree nor disagree", "neutral", "undecided",
     "somewhat agree", "agree", "strongly agree"),
    ("very dissatisfied", "dissatisfied", "neutral", "satisfied", "very satisfied"),
    ("very unlikely", "unlikely", "neutral", "likely", "very likely"),
    ("very poor", "poor", "very bad", "bad", "fair", "average", "good", "very good", "excellent"),
    ("none", "not at all", "a little", "slightly", "mild", "somewhat", "moderate", "moderately", "quite a bit",
     "severe", "very", "very much", "very severe", "extremely"),
    ("tiny", "xs", "small", "s", "medium", "m", "large", "l", "xl", "huge", "xxl"),
    ("none", "primary", "elementary", "secondary", "high school", "college", "bachelor", "master", "doctorate", "phd"),
    ("first", "second", "third", "fourth", "fifth"),
)  # fmt: skip
_NUMBER = r"\d+(?:[.,]\d+)?"
_BAND = re.compile(rf"(?:([<≤]|under|below|up to)\s*)?({_NUMBER})\s*(?:(?:-|–|to)\s*{_NUMBER}|\+|and over|or more)?")
_OPEN = re.compile(rf"(?:>|≥|over|above)\s*({_NUMBER})")


def in_order(levels: Sequence[str]) -> list[str] | None:
    """Three levels or more from low to high, if they are words of one scale or bands of a number such as 18-24."""
    words = {level.strip().lower(): level for level in levels}
    if len(words) < max(3, len(levels)):
        return None
    for scale in SCALES:
        if set(words) <= set(scale):
            return sorted(levels, key=lambda level: scale.index(level.strip().lower()))
    places = {level: _place(word) for word, level in words.items()}
    bands = [level for level, place in places.items() if place is not None]
    return sorted(levels, key=lambda level: places[level] or (0.0, 0)) if len(bands) == len(levels) else None


def _place(word: str) -> tuple[float, int] | None:
    """Where a band begins; one that is open below comes before one that begins there."""
    band, above = _BAND.fullmatch(word), _OPEN.fullmatch(word)
    if above:
        return float(above[1].replace(",", ".")), 1
    if band is None or word == band[2]:  # a bare number is no band
        return None
    return float(band[2].replace(",", ".")), -1 if band[1] else 0

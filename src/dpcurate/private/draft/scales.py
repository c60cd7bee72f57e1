"""Words that have an order, as questionnaires use them."""

from __future__ import annotations

import re
from collections.abc import Sequence

SCALES = (
    ("none", "very low", "low", "medium low", "moderate", "medium", "middle", "medium high", "high", "very high"),
    ("low", "lower", "lower middle", "medium", "middle", "upper middle", "high", "higher", "upper"),
    ("never", "almost never", "very rarely", "rarely", "seldom", "sometimes", "occasionally", "often", "frequently",
     "usually", "very often", "almost always", "always"),
    ("never", "yearly", "monthly", "weekly", "daily"),
    ("not at all", "several days", "more than half the days", "nearly every day"),
    ("strongly disagree", "disagree strongly", "disagree", "somewhat disagree", "disagree somewhat",
     "slightly disagree", "disagree slightly", "neither agree nor disagree", "neither", "neutral", "undecided",
     "slightly agree", "agree slightly", "somewhat agree", "agree somewhat", "agree", "strongly agree",
     "agree strongly"),
    ("very dissatisfied", "dissatisfied", "somewhat dissatisfied", "neutral", "somewhat satisfied", "satisfied",
     "very satisfied", "extremely satisfied"),
    ("very unlikely", "unlikely", "neutral", "likely", "very likely"),
    ("not important", "not very important", "slightly important", "somewhat important", "moderately important",
     "important", "fairly important", "very important", "extremely important"),
    ("not happy", "not too happy", "unhappy", "pretty happy", "happy", "very happy"),
    ("very poor", "poor", "very bad", "bad", "fair", "average", "good", "very good", "excellent"),
    ("fair", "good", "very good", "premium", "ideal"),
    ("much worse", "worse", "slightly worse", "about the same", "same", "slightly better", "better", "much better"),
    ("none", "not at all", "no", "a little", "slightly", "slight", "mild", "some", "somewhat", "moderate",
     "moderately", "marked", "quite a bit", "severe", "very", "very much", "very severe", "extremely"),
    ("tiny", "xxs", "xs", "small", "s", "medium", "m", "large", "l", "xl", "huge", "xxl", "xxxl"),
    ("none", "no schooling", "preschool", "primary", "elementary", "middle school", "less than high school",
     "< high school", "< hs grad", "less than hs", "lower secondary", "secondary", "some high school", "high school",
     "hs", "hs grad", "high school graduate", "upper secondary", "vocational", "some college", "associate",
     "associate's degree", "college", "college grad", "college graduate", "bachelor", "bachelors",
     "bachelor's degree", "university", "tertiary", "master", "masters", "master's degree", "advanced degree",
     "graduate", "graduate school", "doctorate", "phd"),
    ("first", "second", "third", "fourth", "fifth"),
    ("i", "ii", "iii", "iv", "v"),
)  # fmt: skip
_LISTED = re.compile(r"\(?[0-9a-z][.):]\s*(?=\S)")
"""A number before an answer, as in '2. Good'."""
_COUNTED = re.compile(r"(?:(?:stage|grade|level|class|degree|quartile|quintile|decile|tertile)\s*)")
_NTH = re.compile(r"(?<=\d)(?:st|nd|rd|th)\b")
_MONEY = r"[$€£]?\s*"
_NUMBER = rf"{_MONEY}(-?\d+(?:,\d{{3}})+|-?\d+(?:[.,]\d+)?)\s*(k(?![a-z]))?"
_BELOW, _ABOVE = r"<=?|≤|under|below|up to|less than|at most|fewer than", r">=?|≥|over|above|more than|at least"
_MORE = r"\+|plus|(?:and|or|&) (?:over|more|above|older|up|greater)"
_UNIT = r"([^\W\d].*?)?"
_BAND = re.compile(
    rf"[\[(]?\s*(?:({_BELOW})\s*|({_ABOVE})\s*)?{_NUMBER}\s*(?:(?:-|–|—|to\b|,|;)\s*{_NUMBER})?\s*"
    rf"({_MORE})?\s*{_UNIT}\s*({_MORE}|(?:and|or|&) (?:under|below|less|younger))?\s*[\])]?"
)


def in_order(levels: Sequence[str]) -> list[str] | None:
    """Three levels or more from low to high, if they are words of one scale or bands of a number such as 18-24."""
    words = {" ".join(level.lower().replace("_", " ").split()): level for level in levels}
    if len(words) < max(3, len(levels)):
        return None
    return _by_scale(words) or _by_number(words)


def _by_scale(words: dict[str, str]) -> list[str] | None:
    listed = all(map(_LISTED.match, words))
    plain = {_LISTED.sub("", word, count=1) if listed else word: level for word, level in words.items()}
    for prefix in (re.compile(""), _COUNTED):
        bare = {prefix.sub("", word, count=1): level for word, level in plain.items()}
        for scale in SCALES:
            if len(bare) == len(words) and set(bare) <= set(scale):
                return [bare[word] for word in scale if word in bare]
    return None


def _by_number(words: dict[str, str]) -> list[str] | None:
    """By where bands of one unit begin: 9-11 years, 12 years, 13 years and over."""
    bands = {word: _BAND.fullmatch(_NTH.sub("", _COUNTED.sub("", word, count=1))) for word in words}
    found = {word: band for word, band in bands.items() if band is not None}
    bare = sum(word == band[3] for word, band in found.items())
    units = {(band[8] or "").rstrip("s.") for band in found.values()} - {""}
    if len(found) < len(words) or bare == len(words) or len(units) > 1:
        return None
    places = {word: _place(band) for word, band in found.items()}
    if any(band[5] and _number(band[5]) < _number(band[3]) for band in found.values() if not band[4]):  # a score
        return None
    if len(set(places.values())) < len(places):
        return None
    return [words[word] for word in sorted(words, key=lambda word: places[word])]


def _place(band: re.Match[str]) -> tuple[float, int]:
    """Where a band begins; one that is open below comes before one that begins there."""
    below = bool(band[1]) or (band[9] or "").endswith(("under", "below", "less", "younger"))
    above = bool(band[2]) or bool(band[7])
    return _number(band[3]) * (1000 if band[4] else 1), -1 if below else int(above)


def _number(digits: str) -> float:
    return float(re.sub(r",(?=\d{3})", "", digits).replace(",", "."))

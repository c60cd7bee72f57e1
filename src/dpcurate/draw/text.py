"""Names are untrusted text: what may be shown of them, how wide it is, and how it is embedded."""

from __future__ import annotations

import html
import json
import unicodedata
from collections.abc import Mapping
from typing import Any

MOST_LETTERS = 24
"""Characters of a label in the drawing; the middle of a longer name is left out."""
FONT_SIZE = 13.0
"""Of the letters in the drawing."""
_JOINERS = "\u200c\u200d"  # part of ordinary words in some scripts
_NARROW, _BROAD = set("fijlrtI.,:;'|!()[]{} "), set("mwMW@%&")
_UNSAFE = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def clean(text: object) -> str:
    """Without characters that hide, break or reverse what is shown."""
    return "".join(_visible(c) for c in str(text))


def _visible(letter: str) -> str:
    if letter in _JOINERS:
        return letter
    kind = unicodedata.category(letter)
    return "\N{REPLACEMENT CHARACTER}" if kind in ("Cc", "Cf", "Cs", "Cn", "Zl", "Zp") else letter


def escape(text: object) -> str:
    """Cleaned, for HTML text and quoted attributes."""
    return html.escape(clean(text), quote=True)


def short(name: str) -> str:
    """A label for the drawing: both ends of a long name, since long names often differ at one."""
    shown = clean(name)
    if len(shown) <= MOST_LETTERS:
        return shown
    return f"{shown[: MOST_LETTERS // 2]}…{shown[-(MOST_LETTERS // 2 - 1) :]}"


def width(label: str) -> float:
    """Of a label in the drawing, on the safe side for the usual sans-serif fonts."""
    return FONT_SIZE * sum(map(_em, label))


def _em(letter: str) -> float:
    if unicodedata.east_asian_width(letter) in "WF":
        return 1.1
    if letter in _NARROW:
        return 0.4
    if letter in _BROAD:
        return 1.0
    return 0.62 if ord(letter) < 0x250 and not letter.isupper() else 0.78


def embedded(values: Mapping[str, Any]) -> str:
    """JSON that cannot end the script element it stands in."""
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"), allow_nan=False).translate(_UNSAFE)


def number(value: float) -> str:
    """Four digits, no exponent for ordinary sizes."""
    return f"{value:.4g}"

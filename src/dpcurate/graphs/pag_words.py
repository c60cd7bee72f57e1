"""What an edge of a PAG says, in words."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

WORDS: Mapping[str, str] = MappingProxyType(
    {
        "->": "{a} causes {b}, perhaps through others",
        "<->": "neither causes the other: a hidden cause moves both",
        "o->": "{a} causes {b}, or a hidden cause moves both; {b} does not cause {a}",
        "o-o": "one causes the other, or a hidden cause moves both: which is open",
        "o--": "{b} causes {a}, or the rows were chosen by both",
        "--": "the rows were chosen by both",
    }
)

KINDS: Mapping[str, str] = MappingProxyType(
    {"->": "directed", "<->": "confounded", "o->": "half-open", "o-o": "open", "o--": "selected", "--": "selected"}
)
"""An edge in one word."""
GLYPHS: Mapping[str, str] = MappingProxyType({"->": "→", "<->": "↔", "o->": "○→", "o-o": "○—○", "o--": "○—", "--": "—"})


def meaning(a: str, sign: str, b: str) -> str:
    """An edge as it is written in node order, in words."""
    return WORDS[sign].format(a=a, b=b)

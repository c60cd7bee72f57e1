"""Noise of its own for each test: the same every time, so that a test passes always or never.

While a test or a wider fixture runs, every secure source that is made in this process draws from a stream that is
seeded by the name of that test or fixture. `DPCURATE_TEST_NOISE=7` gives all of them other noise, to see whether a
claim holds for more than one stream. Tests of the secure source itself are marked `secure_noise`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from itertools import count
from typing import Any

from dpcurate.private.noise import Secure, Seeded

SETTING = "DPCURATE_TEST_NOISE"
LAWS = ("gaussian", "laplace", "noisiest", "thin", "uniform")
_names: list[tuple[str, Iterator[int]] | None] = []
"""Of what runs now, innermost last, with the number of sources that it has made; None draws as ever."""
_made, _drawn = Secure.__init__, {law: getattr(Secure, law) for law in LAWS}


@contextmanager
def noise_of(name: str | None) -> Iterator[None]:
    """Sources that are made meanwhile have the noise of this name, or of the operating system if there is none."""
    _names.append(None if name is None else (name, count()))
    try:
        yield
    finally:
        _names.pop()


def stream(name: str, number: int) -> Seeded:
    """The noise of the source that something with this name makes as its `number`-th."""
    text = f"{os.environ.get(SETTING, '')} {number} {name}"
    return Seeded(int.from_bytes(sha256(text.encode()).digest()[:8], "big"))


def install() -> None:
    """From now on; the library of exact samplers is still loaded, and tried, when a source is made."""
    Secure.__init__ = _make  # type: ignore[method-assign]
    for law, drawn in _drawn.items():
        setattr(Secure, law, _draw(law, drawn))


def _make(self: Secure) -> None:
    _made(self)
    if _names and _names[-1] is not None:
        name, number = _names[-1]
        vars(self)["stream"] = stream(name, next(number))


def _draw(law: str, drawn: Callable[..., Any]) -> Callable[..., Any]:
    def draw(self: Secure, *words: Any) -> Any:
        own = vars(self).get("stream")
        return drawn(self, *words) if own is None else getattr(own, law)(*words)

    return draw

"""Which process this is: a forked copy is another one, even if it is given the number of one that ended."""

from __future__ import annotations

import os

_FORKS = [0]


def _forked() -> None:
    _FORKS[0] += 1


os.register_at_fork(after_in_child=_forked)


def process() -> tuple[int, int]:
    """The number of this process and how many forks led to it; no other process that shares its memory has both."""
    return os.getpid(), _FORKS[0]

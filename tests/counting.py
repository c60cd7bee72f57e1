"""Work counted instead of timed: the same on a busy machine as on a quiet one."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import FrameType


def steps(run: Callable[[], object]) -> int:
    """How many functions, of Python and of C, are called while `run` works."""
    count = 0

    def note(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(before)
    return count


def growth(small: Callable[[], object], large: Callable[[], object]) -> float:
    """How many times the processor time of `small` the larger one takes; for regular expressions, which have no steps.

    The least of five turns each, taken in turn, so that other work on the machine disturbs both or neither.
    """
    least = [float("inf"), float("inf")]
    for _ in range(5):
        for i, run in enumerate((small, large)):
            began = time.process_time()
            run()
            least[i] = min(least[i], time.process_time() - began)
    return least[1] / least[0]

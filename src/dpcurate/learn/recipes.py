"""Names for the recipes, so that a command line can ask for them."""

from __future__ import annotations

from typing import Protocol

from dpcurate.errors import RequestError
from dpcurate.graphs.knowledge import Knowledge
from dpcurate.learn.measure_once import MeasureOnce
from dpcurate.learn.methods import EMPC, SVTPC, CuratePC, PrivPC
from dpcurate.learn.outcome import Learned
from dpcurate.learn.score_methods import CurateScore, Noleaks, NotearsOnMoments
from dpcurate.requests import Door
from dpcurate.schema import did_you_mean


class Method(Protocol):
    """Anything that learns a graph through a door."""

    def fit(self, door: Door, knowledge: Knowledge | None = None) -> Learned:
        """Learn within what is left of the door's budget."""


def recipes() -> dict[str, Method]:
    """Every private method by its name; `auto` is the one to use."""
    return {
        "auto": MeasureOnce(),
        "measure-once": MeasureOnce(),
        "em-pc": EMPC(max_order=2),
        "svt-pc": SVTPC(max_order=2),
        "priv-pc": PrivPC(max_order=2),
        "curate-pc": CuratePC(max_order=2),
        "notears-moments": NotearsOnMoments(),
        "noleaks": Noleaks(),
        "curate-score": CurateScore(),
    }


def recipe(method: str | Method) -> Method:
    """A recipe by name, or the recipe itself."""
    if not isinstance(method, str):
        return method
    known = recipes()
    if method not in known:
        raise RequestError(f"there is no method {method!r}{did_you_mean(method, list(known))}")
    return known[method]

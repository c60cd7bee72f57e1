"""How far an estimated PAG is from the true one; a rate over nothing is 1, as in `metrics`."""

from __future__ import annotations

from dataclasses import dataclass

from dpcurate.graphs.checks import Arrow
from dpcurate.graphs.metrics import Rates, require_same_nodes, skeleton_rates
from dpcurate.graphs.pag import Mark, Pag


@dataclass(frozen=True, slots=True)
class PagScores:
    """`adjacency`: pairs. `arrowheads` and `tails`: ends of edges that have one, against ends that truly have.

    A mark is right if the true graph has the same mark there: a circle claims nothing and misses what could be
    known. `distance` counts ends whose mark differs, an edge that only one graph has counting twice.
    """

    adjacency: Rates
    arrowheads: Rates
    tails: Rates
    distance: int


def score_pag(estimated: Pag, truth: Pag) -> PagScores:
    """All measures. Against `ancestral_graph` instead of the PAG, precision says how often marks are true."""
    require_same_nodes(estimated, truth)
    return PagScores(
        adjacency=skeleton_rates(estimated, truth),
        arrowheads=_mark_rates(estimated, truth, "arrow"),
        tails=_mark_rates(estimated, truth, "tail"),
        distance=mark_distance(estimated, truth),
    )


def mark_distance(estimated: Pag, truth: Pag) -> int:
    """Ends of edges whose marks differ."""
    ends = estimated.marks.keys() | truth.marks.keys()
    return sum(estimated.marks.get(end) != truth.marks.get(end) for end in ends)


def _mark_rates(estimated: Pag, truth: Pag, mark: Mark) -> Rates:
    ours, theirs = _ends(estimated, mark), _ends(truth, mark)
    both = len(ours & theirs)
    return Rates(both / len(ours) if ours else 1.0, both / len(theirs) if theirs else 1.0)


def _ends(pag: Pag, mark: Mark) -> set[Arrow]:
    return {end for end, here in pag.marks.items() if here == mark}

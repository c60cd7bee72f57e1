"""The page's first lines: sentences of texts.py with the figures of this run."""

from __future__ import annotations

from collections.abc import Iterable

from dpcurate.published.reproduction import texts
from dpcurate.published.reproduction.adaptive_comparisons import Gap, gaps
from dpcurate.published.reproduction.comparisons import StatementVerdict, View
from dpcurate.published.reproduction.grid import FAMILIES, CellKind
from dpcurate.published.reproduction.statements import STATEMENTS
from dpcurate.published.reproduction.store import Runs

LOW = 1.0
"""Up to this total OPT gives everything to order 0."""


def conclusions(runs: Runs) -> str:
    """What the runs say, in ten lines."""
    low = [g for g in _all(runs, "allocation", "uniform", "pc_f1") if g.target <= LOW]
    high = [g for g in _all(runs, "allocation", "uniform", "pc_f1") if g.target > LOW]
    front = _all(runs, "allocation", "order 0 only", "pc_f1")
    same = [g for g in front if g.target <= LOW]
    once = _all(runs, "allocation", "OPT, planned once", "pc_f1")
    return texts.CONCLUSIONS.format(
        svt=_verdict(runs, 3, "SVT-PC"),
        priv=_verdict(runs, 3, "Priv-PC"),
        em=_verdict(runs, 3, "EM-PC"),
        alike=sum(g.mean == 0 for g in same),
        low=len(same),
        low_uniform=_counts(low),
        high_uniform=_counts(high),
        once=_counts(once),
        dip_before=_f1(runs, "survey", 1.0, "OPT"),
        dip=_f1(runs, "survey", 5.0, "OPT"),
        dip_front=_f1(runs, "survey", 5.0, "order 0 only"),
        dip_share=_percent(runs, "survey", 5.0),
        nominal=_number(runs, "step", "child", 10.0, "uniform"),
        shapes=_counts(g for s in FAMILIES["shape"].readings[1:] for g in _all(runs, "shape", s, "skeleton_f1")),
        saving=_saving(runs),
        one_release=_mean(_all(runs, "adaptive", "one release of all pairs", "skeleton_f1")),
        triples=_mean(_all(runs, "adaptive", "pairs, then all triples", "skeleton_f1")),
        floor=_mean(_all(runs, "proved allocation", "the default floor of 0.7", "skeleton_f1")),
        proved=_proved(runs),
    )  # fmt: skip


def _all(runs: Runs, kind: CellKind, other: str, metric: str) -> list[Gap]:
    """The first reading of a kind against another one, where both spent the same."""
    return [g for g in gaps(runs, kind, FAMILIES[kind].readings[0], other, metric) if g.equal]


def _counts(found: Iterable[Gap]) -> str:
    signs = [g.sign for g in found]
    return f"better in {signs.count(1)}, worse in {signs.count(-1)}, open in {signs.count(0)}"


def _mean(found: list[Gap]) -> str:
    return f"{sum(g.mean for g in found) / len(found):+z.3f}" if found else "-"


def _verdict(runs: Runs, number: int, part: str) -> StatementVerdict:
    return STATEMENTS[number - 1].verdict(runs, part, View("pc_f1", "spent", "printed"))


def _f1(runs: Runs, network: str, target: float, reading: str) -> str:
    found = runs.of("pc_f1", network, "curate-pc", target, reading, "allocation")
    return "-" if found is None else f"{found.mean:.2f}"


def _percent(runs: Runs, network: str, target: float) -> str:
    found = runs.of("first", network, "curate-pc", target, "OPT", "allocation")
    return "-" if found is None else f"{100 * found.mean:.0f} %"


def _number(runs: Runs, column: str, network: str, target: float, reading: str) -> str:
    found = runs.of(column, network, "curate-pc", target, reading, "allocation")
    return "-" if found is None else f"{found.mean:,.0f}"


def _saving(runs: Runs) -> str:
    """How many times less score-based CURATE claims than NOLEAKS at equal eps_0."""
    ratios = []
    for network in runs.networks:
        for first in (0.001, 0.01, 0.1):
            found = [
                runs.of("claimed", network, method, first, "artifact's noise, I = 30", "first")
                for method in ("noleaks", "curate-score")
            ]
            if found[0] is not None and found[1] is not None:
                ratios.append(found[0].mean / found[1].mean)
    return f"{min(ratios):.1f} to {max(ratios):.1f}" if ratios else "-"


def _proved(runs: Runs) -> str:
    found = [runs.of("proved", n, "curate-pc", 1.0) for n in runs.networks]
    there = [one.mean for one in found if one is not None]
    return f"{max(there):,.0f}" if there else "-"

"""Comparisons of runs that statements of the paper are read as; two means differ only beyond two standard errors."""

from __future__ import annotations

import math
from collections.abc import Iterable

from dpcurate.published import schedules
from dpcurate.published.reproduction.grid import CONSTRAINT, PUBLISHED, RIVALS, SCORE, TESTED
from dpcurate.published.reproduction.statement import Outcomes, Rule, View
from dpcurate.published.reproduction.summary import AXES, LABELS, Runs, Summary, beats

SMALL, LARGE = ("cancer", "earthquake", "survey"), ("sachs", "child")
SAME = 0.05
"""F1 scores this close count as the same where the statement is about leakage."""


# --- comparisons of F1 ------------------------------------------------------------------------------------


def _theirs(runs: Runs, view: View, method: str, network: str, target: float, spent: float) -> Summary | None:
    """A rival, in the same reading if it has it, at the same nominal total or on its line at the same leakage."""
    reading = view.reading if view.reading in runs.readings(method) else None
    if view.axis == "nominal":
        return runs.of(view.metric, network, method, target, reading)
    return runs.at(view.metric, network, method, view.axis, spent, reading)


def against(rival: str, *forms: str) -> Rule:
    """The better of CURATE's forms against a rival, network by network and total by total."""

    def outcomes(runs: Runs, view: View) -> Outcomes:
        for network in runs.networks:
            for target in runs.targets:
                best = _best(runs, view, forms, network, target)
                theirs = None if best is None else _theirs(runs, view, rival, network, target, best[0])
                if best is not None and theirs is not None:
                    yield f"{network} {target:g}", beats(best[1], theirs)

    return outcomes


def _best(runs: Runs, view: View, forms: Iterable[str], network: str, target: float) -> tuple[float, Summary] | None:
    """Leakage and F1 of the form with the best mean."""
    found = []
    for method in forms:
        reading = view.reading if view.reading in runs.readings(method) else None
        x, y = (runs.of(c, network, method, target, reading) for c in (AXES[view.axis], view.metric))
        if x is not None and y is not None and math.isfinite(x.mean):
            found.append((x.mean, y))
    return max(found, key=lambda p: p[1].mean, default=None)


def _top(runs: Runs, metric: str, network: str, method: str, reading: str | None, targets: Iterable[float]) -> Summary:
    """A method's best mean over totals; below everything if it was not run."""
    found = [s for t in targets if (s := runs.of(metric, network, method, t, reading)) is not None]
    return max(found, key=lambda s: s.mean, default=Summary(-math.inf, 0.0, 1))


def rises(runs: Runs, _: View) -> Outcomes:
    for network in runs.networks:
        for method in runs.methods():
            low, high = (runs.of("pc_f1", network, method, t) for t in (runs.targets[0], runs.targets[-1]))
            if low is not None and high is not None:
                yield f"{network} {LABELS[method]}", beats(high, low)


def small_below_one(runs: Runs, view: View) -> Outcomes:
    """As good as any other's best is what the sentence says, too."""
    low = [t for t in runs.targets if t <= 1]
    for network in (n for n in runs.networks if n in SMALL):
        best = _top(runs, view.metric, network, "curate-score", view.reading, low)
        for method in (*CONSTRAINT, "noleaks"):
            rival = _top(runs, view.metric, network, method, None, runs.targets)
            if math.isfinite(best.mean) and math.isfinite(rival.mean):
                sign = beats(best, rival)
                yield f"{network} {LABELS[method]}", 1 if sign == 0 and best.mean > rival.mean - 0.01 else sign


def large_above_one(runs: Runs, view: View) -> Outcomes:
    for network in (n for n in runs.networks if n in LARGE):
        sides = []
        for side in ([t for t in runs.targets if t > 1], [t for t in runs.targets if t <= 1]):
            tops = [_top(runs, view.metric, network, "curate-pc", view.reading, side)]
            tops.append(_top(runs, view.metric, network, "curate-score", None, side))
            sides.append(max(tops, key=lambda s: s.mean))
        if all(math.isfinite(s.mean) for s in sides):
            yield network, beats(sides[0], sides[1])


def features(runs: Runs, view: View) -> Outcomes:
    """For each method, the mean log of the total it needs, on large networks against small ones."""
    for method in runs.methods():
        if method in PUBLISHED:
            large, small = (_mean_log(runs, view, method, names) for names in (LARGE, SMALL))
            if math.isfinite(large - small):
                yield LABELS[method], int(large > small + 1e-9) - int(large < small - 1e-9)


def _mean_log(runs: Runs, view: View, method: str, names: Iterable[str]) -> float:
    needed = [_needed(runs, view, n, method) for n in runs.networks if n in names]
    logs = [math.log(x) for x in needed if x is not None]
    return sum(logs) / len(logs) if logs else math.nan


def _needed(runs: Runs, view: View, network: str, method: str) -> float | None:
    """The least total whose mean F1 is within SAME of the method's best."""
    reading = view.reading if method == "curate-pc" else None
    best = _top(runs, view.metric, network, method, reading, runs.targets).mean
    found = [(t, runs.of(view.metric, network, method, t, reading)) for t in runs.targets]
    return next((t for t, s in found if s is not None and s.mean >= best - SAME), None)


def low_regime(runs: Runs, view: View) -> Outcomes:
    for network in runs.networks:
        for target in (t for t in runs.targets if t <= 1):
            score = _best(runs, view, SCORE, network, target)
            rivals = _best(runs, View(view.metric, view.axis, ""), CONSTRAINT, network, target)
            if score is not None and rivals is not None:
                yield f"{network} {target:g}", beats(score[1], rivals[1])


def less_leakage(first: float) -> Rule:
    """At equal eps_0: as good an F1 for a third of the claimed leakage, or better."""

    def outcomes(runs: Runs, _: View) -> Outcomes:
        for network in runs.networks:
            cells = [[_first(runs, c, network, m, first) for c in ("claimed", "skeleton_f1")] for m in SCORE]
            (their_leak, theirs), (our_leak, ours) = cells
            if their_leak is not None and theirs is not None and our_leak is not None and ours is not None:
                less = their_leak.mean >= 3 * our_leak.mean
                yield network, 1 if less and ours.mean >= theirs.mean - SAME else -1

    return outcomes


def _first(runs: Runs, column: str, network: str, method: str, first: float) -> Summary | None:
    return runs.of(column, network, method, first, "artifact's noise, I = 30", "first")


def tenth(rival: str) -> Rule:
    """CURATE at a tenth of a total against a rival at that total."""

    def outcomes(runs: Runs, view: View) -> Outcomes:
        for network in runs.networks:
            for low in runs.targets:
                best = _best(runs, view, ("curate-pc", "curate-score"), network, low)
                other = None if best is None else _theirs(runs, view, rival, network, low * 10, best[0] * 10)
                if best is not None and other is not None:
                    yield f"{network} {low:g}", beats(best[1], other)

    return outcomes


# --- tests, times and schedules ---------------------------------------------------------------------------


def fewer_tests(runs: Runs, view: View) -> Outcomes:
    for network in runs.networks:
        ours = runs.of(view.metric, network, "curate-pc", TESTED, view.reading)
        for method in RIVALS:
            theirs = runs.of(view.metric, network, method, TESTED)
            if ours is not None and theirs is not None:
                yield f"{network} {LABELS[method]}", beats(theirs, ours)


def near_pc(runs: Runs, view: View) -> Outcomes:
    """Whether CURATE's number of tests lies nearer to PC's than each other method's does."""
    for network in runs.networks:
        pc, ours = runs.exact(view.metric, network), runs.of(view.metric, network, "curate-pc", TESTED, view.reading)
        for method in RIVALS:
            theirs = runs.of(view.metric, network, method, TESTED)
            if ours is not None and theirs is not None and math.isfinite(pc):
                far = Summary(abs(theirs.mean - pc), theirs.sd, theirs.runs)
                yield f"{network} {LABELS[method]}", beats(far, Summary(abs(ours.mean - pc), ours.sd, ours.runs))


def faster(ours: Iterable[str], theirs: Iterable[str]) -> Rule:
    """Times of single runs spread widely: only a factor of 1.5 counts."""

    def outcomes(runs: Runs, _: View) -> Outcomes:
        for network in runs.networks:
            for a in ours:
                for b in theirs:
                    x, y = (runs.of("seconds", network, m, TESTED, kind="time") for m in (a, b))
                    if x is not None and y is not None:
                        ratio = y.mean / x.mean
                        yield f"{network} {LABELS[a]} / {LABELS[b]}", int(ratio > 1.5) - int(ratio < 1 / 1.5)

    return outcomes


def similar_time(runs: Runs, _: View) -> Outcomes:
    for network in runs.networks:
        x, y = (runs.of("seconds", network, m, TESTED, kind="time") for m in SCORE)
        if x is not None and y is not None:
            yield network, 1 if 1 / 3 <= y.mean / x.mean <= 3 else -1


def iterations(how: str) -> Rule:
    def outcomes(runs: Runs, _: View) -> Outcomes:
        rows = [r for r in runs.rows if r["kind"] == "schedule" and r["reading"] == how and r["step"] < 1]
        counts = {(r["method"], r["step"], r["target"]): r["answered"] for r in rows}
        for (kind, first, total), count in counts.items():
            if kind == "multiplicative" and total > first:
                for other in ("additive", "exponential"):
                    gap = count - counts[other, first, total]
                    yield f"eps_0 {first:g}, total {total:.3g}, {other}", (gap > 0) - (gap < 0)

    return outcomes


def later_get_more(low: float, high: float) -> Rule:
    def outcomes(runs: Runs, _: View) -> Outcomes:
        for first in sorted({r["step"] for r in runs.rows if r["kind"] == "schedule" and low < r["step"] < high}):
            budgets = schedules.algorithm_2(first, 20)
            yield f"eps_0 {first:g}", 1 if budgets[-1] > budgets[0] else -1

    return outcomes

"""Comparisons of runs that statements of the paper are read as; two means differ only beyond two standard errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from dpcurate.published import schedules
from dpcurate.published.reproduction.grid import CONSTRAINT, FIRSTS, PUBLISHED, RIVALS, SCORE, TESTED
from dpcurate.published.reproduction.store import AXES, LABELS, Runs, Summary, beats

# --- a statement of the paper, how it is looked at, and the verdict that the comparisons of runs make --
# The verdict follows from how many comparisons agree and how many disagree.

Outcome = tuple[str, int]
"""Where, and 1 (as stated), -1 (the opposite) or 0 (cannot be told)."""
FOR, AGAINST = 0.7, 0.125
"""A statement holds if at least the first part of its comparisons is for it and at most the second against."""


@dataclass(frozen=True, slots=True)
class StatementVerdict:
    """A word, and the comparisons behind it: for, against, open."""

    word: str
    counts: tuple[int, int, int]
    against: tuple[str, ...] = ()

    @classmethod
    def of(cls, outcomes: Iterable[Outcome]) -> StatementVerdict:
        """Count the outcomes that support and contradict a statement."""
        found = list(outcomes)
        yes, no, open_ = (sum(s == sign for _, s in found) for sign in (1, -1, 0))
        return cls(_word(yes, no, open_), (yes, no, open_), tuple(where for where, s in found if s == -1))

    def __str__(self) -> str:
        return f"{self.word} {'/'.join(map(str, self.counts))}" if any(self.counts) else "-"


def _word(yes: int, no: int, open_: int) -> str:
    number = yes + no + open_
    if number and yes >= FOR * number and no <= AGAINST * number:
        return "holds"
    if yes + no < open_ or not number:
        return "cannot be told"
    return "holds in part" if yes > no else "does not hold"


@dataclass(frozen=True, slots=True)
class View:
    """How a statement is looked at: the F1 (or count) it is about, the kind of leakage, and CURATE's reading."""

    metric: str
    axis: str
    reading: str


Outcomes = Iterator[Outcome]
Rule = Callable[[Runs, View], Outcomes]
Rows = Literal["constraint", "score", "tests", "allocation", "plain"]


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence of the paper, and how it is read as comparisons.

    `parts` are the comparisons by name; `rows` says which readings they are made for: those of
    constraint-based or of score-based CURATE, of constraint-based CURATE in two units of tests, or none.
    """

    where: str
    text: str
    rule: str
    parts: Mapping[str, Rule]
    rows: Rows = "plain"
    axes: tuple[str, ...] = ("spent", "nominal")

    def readings(self, runs: Runs) -> list[str]:
        """Return the readings that the statement has rows for."""
        if self.rows in ("plain", "allocation"):
            return [""]
        return runs.readings("curate-score" if self.rows == "score" else "curate-pc")

    def verdict(self, runs: Runs, part: str, view: View) -> StatementVerdict:
        """Judge one part of the statement."""
        return StatementVerdict.of(self.parts[part](runs, view))


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
    """F1 rises from the smallest to the largest leakage."""
    for network in runs.networks:
        for method in runs.methods():
            low, high = (runs.of("pc_f1", network, method, t) for t in (runs.targets[0], runs.targets[-1]))
            if low is not None and high is not None:
                yield f"{network} {LABELS[method]}", beats(high, low)


def small_below_one(*, ties: bool) -> Rule:
    """Score-based CURATE's best up to a total of 1 against the best of each other method; ties count as for, or not."""

    def outcomes(runs: Runs, view: View) -> Outcomes:
        low = [t for t in runs.targets if t <= 1]
        for network in (n for n in runs.networks if n in SMALL):
            best = _top(runs, view.metric, network, "curate-score", view.reading, low)
            for method in (*CONSTRAINT, "noleaks"):
                rival = _top(runs, view.metric, network, method, None, runs.targets)
                if math.isfinite(best.mean) and math.isfinite(rival.mean):
                    sign = beats(best, rival)
                    yield f"{network} {LABELS[method]}", 1 if ties and sign == 0 else sign

    return outcomes


def large_above_one(runs: Runs, view: View) -> Outcomes:
    """On the large networks the best F1 above a leakage of 1 beats that below."""
    for network in (n for n in runs.networks if n in LARGE):
        sides = []
        for side in ([t for t in runs.targets if t > 1], [t for t in runs.targets if t <= 1]):
            tops = [_top(runs, view.metric, network, "curate-pc", view.reading, side)]
            tops.append(_top(runs, view.metric, network, "curate-score", None, side))
            sides.append(max(tops, key=lambda s: s.mean))
        if all(math.isfinite(s.mean) for s in sides):
            yield network, beats(sides[0], sides[1])


Needs = Literal["best", "near"] | float
"""What a method needs: the total of its best mean, the least within SAME of that, or the least with a given F1."""


def features(needs: Needs) -> Rule:
    """For each method, the mean log of the total it needs, on large networks against small ones."""

    def outcomes(runs: Runs, view: View) -> Outcomes:
        for method in runs.methods():
            if method in PUBLISHED:
                large, small = (_mean_log(runs, view, method, names, needs) for names in (LARGE, SMALL))
                if math.isfinite(large - small):
                    yield LABELS[method], int(large > small + 1e-9) - int(large < small - 1e-9)

    return outcomes


def _mean_log(runs: Runs, view: View, method: str, names: Iterable[str], needs: Needs) -> float:
    """Not a number where a network was not run; where no total is enough, the next one beyond the largest."""
    found = [_needed(runs, view, n, method, needs) for n in names]
    logs = [math.log(x) for x in found if x is not None]
    return sum(logs) / len(logs) if logs and len(logs) == len(found) else math.nan


def _needed(runs: Runs, view: View, network: str, method: str, needs: Needs) -> float | None:
    reading = view.reading if method == "curate-pc" else None
    found = [(t, s.mean) for t in runs.targets if (s := runs.of(view.metric, network, method, t, reading)) is not None]
    if not found:
        return None
    best = max(mean for _, mean in found)
    level = best if needs == "best" else best - SAME if needs == "near" else float(needs)
    return next((t for t, mean in found if mean >= level), 2 * runs.targets[-1])


def low_regime(runs: Runs, view: View) -> Outcomes:
    """Up to a leakage of 1 the best score method beats the best constraint method."""
    for network in runs.networks:
        for target in (t for t in runs.targets if t <= 1):
            score = _best(runs, view, SCORE, network, target)
            rivals = _best(runs, View(view.metric, view.axis, ""), CONSTRAINT, network, target)
            if score is not None and rivals is not None:
                yield f"{network} {target:g}", beats(score[1], rivals[1])


def less_leakage(utility: Literal["higher", "not lower", "near"], times: float = 1.0) -> Rule:
    """At equal eps_0: such a skeleton F1 as NOLEAKS', for less claimed leakage, or `times` less."""

    def outcomes(runs: Runs, _: View) -> Outcomes:
        for network in runs.networks:
            for first in FIRSTS:
                cells = [[_first(runs, c, network, m, first) for c in ("claimed", "skeleton_f1")] for m in SCORE]
                (their_leak, theirs), (our_leak, ours) = cells
                if their_leak is not None and theirs is not None and our_leak is not None and ours is not None:
                    sign = beats(ours, theirs)
                    good = {"higher": sign > 0, "not lower": sign >= 0, "near": ours.mean >= theirs.mean - SAME}
                    less = their_leak.mean > times * our_leak.mean
                    yield f"{network} {first:g}", 1 if less and good[utility] else -1

    return outcomes


def _first(runs: Runs, column: str, network: str, method: str, first: float) -> Summary | None:
    return runs.of(column, network, method, first, "artifact's noise, I = 30", "first")


def tenth(*rivals: str, times: float = 10.0) -> Rule:
    """CURATE at a tenth of a total (one in `times`) against rivals at that total."""

    def outcomes(runs: Runs, view: View) -> Outcomes:
        for network in runs.networks:
            for low in runs.targets:
                best = _best(runs, view, ("curate-pc", "curate-score"), network, low)
                for rival in rivals if best is not None else ():
                    assert best is not None
                    other = _theirs(runs, view, rival, network, low * times, best[0] * times)
                    if other is not None:
                        yield f"{network} {low:g} {LABELS[rival]}", beats(best[1], other)

    return outcomes


# --- tests, times and schedules ---------------------------------------------------------------------------


def fewer_tests(runs: Runs, view: View) -> Outcomes:
    """CURATE asks fewer tests than its rivals."""
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


def faster(ours: Iterable[str], theirs: Iterable[str], least: float = 1.5) -> Rule:
    """Seconds of a run: theirs over ours is at least so many times, or the other way round."""

    def outcomes(runs: Runs, _: View) -> Outcomes:
        for network in runs.networks:
            for a in ours:
                for b in theirs:
                    x, y = (runs.of("seconds", network, m, TESTED, kind="time") for m in (a, b))
                    if x is not None and y is not None:
                        ratio = y.mean / x.mean
                        yield f"{network} {LABELS[a]} / {LABELS[b]}", int(ratio > least) - int(ratio < 1 / least)

    return outcomes


def similar_time(most: float) -> Rule:
    """Both score methods take about as long as each other."""

    def outcomes(runs: Runs, _: View) -> Outcomes:
        for network in runs.networks:
            x, y = (runs.of("seconds", network, m, TESTED, kind="time") for m in SCORE)
            if x is not None and y is not None:
                yield network, 1 if 1 / most <= y.mean / x.mean <= most else -1

    return outcomes


def iterations(how: str) -> Rule:
    """Make the rule that multiplicative schedules allow more iterations than the other two."""

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
    """Make the rule that later iterations get more, for a first epsilon between these."""

    def outcomes(runs: Runs, _: View) -> Outcomes:
        for first in sorted({r["step"] for r in runs.rows if r["kind"] == "schedule" and low < r["step"] < high}):
            budgets = schedules.algorithm_2(first, 20)
            yield f"eps_0 {first:g}", 1 if budgets[-1] > budgets[0] else -1

    return outcomes


# --- which reading of the paper makes a statement true -------------------------------------------------


def looked_at(statement: Statement) -> dict[str, str]:
    """Columns that a statement is judged by, in words: F1 scores, or units of tests."""
    if statement.rows == "tests":
        return {"counted": "the authors' unit", "answered": "answered tests"}
    if statement.rows == "plain":
        return {"": ""}
    if statement.rows == "allocation":
        return {"pc_f1": "arcs, PC run", "skeleton_f1": "skeleton, network"}
    return {"pc_f1": "arcs, PC run", "authors_f1": "arcs, authors' list", "skeleton_f1": "skeleton, network"}


def axes_of(statement: Statement) -> tuple[str, ...]:
    """Return the axes on which a statement is judged."""
    return statement.axes if statement.rows in ("constraint", "score") else ("",)


def literal(statement: Statement, runs: Runs) -> str:
    """Verdicts of the most literal reading, part by part."""
    found = []
    for name, views in _views(statement, runs):
        found.append(f"{name}: {statement.verdict(runs, _part(statement, name), views[0])}".removeprefix(": "))
    return "; ".join(found)


def otherwise(statement: Statement, runs: Runs) -> str:
    """What else makes parts true that the most literal view does not; nothing where nothing does."""
    found: dict[str, list[str]] = {}
    for name, (first, *others) in _views(statement, runs):
        part = _part(statement, name)
        if statement.verdict(runs, part, first).word != "holds":
            true = next((view for view in others if statement.verdict(runs, part, view).word == "holds"), None)
            if true is not None:
                found.setdefault(_words(statement, true), []).append(name)
    said = [f"{', '.join(names)}: true{words}".removeprefix(": ") for words, names in found.items()]
    return f"{'; '.join(said)}." if said else ""


def _views(statement: Statement, runs: Runs) -> Iterator[tuple[str, list[View]]]:
    """The views of each part, in the order in which they count; units of tests are parts of their own."""
    looks, readings, axes = looked_at(statement), statement.readings(runs), axes_of(statement)
    if statement.rows == "tests":
        for metric, words in looks.items():
            yield words, [View(metric, a, r) for r in readings for a in axes]
        return
    for part in statement.parts:
        yield part, [View(m, a, r) for m in looks for r in readings for a in axes]


def _part(statement: Statement, name: str) -> str:
    return name if name in statement.parts else next(iter(statement.parts))


def _words(statement: Statement, view: View) -> str:
    """A view in words, after a word such as 'true'."""
    parts = [f"as *{view.reading}*"] if view.reading else []
    if len(axes_of(statement)) > 1:
        parts.append(f"at {view.axis} leakage")
    if statement.rows not in ("tests", "plain"):
        parts.append(f"by {looked_at(statement)[view.metric]}")
    return f" {', '.join(parts)}" if parts else ""

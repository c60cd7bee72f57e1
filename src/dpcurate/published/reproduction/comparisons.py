"""Comparisons of runs that statements of the paper are read as; two means differ only beyond two standard errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from dpcurate.published import schedules
from dpcurate.published.reproduction.grid import CONSTRAINT, PUBLISHED, RIVALS, SCORE, TESTED
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
Rows = Literal["constraint", "score", "tests", "plain"]


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence of the paper, how it is read as comparisons, and what should be known about it.

    `parts` are the comparisons by name; `rows` says which readings they are made for: those of
    constraint-based or of score-based CURATE, of constraint-based CURATE in two units of tests, or none.
    """

    where: str
    text: str
    rule: str
    why: str
    parts: Mapping[str, Rule]
    rows: Rows = "plain"
    axes: tuple[str, ...] = ("spent", "nominal")

    def readings(self, runs: Runs) -> list[str]:
        """Return the readings that the statement has rows for."""
        if self.rows == "plain":
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
    """On the large networks the best F1 above a leakage of 1 beats that below."""
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
    """Up to a leakage of 1 the best score method beats the best constraint method."""
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
    """Both score methods take about as long as each other."""
    for network in runs.networks:
        x, y = (runs.of("seconds", network, m, TESTED, kind="time") for m in SCORE)
        if x is not None and y is not None:
            yield network, 1 if 1 / 3 <= y.mean / x.mean <= 3 else -1


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
    return {"pc_f1": "arcs, PC run", "authors_f1": "arcs, authors' list", "skeleton_f1": "skeleton, network"}


def axes_of(statement: Statement) -> tuple[str, ...]:
    """Return the axes on which a statement is judged."""
    return ("nominal",) if statement.rows in ("tests", "plain") else statement.axes


def literal(statement: Statement, runs: Runs) -> str:
    """Verdicts of the most literal reading, part by part."""
    found = []
    for name, views in _views(statement, runs):
        found.append(f"{name}: {statement.verdict(runs, _part(statement, name), views[0])}".removeprefix(": "))
    return "; ".join(found)


def conclusion(statement: Statement, runs: Runs) -> str:
    """One sentence: what makes the statement true, part by part."""
    found = [_makes_true(statement, runs, name, views) for name, views in _views(statement, runs)]
    return "; ".join(found) + "."


def _views(statement: Statement, runs: Runs) -> Iterator[tuple[str, list[View]]]:
    """The views of each part, in the order in which they count; units of tests are parts of their own."""
    looks, readings, axes = looked_at(statement), statement.readings(runs), axes_of(statement)
    if statement.rows == "tests":
        for metric, words in looks.items():
            yield words, [View(metric, a, r) for r in readings for a in axes]
        return
    for part in statement.parts:
        name = part if len(statement.parts) > 1 else ""
        yield name, [View(m, a, r) for m in looks for r in readings for a in axes]


def _part(statement: Statement, name: str) -> str:
    return name if name in statement.parts else next(iter(statement.parts))


def _makes_true(statement: Statement, runs: Runs, name: str, views: list[View]) -> str:
    found = [(view, statement.verdict(runs, _part(statement, name), view)) for view in views]
    true = next((view for view, verdict in found if verdict.word == "holds"), None)
    if true is not None:
        return f"{name}: **true**{_words(statement, true)}".removeprefix(": ")
    told = [(view, v) for view, v in found if any(v.counts)]
    if not told:
        return f"{name}: not run".removeprefix(": ")
    view, near = max(told, key=lambda p: (p[1].counts[0] - p[1].counts[1]) / sum(p[1].counts))
    if len(views) == 1:
        why = f"against: {', '.join(near.against[:4])}" if near.against else "the rest is open"
        return f"{name}: {near.word} ({why})".removeprefix(": ")
    return f"{name}: true under no reading; nearest{_words(statement, view)} ({near})".removeprefix(": ")


def _words(statement: Statement, view: View) -> str:
    """A view in words, after a word such as 'true'."""
    parts = [f"as *{view.reading}*"] if view.reading else []
    if len(axes_of(statement)) > 1:
        parts.append(f"at {view.axis} leakage")
    if statement.rows != "tests" and (words := looked_at(statement)[view.metric]):
        parts.append(f"by {words}")
    return f" {', '.join(parts)}" if parts else ""

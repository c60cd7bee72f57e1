"""What the paper states, each sentence set against the runs by a rule given beforehand, reading by reading.

A comparison of two means counts only beyond two standard errors. Each statement is a list of
comparisons; the verdict follows from how many agree and how many disagree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from dpcurate.published import schedules
from dpcurate.published.reproduction.grid import CONSTRAINT, FIRSTS, PUBLISHED, RIVALS, SCORE, TESTED
from dpcurate.published.reproduction.summary import AXES, LABELS, Runs, Summary, beats

Outcome = tuple[str, int]
"""Where, and 1 (as stated), -1 (the opposite) or 0 (cannot be told)."""
SMALL, LARGE = ("cancer", "earthquake", "survey"), ("sachs", "child")
FOR, AGAINST = 0.7, 0.125
"""A statement holds if at least the first part of its comparisons is for it and at most the second against."""
SAME = 0.05
"""F1 scores this close count as the same where the statement is about leakage."""


@dataclass(frozen=True, slots=True)
class StatementVerdict:
    """A word, and the comparisons behind it: for, against, open."""

    word: str
    counts: tuple[int, int, int]
    against: tuple[str, ...] = ()

    @classmethod
    def of(cls, outcomes: Iterable[Outcome]) -> StatementVerdict:
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
        if self.rows == "plain":
            return [""]
        return runs.readings("curate-score" if self.rows == "score" else "curate-pc")

    def verdict(self, runs: Runs, part: str, view: View) -> StatementVerdict:
        return StatementVerdict.of(self.parts[part](runs, view))


# --- comparisons of F1 ------------------------------------------------------------------------------------


def _theirs(runs: Runs, view: View, method: str, network: str, target: float, spent: float) -> Summary | None:
    """A rival, in the same reading if it has it, at the same nominal total or on its line at the same leakage."""
    reading = view.reading if view.reading in runs.readings(method) else None
    if view.axis == "nominal":
        return runs.of(view.metric, network, method, target, reading)
    return runs.at(view.metric, network, method, view.axis, spent, reading)


def _against(rival: str, *forms: str) -> Rule:
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


def _rises(runs: Runs, _: View) -> Outcomes:
    for network in runs.networks:
        for method in runs.methods():
            low, high = (runs.of("pc_f1", network, method, t) for t in (runs.targets[0], runs.targets[-1]))
            if low is not None and high is not None:
                yield f"{network} {LABELS[method]}", beats(high, low)


def _small_below_one(runs: Runs, view: View) -> Outcomes:
    """As good as any other's best is what the sentence says, too."""
    low = [t for t in runs.targets if t <= 1]
    for network in (n for n in runs.networks if n in SMALL):
        best = _top(runs, view.metric, network, "curate-score", view.reading, low)
        for method in (*CONSTRAINT, "noleaks"):
            rival = _top(runs, view.metric, network, method, None, runs.targets)
            if math.isfinite(best.mean) and math.isfinite(rival.mean):
                sign = beats(best, rival)
                yield f"{network} {LABELS[method]}", 1 if sign == 0 and best.mean > rival.mean - 0.01 else sign


def _large_above_one(runs: Runs, view: View) -> Outcomes:
    for network in (n for n in runs.networks if n in LARGE):
        sides = []
        for side in ([t for t in runs.targets if t > 1], [t for t in runs.targets if t <= 1]):
            tops = [_top(runs, view.metric, network, "curate-pc", view.reading, side)]
            tops.append(_top(runs, view.metric, network, "curate-score", None, side))
            sides.append(max(tops, key=lambda s: s.mean))
        if all(math.isfinite(s.mean) for s in sides):
            yield network, beats(sides[0], sides[1])


def _features(runs: Runs, view: View) -> Outcomes:
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


def _low_regime(runs: Runs, view: View) -> Outcomes:
    for network in runs.networks:
        for target in (t for t in runs.targets if t <= 1):
            score = _best(runs, view, SCORE, network, target)
            rivals = _best(runs, View(view.metric, view.axis, ""), CONSTRAINT, network, target)
            if score is not None and rivals is not None:
                yield f"{network} {target:g}", beats(score[1], rivals[1])


def _less_leakage(first: float) -> Rule:
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


def _tenth(rival: str) -> Rule:
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


def _fewer_tests(runs: Runs, view: View) -> Outcomes:
    for network in runs.networks:
        ours = runs.of(view.metric, network, "curate-pc", TESTED, view.reading)
        for method in RIVALS:
            theirs = runs.of(view.metric, network, method, TESTED)
            if ours is not None and theirs is not None:
                yield f"{network} {LABELS[method]}", beats(theirs, ours)


def _near_pc(runs: Runs, view: View) -> Outcomes:
    """Whether CURATE's number of tests lies nearer to PC's than each other method's does."""
    for network in runs.networks:
        pc, ours = runs.exact(view.metric, network), runs.of(view.metric, network, "curate-pc", TESTED, view.reading)
        for method in RIVALS:
            theirs = runs.of(view.metric, network, method, TESTED)
            if ours is not None and theirs is not None and math.isfinite(pc):
                far = Summary(abs(theirs.mean - pc), theirs.sd, theirs.runs)
                yield f"{network} {LABELS[method]}", beats(far, Summary(abs(ours.mean - pc), ours.sd, ours.runs))


def _faster(ours: Iterable[str], theirs: Iterable[str]) -> Rule:
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


def _similar_time(runs: Runs, _: View) -> Outcomes:
    for network in runs.networks:
        x, y = (runs.of("seconds", network, m, TESTED, kind="time") for m in SCORE)
        if x is not None and y is not None:
            yield network, 1 if 1 / 3 <= y.mean / x.mean <= 3 else -1


def _iterations(how: str) -> Rule:
    def outcomes(runs: Runs, _: View) -> Outcomes:
        rows = [r for r in runs.rows if r["kind"] == "schedule" and r["reading"] == how and r["step"] < 1]
        counts = {(r["method"], r["step"], r["target"]): r["answered"] for r in rows}
        for (kind, first, total), count in counts.items():
            if kind == "multiplicative" and total > first:
                for other in ("additive", "exponential"):
                    gap = count - counts[other, first, total]
                    yield f"eps_0 {first:g}, total {total:.3g}, {other}", (gap > 0) - (gap < 0)

    return outcomes


def _later_get_more(low: float, high: float) -> Rule:
    def outcomes(runs: Runs, _: View) -> Outcomes:
        for first in sorted({r["step"] for r in runs.rows if r["kind"] == "schedule" and low < r["step"] < high}):
            budgets = schedules.algorithm_2(first, 20)
            yield f"eps_0 {first:g}", 1 if budgets[-1] > budgets[0] else -1

    return outcomes


# --- the paper's sentences --------------------------------------------------------------------------------

_BOTH = ("curate-pc", "curate-score")
_TRUTH = (
    "The score methods' threshold on weights is chosen with the true graph, as in NOLEAKS' artifact, which helps them "
    "against the constraint-based ones."
)
STATEMENTS = (
    Statement(
        "IV, Privacy vs Utility",
        "Private algorithms require higher privacy leakage to achieve the same predictive performance as their "
        "non-private counterparts.",
        "F1 (arcs, PC run) at the largest total above F1 at the smallest, each method and network.",
        "Higher leakage means less noise in every method.",
        {"all methods": _rises},
    ),
    Statement(
        "abstract; IV, Privacy vs Utility; figure of total leakage against F1, part (a)",
        "CURATE outperforms EM-PC, SVT-PC, Priv-PC and NOLEAKS.",
        "The better of CURATE's two forms against each other method, each network and total.",
        f"The row is the reading of the constraint-based form, the score-based one is as printed. {_TRUTH}",
        {LABELS[m]: _against(m, *_BOTH) for m in (*RIVALS, "noleaks")},
        "constraint",
    ),
    Statement(
        "IV, Privacy vs Utility",
        "Constraint-based CURATE achieves better F1 with less total leakage than EM-PC, Priv-PC and SVT-PC.",
        "Each network and total. *Proved* compares at the epsilon that is proved for the same noise.",
        "The claims rest on different sensitivities of one p-value (CURATE 0.513/sqrt n as printed, 0.363/sqrt n in "
        "the script, Priv-PC and SVT-PC 2.39/sqrt n) and on different counts of charged answers; the proved epsilon "
        "sets both aside. EM-PC has none.",
        {LABELS[m]: _against(m, "curate-pc") for m in RIVALS},
        "constraint",
        ("spent", "nominal", "proved"),
    ),
    Statement(
        "IV, Privacy vs Utility",
        "For Cancer, Earthquake and Survey, score-based CURATE achieves the highest F1 with a total leakage below 1.0.",
        "Its best mean at totals up to 1 against each other method's best at any total; within 0.01 counts as for.",
        _TRUTH,
        {"other methods": _small_below_one},
        "score",
        ("nominal",),
    ),
    Statement(
        "IV, Privacy vs Utility",
        "For Sachs and Child, CURATE achieves the highest F1 with a total leakage above 1.0.",
        "CURATE's best at totals above 1 against its best at totals up to 1.",
        "Two comparisons only.",
        {"totals up to 1": _large_above_one},
        "constraint",
        ("nominal",),
    ),
    Statement(
        "IV, Privacy vs Utility",
        "As the number of features increases, CURATE and the other algorithms leak more to achieve the best F1.",
        "Per method: the least total with a mean F1 within 0.05 of its best, Sachs and Child against Cancer, "
        "Earthquake and Survey (geometric means).",
        "A method that is far from its best at every total of the grid needs more than the grid shows.",
        {"small networks": _features},
        "constraint",
        ("nominal",),
    ),
    Statement(
        "III, Remarks on score-based CURATE",
        "Score-based algorithms do better than constraint-based ones at totals up to 1.",
        "The better of two score methods against the best of four constraint methods.",
        _TRUTH,
        {"constraint-based": _low_regime},
        "score",
        ("nominal",),
    ),
    Statement(
        "IV, Running Time",
        "Score-based CURATE achieves better predictive performance than NOLEAKS ...",
        "Each network and total, NOLEAKS in the same reading.",
        "The number of iterations and eps_0 of the paper's figure are not printed.",
        {"NOLEAKS": _against("noleaks", "curate-score")},
        "score",
    ),
    Statement(
        "abstract; I, Contributions",
        "Score-based CURATE reaches NOLEAKS' utility with less privacy leakage.",
        "At equal eps_0, 30 iterations a minimisation: skeleton F1 at most 0.05 lower for at most a third of the "
        "claimed leakage.",
        "NOLEAKS gives eps_0 to every gradient; CURATE's budgets fall from eps_0 to eps_0 squared.",
        {f"eps_0 = {first:g}": _less_leakage(first) for first in FIRSTS},
    ),
    Statement(
        "I, Contributions; V",
        "CURATE achieves better utility with leakage smaller by orders of magnitude.",
        "The better of CURATE's forms at a tenth of the leakage of each other method.",
        "Read as one order of magnitude.",
        {LABELS[m]: _tenth(m) for m in (*RIVALS, "noleaks")},
        "constraint",
    ),
    Statement(
        "IV, Number of CI Tests; figure of average CI tests",
        "EM-PC, SVT-PC and Priv-PC run more CI tests than CURATE (eps_total = 1).",
        "Mean tests a run at a total of 1, each network and method.",
        "The authors' unit: deletions for PC, the last of the running counts for CURATE, answers for the others.",
        {"other methods": _fewer_tests},
        "tests",
    ),
    Statement(
        "the same; V",
        "CURATE's number of CI tests converges to that of non-private PC, the others' do not.",
        "Distance of the mean number of tests from PC's, CURATE against each other method.",
        "A method whose noise deletes edges at random asks few tests, since a deleted edge is not tested again: a low "
        "count is not accuracy.",
        {"other methods": _near_pc},
        "tests",
    ),
    Statement(
        "IV, Running Time; table of running times",
        "Constraint-based CURATE is faster than Priv-PC and EM-PC.",
        "Seconds a run at a total of 1, as printed; a factor of 1.5 counts.",
        "Times of our implementations, in which a test costs well under a millisecond and solving OPT is most of "
        "CURATE's time. The authors' own code, timed apart from these runs, took 0.3 to 12 s (CURATE), 2 to 22 s "
        "(Priv-PC) and 5 to 151 s (EM-PC): there the statement holds.",
        {LABELS[m]: _faster(("curate-pc",), (m,)) for m in ("priv-pc", "em-pc")},
    ),
    Statement(
        "IV, Running Time",
        "Score-based algorithms take more time than constraint-based ones.",
        "Seconds a run, each score method against SVT-PC, Priv-PC and CURATE.",
        "Times of our implementations: the gradient is computed from moments, not from rows.",
        {"SVT-PC, Priv-PC, CURATE": _faster(("svt-pc", "priv-pc", "curate-pc"), SCORE)},
    ),
    Statement(
        "IV, Running Time",
        "... with a similar amount of execution time (score-based CURATE and NOLEAKS).",
        "Seconds a run within a factor of 3.",
        "Times are those of our implementations.",
        {"NOLEAKS": _similar_time},
    ),
    Statement(
        "III, Figure 3 and Lemma 2",
        "For eps_0 < 1 the multiplicative increment executes more iterations than the additive and exponential ones.",
        "Iterations for totals 0.1, 1 and 10 and eps_0 below the total: by Lemma 2's formulas, and as the largest I "
        "whose I budgets stay within the total.",
        "For eps_0 < 1 the multiplicative budgets eps_0^(1 + i/I) fall, so more of them fit. Whole numbers can be "
        "equal where the total is a few eps_0.",
        {"Lemma 2": _iterations("lemma-2"), "exact": _iterations("exact")},
    ),
    Statement(
        "III, Adaptive Privacy Budgeting for Score-based Algorithms; Algorithm 2",
        "The mechanism allocates less privacy budget to the initial iterations than to the later ones.",
        "Last budget of Algorithm 2 above its first.",
        "eps_k = eps_0^(1 + k/(I-1)) ends at eps_0^2, which is below eps_0 when eps_0 < 1 and above it otherwise.",
        {"eps_0 < 1": _later_get_more(0, 1), "eps_0 > 1": _later_get_more(1, math.inf)},
    ),
)


# --- which reading makes it true --------------------------------------------------------------------------


def looked_at(statement: Statement) -> dict[str, str]:
    """Columns that a statement is judged by, in words: F1 scores, or units of tests."""
    if statement.rows == "tests":
        return {"counted": "the authors' unit", "answered": "answered tests"}
    if statement.rows == "plain":
        return {"": ""}
    return {"pc_f1": "arcs, PC run", "authors_f1": "arcs, authors' list", "skeleton_f1": "skeleton, network"}


def axes_of(statement: Statement) -> tuple[str, ...]:
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

"""What the paper states: each sentence with the rule, given beforehand, by which runs are set against it.

Where a sentence leaves room, several rules stand side by side as its parts, the most literal one first.
"""

from __future__ import annotations

import math

from dpcurate.published.reproduction.adaptive_comparisons import between, increments
from dpcurate.published.reproduction.comparisons import (
    SAME,
    Statement,
    against,
    faster,
    features,
    fewer_tests,
    iterations,
    large_above_one,
    later_get_more,
    less_leakage,
    low_regime,
    near_pc,
    rises,
    similar_time,
    small_below_one,
    tenth,
)
from dpcurate.published.reproduction.grid import RIVALS, SCORE
from dpcurate.published.reproduction.store import LABELS

_BOTH = ("curate-pc", "curate-score")
_OTHERS = (*RIVALS, "noleaks")
STATEMENTS = (
    Statement(
        "IV",
        "the private algorithms require higher privacy leakage to achieve the same predictive performance as their "
        "non-private counterparts",
        "F1 at the largest total above F1 at the smallest, each method and network.",
        {"": rises},
    ),
    Statement(
        "IV",
        "CURATE outperforms the existing private CGD algorithms including EM-PC, SVT-PC, Priv-PC, and NOLEAKS",
        "The better of CURATE's two forms against each other method, each network and total.",
        {LABELS[m]: against(m, *_BOTH) for m in _OTHERS},
        "constraint",
    ),
    Statement(
        "IV",
        "constraint-based CURATE achieves better utility (F1-score) with less amount of total leakage compared to the "
        "existing constraint-based DP-CGD algorithms",
        "Each network and total, at equal leakage.",
        {LABELS[m]: against(m, "curate-pc") for m in RIVALS},
        "constraint",
        ("spent", "nominal", "proved"),
    ),
    Statement(
        "IV",
        "for Cancer, Earthquake, and Survey datasets, score-based CURATE achieves the highest F1-score with a total "
        "leakage of less than 1.0",
        "Its best mean at totals up to 1 against each other method's best at any total: higher, or at least as high.",
        {"higher": small_below_one(ties=False), "as high": small_below_one(ties=True)},
        "score",
        ("nominal",),
    ),
    Statement(
        "IV",
        "For Sachs and Child datasets, CURATE achieves the highest F1-score with (eps_Total > 1.0)",
        "CURATE's best at totals above 1 against its best at totals up to 1.",
        {"": large_above_one},
        "constraint",
        ("nominal",),
    ),
    Statement(
        "IV",
        "as the number of features increases, CURATE and the other CGD algorithms tend to leak more in order to "
        "achieve the best F1-score",
        "Per method, Sachs and Child against Cancer, Earthquake and Survey: the total of the best mean F1; the "
        "smallest total within 0.05 of it; the smallest total with an F1 of 0.5, of 0.7.",
        {
            "best F1": features("best"),
            "within 0.05": features("near"),
            "F1 0.5": features(0.5),
            "F1 0.7": features(0.7),
        },
        "constraint",
        ("nominal",),
    ),
    Statement(
        "III",
        "score-based algorithms ensure better privacy guarantees in lower total privacy regime (eps_Total <= 1) "
        "compared to the differentially private constraint-based algorithms",
        "The better of two score methods against the best of four constraint methods, totals up to 1.",
        {"": low_regime},
        "score",
        ("nominal",),
    ),
    Statement(
        "IV",
        "The score-based CURATE algorithm achieves better predictive performance compared to the NOLEAKS algorithm",
        "Each network and total, NOLEAKS in the same reading.",
        {"": against("noleaks", "curate-score")},
        "score",
    ),
    Statement(
        "V",
        "[score-based CURATE] guarantees better utility with less leakage",
        "At equal eps_0 (0.001, 0.01, 0.1), 30 iterations per minimisation: less claimed leakage than NOLEAKS, and "
        "skeleton F1 higher; not lower by two standard errors; at most 0.05 lower; that for a third of the leakage.",
        {
            "higher F1": less_leakage("higher"),
            "F1 not lower": less_leakage("not lower"),
            "F1 within 0.05": less_leakage("near"),
            "and a third": less_leakage("near", 3.0),
        },
    ),
    Statement(
        "I",
        "CURATE ensures better predictive performance with leakage smaller by orders of magnitude",
        "The better of CURATE's forms at a tenth of the leakage of each other method; at a hundredth of all of them.",
        {LABELS[m]: tenth(m) for m in _OTHERS} | {"a hundredth": tenth(*_OTHERS, times=100.0)},
        "constraint",
    ),
    Statement(
        "IV",
        "the number of CI tests in EM-PC, SVT-PC, and Priv-PC are comparatively large to CURATE",
        "Mean tests per run at a total of 1, each network and method.",
        {"": fewer_tests},
        "tests",
    ),
    Statement(
        "figure 4",
        "Average CI tests in CURATE converge to the non-private PC algorithm whereas EM-PC, Priv-PC and SVT-PC tend to "
        "run more CI tests",
        "Distance of the mean number of tests from PC's, CURATE against each other method.",
        {"": near_pc},
        "tests",
    ),
    Statement(
        "IV",
        "the constraint-based CURATE algorithm speeds up the process of DP-CGD compared to Priv-PC and EM-PC "
        "algorithms",
        "Seconds per run of our implementations at a total of 1: any difference; a factor of 1.5.",
        {
            f"{LABELS[m]}, {words}": faster(("curate-pc",), (m,), least)
            for m in ("priv-pc", "em-pc")
            for words, least in (("any", 1.0), ("1.5", 1.5))
        },
    ),
    Statement(
        "IV",
        "score-based CGD algorithms tend to consume more time compared to constraint-based algorithms",
        "Seconds per run, each score method against SVT-PC, Priv-PC and CURATE: any difference; a factor of 1.5.",
        {
            words: faster(("svt-pc", "priv-pc", "curate-pc"), SCORE, least)
            for words, least in (("any", 1.0), ("1.5", 1.5))
        },
    ),
    Statement(
        "IV",
        "[score-based CURATE and NOLEAKS take a] similar amount of execution time",
        "Seconds per run within a factor of 2; of 3.",
        {"2": similar_time(2.0), "3": similar_time(3.0)},
    ),
    Statement(
        "III",
        "in high privacy regime (eps_0 < 1), the multiplicative method notably executes more number of iterations "
        "compared to the additive and exponential one",
        "Iterations for totals 0.1, 1 and 10 and eps_0 below the total: by Lemma 2's formulas, and as the largest I "
        "whose budgets stay within the total.",
        {"Lemma 2": iterations("lemma-2"), "exact": iterations("exact")},
    ),
    Statement(
        "III",
        "allocates less privacy budget to the initial iterations compared to the later ones",
        "Last budget of Algorithm 2 above its first.",
        {"eps_0 < 1": later_get_more(0, 1), "eps_0 > 1": later_get_more(1, math.inf)},
    ),
    Statement(
        "IV",
        "the adaptive privacy budgeting scales-up utility in DP-CGD",
        "Algorithm 1 with OPT against the same loop with another allocation, at equal spent leakage, each network and "
        "total.",
        {
            "uniform": between("allocation", "OPT", "uniform"),
            "uniform, planned once": between("allocation", "OPT", "uniform, planned once"),
            "OPT, planned once": between("allocation", "OPT", "OPT, planned once"),
            "order 0 only": between("allocation", "OPT", "order 0 only"),
            "proved: uniform": between("proved allocation", "OPT", "uniform"),
            "proved: order 0 only": between("proved allocation", "OPT", "order 0 only"),
        },
        "allocation",
    ),
    Statement(
        "IV",
        "the adaptive choice of privacy budgets makes the initial CI tests more accurate, and therefore, CURATE tends "
        "to run a smaller number of CI tests",
        "Answered tests of Algorithm 1 with OPT against the same loop with uniform budgets, at equal spent leakage.",
        {
            other: between("allocation", "OPT", other, "answered", best=-1)
            for other in ("uniform", "uniform, planned once")
        },
    ),
    Statement(
        "III",
        "results to highlight the method that achieves better F1-score ... we follow a multiplicative method",
        "Skeleton F1 of the multiplicative increment against each other one at the same eps_0 and total, with as many "
        "iterations as Lemma 2 states.",
        {other: increments(other) for other in ("additive", "exponential", "even")},
    ),
    Statement(
        "I",
        "higher privacy budget allocation to later iterations of the optimization process helps to reduce the risk of "
        "missing the optima",
        "Skeleton F1 of budgets that rise 16-fold, and of the multiplicative ones reversed so that they rise, "
        "against even ones and against the falling ones; 200 gradients share the total.",
        {
            "16-fold, even": between("shape", "rising", "even", "skeleton_f1"),
            "reversed, even": between("shape", "reversed", "even", "skeleton_f1"),
            "reversed, falling": between("shape", "reversed", "multiplicative", "skeleton_f1"),
        },
    ),
    Statement(
        "our default",
        "[later releases go where earlier answers leave doubt]",
        "Skeleton F1 of the default against the same budget in one release, and against a second release of all "
        "triples. Not a sentence of the paper.",
        {
            "one release": between("adaptive", "adaptive", "one release of all pairs", "skeleton_f1"),
            "all triples": between("adaptive", "adaptive", "pairs, then all triples", "skeleton_f1"),
        },
    ),
)
"""Sentences of the paper in the order of the page; the last one is about our default."""
assert SAME == 0.05  # the rules above name it

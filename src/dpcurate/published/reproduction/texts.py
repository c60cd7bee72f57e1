"""The prose of docs/paper.md. Figures that change from run to run are in the tables, not here."""

from __future__ import annotations

from dpcurate.published.reproduction.grid import EM_READINGS, SCORE_READINGS

HEAD = """# The CURATE paper, run again

Bhattacharjee and Tandon, *CURATE: Scaling-up Differentially Private Causal Graph Discovery*, asks whether a privacy
budget that adapts to earlier answers finds better graphs. This page answers from {number} private runs on the
paper's {networks} networks. `{command}` made it (dpcurate {version}, commit {commit}); it is not edited by hand.

{conclusions}
"""

FEW = """**Few runs: read it as a sketch.** Verdicts need {enough} runs or more of every cell."""

CONCLUSIONS = """## In ten lines

1. At equal spent leakage, constraint-based CURATE finds better graphs than SVT-PC ({svt}) and Priv-PC ({priv}), as
   the paper says. Counts are *for / against / open*.
2. It does not do better than EM-PC ({em}), under any reading of Algorithm 1.
3. **Spending early helps.** Up to a total of 1, OPT gives everything to order 0: in {alike} of {low} cases its
   results are those of order 0 alone. Uniform budgets that spend as much find worse graphs: OPT is {low_uniform}.
4. At totals of 5 and 10 OPT spreads too little over the orders: against uniform budgets it is {high_uniform}.
5. The dips in the first figure are where OPT first opens order 1. With a few percent of the budget its answers are
   close to coin flips, and cut true edges: on Survey F1 is {dip_before} at a total of 1 and {dip} at 5, where order
   0 gets {dip_share}. With everything on order 0 it is {dip_front}.
6. Planning again after each order makes no measurable difference: against the plan made at the start, OPT is {once}.
7. Uniform budgets leave most of a total unspent, because the bounds t_j count many tests that are never run: on
   Child a run with a total of {nominal} spends 10. At the same total OPT is clearly better. Tighter bounds t_j
   would help constraint-based budgeting.
8. For the score-based form the shape of the schedule hardly matters at equal leakage (even budgets against five
   others: {shapes}). At equal eps_0 CURATE claims {saving} times less leakage than NOLEAKS, because its budgets
   fall; row 9 compares their F1.
9. In our default, adaptive releases make no measurable difference on three small networks: mean F1 differs by
   {one_release} from one release of the same budget, and by {triples} from a second release of all triples.
10. No published form has a proof: the epsilon proved for a CURATE run that claims 1 is up to {proved}. The proved
    forms keep the ideas; use those, or the default.
"""

RULES = """## How to read the verdicts

Each row quotes the paper, says what was compared, and counts comparisons *for / against / open*. Two
means differ if they are more than two standard errors apart. *Holds*: at least 70 % for and at most 12.5 % against.
*Cannot be told*: more open than decided. Otherwise *holds in part* or *does not hold*, by majority. Where a
sentence has several fair readings, all are listed, the most literal first. The verdict is for the most literal
reading of the algorithm, at spent leakage, by F1 of arcs against non-private PC; another view that makes it true
follows. Files: [all views]({data}paper-verdicts.csv), [all differences
with their intervals]({data}paper-gaps.csv), [all runs]({data}runs.parquet). *Spent* leakage is the authors' formula
applied to what a run did, *nominal* the total it was given.
"""

Section = tuple[str, tuple[int, ...], tuple[str, ...], str]
"""A title, the numbers of its statements, its pictures, and what to say about them."""

EARLY = """OPT minimises a bound on errors of tests exactly at the threshold. Starving a later order hardly raises
that bound, so OPT spends on order 0 until it is nearly free of noise. But *running* a starved order harms the
graph: its answers are coin flips, and a cut edge never returns. Our proved form leaves every later
order at least 0.7 of a uniform epsilon; with OPT alone it loses every edge on Cancer at 5 and on Asia from 5 on.
"""

TESTS_ASKED = """A low count is not accuracy: noise that cuts edges at random saves tests too. CURATE runs few tests
because OPT usually ends after order 0.
"""

FALLING = """With eps_0 < 1 the budgets of Algorithm 2 fall, from eps_0 to its square. The rising budgets here are ours.
"""

INCREMENTS = """Where eps_0 is so near the total that the other increments allow fewer than about ten gradients, the
multiplicative one allows more and finds better graphs: there the paper's reason holds. With enough gradients
all four are alike, and many very noisy ones (eps_0 = 0.001 at a total of 0.1) are worse than few good ones.
"""

SMALL_TABLES = """With 5 or 6 columns one release of all pairs leaves little in doubt. Wider tables were not run here.
"""

SECTIONS: tuple[Section, ...] = (
    ("CURATE and the other methods", (1, 2, 3, 10), ("spent-pc", "spent-skeleton", "proved"), ""),
    ("Small networks, large networks", (4, 5, 6), ("regimes", "rates"), ""),
    ("Score-based CURATE", (7, 8, 9), ("equal-first",), ""),
    ("The number of CI tests", (11, 12, 19), ("tests",), TESTS_ASKED),
    ("Running time", (13, 14, 15), ("seconds",), ""),
    ("Does adaptive allocation over orders help?", (18,), ("allocation", "order-0", "allocation-proved"), EARLY),
    ("Do rising budgets help?", (17, 21), ("shapes",), FALLING),
    ("Which increment?", (16, 20), ("schedules", "increments"), INCREMENTS),
    ("Adaptivity in our default", (22,), ("adaptive",), SMALL_TABLES),
)

PICTURES = {
    "spent-pc": "F1 (arcs, against the non-private PC run) at spent leakage",
    "spent-skeleton": "F1 (skeleton, against the network) at spent leakage",
    "proved": "F1 (skeleton) at the epsilon proved for the same noise, with our methods",
    "regimes": "Mean and standard deviation of F1 (arcs) at totals 0.1, 5 and 10",
    "rates": "Precision and recall, from the smallest total to the largest",
    "equal-first": "NOLEAKS and score-based CURATE at equal eps_0: skeleton F1 and claimed leakage",
    "tests": "CI tests per run in the authors' unit (full) and answered (pale); lines: PC",
    "seconds": "Seconds per run of our implementations",
    "allocation": "Algorithm 1 with six allocations at equal spent leakage, 95 % intervals",
    "order-0": "The part of the leakage that goes to order 0",
    "allocation-proved": "The proved form with four allocations at equal spent leakage, 95 % intervals",
    "shapes": "200 gradients share a total: six schedules, 95 % intervals",
    "schedules": "Iterations for a total and eps_0: Lemma 2 (lines), the largest number that fits (dots)",
    "increments": "F1 and gradients by increment and eps_0, mean of six networks",
    "adaptive": "The default, one release of the same budget, and a second release of all triples",
    "workflow": "Constraint-based discovery (figure 1)",
    "composition": "How CURATE adds up its leakage (figure 2)",
}

GAPS = "Arcs F1 at equal spent leakage, mean of six networks, by OPT's total:\n"
SHAPES = "Skeleton F1, mean of the networks, by total:\n"
TESTS = "Answered tests at OPT's total of 1:\n"
PROVED_GAPS = "Skeleton F1 of the proved form, mean of Cancer and Asia:\n"
ADAPTIVE_GAPS = "Skeleton F1, mean of three networks, by total:\n"
OTHER_TESTS = (
    "Algorithm 1 with other statistics that the paper allows, skeleton F1 by total (only Kendall's has a stated "
    "sensitivity; the others get the same noise):\n"
)

SETTINGS = """## Settings

![Constraint-based discovery (figure 1)](figures/workflow.png)

![How CURATE adds up its leakage (figure 2)](figures/composition.png)

n = 100,000 rows from each network, T = 0.05, q = 1, delta' = 1e-12, Kendall's tau, as printed. Margins
of 0.2 and the alphabetical order of levels are from the authors' code. One table per network; only the noise changes.
EM-PC, SVT-PC and Priv-PC take an epsilon per step, chosen so that the mean claim meets the total. The score-based
methods use eps_0 = 0.01, which the paper does not print, and the weight threshold with the best skeleton F1, chosen
with the true graph as in NOLEAKS' artifact.

The paper's F1 counts arcs, an undirected edge as two, against a list of arcs in the authors' code that is itself a
result of PC: *authors' list*. *Arcs, PC run* compares with a non-private PC run on our table, *skeleton* with the
network. *Proved* leakage counts Laplace noise of scale b on a one-sided p-value as (0.5/b)²/2 in zCDP, for every
answered test, at delta = 1e-10; nothing finite is proved for EM-PC and the score-based methods as published
([why](proofs/published.md)).
"""

DATA = "F1 of non-private PC (Kendall, 0.05), which the methods are compared with:\n"

EXCEPTIONS = """## Where Algorithm 1 leaves room

*Printed* follows the text, which leaves five points open:

* When to stop: before an order that could spend less than a millionth of the total; *not stopped*
  goes on.
* c1, c2 in (0, 1): we use 1, as the script does (`c=`).
* delta <= 10^(-1.5 m) is too small for floating point: we use the script's 1e-14, which enters only the sum of deltas.
* Appendix B depends on n_i, the size of the block that changes: 0.513/sqrt n is its value at n_i = 2, the largest
  (`smallest=`). The script's 0.363/sqrt n is that divided by sqrt 2.
* Undefined tests (a column constant in every block) are charged and keep their edge.
"""

CURATE_READINGS = {
    "printed": "each pair on each set once, all orders, stop when spent, every answer charged",
    "printed, script's sensitivity": "0.363/sqrt n",
    "printed, not stopped": "starved orders run",
    "printed, ordered pairs": "(a, b) and (b, a) are both asked",
    "script, count per order": "the script, counting anew in each order, with the edges left in OPT",
    "script": "charges only answers it acts on, adds up the running counts of all orders, keeps edges in the grey "
    "zone, ends at order floor(log2 n) - 5; d = 5 on Survey",
}

READINGS = "## Readings\n\n| | |\n|---|---|\n" + "".join(
    f"| {method}: {name} | {words} |\n"
    for method, known in (
        ("CURATE", CURATE_READINGS),
        ("score-based", SCORE_READINGS),
        ("EM-PC", EM_READINGS),
    )
    for name, words in known.items()
)

SOURCES = """## Sources

* CURATE: `github.com/PayelBhattacharjee14/cgdCURATE`, named in the paper. We ran its `CURATE_cb.py`; the
  score-based code, `CURATE_sb.zip`, is listed there but was not available, so that form follows the text. Workshop
  version: `PayelBhattacharjee14/CURATE` at 3a4fa5d.
* SVT-PC, Priv-PC, EM-PC: `sunblaze-ucb/Priv-PC-Differentially-Private-Causal-Graph-Discovery` at 0fb6104.
* NOLEAKS: `pckennethma/NoLeaks-artifact` at abc1224.

[Other methods](other-methods.md#as-published) compares our F1 with that of the authors' code. In separate
runs their code took 0.3 to 12 s (CURATE), 2 to 22 s (Priv-PC) and 5 to 151 s (EM-PC).
"""

_SRC = "../src/dpcurate"
_ITEMS: tuple[tuple[str, str], ...] = (
    ("probabilistic graphical model", f"{_SRC}/networks/network.py"),
    ("causal graph discovery", f"{_SRC}/graphs/graph.py"),
    ("differential privacy, sensitivity", "guarantee.md"),
    ("analytic Gaussian mechanism, eq. (1)", f"{_SRC}/accounting/conversions.py"),
    ("PC, both phases", f"{_SRC}/published/constraint.py"),
    ("FCI", f"{_SRC}/learn/constraint/fci.py"),
    ("G, chi-squared, Kendall, Spearman", "#curate-and-the-other-methods"),
    ("BDeu, BGe, BIC, MDL", f"{_SRC}/learn/score/exact_search.py"),
    ("NOTEARS", f"{_SRC}/learn/score/notears.py"),
    ("Laplace, SVT, EM baselines", f"{_SRC}/published/edge_tests.py"),
    ("NOLEAKS", f"{_SRC}/published/score.py"),
    ("gradient sensitivities", f"{_SRC}/published/gradients.py"),
    ("bounds t_i", f"{_SRC}/published/curate.py"),
    ("leakage per order and in total", f"{_SRC}/published/claims.py"),
    ("sum of deltas", "#where-algorithm-1-leaves-room"),
    ("DP-CI test, margins, coin", f"{_SRC}/published/curate.py"),
    ("Lemma 1", f"{_SRC}/learn/constraint/budget_plan.py"),
    ("eq. (2), (3), OPT, SLSQP", f"{_SRC}/published/curate.py"),
    ("recursion over orders", f"{_SRC}/published/curate.py"),
    ("Algorithm 1 and its open points", "#where-algorithm-1-leaves-room"),
    ("sub-sampling", f"{_SRC}/published/claims.py"),
    ("Appendix B", f"{_SRC}/published/unproved_statistics.py"),
    ("increments", f"{_SRC}/published/schedules.py"),
    ("Lemma 2", "#which-increment"),
    ("Algorithm 2", f"{_SRC}/published/score.py"),
    ("figure 1, workflow", "#settings"),
    ("figure 2, composition", "#settings"),
    ("figure 3, iterations", "#which-increment"),
    ("figure 4, F1 and leakage", "#curate-and-the-other-methods"),
    ("table of CI tests", "#the-number-of-ci-tests"),
    ("table of times", "#running-time"),
    ("networks, table of data, n, T, q, delta', runs", "#settings"),
    ("F1, precision, recall", "#small-networks-large-networks"),
    ("five composition theorems", f"{_SRC}/accounting/composition.py"),
    ("open direction: adaptive clipping", "score-methods.md#noleaks-and-curate-proved"),
    ("open direction: budgets from outcomes", "score-methods.md#noleaks-and-curate-proved"),
    ("open direction: tuned thresholds", "other-methods.md#statistics"),
    ("F1 of the increments", "#which-increment"),
    ("membership inference", "audit.md"),
    ("the claims", "#how-to-read-the-verdicts"),
)
"""The parts of the paper, and where each one is."""

INVENTORY = "## Where each part of the paper is\n\n| | |\n|---|---|\n" + "".join(
    f"| {number} | [{item}]({target}) |\n" for number, (item, target) in enumerate(_ITEMS, 1)
)

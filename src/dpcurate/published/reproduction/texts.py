"""The page's longer texts: settings, readings, the rule of verdicts, limits."""

CURATE_READINGS = {
    "printed": "Algorithm 1 to the letter: each pair on each set once, stop when spent, every answer charged",
    "printed, script's sensitivity": "the same with 0.363/sqrt n instead of 0.513/sqrt n",
    "printed, not stopped": "an order with nothing left to spend still runs, on coin flips",
    "printed, ordered pairs": "(a, b) and (b, a) are both asked",
    "script, count per order": "the script, its count begun again in each order, the edges that are left in OPT",
    "script": "the authors' script: acted-on answers charged, a running count, the grey zone kept; d = 5 on Survey",
}

SETTINGS = """## Settings

As printed in Section IV: n = {rows} rows from each network, test threshold T = 0.05, sub-sampling rate q = 1,
delta' = 1e-12 (but the artifact's 1e-4 in readings of the score methods other than the printed one), Kendall's
tau as the test of the constraint-based methods. One table a network; the seed of the noise changes from run to run.
What is not printed follows the authors' code: margins beta = 0.2, levels numbered in the
alphabetical order of their names (which matters to Kendall's tau of three and more levels). EM-PC,
SVT-PC and Priv-PC take an epsilon a step; it is set so that the mean claimed epsilon meets the total. CURATE takes the
total itself and may end below it.

NOLEAKS and score-based CURATE: eps_0 = 0.01 is our choice, since the paper prints none; NOLEAKS gives it to every
gradient. A run ends where its descent does or where the total is spent. The threshold on weights is the one of best
skeleton F1, chosen with the true graph as in NOLEAKS' artifact, and beside it 0.3.

### Leakage
*Nominal* is the total that a run was given. *Spent* is what the authors' formula gives for what the run did; a method
is compared with a line through the other method's points at the same spent leakage. *Proved* is an epsilon
(delta = 1e-10) for which a proof is known for the same noise:

* The one-sided p-value lies in [0, 1/2], so one row moves it by at most 1/2; 0.481 is attained
  ([proofs/published.md](proofs/published.md)). A p-value with Laplace noise of scale b is therefore (0.5/b)-DP and
  (0.5/b)^2/2-zCDP. Every answered test is added up, whether the authors charge it or not, and converted to epsilon.
  The number of answers depends on the rows, so this is what a run has used and not a bound fixed beforehand. A test
  that is undefined (x or y constant in every stratum) is answered without noise, and no finite epsilon holds for it;
  such answers are left out of the sum, in the authors' favour.
* EM-PC as coded chooses conditioning sets by exact p-values, and its score is not known to be 1-Lipschitz. NOLEAKS'
  artifact takes the values of its line search from rows that it calls public, centres by exact means and chooses the
  threshold with the true graph; score-based CURATE is built on it. No finite epsilon is proved for these, and they
  have no point on the proved axis.
* Our methods are drawn at the budget they were given, which is their guarantee.

### Truths and units
The paper's F1 counts arcs, an undirected edge as two, against an edge list in the code that is itself a PC result. We
show it against that list and against a non-private PC run on our table (Kendall, 0.05), which plays the list's role
here; arcs of the published methods are those that the authors' code draws (three orientation rules, EM-PC with its
slip in filing separating sets). Beside it: the skeleton and the CPDAG's arcs of the real network. Tests are counted in
the authors' unit (deletions for PC, the last of the running counts of acted-on answers for CURATE, answers for the
others) and as answered tests for all.

### Readings
"""

VERDICTS = """A comparison of two means counts if they differ by more than two standard errors; otherwise it is open.
Cells show *for / against / open*. *Holds*: at least 70 % for and at most 12.5 % against. *Cannot be told*: more open
than decided. Else *holds in part* if more are for than against, or *does not hold*. The last column names the first
view under which the statement holds: F1 of arcs against the PC run before the other scores, the most literal reading
before the others, spent before nominal leakage.
"""

LIMITS = """## What limits this page

* One table a network, as in the paper: figures carry the luck of one sample. Non-private PC on another sample of
  Cancer or Earthquake can have one edge more or less.
* Fewer runs where a run is long: EM-PC on Sachs and Child, our methods on Child. The number of runs is in the tables.
* The code of score-based CURATE was not available; it is built from the paper's text. Its figure's number of
  iterations, eps_0, clip and delta are not printed.
* The authors' script solves OPT by code written out for each network, with slips in two of them. Survey's (d = 5 in
  the orders after the first) is in the reading *script*, Child's (the root terms of the first order) is not.
* On a spent or proved axis a point beyond the other method's line is not compared.
* Times are of our implementations. F1 of the authors' code at the same claimed leakage is in
  `benchmarks/published.py`.
"""

SCHEDULES = """## Iterations against budget (Figure 3)

{picture}
The budgets of iteration i of I are eps_0 (1 + i/I), eps_0 exp(i/I) and eps_0^(1 + i/I), i < I. Where a line ends
Lemma 2 states less than one iteration.
"""

"""docs/paper.md: written from the Parquet file alone."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from dpcurate import networks
from dpcurate._files import save_text
from dpcurate.published.reproduction import figures
from dpcurate.published.reproduction.comparisons import Statement, View, axes_of, conclusion, literal, looked_at
from dpcurate.published.reproduction.grid import CONSTRAINT, EM_READINGS, PUBLISHED, SCORE_READINGS, TESTED
from dpcurate.published.reproduction.statements import STATEMENTS
from dpcurate.published.reproduction.store import ENOUGH, LABELS, METRICS, Runs, Summary, read_runs

_PICTURE = re.compile(r"!\[.*\]\(figures/.*\)\n\n\*.*\*\n")
REGIMES = (0.1, 5.0, 10.0)
"""The totals of the paper's table of means; those that were run are shown, or else all."""


def write_page(parquet: Path, directory: Path) -> list[Path]:
    """Figures and paper.md; returns what was written."""
    runs = Runs(read_runs(parquet))
    drawn = figures.draw(runs, directory / "figures")
    if not drawn:
        print("no figures: they need matplotlib (pip install matplotlib)")
    path = directory / "paper.md"
    save_text(path, page(runs, drawn=bool(drawn)))
    return [*drawn, path]


def page(runs: Runs, *, drawn: bool = True) -> str:
    """Write the page from recorded runs, with or without pictures."""
    sections = (_head, _settings, _statements, _data, _leakage, _regimes, _rates, _tests, _seconds)
    words = "Iterations for a total and eps_0: Lemma 2 (lines), the largest number that fits (dots)"
    last = [SCHEDULES.format(picture=_picture("schedules", words)), LIMITS]
    text = "\n".join([*(section(runs) for section in sections), *last])
    return text if drawn else _PICTURE.sub("", text)


def _head(runs: Runs) -> str:
    private = [r for r in runs.rows if r["kind"] in ("private", "first") and "threshold" not in r["reading"]]
    sketch = "**Few runs: read it as a sketch. It gives no verdicts.** " if runs.few else ""
    number = f"{len(private):,} private runs on {', '.join(runs.networks)}"
    pictures = [
        _picture("workflow", "Constraint-based discovery: order by order, then orientation (Figure 1)"),
        _picture("composition", "How constraint-based CURATE adds up its leakage (Figure 2)"),
    ]
    return f"""# The paper's experiments, run again

{sketch}Paper: Bhattacharjee and Tandon, *CURATE: Scaling-up Differentially Private Causal Graph Discovery*. This page
is made by `dpcurate reproduce` from `runs.parquet` ({number};
dpcurate {runs.rows[0]["version"]}) and is not edited by hand. The paper's tables and figures are pictures
whose numbers we do not have; its statements are compared instead, under every reading of its algorithms that we
know, the most literal one first.

{chr(10).join(pictures)}"""


def _settings(runs: Runs) -> str:
    rows = max(r["rows"] for r in runs.rows)
    readings = [
        *((LABELS["curate-pc"], name, words) for name, words in CURATE_READINGS.items()),
        *(("NOLEAKS, CURATE (score)", name, words) for name, words in SCORE_READINGS.items()),
        *((LABELS["em-pc"], name, words) for name, words in EM_READINGS.items()),
    ]
    return f"{SETTINGS.format(rows=f'{rows:,}')}\n{table(['method', 'reading', 'what it is'], readings)}"


# --- statements ------------------------------------------------------------------------------------------


def _statements(runs: Runs) -> str:
    lines = ["## Statements\n"]
    if runs.few:
        lines.append(
            f"No verdicts: they need {ENOUGH} runs or more of every cell. The sentences that a full run judges:\n"
        )
        lines += [f"{i}. {s.text} ({s.where})" for i, s in enumerate(STATEMENTS, 1)]
        return "\n".join([*lines, ""])
    lines += [VERDICTS, _overview(runs)]
    lines += [_statement(number, statement, runs) for number, statement in enumerate(STATEMENTS, 1)]
    return "\n".join(lines)


def _overview(runs: Runs) -> str:
    rows = [[str(i), s.text, literal(s, runs), conclusion(s, runs)] for i, s in enumerate(STATEMENTS, 1)]
    return table(["", "the paper states", "most literal reading", "what makes it true"], rows)


def _statement(number: int, statement: Statement, runs: Runs) -> str:
    lines = [f"### {number}. {statement.text}\n", f"*{statement.where}.* Compared: {statement.rule}\n"]
    lines += [_verdicts(statement, runs, metric, words) for metric, words in looked_at(statement).items()]
    return "\n".join([*lines, f"{statement.why}\n"])


def _verdicts(statement: Statement, runs: Runs, metric: str, words: str) -> str:
    """Readings down, parts and kinds of leakage across."""
    axes = axes_of(statement)
    columns = [(part, axis) for part in statement.parts for axis in axes]
    head = [f"{part}, {axis}" if len(axes) > 1 else part for part, axis in columns]
    rows = []
    for reading in statement.readings(runs):
        cells = [statement.verdict(runs, part, View(metric, axis, reading)) for part, axis in columns]
        rows.append([*([reading] if reading else []), *map(str, cells)])
    return table([*([f"{words}; reading"] if words else []), *head], rows)


# --- tables ----------------------------------------------------------------------------------------------


def _data(runs: Runs) -> str:
    rows = []
    for name in runs.networks:
        dag = networks.load(name).dag
        row = [name, str(len(dag.nodes)), str(len(dag.edges))]
        row += [_number(runs.exact(c, name)) for c in ("skeleton_f1", "arc_f1", "authors_f1")]
        row += [f"{runs.exact(c, name):.0f}" for c in ("counted", "answered")]
        row += [_number(runs.exact(c, name, "pc-g")) for c in ("skeleton_f1", "arc_f1")]
        rows.append(row)
    head = ["network", "nodes", "edges", "Kendall: skeleton", "arcs", "authors' list", "deletions", "answered tests"]
    text = (
        "F1 of non-private PC against the real network (skeleton, arcs) and against the arcs in the authors' code. "
        "Kendall at 0.05, levels in alphabetical order and the sequential loop are the published setting, and the run "
        "that the private methods are compared with; a G test at 0.01 stands beside it."
    )
    return f"## Data, and PC without privacy\n\n{text}\n\n{table([*head, 'G test: skeleton', 'arcs'], rows)}"


def _leakage(runs: Runs) -> str:
    lines = ["## F1 against total leakage\n"]
    for metric, words in METRICS.items():
        short = metric.removesuffix("_f1")
        lines.append(_picture(f"spent-{short}", f"F1 ({words}) at the leakage spent by the authors' count"))
    lines.append("### The same runs at the epsilon that is proved for their noise\n")
    for metric in ("pc_f1", "skeleton_f1"):
        words = f"F1 ({METRICS[metric]}) at the proved epsilon, our methods in the same picture"
        lines.append(_picture(f"proved-{metric.removesuffix('_f1')}", words))
    lines.append("Mean over runs of what was spent, and of the epsilon proved for the same noise (delta = 1e-10):\n")
    lines.append(table(["total", "method", *runs.networks], _leaked(runs)))
    return "\n".join(lines)


def _leaked(runs: Runs) -> Iterator[list[str]]:
    for target in runs.targets:
        for method, reading in _shown(runs):
            pairs = [[runs.of(c, n, method, target, reading) for c in ("claimed", "proved")] for n in runs.networks]
            cells = [f"{_large(spent)} / {_large(proved)}" for spent, proved in pairs]
            yield [f"{target:g}", _label(method, reading), *cells]


def _shown(runs: Runs) -> Iterator[tuple[str, str]]:
    """Published methods in their literal reading, CURATE also as its script."""
    for method in PUBLISHED:
        readings = runs.readings(method)
        yield from ((method, r) for r in readings if r == readings[0] or r == "script")


def _regimes(runs: Runs) -> str:
    shown = [t for t in REGIMES if t in runs.targets] or runs.targets
    lines = [f"## Mean and standard deviation of F1 at totals {', '.join(f'{t:g}' for t in shown)}\n"]
    lines.append(_picture("regimes", "Mean and standard deviation of F1 (arcs, non-private PC run)"))
    lines.append("Published methods at their nominal total, proved ones at their budget; in brackets the runs.\n")
    for metric, words in METRICS.items():
        rows = []
        for target in shown:
            for method, reading in [*_every(runs), *((m, "proved") for m in runs.methods("proved"))]:
                found = [runs.of(metric, n, method, target, reading) for n in runs.networks]
                rows.append([f"{target:g}", _label(method, reading), *(_spread(s) for s in found)])
        lines.append(f"### {words[0].upper()}{words[1:]}\n\n{table(['total', 'method', *runs.networks], rows)}")
    return "\n".join(lines)


def _every(runs: Runs) -> Iterator[tuple[str, str]]:
    for method in PUBLISHED:
        for reading in runs.readings(method):
            yield method, reading
        if method in ("noleaks", "curate-score"):
            yield method, "printed, threshold 0.3"


def _rates(runs: Runs) -> str:
    words = (
        "Precision and recall of arcs against the non-private PC run; a line runs from the least total to the largest"
    )
    rows = []
    for target in (t for t in REGIMES if t in runs.targets):
        for method, reading in _shown(runs):
            cells = []
            for network in runs.networks:
                p, r = (runs.of(c, network, method, target, reading) for c in ("pc_precision", "pc_recall"))
                cells.append(f"{_mean(p)} / {_mean(r)}")
            rows.append([f"{target:g}", _label(method, reading), *cells])
    body = table(["total", "precision / recall", *runs.networks], rows)
    return f"## Precision and recall\n\n{_picture('rates', words)}\n{body}"


def _tests(runs: Runs) -> str:
    both = [[f"{runs.exact(c, n):.0f}" for c in ("counted", "answered")] for n in runs.networks]
    rows = [[LABELS["pc-kendall"], *(" / ".join(pair) for pair in both)]]
    for method in CONSTRAINT:
        for reading in runs.readings(method):
            pairs = [[runs.of(c, n, method, TESTED, reading) for c in ("counted", "answered")] for n in runs.networks]
            cells = [" / ".join("-" if s is None else f"{s.mean:.0f}" for s in pair) for pair in pairs]
            rows.append([_label(method, reading), *cells])
    picture = _picture("tests", "Mean CI tests a run in the authors' unit (full) and answered (pale); lines: PC")
    body = table(["authors' unit / answered tests", *runs.networks], rows)
    return f"## CI tests at a total of {TESTED:g}\n\n{picture}\n{body}"


def _seconds(runs: Runs) -> str:
    rows = []
    for method in PUBLISHED:
        found = [runs.of("seconds", n, method, TESTED, kind="time") for n in runs.networks]
        rows.append([LABELS[method], *("-" if s is None else f"{50 * s.mean:.3g}" for s in found)])
    for method in runs.methods("proved"):
        found = [runs.of("seconds", n, method, TESTED, "proved") for n in runs.networks]
        rows.append([_label(method, "proved"), *("-" if s is None else f"{50 * s.mean:.3g}" for s in found)])
    text = (
        f"Our implementations at a total of {TESTED:g}, each run on a curator that has read nothing yet, two processes "
        "at a time; 50 times the mean of the runs that were timed."
    )
    picture = _picture("seconds", "Seconds a run of the published methods")
    return f"## Running time\n\n{text}\n\n{picture}\n{table(['seconds for 50 runs', *runs.networks], rows)}"


# --- text ------------------------------------------------------------------------------------------------


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


def _picture(name: str, words: str) -> str:
    return f"![{words}](figures/{name}.png)\n\n*{words}.*\n"


def _label(method: str, reading: str) -> str:
    alone = reading in ("printed", "coded") and method not in ("curate-pc", "curate-score", "noleaks", "em-pc")
    return LABELS[method] if alone else f"{LABELS[method]}, {reading}"


def _number(value: float) -> str:
    return f"{value:.2f}" if math.isfinite(value) else "-"


def _mean(found: Summary | None) -> str:
    return "-" if found is None else f"{found.mean:.2f}"


def _spread(found: Summary | None) -> str:
    return "-" if found is None else f"{found.mean:.2f} ± {found.sd:.2f} ({found.runs})"


def _large(found: Summary | None) -> str:
    if found is None or math.isinf(found.mean):
        return "-"
    return f"{found.mean:,.0f}" if found.mean >= 100 else f"{found.mean:.3g}"


# --- the page's longer texts: settings, readings, the rule of verdicts, limits -------------------------

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

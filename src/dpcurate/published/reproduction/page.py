"""docs/paper.md: written from the Parquet file alone."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from dpcurate import networks
from dpcurate._files import save_text
from dpcurate.published.reproduction import figures
from dpcurate.published.reproduction.grid import CONSTRAINT, EM_READINGS, PUBLISHED, SCORE_READINGS, TESTED
from dpcurate.published.reproduction.readings import axes_of, conclusion, literal, looked_at
from dpcurate.published.reproduction.statement import Statement, View
from dpcurate.published.reproduction.statements import STATEMENTS
from dpcurate.published.reproduction.store import read_runs
from dpcurate.published.reproduction.summary import ENOUGH, LABELS, METRICS, Runs, Summary
from dpcurate.published.reproduction.texts import CURATE_READINGS, LIMITS, SCHEDULES, SETTINGS, VERDICTS

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

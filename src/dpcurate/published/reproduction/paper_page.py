"""docs/paper.md and its tables: written from the Parquet file of runs alone."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from dpcurate import networks
from dpcurate._files import save_text
from dpcurate._tables import csv_text
from dpcurate.published.reproduction import figures, texts
from dpcurate.published.reproduction.adaptive_comparisons import Gap, gaps
from dpcurate.published.reproduction.comparisons import (
    Statement,
    StatementVerdict,
    View,
    axes_of,
    literal,
    looked_at,
    otherwise,
)
from dpcurate.published.reproduction.grid import FAMILIES, NOMINAL, TESTED, CellKind
from dpcurate.published.reproduction.statements import STATEMENTS
from dpcurate.published.reproduction.store import ENOUGH, Provenance, Runs, provenance, read_runs

_PICTURE = re.compile(r"!\[.*\]\(figures/.*\)\n\n")


def write_page(parquet: Path, directory: Path, data: Path | None = None) -> list[Path]:
    """Figures and paper.md, and with enough runs the tables behind its verdicts in `data`; returns what was written."""
    runs, made = Runs(read_runs(parquet)), provenance(parquet)
    drawn = figures.draw(runs, directory / "figures")
    if not drawn:
        print("no figures: they need matplotlib (pip install matplotlib)")
    kept = directory if data is None else data
    tables = {"paper-verdicts.csv": verdict_rows(runs), "paper-gaps.csv": gap_rows(runs)}
    where = "" if kept == directory else f"{kept.relative_to(directory)}/"
    text = page(runs, made, drawn=bool(drawn), data=where)
    return [
        *drawn,
        _saved(directory / "paper.md", text),
        *(_saved(kept / name, csv_text(rows)) for name, rows in tables.items()),
    ]


def _saved(path: Path, text: str) -> Path:
    save_text(path, text)
    return path


def page(runs: Runs, made: Provenance | None = None, *, drawn: bool = True, data: str = "") -> str:
    """Write the page from recorded runs, with or without pictures; `data` is the folder of its tables."""
    parts = [_head(runs, made or Provenance()), texts.RULES.format(data=data)]
    for title, numbers, names, words in texts.SECTIONS:
        parts.append(f"## {title}\n")
        parts += [f"![{texts.PICTURES[name]}](figures/{name}.png)\n" for name in names]
        parts.append(words + "\n" if words else "")
        parts.append(_statements(runs, numbers))
        parts += [TABLES[name](runs) for name in names if name in TABLES]
    parts += [
        texts.SETTINGS,
        _run_counts(runs),
        _data(runs),
        texts.EXCEPTIONS,
        texts.READINGS,
        texts.SOURCES,
        texts.INVENTORY,
    ]
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(part for part in parts if part))
    return text if drawn else _PICTURE.sub("", text)


def _head(runs: Runs, made: Provenance) -> str:
    private = [r for r in runs.rows if r["kind"] not in ("exact", "schedule") and "threshold" not in r["reading"]]
    said = texts.FEW.format(enough=ENOUGH) if runs.few else conclusions(runs)
    return texts.HEAD.format(
        number=f"{len(private):,}", networks=len(runs.networks), command=made.command, version=made.version,
        commit=made.commit, conclusions=said,
    )  # fmt: skip


# --- statements ------------------------------------------------------------------------------------------


def _statements(runs: Runs, numbers: Sequence[int]) -> str:
    head = ["", "the paper", "compared", "verdict"]
    rows = [_row(number, STATEMENTS[number - 1], runs) for number in numbers]
    return table(head, rows) if rows else ""


def _row(number: int, statement: Statement, runs: Runs) -> list[str]:
    if runs.few:
        return [str(number), f"“{statement.text}” ({statement.where})", statement.rule, "too few runs"]
    verdict = literal(statement, runs)
    other = otherwise(statement, runs)
    words = f"{verdict}. {other}" if other else f"{verdict}."
    return [str(number), f"“{statement.text}” ({statement.where})", statement.rule, words]


def verdict_rows(runs: Runs) -> Iterator[list[object]]:
    """Every statement under every reading, metric and kind of leakage."""
    yield ["statement", "part", "f1", "leakage", "reading", "verdict", "for", "against", "open", "where against"]
    for number, statement in enumerate(STATEMENTS if not runs.few else (), 1):
        for part in statement.parts:
            for metric in looked_at(statement):
                for axis in axes_of(statement):
                    for reading in statement.readings(runs):
                        found = statement.verdict(runs, part, View(metric, axis, reading))
                        yield [number, part, metric, axis, reading, found.word, *found.counts, "; ".join(found.against)]


COMPARED: tuple[CellKind, ...] = ("allocation", "proved allocation", "shape", "proved shape", "adaptive")


def gap_rows(runs: Runs) -> Iterator[list[object]]:
    """Every allocation against the first one of its kind: the differences of mean F1 and their 95 % intervals."""
    yield ["kind", "compared", "against", "f1", "network", "total", "spent", "spent by the other", "runs", "mean",
           "mean of the other", "gap", "low", "high"]  # fmt: skip
    for kind in COMPARED:
        first, *others = FAMILIES[kind].readings
        for other in others:
            for metric in ("pc_f1", "skeleton_f1"):
                for gap in gaps(runs, kind, other, first, metric):
                    yield [kind, other, first, metric, gap.network, gap.target, *_rounded(gap)]


def _rounded(gap: Gap) -> list[object]:
    low, high = gap.mean - gap.half, gap.mean + gap.half
    sizes = [round(x, 4) for x in (gap.ours.mean, gap.theirs.mean, gap.mean, low, high)]
    return [f"{gap.spent[0]:.4g}", f"{gap.spent[1]:.4g}", min(gap.ours.runs, gap.theirs.runs), *sizes]


# --- tables ----------------------------------------------------------------------------------------------


def _data(runs: Runs) -> str:
    rows = []
    for name in runs.networks:
        dag = networks.load(name).dag
        row = [name, str(len(dag.nodes)), str(len(dag.edges))]
        row += [_number(runs.exact(c, name)) for c in ("skeleton_f1", "arc_f1", "authors_f1")]
        row += [f"{runs.exact(c, name):.0f}" for c in ("counted", "answered")]
        rows.append(row)
    head = ["network", "nodes", "edges", "skeleton", "arcs", "authors' list", "deletions", "answered tests"]
    return f"{texts.DATA}\n{table(head, rows)}"


COUNTED: tuple[tuple[str, CellKind, str, str], ...] = (
    ("published", "private", "curate-pc", "printed"),
    ("EM-PC", "private", "em-pc", "coded"),
    ("other readings", "private", "curate-pc", "script"),
    ("proved forms", "private", "measure-once", "proved"),
    ("allocations", "allocation", "curate-pc", "OPT"),
    ("allocations, proved", "proved allocation", "curate-pc", "OPT"),
    ("schedules", "shape", "curate-score", "even"),
    ("increments", "increment", "curate-score", "even 0.01"),
    ("our default", "adaptive", "measure-once", "adaptive"),
)
"""What the table of runs counts: a label, and the cells that stand for it."""


def _run_counts(runs: Runs) -> str:
    rows = []
    for label, kind, method, reading in COUNTED:
        cells = []
        for network in runs.networks:
            found = runs.of("skeleton_f1", network, method, 1.0, reading, kind)
            cells.append("-" if found is None else str(found.runs))
        rows.append([label, *cells])
    return table(["runs per cell", *runs.networks], rows)


def _gap_table(runs: Runs, words: str, kind: CellKind, metric: str = "skeleton_f1", without: str = "") -> str:
    """Gaps to the first reading at equal leakage, averaged over the networks, by total."""
    family = FAMILIES[kind]
    first, *readings = family.readings
    others = [reading for reading in readings if reading != without]
    targets = [t for t in family.targets if any(g.target == t for g in gaps(runs, kind, others[0], first, metric))]
    rows = []
    for other in others:
        found = [g for g in gaps(runs, kind, other, first, metric) if g.equal or other == NOMINAL]
        cells = [_mean_gap([g for g in found if g.target == t]) for t in targets]
        rows.append([other, *cells])
    return f"{words}\n{table([f'minus {first}', *(f'{t:g}' for t in targets)], rows)}"


def _mean_gap(found: Sequence[Gap]) -> str:
    if not found:
        return "-"
    mean = sum(g.mean for g in found) / len(found)
    half = math.sqrt(sum(g.half**2 for g in found)) / len(found)
    return f"{mean:+.3f}±{half:.3f}"


def _other_tests(runs: Runs) -> str:
    rows = []
    family = FAMILIES["test"]
    for reading in family.readings:
        cells = []
        for target in family.targets:
            found = [runs.of("skeleton_f1", n, family.method, target, reading, "test") for n in runs.networks]
            there = [one.mean for one in found if one is not None]
            cells.append(_number(sum(there) / len(there)) if there else "-")
        rows.append([reading, *cells])
    return f"{texts.OTHER_TESTS}\n{table(['test', *(f'{t:g}' for t in family.targets)], rows)}"


def _tests(runs: Runs) -> str:
    rows = [["non-private PC", *(f"{runs.exact('answered', n):.0f}" for n in runs.networks)]]
    for reading in ("OPT", "uniform", "uniform, planned once", "order 0 only"):
        found = [runs.of("answered", n, "curate-pc", TESTED, reading, "allocation") for n in runs.networks]
        rows.append([f"Algorithm 1, {reading}", *("-" if s is None else f"{s.mean:.0f}" for s in found)])
    return f"{texts.TESTS}\n{table(['answered tests', *runs.networks], rows)}"


TABLES: Mapping[str, Callable[[Runs], str]] = {
    "allocation": partial(_gap_table, words=texts.GAPS, kind="allocation", metric="pc_f1", without="OPT, planned once"),
    "allocation-proved": partial(_gap_table, words=texts.PROVED_GAPS, kind="proved allocation"),
    "shapes": partial(_gap_table, words=texts.SHAPES, kind="shape"),
    "adaptive": partial(_gap_table, words=texts.ADAPTIVE_GAPS, kind="adaptive"),
    "spent-skeleton": _other_tests,
    "tests": _tests,
}
"""Tables that follow the pictures of their section."""


# --- text ------------------------------------------------------------------------------------------------


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


def _number(value: float) -> str:
    return f"{value:.2f}" if math.isfinite(value) else "-"


# --- the page's first lines: sentences of texts.py with the figures of this run -------------------------------------

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
        dip_before=_mean_of(runs, "pc_f1", "survey", 1.0, "OPT", "{:.2f}"),
        dip=_mean_of(runs, "pc_f1", "survey", 5.0, "OPT", "{:.2f}"),
        dip_front=_mean_of(runs, "pc_f1", "survey", 5.0, "order 0 only", "{:.2f}"),
        dip_share=_mean_of(runs, "first", "survey", 5.0, "OPT", "{:.0%}").replace("%", " %"),
        nominal=_mean_of(runs, "step", "child", 10.0, "uniform", "{:,.0f}"),
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


def _mean_of(runs: Runs, column: str, network: str, target: float, reading: str, form: str) -> str:
    """A number of Algorithm 1 with an allocation, a mean over runs."""
    found = runs.of(column, network, "curate-pc", target, reading, "allocation")
    return "-" if found is None else form.format(found.mean)


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

"""docs/performance.md and its figures, from the JSON files that the benchmarks leave in speed/, and nothing else.

python -m benchmarks.pages.performance [speed] [docs]
"""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Record = dict[str, Any]
DOCS = Path(__file__).resolve().parents[2] / "docs"
TOOLS = {
    "causal-learn": "causal-learn",
    "pgmpy": "pgmpy",
    "gcastle": "gCastle",
    "dpcurate, labels": "dpcurate, labels",
    "dpcurate, codes": "dpcurate, integers",
    "dpcurate, opened": "dpcurate, opened",
}
METHODS = {"auto": "private discovery, epsilon 1", "pc": "non-private PC"}

PEERS = """\
G test at {alpha}, {rows:,} rows, stable variant, one sample of each network, every tool in a process of its own,
imports and data in the form the tool wants ready. Seconds (median of three after the first call, below five seconds),
and peak memory of the process in MB. dpcurate three times: from a pandas frame of labels and from the integers that
causal-learn gets, both with opening the curator, and on an open curator. Run `python -m benchmarks.peers`.
"""
GROWTH = """\
Random networks of columns with 2 to 4 levels. Long tables are Parquet files, read where they are; wide ones are in
memory. Seconds, opening included (peak MB, passes over the file). Run `python -m benchmarks.growth`.
"""
ENGINES = """\
Our source encodes and checks every cell against the schema; the other side only counts. Target: at most 1.5 times.
Run `python -m benchmarks.engines`.
"""
TWINS = """\
100,000 rows in memory, opening included, median of five. The twin of a PC-like method is PC with Kendall's test,
of a descent NOTEARS on exact moments, of measure-once (the default) the same search on an unlimited budget. Target: at
most 2. PC-like methods draw secure noise for every test, which costs more than the test; NOLEAKS and CURATE's descent
go through the rows at every step, which moments do not.
Run `python -m benchmarks.twins`.
"""


def machine() -> str:
    """What the figures were measured on."""
    model = next((x.split(":", 1)[1].strip() for x in _lines("/proc/cpuinfo") if x.startswith("model name")), "")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{os.cpu_count()} cores of {model or platform.machine()}, {memory:.0f} GB of memory, "
        f"{platform.system()}, Python {platform.python_version()}"
    )


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="utf-8").splitlines()
    except OSError:
        return []


def read(folder: Path, name: str) -> Any:
    path = folder / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


# --- parts of the page ------------------------------------------------------------------------------


def peers(found: Any) -> Iterator[str]:
    rows = found["rows"]
    tools = [t for t in TOOLS if any(r["tool"] == t for r in rows)]
    yield "## Non-private PC against other packages\n"
    yield PEERS.format(**found["settings"])
    yield "| network (nodes) | " + " | ".join(TOOLS[t] for t in tools) + " | skeleton against causal-learn |"
    yield "|---" * (len(tools) + 2) + "|"
    for name in dict.fromkeys(r["network"] for r in rows):
        yield _peer_line([r for r in rows if r["network"] == name], tools)
    missing = sorted({f"{r['tool']}: {r['note']}" for r in rows if str(r.get("note", "")).startswith("not installed")})
    if missing:
        yield f"\nNot measured here: {'; '.join(missing)}."
    yield "\n" + "\n".join(_ratios(rows)) + "\n"
    yield from _accounts(found["differences"])


def _accounts(differences: list[Record]) -> Iterator[str]:
    """Where a skeleton differs from causal-learn's, and whether the tool's rules explain that."""
    if not differences:
        return
    told = [
        f"{TOOLS[one['tool']]} on {one['network']} (-{len(one['only_causal_learn'])}, +{len(one['only_tool'])})"
        for one in differences
    ]
    yield f"Other skeletons than causal-learn's (edges fewer, more): {', '.join(told)}."
    odd = [one for one in differences if not one["rules_give_both_skeletons"]]
    yield (
        "The tools' stated rules give exactly these."
        if not odd
        else "\n".join(f"* {one['network']}, {TOOLS[one['tool']]}: not explained: {one['note']}" for one in odd)
    )


def _peer_line(rows: list[Record], tools: list[str]) -> str:
    by_tool = {r["tool"]: r for r in rows}
    cells = [_timed(by_tool.get(t)) for t in tools]
    first = rows[0]
    same = {r["tool"]: r["same_as_causal_learn"] for r in rows}
    ours = {same.get(t) for t in tools if t.startswith("dpcurate")} - {None}
    verdict = "the same" if ours == {True} else "not known" if not ours else "differs"
    others = [TOOLS.get(t, t) for t, equal in same.items() if equal is False and not t.startswith("dpcurate")]
    note = f" ({', '.join(others)} differs)" if others else ""
    return f"| {first['network']} ({first['nodes']}) | " + " | ".join(cells) + f" | {verdict}{note} |"


def _timed(row: Record | None) -> str:
    if row is None:
        return ""
    if "seconds" not in row:
        return str(row.get("note", ""))
    return f"{row['seconds']:.3g} ({row['peak_mb']:.0f})"


def _ratios(rows: list[Record]) -> Iterator[str]:
    """How many times as fast as the fastest of the others."""
    yield "| times as fast as the fastest other | " + " | ".join(dict.fromkeys(r["network"] for r in rows)) + " |"
    yield "|---" * (len({r["network"] for r in rows}) + 1) + "|"
    for own in (t for t in TOOLS if t.startswith("dpcurate")):
        cells = []
        for name in dict.fromkeys(r["network"] for r in rows):
            times = {r["tool"]: r["seconds"] for r in rows if r["network"] == name and "seconds" in r}
            beside = [s for t, s in times.items() if not t.startswith("dpcurate")]
            cells.append(f"{min(beside) / times[own]:.1f}" if beside and own in times else "")
        yield f"| {TOOLS[own]} | " + " | ".join(cells) + " |"


def growth(rows: list[Record], drawn: bool) -> Iterator[str]:
    yield "\n## How cost grows\n"
    yield GROWTH
    for axis, title in (("rows", "rows"), ("columns", "columns")):
        if drawn:
            yield f"![Seconds and memory against {title}](figures/growth-{axis}.png)\n"
        yield f"| rows | columns | {' | '.join(METHODS.values())} |"
        yield "|---" * (len(METHODS) + 2) + "|"
        these = [r for r in rows if r["axis"] == axis]
        for count, columns in dict.fromkeys((r["rows"], r["columns"]) for r in these):
            by_method = {r["method"]: r for r in these if (r["rows"], r["columns"]) == (count, columns)}
            yield f"| {count:,} | {columns} | {' | '.join(_grown(by_method.get(m)) for m in METHODS)} |"
        yield ""


def _grown(row: Record | None) -> str:
    if row is None or "over" in row:
        return "" if row is None else f"> {row['over']}"
    return f"{row['open'] + row['fit']:.2f} ({row['peak_mb']:.0f}, {row['passes']})"


def engines(rows: list[Record]) -> Iterator[str]:
    yield "## Engines against the same counts by hand\n"
    yield ENGINES
    yield "| what | rows | ours | by hand | ratio |"
    yield "|---|---|---|---|---|"
    for r in rows:
        ours, other = r["ours"], r["theirs"]
        yield (
            f"| {r['what']} | {r['rows']:,} | {_timed(ours)} | {r['other']}: {_timed(other)} | "
            f"{ours['seconds'] / other['seconds']:.2f} |"
        )


def twins(rows: list[Record]) -> Iterator[str]:
    yield "\n## Private methods against their non-private twins\n"
    yield TWINS
    names = list(dict.fromkeys(r["network"] for r in rows))
    yield "| method | " + " | ".join(f"{n}: seconds, ratio" for n in names) + " |"
    yield "|---" * (len(names) + 1) + "|"
    for method in dict.fromkeys(r["method"] for r in rows):
        of = {r["network"]: r for r in rows if r["method"] == method}
        cells = [f"{of[n]['private']:.2f}, {of[n]['private'] / of[n]['twin']:.2f}" if n in of else "" for n in names]
        yield f"| {method} | " + " | ".join(cells) + " |"


# --- figures ----------------------------------------------------------------------------------------


def draw(rows: list[Record], axis: str, path: Path) -> None:
    """Seconds and peak memory, both axes logarithmic."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, (time, memory) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for (method, label), style in zip(METHODS.items(), ("-", "--"), strict=True):
        widths = sorted({r["columns"] for r in rows if r["axis"] == axis}) if axis == "rows" else [None]
        for width, colour in zip(widths, ("tab:blue", "tab:orange"), strict=False):
            some = [r for r in rows if r["axis"] == axis and r["method"] == method and "open" in r]
            some = [r for r in some if width in (None, r["columns"])]
            name = label + ("" if width is None else f", {width} columns")
            time.plot(
                [r[axis] for r in some],
                [r["open"] + r["fit"] for r in some],
                style,
                color=colour,
                marker="o",
                label=name,
            )
            memory.plot([r[axis] for r in some], [r["peak_mb"] for r in some], style, color=colour, marker="o")
    for axes, title in ((time, "seconds"), (memory, "peak memory, MB")):
        axes.set(xscale="log", xlabel=axis, title=title)
        axes.grid(alpha=0.3)
    time.set_yscale("log")
    memory.set_ylim(bottom=0)
    time.legend(fontsize="small")
    figure.savefig(path, dpi=130)
    plt.close(figure)


# --- the page ---------------------------------------------------------------------------------------


def page(folder: Path, docs: Path) -> str:
    parts = [
        "# Performance\n",
        f"Measured on {machine()}. Made by `make speed`. Times vary by a third between runs, ratios less.\n",
    ]
    found, grown = read(folder, "peers"), read(folder, "growth")
    if found:
        parts += peers(found)
    if grown:
        for axis in ("rows", "columns"):
            draw(grown, axis, docs / "figures" / f"growth-{axis}.png")
        parts += growth(grown, drawn=True)
    beside = [row for name in ("engines", "engines-spark", "engines-database") for row in read(folder, name) or []]
    parts += engines(beside) if beside else []
    own = read(folder, "twins")
    parts += twins(own) if own else []
    return "\n".join(parts) + "\n"


def publish(folder: Path = Path("speed"), docs: Path = DOCS) -> None:
    path = docs / "performance.md"
    path.write_text(page(folder, docs), encoding="utf-8")
    print(path)


if __name__ == "__main__":
    publish(*map(Path, sys.argv[1:]))

"""The page of confidence from runs: said against true, in groups, with intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import numpy as np

GROUPS = ((0.02, 0.2), (0.2, 0.5), (0.5, 0.8), (0.8, 0.95), (0.95, 1.01))
RESAMPLES = 400
HEAD = """# How true confidence is

What the default says of a pair, P(linked), and of an edge's direction, P(this way round), against the truth: {tables}
tables of {worlds} worlds ({names}), 10,000 and 100,000 rows, epsilon .1, 1 and 5, add-remove, delta = 1e-10. None of
these worlds or seeds was used to fit the weights (`KEPT`, `LEFT_OUT` in `learn/measure_once/confidence.py`), which are
of random worlds alone, seeds 2000 and up. A cell has the number of pairs, what was said on average, and the share that
is true with a 90 % interval over worlds drawn again with all their edges. A direction counts where the pair is truly
linked; 'true' is the arrow of the DAG that made the data, so an edge that no data can direct is right half the time.
Written by `python -m benchmarks.confidence --write docs/confidence.md`.

![said against true](figures/confidence.png)
"""

Judged = tuple[float, bool]
"""What was said, and what is true."""


def linked(run: dict) -> Iterator[Judged]:
    return ((p[0], p[1]) for p in run["pairs"])


def walked(run: dict) -> Iterator[Judged]:
    """The other way that was measured: P(edge) averaged over a walk on orders."""
    return ((p[4], p[1]) for p in run["pairs"])


def directed(run: dict) -> Iterator[Judged]:
    return ((p[2], p[3]) for p in run["pairs"] if p[3] is not None and p[5])


def page(runs: list[dict]) -> str:
    names = sorted({r["world"].rsplit("/", 1)[-1].split(".")[0] for r in runs})
    worlds = len({(r["world"], r["seed"]) for r in runs})
    parts = [HEAD.format(tables=len(runs), worlds=worlds, names=", ".join(names))]
    parts += ["## Is there a link?", *_table(runs, linked, GROUPS)]
    parts += ["## Which way round?", *_table(runs, directed, ((0.5, 0.6), (0.6, 0.8), *GROUPS[3:]))]
    parts += [
        "## The way that was not taken",
        "P(edge) averaged over a Metropolis walk on orders, which knows noise and sampling but not the search's own",
        "mistakes:",
        "",
        *_table(runs, walked, GROUPS, whole=True),
    ]
    return "\n".join(parts) + "\n"


def _table(runs: list[dict], of: Callable, groups: tuple, whole: bool = False) -> list[str]:
    heads = [f"{low:g} to {high:g}" if high < 1 else f"{low:g} and more" for low, high in groups]
    lines = ["", "| | " + " | ".join(heads) + " |", "|---" * (len(groups) + 1) + "|"]
    for name, these in _parts(runs):
        if not whole or name == "all":
            lines.append(f"| {name} | " + " | ".join(_cell(these, of, *group) for group in groups) + " |")
    return [*lines, ""]


def _parts(runs: list[dict]) -> Iterator[tuple[str, list[dict]]]:
    yield "all", runs
    yield "random worlds", [r for r in runs if r["world"] in RANDOM]
    yield "networks", [r for r in runs if r["world"] not in RANDOM]
    for epsilon, rows in product(sorted({r["epsilon"] for r in runs}), sorted({r["rows"] for r in runs})):
        yield f"epsilon {epsilon:g}, {rows:,} rows", [r for r in runs if (r["epsilon"], r["rows"]) == (epsilon, rows)]


RANDOM = ("dirichlet", "sharp", "linear", "mixed", "wide")


def _cell(runs: list[dict], of: Callable, low: float, high: float) -> str:
    sums = _by_world(runs, of, low, high)
    pairs, said, true = sums.sum(axis=0)
    if pairs < 1:
        return "-"
    draws = np.random.default_rng(0).integers(0, len(sums), (RESAMPLES, len(sums)))
    again = sums[draws].sum(axis=1)
    shares = again[again[:, 0] > 0]
    ends = np.quantile(shares[:, 2] / shares[:, 0], (0.05, 0.95))
    return f"{pairs:.0f}: {said / pairs:.3f}, {true / pairs:.3f} ({ends[0]:.2f} to {ends[1]:.2f})"


def _by_world(runs: list[dict], of: Callable, low: float, high: float) -> np.ndarray:
    """For each world: pairs, sum of what was said, number of true ones."""
    sums: dict[tuple, np.ndarray] = {}
    for run in runs:
        total = sums.setdefault((run["world"], run["seed"]), np.zeros(3))
        for said, true in of(run):
            if low <= said < high:
                total += (1, said, true)
    return np.array([*sums.values()]).reshape(-1, 3)


def plot(runs: list[dict], path: Path) -> None:
    """Two reliability diagrams, one point a tenth with its interval."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
    for ax, of, title, start in ((axes[0], linked, "linked", 0.0), (axes[1], directed, "this way round", 0.5)):
        ax.plot([start, 1], [start, 1], color="#888888", lw=1)
        edges = np.linspace(start, 1, 11)
        for low, high in zip(edges, [*edges[1:-1], 1.01], strict=False):
            _point(ax, _by_world(runs, of, low, high))
        ax.set(title=f"P({title})", xlabel="said", ylabel="true", xlim=(start, 1.01), ylim=(start - 0.02, 1.02))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def _point(ax, sums: np.ndarray) -> None:
    pairs, said, true = sums.sum(axis=0)
    if pairs < 5:
        return
    again = sums[np.random.default_rng(0).integers(0, len(sums), (RESAMPLES, len(sums)))].sum(axis=1)
    again = again[again[:, 0] > 0]
    low, high = np.quantile(again[:, 2] / again[:, 0], (0.05, 0.95))
    ax.plot([said / pairs] * 2, [low, high], color="#1f5fa8", lw=1.5)
    ax.plot([said / pairs], [true / pairs], "o", color="#1f5fa8", ms=3 + np.log10(pairs))

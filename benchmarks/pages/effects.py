"""The page of `benchmarks/effects.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

KINDS = {
    "network": "the six shipped networks",
    "dirichlet": "random networks of levels",
    "linear": "linear worlds of numbers",
    "bent": "numbers with bent links",
}
HEAD = """# Effects

`found.effect("smoke", "lung")` says what setting one column does to another: the total effect, by adjustment in the
found graph, from answers that were already released. It is free. `found.effects()` has one for every edge.

```python
import dpcurate

network = dpcurate.networks.load("asia")
found = dpcurate.discover(network.sample(100_000, seed=1), network.schema, epsilon=1, delta=1e-10)
effect = found.effect("smoke", "lung")
print(effect)  # smoke -> lung: yes instead of no raises P(lung = yes) by 0.092 (0.089 to 0.095); or no effect, if ...
effect.estimate, effect.error, effect.low, effect.high, effect.adjusted_for
print(found.effect("either", "xray").table)  # P(xray | do(either)) for every level, with errors
found.effect("smoke", "lung", to="no", instead_of="yes", level="no")
```

## What is computed
**The adjustment set** comes from the graph: the parents of what lies on the paths from cause to outcome (the set with
the least variance: Henckel, Perkovic and Maathuis 2022), the parents of the cause, or a part of these, whichever was
released and has the smallest error. Where a graph has lines, every choice of the cause's parents that some DAG of the
class has gives a possible effect (IDA; Maathuis, Kalisch and Buehlmann 2009). `effect.possible` lists them, and the
interval covers all of them. With `latent=True`, an effect is given where the generalised adjustment criterion
identifies it (Perkovic, Textor, Kalisch and Maathuis 2018).

**Levels.** The table of cause, outcome and adjustment set is built from released contrasts, and P(outcome | cause,
stratum) is averaged over strata. This is exact for any network, and needs the contrasts of all subsets of the columns.
Pairs are always there; larger sets are released around edges where noise is small. Otherwise the effect is *not
determined*, and `study.fit_model` (`dpcurate.quantify`) releases what is missing. A stratum hidden by noise widens the
interval by its share.

**Numbers.** A joint normal distribution is fitted that would have released the same answers. The effect is a regression
coefficient in it, the mean slope for one more unit of the cause. Where columns do not look normal, links may bend: *not
determined*.

**Numbers and levels together.** A table is simulated along each DAG that the graph leaves possible, such that it would
have released the same answers; then the cause is set in it ([models](models.md)). Each DAG takes a second or two.
Reports leave out effects that need many simulations, and say so; `found.effects()` has them. With hidden causes, or if
no DAG has the arrows that were found: *not determined*.

**The error** covers sampling and the noise of every answer that was used; intervals are 1.96 errors on either side.
They take the graph as true: a wrong arrow is not included.

## How often intervals cover the truth
"""


def page(cells: Sequence[Any]) -> str:
    """Coverage in the true graph and in the found one, by kind and epsilon."""
    tables = sorted({c.table for c in cells})
    intro = (
        f"{len(tables)} worlds of 100,000 rows, delta = 1e-10, whose effects are known; of every column on its "
        "descendants, at most 40 per world. A cell holds how many of the 95 % intervals cover the truth, their median "
        "half width, and in brackets the share of effects that are not determined. Numbers with bent links are there "
        "to be refused: where a bend between columns that look normal is not seen, the interval means nothing. Written "
        "by `python -m benchmarks.effects`; for tables that mix numbers and levels see [models](models.md).\n"
    )
    return "\n".join(
        [
            HEAD,
            intro,
            "### In the true graph",
            _table(cells, "true"),
            "### In the graph that was found",
            "Along its edges, of a line both ways; what the graph calls no effect counts as an interval at zero.\n",
            _table(cells, "found"),
        ]
    )


def _table(cells: Sequence[Any], graph: str) -> str:
    epsilons = sorted({c.epsilon for c in cells})
    lines = [f"| worlds | {' | '.join(f'epsilon {e:g}' for e in epsilons)} |", "|---" * (len(epsilons) + 1) + "|"]
    for kind, name in KINDS.items():
        rows = [[row for c in cells if (c.kind, c.epsilon) == (kind, e) for row in getattr(c, graph)] for e in epsilons]
        if any(rows):
            lines.append(f"| {name} | {' | '.join(map(_cell, rows))} |")
    return "\n".join(lines) + "\n"


def _cell(rows: Sequence[Sequence[Any]]) -> str:
    known = [row for row in rows if row[0] in ("estimated", "several", "none")]
    unknown = f"({1 - len(known) / max(len(rows), 1):.0%} of {len(rows)})"
    if not known:
        return unknown
    return f"{np.mean([row[1] for row in known]):.1%}, ±{np.median([row[2] for row in known]):.3g} {unknown}"

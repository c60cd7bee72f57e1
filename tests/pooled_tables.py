"""Tables at several sites, and the same rows in one table with a site column."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from dpcurate import Budget, Categorical, Curator, Numeric, Schema, Study, pool
from dpcurate.pooling import Pool

SCHEMA = Schema(
    (
        Categorical("a", ("x", "y", "z")),
        Categorical("b", ("no", "yes")),
        Numeric("n", 0, 10),
        Numeric("m", -5, 5, missing="own"),
    ),
    rows=200,
)
NAMES = ("Berlin", "Oslo", "Rome")
Table = dict[str, list[Any]]


def tables(seed: int, sizes: Sequence[int] = (120, 40, 75)) -> list[Table]:
    """A table for each site; the sites differ."""
    drawn = random.Random(seed)
    made = []
    for place, size in enumerate(sizes):
        a = drawn.choices("xyz", (3, 1 + place, 1), k=size)
        b = [drawn.choice(("no", "yes")) if x == "x" else "yes" for x in a]
        n = [drawn.uniform(0, 4 + 3 * place) for _ in a]
        m: list[float | None] = [drawn.gauss(place, 2) if drawn.random() < 0.9 else None for _ in a]
        made.append({"a": a, "b": b, "n": n, "m": m})
    return made


def united(some: Sequence[Table], names: Sequence[str] = NAMES) -> Table:
    """All rows in one table, with their site."""
    whole: Table = {"site": [name for name, one in zip(names, some, strict=True) for _ in one["a"]]}
    return whole | {c: [cell for one in some for cell in one[c]] for c in some[0]}


def with_site(schema: Schema, names: Sequence[str] = NAMES) -> Schema:
    return Schema((Categorical("site", tuple(names)), *schema.columns), rows=3 * (schema.rows or 0))


def pooled(some: Sequence[Table], names: Sequence[str] = NAMES, *, schema: Schema = SCHEMA, **known: Any) -> Pool:
    """An open pool of curators; by default without a limit."""
    known.setdefault("budget", Budget.unlimited())
    curators = [Curator(one, schema, **known) for one in some]
    study = pool({name: Study.over(one) for name, one in zip(names, curators, strict=True)})
    keeper = study.opened()
    assert isinstance(keeper, Pool)
    return keeper

"""One call from a table to a graph with its evidence and its privacy statement."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from dpcurate.accounting import Privacy
from dpcurate.allowance import Allowance
from dpcurate.errors import BudgetExceeded
from dpcurate.graphs.formats import dumps, save
from dpcurate.graphs.graph import Cpdag, Dag
from dpcurate.graphs.knowledge import Knowledge
from dpcurate.learn import methods
from dpcurate.learn.methods import Method
from dpcurate.learn.outcome import Learned, Pair
from dpcurate.learn.verdict import Verdict, verdict_on
from dpcurate.queries import Queryable
from dpcurate.queryables import Notice, Watched, limited
from dpcurate.schema import Neighbours, Schema


@dataclass(frozen=True, slots=True)
class FoundEdge:
    """An edge of the graph: `a -> b` if directed, `a -- b` otherwise, with its confidence if known."""

    a: str
    b: str
    directed: bool
    confidence: float | None

    def __str__(self) -> str:
        sure = "" if self.confidence is None else f"  ({self.confidence:.2f})"
        return f"{self.a} {'->' if self.directed else '--'} {self.b}{sure}"


@dataclass(frozen=True)
class Discovery:
    """What was found: the graph, how sure it is, what it cost, and what was left undone."""

    learned: Learned
    privacy: Privacy
    method: str
    schema: Schema
    knowledge: Knowledge | None = None
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def graph(self) -> Cpdag | Dag:
        """Arrows and undecided lines, with `to_networkx()` and `edges`."""
        return self.learned.graph

    @property
    def confidence(self) -> Mapping[Pair, float]:
        """Probability that a pair is adjacent, where the method has one."""
        return self.learned.linked

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences the reader should know."""
        return self.learned.notes

    @cached_property
    def verdict(self) -> Verdict | None:
        """What such a run could see, from released numbers alone; None where the method does not know its noise."""
        noise, columns = self.learned.noise, len(self.schema.names)
        return None if noise is None else verdict_on(noise, columns=columns, declared=self.schema.rows)

    @cached_property
    def edges(self) -> tuple[FoundEdge, ...]:
        """Edges in the columns' order."""
        place = {name: i for i, name in enumerate(self.graph.nodes)}
        edges = [(a, b, True) for a, b in self.graph.arrows]
        for line in self.graph.lines:
            a, b = sorted(line, key=place.__getitem__)
            edges.append((a, b, False))
        edges.sort(key=lambda e: (place[e[0]], place[e[1]]))
        return tuple(FoundEdge(a, b, way, self.confidence.get(frozenset((a, b)))) for a, b, way in edges)

    def __str__(self) -> str:
        head = [f"{len(self.edges)} edges among {len(self.graph.nodes)} columns, by {self.method}", str(self.privacy)]
        verdict = () if self.verdict is None else self.verdict.lines
        return "\n".join([*verdict, *head, *(f"  {e}" for e in self.edges), *(f"note: {n}" for n in self.notes)])

    def to_dict(self) -> dict[str, Any]:
        """Everything public, as plain values."""
        p = self.privacy
        return {
            "graph": json.loads(dumps(self.graph, "json")),
            "edges": [{"a": e.a, "b": e.b, "directed": e.directed, "confidence": e.confidence} for e in self.edges],
            "verdict": None if self.verdict is None else asdict(self.verdict),
            "method": self.method,
            "privacy": {
                "private": p.private,
                "statement": str(p),
                "neighbours": p.neighbours,
                "unit": p.unit,
                "budget": {"epsilon": _number(p.budget.epsilon), "delta": p.delta, "rho": _number(p.budget.rho)},
                "spent": {"epsilon": _number(p.epsilon), "rho": _number(p.rho)},
                "spent_by_this_run": {"epsilon": _number(p.run_epsilon)},
                "events": len(p.events),
            },
            "tests": list(self.learned.tests),
            "unfinished": {str(o): [sorted(x) for x in left] for o, left in self.learned.unfinished.items()},
            "notes": list(self.notes),
            "schema": self.schema.hash,
            "versions": dict(self.versions),
        }

    def report(self, path: str | Path) -> Path:
        """Write a report; the suffix says which: .html, .json, .txt, or a graph format such as .dot."""
        target = Path(path)
        if target.suffix == ".json":
            target.write_text(json.dumps(self.to_dict(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        elif target.suffix == ".txt":
            target.write_text(f"{self}\n", encoding="utf-8")
        elif target.suffix in (".html", ".htm"):
            from dpcurate.report.page import page

            target.write_text(page(self), encoding="utf-8")
        else:
            save(self.graph, target)
        return target

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from dpcurate.report.notebook import discovery_html

        return discovery_html(self)

    def plot(self, ax: Any = None) -> Any:
        """Draw the graph with matplotlib, into `ax` if given; returns the axes."""
        from dpcurate.report.plot import plot

        return plot(self, ax)


def _number(value: float | None) -> float | None:
    """JSON has no infinity."""
    return None if value is None or math.isinf(value) else float(value)


def discover(
    data: Any,
    schema: Schema | str | Path | Mapping[str, Any],
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    method: str | Method = "auto",
    neighbours: Neighbours | str | None = None,
    knowledge: Knowledge | str | Path | None = None,
    ledger: str | Path | None = None,
    insecure_seed: int | None = None,
) -> Discovery:
    """Find which columns drive which, within a privacy budget.

    `data` is a frame or a path (see Curator), `method` a name (`dpcurate methods` lists them) or a recipe.
    Without a ledger the run may spend `epsilon` at `delta` (1e-10 when not given). A `ledger` that is not
    there is created with that budget; of one that exists the run spends at most `epsilon`, or all that is
    left when no epsilon is given. Published and non-private recipes run only on a curator that allows
    them: see `Curator` and a recipe's `fit`.
    """
    methods.check_keeps_budget(method)  # before the table is opened, as is a wrong name
    known = Knowledge.load(knowledge) if isinstance(knowledge, (str, Path)) else knowledge
    facts = Schema.of(schema)
    if known is not None:
        known.check(facts.names)
    allowance = Allowance.of(epsilon=epsilon, delta=delta, neighbours=neighbours, ledger=ledger)
    curator = allowance.open(data, facts, insecure_seed=insecure_seed)
    return fit(curator, method, known, share=allowance.share)


def fit(
    curator: Queryable,
    method: str | Method = "auto",
    knowledge: Knowledge | None = None,
    *,
    share: float | None = None,
    notice: Notice | None = None,
) -> Discovery:
    """The same on a curator that is already open.

    It may spend `share` of what is left, in the budget's currency, or all of it when that is not given.
    `notice` is told the stage and the number of tests before they are made.
    """
    from dpcurate import __version__

    chosen = methods.get(method)
    if curator.remaining <= 0:
        raise BudgetExceeded(
            "nothing is left of this table's budget, so nothing was read. `ledger show` says where it went"
        )
    before = curator.privacy().run or 0.0
    with limited(curator, share) as queryable:
        learned = chosen.fit(queryable if notice is None else Watched(queryable, notice), knowledge)
    name = method if isinstance(method, str) else type(chosen).__name__
    # The privacy statement comes after the block, which has given back what it did not use.
    privacy = curator.privacy()
    privacy = replace(privacy, run=None if privacy.run is None else privacy.run - before)
    return Discovery(learned, privacy, name, curator.schema, knowledge, {"dpcurate": __version__})

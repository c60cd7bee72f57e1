"""Whether effects in mixed tables are right: how often 95 % intervals hold what setting a column does.

    python -m benchmarks.mixed_effects [--kinds free free-found plain found skewed bent] [--worlds 50]
                                       [--epsilons 0.1 1 5] [--results FILE]

Worlds of numbers, ordinals and categories, 100,000 rows drawn anew for each epsilon, delta = 1e-10. Half of the budget
finds a graph, half goes to `quantify`; effects are those of the model of the true graph, of columns on what lies below
them, at most 8 of a world. *plain*: effects add up, behind a normal number, cuts or log odds. *skewed*: half of the
numbers are shown as their exponentials. *bent*: two parents of a number or ordinal act by their product too, which no
such model has. *found*: as plain, along the edges of the graph that was found. *free*, *free-found*: as plain and
found, but all of the budget finds the graph, and effects are computed from what that has released. What was run is kept
in a file and not run again; a change of the method asks for a new file.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.effects import as_usual, looked_at
from benchmarks.harness import command
from dpcurate import Budget, Curator, fit, networks, quantify
from dpcurate.benchmark.run_file import RunFile
from dpcurate.effects import Effect
from dpcurate.effects.in_graph import Effects
from dpcurate.networks.interventions import ancestors
from dpcurate.networks.mixed import MixedWorld

ROWS, DELTA, SHARE = 100_000, 1e-10, 0.5
MOST = 8
"""Effects looked at in one world."""
DRAWN, TURNS, SMOOTH = 150_000, 8, 2
"""Rows that tell the truth, and how often they are drawn anew: less often where no levels lie on the way."""
STEP = 0.15
"""How far a number is moved to either side, in standard deviations, for its mean slope."""
KINDS = {
    "free": {"margins": ("plain",)},
    "free-found": {"margins": ("plain",)},
    "plain": {"margins": ("plain",)},
    "found": {"margins": ("plain",)},
    "skewed": {"margins": ("plain", "skewed")},
    "bent": {"margins": ("plain",), "products": 1.0},
}


@dataclass(frozen=True, slots=True)
class Row:
    """One effect in one world."""

    kind: str
    world: int
    epsilon: float
    between: str
    """What the cause and the outcome are."""
    held: bool | None
    """Whether the interval holds the truth; None where nothing was said."""


def world(kind: str, number: int) -> MixedWorld:
    draw = random.Random(f"{kind} {number}")
    dag = networks.random_dag(draw.randint(4, 9), degree=draw.uniform(1.2, 3), seed=draw.randrange(10**6))
    return networks.random_mixed(dag, seed=draw.randrange(10**6), **KINDS[kind])  # type: ignore[arg-type]


def truth(of: MixedWorld, effect: Effect) -> float:
    """By setting the cause in the world itself."""
    at = 0 if effect.level is None else int(effect.level)
    turns = TURNS if effect.to is None and _coarse(of, effect) else SMOOTH
    return float(np.mean([_once(of, effect, at, turn) for turn in range(turns)]))


def _coarse(of: MixedWorld, effect: Effect) -> bool:
    """Whether a column of levels lies between cause and outcome, so that a small move changes few rows."""
    above = ancestors(of.dag)
    between = [x for x in above[effect.outcome] if effect.cause in above[x]]
    return any(of.columns[x].kind != "number" for x in between)


def _once(of: MixedWorld, effect: Effect, at: int, turn: int) -> float:
    settings: tuple[object, object] = str(effect.to), str(effect.instead_of)
    width = 1.0
    if effect.to is None:
        own = np.random.default_rng(turn).permutation(of.sample(DRAWN, seed=100 + turn)[effect.cause])
        step = STEP * float(own.std())
        settings, width = (own + step, own - step), 2 * step
    after, before = (of.expected(effect.outcome, DRAWN, seed=200 + turn, do={effect.cause: x})[at] for x in settings)
    return float(after - before) / width


def run(kind: str, number: int, epsilons: list[float]) -> Iterator[Row]:
    """One world at each epsilon."""
    of, known = world(kind, number), {}
    for i, epsilon in enumerate(epsilons):
        seed = 1000 * i + number
        budget = Budget(epsilon=epsilon, delta=DELTA)
        curator = Curator(of.sample(ROWS, seed=seed), of.schema, budget=budget, insecure_seed=seed)
        for effect in _told(kind, number, of, curator):
            between = f"{of.columns[effect.cause].kind} -> {of.columns[effect.outcome].kind}"
            yield Row(kind, number, epsilon, between, _held(of, effect, known))


def _told(kind: str, number: int, of: MixedWorld, curator: Curator) -> Iterator[Effect]:
    """Along the edges that were found, or of some columns in the true graph."""
    free = kind.startswith("free")
    found = fit(curator) if free else fit(curator, share=(1 - SHARE) * curator.remaining)
    if kind.endswith("found"):
        yield from (found if free else replace(found, model=quantify(found, curator))).effects()
        return
    given = Effects.of(of.dag, found.learned.released, of.schema) if free else quantify(found, curator, dag=of.dag)
    pairs = looked_at(of, str(number))
    for pair in random.Random(number).sample(pairs, k=min(MOST, len(pairs))):
        yield given.effect(*pair)


def _held(of: MixedWorld, effect: Effect, known: dict[object, float]) -> bool | None:
    if effect.low is None or effect.high is None:
        return None
    usually = as_usual(of, effect) if effect.state == "none" else effect
    key = usually.cause, usually.outcome, usually.to, usually.instead_of, usually.level
    known[key] = known[key] if key in known else truth(of, usually)
    close = 1e-3 if effect.low <= 0 <= effect.high else 0.0  # the found graph may be right that there is nothing
    return bool(effect.low - close <= known[key] <= effect.high + close)


def told(rows: list[Row]) -> str:
    """Coverage by kind and epsilon, then by what the columns are."""
    lines = [
        "| worlds | epsilon | effects | not determined | held by their 95 % interval |",
        "|---|---|---|---|---|",
    ]
    for kind in KINDS:
        for epsilon in sorted({r.epsilon for r in rows if r.kind == kind}):
            some = [r for r in rows if r.kind == kind and r.epsilon == epsilon]
            lines.append(_line(f"{len({r.world for r in some})} {kind}", epsilon, some))
    for between in sorted({r.between for r in rows if r.kind == "plain"}):
        for epsilon in sorted({r.epsilon for r in rows}):
            some = [r for r in rows if r.kind == "plain" and r.between == between and r.epsilon == epsilon]
            lines.append(_line(between, epsilon, some))
    return "\n".join(lines)


def _line(name: str, epsilon: float, rows: list[Row]) -> str:
    known = [r.held for r in rows if r.held is not None]
    held = f"{np.mean(known):.1%}" if known else ""
    return f"| {name} | {epsilon:g} | {len(rows)} | {1 - len(known) / max(len(rows), 1):.0%} | {held} |"


def main() -> None:
    words = command(__doc__, results="speed/mixed_effects.jsonl")
    words.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS))
    words.add_argument("--worlds", type=int, default=50)
    words.add_argument("--epsilons", nargs="+", type=float, default=[0.1, 1.0, 5.0])
    args = words.parse_args()
    results = RunFile(args.results, Row, lambda row: (row.kind, row.world))
    for kind in args.kinds:
        for number in range(args.worlds):
            if (kind, number) not in results:
                results.keep(*run(kind, number, args.epsilons))
    print(told(results.rows))


if __name__ == "__main__":
    main()

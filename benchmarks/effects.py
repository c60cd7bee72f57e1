"""Whether effects are right: how often 95 % intervals hold the effect that setting a column has in a known world.

    python -m benchmarks.effects [--kinds dirichlet linear ...] [--results FILE] [--write docs/effects.md]

Every world has 100,000 rows drawn anew for each epsilon. The default method runs once on them; effects are then
computed in the true graph, of every column on all that lie below it, and in the graph that was found, along its edges.
What was run is kept in a file and not run again; a change of the method asks for a new file.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.harness import command, tell
from benchmarks.pages.effects import page
from dpcurate import Budget, Curator, networks
from dpcurate.benchmark.run_file import RunFile
from dpcurate.effects.effect import Effect, usual
from dpcurate.effects.in_graph import Effects, directions
from dpcurate.graphs.graph import Dag
from dpcurate.networks import LinearWorld, Network
from dpcurate.networks.interventions import ancestors
from dpcurate.study.calls import fit

ROWS, EPSILONS, DELTA = 100_000, (0.1, 1.0, 5.0), 1e-10
MOST_PAIRS = 40
"""Effects looked at in one world."""
DRAWN = 200_000
"""Rows that tell the truth of a world that has no formula for it."""
STEP = 0.01
"""How far a number is moved, in its units."""
World = Any
"""Whatever has `dag`, `schema`, `sample` and `do`."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One world at one epsilon: of each effect its state, whether its interval holds the truth, and its half width."""

    table: str
    kind: str
    epsilon: float
    true: tuple[tuple[str, bool, float], ...]
    found: tuple[tuple[str, bool, float], ...]


def worlds() -> Iterator[tuple[str, str, Callable[[], World]]]:
    """Names, kinds, and how each is made."""
    for name in networks.SHIPPED:
        yield name, "network", lambda name=name: networks.load(name)
    for kind, (count, make) in RANDOM.items():
        for i in range(count):
            draw = random.Random(f"{kind}{i}")
            yield (
                f"{kind}{i}",
                kind,
                make(draw, networks.random_dag(draw.randint(4, 9), degree=draw.uniform(1.2, 3), seed=i)),
            )


def _dirichlet(draw: random.Random, dag: Dag) -> Callable[[], World]:
    spread, seed = float(np.exp(draw.uniform(-1, 1.5))), draw.randrange(10**6)
    return lambda: networks.random_network(dag, levels=(2, 4), concentration=spread, seed=seed)


def _linear(draw: random.Random, dag: Dag) -> Callable[[], World]:
    least, seed = draw.uniform(0.1, 0.5), draw.randrange(10**6)
    return lambda: networks.random_linear(dag, weights=(least, 1.0), variances=(0.5, 2.0), seed=seed)


def _bent(draw: random.Random, dag: Dag) -> Callable[[], World]:
    seed = draw.randrange(10**6)
    return lambda: networks.random_nonlinear(dag, seed=seed)


RANDOM = {"dirichlet": (50, _dirichlet), "linear": (50, _linear), "bent": (10, _bent)}
"""How many worlds of each kind, and how they are made."""


def truth(world: World, effect: Effect) -> float:
    """What setting the cause does in this world."""
    if isinstance(world, LinearWorld):
        return world.effect(effect.cause, effect.outcome)
    if isinstance(world, Network):
        at = world[effect.outcome].levels.index(str(effect.level))
        after, before = (world.do({effect.cause: x}).marginal([effect.outcome]) for x in _settings(effect))
        return float(after[at] - before[at])
    after, before = (_shown(world, effect, x) for x in _values(world, effect))
    return float((after - before).mean()) / (STEP if effect.to is None else 1.0)


def _settings(effect: Effect) -> tuple[str, str]:
    return str(effect.to), str(effect.instead_of)


def _values(world: World, effect: Effect) -> tuple[Any, Any]:
    """Two levels; or its own values, in another order, and a little more: the mean slope."""
    if effect.to is not None:
        return _settings(effect)
    own = np.random.default_rng(0).permutation(world.sample(DRAWN, seed=1)[effect.cause])
    return own + STEP, own


def _shown(world: World, effect: Effect, value: Any) -> Any:
    column = world.do({effect.cause: value}).sample(DRAWN, seed=2)[effect.outcome]
    return column.astype(float) if effect.level is None else (column == effect.level).astype(float)


def looked_at(world: World, name: str) -> list[tuple[str, str]]:
    """Causes with all that lies below them, some of a large world."""
    above = ancestors(world.dag)
    pairs = [(cause, outcome) for outcome in world.dag.nodes for cause in sorted(above[outcome])]
    random.Random(name).shuffle(pairs)
    return sorted(pairs[:MOST_PAIRS])


def run(name: str, kind: str, world: World, epsilon: float) -> Cell:
    """One discovery, and effects in the true graph and in the one it found."""
    seed = 1000 * EPSILONS.index(epsilon) + 7
    budget = Budget(epsilon=epsilon, delta=DELTA)
    found = fit(Curator(world.sample(ROWS, seed=seed), world.schema, budget=budget, insecure_seed=seed))
    given = Effects.of(world.dag, found.learned.released, world.schema)
    true = [_held(world, given.effect(*pair)) for pair in looked_at(world, name)]
    drawn = [_held(world, found.effect(*pair)) for pair in directions(found.graph)[:MOST_PAIRS]]
    return Cell(name, kind, epsilon, tuple(true), tuple(drawn))


def _held(world: World, effect: Effect) -> tuple[str, bool, float]:
    if effect.low is None or effect.high is None:
        return "not determined", False, 0.0
    if effect.state == "none":
        effect = as_usual(world, effect)
    value = truth(world, effect)
    close = 1e-9 if effect.state != "none" else 1e-3  # the found graph may be right that there is nothing
    return effect.state, bool(effect.low - close <= value <= effect.high + close), (effect.high - effect.low) / 2


def as_usual(world: World, effect: Effect) -> Effect:
    """What is not moved is compared at the usual levels."""
    cause, outcome = world.schema[effect.cause], world.schema[effect.outcome]
    to, instead_of = usual(cause.levels) if cause.has_levels else (None, None)
    level = usual(outcome.levels)[0] if outcome.has_levels else None
    return replace(effect, to=to, instead_of=instead_of, level=level)


def main() -> None:
    words = command(__doc__, results="speed/effects.jsonl", page="docs/effects.md")
    words.add_argument("--kinds", nargs="+", default=[], help="worlds of these kinds alone")
    args = words.parse_args()
    results = RunFile(args.results, Cell, lambda cell: (cell.table, cell.epsilon))
    for name, kind, make in worlds():
        missing = [e for e in EPSILONS if (name, e) not in results]
        if missing and (not args.kinds or kind in args.kinds):
            world = make()
            for epsilon in missing:
                results.keep(run(name, kind, world, epsilon))
            print(name, flush=True)
    tell(page(results.rows), args.write)


if __name__ == "__main__":
    main()

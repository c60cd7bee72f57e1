"""Several sites as one study: skeleton F1 of what is pooled, of one site alone and of one table with all rows.

    python -m benchmarks.pooling [--seeds 3] [--first 1] [--only networks small] [--write docs/pooling.md]

Fresh seeds of rows and noise (add-remove, delta = 1e-10); best-f1 cut, without edges of the site column. 'alone' is one
site, 'pooled' all sites with a site column, 'one round' the same by a single planned release, 'one table' all rows in
one table whose noise is that of the pooled answers, 'shared' all rows in one table at the full epsilon, which is the
noise of secure aggregation. Of sites that differ, also false edges beside one table with a site column, and how many of
the mechanisms that differ are named.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks import harness
from benchmarks.tables import linear, mixed
from dpcurate import Budget, Categorical, Curator, Schema, Study, networks, pool
from dpcurate.benchmark.run_file import RunFile, spread
from dpcurate.graphs.graph import Dag
from dpcurate.learn.methods import MeasureOnce
from dpcurate.networks import Network, Variable, random_dag, random_network

SIX = ("cancer", "earthquake", "survey", "asia", "sachs", "child")
DELTA = 1e-10
Table = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """One run: what was found, and what of the site column."""

    block: str
    world: str
    sites: int
    rows: int
    epsilon: float
    how: str
    seed: int
    hits: int
    kept: int
    true: int
    named: tuple[str, ...] = ()
    """Columns that an edge of the site column names as different."""
    changed: tuple[str, ...] = ()

    @property
    def f1(self) -> float:
        return 2 * self.hits / max(self.kept + self.true, 1)

    @property
    def key(self) -> tuple[Any, ...]:
        return self.block, self.world, self.sites, self.rows, self.epsilon, self.how, self.seed


@dataclass(frozen=True)
class World:
    """Tables of all sites, their schema, the true graph, and the columns whose mechanism differs between sites."""

    tables: Sequence[Table]
    schema: Schema
    dag: Dag
    changed: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"site{k}" for k in range(len(self.tables)))

    @property
    def united(self) -> Table:
        return {c: np.concatenate([np.asarray(t[c]) for t in self.tables]) for c in self.schema.names}


def even(table: Table, sites: int) -> list[Table]:
    return [{c: np.asarray(cells)[k::sites] for c, cells in table.items()} for k in range(sites)]


def world_of(block: str, name: str, sites: int, rows: int, seed: int) -> World:
    if block in ("networks", "small"):
        network = networks.load(name)
        return World(even(network.sample(rows * sites, seed=20_000 + seed), sites), network.schema, network.dag)
    if block == "numbers":
        made = {"linear": linear, "mixed": mixed}[name](12, rows * sites, seed)
        return World(even(made.table, sites), made.schema, made.dag)
    return differing(name, sites, rows, seed)


def differing(name: str, sites: int, rows: int, seed: int) -> World:
    """Random networks of eight columns; the last site has two other margins of roots, or one other mechanism."""
    dag = random_dag(8, degree=2.2, seed=seed)
    first = random_network(dag, levels=(2, 3), seed=seed)
    source = np.random.default_rng(seed)
    roots = [x for x in dag.nodes if not dag.parents(x)]
    inner = [x for x in dag.nodes if dag.parents(x)]
    changed = tuple(source.permutation(roots)[:2] if name == "margins" else source.permutation(inner)[:1])
    last = Network("other", tuple(_other(v, source) if v.name in changed else v for v in first.variables))
    drawn = [(last if k == sites - 1 else first).sample(rows, seed=100 * seed + k) for k in range(sites)]
    return World(drawn, first.schema, dag, tuple(map(str, changed)))


def _other(variable: Variable, source: np.random.Generator) -> Variable:
    return replace(variable, table=source.dirichlet(np.ones(len(variable.levels)), size=len(variable.table)))


def ran(block: str, name: str, sites: int, rows: int, epsilon: float, how: str, seed: int) -> Run:
    world = world_of(block, name, sites, rows, seed)
    budget = Budget(epsilon=epsilon, delta=DELTA)
    told = Run(block, name, sites, rows, epsilon, how, seed, 0, 0, len(world.dag.edges), changed=world.changed)
    if how == "alone":
        study = Study.over(Curator(world.tables[0], world.schema, budget=budget, insecure_seed=seed))
    elif how in ("pooled", "one round"):
        study = pool(
            {
                one: Study.over(Curator(table, world.schema, budget=budget, insecure_seed=1000 * seed + k))
                for k, (one, table) in enumerate(zip(world.names, world.tables, strict=True))
            }
        )
    elif how == "site column":
        table = {"site": np.repeat(world.names, [len(next(iter(t.values()))) for t in world.tables]), **world.united}
        schema = Schema((Categorical("site", world.names), *world.schema.columns))
        part = Budget(rho=float(budget.ceiling) / sites, delta=DELTA)
        study = Study.over(Curator(table, schema, budget=part, insecure_seed=seed))
    else:
        part = Budget(rho=float(budget.ceiling) / sites, delta=DELTA) if how == "one table" else budget
        study = Study.over(Curator(world.united, world.schema, budget=part, insecure_seed=seed))
    order = "site | *" if how == "site column" else None
    method: Any = MeasureOnce(releases="planned") if how == "one round" else "auto"
    found = study.discover(method=method, order=order).at("best-f1")
    own = {edge for edge in found.graph.edges if "site" not in edge}
    hits = len(own & set(world.dag.edges))
    named = sorted(x for edge in found.graph.edges - own for x in edge if x != "site")
    return replace(told, hits=hits, kept=len(own), named=tuple(named))


def jobs(args: Namespace) -> Iterator[tuple[Any, ...]]:
    for seed in range(args.first, args.first + args.seeds):
        if "networks" in args.only:
            for name in args.networks:
                for sites in (5, 20):
                    for epsilon in (0.1, 1.0):
                        for how in ("alone", "pooled", "one round", "one table", "shared"):
                            yield "networks", name, sites, 100_000 // sites, epsilon, how, seed
        if "small" in args.only:
            for name in ("asia", "sachs", "child"):
                for how in ("alone", "pooled", "one round", "one table", "shared"):
                    yield "small", name, 10, 1000, 1.0, how, seed
        if "numbers" in args.only:
            for name in ("linear", "mixed"):
                for how in ("alone", "pooled", "one table", "shared"):
                    yield "numbers", name, 10, 5000, 1.0, how, seed
    if "differ" in args.only:
        for seed in range(1, 11):
            for name in ("margins", "mechanism"):
                for how in ("pooled", "one table", "site column"):
                    yield "differ", name, 4, 20_000, 1.0, how, seed


def main() -> None:
    words = harness.command(__doc__, "speed/pooling.jsonl", "docs/pooling.md")
    words.add_argument("--seeds", type=int, default=3)
    words.add_argument("--first", type=int, default=1)
    words.add_argument("--workers", type=int, default=1)
    words.add_argument("--only", nargs="+", default=["networks", "small", "numbers", "differ"])
    words.add_argument("--networks", nargs="+", default=list(SIX))
    args = words.parse_args()
    results = RunFile(args.results, Run, lambda run: run.key)
    for run in spread(ran, [job for job in jobs(args) if job not in results], args.workers):
        results.keep(run)
    told = "\n".join(figures(results.rows))
    print(told)
    if args.write:
        before, _, rest = args.write.read_text(encoding="utf-8").partition(BEGINS)
        after = rest.partition(ENDS)[2]
        args.write.write_text(f"{before}{BEGINS}\n{told}\n{ENDS}{after}", encoding="utf-8")


# --- the page ---------------------------------------------------------------------------------------------------------

BEGINS, ENDS = "<!-- figures -->", "<!-- end of figures -->"
COLUMNS = ("alone", "pooled", "one round", "one table", "shared")
TITLES = {"alone": "one site alone", "pooled": "pooled", "one round": "in one round",
          "one table": "one table, same noise", "shared": "noise of one table"}  # fmt: skip
DIFFERING = {"pooled": "pooled", "site column": "one table with a site column, same noise",
             "one table": "one table without a site column, same noise"}  # fmt: skip
HEAD = """
Mean skeleton F1 over {seeds} tables of each kind (add-remove, delta = 1e-10, 'best-f1' threshold, edges of the site
left out; networks: {six}); standard errors are at most {largest:.3f}.
*One table, same noise* has all rows in one place, with the noise that the pooled answers have: the difference
to it is what pooling itself loses. *Noise of one table* is about what shared noise reaches. Written by
`python -m benchmarks.pooling --write docs/pooling.md`.
"""


def figures(runs: Sequence[Run]) -> Iterator[str]:
    """The section of the guide."""
    even = [r for r in runs if r.block != "differ"]
    if even:
        yield HEAD.format(seeds=_count(even), six=", ".join(SIX), largest=_largest_error(even))
        yield f"| table | sites | rows each | epsilon | {' | '.join(TITLES.values())} |"
        yield f"|---|---:|---:|---:|{'---:|' * len(COLUMNS)}"
        for (sites, rows, epsilon, block), some in _groups(even, lambda r: (r.sites, r.rows, r.epsilon, r.block)):
            by_world = _groups(some, lambda r: r.world)
            if block == "networks":
                yield _line(f"mean of {len(by_world)} networks", sites, rows, epsilon, some)
            for world, these in by_world if block != "networks" else ():
                yield _line(world, sites, rows, epsilon, these)
    differ = [r for r in runs if r.block == "differ"]
    if differ:
        yield from _of_differing(differ)


def _count(runs: Sequence[Run]) -> str:
    counts = {len({r.seed for r in some}) for _, some in _groups(runs, lambda r: (r.block, r.sites, r.epsilon, r.how))}
    return f"{min(counts)}" if len(counts) == 1 else f"{min(counts)} to {max(counts)}"


def _line(name: str, sites: int, rows: int, epsilon: float, runs: Sequence[Run]) -> str:
    cells = [_cell([r.f1 for r in runs if r.how == how]) for how in COLUMNS]
    return f"| {name} | {sites} | {rows:,} | {epsilon:g} | {' | '.join(cells)} |"


def _cell(f1: Sequence[float]) -> str:
    if not f1:
        return "-"
    return f"{np.mean(f1):.3f}"


def _largest_error(runs: Sequence[Run]) -> float:
    """Of the cells of the table: networks are averaged, worlds of the other blocks have a line each."""
    groups = _groups(runs, lambda r: (r.sites, r.rows, r.epsilon, r.how, r.block == "networks" or r.world))
    cells = [np.array([r.f1 for r in some]) for _, some in groups if len(some) > 1]
    return max((float(f1.std(ddof=1) / len(f1) ** 0.5) for f1 in cells), default=0.0)


def _of_differing(runs: Sequence[Run]) -> Iterator[str]:
    sites, rows, epsilon = runs[0].sites, runs[0].rows, runs[0].epsilon
    worlds = len({(r.world, r.seed) for r in runs})
    yield (
        f"\nSites that differ: {worlds} random networks of eight columns, {sites} sites of {rows:,} rows, epsilon = "
        f"{epsilon:g};\nthe last site has two other margins of roots, or one other mechanism. False edges are per "
        "table,\nthose of the site left out."
    )
    yield "\n| | skeleton F1 | false edges | differing mechanisms: precision | recall |\n|---|---:|---:|---:|---:|"
    for how in DIFFERING:
        some = [r for r in runs if r.how == how]
        if not some:
            continue
        title = {"pooled": "pooled", "site column": "one table with a site column, same noise"}.get(
            how, "one table without"
        )
        right = sum(len(set(r.named) & set(r.changed)) for r in some)
        named, changed = (sum(len(getattr(r, one)) for r in some) for one in ("named", "changed"))
        rates = ("-", "-") if how == "one table" else (f"{right / max(named, 1):.2f}", f"{right / changed:.2f}")
        false = np.mean([r.kept - r.hits for r in some])
        yield f"| {title} | {_cell([r.f1 for r in some])} | {false:.2f} | {' | '.join(rates)} |"


def _groups(runs: Sequence[Run], key: Callable[[Run], Any]) -> list[tuple[Any, list[Run]]]:
    found: dict[Any, list[Run]] = {}
    for run in runs:
        found.setdefault(key(run), []).append(run)
    return sorted(found.items(), key=lambda item: (_place(item[0]), item[0]))


def _place(name: Any) -> int:
    return SIX.index(name) if name in SIX else len(SIX)


if __name__ == "__main__":
    main()

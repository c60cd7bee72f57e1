"""Commands that touch no private data: methods, plan, diff, network, demo, audit, benchmark and reproduce."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dpcurate import Budget, Discovery, Inputs, OutputFolder, Plan, messages, methods, networks
from dpcurate import diff as difference
from dpcurate import plan as make_plan
from dpcurate.accounting import DELTA
from dpcurate.cli import discover
from dpcurate.cli.options import existing, load_schema
from dpcurate.cli.parser import build
from dpcurate.cli.terminal import Bar, Countdown, aligned, say, show
from dpcurate.errors import OutputError, QueryError

_COPY = {".parquet": "FORMAT parquet", ".csv": "FORMAT csv, HEADER true"}
DEMO_ROWS, DEMO_SEED = 100_000, 1
DEMO_TABLE, DEMO_SCHEMA = "asia.parquet", "asia.toml"
BENCHMARK_TABLE, BENCHMARK_RUNS = "benchmark.md", "runs.jsonl"


def list_methods(args: Namespace) -> None:
    """List the methods by group, or the settings of one of them."""
    if args.name is not None:
        recipe = methods.find(args.name, variant=args.variant).recipe
        show(aligned((name, "=", str(value)) for name, value in methods.settings_of(recipe).items()))
        about = getattr(recipe, "about_epsilon", "")
        if about:
            show(f"\n{about}")
        return
    rows: dict[str, list[tuple[str, ...]]] = {}
    entries = list(methods.listed(args.variant).values())
    for entry in entries:
        names = [one.name for one in entries if one.recipe == entry.recipe]
        if names[0] == entry.name:  # two names of one recipe are one entry
            rows.setdefault(entry.group, []).append((f"  {', '.join(names)}", entry.family, entry.needs, entry.about))
    lines = iter(aligned([row for group in rows.values() for row in group]).splitlines())
    for group, members in rows.items():
        show(f"{group}:")
        for _ in members:
            show(next(lines))


def plan(args: Namespace) -> None:
    """What accuracy to expect for each epsilon."""
    folder = None
    if args.output is not None:
        inputs = Inputs.of(schema=args.schema)
        folder = OutputFolder.of_file(args.output, inputs, force=args.force, suffixes=Plan.SUFFIXES)
    if args.accuracy is not None:
        Plan.check_accuracy(args.accuracy)
    else:
        say("add --accuracy 0.8 to see which epsilon is enough for a skeleton F1 of 0.8")
    countdown = Countdown(Bar())
    epsilons: dict[str, Any] = {} if args.epsilons is None else {"epsilons": args.epsilons}
    planned = make_plan(
        load_schema(args.schema), args.rows, **epsilons, order=args.order, methods=args.methods, sites=args.sites,
        worlds=args.worlds,
        seed=args.seed, delta=args.delta, neighbours=args.neighbours, workers=os.cpu_count() or 1, progress=countdown,
    )  # fmt: skip
    countdown.bar.clear()
    show(planned)
    if args.accuracy is not None:
        show(f"\n{planned.advice(args.accuracy)}")
    if folder is not None:
        text = planned.report_text(args.output, accuracy=args.accuracy)
        say(f"written: {folder.write(Path(args.output).name, text)}")


def diff(args: Namespace) -> None:
    """What changed between two results."""
    changes = difference(existing(args.first, "result"), existing(args.second, "result"))
    for line in changes.lines:
        show(messages.one_line(line))


# --- networks -----------------------------------------------------------------------------------------------


def list_networks(_args: Namespace) -> None:
    """List the networks and their sizes."""
    rows = [("name", "columns", "arrows", "parameters")]
    for name in networks.names():
        network = networks.load(name)
        rows.append((name, f"{len(network.nodes)}", f"{len(network.arcs)}", f"{network.parameters}"))
    show(aligned(rows, right=frozenset((1, 2, 3))))


def sample(args: Namespace) -> None:
    """Draw rows of a network into a file, and write its schema if wanted."""
    network = networks.load(args.name)
    target, source = Path(args.output), Inputs.of(network=args.name)
    folder = OutputFolder.of_file(target, source, force=args.force, suffixes=tuple(_COPY))
    of_schema = None
    if args.schema is not None:
        taken = Inputs((*source.files, ("file of the rows", args.output)))
        of_schema = OutputFolder.of_file(args.schema, taken, force=args.force)
    write_rows(network, folder, target.name, rows=args.rows, seed=args.seed)
    rows, columns = messages.how_many(args.rows, "row"), messages.how_many(len(network.nodes), "column")
    say(f"written: {target}, {rows} of {columns}")
    if of_schema is not None:
        schema = replace(network.schema, rows=args.rows)
        say(f"written: {of_schema.write(Path(args.schema).name, schema.dumps())}")


def write_rows(network: networks.Network, folder: OutputFolder, name: str, *, rows: int, seed: int) -> None:
    """A sample as Parquet or CSV; the suffix says which."""
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET pandas_analyze_sample = 0")  # text stays text
    connection.register("drawn", network.sample(rows, seed=seed))
    with TemporaryDirectory(prefix="dpcurate-") as private:  # DuckDB takes a path, and follows any link there
        draft = Path(private, "rows")
        place = str(draft).replace("'", "''")
        try:
            connection.execute(f"COPY (SELECT * FROM drawn) TO '{place}' ({_COPY[Path(name).suffix.lower()]})")
        except duckdb.Error as problem:
            raise OutputError(f"cannot write {str(folder.path / name)!r}: {problem}") from None
        folder.write_bytes(name, draft.read_bytes())


def demo(args: Namespace) -> None:
    """Draw rows of the Asia network, find its graph with epsilon = 1, say where the result is."""
    names = (*Discovery.FILES, DEMO_TABLE, DEMO_SCHEMA)
    folder = OutputFolder.made(args.output, names, Inputs(), force=args.force)
    asia = networks.load("asia")
    write_rows(asia, folder, DEMO_TABLE, rows=DEMO_ROWS, seed=DEMO_SEED)
    folder.write(DEMO_SCHEMA, replace(asia.schema, rows=DEMO_ROWS).dumps())
    table, schema = str(folder.path / DEMO_TABLE), str(folder.path / DEMO_SCHEMA)
    words = ["discover", table, "--schema", schema, "--epsilon", "1", "-o", str(folder.path)]
    words += ["--force"] * args.force
    say(f"$ dpcurate {' '.join(words)}")
    discover.run(build().parse_args(words))
    say(f"the true arrows of Asia: {', '.join(f'{a} -> {b}' for a, b in asia.arcs)}")
    say(f"open {folder.path / 'report.html'} in a browser")


# --- audits, the benchmark and the paper ----------------------------------------------------------------------


def audit(args: Namespace) -> None:
    """A lower bound on what a method reveals, compared with what it is charged."""
    if args.long:
        from dpcurate.audit.__main__ import main

        raise SystemExit(main([]))
    if args.method is None:
        raise QueryError("name a method to audit ('dpcurate methods' lists them), or use --long")
    from dpcurate import audit as audits

    if args.variant == "published":
        for result in audits.audit_published(args.method, seed=args.seed):
            show(result)
        return
    budget = Budget(epsilon=args.epsilon, delta=DELTA)
    power = audits.forecast(args.method, budget=budget, runs=args.runs, seed=args.seed)
    print(audits.power_sentence(power), file=sys.stderr)
    result = audits.audit(args.method, budget=budget, runs=args.runs, seed=args.seed, power=power)
    show(result)
    if result.accused:
        raise SystemExit(1)


def benchmark(args: Namespace) -> None:
    """Methods side by side on networks and random worlds."""
    from dpcurate import benchmark as benchmarks

    chosen = {name: value for name in ("methods", "worlds", "epsilons") if (value := getattr(args, name)) is not None}
    place = Path(args.output, BENCHMARK_RUNS)
    # A folder that holds runs is one that this command has written to before.
    folder = OutputFolder.made(args.output, (BENCHMARK_TABLE, BENCHMARK_RUNS), Inputs(), force=place.is_file())
    countdown = Countdown(Bar(), "runs")
    try:
        found = benchmarks.compare(
            **chosen, add=args.add, rows=args.rows, seeds=args.seeds, delta=args.delta, limit=args.limit,
            results=place, workers=args.workers, progress=countdown,
        )  # fmt: skip
    except KeyboardInterrupt:
        countdown.bar.clear()
        say("the same command goes on from here")
        raise
    countdown.bar.clear()
    show(found)
    written = folder.write(BENCHMARK_TABLE, f"{found}\n")
    say(f"written: {written}, {place}")


def reproduce(args: Namespace) -> None:
    """The paper's tables and figures."""
    from dpcurate.published.reproduction import main

    words = ["-o", args.output, "--workers", str(args.workers)]
    raise SystemExit(main([*words, *["--quick"] * args.quick, *["--fresh"] * args.fresh]))

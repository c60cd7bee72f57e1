"""What a service costs in time and space: one question, a whole run, many analysts at once, its start, its packages.

    python -m benchmarks.service [--seconds 60]

Every figure is measured against the same work on a table here, with a ledger in the same folder; the two take turns,
so that both see the same machine. Prints the table of docs/service-owner.md. Nothing here is a test.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import dpcurate
from benchmarks.harness import command, tell
from benchmarks.ports import free_port
from dpcurate import Budget, Curator, Study
from dpcurate.private.ledger import RunFacts
from dpcurate.queries import Counts, Gaussian, Release

ASKED = 200
RUNS = 7
ANALYSTS = 50
COUNTS = Counts(("Smoker",))


def main() -> None:
    words = command(__doc__)
    words.add_argument("--seconds", type=float, default=60.0, help="how long the analysts ask")
    args = words.parse_args()
    rows = ["| what | target | measured |", "|---|---|---|"]
    for name, measure in (
        ("start", start), ("one question", one_question), ("a run", a_run),
        ("many analysts", lambda: many_analysts(args.seconds)), ("packages", packages),
    ):  # fmt: skip
        print(f"{name} ...", file=sys.stderr, flush=True)
        rows += measure()
    tell("\n".join(rows), None)


# --- a service in a process of its own --------------------------------------------------------------------------------


@contextmanager
def served(network: str, rows: int, epsilon: float) -> Iterator[tuple[str, Path, float, int]]:
    """Its address, its folder, the seconds until it answered, and its process."""
    known = dpcurate.networks.load(network)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        table = known.sample(rows, seed=1)
        lines = [",".join(known.schema.names), *(",".join(map(str, row)) for row in zip(*table.values(), strict=True))]
        (folder / "t.csv").write_text("\n".join(lines) + "\n")
        known.schema.save(folder / "t.toml")
        budget = Budget(epsilon=epsilon, delta=1e-10)
        dpcurate.Ledger.create(
            folder / "t.ledger", table="t", neighbours="add-remove", budget=budget, schema=known.schema
        )
        port = free_port()
        begin = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", "dpcurate.cli", "serve", "t.csv", "--schema", "t.toml", "--ledger", "t.ledger",
             "--port", str(port)], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=os.environ,
        )  # fmt: skip
        try:
            for _ in range(600):
                with socket.socket() as reached:
                    if reached.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.02)
            yield f"http://127.0.0.1:{port}", folder, time.perf_counter() - begin, process.pid
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(60)
            assert process.stdout is not None
            process.stdout.close()


def token(folder: Path, name: str, epsilon: float) -> str:
    records = dpcurate.service.Records.open(folder / "t.ledger")
    try:
        return records.add_token(name, epsilon)
    finally:
        records.close()


def here(folder: Path, epsilon: float) -> Study:
    """The same table with a ledger of its own in the same folder."""
    budget = Budget(epsilon=epsilon, delta=1e-10)
    return Study.over(Curator(str(folder / "t.csv"), folder / "t.toml", budget=budget, ledger=folder / "here.ledger"))


# --- figures ----------------------------------------------------------------------------------------------------------


def start() -> list[str]:
    taken, opened = [], []
    for _ in range(3):
        with served("cancer", 1000, 4) as (_, folder, waited, _):
            taken.append(waited)
            begin = time.perf_counter()
            subprocess.run(
                [sys.executable, "-c", "import dpcurate; dpcurate.Curator('t.csv', 't.toml', ledger='x.ledger', "
                 "budget=dpcurate.Budget(epsilon=1, delta=1e-10))"], cwd=folder, check=True,
            )  # fmt: skip
            opened.append(time.perf_counter() - begin)
    more = statistics.median(taken) - statistics.median(opened)
    return [f"| start, beyond a process that opens the table | under 2 s | {more:.2f} s |"]


def one_question() -> list[str]:
    """A release of two counts in a run: the same number of charges and stored answers here and there."""
    with served("cancer", 10_000, 4) as (url, folder, _, pid):
        there = dpcurate.connect(url, token(folder, "alice", 3.9)).opened()
        local = here(folder, 4).opened()
        facts = RunFacts(command="a" * 64, method="benchmark", schema=local.schema.hash, by="")
        times: dict[str, list[float]] = {"here": [], "there": []}
        work: dict[str, float] = {"here": 0.0, "there": 0.0}
        with local.run(facts), there.run(facts):
            for turn in range(ASKED):
                query = Release(COUNTS, Gaussian(rho=1e-6 * (1 + turn)))
                for name, queryable in (("here", local), ("there", there)):
                    before = time.process_time() + processor_time(pid)
                    times[name].append(seconds(lambda one=queryable, what=query: one.ask(what)))
                    work[name] += time.process_time() + processor_time(pid) - before
    near, far = (statistics.median(times[name]) * 1000 for name in ("here", "there"))
    paired = statistics.median(b - a for a, b in zip(times["here"], times["there"], strict=True)) * 1000
    more = (work["there"] - work["here"]) * 1000 / ASKED
    return [
        f"| one question over loopback: overhead (median of {ASKED}; here {near:.1f} ms, there {far:.1f} ms) | "
        f"under 10 ms | {paired:.1f} ms |",
        f"| the same in processor time of client and service together | | {more:.1f} ms |",
    ]


def processor_time(pid: int) -> float:
    """Seconds of processor time of another process; 0 where the system does not say."""
    place = Path(f"/proc/{pid}/stat")
    if not place.exists():
        return 0.0
    user, system = place.read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def a_run() -> list[str]:
    ratios, taken = [], []
    with served("child", 20_000, 40) as (url, folder, _, _):
        there, local = dpcurate.connect(url, token(folder, "alice", 39)), here(folder, 40)
        for turn in range(RUNS):
            near, far = (
                seconds(lambda s=study, n=turn: s.discover(epsilon=1, purpose=f"turn {n}")) for study in (local, there)
            )
            ratios.append(far / near)
            taken.append(near)
    return [
        f"| the default method on Child, 20,000 rows (median of {RUNS}; here {statistics.median(taken):.2f} s) | "
        f"at most 1.2 times | {statistics.median(ratios):.2f} times |"
    ]


def many_analysts(most: float) -> list[str]:
    with served("cancer", 10_000, 4) as (url, folder, _, _):
        tokens = [token(folder, f"analyst-{i}", 3.9) for i in range(ANALYSTS)]
        taken: list[float] = []
        wrong: list[str] = []
        end = time.monotonic() + most

        def ask(given: str) -> None:
            study, turn = dpcurate.connect(url, given), 0
            while time.monotonic() < end:
                turn += 1
                try:
                    taken.append(
                        seconds(lambda n=turn: study.ask(Counts(("Smoker",)), epsilon=0.002, purpose=f"turn {n}"))
                    )
                except dpcurate.DpcurateError as error:
                    wrong.append(type(error).__name__)
                    return

        threads = [threading.Thread(target=ask, args=(given,)) for given in tokens]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        ledger = dpcurate.Ledger.open(folder / "t.ledger")
        done = sum(run.finished for run in ledger.log())
        assert ledger.spent <= float(ledger.budget.ceiling)
    p50, p99 = (sorted(taken)[round(part * (len(taken) - 1))] for part in (0.5, 0.99))
    return [
        f"| {ANALYSTS} analysts ask `Counts` at once for {most:g} s, each a run of its own: {len(taken):,} answered, "
        f"{done:,} runs in the ledger, refused or failed: {', '.join(wrong) or 'none'} | all answered or refused in "
        f"order | median {p50:.2f} s, p99 {p99:.2f} s |"
    ]


def packages() -> list[str]:
    """What the extras install besides the library's own dependencies."""
    found = []
    own = closure(["numpy", "scipy", "opendp", "duckdb", "networkx"])
    for extra, names in (
        ("service", ["starlette", "uvicorn", "jinja2", "python-multipart"]), ("remote", ["httpx"]),
    ):  # fmt: skip
        more = closure(names) - own
        size = sum(file_size(name) for name in more) / 1e6
        found.append(f"| the extra `{extra}`: {len(more)} packages | at most 10 MB | {size:.1f} MB |")
    return found


def closure(names: list[str]) -> set[str]:
    known: set[str] = set()
    todo = [name.lower() for name in names]
    while todo:
        name = todo.pop()
        if name in known:
            continue
        try:
            needs = distribution(name).requires or []
        except PackageNotFoundError:
            continue
        known.add(name)
        wanted = [need for need in needs if "extra ==" not in need and "python_version <" not in need]
        todo += [re.split(r"[^A-Za-z0-9._-]", need)[0].lower() for need in wanted]
    return known


def file_size(name: str) -> int:
    files = distribution(name).files or []
    return sum(Path(str(file.locate())).stat().st_size for file in files if Path(str(file.locate())).is_file())


def seconds(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


if __name__ == "__main__":
    main()

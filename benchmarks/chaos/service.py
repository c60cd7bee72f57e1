"""Kill a service and its clients at random instants, and let analysts race for the last of their shares.

    python -m benchmarks.chaos.service [--kills 2000] [--races 300] [--seed 0] [--page docs/reliability.md]
    python -m benchmarks.chaos.service --self-test

A client writes down each question before it asks and each answer after it has it, in a file that a kill cannot undo
(diary.py), and does its work again until it is done. Then the ledger is opened by a process of its own: every answer
is stored in it, exactly as the client got it, whenever it got it; every run was paid for once, whatever was killed; no
share and no ceiling is exceeded. Servers and clients are forks of one process that has imported everything and opened
nothing. Some servers are killed just before a statement of SQLite or a send on a socket, the others, and clients, at a
random moment. Ends with 1 if there is a fault, with 2 if something did not come to an end.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from importlib import import_module
from math import isclose
from pathlib import Path
from typing import Any

from benchmarks.chaos import service_page
from benchmarks.chaos.arena import Arena, Child, Unfinished, apart, fork
from benchmarks.chaos.diary import Diary
from benchmarks.chaos.worker import LEVELS, TABLE
from benchmarks.ports import free_port

ASKS = 8
"""Questions of one run."""
COST = 1.0 / (1 << 12)
"""Of each of them, in rho: what it is charged is the cost of the noise that is drawn, which is a little less."""
NEAR = 1e-9
SCENE = 12
"""Kills on one ledger."""
ATTEMPTS = 60
"""How often a client begins again before its run counts as one that cannot be resumed."""
CALLS = ("execute", "send", "sendall", "close", "unlink", "stat")
"""Functions of C before which a server may be killed."""
SHARES = {"alice": 0.3, "bob": 0.7}
QUESTIONS = (("a",), ("a", "b"), ("c",), ("b", "c"), ("a", "c"))
IMPORTS = (
    "dpcurate.private.curator", "dpcurate.service.app", "dpcurate.service.host", "dpcurate.remote.connect", "uvicorn",
    "uvicorn.lifespan.on", "uvicorn.loops.auto", "uvicorn.protocols.http.h11_impl", "httpx", "duckdb", "opendp.prelude",
    "polars", "asyncio", "anyio._backends._asyncio", "scipy.optimize",
)  # fmt: skip


# --- the server -----------------------------------------------------------------------------------------------------


def prepare(folder: Path, rho: float, tokens: dict[str, tuple[float, bool]]) -> dict[str, str]:
    """A ledger with shares of its ceiling; the token of each analyst."""
    from dpcurate.accounting import Budget
    from dpcurate.private.ledger import Ledger
    from dpcurate.schema import Schema
    from dpcurate.service.records import Records, hash_of

    budget, schema = Budget(rho=rho, delta=1e-9), Schema.of(LEVELS)
    ledger = Ledger.create(folder / "l", table="chaos", neighbours="add-remove", schema=schema, budget=budget)
    Records.open(folder / "l")
    known = {}
    for name, (share, reserved) in tokens.items():
        known[name] = f"token-of-{name}-{'x' * 32}"
        ledger.grant(name, Fraction(share) * Fraction(rho), reserved=reserved, token=hash_of(known[name]))
    return known


def serve(folder: Path, port: int, pipe: int, stop_at: int | None) -> None:
    """A service in this process, until it is killed.

    `stop_at` counts calls of C before which it kills itself; below 0 they count from its start, else from when it is
    ready.
    """
    import uvicorn

    from dpcurate import Curator
    from dpcurate.service.app import create_app
    from dpcurate.service.host import ServiceHost, ServiceSettings
    from dpcurate.service.limits import Limits
    from dpcurate.service.records import Records

    if stop_at is not None and stop_at < 0:
        _kill_at_call(-stop_at)
    settings = ServiceSettings(limits=Limits(at_once=20))
    host = ServiceHost(Curator(TABLE, LEVELS, ledger=folder / "l"), Records.open(folder / "l"), settings)

    class Server(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            os.write(pipe, b"r")
            if stop_at is not None and stop_at >= 0:
                _kill_at_call(stop_at)

    config = uvicorn.Config(create_app(host), port=port, log_level="critical", http="h11", ws="none", lifespan="on")
    Server(config).run()


def _kill_at_call(number: int) -> None:
    left = [number]

    def watch(_frame: Any, event: str, called: Any) -> None:
        if event == "c_call" and getattr(called, "__name__", "") in CALLS:
            left[0] -= 1
            if left[0] <= 0:
                os.kill(os.getpid(), signal.SIGKILL)

    threading.setprofile(watch)
    sys.setprofile(watch)


# --- the client -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Job:
    """A run of an analyst: some questions one after the other, or a discovery."""

    who: str
    token: str
    number: int
    kind: str = "asks"

    @property
    def name(self) -> str:
        return f"{self.who}.{self.number}"

    @property
    def command(self) -> str:
        return hashlib.sha256(self.name.encode()).hexdigest()


def work(job: Job, port: int, diary: Diary) -> None:
    """Do the job until it is done; an interruption is tried again, as a person would."""
    from dpcurate.errors import DpcurateError

    for _ in range(ATTEMPTS):
        try:
            KINDS[job.kind](job, port, diary)
            diary.write("done", [job.name])
            return
        except DpcurateError as problem:
            diary.write("interrupted", [f"{job.name} {type(problem).__name__}: {str(problem).splitlines()[0][:150]}"])
            time.sleep(0.05)
        except Exception as problem:
            diary.write("trace", [f"{job.name} {type(problem).__name__}: {problem}".splitlines()[0][:300]])
            return


def asks(job: Job, port: int, diary: Diary) -> None:
    """One run of a few releases, each written down with what was answered."""
    curator = _connected(job, port)
    with curator.run(_facts(job, curator.schema.hash), share=ASKS * COST):
        for number in range(ASKS):
            _asked(curator, job, number, diary)


def _asked(curator: Any, job: Job, number: int, diary: Diary) -> None:
    from dpcurate.queries import Counts, Gaussian, Release

    diary.write("asked", [f"{job.name}.{number}"])
    answer = curator.ask(Release(Counts(QUESTIONS[number % len(QUESTIONS)]), Gaussian(rho=COST)))
    diary.write("answered", [f"{job.name}.{number}={_digest(answer)}"])


def discovers(job: Job, port: int, diary: Diary) -> None:
    """A run of the default method; what it drew is written down."""
    from dpcurate.study.study import Study

    share = ASKS * COST * (1 - job.number / 100)  # or two jobs would be one command, and either would resume the other
    found = Study.over(_connected(job, port)).discover(share=share, purpose=job.name)
    diary.write("found", [f"{job.name}={hashlib.sha256(str(found.pairs).encode()).hexdigest()[:16]}"])


KINDS: dict[str, Callable[[Job, int, Diary], None]] = {"asks": asks, "discovers": discovers}


def _connected(job: Job, port: int) -> Any:
    from dpcurate.remote.connection import Connection
    from dpcurate.remote.remote_curator import RemoteCurator

    return RemoteCurator(Connection(f"http://127.0.0.1:{port}", job.token, patience=20.0))


def _facts(job: Job, schema: str) -> Any:
    from dpcurate.private.ledger import RunFacts

    return RunFacts(command=job.command, method="ask", schema=schema, by="", purpose=job.name, epsilon=None)


def _digest(answer: Any) -> str:
    return hashlib.sha256(b"".join(part.tobytes() for part in answer.parts)).hexdigest()[:16]


# --- what the ledger says -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Books:
    """What an opening of the ledger showed."""

    spent: Fraction = Fraction(0)
    ceiling: Fraction = Fraction(0)
    events: Fraction = Fraction(0)
    reserved: Fraction = Fraction(0)
    shares: tuple[tuple[str, Fraction, Fraction], ...] = ()
    runs: tuple[tuple[int, str, str, str, Fraction, int], ...] = ()
    """Number, by, purpose, outcome, what it was charged, and how many answers are stored."""
    stored: tuple[tuple[int, str], ...] = ()
    """Run, and digest of a stored answer."""
    log: str = ""
    trouble: str = ""


def books(path: Path) -> Books:
    """Open the ledger and its log, and read all of both."""
    from dpcurate.errors import DpcurateError
    from dpcurate.private.ledger import Ledger
    from dpcurate.private.ledger import format as form
    from dpcurate.private.ledger.disk_store import stored_runs
    from dpcurate.private.ledger.units import UNIT, round_down
    from dpcurate.queries import Answer, encoding
    from dpcurate.service.records import Records

    try:
        ledger = Ledger.open(path)
        with ledger._store._file.reading() as connection:  # noqa: SLF001 - in exact units, all of one instant
            held = sum(form.holds(connection))
            spent = int(form.read_book(connection)["spent"])
        stored = [
            (number, _digest(answer))
            for number, run in stored_runs(path).items()
            for _, body in run.answers.values()
            for _, answer in encoding.decode(body)
            if isinstance(answer, Answer)
        ]
        runs = [
            (one.number, one.facts.by, one.facts.purpose, one.outcome, one.units * UNIT, one.answers)
            for one in ledger.log()
        ]
        records = Records.open(path)
        records.verify()
        return Books(
            spent * UNIT, round_down(ledger.budget.ceiling) * UNIT,
            sum((Fraction(event.cost.rho) for event in ledger.events), Fraction(0)), held * UNIT,
            tuple((s.name, s.used * UNIT, s.units * UNIT) for s in ledger.shares), tuple(runs), tuple(stored),
            log="whole",
        )  # fmt: skip
    except DpcurateError as problem:
        return Books(trouble=f"the ledger is refused: {problem}")
    except Exception as problem:
        return Books(trouble=f"a trace: {type(problem).__name__}: {problem}")


def judged(now: Books, before: Books | None, diary: Diary) -> Iterator[str]:
    """What must hold at every instant."""
    if now.trouble:
        yield now.trouble
        return
    yield from (f"a client's trace: {text}" for text in diary.read("trace"))
    if now.spent > now.ceiling:
        yield f"the ceiling is exceeded: {float(now.spent)} of {float(now.ceiling)}"
    if now.spent != now.events + now.reserved:
        yield f"the total {float(now.spent)} is not the sum of events and open blocks"
    for name, used, ceiling in now.shares:
        if used > ceiling:
            yield f"the share of {name} is exceeded: {float(used)} of {float(ceiling)}"
    charged: Counter[str] = Counter()
    for _, by, _, _, units, _ in now.runs:
        charged[by] += units
    for name, used, _ in now.shares:
        if used != charged[name]:
            yield f"the share of {name} has spent {float(used)}, and its runs {float(charged[name])}"
    stored = {digest for _, digest in now.stored}
    given = [one.partition("=")[2] for one in diary.read("answered")]
    unpaid = sum(digest not in stored for digest in given)
    if unpaid:
        yield f"{unpaid} answers that were given are not stored, so nobody knows that they were paid for"
    if before is not None and not before.trouble:
        if now.spent < before.spent:
            yield "a payment is lost"
        if set(before.stored) - set(now.stored):
            yield "a stored answer is lost"


def settled(now: Books, jobs: list[Job], diary: Diary) -> Iterator[str]:
    """What must hold when every job was done again until it ended."""
    answers: dict[str, set[str]] = {}
    for one in diary.read("answered"):
        name, _, digest = one.partition("=")
        answers.setdefault(name, set()).add(digest)
    paying = Counter(run[2] for run in now.runs if run[4] > 0)  # a job that began another run has paid for each
    for name, digests in answers.items():
        times = paying[name.rpartition(".")[0]]
        if len(digests) > times:
            yield f"question {name} has {len(digests)} answers, and was paid for {times} times"
    done = diary.read("done")
    for job in jobs:
        mine = [run for run in now.runs if run[1] == job.who and run[2] == job.name]
        paid = [(run[3], float(run[4] / Fraction(COST))) for run in mine if run[4] > 0]
        # A client that is killed after the end of its run, and before it has written that down, begins another one.
        before = [outcome for outcome, _ in paid[:-1] if outcome != "finished"]
        if not done[job.name]:
            yield f"{job.name} was neither resumed nor finished: {[run[3] for run in mine]}"
        elif not paid or before:
            yield f"{job.name} has paid in {len(paid)} runs, of which {len(before)} were not resumed"
        for _, questions in paid:
            if job.kind == "asks" and not isclose(questions, ASKS, rel_tol=NEAR):
                yield f"a run of {job.name} has paid {questions} questions of {ASKS}"
            if job.kind == "discovers" and questions > ASKS:
                yield f"a run of {job.name} has paid as much as {questions} questions, of at most {ASKS}"


# --- kills ----------------------------------------------------------------------------------------------------------


@dataclass
class Scene:
    """One ledger, its server and its clients."""

    arena: Arena
    folder: Path
    diary: Diary
    port: int
    server: Child | None = None
    calm: bool = False
    doomed: bool = False
    """Whether the server will kill itself before some call."""
    clients: dict[Job, Child] = field(default_factory=dict)

    def start(self, *, calm: bool) -> None:
        """A server, which in half of the cases kills itself before some call, unless all shall be calm."""
        rng, self.calm = self.arena.rng, calm
        self.doomed = not calm and rng.random() < 0.6
        stop_at = None
        if self.doomed:
            stop_at = -rng.randint(1, 400) if rng.random() < 0.15 else int(rng.triangular(1, 400, 30))
        self.server = fork(lambda pipe: serve(self.folder, self.port, pipe, stop_at), self.arena.broken)
        if not self.server.hear(1):
            self._gone("while starting")

    def _gone(self, where: str) -> None:
        """The server has killed itself before a call."""
        assert self.server is not None
        self.server.kill()
        self.arena.tried["kills of servers before a call"] += 1
        if where:
            self.arena.tried[f"of them {where}"] += 1
        self.server = None

    def alive(self) -> bool:
        """Whether the server still runs; one that has killed itself is counted."""
        if self.server is None:
            return False
        pid, status = os.waitpid(self.server.pid, os.WNOHANG)
        if pid:
            self.server.status = status
            self._gone("")
        return bool(self.server)

    def strike(self) -> None:
        """Kill the server or a client now."""
        running = [job for job, child in self.clients.items() if not _ended(child)]
        if running and self.arena.rng.random() < 0.45:
            job = self.arena.rng.choice(running)
            self.arena.tried["kills of clients"] += self.clients.pop(job).kill()
        elif self.alive() and self.server is not None and not (self.doomed and self.arena.rng.random() < 0.9):
            self.arena.tried["kills of servers at a moment"] += self.server.kill()
            self.server = None

    def ensure(self, jobs: list[Job], *, calm: bool = False) -> None:
        """A server that runs, and a client for every job that is not done."""
        if calm:  # one that may yet kill itself
            self._replace()
        while not self.alive():
            self.start(calm=calm)
        idle = [job for job in jobs if job not in self.clients or _ended(self.clients[job])]
        done = self.diary.read("done")  # after the look at who has ended: a client writes it just before it ends
        for job in idle:
            if not done[job.name]:
                self.clients[job] = fork(lambda _, job=job: work(job, self.port, self.diary))

    def _replace(self) -> None:
        if self.alive() and self.server is not None and not self.calm:
            self.arena.tried["kills of servers at a moment"] += self.server.kill()
            self.server = None

    def finish(self, jobs: list[Job]) -> None:
        """Let everything come to its end."""
        for _ in range(6):
            self.ensure(jobs, calm=True)
            for child in self.clients.values():
                if not _ended(child):
                    child.wait()
            if all(self.diary.read("done")[job.name] for job in jobs):
                return

    def close(self) -> None:
        for child in (*self.clients.values(), *([self.server] if self.server else [])):
            child.kill()


def _ended(child: Child) -> bool:
    if child.status is None:
        pid, status = os.waitpid(child.pid, os.WNOHANG)
        if pid:
            child.status = status
            child.close()
    return child.status is not None


@contextmanager
def scene(arena: Arena, rho: float, tokens: dict[str, tuple[float, bool]]) -> Iterator[tuple[Scene, dict[str, str]]]:
    """A fresh ledger with shares, and nobody there yet."""
    with arena.place() as folder, arena.diary(folder) as diary:
        known = apart(prepare, folder, rho, tokens)
        made = Scene(arena, folder, diary, free_port())
        try:
            yield made, known
        finally:
            made.close()


def check(arena: Arena, made: Scene, before: Books | None, where: str) -> Books:
    """Open the ledger and hold it against what the clients wrote down."""
    now: Books = apart(books, made.folder / "l")
    arena.tried["checks"] += 1
    arena.fault(where, list(judged(now, before, made.diary)))
    return now


def kills(arena: Arena) -> int:
    """How many were killed so far."""
    return sum(n for what, n in arena.tried.items() if what.startswith("kills of"))


def kill_scene(arena: Arena) -> None:
    """Two analysts with runs under way, kills of anybody, and then the end of every run."""
    rng = arena.rng
    reserved = rng.choice([(False, False), (True, False), (True, True)])
    jobs_of = rng.randint(1, 3)
    rho = 8 * jobs_of * ASKS * COST
    tokens = {name: (share, kept) for (name, share), kept in zip(SHARES.items(), reserved, strict=True)}
    with scene(arena, rho, tokens) as (made, known):
        kinds = [rng.choices(["asks", "discovers"], [9, 1])[0] for _ in range(2 * jobs_of)]
        names = [(who, number) for who in SHARES for number in range(jobs_of)]
        jobs = [Job(who, known[who], n, kind) for (who, n), kind in zip(names, kinds, strict=True)]
        before, start = None, kills(arena)
        for _ in range(4 * SCENE):
            if kills(arena) - start >= SCENE:
                break
            made.ensure(jobs)
            time.sleep(rng.uniform(0, 0.12) if rng.random() < 0.8 else rng.uniform(0, 0.5))
            made.strike()
            if made.server is None and rng.random() < 0.3:  # nobody writes, so that all readings are of one instant
                before = check(arena, made, before, "after a kill")
            done = made.diary.read("done")
            if all(done[job.name] for job in jobs):
                break
        made.finish(jobs)
        now = check(arena, made, before, "at the end of a scene")
        if not now.trouble:
            arena.fault("at the end of a scene", list(settled(now, jobs, made.diary)))
        arena.tried["runs that came to their end"] += sum(made.diary.read("done")[job.name] > 0 for job in jobs)
        arena.tried["interruptions that clients were told of"] += made.diary.read("interrupted").total()


# --- races ----------------------------------------------------------------------------------------------------------


def race_scene(arena: Arena) -> None:
    """Clients of two analysts that ask until they are refused, all at once; in some races one is killed."""
    rng = arena.rng
    steps = rng.randint(6, 20)
    reserved = rng.choice([(False, False), (True, False), (False, True), (True, True)])
    both = rng.random() < 0.5  # shares that add up to the ceiling, or to more than it
    shares = dict(SHARES) if both else {"alice": 0.8, "bob": 0.8}
    if not both:
        reserved = (False, reserved[1])
    tokens = {name: (share, kept) for (name, share), kept in zip(shares.items(), reserved, strict=True)}
    with scene(arena, steps * COST, tokens) as (made, known):
        made.start(calm=True)
        gate, shot = os.pipe()
        racers = [(who, number) for who in shares for number in range(rng.randint(1, 3))]
        children = []
        for who, number in racers:
            job = Job(who, known[who], number)
            children.append(fork(lambda pipe, job=job: _race(job, made, gate, shot, pipe, rng.randint(1, 2))))
        for child in children:
            child.hear(1)
        os.close(gate)
        os.close(shot)
        killed = rng.random() < 0.2
        if killed:
            time.sleep(rng.uniform(0, 0.2))
            arena.tried["kills of clients in races"] += children[0].kill()
        for child in children[killed:]:
            child.wait()
        now = check(arena, made, None, "after a race")
        arena.tried["races"] += 1
        arena.tried["racing clients"] += len(children)
        arena.fault("after a race", list(_raced(now, made.diary, killed=killed)))


def _race(job: Job, made: Scene, gate: int, shot: int, pipe: int, threads: int) -> None:
    os.close(shot)
    curators = [_connected(job, made.port) for _ in range(threads)]
    os.write(pipe, b"r")
    os.read(gate, 1)
    runners = [
        threading.Thread(target=_until_refused, args=(Job(job.who, job.token, 10 * job.number + i), one, made.diary))
        for i, one in enumerate(curators)
    ]
    for runner in runners:
        runner.start()
    for runner in runners:
        runner.join()


def _until_refused(job: Job, curator: Any, diary: Diary) -> None:
    """Questions one after the other, in one run, until there is nothing left."""
    from dpcurate.errors import BudgetExceeded, DpcurateError

    try:
        with curator.run(_facts(job, curator.schema.hash)):
            for number in range(100):
                _asked(curator, job, number, diary)
    except BudgetExceeded:
        diary.write("refused", [job.name])
    except DpcurateError as problem:
        diary.write("failed", [f"{job.name}: {problem}"])
    except Exception as problem:
        diary.write("trace", [f"{job.name} {type(problem).__name__}: {problem}".splitlines()[0][:300]])


def _raced(now: Books, diary: Diary, *, killed: bool) -> Iterator[str]:
    """What is left is less than a question, for everybody; without a kill every payment has its answer."""
    if now.trouble:
        return
    yield from (f"an error in a race: {text}" for text in diary.read("failed"))
    paid, given = float(now.spent / Fraction(COST)), diary.read("answered").total()
    if paid < given * (1 - NEAR) or (not killed and paid > given * (1 + NEAR)):
        yield f"{paid} questions were paid and {given} answered"
    table_left = now.ceiling - now.spent
    for name, used, ceiling in now.shares:
        kept = sum((c - u for n, u, c in now.shares if n != name), Fraction(0))
        if min(table_left - kept, ceiling - used) >= Fraction(COST) and not killed:
            yield f"{name} was refused though there was room"


# --- broken on purpose ----------------------------------------------------------------------------------------------


def break_store(what: str) -> None:
    """Break the store in this process; forks inherit it."""
    from dpcurate.private.ledger.disk_store import DiskStore

    real = DiskStore.pay

    def forgets(store: Any, run: Any, request: str, decide: Any, events: Any) -> Any:
        return real(store, run, request, decide, () if hash(request) % 2 else events)

    broken = {
        "answers not stored": ("keep", lambda *_: None),
        "shares not charged": ("_tell_share", lambda *_: None),
        "payments not kept": ("pay", forgets),
    }
    setattr(DiskStore, *broken[what])


BROKEN = ("answers not stored", "shares not charged", "payments not kept")


def self_test(seed: int) -> int:
    """Whether every way of breaking the store is seen; each in a fork, so that it stays there."""
    unseen = []
    for what in BROKEN:
        told = apart(_faults_of, what, seed)
        print(f"{what}: {'seen' if told else 'NOT SEEN'}{', such as: ' + told[0] if told else ''}", flush=True)
        unseen += [] if told else [what]
    return 1 if unseen else 0


def _faults_of(what: str, seed: int) -> list[str]:
    break_store(what)
    arena = Arena("service", random.Random(seed))
    race_scene(arena)
    if not arena.faults:
        kill_scene(arena)
    return arena.faults


# --- all of it ------------------------------------------------------------------------------------------------------


def run(most_kills: int, races: int, seed: int, minutes: float) -> Arena:
    """So many kills and races, or as many as the time allows."""
    arena = Arena("service", random.Random(seed))
    end, told = time.monotonic() + 60 * minutes, time.monotonic()
    while kills(arena) < most_kills or arena.tried["races"] < races:
        if time.monotonic() > end:
            break
        try:
            behind = kills(arena) * races <= arena.tried["races"] * most_kills  # so that both end at the same time
            if kills(arena) < most_kills and (behind or arena.tried["races"] >= races):
                kill_scene(arena)
                arena.tried["scenes"] += 1
            else:
                race_scene(arena)
        except Unfinished as reason:
            arena.unfinished.append(str(reason))
        if time.monotonic() - told > 60:
            told = time.monotonic()
            print(json.dumps({**arena.tried, "faults": len(arena.faults)}), flush=True)
    return arena


def import_all() -> None:
    """What forks need, imported once; nothing is opened."""
    for name in IMPORTS:
        import_module(name)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=2000)
    parser.add_argument("--races", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=120.0, help="stop after so long, whatever was reached")
    parser.add_argument("--page", type=Path, help="write the figures into this page")
    parser.add_argument("--add", action="store_true", help="to those of runs with other seeds that the page has")
    parser.add_argument("--self-test", action="store_true", help="break the store on purpose, which must be seen")
    args = parser.parse_args()
    import_all()
    if args.self_test:
        return self_test(args.seed)
    arena = run(args.kills, args.races, args.seed, args.minutes)
    words = f"--kills {args.kills} --races {args.races} --seed {args.seed}"
    print("\n".join(service_page.lines(arena, kills(arena), words)))
    if args.page:
        if args.add:
            arena.tried += service_page.earlier(args.page)
            words += " --add"
        service_page.write(args.page, arena, kills(arena), words)
    return 1 if arena.faults else 2 if arena.unfinished else 0


if __name__ == "__main__":
    sys.exit(main())

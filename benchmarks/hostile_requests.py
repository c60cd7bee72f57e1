"""Hostile requests to a running service on this machine.

    python -m benchmarks.hostile_requests [--count 20000] [--seed 0] [--page docs/reliability.md]

Starts `dpcurate serve` on a small table and sends changed bodies to every route, with a token whose share is used up
and with one that can pay; wrong, revoked, cut and doubled tokens; requests that are oversized, chunked, cut, deep, slow
or no HTTP at all; requests of other sites. Whatever comes back must be a status of ours and a sentence without a trace,
a path or a name of a file; whoever has nothing left is charged nothing, and what the other one was charged is the sum
of what the answers say; the process lives, its memory stays bounded, its log is whole, and it stops when it is told to.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from benchmarks.fuzz_wire import changed_bytes, changed_json, requests
from benchmarks.ports import free_port
from benchmarks.service_section import write_section

THREADS = 3
MOST_SHOWN = 20
MOST_GROWTH = 400
"""MB by which the server may grow: the largest bodies of as many clients at a time."""
STATUSES = (200, 303, 400, 401, 403, 404, 405, 409, 410, 413, 415, 421, 422, 429)
"""What a hostile request may be answered; 500 is a fault."""
LEAKS = re.compile(
    rb"Traceback|File \"|line \d+, in |\.py\b|/tmp/|/dev/shm|/home/|l\.ledger|sqlite|duckdb|numpy|ledger-service|"
    rb"<class |object at 0x"
)
RHO = 1e-7
"""What a request of the analyst who can pay costs."""


class Service:
    """`dpcurate serve` in a process of its own."""

    def __init__(self, folder: Path) -> None:
        import dpcurate
        from dpcurate.service import Records

        self.folder = folder
        cells = {"a": "xyz", "b": "123", "c": "yn"}
        rng = random.Random(1)
        lines = [",".join(cells), *(",".join(rng.choice(levels) for levels in cells.values()) for _ in range(300))]
        (folder / "t.csv").write_text("\n".join(lines) + "\n")
        schema = dpcurate.Schema.of({name: tuple(levels) for name, levels in cells.items()})
        schema.save(folder / "t.toml")
        budget = dpcurate.Budget(epsilon=2, delta=1e-9)
        dpcurate.Ledger.create(
            folder / "l.ledger", table="patients", neighbours="add-remove", budget=budget, schema=schema
        )
        records = Records.open(folder / "l.ledger")
        self.tokens = {name: records.add_token(name, 0.5) for name in ("poor", "rich", "gone", "waiting")}
        records.revoke("gone")
        records.close()
        self.schema = schema.hash
        self.port = free_port()
        command = [sys.executable, "-m", "dpcurate.cli", "serve", "t.csv", "--schema", "t.toml", "--ledger", "l.ledger"]
        with (folder / "errors.txt").open("w") as errors:
            self.process = subprocess.Popen(
                [*command, "--port", str(self.port)], cwd=folder, stdout=subprocess.PIPE, stderr=errors, text=True,
                env=os.environ,
            )  # fmt: skip
        self._wait()

    def _wait(self) -> None:
        for _ in range(1500):
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        raise RuntimeError(f"the service does not start: {(self.folder / 'errors.txt').read_text()}")

    def memory(self) -> float:
        """MB in use; 0 where that cannot be told."""
        with suppress(OSError, ValueError, IndexError):
            pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
            return int(pages) * os.sysconf("SC_PAGESIZE") / (1 << 20)
        return 0.0

    def spent(self, name: str) -> float:
        import dpcurate

        ledger = dpcurate.Ledger.open(self.folder / "l.ledger")
        return next(share.spent for share in ledger.shares if share.name == name)

    def stop(self) -> bool:
        """Whether it ends when it is told to."""
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(90)
            return True
        except subprocess.TimeoutExpired:
            self.process.kill()
            return False
        finally:
            assert self.process.stdout is not None
            self.process.stdout.close()


class Attacker:
    """Sends, reads, and judges what came back."""

    def __init__(self, service: Service) -> None:
        import httpx

        self.service = service
        self.tried: Counter[str] = Counter()
        self.statuses: Counter[int] = Counter()
        self.faults: list[str] = []
        self.cost = 0.0
        self.largest = service.memory()
        self.lock = threading.Lock()
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{service.port}", timeout=60, trust_env=False)
        self.runs: dict[str, str] = {}

    def fault(self, what: str, about: object) -> None:
        with self.lock:
            self.tried["faults"] += 1
            if len(self.faults) < MOST_SHOWN:
                self.faults.append(f"{what}: {str(about)[:300]}")

    def count(self, what: str) -> None:
        with self.lock:
            self.tried["requests"] += 1
            self.tried[what] += 1
            if self.tried["requests"] % 200 == 0:
                self.largest = max(self.largest, self.service.memory())

    def send(self, what: str, method: str, path: str, **given: Any) -> Any:
        """One request by a real client."""
        import httpx

        self.count(what)
        try:
            response = self.client.request(method, path, **given)
        except httpx.TransportError as error:  # it may hang up on nonsense, but it must still be there
            if self.service.process.poll() is not None:
                self.fault("the service has ended", error)
            return None
        except (httpx.InvalidURL, ValueError, UnicodeError):
            return None
        self.judge(response.status_code, response.content, f"{what} {method} {path}", given)
        return response

    def judge(self, status: int, body: bytes, about: str, given: Any = "") -> None:
        with self.lock:
            self.statuses[status] += 1
        if status not in STATUSES:
            self.fault(f"status {status}", f"{about} {body[:200]!r} {given}")
        if LEAKS.search(body):
            self.fault("a leak", f"{about} {body[:300]!r}")
        if status != 200 and len(body) > 5_000 and b"<html" not in body:
            self.fault(f"{len(body)} bytes of refusal", about)

    def raw(self, what: str, *parts: bytes, wait: float = 3.0) -> bytes:
        """Bytes as they are, on a connection of their own."""
        self.count(what)
        answer = b""
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.service.port), 5) as connection:
            connection.settimeout(wait)
            for part in parts:
                connection.sendall(part)
            answer = connection.recv(65536)
        if answer.startswith(b"HTTP/1.1 "):
            head, _, body = answer.partition(b"\r\n\r\n")
            self.judge(int(head[9:12]), body, f"raw {what}", parts)
        return answer

    # --- valid requests -----------------------------------------------------------------------------------------------

    def headers(self, name: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.service.tokens[name]}", "Content-Type": "application/json"}

    def begin(self, name: str) -> str:
        """A run of this analyst."""
        body = {
            "request": secrets.token_urlsafe(12), "command": secrets.token_hex(32), "schema": self.service.schema,
            "method": "ask", "purpose": "hostile", "share": None,
        }  # fmt: skip
        response = self.client.post("/v1/runs", json=body, headers=self.headers(name))
        if response.status_code != 200:
            raise RuntimeError(f"no run of {name}: {response.text}")
        self.runs[name] = response.json()["run"]
        return self.runs[name]

    def use_up(self, name: str) -> None:
        """Spend all of a share."""
        for _ in range(40):
            left = self.client.get("/v1/budget", headers=self.headers(name)).json()["remaining"]
            if left < 1e-12:
                return
            query = {"Release": [{"Counts": [["a"]]}, {"Gaussian": [None, left * 0.999999, None, None]}]}
            self.ask(name, [query])
        raise RuntimeError(f"the share of {name} cannot be used up: {left} is left")

    def ask(self, name: str, queries: list[Any]) -> Any:
        body = {"request": secrets.token_urlsafe(12), "queries": queries, "place": ""}
        return self.client.post(f"/v1/runs/{self.runs[name]}/ask", json=body, headers=self.headers(name))


# --- what is sent ---------------------------------------------------------------------------------------------------


def bodies(attacker: Attacker, count: int, seed: int) -> None:
    """Changed bodies to every route that takes one."""
    from dpcurate.queries import Gate, Query, Score
    from dpcurate.queries.encoding import to_plain

    draw = random.Random(seed)
    kinds = requests()
    asked = [to_plain(one) for one in kinds if isinstance(one, Query)]
    gates = [to_plain(one) for one in kinds if isinstance(one, Gate)]
    scores = [to_plain(one) for one in kinds if isinstance(one, Score)]
    for _ in range(count):
        name = draw.choice(("poor", "poor", "rich"))
        run = attacker.runs[name]
        request = secrets.token_urlsafe(12)
        cheap = {"Release": [{"Counts": [[draw.choice("abc")]]}, {"Gaussian": [None, RHO, None, None]}]}
        whole: dict[str, Any] = {
            f"/v1/runs/{run}/ask": {"request": request, "queries": [draw.choice([*asked, cheap])], "place": ""},
            f"/v1/runs/{run}/gates": {"request": request, "gate": draw.choice(gates), "place": ""},
            f"/v1/runs/{run}/gates/x/first": {"request": request, "scores": scores},
            f"/v1/runs/{run}/blocks": {"request": request, "amount": draw.choice((1e-9, -1, 1e300, 0, "1"))},
            f"/v1/runs/{run}/blocks/x/end": {"request": request},
            f"/v1/runs/{run}/end": {"outcome": "what"},
            "/v1/cost": {"queries": [draw.choice(asked)]},
            "/v1/runs": {
                "request": request, "command": secrets.token_hex(32), "schema": attacker.service.schema,
                "method": "ask", "purpose": "x", "share": draw.choice((None, 1e-9, -1, 0, 1e300, "1")), "epsilon": 0.1,
                "quantify": None, "result": "",
            },
        }  # fmt: skip
        path, plain = draw.choice(list(whole.items()))
        if draw.random() < 0.15:
            path = f"/v1/runs/{run}/ask"
            plain = {"request": request, "queries": [cheap], "place": ""}
        text = json.dumps(plain).encode() if draw.random() < 0.3 else _changed(plain, draw)
        response = attacker.send("changed bodies", "POST", path, content=text, headers=attacker.headers(name))
        if response is not None and response.status_code == 200:
            _noted(attacker, name, path, response.json())


def _changed(plain: Any, draw: random.Random) -> bytes:
    if draw.random() < 0.4:
        return changed_bytes(json.dumps(plain).encode(), draw)
    return changed_json([plain], draw)[1:-1] if draw.random() < 0.9 else changed_json([plain], draw)


def _noted(attacker: Attacker, name: str, path: str, told: dict[str, Any]) -> None:
    if path == "/v1/runs":
        attacker.send(
            "runs ended", "POST", f"/v1/runs/{told['run']}/end", json={"outcome": "stopped"},
            headers=attacker.headers(name),
        )  # fmt: skip
    elif path.startswith("/v1/runs/"):
        if "block" in told:  # else all that follows is taken from this block
            attacker.send(
                "blocks ended", "POST", f"{path}/{told['block']}/end", json={"request": secrets.token_urlsafe(12)},
                headers=attacker.headers(name),
            )  # fmt: skip
        with attacker.lock:
            attacker.tried["answered and paid"] += 1
            attacker.cost += told.get("cost", 0.0) if name == "rich" else 0.0
        if name == "poor" and told.get("cost", 0.0) > 0:
            attacker.fault("somebody with nothing left was charged", told)


def tokens(attacker: Attacker, count: int, seed: int) -> None:
    """Tokens that are nobody's, or nobody's any more."""
    draw = random.Random(seed)
    real = attacker.service.tokens["rich"]
    for _ in range(count):
        at = draw.randrange(len(real))
        wrong: list[dict[str, str | bytes]] = [
            {"Authorization": f"Bearer {real[:at]}"},
            {"Authorization": f"Bearer {real[:at]}{'A' if real[at] != 'A' else 'B'}{real[at + 1 :]}"},
            {"Authorization": f"Bearer {real}{draw.choice('aB9-_')}"},
            {"Authorization": f"Bearer {real.swapcase()}"},
            {"Authorization": f"Bearer {attacker.service.tokens['gone']}"},
            {"Authorization": f"Basic {real}"},
            {"Authorization": real},
            {"Authorization": "Bearer " + secrets.token_urlsafe(32)},
            {"Authorization": "Bearer " + "x" * draw.choice((1, 199, 201, 9_000))},
            {"Authorization": b"Bearer \xff\xfe\x80"},
            {"X-Remote-User": "rich"}, {"Cookie": f"token={real}"}, {},
        ]  # fmt: skip
        path = draw.choice(
            ("/v1/facts", "/v1/budget", "/v1/runs", "/v1/log", "/v1/answers/1", f"/v1/runs?token={real}")
        )
        response = attacker.send("wrong tokens", "GET", path, headers=draw.choice(wrong))
        if response is not None and response.status_code != 401:
            attacker.fault("a wrong token was answered", response.status_code)


def others(attacker: Attacker, count: int, seed: int) -> None:
    """Runs of somebody else, and addresses that lead nowhere."""
    draw = random.Random(seed)
    theirs = attacker.runs["rich"]
    mine = attacker.headers("waiting")
    ask = {"queries": [{"Release": [{"Counts": [["a"]]}, {"Gaussian": [None, RHO, None, None]}]}], "place": ""}
    for _ in range(count):
        path = draw.choice(
            (f"/v1/runs/{theirs}/ask", f"/v1/runs/{theirs}/end", f"/v1/runs/{theirs}/gates", "/v1/answers/1",
             "/v1/answers/..%2f..%2fl.ledger", "/v1/answers/-1", "/v1/answers/99999999999999999999", "/v1/runs/%00/ask",
             "/v1/runs/stopped?command=" + secrets.token_hex(32), "/v1/runs/stopped?command=%0d%0aX-Evil:1",
             "/v1/runs/stopped?command=x&command=y", "/v2/facts", "/v1/", "/v1/facts/../log", "//v1/facts",
             "/assets/..%2f..%2fapp.py", "/assets/owner.css%00", "/v1/runs/" + "a" * 5_000 + "/ask", "/owner/decide")
        )  # fmt: skip
        method = draw.choice(("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "TRACE", "X" * 30))
        body = json.dumps({**ask, "request": secrets.token_urlsafe(12)}) if draw.random() < 0.8 else ""
        response = attacker.send("others' runs and no addresses", method, path, content=body, headers=mine)
        if response is not None and response.status_code == 200 and theirs in path:
            attacker.fault("a run of somebody else was used", path)


def sites(attacker: Attacker, count: int, seed: int) -> None:
    """What another web page, or a name that points here, sends to the owner's page and to the routes."""
    draw = random.Random(seed)
    here = f"127.0.0.1:{attacker.service.port}"
    evil = ("http://evil.example", "null", f"http://{here}.evil.example", f"https://{here}x", "http://localhost:1", "")
    for _ in range(count):
        headers = {"Origin": draw.choice(evil), "Sec-Fetch-Site": draw.choice(("cross-site", "same-site", "none"))}
        if draw.random() < 0.3:
            headers = {"Host": draw.choice(("evil.example", f"evil.example:{attacker.service.port}", "localhost", ""))}
        path, body = draw.choice(
            (("/owner/decide", "number=1&decision=approve"), ("/owner/open", "key=x"), ("/owner/close", ""),
             ("/v1/runs", "{}"), ("/v1/facts", ""))
        )  # fmt: skip
        response = attacker.send("other sites", "POST", path, content=body, headers=headers)
        if response is not None and response.status_code in (200, 303):
            attacker.fault("another site was answered", f"{path} {headers}")
        if response is not None and "access-control-allow-origin" in response.headers:
            attacker.fault("another site may read answers", path)


def monsters(attacker: Attacker, count: int, seed: int) -> None:
    """Bodies that are too large, too deep, too long, chunked or cut."""
    draw = random.Random(seed)
    port, token = attacker.service.port, attacker.service.tokens["rich"]
    ours = attacker.headers("rich")
    big = b'{"queries":["' + b"x" * (5 << 20) + b'"]}'
    deep = (b"[" * 200_000, b'{"a":' * 100_000 + b"1" + b"}" * 100_000, b'{"queries":' + b"[" * 60 + b"]" * 60 + b"}")
    long = (
        b'{"queries":[' + b"9" * 100_000 + b"]}",
        b'{"queries":[1e99999]}',
        b'{"queries":[' + b"0," * 300_000 + b"0]}",
    )
    wide = json.dumps({"queries": [{"Release": [{"Counts": [["a"]]}, {"Gaussian": [None, RHO, None, None]}]}] * 21_000})
    head = (
        f"POST /v1/cost HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n"
        "Content-Type: application/json\r\n"
    ).encode()
    for number in range(count):
        kind = number % 10
        if kind == 0:
            attacker.send("oversized bodies", "POST", "/v1/cost", content=big, headers=ours)
        elif kind == 1:
            attacker.send("chunked oversized bodies", "POST", "/v1/cost", content=_chunks(), headers=ours)
        elif kind == 2:
            attacker.send("deep bodies", "POST", "/v1/cost", content=draw.choice(deep), headers=ours)
        elif kind == 3:
            attacker.send("long numbers and lists", "POST", "/v1/cost", content=draw.choice(long), headers=ours)
        elif kind == 4:
            attacker.send("too many queries", "POST", "/v1/cost", content=wide, headers=ours)
        elif kind == 5:
            attacker.raw("cut bodies", head + b"Content-Length: 1000\r\n\r\n{", wait=0.05)
        elif kind == 6:
            told = draw.choice((b"-1", b"1e3", b"99999999999999999999", b"5, 5", b"0x10", b"\xb2", b""))
            attacker.raw("false lengths", head + b"Content-Length: " + told + b"\r\n\r\n{}", wait=0.2)
        elif kind == 7:
            both = b"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n"
            chunk = draw.choice(
                (b"zz\r\n{}\r\n0\r\n\r\n", b"ffffffffffffffff\r\n{}", b"2\r\n{}\r\n0\r\n\r\n", b"-2\r\n{}")
            )
            attacker.raw(
                "false chunks", head + draw.choice((b"Transfer-Encoding: chunked\r\n\r\n", both)) + chunk, wait=0.2
            )
        elif kind == 8:
            line = draw.choice(
                (b"GET /" + b"a" * 80_000, b"GET / HTTP/9.9", b"\x16\x03\x01\x02\x00", b"GET /v1/facts\r\nX:")
            )
            attacker.raw("no HTTP", line + b"\r\n\r\n", wait=0.2)
        else:
            name = draw.choice((b"X-A: b\r\n" * 5_000, b"X: " + b"a" * 100_000 + b"\r\n", b"X : y\r\n", b"\x00: y\r\n"))
            attacker.raw("headers", head + name + b"Content-Length: 2\r\n\r\n{}", wait=0.2)


def _chunks() -> Iterator[bytes]:
    for _ in range(96):
        yield b" " * (1 << 16)


@contextmanager
def slow(attacker: Attacker, connections: int) -> Iterator[None]:
    """Connections that say a part of a request and then next to nothing, while everything else goes on."""
    port, token = attacker.service.port, attacker.service.tokens["waiting"]
    held = []
    for number in range(connections):
        connection = socket.create_connection(("127.0.0.1", port), 5)
        request = (
            f"POST /v1/cost HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\nContent-Type: "
            "application/json\r\nContent-Length: 1000\r\n\r\n{",
            f"POST /owner/open HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nOrigin: http://127.0.0.1:{port}\r\n"
            "Content-Length: 1000\r\n\r\nkey=",
            "GET /v1/facts HTTP/1.1\r\nHo",
        )[number % 3]
        connection.sendall(request.encode())
        attacker.count("slow requests")
        held.append(connection)
    try:
        yield
    finally:
        for connection in held:
            connection.close()


# --- all of it ------------------------------------------------------------------------------------------------------

PARTS: tuple[tuple[Callable[[Attacker, int, int], None], float], ...] = (
    (bodies, 0.68), (tokens, 0.14), (others, 0.09), (sites, 0.06), (monsters, 0.03),
)  # fmt: skip


def run(count: int, seed: int, slow_ones: int = 30) -> Attacker:
    """So many requests, by a few clients at a time."""
    with tempfile.TemporaryDirectory() as folder:
        service = Service(Path(folder))
        attacker = Attacker(service)
        try:
            attacker.begin("poor"), attacker.begin("rich")
            attacker.use_up("poor")
            poor, rich = service.spent("poor"), service.spent("rich")
            before = service.memory()
            _warm(attacker)
            with slow(attacker, slow_ones):
                _all_parts(attacker, count, seed)
                if attacker.client.get("/v1/health").json()["status"] != "ok":
                    attacker.fault("the service is not well", "")
                attacker.largest = max(attacker.largest, service.memory())
                stopped = service.stop()  # while the slow ones still wait
            _after(attacker, poor, rich, before, stopped=stopped)
        finally:
            attacker.client.close()
            if service.process.poll() is None:
                service.process.kill()
        return attacker


def _warm(attacker: Attacker) -> None:
    """One answer to a real question: everything works for whoever asks properly."""
    told = attacker.ask("rich", [{"Release": [{"Counts": [["a", "b"]]}, {"Gaussian": [None, RHO, None, None]}]}])
    if told.status_code != 200:
        attacker.fault("a proper question was refused", told.text)
    attacker.cost += told.json().get("cost", 0.0)


def _all_parts(attacker: Attacker, count: int, seed: int) -> None:
    def work(number: int) -> None:
        for part, share in PARTS:
            try:
                part(attacker, round(count * share / THREADS), seed * 1000 + number)
            except Exception as error:
                attacker.fault(f"the attacker failed in {part.__name__}", f"{type(error).__name__} {error}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _after(attacker: Attacker, poor: float, rich: float, before: float, *, stopped: bool) -> None:
    from dpcurate.service import Records

    service = attacker.service
    if not stopped or service.process.returncode not in (0, 130, -2):
        attacker.fault("the service did not stop as it should", service.process.returncode)
    if service.spent("poor") != poor:
        attacker.fault("somebody with nothing left was charged", service.spent("poor") - poor)
    charged = service.spent("rich") - rich
    if abs(charged - attacker.cost) > 1e-9 * max(charged, attacker.cost, 1e-12):
        attacker.fault("what was charged is not what the answers cost", f"{charged} and {attacker.cost}")
    grown = attacker.largest - before
    attacker.tried["MB grown at most"] = round(grown)
    if grown > MOST_GROWTH:
        attacker.fault("the service grew", f"{grown:.0f} MB")
    records = Records.open(service.folder / "l.ledger")
    attacker.tried["log entries"] = records.verify()[0]
    for entry in records.entries():
        if not entry.json().isprintable():
            attacker.fault("an entry of the log is not one line", entry.number)
    records.close()
    errors = (service.folder / "errors.txt").read_text()
    if "Traceback" in errors:
        attacker.fault("a trace on the server's side", errors[errors.index("Traceback") :][:1500][-300:])


def section(attacker: Attacker, words: str) -> Iterator[str]:
    """What docs/reliability.md says of a run."""
    yield f"Written by `python -m benchmarks.hostile_requests {words} --page docs/reliability.md`.\n"
    faults = len(attacker.faults)
    yield (
        f"**{attacker.tried['requests']:,} hostile requests** to a running `dpcurate serve`: "
        + ("**no trace, leak, crash or charge without an answer.**\n" if not faults else f"**{faults} faults.**\n")
    )  # fmt: skip
    yield "| what | how often |"
    yield "|---|---:|"
    yield from (f"| {what} | {n:,} |" for what, n in sorted(attacker.tried.items()) if what != "requests")
    yield from (f"\n* FAULT {text}" for text in attacker.faults)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--slow", type=int, default=30, help="slow connections; a stop waits for them for half a minute"
    )
    parser.add_argument("--page", type=Path, help="write the figures into this page")
    options = parser.parse_args()
    start = time.monotonic()
    attacker = run(options.count, options.seed, options.slow)
    text = list(section(attacker, f"--count {options.count} --seed {options.seed}"))
    statuses = ", ".join(f"{status}: {n:,}" for status, n in sorted(attacker.statuses.items()))
    print("\n".join(text), f"\nstatuses {statuses}; {time.monotonic() - start:.0f} s")
    if options.page:
        write_section(options.page, "## Hostile requests", text)
    return 1 if attacker.faults else 0


if __name__ == "__main__":
    sys.exit(main())

"""Hostile bodies against the decoder that a service reads requests with, and against what validates them.

    python -m benchmarks.fuzz_wire [--count 1000000] [--hypothesis 20000] [--seed 0]

Three kinds of bodies: bytes of real requests that were changed, real requests whose JSON was changed and written again,
and JSON that hypothesis makes of the decoder's own words. A body may be decoded or refused with a `DecodeError`, in a
sentence of bounded length. What is decoded must come back as it was when it is encoded again, and a session must price
it or refuse it with one of its own errors, without a charge. Prints every body for which that is not so, and how far
the memory of the process grew; ends with 1 if there is one.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import resource
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.service_section import write_section
from dpcurate import Budget, Curator, queries
from dpcurate.errors import DecodeError, DpcurateError
from dpcurate.queries import Answer, Gate, Query, Score
from dpcurate.queries.encoding import KNOWN, MOST_DIGITS, decode, decode_queries, encode, encode_queries
from dpcurate.schema import Categorical, Numeric, Ordinal, Schema

SCHEMA = Schema(
    (
        *(Categorical("a", ("x", "y", "z")), Ordinal("b", (1, 2, 3))),
        *(Numeric("c", 0, 10, missing="own"), Numeric("d", -1, 1)),
    ),
    rows=100,
)  # fmt: skip
TABLE = {"a": ["x", "y", "z", "x"], "b": [1, 2, 3, 3], "c": [0.5, 9.0, 3.0, 4.0], "d": [0.0, 0.5, -0.5, 1.0]}
WORDS = (*KNOWN, "Fraction")
LONGEST_SENTENCE = 2_000
"""Characters of a refusal, whatever is refused: a few names, each cut where it is long."""
MOST_SHOWN = 20
MOST_GROWTH = 512
"""MB by which the process may grow; bodies are small, so what grows is kept by somebody."""


def requests() -> list[Any]:
    """One of every kind that a client may send."""
    q = queries
    maps = (q.FeatureMap("a", ((1, 2), (3, 4), (5, 6))), q.FeatureMap("b", ((1,), (2,), (3,))))
    weights = ((0.0, 0.5), (0.25, 0.0))
    tau = q.Score(q.Tau("a", "b", ("c",)), 1.0, "above")
    statistics = [
        q.Counts(("a", "b")), q.Tables((("a",), ("a", "b"), ())), q.Contrasts((("a",), ("a", "b")), (0.5, 1)),
        q.Means(("c", "d")), q.Moments(("c", "d"), 1.5), q.Gradient(("c", "d"), weights, 1.0),
        q.GradientNorms(("c", "d"), weights, (0.5, 1.0, 2.0)), q.Tau("a", "b"), q.KendallP("a", "b", ("d",)),
        q.Histograms(("a", "c"), 2), q.FeatureMoments(maps, 2.0, 1.5), q.FeatureNorms(maps, (1.0, 2.0)),
    ]  # fmt: skip
    noises = [
        q.Gaussian(rho=0.01), q.Gaussian(sigma=12.5), q.Gaussian(epsilon=0.1, delta=1e-6), q.Laplace(epsilon=0.05),
        q.Laplace(scale=Fraction(41, 3)), q.Exact(), q.GaussianShare(rho=0.01, sites=5),
    ]  # fmt: skip
    return [
        *(q.Release(one, noises[i % len(noises)]) for i, one in enumerate(statistics)),
        q.Choose(candidates=(tau, q.Score(q.KendallP("a", "b"), 0.05, "below")), epsilon=0.5, or_none=True),
        q.Quantile(column="c", probability=0.5, epsilon=0.1), q.AboveThreshold(epsilon=0.1),
        q.Quantile(column="d", probability=Fraction(1, 3), epsilon=0.1, shift=3, cuts=(0, 9, 4096)),
        q.Sample(rate=0.5, epsilon=0.2), tau,
    ]  # fmt: skip


def answers() -> bytes:
    """Answers as a server sends them, which a client decodes."""
    asked = [one for one in requests() if isinstance(one, Query)][:3]
    asked.append(next(one for one in requests() if isinstance(one, queries.Choose)))
    given = [Answer((np.arange(9.0).reshape(3, 3),), (1.0,)), Answer((np.ones(3), np.ones((3, 3))), (1.0, 2.0))]
    return encode(asked, [*given, Answer((np.zeros(3),), (0.5,)), 1])


NASTY = (
    None, True, False, 0, 1, -1, 2**63, 2**64, -(2**63), 10**300, 10 ** (MOST_DIGITS - 1), 0.0, -0.0, 5e-324, 1e-100,
    1e100, 1.7976931348623157e308, 0.1, "", "a", "b", "c", "x" * 1001, "\x00", "\ud800", "\u202e", "above", "__class__",
    "ä" * 500, [], {}, [[]], {"Fraction": [1, 3]}, {"Fraction": [10**1200, 3]}, {"Exact": []}, {"Fraction": [1, 0]},
    {"Counts": [["a"]]}, {"Laplace": [None, 1e-90]}, {"Gaussian": [None, 1e-99, None, None]}, [["a"]] * 50, ["a", "b"],
    {"FeatureMap": ["a", [[1]]]}, {"Release": [{"Counts": [[]]}, {"Exact": []}]}, [0.5] * 200,
)  # fmt: skip


def changed_bytes(body: bytes, draw: random.Random) -> bytes:
    """A few bytes changed, cut, doubled or put elsewhere."""
    changed = bytearray(body)
    for _ in range(draw.randint(1, 4)):
        at, size = draw.randrange(len(changed) + 1), draw.randint(1, 20)
        piece = changed[at : at + size]
        new = draw.choice(
            (b"", piece * 2, draw.randbytes(size), b"9" * size, b"[" * size, b"{" * size, b"-1", b"null", b"NaN",
             b"1e999", b"Infinity", b"\\ud800", b"\xed\xa0\x80", b"\xff\xfe", b"\x00", b'"', b"9" * 1300, b"[" * 60)
        )  # fmt: skip
        changed[at : at + draw.choice((0, 1, size))] = new
    return bytes(changed)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, part in inner for place in places(part, (*path, key)))]


def changed_json(given: list[Any], draw: random.Random) -> bytes:
    """A few values replaced, moved, renamed, wrapped or repeated; half of them by values that may well be meant."""
    value: Any = copy.deepcopy(given)
    mild = draw.random() < 0.5
    for _ in range(draw.choice((1, 1, 2, 3))):
        spots = [place for place in places(value) if place]
        if not spots:
            break
        *way, key = draw.choice(spots)
        inside = value
        for step in way:
            inside = inside[step]
        if mild:
            inside[key] = meant(inside[key], draw)
            continue
        kind = draw.randrange(6)
        if kind == 0 and isinstance(inside, dict):
            inside[draw.choice((*KNOWN, "Fraction", "object", ""))] = inside.pop(key)
        elif kind == 1:
            inside[key] = [inside[key]] * draw.choice((1, 2, 3, 40))
        elif kind == 2 and isinstance(inside, list):
            inside.insert(draw.randrange(len(inside) + 1), copy.deepcopy(draw.choice(NASTY)))
        elif kind == 3 and isinstance(inside, list):
            del inside[key]
        elif kind == 4 and isinstance(inside[key], float | int):
            inside[key] = draw.choice((-inside[key], 10**6 * inside[key], 1e-80, 1e80, float(bool(inside[key])) / 3))
        else:
            inside[key] = copy.deepcopy(draw.choice(NASTY))
    return json.dumps(value).encode()


def meant(value: Any, draw: random.Random) -> Any:
    """Another value of the same kind."""
    if isinstance(value, str):
        return draw.choice((*SCHEMA.names, "e", "above", "below"))
    if isinstance(value, bool) or value is None:
        return draw.choice((True, False, None, 0.25))
    if isinstance(value, int | float):
        return draw.choice(
            (0, 1, 2, 3, 17, 4096, 0.5, 1e-3, 1e-60, 1e-99, 1e30, 1e99, -1, -0.5, {"Fraction": [1, 3**700]})
        )
    if isinstance(value, list):
        return [one for one in value if draw.random() < 0.8] if draw.random() < 0.5 else draw.sample(value, len(value))
    return value


class Fuzzer:
    """Tries bodies, and counts and tells what came of them."""

    def __init__(self) -> None:
        self.tried: Counter[str] = Counter()
        self.faults: list[str] = []
        self.curator = Curator(TABLE, SCHEMA, budget=Budget(epsilon=1, delta=1e-6), insecure_seed=None)
        self.before = self.curator.ledger.spent

    def fault(self, body: bytes, what: str) -> None:
        self.tried["faults"] += 1
        if len(self.faults) < MOST_SHOWN:
            self.faults.append(f"{what}\n    {body[:400]!r}")

    def request(self, body: bytes) -> None:
        """A body that an analyst sends."""
        self.tried["bodies of requests"] += 1
        made = self._decoded(body)
        if made is None:
            return
        self.tried["decoded"] += 1
        if not all(isinstance(one, Query | Gate | Score) for one in made):
            self.fault(body, "decoded as something that is no query")
        try:
            if decode_queries(encode_queries(made)) != made:
                self.fault(body, "comes back as another query")
            self._validate(made)
        except DpcurateError as error:
            self.tried["refused by the session"] += 1
            self._sentence(body, error)
        except Exception as error:
            self.fault(body, f"{type(error).__name__} after decoding: {error}")
        if self.curator.ledger.spent != self.before:
            self.before = self.curator.ledger.spent
            self.fault(body, "was charged for, and nothing was asked")

    def _decoded(self, body: bytes) -> list[Any] | None:
        try:
            return decode_queries(body, most_bytes=1 << 20)
        except DecodeError as error:
            self.tried["refused"] += 1
            self._sentence(body, error)
        except Exception as error:
            self.fault(body, f"{type(error).__name__}: {error}")
        return None

    def _validate(self, made: list[Any]) -> None:
        """What a server does with a request before it charges."""
        self.curator.cells_for([one for one in made if not isinstance(one, Gate)])
        self.curator.price([one for one in made if isinstance(one, Query)])
        self.tried["priced"] += 1

    def _sentence(self, body: bytes, error: DpcurateError) -> None:
        text = str(error)
        if len(text) > LONGEST_SENTENCE or "Traceback" in text:
            self.fault(body, f"a refusal of {len(text):,} characters")

    def answer(self, body: bytes) -> None:
        """Bytes that a server, or somebody in its place, sends to a client."""
        self.tried["bodies of answers"] += 1
        try:
            found = decode(body, most_bytes=1 << 20)
        except DecodeError as error:
            self.tried["refused"] += 1
            self._sentence(body, error)
            return
        except Exception as error:
            self.fault(body, f"an answer: {type(error).__name__}: {error}")
            return
        self.tried["decoded"] += 1
        parts = [part for _, one in found if isinstance(one, Answer) for part in one.parts]
        if not all(np.isfinite(part).all() for part in parts):
            self.fault(body, "an answer that is not finite")


def mutate(fuzzer: Fuzzer, count: int, seed: int) -> None:
    """So many changed bodies of requests and answers."""
    draw = random.Random(seed)
    kinds = requests()
    single = [encode_queries([one]) for one in kinds]
    plain = [json.loads(one) for one in single]
    answered = answers()
    for number in range(count):
        turn = number % 10
        if turn == 0:
            fuzzer.answer(changed_bytes(answered, draw))
        elif turn < 5:
            fuzzer.request(changed_bytes(draw.choice(single), draw))
        else:
            fuzzer.request(changed_json(draw.choice(plain), draw))


def grammar(fuzzer: Fuzzer, count: int) -> None:
    """So many bodies that hypothesis makes of the decoder's words; what fails is made as small as it can be."""
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import strategies as st

    leaves = st.sampled_from([*NASTY, *SCHEMA.names]) | st.floats(allow_nan=False) | st.integers(-(2**70), 2**70)
    value = st.recursive(
        leaves,
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.builds(lambda name, parts: {name: parts}, st.sampled_from(WORDS), st.lists(inner, max_size=4))
        ),
        max_leaves=20,
    )  # fmt: skip

    @settings(
        max_examples=count, deadline=None, database=None, derandomize=True, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(st.lists(value, min_size=1, max_size=3))
    def body(data: Any) -> None:
        fuzzer.request(json.dumps(data).encode())

    body()


def memory() -> float:
    """The largest memory of this process so far, in MB."""
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def run(count: int, hypothesis: int, seed: int) -> Fuzzer:
    """All kinds of bodies; what grew is a fault."""
    fuzzer = Fuzzer()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mutate(fuzzer, min(count, 2_000), seed)  # what is imported and kept for good is in memory now
        before = memory()
        mutate(fuzzer, max(0, count - hypothesis - 2_000), seed + 1)
        if hypothesis:
            grammar(fuzzer, hypothesis)
    grown = memory() - before
    fuzzer.tried["MB grown"] = round(grown)
    if grown > MOST_GROWTH:
        fuzzer.faults.append(f"the process grew by {grown:,.0f} MB")
    return fuzzer


def section(fuzzer: Fuzzer, words: str) -> Iterator[str]:
    """What docs/reliability.md says of a run."""
    tried = fuzzer.tried
    yield f"Written by `python -m benchmarks.fuzz_wire {words} --page docs/reliability.md`.\n"
    bodies = tried["bodies of requests"] + tried["bodies of answers"]
    yield (
        f"**{bodies:,} changed bodies** were decoded or refused in a sentence; what was decoded came back as it was "
        f"and was priced or refused without a charge: **{len(fuzzer.faults)} faults**.\n"
    )
    yield "| what | how often |"
    yield "|---|---:|"
    yield from (f"| {what} | {n:,} |" for what, n in sorted(tried.items()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--hypothesis", type=int, default=20_000, help="how many of them hypothesis makes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--page", type=Path, help="write the figures into this page")
    options = parser.parse_args()
    start = time.monotonic()
    fuzzer = run(options.count, options.hypothesis, options.seed)
    for fault in fuzzer.faults:
        print(f"FAULT {fault}")
    counts = ", ".join(f"{what} {number:,}" for what, number in fuzzer.tried.items())
    print(f"{counts}; {time.monotonic() - start:.0f} s; {len(fuzzer.faults)} faults")
    if options.page:
        words = f"--count {options.count} --hypothesis {options.hypothesis} --seed {options.seed}"
        write_section(options.page, "## Hostile bodies", section(fuzzer, words))
    return 1 if fuzzer.faults else 0


if __name__ == "__main__":
    sys.exit(main())

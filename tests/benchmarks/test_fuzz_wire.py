"""The fuzzer of the decoder: a short run finds nothing, and it sees a decoder that is broken on purpose."""

from __future__ import annotations

import json
import random

import pytest

from benchmarks import fuzz_wire
from dpcurate.errors import DecodeError
from dpcurate.queries import Gate, encoding


def test_a_short_run_finds_nothing():
    found = fuzz_wire.run(4_000, 200, seed=3)
    assert found.faults == []
    assert found.tried["bodies of requests"] + found.tried["bodies of answers"] == 4_000
    for what in ("decoded", "refused", "priced", "refused by the session"):
        assert found.tried[what] > 50, what


def test_every_kind_of_request_is_changed():
    kinds = {type(one).__name__ for one in fuzz_wire.requests()}
    asked = json.dumps([encoding.to_plain(one) for one in fuzz_wire.requests()])
    assert kinds == {"Release", "Choose", "Quantile", "AboveThreshold", "Sample", "Score"}
    assert all(f'"{name}"' in asked for name in encoding.KNOWN)
    body = encoding.encode_queries([fuzz_wire.requests()[0]])
    draw = random.Random(1)
    assert len({fuzz_wire.changed_bytes(body, draw) for _ in range(100)}) > 90


def refuse_at_length(_kind, _parts):
    raise DecodeError("a" * 5_000)


@pytest.mark.parametrize(
    ("name", "wrong", "fault"),
    [
        ("_fraction", lambda parts: 1 // parts[1], "ZeroDivisionError"),
        ("_of_kind", refuse_at_length, "a refusal of 5,000 characters"),
        ("_asked", lambda given: given, "decoded as something that is no query"),
    ],
)
def test_a_broken_decoder_is_seen(monkeypatch, name, wrong, fault):
    monkeypatch.setattr(encoding, name, wrong)
    found = fuzz_wire.Fuzzer()
    fuzz_wire.mutate(found, 3_000, seed=1)
    assert any(fault in text for text in found.faults)


def test_a_charge_is_seen():
    found = fuzz_wire.Fuzzer()
    real = found._validate

    def charges(made):
        real(made)
        for one in made:
            if isinstance(one, Gate):
                found.curator.open(one)

    found._validate = charges
    fuzz_wire.mutate(found, 3_000, seed=1)
    assert any("was charged for" in text for text in found.faults)

"""Handing a graph over charges nothing: the ledger stays as it is, byte for byte."""

from __future__ import annotations

import pytest

import dpcurate

for _tool in ("pgmpy", "dowhy", "causallearn"):
    pytest.importorskip(_tool, reason="pgmpy, DoWhy and causal-learn are not installed here")
pytestmark = pytest.mark.tools


def test_no_tool_charges_anything(asia, tmp_path):
    network, table, _ = asia
    ledger = tmp_path / "asia.ledger"
    found = dpcurate.discover(table, network.schema, epsilon=5, ledger=ledger)
    before = ledger.read_bytes()
    found.to_pgmpy()
    found.to_causallearn()
    found.to_dowhy("smoke", "lung", table)
    assert ledger.read_bytes() == before

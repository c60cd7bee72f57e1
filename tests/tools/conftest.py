"""What was found in one small world, for every tool."""

from __future__ import annotations

import pytest

import dpcurate


@pytest.fixture(scope="session")
def asia():
    network = dpcurate.networks.load("asia")
    table = network.sample(50_000, seed=3)
    found = dpcurate.discover(table, network.schema, epsilon=5, delta=1e-10, insecure_seed=3)
    return network, table, found

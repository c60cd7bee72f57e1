"""Blocks against networkx."""

from __future__ import annotations

from random import Random

import networkx as nx
import pytest

from dpcurate.graphs.graph import Skeleton
from dpcurate.graphs.separation import blocks


@pytest.mark.parametrize("seed", range(40))
def test_blocks_are_biconnected_components(seed: int) -> None:
    random = Random(seed)
    names = [str(i) for i in range(random.randint(1, 9))]
    edges = [(a, b) for i, a in enumerate(names) for b in names[:i] if random.random() < 0.3]
    graph = nx.Graph(edges)
    assert set(blocks(Skeleton.of(names, edges))) == {frozenset(part) for part in nx.biconnected_components(graph)}

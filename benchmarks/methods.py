"""What is compared: the proved methods, the published ones as their authors run them, and exact ones as a ceiling.

Proved methods run at the epsilon given. Published ones, marked *, run at that *claimed* epsilon and are NOT PRIVATE.
Without privacy: 'pc' is PC with a G test at 0.01, 'order-search' an exact score search with BIC ('order-search-bdeu'
with BDeu).
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from dpcurate import Budget, Curator, networks
from dpcurate.accounting.conversions import least
from dpcurate.learn.methods import PC, OrderSearch, get
from dpcurate.published import CurateReading, PublishedCuratePC, PublishedEMPC, PublishedPrivPC, PublishedSVTPC

SIX = ("cancer", "earthquake", "survey", "asia", "sachs", "child")
EXACT = {"pc": PC(), "order-search": OrderSearch(), "order-search-bdeu": OrderSearch(score="bdeu")}
PROVED = ("measure-once", "em-pc", "svt-pc", "priv-pc", "curate-pc", "notears-moments")
PUBLISHED = {
    "curate-pc*": PublishedCuratePC,
    "priv-pc*": PublishedPrivPC,
    "svt-pc*": PublishedSVTPC,
    "em-pc*": PublishedEMPC,
}


def published(name: str, epsilon: float):
    """The published variant as its authors' code runs it; CURATE takes the total, the others an epsilon a step."""
    if name == "curate-pc*":
        return PublishedCuratePC(total=epsilon, reading=CurateReading.script())
    return PUBLISHED[name](epsilon=epsilon)


def calibrated(name: str, curator: Curator, target: float) -> float:
    """The epsilon a step with which the mean claimed epsilon meets the target."""
    if name == "curate-pc*":
        return target
    steps = np.geomspace(target / 1000, max(target, 1.0) * 2, 4097)

    @cache
    def enough(place: int) -> bool:
        return bool(np.mean([published(name, float(steps[place])).fit(curator).claimed for _ in range(6)]) >= target)

    return float(steps[int(least(lambda place: enough(int(place)), 0, 4096))])


@cache
def per_step(name: str, network: str, rows: int, epsilon: float) -> float:
    """The published step that claims this epsilon on average, found once per network on other data."""
    world = networks.load(network)
    schema = replace(world.schema, rows=rows)
    curator = Curator(world.sample(rows, seed=1), schema, budget=Budget.unlimited(), insecure_seed=1)
    return calibrated(name, curator, epsilon)


def learned(name: str, network: str, rows: int, epsilon: float, seed: int) -> tuple[Any, float]:
    """What a method finds in fresh rows with fresh noise, and its seconds of processor time."""
    world = networks.load(network)
    table, schema = world.sample(rows, seed=10_000 + seed), replace(world.schema, rows=rows)
    start = time.process_time()
    if name in PROVED:
        # The row count stays private: only methods that need a public constant get one.
        facts = world.schema if name in ("measure-once", "notears-moments") else schema
        curator = Curator(table, facts, budget=Budget(epsilon=epsilon, delta=1e-10), insecure_seed=seed)
        found = get(name).fit(curator)
    else:
        curator = Curator(table, schema, budget=Budget.unlimited(), insecure_seed=seed)
        method = EXACT.get(name) or published(name, per_step(name, network, rows, epsilon))
        start = time.process_time()
        found = method.fit(curator)
    return found, time.process_time() - start

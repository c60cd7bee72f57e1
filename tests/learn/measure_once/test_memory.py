"""Wide tables and memory: what does not fit is refused before it costs anything, and the estimate is about right."""

from __future__ import annotations

import tracemalloc
from itertools import combinations

import numpy as np
import pytest

from dpcurate import Budget, Categorical, Curator, Schema, fit
from dpcurate.errors import DomainTooLarge
from dpcurate.learn.measure_once import Constants, method, released
from dpcurate.learn.measure_once.central_moments import CentralMoments, Released
from dpcurate.learn.measure_once.contrast_evidence import ContrastEvidence
from dpcurate.learn.measure_once.released import bytes_of_pairs, check_memory, memory_in_all


def test_pairs_that_do_not_fit_are_refused_with_the_numbers_and_cost_nothing(monkeypatch):
    schema = Schema(tuple(Categorical(f"c{i}", (0, 1)) for i in range(12)))
    curator = Curator({name: [0, 1, 1] for name in schema.names}, schema, budget=Budget(rho=1.0), insecure_seed=1)
    spent = curator.ledger.spent
    monkeypatch.setattr(method, "memory_in_all", lambda: 200_000)
    with pytest.raises(DomainTooLarge, match=r"12 columns make 66 pairs.*0\.0 GB.*Nothing was spent"):
        fit(curator, "measure-once")
    assert curator.ledger.spent == spent
    assert not [event for event in curator.ledger.events if event.mechanism != "insecure-seed"]


def test_what_fits_and_what_nobody_knows_is_not_refused():
    pairs = list(combinations(range(3), 2))
    needed = bytes_of_pairs((2, 3, 4), pairs)
    check_memory((2, 3, 4), pairs, needed)
    check_memory((2, 3, 4), pairs, None)
    with pytest.raises(DomainTooLarge, match="3 columns make 3 pairs"):
        check_memory((2, 3, 4), pairs, needed - 1)


@pytest.mark.parametrize("levels", [2, 5, 12])
def test_the_estimate_is_about_what_moments_and_evidence_take(levels):
    """Answers themselves come on top, so that it is an estimate from above."""
    rng, columns = np.random.default_rng(0), 40
    pairs = list(combinations(range(columns), 2))
    sets = [(), *((a,) for a in range(columns)), *pairs]
    sums = {u: np.array(1e4) if not u else 10 * rng.normal(size=(levels - 1,) * len(u)) for u in sets}
    tracemalloc.start()
    released = Released((levels,) * columns, {u: x.copy() for u, x in sums.items()}, dict.fromkeys(sets, 100.0))
    kept = ContrastEvidence(CentralMoments.of(released), Constants())
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert kept.measured.any()
    assert 0.2 < taken / bytes_of_pairs((levels,) * columns, pairs) < 1


def test_a_container_may_allow_less_than_the_machine_has(monkeypatch, tmp_path):
    monkeypatch.setattr(released, "CONTAINER", tmp_path / "memory.max")
    whole = memory_in_all()
    assert whole is None or whole > 100_000_000
    (tmp_path / "memory.max").write_text("3000000\n", encoding="ascii")
    assert memory_in_all() == 3_000_000
    (tmp_path / "memory.max").write_text("max\n", encoding="ascii")
    assert memory_in_all() == whole

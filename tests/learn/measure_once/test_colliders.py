"""Colliders at a column: sets of arrowheads that do not contradict themselves, each as likely as its triples say."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from math import exp
from random import Random

import numpy as np
import pytest

from dpcurate.learn.measure_once.hidden_causes import (
    MOST_COLLIDER,
    MOST_SETS,
    SHIFT,
    SLOPE,
    CollidersAt,
    colliders_by_column,
)


def around(neighbours: int, log_odds) -> dict[tuple[int, int, int], float]:
    """All triples of column 9 with pairs of the first columns, which are all apart."""
    return {(a, 9, b): log_odds(a, b) for a, b in combinations(range(neighbours), 2)}


def chance(at: CollidersAt, *colliders: tuple[int, int, int]) -> float:
    """The probability of exactly these colliders."""
    return at.weights[at.sets.index(frozenset(colliders))] / sum(at.weights)


def test_one_triple_is_a_collider_by_its_odds() -> None:
    at = CollidersAt.of({(0, 9, 1): 1.5})
    assert chance(at, (0, 9, 1)) == pytest.approx(1 / (1 + exp(-1.5)))
    assert at.sets[0] == {(0, 9, 1)}


def test_two_colliders_that_share_an_edge_make_the_third() -> None:
    odds = {(0, 9, 1): 2.0, (1, 9, 2): 2.0, (0, 9, 2): -1.0}
    at = CollidersAt.of(odds)
    possible = [(), *((t,) for t in odds), tuple(odds)]
    assert set(at.sets) == {frozenset(some) for some in possible}
    assert chance(at, *odds) == pytest.approx(exp(3.0) / (1 + 2 * exp(2.0) + exp(-1.0) + exp(3.0)))
    assert at.sets[0] == frozenset(odds)  # together they outweigh what speaks against the third


def test_what_contradicts_more_than_it_says_is_no_collider() -> None:
    odds = {(0, 9, 1): 2.0, (1, 9, 2): 1.0, (0, 9, 2): -3.0}
    assert CollidersAt.of(odds).sets[0] == {(0, 9, 1)}


def test_ends_that_are_joined_are_free() -> None:
    odds = {(0, 9, 1): 2.0, (1, 9, 2): 2.0}  # 0 and 2 are neighbours
    assert chance(CollidersAt.of(odds), *odds) == pytest.approx(exp(4.0) / (1 + 2 * exp(2.0) + exp(4.0)))


def test_without_evidence_there_is_no_collider() -> None:
    assert CollidersAt.of(around(4, lambda a, b: 0.0)).sets[0] == frozenset()


def test_draws_are_as_frequent_as_likely() -> None:
    at = CollidersAt.of({(0, 9, 1): 1.0, (1, 9, 2): -0.5, (0, 9, 2): 0.3})
    random, total = Random(5), 4000
    drawn = Counter(at.draw(random) for _ in range(total))
    for some in at.sets:
        p = chance(at, *some)
        assert abs(drawn[some] / total - p) < 4 * np.sqrt(p * (1 - p) / total)


def test_all_sets_of_ten_neighbours_are_looked_at_and_of_more_the_likeliest() -> None:
    assert len(CollidersAt.of(around(10, lambda a, b: 1.0)).sets) == 2**10 - 10  # one arrowhead makes no collider
    many = CollidersAt.of(around(16, lambda a, b: 2.0 if a < 5 and b < 5 else -1.0))
    assert len(many.sets) <= MOST_SETS
    assert many.sets[0] == {(a, 9, b) for a, b in combinations(range(5), 2)}


def test_evidence_counts_as_on_random_worlds_and_never_for_sure() -> None:
    (at,) = colliders_by_column({(0, 9, 1): 2.0})
    assert chance(at, (0, 9, 1)) == pytest.approx(1 / (1 + exp(-SLOPE * 2.0 - SHIFT)))
    for evidence, bound in ((100.0, MOST_COLLIDER), (-100.0, -MOST_COLLIDER)):
        (at,) = colliders_by_column({(0, 9, 1): evidence})
        assert chance(at, (0, 9, 1)) == pytest.approx(1 / (1 + exp(-bound)))


def test_columns_are_apart() -> None:
    columns = colliders_by_column({(0, 9, 1): 9.0, (0, 8, 1): -9.0, (1, 9, 2): 9.0})
    assert [at.sets[0] for at in columns] == [{(0, 9, 1), (1, 9, 2)}, frozenset()]

"""Adjustment where causes may be hidden: sound in the DAG behind a PAG, and complete by the definition."""

from itertools import combinations, pairwise, product

import pytest

from dpcurate.errors import GraphError
from dpcurate.graphs.adjustment import Adjustment, is_valid, pag_adjustment, visible
from dpcurate.graphs.graph import Pag
from dpcurate.networks import random_dag
from dpcurate.networks.interventions import ancestors, true_pag


def paths(pag: Pag, a: str, b: str) -> list[list[str]]:
    """Every path."""

    def onward(path: list[str]) -> list[list[str]]:
        if path[-1] == b:
            return [path]
        after = [x for x in pag.neighbours(path[-1]) if x not in path]
        return [found for x in after for found in onward([*path, x])]

    return onward([a])


def possibly_directed(pag: Pag, path: list[str]) -> bool:
    return all(pag.marks[after, here] != "arrow" for here, after in pairwise(path))


def descendants(pag: Pag, name: str) -> set[str]:
    return {name} | {x for x in pag.nodes if x != name and any(possibly_directed(pag, p) for p in paths(pag, name, x))}


def blocked(pag: Pag, path: list[str], given: tuple[str, ...]) -> bool:
    """A path of definite status with a given non-collider, or a collider that nothing given lies below."""
    for before, here, after in zip(path, path[1:], path[2:], strict=False):
        into = pag.marks[before, here] == "arrow", pag.marks[after, here] == "arrow"
        if all(into):
            if not any(_causes(pag, here, z) for z in given):
                return True
        elif here in given:
            return True
    return False


def _causes(pag: Pag, a: str, b: str) -> bool:
    return a == b or any(
        all(pag.marks[y, x] == "tail" and pag.marks[x, y] == "arrow" for x, y in pairwise(p)) for p in paths(pag, a, b)
    )


def definite(pag: Pag, path: list[str]) -> bool:
    for before, here, after in zip(path, path[1:], path[2:], strict=False):
        marks = pag.marks[before, here], pag.marks[after, here]
        collider = marks == ("arrow", "arrow")
        apart = (before, after) not in pag.marks
        if not (collider or "tail" in marks or (marks == ("circle", "circle") and apart)):
            return False
    return True


def by_definition(pag: Pag, cause: str, outcome: str) -> set[tuple[str, ...]]:
    """All valid sets, from the criterion as it is printed."""
    every = paths(pag, cause, outcome)
    causal = [p for p in every if possibly_directed(pag, p)]
    if not all(visible(pag, cause, p[1]) for p in causal):
        return set()
    out = set().union(*(descendants(pag, w) for p in causal for w in p[1:]))
    others = [x for x in pag.nodes if x not in (cause, outcome) and x not in out]
    rest = [p for p in every if p not in causal and definite(pag, p)]
    sets = [g for size in range(len(others) + 1) for g in combinations(others, size)]
    return {given for given in sets if all(blocked(pag, path, given) for path in rest)}


def test_sets_are_those_of_the_criterion_and_valid_in_the_dag_behind() -> None:
    checked = sum(_checked(seed) for seed in range(300))
    assert checked > 100  # effects that are identified, and not zero


def _checked(seed: int) -> int:
    dag = random_dag(6 + seed % 2, edges=6 + seed % 4, seed=seed)
    hidden = dag.nodes[: 1 + seed % 2]
    pag = true_pag(dag, hidden)
    above, identified = ancestors(dag), 0
    for cause, outcome in product(pag.nodes, repeat=2):
        if cause == outcome:
            continue
        found = pag_adjustment(pag, cause, outcome)
        if found is not None and not found.acts:
            assert cause not in above[outcome]
            continue
        wanted = by_definition(pag, cause, outcome)
        assert (found is not None) == bool(wanted), (cause, outcome, pag)
        for given in () if found is None else found.sets:
            assert given in wanted
            identified += 1
            if cause in above[outcome]:
                assert is_valid(dag, cause, outcome, given)
    return identified


def test_an_arrow_is_visible_only_if_something_points_at_its_start() -> None:
    pag = Pag.of("cab", [("c", "o->", "a"), ("a", "->", "b")])
    assert visible(pag, "a", "b")
    assert pag_adjustment(pag, "a", "b") == Adjustment(True, ((), ("c",)))
    assert not visible(Pag.of("ab", [("a", "->", "b")]), "a", "b")
    assert pag_adjustment(Pag.of("ab", [("a", "->", "b")]), "a", "b") is None
    assert pag_adjustment(Pag.of("ab", [("a", "o-o", "b")]), "a", "b") is None
    assert pag_adjustment(Pag.of("ab", [("a", "<->", "b")]), "a", "b") == Adjustment(False)


def test_a_path_of_colliders_makes_an_arrow_visible_and_a_neighbour_of_its_end_does_not() -> None:
    near = [("c", "<->", "a"), ("c", "->", "b"), ("a", "->", "b")]
    assert not visible(Pag.of("cab", near), "a", "b")
    assert visible(Pag.of("dcab", [*near, ("d", "o->", "c")]), "a", "b")
    assert not visible(Pag.of("dcab", [*near, ("c", "->", "d")]), "a", "b")


def test_selected_rows_and_graphs_of_no_class_are_not_identified() -> None:
    selected = Pag.of("cabd", [("c", "o->", "a"), ("a", "->", "b"), ("c", "--", "d")])
    assert pag_adjustment(selected, "a", "b") is None
    ring = Pag.of(
        "cabwxyz", [("c", "o->", "a"), ("a", "->", "b"), *((p[0], "o-o", p[1]) for p in ("wx", "xy", "yz", "zw"))]
    )
    assert pag_adjustment(ring, "a", "b") is None
    with pytest.raises(GraphError, match="on itself"):
        pag_adjustment(ring, "a", "a")

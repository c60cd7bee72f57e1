"""Sets to adjust for, against the effects themselves in small networks and against every DAG of a class."""

from itertools import combinations, product

import numpy as np
import pytest

from dpcurate.errors import GraphError
from dpcurate.graphs.adjustment import Adjustment, adjustments, covering, is_valid, optimal_set, parent_choices
from dpcurate.graphs.graph import Cpdag, Dag
from dpcurate.networks import Network, random_dag, random_network

WORLDS = [random_network(random_dag(5, edges=edges, seed=seed), seed=seed) for seed in range(8) for edges in (4, 6)]


def effect(network: Network, cause: str, outcome: str) -> np.ndarray:
    """P(outcome | do(cause)) from the definition: the cause's own table is taken out of the product."""
    names = network.nodes
    sizes = [len(network[x].levels) for x in names]
    total = np.zeros((len(network[cause].levels), len(network[outcome].levels)))
    for cells in product(*map(range, sizes)):
        at = dict(zip(names, cells, strict=True))
        p = 1.0
        for x in names:
            if x != cause:
                v = network[x]
                row = (
                    np.ravel_multi_index([at[q] for q in v.parents], [len(network[q].levels) for q in v.parents])
                    if v.parents
                    else 0
                )
                p *= v.probabilities[row, at[x]]
        total[at[cause], at[outcome]] += p
    return total


def adjusted(network: Network, cause: str, outcome: str, given: tuple[str, ...]) -> np.ndarray:
    """The sum over z of P(z) P(y | x, z)."""
    table = network.marginal([cause, outcome, *given]).reshape(
        len(network[cause].levels), len(network[outcome].levels), -1
    )
    weights = table.sum(axis=(0, 1))
    return np.asarray((table / table.sum(axis=1, keepdims=True)) @ weights)


@pytest.mark.parametrize("world", WORLDS[:6])
def test_every_set_gives_the_effect_of_setting_the_cause(world: Network) -> None:
    for cause, outcome in product(world.nodes, repeat=2):
        if cause == outcome:
            continue
        truth = effect(world, cause, outcome)
        (found,) = adjustments(world.dag, cause, outcome)
        assert found.acts == (np.ptp(truth, axis=0).max() > 1e-12)
        for given in found.sets:
            assert adjusted(world, cause, outcome, given) == pytest.approx(truth), (cause, outcome, given)


@pytest.mark.parametrize("world", WORLDS[:4])
def test_a_set_is_valid_exactly_where_it_gives_the_effect(world: Network) -> None:
    for cause, outcome in world.dag.arrows:
        truth = effect(world, cause, outcome)
        others = [x for x in world.nodes if x not in (cause, outcome)]
        for size in range(len(others) + 1):
            for given in combinations(others, size):
                right = np.abs(adjusted(world, cause, outcome, given) - truth).max() < 1e-9
                assert is_valid(world.dag, cause, outcome, given) == right, (cause, outcome, given)


def test_the_optimal_set_holds_causes_of_the_outcome_and_not_of_the_cause_alone() -> None:
    dag = Dag.of("izxmyw", [("i", "x"), ("z", "x"), ("z", "y"), ("x", "m"), ("m", "y"), ("w", "y")])
    assert optimal_set(dag, "x", "y") == ("z", "w")
    (found,) = adjustments(dag, "x", "y")
    assert found.sets == (("z", "w"), ("z",), ("i", "z"))
    assert adjustments(dag, "y", "x") == (Adjustment(False),)


def members(graph: Cpdag) -> list[Dag]:
    """Every DAG of the class, by trying all."""
    lines = [tuple(sorted(pair)) for pair in sorted(map(sorted, graph.lines))]
    found = []
    for turns in product((False, True), repeat=len(lines)):
        arrows = {(b, a) if turn else (a, b) for (a, b), turn in zip(lines, turns, strict=True)}
        try:
            dag = Dag(graph.nodes, graph.arrows | arrows)
        except GraphError:
            continue
        found += [dag] if dag.cpdag() == graph else []
    return found


@pytest.mark.parametrize("seed", range(12))
def test_possibilities_of_a_class_are_those_of_its_members(seed: int) -> None:
    network = random_network(random_dag(5, edges=5 + seed % 3, seed=seed), seed=seed)
    graph = network.cpdag
    each = members(graph)
    for cause, outcome in product(graph.nodes, repeat=2):
        if cause == outcome:
            continue
        wanted = {(dag.parents(cause), outcome in _descendants(dag, cause)) for dag in each}
        found = adjustments(graph, cause, outcome)
        truths = {_key(network, cause, outcome, *one) for one in wanted}
        assert {_key_of(network, cause, outcome, one) for one in found} == truths
        choices = {
            tuple(x for x in graph.nodes if x in {*graph.parents(cause), *more})
            for more in parent_choices(graph, cause)
        }
        assert {parents for parents, _ in wanted} <= choices


@pytest.mark.parametrize("seed", range(12))
def test_few_dags_have_all_parents_that_are_possible(seed: int) -> None:
    graph = random_dag(5, edges=4 + seed % 4, seed=seed).cpdag()
    each, few = members(graph), covering(graph)
    assert set(few) <= set(each)
    for name in graph.nodes:
        assert {dag.parents(name) for dag in few} == {dag.parents(name) for dag in each}


def test_lines_that_are_not_connected_turn_in_the_same_dags() -> None:
    lines = Cpdag.of("abcdefgh", arrows=[("g", "h")], lines=["ab", "cd", "ef"])
    assert len(covering(lines)) == 2
    assert covering(Cpdag.of("abcd", lines=["ab", "bc", "cd", "da"])) == ()


def _descendants(dag: Dag, cause: str) -> set[str]:
    below: set[str] = set()
    for name in dag.order():
        if below.union({cause}) & set(dag.parents(name)):
            below.add(name)
    return below


def _key(network: Network, cause: str, outcome: str, parents: tuple[str, ...], acts: bool) -> tuple[float, ...]:
    """The effect that adjustment for these parents gives, rounded, to compare sets of effects."""
    if not acts:
        return ()
    return tuple(np.round(adjusted(network, cause, outcome, parents).ravel(), 9) + 0.0)


def _key_of(network: Network, cause: str, outcome: str, found: Adjustment) -> tuple[float, ...]:
    return _key(network, cause, outcome, found.sets[0] if found.sets else (), found.acts)


def test_a_line_has_two_possibilities_and_a_graph_of_no_dag_its_arrows() -> None:
    assert adjustments(Cpdag.of("ab", lines=["ab"]), "a", "b") == (Adjustment(True, ((),)), Adjustment(False))
    ring = Cpdag.of("abcd", lines=["ab", "bc", "cd", "da"])  # no DAG has these lines without a new collider
    assert {one.sets for one in adjustments(ring, "a", "b")} == {((),), (("d",),), ()}
    star = Cpdag.of([f"x{i}" for i in range(13)], lines=[("x0", f"x{i}") for i in range(1, 13)])
    assert adjustments(star, "x0", "x1") == ()
    with pytest.raises(GraphError, match="on itself"):
        adjustments(ring, "a", "a")


def test_arrows_that_decide_lines_leave_one_possibility() -> None:
    """Arrows drawn by their probability need not be all that follow: here a -> b decides b -- c and c -- d."""
    lines = frozenset(map(frozenset, (("b", "c"), ("c", "d"), ("c", "e"))))
    graph = Cpdag(("d", "e", "c", "b", "a", "f"), frozenset({("a", "b"), ("d", "f")}), lines)
    assert [one.acts for one in adjustments(graph, "d", "f")] == [True]
    assert [one.acts for one in adjustments(graph, "b", "d")] == [True]
    assert [one.acts for one in adjustments(graph, "d", "b")] == [False]


def test_which_graphs_cover_the_effects_does_not_depend_on_how_names_are_hashed():
    """Or a result would change from one process to the next."""
    lines = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (3, 4), (3, 5), (4, 5), (5, 6)]
    found = set()
    for turn in range(20):
        names = [f"{i} {turn}" for i in range(7)]
        dags = covering(Cpdag.of(names, [], [(names[a], names[b]) for a, b in lines]))
        found.add(tuple(frozenset((names.index(a), names.index(b)) for a, b in dag.arrows) for dag in dags))
    assert len(found) == 1

"""Columns that repeat another one: which are taken for copies, who stands for both, and what is said of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_measure_once import released

from dpcurate import Budget, Curator, Knowledge, Schema
from dpcurate.learn.measure_once import Constants, MeasureOnce
from dpcurate.learn.measure_once.central_moments import CentralMoments
from dpcurate.learn.measure_once.constraints import Constraints
from dpcurate.learn.measure_once.release_plan import copies
from dpcurate.networks.network import Network, Variable
from dpcurate.schema import Categorical

ROWS = 100_000
TURNED = np.eye(3)[::-1]
NOTE = "{0} and {1} are all but the same column: leave one out, or read links of {0} as links of either"


def of_two(table, usual=(0.5, 0.3, 0.2)):
    """A column of three levels and one that follows it by a table."""
    levels = tuple(map(str, range(np.shape(table)[1])))
    first = Variable("a", ("0", "1", "2"), (), np.array([usual]))
    return Network("two", (first, Variable("b", levels, ("a",), np.array(table))))


def found(network, rho, knowledge=None, seed=1):
    moments = CentralMoments.of(released(network, ROWS, rho, seed))
    return copies(moments, Constraints.of(network.schema.names, knowledge))


def differing(share):
    return (1 - share) * TURNED + share * (1 - TURNED) / 2


# --- what is taken for a copy -------------------------------------------------------------------------------------


@pytest.mark.parametrize("rho", [1e-6, 1e-4, 1.0, 1e3])
def test_the_same_levels_under_other_names_are_a_copy_at_any_noise_that_lets_it_be_seen(rho):
    assert sum(found(of_two(TURNED), rho, seed=seed) == {1: 0} for seed in range(20)) >= 18


@pytest.mark.parametrize(("share", "rho"), [(0.25, 1e-6), (0.05, 1e-2), (0.005, 1.0)])
def test_a_column_that_differs_by_more_than_noise_hides_is_none(share, rho):
    assert sum(found(of_two(differing(share)), rho, seed=seed) == {} for seed in range(20)) >= 18


def test_what_noise_hides_is_said_of_neither():
    """No share of rows can be seen to agree, so that a column that follows another one loosely could pass, too."""
    assert not any(found(of_two(TURNED), 1e-8, seed=seed) for seed in range(20))


def test_a_column_that_another_one_determines_says_less_than_it():
    assert found(of_two([[1, 0], [0, 1], [0, 1]]), 1.0) == {}


@pytest.mark.parametrize("usual", [(0.98, 0.01, 0.01), (0.6, 0.2, 0.2)])
def test_agreeing_on_the_usual_level_is_not_enough(usual):
    """Two columns that are nearly always at one level agree in nearly all rows and may be independent."""
    assert found(of_two([usual] * 3, usual), 1.0) == {}


def test_a_pair_that_its_margins_do_not_allow_is_not_believed():
    moments = CentralMoments.of(released(of_two(TURNED), ROWS, 1.0, 1))
    block = moments.blocks[0, 1]
    beyond = replace(moments, blocks={(0, 1): replace(block, observed=1.2 * block.observed)})
    assert copies(beyond, Constraints.of("ab", None)) == {}


# --- who stands for both ------------------------------------------------------------------------------------------


def family(order="xzaby"):
    """x and z make a, of which b is a copy and on which y depends; the schema has the columns in some order."""
    random = np.random.default_rng(1)
    x, z = random.integers(0, 2, ROWS), random.integers(0, 2, ROWS)
    a = np.where(random.random(ROWS) < 0.2, random.integers(0, 3, ROWS), x + z)
    y = np.where(random.random(ROWS) < 0.3, random.integers(0, 2, ROWS), (a > 0).astype(int))
    table = {"x": x, "z": z, "a": a, "b": 2 - a, "y": y}
    return table, Schema(tuple(Categorical(n, tuple(range(int(table[n].max()) + 1))) for n in order))


def learnt(order="xzaby", knowledge=None, epsilon=3.0, **options):
    curator = Curator(*family(order), budget=Budget(epsilon=epsilon, delta=1e-10), insecure_seed=1)
    return MeasureOnce(**options).fit(curator, knowledge)


def edges(*pairs):
    return {frozenset(pair) for pair in pairs}


AT_A, AT_B = edges("xa", "za", "ay", "ab"), edges("xb", "zb", "by", "ab")


@pytest.mark.parametrize("epsilon", [0.3, 3, 100])
@pytest.mark.parametrize(("order", "drawn", "note"), [("xzaby", AT_A, "ab"), ("bxyaz", AT_B, "ba")])
def test_the_first_in_the_schema_has_the_links_of_both(order, drawn, note, epsilon):
    here = learnt(order, epsilon=epsilon)
    assert here.skeleton.edges == drawn
    assert NOTE.format(*note) in here.notes


@pytest.mark.parametrize(
    "knowledge",
    [Knowledge.of(tiers=["b", "xzay"]), Knowledge.of(forbidden_arrows=[("a", "b")])],
    ids=["tiers", "arrow"],
)
def test_what_is_known_to_come_first_stands_for_both(knowledge):
    here = learnt(knowledge=knowledge)
    assert here.skeleton.edges == AT_B
    assert here.direction["a", "b"] == 0


def test_no_column_is_set_aside_whose_links_are_known():
    here = learnt(knowledge=Knowledge.of(required_edges=[("b", "y")]))
    assert frozenset("by") in here.skeleton.edges
    assert not any("same column" in note for note in here.notes)


@pytest.mark.parametrize("wide", [5, 10])
def test_a_copy_hides_no_collider_and_makes_none(wide):
    """Also where P(this way round) says most of an arrow: of a copy's edge it is the search's that counts."""
    here = learnt(constants=Constants(wide=wide))
    assert here.graph.arrows == {("x", "a"), ("z", "a"), ("a", "b"), ("a", "y")}


def test_which_of_two_copies_came_first_nothing_tells():
    here = learnt()
    assert here.direction["a", "b"] == 0.5
    assert here.linked[frozenset("ab")] > 0.95
    assert here.linked[frozenset("by")] < 0.5


def test_a_copy_makes_no_collider_where_causes_may_be_hidden():
    here = learnt(latent=True)
    assert here.skeleton.edges == AT_A
    assert here.graph.marks["x", "a"] != here.graph.marks["b", "a"]  # an arrowhead at a, and none from b


def test_copies_of_a_copy_hang_on_the_first_of_all():
    values = np.random.default_rng(1).integers(0, 3, ROWS)
    schema = Schema(tuple(Categorical(n, (0, 1, 2)) for n in "abc"))
    table = {"a": values, "b": 2 - values, "c": (values + 1) % 3}
    here = MeasureOnce().fit(Curator(table, schema, budget=Budget(epsilon=1, delta=1e-10), insecure_seed=1))
    assert here.skeleton.edges == edges("ab", "ac")
    assert here.notes[1:] == (NOTE.format("a", "b"), NOTE.format("a", "c"))


def test_of_a_copy_only_the_pair_with_its_first_is_left():
    sets = [(), *((i,) for i in range(4)), (0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (0, 1, 2), (0, 2, 3)]
    levels = tuple(map(str, range(2)))
    network = Network("four", tuple(Variable(n, levels, (), np.array([[0.5, 0.5]])) for n in "abcd"))
    moments = CentralMoments.of(released(network, 1000, 1.0, 1, sets=sets))
    assert set(moments.without_links_of({1: 0}).blocks) == {(0, 1), (0, 2), (0, 3), (0, 2, 3)}
    assert moments.without_links_of({}) == moments

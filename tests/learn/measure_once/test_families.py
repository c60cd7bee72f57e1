"""The default method where noise is small: contrasts of whole families, and edges that a set explains away."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from test_arrows import common_effect
from test_evidence import LEVELS, PAIRS, A, B, S, T, chained, evidence, exact
from test_family_search import PARENTS, Numbers

from dpcurate import Budget, Curator, Knowledge, networks
from dpcurate.learn.measure_once import Constants, MeasureOnce
from dpcurate.learn.measure_once.constraints import Constraints
from dpcurate.learn.measure_once.decide import Decision
from dpcurate.learn.measure_once.prune import Explanations, _apart, pruned
from dpcurate.learn.measure_once.release_plan import family_sets

NAMES = ("a", "b", "s", "t")
EVERY = (*PAIRS, *combinations(range(4), 3))


def decided(*parents):
    """A decision in the order of the columns, all its edges and no others sure."""
    p = np.zeros((len(parents), len(parents)))
    for column, of in enumerate(parents):
        p[column, list(of)] = p[list(of), column] = 1
    return Decision(parents, tuple(range(len(parents))), p)


def linked(decision):
    return decision.probabilities > 0


def after_pruning(joint, decision, sets=EVERY, knowledge=None):
    found = evidence(exact(joint, 1e5, sets))
    return pruned(decision, found, Constraints.of(NAMES, knowledge))


# --- what is bought ----------------------------------------------------------------------------------------------


def test_all_contrasts_of_a_column_and_its_neighbours_are_bought_unless_they_were():
    star = decided((), (A,), (A,), (A,))
    found = evidence(exact(chained(np.random.default_rng(1)), 1e5, (*PAIRS, (A, B, S))))
    assert family_sets(star, found, linked(star)) == [(A, B, S, T), (A, B, T), (A, S, T), (B, S, T)]


def test_a_contrast_of_hardly_a_row_in_a_cell_is_not_bought():
    star = decided((), (A,), (A,), (A,))
    found = evidence(exact(chained(np.random.default_rng(1)), 50.0 * 12, PAIRS))
    assert family_sets(star, found, linked(star)) == [(A, B, S), (B, S, T)]
    assert np.prod(LEVELS) == 36


def test_a_set_with_a_pair_that_may_not_be_measured_is_not_bought():
    star = decided((), (A,), (A,), (A,))
    found = evidence(exact(chained(np.random.default_rng(1)), 1e5, tuple(u for u in PAIRS if u != (B, T))))
    assert family_sets(star, found, linked(star)) == [(A, B, S), (A, S, T)]


def test_terms_are_bought_for_a_dependence_that_the_parents_leave():
    """b <- a -> t, and s alone: given b and s nothing explains why a and t depend on each other."""
    rng = np.random.default_rng(2)
    sides = rng.dirichlet([1.0] * 2, size=3), rng.dirichlet([1.0] * 3, size=3)
    joint = np.einsum("a,ab,s,at->abst", rng.dirichlet([3.0] * 3), sides[0], rng.dirichlet([3.0] * 2), sides[1])
    wrong = decided((), (), (), (B, S))
    found = evidence(exact(joint, 1e5, PAIRS))
    assert family_sets(wrong, found, np.zeros((4, 4), bool)) == [(A, B, S), (B, S, T)]


def test_families_are_bought_where_noise_is_small_and_nowhere_else():
    for rho, shares in ((0.02, [0.5, 0.35, 0.15]), (100.0, [0.5, 0.25, 0.25])):
        door = Numbers(1, 20_000, rho)
        MeasureOnce(constants=Constants(effort=0)).fit(door)
        assert [noise.rho / rho for _, noise in door.asked] == pytest.approx(shares)
    assert max(len(u) for u in door.asked[2][0].sets) > 3


# --- what is dropped ---------------------------------------------------------------------------------------------


def test_causes_joined_by_their_effect_are_parted_and_the_edges_to_it_stay():
    joint = common_effect(np.random.default_rng(1))
    wrong = Decision(((S, B), (S,), (), ()), (S, B, A, T), np.ones((4, 4)))
    drawn = after_pruning(joint, wrong)
    assert drawn.parents == ((S,), (S,), (), ())
    assert drawn.probabilities[A, B] == 0
    assert drawn.probabilities[A, S] == drawn.probabilities[A, T] == 1


def test_causes_joined_by_their_effect_are_parted_where_triples_are_the_last_bought():
    network = networks.load("earthquake")
    for seed in (3, 5):
        budget = Budget(epsilon=5, delta=1e-10)
        curator = Curator(
            network.sample(100_000, seed=10_000 + seed), network.schema, budget=budget, insecure_seed=seed
        )
        found = MeasureOnce().fit(curator)
        assert "larger sets" not in found.notes[0]
        assert found.graph == network.cpdag


def test_a_required_edge_is_not_dropped():
    joint = common_effect(np.random.default_rng(1))
    wrong = Decision(((B, S), (S,), (), ()), (S, B, A, T), np.ones((4, 4)))
    assert after_pruning(joint, wrong, knowledge=Knowledge(required_edges=[("b", "a")])).parents == wrong.parents


def between(rng):
    """a and b depend on each other only through s and t, and on both of them together."""
    st = rng.dirichlet([3.0] * 6).reshape(2, 3)
    sides = rng.dirichlet([1.0] * 3, size=(2, 3)), rng.dirichlet([1.0] * 2, size=(2, 3))
    return np.einsum("st,sta,stb->abst", st, *sides)


def test_a_set_separates_only_if_no_term_of_its_regressions_is_missing():
    joint, full = between(np.random.default_rng(3)), decided((), (A,), (A, B), (A, B, S))
    assert A not in after_pruning(joint, full).parents[B]
    without = tuple(u for u in EVERY if u != (B, S, T))
    assert A in after_pruning(joint, full, without).parents[B]


def test_a_set_at_whose_levels_a_dependence_has_opposite_signs_does_not_separate():
    ab = np.array([np.outer([0.5, 0.3, 0.2], [0.7, 0.3]), np.outer([0.2, 0.3, 0.5], [0.3, 0.7])])  # at each s
    turned = 0.1 * np.multiply.outer([1, -1], np.outer([1, 0, -1], [1, -1]))
    full = decided((), (A,), (A, B), ())
    for dependence, kept in ((0, ()), (turned, (A,))):
        joint = np.einsum("sab,t->abst", (ab + dependence) / 2, [0.5, 0.3, 0.2])
        assert after_pruning(joint, full).parents[B] == kept


def test_a_set_that_determines_a_column_separates_nothing():
    """s is set if a or b is (as in Asia), and t follows s: given a and b nothing is left of s, and s - t stays."""
    rng = np.random.default_rng(4)
    causes = np.multiply.outer([0.6, 0.2, 0.2], [0.7, 0.3])
    either = np.zeros((3, 2, 2))
    for a, b in np.ndindex(3, 2):
        either[a, b, int(a > 0 or b > 0)] = 1
    joint = np.einsum("ab,abs,st->abst", causes, either, rng.dirichlet([1.0] * 3, size=2))
    full = decided((), (), (A, B), (A, B, S))
    assert S in after_pruning(joint, full).parents[T]
    assert A not in after_pruning(joint, full).parents[T]


class Copies:
    """Evidence of copies of one column, 0 to `count` - 1, any of which separates the last one from all others.

    If `doubt` is given, nothing does so clearly for one of the copies; if `same` is given, others determine that
    column.
    """

    def __init__(self, count, doubt=None, same=None):
        self.count, self.doubt, self.marginal = count, doubt, np.full((count + 1, count + 1), 900.0)
        self.same = same

    def saturated(self, *asked):
        return True

    def determined(self, column, given):
        return column == self.same

    def conditional(self, others, column, given):
        apart = given and self.count not in given
        pairs = [{x, column} for x in others]
        return np.array([900.0 if self.count not in pair or not apart else 1.0 if self.doubt in pair else -5.0
                         for pair in pairs])  # fmt: skip

    def one(self, column, other, given):
        return self.conditional([other], column, given)[0]

    def interactions(self, asked):
        return [-1.0] * len(asked)


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("search", ["left one edge", "left all"])
def test_copies_do_not_part_each_other_from_what_depends_on_them(count, search):
    """Whether the search has explained all but one by that one, or has left them all to be pruned."""
    copies = tuple(tuple(range(x)) for x in range(count))
    kept = (0,) if search == "left one edge" else tuple(range(count))
    found = pruned(decided(*copies, kept), Copies(count), Constraints.of("abcd"[: count + 1], None))
    assert len(found.parents[count]) == 1
    assert found.parents[:count] == copies


def test_what_a_set_determines_it_does_not_part_from_anything():
    found = pruned(decided((), (0,), (0, 1)), Copies(2, same=2), Constraints.of("abc", None))
    assert found.parents == ((), (0,), (0, 1))


def test_a_copy_that_is_not_clearly_separated_takes_the_place_of_one_that_is():
    forbidden = Knowledge(forbidden_arrows=[("b", "c")])
    for knowledge, parents, sure in ((None, (1,), [0, 0.5, 0]), (forbidden, (0,), [1, 0, 0])):
        found = pruned(decided((), (0,), (0,)), Copies(2, doubt=1), Constraints.of("abc", knowledge))
        assert found.parents == ((), (0,), parents)
        assert found.probabilities[2].tolist() == sure


@pytest.mark.parametrize("seed", [4, 6])
def test_next_to_no_noise_makes_no_false_edge(seed):
    """With triples alone, each of these worlds gets one."""
    door = Numbers(seed, 100_000, 1e3)
    found = MeasureOnce().fit(door).skeleton.edges
    assert found == {frozenset((f"X{x + 1}", f"X{y + 1}")) for y, parents in PARENTS.items() for x in parents}


class Told:
    """Evidence by pair and set, for what explains a pair more clearly."""

    def __init__(self, said):
        self.said, self.marginal = said, np.zeros((4, 4))

    def one(self, a, b, given):
        return self.said[a, b, given]


@pytest.mark.parametrize(
    ("given", "evidence", "clearer"), [((2,), -6.0, True), ((2,), -4.0, False), ((2, 3), -6.0, False), ((), -6.0, True)]
)
def test_no_larger_set_explains_more_clearly(given, evidence, clearer):
    """X1 and X3 went for X2 at -5; X1 and X2 may go instead, for a set of X3."""
    separators = Explanations(
        decided((), (), (), ()), np.zeros((4, 4), bool), Told({(0, 1, given): evidence, (0, 2, (1,)): -5.0})
    )
    separators.sets[frozenset((0, 2))] = (1,)
    assert separators.clearer((0, 1), given, than=(0, 2)) == clearer


class Weighed:
    """Evidence of independence as it is given."""

    def __init__(self, log_odds):
        self.log_odds = log_odds

    def saturated(self, x, column, given):
        return True

    def determined(self, column, given):
        return False

    def conditional(self, others, column, given):
        return [self.log_odds[x] for x in others]

    def interactions(self, triples):
        return [0.0 for _ in triples]


def test_an_edge_goes_for_clear_evidence_only():
    """Without power the log odds stay near 0, so that what is a little below it says nothing."""
    adjacent = np.zeros((5, 5), dtype=bool)
    adjacent[0, 1:] = adjacent[1:, 0] = True
    assert _apart(0, (), adjacent, Weighed({1: 0.0, 2: -0.5, 3: -1.9, 4: -2.1})) == [4]

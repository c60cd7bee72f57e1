"""Worked examples of the literature: the PAGs printed there, by the rules, by FCI with an oracle, and by brute force.

Graphs and PAGs of Zhang (2008), Zhang (2006) and Spirtes (1997) as the tests of pcalg give them, with the page.
"""

from __future__ import annotations

from random import Random

import pytest
from markov_class import KINDS, brute_pag, independences, walk

from dpcurate.graphs.graph import Dag
from dpcurate.graphs.pag import Pag
from dpcurate.graphs.pag_orientation import HIDDEN, PagRule, orient_pag, rule_4, rule_9
from dpcurate.learn.methods import PC
from dpcurate.networks.interventions import ancestral_graph, true_pag, visible_skeleton
from oracle import OracleQueryable


def dag_of(children: dict[str, str], nodes: str) -> Dag:
    """Nodes of one letter, and the children of each."""
    return Dag.of(nodes, [(a, b) for a, below in children.items() for b in below])


def pag_of(nodes: str, edges: str) -> Pag:
    """From edges such as "a o-> b, b <-> c"."""
    return Pag.of(nodes, [tuple(edge.split()) for edge in edges.split(",")])  # type: ignore[misc]


# Zhang (2008), Artificial Intelligence 172, figure 6: the tails at b and c need rule 9.
ZHANG_2008 = dag_of({"h": "ac", "a": "b", "b": "d", "c": "d"}, "habcd"), "h"
ZHANG_2008_PAG = pag_of("abcd", "a o-o b, a o-o c, b -> d, c -> d")
# Zhang (2006), dissertation, figure 5.2: the tail at b of b -> e needs the path a d b e, which discriminates for b.
ZHANG_2006 = dag_of({"a": "d", "b": "de", "c": "d", "d": "e", "h": "cd"}, "abcdeh"), "h"
ZHANG_2006_PAG = pag_of("abcde", "a o-> d, b o-> d, c o-> d, d -> e, b -> e")
# Spirtes (1997), pages 21 and 24: c and e are separated by a, b and d, which are not all neighbours of one of them.
SPIRTES_1997 = dag_of({"g": "cd", "h": "be", "a": "bd", "b": "c", "d": "e"}, "ghabcde"), "gh"
SPIRTES_1997_PAG = pag_of("abcde", "a o-> b, a o-> d, b -> c, b <-> e, c <-> d, d -> e")
# The small example in pcalg's tests of RFCI (Colombo et al. 2012; a to f are X3, X4, X1, X2, X5 and X6): the same
# graph with an effect f of all but c. While c and e are taken for adjacent, c e f looks like a collider and is none.
RFCI = dag_of({"g": "cd", "h": "be", "a": "bdf", "b": "cf", "d": "ef", "e": "f"}, "ghabcdef"), "gh"
RFCI_PAG = pag_of("abcdef", "a o-> b, a o-> d, a -> f, b -> c, b <-> e, b o-> f, c <-> d, d -> e, d -> f, e o-> f")
# Twelve visible columns and thirteen hidden causes of two each, from pcalg's tests of RFCI: long discriminating paths.
HIDDEN_CAUSES = "Aae Bce Cck Dek Ebl Fdf Gaf Hak Ifg Jgl Kjl Lik Mhj"
ARROWS = "bcdk cfl dekl ehl fjkl gk hil il jk"
LONG = dag_of({word[0]: word[1:] for word in f"{HIDDEN_CAUSES} {ARROWS}".split()}, "ABCDEFGHIJKLMabcdefghijkl")

EXAMPLES = [
    (ZHANG_2008, ZHANG_2008_PAG),
    (ZHANG_2006, ZHANG_2006_PAG),
    (SPIRTES_1997, SPIRTES_1997_PAG),
    (RFCI, RFCI_PAG),
]
EXACT = PC(test="kendall-proved", latent=True)
NEAR = PC(test="kendall-proved", latent=True, sets="neighbours")


def without(rule: PagRule) -> tuple[tuple[PagRule, ...], ...]:
    return tuple(tuple(other for other in group if other is not rule) for group in HIDDEN)


@pytest.mark.parametrize(("example", "pag"), EXAMPLES)
def test_the_printed_pag(example: tuple[Dag, str], pag: Pag) -> None:
    dag, hidden = example
    assert true_pag(dag, hidden) == pag
    assert EXACT.fit(OracleQueryable(dag, hidden)).graph == pag


@pytest.mark.parametrize(("example", "pag"), EXAMPLES[:3])
def test_it_is_what_all_graphs_with_the_same_independences_share(example: tuple[Dag, str], pag: Pag) -> None:
    assert brute_pag(pag.nodes, independences(example[0], pag.nodes), KINDS[:3]) == pag


def test_every_circle_of_the_larger_one_varies_and_no_other_mark_does() -> None:
    met = walk(ancestral_graph(*RFCI), 4000, Random(0))
    assert all(met[end] == ({"tail", "arrow"} if m == "circle" else {m}) for end, m in RFCI_PAG.marks.items())


@pytest.mark.parametrize(("example", "rule"), [(ZHANG_2008, rule_9), (ZHANG_2006, rule_4), (RFCI, rule_4)])
def test_the_rule_that_the_example_is_for(example: tuple[Dag, str], rule: PagRule) -> None:
    assert orient_pag(visible_skeleton(*example), rules=without(rule)) != true_pag(*example)


@pytest.mark.parametrize("example", [SPIRTES_1997, RFCI])
def test_neighbours_do_not_separate_two_that_possible_d_sep_does(example: tuple[Dag, str]) -> None:
    near = NEAR.fit(OracleQueryable(*example)).graph
    assert near.edges - true_pag(*example).edges == {frozenset("ce")}


def test_fci_finds_its_way_along_long_discriminating_paths() -> None:
    hidden = LONG.nodes[:13]
    pag = true_pag(LONG, hidden)
    assert EXACT.fit(OracleQueryable(LONG, hidden)).graph == pag
    assert orient_pag(visible_skeleton(LONG, hidden), rules=without(rule_4)) != pag

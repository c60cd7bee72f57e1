"""The shipped networks, the sampler against exact marginals, and loading by name and path."""

from __future__ import annotations

import gzip
import pickle
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chi2

from counting import steps
from dpcurate.errors import DomainTooLarge, FormatError, GraphError, QueryError, SchemaError
from dpcurate.graphs.graph import Dag
from dpcurate.networks import SHIPPED, Network, Variable, load, names, random_dag, random_network, write
from dpcurate.schema import Categorical, Schema

SIZES = {
    "cancer": (5, 4, 10),
    "earthquake": (5, 4, 10),
    "survey": (6, 6, 21),
    "asia": (8, 8, 18),
    "sachs": (11, 17, 178),
    "child": (20, 25, 230),
}
ROWS = 50_000
LEVEL = 1e-3
"""Chance that one correct sampler fails one network; divided by the tests on it. Seeds are fixed."""


@pytest.mark.parametrize("name", SIZES)
def test_sizes_are_the_published_ones(name: str) -> None:
    network = load(name)
    assert (len(network.nodes), len(network.arcs), network.parameters) == SIZES[name]
    assert network.name == name
    assert network.dag == Dag(network.nodes, frozenset(network.arcs))
    assert network.cpdag == network.dag.cpdag()


@pytest.mark.parametrize(
    ("name", "node", "given", "row"),
    [
        ("cancer", "Cancer", ("high", "False"), [0.02, 0.98]),
        ("earthquake", "Alarm", ("False", "True"), [0.29, 0.71]),
        ("survey", "T", ("self", "small"), [0.56, 0.36, 0.08]),
        ("asia", "dysp", ("no", "yes"), [0.7, 0.3]),
        ("asia", "either", ("no", "no"), [0.0, 1.0]),
        ("sachs", "Akt", ("HIGH", "LOW"), [7.682262e-05, 1.183068e-01, 8.816163e-01]),
        ("sachs", "Mek", ("HIGH", "LOW", "AVG"), [0.9996370895, 0.0001814553, 0.0001814553]),
        ("child", "ChestXray", ("Abnormal", "High"), [0.24, 0.33, 0.03, 0.34, 0.06]),
        ("child", "Age", ("Fallot", "no"), [0.25, 0.25, 0.50]),
    ],
)
def test_published_rows_are_where_they_belong(name: str, node: str, given: tuple[str, ...], row: list[float]) -> None:
    network = load(name)
    combinations = list(product(*(network[p].levels for p in network[node].parents)))
    assert network[node].table[combinations.index(given)].tolist() == row


def test_the_cancer_network_has_a_collider_and_the_schema_its_levels() -> None:
    network = load("cancer")
    assert network.cpdag.arrows == frozenset(network.arcs)
    assert network.schema == Schema(tuple(Categorical(v.name, v.levels) for v in network.variables))
    assert network.schema.rows is None
    assert network.schema["Pollution"].levels == ("low", "high")


def test_marginals_of_asia_are_the_ones_in_the_literature() -> None:
    # Lauritzen and Spiegelhalter (1988), before evidence.
    network = load("asia")
    found = {node: float(network.marginal([node])[0]) for node in network.nodes}
    wanted = {"tub": 0.0104, "lung": 0.055, "bronc": 0.45, "either": 0.064828, "xray": 0.11029004, "dysp": 0.4359706}
    assert {k: found[k] for k in wanted} == pytest.approx(wanted, abs=1e-12)


def enumerated(network: Network, keep: tuple[str, ...]) -> np.ndarray:
    """The marginal by listing every combination of all levels."""
    found = np.zeros([len(network[x].levels) for x in keep])
    for cell in product(*(range(len(v.levels)) for v in network.variables)):
        value = dict(zip(network.nodes, cell, strict=True))
        chance = 1.0
        for v in network.variables:
            row = 0
            for p in v.parents:
                row = row * len(network[p].levels) + value[p]
            chance *= v.probabilities[row, value[v.name]]
        found[tuple(value[x] for x in keep)] += chance
    return found


@pytest.mark.parametrize("seed", range(4))
def test_elimination_equals_enumeration(seed: int) -> None:
    network = random_network(random_dag(6, edges=8, seed=seed), levels=(2, 3), seed=seed)
    for keep in [("X1",), ("X6", "X2"), ("X3", "X1", "X5"), network.nodes]:
        np.testing.assert_allclose(network.marginal(keep), enumerated(network, keep), atol=1e-14)


def test_marginals_that_do_not_fit_or_make_no_sense_are_refused() -> None:
    network = random_network(random_dag(40, edges=0, seed=1), levels=(2, 2), seed=1)
    with pytest.raises(DomainTooLarge, match="fewer variables"):
        network.marginal(network.nodes)
    for nodes in ([], ["X1", "X1"], "X1"):
        with pytest.raises(QueryError, match="different variables"):
            network.marginal(nodes)
    with pytest.raises(QueryError, match="no variable 'X99'"):
        network.marginal(["X99"])


def chance_of(network: Network, codes: np.ndarray, nodes: tuple[str, ...]) -> float:
    """p-value of the counts over `nodes` against the exact marginal; rare cells are pooled."""
    columns = [codes[:, network.nodes.index(x)] for x in nodes]
    expected = network.marginal(nodes).ravel() * len(codes)
    cell = np.ravel_multi_index(columns, [len(network[x].levels) for x in nodes])
    counts = np.bincount(cell, minlength=len(expected))
    if counts[expected == 0].any():
        return 0.0
    common = expected >= 5
    want, have = expected[common], counts[common]
    if expected[~common].sum() >= 5:
        want, have = np.append(want, expected[~common].sum()), np.append(have, counts[~common].sum())
    return float(chi2.sf(((have - want) ** 2 / want).sum(), max(len(want) - 1, 1)))


def questions(network: Network) -> list[tuple[str, ...]]:
    """Every family, and every pair of neighbours in declared order (mostly not adjacent)."""
    families = [(*v.parents, v.name) for v in network.variables]
    return families + list(zip(network.nodes, network.nodes[1:], strict=False))


@pytest.mark.parametrize("name", SIZES)
def test_frequencies_agree_with_exact_marginals(name: str) -> None:
    network = load(name)
    codes = network.codes(ROWS, seed=2024)
    asked = questions(network)
    assert min(chance_of(network, codes, nodes) for nodes in asked) > LEVEL / len(asked)


@pytest.mark.parametrize("name", SIZES)
def test_the_same_test_rejects_permuted_rows(name: str) -> None:
    """Power: reversing the rows of one table is seen, for every table where it changes a likely row."""
    network = load(name)
    tried = 0
    for j, v in enumerate(network.variables):
        turned = replace(v, table=v.table[::-1])
        wrong = replace(network, variables=(*network.variables[:j], turned, *network.variables[j + 1 :]))
        family = (*v.parents, v.name)
        apart = np.abs(wrong.marginal(family) - network.marginal(family)).sum() / 2
        if apart > 0.02:
            tried += 1
            assert chance_of(network, wrong.codes(ROWS, seed=2024), family) < 1e-12
    assert tried >= 2


def test_random_networks_with_many_levels_agree_too() -> None:
    network = random_network(random_dag(8, edges=10, seed=5), levels=(2, 17), seed=5)
    codes = network.codes(ROWS, seed=6)
    asked = questions(network)
    assert min(chance_of(network, codes, nodes) for nodes in asked) > LEVEL / len(asked)


def test_levels_of_probability_zero_are_never_drawn() -> None:
    table = np.array([[0.0, 0.3, 0.0, 0.7, 0.0]])
    codes = Network("x", (Variable("a", tuple("vwxyz"), (), table),)).codes(100_000, seed=1)
    assert set(np.unique(codes)) == {1, 3}


def test_a_sample_depends_on_the_seed_alone() -> None:
    network = load("child")
    first = network.codes(1000, seed=7)
    assert np.array_equal(first, network.codes(1000, seed=7))
    assert not np.array_equal(first, network.codes(1000, seed=8))
    assert np.array_equal(first[:400], network.codes(400, seed=7))
    assert network.codes(0, seed=7).shape == (0, 20)


def test_a_sample_is_the_same_on_every_machine() -> None:
    found = ["".join(map(str, row)) for row in load("cancer").codes(6, seed=1)]
    assert found == ["01111", "00110", "00100", "01111", "00111", "01111"]


def test_codes_are_small_and_column_major_and_labels_match_them() -> None:
    network = load("survey")
    codes = network.codes(500, seed=3)
    assert codes.dtype == np.uint8
    assert codes.flags.f_contiguous
    labels = network.sample(500, seed=3)
    assert list(labels) == list(network.nodes)
    for j, v in enumerate(network.variables):
        assert labels[v.name].tolist() == [v.levels[i] for i in codes[:, j]]
    wide = Variable("a", tuple(map(str, range(300))), (), np.full((1, 300), 1 / 300))
    drawn = Network("wide", (wide,)).codes(20_000, seed=1)
    assert drawn.dtype == np.uint16
    assert drawn.max() == 299


def test_labels_go_straight_into_pandas_and_duckdb() -> None:
    duckdb, pandas = pytest.importorskip("duckdb"), pytest.importorskip("pandas")
    labels = load("asia").sample(200, seed=1)
    frame = pandas.DataFrame(labels)
    assert list(frame["dysp"]) == labels["dysp"].tolist()
    found = duckdb.sql("select count(*) from labels where smoke = 'yes'").fetchall()
    assert found == [((labels["smoke"] == "yes").sum(),)]


def test_rows_are_drawn_by_columns_and_not_one_by_one() -> None:
    network = load("child")
    few, many = (steps(lambda n=n: network.codes(n, seed=1)) for n in (1_000, 100_000))
    assert few == many


@pytest.mark.parametrize("rows", [-1, 1.5, "3", True])
def test_rows_and_seed_must_be_whole_numbers(rows: object) -> None:
    with pytest.raises(QueryError, match="rows"):
        load("cancer").codes(rows, seed=1)  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="seed"):
        load("cancer").codes(1, seed=rows)  # type: ignore[arg-type]


HALF = np.array([[0.5, 0.5]])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Variable("", ("a", "b"), (), HALF), "at least one character"),
        (lambda: Variable("x", ("a", ""), (), HALF), "at least one character"),
        (lambda: Variable("x", ("a", "a"), (), HALF), "different levels"),
        (lambda: Variable("x", (), (), np.zeros((1, 0))), "different levels"),
        (lambda: Variable("x", ("a", "b"), ("x",), HALF), "twice or itself"),
        (lambda: Variable("x", ("a", "b"), ("y", "y"), HALF), "twice or itself"),
        (lambda: Variable("x", ("a", "b", "c"), (), HALF), "shape"),
        (lambda: Variable("x", ("a", "b"), (), np.array([[0.5, np.nan]])), "not a distribution"),
        (lambda: Variable("x", ("a", "b"), (), np.array([[1.5, -0.5]])), "not a distribution"),
        (lambda: Network("", (Variable("x", ("a", "b"), (), HALF),)), "needs a name"),
        (lambda: Network("n", ()), "at least one variable"),
        (lambda: Network("n", (Variable("x", ("a", "b"), ("y",), HALF),)), "'y'"),
        (
            lambda: Network("n", (Variable("y", ("a", "b"), (), HALF), Variable("x", ("a", "b"), ("y",), HALF))),
            "needs 2 rows",
        ),
        (
            lambda: Network(
                "n",
                (
                    Variable("y", ("a", "b"), ("x",), HALF.repeat(2, axis=0)),
                    Variable("x", ("a", "b"), ("y",), HALF.repeat(2, axis=0)),
                ),
            ),
            "cycle",
        ),
    ],
)
def test_a_network_that_contradicts_itself_is_refused(make, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(GraphError, match=message):
        make()


def test_networks_are_values() -> None:
    network = load("asia")
    assert network == load("ASIA")
    assert hash(network) == hash(load("Asia"))
    assert network != replace(network, name="other")
    assert network["asia"] != "asia"
    again = pickle.loads(pickle.dumps(network))
    assert again == network
    for found in (network, again):
        with pytest.raises(ValueError, match="read-only"):
            found["asia"].table[0, 0] = 1


def test_a_constant_variable_is_read_and_sampled_but_has_no_schema() -> None:
    network = Network("n", (Variable("x", ("only",), (), np.ones((1, 1))),))
    assert network.sample(2, seed=1)["x"].tolist() == ["only", "only"]
    assert network.parameters == 0
    with pytest.raises(SchemaError, match="leave it out"):
        _ = network.schema


def test_loading_by_path(tmp_path: Path) -> None:
    network = replace(load("survey"), name="unknown")
    plain, packed = tmp_path / "mine.bif", tmp_path / "Packed.bif.gz"
    plain.write_text("\ufeff" + write(network), encoding="utf-8")
    packed.write_bytes(gzip.compress(write(network).encode()))
    assert load(plain) == load(str(plain)) == replace(network, name="mine")
    assert load(packed) == replace(network, name="packed")


def test_files_that_cannot_be_read_are_format_errors(tmp_path: Path) -> None:
    broken = tmp_path / "broken.bif"
    broken.write_text("network x {\n}\nvariable", encoding="utf-8")
    with pytest.raises(FormatError, match=r"broken.bif', line 3: expected") as caught:
        load(broken)
    assert caught.value.line == 3
    good = gzip.compress(write(load("asia")).encode())
    for data in (b"\xff\xfe", good[:-20], good[:30] + b"xx" + good[32:], b"\x1f\x8b"):
        broken.write_bytes(data)
        with pytest.raises(FormatError, match=r"cannot read|not UTF-8 text"):
            load(broken)
    with pytest.raises(FormatError, match=r"cannot read|not UTF-8 text"):
        load("missing.bif")
    with pytest.raises(FormatError, match=r"cannot read|not UTF-8 text"):
        load(tmp_path)


def test_an_unknown_name_gets_the_closest_and_the_list() -> None:
    with pytest.raises(FormatError, match=r"'asai'; did you mean 'asia'\? Known: cancer, earthquake, .*a path"):
        load("asai")
    with pytest.raises(FormatError, match=r"no network is called 'qqq'\. Known: cancer"):
        load("qqq")
    with pytest.raises(FormatError, match="by name or path, got int"):
        load(3)  # type: ignore[arg-type]
    assert names()[:6] == SHIPPED == tuple(SIZES)


def test_pgmpy_is_found_without_being_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    models = tmp_path / "pgmpy" / "utils" / "example_models"
    models.mkdir(parents=True)
    (tmp_path / "pgmpy" / "__init__.py").write_text("raise RuntimeError('imported')")
    text = write(replace(load("cancer"), name="unknown"))
    (models / "toy.bif.gz").write_bytes(gzip.compress(text.encode()))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "pgmpy", raising=False)
    assert names() == (*SHIPPED, "toy")
    assert load("Toy").name == "toy"
    with pytest.raises(FormatError, match="did you mean 'toy'"):
        load("toyy")

"""Rows are not rebuilt from means and covariances.

Huth et al. (Bioinformatics 39(9), 2023) rebuild a column from its sample covariances with as many known, linearly
independent vectors as there are rows: the covariances are a system of linear equations. DataSHIELD lets an analyst
make such vectors next to the table. A schema does not, so here the attacker gets more than that: the table itself has
enough columns whose cells he knows, and he knows every row but for one column.
"""

from __future__ import annotations

import numpy as np
import pytest

import dpcurate
from dpcurate import Budget, Curator, Numeric, Schema
from dpcurate.queries import Contrasts, Exact, Gaussian, Means, Moments, Release
from dpcurate.queries.proxies import Proxy

ROWS, KNOWN = 40, 80
NAMES = tuple(f"z{i}" for i in range(KNOWN))
ONE_BIT = 0.7311
"""What (1, 0)-differential privacy allows for guessing one bit of a row right: e / (1 + e)."""


@pytest.fixture(scope="module")
def rng():
    return np.random.default_rng(7)


@pytest.fixture(scope="module")
def numbers(rng):
    """A secret number in every row, and known columns of -1 and 1; bounds make one the unit of all columns."""
    known = rng.integers(0, 2, (ROWS, KNOWN)) * 2.0 - 1
    secret = rng.uniform(-1, 1, ROWS)
    schema = Schema((Numeric("secret", -1, 1), *(Numeric(name, -1, 1) for name in NAMES)), rows=ROWS)
    return {"secret": secret, **dict(zip(NAMES, known.T, strict=True))}, schema, known, secret


@pytest.fixture(scope="module")
def levels(rng):
    """The same with a secret yes or no."""
    known, secret = rng.integers(0, 2, (ROWS, KNOWN)), rng.integers(0, 2, ROWS)
    schema = Schema(tuple(dpcurate.Categorical(name, (0, 1)) for name in ("secret", *NAMES)), rows=ROWS)
    return {"secret": secret, **dict(zip(NAMES, known.T, strict=True))}, schema, known, secret


def rebuilt(known: np.ndarray, products: np.ndarray) -> np.ndarray:
    """The secret cells of all rows, from their sums of products with the known columns."""
    return np.linalg.lstsq(known.T, products, rcond=None)[0]


def matched(known: np.ndarray, products: np.ndarray) -> np.ndarray:
    """The same where noise is large: each row's own part of the products, which no inverse blows up."""
    return known @ products / known.shape[1]


def products_of(curator: Curator, noise) -> np.ndarray:
    """Sums over rows of secret times known cell, from the means and covariances that a release of moments holds."""
    moments = curator.ask(Release(Moments(("secret", *NAMES)), noise)).value
    return moments[1, 2:]


def signs_of(curator: Curator, noise) -> np.ndarray:
    """The same for levels, from the contrasts of all pairs with the secret column: the cheapest that say it."""
    sets = tuple(("secret", name) for name in NAMES)
    parts = curator.ask(Release(Contrasts(sets), noise)).parts
    return np.array([4 * part.flat[-1] for part in parts])


def right(guess: np.ndarray, secret: np.ndarray) -> float:
    return float(np.mean((guess > 0) == secret))


def test_exact_means_and_covariances_rebuild_every_row(numbers, levels):
    """The attack works: without noise nothing is left to guess."""
    table, schema, known, secret = numbers
    exact = Curator(table, schema, budget=Budget.unlimited())
    assert np.abs(rebuilt(known, products_of(exact, Exact())) - secret).max() < 1e-3
    table, schema, known, secret = levels
    exact = Curator(table, schema, budget=Budget.unlimited())
    assert right(rebuilt(2 * known - 1, signs_of(exact, Exact())), secret) == 1


def test_one_epsilon_of_covariances_rebuilds_no_row(numbers):
    table, schema, known, secret = numbers
    budget = Budget(epsilon=1, delta=1e-10)
    products = products_of(Curator(table, schema, budget=budget), Gaussian(rho=budget.rho))
    for attack in (rebuilt, matched):
        guess = attack(known, products)
        assert abs(np.corrcoef(guess, secret)[0, 1]) < 0.7
        assert np.sqrt(np.mean((guess - secret) ** 2)) > np.std(secret)  # worse than to guess the mean for everybody


def test_one_epsilon_of_pairs_tells_no_bit_of_a_row_better_than_promised(levels):
    """Mean over five releases and both attacks; the promise bounds each bit, and 40 bits share what is released."""
    table, schema, known, secret = levels
    budget, guesses = Budget(epsilon=1, delta=1e-10), []
    for _ in range(5):
        signs = signs_of(Curator(table, schema, budget=budget), Gaussian(rho=budget.rho))
        guesses += [right(attack(2 * known - 1, signs), secret) for attack in (rebuilt, matched)]
    assert np.mean(guesses) < ONE_BIT


def test_asking_twice_does_not_help(levels):
    """The budget is one for all answers: what a second table of means adds, the noise on both takes away."""
    table, schema, _, _ = levels
    numbers = Schema(tuple(Numeric(name, 0, 1) for name in schema.names), rows=ROWS)
    study = dpcurate.open({name: cells.astype(float) for name, cells in table.items()}, numbers, epsilon=1)
    study.ask(Means(("secret",)), epsilon=1)
    with pytest.raises(dpcurate.BudgetExceeded):
        study.ask(Means(("secret",)), epsilon=0.5)


class Eavesdropper(Proxy):
    """Keeps every answer of a run."""

    def __init__(self, queryable):
        super().__init__(queryable)
        self.heard = []

    def ask(self, query):
        return self.ask_all([query])[0]

    def ask_all(self, queries):
        answers = super().ask_all(queries)
        self.heard += [(q.statistic, a) for q, a in zip(queries, answers, strict=True) if isinstance(q, Release)]
        return answers


def test_the_answers_of_a_run_rebuild_no_row(levels):
    """All that a run of the default method releases, read as covariances with the known columns."""
    table, schema, known, secret = levels
    few, guesses = 8, []  # columns: a run over all of them says less about each
    narrow = Schema(schema.columns[: few + 1], rows=ROWS)
    for _ in range(3):
        curator = Curator({name: table[name] for name in narrow.names}, narrow, budget=Budget(epsilon=1, delta=1e-10))
        run = Eavesdropper(curator)
        dpcurate.fit(run)
        products = np.full(few, np.nan)
        for statistic, answer in run.heard:
            for columns, part in zip(statistic.sets, answer.parts, strict=True):
                if "secret" in columns and len(columns) == 2:
                    (other,) = set(columns) - {"secret"}
                    products[narrow.names.index(other) - 1] = 4 * part.flat[-1]
        assert not np.isnan(products).any()
        guesses.append(right(matched(2 * known[:, :few] - 1, products), secret))
    assert np.mean(guesses) < ONE_BIT

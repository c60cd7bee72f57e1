"""Small worlds for the tests: schemas, encoded rows, and how far apart two tables' statistics are."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from dpcurate.accounting import Budget
from dpcurate.private.ledger import Ledger
from dpcurate.private.noise import Seeded
from dpcurate.private.row_sums import Rows
from dpcurate.private.session import Session
from dpcurate.private.sources import InMemory
from dpcurate.private.statistics.registry import transformation
from dpcurate.queries import Statistic
from dpcurate.schema import GRID, Categorical, Neighbours, Numeric, Schema


def schema_of(*sizes, rows=None, numeric=0):
    """Columns a, b, c, ... of the given sizes, then numeric ones on [-1, 1]."""
    names = "abcdefghijklmnopqrst"
    columns = [Categorical(names[i], tuple(range(r))) for i, r in enumerate(sizes)]
    columns += [Numeric(f"x{i}", -1, 1, bins=2) for i in range(numeric)]
    return Schema(tuple(columns), rows=rows)


def held(schema, records):
    """A source over records of codes (levels) and grid integers (numeric columns)."""
    matrix = np.array(records, dtype=np.int64).reshape(len(records), len(schema.names))
    codes, values = {}, {}
    for i, column in enumerate(schema.columns):
        if isinstance(column, Numeric):
            values[column.name] = matrix[:, i].astype(np.int16)
            codes[column.name] = (matrix[:, i] >= 0).astype(np.uint8)
        else:
            codes[column.name] = matrix[:, i].astype(np.uint8)
    return InMemory(Rows(codes, values, None, len(records)))


def parts(statistic: Statistic, schema, records):
    """The statistic's integers, part by part."""
    made = transformation(statistic, schema)
    source = held(schema, records)
    return made, made.integers(tuple(source.totals([k])[0] for k in made.row_sums))


def distance(statistic: Statistic, schema, one, other):
    """L1 and squared L2 distance in natural (weighted) units, exactly."""
    made, first = parts(statistic, schema, one)
    _, second = parts(statistic, schema, other)
    l1, l2 = Fraction(0), Fraction(0)
    for unit, p, q in zip(made.units, first, second, strict=True):
        for step in np.ravel(p - q):
            l1 += abs(int(step)) / unit
            l2 += (int(step) / unit) ** 2
    return l1, l2


def any_record(schema, draw_int):
    """A record drawn with `draw_int(low, high)`; corners of numeric columns are likely."""
    record = []
    for column in schema.columns:
        if isinstance(column, Numeric):
            record.append((-GRID, 0, GRID, draw_int(-GRID, GRID))[draw_int(0, 3)])
        else:
            record.append(draw_int(0, column.size - 1))
    return record


def sampled_session(network, rows, seed):
    """A session over a fresh sample of a network, with a large budget and seeded noise; no file is opened."""
    codes = network.codes(rows, seed=seed)
    columns = {name: np.ascontiguousarray(codes[:, i]) for i, name in enumerate(network.nodes)}
    source = InMemory(Rows(columns, {}, None, rows))
    ledger = Ledger(Budget(rho=1e9))
    return Session(source, network.schema, Neighbours.ADD_REMOVE, ledger, Seeded(seed), allow_unproved=False)


class Wild:
    """A source that answers with random tables, so that methods see any answers at all."""

    def __init__(self, seed):
        self._stream = np.random.default_rng(seed)

    def totals(self, row_sums):
        return [self._stream.integers(0, 500, row_sum.sizes) for row_sum in row_sums]

    def check(self, row_sum):
        pass

    def check_sample(self):
        pass

    def sample(self, rate, randomness):
        return self

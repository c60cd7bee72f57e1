"""One contract for every source: the same table gives the same integers, whatever holds it; and who is one person."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import pytest

from dpcurate.errors import OwnerError
from dpcurate.private.row_sums import (
    CountRows,
    FeatureNormRows,
    FeatureRows,
    GradientRows,
    IntervalRows,
    Lookup,
    MomentRows,
    NormRows,
)
from dpcurate.private.sources import open_source
from dpcurate.schema import Categorical, Numeric, Ordinal, Person, Schema

SCHEMA = Schema(
    (
        Categorical("colour", ("red", "green", "blu'e"), missing="red", outside="blu'e"),
        Ordinal("grade", (1, 2, 3), missing=2, outside="drop"),
        Categorical("odd", ("true", "false")),
        Numeric("age", 0, 100, bins=4, edges=(18, 40, 65), missing=30, outside="clamp"),
        Numeric("dose", -1, 1, bins=2, outside="drop"),
    )
)
PLAIN = Schema(SCHEMA.columns[:3])
PEOPLE = Schema(SCHEMA.columns, person=Person("id", 3))
NUMBERS = Schema(
    (
        SCHEMA.columns[0],
        Numeric("age", 0, 100, missing="own", outside="clamp"),
        Numeric("dose", -1, 1, missing=0.5, outside="drop"),
        Numeric("grade", 1, 3, missing="drop"),
    )
)
SCHEMAS = {"numeric": SCHEMA, "levels": PLAIN, "people": PEOPLE, "numbers": NUMBERS}


def frame(rows=500, seed=1):
    rng = np.random.default_rng(seed)
    colour = rng.choice(np.array(["red", "green", "blu'e", "mauve", None], dtype=object), rows)
    age = rng.uniform(-20, 130, rows)
    age[rng.random(rows) < 0.1] = np.nan
    return pd.DataFrame(
        {
            "id": rng.integers(0, 60, rows),
            "colour": colour,
            "grade": rng.choice([1.0, 2.0, 3.0, 4.0, np.nan], rows),
            "odd": rng.random(rows) < 0.4,
            "age": age,
            "dose": rng.uniform(-1.1, 1.1, rows),
        }
    )


def text_frame(table):
    """As a CSV would hold it: grades without a decimal point."""
    texts = table.copy()
    texts["grade"] = table["grade"].map(lambda g: "" if np.isnan(g) else str(int(g)))
    texts["odd"] = table["odd"].map(lambda b: "true" if b else "false")
    return texts


def row_sums(schema):
    names = schema.names
    steps = tuple(c.steps for c in schema.columns)
    weights = tuple(tuple(0.1 * (i - j) for j in range(len(names))) for i in range(len(names)))
    return [
        CountRows((), ()),
        CountRows(names, schema.sizes(names)),
        CountRows(names[::-1][:2], schema.sizes(names[::-1][:2])),
        MomentRows(names, steps, None),
        MomentRows(names, steps, 0.9),
        GradientRows(names, steps, weights, 0.4),
        NormRows(names, steps, weights, (0.3, 1.0)),
        *(IntervalRows(c.name, 64, c.missing == "own") for c in schema.columns if isinstance(c, Numeric)),
        FeatureRows(lookups(schema), 900.0),
        FeatureRows(lookups(schema)[:2], 1e6),
        FeatureNormRows(lookups(schema), (250_000.0, 1e6, 2.5e6)),
    ]


def lookups(schema):
    """Two features a column: any whole numbers do."""
    return tuple(lookup(c, np.random.default_rng(i)) for i, c in enumerate(schema.columns))


def lookup(column, rng):
    intervals = 0 if column.has_levels else 512
    places = intervals + (column.missing == "own") if intervals else column.size
    return Lookup(column.name, intervals, tuple(map(tuple, rng.integers(-1000, 1000, (places, 2)).tolist())))


def same_integers(forms, schema, table=None):
    """Every form of the table gives the integers of the pandas frame, one by one and in one batch."""
    asked = row_sums(schema)
    wanted = open_source(frame() if table is None else table, schema).totals(asked)
    assert 0 < wanted[0] < 500
    for name, form in forms.items():
        source = open_source(form, schema)
        for found in ([source.totals([k])[0] for k in asked], open_source(form, schema).totals(asked)):
            for row_sum, right, got in zip(asked, wanted, found, strict=True):
                assert got.dtype == np.int64, name
                assert np.array_equal(got, right), (name, row_sum)


# --- rows of empty cells ------------------------------------------------------------------------------

GAPS = Schema((Categorical("colour", ("red", "green"), missing="red"), Numeric("age", 0, 100, missing="own")))


def gaps(schema=GAPS):
    """Rows without any cell at the start and in between, whose cells all get a place by the schema's rules."""
    table = pd.DataFrame(
        {
            "colour": np.array([None, "green", None, "red", None, None, "green"], dtype=object),
            "age": [np.nan, 20.0, 30.0, np.nan, np.nan, np.nan, 40.0],
        }
    )
    return table[list(schema.names)]


def rows_of_empty_cells_are_rows(form):
    """`form(table)` holds a table: of two columns, and of one, whose empty cell may look like no line at all."""
    for schema in (GAPS, Schema(GAPS.columns[:1])):
        table, (rows,) = gaps(schema), row_sums(schema)[:1]
        assert open_source(form(table), schema).totals([rows])[0] == len(table)
        if len(schema.names) > 1:
            same_integers({"form": form(table)}, schema, table)


# --- who is one person --------------------------------------------------------------------------------

CAP = 2
VISITS = Schema((Categorical("a", tuple(range(5))),), person=Person("id", CAP))
IDS = {
    "whole": [7, 8, 7, None, 7, 2**53, 2**53 + 1, 7, -7, None, 2**53, 2**53],
    "text": [
        "7",
        "07",
        "7",
        None,
        "7.0",
        "7",
        " 7",
        "nan",
        "nan",
        "nan",
        "",
        "é",
        "e\u0301",
        "A",
        "a",
        "7",
        "7.0",
        "+7",
    ],
}
"""Ids that a careless reader would run together or split."""


def visits(ids):
    return {"id": list(ids), "a": [i % 5 for i in range(len(ids))]}


def counts(table):
    return open_source(table, VISITS).totals([CountRows(("a",), (5,))])[0]


def persons_are_kept_apart(form, kind, leave_out=None):
    """A table of `form(columns)`: each person keeps at most CAP rows, and takes no more away when leaving."""
    columns = visits(IDS[kind])
    whole, rows = counts(form(columns)), Counter(i for i in columns["id"] if i is not None)
    assert whole.sum() == sum(min(CAP, n) for n in rows.values())
    for person in leave_out or rows:
        others = [i for i, one in enumerate(columns["id"]) if one != person]
        rest = counts(form({name: [values[i] for i in others] for name, values in columns.items()}))
        assert np.abs(whole - rest).sum() == min(CAP, rows[person]), (kind, person)


def persons_are_refused(table, schema=VISITS):
    """An owner hears what is wrong with the ids, why, and what to do."""
    with pytest.raises(OwnerError, match=r"names persons|as objects") as told:
        open_source(table, schema)
    assert "run two persons together or count one as two: store it as text or as whole numbers" in str(told.value)

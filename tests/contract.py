"""One contract for every source: the same table gives the same integers, whatever holds it."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dpcurate.private.kernels import CountRows, GradientRows, MomentRows, NormRows
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
SCHEMAS = {"numeric": SCHEMA, "levels": PLAIN, "people": PEOPLE}


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


def kernels(schema):
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
    ]


def same_integers(forms, schema, table=None):
    """Every form of the table gives the integers of the pandas frame, one by one and in one batch."""
    asked = kernels(schema)
    wanted = open_source(frame() if table is None else table, schema).totals(asked)
    assert 0 < wanted[0] < 500
    for name, form in forms.items():
        source = open_source(form, schema)
        for found in ([source.totals([k])[0] for k in asked], open_source(form, schema).totals(asked)):
            for kernel, right, got in zip(asked, wanted, found, strict=True):
                assert got.dtype == np.int64, name
                assert np.array_equal(got, right), (name, kernel)

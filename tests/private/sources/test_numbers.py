"""Numbers without bins: what each cell becomes, what is refused, and input that is bad."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpcurate import Budget, Curator, draft, methods, networks, queries
from dpcurate.errors import QueryError, SchemaError
from dpcurate.networks import plausible
from dpcurate.private.row_sums import CountRows, MomentRows
from dpcurate.private.sources import check_rows, open_source
from dpcurate.schema import GRID, MISSING_VALUE, Categorical, Numeric, Schema

LEVELS = Categorical("a", ("x", "y"))
OWN = Schema((Numeric("n", 0, 10, missing="own"), LEVELS))


def _table(numbers):
    return pd.DataFrame({"n": numbers, "a": (["x", "y"] * len(numbers))[: len(numbers)]})


def _values(numbers, schema=OWN):
    rows = open_source(_table(numbers), schema)._rows
    assert not rows.codes["n"].any()
    return rows.values["n"].tolist()


def test_a_missing_number_keeps_its_row_and_stands_beside_the_grid():
    assert _values([0.0, None, 5.0, 10.0, 99.0]) == [-GRID, MISSING_VALUE, 0, GRID, GRID]
    assert _values(["2.5", None, "nan", "x", "3,5"]) == [-GRID // 2] + [MISSING_VALUE] * 4
    assert _values([2.5, None], Schema((Numeric("n", 0, 10), LEVELS))) == [-GRID // 2]


def test_a_missing_number_counts_as_the_middle_in_moments(tmp_path):
    frame = _table([0.0, None, None, 10.0, 7.5])
    frame.to_parquet(tmp_path / "t.parquet")
    wanted = [[5, GRID // 2], [GRID // 2, 2 * GRID**2 + GRID**2 // 4]]
    for form in (frame, tmp_path / "t.parquet"):
        (found,) = open_source(form, OWN).totals([MomentRows(("n",), (GRID,), None)])
        assert found.tolist() == wanted


@pytest.mark.parametrize(
    "statistic",
    [
        queries.Counts(("a", "n")),
        queries.Tables((("a",), ("n",))),
        queries.Contrasts((("a",), ("a", "n")), (1.0, 1.0)),
        queries.Tau("a", "n"),
        queries.KendallP("n", "a"),
    ],
)
def test_what_needs_levels_refuses_a_number_before_anything_is_spent(statistic):
    schema = Schema(OWN.columns, rows=4)
    curator = Curator(_table([1.0, 2.0, 3.0, 4.0]), schema, budget=Budget(epsilon=1, delta=0))
    with pytest.raises(
        QueryError, match=r"column 'n' is a number without bins, and .* needs levels: give it bins, e\.g\."
    ):
        curator.ask(queries.Release(statistic, queries.Laplace(epsilon=0.5)))
    assert curator.remaining == 1


@pytest.mark.parametrize("method", ["em-pc", "svt-pc", "priv-pc", "curate-pc"])
def test_methods_on_levels_refuse_a_number_before_anything_is_spent(method):
    schema = Schema(OWN.columns, rows=4)
    curator = Curator(_table([1.0, 2.0, 3.0, 4.0]), schema, budget=Budget(epsilon=1, delta=0))
    with pytest.raises(QueryError, match=r"'n' is a number without bins.*or use method='auto'"):
        methods.get(method).fit(curator)
    assert curator.remaining == 1


def test_exact_pc_takes_numbers_by_partial_correlation():
    world = networks.random_linear(networks.random_dag(5, edges=5, seed=1), seed=1)
    assert not any(column.has_levels for column in world.schema.columns)
    curator = Curator(world.sample(5000, seed=1), world.schema, budget=Budget.unlimited())
    assert methods.PC(test="partial-correlation").fit(curator).skeleton.edges == world.dag.edges
    with pytest.raises(QueryError, match="is a number without bins"):
        methods.PC().fit(curator)


# --- bad input ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("numbers", [[], [3.0], [3.0] * 20, [None] * 20, [np.inf, -np.inf, np.nan]])
@pytest.mark.parametrize("missing", ["drop", "own"])
def test_constant_empty_and_infinite_columns_are_read_by_the_declared_rules(numbers, missing):
    schema = Schema((Numeric("n", 0, 10, missing=missing), LEVELS))
    kept = [x for x in numbers if missing == "own" or (x is not None and x == x)]
    source = open_source(_table(pd.array(numbers, dtype="float64")), schema)
    assert source.totals([CountRows((), ())])[0] == len(kept)
    learned = methods.NotearsOnMoments().fit(Curator(_table(numbers or [3.0]), schema, budget=Budget(rho=1)))
    assert set(learned.graph.nodes) == {"n", "a"}


def test_infinite_values_are_clamped_like_any_other_outside_the_bounds():
    assert _values([np.inf, -np.inf, "inf", "-Infinity"]) == [GRID, -GRID, GRID, -GRID]
    assert _values([np.inf, 5.0], Schema((Numeric("n", 0, 10, outside="drop"), LEVELS))) == [0]


def test_the_owner_hears_of_decimal_commas():
    commas = _table([f"{i},5" for i in range(40)])
    said = "\n".join(check_rows(commas, OWN))
    assert "40 missing cells, that is all of them (in a column of numbers texts count as missing, 3,5 too" in said
    assert "# left out: 'n': its numbers have a decimal comma: store 3.5, not 3,5" in draft(commas)
    assert 'kind = "numeric"' in draft(_table(np.linspace(0, 1, 40)))
    assert "\nbins" not in draft(_table(np.linspace(0, 1, 40)))


# --- groups of levels -----------------------------------------------------------------------------------


def test_cells_are_read_as_the_group_they_belong_to(tmp_path):
    groups = {"north": ["a", "b", 7], "so uth": ["c", *(f"x{i}" for i in range(100))]}
    schema = Schema((Categorical("r", groups=groups, missing="north"),))
    assert schema["r"].levels == ("north", "so uth")
    assert Schema.loads(schema.dumps()) == schema
    frame = pd.DataFrame({"r": ["a", "b", "c", "7.0", "x99", "north", None]})
    frame.to_parquet(tmp_path / "t.parquet")
    for form in (frame, tmp_path / "t.parquet"):
        assert open_source(form, schema).totals([CountRows(("r",), (2,))])[0].tolist() == [4, 2]  # 'north' is no cell
    world = plausible.random_world(Schema((*schema.columns, LEVELS)), seed=1)
    assert set(plausible.simulate(Schema((*schema.columns, LEVELS)), world, 50, seed=1)["r"]) <= {"a", "c"}


@pytest.mark.parametrize(
    ("groups", "says"),
    [
        ({"n": ["a"], "s": ["a"]}, "repeats the level"),
        ({"n": ["a"], "s": []}, "at least one cell each"),
        ({"n": ["a"]}, r"1 level"),
        ([1, 2], "groups map a name to a list of cells"),
        ({"n": "ab", "s": ["c"]}, "must be a list"),
    ],
)
def test_groups_that_make_no_sense_are_refused(groups, says):
    with pytest.raises(SchemaError, match=says):
        Categorical("r", groups=groups)
    with pytest.raises(SchemaError, match="levels or groups, not both"):
        Categorical("r", ("n", "x"), groups={"n": ["a"], "s": ["b"]})


def test_numbers_of_a_csv_are_drafted_as_numbers(tmp_path):
    """A CSV holds texts: digits are numbers all the same, and levels that are numbers stand in their order."""
    path = tmp_path / "t.csv"
    rows = [f"{i / 4},{i % 12},{i},{f'{i},5'!r}" for i in range(60)]
    path.write_text("x,month,weight,comma\n" + "\n".join(r.replace("'", '"') for r in rows) + "\n,3,,\n")
    written = draft(str(path))
    schema = Schema.loads(written)
    assert [c.name for c in schema.columns if not c.has_levels] == ["x", "weight"]
    assert (schema["x"].low, schema["x"].high) == (0.0, 20.0)
    assert schema["month"].levels == tuple(map(str, range(12)))
    assert "'comma': its numbers have a decimal comma: store 3.5" in written

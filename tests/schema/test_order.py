"""What comes first: written once, checked against the columns, and guessed from names alone."""

from __future__ import annotations

import pytest

from dpcurate import Categorical, Knowledge, Numeric, Ordinal, Schema
from dpcurate.errors import GraphError, SchemaError
from dpcurate.graphs.knowledge import with_order
from dpcurate.schema.column_order import example_order, likely_first, parsed_order, tiers_of

NAMES = ("sex", "age", "smoker", "lung", "town")
COLUMNS = tuple(Categorical(name, ("a", "b")) for name in NAMES)


def test_an_order_is_written_and_read():
    schema = Schema(COLUMNS, order=[["sex", "age"], ["smoker"], ["lung"]])
    assert schema.order == (("sex", "age"), ("smoker",), ("lung",))
    assert 'order = [["sex", "age"], ["smoker"], ["lung"]]\n' in schema.dumps()
    assert Schema.loads(schema.dumps()) == schema
    assert "order" not in Schema(COLUMNS).dumps()
    assert schema.hash != Schema(COLUMNS).hash


def test_a_star_stands_for_all_others():
    assert tiers_of((("sex",), ("*",), ("lung",)), NAMES) == (("sex",), ("age", "smoker", "town"), ("lung",))
    assert tiers_of((("sex",), ("*", "age"), ("lung",)), NAMES)[1] == ("smoker", "town", "age")
    assert tiers_of((("sex",), ("lung",)), NAMES) == (("sex",), ("lung",))
    assert tiers_of((NAMES, ("*",)), NAMES) == (NAMES,)


@pytest.mark.parametrize(
    ("order", "why"),
    [
        ([["sex"], ["lungs"]], "unknown column 'lungs'; did you mean 'lung'"),
        ([["sex"], ["lung", "sex"]], "names 'sex' more than once"),
        ([["sex", "*"], ["*"]], r"names '\*' more than once"),
        ([["sex"]], r'one group, which says nothing: add \["\*"\]'),
        ([["sex"], []], "the name of a column in every place"),
        ([["sex"], [3]], "the name of a column in every place"),
        (["sex", "lung"], "must be a list of lists"),
        ("sex", "must be a list of lists"),
        (7, "must be a list of lists"),
    ],
    ids=str,
)
def test_what_is_no_order_is_refused(order, why):
    with pytest.raises(SchemaError, match=why):
        Schema(COLUMNS, order=order)
    if not isinstance(order, str):  # which is an order as it is typed
        with pytest.raises(SchemaError, match=why):
            with_order(None, order, Schema(COLUMNS))


def test_a_mistake_in_a_file_has_its_line():
    text = Schema(COLUMNS).dumps().replace("\n", '\norder = [["sex"], ["lungs"]]\n', 1)
    with pytest.raises(SchemaError, match="line 2: order names an unknown column 'lungs'; did you mean 'lung'"):
        Schema.loads(text)


def test_a_column_called_star():
    columns = (*COLUMNS, Categorical("*", ("a", "b")))
    assert Schema(columns).order == ()
    with pytest.raises(SchemaError, match='a column called "\\*"; give tiers in a knowledge file'):
        Schema(columns, order=[["sex"], ["*"]])


def test_an_order_as_it_is_typed():
    assert parsed_order(" sex, age | smoker|* ") == (("sex", "age"), ("smoker",), ("*",))
    assert parsed_order("  ") == ()
    for text in ("sex,", "|", "sex | | lung", "sex,,age | lung"):
        with pytest.raises(SchemaError, match=r"order is written like 'sex, age \| smoker \| \*'"):
            parsed_order(text)


def test_an_order_becomes_knowledge():
    schema = Schema(COLUMNS, order=[["sex"], ["*"]])
    own = with_order(None, None, schema)
    assert own.tiers == (frozenset({"sex"}), frozenset(NAMES) - {"sex"})
    assert not own.may_point("lung", "sex")
    assert with_order(None, "age | lung", schema).tiers == (frozenset({"age"}), frozenset({"lung"}))
    assert with_order(None, "age | lung", schema).may_point("lung", "sex")
    assert with_order(None, "", schema) is None
    assert with_order(None, None, Schema(COLUMNS)) is None


def test_an_order_beside_other_knowledge():
    schema = Schema(COLUMNS, order=[["sex"], ["*"]])
    forbidden = Knowledge.of(forbidden_edges=[("sex", "town")])
    both = with_order(forbidden, None, schema)
    assert (both.forbidden_edges, both.tiers) == (forbidden.forbidden_edges, with_order(None, None, schema).tiers)
    tiers = Knowledge.of(tiers=[["age"], ["sex"]])
    assert with_order(tiers, None, schema) == tiers
    assert with_order(tiers, (), schema) == tiers
    with pytest.raises(GraphError, match="the knowledge has tiers, and an order is given too"):
        with_order(tiers, "sex | *", schema)
    with pytest.raises(GraphError, match="contradicts itself"):
        with_order(Knowledge.of(required_arrows=[("lung", "sex")]), None, schema)


# --- by names alone ----------------------------------------------------------------------------------------------


def column(name, kind="numeric"):
    return Numeric(name, 0, 1) if kind == "numeric" else Categorical(name, ("0", "1"))


@pytest.mark.parametrize(
    "name",
    ["age", "AGE", "patientAge", "age_group", "birth_year", "birthYear", "yob", "year", "Year2010", "season", "region",
     "date_of_birth", "survey wave"],
)  # fmt: skip
def test_times_places_and_ages_of_any_kind(name):
    for kind in ("numeric", "levels"):
        assert likely_first([column(name, kind)]) == (name,)


@pytest.mark.parametrize(
    "name", ["sex", "Gender", "isFemale", "race", "ethnicity", "arm", "treatment_group", "weather"]
)
def test_levels_that_are_given(name):
    assert likely_first([column(name, "levels")]) == (name,)
    assert likely_first([column(name)]) == ()


@pytest.mark.parametrize(
    "name",
    ["mileage", "years_education", "age_at_death", "birth_weight", "charm", "racecar", "income", "usage", "ageing",
     "husband_age", "first_year", "", "123", "x"],
)  # fmt: skip
def test_names_that_only_look_so(name):
    for kind in ("numeric", "levels"):
        if name:
            assert likely_first([column(name, kind)]) == ()


def test_an_example_of_an_order():
    columns = [column("age"), column("income"), Ordinal("race", ("a", "b")), column("age, now")]
    assert example_order(columns) == "age, race | *"
    assert example_order([column("income")]) == "FIRST, COLUMNS | *"

"""A schema goes to CSVW-EO and back without a loss, and what others wrote is read or refused in a sentence."""

import json
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_schema import schemas

from dpcurate.cli import main
from dpcurate.errors import SchemaError
from dpcurate.schema import Categorical, Numeric, Ordinal, Person, Schema, TextFormat
from dpcurate.schema.csvw import OURS

PATIENTS = Schema(
    (
        Numeric("age", 0, 120, missing="own"),
        Categorical("smoker", ("no", "yes"), missing="own"),
        Ordinal("pain", ("none", "mild", "severe"), outside="none"),
        Categorical("region", groups={"north": ["SH", "HH"], "south": ["BY"], "else": ["x"]}, outside="else"),
        Numeric("income", 0, 1e6, edges=(2e4, 5e4), outside="drop"),
        Categorical("arm", (0, 1)),
        Categorical("alive", (True, False)),
        Categorical("blood type", ("A", "B")),
    ),
    rows=20_000,
    person=Person("patient", 5),
    file=TextFormat(separator=";", encoding="windows-1252", decimal=",", missing=("NA",), skip=2),
    order=[["age"], ["*"]],
)


def written(schema=PATIENTS, **more):
    return json.loads(schema.to_csvw(**more))


# --- writing --------------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(schemas(), st.none() | st.integers(10**6, 10**9))
def test_a_round_trip_gives_back_the_same_schema(schema, max_rows):
    again = Schema.from_csvw(schema.to_csvw(url="t.csv", max_rows=max_rows))
    assert again == schema
    assert again.hash == schema.hash


def test_a_round_trip_keeps_what_csvw_has_no_term_for():
    for more in ({}, {"url": "patients.tsv"}, {"url": "p.csv", "max_rows": 50_000}):
        assert Schema.from_csvw(PATIENTS.to_csvw(**more)) == PATIENTS
    table = written()
    shuffled = json.dumps(table, sort_keys=True)  # JSON objects have no order
    assert Schema.from_csvw(shuffled) == PATIENTS


def test_the_standard_part_says_what_others_need():
    table = written(url="patients.csv", max_rows=50_000)
    assert table["@context"][0] == "http://www.w3.org/ns/csvw"
    assert (table["url"], table["privacyUnit"], table["maxContributions"]) == ("patients.csv", "patient", 5)
    assert table["maxLength"] == 50_000
    assert table["dialect"] == {"delimiter": ";", "encoding": "windows-1252", "skipRows": 2}
    assert table["null"] == ["", "NA"]
    columns = {column["name"]: column for column in table["tableSchema"]["columns"]}
    assert columns["patient"]["privacyId"] is True
    assert columns["age"]["datatype"] == {"base": "double", "format": {"decimalChar": ","}}
    assert (columns["age"]["minimum"], columns["age"]["maximum"]) == (0, 120)
    assert columns["smoker"]["keyValues"] == ["no", "yes"]  # 'missing' is no cell
    assert columns["region"]["keyValues"] == ["SH", "HH", "BY", "x"]
    assert (columns["arm"]["datatype"], columns["arm"]["keyValues"]) == ("integer", [0, 1])
    assert (columns["alive"]["datatype"], columns["alive"]["keyValues"]) == ("boolean", [True, False])
    assert columns["blood type"]["titles"] == "blood type"
    bounds = [part["predicate"] for part in columns["income"]["partitions"]]
    assert bounds[1] == {"lowerBound": 20_000, "upperBound": 50_000}
    assert {part["maxGroupsPerUnit"] for part in columns["income"]["partitions"]} == {3}


def test_nothing_is_claimed_that_the_schema_does_not_promise():
    """`rows` is near the number of rows and no bound on it, and cells that are no level may occur."""
    text = Schema((Categorical("a", ("x", "y")), Numeric("n", 0, 1, bins=4)), rows=1000).to_csvw()
    standard = json.loads(text)
    del standard[OURS]
    for claim in ("1000", "maxLength", "publicLength", "exhaustive", "invariant", "privacyUnit", "nullableProportion"):
        assert claim not in json.dumps(standard)
    assert standard["maxContributions"] == 1


def test_a_bound_below_a_persons_rows_is_refused():
    for wrong in (4, 0, 2.5, True, "9"):
        with pytest.raises(SchemaError, match="max_rows must be a whole number of at least 5"):
            PATIENTS.to_csvw(max_rows=wrong)


# --- reading our own ------------------------------------------------------------------------------


def change_minimum(table):
    table["tableSchema"]["columns"][1]["minimum"] = 18


def change_cap(table):
    table["maxContributions"] = 1


def drop_unit(table):
    del table["privacyUnit"]


def add_column(table):
    table["tableSchema"]["columns"].append({"name": "new", "datatype": "integer", "keyValues": [1, 2]})


def add_level(table):
    table["tableSchema"]["columns"][2]["keyValues"].append("maybe")


def change_ours(table):
    table[OURS]["person"]["rows"] = 50


@pytest.mark.parametrize("edit", [change_minimum, change_cap, drop_unit, add_column, add_level, change_ours])
def test_an_edit_of_one_part_alone_is_refused(edit):
    table = written()
    edit(table)
    with pytest.raises(SchemaError, match="disagree"):
        Schema.from_csvw(json.dumps(table))


def test_the_standard_part_alone_is_read_without_our_rules():
    table = written()
    del table[OURS]
    schema = Schema.from_csvw(json.dumps(table))
    assert schema.person == PATIENTS.person
    assert schema.file == PATIENTS.file
    assert schema.names == PATIENTS.names
    assert schema["smoker"] == Categorical("smoker", ("no", "yes"))
    assert schema["arm"] == PATIENTS["arm"]
    assert schema["blood type"] == PATIENTS["blood type"]


# --- reading what others wrote --------------------------------------------------------------------

PENGUINS = {
    "@context": ["http://www.w3.org/ns/csvw", "csvw-eo-context.jsonld"],
    "@type": "Table",
    "privacyUnit": "penguin_id",
    "maxContributions": 3,
    "maxLength": 344,
    "publicLength": 344,
    "tableSchema": {
        "columns": [
            {"@type": "Column", "name": "species", "datatype": "string", "keyValues": ["Adelie", "Gentoo"]},
            {
                "@type": "Column", "name": "bill_length_mm", "datatype": "double", "nullableProportion": 0.294,
                "minimum": 32.1, "maximum": 59.6,
                "partitions": [
                    {"@type": "Partition", "predicate": {"lowerBound": a, "upperBound": a + 10}} for a in (30, 40, 50)
                ],
            },
            {"@type": "Column", "name": "mass", "datatype": "positiveInteger", "minimum": 2700, "maximum": 6300},
            {"@type": "Column", "name": "sex", "datatype": "boolean", "minimum": False, "maximum": True},
            {"@type": "Column", "name": "penguin_id", "datatype": "positiveInteger", "privacyId": True, "minimum": 1},
            {"@type": "Column", "name": "seen", "datatype": "dateTime", "minimum": "2025-01-02"},
            {"@type": "Column", "name": "note", "datatype": "string"},
        ]
    },
}  # fmt: skip


def penguins(**changes):
    return json.dumps({**PENGUINS, **changes})


def test_metadata_of_others_becomes_a_schema_and_says_what_it_lost():
    notes = []
    schema = Schema.from_csvw(penguins(), notes=notes)
    assert schema == Schema(
        (
            Categorical("species", ("Adelie", "Gentoo")),
            Numeric("bill_length_mm", 30, 60, edges=(40, 50)),
            Numeric("mass", 2700, 6300),
            Categorical("sex", (False, True)),
        ),
        rows=344,
        person=Person("penguin_id", 3),
    )
    said = "\n".join(notes)
    for what in ("'seen' of type dateTime", "'note' of type string", "publicLength", "not used: nullableProportion"):
        assert what in said


def test_names_with_prefixes_and_groups_of_tables_are_understood():
    column = {"csvw:name": "a", "csvw:datatype": {"base": "number", "minimum": "0", "maximum": 2.5}}
    table = {"csvw:tableSchema": {"csvw:columns": [column]}, "csvw-eo:bounds.maxContributions": 1}
    assert Schema.from_csvw(json.dumps({"tables": [table]})) == Schema((Numeric("a", 0, 2.5),))
    titled = {"tableSchema": {"columns": [{"name": "a_b", "titles": ["a b"], "datatype": "boolean"}]}}
    assert Schema.from_csvw(json.dumps(titled)).names == ("a b",)


def test_partitions_that_leave_gaps_are_no_bins():
    column = PENGUINS["tableSchema"]["columns"][1]
    apart = {**column, "partitions": column["partitions"][::2]}
    notes = []
    schema = Schema.from_csvw(penguins(tableSchema={"columns": [apart]}), notes=notes)
    assert schema.columns == (Numeric("bill_length_mm", 32.1, 59.6),)
    assert "do not lie side by side" in notes[0]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "not JSON"),
        ('{"a": NaN}', "NaN is no number"),
        ('{"a": ' + "[" * 100_000, "nested too deeply"),
        ('{"a": ' + "9" * 5000 + "}", "not JSON that can be read"),
        ("{}", "no tableSchema"),
        ('{"tables": []}', "describes one table"),
        ('{"tables": [{}, {}]}', "describes one table"),
        ('{"tableSchema": {"columns": []}}', "no tableSchema with a list"),
        ('{"tableSchema": {"columns": [3]}}', "no tableSchema with a list"),
        ('{"tableSchema": {"columns": [{}]}}', "a column has no name"),
        ('{"tableSchema": {"columns": [{"name": "a"}]}}', "no column has public levels"),
        (penguins(maxContributions=None), "privacyUnit needs maxContributions"),
        (penguins(maxContributions=0), "rows must be a whole number"),
        (penguins(privacyUnit="species"), "several columns as the unit of privacy"),
        (penguins(publicLength="many"), "rows must be a whole number"),
        (penguins(dialect={"delimiter": "ab"}), "separator must be one character"),
        (penguins(dialect={"encoding": "klingon"}), "encoding must be"),
        (penguins(**{OURS: 3}), "no list of named columns"),
        (penguins(**{OURS: {"columns": [{"name": "a", "kind": "ordinal", "levels": [1, 1]}]}}), "repeats the level"),
        (penguins(**{OURS: {"columns": [{"name": "a", "kind": "spline"}]}}), "kind must be one of"),
        (penguins(**{OURS: {"columns": [{"name": "a", "kind": "ordinal", "groups": {"x": 1}}]}}), "groups in the part"),
    ],
)  # fmt: skip
def test_what_is_no_such_metadata_is_refused_in_a_sentence(text, says):
    with pytest.raises(SchemaError, match=says):
        Schema.from_csvw(text)


def test_a_cap_without_a_column_of_persons_is_refused():
    """To read it as one row for each unit would protect less than the document says."""
    columns = PENGUINS["tableSchema"]["columns"][:2]
    table = {"maxContributions": 3, "tableSchema": {"columns": columns}}
    with pytest.raises(SchemaError, match="no privacyUnit names the column"):
        Schema.from_csvw(json.dumps(table))


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_any_damage_is_refused_in_a_sentence_or_read(data):
    table = data.draw(st.sampled_from([PENGUINS, written(), written(url="t.tsv", max_rows=9)]))
    damaged = json.loads(json.dumps(table))
    place = damaged
    while isinstance(place, (dict, list)) and place:
        key = data.draw(st.sampled_from(list(place) if isinstance(place, dict) else list(range(len(place)))))
        if not isinstance(place[key], (dict, list)) or not place[key] or data.draw(st.booleans()):
            place[key] = data.draw(JUNK)
            break
        place = place[key]
    with suppress(SchemaError):
        assert isinstance(Schema.from_csvw(json.dumps(damaged)), Schema)


# --- the command line -----------------------------------------------------------------------------


def test_the_commands_write_and_read(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    PATIENTS.save("patients.toml")
    export = ["schema", "export", "patients.toml", "--csvw", "--url", "patients.csv"]
    assert main([*export, "-o", "patients.csv-metadata.json"]) == 0
    assert main(["schema", "import", "patients.csv-metadata.json", "-o", "again.toml"]) == 0
    assert Schema.load("again.toml") == PATIENTS
    assert main(export) == 0
    assert json.loads(capsys.readouterr().out)["url"] == "patients.csv"
    (tmp_path / "other.json").write_text(penguins(), encoding="utf-8")
    assert main(["schema", "import", "other.json"]) == 0
    said = capsys.readouterr()
    assert "left out: column 'seen'" in said.err
    assert Schema.loads(said.out).names == ("species", "bill_length_mm", "mass", "sex")
    assert main(["schema", "import", "patients.csv-metadata.json", "-o", "patients.csv-metadata.json", "--force"]) == 1
    assert main(["schema", "import", "nothing.json"]) == 1

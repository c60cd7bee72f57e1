"""A draft is nearly right: of every kind of table, with every column sorted into its kind and every line explained."""

from __future__ import annotations

import gzip
import re

import duckdb
import numpy as np
import pandas as pd
import pytest

import dpcurate
from dpcurate import Schema, draft
from dpcurate.errors import OwnerError, SchemaError
from dpcurate.private.owner.draft import cut, draft_schema
from dpcurate.private.owner.guess import in_order, outwards, roughly
from dpcurate.private.sources import check_rows
from dpcurate.schema import Categorical, Numeric, Ordinal, TextFormat
from foreign_files import write_sav
from surveys import KINDS, WANTED, survey


@pytest.mark.parametrize("name", KINDS)
def test_a_draft_of_each_kind_of_table_needs_no_edit(name, tmp_path):
    path = tmp_path / name
    KINDS[name](survey(), path)
    text = draft(path)
    schema = Schema.loads(text)
    assert [(c.name, c.kind, c.missing) for c in schema.columns] == [
        (c.name, c.kind, c.missing) for c in WANTED.columns
    ]
    assert {n: schema[n].levels for n in schema.names} == {n: WANTED[n].levels for n in WANTED.names}
    assert next(check_rows(path, schema)) == "1200 rows, 1200 of them used"
    for left_out, why in (("person_id", "looks like an id"), ("seen", "dates"), ("remark", "different texts")):
        assert re.search(rf"# left out: '{left_out}': .*{why}", text)


@pytest.mark.parametrize("name", ["semicolons.csv", "t.sav"])
def test_every_column_of_a_draft_has_one_remark(name, tmp_path):
    KINDS[name](survey(), tmp_path / name)
    text = draft(tmp_path / name)
    columns = text[text.index("\n[columns.") :].splitlines()
    remarked = [line for line in columns if "#" in line and not line.startswith("# left out")]
    assert len(remarked) == len(WANTED.names)
    assert all(line.startswith("[columns.") for line in remarked)
    assert text.splitlines()[0].startswith("# DRAFT: dpcurate LOOKED AT THE DATA")
    for setting in ("kind", "missing", "outside"):
        assert f"\n# {setting} " in text


def test_lines_to_fill_in_make_a_schema():
    """Uncommented, they name the id that was found and agree with everything else."""
    text = draft(survey())
    filled = re.sub(r"^# (?=rows =|\[person\]|column =)", "", text, flags=re.MULTILINE)
    assert Schema.loads(filled).person == dpcurate.schema.Person("person_id", 5)
    assert Schema.loads(text).person is None


@pytest.mark.parametrize(
    ("rows", "told"), [(0, 10), (7, 10), (14, 10), (16, 20), (1234, 1000), (9_600, 10_000), (545_001, 500_000)]
)
def test_the_number_of_rows_is_rounded(rows, told):
    assert roughly(rows) == told


def test_a_rough_number_of_rows_is_asked_for():
    text = draft(survey())
    assert re.search(r"# CONFIRM: .*\n.*\nrows = 1000\n", text)
    assert Schema.loads(text).rows == 1000


def test_nothing_is_counted_in_a_draft():
    """A number of rows, or of rows with a level, would tell more than levels and bounds do."""
    texts = {draft(survey(1200).head(rows)) for rows in (1200, 1199, 1180)}
    assert len(texts) == 1


# --- rows and persons -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [12, 300])
@pytest.mark.parametrize("name", ["C0", "Unnamed: 0", "X", "rownames", "row.names", "index", "__index_level_0__"])
@pytest.mark.parametrize("first", [0, 1])
def test_the_row_index_is_left_out_and_is_no_person(name, first, rows):
    text = draft({name: np.arange(first, first + rows), "b": [0, 1, 1] * (rows // 3)})
    assert f"# left out: {name!r}: it is the row index" in text
    assert Schema.loads(text).names == ("b",)
    assert f'column = "{name}"' not in text


def test_the_row_index_of_csv_files(tmp_path):
    rows = pd.DataFrame({"b": [0, 1, 1] * 10, "c": ["u", "v", "w"] * 10})
    rows[rows.index % 4 > 0].to_csv(tmp_path / "t.csv")
    text = draft(tmp_path / "t.csv")
    assert "# left out: 'column0': it is the row index" in text
    assert Schema.loads(text).names == ("b", "c")


def test_a_column_called_x_is_a_column():
    for x in (np.linspace(0, 7, 60), np.arange(60) * 1000, [1, 2, 3] * 20):
        assert Schema.loads(draft({"X": x, "b": [0, 1] * 30})).names == ("X", "b")


@pytest.mark.parametrize(
    ("name", "persons"), [("nr", 90), ("Subject", 10), ("ID", 10), ("ID", 90), ("idcode", 90), ("person_id", 90)]
)
def test_ids_of_persons_that_repeat_are_asked_about(name, persons):
    table = {
        "Unnamed: 0": np.arange(8 * persons),
        "visit_id": np.arange(8 * persons) * 3,
        name: np.arange(8 * persons) // 8 + 13,
        "b": [0, 1] * (4 * persons),
    }
    result = draft_schema(table)
    assert f"# QUESTION: does {name!r} identify persons?" in result.text
    assert result.repeated_id == name
    filled = re.sub(r"^# (?=rows =|\[person\]|column =)", "", result.text, flags=re.MULTILINE)
    assert Schema.loads(filled).person == dpcurate.schema.Person(name, 8)
    assert Schema.loads(result.text).names == ("b",)


def test_few_ids_of_things_are_levels():
    text = draft({"store_id": [1, 2, 3, 4] * 30, "subject": ["art", "maths", "music"] * 40, "b": [0, 1] * 60})
    assert Schema.loads(text).names == ("store_id", "subject", "b")
    assert re.search(r"\[columns.store_id\].*its name is like that of an id", text)


# --- what comes first -----------------------------------------------------------------------------------------


def test_an_order_is_proposed_from_names_and_not_from_rows():
    names = ("sex", "birth_year", "smoker", "Region")
    drafts = [
        draft(dict(zip(names, rows, strict=True)))
        for rows in ([[0, 1] * 20] * 4, [[0, 1] * 20, [1, 0] * 20, [0, 1] * 20, [1, 1, 0, 0] * 10])
    ]
    for text in drafts:
        assert '\n# order = [["sex", "birth_year", "Region"], ["*"]]\n' in text
        assert "Name ALL columns that nothing else can cause" in text
        assert Schema.loads(text).order == ()
        chosen = Schema.loads(text.replace("# order =", "order ="))
        assert chosen.order == (("sex", "birth_year", "Region"), ("*",))


def test_no_order_is_made_up():
    text = draft({"a": [0, 1] * 20, "b": [0, 1] * 20})
    assert "By their names alone none is such a column" in text
    with pytest.raises(SchemaError, match="unknown column 'FIRST'"):
        Schema.loads(text.replace("# order =", "order ="))
    assert "# order = " not in draft({"*": [0, 1] * 20, "sex": [0, 1] * 20})


# --- text files -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "windows-1252", "utf-16"])
@pytest.mark.parametrize("decimal", [".", ","])
def test_how_a_text_file_is_written_is_found_and_told(separator, encoding, decimal, tmp_path):
    survey(200).to_csv(tmp_path / "t.csv", index=False, sep=separator, encoding=encoding, decimal=decimal)
    result = draft_schema(tmp_path / "t.csv")
    schema = Schema.loads(result.text)
    assert schema.file == TextFormat(None if separator == "," else separator, encoding, decimal)
    assert schema["income"] == Numeric("income", 0, 100_000, missing="own")
    for words in ({",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}[separator], encoding):
        assert words in result.read_as
    assert ("decimal comma" in result.read_as) == (decimal == ",")


def test_what_is_given_is_not_looked_for(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("a;b\n1;ö,x\n2;y,z\n".encode("latin-1"))
    schema = Schema.loads(draft(path, separator=";", encoding="latin-1", decimal=","))
    assert schema.file == TextFormat(";", "latin-1", ",")
    with pytest.raises(OwnerError, match="line 2 is not in UTF-8: save the file as UTF-8"):
        draft(path, encoding="utf-8")
    with pytest.raises(SchemaError, match="encoding must be"):
        draft(path, encoding="klingon")
    with pytest.raises(SchemaError, match="are for text files"):
        draft({"a": [1, 2]}, separator=";")


def test_texts_that_mean_missing_are_found(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "1,x\n2,y\n3,y\n" * 20 + "NA,x\n?,?\n")
    schema = Schema.loads(draft(path))
    assert schema.file.missing == ("NA", "?")
    assert schema["a"] == Ordinal("a", (1, 2, 3))
    assert schema["b"] == Categorical("b", ("x", "y"), missing="own")


TABLE = ["a,b,c", *(f"{i % 7},x{i % 2},{i % 3}" for i in range(30))]


@pytest.mark.parametrize(
    "before",
    [
        ["Survey of towns"],
        ["Survey of towns", "Source: us, 2020", ""],
        ["", ""],
        ["Title,,", ",,", '"Made by ""us""",,'],
        ["# one", "# two", "# three", "# four"],
        ["Survey", "Source: us, 2020, revised", "", "Made, by, us", ""],
    ],
    ids=len,
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "windows-1252"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_lines_before_the_header_are_found(before, encoding, end, tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(end.join([*before, *TABLE, ""]).encode(encoding))
    result = draft_schema(path)
    schema = Schema.loads(result.text)
    assert (schema.names, schema.file.skip) == (("a", "b", "c"), len(before))
    assert f"the header after {len(before)} line" in result.read_as
    assert next(check_rows(path, schema)) == "30 rows, 30 of them used"
    assert Schema.loads(schema.dumps()) == schema


@pytest.mark.parametrize(
    "lines",
    [
        TABLE,
        ["a,b,c,d", *(f"{i},x,y{i}" for i in range(9))],  # rows shorter than the header
        ["a,b", *(f"{i},x,y{i}" for i in range(9))],  # R names no column of row names
        ["only one", "1", "2", "3"],
        ["T", "1,2,3", "4,5,6", "7,8,9"],  # nothing that names columns
        ["T", "a,b,c", "1,2", "1", "1,2,3,4", "5,6,7"],
    ],
    ids=lambda lines: lines[0],
)
def test_no_line_is_skipped_without_a_reason(lines):
    shapes = [cut(lines, separator) for separator in (",", ";")]
    assert all(shape is None or shape.skip == 0 for shape in shapes)


def test_lines_to_skip_can_be_given(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["a,b", "b,a", "x,y", "y,x", "x,x"]))
    assert Schema.loads(draft(path, skip=1)).file.skip == 1
    assert Schema.loads(draft(path, skip=1)).names == ("b", "a")
    with pytest.raises(SchemaError, match="are for text files"):
        draft({"a": [1, 2]}, skip=1)
    with pytest.raises(SchemaError, match="file: skip must be a whole number"):
        draft(path, skip=-1)


def test_tabs_in_a_tsv_and_packed_files_and_patterns(tmp_path):
    table = survey(200)
    table.to_csv(tmp_path / "t.tsv", index=False, sep="\t")
    assert "[file]" not in draft(tmp_path / "t.tsv")
    text = table.to_csv(index=False, sep=";")
    for i in range(2):
        (tmp_path / f"p{i}.csv.gz").write_bytes(gzip.compress(text.encode("windows-1252")))
    assert Schema.loads(draft(str(tmp_path / "p*.csv.gz"))).file == TextFormat(";", "windows-1252")


def test_thousands_are_not_taken_for_decimals(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "".join(f'"{i},{i:03}",{i % 2}\n' for i in range(100, 200)))
    assert "'a': its numbers have marks for thousands" in draft(path)
    path.write_text("a;b\n" + "".join(f"{i}.{i:03},5;{i % 2}\n" for i in range(100, 200)))
    assert "'a': its numbers have marks for thousands" in draft(path)
    mixed = "".join(f'"{i},5",{i}.5,{i % 2}\n' for i in range(100, 200))
    path.write_text(f"a,c,b\n{mixed}0,0.5,1\n")
    assert "'a': its numbers have a decimal comma: store 3.5, not 3,5; of a text file, give --decimal" in draft(path)


def test_an_empty_or_absent_file(tmp_path):
    (tmp_path / "t.csv").write_text("")
    for name in ("t.csv", "no.csv"):
        with pytest.raises(OwnerError, match=r"is empty|cannot read"):
            draft(tmp_path / name)
    (tmp_path / "t.csv").write_text("a\n1\n2\n")
    assert Schema.loads(draft(tmp_path / "t.csv")).names == ("a",)


def test_a_file_that_csv_cannot_cut_is_left_to_the_engine(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n" + "x" * 200_000 + ",1\ny,2\n")
    assert Schema.loads(draft(tmp_path / "t.csv")).names == ("a", "b")


# --- columns --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "column"),
    [
        ([10, 2, 1, 3], Ordinal("a", (1, 2, 3, 10))),
        (["10", "9", "2"], Ordinal("a", (2, 9, 10))),
        ([0, 1], Categorical("a", (0, 1))),
        ([True, False], Categorical("a", ("false", "true"))),
        (list(range(13)), Numeric("a", 0, 20)),
        (list(range(12)), Ordinal("a", range(12))),
        ([0.5, 2.5, 6.0], Ordinal("a", (0.5, 2.5, 6))),
        ([0.0, 3.258096, 3.931826, 4.61512], Numeric("a", 0, 5)),
        (["0", ".0221239", "1"], Numeric("a", 0, 1)),
        (["true", "false"], Categorical("a", ("false", "true"))),
        ([20_000, 50_000, 100_000], Numeric("a", 0, 100_000)),
        ([f"{i}.25" for i in range(40)], Numeric("a", 0, 50)),
        ([*map(str, range(0, 400, 2)), "unknown"], Numeric("a", 0, 500, missing="own")),
        (["65+", "18-24", "25-64", "<18"], Ordinal("a", ("<18", "18-24", "25-64", "65+"))),
        (["Often", "never", "Always"], Ordinal("a", ("never", "Often", "Always"))),
        (["b", "a", "low"], Categorical("a", ("a", "b", "low"))),
        ([1.0, 2.0, None], Categorical("a", (1, 2), missing="own")),
        ([1.0, 2.0, 3.0, None], Ordinal("a", (1, 2, 3))),
        (["a", "missing", None], Categorical("a", ("a", "missing"), missing="missing")),
        (
            ["12years", "9-11years", "13+years", "<9years"],
            Ordinal("a", ("<9years", "9-11years", "12years", "13+years")),
        ),
        (["Good", "Fair", "Very Good"], Ordinal("a", ("Fair", "Good", "Very Good"))),
        (["1.0", "2.0", "10.0", None], Ordinal("a", (1, 2, 10))),
        (["1.0", "2.0", None], Categorical("a", (1, 2), missing="own")),
        (["1.0", "2.0", "unknown"], Categorical("a", (1, 2, "unknown"))),
        (["1.0", "1.5", "2.0"], Ordinal("a", ("1.0", "1.5", "2.0"))),
        (["01", "02"], Categorical("a", ("01", "02"))),
        ([*range(100, 199), 1e6], Numeric("a", 100, 200)),
        ([0] * 300 + list(range(1, 31)), Numeric("a", 0, 30)),
        ([0] * 3000 + list(range(1, 15)), Numeric("a", 0, 20)),
    ],
    ids=str,
)
def test_what_a_column_is_taken_for(values, column):
    schema = Schema.loads(draft(pd.DataFrame({"a": values * 3, "b": [0, 1, 1] * len(values)})))
    assert schema["a"] == column


@pytest.mark.parametrize(
    ("name", "values", "why"),
    [
        ("patient_id", range(0, 90, 3), "looks like an id"),
        ("patientId", range(0, 90, 3), "looks like an id"),
        ("ID", [f"p{i}" for i in range(30)], "looks like an id"),
        ("case_no", [f"A-{100000 + i}" for i in range(30)], "looks like an id"),
        ("n", range(7, 37), "looks like an id"),  # it numbers the rows
        ("d", [f"{i + 1}.12.2020" for i in range(30)], "dates"),
        ("d", pd.date_range("2020-01-01", periods=30), "dates"),
        ("d", [f"2020-{1 + i % 12:02}-03 10:00" for i in range(30)], "dates"),
        ("t", [f"text {i}" for i in range(30)], "more than 20 different texts"),
        ("zip", [f"{i:05}" for i in range(800, 1100, 10)], "begin with zeros, so they are codes"),
        ("share", [f"{i} %" for i in range(30)], "carry a sign or a unit"),
        ("c", [5] * 30, "fewer than two different values"),
        ("c", [None] * 30, "fewer than two different values"),
        ("drop", ["drop", "keep"] * 15, "may not be called 'drop'"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_what_cannot_be_used_is_left_out_and_named(name, values, why):
    text = draft(pd.DataFrame({name: list(values), "b": [0, 1] * 15}))
    assert re.search(rf"# left out: '{name}': .*{why}", text)
    assert Schema.loads(text).names == ("b",)


def test_numbers_that_are_none():
    endless = pd.DataFrame({"a": [np.inf, -np.inf] * 10, "b": [0, 0] * 10, "c": [0.5, 1.5] * 10})
    assert "'a': it holds no number" in draft(endless, max_levels=1)


def test_a_column_that_cannot_be_read_is_named(tmp_path):
    """A view computes its cells when they are asked for."""
    with duckdb.connect(str(tmp_path / "t.duckdb")) as given:
        given.execute("CREATE VIEW v AS SELECT x AS a, error('no such town') AS b FROM range(3) AS t(x)")
    with pytest.raises(OwnerError, match=r"column 'b' could not be read: .*no such town"):
        draft(f"{tmp_path / 't.duckdb'}#v")


@pytest.mark.parametrize("name", ["idade", "patient_age", "width", "video"])
def test_a_name_is_not_an_id_for_a_few_letters(name):
    numbers = list(range(0, 90, 3))
    assert name in Schema.loads(draft({name: numbers, "b": [0, 1] * 15})).names


def test_labels_become_levels_if_all_values_have_one(tmp_path):
    table = pd.DataFrame(
        {
            "e": [1.0, 2, None, 2] * 5,
            "a": [1.0, 2, 2, 3] * 5,
            "b": [1.0, 2, 7, 9] * 5,
            "c": [1.0, 2] * 10,
            "d": [1.0, 2] * 10,
        }
    )
    labels = {"a": {1: "red", 2: "green", 3: "red", 4: "blue"}, "b": {1: "x", 9: "refused"}, "c": {1: "drop", 2: "q"}}
    measure = {"a": "nominal", "d": "ordinal"}
    labels |= {"d": {1: "south", 2: "north"}, "e": {1: "on", 2: "off"}}
    path = write_sav(table, tmp_path / "t.sav", variable_value_labels=labels, variable_measure=measure)
    schema = Schema.loads(draft(path))
    assert schema["a"] == Categorical("a", groups={"red": [1, 3], "green": [2], "blue": [4]})
    assert schema["b"] == Ordinal("b", (1, 2, 7, 9))
    assert schema["c"] == Categorical("c", (1, 2))
    assert schema["e"] == Categorical("e", groups={"on": [1], "off": [2]}, missing="own")
    assert schema["d"] == Ordinal("d", groups={"south": [1], "north": [2]})


def test_texts_from_a_table_cannot_write_settings(tmp_path):
    labels = {"column_labels": ["x\nrows = 7", ""]}
    path = write_sav(pd.DataFrame({"a": [1.0, 2.0], "b": [0.0, 1.0]}), tmp_path / "t.sav", **labels)
    assert Schema.loads(draft(path)).rows == 10
    strange = {'"]\nrows = 7\n["': ["u", "v"], "b": ['"]\nrows = 7 #', "x"]}
    schema = Schema.loads(draft(strange))
    assert schema.rows == 10
    assert schema["b"].levels == ('"]\nrows = 7 #', "x")


# --- parts ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seen", "bounds"),
    [
        ((18, 93), (0, 100)),
        ((4_000.55, 843_211.37), (0, 1_000_000)),
        ((0.02, 0.97), (0, 1)),
        ((1931, 2004), (1930, 2010)),
        ((145.5, 203), (140, 210)),
        ((36.1, 41.2), (36, 42)),
        ((-3.2, 4.7), (-5, 5)),
        ((-93, -1), (-100, 0)),
        ((-40, -35.5), (-40, -35)),
        ((0, 100), (0, 100)),
        ((0.11, 0.29), (0.1, 0.3)),
        ((1e-7, 3e-7), (1e-7, 3e-7)),
        ((-1.7e308, 1.7e308), (-1.7e308, 1.7e308)),
    ],
)
def test_bounds_are_rounded_outwards(seen, bounds):
    assert outwards(*seen) == bounds


def test_rounding_never_leaves_a_number_outside():
    rng = np.random.default_rng(1)
    for low, high in np.sort(rng.normal(size=(2000, 2)) * 10.0 ** rng.integers(-8, 9, (2000, 1)), axis=1).tolist():
        a, b = outwards(low, high)
        assert a <= low < high <= b
        assert len(f"{b:g}") <= 6 or (a, b) != (low, high)


@pytest.mark.parametrize(
    ("levels", "ordered"),
    [
        (["high", "low", "medium"], ["low", "medium", "high"]),
        (["> 65", "18 to 65", "under 18"], ["under 18", "18 to 65", "> 65"]),
        (["1-2", "3+", "0-0"], ["0-0", "1-2", "3+"]),
        (["yes", "no", "maybe"], None),
        (["2. Good", "1. Fair", "3. Excellent"], ["1. Fair", "2. Good", "3. Excellent"]),
        (["2. Black", "1. White", "3. Other"], None),
        (["(25,50]", "(0,25]", "(50,100]"], ["(0,25]", "(25,50]", "(50,100]"]),
        (["$10k-$25k", "$0-$10k", "$25k+"], ["$0-$10k", "$10k-$25k", "$25k+"]),
        (["75 and older", "18 to 24 years", "25-74 years"], ["18 to 24 years", "25-74 years", "75 and older"]),
        (["stage II", "stage I", "stage III"], ["stage I", "stage II", "stage III"]),
        (["2nd", "3rd", "1st"], ["1st", "2nd", "3rd"]),
        (["XL", "S", "L", "M"], ["S", "M", "L", "XL"]),
        (["5-1", "3-2", "8-9"], None),
        (["arm 1", "arm 2", "arm 3"], None),
        (["5 mg", "5 g", "10 mg"], None),
        (["5", "5+", "05"], None),
        (["low", "high"], None),
        (["low", "LOW", "high"], None),
        (["1", "2", "3"], None),
    ],
)
def test_words_in_order(levels, ordered):
    assert in_order(levels) == ordered


def test_a_column_may_be_named_like_anything_in_a_query():
    names = ("w", "v", "x", "n", "s", "count")
    written = Schema.loads(draft({name: [0.5, 1.25, 2.125, 7.5] * 30 for name in names}))
    assert written.names == names


def test_a_draft_has_its_columns_as_values_with_the_reasons():
    drafted = draft_schema(
        {"pain": ["low", "high", "medium"] * 20, "seen": ["2020-01-01", "2020-01-02", "2021-03-04"] * 20}
    )
    (pain,), (seen,) = drafted.columns, drafted.left_out
    assert pain.column == Ordinal("pain", ("low", "medium", "high"))
    assert "GUESSED" in pain.remark
    assert (seen.name, drafted.rows) == ("seen", 60)
    assert "dates" in seen.why

"""The public description of a table: what it accepts, what it refuses and on which line it says so."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpcurate
from dpcurate.errors import QueryError, SchemaError
from dpcurate.graphs.formats import text_for
from dpcurate.graphs.graph import Dag
from dpcurate.result.export import GRAPHS
from dpcurate.schema import (
    GRID,
    MAX_LEVELS,
    Categorical,
    Neighbours,
    Numeric,
    Ordinal,
    Person,
    Schema,
    TextFormat,
    did_you_mean,
    level_number,
    level_text,
    no_number,
)

# --- columns --------------------------------------------------------------------------------------


def test_a_column_knows_its_public_facts():
    colour = Categorical("colour", ("red", "green", "blue"), missing="red", outside="blue")
    assert (colour.size, colour.steps, colour.kind) == (3, 2, "categorical")
    assert Ordinal("size", ("s", "m", "l")).kind == "ordinal"
    age = Numeric("age", 0, 100, bins=4)
    assert age.edges == (25.0, 50.0, 75.0)
    assert age.levels == ("[0, 25)", "[25, 50)", "[50, 75)", "[75, 100]")
    assert (age.size, age.steps) == (4, GRID)
    assert (age.has_levels, colour.has_levels) == (True, True)


def test_a_unit_of_privacy_is_a_row_or_a_person_with_so_many_rows():
    columns = (Categorical("a", ("x", "y")),)
    assert Schema(columns).unit == "one row"
    assert Schema(columns, person=Person("id", 3)).unit == "one person, at most 3 rows each"


def test_a_number_is_a_number_unless_it_is_given_bins():
    age = Numeric("age", 0, 100)
    assert (age.bins, age.edges, age.has_levels) == (None, (), False)
    assert (age.size, age.steps, age.levels) == (1, GRID, ("[0, 100]",))
    assert Numeric("age", 0, 100, edges=(18, 65)) == Numeric("age", 0, 100, bins=3, edges=(18, 65))
    assert Numeric("age", 0, 100, missing="own").missing == "own"
    assert Categorical("a", ("own", "x"), missing="own").missing == "own"  # a level of that name
    assert Categorical("a", ("x", "y"), missing="own") == Categorical("a", ("x", "y", "missing"), missing="missing")
    assert Categorical("a", ("x", "missing"), missing="own").levels == ("x", "missing")
    grouped = Categorical("a", groups={"p": [1, 2], "q": [3]}, missing="own")
    assert (grouped.levels, grouped.missing) == (("p", "q", "missing"), "missing")
    assert dict(grouped.spellings) == {"1": 0, "2": 0, "3": 1, "missing": 2}
    with pytest.raises(
        QueryError, match=r"'age' is a number without bins, and em-pc needs levels: give it bins, e\.g\."
    ):
        Schema((A, age)).check_levels(("a", "age"), "em-pc")
    Schema((A, X)).check_levels(("a", "x"), "em-pc")


@pytest.mark.parametrize(
    ("level", "text"),
    [(1, "1"), (1.0, "1"), ("1", "1"), (-0.0, "0"), (True, "true"), (False, "false"), (0.5, "0.5"), (1e300, "1e+300")],
)
def test_one_level_has_one_text(level, text):
    assert level_text(level) == text


def test_levels_that_are_the_same_level_repeat():
    for levels in ((1, 1.0), ("1", 1), (True, "true"), ("a", "b", "a")):
        with pytest.raises(SchemaError, match="repeats the level"):
            Categorical("a", levels)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Categorical("", (0, 1)), "column name"),
        (lambda: Categorical("a\x00b", (0, 1)), "column name"),
        (lambda: Categorical(3, (0, 1)), "column name"),
        (lambda: Categorical("a", ()), r"'a' has 0 levels; it needs 2 to 1,000"),
        (lambda: Categorical("a", ("x",)), r"'a' has 1 level.*leave it out"),
        (lambda: Categorical("a", range(MAX_LEVELS + 1)), "1,001 level"),
        (lambda: Categorical("a", ("x", "y", "x", "y")), "repeats the level.*'x', 'y'"),
        (lambda: Categorical("a", ("x", "y"), missing="z"), "missing = 'z' is neither 'drop' nor one of its 2 levels"),
        (lambda: Categorical("a", ("x", "y"), outside="clamp"), "outside = 'clamp' is neither"),
        (lambda: Numeric("", 0, 1), "column name"),
        (lambda: Numeric("x", 1, 0), "low = 1 must be below high = 0"),
        (lambda: Numeric("x", 1, 1), "low = 1 must be below high = 1"),
        (lambda: Numeric("x", math.nan, 1), "low must be a finite number"),
        (lambda: Numeric("x", 0, math.inf), "high must be a finite number"),
        (lambda: Numeric("x", "0", 1), "low must be a finite number, got '0'"),
        (lambda: Numeric("x", False, 1), "low must be a finite number, got False"),
        (lambda: Numeric("x", -1.7e308, 1.7e308), "too large"),
        (lambda: Numeric("x", 0, 1, bins=1), "bins must be a whole number from 2 to 1000, got 1"),
        (lambda: Numeric("x", 0, 1, bins=2.5), "bins must be a whole number"),
        (lambda: Numeric("x", 0, 1, bins=True), "bins must be a whole number"),
        (lambda: Numeric("x", 0, 1, bins=MAX_LEVELS + 1), "bins must be a whole number"),
        (lambda: Numeric("x", 0, 1, bins=3, edges=(0.5,)), "3 bins need 2 inner edges, got 1"),
        (lambda: Numeric("x", 0, 1, bins=3, edges=(0.6, 0.5)), "edges must rise"),
        (lambda: Numeric("x", 0, 1, bins=3, edges=(0, 0.5)), "strictly between low and high"),
        (lambda: Numeric("x", 0, 1, bins=3, edges=(0.5, 1)), "strictly between low and high"),
        (lambda: Numeric("x", 0, 1, bins=2, edges=(math.nan,)), "edges must be a finite number"),
        (lambda: Numeric("x", 0, 1, missing=2), r"missing = 2 is outside \[0, 1\]"),
        (lambda: Numeric("x", 0, 1, missing="clamp"), "missing must be a finite number"),
        (lambda: Numeric("x", 0, 1, bins=2, missing="own"), "'own' is for numbers without bins.*'unknown'"),
        (lambda: Ordinal("a", ("x", "y"), missing="own"), "'own' is neither.*declare one for missing cells"),
        (lambda: Numeric("x", 0, 1, missing=math.nan), "missing must be a finite number"),
        (lambda: Numeric("x", 0, 1, outside="0.5"), "outside must be 'clamp' or 'drop', got '0.5'"),
        (lambda: Person("", 1), "column name"),
        (lambda: Person("id", 0), "rows must be a whole number of at least 1, got 0"),
        (lambda: Person("id", 1.5), "rows must be a whole number"),
        (lambda: Person("id", True), "rows must be a whole number"),
    ],
)
def test_a_wrong_column_is_refused_with_its_numbers(make, says):
    with pytest.raises(SchemaError, match=says) as caught:
        make()
    assert caught.value.line is None


# --- schema ---------------------------------------------------------------------------------------

A, B = Categorical("a", ("0", "1")), Categorical("b", ("x", "y", "z"), missing="x", outside="x")
X = Numeric("x", 0, 10, bins=5, missing=2)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Schema(()), "at least one column"),
        (lambda: Schema((A, B, A)), r"names the column 'a' more than once"),
        (lambda: Schema((A,), rows=0), "rows must be a whole number of at least 1, or left out; got 0"),
        (lambda: Schema((A,), rows=1e5), "rows must be a whole number"),
        (lambda: Schema((A,), rows=True), "rows must be a whole number"),
        (lambda: Schema((A,), person=Person("a", 2)), "'a' names persons, so it cannot be analysed too"),
        (lambda: Schema.of(7), "got int"),
        (lambda: Schema.of({"a": ("x",)}), r"1 level"),
        (lambda: Neighbours.of("both"), "'add-remove' or 'replace', got 'both'"),
    ],
)
def test_a_wrong_schema_is_refused(make, says):
    with pytest.raises(SchemaError, match=says):
        make()


def test_a_schema_answers_questions_about_its_columns():
    schema = Schema([A, B, X], rows=100, person=Person("id", 3))
    assert schema.names == ("a", "b", "x")
    assert schema["b"] is B
    assert schema.sizes(("x", "a")) == (5, 2)
    assert schema.rows_per_unit == 3
    assert Schema((B,)).rows_per_unit == 1
    assert Schema.of(schema) is schema
    assert Schema.of({"a": (0, 1)}).names == ("a",)
    with pytest.raises(QueryError, match="no column 'bb'; did you mean 'b'"):
        schema["bb"]
    with pytest.raises(QueryError, match=r"it has 'a', 'b', 'x'$"):
        schema["nothing like it"]
    assert did_you_mean("q", [f"col{i}" for i in range(10)]).endswith("'col7', ...")
    assert Neighbours.of("replace") is Neighbours.of(Neighbours.REPLACE) is Neighbours.REPLACE


def test_schemas_are_values():
    for value in (A, X, Person("id", 1), Schema((A, X))):
        assert hash(value) == hash(dataclasses.replace(value))
        field = dataclasses.fields(value)[0].name
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, field, "other")
    assert Schema((A, B)) != Schema((B, A))
    assert Categorical("a", (0, 1)) != Ordinal("a", (0, 1))


def test_the_hash_tells_schemas_apart():
    base = Schema((A, X), rows=100, person=Person("id", 2))
    others = [
        Schema((A, X), rows=100),
        Schema((A, X), rows=101, person=Person("id", 2)),
        Schema((A, X), rows=100, person=Person("id", 3)),
        Schema((X, A), rows=100, person=Person("id", 2)),
        Schema((Ordinal("a", ("0", "1")), X), rows=100, person=Person("id", 2)),
        Schema((Categorical("a", ("1", "0")), X), rows=100, person=Person("id", 2)),
        Schema((Categorical("a", ("0", "1"), missing="0"), X), rows=100, person=Person("id", 2)),
        Schema((A, Numeric("x", 0, math.nextafter(10, 11), bins=5, missing=2)), rows=100, person=Person("id", 2)),
        Schema((A, Numeric("x", 0, 10, missing=2)), rows=100, person=Person("id", 2)),
        Schema((A, Numeric("x", 0, 10, missing="own")), rows=100, person=Person("id", 2)),
    ]
    assert base.hash == Schema.loads(base.dumps()).hash
    assert len({s.hash for s in (base, *others)}) == len(others) + 1


# --- TOML: round trip -----------------------------------------------------------------------------

CONTROL = "".join(map(chr, {*range(32), *range(127, 160), 0xFFFE, 0xFFFF} - set(map(ord, "\t\n\r"))))
ANY_TEXT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters=CONTROL), min_size=1, max_size=12)
NAMES = ANY_TEXT | st.sampled_from(
    [
        "a.b",
        'say "hi"',
        "it's",
        "#no comment",
        "[x]",
        "a=b",
        " ",
        "\\",
        "\t",
        "\u2028",
        "é",
        "日本",
        "1",
        "-_",
        "rows",
    ]
)
LEVELS = ANY_TEXT | st.integers() | st.floats(allow_nan=False) | st.booleans()
FINITE = st.floats(allow_nan=False, allow_infinity=False, width=64)


@st.composite
def categorical(draw, name):
    def key(level):
        number = level_number(level_text(level))
        return level_text(level) if number is None else number

    def plain_text(text):
        return text != "drop" and not no_number(text)

    plain = LEVELS.filter(lambda level: plain_text(level_text(level)))
    levels = draw(st.lists(plain, min_size=2, max_size=6, unique_by=key))
    rules = [draw(st.sampled_from(["drop", *map(level_text, levels)])) for _ in range(2)]
    return draw(st.sampled_from([Categorical, Ordinal]))(name, tuple(levels), *rules)


@st.composite
def numeric(draw, name):
    points = sorted(draw(st.sets(FINITE.map(lambda x: x / 4), min_size=3, max_size=6)))
    low, *inner, high = points
    edges = draw(st.sampled_from([(), tuple(inner)]))
    missing = draw(st.sampled_from(["drop", low, high, *([] if edges else ["own"])]))
    bins = len(edges) + 1 if edges else draw(st.sampled_from([None, 2]) if missing != "own" else st.none())
    return Numeric(name, low, high, bins, edges, missing, draw(st.sampled_from(["clamp", "drop"])))


@st.composite
def schemas(draw):
    names = draw(st.lists(NAMES, min_size=2, max_size=5, unique=True))
    columns = tuple(draw(categorical(n) | numeric(n)) for n in names[1:])
    person = draw(st.none() | st.builds(Person, st.just(names[0]), st.integers(1, 10**6)))
    return Schema(columns, draw(st.none() | st.integers(1, 10**12)), person)


@settings(max_examples=150, deadline=None)
@given(schemas())
def test_toml_gives_back_the_same_schema(schema):
    again = Schema.loads(schema.dumps())
    assert again == schema
    assert [type(c) for c in again.columns] == [type(c) for c in schema.columns]
    assert again.hash == schema.hash


def test_files_are_written_and_read(tmp_path):
    schema = Schema((A, B, X), rows=100, person=Person("id", 3))
    schema.save(tmp_path / "s.toml")
    assert Schema.load(tmp_path / "s.toml") == schema
    assert Schema.of(str(tmp_path / "s.toml")) == schema
    assert tomllib.loads(schema.dumps())["columns"]["x"]["high"] == 10.0
    (tmp_path / "latin.toml").write_bytes(b"rows = 1 # \xff")
    for name in ("absent.toml", "latin.toml", "."):
        with pytest.raises(SchemaError, match=r"cannot read|not UTF-8 text"):
            Schema.load(tmp_path / name)


def test_defaults_need_not_be_written():
    schema = Schema.loads(
        '[columns.a]\nkind = "categorical"\nlevels = [0, 1]\n[columns.x]\nkind="numeric"\nlow=0\nhigh=1'
    )
    assert schema == Schema((Categorical("a", (0, 1)), Numeric("x", 0, 1)))


# --- TOML: every mistake and its line -------------------------------------------------------------

GOOD = """\
# a comment with [columns.a] in it
rows = 1000

[person]
column = "id"
rows = 4

[columns.a]
kind = "categorical"
levels = ["x", "y"]
missing = "x"
outside = "drop"

[columns."b c"] # a name with a blank
kind = "ordinal"
levels = [
  "lo",
  "hi",
]

[columns.x]
kind = "numeric"
low = 0
high = 10
bins = 3
edges = [2, 5]
missing = 1.5
outside = "clamp"
"""
MISTAKES = [
    ("rows = 1000", "rows = 0", "rows must be a whole number", 2),
    ("rows = 1000", 'rows = "many"', "rows must be a whole number", 2),
    ("rows = 1000", "row = 1000", "no setting 'row'; did you mean 'rows'", 2),
    ("rows = 1000", "rows = = 1", "not TOML", 2),
    ("[person]\n", "[persons]\n", "no setting 'persons'; did you mean 'person'", 4),
    ('column = "id"', 'colum = "id"', "person has no setting 'colum'; did you mean 'column'", 5),
    ('column = "id"\n', "", "person needs both column and rows", 4),
    ("rows = 4\n", "", "person needs both column and rows", 4),
    ("\n[columns.a]", "\n[columns.a", "not TOML", 8),
    (
        'kind = "categorical"',
        'kind = "category"',
        "kind must be one of categorical, ordinal, numeric, got 'category'",
        9,
    ),
    ('kind = "categorical"', "kind = 3", "kind must be one of", 9),
    ('kind = "categorical"', 'kind = "date"', "'a' is declared as a date.*public periods", 9),
    ('kind = "categorical"', 'kind = "id"', "'a' is declared as an id.*cap on rows", 9),
    ('kind = "categorical"', 'kind = "text"', "'a' is declared as free text.*leave it out", 9),
    ('levels = ["x", "y"]\n', "", "categorical column 'a' needs levels", 8),
    ('levels = ["x", "y"]', 'levels = "xy"', "levels must be a list", 10),
    ('levels = ["x", "y"]', 'levels = ["x", "x"]', "'a' repeats the level", 10),
    ('levels = ["x", "y"]', 'level = ["x", "y"]', "no setting 'level'; did you mean 'levels'", 10),
    ('levels = ["x", "y"]', 'levels = ["x", "y"', "not TOML", 11),
    ('missing = "x"', 'missing = "z"', "missing = 'z' is neither", 11),
    ('missing = "x"', "bins = 3", "categorical column 'a' has no setting 'bins'", 11),
    ('outside = "drop"', 'outside = "clamp"', "outside = 'clamp' is neither", 12),
    ('[columns."b c"]', "[columns.a]", "not TOML", 14),
    ("low = 0\n", "", "numeric column 'x' needs low", 21),
    ("low = 0\nhigh = 10\n", "", "needs low and high", 21),
    ("low = 0", 'low = "0"', "low must be a finite number", 23),
    ("low = 0", "low = nan", "low must be a finite number", 23),
    ("low = 0", "low = 11", "low = 11 must be below high = 10", 23),
    ("bins = 3", "bins = 1", "bins must be a whole number", 25),
    ("bins = 3", "bins = 3.0", "bins must be a whole number", 25),
    ("edges = [2, 5]", "edges = [5, 2]", "edges must rise", 26),
    ("edges = [2, 5]", "edges = [5]", "3 bins need 2 inner edges", 26),
    ("edges = [2, 5]", "edges = 5", "edges must be a list", 26),
    ("edges = [2, 5]", 'edges = ["2", 5]', "edges must be a finite number", 26),
    ("edges = [2, 5]", "edge = [2, 5]", "did you mean 'edges'", 26),
    ("missing = 1.5", "missing = 11", "missing = 11 is outside", 27),
    ("missing = 1.5", 'missing = "clamp"', "missing must be a finite number", 27),
    ('outside = "clamp"', "outside = 3", "outside must be 'clamp' or 'drop'", 28),
    ("rows = 4", "rows = 0", "person: rows must be", 6),
    ('levels = ["x", "y"]', 'levels = ["x"]', r"1 level", 10),
    ('  "hi",\n', "", r"'b c' has 1 level", 16),
    ('kind = "numeric"\n', "", "kind must be one of", 21),
    ("high = 10", "high = inf", "high must be a finite number", 24),
    ('column = "id"', 'column = "a"', "'a' names persons", 5),
]


def test_the_text_the_mistakes_are_made_in_is_right():
    schema = Schema.loads(GOOD)
    assert schema.names == ("a", "b c", "x")


@pytest.mark.parametrize(("old", "new", "says", "line"), MISTAKES)
def test_a_mistake_is_told_with_its_line(old, new, says, line):
    with pytest.raises(SchemaError, match=says) as caught:
        Schema.loads(GOOD.replace(old, new, 1))
    assert caught.value.line == line
    assert str(caught.value).startswith(f"line {line}: ")


def test_odd_tables_are_told_too():
    for text, says, line in (
        ("", "no columns", None),
        ("rows = 3", "no columns", None),
        ("rows = 1\n[columns]\n", "no columns", 2),
        ("rows = 1\ncolumns = 3\n", "no columns", 2),
        ("[columns]\na = 3\n", "column 'a' must be a table", 2),
        ("person = 3\n[columns.a]\nkind='ordinal'\nlevels=[1,2]\n", "person must be a table", 1),
        ('[columns.""]\nkind="ordinal"\nlevels=[1,2]\n', "column name", 1),
        ("[columns]\na = {kind='ordinal', levels=[1,1]}\n", "repeats", 2),
        ("columns.a.kind = 'ordinal'\ncolumns.a.levels = [1, 1]\n", "repeats", 2),
        ("[columns.a]\nkind = 'ordinal'\nlevels = [1", "not TOML", 3),
    ):
        with pytest.raises(SchemaError, match=says) as caught:
            Schema.loads(text)
        assert caught.value.line == line, text


@pytest.mark.parametrize(
    "name",
    [
        "a.b",
        'q"t',
        "it's",
        "a]b",
        "a#b",
        "é",
        "a b",
        "a=b",
    ],
)
def test_lines_are_found_for_odd_names(name):
    text = Schema((Categorical(name, ("u", "v")), Numeric("z", 0, 1))).dumps()
    broken = text.replace('levels = ["u", "v"]', 'levels = ["u", "u"]')
    wanted = broken.splitlines().index('levels = ["u", "u"]') + 1
    with pytest.raises(SchemaError) as caught:
        Schema.loads(broken)
    assert caught.value.line == wanted


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=60))
def test_no_text_escapes_as_another_error(text):
    with contextlib.suppress(SchemaError):
        Schema.loads(text)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Categorical("a", "yes"),  # three levels: y, e, s
        lambda: Categorical("a", 5),
        lambda: Categorical("a", ([1], [2])),
        lambda: Categorical("a", (None, math.nan)),
        lambda: Categorical("a", ("x", "drop")),  # a level that no rule can name
        lambda: Schema((("a", (0, 1)),)),
        lambda: Schema.loads("[columns.a]\nkind = 'ordinal'\nlevels = [[1], {a = 2}]\n"),
        lambda: Schema((Categorical("a", ("\ud800", "x")),)).hash,
    ],
)
def test_bad_input_that_should_be_a_schema_error(make):
    with pytest.raises(SchemaError):
        make()


@pytest.mark.parametrize("wrong", [*CONTROL, "\ud800"], ids=ascii)
def test_a_control_character_is_refused_where_it_is_written(wrong):
    with pytest.raises(SchemaError, match=r"the column name .* holds a control character"):
        Categorical(f"a{wrong}", ("x", "y"))
    with pytest.raises(SchemaError, match=r"column 'a': the level .* holds a control character"):
        Categorical("a", ("x", f"y{wrong}"))


@given(NAMES)
@settings(max_examples=200, deadline=None)
def test_every_file_of_a_run_can_hold_what_a_schema_accepts(name):
    graph = Dag.of([name, "other"], [(name, "other")])
    for file in GRAPHS:
        text_for(graph, file).encode()


def test_bounds_that_no_double_can_tell_apart_are_refused():
    with pytest.raises(SchemaError, match="too small for a number"):
        Numeric("x", 0, 5e-324)
    with pytest.raises(SchemaError, match="too large for a number"):
        Numeric("x", -1.7e308, 1.7e308)


def test_names_of_the_package():
    import dpcurate
    from dpcurate import schema

    assert schema.Neighbours is schema.Adjacency is dpcurate.Neighbours
    assert all(getattr(schema, name) is not None for name in schema.__all__)


def test_numbers_that_no_float_holds_are_refused():
    for value in (10**400, -(16**5000), float("inf"), float("nan")):
        with pytest.raises(SchemaError, match="must be a finite number"):
            Numeric("a", value, 1)
    with pytest.raises(SchemaError, match="a value of type int that cannot be printed"):
        Schema((Categorical("a", ("x", "y")),), rows=16**5000)


def test_too_many_levels_are_not_called_constant():
    with pytest.raises(SchemaError, match=r"has 5,000 levels; it needs 2 to 1,000. Group them") as told:
        Categorical("code", tuple(range(5000)))
    assert "constant" not in str(told.value)
    with pytest.raises(SchemaError, match="A constant column tells nothing"):
        Categorical("code", (1,))


# --- how a text file is written ---------------------------------------------------------------------------


def test_a_schema_says_how_a_text_file_is_written():
    text = '[file]\nseparator = ";"\ndecimal = ","\nencoding = "windows-1252"\nmissing = ["NA", "."]\n'
    schema = Schema.loads(text + "[columns.a]\nkind = 'categorical'\nlevels = [0, 1]\n")
    assert schema.file == TextFormat(";", "windows-1252", ",", ("NA", "."))
    assert Schema.loads(schema.dumps()) == schema
    plain = Schema(schema.columns)
    assert "file" not in plain.dumps()  # so that schemas written before keep their hash
    assert plain.file == TextFormat()
    assert plain.hash != schema.hash
    assert [TextFormat().separates(f) for f in ("a.csv", "a.tsv.gz", "A.TSV")] == [",", "\t", "\t"]
    assert TextFormat("|").separates("a.tsv") == "|"
    assert [TextFormat(encoding=e).is_utf8 for e in ("UTF8", "ascii", "utf-8-sig", "latin-1")] == [True] * 3 + [False]


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ('separator = ";;"', "separator must be one character"),
        ('separator = "a"', "separator must be one character"),
        ("separator = 3", "separator must be one character"),
        ('decimal = ";"', 'decimal must be "." or ","'),
        ('encoding = "klingon"', "encoding must be .*another that Python knows, got 'klingon'"),
        ('encoding = "rot13"', "encoding must be"),
        ("encoding = 8", "encoding must be"),
        ('encoding = "a\\u0000b"', "encoding must be"),
        ('missing = "NA"', "missing must be a list"),
        ("missing = [9]", "missing must be a list"),
        ('seperator = ";"', "file has no setting 'seperator'; did you mean 'separator'"),
    ],
)
def test_a_wrong_format_is_refused_with_its_line(setting, says):
    with pytest.raises(SchemaError, match=says) as told:
        Schema.loads(f"rows = 5\n[file]\n{setting}\n[columns.a]\nkind = 'categorical'\nlevels = [0, 1]\n")
    assert told.value.line == 3
    with pytest.raises(SchemaError, match="file must be a table"):
        Schema.loads("file = 3\n[columns.a]\nkind = 'categorical'\nlevels = [0, 1]\n")
    with pytest.raises(SchemaError, match="file must be a TextFormat"):
        Schema((Categorical("a", (0, 1)),), file=";")


@pytest.mark.parametrize("words", [{}, {"epsilon": 1}])
def test_without_a_schema_it_says_how_to_draft_one(words):
    table = {"a": ["0", "1"], "b": ["0", "1"]}
    for call in (lambda: dpcurate.discover(table, **words), lambda: dpcurate.Curator(table)):
        with pytest.raises(SchemaError, match=r"a schema is needed.*dpcurate\.draft\(table\)"):
            call()
    with pytest.raises(SchemaError, match=r"got list.*dpcurate\.draft"):
        dpcurate.discover(table, [1], **words)


def test_counts_in_messages_have_their_plurals():
    with pytest.raises(SchemaError, match=r"has 1 level; it needs 2 to"):
        Categorical("a", ("x",))
    with pytest.raises(SchemaError, match=r"repeats the level 'x'"):
        Categorical("a", ("x", "x", "y"))
    with pytest.raises(SchemaError, match=r"repeats the levels 'x', 'y'"):
        Categorical("a", ("x", "x", "y", "y"))
    with pytest.raises(SchemaError, match=r"names the column 'a' more than once"):
        Schema((Categorical("a", ("x", "y")), Categorical("a", ("x", "y"))))
    assert Person("id", 1).cap == "at most 1 row each"
    assert Person("id", 3).cap == "at most 3 rows each"

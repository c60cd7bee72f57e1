"""The BIF reader and writer: grammar, refusals with their line, round trips, mutated texts."""

from __future__ import annotations

import string
from importlib.resources import files
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counting import growth
from dpcurate.errors import FormatError
from dpcurate.networks import SHIPPED, Network, Variable, load, parse, write

GOOD = """network tiny {
}
variable A {
  type discrete [ 2 ] { yes, no };
}
variable B {
  type discrete [ 3 ] { low, mid, high };
}
probability ( A ) {
  table 0.25, 0.75;
}
probability ( B | A ) {
  (yes) 0.2, 0.3, 0.5;
  (no) 0.1, 0.1, 0.8;
}
"""


def test_reads_names_levels_parents_and_tables() -> None:
    network = parse(GOOD)
    assert network.name == "tiny"
    assert network.nodes == ("A", "B")
    assert network["B"].levels == ("low", "mid", "high")
    assert network["B"].parents == ("A",)
    assert network["B"].table.tolist() == [[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]]
    assert network["A"].table.tolist() == [[0.25, 0.75]]


def test_reads_every_piece_of_the_grammar() -> None:
    text = """// a note; with { marks }
    network "dog problem" { property "free; text // not a comment" ; property author = it's me ; }
    /* a comment
       over lines */ variable Asy/Patch { type discrete[3]{<5,"5 to 12" >=7.5}; property position = (73, 165) ; }
    variable "a b" { property x ; type discrete [ 2 ] { 0-3_days 12+ } ; }
    probability("a b"|Asy/Patch){default 1e-1,9.0E-01;(>=7.5) .5 5e-1/**/;property y;}// end
    probability ( Asy/Patch ) { table 1 , 0. , +0.0e+5 ; }"""
    network = parse(text)
    assert network.name == "dog problem"
    assert network.nodes == ("Asy/Patch", "a b")
    assert network["Asy/Patch"].levels == ("<5", "5 to 12", ">=7.5")
    assert network["a b"].levels == ("0-3_days", "12+")
    assert network["a b"].table.tolist() == [[0.1, 0.9], [0.1, 0.9], [0.5, 0.5]]
    assert network["Asy/Patch"].table.tolist() == [[1.0, 0.0, 0.0]]


def test_blocks_come_in_any_order_and_a_name_is_optional() -> None:
    head, a, b, pa, pb = GOOD.replace("}\n", "}\n@").replace("{\n}\n@", "{\n}\n@").split("@")[:5]
    mixed = parse(head + pb + b + pa + a)
    assert mixed.nodes == ("B", "A")
    assert {v.name: v for v in mixed.variables} == {v.name: v for v in parse(GOOD).variables}
    assert parse(GOOD.replace("network tiny", "network")).name == "unknown"


def test_a_conditional_table_changes_the_child_slowest() -> None:
    # The dog problem of JavaBayes writes P(true | true), P(true | false), P(false | true), P(false | false).
    rows = "(yes) 0.2, 0.3, 0.5;\n  (no) 0.1, 0.1, 0.8;"
    assert parse(GOOD.replace(rows, "table 0.2, 0.1, 0.3, 0.1, 0.5, 0.8;")) == parse(GOOD)


def test_the_bar_may_be_left_out_as_in_javabayes() -> None:
    assert parse(GOOD.replace("B | A", "B A")) == parse(GOOD)


def test_rows_are_placed_by_their_labels_not_their_order() -> None:
    text = GOOD.replace("  (yes) 0.2, 0.3, 0.5;\n", "").replace("0.8;", "0.8;\n  (yes) 0.2, 0.3, 0.5;")
    assert parse(text) == parse(GOOD)


def test_published_digits_are_kept_and_normalised_only_for_sampling() -> None:
    third = parse(GOOD.replace("0.25, 0.75", "0.3333, 0.6665"))["A"]
    assert third.table.tolist() == [[0.3333, 0.6665]]
    assert third.probabilities.sum() == pytest.approx(1, abs=1e-15)


MALFORMED = [
    ("empty", "", 1, "expected 'network'"),
    ("no network block", GOOD[17:], 1, "expected 'network'"),
    ("no variable", "network x {\n}\n", 2, "expected 'variable'"),
    ("second network block", GOOD + "network again { }", 16, "expected 'variable' or 'probability'"),
    ("text between blocks", GOOD + "hello", 16, "found 'hello'"),
    ("truncated in a block", GOOD[:-2], 14, "the file ends here"),
    ("truncated in a row", GOOD[: GOOD.index("0.8")], 14, "the file ends here"),
    ("truncated in levels", GOOD[: GOOD.index(", high")], 7, "the file ends here"),
    ("comment never ends", GOOD + "/* x", 16, "this comment never ends"),
    ("quote never ends", GOOD.replace("variable B", 'variable "B'), 6, "this quoted name never ends"),
    ("property never ends", "network x { property y }", 1, "this property never ends"),
    ("zero character", GOOD.replace("variable B", "variable \x00B"), 6, "unexpected character"),
    ("empty name", GOOD.replace("variable A", 'variable ""'), 3, "an empty name"),
    ("missing semicolon", GOOD.replace("0.75;", "0.75"), 11, "found '}'"),
    ("missing type", GOOD.replace("type discrete [ 2 ] { yes, no };", ""), 3, "has no 'type"),
    ("second type", GOOD.replace("no };", "no };\ntype discrete [ 2 ] { a, b };"), 5, "a second type"),
    ("continuous", GOOD.replace("discrete [ 2 ]", "continuous"), 4, "expected 'discrete'"),
    ("wrong number of levels", GOOD.replace("[ 3 ]", "[ 2 ]"), 7, "says 2 levels but lists 3"),
    ("no levels", GOOD.replace("[ 2 ] { yes, no }", "[ 0 ] { }"), 4, "1 to 1000, got '0'"),
    ("absurd number of levels", GOOD.replace("[ 3 ]", f"[ {'9' * 5000} ]"), 7, "1 to 1000"),
    ("level twice", GOOD.replace("mid, high", "mid, low"), 7, "lists the level 'low' twice"),
    ("variable twice", GOOD + "variable A { type discrete [ 2 ] { a, b }; }", 16, "declared twice"),
    ("block twice", GOOD + "probability ( A ) { table 1, 0; }", 16, "two probability blocks"),
    ("block missing", GOOD[: GOOD.index("probability ( B")], 6, "'B' has no probability block"),
    ("block of unknown", GOOD + "probability ( C ) { table 1; }", 16, "variable 'C' is not declared"),
    ("unknown parent", GOOD.replace("B | A", "B | Aa"), 12, "'Aa' is not declared; did you mean 'A'?"),
    ("parent twice", GOOD.replace("B | A", "B | A, A"), 12, "named twice"),
    ("own parent", GOOD.replace("B | A", "B | B"), 12, "named twice"),
    ("two bars", GOOD.replace("B | A", "B || A"), 12, "found '|'"),
    ("unknown level", GOOD.replace("(yes)", "(yess)"), 13, "'A' has no level 'yess'; did you mean 'yes'?"),
    ("row of too many labels", GOOD.replace("(yes)", "(yes, no)"), 13, "2 levels for 1 parent"),
    ("row twice", GOOD.replace("(no)", "(yes)"), 14, "is given twice"),
    ("row missing", GOOD.replace("  (no) 0.1, 0.1, 0.8;\n", ""), 12, "misses 1 of 2 rows, first ('no')"),
    ("no values at all", GOOD.replace("  table 0.25, 0.75;\n", ""), 9, "misses 1 of 1 rows"),
    ("too few values", GOOD.replace("0.1, 0.1, 0.8", "0.2, 0.8"), 14, "needs 3 probabilities here, got 2"),
    ("too many values", GOOD.replace("0.25, 0.75", "0.25, 0.25, 0.5"), 10, "needs 2 probabilities here, got 3"),
    ("sum above 1", GOOD.replace("0.1, 0.1, 0.8", "0.1, 0.1, 0.81"), 14, "sum to 1.01, not 1"),
    ("sum below 1", GOOD.replace("0.25, 0.75", "0.25, 0.74"), 10, "sum to 0.99, not 1"),
    ("negative", GOOD.replace("0.2, 0.3, 0.5", "-0.2, 0.7, 0.5"), 13, "-0.2 is not a probability"),
    ("infinite", GOOD.replace("0.25, 0.75", "1e999, 0"), 10, "1e999 is not a probability"),
    ("not a number", GOOD.replace("0.25", "nan"), 10, "found 'nan'"),
    ("underscored number", GOOD.replace("0.25", "0.2_5"), 10, "found '0.2_5'"),
    ("endless number", GOOD.replace("0.25", "0." + "1" * 5000), 10, "expected a probability"),
    ("table and rows", GOOD.replace("(yes) 0.2", "table 1, 0;\n(yes) 0.2"), 14, "a table and also rows"),
    ("table and default", GOOD.replace("0.75;", "0.75; default 0.5, 0.5;"), 10, "a table and also rows"),
    ("two tables", GOOD.replace("0.75;", "0.75; table 0.5, 0.5;"), 10, "a second 'table'"),
    ("two defaults", GOOD.replace("(yes)", "default 1,0,0; default"), 13, "a second 'default'"),
    ("bad default", GOOD.replace("(yes)", "default 1,1,0;\n(yes)"), 13, "sum to 2, not 1"),
    ("cycle", GOOD.replace("( A )", "( A | B )"), 12, "the parents form a cycle"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "message"), [x[1:] for x in MALFORMED], ids=[x[0] for x in MALFORMED])
def test_every_mistake_is_refused_with_its_line(text: str, line: int, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse(text)
    assert caught.value.line == line
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"line {line}: ")
    assert len(str(caught.value)) < 400


def test_every_proper_beginning_of_a_file_is_refused() -> None:
    end = len(GOOD.rstrip())
    for size in range(end):
        with pytest.raises(FormatError):
            parse(GOOD[:size])
    parse(GOOD[:end])


def test_a_short_text_cannot_ask_for_a_huge_table() -> None:
    names = [f"v{i}" for i in range(64)]
    text = "network x { }" + "".join(f"variable {n} {{ type discrete [2] {{a b}}; }}\n" for n in names)
    text += "".join(f"probability ( {n} ) {{ table 1 0; }}\n" for n in names[1:])
    text += f"probability ( v0 | {' '.join(names[1:])} ) {{ default 1 0; }}"
    with pytest.raises(FormatError, match="more than 2097152 cells"):
        parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "/" * 400_000,
        '"' * 400_001,
        "network x { property " + "y" * 400_000,
        'network x { property "' + '";"' * 100_000,
        "network x { } " + "/* " * 150_000,
        "network x { }" + " ," * 200_000,
        "a" * 400_000,
        "network x { } variable y { type discrete [2] {" + "a" * 400_000,
        "network x { } variable y { type discrete [2] {" + "a " * 100_000,
    ],
)
def test_long_broken_texts_are_refused_in_one_pass(text: str) -> None:
    """Eight times the text: about 8 in one pass, 64 if every place were tried again."""

    def refuse(part: str) -> None:
        with pytest.raises(FormatError):
            parse(part)

    short = text[: len(text) // 8]
    assert growth(lambda: refuse(short), lambda: refuse(text)) < 30


def test_a_long_chain_is_neither_too_deep_nor_a_cycle() -> None:
    size = 1500
    names = [f"v{i}" for i in range(size)]
    text = "network x { }" + "".join(f"variable {n} {{ type discrete [2] {{a b}}; }}\n" for n in names)
    chain = "".join(f"probability ( {b} | {a} ) {{ default .5 .5; }}\n" for a, b in pairwise(names))
    assert len(parse(text + "probability ( v0 ) { default .5 .5; }" + chain).arcs) == size - 1
    with pytest.raises(FormatError, match="cycle"):
        parse(text + f"probability ( v0 | {names[-1]} ) {{ default .5 .5; }}" + chain)


def child() -> str:
    return (files("dpcurate.networks") / "data" / "child.bif").read_text(encoding="utf-8")


@st.composite
def mutated(draw: st.DrawFn) -> str:
    text = draw(st.sampled_from([GOOD, write(load("cancer")), child()]))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text)))
        end = min(len(text), at + draw(st.integers(0, 20)))
        piece = draw(
            st.one_of(
                st.text(max_size=6),
                st.sampled_from([*'{}[]();|,"/', "//", "/*", "*/", "property", "table", "default", "1e999", "\n"]),
                st.just(text[end : end + 40]),
            )
        )
        text = text[:at] + piece + text[end:]
    return text


@settings(max_examples=300, deadline=None)
@given(mutated())
def test_a_mutated_text_gives_a_network_or_a_format_error(text: str) -> None:
    error = refusal(text)
    if error is not None:
        assert error.line is not None
        assert 1 <= error.line <= text.count("\n") + 1


def refusal(text: str) -> FormatError | None:
    try:
        parse(text)
    except FormatError as error:
        return error
    return None


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet=string.printable + "\x00\ud800é\u2028"))
def test_any_text_gives_a_network_or_a_format_error(text: str) -> None:
    with pytest.raises(FormatError):
        parse(text)


label = st.text(min_size=1, max_size=6).filter(lambda x: not set('"\n\x00') & set(x))


@st.composite
def networks(draw: st.DrawFn) -> Network:
    names = draw(st.lists(label, min_size=1, max_size=4, unique=True))
    levels = [tuple(draw(st.lists(label, min_size=1, max_size=3, unique=True))) for _ in names]
    source = np.random.default_rng(draw(st.integers(0, 9)))
    variables = []
    for j, name in enumerate(names):
        parents = [i for i in range(j) if draw(st.booleans())]
        rows = int(np.prod([len(levels[i]) for i in parents], dtype=int))
        table = source.dirichlet(np.ones(len(levels[j])), size=rows)
        variables.append(Variable(name, levels[j], tuple(names[i] for i in parents), table))
    return Network(draw(label), tuple(variables))


@settings(max_examples=100, deadline=None)
@given(networks(), st.text(max_size=20))
def test_what_is_written_is_read_back_bit_for_bit(network: Network, note: str) -> None:
    assert parse(write(network, note=note)) == network


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_networks_survive_a_round_trip(name: str) -> None:
    network = load(name)
    assert parse(write(network)) == network


@pytest.mark.parametrize("name", ['a"b', "a\nb", "a\x00b"])
def test_a_name_bif_cannot_hold_is_refused(name: str) -> None:
    with pytest.raises(FormatError, match="BIF cannot hold"):
        write(Network("x", (Variable(name, ("a", "b"), (), np.array([[0.5, 0.5]])),)))

"""Files from outside, hostile ones too: a sentence, never a trace, a hang or a gigabyte."""

from __future__ import annotations

import gzip
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcurate._files import LARGEST, LARGEST_TOML, load, toml
from dpcurate._messages import shown
from dpcurate.errors import DpcurateError, FormatError, SchemaError
from dpcurate.graphs import formats
from dpcurate.graphs.formats import FORMATS, dumps
from dpcurate.graphs.graph import Cpdag
from dpcurate.graphs.knowledge import Knowledge
from dpcurate.networks import load as load_network
from dpcurate.networks import parse, write
from dpcurate.schema import Categorical, Numeric, Person, Schema

GRAPH = Cpdag.of(["a b", 'q"', "c", "dé"], [("a b", 'q"'), ("c", 'q"')], [("c", "dé")])
SCHEMA = Schema((Categorical("a b", ("x", 'y"')), Numeric("n", 0, 9, bins=3)), rows=100, person=Person("id", 2))
KNOWLEDGE = Knowledge.of(required_arrows=[("a", "b")], forbidden_edges=[("a", "c")], tiers=[["a"], ["b", 'c"']])
READ = {name: lambda text, name=name: formats.loads(text, name) for name in FORMATS}
READ |= {"network": parse, "schema": Schema.loads, "knowledge": Knowledge.loads}
VALID = {name: dumps(GRAPH, name) for name in FORMATS if name != "bif"}
VALID |= {"bif": write(load_network("cancer")), "network": write(load_network("cancer"))}
VALID |= {"schema": SCHEMA.dumps(), "knowledge": KNOWLEDGE.dumps()}
PIECES = (
    "", "\x00", "\n", '"', "'", "\\", "{", "}", "[", "]", "(", ")", "<", ">", "&", ";", ",", "=", "#", "/*", "//", "->",
    "-", "\ufeff", "\u2028", "\ud800", "é", "9" * 5000, "1e999", "nan", "-1", "0x" + "f" * 5000, "[" * 2000, "{" * 2000,
    "a=" * 50, "x." * 50, '"""', "'''", "<!DOCTYPE a>", "&lol;", "true", "null", "1979-05-27", "a" * 3000, " " * 3000,
)  # fmt: skip


def attempt(read: Callable[[str], object], text: str) -> str | None:
    """What is said about the text, or None if it is accepted; any other exception goes through."""
    try:
        read(text)
    except DpcurateError as error:
        return str(error)
    return None


@pytest.mark.parametrize("name", READ)
def test_a_thousand_mutations_are_read_or_refused(name: str) -> None:
    rng, whole = random.Random(name), VALID[name]
    others = [part for text in VALID.values() for part in text.split()]
    refused = 0
    for _ in range(1000):
        text = whole
        for _ in range(rng.randint(1, 4)):
            start = rng.randrange(len(text) + 1)
            end = min(len(text), start + rng.choice((0, 0, 1, 3, 20, 10**6)))
            text = text[:start] + rng.choice((*PIECES, rng.choice(others), text[:start][-9:])) + text[end:]
        said = attempt(READ[name], text)
        refused += said is not None
        assert said is None or 0 < len(said) < 1200
    assert refused > 300


@settings(max_examples=100, deadline=None)
@pytest.mark.parametrize("name", READ)
@given(text=st.text(max_size=200))
def test_any_text_is_read_or_refused(name: str, text: str) -> None:
    attempt(READ[name], text)


BOMBS: dict[str, str] = {
    # name of the reader: text as a Python expression, so that the child makes it and not the parent
    "json/brackets": "'[' * 10**6",
    "json/objects": "'{\"a\":' * 10**6",
    "json/digits": "'{\"nodes\": ' + '9' * 10**6 + '}'",
    "json/kind": "'{\"nodes\": [], \"kind\": ' + '[' * 900 + ']' * 900 + '}'",
    "json/nodes last": "'{\"arrows\": [' + '[],' * 10**6 + '[]], \"nodes\": [\"a\"]}'",
    "json/lists": "'{\"nodes\": [' + '[],' * 5 * 10**6 + '[]]}'",
    "json/pair inside a name": "'{\"nodes\": [\"a[\",\\n\",\",\"]\"]}'",
    "json/separators": "'{\"kind\": \"skeleton\", \"nodes\": [\"a\"], \"separators\": ['"
    " + ','.join(['{\"pair\": [\"a\", \"b\"], \"given\": []}'] * 10**5) + ']}'",
    "csv/cell": "'from,to\\n' + 'a' * 10**7",
    "csv/quotes": "'from,to\\n' + '\"' * 10**7",
    "csv/nodes": "'from,to\\n' + '\\n'.join(f'a{i},b{i}' for i in range(10**6))",
    "dot/braces": "'digraph ' + '{' * 10**6",
    "dot/brackets": "'digraph { a ' + '[' * 10**6",
    "dot/groups": "'digraph { {' + ' '.join(f'a{i}' for i in range(9000)) + '} -> {'"
    " + ' '.join(f'b{i}' for i in range(9000)) + '} }'",
    "dot/defaults": "'digraph { edge [' + ','.join(f'k{i}=1' for i in range(10**5)) + '] '"
    " + ' '.join(f'a{i} -> b{i}' for i in range(4000)) + '; <'",
    "dot/names": "'digraph { ' + 'a;' * 8 * 10**6",
    "dot/string": "'digraph { \"' + 'a' * 10**7",
    "dot/escapes": "'digraph { \"' + '\\\\\\\\' * 5 * 10**6",
    "dot/comment": "'digraph { ' + '/*' * 5 * 10**6",
    "dot/pluses": "'digraph { \"a\"' + '+\"a\"' * 10**5 + ' -> }'",
    "dagitty/braces": "'dag ' + '{' * 10**6",
    "dagitty/chain": "'dag { a' + ' -> a' * 10**6 + '}'",
    "tetrad/edge": "'Graph Nodes:\\na;b\\nGraph Edges:\\n1. ' + 'a --> ' * 10**6",
    "tetrad/spaces": "'Graph Nodes:\\na;b\\nGraph Edges:\\n1. a' + ' ' * 10**7 + 'x'",
    "tetrad/flags": "'Graph Nodes:\\na;b\\nGraph Edges:\\n1. a --> b' + ' dd' * 10**5 + ' x'",
    "tetrad/names": "'Graph Nodes:\\n' + 'a;' * 10**6",
    "tetrad/name of spaces": "'Graph Nodes:\\na' + ' ' * 10**7 + 'b;' + 'a'",
    "tetrad/quotes": "'Graph Nodes:\\n' + '\"' * 10**6",
    "graphml/laughs": "'<!DOCTYPE l [<!ENTITY a \"ha\">' + ''.join(f'<!ENTITY {b} \"{(\"&\" + a + \";\") * 10}\">'"
    " for a, b in zip('abcdefghi', 'bcdefghij')) + ']><graphml>&j;</graphml>'",
    "graphml/depth": "'<graphml>' + '<a>' * 10**6",
    "graphml/elements": "'<graphml>' + '<a/>' * 3 * 10**6 + '</graphml>'",
    "graphml/attributes": "'<graphml ' + ' '.join(f'a{i}=\"\"' for i in range(2 * 10**5)) + '/>'",
    "graphml/nodes": "'<graphml><graph>' + ''.join(f'<node id=\"{i}\"/>' for i in range(10**5)) + '</graph></graphml>'",
    "graphml/number": "'<graphml><key id=\"k\" for=\"graph\" attr.name=\"kind\" attr.type=\"int\"/>'"
    " '<graph><data key=\"k\">' + '9' * 10**6 + '</data></graph></graphml>'",
    "graphml/encoding": "'<?xml version=\"1.0\" encoding=\"utf-16\"?><graphml><graph><node/></graph></graphml>'",
    "gml/brackets": "'a [ ' * 10**6",
    "bif/comment": "'network x { } ' + '/* ' * 5 * 10**6",
    "bif/variables": "'network x { }' + ''.join('variable v%d{type discrete[1]{a};}' % i for i in range(10**5))",
    "network/levels": "'network x { } variable y { type discrete [ 1000000000 ] { a, b }; }'",
    "network/digits": "'network x { } variable y { type discrete [ ' + '9' * 10**6 + ' ] { a }; }'",
    "network/brackets": "'network x { } variable y ' + '{' * 10**6",
    "network/names": "'network x { } variable y { type discrete [2] {' + 'a ' * 8 * 10**6",
    "network/numbers": "'network x { } probability (y) { table ' + '0 ' * 8 * 10**6",
    "network/rows": "'network x { } probability (y) {' + '(a)1;' * 3 * 10**6",
    "network/parents": "'network x {}' + ''.join('variable v%d{type discrete[2]{a b};}' % i for i in range(9999))"
    " + 'probability(v0|' + ' '.join('v%d' % i for i in range(1, 9999)) + '){default 1 0;}'"
    " + ''.join('probability(v%d){table 1 0;}' % i for i in range(1, 9999))",
    "network/near names": "'network x { } variable ' + 'a' * 10**6 + ' { type discrete [1] {a}; } probability ('"
    " + 'a' * 10**6 + 'b) { table 1; }'",
    "schema/brackets": "'rows = ' + '[' * 10**6",
    "schema/tables": "'rows = ' + '{a=' * 10**6",
    "schema/digits": "'rows = ' + '9' * 10**6",
    "schema/hexadecimal": "'rows = 0x' + 'f' * 10**6",
    "schema/low": "'[columns.a]\\nkind = \"numeric\"\\nhigh = 1\\nlow = -1' + '0' * 4000",
    "schema/level": "'[columns.a]\\nkind = \"ordinal\"\\nlevels = [1, 0x' + 'f' * 10**5 + ']'",
    "schema/key": "'.'.join('a' * 10**6) + ' = 1'",
    "schema/quoted key": "'.'.join(['\"a\"'] * 10**6) + ' = 1'",
    "schema/columns": "'rows = 0\\n' + ''.join(f'[columns.c{i}]\\nkind=\"numeric\"\\nlow=0\\nhigh=1\\n'"
    " for i in range(3 * 10**4))",
    "schema/lists": "'rows = [' + '[],' * 10**6 + ']'",
    "schema/string": "'rows = \"' + 'a' * 4 * 10**6",
    "schema/text like a key": "'a = \"\"\"\\n\"\\\\\\\\q\" = 1\\n\"\"\"\\nb = 1'",
    "knowledge/brackets": "'tiers = ' + '[' * 10**6",
    "knowledge/tiers": "'tiers = [' + '[],' * 10**5 + '[\"a\"], [\"a\"]]'",
    "knowledge/comment": "'# [\"\\\\q\"]\\nrequired_arrows = [[\"a\", \"a\"]]'",
    "knowledge/cycle": "'required_arrows = ['"
    " + ','.join(f'[\"a{i}\",\"a{(i + 1) % 50000}\"]' for i in range(50000)) + ']'",
}  # fmt: skip
HARMLESS = {"json/pair inside a name", "tetrad/name of spaces"}
CHILD = """
import resource, sys, traceback
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))  # a gigabyte, the interpreter and numpy included
import test_files
from dpcurate.errors import DpcurateError

for name in sys.argv[1:]:
    try:
        test_files.READ[name.split("/")[0]](eval(test_files.BOMBS[name]))
        print(name, "READ", sep=chr(9))
    except DpcurateError as error:
        print(name, "REFUSED", len(str(error)), str(error)[:300].replace(chr(10), " "), sep=chr(9))
    except BaseException as error:
        print(name, "BROKE", traceback.format_exc().replace(chr(10), " ")[-300:], sep=chr(9))
"""


@pytest.mark.slow(but=["csv", "knowledge"])
@pytest.mark.parametrize("family", sorted({name.split("/")[0] for name in BOMBS}))
def test_bombs_are_refused_in_a_gigabyte(family: str) -> None:
    """In a process that may hold no more than a gigabyte."""
    names = [name for name in BOMBS if name.startswith(f"{family}/")]
    here = Path(__file__).parent
    where = os.pathsep.join([str(here), str(here.parent), os.environ.get("PYTHONPATH", "")])
    settings = {**os.environ, "PYTHONPATH": where, "OPENBLAS_NUM_THREADS": "1"}
    run = subprocess.run(
        [sys.executable, "-c", CHILD, *names], capture_output=True, text=True, env=settings, check=False
    )
    told = [line.split("\t") for line in run.stdout.splitlines()]
    assert [line[0] for line in told] == names, run.stderr
    for name, outcome, *rest in told:
        assert outcome == ("READ" if name in HARMLESS else "REFUSED"), (name, rest)
        assert name in HARMLESS or int(rest[0]) < 1200, (name, rest)


# --- the file itself ---

LOADERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "graph": (".json", formats.load),
    "network": (".bif", load_network),
    "zipped network": (".bif.gz", load_network),
    "schema": (".toml", Schema.load),
    "knowledge": (".toml", Knowledge.load),
}


@pytest.mark.parametrize("kind", LOADERS)
def test_what_is_no_file_is_refused_by_name(kind: str, tmp_path: Path) -> None:
    suffix, loader = LOADERS[kind]
    folder, pipe, absent = (tmp_path / f"{word}{suffix}" for word in ("folder", "pipe", "absent"))
    folder.mkdir()
    os.mkfifo(pipe)
    device = tmp_path / f"device{suffix}"
    device.symlink_to("/dev/zero")
    for path in (folder, pipe, absent, device):
        with pytest.raises((FormatError, SchemaError), match=path.stem):
            loader(path)
    with pytest.raises((FormatError, SchemaError), match="null"):
        loader(tmp_path / f"a\0b{suffix}")


@pytest.mark.parametrize("kind", LOADERS)
def test_a_large_file_is_refused_unread(kind: str, tmp_path: Path) -> None:
    suffix, loader = LOADERS[kind]
    path = tmp_path / f"large{suffix}"
    with path.open("wb") as file:
        file.truncate(100_000_000)
    with pytest.raises((FormatError, SchemaError), match=f"large.*more than {LARGEST} bytes"):
        loader(path)


def test_a_zip_bomb_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.bif.gz"
    path.write_bytes(gzip.compress(b" " * (LARGEST + 10), 9))
    with pytest.raises(FormatError, match=f"bomb.*unzipped it has more than {LARGEST} bytes"):
        load_network(path)


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1"])
@pytest.mark.parametrize("kind", LOADERS)
def test_other_encodings_are_refused_with_the_line(kind: str, encoding: str, tmp_path: Path) -> None:
    suffix, loader = LOADERS[kind]
    path = tmp_path / f"coded{suffix}"
    path.write_bytes("# fine\n# é\n".encode(encoding))
    with pytest.raises((FormatError, SchemaError), match=r"coded.*line [12]: not UTF-8 text"):
        loader(path)


@pytest.mark.parametrize("kind", LOADERS)
def test_a_mistake_names_the_file_and_the_line(kind: str, tmp_path: Path) -> None:
    suffix, loader = LOADERS[kind]
    path = tmp_path / f"mine{suffix}"
    path.write_bytes(b"\xef\xbb\xbf\n]")
    with pytest.raises((FormatError, SchemaError), match=r"mine.*', line 2: ") as caught:
        loader(path)
    assert caught.value.line == 2  # type: ignore[attr-defined]


def test_a_path_is_a_path() -> None:
    with pytest.raises(FormatError, match="named by a path, got 3"):
        load(3, str)  # type: ignore[arg-type]


def test_toml_keeps_to_its_limits() -> None:
    with pytest.raises(FormatError, match=f"the limit is {LARGEST_TOML}"):
        toml("#" * (LARGEST_TOML + 1), FormatError)
    with pytest.raises(FormatError, match="more than 64 bits"):
        toml(f"a = [{{b = {2**63}}}]", FormatError)
    assert toml(f"a = {2**63 - 1}\nb = {-(2**63)}", FormatError) == {"a": 2**63 - 1, "b": -(2**63)}
    assert toml(f'a = "{"1." * 40}"\nx.y.z = 1', FormatError)["x"] == {"y": {"z": 1}}


def test_what_is_shown_is_short() -> None:
    assert shown("a" * 1000) == "'" + "a" * 79 + "..."
    assert shown(16**10_000) == "a value of type int that cannot be printed"
    assert shown([1, "b"]) == "[1, 'b']"

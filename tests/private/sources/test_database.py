"""A table in PostgreSQL: a real server, started and stopped here."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from glob import glob
from itertools import combinations
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pandas as pd
import pytest
from benchmarks.ports import free_port
from contract import (
    IDS,
    PLAIN,
    SCHEMA,
    SCHEMAS,
    VISITS,
    frame,
    persons_are_kept_apart,
    persons_are_refused,
    row_sums,
    rows_of_empty_cells_are_rows,
    same_integers,
    text_frame,
)

import dpcurate
from dpcurate import draft
from dpcurate.accounting import Budget
from dpcurate.cli import main
from dpcurate.errors import OwnerError, QueryError, RefusedError, SchemaError, SourceError
from dpcurate.private import sources
from dpcurate.private.curator import Curator
from dpcurate.private.row_sums import CountRows, GradientRows, MomentRows, NormRows
from dpcurate.private.sources import InMemory, PushedDown, check_rows, database, open_source, pushed_down
from dpcurate.queries import Counts, Gaussian, Gradient, GradientNorms, Moments, Release
from dpcurate.schema import GRID, Categorical, Numeric, Schema

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")


def _program(name):
    """A server's program; Debian does not put them on the path."""
    return shutil.which(name) or max(glob(f"/usr/lib/postgresql/*/bin/{name}"), default=None)


pytestmark = [
    pytest.mark.database,
    pytest.mark.skipif(not (_program("initdb") and _program("postgres")), reason="no PostgreSQL server here"),
]

PASSWORD = "p@s'S/w?rd#1%"


class Server:
    """A server of our own."""

    def __init__(self, folder, port):
        self.folder, self.port = folder, port
        self.admin = None

    def url(self, table, *, user="owner", password=PASSWORD, host="127.0.0.1", port=None, database="postgres"):
        return f"postgresql://{user}:{quote(password, safe='')}@{host}:{port or self.port}/{database}#{table}"

    def run(self, *statements):
        for statement in statements:
            self.admin.execute(statement)

    def load(self, name, table, **types):
        """A frame as a table of the types given."""
        columns = ", ".join(f'"{column}" {kind}' for column, kind in types.items())
        self.run(f"DROP TABLE IF EXISTS {name}", f"CREATE TABLE {name} ({columns})")
        with self.admin.cursor() as cursor, cursor.copy(f"COPY {name} FROM STDIN") as copy:
            for row in table[list(types)].astype(object).itertuples(index=False):
                copy.write_row([_stored(cell, kind) for cell, kind in zip(row, types.values(), strict=True)])


def _stored(cell, kind):
    """A missing text is NULL, and a missing number NaN."""
    missing = cell is None or (isinstance(cell, float) and np.isnan(cell))
    return None if missing and kind not in ("float8", "numeric") else cell


@pytest.fixture(scope="session")
def server():
    me = {}
    if os.geteuid() == 0:  # a server refuses to be root's
        names = [entry.pw_name for entry in pwd.getpwall()]
        other = pwd.getpwnam("postgres" if "postgres" in names else "nobody")
        me = {"user": other.pw_uid, "group": other.pw_gid, "extra_groups": []}
    with tempfile.TemporaryDirectory(prefix="dpcurate-pg-", dir="/tmp") as folder:
        port = free_port()
        (Path(folder) / "password").write_text(PASSWORD)
        if me:
            for path in (folder, f"{folder}/password"):
                os.chown(path, me["user"], me["group"])
        made = [_program("initdb"), "-D", f"{folder}/data", "-U", "owner", "-A", "scram-sha-256", "-E", "UTF8"]
        made += ["--locale=C", "--no-sync", f"--pwfile={folder}/password"]
        subprocess.run(made, check=True, capture_output=True, cwd=folder, **me)
        words = [_program("postgres"), "-D", f"{folder}/data", "-p", str(port), "-k", folder, "-c", "fsync=off"]
        with (
            open(f"{folder}/log", "wb") as log,
            subprocess.Popen(words, stdout=log, stderr=log, cwd=folder, **me) as running,
        ):
            found = Server(folder, port)
            try:
                found.admin = _connect(found, running)
                yield found
                found.admin.close()
            finally:
                running.send_signal(2)  # a fast shutdown
                running.wait()


def _connect(server, running):
    while running.poll() is None:
        try:
            return psycopg.connect(server.url("").removesuffix("#"), autocommit=True)
        except psycopg.OperationalError:
            time.sleep(0.1)  # between tries, for as long as the server lives
    raise AssertionError((Path(server.folder) / "log").read_text())


TYPED = {"id": "int", "colour": "text", "grade": "numeric", "odd": "boolean", "age": "float8", "dose": "float8"}
ODD_TYPES = TYPED | {"id": "kept", "colour": "hue", "grade": "numeric(4,1)", "odd": "truth", "dose": "numeric"}
TEXTS = dict.fromkeys(TYPED, "text")


@pytest.fixture(scope="session")
def forms(server):
    """The contract's table in every form that PostgreSQL has for it."""
    table, texts = frame(), text_frame(frame()).astype(object)
    texts["grade"] = texts["grade"].map(lambda g: g or None)
    texts["age"] = texts["age"].map(lambda x: None if np.isnan(x) else repr(x))
    server.run(
        "CREATE DOMAIN inner_kept AS int",
        "CREATE DOMAIN kept AS inner_kept",
        "CREATE DOMAIN truth AS boolean",
        """CREATE TYPE hue AS ENUM ('red', 'green', 'blu''e', 'mauve')""",
        'CREATE SCHEMA "My.Schema"',
    )
    server.load("typed", table, **TYPED)
    server.load("other", table, **ODD_TYPES)
    server.load('"My.Schema"."Weird ""Name"""', texts, **TEXTS)
    columns = ", ".join(f"{c} {k}" for c, k in TYPED.items())
    server.run(
        "CREATE VIEW seen AS SELECT * FROM typed WHERE TRUE",
        f"CREATE TABLE parted ({columns}) PARTITION BY LIST (odd)",
        "CREATE TABLE parted_yes PARTITION OF parted FOR VALUES IN (true)",
        "CREATE TABLE parted_no PARTITION OF parted FOR VALUES IN (false)",
        "INSERT INTO parted SELECT * FROM typed",
    )
    names = {
        "typed": "typed",
        "with schema": "public.typed",
        "other types": "other",
        "text": '"My.Schema".Weird "Name"',
        "quoted": '"My.Schema"."Weird ""Name"""',
        "escaped": quote('"My.Schema".Weird "Name"'),
        "view": "seen",
        "parts": "parted",
    }
    return {form: server.url(name) for form, name in names.items()}


@pytest.fixture
def large(monkeypatch):
    """Every domain is too large to be held."""
    monkeypatch.setattr(sources, "SMALL_DOMAIN", 0)
    monkeypatch.setattr(pushed_down, "SMALL_DOMAIN", 0)


@pytest.fixture
def sent(monkeypatch):
    """Every statement that is sent, with the number of rows that come back."""
    found = []
    execute = psycopg.Cursor.execute

    def spy(cursor, query, *args, **kwargs):
        done = execute(cursor, query, *args, **kwargs)
        found.append((str(query), cursor.rowcount))
        return done

    monkeypatch.setattr(psycopg.Cursor, "execute", spy)
    return found


# --- the same integers --------------------------------------------------------------------------------


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_postgresql_returns_the_integers_of_the_frame(schema, forms):
    same_integers(forms, schema)


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_large_domains_stay_there_and_agree(schema, forms, large):
    assert isinstance(open_source(forms["typed"], schema), PushedDown)
    same_integers(forms, schema)


def test_a_small_domain_is_held_after_one_statement(forms, sent):
    source = open_source(forms["typed"], PLAIN)
    assert isinstance(source, InMemory)
    assert sum("GROUP BY" in query for query, _ in sent) == source.made == 1
    before = len(sent)
    source.totals(row_sums(PLAIN))
    assert len(sent) == before


def test_many_tables_are_one_statement_and_no_row_is_copied_out(forms, large, sent, monkeypatch):
    monkeypatch.setattr(pushed_down, "COVER_CELLS", 12)
    asked = [CountRows(c, SCHEMA.sizes(c)) for n in (1, 2, 3) for c in combinations(SCHEMA.names, n)]
    source = open_source(forms["text"], SCHEMA)
    assert source.passes(asked) == 1
    sent.clear()
    found = source.totals(asked)
    ((query, rows),) = sent
    assert query.count("AS BIGINT) * ") > 3  # several kinds of key
    assert rows == 1
    for row_sum, right, got in zip(asked, open_source(frame(), SCHEMA).totals(asked), found, strict=True):
        assert np.array_equal(right, got), row_sum
    source.totals(asked)
    assert len(sent) == 1
    moments = MomentRows(SCHEMA.names, tuple(c.steps for c in SCHEMA.columns), 0.5)
    source.totals([moments])
    assert [n for _, n in sent[1:]] == [1]


ODD = r"""1 1. .5 . - e5 1e 1E0 01 +1 -1 --1 1,5 $1 1_000 1d 1f 0x1 t TRUE False NaN -nan inf -inf +Infinity -INFINITY
1e999 -1e999 1e-999 -1e-400 1e-310 5e-324 2.4e-324 2.5e-324 4.9406564584124654e-324 1e308 -1.8e308 1e-308
1.7976931348623157e308 1.7976931348623158e308 1.7976931348623159e308 a\b x'y x"y %s {} ? $$ \'; --""".split()  # noqa: SIM905
ODD += [None, "", " ", " 1 ", "\t1", "1\n", "1 1", "\u00a01", "1\u3000", "\uff11", "\u0661", "\u0130NF", "\u0131nf"]
ODD += ["9" * 200, "9" * 201, "9" * 400, "9" * 401, "9" * 200 + "." + "9" * 200 + "e999", "9" * 200 + "e109"]
ODD += ["0." + "0" * 199 + "1", "." + "0" * 199 + "1e-200", "\\'; DROP TABLE odd; --", "caf\u00e9", "CAF\u00c9"]
"""Texts that somebody may take for a number, or for something else."""
ROWS = Categorical("row", tuple(range(len(ODD))))
READ = (
    Numeric("x", -10, 10, bins=5, missing=7, outside="clamp"),
    Numeric("x", -1e300, 1e300, bins=4, edges=(-1.0, 5e-324, 1e299), missing="drop", outside="drop"),
    Numeric("x", 0, 1e-300, bins=2, missing=0, outside="clamp"),
    Numeric("x", -1.7e307, 1.7e307, bins=2, missing=0, outside="clamp"),
    Categorical(
        "x", ("1", "a\\b", "x'y", 'x"y', "%s", "\\'; DROP TABLE odd; --", "caf\u00e9", ""), missing="1", outside="drop"
    ),
    Categorical("x", ("true", "false", " ", "t"), missing="drop", outside="t"),
    Categorical("x", ("1e308", "5e-324", "0", "0.5", "none", "other"), missing="none", outside="other"),
)
"""Ways to read them."""


def same_as_in_memory(url, table, column):
    """Every row by itself, and sums of what the rows become."""
    schema = Schema((ROWS, column))
    step = (ROWS.steps, column.steps)
    weights = ((0.0, 0.5), (-1.5, 0.0))
    asked = [
        CountRows(schema.names, schema.sizes(schema.names)),
        MomentRows(schema.names, step, None),
        MomentRows(schema.names, step, 1e-9),
        GradientRows(schema.names, step, weights, 0.1),
        NormRows(schema.names, step, weights, (1e-300, 0.5)),
    ]
    right, got = open_source(table, schema).totals(asked), open_source(url, schema).totals(asked)
    for row_sum, one, other in zip(asked, right, got, strict=True):
        assert np.array_equal(one, other), (row_sum, [ODD[i] for i in np.flatnonzero((one != other).any(axis=-1))])


@pytest.mark.parametrize("column", READ, ids=range(len(READ)))
def test_odd_texts_are_read_as_in_memory(column, server, large):
    table = pd.DataFrame({"row": range(len(ODD)), "x": np.array(ODD, dtype=object)}).astype({"x": object})
    server.load("odd", table, row="int", x="text")
    same_as_in_memory(server.url("odd"), table, column)


NUMBERS = """NaN Infinity -Infinity 1e400 -1e400 1e-400 -1e-330 2.4e-324 2.5e-324 5e-324 1e-310 0.1 -1e-5 0 1 1.00
1.7976931348623157e308 1.7976931348623158e308 1.7976931348623159e308 9007199254740993""".split()  # noqa: SIM905
NUMBERS += ["9" * 300, "3." + "3" * 400]


@pytest.mark.parametrize("column", READ, ids=range(len(READ)))
def test_odd_numbers_are_read_as_in_memory(column, server, large):
    values = [float(x) for x in NUMBERS]
    table = pd.DataFrame({"row": range(len(values)), "x": values})
    server.load("odd_decimals", pd.DataFrame({"row": range(len(values)), "x": NUMBERS}), row="int", x="numeric")
    server.load("odd_doubles", table, row="int", x="float8")
    for name in ("odd_decimals", "odd_doubles"):
        same_as_in_memory(server.url(name), table, column)


def test_a_row_cannot_make_a_gradient_fail(server, large):
    """PostgreSQL raises where a product is too small or a quotient too large for a double."""
    names = ("a", "b", "c")
    schema = Schema(tuple(Numeric(n, -1, 1) for n in names))
    rows = [[0.0, 0.0, 0.0], [0.0, 0.0, 1.0], [1 / GRID, 0.0, 0.0], [1.0, -1.0, 1.0]]
    table = pd.DataFrame(rows, columns=list(names))
    server.load("still", table, **dict.fromkeys(names, "float8"))
    settings = {"budget": Budget.unlimited(), "insecure_seed": 1}
    here, there = Curator(table, schema, **settings), Curator(server.url("still"), schema, **settings)
    noise = Gaussian(sigma=1)
    for tiny in (1e-80, 1e-99, 1e-101, 1e-200, 5e-324):
        weights = ((0.0, tiny, -tiny), (tiny, 0.0, tiny), (1.0, tiny, 0.0))
        for clip in (1e-9, 1.0, 1e9):
            for asked in (
                Gradient(names, weights, clip),
                GradientNorms(names, weights, (1e-300, 1.0)),
                Moments(names, clip),
            ):
                answers = [session.ask(Release(asked, noise)).value for session in (here, there)]
                assert np.array_equal(*answers), asked


def test_other_types_are_texts(server, large):
    server.run(
        "DROP TABLE IF EXISTS types",
        "CREATE TABLE types (b bytea, j jsonb, a int[], d date, t timestamptz, c char(5), m money, n real, s smallint)",
        "INSERT INTO types VALUES ('\\x01', '{\"k\": 1}', '{1,2}', "
        "'2020-02-01', '2020-02-01 12:00:00+02', 'ab', 1, 0.5, 3)",
    )
    texts = {"b": "\\x01", "j": '{"k": 1}', "a": "{1,2}", "d": "2020-02-01", "t": "2020-02-01 10:00:00+00", "c": "ab"}
    schema = Schema(tuple(Categorical(n, (level, "other")) for n, level in (texts | {"n": 0.5, "s": 3}).items()))
    server.run("ALTER ROLE owner SET datestyle = 'SQL, DMY'", "ALTER ROLE owner SET timezone = 'Asia/Tokyo'")
    server.run("ALTER ROLE owner SET standard_conforming_strings = off", "ALTER ROLE owner SET bytea_output = 'escape'")
    try:
        table = open_source(server.url("types"), schema).totals([CountRows(schema.names, (2,) * 8)])[0]
    finally:
        server.run("ALTER ROLE owner RESET ALL")
    assert table[(0,) * 8] == 1


@pytest.mark.parametrize(("kind", "stored"), [("whole", "bigint"), ("text", "text"), ("text", "varchar(9)")])
def test_persons_in_a_database(kind, stored, server):
    def form(columns):
        server.load(
            "people", pd.DataFrame(columns | {"id": pd.Series(columns["id"], dtype=object)}), id=stored, a="int"
        )
        return server.url("people")

    persons_are_kept_apart(form, kind, leave_out=[IDS[kind][0]])


def test_types_that_name_persons_in_a_database(server):
    server.run("CREATE TYPE initials AS ENUM ('a', 'b')")
    ids = {
        "uuid": "gen_random_uuid()",
        "initials": "'a'",
        "char(3)": "'a'",
        "name": "'a'",
        "smallint": "7",
        "oid": None,
    }
    ids |= {"float8": "7", "real": "7", "numeric": "7", "numeric(30)": "7", "numeric(9,2)": "7", "boolean": "true"}
    for stored, value in ids.items():
        server.run("DROP TABLE IF EXISTS people", f"CREATE TABLE people (id {stored}, a int)")
        server.run(f"INSERT INTO people VALUES ({value or '7'}, 0), (NULL, 1)")
        if value and stored in ("uuid", "initials", "char(3)", "name", "smallint"):
            assert open_source(server.url("people"), VISITS).totals([CountRows((), ())]) == [1], stored
        else:
            persons_are_refused(server.url("people"))
    for stored in ("date", "timestamptz", "bytea", "json", "float8[]", "text[]", "money", "interval", "int4range"):
        server.run("DROP TABLE IF EXISTS people", f"CREATE TABLE people (id {stored}, a int)")
        persons_are_refused(server.url("people"))


def test_rows_of_empty_cells_are_rows(server):
    types = {"colour": "text", "age": "float8"}

    def form(table):
        server.load("gaps", table, **{name: types[name] for name in table})
        return server.url("gaps")

    rows_of_empty_cells_are_rows(form)


# --- one state of the table, and a connection that may be lost ------------------------------------------


def test_all_passes_see_one_state_of_the_table_and_cannot_change_it(server, large):
    rows = CountRows((), ())
    server.load("moving", frame(), **TYPED)
    source = open_source(server.url("moving"), SCHEMA)
    server.run("DELETE FROM moving WHERE odd")
    row_sum = CountRows(("odd",), (2,))
    assert source.totals([row_sum])[0].all()
    assert not open_source(server.url("moving"), SCHEMA).totals([row_sum])[0].all()
    engine = database.open_url(server.url("moving"))
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        engine.fetch("DELETE FROM moving")
    with pytest.raises(psycopg.errors.SyntaxError):
        database.open_url(server.url("moving")).fetch("SELECT 1; SELECT 2")
    assert open_source(server.url("moving"), SCHEMA).totals([rows])[0] > 0


def test_a_lost_connection_is_found_before_anything_is_charged(server, forms, large, monkeypatch):
    curator = Curator(forms["typed"], SCHEMA, budget=Budget(epsilon=1, delta=1e-6))
    lose_connections(server)
    noise = Gaussian(rho=1e-4)
    monkeypatch.setattr(database, "FRESH", float("inf"))
    with pytest.raises(SourceError, match="what was charged stays charged") as told:
        curator.ask(Release(Moments(("age",)), noise))  # it is taken to be alive
    assert told.value.__context__ is None
    monkeypatch.setattr(database, "FRESH", 0.0)
    spent = curator.ledger.spent
    with pytest.raises(RefusedError, match="Open the table again"):
        curator.ask(Release(Moments(("age",)), noise))
    assert curator.ledger.spent == spent
    again = Curator(forms["typed"], SCHEMA, budget=Budget(epsilon=1, delta=1e-6))
    for statistic in (Counts(("odd",)), Moments(("age",))):
        again.ask(Release(statistic, noise))


def fails_once(engine, monkeypatch):
    """The next query ends in an error of the server's."""

    def fetch(query):
        monkeypatch.undo()
        return engine.fetch("SELECT 1 / 0")

    monkeypatch.setattr(engine, "fetch", fetch)


def test_after_a_failed_query_the_session_goes_on_and_pays_once(server, large, monkeypatch):
    server.load("failing", frame(), **TYPED)
    curator = Curator(server.url("failing"), SCHEMA, budget=Budget(rho=1))
    server.run("DELETE FROM failing")  # which the curator must not come to see
    asked, other = (Release(Moments((name,)), Gaussian(rho=0.125)) for name in ("age", "dose"))
    fails_once(curator._source._encoded.engine, monkeypatch)
    with pytest.raises(SourceError, match="not charged twice"):
        curator.ask(asked)
    assert curator.ledger.spent == pytest.approx(0.125)
    assert curator.ask(other).value[0, 0] > 100
    assert curator.ledger.spent == pytest.approx(0.25)
    assert curator.ask(asked).value[0, 0] > 100  # it was paid for
    assert curator.ledger.spent == pytest.approx(0.25)
    curator.ask(asked)
    assert curator.ledger.spent == pytest.approx(0.375)


def test_after_an_error_a_connection_that_is_lost_or_done_is_refused_at_once(server, forms, large, monkeypatch):
    for ended in (lose_connections, None):
        curator = Curator(forms["typed"], SCHEMA, budget=Budget(rho=1))
        engine = curator._source._encoded.engine
        fails_once(engine, monkeypatch)
        with pytest.raises(SourceError):
            curator.ask(Release(Moments(("age",)), Gaussian(rho=0.125)))
        if ended:
            ended(server)
        else:
            engine._connection.rollback()  # another transaction would see another state of the table
        with pytest.raises(RefusedError, match="Open the table again"):
            curator.ask(Release(Moments(("dose",)), Gaussian(rho=0.125)))
        assert curator.ledger.spent == pytest.approx(0.125)


def lose_connections(server):
    mine = "FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND usename = 'owner'"
    while server.admin.execute(f"SELECT count(pg_terminate_backend(pid)) {mine}").fetchone()[0]:
        pass


@pytest.fixture
def connections(monkeypatch):
    """Every connection that is made."""
    made, connect = [], psycopg.connect

    def spy(*args, **settings):
        made.append(connect(*args, **settings))
        return made[-1]

    monkeypatch.setattr(psycopg, "connect", spy)
    return made


def test_connections_are_let_go(server, forms, connections):
    open_source(forms["typed"], PLAIN)
    with pytest.raises(SchemaError):
        open_source(forms["typed"], Schema((Categorical("nope", (0, 1)),)))
    assert [c.closed for c in connections] == [True, True]


def test_a_refused_table_can_be_mended_while_the_error_is_kept(server, connections):
    server.run("DROP TABLE IF EXISTS mended", "CREATE TABLE mended (id float8, a int)")
    with pytest.raises(OwnerError, match="names persons") as kept:
        open_source(server.url("mended"), VISITS)
    with pytest.raises(OwnerError, match="names persons") as also_kept:
        list(check_rows(server.url("mended"), VISITS))
    assert [c.closed for c in connections] == [True, True]
    server.run("ALTER TABLE mended ALTER id TYPE bigint")
    assert open_source(server.url("mended"), VISITS).totals([CountRows((), ())]) == [0]
    assert kept.value.__traceback__
    assert also_kept.value.__traceback__


# --- what an owner is told ------------------------------------------------------------------------------


def test_what_cannot_be_opened_is_told_without_the_password(server):
    schema = Schema((Categorical("a", (0, 1)),))
    good = server.url("typed")
    server.run(
        "DROP ROLE IF EXISTS guest", f"CREATE ROLE guest LOGIN PASSWORD '{PASSWORD.replace(chr(39), chr(39) * 2)}'"
    )
    server.load("locked", frame(), **TYPED)
    wrong = {
        server.url("typed", password="letMe1n"): "password authentication failed",
        server.url("typed", host="nowhere.invalid"): "nowhere.invalid",
        server.url("typed", port=1): "Connection refused",
        server.url("typed", database="nope"): 'database "nope" does not exist',
        server.url("nope"): 'relation "nope" does not exist',
        server.url("nope.typed"): 'relation "nope.typed" does not exist',
        server.url("Typed"): 'relation "Typed" does not exist',
        server.url("locked", user="guest"): "permission denied",
        server.url(""): "name the table after a hash",
        good.partition("#")[0]: "name the table after a hash",
        server.url("a.b.c"): "not the name of a table",
        server.url('"a'): "not the name of a table",
        f"postgresql://owner:letMe1n@x@127.0.0.1:{server.port}/postgres#typed": "%40",
        f"postgresql://owner:letMe1n/x@127.0.0.1:{server.port}/postgres#typed": "%40",
        f"postgresql://owner:letMe1n#x@127.0.0.1:{server.port}/postgres#typed": "%40",
        f"postgresql://owner:letMe1n#x@127.0.0.1:{server.port}/postgres": "%40",
        f"postgresql://owner:letMe1n%x@127.0.0.1:{server.port}/postgres#typed": "%25",
        f"postgresql://owner@127.0.0.1:{server.port}/postgres?letMe1n=1#typed": "cannot be understood",
        "mysql://owner:letMe1n@host/db#typed": "known is postgresql://user@host/database#table",
        "sqlite:///file.db#typed": "known is postgresql",
        "s3://bucket/file.parquet": "known is postgresql",
    }
    for url, words in wrong.items():
        with pytest.raises(OwnerError) as told:
            open_source(url, schema)
        assert words in str(told.value), told.value
        seen = f"{told.value!r} {told.value.__cause__} {told.value.__context__}"
        assert PASSWORD not in seen
        assert quote(PASSWORD, safe="") not in seen
        assert "letMe1n" not in seen
        assert "\n" not in str(told.value)
    with pytest.raises(SchemaError, match="no column 'a'"):
        open_source(good, schema)


ODD_NAMES = (
    *(
        "a;b",
        "a; drop table typed --",
        'a"b',
        '"',
        "a'b",
        "a b",
        "a ",
        "A",
        "a",
        "caf\u00e9",
        "cafe\u0301",
        "\u202e",
        "a\nb",
    ),
    *(
        "%s",
        "%",
        "%(x)s",
        "{}",
        "$1",
        "--",
        "/*",
        "\\",
        "select",
        "*",
        "(select 1)",
        "pg_sleep(9)",
        "x" * 63,
        "c0",
        "person",
    ),
)


@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names_are_names_and_nothing_else(name, server):
    """Each table holds itself and its neighbours by name: only the one that was asked for may answer."""
    quoted = '"' + name.replace('"', '""') + '"'
    columns = f'{quoted} int, "other" int'
    server.run("DROP SCHEMA IF EXISTS odd_names CASCADE", "CREATE SCHEMA odd_names")
    server.run(f"CREATE TABLE odd_names.{quoted} ({columns})", f"INSERT INTO odd_names.{quoted} VALUES (0, 1), (1, 1)")
    schema = Schema((Categorical(name, (0, 1)), Categorical("other", (0, 1))))
    found = open_source(server.url(quote(f"odd_names.{quoted}")), schema)
    assert found.totals([CountRows(schema.names, (2, 2))])[0].tolist() == [[0, 1], [0, 1]]
    changed = [name.swapcase(), f"{name} ", f"{name}\n", name + "x" * (63 - len(name.encode()))]
    for other in {c for c in changed if c != name and len(c.encode()) <= 63}:
        with pytest.raises(OwnerError, match=r"does not exist|could not be opened"):
            open_source(server.url(quote('odd_names."' + other.replace('"', '""') + '"')), schema)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("x" * 64, "at most 63 bytes"),
        ("\u00e9" * 32, "at most 63 bytes"),
        ("public." + "x" * 64, "at most 63 bytes"),
        ('"' * 10**6, "not the name of a table"),
        ("a.b" * 10**5, "not the name of a table"),
        ("typed%00", "NUL"),
        ("%00", "NUL"),
        (".", "not the name of a table"),
        ('""', "not the name of a table"),
    ],
    ids=range(9),
)
def test_what_is_no_name_is_refused_in_a_sentence(name, words, server):
    server.run(f"CREATE TABLE IF NOT EXISTS {'x' * 63} (a int)")  # which 64 letters would be cut to
    with pytest.raises(OwnerError, match=words) as told:
        open_source(server.url(name), Schema((Categorical("a", (0, 1)),)))
    assert len(str(told.value)) < 300


@pytest.mark.parametrize("url", ["postgresql://\0@h/d#t", "postgresql://%00@h/d#t", f"postgresql://{'h' * 10**6}/d#t"])
def test_no_other_server_is_asked_than_the_one_that_is_named(url):
    with pytest.raises(OwnerError, match=r"NUL|could not be opened"):
        open_source(url, PLAIN)


def test_levels_that_look_like_statements(server):
    levels = ("x'y", "a\\b", "a\nb", "'; drop table typed --", "%s", "{}", "$1", "$$", "E'\\x'", "z" * 10**6)
    server.load("injected", pd.DataFrame({"a": [x for x in levels for _ in range(2)]}), a="text")
    found = open_source(server.url("injected"), Schema((Categorical("a", levels),)))
    assert found.totals([CountRows(("a",), (len(levels),))])[0].tolist() == [2] * len(levels)


def test_absurd_tables(server):
    deep = "SELECT 0 AS a"
    for i in range(200):
        deep = f"SELECT * FROM ({deep}) AS x{i}"
    server.run(f"CREATE OR REPLACE VIEW deep AS {deep}", "DROP TABLE IF EXISTS bare", "CREATE TABLE bare ()")
    schema = Schema((Categorical("a", (0, 1)),))
    assert open_source(server.url("deep"), schema).totals([CountRows((), ())]) == [1]
    with pytest.raises(OwnerError, match="no columns"):
        open_source(server.url("bare"), schema)
    wide = [f"c{i}" for i in range(1200)]
    server.run("DROP TABLE IF EXISTS very_wide", f"CREATE TABLE very_wide ({', '.join(f'{n} int' for n in wide)})")
    with pytest.raises(OwnerError, match="at most 1664 entries"):
        open_source(server.url("very_wide"), Schema(tuple(Categorical(n, (0, 1)) for n in wide)))
    server.run("DROP TABLE IF EXISTS absurd", "CREATE TABLE absurd (a numeric, b text)")
    server.run("INSERT INTO absurd VALUES ('1e100000', repeat('9', 1000000)), (1e-16000, '1e999999999')")
    numbers = Schema((Numeric("a", 0, 1, missing=0, outside="clamp"), Numeric("b", 0, 1, missing=0, outside="clamp")))
    assert open_source(server.url("absurd"), numbers).totals([CountRows((), ())]) == [2]


def test_an_old_server_or_no_driver_is_told(server, forms, monkeypatch):
    monkeypatch.setattr(database, "OLDEST", 1000)
    with pytest.raises(OwnerError, match="older than PostgreSQL 1000"):
        open_source(forms["typed"], PLAIN)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(OwnerError, match=r"pip install 'dpcurate\[postgres\]'"):
        open_source(forms["typed"], PLAIN)


def test_a_view_that_fails_is_the_owners_affair(server, forms, large):
    server.run(
        "CREATE OR REPLACE VIEW broken AS SELECT 1 / (CASE WHEN dose > 1 THEN 0 ELSE 1 END) AS a FROM typed",
    )
    with pytest.raises(OwnerError, match="could not be read: division by zero"):
        open_source(server.url("broken"), Schema((Categorical("a", (0, 1)),)))


def test_the_check_and_the_draft_look_there(forms, server):
    assert list(check_rows(forms["other types"], SCHEMA)) == list(check_rows(frame(), SCHEMA))
    drafted, right = Schema.loads(draft(forms["typed"])), Schema.loads(draft(frame()))
    assert drafted.names == right.names
    assert drafted["colour"] == right["colour"]
    assert drafted["odd"] == right["odd"]
    assert drafted["dose"] == right["dose"]
    assert drafted["grade"].levels == ("1", "2", "3", "4")
    server.run("DROP TABLE IF EXISTS bare", "CREATE TABLE bare ()")
    with pytest.raises(OwnerError):
        draft(server.url("bare"))


# --- from end to end ------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def asia(server):
    """Rows of Asia in a frame and in the database."""
    network = dpcurate.networks.load("asia")
    table = pd.DataFrame(network.sample(20_000, seed=3))
    server.load("asia", table, **dict.fromkeys(table.columns, "text"))
    return table, server.url("asia"), network.schema


def test_discovery_in_a_database_is_that_of_the_frame(asia, large):
    table, url, schema = asia
    settings = {"epsilon": 2.0, "insecure_seed": 5}
    here, there = dpcurate.discover(table, schema, **settings), dpcurate.discover(url, schema, **settings)
    assert here.edges == there.edges
    assert here.edges
    assert replace(here, run=None).to_dict() == replace(there, run=None).to_dict()


def test_the_command_line_takes_a_url(asia, tmp_path, capsys):
    table, url, schema = asia
    (tmp_path / "s.toml").write_text(schema.dumps())
    words = ["--schema", str(tmp_path / "s.toml"), "--epsilon", "2", "--insecure-seed", "5"]
    table.to_parquet(tmp_path / "asia.parquet")
    assert main(["discover", url, *words, "-o", str(tmp_path / "out")]) == 0
    there = capsys.readouterr()
    assert main(["discover", str(tmp_path / "asia.parquet"), *words]) == 0
    assert capsys.readouterr().out == there.out
    assert json.loads((tmp_path / "out" / "report.json").read_text())["edges"]
    ledger = tmp_path / "asia.ledger"
    assert main(["discover", url, *words[:4], "--ledger", str(ledger)]) == 0
    assert main(["schema", "check", url, *words[:2], "--yes"]) == 0
    assert main(["schema", "draft", url, "-o", str(tmp_path / "draft.toml")]) == 0
    assert main(["discover", url.replace("#asia", "#asien"), *words]) == 1
    shown = capsys.readouterr()
    assert "columns of postgresql://... (28 pairs)" in there.err
    written = [p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()]
    for text in (*(t.encode() for t in (there.err, there.out, shown.err, shown.out)), *written):
        assert PASSWORD.encode() not in text
        assert quote(PASSWORD, safe="").encode() not in text
    assert Schema.load(tmp_path / "draft.toml").names == schema.names


def test_a_request_that_is_too_long_is_refused(server, large):
    names = [f"x{i}" for i in range(65)]
    server.load("wide", pd.DataFrame([[0.0] * 65], columns=names), **dict.fromkeys(names, "float8"))
    source = open_source(server.url("wide"), Schema(tuple(Numeric(n, -1, 1) for n in names)))
    with pytest.raises(QueryError, match="at most 64 columns"):
        source.check(MomentRows(tuple(names), (GRID,) * 65, 0.5))
    source.check(MomentRows(tuple(names), (GRID,) * 65, None))

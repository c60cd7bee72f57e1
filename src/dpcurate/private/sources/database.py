"""A table in PostgreSQL, by its URL: postgresql://user@host/database#schema.table.

The rows stay there; every pass is one GROUP BY. All passes of an open table are made in one read-only
transaction and see the table as it was when it was opened. The server keeps old versions of changed
rows for as long as that lasts, so open a curator when it is needed and let go of it afterwards.
"""

from __future__ import annotations

import re
import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from dpcurate.errors import OwnerError, RefusedError
from dpcurate.private.row_sums import RowSum
from dpcurate.private.sources.encode import Dialect, Kind
from dpcurate.private.sources.engine import Engine, complaint, first_line

SCHEMES = ("postgresql", "postgres")
EXAMPLE = "postgresql://user@host/database#table"
OLDEST = 14
"""The first version whose decimals can be infinite."""
PATIENCE = 20
"""Seconds to wait for a server, if the URL says nothing (connect_timeout)."""
LONGEST_NAME = 63
"""Bytes in the name of a table, in any server that was not built otherwise."""
FRESH = 1.0
"""Seconds for which a connection that answered is taken to be alive."""
SETTINGS = (
    "SET LOCAL standard_conforming_strings = on; SET LOCAL extra_float_digits = 1; SET LOCAL bytea_output = 'hex'; "
    "SET LOCAL datestyle = 'ISO, YMD'; SET LOCAL intervalstyle = 'postgres'; SET LOCAL timezone = 'UTC'; "
    "SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0"
)
"""What decides how a value reads as text: the same whoever connects."""
LARGE, TINY = "1.797693134862315807937289714053034150799e308", "2.470328229206232720882843964341106861826e-324"
"""From the first on a number is infinite as a double, up to the second it is 0: PostgreSQL would raise."""

# Numbers of types in PostgreSQL's catalogue. A domain is told as the type it is made of; all others are read as text.
_TYPES: Mapping[int, tuple[str, Kind]] = {
    16: ("boolean", "boolean"),
    20: ("bigint", "whole"),
    21: ("smallint", "whole"),
    23: ("integer", "whole"),
    700: ("real", "number"),
    701: ("double precision", "number"),
    1700: ("numeric", "number"),
}
_KINDS = dict(_TYPES.values())
OTHER = "other"
"""Before the names of types that are read as text but are none, such as dates."""
TYPE_NAME = (
    "CASE WHEN typcategory IN ('S', 'E') OR oid = 'uuid'::regtype THEN 'text' "
    f"ELSE '{OTHER} (' || format_type(oid, NULL) || ')' END"
)


@dataclass(frozen=True, slots=True)
class PostgresDialect(Dialect):
    """PostgreSQL's words. It raises where others return infinity, 0 or NULL, so nothing may get that far."""

    double: str = "DOUBLE PRECISION"
    string: str = "TEXT"
    small: str = "INTEGER"
    fence: str = " OFFSET '0'"  # without the ticks it would also keep several processes from sharing the work

    def identity(self, name: str) -> str:
        """What names a person."""
        return self.quote(name)

    def matches(self, cell: str, pattern: str) -> str:
        """Whether a text matches a regular expression."""
        return f"({cell} ~ '{pattern}')"

    def parsed(self, cell: str) -> str:
        """A text that matches DIGITS as a double; a short one without an exponent is always in range."""
        exact = self.bounded(f"CAST({cell} AS NUMERIC)")
        short = f"WHEN {cell} ~ '^[^eE]{{1,200}}$' THEN CAST({cell} AS {self.double})"
        return f"CASE {short} ELSE CAST({exact} AS {self.double}) END"

    def bounded(self, decimal: str) -> str:
        """A decimal that can be cast to a double; NULL if it is no number."""
        return (
            f"CASE WHEN abs({decimal}) BETWEEN 1e-300 AND 1e300 THEN {decimal} WHEN {decimal} = 'NaN' THEN NULL "
            f"WHEN abs({decimal}) >= {LARGE} THEN sign({decimal}) * CAST('Infinity' AS NUMERIC) "
            f"WHEN abs({decimal}) <= {TINY} THEN 0 ELSE {decimal} END"
        )

    def as_double(self, cell: str, kind: Kind) -> str:
        """A stored number or truth value as a double."""
        return f"CAST({f'CAST({cell} AS INTEGER)' if kind == 'boolean' else cell} AS {self.double})"

    def is_nan(self, value: str) -> str:
        """Whether a double is no number."""
        return f"({value} = 'NaN')"

    def quotient(self, part: str, whole: int) -> str:
        """Whole numbers divide to whole numbers here."""
        return f"({part}) / {whole}"

    def looked_up(self, values: Sequence[int], place: str) -> str:
        """An array is written in braces."""
        return f"(CAST('{{{', '.join(map(str, values))}}}' AS INTEGER[]))[{place} + 1]"

    def ratio(self, part: str, whole: float) -> str:
        """A double over a public number; a billionth and less of it is 0, which no grid can tell from it."""
        return f"CASE WHEN abs({part}) < {self.number(whole * 1e-9)} THEN 0 ELSE ({part}) / {self.number(whole)} END"

    def plain(self, name: str, stored: str) -> str:
        """A column as a plain type: decimals that fit a double, and texts that compare byte by byte."""
        cell = self.quote(name)
        if stored == "text" or stored.startswith(OTHER):
            return f'CAST({cell} AS TEXT) COLLATE "C" AS {cell}'
        return f"{self.bounded(cell)} AS {cell}" if stored.startswith("numeric") else cell


class Postgres(Engine):
    """A connection to PostgreSQL and a table there."""

    dialect: PostgresDialect = PostgresDialect()

    def __init__(self, connection: Any, table: str) -> None:
        self._connection = connection
        self._heard = 0.0
        weakref.finalize(self, connection.close)
        self._stored = self._described(table)
        parts = ", ".join(self.dialect.plain(*column) for column in self._stored.items())
        self.relation: str = f"(SELECT {parts} FROM {table}) AS given"

    def _described(self, table: str) -> dict[str, str]:
        with self._connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {table} LIMIT 0")
            columns = cursor.description or []
            types = sorted({c.type_code for c in columns})
            cursor.execute(f"SELECT oid, {TYPE_NAME} FROM pg_type WHERE oid = ANY(%s)", [types])
            names = dict(cursor.fetchall())
        return {c.name: _type_name(c, names[c.type_code]) for c in columns}

    def stored(self) -> dict[str, str]:
        """Every column and its type, or the type of its domain."""
        return self._stored

    def kind(self, stored: str) -> Kind:
        """What an SQL type is to us."""
        return _KINDS.get(stored.partition("(")[0], "text")

    def close(self) -> None:
        """End the transaction, which would keep others from changing the table."""
        self._connection.close()

    def fetch(self, query: str) -> dict[str, NDArray[Any]]:
        """A result, by column."""
        with self._connection.cursor(binary=True) as cursor:  # which also takes one statement at a time only
            cursor.execute(query)
            names, rows = [c.name for c in cursor.description], cursor.fetchall()
        self._heard = time.monotonic()
        return {name: _column([row[i] for row in rows]) for i, name in enumerate(names)}

    def grouped(self, keys: Sequence[str], encoded: str) -> str:
        """How many rows have each key. Grouping sets would sort all rows once a set where memory is set low."""
        return f"SELECT k, count(*) AS c FROM ({_keyed(keys, encoded)}) AS q GROUP BY k"

    def tally(self, query: str) -> tuple[NDArray[Any], NDArray[Any]]:
        """Keys and counts, packed into one value: a third of the time and a quarter of the memory of rows."""
        pair = "string_agg(int8send(k) || int8send(c), CAST('' AS BYTEA))"
        packed = self.fetch(f"SELECT {pair} AS p FROM ({query}) AS pairs")["p"][0]
        keys, counts = np.frombuffer(packed or b"", dtype=">i8").reshape(-1, 2).T
        return keys, counts

    def check(self, row_sum: RowSum) -> None:
        """Refuse what cannot be added up here, and everything once the connection is lost."""
        super().check(row_sum)
        if not self._ready():
            # Another connection would see another state of the table.
            raise RefusedError(
                "the connection to the database is lost, and with it the table as it was when it was opened; "
                "nothing was read or spent. Open the table again"
            )

    def _ready(self) -> bool:
        """Whether a query can be asked in the transaction that was opened; one that failed is taken back first."""
        state = self._connection.info.transaction_status.name  # known here, without asking the server
        if state == "INERROR":
            return self._taken_back()
        return state == "INTRANS" and (time.monotonic() - self._heard <= FRESH or self._alive())

    def _taken_back(self) -> bool:
        """To the savepoint: the transaction goes on, and sees the table as before."""
        try:
            self._connection.execute("ROLLBACK TO SAVEPOINT opened")
        except Exception:  # whatever it is, nothing can be asked
            return False
        self._heard = time.monotonic()
        return True

    def _alive(self) -> bool:
        try:
            self.fetch("SELECT 1 AS one")
        except Exception:  # whatever it is, nothing can be asked
            return False
        return True


def _type_name(column: Any, other: str) -> str:
    """The type of a column; a decimal of at most 100 digits says so, since it never leaves the range of doubles."""
    name = _TYPES.get(column.type_code, (other, "text"))[0]
    short = name == "numeric" and column.precision is not None and column.precision <= 100
    return f"numeric({column.precision},{column.scale})" if short else name


def _keyed(keys: Sequence[str], encoded: str) -> str:
    """The keys of every row. GROUPING SETS would sort all rows for each if memory is short, and take 1,664 at most."""
    if len(keys) == 1:
        return f"SELECT {keys[0]} AS k FROM ({encoded}) AS e"
    # Rows may be encoded by several processes, but their many keys shall not pass from one to another.
    return f"SELECT unnest(ARRAY[{', '.join(keys)}]) AS k FROM (SELECT * FROM ({encoded}) AS e OFFSET 0) AS e"


def _column(values: list[Any]) -> NDArray[Any]:
    """Values as Python objects, integers exact."""
    found = np.empty(len(values), dtype=object)
    found[:] = [_number(v) if isinstance(v, Decimal) else v for v in values]
    return found


def _number(value: Decimal) -> int | float:
    return int(value) if value.is_finite() and value == value.to_integral_value() else float(value)


# --- by URL -----------------------------------------------------------------------------------------


def open_url(url: str) -> Postgres:
    """The table a URL names. No message holds any other part of the URL, since it may hold a password."""
    address, table = _parts(url)
    driver = _driver()
    connection, problem = _connected(driver, address)
    # Raised out here: the driver's own error knows the password.
    if problem:
        raise OwnerError(f"the database could not be opened: {problem}")
    try:
        return _opened(driver, connection, table)
    except BaseException:
        connection.close()
        raise


def _parts(url: str) -> tuple[str, str]:
    """The server's address, and the table as SQL."""
    scheme, _, rest = url.partition("://")
    if "\0" in unquote(url):  # at which the driver would stop reading, and take a server of its own choice
        raise OwnerError("a URL may not hold a NUL character (%00): remove it")
    if scheme not in SCHEMES:
        raise OwnerError(
            f"a table at {scheme[:20]!r}://... cannot be read; known is {EXAMPLE}, and files by their path"
        )
    authority = re.split("[/?#]", rest, maxsplit=1)[0]
    if rest.count("@") > 1 or rest.count("@") > authority.count("@"):
        raise OwnerError("write @ / ? # in a user name, password or table name as %40 %2F %3F %23")
    address, _, table = url.rpartition("#")
    if not address or not table:
        raise OwnerError(f"name the table after a hash: {EXAMPLE}")
    return address, _table_sql(unquote(table))


def _table_sql(name: str) -> str:
    """`table` or `schema.table`, as written; a part that begins with a double quote ends with one, as in SQL."""
    part = r'"(?:[^"]|"")+"|[^".][^.]*'
    if len(name) > 5 * LONGEST_NAME or not re.fullmatch(rf"(?:{part})(?:\.(?:{part}))?", name):
        raise OwnerError(f'{name[:99]!r} is not the name of a table; write table, schema.table or "with.dots"."in it"')
    parts = [p[1:-1].replace('""', '"') if p.startswith('"') else p for p in re.findall(part, name)]
    for one in parts:
        if len(one.encode(errors="replace")) > LONGEST_NAME:  # which the server would cut, and open another table
            raise OwnerError(f"a name in PostgreSQL has at most {LONGEST_NAME} bytes: {one!r} is longer")
    return ".".join(map(Postgres.dialect.quote, parts))


def _driver() -> Any:
    try:
        import psycopg
    except ImportError as error:  # the package, or the C library it needs
        raise OwnerError(f"PostgreSQL takes psycopg: pip install 'dpcurate[postgres]' ({first_line(error)})") from None
    return psycopg


def _connected(driver: Any, address: str) -> tuple[Any, str]:
    """A connection, or why there is none."""
    try:
        parts = driver.conninfo.conninfo_to_dict(address)
    except driver.Error:  # its message quotes the part that is wrong
        return None, "its URL cannot be understood; write % in a user name or password as %25"
    fixed = {"client_encoding": "utf8", "prepare_threshold": None}
    try:
        return driver.connect(**{"connect_timeout": PATIENCE} | parts | fixed), ""
    except (driver.Error, UnicodeError) as error:  # the latter for a host whose name cannot be one
        secret = parts.get("password")
        # No table is read yet, so what is quoted is no cell.
        return None, complaint(error).replace(secret, "***") if secret else complaint(error)


def _opened(driver: Any, connection: Any, table: str) -> Postgres:
    if connection.info.server_version < OLDEST * 10_000:
        raise OwnerError(f"the database is older than PostgreSQL {OLDEST}")
    connection.isolation_level = driver.IsolationLevel.REPEATABLE_READ
    connection.read_only = True
    try:
        connection.execute(f"{SETTINGS}; SAVEPOINT opened")
        return Postgres(connection, table)
    except driver.Error as error:
        raise OwnerError(f"the table could not be opened: {first_line(error)}") from error

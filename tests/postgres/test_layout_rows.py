"""Row and index entry lengths of the layout against real servers, byte by byte."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from page_file import leaf_sizes, read_pages
from psycopg import sql

from pgheadroom import _core
from pgheadroom.errors import InputError
from pgheadroom.servers import Cluster, Host, ServerPrograms

EXTENSIONS = ("citext", "hstore", "ltree")
"""Types that the extension of their name brings."""

SEED = 20261120
TABLES = 48
ROWS_PER_TABLE = 15


@dataclass
class Session:
    """A started cluster and one session in it."""

    cluster: Cluster
    connection: psycopg.Connection[Any]

    def rows(self, query: sql.SQL | sql.Composed | str) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        found: list[tuple[Any, ...]] = self.connection.execute(query).fetchall()
        return found

    def pages(self, relation: str) -> Any:
        """The relation's pages as they are on disk."""
        self.connection.execute("CHECKPOINT")
        ((path,),) = self.rows(sql.SQL("SELECT pg_relation_filepath({})").format(relation))
        return read_pages(self.cluster.relation_path(path))


@pytest.fixture(scope="module")
def session(programs: ServerPrograms) -> Iterator[Session]:
    with Host(programs) as host:
        cluster = host.cluster("layout")
        cluster.start({"autovacuum": "off"})
        with cluster.connect() as connection:
            yield Session(cluster, connection)
        cluster.stop()


def _hex(rng: random.Random, length: int) -> str:
    return "".join(rng.choices("0123456789abcdef", k=length))


def _text(rng: random.Random) -> str:
    # Around the limit of the short header (126), and short and long ones.
    return _hex(rng, rng.choice([0, 1, 5, 30, 125, 126, 127, 128, rng.randrange(0, 180)]))


VALUES: dict[str, Callable[[random.Random], str]] = {
    "bool": lambda rng: rng.choice(["t", "f"]),
    '"char"': lambda rng: rng.choice("abc"),
    "int2": lambda rng: str(rng.randrange(-32768, 32768)),
    "int4": lambda rng: str(rng.randrange(-(2**31), 2**31)),
    "int8": lambda rng: str(rng.randrange(-(2**63), 2**63)),
    "float4": lambda rng: str(rng.random()),
    "float8": lambda rng: str(rng.random()),
    "numeric": lambda rng: f"{rng.randrange(10 ** rng.randrange(1, 30))}e{rng.randrange(-20, 20)}",
    "numeric(12,2)": lambda rng: f"{rng.randrange(10**10)}.{rng.randrange(100)}",
    "date": lambda rng: f"20{rng.randrange(10, 99)}-01-02",
    "time": lambda rng: f"{rng.randrange(24):02}:01:02",
    "timetz": lambda rng: f"{rng.randrange(24):02}:01:02+03",
    "timestamptz": lambda rng: f"20{rng.randrange(10, 99)}-01-02 03:04:05+00",
    "interval": lambda rng: f"{rng.randrange(100)} days 3 hours",
    "text": _text,
    "varchar(300)": _text,
    "bpchar(7)": lambda rng: _hex(rng, 5),
    "bpchar(126)": lambda rng: _hex(rng, 5),
    "bpchar(127)": lambda rng: _hex(rng, 5),
    "name": lambda rng: _hex(rng, 20),
    "bytea": lambda rng: "\\x" + _hex(rng, 2 * rng.randrange(0, 180)),
    "bit(13)": lambda _: "1" * 13,
    "varbit(99)": lambda rng: "1" * rng.randrange(0, 100),
    "uuid": lambda rng: _hex(rng, 32),
    "inet": lambda rng: rng.choice(["10.0.0.1", "10.0.0.0/8", "fe80::1"]),
    "cidr": lambda rng: rng.choice(["10.0.0.0/8", "fe80::/64"]),
    "macaddr": lambda _: "08:00:2b:01:02:03",
    "macaddr8": lambda _: "08:00:2b:01:02:03:04:05",
    "oid": lambda rng: str(rng.randrange(2**32)),
    "pg_lsn": lambda _: "16/B374D848",
    "tid": lambda _: "(1,2)",
    "jsonb": lambda rng: f'{{"{_hex(rng, 8)}": {rng.randrange(99)}, "t": "{_text(rng)}"}}',
    "json": lambda rng: f'{{"t": "{_text(rng)}"}}',
    "int4[]": lambda rng: "{" + ",".join(["7"] * rng.randrange(0, 40)) + "}",
    "int8[]": lambda rng: "{" + ",".join(["7"] * rng.randrange(0, 20)) + "}",
    "text[]": lambda rng: "{" + ",".join(_hex(rng, 9) for _ in range(rng.randrange(0, 9))) + "}",
    "int8range": lambda rng: f"[{rng.randrange(9)},{rng.randrange(9, 99)})",
    "tsvector": lambda rng: " ".join(_hex(rng, 6) for _ in range(rng.randrange(0, 12))),
    "tsquery": lambda rng: " & ".join(_hex(rng, 6) for _ in range(rng.randrange(1, 5))),
    "oidvector": lambda rng: " ".join(["7"] * rng.randrange(0, 12)),
    "point": lambda _: "(1,2)",
    "circle": lambda _: "<(1,2),3>",
    "path": lambda rng: "[" + ",".join(["(1,2)"] * rng.randrange(1, 9)) + "]",
}
OF_OCTETS = {"text", "varchar(300)", "bytea"}
NOT_INDEXED = {"json", "point", "path", "tid", "circle"}
"""Without a B-tree operator class, or with one that does not order values."""


def _column(type_name: str, size: int | None) -> _core.Column:
    """
    The column as the layout knows it; `size` is what `pg_column_size` says of the stored value.

    That size contains the length header, 1 byte up to 127. For the types of our own strings the
    payload comes from the type or from `octet_length` instead, so the rule itself is tested too.
    """
    if size is None:
        return _core.Column(type_name, is_null=True)
    if _fixed(type_name):
        return _core.Column(type_name)
    if type_name in OF_OCTETS:
        return _core.Column(type_name, payload_bytes=size)
    packable = _core.Column(type_name, is_null=True).typstorage != "p"
    header = 1 if packable and size <= 127 else 4
    return _core.Column(type_name, payload_bytes=size - header)


def _entry(column: _core.Column) -> _core.Column:
    """The column as a B-tree keeps it: of a `name` (here of 20 characters) only its text."""
    if column.type_name == "name" and not column.is_null:
        return _core.Column("cstring", payload_bytes=20)
    return _core.Column("cstring", is_null=True) if column.type_name == "name" else column


def _fixed(type_name: str) -> bool:
    try:
        _core.Column(type_name)
    except InputError:  # the width has to be given
        return False
    return True


def _size_expression(number: int, type_name: str) -> sql.Composable:
    name = sql.Identifier(f"c{number}")
    function = sql.SQL("octet_length" if type_name in OF_OCTETS else "pg_column_size")
    return sql.SQL("{}({})").format(function, name)


def _random_table(session: Session, rng: random.Random, table: str) -> list[str]:
    """A table with random columns and random rows, none long enough for TOAST."""
    types = rng.choices(list(VALUES), k=rng.choice([1, 2, 4, 6, 7, 8, 8, 9, 9]))
    columns = [
        sql.SQL("{} {}").format(sql.Identifier(f"c{number}"), sql.SQL(name))
        for number, name in enumerate(types)
    ]
    session.connection.execute(
        sql.SQL("CREATE TABLE {} ({})").format(sql.Identifier(table), sql.SQL(", ").join(columns))
    )
    null_frac = rng.choice([0, 0.2])
    for _ in range(ROWS_PER_TABLE):
        values = [None if rng.random() < null_frac else VALUES[name](rng) for name in types]
        literals = [
            sql.SQL("{}::{}").format(sql.Literal(value), sql.SQL(name))
            for value, name in zip(values, types, strict=True)
        ]
        session.connection.execute(
            sql.SQL("INSERT INTO {} VALUES ({})").format(
                sql.Identifier(table), sql.SQL(", ").join(literals)
            )
        )
    return types


def _stored_rows(session: Session, table: str, types: list[str]) -> dict[str, list[_core.Column]]:
    """Each row's columns, by ctid."""
    sizes = [_size_expression(number, name) for number, name in enumerate(types)]
    query = sql.SQL("SELECT ctid::text, {} FROM {}").format(
        sql.SQL(", ").join(sizes), sql.Identifier(table)
    )
    return {
        ctid: [_column(name, size) for name, size in zip(types, found, strict=True)]
        for ctid, *found in session.rows(query)
    }


def test_type_table_is_the_servers(session: Session) -> None:
    """
    Length, alignment and storage of every known type, and of arrays of it, as in pg_type.

    Of extensions' types where the server has those; of composite types, the row of a catalog.
    """
    for name in _core.type_names():
        schema = "pg_catalog"
        if name in EXTENSIONS:
            schema = "public"
            available = "SELECT 1 FROM pg_available_extensions WHERE name = {}"
            if not session.rows(sql.SQL(available).format(name)):
                continue
            session.connection.execute(sql.SQL("CREATE EXTENSION {}").format(sql.Identifier(name)))
        found = session.rows(
            sql.SQL(
                "SELECT t.typlen::int, t.typalign::text, t.typstorage::text, a.typalign::text"
                " FROM pg_type t LEFT JOIN pg_type a ON a.oid = t.typarray"
                " WHERE t.typname = {} AND t.typnamespace = {}::regnamespace"
            ).format("pg_class" if name == "composite" else name.strip('"'), schema)
        )
        column = _core.Column(name, is_null=True)
        assert found, name
        assert found[0][:3] == (column.typlen, column.typalign, column.typstorage), name
        assert found[0][3] == _core.Column(f"{name}[]", is_null=True).typalign, name


def test_row_lengths(session: Session) -> None:
    """`lp_len` of random rows over all kinds of types, with and without NULLs, is as computed."""
    rng = random.Random(SEED)
    compared = 0
    for number in range(TABLES):
        table = f"row_{number}"
        types = _random_table(session, rng, table)
        rows = _stored_rows(session, table, types)
        for page in session.pages(table):
            for item in page.normal_items:
                columns = rows[f"({page.blkno},{item.offnum})"]
                layout = _core.RowLayout(columns)
                assert layout.tuple_bytes == item.lp_len, (types, columns)
                assert layout.hoff_bytes == item.data[22], (types, columns)
                compared += 1
    assert compared == TABLES * ROWS_PER_TABLE


def test_index_entry_lengths(session: Session) -> None:
    """Leaf tuples of indexes on one to three random columns have the computed size."""
    rng = random.Random(SEED + 1)
    for number in range(TABLES):
        table = f"entry_{number}"
        types = _random_table(session, rng, table)
        rows = _stored_rows(session, table, types)
        usable = [i for i, name in enumerate(types) if name not in NOT_INDEXED]
        keys = rng.sample(usable, min(len(usable), rng.choice([1, 2, 3])))
        if not keys:
            continue
        session.connection.execute(
            sql.SQL("CREATE INDEX {} ON {} ({}) WITH (deduplicate_items = off)").format(
                sql.Identifier(f"{table}_i"),
                sql.Identifier(table),
                sql.SQL(", ").join(sql.Identifier(f"c{key}") for key in keys),
            )
        )
        found = leaf_sizes(session.pages(f"{table}_i"))
        assert len(found) == ROWS_PER_TABLE
        for (blkno, offnum), size in found.items():
            columns = [_entry(rows[f"({blkno},{offnum})"][key]) for key in keys]
            assert _core.index_tuple_bytes(columns) == size, columns


@pytest.mark.contrib
def test_decoder_agrees_with_pageinspect(session: Session) -> None:
    """Our decoder is only as good as PostgreSQL's own says, where it is installed."""
    if not session.rows("SELECT 1 FROM pg_available_extensions WHERE name = 'pageinspect'"):
        pytest.skip("this server has no pageinspect")
    session.connection.execute("CREATE EXTENSION IF NOT EXISTS pageinspect")
    session.connection.execute(
        "CREATE TABLE inspected AS SELECT g, 'x' || g FROM generate_series(1, 500) g"
    )
    session.connection.execute("DELETE FROM inspected WHERE g % 3 = 0")
    session.connection.execute("VACUUM inspected")
    for page in session.pages("inspected"):
        theirs = session.rows(
            "SELECT lp, lp_off, lp_flags, lp_len"
            f" FROM heap_page_items(get_raw_page('inspected', {page.blkno}))"
        )
        assert [(i.offnum, i.lp_off, i.lp_flags, i.lp_len) for i in page.items] == theirs

"""Indexes over what the twin cannot evaluate: their figures' intervals hold what a server has."""

from __future__ import annotations

import math
from typing import Any

import observed
import psycopg
import pytest

from pgheadroom import _core
from pgheadroom.errors import InputError
from pgheadroom.play import found_values
from pgheadroom.play.evaluating import evaluated
from pgheadroom.play.load import load
from pgheadroom.predict import predict
from pgheadroom.profile import parse_profile, to_json
from pgheadroom.prove import prove
from pgheadroom.servers import Host, ServerPrograms
from pgheadroom.types import Interval

pytestmark = pytest.mark.usefixtures("run_parent")

Json = dict[str, Any]
INDEXES: tuple[Json, ...] = (
    {
        "expressions": ["date_trunc('day', w)"],
        "stated": {"type": "timestamp", "ndistinct": 35, "changed_frac": 0},
    },
    {
        "expressions": ["substring(s, 1, 12)"],
        "stated": {"type": "text", "width": 12},
    },
    {
        "expressions": ["CASE WHEN n > 3 THEN n END"],
        "stated": {"type": "int4", "ndistinct": 5, "null_frac": 1, "changed_frac": 0},
    },
    {"columns": ["n"], "where": "s LIKE 'a%'", "stated": {"true_frac": 0.06, "changed_frac": 0.11}},
    {
        "columns": ["w"],
        "where": "n = ANY ('{0,1,2}')",
        "stated": {"true_frac": 1, "changed_frac": 0},
    },
)


def _index(number: int, index: Json, *, stated: bool) -> Json:
    text = index["where"] if "where" in index else index["expressions"][0]
    made = {key: value for key, value in index.items() if key != "stated"} | {"name": f"i{number}"}
    return made | ({"stated": [{"expression": text} | index["stated"]]} if stated else {})


def _profile(*, stated: bool) -> Json:
    columns = [
        {"name": "id", "type": "int8"},
        {"name": "n", "type": "int4", "values": {"kind": "constant"}},
        {"name": "w", "type": "timestamp", "values": {"kind": "random", "ndistinct": 3_000_000}},
        {"name": "s", "type": "text", "width": 20},
        {"name": "free", "type": "int8"},
    ]
    indexes = [
        {"name": "t_pkey", "columns": ["id"], "unique": True},
        *(_index(number, index, stated=stated) for number, index in enumerate(INDEXES)),
    ]
    table = {"name": "t", "rows": 4000, "fillfactor": 60, "columns": columns, "indexes": indexes}
    updates = [
        {"table": "t", "kind": "update", "sets": [name], "weight": weight}
        for name, weight in (("n", 1), ("w", 1), ("s", 1), ("free", 3))
    ]
    return {
        "schema_version": 1,
        "server": {"full_page_writes": False},
        "table": [table],
        "operation": updates,
        "run": {"operations": 6000},
    }


@pytest.mark.parametrize("known", ["stated", "assumed", "evaluated"])
def test_intervals_hold(programs: ServerPrograms, known: str) -> None:
    """
    Which updates are HOT is right; pages and WAL lie in what was foreseen.

    On servers the expressions are what they are: days of times that move by a microsecond, digits
    of hashes, numbers that grow.
    """
    profile = parse_profile(_profile(stated=known == "stated"))
    if known == "evaluated":
        profile = evaluated(profile, server=str(programs.bin_dir))
    proof = prove(profile, server=str(programs.bin_dir))
    (cell,) = proof.cells
    missed = {}
    for key in ("n_tup_hot_upd", "heap_pages", "index_pages", "wal_records", "wal_bytes"):
        foreseen, measured = getattr(cell.predicted, key), getattr(cell.measured, key)
        low, high = (
            (foreseen.low, foreseen.high)
            if isinstance(foreseen, Interval)
            else (foreseen, foreseen)
        )
        if not low <= measured <= high:
            missed[key] = (low, measured, high)
    assert missed == {}
    hot = cell.predicted.n_tup_hot_upd
    middle = hot.mid if isinstance(hot, Interval) else hot
    assert abs(middle - cell.measured.n_tup_hot_upd) <= 60


REPEATED: tuple[tuple[str, str, list[str]], ...] = (
    ("n = ANY ('{2,3}')", "free", ["n"]),
    ("n::text LIKE '%3'", "n", ["n"]),
    ("many::text LIKE '%3'", "many", ["many"]),
    ("s LIKE '7%' AND n::text <> '2'", "s", ["s", "n"]),
    ("e = ANY ('{run,odd}')", "free", ["e"]),
    ("date_part('minute', w) < 30 AND (doc ->> 'v') LIKE '%1'", "id", ["doc", "w"]),
)


@pytest.mark.parametrize(("where", "key", "sets"), REPEATED)
@pytest.mark.parametrize("rows", [400, 1200])
def test_updates_that_make_a_predicate_true_are_the_servers(
    programs: ServerPrograms, where: str, key: str, sets: list[str], rows: int
) -> None:
    """
    Of a small table each entry of a partial index counts, and when it comes.

    A share of rows for which the predicate is true says neither: that numbers count up to it, so
    that the index begins empty and gets its root in the run, nor that it is true of the very values
    that are the index's keys. So index pages and pages modified were outside, by one or three.
    """
    columns: list[Json] = [
        {"name": "id", "type": "int8"},
        {"name": "n", "type": "int4", "values": {"kind": "constant"}},
        {"name": "many", "type": "int4", "values": {"kind": "random", "ndistinct": 1000}},
        {"name": "w", "type": "timestamp", "values": {"kind": "random", "ndistinct": 3_000_000}},
        {"name": "s", "type": "text", "width": 20, "null_frac": 0.1},
        {"name": "e", "type": "enum", "labels": ["new", "run", "done", "odd"]},
        {"name": "doc", "type": "jsonb", "width": 40},
        {"name": "free", "type": "int8"},
    ]
    indexes: list[Json] = [
        {"name": "t_pkey", "columns": ["id"], "unique": True},
        {"name": "some", "columns": [key], "where": where},
    ]
    operations: list[Json] = [{"table": "t", "kind": "update", "sets": [name]} for name in sets]
    operations.append({"table": "t", "kind": "insert"})
    made = {
        "schema_version": 1,
        "table": [{"name": "t", "rows": rows, "columns": columns, "indexes": indexes}],
        "operation": operations,
        "run": {"operations": 2 * rows},
    }
    server = str(programs.bin_dir)
    profile = evaluated(parse_profile(made), server=server)
    assert parse_profile(to_json(profile)) == profile
    (cell,) = prove(profile, server=server).cells
    for figure in ("index_pages", "pages_modified", "wal_records", "wal_bytes"):
        foreseen, measured = getattr(cell.predicted, figure), getattr(cell.measured, figure)
        assert isinstance(foreseen, Interval)
        assert foreseen.mid == pytest.approx(measured, abs=1e-6), figure


def test_values_of_a_predicate_are_bounded_before_they_are_fetched(
    programs: ServerPrograms, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of a kilobyte once came to the client by the 100,000, to be counted there."""
    fetched: list[int] = []
    tried = found_values._tried

    def watched(connection: psycopg.Connection[Any], sql: str) -> list[tuple[Any, ...]] | None:
        rows = tried(connection, sql)
        fetched.append(sum(len(text) for values, _ in rows or () for text in values))
        return rows

    monkeypatch.setattr(found_values, "_tried", watched)
    monkeypatch.setattr(found_values, "BYTES_MAX", 20_000)
    columns: list[Json] = [
        {"name": "id", "type": "int8"},
        {"name": "s", "type": "text", "width": 1000},
    ]
    indexes: list[Json] = [
        {"name": "t_pkey", "columns": ["id"], "unique": True},
        {"name": "some", "columns": ["id"], "where": "s LIKE '7%'"},
    ]
    made = {
        "schema_version": 1,
        "table": [{"name": "t", "rows": 500, "columns": columns, "indexes": indexes}],
        "operation": [{"table": "t", "kind": "update", "sets": ["s"]}],
        "run": {"operations": 500},
    }
    profile = evaluated(parse_profile(made), server=str(programs.bin_dir))
    (stated,) = profile.tables[0].indexes[1].stated
    assert fetched == [21_000]  # as many as are kept, and one
    assert (stated.true_for, stated.false_for) == ((), ())
    assert stated.true_frac == pytest.approx(1 / 16, abs=0.06)


EXPRESSIONS = (
    "date_trunc('day', w)",
    "w::date",
    "substring(s, 1, 2)",
    "trim(LEADING '0' FROM s)",
    "CASE WHEN n > 3 THEN s END",
    "nullif(n % 5, 0)",
    "(doc ->> 'v') || 'x'",
    "split_part(s, '7', 1)",
    "n::numeric / 7",
    "least(n, 10)",
    "EXTRACT(hour FROM w)",
)
ROWS = 20_000
"""ANALYZE reads them all, at its default target of 100."""


def test_figures_are_those_of_analyze(programs: ServerPrograms) -> None:
    """
    Of rows as they are loaded a server evaluates what ANALYZE then finds of the index.

    Different values, NULLs and mean widths, of expressions of which the twin evaluates none; and
    predicates are true for as many rows as a partial index has.
    """
    columns = [
        {"name": "id", "type": "int8"},
        {"name": "n", "type": "int4", "values": {"kind": "random", "ndistinct": 300}},
        {"name": "w", "type": "timestamp", "values": {"kind": "random", "ndistinct": 3_000_000}},
        {"name": "s", "type": "text", "width": {"min_bytes": 3, "max_bytes": 60}},
        {"name": "doc", "type": "jsonb", "width": 40, "null_frac": 0.2},
    ]
    wheres = ("s LIKE 'a%'", "n = ANY ('{1,2,3}')", "doc @> '{}'")
    indexes: list[Json] = [{"name": "t_pkey", "columns": ["id"], "unique": True}]
    indexes += [{"name": f"e{n}", "expressions": [text]} for n, text in enumerate(EXPRESSIONS)]
    indexes += [
        {"name": f"w{n}", "columns": ["id"], "where": text} for n, text in enumerate(wheres)
    ]
    profile = parse_profile(
        {
            "schema_version": 1,
            "table": [{"name": "t", "rows": ROWS, "columns": columns, "indexes": indexes}],
            "operation": [{"table": "t", "kind": "select"}],
            "run": {"operations": 1},
        }
    )
    found = {
        index.name: index.stated[0]
        for index in evaluated(profile, server=str(programs.bin_dir)).tables[0].indexes[1:]
    }
    assert not any(stated.assumed for stated in found.values())
    numerics = {one.expression for one in found.values() if one.type == "citext"}
    assert numerics == {"n::numeric / 7", "EXTRACT(hour FROM w)"}, "numeric of other sizes"
    with Host(programs) as host:
        cluster = host.cluster("loaded")
        cluster.start({"fsync": "off"})
        with cluster.connect() as connection:
            load(connection, profile)
            analyzed = connection.execute(
                "SELECT tablename, n_distinct, null_frac, avg_width FROM pg_stats "
                "WHERE tablename LIKE 'e%'"
            ).fetchall()
            counted = connection.execute(
                "SELECT relname, reltuples FROM pg_class WHERE relname LIKE 'w_'"
            ).fetchall()
        cluster.stop("immediate")
    assert {name for name, *_ in analyzed} == {f"e{n}" for n in range(len(EXPRESSIONS))}
    for name, n_distinct, null_frac, avg_width in analyzed:
        stated = found[name]
        different = n_distinct if n_distinct > 0 else -n_distinct * ROWS
        assert stated.ndistinct == pytest.approx(different, rel=0.001, abs=1), stated
        assert stated.null_frac == pytest.approx(null_frac, abs=1e-6), stated
        if stated.width is not None:
            mean = (stated.width.min_bytes + stated.width.max_bytes) / 2
            # ANALYZE counts whole bytes, with a header: four bytes of what an expression makes, one
            # of what it hands through from the row.
            assert avg_width - 4.5 <= mean <= avg_width + 0.5, stated
    for name, rows in counted:
        assert found[name].true_frac == pytest.approx(rows / ROWS, abs=1e-6)


@pytest.mark.parametrize(
    ("index", "said"),
    [
        ({"expressions": ["s::regclass::text"]}, "IMMUTABLE"),
        ({"expressions": ["1 / (n::numeric - n)"]}, "division by zero"),
        ({"expressions": ["nowhere(s)"]}, "nowhere"),
        ({"expressions": ["substring(s, 1, 1)"], "unique": True}, "the index is unique"),
        ({"columns": ["n"], "where": "s::regclass IS NULL"}, "IMMUTABLE"),
        ({"columns": ["n"], "where": "s ~ '['"}, "regular expression"),
        ({"expressions": ["point(n, n)"]}, "no default operator class"),
        (
            {"expressions": ["||".join(f"md5(s || {n})" for n in range(100))]},
            "an entry of a B-tree",
        ),
        ({"expressions": ["s || repeat(md5(s), 300000)"]}, "expected at most 1 GB"),
    ],
)
def test_what_a_server_does_not_take_is_refused(
    programs: ServerPrograms, index: Json, said: str
) -> None:
    """In its own words, and with the index."""
    made = _profile(stated=False)
    made["table"][0]["indexes"][1:] = [index | {"name": "i"}]
    with pytest.raises(InputError, match=rf"(?s)^table\[0\]\.indexes\[1\]: .*{said}"):
        evaluated(parse_profile(made), server=str(programs.bin_dir))


@pytest.mark.parametrize(
    ("expression", "updates"),
    [
        ("ARRAY[n::numeric, 2]", "n"),
        ("numrange(n, n + 10)", "n"),
        ("n::numeric / 7", "n"),
        ("repeat(left(s, 1), 2000)", "s"),
    ],
)
def test_sizes_are_those_of_entries(
    programs: ServerPrograms, expression: str, updates: str
) -> None:
    """
    Values of types and sizes that profiles do not have, and compressed ones, lie in the intervals.

    They were taken as wide as their text, or as they are uncompressed.
    """
    made = _profile(stated=False)
    table = made["table"][0]
    table["indexes"][1:] = [{"name": "i", "expressions": [expression]}]
    table["columns"][1]["values"] = {"kind": "random", "ndistinct": 4000}
    made["operation"] = [{"table": "t", "kind": "update", "sets": [updates]}]
    made["run"]["operations"] = 4000
    proof = prove(
        evaluated(parse_profile(made), server=str(programs.bin_dir)), server=str(programs.bin_dir)
    )
    (cell,) = proof.cells
    for key in ("index_pages", "wal_bytes"):
        foreseen, measured = getattr(cell.predicted, key), getattr(cell.measured, key)
        assert isinstance(foreseen, Interval)
        assert foreseen.low <= measured <= foreseen.high, (key, foreseen, measured)


def test_a_sample_takes_rows_of_all_kinds(programs: ServerPrograms) -> None:
    """Every second of 200,000 rows had even keys only: `LIKE '%7'` was true for none of them."""
    columns = [{"name": "id", "type": "int8"}, {"name": "n", "type": "int4"}]
    indexes: list[Json] = [
        {"name": "t_pkey", "columns": ["id"], "unique": True},
        {"name": "digit", "expressions": ["right(id::text, 1)"]},
        {"name": "seven", "columns": ["n"], "where": "id::text LIKE '%7'"},
    ]
    made = {
        "schema_version": 1,
        "table": [{"name": "path", "rows": 200_000, "columns": columns, "indexes": indexes}],
        "operation": [{"table": "path", "kind": "update", "sets": ["n"]}],
        "run": {"operations": 1000},
    }
    table = evaluated(parse_profile(made), server=str(programs.bin_dir)).tables[0]
    digit, seven = (index.stated[0] for index in table.indexes[1:])
    assert digit.ndistinct == 10
    assert seven.true_frac == pytest.approx(0.1, abs=0.01)


LIVE = """
CREATE TABLE t (id int8 PRIMARY KEY, w timestamp, s text, c int4) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, '2020-01-01'::timestamp + i * interval '1 hour', md5(i::text), i % 5
    FROM generate_series(1, 2400) i;
CREATE INDEX t_day ON t (date_trunc('day', w));
CREATE INDEX t_like ON t (c) WHERE s LIKE 'a%';
CREATE INDEX t_down ON t (c DESC, w DESC NULLS LAST);
CREATE INDEX t_pattern ON t (s text_pattern_ops);
CREATE INDEX t_first ON t (w NULLS FIRST, c);
CREATE INDEX t_second ON t (c, s text_pattern_ops);
VACUUM ANALYZE t
"""


@pytest.mark.pg(">= 16, < 19")
def test_observe_states_what_the_server_knows(programs: ServerPrograms) -> None:
    """
    Of expressions that the twin cannot evaluate type, different values and share are written.

    DESC, NULLS and operator classes stay, and the profile can be predicted. An index of which
    one column alone has such a word was left out, and with it what it keeps from being HOT.
    """

    def work() -> None:
        with observed.session(cluster) as connection:
            connection.execute("UPDATE t SET c = c + 1 WHERE id <= 300")

    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        observed.load(cluster, LIVE)
        profile = observed.profile_of(observed.watched(cluster, work))
    indexes = {index.name: index for index in profile.table("t").indexes}
    (day,) = indexes["t_day"].stated
    assert (day.type, day.ndistinct, day.columns) == ("timestamp", 101, ("w",))
    (like,) = indexes["t_like"].stated
    assert like.true_frac == pytest.approx(1 / 16, abs=0.02)
    assert not day.assumed
    assert not like.assumed
    assert indexes["t_down"].order == ("DESC", "DESC NULLS LAST")
    assert indexes["t_pattern"].opclass == ("text_pattern_ops",)
    assert indexes["t_first"].order == ("NULLS FIRST",)
    assert indexes["t_second"].opclass == ("", "text_pattern_ops")
    assert parse_profile(to_json(profile)) == profile
    (cell,) = predict(profile, server="18.4").cells
    updates = cell.predicted.n_tup_upd
    assert isinstance(updates, Interval)
    # As many as pgbench draws of this rate; six standard deviations of its 300 hold all seeds.
    assert abs(updates.mid - 300) < 6 * math.sqrt(300)


INDEXED = (
    *("now()", "concat(s, 'x')", "to_char(n, '9')", "w < CURRENT_TIMESTAMP", "random() < 2"),
    *("w::date", "w::time", "w::text", "CAST(w AS timestamp)", "p::timestamptz", "p::text"),
    *("d::timestamptz", "d::varchar", "d::timestamp", "p::date", "p::time", "w::timestamptz(3)"),
    *("date(w)", "date(p)", "date_part('year', w)", "extract(year from w)", "extract(year from p)"),
    *("date_trunc('day', w)", "date_trunc('day', p)", "age(w)", "age(w, w)", "timezone('UTC', w)"),
    *("to_tsvector(s)", "to_tsvector('simple', s)", "plainto_tsquery(s)", "to_timestamp(n)"),
    *("lower(s)", "length(s)", "md5(s)", "quote_literal(s)", "isfinite(w)", "s || n"),
)
"""Over an int8 n, a text s, a timestamptz w, a timestamp p and a date d."""
LET_THROUGH = {"s || n"}
"""By an operator that is not immutable, which only its types tell."""


def test_what_is_called_not_immutable_no_index_may_have(programs: ServerPrograms) -> None:
    """And nothing else of these is refused, but what stands in LET_THROUGH."""
    columns = {"n": "int8", "s": "text", "w": "timestamptz", "p": "timestamp", "d": "date"}
    listed = ", ".join(map(" ".join, columns.items()))
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({})
        with cluster.connect() as connection:
            connection.execute(f"CREATE TABLE t ({listed})".encode())
            refused = set()
            for expression in INDEXED:
                try:
                    connection.execute(f"CREATE INDEX ON t (({expression}))".encode())
                except psycopg.errors.InvalidObjectDefinition:  # of functions not immutable
                    refused.add(expression)
            names = connection.execute(
                "SELECT proname FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace "
                "AND prokind = 'f' GROUP BY 1 HAVING bool_or(provolatile = 'i')"
            ).fetchall()
    called = {text for text in INDEXED if _core.not_immutable(text, list(columns.items()))}
    assert called == refused - LET_THROUGH
    assert len(names) > 1000
    wrongly = [name for (name,) in names if _core.not_immutable(f'"{name}"()', []) is not None]
    assert wrongly == []

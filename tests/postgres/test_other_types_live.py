"""
Columns of types that profiles do not have: composites, types of extensions, ranges of users.

Each keeps its name, and is played by a type of the same stored form, so rows are as long as the
server's and lie where the server puts them. The types here have the form of what people have:
`embedding` that of pgvector's vector, `shape` that of PostGIS' geometry, `cell` one of a fixed
length, `serial_number` one that is passed by value.
"""

from __future__ import annotations

from pathlib import Path

import observed
import pytest
from page_file import read_pages

from pgheadroom import _core
from pgheadroom.layout import of_profile
from pgheadroom.layout.columns import profile_columns
from pgheadroom.outcome import KEYS
from pgheadroom.predict import predict
from pgheadroom.profile import Profile, parse_profile, read_profile, to_json
from pgheadroom.profile.standing_in import standing_in
from pgheadroom.prove import prove
from pgheadroom.servers import Cluster, Host, ServerPrograms
from pgheadroom.types import Interval

pytestmark = pytest.mark.usefixtures("run_parent")

GOLDEN = Path(__file__).parents[2] / "golden" / "profiles"
ROWS = 900
PAIRS = 4000
_BASE = """
CREATE TYPE {name};
CREATE FUNCTION {name}_in(cstring) RETURNS {name} LANGUAGE internal IMMUTABLE STRICT AS '{like}in';
CREATE FUNCTION {name}_out({name}) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT
    AS '{like}out';
CREATE TYPE {name} (INPUT = {name}_in, OUTPUT = {name}_out, {form});
"""
DDL = (
    _BASE.format(name="embedding", like="bytea", form="STORAGE = external")
    + _BASE.format(name="shape", like="bytea", form="ALIGNMENT = double, STORAGE = main")
    + _BASE.format(name="cell", like="circle_", form="INTERNALLENGTH = 24, ALIGNMENT = double")
    + _BASE.format(name="serial_number", like="int8", form="LIKE = int8")
    + f"""
CREATE TYPE pair AS (a int4, b text);
CREATE TYPE span AS RANGE (subtype = float8);
CREATE TABLE items (id int8 PRIMARY KEY, emb embedding, n int4, geo shape, small int2, spot cell,
    flag bool, code serial_number, p pair, s span, m datemultirange, b box, far text)
    WITH (autovacuum_enabled = off, fillfactor = 80);
ALTER TABLE items ALTER far SET STORAGE EXTERNAL;
INSERT INTO items SELECT i, ('\\x' || repeat(md5(i::text), 20))::embedding, 0,
    ('\\x' || left(repeat(md5(i::text), 20), 408))::shape, 1, '<(1,2),3>', true,
    i::text::serial_number, ROW(i, 'abc'::text)::pair, span(i, i + 1), datemultirange(daterange(
    date '2000-01-01' + i, date '2000-01-02' + i)), box(point(i, 0), point(0, 0)),
    repeat(md5(i::text), 5) FROM generate_series(1, {ROWS}) AS i;
CREATE TABLE pairs (id int4 PRIMARY KEY, p pair) WITH (autovacuum_enabled = off);
CREATE INDEX pairs_p ON pairs (p);
INSERT INTO pairs SELECT i, ROW(i % 1000, 'abc'::text)::pair FROM generate_series(1, {PAIRS}) AS i;
REINDEX TABLE pairs;
VACUUM ANALYZE items;
VACUUM ANALYZE pairs
"""
)
COMPOSITES = {
    "short": ("(a int4, b text)", "ROW({i}, 'abc')"),
    "longest_short": ("(b text)", "ROW(left(repeat(md5({i}::text), 4), 105))"),
    "shortest_long": ("(b text)", "ROW(left(repeat(md5({i}::text), 4), 106))"),
    "long": ("(a bool, w timestamptz, b text)", "ROW(true, now(), repeat(md5({i}::text), 5))"),
    "odd": ("(a int2, b text, c bool)", "ROW(1, left(repeat(md5({i}::text), 9), 261), true)"),
    "with_null": ("(a int8, b text, c int4)", "ROW({i}, repeat(md5({i}::text), 6), NULL)"),
    "nested": (
        "(a short, b long)",
        "ROW(ROW({i}, 'x'), ROW(false, now(), repeat(md5({i}::text), 4)))",
    ),
    "of_array": ("(a int4[], b uuid)", "ROW(array_fill({i}, ARRAY[60]), md5({i}::text)::uuid)"),
}
"""Fields of composite types, and a value of each in SQL; in a row they stand behind a bool."""
STANDING_IN = {
    "emb": ("text", "external", "embedding"),
    "geo": ("composite", "main", "shape"),
    "spot": ("circle", None, "cell"),
    "code": ("int8", None, "serial_number"),
    "p": ("text", None, "pair"),
    "s": ("text", None, "span"),
    "m": ("datemultirange", None, None),
    "b": ("box", None, None),
    "far": ("text", "external", None),
}


def _change(cluster: Cluster) -> None:
    with observed.session(cluster) as connection:
        for row in range(1, 200):
            connection.execute("UPDATE items SET n = n + 1 WHERE id = %s", (row * 4,))
            connection.execute("UPDATE pairs SET p.a = (p).a WHERE id = %s", (row * 19,))


def _observed(programs: ServerPrograms) -> tuple[Profile, dict[str, int]]:
    """The profile, and the pages of the tables and their indexes before anything was changed."""
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off", "fsync": "off"})
        observed.load(cluster, DDL)
        with cluster.connect() as connection:
            rows = connection.execute(
                "SELECT relname, pg_relation_size(oid) / 8192, pg_indexes_size(oid) / 8192 "
                "FROM pg_class WHERE relname IN ('items', 'pairs')"
            ).fetchall()
        recording = observed.watched(cluster, lambda: _change(cluster))
        pages = {
            f"{name} {what}": n for name, *two in rows for what, n in zip("hi", two, strict=True)
        }
    return observed.profile_of(recording), pages


@pytest.mark.parametrize("name", ["columns-storage", "storage-main", "types-multiranges"])
def test_storage_and_multiranges_are_exact(programs: ServerPrograms, name: str) -> None:
    """What is compressed is by the column's STORAGE; values are those of the server to the byte."""
    proof = prove(read_profile(GOLDEN / f"{name}.toml"), server=str(programs.bin_dir))
    predicted = proof.cells[0].predicted
    unsure = {key for key in KEYS if isinstance(predicted.value(key), Interval)}
    # Where ANALYZE may have taken OIDs, pointers of values share a byte more or less.
    assert unsure <= {"wal_bytes", "wal_bytes_per_update", "wal_nonfpi_bytes_per_update"}
    assert name == "storage-main" or not unsure
    assert [(f.key, f.predicted, f.measured) for _, f in proof.beyond] == []


@pytest.mark.each
def test_rows_with_composites_are_as_long_as_the_servers(programs: ServerPrograms) -> None:
    """Every row of every shape: a header of one byte without alignment, or of four behind eight."""
    rows = 30
    ddl = [f"CREATE TYPE {name} AS {fields};" for name, (fields, _) in COMPOSITES.items()]
    for name, (_, value) in COMPOSITES.items():
        ddl.append(f"CREATE TABLE t_{name} (id int4 PRIMARY KEY, f bool, p {name}, n int2);")
        values = f"i, true, CAST({value.format(i='i')} AS {name}), 1"
        ddl.append(f"INSERT INTO t_{name} SELECT {values} FROM generate_series(1, {rows}) AS i;")
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off", "fsync": "off"})
        observed.load(cluster, "".join(ddl) + "VACUUM ANALYZE")
        with cluster.connect() as connection:
            connection.execute("CHECKPOINT")
            paths = connection.execute(
                "SELECT relname, pg_relation_filepath(oid) FROM pg_class "
                "WHERE relname LIKE 't!_%' ESCAPE '!' AND relkind = 'r'"
            ).fetchall()
        lengths = {
            name: [
                item.lp_len
                for page in read_pages(cluster.relation_path(path))
                for item in page.normal_items
            ]
            for name, path in paths
        }
        recording = observed.watched(cluster, lambda: None)
    profile = observed.profile_of(recording)
    assert set(lengths) == {f"t_{name}" for name in COMPOSITES}
    for name, found in lengths.items():
        table = profile.table(name)
        length = _core.RowLayout(profile_columns(table)).tuple_bytes
        assert found == [length] * rows, name
        is_short = name in ("t_short", "t_longest_short")
        assert table.column("p").type == ("text" if is_short else "composite")


def test_other_types_are_played_by_their_form(programs: ServerPrograms) -> None:
    """Rows are as long as the server's, whatever the types are, and the profile plays exactly."""
    profile, pages = _observed(programs)
    items, pairs = profile.table("items"), profile.table("pairs")
    found = {one.name: (one.type, one.storage, one.stands_for) for one in items.columns}
    assert {name: found[name] for name in STANDING_IN} == STANDING_IN
    length = _core.RowLayout(profile_columns(items)).tuple_bytes
    assert _core.heap_pages(ROWS, length, 80) == pages["items h"]
    shown = {one.name: one.type for one in of_profile(profile, "items").tables[0].columns}
    assert (shown["emb"], shown["geo"], shown["p"]) == ("embedding", "shape", "pair")

    # Of a B-tree over a composite only its entries' length is known.
    profile = parse_profile(to_json(profile))
    said = [str(text) for text in profile.assumed.values() if "stands for pair" in str(text)]
    assert len(said) == 2
    (cell,) = predict(profile, server=str(programs.version)).cells
    interval = cell.predicted.by_table["pairs"].index_pages
    assert isinstance(interval, Interval)
    assert interval.low <= pages["pairs i"] <= interval.high
    assert [one.name for one in standing_in(pairs)] == ["pairs_p"]

    # Without it every figure is the server's.
    data = to_json(profile)
    data["table"] = [one for one in data["table"] if one["name"] == "items"]
    data["operation"] = [one for one in data["operation"] if one["table"] == "items"]
    data |= {"run": {"operations": 300}, "server": {}}
    proof = prove(parse_profile(data), server=str(programs.bin_dir))
    assert proof.cells[0].predicted.is_exact
    assert [(f.key, f.predicted, f.measured) for _, f in proof.beyond] == []

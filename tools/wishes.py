"""
What becomes of profiles with one feature each: exact, modelled, or refused and why.

    python tools/wishes.py [--write]

`--write` writes docs/wishes.md anew, which a test compares with what is predicted.
"""

from __future__ import annotations

import argparse
import copy
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pgheadroom.errors import HeadroomError
from pgheadroom.predict import predict
from pgheadroom.profile import parse_profile
from pgheadroom.profile.assumed import said_standing_in
from pgheadroom.report.proof.words import lines_of

Json = dict[str, Any]
PAGE = Path(__file__).parent.parent / "docs" / "wishes.md"
SERVER = "18.4"

BASE: Json = {
    "schema_version": 1,
    "server": {"version": "18", "settings": {}},
    "table": [
        {
            "name": "t",
            "rows": 200,
            "columns": [
                {"name": "id", "type": "int8"},
                {"name": "n", "type": "int4"},
                {"name": "s", "type": "text", "width": {"min_bytes": 20, "max_bytes": 40}},
                {"name": "b", "type": "bool"},
                {"name": "w", "type": "timestamptz"},
                {"name": "m", "type": "numeric"},
            ],
            "indexes": [{"name": "t_pkey", "columns": ["id"], "unique": True}],
        },
    ],
    "operation": [
        {"table": "t", "kind": "update", "sets": ["n"], "pick": {"distribution": "uniform"}}
    ],
    "run": {"operations": 100},
}

TYPE_LINES = (
    "uuid",
    "jsonb",
    "json",
    "bytea",
    "date",
    "time",
    "interval",
    "inet",
    "int4[]",
    "text[]",
    "money",
    "point",
    "box",
    "lseg",
    "circle",
    "path",
    "polygon",
    "real",
    "double precision",
    "integer",
    "bigint",
    "smallint",
    "boolean",
    "timestamp with time zone",
    "timestamp(3)",
    "decimal(10,2)",
    "serial",
    "bigserial",
    "character varying(20)",
    "xml",
    "tsvector",
    "name",
    '"char"',
    "citext",
    "hstore",
    "ltree",
    "int4range",
    "tstzrange",
    "int4multirange",
    "datemultirange",
    "tstzmultirange",
    "oid",
    "varbit(8)",
)
KEYS: Mapping[str, Json] = {
    "key uuid": {"type": "uuid"},
    "key uuid in order": {"type": "uuid", "values": {"kind": "serial", "ordered": True}},
    "key text": {"type": "text", "width": 36},
    "key numeric": {"type": "numeric"},
    "key (tenant, uuid)": {"type": "uuid", "values": {"kind": "serial"}},
    "range of uuid keys": {"type": "uuid"},
    "key date": {"type": "date"},
    "key timestamp": {"type": "timestamp"},
    "key timestamptz": {"type": "timestamptz"},
    "range of timestamptz keys": {"type": "timestamptz"},
    "key (tenant, date)": {"type": "date", "values": {"kind": "serial"}},
    "key interval": {"type": "interval"},
}
COLUMNS: Mapping[str, Json] = {
    "column storage": {"type": "text", "width": 900, "storage": "external"},
    "pgvector's vector(384)": {
        "type": "text",
        "width": 1540,
        "storage": "external",
        "stands_for": "vector(384)",
    },
    "PostGIS' geometry, a point": {
        "type": "text",
        "width": 28,
        "storage": "main",
        "stands_for": "geometry",
    },
}
EXPRESSIONS = (
    "date_trunc('day', w)",
    "(w::date)",
    "date(w)",
    "extract(year from w)",
    "(n + 1)",
    "n * 2.5",
    "m * 2",
    "round(m)",
    "s || 'x'",
    "substring(s, 1, 3)",
    "substr(s,1,3)",
    "lower(left(s, 5))",
    "trim(s)",
    "btrim(s)",
    "reverse(s)",
    "coalesce(n, 0)",
    "nullif(n, 0)",
    "greatest(n, 0)",
    "case when b then n end",
    "md5(s)",
    "hashtext(s)",
    's COLLATE "C"',
    "n::bigint",
    "n::numeric",
    "m::int",
    "char_length(s)",
    "octet_length(s)",
    "concat(s, 'x')",
    "replace(s, 'a', 'b')",
    "split_part(s, '@', 2)",
    "to_tsvector('simple', s)",
    "w AT TIME ZONE 'UTC'",
)
PREDICATES = (
    "b",
    "NOT b",
    "b = true",
    "b IS NOT TRUE",
    "n IN (1,2,3)",
    "n = ANY ('{1,2}')",
    "n = ANY (ARRAY[1,2])",
    "s LIKE 'a%'",
    "s ~ '^a'",
    "s = 'x'",
    "s <> ''",
    "s IS NOT NULL AND n > 5",
    "w > '2000-01-01'",
    "w > '2000-01-01 00:00:00+00'::timestamptz",
    "w > timestamptz '2000-01-01 00:00:00+00'",
    "w IS NULL",
    "m > 0",
    "m > 100.5",
    "n IS DISTINCT FROM 3",
    "lower(s) = 'x'",
    "length(s) > 20",
    "n BETWEEN 1 AND 5",
    "(n & 1) = 0",
    "n NOT IN (1)",
    "b IS UNKNOWN",
    "n > -1",
    "s > 'a' COLLATE \"C\"",
)
INDEXES: Mapping[str, Json] = {
    "unique text key": {"columns": ["s"], "unique": True},
    "unique partial": {"columns": ["n"], "unique": True, "where": "n > 1000"},
    "unique lower()": {"expressions": ["lower(s)"], "unique": True},
    "columns and expressions": {"columns": ["n"], "expressions": ["lower(s)"]},
    "method hash": {"columns": ["n"], "method": "hash"},
    "method gin": {"columns": ["x"], "method": "gin"},
    "method gist": {"columns": ["x"], "method": "gist"},
    "method spgist": {"columns": ["s"], "method": "spgist"},
    "index desc": {"columns": ["w DESC"]},
    "index order": {"columns": ["w"], "order": ["DESC NULLS LAST"]},
    "nulls not distinct": {"columns": ["w"], "unique": True, "nulls_not_distinct": True},
    "opclass": {"columns": ["s"], "opclass": ["text_pattern_ops"]},
    "brin pages_per_range": {"columns": ["w"], "method": "brin", "pages_per_range": 4},
}
_EXTRA = {"method gin": "int4[]", "method gist": "point"}
RELOPTIONS = {
    "toast_tuple_target": ("toast_tuple_target", "4080"),
    "vacuum_truncate": ("vacuum_truncate", "false"),
    "vacuum_index_cleanup": ("vacuum_index_cleanup", "off"),
    "autovacuum_enabled": ("autovacuum_enabled", "false"),
    "user_catalog_table": ("user_catalog_table", "true"),
}
SERVERS: Mapping[str, Json] = {
    "wal_compression lz4": {"wal_compression": "lz4"},
    "wal_compression zstd": {"wal_compression": "zstd"},
    "lz4 without fpw": {"wal_compression": "lz4", "full_page_writes": False},
    "toast lz4": {"settings": {"default_toast_compression": "lz4"}},
    "vacuum_freeze": {"settings": {"vacuum_freeze_min_age": "1000"}},
    "random_page_cost": {"settings": {"random_page_cost": "1.1"}},
    "synchronous_commit off": {"settings": {"synchronous_commit": "off"}},
    "hot_standby_feedback": {"settings": {"hot_standby_feedback": "on"}},
    "work_mem": {"settings": {"work_mem": "64MB"}},
    "checkpoint 10 s": {"checkpoint_interval_s": 10},
    "checkpoint 30 s": {"checkpoint_interval_s": 30},
    "autovacuum": {"autovacuum": True},
}
TABLES: Mapping[str, Json] = {
    "partition_by": {"partition_by": "hash (id)"},
    "unlogged": {"unlogged": True},
    "foreign_keys": {"foreign_keys": [{"columns": ["n"], "references": "p"}]},
}
OPERATIONS: Mapping[str, Json] = {
    "pick newest": {"pick": {"distribution": "newest"}},
    "pick latest": {"pick": {"distribution": "latest"}},
    "pick zipf 0.99": {"pick": {"distribution": "zipfian", "theta": 0.99}},
    "pick exponential": {"pick": {"distribution": "exponential", "param": 3}},
    "weight 0.5": {"weight": 0.5},
    "weight 0": {"weight": 0},
    "savepoint": {"savepoint": True},
    "find bitmap": {"find": "bitmap"},
    "rows 3 to 9": {"rows_per_statement": {"min": 3, "max": 9}},
    "savepoints": {"subtransactions": 2},
    "think time": {"think_time_s": 0.1},
}
RUNS: Mapping[str, Json] = {"seed -1": {"seed": -1}, "ramp": {"ramp_up_s": 10}}
ROWS = {"rows 1": 1, "rows 0": 0}
PARENT: Json = {
    "name": "p",
    "rows": 50,
    "columns": [{"name": "id", "type": "int4"}],
    "indexes": [{"name": "p_pkey", "columns": ["id"], "unique": True}],
}


def wishes() -> Iterator[tuple[str, Json]]:
    """Each wish with its profile."""
    yield "nothing", copy.deepcopy(BASE)
    for name in TYPE_LINES:
        yield f"type {name}", _with_column(name)
    yield from _keys()
    fixed = _with_column("text")
    fixed["table"][0]["columns"][-1]["width"] = 36
    yield "text fixed width", fixed
    yield from _columns()
    for name, index in INDEXES.items():
        base = _with_column(_EXTRA[name]) if name in _EXTRA else copy.deepcopy(BASE)
        if index.get("unique"):
            base["table"][0]["columns"][4]["values"] = {"kind": "serial"}
            base["table"][0]["columns"][2]["values"] = {"kind": "serial"}
        yield name, _with_index(base, index)
    for text in EXPRESSIONS:
        yield f"expr {text}", _with_index(copy.deepcopy(BASE), {"expressions": [text]})
    for text in PREDICATES:
        yield f"where {text}", _with_index(copy.deepcopy(BASE), {"columns": ["m"], "where": text})
    for name, (option, value) in RELOPTIONS.items():
        yield name, _changed("table", {"reloptions": {option: value}})
    for name, change in SERVERS.items():
        data = copy.deepcopy(BASE)
        data["server"] |= change
        yield name, data
    for name, change in TABLES.items():
        data = _changed("table", change)
        if name == "foreign_keys":
            data["table"].insert(0, copy.deepcopy(PARENT))
        yield name, data
    for name, change in OPERATIONS.items():
        yield name, _changed("operation", change)
    for name, change in RUNS.items():
        data = copy.deepcopy(BASE)
        data["run"] |= change
        yield name, data
    for name, rows in ROWS.items():
        yield name, _changed("table", {"rows": rows})


def _columns() -> Iterator[tuple[str, Json]]:
    """Columns with more than a type, and an index over the last."""
    for name, column in COLUMNS.items():
        data = copy.deepcopy(BASE)
        data["table"][0]["columns"].append({"name": "x"} | column)
        yield name, data
    yield "a B-tree over another type", _with_index(copy.deepcopy(data), {"columns": ["x"]})


def _keys() -> Iterator[tuple[str, Json]]:
    """Keys that are no integers."""
    for name, key in KEYS.items():
        data = copy.deepcopy(BASE)
        data["table"][0]["columns"][0] |= key
        if "tenant" in name:
            data["table"][0]["columns"][1] |= {
                "name": "tenant",
                "values": {"kind": "random", "ndistinct": 9},
            }
            data["table"][0]["columns"].append({"name": "n", "type": "int4"})
            data["table"][0]["indexes"][0]["columns"] = ["tenant", "id"]
        if "range" in name:
            data["operation"][0]["rows_per_statement"] = 3
        yield name, data


def _with_column(type_name: str) -> Json:
    data = copy.deepcopy(BASE)
    column = {"name": "x", "type": type_name}
    if type_name == "text":
        column["width"] = {"min_bytes": 20, "max_bytes": 40}  # type: ignore[assignment]
    data["table"][0]["columns"].append(column)
    return data


def _with_index(data: Json, index: Json) -> Json:
    data["table"][0]["indexes"].append({"name": "u"} | index)
    return data


def _changed(section: str, change: Json) -> Json:
    data = copy.deepcopy(BASE)
    data[section][0] |= change
    return data


def outcome(data: Json) -> tuple[str, str]:
    """`exact`, `modelled` or `refused`, and what is said of it."""
    try:
        profile = parse_profile(data)
        prediction = predict(profile, server=SERVER)
    except HeadroomError as error:
        return "refused", str(error)
    columns = [column for table in profile.tables for column in table.columns]
    others = [said_standing_in(column) for column in columns if column.stands_for is not None]
    assumed = [str(line) for line in lines_of(prediction.assumed.get("twin.approximations", ()))]
    if all(cell.predicted.is_exact for cell in prediction.cells) and not assumed:
        return "exact", "; ".join(others)
    return "modelled", "; ".join([*others, *assumed]) or "an interval"


def page() -> str:
    """The page of docs."""
    found = [(name, *outcome(data)) for name, data in wishes()]
    counts = Counter(becomes for _, becomes, _ in found)
    lines = [
        "# Wishes",
        "",
        "Profiles with one feature each, and what becomes of them "
        f"(`python tools/wishes.py --write`, PostgreSQL {SERVER}): "
        f"{counts['exact']} exact, {counts['modelled']} modelled, {counts['refused']} refused.",
        "*Exact* is equal to the unit with one client, *modelled* is an interval or rests on an "
        "assumption, and *refused* ends with the reason before a server starts.",
        "",
        "| feature | becomes | what is said |",
        "|---|---|---|",
    ]
    for name, becomes, said in found:
        cells = [text.replace("|", "\\|").replace("\n", " ") for text in (name, becomes, said)]
        lines.append(f"| `{cells[0]}` | {cells[1]} | {cells[2]} |")
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    """Show or write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name} anew")
    options = parser.parse_args(arguments)
    made = page()
    if options.write:
        PAGE.write_text(made)
    else:
        print(made, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

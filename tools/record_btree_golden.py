"""
Record what servers do to B-tree indexes: `python tools/record_btree_golden.py [18 16 15]`.

Plays the scenarios below on a throw-away server of each version and writes
`golden/expected/<version>/btree-<name>.json`: after each step the index's pages and its WAL
records with their bytes, at the end the metapage and a digest of every page. The twin plays the
same scenarios in `crates/pgheadroom-twin/tests/golden_btree_recorded.rs`.

A page's digest is `state:level:left:right:items:free:hash`; the hash (FNV-1a, 64 bits) is over its
items in order, each `bytes/kind/...;` as `item_text` writes them. Keys are not in it: TIDs name
the rows.
"""

from __future__ import annotations

import json
import re
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

from pgheadroom.servers import Host, ServerPrograms, find_programs
from pgheadroom.servers.cluster import Cluster

ROOT = Path(__file__).resolve().parent.parent
SETTINGS = {
    "autovacuum": "off",
    "full_page_writes": "off",
    "shared_buffers": "256MB",
    "max_wal_size": "4GB",
    "wal_keep_size": "2GB",
    "checkpoint_timeout": "1h",
    "max_parallel_workers_per_gather": "0",
    "max_parallel_maintenance_workers": "0",
    "synchronize_seqscans": "off",
    "jit": "off",
}
BLCKSZ = 8192
Scenario = dict[str, Any]


def column(value: str, type_name: str = "int4", **more: Any) -> dict[str, Any]:
    """
    A key column.

    `value` is how v follows from the row's number i and random number s: `random` (s), `random_mod`
    (s / 65536 mod `modulus`), `ascending` (i), `descending` (-i), `i_mod`, `i_div`. Every tenth
    below `null_tenths` is NULL. Text is v in ten digits and v mod `length_modulus` letters more.
    """
    defaults = {"modulus": 1, "null_tenths": 0, "length_modulus": 1, "order": ""}
    return {"type": type_name, "value": value} | defaults | more


def scenario(name: str, columns: list[dict[str, Any]], steps: list[Any], **more: Any) -> Scenario:
    """A scenario; `include` of the columns, the last ones, are INCLUDE columns."""
    named = [dict(zip(("op", "a", "b"), step, strict=False)) for step in steps]
    defaults = {"unique": False, "include": 0, "fillfactor": 90, "deduplicate_items": True}
    return {"name": name, "columns": columns, "steps": named} | defaults | more


def load(rows: int) -> list[Any]:
    """An empty index, then rows."""
    return [("index",), ("insert", 1, rows)]


# Steps: index (CREATE INDEX); insert (rows a to b); delete (rows with i mod a = b); delete_range
# (rows a to b); update (same condition as delete, changes no key); vacuum.
SCENARIOS = [
    scenario("unique-random", [column("random")], load(60000), unique=True),
    scenario(
        "fillfactor-70",
        [column("ascending", "int8")],
        [*load(20000), ("delete", 5, 1), ("vacuum",)],
        unique=True,
        fillfactor=70,
    ),
    scenario(
        "build-then-insert",
        [column("random_mod", modulus=3000)],
        [("insert", 1, 20000), ("index",), ("insert", 20001, 40000)],
    ),
    scenario(
        "build-unique-50",
        [column("random")],
        [("insert", 1, 20000), ("index",), ("insert", 20001, 40000)],
        unique=True,
        fillfactor=50,
    ),
    scenario(
        "two-columns-include",
        [column("random_mod", modulus=500), column("i_mod", modulus=7), column("ascending")],
        load(30000),
        include=1,
    ),
    scenario(
        "no-deduplication",
        [column("random_mod", modulus=200)],
        load(30000),
        deduplicate_items=False,
    ),
    scenario(
        "text",
        [column("random_mod", "text", modulus=20000, length_modulus=60)],
        [*load(30000), ("delete", 3, 0), ("vacuum",), ("insert", 30001, 40000)],
    ),
    scenario(
        "text-and-int",
        [
            column("random_mod", "text", modulus=40, length_modulus=7),
            column("random"),
        ],
        [("insert", 1, 10000), ("index",), ("insert", 10001, 30000)],
    ),
    scenario(
        "nulls",
        [
            column("random_mod", modulus=100, null_tenths=4),
            column("ascending", null_tenths=2),
        ],
        [*load(30000), ("delete", 4, 1), ("vacuum",), ("insert", 30001, 45000)],
    ),
    scenario(
        "nulls-first-descending",
        [
            column("random_mod", "int8", modulus=1000, null_tenths=3, order="NULLS FIRST"),
            column("i_mod", "int2", modulus=300, null_tenths=5, order="DESC"),
        ],
        [("insert", 1, 10000), ("index",), ("insert", 10001, 30000)],
    ),
    scenario(
        "unique-nulls",
        [column("random", null_tenths=5)],
        load(30000),
        unique=True,
    ),
    scenario(
        "duplicates-vacuum",
        [column("random_mod", modulus=100)],
        [
            *load(30000),
            ("delete", 3, 0),
            ("vacuum",),
            ("insert", 30001, 40000),
            ("delete", 2, 1),
            ("vacuum",),
        ],
    ),
    scenario(
        "page-deletion",
        [column("ascending")],
        [
            *load(30000),
            ("delete_range", 5000, 20000),
            ("vacuum",),
            ("insert", 30001, 31000),
            ("vacuum",),
            ("insert", 31001, 45000),
        ],
        unique=True,
    ),
    scenario(
        "subtree-deletion",
        [column("ascending", "text", length_modulus=1, pad=480)],
        [
            *load(4000),
            ("delete_range", 1, 3500),
            ("vacuum",),
            ("insert", 4001, 4010),
            ("vacuum",),
            ("insert", 4011, 5000),
            ("delete_range", 3501, 4990),
            ("vacuum",),
            ("insert", 5001, 7000),
        ],
        unique=True,
    ),
    scenario(
        "all-deleted",
        [column("random_mod", modulus=5000)],
        [
            *load(20000),
            ("delete_range", 1, 20000),
            ("vacuum",),
            ("insert", 20001, 30000),
            ("vacuum",),
            ("insert", 30001, 50000),
        ],
    ),
    scenario(
        "updates-unique",
        [column("random")],
        [*load(20000), *[("update", 2, 1)] * 3, ("vacuum",), *[("update", 3, 1)] * 3],
        unique=True,
    ),
    scenario(
        "updates-duplicates",
        [column("random_mod", modulus=700)],
        [*load(15000), *[("update", 2, 0)] * 4, ("delete", 5, 3), ("vacuum",), ("update", 3, 1)],
    ),
    scenario(
        "updates-text",
        [column("random_mod", "text", modulus=9000, length_modulus=30)],
        [*load(15000), *[("update", 1, 0)] * 3],
    ),
]


def value_sql(spec: dict[str, Any]) -> str:
    """A column's value as SQL over the source table's i and s."""
    modulus = spec["modulus"]
    value = {
        "random": "s - 2147483648" if spec["type"] != "text" else "s",
        "random_mod": f"(s / 65536) % {modulus}",
        "ascending": "i",
        "descending": "-i",
        "i_mod": f"i % {modulus}",
        "i_div": f"i / {modulus}",
    }[spec["value"]]
    typed = f"({value})::{spec['type']}"
    if spec["type"] == "text":
        letters = f"(({value}) % {spec['length_modulus']} + {spec.get('pad', 0)})::int"
        typed = f"lpad(({value})::text, 10, '0') || repeat('x', {letters})"
    if spec["null_tenths"]:
        typed = f"CASE WHEN (s / 1024) % 10 >= {spec['null_tenths']} THEN {typed} END"
    return typed


def index_sql(played: Scenario) -> str:
    """CREATE INDEX of a scenario."""
    columns = [
        f"k{number} " + ('COLLATE "C" ' if spec["type"] == "text" else "") + spec["order"]
        for number, spec in enumerate(played["columns"])
    ]
    split = len(columns) - played["include"]
    include = ", ".join(f"k{number}" for number in range(split, len(columns)))
    return (
        f"CREATE {'UNIQUE ' if played['unique'] else ''}INDEX t_k ON t "
        f"({', '.join(columns[:split])})"
        + (f" INCLUDE ({include})" if include else "")
        + f" WITH (fillfactor = {played['fillfactor']}, "
        f"deduplicate_items = {'on' if played['deduplicate_items'] else 'off'})"
    )


def step_sql(played: Scenario, step: dict[str, Any]) -> str:
    """One step as SQL."""
    values = ", ".join(value_sql(spec) for spec in played["columns"])
    condition = f"i % {step.get('a', 1)} = {step.get('b', 0)}"
    return {
        "index": lambda: index_sql(played),
        "insert": lambda: (
            f"INSERT INTO t SELECT i, 0, {values} FROM src "
            f"WHERE i BETWEEN {step['a']} AND {step['b']} ORDER BY i"
        ),
        "delete": lambda: f"DELETE FROM t WHERE {condition}",
        "delete_range": lambda: f"DELETE FROM t WHERE i BETWEEN {step['a']} AND {step['b']}",
        "update": lambda: f"UPDATE t SET f = f + 1 WHERE {condition}",
        "vacuum": lambda: "VACUUM (TRUNCATE FALSE) t",
    }[step["op"]]()


SOURCE_SQL = """
CREATE TABLE src AS WITH RECURSIVE g(i, s) AS (
  VALUES (1, (42 * 1664525::bigint + 1013904223) % 4294967296)
  UNION ALL SELECT i + 1, (s * 1664525 + 1013904223) % 4294967296 FROM g WHERE i < 100000
) SELECT i, s FROM g
"""
RECORD = re.compile(r"rmgr: (\w+) +len \(rec/tot\): +\d+/ +(\d+),.*? desc: (\w+)")


def records(
    programs: ServerPrograms, cluster: Cluster, node: str, start: str, end: str
) -> dict[str, list[int]]:
    """Records of a relation between two positions: number and bytes of each kind."""
    dump = subprocess.run(
        [programs.program("pg_waldump"), "-p", cluster.data_dir / "pg_wal", "-s", start, "-e", end],
        check=False,
        capture_output=True,
        text=True,
    )
    assert dump.returncode == 0, dump.stderr
    found: dict[str, list[int]] = {}
    for line in dump.stdout.splitlines():
        match = RECORD.match(line)
        if match is None or not re.search(rf"rel \d+/\d+/{node}\b", line):
            continue
        rmgr, length, kind = match.groups()
        if kind == "FPI_FOR_HINT":  # checksums; the twin's WAL module decides on them
            continue
        assert rmgr in ("Btree", "XLOG"), line
        counts = found.setdefault(kind, [0, 0])
        counts[0] += 1
        counts[1] += int(length)
    return dict(sorted(found.items()))


def fnv(text: str) -> str:
    """FNV-1a, 64 bits."""
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return f"{value:016x}"


def tid_text(data: bytes, at: int) -> str:
    """A TID as block,offset."""
    high, low, offset = struct.unpack_from("<HHH", data, at)
    return f"{high << 16 | low},{offset}"


def item_text(data: bytes, is_dead: bool, is_high_key: bool, is_leaf: bool) -> str:
    """An item for the hash: plain, posting, high key or downlink."""
    high, low, offset, info = struct.unpack_from("<HHHH", data, 0)
    size, block = info & 0x1FFF, high << 16 | low
    head = f"{len(data)}{'!' if is_dead else ''}"
    if is_leaf and not is_high_key:
        if not info & 0x2000:
            return f"{head}/t/{tid_text(data, 0)};"
        assert offset & 0x2000, "posting list"
        tids = [tid_text(data, block + 6 * number) for number in range(offset & 0xFFF)]
        return f"{head}/p/{' '.join(tids)};"
    assert info & 0x2000, "pivot"
    tid = tid_text(data, size - 6) if offset & 0x1000 else "-"
    kind = "h" if is_high_key else f"d{block}"
    return f"{head}/{kind}/{offset & 0xFFF}/{tid};"


def page_text(page: bytes) -> str:
    """A page's digest."""
    lower, upper, special = struct.unpack_from("<HHH", page, 12)
    left, right, level, flags, _ = struct.unpack_from("<IIIHH", page, special)
    if flags & 4:
        return f"deleted:{left}:{right}"
    assert not flags & 16, "half-dead page"
    hashed = ""
    for number, at in enumerate(range(24, lower, 4)):
        (word,) = struct.unpack_from("<I", page, at)
        start, length = word & 0x7FFF, word >> 17
        is_dead = word >> 15 & 3 == 3
        data = page[start : start + length]
        hashed += item_text(data, is_dead, number == 0 and right != 0, bool(flags & 1))
    state = "root" if flags & 2 else "live"
    return f"{state}:{level}:{left}:{right}:{(lower - 24) // 4}:{upper - lower}:{fnv(hashed)}"


def play(programs: ServerPrograms, cluster: Cluster, played: Scenario) -> dict[str, Any]:
    """Play a scenario and say what became of the index."""
    columns = ", ".join(f"k{n} {spec['type']}" for n, spec in enumerate(played["columns"]))
    statements = ["DROP TABLE IF EXISTS t", f"CREATE TABLE t (i int, f int, {columns})"]
    results = []
    with cluster.connect() as connection:

        def ask(sql: str) -> Any:
            row = connection.execute(sql).fetchone()
            return row[0] if row else None

        for statement in statements:
            connection.execute(statement)
        for step in played["steps"]:
            sql = step_sql(played, step)
            statements.append(sql)
            connection.execute("CHECKPOINT")
            start = ask("SELECT pg_current_wal_insert_lsn()")
            connection.execute(sql)
            end = ask("SELECT pg_current_wal_insert_lsn()")
            connection.execute("CHECKPOINT")
            result: dict[str, Any] = {"heap_pages": ask("SELECT pg_relation_size('t') / 8192")}
            if ask("SELECT to_regclass('t_k') IS NOT NULL"):
                node = ask("SELECT pg_relation_filenode('t_k')")
                result["index_pages"] = ask("SELECT pg_relation_size('t_k') / 8192")
                result["records"] = records(programs, cluster, node, start, end)
            results.append(result)
        path = cluster.relation_path(ask("SELECT pg_relation_filepath('t_k')"))
    content = path.read_bytes()
    pages = [content[at : at + BLCKSZ] for at in range(0, len(content), BLCKSZ)]
    return {
        "statements": statements,
        "results": results,
        "metapage": list(struct.unpack_from("<5I", pages[0], 32)),
        "pages": [page_text(page) for page in pages[1:]],
    }


def record(version: str) -> None:
    """Record all scenarios on one version."""
    programs = find_programs(version)
    with Host(programs) as host:
        cluster = host.cluster("golden")
        cluster.start(SETTINGS)
        with cluster.connect() as connection:
            connection.execute(SOURCE_SQL)
        folder = ROOT / "golden" / "expected" / str(cluster.version)
        folder.mkdir(parents=True, exist_ok=True)
        for played in SCENARIOS:
            outcome = play(programs, cluster, played)
            origin = {
                "server": f"PostgreSQL {cluster.version}",
                "settings": SETTINGS,
                "command": f"python tools/record_btree_golden.py {version}",
                "source": " ".join(SOURCE_SQL.split()),
                "sql": outcome.pop("statements"),
            }
            golden = {"schema_version": 1, "origin": origin, "scenario": played} | outcome
            path = folder / f"btree-{played['name']}.json"
            path.write_text(json.dumps(golden, indent=1) + "\n")
            print(path.relative_to(ROOT), outcome["results"][-1]["index_pages"], "pages")


if __name__ == "__main__":
    for one in sys.argv[1:] or ["18", "16", "15"]:
        record(one)

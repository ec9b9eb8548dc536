"""
Record what servers do to B-tree indexes: `python tools/record_btree_golden.py [18 16 15]`.

With `--random SEED --count N --to FOLDER` plays random scenarios instead; the twin is compared by
`PGHEADROOM_BTREE_GOLDEN=FOLDER cargo test --release --test twin -- --ignored`.

Plays the scenarios of `btree_scenarios.py` on a throw-away server of each version and writes
`golden/expected/<version>/btree-<name>.json`: after each step the index's pages and its WAL
records with their bytes, at the end the metapage and a digest of every page. The twin plays the
same scenarios in `crates/pgheadroom-twin/tests/golden_btree_recorded.rs`.

A page's digest is `state:level:left:right:items:free:hash`; the hash (FNV-1a, 64 bits) is over its
items in order, each `bytes/kind/...;` as `item_text` writes them. Keys are not in it: TIDs name
the rows.
"""

from __future__ import annotations

import argparse
import json
import re
import struct
import subprocess
from pathlib import Path
from typing import Any

from btree_scenarios import SCENARIOS, Scenario, random_scenarios

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
    a, b = step.get("a"), step.get("b")
    sql: dict[str, str] = {
        "index": index_sql(played),
        "insert": f"INSERT INTO t SELECT i, 0, {values} FROM src "
        f"WHERE i BETWEEN {a} AND {b} ORDER BY src.i",
        "delete": f"DELETE FROM t WHERE i % {a} = {b}",
        "delete_range": f"DELETE FROM t WHERE i BETWEEN {a} AND {b}",
        "update": f"UPDATE t SET f = f + 1 WHERE i % {a} = {b}",
        "vacuum": "VACUUM (TRUNCATE FALSE) t",
    }
    return sql[step["op"]]


SOURCE_SQL = """
CREATE TABLE src AS WITH RECURSIVE g(i, s) AS (
  VALUES (1, (42 * 1664525::bigint + 1013904223) % 4294967296)
  UNION ALL SELECT i + 1, (s * 1664525 + 1013904223) % 4294967296 FROM g WHERE i < 100000
) SELECT i, s FROM g
"""
RECORD = re.compile(r"rmgr: (\w+) +len \(rec/tot\): +\d+/ *(\d+),.*? desc: (\w+)")


def segment_name(lsn: str) -> str:
    """Name of the 16 MB file that holds a position, on the first timeline."""
    high, low = (int(part, 16) for part in lsn.split("/"))
    return f"00000001{high:08X}{low >> 24:08X}"


def records(
    programs: ServerPrograms, cluster: Cluster, node: str, start: str, end: str
) -> dict[str, list[int]]:
    """Records of a relation between two positions: number and bytes of each kind."""
    if start == end:
        return {}
    # Named, because pg_waldump learns the segment size from any file, and some are still empty.
    wal = cluster.data_dir / "pg_wal"
    segments = [wal / segment_name(lsn) for lsn in (start, end)]
    dump = subprocess.run(
        [programs.program("pg_waldump"), "-s", start, "-e", end, *segments],
        check=False,
        capture_output=True,
        text=True,
    )
    assert dump.returncode == 0, dump.stderr
    found: dict[str, list[int]] = {}
    for line in dump.stdout.splitlines():
        match = RECORD.match(line)
        if match is None or not re.search(rf"rel:? \d+/\d+/{node}\b", line):
            continue
        rmgr, length, kind = match.groups()
        if "fork" in line:
            kind += " " + line.split("fork ")[1].split()[0]
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


def record(version: str, scenarios: list[Scenario], expected: Path) -> None:
    """Record scenarios on one version, into a folder of `expected`."""
    programs = find_programs(version)
    with Host(programs) as host:
        cluster = host.cluster("golden")
        settings = dict(SETTINGS)
        cluster.start(settings)
        with cluster.connect() as connection:
            connection.execute(SOURCE_SQL)
        folder = expected / str(cluster.version)
        folder.mkdir(parents=True, exist_ok=True)
        for played in scenarios:  # those with images come last
            if played["full_page_writes"] and settings["full_page_writes"] == "off":
                settings["full_page_writes"] = "on"
                cluster.stop()
                cluster.start(settings)
            outcome = play(programs, cluster, played)
            origin = {
                "server": f"PostgreSQL {cluster.version}",
                "settings": settings,
                "command": f"python tools/record_btree_golden.py {version}",
                "source": " ".join(SOURCE_SQL.split()),
                "sql": outcome.pop("statements"),
            }
            golden = {"schema_version": 1, "origin": origin, "scenario": played} | outcome
            path = folder / f"btree-{played['name']}.json"
            path.write_text(json.dumps(golden, indent=1) + "\n")
            print(path, outcome["results"][-1]["index_pages"], "pages")


def main() -> None:
    """Record on the versions named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("versions", nargs="*", default=["18", "16", "15"])
    parser.add_argument("--random", type=int, metavar="SEED")
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--to", type=Path, default=ROOT / "golden" / "expected", metavar="FOLDER")
    options = parser.parse_args()
    scenarios = SCENARIOS
    if options.random is not None:
        scenarios = random_scenarios(options.random, options.count)
    for version in options.versions:
        record(version, scenarios, options.to)


if __name__ == "__main__":
    main()

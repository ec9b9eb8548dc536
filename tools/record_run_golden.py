"""
Record what whole pgbench runs of one client do to tables and WAL, for the twin's golden tests.

    python tools/record_run_golden.py 18 16 15

Each run: load, VACUUM, CHECKPOINT, then pgbench with a seed; afterwards counters, page counts,
and records and bytes by WAL record type, out of the server's own pg_waldump, of the records that
name the tables or their indexes. Written to golden/expected/MAJOR.MINOR/run-*.json.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from pgheadroom.servers import Host, find_client, find_programs
from pgheadroom.servers.cluster import Cluster
from pgheadroom.servers.programs import ServerPrograms

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "expected"
SETTINGS = {
    "autovacuum": "off",
    "shared_buffers": "512MB",
    "bgwriter_lru_maxpages": "0",
    "max_wal_size": "64GB",
    "checkpoint_timeout": "1d",
    "jit": "off",
    "max_parallel_workers_per_gather": "0",
    "synchronize_seqscans": "off",
    "plan_cache_mode": "force_generic_plan",
}
BY_INDEX = "-c enable_seqscan=off -c enable_bitmapscan=off -c enable_indexonlyscan=off"

MIXED_LOAD = """
CREATE TABLE m (id int, n int, v int, f char(64)) WITH (fillfactor = 90);
INSERT INTO m SELECT i, i % 1000, 0, '' FROM generate_series(1, 5000) i;
CREATE UNIQUE INDEX m_id ON m (id);
CREATE INDEX m_n ON m (n);
VACUUM ANALYZE m;
"""
MIXED = """\
\\set k random(1, 5000)
\\set what random(1, 10)
\\set fails random(1, 10)
BEGIN;
\\if :what <= 4
UPDATE m SET v = v + 1 WHERE id = :k;
\\elif :what <= 5
DELETE FROM m WHERE id = :k;
\\elif :what <= 7
INSERT INTO m VALUES (:k, 5, 0, '') ON CONFLICT (id) DO UPDATE SET v = m.v + 1;
\\elif :what <= 8
SELECT * FROM m WHERE id = :k FOR UPDATE;
\\elif :what <= 9
UPDATE m SET n = n + 7 WHERE id = :k;
\\else
SELECT * FROM m WHERE id BETWEEN :k AND :k + 9;
\\endif
\\if :fails = 1
ROLLBACK;
\\else
COMMIT;
\\endif
"""
LINE = re.compile(r"rmgr: (\w+) +len \(rec/tot\): +\d+/ *(\d+),.* desc: (\S+)")
RELATION = re.compile(r"rel \d+/(\d+)/(\d+)")


def wal_of(
    host: Host, cluster: Cluster, programs: ServerPrograms, start: str, end: str, files: set[str]
) -> dict[str, tuple[int, int]]:
    """Records and bytes by type, of these relation files and of transactions' ends."""
    command: list[str | Path] = [
        programs.program("pg_waldump"),
        "-p",
        cluster.data_dir / "pg_wal",
        "-s",
        start,
    ]
    done = host.run([*command, "-e", end])
    assert done.returncode == 0, done.stderr
    records: Counter[str] = Counter()
    bytes_: Counter[str] = Counter()
    for line in done.stdout.splitlines():
        found = LINE.match(line)
        assert found, line
        name = f"{found[1]}/{found[3]}".rstrip(",")
        ours = files & {number for _, number in RELATION.findall(line)}
        if ours or name in ("Transaction/COMMIT", "Transaction/ABORT"):
            records[name] += 1
            bytes_[name] += int(found[2])
    return {name: (records[name], bytes_[name]) for name in sorted(records)}


def run_pgbench(host: Host, cluster: Cluster, *options: str) -> None:
    """Run pgbench by index scans."""
    pgbench, _ = find_client("pgbench", find_programs(str(cluster.version.major)))
    env = {**cluster.client_env(), "PGOPTIONS": BY_INDEX}
    done = host.run([pgbench, *options, "postgres"], env=env)
    assert done.returncode == 0, done.stderr


def record(
    host: Host, cluster: Cluster, programs: ServerPrograms, tables: list[str], options: list[str]
) -> dict[str, Any]:
    """One run of a loaded cluster."""
    with cluster.connect(autocommit=True) as connection:
        connection.execute("SELECT pg_stat_reset()")
        connection.execute("CHECKPOINT")
        rows = connection.execute(
            "SELECT c.relname, c.relkind::text, pg_relation_filenode(c.oid)::text FROM pg_class c "
            "LEFT JOIN pg_index i ON i.indexrelid = c.oid "
            "WHERE coalesce(i.indrelid, c.oid) = ANY (%s::regclass[]) ORDER BY c.oid",
            (tables,),
        ).fetchall()
        start = connection.execute("SELECT pg_current_wal_insert_lsn()::text").fetchall()[0][0]
    run_pgbench(host, cluster, "-n", "-c", "1", "-j", "1", "-M", "prepared", *options)
    with cluster.connect(autocommit=True) as connection:
        end = connection.execute("SELECT pg_current_wal_insert_lsn()::text").fetchall()[0][0]
        connection.execute("SELECT pg_switch_wal()")
        wal = wal_of(host, cluster, programs, start, end, {number for _, _, number in rows})
        newpage = "n_tup_newpage_upd" if cluster.version.major >= 16 else "-1"
        counters = [
            connection.execute(
                f"SELECT n_tup_ins, n_tup_upd, n_tup_del, n_tup_hot_upd, {newpage} "
                "FROM pg_stat_user_tables WHERE relname = %s",
                (table,),
            ).fetchall()[0]
            for table in tables
        ]
        pages = [
            connection.execute("SELECT pg_relation_size(%s) / 8192", (name,)).fetchall()[0][0]
            for name, _, _ in rows
        ]
    return {
        "origin": f"PostgreSQL {cluster.version}",
        "pgbench": " ".join(Path(option).name for option in options),
        "tables": tables,
        "counter_names": ["n_tup_ins", "n_tup_upd", "n_tup_del", "n_tup_hot_upd", "n_tup_newpage"],
        "counters": [list(row) for row in counters],
        "relations": [name for name, _, _ in rows],
        "pages": [[page] for page in pages],
        "wal_names": list(wal),
        "wal": [list(totals) for totals in wal.values()],
    }


def write(folder: Path, name: str, content: dict[str, Any]) -> None:
    """Write a golden file, one row of figures a line."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = []
    for key, value in content.items():
        is_table = isinstance(value, list) and value and isinstance(value[0], list)
        text = (
            "[\n    " + ",\n    ".join(json.dumps(row) for row in value) + "\n  ]"
            if is_table
            else json.dumps(value)
        )
        parts.append(f"  {json.dumps(key)}: {text}")
    (folder / name).write_text("{\n" + ",\n".join(parts) + "\n}\n")


def record_builtin(host: Host, programs: ServerPrograms, fillfactor: int, images: str) -> None:
    """The tpcb-like script at scale 2."""
    cluster = host.cluster(f"tpcb-{fillfactor}-{images}")
    cluster.start({**SETTINGS, "full_page_writes": images})
    run_pgbench(host, cluster, "-i", "-I", "dtGvp", "-s", "2", "-F", str(fillfactor), "-q")
    tables = [f"pgbench_{name}" for name in ("history", "tellers", "accounts", "branches")]
    options = ["-b", "tpcb-like", "--random-seed=42", "-t", "20000"]
    content = record(host, cluster, programs, tables, options)
    content = {"fillfactor": fillfactor, "scale": 2, "full_page_writes": images, **content}
    folder = GOLDEN / str(cluster.version)
    write(folder, f"run-tpcb-{fillfactor}-fpw-{images}.json", content)
    cluster.stop()


def loaded(host: Host, name: str, images: str) -> Cluster:
    """A running cluster with the table of the mixed runs."""
    cluster = host.cluster(name)
    cluster.start({**SETTINGS, "full_page_writes": images})
    with cluster.connect(autocommit=True) as connection:
        for statement in MIXED_LOAD.strip().split(";\n"):
            connection.execute(statement.rstrip(";"))
    return cluster


def record_mixed(host: Host, programs: ServerPrograms, images: str) -> None:
    """Updates, deletes, upserts, locks, reads and rollbacks in one table with two indexes."""
    cluster = loaded(host, f"mixed-{images}", images)
    script = host.scratch / "mixed.sql"
    script.write_text(MIXED)
    options = ["-f", str(script), "--random-seed=7", "-t", "20000"]
    content = record(host, cluster, programs, ["m"], options)
    content = {"load": MIXED_LOAD, "script": MIXED, "full_page_writes": images, **content}
    write(GOLDEN / str(cluster.version), f"run-mixed-fpw-{images}.json", content)
    cluster.stop()


def main(versions: list[str]) -> None:
    """Record every version given, 18, 16 and 15 without any."""
    for spec in versions or ["18", "16", "15"]:
        programs = find_programs(spec)
        with Host(programs) as host:
            for fillfactor, images in [(100, "off"), (90, "off"), (100, "on")]:
                record_builtin(host, programs, fillfactor, images)
            for images in ("off", "on"):
                record_mixed(host, programs, images)
        print(f"recorded {programs.version}")


if __name__ == "__main__":
    main(sys.argv[1:])

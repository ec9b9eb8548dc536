"""
Record what `tprocc` with one user does to its tables and to WAL, for the twin's golden test.

    python tools/record_tprocc_golden.py 18 16

One warehouse, loaded and not aged, a row of every page fetched, CHECKPOINT, then a thousand
transactions of one user; afterwards counters and pages by table, and records by type out of the
server's own pg_waldump. Written to golden/expected/MAJOR.MINOR/tprocc.json.
"""

from __future__ import annotations

import functools
import re
import sys
from pathlib import Path

from pgheadroom.lab.experiments.tprocc import load, run
from pgheadroom.lab.experiments.tprocc.measure import counted, warm
from pgheadroom.lab.experiments.tprocc.schedules import TABLES
from pgheadroom.lab.opening import place_for
from pgheadroom.lab.place import Running, Shape
from pgheadroom.lab.wal_images import wal_position
from pgheadroom.servers import find_client

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "expected"
SEED = 2
TRANSACTIONS = 1000
SETTINGS = {
    "autovacuum": "off",
    "bgwriter_lru_maxpages": "0",
    "fsync": "off",
    "jit": "off",
    "max_wal_size": "16GB",
    "shared_buffers": "512MB",
}
COUNTERS = ("n_tup_ins", "n_tup_upd", "n_tup_del", "n_tup_hot_upd", "n_tup_newpage_upd")
OURS = re.compile(
    r"^((?:Heap2?|Btree|Transaction)/\S+|XLOG/FPI_FOR_HINT)\s+(\d+) \(.*?\)\s+(\d+) ", re.MULTILINE
)


def read(server: Running) -> dict[str, list[int]]:
    """Counters of each table, then its pages and those of its indexes."""
    with server.connect() as connection:
        return {
            table: list(
                connection.execute(
                    f"SELECT {', '.join(COUNTERS)}, pg_relation_size(relid) / 8192, "
                    "pg_indexes_size(relid) / 8192 "
                    "FROM pg_stat_user_tables WHERE relname = %s",
                    (table,),
                ).fetchall()[0]
            )
            for table in TABLES
        }


def record(name: str) -> None:
    """Record one version."""
    loaded = functools.partial(load.load, warehouses=1, level=100, workers=1)
    with place_for(name) as place:
        shape = Shape(
            name="tprocc", load=lambda server: void(loaded(server.connect)), bytes_expected=2**28
        )
        with place.running(shape, SETTINGS) as server:
            warm(server)
            counted(server)
            before, start = read(server), wal_position(server)
            users = run.Users(count=1, at_home=False, warehouses=1)
            run.run(server, users, seed=SEED, length=("-t", str(TRANSACTIONS)))
            counted(server)
            after, end = read(server), wal_position(server)
            assert server.host is not None
            assert server.cluster is not None
            program, _ = find_client("pg_waldump", server.host.programs)
            folder = str(server.cluster.data_dir / "pg_wal")
            options = ["--stats=record", "-p", folder, "-s", start, "-e", end]
            found = OURS.findall(server.host.run([program, *options], timeout=600).stdout)
            write(str(server.version), before, after, found)


def void(_: float) -> None:
    """A load says how long it took; a shape's load says nothing."""


def write(
    version: str,
    before: dict[str, list[int]],
    after: dict[str, list[int]],
    found: list[tuple[str, str, str]],
) -> None:
    """The golden file, a row a line."""
    counters = [[after[table][n] - before[table][n] for n in range(5)] for table in TABLES]
    lines = {
        "loaded": [before[table][5:] for table in TABLES],
        "counters": counters,
        "pages": [after[table][5:] for table in TABLES],
        "wal": [[int(records), int(bytes_)] for _, records, bytes_ in sorted(found)],
    }
    quoted = ", ".join(f'"{table}"' for table in TABLES)
    names = ", ".join(f'"{each[0]}"' for each in sorted(found))
    counted_names = ", ".join(f'"{each}"' for each in COUNTERS)
    parts = [
        f'  "origin": "PostgreSQL {version}"',
        f'  "pgbench": "-s 1 -c 1 --random-seed={SEED} -t {TRANSACTIONS}"',
        f'  "tables": [{quoted}]',
        f'  "counter_names": [{counted_names}]',
        '  "page_names": ["heap", "indexes"]',
        f'  "wal_names": [{names}]',
        *(
            f'  "{key}": [\n' + ",\n".join(f"    {row}" for row in rows) + "\n  ]"
            for key, rows in lines.items()
        ),
    ]
    path = GOLDEN / version / "tprocc.json"
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")
    print(path)


if __name__ == "__main__":
    for each in sys.argv[1:]:
        record(each)

"""
Record what servers do to a heap: `python tools/record_heap_golden.py [18 16 15]`.

Plays the scenarios of `heap_scenarios.py` and writes `golden/expected/<version>/heap-<name>.json`:
after each step the sizes of the forks and the WAL records of table and index by type, at the end
every page with its line pointers and hint bits, the visibility map and the free space map. The
twin plays the same in `crates/pgheadroom-twin/tests/golden_heap_recorded.rs`.

A page is `lower upper flags prunable: item item*count ...`; flags are the sum of pd_flags. An item
is `u` (unused), `d` (dead), `r5` (redirect to 5), or a tuple's length and its letters: H heap-only,
U HOT-updated, n made by an update, l only locked; c or f for an inserter noted or frozen, x for a
deleter noted.
"""

from __future__ import annotations

import json
import struct
import sys
from collections import Counter
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from heap_scenarios import SCENARIOS, Scenario
from record_run_golden import LINE, RELATION

from pgheadroom.play.waldump import window_arguments
from pgheadroom.servers import Host, find_programs
from pgheadroom.servers.cluster import Cluster

if TYPE_CHECKING:
    import psycopg

    from pgheadroom.servers.programs import ServerPrograms

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "expected"
BLCKSZ = 8192
SETTINGS = {
    "autovacuum": "off",
    "shared_buffers": "256MB",
    "bgwriter_lru_maxpages": "0",
    "max_wal_size": "8GB",
    "wal_keep_size": "4GB",
    "checkpoint_timeout": "1d",
    "jit": "off",
    "enable_bitmapscan": "off",
    "enable_indexonlyscan": "off",
    "max_parallel_workers_per_gather": "0",
    "max_parallel_maintenance_workers": "0",
    "synchronize_seqscans": "off",
}
HEAP_NATTS_BITS = {"H": 0x8000, "U": 0x4000}
INFOMASK_BITS = {"n": 0x2000, "l": 0x0080}


def tuple_text(data: bytes, length: int) -> str:
    """Length and letters of a tuple."""
    infomask2, infomask = struct.unpack_from("<HH", data, 18)
    letters = [letter for letter, bit in HEAP_NATTS_BITS.items() if infomask2 & bit]
    letters += [letter for letter, bit in INFOMASK_BITS.items() if infomask & bit]
    xmin = infomask & 0x0300
    letters += ["f" if xmin == 0x0300 else "c"] if xmin else []
    letters += ["x"] if infomask & 0x0C00 else []
    return f"{length}{''.join(letters)}"


def page_text(page: bytes) -> str:
    """One page of the heap."""
    flags, lower, upper, _, _, prune_xid = struct.unpack_from("<HHHHHI", page, 10)
    if upper == 0:
        return "new"
    items = []
    for (word,) in struct.iter_unpack("<I", page[24:lower]):
        offset, state, length = word & 0x7FFF, word >> 15 & 3, word >> 17
        if state == 1:
            items.append(tuple_text(page[offset : offset + length], length))
        else:
            items.append({0: "u", 2: f"r{offset}", 3: "d"}[state])
    runs = [(item, len(list(run))) for item, run in groupby(items)]
    texts = [f"{item}*{count}" if count > 1 else item for item, count in runs]
    return f"{lower} {upper} {flags} {int(prune_xid != 0)}: {' '.join(texts)}".rstrip()


def fork(cluster: Cluster, path: str, suffix: str) -> bytes:
    """Content of a fork; empty when there is none."""
    file = cluster.data_dir / (path + suffix)
    return file.read_bytes() if file.exists() else b""


def visibility(content: bytes, pages: int) -> str:
    """Two bits a page as a digit."""
    digits = []
    for block in range(pages):
        map_page, slot = divmod(block, (BLCKSZ - 24) * 4)
        at = map_page * BLCKSZ + 24 + slot // 4
        digits.append(content[at] >> slot % 4 * 2 & 3 if at < len(content) else 0)
    return "".join(map(str, digits))


def free_space(content: bytes, pages: int) -> str:
    """Categories of the pages; tables here need one bottom page, the third of the fork."""
    start = 2 * BLCKSZ + 24 + 4 + 4095
    slots = content[start : start + pages].ljust(pages, b"\0")
    runs = [(slot, len(list(run))) for slot, run in groupby(slots)]
    return " ".join(f"{slot}*{count}" if count > 1 else str(slot) for slot, count in runs)


class Player:
    """Plays one scenario on a running cluster."""

    def __init__(self, host: Host, cluster: Cluster, programs: ServerPrograms) -> None:
        self.host, self.cluster, self.programs = host, cluster, programs
        self.connection = cluster.connect(autocommit=True)
        self.other: psycopg.Connection | None = None
        self.files: set[str] = set()

    def sql(self, text: str) -> None:
        """Run a statement."""
        self.connection.execute(text)

    def value(self, text: str) -> str:
        """One value."""
        return str(self.connection.execute(text).fetchall()[0][0])

    def table(self, *words: str) -> None:
        """CREATE TABLE."""
        key = " PRIMARY KEY" if "key" in words else ""
        options = ", ".join(word for word in words if word != "key")
        self.sql(f"CREATE TABLE h (id int{key}, v int, p char(64)) WITH ({options})")
        rows = self.connection.execute(
            "SELECT pg_relation_filenode(oid)::text FROM pg_class WHERE relname LIKE 'h%' "
            "AND relnamespace = 'public'::regnamespace"
        ).fetchall()
        self.files = {row[0] for row in rows}

    def step(self, step: str) -> None:
        """One step."""
        word, *words = step.split()
        scan, by_key = word in ("update", "delete", "lock", "select"), word.endswith("_key")
        self.sql(f"SET enable_seqscan = {'off' if by_key else 'on'}")
        self.sql(f"SET enable_indexscan = {'off' if scan else 'on'}")
        if word == "table":
            self.table(*words)
        elif word == "insert":
            a, b = words
            self.sql(f"INSERT INTO h SELECT i, 0, '' FROM generate_series({a}, {b}) i")
        elif scan or by_key:
            self.sql(self.statement(word.removesuffix("_key"), words))
        elif word in ("begin", "commit", "rollback", "checkpoint"):
            self.sql(word)
        elif word == "vacuum":
            options = ["FREEZE"] * ("freeze" in words) + ["TRUNCATE FALSE"] * ("keep" in words)
            self.sql("VACUUM" + (f" ({', '.join(options)})" if options else "") + " h")
        elif word == "hold":
            self.other = self.cluster.connect(autocommit=False)
            self.other.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            self.other.execute("SELECT count(*) FROM pg_class")
        else:
            assert word == "release", step
            assert self.other, "nothing is held"
            self.other.rollback()
            self.other.close()

    @staticmethod
    def statement(kind: str, words: list[str]) -> str:
        """SQL of a change or a read."""
        where = ""
        if len(words) == 4:
            m, r, a, b = words
            where = f" WHERE (id + 0) % {m} = {r} AND id + 0 BETWEEN {a} AND {b}"
        elif words:
            where = f" WHERE id BETWEEN {words[0]} AND {words[1]}"
        return {
            "update": f"UPDATE h SET v = v + 1{where}",
            "delete": f"DELETE FROM h{where}",
            "lock": f"SELECT * FROM h{where} FOR UPDATE",
            "select": f"SELECT * FROM h{where}",
        }[kind]

    def wal(self, start: str, end: str) -> str:
        """Records and bytes by type between two positions, of table and index."""
        if start == end:
            return ""
        dump = self.programs.program("pg_waldump")
        done = self.host.run(
            [dump, "-p", self.cluster.data_dir / "pg_wal", *window_arguments(start, end)]
        )
        assert done.returncode == 0, done.stderr
        records: Counter[str] = Counter()
        bytes_: Counter[str] = Counter()
        for line in done.stdout.splitlines():
            found = LINE.match(line)
            assert found, line
            if "blkref #0" in line and self.files & {file for _, file in RELATION.findall(line)}:
                name = f"{found[1]}/{found[3]}".rstrip(",")
                records[name] += 1
                bytes_[name] += int(found[2])
        return "; ".join(f"{name} {records[name]} {bytes_[name]}" for name in sorted(records))

    def play(self, steps: tuple[str, ...]) -> dict[str, object]:
        """All steps; what came of them."""
        told: list[tuple[str, str, str]] = []
        for step in steps:
            start = self.value("SELECT pg_current_wal_insert_lsn()")
            self.step(step)
            end = self.value("SELECT pg_current_wal_insert_lsn()")
            forks = [
                self.value(f"SELECT pg_relation_size('h', '{name}') / {BLCKSZ}")
                for name in ("main", "fsm", "vm")
            ]
            told.append((f"{step} -> {' '.join(forks)}", start, end))
        # The commit of a transaction that wrote something writes out all WAL before it. Only now,
        # because it takes a transaction number.
        self.sql("SELECT pg_logical_emit_message(true, '', '')")
        lines = [f"{text}: {self.wal(start, end)}".rstrip(": ") for text, start, end in told]
        path = self.value("SELECT pg_relation_filepath('h')")
        self.sql("CHECKPOINT")
        heap = fork(self.cluster, path, "")
        pages = [heap[at : at + BLCKSZ] for at in range(0, len(heap), BLCKSZ)]
        runs = [(text, len(list(run))) for text, run in groupby(map(page_text, pages))]
        return {
            "steps": lines,
            "pages": [f"{count} x {text}" for text, count in runs],
            "vm": [visibility(fork(self.cluster, path, "_vm"), len(pages))],
            "fsm": [free_space(fork(self.cluster, path, "_fsm"), len(pages))],
        }


def record(cluster: Cluster, host: Host, programs: ServerPrograms, scenario: Scenario) -> None:
    """Play a scenario and write what came of it."""
    cluster.start({**SETTINGS, "full_page_writes": "on" if scenario.images else "off"})
    player = Player(host, cluster, programs)
    player.sql("DROP TABLE IF EXISTS h")
    checksums = player.value("SHOW data_checksums") == "on"
    played = player.play(scenario.steps)
    player.connection.close()
    cluster.stop()
    content = {
        "origin": f"PostgreSQL {cluster.version}",
        "rule": scenario.rule,
        "settings": f"images={int(scenario.images)} checksums={int(checksums)}",
        **played,
    }
    folder = GOLDEN / str(cluster.version)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"heap-{scenario.name}.json").write_text(json.dumps(content, indent=1) + "\n")


def main(arguments: list[str]) -> None:
    """Record every version given, 18, 16 and 15 without any; other words name scenarios."""
    names = {scenario.name for scenario in SCENARIOS} & set(arguments)
    for spec in [word for word in arguments if word not in names] or ["18", "16", "15"]:
        programs = find_programs(spec)
        chosen = [scenario for scenario in SCENARIOS if not names or scenario.name in names]
        for checksums in (None, False, True):
            group = [scenario for scenario in chosen if scenario.checksums == checksums]
            if not group:
                continue
            with Host(programs, data_checksums=checksums) as host:
                cluster = host.cluster("heap")
                for scenario in group:
                    record(cluster, host, programs, scenario)
        print(f"recorded {len(chosen)} scenarios on {programs.version}")


if __name__ == "__main__":
    main(sys.argv[1:])

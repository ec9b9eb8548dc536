"""
`wal stats` beside pg_waldump, the server's counters and pg_walinspect, on a GB of each version.

    python tools/wal_truth.py [--server 18]... [--mib 1024] [--keep FOLDER]

Each server writes its log under `wal_level` minimal, replica and logical in turn: pgbench, TPROC-C,
COPY, index builds of every method, VACUUM, VACUUM FREEZE and FULL, aborts, subtransactions,
prepared transactions, logical messages, sequences. Then the total and each record type have to be
pg_waldump's, sums over relations and over causes the total, and what tables count (inserts,
deletes, updates, HOT and new-page updates) the server's own counters. A server with pg_walinspect
has to say the same of each relation and cause of the last few segments. Ends with 1 where anything
differs.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wal_truth_work import COUNTED, KINDS, ROUND, SCRIPT, SETTINGS, STATEMENT_ENDS

from pgheadroom.errors import LabError
from pgheadroom.lab.experiments import tprocc
from pgheadroom.lab.experiments.tprocc.load import load
from pgheadroom.lab.experiments.tprocc.run import MIX
from pgheadroom.servers import Cluster, Host, ServerPrograms, at_hand, find_client, find_programs
from pgheadroom.wal import Names, WalStats, inspecting, names_of_server, read_wal
from pgheadroom.wal.reading import parsed_position
from pgheadroom.wal.values import RelationWal

if TYPE_CHECKING:
    import psycopg

MIB = 2**20
LEVELS = ("minimal", "replica", "logical")
INSPECTED_BYTES = 48 * MIB
WHOLE_BYTES = 1024 * MIB
"""Log for which a round has all its rows and transactions; for less it has fewer of them."""
SIZE_LEAST = 0.1
COUNTERS = """
SELECT n.nspname || '.' || c.relname, pg_stat_get_tuples_inserted(c.oid),
    pg_stat_get_tuples_deleted(c.oid), pg_stat_get_tuples_updated(c.oid),
    pg_stat_get_tuples_hot_updated(c.oid), {newpage}
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'r' AND n.nspname = 'public' AND pg_stat_get_tuples_inserted(c.oid) > 0
"""
UNLOGGED_ROWS = {
    ("pgbench", "pgbench_accounts"),
    ("pgbench", "pgbench_branches"),
    ("pgbench", "pgbench_tellers"),
    ("tprocc_minimal", "tprocc_load"),
}
"""Filled in the transaction that made them, which a minimal log has no records of."""
UPDATES = ("hot_update", "cold_update", "newpage_update")


def main() -> int:
    """Play, read, compare; one server after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--server", action="append", default=[], help="version or folder; without it all at hand"
    )
    parser.add_argument("--mib", type=int, default=1024, help="least log of each server")
    parser.add_argument("--keep", type=Path, help="copy the segments here, a folder each version")
    arguments = parser.parse_args()
    failed = 0
    for programs in list(map(find_programs, arguments.server)) or at_hand():
        began = time.monotonic()
        failures = truth(programs, arguments.mib * MIB, arguments.keep)
        for failure in failures:
            print(f"  FAILED {failure}")
        verdict = "FAILED" if failures else "good"
        print(f"PostgreSQL {programs.version}: {verdict}, {time.monotonic() - began:.0f} s")
        sys.stdout.flush()
        failed += len(failures)
    return bool(failed)


def truth(programs: ServerPrograms, least_bytes: int, keep: Path | None) -> list[str]:
    """Everything on one server; what differs, in words."""
    with Host(programs) as host:
        cluster = host.cluster("truth")
        cluster.start(SETTINGS)
        with cluster.connect() as connection:
            begin = str(_value(connection, "SELECT pg_current_wal_insert_lsn()"))
            _make_databases(connection)
        cluster.stop()
        for place, level in enumerate(LEVELS, start=1):
            senders = "0" if level == "minimal" else "10"
            cluster.start({**SETTINGS, "wal_level": level, "max_wal_senders": senders})
            write_log(host, cluster, level, begin, (least_bytes, place))
            if level != LEVELS[-1]:
                cluster.stop()
        with cluster.connect() as connection:
            names = names_of_server(connection.info.dsn, {})
            counters = _counters(cluster, connection)
            inspected = _inspected(connection, names)
        cluster.stop()
        folder = cluster.data_dir / "pg_wal"
        if keep is not None:
            shutil.copytree(folder, keep / str(programs.version))
        stats = read_wal(folder, begin=begin, names=names)
        print(f"PostgreSQL {programs.version}: {stats.total.records} records,", end=" ")
        print(f"{stats.total.bytes} bytes, of it images {stats.total.fpi_bytes};", end=" ")
        print(f"{len(stats.record_types)} record types, {len(stats.relations)} relations")
        failures = [*_of_sums(stats), *_of_types(host, folder, begin, stats)]
        if stats.total.bytes < least_bytes:
            failures.append(f"{stats.total.bytes} bytes of log where {least_bytes} were wanted")
        failures += _of_counters(stats, counters)
        if inspected is None:
            print("  no pg_walinspect")
        else:
            failures += _of_inspection(inspected, folder, names)
    return failures


def write_log(host: Host, cluster: Cluster, level: str, begin: str, least: tuple[int, int]) -> None:
    """One level's work: histories once, then rounds until its share of the bytes is written."""
    least_bytes, place = least
    until_bytes = least_bytes * place // len(LEVELS)
    size = max(SIZE_LEAST, min(1.0, least_bytes / WHOLE_BYTES))
    with cluster.connect() as connection:
        _play(connection, COUNTED.replace("counted", f"counted_{level}"))
    with cluster.connect(level) as connection:
        _play(connection, KINDS)
    load(lambda: cluster.connect(f"tprocc_{level}"), warehouses=1, level=80, workers=1)
    _pgbench(host, cluster, "pgbench", ["-i", "-q", "-s", "4"] if level == "minimal" else [])
    script = host.scratch / "truth.pgbench"
    _put(script, SCRIPT)
    scripts = []
    for name, weight in MIX.items():
        _put(host.scratch / f"{name}.pgbench", (_tprocc() / f"{name}.pgbench").read_text())
        scripts += ["-f", f"{host.scratch / name}.pgbench@{weight}"]
    mix = ["-n", "-M", "prepared", "-s", "1", "-D", "fixed_home=0", "-c", "2", *scripts]
    for number in range(10_000):
        seed = f"--random-seed={number}"
        _pgbench(host, cluster, "pgbench", ["-n", "-c", "2", "-t", _of(size, 1500), seed])
        kept = ["-n", "-c", "2", "-t", _of(size, 500), "-f", str(script), seed]
        _pgbench(host, cluster, "pgbench", kept)
        _pgbench(host, cluster, f"tprocc_{level}", [*mix, "-t", _of(size, 800), seed])
        with cluster.connect(level) as connection:
            _play(connection, ROUND, size)
        # What pg_switch_wal leaves empty, and page headers, are no bytes of records.
        if read_wal(cluster.data_dir / "pg_wal", begin=begin).total.bytes > until_bytes:
            break


def _of(size: float, whole: int) -> str:
    """A round's number of transactions."""
    return str(round(whole * size))


def _make_databases(connection: psycopg.Connection[Any]) -> None:
    for name in ("pgbench", *LEVELS, *(f"tprocc_{level}" for level in LEVELS)):
        connection.execute(f"CREATE DATABASE {name}".encode())


def _tprocc() -> Path:
    return Path(str(tprocc.__file__)).parent


def _put(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o644)  # the client may be another user


def _pgbench(host: Host, cluster: Cluster, dbname: str, arguments: Sequence[str]) -> None:
    if arguments:
        program, _ = find_client("pgbench", host.programs)
        done = host.run([program, *arguments], env={**cluster.client_env(), "PGDATABASE": dbname})
        if done.returncode:
            raise LabError(f"pgbench ended with {done.returncode}: {done.stderr[-500:]}")


def _value(connection: psycopg.Connection[Any], query: str) -> Any:
    row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]


def _play(connection: psycopg.Connection[Any], history: str, size: float = 1.0) -> None:
    """Statement after statement; COPY takes that share of its rows."""
    for statement in filter(None, re.split(STATEMENT_ENDS, history.strip())):
        if statement.startswith("COPY"):
            copy, rows = statement.split("\n", 1)
            with connection.cursor().copy(copy.encode()) as into:
                into.write("".join(f"{row}\n" for row in _rows(rows, size)))
        elif "bloom" not in statement or _has(connection, "bloom"):
            connection.execute(statement.encode())


def _rows(expression: str, size: float) -> Iterable[str]:
    """Rows of a COPY: `FIRST LAST`."""
    first, last = (round(int(number) * size) for number in expression.split())
    for i in range(first, last):
        point, numbers = f"({i % 97},{i % 89})", f"{{{i % 10},{i % 100}}}"
        yield f"{i}\t{i * 2654435761 % 2**32:032x}\t{point}\t{numbers}\t{i}"


def _has(connection: psycopg.Connection[Any], extension: str) -> bool:
    query = f"SELECT count(*) FROM pg_available_extensions WHERE name = '{extension}'"
    return bool(_value(connection, query))


def _counters(
    cluster: Cluster, connection: psycopg.Connection[Any]
) -> dict[tuple[str, str], tuple[int, ...]]:
    """By database and table: inserts, deletes, updates, HOT and new-page (-1: not counted)."""
    has_newpage = connection.info.server_version >= 160000
    newpage = "pg_stat_get_tuples_newpage_updated(c.oid)" if has_newpage else "-1"
    found = {}
    for dbname in ("postgres", "pgbench", *(f"tprocc_{level}" for level in LEVELS)):
        with cluster.connect(dbname) as asked:
            for name, *numbers in asked.execute(COUNTERS.format(newpage=newpage).encode()):
                found[dbname, str(name).removeprefix("public.")] = tuple(map(int, numbers))
    return found


def _of_sums(stats: WalStats) -> Iterable[str]:
    """Sums over relations and causes, and parts that were not read."""
    for what in ("records", "bytes", "fpi_bytes"):
        over = sum(getattr(one, what) for one in stats.relations)
        if over != getattr(stats.total, what):
            yield f"{what}: {over} over relations, {getattr(stats.total, what)} in all"
    for what in ("records", "bytes"):
        over = sum(getattr(count, what) for count in stats.by_cause.values())
        if over != getattr(stats.total, what):
            yield f"{what}: {over} over causes, {getattr(stats.total, what)} in all"
    for one in stats.relations:
        if sum(count.bytes for count in one.by_cause.values()) != one.bytes:
            yield f"causes of {one.name or one.relfilenode} are not its {one.bytes} bytes"
    for gap in stats.gaps:
        yield f"not read: {gap}"


def _of_types(host: Host, folder: Path, begin: str, stats: WalStats) -> Iterable[str]:
    """Each record type and the total beside pg_waldump's."""
    program, version = find_client("pg_waldump", host.programs)
    if version.major != host.programs.version.major:
        yield f"pg_waldump of {version} for a server of {host.programs.version}"
        return
    printed = subprocess.run(  # it ends with an error where the log does
        [program, "-p", folder, "-s", begin, "--stats=record"],
        check=False,
        capture_output=True,
        text=True,
    ).stdout
    share = r"\s*(?:\(\s*[\d.]+\)|\[\s*[\d.]+%\])?\s+"
    line = re.compile(rf"^(\S+/\S+|\S+/UNKNOWN \(\w+\)|Total)\s+(\d+){share}(\d+){share}(\d+)\s")
    theirs = {
        match[1]: (int(match[2]), int(match[3]), int(match[4]))
        for match in map(line.match, printed.splitlines())
        if match is not None and int(match[2])
    }
    ours = {
        f"{kind.rmgr}/{kind.type}": (kind.records, kind.bytes - kind.fpi_bytes, kind.fpi_bytes)
        for kind in stats.record_types
    }
    total = stats.total
    ours["Total"] = (total.records, total.bytes - total.fpi_bytes, total.fpi_bytes)
    for name in sorted(ours.keys() | theirs.keys()):
        if ours.get(name) != theirs.get(name):
            yield f"{name}: {ours.get(name)}, pg_waldump {theirs.get(name)}"
    print(f"  {len(theirs)} lines of pg_waldump {version} compared")


def _of_counters(
    stats: WalStats, counters: dict[tuple[str, str], tuple[int, ...]]
) -> Iterable[str]:
    """Updates, HOT and new-page ones, and deletes of each table; inserts but for COPY's."""
    logged = {(one.database, one.name): one for one in stats.relations if one.name}
    figures = 0
    for (database, table), (inserted, deleted, updated, hot, newpage) in counters.items():
        one = logged.get((database, table))
        pairs = {
            "deletes": (_count(one, ("delete",)), deleted),
            "updates": (_count(one, UPDATES), updated),
            "HOT updates": (_count(one, ("hot_update",)), hot),
        }
        if newpage >= 0:
            pairs["new-page updates"] = (_count(one, ("newpage_update",)), newpage)
        # Rows of COPY share records.
        if not _count(one, ("multi_insert",)) and (database, table) not in UNLOGGED_ROWS:
            pairs["inserts"] = (_count(one, ("insert",)), inserted)
        figures += len(pairs)
        for what, (ours, theirs) in pairs.items():
            if ours != theirs:
                yield f"{database}.{table}: {ours} {what}, the server counted {theirs}"
    print(f"  {figures} figures of {len(counters)} tables compared with the server's counters")


def _count(one: RelationWal | None, causes: Iterable[str]) -> int:
    found = {} if one is None else one.by_cause
    return sum(found[cause].records for cause in causes if cause in found)


def _inspected(connection: psycopg.Connection[Any], names: Names) -> WalStats | None:
    """The last segments as pg_walinspect has them; None where it is not installed."""
    if not _has(connection, "pg_walinspect"):
        return None
    connection.execute("CREATE EXTENSION pg_walinspect")
    connection.execute("CHECKPOINT")
    flushed = parsed_position(str(_value(connection, "SELECT pg_current_wal_flush_lsn()::text")))
    schema = inspecting.schema_of(connection)
    assert flushed is not None
    assert schema is not None
    return inspecting.inspect(
        connection,
        schema,
        lambda: flushed,
        begin=flushed - INSPECTED_BYTES,
        seconds=0.0,
        wait=lambda _: True,
        names=lambda: names,
    )


def _of_inspection(inspected: WalStats, folder: Path, names: Names) -> Iterable[str]:
    """Total, record types, and each relation's causes (from 16 on) beside the files'."""
    files = read_wal(folder, begin=inspected.start_lsn, end=inspected.end_lsn, names=names)
    if inspected.total != files.total:
        yield f"pg_walinspect: {inspected.total}, files {files.total}"
    if set(inspected.record_types) != set(files.record_types):
        yield "pg_walinspect: other record types than the files have"
    ours, theirs = (
        {(one.database_oid, one.relfilenode): one for one in found.relations}
        for found in (inspected, files)
    )
    if ours.keys() != theirs.keys():
        yield "pg_walinspect: other relations than the files have"
    elif int(files.server) >= inspecting.BLOCKS_FROM_MAJOR:
        for key, one in ours.items():
            if one != theirs[key]:
                yield f"pg_walinspect, {one.name or key}: {one}, files {theirs[key]}"
    else:  # the length of a block's data is not said there
        for key, one in ours.items():
            if (one.records, one.fpi_bytes) != (theirs[key].records, theirs[key].fpi_bytes):
                yield f"pg_walinspect, {one.name or key}: other records or images"
    causes = sum(len(one.by_cause) for one in theirs.values())
    print(f"  pg_walinspect: {files.total.records} records, {len(theirs)} relations,", end=" ")
    print(f"{causes} of their causes, {files.total.bytes} bytes compared")


if __name__ == "__main__":
    sys.exit(main())

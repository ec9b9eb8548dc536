"""
One workload at several checkpoint distances: each curve of `wal what-if` beside the other logs.

    python tools/wal_curves.py [--server 18] [--checksums on] [--scale 50] [--transactions 60000]

Fails where images without checksums are more than 3 % off, or with them outside the range that is
stated, and where a log is too short for a checkpoint: two such distances would be one. One segment
between checkpoints is judged by the range alone: a server does not keep up there, and how far it
falls behind differs from run to run.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from pgheadroom.servers import Host, ServerPrograms, find_client, find_programs
from pgheadroom.wal import Grid, WhatIf, wal_what_if
from pgheadroom.wal.what_if_values import CheckpointWal, Range, middle

MIB = 2**20
SIZES_MIB = (48, 96, 192, 384, 768)
JUDGED_FROM_MIB = 96
OFF_FRAC_MOST = 0.03
SETTINGS = {
    "autovacuum": "off",
    "wal_keep_size": "4GB",
    "min_wal_size": "32MB",
    "checkpoint_timeout": "1h",
    "synchronous_commit": "off",
}


@dataclass(frozen=True)
class Log:
    """What one run has left: its curve, and whether pages have checksums."""

    size_mib: int
    curve: WhatIf
    has_checksums: bool


def main() -> int:
    """Play, ask, compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", default="18")
    parser.add_argument("--checksums", choices=("on", "off"), help="else as initdb has them")
    parser.add_argument("--scale", type=int, default=50)
    parser.add_argument("--transactions", type=int, default=60_000)
    arguments = parser.parse_args()
    programs = find_programs(arguments.server)
    checksums = None if arguments.checksums is None else arguments.checksums == "on"
    logs = [
        played(programs, checksums, size_mib, arguments.scale, arguments.transactions)
        for size_mib in SIZES_MIB
    ]
    print(f"PostgreSQL {programs.version}, checksums {logs[0].has_checksums}")
    failed = 0
    for place, log in enumerate(logs, start=1):
        now = log.curve.checkpoint[0]
        print(
            f"log at {log.size_mib} MB: {now.bytes} bytes, {now.fpi_bytes} of images, "
            f"{now.checkpoints} checkpoints, {log.curve.length_s:.0f} s"
        )
        # Up to 16 a log names a checkpoint only when it has ended.
        if not log.curve.checkpoint[place].checkpoints:
            print("  no checkpoint: more --transactions are needed  FAILED")
            failed += 1
        for one, other in zip(log.curve.checkpoint[1:], logs, strict=True):
            failed += not compared(one, other)
    print(f"{failed} failed")
    return bool(failed)


def played(
    programs: ServerPrograms,
    checksums: bool | None,
    size_mib: int,
    scale: int,
    transactions: int,
) -> Log:
    """The log of pgbench at this max_wal_size, asked for all of them."""
    folder = Path(tempfile.mkdtemp(prefix="pgh-curves-"))
    try:
        with Host(programs) as host:
            cluster = host.cluster("curves", data_checksums=checksums)
            cluster.start({**SETTINGS, "max_wal_size": f"{size_mib}MB"})
            pgbench, _ = find_client("pgbench", programs)
            environment = {**cluster.client_env(), "PGDATABASE": "postgres"}
            host.run([pgbench, "-i", "-q", "-s", str(scale)], env=environment)
            with cluster.connect() as connection:
                connection.execute(b"VACUUM ANALYZE")
                connection.execute(b"CHECKPOINT")
                asked = "SELECT redo_lsn::text, current_setting('data_checksums') "
                row = connection.execute((asked + "FROM pg_control_checkpoint()").encode())
                begin, verified = row.fetchone() or ("", "")
            run = ["-n", "-c", "1", "-t", str(transactions), "--random-seed=7"]
            host.run([pgbench, *run], env=environment)
            with cluster.connect() as connection:
                row = connection.execute(b"SELECT pg_current_wal_insert_lsn()::text")
                (end,) = row.fetchone() or ("",)
            cluster.stop()
            for path in (cluster.data_dir / "pg_wal").glob("[0-9A-F]" * 24):
                shutil.copy(path, folder)
        grid = Grid(timeouts_s=(3600.0,), sizes_bytes=[size * MIB for size in SIZES_MIB])
        curve = wal_what_if(folder, begin=begin, end=end, grid=grid, images_most=1)
        return Log(size_mib, curve, verified == "on")
    finally:
        shutil.rmtree(folder)


def compared(one: CheckpointWal, other: Log) -> bool:
    """Whether what one log says of a distance is what the log at that distance was."""
    truth = middle(other.curve.checkpoint[0].fpi_bytes)
    found = one.fpi_bytes
    off = middle(found) / truth - 1
    ends = (found.low, found.high) if isinstance(found, Range) else (found, found)
    within = ends[0] <= truth <= ends[1]
    is_good = abs(off) <= OFF_FRAC_MOST
    by_range = other.has_checksums or other.size_mib < JUDGED_FROM_MIB
    if by_range and isinstance(found, Range):
        is_good = within
    low, high = (end / truth - 1 for end in ends)
    verdict = "good" if is_good else "FAILED"
    print(
        f"  at {other.size_mib:4} MB: images {off:+.2%} [{low:+.2%}, {high:+.2%}], checkpoints "
        f"{one.checkpoints} and {other.curve.checkpoint[0].checkpoints}  {verdict}"
    )
    return is_good


if __name__ == "__main__":
    sys.exit(main())

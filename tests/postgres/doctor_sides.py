"""
The two sides of a doctor's rule: databases, looking by a clock that is ahead, and right numbers.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from observed import reload, wait_until
from psycopg import Connection
from psycopg.pq import TransactionStatus

from pgheadroom.doctor import Examination, all_rules, rule_named
from pgheadroom.doctor.values import Diagnosis, Finding
from pgheadroom.servers import Cluster
from pgheadroom.sources.session import read_only_session

DAY_S = 86_400.0
INTERVAL_S = 60.0

SETTINGS = {
    "fsync": "on",  # what a healthy server has; nothing here is much
    "synchronous_commit": "off",  # but nobody waits for it
    "autovacuum": "on",
    "autovacuum_naptime": "2147483",  # never comes by itself
    "wal_level": "logical",
    "archive_mode": "on",
    "archive_command": "true",
    "max_prepared_transactions": "4",
    "max_wal_size": "64MB",
    "min_wal_size": "32MB",
    "checkpoint_timeout": "1h",
    "shared_buffers": "4MB",
    "bgwriter_lru_maxpages": "0",  # statements write themselves
    "max_parallel_workers_per_gather": "0",  # each worker counts a scan of its own
}
"""Of the server that scenarios share."""

_MANY_FILES = (
    "DO $$ BEGIN FOR i IN 1..200 LOOP EXECUTE format('CREATE TABLE many%s (v int)', i); "
    "EXECUTE format('INSERT INTO many%s SELECT generate_series(1, 1000)', i); END LOOP; END $$"
)

Check = Callable[[Finding, Diagnosis], None]


def nothing_more(_finding: Finding, _diagnosis: Diagnosis) -> None:
    """Severity and object say it all."""


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """
    A rule's two sides.

    Attributes:
        rule: Its id.
        about: The finding's object.
        severity: The finding's.
        common: Statements of both sides, each ended by `;` and a line break; one that begins with
            `!` may fail.
        fires, silent: The statements of one side, after those.
        work: Done by both inside an interval; None: one reading.
        interval_s: How long that is, by the clock that is ahead.
        ahead_s: How much later the clock is, on the side that fires and on its counterpart.
        check: Holds the numbers against what was done.
        undo: Takes back what is not the database's own.
        leave: Done in each database before it is dropped.
        since, until: The first major that has the rule, and the last.
    """

    rule: str
    about: str
    severity: str
    common: str = ""
    fires: str = ""
    silent: str = ""
    work: str | None = None
    interval_s: float = INTERVAL_S
    ahead_s: tuple[float, float] = (0.0, 0.0)
    check: Check = nothing_more
    undo: str = ""
    leave: str = ""
    since: int = 15
    until: int = 99
    name: str = field(default="")


def run(cluster: Cluster, dbname: str, statements: str) -> None:
    """Each by itself; what they count is there when this returns."""
    with cluster.connect(dbname, prepare_threshold=None) as connection:
        for statement in filter(str.strip, statements.split(";\n")):
            text = statement.strip()
            if text == "SELECT pg_reload_conf()":
                reload(cluster)
                continue
            is_checkpoint = text == "CHECKPOINT"
            if is_checkpoint:
                asked_for = _asked_for(connection)
                (before,) = connection.execute(asked_for.encode()).fetchall()[0]
            try:
                connection.execute(text.removeprefix("!").encode())
            except Exception:
                if not text.startswith("!"):
                    raise
            if is_checkpoint:
                # The checkpointer answers first, and reports then.
                wait_until(cluster, f"SELECT ({asked_for}) > {before}", "a checkpoint is counted")
            # At once: what VACUUM counts would be added to what is not told yet.
            if connection.info.transaction_status == TransactionStatus.IDLE:
                connection.execute("SELECT pg_stat_force_next_flush()")


def _asked_for(connection: Connection[Any]) -> str:
    """The query of the checkpoints that the checkpointer has reported; a standby's too."""
    if connection.info.server_version >= 17_00_00:
        return "SELECT num_requested + restartpoints_req FROM pg_stat_checkpointer"
    return "SELECT checkpoints_req FROM pg_stat_bgwriter"


def change_many_files(cluster: Cluster) -> None:
    """
    Change as many files as a queue of sixteen does not hold.

    Nobody empties it meanwhile: a checkpointer that is quick on a busy machine would, in time.
    """
    with cluster.connect() as connection:
        query = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'"
        (pid,) = connection.execute(query.encode()).fetchall()[0]
    os.kill(pid, signal.SIGSTOP)
    try:
        run(cluster, "postgres", _MANY_FILES)
    finally:
        os.kill(pid, signal.SIGCONT)


@contextmanager
def database(cluster: Cluster, name: str) -> Iterator[str]:
    """One of its own, gone afterwards; files are copied, which logs a hundredth of copied pages."""
    run(cluster, "postgres", f"CREATE DATABASE {name} TEMPLATE template0 STRATEGY file_copy")
    try:
        yield name
    finally:
        run(cluster, "postgres", f"DROP DATABASE {name} WITH (FORCE)")


def conninfo(cluster: Cluster, dbname: str, user: str = "postgres") -> str:
    env = cluster.client_env()
    return f"host={env['PGHOST']} port={env['PGPORT']} user={user} dbname={dbname}"


def examined(
    cluster: Cluster,
    dbname: str,
    rule: str,
    *,
    ahead_s: float = 0.0,
    work: Callable[[], None] | None = None,
    interval_s: float = INTERVAL_S,
) -> Diagnosis:
    """By one rule; with work over an interval, by the clock that is ahead."""
    with read_only_session(conninfo(cluster, dbname), {}) as connection:
        examination = Examination(connection, [rule_named(rule)], ahead_s=ahead_s)
        if work is not None:
            examination.start()
            work()
            examination.ahead_s += interval_s
        return examination.end()


def examined_by_all(cluster: Cluster, dbname: str, ahead_s: float) -> Diagnosis:
    """By every rule, by a clock that is ahead."""
    with read_only_session(conninfo(cluster, dbname), {}) as connection:
        return Examination(connection, all_rules(), ahead_s=ahead_s).end()


def window_s(diagnosis: Diagnosis) -> float:
    """Over which time statistics were counted, as the diagnosis says it."""
    from datetime import datetime

    assert diagnosis.examined.statistics_since is not None
    at, since = (
        datetime.fromisoformat(text.replace("Z", "+00:00"))
        for text in (diagnosis.examined.at, diagnosis.examined.statistics_since)
    )
    return (at - since).total_seconds()


def near(found: Any, wanted: float, *, within: float = 0.02) -> None:
    assert found is not None
    assert abs(float(found) - wanted) <= within * abs(wanted), (found, wanted)


def a_day(count: float, diagnosis: Diagnosis) -> float:
    length_s = diagnosis.examined.interval_s
    return count * DAY_S / (window_s(diagnosis) if length_s is None else length_s)


# Numbers ----------------------------------------------------------------------------------------


def invalid_right(finding: Finding, diagnosis: Diagnosis) -> None:
    # 1002 rows, each an entry; int4 keys: 48 bytes of record and 16 of entry.
    near(finding.numbers["entries_a_day"], a_day(1002, diagnosis))
    near(finding.price.amount, a_day(1002 * 64, diagnosis))
    assert finding.remedy.sql == ('REINDEX INDEX CONCURRENTLY "public"."t_a"',)


def unused_right(finding: Finding, diagnosis: Diagnosis) -> None:
    # 60,000 rows, and 500 of the 1,000 updates change the column: 60,500 entries of 8-byte keys.
    near(finding.numbers["entries_a_day"], a_day(60_500, diagnosis))
    near(finding.price.amount, a_day(60_500 * 64, diagnosis))
    assert finding.numbers["size_bytes"] >= 128 * 8192
    assert finding.remedy.sql == ('DROP INDEX CONCURRENTLY "public"."t_v"',)
    assert finding.remedy.undo == "CREATE INDEX CONCURRENTLY t_v ON public.t USING btree (v)"


def duplicate_right(finding: Finding, diagnosis: Diagnosis) -> None:
    near(finding.price.amount, a_day(1000 * 64, diagnosis))
    assert finding.numbers["kept"] == "t_v"
    assert finding.remedy.sql == ('DROP INDEX CONCURRENTLY "public"."t_v_again"',)


def partitioned_right(finding: Finding, diagnosis: Diagnosis) -> None:
    # Entries of all partitions; pages of both, of 20,000 equal keys each.
    near(finding.price.amount, a_day(40_000 * 64, diagnosis))
    assert finding.numbers["size_bytes"] >= 2 * 10 * 8192  # type: ignore[operator]
    assert finding.remedy.sql == ('DROP INDEX "public"."p_again"',)
    assert finding.remedy.undo == "CREATE INDEX p_again ON public.p USING btree (v)"


def overlapping_right(finding: Finding, _diagnosis: Diagnosis) -> None:
    assert finding.numbers["kept"] == "t_vw"
    assert finding.remedy.sql == ('DROP INDEX CONCURRENTLY "public"."t_v"',)


def foreign_key_right(finding: Finding, diagnosis: Diagnosis) -> None:
    # 30,000 rows of two int4: 226 a page, 133 pages; three rows were deleted of the parent.
    assert finding.numbers["relpages"] == 133
    assert finding.numbers["deletes"] == 3
    near(finding.price.amount, a_day(3 * 133 * 8192, diagnosis))
    assert finding.remedy.sql == (
        'CREATE INDEX CONCURRENTLY "child_parent_fkey_idx" ON "public"."child" (parent)',
    )
    assert finding.remedy.undo == 'DROP INDEX CONCURRENTLY "public"."child_parent_fkey_idx"'


def held_right(finding: Finding, _diagnosis: Diagnosis) -> None:
    near(finding.numbers["age_s"], 7200)
    assert finding.numbers["dead_rows"] >= 500


def never_right(finding: Finding, _diagnosis: Diagnosis) -> None:
    assert finding.numbers["n_live_tup"] == 100
    assert finding.price.amount is None


def parent_right(finding: Finding, _diagnosis: Diagnosis) -> None:
    assert finding.numbers["n_live_tup"] == 100
    assert finding.numbers["partitions"] == 2


def padding_right(finding: Finding, _diagnosis: Diagnosis) -> None:
    # 24 + 6 x 8 and a line pointer; in the best order 24 + 3 x 8 + 3, on a multiple of 8.
    assert finding.numbers["row_bytes"] == 76
    assert finding.numbers["row_bytes_best"] == 60
    # 107 and 136 of them lie on a page.
    assert finding.price.amount == 8192 * (-(-110_000 // 107) - -(-110_000 // 136))


def ends_hot_right(finding: Finding, diagnosis: Diagnosis) -> None:
    assert finding.numbers["n_tup_upd"] == 1000
    assert finding.numbers["ended_by_index"] == 1000
    # Two indexes, each at least 64 bytes an update.
    near(finding.price.amount, a_day(1000 * 2 * 64, diagnosis))


def no_room_right(finding: Finding, diagnosis: Diagnosis) -> None:
    assert finding.numbers["n_tup_upd"] == 1000
    assert finding.numbers["newpage_frac"] >= 0.9
    left = finding.numbers["n_tup_newpage_upd"]
    assert isinstance(left, int)
    near(finding.price.amount, a_day(left * 64, diagnosis))


def temp_right(finding: Finding, diagnosis: Diagnosis) -> None:
    files, written = finding.numbers["temp_files"], finding.numbers["temp_bytes"]
    assert isinstance(files, int)
    assert isinstance(written, int)
    assert files >= 1
    assert written >= 200_000 * 8
    near(finding.price.amount, a_day(written, diagnosis))


def scans_right(finding: Finding, diagnosis: Diagnosis) -> None:
    size = finding.numbers["size_bytes"]
    assert isinstance(size, int)
    assert size >= 1000 * 8192
    assert finding.numbers["seq_scan"] == 20
    assert finding.numbers["seq_tup_read"] == 20 * 8_000
    near(finding.price.amount, a_day(20 * size, diagnosis))


def dead_right(finding: Finding, _diagnosis: Diagnosis) -> None:
    assert finding.numbers["n_dead_tup"] == 36_000
    assert finding.numbers["n_live_tup"] == 4_000
    near(finding.numbers["trigger_rows"], 50 + 0.2 * 40_000)
    assert finding.price.amount is not None
    assert finding.price.amount >= 10 * 2**20


def unowned_right(finding: Finding, _diagnosis: Diagnosis) -> None:
    last, end = finding.numbers["last_value"], finding.numbers["end_value"]
    assert (last, end) in ((1_900_000_000, 2**31 - 1), (9 * 10**18, 2**63 - 2))
    assert finding.remedy.sql == (), "who takes its numbers may be too narrow"


def narrow_right(finding: Finding, _diagnosis: Diagnosis) -> None:
    near(finding.numbers["used_frac"], 1.9e9 / 2**31, within=0.001)
    assert finding.remedy.sql == (), "the column comes first"
    assert "t.id bigint first" in finding.remedy.text


def large_right(finding: Finding, _diagnosis: Diagnosis) -> None:
    near(finding.numbers["trigger_rows"], 80_000_050)
    near(finding.price.amount, 20 * 2**30)
    assert finding.remedy.sql == (
        'ALTER TABLE "public"."t" SET (autovacuum_vacuum_scale_factor = 0.01)',
    )


def slot_right(finding: Finding, _diagnosis: Diagnosis) -> None:
    kept = finding.price.amount
    assert kept is not None
    assert 64 * 2**20 < kept < 100 * 2**20


def archiver_right(finding: Finding, _diagnosis: Diagnosis) -> None:
    assert finding.numbers["failed_count"] >= 1  # type: ignore[operator]
    assert finding.numbers["waiting_bytes"] == 16 * 2**20
    assert finding.price.amount == 16 * 2**20


def writes_right(finding: Finding, diagnosis: Diagnosis) -> None:
    written, whole = (finding.numbers[n] for n in ("by_backends_bytes", "written_bytes"))
    assert isinstance(written, int)
    assert isinstance(whole, int)
    assert 16 * 2**20 <= written <= whole
    near(finding.price.amount, a_day(written, diagnosis))


def ended_life_right(finding: Finding, _diagnosis: Diagnosis) -> None:
    assert finding.numbers["days_since"] > 0  # type: ignore[operator]


def equal(found: object, wanted: object) -> None:
    assert found == wanted


def limit_right(finding: Finding, _diagnosis: Diagnosis) -> None:
    # 6,000 died in a minute; 20,000 rows are vacuumed at 4,050, and the cost may be 50 a second.
    near(finding.numbers["dead_rows_per_s"], 100, within=0.1)
    assert finding.numbers["cost_per_s_max"] == 50
    share, cost = finding.numbers["share_frac"], finding.numbers["cost_per_s"]
    assert isinstance(share, float)
    near(cost, 50 * share)
    assert share >= 1
    assert finding.numbers["cost_limit_wanted"] == 200
    assert finding.remedy.sql == (
        "ALTER SYSTEM SET autovacuum_vacuum_cost_limit = 200",
        "SELECT pg_reload_conf()",
    )
    assert finding.remedy.undo == (
        "ALTER SYSTEM SET autovacuum_vacuum_cost_limit = 1; SELECT pg_reload_conf()"
    )


def images_right(finding: Finding, diagnosis: Diagnosis) -> None:
    images = finding.numbers["image_bytes_max"]
    assert isinstance(images, int)
    # 40,000 rows of 44 bytes on pages half full: 433 pages, each changed once.
    assert images >= 400 * 4096
    near(finding.price.amount, a_day(images, diagnosis))


def read_right(finding: Finding, diagnosis: Diagnosis) -> None:
    # 16,000 rows of 536 bytes: 15 a page, 1,067 pages, read twenty times; what lies in 512 buffers
    # may stay there, for large scans go through a ring. Catalogs are read beside.
    read = finding.numbers["read_bytes"]
    assert isinstance(read, int)
    assert 20 * (1067 - 512) * 8192 <= read <= 1.3 * 20 * 1067 * 8192
    assert finding.numbers["shared_buffers_bytes"] == 4 * 2**20
    near(finding.price.amount, a_day(read, diagnosis))

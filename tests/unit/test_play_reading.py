"""Playing a profile, without a server: scripts and their draws, WAL listings, the log."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pgheadroom.errors import LabError, MeasurementInvalid
from pgheadroom.play.ended import Ended
from pgheadroom.play.events import Event, place_events, read_events, within
from pgheadroom.play.load import create_index
from pgheadroom.play.measured import measured
from pgheadroom.play.scripts import scripts, session_find, variables
from pgheadroom.play.waldump import check_stats, ended_at, read_waldump, window_arguments
from pgheadroom.profile import parse_profile, read_profile

EXAMPLES = Path(__file__).parents[2] / "examples"

# Lines of pg_waldump 18.4 (prune, images, forks) and 15.18 (the first), shortened in their middle.
LINES = """\
rmgr: Heap        len (rec/tot):     54/    54, tx:        735, lsn: 0/01A0, prev 0/0150, desc: \
LOCK off 3: xid 735: flags 0x00 LOCK_ONLY EXCL_LOCK, blkref #0: rel 1663/5/100 blk 7
rmgr: Heap        len (rec/tot):     67/  8183, tx:        735, lsn: 0/01A0, prev 0/0150, desc: \
UPDATE old_xmax: 735, blkref #0: rel 1663/5/100 blk 8 FPW, blkref #1: rel 1663/5/100 blk 7
rmgr: Heap2       len (rec/tot):     60/    60, tx:          0, lsn: 0/01A0, prev 0/0150, desc: \
PRUNE_ON_ACCESS snapshotConflictHorizon: 743, dead: [1, 2], blkref #0: rel 1663/5/100 blk 8
rmgr: XLOG        len (rec/tot):     49/  8241, tx:        735, lsn: 0/01A0, prev 0/0150, desc: \
FPI_FOR_HINT , blkref #0: rel 1663/5/100 fork fsm blk 2 FPW
rmgr: Btree       len (rec/tot):     64/    64, tx:        735, lsn: 0/01A0, prev 0/0150, desc: \
INSERT_LEAF off: 5, blkref #0: rel 1663/5/101 blk 1
rmgr: Heap        len (rec/tot):     80/    80, tx:        736, lsn: 0/01A0, prev 0/0150, desc: \
INSERT off: 5, flags: 0x00, blkref #0: rel 1663/5/1249 blk 1
rmgr: Transaction len (rec/tot):     34/    34, tx:        735, lsn: 0/01A0, prev 0/0150, desc: \
COMMIT 2026-11-20 23:00:00.000000 UTC
rmgr: Transaction len (rec/tot):     99/    99, tx:        736, lsn: 0/01A0, prev 0/0150, desc: \
COMMIT 2026-11-20 23:00:00.000000 UTC; inval msgs: catcache 55
rmgr: Standby     len (rec/tot):     50/    50, tx:          0, lsn: 0/01A0, prev 0/0150, desc: \
RUNNING_XACTS nextXid 736 latestCompletedXid 735 oldestRunningXid 736
"""
STATS = """\
Type                                           N      (%)          Record size      (%)
----                                           -      ---          -----------      ---
Heap                                           3 ( 33.33)
                                        --------                      --------
Total                                          9                           557 [3.30%]  \
16308 [96.70%]                16865 [100%]
"""
TABLES = {"1663/5/100": "t", "1663/5/101": "t", "1663/5/102": "u"}


def test_records_are_the_tables_and_their_clients() -> None:
    """Catalog records, foreign transactions and standby records do not belong to a profile."""
    wal = read_waldump(LINES.splitlines(keepends=True), TABLES)
    table = wal.tables["t"]
    assert (table.records, table.bytes) == (5, 54 + 8183 + 60 + 8241 + 64)
    assert (table.fpi, table.fpi_bytes) == (2, 8183 - 67 + 8241 - 49)
    assert table.blocks == {
        ("1663/5/100", "main", 7),
        ("1663/5/100", "main", 8),
        ("1663/5/100", "fsm", 2),
        ("1663/5/101", "main", 1),
    }
    assert wal.tables["u"].records == 0
    assert (wal.transactions.records, wal.transactions.bytes) == (1, 34)
    assert wal.everything.records == 9
    check_stats(wal, STATS)


def test_multixacts_are_told_by_type() -> None:
    """A multixact's record names no table and ends no transaction; its type tells of it."""
    line = (
        "rmgr: MultiXact   len (rec/tot):     54/    54, tx:        736, lsn: 0/01A0, "
        "prev 0/0150, desc: CREATE_ID 1 offset 1 nmembers 2: 735 (sh) 736 (sh)\n"
    )
    without = read_waldump(LINES.splitlines(), TABLES)
    wal = read_waldump([*LINES.splitlines(), line], TABLES)
    assert wal.by_record["MultiXact/CREATE_ID"].bytes == 54
    assert wal.transactions == without.transactions
    assert wal.tables == without.tables


def test_a_commit_is_the_clients_by_its_parts() -> None:
    """A transaction that changed rows only behind a savepoint is known by its subtransaction."""
    line = (
        "rmgr: Transaction len (rec/tot):     46/    46, tx:        735, lsn: 0/01A0, "
        "prev 0/0150, desc: COMMIT 2026-11-01 00:00:00.000000 UTC; subxacts: {xid}\n"
    )
    change = LINES.splitlines()[0].replace("735", "739")
    catalog = LINES.splitlines()[0].replace("5/100", "5/1259")
    for xid, counted in (("738 739", 1), ("738", 0)):
        lines = [change, catalog, line.format(xid=xid)]
        assert read_waldump(lines, TABLES).transactions.records == counted


def test_a_commit_without_any_change_is_a_clients() -> None:
    """An UPDATE that waits for a row has a number; where the row is gone then, nothing else."""
    line = (
        "rmgr: Transaction len (rec/tot):     34/    34, tx:        {xid}, lsn: 0/01A0, "
        "prev 0/0150, desc: COMMIT 2026-11-01 00:00:00.000000 UTC\n"
    )
    catalog = LINES.splitlines()[0].replace("5/100", "5/1259").replace("735", "738")
    for xid, counted in ((739, 1), (738, 0)):
        wal = read_waldump([catalog, line.format(xid=xid)], TABLES)
        assert wal.transactions.records == counted
    hint = (
        "rmgr: XLOG        len (rec/tot):     49/  8249, tx:        739, lsn: 0/0150, prev 0/0100, "
        "desc: FPI_FOR_HINT , blkref #0: rel 1663/5/1259 blk 3 FPW\n"
    )
    wal = read_waldump([hint, line.format(xid=739)], TABLES)
    assert wal.transactions.records == 1, "hints on a catalogue's page are nobody's work"


def test_listings_that_are_not_understood_are_no_measurement() -> None:
    """Another format, a record over two tables, another total: an error, never a wrong sum."""
    with pytest.raises(LabError, match="not a record"):
        read_waldump(["something new\n"], TABLES)
    both = LINES.splitlines()[1].replace("#1: rel 1663/5/100", "#1: rel 1663/5/102")
    with pytest.raises(MeasurementInvalid, match="references the tables"):
        read_waldump([both], TABLES)
    wal = read_waldump(LINES.splitlines()[1:], TABLES)
    with pytest.raises(MeasurementInvalid, match="counts 9 records"):
        check_stats(wal, STATS)
    with pytest.raises(LabError, match="no total"):
        check_stats(wal, "")


def test_the_window_names_its_segments() -> None:
    """Pg_waldump once took a segment made ready for later as its model, and failed."""
    first, second = "00000001000000010000000A", "00000001000000010000000B"
    assert window_arguments("1/A000100", "1/A000200") == [
        "-s",
        "1/A000100",
        "-e",
        "1/A000200",
        first,
        first,
    ]
    assert window_arguments("1/A000100", "1/B000100")[4:] == [first, second]
    # Behind a segment's header only: its file may not be there yet.
    assert window_arguments("1/A000100", "1/B000028")[3:] == ["1/B000000", first, first]


def test_quotients_are_of_sums_and_nothing_is_made_up() -> None:
    """Shares at the top are quotients of sums; what a version lacks stays null."""
    wal = read_waldump(LINES.splitlines(), TABLES)
    before: dict[str, tuple[int | None, ...]] = {"t": (0, 10, 0, 5, None), "u": (0, 0, 0, 0, None)}
    after: dict[str, tuple[int | None, ...]] = {"t": (0, 14, 0, 8, None), "u": (3, 0, 0, 0, None)}
    result = measured(before, after, {"t": (7, 2, 0), "u": (1, 0, 1)}, wal)
    assert (result.n_tup_upd, result.n_tup_ins, result.heap_pages) == (4, 3, 8)
    assert result.hot_frac == 0.75
    assert result.n_tup_newpage_upd is None
    assert result.newpage_frac is None
    assert result.wal_records == 6
    assert result.by_table["t"].wal_records == 5
    assert result.wal_bytes_per_update == (16602 + 34) / 4
    assert result.by_table["u"].hot_frac is None
    assert result.brin_pages == 1


def test_the_scripts_of_every_field() -> None:
    """The order of draws is contract: keys and changes by operation, the abort last."""
    profile = read_profile(EXAMPLES / "every-field.toml")
    insert, work = scripts(profile)
    assert insert.text.splitlines()[:7] == [
        "\\set k0 100000 + 1 + (:client_id + 2 * :j0) * 10",
        "\\set y0 50000 + :j0 * 10 + 10 - 1",
        "\\set j0 :j0 + 1",
        "\\set l0 :k0 + 9",
        "\\set m0 :k0 + 9",
        "\\set a random(1, 1000000)",
        "BEGIN;",
    ]
    assert insert.text.splitlines()[-5:] == [
        "\\if :a <= 10000",
        "ROLLBACK;",
        "\\else",
        "COMMIT;",
        "\\endif",
    ]
    assert (insert.weight, work.weight) == (1, 2)
    lines = work.text.splitlines()
    assert lines[:8] == [
        "\\set k1 random_zipfian(1, 100000, 1.1)",
        "\\set k1 1 + permute(:k1 - 1, 100000, 1)",
        "\\set d1_1 random(1, 1000000)",
        "\\set g1_1 1 + (:d1_1 - 1) % 8",
        "\\set x2 case when :f0 > :y0 then -1 else :f0 end",
        "\\set k2 case when :x2 < 0 then -1 when :x2 < 50000 then :client_id + 1 + :x2 * 2 else "
        "100000 + 1 + (:client_id + 2 * ((:x2 - 50000) / 10)) * 10 + (:x2 - 50000) % 10 end",
        "\\set f0 :f0 + case when :x2 < 0 then 0 else 1 end",
        "BEGIN;",
    ]
    assert lines[8].startswith('UPDATE "jobs" SET "state" = CAST("state" + 1 AS int2), "payload" =')
    assert lines[9:] == ['DELETE FROM "jobs" WHERE "id" = :k2;', "COMMIT;"]
    assert set(variables(profile)) == {"i0", "i1", "i2", "j0", "l0", "f0", "y0", "e0"}
    jobs = profile.table("jobs")
    assert create_index(jobs, jobs.indexes[1]) == (
        'CREATE INDEX "jobs_owner" ON "jobs" USING btree ("owner") INCLUDE ("state") '
        "WITH (fillfactor = 90, deduplicate_items = on) WHERE (state = 0)"
    )


def test_bitmaps_are_switched_on_alone() -> None:
    """Where all statements have them for the session, else around each."""
    data: dict[str, Any] = {
        "schema_version": 1,
        "table": [
            {
                "name": "t",
                "rows": 100,
                "columns": [{"name": "id", "type": "int8"}],
                "indexes": [{"name": "t_pkey", "columns": ["id"], "unique": True}],
            }
        ],
        "operation": [{"table": "t", "kind": "select", "find": "bitmap"}],
        "run": {"operations": 10},
    }
    profile = parse_profile(data)
    assert session_find(profile) == "bitmap"
    assert "SET " not in scripts(profile)[0].text
    data["operation"].append({"table": "t", "kind": "lock"})
    profile = parse_profile(data)
    assert session_find(profile) == "index"
    assert scripts(profile)[0].text.splitlines()[1:] == [
        "SET enable_seqscan = off;",
        "SET enable_bitmapscan = on;",
        "SET enable_indexscan = off;",
        'SELECT * FROM "t" WHERE "id" = :k0;',
        "SET enable_seqscan = off;",
        "SET enable_bitmapscan = off;",
        "SET enable_indexscan = on;",
    ]


def test_hot_set_and_turns() -> None:
    """A hot set draws twice; turns take the client and its count; mixed finds switch."""
    key = {"name": "id", "type": "int8"}
    pick = {"distribution": "hot_set", "rows_frac": 0.29, "weight": 0.5}
    data = {
        "schema_version": 1,
        "table": [
            {
                "name": "t",
                "rows": 100,
                "columns": [key, {"name": "c", "type": "int4"}],
                "indexes": [{"name": "t_pkey", "columns": ["id"], "unique": True}],
            }
        ],
        "operation": [
            {"table": "t", "kind": "select", "pick": pick, "find": "seqscan"},
            {
                "table": "t",
                "kind": "lock",
                "pick": {"distribution": "stride", "n": 7},
                "rows_per_statement": 3,
            },
        ],
        "run": {"operations": 10, "clients": 2},
    }
    select, lock = scripts(parse_profile(data))
    assert select.text.splitlines() == [
        "\\set h0 random(1, 1000000)",
        "\\if :h0 <= 500000",
        "\\set k0 random(1, 28)",  # 0.29 * 100 is 28.999999999999996
        "\\else",
        "\\set k0 random(29, 100)",
        "\\endif",
        "SET enable_seqscan = on;",
        "SET enable_bitmapscan = off;",
        "SET enable_indexscan = off;",
        'SELECT * FROM "t" WHERE "id" = :k0;',
        "SET enable_seqscan = off;",
        "SET enable_bitmapscan = off;",
        "SET enable_indexscan = on;",
    ]
    assert lock.text.splitlines() == [
        "\\set k1 1 + ((:client_id + :i1 * 2) * 7) % 100",
        "\\set i1 :i1 + 1",
        "\\set m1 :k1 + 2",
        'SELECT * FROM "t" WHERE "id" BETWEEN :k1 AND :m1 FOR UPDATE;',
    ]


def test_the_number_of_rows_is_drawn_after_the_key() -> None:
    """Keys have the room of the most rows; statements in order go on where the last one ended."""
    data = {
        "schema_version": 1,
        "table": [
            {
                "name": "t",
                "rows": 100,
                "columns": [{"name": "id", "type": "int4"}, {"name": "c", "type": "int4"}],
                "indexes": [{"name": "t_pkey", "columns": ["id"], "unique": True}],
            }
        ],
        "operation": [
            {"table": "t", **operation, "rows_per_statement": {"min": 2, "max": 9}}
            for operation in (
                {"kind": "insert"},
                {"kind": "delete", "pick": {"distribution": "oldest"}},
                {
                    "kind": "update",
                    "pick": {"distribution": "sequential"},
                    "sets": {"c": {"changed_frac": 0.5}},
                },
            )
        ],
        "run": {"operations": 10, "clients": 2},
    }
    insert, delete, update = (script.text.splitlines() for script in scripts(parse_profile(data)))
    assert insert == [
        "\\set k0 100 + 1 + (:client_id + 2 * :j0) * 9",
        "\\set r0 random(2, 9)",
        "\\set j0 :j0 + 1",
        "\\set l0 :k0 + :r0 - 1",
        "\\set m0 :k0 + :r0 - 1",
        'INSERT INTO "t" ("id", "c") SELECT CAST(r."row" AS int4), CAST(0::int8 AS int4) FROM '
        '(SELECT v.i AS "row" FROM generate_series(CAST(:k0 AS int8), CAST(:m0 AS int8)) AS v(i)) '
        "AS r;",
    ]
    assert delete[:-1] == [
        "\\set k1 case when :client_id + 1 + :f0 * 2 > 100 then -9 "
        "else :client_id + 1 + :f0 * 2 end",
        "\\set r1 random(2, 9)",
        "\\set f0 case when :k1 < 0 then :f0 else :f0 + (:r1 + 1) / 2 end",
        "\\set m1 :k1 + :r1 - 1",
    ]
    assert update[:-1] == [
        "\\set k2 1 + :client_id * 50 + :i2 % 50",
        "\\set r2 random(2, 9)",
        "\\set i2 :i2 + :r2",
        "\\set m2 :k2 + :r2 - 1",
        "\\set d2_0 random(1, 1000000)",
    ]


def test_events_come_from_the_log(tmp_path: Path) -> None:
    """
    Checkpoints and autovacuums of the window, with their time since its start.

    A table of an observed profile is called as its schema says, so its name has a dot.
    """
    log = tmp_path / "server.log"
    head = "2026-11-20 23:00:00.000 UTC [1] LOG:  checkpoint starting: immediate\n"
    log.write_text(
        head
        + "2026-11-20 23:00:02.500 UTC [7] LOG:  automatic vacuum of table "
        + '"profile.public.jobs": index scans: 1\n\tpages: 0 removed\n'
        + "2026-11-20 23:00:02.600 UTC [7] LOG:  automatic vacuum of table "
        + '"profile.public.auth.users": index scans: 1\n\tpages: 0 removed\n'
        + "2026-11-20 23:00:03.000 UTC [1] LOG:  checkpoint complete: wrote 3 buffers\n"
    )
    events = read_events(log, len(head), 1795215600.0)
    assert [(event.t_s, event.kind, event.table) for event in events] == [
        (2.5, "autovacuum", "jobs"),
        (2.6, "autovacuum", "auth.users"),
        (3.0, "checkpoint_complete", None),
    ]


@pytest.mark.parametrize(
    "said",
    [
        "automatic vacuum",
        "automatic aggressive vacuum",
        "automatic vacuum to prevent wraparound",
        "automatic aggressive vacuum to prevent wraparound",
    ],
)
def test_every_vacuum_of_autovacuum_is_an_event(tmp_path: Path, said: str) -> None:
    """
    15 to 19 say of a vacuum whether it is aggressive, and whether it comes by age.

    Source: `heap_vacuum_rel`, src/backend/access/heap/vacuumlazy.c (REL_15_STABLE, REL_18_STABLE);
    19rc1 has the same four texts.
    """
    log = tmp_path / "log"
    log.write_text(
        f'2026-01-01 00:00:03.000 UTC [2] LOG:  {said} of table "profile.public.t": index '
        "scans: 1\n"
        "\tsystem usage: CPU: user: 0.10 s, system: 0.00 s, elapsed: 1.50 s\n"
    )
    (event,) = read_events(log, 0, datetime(2026, 1, 1, tzinfo=UTC).timestamp())
    assert (event.kind, event.table, event.elapsed_s) == ("autovacuum", "t", 1.5)


@pytest.mark.parametrize("name", ['q"t2', "t.u"])
@pytest.mark.parametrize("said", ["vacuum", "analyze"])
def test_a_table_may_be_called_anything(tmp_path: Path, name: str, said: str) -> None:
    """The log does not quote names: what is in them ends none."""
    log = tmp_path / "log"
    rest = ": index scans: 0" if said == "vacuum" else ""
    head = "2026-01-01 00:00:03.000 UTC [2] LOG:  "
    log.write_text(
        f'{head}automatic {said} of table "profile.public.{name}"{rest}\n\tbuffer usage: 1 hits\n',
        encoding="utf-8",
    )
    (event,) = read_events(log, 0, 0.0)
    assert (event.kind, event.table) == (f"auto{said}", name)


def test_a_vacuum_under_way_at_the_end_is_in_by_most_of_it() -> None:
    """Its records before the end count, those after it do not."""
    inside = Event(t_s=10.4, kind="autovacuum", table="t", elapsed_s=1.0)
    outside = Event(t_s=10.6, kind="autovacuum", table="t", elapsed_s=1.0)
    before = Event(t_s=-0.1, kind="autovacuum", table="t")
    assert within([before, inside, outside], 10.0) == (inside,)


def test_events_are_placed_among_the_transactions(tmp_path: Path) -> None:
    """The share of transactions that had ended by then; an analyze began before it was told of."""
    log = tmp_path / "log"
    log.write_text(
        "2026-01-01 00:00:02.000 UTC [1] LOG:  checkpoint starting: wal\n"
        '2026-01-01 00:00:03.000 UTC [2] LOG:  automatic analyze of table "profile.public.t"\n'
        "\tavg read rate: 0.000 MB/s\n"
        "\tsystem usage: CPU: user: 0.10 s, system: 0.00 s, elapsed: 1.50 s\n"
    )
    began_at = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
    ended = [began_at + n for n in (0.5, 1.0, 1.6, 2.5)]
    checkpoint, analyze = place_events(read_events(log, 0, began_at), Ended(ended), began_at)
    assert (checkpoint.t_s, checkpoint.at_frac, checkpoint.elapsed_s) == (2.0, 0.75, 0.0)
    assert (analyze.elapsed_s, analyze.began_frac, analyze.at_frac) == (1.5, 0.5, 1.0)
    assert place_events((checkpoint,), Ended(()), began_at) == (checkpoint,)


def test_a_vacuum_begins_where_its_table_was_looked_at_last(tmp_path: Path) -> None:
    """
    To a millisecond, where `elapsed` is told to ten: what ended in between decides its index.

    A worker looks at all tables first, and at each again before its turn; other workers and an
    analyze have nothing to do with it.
    """
    log = tmp_path / "log"
    at = "2026-01-01 00:00:0"
    log.write_text(
        f"{at}1.000 UTC [2] DEBUG:  t: vac: 60 (threshold 50), ins: 9 (threshold 1000), anl: 7\n"
        f"{at}1.004 UTC [2] DEBUG:  t: vac: 60 (threshold 50), ins: 9 (threshold 1000), anl: 7\n"
        f"{at}1.006 UTC [3] DEBUG:  u: vac: 60 (threshold 50), ins: 9 (threshold 1000), anl: 7\n"
        f'{at}1.008 UTC [2] LOG:  automatic vacuum of table "profile.public.t": index scans: 1\n'
        "\tsystem usage: CPU: user: 0.00 s, system: 0.00 s, elapsed: 0.00 s\n"
        f'{at}1.009 UTC [2] LOG:  automatic analyze of table "profile.public.t"\n'
    )
    began_at = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
    read = read_events(log, 0, began_at)
    assert [event.began_s for event in read] == [1.004, None]
    ends = [began_at + 1 + n / 1000 for n in (1.0, 4.5, 6.0, 8.2, 8.4, 9.5, 9.7, 9.8)]
    vacuum, analyze = place_events(read, Ended(ends), began_at)
    assert (vacuum.began, vacuum.ended) == ((0.125, 0.25), (0.375, 0.625))
    assert (analyze.began, analyze.ended) == (None, None)


def test_transactions_say_when_they_ended() -> None:
    """pg_waldump writes the time in the zone that it is told; only UTC is believed."""
    assert ended_at(" 2026-01-01 00:00:01.250000 UTC; inval msgs: catcache 55") == (
        datetime(2026, 1, 1, tzinfo=UTC).timestamp() + 1.25
    )
    assert ended_at("2026-01-01 00:00:01.25+00") == ended_at(" 2026-01-01 00:00:01.250000 UTC")
    assert ended_at(" 2026-01-01 00:00:01.250000 CET") is None
    assert ended_at("2026-01-01 00:00:01.25+00:30") is None

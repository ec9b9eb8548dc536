"""
Profiles played on real servers: known figures, identities between counters, and the conduct.

Figures were recorded by hand on 18.4 and 15.18 (origin beside each); what holds on every version
is checked on every version at hand.
"""

from __future__ import annotations

from typing import Any

import pytest

from pgheadroom.errors import InputError, LabError, MeasurementInvalid, ServerNotFound
from pgheadroom.outcome import mid
from pgheadroom.play import Played, deadlocks, play
from pgheadroom.profile import parse_profile
from pgheadroom.prove import prove
from pgheadroom.servers import ServerPrograms

pytestmark = pytest.mark.usefixtures("run_parent")

Json = dict[str, Any]
ACCOUNTS = [
    {"name": "aid", "type": "int4"},
    {"name": "bid", "type": "int4"},
    {"name": "filler", "type": "bpchar(64)"},
    {"name": "abalance", "type": "int4"},
]
KEY = {"name": "t_pkey", "columns": ["aid"], "unique": True}


def _profile(
    operations: list[Json],
    run: Json,
    *,
    tables: list[Json] | None = None,
    server: Json | None = None,
    rows: int = 7500,
    fillfactor: int = 100,
) -> Json:
    table = {
        "name": "t",
        "rows": rows,
        "fillfactor": fillfactor,
        "columns": ACCOUNTS,
        "indexes": [KEY],
    }
    return {
        "schema_version": 1,
        "server": {"shared_buffers": "64MB", "full_page_writes": False, **(server or {})},
        "table": tables or [table],
        "operation": operations,
        "run": run,
    }


def _play(data: Json, programs: ServerPrograms) -> Played:
    played = play(parse_profile(data), server=str(programs.bin_dir))
    _check_identities(played)
    return played


def _check_identities(played: Played) -> None:
    """What holds for every run."""
    measured = played.measured
    tables = measured.by_table.values()
    for key in ("n_tup_upd", "n_tup_hot_upd", "heap_pages", "index_pages", "pages_modified"):
        assert mid(measured.value(key)) == sum(mid(table.value(key)) for table in tables)
    for key in ("wal_records", "wal_bytes"):
        transactions = mid(measured.value(key)) - sum(mid(table.value(key)) for table in tables)
        assert 0 <= transactions <= mid(measured.value(key))
    for table in (measured, *tables):
        moved = table.n_tup_newpage_upd
        assert (moved is None) == (played.server.major < 16)
        # HOT, cold on the same page, cold on a new page: the middle one is what is left.
        assert table.n_tup_hot_upd + (moved or 0) <= table.n_tup_upd
        assert table.wal_fpi_bytes <= table.wal_bytes
    checks = played.checks
    assert measured.wal_bytes <= checks["pg_stat_wal_bytes"]
    assert measured.wal_records <= checks["window_wal_records"]


def _whole_table_updates(fillfactor: int) -> Json:
    """Four UPDATEs of all 7500 rows by sequential scans, in one session."""
    update = {
        "table": "t",
        "kind": "update",
        "sets": ["abalance"],
        "rows_per_statement": 7500,
        "find": "seqscan",
        "pick": {"distribution": "sequential"},
    }
    return _profile([update], {"operations": 4}, fillfactor=fillfactor)


# Recorded on 18.4: LOCK, UPDATE, +INIT, INSERT_LEAF, DEDUP, DELETE, UPPER, SPLIT_L, SPLIT_R, PRUNE,
# FPI_FOR_HINT, as records and bytes.
COLD_18 = [
    (30000, 1620000),
    (29600, 4558400),
    (400, 61600),
    (29972, 1918208),
    (495, 91172),
    (177, 89521),
    (28, 2016),
    (20, 67680),
    (8, 30000),
    (300, 61200),
    (1, 44),
]
COMMIT_BYTES = 34


@pytest.mark.pg(">= 18, < 19")
def test_whole_table_updates_without_room(programs: ServerPrograms) -> None:
    """Every update leaves its page; records and bytes are those of the figures, to the byte."""
    if str(programs.version) != "18.4":
        pytest.skip("the figures are of 18.4; 18.6 writes other WAL")
    measured = _play(_whole_table_updates(100), programs).measured
    assert (measured.heap_pages, measured.index_pages) == (500, 51)
    assert (measured.n_tup_upd, measured.n_tup_hot_upd) == (30000, 0)
    assert measured.n_tup_newpage_upd == 30000
    assert measured.wal_records == sum(records for records, _ in COLD_18) + 4
    assert measured.wal_bytes == sum(sums for _, sums in COLD_18) + 4 * COMMIT_BYTES


def test_whole_table_updates_with_room(programs: ServerPrograms) -> None:
    """Half-empty pages: all HOT on every version, no page more; 15's bytes as recorded."""
    measured = _play(_whole_table_updates(50), programs).measured
    assert (measured.heap_pages, measured.index_pages) == (203, 23)
    assert measured.n_tup_hot_upd == measured.n_tup_upd == 30000
    # From 17.11, 18.6 and 19 on, records name the visibility map's page too.
    names_map = programs.version.minor >= {17: 11, 18: 6, 19: 0}.get(programs.version.major, 1000)
    assert measured.pages_modified == 203 + names_map
    if programs.version.major == 15:
        assert measured.wal_records == 30000 + 609 + 4
        assert measured.wal_bytes == 2130000 + 152886 + 4 * COMMIT_BYTES


def test_plain_inserts_to_the_byte(programs: ServerPrograms) -> None:
    """1000 rows of one int4 are 1000 records of 59 bytes and one COMMIT of 34."""
    table = {"name": "w", "rows": 0, "columns": [{"name": "i", "type": "int4"}]}
    insert = {"table": "w", "kind": "insert", "rows_per_statement": 1000}
    measured = _play(_profile([insert], {"operations": 1}, tables=[table]), programs).measured
    assert (measured.wal_records, measured.wal_bytes) == (1001, 59034)
    assert (measured.n_tup_ins, measured.heap_pages, measured.hot_frac) == (1000, 5, None)


HOT_RULES = {
    "plain": ([], {"c": {}}, True),
    "same_value": ([{"columns": ["c"]}], {"c": {"changed_frac": 0}}, True),
    "indexed": ([{"columns": ["c"]}], {"c": {}}, False),
    "expression": ([{"expressions": ["c + 1"]}], {"c": {}}, False),
    "predicate": ([{"columns": ["d"], "where": "c = 5"}], {"c": {}}, False),
    "include": ([{"columns": ["d"], "include": ["c"]}], {"c": {}}, False),
    "brin": ([{"columns": ["c"], "method": "brin"}], {"c": {}}, None),
}


def test_which_indexes_end_hot(programs: ServerPrograms) -> None:
    """One table a rule, in one run: by_table tells them apart, and BRIN counts until 15."""
    tables, operations = [], []
    for name, (indexes, sets, _) in HOT_RULES.items():
        named = [{"name": f"{name}_{n}", **index} for n, index in enumerate(indexes)]
        tables.append(
            {
                "name": name,
                "rows": 200,
                "fillfactor": 50,
                "columns": [
                    {"name": "id", "type": "int8"},
                    {"name": "c", "type": "int4", "values": {"kind": "constant"}},
                    {"name": "d", "type": "int4"},
                ],
                "indexes": [{"name": f"{name}_pkey", "columns": ["id"], "unique": True}, *named],
            }
        )
        operations.append(
            {
                "table": name,
                "kind": "update",
                "sets": sets,
                "transaction": "all",
                "pick": {"distribution": "sequential"},
            }
        )
    measured = _play(_profile(operations, {"operations": 50}, tables=tables), programs).measured
    for name, (_, _, expected) in HOT_RULES.items():
        table = measured.by_table[name]
        hot = programs.version.major >= 16 if expected is None else expected
        assert (table.n_tup_upd, table.hot_frac) == (50, 1.0 if hot else 0.0), name
    assert measured.by_table["brin"].brin_pages > 0
    assert (
        measured.wal_records - sum(table.wal_records for table in measured.by_table.values()) == 50
    ), "one COMMIT a transaction"


def _every_kind(server: Json | None = None) -> Json:
    """Every kind of operation, every type and every distribution, two clients, some aborts."""
    columns = [
        {"name": "id", "type": "int8"},
        {"name": "n", "type": "numeric"},
        {"name": "b", "type": "bool"},
        {"name": "f", "type": "float8", "values": {"kind": "random", "ndistinct": 7}},
        {"name": "at", "type": "timestamptz", "null_frac": 0.3},
        {"name": "ts", "type": "timestamp", "values": {"kind": "serial"}},
        {"name": "code", "type": "bpchar(5)", "values": {"kind": "random", "ndistinct": 26}},
        {"name": "note", "type": "varchar(90)", "width": {"min_bytes": 0, "max_bytes": 90}},
        {"name": "body", "type": "text", "width": {"min_bytes": 1, "max_bytes": 3000}},
    ]
    table = {
        "name": "Mixed Names",
        "rows": 400,
        "fillfactor": 90,
        "columns": columns,
        "indexes": [{"name": "m_pkey", "columns": ["id"], "unique": True}],
        "reloptions": {"autovacuum_vacuum_threshold": "10", "toast_tuple_target": "4000"},
    }
    sets = {"n": {}, "b": {}, "f": {"changed_frac": 0.5}, "at": {}, "ts": {}, "code": {}}
    grows = {"note": {}, "body": {"changed_frac": 0.2, "grows_bytes": {"min": 1, "max": 30}}}
    name = {"table": "Mixed Names"}
    operations: list[Json] = [
        {**name, "kind": "insert", "rows_per_statement": 3, "abort_frac": 0.2},
        {**name, "kind": "update", "sets": sets, "pick": {"distribution": "newest"}},
        {**name, "kind": "update", "sets": grows, "pick": {"distribution": "gaussian", "param": 3}},
        {**name, "kind": "upsert", "sets": grows, "pick": {"distribution": "uniform"}},
        {**name, "kind": "delete", "pick": {"distribution": "oldest"}},
        {**name, "kind": "lock", "pick": {"distribution": "zipfian", "theta": 1.2}},
        {
            **name,
            "kind": "select",
            "find": "seqscan",
            "pick": {"distribution": "hot_set", "rows_frac": 0.1, "weight": 0.7, "scatter": True},
        },
        {
            **name,
            "kind": "update",
            "sets": ["b"],
            "rows_per_statement": 4,
            "pick": {"distribution": "stride", "n": 13},
        },
    ]
    run = {"operations": 800, "clients": 2, "seed": 9}
    return _profile(operations, run, tables=[table], server=server)


def test_every_kind_of_operation_runs(programs: ServerPrograms) -> None:
    """Whatever a profile can say can be played; counters show that each kind took part."""
    played = _play(_every_kind(), programs)
    measured = played.measured
    assert played.transactions == 800
    assert measured.n_tup_ins > 3 * 50
    assert measured.n_tup_upd > 300
    assert measured.n_tup_del > 50
    assert measured.wal_fpi == 0 or programs.version.major >= 18
    assert played.plans["operation[6]"] == "Seq Scan"
    assert played.plans["operation[1]"] == 'Index Scan using "m_pkey"'


@pytest.mark.pg(">= 18, < 19")
def test_one_client_is_repeatable(programs: ServerPrograms) -> None:
    """One client and a seed give the same numbers twice: what the twin has to hit exactly."""
    data = _every_kind({"full_page_writes": True})
    data["run"] = {"operations": 600, "seed": 3}
    first, second = _play(data, programs), _play(data, programs)
    assert first.measured == second.measured
    assert first.measured.wal_fpi > 0
    # The server's own count of the window; the checkpointer hands its few records over late.
    counted = first.checks["pg_stat_wal_records"] - first.checks["window_wal_records"]
    assert 0 <= counted <= 20
    data["run"]["seed"] = 4
    assert _play(data, programs).measured != first.measured


@pytest.mark.pg(">= 18, < 19")
def test_a_snapshot_keeps_dead_rows(programs: ServerPrograms) -> None:
    """Held from a quarter to three quarters of the run: pages fill that pruning would clear."""
    update = {"table": "t", "kind": "update", "sets": ["abalance"]}
    data = _profile([update], {"operations": 12_000, "seed": 2}, rows=2000, fillfactor=80)
    without = _play(data, programs)
    data["run"]["snapshot"] = [{"start_frac": 0.25, "length_frac": 0.5}]
    held = _play(data, programs)
    assert without.measured.n_tup_newpage_upd == 0
    assert held.measured.n_tup_newpage_upd > 1000
    ((began, ended),) = held.snapshots
    assert 0.25 <= began < 0.5
    assert 0.75 <= ended <= 1


@pytest.mark.pg(">= 18, < 19")
def test_a_snapshot_lies_where_it_was_held_beside_turns_without_a_row(
    programs: ServerPrograms,
) -> None:
    """
    It was placed by transaction ids, of which a turn without a row takes none.

    The clients themselves tell when it began: by then as many dead versions could be pruned.
    """
    update = {"table": "t", "kind": "update", "sets": ["abalance"]}
    delete = {"table": "u", "kind": "delete", "weight": 3, "pick": {"distribution": "oldest"}}
    data = _profile([update, delete], {"operations": 60_000, "seed": 2}, rows=300)
    other = {"name": "u", "rows": 100, "columns": ACCOUNTS}
    data["table"].append(other | {"indexes": [KEY | {"name": "u_pkey"}]})
    data["run"]["snapshot"] = [{"start_frac": 0.1, "length_frac": 0.05}]
    profile = parse_profile(data)
    (cell,) = prove(profile, server=str(programs.bin_dir)).cells
    foreseen, measured = mid(cell.predicted.hot_frac), mid(cell.measured.hot_frac)
    assert foreseen == pytest.approx(measured, abs=0.03)


def test_pgbench_tables(programs: ServerPrograms) -> None:
    """The script of pgbench itself: each table's updates, and the one fillfactor."""
    data = {
        "schema_version": 1,
        "server": {"shared_buffers": "64MB"},
        "pgbench": {
            "builtin": "tpcb-like",
            "scale": 1,
            "fillfactor": {"pgbench_accounts": 80},
        },
        "run": {"operations": 500},
    }
    played = _play(data, programs)
    assert played.plans == {
        "pgbench_accounts": 'Index Scan using "pgbench_accounts_pkey"',
        "pgbench_tellers": "Seq Scan",
        "pgbench_branches": "Seq Scan",
    }
    measured = played.measured
    tables = measured.by_table
    # A row of 121 bytes: 61 on a page at 100 (1640 pages), 49 at 80 percent.
    assert tables["pgbench_accounts"].heap_pages == -(-100_000 // 49)
    assert {name: table.n_tup_upd for name, table in tables.items()} == {
        "pgbench_accounts": 500,
        "pgbench_branches": 500,
        "pgbench_tellers": 500,
        "pgbench_history": 0,
    }
    assert tables["pgbench_history"].n_tup_ins == 500


@pytest.mark.pg(">= 18, < 19")
def test_autovacuum_begins_with_the_window(programs: ServerPrograms) -> None:
    """Off while loading, on in the window: its runs are told with their time."""
    update = {"table": "t", "kind": "update", "sets": ["abalance"]}
    server = {
        "autovacuum": True,
        "autovacuum_naptime_s": 1,
        "settings": {"autovacuum_vacuum_threshold": "10", "autovacuum_vacuum_scale_factor": 0},
    }
    data = _profile([update], {"duration_s": 8, "rate_per_s": 250}, rows=1000, server=server)
    played = _play(data, programs)
    assert any(event.kind == "autovacuum" and event.table == "t" for event in played.events)
    assert all(event.t_s > 0 for event in played.events)
    assert 0 < played.transactions < 3000, "without a rate it would be tens of thousands"


def test_events_are_placed_among_all_transactions(programs: ServerPrograms) -> None:
    """Those that find no row write no log, and count: here all of them after the first two."""
    operations = [{"table": "t", "kind": "delete", "pick": {"distribution": "oldest"}}]
    data = _profile(
        operations,
        {"duration_s": 4, "clients": 2},
        server={"autovacuum": True, "autovacuum_naptime_s": 1},
        rows=2,
    )
    played = _play(data, programs)
    assert played.measured.n_tup_del == 2 < played.transactions
    # Clients go on for a second at least.
    before = [event.at_frac for event in played.events if event.t_s < 3]
    assert all(frac is not None and 0 <= frac < 1 for frac in before)


@pytest.mark.pg(">= 18, < 19")
def test_what_cannot_be_measured_is_refused(programs: ServerPrograms) -> None:
    """Another plan than the profile's, a server that is not there, a borrowed one."""
    update = {"table": "t", "kind": "update", "sets": ["abalance"]}
    data = _profile([update], {"operations": 10})
    data["table"][0]["indexes"].insert(0, {"name": "other", "columns": ["aid", "bid"]})
    data["table"][0]["indexes"][0]["unique"] = True
    data["table"][0]["indexes"][1]["unique"] = True
    with pytest.raises(MeasurementInvalid, match='expected Index Scan using "other"') as caught:
        play(parse_profile(data), server=str(programs.bin_dir))
    assert caught.value.exit_code == 4
    data["operation"] = [update | {"find": "bitmap"}]
    with pytest.raises(MeasurementInvalid, match=r'expected Bitmap Heap Scan and .* "other"'):
        play(parse_profile(data), server=str(programs.bin_dir))
    data = _profile([update], {"operations": 10}, server={"version": "17.99"})
    with pytest.raises(ServerNotFound, match="`server` FOLDER"):
        play(parse_profile(data))
    with pytest.raises(InputError, match="throw-away server"):
        play(parse_profile(data), server="host=localhost")


@pytest.mark.pg(">= 18, < 19")
def test_deadlocks_are_part_of_a_run_or_its_end(
    programs: ServerPrograms, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who is rolled back in one has ended all the same; a run that mostly waits is given up."""
    update = {"table": "t", "kind": "update", "sets": ["abalance"], "transaction": "both"}
    data = _profile([update, update], {"operations": 8, "clients": 2}, rows=2)
    played = _play(data, programs)
    assert played.transactions == 8
    data["run"]["operations"] = 20_000
    monkeypatch.setattr(deadlocks, "FEW", 0)
    with pytest.raises(MeasurementInvalid, match=r"found \d+ deadlocks? in \d+ s"):
        play(parse_profile(data), server=str(programs.bin_dir))


@pytest.mark.pg(">= 18, < 19")
@pytest.mark.parametrize("level", ["minimal", "logical"])
def test_server_fields_reach_the_server(programs: ServerPrograms, level: str) -> None:
    """Logical WAL has no shortened updates; without checksums no hint is logged."""
    update = {"table": "t", "kind": "update", "sets": ["abalance"]}
    server = {"wal_level": level, "data_checksums": False, "wal_compression": "pglz"}
    data = _profile([update], {"operations": 100}, server=server, fillfactor=50)
    measured = _play(data, programs).measured
    assert measured.n_tup_hot_upd == 100
    # 104 bytes a row: 24 + 20 + 16 + 5 + 1 and 80 of the row, or what changed of it.
    whole = 100 * (24 + 20 + 16 + 5 + 1 + 80 + COMMIT_BYTES)
    assert (measured.wal_bytes >= whole) == (level == "logical")


@pytest.mark.pg(">= 18, < 19")
def test_a_profile_cannot_bring_statements_of_its_own(programs: ServerPrograms) -> None:
    """Predicates and expressions are text of a file that people pass around."""
    update = {"table": "t", "kind": "update", "sets": ["abalance"]}
    for index, refused, said in (
        (
            {"columns": ["bid"], "where": "bid = 0); COPY t TO PROGRAM 'touch /tmp/x' --"},
            InputError,
            "an expression by PostgreSQL's grammar",
        ),
        (
            {"expressions": ["pg_read_file('postgresql.conf')"]},
            InputError,
            "which has to be immutable",
        ),
        ({"expressions": ["bid::regclass::text"]}, LabError, "must be marked IMMUTABLE"),
    ):
        data = _profile([update], {"operations": 10})
        data["table"][0]["indexes"] = [KEY, {"name": "odd", **index}]
        with pytest.raises(refused, match=said):
            play(parse_profile(data), server=str(programs.bin_dir))

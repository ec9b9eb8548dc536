"""
Each rule of the doctor on a real server.

It fires with the right numbers, and its counterpart, which differs in one fact, is silent.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from doctor_scenarios import APART, LOG, SCENARIOS
from doctor_sides import (
    DAY_S,
    SETTINGS,
    Scenario,
    archiver_right,
    database,
    examined,
    examined_by_all,
    near,
    run,
)
from footprint import DEADLINE_S
from observed import reload

from pgheadroom.doctor import Finding, all_rules
from pgheadroom.errors import HeadroomError
from pgheadroom.servers import Cluster, Host, ServerPrograms, find_programs
from places import fast_place


def servers() -> list[Any]:
    """18 in `make test`; 16, and all others that are at hand, by `make doctor-truth`."""
    folders = [
        folder
        for variable in ("PGHEADROOM_TEST_SERVERS", "PGHEADROOM_LONG_TEST_SERVERS")
        for folder in os.environ.get(variable, "").split(os.pathsep)
    ]
    found: dict[str, ServerPrograms] = {}
    for wanted in ("18", "16", "15", *filter(None, folders)):
        try:
            programs = find_programs(wanted)
        except HeadroomError:
            continue
        found.setdefault(str(programs.version), programs)
    beside = pytest.mark.long(reason="the doctor's rules beside the usual version")
    return [
        pytest.param(programs, id=version, marks=[beside] if number else [])
        for number, (version, programs) in enumerate(found.items())
    ]


@pytest.fixture(scope="module", params=servers())
def shared(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """One server for all scenarios; a database for each side of each."""
    programs: ServerPrograms = request.param
    parent = Path(tempfile.mkdtemp(prefix="pgh-doctor-", dir=fast_place()))
    parent.chmod(0o755)
    before = os.environ.get("PGHEADROOM_TMPDIR")
    os.environ["PGHEADROOM_TMPDIR"] = str(parent)
    try:
        with Host(programs) as host:
            cluster = host.cluster("main")
            cluster.start(SETTINGS)
            yield cluster
    finally:
        if before is None:
            del os.environ["PGHEADROOM_TMPDIR"]
        else:
            os.environ["PGHEADROOM_TMPDIR"] = before
        left = sorted(path.name for path in parent.iterdir())
        shutil.rmtree(parent, ignore_errors=True)
    assert left == []


def only(findings: tuple[Finding, ...], rule: str, about: str) -> Finding | None:
    """The finding of that object; there are no others of the rule."""
    of_rule = [found for found in findings if found.rule == rule]
    assert [found.object for found in of_rule] in ([], [about])
    return of_rule[0] if of_rule else None


def agreeing(findings: tuple[Finding, ...]) -> None:
    """No remedy takes back another's, and no setting is to have two values."""
    said = {statement for found in findings for statement in found.remedy.sql}
    taken_back = {found.remedy.undo for found in findings}
    assert not said & taken_back
    dropped = {found.object for found in findings if "DROP INDEX" in "".join(found.remedy.sql)}
    kept = {found.numbers.get("kept") for found in findings if found.rule == "duplicate-index"}
    assert not dropped & kept - {each.object for each in findings if each.rule == "unused-index"}
    values: dict[str, set[str]] = {}
    for statement in said:
        if match := re.fullmatch(r"ALTER SYSTEM (SET|RESET) (\w+)(.*)", statement):
            values.setdefault(match[2], set()).add(match[1] + match[3])
    assert all(len(each) == 1 for each in values.values()), values
    for found in findings:  # their sentences are made with a full stop behind
        for part in (found.remedy.lock, found.remedy.cost, *found.remedy.sql):
            assert part is None or not part.endswith((".", ";")), part


def test_every_rule_has_its_two_sides() -> None:
    """A rule that nobody has seen fire, or be silent, is a guess."""
    assert {scenario.rule for scenario in SCENARIOS} | APART == {rule.id for rule in all_rules()}


@pytest.mark.parametrize(
    "scenario", SCENARIOS, ids=lambda each: f"{each.rule}{'-' if each.name else ''}{each.name}"
)
def test_a_rule_fires_and_its_counterpart_is_silent(shared: Cluster, scenario: Scenario) -> None:
    if not scenario.since <= shared.version.major <= scenario.until:
        pytest.skip(f"PostgreSQL {scenario.since} to {scenario.until}")
    about = scenario.about.format(major=shared.version.major)
    # That remedies agree is shown of all scenarios at once (test_doctor_agrees.py).
    named = f"{scenario.rule} {scenario.name}".encode()
    is_beside_others = bool(os.environ.get("LONG")) or zlib.crc32(named) % 5 == 0
    for side, own, ahead_s in zip(
        ("fires", "silent"), (scenario.fires, scenario.silent), scenario.ahead_s, strict=True
    ):
        with database(shared, side) as dbname:
            try:
                run(shared, dbname, scenario.common + own)

                def work(dbname: str = dbname) -> None:
                    run(shared, dbname, scenario.work or "")

                diagnosis = examined(
                    shared,
                    dbname,
                    scenario.rule,
                    ahead_s=ahead_s,
                    work=None if scenario.work is None else work,
                    interval_s=scenario.interval_s,
                )
                assert not diagnosis.cut_off, diagnosis.blind
                found = only(diagnosis.findings, scenario.rule, about)
                if side == "silent":
                    assert found is None, found
                else:
                    assert found is not None, diagnosis.blind
                    assert found.severity == scenario.severity, found
                    scenario.check(found, diagnosis)
                    if is_beside_others:
                        agreeing(examined_by_all(shared, dbname, ahead_s).findings)
            finally:
                run(shared, dbname, scenario.leave)
                if side == "fires" or "slot" in scenario.undo:
                    run(shared, "postgres", scenario.undo)


def until(look: Callable[[], bool], awaited: str) -> None:
    """A process of the server's own is waited for, never a clock."""
    deadline = time.monotonic() + DEADLINE_S
    while not look():
        assert time.monotonic() < deadline, f"not within {DEADLINE_S:.0f} s: {awaited}"
        time.sleep(0.02)


def asked(cluster: Cluster, query: str) -> Any:
    with cluster.connect() as connection:
        return connection.execute(query.encode()).fetchall()[0][0]


def test_horizon_holders(shared: Cluster) -> None:
    """A session, a prepared transaction and a slot: what they keep, or nothing yet and silent."""
    with database(shared, "fires") as dbname:
        run(
            shared,
            dbname,
            "CREATE TABLE t (v int, w text);\n"
            "INSERT INTO t SELECT i, repeat('x', 1900) FROM generate_series(1, 12000) i;\n"
            "VACUUM ANALYZE t;\n",
        )
        look = partial(examined, shared, dbname, "horizon-holder")
        with (
            shared.connect(dbname, autocommit=False, application_name="report") as holder,
            shared.connect("postgres", autocommit=False) as elsewhere,
        ):
            for session in (holder, elsewhere):
                session.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                session.execute("SELECT 1")
            pid, other = holder.info.backend_pid, elsewhere.info.backend_pid
            run(shared, dbname, "UPDATE t SET v = -v")
            assert look(ahead_s=7200).findings == (), "hardly anything happened since"
            burn(shared, dbname, 200)
            young, aged = look(), look(ahead_s=7200)
        ended = look(ahead_s=7200)
        assert young.findings == ended.findings == ()
        found, beside = aged.findings
        assert (found.object, beside.object) == (f"session {pid}", f"session {other}")
        assert found.severity == "warning"
        near(found.numbers["age_s"], 7200)
        # Some rows of catalogs are dead too: the more, the more databases other tests have made.
        with shared.connect(dbname) as connection:
            (rows, size), *_ = connection.execute(
                "SELECT sum(n_dead_tup), sum(pg_relation_size(relid)) FROM pg_stat_all_tables "
                "WHERE n_dead_tup > 0 AND relname <> 't'"
            ).fetchall()
        dead, price = found.numbers["dead_rows"], found.price.amount
        assert isinstance(dead, int)
        assert 12_000 <= dead <= 12_000 + rows
        # 3,000 pages hold the rows; half of the versions are dead.
        assert price is not None
        assert 1500 * 8192 <= price <= 1501 * 8192 + size
        assert found.remedy.sql == (f"SELECT pg_terminate_backend({pid})",)
        # Rows of this database do not concern a session of another.
        assert (beside.severity, beside.numbers["dead_rows"]) == ("info", None)
        assert "of the database postgres" in beside.text

        run(shared, dbname, "BEGIN;\nDELETE FROM t WHERE v = -601;\nPREPARE TRANSACTION 'two'")
        burn(shared, dbname, 200)
        young, aged = look(), look(ahead_s=600)
        run(shared, dbname, "ROLLBACK PREPARED 'two'")
        assert young.findings == ()
        found = only(aged.findings, "horizon-holder", "prepared transaction two")
        assert found is not None
        assert found.severity == "info"
        near(found.numbers["age_s"], 600)
        # Its parts elsewhere may be committed: which it is to be, only its manager knows.
        assert found.remedy.sql == ()
        assert "COMMIT PREPARED 'two' or ROLLBACK PREPARED 'two'" in found.remedy.text

        run(shared, dbname, "SELECT pg_create_logical_replication_slot('log', 'pgoutput')")
        assert look().findings == look(ahead_s=7200).findings == ()
        burn(shared, dbname, 100_000)
        found = only(look(ahead_s=7200).findings, "horizon-holder", "slot log")
        run(shared, dbname, "SELECT pg_drop_replication_slot('log')")
        assert found is not None
        assert found.severity == "info", "it keeps rows of catalogs alone"
        assert found.numbers["dead_rows"] is None
        near(found.numbers["age_xids"], 100_000)


def burn(cluster: Cluster, dbname: str, xids: int) -> None:
    """Use up transaction ids."""
    run(
        cluster,
        dbname,
        f"DO $$ BEGIN FOR i IN 1..{xids} LOOP PERFORM pg_current_xact_id(); COMMIT; "
        "END LOOP; END $$",
    )


def test_vacuum_passes(shared: Cluster) -> None:
    """A VACUUM whose memory does not hold the dead rows, looked at while it goes on slowly."""
    with database(shared, "fires") as dbname:
        run(
            shared,
            dbname,
            "CREATE TABLE t (id int PRIMARY KEY, v text);\n"
            "INSERT INTO t SELECT i, 'x' FROM generate_series(1, 400000) i;\n"
            "VACUUM ANALYZE t;\nDELETE FROM t WHERE id % 8 > 0;\n",
        )
        (pages,) = rows_of(shared, dbname, "SELECT relpages FROM pg_class WHERE relname = 't_pkey'")
        a_month_s = 30 * DAY_S  # beyond this server's naptime
        (late,) = examined(shared, dbname, "autovacuum-late", ahead_s=a_month_s).findings
        assert late.remedy.sql == ('VACUUM (VERBOSE) "public"."t"',)
        small = "64kB" if shared.version.major >= 17 else "1MB"
        for memory, fires in ((small, True), ("64MB", False)):
            with shared.connect(dbname) as slow:
                slow.execute(f"SET maintenance_work_mem = '{memory}'".encode())
                slow.execute("SET vacuum_cost_delay = '5ms'")
                worker = threading.Thread(target=_ended, args=(slow, "VACUUM t"))
                worker.start()
                try:
                    until(partial(_went_on, shared, passes=fires), "VACUUM has gone so far")
                    diagnosis = examined(shared, dbname, "vacuum-passes")
                    burn(shared, dbname, 200)
                    (late,) = examined(
                        shared, dbname, "autovacuum-late", ahead_s=a_month_s
                    ).findings
                    held = examined(shared, dbname, "horizon-holder", ahead_s=7200)
                finally:
                    slow.cancel_safe()
                    worker.join()
            found = only(diagnosis.findings, "vacuum-passes", "t")
            assert (found is not None) == fires
            assert (late.severity, late.remedy.sql) == ("info", ()), "it is at work"
            assert held.findings == (), "it keeps nothing for others"
            if found is not None:
                assert found.severity == "info"
                passes = found.numbers["passes"]
                assert isinstance(passes, int)
                assert found.price.amount == passes * pages * 8192


OLDER = {"amcheck": "1.0", "vector": "0.8.0"}


def test_an_extension_with_a_script(shared: Cluster) -> None:
    """Of an older version that the files lead on from: updated as printed it is silent."""
    with database(shared, "extensions") as dbname:
        (at_hand,) = rows_of(
            shared, dbname, "SELECT array_agg(name::text) FROM pg_available_extensions"
        )
        name = next(name for name in OLDER if name in at_hand)
        run(shared, dbname, f"CREATE EXTENSION {name}")
        assert examined(shared, dbname, "extension-outdated").findings == ()
        if name == "amcheck":
            run(shared, dbname, "DROP EXTENSION amcheck;\nCREATE EXTENSION amcheck VERSION '1.0'")
        else:
            # No script installs an older one; those from 0.8.0 on change nothing that is there.
            older = f"UPDATE pg_extension SET extversion = '{OLDER[name]}'"
            run(shared, dbname, f"{older} WHERE extname = '{name}'")
        (found,) = examined(shared, dbname, "extension-outdated").findings
        assert (found.object, found.numbers["installed_version"]) == (name, OLDER[name])
        assert found.remedy.sql == (f'ALTER EXTENSION "{name}" UPDATE',)
        run(shared, dbname, found.remedy.sql[0])
        assert examined(shared, dbname, "extension-outdated").findings == ()


def rows_of(cluster: Cluster, dbname: str, query: str) -> Any:
    with cluster.connect(dbname) as connection:
        return connection.execute(query.encode()).fetchall()[0]


def _ended(connection: Any, statement: str) -> None:
    with contextlib.suppress(Exception):
        connection.execute(statement)


def _went_on(cluster: Cluster, *, passes: bool) -> bool:
    """Once through the indexes and at the table again; or in the table's second half."""
    far = "index_vacuum_count >= 1" if passes else "heap_blks_scanned > heap_blks_total / 2"
    query = f"SELECT count(*) FROM pg_stat_progress_vacuum WHERE {far} AND phase = 'scanning heap'"
    return bool(asked(cluster, query))


def test_archiver(shared: Cluster) -> None:
    """It fails at the first segment; where it succeeds there is nothing."""
    with database(shared, "fires") as dbname:
        segment = "SELECT pg_walfile_name(pg_switch_wal())"
        archived = asked(shared, "SELECT archived_count FROM pg_stat_archiver")
        run(shared, dbname, "SELECT pg_logical_emit_message(false, 'doctor', 'x')")
        asked(shared, segment)
        until(
            lambda: asked(shared, "SELECT archived_count FROM pg_stat_archiver") > archived,
            "a segment is archived",
        )
        assert examined(shared, dbname, "archiver-failing").findings == ()
        failed = asked(shared, "SELECT failed_count FROM pg_stat_archiver")
        run(shared, dbname, "ALTER SYSTEM SET archive_command = 'false';\nSELECT pg_reload_conf()")
        try:
            run(shared, dbname, "SELECT pg_logical_emit_message(false, 'doctor', 'x')")
            asked(shared, segment)
            until(
                lambda: asked(shared, "SELECT failed_count FROM pg_stat_archiver") > failed,
                "archiving fails",
            )
            look = partial(examined, shared, dbname, "archiver-failing")
            diagnosis, stalled = look(), look(ahead_s=600)
            run(shared, dbname, "SELECT pg_logical_emit_message(false, 'doctor', 'x')")
            asked(shared, segment)
            two = look(ahead_s=600)
            run(shared, dbname, "ALTER SYSTEM SET archive_command = '';\nSELECT pg_reload_conf()")
            without = look()
        finally:
            run(shared, dbname, "ALTER SYSTEM RESET archive_command;\nSELECT pg_reload_conf()")
        found = only(diagnosis.findings, "archiver-failing", "archive_command")
        assert found is not None
        assert found.severity == "info", "it has tried for a moment"
        archiver_right(found, diagnosis)
        (late,) = stalled.findings
        assert late.severity == "warning", "one segment"
        (far,) = two.findings
        assert far.severity == "error"
        assert far.numbers["waiting_bytes"] == 2 * 16 * 2**20
        (unset,) = without.findings
        assert unset.severity == "error"
        assert "neither archive_command nor archive_library" in unset.text


def test_checkpoints(shared: Cluster) -> None:
    """The same log, at a small max_wal_size and at a large one."""
    view = "pg_stat_checkpointer" if shared.version.major >= 17 else "pg_stat_bgwriter"
    count = "num_requested" if shared.version.major >= 17 else "checkpoints_req"
    # From 18 on those that are done are counted apart, at their end.
    count = "num_done" if shared.version.major >= 18 else count
    query = f"SELECT {count} FROM {view}"

    with database(shared, "fires") as dbname:
        for size, wanted in (("32MB", 4), ("4GB", 0)):
            run(
                shared,
                dbname,
                f"ALTER SYSTEM SET max_wal_size = '{size}';\nSELECT pg_reload_conf()",
            )
            before = asked(shared, query)

            def work(wanted: int = wanted, before: int = before) -> None:
                for number in range(1, 5):
                    run(shared, dbname, LOG.format(20))
                    if wanted:
                        until(_counts(shared, query, before + number), "a checkpoint")

            diagnosis = examined(shared, dbname, "checkpoints-by-wal", work=work, interval_s=600.0)
            found = only(diagnosis.findings, "checkpoints-by-wal", "max_wal_size")
            if not wanted:
                assert found is None
                continue
            assert found is not None
            assert found.severity == "warning"
            assert found.numbers["checkpoints_by_wal"] in (4, 5, 6)
            assert found.numbers["distance_bytes"] == 16 * 2**20
            near(found.numbers["wal_bytes"], 80 * 2**20, within=0.05)
            # 80 MiB in the interval, an hour of checkpoint_timeout, times 1.9, and two segments.
            needed = 80 * 2**20 / (diagnosis.examined.interval_s or 1) * 3600 * 1.9
            needed += 2 * 16 * 2**20
            near(found.numbers["max_wal_size_wanted_bytes"], needed, within=0.05)
    run(shared, "postgres", "ALTER SYSTEM RESET max_wal_size;\nSELECT pg_reload_conf()")


def _counts(cluster: Cluster, query: str, wanted: int) -> Callable[[], bool]:
    return lambda: bool(asked(cluster, query) >= wanted)


def test_damaged_page(shared: Cluster) -> None:
    """A page of a copied database is damaged before anybody has read it."""
    if asked(shared, "SHOW data_checksums") != "on":
        pytest.skip("without data checksums no damage is seen")
    with database(shared, "silent") as dbname:
        run(shared, dbname, "CREATE TABLE t (v int);\nINSERT INTO t VALUES (1);\nCHECKPOINT")
        assert examined(shared, dbname, "checksum-failures").findings == ()
        run(shared, "postgres", "CREATE DATABASE fires TEMPLATE silent STRATEGY file_copy")
        with shared.connect("fires") as connection:
            (path,) = connection.execute("SELECT pg_relation_filepath('t')").fetchall()[0]
        with shared.relation_path(str(path)).open("r+b") as file:
            file.seek(8000)
            file.write(b"damage")
        run(shared, "fires", "!SELECT * FROM t")
        found = only(
            examined(shared, "fires", "checksum-failures").findings,
            "checksum-failures",
            "database fires",
        )
        run(shared, "postgres", "DROP DATABASE fires WITH (FORCE)")
    assert found is not None
    assert found.severity == "error"
    assert found.numbers["checksum_failures"] == 1


def test_configuration_errors(shared: Cluster) -> None:
    """Lines that the next reload would not take; one that waits for a restart is no error."""
    file = shared.data_dir / "postgresql.conf"
    before = file.read_text()
    line = len(before.splitlines()) + 2
    with database(shared, "fires") as dbname:
        for text, about in (
            ("nonsense_here = 1", "nonsense_here"),
            ("work_mem = banana", "work_mem"),
            ("max_files_per_process = banana", "max_files_per_process"),
            ("max_files_per_process = 999", None),
            ("work_mem = 5MB", None),
        ):
            try:
                with file.open("a") as configuration:
                    configuration.write(f"\n{text}\n")
                diagnosis = examined(shared, dbname, "configuration-errors")
            finally:
                file.write_text(before)
            found = only(diagnosis.findings, "configuration-errors", about or "")
            if about is None:
                assert found is None
                continue
            assert found is not None
            assert found.severity == "warning"
            assert found.numbers["sourceline"] == line
    reload(shared)

"""`wal stats` of a running server: what it flushes in the interval, as its own files have it."""

from __future__ import annotations

import json
import re
import shutil
import threading
from collections import Counter
from collections.abc import Callable

import psycopg
import pytest

from pgheadroom.cli.app import run
from pgheadroom.errors import PrivilegeMissing, WalIncomplete
from pgheadroom.servers import Host, ServerPrograms
from pgheadroom.wal import names_of_server, read_wal
from pgheadroom.wal.live import WalWatch, grants, read_live
from pgheadroom.wal.names import NamesMeanwhile

ROWS = 5000


class _Clock:
    """Time that is over when the writer, who begins with the interval, is done."""

    def __init__(self, dsn: str, work: Callable[[str], None] | None = None) -> None:
        self.writer = threading.Thread(target=work or _write, args=(dsn,))

    def monotonic(self) -> float:
        if self.writer.ident is None:
            self.writer.start()
        return 0.0 if self.writer.is_alive() else 1e9


def _write(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for _ in range(3):
            connection.execute(
                "INSERT INTO t SELECT i, repeat('x', 200) FROM generate_series(1, %s) i", (ROWS,)
            )
            connection.execute("SELECT pg_switch_wal()")


def test_as_the_files_have_it(
    programs: ServerPrograms,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The same sums as from the files; over segments; a role without the right is told which."""
    with Host(programs) as host:
        cluster = host.cluster("live")
        cluster.start({"autovacuum": "off", "wal_keep_size": "1GB"})
        with cluster.connect() as connection:
            connection.execute("CREATE TABLE t (i int, p text)")
            connection.execute("CREATE ROLE reader LOGIN")
            connection.execute("CREATE ROLE nobody LOGIN")
            dsn = connection.info.dsn
        names = names_of_server(dsn, {})
        with monkeypatch.context() as patched:
            patched.setattr("pgheadroom.wal.live.time", _Clock(dsn))
            stats = read_live(dsn, {}, seconds=1.0, names=names)
        assert grants(dsn, {}) == ""
        wanted = grants(dsn, {"user": "reader"})
        with cluster.connect() as connection:
            connection.execute(wanted.encode())
        assert grants(dsn, {"user": "reader"}) == ""
        read_live(dsn, {"user": "reader"}, seconds=0.1)
        with pytest.raises(PrivilegeMissing, match="GRANT EXECUTE"):
            read_live(dsn, {"user": "nobody"}, seconds=0.1)
        assert run(["wal", "stats", dsn, "--for", "1ms", "--from", "0/1"]) == 2
        assert run(["wal", "stats", dsn, "--print-grants"]) == 0
        assert "may read" in capsys.readouterr().out
        cluster.stop()
        files = read_wal(
            cluster.data_dir / "pg_wal", begin=stats.start_lsn, end=stats.end_lsn, names=names
        )
    assert stats.total == files.total
    assert stats.relations == files.relations
    assert stats.gaps == ()
    assert not any("The log ends" in note for note in stats.notes)
    (table,) = (one for one in stats.relations if one.name == "t")
    assert table.by_cause["insert"].records == 3 * ROWS


def test_nothing_is_flushed(programs: ServerPrograms, capsys: pytest.CaptureFixture[str]) -> None:
    """Behind a switch the log stands where no segment is yet: an interval of nothing, no error."""
    with Host(programs) as host:
        cluster = host.cluster("still")
        # Nobody else writes: no snapshot of running transactions, which comes every 15 s.
        cluster.start({"autovacuum": "off", "wal_level": "minimal", "max_wal_senders": "0"})
        with cluster.connect() as connection:
            dsn = connection.info.dsn
            connection.execute("CREATE TABLE t ()")
            connection.execute("SELECT pg_switch_wal()")
            row = connection.execute("SELECT pg_current_wal_flush_lsn()::text").fetchone()
            system = connection.execute(
                "SELECT system_identifier::text FROM pg_control_system()"
            ).fetchone()
        assert row is not None
        assert row[0].endswith("000000")
        stats = read_live(dsn, {}, seconds=0.1)
        assert run(["wal", "stats", dsn, "--for", "100ms"]) == 0
        assert "No record lies" in capsys.readouterr().out
        with WalWatch(dsn, {}) as watch:
            watch.start()
            watched = watch.finish()
    assert stats == watched
    assert stats.total.records == 0
    assert (stats.server, stats.timeline) == (str(programs.version.major), 1)
    assert (stats.system_identifier,) == system


def test_a_database_that_does_not_say_its_encoding(
    newest: ServerPrograms,
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    """SQL_ASCII: texts are taken for UTF-8, and bytes that are none still name their relation."""
    create = b'CREATE TABLE "\xc3\xa4" (); CREATE TABLE "\xe4" ()'
    with Host(newest) as host:
        cluster = host.cluster("ascii")
        cluster.start({"autovacuum": "off"})
        with cluster.connect() as connection:
            connection.execute(
                "CREATE DATABASE old TEMPLATE template0 ENCODING 'SQL_ASCII' LOCALE 'C'"
            )
        with cluster.connect("old") as connection:
            dsn = connection.info.dsn
            connection.execute("SET client_encoding = 'SQL_ASCII'")
            connection.execute(create)
            connection.execute("CREATE TABLE t (i int, p text)")
            connection.execute(
                b"CREATE DATABASE \"\xe4\" TEMPLATE template0 ENCODING 'SQL_ASCII' LOCALE 'C'"
            )
        names = names_of_server(dsn, {})
        assert {"\u00e4", "\udce4"} <= {relation.name for relation in names.relations}
        assert list(names.not_reached) == ["\udce4"]  # no connection string takes such a name
        monkeypatch.setattr("pgheadroom.wal.live.time", _Clock(dsn))
        assert run(["wal", "stats", dsn, "--for", "1s", "-f", "csv"]) == 0
        assert b",old,t," in capsysbinary.readouterr().out


FILL = "INSERT INTO {} SELECT i, repeat('x', 200) FROM generate_series(1, 2000) i"


def change_files(dsn: str) -> None:
    """Make and fill a table, rewrite two, drop one; and one that comes and goes."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in (
            "CREATE TABLE made (i int PRIMARY KEY, p text)",
            FILL.format("made"),
            FILL.format("full_one"),
            "VACUUM FULL full_one",
            FILL.format("emptied"),
            "TRUNCATE emptied",
            FILL.format("emptied"),
            FILL.format("dropped"),
            "DROP TABLE dropped",
            "CREATE TABLE guest (i int, p text)",
            FILL.format("guest"),
            "DROP TABLE guest",
        ):
            connection.execute(statement.encode())


def test_what_is_made_rewritten_and_dropped_meanwhile_has_its_name(
    programs: ServerPrograms, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    A table's files of before and behind the interval are the table's, new and dropped ones too.

    What came and went is said to have no name, with what it has written.
    """
    with Host(programs) as host:
        cluster = host.cluster("files")
        cluster.start({"autovacuum": "off"})
        with cluster.connect() as connection:
            dsn = connection.info.dsn
            for table in ("full_one", "emptied", "dropped"):
                connection.execute(f"CREATE TABLE {table} (i int, p text)".encode())
        with monkeypatch.context() as patched:
            patched.setattr("pgheadroom.wal.live.time", _Clock(dsn, change_files))
            asked = ["wal", "stats", dsn, "--for", "1s", "--names", dsn]
            assert run([*asked, "-f", "json"]) == 0
        found = json.loads(capsys.readouterr().out)
        with cluster.connect() as connection:
            for table in ("full_one", "emptied", "made"):
                connection.execute(f"DROP TABLE {table}".encode())
            for table in ("full_one", "emptied", "dropped"):
                connection.execute(f"CREATE TABLE {table} (i int, p text)".encode())
        with monkeypatch.context() as patched:
            patched.setattr("pgheadroom.wal.live.time", _Clock(dsn, change_files))
            patched.setenv("COLUMNS", "160")
            assert run(["wal", "stats", dsn, "--for", "1s"]) == 0
        shown = capsys.readouterr().out
    rows = Counter[str]()
    files = Counter[str]()
    for relation in found["relations"]:
        if "insert" in relation["by_cause"]:
            rows[relation["name"]] += relation["by_cause"]["insert"]["records"]
        files[relation["name"]] += 1
    assert {name: rows[name] for name in ("made", "full_one", "dropped")} == dict.fromkeys(
        ("made", "full_one", "dropped"), 2000
    )
    assert rows["emptied"] == 4000
    assert (files["full_one"], files["emptied"], files["made_pkey"]) == (2, 2, 1)
    nameless = [one for one in found["relations"] if one["name"] is None and one["relfilenode"]]
    assert any(one["by_cause"].get("insert", {"records": 0})["records"] == 2000 for one in nameless)
    said = f"{len(nameless)} of {len(found['relations']) - 1} relations, with "
    (note,) = [note for note in found["notes"] if "name" in note]
    assert note.startswith(said)
    assert "made and dropped within it" in note
    assert len(set(re.findall(r"emptied \(file (\d+)\)", shown))) == 2


def test_names_of_before_stay_where_nobody_can_be_asked_behind(newest: ServerPrograms) -> None:
    """A server that takes no further connection leaves what it said before, and that is said."""
    with Host(newest) as host:
        cluster = host.cluster("asked")
        cluster.start({"autovacuum": "off"})
        with cluster.connect() as connection:
            connection.execute("CREATE TABLE t (i int)")
            names = NamesMeanwhile(connection.info.dsn, {})
        cluster.stop()
        found = names()
    assert "t" in {one.name for one in found.relations}
    assert any("at the end" in who for who in found.not_reached)


def test_a_segment_that_is_gone(newest: ServerPrograms) -> None:
    """Named, instead of a sum of nothing."""
    with Host(newest) as host:
        cluster = host.cluster("gone")
        cluster.start({"autovacuum": "off"})
        with cluster.connect() as connection:
            dsn = connection.info.dsn
            row = connection.execute("SELECT pg_walfile_name(pg_current_wal_lsn())").fetchone()
        assert row is not None
        (cluster.data_dir / "pg_wal" / row[0]).rename(cluster.data_dir / "pg_wal" / "away")
        with pytest.raises(WalIncomplete, match="removed the segment"):
            read_live(dsn, {}, seconds=0.1)


def test_segments_that_are_gone_meanwhile(
    newest: ServerPrograms, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two that the server has removed are one gap, counted; what is before and behind is summed."""
    with Host(newest) as host:
        cluster = host.cluster("gone")
        cluster.start({"autovacuum": "off", "wal_keep_size": "1GB"})
        with cluster.connect() as connection:
            connection.execute("CREATE TABLE t (i int, p text)")
            dsn = connection.info.dsn
        pg_wal = cluster.data_dir / "pg_wal"

        def write(dsn: str) -> None:
            _write(dsn)
            _write(dsn)
            names = sorted(path.name for path in pg_wal.iterdir() if len(path.name) == 24)
            for name in names[2:4]:
                (pg_wal / name).rename(pg_wal / f"away-{name}")

        monkeypatch.setattr("pgheadroom.wal.live.time", _Clock(dsn, write))
        asked = ["wal", "stats", dsn, "--for", "1s", "-f", "json"]
        assert run(asked) == 3
        found, said = capsys.readouterr()
        monkeypatch.setattr("pgheadroom.wal.live.time", _Clock(dsn, write))
        assert run([*asked, "--allow-gaps"]) == 0
        away = sorted(path.name for path in pg_wal.glob("away-*"))[:2]
    stats = json.loads(found)
    first, second = (name.removeprefix("away-") for name in away)
    (gap,) = stats["gaps"]
    assert gap["path"] == first
    assert "removed" in gap["why"]
    assert first in said
    assert any(f"2 segments, {first} to {second}," in note for note in stats["notes"])
    (table,) = (one for one in stats["relations"] if one["name"] == "t")
    # Of six segments, each with the rows of one statement, two are gone, and what crossed there.
    assert 3 * ROWS < table["by_cause"]["insert"]["records"] <= 4 * ROWS


def _promote(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        assert connection.execute("SELECT pg_promote()").fetchone() == (True,)


def _write_promoted(dsn: str) -> None:
    _promote(dsn)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (i int, p text)")
    _write(dsn)


def test_a_promotion(newest: ServerPrograms, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    In the interval it ends the reading, with both timelines; behind it the new one is read.

    Until the checkpoint that a promotion asks for is over the control file names the timeline that
    was left, and the segment in which it was left stays: what came then was missed, or its
    segments were called removed.
    """
    with Host(newest) as host:
        cluster = host.cluster("promoted")
        cluster.start({"autovacuum": "off"})
        cluster.stop()
        signal = cluster.data_dir / "standby.signal"
        signal.touch()
        shutil.chown(signal, cluster.data_dir.owner())
        cluster.start({"autovacuum": "off", "wal_keep_size": "1GB"})
        with cluster.connect() as connection:
            dsn = connection.info.dsn
        with monkeypatch.context() as patched:
            patched.setattr("pgheadroom.wal.live.time", _Clock(dsn, _write_promoted))
            with pytest.raises(WalIncomplete, match="timeline 1 to 2"):
                read_live(dsn, {}, seconds=1.0)
        with cluster.connect() as connection:
            connection.execute("TRUNCATE t")
        with monkeypatch.context() as patched:
            patched.setattr("pgheadroom.wal.live.time", _Clock(dsn))
            stats = read_live(dsn, {}, seconds=1.0)
        cluster.stop()
        folder = cluster.data_dir / "pg_wal"
        files = read_wal(folder, begin=stats.start_lsn, end=stats.end_lsn)
    assert files.timeline == stats.timeline == 2
    assert stats.total == files.total
    assert stats.by_cause["insert"].records >= 3 * ROWS

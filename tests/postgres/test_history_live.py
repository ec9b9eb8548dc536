"""A history of a real server: other hours give what was done in them, and nothing of now."""

from __future__ import annotations

from pathlib import Path

import pytest
from doctor_sides import conninfo, database, run

from pgheadroom.doctor import Diagnosis
from pgheadroom.doctor.live import examine_live
from pgheadroom.errors import InputError
from pgheadroom.history import History
from pgheadroom.observe import observe_live, request_of
from pgheadroom.profile import Profile
from pgheadroom.servers import Cluster, Host, ServerPrograms
from pgheadroom.sources.session import read_only_session
from pgheadroom.watch.keeping import Keeper
from pgheadroom.watch.recalling import Recalled

pytestmark = pytest.mark.usefixtures("run_parent")

# A page has three rows and room for two more: of each page one is updated in place, HOT.
MAKE = (
    "CREATE TABLE roomy (id int8 PRIMARY KEY, v int8, w int8, filler char(1500)) "
    "WITH (fillfactor = 60);\n"
    "CREATE INDEX roomy_w ON roomy (w);\n"
    "INSERT INTO roomy SELECT i, i, i, 'x' FROM generate_series(1, 300) i;\n"
    "ANALYZE roomy;\n"
)
HOT = "UPDATE roomy SET v = v + 1 WHERE id % 3 = 0"
COLD = "UPDATE roomy SET w = w + 1 WHERE id % 3 = 1"


def keep(cluster: Cluster, path: Path, dbname: str = "postgres") -> None:
    """A moment, as a watch that is started for it alone keeps it."""
    with (
        read_only_session(conninfo(cluster, dbname), {}) as connection,
        Keeper(path, connection) as keeper,
    ):
        keeper.keep(connection)


def observed(cluster: Cluster, recalled: Recalled) -> Profile:
    return observe_live(
        conninfo(cluster, "postgres"),
        {},
        request_of(1.0, samples=True),
        past=recalled.for_observe,
        say=lambda _: None,
    )


def examined(cluster: Cluster, recalled: Recalled, dbname: str = "postgres") -> Diagnosis:
    return examine_live(conninfo(cluster, dbname), {}, past=recalled.for_doctor)


@pytest.mark.each
def test_other_hours_are_what_was_done_in_them(programs: ServerPrograms, tmp_path: Path) -> None:
    """
    Three moments, and work of another kind after each: the profile has each interval's own.

    Every query of observe and every rule of the doctor's that counts is kept; none fails.
    """
    path = tmp_path / "h.sqlite"
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        run(cluster, "postgres", MAKE)
        keep(cluster, path)
        run(cluster, "postgres", HOT)
        keep(cluster, path)
        run(cluster, "postgres", f"{COLD};\nINSERT INTO roomy VALUES (1000, 1, 1, 'x')")
        keep(cluster, path)
        run(cluster, "postgres", f"{HOT};\n" * 5)  # of now, and of no interval
        with History.open(path) as history:
            moments = history.moments()
            for moment in moments:
                answers = history.answers(moment)
                failed = {name: one.failed for name, one in answers.items() if one.failed}
                assert failed == {}
        both = Recalled(path, None, None)
        assert len(both.span.moments) == 3
        profile = observed(cluster, both)
        table = profile.table("roomy")
        assert table.observed is not None
        counted = table.observed.counters
        assert counted is not None
        assert (counted.n_tup_upd, counted.n_tup_hot_upd, counted.n_tup_ins) == (200, 100, 1)
        length_s = moments[2].at_s - moments[0].at_s
        assert abs(profile.server.observed["interval_s"] - length_s) < 0.01

        found = examined(cluster, both)
        assert not found.cut_off, found.blind
        assert found.examined.interval_s == round(length_s, 3)
        if programs.version.major >= 16:  # 15 does not count which updates leave their page
            (ends,) = (each for each in found.findings if each.rule == "index-ends-hot")
            assert ends.numbers["n_tup_upd"] == 200
        assert found.notes[0].startswith("counters are those of ")


def test_what_cannot_be_told_is_refused(newest: ServerPrograms, tmp_path: Path) -> None:
    """Another database's history; an interval in which statistics were reset."""
    path = tmp_path / "h.sqlite"
    with Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        run(cluster, "postgres", MAKE)
        for _ in range(2):
            keep(cluster, path)
        with database(cluster, "other") as other:
            with pytest.raises(InputError, match="of another database, postgres"):
                keep(cluster, path, other)
            with pytest.raises(InputError, match="of another database, postgres"):
                examined(cluster, Recalled(path, None, None), other)
        run(cluster, "postgres", "SELECT pg_stat_reset()")
        for _ in range(2):
            keep(cluster, path)
        # Since the reset alone, where nobody says from when.
        assert len(Recalled(path, None, None).span.moments) == 2
        with pytest.raises(InputError, match="statistics were reset between"):
            Recalled(path, "2020-01-01", None)


KEEP_S_MAX = 2.0
"""Of the server's processor time, with 2,000 tables: observe's pass and the doctor's together."""


def test_a_moment_of_two_thousand_tables(newest: ServerPrograms, tmp_path: Path) -> None:
    """Its cost at the server is bounded, and what has not changed takes hardly any room."""
    path = tmp_path / "h.sqlite"
    make = (
        "DO $$ BEGIN FOR i IN 1..2000 LOOP EXECUTE format('CREATE TABLE t%s (id int8 PRIMARY KEY, "
        "v int)', i); EXECUTE format('INSERT INTO t%s VALUES (1, 1)', i); "
        "IF i % 200 = 0 THEN COMMIT; END IF; END LOOP; END $$"
    )
    with Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off", "max_locks_per_transaction": "512"})
        run(cluster, "postgres", make)
        with (
            read_only_session(conninfo(cluster, "postgres"), {}) as connection,
            Keeper(path, connection) as keeper,
        ):
            keeper.keep(connection)
            size = path.stat().st_size
            stat = Path(f"/proc/{connection.info.backend_pid}/schedstat")
            before = int(stat.read_text().split()[0])
            keeper.keep(connection)
            used_s = (int(stat.read_text().split()[0]) - before) / 1e9
            grown = path.stat().st_size - size
    print(f"a moment: {used_s * 1000:.0f} ms; {size:,} bytes, then {grown:,}")
    assert used_s < KEEP_S_MAX
    assert grown < size / 4

"""The doctor's findings as steps: planned, applied, verified and taken back on real servers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from doctor_sides import DAY_S, conninfo, run
from test_doctor_rules import asked

from pgheadroom.cli.app import run as command
from pgheadroom.doctor import Diagnosis, rule_named
from pgheadroom.doctor.live_plan import examine_and_plan
from pgheadroom.doctor.planning import PlanWish
from pgheadroom.errors import InputError
from pgheadroom.plan import Plan, plan_text, read_plan
from pgheadroom.plan.execution import ApplyCall
from pgheadroom.plan.record import AppliedRecord, new_record, read_record, record_path, save
from pgheadroom.plan.remedy_apply import applier_of
from pgheadroom.plan.session import writing_session
from pgheadroom.servers import Cluster, Host, ServerPrograms
from pgheadroom.sources.session import read_only_session
from pgheadroom.verify.claims import verify_remedies
from pgheadroom.verify.values import Verification

pytestmark = pytest.mark.usefixtures("run_parent")

SETTINGS = {
    "autovacuum": "on",
    "autovacuum_naptime": "2147483",  # never comes by itself
    "fsync": "off",
    "full_page_writes": "off",
    "checkpoint_timeout": "1d",
    "max_wal_size": "64MB",
    "min_wal_size": "32MB",
    "shared_buffers": "64MB",
}
RULES = (
    "duplicate-index",
    "overlapping-index",
    "unused-index",
    "bloated-index",
    "foreign-key-without-index",
    "autovacuum-late",
    "large-table-trigger",
)
EVERYTHING = PlanWish(settings=True)
CHECKPOINTS = ("checkpoints-by-wal",)
SHOP = (
    "CREATE SEQUENCE s CACHE 1000;\n"
    "CREATE TABLE t (v int8 NOT NULL, w int8 NOT NULL);\n"
    "INSERT INTO t SELECT nextval('s'), nextval('s') FROM generate_series(1, 60000);\n"
    "CREATE INDEX t_v ON t (v);\nCREATE INDEX t_v_again ON t (v);\n"
    'CREATE INDEX "odd ""name" ON t (w);\n'
    "CREATE TABLE wide (id int8 NOT NULL, v text NOT NULL);\n"
    "INSERT INTO wide SELECT i, repeat(md5(i::text), 6) FROM generate_series(1, 90000) i;\n"
    "CREATE INDEX wide_v ON wide (v);\nSET enable_seqscan = off;\n"
    "SELECT count(*) FROM wide WHERE v = 'v';\nRESET enable_seqscan;\n"
    "DELETE FROM wide WHERE id % 5 < 3;\nVACUUM wide;\n"
    "CREATE TABLE parent (id int PRIMARY KEY);\n"
    "INSERT INTO parent SELECT i FROM generate_series(1, 100) i;\n"
    "CREATE TABLE child (id int, parent int REFERENCES parent);\n"
    "INSERT INTO child SELECT i, 1 FROM generate_series(1, 60000) i;\n"
    "CREATE TABLE large (v int) WITH (autovacuum_vacuum_threshold = 90000000);\n"
    "INSERT INTO large VALUES (1), (2);\nVACUUM ANALYZE;\nDELETE FROM large WHERE v = 1;\n"
    "UPDATE pg_class SET relpages = 13107200, reltuples = 400000000 WHERE relname = 'large';\n"
)
INSERTS = "INSERT INTO t SELECT nextval('s'), nextval('s') FROM generate_series(1, 20000);\n"
LOG = (
    "SELECT count(pg_logical_emit_message(false, 'doctor', repeat('x', 1048576)))"
    " FROM generate_series(1, {}) i;\n"
)
OFTEN = (LOG.format(20) + "CHECKPOINT;\n") * 5
"""Each is counted as requested, and the log between two of them is one distance."""


@contextmanager
def shop(programs: ServerPrograms, *, checkpoints: bool = False) -> Iterator[Cluster]:
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start(SETTINGS)
        run(cluster, "postgres", SHOP + (OFTEN if checkpoints else ""))
        yield cluster


def planned(
    cluster: Cluster,
    *,
    rules: tuple[str, ...] = RULES,
    work: str | None = None,
    wish: PlanWish = EVERYTHING,
    dbname: str = "postgres",
    standbys: tuple[str, ...] = (),
    ahead_s: float = 31 * DAY_S,
) -> Plan:
    """By a clock that is ahead; with work, over an interval in which it is done."""
    _, plan = examine_and_plan(
        conninfo(cluster, dbname),
        {},
        wish,
        rules=[rule_named(name) for name in rules],
        standbys=standbys,
        interval_s=None if work is None else 60.0,
        sleep=lambda _: run(cluster, dbname, work or ""),
        ahead_s=ahead_s,
    )
    assert plan is not None
    return plan


def written(plan: Plan, folder: Path) -> Path:
    path = folder / "plan.json"
    path.write_text(plan_text(plan), encoding="utf-8")
    assert read_plan(path) == plan
    return path


def verified(cluster: Cluster, path: Path, work: str, dbname: str = "postgres") -> Verification:
    plan = read_plan(path)
    with read_only_session(conninfo(cluster, dbname), {}) as connection:
        return verify_remedies(
            plan,
            read_record(record_path(path), plan),
            connection,
            60.0,
            sleep=lambda _: run(cluster, dbname, work),
        )


def verdicts(found: Verification) -> dict[tuple[str, str], str]:
    return {(one.object, one.measure): one.verdict for one in found.claims or ()}


def states(path: Path) -> list[str]:
    data = json.loads(record_path(path).read_text(encoding="utf-8"))
    return [step["state"] for step in data["steps"]]


def catalog(cluster: Cluster) -> list[str]:
    """Indexes that are valid, storage parameters, the setting."""
    with cluster.connect() as connection:
        found = connection.execute(
            "SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indisvalid"
            " AND indrelid >= 16384 AND indrelid <> ALL (SELECT reltoastrelid FROM pg_class)"
            " UNION ALL SELECT relname || ' ' || reloptions::text FROM pg_class"
            " WHERE reloptions IS NOT NULL AND oid >= 16384"
            " UNION ALL SELECT setting FROM pg_settings WHERE name = 'max_wal_size' ORDER BY 1"
        ).fetchall()
    return [str(row[0]) for row in found]


KINDS = [
    ("set_storage", "large"),
    ("drop_index", "t_v_again"),
    ("drop_index", 'odd "name'),
    ("create_index", "child_parent_fkey_idx"),
    ("rebuild_index", "wide_v"),
]


def test_the_whole_loop(
    programs: ServerPrograms, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Found, planned, applied, each claim held, and all of it taken back as it was."""
    with shop(programs) as cluster:
        before = catalog(cluster)
        plan = planned(cluster, work=INSERTS)
        assert {(step.kind, step.about) for step in plan.work} == set(KINDS)
        path, target = written(plan, tmp_path), conninfo(cluster, "postgres")
        assert command(["apply", str(path), target, "--dry-run"]) == 0
        assert catalog(cluster) == before
        assert command(["apply", str(path), target, "--yes"]) == 0
        assert states(path) == ["done"] * 5
        kept = record_path(path).read_text(encoding="utf-8")
        assert command(["apply", str(path), target, "--yes"]) == 0
        assert "Nothing is left to do" in capsys.readouterr().out
        assert record_path(path).read_text(encoding="utf-8") == kept, "nothing ran twice"

        found = verified(cluster, path, INSERTS + "DELETE FROM parent WHERE id > 90;\n")
        assert set(verdicts(found).values()) == {"held"}, found.claims
        measures = {one.measure for one in found.claims or ()}
        assert measures == {
            "deletes_by_index_frac",
            "given_back_bytes",
            "n_dead_tup",
            "wal_bytes_per_entry",
        }
        assert command(["verify", str(path), target, "--for", "10ms"]) == 6, "nothing was written"
        capsys.readouterr()

        assert command(["apply", str(path), target, "--yes", "--undo"]) == 0
        assert states(path) == ["undone"] * 4 + ["done"]
        assert catalog(cluster) == before
        assert command(["apply", str(path), target, "--yes"]) == 0, "and done again"
        assert states(path) == ["done"] * 5


def test_a_setting_of_the_server(programs: ServerPrograms, tmp_path: Path) -> None:
    """Fewer checkpoints for as much WAL; and what was set by ALTER SYSTEM before is set again."""
    for was, undone in ((None, "64"), ("48MB", "48")):
        with Host(programs) as host:
            cluster = host.cluster("main")
            cluster.start(SETTINGS)
            if was is not None:
                run(
                    cluster,
                    "postgres",
                    f"ALTER SYSTEM SET max_wal_size = '{was}';\nSELECT pg_reload_conf()",
                )
            run(cluster, "postgres", OFTEN)
            path = written(planned(cluster, rules=CHECKPOINTS, ahead_s=7200.0), tmp_path)
            target = conninfo(cluster, "postgres")
            assert command(["apply", str(path), target, "--yes"]) == 0
            assert verdicts(verified(cluster, path, "SELECT 1")) == {
                ("max_wal_size", "setting"): "held",
                ("max_wal_size", "checkpoints_by_wal"): "undecided",
            }
            assert set(verdicts(verified(cluster, path, LOG.format(150))).values()) == {"held"}
            found = verdicts(verified(cluster, path, OFTEN * 4))
            assert found["max_wal_size", "checkpoints_by_wal"] == "failed", "as many as before"
            assert command(["apply", str(path), target, "--yes", "--undo"]) == 0
            assert (
                asked(cluster, "SELECT setting FROM pg_settings WHERE name = 'max_wal_size'")
                == undone
            )
            record_path(path).unlink()


def test_a_claim_that_does_not_come_true_fails(newest: ServerPrograms, tmp_path: Path) -> None:
    """The index is made again under another name: as much is written as before."""
    with shop(newest) as cluster:
        plan = planned(cluster, rules=("duplicate-index",), work=INSERTS)
        path, target = written(plan, tmp_path), conninfo(cluster, "postgres")
        assert command(["apply", str(path), target, "--yes"]) == 0
        run(cluster, "postgres", "CREATE INDEX another ON t (v)")
        found = verdicts(verified(cluster, path, INSERTS))
        assert found["t_v_again", "wal_bytes_per_entry"] == "failed"
        # The same rows of another table are no comparison.
        run(cluster, "postgres", "CREATE TABLE u (v int8)")
        other = "INSERT INTO u SELECT generate_series(1, 20000);\n"
        mixed = verified(cluster, path, INSERTS + other)
        assert verdicts(mixed)["t_v_again", "wal_bytes_per_entry"] == "undecided"
        # VACUUM removes nothing that a snapshot sees.
        record_path(path).unlink()
        with cluster.connect(autocommit=False) as holder:
            holder.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            holder.execute("SELECT 1 FROM parent")
            run(cluster, "postgres", "DELETE FROM wide")
            path = written(planned(cluster, rules=("autovacuum-late",)), tmp_path)
            assert [(step.kind, step.about) for step in read_plan(path).work] == [
                ("vacuum", "wide")
            ]
            target = conninfo(cluster, "postgres")
            assert command(["apply", str(path), target, "--yes"]) == 0
            assert command(["verify", str(path), target, "--for", "10ms"]) == 1
        record_path(path).unlink()
        assert command(["apply", str(path), target, "--yes"]) == 0
        assert command(["verify", str(path), target, "--for", "10ms"]) == 0


class Killed(BaseException):
    """Stands for the end of the process."""


def _apply(
    cluster: Cluster, path: Path, *, undo: bool = False, killed_at: int = 0
) -> tuple[int, ...]:
    """One call; with `killed_at` it ends behind that write of the record."""
    plan, writes = read_plan(path), 0

    def keep(record: AppliedRecord) -> None:
        nonlocal writes
        save(record, record_path(path))
        writes += 1
        if writes == killed_at:
            raise Killed

    with writing_session(conninfo(cluster, "postgres"), {}) as connection:
        record = read_record(record_path(path), plan) or new_record(plan)
        call = ApplyCall(
            plan=plan, record=record, connection=connection, keep=keep, say=lambda _: None
        )
        applier = applier_of(call)
        outcome = applier.run(applier.prepare(undo=undo), undo=undo)
        assert outcome.stopped is None, outcome
        return outcome.done


@pytest.mark.parametrize(
    "kinds",
    [
        ("set_storage",),
        pytest.param(
            ("set_server", "set_storage", "drop_index", "create_index"),
            marks=pytest.mark.long(reason="every moment of each kind; one is above"),
        ),
    ],
    ids=lambda kinds: str(len(kinds)),
)
def test_an_end_at_any_moment_loses_nothing(
    newest: ServerPrograms, tmp_path: Path, kinds: tuple[str, ...]
) -> None:
    """Whoever comes next finds out what has happened, and does the rest; undo takes it all back."""
    with shop(newest, checkpoints=True) as cluster:
        start = catalog(cluster)
        plan = planned(cluster, rules=(*RULES, *CHECKPOINTS))
        steps = [step for step in plan.remedies or () if step.kind in kinds]
        assert {step.kind for step in steps} == set(kinds)
        plan = replace(
            plan,
            remedies=tuple(replace(step, number=n) for n, step in enumerate(steps, 1)),
        )
        path, count = written(plan, tmp_path), len(plan.work)
        for undo in (False, True):
            for moment in range(1, 2 * count + 1):
                record_path(path).unlink(missing_ok=True)
                if undo:
                    assert len(_apply(cluster, path)) == count
                with pytest.raises(Killed):
                    _apply(cluster, path, undo=undo, killed_at=moment)
                assert len(_apply(cluster, path, undo=undo)) == count - moment // 2
                if not undo:
                    assert len(_apply(cluster, path, undo=True)) == count
                assert catalog(cluster) == start


def _half_dropped(cluster: Cluster, path: Path) -> None:
    """A transaction that has used the table lets the drop mark its index, and no more."""
    waiting = ["--lock-timeout", "100ms", "--lock-retries", "0"]
    target = conninfo(cluster, "postgres")
    with cluster.connect(autocommit=False) as holder:
        holder.execute("SELECT count(*) FROM t WHERE v = 1")
        assert command(["apply", str(path), target, "--yes", *waiting]) == 1
    invalid = "SELECT count(*) FROM pg_index WHERE NOT indisvalid"
    assert asked(cluster, invalid) == 1, "the drop was stopped in its middle"
    assert states(path) == ["failed"]


def test_a_drop_that_was_stopped(newest: ServerPrograms, tmp_path: Path) -> None:
    """It leaves an invalid index: the same command ends it, and the undo builds it again."""
    with shop(newest) as cluster:
        path = written(planned(cluster, rules=("duplicate-index",)), tmp_path)
        target, before = conninfo(cluster, "postgres"), catalog(cluster)
        _half_dropped(cluster, path)
        assert command(["apply", str(path), target, "--yes", "--undo"]) == 0
        assert (states(path), catalog(cluster)) == (["undone"], before)
        record_path(path).unlink()
        _half_dropped(cluster, path)
        assert command(["apply", str(path), target, "--yes"]) == 0
        assert states(path) == ["done"]
        assert len(catalog(cluster)) == len(before) - 1
        assert command(["apply", str(path), target, "--yes", "--undo"]) == 0
        assert catalog(cluster) == before


@pytest.mark.long(reason="as the drop above, of a build and of a rebuild")
@pytest.mark.parametrize(
    ("rule", "table"), [("foreign-key-without-index", "child"), ("bloated-index", "wide")]
)
def test_a_build_that_was_stopped(
    newest: ServerPrograms, tmp_path: Path, rule: str, table: str
) -> None:
    """What it has left goes with the undo, or before the next try."""
    waiting = ["--lock-timeout", "100ms", "--lock-retries", "0"]
    invalid = "SELECT count(*) FROM pg_index WHERE NOT indisvalid"
    with shop(newest) as cluster:
        path = written(planned(cluster, rules=(rule,)), tmp_path)
        target, before = conninfo(cluster, "postgres"), catalog(cluster)
        for then in (["--undo"], []):
            with cluster.connect(autocommit=False) as holder:
                holder.execute(f"UPDATE {table} SET id = id WHERE id = 5".encode())
                assert command(["apply", str(path), target, "--yes", *waiting]) == 1
            assert asked(cluster, invalid) == 1, "the build was stopped in its middle"
            assert command(["apply", str(path), target, "--yes", *then]) == 0
            assert asked(cluster, invalid) == 0
        assert states(path) == ["done"]
        assert len(catalog(cluster)) == len(before) + (rule == "foreign-key-without-index")


def test_what_has_changed_is_refused(
    newest: ServerPrograms, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each step rests on what was seen: read since, its twin gone, set by another, made anew."""
    changes = {
        'odd "name': "SET enable_seqscan = off;\nSELECT count(*) FROM t WHERE w = 7",
        "t_v_again": "DROP INDEX t_v",
        "large": "ALTER TABLE large SET (autovacuum_vacuum_threshold = 7)",
        "max_wal_size": "ALTER SYSTEM SET max_wal_size = '80MB';\nSELECT pg_reload_conf()",
        "wide_v": "REINDEX INDEX wide_v",
        "child_parent_fkey_idx": "CREATE INDEX child_parent_fkey_idx ON child (id)",
    }
    said = {
        'odd "name': "it was read 1 times",
        "t_v_again": "t_v, which serves in its place, is not as it was planned",
        "large": "found autovacuum_vacuum_scale_factor not set, autovacuum_vacuum_threshold 7",
        "max_wal_size": "found 80, the plan has 64",
        "wide_v": "it was built anew since it was planned",
        "child_parent_fkey_idx": "an index of that name is there already",
    }
    with shop(newest, checkpoints=True) as cluster:
        path = written(planned(cluster, rules=(*RULES, *CHECKPOINTS)), tmp_path)
        target = conninfo(cluster, "postgres")
        for change in changes.values():
            run(cluster, "postgres", change)
        before = catalog(cluster)
        assert command(["apply", str(path), target, "--yes"]) == 2
        shown = capsys.readouterr().err
        for about, why in said.items():
            assert f"{about}: {why}" in " ".join(shown.split()), shown
        assert catalog(cluster) == before
        skip = [
            word for name in ("t", "large", "max_wal_size", "child") for word in ("--skip", name)
        ]
        run(cluster, "postgres", "DROP INDEX wide_v")
        assert command(["apply", str(path), target, "--yes", *skip]) == 1
        assert "it is gone: dropped since it was planned" in capsys.readouterr().out


def test_rights_are_asked_for_first(
    newest: ServerPrograms, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Settings are a superuser's, tables their owner's; nothing is done before that is known."""
    with shop(newest, checkpoints=True) as cluster:
        path = written(planned(cluster, rules=(*RULES, *CHECKPOINTS)), tmp_path)
        run(
            cluster,
            "postgres",
            "CREATE ROLE keeper LOGIN;\nCREATE ROLE reader LOGIN;\n"
            "ALTER TABLE t OWNER TO keeper;\nALTER TABLE wide OWNER TO keeper;\n"
            "ALTER TABLE child OWNER TO keeper;\nALTER TABLE large OWNER TO keeper",
        )
        plan = planned(cluster, rules=CHECKPOINTS, wish=PlanWish())
        assert plan.work == (), "ALTER SYSTEM concerns everybody"
        assert "a setting of the server is a step with --settings" in plan.notes[0]
        before = catalog(cluster)
        keeper = conninfo(cluster, "postgres", "keeper")
        assert command(["apply", str(path), keeper, "--yes"]) == 3
        said = " ".join(capsys.readouterr().err.split())
        assert "max_wal_size is a setting of the server: found role keeper" in said
        assert "GRANT ALTER SYSTEM ON PARAMETER max_wal_size" in said
        reader = conninfo(cluster, "postgres", "reader")
        assert command(["apply", str(path), reader, "--yes", "--skip", "max_wal_size"]) == 3
        assert "only its owner may change a table" in " ".join(capsys.readouterr().err.split())
        assert command(["apply", str(path), keeper, "--yes", "--skip", "max_wal_size"]) == 3
        said = " ".join(capsys.readouterr().err.split())
        assert "has to be made again by the undo: found role keeper, which has no CREATE" in said
        assert catalog(cluster) == before
        run(
            cluster,
            "postgres",
            "GRANT ALTER SYSTEM ON PARAMETER max_wal_size TO keeper;\n"
            "GRANT EXECUTE ON FUNCTION pg_reload_conf() TO keeper;\n"
            "GRANT CREATE ON SCHEMA public TO keeper",
        )
        assert command(["apply", str(path), keeper, "--yes"]) == 0


def test_a_table_is_rewritten_as_asked(newest: ServerPrograms, tmp_path: Path) -> None:
    """VACUUM FULL only by its name; the table's heap and TOAST are one step with two claims."""
    make = (
        "CREATE TABLE big (id int8 PRIMARY KEY, v text NOT NULL, w char(500));\n"
        "ALTER TABLE big ALTER COLUMN v SET STORAGE EXTERNAL;\n"
        "INSERT INTO big SELECT i, repeat(md5(i::text), CASE WHEN i <= 250 THEN 3120 ELSE 1 END),"
        " 'w' FROM generate_series(1, 50000) i;\n"
        "DELETE FROM big WHERE id % 5 < 3;\nVACUUM big;\nANALYZE big;\n"
    )
    with Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start(SETTINGS)
        run(cluster, "postgres", make)

        def rules(how: str) -> Plan:
            return planned(cluster, rules=("bloated-table",), wish=PlanWish(rewrite=how))

        auto = rules("auto")
        assert auto.work == ()
        assert "takes ACCESS EXCLUSIVE: nobody reads or writes it" in auto.notes[0]
        plan = rules("vacuum-full")
        (step,) = plan.remedies or ()
        assert {claim.measure for claim in step.claims} == {
            "given_back_bytes",
            "toast_given_back_bytes",
        }
        path = written(plan, tmp_path)
        assert command(["apply", str(path), conninfo(cluster, "postgres"), "--yes"]) == 0
        assert command(["verify", str(path), conninfo(cluster, "postgres"), "--for", "10ms"]) == 0
        with pytest.raises(InputError, match="rewrite 'no-such-tool' is not known"):
            rules("no-such-tool")


def test_what_was_found_is_printed_without_a_plan(
    newest: ServerPrograms, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The connection ends before a plan can be made: exit code 3, and the findings all the same."""
    with shop(newest) as cluster:
        run(
            cluster,
            "postgres",
            "CREATE ROLE once LOGIN;\nALTER ROLE once SET statement_timeout = 0",
        )
        path = tmp_path / "plan.json"

        def end_it(found: Diagnosis) -> Diagnosis:
            with cluster.connect() as admin:
                admin.execute(
                    "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
                    " WHERE usename = 'once'"
                )
            return found

        said: list[str] = []
        found, plan = examine_and_plan(
            conninfo(cluster, "postgres", "once"),
            {},
            PlanWish(),
            rules=[rule_named("duplicate-index")],
            then=end_it,
            say=said.append,
        )
        assert plan is None
        assert [one.object for one in found.findings] == ["t_v_again"]
        assert said[-1].startswith("no plan could be made: ")
        assert not path.exists()
        target = conninfo(cluster, "postgres")
        assert command(["doctor", target, "--plan", str(path), "--standby", target]) == 2
        shown = capsys.readouterr()
        assert "is no standby: expected one of this server" in " ".join(shown.err.split())
        assert "watching" not in shown.err

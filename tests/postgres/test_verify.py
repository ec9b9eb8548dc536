"""`verify` on real servers: HOT shares of our choosing, so that each verdict has its cause."""

from __future__ import annotations

import csv
import io
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import observed
import planned
import pytest

from pgheadroom.advise.foreseen import Point, Transition
from pgheadroom.advise.table_advice import TableAdvice
from pgheadroom.cli.app import run
from pgheadroom.outcome import Value
from pgheadroom.plan import Plan, make_plan
from pgheadroom.plan.record import AppliedRecord, new_record, read_record, record_path
from pgheadroom.profile import Profile
from pgheadroom.servers import Cluster, Host, ServerPrograms
from pgheadroom.sources.observing import ObservationRequest, watch
from pgheadroom.sources.recording import Recording
from pgheadroom.sources.session import read_only_session
from pgheadroom.types import Interval
from pgheadroom.verify import Verification, comparing, verify
from pgheadroom.verify.values import TableOutcome

pytestmark = pytest.mark.usefixtures("run_parent")

TICKS = 8
BATCH = 40
# Half empty pages: an update is HOT, unless it changes the indexed column.
TABLE = """
CREATE TABLE {name} (id int PRIMARY KEY, n int, s int, filler char(84))
    WITH (fillfactor = 50, autovacuum_enabled = off);
CREATE INDEX ON {name} (s);
INSERT INTO {name} SELECT i, 0, 0, '' FROM generate_series(1, 4000) i;
VACUUM ANALYZE {name}
"""


@contextmanager
def database(programs: ServerPrograms, names: Sequence[str]) -> Iterator[Cluster]:
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        for name in names:
            observed.load(cluster, TABLE.format(name=name))
        yield cluster


def watched(cluster: Cluster, work: Callable[[int], None]) -> Recording:
    """An interval of a few windows, with work in each; its sessions have ended then."""
    batches: list[str] = []

    def at_tick(text: str) -> None:
        work(len(batches))
        batches.append(text)

    with read_only_session(observed.conninfo(cluster), {}) as connection:
        request = ObservationRequest(duration_s=2.0, ticks=TICKS, tick_counters=True)
        return watch(connection, request, at_tick)


def updates(
    cluster: Cluster, shares: dict[str, float], batch: int = BATCH
) -> Callable[[int], None]:
    """In each window so many updates a table, this share of them HOT."""
    turn = iter(range(10**6))

    def work(_: int) -> None:
        with observed.session(cluster) as connection:
            place = next(turn) * batch
            for name, share in shares.items():
                hot = round(batch * share)
                for column, first, last in (("n", 0, hot), ("s", hot, batch)):
                    connection.execute(
                        f"UPDATE {name} SET {column} = {column} + 1"
                        f" WHERE id > {(place + first) % 3900} AND id <= {(place + last) % 3900}"
                    )

    return work


def both(*works: Callable[[int], None]) -> Callable[[int], None]:
    """One after the other in each window."""

    def work(window: int) -> None:
        for one in works:
            one(window)

    return work


def around(mid: float, half: float = 0.02) -> Interval:
    return Interval(low=max(0.0, mid - half), mid=mid, high=min(1.0, mid + half), level=0.9)


def advised(
    profile: Profile,
    name: str,
    after: Value,
    *,
    verdict: str = "CHANGE",
    transition: Transition | None = None,
) -> TableAdvice:
    """Advice of a table whose fillfactor of 50 becomes 40, or stays."""
    table = profile.table(name)
    facts: Any = table.observed
    heap = float(facts["main_bytes"])

    def point(fillfactor: int, hot: Value) -> Point:
        return planned.point(fillfactor, heap, hot)

    if verdict == "KEEP":
        return planned.table_advice(table, 50, "KEEP", (point(50, after),))
    rewritten = planned.point(40, heap * 50 / 40, after)
    curve = (
        point(50, around(0.5)),
        rewritten if name.startswith("rewritten") else point(40, after),
    )
    return planned.table_advice(table, 40, "CHANGE", curve, transition)


def way(final: float, after_updates: float | None, *, verdict: str = "converges") -> Transition:
    return Transition(
        verdict=verdict,  # type: ignore[arg-type]  # as named
        after_s=None if after_updates is None else 3600.0,
        after_updates_per_row=after_updates,
        final_hot_frac=final,
        rewritten_hot_frac=final,
        final_heap_bytes=None,
    )


def verified(
    plan: Plan, record: AppliedRecord | None, recording: Recording
) -> tuple[Verification, dict[str, TableOutcome]]:
    now = observed.profile_of(recording)
    found = verify(at_one_pace(plan, now), record, now, recording)
    return found, {table.name: table for table in found.tables}


def at_one_pace(plan: Plan, now: Profile) -> Plan:
    """As if the observation before had been as long: how busy the machine is says nothing here."""
    facts: Any = now.server.observed
    steps = tuple(
        replace(
            step,
            forecast=replace(
                step.forecast,
                measured=replace(step.forecast.measured, interval_s=float(facts["interval_s"])),
            ),
        )
        for step in plan.steps
    )
    return replace(plan, steps=steps)


def test_each_verdict(programs: ServerPrograms, tmp_path: Path) -> None:
    """Before, half of the updates are HOT; then what the outcome makes of each forecast."""
    names = ("held", "failed", "none", "vague", "kept", "wide", "lost", "indexed", "gone", "busy")
    with database(programs, names) as cluster:
        # That nothing has moved takes more updates to show than that something has.
        steady = ("kept", "wide")
        half = both(
            updates(cluster, {name: 0.5 for name in names if name not in steady}),
            updates(cluster, dict.fromkeys(steady, 0.5), batch=10 * BATCH),
        )
        before = observed.profile_of(watched(cluster, half))
        plan = make_plan(
            planned.advice_of(
                before,
                (
                    advised(before, "held", around(0.9)),
                    advised(before, "failed", around(0.9)),
                    advised(before, "none", around(0.9)),
                    advised(before, "vague", around(0.65, 0.2)),
                    advised(before, "kept", around(0.5), verdict="KEEP"),
                    advised(before, "wide", around(0.5, 0.3), verdict="KEEP"),
                    advised(before, "lost", around(0.5), verdict="KEEP"),
                    advised(before, "indexed", around(0.9)),
                    advised(before, "gone", around(0.9)),
                    advised(before, "busy", around(0.9)),
                ),
            ),
            before,
        )
        path = planned.write_plan(plan, tmp_path)
        assert run(["apply", str(path), observed.conninfo(cluster), "--yes"]) == 0
        record = read_record(record_path(path), plan)
        observed.load(cluster, "CREATE INDEX fresh ON indexed (n); DROP TABLE gone")
        shares = {"held": 0.9, "failed": 0.7, "none": 0.5, "vague": 0.5, "lost": 0.8}
        work = both(
            updates(cluster, shares | {"indexed": 0.9}),
            updates(cluster, dict.fromkeys(steady, 0.5) | {"busy": 0.9}, batch=10 * BATCH),
        )
        recording = watched(cluster, work)
        found, tables = verified(plan, record, recording)
    assert {name: table.verdict for name, table in tables.items()} == {
        "held": "held",
        "failed": "failed",
        "none": "no effect",
        "vague": "no effect",  # its forecast reaches as far as "nothing happens"
        "kept": "held",
        "wide": "failed",  # it foresaw no effect, by an interval that denies none
        "lost": "failed",
        "indexed": "not comparable",
        "gone": "not comparable",
        "busy": "not comparable",
    }
    assert found.failed
    assert "index 'fresh' is new" in tables["indexed"].reason
    assert "updates_per_s" in tables["busy"].reason
    assert all(o.verdict is None for o in tables["busy"].outcomes), "not judged, only shown"
    hot = next(o for o in tables["held"].outcomes if o.name == "hot_frac")
    assert isinstance(hot.now, Interval)
    assert hot.now.mid == pytest.approx(0.9, abs=0.03)
    newpage = next(o for o in tables["held"].outcomes if o.name == "newpage_frac")
    assert (newpage.now is None) is (programs.version.major < 16)
    wal = next(o for o in tables["held"].outcomes if o.name == "wal_bytes_per_update")
    assert wal.now is None
    assert "pg_stat_statements" in wal.note


def test_a_table_that_was_not_rewritten_is_on_its_way(
    newest: ServerPrograms, tmp_path: Path
) -> None:
    """Held against the transition, by the updates since; a rewritten one against the end."""
    names = ("early", "late", "astray", "rewritten", "rewritten_fresh", "never", "few")
    with database(newest, names) as cluster:
        half = updates(cluster, dict.fromkeys(names, 0.5))
        before = observed.profile_of(watched(cluster, half))
        long, short = way(0.9, 50.0), way(0.9, 0.01)
        plan = make_plan(
            planned.advice_of(
                before,
                (
                    advised(before, "early", around(0.95), transition=long),
                    advised(before, "late", around(0.95), transition=short),
                    advised(before, "astray", around(0.95), transition=long),
                    advised(before, "rewritten", around(0.7), transition=long),
                    advised(before, "rewritten_fresh", around(0.7), transition=long),
                    advised(
                        before,
                        "never",
                        around(0.95),
                        transition=way(0.9, None, verdict="does not converge"),
                    ),
                    advised(before, "few", around(0.95), transition=short),
                ),
            ),
            before,
        )
        path = planned.write_plan(plan, tmp_path)
        assert run(["apply", str(path), observed.conninfo(cluster), "--yes"]) == 0
        record = read_record(record_path(path), plan)
        with cluster.connect() as connection:
            connection.execute("VACUUM FULL rewritten")
            connection.execute("VACUUM FULL rewritten_fresh")
        shares = {"early": 0.7, "late": 0.9, "astray": 0.2, "rewritten": 0.7, "never": 0.7}
        shares["rewritten_fresh"] = 0.9
        some = updates(cluster, shares)
        recording = watched(cluster, both(some, updates(cluster, {"few": 0.5}, batch=4)))
        _, tables = verified(plan, record, recording)
        # Without the record nobody knows when it began.
        _, unknown = verified(plan, None, recording)
        fresh = verified(plan, new_record(plan), recording)[1]
    assert {name: table.verdict for name, table in tables.items()} == {
        "early": "undecided",
        "late": "held",
        "astray": "failed",
        "rewritten": "held",
        "rewritten_fresh": "undecided",
        "never": "undecided",
        "few": "undecided",
    }
    assert "still on its way from" in tables["early"].reason
    assert "of 50 updates a row" in tables["early"].reason
    assert tables["rewritten"].rewritten
    assert "freshly rewritten" in tables["rewritten_fresh"].reason
    assert "32 updates in the window, 100 are needed" in tables["few"].reason
    assert unknown["late"].verdict == "undecided"
    assert unknown["late"].progress == "when the setting was applied is not known"
    assert fresh["late"].verdict == "undecided"


@pytest.mark.contrib
def test_wal_of_updates_is_known_where_statements_are_counted(programs: ServerPrograms) -> None:
    """From pg_stat_statements, both times; it is what the server itself has counted."""
    with Host(programs) as host:
        cluster = host.cluster("main")
        if not observed.start_with_contrib(cluster, {"autovacuum": "off"}):
            pytest.skip(f"{programs} has no pg_stat_statements")
        observed.load(cluster, "CREATE EXTENSION pg_stat_statements")
        observed.load(cluster, TABLE.format(name="t"))
        before = observed.profile_of(watched(cluster, updates(cluster, {"t": 0.5})))
        kept = advised(before, "t", around(0.5), verdict="KEEP")
        plan = make_plan(planned.advice_of(before, (kept,)), before)
        recording = watched(cluster, updates(cluster, {"t": 0.5}))
        _, tables = verified(plan, None, recording)
        with cluster.connect() as connection:
            counted: Any = connection.execute(
                "SELECT sum(wal_bytes)::float8 / sum(rows) FROM pg_stat_statements"
                " WHERE query ~ '^UPDATE t '"
            ).fetchone()
    wal = next(o for o in tables["t"].outcomes if o.name == "wal_bytes_per_update")
    assert isinstance(wal.before, float)
    assert isinstance(wal.now, float)
    assert (wal.before + wal.now) / 2 == pytest.approx(counted[0])
    assert wal.verdict is None
    alike = {like.name: like.now for like in tables["t"].workload}
    assert alike["other_columns_frac"] == pytest.approx(0.0, abs=0.01)


def test_the_command(
    newest: ServerPrograms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forms, exit codes; what was not applied is not compared; a busy interval without load."""
    with database(newest, ("held", "other")) as cluster:
        before = observed.profile_of(
            watched(cluster, updates(cluster, {"held": 0.5, "other": 0.5}))
        )
        plan = make_plan(
            planned.advice_of(
                before,
                (
                    advised(before, "held", around(0.9)),
                    advised(before, "other", around(0.5), verdict="KEEP"),
                ),
            ),
            before,
        )
        path = planned.write_plan(plan, tmp_path)
        conninfo = observed.conninfo(cluster)
        out = {form: tmp_path / f"v.{form}" for form in ("text", "json", "csv", "markdown")}
        base = ["verify", str(path), conninfo, "--for", "500ms", "--no-sample"]
        for form, file in out.items():
            assert run([*base, "-f", form, "-o", str(file)]) == 6, "nothing could be judged"
        data = json.loads(out["json"].read_text())
        assert data["kind"] == "verification"
        verdicts = {table["name"]: table["verdict"] for table in data["tables"]}
        assert verdicts == {"held": "not comparable", "other": "undecided"}
        reasons = {table["name"]: table["reason"] for table in data["tables"]}
        assert "fillfactor is 50, the plan's is 40" in reasons["held"]
        rows = list(csv.DictReader(io.StringIO(out["csv"].read_text())))
        assert {row["measure"] for row in rows} == {
            "hot_frac",
            "newpage_frac",
            "heap_bytes",
            "wal_bytes_per_update",
        }
        assert "planned_low" in rows[0]
        for form in ("text", "markdown"):
            assert "not comparable" in out[form].read_text()
        observed.load(cluster, "CREATE DATABASE elsewhere; CREATE TABLE t (id int)")
        other = observed.conninfo(cluster, dbname="elsewhere")
        observed_elsewhere = ["verify", str(path), other, "--for", "100ms"]
        assert run(observed_elsewhere) == 2
        assert run(["verify", str(path), "host=/nowhere", "--for", "1s"]) == 3
        assert run(["verify", str(tmp_path / "absent"), conninfo, "--for", "1s"]) == 2
        # A forecast that fails: a table that the plan keeps loses HOT. How many updates a second
        # a busy machine does is not compared.
        monkeypatch.setattr(comparing, "RATE_FACTOR", 1e6)
        stop = threading.Event()

        def load() -> None:
            work = updates(cluster, {"other": 0.1})
            while not stop.is_set():
                work(0)

        thread = threading.Thread(target=load)
        thread.start()
        try:
            code = run([*base[:-2], "2s", "-o", str(out["text"])])
            assert code == 1, out["text"].read_text()
        finally:
            stop.set()
            thread.join()
        assert "failed" in out["text"].read_text()

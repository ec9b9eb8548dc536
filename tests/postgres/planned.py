"""Advice as `advise` would give it, on profiles that were really observed; plans as files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import observed

from pgheadroom.advise.advice import Advice, Observation
from pgheadroom.advise.foreseen import Point, Transition
from pgheadroom.advise.policy import make_policy
from pgheadroom.advise.table_advice import AdviceVerdict, TableAdvice
from pgheadroom.outcome import Value
from pgheadroom.plan import Plan, make_plan, plan_text
from pgheadroom.plan.record import record_path
from pgheadroom.profile import Profile
from pgheadroom.profile.tables import TableProfile
from pgheadroom.servers import Cluster, Host, ServerPrograms


def point(fillfactor: int, heap_bytes: float, hot_frac: Value = None) -> Point:
    return Point(
        fillfactor=fillfactor,
        hot_frac=hot_frac,
        newpage_frac=None,
        heap_bytes=heap_bytes,
        index_bytes=None,
        wal_bytes_per_update=None,
        pages_modified_per_update=None,
        seq_scan_pages=None,
    )


def table_advice(
    table: TableProfile,
    advised: int | None,
    verdict: AdviceVerdict,
    curve: tuple[Point, ...] = (),
    transition: Transition | None = None,
) -> TableAdvice:
    facts: Any = table.observed
    counters = facts["counters"]
    updates = counters["n_tup_upd"] or 0
    return TableAdvice(
        table=table.name,
        schema=facts["schema"],
        name=facts["name"],
        oid=facts["oid"],
        relfilenode=facts["relfilenode"],
        parent=facts.get("parent"),
        rows=table.rows,
        heap_bytes=facts["main_bytes"],
        fillfactor=table.fillfactor,
        updates_per_s=facts["per_s"]["n_tup_upd"] or 0.0,
        updates=updates,
        hot_frac=counters["n_tup_hot_upd"] / updates if updates else None,
        verdict=verdict,
        reason="room is short",
        advised_fillfactor=advised,
        gain_frac=0.3,
        causes=(),
        calibration=None,
        curve=curve,
        transition=transition,
        remarks=(),
        missing=(),
    )


def advice_of(profile: Profile, tables: tuple[TableAdvice, ...]) -> Advice:
    observed: Any = profile.server.observed
    return Advice(
        tool_version="0",
        observation=Observation(
            server_version=str(observed["server_version"]),
            database=observed["database"],
            database_oid=observed["database_oid"],
            system_identifier=observed["system_identifier"],
            observed_at=observed["observed_at"],
            interval_s=observed["interval_s"],
            masked=observed["masked"],
            levels=tuple(observed["access"]["levels"]),
            missing=(),
            broken=(),
            modules=observed["modules"],
        ),
        policy=make_policy().stated(),
        first=(),
        tables=tables,
        partitioned=(),
        assumed=(),
    )


def plan_of(profile: Profile, settings: Mapping[str, int], *, rewrite: str = "none") -> Plan:
    """A plan that sets these fillfactors, by the tables' names in the profile."""
    tables = []
    for name, fillfactor in settings.items():
        table = profile.table(name)
        facts: Any = table.observed
        heap = float(facts["main_bytes"])
        curve = (point(table.fillfactor, heap, 0.5), point(fillfactor, heap * 1.2, 0.9))
        tables.append(table_advice(table, fillfactor, "CHANGE", curve))
    return make_plan(advice_of(profile, tuple(tables)), profile, rewrite=rewrite)


def write_plan(plan: Plan, folder: Path) -> Path:
    path = folder / "plan.json"
    path.write_text(plan_text(plan), encoding="utf-8")
    return path


@contextmanager
def database(programs: ServerPrograms, *more: str) -> Iterator[tuple[Cluster, Profile]]:
    """A server with the known tables, observed under a few changes."""
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        observed.load(cluster)
        for ddl in more:
            observed.load(cluster, ddl)
        recording = observed.watched(cluster, lambda: observed.change(cluster))
        yield cluster, observed.profile_of(recording)


def options_of(cluster: Cluster) -> dict[str, list[str]]:
    """Storage parameters of every table of ours, by name."""
    query = (
        "SELECT relname, coalesce(reloptions, '{}') FROM pg_class c JOIN pg_namespace n"
        " ON n.oid = relnamespace WHERE relkind = 'r' AND nspname IN ('public', 'Ünï')"
    )
    with cluster.connect() as connection:
        return {name: sorted(found) for name, found in connection.execute(query).fetchall()}


def three(profile: Profile, *, rewrite: str = "none") -> Plan:
    """A set value, none, and a partition."""
    return plan_of(profile, {"jobs": 90, "quiet": 70, "parts_1": 85}, rewrite=rewrite)


def states(path: Path) -> list[str]:
    """Of the record's steps."""
    data = json.loads(record_path(path).read_text(encoding="utf-8"))
    return [step["state"] for step in data["steps"]]

"""Observed tables made by hand: what `observe` writes, without a server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pgheadroom.forms import read
from pgheadroom.profile import Profile, TableProfile, parse_profile
from pgheadroom.profile.observed import ObservedTable
from pgheadroom.profile.observed_server import ObservedServer

COLUMNS = [
    {"name": "id", "type": "int8", "values": {"kind": "serial"}},
    {"name": "owner", "type": "int4", "values": {"kind": "random", "ndistinct": 50}},
    {"name": "state", "type": "int2", "values": {"kind": "constant"}},
    {"name": "note", "type": "text", "width": {"min_bytes": 100, "max_bytes": 100}},
]


SERVER: dict[str, Any] = {
    "interval_s": 100.0,
    "server_version": "18.4",
    "database": "app",
    "database_oid": 5,
    "system_identifier": "7",
    "observed_at": "2026-11-22T00:00:00Z",
    "in_recovery": False,
    "is_idle": False,
    "broken": [],
    "changed": [],
    "modules": {},
    "assumed": [],
    "access": {"levels": ["pg_monitor"], "missing": []},
    "partitioned": [],
    "masked": False,
    "horizon": {"series": [], "holders": [], "stood_still": []},
    "counters": {"xids": 2000},
    "settings": {},
}
"""What is observed of a server, and of an interval with writes."""


def seen_of_server(**facts: Any) -> ObservedServer:
    """The same as a value, with other facts."""
    return read(ObservedServer, SERVER | facts)


def seen_of(table: TableProfile, **facts: Any) -> ObservedTable:
    """What was observed of a table, with other facts."""
    return read(ObservedTable, dict(table.observed or {}) | facts)


def index(name: str, columns: Sequence[str], **facts: Any) -> dict[str, Any]:
    """What is observed of an index."""
    return {
        "schema": "public",
        "name": name,
        "oid": 1,
        "method": "btree",
        "is_unique": False,
        "is_primary": False,
        "is_summarizing": False,
        "columns": list(columns),
        "reloptions": {},
        "ends_hot": True,
        "ends_hot_by_columns": list(columns),
        "counters": {"idx_scan": 3},
        "totals": {"idx_scan": 30},
    } | facts


PKEY = index("jobs_pkey", ["id"], is_unique=True, is_primary=True)
OWNER = index("jobs_owner", ["owner"])
STATE = index("jobs_state", ["state"])
BRIN = index("jobs_brin", ["note"], method="brin", is_summarizing=True)


def a_class(columns: Sequence[str], rows: int | None, **facts: Any) -> dict[str, Any]:
    """An update class; its share is put in by `profile_of`."""
    found = {"kind": "update", "columns": list(columns), "attnums": [], "calls": rows or 1}
    return found | {"rows": rows} | facts


def profile_of(
    counters: dict[str, int | None],
    *,
    indexes: Sequence[dict[str, Any]] = (PKEY, OWNER, STATE),
    classes: Sequence[dict[str, Any]] = (),
    fillfactor: int = 100,
    rows: int = 10_000,
    columns: Sequence[dict[str, Any]] = COLUMNS,
    version: str = "18.4",
    **facts: Any,
) -> Profile:
    """A profile with one observed table, `jobs`."""
    count = counters["n_tup_upd"] or 0
    amounts = [found["rows"] or found["calls"] for found in classes]
    made = [
        found | {"frac": amount / sum(amounts)}
        for found, amount in zip(classes, amounts, strict=True)
    ]
    counted = bool(classes) and all(found["rows"] is not None for found in classes)
    lost = max(0.0, 1 - sum(amounts) / count) if counted and count else None
    if not classes:
        lost = 1.0
    observed = {
        "schema": "public",
        "name": "jobs",
        "oid": 16384,
        "relfilenode": 16384,
        "main_bytes": 10_000,
        "counters": counters,
        "per_s": {"n_tup_upd": count / 10},
        "columns": [
            {"name": c["name"], "type": c["type"]}
            | ({"stored_bytes": 104.0} if "width" in c else {})
            for c in columns
        ],
        "indexes": list(indexes),
        "triggers": [],
        "free_space": [],
        "sample": None,
        "toast": None,
        "updates": {
            "source": "pg_stat_statements" if classes else None,
            "classes": made,
            "unattributed_frac": lost,
            "unattributed_resolution": 0.001,
            "pick": {"evidence": "assumed"},
        },
    } | facts
    return parse_profile(
        {
            "schema_version": 1,
            "server": {"version": version},
            "table": [
                {
                    "name": "jobs",
                    "rows": rows,
                    "fillfactor": fillfactor,
                    "columns": list(columns),
                    "indexes": [
                        {
                            "name": found["name"],
                            "columns": found["columns"],
                            "unique": found["is_primary"],
                        }
                        if found["method"] == "btree"
                        else {
                            "name": found["name"],
                            "columns": found["columns"],
                            "method": "hash" if found["method"] == "hash" else "brin",
                        }
                        for found in indexes
                    ],
                    "observed": observed,
                }
            ],
            "operation": [{"table": "jobs", "kind": "insert"}],
            "run": {"operations": 1},
        }
    )


def table_of(counters: dict[str, int | None], **facts: Any) -> TableProfile:
    """The one table of `profile_of`."""
    return profile_of(counters, **facts).table("jobs")


def counters(upd: int, hot: int, newpage: int | None = None) -> dict[str, int | None]:
    """Counters of an interval; on 15 there is no `newpage`."""
    made: dict[str, int | None] = {"n_tup_ins": 0, "n_tup_upd": upd, "n_tup_del": 0}
    made["n_tup_hot_upd"] = hot
    return made if newpage is None else made | {"n_tup_newpage_upd": newpage}

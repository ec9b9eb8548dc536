"""
Counters of a live server, as rates: over an interval that is watched, or since they began.

Reads statistics and catalogs alone, each by one query. What is of the cluster (WAL, checkpoints)
counts for all databases; tables are those of the database that is connected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pgheadroom.defaults import RATES_FROM_S
from pgheadroom.settings import checkpoint_counters
from pgheadroom.settings.arithmetic import DyingTable, is_switched_off, trigger_rows
from pgheadroom.sources.since import SINCE_EPOCH_S, is_partly_reset
from pgheadroom.units import PAGE_BYTES, show_duration

if TYPE_CHECKING:
    import psycopg

DAY_S = 86_400.0

_MOMENT = f"""
SELECT extract(epoch FROM clock_timestamp())::float8 AS at_epoch_s,
       extract(epoch FROM pg_conf_load_time())::float8 AS configured_epoch_s,
       CASE WHEN NOT {{is_partly_reset}} THEN {SINCE_EPOCH_S} END AS since_epoch_s
"""
_DATABASE = """
SELECT temp_bytes, blks_read FROM pg_stat_database WHERE datname = current_database()
"""
_TABLES = """
SELECT c.oid::int8 AS oid, c.relpages, c.reltuples::float8 AS reltuples,
       pg_stat_get_tuples_updated(c.oid) - pg_stat_get_tuples_hot_updated(c.oid)
         + pg_stat_get_tuples_deleted(c.oid) AS dead,
       {busy} AS busy_ms,
       -- A TOAST table without any of its own has all of its table's (do_autovacuum).
       (SELECT jsonb_object_agg(p.option_name, p.option_value)
        FROM pg_options_to_table(coalesce(c.reloptions, o.reloptions)) p) AS reloptions,
       ARRAY(SELECT ic.relpages FROM pg_index i JOIN pg_class ic ON ic.oid = i.indexrelid
             WHERE i.indrelid = c.oid) AS index_pages
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_class o ON c.relkind = 't' AND o.reltoastrelid = c.oid
LEFT JOIN pg_namespace on_ ON on_.oid = o.relnamespace
WHERE c.relkind IN ('r', 'm', 't') AND c.relpersistence <> 't'
  AND coalesce(on_.nspname, n.nspname) <> 'information_schema'
  AND coalesce(on_.nspname, n.nspname) !~ '^pg_'
"""
DYING_SQL = {
    15: _TABLES.format(busy="NULL::float8"),
    18: _TABLES.format(
        busy="pg_stat_get_total_autovacuum_time(c.oid) + pg_stat_get_total_autoanalyze_time(c.oid)"
    ),
}
"""Of each table, by version: rows that died, time of autovacuum, and what a VACUUM would meet."""
_OWN_PACE = ("autovacuum_vacuum_cost_limit", "autovacuum_vacuum_cost_delay")
"""Storage parameters of a table that is vacuumed at a pace of its own (autovacuum.c)."""

_Counters = Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedLoad:
    """
    What was counted; None: nothing can be said of it.

    Attributes:
        over: The time of the database's counters, in words.
        wal_over: The time of the cluster's.
        is_interval: It was watched; else it is what statistics have.
        wal_bytes, wal_fpi: WAL of the cluster, and its full-page images.
        wal_buffers_full: How often a session found the log's buffers full, in that time.
        wal_length_s: Over which time these were.
        checkpoints_requested, checkpoints_done: Of the cluster.
        checkpoints_beside_wal: Both were counted in the same time.
        temp_bytes_a_day, read_bytes_a_day: Of the database: temporary files, pages read.
        tables: Whose rows die.
        vacuum_busy_workers: Autovacuum's, at work in the mean; from 18 on.
        notes: What could not be counted, and why.
    """

    over: str
    wal_over: str
    is_interval: bool
    wal_bytes: float | None = None
    wal_fpi: float | None = None
    wal_buffers_full: float | None = None
    wal_length_s: float | None = None
    checkpoints_requested: int | None = None
    checkpoints_done: int | None = None
    checkpoints_beside_wal: bool = False
    temp_bytes_a_day: float | None = None
    read_bytes_a_day: float | None = None
    tables: tuple[DyingTable, ...] | None = None
    vacuum_busy_workers: float | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Snapshot:
    at_s: float
    configured_s: float
    since_s: float | None
    checkpoints: Mapping[str, Any]
    database: _Counters
    tables: Mapping[int, Mapping[str, Any]]


@dataclass
class CounterReading:
    """
    Counters of one server, read once or at both ends of an interval.

    Attributes:
        connection: From `read_only_session`.
        settings: As pg_settings has them.
        ahead_s: By how much the clock is taken to be later than it is; for tests, which have no
            time to wait until something is old.
    """

    connection: psycopg.Connection[Any]
    settings: Mapping[str, str]
    ahead_s: float = 0.0
    _first: _Snapshot | None = field(default=None)

    def start(self) -> None:
        """Read the counters at the interval's beginning."""
        self._first = self._snapshot()

    def end(self) -> CountedLoad | str:
        """What was counted; or why nothing can be said."""
        now = self._snapshot()
        if self._first is not None:
            return self._between(self._first, now)
        return self._since(now)

    def _snapshot(self) -> _Snapshot:
        major = self.connection.info.server_version // 10000
        asked = _MOMENT.format(is_partly_reset=is_partly_reset(major))
        moment = self._rows(asked)[0]
        return _Snapshot(
            at_s=float(moment["at_epoch_s"]) + self.ahead_s,
            configured_s=float(moment["configured_epoch_s"]),
            since_s=moment["since_epoch_s"],
            checkpoints=self._rows(_of_version(checkpoint_counters.SQL, major))[0],
            database=self._rows(_DATABASE)[0],
            tables={row["oid"]: row for row in self._rows(_of_version(DYING_SQL, major))},
        )

    def _rows(self, query: str) -> list[Mapping[str, Any]]:
        from psycopg.rows import dict_row  # noqa: PLC0415 - loads libpq

        with self.connection.cursor(row_factory=dict_row) as cursor:
            return list(cursor.execute(query.encode()).fetchall())

    def _between(self, first: _Snapshot, last: _Snapshot) -> CountedLoad | str:
        length_s = last.at_s - first.at_s
        checkpoints = _more(first.checkpoints, last.checkpoints, _CHECKPOINTS)
        database = _more(first.database, last.database, tuple(last.database))
        if length_s <= 0 or checkpoints is None or database is None:
            return "statistics were reset inside the interval: watch again"
        tables = []
        for oid, row in last.tables.items():
            before = first.tables.get(oid)
            more = None if before is None else _more(before, row, ("dead", "busy_ms"))
            if more is not None:
                tables.append({**row, **more})
        return CountedLoad(
            over=f"in the {show_duration(length_s)} watched",
            wal_over=f"in the {show_duration(length_s)} watched",
            is_interval=True,
            wal_length_s=length_s,
            checkpoints_beside_wal=True,
            **_of_checkpoints(checkpoints),
            **self._of_database(database, tables, length_s),
        )

    def _since(self, now: _Snapshot) -> CountedLoad | str:
        row = now.checkpoints
        wal_since = row["wal_since_epoch_s"]
        wal_length_s = None if wal_since is None else now.at_s - wal_since
        length_s = None if now.since_s is None else now.at_s - now.since_s
        told = [each for each in (wal_length_s, length_s) if each is not None]
        if not told:
            return "nothing says since when the statistics count: watch an interval (--for)"
        if max(told) < RATES_FROM_S:
            return (
                f"the statistics reach back {show_duration(max(told))}: rates need "
                f"{show_duration(RATES_FROM_S)} of them, or an interval that is watched (--for)"
            )
        notes = []
        found: dict[str, Any] = {}
        if wal_length_s is not None and wal_length_s >= RATES_FROM_S:
            found |= _of_checkpoints(row)
            found["wal_length_s"] = wal_length_s
            # What was asked for before the settings were read is no witness against them.
            found["checkpoints_beside_wal"] = checkpoint_counters.are_of_one_time(row)
            if row["since_epoch_s"] is None or now.configured_s > row["since_epoch_s"]:
                found["checkpoints_requested"] = found["checkpoints_done"] = None
            if now.configured_s > wal_since:
                found["wal_buffers_full"] = None
        else:
            notes.append("WAL is counted since too short a time to tell a rate (--for)")
        if length_s is not None and length_s >= RATES_FROM_S:
            found |= self._of_database(now.database, list(now.tables.values()), length_s)
        else:
            notes.append("the database's counters are too young to tell a rate (--for)")
        return CountedLoad(
            over=_reaching(length_s),
            wal_over=_reaching(wal_length_s),
            is_interval=False,
            notes=tuple(notes),
            **found,
        )

    def _of_database(
        self, database: _Counters, tables: Sequence[Mapping[str, Any]], length_s: float
    ) -> dict[str, Any]:
        busy = [float(row["busy_ms"]) for row in tables if row["busy_ms"] is not None]
        return {
            "temp_bytes_a_day": float(database["temp_bytes"]) * DAY_S / length_s,
            "read_bytes_a_day": float(database["blks_read"]) * PAGE_BYTES * DAY_S / length_s,
            "tables": tuple(dying_tables(self.settings, tables, length_s)),
            "vacuum_busy_workers": sum(busy) / 1000.0 / length_s if busy else None,
        }


def dying_tables(
    settings: Mapping[str, str], rows: Sequence[Mapping[str, Any]], length_s: float
) -> list[DyingTable]:
    """
    Tables that autovacuum comes to at the common pace, and how fast their rows die.

    Args:
        settings: As pg_settings has them.
        rows: Of `DYING_SQL`, with what was counted in the time.
        length_s: The time.
    """
    return [
        DyingTable(
            dead_per_s=max(float(row["dead"]), 0.0) / length_s,
            trigger_rows=trigger_rows(settings, row),
            heap_pages=float(row["relpages"]),
            index_pages=tuple(map(float, row["index_pages"])),
        )
        for row in rows
        if not is_switched_off(settings, row)
        and not any(name in (row["reloptions"] or {}) for name in _OWN_PACE)
    ]


def _of_version(texts: Mapping[int, str], major: int) -> str:
    return texts[max(since for since in texts if since <= major)]


_CHECKPOINTS = ("requested", "done", "wal_bytes", "wal_fpi", "wal_buffers_full")


def _reaching(length_s: float | None) -> str:
    length_s = length_s or 0.0
    shown = f"{length_s / DAY_S:.0f} days" if length_s >= 2 * DAY_S else show_duration(length_s)
    return f"in the {shown} that the statistics reach back"


def _of_checkpoints(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "wal_bytes": float(row["wal_bytes"]),
        "wal_fpi": float(row["wal_fpi"]),
        "wal_buffers_full": float(row["wal_buffers_full"]),
        "checkpoints_requested": int(row["requested"]),
        "checkpoints_done": int(row["done"]),
    }


def _more(
    first: Mapping[str, Any], last: Mapping[str, Any], names: tuple[str, ...]
) -> dict[str, Any] | None:
    """What was counted between; None where a counter went back."""
    found = {
        name: None if last[name] is None else last[name] - (first[name] or 0) for name in names
    }
    return None if any(each is not None and each < 0 for each in found.values()) else found

"""
The server of a recording: settings as a profile has them, the interval, the horizon, WAL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pgheadroom.forms import FieldError
from pgheadroom.observe.counters import differences
from pgheadroom.profile.settings import check_setting
from pgheadroom.sources.recording import Recording, Row
from pgheadroom.types import PgVersion
from pgheadroom.units import setting_bytes

VERIFIED_MAX = 18
"""The newest version that the queries were run on as a final release; 19's candidate 1 was too."""

_UNIT_BYTES = {"B": 1, "kB": 1024, "8kB": 8192, "MB": 1024**2, "GB": 1024**3}
_UNIT_S = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_HOLDERS_MAX = 10
_SNAPSHOT_FRAC_MIN = 0.1  # a horizon that stands still for less is the work's own; arbitrary


def version_of(recording: Recording) -> PgVersion:
    """The server's version with its minor."""
    row = recording.row("identity", "shape") or {}
    return PgVersion.of_server(int(row["server_version_num"]), str(row["server_version"]))


def interval_s(recording: Recording) -> float:
    """Seconds between the first and the last reading of the counters."""
    before, after = recording.row("instant", "start"), recording.row("instant", "end")
    assert before is not None, "recordings without both ends are refused"
    assert after is not None, "recordings without both ends are refused"
    return max(float(after["at_epoch_s"]) - float(before["at_epoch_s"]), 0.001)


def xids(recording: Recording) -> int:
    """Transactions that took an id inside the interval."""
    before, after = recording.row("instant", "start"), recording.row("instant", "end")
    if before is None or after is None:
        return 0
    return int(after["next_xid"]) - int(before["next_xid"])


def server_section(recording: Recording) -> dict[str, Any]:
    """`[server]` of the profile, without `observed`."""
    settings = {row["name"]: row for row in recording.rows("settings")}

    def text(name: str, default: str) -> str:
        return str(settings[name]["setting"]) if name in settings else default

    made: dict[str, Any] = {
        "version": str(version_of(recording)),
        "shared_buffers": setting_bytes(max(_bytes(settings["shared_buffers"]), 128 * 1024)),
        "full_page_writes": text("full_page_writes", "on") == "on",
        "wal_level": text("wal_level", "replica"),
        "wal_compression": text("wal_compression", "off"),
        "wal_log_hints": text("wal_log_hints", "off") == "on",
        "data_checksums": text("data_checksums", "off") == "on",
        "autovacuum": text("autovacuum", "on") == "on",
        "autovacuum_naptime_s": _seconds(settings["autovacuum_naptime"]),
        "checkpoint_interval_s": max(_seconds(settings["checkpoint_timeout"]), 30.0),
        "max_wal_size": setting_bytes(max(_bytes(settings["max_wal_size"]), 32 * 1024**2)),
    }
    others = {}
    for name, row in settings.items():
        if row["source"] in ("default", "override") or row["setting"] in (None, ""):
            continue
        try:
            check_setting(f"server.settings.{name}", name, str(row["setting"]))
        except FieldError:
            continue
        others[name] = _spelled(row)
    return made | {"settings": others}


def _spelled(row: Row) -> str:
    """A setting with its unit, for a profile's settings are written as in postgresql.conf."""
    value, unit = str(row["setting"]), row["unit"]
    if not unit or not value.lstrip("-").isdecimal() or int(value) < 0:
        return value
    return f"{int(value) * 8}kB" if unit == "8kB" else f"{value}{unit}"


def _bytes(row: Row) -> int:
    return int(row["setting"]) * _UNIT_BYTES[str(row["unit"])]


def _seconds(row: Row) -> float:
    return float(row["setting"]) * _UNIT_S[str(row["unit"])]


def counters(recording: Recording) -> dict[str, Any]:
    """Differences of the server's counters over the interval, with the rates of WAL."""
    made: dict[str, Any] = {}
    for query in ("database_counters", "wal_counters", "checkpoint_counters"):
        before, after = recording.row(query, "start"), recording.row(query, "end")
        if before is None or after is None:
            continue
        numbers = [
            name
            for name, value in after.items()
            if isinstance(value, int | float) and not name.endswith("_epoch_s")
        ]
        name = query.removesuffix("_counters")
        made[name] = differences(before, after, numbers) | {
            "totals": {n: after[n] for n in numbers}
        }
    made["io"] = _io(recording)
    seconds = interval_s(recording)
    before, after = recording.row("instant", "start"), recording.row("instant", "end")
    if before and after and None not in (before["wal_position_bytes"], after["wal_position_bytes"]):
        written = int(after["wal_position_bytes"]) - int(before["wal_position_bytes"])
        made["wal_position_bytes"] = written
        made["wal_bytes_per_s"] = round(written / seconds, 3)
    made["xids"] = xids(recording)
    made["xids_per_s"] = round(xids(recording) / seconds, 3)
    return made


def _io(recording: Recording) -> list[dict[str, Any]]:
    def by_who(moment: str) -> dict[tuple[Any, ...], Row]:
        return {
            (row["backend_type"], row["object"], row["context"]): row
            for row in recording.rows("io_counters", moment)
        }

    before = by_who("start")
    made = []
    for who, row in by_who("end").items():
        change = differences(
            before.get(who), row, ("reads", "writes", "extends", "hits", "evictions")
        )
        if any(change.values()):
            made.append(dict(zip(("backend_type", "object", "context"), who, strict=True)) | change)
    return made


def broken(recording: Recording) -> list[str]:
    """Why differences over the interval may be wrong: a restart, a reset, a promotion."""
    found = []
    before, after = recording.row("instant", "start"), recording.row("instant", "end")
    if before and after and before["started_epoch_s"] != after["started_epoch_s"]:
        found.append("the server was restarted inside the interval")
    if before and after and before["in_recovery"] != after["in_recovery"]:
        found.append("the standby was promoted inside the interval")
    for query, what in (
        ("database_counters", "the database's statistics were reset inside the interval"),
        ("wal_counters", "the WAL statistics were reset inside the interval"),
        ("checkpoint_counters", "the checkpoint statistics were reset inside the interval"),
    ):
        first, last = recording.row(query, "start"), recording.row(query, "end")
        if first and last and first["stats_reset_epoch_s"] != last["stats_reset_epoch_s"]:
            found.append(what)
    return found


def horizon(recording: Recording) -> dict[str, Any]:
    """Who kept row versions alive, how far back, and when the horizon stood still."""
    ticks = recording.ticks()
    began = float((recording.row("instant", "start") or {})["at_epoch_s"])
    length = interval_s(recording)
    series = []
    holders: dict[tuple[str, str], dict[str, Any]] = {}
    for tick in ticks:
        instant = recording.row("instant", tick)
        if instant is None or not recording.answered("horizon", tick):
            continue
        rows = recording.rows("horizon", tick)
        for row in rows:
            _remember(holders, row)
        oldest = max((row for row in rows if row["holds_data"]), key=_age, default=None)
        series.append(
            {
                "at_s": round(float(instant["at_epoch_s"]) - began, 3),
                "age_xids": 0 if oldest is None else _age(oldest),
                # As it is shown, without an epoch: it is only compared.
                "oldest_xid": None if oldest is None else _xid(oldest),
            }
        )
    ranked = sorted(holders.values(), key=lambda h: (-h["age_xids_max"], h["kind"], h["name"]))
    return {
        "series": series,
        "holders": ranked[:_HOLDERS_MAX],
        "stood_still": _stood_still(series, length),
    }


def _age(row: Row) -> int:
    return max(int(row["xmin_age_xids"] or 0), int(row["xid_age_xids"] or 0))


def _xid(row: Row) -> str | None:
    """The transaction whose age `_age` gives."""
    by_xmin = int(row["xmin_age_xids"] or 0) >= int(row["xid_age_xids"] or 0)
    found = row["xmin"] if by_xmin else row["xid"]
    return None if found is None else str(found)


def _remember(holders: dict[tuple[str, str], dict[str, Any]], row: Row) -> None:
    key = (str(row["kind"]), str(row["name"]))
    fields = ("kind", "name", "backend_type", "application_name", "usename", "state", "holds_data")
    old = holders.setdefault(
        key, {f: row[f] for f in fields} | {"age_xids_max": 0, "seen": 0, "transaction_age_s": None}
    )
    old["age_xids_max"] = max(old["age_xids_max"], _age(row))
    old["seen"] += 1
    old["state"] = row["state"]
    if row["transaction_age_s"] is not None:
        old["transaction_age_s"] = round(
            max(old["transaction_age_s"] or 0.0, float(row["transaction_age_s"])), 3
        )


def _stood_still(series: Sequence[Mapping[str, Any]], length_s: float) -> list[dict[str, float]]:
    """Parts of the interval in which the oldest transaction stayed while others went on."""
    found = []
    first = 0
    for place in range(1, len(series) + 1):
        oldest = series[first]["oldest_xid"]
        same = place < len(series) and oldest is not None
        same = same and series[place]["oldest_xid"] == oldest
        if same:
            continue
        begin, end = series[first], series[place - 1]
        frac = (end["at_s"] - begin["at_s"]) / length_s
        if frac >= _SNAPSHOT_FRAC_MIN and end["age_xids"] > begin["age_xids"]:
            start_frac = min(max(begin["at_s"] / length_s, 0.0), 1.0)
            found.append(
                {
                    "start_frac": round(start_frac, 4),
                    "length_frac": round(min(frac, 1 - start_frac) - 5e-5, 4),
                }
            )
        first = place
    return found

"""
The server of a recording: settings as a profile has them, the interval, the horizon, WAL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

from pgheadroom.forms import FieldError, read
from pgheadroom.observe.counters import differences
from pgheadroom.profile import ServerSettings
from pgheadroom.profile.model import TOAST_COMPRESSION, TOAST_LZ4_FROM_MAJOR
from pgheadroom.profile.observed_server import (
    CheckpointCounters,
    DatabaseCounters,
    Holder,
    Horizon,
    IoCounters,
    Moment,
    ServerCounters,
    StoodStill,
    WalCounters,
)
from pgheadroom.profile.settings import check_setting
from pgheadroom.sources.recording import AnswerRow, Recording
from pgheadroom.types import PgVersion

T = TypeVar("T")

VERIFIED_MAX = 18
"""The newest version that the queries were run on as a final release; 19's candidate 1 was too."""

_UNIT_BYTES = {"B": 1, "kB": 1024, "8kB": 8192, "MB": 1024**2, "GB": 1024**3}
_UNIT_S = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_IO_KIND = ("backend_type", "object", "context")
_IO_COUNTERS = ("reads", "writes", "extends", "hits", "evictions")
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


def server_section(recording: Recording) -> ServerSettings:
    """`[server]` of the profile, without `observed`."""
    settings = {row["name"]: row for row in recording.rows("settings")}

    def text(name: str, default: str) -> Any:
        return str(settings[name]["setting"]) if name in settings else default

    others, version = {}, version_of(recording)
    own_method = "lz4" if version.major >= TOAST_LZ4_FROM_MAJOR else "pglz"
    for name, row in settings.items():
        if row["setting"] in (None, ""):
            continue
        # A server of 19 that was built without lz4 has another default than its version has.
        is_other = name == TOAST_COMPRESSION and row["setting"] != own_method
        if row["source"] in ("default", "override") and not is_other:
            continue
        try:
            check_setting(f"server.settings.{name}", name, str(row["setting"]))
        except FieldError:
            continue
        others[name] = _spelled(row)
    return ServerSettings(
        version=str(version),
        shared_buffers_bytes=max(_bytes(settings["shared_buffers"]), 128 * 1024),
        full_page_writes=text("full_page_writes", "on") == "on",
        wal_level=text("wal_level", "replica"),
        wal_compression=text("wal_compression", "off"),
        wal_log_hints=text("wal_log_hints", "off") == "on",
        data_checksums=text("data_checksums", "off") == "on",
        autovacuum=text("autovacuum", "on") == "on",
        autovacuum_naptime_s=_seconds(settings["autovacuum_naptime"]),
        checkpoint_interval_s=max(_seconds(settings["checkpoint_timeout"]), 30.0),
        max_wal_size_bytes=max(_bytes(settings["max_wal_size"]), 32 * 1024**2),
        settings=others,
    )


def _spelled(row: AnswerRow) -> str:
    """A setting with its unit, for a profile's settings are written as in postgresql.conf."""
    value, unit = str(row["setting"]), row["unit"]
    if not unit or not value.lstrip("-").isdecimal() or int(value) < 0:
        return value
    return f"{int(value) * 8}kB" if unit == "8kB" else f"{value}{unit}"


def _bytes(row: AnswerRow) -> int:
    return int(row["setting"]) * _UNIT_BYTES[str(row["unit"])]


def _seconds(row: AnswerRow) -> float:
    return float(row["setting"]) * _UNIT_S[str(row["unit"])]


def counters(recording: Recording) -> ServerCounters:
    """Differences of the server's counters over the interval, with the rates of WAL."""
    seconds = interval_s(recording)
    before, after = recording.row("instant", "start"), recording.row("instant", "end")
    written = None
    if before and after and None not in (before["wal_position_bytes"], after["wal_position_bytes"]):
        written = int(after["wal_position_bytes"]) - int(before["wal_position_bytes"])
    return ServerCounters(
        database=_counted(recording, "database_counters", DatabaseCounters),
        wal=_counted(recording, "wal_counters", WalCounters),
        checkpoint=_counted(recording, "checkpoint_counters", CheckpointCounters),
        io=_io(recording),
        wal_position_bytes=written,
        wal_bytes_per_s=None if written is None else round(written / seconds, 3),
        xids=xids(recording),
        xids_per_s=round(xids(recording) / seconds, 3),
    )


def _counted(recording: Recording, query: str, kind: type[T]) -> T | None:
    """What the row of a query grew by, and what it is at the end; None without both rows."""
    before, after = recording.row(query, "start"), recording.row(query, "end")
    if before is None or after is None:
        return None
    totals = {
        name: value
        for name, value in after.items()
        if isinstance(value, int | float) and not name.endswith("_epoch_s")
    }
    return read(kind, {**differences(before, after, tuple(totals)), "totals": totals}, at=query)


def _io(recording: Recording) -> tuple[IoCounters, ...]:
    def by_who(moment: str) -> dict[tuple[Any, ...], AnswerRow]:
        return {
            tuple(row[name] for name in _IO_KIND): row
            for row in recording.rows("io_counters", moment)
        }

    before = by_who("start")
    made = []
    for who, row in by_who("end").items():
        change = differences(before.get(who), row, _IO_COUNTERS)
        if any(change.values()):
            kind = dict(zip(_IO_KIND, who, strict=True))
            made.append(read(IoCounters, kind | change, at="io_counters"))
    return tuple(made)


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


def horizon(recording: Recording) -> Horizon:
    """Who kept row versions alive, how far back, and when the horizon stood still."""
    began = float((recording.row("instant", "start") or {})["at_epoch_s"])
    series = []
    holders: dict[tuple[str, str], Holder] = {}
    for tick in recording.ticks():
        instant = recording.row("instant", tick)
        if instant is None or not recording.answered("horizon", tick):
            continue
        rows = recording.rows("horizon", tick)
        for row in rows:
            key = (str(row["kind"]), str(row["name"]))
            holders[key] = _seen(row, holders.get(key))
        oldest = max((row for row in rows if row["holds_data"]), key=_age, default=None)
        series.append(
            Moment(
                at_s=round(float(instant["at_epoch_s"]) - began, 3),
                age_xids=0 if oldest is None else _age(oldest),
                # As it is shown, without an epoch: it is only compared.
                oldest_xid=None if oldest is None else _xid(oldest),
            )
        )
    ranked = sorted(holders.values(), key=lambda h: (-h.age_xids_max, h.kind, h.name))
    return Horizon(
        series=tuple(series),
        holders=tuple(ranked[:_HOLDERS_MAX]),
        stood_still=_stood_still(series, interval_s(recording)),
    )


def _age(row: AnswerRow) -> int:
    return max(int(row["xmin_age_xids"] or 0), int(row["xid_age_xids"] or 0))


def _xid(row: AnswerRow) -> str | None:
    """The transaction whose age `_age` gives."""
    by_xmin = int(row["xmin_age_xids"] or 0) >= int(row["xid_age_xids"] or 0)
    found = row["xmin"] if by_xmin else row["xid"]
    return None if found is None else str(found)


def _seen(row: AnswerRow, before: Holder | None) -> Holder:
    """A holder of the horizon, as it was first seen but for what may grow or change."""
    found = before or Holder(
        kind=row["kind"],
        name=row["name"],
        backend_type=row["backend_type"],
        application_name=row["application_name"],
        usename=row["usename"],
        holds_data=row["holds_data"],
        age_xids_max=0,
        seen=0,
        transaction_age_s=None,
    )
    age_s = found.transaction_age_s
    if row["transaction_age_s"] is not None:
        age_s = round(max(age_s or 0.0, float(row["transaction_age_s"])), 3)
    return replace(
        found,
        state=row["state"],
        age_xids_max=max(found.age_xids_max, _age(row)),
        seen=(found.seen or 0) + 1,
        transaction_age_s=age_s,
    )


def _stood_still(series: Sequence[Moment], length_s: float) -> tuple[StoodStill, ...]:
    """Parts of the interval in which the oldest transaction stayed while others went on."""
    found = []
    first = 0
    for place in range(1, len(series) + 1):
        oldest = series[first].oldest_xid
        same = place < len(series) and oldest is not None
        if same and series[place].oldest_xid == oldest:
            continue
        begin, end = series[first], series[place - 1]
        begin_s, end_s = begin.at_s or 0.0, end.at_s or 0.0
        frac = (end_s - begin_s) / length_s
        if frac >= _SNAPSHOT_FRAC_MIN and (end.age_xids or 0) > (begin.age_xids or 0):
            start_frac = min(max(begin_s / length_s, 0.0), 1.0)
            found.append(
                StoodStill(
                    start_frac=round(start_frac, 4),
                    length_frac=round(min(frac, 1 - start_frac) - 5e-5, 4),
                )
            )
        first = place
    return tuple(found)

"""
A reading in Prometheus' text format, for the textfile collector of node_exporter.

Counters are the server's own and end in `_total`; what a monitoring system makes of their going
back after a reset is its own (`rate` knows it). Labels are bounded: of a database with very many
tables those that change most are told, and how many were left out.

Format: https://prometheus.io/docs/instrumenting/exposition_formats/
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pgheadroom.watch.reading import ServerReading, TableCounts

TABLES_MAX = 1000
"""Tables that are told, each in eight series; arbitrary, some thousands of series a target are
common."""

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric with its samples."""

    name: str
    kind: str
    help: str
    samples: tuple[tuple[Labels, float], ...]


def exposition(readings: Iterable[tuple[str, ServerReading | None]]) -> str:
    """
    The file's text.

    Args:
        readings: Each server's name and its newest reading; None: it does not answer.
    """
    found: dict[str, Metric] = {}
    for server, reading in readings:
        for one in _series(server, reading):
            before = found.get(one.name)
            samples = one.samples if before is None else before.samples + one.samples
            found[one.name] = Metric(one.name, one.kind, one.help, samples)
    return "".join(line for one in found.values() if one.samples for line in _lines(one))


def _series(server: str, reading: ServerReading | None) -> Iterator[Metric]:
    is_up = reading is not None
    yield _one("up", "gauge", "1 where the server answered.", {"server": server}, is_up)
    if reading is None:
        return
    here = {"server": server, "datname": reading.database}
    yield from _of_server(here, reading)
    tables = sorted(reading.tables.values(), key=_changes, reverse=True)
    shown = tables[:TABLES_MAX]
    for name, kind, text in _OF_TABLES:
        yield Metric(
            f"pgheadroom_table_{name}",
            kind,
            text,
            tuple(_table_samples(here, shown, name.removesuffix("_total"))),
        )
    yield _one(
        "tables_left_out",
        "gauge",
        f"Tables beyond the {TABLES_MAX} that change most, which have no series here.",
        here,
        len(tables) - len(shown),
    )


_OF_TABLES = (
    ("n_tup_ins_total", "counter", "Rows inserted (pg_stat_all_tables)."),
    ("n_tup_upd_total", "counter", "Rows updated (pg_stat_all_tables)."),
    ("n_tup_hot_upd_total", "counter", "Rows HOT updated (pg_stat_all_tables)."),
    (
        "n_tup_newpage_upd_total",
        "counter",
        "Rows updated whose new version went to another page (pg_stat_all_tables, from 16 on).",
    ),
    ("n_tup_del_total", "counter", "Rows deleted (pg_stat_all_tables)."),
    ("n_live_tup", "gauge", "Live rows, estimated by the statistics (pg_stat_all_tables)."),
    ("n_dead_tup", "gauge", "Dead rows, estimated by the statistics (pg_stat_all_tables)."),
)


def _of_server(here: Labels, reading: ServerReading) -> Iterator[Metric]:
    yield _one(
        "read_timestamp_seconds", "gauge", "When it was read, by the server.", here, reading.at_s
    )
    yield _one(
        "postmaster_start_time_seconds",
        "gauge",
        "When the server was started.",
        here,
        reading.started_s,
    )
    yield _one("in_recovery", "gauge", "1 on a standby.", here, reading.in_recovery)
    yield _one(
        "wal_position_bytes_total",
        "counter",
        "Position of the write-ahead log's end; on a standby, of what is replayed.",
        here,
        reading.wal_bytes,
    )
    yield _one(
        "wal_fpi_total",
        "counter",
        "Full-page images written (pg_stat_wal).",
        here,
        reading.wal_fpi,
    )
    yield _one(
        "checkpoints_timed_total", "counter", "Checkpoints by time.", here, reading.num_timed
    )
    yield _one(
        "checkpoints_requested_total",
        "counter",
        "Checkpoints that were asked for, by WAL or by somebody.",
        here,
        reading.num_requested,
    )
    yield _one(
        "checkpoint_in_progress",
        "gauge",
        "1 while a checkpoint is written.",
        here,
        reading.is_checkpointing,
    )
    yield _one("vacuums_running", "gauge", "VACUUMs on the server.", here, len(reading.vacuums))
    oldest: dict[str, int] = {}
    for holder in reading.holders:
        oldest[holder.kind] = max(oldest.get(holder.kind, 0), holder.age_xids)
    yield Metric(
        "pgheadroom_horizon_age_xids",
        "gauge",
        "Transactions since the oldest holder of the horizon, by its kind.",
        tuple(({**here, "kind": kind}, float(age)) for kind, age in sorted(oldest.items())),
    )


def _one(name: str, kind: str, text: str, labels: Labels, value: float | None) -> Metric:
    samples = () if value is None else ((labels, float(value)),)
    return Metric(f"pgheadroom_{name}", kind, text, samples)


def _changes(table: TableCounts) -> tuple[int, int]:
    return table.n_tup_upd + table.n_tup_ins + table.n_tup_del, -table.oid


def _table_samples(
    here: Labels, tables: Sequence[TableCounts], name: str
) -> Iterator[tuple[Labels, float]]:
    for table in tables:
        value = getattr(table, name)
        if value is not None:
            yield {**here, "schemaname": table.schema, "relname": table.name}, float(value)


def _lines(series: Metric) -> Iterator[str]:
    yield f"# HELP {series.name} {_escaped(series.help, quotes=False)}\n"
    yield f"# TYPE {series.name} {series.kind}\n"
    for labels, value in series.samples:
        shown = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items())
        yield f"{series.name}{{{shown}}} {_number(value)}\n"


def _escaped(text: str, *, quotes: bool = True) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    if quotes:
        text = text.replace('"', '\\"')
    # A name of bytes that are no text in the database's encoding: the file is UTF-8.
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(value)

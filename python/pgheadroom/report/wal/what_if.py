"""
Tables of `wal what-if`: the log under other checkpoints, compressions, without an index.
"""

from __future__ import annotations

from pgheadroom.report import csv_file
from pgheadroom.report.table import Column, Table
from pgheadroom.units import show_bytes, show_count, show_duration, show_share
from pgheadroom.wal.values import share_of
from pgheadroom.wal.what_if_values import CheckpointWal, Range, WhatIf, middle

INDEXES_SHOWN = 20
"""On a terminal; files have all. Arbitrary."""


def headline(result: WhatIf) -> str:
    """The answer in one sentence or two."""
    now = result.checkpoint[0]
    said = (
        f"WAL of PostgreSQL {result.server}, {result.start_lsn} to {result.end_lsn}, "
        f"{show_duration(result.length_s)}: {show_bytes(middle(now.bytes))}, of it "
        f"{show_bytes(middle(now.fpi_bytes))} in full-page images, "
        f"{show_count(now.checkpoints, 'checkpoint')} after the first"
    )
    knees = [result.checkpoint[place] for place in result.knee]
    if not knees:
        return f"{said}. No setting that was tried changes it."
    best = knees[0]
    change = share_of(middle(best.bytes), middle(now.bytes)) - 1
    less = f"{show_share(abs(change))} {'less' if change < 0 else 'more'}"
    return (
        f"{said}. The knee is at {_setting(best)}: {show_bytes(middle(best.bytes))}, {less} than "
        "now; beyond it little is left to save."
    )


def tables(result: WhatIf, *, every: bool) -> list[Table]:
    """The tables of the result; not `every`: the largest indexes alone."""
    found = [_checkpoints(result)]
    if result.compression:
        found.append(_compressions(result))
    if result.without_index:
        found.append(_indexes(result, every=every))
    return found


def as_csv(result: WhatIf) -> str:
    """One row a setting of checkpoints."""
    rows = []
    for one in result.checkpoint:
        ends = [*_ends(one.bytes), *_ends(one.fpi_bytes)]
        rows.append(
            [one.timeout_s, one.max_wal_size_bytes, one.in_force, one.checkpoints, *ends,
             one.images_gone, one.images_new]
        )  # fmt: skip
    names = (
        "timeout_s", "max_wal_size_bytes", "in_force", "checkpoints", "bytes", "bytes_low",
        "bytes_high", "fpi_bytes", "fpi_bytes_low", "fpi_bytes_high", "images_gone", "images_new",
    )  # fmt: skip
    return csv_file.written(names, rows)


def _ends(value: int | Range) -> tuple[int, int, int]:
    if isinstance(value, Range):
        return value.mid, value.low, value.high
    return value, value, value


def _shown(value: int | Range) -> str:
    if not isinstance(value, Range) or value.low == value.high:
        return show_bytes(middle(value))
    return f"{show_bytes(value.mid)} ({show_bytes(value.low)} to {show_bytes(value.high)})"


def _setting(one: CheckpointWal) -> str:
    timeout = "?" if one.timeout_s is None else show_duration(one.timeout_s)
    size = "?" if one.max_wal_size_bytes is None else show_bytes(one.max_wal_size_bytes)
    return f"checkpoint_timeout {timeout} and max_wal_size {size}"


def _checkpoints(result: WhatIf) -> Table:
    now = middle(result.checkpoint[0].bytes)
    rows = []
    for place, one in enumerate(result.checkpoint):
        mark = "in force" if one.in_force else "knee" if place in result.knee else ""
        rows.append(
            (
                None if one.timeout_s is None else show_duration(one.timeout_s),
                None if one.max_wal_size_bytes is None else show_bytes(one.max_wal_size_bytes),
                one.checkpoints,
                _shown(one.bytes),
                share_of(middle(one.bytes), now),
                _shown(one.fpi_bytes),
                mark,
            )
        )
    return Table(
        title="WAL at other checkpoint distances",
        columns=(
            Column(key="timeout", title="checkpoint_timeout", style="text", lead=True),
            Column(key="size", title="max_wal_size", style="text", lead=True),
            Column(key="checkpoints", title="checkpoints"),
            Column(key="bytes", title="WAL", style="text"),
            Column(key="share", title="of now", unit="%", style="share"),
            Column(key="fpi", title="images", style="text"),
            Column(key="mark", title="", style="words"),
        ),
        rows=tuple(rows),
        note="Counted where images only go; a range where images come, whose sizes are estimated. "
        "Every setting begins with the log's first checkpoint; one without a further checkpoint "
        "is at most through its first cycle, in which images are densest at the beginning.",
    )


def _compressions(result: WhatIf) -> Table:
    sampled = min(one.sampled_frac for one in result.compression)
    note = "Every image was compressed again."
    if sampled < 1:
        note = f"By {show_share(sampled)} of the images."
    return Table(
        title="WAL with other wal_compression",
        columns=(
            Column(key="method", title="wal_compression", style="words", lead=True),
            Column(key="bytes", title="WAL", style="text"),
            Column(key="fpi", title="images", style="text"),
            Column(key="cpu", title="processor time", style="text"),
        ),
        rows=tuple(
            (one.method, show_bytes(one.bytes), show_bytes(one.fpi_bytes),
             None if one.method == "off" else f"{one.cpu_s:.3g} s")
            for one in result.compression
        ),
        note=f"{note} The time is this machine's, for compressing alone.",
    )  # fmt: skip


def _indexes(result: WhatIf, *, every: bool) -> Table:
    shown = result.without_index if every else result.without_index[:INDEXES_SHOWN]
    now = middle(result.checkpoint[0].bytes)
    return Table(
        title="WAL of each index",
        columns=(
            Column(key="name", title="index", style="words", lead=True),
            Column(key="table", title="of", style="words"),
            Column(key="bytes", title="WAL", style="text"),
            Column(key="share", title="share", unit="%", style="share"),
            Column(key="fpi", title="images", style="text"),
            Column(key="records", title="records"),
        ),
        rows=tuple(
            (one.name, one.table, show_bytes(one.bytes), share_of(one.bytes, now),
             show_bytes(one.fpi_bytes), one.records)
            for one in shown
        ),
        note="What would not be written without it, at least: that updates become HOT is not in "
        "it (predict --without-index has that).",
    )  # fmt: skip

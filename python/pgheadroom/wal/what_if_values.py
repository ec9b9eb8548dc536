"""
The log otherwise, as a value: with other checkpoints, another compression, without an index.
"""

from __future__ import annotations

from dataclasses import dataclass

from pgheadroom.forms import Filed


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """
    A number that is partly estimated.

    The ends are bounds by the mean error of a single estimate, by how late checkpoints begin, and
    by hint bits that were not logged; no interval of a stated coverage, so `level` is None.
    """

    low: int
    mid: int
    high: int
    level: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationWhatIf:
    """A relation's log under other checkpoints, where it differs."""

    name: str | None
    tablespace_oid: int
    database_oid: int
    relfilenode: int
    bytes: int | Range
    fpi_bytes: int | Range


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointWal:
    """
    The log with checkpoints at this distance.

    Of the setting in force, timeout and size are None where nobody said them; its numbers are those
    of the log itself.
    """

    timeout_s: float | None
    max_wal_size_bytes: int | None
    bytes: int | Range
    fpi_bytes: int | Range
    in_force: bool
    checkpoints: int
    images_gone: int
    images_new: int
    relations: tuple[RelationWhatIf, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressionWal:
    """The log with images compressed like this; a sample where there are very many."""

    method: str
    bytes: int
    fpi_bytes: int
    sampled_frac: float
    cpu_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexWal:
    """
    What would not be written without an index: a lower bound.

    The updates that would become HOT, and what that saves in the table and in other indexes, are
    not in it.
    """

    name: str
    table: str | None
    method: str | None
    records: int
    bytes: int
    fpi_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf(Filed):
    """
    The log otherwise.

    Attributes:
        server: The major version that wrote it.
        start_lsn: The redo point at which every course begins with a checkpoint.
        end_lsn: Where the last record ends.
        length_s: Seconds between the first and the last end of a transaction.
        checkpoint: The setting in force first.
        knee: Places in `checkpoint` from which on little is left to save; empty without a saving.
        compression: By method; empty without images.
        without_index: Largest first.
        notes: What a reader of the numbers has to know.
    """

    KIND = "wal_what_if"

    tool_version: str
    server: str
    start_lsn: str
    end_lsn: str
    length_s: float
    checkpoint: tuple[CheckpointWal, ...]
    knee: tuple[int, ...]
    compression: tuple[CompressionWal, ...]
    without_index: tuple[IndexWal, ...]
    notes: tuple[str, ...] = ()


def middle(value: int | Range) -> int:
    """The number, or the middle of a range."""
    return value.mid if isinstance(value, Range) else value

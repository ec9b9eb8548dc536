"""
What the twin foresees of a table, as values: at a fillfactor, beside what was measured, on the way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pgheadroom.advise.inputs import FittedInput, inputs_in_file, inputs_of
from pgheadroom.advise.knobs import Fit
from pgheadroom.forms import Stored, in_file
from pgheadroom.outcome import Value, mid, middle


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """
    One fillfactor: what the table does in its steady state there.

    Per update where a name says so; sizes are those at the end of the simulated time.

    Attributes:
        fillfactor: Percent.
        hot_frac: HOT updates over updates.
        newpage_frac: Updates that went to another page, over updates.
        heap_bytes: Main fork of the table.
        index_bytes: Main forks of its B-trees.
        wal_bytes_per_update: WAL that the statements that update rows write, over the rows: as
            pg_stat_statements has it, images apart. None where nobody can say.
        all_wal_bytes_per_update: All WAL of the table over its updates: images, inserts, commits
            and vacuums included; what the cost is made of. Files of earlier versions have it under
            the other name.
        pages_modified_per_update: Pages that a checkpoint's distance dirties, over its updates.
        seq_scan_pages: Pages that a sequential scan reads.
        misses_per_update: Pages not found in shared buffers, over updates; None where unknown.
        vacuum_pages_per_update: Pages that vacuums look at, over updates; None without vacuums.
        cost: By the policy, a day; see `policy`.
        is_settled: Whether the run went on until it no longer moved; else what stands here is of
            its last half, and the long run may lie beyond.
        hot_frac_seen: Where it has not settled: from where to where HOT has moved at its end.
        updates_per_row: How far it was played; None in files of earlier versions.
    """

    fillfactor: int
    hot_frac: Value
    newpage_frac: Value
    heap_bytes: Value
    index_bytes: Value
    wal_bytes_per_update: Value
    pages_modified_per_update: Value
    seq_scan_pages: Value
    misses_per_update: Value = None
    vacuum_pages_per_update: Value = None
    cost: Value = None
    all_wal_bytes_per_update: Value = None
    is_settled: bool = field(default=True, metadata=in_file(added_later=True))
    hot_frac_seen: Value = field(default=None, metadata=in_file(added_later=True))
    updates_per_row: float | None = field(default=None, metadata=in_file(added_later=True))


def of_one_wal(found: Any) -> Any:
    """Until a version that has both, WAL per update was all of the table's."""
    if not isinstance(found, Mapping) or "all_wal_bytes_per_update" in found:
        return found
    all_wal = found.get("wal_bytes_per_update")
    return {**found, "wal_bytes_per_update": None, "all_wal_bytes_per_update": all_wal}


HOT_MOVES = 0.01
"""Of the updates: what gives less HOT than this is not for HOT, and is not told as if it were."""


def moves_hot(before: Point | None, after: Point | None) -> bool:
    """Whether HOT in the long run is another one; True where nobody knows."""
    if before is None or after is None:
        return True
    hot = middle(before.hot_frac), middle(after.hot_frac)
    return None in hot or abs(mid(hot[1]) - mid(hot[0])) >= HOT_MOVES


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """
    How well the twin repeats what was observed at the setting in force.

    Attributes:
        observed_hot_frac: Of the interval.
        predicted_hot_frac: The twin's at the current fillfactor, in the state that it takes the
            table to be in.
        observed_newpage_frac: Of the interval; None on 15.
        predicted_newpage_frac: The twin's.
        agrees: Whether the observed share lies inside the predicted interval, or within a point.
        fitted: Physical inputs that were set so that it does, which the file has by name, as
            `{"changed_frac of orders.state": 0.1}`; empty where the observation alone sufficed.
        note: One sentence for people.
        observed_wal_bytes_per_update: Of the interval, by pg_stat_statements, images apart.
        predicted_wal_bytes_per_update: The twin's, in the same state; None where it contradicts
            what was measured.
        contradicted: What was measured and is not what the twin has, beyond its interval, in
            sentences; figures of it are not shown.
        fit: What it was played with, from which `verify` foresees again; None where the twin is
            contradicted as a whole, and in files of earlier versions.
    """

    observed_hot_frac: float | None
    predicted_hot_frac: Value
    observed_newpage_frac: float | None
    predicted_newpage_frac: Value
    agrees: bool
    fitted: Annotated[
        tuple[FittedInput, ...], Stored(Mapping[str, float | str], inputs_of, inputs_in_file)
    ]
    note: str
    observed_wal_bytes_per_update: Value = None
    predicted_wal_bytes_per_update: Value = None
    contradicted: tuple[str, ...] = ()
    fit: Fit | None = field(default=None, metadata=in_file(added_later=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """
    The way to the new setting when nothing is rewritten.

    Attributes:
        verdict: `at once`, `converges`, `does not converge`, `no updates`.
        after_s: Seconds at the observed rate until the HOT share is within a point of its final
            value; None where it never is, or nobody knows.
        after_updates_per_row: The same in updates a row.
        final_hot_frac: The share that it arrives at without a rewrite.
        rewritten_hot_frac: The share with the rewrite.
        final_heap_bytes: The size that it arrives at without a rewrite.
    """

    verdict: Literal["at once", "converges", "does not converge", "no updates"]
    after_s: float | None
    after_updates_per_row: float | None
    final_hot_frac: float | None
    rewritten_hot_frac: float | None
    final_heap_bytes: float | None

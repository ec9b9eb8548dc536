"""
The interval's updates of one table: what the counters say, and what each class assigned.

Classes of statements bound how many updates can have changed an indexed column: assigned is not
changed (an equal value keeps HOT), but what is not assigned has not changed, triggers aside.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pgheadroom.profile import TableProfile
from pgheadroom.profile.observed import (
    IndexCounters,
    ObservedIndex,
    ObservedTable,
    ObservedUpdates,
    UpdateClass,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assigning:
    """
    Updates that assign the same columns.

    Attributes:
        columns: Names in the catalog; none that is assigned to itself. Stored columns that are
            generated from one of them count as assigned.
        appended: Those that get something appended to their own value.
        rows_low: Updates that it has made at least.
        rows: Its likely updates.
        rows_high: Updates that it can have made at most.
        rows_per_statement: None where nobody counted.
    """

    columns: frozenset[str]
    appended: frozenset[str]
    rows_low: float
    rows: float
    rows_high: float
    rows_per_statement: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """
    An index whose change ends HOT.

    `columns` are all on which it depends, of expressions and predicates too.
    """

    name: str
    columns: frozenset[str]
    is_unique: bool
    is_key: bool
    scans: int | None
    total_scans: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Updates:
    """
    The updates of an interval.

    Attributes:
        count: All.
        hot: HOT ones.
        newpage: Those that went to another page; None on 15, which does not count them.
        classes: What statements assigned.
        unknown: Likely updates that no statement accounts for.
        unknown_high: The same at most.
        is_counted: Classes are counted in rows that are the table's own.
        is_explained: Classes account for all updates, chance and lag apart: what none of them
            assigns has not changed, triggers aside.
        indexes: Those whose change ends HOT.
    """

    count: int
    hot: int
    newpage: int | None
    classes: tuple[Assigning, ...]
    unknown: float
    unknown_high: float
    is_counted: bool
    is_explained: bool
    indexes: tuple[Index, ...]

    @property
    def same_page_cold(self) -> int | None:
        """
        Not HOT though there was room on the page; None on 15.

        Each of them changed an indexed column: `heap_update` (heapam.c) makes every update HOT that
        stays on its page and changes no such column, even where the page is marked as full.
        """
        return None if self.newpage is None else self.count - self.hot - self.newpage

    @property
    def blocking(self) -> frozenset[str]:
        """Columns whose change ends HOT."""
        return frozenset().union(*(index.columns for index in self.indexes))

    def assigning(self, *, indexed: bool) -> tuple[Assigning, ...]:
        """The classes that assign a column whose change ends HOT, or those that do not."""
        blocking = self.blocking
        return tuple(c for c in self.classes if bool(c.columns & blocking) is indexed)

    def bounds(self, *, indexed: bool) -> tuple[float, float, float]:
        """Updates at least, likely and at most that assign such a column, or do not."""
        chosen = self.assigning(indexed=indexed)
        likely = sum(c.rows for c in chosen)
        high = min(sum(c.rows_high for c in chosen) + self.unknown_high, self.count)
        if indexed and not self.indexes:
            return 0.0, 0.0, 0.0
        low = min(sum(c.rows_low for c in chosen), high)
        return low, min(max(likely, low), high), high


def updates_per_s(table: TableProfile) -> float:
    """Updates a second of the observed interval; 0 where nobody can say."""
    assert table.observed is not None, "the caller has checked that tables are observed"
    return float(table.observed.per_s.n_tup_upd or 0.0)


def updates_of(table: TableProfile, major: int) -> Updates | None:
    """
    Read them from an observed table; None where none were counted.

    Args:
        table: With `observed`.
        major: Of the server.
    """
    observed = table.observed
    if observed is None:
        return None
    counters = observed.counters
    count, hot = counters.n_tup_upd, counters.n_tup_hot_upd
    if not count or hot is None:
        return None
    inserts = counters.n_tup_ins
    newpage = counters.n_tup_newpage_upd if major >= 16 else None
    hot = min(int(hot), int(count))
    if newpage is not None:
        newpage = min(int(newpage), int(count) - hot)
    classes, unknown, unknown_high, is_counted = _classes(observed, int(count))
    return Updates(
        count=int(count),
        hot=hot,
        newpage=newpage,
        classes=classes,
        unknown=unknown,
        unknown_high=unknown_high,
        is_counted=is_counted,
        is_explained=_is_explained(observed.updates, int(count), inserts),
        indexes=tuple(_indexes(observed.indexes, major)),
    )


def assigned_columns(observed: ObservedTable, found: UpdateClass) -> frozenset[str]:
    """
    Columns that a class of statements assigns, and the stored ones that are generated from these.

    Args:
        observed: Of the table.
        found: The class, as observed.
    """
    assigned = frozenset(found.columns) - set(found.same or ())
    computed = (
        column.name
        for column in observed.columns
        if column.generated == "stored" and assigned & set(column.generated_from or ())
    )
    return assigned | frozenset(computed)


def _classes(
    observed: ObservedTable, count: int
) -> tuple[tuple[Assigning, ...], float, float, bool]:
    """Classes by rows where the source counts rows of this table, else by shares alone."""
    seen = observed.updates
    listed = [found for found in seen.classes if found.frac]
    if not listed:
        return (), float(count), float(count), False
    lost = seen.unattributed_frac
    is_counted = lost is not None and all(found.rows is not None for found in listed)
    total = sum(found.rows or 0 for found in listed) if is_counted else 0
    missing, beyond = max(count - total, 0), max(total - count, 0)
    is_noise = missing <= count * float(seen.unattributed_resolution or 0)
    made = []
    for found in listed:
        per_statement, counted = found.rows_per_statement, found.rows or 0
        if per_statement is None and found.rows and found.calls and found.kind == "update":
            per_statement = found.rows / found.calls  # a profile of an earlier version
        rows = float(found.frac or 0) * count
        low, high = 0.0, float(count)
        if is_counted:
            low, high = max(counted - beyond, 0.0), min(float(counted), count)
            rows = float(counted)
            if beyond or is_noise:
                rows *= count / max(total, 1)
            high = max(high, min(rows, count))
        appended = found.appended or ()
        made.append(
            Assigning(
                columns=assigned_columns(observed, found),
                appended=frozenset(appended),
                rows_low=min(low, rows),
                rows=rows,
                rows_high=high,
                rows_per_statement=per_statement,
            )
        )
    if not is_counted:
        return tuple(made), 0.0, float(count), False
    return tuple(made), 0.0 if is_noise else float(missing), float(missing), True


def _is_explained(seen: ObservedUpdates, count: int, inserts: float | None) -> bool:
    """
    Whether the rows that classes have counted are all of the table's updates.

    Rows of an upsert or MERGE may have been inserts: as many as the table had in all, at most.
    """
    listed = [found for found in seen.classes if found.frac]
    if not listed or seen.source != "pg_stat_statements":
        return False
    noise = float(seen.unattributed_resolution or 0)
    lost = seen.unattributed_frac
    if lost is not None:
        return float(lost) <= noise
    mixed = [found for found in listed if found.kind != "update"]
    if any(found.rows is None for found in listed) or not mixed or inserts is None:
        return False
    rows = sum(float(found.rows or 0) for found in listed)
    return rows - inserts >= (1 - noise) * count


def _scans(counters: IndexCounters | None) -> int | None:
    """Index scans; None where nobody counted."""
    scans = None if counters is None else counters.idx_scan
    return None if scans is None else int(scans)


def _indexes(listed: Iterable[ObservedIndex], major: int) -> Iterable[Index]:
    listed = tuple(listed)
    for found in listed:
        # From 16 on summarizing indexes (BRIN) do not end HOT, whatever a profile says.
        if not found.ends_hot or (major >= 16 and found.is_summarizing):
            continue
        columns = frozenset(found.ends_hot_by_columns)
        if not columns:
            continue
        yield Index(
            name=found.name,
            columns=columns,
            is_unique=found.is_unique or bool(found.is_exclusion),
            is_key=found.is_primary,
            scans=_scans(found.counters),
            total_scans=_scans(found.totals),
        )

"""
The log of an observation's interval, beside what the profile has of its tables.

The log knows files; whose they are is asked of the server, and a profile's table is told by its
file's number, so that a masked profile has its tables' sums and no name of another. Files belong
together that are of one table by its OID: a name may pass to another table within the interval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pgheadroom.forms import changed
from pgheadroom.profile import Profile
from pgheadroom.profile.observed import TableWal, WalCount
from pgheadroom.profile.observed_server import ServerWal
from pgheadroom.wal.names import Names, RelationName
from pgheadroom.wal.values import Count, RelationWal, WalStats

FORMAT = 1
"""Of `[server.observed.wal]` and `[table.observed.wal]`, which older profiles do not have."""

_TOAST = "pg_toast."

_Named = tuple[RelationWal, RelationName]


def with_log(profile: Profile, stats: WalStats, names: Names, *, source: str) -> Profile:
    """
    A profile with the log of its interval.

    Args:
        profile: Made by `observe`.
        stats: Of the interval.
        names: Of the server's relations, unmasked and with their OIDs.
        source: Where the log was read, for people.
    """
    server = profile.server.observed
    assert server is not None, "made by observe"
    database = server.database_oid
    owner = {
        name.relfilenode: name.table_oid or name.oid
        for name in names.relations
        if name.database_oid == database
    }
    of_table: dict[int | None, list[_Named]] = {}
    nameless_bytes = 0
    for one in stats.relations:
        if one.tablespace_oid is None or one.database_oid is None or one.relfilenode is None:
            continue
        known = names.of(one.tablespace_oid, one.database_oid, one.relfilenode)
        if known is None:
            nameless_bytes += one.bytes
        elif one.database_oid == database:
            of_table.setdefault(known.table_oid or known.oid, []).append((one, known))
    tables = []
    for table in profile.tables:
        found = table.observed
        own = None if found is None else owner.get(found.relfilenode)
        if found is not None and own is not None:
            found = changed(found, wal=_table(of_table.get(own, ())))
        tables.append(replace(table, observed=found))
    observed = changed(server, wal=_server(stats, nameless_bytes, source))
    return replace(profile, server=replace(profile.server, observed=observed), tables=tuple(tables))


def _table(relations: Sequence[_Named]) -> TableWal:
    by_cause: dict[str, Count] = {}
    for one, _ in relations:
        for cause, count in one.by_cause.items():
            before = by_cause.get(cause, Count(records=0, bytes=0))
            by_cause[cause] = Count(
                records=before.records + count.records, bytes=before.bytes + count.bytes
            )
    is_toast = [name.name.startswith(_TOAST) for _, name in relations]
    is_index = [name.table is not None for _, name in relations]
    return TableWal(
        records=sum(one.records for one, _ in relations),
        bytes=sum(one.bytes for one, _ in relations),
        fpi=sum(one.fpi for one, _ in relations),
        fpi_bytes=sum(one.fpi_bytes for one, _ in relations),
        index_bytes=sum(
            one.bytes
            for (one, _), index, toast in zip(relations, is_index, is_toast, strict=True)
            if index and not toast
        ),
        toast_bytes=sum(
            one.bytes for (one, _), toast in zip(relations, is_toast, strict=True) if toast
        ),
        by_cause=_counts(by_cause),
    )


def _server(stats: WalStats, nameless_bytes: int, source: str) -> ServerWal:
    return ServerWal(
        format=FORMAT,
        source=source,
        start_lsn=stats.start_lsn,
        end_lsn=stats.end_lsn,
        records=stats.total.records,
        bytes=stats.total.bytes,
        fpi=stats.total.fpi,
        fpi_bytes=stats.total.fpi_bytes,
        nameless_bytes=nameless_bytes,
        by_cause=_counts(stats.by_cause),
        notes=tuple(
            f"{gap.from_lsn} to {gap.to_lsn} was not read ({gap.why})" for gap in stats.gaps
        ),
    )


def _counts(causes: Mapping[str, Count]) -> dict[str, WalCount]:
    ordered = sorted(causes.items(), key=lambda item: (-item[1].bytes, item[0]))
    return {cause: WalCount(records=count.records, bytes=count.bytes) for cause, count in ordered}

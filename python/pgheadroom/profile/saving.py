"""
A profile as data that `parse_profile` reads again: every field written out.
"""

from __future__ import annotations

from typing import Any

from pgheadroom.profile.model import (
    ColumnProfile,
    IndexProfile,
    Operation,
    Profile,
    RowRange,
    Run,
    ServerSettings,
    TableProfile,
)
from pgheadroom.units import setting_bytes


def to_json(profile: Profile) -> dict[str, Any]:
    """The profile under the file's names; reading it again gives an equal profile."""
    saved: dict[str, Any] = {"schema_version": 1, "server": _server(profile.server)}
    builtin = profile.workload.builtin
    if builtin is None:
        saved["table"] = [_table(table) for table in profile.tables]
        saved["operation"] = [_operation(item) for item in profile.workload.operations]
    else:
        saved["pgbench"] = {
            "builtin": builtin.builtin,
            "scale": builtin.scale,
            "fillfactor": dict(builtin.fillfactor),
        }
    saved["run"] = _run(profile.workload.run)
    return saved


def _given(**fields: Any) -> dict[str, Any]:
    """The fields that are not None; TOML has no null, so an absent field is absent."""
    return {name: value for name, value in fields.items() if value is not None}


def _server(server: ServerSettings) -> dict[str, Any]:
    most = server.max_wal_size_bytes
    return _given(
        version=server.version,
        shared_buffers=setting_bytes(server.shared_buffers_bytes),
        full_page_writes=server.full_page_writes,
        wal_level=server.wal_level,
        wal_compression=server.wal_compression,
        wal_log_hints=server.wal_log_hints,
        data_checksums=server.data_checksums,
        autovacuum=server.autovacuum,
        autovacuum_naptime_s=server.autovacuum_naptime_s,
        checkpoint_interval_s=server.checkpoint_interval_s,
        max_wal_size=None if most is None else setting_bytes(most),
        settings=dict(server.settings),
        observed=server.observed,
    )


def _table(table: TableProfile) -> dict[str, Any]:
    return _given(
        name=table.name,
        rows=table.rows,
        fillfactor=table.fillfactor,
        reloptions=dict(table.reloptions),
        columns=[_column(column) for column in table.columns],
        indexes=[_index(index) for index in table.indexes],
        observed=table.observed,
    )


def _column(column: ColumnProfile) -> dict[str, Any]:
    width = column.width
    return _given(
        name=column.name,
        type=column.type,
        values=_given(kind=column.values.kind, ndistinct=column.values.ndistinct),
        width=None
        if width is None
        else {"min_bytes": width.min_bytes, "max_bytes": width.max_bytes},
        null_frac=column.null_frac,
    )


def _index(index: IndexProfile) -> dict[str, Any]:
    return _given(
        name=index.name,
        columns=list(index.columns) or None,
        expressions=list(index.expressions) or None,
        unique=index.unique,
        method=index.method,
        include=list(index.include) or None,
        where=index.where,
        fillfactor=index.fillfactor,
        deduplicate_items=index.deduplicate_items,
    )


def _operation(operation: Operation) -> dict[str, Any]:
    pick, rows = operation.pick, operation.rows_per_statement
    finds = operation.kind not in ("insert", "upsert")
    shown = None
    if pick is not None:
        shown = _given(
            distribution=pick.distribution,
            theta=pick.theta,
            param=pick.param,
            rows_frac=pick.rows_frac,
            weight=pick.weight,
            n=pick.n,
            scatter=pick.scatter or None,
        )
    return _given(
        table=operation.table,
        kind=operation.kind,
        weight=operation.weight,
        rows_per_statement=(
            {"min": rows.min_rows, "max": rows.max_rows} if isinstance(rows, RowRange) else rows
        ),
        abort_frac=operation.abort_frac,
        sets={
            change.column: _given(
                changed_frac=change.changed_frac,
                grows_bytes={"min": change.grows_min_bytes, "max": change.grows_max_bytes}
                if change.grows_max_bytes
                else None,
            )
            for change in operation.sets
        }
        or None,
        pick=shown,
        find=operation.find if finds else None,
        transaction=operation.transaction,
    )


def _run(run: Run) -> dict[str, Any]:
    return _given(
        operations=run.operations,
        duration_s=run.duration_s,
        rate_per_s=run.rate_per_s,
        clients=run.clients,
        seed=run.seed,
        snapshot=[
            {"start_frac": item.start_frac, "length_frac": item.length_frac}
            for item in run.snapshots
        ]
        or None,
    )

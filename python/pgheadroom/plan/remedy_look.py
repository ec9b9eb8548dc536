"""
What the doctor's steps act on, as it is now; and whether that is what they were planned for.

An index is known by its table, its name and what makes it: one that was built again has another
OID. A step whose end nobody saw is found out here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pgheadroom.errors import ConnectionFailed, SourceError
from pgheadroom.plan.followers import came_since, followers_of
from pgheadroom.plan.index_marks import has_marks
from pgheadroom.plan.remedies import PlannedIndex, RemedyState, RemedyStep
from pgheadroom.plan.wal_window import read_wal
from pgheadroom.settings import checkpoint_counters
from pgheadroom.sources import sql

if TYPE_CHECKING:
    import psycopg

SeenRow = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """
    What was seen of a step.

    Attributes:
        state: For the record.
        table: Its row; None: it is not there, or the step is of a setting.
        index: Of its number or, rather, its name.
        keeps: The index that is to serve in its place.
        setting: Its row.
        followers: Who follows the server, by slot or name; None: it does not matter.
    """

    state: RemedyState
    table: SeenRow | None = None
    index: SeenRow | None = None
    keeps: SeenRow | None = None
    setting: SeenRow | None = None
    followers: tuple[str, ...] | None = None


def look(connection: psycopg.Connection[Any], step: RemedyStep) -> Seen:
    """
    Look at what a step acts on.

    Raises:
        ConnectionFailed: The connection has ended.
        SourceError: A query failed, for a lock mostly.
    """
    import psycopg  # noqa: PLC0415 - loads libpq, which most commands do not need

    try:
        return _looked(connection, step)
    except psycopg.OperationalError as error:
        if not (connection.broken or connection.closed):
            raise SourceError(_refused(step, error)) from None
        raise ConnectionFailed(f"the connection ended: {str(error).strip()}") from None
    except psycopg.Error as error:
        raise SourceError(_refused(step, error)) from None


def _refused(step: RemedyStep, error: psycopg.Error) -> str:
    said = error.diag.message_primary or str(error).strip()
    return f"{step.about} could not be looked at: {said}"


def _looked(connection: psycopg.Connection[Any], step: RemedyStep) -> Seen:
    checkpoints = wal = None
    if step.kind == "set_server":
        assert step.setting is not None, "the step is of a setting"
        row = _row(connection, "remedy_setting", {"name": step.setting.name})
        counted = _rows(connection, _checkpoints(connection), {})
        checkpoints = int(counted[0]["requested"])
        wal = wal_position(connection)
        setting = None if row is None else str(row["setting"])
        pending = None if row is None else bool(row["is_pending"])
        counters = read_wal(connection)
        state = RemedyState(
            setting=setting,
            is_pending=pending,
            checkpoints=checkpoints,
            wal_bytes=wal,
            images=counters.images,
            rows=sum(table.rows for table in counters.tables.values()) + counters.elsewhere_rows,
        )
        return Seen(state=state, setting=row)
    assert step.table is not None, "the step is of a table"
    table = _row(
        connection,
        "remedy_table",
        {"oid": step.table.oid, "referenced": step.referenced or 0},
    )
    if step.index is None:
        return Seen(state=_table_state(step, table), table=table)
    found = index_row(connection, step.index)
    if step.kind == "cluster_table":
        return Seen(state=_table_state(step, table), table=table, index=found)
    keeps = None if step.keeps is None else index_row(connection, step.keeps)
    left = _rows(
        connection,
        sql.apply_text("remedy_leftovers"),
        {
            "table_oid": step.table.oid,
            "schema": step.index.relation.schema,
            "name": step.index.relation.name,
        },
    )
    state = RemedyState(
        oid=None if found is None else int(found["oid"]),
        relfilenode=None if found is None else int(found["relfilenode"]),
        is_valid=None if found is None else bool(found["is_valid"]),
        definition=None if found is None else str(found["definition"]),
        size_bytes=None if found is None else int(found["size_bytes"]),
        idx_scan=None if found is None else int(found["idx_scan"]),
        deletes=None if table is None or step.referenced is None else int(table["deletes"]),
        leftovers=tuple(str(row["name"]) for row in left) if step.kind == "rebuild_index" else (),
    )
    followers = None if step.standbys is None else followers_of(connection)
    return Seen(state=state, table=table, index=found, keeps=keeps, followers=followers)


def _table_state(step: RemedyStep, table: SeenRow | None) -> RemedyState:
    if table is None:
        return RemedyState()
    options = {**table["options"], **(table["toast_options"] or {})}
    return RemedyState(
        oid=int(table["oid"]),
        relfilenode=int(table["relfilenode"]),
        options=None
        if step.options is None
        else {name: options.get(name) for name in step.options},
        size_bytes=int(table["size_bytes"]),
        toast_bytes=None if table["toast_bytes"] is None else int(table["toast_bytes"]),
        vacuums=int(table["vacuums"]),
        toast_vacuums=None if table["toast_vacuums"] is None else int(table["toast_vacuums"]),
        analyzes=int(table["analyzes"]),
    )


def as_number(setting: str | None) -> float | None:
    """A setting as a number, of a switch 1 or 0; None where it is neither."""
    if setting in ("on", "off"):
        return float(setting == "on")
    try:
        return None if setting is None else float(setting)
    except ValueError:
        return None


def index_row(connection: psycopg.Connection[Any], index: PlannedIndex) -> SeenRow | None:
    """The index of that name; else the one of that number."""
    found = index.relation
    values = {"oid": found.oid, "schema": found.schema, "name": found.name}
    return _row(connection, "remedy_index", values)


def wal_position(connection: psycopg.Connection[Any]) -> int:
    """Bytes of WAL since the cluster began."""
    row = connection.execute("SELECT (pg_current_wal_insert_lsn() - '0/0')::int8").fetchone()
    assert row is not None, "a query without FROM gives a row"
    return int(row[0])


def _checkpoints(connection: psycopg.Connection[Any]) -> str:
    major = connection.info.server_version // 10000
    return checkpoint_counters.SQL[max(n for n in checkpoint_counters.SQL if n <= major)]


def _row(connection: psycopg.Connection[Any], name: str, values: SeenRow) -> SeenRow | None:
    return next(iter(_rows(connection, sql.apply_text(name), values)), None)


def _rows(connection: psycopg.Connection[Any], query: str, values: SeenRow) -> list[SeenRow]:
    from psycopg.rows import dict_row  # noqa: PLC0415 - as psycopg

    with connection.cursor(row_factory=dict_row) as cursor:
        return list(cursor.execute(query.encode(), values or None).fetchall())


def has_happened(step: RemedyStep, seen: Seen, before: RemedyState | None) -> bool:
    """
    Whether the step is in force.

    Args:
        step: Of the plan.
        seen: Now.
        before: Just before its statement; None: it was never begun.
    """
    state = seen.state
    if step.kind == "set_server":
        return _is_set(step, state)
    if step.kind == "set_storage":
        return state.options == step.options
    if step.kind == "drop_index":
        return state.oid is None
    if step.kind == "create_index":
        return is_that_index(step.index, step, seen)
    if step.kind == "rebuild_index":
        assert step.index is not None, "a rebuild is of an index"
        was = step.index.relation
        old = (was.oid, was.relfilenode) if before is None else (before.oid, before.relfilenode)
        return bool(state.is_valid) and (state.oid, state.relfilenode) != old
    if step.kind == "vacuum":
        return before is not None and (state.vacuums or 0) > (before.vacuums or 0)
    if step.kind == "analyze":
        return before is not None and (state.analyzes or 0) > (before.analyzes or 0)
    assert step.table is not None, "a rewrite is of a table"
    node = step.table.relfilenode if before is None else before.relfilenode
    return state.relfilenode is not None and state.relfilenode != node


def _is_set(step: RemedyStep, state: RemedyState) -> bool:
    change = step.setting
    assert change is not None, "the step is of a setting"
    if change.needs_restart:
        return bool(state.is_pending)
    if change.becomes is not None:
        return state.setting == change.becomes
    return state.setting != change.before


def is_undone(step: RemedyStep, seen: Seen) -> bool:
    """Whether it is as it was before the step."""
    state = seen.state
    if step.kind == "set_server":
        assert step.setting is not None, "the step is of a setting"
        return state.setting == step.setting.before and not state.is_pending
    if step.kind == "set_storage":
        return state.options == step.options_before
    if step.kind == "drop_index":
        return is_that_index(step.index, step, seen) and not lacks_marks(step, seen)
    if step.kind == "create_index":
        return state.oid is None
    return step.kind == "rebuild_index" and not state.leftovers


def is_half(step: RemedyStep, seen: Seen) -> bool:
    """Whether a statement that was stopped has left something: an invalid index."""
    if step.kind == "drop_index":
        assert step.index is not None, "a drop is of an index"
        return step.index.is_valid and seen.state.is_valid is False
    if step.kind == "create_index":
        return seen.state.is_valid is False
    return bool(seen.state.leftovers)


def is_that_index(index: PlannedIndex | None, step: RemedyStep, seen: Seen) -> bool:
    """Whether the index is there, valid, and made by the same statement on the same table."""
    return index is not None and _is_index(index, step, seen.index) and bool(seen.state.is_valid)


def lacks_marks(step: RemedyStep, seen: Seen) -> bool:
    """Whether an undo was stopped behind its build: the index is there, its comment is not yet."""
    if step.kind != "drop_index" or not is_that_index(step.index, step, seen):
        return False
    assert step.index is not None, "a drop is of an index"
    assert seen.index is not None, "seen above"
    return not has_marks(step.index, seen.index)


def _is_index(index: PlannedIndex, step: RemedyStep, row: SeenRow | None) -> bool:
    return (
        row is not None
        and step.table is not None
        and (row["schema"], row["name"]) == (index.relation.schema, index.relation.name)
        and int(row["table_oid"]) == step.table.oid
        and row["definition"] == index.definition
    )


def why_gone(step: RemedyStep, seen: Seen) -> str | None:
    """That what a step is about to act on is not there any more; None where it is."""
    if step.setting is not None:
        return None if seen.setting is not None else "the server has no such setting"
    if seen.table is None:
        return "its table is gone: dropped since it was planned"
    if step.kind in ("drop_index", "rebuild_index", "cluster_table") and seen.index is None:
        return "it is gone: dropped since it was planned"
    return None


def changed(step: RemedyStep, seen: Seen, *, was_begun: bool) -> str | None:
    """
    Why a step that is to be done does not fit any more; None where it does.

    Args:
        step: Of the plan.
        seen: What it acts on.
        was_begun: Its statement was run before, so that halves of it may be there.
    """
    state = seen.state
    if step.setting is not None:
        if state.setting != step.setting.before:
            return f"found {state.setting}, the plan has {step.setting.before}"
        return None
    table = _renamed(step, seen)
    if table is not None:
        return table
    if step.options_before is not None and state.options != step.options_before:
        return f"found {_listed(state.options or {})}, the plan has {_listed(step.options_before)}"
    if step.kind in ("rewrite_table", "cluster_table"):
        assert step.table is not None, "a rewrite is of a table"
        if step.index is not None and not _is_index(step.index, step, seen.index):
            return f"its index {step.index.relation.called} is another one than the plan's"
        is_same = state.relfilenode == step.table.relfilenode
        return None if is_same else "it was rewritten since it was planned"
    if step.index is None:
        return None
    return _index_changed(step, step.index, seen, was_begun=was_begun)


def _index_changed(
    step: RemedyStep, index: PlannedIndex, seen: Seen, *, was_begun: bool
) -> str | None:
    state = seen.state
    if step.kind == "create_index":
        if seen.index is None or (was_begun and is_half(step, seen)):
            return None
        return "an index of that name is there already"
    if not _is_index(index, step, seen.index):
        return "it is another index than the plan's: renamed, or made by another statement"
    if step.kind == "rebuild_index":
        node = (index.relation.oid, index.relation.relfilenode)
        is_same = (state.oid, state.relfilenode) == node
        return None if is_same else "it was built anew since it was planned"
    if index.is_valid and not state.is_valid and not was_begun:
        return "it is invalid, and was not when it was planned"
    if step.rule == "unused-index" and state.idx_scan:
        return f"it was read {state.idx_scan:,} times since it was planned"
    if step.standbys is not None and seen.followers is not None:
        why = came_since(step.standbys, seen.followers)
        if why is not None:
            return why
    keeps = step.keeps
    if keeps is not None and not (
        _is_index(keeps, step, seen.keeps) and seen.keeps is not None and seen.keeps["is_valid"]
    ):
        return f"{keeps.relation.called}, which serves in its place, is not as it was planned"
    return None


def not_undoable(step: RemedyStep, seen: Seen) -> str | None:
    """Why a step that was done cannot be taken back; None where it can."""
    if step.setting is not None:
        # Written to the file and not in force: it was stopped before the reload.
        is_ours = _is_set(step, seen.state) or seen.state.setting == step.setting.before
        return None if is_ours else f"found {seen.state.setting}, which the plan has not set"
    if seen.table is None:
        return "its table is gone"
    table = _renamed(step, seen)
    if table is not None:
        return table
    if step.options is not None and seen.state.options != step.options:
        return f"found {_listed(seen.state.options or {})}, the plan has {_listed(step.options)}"
    is_begun = is_half(step, seen) or lacks_marks(step, seen)
    if step.kind == "drop_index" and seen.index is not None and not is_begun:
        return "an index of its name is there already"
    if step.kind == "create_index" and not (
        is_that_index(step.index, step, seen) or is_half(step, seen)
    ):
        return "the index is another one than the plan's"
    return None


def _renamed(step: RemedyStep, seen: Seen) -> str | None:
    assert step.table is not None, "the step is of a table"
    assert seen.table is not None, "the caller has seen that it is there"
    name = (seen.table["schema"], seen.table["name"])
    if name == (step.table.schema, step.table.name):
        return None
    return f"its table is called {name[0]}.{name[1]} now, the plan has {step.table.called}"


def _listed(options: Mapping[str, str | None]) -> str:
    return ", ".join(f"{name} {value or 'not set'}" for name, value in sorted(options.items()))

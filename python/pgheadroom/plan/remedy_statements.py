"""
The statements of remedies, each with its lock, what it blocks, what it costs, and its undo.

`apply` runs no other text than this module makes of a step's fields. One text comes from the
server: what makes an index again, which is held against the server's own before the index goes,
and is one CREATE INDEX by PostgreSQL's grammar or is refused.

Locks: `DROP INDEX CONCURRENTLY`, `CREATE INDEX CONCURRENTLY` and `REINDEX INDEX CONCURRENTLY` take
SHARE UPDATE EXCLUSIVE on the table (`index_drop`, index.c; `DefineIndex` and
`ReindexRelationConcurrently`, indexcmds.c); storage parameters of autovacuum likewise
(`AlterTableGetRelOptionsLockLevel`, reloptions.c). VACUUM truncates under ACCESS EXCLUSIVE, which
it asks for 5 s long without waiting in the queue (`lazy_truncate_heap`, vacuumlazy.c). ANALYZE
takes SHARE UPDATE EXCLUSIVE (`analyze_rel`, analyze.c).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from pgheadroom.errors import InputError
from pgheadroom.plan.index_marks import marks_again, wrong_marks
from pgheadroom.plan.remedies import (
    PlannedIndex,
    PlannedRelation,
    RemedyStep,
    RemedyTool,
    ServerChange,
)
from pgheadroom.plan.statements import (
    MB,
    ORDERING,
    REWRITES,
    TRAITS,
    VERIFIED,
    OrderedBy,
    order_keys,
    rewrite,
)
from pgheadroom.plan.values import TableMark, Target, Tool
from pgheadroom.quoting import identifier, printable, shown_identifier, shown_literal
from pgheadroom.types import Interval

STORAGE = re.compile(r"(toast\.)?autovacuum_[a-z_]+", re.ASCII)
"""Storage parameters that a step may set: those of autovacuum, whose lock is a light one."""
_STORAGE_VALUE = re.compile(r"[A-Za-z0-9.+-]{1,32}", re.ASCII)
_PLAIN_VALUE = re.compile(r"-?(0|[1-9][0-9]{0,11})(\.[0-9]{1,12})?|on|off|true|false", re.ASCII)
"""Kept by the server as it stands; `NO`, `.5` or `007` is so only in quotes."""
_SAFE = {
    "autovacuum": "on",
    "fsync": "on",
    "full_page_writes": "on",
    "zero_damaged_pages": "off",
    "ignore_checksum_failure": "off",
    "ignore_system_indexes": "off",
}
"""Switches that a plan may only put to the value that loses nothing."""
SERVER_SETTINGS = _SAFE.keys() | {
    "max_wal_size",
    "checkpoint_timeout",
    "checkpoint_completion_target",
    "autovacuum_vacuum_cost_limit",
    "log_autovacuum_min_duration",
    "vacuum_freeze_min_age",
}
"""What ALTER SYSTEM of a plan may set, beside planner switches: nothing that names a command, a
library, a file or a host, whoever wrote the plan."""
ASKS_STANDBYS = ("unused-index", "overlapping-index")
"""Rules whose indexes may be read on a standby, and are dropped only where each was asked."""
_SWITCH = re.compile(r"enable_[a-z_]+", re.ASCII)
_SERVER_VALUE = re.compile(r"-?[0-9]{1,12}(\.[0-9]{1,6})? ?(B|kB|MB|GB|TB|us|ms|s|min|h|d)?|on|off")

_RELOAD = "SELECT pg_reload_conf()"
_BUILDING = ("REINDEX", "CREATE INDEX", "VACUUM", "ANALYZE", "CLUSTER")
_BUILD_RATES = (10 * MB, 40 * MB, 150 * MB)  # bytes a second, beside clients; assumed
_CATALOG_WAL_BYTES = 40_000
_MOMENT_S = (0.001, 0.02, 0.5)
_SHARE_UPDATE = "SHARE UPDATE EXCLUSIVE"
_OTHER_DDL = (
    "VACUUM, ANALYZE, CREATE INDEX and ALTER TABLE of this table; SELECT, INSERT, UPDATE and "
    "DELETE go on"
)
_LOCKS: dict[str, tuple[str, str]] = {
    "ALTER SYSTEM": ("none", "nothing"),
    "ALTER TABLE": (_SHARE_UPDATE, f"{_OTHER_DDL}; for a moment"),
    "DROP INDEX": (
        _SHARE_UPDATE,
        f"{_OTHER_DDL}; it waits for transactions that may still use the index",
    ),
    "CREATE INDEX": (_SHARE_UPDATE, f"{_OTHER_DDL}; it waits for transactions that are older"),
    "REINDEX": (_SHARE_UPDATE, f"{_OTHER_DDL}; it waits for transactions that are older"),
    "VACUUM": (
        f"{_SHARE_UPDATE}, ACCESS EXCLUSIVE at its end where it gives pages back",
        f"{_OTHER_DDL}; while it gives empty pages at the table's end back all wait, and it stops "
        "when it sees one that waits",
    ),
    "ANALYZE": (_SHARE_UPDATE, _OTHER_DDL),
    "CLUSTER": ("ACCESS EXCLUSIVE", "all that reads or writes the table, until it ends"),
}
_NO_ORDER_BACK = (
    "There is no undo: the order that was is not kept, and no result depends on it. The index may "
    "be marked for the next CLUSTER; ALTER TABLE ... SET WITHOUT CLUSTER takes that away."
)
_NOTHING_BACK = "Nothing to undo: it changes no data and no setting."
_UNDO_NOTES: dict[str, str] = {
    "ALTER SYSTEM": "What was set before; the server reloads its files.",
    "ALTER TABLE": "What the table had of its own before.",
    "DROP INDEX": "The index is built again, which reads the table twice; until then what needs it "
    "reads without it. Statistics of its expressions are there again after the next ANALYZE.",
    "CREATE INDEX": "The index is dropped again.",
    "REINDEX": "Nothing to undo: the index is what it was, without its room.",
    "VACUUM": "Nothing to undo: it removes what no transaction sees.",
    "CLUSTER": _NO_ORDER_BACK,
    "ANALYZE": "There is no undo: the statistics that were are written over. Plans go by what the "
    "table is now.",
}
_REPLAYED = (
    "A standby replays its ACCESS EXCLUSIVE lock (an old index goes, or pages are given back), and "
    "ends transactions there that hold the table for longer than max_standby_streaming_delay."
)
_RISKS: dict[str, str] = {
    "ALTER SYSTEM": "It concerns the whole server, all its databases.",
    "ALTER TABLE": "No page changes: it says when autovacuum comes. A running VACUUM of the table "
    "makes it wait.",
    "DROP INDEX": f"What reads the index plans without it from then on. {_REPLAYED} "
    "Stopped in its middle, it leaves an invalid index, which nothing reads: the same command goes "
    "on, --undo builds it again.",
    "CREATE INDEX": "From now on each insert, and each update that is not HOT, makes an entry in "
    "it; updates of its columns cannot be HOT. Stopped in its middle, it leaves an invalid index: "
    "the same command drops that and goes on, --undo drops it.",
    "REINDEX": f"Keeps the horizon back while it runs. {_REPLAYED} "
    "Stopped in its middle, it leaves an invalid index with _ccnew in its name: the same command "
    "drops that and goes on, --undo drops it.",
    "ANALYZE": "Plans may change: they go by what the table is now. It reads 300 pages for each "
    "unit of the largest statistics target, at most.",
    "CLUSTER": "Nobody reads or writes the table until it ends; whoever comes waits behind it. It "
    "writes the table and all its indexes anew. Old snapshots see the table empty "
    "(`finish_heap_swap`, cluster.c, gives it another file).",
    "VACUUM": f"Reads the pages that changed, and all indexes. {_REPLAYED}",
}


def remade(step: RemedyStep, target: Target) -> RemedyStep:
    """
    The step with everything that follows from what it rests on.

    Args:
        step: Its texts are not looked at.
        target: The database.
    """
    if step.kind == "rewrite_table" or step.tool in ORDERING:
        return _rewriting(step, target)
    statements, undo = _STATEMENTS[step.tool](step)
    lock, blocks = _LOCKS[step.tool]
    seconds, basis = _duration(step)
    risk, note = _RISKS[step.tool], _UNDO_NOTES[step.tool]
    if step.setting is not None and step.setting.needs_restart:
        risk += " It is in force after a restart, which is left to you."
        note = "What was set before; it is in force after a restart."
    if step.kind == "drop_index" and not _index(step).is_valid:
        note = "Nothing to undo: no query could read it."
    return replace(
        step,
        statements=statements,
        command=None,
        undo_statements=undo,
        undo_note=note,
        lock=lock,
        blocks=blocks,
        duration_s=seconds,
        duration_basis=basis,
        disk_bytes=step.copied_bytes,
        wal_bytes=step.copied_bytes + _CATALOG_WAL_BYTES,
        run_by="apply",
        verified=15 <= target.major <= 19,
        risk=risk,
    )


def _rewriting(step: RemedyStep, target: Target) -> RemedyStep:
    assert step.table is not None, "a rewrite is of a table"
    tool, by, undo_note = cast("Tool", step.tool), None, _NOTHING_BACK
    if step.tool in ORDERING:
        index = _index(step)
        tool, undo_note = ORDERING[step.tool], _NO_ORDER_BACK
        by = OrderedBy(index=index.relation.name, keys=order_keys(index.definition))
    traits = TRAITS[tool]
    sql, command = rewrite(tool, as_mark(step.table), target, by)
    slow, _, fast = traits.bytes_per_s
    low, high = (max(0.05, step.copied_bytes / rate) for rate in (fast, slow))
    return replace(
        step,
        statements=() if sql is None else (sql,),
        command=command,
        undo_statements=(),
        undo_note=undo_note,
        lock=traits.lock,
        blocks=traits.blocks,
        duration_s=Interval(low=low, mid=(low * high) ** 0.5, high=high, level=0.9),
        duration_basis=f"assumed: {slow / MB:.0f} to {fast / MB:.0f} MB/s of new table and indexes",
        disk_bytes=round(step.copied_bytes * traits.disk_factor),
        wal_bytes=step.copied_bytes + _CATALOG_WAL_BYTES,
        run_by="you" if sql is None else "apply",
        verified=target.major in VERIFIED[tool],
        risk=traits.risk,
    )


def as_mark(table: PlannedRelation) -> TableMark:
    """The table as what makes rewriting statements knows it."""
    return TableMark(
        schema=table.schema,
        name=table.name,
        oid=table.oid,
        relfilenode=table.relfilenode,
        columns=(),
        indexes=(),
        reloptions={},
    )


def _duration(step: RemedyStep) -> tuple[Interval, str]:
    if step.tool in _BUILDING:
        slow, usual, fast = _BUILD_RATES
        work = step.reads_bytes + step.copied_bytes
        low, mid, high = (max(0.05, work / rate) for rate in (fast, usual, slow))
        said = f"assumed: {slow / MB:.0f} to {fast / MB:.0f} MB/s; your storage decides"
        return Interval(low=low, mid=mid, high=high, level=0.9), said
    low, mid, high = _MOMENT_S
    return Interval(low=low, mid=mid, high=high, level=0.9), "assumed: a few catalog rows"


def _index(step: RemedyStep) -> PlannedIndex:
    assert step.index is not None, "the step is of an index"
    return step.index


def _of_setting(step: RemedyStep) -> tuple[tuple[str, ...], tuple[str, ...]]:
    assert step.setting is not None, "the step is of a setting"
    change = step.setting
    after = () if change.needs_restart else (_RELOAD,)
    back = change.before if change.was_in_auto else None
    return (_alter_system(change, change.value), *after), (_alter_system(change, back), *after)


def _alter_system(change: ServerChange, value: str | None) -> str:
    if value is None:
        return f"ALTER SYSTEM RESET {change.name}"
    return f"ALTER SYSTEM SET {change.name} = {shown_literal(value)}"


def _of_storage(step: RemedyStep) -> tuple[tuple[str, ...], tuple[str, ...]]:
    assert step.table is not None, "storage parameters are of a table"
    assert step.options is not None, "the step changes some"
    assert step.options_before is not None, "the step knows what there was"
    table = step.table.qualified
    return _alter_table(table, step.options), _alter_table(table, step.options_before)


def _alter_table(table: str, options: Mapping[str, str | None]) -> tuple[str, ...]:
    some = ", ".join(
        f"{name} = {value if _PLAIN_VALUE.fullmatch(value) else shown_literal(value)}"
        for name, value in options.items()
        if value is not None
    )
    none = ", ".join(name for name, value in options.items() if value is None)
    made = [f"ALTER TABLE {table} SET ({some})"] if some else []
    made += [f"ALTER TABLE {table} RESET ({none})"] if none else []
    return tuple(made)


def _of_drop(step: RemedyStep) -> tuple[tuple[str, ...], tuple[str, ...]]:
    index = _index(step)
    undo = (*made_again(index), *marks_of(index)) if index.is_valid else ()
    return (drop_statement(index.relation),), undo


def marks_of(index: PlannedIndex) -> tuple[str, ...]:
    """What gives it its comment and statistics targets."""
    return marks_again(index.relation.qualified, index.comment, index.statistics)


def drop_statement(index: PlannedRelation) -> str:
    """Without a lock on writers."""
    return f"DROP INDEX CONCURRENTLY {index.qualified}"


def _of_creation(step: RemedyStep) -> tuple[tuple[str, ...], tuple[str, ...]]:
    index = _index(step)
    return made_again(index), (drop_statement(index.relation),)


def made_again(index: PlannedIndex) -> tuple[str, ...]:
    """What makes it, in its place, without a lock on writers."""
    made = re.sub(r"\A(CREATE (?:UNIQUE )?INDEX) ", r"\1 CONCURRENTLY ", index.definition, count=1)
    if index.tablespace is None:
        return (made,)
    space = identifier(index.tablespace) if index.tablespace else "''"
    return (f"SET default_tablespace = {space}", made, "RESET default_tablespace")


def _of_rebuild(step: RemedyStep) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return (f"REINDEX INDEX CONCURRENTLY {_index(step).relation.qualified}",), ()


def _of_vacuum(step: RemedyStep) -> tuple[tuple[str, ...], tuple[str, ...]]:
    assert step.table is not None, "a vacuum is of a table"
    return (f"VACUUM {step.table.qualified}",), ()


def _of_analyze(step: RemedyStep) -> tuple[tuple[str, ...], tuple[str, ...]]:
    assert step.table is not None, "statistics are of a table"
    return (f"ANALYZE {step.table.qualified}",), ()


def _of_clustering(step: RemedyStep) -> tuple[tuple[str, ...], tuple[str, ...]]:
    assert step.table is not None, "a table is clustered"
    table, index = step.table.qualified, shown_identifier(_index(step).relation.name)
    return (f"CLUSTER {table} USING {index}", f"ANALYZE {table}"), ()


_STATEMENTS = {
    "CLUSTER": _of_clustering,
    "ALTER SYSTEM": _of_setting,
    "ALTER TABLE": _of_storage,
    "DROP INDEX": _of_drop,
    "CREATE INDEX": _of_creation,
    "REINDEX": _of_rebuild,
    "VACUUM": _of_vacuum,
    "ANALYZE": _of_analyze,
}
_KINDS: dict[RemedyTool, str] = {
    "CLUSTER": "cluster_table",
    "REPACK USING INDEX": "cluster_table",
    "pg_squeeze by index": "cluster_table",
    "pg_repack by columns": "cluster_table",
    "ALTER SYSTEM": "set_server",
    "ALTER TABLE": "set_storage",
    "DROP INDEX": "drop_index",
    "CREATE INDEX": "create_index",
    "REINDEX": "rebuild_index",
    "VACUUM": "vacuum",
    "ANALYZE": "analyze",
}
_TEXTS = ("statements", "command", "undo_statements", "run_by")


def is_settable(name: str) -> bool:
    """Whether a plan may set it for the server."""
    return name in SERVER_SETTINGS or _SWITCH.fullmatch(name) is not None


def check_remedy(step: RemedyStep, target: Target) -> None:
    """
    Refuse a step of a file that acts on nothing, on too much, or says another text than it makes.

    Raises:
        InputError: It does.
    """
    what = f"plan: step {step.number}"
    expected = "rewrite_table" if step.tool in REWRITES else _KINDS[step.tool]
    if step.kind != expected:
        raise InputError(f"{what} was changed by hand: {step.tool} is not {step.kind}")
    why = _wrong(step)
    if why is not None:
        raise InputError(f"{what} was changed by hand: {why}; make the plan anew")
    made = remade(step, target)
    for name in _TEXTS:
        if getattr(step, name) != getattr(made, name):
            raise InputError(
                f"{what} was changed by hand: its {name} is "
                f"{printable(str(getattr(step, name)))}, expected "
                f"{printable(str(getattr(made, name)))}; apply runs only statements that it makes "
                "itself: make the plan anew, or run yours with psql"
            )


def _wrong(step: RemedyStep) -> str | None:
    """What about its fields cannot be."""
    if (step.setting is None) == (step.table is None):
        return "it is of a table or of a setting, one of both"
    if (step.kind == "set_server") != (step.setting is not None):
        return f"{step.kind} is of a {'setting' if step.setting is None else 'table'}"
    if step.setting is not None:
        return _wrong_setting(step.setting)
    if (step.standbys is not None) != (step.kind == "drop_index" and step.rule in ASKS_STANDBYS):
        return "it does not say which standbys were asked, or says it of what none has to be"
    assert step.table is not None, "seen above"
    for found in (step.table, *(i.relation for i in (step.index, step.keeps) if i is not None)):
        if not found.name or "\0" in found.schema + found.name or not 0 <= found.oid < 2**32:
            return f"{found.name!r} with OID {found.oid} is no name and OID"
    if (step.options is None, step.options_before is None) != ((step.kind != "set_storage"),) * 2:
        return "storage parameters are those of ALTER TABLE"
    if step.options is not None and step.options_before is not None:
        return _wrong_options(step.options, step.options_before)
    if (step.index is None) != (step.kind in ("vacuum", "rewrite_table", "analyze")):
        return "an index is missing, or one too many"
    if step.index is not None and not is_one_index(
        step.index, step.table, of_columns=step.kind == "create_index"
    ):
        return f"{step.index.definition!r} does not make the index that it is of"
    if step.tool == "pg_repack by columns":
        assert step.index is not None, "seen above"
        if order_keys(step.index.definition) is None:
            return f"{step.index.definition!r} has more than columns, which pg_repack orders by"
    return None if step.index is None else wrong_marks(step.index)


def _wrong_setting(change: ServerChange) -> str | None:
    if not is_settable(change.name):
        return f"a plan does not set {change.name}"
    values = [change.before, *([] if change.value is None else [change.value])]
    odd = [value for value in values if not _SERVER_VALUE.fullmatch(value)]
    if odd:
        return f"{odd[0]!r} is no value of it"
    if change.value not in (None, _SAFE.get(change.name, change.value)):
        return f"a plan sets {change.name} to {_SAFE[change.name]} alone"
    return None


def _wrong_options(
    options: Mapping[str, str | None], before: Mapping[str, str | None]
) -> str | None:
    if not options or options.keys() != before.keys():
        return "it does not know what it changes"
    if not all(map(STORAGE.fullmatch, options)):
        return f"of {', '.join(options)} only those of autovacuum are changed by a plan"
    values = (*options.values(), *before.values())
    odd = [value for value in values if value is not None and not _STORAGE_VALUE.fullmatch(value)]
    return f"{odd[0]!r} is no value of a storage parameter" if odd else None


def is_one_index(index: PlannedIndex, table: PlannedRelation, *, of_columns: bool = False) -> bool:
    """
    Whether the text that makes it is one CREATE INDEX, of this name, on this table.

    Args:
        index: It.
        table: The table.
        of_columns: Nothing but columns, so that it calls no function: of an index that was never
            there nothing in the catalog vouches for more.
    """
    from pgheadroom import _core  # noqa: PLC0415 - most of a plan's readers do without

    head = re.match(r"CREATE (UNIQUE )?INDEX (?!CONCURRENTLY )", index.definition)
    if head is None or len(_core.split_statements(index.definition, psql=False)) != 1:
        return False
    try:
        facts: list[Mapping[str, Any]] = json.loads(_core.statement_facts(index.definition))[
            "facts"
        ]
    except (KeyError, ValueError):
        return False
    if len(facts) != 1 or facts[0].get("action") != "AddIndex":
        return False
    found = facts[0]
    on = found["table"]
    return (
        found["name"] == index.relation.name
        and on["name"] == table.name
        and on["schema"] == table.schema
        and not found["if_not_exists"]
        and not found["only"]
        and not (of_columns and (found["has_expressions"] or found["has_predicate"]))
    )

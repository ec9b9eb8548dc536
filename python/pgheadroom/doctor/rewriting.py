"""
What rewrites a table or an index there, what it costs, and in which words.

Which tools can do it, what they lock, and the rates that are assumed are those of plans
(`plan/rewrites.py`, `plan/statements.py`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pgheadroom.bloat.asking import Ask
from pgheadroom.doctor.rule import Facts, QueryRow
from pgheadroom.doctor.values import Remedy
from pgheadroom.quoting import shown_relation
from pgheadroom.units import PAGE_BYTES, show_bytes, show_duration

if TYPE_CHECKING:
    from pgheadroom.plan.values import Tool

_PLUGINS = "output_plugin_libraries"
_SQL = """
SELECT c.oid::int8 AS oid,
       CASE c.relpersistence WHEN 'p' THEN 'permanent' ELSE 'unlogged' END AS persistence,
       CASE c.relreplident WHEN 'f' THEN 'full' WHEN 'n' THEN 'nothing' END AS replica_identity,
       current_database() AS database,
       (SELECT am.amname FROM pg_am am WHERE am.oid = c.relam) AS method,
       (SELECT coalesce(jsonb_agg(e.extname), '[]') FROM pg_extension e) AS modules,
       (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) AS is_superuser,
       (SELECT coalesce(sum(ic.relpages), 0) FROM pg_index i
        JOIN pg_class ic ON ic.oid = i.indexrelid WHERE i.indrelid = c.oid)::int8 AS index_pages,
       coalesce((SELECT tc.relpages FROM pg_class tc WHERE tc.oid = c.reltoastrelid), 0)
         AS toast_pages,
       (SELECT coalesce(jsonb_agg(jsonb_build_object(
            'is_unique', i.indisunique, 'is_primary', i.indisprimary, 'is_valid', i.indisvalid,
            'is_nullable', EXISTS (SELECT FROM pg_attribute a
                                   WHERE a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
                                     AND NOT a.attnotnull),
            'is_deferrable', NOT i.indimmediate, 'is_replica_identity', i.indisreplident,
            'predicate', CASE WHEN i.indpred IS NOT NULL THEN 'one' END,
            'expressions', CASE WHEN i.indexprs IS NOT NULL THEN 'some' END)), '[]')
        FROM pg_index i WHERE i.indrelid = c.oid) AS indexes
FROM pg_class c WHERE c.oid IN ({oids})
"""
_REINDEX_RATES = (10e6, 40e6, 150e6)  # bytes a second, as for rewrites beside clients; assumed


def rewriting_facts(ask: Ask, oids: Sequence[int]) -> dict[int, QueryRow]:
    """What rewrites ask of tables, by their OIDs."""
    if not oids:
        return {}
    listed = ", ".join(str(int(oid)) for oid in oids)
    return {int(row["oid"]): row for row in ask(_SQL.format(oids=listed))}


def copied_bytes(found: QueryRow, new_bytes: float) -> int:
    """What a rewrite makes: the table, its indexes and its TOAST."""
    return round(new_bytes) + (int(found["index_pages"]) + int(found["toast_pages"])) * PAGE_BYTES


def tools_for(
    settings: Mapping[str, str], major: int, found: QueryRow
) -> tuple[list[Tool], dict[Tool, str]]:
    """
    What can rewrite a table there, best first; and why the others cannot.

    Args:
        settings: Of the server.
        major: Its version.
        found: Of `rewriting_facts`.
    """
    from pgheadroom.plan.rewrites import (  # noqa: PLC0415 - loads the advice
        RewritableIndex,
        RewritableTable,
        RewritingServer,
        usable_rewrites,
    )
    from pgheadroom.profile.observed_server import ServerSetting  # noqa: PLC0415

    table = RewritableTable(
        persistence=found["persistence"],
        replica_identity=found["replica_identity"],
        indexes=tuple(RewritableIndex(**each) for each in found["indexes"]),
    )
    if _PLUGINS in settings:  # as `observe` has it (settings.sql): whether pg_squeeze is among them
        named = re.search(r"\bpg_squeeze\b", settings[_PLUGINS])
        settings = {**settings, _PLUGINS: "" if named is None else named[0]}
    server = RewritingServer(
        settings={name: ServerSetting(setting=value) for name, value in settings.items()},
        modules=tuple(found["modules"]),
    )
    wal_level = str(settings.get("wal_level", "replica"))
    return usable_rewrites(table, server, major=major, wal_level=wal_level)


def table_remedy(facts: Facts, row: QueryRow, found: QueryRow, new_bytes: float) -> Remedy:
    """
    The best that the server has for a table.

    Args:
        facts: Of the server.
        row: `schema` and `name`.
        found: Of `rewriting_facts`.
        new_bytes: The table will have, its indexes and TOAST left out.
    """
    from pgheadroom.plan.statements import (  # noqa: PLC0415 - loads the advice
        TRAITS,
        duration,
        rewrite,
        wal_bytes,
    )
    from pgheadroom.plan.values import TableMark, Target  # noqa: PLC0415

    tools, _ = tools_for(facts.settings, facts.major, found)
    tool = tools[0]
    copied = copied_bytes(found, new_bytes)
    seconds, _ = duration(tool, copied)
    traits = TRAITS[tool]
    mark = TableMark(
        schema=row["schema"],
        name=row["name"],
        oid=int(found["oid"]),
        relfilenode=0,
        columns=(),
        indexes=(),
        reloptions={},
    )
    target = Target(
        system_identifier=None,
        database_oid=0,
        database=str(found["database"]),
        server_version=str(facts.major),
        is_superuser=bool(found["is_superuser"]),
    )
    sql, command = rewrite(tool, mark, target)
    text = "Rewrite it." if command is None else f"Rewrite it: {command}"
    if tool == "VACUUM FULL":
        text = "Rewrite it while nobody needs it; pg_repack and pg_squeeze do it beside clients."
    wal = wal_bytes(tool, copied) if found["persistence"] == "permanent" else 0
    return Remedy(
        sql=() if sql is None else (sql,),
        text=f"{text} First see why it came about, or it comes again.",
        lock=f"{traits.lock}: {traits.blocks}",
        cost=f"at most {show_bytes(copied)} of new table and indexes: "
        f"{show_duration(seconds.low)} to {show_duration(seconds.high)} (assumed rates), "
        f"{show_bytes(wal)} of WAL, {show_bytes(copied * traits.disk_factor)} of disk meanwhile",
    )


def index_remedy(row: QueryRow, new_bytes: float) -> Remedy:
    """
    REINDEX CONCURRENTLY.

    It reads the table twice, the second time for what came meanwhile.

    Args:
        row: `schema`, `name`, `table_relpages`, `is_exclusion`, `is_logged`.
        new_bytes: The index will have.
    """
    read = 2 * int(row["table_relpages"]) * PAGE_BYTES
    slow, _, fast = _REINDEX_RATES
    low, high = (max(0.05, (read + new_bytes) / rate) for rate in (fast, slow))
    name = shown_relation(row["schema"], row["name"])
    wal = show_bytes(new_bytes) if row["is_logged"] else "none"
    cost = (
        f"the table is read twice: {show_duration(low)} to {show_duration(high)} (assumed rates), "
        f"{wal} of WAL, {show_bytes(new_bytes)} of disk meanwhile"
    )
    if row["is_exclusion"]:
        return Remedy(
            sql=(f"REINDEX INDEX {name}",),
            text="Build it anew; an exclusion constraint's index cannot be built CONCURRENTLY.",
            lock="SHARE on the table: writers wait; ACCESS EXCLUSIVE on the index: readers that "
            "plan with it wait too",
            cost=cost,
        )
    return Remedy(
        sql=(f"REINDEX INDEX CONCURRENTLY {name}",),
        text="Build it anew. Where it is stopped, an invalid index is left with _ccnew in its "
        "name: drop that.",
        lock="SHARE UPDATE EXCLUSIVE: readers and writers go on; it waits for transactions that "
        "are older",
        cost=cost,
    )

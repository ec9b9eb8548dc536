"""Large tables of which a fifth is dead before autovacuum comes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from pgheadroom.doctor import dead_rows
from pgheadroom.doctor.rule import Facts, QueryRow, Rule, bytes_held
from pgheadroom.doctor.values import Finding, Remedy
from pgheadroom.quoting import called, shown_literal, shown_relation
from pgheadroom.units import PAGE_BYTES, show_bytes

_BYTES_MIN = 10 * 1024**3
_WANTED_BYTES = 1024**3

_SQL = """
SELECT c.oid::int8 AS oid, n.nspname AS schema, c.relname AS name, c.relpages,
       c.reltuples::float8 AS reltuples,
       (SELECT jsonb_object_agg(p.option_name, p.option_value)
        FROM pg_options_to_table(c.reloptions) p) AS reloptions
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'r' AND c.relpages >= 1310720 AND c.reltuples > 0
  AND pg_stat_get_tuples_updated(c.oid) - pg_stat_get_tuples_hot_updated(c.oid)
      + pg_stat_get_tuples_deleted(c.oid) > 0
  AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
"""


def _decide(facts: Facts, rows: Sequence[QueryRow]) -> Iterator[Finding]:
    for row in rows:
        if dead_rows.is_switched_off(facts, row):
            continue  # `autovacuum-off` has it
        rows_of, size = float(row["reltuples"]), int(row["relpages"]) * PAGE_BYTES
        trigger = dead_rows.trigger_rows(facts, row)
        dead = size * trigger / rows_of
        if dead < _BYTES_MIN:
            continue
        scale = max(_WANTED_BYTES / size, 0.001)
        wanted = {"autovacuum_vacuum_scale_factor": f"{scale:.2g}"}
        if dead_rows.trigger_rows(facts, _with(row, wanted)) > 2 * scale * rows_of:
            wanted["autovacuum_vacuum_threshold"] = "50"  # what is set is most of it
        name = shown_relation(row["schema"], row["name"])
        yield RULE.finding(
            "info",
            called(row["schema"], row["name"]),
            f"Autovacuum comes to this table of {show_bytes(size)} when {trigger:,.0f} rows are "
            f"dead, about {show_bytes(dead)}: scans read them, and one run has all of them to do.",
            remedy=Remedy(
                sql=(f"ALTER TABLE {name} SET ({_listed(wanted)})",),
                text=f"Let it come when about {show_bytes(max(_WANTED_BYTES, size / 1000))} are "
                "dead. The work is the same in all but for indexes, which each run reads.",
                lock="SHARE UPDATE EXCLUSIVE, for a moment",
                cost="each run reads the indexes: where they are large, a larger part of the table",
                undo=_undo(name, wanted, row["reloptions"] or {}),
            ),
            price=bytes_held(
                dead,
                "dead rows when autovacuum comes, at the mean of the table's pages",
                basis="estimated",
            ),
            oid=int(row["oid"]),
            size_bytes=size,
            trigger_rows=round(trigger),
            trigger_rows_wanted=round(dead_rows.trigger_rows(facts, _with(row, wanted))),
            dead_bytes=round(dead),
        )


def _with(row: QueryRow, options: Mapping[str, str]) -> QueryRow:
    return {**row, "reloptions": {**(row["reloptions"] or {}), **options}}


def _listed(options: Mapping[str, str]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in options.items())


def _undo(table: str, changed: Iterable[str], own: Mapping[str, str]) -> str:
    """What the table had of its own, it has again."""
    before = {name: shown_literal(own[name]) for name in changed if name in own}
    added = [name for name in changed if name not in own]
    said = [f"ALTER TABLE {table} SET ({_listed(before)})"] if before else []
    said += [f"ALTER TABLE {table} RESET ({', '.join(added)})"] if added else []
    return "; ".join(said)


RULE = Rule(
    id="large-table-trigger",
    question="Of which large tables is much dead before autovacuum comes?",
    book=("B7.25",),
    sql={15: _SQL},
    decide=_decide,
    on_standby=False,
    threshold="10 GiB of dead rows at autovacuum's threshold, by settings and storage parameters, "
    "of a table whose rows are updated (not HOT) or deleted. A fifth of a table of 50 GiB is that.",
    severity="info: whether it hurts depends on who scans the table.",
    price="Bytes of dead rows when autovacuum comes.",
    remedy="A smaller autovacuum_vacuum_scale_factor for the table. Over an interval the twin says "
    "what the table has at both, and how often it is vacuumed.",
    blind="Dead rows that pruning removes before. How fast they come: an insert-only table with a "
    "few updates is told too.",
    link="https://www.postgresql.org/docs/current/routine-vacuuming.html#AUTOVACUUM",
)

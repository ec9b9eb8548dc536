"""Published tables whose updates and deletes fail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgheadroom.doctor.rule import Facts, QueryRow, Rule
from pgheadroom.doctor.values import Finding, Remedy, Severity
from pgheadroom.quoting import called, shown_relation

_STATEMENTS_MAX = 10

# Out of the catalogs themselves: pg_publication_tables opens, and so locks, each table. What is
# updated is a partition, by its own identity, whatever is sent as whose change
# (CheckCmdReplicaIdentity, RelationGetIndexList).
_SQL = """
WITH RECURSIVE published AS (
    SELECT p.oid AS pub, c.oid AS relid
    FROM pg_publication p JOIN pg_class c ON c.relkind IN ('r', 'p')
    WHERE p.puballtables{but}
    UNION
    SELECT r.prpubid, r.prrelid FROM pg_publication_rel r{excepted}
    UNION
    SELECT s.pnpubid, c.oid
    FROM pg_publication_namespace s JOIN pg_class c ON c.relnamespace = s.pnnspid
    UNION
    SELECT p.pub, i.inhrelid
    FROM published p
    JOIN pg_class c ON c.oid = p.relid AND c.relkind = 'p'
    JOIN pg_inherits i ON i.inhparent = c.oid
), bad AS (
    SELECT coalesce(pg_partition_root(c.oid)::oid, c.oid) AS root, c.oid,
           bool_or(p.pubupdate) AS updates, bool_or(p.pubdelete) AS deletes,
           string_agg(DISTINCT p.pubname, ', ' ORDER BY p.pubname) AS publications
    FROM published d
    JOIN pg_publication p ON p.oid = d.pub AND (p.pubupdate OR p.pubdelete)
    JOIN pg_class c ON c.oid = d.relid
    JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind = 'r' AND c.relpersistence = 'p' AND c.oid >= 16384
      AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
      AND c.relreplident <> 'f'
      AND NOT EXISTS (
        SELECT FROM pg_index i
        WHERE i.indrelid = c.oid AND i.indisvalid AND i.indisunique AND i.indimmediate
          AND (c.relreplident = 'd' AND i.indisprimary
               OR c.relreplident = 'i' AND i.indisreplident))
    GROUP BY c.oid
)
SELECT n.nspname AS schema, c.relname AS name, c.relkind = 'p' AS is_partitioned,
       max(b.publications) AS publications,
       bool_or(b.updates) AS updates, bool_or(b.deletes) AS deletes, count(*) AS tables,
       sum(CASE WHEN b.updates THEN pg_stat_get_tuples_updated(b.oid) ELSE 0 END
           + CASE WHEN b.deletes THEN pg_stat_get_tuples_deleted(b.oid) ELSE 0 END)::int8
         AS changes,
       jsonb_agg(jsonb_build_array(ln.nspname, l.relname, l.relreplident) ORDER BY l.oid) AS leaves
FROM bad b
JOIN pg_class c ON c.oid = b.root
JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_class l ON l.oid = b.oid
JOIN pg_namespace ln ON ln.oid = l.relnamespace
GROUP BY n.nspname, c.relname, c.relkind
"""
_IDENTITIES = {"d": "DEFAULT", "n": "NOTHING"}


def _decide(_facts: Facts, rows: Sequence[QueryRow]) -> Iterator[Finding]:
    for row in rows:
        changes = int(row["changes"] or 0)
        severity: Severity = "error" if changes else "info"
        kinds = " and ".join(kind for kind in ("updates", "deletes") if row[kind])
        subject = "The table has"
        if row["is_partitioned"]:
            subject = f"{row['tables']:,} of its partitions have"
        seen = (
            f"{changes:,} such were there since the statistics began."
            if changes
            else "There was none since the statistics began."
        )
        yield RULE.finding(
            severity,
            called(row["schema"], row["name"]),
            f"{subject} no replica identity that holds, and {kinds} are published "
            f"({row['publications']}): its {kinds} fail. {seen}",
            remedy=_remedy(row),
            changes=changes,
            tables=int(row["tables"]),
            publications=row["publications"],
        )


def _remedy(row: QueryRow) -> Remedy:
    leaves = [(shown_relation(schema, name), identity) for schema, name, identity in row["leaves"]]
    text = "Give it a primary key that is not deferrable; or name a unique index (REPLICA IDENTITY "
    text += "USING INDEX). FULL is for today."
    if row["is_partitioned"]:
        text += " A primary key of the partitioned table is one of each partition; a replica "
        text += "identity is set for each partition by itself."
    if len(leaves) > _STATEMENTS_MAX:
        return Remedy(text=text)
    undo = None
    if len(leaves) == 1 and leaves[0][1] in _IDENTITIES:
        undo = f"ALTER TABLE {leaves[0][0]} REPLICA IDENTITY {_IDENTITIES[leaves[0][1]]}"
    return Remedy(
        sql=tuple(f"ALTER TABLE {name} REPLICA IDENTITY FULL" for name, _ in leaves),
        text=text,
        lock="ACCESS EXCLUSIVE, for a moment",
        cost="FULL logs the whole old row of each update and delete, and a subscriber without an "
        "index that fits reads its table for each",
        undo=undo,
    )


RULE = Rule(
    id="published-without-identity",
    question="Do updates of published tables fail?",
    book=("B14.7",),
    sql={
        15: _SQL.replace("{excepted}", "").replace("{but}", ""),
        # ALL TABLES EXCEPT, of a partitioned table with all its partitions.
        19: _SQL.replace(
            "{excepted}", " WHERE NOT coalesce((to_jsonb(r) ->> 'prexcept')::bool, false)"
        ).replace(
            "{but}",
            " AND NOT EXISTS (SELECT FROM pg_publication_rel r WHERE r.prpubid = p.oid"
            " AND r.prrelid IN (c.oid, pg_partition_root(c.oid)))",
        ),
    },
    decide=_decide,
    on_standby=False,
    threshold="A table, or a partition of one, is in a publication that has updates or deletes, "
    "and it is not FULL, nor has it a valid index for its identity that is not deferrable.",
    severity="error where rows of it were ever updated or deleted, for then somebody does; else "
    "info: a table that is only filled loses nothing.",
    price="no price: statements that fail are not counted",
    remedy="A primary key; or a unique index as identity; FULL for today.",
    blind="Statistics that were reset.",
    link="https://www.postgresql.org/docs/current/logical-replication-publication.html",
)

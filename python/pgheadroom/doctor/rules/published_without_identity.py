"""Published tables whose updates and deletes fail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgheadroom.doctor.rule import Facts, QueryRow, Rule
from pgheadroom.doctor.values import Finding, Remedy, Severity
from pgheadroom.quoting import called, shown_relation

_STATEMENTS_MAX = 10

# Out of the catalogs themselves: pg_publication_tables opens, and so locks, each table. What is
# updated is a partition, by its own identity, whatever is sent as whose change
# (CheckCmdReplicaIdentity, RelationGetIndexList). Filter and column list are those of the topmost
# ancestor in the publication where changes go by the root (pub_rf_contains_invalid_column,
# pub_contains_invalid_column); columns are compared by name, for partitions number their own.
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
), leaves AS (
    SELECT c.oid, c.relreplident, p.oid AS pub, p.pubname, p.pubupdate, p.pubdelete,
           {gencols} AS gencols,
           coalesce((SELECT a.relid::oid FROM pg_partition_ancestors(c.oid)
                       WITH ORDINALITY a (relid, place)
                     WHERE p.pubviaroot AND c.relispartition
                       AND EXISTS (SELECT FROM published o
                                   WHERE o.pub = p.oid AND o.relid = a.relid)
                     ORDER BY a.place DESC LIMIT 1), c.oid) AS as_relid,
           (SELECT (i.indkey::int2[])[0:i.indnkeyatts - 1] FROM pg_index i
            WHERE i.indrelid = c.oid AND i.indisvalid AND i.indisunique AND i.indimmediate
              AND (c.relreplident = 'd' AND i.indisprimary
                   OR c.relreplident = 'i' AND i.indisreplident)) AS identity
    FROM published d
    JOIN pg_publication p ON p.oid = d.pub AND (p.pubupdate OR p.pubdelete)
    JOIN pg_class c ON c.oid = d.relid
    JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind = 'r' AND c.relpersistence = 'p' AND c.oid >= 16384
      AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
), judged AS (
    SELECT l.*, r.prattrs IS NOT NULL AS has_list,
           l.relreplident <> 'f' AND l.identity IS NULL AS lacks_identity,
           CASE WHEN l.relreplident <> 'f' AND l.identity IS NOT NULL THEN
             (SELECT string_agg(DISTINCT f.attname, ', ' ORDER BY f.attname)
              FROM regexp_matches(r.prqual::text, ':varattno ([0-9]+) ', 'g') m (found)
              JOIN pg_attribute f ON f.attrelid = l.as_relid AND f.attnum = m.found[1]::int2
              JOIN pg_attribute o ON o.attrelid = l.oid AND o.attname = f.attname
              WHERE o.attnum <> ALL (l.identity)) END AS filtered_by,
           CASE WHEN r.prattrs IS NULL THEN NULL
             WHEN l.relreplident = 'f' THEN '*'
             ELSE (SELECT string_agg(o.attname, ', ' ORDER BY o.attnum)
                   FROM pg_attribute o
                   LEFT JOIN pg_attribute s ON s.attrelid = l.as_relid AND s.attname = o.attname
                   WHERE o.attrelid = l.oid AND o.attnum = ANY (l.identity)
                     AND (s.attnum = ANY (r.prattrs)) IS NOT TRUE) END AS not_listed,
           (SELECT string_agg(o.attname, ', ' ORDER BY o.attnum) FROM pg_attribute o
            WHERE o.attrelid = l.oid AND o.attgenerated <> '' AND NOT o.attisdropped
              AND (l.relreplident = 'f' OR o.attnum = ANY (l.identity) AND r.prattrs IS NULL)
              AND (o.attgenerated <> 's' OR l.gencols <> 's') AND l.gencols <> '') AS not_generated,
           EXISTS (SELECT FROM pg_attribute o
                   WHERE o.attrelid = l.oid AND o.attgenerated <> '' AND NOT o.attisdropped
                     AND l.gencols <> ''
                     AND (o.attgenerated <> 's' OR l.gencols <> 's')) AS hides_generated
    FROM leaves l
    LEFT JOIN pg_publication_rel r ON r.prpubid = l.pub AND r.prrelid = l.as_relid
), bad AS (
    SELECT coalesce(pg_partition_root(j.oid)::oid, j.oid) AS root, j.oid, j.relreplident,
           bool_or(j.pubupdate) AS updates, bool_or(j.pubdelete) AS deletes,
           bool_or(j.lacks_identity) AS lacks_identity,
           bool_or(j.filtered_by IS NOT NULL) AS is_filtered,
           bool_or(coalesce(j.not_listed, j.not_generated) IS NOT NULL) AS is_unlisted,
           (SELECT bool_or(o.has_list OR o.hides_generated) FROM judged o WHERE o.oid = j.oid)
             AS forbids_full,
           string_agg(DISTINCT j.pubname, ', ' ORDER BY j.pubname) AS publications,
           string_agg(DISTINCT CASE
             WHEN j.lacks_identity THEN NULL
             WHEN j.filtered_by IS NOT NULL
             THEN 'the filter of ' || j.pubname || ' asks for ' || j.filtered_by
                  || ', which the replica identity has not'
             WHEN j.not_listed = '*'
             THEN j.pubname || ' has a list of columns, which REPLICA IDENTITY FULL does not allow'
             WHEN j.not_listed IS NOT NULL
             THEN 'the list of columns of ' || j.pubname || ' lacks ' || j.not_listed
                  || ', which the replica identity has'
             ELSE j.pubname || ' does not publish ' || j.not_generated
                  || ', generated, which the replica identity has' END, '; ') AS why
    FROM judged j
    WHERE j.lacks_identity OR coalesce(j.filtered_by, j.not_listed, j.not_generated) IS NOT NULL
    GROUP BY j.oid, j.relreplident
)
SELECT n.nspname AS schema, c.relname AS name, c.relkind = 'p' AS is_partitioned,
       max(b.publications) AS publications, max(b.why) AS why,
       bool_or(b.lacks_identity) AS lacks_identity, bool_or(b.is_filtered) AS is_filtered,
       bool_or(b.is_unlisted) AS is_unlisted, bool_or(b.forbids_full) AS forbids_full,
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
# Before 18 generated columns of the identity are not asked for; from 18 on its publication says
# which it sends (pub_contains_invalid_column).
_GENCOLS = "to_jsonb(p) ->> 'pubgencols'"


def _decide(_facts: Facts, rows: Sequence[QueryRow]) -> Iterator[Finding]:
    for row in rows:
        changes = int(row["changes"] or 0)
        severity: Severity = "error" if changes else "info"
        kinds = " and ".join(kind for kind in ("updates", "deletes") if row[kind])
        seen = (
            f"{changes:,} such were there since the statistics began."
            if changes
            else "There was none since the statistics began."
        )
        yield RULE.finding(
            severity,
            called(row["schema"], row["name"]),
            f"{_why(row, kinds)}: its {kinds} fail. {seen}",
            remedy=_remedy(row),
            changes=changes,
            tables=int(row["tables"]),
            publications=row["publications"],
        )


def _why(row: QueryRow, kinds: str) -> str:
    parts = []
    if row["lacks_identity"]:
        subject = "The table has"
        if row["is_partitioned"]:
            subject = f"{row['tables']:,} of its partitions have"
        parts.append(
            f"{subject} no replica identity that holds, and {kinds} are published "
            f"({row['publications']})"
        )
    if row["why"]:
        parts.append(row["why"] if parts else row["why"][0].upper() + row["why"][1:])
    return "; ".join(parts)


def _remedy(row: QueryRow) -> Remedy:
    texts = []
    if row["lacks_identity"]:
        texts.append(
            "Give it a primary key that is not deferrable; or name a unique index (REPLICA "
            "IDENTITY USING INDEX)."
        )
        if row["is_partitioned"]:
            texts.append(
                "A primary key of the partitioned table is one of each partition; a replica "
                "identity is set for each partition by itself."
            )
    if row["is_filtered"]:
        texts.append(
            "Filter by columns of the replica identity alone, or name a unique index with those "
            "of the filter as identity."
        )
    if row["is_unlisted"]:
        texts.append(
            "Publish all columns of the replica identity (ALTER PUBLICATION ... SET TABLE names "
            "all tables and columns anew), or take an identity of columns that are published."
        )
    leaves = [(shown_relation(schema, name), identity) for schema, name, identity in row["leaves"]]
    if row["forbids_full"] or row["is_unlisted"]:
        texts.append("REPLICA IDENTITY FULL is refused together with what is not published.")
        return Remedy(text=" ".join(texts))
    texts.append("FULL is for today.")
    if len(leaves) > _STATEMENTS_MAX:
        return Remedy(text=" ".join(texts))
    undo = None
    if len(leaves) == 1 and leaves[0][1] in _IDENTITIES:
        undo = f"ALTER TABLE {leaves[0][0]} REPLICA IDENTITY {_IDENTITIES[leaves[0][1]]}"
    return Remedy(
        sql=tuple(f"ALTER TABLE {name} REPLICA IDENTITY FULL" for name, _ in leaves),
        text=" ".join(texts),
        lock="ACCESS EXCLUSIVE, for a moment",
        cost="FULL logs the whole old row of each update and delete, and a subscriber without an "
        "index that fits reads its table for each",
        undo=undo,
    )


def _text(*, gencols: str, excepted: str = "", but: str = "") -> str:
    return _SQL.format(gencols=gencols, excepted=excepted, but=but)


RULE = Rule(
    id="published-without-identity",
    question="Do updates of published tables fail?",
    book=("B14.7",),
    sql={
        15: _text(gencols="''::text"),
        18: _text(gencols=_GENCOLS),
        # ALL TABLES EXCEPT, of a partitioned table with all its partitions.
        19: _text(
            gencols=_GENCOLS,
            excepted=" WHERE NOT coalesce((to_jsonb(r) ->> 'prexcept')::bool, false)",
            but=" AND NOT EXISTS (SELECT FROM pg_publication_rel r WHERE r.prpubid = p.oid"
            " AND r.prrelid IN (c.oid, pg_partition_root(c.oid)))",
        ),
    },
    decide=_decide,
    on_standby=False,
    threshold="A table, or a partition of one, is in a publication that has updates or deletes, "
    "and it is not FULL, nor has it a valid index for its identity that is not deferrable; or the "
    "publication's filter (WHERE) asks for a column that the identity has not; or it does not "
    "send one that the identity has, by its list of columns or (from 18 on) as a generated one.",
    severity="error where rows of it were ever updated or deleted, for then somebody does; else "
    "info: a table that is only filled loses nothing.",
    price="no price: statements that fail are not counted",
    remedy="A primary key; or a unique index as identity; FULL for today.",
    blind="Statistics that were reset. Updates from before the publication.",
    link="https://www.postgresql.org/docs/current/logical-replication-publication.html",
)

"""Foreign keys whose child has to be read whole when a parent's row goes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pgheadroom.doctor.rule import Facts, QueryRow, Rule, bytes_a_day, bytes_held
from pgheadroom.doctor.values import Finding, Remedy
from pgheadroom.quoting import called, shown_identifier, shown_relation
from pgheadroom.units import PAGE_BYTES, show_bytes

_PAGES_MIN = 128
_WARN_BYTES_A_DAY = 10 * 1024**3

# By pg_inherits: pg_partition_tree locks every partition.
_SQL = """
WITH RECURSIVE tree AS (
    SELECT c.oid AS root, c.oid AS relid, c.relkind
    FROM pg_class c
    WHERE c.relkind = 'p'
      AND c.oid IN (SELECT unnest(ARRAY[k.conrelid, k.confrelid]) FROM pg_constraint k
                    WHERE k.contype = 'f' AND k.conparentid = 0)
    UNION ALL
    SELECT t.root, l.oid, l.relkind
    FROM tree t
    JOIN pg_inherits i ON i.inhparent = t.relid
    JOIN pg_class l ON l.oid = i.inhrelid
), whole AS (
    SELECT t.root, sum(l.relpages)::int8 AS relpages,
           sum(pg_stat_get_tuples_deleted(t.relid))::int8 AS n_tup_del
    FROM tree t JOIN pg_class l ON l.oid = t.relid WHERE t.relkind <> 'p' GROUP BY t.root
)
SELECT k.oid::int8 AS oid, k.conname AS name, n.nspname AS schema, c.relname AS child,
       c.oid::int8 AS child_oid, k.conkey::int4[] AS key,
       pn.nspname AS parent_schema, p.relname AS parent, c.relkind = 'p' AS is_partitioned,
       (SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY u.place)
        FROM unnest(k.conkey) WITH ORDINALITY u(attnum, place)
        JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = u.attnum) AS columns,
       CASE c.relkind WHEN 'p' THEN (SELECT w.relpages FROM whole w WHERE w.root = c.oid)
       ELSE c.relpages END::int8 AS relpages,
       CASE p.relkind WHEN 'p' THEN (SELECT w.n_tup_del FROM whole w WHERE w.root = p.oid)
       ELSE pg_stat_get_tuples_deleted(p.oid) END::int8 AS n_tup_del,
       (k.conname || '_idx')::name AS index_name,
       EXISTS (SELECT FROM pg_class x
               WHERE x.relnamespace = c.relnamespace AND x.relname = (k.conname || '_idx')::name)
         AS is_taken,
       -- Its build failed for no row, so it ends well when it is built again.
       (SELECT ic.relname
        FROM pg_index i
        JOIN pg_class ic ON ic.oid = i.indexrelid
        JOIN pg_am am ON am.oid = ic.relam
        WHERE i.indrelid = k.conrelid AND NOT i.indisvalid AND NOT i.indisunique
          AND NOT i.indisexclusion AND ic.relkind = 'i' AND NOT ic.relispartition
          AND am.amname = 'btree' AND i.indpred IS NULL AND i.indnkeyatts >= cardinality(k.conkey)
          AND (i.indkey::int2[])[0:cardinality(k.conkey) - 1] @> k.conkey
        ORDER BY i.indexrelid LIMIT 1) AS unfinished
FROM pg_constraint k
JOIN pg_class c ON c.oid = k.conrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_class p ON p.oid = k.confrelid
JOIN pg_namespace pn ON pn.oid = p.relnamespace
WHERE k.contype = 'f' AND k.conparentid = 0{enforced}
  AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
  -- The first columns of a usable index are the key's, in any order. A predicate that only leaves
  -- NULLs of these out lets it be used, since a child that refers to a parent has none.
  AND NOT EXISTS (
    SELECT FROM pg_index i
    JOIN pg_class ic ON ic.oid = i.indexrelid
    JOIN pg_am am ON am.oid = ic.relam
    WHERE i.indrelid = k.conrelid AND i.indisvalid
      AND (am.amname = 'btree' OR am.amname = 'hash' AND cardinality(k.conkey) = 1{period})
      AND (i.indpred IS NULL
           OR i.indpred::text !~ '\\{{(?!BOOLEXPR :boolop and |NULLTEST |VAR )'
              AND i.indpred::text !~ ':nulltesttype 0 '
              AND i.indpred::text ~ ':nulltesttype 1 '
              AND NOT EXISTS (
                SELECT FROM regexp_matches(i.indpred::text, ':varattno (-?\\d+) ', 'g') v
                WHERE v[1]::int2 <> ALL (k.conkey)))
      AND i.indnkeyatts >= cardinality(k.conkey)
      AND (i.indkey::int2[])[0:cardinality(k.conkey) - 1] @> k.conkey)
ORDER BY k.oid
"""


def _decide(facts: Facts, rows: Sequence[QueryRow]) -> Iterator[Finding]:
    named: set[tuple[str, str]] = set()  # of two keys with one name only one index can have it
    found = [row for row in rows if int(row["relpages"] or 0) >= _PAGES_MIN]
    served = _served(found)
    for row in found:
        pages = int(row["relpages"])
        size_bytes = pages * PAGE_BYTES
        deletes = int(row["n_tup_del"] or 0)
        read_a_day = facts.a_day(row, float(deletes) * size_bytes)
        child = called(row["schema"], row["child"])
        parent = called(row["parent_schema"], row["parent"])
        price = bytes_held(
            size_bytes, "read for one deleted row of the parent (relpages)", basis="estimated"
        )
        if read_a_day:
            price = bytes_a_day(
                read_a_day,
                "the child's pages (relpages) for each row deleted from the parent (n_tup_del)",
            )
        is_costly = facts.judges_rates and (read_a_day or 0.0) >= _WARN_BYTES_A_DAY
        name = (str(row["schema"]), str(row["index_name"]))
        yield RULE.finding(
            "warning" if is_costly else "info",
            f"{child}.{row['name']}",
            f"Nothing indexes ({row['columns']}) of {child}: each row that is deleted from "
            f"{parent}, or whose key changes, reads up to {pages:,} pages "
            f"({show_bytes(size_bytes)}); {deletes:,} were deleted {facts.over(row)}.",
            remedy=_other_index(row, served)
            or _remedy(row, is_taken=row["is_taken"] or name in named),
            price=price,
            constraint_oid=int(row["oid"]),
            relpages=pages,
            deletes=deletes,
            read_bytes_per_delete=size_bytes,
            read_bytes_a_day=read_a_day,
        )
        if int(row["oid"]) not in served:
            named.add(name)


def _served(rows: Sequence[QueryRow]) -> Mapping[int, str]:
    """Keys for which the index of another one begins with their columns, with that one's name."""
    wanted: list[QueryRow] = []
    served: dict[int, str] = {}
    for row in sorted(rows, key=lambda one: -len(one["key"])):  # the widest first
        columns = set(row["key"])
        for one in wanted:
            if one["child_oid"] == row["child_oid"] and set(one["key"][: len(columns)]) == columns:
                served[int(row["oid"])] = str(one["name"])
                break
        else:
            if row["unfinished"] is None:
                wanted.append(row)
    return served


def _other_index(row: QueryRow, served: Mapping[int, str]) -> Remedy | None:
    """Where the index that it needs is made for another reason: one is enough."""
    if row["unfinished"] is not None:
        return Remedy(
            text=f"{row['unfinished']} begins with these columns and is invalid: build that again "
            "(`invalid-index`)."
        )
    if int(row["oid"]) in served:
        return Remedy(text=f"The index for {served[int(row['oid'])]} serves it too.")
    return None


def _remedy(row: QueryRow, *, is_taken: bool) -> Remedy:
    table = shown_relation(row["schema"], row["child"])
    # A name of its own, so that the undo can say it.
    name, undo = "", None
    if not is_taken:
        name = f" {shown_identifier(row['index_name'])}"
        undo = shown_relation(row["schema"], row["index_name"])
    if row["is_partitioned"]:
        return Remedy(
            sql=(f"CREATE INDEX{name} ON {table} ({row['columns']})",),
            text="On a large table: CREATE INDEX CONCURRENTLY on each partition first, then this "
            "takes them in.",
            lock="SHARE: writers wait",
            cost="a scan of the table; then an entry for each insert and update that is not HOT",
            undo=None if undo is None else f"DROP INDEX {undo}",
        )
    return Remedy(
        sql=(f"CREATE INDEX CONCURRENTLY{name} ON {table} ({row['columns']})",),
        text="Index the columns, unless rows of the parent are never deleted: an index costs too.",
        lock="SHARE UPDATE EXCLUSIVE: readers and writers go on",
        cost="two scans of the table; then an entry for each insert and update that is not HOT; "
        "HOT ends only for updates that change these columns",
        undo=None if undo is None else f"DROP INDEX CONCURRENTLY {undo}",
    )


RULE = Rule(
    id="foreign-key-without-index",
    question="Which foreign keys make a delete of the parent read the whole child?",
    book=("B10.39",),
    sql={
        15: _SQL.format(enforced="", period=""),
        # One that is not enforced looks for nothing; periods are looked for by overlaps.
        18: _SQL.format(
            enforced=" AND k.conenforced", period=" OR am.amname = 'gist' AND k.conperiod"
        ),
    },
    decide=_decide,
    counters=("n_tup_del",),
    key=("oid",),
    threshold="The child has at least 128 pages (1 MiB): what is smaller is read within a "
    "millisecond.",
    severity="warning where the parent's deletes read 10 GiB a day or more (a scan reads about a "
    "gigabyte a second out of memory), else info: it costs only what is deleted.",
    price="Bytes read: the child's pages for each row deleted from the parent. A scan ends at the "
    "first row that still refers, so it is the most.",
    remedy="CREATE INDEX CONCURRENTLY on the referring columns, one for all keys that it serves.",
    blind="Changes of the parent's key are not counted apart from other updates. relpages is of "
    "the last VACUUM or ANALYZE; a table that was never vacuumed nor analyzed has none.",
    link="https://www.postgresql.org/docs/current/ddl-constraints.html#DDL-CONSTRAINTS-FK",
)

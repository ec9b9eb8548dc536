"""
Large values that updates write anew, whole.

An update that does not change a value out of line keeps it: the new row has the same pointer
(`toast_tuple_init`, src/backend/access/table/toast_helper.c). One that changes any part of it, or
that makes an equal one of it (`j || '{}'`), writes all its chunks and deletes the old ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgheadroom.doctor.rule import Facts, QueryRow, Rule, bytes_a_day
from pgheadroom.doctor.values import Finding, Remedy
from pgheadroom.quoting import called
from pgheadroom.units import show_bytes

_BYTES_A_DAY_MIN = 100 * 1024**2
_WARN_BYTES_A_DAY = 10 * 1024**3
_DELETES_MAX = 0.01  # of the updates: chunks of rows that were deleted are counted as well
_CHUNK_BYTES = 1996  # TOAST_MAX_CHUNK_SIZE

_SQL = """
SELECT c.oid::int8 AS oid, n.nspname AS schema, c.relname AS name,
       pg_stat_get_tuples_updated(c.oid) AS n_tup_upd,
       pg_stat_get_tuples_deleted(c.oid) AS n_tup_del,
       pg_stat_get_tuples_inserted(c.reltoastrelid) AS chunks_written,
       pg_stat_get_tuples_deleted(c.reltoastrelid) AS chunks_deleted
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'r' AND c.reltoastrelid <> 0 AND c.relpersistence = 'p'
  AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
"""


def _decide(facts: Facts, rows: Sequence[QueryRow]) -> Iterator[Finding]:
    for row in rows:
        updates, deletes = int(row["n_tup_upd"]), int(row["n_tup_del"])
        if not updates or deletes > _DELETES_MAX * updates:
            continue
        # A chunk that went was one of a value that came anew.
        chunks = min(int(row["chunks_deleted"]), int(row["chunks_written"]))
        a_day = facts.a_day(row, float(chunks) * _CHUNK_BYTES)
        if a_day is None or a_day < _BYTES_A_DAY_MIN:
            continue
        yield RULE.finding(
            "warning" if a_day >= _WARN_BYTES_A_DAY else "info",
            called(row["schema"], row["name"]),
            f"{updates:,} updates {facts.over(row)} wrote {chunks:,} chunks of values out of line "
            f"anew, up to {show_bytes(a_day)} a day: a value is written whole where any part of it "
            "changes.",
            remedy=Remedy(
                text="Keep what changes often in columns or rows of its own, apart from what is "
                "large; and see that statements do not assign values that are equal "
                "(`SET j = j || ...` makes a new one each time).",
            ),
            price=bytes_a_day(
                a_day,
                "chunks that were replaced, 1,996 bytes each at most; each is logged, with an "
                "entry of the TOAST index and the old one's delete",
            ),
            n_tup_upd=updates,
            chunks=chunks,
        )


RULE = Rule(
    id="toast-rewritten",
    question="On which tables do updates write large values anew?",
    book=(),
    sql={15: _SQL},
    decide=_decide,
    is_rate=True,
    counters=("n_tup_upd", "n_tup_del", "chunks_written", "chunks_deleted"),
    key=("oid",),
    on_standby=False,
    threshold="100 MiB of chunks a day that replace others, on tables where at most one row is "
    "deleted for a hundred updates, so that nothing else deletes chunks: less is not worth "
    "another column. An update that leaves a value out of line as it is writes none.",
    severity="warning from 10 GiB a day on, else info.",
    price="Bytes of chunks that were replaced a day, at most.",
    remedy="What changes often apart from what is large.",
    blind="Tables whose rows are deleted too. Values that lie compressed in their row.",
    link="https://www.postgresql.org/docs/current/storage-toast.html",
)

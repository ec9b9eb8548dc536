"""Which statements' rows are counted as whose, out of what a database said, without one."""

from __future__ import annotations

from typing import Any

from pgheadroom.observe import find_classes
from pgheadroom.observe.classes import Classes
from pgheadroom.sources.recording import RecordedAnswer, Recording

COLUMNS = {"jobs": ("id", "queue_id", "locked_by"), "queues": ("id", "locked_by")}
# As graphile-worker 0.17 takes a job and its queue, shortened: both updates are in one statement.
TAKES = (
    "WITH j AS (SELECT queue_id, id FROM jobs WHERE locked_by IS NULL ORDER BY id LIMIT $2 "
    "FOR UPDATE SKIP LOCKED), q AS (UPDATE queues SET locked_by = $1 FROM j "
    "WHERE queues.id = j.queue_id) "
    "UPDATE jobs SET locked_by = $1 FROM j WHERE jobs.id = j.id RETURNING *"
)


def _classes(*counted: tuple[str, int, int]) -> Classes:
    """Of statements, each with its calls and rows inside the interval."""
    oids = {name: 10 * place for place, name in enumerate(COLUMNS, start=1)}
    counters = {"wal_bytes": 0, "wal_fpi": 0}
    identities = [{"userid": 1, "queryid": n, "toplevel": True} for n in range(len(counted))]
    lines: list[tuple[str, str, list[dict[str, Any]]]] = [
        ("tables", "shape", [{"oid": o, "schema": "public", "name": n} for n, o in oids.items()]),
        (
            "columns",
            "shape",
            [
                {"oid": oids[table], "name": name, "attnum": number, "is_dropped": False}
                for table, names in COLUMNS.items()
                for number, name in enumerate(names, start=1)
            ],
        ),
        ("statement_counters", "start", []),
        (
            "statement_counters",
            "end",
            [
                identity | counters | {"calls": calls, "rows": rows}
                for identity, (_, calls, rows) in zip(identities, counted, strict=True)
            ],
        ),
        (
            "statement_texts",
            "end",
            [
                identity | {"query": text, "is_hidden": False}
                for identity, (text, _, _) in zip(identities, counted, strict=True)
            ],
        ),
    ]
    answers = (
        RecordedAnswer(query=query, moment=moment, rows=tuple(rows))
        for query, moment, rows in lines
    )
    return find_classes(Recording(tuple(answers)), [], [])


def test_the_outermost_update_has_the_rows_of_the_statement() -> None:
    """
    Four of five polls of a queue find no job, and a poll is no update.

    The update of graphile-worker's jobs stands beside one of its queues, in a WITH: neither had
    rows, and both went by calls.
    """
    found = _classes((TAKES, 40_000, 9_800))
    assert [one.rows for one in found.by_table[10]] == [9_800]
    assert [one.rows for one in found.by_table[20]] == [None]
    # Bytes of the write-ahead log are of both.
    assert {one.wal_bytes for one in (*found.by_table[10], *found.by_table[20])} == {None}


def test_what_stands_in_a_with_has_no_rows() -> None:
    """Those of a statement are its SELECT's."""
    text = "WITH u AS (UPDATE jobs SET locked_by = $1 RETURNING id) SELECT count(*) FROM u"
    assert [one.rows for one in _classes((text, 100, 100)).by_table[10]] == [None]

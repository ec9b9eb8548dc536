"""
The log of a running server by its own pg_walinspect, where its files may not be read.

Managed servers grant the extension's functions and no file. From 16 on `pg_get_wal_block_info` has
the length of each block's data and image, and `pg_get_wal_records_info` what has no block: the same
sums by relation and cause as files give, but for the memos, which look into records. 15 has the
record as a whole, and its blocks as text: there a record with several blocks counts with the first
one but for images and headers, which is said.

Source: GetWALBlockInfo, GetWALRecordInfo, contrib/pg_walinspect/pg_walinspect.c;
XLogRecordAssemble, src/backend/access/transam/xloginsert.c, for what a block's header takes
(REL_15_STABLE to REL_18_STABLE).
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pgheadroom
from pgheadroom import _core
from pgheadroom.errors import UnsupportedServer
from pgheadroom.quoting import identifier
from pgheadroom.wal.names import Names
from pgheadroom.wal.reading import (
    named_relation,
    nameless_note,
    not_asked_notes,
    over_all,
    parsed_position,
    shown_lsn,
)
from pgheadroom.wal.values import Count, Gap, RecordType, RelationWal, Total, WalStats

BLOCKS = "pg_get_wal_block_info(pg_lsn,pg_lsn,boolean)"
RECORDS = "pg_get_wal_records_info(pg_lsn,pg_lsn)"
BLOCKS_FROM_MAJOR = 16

CHUNK_BYTES = 16 * 1024**2
"""Of the log in one query: what a server sorts in memory. Arbitrary."""

_EVERY_S = 1.0
_PAGE_BYTES = 8192

_SCHEMA = """
SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
 WHERE e.extname = 'pg_walinspect'
"""
_MAY = "SELECT has_function_privilege(%s, 'EXECUTE')"

# A header takes 4 bytes, 4 of the block's number, 12 where the relation is not that of the block
# before, 5 with an image and 2 more where that is compressed and has a hole.
_BY_BLOCK = """
WITH blocks AS MATERIALIZED (
    SELECT start_lsn, block_id, reltablespace, reldatabase, relfilenode, relforknumber,
           resource_manager, record_type, record_length, block_data_length AS data,
           CASE WHEN block_fpi_info IS NOT NULL THEN block_fpi_length END AS image,
           block_fpi_info AS how,
           8 + CASE WHEN (reltablespace, reldatabase, relfilenode) = (
                              lag(reltablespace) OVER record, lag(reldatabase) OVER record,
                              lag(relfilenode) OVER record) THEN 0 ELSE 12 END
             + CASE WHEN block_fpi_info IS NULL THEN 0
                    WHEN block_fpi_info && '{{COMPRESS_PGLZ,COMPRESS_LZ4,COMPRESS_ZSTD}}'
                         AND 'HAS_HOLE' = ANY (block_fpi_info) THEN 7 ELSE 5 END AS header,
           row_number() OVER record AS place
      FROM {schema}.pg_get_wal_block_info(%(start)s::pg_lsn, %(end)s::pg_lsn, false)
    WINDOW record AS (PARTITION BY start_lsn ORDER BY block_id)
), whole AS (
    SELECT start_lsn,
           sum(coalesce(image, 0) + CASE WHEN place > 1 THEN header + coalesce(data, 0) ELSE 0 END)
               AS of_others,
           bool_or(place > 1 AND relforknumber = 0) AS has_second_page
      FROM blocks GROUP BY start_lsn
)
SELECT reltablespace::int8, reldatabase::int8, relfilenode::int8, resource_manager, record_type,
       has_second_page, CASE WHEN image IS NULL THEN NULL ELSE least(block_id, 3) END,
       image IS NOT NULL AND NOT 'APPLY' = ANY (how),
       count(*) FILTER (WHERE place = 1),
       sum(CASE WHEN place = 1 THEN record_length - of_others
                ELSE header + coalesce(data, 0) END)::int8,
       count(image), coalesce(sum(image), 0)::int8
  FROM blocks JOIN whole USING (start_lsn)
 GROUP BY 1, 2, 3, 4, 5, 6, 7, 8
"""
_WITHOUT_BLOCK = """
SELECT resource_manager, record_type, count(*), sum(record_length)::int8
  FROM {schema}.pg_get_wal_records_info(%(start)s::pg_lsn, %(end)s::pg_lsn)
 WHERE coalesce(block_ref, '') = '' GROUP BY 1, 2
"""
_BY_TEXT = r"""
SELECT resource_manager, record_type, regexp_replace(block_ref, ' blk \d+', '', 'g'), count(*),
       sum(record_length)::int8
  FROM {schema}.pg_get_wal_records_info(%(start)s::pg_lsn, %(end)s::pg_lsn)
 WHERE coalesce(block_ref, '') <> '' GROUP BY 1, 2, 3
"""
_REACHED = """
SELECT min(start_lsn)::text, max(end_lsn)::text
  FROM {schema}.pg_get_wal_records_info(%(start)s::pg_lsn, %(end)s::pg_lsn)
"""
_BLOCK = re.compile(
    r"blkref #(?P<id>\d+): rel (?P<rel>\d+/\d+/\d+)(?: fork (?P<fork>\w+))?"
    r"(?P<image> \(FPW(?P<compared> for WAL verification)?\)(?:; hole: offset: \d+, length: "
    r"(?P<hole>\d+)(?:, compression saved: (?P<saved>\d+))?)?)?"
)

_Relation = tuple[int, int, int] | None
_SECOND = "newpage_update"


@dataclass
class _Sums:
    """Of one relation."""

    records: int = 0
    bytes: int = 0
    fpi: int = 0
    fpi_bytes: int = 0
    causes: dict[str, Count] = field(default_factory=dict)

    def add(self, cause: str, records: int, length: int) -> None:
        self.records += records
        self.bytes += length
        known = self.causes.get(cause, Count(records=0, bytes=0))
        self.causes[cause] = Count(records=known.records + records, bytes=known.bytes + length)

    def add_images(self, cause: str, images: int, length: int) -> None:
        self.add(cause, 0, length)
        self.fpi += images
        self.fpi_bytes += length


def schema_of(connection: Any) -> str | None:
    """Where the extension is in this database; None where it is not."""
    found = connection.execute(_SCHEMA).fetchone()
    return None if found is None else identifier(found[0])


def missing(connection: Any, schema: str) -> list[str]:
    """Functions that the role may not call."""
    names = [RECORDS]
    if connection.info.server_version // 10000 >= BLOCKS_FROM_MAJOR:
        names.append(BLOCKS)
    wanted = [f"{schema}.{name}" for name in names]
    return [name for name in wanted if not connection.execute(_MAY, (name,)).fetchone()[0]]


def inspect(
    connection: Any,
    schema: str,
    flushed: Callable[[], int],
    *,
    begin: int,
    seconds: float,
    wait: Callable[[float], bool],
    names: Callable[[], Names],
) -> WalStats:
    """
    Sum what the server flushes in an interval.

    Args:
        connection: A read-only session.
        schema: Of the extension.
        flushed: Up to where the log is flushed, on a standby replayed.
        begin: The same, when the interval began.
        seconds: How long.
        wait: Waits so long; true to end before the interval is over.
        names: Says what relations are called, asked when the interval is over.
    """
    found = _Inspection(connection, schema, begin)
    until = time.monotonic() + seconds
    is_over = False
    while not is_over:
        left = until - time.monotonic()
        is_over = left <= 0 or wait(min(left, _EVERY_S))
        found.go_on(flushed())
    return found.stats(names())


class _Inspection:
    def __init__(self, connection: Any, schema: str, begin: int) -> None:
        self._connection, self._schema = connection, schema
        self._major = connection.info.server_version // 10000
        self._kinds = {(rmgr, kind): causes for rmgr, kind, *causes in _core.wal_kinds(self._major)}
        if not self._kinds:
            raise UnsupportedServer(
                f"the log of PostgreSQL {self._major} is not read: 15 to 19 are"
            )
        self._begin = self._at = begin
        self._first: int | None = None
        self._relations: dict[_Relation, _Sums] = {}
        self._types: dict[tuple[str, str], list[int]] = {}
        self._gaps: list[Gap] = []
        self._several = 0
        row = connection.execute(
            "SELECT pg_size_bytes(current_setting('wal_segment_size'))"
        ).fetchone()
        self._segment_bytes = int(row[0])

    def go_on(self, flushed: int) -> None:
        """Up to a position."""
        import psycopg  # noqa: PLC0415 - help does without

        while self._at < flushed:
            end = min(self._at + CHUNK_BYTES, flushed)
            try:
                reached = self._reach(end)
            except psycopg.DatabaseError as error:
                if self._connection.closed:
                    raise
                reached = self._over_hole(end, str(error))
            if reached is None:
                if end == flushed:
                    return
                # A record that is longer than a chunk: with the next one.
                reached = self._longer(flushed)
                if reached is None:
                    return
            self._at = reached

    def _longer(self, flushed: int) -> int | None:
        end = self._at + CHUNK_BYTES
        while end < flushed:
            end = min(end + 4 * CHUNK_BYTES, flushed)
            reached = self._reach(end)
            if reached is not None:
                return reached
        return None

    def _reach(self, end: int) -> int | None:
        """Count the records that end at a position or before; where the last one ends."""
        first, last = self._ask(_REACHED, end)[0]
        if last is None:
            return None
        # A standby replays on between two queries, and gives what is there by then.
        end = parsed_position(last) or end
        if self._major >= BLOCKS_FROM_MAJOR:
            for row in self._ask(_BY_BLOCK, end):
                self._add_block(row)
        else:
            for row in self._ask(_BY_TEXT, end):
                self._add_text(row)
        for rmgr, kind, records, length in self._ask(_WITHOUT_BLOCK, end):
            self._type(rmgr, kind, records, length, 0)
            self._of(None).add(self._cause(rmgr, kind), records, length)
        if self._first is None:
            self._first = parsed_position(first)
        return parsed_position(last)

    def _ask(self, query: str, end: int) -> list[Any]:
        text = query.format(schema=self._schema)
        bounds = {"start": shown_lsn(self._at), "end": shown_lsn(end)}
        return cast(list[Any], self._connection.execute(text, bounds).fetchall())

    def _over_hole(self, end: int, why: str) -> int:
        """To the next segment: this one was removed, or used again."""
        reached = min((self._at // self._segment_bytes + 1) * self._segment_bytes, end)
        said = why.splitlines()[0] if why else "it cannot be read"
        if self._gaps and parsed_position(self._gaps[-1].to_lsn) == self._at:
            before = self._gaps.pop()
            begin, said = before.from_lsn, before.why
        else:
            begin = shown_lsn(self._at)
        self._gaps.append(Gap(from_lsn=begin, to_lsn=shown_lsn(reached), path="pg_wal", why=said))
        return reached

    def _add_block(self, row: Any) -> None:
        tablespace, database, relfilenode, rmgr, kind, second, place, compared, *sums = row
        records, length, images, image_bytes = sums
        cause = self._cause(rmgr, kind)
        if cause == "cold_update" and second:
            cause = _SECOND
        relation = self._of((tablespace, database, relfilenode))
        relation.add(cause, records, length)
        if images:
            relation.add_images(self._image(rmgr, kind, place, compared), images, image_bytes)
        self._type(rmgr, kind, records, length + image_bytes, image_bytes)

    def _add_text(self, row: Any) -> None:
        """On 15: lengths of images and headers are known, those of several blocks' data not."""
        rmgr, kind, blocks, records, length = row
        found = list(_BLOCK.finditer(blocks))
        cause = self._cause(rmgr, kind)
        if cause == "cold_update" and any(block["fork"] in (None, "main") for block in found[1:]):
            cause = _SECOND
        rest, all_images, before = length, 0, ""
        for n, block in enumerate(found):
            tablespace, database, relfilenode = map(int, block["rel"].split("/"))
            relation = self._of((tablespace, database, relfilenode))
            image = _image_bytes(block)
            header = 8 + (0 if block["rel"] == before else 12)
            if image is not None:
                header += 7 if block["saved"] and block["hole"] != "0" else 5
                named = self._image(rmgr, kind, min(int(block["id"]), 3), bool(block["compared"]))
                relation.add_images(named, records, image * records)
                rest -= image * records
                all_images += image * records
            if n:
                relation.add(cause, 0, header * records)
                rest -= header * records
            before = block["rel"]
        self._several += records if len(found) > 1 else 0
        tablespace, database, relfilenode = map(int, found[0]["rel"].split("/"))
        self._of((tablespace, database, relfilenode)).add(cause, records, rest)
        self._type(rmgr, kind, records, length, all_images)

    def _of(self, relation: _Relation) -> _Sums:
        return self._relations.setdefault(relation, _Sums())

    def _type(self, rmgr: str, kind: str, records: int, length: int, images: int) -> None:
        known = self._types.setdefault((rmgr, kind), [0, 0, 0])
        for place, more in enumerate((records, length, images)):
            known[place] += more

    def _cause(self, rmgr: str, kind: str) -> str:
        known = self._kinds.get((rmgr, kind))
        return f"other:{rmgr}" if known is None else known[0]

    def _image(self, rmgr: str, kind: str, place: int, compared: bool) -> str:
        known = self._kinds.get((rmgr, kind))
        cause = "fpi_first_change" if known is None else known[2 if place >= 3 else 1]
        return "fpi_forced" if compared and cause == "fpi_first_change" else cause

    def stats(self, names: Names) -> WalStats:
        """Everything that was counted."""
        relations = tuple(self._named(names))
        total = Counter[str]()
        for one in relations:
            total.update(records=one.records, bytes=one.bytes, fpi=one.fpi, fpi_bytes=one.fpi_bytes)
        system, timeline = self._connection.execute(
            "SELECT (SELECT system_identifier::text FROM pg_control_system()), timeline_id "
            "FROM pg_control_checkpoint()"
        ).fetchone()
        return WalStats(
            tool_version=pgheadroom.__version__,
            server=str(self._major),
            system_identifier=system,
            timeline=timeline,
            start_lsn=None if self._first is None else shown_lsn(self._first),
            end_lsn=None if self._first is None else shown_lsn(self._at),
            first_end=None,
            last_end=None,
            total=Total(
                records=total["records"],
                bytes=total["bytes"],
                fpi=total["fpi"],
                fpi_bytes=total["fpi_bytes"],
            ),
            overhead_bytes=self._overhead(total["bytes"]),
            by_cause=over_all(relations),
            relations=relations,
            record_types=tuple(
                RecordType(rmgr=rmgr, type=kind, records=count, bytes=length, fpi_bytes=images)
                for (rmgr, kind), (count, length, images) in sorted(
                    self._types.items(), key=lambda item: (-item[1][1], item[0])
                )
            ),
            memo={},
            gaps=tuple(self._gaps),
            files=0,
            notes=tuple(self._notes(relations, names)),
        )

    def _overhead(self, counted: int) -> int:
        if self._first is None:
            return 0
        lost = sum(
            (parsed_position(gap.to_lsn) or 0) - (parsed_position(gap.from_lsn) or 0)
            for gap in self._gaps
        )
        return max(self._at - self._first - lost - counted, 0)

    def _named(self, names: Names) -> Iterable[RelationWal]:
        for relation, sums in sorted(
            self._relations.items(), key=lambda item: (-item[1].bytes, item[0] or ())
        ):
            counted = (sums.records, sums.bytes, sums.fpi, sums.fpi_bytes)
            yield named_relation(relation, counted, sums.causes, names)

    def _notes(self, relations: Sequence[RelationWal], names: Names) -> Iterable[str]:
        yield (
            "Read by pg_walinspect, for the log's files may not be read: memos (freezing, logical "
            "decoding) and times are not known."
        )
        if self._several:
            yield (
                f"On 15 pg_walinspect does not say how long the data of a block are: "
                f"{self._several} records with several blocks count with their first block's "
                "relation, but for images and headers."
            )
        yield from not_asked_notes(names)
        yield from nameless_note(relations)


def _image_bytes(block: Mapping[str, Any] | re.Match[str]) -> int | None:
    """Of a block as text; None without an image."""
    if block["image"] is None:
        return None
    return _PAGE_BYTES - int(block["hole"] or 0) - int(block["saved"] or 0)

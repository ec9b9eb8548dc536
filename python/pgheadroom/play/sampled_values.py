"""
Values of expressions over a profile's rows and their updates, on a server.

    rows       those of the load, at most SAMPLE_ROWS_MAX evenly out of them
    rounds     in each, every row takes one of its table's updates, by their shares
    figures    over the rows of all rounds: different values, NULLs, widths, the share that is
               true; of updates that change a column that is read, how many change the value
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pgheadroom import quoting
from pgheadroom.errors import InputError
from pgheadroom.play.found_values import VALUES_MAX, Reached, with_found
from pgheadroom.play.load import create_index, create_table
from pgheadroom.play.values import MILLION, changed, row_values
from pgheadroom.profile import Change, IndexProfile, TableProfile
from pgheadroom.profile.column_types import (
    FORMS,
    SHORT_HEADER_MAX,
    base_of,
    payload_bytes,
    width_range,
)
from pgheadroom.profile.spelling import canonical_type
from pgheadroom.profile.stating import UNIQUE_TYPES
from pgheadroom.profile.tables import STRING_BYTES_MAX, Stated, Width

if TYPE_CHECKING:
    import psycopg

SAMPLE_ROWS_MAX = 100_000
"""Rows that expressions are evaluated for; arbitrary: a second or less for most."""
ROUNDS_MAX = 10
"""Updates of each row that are tried; arbitrary."""
_PROBED_ROWS = 200  # enough to see how large values are; arbitrary
_BYTES_MAX = 1 << 30  # of values that are made; arbitrary
_ENTRY_BYTES_MAX = 2704 - 8  # `BTMaxItemSize`, less an entry's header (nbtree.h)
_COMPRESSED_FROM_BYTES = 508  # `TOAST_INDEX_TARGET`, src/include/access/heaptoast.h
_FILLER_BYTES = 1600  # so that a row with such a value is toasted: more than 2,032 bytes together
_ROW_BYTES = 24 + 8  # header of a row, and of its filler
_SIZED_ROWS = 2000  # enough for a mean; arbitrary
_EQUAL_IMAGE = 4  # `BTEQUALIMAGE_PROC`, src/include/access/nbtree.h


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """What an update sets, and how many rows of a transaction take it, on average."""

    sets: tuple[Change, ...]
    rows: float


class SampledRows:
    """
    A table's rows on a server, after none and each of some rounds of updates.

    Args:
        connection: A session in a database of its own, in autocommit mode.
        schema: One that is made for them, with a name that needs no quotes.
        table: The table; it is made, without indexes and empty.
        updates: Updates of its rows.
        rounds: How many rounds; 0 without updates.
    """

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        schema: str,
        table: TableProfile,
        updates: Sequence[Update],
        *,
        rounds: int,
    ) -> None:
        self.table = table
        self.rounds = rounds
        self.types: dict[str, str] = {}
        """What the server calls the types of expressions that were evaluated."""
        self._connection = connection
        self._schema = schema
        self._updates = updates
        self._name = quoting.identifier(table.name)
        self._row_type = f"public.{self._name}"  # a type of that name may be the server's own
        self._columns = [quoting.identifier(column.name) for column in table.columns]
        every = max(math.ceil(table.rows / SAMPLE_ROWS_MAX), 1)
        self.taken = math.ceil(table.rows / every)
        self._evaluated = self._found = 0
        self._made: set[str] = set()
        self._run(create_table(table))
        self._run(f"CREATE SCHEMA {schema}")
        for turn in range(rounds + 1):
            self._run(f"CREATE TABLE {self._round(turn)} (number int8, data {self._row_type})")
        # One out of each so many, but not each so manieth: keys' digits come in turns.
        number = f"least(g.i + mod({_hashed('row', 'g.i')}, {every}), {table.rows}::int8)"
        self._run(
            f"INSERT INTO {self._round(0)} "
            f"SELECT s.i, ROW({row_values(table, 's.i')})::{self._row_type} "
            f"FROM (SELECT {number} AS i FROM generate_series(1::int8, {table.rows}::int8, "
            f"{every}::int8) AS g(i)) AS s"
        )
        for turn in range(1, rounds + 1):
            values = ", ".join(self._after(column, turn) for column in range(len(self._columns)))
            self._run(
                f"INSERT INTO {self._round(turn)} SELECT r.number, ROW({values})::{self._row_type} "
                f"FROM {self._round(turn - 1)} r"
            )

    def evaluated(self, stated: Stated, index: IndexProfile) -> Stated | str:
        """
        What is found of an expression, or of a predicate.

        Args:
            stated: The expression, of which nothing is known.
            index: Its index.

        Returns:
            Why not, where a profile has no values like these.

        Raises:
            InputError: Its index is unique, and loaded rows have the same value; values are too
                long for an entry, or too many to make.
            psycopg.Error: The server does not take the index, or cannot evaluate it.
        """
        if index.name not in self._made:
            self._made.add(index.name)
            self._run(create_index(self.table, index))  # of an empty table: only what it may be
        values = f"{self._schema}.values_{self._evaluated}"
        self._evaluated += 1
        is_predicate = stated.true_frac is not None
        value = f"({stated.expression})"
        if is_predicate:
            value = f"COALESCE({value}, false)"
        row = f"(SELECT (r.data).*) AS {self._name}"
        queries = [
            f"SELECT {turn} AS turn, r.number, v.value FROM {self._round(turn)} r "
            f"CROSS JOIN LATERAL (SELECT {value} AS value FROM {row}) v"
            for turn in range(self.rounds + 1)
        ]
        self._check_size(queries[0])
        self._run(f"CREATE TABLE {values} AS {queries[0]} WITH NO DATA")
        spelled, has_storage = self._row(
            "SELECT format_type(atttypid, atttypmod), attlen = -1 AND attstorage <> 'p' "
            f"FROM pg_attribute WHERE attrelid = '{values}'::regclass AND attname = 'value'"
        )
        self.types[stated.expression] = str(spelled)
        for query in queries:
            self._run(f"INSERT INTO {values} {query}")
        changed_frac = self._changed_frac(values, stated)
        if is_predicate:
            (true_frac,) = self._row(f"SELECT avg(CAST(value AS int4)) FROM {values}")
            return replace(
                stated,
                true_frac=round(float(true_frac or 0), 6),
                changed_frac=changed_frac,
                assumed=False,
            )
        stored = self._stored(values)
        if has_storage and stored is not None and stored.most > _COMPRESSED_FROM_BYTES:
            stored = self._stored(self._as_in_an_index(values, str(spelled)))
        found = self._values((values, str(spelled), stored), stated, index)
        return found if isinstance(found, str) else replace(found, changed_frac=changed_frac)

    def found(self, stated: Stated, *, inserted: int, turns: int) -> Stated:
        """
        A predicate with what it is for the values that it reads (`found_values.py`).

        Args:
            stated: The predicate.
            inserted: Rows that the run inserts.
            turns: How often a row may be updated.
        """
        self._found += 1
        reached = Reached(
            table=self.table,
            sets=[update.sets for update in self._updates],
            rows=self._round(0),
            inserted=min(inserted, VALUES_MAX),
            turns=turns,
        )
        return with_found(self._connection, stated, reached, f"{self._schema}.found_{self._found}")

    def _check_size(self, query: str) -> None:
        """What would fill the disk is told before it is made."""
        largest, mean = self._row(
            f"SELECT coalesce(max(b), 0), coalesce(avg(b), 0) FROM (SELECT pg_column_size(value) "
            f"AS b FROM ({query} LIMIT {_PROBED_ROWS}) AS t) AS t"
        )
        size_bytes = float(mean) * self.taken * (self.rounds + 1)
        if size_bytes > _BYTES_MAX:
            raise InputError(
                f"its values are up to {largest:,} bytes long, {size_bytes / 2**30:.0f} GB for "
                f"{self.taken:,} rows and their updates: expected at most {_BYTES_MAX >> 30} GB "
                f"to evaluate; state what its values are (docs/profile.md)"
            )

    def changes(self, stated: Stated) -> bool:
        """Whether an update sets a column that the expression reads."""
        return any(
            change.column in stated.columns for update in self._updates for change in update.sets
        )

    def _round(self, turn: int) -> str:
        return f"{self._schema}.round_{turn}"

    def _run(self, sql: str) -> None:
        self._connection.execute(sql.encode(), prepare=True)  # one statement, whatever the text is

    def _row(self, sql: str) -> tuple[Any, ...]:
        row = self._connection.execute(sql.encode()).fetchone()
        assert row is not None, sql
        return tuple(row)

    def _after(self, number: int, turn: int) -> str:
        """SQL of a column after the update that the row takes in a round."""
        column = self.table.columns[number]
        old = f"(r.data).{self._columns[number]}"
        cases, passed = [], 0.0
        total = sum(update.rows for update in self._updates)
        for n, update in enumerate(self._updates):
            passed += update.rows / total
            new = old
            for c, change in enumerate(update.sets):
                if change.column == column.name:
                    draw = _drawn(turn, f"{n}:{c}")
                    many = change.grows_max_bytes - change.grows_min_bytes + 1
                    growth = f"CAST({change.grows_min_bytes} + mod({draw} - 1, {many}) AS int4)"
                    new = changed(column, change, old, draw, growth)
            cases.append(f"WHEN {_drawn(turn, 'update')} <= {round(passed * MILLION)} THEN {new}")
        return f"CASE {' '.join(cases)} ELSE {old} END"

    def _changed_frac(self, values: str, stated: Stated) -> float:
        """Of the updates that change a column that it reads, those that change its value."""
        read = [quoting.identifier(column) for column in stated.columns]
        if not read:
            return 0.0
        before, after = (
            ", ".join(f"({row}.data).{column}" for column in read) for row in ("a", "b")
        )
        touched = altered = 0
        for turn in range(1, self.rounds + 1):
            # Images of rows can be compared whatever types they are of.
            counts = self._row(
                "SELECT count(*), "
                "count(*) FILTER (WHERE record_image_ne(ROW(v.value), ROW(w.value))) "
                f"FROM {self._round(turn - 1)} a JOIN {self._round(turn)} b USING (number) "
                f"JOIN {values} v ON v.number = a.number AND v.turn = {turn - 1} "
                f"JOIN {values} w ON w.number = a.number AND w.turn = {turn} "
                f"WHERE record_image_ne(ROW({before}), ROW({after}))"
            )
            touched += int(counts[0])
            altered += int(counts[1])
        return round(altered / touched, 6) if touched else 1.0

    def _values(
        self, of: tuple[str, str, _Stored | None], stated: Stated, index: IndexProfile
    ) -> Stated | str:
        values, spelled, stored = of
        if index.method == "btree" and stored is not None and stored.most > _ENTRY_BYTES_MAX:
            raise InputError(
                f"found values of {stored.most:,} bytes, expected at most {_ENTRY_BYTES_MAX:,}, "
                "which an entry of a B-tree takes"
            )
        known = canonical_type(spelled)
        canonical = known if known is not None and _is_as_stored(known, stored) else "text"
        is_text = index.method == "btree" and canonical == "text"
        if is_text and not self._has_equal_images(stated, index):
            canonical = "citext"  # as wide as may be, and equal ones have an entry each
        if index.unique and base_of(canonical) not in UNIQUE_TYPES:
            return f"{stated.expression!r} is {spelled}, of which profiles have no unique values"
        if index.unique and len(index.columns) + len(index.expressions) == 1 and not index.where:
            self._check_unique(values)
        counted, nulls, distinct, once = map(
            int,
            self._row(
                "SELECT coalesce(sum(times), 0), "
                "coalesce(sum(times) FILTER (WHERE value IS NULL), 0), "
                "count(*) FILTER (WHERE value IS NOT NULL), "
                "count(*) FILTER (WHERE value IS NOT NULL AND times = 1) FROM "
                f"(SELECT CAST(value AS text) AS value, count(*) AS times FROM {values} GROUP BY 1)"
                " AS t"
            ),
        )
        present = counted - nulls
        every = self.table.rows * (self.rounds + 1) * present / max(counted, 1)
        return replace(
            stated,
            type=canonical,
            width=_width(canonical, stored),
            ndistinct=distinct_in_all(present, distinct, once, of=round(every)),
            null_frac=round(nulls / counted, 6) if counted else 0.0,
            assumed=False,
        )

    def _has_equal_images(self, stated: Stated, index: IndexProfile) -> bool:
        """Whether equal values of the B-tree share an entry, as those of `text` do."""
        place = len(index.columns) + index.expressions.index(stated.expression)
        relation = quoting.literal(f"public.{quoting.identifier(index.name)}")
        (found,) = self._row(
            f"SELECT count(*) FROM pg_index i JOIN pg_opclass c ON c.oid = i.indclass[{place}] "
            "JOIN pg_amproc p ON p.amprocfamily = c.opcfamily AND p.amproclefttype = c.opcintype "
            f"WHERE p.amprocnum = {_EQUAL_IMAGE} AND i.indexrelid = {relation}::regclass"
        )
        return bool(found)

    def _as_in_an_index(self, values: str, spelled: str) -> str:
        """Some of the values in a table that compresses them from the length that an index does."""
        sized = f"{values}_sized"
        self._run(f"CREATE TABLE {sized} (filler text, value {spelled})")
        self._run(f"ALTER TABLE {sized} ALTER filler SET STORAGE PLAIN")
        self._run(f"ALTER TABLE {sized} ALTER value SET STORAGE MAIN")
        target = _ROW_BYTES + _FILLER_BYTES + _COMPRESSED_FROM_BYTES
        self._run(f"ALTER TABLE {sized} SET (toast_tuple_target = {target})")
        self._run(
            f"INSERT INTO {sized} SELECT repeat('x', {_FILLER_BYTES}), value FROM {values} "
            f"WHERE value IS NOT NULL ORDER BY {_hashed('size', 'number')} LIMIT {_SIZED_ROWS}"
        )
        return sized

    def _check_unique(self, values: str) -> None:
        """What no server would load is not foreseen either."""
        counted, distinct = self._row(
            f"SELECT count(value), count(DISTINCT value) FROM {values} WHERE turn = 0"
        )
        if distinct < counted:
            raise InputError(
                f"{counted:,} loaded rows have {distinct:,} different values, expected as many: "
                "the index is unique"
            )

    def _stored(self, values: str) -> _Stored | None:
        """Bytes of the values without their header, whatever their type; None without any."""
        stored = "pg_column_size(value)"
        least, most, mean, deviation = self._row(
            "SELECT min(b), max(b), avg(b), stddev_pop(b) FROM "
            f"(SELECT {stored} - CASE WHEN {stored} <= {SHORT_HEADER_MAX} THEN 1 ELSE 4 END AS b "
            f"FROM {values} WHERE value IS NOT NULL) AS t"
        )
        if least is None:
            return None
        return _Stored(
            least=int(least), most=int(most), mean=float(mean), deviation=float(deviation)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stored:
    """Bytes of values as an index has them: compressed where that is tried."""

    least: int
    most: int
    mean: float
    deviation: float


def _is_as_stored(type_name: str, stored: _Stored | None) -> bool:
    """Whether a profile's values of the type have the sizes that were found."""
    form, fixed = FORMS[base_of(type_name)], payload_bytes(type_name)
    if stored is None:
        return True
    if form.width:
        return stored.least >= form.least_bytes
    return fixed is None or (stored.least, stored.most) == (fixed, fixed)


def _width(type_name: str, stored: _Stored | None) -> Width | None:
    """Payload bytes, uniform with the same mean and deviation as far as there are such."""
    if not FORMS[base_of(type_name)].width:
        return None
    allowed = width_range(type_name, STRING_BYTES_MAX)
    if stored is None:
        return Width(min_bytes=allowed[0], max_bytes=allowed[0])
    low, high = max(stored.least, allowed[0]), min(stored.most, allowed[1])
    half = max(min(stored.deviation * math.sqrt(3), stored.mean - low, high - stored.mean), 0)
    low, high = (min(max(round(stored.mean + way * half), low), high) for way in (-1, 1))
    return Width(min_bytes=low, max_bytes=high)


def distinct_in_all(counted: int, distinct: int, once: int, *, of: int) -> int:
    """
    How many different values all rows have, by those of a sample.

    The estimator of ANALYZE (Haas and Stokes' Duj1; `compute_distinct_stats`,
    src/backend/commands/analyze.c, 18).

    Args:
        counted: Values of the sample, without NULLs.
        distinct: How many of them differ.
        once: Values that it has once.
        of: Values in all, at least as many as the sample has.
    """
    if counted == 0:
        return 1
    if once == distinct == counted:
        return of
    estimate = counted * distinct / (counted - once + once * counted / of)
    return max(min(round(estimate), of), distinct, 1)


def _drawn(turn: int, what: str) -> str:
    """SQL of a draw from 1 to 1,000,000 that follows from the row, the round and its purpose."""
    return f"(1 + mod({_hashed(f'{turn}:{what}', 'r.number')}, {MILLION}))"


def _hashed(what: str, number: str) -> str:
    """SQL of a whole number from 0 that follows from another one and its purpose."""
    return f"(hashtextextended('{what}', {number}) & {2**63 - 1})"

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
from pgheadroom.play.load import create_table
from pgheadroom.play.values import MILLION, changed, row_values
from pgheadroom.profile import Change, IndexProfile, TableProfile
from pgheadroom.profile.column_types import FORMS, base_of, width_range
from pgheadroom.profile.spelling import type_name
from pgheadroom.profile.stating import UNIQUE_TYPES
from pgheadroom.profile.tables import STRING_BYTES_MAX, Stated, Width

if TYPE_CHECKING:
    import psycopg

SAMPLE_ROWS_MAX = 100_000
"""Rows that expressions are evaluated for; arbitrary: a second or less for most."""
ROUNDS_MAX = 10
"""Updates of each row that are tried; arbitrary."""
_SHORT_HEADER_MAX = 127  # stored bytes of a value with a header of one byte


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
        self._connection = connection
        self._schema = schema
        self._updates = updates
        self._name = quoting.identifier(table.name)
        self._columns = [quoting.identifier(column.name) for column in table.columns]
        every = max(math.ceil(table.rows / SAMPLE_ROWS_MAX), 1)
        self.taken = math.ceil(table.rows / every)
        self._evaluated = 0
        self._run(create_table(table))
        self._run(f"CREATE SCHEMA {schema}")
        for turn in range(rounds + 1):
            self._run(f"CREATE TABLE {self._round(turn)} (number int8, data {self._name})")
        self._run(
            f"INSERT INTO {self._round(0)} "
            f"SELECT s.i, ROW({row_values(table, 's.i')})::{self._name} FROM "
            f" generate_series(1::int8, {table.rows}::int8, {every}::int8) AS s(i)"
        )
        for turn in range(1, rounds + 1):
            values = ", ".join(self._after(column, turn) for column in range(len(self._columns)))
            self._run(
                f"INSERT INTO {self._round(turn)} SELECT r.number, ROW({values})::{self._name} "
                f"FROM {self._round(turn - 1)} r"
            )

    def evaluated(self, stated: Stated, index: IndexProfile) -> Stated | None:
        """
        What is found of an expression, or of a predicate.

        Args:
            stated: The expression, of which nothing is known.
            index: Its index.

        Returns:
            None where a profile cannot state it: a unique index over values of a type of which it
            has no unique ones.

        Raises:
            InputError: Its index is unique, and loaded rows have the same value.
        """
        values = f"{self._schema}.values_{self._evaluated}"
        self._evaluated += 1
        is_predicate = stated.true_frac is not None
        text = f"({stated.expression})"
        tested = text if is_predicate else f"{text} IS NOT NULL"
        # An index over a constant has a predicate of any type, which has to be immutable.
        self._run(f"CREATE INDEX ON {self._name} ((1)) WHERE {tested}")
        value = f"COALESCE({text}, false)" if is_predicate else text
        row = f"(SELECT (r.data).*) AS {self._name}"
        queries = [
            f"SELECT {turn} AS turn, r.number, v.value FROM {self._round(turn)} r "
            f"CROSS JOIN LATERAL (SELECT {value} AS value FROM {row}) v"
            for turn in range(self.rounds + 1)
        ]
        self._run(f"CREATE TABLE {values} AS {queries[0]} WITH NO DATA")
        spelled, has_storage = self._row(
            "SELECT format_type(atttypid, atttypmod), attlen = -1 AND attstorage <> 'p' "
            f"FROM pg_attribute WHERE attrelid = '{values}'::regclass AND attname = 'value'"
        )
        if has_storage:  # so that a value's stored bytes are its own
            self._run(f"ALTER TABLE {values} ALTER value SET STORAGE EXTERNAL")
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
        found = self._values(values, str(spelled), stated, index)
        return None if found is None else replace(found, changed_frac=changed_frac)

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
        self, values: str, spelled: str, stated: Stated, index: IndexProfile
    ) -> Stated | None:
        known = _known_type(spelled)
        canonical = known or "text"
        if index.method == "btree" and not FORMS[base_of(canonical)].btree:
            canonical = "text"
        if index.unique and base_of(canonical) not in UNIQUE_TYPES:
            return None
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
            width=self._width(values, canonical, as_text=known != canonical),
            ndistinct=distinct_in_all(present, distinct, once, of=round(every)),
            null_frac=round(nulls / counted, 6) if counted else 0.0,
            assumed=False,
        )

    def _check_unique(self, values: str) -> None:
        """What no server would load is not foreseen either."""
        counted, distinct = self._row(
            f"SELECT count(value), count(DISTINCT value) FROM {values} WHERE turn = 0"
        )
        if distinct < counted:
            raise InputError(
                f"of {counted:,} loaded rows {distinct:,} have values of their own, expected all: "
                "the index is unique"
            )

    def _width(self, values: str, canonical: str, *, as_text: bool) -> Width | None:
        """Payload bytes, uniform with the same mean and deviation as far as there are such."""
        if not FORMS[base_of(canonical)].width:
            return None
        stored = "pg_column_size(value)"
        payload = (
            "octet_length(CAST(value AS text))"
            if as_text
            else f"{stored} - CASE WHEN {stored} <= {_SHORT_HEADER_MAX} THEN 1 ELSE 4 END"
        )
        allowed = width_range(canonical, STRING_BYTES_MAX)
        least, most, mean, deviation = self._row(
            f"SELECT min(b), max(b), avg(b), stddev_pop(b) FROM (SELECT {payload} AS b "
            f"FROM {values} WHERE value IS NOT NULL) AS t"
        )
        if least is None:
            return Width(min_bytes=allowed[0], max_bytes=allowed[0])
        low, high, middle = max(least, allowed[0]), min(most, allowed[1]), float(mean)
        half = max(min(float(deviation) * math.sqrt(3), middle - low, high - middle), 0)
        low, high = (min(max(round(middle + way * half), low), high) for way in (-1, 1))
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
    hashed = f"hashtextextended('{turn}:{what}', r.number)"
    return f"(1 + mod({hashed} & {2**63 - 1}, {MILLION}))"


def _known_type(spelled: str) -> str | None:
    """A type's name in profiles, if they have it."""
    try:
        return type_name(spelled)
    except ValueError:
        return None

"""
One table of a recording: its part of the profile, and what was observed of it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from pgheadroom.forms import read
from pgheadroom.observe.answers import Answers
from pgheadroom.observe.columns import (
    ColumnSeen,
    distinct_values,
    fills_pages,
    make_column,
    page_widths,
    sampled_widths,
)
from pgheadroom.observe.counters import COUNTERS, STATES, differences, rates
from pgheadroom.observe.elements import read_keys
from pgheadroom.observe.gins import SAID as KEYS_SAID
from pgheadroom.observe.gins import Gins, find_gins, stated_keys
from pgheadroom.observe.index_row import IndexRow, read_index
from pgheadroom.observe.indexes import choose_key, observed_index, profile_index
from pgheadroom.observe.naming import profile_name
from pgheadroom.observe.pages import redirected, seen_pages
from pgheadroom.observe.stated import SAID, share_of, stated_of
from pgheadroom.observe.values import ValueChanges, read_values
from pgheadroom.observe.widths import ColumnWidth
from pgheadroom.profile.observed import (
    FreeSpace,
    IndexCounters,
    ObservedIndex,
    ObservedTable,
    ObservedToast,
    ObservedTrigger,
    ObservedUpdates,
    ReplicaIdentity,
    TableCounters,
    TableRates,
)
from pgheadroom.profile.tables import ColumnProfile, IndexProfile, Stated, TableProfile
from pgheadroom.quoting import called
from pgheadroom.sources.recording import AnswerRow
from pgheadroom.sources.sampled import sample_summary
from pgheadroom.units import PAGE_BYTES

T = TypeVar("T")

_PERSISTENCE = {"p": "permanent", "u": "unlogged", "t": "temporary"}
_REPLICA_IDENTITIES: Mapping[str, ReplicaIdentity] = {
    "d": "default",
    "n": "nothing",
    "f": "full",
    "i": "index",
}
"""Of pg_class.relreplident."""

_INDEX_COUNTERS = ("idx_scan", "idx_tup_read", "idx_tup_fetch", "idx_blks_read", "idx_blks_hit")

_PAGE_USABLE_BYTES = 8168  # SizeOfPageHeaderData from a page of 8,192


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedTable:
    """
    A table: the profile's part, and what operations and observation are made from.

    Attributes:
        profile: Without its observation.
        columns: Those that were not dropped, by attribute number.
        key_attnum: The column by which the profile finds rows; None without one.
        counters: What grew in the interval.
        ending_hot: Columns whose change ends HOT.
        times: Columns that hold times, by attribute number.
        unique: Columns that alone are the key of a unique index.
    """

    row: AnswerRow
    answers: Answers
    profile: TableProfile
    rows_evidence: str
    pages_evidence: str | None
    pages: int
    columns: Mapping[int, ColumnSeen]
    added_columns: tuple[str, ...]
    dropped_columns: int
    key_attnum: int | None
    indexes: tuple[ObservedIndex, ...]
    differs: Mapping[str, str]
    counters: TableCounters
    values: ValueChanges | None
    times: frozenset[int]
    unique: frozenset[int]

    @property
    def oid(self) -> int:
        """In the catalogs."""
        return int(self.row["oid"])

    @property
    def rows(self) -> int:
        """Rows in the profile."""
        return self.profile.rows

    def computed_from(self, assigned: Collection[int]) -> tuple[int, ...]:
        """Stored generated columns whose expression reads one of these, by attribute number."""
        names = {self.columns[number].name for number in assigned if number in self.columns}
        return tuple(
            number
            for number, column in self.columns.items()
            if column.observed.generated == "stored"
            and number not in assigned
            and not names.isdisjoint(column.observed.generated_from or ())
        )

    @property
    def sample(self) -> AnswerRow | None:
        """Of its rows; None without one."""
        return self.answers.samples.get(self.oid)

    @property
    def row_ages(self) -> AnswerRow | None:
        """Of its rows, by how far they lie behind the newest; None without such a sample."""
        return self.answers.row_ages.get(self.oid)

    @property
    def ending_hot(self) -> frozenset[str]:
        """Names of the columns whose change ends HOT."""
        return frozenset(name for index in self.indexes for name in index.ends_hot_by_columns)


def make_table(row: AnswerRow, answers: Answers, *, label: str, taken: set[str]) -> WatchedTable:
    """
    Put one table together.

    Args:
        row: Its row of the query `tables`.
        answers: All rows by table.
        label: Its name in the profile.
        taken: Names of tables and indexes that the profile has already.
    """
    oid = int(row["oid"])
    after = answers.after.get(oid)
    delta = differences(answers.before.get(oid), after, COUNTERS)
    sample = answers.samples.get(oid)
    size = answers.sizes.get(oid)
    pages = int(size["main_bytes"]) // PAGE_BYTES if size is not None else int(row["relpages"])
    rows, rows_evidence = _rows(row, after, sample)
    listed = answers.columns.get(oid, ())
    indexes = [
        read_index(found, answers.definitions.get(found["oid"]), [c["attnum"] for c in listed])
        for found in answers.indexes.get(oid, ())
    ]
    live = {c["attnum"]: c for c in listed if not c["is_dropped"]}
    statistics = {
        number: answers.statistics.get((row["schema"], row["name"], column["name"]))
        for number, column in live.items()
    }
    known = {number: distinct_values(found, rows) for number, found in statistics.items()}
    distinct = {number: float(found) for number, found in known.items() if found is not None}
    key = choose_key(indexes, live, rows, distinct)
    counted = read_keys(found for found in answers.elements if int(found["oid"]) == oid)
    gins = find_gins(indexes, live, counted)
    columns = _columns(row, live, answers, sample, indexes, key, gins, rows=rows, pages=pages)
    entries = [entry for column in columns.values() for entry in column.entries]
    entries += [_dropped(c) for c in listed if c["is_dropped"]]
    made_indexes, differing = _indexes(row, indexes, columns, key, gins, taken, answers, rows=rows)
    made_indexes = _stated(made_indexes, differing, indexes, entries, answers, gins, rows=rows)
    profile = TableProfile(
        name=label,
        rows=rows,
        unlogged=row["relpersistence"] == "u",
        fillfactor=int((row["reloptions"] or {}).get("fillfactor", 100)),
        columns=tuple(entries),
        indexes=tuple(made_indexes),
        reloptions=_reloptions(row),
    )
    chains = redirected(after, answers.page_headers.get(oid))
    seen = seen_pages(profile, sample, pages, chains)
    if seen is not None:
        profile = replace(profile, pages=seen.kinds, rows_per_page=seen.rows_per_page)
    return WatchedTable(
        row=row,
        answers=answers,
        profile=profile,
        rows_evidence=rows_evidence,
        pages_evidence=None if seen is None else seen.evidence,
        pages=pages,
        columns=columns,
        added_columns=tuple(str(c["name"]) for c in live.values() if c["has_missing"]),
        dropped_columns=len(listed) - len(live),
        key_attnum=None if key is None else key[1],
        indexes=tuple(_index_facts(index, live, answers) for index in indexes),
        differs=differing,
        counters=read(TableCounters, delta, at="counters"),
        values=read_values(answers.values_before.get(oid), answers.values_after.get(oid)),
        times=frozenset(n for n, c in live.items() if str(c["type"]).startswith("timestamp")),
        unique=frozenset(
            index.keys[0] for index in indexes if index.row["is_unique"] and len(index.keys) == 1
        ),
    )


def observed_table(
    table: WatchedTable,
    updates: ObservedUpdates,
    triggers: tuple[ObservedTrigger, ...] | None,
    parent: str | None,
) -> ObservedTable:
    """What was observed of a table, with its updates, its triggers and its partitioned table."""
    row, answers = table.row, table.answers
    size, after = answers.sizes.get(table.oid), answers.after.get(table.oid) or {}
    replica_identity = row.get("replica_identity")
    sample = sample_summary(table.sample)
    return ObservedTable(
        schema=row["schema"],
        name=row["name"],
        oid=row["oid"],
        relfilenode=row["relfilenode"] if size is None else size["relfilenode"],
        relpages=row["relpages"],
        relallvisible=row["relallvisible"],
        # As they are set: the profile's fillfactor does not tell 100 from not set.
        reloptions={k: str(v) for k, v in (row["reloptions"] or {}).items()},
        main_bytes=None if size is None else size["main_bytes"],
        persistence=_PERSISTENCE.get(row["relpersistence"], row["relpersistence"]),
        replica_identity=None
        if replica_identity is None
        else _REPLICA_IDENTITIES[replica_identity],
        pages=table.pages,
        rows_evidence=table.rows_evidence,
        pages_evidence=table.pages_evidence,
        counters=table.counters,
        totals=_read_counters(TableCounters, after, COUNTERS),
        state={name: after[name] for name in STATES if name in after},
        per_s=read(TableRates, rates(table.counters, answers.interval_s), at="per_s"),
        columns=tuple(column.observed for column in table.columns.values()),
        dropped_columns=table.dropped_columns,
        added_columns=table.added_columns,
        indexes=table.indexes,
        differs=table.differs,
        toast=_toast(row, answers),
        sample=sample,
        free_space=_free_space(table.oid, answers),
        updates=updates,
        triggers=triggers,
        parent=parent,
    )


def _read_counters(kind: type[T], row: AnswerRow, names: Sequence[str]) -> T:
    """Counters of a row, as they stand there."""
    return read(kind, {name: row[name] for name in names if name in row}, at="totals")


def _dropped(row: AnswerRow) -> ColumnProfile:
    """A dropped column, under the name that the catalogue has for it: NULL, a bit of a bitmap."""
    return ColumnProfile(name=profile_name(str(row["name"]), set()), type="bool", null_frac=1.0)


def _rows(row: AnswerRow, after: AnswerRow | None, sample: AnswerRow | None) -> tuple[int, str]:
    if sample is not None and sample.get("rows") is not None:
        percent = float(sample["drawn_percent"])
        evidence = "measured" if percent >= 100 else "sampled"
        return round(float(sample["rows"]) * 100 / percent), evidence
    if float(row["reltuples"]) >= 0:
        return round(float(row["reltuples"])), "estimated by the last VACUUM or ANALYZE"
    if after is not None and after["n_live_tup"]:
        return int(after["n_live_tup"]), "estimated by n_live_tup"
    return 0, "assumed: never vacuumed or analyzed"


def _columns(
    row: AnswerRow,
    live: Mapping[int, AnswerRow],
    answers: Answers,
    sample: AnswerRow | None,
    indexes: Sequence[IndexRow],
    key: tuple[IndexRow, int] | None,
    gins: Gins,
    *,
    rows: int,
    pages: int,
) -> dict[int, ColumnSeen]:
    sampled = sampled_widths(sample)
    row_bytes = pages * _PAGE_USABLE_BYTES / rows if rows > 0 and pages > 0 else None
    gone = (answers.after.get(row["oid"]) or {}).get("n_tup_del") or 0
    are_full = fills_pages(rows, pages=pages, deleted=gone)
    guessed = page_widths(live.values(), row_bytes=row_bytes, are_full=are_full)
    indexed = {number for index in indexes for number in index.depends}
    taken: set[str] = set()
    made = {}
    for number, column in live.items():
        statistics = answers.statistics.get((row["schema"], row["name"], column["name"]))
        width = guessed.get(number)
        null_frac, evidence = 0.0, "assumed"
        if statistics is not None:
            null_frac, evidence = float(statistics["null_frac"]), "estimated by ANALYZE"
            if column["typlen"] < 0 and null_frac < 1:
                width = ColumnWidth(
                    mean_bytes=float(statistics["avg_width"]),
                    deviation_bytes=0.0,
                    evidence="estimated by ANALYZE",
                )
        if number in sampled:
            width, null_frac, evidence = *sampled[number], "sampled"
        elif sample is not None and number in sample["attnums"] and sample["rows"]:
            null_frac, evidence = 1.0, "sampled"
        if column["not_null"]:
            null_frac, evidence = 0.0, "measured"
        if column.get("generated") == "v":  # computed when it is read, NULL in the row
            width, null_frac, evidence = guessed.get(number), 1.0, "measured"
        made[number] = make_column(
            column,
            width=width,
            null_frac=(null_frac, evidence),
            statistics=statistics,
            rows=rows,
            taken=taken,
            is_key=key is not None and key[1] == number,
            indexed=number in indexed,
            generated=_generated(column, live),
            keys=gins.columns.get(number),
        )
    return made


def _generated(
    column: AnswerRow, live: Mapping[int, AnswerRow]
) -> tuple[str, tuple[str, ...]] | None:
    """Of a generated column: its kind, and the columns that its expression reads."""
    kind = {"s": "stored", "v": "virtual"}.get(str(column.get("generated") or ""))
    if kind is None:
        return None
    reads = (int(number) for number in column.get("generated_from") or ())
    return kind, tuple(str(live[n]["name"]) for n in reads if n in live)


def _indexes(
    row: AnswerRow,
    indexes: Sequence[IndexRow],
    columns: Mapping[int, ColumnSeen],
    key: tuple[IndexRow, int] | None,
    gins: Gins,
    taken: set[str],
    answers: Answers,
    *,
    rows: int,
) -> tuple[list[IndexProfile], dict[str, str]]:
    made: list[IndexProfile] = []
    names: dict[str, str] = {}
    differing: dict[str, str] = {}
    # The key's index first, whatever its name.
    for index in sorted(indexes, key=lambda found: key is None or found is not key[0]):
        name = str(index.row["name"])
        if not index.row["is_live"]:
            continue
        label = called(row["schema"], name)
        is_key = key is not None and index is key[0]
        size = answers.sizes.get(int(index.row["oid"]))
        found, why = profile_index(
            index,
            columns,
            is_key=is_key,
            is_empty=size is not None and int(size["main_bytes"]) == PAGE_BYTES,
            taken=taken,
            label=label,
            gins=gins,
            key=None if key is None else columns.get(key[1]),
            share=share_of(index.row, rows),
        )
        if found is not None:
            made.append(found)
            names[found.name] = name
        if why is not None:
            differing[name] = why
    key_index = next((one for one in made if one.unique), None)
    alike = [] if key_index is None else _found_alike(made, key_index)
    if key_index is not None and alike:
        made = [*(one for one in made if one is not key_index), key_index]
        for one in alike:
            said = f"begins as {key_index.name} does, by which the profile finds rows; a server may"
            differing.setdefault(names[one.name], f"{said} by this one")
    return made, differing


def _found_alike(made: Sequence[IndexProfile], key_index: IndexProfile) -> list[IndexProfile]:
    """
    Other indexes by which the planner may find the rows of a key; that of the key goes last then.

    Of indexes by which a row costs the same the planner takes the newest: `get_relation_info`
    puts each in front of those before, and `add_path` keeps the first of equals (REL_18_STABLE).
    """
    return [
        one
        for one in made
        if one is not key_index
        and one.method == "btree"
        and one.where is None
        and one.columns
        and one.columns[:1] == key_index.columns[:1]
    ]


def _stated(
    made: Sequence[IndexProfile],
    differing: dict[str, str],
    indexes: Sequence[IndexRow],
    entries: Sequence[ColumnProfile],
    answers: Answers,
    gins: Gins,
    *,
    rows: int,
) -> list[IndexProfile]:
    """The same with what is known of expressions that the twin cannot evaluate."""
    by_name = {str(index.row["name"]): index for index in indexes}
    by_name |= {f"{index.row['schema']}.{name}": index for name, index in by_name.items()}
    found = []
    for one in made:
        index = by_name.get(one.name)
        stated: tuple[Stated, ...] = ()
        if index is not None:
            stated = stated_of(
                index.row, index.definition, one, entries, answers.statistics, rows=rows
            )
        if index is not None and one.method == "gin":
            keys = stated_keys(index, one, gins, rows=rows)
            stated = (*(value for value in stated if value.true_frac is not None), *keys)
            if keys:
                texts = ", ".join(repr(value.expression) for value in keys)
                differing.setdefault(str(index.row["name"]), KEYS_SAID.format(texts=texts))
        elif index is not None and stated:
            texts = ", ".join(repr(value.expression) for value in stated)
            differing.setdefault(str(index.row["name"]), SAID.format(texts=texts))
        found.append(replace(one, stated=stated))
    return found


def _index_facts(index: IndexRow, live: Mapping[int, AnswerRow], answers: Answers) -> ObservedIndex:
    names = {number: str(column["name"]) for number, column in live.items()}
    oid = int(index.row["oid"])
    size, after = answers.sizes.get(oid), answers.index_after.get(oid)
    delta = differences(answers.index_before.get(oid), after, _INDEX_COUNTERS)
    return replace(
        observed_index(index, names, answers.major),
        main_bytes=None if size is None else size["main_bytes"],
        counters=read(IndexCounters, delta, at="counters"),
        totals=_read_counters(IndexCounters, after or {}, _INDEX_COUNTERS),
    )


def _reloptions(row: AnswerRow) -> dict[str, str]:
    made = {k: str(v) for k, v in (row["reloptions"] or {}).items() if k != "fillfactor"}
    return made | {f"toast.{k}": str(v) for k, v in (row["toast_reloptions"] or {}).items()}


def _toast(row: AnswerRow, answers: Answers) -> ObservedToast | None:
    oid = row["toast_oid"]
    if oid is None:
        return None
    size = answers.sizes.get(oid)
    return ObservedToast(
        main_bytes=None if size is None else size["main_bytes"],
        counters=differences(answers.before.get(oid), answers.after.get(oid), COUNTERS[:3]),
    )


def _free_space(oid: int, answers: Answers) -> tuple[FreeSpace, ...]:
    """Pages by free bytes, each source for itself: [k, pages], from 128 k bytes on."""
    made = []
    for name, rows, evidence in (
        ("page_headers", answers.page_headers, "measured"),
        ("free_space_map", answers.free_space, "measured, as old as the last vacuum"),
        ("rows", answers.samples, "estimated: what dead rows take counts as free"),
    ):
        found = rows.get(oid)
        if found is not None and found.get("rooms"):
            made.append(
                FreeSpace(
                    source=name,
                    evidence=evidence,
                    pages=found["pages"],
                    table_pages=found["table_pages"],
                    class_bytes=128,
                    classes=tuple((room_class, pages) for room_class, pages in found["rooms"]),
                )
            )
    return tuple(made)

"""
Update classes: which columns each UPDATE assigns, and how often, by table.

Four sources, in this order: pg_stat_statements, server log, files of statements, sampled
pg_stat_activity. A table takes the first source that knows an UPDATE of it. Statements that were
not understood, hidden, cut off or whose table is unknown are counted, with the reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from pgheadroom.observe.inside import Inside, find_inside
from pgheadroom.observe.triggers import Trigger, find_triggers
from pgheadroom.sources.log import StatementCounts
from pgheadroom.sources.recording import AnswerRow, Recording
from pgheadroom.sources.statements import Head, NotParsed, Write, heads_of, split, writes_of

SourceName = Literal["pg_stat_statements", "log", "statements", "pg_stat_activity"]
ORDER: tuple[SourceName, ...] = ("pg_stat_statements", "log", "statements", "pg_stat_activity")
_UPDATING = ("update", "upsert", "merge")


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenBy:
    """
    By which order and which conditions a statement takes rows of a queue, by attribute number.

    `ordered`: None for an expression; whether it descends, and whether NULLs lie on the other side.
    """

    ordered: tuple[tuple[int | None, bool, bool], ...]
    conditions: tuple[tuple[str, tuple[int, ...]], ...]
    is_limited: bool
    is_joined: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedHead:
    """Statements that take rows of a queue, and delete them, or only lock them (`select`)."""

    kind: Literal["update", "delete", "select"]
    taken: TakenBy
    calls: int
    rows: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedUpdates:
    """
    Updates of one table that assign the same columns, by attribute number.

    `calls` counts statements; `rows` the rows that they touched, None where the source does not
    say: log, file, activity, and an UPDATE in a WITH, whose rows are not those of the query. Of an
    upsert or MERGE, `rows` has inserted rows too. `wal_bytes` is what the statements wrote, without
    commit records, and `wal_fpi` the number of full-page images in it; None where the source does
    not say. Those of `by_trigger` a trigger assigns, and not the statement. `only`: without the
    tables that inherit. Of statements whose rows lie in several tables `stayed` is how many of
    their rows no partition had to give to another, None for all, and `routed` how many updates of
    one table they are taken to be. `taken`: they find their rows at the head of a queue.
    """

    table_oid: int
    kind: str
    attnums: tuple[int, ...]
    same: tuple[int, ...]
    appended: tuple[int, ...]
    calls: int
    rows: int | None
    source: SourceName
    wal_bytes: int | None = None
    wal_fpi: int | None = None
    by_trigger: tuple[int, ...] = ()
    only: bool = False
    stayed: int | None = None
    routed: float | None = None
    taken: TakenBy | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceReport:
    """What a source gave: statements seen, those that say nothing, by reason, and what it lacks."""

    source: SourceName
    detail: str
    statements: int
    calls: int
    lost: Mapping[str, int]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Classes:
    """
    Classes by table, all of a table from one source; what each source gave; triggers.

    `inside`: what may update a table inside statements, where no source counts it. `heads`: what
    takes rows of a queue and is no update.
    """

    by_table: Mapping[int, tuple[CountedUpdates, ...]]
    reports: tuple[SourceReport, ...]
    triggers: Mapping[int, tuple[Trigger, ...]] = field(default_factory=dict)
    inside: Mapping[int, tuple[Inside, ...]] = field(default_factory=dict)
    heads: Mapping[int, tuple[CountedHead, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Seen:
    """A statement's text with its count; rows are None where the source has none."""

    text: str | None
    calls: int
    rows: int | None
    why_lost: str = ""
    wal_bytes: int | None = None
    wal_fpi: int | None = None


def find_classes(
    recording: Recording, logs: Sequence[StatementCounts], files: Sequence[StatementCounts]
) -> Classes:
    """
    Find the update classes of all tables.

    Args:
        recording: Unmasked, for statements name their tables.
        logs: Of the server, for its statements.
        files: Statements that the user gave.
    """
    names = _Names(recording)
    by_table: dict[int, tuple[CountedUpdates, ...]] = {}
    heads: dict[int, tuple[CountedHead, ...]] = {}
    reports = []
    for source, detail, seen, notes in _sources(recording, logs, files):
        found, taking, report = _of_source(source, detail, seen, names)
        reports.append(replace(report, notes=notes))
        for oid, classes in found.items():
            by_table.setdefault(oid, classes)
        for oid, counted in taking.items():
            heads.setdefault(oid, counted)
    return Classes(
        by_table=by_table,
        reports=tuple(reports),
        triggers=find_triggers(recording),
        inside=find_inside(recording),
        heads=heads,
    )


def with_triggers(
    classes: Sequence[CountedUpdates], triggers: Sequence[Trigger]
) -> tuple[CountedUpdates, ...]:
    """
    Classes with what triggers assign besides.
    """
    made = []
    for found in classes:
        running = [one for one in triggers if one.runs_for(found.attnums)]
        more = {number for one in running for number in one.assigns or ()}
        made.append(
            replace(
                found,
                attnums=tuple(sorted({*found.attnums, *more})),
                same=tuple(number for number in found.same if number not in more),
                appended=tuple(number for number in found.appended if number not in more),
                by_trigger=tuple(sorted(more - ({*found.attnums} - {*found.same}))),
            )
        )
    return tuple(made)


def _sources(
    recording: Recording, logs: Sequence[StatementCounts], files: Sequence[StatementCounts]
) -> Iterator[tuple[SourceName, str, list[_Seen], tuple[str, ...]]]:
    if recording.answered("statement_counters", "end"):
        yield "pg_stat_statements", _info(recording), list(_of_statements(recording)), ()
    for found in logs:
        yield "log", found.source, _counted(found), found.notes
    for found in files:
        yield "statements", "file", _counted(found), found.notes
    activity = list(_of_activity(recording))
    if activity:
        yield "pg_stat_activity", "sampled", activity, ()


def _counted(found: StatementCounts) -> list[_Seen]:
    seen = [_Seen(text, calls, None) for text, calls in found.counts.items()]
    lost = {"its text is cut off": found.cut, **found.lost}
    return seen + [_Seen(None, number, None, why) for why, number in lost.items() if number]


def _info(recording: Recording) -> str:
    before, after = recording.row("statement_info", "start"), recording.row("statement_info", "end")
    if before is None or after is None:
        return "interval"
    if before["stats_reset_epoch_s"] != after["stats_reset_epoch_s"]:
        return "reset inside the interval: counted from the reset on"
    forgotten = int(after["dealloc"]) - int(before["dealloc"])
    return f"interval; {forgotten} times it forgot statements" if forgotten else "interval"


def _of_statements(recording: Recording) -> Iterator[_Seen]:
    """Statements by what they did inside the interval."""

    def identity(row: AnswerRow) -> tuple[object, ...]:
        return row["userid"], row["queryid"], row["toplevel"]

    def sums(moment: str) -> dict[tuple[object, ...], tuple[int, int, int, int]]:
        # Statements that are hidden from the role have no queryid: one entry for all of a user.
        found: dict[tuple[object, ...], tuple[int, int, int, int]] = {}
        for row in recording.rows("statement_counters", moment):
            calls, rows, wal, images = found.get(identity(row), (0, 0, 0, 0))
            found[identity(row)] = (
                calls + int(row["calls"]),
                rows + int(row["rows"]),
                wal + int(row["wal_bytes"]),
                images + int(row["wal_fpi"]),
            )
        return found

    before = sums("start")
    texts = {identity(row): row for row in recording.rows("statement_texts", "end")}
    for who, (calls_end, rows_end, wal_end, images_end) in sums("end").items():
        calls_start, rows_start, wal_start, images_start = before.get(who, (0, 0, 0, 0))
        if calls_end < calls_start:  # forgotten or reset, and seen again
            calls_start = rows_start = wal_start = images_start = 0
        calls, rows = calls_end - calls_start, rows_end - rows_start
        text = texts.get(who)
        if calls <= 0 or text is None:
            continue
        if text["is_hidden"]:
            yield _Seen(None, calls, rows, "its text is hidden from this role")
        else:
            wal, images = wal_end - wal_start, images_end - images_start
            yield _Seen(str(text["query"]), calls, rows, wal_bytes=wal, wal_fpi=images)


def _of_activity(recording: Recording) -> Iterator[_Seen]:
    limit = next(
        (
            int(row["setting"])
            for row in recording.rows("settings")
            if row["name"] == "track_activity_query_size"
        ),
        1024,
    )
    for row in recording.rows("activity"):
        text = str(row["query"])
        if row["is_hidden"]:
            yield _Seen(None, 1, None, "its text is hidden from this role")
        elif len(text.encode()) >= limit - 1:
            yield _Seen(None, 1, None, "its text is cut off")
        else:
            yield _Seen(text, 1, None)


def _of_source(
    source: SourceName, detail: str, seen: Iterable[_Seen], names: _Names
) -> tuple[dict[int, tuple[CountedUpdates, ...]], dict[int, tuple[CountedHead, ...]], SourceReport]:
    lost: Counter[str] = Counter()
    heads: dict[int, list[CountedHead]] = {}
    classes: dict[tuple[object, ...], CountedUpdates] = {}
    statements = calls = 0
    for item in seen:
        statements += 1
        calls += item.calls
        if item.text is None:
            lost[item.why_lost] += item.calls
            continue
        try:
            # An update may stand inside a query that counts its own rows, or beside others in one
            # statement, whose count is that of the outermost: bytes are then nobody's.
            parts = tuple(split(item.text))
            writes = [write for part in parts for write in writes_of(part)]
            alone = len(writes) == 1
            is_counted = sum(not write.is_inner for write in writes) == 1
            taking = [head for part in parts for head in heads_of(part)]
            for head in taking:
                if head.kind != "update" and (named := names.head(head)) is not None:
                    heads.setdefault(named[0], []).append(
                        CountedHead(
                            kind=head.kind,
                            taken=named[1],
                            calls=item.calls,
                            rows=item.rows if alone or not writes else None,
                        )
                    )
            for write in writes:
                if write.kind not in _UPDATING:
                    continue
                made = replace(
                    names.resolve(write),
                    calls=item.calls,
                    rows=item.rows if is_counted and not write.is_inner else None,
                    source=source,
                    wal_bytes=item.wal_bytes if alone else None,
                    wal_fpi=item.wal_fpi if alone else None,
                    taken=names.taken_by(write, taking),
                )
                key = (
                    *(made.table_oid, made.only, made.kind, made.taken),
                    *(made.attnums, made.same, made.appended),
                )
                classes[key] = _sum(classes.get(key), made)
        except NotParsed as error:
            lost[str(error)] += item.calls
    by_table: dict[int, list[CountedUpdates]] = {}
    for made in sorted(classes.values(), key=lambda c: (c.table_oid, -c.calls, c.attnums)):
        by_table.setdefault(made.table_oid, []).append(made)
    report = SourceReport(
        source=source, detail=detail, statements=statements, calls=calls, lost=dict(lost)
    )
    return (
        {oid: tuple(found) for oid, found in by_table.items()},
        {oid: tuple(found) for oid, found in heads.items()},
        report,
    )


def _sum(old: CountedUpdates | None, new: CountedUpdates) -> CountedUpdates:
    if old is None:
        return new
    rows = None if old.rows is None or new.rows is None else old.rows + new.rows
    known = old.wal_bytes is not None and new.wal_bytes is not None
    wal = (old.wal_bytes or 0) + (new.wal_bytes or 0) if known else None
    images = (old.wal_fpi or 0) + (new.wal_fpi or 0) if known else None
    return replace(new, calls=old.calls + new.calls, rows=rows, wal_bytes=wal, wal_fpi=images)


class _Names:
    """From the names in statements to tables and columns."""

    def __init__(self, recording: Recording) -> None:
        self._tables: dict[str, list[tuple[str, int]]] = {}
        for row in recording.rows("tables", "shape"):
            self._tables.setdefault(str(row["name"]), []).append((str(row["schema"]), row["oid"]))
        self._columns: dict[tuple[int, str], int] = {
            (row["oid"], str(row["name"])): row["attnum"]
            for row in recording.rows("columns")
            if not row["is_dropped"]
        }
        self._views: dict[int, bool] = {}  # True: a trigger or rule of its own does it all
        self._behind: dict[tuple[int, int], tuple[int, int]] = {}
        for row in recording.rows("views", "shape"):
            oid = row["oid"]
            self._tables.setdefault(str(row["name"]), []).append((str(row["schema"]), oid))
            self._views[oid] = bool(row["is_own"])
            listed = (row[k] or () for k in ("names", "attnums", "base_oids", "base_attnums"))
            for name, number, base_oid, base_number in zip(*listed, strict=False):
                self._columns[oid, str(name)] = number
                self._behind[oid, number] = (base_oid, base_number)

    def resolve(self, write: Write) -> CountedUpdates:
        """
        The table and the columns of an update, without counts.

        An unqualified name stands for the only table of that name, else for the one in `public`:
        the writer's search_path is not known.
        """
        named = self._table(write.schema, write.table)
        listed = (*write.columns, *write.same, *write.appended)
        places = {name: self._place(named, name) for name in listed}
        oids = {oid for oid, _ in places.values()} or {named}
        if len(oids) > 1 or not oids.isdisjoint(self._views):
            raise NotParsed("it updates a view whose columns are not known to be of one table")
        (oid,) = oids

        def numbers(columns: Iterable[str]) -> tuple[int, ...]:
            return tuple(sorted(places[name][1] for name in columns))

        return CountedUpdates(
            table_oid=oid,
            kind=write.kind,
            attnums=numbers(write.columns),
            same=numbers(write.same),
            appended=numbers(write.appended),
            calls=0,
            rows=None,
            source="statements",
            only=write.only,
        )

    def head(self, head: Head) -> tuple[int, TakenBy] | None:
        """The table of a queue and how its rows are taken; None where it is no table of ours."""
        try:
            oid = self._table(head.schema, head.table)
        except NotParsed:
            return None
        if oid in self._views:
            return None

        def number(name: str | None) -> int | None:
            return None if name is None else self._columns.get((oid, name))

        return oid, TakenBy(
            ordered=tuple(
                (number(one.column), one.descending, one.odd_nulls) for one in head.ordered
            ),
            conditions=tuple(
                (one.kind, tuple(n for n in map(number, one.columns) if n is not None))
                for one in head.conditions
            ),
            is_limited=head.is_limited,
            is_joined=head.is_joined,
        )

    def taken_by(self, write: Write, taking: Sequence[Head]) -> TakenBy | None:
        """How an update finds its rows, where the statement has them from the head of a queue."""
        same = [
            head
            for head in taking
            if head.kind == write.kind and (head.schema, head.table) == (write.schema, write.table)
        ]
        found = self.head(same[0]) if len(same) == 1 else None
        return None if found is None else found[1]

    def _table(self, schema: str | None, name: str) -> int:
        found = self._tables.get(name, [])
        if schema is not None:
            found = [item for item in found if item[0] == schema]
        elif len(found) > 1:
            found = [item for item in found if item[0] == "public"]
            if not found:
                raise NotParsed("its table's name is in several schemas")
        if len(found) != 1:
            raise NotParsed("its target is not a table of this database")
        return found[0][1]

    def _place(self, oid: int, name: str) -> tuple[int, int]:
        """The table and the number of a column, below the views that an update passes through."""
        found = self._columns.get((oid, name))
        for _ in range(len(self._views) + 1):  # a recording may say that two are each other's
            if oid not in self._views:
                break
            if self._views[oid]:
                raise NotParsed("it updates a view whose INSTEAD OF trigger or rule does the rest")
            behind = None if found is None else self._behind.get((oid, found))
            if behind is None:
                raise NotParsed("it updates a view whose columns are not known to be of one table")
            oid, found = behind
        if found is None:
            raise NotParsed("it assigns a column that the table does not have")
        return oid, found

"""
The whole: a recording and its update classes become a profile with what was observed.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

import pgheadroom
from pgheadroom.errors import InputError, ParameterError
from pgheadroom.forms import FieldError
from pgheadroom.observe import server
from pgheadroom.observe.access import read_access
from pgheadroom.observe.ages import Rates, read_ages
from pgheadroom.observe.answers import Answers, read_answers
from pgheadroom.observe.classes import Classes, SourceReport, with_triggers
from pgheadroom.observe.heads import with_heads
from pgheadroom.observe.inside import hint
from pgheadroom.observe.keys import domains, foreign_keys
from pgheadroom.observe.mask import masked
from pgheadroom.observe.naming import profile_name
from pgheadroom.observe.operations import make_operations
from pgheadroom.observe.referring import Referring, with_foreign_keys
from pgheadroom.observe.routes import UPDATE_COUNTERS, Routes, follow_counters
from pgheadroom.observe.sample import fit_skew
from pgheadroom.observe.tables import WatchedTable, make_table, observed_table
from pgheadroom.observe.triggers import triggers_observed
from pgheadroom.profile import Operation, Profile, Run, Snapshot, TableProfile
from pgheadroom.profile.model import SCHEMA_VERSION, ProfileFile
from pgheadroom.profile.observed_server import (
    CREATED,
    DROPPED,
    Access,
    Horizon,
    LeftOut,
    ObservedServer,
    ObservedStatements,
    Partitioned,
    ServerSetting,
)
from pgheadroom.profile.reading import checked_profile
from pgheadroom.profile.workload import OperationKind, by_transaction
from pgheadroom.quoting import called
from pgheadroom.sources.recording import AnswerRow, Recording

_PARTITIONS_NAMED = 3  # of those that came or went
_INDEX_RETRIES_MAX = 40  # a table has seldom more indexes than that; arbitrary


def observe(
    recording: Recording, classes: Classes, *, mask: bool, sampled: bool, only: tuple[str, ...] = ()
) -> Profile:
    """
    Make a profile of a recording.

    Args:
        recording: As it was answered.
        classes: Of the unmasked recording.
        mask: Put pseudonyms for names, and leave texts and literals out.
        sampled: Samples were wanted.
        only: Only these tables, by name or `schema.name`.

    Raises:
        InputError: No table, or none of those that were named.
    """
    tables = _chosen(recording, only)
    clear_access = read_access(recording, sampled=sampled)
    if mask:
        recording = masked(recording)
        chosen = {row["oid"] for row in tables}
        tables = [row for row in recording.rows("tables", "shape") if row["oid"] in chosen]
    access = read_access(recording, sampled=sampled)
    assert len(access.missing) == len(clear_access.missing), "masking hides names, not gaps"
    answers = read_answers(
        recording,
        major=server.version_of(recording).major,
        interval_s=server.interval_s(recording),
    )
    ends = {row["oid"]: row for row in recording.rows("tables", "end")}
    wanted = {row["oid"] for row in tables}
    built = _Builder(recording, classes, answers, wanted, mask=mask)
    for row in tables:
        built.add(row, make=answers, end=ends.get(row["oid"]), ends_known=bool(ends))
    for row in ends.values():
        built.add_new(row, make=answers, is_chosen=not only)
    built.say_passing()
    built.refer()
    return built.profile(_server_observed(recording, classes, built, access, mask=mask))


def _chosen(recording: Recording, only: tuple[str, ...]) -> list[AnswerRow]:
    rows = list(recording.rows("tables", "shape"))
    if not rows:
        raise InputError("the database has no table of its own: nothing to observe")
    if not only:
        return rows
    found = []
    for name in only:
        matching = [r for r in rows if name in (r["name"], f"{r['schema']}.{r['name']}")]
        if not matching:
            raise ParameterError("table", f"{name!r} is not in the database")
        parents = {row["oid"] for row in matching if row["relkind"] == "p"}
        found += [r for r in rows if r in matching or _has_ancestor(r, parents, rows)]
    return [row for row in rows if row in found]


def _has_ancestor(row: AnswerRow, parents: set[int], rows: list[AnswerRow]) -> bool:
    by_oid = {other["oid"]: other for other in rows}
    while row["parent_oid"] is not None and row["parent_oid"] in by_oid:
        if row["parent_oid"] in parents:
            return True
        row = by_oid[row["parent_oid"]]
    return False


class _Builder:
    def __init__(
        self,
        recording: Recording,
        classes: Classes,
        answers: Answers,
        wanted: AbstractSet[int],
        *,
        mask: bool,
    ) -> None:
        self._recording = recording
        self._wanted = wanted
        self._is_masked = mask
        self._classes = classes
        self._routes = Routes(recording, classes, answers)
        self._rows = {row["oid"]: row for row in recording.rows("tables", "shape")}
        self._all = {row["oid"]: row for row in recording.rows("tables", "end")} | self._rows
        self._taken: set[str] = set()
        self.chosen: set[int] = set()
        self._tables: list[TableProfile] = []
        self._watched: dict[int, WatchedTable] = {}
        self.referring = Referring(tables=(), operations=(), left_out={}, assumed=())
        self._operations: list[Operation] = []
        self._server = server.server_section(recording)
        self.left_out: list[LeftOut] = []
        self.changed: list[str] = []
        self.partitioned: list[Partitioned] = []
        self.keyed: str | None = None

    def add(
        self, row: AnswerRow, *, make: Answers, end: AnswerRow | None, ends_known: bool
    ) -> None:
        """Add one table, as far as a profile can hold it."""
        self.chosen.add(row["oid"])
        name = str(row["name"])
        full = called(row["schema"], name)
        if row.get("unreadable"):
            self._leave_out(row, "its name is no text in the database's encoding, shown as \\x..")
            return
        if row["relkind"] == "p":
            self._add_parent(row)
            return
        if ends_known and end is None:
            if self._partitioned_above(row) is None:
                self.changed.append(f"{full} was {DROPPED}")
            self._leave_out(row, DROPPED)
            return
        if end is not None and end["relfilenode"] != row["relfilenode"]:
            self.changed.append(f"{full} was rewritten inside the interval")
        if end is not None and end["parent_oid"] != row["parent_oid"]:
            self._say_moved(full, row["parent_oid"], end["parent_oid"])
        label = profile_name(full, self._taken)
        try:
            self._add_plain(row, make_table(row, make, label=label, taken=self._taken))
        except FieldError as error:
            self._leave_out(row, f"a profile cannot hold it: {error}")

    def add_new(self, row: AnswerRow, *, make: Answers, is_chosen: bool) -> None:
        """
        Say of a table that was made inside the interval that it is not there.

        Args:
            row: At the interval's end, of any table.
            make: Answers by table.
            is_chosen: All tables are; else the partitions of those that are.
        """
        if row["oid"] in self._rows or not (is_chosen or row["parent_oid"] in self.chosen):
            return
        self.chosen.add(row["oid"])
        after = make.after.get(row["oid"]) or {}
        updates, inserts = (after.get(name) or 0 for name in ("n_tup_upd", "n_tup_ins"))
        why = CREATED
        if updates or inserts:
            why += f": its {inserts:,} inserts and {updates:,} updates are in no table here"
        self._leave_out(row, why)

    def _add_plain(self, row: AnswerRow, table: WatchedTable) -> None:
        if not table.columns:
            self._leave_out(row, "it has no columns")
            return
        rates = Rates(
            inserts=table.counters.n_tup_ins or 0,
            updates=table.counters.n_tup_upd or 0,
            deletes=table.counters.n_tup_del or 0,
            xids=server.xids(self._recording),
            interval_s=table.answers.interval_s,
            rows=table.rows,
        )
        skew = fit_skew(
            table.sample,
            rows=table.rows,
            updates=rates.updates,
            inserts=rates.inserts,
            xids=rates.xids,
        )
        routed = self._routes.classes_of(row["oid"])
        triggers = self._classes.triggers.get(row["oid"], ())
        classes = with_triggers(routed.classes, triggers)
        if routed.is_shared:
            classes = follow_counters(
                classes,
                {name: getattr(table.counters, name) for name in UPDATE_COUNTERS},
                _ending_hot(table),
                major=table.answers.major,
            )
        ages = read_ages(
            table.row_ages,
            rates,
            assigned={number for found in classes for number in found.attnums},
            seconds=table.times,
            unique=table.unique,
        )
        counted = self._classes.heads.get(row["oid"], ())
        table, heads = with_heads(table, classes, counted)
        operations, updates = make_operations(
            table, classes, skew, ages, heads, shared=routed.is_shared, interval_s=rates.interval_s
        )
        inside = self._classes.inside.get(row["oid"], ())
        updates = replace(updates, unattributed_hint=hint(updates, inside, masked=self._is_masked))
        observed = observed_table(
            table,
            updates,
            triggers_observed(self._recording, row["oid"], triggers),
            self._full(row["parent_oid"]),
        )
        has_key = table.key_attnum is not None and table.rows > 0
        self._put(row, replace(table.profile, observed=observed), operations, has_key=has_key)

        if self._tables and self._tables[-1].name == table.profile.name:
            self._watched[table.oid] = table

    def refer(self) -> None:
        """Let tables refer to each other as they were seen to, as far as a profile can."""
        self.referring = with_foreign_keys(
            self._recording, self._watched, self._tables, self._operations, self._problem
        )
        self._tables = list(self.referring.tables)
        self._operations = list(self.referring.operations)

    def _say_moved(self, full: str, before: int | None, after: int | None) -> None:
        """A partition, or an heir, has gone from its table, or has come to one."""
        said = {"detached from": self._full(before), "attached to": self._full(after)}
        for what, of in said.items():
            if of is not None:
                self.changed.append(f"{full} was {what} {of} inside the interval")

    def say_passing(self) -> None:
        """Of each partitioned table the partitions that were made or dropped, in one line."""
        for oid, row in self._rows.items():
            topmost = row["relkind"] == "p" and self._partitioned_above(row) is None
            if oid not in self._wanted or not topmost:
                continue
            found = self._routes.passing(oid)
            said = [
                f"{len(oids)} {what} ({self._named(oids)})"
                for oids, what in ((found.came, "came"), (found.went, "went"))
                if oids
            ]
            if said:
                text = f"partitions of {self._full(oid)}: {', '.join(said)} inside the interval"
            elif found.updates:
                text = f"partitions of {self._full(oid)} were there at neither end of the interval"
            else:
                continue
            known = (
                "how many updates these had is not known"
                if found.updates is None
                else f"{found.updates:,} updates were in partitions that are not in the profile"
            )
            self.changed.append(f"{text}; {known}")

    def _named(self, oids: Sequence[int]) -> str:
        names = ", ".join(str(self._full(oid)) for oid in oids[:_PARTITIONS_NAMED])
        more = len(oids) - _PARTITIONS_NAMED
        return f"{names} and {more:,} more" if more > 0 else names

    def _partitioned_above(self, row: AnswerRow) -> int | None:
        """The partitioned table that a table is a partition of, where the profile tells of it."""
        oid = row["parent_oid"]
        above = self._all.get(oid) if oid in self._wanted or oid in self.chosen else None
        return None if above is None or above["relkind"] != "p" else int(above["oid"])

    def _full(self, oid: int | None) -> str | None:
        row = None if oid is None else self._all.get(oid)
        return None if row is None else called(row["schema"], str(row["name"]))

    def _add_parent(self, row: AnswerRow) -> None:
        classes = self._classes.by_table.get(row["oid"], ())
        passing = self._routes.passing(row["oid"])
        self.partitioned.append(
            Partitioned(
                schema=row["schema"],
                name=row["name"],
                oid=row["oid"],
                strategy={"r": "range", "l": "list", "h": "hash"}.get(row["partition_strategy"]),
                parent=self._full(row["parent_oid"]),
                default=self._full(row.get("default_oid")),  # not in files of an older script
                update_classes=len(classes),
                moved_rows=self._routes.moved(row["oid"]) if row["parent_oid"] is None else None,
                came=len(passing.came) or None,
                went=len(passing.went) or None,
                updates_elsewhere=passing.updates,
            )
        )

    def _leave_out(self, row: AnswerRow, why: str) -> None:
        parent = self._full(self._partitioned_above(row))
        self.left_out.append(
            LeftOut(schema=row["schema"], name=row["name"], why=why, parent=parent)
        )

    def _put(
        self, row: AnswerRow, table: TableProfile, operations: list[Operation], *, has_key: bool
    ) -> None:
        """Keep what the profile's own check takes; an index that it refuses goes alone."""
        for _ in range(_INDEX_RETRIES_MAX):
            problem = self._problem((table,), operations)
            if problem is None:
                break
            if problem.path.startswith("operation["):
                number = int(problem.path.split("[")[1].split("]")[0])
                refused = operations.pop(number)
                table = _said(table, f"{refused.kind} left out: {problem.problem}")
            elif problem.path.startswith("table[0].indexes["):
                number = int(problem.path.split("[")[2].split("]")[0])
                table = _without_index(table, number, f"left out: {problem.problem}")
            elif problem.path.startswith("table[0].pages") and table.pages:
                table = _said(table, f"its pages left out: {problem.problem}")
                table = replace(table, pages=(), rows_per_page=None)
            else:
                self._leave_out(row, f"a profile cannot hold it: {problem}")
                return
        else:
            self._leave_out(row, "a profile cannot hold it")
            return
        self._tables.append(table)
        self._operations += operations
        if self.keyed is None and has_key:
            self.keyed = table.name

    def _problem(
        self, tables: Sequence[TableProfile], operations: Sequence[Operation]
    ) -> FieldError | None:
        probe = Operation(table=tables[0].name, kind="insert")
        try:
            checked_profile(
                ProfileFile(
                    schema_version=SCHEMA_VERSION,
                    server=self._server,
                    tables=tuple(tables),
                    operations=tuple(operations) or (probe,),
                    run=Run(operations=1),
                )
            )
        except FieldError as error:
            return error
        return None

    def profile(self, observed: ObservedServer) -> Profile:
        """
        All tables as one profile.

        Raises:
            InputError: No table is left.
        """
        if not self._tables:
            why = "; ".join(sorted({item.why for item in self.left_out})) or "no table"
            raise InputError(f"no table can be put into a profile: {why}")
        operations = self._operations
        is_written = any(map(_is_written, self._tables))
        observed = replace(observed, is_idle=not operations and not is_written)
        length_s = max(round(observed.interval_s), 1)
        run = Run(duration_s=length_s, snapshots=_held(observed.horizon))
        if operations:
            # A transaction has the weight of its first operation.
            weight = sum(turn[0].weight for turn in by_transaction(operations))
            rate_per_s = round(min(max(weight / length_s, 0.001), 1e9), 6)
            run = replace(run, rate_per_s=rate_per_s)
        else:
            # A profile has at least one operation; this one changes nothing.
            kind: OperationKind = "select" if self.keyed is not None else "insert"
            operations = [Operation(table=self.keyed or self._tables[0].name, kind=kind)]
            why = "nothing was written inside the interval"
            if is_written:
                why = "no table that was written can be played, for rows are found by a key"
            said = f"{why}: one {kind} stands as the operation"
            observed = replace(observed, assumed=(*observed.assumed, said))
        return checked_profile(
            ProfileFile(
                schema_version=SCHEMA_VERSION,
                server=replace(self._server, observed=observed),
                tables=tuple(self._tables),
                operations=tuple(operations),
                run=run,
            )
        )


def _ending_hot(table: WatchedTable) -> frozenset[int]:
    """Columns whose assignment ends HOT: also by what is generated from them."""
    ending = {n for n, column in table.columns.items() if column.name in table.ending_hot}
    reaching = {n for n in table.columns if not ending.isdisjoint(table.computed_from([n]))}
    return frozenset(ending | reaching)


def _is_written(table: TableProfile) -> bool:
    assert table.observed is not None, "made by observe"
    counters = table.observed.counters
    return any((counters.n_tup_ins, counters.n_tup_upd, counters.n_tup_del))


def _said(table: TableProfile, what: str) -> TableProfile:
    """The table with one more thing that is taken of its updates."""
    assert table.observed is not None, "made by observe"
    updates = table.observed.updates
    updates = replace(updates, assumed=(*(updates.assumed or ()), what))
    return replace(table, observed=replace(table.observed, updates=updates))


def _without_index(table: TableProfile, number: int, why: str) -> TableProfile:
    """The table without an index that a profile cannot hold, and why it is not there."""
    assert table.observed is not None, "made by observe"
    differs = {**(table.observed.differs or {}), table.indexes[number].name: why}
    return replace(
        table,
        indexes=table.indexes[:number] + table.indexes[number + 1 :],
        observed=replace(table.observed, differs=differs),
    )


def _held(horizon: Horizon) -> tuple[Snapshot, ...]:
    """Where the horizon stood still, as snapshots that another session holds."""
    return tuple(
        Snapshot(start_frac=part.start_frac, length_frac=part.length_frac)
        for part in horizon.stood_still
    )


def _server_observed(
    recording: Recording, classes: Classes, built: _Builder, access: Access, *, mask: bool
) -> ObservedServer:
    identity = recording.row("identity", "shape") or {}
    cluster = recording.row("cluster", "shape") or {}
    instant = recording.row("instant", "end") or {}
    version = server.version_of(recording)
    turns = any(operation.transaction is not None for operation in built.referring.operations)
    own = ", but for what a row goes through, which is one" if turns else ""
    assumed = [f"each operation is a transaction of its own{own}, by one client"]
    assumed += built.referring.assumed
    if version.major > server.VERIFIED_MAX:
        assumed.append(f"PostgreSQL {version.major} is as its release candidate 1 was")
    if instant.get("in_recovery"):
        assumed.append(
            "a standby counts no writes: rates are unknown, observe the primary for them"
        )
    return ObservedServer(
        tool_version=pgheadroom.__version__,
        observed_at=time.strftime(
            "%Y-%m-%dT%H:%M:%SZ", time.gmtime(float(instant.get("at_epoch_s", 0)))
        ),
        interval_s=round(server.interval_s(recording), 3),
        passes=len(recording.ticks()),
        server_version=str(identity.get("server_version")),
        database=str(identity.get("database")),
        database_oid=int(identity["database_oid"]),
        system_identifier=cluster.get("system_identifier"),
        role=identity.get("role"),
        in_recovery=instant.get("in_recovery"),
        broken=tuple(server.broken(recording)),
        changed=tuple(built.changed),
        left_out=tuple(built.left_out),
        partitioned=tuple(built.partitioned),
        statements=tuple(map(_report, classes.reports)),
        counters=server.counters(recording),
        horizon=server.horizon(recording),
        settings={
            row["name"]: ServerSetting(
                setting=row["setting"], unit=row["unit"], source=row["source"]
            )
            for row in recording.rows("settings")
        },
        modules={e["name"]: e["version"] for e in recording.rows("extensions")},
        assumed=tuple(assumed),
        access=access,
        masked=mask,
        domains=domains(recording),
        foreign_keys=foreign_keys(recording, built.chosen, built.referring.left_out),
        is_idle=False,
    )


def _report(report: SourceReport) -> ObservedStatements:
    return ObservedStatements(
        source=report.source,
        detail=report.detail,
        statements=report.statements,
        calls=report.calls,
        not_understood=report.lost,
        notes=report.notes,
    )

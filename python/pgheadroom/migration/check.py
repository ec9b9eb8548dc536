"""
Each table that a migration changes, before and after by the twin, and what that costs.

The twin is calibrated on the observation first, as for advice. What statements assign is taken to
change, since nobody has counted changes of columns that no index has: the figures are the most
that a migration takes, and an application that sets columns to their own value loses less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import pgheadroom
from pgheadroom.advise.advice import Evidence, Point, Value, mid
from pgheadroom.advise.calibrate import Fitted, calibrate, observed_shares
from pgheadroom.advise.curve import curve_of
from pgheadroom.advise.policy import DEFAULT_POLICY
from pgheadroom.advise.runs import Runner
from pgheadroom.advise.scenario import SAMPLE_PAGES, Scenario
from pgheadroom.advise.updates import Updates, updates_of
from pgheadroom.errors import InputError, TwinError
from pgheadroom.migration.actions import Statement
from pgheadroom.migration.shape import (
    Altered,
    Catalog,
    ColumnSet,
    FillfactorSet,
    IndexAdded,
    IndexDropped,
    Note,
    edited,
)
from pgheadroom.predict import minor_version
from pgheadroom.profile import Change, Operation, Profile
from pgheadroom.profile.check import check
from pgheadroom.types import Interval
from pgheadroom.units import show_bytes

Verdict = Literal["loses HOT", "gains HOT", "as before", "not judged"]
HOT_LOSS_MIN = 0.01
"""A HOT share that falls by less than a point is no finding."""

_DAY_S = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCheck:
    """
    One table that the migration changes.

    Attributes:
        table: Its name in the profile.
        schema: Of the server.
        name: Of the server.
        lines: Of the statements that change it.
        verdict: What becomes of HOT.
        text: Why, in a sentence or two.
        evidence: Where the figures are from.
        updates_per_s: As observed.
        assigned_frac: Updates that assign a column that ends HOT only from now on; None where no
            statement is known.
        assigning: The classes of updates that do, as `{"columns": [...], "frac": ...}`.
        unknown_frac: Updates that no known statement explains.
        fillfactor_now, fillfactor_then: Percent.
        hot_frac_now, hot_frac_then: In the steady state.
        wal_bytes_per_update_now, wal_bytes_per_update_then: Images included.
        wal_bytes_per_day_now, wal_bytes_per_day_then: At the observed rate.
        index_bytes_now, index_bytes_then: Main forks of its B-trees.
        assumed: What was taken for granted.
    """

    table: str
    schema: str
    name: str
    lines: tuple[int, ...]
    verdict: Verdict
    text: str
    evidence: Evidence
    updates_per_s: float
    assigned_frac: float | None
    unknown_frac: float | None
    fillfactor_now: int
    fillfactor_then: int
    hot_frac_now: Value = None
    hot_frac_then: Value = None
    wal_bytes_per_update_now: Value = None
    wal_bytes_per_update_then: Value = None
    wal_bytes_per_day_now: Value = None
    wal_bytes_per_day_then: Value = None
    index_bytes_now: Value = None
    index_bytes_then: Value = None
    assigning: tuple[Mapping[str, Any], ...] = ()
    assumed: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The file's form."""
        return {item.name: _plain(getattr(self, item.name)) for item in fields(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationCheck:
    """What a migration would do; `findings` are the tables that lose HOT by it."""

    server: str
    statements: tuple[Statement, ...]
    tables: tuple[TableCheck, ...]
    notes: tuple[Note, ...]

    @property
    def findings(self) -> tuple[TableCheck, ...]:
        """Tables that lose HOT."""
        return tuple(found for found in self.tables if found.verdict == "loses HOT")

    def to_json(self) -> dict[str, Any]:
        """The file's form."""
        problems = [s for s in self.statements if s.problem is not None]
        return {
            "schema_version": 1,
            "kind": "migration_check",
            "tool_version": pgheadroom.__version__,
            "server": self.server,
            "statements": len(self.statements),
            "not_understood": [
                {"line": s.line, "text": s.text[:200], "why": s.problem} for s in problems
            ],
            "findings": len(self.findings),
            "tables": [table.to_json() for table in self.tables],
            "notes": [{"line": n.line, "table": n.table, "text": n.text} for n in self.notes],
        }


def _plain(value: Any) -> Any:
    if isinstance(value, Interval):
        return value.to_json()
    return list(value) if isinstance(value, tuple) else value


def check_migration(
    profile: Profile,
    statements: Sequence[Statement],
    *,
    executor: Executor | None = None,
    say: Callable[[int, int, str], None] | None = None,
) -> MigrationCheck:
    """
    Check a migration against an observed profile.

    Args:
        profile: Made by `observe`.
        statements: Of the migration.
        executor: Where the twin runs; a thread a core when None.
        say: Called with tables done, tables in all, and the table that is at work.

    Raises:
        InputError: Not an observed profile, or one that is masked, idle or of a standby; no
            statement, or none that is understood.
    """
    if profile.server.observed is None or any(t.observed is None for t in profile.tables):
        raise InputError(
            "the profile was not made by `pgheadroom observe`: a check needs the updates that "
            "were observed"
        )
    if profile.server.observed.get("masked"):
        raise InputError(
            "the profile is masked, so no name of the migration is in it: expected one that "
            "`pgheadroom observe` wrote without --mask"
        )
    if profile.server.observed.get("in_recovery"):
        raise InputError(
            "the profile is of a standby, which counts no writes: expected one of the primary"
        )
    if profile.server.observed.get("is_idle"):
        raise InputError(
            "nothing was written inside the profile's interval, so every migration would pass: "
            "expected one that was observed under load"
        )
    if not statements:
        raise InputError("the migration has no statement: expected DDL")
    if all(s.problem is not None and not s.actions for s in statements):
        first = statements[0]
        raise InputError(
            f"no statement of the migration is understood; the first, line {first.line}: "
            f"{first.problem}"
        )
    catalog = Catalog(profile)
    catalog.follow(statements)
    altered = [found for found in catalog.altered.values() if found.edits]
    made = []
    with Runner(executor) as runner:
        for n, found in enumerate(altered):
            if say is not None:
                say(n, len(altered), found.table.name)
            made.append(_Table(profile, found, runner).check())
    if say is not None and altered:
        say(len(altered), len(altered), "")
    order = ("loses HOT", "not judged", "gains HOT", "as before")
    made.sort(key=lambda table: (order.index(table.verdict), -table.updates_per_s))
    return MigrationCheck(
        server=profile.server.version,
        statements=tuple(statements),
        tables=tuple(made),
        notes=tuple(catalog.notes),
    )


class _Table:
    """One table on its way."""

    def __init__(self, profile: Profile, altered: Altered, runner: Runner) -> None:
        self._profile = profile
        self._altered = altered
        self._table = altered.table
        self._runner = runner
        self._version = minor_version(profile, None, {})
        self._updates = updates_of(self._table, self._version.major)
        self._added = [e for e in altered.edits if isinstance(e, IndexAdded)]
        self._after = edited(self._table, altered.edits)

    def check(self) -> TableCheck:
        updates = self._updates
        if updates is None:
            counters = (self._table.observed or {})["counters"]
            if counters.get("n_tup_upd") == 0:
                text = "nothing updated it inside the interval, so no HOT is lost"
                return self._made("as before", text, "measured")
            return self._made("not judged", "its updates were not counted", "assumed")
        shares = observed_shares(self._table)
        assert shares is not None, "counters that updates_of takes"
        try:
            fitted = calibrate(
                self._profile,
                self._table,
                shares,
                str(self._version),
                self._runner,
                sample_pages=SAMPLE_PAGES,
            )
            if fitted is None:
                return self._estimated(updates, "no operation of it could be made out")
            now, then = self._points(fitted, updates)
        except (TwinError, InputError) as error:
            return self._estimated(updates, f"the twin cannot play it: {error}")
        return self._judged(updates, fitted, now, then)

    def _points(self, fitted: Fitted, updates: Updates) -> tuple[Point, Point]:
        scenario = fitted.scenario
        changed = replace(
            scenario.profile,
            tables=(edited(scenario.table, self._altered.edits),),
            workload=replace(
                scenario.profile.workload,
                operations=tuple(self._operations(scenario, updates)),
            ),
        )
        check(changed)

        def point(played: Scenario, fillfactor: int) -> Point:
            (found,) = curve_of(
                self._table,
                played,
                (fillfactor,),
                str(self._version),
                DEFAULT_POLICY,
                self._runner,
                off=fitted.off,
            )
            return found.point

        return (
            point(scenario, self._table.fillfactor),
            point(replace(scenario, profile=changed), self._after.fillfactor),
        )

    def _operations(self, scenario: Scenario, updates: Updates) -> Iterable[Operation]:
        """
        As they are; updates that no statement explains stay ones of a column without an index.

        The profile has them assign some column that no index had, which a new one may have.
        """
        labels = self._altered.labels
        known = [{labels.get(name) for name in found.columns} for found in updates.classes]
        new = {name for edit in self._added for name in (*edit.index.columns, *edit.index.include)}
        blocked = {
            name for index in self._after.indexes for name in (*index.columns, *index.include)
        }
        free = [
            column.name
            for column in self._table.columns
            if column.name not in blocked and column.width is None
        ]
        for operation in scenario.profile.workload.operations:
            columns = {change.column for change in operation.sets}
            stands_in = operation.kind == "update" and not any(columns <= k for k in known)
            if not stands_in or not columns & new:
                yield operation
            elif free:
                yield replace(operation, sets=(Change(column=free[-1]),))
            else:
                sets = tuple(replace(change, changed_frac=0.0) for change in operation.sets)
                yield replace(operation, sets=sets)

    def _newly_blocking(self, updates: Updates) -> frozenset[str]:
        """Columns, as in the catalog, that end HOT only from now on."""
        major = self._version.major
        new = [e for e in self._added if e.index.method != "brin" or major < 16]
        return frozenset(name for edit in new for name in edit.columns) - updates.blocking

    def _assigned_frac(self, updates: Updates) -> float | None:
        if not updates.classes:
            return None
        new = self._newly_blocking(updates)
        rows = sum(found.rows for found in updates.classes if found.columns & new)
        return min(rows / updates.count, 1.0)

    def _estimated(self, updates: Updates, why: str) -> TableCheck:
        """By the counters and the statements alone."""
        assigned = self._assigned_frac(updates)
        hot = updates.hot / updates.count
        if assigned is None or any(not isinstance(e, IndexAdded) for e in self._altered.edits):
            return self._made("not judged", why, "assumed", hot_frac_now=hot)
        then = max(hot - assigned, 0.0)
        verdict: Verdict = "loses HOT" if hot - then >= HOT_LOSS_MIN else "as before"
        text = f"{self._said(updates)} Estimated by statements alone, for {why}."
        return self._made(verdict, text, "estimated", hot_frac_now=hot, hot_frac_then=then)

    def _judged(self, updates: Updates, fitted: Fitted, now: Point, then: Point) -> TableCheck:
        before, after = mid(now.hot_frac), mid(then.hot_frac)
        loss = before - after
        per_day = float((self._table.observed or {})["per_s"]["n_tup_upd"] or 0.0) * _DAY_S
        verdict: Verdict = "as before"
        if loss >= HOT_LOSS_MIN:
            verdict = "loses HOT"
        elif -loss >= HOT_LOSS_MIN:
            verdict = "gains HOT"
        elif self._added and not updates.classes and self._newly_blocking(updates):
            verdict = "not judged"
        wal = (mid(now.wal_bytes_per_update), mid(then.wal_bytes_per_update))
        text = self._said(updates)
        if verdict != "not judged":
            text += f" HOT {before:.0%} -> {after:.0%}, WAL {wal[0]:,.0f} -> {wal[1]:,.0f} bytes"
            more = (wal[1] - wal[0]) * per_day
            text += f" an update ({'+' if more >= 0 else '-'}{show_bytes(abs(more))} a day)"
            text += (
                ", if every value that is assigned changes." if loss > 0 and self._added else "."
            )
        if not fitted.calibration.agrees:
            note = fitted.calibration.note
            text += f" {note[0].upper()}{note[1:]}."
        return self._made(
            verdict,
            text,
            "predicted",
            hot_frac_now=now.hot_frac,
            hot_frac_then=then.hot_frac,
            wal_bytes_per_update_now=now.wal_bytes_per_update,
            wal_bytes_per_update_then=then.wal_bytes_per_update,
            wal_bytes_per_day_now=_times(now.wal_bytes_per_update, per_day),
            wal_bytes_per_day_then=_times(then.wal_bytes_per_update, per_day),
            index_bytes_now=now.index_bytes,
            index_bytes_then=then.index_bytes,
        )

    def _said(self, updates: Updates) -> str:
        """What is done to the table, and which updates that concerns."""
        parts = []
        new = self._newly_blocking(updates)
        for edit in self._altered.edits:
            if isinstance(edit, IndexAdded):
                parts.append(self._index_said(edit, updates, new))
            elif isinstance(edit, IndexDropped):
                parts.append(f"line {edit.line}: {edit.name} goes")
            elif isinstance(edit, FillfactorSet):
                parts.append(
                    f"line {edit.line}: fillfactor {self._table.fillfactor} -> {edit.fillfactor} "
                    "for new pages"
                )
            elif edit.is_new:
                parts.append(
                    f"line {edit.line}: column {edit.name} makes each row longer that is written"
                )
            else:
                parts.append(f"line {edit.line}: column {edit.name} gets another type")
        said = "; ".join(parts)
        return f"{said[0].upper()}{said[1:]}."

    def _index_said(self, edit: IndexAdded, updates: Updates, new: frozenset[str]) -> str:
        text = f"line {edit.line}: {edit.kind} {edit.name} over {', '.join(edit.columns)}"
        if edit.index.method == "brin" and self._version.major >= 16:
            return f"{text}, which ends no HOT from 16 on"
        mine = new & set(edit.columns)
        if not mine:
            return f"{text}, which other indexes have already"
        if not updates.classes:
            return (
                f"{text}, and no statement is known that would tell how often updates assign them"
            )
        rows = sum(found.rows for found in updates.classes if found.columns & mine)
        unknown, named = updates.unknown / updates.count, ", ".join(sorted(mine))
        text += f"; {min(rows / updates.count, 1.0):.0%} of the updates assign {named}"
        return text + (f", {unknown:.0%} are known to no statement" if unknown >= 0.005 else "")

    def _made(self, verdict: Verdict, text: str, evidence: Evidence, **figures: Any) -> TableCheck:
        observed, updates = self._table.observed or {}, self._updates
        set_ = [edit for edit in self._altered.edits if isinstance(edit, ColumnSet)]
        assumed = [f"{edit.name} is filled in every row" for edit in set_ if edit.is_new]
        assumed += [edit.assumed for edit in set_ if edit.assumed]
        new = frozenset() if updates is None else self._newly_blocking(updates)
        classes = () if updates is None else updates.classes
        return TableCheck(
            table=self._table.name,
            schema=str(observed["schema"]),
            name=str(observed["name"]),
            lines=tuple(sorted({edit.line for edit in self._altered.edits})),
            verdict=verdict,
            text=text[0].upper() + text[1:],
            evidence=evidence,
            updates_per_s=float(observed["per_s"].get("n_tup_upd") or 0.0),
            assigned_frac=None if updates is None else self._assigned_frac(updates),
            unknown_frac=None if updates is None else updates.unknown / updates.count,
            fillfactor_now=self._table.fillfactor,
            fillfactor_then=self._after.fillfactor,
            assigning=tuple(
                {"columns": sorted(found.columns), "frac": found.rows / updates.count}
                for found in classes
                if updates is not None and found.columns & new
            ),
            assumed=tuple(assumed),
            **figures,
        )


def _times(value: Value, factor: float) -> Value:
    if isinstance(value, Interval):
        return Interval(
            low=value.low * factor,
            mid=value.mid * factor,
            high=value.high * factor,
            level=value.level,
        )
    return None if value is None else value * factor

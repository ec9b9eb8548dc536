"""
Each table that a migration changes: what becomes of HOT by rule, what that costs, what it locks.

The verdict follows from the set of updates that can be HOT (`pgheadroom.advise.hot`), before and
after: `loses HOT` if a real share of the updates leaves it, `gains HOT` only if a real share joins
it or the fillfactor falls. The twin is asked for figures alone, and for a fillfactor; a figure that
contradicts the rule is not given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import pgheadroom
from pgheadroom.advise.advice import Evidence, Value
from pgheadroom.advise.hot import Outcome, Part, outcome, parts_of
from pgheadroom.advise.runs import Runner
from pgheadroom.advise.updates import Assigning, Updates, updates_of
from pgheadroom.errors import InputError
from pgheadroom.migration.actions import Statement, Target
from pgheadroom.migration.catalog import Catalog
from pgheadroom.migration.figures import Figures, figures
from pgheadroom.migration.said import (
    NONE_IS_LOST,
    REAL_SHARE,
    edits_said,
    figures_said,
    rule_said,
)
from pgheadroom.migration.shape import Altered, ColumnSet, Note, edited
from pgheadroom.migration.work import DOES, Effect
from pgheadroom.predict import minor_version
from pgheadroom.profile import Profile, TableProfile
from pgheadroom.types import Interval

Verdict = Literal["loses HOT", "gains HOT", "as before", "not judged"]
HOT_CHANGE_MIN = 0.01
"""A played HOT share that changes by less than a point has not changed."""

REWRITE_OVER_BYTES = 1024**3
"""A smaller table is rewritten, scanned or indexed while writers can wait; as design says."""

PLAYED_MAX = 8
"""Tables for which figures are played, those with the most updates: an answer is bounded so."""

_DAY_S = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Worked:
    """
    What one statement does to a table while it runs.

    Attributes:
        line: Of the statement.
        lock: The strongest on the table while it runs, in PostgreSQL's words.
        lock_since: The line of an earlier statement of its transaction that took that lock; None:
            it does itself.
        effort: What takes the longer the bigger the table is.
        stops_writers: The lock conflicts with that of a writer.
        what: What is done.
        does: The effort, for people.
        beside: What else waits, for people.
        waits_for: The table that is read meanwhile and decides how long it takes, where that is
            another one: `{"table": ..., "main_bytes": ...}`.
        unless: What would make it otherwise, where that is not known.
        main_bytes: The table's size as observed.
        is_over: It stops writers for as long as a table over the limit takes.
    """

    line: int
    lock: str
    lock_since: int | None
    effort: str
    stops_writers: bool
    what: str
    does: str
    beside: str | None
    waits_for: Mapping[str, Any] | None
    unless: str | None
    main_bytes: int | None
    is_over: bool

    def to_json(self) -> dict[str, Any]:
        """The file's form."""
        return {item.name: getattr(self, item.name) for item in fields(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCheck:
    """
    One table that the migration changes.

    Attributes:
        table: Its name in the profile.
        schema: Of the server.
        name: Of the server.
        lines: Of the statements that concern it.
        verdict: What becomes of HOT.
        text: Why, in a sentence or two.
        evidence: Where the figures are from; the verdict is the rule's.
        updates_per_s: As observed.
        can_be_hot_now, can_be_hot_then: Updates that change no column that an index reads, by
            the rule; None where no statement is known.
        lost_frac, gained_frac: Updates that can be HOT no more, or from now on.
        lost_by: What ends HOT: `{"index": ..., "column": ..., "reads": ..., "assigned": ...}`.
        assigned_frac: Updates that assign a column that ends HOT only from now on; None where no
            statement is known.
        assigning: The classes of updates that do, as `{"columns": [...], "frac": ...}`.
        unknown_frac: Updates that no known statement explains.
        fillfactor_now, fillfactor_then: Percent.
        hot_frac_measured: Of the interval.
        hot_frac_now, hot_frac_then: In the long run, as played; estimated from the measured share
            where nothing was played.
        wal_bytes_per_update_now, wal_bytes_per_update_then: Without full-page images.
        wal_bytes_per_day_now, wal_bytes_per_day_then: At the observed rate.
        assumed: What was taken for granted.
        work: What statements lock, rewrite and scan.
    """

    table: str
    schema: str
    name: str
    lines: tuple[int, ...]
    verdict: Verdict
    text: str
    evidence: Evidence
    updates_per_s: float
    can_be_hot_now: float | None = None
    can_be_hot_then: float | None = None
    lost_frac: float | None = None
    gained_frac: float | None = None
    lost_by: tuple[Mapping[str, str], ...] = ()
    assigned_frac: float | None
    unknown_frac: float | None
    fillfactor_now: int
    fillfactor_then: int
    hot_frac_measured: float | None = None
    hot_frac_now: Value = None
    hot_frac_then: Value = None
    wal_bytes_per_update_now: Value = None
    wal_bytes_per_update_then: Value = None
    wal_bytes_per_day_now: Value = None
    wal_bytes_per_day_then: Value = None
    assigning: tuple[Mapping[str, Any], ...] = ()
    assumed: tuple[str, ...] = ()
    work: tuple[Worked, ...] = ()

    @property
    def over(self) -> tuple[Worked, ...]:
        """Statements that stop writers of a table over the limit."""
        return tuple(found for found in self.work if found.is_over)

    def to_json(self) -> dict[str, Any]:
        """The file's form."""
        return {item.name: _plain(getattr(self, item.name)) for item in fields(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationCheck:
    """
    What a migration would do.

    `findings` are the tables that lose HOT; `strict_findings` what else a careful user has to look
    into, in words: what is not judged or not understood, and tables that writers have to wait for.
    """

    server: str
    statements: tuple[Statement, ...]
    tables: tuple[TableCheck, ...]
    notes: tuple[Note, ...]
    rewrite_over_bytes: int

    @property
    def findings(self) -> tuple[TableCheck, ...]:
        """Tables that lose HOT."""
        return tuple(found for found in self.tables if found.verdict == "loses HOT")

    @property
    def strict_findings(self) -> tuple[str, ...]:
        """What fails a strict check besides."""
        open_ = [f"{found.name}: not judged" for found in self.tables if _is_open(found)]
        open_ += [f"line {n.line}: {n.table or n.text}" for n in self.notes if not n.is_judged]
        open_ += [f"line {s.line}: not understood" for s in self.statements if s.problem]
        open_ += [
            f"{found.name}, line {work.line}: writers wait"
            for found in self.tables
            for work in found.over
        ]
        return tuple(dict.fromkeys(open_))

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
            "strict_findings": list(self.strict_findings),
            "rewrite_over_bytes": self.rewrite_over_bytes,
            "tables": [table.to_json() for table in self.tables],
            "notes": [
                {"line": n.line, "table": n.table, "text": n.text, "is_judged": n.is_judged}
                for n in self.notes
            ],
        }


def _is_open(found: TableCheck) -> bool:
    return found.verdict == "not judged"


def _plain(value: Any) -> Any:
    if isinstance(value, Interval | Worked):
        return value.to_json()
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def check_migration(
    profile: Profile,
    statements: Sequence[Statement],
    *,
    table: str | None = None,
    rewrite_over_bytes: int = REWRITE_OVER_BYTES,
    executor: Executor | None = None,
    say: Callable[[int, int, str], None] | None = None,
) -> MigrationCheck:
    """
    Check a migration against an observed profile.

    Args:
        profile: Made by `observe`.
        statements: Of the migration.
        table: The only table to answer for, by its name or schema.name before the migration.
        rewrite_over_bytes: Size over which a table whose writers have to wait is a finding.
        executor: Where the twin runs; a thread a core when None.
        say: Called with tables done, tables in all, and the table that is at work.

    Raises:
        InputError: Not an observed profile, or one that is masked, idle or of a standby; no
            statement, or none that is understood; a table that the profile does not have.
    """
    _refuse(profile, statements)
    chosen = None if table is None else _chosen(profile, table)
    catalog = Catalog(profile)
    catalog.follow(statements)
    altered = [
        found
        for found in catalog.altered.values()
        if (found.edits or found.effects or found.open)
        and (chosen is None or found.table.name in chosen)
    ]
    altered.sort(key=lambda found: -_updates_per_s(found.table))
    made: list[TableCheck] = []
    with Runner(executor) as runner:
        for n, found in enumerate(altered):
            if say is not None:
                say(n, len(altered), found.table.name)
            played = sum(other.wal_bytes_per_update_then is not None for other in made)
            asked = runner if played < PLAYED_MAX else None
            made.append(_Table(profile, found, asked, rewrite_over_bytes).check())
    if say is not None and altered:
        say(len(altered), len(altered), "")
    order = ("loses HOT", "not judged", "gains HOT", "as before")
    made.sort(key=lambda found: (order.index(found.verdict), -found.updates_per_s))
    return MigrationCheck(
        server=profile.server.version,
        statements=tuple(statements),
        tables=tuple(made),
        notes=tuple(_notes(catalog.notes, table)),
        rewrite_over_bytes=rewrite_over_bytes,
    )


def _updates_per_s(table: TableProfile) -> float:
    assert table.observed is not None, "the caller has checked that tables are observed"
    return float(table.observed.per_s.get("n_tup_upd") or 0.0)


def _notes(notes: Sequence[Note], table: str | None) -> list[Note]:
    if table is None:
        return list(notes)
    bare = table.rpartition(".")[2]
    return [n for n in notes if n.table is None or n.table in (table, bare)]


def _chosen(profile: Profile, table: str) -> frozenset[str]:
    """Tables of the profile with that name, of a partitioned one its partitions."""
    schema, _, name = table.rpartition(".")
    wanted = Target(schema=schema or None, name=name)
    found = Catalog(profile).names.tables_of(wanted)
    if not found:
        listed = sorted(t.name if t.observed is None else t.observed.name for t in profile.tables)
        raise InputError(
            f"--table {table} is not in the profile: expected one of {', '.join(listed[:20])}"
        )
    return frozenset(found)


def _refuse(profile: Profile, statements: Sequence[Statement]) -> None:
    if profile.server.observed is None or any(t.observed is None for t in profile.tables):
        raise InputError(
            "the profile was not made by `pgheadroom observe`: a check needs the updates that "
            "were observed"
        )
    if profile.server.observed.masked:
        raise InputError(
            "the profile is masked, so no name of the migration is in it: expected one that "
            "`pgheadroom observe` wrote without --mask"
        )
    if profile.server.observed.in_recovery:
        raise InputError(
            "the profile is of a standby, which counts no writes: expected one of the primary"
        )
    if profile.server.observed.is_idle:
        raise InputError(
            "nothing was written inside the profile's interval, so every migration would pass: "
            "expected one that was observed under load"
        )
    if not statements:
        raise InputError("the migration has no statement: expected DDL")
    # Code that nobody sees into (DO, CALL, a function) is SQL: said, and a finding under --strict.
    if not any(s.is_sql for s in statements):
        first = statements[0]
        raise InputError(
            f"no statement of the migration is understood; the first, line {first.line}: "
            f"{first.problem}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What the rule says of a table, and why."""

    verdict: Verdict
    why: str


def judge(updates: Updates, altered: Altered, found: Outcome) -> Judged:
    """
    The rule's verdict, without a fillfactor.

    Args:
        updates: Of the table.
        altered: What is done to it.
        found: The set of updates that can be HOT, before and after.
    """
    said = "; ".join(dict.fromkeys(f"line {line}: {text}" for line, text in altered.open))
    if found.lost_frac >= REAL_SHARE:
        return Judged(verdict="loses HOT", why=said)
    if said:
        return Judged(verdict="not judged", why=said)
    unknown = updates.unknown / updates.count
    if unknown >= REAL_SHARE and newly_blocking(altered):
        why = "no statement is known that would tell what its updates assign"
        if updates.classes:
            why = f"{unknown:.0%} of its updates are known to no statement, and may assign any"
        return Judged(verdict="not judged", why=why)
    if found.gained_frac >= REAL_SHARE:
        return Judged(verdict="gains HOT", why="")
    return Judged(verdict="as before", why="")


def newly_blocking(altered: Altered) -> frozenset[str]:
    """Columns that were there when the table was observed and end HOT only from now on."""
    found = altered.after.blocking - altered.before.blocking
    if any(index.whole_row for index in altered.after.indexes):
        found |= {"*"}
    observed = altered.table.observed
    names = set() if observed is None else {column.name for column in observed.columns}
    computed = {
        name
        for column in found
        for name in altered.after.generated.get(column, frozenset())
        if name in names
    }
    return (found & (names | {"*"})) | computed


class _Table:
    """One table on its way."""

    def __init__(
        self, profile: Profile, altered: Altered, runner: Runner | None, rewrite_over_bytes: int
    ) -> None:
        self._profile = profile
        self._altered = altered
        self._table = altered.table
        self._runner = runner
        self._over = rewrite_over_bytes
        self._version = minor_version(profile, None, {})
        self._updates = updates_of(self._table, self._version.major)
        self._after = edited(self._table, altered.edits)

    def check(self) -> TableCheck:
        updates = self._updates
        altered = self._altered
        if not altered.edits and not altered.open:
            return self._made("as before", "Nothing changes that HOT depends on.", "measured")
        if updates is None:
            observed = self._table.observed
            assert observed is not None, "the caller has checked that tables are observed"
            if observed.counters.get("n_tup_upd") == 0:
                text = "Nothing updated it inside the interval, so no HOT is lost."
                return self._made("as before", text, "measured")
            return self._made("not judged", "Its updates were not counted.", "assumed")
        parts = parts_of(updates, altered.before)
        found = _named(outcome(parts, altered.before, altered.after), altered)
        judged = judge(updates, altered, found)
        said = [edits_said(altered, updates, newly_blocking(altered))]
        figured = self._figures(judged.verdict, parts)
        verdict = judged.verdict
        if verdict == "as before" and self._after.fillfactor != self._table.fillfactor:
            verdict, why = self._by_room(figured)
            judged = Judged(verdict=verdict, why=why)
        said.append(rule_said(verdict, judged.why, found))
        assigned = sum(one.rows for one in self._assigning()) / updates.count
        if found.lost_frac < REAL_SHARE <= assigned and not judged.why:
            said.append(NONE_IS_LOST)
        return self._with_figures(verdict, said, updates, found, figured)

    def _figures(self, verdict: Verdict, parts: Sequence[Part]) -> Figures | str | None:
        """Played where the verdict leaves something to ask."""
        is_room = self._after.fillfactor != self._table.fillfactor
        if (
            verdict == "not judged"
            or self._altered.open
            or (verdict == "as before" and not is_room)
        ):
            return None
        if self._runner is None:
            return f"{PLAYED_MAX} tables that are updated more often were played"
        return figures(self._profile, self._altered, parts, str(self._version), self._runner)

    def _by_room(self, figured: Figures | str | None) -> tuple[Verdict, str]:
        """What another fillfactor does, as played: less room never gains, more never loses."""
        if not isinstance(figured, Figures):
            return "not judged", f"room on pages is played, and {figured}"
        now, then = _mid(figured.hot_now), _mid(figured.hot_then)
        assert now is not None and then is not None, "shares of a table with updates"  # noqa: PT018
        if self._after.fillfactor < self._table.fillfactor:
            return ("gains HOT" if then - now >= HOT_CHANGE_MIN else "as before"), ""
        return ("loses HOT" if now - then >= HOT_CHANGE_MIN else "as before"), ""

    def _with_figures(
        self,
        verdict: Verdict,
        said: list[str],
        updates: Updates,
        found: Outcome,
        figured: Figures | str | None,
    ) -> TableCheck:
        hot = updates.hot / updates.count
        known = bool(updates.classes)
        # What is open may change the rest: nothing is said of then, but what is lost is lost.
        judged = known and not self._altered.open and verdict != "not judged"
        facts: dict[str, Any] = {
            "hot_frac_measured": hot,
            "can_be_hot_now": found.before if known else None,
            "can_be_hot_then": found.after if judged else None,
            "lost_frac": found.lost_frac if judged or verdict == "loses HOT" else None,
            "gained_frac": found.gained_frac if judged else None,
            "lost_by": tuple(
                {"index": b.index, "column": b.column, "reads": b.reads, "assigned": b.assigned}
                for b in dict.fromkeys(b for _, blocking in found.lost for b in blocking)
            ),
        }
        if isinstance(figured, Figures) and _agrees(verdict, figured):
            per_day = _updates_per_s(self._table) * _DAY_S
            facts |= {
                "hot_frac_now": figured.hot_now,
                "hot_frac_then": figured.hot_then,
                "wal_bytes_per_update_now": figured.wal_now,
                "wal_bytes_per_update_then": figured.wal_then,
                "wal_bytes_per_day_now": _times(figured.wal_now, per_day),
                "wal_bytes_per_day_then": _times(figured.wal_then, per_day),
            }
            said.append(figures_said(figured, per_day))
            return self._made(verdict, _sentences(said), "predicted", **facts)
        if verdict in ("loses HOT", "gains HOT") and found.before > 0 and not self._altered.open:
            facts["hot_frac_then"] = min(hot * found.after / found.before, 1.0)
            said.append(f"HOT {hot:.0%} measured, about {facts['hot_frac_then']:.0%} then.")
            said.append(f"WAL is not foreseen: {figured}." if isinstance(figured, str) else "")
        evidence: Evidence = "estimated" if found.lost else "measured"
        return self._made(verdict, _sentences(said), evidence, **facts)

    def _made(self, verdict: Verdict, text: str, evidence: Evidence, **facts: Any) -> TableCheck:
        observed, updates, altered = self._table.observed, self._updates, self._altered
        assert observed is not None, "the caller has checked that tables are observed"
        columns = [edit for edit in altered.edits if isinstance(edit, ColumnSet)]
        is_played = "wal_bytes_per_update_then" in facts
        assumed = [f"{e.name} is filled in every row" for e in columns if e.is_new and is_played]
        assumed += [edit.assumed for edit in columns if edit.assumed and is_played]
        classes = () if updates is None else updates.classes
        assigning = self._assigning()
        lines = {edit.line for edit in altered.edits} | {line for line, _ in altered.effects}
        return TableCheck(
            table=self._table.name,
            schema=observed.schema,
            name=observed.name,
            lines=tuple(sorted(lines | {line for line, _ in altered.open})),
            verdict=verdict,
            text=text,
            evidence=evidence,
            updates_per_s=_updates_per_s(self._table),
            assigned_frac=(
                None
                if updates is None or not classes
                else min(sum(c.rows for c in assigning) / updates.count, 1.0)
            ),
            unknown_frac=None if updates is None else updates.unknown / updates.count,
            fillfactor_now=self._table.fillfactor,
            fillfactor_then=self._after.fillfactor,
            assigning=tuple(
                {
                    "columns": sorted(altered.spelled(column) for column in c.columns),
                    "frac": c.rows / updates.count,
                }
                for c in assigning
                if updates is not None
            ),
            assumed=tuple(assumed),
            work=tuple(self._worked(line, effect) for line, effect in altered.effects),
            **facts,
        )

    def _assigning(self) -> list[Assigning]:
        """Classes of updates that assign a column that ends HOT only from now on."""
        new, after = newly_blocking(self._altered), self._altered.after
        classes = () if self._updates is None else self._updates.classes
        return [c for c in classes if (c.columns | set(after.computed(c.columns))) & new]

    def _worked(self, line: int, effect: Effect) -> Worked:
        observed = self._table.observed
        size = None if observed is None else observed.main_bytes
        own = None if size is None else int(size)
        other = effect.waits_for
        read = own if other is None else effect.read_bytes
        waits_for = None if other is None else {"table": str(other), "main_bytes": read}
        return Worked(
            line=line,
            lock=effect.lock,
            lock_since=effect.lock_since,
            effort=effect.effort,
            stops_writers=effect.stops_writers,
            what=effect.what,
            does=effect.does or DOES[effect.effort],
            beside=effect.beside,
            waits_for=waits_for,
            unless=effect.unless,
            main_bytes=own,
            is_over=effect.is_long and read is not None and read > self._over,
        )


def _named(found: Outcome, altered: Altered) -> Outcome:
    """With the names that columns have in the end."""
    lost = tuple(
        (part, tuple(altered.named(blocker) for blocker in blocking))
        for part, blocking in found.lost
    )
    return replace(found, lost=lost)


def _sentences(said: Sequence[str]) -> str:
    return " ".join(sentence for sentence in said if sentence)


def _mid(value: Value) -> float | None:
    return value.mid if isinstance(value, Interval) else value


def _agrees(verdict: Verdict, figured: Figures) -> bool:
    """Whether the played figures say what the rule says; else the rule stands alone."""
    now, then = _mid(figured.hot_now), _mid(figured.hot_then)
    if now is None or then is None:
        return False
    if verdict == "loses HOT":
        return then < now
    if verdict == "gains HOT":
        return then > now
    return abs(then - now) < HOT_CHANGE_MIN


def _times(value: Value, factor: float) -> Value:
    if isinstance(value, Interval):
        return Interval(
            low=value.low * factor,
            mid=value.mid * factor,
            high=value.high * factor,
            level=value.level,
        )
    return None if value is None else value * factor

"""
Each table that a migration changes: what becomes of HOT by rule, what that costs, what it locks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor

import pgheadroom
from pgheadroom.advise.runs import Runner
from pgheadroom.advise.updates import updates_per_s
from pgheadroom.errors import InputError, ParameterError
from pgheadroom.migration.actions import MigrationStatement, NamedRelation
from pgheadroom.migration.answer import MigrationCheck, NotUnderstood, TableCheck
from pgheadroom.migration.catalog import NamedTables
from pgheadroom.migration.following import follow
from pgheadroom.migration.judging import PLAYED_MAX, TableJudging
from pgheadroom.migration.shape import Note
from pgheadroom.profile import Profile
from pgheadroom.progress import Progress

REWRITE_OVER_BYTES = 1024**3
"""A smaller table is rewritten, scanned or indexed while writers can wait; as design says."""

FIGURES_CPU_S = 0.4
"""Processor time after which no figures are begun that no verdict needs: about what the rules and
the profile take, beside which an answer has imports of one second and more."""


def check_migration(
    profile: Profile,
    statements: Sequence[MigrationStatement],
    *,
    table: str | None = None,
    rewrite_over_bytes: int = REWRITE_OVER_BYTES,
    executor: Executor | None = None,
    say: Progress | None = None,
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
    catalog = NamedTables(profile)
    follow(catalog, statements)
    altered = [
        found
        for found in catalog.altered.values()
        if (found.edits or found.effects or found.open)
        and (chosen is None or found.table.name in chosen)
    ]
    altered.sort(key=lambda found: -updates_per_s(found.table))
    made: list[TableCheck] = []
    with Runner(executor, budget_s=FIGURES_CPU_S) as runner:
        for n, found in enumerate(altered):
            if say is not None:
                say(n, len(altered), found.table.name)
            played = sum(other.wal_bytes_per_update_then is not None for other in made)
            judging = TableJudging(profile, found, runner, rewrite_over_bytes)
            made.append(judging.check(is_playing=played < PLAYED_MAX))
    if say is not None and altered:
        say(len(altered), len(altered), "")
    order = ("loses HOT", "not judged", "gains HOT", "as before")
    made.sort(key=lambda found: (order.index(found.verdict), -found.updates_per_s))
    notes = _notes([*_of_psql(profile, statements), *catalog.notes], table)
    return MigrationCheck(
        tool_version=pgheadroom.__version__,
        server=profile.server.version,
        statements=sum(not s.is_command for s in statements),
        commands=sum(s.is_command and s.tool is None for s in statements),
        not_understood=tuple(
            NotUnderstood(line=s.line, text=s.text[:200], why=s.problem)
            for s in statements
            if s.problem is not None
        ),
        findings=sum(one.verdict == "loses HOT" for one in made),
        strict_findings=_strict_findings(statements, made, notes),
        rewrite_over_bytes=rewrite_over_bytes,
        tables=tuple(made),
        notes=tuple(notes),
    )


def _strict_findings(
    statements: Sequence[MigrationStatement], tables: Sequence[TableCheck], notes: Sequence[Note]
) -> tuple[str, ...]:
    """What fails a strict check beside tables that lose HOT."""
    open_ = [f"{found.name}: not judged" for found in tables if found.not_judged]
    open_ += [f"line {n.line}: {n.table or n.text}" for n in notes if not n.is_judged]
    open_ += [f"line {s.line}: not understood" for s in statements if s.problem]
    open_ += [
        f"{found.name}, line {work.line}: writers wait" for found in tables for work in found.over
    ]
    return tuple(dict.fromkeys(open_))


def _of_psql(profile: Profile, statements: Sequence[MigrationStatement]) -> Iterator[Note]:
    """What is said of psql's commands that run nothing: once; of another database; of a tool."""
    assert profile.server.observed is not None, "refused before"
    database = profile.server.observed.database
    quiet = []
    for statement in statements:
        if statement.tool is not None:
            yield Note(line=statement.line, table=None, text=statement.tool, is_judged=True)
        elif statement.connects and statement.connects != database:
            text = (
                f"what follows goes to database {statement.connects}, and the profile is of "
                f"{database}"
            )
            yield Note(line=statement.line, table=None, text=text)
        elif statement.is_command:
            quiet.append(statement)
    if quiet:
        named = ", ".join(sorted({statement.text.split()[0] for statement in quiet}))
        what = "command of psql runs" if len(quiet) == 1 else "commands of psql run"
        text = f"{len(quiet)} {what} nothing and {'is' if len(quiet) == 1 else 'are'} left out: "
        yield Note(line=quiet[0].line, table=None, text=f"{text}{named}", is_judged=True)


def _notes(notes: Sequence[Note], table: str | None) -> list[Note]:
    if table is None:
        return list(notes)
    bare = table.rpartition(".")[2]
    return [n for n in notes if n.table is None or n.table in (table, bare)]


def _chosen(profile: Profile, table: str) -> frozenset[str]:
    """Tables of the profile with that name, of a partitioned one its partitions."""
    schema, _, name = table.rpartition(".")
    wanted = NamedRelation(schema=schema or None, name=name)
    found = NamedTables(profile).names.tables_of(wanted)
    if not found:
        listed = sorted(t.name if t.observed is None else t.observed.name for t in profile.tables)
        raise ParameterError(
            "table", f"{table} is not in the profile: expected one of {', '.join(listed[:20])}"
        )
    return frozenset(found)


def _refuse(profile: Profile, statements: Sequence[MigrationStatement]) -> None:
    if profile.server.observed is None or any(t.observed is None for t in profile.tables):
        raise InputError(
            "the profile was not made by `pgheadroom observe`: a check needs the updates that "
            "were observed"
        )
    if profile.server.observed.masked:
        raise InputError(
            "the profile is masked, so no name of the migration is in it: expected one that "
            "`pgheadroom observe` wrote without `mask`",
            mentions=("mask",),
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
    listed = [statement for statement in statements if not statement.is_command]
    if not listed:
        raise InputError("the migration has no statement: expected DDL")
    # Code that nobody sees into (DO, CALL, a function) is SQL: said, and a finding under --strict.
    if not any(s.is_sql for s in listed):
        first = listed[0]
        raise InputError(
            f"no statement of the migration is understood; the first, line {first.line}: "
            f"{first.problem}"
        )

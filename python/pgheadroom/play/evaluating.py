"""
Expressions and predicates of indexes that the twin cannot evaluate, evaluated by a server.

Expressions are foreign input: PostgreSQL takes them as part of an index first, and so immutable
ones alone; a role that is no superuser evaluates them, each statement within a time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pgheadroom.errors import InputError, LabError
from pgheadroom.play.found_values import TURNS_MAX, turns_of
from pgheadroom.play.load import create_types
from pgheadroom.play.sampled_values import ROUNDS_MAX, SampledRows, Update
from pgheadroom.profile import Profile, TableProfile
from pgheadroom.profile.spelling import canonical_type
from pgheadroom.profile.stating import EVALUATED, with_stated
from pgheadroom.profile.tables import Stated
from pgheadroom.progress import Say
from pgheadroom.servers import Host, find_programs, is_connection
from pgheadroom.types import PgVersion

if TYPE_CHECKING:
    import psycopg

TIMEOUT_S = 60
"""What one statement may take; arbitrary."""
_ROLE = "evaluator"
_DATABASE = "expressions"
_SERVERS_FAULT = ("08", "53", "57", "58", "XX")  # connection, resources, operator, system, internal


def evaluated(profile: Profile, *, server: str | None = None, say: Say | None = None) -> Profile:
    """
    A profile that states what a throw-away server makes of its indexes' expressions.

    What the twin evaluates and what the file states stays as it is; where nothing is left no server
    is started. What was found stands under `assumed`.

    Args:
        profile: The profile.
        server: Version, or a folder with server programs; it wins over the profile's version.
        say: Called with what is being evaluated, for progress.

    Raises:
        InputError: The server does not take an expression, or cannot evaluate it for a row.
        ServerNotFound: That version is not at hand.
        LabError: The server failed, or a statement took too long.
    """
    open_ones = [n for n, table in enumerate(profile.tables) if any(_unknown(table))]
    if not open_ones:
        return profile
    spec = server or profile.server.version
    if is_connection(spec):
        raise InputError(
            "expressions are evaluated on a throw-away server: expected a version or a folder with "
            "server programs, not a connection"
        )
    programs = find_programs(spec)
    tables, notes = list(profile.tables), dict(profile.assumed)
    with Host(programs, label="evaluate") as host:
        cluster = host.cluster("evaluate")
        cluster.start({"fsync": "off", "max_parallel_workers_per_gather": "0"})
        with cluster.connect() as admin:
            admin.execute(f"CREATE ROLE {_ROLE} LOGIN".encode())
            admin.execute(f"CREATE DATABASE {_DATABASE} OWNER {_ROLE}".encode())
        with cluster.connect(_DATABASE) as admin:
            create_types(admin, profile)
        with cluster.connect(_DATABASE, user=_ROLE) as connection:
            connection.execute(f"SET statement_timeout = '{TIMEOUT_S}s'".encode())
            for n in open_ones:
                tables[n], said = _table(connection, profile, n, programs.version, say)
                notes |= said
        cluster.stop("immediate")
    return replace(profile, tables=tuple(tables), assumed=notes)


def _unknown(table: TableProfile) -> Iterator[Stated]:
    return (stated for index in table.indexes for stated in index.stated if stated.assumed)


def _table(
    connection: psycopg.Connection[Any],
    profile: Profile,
    number: int,
    version: PgVersion,
    say: Say | None,
) -> tuple[TableProfile, Mapping[str, str]]:
    """A table with what was found, and what is to be said of it by the paths of its indexes."""
    table, path = profile.tables[number], f"table[{number}]"
    updates = _updates(profile, table)
    inserted, turns = _inserted(profile, table), _turns(profile, table, updates)
    with _said_of(version, path):
        rows = SampledRows(
            connection,
            f"sampled_{number}",
            table,
            updates,
            rounds=_rounds(profile, table, updates),
        )
    indexes, notes = list(table.indexes), {}
    for n, index in enumerate(table.indexes):
        place, found, left = f"{path}.indexes[{n}]", [], []
        for stated in (one for one in index.stated if one.assumed):
            if say is not None:
                say(f"evaluate {stated.expression} of {index.name}")
            with _said_of(version, f"{place}: {stated.expression!r}"):
                values = rows.evaluated(stated, index)
                if not isinstance(values, str) and values.true_frac is not None:
                    values = rows.found(values, inserted=inserted, turns=turns)
            if isinstance(values, str):
                left.append(f"{values}, and may be anything")
            else:
                found.append(values)
        if found:
            by_text = {stated.expression: stated for stated in found}
            indexes[n] = replace(
                index, stated=tuple(by_text.get(one.expression, one) for one in index.stated)
            )
        if found or left:
            notes[f"{place}.stated"] = _said(found, left, rows, version)
    return with_stated(replace(table, indexes=tuple(indexes)), path), notes


def _updates(profile: Profile, table: TableProfile) -> list[Update]:
    """Updates of a table's rows, and how many rows of each a transaction of the run has."""
    transactions = profile.workload.transactions()
    weights = sum(transaction[0].weight for transaction in transactions)
    return [
        Update(
            sets=operation.sets,
            rows=transaction[0].weight / weights * operation.rows_mean,
        )
        for transaction in transactions
        for operation in transaction
        if operation.table == table.name and operation.sets
    ]


def _transactions(profile: Profile) -> int:
    run = profile.workload.run
    return run.operations or round((run.duration_s or 0.0) * (run.rate_per_s or 0.0))


def _each(profile: Profile, table: TableProfile, updates: Sequence[Update]) -> float:
    """How often the run updates a row of the table, on average."""
    count = _transactions(profile)
    return sum(update.rows for update in updates) * count / max(table.rows, 1)


def _rounds(profile: Profile, table: TableProfile, updates: Sequence[Update]) -> int:
    """How often the run updates a row of the table; once where nobody says how long it is."""
    each = _each(profile, table, updates)
    return min(max(math.ceil(each), 1), ROUNDS_MAX) if updates else 0


def _turns(profile: Profile, table: TableProfile, updates: Sequence[Update]) -> int:
    """How often a row of the table may be updated; as often as is followed where some are hot."""
    picks = [operation.pick for operation in profile.workload.operations if operation.sets]
    if any(pick is not None and pick.distribution != "uniform" for pick in picks):
        return TURNS_MAX
    return turns_of(table.rows, _each(profile, table, updates)) if updates else 0


def _inserted(profile: Profile, table: TableProfile) -> int:
    """Rows of the table that the run inserts, at most."""
    transactions = profile.workload.transactions()
    weights = sum(transaction[0].weight for transaction in transactions)
    rows = sum(
        transaction[0].weight * operation.rows_max
        for transaction in transactions
        for operation in transaction
        if operation.table == table.name and operation.kind in ("insert", "upsert")
    )
    expected = rows / weights * _transactions(profile)
    return math.ceil(expected + 5 * math.sqrt(expected))


@contextmanager
def _said_of(version: PgVersion, what: str) -> Iterator[None]:
    """A server's refusal as an error that names the place."""
    import psycopg  # noqa: PLC0415 - loads libpq, for nothing where no server is asked

    try:
        yield
    except InputError as error:
        raise InputError(f"{what}: {error}") from error
    except psycopg.errors.QueryCanceled as error:
        raise LabError(
            f"{what}: PostgreSQL {version} was not done within {TIMEOUT_S} s; state what its "
            "values are (docs/profile.md)"
        ) from error
    except psycopg.Error as error:
        said = error.diag.message_primary or " ".join(str(error).split())
        state = error.sqlstate or "08"  # without one the connection was lost
        kind = LabError if state.startswith(_SERVERS_FAULT) else InputError
        raise kind(f"{what}: PostgreSQL {version} says: {said}") from error


def _changes(stated: Stated, rows: SampledRows) -> str:
    if not rows.changes(stated):
        return "no update changes what it reads"
    return f"{_percent(stated.changed_frac)} of the updates of what it reads change it"


def _said(
    found: Sequence[Stated], left: Sequence[str], rows: SampledRows, version: PgVersion
) -> str:
    whole = "all rows" if rows.taken == rows.table.rows else f"{rows.taken:,} rows"
    turns = {0: "", 1: " and an update of each", 2: " and two updates of each"}
    more = turns.get(rows.rounds, f" and {rows.rounds} updates of each")
    figures = [_figures(stated, rows) for stated in found]
    return f"{EVALUATED}PostgreSQL {version} for {whole}{more}: " + "; ".join([*figures, *left])


def _figures(stated: Stated, rows: SampledRows) -> str:
    changes = _changes(stated, rows)
    if stated.true_frac is not None:
        known = len(stated.true_for) + len(stated.false_for)
        has = f", known for {known:,} values that it reads" if known else ""
        share = f"is true for {_percent(stated.true_frac)} of them"
        return f"{stated.expression!r} {share}, {changes}{has}"
    found = rows.types[stated.expression]
    is_stand_in = canonical_type(found) != stated.type
    parts = [f"{found} (stated as {stated.type})" if is_stand_in else stated.type]
    if stated.width is not None:
        low, high = stated.width.min_bytes, stated.width.max_bytes
        parts.append(f"{low} bytes" if low == high else f"{low} to {high} bytes")
    parts.append(f"{stated.ndistinct:,} different value{'s' if stated.ndistinct != 1 else ''}")
    if stated.null_frac:
        parts.append(f"{_percent(stated.null_frac)} NULL")
    return f"{stated.expression!r} is {', '.join(parts)}, {changes}"


def _percent(frac: float) -> str:
    return f"{100 * frac:.3g} %"

"""
Whether the server will find rows as the profile says, asked before the run.

The order in which a statement touches pages depends on its plan; a run with another plan would be
an answer to another question.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pgheadroom import quoting
from pgheadroom.errors import MeasurementInvalid
from pgheadroom.play.scripts import FIND_SETTINGS, Statement, statements
from pgheadroom.profile import ForeignKey, Profile

if TYPE_CHECKING:
    import psycopg


def check_plans(connection: psycopg.Connection[Any], profile: Profile) -> dict[str, str]:
    """
    Ask for the generic plan of every operation that finds rows.

    Args:
        connection: A session with the settings of the run's clients.
        profile: The profile, loaded.

    Returns:
        What was found, by the operation's path: for the record of the run.

    Raises:
        MeasurementInvalid: A plan is not the one that `find` names.
    """
    found = {}
    for n, statement in enumerate(statements(profile)):
        if statement.operation.pick is None or statement.operation.kind == "upsert":
            continue
        found[f"operation[{n}]"] = _check(connection, profile, n, statement)
    for n, table in enumerate(profile.tables):
        for k, foreign_key in enumerate(table.foreign_keys):
            path = f"table[{n}].foreign_keys[{k}]"
            found[path] = _check_foreign_key(connection, profile, path, foreign_key)
    return found


def _check_foreign_key(
    connection: psycopg.Connection[Any], profile: Profile, path: str, foreign_key: ForeignKey
) -> str:
    """The plan of the query that checks a new value, as `RI_FKey_check` puts it."""
    parent = profile.table(foreign_key.references)
    assert parent.key is not None
    assert parent.key_index is not None, "a table that is referred to has a key"
    for name, value in FIND_SETTINGS["index"].items():
        connection.execute(f"SET {name} = {value}".encode())
    sql = (
        f"SELECT 1 FROM ONLY {quoting.identifier(parent.name)} x "
        f"WHERE {quoting.identifier(parent.key.name)} = $1 FOR KEY SHARE OF x"
    )
    scans = _scans(connection, sql, 1)
    wanted = f"Index Scan using {quoting.identifier(parent.key_index.name)}"
    if scans != [wanted]:
        raise MeasurementInvalid(
            f"{path} would look for rows of {parent.name} by {' and '.join(scans) or 'no scan'}, "
            f"expected {wanted}: change the indexes"
        )
    return wanted


def _check(
    connection: psycopg.Connection[Any], profile: Profile, n: int, statement: Statement
) -> str:
    operation = statement.operation
    index = profile.table(operation.table).key_index
    assert index is not None, "an operation that finds rows has a key"
    for name, value in FIND_SETTINGS[operation.find].items():
        connection.execute(f"SET {name} = {value}".encode())
    counter = iter(range(1, 10_000))
    sql = re.sub(r":[kmdg]\d+(_\d+)?\b", lambda _: f"${next(counter)}", statement.sql)
    count = next(counter) - 1
    scans = _scans(connection, sql, count)
    by_index = f"Index Scan using {quoting.identifier(index.name)}"
    expected = {
        "index": [by_index],
        "seqscan": ["Seq Scan"],
        "bitmap": ["Bitmap Heap Scan", f"Bitmap {by_index}"],
    }[operation.find]
    wanted = " and ".join(expected)
    pick = operation.pick
    if pick is not None and pick.using is not None:
        walk = f"Index Scan using {quoting.identifier(pick.using)}"
        if sorted(scans) != sorted([*expected, walk]):
            raise MeasurementInvalid(
                f"operation[{n}] ({operation.kind} on {operation.table}) would find the head by "
                f"{' and '.join(scans) or 'no scan'}, expected {walk} without a sort, and then "
                f"{wanted}: change using and where, or the indexes"
            )
        return f"{wanted}, {walk}"
    if scans != expected:
        raise MeasurementInvalid(
            f"operation[{n}] ({operation.kind} on {operation.table}) would find its rows by "
            f"{' and '.join(scans) or 'no scan'}, expected {wanted}: change find, or the indexes "
            "(of two by which a row costs the same PostgreSQL takes the one listed later)"
        )
    return wanted


def _scans(connection: psycopg.Connection[Any], sql: str, count: int) -> list[str]:
    """The scans of a statement's generic plan; it has so many parameters."""
    connection.execute(f"PREPARE checked AS {sql}".encode())
    nulls = f" ({', '.join(['NULL'] * count)})" if count else ""
    row = connection.execute(f"EXPLAIN (FORMAT JSON) EXECUTE checked{nulls}".encode()).fetchone()
    connection.execute(b"DEALLOCATE checked")
    assert row is not None, "EXPLAIN returns one row"
    return [
        f"{node['Node Type']} using {quoting.identifier(node['Index Name'])}"
        if "Index Name" in node
        else str(node["Node Type"])
        for node in _nodes(row[0][0]["Plan"])
        if "Scan" in node["Node Type"] or "Sort" in node["Node Type"]
    ]


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for inner in plan.get("Plans", []):
        # What only makes a value (of several elements) finds no rows.
        if inner.get("Parent Relationship") != "SubPlan" or _reads(inner):
            yield from _nodes(inner)


def _reads(plan: dict[str, Any]) -> bool:
    """Whether a plan reads a relation."""
    return "Relation Name" in plan or any(_reads(inner) for inner in plan.get("Plans", []))


_PGBENCH_KEYS = {"pgbench_accounts": "aid", "pgbench_tellers": "tid", "pgbench_branches": "bid"}


def read_pgbench_plans(connection: psycopg.Connection[Any]) -> dict[str, str]:
    """
    How pgbench's own scripts find a row, by table, under generic plans.

    The planner is free here, as it is for everybody's pgbench: tables of one or two pages are
    scanned, the others are entered by their index.

    Args:
        connection: A session with the settings of the run's clients.

    Raises:
        MeasurementInvalid: The accounts, which are never small, are not found by their index.
    """
    found = {}
    for table, key in _PGBENCH_KEYS.items():
        sql = f"PREPARE checked(int) AS SELECT FROM {table} WHERE {key} = $1"
        connection.execute(sql.encode())
        row = connection.execute(b"EXPLAIN (FORMAT JSON) EXECUTE checked (1)").fetchone()
        connection.execute(b"DEALLOCATE checked")
        assert row is not None, "EXPLAIN returns one row"
        node = row[0][0]["Plan"]
        index = f" using {quoting.identifier(node['Index Name'])}" if "Index Name" in node else ""
        found[table] = f"{node['Node Type']}{index}"
    wanted = f"Index Scan using {quoting.identifier('pgbench_accounts_pkey')}"
    if found["pgbench_accounts"] != wanted:
        raise MeasurementInvalid(
            f"pgbench would find its accounts by {found['pgbench_accounts']}, expected {wanted}: "
            "change the settings of costs"
        )
    return found

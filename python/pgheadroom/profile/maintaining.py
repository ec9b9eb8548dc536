"""
Commands of maintenance beside a profile's tables: what fits together.
"""

from __future__ import annotations

from pgheadroom.forms import FieldError, fail
from pgheadroom.profile.model import Profile
from pgheadroom.profile.workload import PGBENCH_TABLES, Maintenance, Run

NEW_FILES = frozenset({"vacuum full", "reindex", "truncate", "cluster"})
"""Commands after which a table, or an index, has another file."""


def check_maintenance(profile: Profile) -> None:
    """
    Refuse commands that no server would take, or that are not played.

    Raises:
        FieldError: Names the field to change.
    """
    run = profile.workload.run
    for n, command in enumerate(run.maintenance):
        path = f"run.maintenance[{n}]"
        _check_time(path, command, run)
        if command.freeze and command.do != "vacuum":
            fail(f"{path}.freeze", True, 'false, or do = "vacuum"')
        if command.parallel and command.do != "vacuum":
            fail(f"{path}.parallel", command.parallel, '0, or do = "vacuum"')
        if command.index is not None and command.do not in ("reindex", "cluster"):
            fail(f"{path}.index", command.index, 'none, or do = "reindex" or "cluster"')
        if command.do == "cluster" and command.index is None:
            raise FieldError(f"{path}.index", "missing, expected the index whose order it is")
        _check_table(profile, path, command)
        if profile.may_autovacuum:
            fail(
                f"{path}.do",
                command.do,
                "no command beside autovacuum, whose counters after it are not modelled",
            )


def _check_time(path: str, command: Maintenance, run: Run) -> None:
    if (command.after is None) == (command.at_frac is None):
        found = "neither" if command.after is None else "both"
        raise FieldError(path, f"found {found} of after and at_frac, expected one")
    if command.after is None:
        return
    if run.operations is None or run.clients > 1:
        fail(
            f"{path}.after",
            command.after,
            "at_frac: transactions are counted in a run of one client and so many operations",
        )
    if command.after > run.operations:
        fail(f"{path}.after", command.after, f"at most run.operations, which is {run.operations}")


def _check_table(profile: Profile, path: str, command: Maintenance) -> None:
    if command.table not in profile.table_names:
        fail(f"{path}.table", command.table, f"one of {', '.join(profile.table_names)}")
    if command.table in PGBENCH_TABLES and profile.workload.builtin is not None:
        own = f"{command.table}_pkey"
        if command.index not in (None, own) or (
            command.index is not None and command.table == "pgbench_history"
        ):
            fail(f"{path}.index", command.index, "an index of the table")
        return
    table = profile.table(command.table)
    if command.index is not None:
        known = {index.name: index for index in table.indexes}
        index = known.get(command.index)
        if index is None:
            fail(f"{path}.index", command.index, f"an index of {table.name}")
        if command.do == "cluster" and (index.method != "btree" or index.where is not None):
            fail(f"{path}.index", command.index, "a B-tree over all rows, to cluster by")
    has_brin = any(index.method == "brin" for index in table.indexes)
    if has_brin and command.do not in ("analyze", "vacuum"):
        fail(
            f"{path}.table",
            table.name,
            "a table without a BRIN index: what the command writes to it is not modelled",
        )
    if command.do == "truncate" and any(index.method == "hash" for index in table.indexes):
        fail(
            f"{path}.table",
            table.name,
            "a table without a hash index: its buckets follow from widths that ANALYZE has found",
        )
    if table.unlogged and command.do in NEW_FILES:
        fail(
            f"{path}.table",
            table.name,
            "a logged table: the records of an unlogged one's empty copy are not modelled",
        )
    referring = [
        other.name
        for other in profile.tables
        if any(key.references == table.name for key in other.foreign_keys)
    ]
    if command.do == "truncate" and referring:
        fail(f"{path}.table", table.name, f"a table that {referring[0]} does not refer to")


def due_after(command: Maintenance, run: Run) -> int:
    """
    After how many transactions of a run of one client the command runs.

    The twin rounds in the same way.
    """
    if command.after is not None:
        return command.after
    assert command.at_frac is not None, "a command has one of the two"
    assert run.operations is not None, "a run whose transactions are counted"
    return int(command.at_frac * run.operations + 0.5)


def is_counted(run: Run) -> bool:
    """Whether commands run after an exact number of transactions."""
    return run.clients == 1 and run.operations is not None

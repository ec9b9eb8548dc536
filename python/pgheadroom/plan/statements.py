"""
The statements that a plan may hold, each with its lock, what it blocks, what it costs.

`apply` runs no other text than this module makes. Sizes and durations are estimates from stated
rates.

Locks: `fillfactor` of a table may be set under SHARE UPDATE EXCLUSIVE, since it concerns only later
inserts (`intRelOpts`, src/backend/access/common/reloptions.c, through
`AlterTableGetRelOptionsLockLevel`); the tests read the lock from pg_locks on each server.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pgheadroom.errors import ParameterError
from pgheadroom.plan.values import TableMark, Target, Tool
from pgheadroom.quoting import called, printable, shell_word, shown_identifier, shown_literal
from pgheadroom.types import Interval

REWRITES: tuple[Tool, ...] = ("REPACK (CONCURRENTLY)", "pg_squeeze", "pg_repack", "VACUUM FULL")
"""In order of preference: the shortest lock, what the server does itself, then a client; at last
the one that stops everybody."""

OPTIONS = {
    "repack": "REPACK (CONCURRENTLY)",
    "pg_squeeze": "pg_squeeze",
    "pg_repack": "pg_repack",
    "vacuum-full": "VACUUM FULL",
}
"""How a user names them."""

StatementOrCommand = tuple[str | None, str | None]
"""A statement for the server, or a command line for a client."""

REPACK_FROM_MAJOR = 19
MB = 1e6

ORDERING: dict[str, Tool] = {
    "REPACK USING INDEX": "REPACK (CONCURRENTLY)",
    "pg_squeeze by index": "pg_squeeze",
    "pg_repack by columns": "pg_repack",
}
"""Ways that put rows in the order of an index, and the tool that rewrites the table so."""

_COLUMN = r'(?:"(?:[^"]|"")+"|[a-z_][a-z0-9_]*)(?: DESC)?(?: NULLS (?:FIRST|LAST))?'
_KEY = re.compile(rf" USING btree \(({_COLUMN}(?:, {_COLUMN})*)\)(?: |\Z)", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderedBy:
    """
    An index in whose order a rewrite puts rows.

    Attributes:
        index: Its name.
        keys: As ORDER BY takes them; None: not by columns alone.
    """

    index: str
    keys: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What is to be said of a tool, whatever the table."""

    lock: str
    blocks: str
    bytes_per_s: tuple[float, float, float]
    disk_factor: float
    in_transaction: bool
    risk: str
    lock_is_last: bool = False
    """It copies first, and waits for the lock that stops everybody afterwards."""


_SHORT_SWAP = "ACCESS EXCLUSIVE at its end, for the moment in which the files change places"
TRAITS: dict[Tool, Traits] = {
    "ALTER TABLE": Traits(
        lock="SHARE UPDATE EXCLUSIVE",
        blocks="VACUUM, ANALYZE, CREATE INDEX and other ALTER TABLE of this table, for a moment; "
        "SELECT, INSERT, UPDATE and DELETE go on",
        bytes_per_s=(0.0, 0.0, 0.0),
        disk_factor=0.0,
        in_transaction=True,
        risk="No page changes; it concerns pages that are filled from now on. A running VACUUM of "
        "the table makes it wait; an autovacuum gives way after deadlock_timeout (1 s), so "
        "lock_timeout has to be longer.",
    ),
    "VACUUM FULL": Traits(
        lock="ACCESS EXCLUSIVE",
        blocks="everything on this table, SELECT too, until it ends",
        bytes_per_s=(20 * MB, 60 * MB, 200 * MB),
        disk_factor=1.0,
        in_transaction=False,
        risk="The table cannot be used meanwhile, and while it waits for its lock nobody else gets "
        "one. Needs room for a second copy of table and indexes; all of it goes to standbys and "
        "archives as WAL.",
    ),
    "REPACK (CONCURRENTLY)": Traits(
        lock="SHARE UPDATE EXCLUSIVE",
        blocks=f"VACUUM, CREATE INDEX and ALTER TABLE of this table while it runs; {_SHORT_SWAP}",
        bytes_per_s=(10 * MB, 40 * MB, 150 * MB),
        disk_factor=1.0,
        in_transaction=False,
        risk="Takes one of max_repack_replication_slots; keeps the horizon back and WAL on disk "
        "while it runs, and logs as if wal_level were logical. A transaction that has used the "
        "table and stays open makes its last lock wait: after lock_timeout it gives up, the whole "
        "copy was in vain, and nothing has changed.",
        lock_is_last=True,
    ),
    "pg_squeeze": Traits(
        lock="ACCESS SHARE",
        blocks=f"ALTER TABLE of this table while it runs; {_SHORT_SWAP}",
        bytes_per_s=(10 * MB, 40 * MB, 150 * MB),
        disk_factor=1.0,
        in_transaction=False,
        risk="Needs the REPLICATION attribute and a replication slot; keeps the horizon back and "
        "WAL on disk while it runs. A worker of its own does the work, which no lock_timeout of "
        "a session reaches: where a transaction that has used the table stays open, it waits for "
        "its last lock, and everybody behind it. apply cancels the worker after lock_timeout; who "
        "runs it by hand has to do so.",
        lock_is_last=True,
    ),
    "pg_repack": Traits(
        lock="ACCESS SHARE",
        blocks="ALTER TABLE of this table while it runs; ACCESS EXCLUSIVE at its beginning and its "
        "end, each for a moment",
        bytes_per_s=(10 * MB, 40 * MB, 150 * MB),
        disk_factor=2.0,
        in_transaction=False,
        risk="A client program, on your machine, of the extension's version, as superuser (or "
        "--no-superuser-check). Triggers make writes dearer while it runs. Where it does not get "
        "its last lock within --wait-timeout (60 s) it leaves the table as it was, ends with 0 and "
        "says so; without --no-kill-backend it would end the others' transactions.",
    ),
}

VERIFIED: dict[Tool, frozenset[int]] = {
    "ALTER TABLE": frozenset(range(15, 20)),
    "VACUUM FULL": frozenset(range(15, 20)),
    "REPACK (CONCURRENTLY)": frozenset({19}),
    "pg_squeeze": frozenset({18}),
    "pg_repack": frozenset({18}),
}
"""Versions on which our tests run them."""

_SET_S = (0.001, 0.02, 0.5)
"""One catalog row, one commit: its sync is what takes time (assumed)."""

_SET_WAL_BYTES = 40_000
"""A few records and, after a checkpoint, images of the catalog's pages; the tests measure less."""


def set_fillfactor(mark: TableMark, fillfactor: int) -> str:
    """The statement that sets it."""
    return f"ALTER TABLE {mark.qualified} SET (fillfactor = {fillfactor})"


def undo_fillfactor(mark: TableMark) -> str:
    """The statement that puts back what was set before, or that nothing was."""
    if mark.fillfactor is None:
        return f"ALTER TABLE {mark.qualified} RESET (fillfactor)"
    return set_fillfactor(mark, mark.fillfactor)


def order_keys(definition: str) -> str | None:
    """
    The key of a B-tree as ORDER BY takes it; None where it has more than columns.

    A server writes down only what is not the default. Expressions would do, but functions in them
    are looked for on another path; ORDER BY takes no operator class (`pg_repack` 1.5.3 said so).

    Args:
        definition: As pg_get_indexdef has it.
    """
    found = _KEY.search(definition)
    return found[1] if found is not None and found[1].isprintable() else None


def rewrite(
    tool: Tool, mark: TableMark, target: Target, by: OrderedBy | None = None
) -> StatementOrCommand:
    """
    A rewrite as statement, or as command line of a client; the other one is None.

    Args:
        tool: By what.
        mark: Of the table.
        target: The database. pg_repack refuses roles that are no superuser unless it is told not to
            look; the server then asks who owns the table.
        by: The order in which rows are written; None: any. Not of VACUUM FULL.
    """
    assert by is None or tool != "VACUUM FULL", "it copies rows as they come"
    if tool == "VACUUM FULL":
        return f"VACUUM (FULL, ANALYZE) {mark.qualified}", None
    if tool == "REPACK (CONCURRENTLY)":
        using = "" if by is None else f" USING INDEX {shown_identifier(by.index)}"
        return f"REPACK (CONCURRENTLY, ANALYZE) {mark.qualified}{using}", None
    if tool == "pg_squeeze":
        names = f"{shown_literal(mark.schema)}, {shown_literal(mark.name)}"
        index = "NULL" if by is None else shown_literal(by.index)
        return f"SELECT squeeze.squeeze_table({names}, {index}, NULL, NULL)", None
    assert tool == "pg_repack", f"{tool} does not rewrite"
    assert by is None or by.keys is not None, "it was looked at whether ORDER BY takes its key"
    options = ["--no-order" if by is None else f"--order-by={by.keys}", "--no-kill-backend"]
    options += ["--no-superuser-check"] if target.is_superuser is False else []
    named = [f"--dbname={target.database}", f"--table={mark.qualified}"]
    return None, " ".join(map(shell_word, ["pg_repack", *options, *named]))


def duration(tool: Tool, copied_bytes: int) -> tuple[Interval, str]:
    """Estimated seconds, and what the estimate rests on."""
    if tool == "ALTER TABLE":
        low, mid, high = _SET_S
        said = "assumed: one catalog row and one commit, no matter how large the table is"
    else:
        slow, usual, fast = TRAITS[tool].bytes_per_s
        low, mid, high = (max(0.05, copied_bytes / rate) for rate in (fast, usual, slow))
        said = (
            f"assumed: {slow / MB:.0f} to {fast / MB:.0f} MB/s of new table and indexes; "
            "your storage decides"
        )
    return Interval(low=low, mid=mid, high=high, level=0.9), said


def wal_bytes(tool: Tool, copied_bytes: int) -> int:
    """Estimated WAL: a rewrite logs every new page."""
    return _SET_WAL_BYTES if tool == "ALTER TABLE" else copied_bytes + _SET_WAL_BYTES


def tool_of(option: str) -> Tool:
    """
    The rewriting tool that a user names.

    Raises:
        ParameterError: No such tool.
    """
    if option not in OPTIONS:
        known = ", ".join(["none", "auto", *OPTIONS])
        raise ParameterError("rewrite", f"{option!r} is not known: expected one of {known}")
    return OPTIONS[option]  # type: ignore[return-value]  # the values are tools


def check_rewrite(option: str) -> None:
    """
    Refuse what is no way to rewrite.

    Raises:
        InputError: Neither `none` nor `auto` nor a tool.
    """
    if option not in ("none", "auto"):
        tool_of(option)


def name_of(mark: TableMark) -> str:
    """A table's name for people, on one line whatever is in it."""
    return one_line(called(mark.schema, mark.name))


def one_line(text: str) -> str:
    """Text for comments and messages: what is not printable is escaped, so no line ends in it."""
    return printable(text)

"""
The statements of an advice as text to copy: the setting, its undo, and the rewrite.

What `apply` executes is the plan's; this is what a report shows beside a verdict.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pgheadroom.advise.table_advice import TableAdvice
from pgheadroom.errors import InputError
from pgheadroom.quoting import shell_word, shown_literal, shown_relation
from pgheadroom.types import PgVersion

FILLFACTOR_DEFAULT = 100
"""HEAP_DEFAULT_FILLFACTOR."""

_REPACK_FROM = 19
"""REPACK (CONCURRENTLY) is PostgreSQL's own from here on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """
    How a table is rewritten so that its old pages have the new room too.

    Attributes:
        text: A statement, or a command of a shell.
        how: What it locks and whether it was tried, in one sentence.
    """

    text: str
    how: str


def relation(table: TableAdvice) -> str:
    """The table's qualified name."""
    return shown_relation(table.schema, table.name)


def setting(table: TableAdvice) -> tuple[str, str] | None:
    """The statement that sets the advised fillfactor, and its undo; None where nothing is set."""
    if table.verdict != "CHANGE" or table.advised_fillfactor is None:
        return None
    alter = f"ALTER TABLE {relation(table)}"
    # 100 is the default: to reset it is the same setting, whether it stood there or not.
    undo = f"SET (fillfactor = {table.fillfactor});"
    if table.fillfactor == FILLFACTOR_DEFAULT:
        undo = "RESET (fillfactor);"
    return f"{alter} SET (fillfactor = {table.advised_fillfactor});", f"{alter} {undo}"


def rewrite(
    table: TableAdvice,
    server_version: str,
    modules: Mapping[str, str],
    *,
    is_superuser: bool | None = None,
) -> Rewrite:
    """
    The gentlest rewrite that the server has.

    Args:
        table: What is rewritten.
        server_version: As the observation has it.
        modules: Installed extensions.
        is_superuser: The role is one, without which pg_repack has to be told not to look; None: not
            known.
    """
    full = relation(table)
    if _major(server_version) >= _REPACK_FROM:
        return Rewrite(
            text=f"REPACK (CONCURRENTLY, ANALYZE) {full};",
            how="The rewrite, REPACK (CONCURRENTLY), locks the table for a moment at its end, "
            "needs a primary key or replica identity, and the table's size and its indexes' once "
            "more on disk.",
        )
    if "pg_repack" in modules:
        shell = shell_word(full)
        unchecked = " --no-superuser-check" if is_superuser is False else ""
        return Rewrite(
            text=f"pg_repack --no-order --no-kill-backend{unchecked} --table={shell}",
            how="The rewrite, pg_repack in a shell with -d for the database, locks the table for "
            "moments only and needs its size and its indexes' once more on disk.",
        )
    if "pg_squeeze" in modules:
        names = f"{shown_literal(table.schema)}, {shown_literal(table.name)}"
        return Rewrite(
            text=f"SELECT squeeze.squeeze_table({names});",
            how="The rewrite, by pg_squeeze, locks the table for a moment at its end, for which "
            "it waits without limit, and others behind it, while a transaction that has used the "
            "table is open; needs its size and its indexes' once more on disk, and wal_level "
            "logical.",
        )
    return Rewrite(
        text=f"VACUUM FULL {full};",
        how="While it is rewritten nobody reads or writes it (ACCESS EXCLUSIVE), and its size and "
        "its indexes' are needed once more on disk; pg_repack and pg_squeeze, which lock for "
        "moments only, are not installed.",
    )


def _major(server_version: str) -> int:
    try:
        return PgVersion.parse(server_version).major
    except InputError:
        return 0

"""
The name that PostgreSQL gives an index that a statement leaves without one.

    table_column_column_idx     an index; _key a unique constraint, _excl an exclusion constraint
    table_pkey                  a primary key

An expression is called after its function, its cast or the like, else `expr`; INCLUDE columns count
as keys do. A name has 63 bytes at most: table and columns are cut, the longer of the two first. One
that is taken gets a number behind its ending.

Source: `ChooseIndexName`, `ChooseIndexColumnNames` (src/backend/commands/indexcmds.c),
`makeObjectName`, `ChooseRelationName` (the same), REL_18_STABLE. Differs: names of constraints
without an index, of sequences and views are not known, and count as free.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count

from pgheadroom.migration.actions import AddIndex, IndexKind

NAME_BYTES_MAX = 63  # NAMEDATALEN - 1, src/include/pg_config_manual.h

_ENDINGS: dict[IndexKind, str] = {
    "index": "idx",
    "primary key": "pkey",
    "unique constraint": "key",
    "exclusion constraint": "excl",
}


def chosen_name(table: str, action: AddIndex, is_taken: Callable[[str], bool]) -> str:
    """
    The name of a new index.

    Args:
        table: Its table's name now.
        action: The index.
        is_taken: Whether its schema has a relation of a name.
    """
    ending = _ENDINGS[action.kind]
    columns = None
    if action.kind != "primary key":
        columns = _joined(_column_names(action.named_after))
    for number in count():
        name = _object_name(table, columns, f"{ending}{number or ''}")
        if not is_taken(name):
            return name
    raise AssertionError("numbers do not end")


def chosen_key_name(table: str, columns: Sequence[str], is_taken: Callable[[str], bool]) -> str:
    """
    The name of a new foreign key (`ChooseForeignKeyConstraintNameAddition`, tablecmds.c).

    Args:
        table: Its table's name now.
        columns: Its columns.
        is_taken: Whether the table has a constraint of a name.
    """
    for number in count():
        name = _object_name(table, _joined(columns), f"fkey{number or ''}")
        if not is_taken(name):
            return name
    raise AssertionError("numbers do not end")


def _column_names(named_after: Sequence[str | None]) -> list[str]:
    """Each of its own: a name that is there already gets a number."""
    made: list[str] = []
    for given in named_after:
        original = given or "expr"
        name = original
        for number in count(1):
            if name not in made:
                break
            name = f"{_cut(original, NAME_BYTES_MAX - len(str(number)))}{number}"
        made.append(name)
    return made


def _joined(names: Sequence[str]) -> str:
    """As far as a name can use it (`ChooseIndexNameAddition`)."""
    made = ""
    for name in names:
        made = f"{made}_{name}" if made else name
        if len(made.encode()) > NAME_BYTES_MAX:
            break
    return made


def _object_name(table: str, columns: str | None, ending: str) -> str:
    first = len(table.encode())
    second = 0 if columns is None else len(columns.encode())
    room = NAME_BYTES_MAX - len(ending) - 1 - (columns is not None)
    while first + second > room:
        if first > second:
            first -= 1
        else:
            second -= 1
    parts = [_cut(table, first), *([] if columns is None else [_cut(columns, second)]), ending]
    return "_".join(parts)


def _cut(name: str, size: int) -> str:
    """The beginning that fits, whole characters alone."""
    return name.encode()[:size].decode(errors="ignore")

"""
The fillfactors of cells: one number or one a table, and what tells cells apart by them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pgheadroom.quoting import printable

Fillfactor = int | Mapping[str, int]
"""One number where all tables share it, else a number by table."""


def fillfactor_in_row(fillfactor: Fillfactor, table: str | None) -> int | None:
    """A table's own; of all together (None) the one that they share, or None."""
    if isinstance(fillfactor, int):
        return fillfactor
    return None if table is None else fillfactor[table]


def fillfactor_label(found: Fillfactor) -> str:
    """The number, or by table; printable."""
    if isinstance(found, int):
        return str(found)
    return ", ".join(f"{printable(name)} {number}" for name, number in found.items())


def told_apart(found: Sequence[Fillfactor], before: int | None = None) -> list[int | str]:
    """
    What tells cells apart: one number each, where one fillfactor was varied.

    A cell has a number for all tables or numbers by table; the tables that do not change from
    cell to cell are left out.

    Args:
        found: Of each cell.
        before: At which the tables were loaded that are altered when the run begins.
    """
    names = {name for item in found if isinstance(item, Mapping) for name in item}
    if not names:
        return [item for item in found if isinstance(item, int)]
    spread = [item if isinstance(item, Mapping) else dict.fromkeys(names, item) for item in found]
    changing = [name for name in spread[0] if len({item.get(name) for item in spread}) > 1]
    if not changing and before is not None:  # one cell: the tables that were altered
        changing = [name for name, number in spread[0].items() if number != before]
    labels: list[int | str] = []
    for item in spread:
        numbers = {item.get(name) for name in changing or spread[0]}
        number = numbers.pop() if len(numbers) == 1 else None
        labels.append(fillfactor_label(item) if number is None else number)
    return labels

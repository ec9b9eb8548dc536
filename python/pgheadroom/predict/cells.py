"""
The cells of a curve: one profile at several fillfactors, and beside each with other indexes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pgheadroom.errors import ParameterError
from pgheadroom.play.scripts import check_pgbench_takes
from pgheadroom.predict.fillfactors import Fillfactor
from pgheadroom.predict.variants import UNCHANGED, IndexChange, changed, name_of
from pgheadroom.profile import Profile, TableProfile
from pgheadroom.profile.pages import said_loaded_anew
from pgheadroom.types import Assumed

FILLFACTOR_MIN, FILLFACTOR_MAX = 10, 100
_PGBENCH_ROWS_PER_SCALE = 100_000 + 10 + 1  # accounts, tellers, branches


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """
    A profile with the fillfactors that it has in this cell.

    `variant` says what is changed of its indexes, `UNCHANGED` if nothing is; None where no variant
    was asked for.

    `later` are fillfactors, by table, that are set when the loaded tables' run begins: pages stay
    as they are. `fillfactor` then is the later one.

    `rewrites` are tables that are rewritten in the middle: which, from and until which part of the
    run beside the clients; without an end it is VACUUM FULL.

    `lived` are the tables whose pages are not full, as they are at their own fillfactor.
    """

    fillfactor: Fillfactor
    profile: Profile
    variant: str | None = None
    later: Mapping[str, int] = field(default_factory=dict)
    rewrites: tuple[tuple[str, float, float | None], ...] = ()
    lived: tuple[TableProfile, ...] = ()


def make_cells(
    profile: Profile,
    fillfactors: Sequence[int] | None = None,
    table: str | None = None,
    changes: Sequence[IndexChange] = (),
) -> tuple[Cell, ...]:
    """
    Spread a profile over fillfactors, and over its variant if there is one.

    Args:
        profile: The profile.
        fillfactors: Percent, 10 to 100; one cell each, in this order. None: the profile as it is.
        table: The table to vary; every table that has updates when None.
        changes: What is changed of its indexes: a cell with them all follows each without.

    Raises:
        InputError: A fillfactor out of range or given twice, a table that the profile does not
            have, no table with updates to vary, a change that is not possible, or
            more than pgbench plays.
    """
    check_pgbench_takes(profile)
    cells = _over_fillfactors(profile, fillfactors, table)
    if not changes:
        return cells
    name = name_of(changes)
    pairs = [
        (
            replace(cell, variant=UNCHANGED),
            replace(cell, variant=name, profile=changed(cell.profile, changes)),
        )
        for cell in cells
    ]
    return tuple(cell for pair in pairs for cell in pair)


def is_variant(cell: Cell) -> bool:
    """Whether the cell's indexes are changed; the cell before it is then the unchanged one."""
    return cell.variant not in (None, UNCHANGED)


def _over_fillfactors(
    profile: Profile, fillfactors: Sequence[int] | None, table: str | None
) -> tuple[Cell, ...]:
    if table is not None and table not in profile.table_names:
        raise ParameterError(
            "table",
            f"{table}: the profile has no such table, expected one of "
            f"{', '.join(profile.table_names)}",
        )
    if fillfactors is None:
        if table is not None:
            raise ParameterError(
                "table",
                f"{table} varies nothing without `fillfactor`: give both",
                mentions=("fillfactor",),
            )
        return (Cell(fillfactor=fillfactor_of(profile), profile=profile),)
    _check(fillfactors)
    varied = (table,) if table is not None else updated_tables(profile)
    if not varied:
        raise ParameterError(
            "fillfactor",
            ": no table of the profile has updates, name the table to vary by `table` "
            f"({', '.join(profile.table_names)})",
            mentions=("table",),
        )
    lived = tuple(one for one in profile.tables if one.pages)
    cells = []
    for value in fillfactors:
        changed = profile.with_fillfactor(dict.fromkeys(varied, value))
        cells.append(Cell(fillfactor=fillfactor_of(changed), profile=changed, lived=lived))
    return tuple(cells)


def loaded_anew(cells: Sequence[Cell]) -> Assumed:
    """What is said of tables that are loaded anew, because their fillfactor is another one."""
    said: dict[str, str] = {}
    for cell in cells:
        for one in cell.lived:
            played = cell.profile.table(one.name)
            if not played.pages:
                place = f"table[{cell.profile.tables.index(played)}].pages"
                said[place] = said_loaded_anew(one)
    return said


def loaded_at(
    cells: Sequence[Cell], from_fillfactor: int, table: str | None = None
) -> tuple[Cell, ...]:
    """
    The same cells, loaded at another fillfactor and altered when the run begins.

    Args:
        cells: Cells whose profiles have the fillfactors that are set later.
        from_fillfactor: Percent at which the varied tables are loaded.
        table: The table that varies; every table that has updates when None.

    Raises:
        InputError: A fillfactor out of range.
    """
    _check([from_fillfactor])
    found = []
    for cell in cells:
        varied = (table,) if table is not None else updated_tables(cell.profile)
        all_tables = _by_table(cell.profile)
        later = {name: all_tables[name] for name in varied}
        loaded = cell.profile.with_fillfactor(dict.fromkeys(varied, from_fillfactor))
        loaded = _as_they_are(loaded, cell.lived)
        found.append(replace(cell, profile=loaded, later=later))
    return tuple(found)


def _as_they_are(profile: Profile, lived: Sequence[TableProfile]) -> Profile:
    """Tables at the fillfactor at which they have lived have their pages again."""
    by_name = {one.name: one for one in lived}
    tables = tuple(
        replace(one, pages=own.pages, rows_per_page=own.rows_per_page)
        if (own := by_name.get(one.name)) is not None and own.fillfactor == one.fillfactor
        else one
        for one in profile.tables
    )
    return replace(profile, tables=tables)


def _check(fillfactors: Sequence[int]) -> None:
    for n, value in enumerate(fillfactors):
        if not FILLFACTOR_MIN <= value <= FILLFACTOR_MAX:
            raise ParameterError(
                "fillfactor",
                f"{value}: expected whole numbers from {FILLFACTOR_MIN} to {FILLFACTOR_MAX}",
            )
        if value in fillfactors[:n]:
            raise ParameterError("fillfactor", f": {value} is given twice")
    if not fillfactors:
        raise ParameterError("fillfactor", "is empty: expected values such as 100,90 or 50..100:5")


def updated_tables(profile: Profile) -> tuple[str, ...]:
    """The tables with updates, in the profile's order."""
    builtin = profile.workload.builtin
    if builtin is not None:
        names = {
            "tpcb-like": ("pgbench_accounts", "pgbench_branches", "pgbench_tellers"),
            "simple-update": ("pgbench_accounts",),
        }.get(builtin.builtin, ())
        return tuple(name for name in profile.table_names if name in names)
    changed = {operation.table for operation in profile.workload.operations if operation.is_update}
    return tuple(name for name in profile.table_names if name in changed)


def fillfactor_of(profile: Profile) -> Fillfactor:
    """The number that all tables share, else the number of each."""
    by_table = _by_table(profile)
    shared = set(by_table.values())
    return shared.pop() if len(shared) == 1 else by_table


def loaded_rows(profile: Profile) -> int:
    """Rows of all tables when the run begins."""
    builtin = profile.workload.builtin
    if builtin is not None:
        return builtin.scale * _PGBENCH_ROWS_PER_SCALE
    return sum(table.rows for table in profile.tables)


def _by_table(profile: Profile) -> dict[str, int]:
    builtin = profile.workload.builtin
    if builtin is not None:
        return {name: builtin.fillfactor.get(name, 100) for name in profile.table_names}
    return {table.name: table.fillfactor for table in profile.tables}

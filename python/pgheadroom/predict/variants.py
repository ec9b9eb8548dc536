"""
What if an index were another one: the same profile without it, narrower, as BRIN, or fuller.

A variant keeps rows, values and operations as they are, so that it differs from the unchanged
profile by nothing but its indexes; a server can play it as well. All changes that are given
together make one variant.

Rows are found by the key's index, whatever the change: an index that queries need is not missed
here. What its absence does to plans and times is not predicted.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from pgheadroom.errors import ParameterError
from pgheadroom.forms import in_file
from pgheadroom.outcome import Outcome, Value, middle
from pgheadroom.profile import IndexProfile, Profile, TableProfile
from pgheadroom.profile.check import check

INDEX_FILLFACTOR_MIN, INDEX_FILLFACTOR_MAX = 10, 100
INDEX_FILLFACTOR_DEFAULT = 90
"""BTREE_DEFAULT_FILLFACTOR, src/include/access/nbtree.h."""

COMPARED = ("hot_frac", "index_pages", "wal_bytes_per_update")
"""What a variant is compared by."""

UNCHANGED = "unchanged"
"""What a cell is called that stands beside a variant."""

_PARAMETERS: Mapping[str, str] = {
    "without": "without_index",
    "narrow": "narrow_index",
    "brin": "brin_index",
    "fillfactor": "index_fillfactor",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexChange:
    """
    One change of one index.

    Attributes:
        kind: `without` drops it; `narrow` keeps the columns that are named; `brin` puts a BRIN
            index over its key columns in its place; `fillfactor` changes that of its leaves.
        index: Its name.
        columns: What `narrow` keeps, of its key columns and those it includes.
        fillfactor: In percent, 10 to 100.
    """

    kind: Literal["without", "narrow", "brin", "fillfactor"]
    index: str
    columns: tuple[str, ...] = ()
    fillfactor: int | None = None

    def __str__(self) -> str:
        """As a result names it: `without jobs_owner`."""
        if self.kind == "narrow":
            return f"{self.index} on {', '.join(self.columns)}"
        if self.kind == "brin":
            return f"BRIN for {self.index}"
        if self.kind == "fillfactor":
            return f"{self.index} at fillfactor {self.fillfactor}"
        return f"without {self.index}"

    @property
    def parameter(self) -> str:
        """What asks for it."""
        return _PARAMETERS[self.kind]

    @property
    def asked(self) -> str:
        """The value that asks for it."""
        if self.kind == "narrow":
            return f"{self.index}={','.join(self.columns)}"
        return f"{self.index}={self.fillfactor}" if self.kind == "fillfactor" else self.index

    def refused(self, why: str) -> ParameterError:
        """The error that refuses it."""
        return ParameterError(self.parameter, f"{self.asked}: {why}")


def changed(profile: Profile, changes: Sequence[IndexChange]) -> Profile:
    """
    The profile with other indexes, and everything else as it was.

    Args:
        profile: The profile.
        changes: Of any indexes; of one index they apply together where they can.

    Raises:
        InputError: No such index; the key's own, which lookups need; a change that changes
            nothing, contradicts another one, or that the index cannot have.
    """
    if profile.workload.builtin is not None:
        raise changes[0].refused(
            "the indexes of pgbench's tables are their primary keys, by "
            "which its scripts find rows; a profile with tables of its own can vary its indexes"
        )
    by_index: dict[str, list[IndexChange]] = {}
    for change in changes:
        by_index.setdefault(change.index, []).append(change)
    for name, wanted in by_index.items():
        _check_known(profile, name, wanted[0])
        _check_together(wanted)
    tables = tuple(
        replace(table, indexes=tuple(_changed_indexes(table, by_index))) for table in profile.tables
    )
    found = replace(profile, tables=tables)
    check(found)
    return found


def name_of(changes: Sequence[IndexChange]) -> str:
    """The variant's name in results."""
    return "; ".join(map(str, changes))


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What a variant changes of the figures of `COMPARED`, by each player that played both."""

    predicted: Mapping[str, Value]
    measured: Mapping[str, Value] | None = field(default=None, metadata=in_file(unless_none=True))


def difference(variant: Outcome, unchanged: Outcome) -> dict[str, Value]:
    """
    The variant's figures minus those of the unchanged profile, under the keys of `COMPARED`.

    Of intervals it is the difference of their middles; None where either has none.
    """
    return {key: _minus(variant.value(key), unchanged.value(key)) for key in COMPARED}


def _minus(one: Value, other: Value) -> Value:
    ours, theirs = middle(one), middle(other)
    return None if ours is None or theirs is None else ours - theirs


def _check_known(profile: Profile, name: str, change: IndexChange) -> None:
    known = [index.name for table in profile.tables for index in table.indexes]
    if name in known:
        return
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    raise change.refused(
        f"the profile has no index {name}; {hint}known here: {', '.join(known) or 'none'}"
    )


def _check_together(changes: Sequence[IndexChange]) -> None:
    """One index: no change twice, none beside its removal, no leaves of a B-tree in BRIN."""
    kinds = [change.kind for change in changes]
    for n, change in enumerate(changes):
        if change.kind in kinds[:n]:
            raise change.refused(f"{change.index} is changed so twice, give it once")
    for kind in ("without", "brin"):
        others = [c for c in changes if c.kind not in (kind, *(("narrow",) * (kind == "brin")))]
        if kind in kinds and others:
            one = changes[kinds.index(kind)]
            raise ParameterError(
                one.parameter,
                f"{one.asked} and `{others[0].parameter}` {others[0].asked} exclude each other: "
                "give one",
                mentions=(others[0].parameter,),
            )


def _changed_indexes(
    table: TableProfile, by_index: Mapping[str, Sequence[IndexChange]]
) -> Iterable[IndexProfile]:
    for index in table.indexes:
        found: IndexProfile | None = index
        for change in by_index.get(index.name, ()):
            if found is not None:
                found = _apply(table, found, change)
        if found is not None:
            yield found


def _apply(table: TableProfile, index: IndexProfile, change: IndexChange) -> IndexProfile | None:
    is_key = index.name == (table.key_index.name if table.key_index else None)
    if change.kind == "without":
        if is_key:
            _refuse_key(change, table, index)
        return None
    if change.kind == "narrow":
        return _narrowed(table, index, change, is_key=is_key)
    if index.method == "brin":
        why = "BRIN already" if change.kind == "brin" else "BRIN, whose pages have no fillfactor"
        raise change.refused(f"{index.name} is {why}, expected a B-tree")
    if change.kind == "brin":
        if is_key:
            _refuse_key(change, table, index)
        if index.unique:
            raise change.refused(f"{index.name} is unique, which BRIN cannot be")
        _check_brin(table, index, change)
        return replace(
            index,
            method="brin",
            include=(),
            opclass=(),
            fillfactor=None,
            deduplicate_items=None,
            fastupdate=None,
            gin_pending_list_limit=None,
        )
    return _refilled(index, change)


def _check_brin(table: TableProfile, index: IndexProfile, change: IndexChange) -> None:
    """
    Refuse what has no operator class for BRIN.

    Source: src/include/catalog/pg_opclass.dat (REL_18_STABLE): no `bool` among those of brin.
    """
    for name in index.columns:
        if table.column(name).base_type == "bool":
            raise change.refused(
                f"{name} is a boolean, which BRIN cannot index: expected an "
                "index over other columns"
            )


def _refuse_key(change: IndexChange, table: TableProfile, index: IndexProfile) -> None:
    others = [other.name for other in table.indexes if other.name != index.name]
    raise change.refused(
        f"{index.name} is the key of {table.name}, by which its rows are found; "
        f"expected another of its indexes ({', '.join(others) or 'it has none'})"
    )


def _narrowed(
    table: TableProfile, index: IndexProfile, change: IndexChange, *, is_key: bool
) -> IndexProfile:
    if index.expressions:
        raise change.refused(
            f"{index.name} is over expressions ({', '.join(index.expressions)}), "
            "expected an index over columns"
        )
    had = (*index.columns, *index.include)
    for n, column in enumerate(change.columns):
        if column not in had:
            raise change.refused(
                f"{index.name} does not hold {column}, expected some of {', '.join(had)}"
            )
        if column in change.columns[:n]:
            raise change.refused(f"{column} is given twice")
    if len(change.columns) == len(had):
        raise change.refused(f"{index.name} holds just these columns, expected fewer of them")
    kept = tuple(column for column in index.columns if column in change.columns)
    if not kept:
        raise change.refused(
            f"{index.name} would have no key column left, expected one of "
            f"{', '.join(index.columns)}"
        )
    if is_key and kept[0] != index.columns[0]:
        raise change.refused(
            f"{index.name} is the key of {table.name}, by whose first column, "
            f"{index.columns[0]}, rows are found: expected that one too"
        )
    if index.unique and not is_key and kept != index.columns:
        raise change.refused(
            f"{index.name} is unique over {', '.join(index.columns)}; over fewer "
            "columns it need not be: expected all of them"
        )
    include = tuple(column for column in index.include if column in change.columns)
    return replace(index, columns=kept, include=include)


def _refilled(index: IndexProfile, change: IndexChange) -> IndexProfile:
    wanted = change.fillfactor
    if wanted is None or not INDEX_FILLFACTOR_MIN <= wanted <= INDEX_FILLFACTOR_MAX:
        raise change.refused(
            f"expected a whole number from {INDEX_FILLFACTOR_MIN} to {INDEX_FILLFACTOR_MAX}"
        )
    if wanted == (index.fillfactor or INDEX_FILLFACTOR_DEFAULT):
        raise change.refused("that is its fillfactor, expected another")
    return replace(index, fillfactor=wanted)

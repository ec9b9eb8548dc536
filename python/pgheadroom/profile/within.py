"""
A profile within another file, which has a digest: what it says, and how it stands there.

A later version may write the same profile with more fields. The digest is of the file that was
agreed on, so what stands there stays there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field
from itertools import chain
from typing import Annotated, Any, TypeGuard

from pgheadroom.dataclass import dataclass
from pgheadroom.errors import InputError
from pgheadroom.forms import Stored
from pgheadroom.profile.model import Profile
from pgheadroom.profile.reading import parse_profile


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileWithin:
    """A profile, and the data of which it was made."""

    profile: Profile
    written: Mapping[str, Any] = field(compare=False, repr=False)

    @classmethod
    def of(cls, profile: Profile) -> ProfileWithin:
        """A profile that is to be written."""
        return cls(profile=profile, written=profile.to_json())


def _read(written: Mapping[str, Any]) -> ProfileWithin:
    try:
        return ProfileWithin(profile=parse_profile(_closed(written)), written=written)
    except InputError as error:
        raise ValueError(str(error)) from None


def _closed(written: Mapping[str, Any]) -> Mapping[str, Any]:
    """
    The same without foreign keys to tables that are not there.

    Plans had the planned tables alone once, and not those that these refer to: such columns have
    as many different values, of which nobody knows who else has them.
    """
    tables = written.get("table")
    if not _are_tables(tables):
        return written  # refused by name
    names = [table.get("name") for table in tables]
    return {**written, "table": [_without_strangers(table, names) for table in tables]}


def _without_strangers(table: dict[str, Any], names: Collection[Any]) -> dict[str, Any]:
    keys, columns = table.get("foreign_keys"), table.get("columns")
    if not (_are_tables(keys) and _are_tables(columns)):
        return table  # refused by name, or without keys
    gone = [key for key in keys if key.get("references") not in names]
    if not gone:
        return table
    lists = [key["columns"] for key in gone if isinstance(key.get("columns"), list)]
    of_gone = list(chain.from_iterable(lists))
    return {
        **table,
        "foreign_keys": [key for key in keys if key not in gone],
        "columns": [
            {**column, "values": _of_nobody(column["values"])}
            if column.get("name") in of_gone and isinstance(column.get("values"), dict)
            else column
            for column in columns
        ],
    }


def _are_tables(found: object) -> TypeGuard[list[dict[str, Any]]]:
    return isinstance(found, list) and all(isinstance(item, dict) for item in found)


def _of_nobody(values: Mapping[str, Any]) -> dict[str, Any]:
    """A column's values, no other table's keys."""
    kept = {name: item for name, item in values.items() if name not in ("pick", "ordered")}
    return {**kept, "kind": "random"}


StoredProfile = Annotated[
    ProfileWithin, Stored(Mapping[str, Any], _read, lambda found: found.written)
]
"""A profile that is a part of a file."""

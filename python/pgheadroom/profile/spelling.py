"""
How a profile's file spells what the values have in another form: versions, sizes, types, names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pgheadroom import _core
from pgheadroom.errors import InputError
from pgheadroom.forms import Expected, Stored, Text, brief
from pgheadroom.profile.column_types import BITS_MAX, FORMS, base_of, length_of
from pgheadroom.units import parse_setting_bytes, setting_bytes

Raw = Mapping[str, Any]
"""What stands in a file, which tells what was said from what was not."""

VERSION_MIN, VERSION_MAX = 15, 19
_SERVER_VERSION = re.compile(r"([0-9]{2})(?:\.[0-9]{0,2}|(?:alpha|beta|rc)[0-9]+|devel)?")


def server_version(found: str) -> str:
    """A major version that we know, with or without its minor, or a pre-release by its name."""
    match = _SERVER_VERSION.fullmatch(found)
    if match is None or not VERSION_MIN <= int(match[1]) <= VERSION_MAX:
        raise ValueError(
            f"found {brief(found)}, expected a version from {VERSION_MIN} to {VERSION_MAX}, "
            'such as "18" or "18.4"'
        )
    return found.rstrip(".")


def memory(low_bytes: int) -> Stored:
    """Bytes as PostgreSQL's settings spell them."""

    def load(found: str) -> int:
        try:
            size_bytes = parse_setting_bytes(found)
        except InputError as error:
            raise ValueError(str(error)) from None
        if not low_bytes <= size_bytes <= 2**50:
            raise ValueError(
                f"found {brief(found)}, expected at least {low_bytes // 1024}kB and at most 1024TB"
            )
        return size_bytes

    return Stored(Text, load, setting_bytes)


_STANDS = "for another type one of its stored form can stand (stands_for)"


def type_name(found: str) -> str:
    """A column's type by PostgreSQL's own name: `bpchar(84)` for `character(84)`."""
    try:
        column = _core.Column(found, is_null=True)
    except InputError as error:
        raise ValueError(f"{error}; {_STANDS}") from None
    base = base_of(column.type_name)
    if base not in FORMS:
        raise ValueError(f"found {brief(found)}, expected one of {', '.join(FORMS)}; {_STANDS}")
    length = length_of(column.type_name)
    if base in ("bit", "varbit") and (length is None or length > BITS_MAX):
        raise ValueError(f"found {brief(found)}, expected {base}(n) with at most {BITS_MAX} bits")
    return column.type_name


def predicate(found: str) -> str:
    """A condition that stands in a script of pgbench's as it is."""
    taken = (":", ";", "\\", "--", "/*", "$")
    if not found.strip() or not found.isprintable() or any(sign in found for sign in taken):
        raise ValueError(
            f"found {brief(found)}, expected a condition in one line, without {' '.join(taken)}"
        )
    return found


def is_name(found: str) -> bool:
    """Whether a profile can have a name, or a label, that is spelled so."""
    try:
        return bool(_name(found))
    except ValueError:
        return False


def _name(found: str) -> str:
    # Colons and backslashes mean something in pgbench's scripts even inside quotes.
    if len(found.encode()) > 63 or not found.isprintable() or ":" in found or "\\" in found:
        raise ValueError(
            f"found {brief(found)}, expected a name of at most 63 bytes, printable, without ':' "
            "and '\\'"
        )
    return found


Name = Annotated[str, Stored(Text, _name)]
"""A name that PostgreSQL and pgbench can take."""

Label = Name
"""A label of an enum, which is a name to PostgreSQL too."""


def _word(found: str | float) -> str:
    return ("on" if found else "off") if isinstance(found, bool) else str(found)


Word = Annotated[str, Stored(str | bool | int | float, _word), Expected("a string", whole=True)]
"""A setting; numbers and booleans are taken as text."""

Words = Annotated[Mapping[str, Word], Expected("a table of strings")]


def canonical_type(spelled: str) -> str | None:
    """The type if a profile may have it."""
    try:
        return type_name(spelled)
    except ValueError:
        return None

"""
Options of `predict` and `prove` that ask for other indexes, another storage or another engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from pgheadroom.errors import InputError

if TYPE_CHECKING:
    from pgheadroom.predict import IndexChange

WithoutOption = Annotated[
    list[str] | None,
    typer.Option(
        "--without-index",
        metavar="NAME",
        help="A variant beside the profile: the same without this index (may be repeated).",
    ),
]
NarrowOption = Annotated[
    list[str] | None,
    typer.Option(
        "--narrow-index",
        metavar="NAME=COLUMN,...",
        help="In the variant this index keeps only these of its columns.",
    ),
]
BrinOption = Annotated[
    list[str] | None,
    typer.Option(
        "--brin-index",
        metavar="NAME",
        help="In the variant a BRIN index takes its place (from 16 on it lets updates be HOT).",
    ),
]
FillOption = Annotated[
    list[str] | None,
    typer.Option(
        "--index-fillfactor",
        metavar="NAME=PERCENT",
        help="In the variant the leaves of this index are filled so far (10 to 100).",
    ),
]


class StorageName(StrEnum):
    """Where pages are kept, as `--storage` spells it."""

    LOCAL = "local"
    LOG_STRUCTURED = "log-structured"


StorageOption = Annotated[
    StorageName,
    typer.Option(
        help="Where pages are kept: local (files), or log-structured: storage that makes pages "
        "out of the log (no checkpoints, no full-page images), as Amazon Aurora's.",
    ),
]


class EngineName(StrEnum):
    """How rows are stored, as `--engine` spells it."""

    HEAP = "heap"
    CLUSTERED = "clustered"
    UNDO = "undo"


EngineOption = Annotated[
    EngineName,
    typer.Option(
        help="How rows are stored: PostgreSQL's heap; clustered, whose inserts go beside the "
        "previous key; undo, which updates in place. The latter two are models.",
    ),
]
OrderOption = Annotated[
    bool,
    typer.Option(
        "--order",
        help="Measure how well tables lie in key order: distinct pages of 1,000 keys, correlation "
        "(always with --engine clustered).",
    ),
]


def changes_of(
    without: Sequence[str] | None,
    narrow: Sequence[str] | None,
    brin: Sequence[str] | None,
    fillfactor: Sequence[str] | None,
) -> list[IndexChange]:
    """
    The changes that the options ask for; whether the profile can have them is seen later.

    Raises:
        InputError: An option without its `=`, or a fillfactor that is no number.
    """
    from pgheadroom.predict import IndexChange

    found = [IndexChange(kind="without", index=name) for name in without or ()]
    for text in narrow or ():
        name, value = _parts("--narrow-index", text, "NAME=COLUMN,...")
        columns = tuple(column.strip() for column in value.split(","))
        found.append(IndexChange(kind="narrow", index=name, columns=columns))
    found += [IndexChange(kind="brin", index=name) for name in brin or ()]
    for text in fillfactor or ():
        name, value = _parts("--index-fillfactor", text, "NAME=PERCENT")
        if not value.isdecimal() or len(value) > len("100"):
            raise InputError(f"--index-fillfactor {text}: expected a whole number behind '='")
        found.append(IndexChange(kind="fillfactor", index=name, fillfactor=int(value)))
    return found


def _parts(option: str, text: str, form: str) -> tuple[str, str]:
    """Name and value; a name may hold '=' itself, the value never does."""
    name, sign, value = text.rpartition("=")
    if not sign or not name or not value:
        raise InputError(f"{option} {text}: expected {form}")
    return name, value

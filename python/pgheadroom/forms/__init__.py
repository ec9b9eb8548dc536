"""
Frozen values and their form in a file: one declaration reads, refuses, writes and describes it.

A form is a frozen dataclass. pydantic's core checks files by its annotations (`declared.py`); what
is ours is said beside them:

    rows: Annotated[int, between(0, 5)]
    snapshots: tuple[Snapshot, ...] = field(default=(), metadata=in_file("snapshot"))
    size_bytes: Annotated[int, Stored(str, load=parse_bytes, dump=show_bytes)]

Nothing is coerced: a number in quotes is a text, and `true` is no number. What is refused ends in a
`FieldError` with the path, what was found and what was expected. Values that our own code makes
are not checked again, and pydantic's core is loaded with the first file.
"""

from __future__ import annotations

from pgheadroom.forms.filed import FRAME, Filed, unframed
from pgheadroom.forms.foreign import FieldError, brief, encodable, fail, keepable
from pgheadroom.forms.form import defaults, expected_of, json_schema, read
from pgheadroom.forms.kept import kept
from pgheadroom.forms.marks import (
    Earlier,
    Expected,
    GapList,
    Limits,
    NameList,
    Stored,
    Text,
    between,
    in_file,
)
from pgheadroom.forms.writing import Kept, changed, write

__all__ = [
    "FRAME",
    "Earlier",
    "Expected",
    "FieldError",
    "Filed",
    "GapList",
    "Kept",
    "Limits",
    "NameList",
    "Stored",
    "Text",
    "between",
    "brief",
    "changed",
    "defaults",
    "encodable",
    "expected_of",
    "fail",
    "in_file",
    "json_schema",
    "keepable",
    "kept",
    "read",
    "unframed",
    "write",
]

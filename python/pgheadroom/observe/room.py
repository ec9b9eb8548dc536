"""
How large a profile will be, before the interval that it tells of.
"""

from __future__ import annotations

from pgheadroom.sources.recording import Recording

# Of profiles of real databases with long names, and somewhat more.
_BASE_BYTES = 100_000
_TABLE_BYTES = 12_000
_COLUMN_BYTES = 1_500
_INDEX_BYTES = 2_500


def profile_bytes(recording: Recording) -> int:
    """
    An upper estimate of the profile's bytes.

    Args:
        recording: With the shape of the database.
    """
    chosen = (recording.row("chosen_tables", "shape") or {}).get("tables")
    wanted = None if chosen is None else {int(oid) for oid in str(chosen).split(",")}

    def number(query: str, field: str) -> int:
        return sum(wanted is None or row[field] in wanted for row in recording.rows(query, "shape"))

    return (
        _BASE_BYTES
        + number("tables", "oid") * _TABLE_BYTES
        + number("columns", "oid") * _COLUMN_BYTES
        + number("indexes", "table_oid") * _INDEX_BYTES
    )

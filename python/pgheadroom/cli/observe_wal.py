"""
What the log of an interval says, in lines for people (`--wal`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pgheadroom.units import percent, show_bytes

if TYPE_CHECKING:
    from pgheadroom.profile import Profile

_TABLES_SHOWN = 3
_CAUSES_SHOWN = 3


def said_log(profile: Profile) -> Iterable[str]:
    """What the log has, in lines: the whole, and the tables that write most and why."""
    server = profile.server.observed
    if server is None or server.wal is None:
        return
    whole = server.wal
    yield f"write-ahead log: {show_bytes(whole.bytes)}, {whole.records} records"
    written = [
        (facts.wal, table.name)
        for table in profile.tables
        if (facts := table.observed) is not None and facts.wal is not None and facts.wal.bytes
    ]
    for wal, name in sorted(written, key=lambda item: -item[0].bytes)[:_TABLES_SHOWN]:
        largest = sorted(wal.by_cause.items(), key=lambda item: -item[1].bytes)[:_CAUSES_SHOWN]
        causes = ", ".join(
            f"{cause} {percent(count.bytes / wal.bytes)}" for cause, count in largest
        )
        share = wal.bytes / max(whole.bytes, 1)
        yield f"WAL of {name}: {show_bytes(wal.bytes)}, {percent(share)} of it: {causes}"
    if whole.nameless_bytes:
        yield (
            f"! {show_bytes(whole.nameless_bytes)} of it are of relations that no name was found "
            "for: of a database that was not asked, made and dropped within the interval, or of a "
            "transaction that had not committed"
        )
    for note in whole.notes or ():
        yield f"! {note}"

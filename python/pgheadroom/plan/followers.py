"""
Who follows a server: standbys by its senders and its physical slots, each by its slot or its name.

An index that nobody reads here may be read there, so a plan keeps who was asked, and `apply` looks
again for who came since.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pgheadroom.quoting import printable

if TYPE_CHECKING:
    import psycopg

_NO_STANDBYS = "('pg_basebackup', 'pg_receivewal')"
_FOLLOWERS = f"""
SELECT s.slot_name::text AS slot, r.application_name AS name
FROM pg_stat_replication r
LEFT JOIN pg_replication_slots s ON s.active_pid = r.pid
WHERE coalesce(r.application_name, '') NOT IN {_NO_STANDBYS}
  AND s.slot_type IS DISTINCT FROM 'logical'
UNION ALL
SELECT s.slot_name::text, NULL FROM pg_replication_slots s
WHERE s.slot_type = 'physical' AND s.active_pid IS NULL
"""
_UNKNOWN = "name unknown (pg_monitor sees it)"


def followers_of(connection: psycopg.Connection[Any]) -> tuple[str, ...]:
    """Each that follows the server of a connection, by its slot, else by its name."""
    rows = connection.execute(_FOLLOWERS.encode()).fetchall()
    return tuple(follower_name(slot, name) for slot, name in rows)


def follower_name(slot: str | None, application: str | None) -> str:
    """How one is called that follows by a slot, or by a name alone."""
    if slot is not None:
        return f"slot {slot}"
    return f"name {application}" if application else _UNKNOWN


def came_since(asked: Sequence[str], now: Sequence[str]) -> str | None:
    """
    Why those who were asked are not all that there are; None where they are.

    Args:
        asked: Who followed when the plan was made, every one of whom was asked.
        now: Who follows now.
    """
    new = Counter(now) - Counter(asked)
    if not new:
        return None
    who = ", ".join(map(printable, sorted(new.elements())))
    was = ", ".join(map(printable, sorted(asked))) or "none"
    return (
        f"a standby is there that was not asked whether it reads it: found {who}, the plan has "
        f"{was}; name each as a standby when you plan again"
    )

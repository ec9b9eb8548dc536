"""
What standbys say of an index: each counts its own reads, so each is asked before one is dropped.

The primary knows who follows it, by its senders and its slots; a standby knows the slot or the name
by which it follows, and who follows it in turn. All have to be accounted for.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pgheadroom.doctor.examining import APPLICATION_NAME
from pgheadroom.doctor.rule import DAY_S
from pgheadroom.errors import InputError
from pgheadroom.plan.followers import follower_name, followers_of
from pgheadroom.quoting import printable
from pgheadroom.sources.session import read_only_session
from pgheadroom.sources.since import SINCE_EPOCH_S

if TYPE_CHECKING:
    import psycopg

AGE_MIN_DAYS = 30
"""As for the primary's own reads (`unused-index`): what closes a month runs once in it."""

_SELF = f"""
SELECT pg_is_in_recovery() AS in_recovery, current_database() AS database,
       extract(epoch FROM clock_timestamp())::float8 AS now_s,
       {SINCE_EPOCH_S} AS since_s,
       (SELECT slot_name FROM pg_stat_wal_receiver) AS slot,
       (SELECT conninfo FROM pg_stat_wal_receiver) AS conninfo
"""
_CLUSTER = "SELECT system_identifier::text AS id FROM pg_control_system()"
_NAMED = re.compile(r"(?:^| )((?:fallback_)?application_name)=(.*?)(?= [a-z_]+=|$)", re.DOTALL)
_SCANS = """
SELECT c.oid::int8 AS oid, c.relname AS name, pg_stat_get_numscans(c.oid) AS idx_scan
FROM pg_class c WHERE c.relkind = 'i'
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class StandbySeen:
    """
    What one standby said.

    Attributes:
        called: Its connection, without a password.
        follows: By which slot or name it follows.
        since_days: Over how long it has counted; None: nothing says it.
        scans: Reads of each index, by its OID, with its name.
        followers: Who follows it in turn.
    """

    called: str
    follows: str
    since_days: float | None
    scans: Mapping[int, tuple[str, int]]
    followers: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StandbyEvidence:
    """
    All standbys that there are, and those that were asked.

    Attributes:
        unasked: Who follows and was not asked, by slot or name.
        seen: Who was.
        archives: The primary archives its WAL, from which a standby may live unseen.
        followers: Who follows the primary itself, by slot or name.
    """

    unasked: tuple[str, ...]
    seen: tuple[StandbySeen, ...]
    archives: bool
    followers: tuple[str, ...] = ()

    def against(self, oid: int, name: str) -> str | None:
        """Why an index may not be dropped; None where no standby needs it."""
        if self.unasked:
            who = ", ".join(map(printable, self.unasked))
            return f"standbys were not asked: {who}; name each by --standby CONN"
        for one in self.seen:
            found = one.scans.get(oid)
            if found is None or found[0] != name:
                return f"standby {one.called} does not have it: it is not up to date"
            if found[1]:
                return f"standby {one.called} has read it {found[1]:,} times"
            if one.since_days is None or one.since_days < AGE_MIN_DAYS:
                known = "an unknown time" if one.since_days is None else _days(one.since_days)
                return (
                    f"standby {one.called} has counted for {known}: what runs once a month needs "
                    f"{AGE_MIN_DAYS} days"
                )
        return None

    @property
    def said(self) -> str:
        """In words, for a step."""
        if self.seen:
            asked = ", ".join(f"{one.called} ({_days(one.since_days or 0.0)})" for one in self.seen)
            return f"not read on any standby as long as they have counted: {asked}"
        also = (
            "; one that takes its WAL out of the archive alone would not be seen"
            if self.archives
            else ""
        )
        return f"no standby is connected, and no slot waits for one{also}"


def _days(days: float) -> str:
    return f"{days:.0f} days" if days >= 2 else f"{days:.1f} days"


def standby_evidence(
    connection: psycopg.Connection[Any], targets: Sequence[str], *, ahead_s: float = 0.0
) -> StandbyEvidence:
    """
    Ask standbys for their reads of indexes, only reading.

    Args:
        connection: Of the primary.
        targets: A connection to each standby, to the same database.
        ahead_s: By how much clocks are taken to be later than they are.

    Raises:
        InputError: One of them is no standby of this server, or of another database.
        ConnectionFailed: One does not answer.
    """
    cluster = _first(connection, _CLUSTER)
    here = _first(connection, "SELECT current_database() AS database")
    assert here is not None, "a query without FROM gives a row"
    archives = _first(connection, "SELECT current_setting('archive_mode') <> 'off' AS is_on")
    seen = [_asked(target, cluster, str(here["database"]), ahead_s) for target in targets]
    followers = followers_of(connection)
    wanted = Counter(followers)
    for one in seen:
        wanted.update(one.followers)
    for one in seen:
        if not wanted[one.follows]:
            raise InputError(
                f"--standby {one.called} follows by {one.follows}, which neither this server nor "
                "another standby that was named has: expected its standbys, each once"
            )
        wanted[one.follows] -= 1
    return StandbyEvidence(
        unasked=tuple(sorted(wanted.elements())),
        seen=tuple(seen),
        archives=archives is not None and bool(archives["is_on"]),
        followers=followers,
    )


def _asked(
    target: str, cluster: Mapping[str, Any] | None, database: str, ahead_s: float
) -> StandbySeen:
    with read_only_session(target, {"application_name": APPLICATION_NAME}) as connection:
        info = connection.info
        called = printable(f"{info.host}:{info.port}")
        row = _first(connection, _SELF)
        assert row is not None, "a query without FROM gives a row"
        other = _first(connection, _CLUSTER)
        if not row["in_recovery"]:
            raise InputError(f"the standby {called} is no standby: expected one of this server")
        if cluster is not None and other is not None and cluster["id"] != other["id"]:
            raise InputError(
                f"the standby {called} is of another cluster ({other['id']}, this one is "
                f"{cluster['id']}): expected a standby of this server"
            )
        if row["database"] != database:
            raise InputError(
                f"the standby {called}: found database {printable(str(row['database']))}, expected "
                f"{printable(database)}, whose indexes are asked for"
            )
        application = _application(row["conninfo"])
        if row["slot"] is None and application is None:
            raise InputError(
                f"the standby {called}: by which name it follows is not shown to this role, or it "
                "receives nothing: expected a standby that streams, and pg_monitor there"
            )
        since_days = None
        if row["since_s"] is not None:
            since_days = max(row["now_s"] + ahead_s - row["since_s"], 0.0) / DAY_S
        return StandbySeen(
            called=called,
            follows=follower_name(row["slot"], application),
            since_days=since_days,
            scans={
                each["oid"]: (each["name"], each["idx_scan"]) for each in _rows(connection, _SCANS)
            },
            followers=followers_of(connection),
        )


def _application(conninfo: str | None) -> str | None:
    """By which name a receiver follows; the server shows values without quotes, spaces and all."""
    names = {match[1]: match[2] for match in _NAMED.finditer(conninfo or "")}
    found = names.get("application_name") or names.get("fallback_application_name")
    return found or None


def _first(connection: psycopg.Connection[Any], query: str) -> Mapping[str, Any] | None:
    import psycopg  # noqa: PLC0415 - as above

    try:
        return next(iter(_rows(connection, query)), None)
    except psycopg.errors.InsufficientPrivilege:
        return None


def _rows(connection: psycopg.Connection[Any], query: str) -> list[Mapping[str, Any]]:
    from psycopg.rows import dict_row  # noqa: PLC0415 - as above

    with connection.cursor(row_factory=dict_row) as cursor:
        return list(cursor.execute(query.encode()).fetchall())

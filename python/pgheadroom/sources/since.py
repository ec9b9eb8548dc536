"""
Since when a database's statistics count.
"""

from __future__ import annotations

SINCE_EPOCH_S = """
       -- A database that was never reset counts since the cluster's statistics began: what counts
       -- for the whole cluster says when, but where it was reset by itself.
       extract(epoch FROM coalesce(
           (SELECT stats_reset FROM pg_stat_database WHERE datname = current_database()),
           (SELECT s.began FROM (
                SELECT least((SELECT stats_reset FROM pg_stat_bgwriter),
                             (SELECT stats_reset FROM pg_stat_wal),
                             (SELECT stats_reset FROM pg_stat_archiver)) AS began) s
            -- A crash resets all when the server comes up again. What is younger was reset by
            -- pg_stat_reset_shared, and says nothing of this database.
            WHERE (s.began < (SELECT a.backend_start + interval '1s' FROM pg_stat_activity a
                              WHERE a.backend_type = 'checkpointer')) IS NOT FALSE)))::float8
"""
"""An expression, in seconds since 1970; null where nothing says it."""

_FLUSHED_LATE_S = 120
"""A session tells what it scanned up to a minute after its transaction (PGSTAT_MAX_INTERVAL), with
the time of that (pgstat_relation_flush_cb): what is so little older than a reset is not from before
it. Twice of that."""

_VACUUMED = """EXISTS (
           SELECT FROM pg_class c
           JOIN pg_stat_database d ON d.datname = current_database()
           WHERE c.relkind IN ('r', 'm', 't') AND NOT c.relisshared
             AND d.stats_reset > least(
               pg_stat_get_last_analyze_time(c.oid), pg_stat_get_last_autoanalyze_time(c.oid),
               pg_stat_get_last_vacuum_time(c.oid), pg_stat_get_last_autovacuum_time(c.oid)))"""
_SCANNED = """EXISTS (
           SELECT FROM pg_class c
           JOIN pg_stat_database d ON d.datname = current_database()
           WHERE c.relkind IN ('r', 'm', 't', 'i') AND NOT c.relisshared
             AND d.stats_reset > pg_stat_get_lastscan(c.oid) + interval '{late} s')"""
# Every session reads these two: a reset of all of them leaves its time in both.
_OF_CATALOGS = """EXISTS (
           SELECT FROM pg_stat_database d
           WHERE d.datname = current_database() AND d.stats_reset IS NOT NULL
             AND (pg_stat_get_stat_reset_time('pg_catalog.pg_class'::regclass) IS DISTINCT FROM
                  d.stats_reset
                  OR pg_stat_get_stat_reset_time('pg_catalog.pg_attribute'::regclass)
                     IS DISTINCT FROM d.stats_reset))"""


def is_partly_reset(major: int, *, late_s: int = _FLUSHED_LATE_S) -> str:
    """
    An expression: whether something counts since before the time that a database's statistics have.

    A reset of one table or function sets that time too, for the whole database (`pgstat_reset`,
    pgstat.c); one of all of them leaves nothing that is older: no VACUUM or ANALYZE, and from 16 on
    no scan of any table or index, catalogs among them. From 19 on each table has its own time. On
    15 it is not seen where each table has been vacuumed and analyzed since.

    Args:
        major: The server's version.
        late_s: By how much a scan has to be older than the reset.
    """
    if major >= 19:
        return _OF_CATALOGS
    if major >= 16:
        return f"({_VACUUMED} OR {_SCANNED.format(late=late_s)})"
    return _VACUUMED

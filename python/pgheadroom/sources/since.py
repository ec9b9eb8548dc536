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

IS_PARTLY_RESET = """EXISTS (
           SELECT FROM pg_class c
           JOIN pg_stat_database d ON d.datname = current_database()
           WHERE c.relkind IN ('r', 'm', 't') AND NOT c.relisshared
             AND d.stats_reset > least(
               pg_stat_get_last_analyze_time(c.oid), pg_stat_get_last_autoanalyze_time(c.oid),
               pg_stat_get_last_vacuum_time(c.oid), pg_stat_get_last_autovacuum_time(c.oid)))"""
"""
An expression: whether something counts since before the time that a database's statistics have.

A reset of one table or function sets that time too, for the whole database (`pgstat_reset`,
pgstat.c); one of all of them leaves nothing that is older. Where each table has been vacuumed or
analyzed since, it is not seen.
"""

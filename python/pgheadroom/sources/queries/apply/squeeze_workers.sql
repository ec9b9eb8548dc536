-- Workers of pg_squeeze at a table that began after a moment, and how long each has waited for its
-- last lock. Anyone; of which kind a process is, its own role and pg_monitor see.
SELECT a.pid,
       coalesce(max(extract(epoch FROM clock_timestamp() - l.waitstart))
                FILTER (WHERE l.mode = 'AccessExclusiveLock' AND NOT l.granted), 0)::float8 AS waits_s
FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'relation' AND l.relation = %(oid)s::oid AND a.backend_type = 'squeeze worker'
  AND a.backend_start >= %(since)s
  AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
GROUP BY a.pid

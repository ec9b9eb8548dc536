-- Who holds a lock on a table that ALTER TABLE or a rewrite would have to wait for. Anyone; what
-- others do is shown to pg_monitor only.
SELECT l.pid, l.mode, coalesce(nullif(a.application_name, ''), a.backend_type) AS who, a.state,
       extract(epoch FROM clock_timestamp() - a.xact_start)::float8 AS age_s
FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'relation' AND l.relation = %(oid)s::oid AND l.granted
  AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND l.pid <> pg_backend_pid()
ORDER BY a.xact_start NULLS LAST, l.pid
LIMIT 5

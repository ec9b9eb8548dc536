-- Statements that run at this moment. Others' texts are shown to pg_read_all_stats only.
SELECT a.pid, a.state, a.query,
       a.query = '<insufficient privilege>' AS is_hidden
FROM pg_stat_activity a
WHERE a.datname = current_database() AND a.pid <> pg_backend_pid()
  AND a.backend_type = 'client backend'
  AND a.state IN ('active', 'idle in transaction', 'fastpath function call')

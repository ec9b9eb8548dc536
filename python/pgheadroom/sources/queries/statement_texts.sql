-- Texts of the statements that could change rows. The words only spare the transport of the
-- others; what comes back is parsed. Others' texts are shown to pg_read_all_stats only.
SELECT userid::int8 AS userid, queryid::text AS queryid, toplevel, query,
       query = '<insufficient privilege>' AS is_hidden
FROM :pgss_schema.pg_stat_statements(true)
WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND (query ~* '\m(update|insert|merge|delete|copy)\M' OR query = '<insufficient privilege>')
